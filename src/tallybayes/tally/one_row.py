"""What one row adds to a tally: exact amounts by column, sheet and slot, in plain Python where the values are plain.

A sheet that answers for one slot at a time, as fast for many slots as for few.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..data import encode
from ..data.batch import one_row
from ..data.blocks import Groups
from ..data.schema import Column, Schema
from ..data.values import NotPlain, plain_text
from ..exact.counts import Counts
from ..exact.sheet import Sheet
from .guard import ROWS

Amounts = Sequence[Any]  # exact: whole numbers, or fractions of them
_ONE = (1,)


class Words(Counter[str]):
    """How often each word of a text occurs: under each its occurrences and a one for the row are counted."""

    def amounts(self) -> dict[str, Amounts]:
        """The same as amounts by slot."""
        return {word: (n, 1) for word, n in self.items()}


Touched = tuple[str, str, Mapping[str, Amounts] | Words]  # column ("" for the rows), sheet, amounts by slot


def checked(schema: Schema, row: Mapping[Any, Any]) -> dict[str, Any]:
    """The row by the names of its columns, refused where it cannot be read; absent columns are warned of."""
    out = dict(row)
    if {*map(type, out)} != {str}:
        out = {name: column[0] for name, column in one_row(row).columns.items()}
    label_of(schema, out)
    if any(name not in out for column in schema.counted for name in column.inputs):
        encode.check_columns(schema, one_row(out))
    try:
        for column in schema.counted:
            _read(column, out.get(column.reads), schema)
    except NotPlain:
        encode.blocks(schema, one_row(out))
    return out


def label_of(schema: Schema, row: Mapping[str, Any]) -> str | None:
    """The class of the row; None if it has none."""
    try:
        return plain_text(row[schema.target], frozenset(schema.missing))
    except (NotPlain, KeyError):
        return encode.labels(schema, one_row(row)).text(0)


def row_amounts(schema: Schema, row: Mapping[str, Any]) -> list[Touched]:
    """Everything that a row adds under its class; first the row itself."""
    out: list[Touched] = [("", "rows", {"": (1, 1)})]
    others = []
    for column in schema.counted:
        try:
            out += _simple(column, _read(column, row.get(column.reads), schema))
        except NotPlain:
            others.append(column.name)
    if others:
        blocks = encode.blocks(schema, one_row(row))
        alone = Groups(np.zeros(1, dtype=np.int64), 1)
        for name in others:
            for sheet, counted in blocks[name].sum_by(alone).items():
                amounts = SlotIndex(counted).of(0)
                text = schema[name].text is not None and sheet == "words"
                out.append((name, sheet, Words({slot: n for slot, (n, _) in amounts.items()}) if text else amounts))
    return out


def _read(column: Column, value: Any, schema: Schema) -> Any:
    """A text, number or words of a plain column; None if missing. Everything else is not plain."""
    if column.part is not None or column.of is not None:
        raise NotPlain
    plain = column.about.plain
    if plain is None:
        raise NotPlain
    return plain(column, value, frozenset((*schema.missing, *column.missing)))


def _simple(column: Column, value: Any) -> Iterator[Touched]:
    """The amounts of a plain column."""
    name = column.name
    if value is None:
        return
    if column.like == "category":
        yield name, "values", {value: _ONE}
    elif column.like == "number":
        x: Any = int(value) if value.is_integer() else Fraction(value)
        yield name, "moments", {"": (1, x, x * x)}
        if column.cells is not None:
            (slot,) = column.cells.slot_names(np.array([column.cells.code(value)]))
            yield name, "cells", {slot: _ONE}
    else:
        assert column.text is not None
        yield name, "rows", {"": _ONE}
        yield name, "words", Words(column.text.tokens(value))


_TOP = 1000  # of the fullest slots of a class are known by name


PLACES = 32  # occurrences and, so many bits higher, texts of a word in one number
ROW = 1 << PLACES
BORROWED = ROW >> 1  # this bit shows that occurrences are below 0
LIMIT = BORROWED >> 1  # from here on, sums might reach that bit


def slot_index(counts: Counts, sheet: str) -> SlotIndex:
    """The index of a sheet, made once."""
    return counts.once(("index", sheet), lambda: SlotIndex(counts.sheet(sheet, ROWS)))


class SlotIndex:
    """The exact amounts under a slot and class, the sums of each class, and its fullest slots.

    What is known of a class is worked out when somebody first asks for that class.
    """

    def __init__(self, sheet: Sheet) -> None:
        self.amounts, self._none = sheet.amounts, (0,) * len(sheet.amounts)
        self.how_often = sheet.amounts.index("documents") if "documents" in sheet.amounts else 0
        self._sheet = sheet
        self._held: dict[int, dict[str, Amounts]] = {}
        self._columns: dict[int, tuple[float, list[tuple[str, float]]]] = {}
        self._packed: dict[int, memoryview] = {}

    def of(self, label: int) -> Mapping[str, Amounts]:
        """The exact amounts of a class by slot; slots that hold nothing may be absent."""
        if label not in self._held:
            self._held[label] = _exact(self._sheet, label) if self._sheet.limb.any() else _whole(self._sheet, label)
        return self._held[label]

    def at(self, slot: str, label: int) -> Amounts:
        """The exact amounts under a slot and class."""
        return self.of(label).get(slot, self._none)

    def packed(self, label: int) -> tuple[dict[str, int], memoryview] | None:
        """The number of each slot, and by number occurrences + ROW · texts in a class; None where these are too many.

        A million words are indexed in a third of a second, since no object is made for any of them.
        """
        if not self._small:
            return None
        if label not in self._packed:
            sheet, out = self._sheet, np.zeros(len(self._sheet.slots), dtype=np.int64)
            here = sheet.label == label
            out[sheet.slot[here]] = sheet.amount[here, 0] + (sheet.amount[here, 1] << PLACES)
            self._packed[label] = memoryview(out.data)  # which gives Python's own numbers faster than an array does
        return self._numbers, self._packed[label]

    @cached_property
    def _small(self) -> bool:
        amount = self._sheet.amount
        return not self._sheet.limb.any() and int(amount.min(initial=0)) >= 0 and int(amount.max(initial=0)) < LIMIT

    @cached_property
    def _numbers(self) -> dict[str, int]:
        return dict(zip(self._sheet.slot_names, range(len(self._sheet.slots)), strict=True))

    def _column(self, label: int) -> tuple[float, list[tuple[str, float]]]:
        if label not in self._columns:
            column = _of_class(self._sheet, self.amounts[self.how_often], label)
            self._columns[label] = float(column.sum()), _fullest(column, self._sheet.slot_names)
        return self._columns[label]

    def sum(self, label: int) -> float:
        """How many values a class has, over all slots."""
        return self._column(label)[0]

    def fullest(self, label: int) -> tuple[list[tuple[str, float]], bool]:
        """The slots that most rows of a class have, the fullest first, and whether these are all."""
        return self._column(label)[1], len(self._sheet.slots) <= _TOP


def _of_class(sheet: Sheet, amount: str, label: int) -> Floats:
    """One amount of a class by slot."""
    if sheet.limb.any():
        classes = max(int(sheet.label.max(initial=-1)), label) + 1
        return sheet.table(amount, classes)[:, label]
    here, out = sheet.label == label, np.zeros(len(sheet.slots))
    out[sheet.slot[here]] = sheet.amount[here, sheet.amounts.index(amount)]
    return out


def _whole(sheet: Sheet, label: int) -> dict[str, Amounts]:
    """Slot to amounts of one class, where all are whole; equal amounts are one object, since most words are rare."""
    here = sheet.label == label
    names = map(sheet.slot_names.__getitem__, sheet.slot[here].tolist())
    seen: dict[tuple[int, ...], tuple[int, ...]] = {}
    return {name: seen.setdefault(t, t) for name, t in zip(names, map(tuple, sheet.amount[here].tolist()), strict=True)}


def _exact(sheet: Sheet, label: int) -> dict[str, Amounts]:
    """The same where there are fractions or very large numbers, limb by limb."""
    out: dict[str, Amounts] = {}
    here = sheet.label == label
    entries = zip(sheet.slot[here].tolist(), sheet.limb[here].tolist(), sheet.amount[here].tolist(), strict=True)
    for number, limb, amounts in entries:
        unit: Any = 1 << (32 * limb) if limb >= 0 else Fraction(1, 1 << (-32 * limb))
        slot = sheet.slot_names[number]
        before = out.get(slot, (0,) * len(amounts))
        out[slot] = tuple(b + a * unit for b, a in zip(before, amounts, strict=True))
    return out


def _fullest(column: Any, names: Sequence[str]) -> list[tuple[str, float]]:
    top = np.argpartition(column, -_TOP)[-_TOP:] if len(column) > _TOP else np.arange(len(column))
    top = top[np.argsort(-column[top], kind="stable")]
    return [(names[i], n) for i, n in zip(top.tolist(), column[top].tolist(), strict=True)]
