"""Pictures of evidence: the waterfall of one answer, and the nomogram of a whole model, what each value adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import Floats, weighted_quantiles
from ...base.canon import number_text
from ...base.show import strongest
from ...data.blocks import Numbers
from ...families.forms import TableForm, WordsForm
from ...model import posterior
from ...model.odds import counted_cells
from ..changes import counted_numbers
from ..odds import Line, LogOdds
from .columns import telling
from .paper import AGAINST, EVEN, FOR, axes, bare, label, spread
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
        kept, rest = strongest(lines, [abs(x.log_odds) for x in lines], _MOST_LINES)
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
            shown = float(np.clip(value, -most, most))
            ax.barh(row, shown, left=total, height=0.62, color=FOR if value > 0 else AGAINST, alpha=0.85)
            if interval is not None:
                low, high = (float(np.clip(v, -most, most)) + total for v in interval)
                ax.plot([low, high], [row, row], color=EVEN, linewidth=1)
            ax.plot([total + shown] * 2, [row - 0.31, row + 1.31], color=EVEN, linewidth=0.7)
            total += shown
            names.append(f"{label(name, 32)}  {value:+.2f}")
        ax.barh(len(lines), total, height=0.62, color=FOR if end > 0 else AGAINST)
        own, other = label(self.odds.label, 20), label(self.odds.against, 20)
        names.append(f"together  {end:+.2f}")
        ax.axvline(0, color=EVEN, linewidth=0.8)
        ax.set_yticks(range(len(names)), names)
        ax.invert_yaxis()
        ax.set_xlabel(f"← {other}     log-odds     {own} →")
        ax.tick_params(axis="y", length=0)
        bare(ax, grid="x")
        return self._drawn(ax)


def _name(line: Line) -> str:
    return f"{line.column}: {line.value}" if line.column and line.value else line.column or line.value


@dataclass
class Scale:
    """One line of a nomogram: values of a column and what each adds."""

    column: str
    values: Sequence[str]
    points: Floats


@dataclass
class NomogramDisplay(Display):
    """The whole model as scales to read off by hand: find each value, add up its points, read off the probability."""

    label: str
    against: str
    scales: Sequence[Scale]
    prior: float
    pairwise: bool  # the sum is the log-odds of two classes, and has a probability
    hidden: int = 0

    @property
    def size(self) -> tuple[float, float]:
        """Taller for more columns, in inches."""
        return 8.0, 1.6 + 0.55 * (len(self.scales) + 1)

    def plot(self, ax: Any = None) -> NomogramDisplay:
        """Draw it."""
        n = len(self.scales)
        ax = axes(ax, *self.size)
        each = [s.points[np.isfinite(s.points)] for s in self.scales]
        low, high = (float(f([0.0, *np.concatenate([[self.prior], *each])])) for f in (np.min, np.max))
        wide = max(high - low, 1e-9)
        for row, scale in enumerate(self.scales):
            at = np.clip(scale.points, low, high)
            ax.plot([at.min(), at.max()], [row, row], color="#7d8590", linewidth=1)
            ax.plot(at, [row] * len(at), "|", color=FOR, markersize=9)
            names = [label(v, 12) for v in scale.values]
            for name, x, kept in zip(names, at, spread(at.tolist(), wide * 0.085), strict=True):
                if kept:
                    ax.text(x, row - 0.2, name, ha="center", va="bottom", fontsize=8)
        ax.plot([self.prior], [n], "D", color=FOR, markersize=5)
        ax.text(self.prior, n - 0.2, f"{self.prior:+.2f}", ha="center", va="bottom", fontsize=8)
        more = [f"({self.hidden} columns that say less are left out)"] if self.hidden else []
        ax.set_yticks(range(n + 1), [*(label(s.column, 22) for s in self.scales), "start"])
        ax.set_ylim(n + 0.5, -0.9)
        ax.axvline(0, color="#7d8590", linewidth=0.8, linestyle=":")
        toward = f"← {label(self.against, 24)}     points (log-odds)     {label(self.label, 24)} →"
        ax.set_xlabel("\n".join([toward, *([_reading()] if self.pairwise else []), *more]))
        ax.tick_params(axis="y", length=0)
        bare(ax, grid="x")
        return self._drawn(ax)


def _reading() -> str:
    """What a sum of points means, for those who add them up by hand."""
    shares = (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99)
    return "a sum of  " + "   ".join(f"{np.log(p / (1 - p)):+.1f}: {100 * p:g} %" for p in shares)


_QUANTILES = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
_MOST_VALUES = 14


def nomogram(model: Model, label: Any, against: Any, most: int) -> NomogramDisplay:
    """The scales of the columns that spread most, by how much their points vary."""
    order = np.argsort(-model.log_prior, kind="stable").tolist()
    two = len(model.classes) == 2
    at = (1 if two else order[0]) if label is None else model.class_number(label)
    other = model.class_number(against) if against is not None else (1 - at if two else None)
    scales = [s for name in model.beliefs if (s := _scale(model, name, at, other)) is not None]
    scales.sort(key=lambda s: -_reach(s.points))
    prior = float(_against(model.start[None, :], at, other)[0])
    name = "all classes on average" if other is None else str(model.classes[other])
    return NomogramDisplay(
        str(model.classes[at]), name, scales[:most], prior, other is not None, max(len(scales) - most, 0)
    )


def _reach(points: Floats) -> float:
    known = points[np.isfinite(points)]
    return float(known.max() - known.min()) if len(known) else 0.0


def _against(parts: Floats, at: int, other: int | None) -> Floats:
    """Points of a class against another, or against the mean of all classes."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(parts[:, at] - (parts.mean(axis=1) if other is None else parts[:, other]), nan=0.0)


def _scale(model: Model, name: str, at: int, other: int | None) -> Scale | None:
    """Values of a column with their points; of a text the words that say most; none for what has no values to name."""
    kind, belief = model.schema[name].like, model.beliefs[name]
    form = belief.form()
    factor = model.settings.weights.get(name, 1.0)
    if kind == "number":
        x = _places(model, name)
        if not len(x):
            return None
        points = _against(belief.parts(Numbers(x, model.schema[name].cells)), at, other)
        values = [number_text(float(f"{v:.4g}")) for v in x]
    elif isinstance(form, TableForm):
        values = list(form.values)
        if not values:
            return None
        points = _against(form.logs, at, other)
        if len(values) > _MOST_VALUES:
            kept = np.argsort(-np.abs(points), kind="stable")[:_MOST_VALUES]
            values, points = [values[i] for i in kept], points[kept]
    elif isinstance(form, WordsForm):
        sides = [at] if other is None else [at, other]
        values = list(dict.fromkeys(r.value for y in sides for r in telling(model, name, y, 7) if r.value in form.at))
        if not values:
            return None
        points = _against(form.logs[[form.at[v] for v in values]], at, other)
        factor = float(posterior.by_length(model.settings, name, np.array(form.length)))  # of a usual text
    else:
        return None
    return Scale(name, values, factor * points) if factor else None


def _places(model: Model, name: str) -> Floats:
    """Numbers to name: all of a few, or quantiles of what was counted."""
    x, counted = counted_numbers(model, name), counted_cells(model, name)
    if len(x) <= 9 or counted is None:
        return x[:: max(len(x) // 9, 1)]
    return np.unique(weighted_quantiles(counted.middle, counted.n.sum(axis=1), _QUANTILES))
