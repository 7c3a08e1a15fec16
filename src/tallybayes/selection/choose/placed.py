"""Where the rows of a look find their entries in the one table of a fit: the same for every split that judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Bools, Floats, Ints
from .columns import DealtRows, Small
from .untied import Ties
from .values import along_the_line

_LEVEL = 0.02  # of the pull on jumps also holds the level of an ordered column
_FEWEST_OF_LINE = 3  # stretches: two are a line whatever they are
_FAR = 3.0  # deviations
_SMOOTH = 10  # stretches of the line: with more of them neighbours are held together as much more strongly


@dataclass(frozen=True, eq=False)
class Summand:
    """A summand of the score: the cell of each row, and how its corrections hang together."""

    name: str
    codes: Small  # of each row, 0 … size
    size: int  # cells, without the last, which says nothing
    corrected: Ints  # levels × cells: the rows of δ that each cell is the sum of; `n_rows` for none
    n_rows: int
    edges: tuple[Ints, Ints]  # neighbours
    ridge: Floats  # of each row of δ: the pull on itself
    stiff: Floats  # of each two neighbours: the pull on their jump
    pair: bool = False
    line: Floats | None = None  # where each row of δ lies, if a straight effect is a thought

    @classmethod
    def of_column(
        cls, name: str, codes: Small, size: int, enough: Any, alike: bool, places: Floats | None = None
    ) -> Summand:
        """A column, with a correction for each cell that has enough rows, or for each stretch of cells that are alike.

        How far corrections of neighbours go together is a share of the line, not a number of cells: a smooth effect
        costs the same in few cells as in many.
        """
        row, rows = np.cumsum(enough) - 1, np.bincount(codes, minlength=size + 1)[:size][enough]
        if alike and enough.any():
            row = along_the_line(rows)[row]
        count = int(row.max(initial=-1)) + 1
        corrected = np.append(np.where(enough, row, count), count)[None]
        chain = np.arange(max(count - 1, 0) if alike else 0)
        stiff = max(1.0, count / _SMOOTH)
        ridge = np.full(count, _LEVEL / stiff if alike else 1.0)
        line = None
        if alike and places is not None and count >= _FEWEST_OF_LINE:
            at, near = row[enough], np.clip(places[enough], -_FAR, _FAR)  # one value far off does not tilt the line
            line = np.bincount(at, rows * near, count) / np.bincount(at, rows, count)
            line -= line.mean()
        jumps = np.full(len(chain), stiff)
        return cls(name, codes, size, corrected, count, (chain, chain + 1), ridge, jumps, line=line)


@dataclass(frozen=True, eq=False)
class Placed:
    """The entries of the one table: the cells of each term, those of each fold apart where its counts speak."""

    rows: DealtRows
    terms: Sequence[Summand]
    codes: Small  # terms × rows: the entry of each row
    used: Sequence[Ints]  # of each term: which of fold × cell are entries; those that no row falls into are left out
    cells: Small  # levels × entries: the rows of δ that each is the sum of; `n_added` for none

    @classmethod
    def of(cls, rows: DealtRows, terms: Sequence[Summand], speaks: Sequence[bool]) -> Placed:
        """The entries of some terms; those of which counts speak have them fold by fold."""
        n_added = sum(t.n_rows for t in terms)
        codes = np.empty((len(terms), len(rows.labels)), dtype=np.int32)
        levels = max((len(t.corrected) for t in terms), default=1)
        every, cells, at, first = [], [np.zeros((levels, 0), dtype=np.int32)], 0, 0
        for j, (term, folded) in enumerate(zip(terms, speaks, strict=True)):
            size = term.size + 1
            place = rows.folds * size + term.codes if folded else term.codes
            there = np.zeros((rows.n_folds if folded else 1) * size, dtype=bool)
            there[place] = True
            used = np.flatnonzero(there)
            number = np.cumsum(there, dtype=np.int32)
            number += at - 1
            np.take(number, place, out=codes[j], mode="clip")
            row = term.corrected[:, used % size if folded else used]
            cells.append(_deep(np.where(row < term.n_rows, first + row, n_added), levels, n_added))
            every.append(used)
            at, first = at + len(used), first + term.n_rows
        return cls(rows, terms, codes, every, np.concatenate(cells, axis=1))

    def wider(self, terms: Sequence[Summand]) -> Placed:
        """With more terms, of which no counts speak."""
        more = Placed.of(self.rows, terms, [False] * len(terms))
        n_added = self.n_added + more.n_added
        levels = max(len(self.cells), len(more.cells))
        own = np.where(self.cells < self.n_added, self.cells, n_added)
        cells = [_deep(each, levels, n_added) for each in (own, more.cells + self.n_added)]
        codes = np.concatenate([self.codes, more.codes + np.int32(self.size)])
        return Placed(self.rows, [*self.terms, *terms], codes, [*self.used, *more.used], np.concatenate(cells, axis=1))

    @property
    def size(self) -> int:
        """How many entries."""
        return int(self.cells.shape[1])

    @cached_property
    def n_added(self) -> int:
        """How many rows of δ."""
        return sum(t.n_rows for t in self.terms)

    @cached_property
    def starts(self) -> list[int]:
        """The first entry of each term."""
        return [0, *np.cumsum([len(u) for u in self.used]).tolist()][:-1]

    @cached_property
    def row_ridges(self) -> tuple[Floats, Bools]:
        """Of each row of δ: the pull on itself, and whether it is of a pair."""
        count = np.array([t.n_rows for t in self.terms], dtype=np.int64)
        pairs = np.array([t.pair for t in self.terms], dtype=bool)
        return np.concatenate([np.zeros(0), *(t.ridge for t in self.terms)]), np.repeat(pairs, count)

    @cached_property
    def line(self) -> Floats:
        """Where each row of δ lies on the line of its column; 0 if there is none."""
        each = [np.zeros(t.n_rows) if t.line is None else t.line for t in self.terms]
        return np.concatenate([np.zeros(0), *each])

    @cached_property
    def stiff(self) -> Floats:
        """Of each two neighbours: how strongly they are held together beside those of other terms."""
        return np.concatenate([np.zeros(0), *(t.stiff for t in self.terms)])

    @cached_property
    def edges(self) -> tuple[Small, Small, Bools]:
        """Neighbouring rows of δ of all terms, and whether they are of a pair."""
        first = np.cumsum([0, *(t.n_rows for t in self.terms)])
        none = np.zeros(0, dtype=np.int64)
        a, b = (
            np.concatenate([none, *(t.edges[i] + f for t, f in zip(self.terms, first, strict=False))]).astype(np.int32)
            for i in (0, 1)
        )
        count = np.array([len(t.edges[0]) for t in self.terms], dtype=np.int64)
        return a, b, np.repeat(np.array([t.pair for t in self.terms], dtype=bool), count)

    @cached_property
    def neighbours(self) -> Ties:
        """The same ties, by row of δ."""
        return Ties.of(*self.edges[:2], self.n_added)


def _deep(cells: Ints | Small, levels: int, none: int) -> Small:
    """With so many levels; those that are not there add nothing."""
    more = np.full((levels - len(cells), cells.shape[1]), none)
    return np.concatenate([cells, more]).astype(np.int32)


class ShortTables(NamedTuple):
    """Where the logs of all readers belong: Python takes longer over a reader than over a short table."""

    entries: Ints  # of each row of logs
    readers: Ints
    nth: Sequence[tuple[Ints | slice, Ints, Floats]]  # the same, and the logs, of all first readers, all second, …

    @classmethod
    def of(cls, spans: Ints, logs: Floats) -> ShortTables:
        """Of spans: entries from, to; first reader, how many; first row of logs."""
        none, nth = np.zeros(0, dtype=np.int64), []
        rows: list[tuple[Ints, Ints]] = [(none, none)]
        for start, stop, first, count, _ in spans.tolist():
            rows += [(np.arange(start, stop), np.full(stop - start, first + r)) for r in range(count)]
        entries, readers = (np.concatenate(each) for each in zip(*rows, strict=True))
        place = readers - np.repeat(spans[:, 2], (spans[:, 1] - spans[:, 0]) * spans[:, 3])
        for r in range(int(place.max(initial=-1)) + 1):
            own = np.flatnonzero(place == r)
            at = entries[own]
            together = len(at) and int(at[-1] - at[0]) + 1 == len(at)  # which NumPy need not look up
            nth.append((slice(int(at[0]), int(at[-1]) + 1) if together else at, readers[own, None], logs[own]))
        return cls(entries, readers, nth)
