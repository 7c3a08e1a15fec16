"""Numba twins of counting numbered tokens, by text and by class. Import only through `exact.count_kernels`."""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

_ONE = np.uint64(1)
_ZERO = np.uint64(0)


class Entries(NamedTuple):
    """The distinct tokens of each group: number, how often it occurs, in how many texts; and where each group ends."""

    number: Any
    n: Any
    texts: Any
    ends: Any


@nb.njit(cache=True, nogil=True)
def new_entries(groups: Any) -> Any:  # pragma: no cover - compiled
    """No entries yet."""
    return Entries(
        np.empty(1024, np.uint32), np.empty(1024, np.uint32), np.empty(1024, np.uint32), np.zeros(groups, np.int64)
    )


@nb.njit(cache=True, nogil=True)
def add_up(
    numbers: Any, start: Any, stop: Any, tally: Any, touched: Any, seen: Any, stamp: Any
) -> Any:  # pragma: no cover - compiled
    """Count the tokens of a text. Returns how many distinct ones the group has, which `touched` lists.

    Each token has two numbers in `tally`: occurrences and, 32 bits higher, texts; and the stamp of its last text.
    There is no branch, since whether a token is new to a text or a group nobody can foresee.
    """
    for k in range(start, stop):
        t = np.uint64(numbers[k])
        both = tally[t + t]
        touched[seen] = t
        seen += np.uint64(both == _ZERO)
        tally[t + t] = both + _ONE + (np.uint64(tally[t + t + _ONE] != stamp) << np.uint64(32))
        tally[t + t + _ONE] = stamp
    return seen


@nb.njit(cache=True, nogil=True)
def flush(entries: Any, group: Any, tally: Any, touched: Any, seen: Any) -> Any:  # pragma: no cover - compiled
    """The entries with those of a group added, and its counts set back to zero."""
    filled = entries.ends[group - 1] if group > 0 else 0
    last = filled + np.int64(seen)
    if last > entries.n.shape[0]:
        entries = Entries(
            _longer(entries.number, filled, 2 * last), _longer(entries.n, filled, 2 * last),
            _longer(entries.texts, filled, 2 * last), entries.ends,
        )  # fmt: skip
    for k in range(last - filled):
        t = np.uint64(touched[k])
        both = tally[t + t]
        tally[t + t] = _ZERO
        entries.number[filled + k], entries.n[filled + k] = t, np.uint32(both)
        entries.texts[filled + k] = np.uint32(both >> np.uint64(32))
    entries.ends[group] = last
    return entries


@nb.njit(cache=True, nogil=True)
def _longer(array: Any, filled: Any, size: Any) -> Any:  # pragma: no cover - compiled
    out = np.empty(size, array.dtype)
    for i in range(filled):  # one by one: Numba takes a second to compile the assignment of a whole array
        out[i] = array[i]
    return out


@nb.njit(cache=True, nogil=True)
def by_group(numbers: Any, ends: Any, order: Any, groups: Any, known: Any) -> Any:  # pragma: no cover - compiled
    """The entries of numbered tokens; `order` lists the texts, group after group, and `groups` where each ends."""
    tally, touched = np.zeros(2 * known, np.uint64), np.empty(known + 1, np.uint32)
    entries = new_entries(groups.shape[0])
    o = 0
    for g in range(groups.shape[0]):
        seen = _ZERO
        while o < groups[g]:
            d = order[o]
            o += 1
            start = np.uint64(ends[d - 1]) if d > 0 else _ZERO
            seen = add_up(numbers, start, np.uint64(ends[d]), tally, touched, seen, np.uint64(o))
        entries = flush(entries, g, tally, touched, seen)
    return entries


@nb.njit(cache=True, nogil=True)
def sorted_by_slot(slot: Any, label: Any, n: Any, texts: Any, slots: Any) -> Any:  # pragma: no cover - compiled
    """Entries in class order put in order of slots, class order kept, equal ones added up: a counting sort.

    Slots are numbered from 1 in the entries and from 0 in the result.
    """
    known = np.zeros((slots + 1, 2), np.int64)  # how many entries, and one more than the last of them
    for e in range(slot.shape[0]):
        t = np.uint64(slot[e])
        before = known[t, 1] - 1
        if before >= 0 and label[before] == label[e]:  # two threads had texts of the same class
            n[before] += n[e]
            texts[before] += texts[e]
            n[e] = 0
        else:
            known[t, 0] += 1
            known[t, 1] = e + 1
    total = 0
    for i in range(slots + 1):
        count = known[i, 0]
        known[i, 0] = total
        total += count
    out_slot, out_label, out = np.empty(total, np.int64), np.empty(total, np.int64), np.empty((total, 2), np.int64)
    for e in range(slot.shape[0]):
        if n[e] > 0:
            t = np.uint64(slot[e])
            p = np.uint64(known[t, 0])
            known[t, 0] += 1
            out_slot[p], out_label[p], out[p, 0], out[p, 1] = np.int64(slot[e]) - 1, label[e], n[e], texts[e]
    return out_slot, out_label, out


@nb.njit(cache=True, nogil=True)
def rows(tokens: Any, ends: Any, n_words: Any, indptr: Any, indices: Any, amounts: Any) -> Any:  # pragma: no cover
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
