"""When did it change, and what: every column parted at every time between two periods.

Each p at a time is that of two samples (`model.joint.two_samples`): how often chance alone parts the rows before it
from those after it as far, if every row could as well have come in any other period. Of a column all times are asked,
over all classes and within each; neighbouring times part almost the same rows, so to multiply by their number would
cost power. How often chance alone shows as much at any of them is had by dealing the rows out (`deals`). Columns are
then corrected by Holm's method. The level was measured: see docs/windows.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import Floats
from ...base.canon import many, printable
from ...base.errors import CannotEstimate
from ...base.show import Page, Shown, first_that_fits
from ...data.kinds import KINDS
from ...model.joint.dependence import LEVEL, holm
from ...model.joint.shift import Gap, shift
from ...model.joint.side_by_side import FINE, SideBySide
from ...model.joint.two_samples import chances_along
from ...tally.windows import Windows
from .deals import LEAST, chance_of_any, combined

if TYPE_CHECKING:
    from ...explain.plots import PeriodsDisplay

_MOST_TIMES = 64  # that rows are parted at, evenly by rows; then those between the likeliest two, to name the time
_DRAWN = 6  # columns of a picture


@dataclass(frozen=True)
class ColumnChange:
    """What one column did over time."""

    column: str
    kind: str
    when: str  # the first period that looks otherwise than those before it, as likely as any
    after: str  # the last period before that
    p_value: float | None  # how often chance alone would show as much at any time; None where no counts allow a test
    p_corrected: float | None = None  # for so many columns, by Holm's method
    times: tuple[str, ...] = ()  # the first periods after each place where rows were parted
    p_at: tuple[float, ...] = field(default=(), repr=False)  # the p-value of each
    within: bool = False  # whether it is seen best within the classes
    gap: Gap | None = None  # of a change: how rows before and after differ, over all classes

    @property
    def verdict(self) -> str:
        """In words: "changed" (corrected p below 0.05), "no sign of a change", or "not tested"."""
        if self.p_corrected is None:
            return "not tested"
        return "changed" if self.p_corrected < LEVEL else "no sign of a change"


@dataclass(frozen=True, repr=False)
class Changes(Shown):
    """What `tb.change` found, the surest first; the class itself is one of the columns. Print it.

    >>> windows = tb.Windows(tb.Schema([tb.Column("Sky", "category")], target="Play"), by="day", time="When")
    >>> rows = {"Sky": ["sunny"] * 60 + ["rainy"] * 60, "Play": ["yes", "no"] * 60}
    >>> rows["When"] = [f"2024-05-{1 + row // 20:02}" for row in range(120)]
    >>> windows.add(rows)
    >>> tb.change(windows).summary
    'Changed: Sky with 2024-05-04.'
    """

    periods: tuple[str, ...]
    rows: int
    columns: tuple[ColumnChange, ...]

    def __getitem__(self, column: str) -> ColumnChange:
        for c in self.columns:
            if c.column == column:
                return c
        raise KeyError(column)

    def __iter__(self) -> Iterator[ColumnChange]:
        return iter(self.columns)

    @property
    def changed(self) -> tuple[ColumnChange, ...]:
        """The columns that changed."""
        return tuple(c for c in self.columns if c.verdict == "changed")

    @property
    def _tested(self) -> int:
        """How many columns have a p-value."""
        return sum(c.p_value is not None for c in self.columns)

    @property
    def summary(self) -> str:
        """What was found, in a sentence; that nothing could be tested where no column has a p-value."""
        if not self._tested:
            return "Nothing could be tested: rows are weighted, or each has a label of its own."
        found = [f"{printable(c.column, 40)} with {c.when}" for c in self.changed[:6]]
        more = f" and {len(self.changed) - 6} more" if len(self.changed) > 6 else ""
        return f"Changed: {', '.join(found)}{more}." if found else "No sign of a change."

    def plot(self, ax: Any = None) -> PeriodsDisplay:
        """The p-values of the surest columns at every time, and the level that one of so many columns must reach.

        There is neither where nothing could be tested.
        """
        return self.picture().plot(ax)

    def picture(self) -> PeriodsDisplay:
        """The same, not drawn yet."""
        from ...explain.plots import PeriodsDisplay

        shown = [c for c in self.columns if c.p_at][:_DRAWN]
        curves = {c.column: (c.times, [-np.log10(max(p, LEAST)) for p in c.p_at]) for c in shown}
        marks = [(c.column, c.when) for c in self.changed if c in shown]
        bar = -float(np.log10(LEVEL / self._tested)) if self._tested else None
        return PeriodsDisplay(self.periods, curves, "−log₁₀ p of a change at this time", bar, marks)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield first_that_fits((self._page(w) for w in ((), (1,), (1, 4), (1, 3, 4, 5))), options.max_width).rich()

    def _page(self, without: Sequence[int] = ()) -> Page:
        lines = [["column", "kind", "when", "mean difference", "divergence", "p", "corrected p", ""]]
        for c in self.columns:
            gap, found = c.gap or Gap(), c.verdict == "changed"
            said = f"{c.verdict}{', within the classes' if found and c.within else ''}"
            lines.append([
                printable(c.column, 100), c.kind, c.when if found else "-", _figure(gap.mean_difference, "+.3f"),
                _figure(gap.divergence, ".4f"), _figure(c.p_value, ".2g"), _figure(c.p_corrected, ".2g"), said,
            ])  # fmt: skip
        title = f"Change over {many(len(self.periods), 'period')}, {self.periods[0]} to {self.periods[-1]}"
        kept = [i for i in range(8) if i not in without]
        left = [kept.index(i) for i in (0, 1, 2, 7) if i in kept]
        return Page(
            f"{title}, {many(self.rows, 'row')}", [[line[i] for i in kept] for line in lines], left, indent=2,
            foot=self.summary,
        )  # fmt: skip


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def change(windows: Windows, *, start: Any = None, end: Any = None) -> Changes:
    """Which columns changed from one period to a later one, and when; the surest first.

    Every column is asked at every time, over all classes and within each; p and p_corrected count all of that. It is
    assumed that rows come independently of each other: those of one customer, or of one bad hour, are fewer than they
    look. Bags and texts have no p, nor have weighted rows; what is read of the time itself is not asked.

    >>> windows = tb.Windows(tb.Schema([tb.Column("Sky", "category")], target="Play"), by="day", time="When")
    >>> rows = {"Sky": ["sunny"] * 60 + ["rainy"] * 60, "Play": ["yes", "no"] * 60}
    >>> rows["When"] = [f"2024-05-{1 + row // 20:02}" for row in range(120)]
    >>> windows.add(rows)
    >>> [(found.column, found.when, found.verdict) for found in tb.change(windows).columns]
    [('Sky', '2024-05-04', 'changed'), ('Play', '2024-05-02', 'no sign of a change')]
    """
    first, stop = windows._bounds(start, end)
    numbers = [k for k in windows.numbers if first <= k < stop]
    if len(numbers) < 2:
        raise CannotEstimate(
            f"{many(len(numbers), 'period')} with rows, so that there is no time between two of them",
            hint="give windows of at least two periods, or tell shorter ones apart.",
        )
    asked = [c for c in windows.schema.counted if windows.time not in c.inputs]
    each = _Scan(windows, numbers, 1 + len(asked))
    found = [each.target(), *(each.column(c.name, c.kind) for c in asked)]
    corrected = holm([c.p_value for c in found])
    found = [replace(c, p_corrected=p) for c, p in zip(found, corrected, strict=True)]
    found = [each.with_size(c) if c.verdict == "changed" else c for c in found]
    found.sort(key=lambda c: (2.0 if c.p_value is None else c.p_value, -max(c.p_at, default=0.0)))
    return Changes(tuple(map(windows.name, numbers)), round(float(each.side.weights.sum())), tuple(found))


class _Scan:
    """The periods side by side."""

    def __init__(self, windows: Windows, numbers: Sequence[int], questions: int) -> None:
        self.windows, self.numbers, self.questions = windows, numbers, questions
        self.side = SideBySide([windows.between(k, k + 1, keep=False) for k in numbers])
        self.stops = _even(self.side.weights.sum(axis=1))

    def target(self) -> ColumnChange:
        """What the classes themselves did."""
        return self._asked(self.windows.schema.target, "class", [self.side.weights[:, :, None]], 0)

    def column(self, name: str, kind: str) -> ColumnChange:
        """What a column did."""
        table = None if KINDS[kind].words else self.side.table(name, kind, FINE)
        if table is None:
            return self._asked(name, kind, [], 0)
        on_line = table.shape[1] if KINDS[kind].like == "number" else 0
        table = np.concatenate([table, self.side.missing(table)], axis=1)
        tables = [table.sum(axis=2, keepdims=True), table]
        return self._asked(name, kind, tables if table.shape[2] > 1 else tables[:1], on_line)

    def _asked(self, name: str, kind: str, tables: Sequence[Floats], on_line: int) -> ColumnChange:
        names = list(map(self.windows.name, self.numbers))
        if not tables or not self.side.whole_rows or tables[-1].sum(axis=0).max(initial=0.0) <= 1:
            return ColumnChange(name, kind, "", "", None)
        p = np.stack([chances_along(_joined(t, self.stops), on_line) for t in tables])
        both = combined(p)
        best = _likeliest(both, _joined(tables[-1], self.stops))
        within = len(p) > 1 and bool(p[1, best] < p[0, best])
        at = self._refined(tables, on_line, best)
        times = tuple(names[i] for i in self.stops)
        whole = chance_of_any(_joined(tables[-1], self.stops), on_line, self.questions)
        return ColumnChange(
            name, kind, names[at], names[at - 1], whole, times=times, p_at=tuple(both.tolist()), within=within
        )

    def _refined(self, tables: Sequence[Floats], on_line: int, best: int) -> int:
        """The period that a change begins with, looked for among all between the neighbours of the likeliest time."""
        low = self.stops[best - 1] if best else 0
        high = self.stops[best + 1] if best + 1 < len(self.stops) else len(self.numbers)
        near = list(range(low + 1, high))
        if len(near) <= 1:
            return self.stops[best]
        parts = [_joined(t, near) for t in tables]
        return near[_likeliest(combined(np.stack([chances_along(t, on_line) for t in parts])), parts[-1])]

    def with_size(self, found: ColumnChange) -> ColumnChange:
        """The same with how rows before and after it differ."""
        at = self.windows.number(found.when)
        before = self.windows.between(self.numbers[0], at, keep=False)
        after = self.windows.between(at, self.numbers[-1] + 1, keep=False)
        return replace(found, gap=shift(before, after)[found.column].marginal)


def _even(rows: Floats) -> list[int]:
    """The periods before which rows are parted: all but the first, or some of so many, about evenly by rows."""
    if len(rows) - 1 <= _MOST_TIMES:
        return list(range(1, len(rows)))
    share = np.cumsum(rows)[:-1] / rows.sum()
    wanted = (np.arange(_MOST_TIMES) + 0.5) / _MOST_TIMES
    return sorted({min(int(i), len(rows) - 2) + 1 for i in np.searchsorted(share, wanted)})


def _joined(table: Floats, stops: Sequence[int]) -> Floats:
    """The counts of periods added up between the places where rows are parted."""
    return np.asarray(np.add.reduceat(table, [0, *stops], axis=0))


def _likeliest(p: Floats, table: Floats) -> int:
    """The time of the smallest p; of those too small to be told apart, the one that Pearson's X² is largest at."""
    least = np.flatnonzero(p <= max(float(p.min()), 2 * LEAST))
    if len(least) == 1:
        return int(least[0])
    total = table.sum(axis=0)
    first = np.cumsum(table, axis=0)[least]
    n = first.sum(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = n / total.sum(axis=0)
        x2 = np.nan_to_num((first - total * share) ** 2 / (total * share * (1 - share)))
    return int(least[np.argmax(x2.sum(axis=(1, 2)))])
