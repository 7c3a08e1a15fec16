"""What a schema has learnt from rows, and how it is renewed once rows are forgotten or left out of a copy.

A schema that `infer` made remembers more than kinds: cells have points, a pair of columns has groups of values, reasons
say how many values there were, and those of older files quote some. `renewed` takes out of it whatever only the
forgotten rows had. Tallies that were counted before still add to the renewed one: `in_common` brings both to the points
and groups that both can have counted by. `with_least` makes the copy in which nothing has fewer than so many rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ..base.errors import CannotEstimate, SettingsError
from ..data.pairs import PairColumn, group_names, pair_slot, pair_values
from ..data.schema import Column, Schema
from ..exact.counts import Counts
from .guard import ROWS, how_often
from .together import TOGETHER, without_together

if TYPE_CHECKING:
    from .tally import Tally

REASON, OF_A_COPY = "chosen before rows were forgotten", "chosen before the copy was made"
_KEPT = frozenset(("", "chosen by hand", "added by hand", "written by hand", "asked for", REASON, OF_A_COPY))


def slots_of(tally: Tally, column: str, sheet: str) -> set[str]:
    """The slots of one sheet that have any count."""
    found = tally.columns[column].sheets.get(sheet)
    return set() if found is None else set(found.slot_names)


def renewed_schema(schema: Schema, reason: str = REASON) -> Schema:
    """The schema without what `infer` said about the rows: reasons, and the cells of columns that nobody counts."""
    columns = [_renewed(c, reason) for c in schema.columns]
    return (
        schema if all(a is b for a, b in zip(columns, schema.columns, strict=True)) else schema._with(columns=columns)
    )


def _renewed(column: Column, reason: str) -> Column:
    said, left = column.reason not in _KEPT, column.cells is not None and column.about.encode is None
    if not said and not left:
        return column
    return replace(column, reason=reason if said else column.reason, cells=None if left else column.cells)


def renewed(before: Tally | None, after: Tally) -> Tally:
    """The tally `after` rows were forgotten, its schema without the points and groups that only they had.

    Without a tally from before it is a copy for others: no point and no group stays that it has not counted.
    """
    schema = renewed_schema(after.schema, OF_A_COPY if before is None else REASON)
    columns, counts = {c.name: c for c in schema.columns}, dict(after.columns)
    for column in schema.counted:
        if column.cells is not None and column.cells.points:
            slots = {p: column.cells.slot_of(p) for p in column.cells.points}
            gone = _gone(before, after, column.name, "cells", slots.values())
            kept = tuple(p for p, slot in slots.items() if slot not in gone)
            columns[column.name] = replace(column, cells=column.cells.with_points(kept))
        if column.of is not None and any(side.groups for side in column.of):
            sides = tuple(_without(side, _lost(before, after, side)) for side in column.of)
            if before is None and any(a.groups and not b.groups for a, b in zip(column.of, sides, strict=True)):
                del columns[column.name], counts[column.name]  # it would have every value by itself
                continue
            columns[column.name] = replace(column, of=sides)
            counts[column.name] = _regrouped(counts[column.name], column.of, sides)
    if len(columns) == len(schema.columns) and all(columns[c.name] == c for c in schema.columns):
        return after if schema is after.schema else replace(after, schema=schema)
    return replace(after, schema=schema._with(columns=tuple(columns.values())), columns=counts)


def by_renewed(tally: Tally, schema: Schema) -> Tally:
    """A part of a tally under the schema that the whole has after `renewed`, which took out nothing the part has."""
    counts = dict(tally.columns)
    for column in tally.schema.counted:
        old, new = column.of, schema[column.name].of
        if old is not None and new is not None and old != new:
            counts[column.name] = _regrouped(counts[column.name], old, new)
    return replace(tally, schema=schema, columns=counts)


def _counted_as(schema: Schema, side: PairColumn) -> Column | None:
    """The column that counts by itself what is one side of a pair."""
    return next((c for c in schema.counted if c.of is None and (c.reads, c.part) == (side.source, side.part)), None)


def _gone(before: Tally | None, after: Tally, column: str, sheet: str, known: Iterable[str]) -> set[str]:
    """The slots, of those that were there or else of all that are known, that nothing is counted in any more."""
    return ({*known} if before is None else slots_of(before, column, sheet)) - slots_of(after, column, sheet)


def _lost(before: Tally | None, after: Tally, side: PairColumn) -> set[str]:
    own = _counted_as(after.schema, side)
    if own is None:  # nobody knows how many rows have a value
        return {*side.group_of} if before is None else set()
    return _gone(before, after, own.name, "values", side.group_of)


def _without(side: PairColumn, lost: set[str]) -> PairColumn:
    groups = tuple(tuple(v for v in group if v not in lost) for group in side.groups)
    return replace(side, groups=tuple(g for g in groups if g))


def _regrouped(counts: Counts, old: Sequence[PairColumn], new: Sequence[PairColumn]) -> Counts:
    """The counts of a pair by other groups of its sides, without the slots of groups that are none any more."""
    sheet = counts.sheets.get("values")
    if sheet is None:
        return counts
    sides = zip(old, new, strict=True)
    gone = [{a.group_of[v] for v in a.group_of} - {a.group_of[v] for v in b.group_of} for a, b in sides]
    kept = np.array([u not in gone[0] and v not in gone[1] for u, v in map(pair_values, sheet.slot_names)])
    return Counts({**counts.sheets, "values": sheet.only(kept[sheet.slot])}).rename("values", new_slot(old, new))


def new_slot(old: Sequence[PairColumn], new: Sequence[PairColumn]) -> Callable[[str], str]:
    """How a slot of a pair is called once the groups of its sides are others: each is known by any of its values."""
    names = []
    for a, b in zip(old, new, strict=True):
        pairs = zip(a.groups, group_names(a.groups), strict=True)
        names.append({name: b.group_of[v] for group, name in pairs for v in group if v in b.group_of})

    def renamed(slot: str) -> str:
        u, v = pair_values(slot)
        return pair_slot(names[0].get(u, u), names[1].get(v, v))

    return renamed


def watched(schema: Schema) -> dict[str, set[str]]:
    """The slots by column whose last row cannot go without a trace in the schema."""
    out: dict[str, set[str]] = {}
    for column in schema.counted:
        if column.cells is not None and column.cells.points:
            out[column.name] = set(map(column.cells.slot_of, column.cells.points))
        for side in column.of or ():
            own = _counted_as(schema, side) if side.groups else None
            if own is not None:
                out.setdefault(own.name, set()).update(side.group_of)
    return out


# ---- tallies from before and after


def in_common(tallies: Sequence[Tally]) -> Sequence[Tally]:
    """The same tallies by the same points and groups, where their cells and pairs differ in nothing else.

    A point that a tally does not have stays if the tally has nothing in the general cell around it, and so has counted
    no row that has the value. Otherwise every row at the point is put into that cell: as if it had never been one.
    """
    if all(t.schema is tallies[0].schema for t in tallies[1:]):
        return tallies
    for column in tallies[0].schema.counted:
        if all(column.name in t.columns for t in tallies):
            if column.cells is not None:
                tallies = _with_common_cells(column.name, tallies)
            if column.of is not None and any(side.groups for side in column.of):
                tallies = _with_common_groups(column.name, tallies)
    return tallies


def _with_common_cells(name: str, tallies: Sequence[Tally]) -> Sequence[Tally]:
    each = [t.schema[name].cells for t in tallies]
    known = [c for c in each if c is not None]
    first = known[0]
    apart = any((c.centre, c.exponent) != (first.centre, first.exponent) for c in known)
    if len(known) < len(each) or apart or all(c == first for c in known):
        return tallies
    points = {p for cells in known for p in cells.points}
    for tally, cells in zip(tallies, known, strict=True):
        counted = slots_of(tally, name, "cells")
        points -= {p for p in points.difference(cells.points) if cells.slot_of(p) in counted}
    common = replace(first, discrete=all(c.discrete for c in known)).with_points(points)
    out = []
    for tally, cells in zip(tallies, known, strict=True):
        around = {cells.slot_of(p): common.slot_of(p) for p in {*cells.points} - points}
        counts = tally.columns[name].rename("cells", _by(around))
        out.append(_changed(tally, replace(tally.schema[name], cells=common), counts))
    return out


def _by(names: Mapping[str, str]) -> Callable[[str], str]:
    return lambda slot: names.get(slot, slot)


def _with_common_groups(name: str, tallies: Sequence[Tally]) -> Sequence[Tally]:
    each = [t.schema[name].of or () for t in tallies]
    if any(len(sides) != len(each[0]) for sides in each) or all(sides == each[0] for sides in each):
        return tallies
    common = [_united(tallies, sides) for sides in zip(*each, strict=True)]
    if any(side is None for side in common):
        return tallies
    sides = tuple(side for side in common if side is not None)
    return [
        _changed(t, replace(t.schema[name], of=sides), t.columns[name].rename("values", new_slot(old, sides)))
        for t, old in zip(tallies, each, strict=True)
    ]


def _united(tallies: Sequence[Tally], sides: Sequence[PairColumn]) -> PairColumn | None:
    """The side with the groups of all; None where a tally may have counted a value otherwise than another."""
    most = max(sides, key=lambda side: len(side.group_of))
    if any(replace(side, groups=most.groups) != most for side in sides) or not all(
        s.groups for s in sides if most.groups
    ):
        return None
    for tally, side in zip(tallies, sides, strict=True):
        own = _counted_as(tally.schema, side)
        missing = {*most.group_of} - {*side.group_of}
        together = [{most.group_of.get(v) for v in group} for group in side.groups]
        one_each = all(len(names) == 1 for names in together) and len(set().union(*together)) == len(together)
        if None in set().union(*together) or not one_each or (missing and own is None):
            return None
        if own is not None and missing & slots_of(tally, own.name, "values"):
            return None
    return most


def _changed(tally: Tally, column: Column, counts: Counts) -> Tally:
    columns = [column if c.name == column.name else c for c in tally.schema.columns]
    return replace(tally, schema=tally.schema._with(columns=columns), columns={**tally.columns, column.name: counts})


# ---- a copy for others


def with_least(tally: Tally, rows: int) -> Tally:
    """The tally without what fewer rows have, see `Tally.at_least`."""
    if isinstance(rows, bool) or not isinstance(rows, (int, np.integer)) or rows < 2:
        raise SettingsError(f"at least {rows!r} rows", hint="take a whole number of 2 or more, usually 5 to 20.")
    wrong = tally.impossible()
    if wrong is not None:
        raise CannotEstimate(f"this tally is a difference that no rows can have: {wrong}", hint="share a sum.")
    if weighted(tally):
        raise SettingsError(
            "the rows have weights, and a sum of weights does not say how many rows stand behind it",
            hint="count the rows without weights, or leave rare values out of the data before they are counted.",
        )
    by_class = tally.labels.sheet("rows", ROWS).table("rows", len(tally.classes)).sum(axis=0)
    few = by_class < rows
    if np.count_nonzero(~few) < min(2, len(few)):
        raise SettingsError(
            f"only {np.count_nonzero(~few)} of {len(few)} classes have at least {rows} rows: nothing is left to tell "
            "apart",
            hint="ask for fewer rows, or put small classes together before counting.",
        )
    kept = tally.regroup([None if small else name for small, name in zip(few.tolist(), tally.classes, strict=True)])
    after = replace(
        kept,
        schema=without_together(kept.schema)._with(receipts=False),
        labels=kept.labels.without("receipts").without(TOGETHER),
        columns={name: _with_least(counts, rows, len(kept.classes)) for name, counts in kept.columns.items()},
        skipped=kept.skipped if kept.skipped >= rows else 0,
        least_rows=max(int(rows), tally.least_rows),
    )
    return renewed(None, after)


def weighted(tally: Tally) -> bool:
    """Whether a row may have counted other than once: a class weighs more or less than it has rows, or a part of a row
    was counted somewhere."""
    n, rows = (tally.labels.sheet("rows", ROWS).table(a, len(tally.classes)).sum(axis=0) for a in ROWS)
    sheets = (pair for c in (tally.labels, *tally.columns.values()) for pair in c.sheets.items())
    parts = (s.amount[s.limb < 0, s.amounts.index(how_often(name))].any() for name, s in sheets)
    return tally.schema.weights is not None or bool((n != rows).any()) or any(map(bool, parts))


def _with_least(counts: Counts, rows: int, n_labels: int) -> Counts:
    """The slots that at least so many rows have, all classes together; sums of numbers class by class."""
    out = {}
    for name, sheet in counts.sheets.items():
        if "x" in sheet.amounts:
            kept = sheet.table(how_often(name), n_labels)[sheet.slot, sheet.label] >= rows
        else:
            kept = (sheet.by_slot(how_often(name)) >= rows)[sheet.slot]
        out[name] = sheet.only(kept)
    return Counts({name: sheet for name, sheet in out.items() if sheet})
