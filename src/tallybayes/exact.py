"""Exact sums by class: the readable way in NumPy, or its Numba twin when a batch is large enough to repay it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import ModuleType

import numpy as np

from .numerics import Floats, Ints, Limbs, canonical, exact_sums

# Importing Numba and loading a cached kernel costs about as much as NumPy needs for this many cells
BREAK_EVEN = 2_000_000
_ACCUMULATORS = 20_000  # groups at a time: each takes 204 limbs, so this is 32 MB
_work_done = 0


def kernels(cells: int) -> ModuleType | None:
    """The Numba module, once the cells asked for so far would have repaid its import; None before that.

    TALLYBAYES_KERNELS=off keeps it away for good, =on takes it at once; without Numba installed it is never taken.
    """
    global _work_done
    wish = os.environ.get("TALLYBAYES_KERNELS", "auto")
    _work_done += cells
    if wish == "off" or (wish == "auto" and _work_done < BREAK_EVEN):
        return None
    try:
        from . import kernels as module
    except ImportError:
        return None
    return module


def sums(groups: Ints, n_groups: int, factors: Sequence[Floats]) -> Limbs:
    """Σ of the product of the factors by group, exactly."""
    return exact_sums(groups, n_groups, factors)


def moments(labels: Ints, n_labels: int, x: Floats, weights: Floats | None) -> tuple[Limbs, Limbs, Limbs]:
    """Σ w, Σ w·x and Σ w·x² by class, exactly."""
    if weights is None and (fast := kernels(len(x))) is not None:
        n, x_sum, xx_sum = fast.moments(labels, n_labels, x[:, None], np.isnan(x)[:, None])
        return n, canonical(x_sum), canonical(xx_sum)
    w = [] if weights is None else [weights]
    return (
        exact_sums(labels, n_labels, w),
        exact_sums(labels, n_labels, [*w, x]),
        exact_sums(labels, n_labels, [*w, x, x]),
    )


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


def vector_moments(labels: Ints, n_labels: int, x: Floats, weights: Floats | None) -> tuple[Limbs, Limbs, Limbs]:
    """The same for each position of a matrix: group position · n_labels + class; NaN adds nothing."""
    width = x.shape[1]
    missing = np.isnan(x)
    if weights is None and (fast := kernels(x.size)) is not None:
        step = max(_ACCUMULATORS // n_labels, 1)
        pieces = [
            fast.moments(labels, n_labels, x[:, i : i + step], missing[:, i : i + step]) for i in range(0, width, step)
        ]
        n, x_sum, xx_sum = (_stacked([p[k] for p in pieces]) for k in range(3))
        return n, canonical(x_sum), canonical(xx_sum)
    row, position = np.nonzero(~missing)
    groups = position * n_labels + labels[row]
    values = x[row, position]
    w = [] if weights is None else [weights[row]]
    return (
        exact_sums(groups, width * n_labels, w),
        exact_sums(groups, width * n_labels, [*w, values]),
        exact_sums(groups, width * n_labels, [*w, values, values]),
    )


def text_kernels(size: int) -> ModuleType | None:
    """The Numba module that cuts texts, under the same rule; a byte of text is worth about half a cell."""
    if kernels(size // 2) is None:
        return None
    from . import wordscan

    return wordscan


def count_kernels(tokens: int) -> ModuleType | None:
    """The Numba module that counts tokens, under the same rule; a token is worth about two cells."""
    if kernels(2 * tokens) is None:
        return None
    from . import countkernels

    return countkernels
