"""Pictures of evidence: the waterfall of one answer, and the nomogram of a whole model, what each value adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from textwrap import wrap
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import Floats, weighted_quantiles
from ...base.canon import number_text
from ...base.show import signed, strongest
from ...base.times import hours_text
from ...data.blocks import Numbers
from ...data.clock import told_by
from ...families.forms import PairForm, TableForm, WordsForm
from ...model import posterior
from ...model.odds import counted_cells
from ..changes import counted_numbers
from ..odds import Line, LogOdds
from .columns import telling
from .paper import AGAINST, EVEN, FOR, axes, bare, below, height, label, letters, letters_in, stacked, width
from .scores import Display

if TYPE_CHECKING:
    from ...model.model import Model


_MOST_LINES = 18


@dataclass
class WaterfallDisplay(Display):
    """How the log-odds of two classes add up, line by line, with the interval of each line."""

    odds: LogOdds

    def _lines(self) -> list[tuple[str, float, tuple[float, float] | None]]:
        """Label, log-odds and interval: the strongest lines in their order, the rest together."""
        lines = [x for x in self.odds.lines if x.log_odds != 0]
        kept, rest = strongest(lines, [np.inf if np.isnan(x.log_odds) else abs(x.log_odds) for x in lines], _MOST_LINES)
        out = [(_name(x), x.log_odds, x.interval if x.known else None) for x in kept]
        return [*out, (f"{len(rest)} weaker ones", float(sum(x.log_odds for x in rest)), None)] if rest else out

    @property
    def size(self) -> tuple[float, float]:
        """Taller for more lines, in inches."""
        return 5.8, 1.1 + 0.25 * (len(self._lines()) + 1)

    def plot(self, ax: Any = None) -> WaterfallDisplay:
        """Draw it."""
        lines = self._lines()
        ax = axes(ax, *self.size)
        end = self.odds.total
        most = 2 * max([1.0, *(abs(v) for _, v, _ in lines if np.isfinite(v))])
        total, names = 0.0, []
        for row, (name, value, interval) in enumerate(lines):
            shown = 0.0 if np.isnan(value) else float(np.clip(value, -most, most))
            ax.barh(row, shown, left=total, height=0.62, color=FOR if value > 0 else AGAINST, alpha=0.85)
            if interval is not None:
                low, high = (float(np.clip(v, -most, most)) + total for v in interval)
                ax.plot([low, high], [row, row], color=EVEN, linewidth=1)
            ax.plot([total + shown] * 2, [row - 0.31, row + 1.31], color=EVEN, linewidth=0.7)
            total += shown
            names.append(f"{label(name, min(48, letters(ax, 0.65)))}  {signed(value, 2)}")
        if not np.isnan(end):
            ax.barh(len(lines), total, height=0.62, color=FOR if end > 0 else AGAINST)
        own, other = label(self.odds.label, 20), label(self.odds.against, 20)
        names.append("both impossible: the prior answers" if np.isnan(end) else f"together  {signed(end, 2)}")
        ax.axvline(0, color=EVEN, linewidth=0.8)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        toward = f"← {other}     log-odds     {own} →"
        below(ax, toward if len(toward) <= letters(ax, 0.85) else f"← {other}\nlog-odds\n{own} →")
        ax.tick_params(axis="y", length=0)
        bare(ax, grid="x")
        return self._drawn(ax)


def _name(line: Line) -> str:
    return f"{line.column}: {line.value}" if line.column and line.value else line.column or line.value


@dataclass
class Scale:
    """One line of a nomogram: values of a column and what each adds; `lacks` says which values are not named."""

    column: str
    values: Sequence[str]
    points: Floats  # infinite where one class is impossible, NaN where both are
    lacks: str = ""


@dataclass
class NomogramDisplay(Display):
    """The whole model as scales to read off by hand: find each value, add up its points, read off the probability.

    Where something that speaks is not on it, `left_out` says what, and no sum is promised (`adds_up`).
    """

    label: str
    against: str
    scales: Sequence[Scale]
    prior: float
    pairwise: bool  # the sum is the log-odds of two classes, and has a probability
    hidden: int = 0
    left_out: Sequence[str] = ()

    @property
    def adds_up(self) -> bool:
        """Whether start and points of a row are its log-odds; what is missing or was never seen adds 0."""
        return not self.left_out

    @property
    def size(self) -> tuple[float, float]:
        """Taller for more columns and for labels above each other, in inches."""
        return _WIDE, self._on(_WIDE, np.inf).height

    def _on(self, width: float, height: float) -> NomogramPaper:
        """Where all of it goes on paper of this size: with fewer labels, then fewer columns, where it is too small."""
        tried = [(len(self.scales), lines) for lines in (99, 6, 4, 3, 2, 1)]
        tried += [(n, 1) for n in range(len(self.scales) - 1, 0, -1)]
        for n, lines in tried:
            paper = NomogramPaper(self, self.scales[:n], width, lines)
            if paper.height <= height + 0.01:  # figures are of whole dots
                break
        return paper

    def plot(self, ax: Any = None) -> NomogramDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        paper = self._on(width(ax), height(ax))
        low, high = paper.ends
        for name, y, top, labels in paper.rows:
            if labels:
                ax.plot([min(x.at for x in labels), max(x.at for x in labels)], [y, y], color=EVEN, linewidth=1)
            for each in labels:
                ax.plot([each.at], [y], each.mark, color=FOR, markersize=9 if each.mark == "|" else 6)
                if each.line < paper.lines:
                    over = y - 0.1 - _LINE * each.line
                    ax.plot([each.at] * 2, [y, over], color=EVEN, linewidth=0.5)
                    ax.text(each.middle, over, each.text, ha="center", va="bottom", fontsize=_SMALL)
            if paper.above:
                ax.text(
                    low + 0.06 * (high - low) / paper.inches,
                    top,
                    label(name, letters_in(paper.inches)),
                    va="bottom",
                    fontsize=9,
                    fontweight="bold",
                )
        names = [label(name, 22) for name, *_ in paper.rows]
        ax.set_yticks([y for _, y, *_ in paper.rows], [""] * len(names) if paper.above else names)
        ax.set_ylim(paper.rows[-1][1] + 0.15, 0.0)
        ax.set_xlim(low, high)
        if paper.above:
            ax.locator_params(axis="x", nbins=max(int(1.4 * paper.inches), 2))
        ax.axvline(0, color=EVEN, linewidth=0.8, linestyle=":", zorder=0)
        below(ax, "\n".join(paper.below), _SMALL if paper.above else None)
        ax.tick_params(axis="y", length=0)
        bare(ax, grid="x")
        return self._drawn(ax)


@dataclass(frozen=True)
class NomogramLabel:
    """A value on a scale: its points, its mark, and its text on a line above the scale, where there is room for it."""

    at: float
    mark: str
    text: str
    middle: float  # of the text, which does not leave the paper
    line: int = 0


@dataclass
class NomogramPaper:
    """Where everything of a nomogram goes, in inches from the top; on a narrow one names stand above their scales."""

    whole: NomogramDisplay
    scales: Sequence[Scale]
    width: float
    lines: int  # of labels above a scale, at most

    @property
    def above(self) -> bool:
        """Whether it is too narrow for names beside the scales."""
        return self.width < _NARROW

    @property
    def inches(self) -> float:
        """How wide the scales are, with what is beside their ends."""
        return self.width - (0.3 if self.above else _NAMES)

    @cached_property
    def _points(self) -> tuple[float, float, float]:
        """The least and the largest finite points, and what an inch is worth."""
        each = [s.points[np.isfinite(s.points)] for s in self.scales]
        start = [self.whole.prior] if np.isfinite(self.whole.prior) else []
        low, high = (float(f([0.0, *start, *np.concatenate([[0.0], *each])])) for f in (np.min, np.max))
        low, high = (low, high) if high > low else (low - 1.0, high + 1.0)
        return low, high, (high - low) / max(self.inches - 2 * _BEYOND, 0.5)

    @property
    def ends(self) -> tuple[float, float]:
        """The points at the ends of the paper."""
        low, high, inch = self._points
        return low - _BEYOND * inch, high + _BEYOND * inch

    def _labels(self, values: Sequence[str], points: Floats, mark: str) -> list[NomogramLabel]:
        """What can be drawn of a scale: infinite points beyond the ends."""
        (low, high, inch), (left, right) = self._points, self.ends
        out = []
        for value, p in zip(values, points.tolist(), strict=True):
            if np.isnan(p):
                continue
            at, sign, text = p, mark, label(value, min(_LONGEST, int(0.45 * self.inches / _LETTER)))
            if not np.isfinite(p):
                at = high + _BEYOND * inch / 2 if p > 0 else low - _BEYOND * inch / 2
                sign, text = (">" if p > 0 else "<"), f"{text} {signed(p, 0)}" if mark == "|" else text
            half = _LETTER * inch * len(text) / 2
            out.append(NomogramLabel(at, sign, text, float(np.clip(at, left + half, max(right - half, left + half)))))
        line = stacked([x.middle / inch for x in out], [_LETTER * len(x.text) for x in out])
        return [replace(each, line=n) for each, n in zip(out, line, strict=True)]

    @cached_property
    def rows(self) -> list[tuple[str, float, float, list[NomogramLabel]]]:
        """Name, place, the place of what is above all labels, and labels of each scale; the last is the start."""
        prior = self.whole.prior
        each = [(s.column, self._labels(s.values, s.points, "|"), 0.3) for s in self.scales]
        each.append(("start", self._labels([signed(prior, 2)], np.array([prior]), "D"), 0.31))
        out, y = [], 0.1
        for name, labels, apart in each:
            high = _LINE * (1 + min(max((x.line for x in labels), default=0), self.lines - 1))
            y += apart + high + (0.1 if self.above else 0.0)
            out.append((name, y, y - 0.1 - high, labels))
        return out

    @property
    def height(self) -> float:
        """How tall it is with what stands below."""
        return 0.6 + (_LINE if self.above else 0.2) * len(self.below) + self.rows[-1][1] + 0.15

    @cached_property
    def below(self) -> list[str]:
        """The lines below the picture: what points mean, what a sum of them does, or what is not on it."""
        most, whole = letters_in(self.width, _SMALL if self.above else None), self.whole
        other, own = (label(name, min(24, most - 2)) for name in (whole.against, whole.label))
        toward = f"← {other}     points (log-odds)     {own} →"
        out = [toward] if len(toward) <= most else [f"← {other}", "points (log-odds)", f"{own} →"]
        bare_labels = sum(x.line >= self.lines for _, _, _, labels in self.rows for x in labels)
        gone = len(whole.scales) - len(self.scales)
        left_out = [
            *whole.left_out,
            *([f"{gone} column{'s' if gone > 1 else ''} for which it must be taller"] if gone else []),
        ]
        told = [_reading()] if whole.pairwise and not left_out else []
        if left_out:
            told = ["not the whole sum, for this is not on it:", *(label(t, 90) for t in left_out[:_MOST_REMARKS])]
            told += [f"and {more} more"] if (more := len(left_out) - _MOST_REMARKS) > 0 else []
        told += [f"{bare_labels} labels have no room: it must be taller"] if bare_labels else []
        return [*out, *(line for text in told for line in wrap(text, most))]


def _reading() -> str:
    """What a sum of points means, for those who add them up by hand."""
    shares = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
    return "a sum of  " + "   ".join(
        f"{np.log(p / (1 - p)):+.1f}:\N{NO-BREAK SPACE}{100 * p:g}\N{NO-BREAK SPACE}%" for p in shares
    )


_QUANTILES = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
_MOST_VALUES = 14
_MOST_REMARKS = 6
_WIDE, _NAMES, _NARROW = 8.0, 1.9, 6.0  # inches: the picture, the names beside it, and where there is no room for them
_BEYOND = 0.6  # inches beside the scales, for what is infinite
_LONGEST = 30  # letters of a label
_SMALL = 8  # points: letters of labels
_LETTER, _LINE = 0.066, 0.14  # inches: how wide a letter of a label is, and how high a line of them


def nomogram(model: Model, label: Any, against: Any, most: int) -> NomogramDisplay:
    """The scales of the columns that spread most, by how much their points vary."""
    order = np.argsort(-model.log_prior, kind="stable").tolist()
    two = len(model.classes) == 2
    at = (1 if two else order[0]) if label is None else model.class_number(label)
    other = model.class_number(against) if against is not None else (1 - at if two else None)
    each = [_scale(model, name, at, other) for name in model.beliefs if model.settings.weights.get(name, 1.0) != 0]
    scales = sorted((s for s in each if len(s.values)), key=lambda s: -_reach(s.points))
    hidden = max(len(scales) - most, 0)
    left_out = [f"{s.column}: {s.lacks}" for s in [*scales[:most], *(s for s in each if not len(s.values))] if s.lacks]
    left_out += [f"{hidden} column{'s' if hidden > 1 else ''} saying less"] if hidden else []
    left_out += [f"what bends the whole score ({', '.join(model.settings.curves)})"] if model.settings.curves else []
    prior = float(_against(model.start[None, :], at, other)[0])
    name = "all classes on average" if other is None else str(model.classes[other])
    return NomogramDisplay(
        str(model.classes[at]), name, scales[:most], prior, other is not None, hidden, tuple(left_out)
    )


def _reach(points: Floats) -> float:
    known = points[~np.isnan(points)]
    return float(known.max() - known.min()) if len(known) and (known != known[0]).any() else 0.0


def _against(parts: Floats, at: int, other: int | None) -> Floats:
    """Points of a class against another, or against the mean of all that are possible; NaN if neither is."""
    with np.errstate(invalid="ignore"):
        if other is not None:
            return np.asarray(parts[:, at] - parts[:, other])
        there = np.isfinite(parts)
        return np.asarray(parts[:, at] - np.where(there, parts, 0.0).sum(axis=1) / np.maximum(there.sum(axis=1), 1))


def _scale(model: Model, name: str, at: int, other: int | None) -> Scale:
    """Values of a column with their points; of a text the words that say most; no values where none can be named."""
    kind, belief = model.schema[name].like, model.beliefs[name]
    form = belief.form()
    factor = model.settings.weights.get(name, 1.0)
    if kind == "number":
        x = _places(model, name)
        points = _against(belief.parts(Numbers(x, model.schema[name].cells)), at, other)
        lacks = "" if _all_named(model, name, x) else "numbers between those named"
        cells = model.schema[name].cells
        exact = frozenset(() if cells is None else cells.points)  # values that were seen as they are
        told = told_by(model.schema[name])
        told = told if told is hours_text else number_text
        values = [told(v if v in exact else float(f"{v:.4g}")) for v in x.tolist()]
        return Scale(name, values, factor * points, lacks)
    if isinstance(form, TableForm):
        return _named(name, form.values, factor * _against(form.logs, at, other), "values")
    if isinstance(form, PairForm):
        values = [f"{u} and {v}" for u in form.us for v in form.vs]
        return _named(name, values, factor * _against(form.logs.reshape(len(values), -1), at, other), "pairs of values")
    if isinstance(form, WordsForm):
        sides = [at] if other is None else [at, other]
        values = list(dict.fromkeys(r.value for y in sides for r in telling(model, name, y, 7) if r.value in form.at))
        factor = float(posterior.by_length(model.settings, name, np.array(form.length)))  # of a usual text
        points = factor * _against(form.logs[[form.at[v] for v in values]], at, other)
        return Scale(name, values, points, "all other words, and how often each occurs")
    return Scale(name, [], np.zeros(0), "all of it")


def _named(name: str, values: Sequence[str], points: Floats, what: str) -> Scale:
    """All values, or of many those that say most."""
    if len(values) <= _MOST_VALUES:
        return Scale(name, list(values), points)
    kept = np.argsort(-np.nan_to_num(np.abs(points), nan=0.0), kind="stable")[:_MOST_VALUES]
    rest = len(values) - len(kept)
    return Scale(name, [values[i] for i in kept], points[kept], f"{rest:,} other {what}")


def _places(model: Model, name: str) -> Floats:
    """Numbers to name: all of a few, or quantiles of what was counted."""
    x, counted = counted_numbers(model, name), counted_cells(model, name)
    if counted is None:
        return x[:: max(len(x) // 9, 1)]
    if len(x) <= _MOST_VALUES and counted.cells.discrete:
        return x
    return np.unique(weighted_quantiles(counted.middle, counted.n.sum(axis=1), _QUANTILES))


def _all_named(model: Model, name: str, x: Floats) -> bool:
    """Whether every number that was counted stands there, and no other was."""
    counted = counted_cells(model, name)
    return counted is not None and bool(counted.point.all()) and np.array_equal(x, counted.middle)
