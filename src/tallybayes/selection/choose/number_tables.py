"""What the counts of any folds say of every cell of many columns of numbers, all columns of about one size at a time.

Python's own time for a column is more than that of its arithmetic: a table may have thousands of columns.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from ...base.arrays import Bools, Floats, Ints
from ...families.blend import MOST
from ...families.gaussian import StudentBelief, log_normal, student
from ...families.moments import Moments

FLOOR = 1e-9  # of the column's deviation: as `Floor` has it
_AT_ONCE = 1 << 20  # numbers: cells × training sets × classes


class NumberCells(Protocol):
    """A column of numbers as cells."""

    @property
    def size(self) -> int:
        """How many cells."""
        ...

    @property
    def places(self) -> Floats:
        """A value of each cell, in deviations from the column's mean."""
        ...

    @property
    def sums(self) -> Floats:
        """n, Σz and Σz² by class and fold."""
        ...

    @property
    def bins(self) -> Sequence[tuple[Ints, Floats]]:
        """Of each number of bins: the bin of each cell, and weight by bin, class and fold."""
        ...


def tables_of(numbers: Sequence[NumberCells], training: Bools) -> list[Floats]:
    """Readers × training sets × (cells + 1) × classes of each column: two bell curves, and equally filled bins.

    The bell curves are one with one variance and one with averaged parameters; the last cell says nothing.
    """
    out: list[Floats] = [np.zeros(0)] * len(numbers)
    for some in _alike(numbers, training):
        each = [numbers[i] for i in some]
        bells, binned = _bells(each, training), [_binned(each, k, training) for k in range(len(each[0].bins))]
        first = 0
        for j, (i, number) in enumerate(zip(some, each, strict=True)):
            size = number.size
            table = np.zeros((len(bells) + len(binned), len(training), size + 1, bells[0].shape[-1]))
            for r, said in enumerate(bells):
                table[r, :, :size] = said[:, j, :size]
            for r, by_cell in enumerate(binned, len(bells)):
                table[r, :, :size] = by_cell[:, first : first + size]
            out[i] = table
            first += size
    return out


def _alike(numbers: Sequence[NumberCells], training: Bools) -> Iterator[list[int]]:
    """Which columns are looked at together: of about one size, and not too many."""
    kinds: dict[int, list[int]] = {}
    for i, number in enumerate(numbers):
        kinds.setdefault(number.size.bit_length(), []).append(i)
    for of_kind in kinds.values():
        largest = max(numbers[i].size for i in of_kind) * numbers[of_kind[0]].sums.shape[1] * len(training)
        step = max(1, _AT_ONCE // largest)
        for start in range(0, len(of_kind), step):
            yield of_kind[start : start + step]


def moments_of(numbers: Sequence[NumberCells], training: Bools) -> Moments:
    """Of each column and training set (as the positions, columns first) and class, and of all classes."""
    stacked = np.stack([n.sums for n in numbers], axis=1)  # 3 × columns × classes × folds
    found = np.ascontiguousarray((stacked @ training.T.astype(float)).transpose(0, 2, 1, 3))
    n, one, two = (each.reshape(len(each), -1).T for each in found)
    all_n = np.maximum(n.sum(axis=1), 1e-300)
    all_mean = one.sum(axis=1) / all_n
    all_sd = np.sqrt(np.maximum(two.sum(axis=1) / all_n - all_mean**2, 0.0))
    some = np.maximum(n, 1e-300)
    mean = np.where(n > 0, one / some, all_mean[:, None])
    sd = np.where(n > 0, np.sqrt(np.maximum(two / some - mean**2, 0.0)), all_sd[:, None])
    return Moments(np.arange(len(n)), n, mean, sd, all_mean, all_sd)


def entries_of(numbers: Sequence[NumberCells], used: Sequence[Ints], training: Bools, n_folds: int) -> list[Floats]:
    """Readers × entries × classes of each column: what its table says where rows are, which is little of a small table.

    `used` are fold × (cells + 1) of each column. The training sets are those of the folds, once or several times over,
    and so are the entries.
    """
    out: list[Floats] = [np.zeros(0)] * len(numbers)
    times = len(training) // n_folds
    for some in _alike(numbers, training):
        each, own = [numbers[i] for i in some], [used[i] for i in some]
        fold, cell = zip(*(np.divmod(u, n.size + 1) for n, u in zip(each, own, strict=True)), strict=True)
        sets = [np.concatenate([f + k * n_folds for k in range(times)]) for f in fold]
        cells = [np.tile(c, times) for c in cell]
        silent = np.concatenate([c == n.size for n, c in zip(each, cells, strict=True)])
        places = np.concatenate([np.append(n.places, 0.0)[c] for n, c in zip(each, cells, strict=True)])
        curves, position = _curves(each, training), np.concatenate([s + j * len(training) for j, s in enumerate(sets)])
        bells = curves.at(places[:, None], position)
        said = np.empty((len(bells) + len(each[0].bins), len(places), bells[0].shape[-1]))
        for r, bell in enumerate(bells):
            said[r] = bounded(bell)
        for r in range(len(each[0].bins)):
            logs, first = _bin_logs(each, r, training)
            bins = zip(each, cells, first.tolist(), strict=True)
            which = np.concatenate([np.append(n.bins[r][0], 0)[c] + f for n, c, f in bins])
            said[len(bells) + r] = logs[np.concatenate(sets), which]
        said[:, silent] = 0.0
        ends = np.cumsum([len(s) for s in sets])[:-1]
        for i, part in zip(some, np.split(said, ends, axis=1), strict=True):
            out[i] = part
    return out


class _Curves(NamedTuple):
    """The bell curves of some columns and training sets (the positions, columns first): one variance, and averaged."""

    mean: Floats
    shared: Floats
    averaged: StudentBelief
    varies: Bools

    def at(self, x: Floats, position: slice | Ints) -> list[Floats]:
        """log density, 0 where a column is constant."""
        each = log_normal(x, self.mean[position], self.shared[position]), self.averaged.log_density(x, position)
        return [np.where(self.varies[position, None], one, 0.0) for one in each]


def _curves(numbers: Sequence[NumberCells], training: Bools) -> _Curves:
    m = moments_of(numbers, training)
    total = np.maximum(m.n.sum(axis=1, keepdims=True), 1e-300)
    shared = np.sqrt((m.n * m.sd**2).sum(axis=1, keepdims=True) / total)
    shared = np.maximum(shared, np.maximum(FLOOR * m.all_sd[:, None], 1e-300))
    return _Curves(m.mean, shared, student(m, vector=False), m.varies)


def _bells(numbers: Sequence[NumberCells], training: Bools) -> list[Floats]:
    """Training sets × columns × cells × classes of each curve; beyond the cells of a column there is nothing to see."""
    places = np.zeros((max(n.size for n in numbers), len(numbers)))
    for j, number in enumerate(numbers):
        places[: number.size, j] = number.places
    x = np.repeat(places, len(training), axis=1)[:, :, None]
    bells = [bounded(b) for b in _curves(numbers, training).at(x, slice(None))]
    shape = (len(places), len(numbers), len(training), -1)
    return [b.reshape(shape).transpose(2, 1, 0, 3) for b in bells]


def _binned(numbers: Sequence[NumberCells], which: int, training: Bools) -> Floats:
    """Training sets × cells of all columns × classes: log (n + 1) / (N + k) of the cell's bin."""
    logs, first = _bin_logs(numbers, which, training)
    return logs[:, np.concatenate([n.bins[which][0] + f for n, f in zip(numbers, first.tolist(), strict=True)])]


def _bin_logs(numbers: Sequence[NumberCells], which: int, training: Bools) -> tuple[Floats, Ints]:
    """The same by bin, and the first bin of each column."""
    counts = [n.bins[which][1] for n in numbers]
    k = np.array([len(c) for c in counts])
    first = np.cumsum(k) - k
    n = np.concatenate(counts) @ training.T.astype(float)  # bins of all columns × classes × sets
    total = np.add.reduceat(n, first, axis=0) + k[:, None, None]
    logs = bounded((np.log(n + 1.0) - np.repeat(np.log(total), k, axis=0)).transpose(2, 0, 1))
    return logs, first


def bounded(logs: Floats) -> Floats:
    """Against the best class of each cell, none below −MOST, as a blend has it."""
    out: Floats = np.maximum(logs - logs.max(axis=-1, keepdims=True), -MOST)
    return out
