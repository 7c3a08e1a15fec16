"""Structs in Thrift's compact form, which footers and page headers of Parquet files are: read without believing them.

pyarrow reads the same, but some of its accessors end the process when a footer contradicts itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Fields = dict[int, Any]  # field number → whole number, truth value, bytes, list, or the fields of a struct
_DEEPEST = 12
_MOST = 2_000_000  # things in one struct, all in all; a model's footer has a few hundred


class NotThrift(ValueError):
    """The bytes are no struct."""


def read_struct(raw: bytes, at: int, end: int) -> tuple[Fields, int]:
    """The fields of the struct that starts at a place, and where it ends; nothing beyond `end` is looked at.

    >>> read_struct(bytes([0x15, 0x04, 0x00]), 0, 3)
    ({1: 2}, 3)
    """
    reader = _Reader(raw, at, end)
    return reader.struct(0), reader.at


class _Reader:
    def __init__(self, raw: bytes, at: int, end: int) -> None:
        self.raw, self.at, self.end, self.things = raw, at, min(end, len(raw)), 0
        self.known: dict[int, Callable[[int], Any]] = {
            1: lambda _: self.byte() == 1,
            2: lambda _: self.byte() == 1,
            3: lambda _: self.byte(),
            4: lambda _: self.whole(),
            5: lambda _: self.whole(),
            6: lambda _: self.whole(),
            7: lambda _: self.some(8),
            8: lambda _: self.some(self.varint()),
            9: self.list,
            10: self.list,
            12: self.struct,
        }

    def byte(self) -> int:
        return self.some(1)[0]

    def some(self, count: int) -> bytes:
        if not 0 <= count <= self.end - self.at:
            raise NotThrift("a text is longer than what holds it")
        self.at += count
        return self.raw[self.at - count : self.at]

    def varint(self) -> int:
        value = 0
        for shift in range(0, 70, 7):
            byte = self.byte()
            value |= (byte & 127) << shift
            if byte < 128:
                return value
        raise NotThrift("a number without end")

    def whole(self) -> int:
        zigzag = self.varint()
        return (zigzag >> 1) ^ -(zigzag & 1)

    def value(self, kind: int, depth: int) -> Any:
        self.things += 1
        if kind not in self.known or depth > _DEEPEST or self.things > _MOST:
            raise NotThrift("a field of an unknown kind, or too many of them")
        return self.known[kind](depth)

    def list(self, depth: int) -> list[Any]:
        head = self.byte()
        count = self.varint() if head >> 4 == 15 else head >> 4
        if count > self.end - self.at:  # everything in a list takes at least one byte
            raise NotThrift("a list is longer than what holds it")
        return [self.value(head & 15, depth + 1) for _ in range(count)]

    def struct(self, depth: int) -> Fields:
        out: Fields = {}
        field = 0
        while head := self.byte():
            field = field + (head >> 4) if head >> 4 else self.whole()
            # inside a struct the kind of a truth value is its value
            out[field] = head & 15 == 1 if head & 15 in (1, 2) else self.value(head & 15, depth + 1)
        return out
