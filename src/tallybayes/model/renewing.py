"""What settings that were fitted to rows know of them by name or place, once rows are forgotten or left out of a copy.

Offsets name classes, corrections name cells, and the stretches of a number are cut between two values: half-way to a
value that only a forgotten row had, a cut gives it away.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ..base import canon
from ..base.arrays import Floats
from ..data.pairs import PairColumn, broad_stretches, group_names, pair_values
from ..exact.cells import Cells
from ..exact.sheet import Sheet
from ..families.calibration import Correction
from ..families.settings import Settings
from ..families.smoothing import Dirichlet
from ..tally.tally import Tally
from ..tally.traces import new_slot, slots_of

_ROUNDED = 5e-4  # of a cut: four digits of it are kept where they part the same values


def known_slots(settings: Settings, tally: Tally) -> dict[str, Collection[str]]:
    """The slots by column whose last row cannot go without a trace in the settings."""
    out: dict[str, Collection[str]] = {}
    for name, correction in settings.corrections.items():
        occupied = _Occupied.of(tally, name) if correction.cuts else None
        out[name] = correction.cells if occupied is None else occupied.beside(correction.cuts)
        if name in tally.columns and tally.schema[name].of is not None:  # a value may have cells that no row has
            out[name] = {*correction.cells} | _slots(tally, name)
    return out


def without_traces(
    settings: Settings, before: Tally, after: Tally, *, copied: bool = False, erased: bool = False
) -> Settings:
    """The settings without the classes and the cells of corrections that only the forgotten rows had.

    In a copy for others nothing stays by name that it has not counted. Where rows are erased for good, a cut beside a
    cell that they alone had goes, too; otherwise what is forgotten as it was added leaves the settings as they were.
    """
    lost = {*before.classes} - {*after.classes}
    if copied:
        named = {*settings.offsets, *(c for each in settings.corrections.values() for c in each.classes)}
        lost = named - {*after.classes, *settings.classes}
    offsets = {c: nats for c, nats in settings.offsets.items() if c not in lost}
    corrections = {
        name: _of_slots(name, _of_classes(correction, lost, after.classes), before, after, copied)
        if not correction.cuts
        else _of_stretches(name, _of_classes(correction, lost, after.classes), before, after, erased)
        for name, correction in settings.corrections.items()
    }
    if offsets == settings.offsets and corrections == settings.corrections:
        return settings
    return replace(settings, offsets=offsets, corrections=corrections)


def aged(settings: Settings, before: Tally, after: Tally, *, forgot: bool = False) -> Settings:
    """The settings once rows were added or forgotten: fitted weights are by so many older, unless all is as it was.

    What the tally was before rows were added is remembered by its digest, until other rows than these are forgotten:
    the digest of a tally that has them would let a guess at them be checked.
    """
    calibrated = settings.calibrated
    if calibrated is None:
        return settings
    origin = calibrated.origin
    if not forgot and not calibrated.changed:
        origin = f"{before.rows} {before.digest}"
    if forgot and origin.startswith(f"{after.rows} ") and origin == f"{after.rows} {after.digest}":
        return replace(settings, calibrated=replace(calibrated, changed=0, origin=""))
    older = settings.after(abs(after.rows - before.rows))
    assert older.calibrated is not None
    return replace(older, calibrated=replace(older.calibrated, origin="" if forgot else origin))


def without_origin(settings: Settings) -> Settings:
    """The settings of a copy for others, which knows no digest of what was left out of it."""
    if settings.calibrated is None or not settings.calibrated.origin:
        return settings
    return replace(settings, calibrated=replace(settings.calibrated, origin=""))


def _of_classes(correction: Correction, lost: set[str], left: Sequence[str]) -> Correction:
    """The correction without what it adds to some classes."""
    kept = [i for i, name in enumerate(correction.classes) if name not in lost]
    if len(kept) == len(correction.classes):
        return correction
    if not kept:  # a correction has a class: one that is left, to which it adds nothing
        return replace(correction, classes=tuple(left[:1]) or ("",), added=np.zeros((len(correction.added), 1)))
    return replace(correction, classes=tuple(correction.classes[i] for i in kept), added=correction.added[:, kept])


def without_classes(settings: Settings, before: Tally, after: Tally) -> Settings:
    """The settings without the classes that a copy for others has left out, where a person has named them."""
    lost = {*before.classes} - {*after.classes}
    if not lost:
        return settings
    prior = settings.prior
    if isinstance(prior, Mapping):
        left = {c: p for c, p in prior.items() if canon.text(c) not in lost}
        total = sum(left.values())
        prior = {c: p / total for c, p in left.items()} if total > 0 else "counted"
    elif isinstance(prior, Dirichlet):
        amounts = {c: a for c, a in prior.amounts.items() if canon.text(c) not in lost}
        prior = replace(prior, amounts=amounts) if amounts else "counted"
    return replace(settings, prior=prior, classes=tuple(c for c in settings.classes if c not in lost))


def _of_slots(name: str, correction: Correction, before: Tally, after: Tally, copied: bool) -> Correction:
    """The correction without cells that have lost their last row, the others called as their slots are called now.

    A cell on the line of a number or of groups is called by cuts that stay, and says what its neighbours say, too; it
    goes with a value that only the forgotten rows had, whether a row was in it or not.
    """
    if not correction.cells or name not in after.columns:
        return correction
    old, new = before.schema[name].of, after.schema[name].of
    had, there, cells = _slots(before, name), _slots(after, name), list(correction.cells)
    if old is not None and new is not None and old != new:
        rename = new_slot(old, new)
        had, cells = set(map(rename, had)), list(map(rename, cells))
    if old is not None and new is not None and any(side.ordered for side in old):
        gone = [_lost_values(*sides, side, had, there, copied) for side, sides in enumerate(zip(old, new, strict=True))]
        kept = [i for i, (u, v) in enumerate(map(pair_values, cells)) if not (gone[0](u) or gone[1](v))]
    elif copied or cells != [*correction.cells]:
        kept = [i for i, slot in enumerate(cells) if slot in there]
    else:
        kept = [i for i, slot in enumerate(cells) if slot not in had - there]
    if kept == [*range(len(cells))] and cells == [*correction.cells]:
        return correction
    return replace(correction, cells=tuple(cells[i] for i in kept), added=correction.added[kept])


def _lost_values(
    old: PairColumn, new: PairColumn, side: int, had: set[str], there: set[str], copied: bool
) -> Callable[[str], bool]:
    """Whether a value of one side of a pair is none any more: no stretch ever is, a group that has lost all values."""
    if old.cuts:
        return lambda value: False
    if old.groups:
        groups = {*group_names(new.groups)}
        return lambda value: value not in groups
    left = {pair_values(slot)[side] for slot in there}
    if copied:
        return lambda value: value not in left
    lost = {pair_values(slot)[side] for slot in had} - left
    return lambda value: value in lost


def _slots(tally: Tally, name: str) -> set[str]:
    return {slot for sheet in tally.columns[name].sheets for slot in slots_of(tally, name, sheet)}


# ---- the stretches of a number


class _Occupied:
    """The cells of a number that have any row, from left to right."""

    def __init__(self, cells: Cells, sheet: Sheet | None) -> None:
        names = [] if sheet is None else sheet.slot_names
        low, high = cells.edges(cells.slot_codes(names)) if names else (np.zeros(0), np.zeros(0))
        order = np.lexsort((high, low))
        self.low, self.high = (np.nan_to_num(edge[order]) for edge in (low, high))
        self.slots = [names[i] for i in order.tolist()]
        self.rows: Floats = np.zeros(0) if sheet is None else sheet.by_slot("n")[order]

    @classmethod
    def of(cls, tally: Tally, name: str) -> _Occupied | None:
        """Those of a column; None where it has no cells, or is not counted."""
        cells = tally.schema[name].cells if name in tally.columns else None
        return None if cells is None else cls(cells, tally.columns[name].sheets.get("cells"))

    def before(self, cut: float) -> int:
        """How many of the cells lie before a cut, by their middle."""
        return int(np.searchsorted(self.low / 2 + self.high / 2, cut, side="left"))

    def neighbours(self, cut: float) -> list[str]:
        """The cells on either side of a cut."""
        at = self.before(cut)
        return self.slots[max(at - 1, 0) : at + 1]

    def beside(self, cuts: Sequence[float]) -> set[str]:
        """The cells beside any cut."""
        return {slot for cut in cuts for slot in self.neighbours(cut)}

    def is_half_way(self, cut: float) -> bool:
        """Whether a cut may be in the middle of two values, in four digits, of cells that are further apart than wide.

        If they are not, it is in the middle of many values, and tells one from the other no better than the cells do.
        """
        at, near = self.before(cut), _ROUNDED * abs(cut)
        if not 0 < at < len(self.slots):
            return False
        wide = self.high[at - 1 : at + 1] / 2 - self.low[at - 1 : at + 1] / 2
        if self.low[at] / 2 - self.high[at - 1] / 2 <= wide.sum():
            return False
        low, high = (edge[at - 1] / 2 + edge[at] / 2 for edge in (self.low, self.high))
        return bool(low - near <= cut <= high + near)

    def between(self, cut: float) -> float | None:
        """Half-way between the cells on either side, in four digits where these part them; None at either end."""
        at = self.before(cut)
        if not 0 < at < len(self.slots):
            return None
        left, right = float(self.high[at - 1]), float(self.low[at])
        middle = left / 2 + right / 2
        return next((c for c in (float(f"{middle:.4g}"), middle) if left < c <= right), right)

    def by_stretch(self, cuts: Sequence[float]) -> Floats:
        """How many rows each stretch between cuts has."""
        return np.diff(np.concatenate(([0.0], np.cumsum(self.rows)))[[0, *map(self.before, cuts), len(self.rows)]])


def _of_stretches(name: str, correction: Correction, before: Tally, after: Tally, erased: bool) -> Correction:
    """The correction of a number whose cuts say nothing of a cell that has lost its last row.

    A cut half-way between such a cell and the next is placed anew between the cells that are left, or goes. Where rows
    are erased it is done to every cut beside such a cell: rows that came since the cuts were made may hide the middle.
    """
    old, new = (_Occupied.of(tally, name) for tally in (before, after))
    if old is None or new is None or not (gone := {*old.slots} - {*new.slots}):
        return correction
    told = [not gone.isdisjoint(old.neighbours(cut)) and (erased or old.is_half_way(cut)) for cut in correction.cuts]
    if not any(told):
        return correction
    placed = [new.between(cut) if is_told else cut for cut, is_told in zip(correction.cuts, told, strict=True)]
    return _joined(correction, new.by_stretch(correction.cuts), placed, 0)


def with_wide_stretches(settings: Settings, before: Tally, after: Tally) -> Settings:
    """The settings of a copy for others, in which the stretches of corrections have at least as many rows as slots.

    A cell of a pair with fewer says what its broad cell says on average.

    Where a cell beside a cut is not in the copy, the cut goes to the edge of a general cell, which is nobody's value.
    """
    out = dict(settings.corrections)
    for name, correction in settings.corrections.items():
        if not correction.cuts:
            out[name] = _in_broad_cells(name, correction, before, after.least_rows)
            continue
        old, new, cells = _Occupied.of(before, name), _Occupied.of(after, name), before.schema[name].cells
        rows = np.zeros(len(correction.cuts) + 1) if old is None else old.by_stretch(correction.cuts)
        placed: list[float | None] = [None] * len(correction.cuts)
        if old is not None and new is not None and cells is not None:
            edges = np.nan_to_num(cells.edges(cells.general_codes(np.array(correction.cuts)))[1]).tolist()
            each = zip(correction.cuts, edges, strict=True)
            placed = [new.between(c) if old.neighbours(c) == new.neighbours(c) else edge for c, edge in each]
        out[name] = _joined(correction, rows, placed, after.least_rows)
    return replace(settings, corrections=out)


def _in_broad_cells(name: str, correction: Correction, tally: Tally, least: int) -> Correction:
    """The correction of a pair on a line, in which cells of fewer rows add what their broad cell does on average.

    They go where that has too few rows as well.
    """
    sides = tally.schema[name].of if name in tally.columns else None
    if sides is None or not correction.cells or not any(side.ordered for side in sides):
        return correction
    places = [dict(zip(s.cells, broad_stretches(len(s.cells)).tolist(), strict=True)) for s in sides]
    broad = [tuple(p.get(v, v) for p, v in zip(places, pair_values(c), strict=True)) for c in correction.cells]
    number = {cell: i for i, cell in enumerate(dict.fromkeys(broad))}
    at = np.array([number[cell] for cell in broad])
    sheet = tally.columns[name].sheets.get("values")
    counted = {} if sheet is None else dict(zip(sheet.slot_names, sheet.by_slot("n").tolist(), strict=True))
    rows = np.array([counted.get(cell, 0.0) for cell in correction.cells])
    total, sums = np.bincount(at, rows, len(number)), np.zeros((len(number), correction.added.shape[1]))
    np.add.at(sums, at, correction.added * rows[:, None])
    few, enough = rows < least, total >= least
    added = np.where(few[:, None], (sums / np.maximum(total, 1.0)[:, None])[at], correction.added)
    kept = np.flatnonzero(~few | enough[at]).tolist()
    return replace(correction, cells=tuple(correction.cells[i] for i in kept), added=added[kept])


def _joined(correction: Correction, rows: Floats, cuts: Sequence[float | None], least: int) -> Correction:
    """The correction with its cuts at other places, and stretches of at least so many rows.

    A stretch with fewer is put together with the next, and so are two whose cut has no place or that of another; both
    then add what they added on average over their rows.
    """
    starts: list[int] = [0]
    found, last = float(rows[0]), -np.inf
    for i, cut in enumerate(cuts, 1):
        if cut is not None and cut > last and found >= least and rows[i:].sum() >= least:
            starts.append(i)
            found, last = 0.0, cut
        found += float(rows[i])
    total = np.add.reduceat(rows, starts)
    weights = rows + (total == 0).repeat(np.diff([*starts, len(rows)]))
    added = np.add.reduceat(correction.added * weights[:, None], starts, axis=0)
    places = tuple(float(cuts[i - 1] or 0.0) for i in starts[1:])
    return replace(correction, cuts=places, added=added / np.add.reduceat(weights, starts)[:, None])
