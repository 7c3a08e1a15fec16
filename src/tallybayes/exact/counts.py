"""What one column has counted: a few named sheets of exact integers, see `sheet`, and what was worked out from them."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np

from ..base.arrays import Objects
from ..base.records import Record
from .sheet import Index, Sheet, add_sheets

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class Counts(Record):
    """What one column has counted: named sheets. Sheets that are zero do not exist."""

    sheets: Mapping[str, Sheet]
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)  # what was worked out from the sheets before

    def once(self, key: Any, work: Callable[[], T]) -> T:
        """The result of some work on these counts, done the first time it is asked for."""
        if key not in self._known:
            self._known[key] = work()
        out: T = self._known[key]
        return out

    def __getstate__(self) -> dict[str, Any]:
        return {"sheets": self.sheets, "_known": {}}

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Counts):
            return NotImplemented
        return dict(self.sheets) == dict(other.sheets)

    __hash__ = None  # type: ignore[assignment]

    def __neg__(self) -> Counts:
        return Counts({name: -sheet for name, sheet in self.sheets.items()})

    def relabel(self, new: Index) -> Counts:
        """The same counts with class i renumbered to new[i]."""
        if bool(np.array_equal(new, np.arange(len(new)))):
            return self  # with all that is known of them
        return Counts({name: sheet.relabel(new) for name, sheet in self.sheets.items()})

    def regroup(self, new: Index) -> Counts:
        """The same counts with class i put into new[i], left out where that is −1."""
        sheets = {name: sheet.regroup(new) for name, sheet in self.sheets.items()}
        return Counts({name: sheet for name, sheet in sheets.items() if sheet})

    def halved(self, times: int, but: Sequence[str] = ()) -> Counts:
        """All amounts times 2^−times, those named in `but` as they are."""
        return Counts({name: sheet.halved(times, but) for name, sheet in self.sheets.items()})

    def without(self, name: str) -> Counts:
        """The counts less one sheet."""
        return Counts({n: s for n, s in self.sheets.items() if n != name})

    def rename(self, name: str, new: Callable[[str], str]) -> Counts:
        """The counts with the slots of one sheet called otherwise; slots of one name are put together."""
        if name not in self.sheets:
            return self
        sheet = self.sheets[name].rename(new)
        return Counts({n: sheet if n == name else s for n, s in self.sheets.items() if n != name or sheet})

    def sheet(self, name: str, amounts: tuple[str, ...]) -> Sheet:
        """The sheet of this name, zero where nothing was counted."""
        return self.sheets.get(name) or Sheet.empty(amounts)

    def exact(self, name: str, amounts: tuple[str, ...], n_labels: int) -> list[tuple[Objects, int]]:
        """Every amount of a sheet as `Sheet.exact` gives it, worked out once."""
        sheet = self.sheet(name, amounts)
        return self.once(("exact", name, n_labels), lambda: [sheet.exact(a, n_labels) for a in amounts])

    def labels(self) -> set[int]:
        """The class numbers that have any entry."""
        return {i for sheet in self.sheets.values() for i in sheet.classes()}

    def update_digest(self, digest: hashlib._Hash) -> None:
        """Feed the logical content to a hash."""
        for name in sorted(self.sheets):
            digest.update(f"sheet {name}\n".encode())
            for piece in self.sheets[name].content():
                digest.update(piece)


def add_counts(all_counts: Sequence[Counts]) -> Counts:
    """The sum of any number of counts, sheet by sheet."""
    names = sorted({name for counts in all_counts for name in counts.sheets})
    sums = {name: add_sheets([c.sheets[name] for c in all_counts if name in c.sheets]) for name in names}
    return Counts({name: sheet for name, sheet in sums.items() if sheet})
