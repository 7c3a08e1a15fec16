"""A table and texts ↔ the bytes of a Parquet file, with a checksum of all the bytes inside the file.

The checksum is the last entry of the key-value metadata. It is found by a scan of the footer's bytes and compared
before anything is parsed: Parquet readers are written in C++, and a damaged file is no input for them. A file made to
deceive has a right checksum, so the sizes that it claims are held against the bytes it has before a reader allocates
anything for them.

The footer says how many rows there are and how large each column chunk is; every page says again how large it is,
packed and unpacked, and how many values it has. Readers believe all of these. Here they are held against each other
and against the size of the file, which may unpack to `UNPACKED` times that and have `ROWS` rows for each byte, no more.

Footers and page headers are structs in Thrift's compact form, read here without believing them. pyarrow reads the same,
but some of its accessors end the process when a footer contradicts itself.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..base.errors import ModelFileError

PREFIX = "tallybayes."
_MAGIC = b"PAR1"
_NAME = PREFIX + "checksum"
_DIGITS = 64
_MARK = _NAME.encode() + bytes([0x18, _DIGITS])  # in Thrift's compact form: the next field is a text of 64 bytes
_ROW_GROUP = 1 << 20
_UNREADABLE = (pa.ArrowException, OSError, MemoryError, ValueError)  # what pyarrow says to a wrong file
_UNFIT = (
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
)  # what Python says to fields of other kinds than they should be
_HINT = "the file is damaged: take a copy, or save the model again with model.save(path)."


@dataclass(frozen=True)
class Parts:
    """A checked file: its texts, and the table when it is asked for."""

    raw: bytes
    metadata: Mapping[str, str]
    columns: tuple[str, ...]

    def table(self, coded: Sequence[str] = ("column", "sheet", "slot", "class")) -> pa.Table:
        """The rows. Texts stay coded, so that a short file cannot unfold into a long table."""
        try:
            there = [c for c in coded if c in self.columns]
            file = pq.ParquetFile(pa.BufferReader(self.raw), read_dictionary=there, page_checksum_verification=True)
            table = file.read(use_threads=False)
            table.validate(full=True)  # codes beyond their dictionary, texts that are not UTF-8
            return table
        except _UNREADABLE as error:
            raise ModelFileError(f"the rows cannot be read: {str(error)[:200]}", hint=_HINT) from None


def pack(table: pa.Table, texts: Mapping[str, str]) -> bytes:
    """The bytes of the file."""
    out = io.BytesIO()
    with pq.ParquetWriter(
        out, table.schema, compression="zstd", store_schema=False, write_statistics=False, write_page_checksum=True
    ) as writer:
        if table.num_rows:
            writer.write_table(table, row_group_size=_ROW_GROUP)
        writer.add_key_value_metadata({**texts, _NAME: "0" * _DIGITS})
    raw = bytearray(out.getvalue())
    at = _checksum_place(raw)
    if at is None:
        raise ModelFileError(
            "this pyarrow writes metadata in an unknown form", hint="install another pyarrow, 17 to 26."
        )
    raw[at : at + _DIGITS] = _checksum(raw, at).encode()
    return bytes(raw)


def unpack(raw: bytes, *, trusted: bool = False, foreign: bool = False) -> Parts:
    """The parts of a file after its checksum and the sizes it claims; `foreign` takes files without a checksum."""
    if len(raw) < 12 or raw[:4] != _MAGIC or raw[-4:] != _MAGIC:
        found = "an empty file" if not raw else "no Parquet file, or only a part of one"
        raise ModelFileError(found, hint="give a file that model.save(path) wrote; if it was one, it is damaged.")
    at = _checksum_place(raw)
    if at is None and not foreign:
        raise ModelFileError(
            "a Parquet file without the checksum of a model file",
            hint="if it is a table of amounts that SQL has summed, say whose: tb.load(path, like='model.tb.parquet'). "
            "If it was a model file, it is damaged.",
        )
    if at is not None and raw[at : at + _DIGITS] != _checksum(raw, at).encode():
        raise ModelFileError("the bytes of the file do not have the checksum that it names", hint=_HINT)
    footer = read_footer(raw)
    if not trusted:
        check_sizes(raw, footer)
    texts, columns = _texts_and_columns(footer)
    if foreign and at is None and any(k.startswith(PREFIX) for k in texts):
        raise ModelFileError("a model file without its checksum", hint=_HINT)
    return Parts(raw, texts, columns)


def _checksum_place(raw: Any) -> int | None:
    """Where the 64 digits stand: after the last mention of their name in the footer."""
    at = raw.rfind(_MARK, start) if (start := _footer_start(raw)) >= 4 else -1
    end = at + len(_MARK) + _DIGITS
    return at + len(_MARK) if at >= 0 and end <= len(raw) - 8 else None


def _footer_start(raw: Any) -> int:
    return len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")


def _checksum(raw: Any, at: int) -> str:
    view = memoryview(raw)
    out = hashlib.sha256(view[:at])
    out.update(b"0" * _DIGITS)
    out.update(view[at + _DIGITS :])
    return out.hexdigest()


UNPACKED, UNPACKED_FREE = 64, 1 << 26  # zstd packs words and counts 3 to 20 times; a small file may always have 64 MB
ROWS, ROWS_FREE = 16, 1 << 20  # a tally of words has about one row for each byte
_MOST_COLUMNS = 1000


def read_footer(raw: bytes) -> Fields:
    """The fields of the footer, by the numbers of the format's definition (parquet.thrift, FileMetaData)."""
    try:
        if (start := _footer_start(raw)) < 4:
            raise NotThrift("the footer is longer than the file")
        return read_struct(raw, start, len(raw) - 8)[0]
    except NotThrift as error:
        raise ModelFileError(f"the footer of the file cannot be read: {error}", hint=_HINT) from None


def _texts_and_columns(footer: Fields) -> tuple[dict[str, str], tuple[str, ...]]:
    """The key-value metadata, and the names of the columns of a flat table."""
    what = "metadata"
    try:
        texts = {pair[1].decode(): pair[2].decode() for pair in footer.get(5, [])}
        what = "columns"
        return texts, tuple(element[4].decode() for element in footer[2][1:])
    except _UNFIT:
        raise ModelFileError(f"the {what} of the file cannot be read", hint=_HINT) from None


def check_sizes(raw: bytes, footer: Fields) -> None:
    """Refuse a file whose footer or pages claim what the file cannot hold."""
    try:
        _check(raw, footer)
    except (AttributeError, KeyError, TypeError, NotThrift) as error:
        raise ModelFileError(
            f"the footer or a page of the file cannot be read: {type(error).__name__} {error}", hint=_HINT
        ) from None


def _check(raw: bytes, footer: Fields) -> None:
    rows, groups = footer[3], footer.get(4, [])
    if not 0 <= rows <= ROWS * len(raw) + ROWS_FREE or sum(g[3] for g in groups) != rows:
        raise _absurd(f"{rows:,} rows")
    if len(footer[2]) > _MOST_COLUMNS:
        raise _absurd(f"{len(footer[2]):,} columns")
    unpacked = 0
    for group in groups:
        if group[3] <= 0 or len(group[1]) >= len(footer[2]):  # the schema also has an element for the whole row
            raise _absurd(f"{group[3]:,} rows of {len(group[1]):,} columns in a group")
        for chunk in group[1]:
            unpacked += _check_chunk(raw, chunk, group[3])
            if unpacked > UNPACKED * len(raw) + UNPACKED_FREE:
                raise _absurd(f"{unpacked:,} bytes unpacked")


def _check_chunk(raw: bytes, chunk: Fields, rows: int) -> int:
    """How many bytes the pages of a column chunk say they unpack to."""
    about: Any = chunk[3]
    start = min(about[9], about.get(11, about[9]))
    if 11 in about and about[11] <= 0:
        start = about[9]  # some writers put 0 where there is no dictionary
    end = start + about[7]
    if 1 in chunk or not 4 <= start <= end <= len(raw) or about[5] != rows:
        raise _absurd(f"a column chunk from byte {start:,} to {end:,} with {about[5]:,} values")
    at, values, unpacked = start, 0, 0
    while at < end:
        page, at = read_struct(raw, at, end)
        size, packed = page[2], page[3]
        if not 0 <= packed <= end - at or size < 0:
            raise _absurd(f"a page of {size:,} bytes packed in {packed:,}")
        data: Any = page.get(5, page.get(8, {}))  # the header of a data page in its first or second form
        own, words = data.get(1, 0), page.get(7, {}).get(1, 0)  # how many values it has, or a dictionary
        if own < 0 or not 0 <= words <= max(size, rows):
            raise _absurd(f"a page of {max(own, words):,} values")
        values, unpacked, at = values + own, unpacked + size, at + packed
        if values > rows:
            raise _absurd(f"pages of {values:,} values for {rows:,} rows")
    return unpacked


def _absurd(claim: str) -> ModelFileError:
    return ModelFileError(
        f"the file claims {claim}, which its size does not bear out",
        hint="it is damaged or made to exhaust memory; tb.load(path, trusted=True) reads a file you know to be right.",
    )


Fields = dict[int, Any]  # field number → whole number, truth value, bytes, list, or the fields of a struct
_DEEPEST = 12
_MOST_THINGS = 2_000_000  # things in one struct, all in all; a model's footer has a few hundred


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
            **dict.fromkeys((1, 2), lambda _: self.byte() == 1),
            3: lambda _: self.byte(),
            **dict.fromkeys((4, 5, 6), lambda _: self.whole()),
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
        if kind not in self.known or depth > _DEEPEST or self.things > _MOST_THINGS:
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
