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
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Bools, Floats
from ...exact.kernels import gate
from .columns import DealtRows, Small
from .losses import in_turn, posterior
from .placed import Placed, ShortTables, Summand

_NEAR = 50_000  # numbers of rows that are summed by cell together, which the second cache holds
_SHORT_RUN = 3  # rows of one cell after the other: fewer do not repay sorting
_LOOKS = 5  # at all rows that repay the kernels, of the many that a fit takes
_SHORT_TABLE = 800  # numbers of a reader, on average, up to which NumPy takes all readers at once


@dataclass(frozen=True, eq=False)
class Dense:
    """What a column says row by row, with the log of its length where it is made of words."""

    name: str
    parts: Floats  # rows × width
    log_length: Floats | None = None

    @cached_property
    def by_row(self) -> Floats:
        """The parts of each row beside each other."""
        return np.ascontiguousarray(self.parts)


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
        blended: Sequence[Floats] = (), placed: Placed | None = None,
    ) -> None:  # fmt: skip
        """Tables are readers × entries × width of each term, or None; rows from held[0] to held[1] judge.

        The entries are those of fold × cell that are used; `placed` is where the rows find them, if that is known.
        """
        self.rows, self.terms, self.dense, self.held, self.training = rows, terms, dense, held, training
        self.width, self.log_prior = log_prior.shape[1], log_prior
        self.labels, self.weight = rows.labels, rows.weights
        self.n, self.tables = len(self.labels), list(tables)
        self.blended = blended  # of each term that had tables: the shares of the readers that were blended into one
        self.known = np.ones(self.n, dtype=bool) if known is None else known  # rows whose class their counts have seen
        self.lengths = [i for i, d in enumerate(dense) if d.log_length is not None]
        self.placed = placed or Placed.of(rows, terms, [t is not None for t in tables])
        self.codes, self.cells, self.n_added = self.placed.codes, self.placed.cells, self.placed.n_added
        self.size = self.placed.size
        self.of_term: list[tuple[int, int]] = []  # the first weight of each term, and how many
        spans, readers, at = [], 0, 0
        for table, first, used in zip(tables, self.placed.starts, self.placed.used, strict=True):
            count = 0 if table is None else len(table)
            self.of_term.append((readers, count))
            if count:
                spans.append((first, first + len(used), readers, count, at))
            readers, at = readers + count, at + count * len(used)
        self.spans = np.array(spans, dtype=np.int64).reshape(-1, 5)  # entries from, to; first reader, how many; logs
        self.readers, self.logs = readers, np.empty((at, self.width))  # of each term: readers × entries
        told = [(t, u) for t, u in zip(tables, self.placed.used, strict=True) if t is not None and len(t)]
        for (table, used), (_, _, _, count, first) in zip(told, spans, strict=True):
            self.logs[first : first + count * len(used)] = table.reshape(-1, self.width)
        even = [np.full(count, 1 / count) for _, count in self.of_term if count]
        self.even = np.concatenate([*even, np.ones(len(dense))])
        self._kernels = gate.kernels("joint", _LOOKS * self.codes.size)
        self._sorted: dict[int, tuple[Small, Small, Small] | None] = {}
        self._cut: dict[tuple[int, int], Any] = {}

    def wider(self, terms: Sequence[Summand]) -> Joint:
        """The same with more terms, of which no counts speak."""
        return Joint(
            self.rows, [*self.terms, *terms], [*self.tables, *[None] * len(terms)], self.log_prior, self.training,
            self.held, self.dense, self.known, self.blended, self.placed.wider(terms),
        )  # fmt: skip

    # ---- scores

    @cached_property
    def _row_kernels(self) -> Any:
        """Those for what is done row by row, where there are kernels at all."""
        return None if self._kernels is None else gate.kernels("rows", 0)

    @cached_property
    def _matrix(self) -> Any:
        import scipy.sparse

        indptr = np.arange(0, self.codes.size + 1, max(len(self.codes), 1))
        return scipy.sparse.csr_matrix(
            (np.ones(self.codes.size), self.codes.T.ravel(), indptr), shape=(self.n, self.size)
        )

    def _stretch(self, some: slice) -> Any:
        """Some rows by cell; kept, since slicing a small sparse matrix takes longer than multiplying it."""
        at = some.start, some.stop
        if at not in self._cut:
            self._cut[at] = self._matrix[some]
        return self._cut[at]

    @cached_property
    def fitting(self) -> list[slice]:
        """The stretches of the rows that fit."""
        start, stop = self.held
        return [s for s in (slice(0, start), slice(stop, self.n)) if s.stop > s.start]

    @cached_property
    def _fitting_matrix(self) -> Any:
        """The rows that fit by cell."""
        fitting = np.concatenate([np.arange(s.start, s.stop) for s in self.fitting])
        return self._matrix[fitting].T, fitting

    @cached_property
    def _short(self) -> ShortTables | None:
        """What readers have to say, if it is so little that asking each of them takes longer than all at once."""
        return ShortTables.of(self.spans, self.logs) if self.logs.size <= _SHORT_TABLE * self.readers else None

    @gate.guarded
    def _table(self, x: Solution) -> Floats:
        """All tables as one: what a row of each fold hears in each cell."""
        if self._kernels is not None:
            out = np.empty((self.size, self.width))
            self._kernels.tell(
                self.spans, self.logs.reshape(-1), x.weights, self.cells, np.ascontiguousarray(x.added), out.reshape(-1)
            )
            return out
        padded = np.concatenate([x.added, np.zeros((1, self.width))])
        told: Floats = padded[self.cells[0]]
        for cells in self.cells[1:]:
            told += padded[cells]
        if self._short is not None:
            for entries, readers, logs in self._short.nth:
                told[entries] += x.weights[readers] * logs
            return told
        for start, stop, first, count, at in self.spans.tolist():
            for r in range(count):
                here = at + r * (stop - start)
                told[start:stop] += x.weights[first + r] * self.logs[here : here + stop - start]
        return told

    @gate.guarded
    def heard(self, sums: Floats, square: bool = False) -> Floats:
        """Σ sums · logs for each reader: how much the loss changes with its weight."""
        out = np.zeros(self.readers)
        if self._kernels is not None:
            self._kernels.hear(self.spans, self.logs.reshape(-1), sums.reshape(-1), self.width, square, out)
            return out
        if self._short is not None:
            pulled = sums[self._short.entries]
            pulled *= self.logs * self.logs if square else self.logs
            out += np.bincount(self._short.readers, in_turn(pulled), self.readers)  # from the first entry to the last
            return out
        for start, stop, first, count, at in self.spans.tolist():
            logs = self.logs[at : at + count * (stop - start)].reshape(count, stop - start, self.width)
            each = in_turn(sums[start:stop] * (logs * logs if square else logs))
            out[first : first + count] = np.add.accumulate(each, axis=1)[:, -1] if stop > start else 0.0
        return out

    @gate.guarded
    def scores(self, x: Solution, some_rows: Sequence[slice] | None = None, out: Floats | None = None) -> Floats:
        """rows × width of all rows, or of some stretches of them; the others hold nothing."""
        out = np.empty((self.n, self.width)) if out is None else out
        table = self._table(x)
        start = self.log_prior + x.offsets
        for some in [slice(0, self.n)] if some_rows is None else some_rows:
            if self._kernels is not None:
                self._kernels.add_cells(self.codes, some.start, table, start, self.rows.folds, out[some])
            else:
                out[some] = self._stretch(some) @ table if self.terms else 0.0
                out[some] += start[self.rows.folds[some]]
            for i, d in enumerate(self.dense):
                if self._row_kernels is not None:
                    self._row_kernels.add_scaled(self._factor(x, i, some), d.by_row[some], out[some])
                else:
                    out[some] += self._factor(x, i, some)[:, None] * d.parts[some]
        return out

    def _factor(self, x: Solution, i: int, some: slice) -> Floats:
        weight, length = x.weights[self.readers + i], self.dense[i].log_length
        if length is None:
            return np.full(some.stop - some.start, weight)
        return np.asarray(weight * np.exp(x.exponents[self.lengths.index(i)] * length[some]))

    @gate.guarded
    def sums(self, residual: Floats) -> Floats:
        """Residuals of the rows that fit, by cell."""
        if self.terms and self._kernels is None:
            matrix, fitting = self._fitting_matrix
            return np.asarray(matrix @ residual[fitting])
        out = np.zeros((self.size, self.width))
        for some in self.fitting if self.terms else []:
            assert self._kernels is not None
            runs = self._runs(some)
            if runs is None:
                self._kernels.sum_cells(self.codes, some.start, residual[some], out)
            else:
                self._kernels.sum_runs(*runs, residual[some], out)
        return out

    def _runs(self, some: slice) -> tuple[Small, Small, Small] | None:
        """The rows of a stretch sorted by cell, and the cell and the end of each run; None where runs are short."""
        if self.width == 1 or self._kernels is None:
            return None
        if some.start not in self._sorted:
            starts = np.array([*self.placed.starts, self.size])
            order, cells, ends = np.empty((3, len(self.codes) * (some.stop - some.start)), dtype=np.int32)
            room = np.empty(int(np.diff(starts).max()), dtype=np.int32)
            step = max(8, _NEAR // self.width)
            count = self._kernels.find_runs(self.codes, some.start, some.stop, step, starts, room, order, cells, ends)
            long = count * _SHORT_RUN <= len(order)
            self._sorted[some.start] = (order, cells[:count].copy(), ends[:count].copy()) if long else None
        return self._sorted[some.start]

    @gate.guarded
    def whole(self, residual: Floats) -> Floats:
        """Residuals of all rows, by class."""
        if self._row_kernels is None or self.width == 1:
            return np.asarray(residual.sum(axis=0))
        out = np.zeros(self.width)
        self._row_kernels.add_up(residual, out)
        return out

    @gate.guarded
    def pulled_at(self, i: int, residual: Floats) -> Floats:
        """Σ_y residual · part of a dense column, row by row."""
        if self._row_kernels is None:
            return in_turn(residual * self.dense[i].parts)
        out = np.empty(self.n)
        self._row_kernels.products(residual, self.dense[i].by_row, out)
        return out

    @gate.guarded
    def add_rows(self, out: Floats, each: Small, amounts: Floats) -> None:
        """out[at] += amounts for each line of places, which may repeat."""
        if self._kernels is not None:
            self._kernels.sum_cells(each, 0, np.ascontiguousarray(amounts), out)
            return
        for at in each:
            if self.width == 1:  # which NumPy has a fast way for
                np.add.at(out[:, 0], at, amounts[:, 0])
            else:  # as one line of numbers: for that NumPy has one, too
                place = at[:, None] * np.int64(self.width) + np.arange(self.width)
                np.add.at(out.reshape(-1), place.ravel(), amounts.ravel())

    @gate.guarded
    def pulled(self, added: Floats, ridge: Floats, strength: Floats, out: Floats) -> float:
        """Σ ridge · δ² + Σ strength · jump² between neighbouring δ; the slopes are added to out."""
        a, b, _ = self.placed.edges
        if self._kernels is not None:
            held, (jumps, pulled) = np.empty_like(added), np.empty((2, len(a), self.width))
            self._kernels.pull(a, b, strength, ridge, added, held, jumps, pulled, out)
        else:
            held, jumps = ridge * added, added[b] - added[a]
            pulled = strength[:, None] * jumps
            out[: len(added)] += 2 * held
            self.add_rows(out, b[None], 2 * pulled)
            self.add_rows(out, a[None], -2 * pulled)
        return float(np.vdot(jumps, pulled)) + float(np.vdot(added, held))

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
        curved = 1 - p  # in place from here on: rows × classes may be many
        curved *= p
        np.clip(curved, 0.0, 0.25, out=curved)
        curved *= self.weight[:, None]
        curved[self.held[0] : self.held[1]] = 0.0
        return residual, curved

    @gate.guarded
    def loss(self, scores: Floats) -> tuple[float, Floats]:
        """Σ −log P(own class) over the rows that fit, and P − 1[own class] of each, times the row's weight.

        The latter takes the place of the scores.
        """
        total, labels = 0.0, self.labels
        in_place = ("odds_to_residuals",) if self.width == 1 else ("below_largest", "to_residuals")
        gate.sure(self._row_kernels, *in_place)
        for some in self.fitting:
            here, weight = scores[some], self.weight[some]
            if self._row_kernels is None:
                losses, p = posterior(here, labels[some])
                np.multiply(p, weight[:, None], out=here)
            elif self.width == 1:
                small = np.exp(-np.abs(here[:, 0]))
                losses = np.log1p(small)
                self._row_kernels.odds_to_residuals(here, labels[some], weight, small, losses)
            else:
                top, own, every = np.empty((3, len(here)))
                self._row_kernels.below_largest(here, labels[some], top, own)
                np.exp(here, out=here)
                self._row_kernels.to_residuals(here, labels[some], weight, every)
                losses = np.log(every) + top - own
            total += float(weight @ losses)
        scores[self.held[0] : self.held[1]] = 0.0
        return total, scores
