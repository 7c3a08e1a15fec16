"""From a batch of raw columns to blocks, by the schema: the road that counting and scoring share."""

from __future__ import annotations

import datetime as dt
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse

from . import canon
from .block import BAG_UNIT, Bag, Block, Codes, Numbers, Vectors
from .errors import DataError, did_you_mean, excerpt, warn
from .numerics import Floats
from .schema import Column, Schema
from .sources import WEIGHTS, Batch

_DAY = 86400.0
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


@dataclass(frozen=True)
class Where:
    """The place a message speaks of: a column and the number of its first row."""

    column: str
    start: int

    def error(self, row: int, found: str, hint: str) -> DataError:
        """An error about one row of the column."""
        return DataError(f"column {self.column!r}, row {self.start + row} (the first is row 0): {found}", hint=hint)


def blocks(schema: Schema, batch: Batch) -> dict[str, Block]:
    """A block per counted column; a column that the batch does not have is missing in every row."""
    out: dict[str, Block] = {}
    for column in schema.counted:
        raw = batch.get(column.reads)
        out[column.name] = block(column, raw, batch, schema.missing)
    return out


def check_columns(schema: Schema, batch: Batch) -> None:
    """Warn of columns that are absent, with the nearest name; refuse a batch that has none of them."""
    wanted = dict.fromkeys(c.reads for c in schema.counted)
    absent = [name for name in wanted if name not in batch]
    if not absent:
        return
    near = [f"{n!r}: {guess}" for n in absent if (guess := did_you_mean(n, batch.names()))]
    if len(absent) == len(wanted):
        raise DataError(
            f"none of the columns {excerpt(wanted)} is in the data, which have {excerpt(batch.names()) or 'none'}",
            hint=(near[0] + "columns" if near else "columns")
            + " are found by name; rename them to those of the schema.",
        )
    warn(f"columns not in the data are taken as missing: {excerpt(absent)}. {' '.join(near)}".strip())


def labels(schema: Schema, batch: Batch) -> Codes:
    """The class of each row, −1 where there is none."""
    if schema.target not in batch:
        raise DataError(
            f"there is no target column {schema.target!r}; the data have {excerpt(batch.names()) or 'no columns'}",
            hint=did_you_mean(schema.target, batch.names()) + "name the column to predict with target='…'.",
        )
    check_flat(batch[schema.target], schema.target)
    return category(batch[schema.target], schema.missing)


def weights(schema: Schema, batch: Batch) -> Floats | None:
    """The weight of each row in whole units of 2⁻³², or None where every row weighs one."""
    if WEIGHTS in batch.columns:
        raw, name = batch.columns[WEIGHTS], "weights"
    elif schema.weights is None:
        return None
    elif schema.weights in batch:
        raw, name = batch[schema.weights], schema.weights
    else:
        raise DataError(
            f"there is no weights column {schema.weights!r}",
            hint=did_you_mean(schema.weights, batch.names()) + "the schema says that this column holds the weights.",
        )
    where = Where(name, batch.start)
    given = number(raw, where, schema.missing)
    bad = np.flatnonzero(~(given >= 0))
    if len(bad):
        row = int(bad[0])
        found = "the weight is missing" if np.isnan(given[row]) else f"the weight {given[row]:g} is negative"
        raise where.error(row, found, "a weight is a number of at least 0; use forget(rows) to take rows away.")
    if (given >= 2.0**31).any():
        row = int(np.argmax(given >= 2.0**31))
        raise where.error(row, f"the weight {given[row]:g} is over 2^31", "divide all weights by one factor.")
    units = np.rint(np.ldexp(given, 32))
    kept = np.ldexp(units, -32)
    rounded = np.flatnonzero(np.abs(kept - given) > 1e-6 * given)
    if len(rounded):
        row = int(rounded[0])
        raise where.error(
            row,
            f"the weight {given[row]:g} is too small to be counted in units of 2⁻³²",
            "multiply all weights by one factor so that the smallest is above 0.001.",
        )
    return kept


def block(column: Column, raw: Any, batch: Batch, missing: Sequence[str]) -> Block:
    """The block of one column of a batch; `raw` is None where the data do not have it."""
    where = Where(column.reads, batch.start)
    missing = (*missing, *column.missing)
    if column.kind == "category" or column.part is not None:
        check_flat(raw, column.reads)
    if column.part is not None and raw is not None:
        raw = date_part(raw, column.part, where, missing)
    if column.kind == "category":
        none = np.full(batch.rows, -1, dtype=np.int64)
        return Codes([], none) if raw is None else category(raw, missing)
    if column.kind == "number":
        values = np.full(batch.rows, np.nan) if raw is None else number(raw, where, missing)
        return Numbers(values, column.cells)
    if column.kind == "vector":
        return vector(raw, column, batch.rows, where)
    if raw is None:
        absent = np.zeros(batch.rows, dtype=bool)
        return Bag([], scipy.sparse.csr_array((batch.rows, 0)), absent, column.levels)
    return bag(raw, column, where)


def check_flat(raw: Any, column: str) -> None:
    """Refuse a matrix where one value per row is wanted."""
    if getattr(raw, "ndim", 1) != 1:
        raise DataError(
            f"column {column!r} is a matrix of shape {raw.shape}, not one value per row",
            hint="give its columns names of their own, or declare it as kind 'vector' or 'bag'.",
        )


def category(raw: Any, missing: Sequence[str] = ()) -> Codes:
    """Canonical text per value; None, NaN and the texts in `missing` are missing."""
    if isinstance(raw, np.ndarray):
        raw = pa.array(raw)
    if isinstance(raw, pa.Array):
        if not pa.types.is_dictionary(raw.type):
            raw = raw.dictionary_encode()
        texts = [canon.text(v) for v in raw.dictionary.to_pylist()]
        codes = raw.indices.cast(pa.int64()).fill_null(-1).to_numpy(zero_copy_only=False)
    else:
        found: dict[Any, int] = {}
        texts, numbers = [], []
        for value in raw:
            text = canon.text(value)
            if text not in found:
                found[text] = len(texts)
                texts.append(text)
            numbers.append(found[text])
        codes = np.array(numbers, dtype=np.int64)
    slots: dict[str, int] = {}
    new = np.empty(len(texts) + 1, dtype=np.int64)
    new[-1] = -1
    for i, text in enumerate(texts):
        new[i] = -1 if text is None or text in missing else slots.setdefault(text, len(slots))
    return Codes(list(slots), new[codes])


def number(raw: Any, where: Where, missing: Sequence[str] = ()) -> Floats:
    """float64 values, NaN for missing; words and infinities are refused."""
    if isinstance(raw, pa.Array) and pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if isinstance(raw, pa.Array) and _is_text(raw.type):
        raw = _numbers_from_text(raw, where, missing)
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
        values = raw.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False)
    else:
        values = np.array([_one_number(v, i, where, missing) for i, v in enumerate(raw)], dtype=np.float64)
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        row = int(infinite[0])
        raise where.error(
            row,
            f"{values[row]} is not a number that can be added up",
            "replace infinities by None (missing) or clip them.",
        )
    out: Floats = values
    return out


def _is_text(kind: Any) -> bool:
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _numbers_from_text(raw: Any, where: Where, missing: Sequence[str]) -> Any:
    marked = pc.is_in(raw, value_set=pa.array(list(missing), raw.type)) if missing else None
    if marked is not None:
        raw = pc.if_else(marked, pa.scalar(None, raw.type), raw)
    try:
        return raw.cast(pa.float64())
    except pa.ArrowInvalid:
        return [None if v is None else v for v in raw.to_pylist()]


def _one_number(value: Any, row: int, where: Where, missing: Sequence[str]) -> float:
    text = canon.text(value)
    if text is None or text in missing:
        return np.nan
    if isinstance(value, (bool, np.bool_)):
        return float(value)
    try:
        if "_" in text or isinstance(value, complex):  # Python reads 1_000, nobody else does
            raise ValueError
        return float(value)
    except (TypeError, ValueError, OverflowError):
        comma = "," in text and text.replace(",", ".", 1).replace(".", "", 1).lstrip("+-").isdigit()
        raise where.error(
            row,
            f"{text[:60]!r} is not a number",
            "write decimals with a point."
            if comma
            else "mend the value, name it in the schema's missing=[…], or make the column a category.",
        ) from None


def date_part(raw: Any, part: str, where: Where, missing: Sequence[str]) -> Any:
    """Days since 1970 as numbers, or weekday, month or hour as text."""
    times = _timestamps(raw, where, missing)
    if part == "days":
        return pc.divide(pc.cast(times, pa.int64()), pa.scalar(_DAY * 1e6))
    if part == "hour":
        return pc.cast(pc.hour(times), pa.string())
    number = pc.day_of_week(times) if part == "weekday" else pc.subtract(pc.month(times), 1)
    names = pa.array(_WEEKDAYS if part == "weekday" else _MONTHS)
    return pc.take(names, number)


def _timestamps(raw: Any, where: Where, missing: Sequence[str]) -> Any:
    if not isinstance(raw, pa.Array):
        raw = pa.array(list(raw), from_pandas=True)
    if pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if pa.types.is_null(raw.type):
        return raw.cast(pa.timestamp("us"))
    if _is_text(raw.type):
        raw = pa.array([_one_time(v, i, where, missing) for i, v in enumerate(raw.to_pylist())], pa.timestamp("us"))
    if not (pa.types.is_timestamp(raw.type) or pa.types.is_date(raw.type)):
        raise DataError(
            f"column {where.column!r} holds values of type {raw.type}, not dates",
            hint="give dates, timestamps or ISO texts such as 2024-05-31.",
        )
    if pa.types.is_timestamp(raw.type) and raw.type.tz is not None:
        raw = raw.cast(pa.timestamp("us", "UTC"), safe=False).cast(pa.timestamp("us"))
    return raw.cast(pa.timestamp("us"), safe=False)


def _one_time(value: str | None, row: int, where: Where, missing: Sequence[str]) -> dt.datetime | None:
    if value is None or value in missing:
        return None
    try:
        time = dt.datetime.fromisoformat(value)
    except ValueError:
        raise where.error(
            row,
            f"{value[:60]!r} is not a date",
            "write dates as 2024-05-31 or 2024-05-31T18:00, or ignore the column.",
        ) from None
    return time.astimezone(dt.UTC).replace(tzinfo=None) if time.tzinfo else time


def vector(raw: Any, column: Column, rows: int, where: Where) -> Vectors:
    """Rows × positions of float64, NaN for missing; the width must be the schema's."""
    if raw is None:
        return Vectors(np.full((rows, column.width or 0), np.nan))
    if scipy.sparse.issparse(raw):
        raw = raw.toarray()
    if isinstance(raw, pa.FixedSizeListArray) and raw.null_count == 0:
        raw = raw.flatten().to_numpy(zero_copy_only=False).reshape(len(raw), raw.type.list_size)
    if isinstance(raw, np.ndarray):
        values = raw.astype(np.float64)
    else:
        items = raw.to_pylist() if isinstance(raw, pa.Array) else list(raw)
        width = column.width or next((len(v) for v in items if hasattr(v, "__len__")), 0)
        values = np.full((len(items), width), np.nan)
        for i, item in enumerate(items):
            if item is not None:
                values[i] = _vector_of(item, width, i, where)
    if column.width is not None:
        _check_width(values.shape[1], column.width, 0, where)
    infinite = np.argwhere(np.isinf(values))
    if len(infinite):
        row, position = (int(i) for i in infinite[0])
        raise where.error(
            row,
            f"position {position} is {values[row, position]}, which cannot be added up",
            "replace infinities by NaN (missing) or clip them.",
        )
    return Vectors(values)


def _vector_of(item: Any, width: int, row: int, where: Where) -> Floats:
    try:
        if isinstance(item, str):
            raise TypeError
        _check_width(len(item), width, row, where)
        return np.array([np.nan if v is None else float(v) for v in item])
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise where.error(row, f"{str(item)[:60]!r} is not a vector", "give a list of numbers of one length.") from None


def _check_width(found: int, wanted: int, row: int, where: Where) -> None:
    if found != wanted:
        raise where.error(row, f"a vector of {found} numbers, not {wanted}", "give vectors of one width in every row.")


def bag(raw: Any, column: Column, where: Where) -> Bag:
    """Amounts under slots: a matrix (slot = position), lists of words, or dicts of word → amount."""
    if isinstance(raw, np.ndarray) or scipy.sparse.issparse(raw):
        return _bag_of_matrix(raw, column, where)
    items = raw.to_pylist() if isinstance(raw, pa.Array) else list(raw)
    mapped = isinstance(raw, pa.MapArray)  # Arrow's own dicts come as lists of pairs
    has = np.array([item is not None for item in items], dtype=bool)
    slots: dict[str, int] = {}
    given: list[list[int]] = []
    amounts: list[float] = []
    for i, item in enumerate(items):
        if isinstance(item, Mapping) or mapped:
            given_pairs = item.items() if isinstance(item, Mapping) else item or ()
            pairs = [(canon.text(word), _amount(n, word, i, where)) for word, n in given_pairs if n is not None]
        elif item is None or (isinstance(item, Sequence) and not isinstance(item, (str, bytes))):
            pairs = [(canon.text(word), 1.0) for word in item or ()]
        else:
            raise where.error(
                i,
                f"{str(item)[:60]!r} is not a bag",
                "give a list of words, a dict of word → count, or a matrix; text.split() makes a list of a text.",
            )
        given.append([slots.setdefault(word, len(slots)) for word, _ in pairs if word is not None])
        amounts += [n for word, n in pairs if word is not None]
    indptr = np.concatenate(([0], np.cumsum([len(g) for g in given]))).astype(np.int64)
    indices = np.array([j for g in given for j in g], dtype=np.int64)
    matrix = scipy.sparse.csr_array(
        (np.array(amounts, dtype=np.float64), indices, indptr), shape=(len(items), len(slots))
    )
    return Bag(list(slots), _tidy(matrix, where), has, column.levels, given)


def _amount(value: Any, word: Any, row: int, where: Where) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise where.error(
            row, f"the amount of {str(word)[:60]!r} is {str(value)[:60]!r}", "give a number of at least 0."
        ) from None


def _bag_of_matrix(raw: Any, column: Column, where: Where) -> Bag:
    matrix = scipy.sparse.csr_array(raw, dtype=np.float64, copy=True)
    if column.width is not None:
        _check_width(matrix.shape[1], column.width, 0, where)
    slots = [str(j) for j in range(matrix.shape[1])]
    return Bag(slots, _tidy(matrix, where), np.ones(matrix.shape[0], dtype=bool), column.levels)


def _tidy(matrix: Any, where: Where) -> Any:
    with np.errstate(over="ignore"):
        matrix.sum_duplicates()
    bad = np.flatnonzero(~((matrix.data >= 0) & np.isfinite(matrix.data)))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise where.error(
            row,
            f"position {int(matrix.indices[bad[0]])} is {matrix.data[bad[0]]}",
            "a bag holds amounts of at least 0; declare a matrix of other numbers as kind 'vector'.",
        )
    small = matrix.data < 2.0**12  # larger float64 values are whole multiples of 2⁻⁴⁰ already
    matrix.data[small] = np.rint(matrix.data[small] * BAG_UNIT) / BAG_UNIT
    matrix.eliminate_zeros()
    return matrix
