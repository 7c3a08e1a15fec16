"""Numba twins of counting codes and matrix entries by class. Import only through `exact.table_kernels`."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

_TILE = 64


@nb.njit(
    [
        "void(Array(int32, 1, 'C', True), int64[::1], int64[:, ::1])",
        "void(Array(int64, 1, 'C', True), int64[::1], int64[:, ::1])",
    ],
    cache=True,
    nogil=True,
)
def count(codes: Any, labels: Any, table: Any) -> None:  # pragma: no cover - compiled
    """Add a one to table[code, label] for each row with a code of at least 0."""
    for i in range(codes.shape[0]):
        if codes[i] >= 0:
            table[codes[i], labels[i]] += 1


@nb.njit("void(Array(int64, 2, 'C', True), int32[:, ::1], int64[::1], int64[::1])", cache=True, nogil=True)
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


@nb.njit([f"int64({r}, int64, int64, int64)" for r in _ROWS], cache=True, nogil=True)
def largest_whole(indptr: Any, indices: Any, data: Any, width: int, first: int, last: int) -> Any:  # pragma: no cover
    """The largest amount in the rows first … last of a sparse matrix, at least 1.

    0 if one is no whole number from 1 to 2^31, or if the indices of a row do not rise from at least 0 to below `width`.
    """
    top, good = 1.0, True
    for row in range(first, last):
        start, stop = indptr[row], indptr[row + 1]
        good &= (start >= 0) & (start <= stop) & (stop <= min(data.shape[0], indices.shape[0]))
        if not good:
            return 0
        if start < stop:
            good &= (indices[start] >= 0) & (indices[stop - 1] < width)
        for e in range(start + 1, stop):
            good &= indices[e] > indices[e - 1]
        for e in range(start, stop):
            v = data[e]
            good &= (v >= 1.0) & (v <= 2147483648.0) & (v == np.floor(v))
            top = max(top, v)
    return np.int64(top) if good else 0


@nb.njit([f"void({r}, int64[::1], int64[::1], int64, int64[:, ::1])" for r in _ROWS], cache=True, nogil=True)
def sum_entries(
    indptr: Any, indices: Any, data: Any, order: Any, labels: Any, least: int, table: Any
) -> None:  # pragma: no cover - compiled
    """Add rows of a sparse matrix to table[class − least, slot]: amounts in the upper 32 bits, ones in the lower."""
    for o in range(order.shape[0]):
        row = order[o]
        sums = table[labels[row] - least]
        for e in range(np.uint64(indptr[row]), np.uint64(indptr[row + 1])):  # unsigned: no index counts from the end
            sums[np.uint64(indices[e])] += (np.int64(data[e]) << 32) + 1


@nb.njit("void(int64[:, ::1], int64[::1], int64[::1], int64[:, ::1])", cache=True, nogil=True)
def entries(table: Any, slot: Any, label: Any, amount: Any) -> None:  # pragma: no cover - compiled
    """What `sum_entries` has summed, slot by slot: slot, class, and the two amounts of all that is not zero."""
    at = 0
    for j in range(table.shape[1]):
        for y in range(table.shape[0]):
            if table[y, j]:
                slot[at], label[at] = j, y
                amount[at, 0], amount[at, 1] = table[y, j] >> 32, table[y, j] & 0xFFFFFFFF
                at += 1
