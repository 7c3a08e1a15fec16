"""Pictures of what is believed of a probability before counting and after: Beta curves, and Dirichlet triangles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import Floats
from ...base.errors import SettingsError, unknown
from ...base.lazy import gammaln
from ...families.settings import smoothing_of
from ...families.smoothing import BackOff, Dirichlet, Laplace, MaximumLikelihood, Smoothing
from ...model.odds import class_counts
from .columns import frequent
from .paper import EVEN, axes, bare, colour, label, legend_above, letters
from .scores import Display, blues

if TYPE_CHECKING:
    from ...model.model import Model

_GRID = 181  # points along each side of a triangle
_LINE = 401  # points along a line
_EDGE = 1e-3  # how near to 0 and 1 a curve of probabilities is drawn


def _imagined(smoothing: Smoothing, slots: Sequence[str], classes: Sequence[str], n: Floats) -> Floats:
    """The imagined rows of a Dirichlet prior, slots × classes."""
    if isinstance(smoothing, Laplace):
        return np.full(n.shape, smoothing.alpha)
    if isinstance(smoothing, Dirichlet):
        return smoothing.amounts_for(slots, classes)
    if isinstance(smoothing, BackOff):
        return np.broadcast_to(smoothing.amounts(n), n.shape)
    if isinstance(smoothing, MaximumLikelihood):
        return np.zeros(n.shape)
    raise SettingsError(
        f"{smoothing} is no Dirichlet prior", hint="take tb.Laplace(α), tb.Dirichlet({…}) or tb.MaximumLikelihood()."
    )


def _counted(model: Model, column: str) -> tuple[list[str], list[str], Floats, Floats]:
    """Values, classes, counts and imagined rows of a category."""
    if model.tally is None or model.schema[column].like != "category":
        raise SettingsError(
            f"column {column!r} is no category that was counted", hint="name a category of a model with its counts."
        )
    classes = [str(c) for c in model.classes]
    values = [v for v in model.table(column).rows if not v.startswith("(")]
    slots, counts = class_counts(model, column, "values")
    place = {s: i for i, s in enumerate(slots)}
    n = np.vstack([counts, np.zeros(counts.shape[1])])[[place.get(v, len(slots)) for v in values]]
    return values, classes, n, _imagined(model.settings.smoothing_of(column), values, classes, n)


@dataclass
class BetaDisplay(Display):
    """What is believed of one probability before counting (dashed) and after, as Beta curves; dots are their means."""

    what: str
    names: Sequence[str]
    before: Sequence[tuple[float, float]]  # a and b of each curve; zeros where nothing was believed
    after: Sequence[tuple[float, float]]
    colours: Sequence[str]

    @classmethod
    def of(cls, model: Model, column: str, value: Any) -> BetaDisplay:
        """P(value given class), a curve for each class."""
        values, _, n, imagined = _counted(model, column)
        if str(value) not in values:
            raise unknown(SettingsError, f"column {column!r} has no value {value!r}", value, values)
        at, (shown, names, colours) = values.index(str(value)), frequent(model)
        total, more = n.sum(axis=0), imagined.sum(axis=0)
        before = [(float(imagined[at, y]), float(more[y] - imagined[at, y])) for y in shown]
        after = [(a + float(n[at, y]), b + float(total[y] - n[at, y])) for (a, b), y in zip(before, shown, strict=True)]
        return cls(f"P({column} = {value} given class)", names, before, after, colours)

    @classmethod
    def of_counts(cls, counts: Mapping[Any, float], prior: Any = 1.0) -> BetaDisplay:
        """The share of the first of two values: `BetaDisplay.of_counts({"red": 2, "blue": 1}, prior=1)`."""
        values, n, imagined = _given(counts, prior, 2)
        before = (float(imagined[0]), float(imagined[1]))
        after = (before[0] + float(n[0]), before[1] + float(n[1]))
        name = ", ".join(f"{k:g} {v}" for v, k in counts.items())
        return cls(f"P({values[0]})", [f"after {name}"], [before], [after], [colour(0)])

    @property
    def size(self) -> tuple[float, float]:
        """In inches."""
        return 5.2, 2.9

    def plot(self, ax: Any = None) -> BetaDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        x = np.linspace(_EDGE, 1 - _EDGE, _LINE)
        same = len(set(self.before)) == 1
        tallest = 0.0
        for i, (before, after) in enumerate(zip(self.before, self.after, strict=True)):
            if min(before) > 0 and (i == 0 or not same):
                ink = EVEN if same else self.colours[i]
                ax.plot(
                    x, _beta(x, *before), color=ink, linestyle="--", linewidth=1.2, label="before" if i == 0 else None
                )
            if min(after) > 0:
                curve = _beta(x, *after)
                inside = curve[(x > 0.02) & (x < 0.98)]
                tallest = max(tallest, float(inside.max()))
                ax.fill_between(x, curve, color=self.colours[i], alpha=0.14, linewidth=0)
                ax.plot(x, curve, color=self.colours[i], linewidth=1.6, label=label(self.names[i], 24))
            mean = after[0] / max(sum(after), 1e-300)
            height = float(_beta(np.array([np.clip(mean, _EDGE, 1 - _EDGE)]), *after)[0]) if min(after) > 0 else 0.0
            ax.plot([mean], [height], "o", color=self.colours[i], markersize=5)
        ax.set(xlim=(0, 1), xlabel=label(self.what, min(60, letters(ax, 0.75))), ylabel="density")
        ax.set_ylim(0, 1.25 * tallest if tallest else None)
        legend_above(ax)
        bare(ax, grid="y")
        return self._drawn(ax)


def _beta(x: Floats, a: float, b: float) -> Floats:
    """The density x^(a − 1)·(1 − x)^(b − 1) / B(a, b)."""
    log = (a - 1) * np.log(x) + (b - 1) * np.log1p(-x)
    return np.exp(np.minimum(log - float(gammaln(a) + gammaln(b) - gammaln(a + b)), 700.0))


def _given(counts: Mapping[Any, float], prior: Any, wanted: int) -> tuple[list[str], Floats, Floats]:
    values = [str(v) for v in counts]
    if len(values) != wanted:
        raise SettingsError(f"{len(values)} values", hint=f"this picture is of {wanted}: {{value: count}}.")
    n = np.array([[float(k)] for k in counts.values()])
    return values, n[:, 0], _imagined(smoothing_of(prior), values, ["all"], n)[:, 0]


@dataclass
class DirichletDisplay(Display):
    """What is believed of the shares of three values after counting: a triangle, each corner one value alone."""

    what: str
    values: Sequence[str]
    imagined: Floats
    n: Floats

    @classmethod
    def of(cls, model: Model, column: str, given: Any) -> DirichletDisplay:
        """The shares of a column's three values in one class."""
        values, classes, n, imagined = _counted(model, column)
        if len(values) != 3:
            raise SettingsError(
                f"column {column!r} has {len(values)} values",
                hint="a triangle has three: draw plot.beta(column, value).",
            )
        if str(given) not in classes:
            raise unknown(SettingsError, f"there is no class {given!r}", given, classes)
        y = classes.index(str(given))
        return cls(f"{column} given {given}", values, imagined[:, y], n[:, y])

    @classmethod
    def of_counts(cls, counts: Mapping[Any, float], prior: Any = 1.0) -> DirichletDisplay:
        """The same of counts: `DirichletDisplay.of_counts({"red": 2, "blue": 1, "green": 0}, prior=1)`."""
        values, n, imagined = _given(counts, prior, 3)
        return cls("shares", values, imagined, n)

    def plot(self, ax: Any = None) -> DirichletDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        corners = np.array([[0.0, 0.0], [1.0, 0.0], [0.5, np.sqrt(3) / 2]])
        side = np.linspace(0.0, 1.0, _GRID)
        x, y = np.meshgrid(side, side * corners[2, 1])
        top = y / corners[2, 1]
        right = x - 0.5 * top
        share = np.stack([1 - top - right, right, top])
        inside = (share > _EDGE / 4).all(axis=0)
        amounts = self.imagined + self.n
        peak = _peak(amounts)
        if (amounts > 0).all():
            log = np.einsum("i,iyx->yx", amounts - 1, np.log(np.where(inside, share, 1.0)))
            height = np.exp(log - log[inside].max())
            ax.contourf(x, y, np.where(inside, height, np.nan), levels=np.linspace(0, 1, 12), cmap=blues(), zorder=0)
        ax.plot(*np.vstack([corners, corners[:1]]).T, color=EVEN, linewidth=1.0)
        total = float(self.n.sum())
        marks = [("mean", "o", amounts / max(float(amounts.sum()), 1e-300), colour(1))]
        marks += [("counted", "x", self.n / total, colour(2))] if total > 0 else []
        marks += [("peak", "+", peak, colour(3))] if peak is not None else []
        for name, mark, place, ink in marks:
            at = place @ corners
            ax.plot([at[0]], [at[1]], mark, color=ink, markersize=8, markeredgewidth=1.8, label=name, clip_on=False)
        for (cx, cy), value, k in zip(corners, self.values, self.n.tolist(), strict=True):
            text = f"{label(value, 16)} ({k:g})"
            ax.text(cx, cy + (0.04 if cy > 0 else -0.05), text, ha="center", va="bottom" if cy > 0 else "top")
        ax.set_title(label(self.what, 50), fontsize=10, pad=26)
        ax.set_aspect("equal")
        ax.set(xlim=(-0.12, 1.12), ylim=(-0.14, 1.0))
        ax.axis("off")
        legend_above(ax)
        return self._drawn(ax)


def _peak(amounts: Floats) -> Floats | None:
    """Where a Dirichlet is highest; None where it has no peak inside or on the edge."""
    less = amounts - 1.0
    return np.asarray(less / less.sum()) if (less >= 0).all() and less.sum() > 0 else None
