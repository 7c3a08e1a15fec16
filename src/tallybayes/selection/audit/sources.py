"""What each source of rows gives or costs the others: a site, an annotator, a day, told by a column.

Rows are counted once, by class, fold and source. The model without a source is the total less the source, to the last
bit what counting the other rows would have given, so that every source can be left out in turn:

    disagreement   how much worse its own rows are forecast by the other sources than these are by each other: mean of
                   log loss − entropy of the forecast (so that rows that are only hard do not count), less that of the
                   other sources
    gain           what held-out rows of the other sources gain in log loss by its rows: without it, less with it
    wrong          the share of its labels that are wrong (see `noise`), by the forecasts of the other sources
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import ndtr, ndtri

from ...base.arrays import Bools, Floats, Ints
from ...base.canon import many, printable, text
from ...base.errors import DataError, SettingsError, unknown
from ...base.show import Page, Shown, signed
from ...data.guess import Reading
from ...data.schema import Column, Schema
from ...data.sources import Source, open_source
from ...families.settings import Settings, SettingsLike
from ...families.smoothing import is_number
from ...model.model import Model
from ...tally.tally import Tally
from ..folds import Folds, HeldOut, count_folds
from ..measure.cross_validate import opened, whole_fit
from ..parts import Plan, apart, column_codes, some_rows
from .noise import LabelNoise, common_rate

Figure = tuple[float, float, float]  # and its lower and upper bound
_SHOWN = 20
_MOST_LOSS = 20.0  # nats: a count of nothing is no certainty, and one such row must not speak for a source


@dataclass(frozen=True)
class SourceEffect:
    """One source. Figures are in nats per row; bounds hold for all sources at once."""

    source: str
    rows: int
    disagreement: Figure  # of its own rows with the others, beyond that of the others among themselves
    gain: Figure  # of the rows of other sources by its rows; below 0 it costs them
    wrong: float  # the share of its labels that are wrong, as it is estimated
    p_value: float  # of agreeing like the others, adjusted for the number of sources (Holm)
    suspect: bool
    unjudged: int = 0  # rows of a class that only this source has

    def to_dict(self) -> dict[str, Any]:
        """The same as plain Python values."""
        out: dict[str, Any] = {"source": self.source, "rows": self.rows}
        for name, found in (("disagreement", self.disagreement), ("gain", self.gain)):
            out |= {name: found[0], f"{name}_low": found[1], f"{name}_high": found[2]}
        return out | {
            "wrong": self.wrong, "p_value": self.p_value, "suspect": self.suspect, "unjudged": self.unjudged,
        }  # fmt: skip


@dataclass(frozen=True, repr=False)
class SourceEffects(Shown):
    """What the sources of some rows give or cost, the most suspect first; print it, or take `.table`.

    `tallies[source]` is the tally of its rows, `model` that of all rows, and `without(source)` the model without it.

    >>> rows = {"sky": ["sunny", "rainy"] * 60, "play": ["yes", "no"] * 60, "site": ["a", "a", "b", "b", "c", "c"] * 20}
    >>> rows["play"][4] = "no"
    >>> found = tb.sources(rows, "play", by="site", settings=tb.Settings())
    >>> found.suspects, found.without("a").tally.rows
    ([], 80)
    """

    each: tuple[SourceEffect, ...]
    model: Model
    tallies: Mapping[str, Tally] = field(repr=False)
    by: str
    confidence: float
    folds: int

    def __iter__(self) -> Iterator[SourceEffect]:
        return iter(self.each)

    def __getitem__(self, source: Any) -> SourceEffect:
        name = self._named(source)
        return next(e for e in self.each if e.source == name)

    def _named(self, source: Any) -> str:
        name = str(text(source))
        if name not in self.tallies:
            raise unknown(DataError, f"there is no source {name!r} in column {self.by!r}", name, [*self.tallies])
        return name

    @property
    def suspects(self) -> list[str]:
        """The sources whose labels the others contradict beyond chance, the worst first."""
        return [e.source for e in self.each if e.suspect]

    @property
    def table(self) -> pa.Table:
        """One line per source, as an Arrow table."""
        return pa.Table.from_pylist([e.to_dict() for e in self.each])

    def without(self, source: Any) -> Model:
        """The model as if the rows of a source had never been counted; settings stay as all rows chose them."""
        return self.model.forget(self.tallies[self._named(source)])

    def _page(self) -> Page:
        lines = [["source", "rows", "disagreement", "gain to others", "wrong", "p", ""]]
        for e in self.each[:_SHOWN]:
            p = "< 0.0001" if e.p_value < 1e-4 else f"{e.p_value:.4f}"
            figures = [_with_reach(e.disagreement), _with_reach(e.gain), f"{e.wrong:.0%}", p]
            lines.append([e.source, f"{e.rows:,}", *figures, "suspect" if e.suspect else ""])
        if len(self.each) > _SHOWN:
            lines.append([f"… {len(self.each) - _SHOWN:,} more", *[""] * 6])
        sure = f"{self.confidence:.0%} intervals for all sources at once"
        return Page(self.summary, lines, left={0, 6}, foot=f"Nats per row, ± {sure}; p adjusted for their number.")

    @property
    def summary(self) -> str:
        """What was found, in a sentence."""
        named = ", ".join(printable(s, 30) for s in self.suspects[:5])
        more = f" and {len(self.suspects) - 5:,} more" if len(self.suspects) > 5 else ""
        found = f"the others contradict {named}{more}" if named else "none is contradicted by the others beyond chance"
        return f"{many(len(self.each), 'source')} by {printable(self.by, 30)}: {found}"


def _with_reach(figure: Figure) -> str:
    if figure[2] != figure[2]:  # rows of which the others know nothing
        return "–"
    return f"{signed(figure[0], 3)} ± {figure[2] - figure[0]:.3f}"


def sources(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    confidence: float = 0.95,
    schema: Schema | None = None,
    kinds: Mapping[str, str] | None = None,
    settings: SettingsLike = None,
    weights: Any = None,
    effort: str = "default",
    folds: int = 5,
    by: str | None = None,
    seed: int = 0,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> SourceEffects:
    """What each source of rows gives or costs the others on held-out rows, by subtraction; print it.

    `by` names the column that says where a row comes from: a site, an annotator, a day. It is no evidence. Rows are
    counted once, and every source is left out in turn, exactly. A source is a suspect where its labels disagree with
    the model of the others more than these do among each other, beyond chance at the level 1 − `confidence` for all
    sources together. Without `settings` those of `tb.fit` are taken, chosen once by all rows.

    >>> import tallybayes as tb
    >>> rows = {"sky": ["sunny", "rainy"] * 60, "play": ["yes", "no"] * 60, "site": ["a", "a", "b", "b", "c", "c"] * 20}
    >>> for i in range(4, 120, 12):
    ...     rows["play"][i] = "no"
    >>> tb.sources(rows, "play", by="site", settings=tb.Settings()).suspects
    ['c']
    """
    if not is_number(confidence) or not 0 < confidence < 1:
        raise SettingsError(f"confidence={confidence!r}", hint="take a share between 0 and 1, e.g. 0.95.")
    if by is None:
        raise SettingsError("sources of rows without a column", hint='say which column tells them: by="site".')
    dealt = Plan(folds, stratify=True, seed=seed)
    deciding = Plan(by=by)
    reading = Reading.of(missing, strict, date_format, fold, kinds)
    source, schema, given = opened(data, target, y, weights, deciding, schema, reading)
    names, code = column_codes(source, by, "says where a row comes from")
    if len(names) < 2:
        raise DataError(
            f"all rows have the same value in column {by!r}, so that no source can be held against others",
            hint="name a column with at least two values.",
        )
    fitted = whole_fit(schema if given else None, schema.target, schema.weights, deciding, None, reading, effort)
    if settings is None:
        model = fitted(source)
        assert model.tally is not None
        schema, chosen = model.tally.schema, model.settings
    else:
        schema, chosen = apart(schema, [by]), Settings.of(settings, schema)
    told = schema._with(columns=[*(c for c in schema.columns if c.name != by), Column(by, "category")])
    numbers, _ = dealt.numbers(source, schema.target, told)  # rows that differ in their source alone are told apart
    cell = np.where(numbers < 0, -1, numbers * len(names) + code)
    counted = count_folds(source, schema, lambda read, start: cell[read.rows + start])
    total = counted.total
    model = total.model(chosen) if settings is not None else model
    found = _Scored(counted, chosen, code, len(names))
    tallies = {name: _part(counted, i, len(names)) for i, name in enumerate(names)}
    return SourceEffects(found.effects(names, tallies, confidence), model, tallies, by, float(confidence), folds)


def _part(counted: Folds, source: int, of: int) -> Tally:
    """The tally of one source."""
    part = counted.cells.regroup([label if cell % of == source else None for label, cell in counted.names])
    return replace(part, skipped=0)


class _Scored:
    """Every labelled row scored without its fold: with all sources, and with each of them left out."""

    def __init__(self, counted: Folds, settings: Settings, code: Ints, of: int) -> None:
        everyone = np.ones(of, dtype=bool)
        base = counted.counting(everyone).held_out(settings, parts=False)
        self.code, self.of, self.labels = code[base.rows], of, base.labels
        self.weights = np.ones(len(base.rows)) if base.weights is None else base.weights
        self.classes = len(base.classes)
        whole, _ = _losses(base)
        self.log_p = np.full(base.joint.shape, -np.inf)  # by the other sources alone
        self.excess = np.full(len(base.rows), np.nan)  # loss − entropy by the other sources
        self.gains: list[tuple[float, float]] = []
        for s in range(of):
            less = counted.counting(np.arange(of) != s).held_out(settings, parts=False)
            order = [less.classes.index(c) for c in base.classes]
            loss, entropy = _losses(less)
            own = self.code == s
            self.log_p[own] = less.log_proba()[own][:, order]
            self.excess[own] = (loss - entropy)[own]
            self.gains.append(self._mean(~own, loss - whole))

    def _mean(self, some: Bools, values: Floats) -> tuple[float, float]:
        """The weighted mean over some rows that have a value, and its standard error."""
        some = some & np.isfinite(values)
        order = np.lexsort((self.weights[some], values[some]))  # the same sums whatever the order of the rows
        w, v = self.weights[some][order], values[some][order]
        if not w.sum() > 0:
            return np.nan, np.nan
        mean = float(w @ v / w.sum())
        rows = w.sum() ** 2 / (w @ w)
        spread = float((w * w) @ (v - mean) ** 2) * rows / max(rows - 1, 1e-9)
        return mean, float(np.sqrt(spread) / w.sum()) if rows > 1 else np.nan

    def effects(self, names: list[str], tallies: Mapping[str, Tally], confidence: float) -> tuple[SourceEffect, ...]:
        """The figures of every source, the most suspect first."""
        reach = float(ndtri(1 - (1 - confidence) / 2 / self.of))
        judged = np.isfinite(self.excess)
        noise = LabelNoise.of(self.log_p[judged], self.labels[judged], self.weights[judged])
        figures = [self._against_others(s) for s in range(self.of)]
        z = np.array([d / se if se > 0 else 0.0 for d, se in figures])
        p = _holm(ndtr(-z))
        out = []
        for s, name in enumerate(names):
            own = judged & (self.code == s)
            (d, se), (g, g_se) = figures[s], self.gains[s]
            right, w = noise.right(self.log_p[own], self.labels[own]), self.weights[own]
            order = np.lexsort((w, right))
            out.append(
                SourceEffect(
                    name, tallies[name].rows, (d, d - reach * se, d + reach * se),
                    (g, g - reach * g_se, g + reach * g_se),
                    common_rate(right[order], w[order], self.classes)[0] if len(right) else 0.0,
                    float(p[s]), bool(p[s] <= 1 - confidence), int(np.count_nonzero((self.code == s) & ~judged)),
                )
            )  # fmt: skip
        order = np.lexsort((-z, p))
        return tuple(out[i] for i in order.tolist())

    def _against_others(self, s: int) -> tuple[float, float]:
        """The mean excess of a source's rows less that of all others, and its standard error."""
        own = self.code == s
        (a, a_se), (b, b_se) = self._mean(own, self.excess), self._mean(~own, self.excess)
        return a - b, float(np.hypot(a_se, b_se))


def _losses(held: HeldOut) -> tuple[Floats, Floats]:
    """−log P(label), not finite where the model lacks the class, and the entropy of each forecast."""
    log_p = held.log_proba()
    p = np.exp(log_p)
    entropy = -(p * np.where(p > 0, log_p, 0.0)).sum(axis=1)
    at = np.arange(len(log_p))
    known = np.isfinite(held.log_prior[held.folds][at, held.labels])
    loss = np.minimum(-log_p[at, held.labels], _MOST_LOSS)
    return np.where(known, loss, np.inf), entropy


def _holm(p: Floats) -> Floats:
    """p-values adjusted for their number by Holm's rule.

    >>> _holm(np.array([0.01, 0.04, 0.03])).round(2).tolist()
    [0.03, 0.06, 0.06]
    """
    order = np.argsort(p, kind="stable")
    out = np.empty(len(p))
    out[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return out


def forget_source(model: Model, data: Any, source: Any, *, by: str) -> Model:
    """The model as if the rows of one source had never been counted: those of `data` that have this value in `by`.

    `data` may hold rows of other sources, which stay. Families and weights that were chosen with these rows stay, too.

    >>> import tallybayes as tb
    >>> rows = {"sky": ["sunny", "rainy"] * 9, "play": ["yes", "no"] * 9, "site": ["a", "b", "c"] * 6}
    >>> model = tb.textbook(rows, "play", kinds={"site": "ignore"})
    >>> tb.forget_source(model, rows, "b", by="site").tally.rows
    12
    """
    return model.forget(rows_of_source(open_source(data, target=model.schema.target).repeatable(), source, by))


def rows_of_source(rows: Source, source: Any, by: str) -> Source:
    """The rows of one source; refused where there are none."""
    names, code = column_codes(rows, by, "says where a row comes from")
    name = str(text(source))
    if name not in names:
        raise unknown(DataError, f"no row has {name!r} in column {by!r}", name, names)
    return some_rows(rows, code == names.index(name))
