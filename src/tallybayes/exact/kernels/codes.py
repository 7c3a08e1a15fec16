"""Few different texts to codes, as Arrow's dictionary does it, and codes and cells counted by class."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..cells import REACH
from ..line import MIDDLE
from .compiling import INDICES, helper, lazy
from .llvm import eight

_ODD, _OTHER = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xC2B2AE3D27D4EB4F)  # whose multiples are well mixed
_EIGHT = np.uint64(8)


@helper
def _first_bytes(data: Any, begin: Any, length: Any) -> Any:
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
def _same(data: Any, one: Any, other: Any, length: Any) -> Any:
    """Whether two stretches of bytes are equal."""
    same = True
    for i in range(length):
        same &= data[one + i] == data[other + i]
    return same


@lazy(
    "int64(const {i}[::1], const uint8[::1], const uint8[::1], int64, "
    "int32[::1], int64[::1], int32[::1], uint64[:, ::1])",
    i=INDICES,
)
def encode(ends: Any, data: Any, valid: Any, shift: int, codes: Any, first: Any, table: Any, known: Any) -> Any:
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


_TILE = 64
_FIRST_TAIL = int(np.float64(MIDDLE).view(np.int64)) >> 48  # the leading bits of the first distance in the tails


@lazy("void(const {i}[::1], int64[::1], int64[:, ::1])", i=INDICES)
def count(codes: Any, labels: Any, table: Any) -> None:
    """Add a one to table[code, label] for each row with a code of at least 0."""
    for i in range(codes.shape[0]):
        if codes[i] >= 0:
            table[codes[i], labels[i]] += 1


@lazy("boolean(const float64[::1], int64[::1], float64, float64, float64[::1], int64[:, ::1])")
def count_cells(values: Any, labels: Any, centre: float, scale: float, points: Any, table: Any) -> Any:
    """Add a one to table[place of the value's cell, label] for each value but NaN; see `cells.codes_at`.

    `scale` is one over the width of a cell, a power of two. Returns False at a value out of reach.
    """
    for i in range(values.shape[0]):
        v = values[i]
        if v != v:
            continue
        low, high = 0, points.shape[0]
        while low < high:
            middle = (low + high) >> 1
            if points[middle] < v:
                low = middle + 1
            else:
                high = middle
        if low < points.shape[0] and points[low] == v:
            table[2 * REACH + low, labels[i]] += 1
            continue
        distance = v - centre
        q = distance * scale
        if abs(q) < MIDDLE:
            code = np.int64(np.floor(q))
            if q == 0.0 and distance < 0.0:  # it has underflowed, and is still left of the centre
                code = np.int64(-1)
        else:
            bits = np.float64(abs(q)).view(np.int64)  # exponent, then the four bits that number the cells of a doubling
            code = MIDDLE + (bits >> 48) - _FIRST_TAIL
            if code >= REACH:
                return False
            code = code if q > 0 else -1 - code
        table[REACH + code, labels[i]] += 1
    return True


@lazy("void(const int64[:, ::1], int64[::1], int64[::1], int64, uint64[::1])")
def count_matrix(matrix: Any, labels: Any, table: Any, n_labels: int, outside: Any) -> None:
    """Add a one to table[column, value, label], 256 values of each column, for each number in a matrix.

    A column with a value that has no place there shows in `outside`, and its counts mean nothing.
    """
    step, first = np.uint64(n_labels), np.uint64(0)
    for i in range(matrix.shape[0]):
        first = np.uint64(labels[i])
        for j in range(matrix.shape[1]):
            v = np.uint64(matrix[i, j])
            outside[j] |= v >> np.uint64(8)
            table[first + (v & np.uint64(255)) * step] += 1
            first += np.uint64(256) * step


@lazy("void(const int64[:, ::1], int32[:, ::1], int64[::1], int64[::1])")
def turned(matrix: Any, out: Any, low: Any, high: Any) -> None:
    """The columns of a matrix one after the other in int32, and the smallest and largest value of each.

    Values beyond int32 show in `low` or `high`.
    """
    width = matrix.shape[1]
    for first in range(0, matrix.shape[0], _TILE):
        rows = min(_TILE, matrix.shape[0] - first)
        for j in range(width):
            small, large = low[j], high[j]
            for i in range(first, first + rows):
                v = matrix[i, j]
                small, large = min(small, v), max(large, v)
                out[j, i] = v
            low[j], high[j] = small, large
