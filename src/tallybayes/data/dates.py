"""Dates, read value by value as a day since 1970 and a microsecond of the day, and the parts that are counted of them.

Whole numbers reach from the first to the last time that any type holds; times with a zone count in UTC.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from ..base import canon
from ..base.arrays import Bools, Ints
from ..base.arrow import array, numpy_of, texts, whole_ticks
from ..base.errors import DataError
from ..base.times import DAY, PER_SECOND
from .values import NotPlain, Where, is_bytes, is_text, without

_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
PART_NAMES = {"weekday": _WEEKDAYS, "month": _MONTHS, "hour": tuple(map(str, range(24)))}
_AT = {part: {name: i for i, name in enumerate(names)} for part, names in PART_NAMES.items()}
_MOST_DAYS = (1 << 63) // DAY - 2  # that a time of Arrow in microseconds holds, on either side of 1970
_NEAR = (1 << 53) // DAY  # days about 1970 whose microseconds are floats


def date_part(raw: Any, part: str, where: Where, missing: Sequence[str]) -> Any:
    """Days since 1970 as numbers, or weekday, month or hour as text."""
    day, clock, there = _instants(raw, where, missing)
    if part == "days":
        return array(np.where(there, _days(day, clock), np.nan))
    number = _numbers(day, clock, part).astype(np.int32)
    codes = array(number) if there.all() else pa.array(number, mask=~there)
    return pa.DictionaryArray.from_arrays(codes, array(list(PART_NAMES[part])))


def plain_part(value: Any, part: str, marks: frozenset[str]) -> float | str | None:
    """The part of one date, as a column of them would have it; None if missing."""
    if value is None or (marks and type(value) is str and value in marks):
        return None
    try:
        found = canon.instant(value)
    except ValueError:
        raise NotPlain from None
    if found is None or (marks and (found in marked(tuple(marks)) or canon.text(value) in marks)):
        return None
    day, clock = found
    if part == "days":
        return (day * DAY + clock) / DAY
    if part == "month":
        return _MONTHS[int(_numbers(np.array([day]), np.array([clock]), part)[0])]
    return _WEEKDAYS[(day + 3) % 7] if part == "weekday" else str(clock * 24 // DAY)


def as_in_calendar(part: str, names: Sequence[str]) -> list[str]:
    """Weekdays, months or hours in their order, anything else behind them.

    >>> as_in_calendar("month", ["Apr", "Dec", "Feb", "(unseen)"])
    ['Feb', 'Apr', 'Dec', '(unseen)']
    """
    return sorted(names, key=lambda name: _AT[part].get(name, len(_AT[part])))


UNITS = ("hour", "day", "week", "month")  # stretches of time that have a number: so many since 1970, weeks from Monday
_OF_UNIT = {"hour": "M8[h]", "day": "M8[D]", "month": "M8[M]"}  # NumPy's types
_MONTH = re.compile(r"-?[0-9]{4,}-[0-9]{2}")


def unit_numbers(raw: Any, unit: str, where: Where, missing: Sequence[str]) -> tuple[Ints, Bools]:
    """Which hour, day, week or month (of `UNITS`) each date lies in, in UTC; and which dates are there."""
    day, clock, there = _instants(raw, where, missing)
    return _unit_numbers(day, clock, unit), there


def _unit_numbers(day: Ints, clock: Ints, unit: str) -> Ints:
    out: Ints
    if unit == "hour":
        out = day * 24 + clock // (DAY // 24)
    elif unit == "month":
        out = day.astype("M8[D]").astype("M8[M]").astype(np.int64)
    else:
        out = (day + 3) // 7 if unit == "week" else day
    return out


def unit_name(number: int, unit: str) -> str:
    """How a stretch of time is called, as ISO 8601 does.

    >>> unit_name(477_000, "hour"), unit_name(19_874, "day"), unit_name(2_839, "week"), unit_name(652, "month")
    ('2024-06-01T00', '2024-05-31', '2024-W22', '2024-05')
    """
    if unit != "week":
        return str(np.array(number).astype(_OF_UNIT[unit]))
    monday = np.datetime64(number * 7 - 3, "D")
    try:
        year, week, _ = monday.astype(dt.date).isocalendar()
    except (AttributeError, ValueError):  # a year that Python does not have
        return str(monday)
    return f"{year:04}-W{week:02}"


def unit_number(value: Any, unit: str) -> int | None:
    """The number of the stretch that begins at a date or is called so; None where it begins within one.

    >>> unit_number("2024-W22", "week"), unit_number("2024-05", "month"), unit_number("2024-05-31T12:30", "hour")
    (2839, 652, None)
    """
    if isinstance(value, str) and _MONTH.fullmatch(value):
        value = np.datetime64(value, "M")
    found = canon.instant(value)
    if found is None:
        raise ValueError("missing")
    day, clock = (np.array([part]) for part in found)
    number = _unit_numbers(day, clock, unit)
    before = _unit_numbers(day - (clock == 0), (clock - 1) % DAY, unit)
    return int(number[0]) if number[0] != before[0] else None


def dates_with(parts: Mapping[str, Any]) -> Any:
    """Times that have these parts: days since 1970, or weekday, month and hour by name, then of the year 2000.

    Missing where a part is, or where it names none that a time can have.

    >>> dates_with({"month": ["Feb"], "weekday": ["Tue"]}).to_pylist()
    [datetime.datetime(2000, 2, 1, 0, 0)]
    """
    if "days" in parts:
        days = np.array([np.nan if d is None else float(d) for d in parts["days"]], dtype=np.float64)
        there = np.isfinite(days)
        whole = np.floor(np.clip(np.where(there, days, 0.0), -_MOST_DAYS, _MOST_DAYS))
        clock = np.rint(np.clip(np.where(there, days, 0.0) - whole, 0.0, 1.0) * DAY)
        return pa.array(whole.astype(np.int64) * DAY + clock.astype(np.int64), pa.timestamp("us"), mask=~there)
    number = {p: np.array([_AT[p].get(str(canon.text(v)), -1) for v in parts[p]], dtype=np.int64) for p in parts}
    there = np.all([n >= 0 for n in number.values()], axis=0)
    month, hour = number.get("month", np.zeros(len(there), int)), number.get("hour", np.zeros(len(there), int))
    day = (np.datetime64("2000-01", "M") + month).astype("M8[D]").astype(np.int64)
    day = day + (number["weekday"] - day - 3) % 7 if "weekday" in number else day
    return pa.array(day * DAY + hour * (DAY // 24), pa.timestamp("us"), mask=~there)


def _days(day: Ints, clock: Ints) -> Any:
    """Days and their fractions, each the nearest float64."""
    near = np.abs(day) < _NEAR
    out = np.where(near, (np.where(near, day, 0) * DAY + clock) / DAY, day)
    for row in np.flatnonzero(~near & (clock != 0)).tolist():
        out[row] = (int(day[row]) * DAY + int(clock[row])) / DAY  # Python divides whole numbers of any size exactly
    return out


def _numbers(day: Ints, clock: Ints, part: str) -> Ints:
    out: Ints
    if part == "hour":
        out = clock // (DAY // 24)
    elif part == "weekday":
        out = (day + 3) % 7  # 1970 began on a Thursday
    else:
        out = day.astype("M8[D]").astype("M8[M]").astype(np.int64) % 12
    return out


def _instants(raw: Any, where: Where, missing: Sequence[str]) -> tuple[Ints, Ints, Bools]:
    """The day and the microsecond of the day of each value, and which values are there."""
    if isinstance(raw, pa.Array) and pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if isinstance(raw, pa.Array) and (is_text(raw.type) or is_bytes(raw.type)):
        raw = _times_from_text(raw, missing)
    if not isinstance(raw, pa.Array):
        return _one_by_one(raw, where, missing)
    if pa.types.is_null(raw.type):
        none = np.zeros(len(raw), dtype=np.int64)
        return none, none, none != 0
    if not (pa.types.is_timestamp(raw.type) or pa.types.is_date(raw.type)):
        raise DataError(
            f"column {where.column!r} holds values of type {raw.type}, not dates",
            hint="give dates, timestamps or ISO texts such as 2024-05-31.",
        )
    whole = whole_ticks(raw)
    there = numpy_of(raw.is_valid()) if raw.null_count else np.ones(len(raw), dtype=bool)
    ticks = numpy_of(whole.fill_null(0) if raw.null_count else whole).astype(np.int64, copy=False)
    if pa.types.is_date(raw.type):
        day, clock = ticks, np.zeros(len(ticks), dtype=np.int64)
    else:
        per_day = 86_400 * PER_SECOND[raw.type.unit]
        day, rest = np.divmod(ticks, per_day)
        clock = rest * (DAY // per_day) if per_day <= DAY else rest // (per_day // DAY)
    for at, moment in marked(tuple(missing)):
        there &= (day != at) | (clock != moment)
    return day, clock, there


def marked(missing: tuple[str, ...]) -> list[tuple[int, int]]:
    """The dates among the texts that mean "missing"."""
    out = []
    for mark in missing:
        try:
            found = canon.instant(mark)
        except ValueError:
            continue
        if found is not None:
            out.append(found)
    return out


def _times_from_text(raw: Any, missing: Sequence[str]) -> Any:
    """Texts as timestamps, or as they are where Arrow cannot read one; what it reads it reads as Python does."""
    if not is_text(raw.type):
        return texts(raw)
    raw = without(raw, missing)
    try:
        return raw.cast(pa.timestamp("us"))
    except pa.ArrowInvalid:
        return raw.to_pylist()


def _one_by_one(values: Any, where: Where, missing: Sequence[str]) -> tuple[Ints, Ints, Bools]:
    day, clock = np.zeros(len(values), dtype=np.int64), np.zeros(len(values), dtype=np.int64)
    there, gone = np.zeros(len(values), dtype=bool), marked(tuple(missing))
    for row, value in enumerate(values):
        text = canon.text(value)
        if text is None or text in missing:
            continue
        try:
            found = canon.instant(value)
        except ValueError:
            raise where.unreadable(
                row,
                f"{text[:60]!r} is not a date",
                "write dates as 2024-05-31 or 2024-05-31T18:00, or ignore the column.",
            ) from None
        if found is not None and found not in gone:
            (day[row], clock[row]), there[row] = found, True
    return day, clock, there
