"""Bins: a number column as a category of intervals.

    amounts    a one under the value's cell; a bin's count is the sum of its cells'
    estimate   P(bin given y) = n_by / n_y, smoothed like any category
    score      log P(bin given y)
    density    P(bin given y) · f(x) / f(bin),  f the kernel density of all classes together

The cuts are chosen at estimate time from the cells: by minimum description length (Fayyad and Irani 1993: split
where gain > [log₂(N − 1) + log₂(3^k − 2) − k·E + k₁·E₁ + k₂·E₂] / N), into equally filled, or equally wide bins. Or
they are given; a bin is made of whole cells, so a cut that parts no two of them is left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ..base.arrays import Floats, Ints, log_sum_exp, safe_log
from ..base.canon import number_text
from ..base.errors import SettingsError
from ..data.blocks import Numbers
from ..data.pairs import stretch_names
from ..data.schema import Column
from ..exact.cells import REACH, Cells, distinct
from ..exact.counts import Counts
from .base import WORST, Belief, Context, Family, Table
from .categorical import draw
from .histogram import GroupBelief, Histogram, can_be_cut, cut_between, left_out, middles, read_cells
from .kernel import KernelBelief, pooled
from .smoothing import is_number, is_plain

BINS = "P(bin given class)"  # the title of its table
METHODS = ("mdl", "frequency", "width", "given")
_DIGITS = 6  # of a cut in the name of a bin, where they are enough
MOST_BINS = 100_000  # room is made for each, however few values there are
_PARTS = 10  # of the rows, each held out in turn


@dataclass(frozen=True)
class Bins(Family):
    """Intervals: by "mdl", which looks at the classes, `bins` of them by "frequency" or "width" (None: √n), or "given".

    Given are the cuts between them:

    >>> tb.families.Bins("given", (18, 65)).describe()
    'bins (method=given, bins=(18.0, 65.0))'
    """

    method: str = "mdl"
    bins: int | tuple[float, ...] | None = None

    name = "bins"
    kinds = ("number",)

    def __post_init__(self) -> None:
        if self.method == "given":
            object.__setattr__(self, "bins", _rising(self.bins))
        elif self.method not in METHODS or not (
            self.bins is None or (is_number(self.bins) and 1 <= self.bins <= MOST_BINS)  # type: ignore[operator]
        ):
            raise SettingsError(
                f"bins of method {self.method!r}, number {self.bins!r}",
                hint=f"take the method 'mdl', 'frequency' or 'width' and from 1 to {MOST_BINS:,} bins, or give their "
                "cuts: Bins('given', (18, 65)).",
            )

    def estimate(self, counts: Counts, context: Context) -> BinsBelief:
        """The cuts and the smoothed table."""
        h = read_cells(counts, context, self.name)
        cuts = self.cuts(h)
        n = by_bin(h, cuts)
        names = () if is_plain(context.smoothing) else _names(cuts, h.middle)
        return BinsBelief(h.cells, context.n_classes, context.probabilities(n, names), cuts, h)

    def leave_one_out(self, h: Histogram, counts: Counts, context: Context) -> tuple[Floats, Floats]:
        """log P of each cell's bin: as counted, and with one row of the cell taken out, the cuts as they are."""
        belief = self.estimate(counts, context)
        left = left_out(context, by_bin(h, belief.cuts), _names(belief.cuts, h.middle), belief.which(h.middle))
        return belief.log_cells(h.codes), left

    def one_more(
        self, counts: Counts, context: Context, more: Numbers, labels: Ints, weights: Floats, asked: Numbers
    ) -> Floats | None:
        """A value more may move the cuts, which do not look at the label unless they are those of "mdl"."""
        h = read_cells(counts, context, self.name)
        if not is_plain(context.smoothing) or not len(h.codes):
            return None
        out = np.zeros((more.rows, asked.rows, context.n_classes))
        has, there = more.present(), np.flatnonzero(asked.present())
        if not has.all():  # it would be counted without a value: all is as it was
            out[~has] = self.estimate(counts, context).parts(asked)
        cases = np.flatnonzero(has)
        codes, labels, weights = h.cells.codes(more.values[cases]), labels[cases], weights[cases]
        seen = labels if self.method == "mdl" else np.zeros_like(labels)
        keys = list(zip(codes.tolist(), weights.tolist(), seen.tolist(), strict=True))
        number = {key: i for i, key in enumerate(dict.fromkeys(keys))}
        of = np.array([number[key] for key in keys], dtype=np.int64)
        all_cuts = self._cuts_with(h, list(number))
        sizes = np.array([len(cuts) for cuts in all_cuts], dtype=np.int64)
        x, inverse = np.unique(h.middles_of(asked.values[there]), return_inverse=True)
        middle, up_to = middles(*h.cells.edges(codes)), np.vstack([np.zeros(context.n_classes), np.cumsum(h.n, axis=0)])
        for size in np.unique(sizes):  # tables of one size are smoothed as one: bins × cases × classes
            some = np.flatnonzero(sizes[of] == size)
            j = np.arange(len(some))
            which, back = np.unique(of[some], return_inverse=True)
            asked_in = np.stack([which_bin(all_cuts[i], x) for i in which.tolist()])[back]
            cuts = np.array([all_cuts[i] for i in which.tolist()]).reshape(len(which), size)[back]
            ends = np.pad(np.searchsorted(h.middle, cuts), ((0, 0), (1, 1)), constant_values=(0, len(h.middle)))
            n = np.ascontiguousarray(np.diff(up_to[ends], axis=1).transpose(1, 0, 2))
            n[(cuts <= middle[some, None]).sum(axis=1), j, labels[some]] += weights[some]
            log = safe_log(context.probabilities(n, ()))
            out[cases[some, None], there] = log[asked_in, j[:, None]][:, inverse]
        return out

    def _cuts_with(self, h: Histogram, more: list[tuple[int, float, int]]) -> list[Floats]:
        """The cuts with one value more, for each of some (code, weight, label) by itself."""
        whole = h.n.sum(axis=1)
        steady = (
            bool((whole > 0).all()) and np.array_equal(whole, np.rint(whole)) and all(w % 1 == 0 for _, w, _ in more)
        )
        if self.method != "frequency" or not isinstance(self.bins, int) or not steady:
            return [self.cuts(h.with_one(*each)) for each in more]
        codes, weights = np.array([code for code, *_ in more], dtype=np.int64), np.array([w for _, w, _ in more])
        return _filled_with(h, codes, weights, self.bins) if more else []

    def held_out_score(self, h: Histogram, context: Context) -> float | None:
        """Cuts that look at the labels are made anew without every tenth row, which is then asked about.

        The rows are dealt in the order of class and cell, so that every part is like the whole.
        """
        if self.method != "mdl":
            return None
        up_to = np.cumsum(h.n.T.ravel())  # rows, class by class
        parts = int(np.clip(up_to[-1] if len(up_to) else 0, 2, _PARTS))
        score = 0.0
        for part in range(parts):
            dealt = up_to // parts + np.clip(up_to % parts - part, 0.0, 1.0)
            held = np.diff(dealt, prepend=0.0).reshape(h.n.shape[1], -1).T
            rest = replace(h, n=np.maximum(h.n - held, 0.0))
            cuts = self.cuts(rest)
            p = context.probabilities(by_bin(rest, cuts), _names(cuts, h.middle))[which_bin(cuts, h.middle)]
            joint = safe_log(p) + safe_log(rest.n.sum(axis=0))
            share = joint - log_sum_exp(joint)[:, None]
            score += float(np.sum(np.where(held > 0, held * np.maximum(share, WORST), 0.0)))
        return score

    def for_drawn(self, belief: Belief, column: Column) -> Bins:
        """At the same cuts: of drawn rows others are equally filled or equally wide."""
        assert isinstance(belief, BinsBelief)
        return Bins("given", tuple(belief.cuts.tolist()))

    def cuts(self, h: Histogram) -> Floats:
        """Values between cells at which bins part."""
        if self.method == "given":
            middle = np.sort(middles(*h.cells.edges(_cells(h.cells))))
            given = np.array(self.bins, dtype=np.float64)
            below, first = np.unique(np.searchsorted(middle, given), return_index=True)
            return given[first[(below > 0) & (below < len(middle))]]
        if len(h.gaps) == 0:
            return np.zeros(0)
        first = np.append(0, h.gaps + 1)  # of cells that no cut parts
        n = np.add.reduceat(h.n, first, axis=0)
        if self.method == "mdl":
            return h.cuts(h.gaps[_mdl_cuts(n)])
        total = n.sum(axis=1)
        assert not isinstance(self.bins, tuple)
        bins = self.bins or int(np.clip(np.sqrt(total.sum()), 2, 30))
        if self.method == "width":
            edges = np.linspace(h.middle[0], h.middle[-1], bins + 1)[1:-1]
            at = np.searchsorted(h.middle[first], edges, side="left") - 1
        else:
            at = equally_filled(total, bins)
        return h.cuts(h.gaps[np.unique(np.clip(at, 0, len(h.gaps) - 1))])


def _rising(cuts: Any) -> tuple[float, ...]:
    """The cuts that were given."""
    found = tuple(cuts) if isinstance(cuts, Iterable) and not isinstance(cuts, str) else (cuts,)
    numbers = len(found) < MOST_BINS and all(is_number(v) and np.isfinite(v) for v in found)
    if not numbers or any(u >= v for u, v in pairwise(found)):
        raise SettingsError(
            f"bins given by {cuts!r:.60}",
            hint="give the cuts between them, from left to right and each once: Bins('given', (18, 65)).",
        )
    return tuple(map(float, found))


def _cells(cells: Cells) -> Ints:
    """Every cell that a curve has mass in."""
    return np.concatenate([np.arange(-REACH, REACH), cells.point_codes()])


def equally_filled(total: Floats, bins: int) -> Ints:
    """The last cell of each bin but the final one, so that bins of whole cells are filled as equally as can be."""
    if len(total) < 2:
        return np.zeros(0, dtype=np.int64)
    below = np.cumsum(total) / max(float(total.sum()), 1e-300)
    wanted = np.arange(1, bins) / bins
    nearer = _nearer(below, np.minimum(np.searchsorted(below[:-1], wanted), len(total) - 2), wanted)
    return np.unique(np.searchsorted(below[:-1], below[nearer]))  # of cells without rows the first


def _filled_with(h: Histogram, codes: Ints, weights: Floats, bins: int) -> list[Floats]:
    """The cuts into equally filled bins with one value more, for each of some by itself: all of them at once.

    Its cell is put beside those that there are, also where it is one of them: no cut parts the two.
    """
    low_, high_ = h.cells.edges(codes)
    middle_, place = middles(low_, high_)[:, None], np.arange(len(h.codes) + 1)
    after = (h.middle < middle_) | ((h.middle == middle_) & (h.high <= high_[:, None]))
    at = after.sum(axis=1)[:, None]
    before = np.minimum(place - (place > at), len(h.codes) - 1)

    def inserted(known: Floats, new: Floats) -> Floats:
        return np.where(place == at, new[:, None], known[before])

    low, high, middle = inserted(h.low, low_), inserted(h.high, high_), inserted(h.middle, middle_[:, 0])
    total = inserted(h.n.sum(axis=1), weights)
    reach = np.maximum.accumulate(high, axis=1)[:, :-1]
    first = np.minimum.accumulate(low[:, ::-1], axis=1)[:, ::-1][:, 1:]
    gap = can_be_cut(reach, first, middle)
    filled = np.cumsum(total, axis=1)
    share = filled[:, :-1] / filled[:, -1:]
    wanted = np.arange(1, bins) / bins
    sizes = gap.sum(axis=1)
    gaps = np.argsort(~gap, axis=1, kind="stable")  # the cells after which it can be cut, first
    below = np.take_along_axis(share, gaps, axis=1)
    found = [np.searchsorted(some[:size], wanted) for some, size in zip(below, sizes.tolist(), strict=True)]
    at = np.minimum(np.stack(found), np.maximum(sizes - 1, 0)[:, None])
    chosen = np.zeros(gap.shape, dtype=bool)
    np.put_along_axis(chosen, np.take_along_axis(gaps, _nearer(below, at, wanted), axis=1), True, axis=1)
    chosen &= gap
    case, cell = np.nonzero(chosen)
    ends = np.stack([reach[case, cell], first[case, cell], middle[case, cell], middle[case, cell + 1]])
    different, of = np.unique(ends, axis=1, return_inverse=True)
    cuts = cut_between(*different)[of.ravel()]
    return np.split(cuts, np.cumsum(np.bincount(case, minlength=len(codes)))[:-1])


def _nearer(below: Floats, at: Ints, wanted: Floats) -> Ints:
    """Of shares that grow along the last axis, which is nearer to what is wanted: each, or the one before it."""
    before = np.maximum(at - 1, 0)
    told = (below[place] if below.ndim == 1 else np.take_along_axis(below, place, axis=-1) for place in (at, before))
    far, near = (np.abs(share - wanted) for share in told)
    out: Ints = np.where(near <= far, before, at)
    return out


def which_bin(cuts: Floats | Sequence[float], x: Floats) -> Ints:
    """The bin of each value."""
    return np.searchsorted(cuts, x, side="right").astype(np.int64)


def by_bin(h: Histogram, cuts: Floats) -> Floats:
    """Rows of each class in each bin."""
    n = np.zeros((len(cuts) + 1, h.n.shape[1]))
    np.add.at(n, which_bin(cuts, h.middle), h.n)
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


def _names(cuts: Floats, middle: Floats) -> list[str]:
    """Names of bins: cuts in full where that is short, else in as many digits as part the counted cells likewise."""
    short, same = cuts, which_bin(cuts, middle)
    for digits in range(_DIGITS, 18):
        near = [c if len(number_text(c)) <= _DIGITS + 3 else float(f"{c:.{digits}g}") for c in cuts.tolist()]
        if len(set(near)) == len(near) and np.array_equal(which_bin(near, middle), same):
            short = np.array(near)
            break
    return stretch_names(short)


@dataclass(frozen=True)
class BinsBelief(GroupBelief):
    """P(bin given class), by the cell that a value falls into."""

    cuts: Floats
    h: Histogram

    def which(self, x: Floats) -> Ints:
        """The bin of each value."""
        return which_bin(self.cuts, x)

    def groups(self, codes: Ints) -> Ints:
        """The bin that holds the middle of each cell."""
        return self.which(middles(*self.cells.edges(codes)))

    def near(self) -> Floats:
        """Counted cells, and the cuts."""
        return np.concatenate([self.h.middle, self.cuts])

    @cached_property
    def _inside(self) -> tuple[KernelBelief, Floats]:
        """The curve of all classes together, and its mass in each bin."""
        curve = pooled(self.h)
        codes = _cells(self.cells)
        mass = np.zeros(len(self.cuts) + 1)
        np.add.at(mass, self.groups(codes), curve.mass(codes)[:, 0])
        return curve, mass

    def base(self, block: Numbers) -> Floats:
        """log density within the value's bin: that of all classes together, cut off at the bin's ends."""
        out = np.zeros(block.rows)
        there = block.present()
        codes, inverse = distinct(self.cells.codes(block.values[there]))
        if len(codes):
            curve, mass = self._inside
            out[there] = (curve.log_cells(codes)[:, 0] - safe_log(mass)[self.groups(codes)])[inverse]
        return out

    def bars(self, low: float, high: float) -> tuple[Floats, Floats]:
        """The bins between two ends, and how dense each class is in them."""
        inside = self.cuts[(self.cuts > low) & (self.cuts < high)]
        edges = np.concatenate(([low], inside, [high]))
        return edges, self.probabilities[self.which(middles(edges[:-1], edges[1:]))] / np.diff(edges)[:, None]

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """A bin by its probability, then one of its cells by the curve of all classes, and any value of the cell."""
        codes = _cells(self.cells)
        low, high = self.cells.edges(codes)
        curve, _ = self._inside
        mass, of_cell = curve.mass(codes), self.groups(codes)
        bins = draw(self.probabilities, labels, rng)
        values = np.empty(len(labels))
        for b in np.unique(bins):
            inside, rows = np.flatnonzero(of_cell == b), np.flatnonzero(bins == b)
            at = inside[draw(mass[inside], 0 * rows, rng)]
            values[rows] = low[at] + rng.random(len(at)) * (high[at] - low[at])
        return pa.array(values)

    def table(self) -> Table:
        """P(bin given class)."""
        return Table(BINS, _names(self.cuts, self.h.middle), self.probabilities, "bins")
