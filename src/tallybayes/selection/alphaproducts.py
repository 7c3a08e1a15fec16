"""Rows of words times log(n + α) for many α at once.

Counts are small whole numbers: a short table has log(n + α) of all α side by side, and each word of a row adds that
stretch to the sums of its class, in the order in which one α alone would be added.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..exact.kernels.gate import grid_kernels
from ..families.words import product

_TABLE = 8192  # logarithms held per α; a larger count takes its own
_SEVERAL = 3  # α for which going through the words once repays itself
_ROOM = 1 << 17  # sums at a time: a megabyte


def products(rows: Any, n: Ints, alphas: tuple[float, ...]) -> Floats:
    """Σ_w x_w·log(n_wy + α), α × rows × classes, for a sparse matrix x and counts n."""
    codes, tables = n.astype(np.int32, order="C"), _logarithms(alphas)
    if n.max(initial=0) >= _TABLE:
        large, place = np.unique(n[n >= _TABLE], return_inverse=True)
        codes[n >= _TABLE] = _TABLE + place
        tables = _log(large, alphas, tables)
    kernels = grid_kernels(rows.nnz * len(alphas)) if len(alphas) >= _SEVERAL else None
    out = np.empty((len(alphas), rows.shape[0], n.shape[1]))
    if kernels is None:
        for i, one in enumerate(out):
            one[:] = product(rows, tables[:, i].take(codes))
        return out
    if codes.shape[1] % 4:
        codes = np.pad(codes, ((0, 0), (0, -codes.shape[1] % 4)))
    codes *= tables.shape[1]  # places in the flat arrays
    words = rows.indices.astype(np.int64) * codes.shape[1]
    given = rows.indptr.astype(np.int64), words, rows.data.astype(np.float64)
    step = max(_ROOM // (codes.shape[1] * tables.shape[1]), 1)
    some = np.empty((min(step, rows.shape[0]), codes.shape[1], tables.shape[1]))
    for first in range(0, rows.shape[0], step):
        some = some[: rows.shape[0] - first]
        kernels.products_of_each(*given, codes, tables, first, some)
        out[:, first : first + step] = some[:, : n.shape[1], : len(alphas)].transpose(2, 0, 1)
    return out


def _log(counts: Ints, alphas: tuple[float, ...], before: Floats | None = None) -> Floats:
    """log(n + α) for some n, counts × α, below those of other n if there are any.

    Zeros fill up to a multiple of eight α, and every eight are a line of the cache.
    """
    width, known = -(-len(alphas) // 8) * 8, 0 if before is None else len(before)
    room = np.zeros((known + len(counts)) * width + 8)
    first = -room.ctypes.data % 64 // 8
    out = room[first : len(room) - 8 + first].reshape(-1, width)
    if before is not None:
        out[:known] = before
    out[known:, : len(alphas)] = np.log(counts[:, None] + np.array(alphas))
    return out


@lru_cache(maxsize=4)
def _logarithms(alphas: tuple[float, ...]) -> Floats:
    """The same for n = 0, 1, …"""
    return _log(np.arange(_TABLE), alphas)
