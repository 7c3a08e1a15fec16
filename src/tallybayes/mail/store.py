"""The state of a mail filter in one SQLite file: the exact tally, and every learnt message, so that it can be unlearnt.

    sheets     column, sheet → a number, and the names of the amounts
    counts     sheet, slot, limb, class → one integer per amount: what `tb.count` of the learnt rows would give
    messages   message id → class, sender, fingerprint, and the row as it was counted

A change is one transaction: it adds a small tally to `counts` and writes `messages`, or does neither. SQLite's
rollback journal makes that true under kill -9, and its locks under several processes; threads that share a store take
turns. Counts that become zero leave the file, and `secure_delete` overwrites what leaves it. Check sums (`sums`) of
all of it are kept in the file and compared when it is opened.
"""

from __future__ import annotations

import json
import os
import sqlite3
import threading
import urllib.parse
import weakref
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from ..base import canon
from ..base.arrow import array
from ..base.errors import TallybayesError
from ..data.schema import Schema
from ..exact.counts import Counts
from ..exact.sheet import Sheet
from ..tally.tally import Tally
from .learnt import Learnt, pack, rows_tally, unpack
from .sums import add_to_sums, all_sums, counts_sum, damage, messages_sum, write_sums

APPLICATION = 0x54427935  # "TBy5" in the file's header, so that `file` and we can tell it from other SQLite files
FORMAT = 2
_WITHOUT_SUMS = 1  # the format before: it is read, and becomes the other with the next change
AMOUNTS = 4  # integers per entry; the sheets in use have one to three
CARRY_EVERY = 1 << 28  # a change adds less than 2^32 to an entry, so after this many it is below 2^60: time to carry
BUSY_SECONDS = 60.0
_ROWS = ""  # the rows of each class stand under this column

_TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE sheets (number INTEGER PRIMARY KEY, "column" TEXT NOT NULL, sheet TEXT NOT NULL, amounts TEXT NOT NULL,
  UNIQUE ("column", sheet));
CREATE TABLE counts (sheet INTEGER NOT NULL, slot TEXT NOT NULL, limb INTEGER NOT NULL, class TEXT NOT NULL,
  {", ".join(f"a{i} INTEGER NOT NULL CHECK (typeof(a{i}) = 'integer')" for i in range(AMOUNTS))},
  PRIMARY KEY (sheet, slot, limb, class)) WITHOUT ROWID;
CREATE TRIGGER zeros AFTER UPDATE ON counts WHEN {" AND ".join(f"NEW.a{i} = 0" for i in range(AMOUNTS))} BEGIN
  DELETE FROM counts WHERE sheet = NEW.sheet AND slot = NEW.slot AND limb = NEW.limb AND class = NEW.class; END;
CREATE TABLE messages (id TEXT PRIMARY KEY, class TEXT NOT NULL, sender TEXT NOT NULL, fingerprint TEXT NOT NULL,
  row BLOB NOT NULL);
CREATE INDEX senders ON messages (sender, class);
CREATE INDEX fingerprints ON messages (fingerprint);
"""
_ADD = (
    f"INSERT INTO counts VALUES (?, ?, ?, ?{', ?' * AMOUNTS}) ON CONFLICT (sheet, slot, limb, class) DO UPDATE SET "
    + ", ".join(f"a{i} = a{i} + excluded.a{i}" for i in range(AMOUNTS))
)
_DAMAGE = ("no such table", "no such column", "Could not decode", "malformed")  # SQLite's words for it, and Python's
_LEARNT = "SELECT id, class, row, sender, fingerprint FROM messages"


class StateError(TallybayesError):
    """The state file of a filter cannot be read or written; it is as it was."""


class Store(AbstractContextManager["Store"]):
    """An open state file. With a schema, a file that does not exist yet is made.

    `settings` are kept in a new file for whoever opens it next; `store.settings` are those of the file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        schema: Schema | None = None,
        settings: Mapping[str, Any] | None = None,
        *,
        busy_seconds: float = BUSY_SECONDS,
    ) -> None:
        self.path = os.fspath(path)
        self._turn = threading.RLock()  # one thread at a time: a transaction belongs to the connection
        self._prepare_file(create=schema is not None)
        with self._explained():
            address = f"file:{urllib.parse.quote(os.path.abspath(self.path))}?mode=rw"
            self._db = sqlite3.connect(
                address, uri=True, isolation_level=None, timeout=busy_seconds, check_same_thread=False
            )
            weakref.finalize(self, self._db.close)  # a store that nobody closed goes with its last use, in any thread
        try:
            with self._explained():
                # EXTRA: an acknowledged change outlives a power cut; 64 MB: a batch locks readers out only at its end
                for pragma in ("secure_delete = ON", "synchronous = EXTRA", "cache_size = -65536"):
                    self._db.execute(f"PRAGMA {pragma}")
            if self._is_new():
                self._create(schema, settings or {})
            self._check()
            self.schema, self.settings = self._read_meta()
        except BaseException:
            self._db.close()
            raise

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- reading

    def tally(self) -> Tally:
        """The exact tally of all learnt messages, limbs carried: equal to `tb.count` of their rows."""
        with self._transaction():
            tally = self._load()
            learnt = self.learnt()
        if dict(zip(tally.classes, tally.class_weights().tolist(), strict=True)) != learnt:
            raise self._damaged("its counts and its messages disagree")
        return tally

    def learnt(self) -> dict[str, int]:
        """How many messages of each class have been learnt."""
        with self._explained():
            return dict(self._db.execute("SELECT class, count(*) FROM messages GROUP BY class"))

    def messages(self) -> Iterator[Learnt]:
        """Every learnt message, by id."""
        with self._explained():
            found = self._db.execute(f"{_LEARNT} ORDER BY id").fetchall()
        yield from map(self._unpacked, found)

    def find(self, message: str) -> Learnt | None:
        """The learnt message of this id, or None."""
        with self._explained():
            found = self._db.execute(f"{_LEARNT} WHERE id = ?", (_text(message),)).fetchone()
        return None if found is None else self._unpacked(found)

    def sender_known(self, sender: str, label: str, besides: str = "") -> bool:
        """Whether a message of this class was learnt from this sender, other than the message `besides`."""
        return self._any("sender = ? AND class = ?", sender, label, besides=besides)

    def seen_before(self, fingerprint: str, besides: str = "") -> bool:
        """Whether a message with this fingerprint was learnt, other than the message `besides`."""
        return self._any("fingerprint = ?", fingerprint, besides=besides)

    @property
    def version(self) -> tuple[int, int]:
        """A value that changes whenever this or another process changes the state."""
        return self._pragma("data_version"), self._db.total_changes

    # ---- writing

    @contextmanager
    def change(self) -> Iterator[StateChange]:
        """A transaction to learn and forget in: all of it happens, or, after an error or a kill, nothing."""
        with self._transaction("IMMEDIATE"):
            change = StateChange(self)
            yield change
            change.write()

    def add(self, tally: Tally) -> int:
        """Add a (signed) tally to the counts, inside a change only; by how much their check sum grows."""
        grown = 0
        for column, counts in [(_ROWS, tally.labels), *tally.columns.items()]:
            for name, sheet in counts.sheets.items():
                grown += self._add_sheet(column, name, sheet.in_order, tally.classes)
        additions = int(self._meta("additions")) + 1
        self._set_meta("additions", str(additions % CARRY_EVERY))
        if additions >= CARRY_EVERY:
            carried = self._load()
            self._db.execute("DELETE FROM counts")
            self.add(carried)
        return grown

    def _add_sheet(self, column: str, name: str, sheet: Sheet, classes: Sequence[str]) -> int:
        known = (column, name, json.dumps(sheet.amounts))
        self._db.execute('INSERT INTO sheets ("column", sheet, amounts) VALUES (?, ?, ?) ON CONFLICT DO NOTHING', known)
        find = 'SELECT number FROM sheets WHERE "column" = ? AND sheet = ? AND amounts = ?'
        (number,) = self._db.execute(find, known).fetchone()
        slots = sheet.slot_names
        amounts = np.pad(sheet.amount, ((0, 0), (0, AMOUNTS - len(sheet.amounts)))).tolist()
        places = zip(sheet.slot.tolist(), sheet.limb.tolist(), sheet.label.tolist(), amounts, strict=True)
        entries = [(number, slots[s], limb, classes[c], *a) for s, limb, c, a in places]
        self._db.executemany(_ADD, entries)
        return counts_sum(entries)

    # ---- inside

    def _load(self) -> Tally:
        found = self._db.execute('SELECT number, "column", sheet, amounts FROM sheets').fetchall()
        classes = [c for (c,) in self._db.execute("SELECT DISTINCT class FROM messages ORDER BY class")]
        sheets: dict[str, dict[str, Sheet]] = {name: {} for name in (_ROWS, *self.schema.names)}
        for number, column, name, amounts in found:
            entries = self._db.execute("SELECT * FROM counts WHERE sheet = ?", (number,)).fetchall()
            try:
                sheet = _sheet(tuple(json.loads(amounts)), classes, entries)
                if len(sheet):
                    sheets[column][name] = sheet
            except (KeyError, ValueError) as error:
                raise self._damaged(f"{error!r} in column {column!r}") from None
        labels = Counts(sheets.pop(_ROWS))
        return Tally(self.schema, tuple(classes), labels, {name: Counts(s) for name, s in sheets.items()})

    def _any(self, condition: str, value: str, *more: str, besides: str) -> bool:
        if not value:
            return False
        query = f"SELECT 1 FROM messages WHERE {condition} AND id <> ? LIMIT 1"
        with self._explained():
            return self._db.execute(query, (_text(value), *more, _text(besides))).fetchone() is not None

    def _unpacked(self, found: tuple[Any, ...]) -> Learnt:
        message, label, row, sender, fingerprint = found
        try:
            return Learnt(message, label, unpack(row), sender, fingerprint)
        except (ValueError, TypeError, zlib.error) as error:
            raise self._damaged(f"the row of message {canon.printable(message)} cannot be read: {error}") from None

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
        if version not in (_WITHOUT_SUMS, FORMAT):
            found = f"{self.path} has the format {version}; this release reads format {FORMAT}"
            raise StateError(found, hint="update tallybayes, or train a new file.")
        return False

    def _pragma(self, name: str) -> int:
        with self._explained():
            return int(self._db.execute(f"PRAGMA {name}").fetchone()[0])

    def _create(self, schema: Schema | None, settings: Mapping[str, Any]) -> None:
        if schema is None:
            raise StateError(f"{self.path} is empty", hint="train first: tallybayes mail train STATE PLACE…")
        with self._transaction("IMMEDIATE"):
            if self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
                return  # another process was faster
            for statement in _TABLES.split(";\n"):
                self._db.execute(statement)
            for key, value in (("schema", schema.to_dict()), ("settings", dict(settings)), ("additions", 0)):
                self._set_meta(key, json.dumps(value))
            write_sums(self._db, all_sums(self._db))
            self._db.execute(f"PRAGMA application_id = {APPLICATION}")
            self._db.execute(f"PRAGMA user_version = {FORMAT}")

    def _check(self) -> None:
        """Refuse a file in which a bit has changed since it was written."""
        with self._transaction():
            found = None if self._pragma("user_version") == _WITHOUT_SUMS else damage(self._db)
        if found is not None:
            raise self._damaged(found)

    def _read_meta(self) -> tuple[Schema, dict[str, Any]]:
        with self._explained():
            schema, settings = self._meta("schema"), self._meta("settings")
        try:
            return Schema.from_dict(json.loads(schema)), dict(json.loads(settings))
        except (AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
            raise self._damaged(f"its schema cannot be read: {error}") from None

    def _meta(self, key: str) -> str:
        found = self._db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone()
        if found is None:
            raise self._damaged(f"it has no {key}")
        return str(found[0])

    def _set_meta(self, key: str, value: str) -> None:
        self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))

    @contextmanager
    def _transaction(self, kind: str = "DEFERRED") -> Iterator[None]:
        with self._explained():
            self._db.execute(f"BEGIN {kind}")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:  # after a full disk SQLite has rolled back by itself
                    self._db.execute("ROLLBACK")
                raise

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

    def _foreign(self, what: str) -> StateError:
        return StateError(f"{self.path} {what}; it is untouched", hint="name a new file, or the one you trained.")

    def _damaged(self, how: str) -> StateError:
        return StateError(f"{self.path} is damaged: {how}", hint="restore it from a backup, or train a new file.")


@dataclass(frozen=True)
class StateChange:
    """What one transaction learns and forgets: messages at once, their counts as one tally at the end."""

    store: Store
    added: list[Learnt] = field(default_factory=list)
    removed: list[Learnt] = field(default_factory=list)
    grown: list[int] = field(default_factory=list)  # what is added to the check sum of the messages

    def learn(self, message: Learnt) -> None:
        """Remember a message and count its row; its id must not be known."""
        packed = pack(message.row)
        texts = [_text(t) for t in (message.id, message.label, message.sender, message.fingerprint)]
        self.store._db.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?)", (*texts, packed))
        self.grown.append(messages_sum([(*texts, packed)]))
        # what is counted is what comes back, so that forgetting subtracts exactly that
        self.added.append(Learnt(texts[0], texts[1], unpack(packed), texts[2], texts[3]))

    def forget(self, message: str) -> Learnt | None:
        """Take back a learnt message and its counts; None if there is none of this id."""
        found = self.store.find(message)
        if found is not None:
            kept = self.store._db.execute("SELECT * FROM messages WHERE id = ?", (found.id,))
            self.grown.append(-messages_sum(kept.fetchall()))
            self.store._db.execute("DELETE FROM messages WHERE id = ?", (found.id,))
            self.removed.append(found)
        return found

    def write(self) -> None:
        """Add what was learnt and subtract what was forgotten."""
        if not (self.added or self.removed):
            return
        store = self.store
        grown = store.add(rows_tally(store.schema, self.added) - rows_tally(store.schema, self.removed))
        for label in {m.label for m in self.removed} - set(store.learnt()):
            # the numbers are zero now, but after a carry not yet limb by limb
            store._db.execute("DELETE FROM counts WHERE class = ?", (label,))
        if store._pragma("user_version") == FORMAT:
            add_to_sums(store._db, counts=grown, messages=sum(self.grown))
        else:
            write_sums(store._db, all_sums(store._db))
            store._db.execute(f"PRAGMA user_version = {FORMAT}")


def _text(value: str) -> str:
    return str(canon.text(value))


def _sheet(amounts: tuple[str, ...], classes: Sequence[str], entries: Sequence[tuple[Any, ...]]) -> Sheet:
    """The sheet of some entries of the table, its limbs carried and zeros left out."""
    if not entries or not classes:
        return Sheet.empty(amounts)
    _, names, limbs, labels, *numbers = zip(*entries, strict=True)
    slots, order = {name: i for i, name in enumerate(dict.fromkeys(names))}, {c: i for i, c in enumerate(classes)}
    keys = ([slots[n] for n in names], limbs, [order[c] for c in labels])
    slot, limb, label = (np.array(key, dtype=np.int64) for key in keys)
    amount = np.array(numbers[: len(amounts)], dtype=np.int64).T
    return Sheet.of_entries(amounts, array(list(slots), pa.string()), slot, limb, label, amount)
