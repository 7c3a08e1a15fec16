"""The cells of a number column as a family sees them: in order, with their places and counts."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ..base.arrays import Bools, Floats, Ints, safe_log, short_between
from ..base.errors import SettingsError
from ..base.records import Record
from ..data.blocks import N, Numbers
from ..exact.cells import Cells, distinct
from ..exact.counts import Counts
from .base import Belief, Context, Linear
from .categorical import sums_to_one
from .forms import CellsForm
from .support import ColumnTally, Support, share

_LARGEST = float(np.finfo(np.float64).max)
_HARDLY = 1e-6  # of the way from one cell's middle to the next: as far as a cut may be from where they meet


@dataclass(frozen=True)
class Histogram(Record):
    """The cells that hold anything, by place on the line, and what each class has in them."""

    cells: Cells
    codes: Ints
    low: Floats
    high: Floats
    point: Bools
    n: Floats  # cells × classes

    @property
    def middle(self) -> Floats:
        """The middle of each cell; the value itself for a point."""
        return middles(self.low, self.high)

    def middles_of(self, x: Floats) -> Floats:
        """The middle of the cell of each value."""
        return middles(*self.cells.edges(self.cells.codes(x)))

    @cached_property
    def gaps(self) -> Ints:
        """The cells after which the line can be cut: none that lies on both sides, as one around a point would."""
        return np.flatnonzero(can_be_cut(*self._around, self.middle))

    def cuts(self, after: Ints) -> Floats:
        """Where to cut the line after some of `gaps`: near the middle of the gap, in as few digits as may be."""
        reach, first = (each[after] for each in self._around)
        return cut_between(reach, first, self.middle[after], self.middle[after + 1])

    @cached_property
    def _around(self) -> tuple[Floats, Floats]:
        """How far the cells up to each one reach, and where those after it begin."""
        return np.maximum.accumulate(self.high)[:-1], np.minimum.accumulate(self.low[::-1])[::-1][1:]

    def with_one(self, code: int, weight: float, label: int) -> Histogram:
        """The histogram with one value more in a cell."""
        at = np.flatnonzero(self.codes == code)
        n = np.zeros((1, self.n.shape[1]))
        n[0, label] = weight
        if len(at):
            more = self.n.copy()
            more[at] += n
            return replace(self, n=more)
        codes = np.array([code])
        low, high = self.cells.edges(codes)
        new = (codes, low, high, self.cells.is_point(codes), n)
        old = (self.codes, self.low, self.high, self.point, self.n)
        whole = Histogram(self.cells, *(np.concatenate(each) for each in zip(old, new, strict=True)))
        return whole.only(np.lexsort((whole.high, whole.middle)))

    def only(self, which: Bools | Ints) -> Histogram:
        """The histogram of some of the cells, in the order of their numbers where these are given."""
        kept: Iterator[Any] = (each[which] for each in (self.codes, self.low, self.high, self.point, self.n))
        return Histogram(self.cells, *kept)


def middles(low: Floats, high: Floats) -> Floats:
    """The middle of each interval, the finite end of one that reaches to infinity."""
    return np.clip(np.where(low == high, low, low / 2 + high / 2), -_LARGEST, _LARGEST)


def can_be_cut(reach: Floats, first: Floats, middle: Floats) -> Bools:
    """After which cells of a line, along the last axis, it can be cut; see `Histogram.gaps`."""
    cut = np.maximum(middles(reach, first), np.minimum(np.nextafter(reach, np.inf), first))
    out: Bools = (reach <= first) & (middle[..., :-1] < cut) & (cut <= middle[..., 1:])
    return out


def cut_between(reach: Floats, first: Floats, before: Floats, after: Floats) -> Floats:
    """Where to cut between cells that reach so far and those that begin there, by the middles beside; few digits."""
    meet = reach == first  # cells without a gap: their edge, but for what hardly anybody can see
    side = np.where(meet, _HARDLY * after - _HARDLY * before, 0.0)
    return short_between(reach - side, first + side)


def read_cells(counts: Counts, context: Context, family: str) -> Histogram:
    """The histogram behind a column; refused where the schema gave it no cells."""
    if context.cells is None:
        raise SettingsError(
            f"the family {family!r} needs cells, and column {context.column!r} was counted without them",
            hint="let tb.infer make the schema (it looks at the data for cells), and share it between tallies.",
        )
    return counts.once(("cells", context.cells, context.n_classes), lambda: _read_cells(counts, context))


def _read_cells(counts: Counts, context: Context) -> Histogram:
    assert context.cells is not None
    sheet = counts.sheet("cells", N)
    return histogram(context.cells, sheet.slot_names, sheet.table("n", context.n_classes))


def histogram(cells: Cells, slots: Sequence[str], n: Floats) -> Histogram:
    """Counted cells by their place on the line."""
    codes = cells.slot_codes(slots)
    low, high = cells.edges(codes)
    whole = Histogram(cells, codes, low, high, cells.is_point(codes), n)
    return whole.only(np.lexsort((high, whole.middle)))


@dataclass(frozen=True)
class CellBelief(Belief):
    """A belief that looks only at the cell a value falls into."""

    cells: Cells
    n_classes: int

    @abstractmethod
    def log_cells(self, codes: Ints) -> Floats:
        """What each cell says, cells × classes; answers for any cell, counted or not."""

    def near(self) -> Floats:
        """Values around which what is said may change quickly."""
        return np.array(self.cells.points)

    def form(self) -> CellsForm:
        """What each cell says, as steps."""
        return CellsForm(self.cells, self.log_cells, self.near)

    def parts(self, block: Numbers) -> Floats:
        """What the value's cell says; 0 for missing."""
        out = np.zeros((block.rows, self.n_classes))
        there = block.present()
        codes, inverse = distinct(self.cells.codes(block.values[there]))
        if len(codes):
            out[there] = self.log_cells(codes)[inverse]
        return out


@dataclass(frozen=True)
class GroupBelief(CellBelief):
    """P(group given class) of groups of cells: bins, or levels; a cell of no group is no evidence."""

    probabilities: Floats  # groups × classes

    adds_up = property(lambda self: sums_to_one(self.probabilities))

    @abstractmethod
    def groups(self, codes: Ints) -> Ints:
        """The group of each cell, −1 for none."""

    def log_cells(self, codes: Ints) -> Floats:
        """log P of the cell's group."""
        return np.vstack([safe_log(self.probabilities), np.zeros(self.n_classes)])[self.groups(codes)]

    def support(self, counted: ColumnTally, block: Numbers) -> list[Support]:
        """The rows in the value's group."""
        sheet = counted.counts.sheet("cells", N)
        of_cell, n = self.groups(self.cells.slot_codes(sheet.slot_names)), sheet.table("n", counted.n_classes)
        at = self.groups(self.cells.codes(block.values))[0]
        total, slots = n[of_cell >= 0].sum(axis=0), self.table().rows
        draw = share(self.probabilities[at], counted.strength(total, slots), len(slots))
        return [Support(n[of_cell == at].sum(axis=0), total, draw)]

    def parameters(self) -> tuple[int, int]:
        """C·K raw, C·(K − 1) free, K groups."""
        k, c = self.probabilities.shape
        return c * k, c * max(k - 1, 0)

    def linear(self) -> Linear:
        """One feature per group: is the value in it?"""
        k, c = self.probabilities.shape

        def features(block: Any) -> Floats:
            there, which = block.present(), np.full(block.rows, -1, dtype=np.int64)
            which[there] = self.groups(self.cells.codes(block.values[there]))
            return np.vstack([np.eye(k), np.zeros(k)])[which]

        return Linear(self.table().rows, safe_log(self.probabilities).T, np.zeros(c), np.zeros(k), features)


def left_out(context: Context, n: Floats, slots: Sequence[str], which: Ints) -> Floats:
    """log P of each cell's group (`which` of those that have the counts n) without one row of the cell; 0 for none."""
    left = np.zeros((len(n) + 1, n.shape[1]))
    for group in np.unique(which[which >= 0]):
        less = n.copy()
        less[group] = np.maximum(less[group] - 1, 0.0)
        left[group] = safe_log(context.probabilities(less, slots)[group])
    return np.asarray(left[which])


def cauchy_mass(low: Floats, high: Floats, centre: float, scale: float) -> Floats:
    """The mass of a Cauchy curve between two edges; in the tails by 1/x, where the difference keeps its digits."""
    with np.errstate(over="ignore", divide="ignore"):
        a, b = (low - centre) / scale, (high - centre) / scale
        right, left = a > 0, b < 0
        near, far = np.where(right, a, np.where(left, -b, 1.0)), np.where(right, b, np.where(left, -a, 1.0))
        tail = np.arctan(1 / near) - np.arctan(1 / far)
    out: Floats = np.where(right | left, tail, np.arctan(b) - np.arctan(a)) / np.pi
    return out
