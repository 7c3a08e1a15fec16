"""What texts spell: numbers, booleans and dates, in the ways that are read and in those that are only noticed."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..base.errors import warn
from .sources import Batch
from .values import is_text

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?\Z")
_NUMBER = re.compile(r"\s*[+-]?(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?\s*", re.ASCII)
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})", re.ASCII)
_COMMA = re.compile(r"\s*[+-]?(\d+|\d{1,3}([. ']\d{3})+)(,\d+)?\s*", re.ASCII)
_DAY_OR_MONTH_FIRST = re.compile(r"\d{1,2}([./-])\d{1,2}\1(\d{4}|\d{2})([ T]\d{1,2}:\d{2}.*)?", re.ASCII)
_BOOLEANS = ({"true", "false"}, {"True", "False"}, {"TRUE", "FALSE"})


def is_iso(text: str) -> bool:
    """Whether a text is a date or time as ISO 8601 writes it."""
    if not _ISO.match(text):
        return False
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_number(text: str) -> bool:
    """Whether a text is a plain number; a leading zero makes it a code.

    >>> is_number("12.50"), is_number("01234"), is_number("3,14")
    (True, False, False)
    """
    return _NUMBER.fullmatch(text) is not None and any(ch.isdigit() for ch in text)


def typed(look: Batch) -> Batch:
    """The rows of a file without types with the types that another file would give them: numbers and booleans."""
    if not look.written:
        return look
    return replace(look, columns={name: _typed(column) for name, column in look.columns.items()})


def _typed(column: Any) -> Any:
    if not (isinstance(column, pa.Array) and is_text(column.type)):
        return column
    values = [v for v in column.unique().to_pylist() if v is not None]
    if not values:
        return column
    if any(set(values) <= pair for pair in _BOOLEANS):
        return pc.equal(pc.utf8_lower(column), "true")
    if all(_WHOLE.fullmatch(v) for v in values):
        return column.cast(pa.int64())
    return pa.array(_floats(column), pa.float64()) if all(map(is_number, values)) else column


def _floats(column: Any) -> list[float | None]:
    return [None if v is None else float(v) for v in column.to_pylist()]


def warn_of_other(name: str, values: Sequence[str]) -> None:
    """Warn of numbers and dates in a spelling that is not read, since nobody can know which was meant."""
    if any("," in v for v in values) and all(map(_COMMA.fullmatch, values)):
        example = next(v for v in values if "," in v)
        warn(
            f"column {name!r} holds numbers with a comma, such as {example.strip()!r}, and is taken as text. Hint: "
            f"tb.read(path, decimal=',') reads them from a CSV; in a frame turn them into numbers first."
        )
    elif values and all(map(_DAY_OR_MONTH_FIRST.fullmatch, values)):
        warn(
            f"column {name!r} holds dates such as {values[0]!r}, and is taken as text, since day and month could be "
            'meant either way. Hint: write them as 2024-12-31, or read them with SQL: duckdb.sql("SELECT * REPLACE '
            "(strptime(day, '%d.%m.%Y') AS day) FROM 'file.csv'\")."
        )
