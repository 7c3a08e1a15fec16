"""Numba twins of counting codes by class. Import only through `exact.table_kernels`."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cells import MIDDLE, REACH
from .compiling import lazy

_TILE = 64
_FIRST_TAIL = int(np.float64(MIDDLE).view(np.int64)) >> 48  # the leading bits of the first distance in the tails


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
