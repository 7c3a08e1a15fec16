"""An SQLite file of ours with a write-ahead log: found, checked, read by one connection and written by another.

An error of SQLite is said in our words, and a transaction that ends in one has changed nothing.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import urllib.parse
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import Any, Self

from ..base.disk import transaction
from ..base.errors import TallybayesError

APPLICATION = 0x5442644A  # "TBdJ" in the file's header
FORMAT = 1
_BUSY_SECONDS = 10.0


class JournalError(TallybayesError):
    """The journal of a served model cannot be read or written, or does not belong to it; nothing has been changed."""


class JournalClosed(JournalError):
    """The model was closed before this was answered, as when another is opened; nothing has been changed."""


class JournalFile:
    """An open file; `create` makes one where there is none. Writing is for one thread of one process at a time."""

    tables = ""  # the statements that make a new one

    def __init__(self, path: str | os.PathLike[str], *, create: bool = False) -> None:
        self.path = os.fspath(path)
        self._reading = threading.RLock()  # the readers' connection is one thread's at a time
        self._prepare(create)
        self._db = self._connect()
        try:
            self._begin(create)
            self._reader = self._connect()
        except BaseException:
            self._db.close()
            raise
        with self._explained():
            self._reader.execute("PRAGMA query_only = ON")

    def close(self) -> None:
        """Give the file back; the log is folded into it by SQLite."""
        with self._reading:
            self._reader.close()
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def copy_to(self, path: str) -> None:
        """A copy of all that was acknowledged, as of one moment; nobody waits for it."""
        with self._explained(), closing(self._connect()) as source, closing(sqlite3.connect(path)) as copy:
            source.backup(copy)

    def _read(self, query: str, values: Sequence[Any] = ()) -> list[Any]:
        with self._reading, self._explained():
            return self._reader.execute(query, values).fetchall()

    def _prepare(self, create: bool) -> None:
        """Make an empty file that only its owner can read: taught rows may be private."""
        if os.path.exists(self.path) or not create:
            return
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except OSError as error:
            hint = "keep the model in a folder that can be written to: its journal lies beside it."
            raise JournalError(f"{self.path} cannot be made: {error.strerror}", hint=hint) from error

    def _connect(self) -> sqlite3.Connection:
        address = f"file:{urllib.parse.quote(os.path.abspath(self.path))}?mode=rw"
        with self._explained():
            return sqlite3.connect(
                address, uri=True, isolation_level=None, timeout=_BUSY_SECONDS, check_same_thread=False
            )

    def _begin(self, create: bool) -> None:
        with self._explained():
            pages, ours, version = (
                int(self._db.execute(f"PRAGMA {name}").fetchone()[0])
                for name in ("page_count", "application_id", "user_version")
            )
            if pages and ours != APPLICATION:
                hint = "move it away, or give the model another name: its journal lies beside it."
                raise JournalError(f"{self.path} is another program's SQLite file; it is untouched", hint=hint)
            if version > FORMAT:
                found = f"{self.path} has the format {version}; this release reads up to format {FORMAT}"
                raise JournalError(found, hint="update tallybayes: a newer release has written it. It is untouched.")
            # fullfsync: macOS else leaves what was written in the memory that the disk itself has
            for pragma in ("secure_delete = ON", "synchronous = FULL", "fullfsync = ON", "foreign_keys = OFF"):
                self._db.execute(f"PRAGMA {pragma}")
            (mode,) = self._db.execute("PRAGMA journal_mode = WAL").fetchone()
            if mode != "wal":
                hint = "keep the model on a disk of this machine: network folders often have no shared memory."
                raise JournalError(f"{self.path} cannot have a write-ahead log here", hint=hint)
        if not pages:
            if not create:
                raise self._damaged("it is empty")
            with self._transaction():
                for statement in self.tables.split(";\n"):
                    self._db.execute(statement)
                self._db.execute(f"PRAGMA application_id = {APPLICATION}")
                self._db.execute(f"PRAGMA user_version = {FORMAT}")

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        with self._explained(), transaction(self._db, "IMMEDIATE"):
            yield

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """SQLite's errors as ours."""
        try:
            yield
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _error(self, error: sqlite3.Error) -> JournalError:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_NOTADB"):
            hint = "move it away, or give the model another name: its journal lies beside it."
            return JournalError(f"{self.path} is not a journal of tallybayes; it is untouched", hint=hint)
        if name.startswith("SQLITE_CORRUPT") or any(sign in str(error) for sign in ("no such table", "malformed")):
            return self._damaged(str(error))
        if isinstance(error, sqlite3.ProgrammingError):
            return self.closed()
        hint = "make room on the disk, or mend the rights of the file and its folder; nothing has been changed."
        if name.startswith("SQLITE_BUSY"):
            hint = "another program is writing to it: end that, then try again."
        return JournalError(f"{self.path}: {error}", hint=hint)

    def closed(self) -> JournalClosed:
        """The refusal of whatever comes too late."""
        hint = "ask again: another model may be open now. Desk.open(path) opens this one."
        return JournalClosed(f"{self.path} has been closed; nothing has been changed", hint=hint)

    def _damaged(self, how: str) -> JournalError:
        hint = "restore journal and model from one backup; the model file can be used by itself."
        return JournalError(f"{self.path} is damaged: {how}", hint=hint)
