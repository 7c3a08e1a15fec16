"""How sure a figure is: the bootstrap over rows, for every metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .metrics import Scored, formula
from .numerics import Floats

_AT_ONCE = 1 << 22  # weights held at a time


def draws(s: Scored, resamples: int, seed: int) -> Iterator[Floats]:
    """Weights of bootstrap samples, some draws × rows at a time: how often each row came up, times its weight."""
    rng = np.random.default_rng(seed)
    n = len(s.labels)
    step = max(1, _AT_ONCE // n)
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        at = rng.integers(0, n, size=(count, n)) + n * np.arange(count)[:, None]
        yield np.bincount(at.ravel(), minlength=count * n).reshape(count, n) * s.weights


def bootstrap(
    labels: Any, p: Any, names: Sequence[str], weights: Any = None, *, resamples: int = 1000, seed: int = 0,
    level: float = 0.95,
) -> dict[str, tuple[float, float, float]]:  # fmt: skip
    """(figure, lower, upper) of each metric: the middle `level` of the figures of rows drawn with replacement.

    >>> bootstrap([0, 1, 1], [[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]], ["accuracy"])
    {'accuracy': (1.0, 1.0, 1.0)}
    """
    s = Scored.of(labels, p, weights)
    formulas = {name: formula(name) for name in names}
    found: dict[str, list[Floats]] = {name: [] for name in names}
    for w in draws(s, resamples, seed):
        w = w[w.sum(axis=1) > 0]  # with weights a draw may hold nothing
        for name, f in formulas.items():
            found[name].append(f(s, w))
    out = {}
    for name, f in formulas.items():
        each = np.concatenate(found[name])
        each = each[~np.isnan(each)]  # a draw without one of the classes has no ROC-AUC
        low, high = np.quantile(each, [(1 - level) / 2, (1 + level) / 2]) if len(each) else (np.nan, np.nan)
        out[name] = (float(f(s, s.weights[None, :])[0]), float(low), float(high))
    return out
