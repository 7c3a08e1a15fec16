"""The usual marks for a value that is not there: NA, ?, a minus, nothing but blanks."""

from __future__ import annotations

from collections.abc import Sequence

MARKS = (
    *("?", "NA", "N/A", "#N/A", "na", "n/a", "#NA", "NaN", "nan", "null", "NULL", "Null", "None"),
    *("-", "--", "."),
)  # what people write for a value that is not there
_SPACE = " \t\n\r\x0b\x0c\u00a0\u202f\u3000"  # that may stand around a mark
_BLANK_OR_MARK = frozenset((*MARKS, ""))


def is_mark(text: str) -> bool:
    """Whether a text is one of the usual marks for a missing value, or nothing but blanks.

    >>> is_mark("#N/A"), is_mark("  "), is_mark(" NA"), is_mark("unknown"), is_mark("0")
    (True, True, True, False, False)
    """
    return text.strip(_SPACE) in _BLANK_OR_MARK


def marks_among(values: Sequence[str], *, category: bool = False) -> tuple[str, ...]:
    """Those of a column's values that are marks; in a category not where fewer than two others would be left.

    A minus beside a plus is a value, too.

    >>> marks_among(["red", "NA", "blue"], category=True), marks_among(["+", "-", "±"], category=True)
    (('NA',), ())
    """
    edges = "\0" + "\0".join(values) + "\0"
    if any(f"{blank}\0" in edges or f"\0{blank}" in edges for blank in _SPACE):
        found = tuple(v for v in values if is_mark(v))
    else:
        found = tuple(sorted(_BLANK_OR_MARK.intersection(values)))
    if category and found:
        if "+" in values:
            found = tuple(v for v in found if v.strip(_SPACE) != "-")
        if len(values) - len(found) < 2:
            return ()
    return found
