"""Byte strings → numbers 1, 2, … in order of first appearance, by open addressing. Numba; import only through `exact`.

The key of a string of up to fifteen bytes is the string itself and its length, as two numbers, so equal keys are equal
strings. A longer one has a hash behind a mark, and is compared byte by byte: nothing rests on a hash alone.

The slots hold only numbers, four bytes each, and the keys stand in order of first appearance: frequent strings come
early, so what is read often lies close together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numba as nb
import numpy as np

from .intrinsics import eight, prefetch, trailing_zeros

ONE, ZERO = np.uint64(1), np.uint64(0)
_K = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads keys over the table (Knuth)
_L = np.uint64(0xD6E8FEB86659FD93)  # another odd number of mixed bits
_TOGETHER = 256  # strings for which room is made, and whose places are read, at once
_LONG = np.uint64(0xFF) << np.uint64(56)  # the mark stands where a short string has its length
_FIRST = np.array([(1 << 8 * min(n, 8)) - 1 for n in range(16)], dtype=np.uint64)  # n bytes: mask of the first eight
_SECOND = np.array([(1 << 8 * max(n - 8, 0)) - 1 for n in range(16)], dtype=np.uint64)  # … and of the next seven


class Table(NamedTuple):
    """The strings and where they are found. Numbers start at 1; 0 is an empty slot, or a string not known."""

    slots: Any  # uint32, a power of two of them, at most half full
    keys: Any  # uint64, a row for each number: the key, and what its user keeps beside it
    edges: Any  # uint64: string t is letters[edges[t − 1] : edges[t]]
    letters: Any  # uint8
    known: Any  # one int64: how many strings


class Keys(NamedTuple):
    """Room for the keys of the strings that are looked up together."""

    first: Any
    second: Any
    place: Any


def new_table(strings: int, size: int, beside: int = 0) -> Table:
    """A table with room for so many strings and bytes, and so many numbers, zero at first, beside each key.

    Room that is not used costs nothing: NumPy asks for memory that the system clears when it is first touched, which a
    compiled function would do at once. Only the slots, which are used here and there, start fewer and become more.
    """
    slots = 1 << (max(strings // 4, 16) - 1).bit_length()
    return Table(
        np.zeros(slots, np.uint32), np.zeros((strings + 1, 2 + beside), np.uint64), np.zeros(strings + 1, np.uint64),
        np.empty(size + 16, np.uint8), np.zeros(1, np.int64),
    )  # fmt: skip


@nb.njit(cache=True, nogil=True)
def _place(first: Any, second: Any, shift: Any) -> Any:  # pragma: no cover - compiled
    """Where the search for a key begins."""
    h = (first ^ (second * _L)) * _K
    return ((h ^ (h >> np.uint64(32))) * _K) >> shift


@nb.njit(cache=True, nogil=True)
def _shift(slots: Any) -> Any:  # pragma: no cover - compiled
    """How far a hash is shifted to become the place of a slot."""
    return np.uint64(64) - trailing_zeros(np.uint64(slots.shape[0]))


@nb.njit(cache=True, nogil=True)
def roomy(table: Any, strings: Any, size: Any) -> Any:  # pragma: no cover - compiled
    """The table, or a larger one with the same strings, with room for so many more strings and bytes."""
    known = table.known[0]
    slots, keys, edges, letters = table.slots, table.keys, table.edges, table.letters
    if np.int64(edges[known]) + np.int64(size) + 16 > letters.shape[0]:
        letters = longer(letters, 2 * (np.int64(edges[known]) + np.int64(size)) + 16)
    if 2 * (known + np.int64(strings)) > slots.shape[0]:
        count = slots.shape[0]
        while count < 2 * (known + np.int64(strings)):
            count *= 2
        slots = np.zeros(count, np.uint32)
        shift, mask = _shift(slots), np.uint64(count - 1)
        for t in range(1, known + 1):
            p = _place(keys[t, 0], keys[t, 1], shift)
            while slots[p] != 0:
                p = (p + ONE) & mask
            slots[p] = t
    if known + np.int64(strings) >= edges.shape[0]:
        rows = 2 * (known + np.int64(strings)) + 1
        wider = np.zeros((rows, keys.shape[1]), np.uint64)
        for t in range(known + 1):
            for j in range(keys.shape[1]):
                wider[t, j] = keys[t, j]
        keys, edges = wider, longer(edges, rows)
    return Table(slots, keys, edges, letters, table.known)


@nb.njit(cache=True, nogil=True)
def longer(array: Any, size: Any) -> Any:  # pragma: no cover - compiled
    """A copy of an array with more room behind."""
    out = np.empty(size, array.dtype)
    for i in range(array.shape[0]):  # see `countkernels`
        out[i] = array[i]
    return out


@nb.njit(cache=True, nogil=True)
def key_them(table: Any, data: Any, runs: Any, count: Any, keys: Any) -> None:  # pragma: no cover - compiled
    """The keys of the strings data[runs[0]:runs[1]], data[runs[2]:runs[3]], …; sixteen bytes behind them are read."""
    shift = _shift(table.slots)
    for i in range(count):
        k = np.uint64(i)
        s = runs[k + k]
        size = runs[k + k + ONE] - s
        if size < np.uint64(16):
            first = eight(data, s) & _FIRST[size]
            second = (eight(data, s + np.uint64(8)) & _SECOND[size]) | (size << np.uint64(56))
        else:
            first, j = size, ZERO
            while j < size - np.uint64(8):
                first = (first ^ eight(data, s + j)) * _K
                first ^= first >> np.uint64(32)
                j += np.uint64(8)
            first = (first ^ eight(data, s + size - np.uint64(8))) * _K
            second = _LONG | size
        keys.first[k], keys.second[k] = first, second
        keys.place[k] = _place(first, second, shift)
    width = np.uint64(table.keys.shape[1])
    for i in range(count):  # a second round, so that many reads are under way at once
        prefetch(table.keys, np.uint64(table.slots[keys.place[np.uint64(i)]]) * width)


@nb.njit(cache=True, nogil=True)
def _found(
    table: Any, data: Any, s: Any, size: Any, first: Any, second: Any, p: Any
) -> Any:  # pragma: no cover - compiled
    """The number of a string, or 0, and the slot where it is or belongs."""
    mask = np.uint64(table.slots.shape[0] - 1)
    while True:
        t = np.uint64(table.slots[p])
        if t == ZERO:
            return t, p
        if ((table.keys[t, 0] ^ first) | (table.keys[t, 1] ^ second)) == ZERO:
            if second < _LONG:
                return t, p
            other, same = table.edges[t - ONE], True
            for j in range(size):
                if table.letters[other + np.uint64(j)] != data[s + np.uint64(j)]:
                    same = False
                    break
            if same:
                return t, p
        p = (p + ONE) & mask


@nb.njit(cache=True, nogil=True)
def _add(
    table: Any, t: Any, p: Any, first: Any, second: Any, data: Any, s: Any, size: Any
) -> None:  # pragma: no cover - compiled
    """Put a new string under its number."""
    start = table.edges[t - ONE]
    table.slots[p] = t
    table.keys[t, 0], table.keys[t, 1] = first, second
    for j in range(size):
        table.letters[start + np.uint64(j)] = data[s + np.uint64(j)]
    table.edges[t] = start + size


@nb.njit(cache=True, nogil=True)
def learn(
    table: Any, data: Any, runs: Any, count: Any, keys: Any, numbers: Any, at: Any
) -> None:  # pragma: no cover - compiled
    """The numbers of strings, from `at` on; new ones are added, for which the table must have room."""
    v = np.uint64(table.known[0])
    for i in range(count):
        k = np.uint64(i)
        s = runs[k + k]
        size = runs[k + k + ONE] - s
        first, second = keys.first[k], keys.second[k]
        t, p = _found(table, data, s, size, first, second, keys.place[k])
        if t == ZERO:
            v += ONE
            t = v
            _add(table, t, p, first, second, data, s, size)
        numbers[at + k] = np.uint32(t)
    table.known[0] = v


@nb.njit(cache=True, nogil=True)
def look_up(table: Any, data: Any, runs: Any, count: Any, keys: Any, numbers: Any) -> None:  # pragma: no cover
    """The numbers of strings; 0 for one that is not known."""
    for i in range(count):
        k = np.uint64(i)
        s = runs[k + k]
        t, _ = _found(table, data, s, runs[k + k + ONE] - s, keys.first[k], keys.second[k], keys.place[k])
        numbers[k] = np.uint32(t)


@nb.njit(cache=True, nogil=True)
def united(table: Any, other: Any) -> Any:  # pragma: no cover - compiled
    """The first table with the other's strings added, and the numbers that those have in it (the first of them 0)."""
    known = other.known[0]
    new = np.zeros(known + 1, np.uint32)
    for first in range(1, known + 1, _TOGETHER):  # most strings are in both: room for all would mostly stay empty
        stop = min(first + _TOGETHER, known + 1)
        table = roomy(table, np.uint64(_TOGETHER), other.edges[stop - 1] - other.edges[first - 1])
        _unite(table, other, first, stop, new)
    return table, new


@nb.njit(cache=True, nogil=True)
def _unite(table: Any, other: Any, first: Any, stop: Any, new: Any) -> None:  # pragma: no cover - compiled
    """Add some of the other's strings to a table that has room for them."""
    v, shift = np.uint64(table.known[0]), _shift(table.slots)
    width = np.uint64(table.keys.shape[1])
    for i in range(first, stop):  # so that many reads are under way at once
        prefetch(table.slots, _place(other.keys[i, 0], other.keys[i, 1], shift))
    for i in range(first, stop):
        p = _place(other.keys[i, 0], other.keys[i, 1], shift)
        prefetch(table.keys, np.uint64(table.slots[p]) * width)
    for i in range(first, stop):
        u = np.uint64(i)
        s = other.edges[u - ONE]
        size = other.edges[u] - s
        first_key, second_key = other.keys[u, 0], other.keys[u, 1]
        t, p = _found(table, other.letters, s, size, first_key, second_key, _place(first_key, second_key, shift))
        if t == ZERO:
            v += ONE
            t = v
            _add(table, t, p, first_key, second_key, other.letters, s, size)
        new[u] = np.uint32(t)
    table.known[0] = v
