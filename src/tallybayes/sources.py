"""Anything tabular → batches of named columns.

Taken: pandas, polars and pyarrow frames, DuckDB relations and whatever else speaks the Arrow stream interface;
dicts of columns; lists or iterators of dicts; NumPy and SciPy sparse matrices with their labels beside them.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

from .arrow import array
from .errors import DataError, excerpt
from .later import scipy

BATCH_ROWS = 1 << 18
MATRIX = "x"  # a matrix is one column of this name, and its columns are also x0, x1, …
LABELS = "y"  # labels given beside the data are a column of this name unless the caller names another

_MATRIX_COLUMN = re.compile(rf"{MATRIX}(0|[1-9]\d*)\Z")


@dataclass(frozen=True)
class Batch:
    """Some rows: each column an Arrow array, a 2-D NumPy array, a sparse matrix, or a list of Python objects."""

    columns: Mapping[str, Any]
    rows: int
    start: int = 0  # the number of the first row in its source, for messages

    def __contains__(self, name: object) -> bool:
        return name in self.columns or self._matrix_column(str(name)) is not None

    def __getitem__(self, name: str) -> Any:
        if name in self.columns:
            return self.columns[name]
        position = self._matrix_column(name)
        if position is None:
            raise KeyError(name)
        return array(np.ascontiguousarray(self.columns[MATRIX][:, position]))

    def get(self, name: str) -> Any:
        """The column of this name, or None."""
        return self[name] if name in self else None  # noqa: SIM401 - this is the `get` it asks for

    def _matrix_column(self, name: str) -> int | None:
        found = _MATRIX_COLUMN.match(name)
        matrix = self.columns.get(MATRIX)
        if found and isinstance(matrix, np.ndarray) and matrix.ndim == 2 and int(found[1]) < matrix.shape[1]:
            return int(found[1])
        return None

    def names(self) -> list[str]:
        """The columns as a person would list them: a dense matrix by its columns."""
        out: list[str] = []
        for name, column in self.columns.items():
            if name == MATRIX and isinstance(column, np.ndarray) and column.ndim == 2:
                out += [f"{MATRIX}{j}" for j in range(column.shape[1])]
            else:
                out.append(name)
        return out

    def slice(self, start: int, stop: int) -> Batch:
        """Rows start to stop."""
        stop = min(stop, self.rows)
        columns = {name: c[start:stop] for name, c in self.columns.items()}
        return Batch(columns, stop - start, self.start + start)

    def take(self, rows: np.ndarray[Any, Any]) -> Batch:
        """The rows of these numbers."""
        if np.array_equal(rows, np.arange(self.rows)):
            return self
        columns = {
            n: c.take(pa.array(rows))
            if isinstance(c, pa.Array)
            else [c[i] for i in rows.tolist()]
            if isinstance(c, list)
            else c[rows]
            for n, c in self.columns.items()
        }
        return Batch(columns, len(rows), self.start)

    def cut(self, rows: int) -> Iterator[Batch]:
        """The batch in pieces of at most so many rows; an empty batch is one empty piece."""
        if self.rows <= rows:
            yield self
        else:
            for start in range(0, self.rows, rows):
                yield self.slice(start, start + rows)


@dataclass
class Source:
    """Data that can be read: `batches()` gives all rows in order, as often as asked unless `once`."""

    read: Callable[[], Iterator[Batch]]
    once: bool = False
    arrow: bool = False  # every batch has the same Arrow types

    def batches(self) -> Iterator[Batch]:
        """All rows, in order."""
        return self.read()

    def repeatable(self) -> Source:
        """A source that can be read again.

        A stream of Arrow batches is first written to a temporary file; an iterator of dicts is kept, since its
        rows are Python objects and may change their type from one to the next.
        """
        if not self.once:
            return self
        batches = self.batches()
        first = next(batches)
        if all(isinstance(c, pa.Array) for c in first.columns.values()) and self.arrow:
            return _spooled(itertools.chain([first], batches))
        kept = [first, *batches]
        return Source(lambda: iter(kept))


def open_source(data: Any, y: Any = None, *, weights: Any = None, target: str | None = None) -> Source:
    """The source behind any accepted data; labels and weights may stand beside it.

    >>> batch = next(open_source({"a": [1, 2], "b": ["u", None]}).batches())
    >>> batch.rows, batch.names()
    (2, ['a', 'b'])
    """
    if isinstance(data, Source):
        return data
    if y is None and weights is None:
        return _open(data)
    beside: dict[str, Any] = {}
    if y is not None:
        beside[target or LABELS] = y
    if weights is not None:
        beside[WEIGHTS] = weights
    return _beside(_open(data), beside)


WEIGHTS = "(weights)"  # weights given beside the data; no frame has a column of this name by chance


def _open(data: Any) -> Source:
    module = type(data).__module__.partition(".")[0]
    if isinstance(data, Batch):
        return _memory(data)
    if module == "pandas" and hasattr(data, "columns"):
        return _memory(_from_pandas(data))
    if isinstance(data, pa.RecordBatchReader):
        return Source(lambda: _arrow_batches(data), once=True, arrow=True)
    if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "dtype"):
        return Source(lambda: _arrow_batches(pa.RecordBatchReader.from_stream(data)))
    if scipy.sparse.issparse(data):
        return _memory(Batch({MATRIX: data.tocsr()}, data.shape[0]))
    if isinstance(data, np.ndarray):
        return _memory(_from_array(data))
    if isinstance(data, Mapping):
        return _memory(_from_mapping(data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _memory(_from_rows(data, 0))
    if isinstance(data, Iterator):
        return Source(lambda: _row_batches(data), once=True)
    raise DataError(
        f"data of type {type(data).__name__} is not a table",
        hint="give a pandas, polars or Arrow frame, a dict of columns, a list of dicts, or a matrix with y=labels.",
    )


def _memory(batch: Batch) -> Source:
    return Source(lambda: batch.cut(BATCH_ROWS))


def _arrow_batches(reader: Any) -> Iterator[Batch]:
    names = [str(n) for n in reader.schema.names]
    _refuse_repeated(names)
    start = 0
    for piece in reader:
        columns = {n: _plain(c) for n, c in zip(names, piece.columns, strict=True)}
        batch = Batch(columns, piece.num_rows, start)
        start += piece.num_rows
        yield from batch.cut(BATCH_ROWS)
    if start == 0:
        yield Batch({n: array([], f.type) for n, f in zip(names, reader.schema, strict=True)}, 0)


def _plain(column: Any) -> Any:
    """An Arrow array of an ordinary type: string views become strings, extension arrays their storage."""
    if isinstance(column.type, pa.BaseExtensionType):
        column = column.storage
    if pa.types.is_string_view(column.type):
        column = column.cast(pa.large_string())
    return column


def _from_pandas(frame: Any) -> Batch:
    names = [str(c) for c in frame.columns]
    _refuse_repeated(names)
    return Batch({n: _column(frame.iloc[:, i]) for i, n in enumerate(names)}, len(frame))


def _from_array(data: np.ndarray[Any, Any]) -> Batch:
    if data.dtype.names:
        return _from_mapping({n: data[n] for n in data.dtype.names})
    if data.ndim != 2:
        raise DataError(
            f"an array of {data.ndim} dimensions is not a table",
            hint="give a matrix with a row per example: X[None, :] makes one row of it, X[:, None] one column.",
        )
    if data.dtype.kind in "OUS":
        return Batch({f"{MATRIX}{j}": _column(data[:, j]) for j in range(data.shape[1])}, len(data))
    return Batch({MATRIX: data}, len(data))


def _from_mapping(data: Mapping[Any, Any]) -> Batch:
    names = [str(n) for n in data]
    _refuse_repeated(names)
    if names and all(_is_scalar(v) for v in data.values()):
        return _from_rows([data], 0)
    columns = {n: _column(v) for n, v in zip(names, data.values(), strict=True)}
    lengths = {n: _length(c) for n, c in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(
            "columns of different lengths: " + ", ".join(f"{n!r} has {k}" for n, k in list(lengths.items())[:8]),
            hint="give every column one value per row; None stands for a missing one.",
        )
    return Batch(columns, next(iter(lengths.values()), 0))


def _is_scalar(value: Any) -> bool:
    return value is None or isinstance(value, (str, bytes)) or not hasattr(value, "__len__")


def _from_rows(rows: Sequence[Any], start: int) -> Batch:
    names: dict[Any, None] = {}
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping):
            raise DataError(
                f"row {start + i} (the first is row 0) is of type {type(row).__name__}, not a dict",
                hint="give a list of dicts, one per row: [{'colour': 'red', 'size': 3}, …].",
            )
        for name in row:
            names.setdefault(name)
    _refuse_repeated([str(n) for n in names])
    return Batch({str(n): _column([row.get(n) for row in rows]) for n in names}, len(rows), start)


def _row_batches(rows: Iterable[Any]) -> Iterator[Batch]:
    start = 0
    iterator = iter(rows)
    while True:
        piece = list(itertools.islice(iterator, BATCH_ROWS))
        if piece or start == 0:
            yield _from_rows(piece, start)
        if len(piece) < BATCH_ROWS:
            return
        start += len(piece)


def _column(values: Any) -> Any:
    """An Arrow array if Arrow has one type for all values, else what was given: a matrix, or a list of objects."""
    if isinstance(values, (pa.Array, pa.ChunkedArray)):
        return _plain(values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values)
    if scipy.sparse.issparse(values):
        return values.tocsr()
    if isinstance(values, np.ndarray) and values.ndim == 2:
        return values
    if hasattr(values, "to_arrow"):  # a polars series
        return _plain(values.to_arrow())
    if isinstance(values, np.ndarray) and values.dtype.kind in "fiub":
        return array(values if values.dtype.itemsize <= 8 else values.astype(np.float64))
    if getattr(values, "dtype", None) is not None and values.dtype != object:  # a typed pandas series
        return _arrow(values)
    items = values.tolist() if hasattr(values, "tolist") else list(values)
    kinds = set(map(type, items)) - {type(None)}
    if kinds == {str, float} and all(v != v for v in items if type(v) is float):  # pandas' NaN among texts
        items, kinds = [None if type(v) is float else v for v in items], {str}
    # Values of several types are kept as they are: Arrow would turn some into others, and which depends on the batch
    return _arrow(items) if len(kinds) <= 1 and not any(issubclass(k, Mapping) for k in kinds) else items


def _arrow(values: Any) -> Any:
    """An Arrow array, or the values themselves where Arrow has no type for them."""
    try:
        made = array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return list(values)
    return _plain(made.combine_chunks() if isinstance(made, pa.ChunkedArray) else made)


def _length(column: Any) -> int:
    return int(column.shape[0]) if hasattr(column, "shape") else len(column)


def _beside(source: Source, extra: Mapping[str, Any]) -> Source:
    columns = {name: _column(_flat(values)) for name, values in extra.items()}

    def read() -> Iterator[Batch]:
        seen = 0
        for batch in source.batches():
            clash = [n for n in columns if n in batch.columns]
            if clash:
                raise DataError(
                    f"the data have a column {clash[0]!r} and labels were given beside them under that name",
                    hint="name the labels' column with target=…, or leave y away and give target='…' alone.",
                )
            stop = seen + batch.rows
            more = {n: c[seen:stop] for n, c in columns.items()}
            for n, c in columns.items():
                if _length(c) < stop:
                    raise _uneven(n, _length(c), f"at least {stop}")
            seen = stop
            yield Batch({**batch.columns, **more}, batch.rows, batch.start)
        for n, c in columns.items():
            if _length(c) != seen:
                raise _uneven(n, _length(c), str(seen))

    return Source(read, source.once, source.arrow)


def _flat(values: Any) -> Any:
    """Labels or weights as one dimension: a matrix of a single column is that column."""
    return values[:, 0] if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1 else values


def _uneven(name: str, given: int, rows: str) -> DataError:
    return DataError(
        f"{given} values were given as {name!r} beside data of {rows} rows",
        hint="labels and weights need one value per row, in the order of the rows.",
    )


def _refuse_repeated(names: Sequence[str]) -> None:
    repeated = sorted({n for n in names if names.count(n) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        raise DataError(
            f"more than one column is called {excerpt(repeated)}",
            hint="columns are found by name, so names must differ: rename or drop the repeated ones.",
        )


def _spooled(batches: Iterator[Batch]) -> Source:
    """The same rows from a temporary Arrow file, deleted with the source."""
    folder = tempfile.mkdtemp(prefix="tallybayes-")
    path = os.path.join(folder, "rows.arrow")
    pieces = (pa.RecordBatch.from_pydict(dict(batch.columns)) for batch in batches)
    first = next(pieces)
    with pa.ipc.new_stream(path, first.schema) as writer:
        for piece in itertools.chain([first], pieces):
            writer.write_batch(piece)

    def read() -> Iterator[Batch]:
        with pa.memory_map(path) as file, pa.ipc.open_stream(file) as reader:
            yield from _arrow_batches(reader)

    source = Source(read)
    weakref.finalize(source, shutil.rmtree, folder, ignore_errors=True)
    return source
