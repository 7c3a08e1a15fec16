"""Cross-validation of anything that makes a model of rows: fitted anew on the training rows of every fold."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
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
from .evaluation import Evaluation

if TYPE_CHECKING:
    from ...explain.explanation import Explanation

Fitter = Callable[[Source], Model]  # training rows → a model


def by_refitting(source: Source, schema: Schema, fitter: Fitter, plan: Plan, repeats: int) -> Evaluation:
    """Every row forecast by a model that `fitter` makes of the training rows of its fold, whatever goes into that."""
    truth = Truth.of(source, schema, [])
    forecasts: list[Floats] = []
    prior = np.zeros((len(truth.rows), len(truth.names)))
    first_fold: Ints = np.zeros(0, dtype=np.int64)
    names: list[str] = []
    models: dict[int, Model] = {}
    for repeat, seed in enumerate(splits.repeated(plan.seed, repeats)):
        assign, fold_names = Plan(**{**vars(plan), "seed": seed}).assign(source, schema.target)
        fold = truth.folds(source, schema, assign)
        p = np.full((len(truth.rows), len(truth.names)), np.nan)
        numbers = np.unique(fold[fold >= 0]).tolist()
        for k in numbers[1:] if plan.order else numbers:
            inside = fold == k
            training = (fold >= 0) & (fold < k if plan.order else ~inside)
            if not training.any():
                raise DataError(
                    "all rows fall into one fold",
                    hint="a fold is scored by the other ones: ask for more folds, or shuffle with stratify=True.",
                )
            with warnings.catch_warnings():  # what the first look at the whole table said is not said again per fold
                warnings.filterwarnings("ignore", r"column .* is ignored", TallybayesWarning)
                model = fitter(some_rows(source, truth.mask(training)))
            at = truth.columns(model)
            p[inside] = 0.0
            p[np.ix_(inside, at)] = model.predict_proba(some_rows(source, truth.mask(inside)))
            if repeat == 0:
                models[k] = model
                prior[inside] = truth.shares(training)
        forecasts.append(p)
        if repeat == 0:
            first_fold, names = fold, fold_names
    kept = ~np.isnan(forecasts[0]).any(axis=1)
    rows = truth.rows[kept]

    def explain(name: str, at: int) -> Explanation:
        return models[int(first_fold[kept][at])].explain(one_row(source, int(rows[at])))

    how = f"{len(models)} folds" + (f" × {repeats}" if repeats > 1 else "")
    return Evaluation(
        truth.classes, ("fit",), rows, truth.labels[kept], None if truth.weights is None else truth.weights[kept],
        {"fit": [p[kept] for p in forecasts]}, prior[kept], first_fold[kept], names,
        f"{len(rows):,} rows, {len(truth.names)} classes, {how}, fitted anew on each", plan.seed, {}, explain,
    )  # fmt: skip


class Truth:
    """The labelled rows of a source: their numbers, classes and weights."""

    def __init__(self, names: list[str], label_type: str, rows: Ints, labels: Ints, weights: Any, total: int) -> None:
        self.names, self.rows, self.labels, self.weights, self.total = names, rows, labels, weights, total
        self.classes = tuple(canon.from_text(c, label_type) for c in names)

    @classmethod
    def of(cls, source: Source, schema: Schema, known: Sequence[str]) -> Truth:
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
        if len(rows) == 0:
            raise DataError("no row has a label", hint=f"give rows with a value in the target {schema.target!r}.")
        weighted = any(r.weights is not None for r, _ in pieces)
        weights = np.concatenate([r.weights for r, _ in pieces if r.weights is not None]) if weighted else None
        return cls(names, schema.label_type, rows, np.concatenate(labels), weights, start)

    def columns(self, model: Model) -> list[int]:
        """Where a model's classes stand among these."""
        return [self.names.index(str(canon.text(c))) for c in model.classes]

    def shares(self, some: Bools) -> Floats:
        """The share of each class in the weight of some rows."""
        n = np.bincount(self.labels[some], None if self.weights is None else self.weights[some], len(self.names))
        return np.asarray(n / n.sum(), dtype=np.float64)

    def mask(self, some: Bools) -> Bools:
        """Labelled rows as a mask over all rows of the source."""
        out = np.zeros(self.total, dtype=bool)
        out[self.rows[some]] = True
        return out

    def folds(self, source: Source, schema: Schema, assign: Assign) -> Ints:
        """The fold of each labelled row."""
        out, start = [], 0
        for batch in source.batches():
            out.append(assign(encode.labelled(schema, batch), start))
            start += batch.rows
        return np.concatenate(out)
