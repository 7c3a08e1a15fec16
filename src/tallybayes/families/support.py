"""What a line of an explanation rests on: the counts behind it, and how far they leave it open.

    a value, a word, a bin    θ ~ Beta(a, A − a) with a = P·A, A = rows (or words) of the class + imagined ones
    a bell curve              σ² and μ from the normal-inverse-gamma posterior of `gaussian`
    a rate                    λ ~ Gamma(shape, rate)
    a kernel density          mass ~ Gamma(n' + 1), n' = Σ n·exp(−½·((x − m)/h)²) the rows in reach
    a pair of values          likewise Gamma(n + 1), n the rows that have both
    a blend                   its families' quantiles, in their shares

A posterior is drawn at evenly spaced quantiles, so that the same counts always give the same interval and a long tail
stays one: a word that a class never had may be as rare as you like, but not common. Columns of a weight below one
have their intervals shrunk with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base.arrays import Floats
from ..base.lazy import special
from ..data.blocks import WORDS, N
from ..exact.counts import Counts
from .smoothing import BackOff, Beta, Dirichlet, Laplace, Smoothing

if TYPE_CHECKING:
    from .base import Belief

QUANTILES = (np.arange(101) + 0.5) / 101  # at which a posterior is drawn
_TINY = 1e-280

Draw = Callable[[int], Floats]  # class number → equally likely values of the line's part


@dataclass(frozen=True)
class Support:
    """The counts behind one line by class, of how many, and what its part may be."""

    n: Floats
    of: Floats
    draw: Draw | None = None

    def interval(self, at: int, other: int, estimate: float, level: float) -> tuple[float, float, float, float]:
        """Low, high, mean and variance of the natural log-odds of two classes; the interval holds the estimate."""
        if self.draw is None:
            return (np.nan, np.nan, np.nan, np.nan)
        if at == other:
            return (0.0, 0.0, 0.0, 0.0)
        a, b = self.draw(at), self.draw(other)
        low, high = np.quantile((a[:, None] - b[None, :]).ravel(), [0.5 - level / 2, 0.5 + level / 2]).tolist()
        if not np.isnan(estimate):  # impossible in both: the counts still leave something open
            low, high = min(low, estimate), max(high, estimate)
        return low, high, float(a.mean() - b.mean()), _variance(a) + _variance(b)

    def times(self, factor: float) -> Support:
        """The same for evidence that is multiplied by a factor."""
        if self.draw is None or factor == 1.0:
            return self
        draw = self.draw
        return replace(self, draw=lambda y: factor * draw(y))


@dataclass(frozen=True)
class ColumnTally:
    """What was counted of one column, in the order of the model's classes, and how it is smoothed."""

    counts: Counts
    classes: tuple[str, ...]
    smoothing: Smoothing

    @property
    def n_classes(self) -> int:
        """How many classes."""
        return len(self.classes)

    def table(self, sheet: str, amount: str = "n") -> Floats:
        """An amount of a sheet, slots × classes."""
        return self.counts.sheets[sheet].table(amount, self.n_classes)

    def of_value(self, slot: str | None) -> tuple[Floats, Floats]:
        """The rows that have a value, and those that have any."""
        sheet = self.counts.sheet("values", N)
        table = sheet.table("n", self.n_classes)
        at = sheet.slot_names.index(slot) if slot is not None and slot in sheet.slot_names else None
        return np.zeros(self.n_classes) if at is None else table[at], table.sum(axis=0)

    def of_words(self, amount: str, words: Sequence[str]) -> tuple[Floats, Floats]:
        """One amount of these words, words × classes, and that of all words."""
        sheet = self.counts.sheet("words", WORDS)
        table = self.counts.once(("amount", amount, self.n_classes), lambda: sheet.table(amount, self.n_classes))
        at = pc.index_in(pa.array(words, pa.string()), value_set=pa.array(sheet.slots, pa.string())).fill_null(-1)
        return np.vstack([table, np.zeros((1, self.n_classes))])[at.to_numpy()], table.sum(axis=0)

    def rows(self) -> Floats:
        """The rows that have a bag or a text."""
        table = self.counts.sheet("rows", N).table("n", self.n_classes)
        return table[0] if len(table) else np.zeros(self.n_classes)

    def strength(self, total: Floats, slots: Sequence[str]) -> Floats:
        """The rows behind a table of each class, imagined ones included; one where the smoothing imagines none."""
        if isinstance(self.smoothing, Laplace) and self.smoothing.alpha > 0:
            return total + self.smoothing.alpha * len(slots)
        if isinstance(self.smoothing, Dirichlet):
            return np.asarray(total + self.smoothing.amounts_for(slots, self.classes).sum(axis=0))
        if isinstance(self.smoothing, Beta):
            return total + self.smoothing.present + self.smoothing.absent
        if isinstance(self.smoothing, BackOff):
            return np.asarray(total + self.smoothing.amounts(total[None])[0] * len(slots))
        return total + 1.0


def supports_of(belief: Belief, counted: ColumnTally, block: Any) -> list[Support | None]:
    """The support of each term of a row (a block of one); None for a term that is no evidence."""
    terms = belief.terms(block, 0)
    if not counted.counts.sheets or all(t.note for t in terms):
        return [None] * len(terms)
    found = list(belief.support(counted, block))
    if len(found) == 1:
        found *= len(terms)  # one for all
    return [None if t.note else s for t, s in zip(terms, found, strict=True)]


# ---- draws


def share(p: Floats, strength: Floats, slots: int, times: float = 1.0) -> Draw:
    """Draws of times · log θ, for a slot with the estimates p (by class) in a table worth `strength` rows."""
    least = 1 / max(slots, 1)  # without smoothing a zero is still a count of 0, not a law

    def draw(y: int) -> Floats:
        a = float(p[y] * strength[y]) or least
        return times * log_beta(a, max(float(strength[y]) - a, 0.0))

    return draw


def mass(n: Floats, parts: Floats) -> Draw:
    """Draws of a part that so many rows stand behind: its mass is Gamma(n + 1), with the estimate as its mean."""

    def draw(y: int) -> Floats:
        shape = float(n[y]) + 1
        return np.asarray(parts[y] + log_gamma(shape) - np.log(shape))

    return draw


def sum_of(p: Floats, strength: Floats) -> Draw:
    """Draws of Σ log θ over many words, p words × classes: normal, by the mean and variance of each log θ."""

    def draw(y: int) -> Floats:
        a, whole = np.maximum(p[:, y] * strength[y], 1e-3), max(float(strength[y]), 1e-3)
        mean = np.sum(special.digamma(a) - special.digamma(whole))
        variance = np.sum(np.maximum(special.polygamma(1, a) - special.polygamma(1, whole), 0.0))
        return np.asarray(mean + np.sqrt(variance) * special.ndtri(QUANTILES))

    return draw


def log_beta(a: float, b: float) -> Floats:
    """log θ at the quantiles of a Beta(a, b); where θ is too small for a float, by its power law."""
    if b <= 1e-12 * a:
        return np.zeros(len(QUANTILES))
    theta = special.betaincinv(a, b, QUANTILES)
    with np.errstate(divide="ignore"):
        law = (np.log(QUANTILES) + np.log(a) + special.betaln(a, b)) / a
        out: Floats = np.where(theta > _TINY, np.log(theta), law)
    return out


def log_gamma(a: float) -> Floats:
    """log of a Gamma(a) variable at its quantiles."""
    x = special.gammaincinv(a, QUANTILES)
    with np.errstate(divide="ignore"):
        out: Floats = np.where(x > _TINY, np.log(x), (np.log(QUANTILES) + special.gammaln(a + 1)) / a)
    return out


def _variance(draws: Floats) -> float:
    """The variance, of log-likelihoods no further out than a square can be taken."""
    return float(np.clip(draws, -1e150, 1e150).var())
