"""Arrays by the names of their types; logarithms, information and quantiles of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Objects = NDArray[np.object_]
Bools = NDArray[np.bool_]

_DIGITS = 17  # that tell any two floats apart


def log_sum_exp(scores: Floats) -> Floats:
    """log Σ exp(score) along the last axis; −inf where every score is −inf.

    >>> float(log_sum_exp(np.array([-1000.0, -1000.0])).round(6))
    -999.306853
    """
    top = np.max(scores, axis=-1, keepdims=True)
    safe = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(divide="ignore"):
        sums = np.log(np.sum(np.exp(scores - safe), axis=-1))
    out: Floats = sums + safe[..., 0]
    return out


def has_infinity(values: Floats) -> bool:
    """Whether any of the values is infinite; NaN is not."""
    with np.errstate(over="ignore", invalid="ignore"):
        if math.isfinite(np.add.reduce(values, axis=None)):  # one pass without a temporary, and mostly the answer
            return False
    return bool(np.isinf(values).any())


def safe_log(p: Floats) -> Floats:
    """log p, with −inf for 0 and no complaint about it."""
    with np.errstate(divide="ignore"):
        out: Floats = np.log(p)
    return out


def log_ratio_sum(
    n: Floats, whole: float | Floats, left: float | Floats, right: float | Floats, axis: Any = None
) -> Any:
    """Σ n·log[n·whole/(left·right)], N times the mutual information of counts with these margins; 0·log 0 is 0.

    Where counts are independent the ratio is exactly 1, and so the sum exactly 0.

    >>> n = np.array([[2.0, 2.0], [4.0, 4.0]])
    >>> float(log_ratio_sum(n, n.sum(), n.sum(axis=0), n.sum(axis=1, keepdims=True)))
    0.0
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(n > 0, n * np.log(n * whole / (left * right)), 0.0).sum(axis=axis)


def nearest_quantiles(ordered: Floats, shares: Floats) -> Floats:
    """The values that stand nearest to these shares of the way through rising values.

    >>> nearest_quantiles(np.array([1.0, 2.0, 3.0, 10.0]), np.array([0.0, 0.6, 1.0])).tolist()
    [1.0, 3.0, 10.0]
    """
    return ordered[np.rint((len(ordered) - 1) * shares).astype(np.int64)]


def weighted_quantiles(rising: Floats, weights: Floats, shares: Any, total: float | None = None) -> Floats:
    """For each share the first of rising values up to which so much of the weight lies; `total` says of how much.

    >>> weighted_quantiles(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0, 6.0]), [0.25, 0.75]).tolist()
    [2.0, 3.0]
    """
    below = np.cumsum(weights) / (weights.sum() if total is None else total)
    out: Floats = rising[np.minimum(np.searchsorted(below, shares), len(rising) - 1)]
    return out


def short_between(low: Floats, high: Floats) -> Floats:
    """A number above each low and below the high beside it, near their middle, in as few digits as may be.

    It is neither of the two, and hardly tells what they are; it is the high one where nothing lies between them.

    >>> short_between(np.array([1.9, 1017.25, 1.0]), np.array([3.0, 65819210.125, 1 + 2**-52])).tolist()
    [2.5, 30000000.0, 1.0000000000000002]
    """
    middle = low / 2 + high / 2
    out, open_ = high.copy(), np.flatnonzero((middle > low) & (middle < high))
    out[open_] = middle[open_]
    for digits in range(1, _DIGITS):
        if not len(open_):
            break
        short = np.array(list(map(float, map(f"%.{digits}g".__mod__, middle[open_].tolist()))))
        near = np.abs(short - middle[open_]) <= (high / 4 - low / 4)[open_]
        out[open_[near]] = short[near]
        open_ = open_[~near]
    return out
