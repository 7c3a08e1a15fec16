"""From a path, a pattern, a relation or a query to a source of rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Protocol

import pyarrow as pa

from ...base.errors import DataError, SettingsError, excerpt
from ..batch import Batch, Source, Wanted, arrow_batches, refuse_repeated, unbroken
from . import duckdb as duck
from .csv import CSV, TSV, CsvFile
from .databases import DUCKDB, SQLITE, cursor_pieces
from .excel import EXCEL, OLD_EXCEL
from .file import FORMATS as FORMATS
from .file import SERVERS, File, Format, Options
from .find import Found, find
from .postgres import open_server
from .typed import ARROW, JSON_LINES, PARQUET

_HOME = "duckdb"  # the engine that files and queries belong to
_LONG = 2  # times as many rows as a look has: a shorter file is read whole


class Reader(Protocol):
    """One file of some format, readable as often as asked."""

    file: File

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        ...

    @property
    def expected(self) -> float:
        """How many rows it has, or about how many; 0 if nobody can know before reading them."""
        ...

    def pieces(self, con: duck.Lazy, wanted: Wanted | None) -> Iterator[dict[str, Any]]:
        """The columns of one batch after another."""
        ...

    def place(self, row: int) -> str:
        """Where the row of a number stands."""
        ...


def register_format(format: Format) -> None:
    """Let files whose names end in one of its endings, or `tb.read(path, format=name)`, be read so."""
    FORMATS[format.name] = format


for _format in (CSV, TSV, JSON_LINES, PARQUET, ARROW, SQLITE, DUCKDB, EXCEL, OLD_EXCEL):
    register_format(_format)
SERVERS |= {"postgresql": open_server, "postgres": open_server}


def open_rows(data: Any, connection: Any, options: Options) -> Source:
    """The source behind a path, a pattern, a relation, or a query with its connection."""
    if connection is not None:
        if options.table is not None or options.query is not None:
            raise SettingsError(
                "table= or query= beside a connection",
                hint="give the query first: tb.read('SELECT …', connection=con).",
            )
        return _query(str(data), connection, options)
    if duck.is_a(data, "DuckDBPyRelation"):
        return Source(lambda: _streamed(data, options), name="the relation", home=_HOME)
    if duck.is_a(data, "DuckDBPyConnection"):
        raise DataError("a connection is no table", hint="give a query, too: tb.read('FROM people', connection=con).")
    return _Files([_opened(found, options) for found in find(data)], options).source()


def _opened(found: Found, options: Options) -> Reader:
    if found.format in SERVERS:
        return SERVERS[found.format](found.path, options)
    file = File(found.path, options, found.format, found.table)
    return file.format.open(file)


class _Files:
    """Files with the same columns, one after another."""

    def __init__(self, readers: list[Reader], options: Options) -> None:
        self.readers = readers
        self.options = options
        for other in readers[1:]:
            apart = set(other.names) ^ set(readers[0].names)
            if apart and not other.file.format.ragged:
                raise DataError(
                    f"{other.file.path} and {readers[0].file.path} have different columns: only one has "
                    f"{excerpt(sorted(apart))}",
                    hint="read them apart under one schema and add: tb.count(a, schema) + tb.count(b, schema).",
                )

    def source(self) -> Source:
        """The rows of all files, as often as asked."""
        names = [r.file.path for r in self.readers]
        return Source(
            lambda: self.batches(None),
            narrow=self.batches,
            name=names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more",
            home=_HOME,
            stretches=self.stretches,
            files=tuple(names),
        )

    def stretches(self, rows: int) -> Batch | None:
        """About so many rows from all over the files; None where these must be read whole, or are not much longer."""
        expected = sum(r.expected for r in self.readers)
        if expected < _LONG * rows or not all(isinstance(r, CsvFile) for r in self.readers):
            return None
        found: list[dict[str, Any]] = []
        for reader in self.readers:
            assert isinstance(reader, CsvFile)
            reader.file.check_unchanged()
            columns = reader.stretches(rows * reader.expected / expected)
            reader.file.check_unchanged()
            if columns is None:
                return None
            found.append(columns)
        joined = {n: pa.concat_arrays([c[n] for c in found]) for n in self.readers[0].names}
        rows, decimal = len(joined[self.readers[0].names[0]]), self.options.decimal
        return Batch(joined, rows, written=True, stretches=True, decimal=decimal)

    def batches(self, wanted: Wanted | None) -> Iterator[Batch]:
        """All rows in order; all columns if one that is wanted is absent, so that a message can name the others."""
        if wanted is not None and not set(wanted) <= set(self.readers[0].names):
            wanted = None
        total = sum(r.file.size for r in self.readers)
        before = start = 0
        con = duck.Lazy(self.options)
        try:
            for reader in self.readers:
                reader.file.check_unchanged()
                first = start
                for columns in reader.pieces(con, wanted):
                    rows = len(next(iter(columns.values()))) if columns else 0
                    place = _Place(reader, first)
                    written = reader.file.format.untyped
                    decimal = self.options.decimal if written else "."
                    yield Batch(columns, rows, start, place, written, decimal=decimal)
                    start += rows
                    part = min((start - first) / reader.expected, 1.0) if reader.expected else 0.0
                    self._tell(start, (before + part * reader.file.size) / total)
                reader.file.check_unchanged()
                before += reader.file.size
                self._tell(start, before / total)
        finally:
            con.close()

    def _tell(self, rows: int, share: float) -> None:
        if self.options.progress is not None:
            self.options.progress(rows, share)


class _Place:
    """Where a row of a source stands in its file."""

    def __init__(self, reader: Reader, first: int) -> None:
        self.reader = reader
        self.first = first

    def __call__(self, row: int) -> str:
        return self.reader.place(row - self.first)


def _streamed(relation: Any, options: Options) -> Iterator[Batch]:
    start = 0
    for piece in unbroken(duck.stream(relation, options), "the query", duck.package().Error):
        for batch in arrow_batches(pa.RecordBatchReader.from_batches(piece.schema, [piece])):
            yield replace(batch, start=start + batch.start)
        start += piece.num_rows
        if options.progress is not None:
            options.progress(start, None)


def _query(query: str, connection: Any, options: Options) -> Source:
    """The rows of a query: by Arrow from DuckDB, through a cursor from any other database."""
    if duck.is_a(connection, "DuckDBPyConnection"):
        return Source(lambda: _streamed(_run(connection.sql, query), options), name="the query", home=_HOME)
    if not hasattr(connection, "cursor"):
        raise DataError(
            f"connection= is of type {type(connection).__name__}",
            hint="give a connection of DuckDB, sqlite3 or another database: it has a method cursor().",
        )
    return Source(lambda: _rows(connection, query, options), name="the query", home=_HOME)


def _run(how: Callable[[str], Any], query: str) -> Any:
    try:
        result = how(query)
    except Exception as error:  # each database has its own
        raise DataError(
            f"the query cannot be run: {str(error).splitlines()[0]}", hint="try it in the database itself first."
        ) from None
    if result is None:
        raise DataError("the query gives no table", hint="give one that does, such as SELECT * FROM people.")
    return result


def _rows(connection: Any, query: str, options: Options) -> Iterator[Batch]:
    cursor = connection.cursor()
    try:
        _run(lambda given: (cursor.execute(given), cursor.description)[1], query)
        names = [str(column[0]) for column in cursor.description]
        refuse_repeated(names, "the query: ")
        start = 0
        for columns, rows in cursor_pieces(cursor, names, options):
            yield Batch(columns, rows, start)
            start += rows
            if options.progress is not None:
                options.progress(start, None)
    finally:
        cursor.close()
