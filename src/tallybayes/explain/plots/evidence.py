"""Pictures of evidence: the waterfall of one answer, and the nomogram of a whole model, what each value adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import Floats, weighted_quantiles
from ...base.canon import number_text
from ...base.show import signed, strongest
from ...data.blocks import Numbers
from ...families.forms import PairForm, TableForm, WordsForm
from ...model import posterior
from ...model.odds import counted_cells
from ..changes import counted_numbers
from ..odds import Line, LogOdds
from .columns import telling
from .paper import AGAINST, EVEN, FOR, axes, bare, below, label, letters, stacked
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
        return _WIDE, 0.6 + 0.2 * len(self._below()) + self._layout()[-1]

    def _below(self) -> list[str]:
        """The lines below the picture: what points mean, what a sum of them does, or what is not on it."""
        toward = f"← {label(self.against, 24)}     points (log-odds)     {label(self.label, 24)} →"
        if self.adds_up:
            return [toward, *([_reading()] if self.pairwise else [])]
        told = [label(t, 90) for t in self.left_out[:_MOST_REMARKS]]
        more = len(self.left_out) - len(told)
        return [toward, "not the whole sum, for this is not on it:", *told, *([f"and {more} more"] if more else [])]

    def _ends(self) -> tuple[float, float, float]:
        """The least and the largest finite points, and what an inch is worth."""
        each = [s.points[np.isfinite(s.points)] for s in self.scales]
        start = [self.prior] if np.isfinite(self.prior) else []
        low, high = (float(f([0.0, *start, *np.concatenate([[0.0], *each])])) for f in (np.min, np.max))
        low, high = (low, high) if high > low else (low - 1.0, high + 1.0)
        return low, high, (high - low) / (_WIDE - _NAMES - 2 * _BEYOND)

    def _shown(self, scale: Scale) -> list[tuple[float, str, str]]:
        """Places, marks and labels of what can be drawn: infinite points beyond the ends."""
        low, high, inch = self._ends()
        out = []
        for value, points in zip(scale.values, scale.points.tolist(), strict=True):
            if np.isnan(points):
                continue
            if np.isfinite(points):
                out.append((points, "|", label(value, _LONGEST)))
            else:
                place = high + _BEYOND * inch / 2 if points > 0 else low - _BEYOND * inch / 2
                out.append((place, ">" if points > 0 else "<", f"{label(value, _LONGEST)} {signed(points, 0)}"))
        return out

    def _layout(self) -> list[float]:
        """How far below the top each line is drawn, the start and the end of the picture included."""
        inch, y, out = self._ends()[2], 0.1, []
        for scale in self.scales:
            shown = self._shown(scale)
            levels = stacked([x / inch for x, _, _ in shown], [_LETTER * len(t) for _, _, t in shown])
            y += 0.3 + _LINE * (1 + max(levels, default=0))
            out.append(y)
        return [*out, y + 0.45, y + 0.6]

    def plot(self, ax: Any = None) -> NomogramDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        low, high, inch = self._ends()
        *rows, start, end = self._layout()
        for y, scale in zip(rows, self.scales, strict=True):
            shown = self._shown(scale)
            at = [x for x, _, _ in shown] or [0.0]
            ax.plot([min(at), max(at)], [y, y], color=EVEN, linewidth=1)
            levels = stacked([x / inch for x, _, _ in shown], [_LETTER * len(t) for _, _, t in shown])
            for (x, mark, text), level in zip(shown, levels, strict=True):
                top = y - 0.1 - _LINE * level
                ax.plot([x, x], [y, top], color=EVEN, linewidth=0.5)
                ax.plot([x], [y], mark, color=FOR, markersize=9 if mark == "|" else 6)
                ax.text(x, top, text, ha="center", va="bottom", fontsize=8)
        if np.isfinite(self.prior):
            ax.plot([self.prior], [start], "D", color=FOR, markersize=5)
        ax.text(
            np.clip(self.prior, low, high), start - 0.08, signed(self.prior, 2), ha="center", va="bottom", fontsize=8
        )
        ax.set_yticks([*rows, start], [*(label(s.column, 22) for s in self.scales), "start"])
        ax.set_ylim(end, 0.0)
        ax.set_xlim(low - _BEYOND * inch, high + _BEYOND * inch)
        ax.axvline(0, color=EVEN, linewidth=0.8, linestyle=":")
        ax.set_xlabel("\n".join(self._below()))
        ax.tick_params(axis="y", length=0)
        bare(ax, grid="x")
        return self._drawn(ax)


def _reading() -> str:
    """What a sum of points means, for those who add them up by hand."""
    shares = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
    return "a sum of  " + "   ".join(f"{np.log(p / (1 - p)):+.1f}: {100 * p:g} %" for p in shares)


_QUANTILES = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
_MOST_VALUES = 14
_MOST_REMARKS = 6
_WIDE, _NAMES = 8.0, 1.9  # inches: the picture, and the names beside it
_BEYOND = 0.6  # inches beside the scales, for what is infinite
_LONGEST = 30  # letters of a label
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
        values = [number_text(v if v in exact else float(f"{v:.4g}")) for v in x.tolist()]
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
