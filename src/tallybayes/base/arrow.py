"""Arrow arrays of Python values without pandas.

`pyarrow.array` imports pandas, if it is installed, to ask whether it was given a pandas object: several hundred
milliseconds, more than all the rest of an answer from a saved model takes. Short lists and NumPy arrays are put
together here from their buffers instead. Everything else goes the ordinary way, to the same result.
"""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from . import canon, times

_FEW = 10_000  # values: for more of them pyarrow's own loop repays the import
_LARGE = 1 << 62
_WHOLE = 1 << 53  # whole numbers up to here are the same as floats
_EXACT_POWERS = 22  # of ten are floats themselves
_TIME = pa.timestamp("us")
_EPOCH = dt.datetime(1970, 1, 1)


def array(values: Any, kind: Any = None, *, from_pandas: bool = False) -> Any:
    """The same as `pyarrow.array(values, kind, from_pandas=…)`.

    >>> array(["a", None]).to_pylist(), array([1, 2]).type, array([0.5, None]).null_count
    (['a', None], DataType(int64), 1)
    """
    if "pandas" not in sys.modules:
        made = None
        if isinstance(values, np.ndarray):
            made = _of_numpy(values, kind, from_pandas)
        elif type(values) in (list, tuple) and len(values) <= _FEW:
            made = _of_list(values, kind, from_pandas)
        if made is not None:
            return made
    return pa.array(values, kind, from_pandas=from_pandas)


def scalar(value: Any, kind: Any = None) -> Any:
    """The same as `pyarrow.scalar`."""
    own = array([value])
    return (own if kind is None or own.type == kind else own.cast(kind))[0]


def numpy_of(column: Any) -> Any:
    """The same as `column.to_numpy(zero_copy_only=False)`: numbers, NaN for null, or flags."""
    kind = column.type
    floats = pa.types.is_floating(kind) and not pa.types.is_float16(kind)
    if "pandas" in sys.modules or not (pa.types.is_integer(kind) or pa.types.is_boolean(kind) or floats):
        return column.to_numpy(zero_copy_only=False)
    if column.null_count and not floats:
        if pa.types.is_boolean(kind):
            return column.to_numpy(zero_copy_only=False)
        return numpy_of(column.cast(pa.float64()))
    start, stop = column.offset, column.offset + len(column)
    validity, data = column.buffers()
    if data is None or len(column) == 0:
        return np.zeros(0, dtype=kind.to_pandas_dtype())
    if pa.types.is_boolean(kind):
        return _flags(data, stop)[start:]
    values = np.frombuffer(data, dtype=kind.to_pandas_dtype())[start:stop]
    if column.null_count:
        values = np.where(_flags(validity, stop)[start:], values, np.nan).astype(values.dtype)
    return values


def utf8(texts: Any) -> tuple[Any, Any]:
    """Where texts begin and end in the bytes of all, which come second: text i is bytes[edges[i] : edges[i + 1]].

    >>> edges, letters = utf8(array(["a", "é"]))
    >>> edges.tolist(), letters[1:3].tobytes().decode()
    ([0, 1, 3], 'é')
    """
    large = texts.cast(pa.large_string())
    _, offsets, raw = large.buffers()
    letters = np.frombuffer(raw if raw is not None and raw.size else b"\0", dtype=np.uint8)
    if len(large) == 0:
        return np.zeros(1, dtype=np.int64), letters
    return np.frombuffer(offsets, dtype=np.int64)[large.offset : large.offset + len(large) + 1], letters


def sorted_order(texts: Any) -> Any:
    """The numbers of texts, none of them null, in the order of the texts: that of their bytes, and of Python.

    Eight bytes at a time are compared as one number, and only those that are equal so far are looked at further.

    >>> sorted_order(array(["pear", "apple", "applepie", "applepies", "app"])).tolist()
    [4, 1, 2, 3, 0]
    """
    edges, letters = utf8(texts)
    length = np.diff(edges)
    padded = np.concatenate((letters[: edges[-1]], np.zeros(8, dtype=np.uint8)))
    eight = np.ndarray(int(edges[-1]) + 1, dtype=">u8", buffer=padded, strides=(1,))  # at every byte
    head = _heads(eight, edges[:-1], length)
    order = np.argsort(head)
    run, where = _runs(head[order]), np.arange(len(order))  # of equal texts so far, and their places in the order
    for depth in range(8, int(length.max(initial=0)) + 8, 8):
        tied = np.flatnonzero(np.bincount(run)[run] > 1)
        if len(tied) == 0:
            break
        where, run, rows = where[tied], run[tied], order[where[tied]]
        left = np.maximum(length[rows] - depth, 0)
        head = _heads(eight, np.minimum(edges[:-1][rows] + depth, edges[-1]), left)
        by = np.lexsort((length[rows], head, run))  # a text that ends comes before one that goes on with zeros
        order[where] = rows[by]
        run = np.where(left[by] > 0, _runs(run[by], head[by]), -1)
        where, run = where[run >= 0], run[run >= 0]
    return order


def _heads(eight: Any, at: Any, length: Any) -> Any:
    """The first eight bytes of each text as a number that sorts as they do, zeros after its end."""
    beyond = 8 * np.maximum(8 - length, 0).astype(np.uint64)
    inside = np.minimum(beyond, 56).astype(np.uint64)
    return np.where(beyond < 64, eight[at].astype(np.uint64) >> inside << inside, 0)


def _runs(*keys: Any) -> Any:
    """Equal neighbours have one number, the next ones the next."""
    apart = np.zeros(max(len(keys[0]) - 1, 0), dtype=bool)
    for key in keys:
        apart |= key[1:] != key[:-1]
    return np.concatenate(([0], np.cumsum(apart)))[: len(keys[0])]


def texts(column: Any) -> list[str | None]:
    """The canonical text of each value, None for null: what `canon.text` has for the same value in Python.

    >>> texts(pa.array([0, None, 1], pa.timestamp("ns")))
    ['1970-01-01', None, '1970-01-01T00:00:00.000000001']
    """
    kind = column.type
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        out: list[str | None] = column.to_pylist()
        return out
    if not pa.types.is_temporal(kind) or pa.types.is_interval(kind):
        return [canon.text(v) for v in column.to_pylist()]
    unit: Any = "D" if pa.types.is_date(kind) else kind.unit
    ticks = whole_ticks(column).to_pylist()
    if pa.types.is_time(kind):
        return [None if t is None else times.clock_text(t, unit) for t in ticks]
    if pa.types.is_duration(kind):
        return [None if t is None else times.duration_text(t, unit) for t in ticks]
    aware = pa.types.is_timestamp(kind) and kind.tz is not None
    return [None if t is None else times.stamp_text(np.datetime64(t, unit), aware=aware) for t in ticks]


def whole_ticks(column: Any) -> Any:
    """The whole numbers that stand for dates, times or durations in their unit; those of dates in days."""
    kind = column.type
    if pa.types.is_date64(kind):
        milliseconds = column.view(pa.int64())
        days = numpy_of(milliseconds.fill_null(0)) // 86_400_000
        return pa.array(days, mask=~numpy_of(column.is_valid())) if column.null_count else array(days)
    return column.view(pa.int32() if kind.bit_width == 32 else pa.int64())


def floats(column: Any) -> Any:
    """The numbers of a column, each the nearest float64, NaN for null.

    Arrow's own cast from decimals goes by way of a product that is rounded, and so by the scale of the column. A whole
    number below 2^53 divided by a power of ten up to 10^22 is rounded once; other decimals are asked one by one.

    >>> floats(pa.array([canon.decimal.Decimal("94.8"), canon.decimal.Decimal("0.001")])).tolist()
    [94.8, 0.001]
    """
    kind = column.type
    if not pa.types.is_decimal(kind):
        return numpy_of(column.cast(pa.float64(), safe=False))
    words = kind.bit_width // 64
    if len(column) == 0 or kind.bit_width % 64:
        return np.array([np.nan if v is None else float(v) for v in column.to_pylist()], dtype=np.float64)
    limbs = np.frombuffer(column.buffers()[1], dtype=np.int64)[words * column.offset :][: words * len(column)]
    limbs = limbs.reshape(-1, words)
    low = limbs[:, 0]
    there = numpy_of(column.is_valid()) if column.null_count else None
    small = (np.abs(low) <= _WHOLE) & (limbs[:, 1:] == (low >> 63)[:, None]).all(axis=1)
    power = 10.0 ** abs(kind.scale)
    exact = abs(kind.scale) <= _EXACT_POWERS
    values = (low / power if kind.scale >= 0 else low * power) if exact else np.full(len(low), np.nan)
    odd = np.flatnonzero(~small if there is None else ~small & there) if exact else range(len(column))
    for row in odd:
        value = column[int(row)].as_py()
        values[row] = np.nan if value is None else float(value)
    if there is not None:
        values[~there] = np.nan
    return values


def _flags(bits: Any, count: int) -> Any:
    return np.unpackbits(np.frombuffer(bits, dtype=np.uint8), count=count, bitorder="little").astype(bool)


def _of_numpy(values: Any, kind: Any, from_pandas: bool) -> Any:
    if kind is not None or values.ndim != 1 or values.dtype.kind not in "iufb" or not values.dtype.isnative:
        return None
    if values.dtype.itemsize > 8 or (from_pandas and values.dtype.kind == "f"):
        return None
    if values.dtype.kind == "b":
        return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])
    own = np.ascontiguousarray(values)
    return pa.Array.from_buffers(pa.from_numpy_dtype(own.dtype), len(own), [None, pa.py_buffer(own)])


def _of_list(values: Sequence[Any], kind: Any, from_pandas: bool) -> Any:
    kinds = set(map(type, values)) - {type(None)}
    if not kinds and kind is None:
        return pa.nulls(len(values))
    if kinds == {str} or (not kinds and kind is not None):
        text = kind or pa.string()
        if pa.types.is_string(text) or pa.types.is_large_string(text):
            return _texts(values, text)
    if kinds and kinds <= {dt.datetime} and kind in (None, _TIME):
        return _times(values)
    if kind is not None and kind != pa.int64():
        return None
    if kinds and kinds <= {list, tuple}:
        return _lists(values, from_pandas)
    there = np.array([v is not None for v in values], dtype=bool)
    if kinds == {int} and all(-_LARGE < v < _LARGE for v in values if v is not None):
        return _numbers([v or 0 for v in values], there, np.dtype(np.int64))
    if kinds == {dt.date} and kind is None:
        days = [0 if v is None else v.toordinal() - _EPOCH.toordinal() for v in values]
        return _numbers(days, there, np.dtype(np.int32)).view(pa.date32())
    if kinds == {float} and kind is None:
        if from_pandas:
            there &= np.array([v is None or v == v for v in values], dtype=bool)
            if not there.any():
                return pa.nulls(len(values))  # as pyarrow does: what is never there has no type
        return _numbers([0.0 if v is None else v for v in values], there, np.dtype(np.float64))
    if kinds == {int, float} and kind is None and all(abs(v) < 1 << 53 for v in values if type(v) is int):
        return _of_list([None if v is None else float(v) for v in values], None, from_pandas)
    if kinds == {bool} and kind is None:
        flags = np.array([bool(v) for v in values], dtype=bool)
        return pa.Array.from_buffers(pa.bool_(), len(values), [_validity(there), _bits(flags)])
    return None


def _times(values: Sequence[dt.datetime | None]) -> Any:
    if any(v is not None and v.tzinfo is not None for v in values):
        return None
    there = np.array([v is not None for v in values], dtype=bool)
    whole = [0 if v is None else (v - _EPOCH) // dt.timedelta(microseconds=1) for v in values]
    return _numbers(whole, there, np.dtype(np.int64)).view(_TIME)


def _lists(values: Sequence[Any], from_pandas: bool) -> Any:
    flat = [item for v in values if v is not None for item in v]
    inside = _of_list(flat, None, from_pandas) if flat else pa.nulls(0)
    if inside is None:
        return None
    there = np.array([v is not None for v in values], dtype=bool)
    ends = np.zeros(len(values) + 1, dtype=np.int32)
    np.cumsum([0 if v is None else len(v) for v in values], out=ends[1:])
    kind = pa.list_(inside.type)
    return pa.Array.from_buffers(kind, len(values), [_validity(there), pa.py_buffer(ends)], children=[inside])


def _texts(values: Sequence[str | None], kind: Any) -> Any:
    try:
        raw = [b"" if v is None else v.encode() for v in values]
    except UnicodeEncodeError:
        return None  # half a character: pyarrow says so in its own way
    ends = np.zeros(len(raw) + 1, dtype=np.int64)
    np.cumsum([len(r) for r in raw], out=ends[1:])
    if pa.types.is_string(kind):
        if ends[-1] >= 1 << 31:
            return None
        ends = ends.astype(np.int32)
    there = np.array([v is not None for v in values], dtype=bool)
    return pa.Array.from_buffers(kind, len(raw), [_validity(there), pa.py_buffer(ends), pa.py_buffer(b"".join(raw))])


def _numbers(values: list[Any], there: Any, dtype: Any) -> Any:
    numbers = np.array(values, dtype=dtype)
    kind = pa.from_numpy_dtype(dtype)
    return pa.Array.from_buffers(kind, len(numbers), [_validity(there), pa.py_buffer(numbers)])


def _validity(there: Any) -> Any:
    return None if there.all() else _bits(there)


def _bits(flags: Any) -> Any:
    return pa.py_buffer(np.packbits(flags, bitorder="little"))
