"""The graphical model drawn: the class, an arrow to every column, and the table behind each node; a notebook's view."""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import Floats
from ..base.canon import printable
from ..families import Table

if TYPE_CHECKING:
    from .model import Model

_MOST_ROWS = 12  # of a table shown in a drawing
_MOST_CLASSES = 6
_MOST_COLUMNS, _MOST_TOLD = 100, 3  # of a notebook's table: lines, and classes whose most telling value is named
_CHAR, _LINE, _PAD, _GAP = 7.3, 17, 10, 26  # pixels, for 12 px monospace
_WIDEST = 1100


@dataclass(frozen=True)
class Graph:
    """Class node, one child per column, a conditional table per node."""

    target: str
    classes: tuple[str, ...]
    prior: Floats
    tables: Mapping[str, Table]

    def edges(self) -> list[tuple[str, str]]:
        """(class, column) for each column."""
        return [(self.target, column) for column in self.tables]

    def to_dot(self) -> str:
        """The graph in Graphviz' language, tables inside the nodes."""
        lines = ["digraph naive_bayes {", "  node [shape=plain, fontname=monospace];"]
        lines.append(f"  class [label=<{_dot_table(self._grid(None))}>];")
        for i, column in enumerate(self.tables):
            lines.append(f"  column{i} [label=<{_dot_table(self._grid(column))}>];")
            lines.append(f"  class -> column{i};")
        return "\n".join([*lines, "}"])

    def to_svg(self) -> str:
        """The graph as a picture that any browser shows, with the numbers of the tables."""
        top = _Box(self._grid(None))
        boxes = [_Box(self._grid(column)) for column in self.tables]
        rows: list[list[_Box]] = [[]]
        for box in boxes:
            if rows[-1] and sum(b.width + _GAP for b in rows[-1]) + box.width > _WIDEST:
                rows.append([])
            rows[-1].append(box)
        width = max([top.width, *(sum(b.width + _GAP for b in row) - _GAP for row in rows if row)]) + 2 * _PAD
        pieces, y = [top.svg((width - top.width) / 2, _PAD)], _PAD + top.height + 60.0
        start = (width / 2, _PAD + top.height)
        arrows = []
        for row in rows:
            x = (width - sum(b.width + _GAP for b in row) + _GAP) / 2
            for box in row:
                pieces.append(box.svg(x, y))
                end = f'x2="{x + box.width / 2:.1f}" y2="{y - 2:.1f}" marker-end="url(#tip)"'
                arrows.append(f'<line x1="{start[0]:.1f}" y1="{start[1]:.1f}" {end}/>')
                x += box.width + _GAP
            y += max((b.height for b in row), default=0) + 40
        height = y if boxes else top.height + 2 * _PAD
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
            f'height="{height:.0f}" font-family="ui-monospace, monospace" font-size="12">'
            '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
            'orient="auto"><path d="M0,0 L10,5 L0,10 z" fill="#667"/></marker></defs>'
            f'<g stroke="#99a" stroke-width="1.2">{"".join(arrows)}</g>'
            f"{''.join(pieces)}</svg>"
        )

    def _repr_svg_(self) -> str:
        return self.to_svg()

    def _grid(self, column: str | None) -> list[list[str]]:
        """A node's title and table as text: the prior for None, else the column's table."""
        if column is None:
            names, values, titles = ["P"], self.prior[None, :], [self.target]
        else:
            table = self.tables[column]
            names, values, titles = table.rows, table.values, [column, table.title]
        shown = [*([_short(title)] for title in titles), ["", *(_short(c) for c in self.classes[:_MOST_CLASSES])]]
        for name, row in list(zip(names, values, strict=True))[:_MOST_ROWS]:
            shown.append([_short(name), *(_number(v) for v in row[:_MOST_CLASSES])])
        hidden = len(names) - _MOST_ROWS
        if hidden > 0:
            shown.append([f"… {hidden} more"])
        if len(self.classes) > _MOST_CLASSES:
            shown.append([f"… {len(self.classes) - _MOST_CLASSES} more classes"])
        return shown


def _short(text: str) -> str:
    return printable(text, 28)


def _number(value: float) -> str:
    return "0" if value == 0 else f"{value:.4g}" if np.isfinite(value) else str(value)


def _dot_table(grid: list[list[str]]) -> str:
    width = max(len(row) for row in grid)
    rows = []
    for row in grid:
        span = f' COLSPAN="{width}"' if len(row) == 1 else ""
        rows.append("<TR>" + "".join(f"<TD{span}>{html.escape(cell) or ' '}</TD>" for cell in row) + "</TR>")
    return f'<TABLE BORDER="0" CELLBORDER="1" CELLSPACING="0">{"".join(rows)}</TABLE>'


class _Box:
    """One node: a frame, a title and columns of text."""

    def __init__(self, grid: list[list[str]]) -> None:
        self.grid = grid
        columns = max(len(row) for row in grid)
        body = [row for row in grid if len(row) == columns]
        self.widths = [max(len(row[i]) for row in body) * _CHAR + 10 for i in range(columns)]
        lone = max((len(row[0]) for row in grid if len(row) == 1), default=0) * _CHAR
        self.width = max(sum(self.widths), lone) + 2 * _PAD
        self.height = len(grid) * _LINE + 2 * _PAD

    def svg(self, x: float, y: float) -> str:
        """The node with its upper left corner at x, y."""
        out = [
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{self.width:.1f}" height="{self.height:.1f}" rx="6" '
            'fill="#f7f8fb" stroke="#99a"/>'
        ]
        for i, row in enumerate(self.grid):
            base = y + _PAD + (i + 0.75) * _LINE
            if len(row) == 1:
                weight = ' font-weight="bold"' if i == 0 else ' fill="#667"'
                out.append(f'<text x="{x + _PAD:.1f}" y="{base:.1f}"{weight}>{html.escape(row[0])}</text>')
                continue
            right = x + _PAD
            for j, cell in enumerate(row):
                right += self.widths[j]
                place = f'x="{x + _PAD:.1f}"' if j == 0 else f'x="{right:.1f}" text-anchor="end"'
                colour = ' fill="#667"' if row[0] == "" else ""
                out.append(f'<text {place} y="{base:.1f}"{colour}>{html.escape(cell)}</text>')
        return "".join(out)


def model_html(model: Model) -> str:
    """A notebook view of a model: its columns with weights and most telling values, and behind folds all the rest."""
    from ..base import view  # an answer needs none

    title, *rest = repr(model).split("\n")
    said = rest[len(model.beliefs) :]
    told = dict(model._described())
    weights = {name: model.settings.weight_of(name) for name in model.beliefs}
    top = max([1.0, *weights.values()])
    rows = []
    for name in list(model.beliefs)[:_MOST_COLUMNS]:
        weight = weights[name]
        drawn = view.together(view.bar(weight / top, f"weight {weight:.3g}"), f"{weight:.3g}")
        family = told[name].partition(", weight ")[0]
        rows.append([name, model.schema[name].kind, drawn, view.below(*_telling(model, name)), family])
    more = len(model.beliefs) - len(rows)
    heads = ("column", "kind", "weight", "most telling", "believed as")
    classes = [[str(c), view.bar(p, f"{p:.4f}"), f"{p:.4f}"] for c, p in list(model.prior().items())[:_MOST_COLUMNS]]
    left = [[c.name, c.reason] for c in model.schema.columns if c.kind == "ignore"]
    graph = model.graph()
    return view.view(
        title,
        view.table(heads, rows, left=(0, 1, 2, 3, 4)) if rows else "",
        view.note(f"… {more:,} columns more" if more > 0 else ""),
        *map(view.note, said),
        view.fold(f"P({printable(graph.target, 40)})", view.table(("class", "", "P"), classes, left=(0, 1))),
        view.fold("Left out, and why", view.table(("column", "why"), left, left=(0, 1))) if left else "",
        view.fold(f"graph and tables of {_short(graph.target)}", view.scrolled(graph.to_svg())),
    )


def _telling(model: Model, column: str) -> list[str]:
    """The value that says most for each of the first classes, and how many times likelier it is there."""
    from .odds import best_stretch, elsewhere

    if model.settings.weight_of(column) == 0 or len(model.classes) < 2:
        return []
    found, table = [], model.table(column)
    for i, label in enumerate(model.classes[:_MOST_TOLD]):
        best = best_stretch(model, column, i)
        if best is not None:
            found.append((label, best.value, best.ratio))
            continue
        if not table.title.startswith("P(") or not len(table.rows):
            continue
        inside, outside = table.values[:, i], elsewhere(table, np.exp(model.log_prior), i)
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(outside > 0, inside / outside, np.inf)
            says = np.nan_to_num(inside * np.minimum(np.log(ratio), 30.0), nan=0.0, neginf=0.0)
        at = int(np.argmax(says))
        if says[at] > 0:
            found.append((label, table.rows[at], float(ratio[at])))
    told = ((label, value, "∞" if np.isinf(ratio) else f"{ratio:.3g}") for label, value, ratio in found)
    return [f"{printable(label, 16)}: {printable(value, 24)} ×{times}" for label, value, times in told]
