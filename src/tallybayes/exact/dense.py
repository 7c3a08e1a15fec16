"""Sheets of large matrices, kept as the tables in which they were summed.

What is seen from outside is a `Sheet` like any other. Its entries, a few million of them, are listed when somebody
asks: estimating a model and adding such sheets up read the table, only comparing and saving need the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa

from ..base.arrays import Bools, Floats, Ints
from ..base.arrow import array
from .entries import BagSums, bag_table
from .limbs import Limbs, add_limbs, canonical
from .sheet import Index, Sheet

_ONES = 0xFFFFFFFF


@lru_cache(maxsize=8)
def positions(width: int) -> tuple[str, ...]:
    """The slots of a matrix: "0", "1", …; always the same object, so that what was looked up for it can be kept."""
    return tuple(map(str, range(width)))


def slot_texts(slots: Sequence[str]) -> pa.Array:
    """Slots for Arrow; the positions of a matrix are put into that form once."""
    known = isinstance(slots, tuple) and slots is positions(len(slots))
    return _position_texts(len(slots)) if known else array(slots, pa.string())


@lru_cache(maxsize=8)
def _position_texts(width: int) -> pa.Array:
    return array(positions(width), pa.string())


def _of_list(field: str) -> Any:
    return property(lambda self: getattr(self.listed, field))


class DenseSheet(Sheet):
    """A sheet that is a table of names × classes; `listed` is the same one entry by entry."""

    names: Sequence[str]
    own: Index  # the number of each class
    slots, slot, limb, label, amount = map(_of_list, ("slots", "slot", "limb", "label", "amount"))

    @cached_property
    def listed(self) -> Sheet:
        """The entries in the order of a sheet."""
        raise NotImplementedError

    def alike(self, others: Sequence[Sheet]) -> list[Any]:
        """This sheet and the others, if all are of one form, of the same names and classes; else none."""
        same = [
            s for s in others if type(s) is type(self) and s.names is self.names and np.array_equal(s.own, self.own)
        ]
        return [self, *same] if len(same) == len(others) else []


class BagSheet(DenseSheet):
    """Σ of the amounts and how many rows have one, by class and name: `entries.bag_sums` in the form of a sheet."""

    def __init__(self, amounts: tuple[str, str], names: Sequence[str], sums: BagSums, rows: Ints, label: Index) -> None:
        known = {"amounts": amounts, "names": names, "rows": rows, "own": label}
        self.__dict__.update(known, sums=sums.table, totals=sums.totals)  # a sheet is frozen

    sums: Ints  # classes × names: the amounts in the upper 32 bits, how many in the lower
    totals: Ints  # classes × 2: the same over all names, apart
    rows: Ints  # how many rows each class has: no name is in more

    def __len__(self) -> int:
        return self._entries

    @cached_property
    def _entries(self) -> int:
        return int(np.count_nonzero(self.sums))

    def relabel(self, new: Index) -> Sheet:
        """The same sums with class i renumbered to new[i]."""
        sums = BagSums(self.sums, self.totals)
        return BagSheet(self.amounts, self.names, sums, self.rows, new[self.own])  # type: ignore[arg-type]

    def classes(self) -> Iterable[int]:
        """The numbers of the classes that have any entry."""
        out: list[int] = self.own[self.totals[:, 1] > 0].tolist()
        return out

    def negative(self, amounts: Iterable[str]) -> tuple[str, int, str] | None:
        """None: rows were added, none was taken away."""
        return None

    def within(self, amount: str, most: Floats) -> bool:
        """Whether an amount is nowhere above that of its class."""
        seen = amount == self.amounts[1] and bool((self.rows <= most[self.own]).all())
        return seen or super().within(amount, most)

    def plus(self, others: Sequence[Sheet]) -> Sheet | None:
        """The sum, if the others are such sheets of the same names and classes and no sum can grow out of its place."""
        sheets = self.alike(others)
        if not sheets or sum(int((s.sums >> 32).max(initial=0)) for s in sheets) >= 1 << 31:
            return None
        table, totals, rows = (
            np.sum([getattr(s, what) for s in sheets], axis=0) for what in ("sums", "totals", "rows")
        )
        return BagSheet(self.amounts, self.names, BagSums(table, totals), rows, self.own)  # type: ignore[arg-type]

    def table_by(self, amount: str, n_labels: int, at: Index, rows: int) -> Floats:
        """One amount as floats, rows × classes: name i in row at[i]."""
        return bag_table(self.sums, amount == self.amounts[1], at, self.own, np.zeros((rows, n_labels)))

    def total_by(self, amount: str, n_labels: int) -> Floats | None:
        """One amount over all names, by class; None where a class is not in the sheet."""
        if len(self.own) != n_labels:
            return None
        out = np.empty(n_labels)
        out[self.own] = self.totals[:, self.amounts.index(amount)]
        return out

    def shares_by(self, amount: str, at: Index, more: float, total: Floats) -> Floats:
        """(n + more) / total of the class, names × classes: name i in row at[i]."""
        out = np.empty((len(at), len(total)))
        return bag_table(self.sums, amount == self.amounts[1], at, self.own, out, more, total[self.own])

    @cached_property
    def listed(self) -> Sheet:
        """The entries in the order of a sheet, all of them small."""
        order = np.argsort(self.own)
        name, row = np.nonzero(self.sums[order].T)
        both = self.sums[order[row], name]
        used = np.zeros(len(self.names), dtype=bool)
        used[name] = True
        slots, slot = slot_texts(self.names).filter(pa.array(used)), (np.cumsum(used) - 1)[name]
        amount = np.stack([both >> 32, both & _ONES], axis=1)
        return Sheet(self.amounts, slots, slot, np.zeros_like(slot), self.own[order][row], amount)


class MomentSheet(DenseSheet):
    """Exact sums by position and class: group position · (how many classes) + class."""

    def __init__(self, amounts: tuple[str, ...], names: Sequence[str], sums: Sequence[Limbs], label: Index) -> None:
        known = {"amounts": amounts, "names": names, "sums": [canonical(f) for f in sums], "own": label}
        self.__dict__.update(known)  # a sheet is frozen

    sums: Sequence[Limbs]  # of each amount

    def __len__(self) -> int:
        return len(self.listed)

    @cached_property
    def _there(self) -> Bools:
        """Which positions × classes have any entry."""
        some = np.any([f.array.any(axis=1) for f in self.sums], axis=0)
        return np.asarray(some).reshape(len(self.names), len(self.own))

    def __bool__(self) -> bool:
        return bool(self._there.any())

    def relabel(self, new: Index) -> Sheet:
        """The same sums with class i renumbered to new[i]; one without an entry is left out where that is −1."""
        own = new[self.own]
        kept = own >= 0
        sums = self.sums if kept.all() else [self._of_classes(f, np.flatnonzero(kept)) for f in self.sums]
        return MomentSheet(self.amounts, self.names, sums, own[kept])

    def _of_classes(self, sums: Limbs, which: Index) -> Limbs:
        """The limbs of some of the classes, in the order in which they are given."""
        width = sums.array.shape[1]
        table = sums.array.reshape(len(self.names), len(self.own), width)
        return Limbs(sums.lowest, table[:, which].reshape(len(self.names) * len(which), width), True)

    def classes(self) -> Iterable[int]:
        """The numbers of the classes that have any entry."""
        out: list[int] = self.own[self._there.any(axis=0)].tolist()
        return out

    def negative(self, amounts: Iterable[str]) -> tuple[str, int, str] | None:
        """The first (slot, class number, amount) below zero, or None."""
        below = (a for a in amounts if (self.sums[self.amounts.index(a)].array < 0).any())
        return super().negative(below)

    def within(self, amount: str, most: Floats) -> bool:
        """Whether an amount is nowhere above that of its class; False also where that is not plain to see."""
        sums = self.sums[self.amounts.index(amount)]
        plain = sums.lowest == 0 and sums.array.shape[1] == 1
        return plain and bool((sums.array.reshape(len(self.names), len(self.own)) <= most[self.own]).all())

    def plus(self, others: Sequence[Sheet]) -> Sheet | None:
        """The sum, if the others are such sheets of the same names and classes."""
        sums = [canonical(add_limbs(each)) for each in zip(*(s.sums for s in self.alike(others)), strict=True)]
        return MomentSheet(self.amounts, self.names, sums, self.own) if sums else None

    def limbs(self, amount: str, n_labels: int) -> Limbs:
        """One amount as a full table of exact numbers: group slot · n_labels + label."""
        used = np.flatnonzero(self._there.any(axis=1))
        sums = self.sums[self.amounts.index(amount)]
        if len(used) == len(self.names) and np.array_equal(self.own, np.arange(n_labels)):
            return sums
        width = sums.array.shape[1]
        out = np.zeros((len(used), n_labels, width), dtype=np.int64)
        out[:, self.own] = sums.array.reshape(len(self.names), len(self.own), width)[used]
        return Limbs(sums.lowest, out.reshape(-1, width), True)

    @cached_property
    def listed(self) -> Sheet:
        """The entries in the order of a sheet."""
        order = np.argsort(self.own)
        turned = (self._of_classes(f, order) for f in self.sums)
        listed = Sheet.dense(self.names, len(order), dict(zip(self.amounts, turned, strict=True)))
        return listed.relabel(self.own[order])

    @cached_property
    def slot_names(self) -> list[str]:
        """The slots as Python strings."""
        return [self.names[i] for i in np.flatnonzero(self._there.any(axis=1)).tolist()]
