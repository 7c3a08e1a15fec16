"""Frames of other packages → what a source is made of; a package is known by its name and never imported for it.

An eager frame is read where it stands. A lazy one, of polars, Ibis or Narwhals, runs its query each time that it is
read: batch by batch, and for the columns that are wanted alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from typing import Any

import pyarrow as pa

from ..base import threads
from .batch import BATCH_ROWS, Batch, Source, Wanted, arrow_batches, refuse_repeated
from .columns import as_column, odd_in_polars

_STEP = 1 << 16  # rows that a lazy frame hands over at once
_MANY_CELLS = 1 << 20  # of a frame: converting so many takes longer than starting threads
_DUCKDB = ("duckdb", "_duckdb")
_OPENED = (*_DUCKDB, "ibis", "modin", "pandas", "polars", "pyarrow", "pyspark")  # what Narwhals may hold


def package_of(data: Any) -> str:
    """The package that the type of a value comes from."""
    return type(data).__module__.partition(".")[0]


def unwrapped(data: Any) -> Any:
    """The frame that Narwhals holds, or that Modin has spread over its workers; anything else as it is."""
    package = package_of(data)
    if package == "narwhals" and hasattr(data, "to_native"):
        native = data.to_native()
        lazy = package_of(native) not in _OPENED and hasattr(data, "collect")
        return data.collect(backend="pyarrow").to_native() if lazy else unwrapped(native)
    if package == "modin" and hasattr(data, "_to_pandas"):
        return data._to_pandas()
    return data


def lazy_source(data: Any) -> Source | None:
    """The source of a query that has not been run: an Ibis table, or a lazy frame of polars; None for anything else."""
    package = package_of(data)
    if package == "ibis" and hasattr(data, "to_pyarrow_batches") and hasattr(data, "columns"):
        return _asked(data, lambda: list(data.columns), _ibis_batches, "the Ibis table")
    if package == "polars" and hasattr(data, "collect"):
        return _asked(data, lambda: data.collect_schema().names(), _polars_batches, "the lazy frame")
    return None


def eager(data: Any) -> Any:
    """A frame that is all here: the rows of a lazy one, and anything else as it is."""
    data = unwrapped(data)
    if package_of(data) == "polars" and hasattr(data, "collect"):
        return data.collect()
    if package_of(data) == "ibis" and hasattr(data, "to_pyarrow") and hasattr(data, "columns"):
        return data.to_pyarrow()
    return data


def _asked(query: Any, names: Callable[[], list[str]], run: Callable[[Any], Iterator[Batch]], name: str) -> Source:
    def narrow(wanted: Wanted) -> Iterator[Batch]:
        known = names()  # all columns if one that is wanted is absent, so that a message can name the others
        return run(query.select([n for n in known if n in wanted]) if set(wanted) <= set(known) else query)

    return Source(lambda: run(query), narrow=narrow, name=name)


def _ibis_batches(table: Any) -> Iterator[Batch]:
    with closing(_ibis_reader(table)) as reader:
        yield from arrow_batches(reader)


def _ibis_reader(table: Any) -> Any:
    """The rows of an Ibis table as a stream, from whichever database they are in."""
    con: Any = getattr(table.get_backend(), "con", None)
    if package_of(con) not in _DUCKDB or hasattr(con, "fetch_record_batch"):
        return table.to_pyarrow_batches(chunk_size=_STEP)
    try:  # DuckDB 2 calls the stream that Ibis 12 asks it for by another name, so it is asked here
        return con.sql(table.compile()).to_arrow_reader(_STEP)
    except Exception:  # a table in memory, which DuckDB knows only once Ibis has shown it
        return table.to_pyarrow().to_reader(_STEP)


def _polars_batches(frame: Any) -> Iterator[Batch]:
    if is_odd_polars(frame):
        yield from from_polars(frame.collect()).cut(BATCH_ROWS)
        return
    pieces = frame.collect_batches(chunk_size=_STEP, lazy=True) if hasattr(frame, "collect_batches") else None
    rows = pieces if hasattr(pieces, "__arrow_c_stream__") else frame.collect()  # polars 1 hands all over at once
    with closing(pa.RecordBatchReader.from_stream(rows)) as reader:
        yield from arrow_batches(reader)


def is_odd_polars(frame: Any) -> bool:
    """Whether a frame of polars cannot hand itself over: a type is odd, or a NUL is in a name, at which it dies."""
    schema = frame.collect_schema()
    return any(map(odd_in_polars, schema.dtypes())) or any("\0" in name for name in schema.names())


def from_polars(frame: Any) -> Batch:
    """A frame of polars as one batch, column by column."""
    return Batch({c.name: as_column(c) for c in frame.get_columns()}, frame.height)


def from_pandas(frame: Any) -> Batch:
    """A frame of pandas as one batch."""
    names = [str(c) for c in frame.columns]
    refuse_repeated(names)
    series = [one for _, one in frame.items()]  # which takes pandas a tenth of the time that asking for each does
    columns = threads.each(as_column, series) if frame.size > _MANY_CELLS else map(as_column, series)
    return Batch(dict(zip(names, columns, strict=True)), len(frame))
