"""Numba twins of the tokeniser. Import only through `exact.text_kernels`.

A text is UTF-8 bytes. ASCII letters are folded on the way; texts with other letters were lowered by Python before, so
the only table needed is which code points are word characters, and it is made with Python's own `re`.

Tokens are found again by open addressing. The key of an ASCII token of up to seven bytes is the token itself; others
have a hash with the top bit set and are compared byte by byte. Nothing rests on a hash alone.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

K = np.uint64(0x9E3779B97F4A7C15)  # 2^64 / golden ratio: spreads keys over the table (Knuth)
TOP = np.uint64(1 << 63)
ONE = np.uint64(1)
ZERO = np.uint64(0)
_LOWS = np.uint64(0x0101010101010101)
_HIGHS = np.uint64(0x8080808080808080)
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)  # the place of a lone bit, by multiplication and a table of 64


@nb.njit(cache=True, nogil=True)
def bits(size: Any) -> Any:  # pragma: no cover - compiled
    """log₂ of a power of two."""
    count = 0
    while size > 1:
        size >>= 1
        count += 1
    return count


@nb.njit(cache=True, nogil=True)
def not_ascii(data: Any, wide: Any, start: Any, end: Any, out: Any) -> None:  # pragma: no cover - compiled
    """Which texts hold a byte above 127; `wide` is the same buffer, eight bytes at a time."""
    for d in range(start.shape[0]):
        first, last = (start[d] + 7) >> 3, end[d] >> 3
        high = ZERO
        for q in range(first, last):
            high |= wide[q]
        if first <= last:
            for i in range(start[d], first << 3):
                high |= np.uint64(data[i])
        else:  # a text within eight bytes
            last = start[d] >> 3
        for i in range(max(last << 3, start[d]), end[d]):
            high |= np.uint64(data[i])
        out[d] = (high & _HIGHS) != ZERO


@nb.njit(cache=True, nogil=True)
def fold(data: Any, lower: bool, out: Any) -> None:  # pragma: no cover - compiled
    """Bytes of words, ASCII letters in lower case if asked for, 0 for every other ASCII byte; higher bytes stay."""
    for i in range(data.shape[0]):
        b = data[i]
        upper = (b >= 65) & (b <= 90)
        word = upper | ((b >= 97) & (b <= 122)) | ((b >= 48) & (b <= 57)) | (b == 95) | (b >= 128)
        c = np.uint8(b + 32) if upper and lower else b
        out[i] = c if word else np.uint8(0)


@nb.njit(cache=True, nogil=True, inline="always")
def _eight(wide: Any, s: Any) -> Any:  # pragma: no cover - compiled
    """The eight bytes from s on as one number, the first in the lowest place; `wide` is the same buffer as uint64."""
    q, r = s >> np.uint64(3), (s & np.uint64(7)) << np.uint64(3)
    if r == ZERO:
        return wide[q]
    return (wide[q] >> r) | (wide[q + ONE] << (np.uint64(64) - r))


@nb.njit(cache=True, nogil=True, inline="always")
def _mixed(h: Any) -> Any:  # pragma: no cover - compiled
    return h ^ (h >> np.uint64(29))


@nb.njit(cache=True, nogil=True)
def _key(folded: Any, wide: Any, s: Any, size: Any) -> Any:  # pragma: no cover - compiled
    """The key of a token: up to seven ASCII bytes are their own key, anything else is hashed with the top bit set."""
    ascii_only = True
    for j in range(size):
        ascii_only &= folded[s + np.uint64(j)] < 128
    if ascii_only and size < np.uint64(8):
        return _eight(wide, s) & ((ONE << (size << np.uint64(3))) - ONE)
    h, first = ZERO, ZERO
    if ascii_only:
        h, first = _mixed(_eight(wide, s) * K), np.uint64(8)
    for j in range(first, size):
        h = (h ^ np.uint64(folded[s + np.uint64(j)])) * K
    return _mixed(h) | TOP


@nb.njit(cache=True, nogil=True)
def _spot(
    table: Any, folded: Any, at: Any, length: Any, s: Any, size: Any, h: Any, shift: Any, mask: Any
) -> Any:  # pragma: no cover
    """Where a token's key stands in the table, or the empty place where it belongs."""
    p = (h * K) >> shift
    while True:
        q = table[p + p]
        if q == ZERO:
            return p
        if q == h:
            t = table[p + p + ONE]
            if h < TOP:
                return p
            if length[t] == size:
                same = True
                for j in range(size):
                    if folded[at[t] + np.uint64(j)] != folded[s + np.uint64(j)]:
                        same = False
                        break
                if same:
                    return p
        p = (p + ONE) & mask


@nb.njit(cache=True, nogil=True)
def words(
    folded: Any, wide: Any, begin: Any, stop: Any, is_word: Any, lowest_bit: Any, tokens: Any, ends: Any, table: Any,
    at: Any, length: Any, state: Any,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
    """Cut texts into words of two or more characters; False if the table must grow first (`state`: where to go on).

    Eight bytes are looked at together: the first zero byte among them ends a word. Words with bytes above 127 are
    taken character by character.
    """
    size_of_table = table.shape[0] // 2
    shift, mask = np.uint64(64 - bits(size_of_table)), np.uint64(size_of_table - 1)
    half = size_of_table // 2
    n, v = np.uint64(state[1]), np.uint64(state[2])
    for d in range(state[0], begin.shape[0]):
        i, end = begin[d], stop[d]
        if d == state[0]:
            i += np.uint64(state[3])
        while i < end:
            if folded[i] == 0:
                i += ONE
                continue
            if np.int64(v) >= half:
                state[0], state[1], state[2], state[3] = d, n, v, i - begin[d]
                return False
            s = i
            w = _eight(wide, s)
            zero = (w - _LOWS) & ~w & _HIGHS
            high = w & _HIGHS
            size = np.uint64(8)
            if zero != ZERO:
                first = zero & (~zero + ONE)
                size = lowest_bit[(first * _DE_BRUIJN) >> np.uint64(58)] >> np.uint64(3)
                high &= first - ONE
            whole = zero != ZERO
            if high == ZERO:
                if s + size > end:
                    size, whole = end - s, True
                if whole:
                    i = s + size + ONE
                    if size < np.uint64(2):
                        continue
                    h = w & ((ONE << (size << np.uint64(3))) - ONE)
                else:
                    h = _mixed(w * K)
                    i = s + np.uint64(8)
                    while i < end:
                        b = folded[i]
                        if b == 0:
                            break
                        if b > 127:
                            high = ONE
                            break
                        h = (h ^ np.uint64(b)) * K
                        i += ONE
                    h = _mixed(h) | TOP
                    size = i - s
            if high != ZERO:
                i, characters = s, 0
                while i < end:
                    b = folded[i]
                    step = ONE
                    if b == 0:
                        break
                    if b > 127:
                        if b < 0xE0:
                            step, point = np.uint64(2), np.uint32(b & 0x1F)
                        elif b < 0xF0:
                            step, point = np.uint64(3), np.uint32(b & 0x0F)
                        else:
                            step, point = np.uint64(4), np.uint32(b & 0x07)
                        for j in range(1, step):
                            point = np.uint32((point << 6) | (folded[i + np.uint64(j)] & 0x3F))
                        if is_word[point] == 0:
                            break
                    i += step
                    characters += 1
                size = i - s
                if i < end:
                    i += step  # over the character that is no part of a word
                if characters < 2:
                    continue
                h = _key(folded, wide, s, size)
            p = _spot(table, folded, at, length, s, size, h, shift, mask)
            if table[p + p] == ZERO:
                table[p + p], table[p + p + ONE] = h, v
                at[v], length[v] = s, size
                v += ONE
            tokens[n] = np.uint32(table[p + p + ONE])
            n += ONE
        ends[d] = n
    state[0], state[1], state[2] = begin.shape[0], n, v
    return True


@nb.njit(cache=True, nogil=True)
def rehashed(table: Any) -> Any:  # pragma: no cover - compiled
    """A table of twice the size with the same keys and numbers."""
    size = table.shape[0]
    out = np.zeros(2 * size, np.uint64)
    shift, mask = np.uint64(64 - bits(size)), np.uint64(size - 1)
    for q in range(size // 2):
        key = table[2 * q]
        if key != ZERO:
            p = (key * K) >> shift
            while out[p + p] != ZERO:
                p = (p + ONE) & mask
            out[p + p], out[p + p + ONE] = key, table[2 * q + 1]
    return out


@nb.njit(cache=True, nogil=True)
def merge(
    folded: Any, wide: Any, table: Any, at: Any, length: Any, known: int, more_at: Any, more_length: Any, number: Any
) -> Any:  # pragma: no cover - compiled
    """Add the tokens that another thread found; `number` gets their numbers here. Returns how many are known now.

    The table must have room for all of them.
    """
    size_of_table = table.shape[0] // 2
    shift, mask = np.uint64(64 - bits(size_of_table)), np.uint64(size_of_table - 1)
    v = np.uint64(known)
    for t in range(more_at.shape[0]):
        s, size = more_at[t], more_length[t]
        h = _key(folded, wide, s, size)
        p = _spot(table, folded, at, length, s, size, h, shift, mask)
        if table[p + p] == ZERO:
            table[p + p], table[p + p + ONE] = h, v
            at[v], length[v] = s, size
            v += ONE
        number[t] = np.uint32(table[p + p + ONE])
    return v


@nb.njit(cache=True, nogil=True)
def renumber(tokens: Any, number: Any) -> None:  # pragma: no cover - compiled
    """Every token under its new number, in place."""
    for i in range(tokens.shape[0]):
        tokens[i] = number[tokens[i]]


@nb.njit(cache=True, nogil=True)
def spelled(folded: Any, at: Any, length: Any, offsets: Any, out: Any) -> None:  # pragma: no cover - compiled
    """The bytes of each distinct token, one after the other."""
    for t in range(at.shape[0]):
        place, start = offsets[t], at[t]
        for j in range(length[t]):
            out[place + j] = folded[start + np.uint64(j)]
