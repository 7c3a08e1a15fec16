"""A belief that looks only at a value's cell, as steps: thresholds on the line and what holds between them.

There are some thirty thousand cells, up to the largest float64; but far from the data neighbours say the same. So
the tails are walked octave by octave, equal neighbours are made one, and where nothing changes any more the
walk leaps. What all classes share is left out: it changes no probability.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Floats, Ints
from ..exact.cells import MIDDLE, TAIL
from .histogram import CellBelief

IMPOSSIBLE = -1e304  # a log-likelihood of −inf: below any finite one, and many of them still add up without overflow
_EQUAL = 1e-12  # weights that differ by less are one
_MANY = 64  # intervals up to which they are told apart by comparing alone
_PLAIN = 900  # the exponent of a width that can divide any distance in the middle without over- or underflow
_TOP = 1024  # 2^1024 is beyond the largest float64


@dataclass(frozen=True)
class Steps:
    """Weights of the points, and of the intervals of d = x − centre that the thresholds part: [t₀, t₁), [t₁, t₂), …

    Where the middle would be many intervals it is one, and its cells have their own weights: cell ⌊d / width⌋.
    """

    centre: float
    points: Floats
    point_weights: Floats  # points × classes
    thresholds: Floats  # one fewer than intervals
    weights: Floats  # intervals × classes
    middle: int | None = None  # which interval is the middle with cells of its own
    width: float = 0.0
    cells: Floats | None = None  # MIDDLE cells left of the centre and as many right of it × classes


def steps(belief: CellBelief) -> Steps:
    """The same function of x as the belief's parts, up to what all classes share."""
    cells = belief.cells
    codes = np.arange(-MIDDLE, MIDDLE, dtype=np.int64)
    right, left = _Tail(belief, 1), _Tail(belief, -1)
    # from left to right; a cell on the left is (−high, −low], so that among doubles it starts just above −high
    outer = [(-np.inf, left.runs[-1][1])]
    for (_, row), (further, _) in reversed([*zip(left.runs, left.runs[1:], strict=False)]):
        outer.append((float(np.nextafter(-left.edge(further), np.inf)), row))
    starts = np.ldexp(codes.astype(np.float64), cells.exponent)
    starts[0] = np.nextafter(-right.edge(0), np.inf)
    inside = _relative(belief, codes)
    further_out = [(right.edge(s), row) for s, row in right.runs]
    kept = _merged([*outer, *zip(starts.tolist(), inside, strict=True), *further_out])
    many = {}
    if len(kept) > _MANY and abs(cells.exponent) < _PLAIN:
        many = {"middle": len(outer), "width": float(np.ldexp(1.0, cells.exponent)), "cells": inside}
        kept = [*outer, (float(starts[0]), np.zeros(belief.n_classes)), *further_out]
    points = cells.point_codes()
    return Steps(
        cells.centre,
        np.array(cells.points),
        _relative(belief, points) if len(points) else np.zeros((0, belief.n_classes)),
        np.array([start for start, _ in kept[1:]]),
        np.array([row for _, row in kept]),
        **many,  # type: ignore[arg-type]
    )


def _merged(pieces: list[tuple[float, Floats]]) -> list[tuple[float, Floats]]:
    """The pieces without those that say what the one before them says."""
    kept = pieces[:1]
    for piece in pieces[1:]:
        if not _alike(kept[-1][1], piece[1]):
            kept.append(piece)
    return kept


def written(weights: Floats) -> Floats:
    """The same weights with IMPOSSIBLE for −inf."""
    return np.where(np.isneginf(weights), IMPOSSIBLE, weights)


def _relative(belief: CellBelief, codes: Ints) -> Floats:
    """What cells say, less what they say for the likeliest class."""
    log = belief.log_cells(codes)
    top = log.max(axis=1, keepdims=True)
    return written(log - np.where(np.isfinite(top), top, 0.0))


def _alike(a: Floats, b: Floats) -> bool:
    return bool(np.abs(a - b).max() <= _EQUAL)


class _Tail:
    """The cells beyond the middle on one side: (first cell, weights) of each run of cells that say the same."""

    def __init__(self, belief: CellBelief, side: int) -> None:
        self.belief, self.side = belief, side
        self.exponent = belief.cells.exponent
        self.runs: list[tuple[int, Floats]] = []
        self._walk()

    def edge(self, cell: int) -> float:
        """The distance from the centre at which a cell begins."""
        octave, sub = divmod(cell, TAIL)
        with np.errstate(over="ignore"):
            return float(np.ldexp(MIDDLE * (1.0 + sub / TAIL), octave + self.exponent))

    def _octave(self, octave: int) -> Floats:
        cell = np.arange(octave * TAIL, (octave + 1) * TAIL, dtype=np.int64)
        return _relative(self.belief, MIDDLE + cell if self.side > 0 else -MIDDLE - 1 - cell)

    def _walk(self) -> None:
        octaves = max(_TOP - self.exponent - MIDDLE.bit_length() + 1, 1)
        reach, calm, octave = self._reach(), 0, 0
        while octave < octaves:
            rows = self._octave(octave)
            for j, row in enumerate(rows):
                if not self.runs or not _alike(self.runs[-1][1], row):
                    self.runs.append((octave * TAIL + j, row))
            first = self.runs[-1][0] <= octave * TAIL
            calm = calm + 1 if first and self.edge(octave * TAIL) > reach else 0
            octave += 1
            if calm >= 2:
                octave = self._next_change(octave, octaves, rows[-1])

    def _next_change(self, octave: int, octaves: int, row: Floats) -> int:
        """The first octave from here on that says anything else, found by halving: changes there are for good."""
        low, high = octave, octaves
        while low < high:
            between = (low + high) // 2
            if all(_alike(row, r) for r in self._octave(between)):
                low = between + 1
            else:
                high = between
        return low

    def _reach(self) -> float:
        """Twice the distance of the farthest place at which anything was counted."""
        places = [np.array(self.belief.cells.points)]
        if hasattr(self.belief, "h"):
            places.append(self.belief.h.middle)
        with np.errstate(over="ignore"):
            return 2 * float(np.abs(np.concatenate(places) - self.belief.cells.centre).max(initial=0.0))
