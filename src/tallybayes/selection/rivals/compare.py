"""Rivals on the same folds: how good, how fast, and how much they have to keep."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from ...base.arrays import Floats
from ...base.canon import printable
from ...base.errors import SettingsError, unknown
from ...base.show import Page, Shown
from ...data.guess import Reading
from ...data.schema import Schema
from ...data.sources import Source
from ...families.settings import Settings, SettingsLike
from ..measure.cross_validate import opened, whole_fit
from ..measure.evaluation import Evaluation
from ..measure.neighbours import tell_of_neighbours
from ..measure.refit import Learner, Truth, Turn, learner_of, refit
from ..parts import Plan
from .logistic_twin import LogisticTwin, twin_of
from .nearest import RIVAL, Nearest
from .peers import peers
from .rivals import ExactMatch, Fitted, Majority, Rival, Rows

OURS = "tallybayes"
TWIN = "logistic regression (twin)"
_SHOWN = ("accuracy", "log_loss", "calibration_error")


def _twin(schema: Schema) -> Learner:
    def answer(twin: LogisticTwin, rows: Source, truth: Truth) -> Floats:
        return truth.forecast(twin, rows)

    return Learner(lambda rows, truth: twin_of(rows, schema, Settings()), answer)


def _rival(schema: Schema, rival: Rival) -> Learner:
    def learn(rows: Source, truth: Truth) -> Fitted:
        return rival(Rows.labelled(rows, schema, truth.names), schema, len(truth.names))

    def answer(fitted: Fitted, rows: Source, truth: Truth) -> Floats:
        return fitted.predict_proba(Rows.plain(rows, schema))

    return Learner(learn, answer)


@dataclass(frozen=True, eq=False, repr=False)
class Comparison(Shown):
    """Classifiers on the same folds; `evaluation` has every metric, `.table` figures with time and memory.

    >>> rows = {"x": [1.0, 2.0, 9.0, 8.0] * 10, "y": ["low", "low", "high", "high"] * 10}
    >>> three = {"three nearest": tb.Nearest(k=3)}
    >>> found = tb.compare(rows, "y", settings={"families": "gaussian"}, rivals=three, memory=False)
    >>> found.evaluation.value("accuracy", "three nearest")
    1.0
    """

    evaluation: Evaluation
    fit_seconds: Mapping[str, float]  # per fold
    predict_seconds: Mapping[str, float]  # per fold
    peak_bytes: Mapping[str, int]  # while fitting and predicting the first fold
    twin: LogisticTwin | None = None  # of all rows: naive Bayes' weights beside those of logistic regression
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

    def _picture(self) -> str:
        return self.evaluation.spans("log_loss")

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
    schema: Schema | None = None,
    kinds: Mapping[str, str] | None = None,
    settings: SettingsLike = None,
    weights: Any = None,
    rivals: Sequence[str] | Mapping[str, Rival] | None = None,
    folds: int = 5,
    stratify: bool = True,
    groups: str | None = None,
    by: str | None = None,
    seed: int = 0,
    memory: bool = True,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> Comparison:
    """Naive Bayes beside its rivals, on the same folds, with seconds and memory.

    Rivals are the majority class, the exact-match counter, k nearest neighbours, logistic regression as the twin that
    starts from the model's own weights, and, where scikit-learn is installed, its naive Bayes classifiers and gradient
    boosting. `rivals` names some of them, or brings others: {name: function of (rows, schema, number of classes)}.
    Memory is that of Python objects and arrays, measured while fitting and predicting the first fold once more.

    >>> rows = {"x": [1.0, 2.0, 9.0, 8.0] * 10, "y": ["low", "low", "high", "high"] * 10}
    >>> settings = {"families": "gaussian"}
    >>> tb.compare(rows, "y", settings=settings, rivals=["majority class"], memory=False).names
    ('tallybayes', 'majority class')
    """
    plan = Plan(folds, stratify and not (groups or by), groups, by, None, seed)
    stated = None if settings is None else Settings.of(settings)
    reading = Reading.of(missing, strict, date_format, fold, kinds)
    source, schema, given = opened(data, target, y, weights, plan, schema, reading)
    tell_of_neighbours(source, schema, plan)
    fitter = whole_fit(schema if given else None, schema.target, schema.weights, plan, stated, reading)
    bare = schema._with(columns=[c for c in schema.columns if c.of is None])  # two columns again are no evidence
    learners = {OURS: learner_of(fitter), **_learners(bare, rivals)}
    peaks: dict[str, int] = {}
    unseen: list[int] = []

    def watch(turn: Turn) -> None:
        if isinstance(turn.fitted, ExactMatch):
            unseen.append(int(np.sum(~turn.fitted.seen(Rows.plain(turn.asked, bare)))))
        if turn.learner not in peaks:  # the first fold
            peaks[turn.learner] = _peak(learners[turn.learner], turn) if memory else 0

    evaluation, spent = refit(source, schema, learners, plan, watch=watch)
    return Comparison(
        replace(evaluation, title=f"{evaluation.title}, seconds per fold"),
        {name: float(s[0]) for name, s in spent.items()},
        {name: float(s[1]) for name, s in spent.items()},
        peaks,
        twin_of(source, bare, Settings()) if TWIN in learners else None,
        sum(unseen) / len(evaluation.rows) if unseen else float("nan"),
    )


def _learners(schema: Schema, rivals: Sequence[str] | Mapping[str, Rival] | None) -> dict[str, Learner]:
    known: dict[str, Learner] = {
        "majority class": _rival(schema, Majority.fit),
        "exact-match counter": _rival(schema, ExactMatch.fit),
        "nearest neighbours": _rival(schema, Nearest(RIVAL, imagined=1.0)),
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


def _peak(learner: Learner, turn: Turn) -> int:
    """The most memory that fitting and predicting took at once, beyond what was there before."""
    tracing = tracemalloc.is_tracing()
    if not tracing:
        tracemalloc.start()
    before = tracemalloc.get_traced_memory()[0]
    tracemalloc.reset_peak()
    try:
        learner.predict(learner.fit(turn.training, turn.truth), turn.asked, turn.truth)
        return max(tracemalloc.get_traced_memory()[1] - before, 0)
    finally:
        if not tracing:
            tracemalloc.stop()
