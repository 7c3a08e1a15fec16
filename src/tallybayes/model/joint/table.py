"""The full joint table of a few columns: learnt by counting, asked by adding.

    P(a, b, …) = rows in the cell / rows      a marginal is a sum of cells, a conditional the ratio of two sums

A `JointDistribution` is a value like a tally: tables of the same columns add and subtract exactly. Only cells that
were seen are kept; every other cell has one and the same probability. Begin with `JointDistribution.of` and
`probability`; `bayes` answers by Bayes' rule, with the parts.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ...base import canon
from ...base.arrays import Floats, Ints
from ...base.errors import SettingsError, did_you_mean, excerpt, unknown, warn
from ...base.show import Page, Shown
from ...data import encode
from ...data.blocks import Codes
from ...data.pairs import stretch_names
from ...data.schema import Column, Schema
from ...data.sources import open_source
from ...exact.counts import Counts, add_counts
from ...families.settings import smoothing_of
from ...families.smoothing import MaximumLikelihood, Smoothing
from .cells import (
    MISSING,
    OUTSIDE,
    At,
    CellProbabilities,
    cell_texts,
    checked_cuts,
    count_batch,
    count_cells,
    cut_column,
    distinct,
    estimated,
    given_cells,
    picked,
    renumbered,
    seen_cells,
    short_count,
)
from .dependence import Assignment, BayesRule, Dependence, cell_count, dependence, equal_rows, impossible, said

if TYPE_CHECKING:
    from ...explain.plots import JointTableDisplay

_MOST_SHOWN = 32  # cells of a table that is printed in full


@dataclass(frozen=True, eq=False, repr=False)
class JointDistribution(Shown):
    """P of every combination of values of some columns. Make one with `of` (counted) or `written` (given).

    >>> urns = tb.JointDistribution.of({"first": ["red", "red", "blue"], "second": ["red", "blue", "red"]})
    >>> urns.probability(first="red")
    0.6666666666666666
    """

    columns: tuple[str, ...]
    counts: Counts  # see `cells`
    smoothing: Smoothing = field(default_factory=MaximumLikelihood)
    declared: tuple[tuple[str, ...], ...] = ()  # per column: values it can take, seen or not
    skipped: int = 0  # rows with a missing value
    fixed: CellProbabilities | None = None  # that are given, or follow from a smoothed table, not from the counts
    cuts: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # columns of numbers, and where they are cut

    @classmethod
    def of(
        cls,
        data: Any,
        columns: Sequence[str] | None = None,
        smoothing: Any = None,
        *,
        values: Mapping[str, Iterable[Any]] | None = None,
        cuts: Mapping[str, Any] | None = None,
    ) -> JointDistribution:
        """The table of any accepted data, read once; `values` names what a column can take beyond what is seen.

        `cuts={"hours": 40.5}`, or a list of numbers, makes stretches of a column of numbers: "< 40.5" and "≥ 40.5".
        """
        smooth = MaximumLikelihood() if smoothing is None else smoothing_of(smoothing)
        names = () if columns is None else distinct(columns)
        parts, skipped, values, cut = [], 0, values or {}, checked_cuts(cuts or {})
        for batch in open_source(data).batches():
            names = names or distinct(batch.names())
            counts, without = count_batch(names, batch, cut)
            parts.append(counts)
            skipped += without
        absent = sorted({*values, *cut} - set(names))
        if absent:
            found = f"values or cuts are declared for {excerpt(absent)}, which the table does not have"
            raise unknown(SettingsError, found, absent[0], names)
        declared = tuple(canon.ordered(values.get(c, ())) for c in names)
        return cls(names, add_counts(parts), smooth, declared, skipped, cuts=cut)

    @classmethod
    def written(
        cls, table: Any, columns: Sequence[str], values: Mapping[str, Sequence[Any]] | None = None
    ) -> JointDistribution:
        """A table given by hand: {(a, b): p}, nested {a: {b: p}}, or an array with an axis per column.

        An array's axes run over `values`, or 0, 1, 2, …; a flat list of 2^columns runs 00…0 to 11…1. Cells that are
        not listed have probability 0. A sum within 0.02 of one is made one, with a warning.

        >>> round(tb.JointDistribution.written([0.1, 0.2, 0.3, 0.4], "AB").probability(A=1), 12)
        0.7
        """
        names = distinct(columns)
        declared, fixed = given_cells(table, names, values or {})
        return cls(names, Counts({}), declared=declared, fixed=fixed)

    # ---- what was counted

    @property
    def rows(self) -> int:
        """How many rows were counted; 0 for a table given by hand."""
        return int(self._seen[1].sum())

    @cached_property
    def values(self) -> tuple[tuple[str, ...], ...]:
        """The values of each column, declared or seen, in order."""
        declared = self.declared or ((),) * len(self.columns)
        found = (canon.ordered([*d, *(t[j] for t in self._texts)]) for j, d in enumerate(declared))
        return tuple(
            tuple(stretch_names(self.cuts[c])) if c in self.cuts else v
            for c, v in zip(self.columns, found, strict=True)
        )

    @property
    def cells(self) -> int:
        """How many cells there can be: the product of the numbers of values, exactly."""
        return cell_count(len(v) for v in self.values)

    @property
    def unseen(self) -> int:
        """How many cells no row fell into (of a table given by hand: cells of probability 0)."""
        return self.cells - len(self._seen[1] if self.fixed is None or self.rows else self.fixed.log_p)

    def count(self, given: Assignment | None = None, **values: Any) -> int:
        """How many rows have these values."""
        codes, n = self._seen
        return int(n[picked(codes, self._assigned(given, values))].sum())

    def with_smoothing(self, smoothing: Any) -> JointDistribution:
        """The same counts, believed another way."""
        self._refuse_fixed("smoothed")
        return replace(self, smoothing=smoothing_of(smoothing))

    def __add__(self, other: JointDistribution) -> JointDistribution:
        return self._plus(other, 1) if isinstance(other, JointDistribution) else NotImplemented

    def __sub__(self, other: JointDistribution) -> JointDistribution:
        return self._plus(other, -1) if isinstance(other, JointDistribution) else NotImplemented

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, JointDistribution):
            return NotImplemented
        fields = ("columns", "values", "skipped", "smoothing", "counts", "fixed")
        mine, yours = (tuple(getattr(t, f) for f in fields) for t in (self, other))
        return mine == yours

    __hash__ = None  # type: ignore[assignment]

    def _plus(self, other: JointDistribution, sign: int) -> JointDistribution:
        self._refuse_fixed("added to")
        other._refuse_fixed("added")
        for what in ("columns", "smoothing", "cuts"):
            mine, yours = getattr(self, what), getattr(other, what)
            if mine != yours:
                raise SettingsError(
                    f"these tables differ: {what} {mine} here and {yours} there",
                    hint="marginal('A', 'B') puts columns in order; with_smoothing(…) changes the smoothing.",
                )
        counts = add_counts([self.counts, other.counts if sign > 0 else -other.counts])
        pairs = itertools.zip_longest(self.declared, other.declared, fillvalue=())
        declared = tuple(canon.ordered([*mine, *yours]) for mine, yours in pairs)
        return replace(self, counts=counts, declared=declared, skipped=self.skipped + sign * other.skipped)

    def _refuse_fixed(self, verb: str) -> None:
        if self.fixed is not None:
            raise SettingsError(
                f"a table whose probabilities are given, or taken from a smoothed one, cannot be {verb}",
                hint="do so with counted tables: JointDistribution.of(data, columns).",
            )

    # ---- questions

    def probability(self, given: Assignment | None = None, /, **values: Any) -> float:
        """P(these values), the other columns summed out: probability(A=1, B=0) or probability({"A": 1}).

        A value that the table does not have has probability 0; a column that it does not have is a SettingsError.
        """
        return self._ratio(self._assigned(given, values), {}, 0.0)

    def conditional(self, event: Assignment, given: Assignment) -> float:
        """P(event given the other values); CannotEstimate where these have probability 0."""
        low, high = self._assigned(given, {}), self._assigned(event, {})
        both, bottom = {**low, **high}, self._believed.log(low)
        if bottom == -math.inf:
            raise impossible(given)
        if any(both[j] != code for j, code in low.items()):
            return 0.0  # a column cannot have two values at once
        return self._ratio(both, low, bottom)

    def bayes(self, hypothesis: Assignment, evidence: Assignment) -> BayesRule:
        """P(hypothesis given evidence) by Bayes' rule, with the parts."""
        prior, seen = self.probability(hypothesis), self.probability(evidence)
        likelihood = self.conditional(evidence, hypothesis)
        if seen == 0:
            raise impossible(evidence)
        return BayesRule(said(hypothesis), said(evidence), prior, likelihood, seen, likelihood * prior / seen)

    def marginal(self, *columns: str) -> JointDistribution:
        """The table of some of the columns, in this order; the others are summed out."""
        at = self._places(columns)
        if not self._plain:
            return self._part(at, {}, self._believed.marginal(at))
        return replace(self._part(at, {}), declared=tuple(self.declared[j] for j in at) if self.declared else ())

    def given(self, given: Assignment | None = None, /, **values: Any) -> JointDistribution:
        """The table of the other columns among the rows that have these values."""
        known = self._assigned(given, values)
        at = [j for j in range(len(self.columns)) if j not in known]
        if not at:
            raise SettingsError("every column is given", hint="leave at least one column open, or use probability(…).")
        if self._believed.log(known) == -math.inf:
            raise impossible({**(given or {}), **values})
        return replace(self._part(at, known, None if self._plain else self._believed.given(known)), skipped=0)

    def _part(self, at: Sequence[int], known: At, fixed: CellProbabilities | None = None) -> JointDistribution:
        """The table of some columns, of the rows that have these codes."""
        (codes, n), values = self._seen, tuple(self.values[j] for j in at)
        here = picked(codes, known)
        counts = count_cells(values, codes[here][:, at], n[here])
        return replace(self, columns=tuple(self.columns[j] for j in at), counts=counts, declared=values, fixed=fixed)

    def product(self, other: JointDistribution) -> JointDistribution:
        """The joint table of two that know nothing of each other: P(a, b) = P(a)·P(b)."""
        columns = distinct((*self.columns, *other.columns))
        fixed = self._believed.product(other._believed)
        values, cuts = (*self.values, *other.values), {**self.cuts, **other.cuts}
        return JointDistribution(columns, Counts({}), declared=values, fixed=fixed, cuts=cuts)

    def independent(
        self, a: str | Sequence[str], b: str | Sequence[str], given: str | Sequence[str] = ()
    ) -> Dependence:
        """Whether a and b are independent given some columns: mutual information, and p where rows were counted."""
        left, right, strata = groups = [(g,) if isinstance(g, str) else tuple(g) for g in (a, b, given)]
        self._places([*left, *right, *strata])
        name = f"{', '.join(left)}; {', '.join(right)}" + (f" given {', '.join(strata)}" if strata else "")
        (codes, n), believed, counted = self._seen, self._believed, self.rows > 0
        if not counted:
            codes = believed.all_codes() if believed.log_rest > -math.inf else believed.codes
            n = np.exp(believed.lookup(codes))
        each = [equal_rows(codes[:, [self.columns.index(c) for c in g]])[0] for g in groups]
        return dependence(name, each[0], each[1], each[2], n, counted=counted)

    def log_probability(self, rows: Any) -> Floats:
        """log P of each row; missing columns are summed out, and a value the table does not have gives −inf."""
        schema = Schema([Column(c, "category") for c in self.columns], target="(none)")
        out = [np.zeros(0)]
        for i, batch in enumerate(open_source(rows).batches()):
            if i == 0 and (batch.rows or batch.columns):
                encode.check_columns(schema, batch)
            blocks = encode.blocks(schema, batch)
            cut = {c: cut_column(batch, c, cuts) for c, cuts in self.cuts.items() if c in blocks and c in batch}
            found = [b for b in {**blocks, **cut}.values() if isinstance(b, Codes)]
            codes = [renumbered(values, block) for values, block in zip(self.values, found, strict=True)]
            out.append(self._log_rows(np.stack(codes, axis=1)))
        return np.concatenate(out)

    def log_likelihood(self, data: Any) -> float:
        """log P of all rows together: the sum of their logs, which does not underflow where their product would."""
        return math.fsum(self.log_probability(data).tolist())

    def sample(self, n: int, seed: int | np.random.Generator | None = None) -> pa.Table:
        """Rows drawn from the table, values as text."""
        if n < 0:
            raise SettingsError(f"sample({n})", hint="ask for at least 0 rows.")
        codes = self._believed.draw(n, np.random.default_rng(seed))
        texts = [pa.array(v, pa.string()) for v in self.values]
        return pa.table({c: texts[j].take(pa.array(codes[:, j])) for j, c in enumerate(self.columns)})

    # ---- how they are answered

    @property
    def _plain(self) -> bool:
        """Whether every answer is a ratio of two counts."""
        return self.fixed is None and isinstance(self.smoothing, MaximumLikelihood)

    @cached_property
    def _texts(self) -> list[list[str]]:
        return cell_texts(self.counts)

    @cached_property
    def _seen(self) -> tuple[Ints, Floats]:
        """The cells that rows fell into, in order whatever that of the rows, and how many."""
        return seen_cells(self.counts, self._texts, self.values)

    @cached_property
    def _believed(self) -> CellProbabilities:
        return estimated(self.smoothing, self.values, *self._seen) if self.fixed is None else self.fixed

    def _ratio(self, at: At, given: At, log_given: float) -> float:
        """P(these codes) / P(given codes), whose log is known."""
        believed, (codes, n) = self._believed, self._seen
        if not self._plain:
            return math.exp(believed.log(at) - log_given)
        return float(n[picked(codes, at)].sum()) / float(n[picked(codes, given)].sum())

    def _log_rows(self, codes: Ints) -> Floats:
        """log P of coded rows: one marginal table for each pattern of missing columns."""
        out, known = np.zeros(len(codes)), codes != MISSING
        pattern, first = equal_rows(known.astype(np.int64))
        for number, row in enumerate(first.tolist()):
            here, names = pattern == number, [c for c, k in zip(self.columns, known[row], strict=True) if k]
            if names:
                part = self if len(names) == len(self.columns) else self.marginal(*names)
                out[here] = part._believed.lookup(codes[here][:, known[row]])
        return out

    def _assigned(self, given: Assignment | None, values: Mapping[str, Any]) -> dict[int, int]:
        """Column number → value number; None leaves a column open, an unknown value is outside with a warning."""
        out = {}
        for name, value in {**(given or {}), **values}.items():
            (j,) = self._places([name])
            text, known = canon.text(value), self.values[j]
            if name in self.cuts and not isinstance(value, bool) and isinstance(value, Real):
                text = known[bisect_right(self.cuts[name], float(value))]
            if text is None:
                continue
            out[j] = known.index(text) if text in known else OUTSIDE
            if out[j] == OUTSIDE:
                warn(
                    f"column {name!r} does not have the value {text!r}, so its probability is 0. "
                    f"Hint: {did_you_mean(text, known)}it has {excerpt(known)}."
                )
        return out

    def _places(self, columns: Sequence[str]) -> list[int]:
        for name in columns:
            if name not in self.columns:
                raise unknown(SettingsError, f"the table has no column {name!r}", name, self.columns)
        return [self.columns.index(c) for c in distinct(columns)]

    # ---- to look at

    def _head(self) -> str:
        each = [f"{c} {len(v)}" for c, v in zip(self.columns, self.values, strict=True)]
        sizes = " × ".join(each[:8]) + (f" × … ({len(each)} columns)" if len(each) > 8 else "")
        rows = f"{self.rows:,} row{'' if self.rows == 1 else 's'}" if self.fixed is None or self.rows else "given"
        empty = f"{short_count(self.cells)} cells, {short_count(self.unseen)} of them empty"
        head = f"JointDistribution: {rows} · {sizes} = {empty}"
        head += f" · {self.skipped:,} skipped for a missing value" if self.skipped else ""
        head += "" if isinstance(self.smoothing, MaximumLikelihood) else f" · {self.smoothing}"
        head += " · a difference" if (self._seen[1] < 0).any() else ""
        return canon.printable(head, 2000)

    def _lines(self) -> list[list[str]]:
        """The cells of a small table: values, rows, P."""
        codes, n = self._seen
        if self.cells > _MOST_SHOWN or (n < 0).any() or (self.fixed is None and len(n) == 0):
            return []
        rows = {tuple(c): f"{k:.0f}" for c, k in zip(codes.tolist(), n.tolist(), strict=True)}
        lines = [[*self.columns, *(["rows"] if self.rows else []), "P"]]
        cells = self._believed.all_codes()
        for code, log_p in zip(cells.tolist(), self._believed.lookup(cells).tolist(), strict=True):
            texts = [self.values[j][c] for j, c in enumerate(code)]
            lines.append([*texts, *([rows.get(tuple(code), "0")] if self.rows else []), f"{math.exp(log_p):.6g}"])
        return lines

    def plot(self, ax: Any = None) -> JointTableDisplay:
        """The cells with a bar each; of at most 48, see `marginal`."""
        from ...explain.plots import JointTableDisplay

        return JointTableDisplay.of(self).plot(ax)

    def _page(self) -> Page:
        return Page(self._head(), self._lines(), left=len(self.columns), indent=2)
