"""Rows added to a tally, or taken from it, one at a time: a base that is indexed once, and the few rows since.

Adding a row to a tally of a hundred thousand words costs as much as the words; remembering the row costs nothing.
Whoever reads the tally sees the sum: the rows are then counted together and folded in. Whether a row can be forgotten
is seen from the slots it touches; where that is not plain to see, the caller asks the whole tally.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from operator import add, lt
from typing import Any

import numpy as np

from . import encode
from .batches import one_row
from .block import Block, Codes, Groups
from .counts import Counts, Sheet
from .possible import ROWS
from .tally import Tally, add_tallies
from .textblock import Texts

MOST = 1000  # rows that wait; counting so many at once takes less than adding them
_EACH = ("moments", "words", "levels")  # sheets in which every slot may hold all rows of a class

Touched = tuple[str, str, str, list[Any]]  # column ("" for the rows themselves), sheet, slot, amounts


@dataclass(frozen=True)
class Pending:
    """A tally and some rows to add (+1) or take away (−1), the last one first."""

    base: Tally
    before: Pending | None = None  # None: nothing has changed yet
    sign: int = 0
    row: Mapping[str, Any] | None = None
    waiting: int = 0

    def update(self, row: Mapping[str, Any]) -> Pending:
        """The same with one row more; refuses what cannot be read."""
        self._read(row)
        return Pending(self.base, self, 1, dict(row), self.waiting + 1)

    def forget(self, row: Mapping[str, Any]) -> Pending | None:
        """The same with one row less, or None where it is not plain to see that the row was counted."""
        label, touched = self._read(row)
        if label is None or not self._holds(label, touched):
            return None
        return Pending(self.base, self, -1, dict(row), self.waiting + 1)

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

    def _read(self, row: Mapping[str, Any]) -> tuple[str | None, list[Touched]]:
        schema, batch = self.base.schema, one_row(row)
        label = encode.labels(schema, batch).text(0)
        encode.check_columns(schema, batch)
        return label, [("", "rows", "", [1, 1]), *_touched(encode.blocks(schema, batch))]

    @cached_property
    def _since(self) -> dict[tuple[str, str, str], dict[str, list[Any]]]:
        """What the waiting rows have changed, by column, sheet and class, then slot; `_ALL` has the sum over slots."""
        chain, node = [], self
        while "_since" not in node.__dict__ and node.before is not None:
            chain.append(node)
            node = node.before
        out = node.__dict__.pop("_since", None)  # taken over: only the newest needs it, an older one can make it again
        out = {} if out is None else out
        for step in reversed(chain):
            assert step.row is not None
            label, touched = self._read(step.row)
            for column, sheet, slot, amounts in touched if label is not None else []:
                changes = out.setdefault((column, sheet, str(label)), {})
                for place in (slot, _ALL):
                    held = changes.setdefault(place, [0] * len(amounts))
                    held[:] = [a + step.sign * b for a, b in zip(held, amounts, strict=True)]
        return out

    def _holds(self, label: str, touched: list[Touched]) -> bool:
        """Whether the tally less these amounts is surely one that rows can have."""
        if label not in self.base.classes:
            return False
        y = self.base.classes.index(label)
        rows: Any = 0
        place, index, changes = ("", ""), _index(self.base.labels, "rows"), dict[str, list[Any]]()
        for column, name, slot, amounts in touched:
            if (column, name) != place or not changes:
                place, index = (column, name), _index(self._counts(column), name)
                changes = self._since.get((column, name, label), _NO_CHANGES)
            held, change = index.at(slot, y), changes.get(slot)
            if name == "words":  # by far the most, so by the shortest way
                if any(map(lt, held if change is None else map(add, held, change), amounts)):
                    return False
                continue
            rest = [a - b + c for a, b, c in zip(held, amounts, change or [0] * len(held), strict=True)]
            if min(rest) < 0 and any(v < 0 for v, what in zip(rest, index.amounts, strict=True) if what != "x"):
                return False
            if name == "moments" and (rest[0] * rest[2] < rest[1] ** 2 or (rest[0] == 0 and any(rest))):
                return False
            rows = rest[0] if column == "" else rows
        return all(
            self._room(column, name, y, label, rows, amounts)
            for column, counts in self.base.columns.items()
            for name, amounts in ((n, _slots_of(touched, column, n)) for n in counts.sheets)
        )

    def _room(self, column: str, name: str, y: int, label: str, rows: Any, gone: Any) -> bool:
        """Whether no slot, or not all slots together, can hold more than the rows that are left of the class."""
        index = _index(self._counts(column), name)
        if name in _EACH:
            return bool(index.most[y] + self.waiting <= rows)
        change = self._since.get((column, name, label), _NO_CHANGES).get(_ALL)
        return bool(index.sums[y] + (change[0] if change else 0) - gone <= rows)

    def _counts(self, column: str) -> Counts:
        return self.base.columns[column] if column else self.base.labels


_ALL = "\x00"  # no slot: the sum over all of them
_NO_CHANGES: dict[str, list[Any]] = {_ALL: [0]}


def _slots_of(touched: list[Touched], column: str, sheet: str) -> Any:
    return sum(amounts[0] for c, s, _, amounts in touched if (c, s) == (column, sheet))


def _touched(blocks: Mapping[str, Block]) -> Iterator[Touched]:
    """The amounts of one row, column by column."""
    for name, block in blocks.items():
        if isinstance(block, Codes):
            text = block.text(0)
            if text is not None:
                yield name, "values", text, [1]
        elif isinstance(block, Texts) and block.levels is None and block.tokeniser.hash_bits is None:
            text = block.text(0)
            if text is not None:
                yield name, "rows", "", [1]
                for token, times in Counter(block.tokeniser.tokens(text)).items():
                    yield name, "words", token, [times, 1]
        else:
            for sheet, counted in block.sum_by(Groups(np.zeros(1, dtype=np.int64), 1)).items():
                index = _Index(counted)
                for slot in index.number:
                    yield name, sheet, slot, index.at(slot, 0)


def _index(counts: Counts, sheet: str) -> _Index:
    return counts.once(("index", sheet), lambda: _Index(counts.sheet(sheet, ROWS)))


class _Index:
    """A sheet that answers for one slot at a time, as fast for many slots as for few."""

    def __init__(self, sheet: Sheet) -> None:
        self.amounts, self._none = sheet.amounts, [0] * len(sheet.amounts)
        self.number = {name: i for i, name in enumerate(sheet.slot_names)}
        self._starts = np.searchsorted(sheet.slot, np.arange(len(sheet.slots) + 1)).tolist()
        self._label, self._limb, self._amount = sheet.label.tolist(), sheet.limb.tolist(), sheet.amount.tolist()
        self._whole: list[dict[str, list[int]]] | None = None  # slot to amounts for each class, where no limb but 0 is
        n_labels = int(sheet.label.max(initial=-1)) + 1
        table = sheet.table("documents" if "documents" in sheet.amounts else "n", n_labels)
        if not any(self._limb):
            self._whole = [{} for _ in range(n_labels)]
            for number, y, amount in zip(sheet.slot.tolist(), self._label, self._amount, strict=True):
                self._whole[y][sheet.slot_names[number]] = amount
        self.sums, self.most = _Per(table.sum(axis=0).tolist()), _Per(table.max(axis=0, initial=0.0).tolist())

    def at(self, slot: str, label: int) -> list[Any]:
        """The exact amounts under a slot and class."""
        if self._whole is not None and label < len(self._whole):
            return self._whole[label].get(slot, self._none)
        out: list[Any] = self._none
        number = self.number.get(slot)
        if number is None:
            return out
        for entry in range(self._starts[number], self._starts[number + 1]):
            if self._label[entry] == label:
                limb, amount = self._limb[entry], self._amount[entry]
                unit: Any = 1 << (32 * limb) if limb >= 0 else Fraction(1, 1 << (-32 * limb))
                out = [o + a * unit for o, a in zip(out, amount, strict=True)] if limb or any(out) else amount
        return out


class _Per(list[float]):
    """A number per class, 0 for a class that the sheet does not have."""

    def __getitem__(self, label: Any) -> Any:
        return super().__getitem__(label) if label < len(self) else 0.0
