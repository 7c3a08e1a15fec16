"""What one row adds to a tally, and a sheet by slot: exact amounts in plain Python, as fast for many slots as for few.

Amounts are whole numbers or fractions. Σx counts units of 2^-1074 and Σx² their squares, so that any float64 and its
square are whole; what must hold between n, Σx and Σx² holds in these units as in others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from fractions import Fraction
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..data import encode
from ..data.batch import one_row
from ..data.blocks import Groups
from ..data.dates import plain_part
from ..data.schema import Column, Schema
from ..data.values import NotPlain, plain_text
from ..exact.counts import Counts
from ..exact.limbs import Limbs, whole_numbers
from ..exact.sheet import Sheet
from .guard import ROWS, how_often

TOP = 1000  # of the fullest slots of a class are known by name
_UNIT_BITS = {"x": 1074, "xx": 2 * 1074}  # of other amounts a unit is one
_ONE = (1,)


class Added(NamedTuple):
    """What a row adds to a sheet: of every amount a number under each of the slots that it has."""

    column: str | None  # None for the rows themselves
    sheet: str
    slots: Collection[str]
    amounts: Mapping[str, Sequence[Any]]


def checked(schema: Schema, row: Mapping[Any, Any]) -> dict[str, Any]:
    """The row by the names of its columns, refused where it cannot be read; absent columns are warned of.

    It stays as it is whatever becomes of the lists and arrays that were given.
    """
    out = dict(row)
    if {*map(type, out)} != {str}:
        out = {name: column[0] for name, column in one_row(row).columns.items()}
    label_of(schema, out)
    inputs = {name for column in schema.counted for name in column.inputs}
    if not inputs <= out.keys():
        encode.check_columns(schema, one_row(out))
    try:
        for column in schema.counted:
            _read(column, out.get(column.reads), schema)
    except NotPlain:
        out |= {name: _own(out[name]) for name in inputs & out.keys()}
        encode.blocks(schema, one_row(out))
    return out


def _own(value: Any) -> Any:
    """A value that nobody else can change."""
    return bytes(value) if isinstance(value, (bytearray, memoryview)) else deepcopy(value)


def label_of(schema: Schema, row: Mapping[str, Any]) -> str | None:
    """The class of the row; None if it has none."""
    try:
        if schema.fold:
            raise NotPlain
        return plain_text(row[schema.target], frozenset(schema.missing))
    except (NotPlain, KeyError):
        return encode.labels(schema, one_row(row)).text(0)


def row_amounts(schema: Schema, row: Mapping[str, Any]) -> list[Added]:
    """Everything that a row adds under its class; first the row itself."""
    out, others = [Added(None, "rows", ("",), dict.fromkeys(ROWS, _ONE))], []
    for column in schema.counted:
        try:
            absent = column.of is not None and column.reads not in row  # not there is not the same as missing
            out += () if absent else _plain_amounts(column, _read(column, row.get(column.reads), schema))
        except NotPlain:
            others.append(column.name)
    if others:
        blocks = encode.blocks(schema, one_row(row))
        alone = Groups(np.zeros(1, dtype=np.int64), 1)
        for name in others:
            for kind, sheet in blocks[name].sum_by(alone).items():
                index = SlotIndex(sheet, kind, 0)
                out.append(Added(name, kind, index.number, {a: v[:-1] for a, v in index.values.items()}))
    return out


def _read(column: Column, value: Any, schema: Schema) -> Any:
    """A text, number or words of a plain column; None if missing. Everything else is not plain."""
    plain, marks = column.about.plain, frozenset((*schema.missing, *column.missing))
    if column.spelling is not None:
        raise NotPlain
    if column.part is not None:
        return plain_part(value, column.part, marks)
    if plain is None:
        raise NotPlain
    return plain(column, value, marks)


def _plain_amounts(column: Column, value: Any) -> Iterator[Added]:
    """What a plain column adds."""
    name = column.name
    if value is None:
        return
    if column.like == "category":
        yield Added(name, "values", (value,), {"n": _ONE})
    elif column.like == "number":
        over, under = value.as_integer_ratio()
        x = (over << _UNIT_BITS["x"]) // under
        yield Added(name, "moments", ("",), {"n": _ONE, "x": (x,), "xx": (x * x,)})
        if column.cells is not None:
            (slot,) = column.cells.slot_names(np.array([column.cells.code(value)]))
            yield Added(name, "cells", (slot,), {"n": _ONE})
    else:
        assert column.text is not None
        words = Counter(column.text.tokens(value))
        yield Added(name, "rows", ("",), {"n": _ONE})
        yield Added(name, "words", words, {"n": [*words.values()], "documents": _ONE * len(words)})


def slot_index(counts: Counts, sheet: str, label: int) -> SlotIndex:
    """What a class has in a sheet, indexed once."""
    return counts.once(("index", sheet, label), lambda: SlotIndex(counts.sheet(sheet, ROWS), sheet, label))


class SlotIndex:
    """The exact amounts of one class in a sheet by slot, how many rows all slots have, and which have most.

    A million words are indexed in a third of a second, since hardly an object is made for any of them.
    """

    def __init__(self, sheet: Sheet, kind: str, label: int) -> None:
        here = np.flatnonzero(sheet.label == label)
        own = Sheet(sheet.amounts, sheet.slots, sheet.slot[here], sheet.limb[here], here * 0, sheet.amount[here])
        self.number = sheet.slot_numbers
        # by number, and at the end a zero for slots that are not there, which have the number −1
        self.values = {amount: _exact(own.limbs(amount, 1), amount) for amount in sheet.amounts}
        self._rows = self.values.get(how_often(kind), [0])

    @cached_property
    def total(self) -> Any:
        """How many rows have any of the slots, if none has two of them."""
        return sum(self._rows)

    @cached_property
    def fullest(self) -> list[tuple[str, Any]]:
        """The slots that most rows have, the fullest first; all of them if there are no more than `TOP`."""
        size, names = np.array(self._rows[:-1], dtype=np.float64), list(self.number)
        top = np.argpartition(size, -TOP)[-TOP:] if len(size) > TOP else np.arange(len(size))
        top = top[np.argsort(-size[top], kind="stable")]
        return [(names[i], self._rows[i]) for i in top.tolist()]


def _exact(limbs: Limbs, amount: str) -> list[Any]:
    """The numbers of an amount in its units, and a zero."""
    unit_bits = _UNIT_BITS.get(amount, 0)
    if limbs.lowest == 0 and limbs.array.shape[1] == 1 and not unit_bits:
        small: list[int] = np.append(limbs.array, 0).tolist()
        return small
    values, exponent = whole_numbers(limbs)
    over, under = 1 << max(unit_bits + exponent, 0), 1 << max(-unit_bits - exponent, 0)
    return [v * over // under if v % under == 0 else Fraction(v, under) for v in [*values, 0]]
