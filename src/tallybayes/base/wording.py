"""Texts that are safe to keep and to show, in plain Python: what starts in a moment must not wait for NumPy."""

from __future__ import annotations

import math
import re
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")


def number_text(value: float) -> str:
    """A number in its shortest form, whole numbers without ".0".

    >>> number_text(3.0), number_text(0.1), number_text(1e300), number_text(-0.0)
    ('3', '0.1', '1e+300', '0')
    """
    if abs(value) < 1e21 and value == math.floor(value):
        return str(int(value))
    return repr(float(value))


def end_text(value: float) -> str:
    """The end of a range: a whole number in full where it is sure to the last digit, others to four digits.

    >>> end_text(12548.0), end_text(1.23456), end_text(2.0**70)
    ('12548', '1.235', '1.181e+21')
    """
    sure = value == math.floor(value) and abs(value) <= 2.0**53 if math.isfinite(value) else False
    return number_text(value if sure else float(f"{value:.4g}"))


def encodable(text: str) -> str:
    """The text with lone surrogates replaced, as bytes that are not UTF-8 are: Arrow and files cannot hold them."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def printable(text: object, most: int = 60) -> str:
    """A text that is safe to show: short, and without control characters, which could move a terminal's cursor.

    >>> printable("red\\x1b[31m")
    'red\ufffd[31m'
    """
    clean = "".join(ch if ch.isprintable() else "\ufffd" for ch in str(text)[: most + 1])
    return clean if len(clean) <= most else clean[: most - 1] + "…"


def visible(text: str) -> str:
    """A value as it may stand in a sentence: in quotes where blanks around it would not be seen.

    >>> visible("yes"), visible(" yes")
    ('yes', "' yes'")
    """
    shown = printable(text)
    return shown if text == text.strip() else f"'{shown}'"


def jsonable(value: Any) -> Any:
    """Nested values as JSON can hold them: NaN as None, infinities as texts that float() reads.

    >>> jsonable({"a": [1.5, float("nan"), float("-inf")]})
    {'a': [1.5, None, '-Infinity']}
    """
    if isinstance(value, dict):
        return {str(k): jsonable(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [jsonable(v) for v in value]
    if not isinstance(value, float) or abs(value) < float("inf"):
        return value
    return None if value != value else "Infinity" if value > 0 else "-Infinity"


def many(n: int, what: str, several: str = "") -> str:
    """A number of things, the thing in the singular or the plural.

    >>> many(1, "row"), many(3_000, "row"), many(2, "class", "classes")
    ('1 row', '3,000 rows', '2 classes')
    """
    return f"{n:,} {what if n == 1 else several or what + 's'}"


def share_of(n: int, rows: int) -> str:
    """So many of the rows, as a share, or as they are where the share would read 0% or 100%.

    >>> share_of(30, 100), share_of(1, 1_309), share_of(999, 1_000)
    ('30% of rows', '1 of 1,309 rows', '999 of 1,000 rows')
    """
    return f"{n / rows:.0%} of rows" if 0.005 <= n / rows < 0.995 or n == rows else f"{n:,} of {many(rows, 'row')}"
