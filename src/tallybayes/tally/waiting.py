"""What a model that is updated row by row keeps until counting it together repays it: a tally, and the rows since.

Adding a row to a tally of a hundred thousand words costs as much as the words; remembering the row costs nothing.
Whoever reads the tally sees the sum: the rows that wait are then counted together and folded in. Whether a row can be
forgotten is seen from the slots it touches; where that is not plain to see, the caller asks the whole tally.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import cached_property, partial
from itertools import repeat
from operator import add, sub
from threading import Lock
from types import MappingProxyType
from typing import Any

from ..data.kinds import EACH
from .guard import check_new_classes, how_often
from .one_row import TOP, Added, SlotIndex, checked, label_of, row_amounts, slot_index
from .tally import Tally, add_tallies
from .traces import renewed_schema, watched

MOST_ROWS = 1000  # that wait; counting so many at once takes less than adding them
_SLOTS_PER_ROW = 32  # where there are more slots, a row for each so many may wait: folding in takes as long as they do
_PLAIN = frozenset((str, int, float, bool, type(None)))  # types of values that are the same where they are equal

Row = Mapping[str, Any]
Known = Mapping[str, Collection[str]]  # slots by column
Step = tuple[int, Row]  # +1 for a row that was added, −1 for one that was taken away


class Pending:
    """A tally and some rows to add to it or to take away: one state of a journal, which others may have gone on from.

    States never change, and threads may share them. Only one at a time can write on in a journal; whoever goes on from
    an older state begins a new one with the rows up to there.
    """

    def __init__(self, base: Tally, steps: Iterable[Step] = (), known: Known = MappingProxyType({})) -> None:
        self._journal = _Journal(base, steps, known)
        self.base, self.waiting = base, len(self._journal.steps)

    def __reduce__(self) -> tuple[Any, ...]:
        steps, known = self._journal.steps[: self.waiting], dict(self._journal.known)
        gone = any(sign < 0 for sign, _ in steps)  # rows to be forgotten are kept nowhere
        return Pending, (self.tally, [], known) if gone else (self.base, steps, known)

    def update(self, row: Mapping[Any, Any], new_classes: str | None = None) -> Pending:
        """The same with one row more; refuses what cannot be read, and what `new_classes` is about."""
        read = checked(self.base.schema, row)
        label = label_of(self.base.schema, read)
        with self._journal.turn:
            seen = label is None or label in self.base.classes or self._waits(label)
            check_new_classes(self.base.classes, [] if seen else [str(label)], self.base.schema.target, new_classes)
            return self._after(self._own_journal(), (1, read))

    def _waits(self, label: str) -> bool:
        """Whether a row of this class waits."""
        steps = reversed(self._journal.steps[: self.waiting])
        return any(sign > 0 and label_of(self.base.schema, row) == label for sign, row in steps)

    def forget(self, row: Mapping[Any, Any]) -> Pending | None:
        """The same with one row less, or None where it is not plain to see that the row was counted."""
        read = checked(self.base.schema, row)
        with self._journal.turn:
            journal = self._own_journal()
            return self._after(journal, (-1, read)) if journal.can_take(read) else None

    def holds(self, row: Mapping[Any, Any]) -> bool:
        """Whether this row is among those that wait to be added, and has not been forgotten since."""
        read = checked(self.base.schema, row)
        return sum(sign for sign, other in self._journal.steps[: self.waiting] if _same(other, read)) > 0

    def _own_journal(self) -> _Journal:
        """A journal that ends with this state."""
        steps = self._journal.steps
        if len(steps) == self.waiting:
            return self._journal
        return _Journal(self.base, steps[: self.waiting], self._journal.known)

    def _after(self, journal: _Journal, step: Step) -> Pending:
        journal.steps.append(step)
        out = object.__new__(Pending)
        out.base, out._journal, out.waiting = self.base, journal, self.waiting + 1
        return out

    @property
    def full(self) -> bool:
        """Whether so many rows wait that they had better be folded in."""
        if self.waiting < MOST_ROWS:
            return False
        columns = self.base.columns.values()
        return self.waiting >= sum(len(s.slots) for c in columns for s in c.sheets.values()) // _SLOTS_PER_ROW

    @cached_property
    def tally(self) -> Tally:
        """The sum."""
        rows: dict[int, list[Row]] = {1: [], -1: []}
        for sign, row in self._journal.steps[: self.waiting]:
            rows[sign].append(row)
        added, gone = (Tally.of(self.base.schema, rows[sign]) if rows[sign] else None for sign in (1, -1))
        total = add_tallies([self.base, *([added] if added else []), *([-gone] if gone else [])])
        return replace(total, schema=renewed_schema(total.schema)) if gone else total


class _Change:
    """By how much the amounts of a class in a sheet have changed."""

    def __init__(self) -> None:
        self.amounts: dict[str, dict[str, Any]] = {}  # slot by slot
        self.total = 0  # rows that all slots together have gained
        self.most = 0  # no slot has gained more rows, now or at any time before

    def with_row(self, added: Added, sign: int) -> dict[str, list[Any]]:
        """What has changed under the slots of a row once it is added or taken away."""
        out = {}
        for amount, numbers in added.amounts.items():
            change = self.amounts.get(amount)
            before = map(change.get, added.slots, repeat(0)) if change else repeat(0)
            out[amount] = [*map(add if sign > 0 else sub, before, numbers)]
        return out

    def put(self, added: Added, sign: int, new: Mapping[str, list[Any]]) -> None:
        """Note it."""
        for amount, numbers in new.items():
            self.amounts.setdefault(amount, {}).update(zip(added.slots, numbers, strict=True))
        self.total += sign * len(added.slots)
        if sign > 0:
            self.most = max([self.most, *new[how_often(added.sheet)]])


_NONE, _NOTHING = _Change(), [0]


class _Journal:
    """Rows that were added to a base and taken from it, one after the other, and what some of them have changed.

    Rows that were added are read only when a row cannot be taken away without them: what rows can have, they can have
    with more rows. A row that is the same as one of them goes with it, and neither has to be read. The last row of a
    class, and of a slot by which the schema or the settings know rows (`known`: by column), is left to the whole tally.
    """

    def __init__(self, base: Tally, steps: Iterable[Step], known: Known) -> None:
        self.base, self.steps, self.known, self.turn = base, list(steps), known, Lock()
        self._seen = 0  # steps that were looked at
        self._unread: dict[Any, list[Row]] = {}  # rows that were added, the same ones together
        self._needed = False  # whether rows that were added have been asked for
        self._since: dict[
            tuple[str | None, str, str], _Change
        ] = {}  # column, sheet, class: what other rows have changed
        self._taken_last: Callable[[], None] | None = (
            None  # notes what the row taken last has changed, once that matters
        )

    def can_take(self, row: Row) -> bool:
        """Take a row away if the tally without it is surely one that rows can have."""
        if self._taken_last is not None:
            self._taken_last()
            self._taken_last = None
        for sign, earlier in self.steps[self._seen :]:
            if sign > 0:
                self._unread.setdefault(_key(earlier), []).append(earlier)
            elif not self._cancelled(earlier):
                self._change(earlier, -1)
        self._seen = len(self.steps)
        taken = self._cancelled(row) or self._taken(row)
        self._seen += taken
        return taken

    def _cancelled(self, row: Row) -> bool:
        """Whether the same row was added; it is then as if neither had come."""
        same = self._unread.get(key := _key(row))
        if same:
            same.pop()
            if not same:
                del self._unread[key]
        return same is not None

    def _change(self, row: Row, sign: int) -> None:
        """Add what a row adds, or take it away."""
        label = label_of(self.base.schema, row)
        for added in row_amounts(self.base.schema, row) if label is not None else ():
            change = self._since.setdefault((added.column, added.sheet, str(label)), _Change())
            change.put(added, sign, change.with_row(added, sign))

    def _read_all(self) -> None:
        for rows in self._unread.values():
            for row in rows:
                self._change(row, 1)
        self._unread.clear()
        self._needed = True

    def _taken(self, row: Row) -> bool:
        label, touched = label_of(self.base.schema, row), row_amounts(self.base.schema, row)
        if label is None or label not in self.base.classes:
            return False
        if self._needed:
            self._read_all()
        new = self._without(label, touched)
        if new is None and self._unread:
            self._read_all()
            new = self._without(label, touched)
        if new is not None:
            self._taken_last = partial(self._note, label, touched, new)
        return new is not None

    def _note(self, label: str, touched: list[Added], new: list[dict[str, list[Any]]]) -> None:
        for added, change in zip(touched, new, strict=True):
            self._since.setdefault((added.column, added.sheet, label), _Change()).put(added, -1, change)

    # ---- whether a row was counted

    def _without(self, label: str, touched: list[Added]) -> list[dict[str, list[Any]]] | None:
        """What has changed, sheet by sheet, without this row; None unless rows can surely have what is left."""
        out, gone = [], {}
        for added in touched:
            index, change = looked = self._look(label, added.column, added.sheet)
            numbers, rest = [*map(index.number.get, added.slots, repeat(-1))], []
            for amount, less in (new := change.with_row(added, -1)).items():
                held = map(index.values.get(amount, _NOTHING).__getitem__, numbers)
                rest.append([*map(add, held, less)])
                if amount != "x" and min(rest[-1], default=0) < 0:
                    return None
            known = self._watched.get(added.column) if added.column is not None else None
            if known is not None and self._last(label, added, rest[0], known):
                return None
            if added.sheet == "moments" and not all(map(_is_possible, *rest)):
                return None
            if added.column is None:
                (weight,), (rows,) = rest
                if not (weight > 0 and rows > 0):
                    return None
            out.append(new)
            gone[added.column, added.sheet] = looked, added.slots
        for place in self._places:
            (index, change), slots = gone.get(place) or (self._look(label, *place), ())
            if not _has_room(index, change, place[1], weight, slots):
                return None
        return out

    def _look(self, label: str, column: str | None, sheet: str) -> tuple[SlotIndex, _Change]:
        """What the base has of a class in a sheet, and what has changed since."""
        counts = self.base.labels if column is None else self.base.columns[column]
        index = slot_index(counts, sheet, self.base.classes.index(label))
        return index, self._since.get((column, sheet, label), _NONE)

    def _last(self, label: str, added: Added, rest: list[Any], known: set[str]) -> bool:
        """Whether a slot by which rows are known has no row left: `rest` of this class, and none of another."""
        ends = [slot for slot, n in zip(added.slots, rest, strict=True) if n == 0 and slot in known]
        others = [self._look(c, added.column, added.sheet) for c in self.base.classes if c != label] if ends else []
        amount = next(iter(added.amounts))
        return any(all(_held(index, change, amount, slot) == 0 for index, change in others) for slot in ends)

    @cached_property
    def _watched(self) -> dict[str | None, set[str]]:
        out: dict[str | None, set[str]] = dict(watched(self.base.schema).items())
        for column, slots in self.known.items():
            out.setdefault(column, set()).update(slots)
        return out

    @cached_property
    def _places(self) -> list[tuple[str, str]]:
        return [(column, sheet) for column, counts in self.base.columns.items() for sheet in counts.sheets]


def _held(index: SlotIndex, change: _Change, amount: str, slot: str) -> Any:
    """What a class has in a slot now."""
    number = index.number.get(slot, -1)
    return index.values.get(amount, _NOTHING)[number] + change.amounts.get(amount, {}).get(slot, 0)


def _has_room(index: SlotIndex, change: _Change, sheet: str, rows: Any, gone: Collection[str]) -> bool:
    """Whether no slot, or not all slots together, can hold more than the rows that are left of the class."""
    if sheet not in EACH:
        return bool(index.total + change.total - len(gone) <= rows)
    gained = change.amounts.get(how_often(sheet), {})
    for slot, n in index.fullest:
        if n + change.most <= rows:  # and so have all that follow
            return True
        if n + gained.get(slot, 0) - (slot in gone) > rows:
            return False
    if change.most > rows:  # slots that the base does not have
        change.most = max(gained.values())
    return len(index.number) <= TOP and bool(change.most <= rows)


def _is_possible(n: Any, x: Any, xx: Any) -> bool:
    """Whether numbers can have these moments."""
    return bool(n * xx >= x * x and (n > 0 or xx == 0))


def _key(row: Row) -> Any:
    """What only the same row has; values of equal rows are of equal types, and floats are told apart by their sign."""
    values = tuple(row.values())
    types = tuple(map(type, values))
    if not _PLAIN.issuperset(types):
        return object()  # nobody has the same
    return tuple(row), types, values if float not in types else tuple(map(repr, values))


def _same(a: Any, b: Any) -> bool:
    with contextlib.suppress(ValueError, TypeError):  # arrays, and pandas' NA, are not compared by ==
        return bool(a == b)
    return False
