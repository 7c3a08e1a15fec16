"""Pictures of how good answers are: reliability, confusion, ROC, precision against recall, and from period to period.

Each has `from_predictions(labels, p, classes)` and `.plot(ax)`, and then `.figure_` and `.ax_`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from ...base import canon
from ...base.arrays import Floats, Ints
from ...base.errors import DataError
from ...selection.measure.curves import Curve, Reliability, precision_recall_curve, reliability, roc_curve
from ...selection.measure.metrics import confusion
from .paper import axes, bare, class_colours, colour, label, legend_above, letters

_MOST_CURVES = 6
_LOG_FROM = 20.0  # the largest value over the smallest, from which a scale is logarithmic
_MOST_NUMBERS = 12  # classes of a confusion table whose counts are written
_MOST_PERIODS, _LONGEST_NAME = 8, 24  # names of periods that have room; characters of one


def class_numbers(labels: Any, classes: Sequence[Any]) -> Ints:
    """The number of each label among the classes, by canonical text; −1 for one that is not among them or missing."""
    at = {canon.text(c): i for i, c in enumerate(classes)}
    values = labels.to_pylist() if hasattr(labels, "to_pylist") else list(labels)
    return np.array([at.get(t, -1) if (t := canon.text(v)) is not None else -1 for v in values], dtype=np.int64)


def known_rows(labels: Any, p: Any, classes: Sequence[Any]) -> tuple[Ints, Floats]:
    """Class numbers and probabilities of the rows whose label is one of the classes; at least one."""
    numbers, p = class_numbers(labels, classes), np.asarray(p, dtype=np.float64)
    if len(numbers) != len(p) or not (numbers >= 0).any():
        raise DataError(
            f"{len(numbers)} labels for {len(p)} rows, {int((numbers >= 0).sum())} of them known classes",
            hint="give the labels of the same rows, as they went into the model.",
        )
    return numbers[numbers >= 0], p[numbers >= 0]


class Display:
    """A picture: `plot(ax)` draws it and gives itself back, with `figure_` and `ax_`."""

    figure_: Any
    ax_: Any

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches where no axes are given."""
        return 4.6, 4.0

    def _drawn(self, ax: Any) -> Self:
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _ipython_display_(self) -> None:
        """In a notebook the picture is shown, which a cell does by itself, and no list of the numbers in it."""
        if not hasattr(self, "ax_"):
            self.plot()  # type: ignore[attr-defined]


@dataclass
class ReliabilityDisplay(Display):
    """How often forecasts of some probability come true, with intervals."""

    curve: Reliability
    what: str = "of the answer given"

    @classmethod
    def from_predictions(cls, labels: Any, p: Any, classes: Sequence[Any], *, bins: int = 10) -> ReliabilityDisplay:
        """Of the second class where there are two, else of the likeliest class of each row."""
        numbers, p = known_rows(labels, p, classes)
        two = p.shape[1] == 2
        what = f"of {canon.printable(classes[1], 20)}" if two else "of the answer given"
        return cls(reliability(numbers, p, 1 if two else None, bins=bins), what)

    def plot(self, ax: Any = None) -> ReliabilityDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        c, style = self.curve, {"color": colour(0), "ecolor": colour(0), "elinewidth": 1, "capsize": 2, "marker": "o"}
        ax.plot([0, 1], [0, 1], linestyle=":", color="#7d8590", linewidth=1, label="as forecast")
        reach = np.maximum([c.observed - c.low, c.high - c.observed], 0.0)
        style |= {"markersize": 4, "linewidth": 1.2, "label": "observed, 95 % interval"}
        ax.errorbar(c.forecast, c.observed, yerr=reach, **style)
        ax.set(xlabel=f"probability forecast {label(self.what, 40)}", ylabel="share that came true")
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        legend_above(ax)
        bare(ax, grid="both")
        return self._drawn(ax)


@dataclass
class FigureCurveDisplay(Display):
    """A figure against the number of rows or the values of a setting: on rows held out, and on those counted."""

    over: str
    values: Sequence[Any]
    metric: str
    held_out: Floats  # values × (figure, lower, upper)
    counted: Floats

    def plot(self, ax: Any = None) -> FigureCurveDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        plain = all(isinstance(v, (int, float)) and not isinstance(v, bool) for v in self.values)
        x = np.asarray(self.values, dtype=np.float64) if plain else np.arange(float(len(self.values)))
        far = plain and len(x) > 2 and x.min() > 0 and x.max() / x.min() > _LOG_FROM
        figure, low, high = self.held_out.T
        ax.fill_between(x, low, high, color=colour(0), alpha=0.18, linewidth=0)
        style = {"linewidth": 1.3, "marker": "o", "markersize": 4}
        ax.plot(x, figure, color=colour(0), label="rows held out, 95 % interval", **style)
        ax.plot(x, self.counted, color=colour(1), linestyle="--", label="rows counted", **style)
        if far:
            ax.set_xscale("log")
            ax.set_xticks(x, [f"{v:,g}" for v in x])
            ax.minorticks_off()
        elif not plain:
            names = [label(v, 14) for v in self.values]
            tight = max(map(len, names)) * len(names) > letters(ax, 0.8)
            ax.set_xticks(x, names, **({"rotation": 30, "ha": "right"} if tight else {}))
        ax.set(xlabel=label(self.over, 40), ylabel=self.metric.replace("_", " "))
        legend_above(ax)
        bare(ax, grid="y")
        return self._drawn(ax)


@dataclass
class ConfusionDisplay(Display):
    """How often each class was taken for each."""

    counts: Floats  # rows the right class, columns the answer
    classes: Sequence[Any]

    @classmethod
    def from_predictions(cls, labels: Any, p: Any, classes: Sequence[Any]) -> ConfusionDisplay:
        """The counts of every pair of right class and answer."""
        return cls(confusion(*known_rows(labels, p, classes)), classes)

    @property
    def size(self) -> tuple[float, float]:
        """Larger for more classes, in inches."""
        side = min(3.0 + 0.3 * len(self.classes), 8.0)
        return side, side

    def plot(self, ax: Any = None) -> ConfusionDisplay:
        """Draw it."""
        n = len(self.classes)
        ax = axes(ax, *self.size)
        total = self.counts.sum(axis=1, keepdims=True)
        share = np.divide(self.counts, total, out=np.zeros_like(self.counts), where=total > 0)
        ax.pcolormesh(np.arange(n + 1) - 0.5, np.arange(n + 1) - 0.5, share, cmap=blues(), vmin=0, vmax=1)
        ax.set_aspect("equal")
        ax.invert_yaxis()
        names = [label(c, 14) for c in self.classes]
        ax.set_xticks(range(n), names, rotation=45 if n > 3 else 0, ha="right" if n > 3 else "center")
        ax.set_yticks(range(n), names)
        ax.set(xlabel="answer", ylabel="right class")
        if n <= _MOST_NUMBERS:
            for i, j in np.ndindex(n, n):
                text = f"{self.counts[i, j]:,.10g}"
                ax.text(j, i, text, ha="center", va="center", color="white" if share[i, j] > 0.45 else None)
        ax.tick_params(length=0)
        for spine in ax.spines.values():
            spine.set_visible(False)
        return self._drawn(ax)


def blues() -> Any:
    """From nothing to the first colour, so that an empty cell is the page itself."""
    from matplotlib.colors import LinearSegmentedColormap, to_rgba

    full = to_rgba(colour(0))
    return LinearSegmentedColormap.from_list("tally", [(*full[:3], 0.04), full])


@dataclass
class CurvesDisplay(Display):
    """One curve per class against the rest, with its area; of many classes the worst few."""

    curves: Sequence[tuple[Any, Curve, float, int]]  # class, curve, area, number of the class
    hidden: int

    def _plot(self, ax: Any, diagonal: bool, lower: str) -> Self:
        ax = axes(ax, *self.size)
        if diagonal:
            ax.plot([0, 1], [0, 1], linestyle=":", color="#7d8590", linewidth=1)
        inks = class_colours([c[3] for c in self.curves], len(self.curves) + self.hidden)
        for (name, curve, area, _), ink in zip(self.curves, inks, strict=True):
            ax.plot(curve.x, curve.y, color=ink, linewidth=1.3, label=f"{label(name, 18)} ({area:.3f})")
            ax.set(xlabel=curve.names[0], ylabel=curve.names[1])
        ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
        title = f"area; {self.hidden} better ones not shown" if self.hidden else "area"
        ax.legend(loc=lower, title=title, title_fontsize=8)
        bare(ax, grid="both")
        return self._drawn(ax)


def _curves(labels: Any, p: Any, classes: Sequence[Any], make: Any, area: Any) -> tuple[list[Any], int]:
    numbers, p = known_rows(labels, p, classes)
    there = [i for i in range(len(classes)) if 0 < (numbers == i).sum() < len(numbers)]
    if len(classes) == 2 and there:
        there = [1]
    curves = [(i, make(numbers, p, i)) for i in there]
    found = sorted(((classes[i], curve, area(curve), i) for i, curve in curves), key=lambda f: f[2])
    return found[:_MOST_CURVES], max(len(found) - _MOST_CURVES, 0)


def _trapezes(curve: Curve) -> float:
    return float(np.trapezoid(curve.y, curve.x))


def _steps(curve: Curve) -> float:
    """Average precision: the precision at every step of the recall."""
    return float(np.sum(np.diff(curve.x, prepend=0.0) * curve.y))


@dataclass
class RocDisplay(CurvesDisplay):
    """The share of a class that is found against the share of others let in."""

    @classmethod
    def from_predictions(cls, labels: Any, p: Any, classes: Sequence[Any]) -> RocDisplay:
        """A curve of each class against the rest; of the second class where there are two."""
        return cls(*_curves(labels, p, classes, roc_curve, _trapezes))

    def plot(self, ax: Any = None) -> RocDisplay:
        """Draw it."""
        return self._plot(ax, True, "lower right")


@dataclass
class PrecisionRecallDisplay(CurvesDisplay):
    """How pure the found rows are against how many of the class are found."""

    @classmethod
    def from_predictions(cls, labels: Any, p: Any, classes: Sequence[Any]) -> PrecisionRecallDisplay:
        """A curve of each class against the rest; of the second class where there are two."""
        return cls(*_curves(labels, p, classes, precision_recall_curve, _steps))

    def plot(self, ax: Any = None) -> PrecisionRecallDisplay:
        """Draw it."""
        return self._plot(ax, False, "lower left")


@dataclass
class PeriodsDisplay(Display):
    """Curves over periods, in their order; a level, and what changed when."""

    periods: Sequence[str]
    curves: Mapping[str, tuple[Sequence[str], Sequence[float]]]  # name → (periods, values)
    what: str
    level: float | None = None
    marks: Sequence[tuple[str, str]] = ()  # (curve, period)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches where no axes are given."""
        return 6.4, 3.6

    def plot(self, ax: Any = None) -> PeriodsDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        place = {period: i for i, period in enumerate(self.periods)}
        numbers = {name: i for i, name in enumerate(self.curves)}
        for name, (periods, values) in self.curves.items():
            x = [place[p] for p in periods]
            style = {"marker": "o", "markersize": 3} if len(x) <= 2 * _MOST_PERIODS else {}
            ax.plot(x, values, color=colour(numbers[name]), linewidth=1.2, label=label(name, _LONGEST_NAME), **style)
        for name, period in self.marks:
            ax.axvline(place[period] - 0.5, color=colour(numbers[name]), linewidth=1, linestyle="--", zorder=0)
        if self.level is not None:
            ax.axhline(self.level, color="#7d8590", linewidth=1, linestyle=":", label="level")
        step = max(-(-len(self.periods) // _MOST_PERIODS), 1)
        ticks = range(0, len(self.periods), step)
        ax.set_xticks(
            ticks, [label(self.periods[i], _LONGEST_NAME) for i in ticks], rotation=30, ha="right", fontsize=8
        )
        ax.set(ylabel=self.what, xlim=(-0.5, len(self.periods) - 0.5))
        legend_above(ax)
        bare(ax, grid="y")
        return self._drawn(ax)
