"""A sparse table of exact integers, slots × classes: the only file that adds.

An entry is keyed by slot (a text), limb (see `limbs`) and class, and holds one int64 per amount. A sheet is a value:
every operation returns a new one, equal numbers have equal entries, and entries that are all zero do not exist. So
sheets form a commutative group under `add_sheets` in which `==` means equal, not close.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base.arrays import Bools, Floats, Ints, Objects
from ..base.arrow import array, numpy_of, sorted_order
from ..base.records import Record
from .limbs import Limbs, canonical, to_float, whole_numbers

Index = Ints
_SPARSE = 4  # a full table of up to so many places per entry is faster to add up than to sort


@dataclass(frozen=True, eq=False)
class Sheet(Record):
    """Exact integers by (slot, limb, class): sorted by that key, unique, never all zero.

    The slots stand in any order; `in_order` is the same sheet with them sorted, which comparing and saving need.
    """

    amounts: tuple[str, ...]  # the names of the amounts, e.g. ("n",) or ("n", "x", "xx")
    slots: pa.Array  # strings, each once and with at least one entry
    slot: Index  # per entry: which slot
    limb: Index  # per entry: which power of 2^32
    label: Index  # per entry: which class
    amount: Ints  # entries × amounts

    @classmethod
    def empty(cls, amounts: tuple[str, ...]) -> Sheet:
        """The zero of a sheet with these amounts."""
        none = np.zeros(0, dtype=np.int64)
        return cls(amounts, array([], pa.string()), none, none, none, np.zeros((0, len(amounts)), dtype=np.int64))

    @classmethod
    def dense(cls, slots: Sequence[str] | pa.Array, n_labels: int, amounts: Mapping[str, Limbs]) -> Sheet:
        """The sheet of a full table: group number slot · n_labels + label holds each amount."""
        slots = slots if isinstance(slots, pa.Array) else array(slots, pa.string())
        carried = [canonical(exact) for exact in amounts.values()]
        lowest = min(exact.lowest for exact in carried)
        width = max(exact.lowest + exact.array.shape[1] for exact in carried) - lowest
        full = np.zeros((len(slots), width, n_labels, len(amounts)), dtype=np.int64)
        for position, exact in enumerate(carried):
            start = exact.lowest - lowest
            table = exact.array.reshape(len(slots), n_labels, exact.array.shape[1])
            full[:, start : start + table.shape[2], :, position] = table.transpose(0, 2, 1)
        flat = full.reshape(-1, len(amounts))
        entry = np.flatnonzero(flat.any(axis=1) if len(amounts) > 1 else flat)  # in the order of the sheet's keys
        group, label = np.divmod(entry, n_labels)
        slot, limb = np.divmod(group, width)
        slots, slot = _used(slots, slot)
        return cls(tuple(amounts), slots, slot, limb + lowest, label, flat[entry])

    @classmethod
    def of_entries(
        cls, amounts: tuple[str, ...], slots: pa.Array, slot: Index, limb: Index, label: Index, amount: Ints
    ) -> Sheet:
        """The sheet of any list of entries: in any order, keys more than once, limbs not carried, zeros among them."""
        return _collect(amounts, slots, slot, limb, label, amount)

    @classmethod
    def sorted(cls, amounts: tuple[str, ...], slots: pa.Array, slot: Index, label: Index, amount: Ints) -> Sheet:
        """The same of entries that are sorted by slot and class, none twice, no slot without any."""
        limb = np.zeros_like(slot)
        if amount.min(initial=1) > 0 and amount.max(initial=1) >> 32 == 0:  # nothing to be left out or carried
            return cls(amounts, slots, slot, limb, label, amount)
        return _collect(amounts, slots, slot, limb, label, amount)

    def __len__(self) -> int:
        return len(self.slot)

    def __bool__(self) -> bool:
        """Whether there is any entry, which may be known before they are listed."""
        return len(self) > 0

    def __neg__(self) -> Sheet:
        return Sheet(self.amounts, self.slots, self.slot, self.limb, self.label, -self.amount)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sheet):
            return NotImplemented
        if self.amounts != other.amounts or len(self) != len(other) or len(self.slots) != len(other.slots):
            return False
        a, b = self.in_order, other.in_order
        return bool(a.slots.equals(b.slots)) and all(
            np.array_equal(x, y)
            for x, y in ((a.slot, b.slot), (a.limb, b.limb), (a.label, b.label), (a.amount, b.amount))
        )

    __hash__ = None  # type: ignore[assignment]  # a sheet may be as large as the data's vocabulary

    @cached_property
    def order(self) -> Index:
        """The numbers of the slots in the order of their names."""
        out: Index = sorted_order(self.slots)
        return out

    @cached_property
    def in_order(self) -> Sheet:
        """The same entries with the slots sorted."""
        order = self.order
        if bool(np.all(order[1:] > order[:-1])):
            return self
        new = np.empty(len(order), dtype=np.int64)
        new[order] = np.arange(len(order))
        slot = new[self.slot]
        by_slot = np.argsort(slot, kind="stable")  # stable: limb and class keep their order within a slot
        return Sheet(
            self.amounts,
            self.slots.take(array(order)),
            slot[by_slot],
            self.limb[by_slot],
            self.label[by_slot],
            self.amount[by_slot],
        )

    def relabel(self, new: Index) -> Sheet:
        """The same entries with class i renumbered to new[i]; the numbering must keep its order."""
        return Sheet(self.amounts, self.slots, self.slot, self.limb, new[self.label], self.amount)

    def regroup(self, new: Index) -> Sheet:
        """The same entries with class i put into new[i], left out where that is −1; classes put together are added."""
        label = new[self.label]
        kept = label >= 0
        places = new[new >= 0]
        if bool(np.all(places[1:] > places[:-1])):  # classes leave and none are put together: nothing is to be added
            return self.only(kept).relabel(new)
        return _collect(self.amounts, self.slots, self.slot[kept], self.limb[kept], label[kept], self.amount[kept])

    def rename(self, new: Callable[[str], str]) -> Sheet:
        """The same entries with every slot called otherwise; slots that get one name are added."""
        names = list(map(new, self.slot_names))
        number = {name: i for i, name in enumerate(dict.fromkeys(names))}
        slot = np.array([number[name] for name in names], dtype=np.int64)[self.slot]
        return _collect(self.amounts, array(list(number), pa.string()), slot, self.limb, self.label, self.amount)

    def halved(self, times: int, but: Sequence[str] = ()) -> Sheet:
        """Every amount times 2^−times, those named in `but` as they are: bits move, limbs below one take them, exactly.

        >>> sheet = Sheet.sorted(("n",), array(["a"], pa.string()), *np.array([[0], [0]]), np.array([[3]]))
        >>> sheet.halved(1).table("n", 1).tolist(), sheet.halved(40).halved(-40) == sheet
        ([[1.5]], True)
        """
        down = -(-times // 32)  # whole limbs; the rest of the way is back up, by fewer than 32 bits
        moved = np.array([name not in but for name in self.amounts])
        entries = [(self.limb - down, (self.amount << (32 * down - times)) * moved)]
        if not moved.all():
            entries.append((self.limb, self.amount * ~moved))
        limb, amount = (np.concatenate(each) for each in zip(*entries, strict=True))
        slot, label = (np.tile(each, len(entries)) for each in (self.slot, self.label))
        return _collect(self.amounts, self.slots, slot, limb, label, amount)

    def only(self, kept: Bools) -> Sheet:
        """The sheet of some of its entries."""
        if kept.all():
            return self
        slots, slot = _used(self.slots, self.slot[kept])
        return Sheet(self.amounts, slots, slot, self.limb[kept], self.label[kept], self.amount[kept])

    def by_slot(self, amount: str) -> Floats:
        """One amount of each slot, all classes together."""
        value = np.ldexp(self.amount[:, self.amounts.index(amount)].astype(np.float64), 32 * self.limb)
        return np.asarray(np.bincount(self.slot, value, minlength=len(self.slots)), dtype=np.float64)

    def limbs(self, amount: str, n_labels: int) -> Limbs:
        """One amount as a full table of exact numbers: group slot · n_labels + label."""
        groups = len(self.slots) * n_labels
        if len(self) == 0:
            return Limbs(0, np.zeros((groups, 1), dtype=np.int64))
        lowest, highest = int(self.limb.min()), int(self.limb.max())
        table = np.zeros((groups, highest - lowest + 1), dtype=np.int64)
        column = self.amounts.index(amount)
        table[self.slot * n_labels + self.label, self.limb - lowest] = self.amount[:, column]
        return Limbs(lowest, table, True)

    def table(self, amount: str, n_labels: int) -> Floats:
        """One amount as floats, slots × classes."""
        return self.table_at(amount, n_labels, np.arange(len(self.slots)), len(self.slots))

    def table_at(self, amount: str, n_labels: int, at: Index, rows: int) -> Floats:
        """One amount as floats, rows × classes: slot i in row at[i], left out where that is −1."""
        kept = slice(None) if len(at) == 0 or at.min() >= 0 else at >= 0
        out = np.zeros((rows, n_labels))
        if self.limb.any():
            out[at[kept]] = to_float(self.limbs(amount, n_labels)).reshape(len(self.slots), n_labels)[kept]
            return out
        place = at[self.slot] * n_labels + self.label  # plain whole numbers
        value = self.amount[:, self.amounts.index(amount)]
        some = slice(None) if isinstance(kept, slice) else place >= 0
        out.reshape(-1)[place[some]] = value[some]
        return out

    def exact(self, amount: str, n_labels: int) -> tuple[Objects, int]:
        """One amount as Python integers v (slots × classes) and an exponent e: each number is v · 2^e."""
        values, exponent = whole_numbers(self.limbs(amount, n_labels))
        return values.reshape(len(self.slots), n_labels), exponent

    @cached_property
    def slot_names(self) -> list[str]:
        """The slots as Python strings."""
        names: list[str] = self.slots.to_pylist()
        return names

    @cached_property
    def slot_numbers(self) -> dict[str, int]:
        """The number of each slot."""
        return dict(zip(self.slot_names, range(len(self.slots)), strict=True))

    def classes(self) -> Iterable[int]:
        """The numbers of the classes that have any entry."""
        out: list[int] = np.flatnonzero(np.bincount(self.label)).tolist()
        return out

    def within(self, amount: str, most: Floats) -> bool:
        """Whether an amount is nowhere above that of its class; False also where that is not plain to see."""
        values = self.amount[:, self.amounts.index(amount)]
        return not self.limb.any() and bool((values <= most[self.label]).all())

    def plus(self, others: Sequence[Sheet]) -> Sheet | None:
        """The sum with other sheets where there is a shorter way than `add_sheets` has; else None."""
        return None

    def negative(self, amounts: Iterable[str]) -> tuple[str, int, str] | None:
        """The first (slot, class number, amount) below zero, or None. Canonical limbs make the sign visible."""
        for name in amounts:
            below = np.flatnonzero(self.amount[:, self.amounts.index(name)] < 0)
            if len(below):
                entry = int(below[0])
                return str(self.slots[int(self.slot[entry])].as_py()), int(self.label[entry]), name
        return None

    def content(self) -> Iterator[bytes]:
        """The logical content as bytes, the same on every machine: what the digest is taken of."""
        sheet = self.in_order
        for text in (*sheet.amounts, ""):
            raw = text.encode()
            yield struct.pack("<q", len(raw)) + raw
        yield with_lengths(sheet.slots)
        for numbers in (sheet.slot, sheet.limb, sheet.label, sheet.amount):
            yield struct.pack("<q", numbers.size) + np.ascontiguousarray(numbers, dtype="<i8").tobytes()


def with_lengths(texts: pa.Array) -> bytes:
    """The texts in UTF-8 one after another, each after its length in eight bytes.

    >>> with_lengths(array(["a", "é"], pa.string())).hex(" ", -8)
    '0100000000000000 6102000000000000 00c3a9'
    """
    if len(texts) == 0:
        return b""
    texts = texts.cast(pa.large_string())
    ends = np.frombuffer(texts.buffers()[1], dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    data = np.frombuffer(texts.buffers()[2] or b"", dtype=np.uint8)[ends[0] : ends[-1]]
    places = (ends[:-1] - ends[0] + 8 * np.arange(len(texts)))[:, None] + np.arange(8)
    out = np.empty(8 * len(texts) + len(data), dtype=np.uint8)
    is_text = np.ones(len(out), dtype=bool)
    is_text[places] = False
    out[places] = np.diff(ends).astype("<i8").view(np.uint8).reshape(-1, 8)
    out[is_text] = data
    return out.tobytes()


def add_sheets(sheets: Sequence[Sheet]) -> Sheet:
    """The sum of one or more sheets of the same amounts."""
    sheets = [s for s in sheets if s] or list(sheets[:1])
    if len(sheets) == 1:
        return sheets[0]
    first = sheets[0]
    if (short := first.plus(sheets[1:])) is not None:
        return short
    if all(s.slots.equals(first.slots) for s in sheets[1:]):
        slots, numbers = first.slots, [s.slot for s in sheets]
    else:
        slots, numbers = _all_slots(sheets)
    dense = _add_dense(slots, numbers, sheets)
    if dense is not None:
        return dense
    return _collect(
        first.amounts,
        slots,
        np.concatenate(numbers),
        np.concatenate([s.limb for s in sheets]),
        np.concatenate([s.label for s in sheets]),
        np.concatenate([s.amount for s in sheets]),
    )


def _all_slots(sheets: Sequence[Sheet]) -> tuple[pa.Array, list[Index]]:
    """The slots of all sheets, those of the first first, and for each sheet the numbers of its entries among them."""
    first, others = sheets[0].slots, [s.slots for s in sheets[1:]]
    rest = others[0] if len(others) == 1 else pc.unique(pa.concat_arrays(others))
    at = numpy_of(pc.index_in(rest, value_set=first).fill_null(-1)).astype(np.int64)
    new = at < 0
    at[new] = np.arange(len(first), len(first) + np.count_nonzero(new))
    places = [at] if len(others) == 1 else [at[numpy_of(pc.index_in(o, value_set=rest))] for o in others]
    numbers = [place[s.slot] for place, s in zip(places, sheets[1:], strict=True)]
    return pa.concat_arrays([first, rest.filter(array(new))]), [sheets[0].slot, *numbers]


def _add_dense(slots: pa.Array, numbers: Sequence[Index], sheets: Sequence[Sheet]) -> Sheet | None:
    """The sum by way of a full table, where the sheets fill a fair part of one: no sorting. None where they do not."""
    lowest = min(int(s.limb.min()) for s in sheets)
    width = max(int(s.limb.max()) for s in sheets) - lowest + 1
    n_labels = max(int(s.label.max()) for s in sheets) + 1
    shape = (len(slots), width, n_labels, len(sheets[0].amounts))
    if len(slots) * width * n_labels > _SPARSE * sum(len(s) for s in sheets):
        return None
    table = np.zeros(shape, dtype=np.int64)
    for number, sheet in zip(numbers, sheets, strict=True):
        table[number, sheet.limb - lowest, sheet.label] += sheet.amount  # the keys of one sheet are all different
    by_group = table.transpose(3, 0, 2, 1).reshape(shape[3], len(slots) * n_labels, width)
    amounts = {a: Limbs(lowest, t) for a, t in zip(sheets[0].amounts, by_group, strict=True)}
    return Sheet.dense(slots, n_labels, amounts)


def _used(slots: pa.Array, slot: Index) -> tuple[pa.Array, Index]:
    """The slots that have an entry, and the entries' numbers among those."""
    used = np.zeros(len(slots), dtype=bool)
    used[slot] = True
    if used.all():
        return slots, slot
    return slots.filter(pa.array(used)), (np.cumsum(used) - 1)[slot]


def _collect(amounts: tuple[str, ...], slots: pa.Array, slot: Index, limb: Index, label: Index, amount: Ints) -> Sheet:
    """Sort by key, add equal keys, carry, drop zeros and unused slots: the sheet of any list of entries."""
    if len(slot) == 0:
        return Sheet.empty(amounts)
    lowest = int(limb.min())
    width = int(limb.max()) - lowest + 1
    n_labels = int(label.max()) + 1
    key = (slot * width + (limb - lowest)) * n_labels + label
    if not bool(np.all(key[1:] > key[:-1])):
        order = np.argsort(key, kind="stable")
        key, amount = key[order], amount[order]
        starts = np.flatnonzero(np.concatenate(([True], key[1:] != key[:-1])))
        amount, first = np.add.reduceat(amount, starts, axis=0), order[starts]
        slot, limb, label = slot[first], limb[first], label[first]
    if (width > 1 and int(amount.min()) < 0) or int(np.abs(amount).max()) >> 32:  # else the limbs are canonical already
        slot, limb, label, amount = _carried(slot, limb, label, amount)
    kept = amount.any(axis=1)
    if not kept.all():
        slot, limb, label, amount = slot[kept], limb[kept], label[kept], amount[kept]
    slots, slot = _used(slots, slot)
    return Sheet(amounts, slots, slot, limb, label, amount)


def _carried(slot: Index, limb: Index, label: Index, amount: Ints) -> tuple[Index, Index, Index, Ints]:
    """The entries in canonical limbs (see `limbs.canonical`)."""
    n_labels = int(label.max()) + 1
    group, inverse = np.unique(slot * n_labels + label, return_inverse=True)
    lowest = int(limb.min())
    whole = []
    for column in range(amount.shape[1]):
        table = np.zeros((len(group), int(limb.max()) - lowest + 1), dtype=np.int64)
        table[inverse, limb - lowest] = amount[:, column]
        whole.append(canonical(Limbs(lowest, table)))
    bottom = min(w.lowest for w in whole)
    top = max(w.lowest + w.array.shape[1] for w in whole)
    full = np.zeros((len(group), top - bottom, amount.shape[1]), dtype=np.int64)
    for column, w in enumerate(whole):
        full[:, w.lowest - bottom : w.lowest - bottom + w.array.shape[1], column] = w.array
    row, place = np.nonzero(full.any(axis=2))
    # nonzero runs group by group; the sheet's order is slot, limb, class
    order = np.lexsort((group[row] % n_labels, place, group[row] // n_labels))
    row, place = row[order], place[order]
    return group[row] // n_labels, place + bottom, group[row] % n_labels, full[row, place]
