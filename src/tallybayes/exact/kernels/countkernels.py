"""Numba twins of counting numbered tokens, by text and by class. Import only through `exact.count_kernels`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiling import helper, kernel

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
TEXT, SEEN, FILLED, LABEL = range(4)  # where a kernel stands: texts done, and of the entries; see `by_group`


@helper
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


@kernel
def flush(entries: Any, filled: Any, label: Any, tally: Any, touched: Any, seen: Any) -> Any:  # pragma: no cover
    """Write down the tokens of a class, and set its counts back to zero; returns how many entries there are then.

    An entry is the class, the number of the token, how often it occurs, and in how many texts.
    """
    column = tally.shape[1] - 2
    for k in range(seen):
        t, e = np.uint64(touched[k]), np.uint64(filled + k)
        both = tally[t, column]
        tally[t, column] = _ZERO
        entries[e, 0], entries[e, 1] = label, t
        entries[e, 2], entries[e, 3] = both & np.uint64(0xFFFFFFFF), both >> np.uint64(32)
    return filled + seen


@kernel
def by_group(
    numbers: Any, ends: Any, order: Any, labels: Any, tally: Any, touched: Any, entries: Any, state: Any
) -> Any:  # pragma: no cover - compiled
    """The entries of numbered tokens; `order` lists the texts, class after class.

    Returns whether all is done; if not, the entries need more room. The last class is left to be flushed.
    """
    o, seen, filled, label = state[TEXT], np.uint64(state[SEEN]), state[FILLED], state[LABEL]
    done = True
    while done and o < order.shape[0]:
        d = order[o]
        if labels[d] != label and seen > _ZERO:
            done = filled + np.int64(seen) <= entries.shape[0]
            if done:
                filled = flush(entries, filled, label, tally, touched, np.int64(seen))
                seen = _ZERO
        if done:
            label = labels[d]
            o += 1
            start = np.uint64(ends[d - 1]) if d > 0 else _ZERO
            seen = add_up(numbers, start, np.uint64(ends[d]), tally, touched, seen, np.uint64(o))
    state[TEXT], state[SEEN], state[FILLED], state[LABEL] = o, np.int64(seen), filled, label
    return done


@kernel
def by_token(
    entries: Any, filled: Any, backward: Any, number: Any, ends: Any, out: Any
) -> None:  # pragma: no cover - compiled
    """Entries, which stand class by class, put in order of number[token]: a counting sort that keeps the order of the
    classes, or turns it round.

    `out` gets the class, the occurrences and the texts of each; `ends`, zeros for all numbers and three more, gets the
    place where those of number t begin in ends[t], and where they end in ends[t + 1].
    """
    for e in range(filled):
        ends[np.uint64(number[np.uint64(entries[e, 1])]) + np.uint64(2)] += 1
    for t in range(1, ends.shape[0]):
        ends[t] += ends[t - 1]
    for k in range(filled):
        e = filled - 1 - k if backward else k
        after = np.uint64(number[np.uint64(entries[e, 1])]) + _ONE
        p = np.uint64(ends[after])
        ends[after] += 1
        out[p, 0], out[p, 1], out[p, 2] = entries[e, 0], entries[e, 2], entries[e, 3]


@kernel
def merged(
    ends: Any, entries: Any, first: Any, last: Any, slot: Any, label: Any, amount: Any
) -> Any:  # pragma: no cover - compiled
    """How many entries the words first … last − 1 have, those of several threads for one word and class added up.

    `ends` says for each thread where the entries of each word begin; classes are in order from thread to thread. They
    are written down if there is room.
    """
    n, write = _ZERO, slot.shape[0] > 0
    for t in range(first, last):
        before = np.int64(-1)
        for p in range(ends.shape[0]):
            e, end = np.uint64(ends[p, t]), np.uint64(ends[p, t + 1])
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
                    slot[j], label[j], amount[j, 0], amount[j, 1] = t, entries[i, 0], entries[i, 1], entries[i, 2]
            n += end - e
    return n


@kernel
def rows(
    tokens: Any, ends: Any, stamp: Any, place: Any, indptr: Any, indices: Any, amounts: Any
) -> Any:  # pragma: no cover - compiled
    """Each text as distinct tokens with their counts, in order of first appearance (CSR); returns how many entries.

    `stamp` has a −1 for each token, `place` room for as many.
    """
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
