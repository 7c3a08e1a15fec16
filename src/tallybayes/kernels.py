"""Numba twins of the exact sums. Import this module only through `exact.kernels`, which knows when it repays.

The rows of a block are laid out column by column and class by class. Each stretch of one column and class is cut
into three slices of 21 bits below its largest exponent; slices and their products are whole numbers of some power
of two, and at most 2^11 of them add up without rounding in a float64 (2^11 · 2^42 = 2^53). The few sums of a stretch
go into integer limbs. A value too far below the largest one to fit into the slices is added alone: a float64 is an
integer of 53 bits times a power of two, and the power picks the limb. Nothing rounds, so the result equals the NumPy
way bit for bit.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from .numerics import Floats, Ints, Limbs

_X_LOWEST = -34  # 2^(−34·32) lies below the smallest subnormal, 2^−1074
_X_LIMBS = 68
_XX_LOWEST = -68
_XX_LIMBS = 136

_ROWS = 2048  # of a block: a stretch is never longer, and its sums stay whole
_COLUMNS = 16  # of a block: 16 · 2048 float64 stay in the second-level cache
_MASK = 0xFFFFFFFF
_SMALLEST, _LARGEST = -400, 480  # exponents between which neither the lowest nor the highest product leaves float64


def moments(labels: Ints, n_labels: int, x: Floats) -> tuple[Limbs, Limbs, Limbs]:
    """How many, Σ x and Σ x² for each position and class (group position · n_labels + class), not yet carried.

    NaN adds nothing; other values must be finite.
    """
    groups = x.shape[1] * n_labels
    n = np.zeros(groups, dtype=np.int64)
    x_sum = np.zeros((groups, _X_LIMBS), dtype=np.int64)
    xx_sum = np.zeros((groups, _XX_LIMBS), dtype=np.int64)
    values = np.ascontiguousarray(x, dtype=np.float64)
    _moments(np.ascontiguousarray(labels, dtype=np.int64), n_labels, values, n, x_sum, xx_sum)
    return Limbs(0, n[:, None]), _trimmed(_X_LOWEST, x_sum), _trimmed(_XX_LOWEST, xx_sum)


def _trimmed(lowest: int, array: Ints) -> Limbs:
    used = np.flatnonzero(array.any(axis=0))
    if len(used) == 0:
        return Limbs(0, np.zeros((array.shape[0], 1), dtype=np.int64))
    return Limbs(lowest + int(used[0]), array[:, used[0] : used[-1] + 1])


@nb.njit(cache=True, nogil=True)
def _by_class(labels: Any, n_labels: int, place: Any, starts: Any, free: Any) -> None:  # pragma: no cover - compiled
    """Where each row stands when the rows are sorted by class, and where each class starts."""
    for y in range(n_labels + 1):  # one by one: Numba takes two seconds to compile the assignment of a whole array
        starts[y] = 0
    for i in range(labels.shape[0]):
        starts[labels[i] + 1] += 1
    for y in range(n_labels):
        free[y] = starts[y]
        starts[y + 1] += starts[y]
    for i in range(labels.shape[0]):
        place[i] = free[labels[i]]
        free[labels[i]] += 1


@nb.njit(cache=True, nogil=True)
def _turned(x: Any, left: int, columns: int, place: Any, block: Any) -> Any:  # pragma: no cover - compiled
    """Lay some columns out one after the other, zeros for missing values; returns whether there were any.

    Eight columns are one line of the cache.
    """
    missing = False
    for begin in range(0, columns, 8):
        if columns - begin >= 8:
            for i in range(x.shape[0]):
                row, p = x[i], place[i]
                for j in range(8):
                    v = row[left + begin + j]
                    there = v == v
                    missing |= not there
                    block[begin + j, p] = v if there else 0.0
        else:
            for i in range(x.shape[0]):
                row, p = x[i], place[i]
                for j in range(begin, columns):
                    v = row[left + j]
                    there = v == v
                    missing |= not there
                    block[j, p] = v if there else 0.0
    return missing


@nb.njit(cache=True, nogil=True)
def _stretch(
    v: Any, high: Any, middle: Any, low: Any, sums: Any, x_sum: Any, xx_sum: Any
) -> None:  # pragma: no cover - compiled
    """Add Σ v and Σ v² to the limbs of one group."""
    bits = v.view(np.int64)
    largest = _largest(bits)
    if largest == 0:
        return
    top = (largest >> 52) - 1022  # every size is below 2^top
    if top < _SMALLEST or top > _LARGEST:
        for i in range(v.shape[0]):
            _add_alone(bits[i], x_sum, xx_sum)
        return
    unit = top - 21  # the high slices are whole numbers of 2^unit
    if _slices(v, 1.5 * _power(unit + 52), high, middle, low) > 0:
        for i in range(v.shape[0]):
            if high[i] == 0.0 and middle[i] == 0.0 and low[i] == 0.0:
                _add_alone(bits[i], x_sum, xx_sum)
    _sums(high[: v.shape[0]], middle, low, sums)
    for k in range(3):
        _add(sums[k] * _power(21 * k - unit), unit - 21 * k + 32 * -_X_LOWEST, x_sum)
    for k in range(6):
        places = 21 * k if k < 5 else 42  # below 2^(2·unit)
        _add(sums[3 + k] * _power(places - 2 * unit), 2 * unit - places + 32 * -_XX_LOWEST, xx_sum)


@nb.njit(cache=True, nogil=True)
def _power(exponent: int) -> Any:  # pragma: no cover - compiled
    """2^exponent, from its bits."""
    return np.int64((exponent + 1023) << 52).view(np.float64)


@nb.njit(cache=True, nogil=True)
def _largest(bits: Any) -> Any:  # pragma: no cover - compiled
    """The bits of the largest size: they are ordered as the sizes are."""
    top = np.int64(0)
    for i in range(bits.shape[0]):
        top = max(top, bits[i] & 0x7FFFFFFFFFFFFFFF)
    return top


@nb.njit(cache=True, nogil=True)
def _slices(v: Any, magic: float, high: Any, middle: Any, low: Any) -> Any:  # pragma: no cover - compiled
    """Each value as high + middle + low; all three 0 where that does not reach, and returns how many those are.

    Adding and subtracting 1.5·2^(k + 52) rounds to whole numbers of 2^k; the rest is exact.
    """
    next_magic, last_magic = magic * 2.0**-21, magic * 2.0**-42
    lost = 0
    for i in range(v.shape[0]):
        a = (v[i] + magic) - magic
        rest = v[i] - a
        b = (rest + next_magic) - next_magic
        rest = rest - b
        c = (rest + last_magic) - last_magic
        fits = rest == c
        high[i] = a if fits else 0.0
        middle[i] = b if fits else 0.0
        low[i] = c if fits else 0.0
        lost += not fits
    return lost


@nb.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})  # every sum is exact, in whatever order
def _sums(high: Any, middle: Any, low: Any, out: Any) -> None:  # pragma: no cover - compiled
    """Σ of each slice, and Σ of the products of the slices by their common unit."""
    s0 = s1 = s2 = p0 = p1 = p2 = q2 = p3 = p4 = 0.0
    for i in range(high.shape[0]):
        a, b, c = high[i], middle[i], low[i]
        s0 += a
        s1 += b
        s2 += c
        p0 += a * a
        p1 += a * b
        p2 += a * c
        q2 += b * b
        p3 += b * c
        p4 += c * c
    out[0], out[1], out[2] = s0, s1, s2
    out[3], out[4], out[5], out[6], out[7], out[8] = p0, 2 * p1, 2 * p2, 2 * p3, p4, q2


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
def _add_alone(bits: int, x_sum: Any, xx_sum: Any) -> None:  # pragma: no cover - compiled
    """Add one float64 and its square, given its bits."""
    biased = (bits >> 52) & 0x7FF
    m = bits & 0xFFFFFFFFFFFFF
    if biased > 0:
        m |= 0x10000000000000
    else:
        biased = 1
    power = biased - 1075
    _add(float(m) if bits >= 0 else -float(m), power + 32 * -_X_LOWEST, x_sum)
    # m² in 32-bit words: low² + 2·low·high·2^32 + high²·2^64
    low, high = m & _MASK, m >> 32
    u = np.uint64(low) * np.uint64(low)
    w0 = np.int64(u & np.uint64(_MASK))
    t = np.int64(u >> np.uint64(32)) + 2 * low * high
    w1 = t & _MASK
    t = (t >> 32) + high * high
    place = 2 * power + 32 * -_XX_LOWEST
    k, r = place >> 5, place & 31
    w0, w1, w2, w3 = w0 << r, w1 << r, (t & _MASK) << r, (t >> 32) << r
    xx_sum[k] += w0 & _MASK
    xx_sum[k + 1] += (w0 >> 32) + (w1 & _MASK)
    xx_sum[k + 2] += (w1 >> 32) + (w2 & _MASK)
    xx_sum[k + 3] += (w2 >> 32) + (w3 & _MASK)
    xx_sum[k + 4] += w3 >> 32


# Arrow's arrays are read-only, which is a type of its own: one signature takes both
@nb.njit(
    "void(int64[::1], int64, Array(float64, 2, 'C', True), int64[::1], int64[:, ::1], int64[:, ::1])",
    cache=True,
    nogil=True,
)
def _moments(labels: Any, n_labels: int, x: Any, n: Any, x_sum: Any, xx_sum: Any) -> None:  # pragma: no cover
    width = x.shape[1]
    # a few numbers more than a block has, so that neighbouring columns do not share the cache's places
    block = np.empty((_COLUMNS, _ROWS + 8))
    high, middle, low = np.empty(_ROWS), np.empty(_ROWS), np.empty(_ROWS)
    sums = np.empty(9)
    place, starts, free = np.empty(_ROWS, np.int64), np.empty(n_labels + 1, np.int64), np.empty(n_labels + 1, np.int64)
    for first in range(0, x.shape[0], _ROWS):
        rows = min(_ROWS, x.shape[0] - first)
        _by_class(labels[first : first + rows], n_labels, place, starts, free)
        for left in range(0, width, _COLUMNS):
            columns = min(_COLUMNS, width - left)
            missing = _turned(x[first : first + rows], left, columns, place, block)
            for j in range(columns):
                group = (left + j) * n_labels
                for y in range(n_labels):
                    n[group + y] += starts[y + 1] - starts[y]
                if missing:
                    for i in range(rows):
                        if np.isnan(x[first + i, left + j]):
                            n[group + labels[first + i]] -= 1
                for y in range(n_labels):
                    if starts[y + 1] > starts[y]:
                        part = block[j, starts[y] : starts[y + 1]]
                        _stretch(part, high, middle, low, sums, x_sum[group + y], xx_sum[group + y])
