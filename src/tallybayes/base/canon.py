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

_BOOLEANS = {"True", "False", "TRUE", "FALSE"}
_FLOAT = re.compile(r"-?\d+(\.\d+)?(e[+-]\d+)?", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")


def number_text(value: float) -> str:
    """A number in its shortest form, whole numbers without ".0".

    >>> number_text(3.0), number_text(0.1), number_text(1e300), number_text(-0.0)
    ('3', '0.1', '1e+300', '0')
    """
    if abs(value) < 1e21 and value == math.floor(value):
        return str(int(value))
    return repr(float(value))


def text(value: Any) -> str | None:
    """The canonical text of any single value; None for a missing one.

    >>> text(True), text(2.0), text("01"), text(None), text(float("nan"))
    ('true', '2', '01', None, None)
    """
    if value is None:
        return None
    if isinstance(value, str):
        return _encodable(str(value))
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, decimal.Decimal):
        value = float(value)
    if isinstance(value, (float, np.floating)):
        return None if math.isnan(value) else number_text(float(value))
    if isinstance(value, np.datetime64):
        value = value.item() if not np.isnat(value) else None
        return text(value)
    if isinstance(value, dt.datetime):
        if value != value:  # pandas' NaT is a datetime that differs from itself
            return None
        midnight = value.time() == dt.time(0) and value.tzinfo is None
        return value.date().isoformat() if midnight else value.isoformat()
    if isinstance(value, (dt.date, dt.time)):
        return value.isoformat()
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if type(value).__name__ in (
        "NAType",
        "NaTType",
    ):  # pandas' own words for missing, without importing pandas
        return None
    return _encodable(str(value))


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


def _encodable(text: str) -> str:
    """The text with lone surrogates replaced, as bytes that are not UTF-8 are: Arrow and files cannot hold them."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


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


def printable(text: object, most: int = 60) -> str:
    """A text that is safe to show: short, and without control characters, which could move a terminal's cursor.

    >>> printable("red\\x1b[31m")
    'red\ufffd[31m'
    """
    clean = "".join(ch if ch.isprintable() else "\ufffd" for ch in str(text)[: most + 1])
    return clean if len(clean) <= most else clean[: most - 1] + "…"


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
    try:
        if kind == "int":
            return int(label)
        if kind == "float":
            return float(label)
        if kind == "bool":
            return {"true": True, "false": False}.get(label, label)
        if kind == "date":
            return dt.date.fromisoformat(label)
    except ValueError:
        return label  # a class met later that is not of the first ones' type stays text
    return label
