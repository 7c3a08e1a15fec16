"""What a model has learnt of each column, values and ranges, and how far rows lie outside of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

import numpy as np

from ...base.arrays import Floats
from ...base.wording import end_text
from ...data.blocks import Block, Codes, Numbers
from ...data.clock import told_by
from ...families.forms import TableForm
from ...tally.tally import Tally

if TYPE_CHECKING:
    from ...data.schema import Column
    from ..model import Model

_MADE = ("pair", "gap")  # kinds that only tell again what their columns tell


@dataclass
class Outside:
    """How many rows have something of a column that was never learnt."""

    missing: int = 0
    unseen: int = 0  # values that no counted row had
    below: int = 0  # numbers beyond the range of those counted
    above: int = 0
    odd: int = 0  # cells that could not be read, which are among the missing

    def add(self, other: Outside) -> None:
        """Count what the other has counted, too."""
        for f in fields(self):
            setattr(self, f.name, getattr(self, f.name) + getattr(other, f.name))


def learnt_range(tally: Tally | None, name: str) -> tuple[float, float] | None:
    """The least and the greatest number that was counted, as far as cells tell; None where none were.

    A point is a value itself, a general cell counts as a whole.
    """
    if tally is None or name not in tally.columns or tally.schema[name].like != "number":
        return None
    cells, sheet = tally.schema[name].cells, tally.columns[name].sheets.get("cells")
    if cells is None or not sheet:
        return None
    low, high = cells.edges(cells.slot_codes(sheet.slot_names))
    return float(low.min()), float(high.max())


def ends_known(tally: Tally | None, name: str) -> bool:
    """Whether the ends of that range are numbers that were counted, and not the edges of cells that hold some."""
    if (ends := learnt_range(tally, name)) is None or tally is None:
        return False
    cells, sheet = tally.schema[name].cells, tally.columns[name].sheets["cells"]
    assert cells is not None
    low, high = cells.edges(cells.slot_codes(sheet.slot_names))
    return bool(high[low == ends[0]].min() == ends[0] and low[high == ends[1]].max() == ends[1])


def range_text(ends: tuple[float, float], column: Column | None = None) -> str:
    """A range as a person reads it; that of the days of dates as dates, that of hours as times.

    >>> range_text((0.0, 89.99609375)), range_text((13.0, 12548.0))
    ('0 to 90', '13 to 12548')
    >>> range_text((8.5, 17.75), tb.Column("at", "number", spelling=tb.Spelling(clock=True)))
    '8:30 to 17:45'
    """
    told = end_text if column is None else told_by(column) or end_text
    whole = column is not None and column.part == "days"
    return " to ".join(told(float(round(end)) if whole else end) for end in ends)


def beyond(tally: Tally | None, name: str, block: Block) -> str:
    """A word about the number of one row (a block of one) that lies beyond the range counted; empty if none does."""
    if tally is None or not isinstance(block, Numbers) or (ends := learnt_range(tally, name)) is None:
        return ""
    far = block.values[0] < ends[0] or block.values[0] > ends[1]
    return f"beyond what was learnt: {range_text(ends, tally.schema[name])}" if far else ""


class LearntColumns:
    """The values and the range of every column of a model, to hold rows against."""

    def __init__(self, model: Model) -> None:
        self.names = tuple(c.name for c in model.schema.counted if c.kind not in _MADE)
        self.ranges: dict[str, tuple[float, float]] = {}
        self.values: dict[str, frozenset[str]] = {}
        for name in self.names:
            found = learnt_range(model.tally, name)
            if found is not None:
                self.ranges[name] = found
            values = _values(model, name)
            if values is not None:
                self.values[name] = values

    def outside(self, blocks: Mapping[str, Block]) -> dict[str, Outside]:
        """What rows have of each column that was never learnt; columns of which all is known are left out."""
        out = {}
        for name in self.names:
            found = self._outside(name, blocks[name])
            if found != Outside():
                out[name] = found
        return out

    def _outside(self, name: str, block: Block) -> Outside:
        if isinstance(block, Numbers):
            return _of_numbers(block.values, *self.ranges.get(name, (-np.inf, np.inf)))
        if not isinstance(block, Codes):
            return Outside(missing=block.rows - int(np.count_nonzero(block.present())))
        known = self.values.get(name)
        some = block.codes.min(initial=0) < 0
        out = Outside(missing=int(np.count_nonzero(block.codes < 0)) if some else 0)
        if known is not None and not known.issuperset(block.slots):
            new = np.array([slot not in known for slot in block.slots], dtype=bool)
            out.unseen = int(np.count_nonzero(np.append(new, False)[block.codes]))
        return out


def _values(model: Model, name: str) -> frozenset[str] | None:
    """The values of a category that were counted or written down; None of other columns."""
    if model.schema[name].like != "category":
        return None
    if model.tally is not None:
        sheet = model.tally.columns[name].sheets.get("values")
        return frozenset(sheet.slot_names if sheet else ())
    form = model.beliefs[name].form() if name in model.beliefs else None
    return frozenset(form.values) if isinstance(form, TableForm) else None


def _of_numbers(values: Floats, low: float, high: float) -> Outside:
    if len(values) == 0:
        return Outside()
    if values.min() >= low and values.max() <= high:  # which no missing value does
        return Outside()
    missing = int(np.count_nonzero(np.isnan(values)))
    return Outside(missing, 0, int(np.count_nonzero(values < low)), int(np.count_nonzero(values > high)))
