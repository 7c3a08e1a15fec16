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

from .changes import Changes
from .one_row import checked
from .tally import Tally, add_tallies

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
