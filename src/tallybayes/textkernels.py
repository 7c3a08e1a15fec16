"""Numba twins of the tokeniser. Import only through `exact.text_kernels`.

A text is UTF-8 bytes. ASCII letters are folded on the way; texts with other letters were lowered by Python before, so
the only table needed is which code points are word characters, and it is made with Python's own `re`.

Tokens are found again by open addressing. The key of an ASCII token of up to nine bytes is the token itself, seven bits
a byte; longer ones have a hash with the top bit set and are compared byte by byte. Nothing rests on a hash alone.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

_K = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads keys over the table (Knuth)
_TOP = np.uint64(1 << 63)
_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_EXACT = np.uint64(9)  # bytes of seven bits that fit into a key below the top bit


@nb.njit(cache=True, nogil=True, inline="always")
def _rolled(h: Any, byte: Any) -> Any:  # pragma: no cover - compiled
    return ((h << np.uint64(7)) | (h >> np.uint64(57))) ^ np.uint64(byte)


@nb.njit(cache=True, nogil=True)
def _bits(size: Any) -> Any:  # pragma: no cover - compiled
    bits = 0
    while size > 1:
        size >>= 1
        bits += 1
    return bits


@nb.njit(cache=True, nogil=True)
def not_ascii(data: Any, start: Any, end: Any, out: Any) -> None:  # pragma: no cover - compiled
    """Which texts hold a byte above 127."""
    for d in range(start.shape[0]):
        high = np.uint8(0)
        for i in range(start[d], end[d]):
            high |= data[i]
        out[d] = high > 127


@nb.njit(cache=True, nogil=True)
def grown(keys: Any, ids: Any) -> Any:  # pragma: no cover - compiled
    """A table of twice the size with the same keys."""
    size = keys.shape[0] * 2
    new_keys, new_ids = np.zeros(size, np.uint64), np.empty(size, np.uint32)
    shift, mask = np.uint64(64 - _bits(size)), np.uint64(size - 1)
    for q in range(keys.shape[0]):
        if keys[q] != _ZERO:
            p = (keys[q] * _K) >> shift
            while new_keys[p] != _ZERO:
                p = (p + _ONE) & mask
            new_keys[p], new_ids[p] = keys[q], ids[q]
    return new_keys, new_ids


@nb.njit(cache=True, nogil=True)
def words(
    data: Any, begin: Any, stop: Any, fold: Any, is_word: Any, tokens: Any, ends: Any, keys: Any, ids: Any, at: Any,
    length: Any, state: Any,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
    """Cut texts into words of two or more characters; False if the table must grow first (`state`: where to go on)."""
    shift, mask = np.uint64(64 - _bits(keys.shape[0])), np.uint64(keys.shape[0] - 1)
    half = keys.shape[0] // 2
    n, v = np.uint64(state[1]), np.uint64(state[2])
    for d in range(state[0], begin.shape[0]):
        i, end = begin[d], stop[d]
        if d == state[0]:
            i += np.uint64(state[3])
        while i < end:
            if np.int64(v) >= half:
                state[0], state[1], state[2], state[3] = d, n, v, i - begin[d]
                return False
            b = data[i]
            c = fold[b]
            if c == 0 and b < 128:
                i += _ONE
                continue
            s, h, extra, wide = i, _ZERO, _ZERO, False
            while True:
                if c != 0:
                    h = _rolled(h, c)
                    i += _ONE
                elif b < 128:
                    break
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
                        if i == s:
                            i += k
                            extra += k
                        break
                    wide = True
                    for j in range(k):
                        h = _rolled(h, data[i + np.uint64(j)])
                    i += k
                    extra += k - _ONE
                if i >= end:
                    break
                b = data[i]
                c = fold[b]
            size = i - s
            if size - extra < np.uint64(2):
                continue
            short = size <= _EXACT and not wide
            if not short:
                h |= _TOP
            p = (h * _K) >> shift
            while True:
                q = keys[p]
                if q == h:
                    t = ids[p]
                    if short:
                        break
                    if np.uint64(length[t]) == size:
                        a = at[t]
                        same = True
                        for j in range(size):
                            x, y = data[a + np.uint64(j)], data[s + np.uint64(j)]
                            if x != y and (fold[x] != fold[y] or fold[x] == 0):
                                same = False
                                break
                        if same:
                            break
                elif q == _ZERO:
                    t = np.uint32(v)
                    keys[p], ids[p] = h, t
                    at[v], length[v] = s, np.uint32(size)
                    v += _ONE
                    break
                p = (p + _ONE) & mask
            tokens[n] = t
            n += _ONE
        ends[d] = n
    state[0], state[1], state[2] = begin.shape[0], n, v
    return True


@nb.njit(cache=True, nogil=True)
def spelled(data: Any, at: Any, length: Any, fold: Any, offsets: Any, out: Any) -> None:  # pragma: no cover - compiled
    """The bytes of each distinct token, folded, one after the other."""
    for t in range(at.shape[0]):
        place, start = offsets[t], at[t]
        for j in range(length[t]):
            b = data[start + np.uint64(j)]
            out[place + j] = fold[b] if fold[b] != 0 else b


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
    shift, mask = np.uint64(64 - _bits(keys.shape[0])), np.uint64(keys.shape[0] - 1)
    half = keys.shape[0] // 2
    n, v = np.uint64(state[1]), np.uint64(state[2])
    for d in range(state[0], ends.shape[0]):
        begin = np.uint64(ends[d - 1]) if d > 0 else _ZERO
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
                    h = (h ^ np.uint64(tokens[i + np.uint64(j)])) * _K
                    h ^= h >> np.uint64(29)
                h |= _TOP
                p = (h * _K) >> shift
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
                    elif q == _ZERO:
                        t = np.uint32(v)
                        keys[p], ids[p] = h, t
                        at[v], size[v] = i, np.uint32(k)
                        v += _ONE
                        break
                    p = (p + _ONE) & mask
                out[n] = t
                n += _ONE
                i += _ONE
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
                i += _ONE
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
                        i += _ONE
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
                        s += _ONE
                    out[n] = 32
                    n += 1
                    cuts[pieces] = n
                    pieces += 1
                if i < end:  # step over the character that is no part of a word
                    b = data[i]
                    i += _ONE
                    while i < end and (data[i] & 0xC0) == 0x80:
                        i += _ONE
        out_ends[d] = pieces
    return pieces


@nb.njit(cache=True, nogil=True)
def chars(
    data: Any, cuts: Any, piece_ends: Any, low: int, high: int, places: Any, tokens: Any, ends: Any, keys: Any,
    ids: Any, at: Any, length: Any, state: Any,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
    """Character n-grams of each stretch, all sizes low … high in turn; False if the table must grow first."""
    shift, mask = np.uint64(64 - _bits(keys.shape[0])), np.uint64(keys.shape[0] - 1)
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
                    h, wide = _ZERO, False
                    for j in range(size):
                        b = data[s + np.uint64(j)]
                        wide |= b > 127
                        h = _rolled(h, b)
                    short = size <= _EXACT and not wide and h != _ZERO
                    if not short:
                        h |= _TOP
                    p = (h * _K) >> shift
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
                        elif q == _ZERO:
                            t = np.uint32(v)
                            keys[p], ids[p] = h, t
                            at[v], length[v] = s, np.uint32(size)
                            v += _ONE
                            break
                        p = (p + _ONE) & mask
                    tokens[n] = t
                    n += _ONE
        ends[d] = n
    state[0], state[1], state[2] = piece_ends.shape[0], n, v
    return True
