"""Evaluate: a model on rows it has not seen, or settings and whole fits by cross-validation.

Cross-validation of anything that makes a model of rows: fitted anew on the training rows of every fold.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base import canon
from ...base.arrays import Bools, Floats, Ints
from ...base.errors import DataError, SettingsError, TallybayesWarning, excerpt, warn
from ...data import encode
from ...data.infer import infer, labels_or_name
from ...data.schema import Schema
from ...data.sources import LABELS, Source, open_source
from ...families.settings import Settings
from ...model.model import Model
from ...model.prior import natural_order
from ...tally.tally import Tally
from .. import splits
from ..choose.fit import fit
from ..folds import Assign, Folds, HeldOut, count_folds
from ..leave_one_out import leave_one_out
from ..parts import Plan, one_row, some_rows, without_columns
from .evaluation import Evaluation

if TYPE_CHECKING:
    from ...explain.explanation import Explanation


LEAVE_ONE_OUT = "leave-one-out"


def evaluate(model: Model, data: Any, y: Any = None, *, weights: Any = None, seed: int = 0) -> Evaluation:
    """How good a model's probabilities are on labelled rows, which should not be those it was fitted to.

    >>> import tallybayes as tb
    >>> model = tb.fit({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> evaluate(model, {"Sky": ["sunny", "rainy", "rainy"], "Play": ["yes", "no", "yes"]})["accuracy"]
    0.6666666666666666
    """
    if not hasattr(model, "predict_proba"):
        raise SettingsError(
            f"a model of type {type(model).__name__}", hint="give the model first, tb.load(path) if it is a file's."
        )
    schema = model.schema if not isinstance(weights, str) else model.schema.with_weights(weights)
    beside = None if isinstance(weights, str) else weights
    source = open_source(data, y, weights=beside, target=schema.target).repeatable()
    truth = Truth.of(source, schema, [str(canon.text(c)) for c in model.classes])
    p = np.zeros((len(truth.rows), len(truth.names)))
    kept = np.zeros(truth.total, dtype=bool)
    kept[truth.rows] = True
    p[:, truth.columns(model)] = model.predict_proba(some_rows(source, kept))
    prior = np.zeros(len(truth.names))
    prior[truth.columns(model)] = np.exp(model.log_prior)

    def explain(name: str, at: int) -> Explanation:
        return model.explain(one_row(source, int(truth.rows[at])))

    return Evaluation(
        truth.classes,
        ("model",),
        truth.rows,
        truth.labels,
        truth.weights,
        {"model": [p]},
        np.tile(prior, (len(p), 1)),
        title=f"{len(p):,} held-out rows, {len(truth.classes)} classes",
        seed=seed,
        settings={"model": model.settings},
        explain=explain,
    )


def cross_validate(
    data: Any,
    schema: Schema | Any = None,
    y: Any = None,
    *,
    folds: int | str = 10,
    settings: Settings | Sequence[Settings] | Mapping[str, Settings] | None = None,
    repeats: int = 1,
    stratify: bool = False,
    groups: str | None = None,
    by: str | None = None,
    order: str | bool | None = None,
    seed: int = 0,
    weights: Any = None,
    fitter: Fitter | None = None,
) -> Evaluation:
    """Every row forecast once by a model of the other folds: one line of figures per setting.

    `schema` is a schema or the target's name. With `settings` every row is counted once and each fold is scored by
    total − fold. Without them the whole of `tb.fit` is tried: inferred, fitted and chosen anew on the training rows of
    each fold (or `fitter`, any function from training rows to a model).

    Folds are a hash of the row unless said otherwise, so that equal rows stay together; `stratify` shares out each
    class; `groups` names a column whose equal values stay together, `by` one whose values are the folds; `order` a
    column of times (True: the rows' order), and each stretch is then forecast by the stretches before it.
    `folds="leave-one-out"` takes each row out of the tally by itself.

    >>> import tallybayes as tb
    >>> table = {"x": [1.0, 2.0, 9.0, 8.0] * 10, "y": ["low", "low", "high", "high"] * 10}
    >>> tb.cross_validate(table, "y", settings=tb.Settings(), stratify=True)["accuracy"]
    1.0
    """
    if isinstance(folds, bool) or not (isinstance(folds, (int, np.integer)) or folds == LEAVE_ONE_OUT):
        raise SettingsError(f"folds={folds!r}", hint=f"take a whole number of at least 2, or {LEAVE_ONE_OUT!r}.")
    if repeats > 1 and (by is not None or order or folds == LEAVE_ONE_OUT):
        what = "leaving out each row" if folds == LEAVE_ONE_OUT else "folds by a column" if by is not None else "time"
        raise SettingsError(
            f"{repeats} repeats of {what}, which are all the same", hint="leave out repeats=, or take seeded folds."
        )
    plan = Plan(10 if isinstance(folds, str) else int(folds), stratify, groups, by, order, seed)
    source, schema, given = opened(data, schema, y, weights, plan)
    if settings is not None:
        named = _named(settings)
        if folds == LEAVE_ONE_OUT:
            return _left_out(source, schema, named, seed)
        return _by_subtraction(source, schema, named, plan, repeats)
    if folds == LEAVE_ONE_OUT:
        raise SettingsError(
            "leaving out each row by itself needs settings", hint="give settings=tb.Settings(…), or folds=10."
        )
    if fitter is None:
        fitter = whole_fit(schema if given else None, schema.target, schema.weights, plan)
    return by_refitting(source, schema, fitter, plan, repeats)


def whole_fit(
    schema: Schema | None, target: str, weights: str | None, plan: Plan, settings: Settings | None = None
) -> Fitter:
    """`tb.fit` as a function of training rows: with this schema, or inferring one that ignores what decides folds."""

    def fitted(rows: Source) -> Model:
        if schema is not None:
            return fit(rows, schema=schema, settings=settings)
        return fit(without_columns(rows, plan.columns), target, weights=weights, settings=settings)

    return fitted


def opened(data: Any, schema: Any, y: Any, weights: Any, plan: Plan) -> tuple[Source, Schema, bool]:
    """The data to be read, the schema, and whether it was given."""
    if isinstance(schema, Schema):
        target, given = schema.target, True
    else:
        name, y = labels_or_name(schema, y)
        target, given = name or LABELS, False
    if target in plan.columns:
        raise SettingsError(
            f"folds by {target!r}, which is the column to predict",
            hint="name another column; stratify=True gives every fold its share of every class.",
        )
    column = weights if isinstance(weights, str) else None
    source = open_source(data, y, weights=None if column else weights, target=target).repeatable()
    if not given:
        schema = infer(without_columns(source, plan.columns), target=target, weights=column)
    elif column is not None:
        schema = schema.with_weights(column)
    for name in plan.columns:
        if any(c.reads == name and c.kind != "ignore" for c in schema.columns):
            schema = schema.with_column(name, kind="ignore", reason="decides about folds")
    return source, schema, given


def _named(settings: Settings | Sequence[Settings] | Mapping[str, Settings]) -> dict[str, Settings]:
    """Settings by name: the given one, or what tells them apart."""
    if isinstance(settings, Settings):
        return {"settings": settings}
    each = list(settings.values() if isinstance(settings, Mapping) else settings)
    wrong = [s for s in each if not isinstance(s, Settings)]
    if wrong or not each:
        raise SettingsError(
            f"settings={wrong[0]!r}" if wrong else "no settings to evaluate",
            hint="give tb.Settings(…), a list of them, or {name: tb.Settings(…)}.",
        )
    if isinstance(settings, Mapping):
        return {str(k): v for k, v in settings.items()}
    differ = [f.name for f in fields(Settings) if any(getattr(s, f.name) != getattr(each[0], f.name) for s in each)]
    texts = [", ".join(f"{n}={_plain(getattr(s, n))}" for n in differ) or "settings" for s in each]
    return {t if texts.count(t) == 1 else f"{t} #{i}": s for i, (t, s) in enumerate(zip(texts, each, strict=True))}


def _plain(value: Any) -> str:
    """A setting as a person would write it: NumPy's numbers without the word float64."""
    return re.sub(r"np\.\w+\(([^()]*)\)", r"\1", repr(value))


def _by_subtraction(source: Source, schema: Schema, named: dict[str, Settings], plan: Plan, repeats: int) -> Evaluation:
    found: list[list[HeldOut]] = []
    first: Folds | None = None
    names: list[str] = []
    for seed in splits.repeated(plan.seed, repeats):
        assign, fold_names = Plan(**{**vars(plan), "seed": seed}).assign(source, schema.target)
        folded = count_folds(source, schema, assign, past=bool(plan.order))
        if first is None:
            first, names = folded, fold_names
            _warn_of_classes_in_one_fold(folded)
        found.append(folded.held_out_each(list(named.values())))
    assert first is not None
    held = found[0][0]
    keeper = first

    def explain(name: str, at: int) -> Explanation:
        model = keeper.training(int(held.folds[at])).model(named[name])
        return model.explain(one_row(source, int(held.rows[at])))

    # A prior may imagine classes that no row has: every setting is then shown in the classes of all
    classes = sorted({c for h in found[0] for c in h.classes}, key=natural_order)
    forecasts = {
        name: [_in_classes(repeat[i], classes) for repeat in found] for i, name in enumerate(named)
    }  # fmt: skip
    how = f"{len(np.unique(held.folds))} folds" + (f" × {repeats}" if repeats > 1 else "")
    prior = np.exp(_counted_prior(first, held, [str(canon.text(c)) for c in classes]))
    return Evaluation(
        tuple(classes),
        tuple(named),
        held.rows,
        np.array([classes.index(c) for c in held.classes], dtype=np.int64)[held.labels],
        held.weights,
        forecasts,
        prior,
        held.folds,
        names,
        f"{len(held.rows):,} rows, {len(classes)} classes, {how} by subtraction"
        + (", each scored by those before it" if plan.order else ""),
        plan.seed,
        named,
        explain,
    )


def _in_classes(held: HeldOut, classes: Sequence[Any]) -> Floats:
    if list(held.classes) == list(classes):
        return held.proba()
    out = np.zeros((len(held.rows), len(classes)))
    out[:, [list(classes).index(c) for c in held.classes]] = held.proba()
    return out


def _counted_prior(folded: Folds, held: HeldOut, names: Sequence[str]) -> Floats:
    """log of each class's share in the training rows of each row's fold."""
    out = np.full((folded.count, len(names)), -np.inf)
    for k in folded.scored():
        tally = folded.training_labels(k)
        share = tally.class_weights() / tally.class_weights().sum()
        out[k, [names.index(c) for c in tally.classes]] = np.log(share)
    return out[held.folds]


def _warn_of_classes_in_one_fold(folded: Folds) -> None:
    if folded.past:
        return
    where: dict[str, set[int]] = {}
    for label, fold in folded.names:
        where.setdefault(label, set()).add(fold)
    alone = sorted(c for c, folds in where.items() if len(folds) == 1)
    if alone and len(folded.scored()) > 1:
        warn(
            f"all rows of {excerpt(alone, 3)} are in one fold, and the models that forecast them have never seen the "
            "class. Hint: take stratify=True or fewer folds, or leave out classes with a single row."
        )


def _left_out(source: Source, schema: Schema, named: dict[str, Settings], seed: int) -> Evaluation:
    tally = Tally.of(schema, source)
    found = {name: leave_one_out(tally, source, s) for name, s in named.items()}
    held = next(iter(found.values()))
    names = [str(canon.text(c)) for c in held.classes]
    share = dict(zip(tally.classes, tally.class_weights().tolist(), strict=True))
    left = np.tile([share[c] for c in names], (len(held.rows), 1))
    left[np.arange(len(left)), held.labels] -= 1.0 if held.weights is None else held.weights
    total = left.sum(axis=1, keepdims=True)

    def explain(name: str, at: int) -> Explanation:
        row = one_row(source, int(held.rows[at]))
        return tally.forget(row).model(named[name]).explain(row)

    return Evaluation(
        held.classes, tuple(named), held.rows, held.labels, held.weights,
        {name: [h.proba()] for name, h in found.items()}, np.maximum(left, 0.0) / np.where(total > 0, total, 1.0),
        held.folds, (), f"{len(held.rows):,} rows, {len(names)} classes, each row left out by itself", seed, named,
        explain,
    )  # fmt: skip


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
