"""A number column as steps: which stretch of the line a value falls into decides what it says.

Kernel, bins and levels look only at the cell of a value. Here their cells become the places on the line where what they
say changes, found to the last bit, and what they say between them, up to what all classes share. So the belief needs
neither the cells nor the counts behind them.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ..base.arrays import Floats, Ints
from ..data.blocks import Numbers
from ..exact.cells import Cells
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
