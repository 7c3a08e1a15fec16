"""Times of day and durations as hours: 14:30 is 14.5 and a day and two hours are 26, whatever type held them.

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
_HOUR = {"s": 3_600, "ms": 3_600_000, "us": 3_600_000_000, "ns": 3_600_000_000_000}


def hours_of(text: str) -> float:
    """The hours that a text spells; ValueError if it is no time of day and no duration.

    >>> [hours_of(text) for text in ("14:30", "2:30 pm", "12:15 am", "1 day, 2:00:00", "-0:45")]
    [14.5, 14.5, 0.25, 26.0, -0.75]
    """
    found = _CLOCK.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is no time")
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
