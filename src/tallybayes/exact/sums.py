"""Exact sums by class: the readable way in NumPy, or its Numba twin when a batch is large enough to repay it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ..base.arrays import Floats, Ints, has_infinity
from .cells import REACH, Cells, codes_at
from .kernels import gate
from .limbs import Limbs, canonical, exact_sums

_ACCUMULATORS = 20_000  # groups at a time: each takes 204 limbs, so this is 32 MB


def code_sums(codes: Ints, n_codes: int, labels: Ints, n_labels: int, weights: Floats | None) -> Limbs:
    """How many rows (or their weight) have each code and class: group code · n_labels + class; −1 adds nothing."""
    if weights is None and (fast := gate.kernels("codes", len(codes))) is not None:
        table = np.zeros((n_codes, n_labels), dtype=np.int64)
        fast.count(np.ascontiguousarray(codes), labels, table)
        return Limbs(0, table.reshape(-1, 1))
    some = codes >= 0
    key = codes[some].astype(np.int64) * n_labels + labels[some]
    return exact_sums(key, n_codes * n_labels, [] if weights is None else [weights[some]])


def cell_sums(values: Floats, labels: Ints, n_labels: int, cells: Cells) -> tuple[Ints, Limbs] | None:
    """The codes of the cells that hold any of the values, and how many of each class; NaN is left out.

    None where the short way cannot go: few values, or one out of reach.
    """
    places = 2 * REACH + len(cells.points)
    fast = gate.kernels("codes", len(values)) if places * n_labels <= max(len(values), 1 << 14) else None
    if fast is None or abs(cells.exponent) > 1000:  # beyond, one over the width is no float64
        return None
    table = np.zeros((places, n_labels), dtype=np.int64)
    scale = math.ldexp(1.0, -cells.exponent)
    if not fast.count_cells(np.ascontiguousarray(values), labels, cells.centre, scale, cells.point_values, table):
        return None
    used = np.flatnonzero(table.any(axis=1))
    return codes_at(used), Limbs(0, table[used].reshape(-1, 1))


def _stacked(pieces: Sequence[Limbs]) -> Limbs:
    """The groups of several pieces, one after the other."""
    if not pieces:
        return Limbs(0, np.zeros((0, 1), dtype=np.int64))
    lowest = min(p.lowest for p in pieces)
    highest = max(p.lowest + p.array.shape[1] for p in pieces)
    out = np.zeros((sum(len(p.array) for p in pieces), highest - lowest), dtype=np.int64)
    start = 0
    for p in pieces:
        out[start : start + len(p.array), p.lowest - lowest : p.lowest - lowest + p.array.shape[1]] = p.array
        start += len(p.array)
    return Limbs(lowest, out)


def moments(labels: Ints, n_labels: int, x: Floats, weights: Floats | None) -> tuple[Limbs, Limbs, Limbs] | None:
    """Σ w, Σ w·x and Σ w·x² for each position of a matrix, exactly: group position · n_labels + class.

    NaN adds nothing. None where a value is infinite.
    """
    width = x.shape[1]
    if weights is None and (fast := gate.kernels("moments", x.size)) is not None:
        step = max(_ACCUMULATORS // n_labels, 1)
        pieces = [fast.moments(labels, n_labels, x[:, i : i + step]) for i in range(0, width, step)]
        if None in pieces:
            return None
        n, x_sum, xx_sum = (_stacked([p[k] for p in pieces]) for k in range(3))
        return n, canonical(x_sum), canonical(xx_sum)
    if has_infinity(x):
        return None
    groups, values = (labels[:, None] + n_labels * np.arange(width)).ravel(), x.ravel()
    w = [] if weights is None else [np.repeat(weights, width)]
    there = ~np.isnan(values)
    if not there.all():
        groups, values, w = groups[there], values[there], [each[there] for each in w]
    n, x_sum, xx_sum = (exact_sums(groups, width * n_labels, f) for f in (w, [*w, values], [*w, values, values]))
    return n, x_sum, xx_sum
