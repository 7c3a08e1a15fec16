"""Pictures for a lecture: decision regions, densities by class, a joint table."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import Floats, Ints
from ...base.errors import SettingsError, unknown
from ...data.sources import open_source
from ...data.values import Where, number
from ...families.forms import BellForm
from ...model.odds import counted_cells
from .columns import density, frequent
from .paper import EVEN, axes, bare, class_colours, colour, label, legend_above, width
from .scores import Display, class_numbers

if TYPE_CHECKING:
    from ...model.joint.table import JointDistribution
    from ...model.model import Model

_GRID = 181  # points along each side of a plane
_LINE = 401  # points along a line
_MOST_POINTS = 2_000
_MOST_CELLS = 48
_MOST_LETTERS = 14  # of a value in a joint table
_BARS = 3.0  # inches for its bars and probabilities
_MOST_CHANGES = 12


def _numbers_only(model: Model, *columns: str) -> None:
    for name in columns:
        if model.schema[name].like != "number" or model.schema[name].part is not None:
            hint = [c.name for c in model.schema.counted if c.like == "number" and c.part is None]
            raise SettingsError(
                f"column {name!r} is a {model.schema[name].kind}, and a plane has numbers along its sides",
                hint=f"name columns of numbers: {', '.join(map(repr, hint)) or 'there are none'}.",
            )


def _reach(model: Model, column: str, room: float = 0.06) -> tuple[float, float]:
    """From where to where a column of numbers is drawn: what was counted, with some room, or three deviations."""
    found = counted_cells(model, column)
    if found is not None and len(found.middle):
        low, high = float(found.middle[0]), float(found.middle[-1])
        more = room * (high - low) or 1.0
        return low - more, high + more
    if model.tally is None:
        raise SettingsError(
            "a model without counts does not know how far its numbers reach", hint="give the rows: data=rows."
        )
    known = [(m, float(np.sqrt(v))) for n, m, v in model.tally.moments(column).values() if n > 0]
    low, high = min(m - 3 * s for m, s in known), max(m + 3 * s for m, s in known)
    return (low, high) if high > low else (low - 1, high + 1)


def _points_of(model: Model, column: str) -> Floats | None:
    """The values of a column that has no others than some points."""
    cells = model.schema[column].cells
    return np.array(cells.points) if cells is not None and cells.discrete and cells.points else None


def _known(model: Model, column: str, places: Floats) -> Floats:
    """The nearest value that the column can have: between whole numbers, say, no row was counted."""
    points = _points_of(model, column)
    if points is None:
        return places
    after = np.clip(np.searchsorted(points, places), 1, max(len(points) - 1, 1))
    near = points[[after - 1, np.minimum(after, len(points) - 1)]]
    return np.asarray(np.where(places - near[0] <= near[1] - places, near[0], near[1]))


@dataclass
class RegionsDisplay(Display):
    """What a model answers at every point of a plane of two numbers: the surer, the darker; lines where it changes."""

    columns: tuple[str, str]
    x: Floats
    y: Floats
    p: Floats  # y × x × classes
    names: Sequence[str]
    points: tuple[Floats, Floats, Ints] | None = None  # rows to be shown, and their classes (−1 for none)

    @classmethod
    def of(cls, model: Model, x: str, y: str, data: Any = None, row: Mapping[str, Any] | None = None) -> RegionsDisplay:
        """The plane of two columns; the others are missing, or as in `row`. The rows of `data` are drawn upon it."""
        _numbers_only(model, x, y)
        points = None if data is None else _points(model, x, y, data)
        ends = []
        for i, name in enumerate((x, y)):
            there = np.zeros(0) if points is None else np.asarray(points[i])
            there = there[np.isfinite(there)]
            room = 0.06 * float(np.ptp(there)) if len(there) else 0.0
            ends.append((float(there.min()) - room, float(there.max()) + room) if room > 0 else _reach(model, name))
        across, up = (np.linspace(low, high, _GRID) for low, high in ends)
        fixed = {c.reads: [(row or {}).get(c.reads)] * _GRID**2 for c in model.schema.counted if c.of is None}
        plane = {
            **fixed,
            model.schema[x].reads: np.tile(_known(model, x, across), _GRID),
            model.schema[y].reads: np.repeat(_known(model, y, up), _GRID),
        }
        p = model.predict_proba(plane).reshape(_GRID, _GRID, -1)
        return cls((x, y), across, up, p, [str(c) for c in model.classes], points)

    def plot(self, ax: Any = None) -> RegionsDisplay:
        """Draw it."""
        from matplotlib.colors import to_rgb

        ax = axes(ax, *self.size)
        inks = class_colours(range(len(self.names)), len(self.names))
        best, most = self.p.argmax(axis=2), self.p.max(axis=2)
        even = 1.0 / len(self.names)
        image = np.empty((*best.shape, 4))
        image[..., :3] = np.array([to_rgb(ink) for ink in inks])[best]
        image[..., 3] = 0.10 + 0.42 * (most - even) / max(1.0 - even, 1e-9)
        ends = (self.x[0], self.x[-1], self.y[0], self.y[-1])
        ax.imshow(image, extent=ends, origin="lower", aspect="auto", interpolation="nearest", zorder=0)
        for i in np.unique(best).tolist():
            lead = self.p[..., i] - np.delete(self.p, i, axis=2).max(axis=2, initial=0.0)
            if (lead > 0).any() and (lead < 0).any():
                ax.contour(self.x, self.y, lead, levels=[0.0], colors=[EVEN], linewidths=1.0)
        if self.points is not None:
            self._rows(ax, inks)
        shown = np.unique(best) if self.points is None else np.arange(len(self.names))
        for i in shown[:6].tolist():
            ax.plot([], [], "s", color=inks[i], alpha=0.8, label=label(self.names[i], 18))
        ax.set(xlabel=label(self.columns[0], 40), ylabel=label(self.columns[1], 40))
        ax.set(xlim=ends[:2], ylim=ends[2:])
        legend_above(ax)
        bare(ax)
        return self._drawn(ax)

    def _rows(self, ax: Any, inks: Sequence[str]) -> None:
        assert self.points is not None
        x, y, of = self.points
        if len(x) > _MOST_POINTS:
            some = np.random.default_rng(0).choice(len(x), _MOST_POINTS, replace=False)
            x, y, of = x[some], y[some], of[some]
        ink = np.array([*inks, EVEN], dtype=object)[of]
        ax.scatter(x, y, s=9 if len(x) < 600 else 4, c=ink.tolist(), edgecolors="#00000055", linewidths=0.4, zorder=2)


def _points(model: Model, x: str, y: str, data: Any) -> tuple[Floats, Floats, Ints]:
    """Two columns of some rows, and the class of each, where they have a label."""
    found: list[list[Any]] = [[np.zeros(0)], [np.zeros(0)], [np.zeros(0, dtype=np.int64)]]
    target = model.schema.target
    for batch in open_source(data).batches():
        for at, name in enumerate((model.schema[x].reads, model.schema[y].reads)):
            if name not in batch:
                raise unknown(SettingsError, f"the rows have no column {name!r}", name, batch.names())
            found[at].append(number(batch[name], Where(name, batch.start, batch.place)))
        none = np.full(batch.rows, -1, dtype=np.int64)
        found[2].append(class_numbers(batch[target], model.classes) if target in batch else none)
    return np.concatenate(found[0]), np.concatenate(found[1]), np.concatenate(found[2])


@dataclass
class DensitiesDisplay(Display):
    """P(class)·P(x given class) of every class along a number, and where the likeliest class changes."""

    column: str
    x: Floats
    heights: Floats  # x × classes
    changes: Floats
    names: Sequence[str]
    colours: Sequence[str]
    weighted: bool = True

    @classmethod
    def of(cls, model: Model, column: str, *, prior: bool = True) -> DensitiesDisplay:
        """By what the column's counts say; `prior=False` draws P(x given class) alone."""
        _numbers_only(model, column)
        shown, names, colours = frequent(model)
        x = np.linspace(*_reach(model, column, 0.25), _LINE)
        belief, points = model.beliefs[column].by_counts, _points_of(model, column)
        if points is not None and not isinstance(belief.form(), BellForm):
            x = points  # what has a probability of its own, and nothing between
        if not belief.density:
            raise SettingsError(
                f"column {column!r} is believed by a blend of families, which has no density",
                hint="draw plot.column(name), or name one family: tb.textbook(data, target, families='kernel').",
            )
        height = density(belief, x, model.schema[column].cells)
        if prior:
            height = height * np.exp(model.log_prior)
        best = height.argmax(axis=1)
        at = np.flatnonzero(best[1:] != best[:-1])
        return cls(column, x, height[:, shown], (x[at] + x[at + 1]) / 2, names, colours, prior)

    @property
    def size(self) -> tuple[float, float]:
        """In inches."""
        return 5.2, 2.9

    def plot(self, ax: Any = None) -> DensitiesDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        for i, name in enumerate(self.names):
            ax.fill_between(self.x, self.heights[:, i], color=self.colours[i], alpha=0.16, linewidth=0)
            ax.plot(self.x, self.heights[:, i], color=self.colours[i], linewidth=1.6, label=label(name, 18))
        few = 0 < len(self.changes) <= _MOST_CHANGES
        for place in self.changes.tolist() if few else []:
            ax.axvline(place, color=EVEN, linestyle=":", linewidth=1.2)
        ax.set(xlim=(self.x[0], self.x[-1]), xlabel=label(self.column, 40))
        ax.set_ylabel("P(class) · density" if self.weighted else "density within the class")
        ax.set_ylim(bottom=0)
        legend_above(ax, "dotted: the answer changes" if few else "")
        bare(ax, grid="y")
        return self._drawn(ax)


@dataclass
class JointTableDisplay(Display):
    """A joint table as it stands on a blackboard: every cell with its values, its probability and a bar."""

    columns: Sequence[str]
    cells: Sequence[tuple[str, ...]]
    p: Floats

    @classmethod
    def of(cls, joint: JointDistribution) -> JointTableDisplay:
        """All cells of a small table, in order."""
        if joint.cells > _MOST_CELLS:
            raise SettingsError(
                f"a table of {joint.cells:,} cells",
                hint=f"draw at most {_MOST_CELLS}: joint.marginal('A').plot().",
            )
        cells = list(itertools.product(*joint.values))
        p = [joint.probability(dict(zip(joint.columns, cell, strict=True))) for cell in cells]
        return cls(joint.columns, cells, np.array(p))

    @property
    def size(self) -> tuple[float, float]:
        """In inches."""
        return _BARS + sum(self._columns(_MOST_LETTERS)), 0.7 + 0.24 * len(self.cells)

    def _columns(self, most: int) -> list[float]:
        """How many inches the values of each column take."""
        each = ((self.columns[j], *(cell[j] for cell in self.cells)) for j in range(len(self.columns)))
        return [0.2 + 0.085 * max(min(len(str(text)), most) for text in texts) for texts in each]

    def plot(self, ax: Any = None) -> JointTableDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        n, wide = len(self.cells), len(self.columns)
        room = width(ax) - 1.2  # inches beside the shortest bars that tell anything
        most = next((k for k in range(_MOST_LETTERS, 2, -1) if sum(self._columns(k)) <= room), 3)
        inches = self._columns(most)
        longest = max(float(self.p.max(initial=0.0)), 1e-300)
        unit = max(room + 1.2 - sum(inches) - 0.7, 0.5)  # of the longest bar, in inches
        at = [-sum(inches[j:]) / unit for j in range(wide)]
        ax.barh(np.arange(n), self.p / longest, height=0.72, color=colour(0), alpha=0.85)
        style = {"ha": "left", "va": "center", "fontsize": 9}
        for i, (cell, p) in enumerate(zip(self.cells, self.p.tolist(), strict=True)):
            for j, value in enumerate(cell):
                again = i > 0 and self.cells[i - 1][: j + 1] == cell[: j + 1]
                if not again:
                    ax.text(at[j], i, label(value, most), **style)
            ax.text(p / longest + 0.04 / unit, i, f"{p:.4g}", **style)
        for j, name in enumerate(self.columns):
            ax.text(at[j], -1.0, label(name, most), weight="bold", **style)
        ax.text(0.0, -1.0, "P", weight="bold", **style)
        ax.set(xlim=(at[0] - 0.02, 1 + 0.6 / unit), ylim=(n - 0.5, -1.6))
        ax.set_xticks([])
        ax.set_yticks([])
        for spine in ax.spines.values():
            spine.set_visible(False)
        return self._drawn(ax)
