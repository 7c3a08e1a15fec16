"""Dates, times of day and durations as whole numbers: the same text and the same instant whatever type held them.

Python's types have no nanoseconds and end with the year 9999; NumPy's and Arrow's have other units. All of them are
counts of some unit, and are written and cut here as such:

    2024-05-31                           a date, and a time at midnight
    2024-05-31T18:00:00.000001           a time; fractions have six digits, or nine, twelve … where they need them
    2024-05-31T16:00:00+00:00            a time with a zone is an instant, written in UTC
    18:00:00                             a time of day
    1 day, 2:03:04                       a duration, as Python writes it
"""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np

DAY = 86_400_000_000  # in microseconds
PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9, "ps": 10**12, "fs": 10**15, "as": 10**18}
_SECONDS = {"W": 604_800, "D": 86_400, "h": 3_600, "m": 60}
_EPOCH = dt.date(1970, 1, 1).toordinal()


def stamp_text(value: np.datetime64, *, aware: bool = False) -> str:
    """The text of a date or time of any unit; `aware`: an instant, counted from 1970 in UTC.

    >>> stamp_text(np.datetime64("2024-05-31T18", "h")), stamp_text(np.datetime64("2024-05-31T00:00:00.000", "ms"))
    ('2024-05-31T18:00:00', '2024-05-31')
    """
    unit = np.datetime_data(value.dtype)[0]
    unit = "D" if unit in "YMWD" else "s" if unit in "hm" else unit
    date, _, clock = str(value.astype(f"M8[{unit}]")).partition("T")
    clock, _, digits = (clock or "00:00:00").partition(".")
    clock += _fraction(digits)
    if aware:
        return f"{date}T{clock}+00:00"
    return date if clock == "00:00:00" else f"{date}T{clock}"


_MOST_HOURS = 1e9  # which are 100,000 years
_MOST_TIMES = (1 << 63) // DAY - 1  # days about 1970 whose microseconds are an int64


def moment_text(days: float) -> str:
    """The text of so many days since 1970, as a person reads it; the number itself where no date is so far away.

    >>> moment_text(19_926.0), moment_text(19_783.416666666668), moment_text(1e300)
    ('2024-07-22', '2024-03-01 10:00:00', '1e+300')
    """
    if abs(days) < _MOST_TIMES:
        return stamp_text(np.datetime64(round(days * DAY), "us")).replace("T", " ")
    return stamp_text(np.datetime64(round(days), "D")) if abs(days) < 2.0**62 else str(days)


def hours_text(hours: float) -> str:
    """The text of so many hours, a time of day or a duration, as a person reads it; seconds only where there are any.

    What was written in parts of a second is told so; any other number, such as a mean, to the second.

    >>> hours_text(20.0 + 49 / 60), hours_text(45 / 60 + 10 / 3600), hours_text(-26.5), hours_text(1e300)
    ('20:49', '0:45:10', '-26:30', '1e+300')
    """
    if not abs(hours) < _MOST_HOURS:
        return str(hours)
    for per in (1, 10**3, 10**6, 1 if abs(hours) >= 1 / 60 else 10**3):
        ticks = round(hours * 3600 * per)
        if ticks / (3600 * per) == hours:
            break
    seconds, rest = divmod(abs(ticks), per)
    part = f".{rest:0{len(str(per)) - 1}}".rstrip("0") if rest else ""
    whole = f"{'-' * (ticks < 0)}{seconds // 3600}:{seconds // 60 % 60:02}"
    return f"{whole}:{seconds % 60:02}{part}" if seconds % 60 or rest else whole


def clock_text(ticks: int, unit: str) -> str:
    """The text of a time of day, counted from midnight.

    >>> clock_text(61_000, "ms"), clock_text(1, "ns")
    ('00:01:01', '00:00:00.000000001')
    """
    seconds, rest = divmod(ticks, PER_SECOND[unit])
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}{_part(rest, unit)}"


def duration_text(ticks: int, unit: str) -> str:
    """The text of a duration.

    >>> duration_text(-1, "s"), duration_text(90_000_000_001, "us")
    ('-1 day, 23:59:59', '1 day, 1:00:00.000001')
    """
    if unit in "YM":  # of no fixed length
        return f"{ticks * (12 if unit == 'Y' else 1)} months"
    if unit in _SECONDS:
        ticks, unit = ticks * _SECONDS[unit], "s"
    seconds, rest = divmod(ticks, PER_SECOND[unit])
    days, seconds = divmod(seconds, 86_400)
    text = f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}{_part(rest, unit)}"
    return f"{days} day{'' if abs(days) == 1 else 's'}, {text}" if days else text


def _part(ticks: int, unit: str) -> str:
    return _fraction(f"{ticks:0{len(str(PER_SECOND[unit])) - 1}}") if ticks else ""


def _fraction(digits: str) -> str:
    while len(digits) > 6 and digits.endswith("000"):
        digits = digits[:-3]
    return "." + digits.ljust(6, "0") if digits.strip("0") else ""


def text(value: Any) -> str | None:
    """The text of a value of Python's, NumPy's or pandas' types of time; None where it is their NaT."""
    aware = getattr(value, "tzinfo", None) is not None
    value = getattr(value, "asm8", value)  # pandas' types are NumPy's with more to them
    if isinstance(value, np.datetime64):
        return None if np.isnat(value) else stamp_text(value, aware=aware)
    if isinstance(value, np.timedelta64):
        if np.isnat(value):
            return None
        unit, step = np.datetime_data(value.dtype)
        ticks = int(value.astype(np.int64))
        return str(ticks) if unit == "generic" else duration_text(ticks * step, unit)
    if isinstance(value, dt.datetime):
        if aware and value.utcoffset() is not None:
            day, clock = instant(value)
            return stamp_text(np.datetime64(day * DAY + clock, "us"), aware=True)
        value = value.replace(tzinfo=None)
        midnight = not (value.hour or value.minute or value.second or value.microsecond)
        value = value.date() if midnight else value
    elif isinstance(value, dt.timedelta):
        return str(value)
    out: str = value.isoformat()  # a date, or a time of day
    return out


def instant(value: dt.date | np.datetime64) -> tuple[int, int]:
    """The day since 1970 and the microsecond of the day; with a zone those of UTC. Nanoseconds are cut off.

    >>> instant(dt.date(1970, 1, 2)), instant(np.datetime64(-1, "ns"))
    ((1, 0), (-1, 86399999999))
    """
    if hasattr(value, "asm8"):
        value = value.asm8
    if isinstance(value, np.datetime64):
        unit = np.datetime_data(value.dtype)[0]
        if unit in "YMWD":
            return int(value.astype("M8[D]").astype(np.int64)), 0
        unit = "s" if unit in "hm" else unit
        ticks, per_day = int(value.astype(f"M8[{unit}]").astype(np.int64)), 86_400 * PER_SECOND[unit]
        day, rest = divmod(ticks, per_day)
        return day, rest * DAY // per_day
    day = value.toordinal() - _EPOCH
    if not isinstance(value, dt.datetime):
        return day, 0
    clock = ((value.hour * 60 + value.minute) * 60 + value.second) * 1_000_000 + value.microsecond
    ahead = value.utcoffset()
    if ahead is None:
        return day, clock
    days, clock = divmod(clock - ahead // dt.timedelta(microseconds=1), DAY)
    return day + days, clock


def parsed(text: str) -> tuple[int, int]:
    """The instant of a text as ISO 8601 writes it; ValueError for any other."""
    try:
        return instant(dt.datetime.fromisoformat(text))
    except ValueError:
        if not text.startswith("0000-"):  # a year that Python does not have, and Arrow reads
            raise
        day, clock = instant(dt.datetime.fromisoformat("2000" + text[4:]))
        return day - 730_485, clock
