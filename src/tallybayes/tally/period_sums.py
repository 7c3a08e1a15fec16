"""Sums of the tallies of periods: a tree of them, the window before moved on, and decay by powers of two.

A node of level l has the 2^l periods whose numbers agree but for their last l bits, so that a stretch of periods is a
sum of at most 2·log₂(its length) nodes, and a period that changes is in one node of each level.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import replace

from .tally import Tally, add_tallies


class PeriodSums:
    """Tallies by the number of their period, and the sum of any stretch of them."""

    def __init__(self, parts: MutableMapping[int, Tally]) -> None:
        self.parts = parts
        self.keys = sorted(parts)
        self._nodes: dict[tuple[int, int], Tally] = {}
        self._asked: tuple[Mapping[int, Tally], Tally] | None = None  # the window before, and what it was the sum of

    def put(self, new: Mapping[int, Tally]) -> None:
        """Put tallies in the place of those of some periods; one of nothing takes its period away."""
        levels = {level for level, _ in self._nodes}
        for k, tally in new.items():
            there = k in self.parts
            if tally.classes or tally.skipped:
                self.parts[k] = tally
                if not there:
                    insort(self.keys, k)
            elif there:
                del self.parts[k]
                self.keys.remove(k)
            for level in levels:
                self._nodes.pop((level, k >> level), None)

    def between(self, start: int, stop: int, *, keep: bool = True) -> Tally | None:
        """The sum of the periods start ≤ p < stop, None of none; `keep` it as what the next is likely to begin with."""
        parts = {k: self.parts[k] for k in self.keys[bisect_left(self.keys, start) : bisect_left(self.keys, stop)]}
        terms = self._moved_on(parts)
        if terms is None:
            terms = [t for level, i in cover(start, stop) if (t := self._node(level, i)) is not None]
        total = add_tallies(terms) if parts else None
        if keep and total is not None:
            self._asked = parts, total
        return total

    def _moved_on(self, parts: Mapping[int, Tally]) -> list[Tally] | None:
        """The window before, what has come since and what has left; None where the tree has less to add."""
        if self._asked is None:
            return None
        before, total = self._asked
        come = [t for k, t in parts.items() if before.get(k) is not t]
        left = [t for k, t in before.items() if parts.get(k) is not t]
        if len(come) + len(left) > min(len(parts) / 2, len(parts).bit_length()):
            return None
        return [total, *come, *(-t for t in left)]

    def _node(self, level: int, index: int) -> Tally | None:
        """The sum of 2^level periods; None where none has rows."""
        start, stop = (bisect_left(self.keys, i << level) for i in (index, index + 1))
        if stop - start <= 1:
            return self.parts[self.keys[start]] if stop > start else None
        if (level, index) not in self._nodes:
            halves = [self._node(level - 1, 2 * index + half) for half in (0, 1)]
            self._nodes[level, index] = add_tallies([t for t in halves if t is not None])
        return self._nodes[level, index]

    def decayed(self, stop: int, life: int, halvings: int) -> Tally | None:
        """Σ 2^−⌊(stop − 1 − p) / life⌋ · tally of p over the periods before `stop`; None of none."""
        total: Tally | None = None
        oldest = max(stop - life * halvings, self.keys[0] if self.keys else stop)
        for back in reversed(range(-(-(stop - oldest) // life))):  # ½(½(oldest) + older) + newest
            total = None if total is None else halved(total)
            part = self.between(stop - life * (back + 1), stop - life * back, keep=False)
            if part is not None:
                part = without_receipts(part)
                total = part if total is None else part + total
        return total


def cover(start: int, stop: int) -> Iterator[tuple[int, int]]:
    """The fewest nodes (level, index) of the tree that hold the periods from start up to stop, and no others.

    >>> list(cover(3, 9))
    [(0, 3), (2, 1), (0, 8)]
    """
    while start < stop:
        level = (stop - start).bit_length() - 1
        if start:
            level = min(level, (start & -start).bit_length() - 1)
        yield level, start >> level
        start += 1 << level


def halved(tally: Tally, times: int = 1) -> Tally:
    """The tally in which every row weighs 2^−times of what it did, to the last bit; rows stay as many as they were.

    Hashes of rows are left out: no row of that weight was ever given.
    """
    plain = without_receipts(tally)
    columns = {name: counts.halved(times) for name, counts in plain.columns.items()}
    return replace(plain, labels=plain.labels.halved(times, but=("rows",)), columns=columns)


def without_receipts(tally: Tally) -> Tally:
    """The tally without a hash of each row."""
    if not tally.schema.receipts:
        return tally
    return replace(tally, schema=tally.schema._with(receipts=False), labels=tally.labels.without("receipts"))
