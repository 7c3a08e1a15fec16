"""Numba twins of counting numbered tokens, by text and by class. Import only through `exact.count_kernels`."""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@nb.njit(cache=True, nogil=True)
def rows(tokens: Any, ends: Any, n_words: int, indptr: Any, indices: Any, amounts: Any) -> Any:  # pragma: no cover
    """Each text as distinct tokens with their counts, in order of first appearance (CSR); returns how many entries."""
    stamp, place = np.full(n_words, -1, np.int64), np.zeros(n_words, np.uint64)
    n, i = _ZERO, _ZERO
    for d in range(ends.shape[0]):
        end = np.uint64(ends[d])
        while i < end:
            t = tokens[i]
            i += _ONE
            if stamp[t] != d:
                stamp[t] = d
                place[t] = n
                indices[n] = t
                amounts[n] = 1.0
                n += _ONE
            else:
                amounts[place[t]] += 1.0
        indptr[d + 1] = n
    return n


@nb.njit(cache=True, nogil=True)
def by_class(
    tokens: Any, ends: Any, order: Any, labels: Any, n_words: int, slot: Any, label: Any, amount: Any
) -> Any:  # pragma: no cover - compiled
    """Occurrences and texts of each token and class, as entries sorted by token and class; returns how many.

    `order` lists the texts class by class.
    """
    stamp, where = np.full(n_words, -1, np.int64), np.full(n_words, -1, np.int64)
    n = 0
    start = 0
    current = -1
    for o in range(order.shape[0]):
        d = order[o]
        if labels[d] != current:
            current = labels[d]
            start = n  # places before this belong to other classes
        i = np.uint64(ends[d - 1]) if d > 0 else _ZERO
        end = np.uint64(ends[d])
        while i < end:
            t = tokens[i]
            i += _ONE
            e = where[t]
            if e < start:
                e = n
                where[t] = e
                slot[e], label[e] = t, current
                amount[e, 0], amount[e, 1] = 0, 0
                n += 1
            amount[e, 0] += 1
            if stamp[t] != d:
                stamp[t] = d
                amount[e, 1] += 1
    return n


@nb.njit(cache=True, nogil=True)
def sorted_by_slot(
    slot: Any, label: Any, amount: Any, n_words: int, out_slot: Any, out_label: Any, out_amount: Any
) -> None:  # pragma: no cover
    """Entries in class order put in order of slots, class order kept: a counting sort."""
    count = np.zeros(n_words + 1, np.int64)
    for e in range(slot.shape[0]):
        count[slot[e] + 1] += 1
    for t in range(n_words):
        count[t + 1] += count[t]
    for e in range(slot.shape[0]):
        p = count[slot[e]]
        count[slot[e]] = p + 1
        out_slot[p], out_label[p] = slot[e], label[e]
        out_amount[p, 0], out_amount[p, 1] = amount[e, 0], amount[e, 1]
