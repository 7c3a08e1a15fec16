"""Exact sums by class: the readable way in NumPy, or its Numba twin when a batch is large enough to repay it."""

from __future__ import annotations

import importlib
import logging
import math
import os
import sys
from collections.abc import Sequence
from functools import cache, partial
from itertools import pairwise, repeat
from types import ModuleType
from typing import Any

import numpy as np

from .cells import REACH, Cells, codes_at
from .kernelcache import refresh
from .later import scipy
from .numerics import Floats, Ints, Limbs, canonical, exact_sums, has_infinity
from .workers import parallel, threads

log = logging.getLogger("tallybayes")

# Importing Numba and loading a cached kernel costs about as much as NumPy needs for this many cells
BREAK_EVEN = 2_000_000
_ACCUMULATORS = 20_000  # groups at a time: each takes 204 limbs, so this is 32 MB
_ENTRIES_PER_THREAD = 1 << 18  # of a sparse matrix: a thread costs about as much as so many
_SPARSE = 4  # places of a table per entry
_CACHED = 1 << 21  # places of a table, 16 MB: adding in any order is then faster than reading rows out of order
_work_done = 0


def _repaid(cells: int) -> bool:
    """Whether the cells asked for so far would have repaid the import of Numba; it is then imported.

    TALLYBAYES_KERNELS=off keeps it away for good, =on takes it at once; without Numba installed it is never taken.
    """
    global _work_done
    wish = os.environ.get("TALLYBAYES_KERNELS", "auto")
    _work_done += cells
    if wish == "off" or (wish == "auto" and _work_done < BREAK_EVEN):
        return False
    try:
        _numba()
    except ImportError:
        return False
    return True


def kernels(cells: int) -> ModuleType | None:
    """The Numba module that adds numbers up, once that repays its import; None before that."""
    if not _repaid(cells):
        return None
    from . import kernels as module

    return module


@cache
def _numba() -> None:
    """Numba, loaded once. Its first run on a machine compiles, and says so; later ones find the result cached."""
    event: Any = importlib.import_module("numba.core.event")

    class Compiling(event.Listener):  # type: ignore[misc]
        said = False

        def on_start(self, e: Any) -> None:
            ours = getattr(e.data.get("dispatcher"), "__module__", "").startswith("tallybayes")
            if ours and not self.said:
                self.said = True
                message = "tallybayes: compiling for this machine, once; it takes a few seconds"
                print(message, file=sys.stderr) if sys.stderr.isatty() else log.info(message)

        def on_end(self, e: Any) -> None:
            """Nothing to say."""

    event.register("numba:compile", Compiling())
    refresh()


def sums(groups: Ints, n_groups: int, factors: Sequence[Floats]) -> Limbs:
    """Σ of the product of the factors by group, exactly."""
    return exact_sums(groups, n_groups, factors)


def code_sums(codes: Ints, n_codes: int, labels: Ints, n_labels: int, weights: Floats | None) -> Limbs:
    """How many rows (or their weight) have each code and class: group code · n_labels + class; −1 adds nothing."""
    if weights is None and (fast := table_kernels(len(codes))) is not None:
        table = np.zeros((n_codes, n_labels), dtype=np.int64)
        fast.count(np.ascontiguousarray(codes), labels, table)
        return Limbs(0, table.reshape(-1, 1))
    some = codes >= 0
    key = codes[some].astype(np.int64) * n_labels + labels[some]
    return exact_sums(key, n_codes * n_labels, [] if weights is None else [weights[some]])


def cell_sums(values: Floats, labels: Ints, n_labels: int, cells: Cells) -> tuple[Ints, Limbs] | None:
    """The codes of the cells that hold any of the values, and how many of each class; NaN is left out.

    None where the short way cannot go: few values, or one out of reach.
    """
    places = 2 * REACH + len(cells.points)
    fast = table_kernels(len(values)) if places * n_labels <= max(len(values), 1 << 14) else None
    if fast is None or abs(cells.exponent) > 1000:  # beyond, one over the width is no float64
        return None
    table = np.zeros((places, n_labels), dtype=np.int64)
    scale = math.ldexp(1.0, -cells.exponent)
    if not fast.count_cells(np.ascontiguousarray(values), labels, cells.centre, scale, cells.point_values, table):
        return None
    used = np.flatnonzero(table.any(axis=1))
    return codes_at(used), Limbs(0, table[used].reshape(-1, 1))


def is_plain(matrix: Any) -> bool:
    """Whether all amounts of a sparse matrix are whole and small and no index is twice in a row.

    False also where there are too few entries to look: then nothing is known.
    """
    fast = _entry_kernels(matrix)
    if fast is None:
        return False
    add = partial(fast.sum_entries, matrix.indptr, matrix.indices, matrix.data)
    none, empty = np.zeros(0, dtype=np.int64), np.zeros((0, 0), dtype=np.int64)
    jobs = [partial(add, np.arange(a, b), none, 0, matrix.shape[1], 2.0**31, empty) for a, b in row_shares(matrix)]
    return all(parallel(jobs))


def _entry_kernels(matrix: Any) -> ModuleType | None:
    fast = table_kernels(matrix.nnz)
    return fast if matrix.data.dtype == np.float64 and matrix.indptr.dtype == matrix.indices.dtype else None


def few(entries: int, places: int) -> bool:
    """Whether a full table would be so empty that another way is faster than filling and reading it."""
    return _SPARSE * entries < places


def row_shares(matrix: Any) -> list[tuple[int, int]]:
    """The rows of a sparse matrix as ranges with about as many entries, one for each thread that repays itself."""
    count = min(threads(), 1 + matrix.nnz // _ENTRIES_PER_THREAD)
    inner = np.searchsorted(matrix.indptr, [matrix.nnz * i // count for i in range(1, count)]).tolist()
    return list(pairwise([0, *inner, matrix.shape[0]]))


def bag_sums(matrix: Any, labels: Ints, n_labels: int) -> Ints | None:
    """Classes × slots of a sparse matrix: Σ of the amounts in the upper 32 bits, how many in the lower.

    None where the short way cannot go: few entries, or amounts that are not whole and small (see `is_plain`), which
    is found out on the way. Row by row while the table of a thread stays in a large cache, else class by class.
    """
    fast, places = _entry_kernels(matrix), n_labels * matrix.shape[1]
    if fast is None or few(matrix.nnz, places):
        return None
    order = np.arange(len(labels)) if places <= _CACHED else np.argsort(labels, kind="stable")
    pieces = np.array_split(order, min(threads(), 1 + matrix.nnz // _ENTRIES_PER_THREAD, len(order)))
    least, most = ([int(end(labels[piece])) for piece in pieces] for end in (np.min, np.max))
    sums = [np.zeros((b + 1 - a, matrix.shape[1]), dtype=np.int64) for a, b in zip(least, most, strict=True)]
    add = partial(fast.sum_entries, matrix.indptr, matrix.indices, matrix.data)
    largest = float((2**31 - 1) // len(labels))  # so that no sum reaches 2^31
    jobs = zip(pieces, repeat(labels), least, repeat(matrix.shape[1]), repeat(largest), sums, strict=False)
    if not all(parallel([partial(add, *job) for job in jobs])):
        return None
    table = sums[0] if len(sums[0]) == n_labels else np.zeros((n_labels, matrix.shape[1]), dtype=np.int64)
    for y, part in zip(least, sums, strict=True):
        if part is not table:
            into = table[y : y + len(part)]
            parallel([partial(np.add, into[:, s], part[:, s], out=into[:, s]) for s in _slot_shares(table)])
    return table


def _slot_shares(table: Ints) -> list[slice]:
    """The slots of such a table as ranges, one for each thread that repays itself."""
    count = min(threads(), 1 + table.size // _ENTRIES_PER_THREAD)
    return [slice(a, b) for a, b in pairwise(table.shape[1] * i // count for i in range(count + 1))]


def bag_table(sums: Ints, documents: bool, at: Ints, label: Ints, shape: tuple[int, int]) -> Floats:
    """One amount of what `bag_sums` has summed: slot i in row at[i], class i in column label[i], zeros elsewhere."""
    from . import tablekernels  # which has made the sums

    out = np.zeros(shape)
    spread = partial(tablekernels.spread, sums, 0 if documents else 32)
    parallel([partial(spread, s.start, s.stop, at, label, out) for s in _slot_shares(sums)])
    return out


def sparse_sums(matrix: Any, labels: Ints, n_labels: int) -> tuple[Ints, Ints, Ints]:
    """The same for any whole amounts where few places have one: (classes × rows) · (rows × slots), in sorted order."""
    order = np.argsort(labels, kind="stable")
    edges = np.concatenate(([0], np.cumsum(np.bincount(labels, minlength=n_labels))))
    groups = scipy.sparse.csr_array((np.ones_like(order), order, edges), shape=(n_labels, len(order)))
    found = []
    for amounts in (matrix.data.astype(np.int64), np.ones(matrix.nnz, dtype=np.int64)):
        rows = scipy.sparse.csr_array((amounts, matrix.indices, matrix.indptr), shape=matrix.shape)
        found.append((groups @ rows).tocsc())
    slot = np.repeat(np.arange(matrix.shape[1]), np.diff(found[0].indptr))
    return slot, found[0].indices.astype(np.int64), np.stack([f.data for f in found], axis=1)


def moments(labels: Ints, n_labels: int, x: Floats, weights: Floats | None) -> tuple[Limbs, Limbs, Limbs]:
    """Σ w, Σ w·x and Σ w·x² by class, exactly; NaN adds nothing."""
    if weights is None and (fast := kernels(len(x))) is not None:
        n, x_sum, xx_sum = fast.moments(labels, n_labels, x[:, None])
        return n, canonical(x_sum), canonical(xx_sum)
    some = ~np.isnan(x)
    if not some.all():
        labels, x, weights = labels[some], x[some], None if weights is None else weights[some]
    w = [] if weights is None else [weights]
    return (
        exact_sums(labels, n_labels, w),
        exact_sums(labels, n_labels, [*w, x]),
        exact_sums(labels, n_labels, [*w, x, x]),
    )


def _stacked(pieces: Sequence[Limbs]) -> Limbs:
    """The groups of several pieces, one after the other."""
    if not pieces:
        return Limbs(0, np.zeros((0, 1), dtype=np.int64))
    lowest = min(p.lowest for p in pieces)
    highest = max(p.lowest + p.array.shape[1] for p in pieces)
    out = np.zeros((sum(len(p.array) for p in pieces), highest - lowest), dtype=np.int64)
    start = 0
    for p in pieces:
        out[start : start + len(p.array), p.lowest - lowest : p.lowest - lowest + p.array.shape[1]] = p.array
        start += len(p.array)
    return Limbs(lowest, out)


def vector_moments(labels: Ints, n_labels: int, x: Floats, weights: Floats | None) -> tuple[Limbs, Limbs, Limbs] | None:
    """The same for each position of a matrix: group position · n_labels + class. None where a value is infinite."""
    width = x.shape[1]
    if weights is None and (fast := kernels(x.size)) is not None:
        step = max(_ACCUMULATORS // n_labels, 1)
        pieces = [fast.moments(labels, n_labels, x[:, i : i + step]) for i in range(0, width, step)]
        if None in pieces:
            return None
        n, x_sum, xx_sum = (_stacked([p[k] for p in pieces]) for k in range(3))
        return n, canonical(x_sum), canonical(xx_sum)
    if has_infinity(x):
        return None
    row, position = np.nonzero(~np.isnan(x))
    groups = position * n_labels + labels[row]
    values = x[row, position]
    w = [] if weights is None else [weights[row]]
    return (
        exact_sums(groups, width * n_labels, w),
        exact_sums(groups, width * n_labels, [*w, values]),
        exact_sums(groups, width * n_labels, [*w, values, values]),
    )


def text_kernels(size: int) -> ModuleType | None:
    """The Numba module that cuts texts, under the same rule; a byte of text is worth about half a cell."""
    if not _repaid(size // 2):
        return None
    from . import wordscan

    return wordscan


def count_kernels(tokens: int) -> ModuleType | None:
    """The Numba module that counts tokens, under the same rule; a token is worth about two cells."""
    if not _repaid(2 * tokens):
        return None
    from . import countkernels

    return countkernels


def table_kernels(cells: int) -> ModuleType | None:
    """The Numba module that counts codes and matrix entries, under the same rule."""
    if not _repaid(cells):
        return None
    from . import tablekernels

    return tablekernels


def score_kernels(cells: int) -> ModuleType | None:
    """The Numba module that scores, under the same rule."""
    if not _repaid(cells):
        return None
    from . import scorekernels

    return scorekernels
