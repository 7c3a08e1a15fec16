"""Whatever holds a column → an Arrow array where Arrow holds every value as it is, else the values themselves.

Arrow has one type for all values of a column. A list whose values it would have to bend to one, or cut short, stays a
list, and is read value by value: what a value counts as never depends on the values beside it.
"""

from __future__ import annotations

import datetime as dt
import decimal
import numbers
import uuid
from collections.abc import Mapping
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base import canon
from ..base.arrow import array
from ..base.lazy import scipy

_WHOLE = 1 << 53  # whole numbers up to here are the same as floats
_EXACT = frozenset(
    (str, int, float, bool, bytes, decimal.Decimal, dt.date, dt.timedelta)
)  # Arrow keeps them as they are
_LISTS = (list, tuple, np.ndarray)
_MISSING = ("NAType", "NaTType")
_UNITS = ("D", "s", "ms", "us", "ns")  # of NumPy's times that Arrow has as well


def as_column(values: Any) -> Any:
    """An Arrow array if Arrow has one type for all values, else what was given: a matrix, or a list of objects."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return plain(values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values)
    if scipy.sparse.issparse(values):
        return values.tocsr()
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return values
    if hasattr(values, "to_arrow"):  # a polars series
        return as_column(values.to_list()) if odd_in_polars(values.dtype) else plain(values.alias("").to_arrow())
    kind: Any = getattr(values, "dtype", None)
    if isinstance(values, np.ndarray) and kind.kind in "fiub":
        return array(values if kind.itemsize <= 8 else values.astype(np.float64))
    if kind is not None and str(kind) != "object":
        return _typed(values)
    return _listed(values.tolist() if hasattr(values, "tolist") else list(values))


def odd_in_polars(kind: Any) -> bool:
    """Whether a type of polars is one that it cannot hand over, or hands over as an address."""
    name = str(kind)
    return name in ("Object", "Int128", "UInt128") or "\0" in name or "\\x00" in name  # a field called so


def _typed(values: Any) -> Any:
    """A series of pandas or an array of NumPy that has a type."""
    kind = values.dtype
    name = str(kind)
    if name == "category":
        return _categorical(values)
    if name.startswith(("period", "interval")):
        return _listed(list(values))
    if name.startswith("Sparse"):
        return as_column(np.asarray(values))
    if isinstance(kind, np.dtype) and kind.kind == "M":
        unit, step = np.datetime_data(kind)
        if unit not in _UNITS or step != 1:
            unit = "D" if unit in "YMW" else "s" if unit in "hm" else unit
            if unit not in _UNITS:
                return list(values)
            values = np.asarray(values).astype(f"M8[{unit}]")
    return _arrow(values)


def _categorical(values: Any) -> Any:
    """A categorical of pandas: numbers into its categories, whatever these are."""
    known = getattr(values, "cat", values)
    categories = as_column(known.categories)
    if not isinstance(categories, pa.Array):
        return list(values)
    codes = np.asarray(known.codes, dtype=np.int32)
    return pa.DictionaryArray.from_arrays(pa.array(codes, mask=codes < 0), categories)


def _listed(items: list[Any]) -> Any:
    """A list of values, each of whatever type."""
    kinds = set(map(type, items)) - {type(None)}
    if any(kind.__name__ in _MISSING for kind in kinds):
        items = [None if type(v).__name__ in _MISSING else v for v in items]
        kinds = {kind for kind in kinds if kind.__name__ not in _MISSING}
    if float in kinds and len(kinds) > 1 and int not in kinds and all(v != v for v in items if type(v) is float):
        items, kinds = [None if type(v) is float else v for v in items], kinds - {float}  # pandas' NaN
    if kinds == {int, float} and all(abs(v) <= _WHOLE for v in items if type(v) is int):
        items, kinds = [float(v) if type(v) is int else v for v in items], {float}
    if len(kinds) > 1:
        kinds = {str} if all(issubclass(kind, str) for kind in kinds) else kinds
    if len(kinds) != 1:
        return items if kinds else _arrow(items)
    (kind,) = kinds
    return _alike(items, kind)


def _alike(items: list[Any], kind: Any) -> Any:
    """Values of one type."""
    if kind in _EXACT or issubclass(kind, (str, np.bool_)):
        return _arrow(items)
    if issubclass(kind, dt.datetime):
        return _datetimes(items)
    if issubclass(kind, np.datetime64):
        return as_column(np.array(items, dtype="M8")) if len({v.dtype for v in items if v is not None}) == 1 else items
    if issubclass(kind, np.timedelta64) or issubclass(kind, (dt.date, dt.time, dt.timedelta)):
        return _as_texts(items)
    if issubclass(kind, (bytes, bytearray, memoryview)):
        return _arrow([None if v is None else bytes(v) for v in items])
    if issubclass(kind, (int, np.integer)):
        return _arrow([None if v is None else int(v) for v in items])
    if issubclass(kind, (float, np.floating)):
        return _arrow([None if v is None else float(v) for v in items])
    if issubclass(kind, pa.Scalar) or (kind is np.ndarray and all(v is None or v.ndim == 0 for v in items)):
        return _listed([None if v is None else canon.unwrapped(v) for v in items])
    if issubclass(kind, _LISTS):
        return _arrow(items) if _are_even(items) else items
    if issubclass(kind, (Mapping, numbers.Number)) or hasattr(kind, "__len__"):
        return items
    return _as_texts(items)


def _datetimes(items: list[Any]) -> Any:
    """Times that all have a zone, and are instants then, or that all have none."""
    aware = {v.tzinfo is not None and v.utcoffset() is not None for v in items if v is not None}
    if len(aware) > 1:
        return items
    fine = any(getattr(v, "nanosecond", 0) for v in items)  # pandas' times
    try:
        return array(items, pa.timestamp("ns" if fine else "us", "UTC" if True in aware else None))
    except (pa.ArrowException, OverflowError, ValueError):
        return items


def _as_texts(items: list[Any]) -> Any:
    """Values that are counted by their text, as such."""
    return _arrow([canon.text(v) for v in items])


def _are_even(items: list[Any]) -> bool:
    """Whether the lists, or arrays, have items of one type that Arrow keeps as they are."""
    if any(type(v) is np.ndarray and v.dtype == object for v in items):
        return False
    inside = set(map(type, chain.from_iterable(v for v in items if v is not None and type(v) is not np.ndarray)))
    inside.discard(type(None))
    return len(inside) <= 1 or inside == {int, float}


def _arrow(values: Any) -> Any:
    """An Arrow array, or the values themselves where Arrow has no type for them."""
    try:
        made = array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return list(values)
    return plain(made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made)


_DECIMAL = r"^\s*([+-]?\d*),(\d+([eE][+-]?\d+)?)\s*$"
_GROUPED = r"^\s*[+-]?[1-9]\d{0,2}([. ']\d{3})+(,\d+)?\s*$"  # 1.234,50 where a comma is the decimal point


def with_points(column: Any) -> Any:
    """A column whose texts that are numbers with a decimal comma are written as others write them; groups of three
    digits are thousands.

    >>> with_points(["3,14", "1.234,5", "1.234", "0.234,5", "a,b", 7]), with_points(pa.array(["-,5"])).to_pylist()
    (['3.14', '1234.5', '1234', '0.234,5', 'a,b', 7], ['-.5'])
    """
    if isinstance(column, list):
        texts = with_points(pa.array([v if type(v) is str else None for v in column], pa.string())).to_pylist()
        return [v if text is None else text for v, text in zip(column, texts, strict=True)]
    if not isinstance(column, pa.Array):
        return column
    if pa.types.is_dictionary(column.type):
        values = with_points(column.dictionary)
        return column if values is column.dictionary else pa.DictionaryArray.from_arrays(column.indices, values)
    if not (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        return column
    grouped = pc.match_substring_regex(column, _GROUPED)
    if pc.any(grouped).as_py():
        column = pc.if_else(grouped, pc.replace_substring_regex(column, "[. ']", ""), column)
    return pc.replace_substring_regex(column, _DECIMAL, r"\1.\2")


# ---- Arrow's types


def plain(column: Any) -> Any:
    """An Arrow array of an ordinary type, or the values of one that has no such."""
    kind = column.type
    if isinstance(kind, pa.BaseExtensionType):
        return _of_extension(column)
    if pa.types.is_string_view(kind):
        return column.cast(pa.large_string())
    if pa.types.is_binary_view(kind):
        return column.cast(pa.large_binary())
    if pa.types.is_float16(kind):
        return column.cast(pa.float32())
    if pa.types.is_decimal32(kind) or pa.types.is_decimal64(kind):
        return column.cast(pa.decimal128(kind.precision, kind.scale))
    if pa.types.is_run_end_encoded(kind):
        return plain(pc.run_end_decode(column))
    if pa.types.is_nested(kind) and not pa.types.is_union(kind) and (wanted := _ordinary(kind)) != kind:
        return pa.array(column.to_pylist(), wanted)
    if pa.types.is_union(kind):
        return _listed(column.to_pylist())
    if pa.types.is_dictionary(kind):
        return _of_dictionary(column)
    return column


def _ordinary(kind: Any) -> Any:
    """The type of lists or structs with no views in it, which Arrow can hold and hardly do anything with."""
    if pa.types.is_string_view(kind):
        return pa.large_string()
    if pa.types.is_binary_view(kind):
        return pa.large_binary()
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_ordinary(kind.value_type), kind.list_size)
    if pa.types.is_list(kind):
        return pa.list_(_ordinary(kind.value_type))
    if pa.types.is_large_list(kind) or pa.types.is_list_view(kind) or pa.types.is_large_list_view(kind):
        return pa.large_list(_ordinary(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([field.with_type(_ordinary(field.type)) for field in kind])
    return kind


def _of_dictionary(column: Any) -> Any:
    values = plain(column.dictionary)
    if values is column.dictionary or not isinstance(values, pa.Array):
        return column if isinstance(values, pa.Array) else column.to_pylist()
    return pa.DictionaryArray.from_arrays(column.indices, values)


def _of_extension(column: Any) -> Any:
    name, storage = column.type.extension_name, column.storage
    if name == "arrow.uuid":
        return pa.array([None if v is None else str(uuid.UUID(bytes=v)) for v in storage.to_pylist()], pa.string())
    if name == "arrow.bool8":
        return storage.cast(pa.bool_())
    if name in ("pandas.period", "pandas.interval"):
        return _listed(list(column.to_pandas()))
    return plain(storage)
