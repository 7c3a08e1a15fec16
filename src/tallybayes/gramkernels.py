"""Numba twins for n-grams of words and of characters. Import only through `exact.text_kernels`' users.

The table of tokens works as in `textkernels`; here the key of an ASCII n-gram of up to nine bytes is the n-gram itself,
seven bits a byte.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from .textkernels import ONE, TOP, ZERO, K, bits

_EXACT = np.uint64(9)  # bytes of seven bits that fit into a key below the top bit


@nb.njit(cache=True, nogil=True, inline="always")
def _rolled(h: Any, byte: Any) -> Any:  # pragma: no cover - compiled
    return ((h << np.uint64(7)) | (h >> np.uint64(57))) ^ np.uint64(byte)


@nb.njit(cache=True, nogil=True)
def grown(keys: Any, ids: Any) -> Any:  # pragma: no cover - compiled
    """A table of twice the size with the same keys."""
    size = keys.shape[0] * 2
    new_keys, new_ids = np.zeros(size, np.uint64), np.empty(size, np.uint32)
    shift, mask = np.uint64(64 - bits(size)), np.uint64(size - 1)
    for q in range(keys.shape[0]):
        if keys[q] != ZERO:
            p = (keys[q] * K) >> shift
            while new_keys[p] != ZERO:
                p = (p + ONE) & mask
            new_keys[p], new_ids[p] = keys[q], ids[q]
    return new_keys, new_ids


@nb.njit(cache=True, nogil=True)
def grams(
    tokens: Any,
    ends: Any,
    low: int,
    high: int,
    out: Any,
    out_ends: Any,
    keys: Any,
    ids: Any,
    at: Any,
    size: Any,
    state: Any,
) -> Any:  # pragma: no cover - compiled
    """n-grams of numbered tokens, all sizes low … high in turn; False if the table must grow first."""
    shift, mask = np.uint64(64 - bits(keys.shape[0])), np.uint64(keys.shape[0] - 1)
    half = keys.shape[0] // 2
    n, v = np.uint64(state[1]), np.uint64(state[2])
    for d in range(state[0], ends.shape[0]):
        begin = np.uint64(ends[d - 1]) if d > 0 else ZERO
        end = np.uint64(ends[d])
        for k in range(max(low, state[3]) if d == state[0] else low, high + 1):
            step = np.uint64(k)
            i = begin
            if d == state[0] and k == state[3]:
                i += np.uint64(state[4])
            while i + step <= end:
                if np.int64(v) >= half:
                    state[0], state[1], state[2], state[3], state[4] = d, n, v, k, i - begin
                    return False
                h = step
                for j in range(k):
                    h = (h ^ np.uint64(tokens[i + np.uint64(j)])) * K
                    h ^= h >> np.uint64(29)
                h |= TOP
                p = (h * K) >> shift
                while True:
                    q = keys[p]
                    if q == h:
                        t = ids[p]
                        if size[t] == k:
                            same = True
                            for j in range(k):
                                if tokens[at[t] + np.uint64(j)] != tokens[i + np.uint64(j)]:
                                    same = False
                                    break
                            if same:
                                break
                    elif q == ZERO:
                        t = np.uint32(v)
                        keys[p], ids[p] = h, t
                        at[v], size[v] = i, np.uint32(k)
                        v += ONE
                        break
                    p = (p + ONE) & mask
                out[n] = t
                n += ONE
                i += ONE
        out_ends[d] = n
    state[0], state[1], state[2] = ends.shape[0], n, v
    return True


@nb.njit(cache=True, nogil=True)
def padded(
    data: Any, begin: Any, stop: Any, fold: Any, is_word: Any, across: bool, out: Any, out_ends: Any, cuts: Any
) -> Any:  # pragma: no cover - compiled
    """What character n-grams are taken of: each word with a space on either side, or the text with its spaces folded.

    `cuts` gets the end of every stretch that no n-gram crosses; returns how many there are.
    """
    n, pieces = 0, 0
    for d in range(begin.shape[0]):
        i, end = begin[d], stop[d]
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
    data: Any, cuts: Any, piece_ends: Any, low: int, high: int, places: Any, tokens: Any, ends: Any, keys: Any,
    ids: Any, at: Any, length: Any, state: Any,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
    """Character n-grams of each stretch, all sizes low … high in turn; False if the table must grow first."""
    shift, mask = np.uint64(64 - bits(keys.shape[0])), np.uint64(keys.shape[0] - 1)
    half = keys.shape[0] // 2
    n, v = np.uint64(state[1]), np.uint64(state[2])
    for d in range(state[0], piece_ends.shape[0]):
        first = piece_ends[d - 1] if d > 0 else 0
        again = d == state[0] and state[3] > 0
        for piece in range(state[3] - 1 if again else first, piece_ends[d]):
            begin = cuts[piece - 1] if piece > 0 else 0
            count = 0
            for i in range(begin, cuts[piece]):
                if (data[i] & 0xC0) != 0x80:
                    places[count] = i
                    count += 1
            places[count] = cuts[piece]
            for k in range(state[4] if again else low, high + 1):
                for c in range(state[5] if again else 0, count - k + 1):
                    again = False
                    if np.int64(v) >= half:
                        state[0], state[1], state[2], state[3], state[4], state[5] = d, n, v, piece + 1, k, c
                        return False
                    s, e = np.uint64(places[c]), np.uint64(places[c + k])
                    size = e - s
                    h, wide = ZERO, False
                    for j in range(size):
                        b = data[s + np.uint64(j)]
                        wide |= b > 127
                        h = _rolled(h, b)
                    short = size <= _EXACT and not wide and h != ZERO
                    if not short:
                        h |= TOP
                    p = (h * K) >> shift
                    while True:
                        q = keys[p]
                        if q == h:
                            t = ids[p]
                            if short and np.uint64(length[t]) == size:
                                break
                            if np.uint64(length[t]) == size:
                                same = True
                                for j in range(size):
                                    if data[at[t] + np.uint64(j)] != data[s + np.uint64(j)]:
                                        same = False
                                        break
                                if same:
                                    break
                        elif q == ZERO:
                            t = np.uint32(v)
                            keys[p], ids[p] = h, t
                            at[v], length[v] = s, np.uint32(size)
                            v += ONE
                            break
                        p = (p + ONE) & mask
                    tokens[n] = t
                    n += ONE
        ends[d] = n
    state[0], state[1], state[2] = piece_ends.shape[0], n, v
    return True
