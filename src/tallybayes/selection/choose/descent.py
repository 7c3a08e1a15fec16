"""Descent for many numbers at once: L-BFGS in two loops, started from the curvature of each number."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from ...base.arrays import Floats
from ...exact.kernels import gate

_MEMORY = 6  # steps remembered
_ROUNDS = 60
_NOTHING = 1e-15  # of the loss that a whole step may still gain: the end
_SHORTEST = 1e-6  # share of a step below which no better one is sought
_LANES = 8  # sums side by side


def descend(
    loss: Callable[[Floats], tuple[float, Floats]], x: Floats, curvature: Floats | None, precise: float
) -> Floats:
    """Where a smooth loss is least, as far as steps gain a share `precise` of it; `curvature` is above 0, None is 1."""
    value, slope = loss(x)
    steps = Steps(len(x), curvature)
    for _ in range(_ROUNDS):
        way = steps.way(slope)
        descent = float(slope @ way)
        if descent >= 0:  # lost: by the curvatures alone
            steps.forget()
            way = steps.way(slope)
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
        steps.add(there - x, next_slope - slope)
        gained, x, value, slope = value - next_value, there, next_value, next_slope
        if gained < precise * abs(value):
            break
    return x


class Steps:
    """The last steps of a descent, each with how the slope changed along it: what is known of the curvature."""

    def __init__(self, n: int, curvature: Floats | None) -> None:
        self._n, width = n, -(-n // _LANES) * _LANES  # zeros behind the numbers, which add nothing
        self._steps, self._changes = np.zeros((2, _MEMORY, width))
        self._curvature = np.zeros(0) if curvature is None else np.append(curvature, np.ones(width - n))
        self._by, self._shares = np.empty((2, _MEMORY))  # 1 / (step · change); what the first loop leaves the second
        self.forget()

    def forget(self) -> None:
        """Back to the curvature of each number."""
        self._first, self._count, self._scale = 0, 0, 1.0

    def add(self, step: Floats, change: Floats) -> None:
        """One more, instead of the oldest where there is no room; none that tells of no curvature."""
        product = float(step @ change)
        if not product > 1e-12 * float(np.sqrt((step @ step) * (change @ change))):
            return
        if self._count == _MEMORY:
            self._first = (self._first + 1) % _MEMORY
        else:
            self._count += 1
        j = (self._first + self._count - 1) % _MEMORY
        self._steps[j, : self._n], self._changes[j, : self._n], self._by[j] = step, change, 1 / product
        straight = change / self._curvature[: self._n] if len(self._curvature) else change
        self._scale = product / float(change @ straight)

    @gate.guarded
    def way(self, slope: Floats) -> Floats:
        """Minus the inverse curvature, as the steps have met it, times the slope."""
        way = np.zeros(self._steps.shape[1])
        np.negative(slope, out=way[: self._n])
        by, shares, known = self._by, self._shares, (self._first, self._count)
        kernels = gate.kernels("steps", 0)  # if they are there: a step alone does not repay them
        if kernels is not None:
            kernels.turn(self._steps, self._changes, by, shares, self._curvature, self._scale, *known, way)
            return way[: self._n]
        order = [(self._first + k) % _MEMORY for k in range(self._count)]
        for j in reversed(order):
            shares[j] = -(by[j] * _dot(self._steps[j], way))
            way += self._changes[j] * shares[j]
        if len(self._curvature):
            way /= self._curvature
        way *= self._scale
        for j in order:
            way += self._steps[j] * -(shares[j] + by[j] * _dot(self._changes[j], way))
        return way[: self._n]


def _dot(a: Floats, b: Floats) -> float:
    """Σ a · b, as eight sums side by side: in the order of the kernel."""
    s: list[float] = np.add.reduce((a * b).reshape(-1, _LANES), axis=0).tolist()
    return ((s[0] + s[4]) + (s[2] + s[6])) + ((s[1] + s[5]) + (s[3] + s[7]))
