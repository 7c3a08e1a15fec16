"""Descent for many numbers at once: L-BFGS in two loops, started from the curvature of each number."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import numpy as np

from ...base.arrays import Floats
from ...exact.kernels import gate

_MEMORY = 10  # steps remembered
_ROUNDS = 60
_NOTHING = 1e-15  # of the loss that a whole step may still gain: the end
_SHORTEST = 1e-6  # share of a step below which no better one is sought


def descend(
    loss: Callable[[Floats], tuple[float, Floats]], x: Floats, curvature: Floats | None, precise: float
) -> Floats:
    """Where a smooth loss is least, as far as steps gain a share `precise` of it; `curvature` is above 0, None is 1."""
    value, slope = loss(x)
    steps: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)  # (step, change of slope, 1 / their product)
    for _ in range(_ROUNDS):
        way = _newton(slope, curvature, steps)
        descent = float(slope @ way)
        if descent >= 0:  # lost: by the curvatures alone
            steps.clear()
            way = -slope if curvature is None else -slope / curvature
            descent = float(slope @ way)
        if -descent <= _NOTHING:
            break
        share = 1.0
        there = x + way
        next_value, next_slope = loss(there)
        while not next_value <= value + 1e-4 * share * descent and share > _SHORTEST:
            share *= 0.4
            there = x + share * way
            next_value, next_slope = loss(there)
        if not next_value < value:
            break
        step, change = there - x, next_slope - slope
        product = float(step @ change)
        if product > 1e-12 * float(np.sqrt((step @ step) * (change @ change))):
            steps.append((step, change, 1 / product))
        gained, x, value, slope = value - next_value, there, next_value, next_slope
        if gained < precise * abs(value):
            break
    return x


@gate.guarded
def _newton(slope: Floats, curvature: Floats | None, steps: deque[tuple[Floats, Floats, float]]) -> Floats:
    """Minus the inverse curvature, as the last steps have met it, times the slope."""
    way, shares = -slope, []
    kernels = gate.kernels("rows", 0)  # if they are there: a step alone does not repay them

    def add(amounts: Floats, by: float) -> None:
        if kernels is None:
            np.add(way, amounts * by, out=way)
        else:
            kernels.add_times(way, amounts, by)

    for step, change, by in reversed(steps):
        shares.append(by * float(step @ way))
        add(change, -shares[-1])
    if curvature is not None:
        way /= curvature
    if steps:
        _, change, by = steps[-1]
        way *= 1 / (by * float(change @ (change if curvature is None else change / curvature)))
    for (step, change, by), share in zip(steps, reversed(shares), strict=True):
        add(step, share - by * float(change @ way))
    return way
