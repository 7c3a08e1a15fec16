"""Everything that is chosen as one sum: weights of what counts say, and a correction for every cell.

    S_y(x) = log π_y + o_y + Σ_j [ Σ_r w_jr · part_jry(x_j) + δ_j,cell(x_j),y ]       j: columns, and pairs of columns

How it is fitted is in `penalised`: with a strong pull (λ large) it is the counted model under a few weights, with a
weak one logistic regression on cells.

Parts are tables cell × class under counts that have not seen the row: rows of a fold read the tables of that fold. So a
row's score is a few table rows added up, the gradient is residuals summed by cell, and whatever else there is to do
happens on the small tables. Two classes need one number per cell, the log-odds of the second.

Columns whose rows no cells can tell apart (texts, vectors) are *dense*: they come as parts row by row, with a weight
and, for words, an exponent on the length.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Bools, Floats, Ints
from ...exact.kernels import gate
from .columns import DealtRows, Small

_LOOKS = 5  # at all rows that repay the kernels, of the many that a fit takes
_LEVEL = 0.02  # of the pull on jumps also holds the level of an ordered column


def against_first(logs: Floats) -> Floats:
    """Logs by class as what matters of them: log-odds of two classes, or the distance from their mean."""
    if logs.shape[-1] == 2:
        return np.ascontiguousarray(logs[..., 1:] - logs[..., :1])
    return np.asarray(logs - logs.mean(axis=-1, keepdims=True))


def both_classes(scores: Floats, n_classes: int) -> Floats:
    """The inverse, up to what all classes share: a number for every class."""
    if n_classes == 2 and scores.shape[-1] == 1:
        return np.concatenate([-scores / 2, scores / 2], axis=-1)
    return scores


@dataclass(frozen=True, eq=False)
class Summand:
    """A summand of the score: the cell of each row, and how its corrections hang together."""

    name: str
    codes: Small  # of each row, 0 … size
    size: int  # cells, without the last, which says nothing
    corrected: Ints  # the row of δ that each cell has; `n_rows` for none
    n_rows: int
    edges: tuple[Ints, Ints] = field(default_factory=lambda: (np.zeros(0, dtype=np.int64),) * 2)  # neighbours
    ridge: float = 1.0  # pull on δ itself
    pair: bool = False

    @classmethod
    def of_column(cls, name: str, codes: Small, size: int, enough: Any, ordered: bool) -> Summand:
        """A column, with a correction for each cell that has enough rows."""
        row = np.cumsum(enough) - 1
        count = int(np.count_nonzero(enough))
        corrected = np.append(np.where(enough, row, count), count)
        chain = np.arange(max(count - 1, 0)) if ordered else np.zeros(0, dtype=np.int64)
        return cls(name, codes, size, corrected, count, (chain, chain + 1), _LEVEL if ordered else 1.0)


@dataclass(frozen=True, eq=False)
class Dense:
    """What a column says row by row, with the log of its length where it is made of words."""

    name: str
    parts: Floats  # rows × width
    log_length: Floats | None = None


class Solution(NamedTuple):
    """What a fit has found."""

    weights: Floats  # of all readers of all terms, then of the dense columns
    exponents: Floats  # of the dense columns that have a length
    offsets: Floats
    added: Floats  # rows of δ × width


class Joint:
    """The problem of some rows and terms; `tables` are those of one split, and can be exchanged."""

    def __init__(
        self, rows: DealtRows, terms: Sequence[Summand], tables: Sequence[Floats | None], log_prior: Floats,
        training: Bools, held: tuple[int, int] = (0, 0), dense: Sequence[Dense] = (), known: Bools | None = None,
        blended: Sequence[Floats] = (),
    ) -> None:  # fmt: skip
        """Tables are readers × folds × (size + 1) × width of each term, or None; rows from held[0] to held[1] judge."""
        self.rows, self.terms, self.dense, self.held, self.training = rows, terms, dense, held, training
        self.width, self.log_prior = log_prior.shape[1], log_prior
        self.labels, self.weight = rows.labels, rows.weights
        self.n, self.tables = len(self.labels), list(tables)
        self.blended = blended  # of each term that had tables: the shares of the readers that were blended into one
        self.known = np.ones(self.n, dtype=bool) if known is None else known  # rows whose class their counts have seen
        self.lengths = [i for i, d in enumerate(dense) if d.log_length is not None]
        self.n_added = sum(t.n_rows for t in terms)
        self.codes = np.empty((self.n, len(terms)), dtype=np.int32)
        self.of_term: list[tuple[int, int]] = []  # the first weight of each term, and how many
        cells, at, readers, first = [np.zeros(0, dtype=np.int64)], 0, 0, 0
        spoken: list[list[tuple[int, Floats]]] = [
            [] for _ in range(max([len(t) for t in tables if t is not None] or [0]))
        ]
        for j, (term, table) in enumerate(zip(terms, tables, strict=True)):
            folds, count = (1, 0) if table is None else (table.shape[1], table.shape[0])
            size = term.size + 1
            place = term.codes if table is None else rows.folds * size + term.codes
            there = np.zeros(folds * size, dtype=bool)
            there[place] = True  # cells that no row of a fold falls into are left out
            used = np.flatnonzero(there)
            self.codes[:, j] = at + (np.cumsum(there) - 1)[place]
            row = term.corrected[used % size]
            cells.append(np.where(row < term.n_rows, first + row, self.n_added))
            for r in range(count):
                assert table is not None
                spoken[r].append((at, table[r].reshape(-1, self.width)[used]))
            self.of_term.append((readers, count))
            at, readers, first = at + len(used), readers + count, first + term.n_rows
        self.size, self.readers = at, readers
        self.cells = np.concatenate(cells).astype(np.int32)[:, None]  # the row of δ of each entry of the one table
        self.spoken = [self._stacked(r, each) for r, each in enumerate(spoken)]
        even = [np.full(count, 1 / count) for _, count in self.of_term if count]
        self.even = np.concatenate([*even, np.ones(len(dense))])
        self._kernels = gate.kernels("joint", _LOOKS * self.codes.size)

    def _stacked(self, r: int, each: Sequence[tuple[int, Floats]]) -> tuple[Small, Small, Floats]:
        """What the r-th readers say: which entries, the weight of each, and the logs."""
        first = [f for f, count in self.of_term if count > r]
        entries = [np.arange(at, at + len(logs), dtype=np.int32) for at, logs in each]
        readers = [np.full(len(logs), f + r, dtype=np.int32) for f, (_, logs) in zip(first, each, strict=True)]
        return np.concatenate(entries), np.concatenate(readers), np.concatenate([logs for _, logs in each])

    # ---- scores

    @cached_property
    def _matrix(self) -> Any:
        import scipy.sparse

        indptr = np.arange(0, self.codes.size + 1, self.codes.shape[1])
        return scipy.sparse.csr_matrix(
            (np.ones(self.codes.size), self.codes.ravel(), indptr), shape=(self.n, self.size)
        )

    @cached_property
    def fitting(self) -> list[slice]:
        """The stretches of the rows that fit."""
        start, stop = self.held
        return [s for s in (slice(0, start), slice(stop, self.n)) if s.stop > s.start]

    def _table(self, x: Solution) -> Floats:
        """All tables as one: what a row of each fold hears in each cell."""
        out: Floats = np.concatenate([x.added, np.zeros((1, self.width))])[self.cells[:, 0]]
        for entries, readers, logs in self.spoken:
            if self._kernels is not None:
                self._kernels.add_spoken(entries, readers, logs, x.weights, out)
            else:
                out[entries] += x.weights[readers][:, None] * logs
        return out

    def heard(self, sums: Floats, square: bool = False) -> Floats:
        """Σ sums · logs for each reader: how much the loss changes with its weight."""
        out = np.zeros(self.readers)
        for entries, readers, logs in self.spoken:
            if self._kernels is not None:
                self._kernels.sum_heard(entries, readers, logs, sums, square, out)
            else:
                np.add.at(out, readers, in_turn(sums[entries] * (logs * logs if square else logs)))
        return out

    def scores(self, x: Solution, some_rows: Sequence[slice] | None = None) -> Floats:
        """rows × width of all rows, or of some stretches of them; the others hold nothing."""
        out = np.empty((self.n, self.width))
        table = self._table(x)
        start = self.log_prior + x.offsets
        for some in [slice(0, self.n)] if some_rows is None else some_rows:
            out[some] = 0.0
            if self._kernels is not None:
                self._kernels.add_cells(self.codes, some.start, table, out[some])
            elif self.terms:
                out[some] = self._matrix[some] @ table
            out[some] += start[self.rows.folds[some]]
            for i, d in enumerate(self.dense):
                out[some] += self._factor(x, i, some)[:, None] * d.parts[some]
        return out

    def _factor(self, x: Solution, i: int, some: slice) -> Floats:
        weight, length = x.weights[self.readers + i], self.dense[i].log_length
        if length is None:
            return np.full(some.stop - some.start, weight)
        return np.asarray(weight * np.exp(x.exponents[self.lengths.index(i)] * length[some]))

    def sums(self, residual: Floats) -> Floats:
        """Residuals of the rows that fit, by cell."""
        if not self.terms:
            return np.zeros((self.size, self.width))
        if self._kernels is None:
            fitting = np.concatenate([np.arange(s.start, s.stop) for s in self.fitting])
            return np.asarray(self._matrix[fitting].T @ residual[fitting])
        out = np.zeros((self.size, self.width))
        for some in self.fitting:
            self._kernels.sum_cells(self.codes, some.start, residual[some], out)
        return out

    def add_rows(self, out: Floats, at: Small, amounts: Floats) -> None:
        """out[at] += amounts, where places may repeat."""
        if self._kernels is None:
            np.add.at(out, at[:, 0], amounts)
        else:
            self._kernels.sum_cells(at, 0, np.ascontiguousarray(amounts), out)

    # ---- fitting

    def start(self) -> Solution:
        """Even weights, nothing else."""
        return Solution(
            self.even.copy(), np.zeros(len(self.lengths)), np.zeros(self.width), np.zeros((self.n_added, self.width))
        )

    def left_over(self, x: Solution) -> tuple[Floats, Floats]:
        """P − 1[own class] of the rows that fit, 0 of those that judge, and P(1 − P): both times a row's weight."""
        _, residual = self.loss(self.scores(x, self.fitting))
        p = residual / np.maximum(self.weight, 1e-300)[:, None]
        if self.width > 1:
            p[np.arange(self.n), self.labels] += 1.0
        else:
            p[:, 0] += self.labels == 1
        curved = np.clip(p * (1 - p), 0.0, 0.25) * self.weight[:, None]
        curved[self.held[0] : self.held[1]] = 0.0
        return residual, curved

    def loss(self, scores: Floats) -> tuple[float, Floats]:
        """Σ −log P(own class) over the rows that fit, and P − 1[own class] of each, times the row's weight."""
        total, residual = 0.0, np.zeros((self.n, self.width))
        for some in self.fitting:
            losses, p = posterior(scores[some], self.labels[some], self._kernels)
            total += float(self.weight[some] @ losses)
            residual[some] = np.multiply(p, self.weight[some, None], out=p)
        return total, residual


def in_turn(amounts: Floats) -> Floats:
    """The sum over the last axis, added from the first to the last, as a kernel does."""
    out = amounts[..., 0].copy()
    for y in range(1, amounts.shape[-1]):
        out += amounts[..., y]
    return out


def posterior(scores: Floats, labels: Ints, kernels: Any = None) -> tuple[Floats, Floats]:
    """−log P(own class) of each row, and P − 1[own class]."""
    n, width = scores.shape
    if width == 1:
        odds = scores[:, 0]
        small = np.exp(-np.abs(odds))
        p = np.where(odds > 0, 1 / (1 + small), small / (1 + small))
        second = labels == 1
        losses = np.log1p(small) + np.where((odds > 0) != second, np.abs(odds), 0.0)
        return losses, (p - second)[:, None]
    at = np.arange(n)
    own = scores[at, labels]
    if kernels is None:
        top = scores.max(axis=1)
        p = np.exp(scores - top[:, None])
        total = in_turn(p)
        p /= total[:, None]
    else:
        p, top, total = scores.copy(), np.empty(n), np.empty(n)
        kernels.below_largest(p, top)
        np.exp(p, out=p)
        kernels.to_shares(p, total)
    p[at, labels] -= 1.0
    return np.log(total) + top - own, p
