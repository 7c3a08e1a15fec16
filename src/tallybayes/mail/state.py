"""An open state file, as far as one answer needs it: found, checked and read place by place, without NumPy.

`Store` adds the writing, and the reading of everything at once.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import urllib.parse
import weakref
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, TypeVar

from ..base.disk import transaction
from ..base.errors import TallybayesError
from ..base.wording import encodable, printable
from .learnt import Learnt, pack, unpack
from .message import Message
from .sums import FORMAT, OTHERS, WITHOUT_SUMS, counts_sum, messages_sum, place, rest_is_whole, said

APPLICATION = 0x54427935  # "TBy5" in the file's header, so that `file` and we can tell it from other SQLite files
BUSY_SECONDS = 60.0
ROWS, ROWS_SHEET = "", "rows"  # the column and the sheet of the rows of each class
KNOWN = 0  # the sheet of senders and fingerprints; −n is the sheet of what sheet n adds up to
SENDER, FINGERPRINT = "sender ", "fingerprint "  # before the slots of KNOWN
SLOTS = "slots"  # on a sheet −n, how many slots sheet n has; its amounts by class stand under ""
PLAN = "plan"  # of the table `meta`: how to answer, see `plan`
_DAMAGE = ("no such table", "no such column", "Could not decode", "malformed")  # SQLite's words for it, and Python's
LEARNT = "SELECT id, class, sender, fingerprint, row FROM messages"
_AT_ONCE = 500  # values in one query

Place = tuple[int, str]  # sheet and slot
_T = TypeVar("_T")


class StateError(TallybayesError):
    """The state file of a filter cannot be read or written; it is as it was."""


class LongWay(Exception):
    """Something that only the reading of everything can answer."""


class State:
    """An open state file. What is in it is checked as it is read."""

    def __init__(
        self, path: str | os.PathLike[str], *, create: bool = False, busy_seconds: float = BUSY_SECONDS
    ) -> None:
        self.path = os.fspath(path)
        self._turn = threading.RLock()  # one thread at a time: a transaction belongs to the connection
        self._prepare_file(create)
        with self._explained():
            address = f"file:{urllib.parse.quote(os.path.abspath(self.path))}?mode=rw"
            self._db = sqlite3.connect(
                address, uri=True, isolation_level=None, timeout=busy_seconds, check_same_thread=False
            )
            weakref.finalize(self, self._db.close)  # a state that nobody closed goes with its last use, in any thread
        try:
            self._begin()
        except BaseException:
            self._db.close()
            raise

    def _begin(self) -> None:
        """What is done once, after the file was found."""
        if self._is_new():
            raise self._untrained()

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    def __enter__(self: _T) -> _T:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- reading

    @property
    def format(self) -> int:
        """The format that the file has; the next change brings an older one to ours."""
        return self._pragma("user_version")

    @property
    def version(self) -> tuple[int, int]:
        """A value that changes whenever this or another process changes the state."""
        return self._pragma("data_version"), self._db.total_changes

    @contextmanager
    def reading(self) -> Iterator[str]:
        """A transaction to read in; a text that is another after every change, by whichever process.

        `LongWay` of a file in an older format, which has not what an answer needs.
        """
        with self._transaction():
            if self.format != FORMAT:
                raise LongWay
            yield said(self._db)

    def told(self, key: str) -> Any:
        """What the file says of itself under a key, checked; None if nothing. In a transaction only."""
        if not rest_is_whole(self._db):
            raise self._damaged(OTHERS)
        found = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        try:
            return None if found is None else json.loads(found[0])
        except (RecursionError, TypeError, ValueError) as error:
            raise self._damaged(f"its {key} cannot be read: {error}") from None

    def sheet_of(self, column: str, sheet: str) -> int | None:
        """The number of a sheet."""
        query = 'SELECT number FROM sheets WHERE "column" = ? AND sheet = ?'
        found = self._db.execute(query, (column, sheet)).fetchone()
        return None if found is None else int(found[0])

    def counted(self, places: Iterable[Place]) -> dict[Place, dict[str, int]]:
        """The first amount of each place by class, held against the check sums. In a transaction only."""
        found: dict[Place, list[tuple[Any, ...]]] = {place: [] for place in places}
        slots: dict[int, list[str]] = {}
        for sheet, slot in found:
            slots.setdefault(sheet, []).append(slot)
        for sheet, names in slots.items():
            for entry in self._several(f"SELECT * FROM counts WHERE sheet = {sheet:d} AND slot IN", names):
                if (sheet, entry[1]) not in found:
                    raise self._damaged(OTHERS)
                found[sheet, entry[1]].append(entry)
        numbers = {where: place(*where) for where in found}
        sums = dict(self._several("SELECT place, sum FROM checks WHERE place IN", numbers.values()))
        for where, entries in found.items():
            try:
                whole = counts_sum(entries) == sums.get(numbers[where], 0)
            except ValueError as error:
                raise self._damaged(str(error)) from None
            if not whole:
                raise self._damaged(OTHERS)
            if any(entry[2] for entry in entries):
                raise LongWay  # a count of 2³² and more
        return {where: {entry[3]: entry[4] for entry in entries} for where, entries in found.items()}

    def _several(self, query: str, values: Iterable[Any]) -> Iterator[tuple[Any, ...]]:
        """The rows of a query that ends in IN."""
        each = iter(values)
        while some := list(islice(each, _AT_ONCE)):
            yield from self._db.execute(f"{query} ({','.join('?' * len(some))})", some)

    def find(self, message: str, *, checked: bool = False) -> Learnt | None:
        """The learnt message of this id, or None; `checked` holds the answer against the check sums."""
        with self._explained():
            found = self._db.execute(f"{LEARNT} WHERE id = ?", (encodable(message),)).fetchone()
            if checked:
                total = 0 if found is None else messages_sum([found])
                key = (place(None, encodable(message)),)
                kept = self._db.execute("SELECT sum FROM checks WHERE place = ?", key).fetchone()
                if total != (0 if kept is None else kept[0]):
                    raise self._damaged(OTHERS)
        return None if found is None else self._unpacked(found)

    def find_message(self, message: Message, *, checked: bool = False) -> Learnt | None:
        """The message as it was learnt, or None. What a file of an older release knows by its Message-ID alone is this
        message only if it says the same: anybody can write another's Message-ID.
        """
        found = self.find(message.id, checked=checked)
        if found is not None or not message.header_id:
            return found
        older = self.find(message.header_id, checked=checked)
        if older is None or older.sender != encodable(message.sender):
            return None
        read = unpack(pack(message.row))
        return older if all(older.row.get(name) == read[name] for name in ("subject", "body", "hour")) else None

    def known(self, message: Message, label: str) -> tuple[bool, bool]:
        """Whether a message of this class was learnt from its sender, and one like it of any class: others than itself.

        The same as the messages say to `Store.facts`, from counts that can be checked. In a transaction only.
        """
        own = self.find_message(message, checked=True)
        sender, like = SENDER + encodable(message.sender), FINGERPRINT + encodable(message.fingerprint)
        counts = self.counted([(KNOWN, sender), (KNOWN, like)])
        senders, likes = counts[KNOWN, sender].get(label, 0), sum(counts[KNOWN, like].values())
        if own is not None:
            senders -= (SENDER + own.sender, own.label) == (sender, label)
            likes -= FINGERPRINT + own.fingerprint == like
        return senders > 0, likes > 0

    # ---- inside

    def _unpacked(self, found: tuple[Any, ...]) -> Learnt:
        message, label, sender, fingerprint, row = found
        try:
            return Learnt(message, label, unpack(row), sender, fingerprint)
        except (ValueError, TypeError, zlib.error) as error:
            raise self._damaged(f"the row of message {printable(message)} cannot be read: {error}") from None

    def _prepare_file(self, create: bool) -> None:
        """Make an empty file that only its owner can read: learnt mail is private."""
        if os.path.isdir(self.path):
            raise StateError(f"{self.path} is a folder", hint="name a file in it.")
        if os.path.exists(self.path):
            return
        if not create:
            raise StateError(f"there is no file {self.path}", hint="train first: tallybayes mail train STATE PLACE…")
        try:
            os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        except FileExistsError:
            pass  # another process was faster
        except OSError as error:
            raise StateError(f"{self.path}: {error.strerror}", hint="name a file in a folder of yours.") from error

    def _is_new(self) -> bool:
        """Whether the file is empty; one that is not ours is refused, and never written to."""
        if self._pragma("page_count") == 0:
            if os.path.getsize(self.path) == 0:
                return True
            if self._pragma("page_count") == 0:  # or else another process has just made it
                raise self._foreign("is not a state file of tallybayes mail")
        ours, version = self._pragma("application_id"), self._pragma("user_version")
        if ours != APPLICATION:
            raise self._foreign("is another program's SQLite file")
        if not WITHOUT_SUMS <= version <= FORMAT:
            found = f"{self.path} has the format {version}; this release reads format {FORMAT}"
            raise StateError(found, hint="update tallybayes, or train a new file.")
        return False

    def _pragma(self, name: str) -> int:
        with self._explained():
            return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])

    @contextmanager
    def _transaction(self, kind: str = "DEFERRED") -> Iterator[None]:
        with self._explained(), transaction(self._db, kind):
            yield

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """This thread's turn, and SQLite's errors as ours."""
        try:
            with self._turn:
                yield
        except sqlite3.Error as error:
            raise self._error(error) from error
        except UnicodeDecodeError as error:  # of a name that SQLite quotes in its own error
            raise self._damaged(str(error)) from error

    def _error(self, error: sqlite3.Error) -> StateError:
        name = getattr(error, "sqlite_errorname", "")
        if name.startswith("SQLITE_NOTADB"):
            return self._foreign("is not a state file of tallybayes mail")
        if name.startswith("SQLITE_CORRUPT") or any(sign in str(error) for sign in _DAMAGE):
            return self._damaged(str(error))
        hint = "make room on the disk, or mend the rights of the file and its folder; nothing has been changed."
        if isinstance(error, sqlite3.ProgrammingError):
            hint = "it has been closed; open it again: Filter(path)."
        if name.startswith("SQLITE_BUSY"):
            hint = "another process is writing; try again, or end it if it hangs."
        return StateError(f"{self.path}: {error}", hint=hint)

    def _untrained(self) -> StateError:
        return StateError(f"{self.path} is empty", hint="train first: tallybayes mail train STATE PLACE…")

    def _foreign(self, what: str) -> StateError:
        return StateError(f"{self.path} {what}; it is untouched", hint="name a new file, or the one you trained.")

    def _damaged(self, how: str) -> StateError:
        return StateError(f"{self.path} is damaged: {how}", hint="restore it from a backup, or train a new file.")
