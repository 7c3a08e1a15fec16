"""The most telling values of a column: how many times likelier they are in one class than in the others."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import Floats, safe_log, weighted_quantiles
from ..base.canon import number_text, printable, text
from ..base.errors import SettingsError, unknown
from ..base.show import Page
from ..base.times import hours_text
from ..data.blocks import Codes, N, Numbers
from ..data.clock import told_by
from ..data.dates import PART_NAMES, as_in_calendar
from ..data.pairs import between_names
from ..families import Table
from ..families.bins import BINS, Bins, by_bin
from ..families.categorical import UNSEEN
from ..families.forms import PairForm, relative
from ..families.histogram import Histogram, histogram
from ..families.pair import TOGETHER_OR_APART
from ..families.smoothing import Dirichlet

if TYPE_CHECKING:
    from .model import Model

BY = ("ratio", "probability")  # what odds are sorted by
_NUMBER = re.compile(r"-?\d[\d.]*(e[-+]?\d+)?")
_ADDS = "adds to the score"
_STRETCHES = 10  # of a number, equally filled
_DIGITS = 4  # of a cut, where they tell the cuts apart
_QUANTILES = (0.0, 0.02, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.98, 1.0)


@dataclass(frozen=True)
class Odds:
    """One value: P(value given class), P(value given the others), and their ratio, which may be infinite."""

    value: str
    inside: float
    outside: float

    @property
    def ratio(self) -> float:
        """P(value given class) / P(value given the others)."""
        if self.outside == 0:
            return float("inf") if self.inside > 0 else 1.0
        return self.inside / self.outside


@dataclass(frozen=True)
class OddsTable:
    """Values by falling odds ratio for one class."""

    column: str
    label: Any
    against: str
    rows: tuple[Odds, ...]

    def __iter__(self) -> Iterator[Odds]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        title = f"{printable(self.column)}: times likelier in {printable(self.label)} than in {printable(self.against)}"
        lines = []
        for r in self.rows:
            ratio = "∞" if np.isinf(r.ratio) else f"{r.ratio:.4g}"
            lines.append([printable(r.value, 30), f"{ratio:>9}×", f" {r.inside:.3g} against {r.outside:.3g}"])
        return str(Page(title, lines, left=3, indent=2))


def elsewhere(table: Table, prior: Floats, label: int, against: int | None = None) -> Floats:
    """P(value) in the other classes, which count by their prior, or in the one named."""
    others = [i for i in range(len(prior)) if i != label] if against is None else [against]
    return np.asarray(table.values[:, others] @ (prior[others] / max(float(prior[others].sum()), 1e-300)))


def odds_table(
    column: str, table: Table, prior: Floats, label: int, against: int | None, top: int, least: float,
    by: str = BY[0],
) -> OddsTable:  # fmt: skip
    """The `top` values with the highest odds ratio; the others count by their prior unless one is named.

    Of equal ratios the more frequent value comes first. Values whose probability in the class is below `least` are
    left out, and so are bins and levels that no row is in.
    """
    inside = table.values[:, label]
    outside = elsewhere(table, prior, label, against) if len(prior) > 1 or against is not None else inside
    if by not in BY:
        raise unknown(SettingsError, f"by={by!r}", by, BY)
    each = zip(table.rows, inside.tolist(), outside.tolist(), strict=True)
    rows = [Odds(value, a, b) for value, a, b in each if a >= least and value not in table.empty]
    rows.sort(key=lambda r: (-r.ratio if by == BY[0] else 0.0, -r.inside, r.value))
    name = "the others" if against is None else str(table.classes[against])
    return OddsTable(column, table.classes[label], name, tuple(rows[:top]))


# ---- numbers, of which curves or blends say no probability: how many rows lie in a stretch of the line


def class_counts(model: Model, column: str, sheet: str, amounts: tuple[str, ...] = N) -> tuple[list[str], Floats]:
    """Slots and their counts in the order of the model's classes."""
    assert model.tally is not None
    found = model.tally.columns[column].sheet(sheet, amounts)
    table = found.table("n", len(model.tally.classes))
    at = {c: i for i, c in enumerate(model.tally.classes)}
    own = [at.get(str(text(c)), -1) for c in model.classes]
    return found.slot_names, np.hstack([table, np.zeros((len(table), 1))])[:, own]


def never_counted(model: Model, column: str, table: Table) -> tuple[str, ...]:
    """Declared values of a category that no row has and no prior knows."""
    if isinstance(model.settings.smoothing_of(column), Dirichlet):
        return ()
    slots, n = class_counts(model, column, "values")
    seen = {slot for slot, total in zip(slots, n.sum(axis=1).tolist(), strict=True) if total > 0} | {UNSEEN}
    return tuple(value for value in table.rows if value not in seen)


def counted_cells(model: Model, column: str) -> Histogram | None:
    """The counted cells of a number, by class; None for other columns, and where none were counted."""
    cells = model.schema[column].cells
    if cells is None or model.tally is None or "cells" not in model.tally.columns[column].sheets:
        return None
    return histogram(cells, *class_counts(model, column, "cells"))


def said(model: Model, column: str) -> Table | None:
    """What a number adds to the score of each class at quantiles of what was counted, 0 for the class it speaks for.

    Weight and corrections are in it: of a blend this is the one thing that is true of the whole.
    """
    found = counted_cells(model, column)
    if found is None or not len(found.middle):
        return None
    x = np.unique(weighted_quantiles(found.middle, found.n.sum(axis=1), _QUANTILES))
    parts = model.beliefs[column].parts(Numbers(x, found.cells))
    parts = model.settings.weights.get(column, 1.0) * relative(parts) + 0.0
    about = model.schema[column]
    told = told_by(about) or "{:.6g}".format
    at = [told(math.floor(v) if about.part == "days" else v) for v in x.tolist()]
    return Table("adds to the score at", at, parts, classes=model.classes)


def shown_table(model: Model, column: str) -> Table:
    """The table of a column that people read: of a number without a density of its own what it says along the line."""
    table = model.table(column)
    blend = model.schema[column].like == "number" and not model.beliefs[column].density
    return (said(model, column) if blend else None) or table


def said_of_values(model: Model, column: str) -> Table | None:
    """What each value of a category, or two of a pair, adds to the score of each class, where corrections are in it."""
    if column not in model.settings.corrections:
        return None
    belief, about = model.beliefs[column], model.schema[column]
    form = belief.form() if about.kind == "pair" else None
    if isinstance(form, PairForm):
        values = [" and ".join(both) for both in product(form.us, form.vs)]
        parts = form.logs.reshape(len(values), -1)
    elif about.like == "category":
        values = [value for value in model.table(column).rows if value != UNSEEN]
        parts = belief.parts(Codes(values, np.arange(len(values))))
    else:
        return None
    parts = model.settings.weights.get(column, 1.0) * relative(parts) + 0.0
    return Table(_ADDS, values, parts, classes=model.classes)


def order_of_many(table: Table) -> list[int]:
    """The rows of a long table: the most probable first; of what is added or said together, what tells most."""
    values, order = table.values, np.arange(len(table.rows))
    if table.title.startswith("P("):
        order = np.argsort(-values.max(axis=1), kind="stable")
    elif table.title in (_ADDS, TOGETHER_OR_APART):
        logs = safe_log(values) if table.title == TOGETHER_OR_APART else values
        order = np.argsort(-np.ptp(logs, axis=1), kind="stable")
    return list(order.tolist())


def dated(model: Model, column: str, table: Table) -> Table:
    """A table of bins of days with the dates at which they part, of hours with the times, of parts as they come."""
    part = model.schema[column].part
    if part in PART_NAMES and table.rows != (in_order := as_in_calendar(part, table.rows)):
        at = {row: i for i, row in enumerate(table.rows)}
        return replace(table, rows=in_order, values=table.values[[at[row] for row in in_order]])
    told = told_by(model.schema[column])
    if told is None or table.title != BINS:
        return table
    up = math.ceil if part == "days" else float
    return replace(table, rows=[_NUMBER.sub(lambda cut: told(up(float(cut[0]))), name) for name in table.rows])


def stretches(model: Model, column: str) -> tuple[Floats, Table] | None:
    """A number's line in equally filled stretches: where they part, and P(stretch given class), smoothed by one row."""
    found = counted_cells(model, column)
    if found is None:
        return None
    cuts = Bins("frequency", _STRETCHES).cuts(found)
    n = by_bin(found, cuts) + 1
    names = between_names(_written(model, column, cuts.tolist()))
    return cuts, Table("P(stretch given class)", names, n / n.sum(axis=0), "stretches", model.classes)


def best_stretch(model: Model, column: str, label: int) -> Odds | None:
    """The stretch of a number, of any length, that says most for a class by P·log odds."""
    found = stretches(model, column)
    if found is None or len(model.classes) < 2:
        return None
    cuts, table = found
    ends = np.concatenate(([-np.inf], cuts, [np.inf]))
    below = np.vstack([np.zeros((1, 2)), np.cumsum(_both(table, np.exp(model.log_prior), label), axis=0)])
    best, most = None, 0.0
    for i in range(len(cuts) + 1):
        for j in range(i + 1, len(cuts) + 2):
            inside, outside = (below[j] - below[i]).tolist()
            says = inside * float(np.log(inside / outside))
            if j - i <= len(cuts) and says > most:
                best, most = Odds(_between(model, column, ends[i], ends[j]), inside, outside), says
    return best


def _both(table: Table, prior: Floats, label: int) -> Floats:
    return np.stack([table.values[:, label], elsewhere(table, prior, label)], axis=1)


def _between(model: Model, column: str, low: float, high: float) -> str:
    inner = [e for e in (low, high) if np.isfinite(e)]
    return between_names(_written(model, column, inner))[1 if np.isfinite(low) else 0]


def _written(model: Model, column: str, cuts: Sequence[float]) -> list[str]:
    """Cuts as a person writes them: days as dates, hours as times."""
    told = told_by(model.schema[column])
    if told is None:
        short = [number_text(float(f"{c:.{_DIGITS}g}")) if abs(c) < 10**_DIGITS else number_text(c) for c in cuts]
        return short if len({*short}) == len(cuts) else [number_text(c) for c in cuts]
    if told is hours_text:
        minutes = [told(round(60 * c) / 60) for c in cuts]
        return minutes if len({*minutes}) == len(cuts) else [told(c) for c in cuts]
    return [told(math.ceil(c)) for c in cuts]
