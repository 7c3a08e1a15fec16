"""Anything tabular → batches of named columns.

Taken: paths, folders and globs of files, addresses of databases, and lists of such; frames of pandas, polars, pyarrow,
Ibis, Narwhals and Modin, DuckDB relations and whatever else speaks the Arrow stream interface; dicts of columns; lists
or iterators of dicts; NumPy and SciPy sparse matrices with their labels beside them; Spark frames, which stay where
they are.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from glob import has_magic
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ..base import canon
from ..base.errors import DataError, SettingsError, unknown
from ..base.lazy import scipy
from .batch import (
    BATCH_ROWS,
    HIDDEN,
    MATRIX,
    ROW,
    SHARES,
    WEIGHTS,
    Batch,
    Source,
    Wanted,
    arrow_batches,
    batch_of_rows,
    batches_of_rows,
    refuse_repeated,
)
from .columns import as_column
from .frames import from_pandas, from_polars, is_odd_polars, lazy_source, package_of, unwrapped

__all__ = [
    "HIDDEN", "LABELS", "MATRIX", "ROW", "SHARES", "WEIGHTS", "Batch", "Source", "Wanted", "example", "on_engine",
    "open_source", "read", "shared_out",
]  # fmt: skip

_EXAMPLES = ("examples", "../../examples")  # beside the package's files once it is installed, else those of a checkout
LABELS = "y"  # labels given beside the data are a column of this name unless the caller names another


def open_source(data: Any, y: Any = None, *, weights: Any = None, target: str | None = None) -> Source:
    """The source behind any accepted data; labels and weights may stand beside it.

    Labels may be a table of weights, {class: one number per row}: a row counts for each class by its weight there.

    >>> batch = next(open_source({"a": [1, 2], "b": ["u", None]}).batches())
    >>> batch.rows, batch.names()
    (2, ['a', 'b'])
    """
    source = data if isinstance(data, Source) else _open(data)
    if y is None and weights is None:
        return source
    if source.engine is not None:
        raise DataError(
            f"labels or weights were given beside a {type(data).__name__} whose rows live elsewhere",
            hint="make them columns of the frame and name these: target='…', weights='…'.",
        )
    name = LABELS if target is None else target
    beside: dict[str, Any] = {} if weights is None else {WEIGHTS: weights}
    if y is not None and _is_table_of_weights(y):
        return _by_weights(_beside(source, beside) if beside else source, name, y)
    if y is not None:
        beside[name] = y
    return _beside(source, beside)


def read(
    data: Any,
    connection: Any = None,
    *,
    format: str | None = None,
    delimiter: str | None = None,
    encoding: str = "utf-8",
    decimal: str = ".",
    bad_lines: str = "error",
    memory_limit: str | int | None = None,
    progress: Callable[[int, float | None], None] | None = None,
    table: str | None = None,
    query: str | None = None,
) -> Source:
    """A source of rows that `fit`, `infer`, `count`, `predict` and all else take: a file, or many, or a SQL query.

    `data` is a path, a folder, a pattern such as "logs/*.csv.gz", or a list of such: CSV, TSV, JSON lines, Parquet or
    Arrow, packed by gzip or zstd if so named; a database, "sqlite:///shop.db", "duckdb:///shop.duckdb" or
    "postgresql://user@host/shop"; or a workbook, "book.xlsx". One of several tables or sheets is named behind a #,
    "shop.db#orders". With a `connection` (DuckDB, or any of Python's database interface) `data` is a SQL query. Every
    other call takes a path as it is; `read` is for what it cannot guess:

    - `table`: the table of a database or the sheet of a workbook; `query`: what to ask a database for instead
    - `format`: "csv", "tsv", "jsonl", "parquet", "arrow", "sqlite", "duckdb", "excel" or "xls", where the name does not
      say it
    - `delimiter`, `encoding`, `decimal=","`: how a CSV is written; the delimiter is found by itself
    - `bad_lines="skip"`: leave out lines of another width or that are not JSON, with a warning
    - `memory_limit="200MB"`: what reading may hold at once; else the environment's TALLYBAYES_MEMORY, else 256 MB
    - `progress`: called with the rows read so far and the share of the whole, or None where that is not known

    >>> path = tb.example("flats.csv")
    >>> tb.count(tb.read(path, delimiter=",", decimal="."), "let", kinds={"note": "text"}).rows
    240
    """
    from .files.file import Options
    from .files.reader import open_rows

    options = Options(format, delimiter, encoding, decimal, bad_lines, memory_limit, progress, table, query)
    return open_rows(data, connection, options)


_TAKES = {
    "local": "",
    "duckdb": "DuckDB is for files, queries and relations; duckdb.from_arrow(table) makes a relation of a table.",
    "spark": "give a Spark frame: spark.read.parquet(path), or spark.createDataFrame(table).",
}


def on_engine(source: Source, engine: str | None) -> Source:
    """The source, counted by the engine of this name: "local" brings the rows of any source here, None lets it be."""
    if engine is None or engine == source.home:
        return source
    if engine not in _TAKES:
        raise unknown(SettingsError, f"engine={engine!r}", engine, _TAKES)
    if engine == "local":
        return replace(source, engine=None, home="local")
    raise SettingsError(f"engine={engine!r}, but {source.name} would be read by {source.home!r}", hint=_TAKES[engine])


_ENGINES = {
    "pyspark": "tallybayes.tally.spark.frames"
}  # by the package of a frame's type: a layer above, loaded when it is met


def _elsewhere(data: Any) -> Source | None:
    """The source of a frame whose rows live elsewhere; its package is known by name and never imported for it."""
    engine = _ENGINES.get(package_of(data))
    if engine is None:
        return None
    source: Source | None = import_module(engine).opened(data)
    return source


def _open(data: Any) -> Source:
    if isinstance(data, Batch):
        return _memory(data)
    data = unwrapped(data)
    module = package_of(data)
    if (source := _elsewhere(data) or lazy_source(data)) is not None:
        return source
    if isinstance(data, (str, os.PathLike)) or module in ("duckdb", "_duckdb") or _are_paths(data):
        return read(data)
    if module == "pandas" and hasattr(data, "columns"):
        return _memory(from_pandas(data))
    if module == "polars" and hasattr(data, "get_columns") and is_odd_polars(data):
        return _memory(from_polars(data))
    if isinstance(data, pa.RecordBatchReader):
        return Source(lambda: arrow_batches(data), once=True, arrow=True)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.Table):  # not as a stream, which is handed over in C, where a name ends at a NUL
        return Source(lambda: arrow_batches(data.to_reader()))
    if hasattr(data, "__arrow_c_stream__") and not hasattr(data, "dtype"):
        return Source(lambda: arrow_batches(pa.RecordBatchReader.from_stream(data)))
    if scipy.sparse.issparse(data):
        return _memory(Batch({MATRIX: data.tocsr()}, data.shape[0]))
    if isinstance(data, np.ndarray):
        return _memory(_from_array(data))
    if isinstance(data, Mapping):
        return _memory(_from_mapping(data))
    if isinstance(data, Sequence) and not isinstance(data, (str, bytes)):
        return _memory(batch_of_rows(data, 0))
    if isinstance(data, Iterator):
        return Source(lambda: batches_of_rows(data), once=True)
    raise DataError(
        f"data of type {type(data).__name__} is not a table",
        hint="give a path, a pandas, polars, Arrow or Ibis frame, a dict of columns, a list of dicts, or a matrix with "
        "y=labels.",
    )


def _are_paths(data: Any) -> bool:
    """Whether this is a list of files: one of them is a path, is there, or is a pattern."""
    if not isinstance(data, (list, tuple)) or not all(isinstance(v, (str, os.PathLike)) for v in data):
        return False
    return any(not isinstance(v, str) or os.path.lexists(v) or has_magic(v) for v in data)


def _memory(batch: Batch) -> Source:
    return Source(lambda: batch.cut(BATCH_ROWS), rows=batch.rows)


def _from_array(data: np.ndarray[Any, Any]) -> Batch:
    if data.dtype.names:
        return _from_mapping({n: data[n] for n in data.dtype.names})
    if data.ndim != 2:
        raise DataError(
            f"an array of {data.ndim} dimensions is not a table",
            hint="give a matrix with a row per example: X[None, :] makes one row of it, X[:, None] one column.",
        )
    if data.dtype.kind in "OUS":
        return Batch({f"{MATRIX}{j}": as_column(data[:, j]) for j in range(data.shape[1])}, len(data))
    return Batch({MATRIX: data}, len(data))


def _from_mapping(data: Mapping[Any, Any]) -> Batch:
    names = [str(n) for n in data]
    refuse_repeated(names)
    if names and all(canon.is_one(v) for v in data.values()):
        return batch_of_rows([data], 0)
    for name, value in data.items():
        if canon.is_one(value) and (isinstance(value, (str, bytes)) or not hasattr(value, "__iter__")):
            raise DataError(
                f"column {str(name)!r} is one value, {canon.printable(repr(value))}, beside columns of many",
                hint="give every column one value per row; rows are given as a list of dicts: [{'a': 1, 'b': 2}, …].",
            )
    columns = {n: as_column(v) for n, v in zip(names, data.values(), strict=True)}
    lengths = {n: _length(c) for n, c in columns.items()}
    if len(set(lengths.values())) > 1:
        raise DataError(
            "columns of different lengths: " + ", ".join(f"{n!r} has {k}" for n, k in list(lengths.items())[:8]),
            hint="give every column one value per row; None stands for a missing one.",
        )
    return Batch(columns, next(iter(lengths.values()), 0))


def _length(column: Any) -> int:
    return int(column.shape[0]) if hasattr(column, "shape") else len(column)


def _beside(source: Source, extra: Mapping[str, Any]) -> Source:
    for name, values in extra.items():
        if isinstance(values, (str, bytes)) or not (hasattr(values, "__len__") or hasattr(values, "__iter__")):
            what = "weights" if name == WEIGHTS else "labels"
            raise DataError(f"{values!r} as {what} of the rows", hint="give one for each row, or the name of a column.")
        if package_of(values) == "ibis":
            raise DataError(
                "an Ibis column beside the rows: two queries may give their rows in different orders",
                hint="keep it in the table and name it there: target='…', weights='…'.",
            )
    columns = {name: as_column(_flat(values)) for name, values in extra.items()}

    def joined(batches: Iterator[Batch]) -> Iterator[Batch]:
        seen = 0
        for batch in batches:
            clash = [n for n in columns if n in batch.columns]
            if clash:
                raise _twice(clash[0])
            stop = seen + batch.rows
            more = {n: c[seen:stop] for n, c in columns.items()}
            for n, c in columns.items():
                if _length(c) < stop:
                    raise _uneven(n, _length(c), f"at least {stop}")
            seen = stop
            yield replace(batch, columns={**batch.columns, **more})
        for n, c in columns.items():
            if _length(c) != seen:
                raise _uneven(n, _length(c), str(seen))

    together = Source(lambda: joined(source.batches()), source.once, source.arrow, home=source.home, rows=source.rows)
    return replace(together, files=source.files)


def _is_table_of_weights(y: Any) -> bool:
    """Whether labels are a table, classes × rows, rather than one label per row; a single column is such labels."""
    if isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] > 1:
        raise DataError(
            f"labels of {y.shape[1]} columns, whose classes have no names",
            hint="give a weight for each class by its name, y={'yes': [0.7, 1], 'no': [0.3, 0]}, or a frame of such.",
        )
    names = getattr(y, "column_names", getattr(y, "columns", None))  # of Arrow, or of pandas and polars
    return isinstance(y, Mapping) or (isinstance(names, Iterable) and len([*names]) > 1)


def _by_weights(source: Source, target: str, y: Any) -> Source:
    """Each row once for every class that it has a weight in; a row that has none keeps its missing label."""
    classes = list(y) if isinstance(y, Mapping) else [*getattr(y, "column_names", y.columns)]
    columns = [_weights_of(c, y[c]) for c in classes]
    if len({len(c) for c in columns}) > 1:
        each = ", ".join(f"{c!r} has {len(w)}" for c, w in list(zip(classes, columns, strict=True))[:8])
        raise DataError(f"weights of different lengths: {each}", hint="give every class one weight per row.")
    table = np.stack(columns, axis=1) if columns else np.zeros((0, 0))
    return Source(
        lambda: shared_out(source.batches(), target, classes, table), source.once, home=source.home, files=source.files
    )


def _weights_of(label: Any, given: Any) -> np.ndarray[Any, Any]:
    """What each row weighs in one class; refuses what is no weight."""
    hint = f"a weight is a number of at least 0; 0 where a row is not of class {label!r}."
    try:
        out = np.asarray(given, dtype=np.float64).ravel()
    except (TypeError, ValueError):
        raise DataError(f"the weights of class {label!r} are no numbers", hint=hint) from None
    bad = np.flatnonzero(~((out >= 0) & (out < 2.0**31)))
    if len(bad):
        found = f"the weight of row {int(bad[0])} (the first is row 0) in class {label!r} is {out[bad[0]]:g}"
        raise DataError(found, hint=hint)
    return out


def shared_out(
    batches: Iterable[Batch], target: str, classes: Sequence[Any], table: np.ndarray[Any, Any]
) -> Iterator[Batch]:
    """Batches whose rows stand once for each class that they have a weight in, by rows × classes of weights.

    >>> rows = Batch({"sky": as_column(["grey", "blue"])}, 2)
    >>> two = next(shared_out([rows], "rain", ["no", "yes"], np.array([[0.25, 0.75], [1.0, 0.0]])))
    >>> two["sky"].to_pylist(), two["rain"].to_pylist(), two.columns[SHARES].tolist()
    (['grey', 'grey', 'blue'], ['no', 'yes', 'no'], [0.25, 0.75, 1.0])
    """
    names, seen = as_column([*classes]), 0
    for batch in batches:
        own = table[seen : seen + batch.rows]
        if len(own) < batch.rows:
            raise _uneven(target, len(table), f"at least {seen + batch.rows}")
        if target in batch.columns:
            raise _twice(target)
        none = own.sum(axis=1, keepdims=True) == 0
        row, label = np.nonzero(np.concatenate([own, none], axis=1))
        share = np.concatenate([own, none], axis=1)[row, label]
        known = label < len(classes)
        if isinstance(names, pa.Array):
            given: Any = names.take(pa.array(label, mask=~known))
        else:
            given = [names[i] if i < len(classes) else None for i in label.tolist()]
        more = {target: given, SHARES: share, ROW: row + seen}
        taken = batch.take(row)
        seen += batch.rows
        yield replace(taken, columns={**taken.columns, **more})
    if len(table) != seen:
        raise _uneven(target, len(table), str(seen))


def _twice(name: str) -> DataError:
    return DataError(
        f"the data have a column {name!r} and labels were given beside them under that name",
        hint="name the labels' column with target=…, or leave y away and give target='…' alone.",
    )


def _flat(values: Any) -> Any:
    """Labels or weights as one dimension: a matrix of a single column is that column."""
    return values[:, 0] if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1 else values


def _uneven(name: str, given: int, rows: str) -> DataError:
    return DataError(
        f"{given} values were given as {name!r} beside data of {rows} rows",
        hint="labels and weights need one value per row, in the order of the rows.",
    )


def example(name: str | None = None, to: str | os.PathLike[str] | None = None) -> Path:
    """Where an example that comes with the package lies: "flats.csv", a table, or "inbox", a folder of mail.

    With `to`, a folder, it is copied there first; what lies there under that name is left as it is.

    >>> tb.example("flats.csv").name
    'flats.csv'
    """
    package = Path(__file__).resolve().parents[1]
    folder = next((f for place in _EXAMPLES if (f := (package / place)).is_dir()), package)
    known = sorted(path.name for path in folder.iterdir() if path.suffix != ".py") if folder != package else []
    if name is None:
        raise DataError("which example?", hint=f"name one: {', '.join(map(repr, known))}.")
    if name not in known:
        raise unknown(DataError, f"there is no example {name!r}", name, known)
    found = (folder / name).resolve()
    if to is None:
        return found
    here = Path(to) / name
    if not here.exists():
        (shutil.copytree if found.is_dir() else shutil.copy)(found, here)
    return here
