"""Databases that are files, SQLite's and DuckDB's: opened to be read alone, one table or query as a stream of batches.

A name never becomes part of a statement but as a quoted identifier, so nothing but a query that the user gave is run.
SQLite is read by Python's own sqlite3. DuckDB opens its file without access to other files: a view in it that reads
one is refused.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import quote

import pyarrow as pa

from ...base.disk import stamp
from ...base.errors import DataError, excerpt, unknown
from ...base.threads import threads
from ..batch import Wanted, broken_off, refuse_repeated
from ..columns import as_column, plain
from ..values import is_bytes
from . import duckdb as duck
from .file import File, Format

_FIRST, _FEWEST, _MOST = 1 << 9, 1 << 4, 1 << 14  # rows that a cursor hands over at once
_LOOSE = 64  # bytes that a value which Arrow cannot hold takes
_LISTED = 20  # tables or columns that a message names
PATIENCE = 5.0  # seconds to wait for whoever is writing


def chosen_table(file: File, tables: Sequence[str], what: str = "table") -> str:
    """The table that was named, or the only one; refused where there are several, or none of that name."""
    wish = file.table
    if wish is not None:
        if wish not in tables:
            raise unknown(DataError, f"{file.path}: there is no {what} {wish!r}", wish, tables)
        return wish
    if not tables:
        raise file.error(f"there is no {what} in it", f"give a file with at least one {what}.")
    if len(tables) > 1:
        raise file.error(
            f"there are {len(tables)} {what}s: {excerpt(tables, _LISTED)}",
            f"say which: tb.read(path, table={tables[0]!r}), or name it behind a #: …#{tables[0]}.",
        )
    return tables[0]


def cursor_pieces(cursor: Any, names: Sequence[str], options: Any) -> Iterator[tuple[dict[str, Any], int]]:
    """The columns of the rows that a cursor gives, batch by batch of bounded size, and how many rows; an empty batch
    if there are none.
    """
    start, fetch = 0, _FIRST
    while True:
        try:
            rows = cursor.fetchmany(fetch)
        except Exception as error:  # each database has its own
            raise broken_off("the query", start, error) from error
        if not rows and start:
            return
        values = list(zip(*rows, strict=True)) if rows else [() for _ in names]
        columns = {n: as_column(list(c)) for n, c in zip(names, values, strict=True)}
        yield columns, len(rows)
        start += len(rows)
        if len(rows) < fetch:
            return
        size = sum(c.nbytes if isinstance(c, pa.Array) else _LOOSE * len(rows) for c in columns.values())
        fetch = min(max(fetch * options.batch_bytes // max(size, 1), _FEWEST), _MOST, 4 * fetch)


def without_blobs(columns: dict[str, Any], first: int, where: str, source: str) -> dict[str, Any]:
    """The columns, refused where a value is bytes: nobody knows what they mean. `first` is the number of the first
    row.
    """
    for name, column in columns.items():
        if isinstance(column, pa.Array):
            if not is_bytes(column.type) or column.null_count == len(column):
                continue
            row = next(i for i, valid in enumerate(column.is_valid().to_pylist()) if valid)
        else:
            blobs = (i for i, v in enumerate(column) if isinstance(v, (bytes, bytearray, memoryview)))
            row = next(blobs, -1)
            if row < 0:
                continue
        kept = [duck.name(n) for n in columns if n != name]
        others = ", ".join(kept[:_LISTED] + ["…"] * (len(kept) > _LISTED)) or "…"
        raise DataError(
            f"{where}, row {first + row} (the first is row 0), column {name!r}: a value of bytes, which is no text and "
            "no number",
            hint=f"leave the column out, query='SELECT {others} FROM {source}', or turn it into "
            f"text there: CAST({duck.name(name)} AS TEXT).",
        )
    return columns


class TableOrQuery:
    """What all databases say of where rows stand."""

    file: File
    query: str | None
    table: str

    @property
    def where(self) -> str:
        """What is read, for messages."""
        return f"{self.file.path}, {'the query' if self.query is not None else f'table {self.table!r}'}"

    def place(self, row: int) -> str:
        """Where a row stands."""
        return f"{self.where}, row {row} (the first is row 0)"


class _Database(TableOrQuery):
    """A table or a query of a database file."""

    _order = ""  # of the rows of a table, where the database does not keep one

    def __init__(self, file: File) -> None:
        self.file = file
        self.query = file.options.query
        self.expected = 0.0  # rows, where the database knows
        with self._connected() as con:
            self.table = "" if self.query is not None else chosen_table(file, self._tables(con))
            self.names = tuple(self._look(con))
        refuse_repeated(self.names, f"{self.where}: ")

    def _connected(self) -> contextlib.AbstractContextManager[Any]:
        raise NotImplementedError

    def _tables(self, con: Any) -> list[str]:
        raise NotImplementedError

    def _look(self, con: Any) -> Sequence[str]:
        """The names of the columns."""
        raise NotImplementedError

    def _statement(self, wanted: Wanted | None) -> tuple[str, list[str]]:
        """What is run, and the names of the columns that it gives."""
        if self.query is not None:
            return self.query, list(self.names)
        names = [n for n in self.names if wanted is None or n in wanted]
        return f"SELECT {', '.join(map(duck.name, names))} FROM {self._from()}{self._order}", names

    def _from(self) -> str:
        return duck.name(self.table)

    def _chosen(self, columns: dict[str, Any], wanted: Wanted | None, first: int) -> dict[str, Any]:
        columns = {n: c for n, c in columns.items() if wanted is None or n in wanted}
        return without_blobs(columns, first, self.where, "…" if self.query is not None else self._from())

    def _explained(self, error: Exception) -> DataError:
        """The database's error in our words."""
        said = (str(error).splitlines() or [type(error).__name__])[0][:300]
        if "lock" in said.lower():
            return self.file.error(
                "another program has the database locked", "wait until it has written, or work on a copy of the file."
            )
        if self.query is not None:
            return self.file.error(
                f"the query cannot be run: {said}", "give one SELECT that reads this database, and try it there first."
            )
        return self.file.error(f"the database cannot be read: {said}", "check it with the database's own program.")


class SqliteFile(_Database):
    """A SQLite database; its rows in the order of their rowid, or of the primary key where a table has none."""

    def __init__(self, file: File) -> None:
        self._log = _log_of(file)
        super().__init__(file)

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        address = f"file:{quote(self.file.absolute)}?mode=ro"
        try:
            with contextlib.closing(
                sqlite3.connect(address, uri=True, timeout=PATIENCE, check_same_thread=False)
            ) as con:
                con.set_authorizer(_may_read)
                yield con
        except (sqlite3.Error, sqlite3.Warning) as error:
            raise self._explained(error) from None

    def _tables(self, con: Any) -> list[str]:
        inner = {name for _, name, kind, *_ in con.execute("PRAGMA table_list") if kind == "shadow"}
        found = con.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view') ORDER BY name")
        return [name for (name,) in found if not name.startswith("sqlite_") and name not in inner]

    def _look(self, con: Any) -> Sequence[str]:
        if self.query is None:
            self._find_order(con)
        cursor = con.execute(self.query or f"SELECT * FROM {self._from()} LIMIT 0")
        if cursor.description is None:
            raise self.file.error("the query gives no table", "give one that does, such as SELECT * FROM people.")
        return [str(column[0]) for column in cursor.description]

    def _find_order(self, con: Any) -> None:
        """Order by the number of a row where there is one that no column hides, and count by the largest."""
        columns = {name.lower() for _, name, *_ in con.execute(f"PRAGMA table_info({duck.name(self.table)})")}
        own = next((name for name in ("_rowid_", "rowid", "oid") if name not in columns), None)
        with contextlib.suppress(sqlite3.OperationalError):  # a view, or a table WITHOUT ROWID
            largest = con.execute(f"SELECT max({own}) FROM {duck.name(self.table)}").fetchone()[0] if own else None
            if isinstance(largest, int):
                self._order, self.expected = f" ORDER BY {own}", float(max(largest, 0))

    def pieces(self, con: Any, wanted: Wanted | None) -> Iterator[dict[str, Any]]:
        """The columns of each batch."""
        first = 0
        self._check_log()
        with self._connected() as base:
            statement, names = self._statement(wanted)
            for columns, rows in cursor_pieces(base.execute(statement), names, self.file.options):
                yield self._chosen(columns, wanted, first)
                first += rows
        self._check_log()

    def _check_log(self) -> None:
        """Refuse a database that was written to: of one with a write-ahead log the file alone does not show it."""
        if _log_of(self.file) != self._log:
            raise self.file.error(
                "the database changed while it was being read", "wait until it is written, or work on a copy of it."
            )


_REACHES_OUT = (sqlite3.SQLITE_ATTACH, sqlite3.SQLITE_DETACH, sqlite3.SQLITE_PRAGMA)
_ASKS = ("table_info", "table_list", "data_version")  # pragmas: of ours, and of SQLite's own tables of words


def _may_read(action: int, first: str | None, second: str | None, *_: str | None) -> int:
    """Whether SQLite may do a step of a statement: not what a database that is open to be read would still allow, such
    as attaching (and making) another one.
    """
    denied = action in _REACHES_OUT and first not in _ASKS
    denied |= action == sqlite3.SQLITE_FUNCTION and second == "load_extension"
    return sqlite3.SQLITE_DENY if denied else sqlite3.SQLITE_OK


def _log_of(file: File) -> Any:
    with contextlib.suppress(OSError):
        status = os.stat(f"{file.path}-wal")
        return stamp(status) if status.st_size else None
    return None


class DuckdbFile(_Database):
    """A DuckDB database; its rows in the order in which they were put in."""

    @contextlib.contextmanager
    def _connected(self) -> Iterator[Any]:
        options, duckdb = self.file.options, duck.package()
        config: dict[str, Any] = {
            "threads": threads(), "memory_limit": f"{options.memory}B", "enable_external_access": False,
            "autoinstall_known_extensions": False, "autoload_known_extensions": False, "lock_configuration": True,
            "python_enable_replacements": False,
        }  # fmt: skip
        try:
            with contextlib.closing(duckdb.connect(self.file.absolute, read_only=True, config=config)) as con:
                yield con
        except duckdb.Error as error:
            if "different configuration" in str(error):
                raise self.file.error(
                    "this program has the database open already",
                    "close that connection, or give it: tb.read('FROM people', connection=con).",
                ) from None
            raise self._explained(error) from None

    def _tables(self, con: Any) -> list[str]:
        found = con.execute(
            "SELECT schema_name, table_name, estimated_size FROM duckdb_tables() WHERE NOT internal UNION ALL "
            "SELECT schema_name, view_name, 0 FROM duckdb_views() WHERE NOT internal ORDER BY ALL"
        ).fetchall()
        self._places = {name if schema == "main" else f"{schema}.{name}": (schema, name) for schema, name, _ in found}
        self._sizes = dict(zip(self._places, (float(size) for *_, size in found), strict=True))
        return list(self._places)

    def _look(self, con: Any) -> Sequence[str]:
        self.expected = 0.0 if self.query is not None else self._sizes[self.table]
        return list(self._run(con, self.query or f"FROM {self._from()}").columns)

    def _run(self, con: Any, statement: str) -> Any:
        result = con.sql(statement)
        if result is None:
            raise self.file.error("the query gives no table", "give one that does, such as SELECT * FROM people.")
        return result

    def _from(self) -> str:
        return ".".join(map(duck.name, self._places[self.table]))

    def pieces(self, con: Any, wanted: Wanted | None) -> Iterator[dict[str, Any]]:
        """The columns of each batch."""
        first = 0
        with self._connected() as base:
            statement, names = self._statement(wanted)
            for batch in duck.stream(self._run(base, statement), self.file.options):
                columns = {n: plain(c) for n, c in zip(names, batch.columns, strict=True)}
                yield self._chosen(columns, wanted, first)
                first += batch.num_rows


SQLITE = Format(
    "sqlite", ("sqlite", "sqlite3", "db"), SqliteFile, magic=b"SQLite format 3\0", noun="a SQLite database",
    tables="table", queries=True, scheme="sqlite",
)  # fmt: skip
DUCKDB = Format(
    "duckdb", ("duckdb", "ddb"), DuckdbFile, magic=b"DUCK", magic_at=8, noun="a DuckDB database", tables="table",
    queries=True, scheme="duckdb",
)  # fmt: skip
