"""Times of day and durations as hours: 14:30 is 14.5 and a day and two hours are 26, whatever type held them.

Durations are read with colons, with units (1h 20min, 45 min, 0.3 h) and as ISO 8601 has them (PT1H20M).

One division of whole numbers, so that every way of writing the same time gives the same number.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base.arrow import array, numpy_of, whole_ticks
from ..base.times import hours_text, moment_text

if TYPE_CHECKING:
    from .schema import Column

_CLOCK = re.compile(
    r"\s*(?:(?P<days>[+-]?\d{1,9}) days?,? +)?(?P<sign>[+-]?)(?P<hours>\d{1,9}):(?P<minutes>[0-5]\d)"
    r"(?::(?P<seconds>[0-5]\d)(?:\.(?P<more>\d{1,9}))?)?(?: ?(?P<half>[AaPp])\.?[Mm]\.?)?\s*",
    re.ASCII,
)
_N = r"(?P<{}>\d{{1,9}}(?:[.,]\d{{1,9}})?)"  # a number, of which only the last unit of a duration has a fraction
_AND = r"(?: ?, ?| (?:and|und|et|y|e) | ?)"
_UNITS = re.compile(
    r"(?P<sign>[+-]?) ?"
    rf"(?:{_N.format('days')} ?(?:d|days?|tage?n?){_AND}(?=\d))?"  # days alone are a count of days
    rf"(?:{_N.format('hours')} ?(?:h|hrs?\.?|hours?|std\.?|stunden?)(?:{_AND}(?=\d)|$))?"
    rf"(?:{_N.format('minutes')} ?(?:m|mins?\.?|minutes?|minuten)(?:{_AND}(?=\d)|$))?"
    rf"(?:{_N.format('seconds')} ?(?:s|secs?\.?|seconds?|sek\.?|sekunden?))?",
    re.ASCII | re.IGNORECASE,
)
_ISO = re.compile(
    rf"(?P<sign>[+-]?)P(?:{_N.format('weeks')}W|(?:{_N.format('days')}D)?(?:T(?=\d)(?:{_N.format('hours')}H)?"
    rf"(?:{_N.format('minutes')}M)?(?:{_N.format('seconds')}S)?)?)",
    re.ASCII,
)
_IN_SECONDS = {"weeks": 604_800, "days": 86_400, "hours": 3_600, "minutes": 60, "seconds": 1}
_THOUSANDS = re.compile(r"\d{1,3},\d{3}")
_DOUBTFUL = re.compile(r"\s*[+-]?[\d.,]+ ?[ms]\s*", re.IGNORECASE)
_HOUR = {"s": 3_600, "ms": 3_600_000, "us": 3_600_000_000, "ns": 3_600_000_000_000}


def hours_of(text: str) -> float:
    """The hours that a text spells; ValueError if it is no time of day and no duration.

    >>> [hours_of(text) for text in ("14:30", "2:30 pm", "12:15 am", "1 day, 2:00:00", "-0:45")]
    [14.5, 14.5, 0.25, 26.0, -0.75]
    >>> [hours_of(text) for text in ("1h 15min", "45 min", "0.25 h", "2 hours and 30 seconds", "PT1H30M")]
    [1.25, 0.75, 0.25, 2.0083333333333333, 1.5]
    """
    found = _CLOCK.fullmatch(text)
    if found is None:
        return _hours_in_units(text)
    hours, more = int(found["hours"]), found["more"] or ""
    if found["half"]:
        if not 1 <= hours <= 12 or found["days"] or found["sign"]:
            raise ValueError(f"{text!r} is no time")
        hours = hours % 12 + 12 * (found["half"] in "Pp")
    seconds = 3_600 * hours + 60 * int(found["minutes"]) + int(found["seconds"] or 0)
    fine = 10 ** len(more)
    ticks = seconds * fine + int(more or 0)
    days = 86_400 * fine * int(found["days"] or 0)  # those before zero are followed by what is added: -1 day, 23:00
    return float((days + (-ticks if found["sign"] == "-" else ticks)) / (3_600 * fine))


def _hours_in_units(text: str) -> float:
    plain = text.strip(" \t")
    found = _ISO.fullmatch(plain) if "P" in plain[:2] else _UNITS.fullmatch(plain)
    given = {unit: n for unit, n in found.groupdict().items() if n and unit != "sign"} if found else {}
    fractions = [n for n in given.values() if not n.isdigit()]
    doubtful = any(map(_THOUSANDS.fullmatch, fractions))  # 1,500 h are many hours, or one and a half
    if found is None or fractions not in ([], [*given.values()][-1:]) or not given or doubtful:
        raise ValueError(f"{text!r} is no time")
    more = re.split("[.,]", fractions[0])[1] if fractions else ""
    fine = 10 ** len(more)
    ticks = sum(int(re.split("[.,]", n)[0]) * _IN_SECONDS[unit] * fine for unit, n in given.items())
    ticks += int(more or 0) * _IN_SECONDS[[*given][-1]]
    return float((-ticks if found["sign"] == "-" else ticks) / (3_600 * fine))


def says_its_unit(text: str) -> bool:
    """Whether a duration leaves no doubt that it is one: 5m may be metres, and 80s years."""
    return _DOUBTFUL.fullmatch(text) is None


def told_by(column: Column) -> Callable[[float], str] | None:
    """How people read the numbers of a column that stand for days or hours, as dates or times; None for others."""
    if column.part == "days":
        return moment_text
    spelling = column.spelling
    return hours_text if column.part is None and spelling is not None and spelling.clock else None


def is_clock(kind: Any) -> bool:
    """Whether an Arrow type is one of times of day or durations."""
    return bool(pa.types.is_time(kind) or pa.types.is_duration(kind))


def is_time(value: Any) -> bool:
    """Whether a value is one."""
    return isinstance(value, (dt.time, dt.timedelta, np.timedelta64))


def in_hours(raw: Any) -> Any:
    """A column of texts, times or durations as hours; ValueError where a text is none."""
    if is_clock(raw.type):
        hour = _HOUR[raw.type.unit]
        ticks = whole_ticks(raw).cast(pa.int64())
        there = numpy_of(ticks.fill_null(0))
        if len(there) == 0 or max(abs(int(there.max())), abs(int(there.min()))) < 2**53:
            return pa.array(there / hour, mask=~numpy_of(raw.is_valid()))
        return pa.array([None if t is None else t / hour for t in ticks.to_pylist()], pa.float64())
    coded = pc.dictionary_encode(raw)
    each = np.array([hours_of(text) for text in coded.dictionary.to_pylist()], dtype=np.float64)
    return array(each).take(coded.indices)
