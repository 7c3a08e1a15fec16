"""Exact numbers in limbs, and one rounding.

An exact sum is kept in *limbs*: the number Σ limbₖ · 2^(32k), each limb an int64. In canonical form every limb of
a number has the sign of the number and is smaller than 2^32 in size, so equal numbers have equal limbs and
negating is negating each limb. Whole counts live in limb 0, sample weights (units of 2⁻³², light ones of 2⁻⁶⁴) reach
into limbs −1 and −2, sums of float64 values reach wherever their exponents lead, and all of them add by the same rule.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints, Objects

LIMB_BITS = 32
_BASE = 1 << LIMB_BITS
MASK = np.int64(_BASE - 1)


@dataclass(frozen=True)
class Limbs:
    """Exact numbers, one per group: the sum over j of array[group, j] · 2^(32·(lowest + j))."""

    lowest: int
    array: Ints
    carried: bool = field(default=False, repr=False)  # known to be in canonical form


def two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """p and e with a·b = p + e exactly (Dekker 1971), for numbers whose products neither overflow nor underflow."""
    p = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    e = ((a_high * b_high - p) + a_high * b_low + a_low * b_high) + a_low * b_low
    return p, e


def _split(a: Floats) -> tuple[Floats, Floats]:
    c = a * 134217729.0  # 2^27 + 1: both halves fit in 26 bits, so their products are exact
    high = c - (c - a)
    return high, a - high


def add_limbs(parts: Sequence[Limbs]) -> Limbs:
    """The sum, limb by limb; carrying is left to `canonical`."""
    if not parts:
        return Limbs(0, np.zeros((0, 1), dtype=np.int64))
    lowest = min(p.lowest for p in parts)
    highest = max(p.lowest + p.array.shape[1] for p in parts)
    total = np.zeros((parts[0].array.shape[0], highest - lowest), dtype=np.int64)
    for p in parts:
        total[:, p.lowest - lowest : p.lowest - lowest + p.array.shape[1]] += p.array
    return Limbs(lowest, total)


def canonical(limbs: Limbs) -> Limbs:
    """The same numbers with every limb below 2^32 in size and of its number's sign, outer zero limbs cut off."""
    array = limbs.array
    if limbs.carried or (array.shape[1] == 1 and (array.size == 0 or int(np.abs(array).max()) < _BASE)):
        return limbs
    wide = np.zeros((array.shape[1] + 2, array.shape[0]), dtype=np.int64)  # limb by limb: NumPy is fast on long rows
    wide[:-2] = array.T
    carried = _carry(wide)
    negative = carried[-1] < 0
    if negative.any():
        carried[:, negative] = -_carry(-carried[:, negative])
    used = np.flatnonzero(carried.any(axis=1))
    if len(used) == 0:
        return Limbs(0, np.zeros((array.shape[0], 1), dtype=np.int64), True)
    return Limbs(limbs.lowest + int(used[0]), carried[used[0] : used[-1] + 1].T, True)


def _carry(wide: Ints) -> Ints:
    """Carry upwards, limbs × numbers, each to 0 … 2^32−1; a negative number shows in the sign of its last limb."""
    for j in range(len(wide) - 1):
        over = wide[j] >> LIMB_BITS
        wide[j] &= MASK
        wide[j + 1] += over
    return wide


def whole_numbers(limbs: Limbs) -> tuple[Objects, int]:
    """Python integers v and one exponent e, so that each number is v · 2^e."""
    total: Any = np.zeros(limbs.array.shape[0], dtype=object)
    for j in reversed(range(limbs.array.shape[1])):
        total = total * _BASE + limbs.array[:, j].astype(object)
    return total, LIMB_BITS * limbs.lowest


def to_float(limbs: Limbs) -> Floats:
    """Each number as the nearest float64 (infinite where it is too large)."""
    if limbs.array.shape[1] == 1 and limbs.lowest == 0:
        return limbs.array[:, 0].astype(np.float64)
    values, exponent = whole_numbers(limbs)
    return np.array([round_ratio(int(v), 1, exponent) for v in values], dtype=np.float64)


def round_ratio(numerator: int, denominator: int, exponent: int = 0) -> float:
    """numerator / denominator · 2^exponent, rounded once to the nearest float64.

    >>> round_ratio(1, 3)
    0.3333333333333333
    """
    if exponent >= 0:
        numerator <<= exponent
    else:
        denominator <<= -exponent
    try:
        return numerator / denominator  # CPython rounds the quotient of two integers correctly
    except OverflowError:
        return math.inf if numerator > 0 else -math.inf


def root_ratio(numerator: int, denominator: int, exponent: int = 0) -> float:
    """√(numerator / denominator · 2^exponent), from at least 64 more bits than a float64 holds.

    >>> root_ratio(9, 4)
    1.5
    """
    if numerator == 0:
        return 0.0
    shift = 256 - numerator.bit_length() + denominator.bit_length()
    shift += (exponent - shift) % 2  # an even power of two comes out of the root whole
    scaled = numerator << shift if shift >= 0 else numerator >> -shift
    return round_ratio(math.isqrt(scaled // denominator), 1, (exponent - shift) // 2)


def spread(n: Objects, n_exp: int, x: Objects, x_exp: int, xx: Objects, xx_exp: int) -> tuple[Objects, int]:
    """n·Σx² − (Σx)² as integers v and an exponent e (each is v · 2^e): n² times the variance, so never negative.

    The sums are integers with an exponent each, as `whole_numbers` gives them.
    """
    shift = xx_exp + n_exp - 2 * x_exp  # brings both products to one exponent
    return (n * xx) * (1 << max(shift, 0)) - (x * x) * (1 << max(-shift, 0)), 2 * x_exp + min(shift, 0)
