"""One value read in plain Python, as a column of many would read it; whatever is not plain is left to the column."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..base import canon
from . import encode
from .batch import Batch
from .schema import Column

_NUMBERS = frozenset((float, int, bool, np.float64, np.float32, np.int64, np.int32))
_SCALARS = _NUMBERS | {np.bool_, np.str_}


class NotPlain(Exception):
    """The value has to go the long way, which knows more types and has the messages."""


def plain_text(value: Any, marks: frozenset[str]) -> str | None:
    """The canonical text of a category's value; None if missing."""
    if type(value) is not str:
        if value is None:
            return None
        if type(value) not in _SCALARS:
            raise NotPlain
    text = canon.text(value)
    return None if text in marks else text


def plain_number(value: Any, marks: frozenset[str]) -> float | None:
    """The number; None if missing. The empty text, which is no number, need not be among the marks."""
    if type(value) is not float:
        if value is None:
            return None
        if type(value) not in _NUMBERS:
            raise NotPlain
    if marks and canon.text(value) in marks:
        return None
    try:
        x = float(value)
    except OverflowError:
        raise NotPlain from None
    if x - x != 0.0:
        if x != x:
            return None
        raise NotPlain  # an infinity, which is refused
    return x


def block_of_one(column: Column, value: Any, missing: Sequence[str]) -> Any:
    """Any other value as a block of one row."""
    several = column.kind == "bag" and type(value) is dict
    if hasattr(value, "__len__") and not isinstance(value, (str, bytes)) and not several:
        raise NotPlain  # a column of a table, perhaps
    return encode.block(column, [value], Batch({column.reads: [value]}, 1), missing)
