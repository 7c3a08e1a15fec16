"""Numba twins for n-grams of words and of characters. Import only through `exact.text_kernels`' users.

An n-gram of characters is a string of bytes, and so is one of words: the four bytes of each word's number. Both are
numbered by the table of `wordtable`.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from .wordtable import ONE, Keys, key_them, learn, roomy

_TOGETHER = 512  # n-grams whose keys are made, and then looked up


@nb.njit(cache=True, nogil=True)
def _number(
    table: Any, data: Any, runs: Any, count: Any, keys: Any, out: Any, at: Any
) -> Any:  # pragma: no cover - compiled
    """Number some n-grams; returns the table, which may have grown."""
    size = np.uint64(0)
    for k in range(count):
        size += runs[2 * k + 1] - runs[2 * k]
    some = np.uint64(count)  # one type of number for all callers, so that these are compiled once
    table = roomy(table, some, size)
    key_them(table, data, runs, some, keys)
    learn(table, data, runs, some, keys, out, np.uint64(at))
    return table


@nb.njit(cache=True, nogil=True)
def grams(
    data: Any, ends: Any, low: Any, high: Any, table: Any, out: Any, out_ends: Any
) -> Any:  # pragma: no cover - compiled
    """n-grams of numbered words, four bytes of `data` each, all sizes low … high in turn; returns their table."""
    runs = np.zeros(2 * _TOGETHER, np.uint64)
    keys = Keys(np.zeros(_TOGETHER, np.uint64), np.zeros(_TOGETHER, np.uint64), np.zeros(_TOGETHER, np.uint64))
    total = 0
    for d in range(ends.shape[0]):
        begin = ends[d - 1] if d > 0 else 0
        for n in range(low, high + 1):
            for first in range(begin, ends[d] - n + 1, _TOGETHER):
                count = min(_TOGETHER, ends[d] - n + 1 - first)
                for k in range(count):
                    runs[2 * k], runs[2 * k + 1] = 4 * (first + k), 4 * (first + k + n)
                table = _number(table, data, runs, count, keys, out, np.uint64(total))
                total += count
        out_ends[d] = total
    return table


@nb.njit(cache=True, nogil=True)
def spelled(table: Any, word_edges: Any, letters: Any) -> Any:  # pragma: no cover - compiled
    """The n-grams of words written out, with a space between words: where each ends, and the bytes."""
    known, numbers = table.known[0], table.letters[: table.letters.shape[0] // 4 * 4].view(np.uint32)
    edges = np.zeros(known + 1, np.int64)
    for t in range(1, known + 1):
        size = -1
        for i in range(table.edges[t - 1] >> np.uint64(2), table.edges[t] >> np.uint64(2)):
            word = numbers[i]
            size += 1 + word_edges[word] - word_edges[word - 1]
        edges[t] = edges[t - 1] + size
    out = np.full(edges[known], 32, np.uint8)
    for t in range(1, known + 1):
        at = edges[t - 1]
        for i in range(table.edges[t - 1] >> np.uint64(2), table.edges[t] >> np.uint64(2)):
            word = numbers[i]
            for j in range(word_edges[word - 1], word_edges[word]):
                out[at] = letters[j]
                at += 1
            at += 1
    return edges, out


@nb.njit(cache=True, nogil=True)
def padded(
    texts: Any, fold: Any, is_word: Any, across: bool, out: Any, out_ends: Any, cuts: Any
) -> Any:  # pragma: no cover - compiled
    """What character n-grams are taken of: each word with a space on either side, or the text with its spaces folded.

    `cuts` gets the end of every stretch that no n-gram crosses; returns how many there are.
    """
    n, pieces = 0, 0
    for d in range(texts.begin.shape[0]):
        data = texts.more if texts.beyond[d] else texts.data
        i, end = texts.begin[d], texts.stop[d]
        if across:
            space = False
            while i < end:
                b = data[i]
                blank = b == 32 or (b >= 9 and b <= 13) or (b >= 28 and b <= 31)
                if not blank or not space:
                    folded = fold[b]
                    out[n] = 32 if blank else (folded if folded != 0 else b)
                    n += 1
                space = blank
                i += ONE
            cuts[pieces] = n
            pieces += 1
        else:
            while i < end:
                s, chars = i, 0
                while i < end:
                    b = data[i]
                    if b < 128:
                        if fold[b] == 0:
                            break
                        i += ONE
                    else:
                        if b < 0xE0:
                            k, point = np.uint64(2), np.uint32(b & 0x1F)
                        elif b < 0xF0:
                            k, point = np.uint64(3), np.uint32(b & 0x0F)
                        else:
                            k, point = np.uint64(4), np.uint32(b & 0x07)
                        for j in range(1, k):
                            point = np.uint32((point << 6) | (data[i + np.uint64(j)] & 0x3F))
                        if is_word[point] == 0:
                            break
                        i += k
                    chars += 1
                if chars >= 2:
                    out[n] = 32
                    n += 1
                    while s < i:
                        b = data[s]
                        out[n] = fold[b] if fold[b] != 0 else b
                        n += 1
                        s += ONE
                    out[n] = 32
                    n += 1
                    cuts[pieces] = n
                    pieces += 1
                if i < end:  # step over the character that is no part of a word
                    b = data[i]
                    i += ONE
                    while i < end and (data[i] & 0xC0) == 0x80:
                        i += ONE
        out_ends[d] = pieces
    return pieces


@nb.njit(cache=True, nogil=True)
def chars(
    data: Any, cuts: Any, piece_ends: Any, low: Any, high: Any, places: Any, table: Any, out: Any, ends: Any
) -> Any:  # pragma: no cover - compiled
    """Character n-grams of each stretch, all sizes low … high in turn; returns their table."""
    runs = np.zeros(2 * _TOGETHER, np.uint64)
    keys = Keys(np.zeros(_TOGETHER, np.uint64), np.zeros(_TOGETHER, np.uint64), np.zeros(_TOGETHER, np.uint64))
    total, waiting = 0, 0
    for d in range(piece_ends.shape[0]):
        for piece in range(piece_ends[d - 1] if d > 0 else 0, piece_ends[d]):
            begin = cuts[piece - 1] if piece > 0 else 0
            count = 0
            for i in range(begin, cuts[piece]):
                if (data[i] & 0xC0) != 0x80:
                    places[count] = i
                    count += 1
            places[count] = cuts[piece]
            for n in range(low, high + 1):
                for c in range(count - n + 1):
                    runs[2 * waiting], runs[2 * waiting + 1] = places[c], places[c + n]
                    waiting += 1
                    if waiting == _TOGETHER:
                        table = _number(table, data, runs, waiting, keys, out, np.uint64(total))
                        total += waiting
                        waiting = 0
        ends[d] = total + waiting
    return _number(table, data, runs, waiting, keys, out, np.uint64(total))
