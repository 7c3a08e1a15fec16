"""The Numba twin of Arrow's dictionary for few different texts. Import only through `exact.code_kernels`."""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiling import helper, lazy
from .llvm import eight

_ODD, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)  # whose multiples are well mixed
_EIGHT = np.uint64(8)


@helper
def _first_bytes(data: Any, begin: Any, length: Any) -> Any:  # pragma: no cover - compiled
    """Up to eight bytes from a place on as one number."""
    if length >= _EIGHT:
        return eight(data, begin)
    if begin + _EIGHT <= np.uint64(data.shape[0]):  # what follows the text is read and cut off
        return eight(data, begin) & ((np.uint64(1) << (_EIGHT * length)) - np.uint64(1))
    out = np.uint64(0)
    for i in range(length):
        out |= np.uint64(data[begin + i]) << (_EIGHT * i)
    return out


@helper
def _same(data: Any, one: Any, other: Any, length: Any) -> Any:  # pragma: no cover - compiled
    """Whether two stretches of bytes are equal."""
    same = True
    for i in range(length):
        same &= data[one + i] == data[other + i]
    return same


@lazy(
    *[
        f"int64(Array({i}, 1, 'C', True), Array(uint8, 1, 'C', True), Array(uint8, 1, 'C', True), int64, int32[::1], "
        "int64[::1], int32[::1], uint64[:, ::1])"
        for i in ("int32", "int64")
    ]
)
def encode(
    ends: Any, data: Any, valid: Any, shift: int, codes: Any, first: Any, table: Any, known: Any
) -> Any:  # pragma: no cover - compiled
    """Number the different texts in the order in which they come: a code per row, −1 where its bit is not set.

    Text i has the bytes from ends[i] to ends[i + 1], and bit i + shift of `valid`, if that has any. `first` gets the
    row in which each text is first seen. Returns how many there are; −1 if more than `first` has room for. `table` has
    zeros, some power of two, and `known` is room for three numbers of each text.
    """
    heads, tails, lengths = known[0], known[1], known[2]
    last = np.uint64(table.shape[0] - 1)
    # The table holds the number of a text and one; 0 is free
    count = np.int64(0)
    for i in range(codes.shape[0]):
        if valid.shape[0] > 0 and not (valid[(i + shift) >> 3] >> ((i + shift) & 7)) & 1:
            codes[i] = -1
            continue
        begin = np.uint64(ends[i])
        length = np.uint64(ends[i + 1]) - begin
        # Up to 16 bytes, the first and the last eight and the length are all there is to know
        head = _first_bytes(data, begin, length)
        tail = eight(data, begin + length - _EIGHT) if length >= _EIGHT else np.uint64(0)
        mixed = (head ^ (length * _OTHER)) * _ODD + tail * _OTHER
        place = (((mixed ^ (mixed >> np.uint64(32))) * _ODD) >> np.uint64(40)) & last  # the middle bits are mixed best
        while True:
            code = np.int64(table[place]) - 1
            if code < 0:
                if count == first.shape[0]:
                    return -1
                code = count
                heads[code], tails[code], lengths[code], first[code] = head, tail, length, i
                count += 1
                table[place] = count
                break
            alike = heads[code] == head and tails[code] == tail and lengths[code] == length
            if alike and (length <= np.uint64(16) or _same(data, begin, np.uint64(ends[first[code]]), length)):
                break
            place = (place + np.uint64(1)) & last
        codes[i] = code
    return count
