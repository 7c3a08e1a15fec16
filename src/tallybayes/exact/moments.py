"""n, Σx and Σx² of many groups: whether any numbers can have them, and their mean and deviation, rounded once.

`WholeSums` is the readable way, in Python's integers. `LimbSums` is its fast twin for many groups at once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from ..base.arrays import Bools, Floats, Objects
from .counts import Counts
from .exactratios import Pairs, difference, product, quotients, roots, signs
from .limbs import Limbs, canonical, root_ratio, round_ratio, spread, whole_numbers

MOMENTS = ("n", "x", "xx")
_MANY = 64  # groups: below that Python's integers are faster
_LONG = 24  # limbs of Σx: beyond that, too


class Sums(ABC):
    """The sums of slots × classes."""

    @abstractmethod
    def impossible(self) -> Bools:
        """Where no numbers have such sums: Σx² ≥ (Σx)²/n must hold, and with n = 0 nothing may be left."""

    @abstractmethod
    def n(self) -> Floats:
        """How many, or their weight."""

    @abstractmethod
    def rounded(self) -> tuple[Floats, Floats]:
        """Mean and deviation (÷ n), each rounded once; 0 where n is not positive."""

    @abstractmethod
    def together(self) -> Sums:
        """The sums of all classes, slots × 1."""


def moment_sums(counts: Counts, n_labels: int) -> Sums:
    """The sums of a number or vector column, worked out once."""

    def read() -> Sums:
        sheet = counts.sheet("moments", MOMENTS)
        if len(sheet.slot_names) * n_labels >= _MANY:
            n, x, xx = (sheet.limbs(a, n_labels) for a in MOMENTS)
            if x.array.shape[1] <= _LONG:
                return LimbSums(n, x, xx, n_labels)
        return WholeSums(*counts.exact("moments", MOMENTS, n_labels))

    return counts.once(("sums", n_labels), read)


@dataclass(frozen=True)
class WholeSums(Sums):
    """Integers v and an exponent e for each sum: the number is v · 2^e."""

    counted: tuple[Objects, int]
    x: tuple[Objects, int]
    xx: tuple[Objects, int]

    def _spread(self) -> tuple[Objects, int]:
        return spread(*self.counted, *self.x, *self.xx)

    def impossible(self) -> Bools:
        """Where no numbers have such sums."""
        (n, _), (x, _), (xx, _) = self.counted, self.x, self.xx
        square, _ = self._spread()
        return np.asarray((square < 0) | ((n == 0) & ((x != 0) | (xx != 0))), dtype=bool)

    def n(self) -> Floats:
        """How many, or their weight."""
        n, exponent = self.counted
        return np.array([round_ratio(v, 1, exponent) for v in n.ravel().tolist()]).reshape(n.shape)

    def rounded(self) -> tuple[Floats, Floats]:
        """Mean and deviation."""
        (n, n_exp), (x, x_exp) = self.counted, self.x
        square, exponent = self._spread()
        each = list(zip(n.ravel().tolist(), x.ravel().tolist(), square.ravel().tolist(), strict=True))
        mean = [round_ratio(a, m, x_exp - n_exp) if m > 0 else 0.0 for m, a, _ in each]
        sd = [root_ratio(s, m * m, exponent - 2 * n_exp) if m > 0 else 0.0 for m, _, s in each]
        return np.array(mean).reshape(n.shape), np.array(sd).reshape(n.shape)

    def together(self) -> WholeSums:
        """The sums of all classes."""
        return WholeSums(*((v.sum(axis=1, keepdims=True), e) for v, e in (self.counted, self.x, self.xx)))


class LimbSums(Sums):
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
        value, sure = size.rounded(32 * size.power)
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
