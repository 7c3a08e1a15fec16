"""The served model as a value: what it becomes when rows come, go, or are erased, and what is told of it. No disk.

    counts' = counts + Σ rows that come − Σ rows that go

The schema stays as it is while rows come and go, so that any of it can be turned round: the counts are always those of
the surviving rows under that schema. Only an erasure takes out of schema and settings what the erased rows alone had.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..base.errors import CannotEstimate, CannotForget
from ..model.model import Model
from ..model.renewing import aged, without_traces
from ..tally.guard import check_new_classes
from ..tally.tally import Tally, add_tallies
from .journal import Journal, KeptRow, RowChange, label_in
from .rows import RowReader


@dataclass(frozen=True)
class Done:
    """An operation that is on the disk: its number, the digests of the counts, and the ids of its rows."""

    operation: int
    digest_before: str
    digest: str
    rows: tuple[int, ...]


@dataclass(frozen=True)
class Receipt:
    """What an erasure did. Nobody keeps it but whoever asked: the digest before could confirm a guess at the rows."""

    operation: int
    column: str
    rows: int  # wiped from the journal
    counted: int  # of these, rows that the model had counted until now
    unseen: int  # rows that the model has counted and the journal never held: whose they are, it cannot tell
    digest_before: str
    digest: str
    time: str
    tables: Mapping[str, int] = field(default_factory=dict)  # tables that the server wrote: rows taken out of each
    left: tuple[str, ...] = ()  # tables beside the model that still hold such rows, or that could not be looked through


@dataclass(frozen=True)
class Served:
    """Everything that readers see, replaced as one: the model, its counts, and the number of the last operation."""

    model: Model
    tally: Tally
    version: int
    read: RowReader

    @classmethod
    def of(cls, model: Model, version: int) -> Served:
        """A model that is about to be served; refused if it cannot be taught."""
        if model.tally is None:
            raise CannotEstimate(
                "a model written down without a strength can neither learn nor forget",
                hint="say how many rows it is worth: tb.Model.written(prior, tables, strength=100).",
            )
        return cls(model, model.tally, version, RowReader(model.tally.schema))

    def counted(self, rows: Iterable[KeptRow]) -> Tally:
        """The counts of rows under their labels."""
        return self.read.tally((row, row.label) for row in rows if row.label is not None)

    def rows_in(self, journal: Journal) -> list[KeptRow]:
        """The rows of a journal that are counted here, whatever has been done since."""
        rows = {row.id: row for row in journal.all_rows() if row.counted}
        since = {row: was for row, was, _ in journal.net_changes(self.version)}
        rows |= {i: replace(row, standing=since[i]) for i, row in journal.rows_there(since).items()}
        return [row for _, row in sorted(rows.items()) if row.counted]

    def after(self, changes: Sequence[RowChange], version: int, new_classes: str = "allow") -> Served:
        """What it is once these rows have another standing."""
        added = self.read.tally((c.row, label) for c in changes if (label := label_in(c.became)) is not None)
        gone = self.read.tally((c.row, label) for c in changes if (label := label_in(c.was)) is not None)
        check_new_classes(self.tally.classes, added.classes, self.tally.schema.target, new_classes)
        if not added.rows and not gone.rows:
            return Served(self.model, self.tally, version, self.read)
        parts = [*([added] if added.rows else []), *([-gone] if gone.rows else [])]
        tally, history = add_tallies([self.tally, *parts]), self.model.history
        _refuse_empty(tally)
        for what, part in (("added", added), ("forgotten", gone)):
            history = history.after(what, part.rows) if part.rows else history
        settings = aged(self.model.settings, self.tally, tally, forgot=gone.rows > 0)
        return Served(self.model._changed(tally, settings, history), tally, version, self.read)

    def without(self, rows: Sequence[tuple[KeptRow, set[str]]], version: int) -> Served:
        """What it would be had these rows never been there; with each, all labels it was ever counted under.

        A row that is not counted now may still have left a point in the schema, or a class in the settings: the counts
        that had it under every one of its labels are what the traces are told by.
        """
        some = self.tally.classes[:1]
        ever = [(row, label) for row, labels in rows for label in sorted(labels) or some]
        now = self.counted(row for row, _ in rows)
        every = self.read.tally(ever)
        before = add_tallies([self.tally, every, -now])
        after = before.forget(every)
        _refuse_empty(after)
        settings = without_traces(self.model.settings, before, after, erased=True)
        settings = aged(settings, self.tally, after, forgot=True)
        history = self.model.history.after("forgotten", now.rows) if now.rows else self.model.history
        return Served(self.model._changed(after, settings, history), after, version, RowReader(after.schema))


class OncePerState:
    """What is worked out of a served model, such as pictures: once for each state, and gone with the next."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._version, self._known = -1, dict[Hashable, Any]()

    def get(self, served: Served, key: Hashable, work: Callable[[], Any]) -> Any:
        """What `work` gives for this state. Two who ask at once may both work."""
        with self._turn:
            if served.version > self._version:
                self._version, self._known = served.version, {}
            if served.version == self._version and key in self._known:
                return self._known[key]
        out = work()
        with self._turn:
            if served.version == self._version:
                self._known[key] = out
        return out


def _refuse_empty(tally: Tally) -> None:
    if not tally.rows:
        hint = "learn other rows first; or end the server, and delete model and journal."
        raise CannotForget("that would leave no row, and a model has at least one; nothing has been changed", hint=hint)
