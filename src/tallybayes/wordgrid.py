"""Words under many smoothings at once: the fast twin of estimating each and scoring.

A multinomial adds Σ_w x_w·log(n_yw + α) − |d|·log(N_y + α·V), a complement the same of the other classes' counts. For
the rows of one fold only the fold's own words matter: their counts are read once, and since counts are small whole
numbers, each α needs a short table of logarithms and one sparse product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from .block import WORDS, Bag
from .counts import Counts, Sheet
from .families import Complement, Multinomial, Selection, default_family, family_for
from .families.vocabulary import sorted_positions
from .numerics import Bools, Floats, Ints
from .schema import Column
from .settings import Settings
from .smoothing import Dirichlet, Laplace

_TABLE = 8192  # logarithms held per α; a larger count takes its own


def reading(column: Column, settings: Settings) -> tuple[bool, str, float] | None:
    """(complement?, amount, α) where the settings believe a column in a way that this file knows; else None."""
    if column.kind not in ("text", "bag") or settings.unseen != "no evidence":
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
        found = pc.index_in(pa.array(slots, pa.string()), value_set=self.sheet.slots)
        return np.asarray(found.fill_null(-1).to_numpy(zero_copy_only=False), dtype=np.int64)

    def training(self, folds: Bools) -> TrainingWords:
        """The words of some folds together."""
        kept = folds[self.fold]
        return TrainingWords(self, self.sheet.slot[kept], self.label[kept], self.sheet.amount[kept])


@dataclass(frozen=True, eq=False)
class TrainingWords:
    """The words that a fold is scored by."""

    grid: WordGrid
    slot: Ints
    label: Ints
    amount: Ints  # entries × (n, documents)

    @cached_property
    def _seen(self) -> Bools:
        seen = np.zeros(len(self.grid.sheet.slots) + 1, dtype=bool)  # the last stands for words of no fold
        seen[self.slot] = True
        return seen

    def numbers(self, classes: Sequence[str]) -> Ints:
        """The columns of some classes."""
        return np.array([self.grid.classes.index(c) for c in classes], dtype=np.int64)

    def lengths(self, amount: str) -> Ints:
        """N_y: the sum over all words, by class."""
        values = self.amount[:, WORDS.index(amount)]
        return np.bincount(self.label, weights=values, minlength=self.grid.n_classes).astype(np.int64)

    def of(self, bag: Bag, ids: Ints, width: int | None = None) -> WordRows:
        """The rows of a bag with the counts of their words; `ids` are the numbers of the bag's slots.

        With a width the positions of a matrix are words whether training has seen them or not.
        """
        local = np.full(len(self._seen), -1, dtype=np.int64)
        local[ids] = np.arange(len(ids))
        at = local[self.slot]
        kept = at >= 0
        key = at[kept] * self.grid.n_classes + self.label[kept]
        size = len(ids) * self.grid.n_classes
        tables = {
            name: np.bincount(key, weights=self.amount[kept, i], minlength=size)
            .astype(np.int64)
            .reshape(len(ids), self.grid.n_classes)
            for i, name in enumerate(WORDS)
        }
        known, vocabulary = self._seen[ids], int(self._seen.sum())
        if width is not None:
            known = known | _is_position(bag.slots, width)
            vocabulary = width + int(np.sum(self._seen[:-1] & ~_is_position(self.grid.sheet.slots, width)))
        return WordRows(self, bag, known, tables, vocabulary)


def _is_position(slots: Sequence[str] | pa.Array, width: int) -> Bools:
    texts = slots if isinstance(slots, pa.Array) else pa.array(slots, pa.string())
    return np.asarray(pc.is_in(texts, value_set=sorted_positions(width)[1]).to_numpy(zero_copy_only=False), dtype=bool)


@dataclass(frozen=True, eq=False)
class WordRows:
    """Rows to be scored, with what training counted of their words."""

    training: TrainingWords
    bag: Bag
    known: Bools
    tables: Mapping[str, Ints]  # amount → words × classes
    vocabulary: int
    _kept: dict[Any, Any] = field(default_factory=dict)

    def _rows(self, amount: str) -> tuple[scipy.sparse.csr_array, Floats]:
        """The amounts that are scored, words never seen left out, and how many each row has."""
        if amount not in self._kept:
            matrix = self.bag.matrix
            data = (matrix.data if amount == "n" else np.ones_like(matrix.data)) * self.known[matrix.indices]
            rows = scipy.sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
            self._kept[amount] = rows, np.asarray(rows.sum(axis=1), dtype=np.float64)
        out: tuple[scipy.sparse.csr_array, Floats] = self._kept[amount]
        return out

    def _counted(self, complement: bool, amount: str, classes: Ints) -> tuple[Ints, Ints, Ints]:
        """What stands beside α: per word and class, where that is too large for the table, and per class in all."""
        key = (complement, amount, classes.tobytes())
        if key not in self._kept:
            n, total = self.tables[amount][:, classes], self.training.lengths(amount)[classes]
            if complement:
                n, total = n.sum(axis=1, keepdims=True) - n, total.sum() - total
            n = np.ascontiguousarray(n)
            self._kept[key] = n, np.flatnonzero(n >= _TABLE), total
        out: tuple[Ints, Ints, Ints] = self._kept[key]
        return out

    def parts(self, complement: bool, amount: str, alpha: float, classes: Ints) -> Floats:
        """What the words say of each row, for these classes."""
        if complement and len(classes) == 1:  # a single class has no complement
            return np.zeros((self.bag.rows, 1))
        rows, length = self._rows(amount)
        n, large, total = self._counted(complement, amount, classes)
        log = np.log(np.arange(_TABLE) + alpha).take(n, mode="clip")
        log.flat[large] = np.log(n.flat[large] + alpha)
        out: Floats = rows @ log - length[:, None] * np.log(total + alpha * self.vocabulary)
        return -out if complement else out

    def left_out(self, complement: bool, amount: str, alpha: float, labels: Ints) -> Floats:
        """The parts of each row by everything counted but the row itself, which is of the class `labels` says.

        Its words are taken from its class's counts and N_y; V is less by the words that only this row has, and those
        are no evidence.
        """
        matrix = self.bag.matrix
        row = np.repeat(np.arange(self.bag.rows), np.diff(matrix.indptr))
        word = matrix.indices
        x = matrix.data if amount == "n" else np.ones_like(matrix.data)
        others = self.tables["documents"].sum(axis=1)[word] > 1
        alone = np.bincount(row[~others], minlength=self.bag.rows)
        taken = np.bincount(row, weights=x, minlength=self.bag.rows)
        row, word, x = row[others], word[others], x[others]
        length = np.bincount(row, weights=x, minlength=self.bag.rows)
        n, total = self.tables[amount], self.training.lengths(amount)
        if complement:
            n, total = n.sum(axis=1, keepdims=True) - n, total.sum() - total
        out = np.empty((self.bag.rows, self.training.grid.n_classes))
        for y in range(out.shape[1]):
            changes = (labels != y) if complement else (labels == y)
            left = n[word, y] - np.where(changes[row], x, 0.0)
            inside = np.bincount(row, weights=x * np.log(left + alpha), minlength=self.bag.rows)
            all_words = total[y] - np.where(changes, taken, 0.0) + alpha * (self.vocabulary - alone)
            out[:, y] = inside - np.where(length > 0, length * np.log(np.maximum(all_words, 1e-300)), 0.0)
        return -out if complement else out
