"""A figure against something: the number of rows (`tb.learning_curve`), or a setting (`tb.validation_curve`).

Rows are counted once. For a learning curve each fold is cut into steps, and every (class, fold, step) is a tally of its
own: the training tally of a fold at a size is the sum of the first steps of the other folds, to the last bit what
counting those rows would have given. A validation curve asks the same training tallies under one setting after the
other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ...base.arrays import Floats, Ints
from ...base.canon import printable
from ...base.errors import SettingsError, in_our_words, unknown
from ...base.renamed import renamed
from ...base.show import Page, Shown
from ...data.guess import Reading
from ...data.schema import Schema
from ...families import Bins, Family, Kernel, Selection, default_family, family_for
from ...families.settings import Settings, SettingsLike
from ...families.smoothing import Laplace
from ..folds import Folds, HeldOut, count_folds
from ..parts import Plan, by_content, by_position
from . import bootstrap
from .cross_validate import opened
from .metrics import SMALLER_IS_BETTER, Scored, formula

if TYPE_CHECKING:
    from ...explain.plots import FigureCurveDisplay

SHOWN = ("log_loss", "accuracy")
SIZES = (0.02, 0.05, 0.1, 0.2, 0.4, 0.7, 1.0)


@dataclass(frozen=True, repr=False)
class FigureCurve(Shown):
    """Figures at each of some values: on rows held out, with a 95 % interval, and on the rows that were counted.

    A figure that is good on counted rows and bad on others is what overfitting looks like; both bad, underfitting.

    >>> rows = {"x": ["a", "a", "b", "b", "c"] * 20, "y": ["low", "low", "high", "high"] * 25}
    >>> curve = tb.validation_curve(rows, "y", over="alpha", values=(0.1, 1, 100))
    >>> curve.values, curve.table.num_rows
    ((0.1, 1, 100), 3)
    """

    title: str
    over: str  # what the values are of
    values: tuple[Any, ...]
    rows: Floats  # counted behind each, on average over the folds
    held_out: Mapping[str, Floats]  # metric → values × (figure, lower, upper)
    counted: Mapping[str, Floats]  # metric → a figure for each value

    def best(self, metric: str = "log_loss") -> Any:
        """The value with the best held-out figure; of equals the first."""
        found = self._of(metric)[:, 0]
        return self.values[int(np.argmin(found) if metric in SMALLER_IS_BETTER else np.argmax(found))]

    def _of(self, metric: str) -> Floats:
        if metric not in self.held_out:
            raise unknown(SettingsError, f"the curve has no figure {metric!r}", metric, self.held_out)
        return self.held_out[metric]

    @property
    def table(self) -> pa.Table:
        """A row per value: each figure on held-out rows, its interval, and on counted rows."""
        out: dict[str, Any] = {self.over: list(self.values), "rows counted": self.rows}
        for metric, found in self.held_out.items():
            out |= {metric + end: found[:, i] for i, end in enumerate(("", "_low", "_high"))}
            out[f"{metric}_counted"] = self.counted[metric]
        return pa.table(out)

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        return self.table.to_pandas()

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain lists."""
        out: dict[str, Any] = {"title": self.title, "over": self.over, **self.table.to_pydict()}
        return out

    def plot(self, metric: str = "log_loss", ax: Any = None) -> FigureCurveDisplay:
        """The figure on held-out rows, with its interval, and on counted rows, against the values."""
        from ...explain.plots import FigureCurveDisplay

        found = self._of(metric)
        return FigureCurveDisplay(self.over, self.values, metric, found, self.counted[metric]).plot(ax)

    def _page(self) -> Page:
        head = [
            self.over,
            *(f"{m} {where}".replace("_", " ") for m in self.held_out for where in ("held out", "counted")),
        ]
        lines = [head]
        for i, value in enumerate(self.values):
            cells = []
            for metric, found in self.held_out.items():
                figure, low, high = found[i]
                cells += [f"{figure:.4f} ({low:.3f}–{high:.3f})", f"{self.counted[metric][i]:.4f}"]
            said = (
                f"{value:,g}"
                if isinstance(value, (int, float)) and not isinstance(value, bool)
                else printable(value, 40)
            )
            lines.append([said, *cells])
        return Page(self.title, lines)


@renamed(figures="metrics")
def learning_curve(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    schema: Schema | None = None,
    kinds: Mapping[str, str] | None = None,
    settings: SettingsLike = None,
    weights: Any = None,
    sizes: Sequence[float] = SIZES,
    folds: int = 5,
    groups: str | None = None,
    seed: int = 0,
    metrics: Sequence[str] = SHOWN,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> FigureCurve:
    """How figures change with the number of rows: would more rows help?

    `sizes` are shares of the training rows, or numbers of rows. Larger sizes have the rows of smaller ones and more;
    each class has its share of them. Whatever the sizes, every row is counted once.

    >>> import tallybayes as tb
    >>> table = {"x": [1.0, 2.0, 9.0, 8.0, 5.0] * 20, "y": ["low", "low", "high", "high"] * 25}
    >>> tb.learning_curve(table, "y", sizes=(10, 40, 80)).values
    (10, 40, 80)
    """
    metrics = _known(metrics)
    plan = Plan(folds, groups is None, groups, None, None, seed)
    stated, reading = Settings.of(settings), Reading.of(missing, strict, date_format, fold, kinds)
    source, schema, _ = opened(data, target, y, weights, plan, schema, reading)
    at, _ = plan.numbers(source, schema.target, schema)
    shares = _shares(sizes, int((at >= 0).sum()), int(at.max(initial=0)) + 1)
    labels, keys = by_content(source, schema, seed + 1)
    step = _steps(at, labels, shares, np.lexsort(keys))
    n = len(shares)
    cells = count_folds(source, schema, by_position(np.where(at >= 0, at * n + step, -1)))
    base = Settings.of(stated, schema)
    found = [_figures(cells.counting(np.arange(n) <= i), [base])[0] for i in range(n)]
    rows = [_rows_counted(cells.counting(np.arange(n) <= i)) for i in range(n)]
    values = tuple(round(r) for r in rows)
    title = f"{int((at >= 0).sum()):,} rows, {int(at.max()) + 1} folds: figures by how many rows were counted"
    return _curve(title, "rows", values, rows, found, metrics)


def _known(metrics: Sequence[str] | str) -> Sequence[str]:
    """The names of figures, one or several; refused if there are none such."""
    names = [metrics] if isinstance(metrics, str) else metrics
    for name in names:
        formula(name)
    return names


def _shares(sizes: Sequence[float], rows: int, folds: int) -> Floats:
    """Sizes as shares of the training rows, from the smallest."""
    with in_our_words(SettingsError, f"sizes={sizes!r}", hint="give shares above 0 up to 1, or numbers of rows."):
        given = np.atleast_1d(np.asarray(sizes, dtype=np.float64))
    share = np.where(given > 1, given / max(rows * (folds - 1) / folds, 1.0), given)
    if given.ndim != 1 or not len(given) or not ((share > 0) & (share <= 1 + 1e-9)).all():
        raise SettingsError(
            f"sizes={given.tolist()!r} of {rows * (folds - 1) // folds:,} training rows",
            hint="give shares above 0 up to 1, or numbers of rows up to that.",
        )
    return np.unique(np.minimum(share, 1.0))


def _steps(fold: Ints, labels: Ints, shares: Floats, order: Ints) -> Ints:
    """The step in which each row of a fold is counted: in this order, but so that classes keep their shares.

    What is beyond the largest share is in a step that no curve reaches.
    """
    out, dealt = np.zeros(len(fold), dtype=np.int64), 0
    for k in range(int(fold.max()) + 1):
        rows = order[fold[order] == k]
        at = np.empty(len(rows))
        for label in np.unique(labels[rows]):
            own = labels[rows] == label
            at[own] = (np.arange(own.sum()) + 0.5) / own.sum()
        place = np.empty(len(rows), dtype=np.int64)
        place[np.argsort(at, kind="stable")] = np.arange(len(rows))
        before, dealt = dealt, dealt + len(rows)  # rounded over all folds, so that their sum is the size asked for
        ends = np.maximum(np.rint(shares * dealt) - np.rint(shares * before), 1)
        out[rows] = np.searchsorted(ends, place, side="right")
    return out


def _rows_counted(folds: Folds) -> float:
    weights = [float(folds.training_labels(k).class_weights().sum()) for k in folds.scored()]
    return float(np.mean(weights))


Change = Callable[[Settings, Schema, str | None, Any], Settings]


def _alpha(base: Settings, schema: Schema, column: str | None, value: Any) -> Settings:
    if column is None:
        return replace(base, smoothing=Laplace(float(value)))
    own = base.smoothing if isinstance(base.smoothing, Mapping) else dict.fromkeys(schema.names, base.smoothing)
    return replace(base, smoothing={**own, column: Laplace(float(value))})


def _families(what: str, kind: str, make: Callable[[Family, Any], Family]) -> Change:
    """A change of the families of the columns of a kind."""

    def change(base: Settings, schema: Schema, column: str | None, value: Any) -> Settings:
        there = [c for c in schema.counted if (c.about.words if kind == "words" else c.like == kind)]
        if column is not None:
            there = [c for c in there if c.name == schema[column].name]
        if not there:
            where = "no column" if column is None else f"column {column!r}"
            has = f"{where} that has {what}" if column is None else f"{where} has no {what}"
            raise SettingsError(has, hint=f"give data with a column of {kind if kind == 'words' else kind + 's'}.")
        now = {c.name: family_for(base.families.get(c.name, default_family(c.kind)), c.kind) for c in there}
        return replace(base, families={**base.families, **{n: make(f, value) for n, f in now.items()}})

    return change


def _of_words(family: Family, top: Any) -> Family:
    return replace(family, select=replace(getattr(family, "select", Selection()), top=int(top)))  # type: ignore[type-var]


OVER: dict[str, tuple[tuple[float, ...], Change]] = {
    "alpha": ((0.001, 0.01, 0.1, 0.3, 1.0, 3.0, 10.0, 100.0), _alpha),
    "bandwidth": ((0.03, 0.1, 0.3, 1.0, 3.0), _families("a bandwidth", "number", lambda f, v: Kernel(float(v)))),
    "bins": ((2, 3, 5, 10, 20, 50), _families("bins", "number", lambda f, v: Bins("frequency", int(v)))),
    "words": ((10, 30, 100, 300, 1_000, 3_000), _families("words", "words", _of_words)),
}


@renamed(figures="metrics")
def validation_curve(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    schema: Schema | None = None,
    kinds: Mapping[str, str] | None = None,
    settings: SettingsLike = None,
    weights: Any = None,
    over: str = "alpha",
    values: Sequence[Any] | Mapping[Any, Any] | None = None,
    column: str | None = None,
    folds: int = 5,
    groups: str | None = None,
    seed: int = 0,
    metrics: Sequence[str] = SHOWN,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> FigureCurve:
    """How figures change with one setting: `over` is "alpha" (Laplace's), "bandwidth" (of kernels, in the column's
    units), "bins" (equally frequent ones) or "words" (the so many most telling).

    `column` changes it in one column only. For any other setting give {value: settings} as `values`, and its name as
    `over`. The value that is best here was chosen for being so: report its figure on rows kept apart (`tb.split`).

    >>> import tallybayes as tb
    >>> table = {"x": ["a", "a", "b", "b", "c"] * 20, "y": ["low", "low", "high", "high"] * 24 + ["low"] * 4}
    >>> tb.validation_curve(table, "y", values=(1, 100)).values
    (1, 100)
    """
    metrics = _known(metrics)
    plan = Plan(folds, groups is None, groups, None, None, seed)
    stated, reading = Settings.of(settings), Reading.of(missing, strict, date_format, fold, kinds)
    source, schema, _ = opened(data, target, y, weights, plan, schema, reading)
    named = _asked(schema, over, values, column, stated)
    if not named:
        raise SettingsError("no values to try", hint="give values=(0.1, 1, 10).")
    assign, _ = plan.assign(source, schema.target, schema)
    counted = count_folds(source, schema, assign)
    found = _figures(counted, list(named.values()))
    title = f"{len(found[0][0].labels):,} rows, {len(counted.scored())} folds: figures by {over}"
    return _curve(title, over, tuple(named), [_rows_counted(counted)] * len(named), found, metrics)


def _asked(schema: Schema, over: str, values: Any, column: str | None, settings: SettingsLike) -> dict[Any, Settings]:
    """The settings to try, by value."""
    if isinstance(values, Mapping):
        return {value: Settings.of(each, schema) for value, each in values.items()}
    if over not in OVER:
        hint = f"take {', '.join(map(repr, OVER))}, or give {{value: settings}} as values."
        raise unknown(SettingsError, f"over={over!r}", over, OVER, hint)
    usual, change = OVER[over]
    base = Settings.of(settings, schema)
    if column is not None:
        schema[column]  # a name that it does not have is refused here
    out = {}
    for value in usual if values is None else values:
        with in_our_words(SettingsError, f"{over} cannot be {value!r}", hint=f"give numbers: values={usual[:3]}."):
            out[value] = change(base, schema, column, value)
    return out


Figures = tuple[Scored, Scored]  # of held-out rows, of counted rows


def _figures(folds: Folds, settings: Sequence[Settings]) -> list[Figures]:
    """What held-out rows and counted rows are forecast under each setting."""
    out, own = (folds.held_out_each(settings, seen=seen) for seen in (False, True))
    return [(_scored(a), _scored(b)) for a, b in zip(out, own, strict=True)]


def _scored(held: HeldOut) -> Scored:
    return Scored.of(held.labels, np.minimum(held.proba(), 1.0), held.weights)


def _curve(
    title: str, over: str, values: tuple[Any, ...], rows: Sequence[float], found: Sequence[Figures],
    figures: Sequence[str],
) -> FigureCurve:  # fmt: skip
    held_out, counted = {}, {}
    for metric in figures:
        f = formula(metric)
        held_out[metric] = np.array([bootstrap.Figures([s]).interval(metric) for s, _ in found])
        counted[metric] = np.array([float(f(own, own.weights[None, :])[0]) for _, own in found])
    return FigureCurve(title, over, values, np.asarray(rows, dtype=np.float64), held_out, counted)
