"""Numba twins of counting codes and matrix entries by class. Import only through `exact.table_kernels`."""

from __future__ import annotations

from typing import Any

import numba as nb

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
