"""A pool with a score of every row: which of the rows that are open to take, while the counts under them change.

Scoring all rows of a long pool anew with each label would take longer than reading one. So rows are scored anew in
turns, some with each label; of the rows that may be taken, those that come first are scored anew before they are
compared, so that whatever is taken was judged by the counts as they are.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ...base.arrays import Floats, Ints
from ...model.model import Model
from .lookahead import SAMPLE, batch_of, falls, falls_by_counting, shortlist_of, whole
from .pool import Pool

AT_ONCE = 4096  # rows of the pool that are scored anew with each label, in turns; fewer are always fresh
_AHEAD = 4  # times the shortlist: so many of the most uncertain rows are scored anew before the shortlist is made


class ScoredPool:
    """Rows of a pool, which of them are open, and what the model says of them now or said a little while ago."""

    def __init__(
        self, pool: Pool, rng: np.random.Generator, *, shortlist: int | None = None, sample: int = SAMPLE
    ) -> None:
        self.pool = pool
        self._shortlist = None if shortlist is None else whole("shortlist", shortlist, 1)
        self.sample = np.sort(rng.permutation(pool.rows)[: whole("sample", sample, 1)])
        self.open = pool.weights > 0  # rows that may be taken
        self.uncertain, self.p = np.empty(pool.rows), np.empty((pool.rows, 0))  # as of when each was last scored
        self._ahead = dict[int, Floats]()  # of each class that was looked for: how far ahead it is in each row
        self._turn = self._due = 0
        self._fresh = True  # whether every row is scored by the counts as they are
        self._refresh_all()

    def under(self, model: Model, changed: int | None = None) -> None:
        """Put the rows under another model; one that so many rows have changed is caught up with in turns."""
        before, self.pool = self.pool.names, self.pool.under(model)
        if changed is None or self.pool.names != before:
            self._refresh_all()
        else:
            self._due += changed

    def count(self, row: int, label: int, sign: int = 1) -> None:
        """Count a row under a class that the model knows, or take it back."""
        self.pool.add(row, label, sign)
        self._due += 1

    def telling(self, k: int) -> list[int]:
        """The k open rows whose labels are expected to settle most, the first most of all."""
        if k == 0 or not self.open.any():
            return []
        short = self.largest(self.uncertain, max(self._shortlist or shortlist_of(self.pool), 2 * k))
        fall = (falls if self.pool.separable else falls_by_counting)(self.pool, short, self.sample)
        out: list[int] = short[batch_of(fall, k)].tolist()
        return out

    def likeliest(self, label: int, k: int) -> list[int]:
        """The k open rows that are most likely of a class, by `Pool.ahead`."""
        if label not in self._ahead:
            self._ahead[label] = np.concatenate([self.pool.ahead(rows, label) for rows in self._pieces()])
        out: list[int] = self.largest(self._ahead[label], k).tolist()
        return out

    def largest(self, by: Floats, n: int) -> Ints:
        """The n open rows that have most of something; those that may have are scored anew before."""
        self._catch_up()
        left = np.flatnonzero(self.open)
        if self._fresh:
            return _first(left, -by[left], n)
        ahead = _first(left, -by[left], max(_AHEAD * n, 256))
        self._refresh(ahead)
        return _first(ahead, -by[ahead], n)

    def _catch_up(self) -> None:
        """Score some rows anew for each label that has come or gone, in turns; a small pool whole."""
        if self._due == 0:
            return
        n = self.pool.rows
        rows = (self._turn + np.arange(min(AT_ONCE * self._due, n))) % n
        self._refresh(rows)
        self._turn, self._due, self._fresh = (self._turn + len(rows)) % n, 0, len(rows) == n

    def _refresh_all(self) -> None:
        self.p = np.empty((self.pool.rows, len(self.pool.names)))
        self._due, self._fresh, self._ahead = 0, True, {}
        for rows in self._pieces():
            self._refresh(rows)

    def _pieces(self) -> Iterator[Ints]:
        """All rows, so many at once."""
        return (np.arange(i, min(i + AT_ONCE, self.pool.rows)) for i in range(0, self.pool.rows, AT_ONCE))

    def _refresh(self, rows: Ints) -> None:
        self.p[rows] = p = self.pool.probabilities(rows)
        self.uncertain[rows] = uncertainty(p)
        for label, ahead in self._ahead.items():
            ahead[rows] = self.pool.ahead(rows, label)


def uncertainty(p: Floats) -> Floats:
    """One less how far the likeliest class is ahead of the next; 0 where there is one class only."""
    if p.shape[1] < 2:
        return np.zeros(len(p))
    two = np.partition(p, -2, axis=1)[:, -2:]
    return np.asarray(1.0 - (two[:, 1] - two[:, 0]))


def _first(rows: Ints, by: Floats, n: int) -> Ints:
    """The n rows with the smallest numbers, smallest first."""
    if len(rows) > n:
        kept = np.argpartition(by, n - 1)[:n]
        rows, by = rows[kept], by[kept]
    out: Ints = rows[np.lexsort((rows, by))]
    return out
