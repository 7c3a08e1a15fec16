"""The journal of a served model: one SQLite file beside it, with every row it was taught and every operation.

    rows         id → the row as JSON, its standing, and a hash of what is counted of it
    operations   number → what was asked, by whom, when, and the digests of the counts before and after
    changes      operation, row → its standing before and after: what an undo turns round
    meta         what the file says of itself

A standing is "=LABEL" for a row that is counted, or "pool", "skipped", "gone". An operation is one transaction, on the
disk before it is acknowledged: a write-ahead log with `synchronous = FULL`, so that readers, who have a connection of
their own, never wait for the writer. `erase` leaves no byte of a row: `secure_delete` overwrites, VACUUM writes every
page anew from what is left, and the log is cut to nothing. Whether all of that was done is noted in the file, and made
up for when it is next opened.
"""

from __future__ import annotations

import datetime as dt
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from ..base.errors import DataError, TallybayesError, excerpt
from ..base.wording import printable
from .journal_file import JournalError, JournalFile

POOL, SKIPPED, GONE, COUNTED = "pool", "skipped", "gone", "="  # a label follows the last
MOST_ID = (1 << 63) - 1  # SQLite's largest whole number
_AT_ONCE = 500  # values in one query
_SCRUB, _ERASING, _BEGINNING = "scrub", "erasing", "beginning"  # keys of meta

_TABLES = f"""
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE rows (id INTEGER PRIMARY KEY AUTOINCREMENT, content TEXT NOT NULL, standing TEXT NOT NULL,
  key BLOB NOT NULL);
CREATE INDEX keys ON rows (key);
CREATE INDEX waiting ON rows (id) WHERE standing = '{POOL}';
CREATE TABLE operations (number INTEGER PRIMARY KEY, kind TEXT NOT NULL, who TEXT NOT NULL, time TEXT NOT NULL,
  rows INTEGER NOT NULL, before TEXT NOT NULL, after TEXT NOT NULL, undoes INTEGER, request TEXT);
CREATE INDEX undoing ON operations (undoes) WHERE undoes IS NOT NULL;
CREATE INDEX states ON operations (after);
CREATE UNIQUE INDEX requests ON operations (request) WHERE request IS NOT NULL;
CREATE TABLE changes (operation INTEGER NOT NULL, row INTEGER NOT NULL, was TEXT NOT NULL, became TEXT NOT NULL,
  PRIMARY KEY (operation, row)) WITHOUT ROWID;
CREATE INDEX touched ON changes (row)
"""
_OPERATIONS = """SELECT number, kind, who, time, rows, before, after, undoes,
  (SELECT max(number) FROM operations AS later WHERE later.undoes = operations.number), request
  FROM operations"""
_ROWS = "SELECT id, content, standing, key FROM rows"


class CannotUndo(TallybayesError, ValueError):
    """An operation cannot be undone, and why; everything is as it was."""


class NotInJournal(DataError):
    """There is no operation or no row of this number."""


@dataclass(frozen=True)
class Operation:
    """One line of the journal; `digest` is that of the counts after it, "" where an erasure has made it unknown."""

    number: int
    kind: str  # begin, open, learn, pool, label, skip, forget, relabel, undo, erase
    who: str
    time: str  # in UTC, as 2024-05-31T18:00:00.000Z
    rows: int
    digest_before: str
    digest: str
    undoes: int | None = None
    undone_by: int | None = None  # the last operation that undid it, which may have been undone itself
    request: str | None = None  # a hash by which the same request is known when it comes again


@dataclass(frozen=True)
class KeptRow:
    """A row of the journal: what it holds besides its label, and its standing."""

    id: int  # 0 for one that is not in the journal yet
    values: Mapping[str, Any]
    standing: str
    key: bytes

    @property
    def label(self) -> str | None:
        """The class under which it is counted; None if it is not."""
        return label_in(self.standing)

    @property
    def counted(self) -> bool:
        """Whether the model has counted it."""
        return self.label is not None


@dataclass(frozen=True)
class RowChange:
    """What an operation does to a row: one standing becomes another."""

    row: KeptRow
    was: str
    became: str


def label_in(standing: str) -> str | None:
    """The class under which a row of this standing is counted; None if it is not."""
    return standing[1:] if standing.startswith(COUNTED) else None


def now() -> str:
    """The time as operations have it."""
    return dt.datetime.now(dt.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class Journal(JournalFile):
    """An open journal; `create` makes one where there is none. Writing is for one thread of one process at a time."""

    tables = _TABLES

    # ---- reading

    def last(self) -> Operation | None:
        """The newest operation; None in a journal that is being made."""
        return next(iter(self.operations(limit=1)), None)

    def operations(self, before: int | None = None, limit: int = 100) -> list[Operation]:
        """Operations, the newest first, of those that are older than `before`."""
        top = MOST_ID if before is None else _whole(before, "an operation")
        return self._operations("number < ? ORDER BY number DESC LIMIT ?", top, max(limit, 0))

    def operation(self, number: int) -> Operation:
        """The operation of a number; refused if there is none."""
        found = self._operations("number = ?", _whole(number, "an operation"))
        if not found:
            raise NotInJournal(f"there is no operation {number}", hint="look at the list of operations.")
        return found[0]

    def operations_on(self, row: int, limit: int = 100) -> list[Operation]:
        """The operations that have changed a row, the newest first."""
        where = "number IN (SELECT operation FROM changes WHERE row = ?) ORDER BY number DESC LIMIT ?"
        return self._operations(where, _whole(row, "a row"), max(limit, 0))

    def labels_since(self, time: str) -> int:
        """How many labels were given from this time on and not undone; only operations since then are looked at."""
        older = "SELECT coalesce((SELECT number FROM operations WHERE time < ? ORDER BY number DESC LIMIT 1), 0)"
        undone = "SELECT 1 FROM operations AS later WHERE later.undoes = operations.number"
        query = f"SELECT count(*) FROM operations WHERE number > ({older}) AND kind = 'label' AND NOT EXISTS ({undone})"
        return int(self._read(query, (time,))[0][0])

    def at(self, digest: str) -> Operation | None:
        """The last operation that left counts of this digest; None if none did."""
        return next(iter(self._operations("after = ? ORDER BY number DESC LIMIT 1", digest)), None)

    def requested(self, request: str) -> Operation | None:
        """The operation that a request has led to; None if it has not come before."""
        return next(iter(self._operations("request = ?", request)), None)

    def rows(self, ids: Sequence[int]) -> list[KeptRow]:
        """The rows of these ids, in their order; refused if one is not there."""
        wanted = [_whole(each, "a row") for each in ids]
        found = self.rows_there(wanted)
        absent = [each for each in dict.fromkeys(wanted) if each not in found]
        if absent:
            raise NotInJournal(
                f"the journal has no row {excerpt(absent)}",
                hint="take an id that a search or the pool has given; a row that was erased has none.",
            )
        return [found[each] for each in wanted]

    def rows_there(self, ids: Iterable[int]) -> dict[int, KeptRow]:
        """The rows of these ids that have not been erased."""
        out = {}
        for some in _in_pieces(ids):
            for row in map(self._row, self._read(f"{_ROWS} WHERE id IN ({','.join('?' * len(some))})", some)):
                out[row.id] = row
        return out

    def pool(self, limit: int = 100, after: int = 0) -> list[KeptRow]:
        """Rows that wait for a label, by id."""
        query = f"{_ROWS} WHERE standing = '{POOL}' AND id > ? ORDER BY id LIMIT ?"
        return [self._row(each) for each in self._read(query, (_whole(after, "a row"), max(limit, 0)))]

    def pool_size(self) -> int:
        """How many rows wait for a label."""
        return int(self._read(f"SELECT count(*) FROM rows WHERE standing = '{POOL}'")[0][0])

    def ever_in_pool(self) -> list[tuple[int, str]]:
        """Id and standing of every row that waits for a label or once did."""
        once = f"SELECT row FROM changes WHERE was = '{POOL}'"
        return self._read(f"SELECT id, standing FROM rows WHERE standing = '{POOL}' OR id IN ({once})")

    def alike(self, key: bytes) -> list[KeptRow]:
        """The rows of which the same is counted, by id."""
        return [self._row(each) for each in self._read(f"{_ROWS} WHERE key = ? ORDER BY id", (key,))]

    def all_rows(self, containing: str = "") -> Iterator[KeptRow]:
        """Every row, by id, some at a time; or those alone in whose JSON this text stands somewhere."""
        query, last = f"{_ROWS} WHERE id > ? AND (? = '' OR instr(content, ?)) ORDER BY id LIMIT {_AT_ONCE}", 0
        while found := self._read(query, (last, containing, containing)):
            last = found[-1][0]
            yield from map(self._row, found)

    def changes(self, operation: int, after: int = 0, limit: int = -1) -> list[tuple[int, str, str]]:
        """The rows that an operation has changed, from an id on: their ids, and standings before and after."""
        query = "SELECT row, was, became FROM changes WHERE operation = ? AND row > ? ORDER BY row LIMIT ?"
        return self._read(query, (operation, after, limit))

    def net_changes(self, since: int, until: int = MOST_ID, *, turned_back: bool = False) -> list[tuple[int, str, str]]:
        """What the operations after this one, up to another, made of each row; of those that are as before if asked."""
        out: dict[int, tuple[str, str]] = {}
        query = "SELECT row, was, became FROM changes WHERE operation > ? AND operation <= ? ORDER BY operation"
        for row, was, became in self._read(query, (since, until)):
            out[row] = out.get(row, (was, ""))[0], became
        return [(row, was, became) for row, (was, became) in out.items() if turned_back or was != became]

    def last_change_of(self, row: int) -> int:
        """The last operation that changed a row that was ever changed."""
        found: int = self._read("SELECT max(operation) FROM changes WHERE row = ?", (row,))[0][0]
        return found

    def turned_round(self, undone: Operation) -> list[RowChange]:
        """What undoes an operation; refused where one of its rows is no longer as it left it."""
        changes = self.changes(undone.number)
        rows = self.rows_there(row for row, *_ in changes)
        out = []
        for number, was, became in changes:
            row = rows.get(number)
            if row is None:
                if was.startswith(COUNTED):
                    raise CannotUndo(
                        f"operation {undone.number} cannot be undone: row {number} would come back, and was erased",
                        hint="what was erased is for good; learn the other rows anew, if they are meant.",
                    )
                continue  # it is not counted, as before the operation
            if row.standing != became:
                later = self.last_change_of(number)
                if self.operation(later).undoes == undone.number:
                    found = f"operation {undone.number} is undone already, by operation {later}"
                    raise CannotUndo(found, hint=f"undo operation {later} to have it back.")
                raise CannotUndo(
                    f"operation {undone.number} cannot be undone: row {number} was changed since, by operation {later}",
                    hint=f"undo operation {later} first, or relabel or forget the row itself.",
                )
            out.append(RowChange(row, became, was))
        if not out:
            raise CannotUndo(
                f"operation {undone.number} has no rows any more: they were erased", hint="there is nothing to undo."
            )
        return out

    def labels_of(self, ids: Sequence[int]) -> dict[int, set[str]]:
        """Every label under which these rows were ever counted."""
        out: dict[int, set[str]] = {each: set() for each in ids}
        for some in _in_pieces(ids):
            query = f"SELECT row, was, became FROM changes WHERE row IN ({','.join('?' * len(some))})"
            for row, *standings in self._read(query, some):
                out[row] |= {s[1:] for s in standings if s.startswith(COUNTED)}
        return out

    def counted_rows(self) -> int:
        """How many rows of the journal are counted."""
        query = f"SELECT count(*) FROM rows WHERE substr(standing, 1, 1) = '{COUNTED}'"
        return int(self._read(query)[0][0])

    # ---- writing

    def write(self, operation: Operation, changes: Iterable[RowChange] = ()) -> list[int]:
        """An operation and what it does, in one transaction that is on the disk when this returns; the rows' ids."""
        with self._transaction():
            self._note(operation)
            ids = []
            for change in changes:
                row = change.row
                if row.id:
                    self._db.execute("UPDATE rows SET standing = ? WHERE id = ?", (change.became, row.id))
                ids.append(row.id or self._add(row, change.became))
                written = (operation.number, ids[-1], change.was, change.became)
                self._db.execute("INSERT INTO changes VALUES (?, ?, ?, ?)", written)
        return ids

    def fill(self, rows: Iterable[KeptRow]) -> None:
        """The rows that a new journal begins with; it counts as being made until `begun`."""
        with self._transaction():
            self._set(_BEGINNING, "1")
            for row in rows:
                self._add(row, row.standing)

    def begun(self, operation: Operation) -> None:
        """Note the first operation, with which the journal is made."""
        with self._transaction():
            self._note(operation)
            self._set(_BEGINNING, None)

    @property
    def beginning(self) -> bool:
        """Whether whoever was making it did not get to the end."""
        return self._get(_BEGINNING) is not None or self.last() is None

    def announce(self, erasure: Operation, ids: Sequence[int]) -> None:
        """Note that the model file is about to be one without these rows; nothing is erased yet."""
        with self._transaction():
            self._set(_ERASING, json.dumps([vars(erasure), [*ids]]))

    def announced(self) -> tuple[Operation, list[int]] | None:
        """An erasure that was announced and not ended."""
        found = self._get(_ERASING)
        if found is None:
            return None
        operation, ids = json.loads(found)
        return Operation(**operation), ids

    def withdraw(self) -> None:
        """The erasure that was announced does not take place."""
        with self._transaction():
            self._set(_ERASING, None)

    def erase(self, operation: Operation, ids: Sequence[int]) -> None:
        """Wipe rows, and every digest of counts or requests that held them: a guess at a row could be tried upon it."""
        with self._transaction():
            for some in _in_pieces(ids):
                among = f"row IN ({','.join('?' * len(some))})"
                for side in ("was", "became"):
                    blank = f"UPDATE changes SET {side} = '{COUNTED}' WHERE substr({side}, 1, 1) = '{COUNTED}'"
                    self._db.execute(f"{blank} AND {among}", some)
                self._db.execute(f"DELETE FROM rows WHERE {among.replace('row', 'id', 1)}", some)
            self._db.execute("UPDATE operations SET before = '', after = '', request = NULL")
            self._note(operation)
            self._set(_ERASING, None)
            self._set(_SCRUB, "1")
        self.scrub()

    def scrub(self) -> None:
        """Leave no byte of rows that were wiped, in the file or in its log; does nothing where that was done."""
        if self._get(_SCRUB) is None:
            return
        with self._reading:  # a reader would keep the log from being cut
            try:
                with self._explained():
                    self._db.execute("VACUUM")
                self.cut_log()
            except JournalError as error:
                hint = "make room on the disk, then open the model again: that overwrites them."
                found = f"the rows are erased, but their bytes are not overwritten yet: {error.found}"
                raise JournalError(found, hint=hint) from error
            with self._transaction():
                self._set(_SCRUB, None)

    def cut_log(self) -> None:
        """Bring the log into the file and cut it to nothing."""
        with self._reading, self._explained():
            (busy, *_) = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
        if busy:
            raise JournalError(f"{self.path} is being read by another program", hint="end it, then try again.")

    # ---- inside

    def _operations(self, where: str, *values: Any) -> list[Operation]:
        return [Operation(*each) for each in self._read(f"{_OPERATIONS} WHERE {where}", values)]

    def _note(self, operation: Operation) -> None:
        given = (operation.number, operation.kind, operation.who, operation.time, operation.rows)
        rest = (operation.digest_before, operation.digest, operation.undoes, operation.request)
        self._db.execute("INSERT INTO operations VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)", given + rest)

    def _add(self, row: KeptRow, standing: str) -> int:
        written = (json.dumps(row.values, separators=(",", ":"), ensure_ascii=False), standing, row.key)
        found = self._db.execute("INSERT INTO rows (content, standing, key) VALUES (?, ?, ?)", written).lastrowid
        assert found is not None
        return found

    def _row(self, found: Sequence[Any]) -> KeptRow:
        number, content, standing, key = found
        try:
            return KeptRow(number, dict(json.loads(content)), standing, key)
        except (RecursionError, TypeError, ValueError) as error:
            raise self._damaged(f"row {number} cannot be read: {printable(error)}") from None

    def _get(self, key: str) -> str | None:
        found = self._read("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0][0]) if found else None

    def _set(self, key: str, value: str | None) -> None:
        if value is None:
            self._db.execute("DELETE FROM meta WHERE key = ?", (key,))
        else:
            self._db.execute("INSERT OR REPLACE INTO meta VALUES (?, ?)", (key, value))


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MOST_ID:
        raise DataError(f"{what} has the number {value!r:.60}", hint="numbers are whole, and at least 0.")
    return value


def _in_pieces(ids: Iterable[int]) -> Iterator[list[int]]:
    each = iter(ids)
    while some := list(islice(each, _AT_ONCE)):
        yield some
