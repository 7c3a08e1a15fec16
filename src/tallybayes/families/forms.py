"""What a belief says, as plain numbers: the few forms that exports, the one-row scorer and what-if can read.

    table      logs[value], or `unseen`                                            a category
    steps      logs[k] from starts[k − 1] up to but without starts[k]              a number, by where it lies
    normal, student    log N or log t of (x − location)/scale, over all positions  a number or a vector
    poisson    x·log rate + offset, the offset −rate if none is given; x ≥ 0       a count of events
    words      Σ times·logs[word], times 1 where each word counts once             a bag or a text
    presence   Σ present[word] if it occurs, absent[word] if not
    levels     Σ logs[how often it occurs, word]
    pair       logs[u, v]                                                          two columns together
    blend      Σ share·form, each form at most `most` below its best class

All logs are natural, their last axis is the class, and a missing value says 0. What all classes share may be left out.
A belief that has no form says why (`NoForm`). A new family whose belief says one of these takes part in everything.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.records import Record
from ..exact.cells import Cells

HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
FAR = 1e150  # a distance of more deviations than this would overflow when squared
_STEPS = 32  # from here on Stirling's series is exact to the last digits
_LARGEST = float(np.finfo(np.float64).max)
_SAME = 1e-13  # natural logs: less is rounding
_DENSE = 400  # general cells on either side of the centre that are all looked at: the middle and nine octaves
_AROUND = 24  # and around every counted cell
_EVERY = 8  # in the tails; between two that differ all are looked at


class Form(Record):
    """One of the forms below; `name` is what JSON calls it."""

    name: ClassVar[str]


@dataclass(frozen=True)
class TableForm(Form):
    """A row of logs per value, and one for any other value."""

    values: tuple[str, ...]
    logs: Floats
    unseen: Floats

    name = "table"


@dataclass(frozen=True)
class StepsForm(Form):
    """A row of logs per stretch of the line, one more than starts."""

    starts: Floats
    logs: Floats

    name = "steps"


@dataclass(frozen=True)
class CellsForm(Form):
    """The same of a belief that looks only at a value's cell: the places where what it says changes, to the last bit.

    There are some thirty thousand cells, up to the largest float64; but far from the data neighbours say the same. So
    only the middle, what lies near the data, and some of the tails are looked at, and between two that differ all.
    """

    cells: Cells
    ask: Callable[[Ints], Floats]  # codes of cells → what they say, cells × classes
    near: Callable[[], Floats]  # values around which that may change quickly

    name = "steps"

    @cached_property
    def steps(self) -> StepsForm:
        """All of it as steps. A point is a step of one value; after it what was said before goes on."""
        (starts, logs), (points, own) = self.general, self.points
        if len(points) == 0:
            return StepsForm(starts, logs)
        with np.errstate(over="ignore"):  # after the largest float64 there is none
            edges = np.unique(np.concatenate([starts, points, np.nextafter(points, np.inf)]))
        row = logs[np.searchsorted(starts, edges, side="right")]
        at = np.searchsorted(points, edges)
        is_point = (at < len(points)) & (points[np.minimum(at, len(points) - 1)] == edges)
        row[is_point] = own[at[is_point]]
        every = np.vstack([logs[:1], row])
        kept = changes(every)
        return StepsForm(edges[kept[1:] - 1], every[kept])

    @cached_property
    def points(self) -> tuple[Floats, Floats]:
        """The values that are cells of their own, and what they say, up to what all classes share."""
        values = np.array(self.cells.points, dtype=np.float64)
        return values, relative(self.ask(self.cells.point_codes())) if len(values) else np.zeros((0, 1))

    @cached_property
    def general(self) -> tuple[Floats, Floats]:
        """Starts and logs of all other cells."""
        ends = self.cells.general_codes(np.array([-_LARGEST, _LARGEST]))
        codes = _worth_looking(int(ends[0]), int(ends[1]), self.cells.general_codes(self.near()))
        logs = relative(self.ask(codes))
        while len(gaps := np.flatnonzero((np.diff(codes) > 1) & _differ(logs[1:], logs[:-1]))):
            between = (codes[gaps] + codes[gaps + 1]) // 2
            codes = np.concatenate([codes, between])
            logs = np.concatenate([logs, relative(self.ask(between))])
            order = np.argsort(codes)
            codes, logs = codes[order], logs[order]
        kept = changes(logs)
        return self.starts_of(codes[kept[1:]]), logs[kept]

    def starts_of(self, codes: Ints) -> Floats:
        """For each code the smallest float64 whose general cell has that code or a higher one, by bisection."""
        low = np.full(len(codes), _ordered(np.array([-_LARGEST]))[0])
        high = np.full(len(codes), _ordered(np.array([_LARGEST]))[0])
        while (low < high).any():
            middle = (low >> 1) + (high >> 1) + (low & high & 1)
            reached = self.cells.general_codes(_value(middle)) >= codes
            low, high = np.where(reached, low, middle + 1), np.where(reached, middle, high)
        return _value(low)


@dataclass(frozen=True)
class BellForm(Form):
    """A bell curve per position and class, Student's t where it has degrees of freedom; only positions that vary."""

    positions: Ints | None  # None: a number, not a vector
    location: Floats  # positions × classes
    scale: Floats
    freedom: Floats | None = None

    @property
    def name(self) -> str:  # type: ignore[override]
        """The curve."""
        return "normal" if self.freedom is None else "student"

    @cached_property
    def height(self) -> Floats:
        """The log density at the location."""
        if self.freedom is None:
            return np.asarray(-np.log(self.scale) - HALF_LOG_2PI)
        shape = log_gamma_step(self.freedom / 2) - 0.5 * np.log(self.freedom * np.pi)
        return np.asarray(shape - np.log(self.scale))

    def log_density(self, x: Floats, i: int) -> Floats:
        """The log density of x (rows × 1) under each class at the i-th position."""
        z = distance(x, self.location[i], self.scale[i])
        if self.freedom is None:
            return np.asarray(self.height[i] - 0.5 * z**2)
        v = self.freedom[i]
        return np.asarray(self.height[i] - (v + 1) / 2 * np.log1p(z**2 / v))


@dataclass(frozen=True)
class RateForm(Form):
    """Linear in a count: x·log rate + offset; negative numbers say nothing."""

    rate: Floats
    offset: Floats | None = None

    name = "poisson"

    @property
    def start(self) -> Floats:
        """What no events at all say."""
        return -self.rate if self.offset is None else self.offset


@dataclass(frozen=True)
class WordsForm(Form):
    """What one occurrence of each word adds, and of a word never seen; `once`: however often it occurs."""

    once: bool
    words: tuple[str, ...]
    logs: Floats
    unseen: Floats
    length: float = field(default=1.0, metadata={"said": False})  # words of a usual row, for pictures

    name = "words"

    @cached_property
    def at(self) -> Mapping[str, int]:
        """The row of each word."""
        return {w: i for i, w in enumerate(self.words)}


@dataclass(frozen=True)
class PresenceForm(Form):
    """What each word says by occurring, and by not."""

    words: tuple[str, ...]
    present: Floats
    absent: Floats

    name = "presence"


@dataclass(frozen=True)
class LevelsForm(Form):
    """What each word says by how often it occurs."""

    words: tuple[str, ...]
    logs: Floats  # levels × words × classes

    name = "levels"


@dataclass(frozen=True)
class PairForm(Form):
    """A row of logs per two values; a value never seen says nothing."""

    us: tuple[str, ...]
    vs: tuple[str, ...]
    logs: Floats

    name = "pair"


@dataclass(frozen=True)
class BlendForm(Form):
    """Several forms of one number, each by its share."""

    most: float
    parts: Sequence[tuple[float, Form]]

    name = "blend"


@dataclass(frozen=True)
class NoForm(Form):
    """No form, why ("column 'x' is …") and how to get one; by default that counts are what is said, and no export's."""

    what: str = "scored by the counts themselves (predictive=True), which no export may hold"
    hint: str = "export a model with predictive=False, or save the model itself."

    name = "unsaid"


@dataclass(frozen=True)
class PolyaForm(NoForm):
    """The words of a Dirichlet-multinomial: imagined and counted occurrences of each, words × classes."""

    once: bool = field(kw_only=True)
    words: tuple[str, ...] = field(kw_only=True)
    amounts: Floats = field(kw_only=True)
    unseen: int | None = field(kw_only=True)  # the row of any other word


def distance(x: Floats, mean: Floats, sd: Floats) -> Floats:
    """(x − μ)/σ, without overflow on the way and short of overflow when squared."""
    with np.errstate(over="ignore", invalid="ignore"):
        z: Floats = (x - mean) / sd
        if z.size and not np.abs(z).max() <= FAR:  # also where it is not a number
            z = np.where(np.isfinite(z), z, (x / 2 - mean / 2) / sd * 2)
            z = np.clip(z, -FAR, FAR)
    return z


def log_gamma_step(a: Floats) -> Floats:
    """log Γ(a + ½) − log Γ(a), to the last digits where the two are large and their difference would lose them.

    Stirling's series of the difference from a ≥ 32 on; below, Γ(a + 1) = a·Γ(a) leads there.
    """
    near = a < _STEPS
    far = np.where(near, a + _STEPS, a)
    r = 1 / far**2
    series = -1 / 8 + r * (1 / 192 - r * (1 / 640 - r * 17 / 14336))
    out = 0.5 * np.log(far) + series / far
    if near.any():
        way = np.where(near, a, 1.0)[..., None] + np.arange(_STEPS)
        out = np.where(near, out + np.sum(np.log(way / (way + 0.5)), axis=-1), out)
    return np.asarray(out)


# ---- from cells to steps


def _worth_looking(lowest: int, highest: int, near: Ints) -> Ints:
    around = (near[:, None] + np.arange(-_AROUND, _AROUND + 1)).ravel()
    codes = np.concatenate([
        np.arange(max(lowest, -_DENSE), min(highest, _DENSE) + 1), np.arange(lowest, highest + 1, _EVERY),
        around[(around >= lowest) & (around <= highest)], [lowest, highest],
    ])  # fmt: skip
    return np.unique(codes).astype(np.int64)


def relative(logs: Floats) -> Floats:
    """Each row less its largest, which no answer depends on; a row without a possible class stays."""
    top = logs.max(axis=1, keepdims=True)
    return np.asarray(logs - np.where(np.isfinite(top), top, 0.0))


def _differ(a: Floats, b: Floats, by: float = _SAME) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    with np.errstate(invalid="ignore"):
        return np.asarray(~((a == b) | (np.abs(a - b) <= by)).all(axis=-1))


def changes(logs: Floats, by: float = _SAME) -> Ints:
    """The rows that differ from the last one kept."""
    kept = [0]
    for i in range(1, len(logs)):
        if _differ(logs[i], logs[kept[-1]], by):
            kept.append(i)
    return np.array(kept, dtype=np.int64)


def _ordered(values: Floats) -> Ints:
    """Whole numbers in the order of the values."""
    bits = values.view(np.int64)
    return np.where(bits >= 0, bits, np.int64(-(2**63)) - bits)


def _value(ordered: Ints) -> Floats:
    bits = np.where(ordered >= 0, ordered, np.int64(-(2**63)) - ordered)
    return bits.astype(np.int64).view(np.float64)
