"""Predictions for more rows than memory holds: from any source to a CSV, JSON lines or Parquet file."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import IO, Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from ..base import canon, threads
from ..base.arrow import array
from ..base.disk import replacing
from ..base.errors import DataError, FileError, SettingsError, unknown
from ..data import encode
from ..data.batch import Batch
from ..data.columns import as_column
from ..data.outputs import PREDICTION, output_names
from ..data.sources import open_source
from .model import Model

FORMATS = ("csv", "tsv", "jsonl", "parquet")
_PACKED = {"gz": "gzip", "zst": "zstd"}


def predict_file(
    model: Model,
    data: Any,
    out: str | os.PathLike[str] | IO[bytes],
    *,
    format: str | None = None,
    probabilities: bool = True,
    keep: Sequence[str] = (),
    prior: Any = None,
) -> int:
    """How many rows were predicted: each row's class and probabilities are written to `out`, in the order of the rows.

    `data` is anything that `predict` takes. The columns written are those of the data named in `keep`, `prediction`,
    and a `P(class)` for each class. `out` is a path ending in .csv, .tsv, .jsonl or .parquet (the first three packed
    if they end in .gz or .zst), which appears only once it is complete, or an open binary file with a `format`.
    """
    named = out if isinstance(out, (str, os.PathLike)) else None
    form, packing = _format(named, format)
    clash = sorted({PREDICTION, *output_names(model.classes)} & set(keep))
    if clash:
        raise SettingsError(
            f"keep={clash[0]!r} is what a column of predictions is called", hint="rename it in the data."
        )
    wanted = {**encode.wanted(model.schema, labelled=False), **dict.fromkeys(keep, "")}
    batches = _with(keep, open_source(model.table_of(data)).batches(wanted))
    scored = threads.each(lambda batch: (batch, model.predict_log_proba(batch, prior=prior)), batches)
    with _written(out) as (file, own), contextlib.ExitStack() as stack:
        rows, sink, write, first = 0, file, None, None
        if packing:  # through a second handle, since it closes what it writes to
            sink = stack.enter_context(pa.CompressedOutputStream(os.fdopen(os.dup(file.fileno()), "wb"), packing))
        for batch, log_p in own(scored):
            piece = _columns(model, batch, log_p, probabilities, keep)
            if write is None:
                first, write = piece.schema, stack.enter_context(_writer(form, sink, piece.schema))
            write(piece if piece.schema.equals(first) else _as_first(piece, first))
            rows += batch.rows
    return rows


def _with(keep: Sequence[str], batches: Iterator[Batch]) -> Iterator[Batch]:
    """The same batches, if they have the columns to keep."""
    for batch in batches:
        absent = [name for name in keep if name not in batch]
        if absent:
            raise unknown(DataError, f"there is no column {absent[0]!r} to keep", absent[0], batch.names())
        yield batch


def _columns(model: Model, batch: Batch, log_p: Any, probabilities: bool, keep: Sequence[str]) -> pa.RecordBatch:
    columns: dict[str, Any] = {}
    for name in keep:
        column = batch[name]
        columns[name] = column if isinstance(column, pa.Array) else array([canon.text(v) for v in column], pa.string())
    classes = as_column(list(model.classes))
    if not isinstance(classes, pa.Array):  # labels of several types: their texts tell them apart
        classes = array([canon.text(c) for c in classes], pa.string())
    columns[PREDICTION] = classes.take(array(np.argmax(log_p, axis=1)))
    if probabilities:
        each = map(array, np.ascontiguousarray(np.exp(log_p).T))
        columns |= dict(zip(output_names(model.classes), each, strict=True))
    return pa.RecordBatch.from_pydict(columns)


def _as_first(piece: pa.RecordBatch, first: pa.Schema) -> pa.RecordBatch:
    """Rows whose kept columns have another type than in the first rows, as several files may have them."""
    columns = []
    for column, field in zip(piece.columns, first, strict=True):
        try:
            cast = column.cast(field.type)
            same = cast.cast(column.type).equals(column)
        except pa.ArrowException:
            same = False
        if not same:
            raise DataError(
                f"column {field.name!r} to keep is {field.type} in some of the data and {column.type} in others",
                hint="write them apart, or leave the column out.",
            )
        columns.append(cast)
    return pa.RecordBatch.from_arrays(columns, schema=first)


def _format(path: str | os.PathLike[str] | None, wish: str | None) -> tuple[str, str | None]:
    """The format and packing that a name or a wish asks for."""
    parts = [] if path is None else os.path.basename(os.fspath(path)).lower().split(".")[1:]
    packing = _PACKED.get(parts[-1]) if parts else None
    ending = (parts[:-1] if packing else parts)[-1:]
    form = wish or (ending[0] if ending else "")
    form = {"json": "jsonl", "ndjson": "jsonl", "tab": "tsv", "pq": "parquet"}.get(form, form)
    if form not in FORMATS or (form == "parquet" and packing):
        raise SettingsError(
            f"predictions cannot be written as {form!r}" if form else "the name does not say what to write",
            hint="let the path end in .csv, .tsv, .jsonl or .parquet, or give format='csv'.",
        )
    return form, packing


@contextlib.contextmanager
def _writer(form: str, sink: Any, schema: pa.Schema) -> Iterator[Callable[[pa.RecordBatch], None]]:
    """A function that writes one batch after another."""
    if form == "jsonl":
        yield lambda piece: sink.write(_lines(piece.to_pylist()))
    elif form == "parquet":
        with pq.ParquetWriter(sink, schema) as parquet:
            yield parquet.write_batch
    else:
        options = pa.csv.WriteOptions(delimiter="\t" if form == "tsv" else ",", quoting_style="needed")
        with pa.csv.CSVWriter(sink, schema, write_options=options) as writer:
            yield writer.write_batch


def _lines(rows: Iterable[dict[str, Any]]) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=False, default=canon.text) + "\n" for row in rows).encode()


T = TypeVar("T")
Own = Callable[[Iterable[T]], Iterator[T]]


@contextlib.contextmanager
def _written(out: str | os.PathLike[str] | IO[bytes]) -> Iterator[tuple[Any, Own[Any]]]:
    """An open file; a path is replaced when all is written, and untouched if anything fails.

    What fails is the file, unless it is what a caller's own rows raise while they are given: those go through `own`.
    """
    theirs: list[OSError] = []

    def own(rows: Iterable[T]) -> Iterator[T]:
        try:
            yield from rows
        except OSError as error:
            theirs.append(error)
            raise

    if not isinstance(out, (str, os.PathLike)):
        yield out, own
        return
    try:
        with contextlib.ExitStack() as stack:
            try:
                number = stack.enter_context(replacing(out))
            except FileError as error:
                raise DataError(error.found, hint=error.hint) from None
            yield stack.enter_context(open(number, "wb", closefd=False)), own
    except OSError as error:
        if error in theirs:
            raise
        raise FileError.of(error, os.fspath(out), "written") from error
