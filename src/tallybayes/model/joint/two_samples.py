"""Whether two rows of counts come from one distribution: p of a quadratic form under all ways of dealing the rows out.

    T = Σ over strata (N − 1) · Σ over both tallies aᵀ·G·a / n        a: its counts by slot, n: its rows

G says how alike two slots are, so that T grows with what is asked for rather than with anything at all:

values in an order   Anderson and Darling's kernel, which sees a move along the line, and Pearson's in ∛N bins, which
                     sees a heap; together they find a moved number with half the rows that Pearson's needs alone
other values         Pearson's kernel with 1/√share in place of 1/share: of fifty values those that are rare are mostly
                     noise

The mean, variance and skewness of T over all deals are exact (`dependence.chance`), as for X²; with few rows and a
verdict at stake, a thousand deals are made, the same ones every time. The level is kept: see benchmarks/levels.py.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.arrays import Floats
from .dependence import DEALS, FEW_ROWS, UNSURE, by_moments, by_moments_each, dependence, invariants, sum_by

MOST_SLOTS = 512  # a kernel of so many is made at most; of more values Pearson's is asked
_PEARSON = 0.4  # of its kernel beside that of Anderson and Darling, whose first eigenvalue is 1
_MOST_BINS = 10


def chance_of(table: Floats, ordered: int = 0) -> float:
    """How often chance alone parts two tallies as far: counts of whole rows, tallies × slots × strata.

    The first `ordered` slots stand in the order of a line; those after them, such as "missing", do not.
    """
    table = table[:, :, [_is_asked(table[:, :, s]) for s in range(table.shape[2])]]
    if table.shape[2] == 0:
        return 1.0
    used = np.asarray(table.any(axis=0))
    if used.sum(axis=0).max() == 2 or len(used) > MOST_SLOTS:  # fourfold tables are worked out in full
        tally, slot, stratum = (i.ravel() for i in np.indices(table.shape))
        return float(dependence("", tally, slot, stratum, table.ravel()).p_value or 0.0)
    asked = [_Stratum(table[:, :, s], ordered) for s in range(table.shape[2])]
    total = sum(s.statistic(s.counts[0]) for s in asked)
    sides = [np.stack(each, axis=1) for each in zip(*((s.tallies(), s.graphs()) for s in asked), strict=True)]
    p = by_moments(np.array([s.rows for s in asked]), sides, float(np.sum(total)))
    if table.sum() <= FEW_ROWS and UNSURE[0] <= p <= UNSURE[1]:
        p = max(p, _by_dealing(asked, float(np.sum(total))))
    return p


def chances_along(table: Floats, ordered: int = 0) -> Floats:
    """`chance_of` the tallies before and after every place between two of many, those in their order."""
    before = np.cumsum(table, axis=0)[:-1]
    total = table.sum(axis=0)
    used = total > 0
    if used.sum(axis=0).max(initial=0) <= 2 or len(used) > MOST_SLOTS or total.sum() <= FEW_ROWS:
        return np.array([chance_of(np.stack([first, total - first]), ordered) for first in before])
    return chances_by_moments(before, total, ordered)


def chances_by_moments(before: Floats, total: Floats, ordered: int = 0) -> Floats:
    """p by the gamma curve alone, of any number of first tallies × slots × strata that the same rows were dealt to.

    The kernel of a stratum and its sums rest on all rows together, `total`, whichever of them are in the first tally.
    """
    place, rows, found, graphs, parted = [], [], [], [], []
    used = total > 0
    for s in np.flatnonzero(used.sum(axis=0) > 1).tolist():
        there = used[:, s]
        stratum = (_Stratum if len(used) <= MOST_SLOTS else _ManyValues)(
            np.stack([total[:, s], 0 * total[:, s]]), ordered
        )
        first = before[:, there, s]
        n = first.sum(axis=1)
        at = np.flatnonzero((n > 0) & (n < stratum.rows))
        place.append(at)
        rows.append(np.full(len(at), stratum.rows))
        parted.append(np.stack([n[at], stratum.rows - n[at]]))
        found.append(stratum.statistic(first[at], n[at]))
        graphs.append(np.repeat(stratum.graphs()[:, None], len(at), axis=1))
    if not sum(map(len, place)):
        return np.ones(len(before))
    every, question = np.concatenate(rows), np.concatenate(place)
    sides = invariants(np.concatenate(parted, axis=1).ravel(), np.tile(np.arange(len(every)), 2), every)
    statistic = sum_by(question, np.concatenate(found), len(before))
    return by_moments_each(every, [sides, np.concatenate(graphs, axis=1)], question, statistic)


def _is_asked(counts: Floats) -> bool:
    """Whether anything can be dealt out anew: rows in both tallies, and values that differ."""
    return bool((counts.sum(axis=1) > 0).all() and np.count_nonzero(counts.any(axis=0)) > 1)


class _Stratum:
    """The counts of one stratum, tallies × slots, and the centred kernel of its slots."""

    def __init__(self, counts: Floats, ordered: int) -> None:
        there = np.asarray(counts.any(axis=0))
        self.counts = counts[:, there]
        self.n = self.counts.sum(axis=0)
        self.rows = float(self.n.sum())
        on_line = int(np.count_nonzero(there[:ordered]))
        kernel = np.diag((self.n / self.rows) ** (-1.0 if ordered else -0.5))
        if on_line > 1:
            kernel[:on_line, :on_line] = _along_a_line(self.n[:on_line])
        mean = kernel @ self.n / self.rows
        self.kernel = (kernel - mean[:, None] - mean + self.n @ mean / self.rows) / self.rows

    def statistic(self, first: Floats, n: Floats | None = None) -> Floats:
        """(N − 1) · Σ aᵀGa/n, where `first` has the counts of the first tally, in any number of deals; n: its rows."""
        n = self.counts[0].sum() if n is None else n
        form = ((first @ self.kernel) * first).sum(axis=-1)  # the second has the rest, and Σ G·n = 0
        return np.asarray((self.rows - 1) * form * (1 / n + 1 / (self.rows - n)))

    def tallies(self) -> Floats:
        """The sums over rows that `chance` asks of which tally each row is in."""
        n = self.counts.sum(axis=1)
        return invariants(n, np.zeros(2, dtype=np.int64), np.array([self.rows]))[:, 0]

    def graphs(self) -> Floats:
        """The same sums of the kernel, in the order of `dependence.GRAPHS`."""
        n, w, own = self.n, self.kernel, np.diag(self.kernel)
        square, by_rows = w * w, n[:, None] * w
        triangle = float(np.sum((by_rows @ by_rows) * by_rows.T))
        each = [n @ own, n @ own**2, n @ square @ n, n @ own**3, n @ (square * w) @ n, triangle]
        return np.array([*each, (n * own) @ (square @ n), (n * own) @ w @ (n * own)])


class _ManyValues(_Stratum):
    """A stratum of so many values that Pearson's statistic is asked, whose kernel need not be written out."""

    def __init__(self, counts: Floats, ordered: int) -> None:
        self.counts = counts[:, counts.any(axis=0)]
        self.n = self.counts.sum(axis=0)
        self.rows = float(self.n.sum())

    def statistic(self, first: Floats, n: Floats | None = None) -> Floats:
        """(N − 1) · [Σ a²/(n_a · n) − 1], as the kernel 1/share would say."""
        n = np.asarray(self.counts[0].sum() if n is None else n)
        form = (first * first) @ (1 / self.n) - n * n / self.rows
        return np.asarray((self.rows - 1) * form * (1 / n + 1 / (self.rows - n)))

    def graphs(self) -> Floats:
        """The sums over rows of which value each holds."""
        return invariants(self.n, np.zeros(len(self.n), dtype=np.int64), np.array([self.rows]))[:, 0]


def _along_a_line(n: Floats) -> Floats:
    """2 · Σ over borders (step / H(1 − H)) · φφᵀ, φ = [left of the border] − H; and Pearson's kernel of coarse bins."""
    rows, slots = n.sum(), np.arange(len(n))
    below = np.cumsum(n)[:-1] / rows
    step = (n[:-1] + n[1:]) / (2 * rows)
    left = (slots <= slots[:-1, None]) - below[:, None]
    kernel = 2 * (left * (step / (below * (1 - below)))[:, None]).T @ left
    bins = int(np.clip(round(rows ** (1 / 3)), 2, _MOST_BINS))
    group = np.minimum((bins * (np.cumsum(n) - n / 2) / rows).astype(np.int64), bins - 1)
    share = np.bincount(group, n, minlength=bins)[group] / rows
    return np.asarray(kernel + _PEARSON * (group[:, None] == group) / share)


def _by_dealing(strata: Sequence[_Stratum], found: float) -> float:
    """p by dealing the rows of every stratum out to the tallies; (1 + as far or further) / (1 + deals)."""
    rng = np.random.default_rng(0)
    total = np.zeros(DEALS)
    for s in strata:
        first = round(float(s.counts[0].sum()))
        total += s.statistic(
            rng.multivariate_hypergeometric(s.n.astype(np.int64), first, size=DEALS).astype(np.float64)
        )
    return (1 + int(np.count_nonzero(total >= found - 1e-9 * max(found, 1.0)))) / (1 + DEALS)
