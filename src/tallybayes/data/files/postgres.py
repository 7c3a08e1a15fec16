"""PostgreSQL: a table or a query of a server, through psycopg, which the extra `postgres` installs.

Everything is read within one read-only transaction, in which the server shows the same rows however often they are
read, by a cursor on the server, so that a batch at a time is here. The password goes to the server and nowhere else:
not into a message, a name or a model.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from ...base.errors import DataError, MissingExtra
from ..batch import Wanted, refuse_repeated
from . import duckdb as duck
from .databases import TableOrQuery, chosen_table, cursor_pieces, without_blobs
from .file import File, Format, Options, table_of
from .find import shown

_TABLES = """
SELECT n.nspname, c.relname, n.nspname = current_schema(), c.reltuples
FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND NOT c.relispartition
  AND n.nspname <> 'information_schema' AND left(n.nspname, 3) <> 'pg_'
ORDER BY 1, 2
"""


class Server(File):
    """A database on a server in the place of a file."""

    def __init__(self, address: str, options: Options) -> None:
        at = address.rfind("@")
        before, _, table = address[at + 1 :].partition("#")
        user = address[: max(at, 0)].partition("://")[2]
        if any(sign in user for sign in "#/?@"):  # whoever reads the address otherwise would print a part of it
            raise DataError(
                "the address of the database has a #, /, ? or @ in its user or password",
                hint="write %23, %2F, %3F and %40 for them, or leave the password to PGPASSWORD or ~/.pgpass.",
            )
        self.address = "postgresql://" + (address[: at + 1] + before).partition("://")[2]
        self.path = shown(self.address)
        self.options = options
        self.table = table_of(table or None, options)
        self.size = 1  # nobody knows
        self.format = POSTGRES
        try:
            parts = urlsplit(self.address)
            _ = parts.port
        except ValueError:
            raise DataError(
                "the address of the database cannot be understood", hint="write postgresql://user@host:5432/database."
            ) from None
        given = [parts.password, *(value for key, value in parse_qsl(parts.query) if "password" in key)]
        self._secrets = {form for one in given if one for form in (one, unquote(one))}

    def check_unchanged(self) -> None:
        """What is read is what the server held when the transaction began."""

    def said(self, error: Exception) -> str:
        """The first line of an error, without the password, whoever wrote it there."""
        text = (str(error).strip().splitlines() or [type(error).__name__])[0]
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, "***")
        return text[:300]


class PostgresTable(TableOrQuery):
    """A table or a query of a server."""

    def __init__(self, file: File) -> None:
        assert isinstance(file, Server)
        self.file: File = file
        self._server = file
        self.query = file.options.query
        self.expected = 0.0
        self._driver = _psycopg()
        self._con: Any = None
        self._numbers = itertools.count()
        self._places: dict[str, tuple[str, str]] = {}
        self.table = "" if self.query is not None else self._choose()
        statement = f"SELECT * FROM {self._from()}" if self.query is None else self.query
        self.names = tuple(self._run(statement, close=True)[1])
        refuse_repeated(self.names, f"{self.where}: ")

    def pieces(self, con: Any, wanted: Wanted | None) -> Iterator[dict[str, Any]]:
        """The columns of each batch."""
        names = [n for n in self.names if wanted is None or n in wanted]
        columns = ", ".join(map(duck.name, names))
        cursor, given = self._run(f"SELECT {columns} FROM {self._from()}" if self.query is None else self.query)
        first = 0
        with cursor:
            for piece, rows in cursor_pieces(cursor, given, self.file.options):
                chosen = {n: c for n, c in piece.items() if n in names}
                yield without_blobs(chosen, first, self.where, "…" if self.query is not None else self._from())
                first += rows

    def _from(self) -> str:
        return ".".join(map(duck.name, self._places[self.table]))

    def _choose(self) -> str:
        sizes = {}
        cursor, _ = self._run(_TABLES)
        with cursor:
            for schema, name, here, rows in cursor.fetchall():
                called = name if here else f"{schema}.{name}"
                self._places[called], sizes[called] = (schema, name), max(float(rows), 0.0)
        table = chosen_table(self.file, list(self._places))
        self.expected = sizes[table]
        return table

    def _run(self, statement: str, close: bool = False) -> tuple[Any, list[str]]:
        """A cursor on the server, which takes no more than one statement that gives rows, and its columns."""
        try:
            con = self._connected()
            cursor = con.cursor(name=f"tallybayes_{next(self._numbers)}")
            cursor.execute(statement)
            names = [str(column[0]) for column in cursor.description]
            if close:
                cursor.close()
        except self._driver.Error as error:
            connected, self._con = self._con is not None, None
            said = self._server.said(error)
            if not connected:
                raise self.file.error(
                    f"the server cannot be reached: {said}",
                    "check host, port, database, user and password; PGPASSWORD or ~/.pgpass can hold the password.",
                ) from None
            what = "the query cannot be run" if self.query is not None else "the table cannot be read"
            raise self.file.error(
                f"{what}: {said}", "give one SELECT, and try it in the database itself first."
            ) from None
        return cursor, names

    def _connected(self) -> Any:
        """The connection, within the one transaction that all reading shares."""
        if self._con is None:
            con = self._driver.connect(self._server.address)
            weakref.finalize(self, con.close)
            con.read_only, con.isolation_level = True, self._driver.IsolationLevel.REPEATABLE_READ
            con.execute("SET synchronize_seqscans = off")  # rows in the same order each time
            self._con = con
        return self._con


def _psycopg() -> Any:
    try:
        import psycopg
    except ImportError:
        raise MissingExtra("reading PostgreSQL needs psycopg", hint="pip install 'tallybayes[postgres]'") from None
    return psycopg


POSTGRES = Format("postgresql", (), PostgresTable, tables="table", queries=True)


def open_server(address: str, options: Options) -> PostgresTable:
    """The table or query that an address and the options mean."""
    return PostgresTable(Server(address, options))
