"""Auto: the family of a number column, chosen from its tally alone.

For each candidate, every row's class is predicted from this column with the row itself left out, cell by cell:

    Σ_gy n_gy · log [ (n_y − 1)·P₋(g given y) / ((n_y − 1)·P₋(g given y) + Σ_{y' ≠ y} n_y'·P(g given y')) ]

The candidate with the highest sum wins; one that is simpler wins ties. A column without cells is a Gaussian.
Bins by description length have seen the labels of all rows when they were cut. Where they are ahead they are cut anew
without the rows that are asked about (`Bins.held_out_score`), and must still be ahead of what is simpler.
The Gaussian with a variance of its own for each class takes part as its Student-t only: the plain one looks perfect on
a class whose few values happen to be equal, and calls the next value impossible.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Floats, safe_log
from ..exact.counts import Counts
from .base import WORST, Belief, Context, Family, registered
from .bins import Bins
from .gaussian import Gaussian
from .histogram import Histogram, read_cells
from .kernel import Kernel
from .levels import Levels
from .poisson import Poisson
from .presence import Bernoulli, zero_or_one

_TIE = 1.0  # natural logs over all rows: less is not worth a more complicated family
_CUT = 3.0  # the same for one that looks at the labels: with so much choice it is often ahead by chance


@dataclass(frozen=True)
class Auto(Family):
    """Whichever family of numbers tells the classes apart best when each row is left out in turn.

    >>> rows = {"x": [1.0, 2.0, 2.5, 7.0, 8.0, 9.0], "y": ["low", "low", "low", "high", "high", "high"]}
    >>> tb.count(rows, "y").model({"families": {"x": "auto"}}).families["x"].describe()
    'gaussian-shared'
    """

    name = "auto"
    kinds = ("number",)

    def estimate(self, counts: Counts, context: Context) -> Belief:
        """The belief of the chosen family."""
        return choose(counts, context).estimate(counts, context)


def candidates(h: Histogram) -> list[Family]:
    """The families to try, simplest first; last those that were registered and want to be tried."""
    if zero_or_one(h):
        return [Bernoulli(), *(f for f in registered() if f.tries(h))]
    out: list[Family] = [Gaussian(variance="shared"), Gaussian(predictive=True)]
    if h.cells.discrete and np.all(h.middle >= 0) and np.all(h.middle == np.rint(h.middle)):
        out.append(Poisson())
    out += [Bins(), Bins("frequency", 10)]
    if h.cells.discrete:
        out.append(Levels())
    return [*out, Kernel(), *(f for f in registered() if f.tries(h))]


def choose(counts: Counts, context: Context) -> Family:
    """The family that leave-one-out on the cells prefers."""
    if context.cells is None or "cells" not in counts.sheets or context.n_classes < 2:
        return Gaussian()
    h = read_cells(counts, context, "auto")
    tried = {f: left_out_score(f, h, counts, context) for f in candidates(h)}
    asked: set[Family] = set()
    while True:
        best = max(tried, key=lambda f: tried[f])
        chosen = next(f for f, score in tried.items() if score >= tried[best] - _TIE)
        again = {best, chosen} - asked
        if not again:
            return chosen
        asked |= again
        for family in again:  # a sum that labels have flattered is asked for anew, where it would decide
            honest = family.held_out_score(h, context)
            if honest is not None:
                simpler = list(tried)[: list(tried).index(family)]
                ahead = min(honest, tried[family]) - max((tried[f] for f in simpler), default=-np.inf)
                tried[family] = min(honest, tried[family]) if ahead > _CUT else -np.inf


def left_out_score(family: Family, h: Histogram, counts: Counts, context: Context) -> float:
    """The sum in this module's docstring; −inf for a family that cannot be left out."""
    answer = family.leave_one_out(h, counts, context)
    if answer is None:
        return -np.inf
    whole, left = answer
    rows = h.n.sum(axis=0)
    others = whole + safe_log(rows)
    own = left + safe_log(np.maximum(rows - 1, 0.0))
    return float(np.sum(np.where(h.n > 0, h.n * _log_share(own, others), 0.0)))


def _log_share(own: Floats, all_classes: Floats) -> Floats:
    """log [own / (own + the others)] per cell and class; at worst `WORST`, for a class that was a single row."""
    out = np.empty_like(own)
    for y in range(own.shape[1]):
        rest = all_classes[:, np.arange(own.shape[1]) != y]
        top = np.maximum(np.max(rest, axis=1, initial=-1e300), np.maximum(own[:, y], -1e300))
        mine = np.exp(own[:, y] - top)
        total = mine + np.exp(rest - top[:, None]).sum(axis=1)
        out[:, y] = safe_log(mine / np.maximum(total, 1e-300))  # a cell no class can have is nobody's
    return np.maximum(out, WORST)
