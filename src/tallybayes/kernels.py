"""Numba twins of the hot loops. Import this module only through `exact.kernels`, which knows when it repays.

The accumulator is the textbook one: a float64 is an integer of 53 bits times a power of two, the power picks the
limb, and limbs are added as integers. Nothing rounds, so the result equals the NumPy way bit for bit.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from .numerics import Bools, Floats, Ints, Limbs

_X_LOWEST = -34  # 2^(−34·32) lies below the smallest subnormal, 2^−1074
_X_LIMBS = 68
_XX_LOWEST = -68
_XX_LIMBS = 136


def moments(labels: Ints, n_labels: int, x: Floats, missing: Bools) -> tuple[Limbs, Limbs, Limbs]:
    """How many, Σ x and Σ x² for each position and class (group position · n_labels + class), not yet carried."""
    groups = x.shape[1] * n_labels
    n = np.zeros(groups, dtype=np.int64)
    x_sum = np.zeros((groups, _X_LIMBS), dtype=np.int64)
    xx_sum = np.zeros((groups, _XX_LIMBS), dtype=np.int64)
    bits = np.ascontiguousarray(x, dtype=np.float64).view(np.int64)
    _moments(np.ascontiguousarray(labels), n_labels, bits, missing, n, x_sum, xx_sum)
    return Limbs(0, n[:, None]), _trimmed(_X_LOWEST, x_sum), _trimmed(_XX_LOWEST, xx_sum)


def _trimmed(lowest: int, array: Ints) -> Limbs:
    used = np.flatnonzero(array.any(axis=0))
    if len(used) == 0:
        return Limbs(0, np.zeros((array.shape[0], 1), dtype=np.int64))
    return Limbs(lowest + int(used[0]), array[:, used[0] : used[-1] + 1])


@nb.njit(cache=True, nogil=True)
def _moments(
    labels: Any, n_labels: int, bits: Any, missing: Any, n: Any, x_sum: Any, xx_sum: Any
) -> None:  # pragma: no cover - compiled
    mask = np.int64(0xFFFFFFFF)
    for i in range(bits.shape[0]):
        for j in range(bits.shape[1]):
            if missing[i, j]:
                continue
            group = j * n_labels + labels[i]
            n[group] += 1
            b = bits[i, j]
            biased = (b >> 52) & 0x7FF
            m = b & 0xFFFFFFFFFFFFF
            if biased > 0:
                m |= 0x10000000000000
            else:
                biased = 1
            power = biased - 1075
            low, high = m & mask, m >> 32

            place = power + 1088
            k, r = place >> 5, place & 31
            a, c = low << r, high << r
            if b >= 0:
                x_sum[group, k] += a & mask
                x_sum[group, k + 1] += (a >> 32) + (c & mask)
                x_sum[group, k + 2] += c >> 32
            else:
                x_sum[group, k] -= a & mask
                x_sum[group, k + 1] -= (a >> 32) + (c & mask)
                x_sum[group, k + 2] -= c >> 32

            # m² in 32-bit words: low² + 2·low·high·2^32 + high²·2^64
            u = np.uint64(low) * np.uint64(low)
            w0 = np.int64(u & np.uint64(0xFFFFFFFF))
            t = np.int64(u >> np.uint64(32)) + 2 * low * high
            w1 = t & mask
            t = (t >> 32) + high * high
            w2 = t & mask
            w3 = t >> 32
            place = 2 * power + 2176
            k, r = place >> 5, place & 31
            w0, w1, w2, w3 = w0 << r, w1 << r, w2 << r, w3 << r
            xx_sum[group, k] += w0 & mask
            xx_sum[group, k + 1] += (w0 >> 32) + (w1 & mask)
            xx_sum[group, k + 2] += (w1 >> 32) + (w2 & mask)
            xx_sum[group, k + 3] += (w2 >> 32) + (w3 & mask)
            xx_sum[group, k + 4] += w3 >> 32
