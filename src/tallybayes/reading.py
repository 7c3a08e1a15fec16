"""One raw column with a value per row → canonical texts, numbers or parts of dates, with missing values marked."""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from . import canon
from .arrow import array, numpy_of, scalar
from .block import Codes
from .errors import DataError
from .numerics import Floats

_DAY = 86400.0
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Where:
    """The place a message speaks of: a column and the number of its first row."""

    column: str
    start: int

    def error(self, row: int, found: str, hint: str) -> DataError:
        """An error about one row of the column."""
        return DataError(f"column {self.column!r}, row {self.start + row} (the first is row 0): {found}", hint=hint)


def check_flat(raw: Any, column: str) -> None:
    """Refuse a matrix where one value per row is wanted."""
    if getattr(raw, "ndim", 1) != 1:
        raise DataError(
            f"column {column!r} is a matrix of shape {raw.shape}, not one value per row",
            hint="give its columns names of their own, or declare it as kind 'vector' or 'bag'.",
        )


def category(raw: Any, missing: Sequence[str] = ()) -> Codes:
    """Canonical text per value; None, NaN and the texts in `missing` are missing."""
    if isinstance(raw, np.ndarray):
        raw = array(raw)
    if isinstance(raw, pa.Array):
        if not pa.types.is_dictionary(raw.type):
            raw = raw.dictionary_encode()
        texts = [canon.text(v) for v in raw.dictionary.to_pylist()]
        codes = numpy_of(raw.indices.cast(pa.int64()).fill_null(scalar(-1)))
    else:
        found: dict[Any, int] = {}
        texts, numbers = [], []
        for value in raw:
            text = canon.text(value)
            if text not in found:
                found[text] = len(texts)
                texts.append(text)
            numbers.append(found[text])
        codes = np.array(numbers, dtype=np.int64)
    slots: dict[str, int] = {}
    new = np.empty(len(texts) + 1, dtype=np.int64)
    new[-1] = -1
    for i, text in enumerate(texts):
        new[i] = -1 if text is None or text in missing else slots.setdefault(text, len(slots))
    return Codes(list(slots), new[codes])


def number(raw: Any, where: Where, missing: Sequence[str] = ()) -> Floats:
    """float64 values, NaN for missing; words and infinities are refused."""
    if isinstance(raw, pa.Array) and pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if isinstance(raw, pa.Array) and _is_text(raw.type):
        raw = _numbers_from_text(raw, where, missing)
    if isinstance(raw, pa.Array):
        if pa.types.is_null(raw.type):
            return np.full(len(raw), np.nan)
        if pa.types.is_boolean(raw.type):
            raw = raw.cast(pa.int8())
        if not (pa.types.is_integer(raw.type) or pa.types.is_floating(raw.type) or pa.types.is_decimal(raw.type)):
            raise DataError(
                f"column {where.column!r} holds values of type {raw.type}, not numbers",
                hint="declare the column as a category, or turn it into numbers first.",
            )
        values = numpy_of(raw.cast(pa.float64(), safe=False))
    else:
        values = np.array([_one_number(v, i, where, missing) for i, v in enumerate(raw)], dtype=np.float64)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        row = int(infinite[0])
        raise where.error(
            row,
            f"{values[row]} is not a number that can be added up",
            "replace infinities by None (missing) or clip them.",
        )
    out: Floats = values
    return out


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _numbers_from_text(raw: Any, where: Where, missing: Sequence[str]) -> Any:
    marked = pc.is_in(raw, value_set=array(list(missing), raw.type)) if missing else None
    if marked is not None:
        raw = pc.if_else(marked, scalar(None, raw.type), raw)
    try:
        return raw.cast(pa.float64())
    except pa.ArrowInvalid:
        return [None if v is None else v for v in raw.to_pylist()]


def _one_number(value: Any, row: int, where: Where, missing: Sequence[str]) -> float:
    text = canon.text(value)
    if text is None or text in missing:
        return np.nan
    if isinstance(value, (bool, np.bool_)):
        return float(value)
    try:
        if "_" in text or isinstance(value, complex):  # Python reads 1_000, nobody else does
            raise ValueError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        comma = "," in text and text.replace(",", ".", 1).replace(".", "", 1).lstrip("+-").isdigit()
        raise where.error(
            row,
            f"{text[:60]!r} is not a number",
            "write decimals with a point."
            if comma
            else "mend the value, name it in the schema's missing=[…], or make the column a category.",
        ) from None


def date_part(raw: Any, part: str, where: Where, missing: Sequence[str]) -> Any:
    """Days since 1970 as numbers, or weekday, month or hour as text."""
    times = _timestamps(raw, where, missing)
    if part == "days":
        return pc.divide(pc.cast(times, pa.int64()), scalar(_DAY * 1e6))
    if part == "hour":
        return pc.cast(pc.hour(times), pa.string())
    number = pc.day_of_week(times) if part == "weekday" else pc.subtract(pc.month(times), scalar(1))
    names = array(_WEEKDAYS if part == "weekday" else _MONTHS)
    return pc.take(names, number)


def _timestamps(raw: Any, where: Where, missing: Sequence[str]) -> Any:
    if not isinstance(raw, pa.Array):
        raw = array(list(raw), from_pandas=True)
    if pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if pa.types.is_null(raw.type):
        return raw.cast(pa.timestamp("us"))
    if _is_text(raw.type):
        raw = array([_one_time(v, i, where, missing) for i, v in enumerate(raw.to_pylist())], pa.timestamp("us"))
    if not (pa.types.is_timestamp(raw.type) or pa.types.is_date(raw.type)):
        raise DataError(
            f"column {where.column!r} holds values of type {raw.type}, not dates",
            hint="give dates, timestamps or ISO texts such as 2024-05-31.",
        )
    if pa.types.is_timestamp(raw.type) and raw.type.tz is not None:
        raw = raw.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.timestamp("us"))
    return raw.cast(pa.timestamp("us"), safe=False)


def _one_time(value: str | None, row: int, where: Where, missing: Sequence[str]) -> dt.datetime | None:
    if value is None or value in missing:
        return None
    try:
        time = dt.datetime.fromisoformat(value)
    except ValueError:
        raise where.error(
            row,
            f"{value[:60]!r} is not a date",
            "write dates as 2024-05-31 or 2024-05-31T18:00, or ignore the column.",
        ) from None
    return time.astimezone(dt.UTC).replace(tzinfo=None) if time.tzinfo else time
