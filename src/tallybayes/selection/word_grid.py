"""Words under many smoothings at once: the fast twin of estimating each and scoring.

A multinomial adds Σ_w x_w·log(n_yw + α) − |d|·log(N_y + α·V), a complement the same of the other classes' counts. A
`WordGrid` holds the words of a column by class and fold, `TrainingWords` those that one fold is scored by, `WordRows`
the rows of that fold: only their own words matter, and their counts are read once. Counts are small whole numbers, so a
short table has log(n + α) of all α side by side, and each word of a row adds that stretch to the sums of its class, in
the order in which one α alone would be added.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base.arrays import Bools, Floats, Ints
from ..base.arrow import numpy_of
from ..data.blocks import WORDS, Bag
from ..data.schema import Column
from ..exact.counts import Counts
from ..exact.dense import positions
from ..exact.kernels import gate
from ..exact.sheet import Sheet
from ..families import Complement, Multinomial, Selection, default_family, family_for
from ..families.settings import Settings
from ..families.smoothing import Dirichlet, Laplace
from ..families.vocabulary import sorted_positions
from ..families.words import product

_TABLE = 8192  # logarithms held per α; a larger count takes its own
_SEVERAL = 3  # α for which going through the words once repays itself


@gate.guarded
def products(rows: Any, n: Ints, alphas: tuple[float, ...]) -> Floats:
    """Σ_w x_w·log(n_wy + α), α × rows × classes, for a sparse matrix x and counts n."""
    codes, tables = n.astype(np.int32, order="C"), _logarithms(alphas)
    if n.max(initial=0) >= _TABLE:
        large, place = np.unique(n[n >= _TABLE], return_inverse=True)
        codes[n >= _TABLE] = _TABLE + place
        tables = _log(large, alphas, tables)
    kernels = gate.kernels("scores", rows.nnz * len(alphas)) if len(alphas) >= _SEVERAL else None
    out = np.empty((len(alphas), rows.shape[0], n.shape[1]))
    if kernels is not None:
        kernels.products_of_all(rows, codes, tables, out)
        return out
    for i, one in enumerate(out):
        one[:] = product(rows, tables[:, i].take(codes))
    return out


def _log(counts: Ints, alphas: tuple[float, ...], before: Floats | None = None) -> Floats:
    """log(n + α) for some n, counts × α, below those of other n if there are any.

    Zeros fill up to a multiple of eight α, and every eight are a line of the cache.
    """
    width, known = -(-len(alphas) // 8) * 8, 0 if before is None else len(before)
    room = np.zeros((known + len(counts)) * width + 8)
    first = -room.ctypes.data % 64 // 8
    out = room[first : len(room) - 8 + first].reshape(-1, width)
    if before is not None:
        out[:known] = before
    out[known:, : len(alphas)] = np.log(counts[:, None] + np.array(alphas))
    return out


@lru_cache(maxsize=4)
def _logarithms(alphas: tuple[float, ...]) -> Floats:
    """The same for n = 0, 1, …"""
    return _log(np.arange(_TABLE), alphas)


_PLACES = 1 << 24  # words × classes up to which the total of all folds is held as a full table


def reading(column: Column, settings: Settings) -> tuple[bool, str, float] | None:
    """(complement?, amount, α) where the settings believe a column in a way that this file knows; else None."""
    if not column.about.words or settings.unseen != "no evidence" or column.name in settings.corrections:
        return None
    if isinstance(settings.prior, Dirichlet):  # it may imagine classes that were never counted
        return None
    chosen = settings.families.get(column.name)
    family = default_family(column.kind) if chosen is None else family_for(chosen, column.kind)
    smoothing = settings.smoothing_of(column.name)
    if type(smoothing) is not Laplace or not smoothing.alpha > 0:
        return None
    if type(family) is Multinomial:
        averaged = settings.predictive if family.predictive is None else family.predictive
        known = not family.idf and not averaged
    elif type(family) is Complement:
        known = not family.norm
    else:
        return None
    if not known or family.select != Selection():
        return None
    return type(family) is Complement, "documents" if family.presence else "n", smoothing.alpha


@dataclass(frozen=True, eq=False)
class Entries:
    """Some entries of a grid: their words, classes and amounts."""

    slot: Ints
    label: Ints
    amounts: Sequence[Ints]

    def part(self, first: int, last: int) -> Entries:
        """A stretch of them."""
        return Entries(self.slot[first:last], self.label[first:last], [a[first:last] for a in self.amounts])

    @gate.guarded
    def add(self, column: int, times: int, row: Ints, table: Ints) -> None:
        """Add an amount, so many times, to table[row of the word, class]; a row of −1 is left out.

        All classes are added up in a table of one column.
        """
        label = self.label if table.shape[1] > 1 else np.zeros_like(self.label)
        if (kernels := gate.kernels("scores", len(label))) is not None:
            kernels.add_entries(self.slot, label, self.amounts[column], times, row, table)
            return
        at = row[self.slot]
        some = at >= 0
        np.add.at(table, (at[some], label[some]), times * self.amounts[column][some])


@dataclass(frozen=True, eq=False)
class WordGrid:
    """The words of one column, counted by class and fold."""

    sheet: Sheet
    label: Ints  # per entry: the class
    fold: Ints  # per entry: the fold
    classes: tuple[str, ...]

    @property
    def n_classes(self) -> int:
        """How many classes."""
        return len(self.classes)

    @classmethod
    def of(cls, counts: Counts, names: Sequence[tuple[str, int]]) -> WordGrid | None:
        """The grid of counts whose classes are (class, fold) pairs; None where an amount is no small whole number."""
        sheet = counts.sheet("words", WORDS)
        if len(sheet) == 0 or sheet.limb.any():
            return None
        classes = tuple(sorted({label for label, _ in names}))
        label = np.array([classes.index(c) for c, _ in names], dtype=np.int64)
        return cls(sheet, label[sheet.label], np.array([k for _, k in names], dtype=np.int64)[sheet.label], classes)

    def ids(self, slots: Sequence[str]) -> Ints:
        """The number of each word, −1 for one that no fold has."""
        known = isinstance(slots, tuple) and slots is positions(len(slots))
        if known and self._spelled is not None:
            out, own = np.full(len(slots), -1, dtype=np.int64), np.arange(len(self._spelled))
            inside = self._inside(self._spelled, len(slots))
            out[self._spelled[inside]] = own[inside]
            return out
        words = pa.array(slots, pa.string())
        if words.equals(self.sheet.slots):  # as when one batch was counted, and is asked about: nothing to look up
            return np.arange(len(words))
        found = pc.index_in(words, value_set=self.sheet.slots)
        return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)

    def training(self, folds: Bools) -> TrainingWords:
        """The words of some folds together."""
        return TrainingWords(self, folds)

    @cached_property
    def _by_fold(self) -> tuple[Entries, Ints]:
        """The entries fold by fold, and where each fold begins."""
        small = np.min_scalar_type(int(self.fold.max()))  # which NumPy sorts in linear time
        order, ends = np.argsort(self.fold.astype(small), kind="stable"), np.cumsum(np.bincount(self.fold))
        amounts = [np.ascontiguousarray(a.take(order)) for a in self.sheet.amount.T]
        return Entries(self.sheet.slot[order], self.label[order], amounts), np.concatenate(([0], ends))

    def entries(self, folds: Bools) -> list[Entries]:
        """The entries of some folds."""
        entries, edges = self._by_fold
        return [entries.part(*edges[k : k + 2]) for k in np.flatnonzero(folds[: len(edges) - 1]).tolist()]

    @cached_property
    def lengths(self) -> Ints:
        """Folds × classes × amounts: the sum over all words."""
        key = self.fold * self.n_classes + self.label
        size = (int(self.fold.max()) + 1) * self.n_classes
        sums = [np.bincount(key, weights=a, minlength=size) for a in self.sheet.amount.T]
        return np.stack(sums, axis=1).astype(np.int64).reshape(-1, self.n_classes, len(WORDS))

    @cached_property
    def documents(self) -> Ints:
        """In how many rows each word is."""
        return self._summed(1, 1)[:, 0]

    def _summed(self, amount: int, classes: int) -> Ints:
        """An amount of all folds, words × classes or words × 1."""
        out = np.zeros((self.width, classes), dtype=np.int64)
        self._by_fold[0].add(amount, 1, np.arange(self.width), out)
        return out

    @property
    def width(self) -> int:
        """One more than there are words: the last stands for words of no fold."""
        return len(self.sheet.slots) + 1

    @cached_property
    def _totals(self) -> dict[int, Ints]:
        return {}

    def total(self, amount: int) -> Ints | None:
        """All folds together, words × classes; None where that would be too large a table."""
        if self.width * self.n_classes > _PLACES:
            return None
        if amount not in self._totals:
            self._totals[amount] = self._summed(amount, self.n_classes)
        return self._totals[amount]

    def positions(self, width: int) -> Bools:
        """Which words are positions of a matrix of this width."""
        if self._positions.get(width) is None:
            spelled = self._spelled
            some = _is_position(self.sheet.slots, width) if spelled is None else self._inside(spelled, width)
            self._positions[width] = np.append(some, False)
        return self._positions[width]

    @staticmethod
    def _inside(numbers: Ints, width: int) -> Bools:
        return (numbers >= 0) & (numbers < width)

    @cached_property
    def _spelled(self) -> Ints | None:
        """The number that each word spells as a position is written, −1 for "007" or "-7"; None if some spell none."""
        try:
            numbers = numpy_of(self.sheet.slots.cast(pa.int64()))
        except pa.ArrowInvalid:
            return None
        digits = np.searchsorted(10 ** np.arange(1, 19), numbers, side="right") + 1
        return np.where((numbers >= 0) & (numpy_of(pc.binary_length(self.sheet.slots)) == digits), numbers, -1)

    @cached_property
    def _positions(self) -> dict[int, Bools]:
        return {}


@dataclass(frozen=True, eq=False)
class TrainingWords:
    """The words that a fold is scored by."""

    grid: WordGrid
    folds: Bools

    @cached_property
    def _outside(self) -> list[Entries]:
        return self.grid.entries(~self.folds)

    @cached_property
    def _seen(self) -> Bools:
        left, every = self.grid.documents.copy(), np.arange(self.grid.width)
        for entries in self._outside:
            entries.add(1, -1, every, left[:, None])
        return left > 0

    def has(self, classes: Sequence[str]) -> bool:
        """Whether each of some classes has a column: not one that is known without any rows."""
        return {*classes} <= {*self.grid.classes}

    def numbers(self, classes: Sequence[str]) -> Ints:
        """The columns of some classes."""
        return np.array([self.grid.classes.index(c) for c in classes], dtype=np.int64)

    def lengths(self, amount: str) -> Ints:
        """N_y: the sum over all words, by class."""
        each = self.grid.lengths[:, :, WORDS.index(amount)]
        return np.asarray(each[self.folds[: len(each)]].sum(axis=0))

    def table(self, ids: Ints, amount: str) -> Ints:
        """What was counted of some words, words × classes: all folds less those outside, or those inside."""
        column, classes = WORDS.index(amount), self.grid.n_classes
        total = self.grid.total(column)
        local = np.full(self.grid.width, -1, dtype=np.int64)
        local[ids] = np.arange(len(ids))
        local[-1] = -1
        table = np.zeros((len(ids), classes), dtype=np.int64) if total is None else total.take(ids, axis=0)
        for entries in self.grid.entries(self.folds) if total is None else self._outside:
            entries.add(column, 1 if total is None else -1, local, table)
        return table

    def of(self, bag: Bag, ids: Ints, width: int | None = None) -> WordRows:
        """The rows of a bag with the counts of their words; `ids` are the numbers of the bag's slots.

        With a width the positions of a matrix are words whether training has seen them or not.
        """
        known, vocabulary = self._seen[ids], int(self._seen.sum())
        if width is not None:
            position = self.grid.positions(width)
            known = known | position[ids]
            if len(ids) and ids.min() < 0:
                known = known | _is_position(bag.slots, width)
            vocabulary = width + int(np.sum(self._seen & ~position))
        return WordRows(self, bag, ids, known, vocabulary)


def _is_position(slots: Sequence[str] | pa.Array, width: int) -> Bools:
    texts = slots if isinstance(slots, pa.Array) else pa.array(slots, pa.string())
    return np.asarray(pc.is_in(texts, value_set=sorted_positions(width)[1]).to_numpy(zero_copy_only=False), dtype=bool)


@dataclass(frozen=True, eq=False)
class WordRows:
    """Rows to be scored, with what training counted of their words."""

    training: TrainingWords
    bag: Bag
    ids: Ints
    known: Bools
    vocabulary: int
    _kept: dict[Any, Any] = field(default_factory=dict)

    def _rows(self, amount: str) -> tuple[Any, Floats]:
        """The amounts that are scored, words never seen left out, and how many each row has."""
        if amount not in self._kept:
            rows = matrix = self.bag.matrix
            if amount != "n" or not self.known.all():
                data = (matrix.data if amount == "n" else np.ones_like(matrix.data)) * self.known[matrix.indices]
                rows = type(matrix)((data, matrix.indices, matrix.indptr), shape=matrix.shape)
            self._kept[amount] = rows, np.asarray(rows.sum(axis=1), dtype=np.float64)
        out: tuple[Any, Floats] = self._kept[amount]
        return out

    def counted(self, complement: bool, amount: str, classes: Ints) -> tuple[Ints, Ints]:
        """What stands beside α: per word and class, and per class in all."""
        n, total = self.training.table(self.ids, amount), self.training.lengths(amount)
        if not np.array_equal(classes, np.arange(n.shape[1])):
            n, total = n[:, classes], total[classes]
        if complement:
            n, total = n.sum(axis=1, keepdims=True) - n, total.sum() - total
        return n, total

    def parts(
        self, complement: bool, amount: str, alpha: float, classes: Ints, alphas: tuple[float, ...] = ()
    ) -> Floats:
        """What the words say of each row, for these classes; `alphas` are all that will be asked for."""
        if complement and len(classes) == 1:  # a single class has no complement
            return np.zeros((self.bag.rows, 1))
        alphas = alphas or (alpha,)
        key = (complement, amount, classes.tobytes(), alphas)
        if key not in self._kept:
            self._kept[key] = self._each(complement, amount, classes, alphas)
        out: Floats = self._kept[key][alpha]
        return out

    def _each(self, complement: bool, amount: str, classes: Ints, alphas: tuple[float, ...]) -> dict[float, Floats]:
        """The parts under each α."""
        rows, length = self._rows(amount)
        n, total = self.counted(complement, amount, classes)
        inside = products(rows, n, alphas)
        all_words = total + np.array(alphas)[:, None] * self.vocabulary  # 0 where training has none, as no row then has
        inside -= length[:, None] * np.log(np.maximum(all_words, 1e-300))[:, None]
        return dict(zip(alphas, np.negative(inside, out=inside) if complement else inside, strict=True))

    def left_out(self, complement: bool, amount: str, alpha: float, labels: Ints) -> Floats:
        """The parts of each row by everything counted but the row itself, which is of the class `labels` says.

        Its words are taken from its class's counts and N_y; V is less by the words that only this row has, and those
        are no evidence.
        """
        matrix = self.bag.matrix
        row = np.repeat(np.arange(self.bag.rows), np.diff(matrix.indptr))
        word = matrix.indices
        x = matrix.data if amount == "n" else np.ones_like(matrix.data)
        others = self.training.table(self.ids, "documents").sum(axis=1)[word] > 1
        alone = np.bincount(row[~others], minlength=self.bag.rows)
        taken = np.bincount(row, weights=x, minlength=self.bag.rows)
        row, word, x = row[others], word[others], x[others]
        length = np.bincount(row, weights=x, minlength=self.bag.rows)
        out = np.empty((self.bag.rows, self.training.grid.n_classes))
        n, total = self.counted(complement, amount, np.arange(out.shape[1]))
        for y in range(out.shape[1]):
            changes = (labels != y) if complement else (labels == y)
            left = n[word, y] - np.where(changes[row], x, 0.0)
            inside = np.bincount(row, weights=x * np.log(left + alpha), minlength=self.bag.rows)
            all_words = total[y] - np.where(changes, taken, 0.0) + alpha * (self.vocabulary - alone)
            out[:, y] = inside - np.where(length > 0, length * np.log(np.maximum(all_words, 1e-300)), 0.0)
        return -out if complement else out
