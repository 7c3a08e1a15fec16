"""What a line of an explanation rests on: the counts behind it, and how far they leave it open.

    a value, a word, a bin    θ ~ Beta(a, A − a) with a = P·A, A = rows (or words) of the class + imagined ones
    a bell curve              σ² and μ from the normal-inverse-gamma posterior of `families.student`
    a rate                    λ ~ Gamma(shape, rate)
    a kernel density          mass ~ Gamma(n' + 1), n' = Σ n·exp(−½·((x − m)/h)²) the rows in reach
    a pair of values          likewise Gamma(n + 1), n the rows that have both
    a blend                   its families' quantiles, in their shares
    the prior                 log-odds of two classes: the difference of two log Gamma variables

A posterior is drawn at evenly spaced quantiles, so that the same counts always give the same interval and a long tail
stays one: a word that a class never had may be as rare as you like, but not common. Columns of a weight below one
have their intervals shrunk with them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from scipy.special import betaincinv, betaln, digamma, gammaincinv, gammaln, ndtri, polygamma, xlogy

from ..base import canon
from ..base.arrays import Floats, Ints, safe_log
from ..data.blocks import WORDS, Block, N
from ..exact.counts import Counts
from ..exact.moments import MOMENTS
from ..families import Belief, Term
from ..families.bins import BinsBelief
from ..families.blend import BlendBelief
from ..families.categorical import CategoricalBelief
from ..families.gaussian import GaussianBelief, log_normal, posterior
from ..families.histogram import middles
from ..families.kernel import KernelBelief
from ..families.levels import BagLevelsBelief, LevelsBelief
from ..families.moments import BellBelief, read_moments
from ..families.pair import InteractionBelief
from ..families.poisson import PoissonBelief
from ..families.presence import BernoulliWordsBelief
from ..families.smoothing import Dirichlet, Laplace, Smoothing
from ..families.words import ComplementBelief, WordsBelief
from ..model.posterior import factor_of_one
from ..model.prior import class_totals

if TYPE_CHECKING:
    from ..model.model import Model

_POINTS = (np.arange(101) + 0.5) / 101  # quantiles at which a posterior is drawn
_SQUARE = (np.arange(16) + 0.5) / 16  # the same for a bell, which has two parameters: 16 × 16
_TINY = 1e-280
_LARGEST = float(np.finfo(float).max)

Draw = Callable[[int], Floats]  # class number → equally likely values of the line's part


@dataclass(frozen=True)
class Support:
    """The counts behind one line by class, of how many, and what its part may be."""

    n: Floats
    of: Floats
    draw: Draw | None = None

    def interval(self, at: int, other: int, estimate: float, level: float) -> tuple[float, float, float]:
        """Low, high and variance of the natural log-odds of two classes; the interval holds the estimate."""
        if self.draw is None:
            return (np.nan, np.nan, np.nan)
        if at == other:
            return (0.0, 0.0, 0.0)
        a, b = self.draw(at), self.draw(other)
        low, high = np.quantile((a[:, None] - b[None, :]).ravel(), [0.5 - level / 2, 0.5 + level / 2])
        return min(float(low), estimate), max(float(high), estimate), _variance(a) + _variance(b)

    def times(self, factor: float) -> Support:
        """The same for evidence that is multiplied by a factor."""
        if self.draw is None or factor == 1.0:
            return self
        draw = self.draw
        return replace(self, draw=lambda y: factor * draw(y))


@dataclass(frozen=True)
class Counted:
    """What was counted of one column, in the order of the model's classes."""

    counts: Counts
    classes: tuple[str, ...]
    smoothing: Smoothing

    @property
    def n_classes(self) -> int:
        """How many classes."""
        return len(self.classes)

    def strength(self, total: Floats, slots: Sequence[str]) -> Floats:
        """The rows behind a table of each class, imagined ones included; one where the smoothing imagines none."""
        if isinstance(self.smoothing, Laplace) and self.smoothing.alpha > 0:
            return total + self.smoothing.alpha * len(slots)
        if isinstance(self.smoothing, Dirichlet):
            return np.asarray(total + self.smoothing.amounts_for(slots, self.classes).sum(axis=0))
        return total + 1.0


def share(p: Floats, strength: Floats, slots: int, times: float = 1.0) -> Draw:
    """Draws of times · log θ, for a slot with the estimates p (by class) in a table worth `strength` rows."""
    least = 1 / max(slots, 1)  # without smoothing a zero is still a count of 0, not a law

    def draw(y: int) -> Floats:
        a = float(p[y] * strength[y]) or least
        return times * log_beta(a, max(float(strength[y]) - a, 0.0))

    return draw


def log_beta(a: float, b: float) -> Floats:
    """log θ at the quantiles of a Beta(a, b); where θ is too small for a float, by its power law."""
    if b <= 1e-12 * a:
        return np.zeros(len(_POINTS))
    theta = betaincinv(a, b, _POINTS)
    with np.errstate(divide="ignore"):
        out: Floats = np.where(theta > _TINY, np.log(theta), (np.log(_POINTS) + np.log(a) + betaln(a, b)) / a)
    return out


def log_gamma(a: float) -> Floats:
    """log of a Gamma(a) variable at its quantiles."""
    x = gammaincinv(a, _POINTS)
    with np.errstate(divide="ignore"):
        out: Floats = np.where(x > _TINY, np.log(x), (np.log(_POINTS) + gammaln(a + 1)) / a)
    return out


def of_prior(n: Floats, imagined: Floats | None) -> Support:
    """The support of the class prior; `imagined` rows on top of the counted, None for a prior that was given."""
    of = np.full(len(n), n.sum())
    if imagined is None:
        return Support(n, of, lambda y: np.zeros(1))
    amounts = n + imagined
    return Support(n, of, (lambda y: log_gamma(float(amounts[y]))) if np.all(amounts > 0) else None)


def model_supports(model: Model, blocks: Mapping[str, Block], prior: Any) -> list[Support | None]:
    """The support of every line of an explanation: the prior, then each term of each column (blocks of one row)."""
    assert model.tally is not None
    names = tuple(str(canon.text(c)) for c in model.classes)
    chosen = model.settings.prior if prior is None else prior
    imagined = None
    if isinstance(chosen, Dirichlet):
        imagined = chosen.amounts_for(names, ("",))[:, 0]
    elif isinstance(chosen, str) and chosen == "counted":
        imagined = np.zeros(len(names))
    out: list[Support | None] = [of_prior(class_totals(model.tally, names), imagined)]
    if model.settings.offsets:
        out.append(None)  # their own line, which no row stands behind alone
    number = np.array([names.index(c) for c in model.tally.classes], dtype=np.int64)
    kept = np.array_equal(number, np.arange(len(number)))
    for name, belief in model.beliefs.items():
        counts = model.tally.columns[name] if kept else model.tally.columns[name].relabel(number)
        counted = Counted(counts, names, model.settings.smoothing_of(name))
        found = supports_of(belief, counted, belief.terms(blocks[name], 0), blocks[name])
        factor = factor_of_one(model.settings, name, blocks[name])
        out += [None if s is None else s.times(factor) for s in found]
    return [*out, None] if model.settings.curves else out  # the curve's own line


def supports_of(belief: Belief, counted: Counted, terms: Sequence[Term], block: Any) -> list[Support | None]:
    """The support of each term of a row (a block of one); None for a term that is no evidence."""
    if not counted.counts.sheets or all(t.note for t in terms):
        return [None] * len(terms)
    reader = next((r for kind, r in _READERS if isinstance(belief, kind)), _of_any)
    found = reader(belief, counted, block, len(terms))
    return [None if t.note else s for t, s in zip(terms, found, strict=True)]


def _of_any(belief: Belief, c: Counted, block: Any, lines: int) -> list[Support | None]:
    """A family unknown to this module: how many rows have a value, and no interval."""
    name = next((s for s in ("moments", "values", "rows") if s in c.counts.sheets), None)
    if name is None:
        return [None] * lines
    n = c.counts.sheets[name].table("n", c.n_classes).sum(axis=0)
    return [Support(n, n)] * lines


def _of_category(belief: CategoricalBelief, c: Counted, block: Any, lines: int) -> list[Support | None]:
    sheet = c.counts.sheet("values", N)
    table = sheet.table("n", c.n_classes)
    total, value, slots = table.sum(axis=0), block.text(0), belief.table().rows
    n = table[sheet.slot_names.index(value)] if value in sheet.slot_names else np.zeros(c.n_classes)
    at = slots.index(value) if value in belief.values else len(slots) - 1
    return [Support(n, total, share(belief.probabilities[at], c.strength(total, slots), len(slots)))]


def _of_cell(belief: BinsBelief | LevelsBelief, c: Counted, block: Any, lines: int) -> list[Support | None]:
    sheet = c.counts.sheet("cells", N)
    codes, n = belief.cells.slot_codes(sheet.slot_names), sheet.table("n", c.n_classes)
    own = belief.cells.codes(block.values)
    if isinstance(belief, LevelsBelief):
        which, at = belief.which(codes), belief.which(own)[0]
    else:
        which, at = (belief.which(middles(*belief.cells.edges(x))) for x in (codes, own))
        at = at[0]
    total, slots = n[which >= 0].sum(axis=0), belief.table().rows
    draw = share(belief.probabilities[at], c.strength(total, slots), len(slots))
    return [Support(n[which == at].sum(axis=0), total, draw)]


def _of_kernel(belief: KernelBelief, c: Counted, block: Any, lines: int) -> list[Support | None]:
    x, h = float(block.values[0]), belief.h
    own = belief.cells.codes(block.values)
    if belief.cells.is_point(own)[0] and not belief.cells.discrete:  # a value with a probability of its own
        near = np.broadcast_to((h.codes == own[0])[:, None], h.n.shape).astype(np.float64)
    else:
        with np.errstate(over="ignore", under="ignore"):
            near = np.exp(-0.5 * ((x - h.middle[:, None]) / belief.bandwidth) ** 2)
    n, parts = np.sum(h.n * near, axis=0), belief.parts(block)[0]

    def draw(y: int) -> Floats:
        shape = float(n[y]) + 1
        return np.asarray(parts[y] + log_gamma(shape) - np.log(shape))

    return [Support(n, h.n.sum(axis=0), draw)]


def _of_bell(belief: BellBelief, c: Counted, block: Any, lines: int) -> list[Support | None]:
    m = read_moments(c.counts, c.n_classes)
    x = np.atleast_1d(block.values[0])
    location, scale, kn, an = posterior(m)
    shared = isinstance(belief, GaussianBelief) and belief.shared  # one variance of all is known too well to matter
    u, v = (g.ravel() for g in np.meshgrid(_SQUARE, _SQUARE))

    def one(i: int) -> Support:
        value = np.asarray(x[belief.positions[i]] if belief.vector else x[0])

        def draw(y: int) -> Floats:
            wide = 1.0 if shared else np.sqrt(an[i, y] / gammaincinv(an[i, y], u))
            with np.errstate(over="ignore"):
                sd = np.minimum((belief.scale if shared else scale)[i, y] * wide + 0 * u, _LARGEST)
                mean = location[i, y] + np.clip(sd / np.sqrt(kn[i, y]) * ndtri(v), -_LARGEST, _LARGEST)
            return log_normal(value, np.clip(mean, -_LARGEST, _LARGEST), sd)

        return Support(m.n[i], m.n[i], draw)

    # of a vector whose varying positions are all missing there is one line, which says nothing
    return ([one(i) for i in belief.told(x)] or [None] * lines) if belief.vector else [one(0)]


def _of_rate(belief: PoissonBelief, c: Counted, block: Any, lines: int) -> list[Support | None]:
    n = c.counts.sheet("moments", MOMENTS).table("n", c.n_classes).sum(axis=0)
    x = float(block.values[0])

    def draw(y: int) -> Floats:
        rate = np.exp(log_gamma(float(belief.shape[y]))) / belief.rate[y]
        return np.asarray(xlogy(x, rate) - rate - gammaln(x + 1))

    return [Support(n, n, draw if np.all(belief.shape > 0) else None)]


def _counted_words(c: Counted, amount: str, words: Sequence[str]) -> tuple[Floats, Floats]:
    """One amount of these words, words × classes, and that of all words."""
    sheet = c.counts.sheet("words", WORDS)
    table = c.counts.once(("amount", amount, c.n_classes), lambda: sheet.table(amount, c.n_classes))
    return np.vstack([table, np.zeros((1, c.n_classes))])[_places(words, sheet.slots)], table.sum(axis=0)


def _places(words: Sequence[str], among: Any) -> Ints:
    """Where each word stands, −1 for nowhere."""
    found = pc.index_in(pa.array(words, pa.string()), value_set=pa.array(among, pa.string())).fill_null(-1)
    return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.int64)


def _of_words(belief: WordsBelief, c: Counted, block: Any, lines: int) -> list[Support | None]:
    listed = belief.listed(block, 0)
    names = [block.slots[slot] for slot, _ in listed]
    n, total = _counted_words(c, "documents" if belief.presence else "n", names)
    slots = len(belief.probabilities)
    p = np.vstack([belief.probabilities, np.zeros((1, c.n_classes))])[belief.rows_of(names)]
    scale = np.ones_like(n)
    if isinstance(belief, ComplementBelief):  # what speaks is how rare the word is elsewhere
        n, total = n.sum(axis=1, keepdims=True) - n, total.sum() - total
    strength = c.strength(total, belief.table().rows)
    if isinstance(belief, ComplementBelief):
        p = (n + (strength - total) / max(slots, 1)) / np.maximum(strength, 1e-300)
        log = safe_log(p)
        scale = np.where(log < 0, belief.each(names, belief.weights) / np.where(log < 0, log, 1.0), 0.0)
    factor = np.ones(len(names)) if belief.factor is None else belief.each(names, belief.factor[:, None])[:, 0]
    return [
        Support(n[i], total, _scaled(share(p[i], strength, slots, amount * factor[i]), scale[i]))
        for i, (_, amount) in enumerate(listed)
    ]


def _scaled(draw: Draw, scale: Floats) -> Draw:
    return lambda y: scale[y] * draw(y)


def _of_presence(belief: BernoulliWordsBelief, c: Counted, block: Any, lines: int) -> list[Support | None]:
    names = [block.slots[s] for s in block.matrix.indices]
    n, _ = _counted_words(c, "documents", names)
    rows = _rows(c)
    strength = c.strength(rows, ["present", "absent"])
    at = _places(names, belief.words)
    there: list[Support | None] = [
        Support(n[i], rows, share(belief.present[at[i]], strength, 2)) for i in range(len(names))
    ]
    rest = np.setdiff1d(np.arange(len(belief.words)), at)
    return [*there, Support(rows, rows, _sum_of(belief.absent[rest], strength))]


def _of_levels(belief: BagLevelsBelief, c: Counted, block: Any, lines: int) -> list[Support | None]:
    level, rows = belief.levels_of(block, 0), _rows(c)
    there, levels = np.flatnonzero(level), len(belief.probabilities)
    strength = c.strength(rows, [str(x) for x in range(levels)])
    p = belief.probabilities[level[there], there]
    counts = np.maximum(p * strength - (strength - rows) / levels, 0.0)  # the smoothing taken off again
    single: list[Support | None] = [Support(counts[i], rows, share(p[i], strength, levels)) for i in range(len(there))]
    return [*single, Support(rows, rows, _sum_of(belief.probabilities[0, level == 0], strength))]


def _rows(c: Counted) -> Floats:
    table = c.counts.sheet("rows", N).table("n", c.n_classes)
    return table[0] if len(table) else np.zeros(c.n_classes)


def _sum_of(p: Floats, strength: Floats) -> Draw:
    """Draws of Σ log θ over many words, p words × classes: normal, by the mean and variance of each log θ."""

    def draw(y: int) -> Floats:
        a = np.maximum(p[:, y] * strength[y], 1e-3)
        mean = np.sum(digamma(a) - digamma(max(float(strength[y]), 1e-3)))
        variance = np.sum(np.maximum(polygamma(1, a) - polygamma(1, max(float(strength[y]), 1e-3)), 0.0))
        return np.asarray(mean + np.sqrt(variance) * ndtri(_POINTS))

    return draw


def _of_blend(belief: BlendBelief, c: Counted, block: Any, lines: int) -> list[Support | None]:
    """The families read the same rows, so that where one errs the others do: quantile by quantile, in their shares."""
    each = [supports_of(b, c, b.terms(block, 0), block)[0] for b in belief.beliefs]
    known = [s for s in each if s is not None]
    if len(known) < len(each) or not known:
        return [None]
    draws = [s.draw for s in known]
    narrow = min(known, key=lambda s: float(s.n.sum()))  # the counts of the bin, not of the whole curve

    def draw(y: int) -> Floats:
        parts = [
            share * np.quantile(d(y), _POINTS) for d, share in zip(draws, belief.shares, strict=True) if d is not None
        ]
        return np.asarray(np.sum(parts, axis=0))

    return [Support(narrow.n, narrow.of, None if any(d is None for d in draws) else draw)]


def _of_pair(belief: InteractionBelief, c: Counted, block: Any, lines: int) -> list[Support | None]:
    sheet = c.counts.sheet("values", N)
    table, slot = sheet.table("n", c.n_classes), block.text(0)
    n = table[sheet.slot_names.index(slot)] if slot in sheet.slot_names else np.zeros(c.n_classes)
    parts = belief.parts(block)[0]

    def draw(y: int) -> Floats:
        shape = float(n[y]) + 1
        return np.asarray(parts[y] + log_gamma(shape) - np.log(shape))

    return [Support(n, table.sum(axis=0), draw)]


_READERS: tuple[tuple[type[Belief] | tuple[type[Belief], ...], Callable[..., list[Support | None]]], ...] = (
    (CategoricalBelief, _of_category),
    ((BinsBelief, LevelsBelief), _of_cell),
    (KernelBelief, _of_kernel),
    (BellBelief, _of_bell),
    (PoissonBelief, _of_rate),
    (WordsBelief, _of_words),
    (BernoulliWordsBelief, _of_presence),
    (BagLevelsBelief, _of_levels),
    (BlendBelief, _of_blend),
    (InteractionBelief, _of_pair),
)


def _variance(draws: Floats) -> float:
    """The variance, of log-likelihoods no further out than a square can be taken."""
    return float(np.clip(draws, -1e150, 1e150).var())
