"""Numba twins of words under many smoothings at once. Import only through `exact.grid_kernels`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiling import lazy
from .llvm import products_of_four


@lazy("void(int64[::1], int64[::1], int64[::1], int64, int64[::1], int64[:, ::1])")
def add_entries(
    slot: Any, label: Any, amount: Any, times: int, row: Any, table: Any
) -> None:  # pragma: no cover - compiled
    """Add times · amount of each entry to table[row[slot], label]; a row of −1 is left out."""
    for e in range(slot.shape[0]):
        r = row[slot[e]]
        if r >= 0:
            table[r, label[e]] += times * amount[e]


@lazy("void(int64[::1], int64[::1], float64[::1], int32[:, ::1], float64[:, ::1], int64, float64[:, :, ::1])")
def products_of_each(
    indptr: Any, words: Any, data: Any, codes: Any, tables: Any, first: int, out: Any
) -> None:  # pragma: no cover - compiled
    """Several products at once of the rows from `first` on of a sparse matrix: out[row, y, s] gets Σ x·tables[code, s]
    for the code of each word and y, added in the order in which `scorekernels.products` adds.

    What a word's code is was looked up once for all s, which are a multiple of eight as classes are of four. Words and
    codes are given as places in the flat arrays of codes and tables.
    """
    n_classes, width = np.uint64(codes.shape[1]), np.uint64(tables.shape[1])
    to = np.uint64(0)
    for i in range(out.shape[0]):
        start, stop = np.uint64(indptr[first + i]), np.uint64(indptr[first + i + 1])
        for y in range(np.uint64(0), n_classes, np.uint64(4)):
            for s in range(np.uint64(0), width, np.uint64(8)):
                products_of_four(words, data, start, stop, codes, y, tables, s, out, to + y * width + s, width)
        to += n_classes * width
