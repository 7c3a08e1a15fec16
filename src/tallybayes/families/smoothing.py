"""How counts become probabilities: the named ways of not believing a zero. All are chosen after counting.

Each works on a table of counts n: slots along the first axis, classes along the last, and gives a table of the same
shape whose slots sum to one in every class (epsilon aside). N is a class's total, K the number of slots.
A class in which nothing was counted has no frequencies of its own; where a formula would divide by zero it takes
the frequencies over all classes, which is evidence for none of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real

import numpy as np

from ..base import canon
from ..base.arrays import Floats
from ..base.errors import SettingsError, warn

OTHER = "(other values)"  # in a Dirichlet prior: all values that are not named, together
PRESENCE = ("present", "absent")  # the slots of a word that occurs or not


class Smoothing(ABC):
    """One way of turning counts into probabilities."""

    @abstractmethod
    def probabilities(self, n: Floats, slots: Sequence[str], classes: Sequence[str], rows: float) -> Floats:
        """P(slot given class) from counts; `rows` is how many rows were counted in all."""

    def extra_slots(self) -> set[str]:
        """Slots that this smoothing gives weight to even if they were never counted."""
        return set()


def is_plain(smoothing: Smoothing) -> bool:
    """Whether it knows no slot by name and nothing but the counts, so that many tables can be smoothed as one."""
    return isinstance(smoothing, (Laplace, BackOff))


def frequencies(n: Floats) -> Floats:
    """n / N; over all classes together where a class has none; uniform where nothing was counted at all."""
    total = n.sum(axis=0, keepdims=True)
    pooled = n.sum(axis=-1, keepdims=True)
    everything = pooled.sum(axis=0, keepdims=True)
    flat = np.where(everything > 0, pooled / np.where(everything > 0, everything, 1.0), 1.0 / max(len(n), 1))
    out: Floats = np.where(total > 0, n / np.where(total > 0, total, 1.0), flat)
    return out


def background(n: Floats) -> Floats:
    """The class-free frequencies; add-one smoothed where some slot was never seen in any class."""
    pooled = n.sum(axis=-1, keepdims=True)
    pooled = pooled + np.any(pooled == 0, axis=0, keepdims=True)
    out: Floats = pooled / pooled.sum(axis=0, keepdims=True)
    return out


@dataclass(frozen=True)
class MaximumLikelihood(Smoothing):
    """n / N: the relative frequency, zeros included.

    >>> tb.MaximumLikelihood().probabilities(np.array([[3.0], [0.0]]), ["red", "blue"], ["urn"], 3).ravel().tolist()
    [1.0, 0.0]
    """

    def probabilities(self, n: Floats, slots: Sequence[str], classes: Sequence[str], rows: float) -> Floats:
        """n / N."""
        return frequencies(n)


@dataclass(frozen=True)
class Epsilon(Smoothing):
    """A zero becomes ε, much smaller than 1 / rows; nothing is renormalised. The default ε is 10⁻³ / rows.

    >>> tb.Epsilon().probabilities(np.array([[3.0], [0.0]]), ["red", "blue"], ["urn"], 3).round(5).ravel().tolist()
    [1.0, 0.00033]
    """

    epsilon: float | None = None

    def probabilities(self, n: Floats, slots: Sequence[str], classes: Sequence[str], rows: float) -> Floats:
        """n / N where n > 0, else ε."""
        if self.epsilon is not None and not 0 < self.epsilon * rows < 1:
            raise SettingsError(
                f"epsilon {self.epsilon:g} is not between 0 and 1/N, N being {rows:g} rows",
                hint="an epsilon as large as a real frequency would drown it: leave it out for 10⁻³/N, or use Laplace.",
            )
        epsilon = 1e-3 / max(rows, 1.0) if self.epsilon is None else self.epsilon
        p = frequencies(n)
        return np.where(p > 0, p, epsilon)


@dataclass(frozen=True)
class Laplace(Smoothing):
    """(n + α) / (N + α·K): Laplace for α = 1, Lidstone for others; the posterior mean under a symmetric Dirichlet.

    >>> tb.Laplace(1).probabilities(np.array([[2.0], [1.0]]), ["red", "blue"], ["urn"], 3).ravel().tolist()
    [0.6, 0.4]
    """

    alpha: float = 1.0

    def __post_init__(self) -> None:
        if not (is_number(self.alpha) and self.alpha >= 0 and np.isfinite(self.alpha)):
            raise SettingsError(
                f"alpha is {self.alpha!r}", hint="alpha counts imagined rows: take a number of at least 0."
            )

    def probabilities(self, n: Floats, slots: Sequence[str], classes: Sequence[str], rows: float) -> Floats:
        """(n + α) / (N + α·K)."""
        if self.alpha == 0:
            return frequencies(n)
        out: Floats = n + self.alpha
        out /= self.divisors(n.sum(axis=0, keepdims=True), len(n))  # in place: a large table is not made twice
        return out

    def divisors(self, total: Floats, slots: int) -> Floats:
        """N + α·K."""
        return total + self.alpha * slots


@dataclass(frozen=True)
class BackOff(Smoothing):
    """(n + m·P(y)) / (N + m·P(y)·K): m imagined rows of every value, in which classes are as frequent as in all rows.

    So what a value says of the class is drawn to what is known without it, n + m·P(y) of n + m rows, and a value that
    was seen once or twice says little. Laplace(1) imagines one row of each class instead, however rare the class.

    >>> n = np.array([[1.0, 0.0], [19.0, 80.0]])  # seen once, and never in the frequent class
    >>> p = tb.BackOff(4).probabilities(n, ["rare", "usual"], ["few", "many"], 100)
    >>> (p * [0.2, 0.8] / (p * [0.2, 0.8]).sum(axis=1, keepdims=True)).round(2)[0].tolist()  # 1.8 and 3.2 of 5 rows
    [0.36, 0.64]
    """

    rows: float = 2.0

    def __post_init__(self) -> None:
        if not (is_number(self.rows) and self.rows > 0 and np.isfinite(self.rows)):
            raise SettingsError(f"rows is {self.rows!r}", hint="it counts imagined rows: take a number above 0.")

    def amounts(self, n: Floats) -> Floats:
        """m·P(y), for each class."""
        total = n.sum(axis=0, keepdims=True)
        of_all = total.sum(axis=-1, keepdims=True)
        share = np.where(total > 0, total, 0.5) / np.maximum(of_all, 0.5)  # an empty class is worth half a row
        return np.asarray(self.rows * share)

    def probabilities(self, n: Floats, slots: Sequence[str], classes: Sequence[str], rows: float) -> Floats:
        """(n + m·P(y)) / (N + m·P(y)·K)."""
        amount = self.amounts(n)
        out: Floats = (n + amount) / (n.sum(axis=0, keepdims=True) + amount * len(n))
        return out


@dataclass(frozen=True)
class Dirichlet(Smoothing):
    """(n + a_slot) / (N + Σa): prior knowledge as imagined rows per value, for all classes or for each its own.

    >>> tb.Dirichlet({"red": 8, "blue": 2}).probabilities(np.zeros((2, 1)), ["blue", "red"], "y", 0).ravel().tolist()
    [0.2, 0.8]
    """

    amounts: Mapping[object, object]  # value → a, or class → {value → a}
    rest: float = 0.0  # the a of values not named

    def __post_init__(self) -> None:
        if not isinstance(self.amounts, Mapping):
            raise SettingsError(
                f"Dirichlet({self.amounts!r})", hint="give {value: amount}, or tb.Laplace(amount) for all values alike."
            )
        if not self.amounts or (
            any(isinstance(v, Mapping) for v in self.amounts.values())
            and not all(isinstance(v, Mapping) for v in self.amounts.values())
        ):
            raise SettingsError(
                "a Dirichlet prior is empty, or mixes values and classes",
                hint="give {value: amount} or {class: {value: amount}}.",
            )
        tables = [t if isinstance(t, Mapping) else {None: t} for t in self.amounts.values()]
        if not all(is_number(a) and a >= 0 and np.isfinite(a) for t in tables for a in (*t.values(), self.rest)):
            raise SettingsError(
                "a Dirichlet prior has an amount that is negative, not finite or no number",
                hint="amounts count imagined rows: take numbers of at least 0.",
            )

    def _tables(self) -> dict[str | None, dict[str, float]]:
        """Amounts by class; the class None stands for every class."""
        by_class = {k: v for k, v in self.amounts.items() if isinstance(v, Mapping)} or {None: self.amounts}
        return {
            None if c is None else str(canon.text(c)): {str(canon.text(v)): float(a) for v, a in t.items()}
            for c, t in by_class.items()
        }

    def extra_slots(self) -> set[str]:
        """The values that the prior names."""
        return {value for table in self._tables().values() for value in table}

    def amounts_for(self, slots: Sequence[str], classes: Sequence[str]) -> Floats:
        """The imagined rows, slots × classes; those of OTHER are shared by it and all slots that are not named."""
        tables = self._tables()
        out = np.empty((len(slots), len(classes)))
        for y, c in enumerate(classes):
            table = tables.get(c, tables.get(None, {}))
            unnamed = [s for s in slots if s not in table]
            share = table.get(OTHER, 0.0) / (len(unnamed) + 1)
            named = {**table, OTHER: share}
            out[:, y] = [named.get(s, self.rest + share) for s in slots]
        return out

    def probabilities(self, n: Floats, slots: Sequence[str], classes: Sequence[str], rows: float) -> Floats:
        """(n + a) / (N + Σa); of a table for every word, its slots are levels, and the same for each."""
        amounts = self.amounts_for(slots, classes)
        if n.ndim == 2:
            return frequencies(n + amounts)
        strange = sorted(self.extra_slots() - set(slots) - {OTHER})
        if strange:
            raise SettingsError(
                f"a Dirichlet prior names {strange[0]!r}, which is no level: they are {slots[0]} to {slots[-1]}",
                hint="a family of levels imagines rows by how often a word occurs: tb.Dirichlet({0: 8, 1: 1, 2: 1}).",
            )
        return frequencies(n + amounts[:, None, :])


@dataclass(frozen=True)
class Beta(Smoothing):
    """(n + a) / (N + a + b) for the rows that have a word, and the rest for those that do not.

    For words read by presence: a imagined rows with each word and b without it. Laplace(1) is Beta(1, 1).

    >>> tb.Beta(1, 9).probabilities(np.array([[2.0], [8.0]]), ["present", "absent"], ["y"], 10).ravel().tolist()
    [0.15, 0.85]
    """

    present: float = 1.0
    absent: float = 1.0

    def __post_init__(self) -> None:
        if not all(is_number(a) and a >= 0 and np.isfinite(a) for a in (self.present, self.absent)):
            raise SettingsError(
                f"Beta({self.present!r}, {self.absent!r})",
                hint="both count imagined rows: take numbers of at least 0.",
            )

    def probabilities(self, n: Floats, slots: Sequence[str], classes: Sequence[str], rows: float) -> Floats:
        """(n + a) / (N + a + b) and (N − n + b) / (N + a + b)."""
        if tuple(slots) != PRESENCE:
            raise SettingsError(
                "Beta(a, b) is for words that are there or not, and this column has a table of other values",
                hint="take tb.Beta for columns read by 'bernoulli' words, tb.Dirichlet({value: rows}) for others.",
            )
        return frequencies(n + np.reshape([self.present, self.absent], (2, *[1] * (n.ndim - 1))))


def is_number(value: object) -> bool:
    """Whether this is a number, and not true or false."""
    return not isinstance(value, bool) and isinstance(value, Real)


def MAP(prior: float | Mapping[object, float] = 2.0) -> Smoothing:
    """(n + a − 1) / (N + Σ(a − 1)): the likeliest parameters where a Dirichlet (Beta) of these amounts was believed.

    Laplace and Dirichlet are the mean of what is believed afterwards, this is its peak: the same numbers as those with
    one imagined row less of each value, so MAP(2) is Laplace(1), and MAP(1), a flat prior, maximum likelihood.

    >>> tb.MAP(2), tb.MAP({"red": 3, "blue": 2})
    (Laplace(alpha=1.0), Dirichlet(amounts={'red': 2.0, 'blue': 1.0}, rest=0.0))
    """
    amounts = prior if isinstance(prior, Mapping) else {"": prior}
    for value, a in amounts.items():
        if not (is_number(a) and np.isfinite(a) and a >= 1):
            where = f" for {value!r}" if value != "" else ""
            raise SettingsError(
                f"MAP under a Dirichlet of {a!r}{where}",
                hint="below 1 the posterior may have no peak: take 1 or more, or its mean, tb.Laplace(α).",
            )
    if isinstance(prior, Mapping):
        return Dirichlet({value: float(a) - 1.0 for value, a in prior.items()})
    return Laplace(float(prior) - 1.0)


@dataclass(frozen=True)
class JelinekMercer(Smoothing):
    """(1 − λ)·n/N + λ·background: interpolation with the frequencies over all classes.

    >>> tb.JelinekMercer(0.2).probabilities(np.array([[3.0, 1], [0, 1]]), ["red", "blue"], "ab", 5).round(2).tolist()
    [[0.96, 0.56], [0.04, 0.44]]
    """

    weight: float = 0.1

    def __post_init__(self) -> None:
        if not (is_number(self.weight) and 0 <= self.weight <= 1):
            raise SettingsError(f"the weight is {self.weight!r}", hint="λ shares out a whole: take 0 to 1.")

    def probabilities(self, n: Floats, slots: Sequence[str], classes: Sequence[str], rows: float) -> Floats:
        """(1 − λ)·n/N + λ·background."""
        return (1 - self.weight) * frequencies(n) + self.weight * background(n)


@dataclass(frozen=True)
class AbsoluteDiscount(Smoothing):
    """(max(n − d, 0) + D·background) / N, with D the sum of what was taken off.

    With `kneser_ney=True` the background is not how often but in how many classes a value occurs.

    >>> tb.AbsoluteDiscount(0.5).probabilities(np.array([[3.0], [1], [0]]), "abc", "y", 4).round(3).ravel().tolist()
    [0.768, 0.196, 0.036]
    """

    discount: float = 0.5
    kneser_ney: bool = False

    def __post_init__(self) -> None:
        if not (is_number(self.discount) and 0 < self.discount <= 1):
            raise SettingsError(f"the discount is {self.discount!r}", hint="take a number above 0 and at most 1.")

    def probabilities(self, n: Floats, slots: Sequence[str], classes: Sequence[str], rows: float) -> Floats:
        """(max(n − d, 0) + D·background) / N."""
        back = background((n > 0).astype(np.float64) if self.kneser_ney else n)
        taken = np.minimum(n, self.discount)
        total = n.sum(axis=0, keepdims=True)
        spread = (n - taken + taken.sum(axis=0, keepdims=True) * back) / np.where(total > 0, total, 1.0)
        out: Floats = np.where(total > 0, spread, np.broadcast_to(back, n.shape))
        return out


@dataclass(frozen=True)
class GoodTuring(Smoothing):
    """Simple Good–Turing (Gale and Sampson 1995): the singletons tell how much probability the unseen deserve.

    r* = (r + 1)·S(r + 1)/S(r), with S a line through log Z against log r; the unseen share N₁/N by their background.
    Where a class has no singletons, no zeros, weighted counts or too few different counts for a line, absolute
    discounting takes its place and a warning says so.

    >>> tb.GoodTuring().probabilities(np.array([[9.0, 3, 2, 1, 1, 0]]).T, "abcdef", "y", 16).round(3).ravel().tolist()
    [0.504, 0.163, 0.106, 0.051, 0.051, 0.125]
    """

    def probabilities(self, n: Floats, slots: Sequence[str], classes: Sequence[str], rows: float) -> Floats:
        """r*/N for what was seen, N₁/N shared among what was not."""
        instead = AbsoluteDiscount().probabilities(n, slots, classes, rows)
        if n.ndim != 2:
            self._say(["every word"])
            return instead
        out = np.empty_like(n)
        back = background(n)[:, 0]
        replaced = []
        for c, name in enumerate(classes):
            column = _simple_good_turing(n[:, c], back)
            if column is None:
                replaced.append(name)
            out[:, c] = instead[:, c] if column is None else column
        if replaced:
            self._say(replaced)
        return out

    def _say(self, where: Sequence[str]) -> None:
        warn(
            f"Good–Turing needs singletons, unseen values and a few different counts; absolute discounting "
            f"stands in for {', '.join(where[:6])}"
        )


def _simple_good_turing(n: Floats, back: Floats) -> Floats | None:
    """P of each slot of one class, or None where the counts do not allow the estimate."""
    seen = n > 0
    if np.any(n != np.rint(n)):
        return None
    r, times = np.unique(n[seen], return_counts=True)
    if len(r) < 3 or r[0] != 1 or seen.all():
        return None
    before = np.concatenate(([0.0], r[:-1]))
    after = np.concatenate((r[1:], [2 * r[-1] - before[-1]]))
    slope, _ = np.polyfit(np.log(r), np.log(times / (0.5 * (after - before))), 1)
    if slope > -1:  # then r* > r: the line says nothing about zeros
        return None
    total = float(n.sum())
    r_star = r * (1 + 1 / r) ** (slope + 1)
    turing_rules = True  # use Turing's own estimate as long as it differs significantly from the line's
    for i, value in enumerate(r):
        following = np.flatnonzero(r == value + 1)
        turing_rules = turing_rules and len(following) == 1
        if turing_rules:
            z, z1 = float(times[i]), float(times[following[0]])
            turing = (value + 1) * z1 / z
            deviation = np.sqrt((value + 1) ** 2 * z1 / z**2 * (1 + z1 / z))
            turing_rules = bool(abs(r_star[i] - turing) > 1.96 * deviation)
            if turing_rules:
                r_star[i] = turing
    unseen = float(times[0]) / total
    if unseen >= 1:
        return None
    mass = r_star[np.searchsorted(r, n[seen])]
    out = np.empty_like(n)
    out[seen] = (1 - unseen) * mass / mass.sum()
    out[~seen] = unseen * back[~seen] / back[~seen].sum()
    return out
