"""Models that are there already, on labelled rows: one by itself (`evaluate`), or several in pairs (`compare_models`).

The rows are read once for each model, by its own schema, and counted once more to see whether it has learnt from them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.special import bdtr

from ...base import canon
from ...base.arrays import Bools, Floats, Ints
from ...base.canon import many
from ...base.errors import DataError, SettingsError, excerpt, unknown
from ...base.show import Page, Shown
from ...data.sources import WEIGHTS, Batch, Source, open_source
from ...model.model import Model
from ...tally.overlap import ALL, NO_SIGN, NONE, Overlap, overlap
from ...tally.traces import weighted
from .bootstrap import Figures
from .evaluation import Evaluation
from .refit import Truth, explained

COMPARED = ("accuracy", "log_loss", "brier", "f1_macro", "roc_auc", "average_precision")


def evaluate(
    model: Model, data: Any, y: Any = None, *, target: str | None = None, weights: Any = None, intervals: bool = True,
    seed: int = 0,
) -> Evaluation:  # fmt: skip
    """How good a model's probabilities are on labelled rows, which should not be those that it has learnt from.

    `evaluation.learnt_from` says whether they are, as far as the counts tell. `target` names the column of the labels
    where the data call it otherwise than the model; `intervals=False` leaves out how sure the figures are. Rows without
    labels are a DataError.

    >>> import tallybayes as tb
    >>> model = tb.fit({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> tb.evaluate(model, {"Sky": ["sunny", "rainy", "rainy"], "Play": ["yes", "no", "yes"]})["accuracy"]
    0.6666666666666666
    """
    return _evaluated({"model": _checked(model)}, data, y, target, weights, seed, intervals)


def compare_models(
    models: Mapping[str, Model] | Sequence[Model], data: Any, y: Any = None, *, target: str | None = None,
    weights: Any = None, seed: int = 0,
) -> ModelComparison:  # fmt: skip
    """Models on the same labelled rows: figures, differences from the first with intervals, and where they disagree.

    Each model reads the rows by its own schema. A class that a model does not know has probability 0 there.

    >>> import tallybayes as tb
    >>> rows = {"Sky": ["sunny", "rainy"] * 4, "Wind": ["low", "high", "high", "low"] * 2, "Play": ["yes", "no"] * 4}
    >>> sky, wind = (tb.fit(rows, schema=tb.Schema([tb.Column(c, "category")], "Play")) for c in ("Sky", "Wind"))
    >>> tb.compare_models({"by sky": sky, "by wind": wind}, rows).mcnemar("by wind")
    (4, 0, 0.125)
    """
    named = dict(models) if isinstance(models, Mapping) else {f"model {i}": m for i, m in enumerate(models, 1)}
    if len(named) < 2:
        raise SettingsError(f"{many(len(named), 'model')} to compare", hint="give at least two; tb.evaluate asks one.")
    checked = {str(name): _checked(model) for name, model in named.items()}
    targets = dict.fromkeys(m.schema.target for m in checked.values())
    if len(targets) > 1 and target is None and y is None:
        raise SettingsError(
            f"the models predict {excerpt(targets)}", hint="name the column that holds the labels with target='…'."
        )
    return ModelComparison(_evaluated(checked, data, y, target, weights, seed, True), checked)


def _checked(model: Any) -> Model:
    model = getattr(model, "_model", model)  # what a sealed scorer asks
    if not isinstance(model, Model):
        raise SettingsError(
            f"a model of type {type(model).__name__}", hint="give a model, tb.load(path) if it is a file's."
        )
    return model


def _evaluated(
    models: Mapping[str, Model], data: Any, y: Any, target: str | None, weights: Any, seed: int, intervals: bool
) -> Evaluation:
    first = next(iter(models.values()))
    schema = first.schema if not isinstance(weights, str) else first.schema.with_weights(weights)
    beside = None if isinstance(weights, str) else weights
    called = schema.target if y is not None or target is None else target
    source = open_source(data, y, weights=beside, target=called).repeatable()
    source = _labels_as(source, called, schema.target)
    known = {str(canon.text(c)): None for m in models.values() for c in m.classes}
    truth = Truth.of(source, schema, list(known))
    asked = truth.of_source(source, np.ones(len(truth.rows), dtype=bool))
    forecasts = {name: [truth.forecast(m, asked)] for name, m in models.items()}
    learnt = {name: _learnt(m, source, schema.target) for name, m in models.items()}
    return Evaluation(
        truth.classes,
        tuple(models),
        truth.rows,
        truth.labels,
        truth.weights,
        forecasts,
        np.tile(truth.in_order(np.exp(first.log_prior)[None, :], first.classes), (len(truth.rows), 1)),
        title=_title(len(truth.rows), len(truth.classes), list(learnt.values())),
        seed=seed,
        settings={name: m.settings for name, m in models.items()},
        explain=explained(source, truth.rows, lambda name, at, row: models[name]),
        intervals=intervals,
        learnt=learnt,
    )


def _title(rows: int, classes: int, learnt: Sequence[Overlap]) -> str:
    """What the rows are, as far as that is known: held-out is only what no model has learnt from."""
    verdicts = {o.verdict for o in learnt}
    who, all_have = ("the model", "the model has") if len(learnt) == 1 else ("a model", "the models have")
    noun = "row" if rows == 1 else "rows"
    if verdicts == {NONE}:
        return f"{rows:,} held-out {noun}, {classes} classes"
    if verdicts == {ALL}:
        return f"{rows:,} {noun} that {all_have} learnt from, {classes} classes"
    clean = f": no sign that {who} has learnt from them" if verdicts <= {NONE, NO_SIGN} else ""
    return f"{rows:,} {noun}, {classes} classes{clean}"


def _learnt(model: Model, source: Source, target: str) -> Overlap:
    """Whether the model has learnt from the rows; weights given beside them count if it has learnt from weights."""
    tally = model.tally
    rows = _labels_as(source, target, model.schema.target)
    return overlap(tally, rows if tally is not None and weighted(tally) else _mapped(rows, _without_weights))


def _without_weights(batch: Batch) -> Batch:
    if WEIGHTS not in batch.columns:
        return batch
    return replace(batch, columns={n: c for n, c in batch.columns.items() if n != WEIGHTS})


def _labels_as(source: Source, column: str, name: str) -> Source:
    """The rows with a copy of their labels under the name that a model knows them by."""

    def labelled(batch: Batch) -> Batch:
        if column not in batch:
            found = f"there is no column {column!r}, which holds the labels"
            raise unknown(DataError, found, column, batch.names())
        return replace(batch, columns={**batch.columns, name: batch[column]})

    return source if column == name else _mapped(source, labelled)


def _mapped(source: Source, change: Any) -> Source:
    def read() -> Iterator[Batch]:
        return map(change, source.batches())

    return Source(read, source.once, name=source.name, home=source.home, rows=source.rows)


@dataclass(frozen=True, eq=False, repr=False)
class ModelComparison(Shown):
    """Models on the same rows: `evaluation` has every figure of each, `differences` those beside the first.

    >>> rows = {"Sky": ["sunny", "rainy"] * 4, "Play": ["yes", "no"] * 4}
    >>> sky, none = tb.textbook(rows, "Play"), tb.Model.written({"yes": 0.5, "no": 0.5}, target="Play")
    >>> found = tb.compare_models({"by sky": sky, "by nothing": none}, rows)
    >>> found.names, found.evaluation.best()
    (('by sky', 'by nothing'), 'by sky')
    """

    evaluation: Evaluation
    models: Mapping[str, Model]

    @property
    def names(self) -> tuple[str, ...]:
        """Who is compared; the first is the one that the others stand beside."""
        return self.evaluation.names

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader should know: classes that a model lacks, and rows that it has learnt from."""
        out = []
        for name, model in self.models.items():
            known = {str(canon.text(c)) for c in model.classes}
            lacks = [c for c in self.evaluation.classes if str(canon.text(c)) not in known]
            if lacks:
                out.append(f"{name} does not know {excerpt(lacks, 4)}: probability 0 there")
            seen = self.evaluation.learnt[name]
            if seen.verdict not in (NONE, NO_SIGN):
                out.append(f"{name}: {seen.says}")
        return tuple(out)

    def difference(self, metric: str, name: str, beside: str | None = None) -> tuple[float, float, float]:
        """(difference, lower, upper): the figure of a model less that of the first, with a 95 % interval, in pairs."""
        found, other = self.evaluation, beside or self.names[0]
        pair = Figures(found._scored(name), found._scored(other), seed=found.seed)
        figures: Figures = found._once(("pair", name, other), lambda: pair)
        out: tuple[float, float, float] = found._once(("pair", name, other, metric), lambda: figures.interval(metric))
        return out

    def mcnemar(self, name: str, beside: str | None = None) -> tuple[int, int, float]:
        """Rows on which only the first is right, on which only the other is, and the exact two-sided p of McNemar."""
        own, other = (self.evaluation._scored(n)[0].hit for n in (name, beside or self.names[0]))
        lost, won = int(np.sum((other == 1) & (own == 0))), int(np.sum((other == 0) & (own == 1)))
        p = 2 * float(bdtr(min(lost, won), lost + won, 0.5)) if lost + won else 1.0
        return lost, won, min(p, 1.0)

    @cached_property
    def differences(self) -> pa.Table:
        """A line per model and metric: the figure less that of the first, its interval, and McNemar's p."""
        lines = []
        for name in self.names[1:]:
            p = self.mcnemar(name)[2]
            for metric in COMPARED:
                value, low, high = self.difference(metric, name)
                line = {"model": name, "beside": self.names[0], "metric": metric, "difference": value, "low": low}
                lines.append({**line, "high": high, "mcnemar_p": p if metric == "accuracy" else None})
        return pa.Table.from_pylist(lines)

    @property
    def table(self) -> pa.Table:
        """A line per model: every metric with its interval."""
        found = self.evaluation.table
        return found.rename_columns(["model" if n == "setting" else n for n in found.column_names])

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        return self.table.to_pandas()

    @cached_property
    def _apart(self) -> tuple[Bools, Floats]:
        """Which rows get different answers, and how far apart probabilities are: the most of ½ Σ |p − q|."""
        tables = [self.evaluation._scored(n)[0] for n in self.names]
        first = tables[0]
        differ = np.any([first.predicted != s.predicted for s in tables[1:]], axis=0)
        return differ, np.max([0.5 * np.abs(first.p - s.p).sum(axis=1) for s in tables[1:]], axis=0)

    def disagreements(self, most: int | None = None) -> pa.Table:
        """The rows that get different answers, each answer with its probability and that of the truth.

        In the order of the rows; `most` gives so many of them, those first whose probabilities are furthest apart.
        """
        differ, apart = self._apart
        at: Ints = np.flatnonzero(differ)
        if most is not None:
            at = at[np.argsort(-apart[at], kind="stable")][:most]
        found = self.evaluation
        labels = [str(c) for c in found.classes]
        out: dict[str, Any] = {"row": found.rows[at], "is": [labels[i] for i in found.labels[at]]}
        for name in self.names:
            s = found._scored(name)[0]
            out[name] = [labels[i] for i in s.predicted[at]]
            out[f"{name}: probability"] = s.top[at]
            out[f"{name}: probability of the truth"] = s.of_truth[at]
        return pa.table(out)

    def _picture(self) -> str:
        return self.evaluation.spans("log_loss")

    def _page(self) -> Page:
        first, *others = self.names
        shown = [m for m in COMPARED if not np.isnan(self.evaluation.value(m, first))]
        lines = [["", *self.names, *(f"{name} − {first}" for name in others)]]
        for metric in shown:
            figures = [f"{self.evaluation.value(metric, n):.4f}" for n in self.names]
            ends = [self.difference(metric, n) for n in others]
            lines.append(
                [metric.replace("_", " "), *figures, *(f"{v:+.4f} ({a:+.4f} to {b:+.4f})" for v, a, b in ends)]
            )
        said = [*(self.mcnemar_said(name) for name in others), self.disagree_said(), *self.notes]
        return Page(self.evaluation.title, [*lines, *([line] for line in said)])

    def mcnemar_said(self, name: str) -> str:
        """Who is right alone, in words."""
        lost, won, p = self.mcnemar(name)
        told = "p < 0.0001" if p < 1e-4 else f"p = {p:.4f}"
        return f"{self.names[0]} alone is right on {many(lost, 'row')}, {name} alone on {won:,}: {told} (exact McNemar)"

    def disagree_said(self) -> str:
        """How many rows get different answers, in words."""
        return f"answers differ on {int(self._apart[0].sum()):,} of {many(len(self.evaluation.rows), 'row')}"
