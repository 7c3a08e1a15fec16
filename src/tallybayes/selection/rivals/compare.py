"""Rivals on the same folds: how good, how fast, and how much they have to keep."""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ...base.arrays import Floats
from ...base.canon import printable
from ...base.errors import SettingsError, unknown
from ...base.show import Page, Shown
from ...data.schema import Schema
from ...data.sources import Source
from ...families.settings import Settings
from ...model.model import Model
from ..measure.cross_validate import Fitter, Truth, opened, whole_fit
from ..measure.evaluation import Evaluation
from ..parts import Plan, some_rows
from .logistic_twin import Twin, twin_of
from .peers import peers
from .rivals import ExactMatch, Fitted, Majority, Nearest, Rival, Rows

OURS = "tallybayes"
TWIN = "logistic regression (twin)"
_SHOWN = ("accuracy", "log_loss", "calibration_error")


@dataclass(frozen=True)
class _Learner:
    """A way from training rows to a function from rows to probabilities in the order of the comparison's classes."""

    fit: Callable[[Source, Truth], Any]
    predict: Callable[[Any, Source, Truth], Floats]


def _ours(fitter: Fitter) -> _Learner:
    def answer(model: Model, rows: Source, truth: Truth) -> Floats:
        return _spread(model.predict_proba(rows), truth.columns(model), len(truth.names))

    return _Learner(lambda rows, truth: fitter(rows), answer)


def _twin(schema: Schema) -> _Learner:
    def answer(twin: Twin, rows: Source, truth: Truth) -> Floats:
        return _spread(twin.predict_proba(rows), truth.columns(twin.model), len(truth.names))

    return _Learner(lambda rows, truth: twin_of(rows, schema, Settings()), answer)


def _rival(schema: Schema, rival: Rival) -> _Learner:
    def learn(rows: Source, truth: Truth) -> Fitted:
        return rival(Rows.labelled(rows, schema, truth.names), schema, len(truth.names))

    def answer(fitted: Fitted, rows: Source, truth: Truth) -> Floats:
        return fitted.predict_proba(Rows.plain(rows, schema))

    return _Learner(learn, answer)


def _spread(p: Floats, at: Sequence[int], width: int) -> Floats:
    out = np.zeros((len(p), width))
    out[:, at] = p
    return out


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Classifiers on the same folds; `evaluation` has every metric, `.table` figures with time and memory."""

    evaluation: Evaluation
    fit_seconds: Mapping[str, float]  # per fold
    predict_seconds: Mapping[str, float]  # per fold
    peak_bytes: Mapping[str, int]  # while fitting and predicting the first fold
    twin: Twin | None = None  # of all rows: naive Bayes' weights beside those of logistic regression
    never_seen: float = float("nan")  # share of the rows that the exact-match counter had not seen

    @property
    def names(self) -> tuple[str, ...]:
        """Who took part."""
        return self.evaluation.names

    @cached_property
    def table(self) -> pa.Table:
        """A row per classifier: every metric with its interval, seconds per fold, and peak memory."""
        more = {
            "fit_seconds": [self.fit_seconds[n] for n in self.names],
            "predict_seconds": [self.predict_seconds[n] for n in self.names],
            "peak_megabytes": [self.peak_bytes[n] / 1e6 for n in self.names],
        }
        table = self.evaluation.table.rename_columns(
            ["classifier" if n == "setting" else n for n in self.evaluation.table.column_names]
        )
        for name, values in more.items():
            table = table.append_column(name, pa.array(values))
        return table

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        return self.table.to_pandas()

    def _page(self) -> Page:
        lines = [["", *(m.replace("_", " ") for m in _SHOWN), "fit s", "predict s", "peak MB"]]
        for name in sorted(self.names, key=lambda n: self.evaluation.figure("log_loss", n)[0]):
            figures = [self.evaluation.figure(m, name) for m in _SHOWN]
            lines.append(
                [
                    printable(name, 40),
                    *(f"{v:.4f} ({a:.3f}–{b:.3f})" for v, a, b in figures),
                    f"{self.fit_seconds[name]:.3f}",
                    f"{self.predict_seconds[name]:.3f}",
                    f"{self.peak_bytes[name] / 1e6:.1f}",
                ]
            )
        if self.never_seen == self.never_seen:
            lines.append([f"{self.never_seen:.1%} of the rows had no equal among the rows that the counter had seen"])
        return Page(self.evaluation.title, lines, left=1 + len(_SHOWN))


def compare(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    folds: int = 5,
    settings: Settings | None = None,
    rivals: Sequence[str] | Mapping[str, Rival] | None = None,
    stratify: bool = True,
    groups: str | None = None,
    by: str | None = None,
    seed: int = 0,
    weights: Any = None,
    memory: bool = True,
) -> Comparison:
    """naive Bayes beside its rivals, on the same folds, with seconds and memory.

    Rivals are the majority class, the exact-match counter, k nearest neighbours, logistic regression as the twin that
    starts from the model's own weights, and, where scikit-learn is installed, its naive Bayes classifiers and gradient
    boosting. `rivals` names some of them, or brings others: {name: function of (rows, schema, number of classes)}.
    Memory is that of Python objects and arrays, measured while fitting and predicting the first fold once more.
    """
    plan = Plan(folds, stratify and not (groups or by), groups, by, None, seed)
    source, schema, given = opened(data, target, y, weights, plan)
    truth = Truth.of(source, schema, [])
    fitter = whole_fit(schema if given else None, schema.target, schema.weights, plan, settings)
    bare = schema._with(columns=[c for c in schema.columns if c.of is None])  # two columns again are no new evidence
    all_learners = {OURS: _ours(fitter), **_learners(bare, rivals)}
    assign, names = plan.assign(source, schema.target)
    fold = truth.folds(source, schema, assign)
    numbers = np.unique(fold).tolist()
    if len(numbers) < 2:
        raise SettingsError("all rows fall into one fold", hint="ask for more folds, or take stratify=True.")
    forecasts = {n: [np.zeros((len(truth.rows), len(truth.names)))] for n in all_learners}
    spent = {n: np.zeros(2) for n in all_learners}
    peaks = dict.fromkeys(all_learners, 0)
    unseen: list[float] = []
    prior = np.zeros((len(truth.rows), len(truth.names)))
    for k in numbers:
        inside = fold == k
        training, asked = (some_rows(source, truth.mask(m)) for m in (~inside, inside))
        prior[inside] = truth.shares(~inside)
        for name, learner in all_learners.items():
            start = time.perf_counter()
            fitted = learner.fit(training, truth)
            middle = time.perf_counter()
            forecasts[name][0][inside] = learner.predict(fitted, asked, truth)
            spent[name] += middle - start, time.perf_counter() - middle
            if isinstance(fitted, ExactMatch):
                unseen.append(float(np.sum(~fitted.seen(Rows.plain(asked, bare)))))
            if memory and k == numbers[0]:
                peaks[name] = _peak(learner, training, asked, truth)
    title = f"{len(truth.rows):,} rows, {len(truth.names)} classes, {len(numbers)} folds, seconds per fold"
    evaluation = Evaluation(
        truth.classes,
        tuple(all_learners),
        truth.rows,
        truth.labels,
        truth.weights,
        forecasts,
        prior,
        fold,
        names,
        title,
        seed,
    )
    return Comparison(
        evaluation,
        {n: float(s[0]) / len(numbers) for n, s in spent.items()},
        {n: float(s[1]) / len(numbers) for n, s in spent.items()},
        peaks,
        twin_of(source, bare, Settings()) if TWIN in all_learners else None,
        sum(unseen) / len(truth.rows) if unseen else float("nan"),
    )


def _learners(schema: Schema, rivals: Sequence[str] | Mapping[str, Rival] | None) -> dict[str, _Learner]:
    known: dict[str, _Learner] = {
        "majority class": _rival(schema, Majority.fit),
        "exact-match counter": _rival(schema, ExactMatch.fit),
        "nearest neighbours": _rival(schema, Nearest.fit),
        TWIN: _twin(schema),
        **{name: _rival(schema, rival) for name, rival in peers(schema).items()},
    }
    if rivals is None:
        return known
    if isinstance(rivals, Mapping):
        return {name: _rival(schema, rival) for name, rival in rivals.items()}
    wrong = [n for n in rivals if n not in known and n != OURS]
    if wrong:
        raise unknown(SettingsError, f"there is no rival {wrong[0]!r}", wrong[0], known)
    return {n: known[n] for n in rivals if n in known}


def _peak(learner: _Learner, training: Source, asked: Source, truth: Truth) -> int:
    """The most memory that fitting and predicting took at once, beyond what was there before."""
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    try:
        learner.predict(learner.fit(training, truth), asked, truth)
        return max(tracemalloc.get_traced_memory()[1] - before, 0)
    finally:
        if not tracing:
            tracemalloc.stop()
