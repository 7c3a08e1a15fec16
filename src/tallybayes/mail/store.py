"""The state of a mail filter in one SQLite file: the exact tally, and every learnt message, so that it can be unlearnt.

    sheets     column, sheet → a number, and the names of the amounts
    counts     sheet, slot, limb, class → one integer per amount: what `tb.count` of the learnt rows would give; on the
               sheets −n what the sheets n add up to, and how many slots they have; on sheet 0 senders and fingerprints
    messages   message id → class, sender, fingerprint, and the row as it was counted
    checks     a check sum for each place of the counts and each message, see `sums`
    meta       the schema, the settings, and the plan by which one message is answered, see `plan`

A change is one transaction: it adds a small tally to `counts` and writes `messages`, or does neither. SQLite's
rollback journal makes that true under kill -9, and its locks under several processes; threads that share a store take
turns. Counts that become zero leave the file, and `secure_delete` overwrites what leaves it. All of it is held against
its check sums when it is opened.
"""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from operator import add
from typing import Any

import numpy as np
import pyarrow as pa

from ..base.arrow import array
from ..base.wording import encodable
from ..data.schema import Schema
from ..exact.counts import Counts
from ..exact.sheet import Sheet
from ..tally.tally import Tally
from .learnt import Learnt, pack, unpack
from .plan import SHEETS, numbers_of, plan_of
from .state import APPLICATION, BUSY_SECONDS, FINGERPRINT, KNOWN, LEARNT, PLAN, ROWS, ROWS_SHEET, SENDER, SLOTS, State
from .state import StateError as StateError  # its first place
from .sums import FORMAT, add_to_places, all_places, counted_places, damage, messages_sum, place, write_rest

AMOUNTS = 4  # integers per entry; the sheets in use have one to three
CARRY_EVERY = 1 << 28  # a change adds less than 2^32 to an entry, so after this many it is below 2^60: time to carry

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
_CHECKS = """
CREATE TABLE checks (place INTEGER PRIMARY KEY, sum INTEGER NOT NULL);
CREATE TRIGGER emptied AFTER UPDATE ON checks WHEN NEW.sum = 0 BEGIN DELETE FROM checks WHERE place = NEW.place; END;
"""
_ADD = (
    f"INSERT INTO counts VALUES (?, ?, ?, ?{', ?' * AMOUNTS}) ON CONFLICT (sheet, slot, limb, class) DO UPDATE SET "
    + ", ".join(f"a{i} = a{i} + excluded.a{i}" for i in range(AMOUNTS))
)
_TOTALLED = sorted({*SHEETS.values()})

Entry = tuple[Any, ...]  # a row of `counts`


class Store(State):
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
        self._given = schema, dict(settings or {})
        super().__init__(path, create=schema is not None, busy_seconds=busy_seconds)

    def _begin(self) -> None:
        with self._explained():
            # EXTRA: an acknowledged change outlives a power cut; 64 MB: a batch locks readers out only at its end
            for pragma in ("secure_delete = ON", "synchronous = EXTRA", "fullfsync = ON", "cache_size = -65536"):
                self._db.execute(f"PRAGMA {pragma}")
        if self._is_new():
            self._create(*self._given)
        self._check()
        self.schema, self.settings = self._read_meta()

    # ---- reading

    def tally(self) -> Tally:
        """The exact tally of all learnt messages, limbs carried: equal to `tb.count` of their rows."""
        with self._transaction():
            tally = self._load(self.schema)
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
            found = self._db.execute(f"{LEARNT} ORDER BY id").fetchall()
        yield from map(self._unpacked, found)

    def sender_known(self, sender: str, label: str, besides: str = "") -> bool:
        """Whether a message of this class was learnt from this sender, other than the message `besides`."""
        return self._any("sender = ? AND class = ?", sender, label, besides=besides)

    def seen_before(self, fingerprint: str, besides: str = "") -> bool:
        """Whether a message with this fingerprint was learnt, other than the message `besides`."""
        return self._any("fingerprint = ?", fingerprint, besides=besides)

    # ---- writing

    @contextmanager
    def change(self) -> Iterator[StateChange]:
        """A transaction to learn and forget in: all of it happens, or, after an error or a kill, nothing."""
        with self._transaction("IMMEDIATE"):
            change = StateChange(self)
            yield change
            change.write()

    def add(self, tally: Tally) -> None:
        """Add a (signed) tally to the counts, inside a change only."""
        for number, name, entries in self._entries(tally):
            slots = {entry[1] for entry in entries} if name in _TOTALLED else set()
            before = self._present(number, slots)
            self._put(entries)
            if slots:
                self._put(_totals(number, entries, self._present(number, slots) - before))
        additions = int(self._meta("additions")) + 1
        self._set_meta("additions", str(additions % CARRY_EVERY))
        if additions >= CARRY_EVERY:
            carried = [entry for *_, entries in self._entries(self._load(self.schema)) for entry in entries]
            self._db.execute("DELETE FROM counts WHERE sheet > 0")
            self._db.executemany(_ADD, carried)  # the same numbers: no sum of them changes

    def _entries(self, tally: Tally) -> Iterator[tuple[int, str, list[Entry]]]:
        """The number and name of each sheet of a tally, and its rows of `counts`."""
        for column, counts in [(ROWS, tally.labels), *tally.columns.items()]:
            for name, sheet in counts.sheets.items():
                number, sheet = self._number(column, name, sheet.amounts), sheet.in_order
                slots = sheet.slot_names
                amounts = np.pad(sheet.amount, ((0, 0), (0, AMOUNTS - len(sheet.amounts)))).tolist()
                places = zip(sheet.slot.tolist(), sheet.limb.tolist(), sheet.label.tolist(), amounts, strict=True)
                yield number, name, [(number, slots[s], limb, tally.classes[c], *a) for s, limb, c, a in places]

    def _number(self, column: str, name: str, amounts: Sequence[str]) -> int:
        """The number of a sheet, a new one for a new sheet."""
        known = (column, name, json.dumps(amounts))
        self._db.execute('INSERT INTO sheets ("column", sheet, amounts) VALUES (?, ?, ?) ON CONFLICT DO NOTHING', known)
        find = 'SELECT number FROM sheets WHERE "column" = ? AND sheet = ? AND amounts = ?'
        (number,) = self._db.execute(find, known).fetchone()
        return int(number)

    def _put(self, entries: Sequence[Entry]) -> None:
        """Add entries to the counts, and to the check sums of their places."""
        self._db.executemany(_ADD, entries)
        add_to_places(self._db, counted_places(sorted(entries, key=lambda entry: entry[:2])))

    def _present(self, number: int, slots: Collection[str]) -> int:
        """How many of these slots a sheet has."""
        query = f"SELECT count(DISTINCT slot) FROM counts WHERE sheet = {number:d} AND slot IN"
        return sum(found for (found,) in self._several(query, slots))

    # ---- inside

    def _load(self, schema: Schema) -> Tally:
        """The tally of all learnt messages, as far as the schema has their columns."""
        found = self._db.execute('SELECT number, "column", sheet, amounts FROM sheets').fetchall()
        classes = [c for (c,) in self._db.execute("SELECT DISTINCT class FROM messages ORDER BY class")]
        sheets: dict[str, dict[str, Sheet]] = {name: {} for name in (ROWS, *schema.names)}
        for number, column, name, amounts in found:
            if column not in sheets and column in self.schema.names:
                continue
            entries = self._db.execute("SELECT * FROM counts WHERE sheet = ?", (number,)).fetchall()
            try:
                sheet = _sheet(tuple(json.loads(amounts)), classes, entries)
                if len(sheet):
                    sheets[column][name] = sheet
            except (KeyError, ValueError) as error:
                raise self._damaged(f"{error!r} in column {column!r}") from None
        labels = Counts(sheets.pop(ROWS))
        return Tally(schema, tuple(classes), labels, {name: Counts(s) for name, s in sheets.items()})

    def _any(self, condition: str, value: str, *more: str, besides: str) -> bool:
        if not value:
            return False
        query = f"SELECT 1 FROM messages WHERE {condition} AND id <> ? LIMIT 1"
        with self._explained():
            return self._db.execute(query, (encodable(value), *more, encodable(besides))).fetchone() is not None

    def _create(self, schema: Schema | None, settings: Mapping[str, Any]) -> None:
        if schema is None:
            raise self._untrained()
        with self._transaction("IMMEDIATE"):
            if self._db.execute("SELECT 1 FROM sqlite_master").fetchone():
                return  # another process was faster
            for statement in _TABLES.split(";\n"):
                self._db.execute(statement)
            for key, value in (("schema", schema.to_dict()), ("settings", dict(settings)), ("additions", 0)):
                self._set_meta(key, json.dumps(value))
            self._db.execute(f"PRAGMA application_id = {APPLICATION}")
            self.renew()

    def renew(self) -> None:
        """Bring a file of an older format to ours, inside a change only: sums of sheets, senders and check sums."""
        for statement in _CHECKS.split(";\n"):
            self._db.execute(statement)
        for (number,) in self._db.execute(
            f"SELECT number FROM sheets WHERE sheet IN ({', '.join(map(repr, _TOTALLED))})"
        ).fetchall():
            entries = self._db.execute("SELECT * FROM counts WHERE sheet = ?", (number,)).fetchall()
            self._db.executemany(_ADD, _totals(number, entries, len({entry[1] for entry in entries})))
        self._db.executemany(_ADD, _known(self.messages(), ()))
        add_to_places(self._db, all_places(self._db))
        self._db.execute(f"PRAGMA user_version = {FORMAT}")
        write_rest(self._db)

    def write_plan(self) -> None:
        """Keep in the file how to answer, once there is something to answer with; inside a change only."""
        self._db.execute("DELETE FROM meta WHERE key = ?", (PLAN,))
        sheets = {(column, name): n for n, column, name, _ in self._db.execute("SELECT * FROM sheets")}
        rows = self._db.execute("SELECT a0 FROM counts WHERE sheet = ?", (sheets.get((ROWS, ROWS_SHEET)),)).fetchall()
        minimum = self.settings.get("minimum", 1)
        if len(rows) < 2 or (isinstance(minimum, int) and min(rows)[0] < minimum):
            return
        plan = plan_of(self.schema, self._load(numbers_of(self.schema)), sheets)
        if plan is not None:
            self._set_meta(PLAN, json.dumps(plan))

    def _check(self) -> None:
        """Refuse a file in which a bit has changed since it was written."""
        with self._transaction():
            found = damage(self._db, self.format)
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


@dataclass(frozen=True)
class StateChange:
    """What one transaction learns and forgets: messages at once, their counts as one tally at the end."""

    store: Store
    added: list[Learnt] = field(default_factory=list)
    removed: list[Learnt] = field(default_factory=list)
    grown: list[tuple[int, int]] = field(default_factory=list)  # by place, what is added to the check sums of messages

    def learn(self, message: Learnt) -> None:
        """Remember a message and count its row; its id must not be known."""
        packed = pack(message.row)
        texts = [encodable(t) for t in (message.id, message.label, message.sender, message.fingerprint)]
        self.store._db.execute("INSERT INTO messages VALUES (?, ?, ?, ?, ?)", (*texts, packed))
        self.grown.append((place(None, texts[0]), messages_sum([(*texts, packed)])))
        # what is counted is what comes back, so that forgetting subtracts exactly that
        self.added.append(Learnt(texts[0], texts[1], unpack(packed), texts[2], texts[3]))

    def forget(self, message: str) -> Learnt | None:
        """Take back a learnt message and its counts; None if there is none of this id."""
        found = self.store.find(message)
        if found is not None:
            kept = self.store._db.execute("SELECT * FROM messages WHERE id = ?", (found.id,))
            self.grown.append((place(None, found.id), -messages_sum(kept.fetchall())))
            self.store._db.execute("DELETE FROM messages WHERE id = ?", (found.id,))
            self.removed.append(found)
        return found

    def write(self) -> None:
        """Add what was learnt and subtract what was forgotten."""
        if not (self.added or self.removed):
            return
        store = self.store
        if store.format == FORMAT:
            store._put(_known(self.added, self.removed))
            add_to_places(store._db, self.grown)
        else:  # made from the messages as they are now, and the counts as they were
            store.renew()
        store.add(rows_tally(store.schema, self.added) - rows_tally(store.schema, self.removed))
        for label in {m.label for m in self.removed} - set(store.learnt()):
            # the numbers are zero now, but after a carry not yet limb by limb
            store._db.execute("DELETE FROM counts WHERE class = ?", (label,))
        store.write_plan()
        write_rest(store._db)


def rows_tally(schema: Schema, messages: Sequence[Learnt]) -> Tally:
    """The tally of some learnt messages."""
    return Tally.of(schema, [{**m.row, schema.target: m.label} for m in messages])


def _totals(number: int, entries: Iterable[Entry], slots: int) -> list[Entry]:
    """What some entries of a sheet, and so many slots more, add to what the sheet adds up to."""
    total: dict[tuple[int, str], list[int]] = {}
    for _, _, limb, label, *amounts in entries:
        before = total.setdefault((limb, label), [0] * AMOUNTS)
        total[limb, label] = list(map(add, before, amounts))
    out = [(-number, "", limb, label, *amounts) for (limb, label), amounts in total.items() if any(amounts)]
    return [*out, (-number, SLOTS, 0, "", slots, *[0] * (AMOUNTS - 1))] if slots else out


def _known(added: Iterable[Learnt], removed: Iterable[Learnt]) -> list[Entry]:
    """The entries of senders and fingerprints, by class."""
    times: Counter[tuple[str, str]] = Counter()
    for messages, by in ((added, 1), (removed, -1)):
        for m in messages:
            for kind, value in ((SENDER, m.sender), (FINGERPRINT, m.fingerprint)):
                if value:
                    times[kind + value, m.label] += by
    return [(KNOWN, slot, 0, label, n, *[0] * (AMOUNTS - 1)) for (slot, label), n in times.items() if n]


def _sheet(amounts: tuple[str, ...], classes: Sequence[str], entries: Sequence[Entry]) -> Sheet:
    """The sheet of some entries of the table, its limbs carried and zeros left out."""
    if not entries or not classes:
        return Sheet.empty(amounts)
    _, names, limbs, labels, *numbers = zip(*entries, strict=True)
    slots, order = {name: i for i, name in enumerate(dict.fromkeys(names))}, {c: i for i, c in enumerate(classes)}
    keys = ([slots[n] for n in names], limbs, [order[c] for c in labels])
    slot, limb, label = (np.array(key, dtype=np.int64) for key in keys)
    amount = np.array(numbers[: len(amounts)], dtype=np.int64).T
    return Sheet.of_entries(amounts, array(list(slots), pa.string()), slot, limb, label, amount)
