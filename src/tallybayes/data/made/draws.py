"""Random draws that are the same on every machine and under every version of NumPy and Python.

Bits come from PCG64, whose stream NumPy promises to keep; what is made of them is made here, by comparing and by a few
sums. The same number of bits belongs to every row, so the first rows of a long table are those of a short one.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.arrays import Floats, Ints
from ...base.errors import SettingsError
from ...base.lazy import ndtr, special

_BITS = 52  # so many leave room for a half between two whole numbers
_MOST = 40  # more than any count that is drawn here


class Draws:
    """Uniform numbers, `wide` for each of the rows, handed out one column after the other.

    >>> few, many = Draws("example", 0, 2, 3), Draws("example", 0, 5, 3)
    >>> bool((few.uniform() == many.uniform()[:2]).all())
    True
    """

    def __init__(self, name: str, seed: int, rows: int, wide: int) -> None:
        check_whole("seed", seed, 0)
        check_whole("rows", rows, 1)
        digest = hashlib.sha256(f"{name} {int(seed)}".encode()).digest()
        raw = np.random.PCG64(int.from_bytes(digest[:16], "big")).random_raw(int(rows) * wide)
        self._uniform = ((raw >> np.uint64(64 - _BITS)).astype(np.float64) + 0.5).reshape(int(rows), wide) * 2.0**-_BITS
        self._next = 0

    def uniform(self) -> Floats:
        """A number between 0 and 1 for each row, neither of which it is."""
        column: Floats = self._uniform[:, self._next]
        self._next += 1
        return column

    def happens(self, p: float | Floats) -> Any:
        """Whether it happens, for each row, with probability p."""
        return self.uniform() < p

    def one_of(self, shares: Sequence[float] | Floats) -> Ints:
        """The number of one thing for each row: by its share, or by that of the row where there is a line for each."""
        bounds = np.cumsum(np.atleast_2d(np.asarray(shares, dtype=np.float64)), axis=1)[:, :-1]
        found: Ints = (self.uniform()[:, None] > bounds).sum(axis=1)
        return found

    def bell(self, mean: Floats, deviation: Floats) -> Ints:
        """A whole number for each row, that of a Gaussian, rounded."""
        found: Ints = np.rint(mean + deviation * special.ndtri(self.uniform())).astype(np.int64)
        return found

    def counts(self, mean: Sequence[float], of: Ints) -> Ints:
        """A Poisson count for each row, of the mean with the number that the row has in `of`."""
        table = np.array([[poisson(k, m) for k in range(_MOST)] for m in mean])
        return self.one_of(table[of])


def check_whole(name: str, value: Any, least: int) -> None:
    """Refuse what is no whole number, or too small."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise SettingsError(f"{name}={value!r}", hint=f"take a whole number from {least} up.")


def check_share(name: str, value: Any) -> None:
    """Refuse what is no share from 0 up to, but not including, one half."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 <= value < 0.5:
        raise SettingsError(f"{name}={value!r}", hint="take a share from 0 up to, but not including, one half.")


def poisson(k: int, mean: float) -> float:
    """e^−m · m^k / k!."""
    return math.exp(-mean) * mean**k / math.factorial(k)


def bell_mass(value: Ints, mean: float, deviation: float) -> Floats:
    """P(a Gaussian, rounded, is this whole number)."""
    below = -np.abs(value - mean)  # on the left side, where small tails keep their digits
    mass: Floats = ndtr((below + 0.5) / deviation) - ndtr((below - 0.5) / deviation)
    return mass


def rounded(p: Floats) -> list[float]:
    """Probabilities as they are given out: the last digits of a logarithm differ between machines."""
    return [float(v) for v in np.round(p, 10)]
