"""How much unlabelled rows count, and whether at all: by the labels of folds that EM was not shown.

For every fold EM runs from the labels of the other folds, at several weights, and the rows of the fold are scored by
what was counted. The weight that loses least is taken, and then compared with the model of the labels alone, which is
fitted anew without the fold as well: row by row, so that what is hard for both cancels out.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from ...base.arrays import Bools, Floats, Ints
from .mixture import FoundShares, Mixture

LAMBDAS = (0.3, 1.0, 0.1, 0.03, 0.01)  # the first is where the search begins
PULLS = ((10.0, 30.0), (30.0, 100.0))  # rows that values, and texts that words, are drawn to what is usual by
ALPHAS = (0.03, 0.1, 0.3, 1.0)  # of the words of the model that is made in the end
_STEPS = 4  # of EM, to judge by: what is gained by then tells
_TEMPERATURES = np.exp(np.linspace(np.log(0.02), np.log(30.0), 60))


class UnlabelledReading(NamedTuple):
    """How unlabelled rows are counted, and words are believed."""

    weight: float
    pull: tuple[float, float]
    alpha: float = ALPHAS[0]


class TemperedRows(NamedTuple):
    """The labelled rows, each scored without its label."""

    loss: float  # the mean of −log P(right class), and what a temperature far from 1 costs
    temperature: float  # on what columns say
    p: Floats  # rows × classes


@dataclass(frozen=True, eq=False)
class UnlabelledTrial:
    """The labelled rows in folds, and all rows as EM sees them."""

    mixture: Mixture
    folds: Ints

    @cached_property
    def n_folds(self) -> int:
        """How many there are."""
        return int(self.folds.max()) + 1

    def best(self, tell: Callable[[], None] = lambda: None) -> tuple[UnlabelledReading, TemperedRows]:
        """The reading that loses least: how strongly counts are drawn to what is usual first, then the weight."""
        found: dict[UnlabelledReading, TemperedRows] = {}
        for pull in PULLS:
            found |= self.scored(LAMBDAS[0], pull)
            tell()
        best = min(found, key=lambda r: found[r].loss)
        for weight in LAMBDAS[1:]:
            if weight < best.weight / 4:
                break  # lighter than one that was worse already
            found |= self.scored(weight, best.pull)
            best = min(found, key=lambda r: found[r].loss)
            tell()
        return best, found[best]

    def scored(self, weight: float, pull: tuple[float, float]) -> dict[UnlabelledReading, TemperedRows]:
        """Every labelled row by what was counted without its fold, for each α of the words."""
        mix = self.mixture
        alphas = ALPHAS if any(p.words for p in mix.where) else ALPHAS[:1]
        prior = np.empty((mix.known, mix.n_classes))
        said = np.zeros((len(alphas), mix.known, mix.n_classes))
        for k in range(self.n_folds):
            found = mix.run(self.folds != k, weight, self.rows(pull), _STEPS)
            held = np.flatnonzero(self.folds == k)
            prior[held] = np.log(found.prior / found.prior.sum())
            for i, alpha in enumerate(alphas):
                said[i, held] = self.final(found, UnlabelledReading(weight, pull, alpha), held)
        return {UnlabelledReading(weight, pull, a): tempered(prior, said[i], mix.labels) for i, a in enumerate(alphas)}

    def final(self, found: FoundShares, reading: UnlabelledReading, rows: Ints) -> Floats:
        """What the columns of some labelled rows say under the model that is made in the end."""
        mix = self.mixture
        out = np.zeros((len(rows), mix.n_classes))
        tables = mix.tables(found.counts, self.rows(reading.pull))
        for p, n, table, matrix in zip(mix.where, found.counts, tables, mix.labelled, strict=True):
            own = matrix[rows] @ (word_logs(n, reading.alpha) if p.words else table)
            out += own if p.reach is None else p.reach[rows, None] * own
        return out

    def rows(self, pull: tuple[float, float]) -> list[float]:
        """The pull on each of the places."""
        return [pull[1] if p.words else pull[0] for p in self.mixture.where]

    def run(self, reading: UnlabelledReading) -> FoundShares:
        """EM from all labels."""
        every: Bools = np.ones(self.mixture.known, dtype=bool)
        return self.mixture.run(every, reading.weight, self.rows(reading.pull))


def word_logs(n: Floats, alpha: float) -> Floats:
    """What each word says of each class: by the words of all others, or of two classes by its own."""
    if n.shape[1] == 2:
        own = n + alpha
        return np.asarray(np.log(own / own.sum(axis=0)))
    others = n.sum(axis=1, keepdims=True) - n + alpha
    return np.asarray(-np.log(others / others.sum(axis=0)))


def tempered(prior: Floats, said: Floats, labels: Ints) -> TemperedRows:
    """The rows under the temperature that loses least; one that few rows ask for is drawn to 1."""
    at, best = np.arange(len(labels)), None
    for t in _TEMPERATURES.tolist():
        scores = prior + t * said
        scores -= scores.max(axis=1, keepdims=True)
        p = np.exp(scores)
        p /= p.sum(axis=1, keepdims=True)
        loss = float(-np.log(np.maximum(p[at, labels], 1e-300)).mean()) + 0.5 * np.log(t) ** 2 / len(labels)
        if best is None or loss < best.loss:
            best = TemperedRows(loss, t, p)
    assert best is not None
    return best
