"""Sums of sparse matrices by class: whole small amounts in a full table, or where it would stay empty a sparse product.

Cells of 32 bits hold an amount and a number of rows side by side while they are added to: half as much memory as a
table of 64 bits has, and memory is what counting waits for. A class whose cells could overflow is carried into the
table of 64 bits first.
"""

from __future__ import annotations

from functools import partial
from itertools import pairwise
from threading import Lock
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np

from ..base.arrays import Bools, Floats, Ints
from ..base.lazy import scipy
from ..base.threads import parallel, threads
from .kernels import gate

_ENTRIES_PER_THREAD = 1 << 18  # a thread costs about as much as so many
_SPARSE = 4  # places of a table per entry
_CACHED = 3 << 19  # places of a table, 6 MB: adding in any order is then faster than reading rows out of order
_LARGE_PAGES = 1 << 20  # cells, 4 MB: from here on NumPy asks for large pages, and fewer faults
_CELL_BITS = 32  # of a small cell
_ROW_BITS = 16  # of those at most, for the number of rows; the others are for the amounts
_WORTH = 2  # slots of a class that are carried in the time in which one entry is added
_CELLS = (np.uint32, np.uint64)  # the second are never carried: their halves hold any sum


class BagSums(NamedTuple):
    """What the rows of a matrix add to each class."""

    table: Ints  # classes × slots: Σ of the amounts in the upper 32 bits, how many in the lower
    totals: Ints  # classes × 2: the same summed over the slots, apart


class _NotPlain(Exception):
    """An amount is not whole and small, or a slot is twice in a row."""


class _Crowded(Exception):
    """Amounts are so large that cells are carried more often than that repays itself."""


@gate.guarded
def is_plain(matrix: Any) -> bool:
    """Whether all amounts of a sparse matrix are whole and small and no index is twice in a row.

    False also where there are too few entries to look: then nothing is known.
    """
    kernels = _kernels(matrix)
    if kernels is None:
        return False
    none, cells, left = np.zeros(0, np.int64), np.zeros((0, 0), np.uint32), np.zeros((0, 3), np.int64)
    room = _room(kernels, matrix)

    def look(first: int, last: int) -> bool:
        rows = np.arange(first, last)
        given = (matrix.indptr, matrix.indices, matrix.data, rows, 0, none, 0, matrix.shape[1], 31, 0, cells, left)
        return bool(kernels.sum_entries(*given, np.empty(room, np.uint32)) == len(rows))

    return all(parallel([partial(look, a, b) for a, b in row_shares(matrix)]))


def _room(kernels: ModuleType, matrix: Any) -> int:
    """How many entries a strip of rows may have, or a single row has."""
    longest = int(np.diff(matrix.indptr).max(initial=0))
    return max(int(kernels.STRIP), min(longest, int(matrix.nnz)))


def _kernels(matrix: Any) -> ModuleType | None:
    kernels = gate.kernels("entries", matrix.nnz)
    return kernels if matrix.data.dtype == np.float64 and matrix.indptr.dtype == matrix.indices.dtype else None


def few(entries: int, places: int) -> bool:
    """Whether a full table would be so empty that another way is faster than filling and reading it."""
    return _SPARSE * entries < places


def listed(matrix: Any, places: int) -> bool:
    """Whether `sparse_sums` is the faster way to the sums of whole amounts: with kernels always, else for few."""
    return few(matrix.nnz, places) or _kernels(matrix) is not None


def row_shares(matrix: Any) -> list[tuple[int, int]]:
    """The rows of a sparse matrix as ranges with about as many entries, one for each thread that repays itself."""
    count = min(threads(), 1 + matrix.nnz // _ENTRIES_PER_THREAD)
    inner = np.searchsorted(matrix.indptr, [matrix.nnz * i // count for i in range(1, count)]).tolist()
    return list(pairwise([0, *inner, matrix.shape[0]]))


@gate.guarded
def bag_sums(matrix: Any, labels: Ints, n_labels: int) -> BagSums | None:
    """Classes × slots of a sparse matrix, and the sums of each class.

    None where the short way cannot go: few entries, or amounts that are not whole and small (see `is_plain`), which
    is found out on the way.
    """
    kernels = _kernels(matrix)
    if kernels is None or len(labels) == 0 or few(matrix.nnz, n_labels * matrix.shape[1]):
        return None
    for cell in _CELLS:
        try:
            return _Adding(kernels, matrix, labels, n_labels, cell).sums()
        except _Crowded:
            continue
        except _NotPlain:
            break
    return None


class _Adding:
    """The sums of a matrix while they are made: threads have cells of their own and carry them into one table."""

    def __init__(self, kernels: ModuleType, matrix: Any, labels: Ints, n_labels: int, cell: type) -> None:
        self.kernels, self.matrix, self.labels, self.cell = kernels, matrix, labels, cell
        self.width = int(matrix.shape[1])
        self.table, self.totals = np.zeros((n_labels, self.width), np.int64), np.zeros((n_labels, 2), np.int64)
        self.most = ((2**31 - 1) // len(labels)).bit_length() - 1  # amounts up to 2^most: no sum reaches 2^31
        self.shift, self.room = 32, (2**31, 2**62, 0)
        if cell is np.uint32:
            rows = int(np.bincount(labels).max())
            self.shift = min(rows.bit_length(), _ROW_BITS)
            self.room = ((1 << self.shift) - 1, (1 << (_CELL_BITS - self.shift)) - 1, 0)
        self.lock, self.strip = Lock(), _room(kernels, matrix)

    def sums(self) -> BagSums:
        """Row by row while the cells of a thread stay in a large cache, else class by class."""
        count = min(threads(), 1 + self.matrix.nnz // _ENTRIES_PER_THREAD, len(self.labels))
        if self.table.size <= _CACHED:
            size = count * self.table.size
            cells = np.zeros(max(size, _LARGE_PAGES), dtype=self.cell)[:size].reshape(count, *self.table.shape)
            shares = np.array_split(np.arange(len(self.labels)), count)
            parallel([partial(self.add, rows, 0, own) for rows, own in zip(shares, cells, strict=True)])
            self.carry(cells, slice(None))
        else:
            shares = np.array_split(np.argsort(self.labels, kind="stable"), count)
            parallel([partial(self.add_by_class, rows) for rows in shares])
        return BagSums(self.table, self.totals)

    def add(self, rows: Ints, least: int, cells: Ints) -> None:
        """Add some rows to cells of the classes from `least` on."""
        given = (self.matrix.indptr, self.matrix.indices, self.matrix.data, rows)
        left, done = np.tile(np.array(self.room), (len(cells), 1)), 0
        changes: Any = np.empty(self.strip, self.cell)
        while done < len(rows):
            done = self.kernels.sum_entries(
                *given, done, self.labels, least, self.width, self.most, self.shift, cells, left, changes
            )
            if done < 0:
                raise _NotPlain
            if done < len(rows):
                y = int(self.labels[rows[done]]) - least
                if _WORTH * left[y, 2] < self.width:
                    raise _Crowded
                self.carry(cells[None, y : y + 1], slice(least + y, least + y + 1))
                cells[y], left[y] = 0, self.room

    def add_by_class(self, rows: Ints) -> None:
        """Add rows that stand class by class, with cells for one class at a time."""
        for some in np.split(rows, np.flatnonzero(np.diff(self.labels[rows])) + 1):
            y = int(self.labels[some[0]])
            cells: Any = np.zeros((1, self.width), dtype=self.cell)
            self.add(some, y, cells)
            self.carry(cells[None], slice(y, y + 1))

    def carry(self, cells: Any, classes: slice) -> None:
        """Add cells, threads × classes × slots, to the table."""
        table, shares = self.table[classes], slot_shares(self.table[classes])
        totals = [np.zeros((len(table), 2), np.int64) for _ in shares]
        jobs = [partial(self.kernels.widen, cells, self.shift, s.start, s.stop, table) for s in shares]
        with self.lock:
            parallel([partial(job, own) for job, own in zip(jobs, totals, strict=True)])
            self.totals[classes] += np.sum(totals, axis=0)


def slot_shares(table: Ints) -> list[slice]:
    """The slots of such a table as ranges, one for each thread that repays itself."""
    count = min(threads(), 1 + table.size // _ENTRIES_PER_THREAD)
    return [slice(a, b) for a, b in pairwise(table.shape[1] * i // count for i in range(count + 1))]


@gate.guarded
def bag_table(
    sums: Ints, documents: bool, at: Ints, label: Ints, out: Floats, more: float = 0.0, total: Floats | None = None
) -> Floats:
    """(n + more) / total for one amount n that `bag_sums` has summed: slot i in row at[i], class i in label[i]."""
    by, shift = np.ones(len(sums)) if total is None else total, 0 if documents else 32
    kernels = gate.kernels("entries", sums.size)
    if kernels is None:
        with np.errstate(divide="ignore", invalid="ignore"):
            out[np.ix_(at, label)] = ((((sums >> shift) & 0xFFFFFFFF) + more) / by[:, None]).T
        return out
    spread = partial(kernels.spread, sums, shift)
    parallel([partial(spread, s.start, s.stop, at, label, more, by, out) for s in slot_shares(sums)])
    return out


class SparseSums(NamedTuple):
    """What the rows of a matrix add to each class, place by place, sorted by slot and class."""

    used: Bools  # which slots have any entry
    slot: Ints  # numbers among those
    label: Ints
    both: Ints  # Σ of the amounts, and how many


@gate.guarded
def sparse_sums(matrix: Any, labels: Ints, n_labels: int) -> SparseSums:
    """The sums of any whole amounts where few places have one."""
    kernels = _kernels(matrix)
    order = np.argsort(labels, kind="stable")
    if kernels is None:
        return _by_product(matrix, labels, n_labels, order)
    ends, given = np.zeros(matrix.shape[1] + 1, np.int64), (matrix.indptr, matrix.indices, matrix.data, order, labels)
    kernels.places(*given, np.full(matrix.shape[1], -1), ends)
    label, both = np.empty(ends[-1], np.int64), np.empty((ends[-1], 2), np.int64)
    kernels.by_slot(*given, ends, ends.copy(), label, both)
    return SparseSums(*_numbered(np.diff(ends)), label, both)


def _by_product(matrix: Any, labels: Ints, n_labels: int, order: Ints) -> SparseSums:
    """The same as products of sparse matrices, (classes × rows) · (rows × slots)."""
    edges = np.concatenate(([0], np.cumsum(np.bincount(labels, minlength=n_labels))))
    groups = scipy.sparse.csr_array((np.ones_like(order), order, edges), shape=(n_labels, len(order)))
    found = []
    for amounts in (matrix.data.astype(np.int64), np.ones(matrix.nnz, dtype=np.int64)):
        rows = scipy.sparse.csr_array((amounts, matrix.indices, matrix.indptr), shape=matrix.shape)
        found.append((groups @ rows).tocsc())
    both = np.stack([f.data for f in found], axis=1)
    return SparseSums(*_numbered(np.diff(found[0].indptr)), found[0].indices.astype(np.int64), both)


def _numbered(each: Ints) -> tuple[Bools, Ints]:
    """Which slots have any of the entries, and the number of each entry's slot among those."""
    used = each > 0
    return used, np.repeat(np.cumsum(used) - 1, each)
