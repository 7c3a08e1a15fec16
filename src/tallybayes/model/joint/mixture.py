"""Whether rows without labels differ from what was learnt by their mixture of classes alone.

    Q(x) = Σ over classes q(y) · P(x given y)

If only the mixture has changed, one q fits all columns. It is estimated from the columns together (EM on their counts,
columns that no such q fits left out), and each column is asked how far it is from what q makes of the learnt classes,
by a quadratic form that allows for chance in both tallies and in q. A change within the classes that looks like another
mixture cannot be told from one: labels alone could.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ...base.arrays import Floats
from ...base.lazy import scipy
from .dependence import LEVEL, holm

_STEPS = 500
_CLOSE = 1e-7  # shares that move less have arrived
_LEAST = 5.0  # rows of a slot for each class; rarer slots are put together
_HALF = 0.5  # a row shared out to the slots of every class, so that no value is impossible


class Explained:
    """A mixture of the learnt classes for rows without labels, and how well it explains each column."""

    def __init__(self, learnt: Mapping[str, Floats], seen: Mapping[str, Floats], by_class: Floats) -> None:
        """`learnt` has the counts of each column, slots × classes, `seen` those of the rows, `by_class` all rows."""
        self._n = by_class
        self._columns = {name: _merged(learnt[name], seen[name]) for name in learnt}
        used = list(self._columns)
        self.mixture = self._fitted(used)
        while used:
            p = holm([self._p(*self._columns[name], self._variance(used)) for name in used])
            worst = int(np.argmin([1.0 if v is None else v for v in p]))
            if (p[worst] or 1.0) >= LEVEL or len(used) == 1:
                break
            used.pop(worst)
            self.mixture = self._fitted(used)
        variance = self._variance(used)
        found = {name: self._p(a, b, variance) for name, (a, b) in self._columns.items()}
        corrected = holm(list(found.values()))
        self.p_values: dict[str, float | None] = dict(zip(found, corrected, strict=True))

    def _given(self, a: Floats) -> Floats:
        """P(slot given class), slots × classes."""
        return np.asarray((a + _HALF / len(a)) / (a.sum(axis=0) + _HALF))

    def _fitted(self, used: Sequence[str]) -> Floats:
        """The shares under which the counts of these columns are likeliest, each column by itself."""
        q = self._n / self._n.sum()
        if not used:
            return np.asarray(q)
        given = np.vstack([self._given(self._columns[name][0]) for name in used])
        b = np.concatenate([self._columns[name][1] for name in used])
        for _ in range(_STEPS):
            new = q * ((b / (given @ q)) @ given) / b.sum()
            moved, q = float(np.abs(new - q).max()), new
            if moved < _CLOSE:
                break
        return np.asarray(q)

    def _variance(self, used: Sequence[str]) -> Floats:
        """How far chance leaves the shares open: what the columns tell, and what even labels would leave."""
        q = self.mixture
        rows = max((float(self._columns[name][1].sum()) for name in used), default=1.0)
        information = np.zeros((len(q), len(q)))
        for name in used:
            a, b = self._columns[name]
            given = self._given(a)
            mixed = given @ q
            information += (given * (b.sum() / mixed)[:, None]).T @ given
        centre = np.eye(len(q)) - 1 / len(q)  # shares add up to one
        told = np.linalg.pinv(centre @ information @ centre, rcond=1e-8, hermitian=True)
        return np.asarray(told + (np.diag(q) - np.outer(q, q)) / max(rows, 1.0))

    def _p(self, a: Floats, b: Floats, variance: Floats) -> float | None:
        """p of the distance of counts `b` from the mixture of the classes `a`; None where there is nothing to ask."""
        q, rows = self.mixture, float(b.sum())
        if rows == 0 or len(b) < 2:
            return None
        given, n = self._given(a), np.maximum(a.sum(axis=0), 1.0)
        mixed = given @ q
        off = b / rows - mixed
        cov = (np.diag(mixed) - np.outer(mixed, mixed)) / rows + given @ variance @ given.T
        every = a.sum(axis=1) / max(a.sum(), 1.0)
        for y in range(len(q)):
            p = (given[:, y] + every) / 2  # a value that few rows of a class could have had is no surer for that
            cov += q[y] ** 2 * (np.diag(p) - np.outer(p, p)) / n[y]
        off, cov = off[:-1], cov[:-1, :-1]  # the last follows from the others
        return float(scipy.special.gammaincc(len(off) / 2, max(float(off @ np.linalg.solve(cov, off)), 0.0) / 2))


def _merged(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The counts with slots put together until each has rows enough for the curve of many."""
    both = a.sum(axis=1) / max(a.sum(), 1.0) + b / max(b.sum(), 1.0)
    order = np.argsort(-both, kind="stable")
    least = 2 * _LEAST * a.shape[1] / max(min(a.sum(), b.sum()), 1.0)
    kept = order[both[order] >= least]
    rest = np.setdiff1d(order, kept)
    if len(rest) == 0:
        return a[kept], b[kept]
    if both[rest].sum() < least and len(kept):  # too few by themselves, too
        rest, kept = np.append(rest, kept[-1]), kept[:-1]
    return np.vstack([a[kept], a[rest].sum(axis=0)]), np.append(b[kept], b[rest].sum())
