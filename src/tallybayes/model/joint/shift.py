"""How two sets of rows differ, column by column: whether they come from one distribution.

Rows with labels are compared over all classes and within each. Rows without are compared with the sum over the classes,
which needs no label, and `mixture` says whether another mixture of the classes would explain what has moved.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ...base.arrays import Floats, log_ratio_sum
from ...base.canon import many, printable
from ...base.errors import CannotEstimate, SchemaError, excerpt
from ...base.show import Page, Shown, first_that_fits
from ...data import encode
from ...data.kinds import KINDS
from ...data.schema import Schema
from ...data.sources import open_source
from ...families.forms import distance
from ...families.moments import read_moments
from ...tally.tally import Tally
from ...tally.unlabelled import count_unlabelled, is_unlabelled
from .dependence import LEVEL, holm
from .mixture import Explained
from .side_by_side import FINE, SideBySide
from .two_samples import chance_of

_BINS = 10  # cells of about equal frequency that a number's cells are coarsened to at most, for a divergence
_UNITS = "(Divergence in nats, 0.693 is nothing in common{}.)"
_VISIBLE = 0.01  # of the share of a class: less is the same figure before and after
_APART = math.log(2) - 1e-9  # the divergence of distributions that have nothing in common


@dataclass(frozen=True)
class Gap:
    """How two distributions of one column differ; None where the column does not have that measure."""

    divergence: float | None = None  # Jensen–Shannon, in nats: 0 the same, log 2 nothing in common
    mean_difference: float | None = None  # (mean of b − mean of a) / √((σ_a² + σ_b²)/2); a vector's largest

    @property
    def size(self) -> float:
        """Nats, so that gaps compare: a difference of d deviations is worth d²/8, as for two close Gaussians."""
        d = self.mean_difference
        return max(self.divergence or 0.0, 0.0 if d is None else min(d * d / 8, math.log(2)))


@dataclass(frozen=True)
class Shift:
    """How one column differs between two tallies: over all classes, and within each."""

    column: str
    kind: str
    marginal: Gap
    by_class: Mapping[str, Gap]  # the classes that both tallies have
    within: float  # the mean size of the gaps within the classes, by their rows
    p_value: float | None  # how often chance alone parts the tallies as far; None where no counts allow a test
    p_value_within: float | None  # the same within the classes that both have; None if there is none
    p_corrected: float | None = None  # one for both questions and for so many columns, by Holm's method
    new: float | None = None  # of the values of b, the share that a never has; of a number, beyond its range
    p_mixture: float | None = None  # without labels: of being as far from any mixture of the learnt classes, corrected

    @property
    def size(self) -> float:
        """The larger of the gap over all classes and the mean gap within them, in nats."""
        return max(self.marginal.size, self.within)

    @property
    def verdict(self) -> str:
        """In words: "shifted" (corrected p below 0.05), "no sign of a shift", or "not tested"."""
        if self.p_corrected is None:
            return "not tested"
        return "shifted" if self.p_corrected < LEVEL else "no sign of a shift"

    @property
    def reason(self) -> str:
        """What more can be said of a shift, in words; empty where there is none."""
        if self.verdict != "shifted":
            return ""
        if self.new == 1.0 or (self.marginal.divergence or 0.0) > _APART:
            return "nothing in common"
        if self.p_mixture is None:
            return ""
        return "within the classes" if self.p_mixture < LEVEL else "as another mixture of the classes would"


@dataclass(frozen=True, repr=False)
class Shifts(Shown):
    """What `shift` found, the largest first; the class itself is one of the columns. Print it."""

    rows: tuple[int, int]
    columns: tuple[Shift, ...]
    # without labels: the share of each class as it was learnt, and that which fits the rows best
    mixture: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __getitem__(self, column: str) -> Shift:
        for s in self.columns:
            if s.column == column:
                return s
        raise KeyError(column)

    def __iter__(self) -> Iterator[Shift]:
        return iter(self.columns)

    @property
    def summary(self) -> str:
        """What was found, in a sentence or two."""
        moved = [s for s in self.columns if s.verdict == "shifted"]
        if not moved:
            return "No sign of a shift."
        names = _listed([s.column for s in moved])
        if not self.mixture:
            return f"{many(len(moved), 'column')} shifted: {names}."
        within = [s.column for s in moved if s.p_mixture is not None and s.p_mixture < LEVEL]
        if within:
            return (
                f"Shifted: {names}. No mixture of the classes explains {_listed(within)}: P(value given class) changed."
            )
        one = sorted(self.mixture.items(), key=lambda item: -abs(item[1][1] - item[1][0]))[:3]
        told = [f"{printable(c, 20)} {100 * a:.0f} % → {100 * b:.0f} %" for c, (a, b) in one if abs(b - a) >= _VISIBLE]
        if not told or all(s.p_mixture is None for s in moved):
            return f"Shifted: {names}. Too few rows to say whether another mixture of the classes would explain it."
        return (
            f"Shifted: {names}. Another mixture of the classes would explain it ({', '.join(told)}); a change within "
            "the classes that looks like one cannot be ruled out without labels."
        )

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield first_that_fits((self._page(w) for w in ((), (1, 5), (1, 3, 5), (1, 3, 4, 5))), options.max_width).rich()

    def _page(self, without: Collection[int] = ()) -> Page:  # a narrow screen has no room for all columns
        lines = [["column", "kind    ", "divergence", "mean difference", "within classes", "p", "corrected p", ""]]
        if self.mixture:
            lines[0][4] = "new values"
        for s in self.columns:
            sizes = [_figure(s.marginal.divergence, ".4f"), _figure(s.marginal.mean_difference, "+.3f")]
            sizes.append(_figure(s.new, ".1%") if self.mixture else _figure(s.within if s.by_class else None, ".4f"))
            said = f"{s.verdict}: {s.reason}" if s.reason else s.verdict
            sizes += [_figure(s.p_value, ".2g"), _figure(s.p_corrected, ".2g"), said]
            lines.append([printable(s.column, 100), s.kind, *sizes])
        unknown = " without labels" if self.mixture else ""
        title = f"Shift between {self.rows[0]:,} and {many(self.rows[1], 'row')}{unknown}"
        kept = [i for i in range(8) if i not in without]
        left = [kept.index(i) for i in (0, 1, 5, 6, 7) if i in kept]
        units = _UNITS.format("; mean difference in standard deviations" if 3 in kept else "")
        return Page(title, [[line[i] for i in kept] for line in lines], left, indent=2, foot=f"{self.summary} {units}")


def _figure(value: float | None, form: str) -> str:
    return "-" if value is None else format(value, form)


def _listed(names: Sequence[str], most: int = 6) -> str:
    shown = ", ".join(printable(n, 40) for n in names[:most])
    return shown + (f" and {len(names) - most} more" if len(names) > most else "")


def shift(a: Any, b: Any) -> Shifts:
    """How each column differs between two sets of rows, the largest difference first.

    Each is a tally or a model; `b` may also be rows, counted here by the schema of `a`: with their labels if they have
    any, else without (as `tb.count_unlabelled` does), which compares what needs no labels.

    Values, words and cells: Jensen–Shannon divergence, cells coarsened to at most 10 of equal frequency. Numbers and
    vectors: standardised mean difference. p says how often chance alone parts the rows as far, if every row could as
    well stand in the other set; a missing value is one more value to it (see `two_samples`). It is known where whole
    rows were counted; words of one text depend on each other, so bags and texts have none, nor has a column without a
    value that occurs twice. p_corrected counts that so many columns, with labels also within the classes, were asked
    about.

    >>> tally = tb.count({"Sky": ["sunny", "rainy", "sunny"] * 9, "Play": ["yes", "no", "yes"] * 9}, "Play")
    >>> tb.shift(tally, {"Sky": ["rainy"] * 20})
    Shift between 27 and 20 rows without labels
      column  kind      divergence  mean difference  new values  p        corrected p
      Sky     category      0.3183                -        0.0%  1.4e-06  1.4e-06      shifted
    Shifted: Sky. Too few rows to say whether another mixture of the classes would explain it. (Divergence in nats,
    0.693 is nothing in common; mean difference in standard deviations.)
    """
    a = _tally_of(a, None)
    b = _tally_of(b, a.schema)
    for tally in (a, b):
        if wrong := tally.impossible() if tally.rows else "it has no rows":
            raise CannotEstimate(f"a tally is no tally of rows: {wrong}", hint="compare tallies of counted rows.")
    kinds = {c.name: c.kind for c in a.schema.counted}
    common = [c.name for c in b.schema.counted if kinds.get(c.name) == c.kind]
    if kinds and not common:
        raise SchemaError(
            f"the tallies share no column: {excerpt(kinds)} and {excerpt(b.schema.names)}",
            hint="count both with one schema.",
        )
    pair = _Two(a, b)
    found = [pair.column(name, kinds[name]) for name in common]
    if not pair.unlabelled:
        found.insert(0, pair.target())
    corrected = holm([_both(s.p_value, s.p_value_within) for s in found])
    found = [replace(s, p_corrected=p) for s, p in zip(found, corrected, strict=True)]
    mixture: dict[str, tuple[float, float]] = {}
    if pair.unlabelled and not is_unlabelled(a) and pair.whole_rows:
        by = pair.explained()
        found = [replace(s, p_mixture=by.p_values.get(s.column)) for s in found]
        learnt = a.class_weights() / a.class_weights().sum()
        both = zip(a.classes, learnt.tolist(), by.mixture.tolist(), strict=True)
        mixture = {c: (before, now) for c, before, now in both}
    found.sort(key=lambda s: -s.size)
    return Shifts((a.rows, b.rows), tuple(found), mixture)


def _tally_of(given: Any, schema: Schema | None) -> Tally:
    """The tally that was given, or that of a model, or that of rows under a schema."""
    if isinstance(given, Tally):
        return given
    if hasattr(given, "beliefs"):  # a model
        if given.tally is None:
            raise CannotEstimate(
                "a model without counts has nothing to compare", hint="compare models that were counted."
            )
        tally: Tally = given.tally
        return tally
    if schema is None:
        raise CannotEstimate(
            f"{type(given).__name__} is neither a tally nor a model", hint="rows come second: tb.shift(model, rows)."
        )
    source = open_source(encode.as_table(schema, given), target=schema.target).repeatable()
    if next((schema.target in batch for batch in source.batches()), False):
        labelled = Tally.of(schema, source)
        if labelled.rows:
            return labelled
    found = count_unlabelled(source, schema)
    if not found.rows:
        raise source.no_rows("give rows to compare.")
    return found


def _both(p: float | None, within: float | None) -> float | None:
    """One p for two questions: twice the smaller."""
    return p if p is None or within is None else min(2 * min(p, within), 1.0)


class _Two(SideBySide):
    """Two tallies side by side."""

    def __init__(self, a: Tally, b: Tally) -> None:
        super().__init__((a, b))
        self.unlabelled = is_unlabelled(a) or is_unlabelled(b)
        self._tables: dict[str, Floats] = {}  # the counts of columns that were tested, tallies × slots × classes
        shared = zip(self.classes, self.weights.T, strict=True)
        self.shared = [c for c, (n, m) in shared if n and m and not self.unlabelled]

    def target(self) -> Shift:
        """The shift of the classes themselves."""
        table = self.weights[:, :, None]  # tallies × slots × one class
        gap = Gap(_divergence(self.weights))
        return Shift(self.tallies[0].schema.target, "class", gap, {}, 0.0, self._p(table), None, new=_new(self.weights))

    def column(self, name: str, kind: str) -> Shift:
        """The shift of one column."""
        table = self.table(name, kind, _BINS)
        means = self._mean_differences(name) if KINDS[kind].moments else {}
        gaps = {}
        for c in self.shared:
            js = None if table is None else _divergence(table[:, :, self.classes.index(c)])
            gaps[c] = Gap(js, means.get(c))
        gaps = {c: g for c, g in gaps.items() if g != Gap()}
        share = np.array([self.weights[:, self.classes.index(c)].sum() for c in gaps])
        within = float(share @ np.array([g.size for g in gaps.values()]) / share.sum()) if gaps else 0.0
        marginal = Gap(None if table is None else _divergence(table.sum(axis=2)), means.get(None))
        p = p_within = None
        new = None if table is None else self._new(name, kind, table.sum(axis=2))
        if table is not None and not KINDS[kind].words:
            missing = self.missing(table)
            self._tables[name] = np.concatenate([table, missing], axis=1)
            table = self.table(name, kind, FINE)
            assert table is not None
            on_line = table.shape[1] if KINDS[kind].like == "number" else 0
            table = np.concatenate([table, missing], axis=1)
            p = self._p(table.sum(axis=2, keepdims=True), on_line)
            p_within = self._p(table, on_line) if self.shared else None
        return Shift(name, kind, marginal, gaps, within, p, p_within, new=new)

    def _p(self, table: Floats, on_line: int = 0) -> float | None:
        """How often chance alone ties tally and slot together as strongly, given the class."""
        if not self.whole_rows or table.sum(axis=0).max(initial=0.0) <= 1:  # no value twice: dealt anew, it is the same
            return None
        return chance_of(table, on_line)

    def _new(self, name: str, kind: str, counts: Floats) -> float | None:
        """The share of the values of b that a never has; of a number the values beyond the range of a."""
        if KINDS[kind].like != "number":
            return _new(counts)
        cells = self.tallies[0].schema[name].cells
        assert cells is not None
        sheets = [t.columns[name].sheet("cells", ("n",)) for t in self.tallies]
        (low, high), (at, end) = (cells.edges(cells.slot_codes(s.slot_names)) for s in sheets)
        n = sheets[1].by_slot("n")
        return float(n[(end < low.min()) | (at > high.max())].sum() / n.sum()) if len(low) and len(n) else None

    def explained(self) -> Explained:
        """The mixture of the learnt classes that comes nearest to the rows without labels."""
        at = [self.classes.index(c) for c in self.tallies[0].classes]
        learnt = {name: table[0][:, at] for name, table in self._tables.items()}
        seen = {name: table[1].sum(axis=1) for name, table in self._tables.items()}
        return Explained(learnt, seen, self.tallies[0].class_weights())

    def _mean_differences(self, name: str) -> dict[str | None, float]:
        """The standardised mean difference by class, and over all (None); of a vector the largest in size."""
        moments = [read_moments(t.columns[name], len(t.classes)) for t in self.tallies]
        positions = sorted(set(moments[0].positions.tolist()) & set(moments[1].positions.tolist()))
        out: dict[str | None, float] = {}
        for c in (None, *self.shared):
            found = []
            for p in positions:
                each = []
                for t, m in zip(self.tallies, moments, strict=True):
                    row = int(np.searchsorted(m.positions, p))
                    if c is None:
                        each.append((float(m.all_mean[row]), float(m.all_sd[row]), 1.0))
                    else:
                        k = t.classes.index(c)
                        each.append((float(m.mean[row, k]), float(m.sd[row, k]), float(m.n[row, k])))
                if all(n > 0 for _, _, n in each):
                    found.append(_standardised(each[0][:2], each[1][:2]))
            if found:
                out[c] = max(found, key=abs)
        return out


def _standardised(a: tuple[float, float], b: tuple[float, float]) -> float:
    """(mean of b − mean of a) / √((σ_a² + σ_b²)/2); infinite between two different constants."""
    scale = math.hypot(a[1] / math.sqrt(2), b[1] / math.sqrt(2))
    if scale == 0:
        return 0.0 if a[0] == b[0] else math.copysign(math.inf, b[0] - a[0])
    return float(distance(np.array([b[0]]), np.array([a[0]]), np.array([scale]))[0])


def _new(counts: Floats) -> float | None:
    """Of the second row of counts, the share in slots where the first has none."""
    return float(counts[1, counts[0] == 0].sum() / counts[1].sum()) if counts[1].any() else None


def _divergence(counts: Floats) -> float | None:
    """Jensen–Shannon divergence of two rows of counts, in nats; None if one is empty.

    >>> round(_divergence(np.array([[1.0, 1.0, 0.0], [0.0, 0.0, 2.0]])), 6)
    0.693147
    """
    totals = counts.sum(axis=1, keepdims=True)
    if not (totals > 0).all():
        return None
    share = counts / totals  # what the value tells about the tally, were both equally frequent
    return max(float(log_ratio_sum(share, 2.0, 1.0, share.sum(axis=0))) / 2, 0.0)
