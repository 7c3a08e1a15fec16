"""How sure a figure is: the bootstrap over rows, for every metric."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from ...base.arrays import Floats
from .metrics import METRICS, Formula, Scored, calibration_by_chance, formula

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


def interval(
    scored: Sequence[Scored], f: Formula, *, resamples: int = 1000, seed: int = 0, level: float = 0.95
) -> tuple[Floats, Floats, Floats]:
    """The figure and its lower and upper bound: the middle `level` of the figures of rows drawn with replacement.

    Several forecasts of the same rows (repetitions) are averaged, draw by draw. A formula of several numbers, one per
    class, gets a bound for each; a draw for which a figure does not exist (no row of a class) does not count for it.
    The calibration error has bounds of its own, see `_of_calibration`.
    """
    figure = np.mean([f(s, s.weights[None, :])[0] for s in scored], axis=0)
    found = []
    for w in draws(scored[0], resamples, seed):
        w = w[w.sum(axis=1) > 0]  # with weights a draw may hold nothing
        found.append(np.mean([f(s, w) for s in scored], axis=0))
    each = np.concatenate(found).reshape(-1, np.size(figure))
    if f is METRICS["calibration_error"]:
        own = _of_calibration(scored[0], float(figure), each[:, 0], seed, level)
        return np.asarray(figure), np.asarray(own[0]), np.asarray(own[1])
    bounds = np.full((2, each.shape[1]), np.nan)
    for j in range(each.shape[1]):
        there = each[~np.isnan(each[:, j]), j]
        if len(there):
            bounds[:, j] = np.quantile(there, [(1 - level) / 2, (1 + level) / 2])
    low, high = (b.reshape(np.shape(figure)) for b in bounds)
    return np.asarray(figure), low, high


def _of_calibration(s: Scored, figure: float, each: Floats, seed: int, level: float) -> tuple[float, float]:
    """Bounds of the calibration error, which adds up |gaps|: chance alone makes it positive, and drawing rows again
    adds as much once more.

    So the upper bound is lower by what drawing added, and the lower one by twice as much, once for the drawing and once
    for the figure itself; it is 0 where forecasts that are right as often as they say would have such a figure, too.
    """
    outside = (1 - level) / 2
    low, high = np.quantile(each, [outside, 1 - outside])
    added = max(float(each.mean()) - figure, 0.0)
    rng = np.random.default_rng(seed)
    step = max(1, _AT_ONCE // len(s.labels))
    sizes = [min(step, len(each) - start) for start in range(0, len(each), step)]
    chance = np.concatenate([calibration_by_chance(s, rng, count) for count in sizes])
    by_chance = figure <= np.quantile(chance, 1 - outside)
    return 0.0 if by_chance else min(max(float(low) - 2 * added, 0.0), figure), max(float(high) - added, figure)


def bootstrap(
    labels: Any, p: Any, names: Sequence[str], weights: Any = None, *, resamples: int = 1000, seed: int = 0,
    level: float = 0.95,
) -> dict[str, tuple[float, float, float]]:  # fmt: skip
    """(figure, lower, upper) of each metric.

    >>> bootstrap([0, 1, 1], [[0.9, 0.1], [0.4, 0.6], [0.3, 0.7]], ["accuracy"])
    {'accuracy': (1.0, 1.0, 1.0)}
    """
    s = [Scored.of(labels, p, weights)]
    out = {}
    for name in names:
        figure, low, high = interval(s, formula(name), resamples=resamples, seed=seed, level=level)
        out[name] = (float(figure), float(low), float(high))
    return out
