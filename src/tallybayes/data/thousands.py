"""Points and commas: which of them stand before decimals, and which between thousands.

A file read with decimal="," says so itself, and its columns remember it. Of others the cells decide; where they could
be meant otherwise, that is said.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from ..base.errors import warn
from .columns import with_points
from .kinds import Reason
from .schema import Column
from .spelling import Spelling
from .values import is_text

_POINTED = r"^\s*[+-]?\d*\.\d*([eE][+-]?\d+)?\s*$"  # a number all the same
_SEPARATED = r"^\s*[+-]?[1-9]\d{0,2}([%s]\d{3})+(,\d+)?\s*$"
_POINTS = (".", " ", "'")  # that may stand between thousands where a comma is the decimal point
_IN_THOUSANDS = re.compile(r"[^0-9.]*[1-9]\d{0,2}(\.\d{3})+[^0-9.]*")


def with_commas(column: Column, raw: Any) -> Column:
    """A column of a file that was read with decimal=",", which remembers so: nobody need say it again.

    Left as it is where the texts of the file are no such numbers after all, or thousands are set apart in several ways.
    """
    if column.part is not None or not (isinstance(raw, pa.Array) and is_text(raw.type)):
        return column
    spelling = column.spelling or Spelling()
    if column.like == "category":
        changed = pc.any(pc.not_equal(with_points(raw), raw), min_count=0).as_py()
        return replace(column, spelling=replace(spelling, decimal=",")) if changed else column
    if column.like != "number" or not spelling.plain:
        return column
    grouped = {sign: pc.match_substring_regex(raw, _SEPARATED % sign) for sign in _POINTS}
    used = [sign for sign, fits in grouped.items() if pc.any(fits, min_count=0).as_py()]
    others = pc.and_(pc.match_substring_regex(raw, _POINTED), pc.invert(grouped["."]))
    if len(used) > 1 or pc.any(others, min_count=0).as_py():
        return column
    said = "; a decimal comma" if pc.any(pc.match_substring(raw, ","), min_count=0).as_py() else ""
    spelling = replace(spelling, decimal=",", thousands=used[0] if used else ".")
    return replace(column, spelling=spelling, reason=column.reason + said)


def with_doubt(column: Column, raw: Any) -> Column:
    """A column of plain numbers beside a decimal comma, with a doubt where its points may stand between thousands."""
    if column.kind != "number" or column.spelling is not None or not isinstance(raw, pa.Array):
        return column
    example = in_thousands([v for v in raw.unique().to_pylist() if isinstance(v, str)])
    if not example:
        return column
    doubt = doubt_of(column.name, example, float(example))
    return replace(column, reason=column.reason + Reason(f" ({doubt})", ""))


def in_thousands(values: Sequence[str]) -> str:
    """An example if some of the values have points and all of these stand before three digits, as in 1.234; else ''.

    >>> in_thousands(["1.234 €", "999 €", "12.500 €"]), in_thousands(["1.234", "0.500"]), in_thousands(["1.234", "5"])
    ('1.234 €', '', '')
    """
    pointed = [v.strip() for v in values if "." in v]
    return pointed[0] if len(pointed) > 1 and all(map(_IN_THOUSANDS.fullmatch, pointed)) else ""


def doubt_of(name: str, example: str, number: float) -> str:
    """What is said of a column whose points may stand between thousands; it is told with a warning, too."""
    doubt = f"{example!r} is read as {number:.15g}; decimal=',' reads it as thousands"
    warn(
        f"column {name!r} holds numbers with a point before every three digits: {doubt}. Hint: if that is meant, "
        "tb.read(path, decimal=',') says so of a file."
    )
    return doubt
