"""Weights, numbers of rows and random states, as scikit-learn's users give them."""

from __future__ import annotations

from numbers import Real
from typing import Any

import numpy as np
from sklearn.utils.validation import check_array

from ..base.arrays import Floats


def weights_of(given: Any, rows: int) -> Floats:
    """A weight for each row; those of a batch may all be 0, which scikit-learn's own check refuses."""
    if isinstance(given, Real):
        return np.full(rows, float(given))
    weights = check_array(given, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != (rows,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected ({rows},)!")
    out: Floats = weights
    return out


def how_many(X: Any) -> int:
    """How many rows."""
    return int(X.shape[0]) if hasattr(X, "shape") else len(X)


def generator(random_state: Any) -> np.random.Generator:
    """NumPy's new generator from what scikit-learn calls a random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
