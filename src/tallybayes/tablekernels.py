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


@nb.njit("int64(Array(float64, 1, 'C', True))", cache=True, nogil=True)
def largest_whole(data: Any) -> Any:  # pragma: no cover - compiled
    """The largest of some whole numbers from 1 to 2^31; 0 if one of them is none, or if there are none."""
    top, good = 0.0, True
    for i in range(data.shape[0]):
        v = data[i]
        good &= (v >= 1.0) & (v <= 2147483648.0) & (v == np.floor(v))
        top = max(top, v)
    return np.int64(top) if good else 0


@nb.njit(
    [
        "void(Array(int32, 1, 'C', True), Array(int32, 1, 'C', True), Array(float64, 1, 'C', True), int64[::1], "
        "int64[::1], int64[:, ::1])",
        "void(Array(int64, 1, 'C', True), Array(int64, 1, 'C', True), Array(float64, 1, 'C', True), int64[::1], "
        "int64[::1], int64[:, ::1])",
    ],
    cache=True,
    nogil=True,
)
def sum_entries(indptr: Any, indices: Any, data: Any, order: Any, labels: Any, table: Any) -> None:  # pragma: no cover
    """Add the rows of a sparse matrix to table[class, slot]: the amounts in the upper 32 bits, a one in the lower."""
    for o in range(order.shape[0]):
        row = order[o]
        sums = table[labels[row]]
        for e in range(indptr[row], indptr[row + 1]):
            sums[indices[e]] += (np.int64(data[e]) << 32) + 1
