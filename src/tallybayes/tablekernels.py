"""Numba twins of counting codes and matrix entries by class. Import only through `exact.table_kernels`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .cells import MIDDLE, REACH
from .intrinsics import prefetch
from .lazykernel import lazy

_TILE = 64
_AHEAD = 8  # rows of a sparse matrix that are asked for before they are read
_FIRST_TAIL = int(np.float64(MIDDLE).view(np.int64)) >> 48  # the leading bits of the first distance in the tails
_EIGHT = np.uint64(8)  # numbers of eight bytes: a line of the cache


@lazy(
    "void(Array(int32, 1, 'C', True), int64[::1], int64[:, ::1])",
    "void(Array(int64, 1, 'C', True), int64[::1], int64[:, ::1])",
)
def count(codes: Any, labels: Any, table: Any) -> None:  # pragma: no cover - compiled
    """Add a one to table[code, label] for each row with a code of at least 0."""
    for i in range(codes.shape[0]):
        if codes[i] >= 0:
            table[codes[i], labels[i]] += 1


@lazy("boolean(Array(float64, 1, 'C', True), int64[::1], float64, float64, float64[::1], int64[:, ::1])")
def count_cells(
    values: Any, labels: Any, centre: float, scale: float, points: Any, table: Any
) -> Any:  # pragma: no cover - compiled
    """Add a one to table[place of the value's cell, label] for each value but NaN; see `cells.codes_at`.

    `scale` is one over the width of a cell, a power of two. Returns False at a value out of reach.
    """
    for i in range(values.shape[0]):
        v = values[i]
        if v != v:
            continue
        low, high = 0, points.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if points[middle] < v:
                low = middle + 1
            else:
                high = middle
        if low < points.shape[0] and points[low] == v:
            table[2 * REACH + low, labels[i]] += 1
            continue
        distance = v - centre
        q = distance * scale
        if abs(q) < MIDDLE:
            code = np.int64(np.floor(q))
            if q == 0.0 and distance < 0.0:  # it has underflowed, and is still left of the centre
                code = np.int64(-1)
        else:
            bits = np.float64(abs(q)).view(np.int64)  # exponent, then the four bits that number the cells of a doubling
            code = MIDDLE + (bits >> 48) - _FIRST_TAIL
            if code >= REACH:
                return False
            code = code if q > 0 else -1 - code
        table[REACH + code, labels[i]] += 1
    return True


@lazy("void(Array(int64, 2, 'C', True), int64[::1], int64[::1], int64, uint64[::1])")
def count_matrix(matrix: Any, labels: Any, table: Any, n_labels: int, outside: Any) -> None:  # pragma: no cover
    """Add a one to table[column, value, label], 256 values of each column, for each number in a matrix.

    A column with a value that has no place there shows in `outside`, and its counts mean nothing.
    """
    step, first = np.uint64(n_labels), np.uint64(0)
    for i in range(matrix.shape[0]):
        first = np.uint64(labels[i])
        for j in range(matrix.shape[1]):
            v = np.uint64(matrix[i, j])
            outside[j] |= v >> np.uint64(8)
            table[first + (v & np.uint64(255)) * step] += 1
            first += np.uint64(256) * step


@lazy("void(Array(int64, 2, 'C', True), int32[:, ::1], int64[::1], int64[::1])")
def turned(matrix: Any, out: Any, low: Any, high: Any) -> None:  # pragma: no cover - compiled
    """The columns of a matrix one after the other in int32, and the smallest and largest value of each.

    Values beyond int32 show in `low` or `high`.
    """
    width = matrix.shape[1]
    for first in range(0, matrix.shape[0], _TILE):
        rows = min(_TILE, matrix.shape[0] - first)
        for j in range(width):
            small, large = low[j], high[j]
            for i in range(first, first + rows):
                v = matrix[i, j]
                small, large = min(small, v), max(large, v)
                out[j, i] = v
            low[j], high[j] = small, large


_ROWS = [
    f"Array({i}, 1, 'C', True), Array({i}, 1, 'C', True), Array(float64, 1, 'C', True)" for i in ("int32", "int64")
]


@lazy(*[f"boolean({r}, int64[::1], int64[::1], int64, int64, float64, int64[:, ::1])" for r in _ROWS])
def sum_entries(
    indptr: Any, indices: Any, data: Any, order: Any, labels: Any, least: int, width: int, most: float, table: Any
) -> Any:  # pragma: no cover - compiled
    """Add rows of a sparse matrix to table[class − least, slot]: amounts in the upper 32 bits, ones in the lower.

    Returns whether every amount is a whole number from 1 to `most` and the indices of each row rise from at least 0
    to below `width`; it stops at the first row that is not so. A table of no classes only asks. The tests of a row are
    sums without a branch, which the compiler turns into vector instructions, and warm the cache for the adding.
    """
    end = min(data.shape[0], indices.shape[0])
    for o in range(order.shape[0]):
        if o + _AHEAD < order.shape[0]:
            later = order[o + _AHEAD]
            for e in range(np.uint64(indptr[later]), np.uint64(indptr[later + 1]), _EIGHT):
                prefetch(data, e)
            for e in range(np.uint64(indptr[later]), np.uint64(indptr[later + 1]), _EIGHT + _EIGHT):
                prefetch(indices, e)
        row = order[o]
        if not 0 <= indptr[row] <= indptr[row + 1] <= end:
            return False
        slots, amounts = indices[indptr[row] : indptr[row + 1]], data[indptr[row] : indptr[row + 1]]
        if slots.shape[0] == 0:
            continue
        falls, signs, rest = np.int64(0), np.int64(0), np.int64(0)
        for e in range(1, slots.shape[0]):
            falls += slots[e] <= slots[e - 1]
        for e in range(slots.shape[0]):
            v = amounts[e]
            signs |= np.float64(v - 1.0).view(np.int64) | np.float64(most - v).view(np.int64)
            rest |= np.float64(v - np.floor(v)).view(np.int64)  # of NaN and infinity, too
        if falls > 0 or signs < 0 or rest != 0 or slots[0] < 0 or slots[slots.shape[0] - 1] >= width:
            return False
        if table.shape[0] > 0:
            sums = table[labels[row] - least]
            for e in range(slots.shape[0]):
                sums[np.uint64(slots[e])] += (np.int64(amounts[e]) << 32) + 1  # unsigned: none counts from the end
    return True


@lazy("void(int64[:, ::1], int64, int64, int64, int64[::1], int64[::1], float64[:, ::1])")
def spread(table: Any, shift: int, first: int, last: int, at: Any, label: Any, out: Any) -> None:  # pragma: no cover
    """One of the two amounts of the slots first … last that `sum_entries` has summed: out[at[slot], label[class]]."""
    for j in range(first, last):
        for y in range(table.shape[0]):
            out[at[j], label[y]] = (table[y, j] >> shift) & 0xFFFFFFFF
