"""n, Σx and Σx² of many groups: whether any numbers can have them, and their mean and deviation, rounded once.

`WholeSums` is the readable way, in Python's integers, number by number. `LimbSums` is its fast twin for many groups at
once: the limbs of all numbers are multiplied side by side, and a quotient is worked out in pairs of float64, to 80
bits. Where these leave open which float64 is the nearest, one number in a hundred million or a tie, integers say it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..base.arrays import Bools, Floats, Ints, Objects
from .counts import Counts
from .limbs import LIMB_BITS, Limbs, add_limbs, canonical, root_ratio, round_ratio, spread, two_product, whole_numbers
from .sheet import Sheet

MOMENTS = ("n", "x", "xx")
_MANY_GROUPS = 64  # below that Python's integers are faster
_LONGEST = 24  # limbs of Σx: beyond that, too
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
    return canonical(add_limbs([a, Limbs(b.lowest, -b.array)]))


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


@dataclass(frozen=True)
class WholeSums:
    """The sums of slots × classes, integers v and an exponent e for each: the number is v · 2^e."""

    counted: tuple[Objects, int]
    x: tuple[Objects, int]
    xx: tuple[Objects, int]

    def _spread(self) -> tuple[Objects, int]:
        return spread(*self.counted, *self.x, *self.xx)

    def impossible(self) -> Bools:
        """Where no numbers have such sums: Σx² ≥ (Σx)²/n must hold, and with n = 0 nothing may be left."""
        (n, _), (x, _), (xx, _) = self.counted, self.x, self.xx
        square, _ = self._spread()
        return np.asarray((square < 0) | ((n == 0) & ((x != 0) | (xx != 0))), dtype=bool)

    def n(self) -> Floats:
        """How many, or their weight."""
        n, exponent = self.counted
        return np.array([round_ratio(v, 1, exponent) for v in n.ravel().tolist()]).reshape(n.shape)

    def rounded(self) -> tuple[Floats, Floats]:
        """Mean and deviation (÷ n), each rounded once; 0 where n is not positive."""
        (n, n_exp), (x, x_exp) = self.counted, self.x
        square, exponent = self._spread()
        each = list(zip(n.ravel().tolist(), x.ravel().tolist(), square.ravel().tolist(), strict=True))
        mean = [round_ratio(a, m, x_exp - n_exp) if m > 0 else 0.0 for m, a, _ in each]
        sd = [root_ratio(s, m * m, exponent - 2 * n_exp) if m > 0 else 0.0 for m, _, s in each]
        return np.array(mean).reshape(n.shape), np.array(sd).reshape(n.shape)

    def together(self) -> WholeSums:
        """The sums of all classes, slots × 1."""
        return WholeSums(*((v.sum(axis=1, keepdims=True), e) for v, e in (self.counted, self.x, self.xx)))


class LimbSums:
    """The same from limbs, group slot · n_labels + class; what the short way leaves in doubt goes the long one."""

    def __init__(self, n: Limbs, x: Limbs, xx: Limbs, n_labels: int) -> None:
        self._sums = [canonical(f) for f in (n, x, xx)]
        self._n_labels = n_labels
        n, x, xx = self._sums
        self._spread = difference(product(n, xx), product(x, x))

    def _table(self, values: np.ndarray) -> np.ndarray:
        return values.reshape(-1, self._n_labels)

    def impossible(self) -> Bools:
        """Where no numbers have such sums."""
        n, *others = (f.array.any(axis=1) for f in self._sums)
        return self._table((signs(self._spread) < 0) | (~n & (others[0] | others[1])))

    def n(self) -> Floats:
        """How many, or their weight."""
        n = self._sums[0]
        if n.lowest == 0 and n.array.shape[1] == 1:
            return self._table(n.array[:, 0].astype(np.float64))
        size = Pairs.of(n)
        value, sure = size.rounded(LIMB_BITS * size.power)
        out = np.where(signs(n) < 0, -value, value)
        return self._table(self._settled([out], sure, lambda whole: [whole.n()])[0])

    def rounded(self) -> tuple[Floats, Floats]:
        """Mean and deviation."""
        n, x, _ = self._sums
        some = signs(n) > 0
        size = Pairs.of(n)
        (mean, sure), (sd, also) = quotients(x, size), roots(self._spread, size)
        both = [np.where(some, mean, 0.0), np.where(some, sd, 0.0)]
        mean, sd = self._settled(both, (sure & also) | ~some, lambda whole: whole.rounded())
        return self._table(mean), self._table(sd)

    def _settled(
        self, values: Sequence[Floats], sure: Bools, of: Callable[[WholeSums], Sequence[Floats]]
    ) -> Sequence[Floats]:
        """The values, those in doubt worked out in Python's integers."""
        at = np.flatnonzero(~sure)
        if len(at):
            whole = WholeSums(*(whole_numbers(Limbs(f.lowest, f.array[at])) for f in self._sums))
            for value, exactly in zip(values, of(whole), strict=True):
                value[at] = exactly
        return values

    def together(self) -> LimbSums:
        """The sums of all classes."""
        n, x, xx = (
            Limbs(f.lowest, f.array.reshape(-1, self._n_labels, f.array.shape[1]).sum(axis=1)) for f in self._sums
        )
        return LimbSums(n, x, xx, 1)


def moment_sums(counts: Counts, n_labels: int) -> WholeSums | LimbSums:
    """The sums of a number or vector column, worked out once."""

    def read() -> WholeSums | LimbSums:
        sheet = counts.sheet("moments", MOMENTS)
        if len(sheet.slot_names) * n_labels >= _MANY_GROUPS:
            n, x, xx = (sheet.limbs(a, n_labels) for a in MOMENTS)
            if x.array.shape[1] <= _LONGEST:
                return LimbSums(n, x, xx, n_labels)
        return WholeSums(*counts.exact("moments", MOMENTS, n_labels))

    return counts.once(("sums", n_labels), read)


def rounded_moments(sheet: Sheet, n_labels: int, slot: str) -> list[tuple[float, float, float]]:
    """(n, mean, variance ÷ n) of one slot for each class, each rounded once; NaN where there is no number."""
    (n, n_exp), (x, x_exp), (xx, xx_exp) = (sheet.exact(a, n_labels) for a in MOMENTS)
    if slot not in sheet.slot_names:
        return [(0.0, math.nan, math.nan)] * n_labels
    square, exponent = spread(n, n_exp, x, x_exp, xx, xx_exp)
    row, out = sheet.slot_names.index(slot), []
    for count, summed, squared in zip(n[row].tolist(), x[row].tolist(), square[row].tolist(), strict=True):
        if count == 0:
            out.append((0.0, math.nan, math.nan))
            continue
        mean = round_ratio(summed, count, x_exp - n_exp)
        out.append((round_ratio(count, 1, n_exp), mean, round_ratio(squared, count * count, exponent - 2 * n_exp)))
    return out
