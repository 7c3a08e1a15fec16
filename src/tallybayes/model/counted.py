"""Weights that forget, too: a discriminative term that is a function of the counts, and of nothing else.

Beside N(cell, class) a tally can hold G(cell, cell), how many rows have any two cells (`tally/together.py`). With
μ_y = N_y / n_y, m the same of all rows, and W = (G − Σ_y N_y N_yᵀ / n_y) / N, how cells vary together within classes,

    β_y = (W + ρ · diag(m(1 − m)))⁻¹ (μ_y − m)        L_y(x) = β_y · x − ½ β_y · (μ_y + m)

is the linear discriminant of the cells. A row's score is log P(y) + w · what its columns' counts say + a · L_y, and
both belong to columns cell by cell: they are corrections, made anew from each tally. So forgetting rows gives the bits
of never having seen them.

ρ, w and a are chosen by the tally, too. Its folds are left out one after the other; what the rest believes of the rows
left out is linear in their cells, so that N and G of the fold say its mean and variance in each class exactly, though
no row is there to be scored. A bell with the tails of Student's t of that mean and variance stands for the rows, and
the expected log loss decides. Two things keep few rows from being believed too much: DOUBT rows are imagined that have
the label of another class, and below FEWEST rows, or where the gain is small, the counts are believed as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.canon import many
from ..base.threads import one_blas_thread
from ..data.pairs import stretch_names
from ..data.schema import Schema
from ..exact.counts import Counts
from ..families.calibration import Correction
from ..families.settings import Settings
from ..tally.tally import Tally
from ..tally.together import FOLDS, CellCounts, cell_counts, own_columns, together

RIDGES = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)  # ρ
TERMS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0, 1.4, 2.0)  # a
COUNTS = (0.0, 0.1, 0.2, 0.35, 0.5, 0.7, 1.0)  # w
FEWEST = 30  # rows, below which nothing is chosen
DOUBT = 4.0  # imagined rows that look like another class
TAILS = 8.0  # degrees of freedom of the bell
SHARED = 10.0  # imagined rows of the variance that all classes share, in that of each
MARGIN = 0.25  # a gain has to exceed this over the square root of the rows
MOST_CLASSES = 64  # with more of them the counts are believed as they are
_ROOM = 1 << 24  # numbers in G by fold and class
_DRAWS = 32  # points of the bell, and as many on the other side
_NONE = 1e-9  # variance of a cell that every row has, or none


class Strengths(NamedTuple):
    """What the counts are multiplied by, the term, and the pull on its coefficients."""

    counts: float = 1.0
    term: float = 0.0
    ridge: float = RIDGES[-1]


def told(schema: Schema, settings: Settings) -> str:
    """Where the weights of a model come from, if they are counted; empty if not."""
    both = together(schema)
    if both is None:
        return ""
    own = [c.name for c in own_columns(schema, both) if c is not None]
    by = next((settings.corrections[n].weight for n in own if n in settings.corrections), None)
    pairs = many(len(own) * (len(own) - 1) // 2, "pair")
    if by is None:
        return f"worked out of counts ({pairs} of columns): the counts are believed as they are"
    return f"worked out of counts ({pairs} of columns), and anew whenever rows come or go"


def with_counted_weights(settings: Settings, tally: Tally, names: Sequence[str], number: Ints) -> Settings:
    """The settings with the corrections that cells counted together give, if the schema has any.

    Corrections of these columns that the settings have already, of the tally as it was before, are made anew.
    """
    both = together(tally.schema)
    if both is None:
        return settings
    columns = own_columns(tally.schema, both)
    rest = {n: c for n, c in settings.corrections.items() if n not in {c.name for c in columns if c is not None}}
    with one_blas_thread():  # the same bits whatever the number of threads
        found = counted_term(tally.labels.relabel(number), len(names))
    if found is not None:
        for i, (side, column) in enumerate(zip(both.of or (), columns, strict=True)):
            if column is not None:
                rest[column.name] = found.correction(i, tuple(names), side.cuts)
    return replace(settings, corrections=rest)


@dataclass(frozen=True)
class CountedTerm:
    """The coefficients: cells in their order, nats by cell and class, each column's share of the constant in them."""

    cells: list[tuple[int, str]]
    added: Floats  # cells × classes
    choice: Strengths

    def correction(self, column: int, classes: tuple[str, ...], cuts: tuple[float, ...]) -> Correction:
        """What one of the columns is corrected by; a stretch of a number that has no rows gets nothing."""
        own = {cell: self.added[k] for k, (i, cell) in enumerate(self.cells) if i == column}
        cells = tuple(stretch_names(cuts)) if cuts else tuple(own)
        nothing = np.zeros(len(classes))
        added = np.array([own.get(cell, nothing) for cell in cells]).reshape(len(cells), len(classes))
        return Correction(self.choice.counts, classes, added, () if cuts else cells, cuts)


def counted_term(labels: Counts, n_classes: int) -> CountedTerm | None:
    """The term of a tally's counts beside its labels; None where they are believed as they are."""
    counts = cell_counts(labels, n_classes, int((_ROOM / (FOLDS * n_classes)) ** 0.5))
    rows = counts.rows.sum(axis=0)
    if rows.sum() < FEWEST or np.count_nonzero(rows) < 2 or n_classes > MOST_CLASSES or not counts.cells:
        return None
    choice = chosen(counts)
    if choice is None:
        return None
    beta, middle = discriminant(rows, counts.n.sum(axis=0), counts.pairs.sum(axis=(0, 1)), choice.ridge)
    share = beta * middle  # of the constant, cell by cell; each of a column's cells takes all of its column's
    column = np.array([i for i, _ in counts.cells])
    own = np.zeros((n_classes, int(column.max()) + 1))
    np.add.at(own.T, column, share.T)
    return CountedTerm(counts.cells, choice.term * (beta - own[:, column]).T, choice)


def discriminant(rows: Floats, n: Floats, pairs: Floats, ridge: float) -> tuple[Floats, Floats]:
    """β and ½(μ_y + m), classes × cells, of counts by class, cell by class and cell by cell; 0 for an empty class."""
    each, total = np.maximum(rows, 1e-300)[:, None], rows.sum()
    mean, m = n / each, n.sum(axis=0) / total
    within = (pairs - n.T @ mean) / total
    pulled = within + ridge * np.diag(m * (1 - m) + _NONE)
    beta = np.linalg.solve(pulled, (mean - m).T).T
    there = rows[:, None] > 0
    return np.where(there, beta, 0.0), (mean + m) / 2


def log_ratios(n: Floats, column: Ints) -> Floats:
    """log P(cell given class) by Laplace's α = 1, classes × cells: what the counts say, numbers by their stretches."""
    total, size = np.zeros((len(n), column.max() + 1)), np.bincount(column)
    np.add.at(total.T, column, n.T)
    return np.asarray(np.log((n + 1.0) / (total + size)[:, column]))


def chosen(counts: CellCounts) -> Strengths | None:
    """What the rows left out support, fold by fold; None where it is not clearly better than the counts alone."""
    grid = [(w, a) for a in TERMS for w in COUNTS]
    loss = np.array([expected_losses(counts, ridge, np.array(grid)) for ridge in RIDGES])
    total = counts.rows.sum()
    at, best = np.unravel_index(int(np.argmin(loss)), loss.shape)
    alone = loss[0, grid.index((1.0, 0.0))]
    if not alone - loss[at, best] > MARGIN / total**0.5:
        return None
    return Strengths(*grid[int(best)], RIDGES[int(at)])


def expected_losses(counts: CellCounts, ridge: float, grid: Floats) -> Floats:
    """The log loss of rows left out that each (w, a) of a grid leads to expect under one ρ."""
    mean, spread = held_out_moments(counts, ridge)
    rows = counts.rows.sum(axis=0)
    total, k = rows.sum(), len(rows)
    prior = np.log((rows + 0.5) / (total + 0.5 * k))
    w, a = grid[:, 0], grid[:, 1]
    out = np.zeros(len(grid))
    for y in np.flatnonzero(rows).tolist():
        others = np.delete(np.arange(k), y)
        apart = mean[y, :, others] - mean[y, :, y]  # others × (counts, term)
        lead = w[:, None] * apart[:, 0] + a[:, None] * apart[:, 1] + prior[others] - prior[y]
        c = spread[y][:, others][:, :, :, others] - spread[y][:, [y]][:, :, :, others]
        c = c - spread[y][:, others][:, :, :, [y]] + spread[y][:, [y]][:, :, :, [y]]  # of differences to the class
        both = (
            (w * w)[:, None, None] * c[0, :, 0]
            + (w * a)[:, None, None] * (c[0, :, 1] + c[1, :, 0])
            + (a * a)[:, None, None] * c[1, :, 1]
        )
        size = np.trace(both, axis1=1, axis2=2)[:, None, None]
        root = np.linalg.cholesky(both + (1e-9 + 1e-7 * size) * np.eye(k - 1))
        scores = lead[:, None, :] + np.asarray(points(k - 1)) @ root.transpose(0, 2, 1)
        top = np.maximum(scores.max(axis=2), 0.0)
        own = (top + np.log(np.exp(-top) + np.exp(scores - top[:, :, None]).sum(axis=2))).mean(axis=1)
        doubted = lead @ (rows[others] / (total - rows[y]))
        out += rows[y] * (own - DOUBT / (total + DOUBT) * doubted)
    return np.asarray(out / total)


def held_out_moments(counts: CellCounts, ridge: float) -> tuple[Floats, Floats]:
    """Mean and variance, in each class, of what the other folds say of rows: by the counts, and by the term.

    mean[y, reading, class], variance[y, reading, class, reading, class]; with the variance that classes share in that
    of each, the more the fewer rows it has.
    """
    column = np.array([i for i, _ in counts.cells])
    rows, n, pairs = counts.rows.sum(axis=0), counts.n.sum(axis=0), counts.pairs.sum(axis=(0, 1))
    k = len(rows)
    first, second = np.zeros((k, 2 * k)), np.zeros((k, 2 * k, 2 * k))
    for fold in np.flatnonzero(counts.rows.sum(axis=1)).tolist():
        left, own = rows - counts.rows[fold], n - counts.n[fold]
        beta, middle = (
            discriminant(left, own, pairs - counts.pairs[fold].sum(axis=0), ridge) if left.any() else (0 * n, n)
        )
        said = np.vstack([log_ratios(own, column), beta])
        start = np.concatenate([np.zeros(k), -(beta * middle).sum(axis=1)])
        for y in np.flatnonzero(counts.rows[fold]).tolist():
            times = counts.rows[fold, y]
            s = said @ counts.n[fold, y]
            first[y] += s + times * start
            cross = np.outer(s, start)
            second[y] += said @ counts.pairs[fold, y] @ said.T + cross + cross.T + times * np.outer(start, start)
    each = np.maximum(rows, 1e-300)[:, None]
    mean = first / each
    about = second - rows[:, None, None] * mean[:, :, None] * mean[:, None, :]
    shared = about.sum(axis=0) / max(rows.sum() - np.count_nonzero(rows), 1.0)
    spread = (about + SHARED * shared) / np.maximum(rows - 1 + SHARED, 1.0)[:, None, None]
    spread *= 1 + 1 / each[:, :, None]
    return mean.reshape(k, 2, k), spread.reshape(k, 2, k, 2, k)


@lru_cache(maxsize=MOST_CLASSES)
def points(dimensions: int) -> tuple[tuple[float, ...], ...]:
    """Points of a bell with Student's tails, evenly spread by the square roots of primes, and their mirror images."""
    from statistics import NormalDist

    primes = [p for p in range(2, 400) if all(p % d for d in range(2, int(p**0.5) + 1))][: dimensions + 1]
    normal, out = NormalDist(), []
    for i in range(1, _DRAWS + 1):
        z = [normal.inv_cdf(min(max(i * p**0.5 % 1.0, 1e-6), 1 - 1e-6)) for p in primes]
        cubed = 1 - 2 / (9 * TAILS) - z[0] * (2 / (9 * TAILS)) ** 0.5  # χ² over its degrees (Wilson and Hilferty)
        wide = max(cubed, 0.1) ** -1.5
        out += [tuple(sign * wide * v for v in z[1:]) for sign in (1.0, -1.0)]
    return tuple(out)
