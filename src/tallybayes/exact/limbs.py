"""Exact sums in limbs, and one rounding.

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
_MASK = np.int64(_BASE - 1)
_CHUNK = 1 << 20  # 2^20 rows of partial limbs below 2^33 keep every float64 sum an exact integer (≤ 2^53)
_WHOLE = float(1 << 53)  # integers up to here are float64 values, whatever the order they are added in


@dataclass(frozen=True)
class Limbs:
    """Exact numbers, one per group: the sum over j of array[group, j] · 2^(32·(lowest + j))."""

    lowest: int
    array: Ints
    carried: bool = field(default=False, repr=False)  # known to be in canonical form


def exact_sums(groups: Ints, n_groups: int, factors: Sequence[Floats]) -> Limbs:
    """Σ of the product of the factors, by group, with no rounding at all (no factors: how many rows).

    Every factor must be finite. Products are expanded into exact terms (Dekker's two-product), each term is cut
    into 32-bit limbs by its exponent, and the limbs are added as integers.

    >>> x = np.array([1e16, 1.0, -1e16])
    >>> exact_sums(np.zeros(3, dtype=np.int64), 1, [x])
    Limbs(lowest=0, array=array([[1]]))
    """
    if not factors:
        return canonical(Limbs(0, np.bincount(groups, minlength=n_groups).astype(np.int64)[:, None]))
    if whole_and_small(factors, len(groups)):
        product = factors[0].copy()
        for factor in factors[1:]:
            product *= factor
        sums = np.bincount(groups, weights=product, minlength=n_groups)
        return canonical(Limbs(0, sums.astype(np.int64)[:, None]))
    parts = [
        _sum_chunk(groups[start : start + _CHUNK], n_groups, [f[start : start + _CHUNK] for f in factors])
        for start in range(0, len(groups), _CHUNK)
    ]
    return canonical(add_limbs(parts))


def whole_and_small(factors: Sequence[Floats], rows: int) -> bool:
    """Whether plain float64 sums of the product are exact: whole numbers whose sum of sizes stays within 2^53."""
    bound = float(rows)
    for factor in factors:
        bound *= float(np.max(np.abs(factor), initial=0.0))
        if not bound <= _WHOLE:
            return False
    return all(bool(np.all(np.rint(factor) == factor)) for factor in factors)


def _sum_chunk(groups: Ints, n_groups: int, factors: Sequence[Floats]) -> Limbs:
    terms, shift = _exact_terms(factors)
    return add_limbs([_deposit(groups, n_groups, term, shift) for term in terms])


def _exact_terms(factors: Sequence[Floats]) -> tuple[list[Floats], Ints]:
    """Terms tᵢ and a shift s with product = Σ tᵢ · 2^s exactly; scaling by frexp keeps clear of over- and underflow."""
    first, exponent = np.frexp(factors[0])
    terms, shift = [first], exponent.astype(np.int64)
    for factor in factors[1:]:
        mantissa, exponent = np.frexp(factor)
        shift = shift + exponent
        terms = [half for term in terms for half in two_product(term, mantissa)]
    return terms, shift


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


def _deposit(groups: Ints, n_groups: int, term: Floats, shift: Ints) -> Limbs:
    """The sum by group of term · 2^shift: each value is cut at the limb boundaries that its exponent picks."""
    some = term != 0
    if not some.any():
        return Limbs(0, np.zeros((n_groups, 1), dtype=np.int64))
    mantissa, exponent = np.frexp(term[some])
    whole = np.ldexp(mantissa, 53).astype(np.int64)  # below 2^53 in size
    power = exponent + shift[some] - 53
    limb, rest = power >> 5, power & 31
    size, sign = np.abs(whole), np.sign(whole)
    low = (size & _MASK) << rest  # below 2^63
    high = (size >> LIMB_BITS) << rest  # below 2^52
    lowest = int(limb.min())
    width = int(limb.max()) - lowest + 3
    place = groups[some] * width + (limb - lowest)
    sums = np.zeros(n_groups * width, dtype=np.int64)
    for step, piece in enumerate((low & _MASK, (low >> LIMB_BITS) + (high & _MASK), high >> LIMB_BITS)):
        added = np.bincount(place + step, weights=(piece * sign).astype(np.float64), minlength=n_groups * width)
        sums += added.astype(np.int64)
    return Limbs(lowest, sums.reshape(n_groups, width))


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
        wide[j] &= _MASK
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
