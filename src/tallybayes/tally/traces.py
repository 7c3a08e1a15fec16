"""What a schema has learnt from rows, and how it is renewed once rows are forgotten.

A schema that `infer` made remembers more than kinds: reasons quote values, cells have points, a pair of columns has
groups of values. `renewed` takes out of it whatever only the forgotten rows had. Tallies that were counted before still
add to the renewed one: `in_common` brings both to the points and groups that both can have counted by.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ..data.pairs import PairColumn, group_names, pair_slot, pair_values
from ..data.schema import Column, Schema
from ..exact.counts import Counts

if TYPE_CHECKING:
    from .tally import Tally

REASON = "chosen before rows were forgotten"
_KEPT = frozenset(("", "chosen by hand", "added by hand", "written by hand", "asked for", REASON))  # quote no value


def slots_of(tally: Tally, column: str, sheet: str) -> set[str]:
    """The slots of one sheet that have any count."""
    found = tally.columns[column].sheets.get(sheet)
    return set() if found is None else set(found.slot_names)


def renewed_schema(schema: Schema) -> Schema:
    """The schema without what `infer` said about the rows: reasons, and the cells of columns that nobody counts."""
    columns = [_renewed(c) for c in schema.columns]
    return (
        schema if all(a is b for a, b in zip(columns, schema.columns, strict=True)) else schema._with(columns=columns)
    )


def _renewed(column: Column) -> Column:
    said, left = column.reason not in _KEPT, column.cells is not None and column.about.encode is None
    if not said and not left:
        return column
    return replace(column, reason=REASON if said else column.reason, cells=None if left else column.cells)


def renewed(before: Tally, after: Tally) -> Tally:
    """The tally `after` rows were forgotten, its schema without the points and groups that only they had."""
    schema = renewed_schema(after.schema)
    columns, counts = {c.name: c for c in schema.columns}, dict(after.columns)
    for column in schema.counted:
        if column.cells is not None and column.cells.points:
            gone = slots_of(before, column.name, "cells") - slots_of(after, column.name, "cells")
            kept = tuple(p for p in column.cells.points if column.cells.slot_of(p) not in gone)
            columns[column.name] = replace(column, cells=column.cells.with_points(kept))
        if column.of is not None and any(side.groups for side in column.of):
            sides = tuple(_without(side, _lost(before, after, side)) for side in column.of)
            columns[column.name] = replace(column, of=sides)
            counts[column.name] = counts[column.name].rename("values", new_slot(column.of, sides))
    if all(columns[c.name] == c for c in schema.columns):
        return after if schema is after.schema else replace(after, schema=schema)
    return replace(after, schema=schema._with(columns=tuple(columns.values())), columns=counts)


def _counted_as(schema: Schema, side: PairColumn) -> Column | None:
    """The column that counts by itself what is one side of a pair."""
    return next((c for c in schema.counted if c.of is None and (c.reads, c.part) == (side.source, side.part)), None)


def _lost(before: Tally, after: Tally, side: PairColumn) -> set[str]:
    own = _counted_as(after.schema, side)
    return set() if own is None else slots_of(before, own.name, "values") - slots_of(after, own.name, "values")


def _without(side: PairColumn, lost: set[str]) -> PairColumn:
    groups = tuple(tuple(v for v in group if v not in lost) for group in side.groups)
    return replace(side, groups=tuple(g for g in groups if g))


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
