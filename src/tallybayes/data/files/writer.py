"""Rows on their way out, a batch at a time: CSV, TSV, JSON lines and Parquet.

Lines are put together column by column, by Arrow: a field is quoted only where it has to be, so that what was kept of
a CSV reads as it stood there. What is missing is an empty field, or null in JSON.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from ...base import canon
from ...base.arrow import array, scalar
from ...base.errors import DataError, SettingsError
from .file import PACKED

OUTPUTS = ("csv", "tsv", "jsonl", "parquet")
Columns = Mapping[str, pa.Array]
_AT_ONCE = 1 << 15  # rows that are text at a time
_NOTHING = array([None], pa.string())[0]
_OTHER_NAMES = {"json": "jsonl", "ndjson": "jsonl", "tab": "tsv", "pq": "parquet"}


def output_format(path: str | os.PathLike[str] | None, wish: str | None) -> tuple[str, str | None]:
    """The format and packing that a name or a wish asks for."""
    parts = [] if path is None else os.path.basename(os.fspath(path)).lower().split(".")[1:]
    packing = PACKED.get(parts[-1]) if parts else None
    ending = (parts[:-1] if packing else parts)[-1:]
    form = wish or (ending[0] if ending else "")
    form = _OTHER_NAMES.get(form, form)
    if form not in OUTPUTS or (form == "parquet" and packing):
        raise SettingsError(
            f"predictions cannot be written as {form!r}" if form else "the name does not say what to write",
            hint="let the path end in .csv, .tsv, .jsonl or .parquet, or give format='csv'.",
        )
    return form, packing


@contextlib.contextmanager
def row_writer(form: str, sink: Any) -> Iterator[Callable[[Columns], None]]:
    """A function that writes the columns of one batch after another; all have the names of the first."""
    if form == "parquet":
        with contextlib.closing(_Table(sink)) as table:
            yield table.write
        return
    if form == "jsonl":
        yield lambda columns: _write_lines(sink, columns, _json_lines)
        return
    delimiter, begun = "\t" if form == "tsv" else ",", False

    def write(columns: Columns) -> None:
        nonlocal begun
        if not begun:
            names = array(list(columns), pa.string())
            sink.write((delimiter.join(_fields(names, delimiter).to_pylist()) + "\n").encode())
        begun = True
        _write_lines(sink, columns, lambda piece: _csv_lines(piece, delimiter))

    yield write


def _write_lines(sink: Any, columns: Columns, lines: Callable[[Columns], pa.Array]) -> None:
    rows = len(next(iter(columns.values())))
    for start in range(0, rows, _AT_ONCE):
        drawn = lines({name: column.slice(start, _AT_ONCE) for name, column in columns.items()})
        sink.write(_bytes(drawn))


def _csv_lines(columns: Columns, delimiter: str) -> pa.Array:
    """One text per row, with its end."""
    fields = [_fields(column, delimiter) for column in columns.values()]
    if len(fields) == 1:  # an empty line is no row to most readers
        fields[0] = fields[0].fill_null(scalar('""'))
    *before, last = fields
    return _joined(*before, _joined(last, "\n", by="", null=""), by=delimiter, null="")


def _json_lines(columns: Columns) -> pa.Array:
    """One object per row, with its end."""
    pieces: list[Any] = []
    for name, column in columns.items():
        pieces += [f"{', ' if pieces else '{'}{_json(name)}: ", _json_values(column)]
    return _joined(*pieces, "}\n", by="", null="null")


def _joined(*pieces: Any, by: str, null: str) -> pa.Array:
    given = [scalar(piece) if isinstance(piece, str) else piece for piece in (*pieces, by)]
    return pc.binary_join_element_wise(*given, null_handling="replace", null_replacement=null)


def _fields(column: pa.Array, delimiter: str) -> pa.Array:
    """The fields of a CSV: a text is quoted where it is empty or holds a delimiter, a quote or the end of a line."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _fields(column.dictionary, delimiter).take(column.indices)
    if _is_plain(kind) or pa.types.is_temporal(kind):
        return _numbers(column)
    if not pa.types.is_string(kind):
        column = array([_text(v) for v in column.to_pylist()], pa.string())
    if not _has_any(column, f'"{delimiter}\r\n'.encode()) and pc.min(pc.binary_length(column)).as_py() != 0:
        return column
    odd = pc.match_substring_regex(column, f'^$|["\r\n{delimiter}]')
    quoted = _joined('"', pc.replace_substring(column, '"', '""'), '"', by="", null="")
    return pc.if_else(odd, quoted, column)


def _json_values(column: pa.Array) -> pa.Array:
    """The values as JSON; what has no end is "Infinity" or "-Infinity"."""
    kind = column.type
    if pa.types.is_dictionary(kind):
        return _json_values(column.dictionary).take(column.indices)
    if _is_plain(kind):
        texts = _numbers(column)
        if pa.types.is_floating(kind) and pc.any(pc.is_inf(column)).as_py():
            texts = pc.replace_substring_regex(texts, "^(-?)inf$", r'"\1Infinity"')
        return texts
    if not pa.types.is_string(kind):
        return array([None if v is None else _json(v) for v in column.to_pylist()], pa.string())
    quoted = _joined('"', column, '"', by="", null="")
    if column.null_count:
        quoted = pc.if_else(column.is_valid(), quoted, _NOTHING)
    if not _has_any(column, _ESCAPED):
        return quoted
    odd = pc.match_substring_regex(column, r'["\\[:cntrl:]]').fill_null(scalar(False))
    told = array([_json(v) for v in column.filter(odd).to_pylist()], pa.string())
    return pc.replace_with_mask(quoted, odd, told)


_ESCAPED = bytes(range(32)) + b'"\\\x7f'


def _is_plain(kind: pa.DataType) -> bool:
    """Whether the text of a value is its number or word in every format."""
    types = pa.types
    return any(of(kind) for of in (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal))


def _numbers(column: pa.Array) -> pa.Array:
    """Their texts; none for what is not a number."""
    texts = column.cast(pa.string())
    if pa.types.is_floating(column.type) and pc.any(pc.is_nan(column)).as_py():
        texts = pc.if_else(pc.is_nan(column), _NOTHING, texts)
    return texts


def _has_any(texts: pa.Array, marks: bytes) -> bool:
    """Whether any of some bytes is in any of the texts."""
    raw = bytes(_bytes(texts))
    return len(raw.translate(None, marks)) < len(raw)


def _bytes(texts: pa.Array) -> memoryview:
    """The texts one after another."""
    _, offsets, data = texts.buffers()
    if data is None or len(texts) == 0:
        return memoryview(b"")
    ends = np.frombuffer(offsets, dtype=np.int32)[texts.offset : texts.offset + len(texts) + 1]
    return memoryview(data)[int(ends[0]) : int(ends[-1])]


def _json(value: Any) -> str:
    return json.dumps(canon.jsonable(value), ensure_ascii=False, default=canon.text)


def _text(value: Any) -> str | None:
    return canon.text(value) if canon.is_one(value) else _json(value)


def as_array(column: Any) -> pa.Array:
    """A column of a batch as an Arrow array: lists of Python objects as texts, a matrix as lists of numbers."""
    if isinstance(column, pa.Array):
        return column.cast(pa.string()) if pa.types.is_large_string(column.type) else column
    if isinstance(column, list):
        return array([_text(v) for v in column], pa.string())
    dense = np.asarray(column.toarray() if hasattr(column, "toarray") else column)
    return pa.FixedSizeListArray.from_arrays(array(np.ascontiguousarray(dense).ravel()), dense.shape[1])


class _Table:
    """A Parquet file in the making. Its types are those of the first batch; later ones must go into them."""

    def __init__(self, sink: Any) -> None:
        self._sink, self._rows = sink, 0
        self._writer: Any = None

    def write(self, columns: Columns) -> None:
        """One more batch."""
        plain = {
            name: column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            for name, column in columns.items()
        }
        if self._writer is None:
            types = {n: pa.string() if pa.types.is_null(c.type) else c.type for n, c in plain.items()}
            self._writer = pq.ParquetWriter(self._sink, pa.schema(types.items()))
        fitted = {f.name: self._fitted(plain[f.name], f) for f in self._writer.schema}
        self._writer.write_batch(pa.RecordBatch.from_pydict(fitted, schema=self._writer.schema))
        self._rows += len(next(iter(plain.values())))

    def _fitted(self, column: pa.Array, field: pa.Field) -> pa.Array:
        if column.type == field.type:
            return column
        with contextlib.suppress(pa.ArrowException):
            return column.cast(field.type)
        raise DataError(
            f"column {field.name!r} holds {column.type} from row {self._rows} on and {field.type} before, and a "
            "Parquet file has one type for all",
            hint="write CSV or JSON lines instead, or leave the column out of keep.",
        )

    def close(self) -> None:
        """Write what a file of this kind ends with."""
        if self._writer is not None:
            self._writer.close()
