"""Words: what a bag says by how often each word occurs.

    amounts    under each word how often it occurs, and a one for occurring at all; a one for the row
    estimate   θ_yw = (Σx_w + α)/(Σx + α·V)
    score      Σ_w x_w·log θ_yw    (the log density adds log m!/∏x_w!)

V is the number of words: those seen in any class, or the width of the matrix. With `predictive` the multinomial
averages over θ: a Dirichlet-multinomial, in which a word's second occurrence surprises less than its first.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base.arrays import Floats, Ints, safe_log
from ..base.arrow import array, numpy_of, scalar
from ..base.errors import SettingsError
from ..base.lazy import gammaln
from ..base.threads import parallel
from ..data.blocks import Bag
from ..exact.counts import Counts
from ..exact.entries import row_shares
from ..exact.kernels import gate
from .base import Belief, Context, Family, Linear, Table, Term
from .categorical import UNSEEN, draw, sums_to_one
from .forms import Form, PolyaForm, WordsForm
from .smoothing import Dirichlet, Laplace
from .support import ColumnTally, Draw, Support, share
from .vocabulary import Selection, bag_rows, smoothed_words, vocabulary, word_table

_ENTRIES = 1 << 12  # of a sparse matrix: SciPy's product of fewer is done before a kernel is called
_MANY = 4096  # words to look up at once: from here on Arrow's hash table is faster than a dict


def mean_length(total: Floats, rows: Floats) -> Floats:
    """The mean length of a row by class; ten words where no row was ever counted."""
    return np.where(rows > 0, total / np.where(rows > 0, rows, 1.0), 10.0)


@dataclass(frozen=True)
class Multinomial(Family):
    """How often each word occurs, given how many words there are.

    `presence`: each word counts once per row; `idf`: words are weighted by log(rows / rows with the word) + 1.

    >>> rows = {"note": ["win cash now", "see you", "win win"], "y": ["spam", "ham", "spam"]}
    >>> tb.textbook(rows, "y", kinds={"note": "text"}, families={"note": "multinomial"}).table("note")["win", "spam"]
    0.4
    """

    presence: bool = False
    idf: bool = False
    select: Selection = field(default_factory=Selection)
    predictive: bool | None = None

    name = "multinomial"
    kinds = ("bag", "text")

    def estimate(self, counts: Counts, context: Context) -> WordsBelief:
        """The smoothed word frequencies."""
        words, amount = vocabulary(counts, context, self.select), "documents" if self.presence else "n"
        rows, averaged = bag_rows(counts, context), context.is_predictive(self.predictive)
        plain = not (self.idf or averaged or context.reserve)
        if plain and (quick := smoothed_words(counts, context, amount, words)) is not None:
            return MultinomialBelief(tuple(words), quick[1], False, mean_length(quick[0], rows), self.presence)
        n = word_table(counts, context, amount, words, more=context.reserve)
        factor = _idf(counts, context, words, more=context.reserve) if self.idf else None
        n = n if factor is None else n * factor[:, None]
        slots = [*words, UNSEEN] if context.reserve else words
        length = mean_length(n.sum(axis=0), rows)
        if averaged:
            amounts = n + _dirichlet_amounts(context, slots)
            return PolyaBelief(
                tuple(words), shares_of(amounts), context.reserve, length, self.presence, factor, amounts=amounts
            )
        p = context.probabilities(n, slots)
        return MultinomialBelief(tuple(words), p, context.reserve, length, self.presence, factor)


def _idf(counts: Counts, context: Context, words: Sequence[str], more: int) -> Floats:
    """log(rows / rows with the word) + 1, over all classes: a word in every row keeps the weight 1."""
    rows = max(float(bag_rows(counts, context).sum()), 1.0)
    there = word_table(counts, context, "documents", words, more).sum(axis=1)
    return np.asarray(np.log(rows / np.maximum(there, 1.0)) + 1.0)


def imagined(context: Context, slots: Sequence[str]) -> Floats:
    """The imagined occurrences of each word, words × classes, of a smoothing that has them."""
    if isinstance(context.smoothing, Dirichlet):
        return context.smoothing.amounts_for(slots, context.classes)
    alpha = context.smoothing.alpha if isinstance(context.smoothing, Laplace) else 0.0
    return np.full((len(slots), context.n_classes), alpha)


def _dirichlet_amounts(context: Context, slots: Sequence[str]) -> Floats:
    smoothing = context.smoothing
    if isinstance(smoothing, Dirichlet) or (isinstance(smoothing, Laplace) and smoothing.alpha > 0):
        return imagined(context, slots)
    raise SettingsError(
        f"column {context.column!r} is to be scored by its Dirichlet predictive, but its smoothing is no Dirichlet",
        hint="take smoothing=tb.Laplace(alpha) with alpha above 0, or tb.Dirichlet({…}).",
    )


def shares_of(n: Floats) -> Floats:
    """Each word's share of its class."""
    return np.asarray(n / np.maximum(n.sum(axis=0), 1e-300))


@gate.guarded
def product(matrix: Any, table: Floats) -> Floats:
    """A sparse matrix times a table, its rows shared out among the threads where there are many."""
    kernels = gate.kernels("scores", matrix.nnz) if matrix.nnz >= _ENTRIES else None
    if kernels is None or matrix.indptr.dtype != matrix.indices.dtype:
        return np.asarray(matrix @ table, dtype=np.float64)
    out = np.empty((matrix.shape[0], table.shape[1]))
    times = partial(kernels.products, matrix.indptr, matrix.indices, matrix.data, np.ascontiguousarray(table))
    parallel([partial(times, a, out[a:b]) for a, b in row_shares(matrix)])
    return out


def _scaled(draw: Draw, scale: Floats) -> Draw:
    return lambda y: scale[y] * draw(y)


def _spelled(word: str, amount: float) -> str:
    return word if amount == 1 else f"{word} ×{amount:g}"


@dataclass(frozen=True)
class WordsBelief(Belief):
    """What the readings share: a vocabulary, a probability per word, and how long a row is on average."""

    words: tuple[str, ...]
    probabilities: Floats  # words (and the reserved slot) × classes
    reserve: bool
    length: Floats
    presence: bool = False  # a word counts once per row, however often it occurs
    factor: Floats | None = None  # a weight per word

    asked_of = ("bag", "text")
    axes: ClassVar = {"probabilities": "words+reserve classes", "length": "classes", "factor": "words+reserve"}

    @property
    def _at(self) -> Mapping[str, int]:
        return self._form.at

    @cached_property
    def _form(self) -> WordsForm:
        known = len(self.words)
        unseen = self.weights[known] if self.reserve else np.zeros(self.weights.shape[1])
        return WordsForm(self.presence, self.words, self.weights[:known], unseen, float(self.length.mean()))

    def form(self) -> Form:
        """What one occurrence of each word adds."""
        return self._form

    @cached_property
    def _words(self) -> pa.Array:
        return array(self.words, pa.string())

    @cached_property
    def weights(self) -> Floats:
        """What one occurrence of each word adds, words × classes."""
        log = safe_log(self.probabilities)
        return log if self.factor is None else self.factor[:, None] * log

    def _amounts(self, block: Bag) -> Any:
        """The amounts that are scored: counts, or ones."""
        if not self.presence:
            return block.matrix
        matrix = block.matrix.copy()
        matrix.data = np.ones_like(matrix.data)
        return matrix

    def rows_of(self, slots: Sequence[str]) -> Ints:
        """The row of `weights` for each slot of a block; −1 for a word never seen."""
        unseen = len(self.words) if self.reserve else -1
        if len(slots) < _MANY:
            return np.array([self._at.get(s, unseen) for s in slots], dtype=np.int64)
        found = pc.index_in(array(slots, pa.string()), value_set=self._words)
        return np.asarray(numpy_of(found.fill_null(scalar(unseen, found.type))), dtype=np.int64)

    def each(self, slots: Sequence[str], table: Floats) -> Floats:
        """The rows of a table for a block's slots, zeros for words never seen."""
        if not isinstance(slots, tuple):
            return self._each(slots, table)
        kept = self._aligned.get(id(table))  # the positions of a matrix are one tuple, in batch after batch
        if kept is None or kept[0] is not slots or kept[1] is not table:
            kept = self._aligned[id(table)] = (slots, table, self._each(slots, table))
        return kept[2]

    def _each(self, slots: Sequence[str], table: Floats) -> Floats:
        return np.vstack([table, np.zeros((1, table.shape[1]))])[self.rows_of(slots)]

    @cached_property
    def _aligned(self) -> dict[int, tuple[Sequence[str], Floats, Floats]]:
        return {}

    def parts(self, block: Bag) -> Floats:
        """Σ_w x_w·weight_yw; 0 for a missing bag. A text may have a way that needs no bag."""
        quick: Floats | None = block.dot(self) if hasattr(block, "dot") else None
        return product(self._amounts(block), self.each(block.slots, self.weights)) if quick is None else quick

    def summed(self, texts: Sequence[Sequence[str]]) -> Floats:
        """The same for a few lists of words, found one by one."""
        unseen = len(self.words) if self.reserve else -1
        out = np.zeros((len(texts), self.weights.shape[1]))
        for i, words in enumerate(texts):
            at = [self._at.get(w, unseen) for w in (dict.fromkeys(words) if self.presence else words)]
            self.weights[[j for j in at if j >= 0]].sum(axis=0, out=out[i])
        return out

    def lookup(self, kernels: Any) -> Any:
        """The weights behind the words, as the kernels read them; made when first asked for."""
        if "_lookup" not in self.__dict__:
            count = len(self.words)
            unseen = self.weights[count] if self.reserve else None
            often = self.probabilities[:count].max(axis=1, initial=0.0)
            self.__dict__["_lookup"] = kernels.Lookup.of(self._words, self.weights[:count], unseen, often)
        return self.__dict__["_lookup"]

    def terms(self, block: Bag, row: int) -> list[Term]:
        """Word by word, in the order given if there was one."""
        if not block.has[row]:
            return super().terms(block, row)
        listed = self.listed(block, row)
        names = [block.slots[slot] for slot, _ in listed]
        known = self.rows_of(names) >= 0
        return [
            Term(_spelled(name, amount), amount * weight, "" if k else "never seen")
            for name, (_, amount), weight, k in zip(names, listed, self.each(names, self.weights), known, strict=True)
        ]

    def listed(self, block: Bag, row: int) -> list[tuple[int, float]]:
        """Slot and amount of what one row has, as it is scored: word by word as written, or once with its amount."""
        start, stop = block.matrix.indptr[row : row + 2]
        slots, amounts = block.matrix.indices[start:stop].tolist(), block.matrix.data[start:stop].tolist()
        if self.presence:
            return [(slot, 1.0) for slot in slots]
        if block.given is not None and Counter(block.given[row]) == dict(zip(slots, amounts, strict=True)):
            return [(slot, 1.0) for slot in block.given[row]]
        return list(zip(slots, amounts, strict=True))

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """Words by their probabilities; how many, a Poisson number, tells nothing of the class, as in the answers."""
        names = [*self.words, UNSEEN] if self.reserve else list(self.words)
        if not names:
            return array([[] for _ in labels], pa.list_(pa.string()))
        lengths = rng.poisson(float(self.length.mean()), len(labels))
        offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
        flat = self._drawn(np.repeat(labels, lengths), offsets, rng)
        return pa.ListArray.from_arrays(array(offsets.astype(np.int32)), array(names, pa.string()).take(array(flat)))

    def _drawn(self, labels: Ints, offsets: Ints, rng: np.random.Generator) -> Ints:
        """A word for each of these classes, those of one row after those of another."""
        return draw(self.probabilities, labels, rng)

    def parameters(self) -> tuple[int, int]:
        """C·V raw, C·(V − 1) free."""
        v, c = self.probabilities.shape
        return c * v, c * max(v - 1, 0)

    def table(self) -> Table:
        """P(word given class)."""
        rows = [*self.words, UNSEEN][: len(self.probabilities)]
        return Table("P(word given class)", rows, self.probabilities, "words")

    def support(self, counted: ColumnTally, block: Bag) -> list[Support]:
        """The occurrences, or the rows, behind each word."""
        listed = self.listed(block, 0)
        names = [block.slots[slot] for slot, _ in listed]
        n, total = counted.of_words("documents" if self.presence else "n", names)
        n, total, p, scale = self.behind(counted, names, n, total)
        strength, slots = counted.strength(total, self.table().rows), len(self.probabilities)
        factor = np.ones(len(names)) if self.factor is None else self.each(names, self.factor[:, None])[:, 0]
        return [
            Support(n[i], total, _scaled(share(p[i], strength, slots, amount * factor[i]), scale[i]))
            for i, (_, amount) in enumerate(listed)
        ]

    def behind(
        self, counted: ColumnTally, names: Sequence[str], n: Floats, total: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Of some words: counts and their total that speak, their shares, and a factor for log share."""
        p = np.vstack([self.probabilities, np.zeros((1, counted.n_classes))])[self.rows_of(names)]
        return n, total, p, np.ones_like(n)

    def features(self, block: Bag) -> Floats:
        """The amounts of the belief's words, rows × words."""
        out = np.zeros((block.rows, len(self.weights)))
        at = self.rows_of(block.slots)
        row, slot, amount = block.entries()
        amount = np.ones_like(amount) if self.presence else amount
        known = at[slot] >= 0 if len(slot) else np.zeros(0, dtype=bool)
        np.add.at(out, (row[known], at[slot[known]]), amount[known])
        return out

    def linear(self) -> Linear | None:
        """Weights log θ on the counts."""
        none = np.zeros(self.weights.shape[0])
        return Linear(self.table().rows, self.weights.T, np.zeros(self.weights.shape[1]), none, self.features)


@dataclass(frozen=True)
class MultinomialBelief(WordsBelief):
    """θ per class."""

    def base(self, block: Bag) -> Floats:
        """log m!/∏x_w! of the words that are scored: in how many orders they can stand."""
        row, slot, amount = block.entries()
        known = self.rows_of(block.slots)[slot] >= 0 if len(slot) else np.zeros(0, dtype=bool)
        row, amount = row[known], amount[known]
        ways = np.bincount(row, weights=gammaln(amount + 1), minlength=block.rows)
        length = np.bincount(row, weights=amount, minlength=block.rows)
        out: Floats = gammaln(length + 1) - ways
        return out

    @property
    def density(self) -> bool:
        """Counting words once, or weighting them, leaves no distribution over bags."""
        return not self.presence and self.factor is None

    adds_up = property(lambda self: sums_to_one(self.probabilities))

    def sealed(self) -> Belief:
        """Without the lengths of the rows."""
        return replace(self, length=np.ones_like(self.length))


@dataclass(frozen=True)
class PolyaBelief(MultinomialBelief):
    """The Dirichlet-multinomial: Σ log Γ(a_w + x_w) − log Γ(a_w), less the same of the sums."""

    amounts: Floats = field(kw_only=True)

    def form(self) -> Form:
        """The counts themselves, for those who may see them."""
        unseen = len(self.words) if self.reserve else None
        return PolyaForm(once=self.presence, words=self.words, amounts=self.amounts, unseen=unseen)

    def parts(self, block: Bag) -> Floats:
        """log of the posterior predictive, without the number of orders."""
        at = self.rows_of(block.slots)
        row, slot, x = block.entries()
        x = np.ones_like(x) if self.presence else x
        known = at[slot] >= 0 if len(slot) else np.zeros(0, dtype=bool)
        row, word, x = row[known], at[slot[known]] if len(slot) else slot, x[known]
        out = np.zeros((block.rows, self.amounts.shape[1]))
        length = np.bincount(row, weights=x, minlength=block.rows)
        for y in range(out.shape[1]):
            a = self.amounts[word, y]
            total = self.amounts[:, y].sum()
            each = np.bincount(row, weights=gammaln(a + x) - gammaln(a), minlength=block.rows)
            out[:, y] = each - (gammaln(total + length) - gammaln(total))
        out[~block.has] = 0.0
        return out

    def _drawn(self, labels: Ints, offsets: Ints, rng: np.random.Generator) -> Ints:
        """A word is one of those before it in the row as often as these outweigh the counts, else a fresh one."""
        out = super()._drawn(labels, offsets, rng)
        before = np.arange(len(labels)) - np.repeat(offsets[:-1], np.diff(offsets))
        total = self.amounts.sum(axis=0)[labels]
        again = np.flatnonzero(rng.random(len(labels)) * (total + before) < before)
        source = again - rng.integers(1, before[again] + 1)
        for at, of in zip(again.tolist(), source.tolist(), strict=True):  # in order: what is repeated may be repeated
            out[at] = out[of]
        return out

    def terms(self, block: Bag, row: int) -> list[Term]:
        """One word given the words before it: log Γ ratios of (a_w + how often it stood) and (Σa + how many stood)."""
        if not block.has[row]:
            return Belief.terms(self, block, row)
        out, before, stood = [], 0.0, np.zeros(len(self.amounts))
        total = self.amounts.sum(axis=0)
        for slot, amount in self.listed(block, row):
            at = int(self.rows_of([block.slots[slot]])[0])
            parts = np.zeros(len(total))
            if at >= 0:
                own = self.amounts[at] + stood[at]
                parts = gammaln(own + amount) - gammaln(own)
                parts -= gammaln(total + before + amount) - gammaln(total + before)
                stood[at] += amount
                before += amount
            out.append(Term(_spelled(block.slots[slot], amount), parts, "" if at >= 0 else "never seen"))
        return out

    def linear(self) -> Linear | None:
        """Not linear in the counts."""
        return None
