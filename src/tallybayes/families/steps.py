"""A number column as steps: which stretch of the line a value falls into decides what it says.

Kernel, bins and levels look only at the cell of a value. Here their cells become the places on the line where what they
say changes, found to the last bit, and what they say between them, up to what all classes share. So the belief needs
neither the cells nor the counts behind them.

There are some thirty thousand cells, up to the largest float64; but far from the data neighbours say the same. So
the tails are walked octave by octave, equal neighbours are made one, and where nothing changes any more the
walk leaps. What all classes share is left out: it changes no probability.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ..base.arrays import Floats, Ints
from ..data.blocks import Numbers
from ..exact.cells import MIDDLE, TAIL, Cells
from .base import Belief, Table
from .histogram import CellBelief

_LARGEST = float(np.finfo(np.float64).max)
_SAME = 1e-13  # natural logs: less is rounding
_DENSE = 400  # general cells on either side of the centre that are all looked at: the middle and nine octaves
_AROUND = 24  # and around every counted cell
_EVERY = 8  # in the tails; between two that differ all are looked at


@dataclass(frozen=True)
class StepsBelief(Belief):
    """logs[k] for values from starts[k − 1] up to but without starts[k]."""

    starts: Floats
    logs: Floats  # one more than starts × classes; the largest of each row is 0

    def parts(self, block: Numbers) -> Floats:
        """What the value's stretch says; 0 for missing."""
        out = np.zeros((block.rows, self.logs.shape[1]))
        there = block.present()
        out[there] = self.logs[np.searchsorted(self.starts, block.values[there], side="right")]
        return out

    @property
    def density(self) -> bool:
        """What all classes share has been left out."""
        return False

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """Nothing: the steps do not know how the values lie."""
        return pa.nulls(len(labels), pa.float64())

    def parameters(self) -> tuple[int, int]:
        """A number per step and class."""
        return self.logs.size, self.logs.size

    def table(self) -> Table:
        """What each step says."""
        edges = ["", *(f"{s:.6g}" for s in self.starts), ""]
        rows = [f"{a} to {b}".strip() for a, b in pairwise(edges)]
        return Table("log evidence by step", rows, self.logs, "steps")


def steps_of(belief: CellBelief, near: Floats) -> StepsBelief:
    """The steps of a belief; `near` are values around which what it says may change quickly."""
    cells = belief.cells
    ends = cells.general_codes(np.array([-_LARGEST, _LARGEST]))
    codes = _worth_looking(int(ends[0]), int(ends[1]), cells.general_codes(near))
    logs = relative(belief.log_cells(codes))
    while len(gaps := np.flatnonzero((np.diff(codes) > 1) & _differ(logs[1:], logs[:-1]))):
        between = (codes[gaps] + codes[gaps + 1]) // 2
        codes = np.concatenate([codes, between])
        logs = np.concatenate([logs, relative(belief.log_cells(between))])
        order = np.argsort(codes)
        codes, logs = codes[order], logs[order]
    kept = _changes(logs)
    starts, logs = _first_values(cells, codes[kept[1:]]), logs[kept]
    return _with_points(belief, starts, logs)


def _worth_looking(lowest: int, highest: int, near: Ints) -> Ints:
    around = (near[:, None] + np.arange(-_AROUND, _AROUND + 1)).ravel()
    codes = np.concatenate([
        np.arange(max(lowest, -_DENSE), min(highest, _DENSE) + 1), np.arange(lowest, highest + 1, _EVERY),
        around[(around >= lowest) & (around <= highest)], [lowest, highest],
    ])  # fmt: skip
    return np.unique(codes).astype(np.int64)


def relative(logs: Floats) -> Floats:
    """Each row less its largest, which no answer depends on; a row without a possible class stays."""
    top = logs.max(axis=1, keepdims=True)
    return np.asarray(logs - np.where(np.isfinite(top), top, 0.0))


def _differ(a: Floats, b: Floats) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    with np.errstate(invalid="ignore"):
        return np.asarray(~((a == b) | (np.abs(a - b) <= _SAME)).all(axis=-1))


def _changes(logs: Floats) -> Ints:
    """The rows that differ from the last one kept."""
    kept = [0]
    for i in range(1, len(logs)):
        if _differ(logs[i], logs[kept[-1]]):
            kept.append(i)
    return np.array(kept, dtype=np.int64)


def _first_values(cells: Cells, codes: Ints) -> Floats:
    """For each code the smallest float64 whose general cell has that code or a higher one, by bisection."""
    low = np.full(len(codes), _ordered(np.array([-_LARGEST]))[0])
    high = np.full(len(codes), _ordered(np.array([_LARGEST]))[0])
    while (low < high).any():
        middle = (low >> 1) + (high >> 1) + (low & high & 1)
        reached = cells.general_codes(_value(middle)) >= codes
        low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
    return _value(low)


def _ordered(values: Floats) -> Ints:
    """Whole numbers in the order of the values."""
    bits = values.view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _value(ordered: Ints) -> Floats:
    bits = np.where(ordered >= 0, ordered, np.int64(-(2**63)) - ordered)
    return bits.astype(np.int64).view(np.float64)


def _with_points(belief: CellBelief, starts: Floats, logs: Floats) -> StepsBelief:
    """A point is a step of one value; after it what was said before goes on."""
    points = np.array(belief.cells.points, dtype=np.float64)
    if len(points) == 0:
        return StepsBelief(starts, logs)
    own = relative(belief.log_cells(belief.cells.point_codes()))
    after = np.nextafter(points, np.inf)
    edges = np.unique(np.concatenate([starts, points, after]))
    row = logs[np.searchsorted(starts, edges, side="right")]
    at = np.searchsorted(points, edges)
    is_point = (at < len(points)) & (points[np.minimum(at, len(points) - 1)] == edges)
    row[is_point] = own[at[is_point]]
    every = np.vstack([logs[:1], row])
    kept = _changes(every)
    return StepsBelief(edges[kept[1:] - 1], every[kept])


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
