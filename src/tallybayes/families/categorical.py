"""Categorical: P(value given class) from a table of counts.

    amounts    a one under the value
    estimate   P(v given y) = n_vy / n_y, smoothed: (n_vy + α) / (n_y + α·K) for Laplace
    score      log P(v given y)

K is the number of values the column can take: those declared in the schema and those seen in any class. A value
never seen is no evidence, or falls into one reserved slot (K + 1 values) if the settings say so.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..base.arrays import Floats, Ints, safe_log
from ..data.blocks import Codes, N
from ..exact.counts import Counts
from .base import Belief, Context, Family, Linear, Table
from .forms import TableForm
from .smoothing import is_plain
from .support import ColumnTally, Support, share

UNSEEN = "(never seen)"
_NUMBERS = 1 << 16  # whole numbers of a range up to this have a table by number
_WHOLE = re.compile(r"0|-?[1-9]\d{0,18}", re.ASCII)


@dataclass(frozen=True)
class Categorical(Family):
    """A table of value frequencies per class.

    >>> rows = {"Sky": ["sunny", "sunny", "rainy"], "Play": ["yes", "yes", "no"]}
    >>> tb.textbook(rows, "Play").table("Sky")
    P(value given class)        no   yes
    rainy                 0.666667  0.25
    sunny                 0.333333  0.75
    """

    name = "categorical"
    kinds = ("category",)

    def estimate(self, counts: Counts, context: Context) -> CategoricalBelief:
        """The smoothed table."""
        values, n = self._counted(counts, context)
        slots = [*values, UNSEEN] if context.reserve else values
        return CategoricalBelief(tuple(values), context.probabilities(n, slots), context.reserve)

    def _counted(self, counts: Counts, context: Context) -> tuple[list[str], Floats]:
        """The values, and how often each class has them, with the reserved slot at the end if there is one."""
        sheet = counts.sheet("values", N)
        values = sorted({*sheet.slot_names, *(context.values or ()), *context.smoothing.extra_slots()})
        at = {v: i for i, v in enumerate(values)}
        n = np.zeros((len(values) + context.reserve, context.n_classes))
        n[[at[s] for s in sheet.slot_names]] = sheet.table("n", context.n_classes)
        return values, n

    def one_more(
        self, counts: Counts, context: Context, more: Codes, labels: Ints, weights: Floats, asked: Codes
    ) -> Floats | None:
        """A one more in the table; a value that nobody had is one slot more."""
        if not is_plain(context.smoothing):
            return None
        values, n = self._counted(counts, context)
        at, k = {v: i for i, v in enumerate(values)}, len(values)
        known = np.array([*(at.get(s, k) for s in more.slots), -1], dtype=np.int64)[
            more.codes
        ]  # −1 where it is missing
        wanted = np.array([*(at.get(s, -1) for s in asked.slots), -1], dtype=np.int64)[asked.codes]
        out = np.empty((more.rows, asked.rows, context.n_classes))
        for new in (False, True):
            cases = np.flatnonzero((known == k) == new)
            if not len(cases):
                continue
            j = np.arange(len(cases))
            table = np.repeat(np.insert(n, k, 0.0, axis=0)[:, None] if new else n[:, None], len(cases), axis=1)
            there = known[cases] >= 0
            table[known[cases][there], j[there], labels[cases][there]] += weights[cases][there]
            log = safe_log(context.probabilities(table, ()))
            never = log[-1:] if context.reserve else np.zeros_like(log[:1])
            log = np.concatenate([log, never, np.zeros_like(log[:1])])  # the last is of what is missing
            row = np.where(wanted >= 0, wanted, np.where(asked.codes >= 0, len(log) - 2, len(log) - 1))
            places = np.tile(row, (len(cases), 1))
            if new:
                same = asked.codes == _slots_in(more, cases, asked)[:, None]
                places = np.where(same, k, places)
            out[cases] = log[places, j[:, None]]
        return out


def _slots_in(more: Codes, rows: Ints, asked: Codes) -> Ints:
    """The code that another block has for the value of each row; −2 where it has none."""
    at = {s: i for i, s in enumerate(asked.slots)}
    return np.array([at.get(more.slots[code], -2) for code in more.codes[rows].tolist()], dtype=np.int64)


@dataclass(frozen=True)
class CategoricalBelief(Belief):
    """log P(value given class) by table."""

    values: tuple[str, ...]
    probabilities: Floats  # values (and the reserved slot) × classes
    reserve: bool = False

    asked_of = ("category",)
    adds_up = property(lambda self: sums_to_one(self.probabilities))
    axes: ClassVar = {"probabilities": "values+reserve classes"}

    @cached_property
    def _log(self) -> Floats:
        """One more row than values: the reserved slot's share, or zeros for "no evidence"."""
        log = safe_log(self.probabilities)
        return log if self.reserve else np.vstack([log, np.zeros((1, log.shape[1]))])

    @cached_property
    def _at(self) -> dict[str, int]:
        return {v: i for i, v in enumerate(self.values)}

    def _rows(self, slots: Sequence[str]) -> Ints:
        return np.array([self._at.get(s, len(self.values)) for s in slots] or [0], dtype=np.int64)

    def rows_of(self, slots: Sequence[str]) -> Floats:
        """log P(value given class) of a block's slots, and zeros after them: the row of code −1, missing."""
        at = [self._at.get(s, len(self.values)) for s in slots]
        return np.vstack([self._log[at], np.zeros((1, self._log.shape[1]))]) if at else np.zeros_like(self._log[:1])

    @cached_property
    def by_number(self) -> tuple[int, Floats] | None:
        """The smallest value that is a whole number, log P of all such from there to the largest, and of any other.

        None where they are too far apart for a table.
        """
        known = {int(v): i for v, i in self._at.items() if _WHOLE.fullmatch(v) and -(2**63) <= int(v) < 2**63}
        low, high = (min(known), max(known)) if known else (0, -1)
        if high - low >= _NUMBERS:
            return None
        return low, self._log[[known.get(v, len(self.values)) for v in range(low, high + 2)]]

    def parts(self, block: Codes) -> Floats:
        """log P(value given class); 0 for missing."""
        if block.rows == 1 and len(block.slots) == 1 and block.codes[0] == 0:
            at = self._at.get(block.slots[0], len(self.values))
            return self._log[at : at + 1]
        out: Floats = self.rows_of(block.slots)[block.codes]
        return out

    def note(self, block: Codes, row: int) -> str:
        """Whether the value was never seen."""
        return "" if self.reserve or block.text(row) in self._at else "never seen"

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """Values by their probabilities, renormalised (epsilon smoothing does not sum to one)."""
        names = [*self.values, UNSEEN] if self.reserve else list(self.values)
        if not names:  # no row of any class has a value
            return pa.nulls(len(labels), pa.string())
        return pa.array(names, pa.string()).take(pa.array(draw(self.probabilities, labels, rng)))

    def parameters(self) -> tuple[int, int]:
        """C·K raw, C·(K − 1) free."""
        k, c = self.probabilities.shape
        return c * k, c * max(k - 1, 0)

    def table(self) -> Table:
        """P(value given class)."""
        rows = [*self.values, UNSEEN] if self.reserve else list(self.values)
        return Table("P(value given class)", rows, self.probabilities, "values")

    def form(self) -> TableForm:
        """The table."""
        known = len(self.values)
        return TableForm(self.values, self._log[:known], self._log[known])

    def support(self, counted: ColumnTally, block: Codes) -> list[Support]:
        """The rows that have the value."""
        value, slots = block.text(0), self.table().rows
        n, total = counted.of_value(value)
        at = self._at.get(str(value), len(slots) - 1)
        return [Support(n, total, share(self.probabilities[at], counted.strength(total, slots), len(slots)))]

    def linear(self) -> Linear:
        """One feature per value: is it this one?"""
        width = len(self.values) + self.reserve

        def features(block: Codes) -> Floats:
            at = np.where(block.codes >= 0, self._rows(block.slots)[block.codes], width)
            return np.eye(width + 1)[np.minimum(at, width)][:, :width]

        log = self._log[:width].T
        return Linear(list(self.table().rows), log, np.zeros(log.shape[0]), np.zeros(width), features)


def sums_to_one(probabilities: Floats) -> bool:
    """Whether the slots of every class, along the first axis, have one whole probability among them."""
    return len(probabilities) == 0 or bool(np.abs(probabilities.sum(axis=0) - 1.0).max(initial=0.0) < 1e-9)


def draw(probabilities: Floats, labels: Ints, rng: np.random.Generator) -> Ints:
    """A slot for each row, by the probabilities (slots × classes) of the row's class."""
    totals = np.cumsum(probabilities, axis=0)
    out = np.zeros(len(labels), dtype=np.int64)
    for label in np.unique(labels):
        rows = labels == label
        column = totals[:, label]
        out[rows] = np.searchsorted(column, rng.random(np.count_nonzero(rows)) * column[-1], side="right")
    return np.minimum(out, len(probabilities) - 1)
