"""Exact sums of numbers and of their squares, by column and class.

Eight columns of a block of rows are added up at a time, class by class, in vector registers. Each number is cut into
three slices of 21 bits below the largest exponent of its column in the block; slices and their products are whole
numbers of some power of two, and the sums of at most 1,600 of them are exact in a float64 (1,600 · 1.25 · 2^42 < 2^53).
The sums of a block are added to integers of 64 bits, and these go into limbs when the largest exponent changes or 512
blocks have been added. A value too far below the largest one to fit into the slices is added alone: a float64 is an
integer of 53 bits times a power of two, and the power picks the limb. Nothing rounds, so the result equals the NumPy
way bit for bit.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.arrays import Floats, Ints
from ..limbs import Limbs
from .compiling import helper, lazy
from .llvm import eight, slice_sums, slice_sums_of_some, trailing_zeros

# The lowest limb of Σx and how many there are; twice that for Σx². Most numbers are between 2^-192 and 2^192, down to
# their last bit; 2^(−34·32) lies below the smallest subnormal, 2^−1074
NEAR, _ANY = (-6, 12), (-34, 68)

_ROWS = 1536  # of a block: a stretch is never longer, and its sums stay whole
_LANES = 8  # columns that are added up at a time
_CELLS = 1 << 16  # of a block: what has been read once stays in the second-level cache
_STRIP = 1024  # columns of a block; a wider matrix is gone through in strips
_FEWEST = 128  # rows of a block
_BLOCKS = 512  # whose sums, each below 2^53, fit into 63 bits
_NONE = -4096  # no exponent
_MASK = 0xFFFFFFFF
_SIZE = 0x7FFFFFFFFFFFFFFF  # all bits but the sign: they are ordered as the sizes are
_INFINITY = 0x7FF0000000000000
_ADDED, _INFINITE, _BEYOND = 1, 0, 2  # how adding ended
_SMALLEST, _LARGEST = -400, 480  # exponents between which neither the lowest nor the highest product leaves float64


def moments(labels: Ints, n_labels: int, x: Floats) -> tuple[Limbs, Limbs, Limbs] | None:
    """How many, Σ x and Σ x² for each position and class (group position · n_labels + class), not yet carried.

    NaN adds nothing. None where a value is infinite.
    """
    width = x.shape[1]
    labels, values = np.ascontiguousarray(labels, dtype=np.int64), np.ascontiguousarray(x, dtype=np.float64)
    if width >= _LANES:
        finite, lowest, n, x_sum, xx_sum = _summed(labels, n_labels, values)
    else:  # several rows of one class side by side
        together = {1: 8, 2: 4, 3: 2, 4: 2}.get(width, 1)
        most = len(x) // together + min(n_labels, len(x))
        packed, of_class, n = np.zeros((most, _LANES)), np.empty(most, np.int64), np.zeros(width * n_labels, np.int64)
        rows = _side_by_side(labels, n_labels, values, together, packed, of_class, n, np.zeros(n_labels, np.int64))
        finite, lowest, _, *sums = _summed(of_class[:rows], n_labels, packed[:rows])
        each = (s.reshape(together, _LANES // together, n_labels, -1)[:, :width].sum(axis=0) for s in sums)
        x_sum, xx_sum = (s.reshape(width * n_labels, -1) for s in each)
    if not finite:
        return None
    return Limbs(0, n[:, None]), _trimmed(lowest, x_sum), _trimmed(2 * lowest, xx_sum)


def _summed(labels: Ints, n_labels: int, x: Floats) -> tuple[bool, int, Ints, Ints, Ints]:
    """Whether all is finite, the lowest limb of Σx, how many, and the limbs of Σx and Σx²."""
    for lowest, limbs in (NEAR, _ANY):
        out, room = room_for(n_labels, x, limbs)
        found = _moments(labels, n_labels, x, -32 * lowest, *out, *room)
        if found != _BEYOND:
            break
    return found == _ADDED, lowest, *out


def room_for(n_labels: int, x: Floats, limbs: int) -> tuple[tuple[Ints, Ints, Ints], tuple[Any, ...]]:
    """What `_moments` adds to, and room for it to work."""
    width, groups, eights = x.shape[1], x.shape[1] * n_labels, -(-x.shape[1] // _LANES)
    height = min(max(_CELLS // min(eights * _LANES, _STRIP), _FEWEST), _ROWS)
    out = np.zeros(groups, np.int64), np.zeros((groups, limbs), np.int64), np.zeros((groups, 2 * limbs), np.int64)
    rows = np.zeros(height, np.uint64), np.zeros(height, np.int64), np.zeros(height + 8, np.uint8)
    room = np.zeros((2, n_labels + 1), np.int64), np.zeros(width, np.int64)
    # Of each eight columns and class, what has been added up and not yet been carried into limbs
    whole, tops = np.zeros((eights, n_labels, 7, _LANES), np.int64), np.full(eights * _LANES, _NONE)
    units = np.full(eights * _LANES, np.inf), np.ones((eights, 2, _LANES))  # with which nothing fits
    return out, (*rows, *room, whole, tops, *units)


def _trimmed(lowest: int, array: Ints) -> Limbs:
    used = np.flatnonzero(array.any(axis=0))
    if len(used) == 0:
        return Limbs(0, np.zeros((array.shape[0], 1), dtype=np.int64))
    return Limbs(lowest + int(used[0]), array[:, used[0] : used[-1] + 1])


@helper
def _by_class(labels: Any, n_labels: int, first: int, width: int, order: Any, row: Any, starts: Any, free: Any) -> None:
    """The places of the rows from `first` on, sorted by class, which rows they are, and where each class starts."""
    for y in range(n_labels + 1):  # one by one: Numba takes two seconds to compile the assignment of a whole array
        starts[y] = 0
    for i in range(labels.shape[0]):
        starts[labels[i] + 1] += 1
    for y in range(n_labels):
        free[y] = starts[y]
        starts[y + 1] += starts[y]
    for i in range(labels.shape[0]):
        to = free[labels[i]]
        order[to], row[to] = (first + i) * width, first + i
        free[labels[i]] += 1


@helper
def _sizes(bits: Any, width: int, first: int, rows: int, size: Any, left: int, right: int) -> None:
    """The bits of the largest size in each of some columns of a block; more than infinity's where one is NaN."""
    some = size[left:right]
    for j in range(some.shape[0]):
        some[j] = 0
    for i in range(first, first + rows):
        at = i * width + left
        row = bits[at : at + some.shape[0]]
        for j in range(some.shape[0]):
            some[j] = max(some[j], row[j] & _SIZE)


@helper
def _largest_number(bits: Any, width: int, first: int, rows: int, column: int) -> Any:
    """The bits of the largest size in a column of a block that is not NaN."""
    top = np.int64(0)
    for i in range(first, first + rows):
        size = bits[i * width + column] & _SIZE
        top = max(top, size if size <= _INFINITY else np.int64(0))
    return top


@helper
def _power(exponent: int) -> Any:
    """2^exponent, from its bits."""
    return np.int64((exponent + 1023) << 52).view(np.float64)


@helper
def _carry(whole: Any, lane: int, top: int, zero: int, group: int, x_sum: Any, xx_sum: Any) -> None:
    """Move what `slice_sums` has added up in one column to the limbs of its groups; all numbers are below 2^top.

    The limbs begin at 2^-zero, those of the squares at 2^(-2·zero).
    """
    unit = top - 21 + zero
    for y in range(whole.shape[0]):
        for k in range(7):
            m = whole[y, k, lane]
            whole[y, k, lane] = 0
            if m != 0 and k < 2:
                _add(m, unit - 21 * (k + 1), x_sum[group + y])
            elif m != 0:
                twice = 1 if k == 3 or k == 5 else 0  # of mixed products
                _add(m, 2 * unit - 21 * (k - 2) + twice, xx_sum[group + y])


@helper
def _add(m: int, place: int, limbs: Any) -> None:
    """Add a whole number, times 2^place in units of the lowest limb."""
    k, r = place >> 5, place & 31
    low, high = (m & _MASK) << r, (m >> 32) << r  # also below zero: m = high · 2^32 + low, and low is not negative
    limbs[k] += low & _MASK
    limbs[k + 1] += (low >> 32) + (high & _MASK)
    limbs[k + 2] += high >> 32


@helper
def _add_alone(bits: int, zero: int, x_sum: Any, xx_sum: Any) -> Any:
    """Add one float64 and its square, given its bits; NaN adds nothing. False where it lies beyond the limbs."""
    biased = (bits >> 52) & 0x7FF
    m = bits & 0xFFFFFFFFFFFFF
    if biased == 0x7FF:
        return True
    if biased > 0:
        m |= 0x10000000000000
    else:
        biased = 1
    power = biased - 1075 + zero
    if power < 0 or power + 96 >= 32 * x_sum.shape[0]:
        return m == 0
    _add(m if bits >= 0 else -m, power, x_sum)
    # m² in 32-bit words: low² + 2·low·high·2^32 + high²·2^64
    low, high = m & _MASK, m >> 32
    u = np.uint64(low) * np.uint64(low)
    w0 = np.int64(u & np.uint64(_MASK))
    t = np.int64(u >> np.uint64(32)) + 2 * low * high
    w1 = t & _MASK
    t = (t >> 32) + high * high
    place = 2 * power
    k, r = place >> 5, place & 31
    w0, w1, w2, w3 = w0 << r, w1 << r, (t & _MASK) << r, (t >> 32) << r
    xx_sum[k] += w0 & _MASK
    xx_sum[k + 1] += (w0 >> 32) + (w1 & _MASK)
    xx_sum[k + 2] += (w1 >> 32) + (w2 & _MASK)
    xx_sum[k + 3] += (w2 >> 32) + (w3 & _MASK)
    xx_sum[k + 4] += w3 >> 32
    return True


@lazy("int64(int64[::1], int64, const float64[:, ::1], int64, float64[:, ::1], int64[::1], int64[::1], int64[::1])")
def _side_by_side(
    labels: Any, n_labels: int, x: Any, together: int, packed: Any, of_class: Any, n: Any, free: Any
) -> Any:
    """Put several rows of one class into each row of `packed`, and count what is not NaN; returns how many rows.

    `free` has a zero for each class.
    """
    flat, rows, width = packed.reshape(-1), 0, x.shape[1]
    for i in range(labels.shape[0]):
        free[labels[i]] += 1
    for y in range(n_labels):
        for j in range(width):
            n[j * n_labels + y] = free[y]
        last = rows + (free[y] + together - 1) // together
        free[y] = rows * together
        for row in range(rows, last):
            of_class[row] = y
        rows = last
    step = _LANES // together
    for i in range(labels.shape[0]):
        y = labels[i]
        place = free[y] * step
        free[y] += 1
        for j in range(width):
            v = x[i, j]
            flat[np.uint64(place + j)] = v
            if v != v:
                n[j * n_labels + y] -= 1
    return rows


@lazy(
    "int64(int64[::1], int64, const float64[:, ::1], int64, int64[::1], int64[:, ::1], int64[:, ::1], "
    "uint64[::1], int64[::1], uint8[::1], int64[:, ::1], int64[::1], int64[:, :, :, ::1], int64[::1], float64[::1], "
    "float64[:, :, ::1])"
)
def _moments(
    labels: Any, n_labels: int, x: Any, zero: int, n: Any, x_sum: Any, xx_sum: Any, order: Any, row: Any, lost: Any,
    by_class: Any, sizes: Any, whole: Any, tops: Any, magic: Any, units: Any,
) -> Any:  # fmt: skip
    """Add the rows to the sums, whose limbs begin at 2^-zero and 2^(-2·zero). What follows them is room to work.

    _ADDED; _INFINITE at an infinite number; _BEYOND at one that the limbs do not reach.
    """
    width, eights, height = x.shape[1], whole.shape[0], order.shape[0]
    bits, strip = x.reshape(-1).view(np.int64), min(eights * _LANES, _STRIP)
    starts, free, flat, flat_units = by_class[0], by_class[1], whole.reshape(-1), units.reshape(-1)
    for i in range(labels.shape[0]):
        n[labels[i]] += 1
    for column in range(1, width):
        for y in range(n_labels):
            n[column * n_labels + y] = n[y]
    for first in range(0, x.shape[0], height):
        rows = min(height, x.shape[0] - first)
        _by_class(labels[first : first + rows], n_labels, first, width, order, row, starts, free)
        for i in range(8):
            lost[rows + i] = 0
        for e in range(eights):
            left = min(e * _LANES, width - _LANES)  # the last columns may be looked at twice, and are added once
            if e * _LANES % strip == 0:
                _sizes(bits, width, first, rows, sizes, e * _LANES, min(e * _LANES + strip, width))
            missing, lanes = False, np.uint64(0)
            for j in range(e * _LANES - left, _LANES):
                column, lane = left + j, e * _LANES + j
                size, group = sizes[column], column * n_labels
                if size > _INFINITY:
                    missing = True
                    size = _largest_number(bits, width, first, rows, column)
                    for i in range(first, first + rows):
                        n[group + labels[i]] -= np.isnan(x[i, column])
                if size == _INFINITY:
                    return _INFINITE
                if size == 0:
                    continue
                top = (size >> 52) - 1022  # every size is below 2^top
                sliced = _SMALLEST <= top <= _LARGEST
                if sliced and not 63 <= top + zero < 32 * x_sum.shape[1] - 96:
                    return _BEYOND
                if not (sliced and top <= tops[lane] <= top + 1):  # one bit too many costs less than carrying
                    _carry(whole[e], j, tops[lane], zero, group, x_sum, xx_sum)
                    tops[lane], magic[lane] = _NONE, np.inf
                    if sliced:
                        tops[lane], magic[lane] = top, 1.5 * _power(top - 21 + 52)
                        units[e, 0, j], units[e, 1, j] = _power(42 - top), _power(42 - 2 * top)
                if sliced:
                    lanes |= np.uint64(1) << np.uint64(j)
                else:
                    for i in range(first, first + rows):
                        to = group + labels[i]
                        if not _add_alone(bits[i * width + column], zero, x_sum[to], xx_sum[to]):
                            return _BEYOND
            if lanes == 0:
                continue
            at, place = np.uint64(e * _LANES), np.uint64(e * n_labels * 7 * _LANES)
            for y in range(n_labels):
                begin, end = np.uint64(starts[y]), np.uint64(starts[y + 1])
                if begin < end and missing:
                    slice_sums_of_some(x, order, begin, end, np.uint64(left), magic, flat_units, at, flat, place, lost)
                elif begin < end:
                    slice_sums(x, order, begin, end, np.uint64(left), magic, flat_units, at, flat, place, lost)
                place += np.uint64(7 * _LANES)
            lanes *= np.uint64(0x0101010101010101)
            for o in range(np.uint64(0), np.uint64(rows), np.uint64(8)):
                left_out = eight(lost, o) & lanes
                while left_out > 0:
                    bit = trailing_zeros(left_out)
                    left_out &= left_out - np.uint64(1)
                    which = o + (bit >> np.uint64(3))
                    column = left + np.int64(bit & np.uint64(7))
                    to = column * n_labels + labels[row[which]]
                    if not _add_alone(bits[order[which] + np.uint64(column)], zero, x_sum[to], xx_sum[to]):
                        return _BEYOND
        if (first // height) % _BLOCKS == _BLOCKS - 1 or first + height >= x.shape[0]:
            for e in range(eights):
                for j in range(_LANES):
                    group = (min(e * _LANES, width - _LANES) + j) * n_labels
                    _carry(whole[e], j, tops[e * _LANES + j], zero, group, x_sum, xx_sum)
    return _ADDED
