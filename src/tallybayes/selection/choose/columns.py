"""Columns as cells: which cell of its column each row falls into, and what the counts of any folds say of every cell.

A category has a cell for each value; what a value says is drawn to what is known without it (`BackOff`), as strongly as
rows that are left out, each by itself, find best. The line of a number is cut into at most 256 cells, at quantiles of
the rows and at quantiles of the distinct values, so that the tails have cells too. All that choosing does is then
arithmetic on small tables, cell × class: counting by fold is one pass, and what a reader (a family) says of a cell when
some folds are left out follows from the counts by subtraction, for all folds at once:

    n(cell, class) = Σ_folds n − n_fold − n_split

`Coded.tables` are the fast twins of the families' own estimates; they agree cell by cell with `belief.parts`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from ...base.arrays import Bools, Floats, Ints, short_between
from ...data.blocks import Codes, Numbers
from ...data.schema import Column
from ...families.bins import equally_filled
from ...families.smoothing import BackOff, Laplace
from .number_tables import entries_of, tables_of
from .values import along_the_line, back_off, differ, ends

Small = NDArray[np.int32]
CELLS = 256  # of a number, at most
_FEWEST_CELLS = 16
_ENTRIES = 1 << 19  # columns × cells × classes: with more of them cells are fewer
READ_BY_BINS = (10, 25)


def cells_for(columns: int, classes: int) -> int:
    """Into how many cells the numbers of a table are cut at most."""
    return int(np.clip(_ENTRIES // max(4 * columns * classes, 1), _FEWEST_CELLS, CELLS))


class Coded(Protocol):
    """A column whose rows are told apart by cells."""

    @property
    def name(self) -> str:
        """Of the column."""
        ...

    @property
    def codes(self) -> Small:
        """The cell of each row; `size` where there is no value."""
        ...

    @property
    def size(self) -> int:
        """How many cells."""
        ...

    @property
    def ordered(self) -> bool:
        """Whether the cells follow each other."""
        ...

    @property
    def alike(self) -> bool:
        """Whether neighbouring cells are, so that their corrections go together."""
        ...

    @property
    def places(self) -> Floats | None:
        """Where the cells of a number lie, in deviations from its mean."""
        ...

    @property
    def slots(self) -> tuple[str, ...]:
        """What the cells of a category are called."""
        ...

    @property
    def cuts(self) -> Floats:
        """Where the second cell of a number begins, the third, …"""
        ...

    def tables(self, training: Bools) -> Floats:
        """readers × training sets × (cells + 1) × classes: log P(cell given class), the last cell says nothing.

        `training` is training sets × folds: which folds each set has counted.
        """
        ...


@dataclass(frozen=True, eq=False)
class DealtRows:
    """The rows that choosing looks at, in their order: which class and fold, and how heavy."""

    labels: Ints
    folds: Ints
    weights: Floats
    n_classes: int
    n_folds: int
    units: Ints | None = None  # rows with one number were held out together, and err together
    copied: bool = False  # and are one row

    def counts(self, codes: Ints | Small, size: int) -> Floats:
        """Weight by cell, class and fold."""
        flat = (codes.astype(np.int64) * self.n_classes + self.labels) * self.n_folds + self.folds
        shape = (size + 1, self.n_classes, self.n_folds)
        found: Floats = np.bincount(flat, self.weights, int(np.prod(shape))).astype(np.float64)
        return found.reshape(shape)[:size]

    @cached_property
    def class_counts(self) -> Floats:
        """Weight by class and fold."""
        return np.asarray(self.counts(np.zeros(len(self.labels), dtype=np.int64), 1)[0])

    def log_prior(self, training: Bools) -> Floats:
        """log P(class) by the rows of each training set; a class that it has not seen is worth half a row."""
        n = training.astype(float) @ self.class_counts.T
        return np.asarray(np.log(np.maximum(n, 0.5)) - np.log(np.maximum(n.sum(axis=1, keepdims=True), 0.5)))


def _of_folds(training: Bools, counts: Floats) -> Floats:
    """Counts of each training set: sets × (the axes of the counts but the last, which are folds)."""
    return np.asarray(np.moveaxis(counts @ training.T.astype(float), -1, 0))


def _silent(tables: Floats) -> Floats:
    """With one more cell, which says nothing."""
    return np.concatenate([tables, np.zeros((*tables.shape[:-2], 1, tables.shape[-1]))], axis=-2)


@dataclass(frozen=True, eq=False)
class Category:
    """A column of categories: a cell for each value."""

    name: str
    codes: Small
    slots: tuple[str, ...]
    given: Laplace | BackOff | None  # a smoothing that somebody chose
    known: Bools  # values that the schema names, counted or not
    rows: DealtRows

    ordered = alike = False
    places = None
    cuts = np.zeros(0)

    @property
    def size(self) -> int:
        """How many values."""
        return len(self.slots)

    @classmethod
    def of(cls, column: Column, block: Codes, rows: DealtRows, given: Laplace | BackOff | None) -> Category:
        """The column's values in the order of their texts."""
        used = np.unique(block.codes[block.codes >= 0])
        texts = [block.slots[i] for i in used.tolist()]
        order = np.argsort(np.array(texts, dtype=object), kind="stable") if texts else np.zeros(0, dtype=np.int64)
        place = np.full(len(block.slots) + 1, len(used), dtype=np.int32)
        place[used[order]] = np.arange(len(used))
        slots = tuple(texts[i] for i in order.tolist())
        known = np.isin(np.array(slots, dtype=object), list(column.values or ())) if slots else np.zeros(0, dtype=bool)
        return cls(column.name, place[block.codes], slots, given, known, rows)

    @cached_property
    def counts(self) -> Floats:
        """Cell × class × fold."""
        return self.rows.counts(self.codes, self.size)

    def smoothing(self, counted: Bools | None = None) -> Laplace | BackOff:
        """By the rows of some folds, or of all."""
        n = self.counts.sum(axis=2) if counted is None else self.counts @ counted.astype(float)
        return self.given or BackOff(back_off(n))

    def tables(self, training: Bools) -> Floats:
        """log (n + a) / (N + a·K), 0 for a value that the training rows have not seen."""
        return self.tables_of([training])

    def tables_of(self, each: Sequence[Bools]) -> Floats:
        """The same of some collections of training sets, one after the other, each with a smoothing of its own."""
        n = _of_folds(np.concatenate(each), self.counts)
        seen = (n.sum(axis=2) > 0) | self.known
        a: float | Floats
        if isinstance(self.given, Laplace):
            a = self.given.alpha
        else:
            rows = np.repeat([self._back_off(training) for training in each], [len(t) for t in each])
            a = (rows[:, None] * BackOff(1.0).amounts(np.moveaxis(n, 1, 0))[0])[:, None]
        of = n.sum(axis=1, keepdims=True) + a * np.maximum(seen.sum(axis=1), 1)[:, None, None]
        logs = np.where(seen[:, :, None], np.log(n + a) - np.log(of), 0.0)
        return _silent(logs)[None]

    def _back_off(self, training: Bools) -> float:
        often = training.sum(axis=0)  # the folds of a split that judges are counted for few others
        smoothing = self.smoothing(often == often.max(initial=0))
        assert isinstance(smoothing, BackOff)
        return smoothing.rows


@dataclass(frozen=True, eq=False)
class Number:
    """A column of numbers: a cell for each value, or for each of some stretches where there are many."""

    name: str
    codes: Small
    cuts: Floats  # where the second cell begins, the third, …
    places: Floats  # a value of each cell, in deviations from the column's mean
    z: Floats  # the values of all rows, likewise; 0 where there is none
    rows: DealtRows

    ordered = True
    slots = ()

    @property
    def size(self) -> int:
        """How many cells."""
        return len(self.cuts) + 1

    @classmethod
    def of(cls, column: Column, block: Numbers, rows: DealtRows, most: int = CELLS) -> Number:
        """The column cut at its values, or at quantiles into about so many cells at most."""
        there = block.present()
        values = block.values[there]
        distinct, times = np.unique(values, return_counts=True)
        last = ends(distinct, times, column.cells, most)
        cuts = short_between(distinct[last], distinct[last + 1] if len(last) else distinct[:0])
        codes = np.full(block.rows, len(cuts) + 1, dtype=np.int32)
        codes[there] = np.searchsorted(cuts, values, side="right")
        unit = max(float(np.abs(distinct).max(initial=0.0)), np.finfo(float).tiny)
        mean = unit * float(np.average(distinct / unit, weights=times)) if len(distinct) else 0.0
        with np.errstate(over="ignore"):
            away = np.clip(distinct - mean, -1e300, 1e300)
        far = max(float(np.abs(away).max(initial=0.0)), np.finfo(float).tiny)
        sd = far * float(np.sqrt(np.average((away / far) ** 2, weights=times))) if len(distinct) else 0.0
        scale = sd if sd > 0 else 1.0
        first = np.concatenate([[0], last + 1]) if len(distinct) else np.zeros(1, dtype=np.int64)
        stop = np.concatenate([last + 1, [len(distinct)]])
        below = np.concatenate([[0], np.cumsum(times)])
        middle = np.searchsorted(below, (below[first] + below[stop]) / 2, side="right") - 1  # the median row's value
        places = away[np.clip(middle, 0, max(len(distinct) - 1, 0))] / scale if len(distinct) else np.zeros(1)
        z = np.zeros(block.rows)
        with np.errstate(over="ignore"):
            z[there] = np.clip(values - mean, -1e300, 1e300) / scale
        return cls(column.name, codes, cuts, places, z, rows)

    @cached_property
    def counts(self) -> Floats:
        """Cell × class × fold."""
        return self.rows.counts(self.codes, self.size)

    @cached_property
    def alike(self) -> bool:
        """Not where values that stand together differ beyond chance: they are names, then, of schools or of wards."""
        weights = self.rows.weights
        usual = float(weights @ weights) / max(float(weights.sum()), 1e-300) or 1.0  # of a row: counts are of rows then
        rows = np.bincount(self.codes, minlength=self.size + 1)[: self.size]
        return not differ(self.counts / usual, along_the_line(rows))

    @cached_property
    def sums(self) -> Floats:
        """n, Σz and Σz² by class and fold."""
        there = self.codes < self.size
        rows, z = self.rows, self.z[there]
        at, w = (rows.labels * rows.n_folds + rows.folds)[there], rows.weights[there]
        shape = (rows.n_classes, rows.n_folds)
        each = (np.bincount(at, p, shape[0] * shape[1]) for p in (w, w * z, w * (z * z)))
        return np.array([one.reshape(shape) for one in each], dtype=np.float64)

    @cached_property
    def bins(self) -> list[tuple[Ints, Floats]]:
        """Of each number of bins: the bin of each cell, and weight by bin, class and fold."""
        everyone, found = self.counts.sum(axis=(1, 2)), []
        for bins in READ_BY_BINS:
            last = equally_filled(everyone, bins)
            group = np.searchsorted(last, np.arange(self.size), side="left")
            first = np.concatenate([np.zeros(1, dtype=np.int64), last + 1])
            found.append((group, np.add.reduceat(self.counts, first[: int(group[-1]) + 1], axis=0)))
        return found

    def tables(self, training: Bools) -> Floats:
        """The bell curves with one variance and with averaged parameters, and equally filled bins: 10 and 25."""
        return tables_of([self], training)[0]


@dataclass(frozen=True, eq=False)
class AskedColumn:
    """Any other column that cells can tell apart: a family that somebody chose is asked what it says of each cell."""

    name: str
    codes: Small
    size: int
    ordered: bool
    alike: bool
    places: Floats | None
    cuts: Floats
    slots: tuple[str, ...]
    ask: Callable[[Bools], Floats]  # folds that are counted → (cells, classes)

    def tables(self, training: Bools) -> Floats:
        """What the family says when it has counted some of the folds."""
        said = {key: self.ask(np.frombuffer(key, dtype=bool)) for key in {t.tobytes() for t in training}}
        return _silent(np.stack([said[t.tobytes()] for t in training]))[None]


def all_entries(columns: Sequence[Coded], used: Sequence[Ints], each: Sequence[Bools]) -> list[Floats]:
    """Readers × entries × classes of each column: its tables where they are used, which is fold × (cells + 1).

    For some collections of training sets, those of the folds in each, one after the other. Numbers are looked at many
    at a time, which is faster.
    """
    every, n_folds = np.concatenate(each), len(each[0])
    numbers = [(c, u) for c, u in zip(columns, used, strict=True) if isinstance(c, Number)]
    told = iter(entries_of([c for c, _ in numbers], [u for _, u in numbers], every, n_folds))
    out = []
    for c, own in zip(columns, used, strict=True):
        if isinstance(c, Number):
            out.append(next(told))
            continue
        tables = c.tables_of(each) if isinstance(c, Category) else c.tables(every)
        flat = tables.reshape(len(tables), len(each), -1, tables.shape[-1])
        out.append(flat.take(own, axis=2).reshape(len(tables), -1, tables.shape[-1]))
    return out
