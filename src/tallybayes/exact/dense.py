"""The sheet of a large matrix of counts, kept as the table in which it was summed.

What is seen from outside is a `Sheet` like any other. Its entries, a few million of them, are listed when somebody
asks: estimating a model reads the table, only adding to other sheets, comparing and saving need the list.

The sheet of a matrix of numbers, kept as the limbs in which it was summed.

What is seen from outside is a `Sheet` like any other. Its entries are listed when somebody asks: adding such sheets up
and estimating a model read the limbs, comparing and saving need the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property, lru_cache

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


class BagSheet(Sheet):
    """Σ of the amounts and how many rows have one, by class and name: `entries.bag_sums` in the form of a sheet."""

    def __init__(self, amounts: tuple[str, str], names: Sequence[str], sums: BagSums, rows: Ints, label: Index) -> None:
        known = {"amounts": amounts, "names": names, "rows": rows, "own": label}
        self.__dict__.update(known, sums=sums.table, totals=sums.totals)  # a sheet is frozen

    names: Sequence[str]
    sums: Ints  # classes × names: the amounts in the upper 32 bits, how many in the lower
    totals: Ints  # classes × 2: the same over all names, apart
    rows: Ints  # how many rows each class has: no name is in more
    own: Index  # the number of each class

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
        tables = [self, *(s for s in others if isinstance(s, BagSheet) and s.names is self.names)]
        rows = sum(s.rows for s in tables)
        if len(tables) <= len(others) or not all(np.array_equal(s.own, self.own) for s in tables):
            return None
        if sum(int((s.sums >> 32).max(initial=0)) for s in tables) >= 1 << 31:
            return None
        total = BagSums(np.sum([s.sums for s in tables], axis=0), np.sum([s.totals for s in tables], axis=0))
        return BagSheet(self.amounts, self.names, total, rows, self.own)  # type: ignore[arg-type]

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
    def _listed(self) -> tuple[pa.Array, Index, Index, Ints]:
        """Slots, and slot, class and amounts of each entry in the order of a sheet."""
        order = np.argsort(self.own)
        name, row = np.nonzero(self.sums[order].T)
        both = self.sums[order[row], name]
        used = np.zeros(len(self.names), dtype=bool)
        used[name] = True
        slots = slot_texts(self.names).filter(pa.array(used))
        return slots, (np.cumsum(used) - 1)[name], self.own[order][row], np.stack([both >> 32, both & _ONES], axis=1)

    @cached_property
    def slots(self) -> pa.Array:
        """The names that have an entry."""
        return self._listed[0]

    @cached_property
    def slot(self) -> Index:
        """Per entry: which slot."""
        return self._listed[1]

    @cached_property
    def limb(self) -> Index:
        """Per entry: zero, the numbers are small."""
        return np.zeros_like(self.slot)

    @cached_property
    def label(self) -> Index:
        """Per entry: which class."""
        return self._listed[2]

    @cached_property
    def amount(self) -> Ints:
        """Entries × amounts."""
        return self._listed[3]


class MomentSheet(Sheet):
    """Exact sums by position and class: group position · (how many classes) + class."""

    def __init__(self, amounts: tuple[str, ...], names: Sequence[str], sums: Sequence[Limbs], label: Index) -> None:
        known = {"amounts": amounts, "names": names, "sums": [canonical(f) for f in sums], "own": label}
        self.__dict__.update(known)  # a sheet is frozen

    names: Sequence[str]
    sums: Sequence[Limbs]  # of each amount
    own: Index  # the number of each class

    def __len__(self) -> int:
        return len(self._listed)

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
        sheets = [self, *(s for s in others if isinstance(s, MomentSheet) and s.names is self.names)]
        if len(sheets) <= len(others) or not all(np.array_equal(s.own, self.own) for s in sheets):
            return None
        sums = [canonical(add_limbs(each)) for each in zip(*(s.sums for s in sheets), strict=True)]
        return MomentSheet(self.amounts, self.names, sums, self.own)

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
    def _listed(self) -> Sheet:
        """The same sheet entry by entry."""
        order = np.argsort(self.own)
        turned = (self._of_classes(f, order) for f in self.sums)
        listed = Sheet.dense(self.names, len(order), dict(zip(self.amounts, turned, strict=True)))
        return listed.relabel(self.own[order])

    @cached_property
    def slots(self) -> pa.Array:
        """The positions that have an entry."""
        return self._listed.slots

    @cached_property
    def slot(self) -> Index:
        """Per entry: which slot."""
        return self._listed.slot

    @cached_property
    def limb(self) -> Index:
        """Per entry: which power of 2^32."""
        return self._listed.limb

    @cached_property
    def label(self) -> Index:
        """Per entry: which class."""
        return self._listed.label

    @cached_property
    def amount(self) -> Ints:
        """Entries × amounts."""
        return self._listed.amount

    @cached_property
    def slot_names(self) -> list[str]:
        """The slots as Python strings."""
        return [self.names[i] for i in np.flatnonzero(self._there.any(axis=1)).tolist()]
