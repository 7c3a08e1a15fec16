"""How a notebook shows counts: the classes, a line per column, and behind folds how often each class has what.

Of many classes, values and periods only the most frequent or the newest are shown, so that a view stays small; what is
left out is said.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from ..base import view
from ..base.arrays import Floats
from ..base.times import stamp_text
from ..base.wording import many, printable
from ..data.clock import told_by
from ..data.pairs import pair_values
from ..data.schema import Column
from ..exact.sheet import Sheet
from .guard import ROWS, how_often

if TYPE_CHECKING:
    from .tally import Tally
    from .windows import Windows

_MOST_COLUMNS = 100  # lines
_MOST_FOLDS = 20  # columns whose counts are unfolded
_MOST_CLASSES, _MOST_TOLD = 6, 3  # beside each other; in the line of a column
_MOST_SLOTS, _FIRST_SLOTS = 12, 2  # unfolded; in the line of a column
_MOST_PERIODS = 24
_MOST_PLACES = 1 << 20  # of a table of slots and classes, which is not worked out beyond that
_SLOTS = {"values": "value", "words": "word"}  # sheets whose slots have a name that was in the data


def tally_html(tally: Tally) -> str:
    """A tally: how many rows of each class, and what was counted of every column."""
    return view.view(repr(tally), _classes(tally), _columns(tally), *_folds(tally))


def windows_html(windows: Windows) -> str:
    """The newest periods, how many rows each has of every class, and the columns of the newest of all."""
    numbers = windows.numbers[-_MOST_PERIODS:]
    tallies = [windows.between(number, number + 1, keep=False) for number in numbers]
    labels = sorted({label for tally in tallies for label in tally.classes})
    found = {label: [_weights(tally).get(label, 0.0) for tally in tallies] for label in labels}
    shown = sorted(sorted(labels, key=lambda label: -sum(found[label]))[:_MOST_CLASSES])
    most = max((tally.rows for tally in tallies), default=1)
    lines = [
        [windows.name(number), view.bar(tally.rows / most, many(tally.rows, "row")), f"{tally.rows:,}"]
        + [_number(found[label][i]) for label in shown]
        for i, (number, tally) in enumerate(zip(numbers, tallies, strict=True))
    ]
    before = len(windows.numbers) - len(numbers)
    parts = []
    if tallies:
        newest = f"{windows.name(numbers[-1])}, column by column"
        parts = [
            view.note(f"… {many(before, 'period')} before" if before else ""),
            view.table(("period", "", "rows", *shown), lines, left=(0, 1)),
            _more(classes=len(labels) - len(shown)),
            view.fold(newest, _classes(tallies[-1]) + _columns(tallies[-1])),
        ]
    return view.view(repr(windows), *parts)


def _weights(tally: Tally) -> dict[str, float]:
    return dict(zip(tally.classes, tally.class_weights().tolist(), strict=True))


def _number(value: float) -> str:
    return f"{value:,.10g}" if value == round(value) else f"{value:,.4g}"


def _by_size(tally: Tally, most: int) -> list[int]:
    """The numbers of the classes that weigh most, in the order of the tally."""
    return sorted(np.argsort(-tally.class_weights(), kind="stable")[:most].tolist())


def _more(**left_out: int) -> str:
    """What is not shown, by its name in the plural."""
    said = ", ".join(f"{n:,} {what}" for what, n in left_out.items() if n > 0)
    return view.note(f"and {said} more" if said else "")


def _classes(tally: Tally) -> str:
    """How many rows each class has, and what they weigh where that is another number."""
    if not tally.classes:
        return ""
    weights, rows = tally.class_weights(), tally.labels.sheet("rows", ROWS).table("rows", len(tally.classes))[0]
    weighted, total = bool((weights != rows).any()), float(weights.sum())
    lines = []
    for i in _by_size(tally, _MOST_COLUMNS):
        share = float(weights[i]) / total if total else 0.0
        own = [_number(weights[i])] if weighted else []
        lines.append([tally.classes[i], view.bar(share, f"{share:.4f}"), f"{share:.1%}", *own, _number(rows[i])])
    heads = (printable(tally.schema.target, 40), "", "share", *(["weight"] if weighted else []), "rows")
    return view.table(heads, lines, left=(0, 1)) + _more(classes=len(tally.classes) - len(lines))


def _columns(tally: Tally) -> str:
    """A line for each column: its kind, what was counted, in how many rows there was nothing, and most by class."""
    counted = tally.schema.counted
    if not tally.classes or not counted:
        return ""
    at = _by_size(tally, _MOST_TOLD)
    lines = [
        [c.name, c.kind, _size(tally, c), _missing(tally, c), view.below(*_told(tally, c, at))]
        for c in counted[:_MOST_COLUMNS]
    ]
    heads = ("column", "kind", "counted", "missing", "by class")
    more = _more(columns=len(counted) - len(lines), classes=len(tally.classes) - len(at))
    return view.table(heads, lines, left=(0, 1, 2, 4)) + more


def _folds(tally: Tally) -> Iterator[str]:
    """The counts of each column by class, as far as they are few."""
    at = _by_size(tally, _MOST_CLASSES)
    heads = [tally.classes[i] for i in at]
    for column in tally.schema.counted[:_MOST_FOLDS] if tally.classes else ():
        name, found = printable(column.name, 40), _slots(tally, column)
        if _is_number(tally, column):
            moments = tally.moments(column.name)
            lines = [["n", *(_number(moments[label][0]) for label in heads)]]
            lines.append(["mean ± deviation", *(_spread(column, *moments[label]) or "–" for label in heads)])
            yield view.fold(f"{name}: mean and deviation", view.table(("", *heads), lines))
        elif found is not None:
            sheet, what, table = found
            first = _largest(sheet, table.sum(axis=1), _MOST_SLOTS)
            lines = [[_written(column, sheet, k), *(_number(table[k, i]) for i in at)] for k in first]
            more = _more(**{f"{what}s": len(table) - len(lines)}, classes=len(tally.classes) - len(at))
            yield view.fold(f"{name}: by {what}", view.table((what, *heads), lines) + more)


# ---- one column


def _is_number(tally: Tally, column: Column) -> bool:
    return column.like == "number" and "moments" in tally.columns[column.name].sheets


def _slots(tally: Tally, column: Column) -> tuple[Sheet, str, Floats] | None:
    """The sheet of values or words, what its slots are, and how often each class has them; None of a large one."""
    for name, what in _SLOTS.items():
        sheet = tally.columns[column.name].sheets.get(name)
        if sheet is not None and len(sheet.slots) * len(tally.classes) <= _MOST_PLACES:
            return sheet, what, sheet.table(how_often(name), len(tally.classes))
    return None


def _size(tally: Tally, column: Column) -> str:
    sheets = tally.columns[column.name].sheets
    if _is_number(tally, column):
        return "numbers"
    named = {**_SLOTS, "moments": "position"}
    return next((many(len(sheets[name].slots), what) for name, what in named.items() if name in sheets), "nothing")


def _missing(tally: Tally, column: Column) -> str:
    """The share of the rows, by their weight, in which there was nothing to count; empty where there was always."""
    sheets, total = tally.columns[column.name].sheets, float(tally.class_weights().sum())
    if _is_number(tally, column):
        there = sum(n for n, _, _ in tally.moments(column.name).values())
    elif "rows" in sheets:  # of texts and bags
        there = float(sheets["rows"].table("n", len(tally.classes)).sum())
    elif "values" in sheets and (found := _slots(tally, column)) is not None:
        there = float(found[2].sum())
    else:
        return ""
    gone = 1 - there / total if total else 0.0
    return "" if gone < 1e-9 else f"{gone:.1%}" if gone >= 0.0005 else "< 0.05%"


def _told(tally: Tally, column: Column, at: list[int]) -> Iterator[str]:
    """For some classes the mean of a number, or the values or words that they have most of."""
    moments = tally.moments(column.name) if _is_number(tally, column) else None
    found = _slots(tally, column) if moments is None else None
    for i in at:
        said = "" if moments is None else _spread(column, *moments[tally.classes[i]])
        if found is not None:
            sheet, _, table = found
            first = [k for k in _largest(sheet, table[:, i], _FIRST_SLOTS) if table[k, i] > 0]
            said = ", ".join(f"{printable(_written(column, sheet, k), 24)} {_number(table[k, i])}" for k in first)
        if said:
            yield f"{printable(tally.classes[i], 16)}: {said}"


def _spread(column: Column, n: float, mean: float, square: float) -> str:
    """Mean and deviation as a person writes them."""
    if n <= 0:
        return ""
    deviation = f"{max(square, 0.0) ** 0.5:.3g}"  # of a difference of tallies it may be below 0
    if column.part == "days":
        return f"{stamp_text(np.datetime64(round(mean), 'D'))} ± {deviation} days"
    if told := told_by(column):
        return f"{told(mean)} ± {told(max(square, 0.0) ** 0.5)}"
    return f"{mean:.4g} ± {deviation}"


def _largest(sheet: Sheet, amounts: Floats, most: int) -> list[int]:
    """The slots of the largest amounts; of equals those whose names come first, in whatever order they were counted."""
    least = -np.inf if len(amounts) <= most else np.partition(amounts, -most)[-most]
    names = sheet.slot_names
    return sorted(np.flatnonzero(amounts >= least).tolist(), key=lambda k: (-amounts[k], names[k]))[:most]


def _written(column: Column, sheet: Sheet, k: int) -> str:
    """The name of a slot as the data have it."""
    name = sheet.slot_names[k]
    return " and ".join(pair_values(name)) if column.kind == "pair" else name
