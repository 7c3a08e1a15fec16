"""Rows added to a tally, or taken from it, one at a time: a base that is indexed once, and the few rows since.

Adding a row to a tally of a hundred thousand words costs as much as the words; remembering the row costs nothing.
Whoever reads the tally sees the sum: the rows are then counted together and folded in. Whether a row can be forgotten
is seen from the slots it touches; where that is not plain to see, the caller asks the whole tally.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from .counts import Counts
from .rowamounts import Touched, checked, label_of, row_amounts
from .slotindex import Amounts, slot_index
from .tally import Tally, add_tallies

MOST = 1000  # rows that wait; counting so many at once takes less than adding them
_SLOTS_EACH = 32  # where there are more slots, a row for each so many may wait: folding in takes as long as the slots
_EACH = ("moments", "words", "levels")  # sheets in which every slot may hold all rows of a class


class _Changes(dict[str, Amounts]):
    """What the waiting rows have changed in one sheet and class, by slot."""

    total: Any = 0  # of the first amount, over all slots; only where they share out the rows of a class
    most: Any = 0  # no slot has gained more rows, now or at any time before; only where each may hold all of them


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
        less = Pending(self.base, self, -1, checked(self.base.schema, row), self.waiting + 1)
        label, touched = less._touched
        return less if label is not None and self._holds(label, touched) else None

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
    def _touched(self) -> tuple[str | None, list[Touched]]:
        """The class and the amounts of the last row."""
        assert self.row is not None
        return label_of(self.base.schema, self.row), row_amounts(self.base.schema, self.row)

    @cached_property
    def _since(self) -> dict[tuple[str, str, str], _Changes]:
        """What the waiting rows have changed, by column, sheet and class."""
        chain, node = [], self
        while "_since" not in node.__dict__ and node.before is not None:
            chain.append(node)
            node = node.before
        out = node.__dict__.pop("_since", None)  # taken over: only the newest needs it, an older one can make it again
        out = {} if out is None else out
        for step in reversed(chain):
            label, touched = step._touched
            step.__dict__.pop("_touched")  # thousands of rows may wait
            for column, sheet, slots in touched if label is not None else []:
                changes = out.get((column, sheet, str(label)))
                if changes is None:
                    changes = out[column, sheet, str(label)] = _Changes()
                _add(changes, slots, step.sign, at=1 if sheet == "words" else 0)
                if sheet not in _EACH:
                    changes.total += step.sign * sum(amounts[0] for amounts in slots.values())
        return out

    def _holds(self, label: str, touched: list[Touched]) -> bool:
        """Whether the tally less these amounts is surely one that rows can have."""
        if label not in self.base.classes:
            return False
        y = self.base.classes.index(label)
        gone = {(column, sheet): slots for column, sheet, slots in touched}
        rows = self._rest("", "rows", label, y, "", (1, 1))
        if min(rows) < 0:
            return False
        return all(self._has(column, sheet, label, y, slots) for column, sheet, slots in touched[1:]) and all(
            self._room(column, sheet, label, y, rows[0], gone.get((column, sheet), {}))
            for column, counts in self.base.columns.items()
            for sheet in counts.sheets
        )

    def _rest(self, column: str, sheet: str, label: str, y: int, slot: str, gone: Amounts) -> list[Any]:
        """The amounts under a slot and class, less what is to go."""
        held = slot_index(self._counts(column), sheet).at(slot, y)
        changes = self._since.get((column, sheet, label))
        change = None if changes is None else changes.get(slot)
        less = [h - g for h, g in zip(held, gone, strict=True)]
        return less if change is None else [a + c for a, c in zip(less, change, strict=True)]

    def _has(self, column: str, sheet: str, label: str, y: int, slots: Mapping[str, Amounts]) -> bool:
        """Whether so much is there to be taken away."""
        if sheet == "words":  # by far the most, so by the shortest way
            held = slot_index(self._counts(column), sheet).of(y)
            change: Mapping[str, Amounts] = self._since.get((column, sheet, label), {})
            for slot, (times, rows) in slots.items():
                n, documents = held.get(slot, (0, 0))
                more, further = change.get(slot, (0, 0))
                if n + more < times or documents + further < rows:
                    return False
            return True
        signed = slot_index(self._counts(column), sheet).amounts
        for slot, gone in slots.items():
            rest = self._rest(column, sheet, label, y, slot, gone)
            if any(v < 0 for v, what in zip(rest, signed, strict=True) if what != "x"):
                return False
            if sheet == "moments" and (rest[0] * rest[2] < rest[1] ** 2 or (rest[0] == 0 and any(rest))):
                return False
        return True

    def _room(self, column: str, sheet: str, label: str, y: int, rows: Any, gone: Mapping[str, Amounts]) -> bool:
        """Whether no slot, or not all slots together, can hold more than the rows that are left of the class."""
        index, changes = slot_index(self._counts(column), sheet), self._since.get((column, sheet, label))
        if sheet not in _EACH:
            more = 0 if changes is None else changes.total
            return bool(index.sum(y) + more - sum(amounts[0] for amounts in gone.values()) <= rows)
        most, none = (0 if changes is None else changes.most), (0,) * len(index.amounts)
        fullest, all_of_them = index.fullest(y)
        for slot, n in fullest:
            if n + most <= rows:  # and so have all that follow
                return True
            if self._rest(column, sheet, label, y, slot, gone.get(slot, none))[index.how_often] > rows:
                return False
        if most > rows and changes:  # slots that the base does not have
            most = changes.most = max(amounts[index.how_often] for amounts in changes.values())
        return all_of_them and bool(most <= rows)

    def _counts(self, column: str) -> Counts:
        return self.base.columns[column] if column else self.base.labels


def _add(changes: _Changes, slots: Mapping[str, Amounts], sign: int, at: int) -> None:
    """Add the amounts of one row to the changes, or take them away; `at` is the one that counts rows."""
    most, find = changes.most, changes.get
    for slot, amounts in slots.items():
        held = find(slot)
        if held is None:
            new = amounts if sign > 0 else tuple(-a for a in amounts)
        elif len(held) == 2:  # words: by far the most
            new = (held[0] + sign * amounts[0], held[1] + sign * amounts[1])
        else:
            new = tuple(h + sign * a for h, a in zip(held, amounts, strict=True))
        changes[slot] = new
        if new[at] > most:
            most = new[at]
    changes.most = most
