"""EM over labelled and unlabelled rows (Nigam, McCallum, Thrun and Mitchell 2000): each step a weighted count.

E:  P(y | x) ∝ P(y) · Π_j P(x_j | y)                         shares of the classes for each unlabelled row
M:  P(v | y) = (n_vy + m·P(v)) / (N_y + m)                   n: labelled rows, and λ times the shares of the others

P(v) is how frequent a value or a word is among all rows, labelled or not: what few labels cannot tell is drawn to what
is known without them, so a frequent word does not speak for the one class in which it was met. Without that the shares
follow whatever the first few rows had in common. P(y) is counted with the shares where there are two classes; of more
it stays that of the labels, since a class that has drawn few rows would draw fewer and fewer. Words count by
`ColumnPlaces.reach`, since the words of a text repeat each other, and unlabelled rows would be taken for sure at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...base.arrays import Bools, Floats, Ints
from .places import ColumnPlaces

STEPS = 8  # at most
ENOUGH = 1e-4  # of the log likelihood of the unlabelled rows: less gained by a step, and it was the last
_HALF = 0.5  # a row, for a value that no row has


@dataclass(frozen=True, eq=False)
class FoundShares:
    """What EM found: the shares of the unlabelled rows, and what was counted with them."""

    shares: Floats  # unlabelled rows × classes
    prior: Floats  # rows of each class
    counts: tuple[Floats, ...]  # of each of the places: place × class
    steps: int
    log_likelihood: tuple[float, ...]  # of the unlabelled rows, after each E step


class Mixture:
    """Labelled rows, then unlabelled ones, in the places of their columns."""

    def __init__(self, where: Sequence[ColumnPlaces], labels: Ints, weights: Floats, n_classes: int) -> None:
        """`labels` are those of the first rows; `weights` of all rows."""
        self.where, self.labels, self.n_classes = where, labels, n_classes
        self.known, self.others = len(labels), len(weights) - len(labels)
        self.weights = weights
        self.labelled = [p.matrix[: self.known] for p in where]
        self.unlabelled = [p.matrix[self.known :] for p in where]
        self.turned = [u.T.tocsr() for u in self.unlabelled]
        self.usual = []
        for p in where:
            n = weights @ p.matrix + _HALF
            self.usual.append((n / p.per_column(n))[:, None])
        self.mean_length = [p.matrix.nnz / max(p.matrix.shape[0], 1) if p.words else 1.0 for p in where]

    def counted(self, training: Bools) -> tuple[Floats, tuple[Floats, ...]]:
        """The rows of each class, and what they have in each place, of some of the labelled rows."""
        of = np.zeros((self.known, self.n_classes))
        of[np.arange(self.known), self.labels] = self.weights[: self.known] * training
        return of.sum(axis=0), tuple(m.T @ of for m in self.labelled)

    def tables(self, counts: Sequence[Floats], rows: Sequence[float]) -> list[Floats]:
        """log P(v | y) by place and class, drawn to P(v) by so many rows of each kind of column."""
        out = []
        for p, n, usual, length, m in zip(self.where, counts, self.usual, self.mean_length, rows, strict=True):
            pull = m * length
            out.append(np.log((n + pull * usual) / (p.per_column(n) + pull)))
        return out

    def said(self, tables: Sequence[Floats], prior: Floats, *, labelled: bool) -> Floats:
        """log P(y) + Σ of what the places say, for the labelled or the unlabelled rows."""
        rows = slice(0, self.known) if labelled else slice(self.known, None)
        out = np.tile(np.log(prior / prior.sum()), (self.known if labelled else self.others, 1))
        for p, m, table in zip(self.where, self.labelled if labelled else self.unlabelled, tables, strict=True):
            own = m @ table
            out += own if p.reach is None else p.reach[rows, None] * own
        return out

    def run(self, training: Bools, weight: float, rows: Sequence[float], steps: int = STEPS) -> FoundShares:
        """EM from some of the labelled rows, the unlabelled ones counted at a weight, in at most so many steps."""
        known, counts = self.counted(training)
        prior, now = known, counts
        heavy = weight * self.weights[self.known :, None]
        likelihood: list[float] = []
        for step in range(1, steps + 1):
            said = self.said(self.tables(now, rows), prior, labelled=False)
            best = said.max(axis=1, keepdims=True)
            shares = np.exp(said - best)
            total = shares.sum(axis=1, keepdims=True)
            shares /= total
            likelihood.append(float(self.weights[self.known :] @ (best + np.log(total))[:, 0]))
            added = heavy * shares
            prior = known + added.sum(axis=0) if self.n_classes == 2 else known
            now = tuple(n + t @ added for n, t in zip(counts, self.turned, strict=True))
            if step > 1 and likelihood[-1] - likelihood[-2] <= ENOUGH * abs(likelihood[-2]):
                break
        return FoundShares(shares, prior, now, step, tuple(likelihood))
