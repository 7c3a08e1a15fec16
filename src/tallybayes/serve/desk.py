"""The desk: one live model, taught and corrected one operation at a time, of which nothing is lost.

Training is addition, so the counts of a served model are those of its surviving rows, whatever was done in between and
in whatever order. A change is worked out, written to the journal, and only then seen:

    counts' = counts + Σ rows that come − Σ rows that go  →  journal, on the disk  →  desk.model

Readers take `desk.model`, which never changes, and wait for nobody. After kill -9 `Desk.open` adds to the counts of the
model file what the journal has since, and holds the digest against the journal's. The model file alone always opens
with `tb.load`, a few operations older perhaps; `fold` writes it anew.

A row that is forgotten stays in the journal, so that it can come back, and the schema stays as it is. `erase` is for
good: it takes a row out of counts, schema, settings, model file and journal, and what was known of states with it.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any, Self

from ..base.canon import many
from ..base.disk import named
from ..base.errors import CannotForget, DataError, TallybayesError, excerpt, warn
from ..base.wording import encodable
from ..data.sources import open_source
from ..model.model import Model
from ..selection.choose.fit import fit, some_without_label
from ..store.model_file import load
from ..tally.tally import Tally
from .journal import COUNTED, GONE, POOL, SKIPPED, CannotUndo, Journal, KeptRow, Operation, RowChange, now
from .journal_file import JournalError
from .recovery import beside, caught_up, clear_leftovers, take_lock
from .rows import RowReader
from .served import Done, Receipt, Served
from .tables import TableBeside, tables_with, take_out

FOLD_EVERY = 10_000  # rows that may have changed since the model file was written
_LONGEST_NAME = 200


class Desk:
    """An open model with its journal. `Desk.open` and `Desk.begin` give one; close it, or use it in a `with`."""

    def __init__(self, path: str, journal: Journal, served: Served, held: contextlib.ExitStack) -> None:
        self.path = path
        self._journal, self._now, self._held = journal, served, held
        self._turn = threading.RLock()  # one writer
        self._unfolded = 0  # rows that have changed since the model file was written
        self._unseen: Tally | None = None  # the counts of rows that the journal does not hold, once they are asked for
        self._request: str | None = None  # the hash of the one that is being answered
        self._lost = False  # whether journal and memory have gone apart
        self._closed = False
        self.heard: Callable[[Served, Sequence[RowChange]], None] | None = None  # told of labels, with what was before

    @classmethod
    def open(cls, path: str | os.PathLike[str]) -> Self:
        """The model of a file as its journal `PATH.journal` has it, which is made if there is none.

        Refused while another process has it open, and where the journal does not know the state of the file.
        """
        path = named(path)
        if not os.path.exists(path):
            load(path)  # refuses it, before a lock lies there
        with contextlib.ExitStack() as held:
            take_lock(held, path)
            file = Served.of(load(path), 0)
            journal = held.enter_context(Journal(beside(path), create=True))
            current, changed = caught_up(journal, file, path)
            out = cls(path, journal, current, held.pop_all())
            out._unfolded = changed
        return out

    @classmethod
    def begin(cls, path: str | os.PathLike[str], data: Any, *, target: str, who: str = "", **fitting: Any) -> Self:
        """Fit a table and serve it: rows with a label are kept in the journal, those without are the pool.

        `fitting` is what `tb.fit` takes: kinds, progress, effort, and so on. Refused where there is a model already.
        """
        path = named(path)
        with contextlib.ExitStack() as held:
            take_lock(held, path)
            if os.path.exists(path):
                raise DataError(f"there is a file {path} already", hint="serve that one as it is, or name another.")
            clear_leftovers(path)
            source = open_source(data, target=target).repeatable()
            with some_without_label():
                fitted = fit(source, target, **fitting)
            new = Served.of(fitted, 1)
            journal = held.enter_context(Journal(beside(path), create=True))
            journal.fill(new.read.rows_of(source))
            tally = new.counted(journal.all_rows())
            if tally != replace(new.tally, skipped=0):
                warn("some values are counted as a journal keeps them, which is not how the table has them.")
            again = tally.model(fitted.settings)
            new = Served.of(replace(again, notes=fitted.notes, history=fitted.history), 1)
            new.model.save(path)
            journal.begun(Operation(1, "begin", _name(who), now(), tally.rows, "", tally.digest))
            journal.cut_log()
            return cls(path, journal, new, held.pop_all())

    # ---- reading: never waits

    @property
    def served(self) -> Served:
        """Model, counts and number of the last operation, as they belong together."""
        return self._now

    @property
    def model(self) -> Model:
        """The model as it is now; it never changes, the next operation puts another in its place."""
        return self._now.model

    @property
    def digest(self) -> str:
        """The digest of its counts: that of `tb.count` of the surviving rows under its schema."""
        return self._now.tally.digest

    @property
    def version(self) -> int:
        """The number of the last operation."""
        return self._now.version

    @property
    def journal(self) -> Journal:
        """Everything that was done, to read in; only the desk writes there."""
        return self._journal

    def operations(self, before: int | None = None, limit: int = 100) -> list[Operation]:
        """Operations, the newest first."""
        return self._journal.operations(before, limit)

    def row(self, row: int) -> KeptRow:
        """The row of an id."""
        return self._journal.rows([row])[0]

    def pool(self, limit: int = 100, after: int = 0) -> list[KeptRow]:
        """Rows that wait for a label, by id."""
        return self._journal.pool(limit, after)

    def pool_size(self) -> int:
        """How many rows wait for a label."""
        return self._journal.pool_size()

    def counted_rows(self) -> tuple[Served, list[KeptRow]]:
        """What is served, and the rows of the journal that are counted in it."""
        served = self._now
        return served, served.rows_in(self._journal)

    def found(self, column: str, value: Any, limit: int = 100) -> list[KeptRow]:
        """Rows of the journal with this value in a column, whatever their standing."""
        return list(islice(self._now.read.matching(self._journal, column, value), max(limit, 0)))

    def tables_with(self, column: str, value: Any) -> list[TableBeside]:
        """The tables beside the model file in which rows have this value, and those that cannot be looked through."""
        return tables_with(self.path, self._now.read, column, value)

    # ---- operations

    def learn(
        self,
        rows: Sequence[Mapping[str, Any]],
        labels: Sequence[Any] | None = None,
        *,
        who: str = "",
        new_classes: str = "refuse",
    ) -> Done:
        """Count rows, whose labels stand in their target column or apart. All are learnt, or none.

        A label that no row has had is refused, unless `new_classes="allow"`: it is most likely misspelt.
        """
        with self._writing() as read:
            new = read.given(rows, labels)
            return self._do("learn", who, [RowChange(row, GONE, COUNTED + label) for row, label in new], new_classes)

    def add_to_pool(self, data: Any, *, who: str = "") -> Done:
        """Let the rows of some data wait for a label, whatever label they may have; they are counted when it comes."""
        with self._writing() as read:
            rows = list(read.rows_of(open_source(data), labelled=False))
            if not rows:
                raise DataError("no rows", hint="give at least one.")
            some = self._now.tally.classes[0]
            read.tally((row, some) for row in rows)  # refused now, and not when somebody labels them
            return self._do("pool", who, [RowChange(row, GONE, POOL) for row in rows])

    def label(self, row: int, label: Any, *, who: str = "", new_classes: str = "refuse") -> Done:
        """Give a row of the pool its label: it is learnt."""
        with self._writing() as read:
            return self._do("label", who, [self._from_pool(row, COUNTED + read.label_text(label))], new_classes)

    def skip(self, row: int, *, who: str = "") -> Done:
        """Take a row out of the pool without a label."""
        with self._writing():
            return self._do("skip", who, [self._from_pool(row, SKIPPED)])

    def forget(self, ids: Sequence[int] = (), rows: Sequence[Mapping[str, Any]] = (), *, who: str = "") -> Done:
        """Take rows out of the counts, by their ids or as they were learnt, with their labels. All of them, or none.

        Rows that the journal does not hold may be among those the model file was made of; they are taken from these.
        """
        with self._writing() as read:
            known = self._journal.rows(list(dict.fromkeys(ids)))
            idle = [row.id for row in known if not row.counted]
            if idle:
                found = f"row {excerpt(idle)} is not counted; nothing has been forgotten"
                raise CannotForget(found, hint="leave it out of the ids.")
            changes, taken, strange = [RowChange(row, row.standing, GONE) for row in known], {r.id for r in known}, []
            for row, label in read.given(rows, empty=bool(known)):
                standing = COUNTED + label
                alike = (r for r in self._journal.alike(row.key) if r.standing == standing and r.id not in taken)
                held = next(alike, None)
                if held is None:
                    strange.append((row, label))
                else:
                    taken.add(held.id)
                changes.append(RowChange(held or row, standing, GONE))
            unseen = self._unseen_without(read.tally(strange)) if strange else self._unseen
            done = self._do("forget", who, changes)
            self._unseen = unseen
            return done

    def relabel(self, row: int, label: Any, *, who: str = "", new_classes: str = "refuse") -> Done:
        """Count a row under another label."""
        with self._writing() as read:
            kept, standing = self.row(row), COUNTED + read.label_text(label)
            if not kept.counted or kept.standing == standing:
                how = f"has the label {kept.label!r} already" if kept.counted else f"is not counted: {kept.standing}"
                raise DataError(f"row {row} {how}", hint="look at the row first.")
            return self._do("relabel", who, [RowChange(kept, kept.standing, standing)], new_classes)

    def undo(self, operation: int, *, who: str = "") -> Done:
        """Turn an operation round, however old: each of its rows is as it was before. An undo can be undone as well."""
        with self._writing():
            undone = self._journal.operation(operation)
            if undone.kind in ("begin", "open", "erase"):
                reason = "is for good: its rows are nowhere any more" if undone.kind == "erase" else "is the beginning"
                raise CannotUndo(f"operation {operation} {reason}", hint="undo others, or forget rows by their ids.")
            return self._do("undo", who, self._journal.turned_round(undone), undoes=operation)

    def erase(self, column: str, value: Any, *, who: str = "") -> Receipt:
        """Delete a person: every row with this value in a column is forgotten, and wiped from the journal, for good.

        Counts, schema and settings are as if the rows had never been there, and the model file is written anew. Rows
        that the journal never held cannot be found by a value; the receipt says how many there are. They go out of
        tables that the server wrote, too; others that hold such rows the receipt names.
        """
        with self._writing():
            wiped = list(self._now.read.matching(self._journal, column, value))
            if not wiped:
                raise DataError(
                    f"no row of the journal has this value in the column {column!r}",
                    hint="search for it without erasing first; values are compared as they are written.",
                )
            before, ids = self._now, [row.id for row in wiped]
            ever = self._journal.labels_of(ids)
            labels = [(row, ever[row.id] | ({row.label} if row.label is not None else set())) for row in wiped]
            after = before.without(labels, before.version + 1)
            digests = before.tally.digest, after.tally.digest
            operation = Operation(after.version, "erase", _name(who), now(), len(wiped), "", digests[1])
            taken, left = take_out(self.path, before.read, column, value)  # first: what is left can be erased again
            self._journal.announce(operation, ids)
            try:
                after.model.save(self.path)
            except BaseException:
                self._journal.withdraw()
                raise
            with self._in_step(after):
                self._journal.erase(operation, ids)
            self._unfolded, self._unseen = 0, None
            unseen = max(after.tally.rows - self._journal.counted_rows(), 0)
            counted = sum(row.counted for row in wiped)
            return Receipt(after.version, column, len(wiped), counted, unseen, *digests, operation.time, taken, left)

    def once(self, request: str, do: Callable[[], Done]) -> Done:
        """Do an operation, unless the same request has led to one: then what that has done.

        For clients that ask again because they had no answer: rows are not learnt twice. `request` is a text that no
        two requests share, such as a random key with the body; a hash of it is kept until the next erasure.
        """
        key = hashlib.blake2b(encodable(request).encode(), digest_size=16).hexdigest()
        with self._turn:
            known = self._journal.requested(key)
            if known is not None:
                rows = tuple(row for row, *_ in self._journal.changes(known.number))
                return Done(known.number, known.digest_before, known.digest, rows)
            self._request = key
            try:
                return do()
            finally:
                self._request = None

    def fold(self) -> None:
        """Write the model file anew with the counts as they are now, and bring the journal's log into the journal."""
        with self._turn:
            if self._closed:  # the lock is given back: the file may be another's by now
                raise self._journal.closed()
            self._fold()

    def close(self) -> None:
        """Fold, if there is anything to fold, and give journal and lock back. Nothing is lost where that fails."""
        with self._turn, self._held:
            done, self._closed = self._closed, True
            if self._unfolded and not self._lost and not done:
                try:
                    self._fold()
                except TallybayesError as error:
                    warn(f"the model file could not be written: {error.found}. Everything is in the journal.")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    # ---- inside

    def _fold(self) -> None:
        self._now.model.save(self.path)
        self._unfolded = 0
        self._journal.cut_log()

    @contextlib.contextmanager
    def _writing(self) -> Iterator[RowReader]:
        """The turn of a writer, and how rows are read now."""
        with self._turn:
            if self._closed:
                raise self._journal.closed()
            if self._lost:
                hint = "close it and open it again: Desk.open(path) takes up what is on the disk."
                raise JournalError("the disk has failed, and it is not certain what the journal holds", hint=hint)
            yield self._now.read

    def _do(
        self, kind: str, who: str, changes: Sequence[RowChange], new_classes: str = "allow", undoes: int | None = None
    ) -> Done:
        """Work out what a change makes of the model, write it to the journal, and show it."""
        before = self._now
        after = before.after(changes, before.version + 1, new_classes)
        digests = before.tally.digest, after.tally.digest
        with self._in_step(after):
            about = (kind, _name(who), now(), len(changes), *digests, undoes)
            operation = Operation(after.version, *about, request=self._request)
            ids = self._journal.write(operation, changes)
        if self.heard is not None and kind in ("learn", "label"):
            self.heard(before, changes)
        self._unfolded += len(changes)
        if self._unfolded >= FOLD_EVERY:
            with contextlib.suppress(TallybayesError):  # it is in the journal; closing or the next time will do
                self.fold()
        return Done(after.version, *digests, tuple(ids))

    @contextlib.contextmanager
    def _in_step(self, after: Served) -> Iterator[None]:
        """Within it the journal is written; then readers see what it says, whether or not that was an error."""
        try:
            yield
        except BaseException:
            self._lost = True
            last = self._journal.last()
            if last is not None and last.number in (self.version, after.version):
                self._now = after if last.number == after.version else self._now
                self._lost = False
            raise
        self._now = after

    def _from_pool(self, row: int, became: str) -> RowChange:
        kept = self.row(row)
        if kept.standing != POOL:
            how = f"has the label {kept.label!r}" if kept.counted else f"is {kept.standing}"
            raise DataError(f"row {row} is not in the pool: it {how}", hint="take one that waits for a label.")
        return RowChange(kept, POOL, became)

    def _unseen_without(self, gone: Tally) -> Tally:
        """The counts of rows that the journal does not hold, once these are taken away; refused if they cannot be."""
        if self._unseen is None:
            self._unseen = self._now.tally - self._now.counted(self._journal.all_rows())
        left = self._unseen - gone
        problem = left.impossible()
        if problem is not None:
            raise CannotForget(
                f"the journal does not hold {many(gone.rows, 'row')} of these, and the rows that the model was made of "
                f"cannot have had them: that would leave {problem}; nothing has been forgotten",
                hint="check their labels and values; a search shows rows as the journal has them.",
            )
        return left


def _name(who: str) -> str:
    return encodable(str(who))[:_LONGEST_NAME]
