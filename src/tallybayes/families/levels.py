"""Levels: how often something occurs, as a category of its own.

    amounts    a one under the value's level (a number column: the value; a bag: word and how often it occurs)
    estimate   P(ℓ given y) = (n_yℓ + α) / (n_y + α·(L + 1)),  levels 0 … L
    score      log P(ℓ given y), for a bag summed over all words, those at level 0 included

L is the largest count seen, in a bag that of any word in any row, or given as `top`. A number column whose values are
not counts (negative, fractions, or above 255) has just the values it was seen to have as levels.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..base.arrays import Floats, Ints, safe_log
from ..base.canon import number_text
from ..base.errors import SettingsError
from ..data.blocks import Bag, N, Numbers
from ..exact.counts import Counts
from .base import Belief, Context, Family, Linear, Table, Term
from .categorical import draw, sums_to_one
from .forms import LevelsForm
from .histogram import GroupBelief, Histogram, left_out, read_cells
from .support import ColumnTally, Support, share, sum_of
from .vocabulary import bag_rows

_MOST_COUNT = 255  # a largest value above this is no count of anything that repeats
_MOST_LEVELS = 100_000  # room is made for each, however few values there are


@dataclass(frozen=True)
class Levels(Family):
    """Each count a category; `top` is the largest level, and greater counts are counted as it.

    >>> rows = {"children": [0, 1, 1, 3, 4, 5], "let": ["fast", "fast", "slow", "slow", "slow", "slow"]}
    >>> tb.textbook(rows, "let", families={"children": tb.families.Levels(top=3)}).table("children")
    P(level given class)      fast   slow
    0                     0.333333  0.125
    1                     0.333333   0.25
    2                     0.166667  0.125
    3                     0.166667    0.5
    """

    top: int | None = None

    name = "levels"
    kinds = ("number", "bag", "text")

    def __post_init__(self) -> None:
        if self.top is not None and not 0 <= self.top <= _MOST_LEVELS:
            raise SettingsError(
                f"levels up to {self.top!r}", hint=f"take a largest level from 0 to {_MOST_LEVELS:,}, or none."
            )

    def estimate(self, counts: Counts, context: Context) -> Belief:
        """The smoothed table of levels."""
        if "words" in counts.sheets or "rows" in counts.sheets:
            return self._of_bag(counts, context)
        h = read_cells(counts, context, self.name)
        values, n = self._levels(h, context.n_classes)
        names = [number_text(v) for v in values]
        empty = tuple(name for name, total in zip(names, n.sum(axis=1).tolist(), strict=True) if total == 0)
        p = context.probabilities(n, names)
        return LevelsBelief(h.cells, context.n_classes, p, values, self.top is not None, empty)

    def _levels(self, h: Histogram, n_classes: int) -> tuple[Floats, Floats]:
        """The levels, and how often each class has them."""
        points = np.array(h.cells.points)
        counts = (
            len(points) > 0 and bool(np.all((points >= 0) & (points == np.rint(points)))) and points[-1] <= _MOST_COUNT
        )
        if self.top is not None:
            values = np.arange(self.top + 1.0)
        else:
            values = np.arange(points[-1] + 1.0) if counts else points
        n = np.zeros((len(values), n_classes))
        level = level_of(values, h.low, h.high, fold=self.top is not None)
        np.add.at(n, level[level >= 0], h.n[level >= 0])
        return values, n

    def leave_one_out(self, h: Histogram, counts: Counts, context: Context) -> tuple[Floats, Floats]:
        """log P of each cell's level: as counted, and with one row of the cell taken out."""
        belief = self.estimate(counts, context)
        assert isinstance(belief, LevelsBelief)
        values, n = self._levels(h, context.n_classes)
        left = left_out(context, n, [number_text(v) for v in values], belief.groups(h.codes))
        return belief.log_cells(h.codes), left

    def _of_bag(self, counts: Counts, context: Context) -> BagLevelsBelief:
        words = sorted(counts.sheets["words"].slot_names) if "words" in counts.sheets else []
        sheet = counts.sheet("levels", N)
        if words and "levels" not in counts.sheets:
            raise SettingsError(
                f"column {context.column!r} was counted without levels",
                hint=f"count with schema.with_column({context.column!r}, levels=L), L the largest count to tell apart.",
            )
        split = [name.partition(" ") for name in sheet.slot_names]
        largest = max((int(level) for level, _, _ in split), default=1)
        top = largest if self.top is None else self.top
        at = {w: i for i, w in enumerate(words)}
        n = np.zeros((top + 1, len(words), context.n_classes))
        for (level, _, word), row in zip(split, sheet.table("n", context.n_classes), strict=True):
            n[min(int(level), top), at[word]] += row
        n[0] = np.maximum(bag_rows(counts, context) - n.sum(axis=0), 0.0)
        names = [str(level) for level in range(top + 1)]
        return BagLevelsBelief(tuple(words), context.probabilities(n, names))


def level_of(values: Floats, low: Floats, high: Floats, fold: bool) -> Ints:
    """The level of each cell, −1 for none: a point's own, or the whole number that a general cell holds.

    With `fold`, what lies above the top level is at the top, as in a bag.
    """
    if len(values) == 0:
        return np.full(len(low), -1, dtype=np.int64)
    value = np.where(low == high, low, np.where(np.ceil(low) < high, np.ceil(low), np.nan))
    if fold:
        value = np.where(np.where(low == high, low, high) > values[-1], np.fmin(value, values[-1]), value)
    at = np.minimum(np.searchsorted(values, value), len(values) - 1)
    return np.where(values[at] == value, at, -1).astype(np.int64)


@dataclass(frozen=True)
class LevelsBelief(GroupBelief):
    """P(level given class) of a number column; a value that is no level is no evidence."""

    values: Floats
    fold: bool
    empty: tuple[str, ...]  # levels that no row has

    def groups(self, codes: Ints) -> Ints:
        """The level of each cell, −1 for none."""
        return level_of(self.values, *self.cells.edges(codes), self.fold)

    def near(self) -> Floats:
        """The levels."""
        return self.values

    def note(self, block: Numbers, row: int) -> str:
        """Whether the value is not one of the levels."""
        return "" if self.groups(self.cells.codes(block.values[[row]]))[0] >= 0 else "never seen"

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """A level by its probability; nothing where no value is a level."""
        if len(self.values) == 0:
            return pa.nulls(len(labels), pa.float64())
        return pa.array(self.values[draw(self.probabilities, labels, rng)])

    def table(self) -> Table:
        """P(level given class)."""
        names = [number_text(v) for v in self.values]
        return Table("P(level given class)", names, self.probabilities, "levels", empty=self.empty)


@dataclass(frozen=True)
class BagLevelsBelief(Belief):
    """P(word occurs ℓ times given class) for every word."""

    words: tuple[str, ...]
    probabilities: Floats  # levels × words × classes

    asked_of = ("bag", "text")
    axes: ClassVar = {"probabilities": "levels words classes"}
    adds_up = property(lambda self: sums_to_one(self.probabilities))

    @cached_property
    def _log(self) -> Floats:
        return safe_log(self.probabilities)

    @cached_property
    def _at(self) -> dict[str, int]:
        return {w: i for i, w in enumerate(self.words)}

    def levels_of(self, block: Bag, row: int) -> Ints:
        """The level of every word in one row."""
        out = np.zeros(len(self.words), dtype=np.int64)
        start, stop = block.matrix.indptr[row : row + 2]
        for slot, amount in zip(block.matrix.indices[start:stop], block.matrix.data[start:stop], strict=True):
            at = self._at.get(block.slots[slot])
            if at is not None:
                out[at] = min(int(np.ceil(amount)), len(self.probabilities) - 1)
        return out

    def parts(self, block: Bag) -> Floats:
        """Σ over all words of log P(level given class); 0 for a missing bag.

        All words at level 0, then what changes for those that occur; infinities are counted apart, so that none
        meets another.
        """
        finite, infinite = np.where(np.isinf(self._log), 0.0, self._log), np.isinf(self._log)
        row, slot, amount = block.entries()
        at = np.array([self._at.get(s, -1) for s in block.slots] or [0], dtype=np.int64)[slot]
        row, word, amount = row[at >= 0], at[at >= 0], amount[at >= 0]
        level = np.minimum(np.ceil(amount), len(self.probabilities) - 1).astype(np.int64)
        out = np.empty((block.rows, self.probabilities.shape[2]))
        for y in range(out.shape[1]):
            change = finite[level, word, y] - finite[0, word, y]
            never = infinite[level, word, y].astype(np.float64) - infinite[0, word, y]
            out[:, y] = finite[0, :, y].sum() + np.bincount(row, weights=change, minlength=block.rows)
            impossible = infinite[0, :, y].sum() + np.bincount(row, weights=never, minlength=block.rows)
            out[impossible > 0.5, y] = -np.inf
        out[~block.has] = 0.0
        return out

    def terms(self, block: Bag, row: int) -> list[Term]:
        """The words that occur, one by one, then all that do not."""
        if not block.has[row]:
            return super().terms(block, row)
        level = self.levels_of(block, row)
        there = np.flatnonzero(level)
        terms = [Term(f"{self.words[w]} ×{level[w]}", self._log[level[w], w]) for w in there]
        rest = np.flatnonzero(level == 0)
        return [*terms, Term(f"({len(rest)} words that do not occur)", self._log[0, rest].sum(axis=0))]

    def form(self) -> LevelsForm:
        """What every word says at every level."""
        return LevelsForm(self.words, self._log)

    def support(self, counted: ColumnTally, block: Bag) -> list[Support]:
        """The rows behind each word that occurs, then all rows behind those that do not."""
        level, rows = self.levels_of(block, 0), counted.rows()
        there, levels = np.flatnonzero(level), len(self.probabilities)
        strength = counted.strength(rows, [str(x) for x in range(levels)])
        p = self.probabilities[level[there], there]
        counts = np.maximum(p * strength - (strength - rows) / levels, 0.0)  # the smoothing taken off again
        single = [Support(counts[i], rows, share(p[i], strength, levels)) for i in range(len(there))]
        return [*single, Support(rows, rows, sum_of(self.probabilities[0, level == 0], strength))]

    def linear(self) -> Linear | None:
        """One feature per word and level above 0: weights log P(ℓ) − log P(0), offset Σ log P(0)."""
        if not np.isfinite(self._log).all():
            return None
        levels, words, classes = self.probabilities.shape
        weights = (self._log[1:] - self._log[0]).transpose(1, 0, 2).reshape(words * (levels - 1), classes)

        def features(block: Bag) -> Floats:
            out = np.zeros((block.rows, words, levels))
            for row in range(block.rows):
                out[row, np.arange(words), self.levels_of(block, row)] = 1.0
            flat = out[:, :, 1:].reshape(block.rows, -1)
            flat[~block.has] = np.nan  # a missing bag says nothing, an empty one that no word occurs
            return flat

        names = [f"{w} ×{level}" for w in self.words for level in range(1, levels)]
        return Linear(names, weights.T, self._log[0].sum(axis=0), np.zeros(len(names)), features)

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """Every word as often as its level says."""
        count = np.zeros((len(labels), len(self.words)), dtype=np.int64)
        for w in range(len(self.words)):
            count[:, w] = draw(self.probabilities[:, w], labels, rng)
        lists = [[w for w, k in zip(self.words, row, strict=True) for _ in range(k)] for row in count.tolist()]
        return pa.array(lists, pa.list_(pa.string()))

    def parameters(self) -> tuple[int, int]:
        """C·V·(L + 1) raw, C·V·L free."""
        levels, words, classes = self.probabilities.shape
        return levels * words * classes, (levels - 1) * words * classes

    def table(self) -> Table:
        """P(word occurs ℓ times given class)."""
        rows = [f"{w} ×{level}" for w in self.words for level in range(len(self.probabilities))]
        values = self.probabilities.transpose(1, 0, 2).reshape(len(rows), -1)
        return Table("P(level given class)", rows, values, "levels")
