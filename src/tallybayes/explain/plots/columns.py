"""Pictures of one column by class: what was counted, and over it what is believed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import Floats, Ints, log_sum_exp, safe_log, weighted_quantiles
from ...base.canon import number_text
from ...base.times import moment_text
from ...data.blocks import Numbers
from ...data.clock import told_by
from ...families import Belief
from ...families.forms import BellForm
from ...families.histogram import Histogram
from ...model.odds import Odds, OddsTable, class_counts, counted_cells, elsewhere, order_of_many, said_of_values
from .paper import axes, bare, below, class_colours, label, legend_above, letters
from .scores import Display

if TYPE_CHECKING:
    from ...model.model import Model

_MOST_CLASSES = 6
_MOST_VALUES = 12
_BARS = 32
_MOST_BARS = 3  # classes that stand side by side
_FAR = 1e300  # where axes end: further out, ticks overflow


def frequent(model: Model) -> tuple[list[int], list[str], list[str]]:
    """The most frequent classes, as many as a picture can hold, in their order: numbers, names and colours."""
    shown = sorted(np.argsort(-model.log_prior, kind="stable")[:_MOST_CLASSES].tolist())
    return shown, [str(model.classes[i]) for i in shown], class_colours(shown, len(model.classes))


@dataclass
class CategoryDisplay(Display):
    """A category: bars for what is believed of each value, dots for the shares that were counted."""

    column: str
    values: Sequence[str]
    believed: Floats  # values × classes
    counted: Floats | None
    names: Sequence[str]
    colours: Sequence[str]
    hidden: int = 0
    unit: str = "share within the class"
    longest: int = 22  # letters of a value's label

    @classmethod
    def of_pair(cls, model: Model, column: str) -> CategoryDisplay:
        """Pairs of values by how much the classes differ in their being together."""
        said, (shown, names, colours) = said_of_values(model, column), frequent(model)
        table = said or model.table(column)
        order = order_of_many(table)[:_MOST_VALUES]
        times = table.values if said is None else np.exp(said.values - said.values.mean(axis=1, keepdims=True))
        believed, hidden = times[order][:, shown], len(times) - len(order)
        unit = "times likelier together" + (" than apart" if said is None else ", as corrected")
        return cls(column, [table.rows[i] for i in order], believed, None, names, colours, hidden, unit, 40)

    @classmethod
    def of(cls, model: Model, column: str) -> CategoryDisplay:
        """The values that differ most between the classes, or are the most frequent."""
        table, (shown, names, colours) = model.table(column), frequent(model)
        p = table.values
        counted = None
        if model.tally is not None and "values" in model.tally.columns[column].sheets:
            slots, n = class_counts(model, column, "values")
            place = {s: i for i, s in enumerate(slots)}
            rows = [place.get(v, len(slots)) for v in table.rows]
            share = n / np.maximum(n.sum(axis=0), 1e-300)
            counted = np.vstack([share, np.zeros(share.shape[1])])[rows]
        order = np.sort(np.argsort(-p.max(axis=1), kind="stable")[:_MOST_VALUES])
        seen = None if counted is None else counted[order][:, shown]
        values, hidden = [table.rows[i] for i in order], len(p) - len(order)
        return cls(column, values, p[order][:, shown], seen, names, colours, hidden)

    @property
    def size(self) -> tuple[float, float]:
        """In inches."""
        return 3.9 + 0.06 * self.longest, 1.1 + len(self.values) * (0.16 + 0.11 * len(self.names))

    def plot(self, ax: Any = None) -> CategoryDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        k = len(self.names)
        rows = np.arange(len(self.values))
        for i, name in enumerate(self.names):
            y = rows + (i - (k - 1) / 2) * 0.8 / k
            ax.barh(y, self.believed[:, i], height=0.8 / k, color=self.colours[i], alpha=0.85, label=label(name, 18))
            if self.counted is not None:
                dots = {"color": "#7d8590", "markersize": 3.5, "linestyle": "none"}
                ax.plot(self.counted[:, i], y, "o", label="counted" if i == k - 1 else None, **dots)
        ax.set_yticks(rows, [label(v, min(self.longest, letters(ax, 0.6))) for v in self.values])
        ax.invert_yaxis()
        below(ax, self.unit + (f"\n{self.hidden} others not shown" if self.hidden else ""))
        legend_above(ax)
        bare(ax, grid="x")
        return self._drawn(ax)


@dataclass
class NumberDisplay(Display):
    """A number: the histogram of each class out of the tally's cells, and what is believed over it.

    A curve is drawn as it is. A blend or a corrected column has no density of its own: it says how likely each class
    is at a value. So the counted rows are dealt to the classes by that, and drawn like those that were counted.
    """

    column: str
    edges: Floats | None  # of the bars; None where no cells were counted
    shares: Floats | None  # bars × classes: per unit of the column, or per value if discrete
    x: Floats
    believed: Floats  # x × classes
    discrete: bool
    names: Sequence[str]
    colours: Sequence[str]
    told: Callable[[float], str] | None = None  # of days and hours: the line is told by dates or times

    @classmethod
    def of(cls, model: Model, column: str) -> NumberDisplay:
        """Bars over the middle 99 % of what was counted."""
        belief, cells, (shown, names, colours) = model.beliefs[column], model.schema[column].cells, frequent(model)
        look = names, colours, told_by(model.schema[column])
        assert model.tally is not None
        counted = counted_cells(model, column)
        if counted is None:
            known = [(m, np.sqrt(v)) for n, m, v in model.tally.moments(column).values() if n > 0]
            ends = [m + 3 * side * min(s, _FAR) for m, s in known or [(0.0, 1.0)] for side in (-1, 1)]
            low, high = np.clip((min(ends), max(ends)), -_FAR, _FAR).tolist()
            x = np.linspace(low, high if high > low else low + 1, 200)
            return cls(column, None, None, x, density(belief, x, cells)[:, shown], False, *look)
        places, n = np.clip(counted.middle, -_FAR, _FAR), counted.n
        share = n / np.maximum(n.sum(axis=0), 1e-300)
        dealt = None if belief.density else _dealt(model, column, counted)
        if counted.cells.discrete and len(places) <= 2 * _BARS:
            gap = float(np.min(np.diff(places))) if len(places) > 1 else 1.0
            scale = gap if isinstance(belief.form(), BellForm) else 1.0  # a density, read as the share of one value
            believed = scale * density(belief, places, cells) if dealt is None else dealt
            return cls(column, places, share[:, shown], places, believed[:, shown], True, *look)
        low, high = weighted_quantiles(places, n.sum(axis=1), [0.005, 0.995]).tolist()
        edges = np.linspace(low, high if high > low else low + 1, _BARS + 1)
        height = _heights(places, edges, share)
        flat = belief.bars(edges[0], edges[-1]) if dealt is None else (edges, _heights(places, edges, dealt))
        if flat is not None:
            x, believed = np.repeat(flat[0], 2)[1:-1], np.repeat(flat[1], 2, axis=0)
        else:
            x = np.linspace(edges[0], edges[-1], 241)
            x = x + (edges[1] - edges[0]) * 1e-4  # beside the values that have a probability of their own
            believed = density(belief, x, cells)
        return cls(column, edges, height[:, shown], x, believed[:, shown], False, *look)

    @property
    def size(self) -> tuple[float, float]:
        """In inches: taller where the legend has more than one line."""
        return 5.2, 2.7 + 0.2 * ((len(self.names) - 1) // 3)

    def plot(self, ax: Any = None) -> NumberDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        k = len(self.names)
        for i, name in enumerate(self.names):
            ink = self.colours[i]
            if self.discrete and k > _MOST_BARS:  # bars of many classes would stand too thick
                assert self.edges is not None and self.shares is not None
                ax.plot(self.edges, self.shares[:, i], "o", color=ink, markersize=3)
                ax.plot(self.edges, self.believed[:, i], color=ink, linewidth=1.1, label=label(name, 18))
                continue
            if self.discrete:
                assert self.edges is not None and self.shares is not None
                gap = float(np.min(np.diff(self.edges))) if len(self.edges) > 1 else 1.0
                place = self.edges + (i - (k - 1) / 2) * 0.8 * gap / k
                ax.bar(place, self.shares[:, i], width=0.8 * gap / k, color=ink, alpha=0.4)
                ax.plot(place, self.believed[:, i], "o", color=ink, markersize=3.5, label=label(name, 18))
                continue
            if self.edges is not None and self.shares is not None:
                ax.stairs(self.shares[:, i], self.edges, fill=True, color=ink, alpha=0.28)
            ax.plot(self.x, self.believed[:, i], color=ink, linewidth=1.6, label=label(name, 18))
        tallest = 0.0 if self.shares is None else float(self.shares.max(initial=0.0))
        if tallest > 0 and self.believed.max() > 2.5 * tallest:  # a spike would flatten everything else
            ax.set_ylim(0, 2.5 * tallest)
        ax.set(xlabel=label(self.column, 40), ylabel="share" if self.discrete else "density")
        bars = not (self.discrete and k > _MOST_BARS)
        legend_above(
            ax, f"{'bars' if bars else 'dots'} counted, {'dots' if self.discrete and bars else 'lines'} believed"
        )
        told = self.told
        ax.locator_params(axis="x", nbins=4 if told is moment_text else 7)
        if told is not None:
            ax.xaxis.set_major_formatter(lambda at, _: told(float(math.floor(at)) if told is moment_text else at))
        bare(ax, grid="y")
        return self._drawn(ax)


def density(belief: Belief, x: Floats, cells: Any) -> Floats:
    """What is believed of some numbers, x × classes: densities, or probabilities of those with one of their own."""
    block = Numbers(x, cells)
    return np.exp(np.minimum(belief.parts(block) + belief.base(block)[:, None], 700.0))


def _heights(places: Floats, edges: Floats, share: Floats) -> Floats:
    """Shares by class of cells at these places, as the heights of bars."""
    each = [np.histogram(places, edges, weights=share[:, y])[0] for y in range(share.shape[1])]
    return np.asarray(np.stack(each, axis=1) / (edges[1] - edges[0]))


def _dealt(model: Model, column: str, counted: Histogram) -> Floats:
    """The counted rows dealt to the classes by P(class) · what the column says, as shares of each class."""
    parts = model.beliefs[column].parts(Numbers(counted.middle, counted.cells))
    score = model.log_prior + model.settings.weights.get(column, 1.0) * parts
    rows = np.exp(score - log_sum_exp(score)[:, None]) * counted.n.sum(axis=1, keepdims=True)
    return np.asarray(rows / np.maximum(rows.sum(axis=0), 1e-300))


@dataclass
class WordsDisplay(Display):
    """The most telling words of each class: how many times likelier they are there than elsewhere."""

    column: str
    tables: Sequence[OddsTable]
    colours: Sequence[str]

    @classmethod
    def of(cls, model: Model, column: str, top: int = 8) -> WordsDisplay:
        """The words of the most frequent classes, by how much they say: the odds, and how often the word occurs."""
        shown, _, colours = frequent(model)
        return cls(column, [telling(model, column, i, top) for i in shown], colours)

    @property
    def size(self) -> tuple[float, float]:
        """In inches."""
        return 5.2, 0.9 + 0.21 * sum(len(t.rows) + 1 for t in self.tables)

    def plot(self, ax: Any = None) -> WordsDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        y, names = 0, []
        for table, ink in zip(self.tables, self.colours, strict=True):
            ratios = np.array([r.ratio for r in table.rows])
            log = np.log10(np.clip(ratios, 1e-6, 1e6)) if len(ratios) else ratios
            places = np.arange(y, y + len(log))
            ax.barh(places, log, height=0.75, color=ink, alpha=0.85, label=label(table.label, 18))
            names += [label(r.value, 24) for r in table.rows] + [""]
            y += len(log) + 1
        ax.set_yticks(range(len(names)), names)
        ax.tick_params(axis="y", length=0)
        ax.invert_yaxis()
        ticks = np.arange(0, np.ceil(ax.get_xlim()[1]) + 1)
        ax.set_xticks(ticks, [f"×{number_text(float(10.0**t))}" for t in ticks])
        ax.set_xlabel("times likelier than in the other classes")
        legend_above(ax)
        bare(ax, grid="x")
        return self._drawn(ax)


def telling(model: Model, column: str, number: int, top: int) -> OddsTable:
    """The words that say most for a class: P(word)·log odds, so that one rare word does not stand before all."""
    table, prior = model.table(column), np.exp(model.log_prior)
    inside = table.values[:, number]
    if len(prior) < 2:
        return OddsTable(column, model.classes[number], "the others", ())
    outside = elsewhere(table, prior, number)
    with np.errstate(invalid="ignore"):
        score = np.nan_to_num(inside * np.minimum(safe_log(inside) - safe_log(outside), 30.0), nan=-1.0)
    best = np.argsort(-score, kind="stable")[:top]
    rows = [Odds(table.rows[i], float(inside[i]), float(outside[i])) for i in best if score[i] > 0]
    rows.sort(key=lambda r: -r.ratio)
    return OddsTable(column, model.classes[number], "the others", tuple(rows))


@dataclass
class VectorDisplay(Display):
    """A vector: location and scale of every position by class."""

    column: str
    positions: Ints
    location: Floats
    scale: Floats
    names: Sequence[str]
    colours: Sequence[str]

    @classmethod
    def of(cls, model: Model, column: str) -> VectorDisplay:
        """Of the belief about each position."""
        form, (shown, *look) = model.beliefs[column].form(), frequent(model)
        assert isinstance(form, BellForm) and form.positions is not None
        return cls(column, form.positions, form.location[:, shown], form.scale[:, shown], *look)

    @property
    def size(self) -> tuple[float, float]:
        """In inches."""
        return 5.2, 2.7

    def plot(self, ax: Any = None) -> VectorDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        for i, name in enumerate(self.names):
            m, s = self.location[:, i], self.scale[:, i]
            ax.fill_between(self.positions, m - s, m + s, color=self.colours[i], alpha=0.18, linewidth=0)
            ax.plot(self.positions, m, color=self.colours[i], linewidth=1.3, label=label(name, 18))
        ax.set(xlabel=f"position in {label(self.column, 40)}", ylabel="mean ± deviation")
        legend_above(ax)
        bare(ax, grid="y")
        return self._drawn(ax)


Picture = Callable[["Model", str], Display]  # a model and the name of a column → what to draw
_PICTURES: dict[str, Picture] = {
    "bag": WordsDisplay.of,
    "number": NumberDisplay.of,
    "pair": CategoryDisplay.of_pair,
    "text": WordsDisplay.of,
    "vector": VectorDisplay.of,
}


def register_picture(kind: str, picture: Picture) -> None:
    """Let columns of this kind be drawn so."""
    _PICTURES[kind] = picture


def column_display(model: Model, column: str) -> Display:
    """The picture that suits a column: that of its kind, or of the one it is like; else the belief's table as bars."""
    model.table(column)  # an unknown name is an error with a hint
    about = model.schema[column]
    picture = _PICTURES.get(about.kind) or _PICTURES.get(about.like) or CategoryDisplay.of
    return picture(model, column)
