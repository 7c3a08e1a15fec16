"""Bins: a number column as a category of intervals.

    amounts    a one under the value's cell; a bin's count is the sum of its cells'
    estimate   P(bin given y) = n_by / n_y, smoothed like any category
    score      log P(bin given y)

The cuts are chosen at estimate time from the cells: by minimum description length (Fayyad and Irani 1993: split
where gain > [log₂(N − 1) + log₂(3^k − 2) − k·E + k₁·E₁ + k₂·E₂] / N), into equally filled, or equally wide bins.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa

from ..base.arrays import Floats, Ints, safe_log
from ..base.canon import number_text
from ..base.errors import SettingsError
from ..data.blocks import Numbers
from ..exact.cells import MIDDLE
from ..exact.counts import Counts
from .base import Context, Family, Table
from .categorical import draw
from .histogram import GroupBelief, Histogram, cauchy_mass, left_out, middles, read_cells

METHODS = ("mdl", "frequency", "width")
MOST_BINS = 100_000  # room is made for each, however few values there are


@dataclass(frozen=True)
class Bins(Family):
    """Intervals: by "mdl", which looks at the classes, or `bins` of them by "frequency" or "width" (None: √n)."""

    method: str = "mdl"
    bins: int | None = None

    name = "bins"
    kinds = ("number",)

    def __post_init__(self) -> None:
        if self.method not in METHODS or (self.bins is not None and not 1 <= self.bins <= MOST_BINS):
            raise SettingsError(
                f"bins of method {self.method!r}, number {self.bins!r}",
                hint=f"take the method 'mdl', 'frequency' or 'width', and from 1 to {MOST_BINS:,} bins.",
            )

    def estimate(self, counts: Counts, context: Context) -> BinsBelief:
        """The cuts and the smoothed table."""
        h = read_cells(counts, context, self.name)
        cuts = self._cuts(h)
        n = _by_bin(h, cuts)
        names = _names(cuts)
        return BinsBelief(h.cells, context.n_classes, context.probabilities(n, names), cuts, h)

    def leave_one_out(self, h: Histogram, counts: Counts, context: Context) -> tuple[Floats, Floats]:
        """log P of each cell's bin: as counted, and with one row of the cell taken out (the cuts stay)."""
        belief = self.estimate(counts, context)
        left = left_out(context, _by_bin(h, belief.cuts), _names(belief.cuts), belief.which(h.middle))
        return belief.log_cells(h.codes), left

    def _cuts(self, h: Histogram) -> Floats:
        """Values between cells at which bins part."""
        if len(h.codes) < 2:
            return np.zeros(0)
        apart = (
            h.high[:-1] <= h.low[1:]
        )  # not so of a point that lies inside another cell: then their middles part them
        between = np.where(apart, middles(h.high[:-1], h.low[1:]), middles(h.middle[:-1], h.middle[1:]))
        if self.method == "mdl":
            return between[_mdl_cuts(h.n)]
        total = h.n.sum(axis=1)
        bins = self.bins or int(np.clip(np.sqrt(total.sum()), 2, 30))
        if self.method == "width":
            edges = np.linspace(h.middle[0], h.middle[-1], bins + 1)[1:-1]
            at = np.searchsorted(h.middle, edges, side="left") - 1
        else:
            at = equally_filled(total, bins)
        return between[np.unique(np.clip(at, 0, len(between) - 1))]


def equally_filled(total: Floats, bins: int) -> Ints:
    """The last cell of each bin but the final one, so that bins of whole cells are filled as equally as can be."""
    if len(total) < 2:
        return np.zeros(0, dtype=np.int64)
    below = np.cumsum(total) / max(float(total.sum()), 1e-300)
    wanted = np.arange(1, bins) / bins
    at = np.clip(np.searchsorted(below[:-1], wanted), 0, len(total) - 2)
    before = np.maximum(at - 1, 0)
    nearer = np.where(np.abs(below[before] - wanted) <= np.abs(below[at] - wanted), before, at)
    return np.unique(np.searchsorted(below[:-1], below[nearer]))  # of cells without rows the first


def _by_bin(h: Histogram, cuts: Floats) -> Floats:
    n = np.zeros((len(cuts) + 1, h.n.shape[1]))
    np.add.at(n, np.searchsorted(cuts, h.middle, side="right"), h.n)
    return n


def _bits(n: Floats) -> tuple[Floats, Floats]:
    """How many rows there are along the last axis, N, and N times the entropy in bits of the class shares."""
    size = n.sum(axis=-1)
    return size, _n_log_n(size) - _n_log_n(n).sum(axis=-1)


def _n_log_n(n: Floats) -> Floats:
    out: Floats = n * np.log2(np.maximum(n, 1e-300))
    return out


def _mdl_cuts(n: Floats) -> list[int]:
    """Indices i such that a cut falls between cell i and cell i + 1."""
    found: list[int] = []
    everything = n.sum(axis=0)
    stack = [(0, len(n), everything, *map(float, _bits(everything)))]
    while stack:
        start, stop, total, size, bits = stack.pop()
        if stop - start < 2 or size < 2:
            continue
        sides = np.empty((2, stop - start - 1, n.shape[1]))  # up to each cell, and after it
        np.cumsum(n[start : stop - 1], axis=0, out=sides[0])
        np.subtract(total, sides[0], out=sides[1])
        sizes, all_bits = _bits(sides)
        gain = (bits - all_bits[0] - all_bits[1]) / size
        gain[(sizes == 0).any(axis=0)] = -1.0
        best = int(np.argmax(gain))
        if gain[best] < 0:
            continue
        k, (k1, k2) = int(np.count_nonzero(total)), np.count_nonzero(sides[:, best], axis=1).tolist()
        (left_size, right_size), (left_bits, right_bits) = sizes[:, best].tolist(), all_bits[:, best].tolist()
        entropies = k * bits / size - k1 * left_bits / left_size - k2 * right_bits / right_size
        price = np.log2(max(size - 1, 1.0)) + np.log2(3.0 ** min(k, 600) - 2) - entropies
        if gain[best] > price / size:
            cut = start + best + 1
            found.append(start + best)
            stack += [
                (start, cut, sides[0, best], left_size, left_bits),
                (cut, stop, sides[1, best], right_size, right_bits),
            ]
    return sorted(found)


def _names(cuts: Floats) -> list[str]:
    if len(cuts) == 0:
        return ["any"]
    text = [number_text(float(f"{c:.6g}")) for c in cuts]
    return [f"< {text[0]}", *(f"{a} to {b}" for a, b in pairwise(text)), f"≥ {text[-1]}"]


@dataclass(frozen=True)
class BinsBelief(GroupBelief):
    """P(bin given class), by the cell that a value falls into."""

    cuts: Floats
    h: Histogram

    def which(self, x: Floats) -> Ints:
        """The bin of each value."""
        return np.searchsorted(self.cuts, x, side="right").astype(np.int64)

    def groups(self, codes: Ints) -> Ints:
        """The bin that holds the middle of each cell."""
        return self.which(middles(*self.cells.edges(codes)))

    def near(self) -> Floats:
        """Counted cells, and the cuts."""
        return np.concatenate([self.h.middle, self.cuts])

    def base(self, block: Numbers) -> Floats:
        """log density within the value's bin, over all classes: the bin's cells, and one row's share spread wide."""
        out = np.zeros(block.rows)
        there = block.present()
        codes, inverse = np.unique(self.cells.codes(block.values[there]), return_inverse=True)
        low, high = self.cells.edges(codes)
        which, of_cell = self.which(middles(low, high)), self.which(self.h.middle)
        everyone = self.h.n.sum(axis=1)
        rows = np.bincount(of_cell, weights=everyone, minlength=len(self.cuts) + 1)[which]
        counted = dict(zip(self.h.codes.tolist(), everyone.tolist(), strict=True))
        n = np.array([counted.get(c, 0.0) for c in codes.tolist()])
        edges = np.concatenate(([-np.inf], self.cuts, [np.inf]))
        scale = float(np.ldexp(float(MIDDLE), self.cells.exponent))
        wide = cauchy_mass(low, high, self.cells.centre, scale)
        wide /= np.maximum(cauchy_mass(edges[which], edges[which + 1], self.cells.centre, scale), 1e-300)
        width = np.where(low == high, 1.0, np.minimum(high - low, 1e308))
        out[there] = (safe_log((n + wide) / (rows + 1)) - np.log(width))[inverse]
        return out

    def bars(self, low: float, high: float) -> tuple[Floats, Floats]:
        """The bins between two ends, and how dense each class is in them."""
        inside = self.cuts[(self.cuts > low) & (self.cuts < high)]
        edges = np.concatenate(([low], inside, [high]))
        return edges, self.probabilities[self.which(middles(edges[:-1], edges[1:]))] / np.diff(edges)[:, None]

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """A bin by its probability, then one of the cells counted in it, over all classes, and its middle."""
        of_cell = self.which(self.h.middle)
        everyone = self.h.n.sum(axis=1)
        bins = draw(self.probabilities, labels, rng)
        values = np.full(len(labels), self.cells.centre)
        for b in np.unique(bins):
            inside = np.flatnonzero(of_cell == b)
            rows = np.flatnonzero(bins == b)
            if len(inside):
                values[rows] = self.h.middle[inside[draw(everyone[inside, None], 0 * rows, rng)]]
            elif len(self.cuts):
                values[rows] = self.cuts[min(int(b), len(self.cuts) - 1)]
        return pa.array(values)

    def table(self) -> Table:
        """P(bin given class)."""
        return Table("P(bin given class)", _names(self.cuts), self.probabilities, "bins")
