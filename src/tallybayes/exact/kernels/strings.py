"""Byte strings → numbers 1, 2, … in order of first appearance, by open addressing.

The key of a string of up to fifteen bytes is the string itself and its length, as two numbers, so equal keys are equal
strings. A longer one has a hash behind a mark, and is compared byte by byte: nothing rests on a hash alone.

The slots hold only numbers, four bytes each, and the keys stand in order of first appearance: frequent strings come
early, so what is read often lies close together.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .compiling import helper, kernel
from .llvm import eight, prefetch, trailing_zeros

ONE, ZERO = np.uint64(1), np.uint64(0)
NONE = np.uint32(0xFFFFFFFF)
_K = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads keys over the table (Knuth)
_L = np.uint64(0xD6E8FEB86659FD93)  # another odd number of mixed bits
_TOGETHER = 256  # strings whose places are read at once
_BEHIND = 16  # bytes behind a string that are read with it
_LONG = np.uint64(0xFF) << np.uint64(56)  # the mark stands where a short string has its length
_FIRST = np.array([(1 << 8 * min(n, 8)) - 1 for n in range(16)], dtype=np.uint64)  # n bytes: mask of the first eight
_SECOND = np.array([(1 << 8 * max(n - 8, 0)) - 1 for n in range(16)], dtype=np.uint64)  # … and of the next seven


class StringTable(NamedTuple):
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


def new_table(strings: int, size: int, beside: int = 0) -> StringTable:
    """A table with room for so many strings and bytes, and so many numbers, zero at first, beside each key.

    Room that is not used costs nothing, since only the slots have to be empty: they start fewer and become more.
    """
    edges, slots = np.empty(strings + 1, np.uint64), 1 << (max(strings // 2, 32) - 1).bit_length()
    edges[0] = 0
    return StringTable(
        np.zeros(slots, np.uint32), np.empty((strings + 1, 2 + beside), np.uint64), edges,
        np.empty(size + _BEHIND, np.uint8), np.zeros(1, np.int64),
    )  # fmt: skip


@helper
def _place(first: Any, second: Any, shift: Any) -> Any:
    """Where the search for a key begins."""
    h = (first ^ (second * _L)) * _K
    return ((h ^ (h >> np.uint64(32))) * _K) >> shift


@helper
def _shift(slots: Any) -> Any:
    """How far a hash is shifted to become the place of a slot."""
    return np.uint64(64) - trailing_zeros(np.uint64(slots.shape[0]))


@kernel
def _fill(keys: Any, known: Any, slots: Any) -> None:
    """Put the numbers of all strings into empty slots."""
    shift, mask = _shift(slots), np.uint64(slots.shape[0] - 1)
    for t in range(1, known + 1):
        p = _place(keys[t, 0], keys[t, 1], shift)
        while slots[p] != 0:
            p = (p + ONE) & mask
        slots[p] = t


def roomier(table: StringTable, strings: int, size: int) -> StringTable:
    """The table, or a larger one with the same strings, with room for so many more strings and bytes."""
    slots, keys, edges, letters, _ = table
    known = int(table.known[0])
    used = int(edges[known])
    if used + size + _BEHIND > len(letters):
        letters = longer(letters, used, 2 * (used + size) + _BEHIND)
    if known + strings >= len(edges):
        rows = 2 * (known + strings) + 1
        keys, edges = longer(keys, known + 1, rows), longer(edges, known + 1, rows)
    if 2 * (known + strings) > len(slots):
        slots = np.zeros(1 << (2 * (known + strings) - 1).bit_length(), np.uint32)
        _fill(keys, known, slots)
    return StringTable(slots, keys, edges, letters, table.known)


def longer(array: Any, filled: int, size: int) -> Any:
    """A copy of the part of an array that is filled, with room behind."""
    out = np.empty((size, *array.shape[1:]), array.dtype)
    out[:filled] = array[:filled]
    return out


@helper
def has_room(table: Any, strings: Any, size: Any) -> Any:
    """Whether a table has room for so many more strings and bytes; see `roomier`."""
    known = np.uint64(table.known[0])
    after = known + strings
    return (
        after < np.uint64(table.edges.shape[0])
        and after + after <= np.uint64(table.slots.shape[0])
        and table.edges[known] + size + np.uint64(_BEHIND) <= np.uint64(table.letters.shape[0])
    )


@helper
def code_point(data: Any, i: Any) -> Any:
    """The code point of the character beyond ASCII that begins at a place, and how many bytes it has."""
    b = data[i]
    if b < 0xE0:
        size, point = np.uint64(2), np.uint32(b & 0x1F)
    elif b < 0xF0:
        size, point = np.uint64(3), np.uint32(b & 0x0F)
    else:
        size, point = np.uint64(4), np.uint32(b & 0x07)
    for j in range(ONE, size):
        point = np.uint32((point << 6) | (data[i + j] & 0x3F))
    return point, size


@helper
def key_them(table: Any, data: Any, runs: Any, count: Any, keys: Any) -> None:
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


@helper
def _found(table: Any, data: Any, s: Any, size: Any, first: Any, second: Any, p: Any) -> Any:
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


@helper
def _add(table: Any, t: Any, p: Any, first: Any, second: Any, data: Any, s: Any, size: Any) -> None:
    """Put a new string under its number."""
    start = table.edges[t - ONE]
    table.slots[p] = t
    table.keys[t, 0], table.keys[t, 1] = first, second
    for j in range(2, table.keys.shape[1]):
        table.keys[t, j] = ZERO
    for j in range(size):
        table.letters[start + np.uint64(j)] = data[s + np.uint64(j)]
    table.edges[t] = start + size


@helper
def learn(table: Any, data: Any, runs: Any, count: Any, keys: Any, numbers: Any, at: Any) -> None:
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


@helper
def look_up(table: Any, data: Any, runs: Any, count: Any, keys: Any, numbers: Any) -> None:
    """The numbers of strings; 0 for one that is not known."""
    for i in range(count):
        k = np.uint64(i)
        s = runs[k + k]
        t, _ = _found(table, data, s, runs[k + k + ONE] - s, keys.first[k], keys.second[k], keys.place[k])
        numbers[k] = np.uint32(t)


@kernel
def known_to(table: Any, given: Any, other: Any, first: Any, last: Any, numbers: Any) -> None:
    """What is given to the strings of a table, for those strings first … last − 1 of another that have NONE yet, and
    keep it where the table has no such string: given[0] is NONE.
    """
    shift, width = _shift(table.slots), np.uint64(table.keys.shape[1])
    for begin in range(first, last, _TOGETHER):
        stop = min(begin + _TOGETHER, last)
        for i in range(begin, stop):  # so that many reads are under way at once
            prefetch(table.slots, _place(other.keys[i, 0], other.keys[i, 1], shift))
        for i in range(begin, stop):
            p = _place(other.keys[i, 0], other.keys[i, 1], shift)
            prefetch(table.keys, np.uint64(table.slots[p]) * width)
        for i in range(begin, stop):
            u = np.uint64(i)
            if numbers[u] == NONE:
                s = other.edges[u - ONE]
                a, b = other.keys[u, 0], other.keys[u, 1]
                t, _ = _found(table, other.letters, s, other.edges[u] - s, a, b, _place(a, b, shift))
                numbers[u] = given[t]
