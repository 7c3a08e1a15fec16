"""Numba twins of the exact sums. Import this module only through `exact.kernels`, which knows when it repays.

Eight columns of a block of rows are added up at a time, class by class, in vector registers. Each number is cut into
three slices of 21 bits below the largest exponent of its column in the block; slices and their products are whole
numbers of some power of two, and the sums of at most 1,600 of them are exact in a float64 (1,600 · 1.25 · 2^42 < 2^53).
The few sums of a stretch go into integer limbs. A value too far below the largest one to fit into the slices is added
alone: a float64 is an integer of 53 bits times a power of two, and the power picks the limb. Nothing rounds, so the
result equals the NumPy way bit for bit.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from .intrinsics import largest_of_eight, slice_sums
from .lazykernel import lazy
from .numerics import Floats, Ints, Limbs

# The lowest limb of Σx and how many there are; twice that for Σx². Most numbers are between 2^-192 and 2^192, down to
# their last bit; 2^(−34·32) lies below the smallest subnormal, 2^−1074
_NEAR, _ANY = (-6, 12), (-34, 68)

_ROWS = 1536  # of a block: a stretch is never longer, and its sums stay whole
_LANES = 8  # columns that are added up at a time
_WIDE = 64  # columns whose sizes are looked at row by row; of more, eight at a time, so that they stay in the cache
_AHEAD = 24  # rows that are asked for before they are read
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
        rows = _side_by_side(labels, n_labels, values, together, packed, of_class, n)
        finite, lowest, _, *sums = _summed(of_class[:rows], n_labels, packed[:rows])
        each = (s.reshape(together, _LANES // together, n_labels, -1)[:, :width].sum(axis=0) for s in sums)
        x_sum, xx_sum = (s.reshape(width * n_labels, -1) for s in each)
    if not finite:
        return None
    return Limbs(0, n[:, None]), _trimmed(lowest, x_sum), _trimmed(2 * lowest, xx_sum)


def _summed(labels: Ints, n_labels: int, x: Floats) -> tuple[bool, int, Ints, Ints, Ints]:
    """Whether all is finite, the lowest limb of Σx, how many, and the limbs of Σx and Σx²."""
    groups = x.shape[1] * n_labels
    for lowest, limbs in (_NEAR, _ANY):
        out = np.zeros(groups, np.int64), np.zeros((groups, limbs), np.int64), np.zeros((groups, 2 * limbs), np.int64)
        found = _moments(labels, n_labels, x, -32 * lowest, *out)
        if found != _BEYOND:
            break
    return found == _ADDED, lowest, *out


def _trimmed(lowest: int, array: Ints) -> Limbs:
    used = np.flatnonzero(array.any(axis=0))
    if len(used) == 0:
        return Limbs(0, np.zeros((array.shape[0], 1), dtype=np.int64))
    return Limbs(lowest + int(used[0]), array[:, used[0] : used[-1] + 1])


@nb.njit(cache=True, nogil=True)
def _by_class(
    labels: Any, n_labels: int, first: int, width: int, order: Any, starts: Any, free: Any
) -> None:  # pragma: no cover - compiled
    """The places of the rows from `first` on, sorted by class, and where each class starts."""
    for y in range(n_labels + 1):  # one by one: Numba takes two seconds to compile the assignment of a whole array
        starts[y] = 0
    for i in range(labels.shape[0]):
        starts[labels[i] + 1] += 1
    for y in range(n_labels):
        free[y] = starts[y]
        starts[y + 1] += starts[y]
    for i in range(labels.shape[0]):
        order[free[labels[i]]] = (first + i) * width
        free[labels[i]] += 1


@nb.njit(cache=True, nogil=True)
def _sizes(bits: Any, width: int, first: int, rows: int, left: int, size: Any) -> None:  # pragma: no cover - compiled
    """The bits of the largest size in each of some columns of a block; more than infinity's where one is NaN."""
    if size.shape[0] == _LANES:
        place, step = np.uint64(first * width + left), np.uint64(width)
        largest_of_eight(bits, place, step, np.uint64(rows), np.uint64(_AHEAD * width), size)
        return
    for j in range(size.shape[0]):
        size[j] = 0
    for i in range(first, first + rows):
        at = i * width + left
        row = bits[at : at + size.shape[0]]
        for j in range(size.shape[0]):
            size[j] = max(size[j], row[j] & _SIZE)


@nb.njit(cache=True, nogil=True)
def _largest_number(bits: Any, width: int, first: int, rows: int, column: int) -> Any:  # pragma: no cover - compiled
    """The bits of the largest size in a column of a block that is not NaN, and how many are NaN."""
    top, missing = np.int64(0), 0
    for i in range(first, first + rows):
        size = bits[i * width + column] & _SIZE
        top = max(top, size if size <= _INFINITY else np.int64(0))
        missing += size > _INFINITY
    return top, missing


@nb.njit(cache=True, nogil=True)
def _power(exponent: int) -> Any:  # pragma: no cover - compiled
    """2^exponent, from its bits."""
    return np.int64((exponent + 1023) << 52).view(np.float64)


@nb.njit(cache=True, nogil=True)
def _add_sums(sums: Any, j: int, unit: int, zero: int, x_sum: Any, xx_sum: Any) -> None:  # pragma: no cover - compiled
    """Add what `slice_sums` has summed of one column to the limbs of a group; high slices are in units of 2^unit.

    The limbs begin at 2^-zero, those of the squares at 2^(-2·zero).
    """
    for k in range(2):
        places = 21 * (k + 1)  # below 2^unit
        _add(sums[k, j] * _power(places - unit), unit - places + zero, x_sum)
    for k in range(5):
        twice = 2.0 if k == 1 or k == 3 else 1.0  # of mixed products
        _add(twice * sums[2 + k, j] * _power(21 * k - 2 * unit), 2 * (unit + zero) - 21 * k, xx_sum)


@nb.njit(cache=True, nogil=True)
def _add(whole: float, place: int, limbs: Any) -> None:  # pragma: no cover - compiled
    """Add a whole number, times 2^place in units of the lowest limb."""
    m = np.int64(abs(whole))
    k, r = place >> 5, place & 31
    low, high = (m & _MASK) << r, (m >> 32) << r
    if whole < 0:
        limbs[k] -= low & _MASK
        limbs[k + 1] -= (low >> 32) + (high & _MASK)
        limbs[k + 2] -= high >> 32
    else:
        limbs[k] += low & _MASK
        limbs[k + 1] += (low >> 32) + (high & _MASK)
        limbs[k + 2] += high >> 32


@nb.njit(cache=True, nogil=True)
def _add_alone(bits: int, zero: int, x_sum: Any, xx_sum: Any) -> Any:  # pragma: no cover - compiled
    """Add one float64 and its square, given its bits; False where it lies beyond the limbs."""
    biased = (bits >> 52) & 0x7FF
    m = bits & 0xFFFFFFFFFFFFF
    if biased > 0:
        m |= 0x10000000000000
    else:
        biased = 1
    power = biased - 1075 + zero
    if power < 0 or power + 64 >= 32 * x_sum.shape[0] - 32:
        return m == 0
    _add(float(m) if bits >= 0 else -float(m), power, x_sum)
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


@lazy("int64(int64[::1], int64, Array(float64, 2, 'C', True), int64, float64[:, ::1], int64[::1], int64[::1])")
def _side_by_side(
    labels: Any, n_labels: int, x: Any, together: int, packed: Any, of_class: Any, n: Any
) -> Any:  # pragma: no cover - compiled
    """Put several rows of one class into each row of `packed`, and count what is not NaN; returns how many rows."""
    free, flat, rows, width = np.zeros(n_labels, np.int64), packed.reshape(-1), 0, x.shape[1]
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


# Arrow's arrays are read-only, which is a type of its own: one signature takes both
@lazy("int64(int64[::1], int64, Array(float64, 2, 'C', True), int64, int64[::1], int64[:, ::1], int64[:, ::1])")
def _moments(
    labels: Any, n_labels: int, x: Any, zero: int, n: Any, x_sum: Any, xx_sum: Any
) -> Any:  # pragma: no cover - compiled
    """Add the rows to the sums, whose limbs begin at 2^-zero and 2^(-2·zero).

    _ADDED; _INFINITE at an infinite number; _BEYOND at one that the limbs do not reach.
    """
    width = x.shape[1]
    bits = x.reshape(-1).view(np.int64)
    tile = width if width <= _WIDE else _LANES
    order, lost, sums = np.empty(_ROWS, np.uint64), np.empty(_ROWS, np.uint8), np.empty((7, _LANES))
    starts, free = np.empty(n_labels + 1, np.int64), np.empty(n_labels + 1, np.int64)
    sizes, magic = np.empty(tile, np.int64), np.empty(_LANES)
    whole, alone = np.empty(_LANES, np.bool_), np.empty(_LANES, np.bool_)
    for first in range(0, x.shape[0], _ROWS):
        rows = min(_ROWS, x.shape[0] - first)
        _by_class(labels[first : first + rows], n_labels, first, width, order, starts, free)
        begin = -width
        for done in range(0, width, _LANES):
            left = min(done, width - _LANES)  # the last columns may be looked at twice, and are added once
            if left + _LANES > begin + tile:
                begin = left
                _sizes(bits, width, first, rows, begin, sizes)
            for j in range(_LANES):
                size, missing = sizes[left - begin + j], 0
                if size > _INFINITY:
                    size, missing = _largest_number(bits, width, first, rows, left + j)
                if size == _INFINITY:
                    return _INFINITE
                sizes[left - begin + j] = size
                top = (size >> 52) - 1022  # every size is below 2^top
                new = left + j >= done
                whole[j] = new and size > 0 and _SMALLEST <= top <= _LARGEST
                alone[j] = new and size > 0 and not whole[j]
                if whole[j] and not (63 <= top + zero < 32 * x_sum.shape[1] - 64):
                    return _BEYOND
                magic[j] = 1.5 * _power(top - 21 + 52) if whole[j] else 1.0
                if new:
                    for y in range(n_labels):
                        n[(left + j) * n_labels + y] += starts[y + 1] - starts[y]
                    if missing > 0:
                        for i in range(first, first + rows):
                            n[(left + j) * n_labels + labels[i]] -= np.isnan(x[i, left + j])
            for y in range(n_labels):
                if starts[y + 1] > starts[y]:
                    from_here, to = np.uint64(starts[y]), np.uint64(starts[y + 1])
                    slice_sums(x, order, from_here, to, np.uint64(left), magic, sums, lost)
                    for j in range(_LANES):
                        group = (left + j) * n_labels + y
                        if whole[j]:
                            unit = (sizes[left - begin + j] >> 52) - 1022 - 21
                            _add_sums(sums, j, unit, zero, x_sum[group], xx_sum[group])
                    for o in range(starts[y], starts[y + 1]):
                        if lost[o] > 0:
                            for j in range(_LANES):
                                if whole[j] and (lost[o] >> j) & 1:
                                    group = (left + j) * n_labels + y
                                    at = order[o] + np.uint64(left + j)
                                    if not _add_alone(bits[at], zero, x_sum[group], xx_sum[group]):
                                        return _BEYOND
            for j in range(_LANES):
                if alone[j]:
                    for i in range(first, first + rows):
                        if not np.isnan(x[i, left + j]):
                            group = (left + j) * n_labels + labels[i]
                            at = np.uint64(i * width + left + j)
                            if not _add_alone(bits[at], zero, x_sum[group], xx_sum[group]):
                                return _BEYOND
    return _ADDED
