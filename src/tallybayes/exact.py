"""Exact sums by class: the readable way in NumPy, or its Numba twin when a batch is large enough to repay it."""

from __future__ import annotations

import importlib
import logging
import os
import sys
from collections.abc import Sequence
from functools import cache, partial
from itertools import pairwise, repeat
from types import ModuleType
from typing import Any

import numpy as np

from .numerics import Floats, Ints, Limbs, canonical, exact_sums
from .workers import parallel, threads

log = logging.getLogger("tallybayes")

# Importing Numba and loading a cached kernel costs about as much as NumPy needs for this many cells
BREAK_EVEN = 2_000_000
_ACCUMULATORS = 20_000  # groups at a time: each takes 204 limbs, so this is 32 MB
_ENTRIES_PER_THREAD = 1 << 18  # of a sparse matrix: a thread costs about as much as so many
_SPARSE = 4  # places of a table per entry
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


def largest_amount(matrix: Any) -> int:
    """The largest amount of a sparse matrix if all are whole and small and no index is twice in a row.

    0 if not, and where there are too few entries to look: then nothing is known.
    """
    fast = table_kernels(matrix.nnz)
    if fast is None or matrix.data.dtype != np.float64 or matrix.indptr.dtype != matrix.indices.dtype:
        return 0
    look = partial(fast.largest_whole, matrix.indptr, matrix.indices, matrix.data, matrix.shape[1])
    found = parallel([partial(look, a, b) for a, b in row_shares(matrix)])
    return max(found) if all(found) else 0


def few(entries: int, places: int) -> bool:
    """Whether a full table would be so empty that sorting the entries is faster than filling and reading it."""
    return _SPARSE * entries < places


def row_shares(matrix: Any) -> list[tuple[int, int]]:
    """The rows of a sparse matrix as ranges with about as many entries, one for each thread that repays itself."""
    count = min(threads(), 1 + matrix.nnz // _ENTRIES_PER_THREAD)
    inner = np.searchsorted(matrix.indptr, [matrix.nnz * i // count for i in range(1, count)]).tolist()
    return list(pairwise([0, *inner, matrix.shape[0]]))


def bag_sums(matrix: Any, largest: int, labels: Ints, n_labels: int) -> tuple[Ints, Ints, Ints] | None:
    """What is under each slot and class of a sparse matrix: slots, classes, and (Σ of the amounts, how many).

    None where the short way cannot go: few entries, or amounts that are not whole and small (see `largest_amount`).
    """
    fast = table_kernels(matrix.nnz)
    if fast is None or not largest or largest * len(labels) >= 2**31 or few(matrix.nnz, n_labels * matrix.shape[1]):
        return None
    order = np.argsort(labels, kind="stable")  # class by class: one row of the table stays in the cache
    pieces = np.array_split(order, min(threads(), 1 + matrix.nnz // _ENTRIES_PER_THREAD, len(order)))
    least, most = ([int(labels[piece[end]]) for piece in pieces] for end in (0, -1))
    sums = [np.zeros((b + 1 - a, matrix.shape[1]), dtype=np.int64) for a, b in zip(least, most, strict=True)]
    add = partial(fast.sum_entries, matrix.indptr, matrix.indices, matrix.data)
    parallel([partial(add, *job) for job in zip(pieces, repeat(labels), least, sums, strict=False)])
    table = sums[0] if len(sums[0]) == n_labels else np.zeros((n_labels, matrix.shape[1]), dtype=np.int64)
    for y, part in zip(least, sums, strict=True):
        if part is not table:
            table[y : y + len(part)] += part
    size = int(np.count_nonzero(table))
    slot, label, amount = np.empty(size, np.int64), np.empty(size, np.int64), np.empty((size, 2), np.int64)
    fast.entries(table, slot, label, amount)
    return slot, label, amount


def moments(labels: Ints, n_labels: int, x: Floats, weights: Floats | None) -> tuple[Limbs, Limbs, Limbs]:
    """Σ w, Σ w·x and Σ w·x² by class, exactly."""
    if weights is None and (fast := kernels(len(x))) is not None:
        n, x_sum, xx_sum = fast.moments(labels, n_labels, x[:, None])
        return n, canonical(x_sum), canonical(xx_sum)
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


def vector_moments(labels: Ints, n_labels: int, x: Floats, weights: Floats | None) -> tuple[Limbs, Limbs, Limbs]:
    """The same for each position of a matrix: group position · n_labels + class; NaN adds nothing."""
    width = x.shape[1]
    if weights is None and (fast := kernels(x.size)) is not None:
        step = max(_ACCUMULATORS // n_labels, 1)
        pieces = [fast.moments(labels, n_labels, x[:, i : i + step]) for i in range(0, width, step)]
        n, x_sum, xx_sum = (_stacked([p[k] for p in pieces]) for k in range(3))
        return n, canonical(x_sum), canonical(xx_sum)
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
