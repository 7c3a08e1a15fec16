"""Counts of several tallies side by side, tallies × slots × classes, by which two samples or many periods compare."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.arrays import Floats
from ...data.kinds import KINDS
from ...exact.cells import Cells
from ...tally.tally import Tally
from ...tally.unlabelled import OTHERS

FINE = 64  # cells of about equal frequency that a number's cells are coarsened to at most, to be asked in their order
_MOST_SINGLE = 1 << 16  # rows of values whose names were not kept, each taken for a value of its own


class SideBySide:
    """Tallies with their classes in one numbering."""

    def __init__(self, tallies: Sequence[Tally]) -> None:
        self.tallies = tuple(tallies)
        self.classes = sorted({c for t in tallies for c in t.classes})
        number = {c: i for i, c in enumerate(self.classes)}
        self.place = [[number[c] for c in t.classes] for t in self.tallies]
        self.weights = np.zeros((len(self.tallies), len(self.classes)))
        for i, t in enumerate(self.tallies):
            self.weights[i, self.place[i]] = t.class_weights()
        self.whole_rows = all(
            np.array_equal(w, np.rint(w)) and w.sum() == t.rows for w, t in zip(self.weights, self.tallies, strict=True)
        )

    def table(self, name: str, kind: str, bins: int) -> Floats | None:
        """Counts, tallies × slots × classes: values, words or cells coarsened to so many; None where there are none."""
        sheet = {"category": "values", "bag": "words", "text": "words", "number": "cells"}.get(KINDS[kind].like)
        cells = [t.schema[name].cells for t in self.tallies]
        if sheet is None or (sheet == "cells" and (cells[0] is None or any(c != cells[0] for c in cells))):
            return None
        sheets = [t.columns[name].sheet(sheet, ("n",)) for t in self.tallies]
        slots = sorted({slot for s in sheets for slot in s.slot_names})
        at = {s: i for i, s in enumerate(slots)}
        out = np.zeros((len(sheets), len(slots), len(self.classes)))
        for i, (s, t) in enumerate(zip(sheets, self.tallies, strict=True)):
            rows = [at[name] for name in s.slot_names]
            out[i][np.ix_(rows, self.place[i])] = s.table("n", len(t.classes))
        if cells[0] is not None:
            out = _coarse(out, slots, cells[0], bins)
        return _singly(out, at[OTHERS]) if sheet == "values" and OTHERS in at else out

    def missing(self, table: Floats) -> Floats:
        """One more slot for a table: the rows that have no value."""
        return np.asarray(np.maximum(self.weights - table.sum(axis=1), 0.0)[:, None])


def _singly(table: Floats, slot: int) -> Floats:
    """The counts with the rows of one slot as so many slots of one row each."""
    rows = np.argwhere(table[:, slot] >= 1)
    each = [(i, c) for i, c in rows.tolist() for _ in range(int(min(table[i, slot, c], _MOST_SINGLE)))]
    single = np.zeros((table.shape[0], len(each), table.shape[2]))
    for k, (i, c) in enumerate(each):
        single[i, k, c] = 1.0
    return np.concatenate([np.delete(table, slot, axis=1), single], axis=1)


def _coarse(table: Floats, slots: Sequence[str], cells: Cells, bins: int) -> Floats:
    """The counts of cells added up to at most so many of about equal frequency, in the order of the line."""
    codes = cells.slot_codes(slots)
    low, high = cells.edges(codes)
    with np.errstate(invalid="ignore"):
        order = np.lexsort((high, low))
    pooled = table.sum(axis=(0, 2))[order]
    total = float(pooled.sum())
    if total == 0:
        return table
    group = np.minimum((bins * (np.cumsum(pooled) - pooled / 2) / total).astype(np.int64), bins - 1)
    out = np.zeros((table.shape[0], bins, table.shape[2]))
    for old, new in zip(order.tolist(), group.tolist(), strict=True):
        out[:, new] += table[:, old]
    return out[:, out.any(axis=(0, 2))]
