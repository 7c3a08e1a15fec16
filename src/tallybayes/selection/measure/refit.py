"""The one loop that fits anew: every row forecast by what a learner makes of the training rows of its fold.

Settings alone need no loop, since folds of a tally subtract (`folds`). Everything else goes through `refit`: the whole
of `tb.fit`, a fitter that a person brings, and the rivals of a comparison, all on the same rows in the same classes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base import canon
from ...base.arrays import Bools, Floats, Ints
from ...base.errors import DataError, TallybayesWarning
from ...data import encode
from ...data.schema import Schema
from ...data.sources import Source
from ...model.model import Model
from ...model.prior import natural_order
from .. import splits
from ..folds import Assign
from ..parts import Plan, one_row, some_rows
from ..settings_at_once import spread
from .evaluation import Evaluation

if TYPE_CHECKING:
    from ...explain.explanation import Explanation

Fitter = Callable[[Source], Model]  # training rows → a model


class Truth:
    """The labelled rows of a source: their numbers, classes and weights."""

    def __init__(self, names: list[str], label_type: str, rows: Ints, labels: Ints, weights: Any, total: int) -> None:
        self.names, self.rows, self.labels, self.weights, self.total = names, rows, labels, weights, total
        self.classes = tuple(canon.from_text(c, label_type) for c in names)

    @classmethod
    def of(cls, source: Source, schema: Schema, known: Sequence[str] = ()) -> Truth:
        """The labels of all rows; classes that `known` lacks come too."""
        labels_only = schema._with(columns=[])
        pieces, start = [], 0
        for batch in source.batches():
            read = encode.labelled(labels_only, batch)
            pieces.append((read, read.rows + start))
            start += batch.rows
        classes = {*known, *(c for read, _ in pieces for c in read.classes if len(read.labels))}
        names = sorted(classes, key=lambda c: natural_order(canon.from_text(c, schema.label_type)))
        number = {c: i for i, c in enumerate(names)}
        labels = [np.array([number[c] for c in r.classes] or [0], dtype=np.int64)[r.labels] for r, _ in pieces]
        rows = np.concatenate([rows for _, rows in pieces]) if pieces else np.zeros(0, dtype=np.int64)
        if start == 0:
            raise source.no_rows()
        if len(rows) == 0:
            raise DataError("no row has a label", hint=f"give rows with a value in the target {schema.target!r}.")
        weighted = any(r.weights is not None for r, _ in pieces)
        weights = np.concatenate([r.weights for r, _ in pieces if r.weights is not None]) if weighted else None
        return cls(names, schema.label_type, rows, np.concatenate(labels), weights, start)

    def forecast(self, model: Any, rows: Source) -> Floats:
        """P(class given row) of a model in these classes; 0 for a class that it does not know."""
        return self.in_order(model.predict_proba(rows), model.classes)

    def in_order(self, p: Floats, classes: Sequence[Any]) -> Floats:
        """Probabilities of some classes in the order of these."""
        return spread(p, [self.names.index(str(canon.text(c))) for c in classes], len(self.names))

    def shares(self, some: Bools) -> Floats:
        """The share of each class in the weight of some rows."""
        n = np.bincount(self.labels[some], None if self.weights is None else self.weights[some], len(self.names))
        return np.asarray(n / n.sum(), dtype=np.float64)

    def of_source(self, source: Source, some: Bools) -> Source:
        """The source with only some of the labelled rows."""
        kept = np.zeros(self.total, dtype=bool)
        kept[self.rows[some]] = True
        return some_rows(source, kept)

    def folds(self, source: Source, schema: Schema, assign: Assign) -> Ints:
        """The fold of each labelled row."""
        out, start = [], 0
        for batch in source.batches():
            out.append(assign(encode.labelled(schema, batch), start))
            start += batch.rows
        return np.concatenate(out)


@dataclass(frozen=True)
class Learner:
    """A way from training rows to something fitted, and from that to probabilities in the classes of all rows."""

    fit: Callable[[Source, Truth], Any]
    predict: Callable[[Any, Source, Truth], Floats]


@dataclass(frozen=True)
class Turn:
    """One learner at one fold, after its answer, for who wants to look at what was fitted."""

    learner: str
    fold: int
    fitted: Any
    training: Source
    asked: Source
    truth: Truth


def learner_of(fitter: Fitter) -> Learner:
    """Models as a learner makes them; what the first look at the whole table said is not said again per fold."""

    def fit(rows: Source, truth: Truth) -> Model:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", r"column .* is ignored", TallybayesWarning)
            return fitter(rows)

    return Learner(fit, lambda model, rows, truth: truth.forecast(model, rows))


def refit(
    source: Source,
    schema: Schema,
    learners: Mapping[str, Learner],
    plan: Plan,
    repeats: int = 1,
    watch: Callable[[Turn], None] | None = None,
) -> tuple[Evaluation, dict[str, Floats]]:
    """The forecasts of each learner for rows it was not fitted to, and its seconds per fold: fitting, predicting.

    `watch` is shown every turn of the first repetition.
    """
    truth = Truth.of(source, schema)
    plan, seeds = plan.suited(source, schema), splits.repeated(plan.seed, repeats)
    dealt = [replace(plan, seed=seed).assign(source, schema.target, schema) for seed in seeds]
    folds = [truth.folds(source, schema, assign) for assign, _ in dealt]
    shape = (len(truth.rows), len(truth.names))
    forecasts = {name: [np.zeros(shape) for _ in folds] for name in learners}
    seconds = {name: np.zeros(2) for name in learners}
    scored, prior, turns = np.zeros(shape[0], dtype=bool), np.zeros(shape), 0
    for repeat, fold in enumerate(folds):
        for k, inside, outside in _turns(fold, past=bool(plan.order)):
            turns += 1
            training, asked = truth.of_source(source, outside), truth.of_source(source, inside)
            if repeat == 0:
                scored |= inside
                prior[inside] = truth.shares(outside)
            for name, learner in learners.items():
                start = time.perf_counter()
                fitted = learner.fit(training, truth)
                middle = time.perf_counter()
                forecasts[name][repeat][inside] = learner.predict(fitted, asked, truth)
                seconds[name] += middle - start, time.perf_counter() - middle
                if repeat == 0 and watch is not None:
                    watch(Turn(name, k, fitted, training, asked, truth))
    evaluation = Evaluation(
        truth.classes,
        tuple(learners),
        truth.rows[scored],
        truth.labels[scored],
        None if truth.weights is None else truth.weights[scored],
        {name: [p[scored] for p in each] for name, each in forecasts.items()},
        prior[scored],
        folds[0][scored],
        dealt[0][1],
        f"{scored.sum():,} rows, {len(truth.names)} classes, {folds_said(folds[0][scored], repeats)}",
        plan.seed,
    )
    return evaluation, {name: s / max(turns, 1) for name, s in seconds.items()}


def _turns(fold: Ints, past: bool) -> Iterator[tuple[int, Bools, Bools]]:
    """Each fold that can be scored: its number, its rows, and those that it is scored by."""
    numbers = np.unique(fold[fold >= 0]).tolist()
    for k in numbers[1:] if past else numbers:
        inside = fold == k
        outside = (fold >= 0) & (fold < k if past else ~inside)
        if not outside.any():
            raise DataError(
                "all rows fall into one fold",
                hint="a fold is scored by the other ones: ask for more folds, or shuffle with stratify=True.",
            )
        yield k, inside, outside


def folds_said(folds: Ints, repeats: int) -> str:
    """How many folds there are, as a title says it."""
    return f"{len(np.unique(folds))} folds" + (f" × {repeats}" if repeats > 1 else "")


def explained(
    source: Source, rows: Ints, model_of: Callable[[str, int, Any], Model]
) -> Callable[[str, int], Explanation]:
    """What an evaluation explains its mistakes by: the model that gave the answer, by (setting, place, row)."""

    def explain(name: str, at: int) -> Explanation:
        row = one_row(source, int(rows[at]))
        return model_of(name, at, row).explain(row)

    return explain
