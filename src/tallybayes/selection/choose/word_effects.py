"""What the numbers of the words add to the scores of rows: a number for each word and class, or one for each word."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ...base.arrays import Bools, Floats, Ints
from ...exact.kernels import gate
from .text_columns import TextColumn, outside

_LOOKS = 20  # at all words that repay the kernels, of the many that a fit takes
FEW_CLASSES = 8  # up to which every word has a number for each class; beyond, one for all


@dataclass(frozen=True, eq=False)
class Shared:
    """A number for each word and class, or one that tells two classes apart; the same in every fold."""

    rows: Any
    classes: int

    @property
    def effects(self) -> int:
        """Numbers of a word."""
        return 1 if self.classes == 2 else self.classes

    @cached_property
    def _kernels(self) -> Any:
        return gate.kernels("joint", _LOOKS * self.rows.nnz)

    @cached_property
    def _listed(self) -> tuple[Any, Any, Floats]:
        """The words of each row, and how often each is there if that is not once."""
        once = bool((self.rows.data == 1).all())
        return self.rows.indptr, self.rows.indices, self.rows.data[: 0 if once else None]

    @cached_property
    def _by_word(self) -> Any:
        return self.rows.T.tocsr()

    def told(self, added: Floats) -> Floats:
        """Rows × classes."""
        if self._kernels is None:
            said = np.asarray(self.rows @ added)
        else:
            said = np.empty((self.rows.shape[0], added.shape[1]))
            self._kernels.add_words(*self._listed, np.ascontiguousarray(added), said)
        return of_two(said) if self.classes == 2 else said

    def slopes(self, residual: Floats) -> Floats:
        """Words × effects: Σ of the rows' residuals."""
        return self._summed((residual[:, 1:] - residual[:, :1]) / 2 if self.classes == 2 else residual)

    def bends(self, unsure: Floats) -> Floats:
        """The same of their curvatures."""
        return self._summed(unsure[:, 1:] if self.classes == 2 else unsure)

    def _summed(self, of_rows: Floats) -> Floats:
        if self._kernels is None:
            return np.asarray(self._by_word @ of_rows)
        out = np.zeros((self.rows.shape[1], of_rows.shape[1]))
        self._kernels.sum_words(*self._listed, np.ascontiguousarray(of_rows), out)
        return out


@dataclass(frozen=True, eq=False)
class Multiplied:
    """One number for each word, times what it says of each class by the counts that the row's fold is scored by."""

    each: tuple[tuple[Ints, Any, Any, Floats], ...]  # of each fold: rows, their words, the same by word, logs
    count: int

    effects = 1

    def told(self, added: Floats) -> Floats:
        """Rows × classes."""
        out = np.empty((self.count, self.each[0][3].shape[1]))
        for at, rows, _, logs in self.each:
            out[at] = rows @ (added * logs)
        return out

    def slopes(self, residual: Floats) -> Floats:
        """Words × 1."""
        return self._summed(residual, 1)

    def bends(self, unsure: Floats) -> Floats:
        """Words × 1."""
        return self._summed(unsure, 2)

    def _summed(self, told: Floats, power: int) -> Floats:
        each = [np.einsum("wc,wc->w", by_word @ told[at], logs**power) for at, _, by_word, logs in self.each]
        return np.asarray(sum(each))[:, None]


def words_of(column: TextColumn, kept: Bools, classes: int, some: slice | Ints, split: int) -> Shared | Multiplied:
    """The words of some rows; `split` is the one that judges them, −1 if they are scored by all folds but their own."""
    rows = _some_words(column.rows[some] if isinstance(some, np.ndarray) else column.rows, kept)
    if classes <= FEW_CLASSES:
        return Shared(rows, classes)
    fold, words, each = column.fold[some], np.flatnonzero(kept), []
    for k in np.unique(fold).tolist():
        at = np.flatnonzero(fold == k)
        logs = column.logs.table(words, outside(column.splits, k, split))
        each.append((at, rows[at], rows[at].T.tocsr(), logs))
    return Multiplied(tuple(each), int(rows.shape[0]))


def of_two(told: Floats) -> Floats:
    """A difference of two classes as one number for each."""
    return np.concatenate([-told, told], axis=1) / 2


def _some_words(rows: Any, kept: Bools) -> Any:
    """The columns of some words, which is faster by hand than by SciPy's index."""
    inside = kept[rows.indices]
    ends = np.concatenate(([0], np.cumsum(inside)))[rows.indptr]
    at = (np.cumsum(kept) - 1)[rows.indices[inside]]
    shape = (rows.shape[0], int(kept.sum()))
    return type(rows)((rows.data[inside].astype(np.float64), at.astype(np.int32), ends.astype(np.int32)), shape=shape)
