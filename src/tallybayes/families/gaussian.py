"""Gaussian: a bell curve per class, from exact sums.

    amounts    1, x, x²
    estimate   μ_y = Σx / n,  σ²_y = Σx²/n − μ_y²  (÷ (n − 1) if unbiased; one σ² for all classes if shared)
    score      −½ ((x − μ_y)/σ_y)² − log σ_y − ½ log 2π

Mean and deviation are rounded once from exact integers, so an offset of 1e8 costs nothing, and the score is never
expanded into powers of x. A column that is constant over all classes says nothing. With `predictive` the
parameters are averaged over, which gives Student's t:

    prior      m0 = mean of the whole column, k0 = ¼, a0 = ½, b0 = 1/20 of the column's variance
    estimate   kn = k0 + n,  mn = (k0·m0 + n·m)/kn,  an = a0 + n/2,  bn = b0 + M2/2 + k0·n·(m − m0)²/(2·kn)
    score      log t with 2·an degrees of freedom, location mn, scale² = bn·(kn + 1)/(an·kn)

The prior is worth a fraction of one row: a class of two equal numbers is believed narrow, but not infinitely so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.errors import SettingsError
from ..base.lazy import special
from ..data.blocks import Numbers, Vectors
from ..data.schema import Column
from ..exact.counts import Counts
from .base import Belief, Context, Family, Linear, Table
from .forms import HALF_LOG_2PI, BellForm, distance, log_gamma_step
from .histogram import Histogram
from .kernel import Kernel
from .moments import BellBelief, Moments, floored, read_moments, shared_deviation
from .support import ColumnTally, Support

_AT_ONCE = 1 << 15  # distances at a time, so that they stay in the cache
_LARGEST = float(np.finfo(float).max)
_SQUARE = (np.arange(16) + 0.5) / 16  # quantiles at which mean and variance are drawn: 16 × 16


@dataclass(frozen=True)
class Gaussian(Family):
    """A normal density per class, each with its own variance or all with one that is "shared".

    `unbiased` divides by n − 1; `predictive` averages over what mean and variance may be (Student-t), None follows the
    settings.

    >>> rows = {"x": [1.0, 2.0, 2.5, 7.0, 8.0, 9.0], "y": ["low", "low", "low", "high", "high", "high"]}
    >>> tb.textbook(rows, "y", families={"x": tb.families.Gaussian(variance="shared")}).table("x")
    normal density      high       low
    mean                   8   1.83333
    deviation       0.726483  0.726483
    """

    variance: str = "own"
    unbiased: bool = False
    predictive: bool | None = None

    name = "gaussian"
    kinds = ("number", "vector")

    def __post_init__(self) -> None:
        if self.variance not in ("own", "shared"):
            raise SettingsError(f"variance={self.variance!r}", hint="take 'own' or 'shared'.")

    def describe(self) -> str:
        """The name that `families=` knows it by."""
        name = "student" if self.predictive else "gaussian-shared" if self.variance == "shared" else "gaussian"
        return name + (" (unbiased)" if self.unbiased else "")

    def for_drawn(self, belief: Belief, column: Column) -> Family:
        """A curve by a kernel, where there are cells for one, follows the wide tails of an averaged bell."""
        on_line = column.cells is not None and not column.cells.discrete
        return Kernel() if isinstance(belief, StudentBelief) and on_line else self

    def _averaged(self, context: Context) -> bool:
        """A variance shared by all classes is known too well to be averaged over."""
        return self.variance == "own" and context.is_predictive(self.predictive)

    def estimate(self, counts: Counts, context: Context) -> Belief:
        """Mean and deviation of every position and class."""
        m = read_moments(counts, context.n_classes)
        shared = self.variance == "shared"
        return self._belief(m, shared_deviation(counts, context.n_classes, self.unbiased) if shared else None, context)

    def _belief(self, m: Moments, shared: Floats | None, context: Context) -> GaussianBelief | StudentBelief:
        """The belief of moments, and of the deviation that all classes share if they do."""
        if self._averaged(context):
            return student(m, context.vector)
        sd = m.sd
        if shared is not None:
            sd = np.broadcast_to(shared[:, None], m.n.shape)
        elif self.unbiased:
            sd = sd * np.sqrt(np.where(m.n > 1, m.n / np.where(m.n > 1, m.n - 1, 1.0), 1.0))
        sd = floored(sd, m.all_sd[:, None], context)
        return GaussianBelief(m.positions, m.mean, sd, m.varies, context.vector, m.all_mean, shared is not None)

    def one_more(
        self, counts: Counts, context: Context, more: Numbers, labels: Ints, weights: Floats, asked: Numbers
    ) -> Floats | None:
        """A value more moves n, mean and deviation of its class and of all classes together."""
        m = read_moments(counts, context.n_classes)
        if context.vector or len(m.positions) != 1:
            return None
        after, within = m.one_more(more.values, labels, weights)
        total, used = after.n.sum(axis=1), (after.n > 0).sum(axis=1)
        divisor = np.where(total > used, total - used, total) if self.unbiased else total
        belief = self._belief(after, np.sqrt(within / divisor) if self.variance == "shared" else None, context)
        x, inverse = np.unique(asked.values, return_inverse=True)
        said = np.where(belief.varies[:, None], belief.log_density(x[:, None, None], slice(None)), 0.0)
        said[np.isnan(x)] = 0.0
        out: Floats = said[inverse].transpose(1, 0, 2)
        return out

    def leave_one_out(self, h: Histogram, counts: Counts, context: Context) -> tuple[Floats, Floats]:
        """log density in each cell for each class: as counted, and with one row of the cell taken out."""
        x = h.middle
        m = read_moments(counts, context.n_classes)
        whole = self.estimate(counts, context).parts(Numbers(x))
        v, n, less = x[:, None], m.n, np.maximum(m.n - 1, 0.0)
        unit = np.where(m.varies, m.all_sd, 1.0)  # in units of the column no square overflows
        away = distance(v, m.mean, unit)
        step = away / np.maximum(less, 1.0)
        spread = n * (m.sd / unit) ** 2  # Σ(x − μ)²
        others = np.maximum(spread - n * step * away, 0.0)
        if self.variance == "shared":
            sd = unit * np.sqrt((spread.sum() - spread + others) / max(float(n.sum()) - 1, 1.0))
        else:
            sd = unit * np.sqrt(others / np.maximum(less - self.unbiased, 1.0))
        with np.errstate(over="ignore"):
            mean = np.clip(m.mean - unit * step, -_LARGEST, _LARGEST)
        mean, sd = np.where(less > 0, mean, m.all_mean), np.where(less > 0, sd, m.all_sd)
        if self._averaged(context):
            rest = student(m.with_classes(less + 0 * v, mean, sd), vector=False)
            return whole, rest.log_density(v, slice(None))
        return whole, log_normal(v, mean, floored(sd, m.all_sd, context))


def log_normal(x: Floats, mean: Floats, sd: Floats) -> Floats:
    """log N(x; μ, σ²)."""
    out: Floats = -0.5 * distance(x, mean, sd) ** 2 - np.log(sd) - HALF_LOG_2PI
    return out


@dataclass(frozen=True)
class GaussianBelief(BellBelief):
    """A normal density per position and class: location μ, scale σ."""

    centre: Floats  # the mean over all classes, per position
    shared: bool

    axes: ClassVar = {**BellBelief.axes, "centre": "positions"}

    def log_density(self, x: Floats, position: int | slice | Ints) -> Floats:
        """log N(x; μ_y, σ²_y)."""
        return log_normal(x, self.location[position], self.scale[position])

    def parts(self, block: Numbers | Vectors) -> Floats:
        """log N(x; μ_y, σ²_y), summed over positions; 0 for missing."""
        if isinstance(block, Numbers) or np.isnan(block.values).any():
            return super().parts(block)
        places, mean, scale, constant = self.by_class
        step = max(_AT_ONCE // max(mean.size, 1), 1)
        out = np.empty((block.rows, len(mean)))
        for start in range(0, block.rows, step):
            z = distance(block.values[start : start + step, None, places], mean, scale)
            out[start : start + step] = constant - 0.5 * np.einsum("iyj,iyj->iy", z, z)
        return out

    @cached_property
    def by_class(self) -> tuple[Ints, Floats, Floats, Floats]:
        """Positions that vary, μ and σ by class and position, and what no value changes: −Σ log σ − ½ log 2π."""
        at = np.flatnonzero(self.varies)
        scale = self.scale[at].T
        constant = -np.sum(np.log(scale), axis=1) - len(at) * HALF_LOG_2PI
        return self.positions[at], self.location[at].T, scale, constant

    def noise(self, labels: Ints, rng: np.random.Generator) -> Floats:
        """Standard normal numbers."""
        return rng.standard_normal((len(labels), len(self.positions)))

    def parameters(self) -> tuple[int, int]:
        """A mean per position and class, and a variance each or one shared."""
        d, c = self.location.shape
        count = d * c + (d if self.shared else d * c)
        return count, count

    def table(self) -> Table:
        """Mean and deviation."""
        return Table("normal density", *self.named({"mean": self.location, "deviation": self.scale}))

    def support(self, counted: ColumnTally, block: Numbers | Vectors) -> Sequence[Support | None]:
        """The rows that have a value; one variance of all classes is known too well to matter."""
        return _supports(self, counted, block, self.scale if self.shared else None)

    def linear(self) -> Linear | None:
        """With a shared variance: weights (μ − x₀)/σ², offset −(μ − x₀)²/2σ², about the column's mean x₀."""
        if not self.shared:
            return None
        at = np.flatnonzero(self.varies)
        moved = (self.location[at] - self.centre[at, None]) / self.scale[at]
        places = self.positions[at]

        def features(block: Numbers | Vectors) -> Floats:
            return block.values[:, None] if isinstance(block, Numbers) else block.values[:, places]

        names = [str(p) if self.vector else "" for p in places]
        return Linear(names, (moved / self.scale[at]).T, -0.5 * np.sum(moved**2, axis=0), self.centre[at], features)


K0, A0, B0 = 0.25, 0.5, 0.05
_LARGEST = float(np.finfo(np.float64).max)


def posterior(m: Moments) -> tuple[Floats, Floats, Floats, Floats]:
    """Location mn, scale √(bn/an), kn and an of the normal-inverse-gamma posterior, positions × classes."""
    unit = np.where(m.all_sd > 0, m.all_sd, 1.0)[:, None]  # in units of the column no square overflows
    mean = np.where(m.n > 0, distance(m.mean, m.all_mean[:, None], unit), 0.0)
    squares = np.where(m.n > 0, m.n * (m.sd / unit) ** 2, 0.0)
    kn, an = K0 + m.n, A0 + m.n / 2
    bn = B0 + squares / 2 + K0 * m.n * mean**2 / (2 * kn)
    with np.errstate(over="ignore"):  # at the ends of the line
        location, scale = m.all_mean[:, None] + unit * (m.n / kn * mean), unit * np.sqrt(bn / an)
    return np.clip(location, -_LARGEST, _LARGEST), np.minimum(scale, _LARGEST), kn, an


def student(m: Moments, vector: bool) -> StudentBelief:
    """The posterior predictive density of every position and class."""
    location, scale, kn, an = posterior(m)
    with np.errstate(over="ignore"):
        scale = np.minimum(scale * np.sqrt((kn + 1) / kn), _LARGEST)
    return StudentBelief(m.positions, location, scale, m.varies, vector, 2 * an)


@dataclass(frozen=True)
class StudentBelief(BellBelief):
    """Student's t per position and class."""

    freedom: Floats  # positions × classes

    axes: ClassVar = {**BellBelief.axes, "freedom": "positions classes"}

    @cached_property
    def _shape(self) -> Floats:
        """What freedom alone decides: of each position once, however often it is asked about."""
        shape: Floats = log_gamma_step(self.freedom / 2) - 0.5 * np.log(self.freedom * np.pi)
        return shape

    def log_density(self, x: Floats, position: int | slice | Ints) -> Floats:
        """log t(x)."""
        scale, v = self.scale[position], self.freedom[position]
        z = distance(x, self.location[position], scale)
        return self._shape[position] - np.log(scale) - (v + 1) / 2 * np.log1p(z**2 / v)

    def noise(self, labels: Ints, rng: np.random.Generator) -> Floats:
        """Draws from the standard t."""
        return rng.standard_t(self.freedom.T[labels])

    def parameters(self) -> tuple[int, int]:
        """Location, scale and freedom per position and class."""
        return 3 * self.location.size, 3 * self.location.size

    def table(self) -> Table:
        """Location, scale and degrees of freedom."""
        rows = {"location": self.location, "scale": self.scale, "freedom": self.freedom}
        return Table("Student-t density", *self.named(rows))

    def form(self) -> BellForm:
        """Location, scale and degrees of freedom."""
        return replace(super().form(), freedom=self.freedom[self.varies])

    def support(self, counted: ColumnTally, block: Numbers | Vectors) -> Sequence[Support | None]:
        """The rows that have a value."""
        return _supports(self, counted, block)


def _supports(
    belief: BellBelief, counted: ColumnTally, block: Numbers | Vectors, known_sd: Floats | None = None
) -> Sequence[Support | None]:
    """Position by position, by draws of mean and variance (or of the mean alone, with the deviation known)."""
    m = read_moments(counted.counts, counted.n_classes)
    x = np.atleast_1d(block.values[0])
    location, scale, kn, an = posterior(m)
    u, v = (g.ravel() for g in np.meshgrid(_SQUARE, _SQUARE))

    def one(i: int) -> Support:
        value = np.asarray(x[belief.positions[i]] if belief.vector else x[0])

        def draw(y: int) -> Floats:
            wide = 1.0 if known_sd is not None else np.sqrt(an[i, y] / special.gammaincinv(an[i, y], u))
            with np.errstate(over="ignore"):
                sd = np.minimum((scale if known_sd is None else known_sd)[i, y] * wide + 0 * u, _LARGEST)
                mean = location[i, y] + np.clip(sd / np.sqrt(kn[i, y]) * special.ndtri(v), -_LARGEST, _LARGEST)
            return log_normal(value, np.clip(mean, -_LARGEST, _LARGEST), sd)

        return Support(m.n[i], m.n[i], draw)

    # of a vector whose varying positions are all missing there is one line, which says nothing
    return ([one(i) for i in belief.told(x)] or [None]) if belief.vector else [one(0)]
