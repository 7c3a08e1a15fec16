"""Rows counted by period: once, under classes that are (period, class), which are taken apart when all are added.

A batch whose rows are of many periods so costs one pass like any other, and adding batches up adds one tally each.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from ..base.arrays import Ints
from ..data import encode
from ..data.batch import Batch
from ..data.blocks import Groups
from ..data.schema import Schema
from .tally import Tally, add_tallies, count_rows

_TOGETHER = 16  # batches added at once
_MOST = 64  # periods that are held in one tally, which is longer to add the more it has
_ZERO, _DIGITS = 1 << 63, 20  # periods are written as so many digits, negative ones too, so that names sort as they do


@dataclass(frozen=True)
class Mixed:
    """The counts of rows of several periods: a tally of (period, class), and rows without a label by period."""

    tally: Tally
    skipped: Mapping[int, int]


def count_mixed(schema: Schema, batch: Batch, periods: Ints, *, first: bool = False) -> Mixed:
    """The counts of a batch whose rows are of these periods."""
    read = encode.labelled(schema, batch, first=first)
    skipped: dict[int, int] = {}
    if read.skipped:
        weight = encode.weights(schema, batch)
        none = (encode.labels(schema, batch).codes < 0) & (True if weight is None else weight > 0)
        numbers, counts = np.unique(periods[none], return_counts=True)
        skipped = dict(zip(numbers.tolist(), counts.tolist(), strict=True))
    numbers, at = np.unique(periods[read.rows], return_inverse=True)
    width = max(len(read.classes), 1)
    used, group = np.unique(at * width + read.labels, return_inverse=True)
    names = [f"{int(numbers[u // width]) + _ZERO:0{_DIGITS}d}{read.classes[u % width]}" for u in used.tolist()]
    return Mixed(count_rows(schema, names, Groups(group, len(names), read.weights), read.blocks), skipped)


def sum_by_period(each: Iterable[Mixed], schema: Schema) -> dict[int, Tally]:
    """The tallies by period of some batches, of which only a few are in memory at a time."""
    out: dict[int, list[Tally]] = {}
    skipped: dict[int, int] = {}
    waiting: list[Tally] = []

    def part() -> None:
        for period, tally in _apart(add_tallies(waiting)) if waiting else ():
            parts = out.setdefault(period, [])
            parts.append(tally)
            if len(parts) >= _TOGETHER:
                out[period] = [add_tallies(parts)]
        waiting.clear()

    for mixed in each:
        waiting.append(mixed.tally)
        for period, count in mixed.skipped.items():
            skipped[period] = skipped.get(period, 0) + count
        if len(waiting) >= _TOGETHER:
            waiting[:] = [add_tallies(waiting)]
            if len({name[:_DIGITS] for name in waiting[0].classes}) > _MOST:
                part()
    part()
    found = {period: add_tallies(parts) for period, parts in out.items()}
    for period, count in skipped.items():
        found[period] = replace(found.get(period, Tally.zero(schema)), skipped=count)
    return found


def _apart(tally: Tally) -> Iterator[tuple[int, Tally]]:
    """The tally of each period, by taking halves until one is left."""
    periods = [name[:_DIGITS] for name in tally.classes]
    middle = sorted({*periods})[len({*periods}) // 2] if periods else ""
    if not periods:
        return
    if middle == periods[0]:  # the only one: of two the middle is the second
        yield int(middle) - _ZERO, tally.regroup([name[_DIGITS:] for name in tally.classes])
        return
    for late in (False, True):
        kept = [c if (p >= middle) == late else None for p, c in zip(periods, tally.classes, strict=True)]
        yield from _apart(tally.regroup(kept))
