"""Poisson: counts of events, one rate per class.

    amounts    1, x
    estimate   λ_y = (Σx + a) / (n + b)
    score      x·log λ_y − λ_y − log x!

a and b are the shape and rate of a gamma prior: half an event, so that a class that never saw one does not call it
impossible. With `predictive` the rate is averaged over: a negative binomial with r = a + Σx, p = (b + n)/(b + n + 1).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..base.arrays import Floats, Ints
from ..base.errors import SettingsError
from ..base.lazy import gammaln, xlogy
from ..data.blocks import Numbers
from ..exact.counts import Counts
from .base import Belief, Context, Family, Linear, Table
from .forms import Form, NoForm, RateForm
from .histogram import Histogram, read_cells
from .moments import read_moments
from .support import ColumnTally, Support, log_gamma

_MOST = 1e300  # events: of more of them x·log λ overflows


@dataclass(frozen=True)
class Poisson(Family):
    """A rate per class, for whole numbers from 0 up; `shape` and `rate` are those of a gamma prior.

    >>> rows = {"calls": [0, 1, 2, 6, 7, 8], "y": ["calm", "calm", "calm", "busy", "busy", "busy"]}
    >>> tb.textbook(rows, "y", families={"calls": "poisson"}).table("calls")
    Poisson     busy     calm
    rate     7.16667  1.16667
    """

    shape: float = 0.5
    rate: float = 0.0

    name = "poisson"
    kinds = ("number",)

    def __post_init__(self) -> None:
        if not (self.shape >= 0 and self.rate >= 0):
            raise SettingsError(f"a gamma prior ({self.shape}, {self.rate})", hint="shape and rate are at least 0.")

    def estimate(self, counts: Counts, context: Context) -> PoissonBelief:
        """The rates; a class without a value has that of all classes together."""
        m = read_moments(counts, context.n_classes)
        if len(m.n) == 0:
            return PoissonBelief(np.ones(context.n_classes), np.ones(context.n_classes), context.predictive)
        with np.errstate(over="ignore"):
            n, total = m.n[0], np.minimum(m.n[0] * m.mean[0], _MOST)
        below = "cells" in counts.sheets and _below(read_cells(counts, context, self.name))
        if below or (total < 0).any():
            raise SettingsError(
                f"column {context.column!r} has negative numbers and cannot be poisson",
                hint="poisson is for counts of events; use 'gaussian', 'kernel' or 'bins'.",
            )
        alone = n == 0
        shape = np.where(alone, self.shape + m.all_mean[0], self.shape + total)
        return PoissonBelief(shape, np.where(alone, self.rate + 1.0, self.rate + n), context.predictive)

    def leave_one_out(self, h: Histogram, counts: Counts, context: Context) -> tuple[Floats, Floats]:
        """log P in each cell for each class: as counted, and with one row of the cell taken out."""
        x = h.middle
        belief = self.estimate(counts, context)
        v = x[:, None]
        n = belief.rate - self.rate
        less = np.maximum(n - 1, 0.0)
        everyone = read_moments(counts, context.n_classes).all_mean[0]
        shape = np.where(less > 0, np.maximum(belief.shape - v, self.shape), self.shape + everyone)
        rest = PoissonBelief(shape, np.where(less > 0, self.rate + less, self.rate + 1.0), belief.predictive)
        return belief.log_prob(v), rest.log_prob(v)


def _below(h: Histogram) -> bool:
    """Whether numbers below zero were surely counted; a cell on both sides of it may hold zeros alone."""
    return bool(((h.low < 0) & (h.high <= 0)).any())


@dataclass(frozen=True)
class PoissonBelief(Belief):
    """The gamma posterior of each class's rate: λ = shape / rate."""

    shape: Floats
    rate: Floats
    predictive: bool

    asked_of = ("number",)
    axes: ClassVar = {"shape": "classes", "rate": "classes"}

    def log_prob(self, x: Floats) -> Floats:
        """log P(x) where x is rows × 1."""
        if self.predictive:
            p = self.rate / (self.rate + 1)
            ways: Floats = gammaln(x + self.shape) - gammaln(self.shape) - gammaln(x + 1)
            return ways + self.shape * np.log(p) + xlogy(x, 1 - p)  # type: ignore[no-any-return]
        x, mean = np.minimum(x, _MOST), self.shape / self.rate
        return xlogy(x, mean) - mean - gammaln(x + 1)  # type: ignore[no-any-return]

    def parts(self, block: Numbers) -> Floats:
        """log P(x given class); 0 for missing, and for a negative number, which no class can have."""
        out = np.zeros((block.rows, len(self.shape)))
        with np.errstate(invalid="ignore"):
            there = block.values >= 0
        out[there] = self.log_prob(block.values[there, None])
        return out

    def note(self, block: Numbers, row: int) -> str:
        """Negative numbers are no counts."""
        return "not a count" if block.values[row] < 0 else ""

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """Events at the class's rate."""
        shape = rng.gamma(self.shape[labels], 1.0) if self.predictive else self.shape[labels]
        return pa.array(rng.poisson(shape / self.rate[labels]).astype(np.float64))

    def parameters(self) -> tuple[int, int]:
        """A rate per class."""
        return len(self.shape), len(self.shape)

    def table(self) -> Table:
        """The rates."""
        return Table("Poisson", ["rate"], (self.shape / self.rate)[None, :])

    def form(self) -> Form:
        """The rates."""
        return NoForm() if self.predictive else RateForm(self.shape / self.rate)

    def sealed(self) -> PoissonBelief:
        """The rates, as if each were of one row."""
        return replace(self, shape=self.shape / self.rate, rate=np.ones_like(self.rate))

    def support(self, counted: ColumnTally, block: Numbers) -> list[Support]:
        """The rows that have a count."""
        n, x = counted.table("moments").sum(axis=0), min(float(block.values[0]), _MOST)

        def draw(y: int) -> Floats:
            rate = np.exp(log_gamma(float(self.shape[y]))) / self.rate[y]
            return np.asarray(xlogy(x, rate) - rate - gammaln(x + 1))

        return [Support(n, n, draw if np.all(self.shape > 0) else None)]

    def linear(self) -> Linear | None:
        """Weights log λ, offset −λ; the predictive form is not linear."""
        if self.predictive:
            return None
        mean = self.shape / self.rate
        with np.errstate(divide="ignore"):
            weights = np.log(mean)[:, None]
        return Linear([""], weights, -mean, np.zeros(1), lambda block: block.values[:, None])
