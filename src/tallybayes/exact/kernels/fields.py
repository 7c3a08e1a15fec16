"""The fields of whole lines of a CSV: where they end, the numbers that they spell, and texts one behind the other.

Only what nobody could misread is read here; lines with quotes do not come here at all. 64 bytes at a time become 64
bits that say where a field may end, so no loop ends at a byte that a processor could not foresee. A number of up to
eight characters is read as one number of 64 bits, without a branch for its point.

A number is digits, with a minus before or a point among them, and its digits are a whole number below 2^53: that and
the power of ten are float64 values, so one division gives the nearest one to what was written. Any other is left to
whoever asks.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiling import helper, lazy
from .llvm import eight, fold_block, marks_of, trailing_zeros

_ONE, _SEVEN, _EIGHT, _BLOCK = np.uint64(1), np.uint64(7), np.uint64(8), np.uint64(64)
_LF, _CR, _MINUS, _POINT = 10, 13, 45, 46
_ODD = -1
_ONES, _HIGHS = np.uint64(0x0101010101010101), np.uint64(0x8080808080808080)
_ZEROS, _POINTS = np.uint64(0x3030303030303030), np.uint64(0x1E1E1E1E1E1E1E1E)  # "0", and what makes of that a "."
_BEYOND_NINE = np.uint64(0x7676767676767676)  # added to a byte above nine it sets the highest bit
_TENS = np.array([float(10**k) for k in range(17)])
_LONGEST = 17  # characters of a number behind its sign: sixteen digits and a point


@lazy("int64(const uint8[::1], uint8, uint8[::1], int32[::1], int32[:, ::1])")
def cut(data: Any, delimiter: Any, tail: Any, begins: Any, ends: Any) -> Any:
    """Where each row begins, and each of its fields ends: fields × rows. Returns how many rows there are.

    −1 where a line has other fields than `ends` has room for, a "\\r" stands alone, or the last line does not end.
    Lines end with "\\n" or "\\r\\n", empty ones are no rows. `tail` is room for 64 bytes.
    """
    last, row, field, begin = ends.shape[0] - 1, 0, 0, np.int64(0)
    size = np.uint64(data.shape[0])
    for first in range(np.uint64(0), size, _BLOCK):
        if first + _BLOCK <= size:
            marks = marks_of(data, first, delimiter)
        else:  # not to read behind the lines
            for i in range(size - first):
                tail[i] = data[first + np.uint64(i)]
            marks = marks_of(tail, np.uint64(0), delimiter) & ((_ONE << (size - first)) - _ONE)
        while marks != 0:
            place = first + trailing_zeros(marks)
            marks &= marks - _ONE
            byte, p = data[place], np.int64(place)
            if byte == delimiter:
                if field == last:
                    return _ODD
                ends[field, row] = p
                field += 1
            elif byte == _LF:
                end = p - np.int64(p > begin and data[place - _ONE] == _CR)
                if field != last:
                    if field > 0 or end > begin:
                        return _ODD
                else:
                    begins[row], ends[field, row] = begin, end
                    row += 1
                begin, field = p + 1, 0
            elif place + _ONE == size or data[place + _ONE] != _LF:
                return _ODD
    return row if begin == data.shape[0] else _ODD


@helper
def _short(data: Any, end: Any, size: Any) -> Any:
    """A number of up to eight characters, without its sign; NaN where it is none that is read here."""
    beyond = (_EIGHT - size) * _EIGHT
    digits = (eight(data, end - _EIGHT) ^ _ZEROS) >> beyond << beyond  # what stands before it counts as zeros
    point = digits ^ _POINTS
    point = (point - _ONES) & ~point & _HIGHS  # the lowest bit is that of the first point
    fraction = np.uint64(0)
    if point != 0:
        at = trailing_zeros(point) - _SEVEN
        fraction = _SEVEN - at // _EIGHT
        if fraction == 0 or at == beyond:
            return np.nan
        digits = ((digits & ((_ONE << at) - _ONE)) << _EIGHT) | (digits >> at >> _EIGHT << at << _EIGHT)
    if ((digits + _BEYOND_NINE) | digits) & _HIGHS != 0:
        return np.nan
    # Two digits at a time, then four, then eight; the first stands in the lowest byte
    digits = digits * np.uint64(10) + (digits >> _EIGHT)
    fours = np.uint64(0x000000FF000000FF)
    high = (digits & fours) * np.uint64(0x000F424000000064)
    low = ((digits >> np.uint64(16)) & fours) * np.uint64(0x0000271000000001)
    return np.float64((high + low) >> np.uint64(32)) / _TENS[fraction]


@helper
def _long(data: Any, begin: Any, end: Any) -> Any:
    """The same of a number of up to seventeen characters."""
    whole, point = 0, -1
    for i in range(begin, end):
        digit = int(data[np.uint64(i)]) - 48
        if 0 <= digit <= 9:
            whole = whole * 10 + digit
        elif digit == _POINT - 48 and point < 0 and begin < i < end - 1:
            point = i
        else:
            return np.nan
    if whole > 1 << 53:
        return np.nan
    return np.float64(whole) / _TENS[end - point - 1 if point >= 0 else 0]


@lazy("int64(const uint8[::1], const int32[::1], int64, const int32[::1], float64[::1])")
def numbers(data: Any, begins: Any, shift: int, ends: Any, out: Any) -> Any:
    """The numbers that stand from begins + shift to the ends, NaN where nothing does; returns how many those are.

    −1 where one is not read here.
    """
    missing = np.int64(0)
    for i in range(out.shape[0]):
        begin, end = np.int64(begins[i]) + shift, np.int64(ends[i])
        if begin == end:
            out[i] = np.nan
            missing += 1
            continue
        negative = data[np.uint64(begin)] == _MINUS
        begin += np.int64(negative)
        size = end - begin
        if size > _LONGEST or size == 0:
            return _ODD
        value = _short(data, np.uint64(end), np.uint64(size)) if size <= 8 <= end else _long(data, begin, end)
        if value != value:
            return _ODD
        out[i] = -value if negative else value
    return missing


@lazy("int64(const uint8[::1], const int32[::1], int64, const int32[::1], int32[::1], uint8[::1])")
def texts(data: Any, begins: Any, shift: int, ends: Any, edges: Any, letters: Any) -> Any:
    """Copy what stands from begins + shift to the ends, one behind the other, and where each begins and the last ends.

    Returns how many are empty. 64 bytes behind the last letter are written to as well.
    """
    at, empty = np.uint64(0), np.int64(0)
    behind = np.uint64(data.shape[0])
    for i in range(edges.shape[0] - 1):
        begin = np.uint64(np.int64(begins[i]) + shift)
        size = np.uint64(ends[i]) - begin
        edges[i] = at
        if size <= _BLOCK and begin + _BLOCK <= behind:
            fold_block(data, begin, letters, at, False)
        else:
            for j in range(size):
                letters[at + np.uint64(j)] = data[begin + np.uint64(j)]
        empty += np.int64(size == 0)
        at += size
    edges[edges.shape[0] - 1] = at
    return empty
