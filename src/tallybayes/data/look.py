"""One column of the first look: what was read of it, once, and whether it gives the label away."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ..base.arrays import Floats, Ints
from . import values as reading
from .blocks import Codes
from .schema import Column

_LEAK_ROWS = 50  # below this nothing is called a leak: chance alone separates the classes
_LEAK = 0.995  # a column that names the class this often, each row left out, is not evidence but the answer
_LEAK_BY_ABSENCE = 0.95
_STRETCHES = 40  # of a number column, at most
T = TypeVar("T")


@dataclass(frozen=True)
class Ordered:
    """The numbers of a column in their order, sorted once for all who ask."""

    values: Floats  # without the missing ones
    order: Ints  # the row of each value
    absent: Ints  # the rows without a value

    @classmethod
    def of(cls, values: Floats) -> Ordered:
        """The numbers of so many rows, NaN for missing."""
        missing = np.isnan(values)
        there = np.flatnonzero(~missing)
        order = there[np.argsort(values[there])]
        return cls(values[order], order, np.flatnonzero(missing))

    @property
    def rows(self) -> int:
        """How many rows, those without a value included."""
        return len(self.order) + len(self.absent)

    def distinct(self) -> Floats:
        """The different values."""
        return self.values[np.concatenate(([True], self.values[1:] != self.values[:-1]))[: len(self.values)]]


@dataclass(frozen=True, eq=False)
class Looked:
    """A raw column, and what was read of it before."""

    raw: Any
    _known: dict[Any, Any] = field(default_factory=dict)

    def codes(self, missing: Sequence[str] = ()) -> Codes:
        """The column as a category."""
        return self._once(("codes", *missing), lambda: reading.category(self.raw, missing))

    def numbers(self, name: str, missing: Sequence[str] = ()) -> Ordered:
        """The column as numbers."""
        where = reading.Where(name, 0)
        return self._once(("numbers", *missing), lambda: Ordered.of(reading.number(self.raw, where, missing)))

    def _once(self, key: Any, read: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = read()
        out: T = self._known[key]
        return out


def read_ahead(name: str, raw: Any) -> Looked:
    """A column with what is sure to be asked of it read already: columns can be read side by side."""
    looked = Looked(raw)
    if isinstance(raw, pa.Array) and raw.null_count < len(raw):
        if reading.is_text(raw.type):
            looked.codes(("",))
        elif pa.types.is_integer(raw.type) or pa.types.is_floating(raw.type):
            looked.numbers(name, ("",))
    return looked


def gives_away(looked: Looked, proposed: Sequence[Column], labels: Codes) -> str | None:
    """Why a column is the answer in disguise, or None."""
    if proposed[0].kind not in ("category", "number") or proposed[0].part or isinstance(looked.raw, np.ndarray):
        return None
    codes, y = _coarse(looked, proposed[0], labels.codes)
    if y.min(initial=0) < 0:
        codes, y = codes[y >= 0], y[y >= 0]
    n_classes = len(labels.slots)
    if len(y) < _LEAK_ROWS:
        return None
    places = (int(codes.max()) + 2) * n_classes
    table = np.bincount((codes + np.int64(1)) * n_classes + y, minlength=places).reshape(-1, n_classes)
    absent, there = table[0], table[1:].sum(axis=0)
    if np.count_nonzero(absent + there) < 2:
        return None
    base = float((absent + there).max() / len(y))
    by_absence = _left_out_accuracy(np.stack([absent, there]))
    if absent.any() and by_absence >= _LEAK_BY_ABSENCE and base < _LEAK_BY_ABSENCE - 0.05:
        return f"it gives the label away: whether it is missing names the class of {by_absence:.1%} of the rows"
    accuracy = _left_out_accuracy(table)
    if accuracy >= _LEAK and base < _LEAK - 0.05:
        return f"it gives the label away: it alone names the class of {accuracy:.1%} of the rows"
    if absent.sum() / len(y) > 0.5 and there.sum() >= 30 and there.max() >= 0.99 * there.sum() and base < 0.9:
        name = labels.slots[int(np.argmax(there))]
        return f"it gives the label away: where it has a value, the class is {name!r}"
    return None


def _coarse(looked: Looked, column: Column, y: Ints) -> tuple[Ints, Ints]:
    """A code per row, −1 for missing, and the row's label: the value of a category, a stretch of a number.

    The rows of a number come in the order of its values.
    """
    missing = ("", *column.missing)
    if column.kind == "category":
        return looked.codes(missing).codes, y
    x = looked.numbers(column.name, missing)
    edges = x.distinct()
    if len(edges) > _STRETCHES:
        inner = np.linspace(0, 1, _STRETCHES + 1)[1:-1]
        edges = np.unique(x.values[np.rint((len(x.values) - 1) * inner).astype(np.int64)])
    starts = np.concatenate(([0], np.searchsorted(x.values, edges, side="right"), [len(x.values)]))
    codes = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    return np.concatenate((np.full(len(x.absent), -1), codes)), np.concatenate((y[x.absent], y[x.order]))


def _left_out_accuracy(table: Ints) -> float:
    """How often the other rows with the same value have, for the most part, the row's class; values × classes."""
    top = np.sort(table, axis=1)
    best, second = top[:, -1:], top[:, -2:-1]
    others = np.where(table == best, np.where(np.sum(table == best, axis=1, keepdims=True) > 1, best, second), best)
    right = (table - 1 > 0) & (table - 1 >= others)
    return float(np.sum(np.where(right, table, 0)) / np.sum(table))
