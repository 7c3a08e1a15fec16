"""One raw column with a value per row → canonical texts or numbers, with missing values marked.

`plain_text` and `plain_number` read one value in plain Python, as a column of many would read it; whatever is not plain
is left to the column.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base import canon
from ..base.arrays import Floats, has_infinity
from ..base.arrow import array, floats, numpy_of, scalar, texts
from ..base.errors import DataError
from ..exact.kernels import gate
from .blocks import Codes

_FIRST, _MISSING = np.zeros(1, dtype=np.int64), np.full(1, -1, dtype=np.int64)  # the codes of a single row
_LONG = 1 << 12  # rows of a column of texts: fewer are numbered by Arrow
_DIFFERENT = 1 << 11  # texts: more are, too, since their table does not stay in the near cache
SMALL_RANGE = 1 << 16  # of whole numbers that are counted without a hash table


@dataclass(frozen=True)
class Where:
    """The place a message speaks of: a column and the number of its first row."""

    column: str
    start: int
    place: Callable[[int], str] | None = None  # a file and line, where the rows have one

    def error(self, row: int, found: str, hint: str) -> DataError:
        """An error about one row of the column."""
        number = self.start + row
        if self.place is not None:
            return DataError(f"{self.place(number)}, column {self.column!r}: {found}", hint=hint)
        return DataError(f"column {self.column!r}, row {number} (the first is row 0): {found}", hint=hint)

    def unreadable(self, row: int, found: str, hint: str) -> DataError:
        """The same of a cell that this kind of column cannot read."""
        out = self.error(row, found, hint)
        out.unreadable = True
        return out

    def at(self, number: int) -> str:
        """Where the row of a number in its source stands."""
        return f"row {number}" if self.place is None else self.place(number)


def check_flat(raw: Any, where: Where) -> None:
    """Refuse a column where one value per row is wanted and a row has none or several."""
    if getattr(raw, "ndim", 1) != 1 or not isinstance(raw, (pa.Array, np.ndarray, list)):
        raise DataError(
            f"column {where.column!r} is a matrix of shape {raw.shape}, not one value per row",
            hint="give its columns names of their own, or declare it as kind 'vector' or 'bag'.",
        )
    if isinstance(raw, pa.Array):
        kind = raw.type.value_type if pa.types.is_dictionary(raw.type) else raw.type
        if (pa.types.is_nested(kind) or pa.types.is_interval(kind)) and raw.null_count < len(raw):
            raise DataError(
                f"column {where.column!r} holds values of type {kind}, not one value per row",
                hint="take a part of it as a column of its own, or declare lists and maps as kind 'bag' or 'vector'.",
            )
    elif isinstance(raw, list) and not all(map(canon.is_one, {type(v): v for v in raw}.values())):
        row = next(i for i, v in enumerate(raw) if not canon.is_one(v))
        raise where.error(
            row,
            f"{canon.printable(repr(raw[row]))} is a {type(raw[row]).__name__}, not one value",
            "give its parts columns of their own, or declare the column as kind 'bag' or 'vector'.",
        )


def category(raw: Any, missing: Sequence[str] = (), *, written: bool = False) -> Codes:
    """Canonical text per value; None, NaN and the texts in `missing` are missing.

    `written` says that the texts come from a file without types: a "3.0" there is what 3 is elsewhere.
    """
    if isinstance(raw, list) and len(raw) == 1 and not written:
        text = canon.text(raw[0])
        return Codes([], _MISSING) if text is None or text in missing else Codes([text], _FIRST)
    if isinstance(raw, np.ndarray):
        raw = array(raw)
    if isinstance(raw, pa.Array) and pa.types.is_nested(raw.type):
        raw = raw.to_pylist()  # all of them missing, or refused
    if isinstance(raw, pa.Array) and pa.types.is_integer(raw.type) and raw.null_count == 0:
        found = _small_range(numpy_of(raw), missing)
        if found is not None:
            return found
    coded = numbered(raw) if isinstance(raw, pa.Array) and is_text(raw.type) and len(raw) >= _LONG else None
    if coded is not None:
        spelled, codes = coded
    elif isinstance(raw, pa.Array):
        if not pa.types.is_dictionary(raw.type):
            raw = raw.dictionary_encode()
        spelled = texts(raw.dictionary)
        indices = raw.indices if pa.types.is_int32(raw.indices.type) else raw.indices.cast(pa.int64())
        codes = numpy_of(indices.fill_null(scalar(-1, indices.type)) if indices.null_count else indices)
        if is_text(raw.dictionary.type) and raw.dictionary.null_count == 0:
            named = [canon.written(t) if written else t for t in spelled if t is not None]
            each = set(named)
            if len(each) == len(named) and each.isdisjoint(missing):
                return Codes(named, codes)  # none is missing, and none twice
    else:
        seen: dict[Any, int] = {}
        spelled, numbers = [], []
        for value in raw:
            text = canon.text(value)
            if text not in seen:
                seen[text] = len(spelled)
                spelled.append(text)
            numbers.append(seen[text])
        codes = np.array(numbers, dtype=np.int64)
    slots: dict[str, int] = {}
    new = np.empty(len(spelled) + 1, dtype=np.int64)
    new[-1] = -1
    for i, text in enumerate(spelled):
        if text is None or text in missing:
            new[i] = -1
        else:
            new[i] = slots.setdefault(canon.written(text) if written else text, len(slots))
    return Codes(list(slots), codes if len(slots) == len(spelled) else new[codes])


@gate.guarded
def numbered(raw: Any) -> tuple[list[str | None], Any] | None:
    """The different texts of a column in the order in which they come, and which of them each row has, −1 for null.

    What Arrow's dictionary has; None for many different texts, and before kernels repay themselves.
    """
    fast = gate.kernels("codes", len(raw))
    if fast is None:
        return None
    validity, ends, data = raw.buffers()
    whole = np.int32 if pa.types.is_string(raw.type) else np.int64
    none = np.zeros(0, dtype=np.uint8)
    bits = np.frombuffer(validity, dtype=np.uint8) if raw.null_count else none
    letters = np.frombuffer(data, dtype=np.uint8) if data is not None and data.size else none
    codes, first = np.empty(len(raw), dtype=np.int32), np.empty(_DIFFERENT, dtype=np.int64)
    places = np.frombuffer(ends, dtype=whole)[raw.offset : raw.offset + len(raw) + 1]
    room = np.zeros(4 * _DIFFERENT, dtype=np.int32), np.empty((3, _DIFFERENT), dtype=np.uint64)
    count = fast.encode(places, letters, bits, raw.offset, codes, first, *room)
    return None if count < 0 else (raw.take(array(first[:count])).to_pylist(), codes)


def _small_range(values: np.ndarray[Any, Any], missing: Sequence[str]) -> Codes | None:
    """Whole numbers of a range no wider than there are rows need no hash table: the code is the place in the range."""
    low, high = (int(values.min()), int(values.max())) if len(values) else (0, -1)
    if not 0 <= high - low < min(len(values), SMALL_RANGE) or any(map(is_whole, missing)):
        return None
    wide = values if values.dtype.itemsize == 8 else values.astype(np.int64)  # 127 − (−128) is no int8
    codes = (wide - wide.dtype.type(low)).astype(np.int64, copy=False)
    used = np.bincount(codes, minlength=high - low + 1) > 0
    slots = [str(low + i) for i in np.flatnonzero(used).tolist()]
    return Codes(slots, codes if used.all() else (np.cumsum(used) - 1)[codes])


def is_whole(text: str) -> bool:
    """Whether a text is the canonical form of some whole number."""
    return text.removeprefix("-").isdecimal()


def number(raw: Any, where: Where, missing: Sequence[str] = ()) -> Floats:
    """float64 values, NaN for missing; words and infinities are refused."""
    if isinstance(raw, pa.Array) and pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if isinstance(raw, pa.Array) and is_bytes(raw.type):
        raw = array(texts(raw), pa.string())
    if isinstance(raw, pa.Array) and is_text(raw.type):
        raw = _numbers_from_text(raw, missing)
    marks = [float(m) for m in missing if _is_float(m) and canon.text(float(m)) == m]  # such as -999
    if isinstance(raw, pa.Array):
        if pa.types.is_null(raw.type):
            return np.full(len(raw), np.nan)
        if pa.types.is_boolean(raw.type):
            raw = raw.cast(pa.int8())
        if not (pa.types.is_integer(raw.type) or pa.types.is_floating(raw.type) or pa.types.is_decimal(raw.type)):
            raise DataError(
                f"column {where.column!r} holds values of type {raw.type}, not numbers",
                hint="declare the column as a category, or turn it into numbers first.",
            )
        values = floats(raw)
    else:
        values = np.array([_one_number(v, i, where, missing) for i, v in enumerate(raw)], dtype=np.float64)
    if marks and (marked := np.isin(values, marks)).any():
        values = np.where(marked, np.nan, values)
    if has_infinity(values):
        row = int(np.argmax(np.isinf(values)))
        raise where.unreadable(
            row,
            f"{values[row]} is not a number that can be added up",
            "replace infinities by None (missing) or clip them.",
        )
    out: Floats = values
    return out


def is_text(kind: Any) -> bool:
    """Whether an Arrow type is one of texts."""
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def is_bytes(kind: Any) -> bool:
    """Whether an Arrow type is one of bytes, which are counted by the text that they spell."""
    return bool(pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or pa.types.is_fixed_size_binary(kind))


def _numbers_from_text(raw: Any, missing: Sequence[str]) -> Any:
    if any(map(_is_float, missing)):  # such as -999
        raw = without(raw, missing)
    try:
        return raw.cast(pa.float64())
    except pa.ArrowInvalid:
        raw = without(raw, missing)
    try:
        return raw.cast(pa.float64())
    except pa.ArrowInvalid:
        return raw.to_pylist()


def _is_float(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def without(raw: Any, missing: Sequence[str]) -> Any:
    """The texts with those that mean "missing" as null."""
    if not missing:
        return raw
    return pc.if_else(pc.is_in(raw, value_set=array(list(missing), raw.type)), scalar(None, raw.type), raw)


def _one_number(value: Any, row: int, where: Where, missing: Sequence[str]) -> float:
    text = canon.text(value) if canon.is_one(value) else canon.printable(repr(value))
    if text is None or text in missing:
        return np.nan
    try:
        return canon.number(value)
    except ValueError:
        comma = "," in text and text.replace(",", ".", 1).replace(".", "", 1).lstrip("+-").isdigit()
        raise where.unreadable(
            row,
            f"{text[:60]!r} is not a number",
            "write decimals with a point."
            if comma
            else "mend the value, name it in the schema's missing=[…], or make the column a category.",
        ) from None


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
