"""A copy of a model for others, and what it has lost against the model: slots, and the answers to rows."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ..base import canon
from ..base.show import Page, Shown
from ..data.sources import open_source
from ..exact.counts import Counts
from ..exact.sheet import Sheet
from ..model.model import Model
from ..selection.measure.saved import evaluate
from ..tally.tally import Tally
from .reveals import SLOTS

_LOSS = pa.schema(
    [
        ("column", pa.string()),
        ("what", pa.string()),
        ("slots", pa.int64()),
        ("left_out", pa.int64()),
        ("share", pa.float64()),
    ]
)


@dataclass(frozen=True, eq=False, repr=False)
class SharedCopy(Shown):
    """A copy of a model for others, `.model`, and what it has lost against the model it is a copy `of`; print it.

    >>> model = tb.textbook({"Sky": ["sunny"] * 9 + ["hail"], "Play": ["yes", "no"] * 5}, "Play")
    >>> copy = model.share(at_least=3)
    >>> copy.title, copy.model.tally.least_rows
    ('A copy without what fewer than 3 rows have: 1 of 2 slots are left out', 3)
    """

    of: Model
    model: Model

    @cached_property
    def table(self) -> pa.Table:
        """A row per column and kind of slot: how many there were, how many were left out, and what share they held.

        The share is of what was counted there: of rows, of the words of all texts, of numbers.
        """
        before, after = self._tallies
        lines: list[tuple[str, str, int, int, float]] = []
        for name, counts in before.columns.items():
            rest = after.columns.get(name, Counts({}))
            lines += [
                (name, SLOTS[sheet], *_loss(each, rest.sheets.get(sheet)))
                for sheet, each in counts.sheets.items()
                if sheet in SLOTS
            ]
        return pa.Table.from_pylist([dict(zip(_LOSS.names, line, strict=True)) for line in lines], schema=_LOSS)

    @property
    def lost_classes(self) -> dict[str, int]:
        """The classes that were left out with their rows: the copy never answers them."""
        before, after = self._tallies
        rows = zip(before.classes, before.class_weights().tolist(), strict=True)
        return {name: int(n) for name, n in rows if name not in after.classes}

    def measured(self, data: Any, y: Any = None, *, weights: Any = None) -> dict[str, float]:
        """How the answers to labelled rows change: log loss and accuracy of both, and the share of other answers."""
        source = open_source(data, y, weights=weights, target=self.of.schema.target).repeatable()
        two = [evaluate(model, source) for model in (self.of, self.model)]
        best = [[canon.text(e.classes[i]) for i in np.argmax(e.forecasts["model"][0], axis=1)] for e in two]
        out: dict[str, float] = {"rows": len(best[0])}
        for metric in ("log_loss", "accuracy"):
            out |= {metric: two[0][metric], f"{metric}_of_copy": two[1][metric]}
        return {**out, "other_answers": float(np.mean([a != b for a, b in zip(*best, strict=True)]))}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the copy to a file."""
        self.model.save(path)

    def to_dict(self) -> dict[str, Any]:
        """What was lost as plain values."""
        return {
            "least_rows": self._tallies[1].least_rows,
            "lost_classes": self.lost_classes,
            "columns": self.table.to_pylist(),
        }

    @property
    def _tallies(self) -> tuple[Tally, Tally]:
        assert self.of.tally is not None and self.model.tally is not None
        return self.of.tally, self.model.tally

    @property
    def title(self) -> str:
        """How much was left out, in one sentence."""
        slots, gone = (sum(self.table[name].to_pylist()) for name in ("slots", "left_out"))
        least = self._tallies[1].least_rows
        return f"A copy without what fewer than {least} rows have: {gone:,} of {slots:,} slots are left out"

    def _page(self) -> Page:
        lines = [["column", "what", "slots", "left out", "of what was counted"]]
        for each in self.table.to_pylist():
            if each["left_out"]:
                counts = (f"{each['slots']:,}", f"{each['left_out']:,}", f"{each['share']:.2%}")
                lines.append([canon.printable(each["column"], 40), each["what"], *counts])
        for name, rows in self.lost_classes.items():
            lines.append(
                [f"class {canon.printable(name, 40)} with its {canon.many(rows, 'row')}: the copy never answers it"]
            )
        return Page(self.title, lines if len(lines) > 1 else [], left=2)


def _loss(before: Sheet, after: Sheet | None) -> tuple[int, int, float]:
    """Slots, how many of them are gone, and the share that they had of what was counted."""
    each = [(0, 0.0) if s is None else (_size(s), float(s.by_slot("n").sum())) for s in (before, after)]
    (slots, total), (left, rest) = each
    return slots, slots - left, 1.0 - rest / total if total else 0.0


def _size(sheet: Sheet) -> int:
    """How many slots may go one by one; sums of numbers go class by class."""
    if "x" not in sheet.amounts:
        return len(sheet.slots)
    return len(np.unique(sheet.slot * (1 + int(sheet.label.max(initial=0))) + sheet.label))
