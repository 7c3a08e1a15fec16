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

    Each token has a row in `tally` whose last two numbers are its own: occurrences and, 32 bits higher, texts; and the
    stamp of its last text.
    There is no branch, since whether a token is new to a text or a group nobody can foresee.
    """
    last = np.uint64(tally.shape[1]) - _ONE
    for k in range(start, stop):
        t = np.uint64(numbers[k])
        both = tally[t, last - _ONE]
        touched[seen] = t
        seen += np.uint64(both == _ZERO)
        tally[t, last - _ONE] = both + _ONE + (np.uint64(tally[t, last] != stamp) << np.uint64(32))
        tally[t, last] = stamp
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
    column = tally.shape[1] - 2
    for k in range(last - filled):
        t = np.uint64(touched[k])
        both = tally[t, column]
        tally[t, column] = _ZERO
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
    tally, touched = np.zeros((known, 2), np.uint64), np.empty(known + 1, np.uint32)
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
def by_token(entries: Any, labels: Any, ends: Any, out: Any) -> None:  # pragma: no cover - compiled
    """Entries, which stand class by class, put in order of their tokens: a counting sort that keeps the classes' order.

    `out` gets the class, the occurrences and the texts of each; `ends`, zeros for all tokens and three more, gets the
    place where those of token t begin in ends[t], and where they end in ends[t + 1].
    """
    e = 0
    for g in range(entries.ends.shape[0]):
        while e < entries.ends[g]:
            ends[np.uint64(entries.number[e]) + np.uint64(2)] += 1
            e += 1
    for t in range(1, ends.shape[0]):
        ends[t] += ends[t - 1]
    e = 0
    for g in range(entries.ends.shape[0]):
        label = np.uint32(labels[g])
        while e < entries.ends[g]:
            after = np.uint64(entries.number[e]) + _ONE
            p = np.uint64(ends[after])
            ends[after] += 1
            out[p, 0], out[p, 1], out[p, 2] = label, entries.n[e], entries.texts[e]
            e += 1


@nb.njit(cache=True, nogil=True)
def merged(
    places: Any, entries: Any, first: Any, last: Any, slot: Any, label: Any, amount: Any
) -> Any:  # pragma: no cover - compiled
    """How many entries some words have, those of several threads for one word and class added up.

    `places` are words × threads × (begin, end) among the entries, classes in order from thread to thread. They are
    written down if there is room; words are numbered from 1 in the places and from 0 in the result.
    """
    n, write = _ZERO, slot.shape[0] > 0
    for t in range(first, last):
        before = np.int64(-1)
        for p in range(places.shape[1]):
            e, end = np.uint64(places[t, p, 0]), np.uint64(places[t, p, 1])
            if e == end:
                continue
            if np.int64(entries[e, 0]) == before:  # only the first class of a thread may be the last of another
                if write:
                    amount[n - _ONE, 0] += entries[e, 1]
                    amount[n - _ONE, 1] += entries[e, 2]
                e += _ONE
            before = np.int64(entries[end - _ONE, 0])
            if write:
                for k in range(end - e):
                    i, j = e + np.uint64(k), n + np.uint64(k)
                    slot[j], label[j], amount[j, 0], amount[j, 1] = t - 1, entries[i, 0], entries[i, 1], entries[i, 2]
            n += end - e
    return n


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
