"""Kernel: a smooth curve through the histogram, for columns that no bell curve fits.

    amounts    a one under the value's cell
    estimate   mass of cell [a, b) = Σ_g n_gy/n_y · [Φ((b − m_g)/h) − Φ((a − m_g)/h)],  m_g the middle of cell g
    score      log (mass / width) of the value's cell

The bandwidth h is the one of a short list under which the column's own values, each left out in turn, are likeliest
(or Silverman's rule, or given). A share of about one row in n goes to a wide Cauchy curve that all classes have in
common, so that an outlier is weak evidence instead of an impossibility. Values that repeat have an atom: a
probability of their own. A column of few distinct values is smoothed over those values instead of the line.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from ..base.arrays import Bools, Floats, Ints, weighted_quantiles
from ..base.errors import SettingsError
from ..base.lazy import ndtr
from ..data.blocks import Numbers
from ..data.schema import Column
from ..exact.counts import Counts
from ..exact.line import MIDDLE
from .base import Belief, Context, Family, Table
from .categorical import draw
from .histogram import CellBelief, Histogram, cauchy_mass, middles, read_cells
from .support import ColumnTally, Support, mass

_NARROWEST = float(np.finfo(float).smallest_subnormal)  # a bandwidth may be tiny, but not zero
_NOTHING = 39.0  # bandwidths: the mass beyond is zero in a float64
_BANDWIDTHS = np.geomspace(1 / 128, 1.0, 10)  # candidates, in deviations of the whole column
_CELLS = 64.0  # cells to a deviation, of what the first look found without its outliers: 50 to 100 of a bell curve


@dataclass(frozen=True)
class Kernel(Family):
    """A kernel density; bandwidth "loo" (by leave-one-out), "silverman", or a number in the column's own units.

    Of a column with few different values it smooths over these values, and any other is no evidence.

    >>> rows = {"x": [i * 0.37 for i in range(40)], "y": ["low"] * 20 + ["high"] * 20}
    >>> tb.textbook(rows, "y", families={"x": tb.families.Kernel(bandwidth=0.5)}).predict({"x": [6.1, 9.9]}).tolist()
    ['low', 'high']
    """

    bandwidth: str | float = "loo"

    name = "kernel"
    kinds = ("number",)

    def __post_init__(self) -> None:
        number = not isinstance(self.bandwidth, str)
        if not (number and self.bandwidth > 0) and self.bandwidth not in ("loo", "silverman"):  # type: ignore[operator]
            raise SettingsError(f"bandwidth={self.bandwidth!r}", hint="take 'loo', 'silverman' or a number above 0.")

    def estimate(self, counts: Counts, context: Context) -> KernelBelief:
        """A bandwidth per class, and the histogram it smooths."""
        h = read_cells(counts, context, self.name)
        empty = h.n.sum(axis=0) == 0  # a class without a value is taken like all classes together: no evidence
        h = replace(h, n=np.where(empty, h.n.sum(axis=1, keepdims=True), h.n))
        flat = _flat(h)
        if not isinstance(self.bandwidth, str):
            return replace(flat, bandwidth=np.full(context.n_classes, float(self.bandwidth)))
        if self.bandwidth == "silverman":
            return replace(flat, bandwidth=_silverman(h))
        return replace(flat, bandwidth=counts.once(("bandwidth", h.cells, context.n_classes), lambda: _likeliest(flat)))

    def for_drawn(self, belief: Belief, column: Column) -> Family:
        """With a bandwidth that falls as rows grow in number: a given one would smooth the curve once more.

        Over points, which rows beside them blur however many there are, each point is a bin by itself.
        """
        if column.cells is not None and column.cells.discrete:
            from .bins import Bins  # which stand on kernels

            points = column.cells.point_values
            cuts = np.unique([points, np.nextafter(points, np.inf)])
            return Bins("given", tuple(cuts[np.isfinite(cuts)].tolist()))
        return self if isinstance(self.bandwidth, str) else Kernel()

    def leave_one_out(self, h: Histogram, counts: Counts, context: Context) -> tuple[Floats, Floats]:
        """log mass of each cell for each class: as counted, and with one row of the cell taken out."""
        belief = self.estimate(counts, context)
        places = belief.places(h.codes)
        return _log(belief.mass_at(places, 0)), _log(belief.mass_at(places, 1))


def _spread(h: Histogram) -> float:
    """The deviation of the whole column as its cells show it, at least a cell's width."""
    n, x = h.n.sum(axis=1), h.middle
    width = max(float(np.ldexp(1.0, h.cells.exponent)), _NARROWEST)
    if n.sum() <= 0:
        return width
    top = max(float(np.abs(x).max()), np.finfo(float).tiny)
    x = x / top  # so that no square overflows
    mean = float(np.average(x, weights=n))
    return max(top * float(np.sqrt(np.average((x - mean) ** 2, weights=n))), width)


def _silverman(h: Histogram) -> Floats:
    """0.9 · min(σ, IQR/1.34) · n^(−1/5) of each class (Silverman 1986), at least a quarter of a cell."""
    out = np.empty(h.n.shape[1])
    for y in range(len(out)):
        n = h.n[:, y]
        sigma = _spread(replace(h, n=n[:, None]))
        low, high = weighted_quantiles(h.middle, n, [0.25, 0.75], max(n.sum(), 1.0)) if len(n) else (0.0, 0.0)
        out[y] = 0.9 * min(sigma, float(high - low) / 1.34 or sigma) * max(n.sum(), 1.0) ** -0.2
    return np.maximum(out, max(float(np.ldexp(0.25, h.cells.exponent)), _NARROWEST))


def _flat(h: Histogram) -> KernelBelief:
    """The kernel density of a histogram with the widest bandwidth."""
    spread = _spread(h)
    return KernelBelief(h.cells, h.n.shape[1], h, np.full(h.n.shape[1], spread), spread)


def pooled(h: Histogram) -> KernelBelief:
    """One kernel density for the rows of all classes together."""
    flat = _flat(replace(h, n=h.n.sum(axis=1, keepdims=True)))
    return replace(flat, bandwidth=_likeliest(flat))


def _likeliest(belief: KernelBelief) -> Floats:
    """For each class the bandwidth under which its own values, each left out, are likeliest.

    Outliers stretch the deviation, but not the cells: where it is that of outliers, widths of cells are tried as well.
    """
    scale, cell = belief.scale, float(np.ldexp(1.0, belief.cells.exponent))
    scales = [scale, _CELLS * cell] if scale * _BANDWIDTHS[0] > cell else [scale]
    bandwidths = np.maximum(np.multiply.outer(scales, _BANDWIDTHS).ravel(), _NARROWEST)
    n, tried = belief.h.n, belief.tried(belief.places(belief.h.codes), bandwidths)
    scores = np.sum(np.where(n > 0, n * _log(tried), 0.0), axis=1)
    return np.asarray(bandwidths[np.argmax(scores, axis=0)])


def _log(mass: Floats) -> Floats:
    """The logarithm, at least −690."""
    return np.log(np.maximum(mass, 1e-300))


@dataclass(frozen=True)
class Places:
    """Where some cells lie, which does not depend on the bandwidth."""

    codes: Ints
    point: Bools
    low: Floats  # of the cells that are no points
    high: Floats
    middle: Floats
    common: Floats  # their mass under the curve that all classes share
    counted: Floats  # what the points have
    line: KernelBelief  # the same belief of the values that are no points


@dataclass(frozen=True)
class KernelBelief(CellBelief):
    """The smoothed histogram of each class."""

    h: Histogram
    bandwidth: Floats
    scale: float  # of the Cauchy curve that all classes share

    def mass(self, codes: Ints) -> Floats:
        """P(cell given class) of any cells."""
        return self._over_points(codes, 0) if self.cells.discrete else self.mass_at(self.places(codes), 0)

    def log_cells(self, codes: Ints) -> Floats:
        """log density: mass over width; a point has mass only."""
        low, high = self.cells.edges(codes)
        width = np.where(self.cells.is_point(codes), 1.0, np.minimum(high - low, 1e308))
        return _log(self.mass(codes)) - np.log(width)[:, None]

    def places(self, codes: Ints) -> Places:
        """Where some cells lie."""
        point = self.cells.is_point(codes)
        low, high = self.cells.edges(codes[~point])
        line = replace(self, h=self.h.only(~self.h.point)) if self.h.point.any() else self
        common = self._cauchy(codes[~point])
        return Places(codes, point, low, high, middles(low, high), common, self._counted(codes[point]), line)

    def mass_at(self, at: Places, left_out: int) -> Floats:
        """P(cell given class); with `left_out=1`, as if one row of the cell had not been counted."""
        if self.cells.discrete:
            return self._over_points(at.codes, left_out)
        line = replace(at.line, bandwidth=self.bandwidth)
        smooth = line.mixed(at.low, at.high, at.middle, at.common, left_out, at.codes[~at.point])
        return self._with_atoms(at, left_out, smooth)

    def tried(self, at: Places, bandwidths: Floats) -> Floats:
        """bandwidths × cells × classes: the mass with one row left out, if all classes had that bandwidth."""
        if self.cells.discrete:
            each = (replace(self, bandwidth=np.full(self.n_classes, b)) for b in bandwidths)
            return np.stack([b.mass_at(at, left_out=1) for b in each])
        every = np.full(self.n_classes, True)
        smooth = at.line.smooth(at.low, at.high, at.middle, bandwidths, every, 1, at.codes[~at.point])
        return self._with_atoms(at, 1, _with_common(smooth, at.line.total(1), at.common))

    def _with_atoms(self, at: Places, left_out: int, smooth: Floats) -> Floats:
        """Atoms at the points, (n_a + 1/slots)/(n + 1) each; the smooth curve has the rest."""
        n = np.maximum(self.h.n.sum(axis=0) - left_out, 0.0)
        slots = len(self.cells.points) + 1
        share = (at.line.total(left_out) + 1 / slots) / (n + 1)
        if not at.point.any():
            return np.asarray(share * smooth)
        out = np.empty((*smooth.shape[:-2], len(at.codes), self.n_classes))
        out[..., at.point, :] = (np.maximum(at.counted - left_out, 0.0) + 1 / slots) / (n + 1)
        out[..., ~at.point, :] = share * smooth
        return out

    def _over_points(self, codes: Ints, left_out: int) -> Floats:
        """A point owns the line half-way to its neighbours; values beside the points have a share of their own."""
        at = self.cells.is_point(codes)
        outside = (self.h.n[~self.h.point].sum(axis=0) + 0.5) / (self.h.n.sum(axis=0) + 1)
        points = np.array(self.cells.points)
        between = np.concatenate(([-np.inf], middles(points[:-1], points[1:]), [np.inf]))
        value = self.cells.edges(codes[at])[0]
        place = np.searchsorted(points, value)
        even = np.full(len(value), 1.0 / len(points))
        out = np.empty((len(codes), self.n_classes))
        out[at] = (1 - outside) * self.mixed(between[place], between[place + 1], value, even, left_out)
        out[~at] = outside * self._cauchy(codes[~at])[:, None]
        return out

    def _counted(self, codes: Ints) -> Floats:
        if len(codes) == 0:
            return np.zeros((0, self.n_classes))
        place = {c: i for i, c in enumerate(self.h.codes.tolist())}
        none = np.zeros(self.n_classes)
        rows = [self.h.n[place[c]] if c in place else none for c in codes.tolist()]
        return np.array(rows).reshape(len(codes), self.n_classes)

    def total(self, left_out: int) -> Floats:
        """How many rows the smooth curve is made of."""
        return np.asarray(np.maximum(self.h.n.sum(axis=0) - left_out, 0.0))

    def mixed(
        self, low: Floats, high: Floats, middle: Floats, common: Floats, left_out: int, cells: Ints | None = None
    ) -> Floats:
        """The kernel mass of intervals, with one row's share given to the common curve; `cells` if they are cells."""
        kernel = np.empty((len(low), self.n_classes))
        for width in np.unique(self.bandwidth):
            y = self.bandwidth == width
            kernel[:, y] = self.smooth(low, high, middle, np.array([width]), y, left_out, cells)[0]
        return _with_common(kernel, self.total(left_out), common)

    def smooth(
        self, low: Floats, high: Floats, middle: Floats, widths: Floats, y: Bools, left_out: int, cells: Ints | None
    ) -> Floats:
        """The kernel mass of intervals alone, for each of some bandwidths and classes."""
        sums = self._sums(low, high, widths, y, cells)
        own = left_out * _between(low, high, middle, widths[:, None])
        total = self.total(left_out)[y]  # weights may be less than one row
        return np.asarray(np.maximum(sums - own[:, :, None], 0.0) / np.where(total > 0, total, 1.0))

    def _sums(self, low: Floats, high: Floats, widths: Floats, y: Bools, cells: Ints | None) -> Floats:
        """Σ_g n_gy · [Φ((b − m_g)/h) − Φ((a − m_g)/h)] for each of some bandwidths and classes.

        Cells of one width see each other by how many steps they are apart: a convolution instead of every pair.
        """
        n, middle, each = self.h.n[:, y], self.h.middle, widths[:, None, None]
        if cells is None or not -1000 < self.cells.exponent < 1000:  # beyond, a step over- or underflows
            return _between(low[:, None], high[:, None], middle, each) @ n
        even, seen = self.cells.is_even(self.h.codes), self.cells.is_even(cells)
        out = np.empty((len(widths), len(low), n.shape[1]))
        out[:, ~seen] = _between(low[~seen, None], high[~seen, None], middle, each) @ n
        near = _near(low[seen], high[seen], middle[~even], each) @ n[~even]
        line = np.zeros((n.shape[1], 2 * MIDDLE))
        line[:, self.h.codes[even] + MIDDLE] = n[even].T
        place = cells[seen] + MIDDLE
        for width, sums in zip(widths, near, strict=True):
            mass, reach = self._steps_apart(width)
            wide = len(mass) > 2 * MIDDLE
            at = place + (reach if not wide else reach + 1 - 2 * MIDDLE)
            for k, counted in enumerate(line):
                sums[:, k] += np.convolve(counted, mass, mode="valid" if wide else "full")[at]
        out[:, seen] = near
        return out

    def _steps_apart(self, width: float) -> tuple[Floats, int]:
        """What a cell of the middle sees of others −r … r steps away, and r."""
        step = np.ldexp(1.0, self.cells.exponent)
        # a comparison, since a width many times the step has no quotient
        reach = int(_NOTHING * width / step + 2) if _NOTHING * (width / MIDDLE) < step else 2 * MIDDLE - 1
        reach = reach if reach < MIDDLE else 2 * MIDDLE - 1
        steps = np.arange(reach + 1) * step
        half = _between(steps - step / 2, steps + step / 2, np.zeros(1), np.asarray(width))
        return np.concatenate((half[:0:-1], half)), reach

    def _cauchy(self, codes: Ints) -> Floats:
        return cauchy_mass(*self.cells.edges(codes), self.cells.centre, self.scale)

    def near(self) -> Floats:
        """Counted cells."""
        return self.h.middle

    def support(self, counted: ColumnTally, block: Numbers) -> list[Support]:
        """The rows in reach of the value, by how much of the kernel's height they see."""
        x, h = float(block.values[0]), self.h
        own = self.cells.codes(block.values)
        if self.cells.is_point(own)[0] and not self.cells.discrete:  # a value with a probability of its own
            reach = np.broadcast_to((h.codes == own[0])[:, None], h.n.shape).astype(np.float64)
        else:
            with np.errstate(over="ignore", under="ignore"):
                reach = np.exp(-0.5 * ((x - h.middle[:, None]) / self.bandwidth) ** 2)
        n = np.sum(h.n * reach, axis=0)
        return [Support(n, h.n.sum(axis=0), mass(n, self.parts(block)[0]))]

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """A point by its mass, or a counted cell's middle moved by the kernel, or once in n rows the common curve.

        All that a column of points has beside them is the common curve. Within a cell any value is as likely.
        """
        points = np.array(self.cells.points)
        mass = self.mass(self.cells.point_codes())
        which = draw(np.vstack([mass, np.maximum(1 - mass.sum(axis=0), 0.0)]), labels, rng)
        values = self.cells.centre + self.scale * rng.standard_cauchy(len(labels))
        if not self.cells.discrete:
            line = replace(self, h=self.h.only(~self.h.point))
            wide = rng.random(len(labels)) < 1 / (line.total(0)[labels] + 2)
            near = ~wide & (line.total(0)[labels] > 0)
            cell = draw(line.h.n, labels[near], rng)
            values[near] = line.h.middle[cell] + self.bandwidth[labels[near]] * rng.standard_normal(len(cell))
        at = which < len(points)
        values[at] = points[which[at]]
        low, high = self.cells.edges(self.cells.codes(values))
        with np.errstate(over="ignore", invalid="ignore"):  # the outermost cells reach to infinity
            inside = low + rng.random(len(values)) * (high - low)
        return pa.array(np.where(np.isfinite(inside), inside, values))

    def parameters(self) -> tuple[int, int]:
        """A mass per counted cell and class, and a bandwidth per class."""
        k, c = self.h.n.shape
        return c * (k + 1), c * max(k, 1)

    def table(self) -> Table:
        """The bandwidths."""
        return Table("kernel density", ["bandwidth"], self.bandwidth[None, :])


def _with_common(kernel: Floats, total: Floats, common: Floats) -> Floats:
    """The kernel mass of so many rows, with one row's share given to the common curve."""
    wide = np.where(total > 0, 1 / (total + 2), 1.0)
    out: Floats = (1 - wide) * kernel + wide * common[:, None]
    return out


def _near(low: Floats, high: Floats, middle: Floats, widths: Floats) -> Floats:
    """The same for every bandwidth, interval and middle; most are too far apart to be worth a look."""
    with np.errstate(over="ignore"):  # what is further apart than any number is far enough
        far = _NOTHING * widths
        pair = np.nonzero((middle - high[:, None] < far) & (low[:, None] - middle < far))
    out = np.zeros((len(widths), len(low), len(middle)))
    out[pair] = _between(low[pair[1]], high[pair[1]], middle[pair[2]], widths[pair[0], 0, 0])
    return out


def _between(low: Floats, high: Floats, middle: Floats, width: Floats) -> Floats:
    """Φ((high − m)/h) − Φ((low − m)/h), from the side where the difference keeps its digits."""
    with np.errstate(over="ignore", invalid="ignore"):
        a, b = (low - middle) / width, (high - middle) / width
    right = a > 0
    out: Floats = ndtr(np.where(right, -a, b)) - ndtr(np.where(right, -b, a))
    return out
