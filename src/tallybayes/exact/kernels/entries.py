"""The entries of sparse matrices, added up by class."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiling import INDICES, helper, lazy
from .llvm import prefetch

STRIP = 1 << 15  # entries that are looked at together: their changes, 128 kB, stay in a near cache
_AHEAD = 8  # rows that are asked for before they are read, where they are not neighbours
_ONE = np.uint64(1)
_EIGHT = np.uint64(8)  # numbers of eight bytes: a line of the cache
_TWO_52 = float(1 << 52)  # above it float64 has whole numbers only, and a number's bits count up with it
_TWO_52_BITS = int(np.float64(_TWO_52).view(np.int64))


@helper
def _changes(amounts: Any, shift: int, out: Any) -> Any:
    """What each amount adds to its cell, (amount << shift) + 1. Returns bits, and the largest amount less one or more.

    The bits are zero if every amount is a whole number below 2^52; one that is negative, zero, NaN or larger makes the
    second number negative or larger than 2^52. Nothing branches: the compiler takes eight amounts at a time.
    """
    wrong, large = np.int64(0), np.int64(0)
    for e in range(amounts.shape[0]):
        v = amounts[e]
        raised = v + _TWO_52
        k = np.float64(raised).view(np.int64) - _TWO_52_BITS
        wrong |= np.float64(raised - _TWO_52).view(np.int64) ^ np.float64(v).view(np.int64)
        large |= k - 1
        out[e] = (k << shift) + 1
    return wrong, large


@helper
def _outside(slots: Any, width: int) -> Any:
    """A negative number if any slot is below 0 or not below `width`."""
    bits = np.int64(0)
    for e in range(slots.shape[0]):
        bits |= slots[e] | (width - 1 - slots[e])
    return bits


@helper
def _falls(slots: Any) -> Any:
    """How often a slot is not above the one before it."""
    count = np.int64(0)
    for e in range(1, slots.shape[0]):
        count += slots[e] <= slots[e - 1]
    return count


@helper
def _add(indices: Any, begin: Any, stop: Any, changes: Any, first: Any, cells: Any) -> Any:
    """Add the changes of one row to the cells of its class; returns their bits together."""
    together = np.uint64(0)
    for e in range(begin, stop):  # unsigned: nothing counts from the end
        change = changes[e - first]
        cells[np.uint64(indices[e])] += change
        together |= np.uint64(change)
    return together


_ROWS = "const {i}[::1], const {i}[::1], const float64[::1]"
_CELLS = ("uint32", "uint64")


@lazy(
    f"int64({_ROWS}, int64[::1], int64, int64[::1], int64, int64, int64, int64, "
    "{c}[:, ::1], int64[:, ::1], {c}[::1])",
    i=INDICES,
    c=_CELLS,
)
def sum_entries(
    indptr: Any, indices: Any, data: Any, order: Any, start: int, labels: Any, least: int, width: int, most: int,
    shift: int, cells: Any, left: Any, changes: Any,
) -> Any:  # fmt: skip
    """Add the rows order[start:] of a sparse matrix to cells[class − least, slot]: (amount << shift) + 1.

    `left` has for each class how many more rows its cells hold, how large an amount, and how many entries were added.
    Returns how many rows of the order are done: all, or those before one whose class is full, or −1 at a row that is
    not plain. Rows are plain if each amount is a whole number from 1 to 2^most and the slots of each row rise from at
    least 0 to below `width`. Cells of no classes only ask. Neighbouring rows are looked at in long strips; `changes` is
    room for one, or for the longest row.
    """
    end, n = min(data.shape[0], indices.shape[0]), order.shape[0]
    o = start
    while o < n:
        first = last = np.int64(indptr[order[o]])
        after, rises = o, np.int64(0)  # rows o … after − 1 are neighbours; how many may begin below the one before
        while after < n and (after == o or order[after] == order[after - 1] + 1):
            stop = np.int64(indptr[order[after] + 1])
            if not 0 <= last <= stop <= end:
                return -1
            if after > o and stop - first > STRIP:
                break
            if first < last < stop:
                rises += indices[last] <= indices[last - 1]
            last = stop
            after += 1
        if after < n and order[after] != order[after - 1] + 1 and after + _AHEAD < n:
            later = order[after + _AHEAD]
            for e in range(np.uint64(indptr[later]), np.uint64(indptr[later + 1]), _EIGHT):
                prefetch(data, e)
            for e in range(np.uint64(indptr[later]), np.uint64(indptr[later + 1]), _EIGHT + _EIGHT):
                prefetch(indices, e)
        if last - first > changes.shape[0]:
            return -1
        wrong, large = _changes(data[first:last], shift, changes)
        if wrong != 0 or large >> most != 0 or _outside(indices[first:last], width) < 0:
            return -1
        if _falls(indices[first:last]) != rises:
            return -1
        if cells.shape[0] > 0:
            for i in range(o, after):
                y, begin, stop = labels[order[i]] - least, indptr[order[i]], indptr[order[i] + 1]
                if left[y, 0] < 1 or left[y, 1] <= large:
                    return i
                together = _add(indices, np.uint64(begin), np.uint64(stop), changes, np.uint64(first), cells[y])
                left[y, 0] -= 1
                left[y, 1] -= np.int64(together >> np.uint64(shift))
                left[y, 2] += stop - begin
        o = after
    return o


@lazy("void({c}[:, :, ::1], int64, int64, int64, int64[:, ::1], int64[:, ::1])", c=_CELLS)
def widen(cells: Any, shift: int, first: int, last: int, table: Any, totals: Any) -> None:
    """Add the slots first … last of cells, threads × classes × slots, to table[class, slot] and to totals[class].

    The table has amounts in the upper 32 bits and ones in the lower; the totals have them apart.
    """
    ones = (np.int64(1) << shift) - 1
    for y in range(cells.shape[1]):
        into, amount, count = table[y, first:last], np.int64(0), np.int64(0)
        for t in range(cells.shape[0]):
            given = cells[t, y, first:last]
            for j in range(given.shape[0]):
                cell = np.int64(given[j])
                amount += cell >> shift
                count += cell & ones
                into[j] += ((cell >> shift) << 32) + (cell & ones)
        totals[y, 0] += amount
        totals[y, 1] += count


@lazy("void(int64[:, ::1], int64, int64, int64, int64[::1], int64[::1], float64, float64[::1], float64[:, ::1])")
def spread(
    table: Any, shift: int, first: int, last: int, at: Any, label: Any, more: float, total: Any, out: Any
) -> None:
    """out[at[slot], label[class]] = (n + more) / total[class] for one of the amounts n of the slots first … last."""
    for j in range(first, last):
        for y in range(table.shape[0]):
            n = np.float64((table[y, j] >> shift) & 0xFFFFFFFF)
            out[at[j], label[y]] = np.divide(n + more, total[y])  # a total of zero is no error here


@lazy(f"void({_ROWS}, int64[::1], int64[::1], int64[::1], int64[::1])", i=INDICES)
def places(indptr: Any, indices: Any, data: Any, order: Any, labels: Any, last: Any, ends: Any) -> None:
    """How many classes each slot has, added up: those of slot t will stand from ends[t] to ends[t + 1].

    `order` has the rows class by class, `last` a −1 for each slot, `ends` a zero and one more.
    """
    for o in range(order.shape[0]):
        y = labels[order[o]]
        for e in range(np.uint64(indptr[order[o]]), np.uint64(indptr[order[o] + 1])):
            t = np.uint64(indices[e])
            ends[t + _ONE] += last[t] != y
            last[t] = y
    for k in range(ends.shape[0] - 1):
        ends[k + 1] += ends[k]


@lazy(f"void({_ROWS}, int64[::1], int64[::1], int64[::1], int64[::1], int64[::1], int64[:, ::1])", i=INDICES)
def by_slot(
    indptr: Any, indices: Any, data: Any, order: Any, labels: Any, ends: Any, begin: Any, label: Any, amount: Any
) -> None:
    """Write down the class, the sum of amounts and how many there are for each slot and class, in that order.

    A counting sort by slot keeps the classes in order, so that what belongs to one slot and class meets and is added.
    `begin` is a copy of `ends`.
    """
    for o in range(order.shape[0]):
        y = labels[order[o]]
        for e in range(np.uint64(indptr[order[o]]), np.uint64(indptr[order[o] + 1])):
            t = np.uint64(indices[e])
            p = np.uint64(begin[t])
            if begin[t] > ends[t] and label[p - _ONE] == y:
                amount[p - _ONE, 0] += np.int64(data[e])
                amount[p - _ONE, 1] += 1
            else:
                label[p], amount[p, 0], amount[p, 1] = y, np.int64(data[e]), 1
                begin[t] += 1
