"""A sheet that answers for one slot at a time, as fast for many slots as for few."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from .counts import Counts, Sheet
from .possible import ROWS

_TOP = 1000  # of the fullest slots of a class are known by name

Amounts = Sequence[Any]  # exact: whole numbers, or fractions of them


def slot_index(counts: Counts, sheet: str) -> SlotIndex:
    """The index of a sheet, made once."""
    return counts.once(("index", sheet), lambda: SlotIndex(counts.sheet(sheet, ROWS)))


class SlotIndex:
    """The exact amounts under a slot and class, the sums of each class, and its fullest slots."""

    def __init__(self, sheet: Sheet) -> None:
        self.amounts, self._none = sheet.amounts, (0,) * len(sheet.amounts)
        self._classes = int(sheet.label.max(initial=-1)) + 1
        self._held: list[dict[str, Amounts]] = (
            _exact(sheet, self._classes) if sheet.limb.any() else [_whole(sheet, y) for y in range(self._classes)]
        )
        self.how_often = sheet.amounts.index("documents") if "documents" in sheet.amounts else 0
        table = sheet.table(sheet.amounts[self.how_often], self._classes)
        self._sums = table.sum(axis=0).tolist()
        self._fullest = [_fullest(column, sheet.slot_names) for column in table.T]
        self._slots = len(table)

    def of(self, label: int) -> Mapping[str, Amounts]:
        """The exact amounts of a class by slot; slots that hold nothing may be absent."""
        return self._held[label] if label < self._classes else {}

    def at(self, slot: str, label: int) -> Amounts:
        """The exact amounts under a slot and class."""
        return self.of(label).get(slot, self._none)

    def sum(self, label: int) -> float:
        """How many values a class has, over all slots."""
        return float(self._sums[label]) if label < self._classes else 0.0

    def fullest(self, label: int) -> tuple[list[tuple[str, float]], bool]:
        """The slots that most rows of a class have, the fullest first, and whether these are all."""
        return (self._fullest[label] if label < self._classes else []), self._slots <= _TOP


def _whole(sheet: Sheet, label: int) -> dict[str, Amounts]:
    """Slot to amounts of one class, where all are whole; equal amounts are one object, since most words are rare."""
    here = sheet.label == label
    names = map(sheet.slot_names.__getitem__, sheet.slot[here].tolist())
    seen: dict[tuple[int, ...], tuple[int, ...]] = {}
    return {name: seen.setdefault(t, t) for name, t in zip(names, map(tuple, sheet.amount[here].tolist()), strict=True)}


def _exact(sheet: Sheet, classes: int) -> list[dict[str, Amounts]]:
    """The same where there are fractions or very large numbers, limb by limb."""
    out: list[dict[str, Amounts]] = [{} for _ in range(classes)]
    entries = zip(sheet.slot.tolist(), sheet.limb.tolist(), sheet.label.tolist(), sheet.amount.tolist(), strict=True)
    for number, limb, label, amounts in entries:
        unit: Any = 1 << (32 * limb) if limb >= 0 else Fraction(1, 1 << (-32 * limb))
        slot = sheet.slot_names[number]
        before = out[label].get(slot, (0,) * len(amounts))
        out[label][slot] = tuple(b + a * unit for b, a in zip(before, amounts, strict=True))
    return out


def _fullest(column: Any, names: Sequence[str]) -> list[tuple[str, float]]:
    top = np.argpartition(column, -_TOP)[-_TOP:] if len(column) > _TOP else np.arange(len(column))
    top = top[np.argsort(-column[top], kind="stable")]
    return [(names[i], n) for i, n in zip(top.tolist(), column[top].tolist(), strict=True)]
