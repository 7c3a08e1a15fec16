"""Columns of words as corrections are fitted to them: their rows, and what honest counts say of each.

A row that fits corrections is scored by the total less its own fold and less the split that will judge; a row that
judges by the total less its own fold. With five folds that are fifteen sets of counts, of which only the words of the
rows concerned are looked at.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ....base.arrays import Bools, Floats, Ints
from ....data.blocks import Bag
from ....data.schema import Column
from ....families.settings import Settings
from ...folds import Folds
from ...word_grid import TrainingWords, WordGrid, reading

ALL = -1  # no split is left out
JUDGES = 2_000  # rows that are enough to choose λ and b by, and a second split to judge the choice
FURTHER = 3.0  # times λ for pairs of words and characters: many, rare, and mostly said by the words already


@dataclass(frozen=True)
class TextColumn:
    """A column of words: its rows, and what their words say by counts that have not seen them."""

    name: str
    rows: Any  # CSR, rows × words: the amounts that its family counts
    tokens: Floats  # of each row
    parts: Mapping[int, Floats]  # rows × classes: without the row's fold and a split; under ALL without the fold alone
    fold: Ints  # of each row
    splits: Ints  # of each fold
    logs: WordLogs
    pull: float = 1.0  # times λ; FURTHER for what is read beside the words of the same text
    _kept: dict[str, Any] = field(default_factory=dict, repr=False)

    @classmethod
    def of(
        cls, folds: Folds, column: Column, settings: Settings, classes: Sequence[str], splits: Ints, pull: float = 1.0,
        every: bool = False,
    ) -> TextColumn:  # fmt: skip
        """The column of counted folds, under settings that name its reading; `splits` are those of the folds.

        Rows stand in the order of the look, as in `Folds.held_out`. Parts are told for the splits that will judge, or
        for every split.
        """
        way, grid = reading(column, settings), folds.words[column.name]
        if way is None or grid is None:
            raise ValueError(f"column {column.name!r} is not read by word counts")
        matrix, tokens, fold = _joined(folds, column.name, grid)
        if way[1] != "n":
            matrix = type(matrix)((np.ones_like(matrix.data), matrix.indices, matrix.indptr), shape=matrix.shape)
        logs = WordLogs(grid, *way, TrainingWords(grid, np.ones(0, dtype=bool)).numbers(classes), column.width)
        parts = {s: np.zeros((len(fold), len(classes))) for s in (*judging(splits[fold], every), ALL)}
        for k in np.unique(fold).tolist():
            own = np.flatnonzero(fold == k)
            bag, ids = _narrowed(matrix[own])
            for s, part in parts.items():
                if splits[k] != s:  # else they judge, by ALL
                    words = TrainingWords(grid, ~outside(splits, k, s)).of(bag, ids, column.width)
                    part[own] = words.parts(*way, logs.classes)
        return cls(column.name, matrix, tokens, parts, fold, splits, logs, pull)

    def some_words(self, kept: Bools) -> Any:
        """The rows with only some of their words, kept for all who ask for the same: every split does."""
        if "words" not in self._kept or not np.array_equal(self._kept["words"], kept):
            self._kept.update(words=kept, rows=_only(self.rows, kept))
        return self._kept["rows"]


def judging(split: Ints, every: bool = False) -> list[int]:
    """The splits whose rows judge: two, and more while they have too few rows; or every one."""
    splits, sizes = np.unique(split, return_counts=True)
    some = len(splits) if every else max(2, 1 + int(np.searchsorted(np.cumsum(sizes), JUDGES)))
    return [int(s) for s in splits[:some]]


def outside(splits: Ints, fold: int, split: int) -> Bools:
    """The folds whose counts must not speak: a row's own, and those of the split that judges."""
    return np.asarray((np.arange(len(splits)) == fold) | (splits == split))


@dataclass(frozen=True, eq=False)
class WordLogs:
    """What each word says of each class, by the counts of some folds."""

    grid: WordGrid
    complement: bool
    amount: str
    alpha: float
    classes: Ints
    width: int | None = None

    def table(self, words: Ints, left_out: Bools) -> Floats:
        """Words × classes, their mean 0; a word that the other folds have not seen says nothing."""
        training = TrainingWords(self.grid, ~left_out)
        every = training.of(Bag((), _no_rows(), np.zeros(0, dtype=bool)), words, self.width)
        n, total = every.counted(self.complement, self.amount, self.classes)
        out = np.log(n + self.alpha) - np.log(total + self.alpha * every.vocabulary)
        out = (-out if self.complement else out) * every.known[:, None]
        return np.asarray(out - out.mean(axis=1, keepdims=True))


def _no_rows() -> Any:
    import scipy.sparse

    return scipy.sparse.csr_array((0, 0))


def _joined(folds: Folds, name: str, grid: WordGrid) -> tuple[Any, Floats, Ints]:
    """The rows of a column in the order of the look, words by their numbers in the grid; tokens; folds."""
    import scipy.sparse

    each, numbers, tokens, fold = [], [], [], []
    for piece in folds.pieces:
        assert piece.blocks is not None  # a look fits into memory
        bag = piece.blocks[name]
        assert isinstance(bag, Bag)
        matrix, ids = bag.matrix, folds.ids(piece, name)
        at = np.where(ids < 0, grid.width - 1, ids)[matrix.indices]
        each.append(scipy.sparse.csr_array((matrix.data, at, matrix.indptr), shape=(bag.rows, grid.width)))
        numbers.append(piece.rows)
        tokens.append(bag.lengths())
        fold.append(piece.folds)
    order = np.argsort(np.concatenate(numbers), kind="stable")
    joined = scipy.sparse.csr_array(each[0] if len(each) == 1 else scipy.sparse.vstack(each, format="csr"))
    if not np.array_equal(order, np.arange(len(order))):
        joined = joined[order]
    return joined, np.concatenate(tokens)[order], np.concatenate(fold)[order]


def _only(rows: Any, kept: Bools) -> Any:
    """The columns of some words, which is faster by hand than by SciPy's index."""
    inside = kept[rows.indices]
    ends = np.concatenate(([0], np.cumsum(inside)))[rows.indptr]
    at = (np.cumsum(kept) - 1)[rows.indices[inside]]
    shape = (rows.shape[0], int(kept.sum()))
    return type(rows)((rows.data[inside].astype(np.float64), at.astype(np.int32), ends.astype(np.int32)), shape=shape)


def _narrowed(matrix: Any) -> tuple[Bag, Ints]:
    """The bag of some rows with only the words they have, and the numbers of those."""
    there = np.zeros(matrix.shape[1], dtype=bool)
    there[matrix.indices] = True
    there[-1] = True
    used = np.flatnonzero(there)
    at = (np.cumsum(there) - 1)[matrix.indices]
    narrow = type(matrix)((matrix.data, at, matrix.indptr), shape=(matrix.shape[0], len(used)))
    return Bag(used, narrow, np.ones(matrix.shape[0], dtype=bool)), used  # type: ignore[arg-type]
