"""What can be read out of the file of a model or a tally.

`revealed` walks the counts, the schema and the settings as the file holds them. Whatever is spelled out and stands in
few rows is a line: what it is, its text, and how many rows have it. What rows have fitted together (weights, cuts,
corrections) is listed, too.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ..base import canon
from ..base.arrays import Floats
from ..base.errors import SettingsError
from ..base.show import Page, Shown
from ..data.clock import hours_of, told_by
from ..data.kinds import kept
from ..data.pairs import PairColumn, pair_values
from ..data.schema import Column, Schema
from ..exact.cells import Cells
from ..exact.counts import Counts
from ..exact.limbs import round_ratio, spread
from ..exact.moments import MOMENTS
from ..exact.sheet import Sheet
from ..families.base import Family
from ..families.calibration import Correction
from ..families.settings import Settings, concern
from ..model.model import Model
from ..model.sets import told_notes
from ..tally.guard import how_often
from ..tally.tally import Tally
from ..tally.together import TOGETHER, together
from ..tally.traces import weighted

_MOST_LINES = 5  # of each column on a page
_DAYS = 3e6  # days before or after 1970 that are shown as dates
SLOTS = {"values": "value", "words": "word", "levels": "word so often", "cells": "number", "moments": "sum"}
_LINES = pa.schema([("column", pa.string()), ("what", pa.string()), ("value", pa.string()), ("rows", pa.float64())])


@dataclass(frozen=True)
class RevealedLine:
    """One thing that can be read: what it is, its text, and how many rows have it; None where nobody can tell."""

    what: str
    value: str
    rows: float | None = None


@dataclass(frozen=True)
class Revealed:
    """What can be read of one column: sentences that sum it up, and lines, what fewest rows have first."""

    column: str  # the target for the classes; "" for what concerns the whole model
    summary: tuple[str, ...]
    lines: tuple[RevealedLine, ...]

    def to_dict(self) -> dict[str, Any]:
        """The same as plain values."""
        lines = [{"what": line.what, "value": line.value, "rows": _plain(line.rows)} for line in self.lines]
        return {"column": self.column, "summary": list(self.summary), "lines": lines}


@dataclass(frozen=True, eq=False, repr=False)
class Reveals(Shown):
    """What can be read out of a file: `.columns` of it, `.table` with a row per line; print it.

    >>> model = tb.textbook({"Name": ["Ann", "Bob", "Bob"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> model.reveals(below=2)
    What a file of this model reveals of 3 rows
    column  what    value                     rows
    Play: 2 labels: 1 in one row only, 1 in fewer than 2 rows
            label   no                           1
    Name: 2 values: 1 in one row only, 1 in fewer than 2 rows
            value   Ann                          1
            family  categorical
            reason  text, 2 different values
    """

    title: str
    below: int  # slots that fewer rows have are listed
    columns: tuple[Revealed, ...]

    @cached_property
    def table(self) -> pa.Table:
        """A row per line: column, what it is, its text, and how many rows have it."""
        lines = [(c.column, line.what, line.value, line.rows) for c in self.columns for line in c.lines]
        return pa.table([[line[i] for line in lines] for i in range(len(_LINES))], schema=_LINES)

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        return self.table.to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain values."""
        return {"title": self.title, "below": self.below, "columns": [c.to_dict() for c in self.columns]}

    def _page(self) -> Page:
        lines = [["column", "what", "value", "rows"]]
        for each in self.columns:
            name = canon.printable(each.column or "the whole model", 40)
            lines += [[f"{name}: {sentence}"] for sentence in each.summary]
            shown = each.lines if len(each.lines) <= _MOST_LINES + 1 else each.lines[:_MOST_LINES]
            lines += [["", *row] for row in rows_of(shown)]
            if len(each.lines) > len(shown):
                lines.append([f"… {len(each.lines) - len(shown):,} more lines of {name}"])
        return Page(self.title, lines, left=3)


def rows_of(lines: Iterable[RevealedLine]) -> Iterator[tuple[str, str, str]]:
    """Lines as the cells of a table."""
    for line in lines:
        yield line.what, canon.printable(line.value, 60), "" if line.rows is None else f"{line.rows:,.10g}"


def _plain(rows: float | None) -> float | int | None:
    return int(rows) if rows is not None and rows == int(rows) else rows


def revealed(of: Model | Tally, below: int = 5) -> Reveals:
    """What can be read out of the file that a model or a tally would be saved to."""
    if isinstance(below, bool) or not isinstance(below, (int, np.integer)) or below < 1:
        raise SettingsError(f"slots below {below!r} rows", hint="take a whole number of 1 or more.")
    tally = of if isinstance(of, Tally) else of.tally
    settings = Settings() if isinstance(of, Tally) else of.settings
    families = {} if isinstance(of, Tally) else of.families
    reader = _Reader(of.schema, tally, settings, int(below))
    notes: Mapping[str, Any] = {} if isinstance(of, Tally) else of.notes
    files = () if isinstance(of, Tally) else of.history.sources
    columns = [reader.target(), *(reader.column(c, families.get(c.name)) for c in of.schema.columns)]
    columns.append(reader.whole(notes, files))
    origin = "no rows: it was written by hand" if tally is None else canon.many(tally.rows, "row")
    if tally is not None and tally.least_rows:
        origin += f", a copy without what fewer than {tally.least_rows} had when it was made"
    found = tuple(c for c in columns if c.summary or c.lines)
    return Reveals(f"What a file of this {'tally' if of is tally else 'model'} reveals of {origin}", int(below), found)


class _Reader:
    """Reads counts, schema and settings for what they spell out."""

    def __init__(self, schema: Schema, tally: Tally | None, settings: Settings, below: int) -> None:
        self.schema, self.tally, self.settings, self.below = schema, tally, settings, below
        self.classes = () if tally is None else tally.classes

    def target(self) -> Revealed:
        """The classes, and the hashes of rows."""
        if self.tally is None:
            return Revealed(self.schema.target, (), ())
        weights = self.tally.class_weights()
        rows = zip(self.classes, weights.tolist(), strict=True)
        lines = [RevealedLine("label", name, n) for name, n in rows if n < self.below]
        summary = [self._sentence("label", weights)]
        hashes = self.tally.labels.sheets.get("receipts")
        if hashes is not None:
            summary.append(f"{len(hashes.slots):,} hashes of rows: whoever guesses a whole row can check the guess")
        if pairs := self._together():
            summary.append(self._sentence("cell pair", np.array([line.rows for line in pairs])))
            lines += [line for line in pairs if line.rows is not None and line.rows < self.below]
        if weighted(self.tally):
            summary.append("the rows have weights: what is called rows here are sums of weights")
        if self.tally.skipped:
            summary.append(f"{canon.many(self.tally.skipped, 'row')} had no label")
        return Revealed(self.schema.target, tuple(summary), _sorted(lines))

    def _together(self) -> list[RevealedLine]:
        """Two cells that were counted together, and how many rows of a fold have both."""
        both, sheet = together(self.schema), None if self.tally is None else self.tally.labels.sheets.get(TOGETHER)
        if both is None or sheet is None:
            return []
        names = [side.source if side.part is None else f"{side.source}.{side.part}" for side in both.of or ()]
        slots = zip(map(json.loads, sheet.slot_names), sheet.by_slot("n").tolist(), strict=True)
        return [
            RevealedLine("cell pair", f"{names[s[1]]}: {s[2]} and {names[s[3]]}: {s[4]}", n)
            for s, n in slots
            if len(s) == 5
        ]

    def column(self, column: Column, family: Family | None) -> Revealed:
        """One column: its counts, what the schema has learnt of it, what the settings say of it."""
        counts = Counts({}) if self.tally is None else self.tally.columns.get(column.name, Counts({}))
        summary, lines = [], []
        for name, sheet in counts.sheets.items():
            if "x" in sheet.amounts:
                found = list(self._sums(column, sheet))
                parts = np.count_nonzero(sheet.table("n", len(self.classes)))
                few = f"{len(found):,} of them of fewer than {self.below} rows"
                summary.append(f"{parts:,} exact sums of numbers and of their squares, {few}")
                lines += found
            elif list(sheet.slot_names) != [""]:
                what, rows = SLOTS.get(name, "slot"), sheet.by_slot(how_often(name))
                rare = [i for i in _in_order(column, name, sheet) if rows[i] < self.below]
                texts = _texts(column, name, [sheet.slot_names[i] for i in rare])
                summary.append(self._sentence(what, rows))
                lines += [RevealedLine(what, text, float(rows[i])) for i, text in zip(rare, texts, strict=True)]
                if name == "cells" and column.cells is not None:
                    lines += _ends(column, column.cells, sheet, rows)
        lines += self._learnt(column, counts)
        lines += self._set(column.name)
        if family is not None and column.name not in self.settings.families:
            lines.append(RevealedLine("family", family.describe()))
        if column.reason:
            lines.append(RevealedLine("reason", kept(column.reason)))
        return Revealed(column.name, tuple(summary), _sorted(lines))

    def whole(self, notes: Mapping[str, Any], files: Iterable[str] = ()) -> Revealed:
        """What the settings say of classes and of the whole score, the notes, and the names of files."""
        lines = []
        for f in fields(Settings):
            value = getattr(self.settings, f.name)
            if f.name not in self.settings.changed() or (concern(f).by == "column" and isinstance(value, Mapping)):
                continue
            each = value.items() if isinstance(value, Mapping) else [("", value)]
            lines += [RevealedLine(f.name, f"{key}: {_shown(v)}" if key != "" else _shown(v)) for key, v in each]
        lines += [
            RevealedLine("note", f"{key}: {canon.printable(value, 200)}") for key, value in told_notes(notes).items()
        ]
        told = ["settings, and notes of your own"] if lines else []
        lines += (named := [RevealedLine("file", name) for name in files])
        told += ["names of files that were counted: share() leaves them out, forget() does not"] if named else []
        return Revealed("", tuple(told), tuple(lines))

    def _sentence(self, what: str, rows: Floats) -> str:
        one, few = np.count_nonzero(rows <= 1), np.count_nonzero(rows < self.below)
        total = f"{len(rows):,} {what}{'s' * (len(rows) != 1)}"
        if not few:
            return f"{total}, none in fewer than {self.below} rows"
        return f"{total}: {one:,} in one row only, {few:,} in fewer than {self.below} rows"

    def _sums(self, column: Column, sheet: Sheet) -> Iterator[RevealedLine]:
        """Sums of few numbers. One number is its own sum, and two follow from their sum and that of their squares."""
        (n, n_exp), (x, x_exp), (xx, xx_exp) = (sheet.exact(a, len(self.classes)) for a in MOMENTS)
        square, exponent = spread(n, n_exp, x, x_exp, xx, xx_exp)
        rows = sheet.table("n", len(self.classes))
        for slot, label in np.argwhere((rows > 0) & (rows < self.below)).tolist():
            count, size = int(n[slot, label]), float(rows[slot, label])
            mean = round_ratio(int(x[slot, label]), count, x_exp - n_exp)
            deviation = round_ratio(int(square[slot, label]), count * count, exponent - 2 * n_exp) ** 0.5
            place = f", position {sheet.slot_names[slot]}" if sheet.slot_names[slot] else ""
            text = f"class {self.classes[label]}{place}: "
            if size <= 1:
                text += f"the number {_number(column, mean)}"
            elif size == 2:
                text += " and ".join(_number(column, v) for v in (mean - deviation, mean + deviation))
            else:
                text += f"mean {mean:.10g}, deviation {deviation:.6g}"
            yield RevealedLine("sum", text, size)

    def _learnt(self, column: Column, counts: Counts) -> Iterator[RevealedLine]:
        """What the schema knows of the rows beside the counts."""
        yield from (RevealedLine("declared value", value) for value in column.values or ())
        yield from (RevealedLine("read as missing", mark) for mark in column.missing)
        if column.cells is not None:
            width, centre = canon.number_text(2.0**column.cells.exponent), canon.number_text(column.cells.centre)
            yield RevealedLine("cells", f"{width} wide around {centre}")
            counted = counts.sheets["cells"].slot_numbers if "cells" in counts.sheets else {}
            uncounted = (p for p in column.cells.points if column.cells.slot_of(p) not in counted)
            yield from (RevealedLine("point", canon.number_text(p), 0.0) for p in uncounted)
        for side in column.of or ():
            yield from _of_side(side)

    def _set(self, name: str) -> Iterator[RevealedLine]:
        """What the settings say of a column by its name."""
        for setting, by_column in self.settings.by_column().items():
            if name in by_column and isinstance(own := by_column[name], Correction):
                added = f"{np.count_nonzero(own.added):,} numbers that are added"
                yield RevealedLine("correction", f"weight {own.weight:.6g}, {added}")
                yield from (RevealedLine("cut of the correction", canon.number_text(c)) for c in own.cuts)
                yield from self._corrected(name, own)
            elif name in by_column:
                yield RevealedLine(setting, _shown(by_column[name]))

    def _corrected(self, name: str, correction: Correction) -> Iterator[RevealedLine]:
        rows: dict[str, float] = {}
        for sheet, found in self.tally.columns[name].sheets.items() if self.tally is not None else ():
            rows.update(zip(found.slot_names, found.by_slot(how_often(sheet)).tolist(), strict=True))
        few = [cell for cell in correction.cells if rows.get(cell, 0.0) < self.below]
        texts = _texts(self.schema[name], "values", few)
        yield from (RevealedLine("corrected", text, rows.get(cell, 0.0)) for cell, text in zip(few, texts, strict=True))


def _sorted(lines: Iterable[RevealedLine]) -> tuple[RevealedLine, ...]:
    return tuple(sorted(lines, key=lambda line: (line.rows is None, line.rows or 0.0)))


def _of_side(side: PairColumn) -> Iterator[RevealedLine]:
    yield from (RevealedLine("cut", f"{side.source}: {canon.number_text(c)}") for c in side.cuts)
    yield from (RevealedLine("group", f"{side.source}: {', '.join(group)}") for group in side.groups)


def _in_order(column: Column, sheet: str, found: Sheet) -> list[int]:
    """The numbers of the slots, cells from left to right and others by their names."""
    if sheet == "cells" and column.cells is not None:
        low, high = column.cells.edges(column.cells.slot_codes(found.slot_names))
        return [int(i) for i in np.lexsort((high, low))]
    return [int(i) for i in found.order]


def _texts(column: Column, sheet: str, slots: list[str]) -> list[str]:
    """Slots as people read them."""
    if sheet == "cells" and column.cells is not None and slots:
        return [
            _stretch(column, *ends) for ends in zip(*column.cells.edges(column.cells.slot_codes(slots)), strict=True)
        ]
    if column.like == "pair":
        return [" and ".join(pair_values(slot)) for slot in slots]
    return slots


def _number(column: Column, value: float) -> str:
    """A number in full; of the days of a date, the date, of hours the time where that is all of it."""
    if column.part is None and (told := told_by(column)) and ":" in (time := told(value)) and hours_of(time) == value:
        return time
    if column.part == "days" and value == round(value) and abs(value) < _DAYS:
        return str(np.datetime64(int(value), "D"))
    return canon.number_text(float(value))


def _stretch(column: Column, low: float, high: float) -> str:
    return _number(column, low) if low == high else f"from {_number(column, low)} to {_number(column, high)}"


def _ends(column: Column, cells: Cells, sheet: Sheet, rows: Floats) -> Iterator[RevealedLine]:
    """The cells that the smallest and the largest number lie in."""
    low, high = cells.edges(cells.slot_codes(sheet.slot_names))
    for what, at in (("lowest", int(np.argmin(low))), ("highest", int(np.argmax(high)))):
        yield RevealedLine(what, _stretch(column, low[at], high[at]), float(rows[at]))


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.6g}"
    return value.describe() if isinstance(value, Family) else canon.printable(value, 200)
