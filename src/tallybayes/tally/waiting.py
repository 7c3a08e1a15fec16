"""What rows have changed since a tally was indexed, and whether one more can be taken away.

Rows added to a tally, or taken from it, one at a time: a base that is indexed once, and the few rows since.

Adding a row to a tally of a hundred thousand words costs as much as the words; remembering the row costs nothing.
Whoever reads the tally sees the sum: the rows are then counted together and folded in. Whether a row can be forgotten
is seen from the slots it touches; where that is not plain to see, the caller asks the whole tally.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from operator import add, sub
from typing import Any

from ..data.kinds import EACH
from .one_row import (
    BORROWED,
    LIMIT,
    PLACES,
    ROW,
    Amounts,
    SlotIndex,
    Touched,
    Words,
    checked,
    label_of,
    row_amounts,
    slot_index,
)
from .tally import Tally, add_tallies

_PLAIN = frozenset((str, int, float, bool, type(None)))  # types of values that are the same where they are equal
_Place = tuple[str, str, str]  # column ("" for the rows themselves), sheet, class


class _Slots(dict[str, Amounts]):
    """What has changed in one sheet and class, by slot."""

    total: Any = 0  # of the first amount, over all slots; only where they share out the rows of a class
    most: Any = 0  # no slot has gained more rows, now or at any time before; only where each may hold all of them


class _WordSlots(dict[str, int]):
    """The same for the words of a text, by far the most: occurrences + ROW · texts in one number."""

    most = 0  # of these numbers
    volume = 0  # occurrences that were added or taken away


_NONE, _NO_WORDS = _Slots(), _WordSlots()


class Changes:
    """Amounts that were taken from a base and added to it since.

    Rows that were added are read only when a row cannot be taken away without them: what rows can have, they can have
    with more rows. A row that is the same as one of them goes with it, and neither has to be read.
    """

    def __init__(self, base: Tally) -> None:
        self.base = base
        self._since: dict[_Place, Any] = {}
        self._unread: dict[Any, list[Mapping[str, Any]]] = {}  # rows that were added, the same ones together
        self._needed = False  # whether rows that were added have been asked for
        self._sheets = [
            (column, sheet, self._room if sheet != "words" or base.schema[column].text is None else self._word_room)
            for column, counts in base.columns.items()
            for sheet in counts.sheets
        ]

    def add(self, row: Mapping[str, Any]) -> None:
        """Note a row that was added."""
        self._unread.setdefault(_key(row), []).append(row)

    def take(self, row: Mapping[str, Any]) -> None:
        """Take a row away of which it is known that it can be."""
        if not self._cancelled(row):
            self._change(row, -1)

    def can_take(self, row: Mapping[str, Any]) -> bool:
        """Take a row away if the tally without it is surely one that rows can have."""
        if self._cancelled(row):
            return True
        label, touched = self._read(row)
        if label is None or label not in self.base.classes:
            return False
        if self._needed:
            self._read_all()
        fresh = self._without(label, touched)
        if fresh is None and self._unread:
            self._read_all()
            fresh = self._without(label, touched)
        if fresh is None:
            return False
        for (column, sheet, slots), words in zip(touched, fresh, strict=True):
            if words is None:
                self._apply((column, sheet, label), slots, -1)
            else:
                held = self._words((column, sheet, label))
                held.update(words)
                held.volume += slots.total()  # type: ignore[union-attr]
        return True

    def _read(self, row: Mapping[str, Any]) -> tuple[str | None, list[Touched]]:
        return label_of(self.base.schema, row), row_amounts(self.base.schema, row)

    def _cancelled(self, row: Mapping[str, Any]) -> bool:
        """Whether the same row was added; it is then as if neither had come."""
        same = self._unread.get(key := _key(row))
        if same:
            same.pop()
            if not same:
                del self._unread[key]
        return same is not None

    def _read_all(self) -> None:
        for rows in self._unread.values():
            for row in rows:
                self._change(row, 1)
        self._unread.clear()
        self._needed = True

    def _change(self, row: Mapping[str, Any], sign: int) -> None:
        label, touched = self._read(row)
        for column, sheet, slots in touched if label is not None else []:
            self._apply((column, sheet, str(label)), slots, sign)

    def _words(self, place: _Place) -> _WordSlots:
        found: _WordSlots = self._since.get(place) or self._since.setdefault(place, _WordSlots())
        return found

    def _apply(self, place: _Place, slots: Mapping[str, Amounts] | Words, sign: int) -> None:
        """Add the amounts of one row under its class, or take them away."""
        if isinstance(slots, Words):
            _add_words(self._words(place), slots, sign)
            return
        held = self._since.get(place)
        if held is None:
            held = self._since[place] = _Slots()
        _add(held, slots, sign, at=1 if place[1] == "words" else 0)
        if place[1] not in EACH:
            held.total += sign * _first(slots.values())

    # ---- whether a row was counted

    def _without(self, label: str, touched: list[Touched]) -> list[dict[str, int] | None] | None:
        """For each sheet what is then changed of a text's words; None unless that is surely what rows can have."""
        y = self.base.classes.index(label)
        rows = self._rest(("", "rows", label), y, "", (1, 1))
        if min(rows) < 0:
            return None
        fresh: list[dict[str, int] | None] = [None]
        for column, sheet, slots in touched[1:]:
            place = (column, sheet, label)
            words = self._fewer(place, y, slots) if isinstance(slots, Words) else None
            if words is None and (isinstance(slots, Words) or not self._has(place, y, slots)):
                return None
            fresh.append(words)
        gone: dict[tuple[str, str], Any] = {(column, sheet): slots for column, sheet, slots in touched}
        for column, sheet, room in self._sheets:
            if not room((column, sheet, label), y, rows[0], gone.get((column, sheet), {})):
                return None
        return fresh

    def _index(self, place: _Place) -> SlotIndex:
        return slot_index(self.base.columns[place[0]] if place[0] else self.base.labels, place[1])

    def _rest(self, place: _Place, y: int, slot: str, gone: Amounts) -> list[Any]:
        """The amounts under a slot and class, less what is to go."""
        less = map(sub, self._index(place).at(slot, y), gone)
        change = self._since.get(place, _NONE).get(slot)
        return list(less) if change is None else list(map(add, less, change))

    def _has(self, place: _Place, y: int, slots: Mapping[str, Amounts]) -> bool:
        """Whether so much is there to be taken away."""
        signed = self._index(place).amounts
        for slot, gone in slots.items():
            rest = self._rest(place, y, slot, gone)
            if any(v < 0 for v, what in zip(rest, signed, strict=True) if what != "x"):
                return False
            if place[1] == "moments" and (rest[0] * rest[2] < rest[1] ** 2 or (rest[0] == 0 and any(rest))):
                return False
        return True

    def _fewer(self, place: _Place, y: int, words: Words) -> dict[str, int] | None:
        """What is changed of these words once they are taken away; None where there are not so many."""
        index, changed = self._index(place).packed(y), self._since.get(place, _NO_WORDS)
        if index is None or changed.volume + words.total() >= LIMIT:
            return None
        number, held, change = index[0].get, index[1], changed.get
        out = {}
        for word, times in words.items():
            new, at = change(word, 0) - times - ROW, number(word)
            rest = new if at is None else new + held[at]
            if rest < 0 or rest & BORROWED:
                return None
            out[word] = new
        return out

    def _room(self, place: _Place, y: int, rows: Any, gone: Mapping[str, Amounts]) -> bool:
        """Whether no slot, or not all slots together, can hold more than the rows that are left of the class."""
        index, changed = self._index(place), self._since.get(place, _NONE)
        if place[1] not in EACH:
            return bool(index.sum(y) + changed.total - _first(gone.values()) <= rows)
        most, none = changed.most, (0,) * len(index.amounts)
        fullest, all_of_them = index.fullest(y)
        for slot, n in fullest:
            if n + most <= rows:  # and so have all that follow
                return True
            if self._rest(place, y, slot, gone.get(slot, none))[index.how_often] > rows:
                return False
        if most > rows and changed:  # slots that the base does not have
            most = changed.most = max(amounts[index.how_often] for amounts in changed.values())
        return all_of_them and bool(most <= rows)

    def _word_room(self, place: _Place, y: int, rows: Any, gone: Words) -> bool:
        """The same of a text's words."""
        changed = self._since.get(place, _NO_WORDS)
        most = _texts(changed.most)
        fullest, all_of_them = self._index(place).fullest(y)
        for word, n in fullest:
            if n + most <= rows:
                return True
            if n + _texts(changed.get(word, 0)) - (word in gone) > rows:
                return False
        if most > rows and changed:
            changed.most = max(changed.values())
            most = _texts(changed.most)
        return all_of_them and bool(most <= rows)


def _key(row: Mapping[str, Any]) -> Any:
    """What only the same row has; values of equal rows are of equal types, and floats are told apart by their sign."""
    values = tuple(row.values())
    types = tuple(map(type, values))
    if not _PLAIN.issuperset(types):
        return object()  # nobody has the same
    return tuple(row), types, values if float not in types else tuple(map(repr, values))


def _texts(number: int) -> int:
    """The texts of a change of a word, whose occurrences may be below 0."""
    return (number + BORROWED) >> PLACES


def _first(amounts: Iterable[Amounts]) -> Any:
    """The sum of the first of some amounts."""
    return sum([a[0] for a in amounts])


def _add_words(changed: _WordSlots, words: Words, sign: int) -> None:
    most, find = changed.most, changed.get
    for word, times in words.items():
        changed[word] = new = find(word, 0) + sign * (times + ROW)
        if new > most:
            most = new
    changed.most = most
    changed.volume += words.total()


def _add(changed: _Slots, slots: Mapping[str, Amounts], sign: int, at: int) -> None:
    """Add the amounts of one row, or take them away; `at` is the one that counts rows."""
    for slot, amounts in slots.items():
        held = changed.get(slot) or (0,) * len(amounts)
        changed[slot] = new = tuple(map(add if sign > 0 else sub, held, amounts))
        if new[at] > changed.most:
            changed.most = new[at]


MOST = 1000  # rows that wait; counting so many at once takes less than adding them
_SLOTS_EACH = 32  # where there are more slots, a row for each so many may wait: folding in takes as long as the slots


@dataclass(frozen=True)
class Pending:
    """A tally and some rows to add (+1) or take away (−1), the last one first."""

    base: Tally
    before: Pending | None = None  # None: nothing has changed yet
    sign: int = 0
    row: Mapping[str, Any] | None = None
    waiting: int = 0

    def update(self, row: Mapping[Any, Any]) -> Pending:
        """The same with one row more; refuses what cannot be read."""
        return Pending(self.base, self, 1, checked(self.base.schema, row), self.waiting + 1)

    def forget(self, row: Mapping[Any, Any]) -> Pending | None:
        """The same with one row less, or None where it is not plain to see that the row was counted."""
        read = checked(self.base.schema, row)
        if not self._since.can_take(read):
            return None
        less = Pending(self.base, self, -1, read, self.waiting + 1)
        less.__dict__["_since"] = self.__dict__.pop("_since")  # only the newest needs it: an older can make it again
        return less

    @property
    def full(self) -> bool:
        """Whether so many rows wait that they had better be folded in."""
        if self.waiting < MOST:
            return False
        columns = self.base.columns.values()
        return self.waiting >= sum(len(s.slots) for c in columns for s in c.sheets.values()) // _SLOTS_EACH

    @cached_property
    def tally(self) -> Tally:
        """The sum."""
        rows: dict[int, list[Mapping[str, Any]]] = {1: [], -1: []}
        node: Pending | None = self
        while node is not None and node.row is not None:
            rows[node.sign].append(node.row)
            node = node.before
        added, gone = (Tally.of(self.base.schema, rows[s]) if rows[s] else None for s in (1, -1))
        return add_tallies([self.base, *([added] if added else []), *([-gone] if gone else [])])

    @cached_property
    def _since(self) -> Changes:
        """What the waiting rows have changed."""
        chain, node = [], self
        while "_since" not in node.__dict__ and node.before is not None:
            chain.append(node)
            node = node.before
        out: Changes = node.__dict__.pop("_since", None) or Changes(self.base)
        for step in reversed(chain):
            assert step.row is not None
            (out.add if step.sign > 0 else out.take)(step.row)
        return out
