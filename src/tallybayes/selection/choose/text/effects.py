"""What columns of words add to the scores of rows: their parts, and numbers of their words, by class or for all."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ....base.arrays import Bools, Floats, Ints
from ....exact.kernels import gate
from ..losses import log_sum
from .columns import TextColumn, outside

_LOOKS = 20  # at all words that repay the kernels, of the many that a fit takes
_FITS = 10  # looks at the scores of all rows
FEW_CLASSES = 8  # up to which every word has a number for each class; beyond, one for all


@dataclass(frozen=True, eq=False)
class TextScores:
    """The scores of some rows: what is known beside their texts, and what each column of words says."""

    parts: tuple[Floats, ...]  # of each column, rows × classes
    rest: Floats
    labels: Ints
    weights: Floats

    @cached_property
    def _kernels(self) -> Any:
        """Few classes take NumPy long."""
        few = self.rest.shape[1] < FEW_CLASSES
        return gate.kernels("rows", _FITS * len(self.parts) * self.rest.size) if few else None

    @cached_property
    def _room(self) -> Floats:
        """For what each column says, for residuals, and for the same scaled: made once, since a fit looks often."""
        return np.empty((len(self.parts) + 2, *self.rest.shape))

    @gate.guarded
    def scores(
        self, weights: Floats, told: Sequence[Floats], factors: Sequence[Floats], offsets: Floats
    ) -> tuple[Floats, Floats]:
        """What each column says, (weight · part + told) · factor, and the scores; without corrections nothing is told.

        What is said is valid until it is asked again, as are residuals.
        """
        said, kernels = self._room[:-2], self._kernels
        for j, (weight, part, by) in enumerate(zip(weights.tolist(), self.parts, factors, strict=True)):
            if kernels is not None:
                kernels.say(part, told[j] if told else part[:0], weight, by, said[j])
                continue
            np.multiply(weight, part, out=said[j])
            if told:
                said[j] += told[j]
            said[j] *= by[:, None]
        if kernels is None:
            out = self.rest + offsets
            out += said[0] if len(said) == 1 else sum(said[1:], said[0])
        else:
            out = np.empty_like(self.rest)
            kernels.add_said(said, self.rest, offsets, out)
        return said, np.asarray(out)

    @gate.guarded
    def left_over(self, scores: Floats) -> tuple[Floats, Floats]:
        """−log P(own class) of each row, and P − 1[own class] times its weight."""
        residual = self._room[-2]
        if self._kernels is not None:
            top, own, every = np.empty((3, len(scores)))
            np.copyto(residual, scores)
            self._kernels.below_largest(residual, self.labels, top, own)
            np.exp(residual, out=residual)
            self._kernels.add_classes(residual, every)
            log_total = top + np.log(every)
            self._kernels.less(scores, log_total, residual)
            np.exp(residual, out=residual)
            self._kernels.own_left(residual, self.labels, self.weights)
            return log_total - own, residual
        log_total, index = log_sum(scores), np.arange(len(scores))
        np.exp(scores - log_total[:, None], out=residual)
        residual[index, self.labels] -= 1.0
        residual *= self.weights[:, None]
        return log_total - scores[index, self.labels], residual

    @gate.guarded
    def scaled(self, residual: Floats, by: Floats) -> Floats:
        """Residuals times the factor of each row."""
        out: Floats = self._room[-1]
        if self._kernels is None:
            np.multiply(residual, by[:, None], out=out)
            return out
        self._kernels.say(residual, residual[:0], 1.0, by, out)
        return out

    @gate.guarded
    def whole(self, residual: Floats) -> Floats:
        """Their sum over all rows, by class."""
        if self._kernels is None:
            return np.asarray(residual.sum(axis=0))
        out = np.zeros(residual.shape[1])
        self._kernels.add_up(residual, out)
        return out


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
        return _listed(self.rows)

    @cached_property
    def _by_word(self) -> Any:
        return self.rows.T.tocsr()

    @cached_property
    def _listed_by_word(self) -> tuple[Any, Any, Floats]:
        """The rows of each word: sums that are gathered take less time than those that are scattered."""
        return _listed(self._by_word)

    @gate.guarded
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

    @gate.guarded
    def _summed(self, of_rows: Floats) -> Floats:
        if self._kernels is None:
            return np.asarray(self._by_word @ of_rows)
        out = np.empty((self.rows.shape[1], of_rows.shape[1]))
        self._kernels.add_words(*self._listed_by_word, np.ascontiguousarray(of_rows), out)
        return out


def _listed(matrix: Any) -> tuple[Any, Any, Floats]:
    """Its ends and indices, and its data if they are not all 1."""
    return matrix.indptr, matrix.indices, matrix.data[: 0 if bool((matrix.data == 1).all()) else None]


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
    rows = column.some_words(kept)
    rows = rows[some] if isinstance(some, np.ndarray) else rows
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
