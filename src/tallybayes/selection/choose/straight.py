"""Straight effects of numbers: what a column's corrections have in common with a line costs little.

The pull on jumps holds a line back as strongly as a wave of the same rise, so that among much noise a smooth column was
left with neither. So δ = d + β·z, where z is the place of a stretch: d is pulled as corrections are, and β by a share
of what the jumps of the line would cost. A number that tells nothing by itself, and much beside others, is often
straight.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ...base.arrays import Floats, Ints
from .placed import Placed

SHARE = 0.03  # of what its jumps would cost


@dataclass(frozen=True, eq=False)
class Straight:
    """The columns whose corrections may be straight, under one pull; rows of δ behind theirs are left out."""

    place: Floats  # z of each row of δ as a column of one; 0 where there is no line
    column: Ints  # of each row of δ: which of the lines; 0 where there is none
    pulled: Floats  # how the pull answers to a slope of 1, by row of δ
    cost: Floats  # of a slope of 1, by line

    @classmethod
    def of(cls, placed: Placed, ridge: Floats, strength: Floats) -> Straight | None:
        """Under these pulls on rows of δ and on the jumps between them; None if there is no line."""
        z = placed.line
        if not z.any():
            return None
        a, b, _ = placed.edges
        pulled, jumps = ridge[:, 0] * z, strength * (z[b] - z[a])
        np.add.at(pulled, b, jumps)
        np.add.at(pulled, a, -jumps)
        count = [t.n_rows for t in placed.terms]
        term = np.repeat(np.arange(len(count)), count)
        cost: Floats = np.bincount(term, pulled * z, len(count)).astype(np.float64)
        number = np.maximum(np.cumsum(cost > 0) - 1, 0)[term].astype(np.int64)
        stop = int(np.flatnonzero(z)[-1]) + 1
        return cls(z[:stop, None], number[:stop], pulled[:stop, None], cost[cost > 0][:, None])

    def slopes(self, added: Floats) -> Floats:
        """Lines × width: those that leave of some corrections what is pulled least."""
        return self._by_line(self.pulled * added[: len(self.place)]) / self.cost

    def add_along(self, slopes: Floats, out: Floats) -> None:
        """Add to rows of δ × width what the lines say."""
        out[: len(self.place)] += self.place * slopes[self.column]

    def felt(self, of_rows: Floats) -> Floats:
        """Lines × width: how much a loss changes with the slopes, by how it changes with δ."""
        return self._by_line(self.place * of_rows[: len(self.place)])

    def bent(self, of_rows: Floats) -> Floats:
        """The same of curvatures, with that of the pull."""
        return self._by_line(self.place**2 * of_rows[: len(self.place)]) + 2 * SHARE * self.cost

    def held(self, slopes: Floats) -> tuple[float, Floats]:
        """What the slopes cost, and how that changes with them."""
        pull = SHARE * self.cost * slopes
        return float(np.vdot(pull, slopes)), 2 * pull

    @cached_property
    def _ends(self) -> tuple[Ints, Ints]:
        """The first row of each run of rows of one line, and its line."""
        first = np.flatnonzero(np.diff(self.column, prepend=-1))
        return first, self.column[first]

    def _by_line(self, each: Floats) -> Floats:
        first, line = self._ends
        out = np.zeros((len(self.cost), each.shape[1]))
        np.add.at(out, line, np.add.reduceat(each, first, axis=0))
        return out
