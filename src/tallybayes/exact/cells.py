"""The cells of a number column: a fixed division of the line that needs no data after the first look.

A value in `points` has a cell of its own. Every other value falls into a general cell: `MIDDLE` cells of width
2^exponent on either side of the centre, and beyond them, as in HDR histograms, `TAIL` cells to each doubling of
the distance. So any float64 has a cell, whatever was seen before, and two tallies with the same `Cells` add.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache, cached_property

import numpy as np

from ..base.arrays import Bools, Floats, Ints
from ..base.canon import number_text
from ..base.records import Record
from .line import LARGEST, MIDDLE, MIDDLE_BITS, TAIL, cell_code

REACH = MIDDLE + 64 * TAIL  # general cells on either side that are counted by place: 64 doublings
_POINT = 1 << 40  # codes from here on are points; general cells stay below 2^17 in size
_MOST_POINTS = 256  # up to this many distinct values each is a point
_ATOM = 0.01  # among more values, one that fills a hundredth of the rows is a point


def distinct(codes: Ints) -> tuple[Ints, Ints]:
    """The codes that occur, sorted, and the number of each row's code among them; a narrow range needs no sorting."""
    general = codes < _POINT
    low, high = (int(codes[general].min()), int(codes[general].max())) if general.any() else (0, -1)
    points = int(codes.max()) - _POINT + 1 if len(codes) and not general.all() else 0
    width = high - low + 1
    if width + points > max(len(codes), 1 << 12):
        found, number = np.unique(codes, return_inverse=True)
        return found, number
    place = np.where(general, codes - low, codes - _POINT + width)
    used = np.bincount(place, minlength=width + points) > 0
    found = np.flatnonzero(used)
    return np.where(found < width, found + low, found - width + _POINT), (np.cumsum(used) - 1)[place]


@cache
def _names() -> tuple[str, ...]:
    """The numbers of the general cells within reach."""
    return tuple(map(str, range(-REACH, REACH)))


def codes_at(places: Ints) -> Ints:
    """The codes of cells counted by place: general cells within reach, then the points."""
    return np.where(places < 2 * REACH, places - REACH, places - 2 * REACH + _POINT)


@dataclass(frozen=True)
class Cells(Record):
    """A division of the number line into cells that rows are counted in: points of their own, and intervals between.

    `discrete` says that the first look found no value outside the points.

    >>> cells = tb.Cells(centre=0.0, exponent=0, points=(1.5,))
    >>> cells.slot_of(1.5), cells.slot_of(1.6) == cells.slot_of(1.7)
    ('=1.5', True)
    """

    centre: float
    exponent: int
    points: tuple[float, ...] = ()
    discrete: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "centre", float(self.centre) + 0.0)  # −0.0 and 0.0 are one value
        object.__setattr__(self, "points", tuple(sorted({float(p) + 0.0 for p in self.points})))

    def codes(self, values: Floats) -> Ints:
        """The code of each value's cell; values must be finite."""
        out = self.general_codes(values)
        if self.points:
            points = self.point_values
            at = np.minimum(np.searchsorted(points, values), len(points) - 1)
            is_point = points[at] == values
            out[is_point] = _POINT + at[is_point]
        return out

    def code(self, value: float) -> int:
        """The same for one value, in plain Python."""
        return cell_code(value, self.centre, self.exponent, self._point_at)

    @cached_property
    def _point_at(self) -> dict[float, int]:
        return {p: _POINT + i for i, p in enumerate(self.points)}

    @cached_property
    def point_values(self) -> Floats:
        """The points as an array."""
        return np.array(self.points, dtype=np.float64)

    def general_codes(self, values: Floats) -> Ints:
        """The codes of the general cells that the values would fall into, points or not: never falling."""
        with np.errstate(over="ignore"):
            distance = np.clip(values - self.centre, -LARGEST, LARGEST)
        size, octave = np.frexp(np.abs(distance))  # size in [½, 1), so no scale over- or underflows
        octave = octave.astype(np.int64) - self.exponent - MIDDLE_BITS
        far = (octave >= 1) & (size > 0)
        out = np.empty(len(values), dtype=np.int64)
        near = np.ldexp(distance[~far], -self.exponent)
        # a negative distance that underflows to zero is still left of the centre
        out[~far] = np.where((near == 0) & (distance[~far] < 0), -1, np.floor(near)).astype(np.int64)
        step = (octave[far] - 1) * TAIL + np.floor((2 * size[far] - 1) * TAIL).astype(np.int64)
        out[far] = np.where(distance[far] > 0, MIDDLE + step, -MIDDLE - 1 - step)
        return out

    def edges(self, codes: Ints) -> tuple[Floats, Floats]:
        """Lower and upper edge of each cell; both are the value itself for a point."""
        low, high = np.empty(len(codes)), np.empty(len(codes))
        point = codes >= _POINT
        if point.any():
            low[point] = high[point] = self.point_values[codes[point] - _POINT]
        general = codes[~point]
        low[~point], high[~point] = self._edge(general, 0), self._edge(general, 1)
        return low, high

    def _edge(self, codes: Ints, upper: int) -> Floats:
        right = codes >= 0
        # the left half is the mirror image: cell −1−j there is cell j here, with its edges swapped
        place = np.where(right, codes + upper, -codes - 1 + (1 - upper))
        octave, sub = np.divmod(np.maximum(place - MIDDLE, 0), TAIL)
        steps = np.where(place < MIDDLE, place, MIDDLE * (1.0 + sub / TAIL))
        with np.errstate(over="ignore"):  # the outermost cells reach to infinity
            distance = np.ldexp(steps, octave + self.exponent)
            out: Floats = self.centre + np.where(right, distance, -distance)
        return out

    def is_point(self, codes: Ints) -> Bools:
        """Which of the cells are points."""
        out: Bools = codes >= _POINT
        return out

    def is_even(self, codes: Ints) -> Bools:
        """Which of the cells lie in the middle, where all have one width."""
        out: Bools = (codes >= -MIDDLE) & (codes < MIDDLE)
        return out

    def point_codes(self) -> Ints:
        """The codes of all points, in order of their values."""
        return _POINT + np.arange(len(self.points), dtype=np.int64)

    def slot_names(self, codes: Ints) -> list[str]:
        """The slot of each cell: "=3" for a point, the number of a general cell."""
        near = _names()
        return [near[c + REACH] if -REACH <= c < REACH else self._slot_name(c) for c in codes.tolist()]

    def _slot_name(self, code: int) -> str:
        return f"={number_text(self.points[code - _POINT])}" if code >= _POINT else str(code)

    def slot_of(self, value: float) -> str:
        """The slot of one value's cell."""
        (name,) = self.slot_names(np.array([self.code(value)]))
        return name

    def with_points(self, points: Iterable[float]) -> Cells:
        """The same general cells with other points; without any, no column is discrete."""
        kept = tuple(points)
        return replace(self, points=kept, discrete=self.discrete and len(kept) > 0)

    def slot_codes(self, names: Iterable[str]) -> Ints:
        """The inverse of `slot_names`."""
        if not self.points:
            return np.array(list(map(int, names)), dtype=np.int64)
        at = {f"={number_text(p)}": _POINT + i for i, p in enumerate(self.points)}
        return np.array([at[n] if n[0] == "=" else int(n) for n in names], dtype=np.int64)

    @classmethod
    def fitted(cls, values: Floats) -> Cells:
        """Cells for what a first look at a column found.

        >>> tb.Cells.fitted(np.array([1.0, 2.0, 2.0, 5.0]))
        Cells(centre=2.0, exponent=-7, points=(1.0, 2.0, 5.0), discrete=True)
        """
        values = values if bool(np.all(values[1:] >= values[:-1])) else np.sort(values)
        starts = np.flatnonzero(np.concatenate(([True], values[1:] != values[:-1])))  # −0.0 and 0.0 are one value
        times = np.diff(starts, append=len(values))
        discrete = len(starts) <= _MOST_POINTS and len(starts) <= max(16, len(values) // 4)
        often = np.full(len(starts), True) if discrete else (times >= _ATOM * len(values)) & (times >= 5)
        points = values[starts[often]] + 0.0
        rest = values if discrete or not often.any() else values[~np.repeat(often, times)]
        rest = rest if len(rest) else values
        low, middle, high = rest[np.rint((len(rest) - 1) * np.array([0.005, 0.5, 0.995])).astype(np.int64)] + 0.0
        span = min(float(high) / 2 - float(low) / 2, 8e307) * 2 or abs(float(middle)) or 1.0
        exponent = max(math.ceil(math.log2(span)) - MIDDLE_BITS - 1, math.frexp(float(middle))[1] - 1000, -1074)
        steps = float(np.rint(np.ldexp(float(middle), -exponent)))
        centre = math.ldexp(steps, exponent) if abs(math.frexp(steps)[1] + exponent) < 1024 else float(middle)
        return cls(centre, exponent, tuple(float(p) for p in points), discrete)
