"""Bernoulli: yes or no, ψ^x·(1 − ψ)^(1 − x); of a column, or of every word of a bag, which occurs or does not.

amounts    a one under the value, or under each word that occurs at all and for the row
estimate   ψ_yw = (rows with w + α)/(rows + 2·α), or + a and + a + b under Beta(a, b)
score      Σ_w log ψ_yw if w occurs, log(1 − ψ_yw) if not
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from ..base.arrays import Floats, Ints, safe_log
from ..base.errors import SettingsError
from ..base.lazy import scipy
from ..data.blocks import WORDS, Bag, N
from ..data.schema import Column
from ..exact.counts import Counts
from .base import Belief, Context, Family, Linear, Table, Term
from .categorical import Categorical, sums_to_one
from .forms import PresenceForm
from .histogram import Histogram, read_cells
from .levels import Levels, LevelsBelief
from .smoothing import PRESENCE, Dirichlet, frequencies
from .support import ColumnTally, Support, share, sum_of
from .vocabulary import Selection, bag_rows, vocabulary, word_table
from .words import WordsBelief


@dataclass(frozen=True)
class Bernoulli(Family):
    """Two values, or the numbers 0 and 1. A column of which only one value was seen still has two.

    >>> rows = {"pet": [1, 1, 0, 0], "y": ["yes", "yes", "yes", "no"]}
    >>> tb.textbook(rows, "y", kinds={"pet": "number"}, families={"pet": "bernoulli"}).table("pet")
    P(level given class)        no  yes
    0                     0.666667  0.4
    1                     0.333333  0.6
    """

    name = "bernoulli"
    kinds = ("category", "number")

    def takes(self, column: Column) -> bool:
        """Numbers that are 0 or 1, and categories that can have no third value."""
        if column.like == "number":
            return column.cells is not None and column.cells.discrete and {*column.cells.points} <= {0.0, 1.0}
        return super().takes(column) and column.values is not None and len(column.values) <= 2

    def estimate(self, counts: Counts, context: Context) -> Belief:
        """The table of two values."""
        if context.like == "number":
            return self._of_numbers(counts, context)
        seen = {*counts.sheet("values", N).slot_names, *(context.values or ())}
        for pair in ({"false", "true"}, {"0", "1"}):
            if seen <= pair:
                seen = pair
        if len(seen) > 2:
            raise SettingsError(
                f"column {context.column!r} has {len(seen)} values and cannot be bernoulli",
                hint="use the family 'categorical'.",
            )
        return Categorical().estimate(counts, replace(context, values=tuple(sorted(seen))))

    def _of_numbers(self, counts: Counts, context: Context) -> LevelsBelief:
        h = read_cells(counts, context, self.name)
        if not zero_or_one(h):
            raise SettingsError(
                f"column {context.column!r} has numbers other than 0 and 1 and cannot be bernoulli",
                hint="use 'gaussian', 'kernel' or 'bins', or 'poisson' and 'levels' for counts.",
            )
        belief = Levels(top=1).estimate(counts, context)
        assert isinstance(belief, LevelsBelief)
        return replace(belief, fold=False)  # 2 is no larger 1: it was never seen

    def leave_one_out(self, h: Histogram, counts: Counts, context: Context) -> tuple[Floats, Floats]:
        """log P of each cell's value: as counted, and with one row of the cell taken out."""
        return Levels(top=1).leave_one_out(h, counts, context)


def zero_or_one(h: Histogram) -> bool:
    """Whether all numbers of a column are 0 or 1."""
    return h.cells.discrete and bool(np.isin(h.middle, (0.0, 1.0)).all() and h.point.all())


@dataclass(frozen=True)
class BernoulliWords(Family):
    """Which words occur and which do not: an absent word is evidence, too, and how often one occurs is none.

    >>> rows = {"note": ["win cash now", "see you", "win win"], "y": ["spam", "ham", "spam"]}
    >>> model = tb.textbook(rows, "y", kinds={"note": "text"}, families={"note": "bernoulli"})
    >>> model.table("note")["win", "spam"]  # (2 + 1) / (2 + 2): two of two mails have it
    0.75
    """

    select: Selection = field(default_factory=Selection)

    name = "bernoulli words"
    kinds = ("bag", "text")

    def estimate(self, counts: Counts, context: Context) -> BernoulliWordsBelief:
        """The smoothed share of rows with each word."""
        if isinstance(context.smoothing, Dirichlet) and context.smoothing.extra_slots() <= set(PRESENCE):
            known = counts.sheet("words", WORDS).slot_names
            if not any(word in known for word in context.smoothing.extra_slots()):
                raise SettingsError(
                    f"column {context.column!r}: a Dirichlet prior over words names only 'present' and 'absent', "
                    "which no row has",
                    hint="imagined rows with and without each word are tb.Beta(1, 9).",
                )
        words = vocabulary(counts, context, self.select)
        there = word_table(counts, context, "documents", words)
        rows = bag_rows(counts, context)
        n = np.stack([there, np.maximum(rows - there, 0.0)])
        if isinstance(context.smoothing, Dirichlet):  # so many imagined rows with the word, and as many without it
            p = frequencies(n + context.smoothing.amounts_for(words, context.classes))
        else:
            p = context.probabilities(n, PRESENCE)
        return BernoulliWordsBelief(tuple(words), p[0], p[1])


@dataclass(frozen=True)
class BernoulliWordsBelief(Belief):
    """ψ per word and class: how likely a row has the word."""

    words: tuple[str, ...]
    present: Floats
    absent: Floats

    asked_of = ("bag", "text")
    axes: ClassVar = {"present": "words classes", "absent": "words classes"}
    adds_up = property(lambda self: sums_to_one(np.stack([self.present, self.absent])))

    @cached_property
    def _view(self) -> WordsBelief:
        """The same vocabulary under the shared methods."""
        return WordsBelief(self.words, self.present, False, np.zeros(self.present.shape[1]))

    @cached_property
    def _sums(self) -> tuple[tuple[Floats, Floats], tuple[Floats, Floats]]:
        """Twice (a row without words, what each word changes): of finite logarithms, and of how many are −inf."""
        there, gone = safe_log(self.present), safe_log(self.absent)
        never, always = np.isinf(there), np.isinf(gone)
        there, gone = np.where(never, 0.0, there), np.where(always, 0.0, gone)
        return (gone.sum(axis=0), there - gone), (always.sum(axis=0), never.astype(float) - always)

    def parts(self, block: Bag) -> Floats:
        """Σ_w log ψ if the word occurs, log(1 − ψ) if not; infinities are counted apart, so that none meets another."""
        (none, each), (impossible, infinite) = self._sums
        ones = np.ones_like(block.matrix.data)
        matrix = scipy.sparse.csr_array((ones, block.matrix.indices, block.matrix.indptr), shape=block.matrix.shape)
        out: Floats = none + matrix @ self._view.each(block.slots, each)
        if infinite.any() or impossible.any():
            out[impossible + matrix @ self._view.each(block.slots, infinite) > 0.5] = -np.inf
        out[~block.has] = 0.0
        return out

    def terms(self, block: Bag, row: int) -> list[Term]:
        """The words that occur, one by one, then all that do not."""
        if not block.has[row]:
            return super().terms(block, row)
        start, stop = block.matrix.indptr[row : row + 2]
        names = [block.slots[s] for s in block.matrix.indices[start:stop]]
        at = self._view.rows_of(names)
        log = safe_log(self.present)
        none = np.zeros(self.present.shape[1])
        terms = [
            Term(n, log[i] if i >= 0 else none, "" if i >= 0 else "never seen") for n, i in zip(names, at, strict=True)
        ]
        rest = np.setdiff1d(np.arange(len(self.words)), at)
        return [*terms, Term(f"({len(rest)} words that do not occur)", safe_log(self.absent[rest]).sum(axis=0))]

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """Each word there or not."""
        either = (self.present + self.absent).T[labels]
        there = rng.random((len(labels), len(self.words))) * either < self.present.T[labels]
        return pa.array([[self.words[j] for j in np.flatnonzero(r)] for r in there], pa.list_(pa.string()))

    def parameters(self) -> tuple[int, int]:
        """C·V, all free."""
        return self.present.size, self.present.size

    def table(self) -> Table:
        """P(word occurs given class)."""
        return Table("P(word occurs given class)", list(self.words), self.present, "words")

    def form(self) -> PresenceForm:
        """What each word says by occurring, and by not."""
        return PresenceForm(self.words, safe_log(self.present), safe_log(self.absent))

    def support(self, counted: ColumnTally, block: Bag) -> list[Support]:
        """The rows that have each word, then all rows behind the words that do not occur."""
        names = [block.slots[s] for s in block.matrix.indices]
        n, _ = counted.of_words("documents", names)
        rows = counted.rows()
        strength = counted.strength(rows, PRESENCE)
        at = self._view.rows_of(names)
        there = [Support(n[i], rows, share(self.present[at[i]], strength, 2)) for i in range(len(names))]
        rest = np.setdiff1d(np.arange(len(self.words)), at)
        return [*there, Support(rows, rows, sum_of(self.absent[rest], strength))]

    def linear(self) -> Linear | None:
        """Weights log ψ − log(1 − ψ) on presence, offset Σ log(1 − ψ); not where some ψ is 0 or 1."""
        there, gone = safe_log(self.present), safe_log(self.absent)
        if not (np.isfinite(there).all() and np.isfinite(gone).all()):
            return None

        def features(block: Any) -> Floats:
            out = (self._view.features(block) > 0).astype(np.float64)
            out[~block.has] = np.nan  # a missing bag says nothing, an empty one that no word occurs
            return out

        return Linear(list(self.words), (there - gone).T, gone.sum(axis=0), np.zeros(len(self.words)), features)
