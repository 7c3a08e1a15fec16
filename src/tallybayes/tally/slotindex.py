"""A sheet that answers for one slot at a time, as fast for many slots as for few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..exact.counts import Counts
from ..exact.sheet import Sheet
from .guard import ROWS

_TOP = 1000  # of the fullest slots of a class are known by name

Amounts = Sequence[Any]  # exact: whole numbers, or fractions of them

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
