"""Arrays by the names of their types, and logarithms of them."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Objects = NDArray[np.object_]
Bools = NDArray[np.bool_]


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
