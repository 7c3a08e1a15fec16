"""Canonical text of labels and values: the same text for the same value, whatever the source it came from."""

from __future__ import annotations

import datetime as dt
import decimal
import math
import numbers
import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from . import times
from .errors import DataError
from .wording import encodable
from .wording import jsonable as jsonable
from .wording import many as many
from .wording import number_text as number_text
from .wording import printable as printable
from .wording import share_of as share_of

_BOOLEANS = {"True", "False", "TRUE", "FALSE"}
_FLOAT = re.compile(r"-?\d+(\.\d+)?(e[+-]\d+)?", re.ASCII)
_TIMES = (dt.date, dt.time, dt.timedelta, np.datetime64, np.timedelta64)
_NUMBERS: Any = (numbers.Real, decimal.Decimal, np.floating, np.bool_)
_BYTES = (bytes, bytearray, memoryview)
_MISSING = ("NAType", "NaTType")  # pandas' own words for it, without importing pandas
_LONG = 10**21  # numbers from here on are written with an exponent
_DIGITS = 14_000  # bits of the longest whole number that Python writes in decimal


def text(value: Any) -> str | None:
    """The canonical text of any single value; None for a missing one.

    Numbers have the text of their size, so that 3, 3.0 and Decimal("3.00") are one value, and different numbers never
    have the same. What has no text of its own here has the one that `str` gives.

    >>> text(True), text(2.0), text("01"), text(None), text(float("nan"))
    ('true', '2', '01', None, None)
    >>> text(decimal.Decimal("1.10")), text(dt.datetime(2024, 5, 31)), text(b"\\xff")
    ('1.1', '2024-05-31', '\\\\xff')
    """
    if value is None:
        return None
    if isinstance(value, str):
        return encodable(str.__str__(value))
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, _TIMES):
        return None if value != value else times.text(value)
    if isinstance(value, numbers.Integral):
        return _whole_text(int(value))
    if isinstance(value, decimal.Decimal):
        return _decimal_text(value)
    if isinstance(value, (float, np.floating)):
        return None if math.isnan(value) else number_text(float(value))
    if isinstance(value, _BYTES):
        return bytes(value).decode("utf-8", "backslashreplace")
    if hasattr(value, "as_py") or (isinstance(value, np.ndarray) and value.ndim == 0):
        return text(unwrapped(value))
    if type(value).__name__ in _MISSING:
        return None
    if not is_one(value):
        raise DataError(
            f"{printable(repr(value))} is a {type(value).__name__}, not one value",
            hint="give its parts columns of their own, or declare the column as kind 'bag' or 'vector'.",
        )
    return encodable(str(value))


def is_one(value: Any) -> bool:
    """Whether this is one value and not a collection of some.

    >>> is_one("ab"), is_one(3), is_one([3]), is_one(np.array(3))
    (True, True, False, True)
    """
    return isinstance(value, (str, *_BYTES)) or not hasattr(value, "__len__") or getattr(value, "ndim", 1) == 0


def unwrapped(value: Any) -> Any:
    """The value in an Arrow scalar or an array without dimensions."""
    return value[()] if isinstance(value, np.ndarray) else value.as_py()


def number(value: Any) -> float:
    """The number that a value is, NaN for a missing one; ValueError if it is none. Texts are read, with a point.

    >>> number("1.5"), number(decimal.Decimal("94.8")), number(True)
    (1.5, 94.8, 1.0)
    """
    if isinstance(value, _NUMBERS) and not isinstance(value, np.timedelta64):  # a signed integer to NumPy
        if isinstance(value, decimal.Decimal) and value.is_nan():
            return math.nan
        try:
            return float(value)
        except OverflowError:
            raise ValueError(str(value)) from None
    spelled = text(value)
    if spelled is None:
        return math.nan
    if "_" in spelled:  # Python reads 1_000, nobody else does
        raise ValueError(spelled)
    return float(spelled)


def instant(value: Any) -> tuple[int, int] | None:
    """The day since 1970 and the microsecond of the day in which a value lies; ValueError if it is no date.

    A time with a zone counts in UTC.

    >>> instant("1970-01-02"), instant(dt.datetime(1970, 1, 1, 0, 0, 1)), instant(None)
    ((1, 0), (0, 1000000), None)
    """
    if isinstance(value, (dt.date, np.datetime64)):
        return None if value != value else times.instant(value)
    spelled = text(value)
    if spelled is None:
        return None
    if isinstance(value, (numbers.Number, dt.timedelta, np.timedelta64)):  # 20240531 is a number
        raise ValueError(spelled)
    return times.parsed(spelled)


def _whole_text(value: int) -> str:
    """The digits, or where a float would have fewer of them and is the same number, those of the float."""
    if -_LONG < value < _LONG:
        return str(value)
    try:
        near = float(value)
    except OverflowError:
        return str(value) if value.bit_length() < _DIGITS else hex(value)
    return number_text(near) if near == value else str(value)


def _decimal_text(value: decimal.Decimal) -> str | None:
    """The text of the float that is written so, the exact digits where there is none."""
    if value.is_nan():
        return None
    if value.is_infinite() or value == 0:
        return number_text(float(value))
    if -400 < value.adjusted() < 400 and value == value.to_integral_value():
        return _whole_text(int(value))
    near = float(value)
    if math.isfinite(near) and decimal.Decimal(repr(near)) == value:
        return number_text(near)
    sign, digits, _ = value.as_tuple()
    shown = "".join(map(str, digits)).rstrip("0")
    fraction = "." + shown[1:] if len(shown) > 1 else ""
    return f"{'-' * sign}{shown[0]}{fraction}e{value.adjusted():+03}"


@lru_cache(maxsize=1 << 14)  # a category has the same few texts in every batch
def written(text: str) -> str:
    """The canonical text of a value in a file without types, where booleans and floats look as a program wrote them.

    >>> written("True"), written("3.0"), written("01"), written("3.10"), written("yes")
    ('true', '3', '01', '3.10', 'yes')
    """
    if text in _BOOLEANS:
        return text.lower()
    if text[-1:].isdigit() and ("." in text or "e" in text) and _FLOAT.fullmatch(text) and repr(float(text)) == text:
        return number_text(float(text))
    return text


def ordered(values: Iterable[Any]) -> tuple[str, ...]:
    """Canonical texts, each once, numbers by size before other texts.

    >>> ordered(["b", 10, 9.0, None, "a", "10"])
    ('9', '10', 'a', 'b')
    """
    return tuple(sorted({t for v in values if (t := text(v)) is not None}, key=_order))


def _order(text: str) -> tuple[bool, float, str]:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    return (False, number, text) if math.isfinite(number) else (True, 0.0, text)


LABEL_TYPES = ("text", "int", "float", "bool", "date")


def label_type(value: Any) -> str:
    """Which of LABEL_TYPES brings `text(value)` back to `value`."""
    if isinstance(value, (bool, np.bool_)):
        return "bool"
    if isinstance(value, numbers.Integral):
        return "int"
    if isinstance(value, (float, np.floating)):
        return "float"
    if isinstance(value, (dt.date, np.datetime64)) and not isinstance(value, dt.datetime):
        return "date"
    return "text"


def from_text(label: str, kind: str) -> Any:
    """A label as it went in: the inverse of `text` for one of LABEL_TYPES.

    >>> from_text("3", "int"), from_text("true", "bool"), from_text("3", "text")
    (3, True, '3')
    """
    back = _from_text(label, kind)
    return back if text(back) == label else label  # "1.50" stays a text: 1.5 is another label


def _from_text(label: str, kind: str) -> Any:
    try:
        if kind == "int":
            return int(float(label)) if "e" in label else int(label)  # 10²¹ and more are written with an exponent
        if kind == "float":
            return float(label)
        if kind == "bool":
            return {"true": True, "false": False}.get(label, label)
        if kind == "date":
            return dt.date.fromisoformat(label)
    except (ValueError, OverflowError):
        return label  # a class met later that is not of the first ones' type stays text
    return label


def labels_of(texts: Any, kind: str) -> tuple[Any, ...]:
    """The labels that a file names, as they went in; refused where they are no list of different texts."""
    if not isinstance(texts, list) or not texts or not all(isinstance(t, str) for t in texts):
        raise ValueError(f"the classes are {texts!r:.60}, not texts")
    if len(set(texts)) < len(texts):
        raise ValueError("a class is named twice")
    return tuple(from_text(t, kind) for t in texts)
