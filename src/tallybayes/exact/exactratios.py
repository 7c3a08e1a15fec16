"""Exact numbers by the thousand: their products, and quotients and roots that are rounded once.

The readable way to all of this is Python's integers, number by number (`numerics.round_ratio`, `root_ratio`). Here the
limbs of all numbers are multiplied side by side, and a quotient is worked out in pairs of float64, to 80 bits. Where
these leave open which float64 is the nearest, one number in a hundred million or a tie, the caller is told.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Bools, Floats, Ints
from .limbs import LIMB_BITS, Limbs, canonical, two_product

_MASK = np.uint64((1 << LIMB_BITS) - 1)
_SHIFT = np.uint64(LIMB_BITS)
_DOUBT = 2.0**-80  # relative: pairs made from limbs are within 2^-84, every step after that adds less than 2^-100
_PLACES = (1.0, 2.0**-32, 2.0**-64, 2.0**-96)  # what the first limbs of a number are worth beside the first
_LEAST = float(np.finfo(float).smallest_normal)


def product(a: Limbs, b: Limbs) -> Limbs:
    """a · b, number by number, in limbs that are not yet carried.

    >>> product(Limbs(0, np.array([[3, 1]])), Limbs(-1, np.array([[-2]])))
    Limbs(lowest=-1, array=array([[-6, -2,  0]]))
    """
    a, b = canonical(a), canonical(b)
    one, other = (np.ascontiguousarray(np.abs(f.array).T).astype(np.uint64) for f in (a, b))
    out = np.zeros((len(one) + len(other), one.shape[1]), dtype=np.int64)
    for i, limb in enumerate(one):  # two limbs of 32 bits fit into 64, and the halves of a few products into 63
        places = limb * other
        out[i : i + len(other)] += (places & _MASK).view(np.int64)
        out[i + 1 : i + 1 + len(other)] += (places >> _SHIFT).view(np.int64)
    return Limbs(a.lowest + b.lowest, (out * (signs(a) * signs(b))).T)


def difference(a: Limbs, b: Limbs) -> Limbs:
    """a − b, number by number."""
    lowest = min(a.lowest, b.lowest)
    highest = max(f.lowest + f.array.shape[1] for f in (a, b))
    out = np.zeros((highest - lowest, len(a.array)), dtype=np.int64)
    for f, sign in ((a, 1), (b, -1)):
        out[f.lowest - lowest : f.lowest - lowest + f.array.shape[1]] += sign * f.array.T
    return canonical(Limbs(lowest, out.T))


def signs(numbers: Limbs) -> Ints:
    """1, 0 or −1 for each number; its limbs must be canonical, so that all have its sign."""
    return np.asarray(np.sign(np.sum(numbers.array, axis=1)), dtype=np.int64)


@dataclass(frozen=True)
class Pairs:
    """Numbers (high + low) · 2^(32·power), known to at least 80 bits."""

    high: Floats
    low: Floats
    power: Ints

    @classmethod
    def of(cls, numbers: Limbs) -> Pairs:
        """The sizes of exact numbers, from their first limbs."""
        numbers = canonical(numbers)
        limbs = np.zeros((numbers.array.shape[1] + len(_PLACES) - 1, len(numbers.array)))
        limbs[len(_PLACES) - 1 :] = np.abs(numbers.array).T
        top = len(limbs) - 1 - np.argmax(limbs[::-1] != 0, axis=0)
        top = np.maximum(top, len(_PLACES) - 1)  # of a zero, too
        each = np.arange(limbs.shape[1])
        first, second, third, fourth = (limbs[top - k, each] * worth for k, worth in enumerate(_PLACES))
        high, low = _sum(first, second)
        return cls(*_sum(high, low + (third + fourth)), top - (len(_PLACES) - 1) + numbers.lowest)

    def over(self, other: Pairs) -> Pairs:
        """The quotients; anything where the other is zero."""
        divisor = np.where(other.high == 0, 1.0, other.high)
        quotient = self.high / divisor
        whole, rest = two_product(quotient, divisor)
        left = ((self.high - whole) - rest) + (self.low - quotient * other.low)
        return Pairs(*_sum(quotient, left / divisor), self.power - other.power)

    def root(self) -> Pairs:
        """The square roots, as a pair with half the power: (high + low) · 2^(16·power)."""
        root = np.sqrt(self.high)
        square, rest = two_product(root, root)
        left = ((self.high - square) - rest) + self.low
        return Pairs(*_sum(root, left / np.where(root == 0, 1.0, 2 * root)), self.power)

    def rounded(self, exponent: Ints) -> tuple[Floats, Bools]:
        """(high + low) · 2^exponent as the nearest float64, and where that is beyond doubt."""
        doubt = _DOUBT * self.high
        sure = (self.high + (self.low + doubt) == self.high) & (self.high + (self.low - doubt) == self.high)
        with np.errstate(over="ignore", under="ignore"):
            value = np.ldexp(self.high, exponent)
        return value, (sure & (value >= _LEAST) & (value < np.inf)) | (self.high == 0)


def _sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    """s and e with a + b = s + e exactly and s the nearest float64, where |a| ≥ |b| (Dekker 1971)."""
    s = a + b
    return s, b - (s - a)


def quotients(numerator: Limbs, denominator: Pairs) -> tuple[Floats, Bools]:
    """numerator / denominator, rounded once, and where that is sure; the denominators are not negative."""
    ratio = Pairs.of(numerator).over(denominator)
    value, sure = ratio.rounded(LIMB_BITS * ratio.power)
    return np.where(signs(canonical(numerator)) < 0, -value, value), sure


def roots(numerator: Limbs, denominator: Pairs) -> tuple[Floats, Bools]:
    """√numerator / denominator, rounded once, and where that is sure; nothing is negative."""
    root = Pairs.of(numerator).root()
    ratio = root.over(denominator)
    return ratio.rounded(LIMB_BITS // 2 * root.power - LIMB_BITS * denominator.power)
