"""How good models are on rows they have not seen: `cross_validate` makes one per fold.

Settings are tried by subtraction: every row is counted once, and a fold is scored by the total less the fold, or a row
by the total less the row. The whole of `tb.fit`, or any other fitter, is fitted anew for each fold (`refit`). All three
ways end in an `Evaluation`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Floats
from ...base.errors import SettingsError, excerpt, warn
from ...data.guess import Reading
from ...data.infer import asked, schema_of
from ...data.schema import Schema
from ...data.sources import Source, open_source
from ...families.settings import Settings, SettingsLike
from ...model.model import Model
from ...model.prior import natural_order
from ...tally.tally import Tally
from .. import splits
from ..choose.fit import fit, some_without_label
from ..folds import Folds, HeldOut, count_folds
from ..leave_one_out import leave_one_out
from ..parts import Plan, column_codes, times, without_columns
from ..settings_at_once import spread
from .evaluation import Evaluation
from .neighbours import tell_of_neighbours
from .refit import Fitter, Turn, explained, folds_said, learner_of, refit

LEAVE_ONE_OUT = "leave-one-out"


def cross_validate(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    schema: Schema | None = None,
    kinds: Mapping[str, str] | None = None,
    settings: SettingsLike | Sequence[SettingsLike] | Mapping[str, SettingsLike] = None,
    weights: Any = None,
    folds: int | str = 10,
    repeats: int = 1,
    stratify: bool = False,
    groups: str | None = None,
    by: str | None = None,
    order: str | bool | None = None,
    seed: int = 0,
    fitter: Fitter | None = None,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> Evaluation:
    """Every row forecast once by a model of the other folds: one line of figures per setting.

    The data are told of as for `fit`. With `settings`, some or a list or dict of them, every row is counted once and
    each fold is scored by total − fold. Without them the whole of `tb.fit` is tried: inferred, fitted and chosen anew
    on the training rows of each fold (or `fitter`, any function from training rows to a model).

    folds     how many, or "leave-one-out", which takes each row out of the tally by itself
    repeats   so many times, each with other folds
    stratify  share out each class evenly; else a fold is a hash of the row, so that equal rows stay together, unless
              most rows have equals
    groups    a column whose equal values stay together
    by        a column whose values are the folds
    order     a column of times (True: the rows' order): each stretch is forecast by the stretches before it
    seed      of the folds
    fitter    a function from training rows to a model, instead of `tb.fit`

    >>> import tallybayes as tb
    >>> table = {"x": [1.0, 2.0, 9.0, 8.0] * 10, "y": ["low", "low", "high", "high"] * 10}
    >>> tb.cross_validate(table, "y", settings=tb.Settings(), stratify=True)["accuracy"]
    1.0
    """
    if isinstance(folds, bool) or not (isinstance(folds, (int, np.integer)) or folds == LEAVE_ONE_OUT):
        raise SettingsError(f"folds={folds!r}", hint=f"take a whole number of at least 2, or {LEAVE_ONE_OUT!r}.")
    if isinstance(repeats, bool) or not isinstance(repeats, (int, np.integer)) or repeats < 1:
        raise SettingsError(f"repeats={repeats!r}", hint="take a whole number of at least 1.")
    if repeats > 1 and (by is not None or order or folds == LEAVE_ONE_OUT):
        what = "leaving out each row" if folds == LEAVE_ONE_OUT else "folds by a column" if by is not None else "time"
        raise SettingsError(
            f"{repeats} repeats of {what}, which are all the same", hint="leave out repeats=, or take seeded folds."
        )
    plan = Plan(10 if isinstance(folds, str) else int(folds), stratify, groups, by, order, seed)
    named = None if settings is None else _named(settings)  # refused before anything is read
    reading = Reading.of(missing, strict, date_format, fold, kinds)
    source, schema, given = opened(data, target, y, weights, plan, schema, reading)
    tell_of_neighbours(source, schema, plan)
    if named is not None:
        named = {name: Settings.of(each, schema) for name, each in named.items()}
        if folds == LEAVE_ONE_OUT:
            return _left_out(source, schema, named, seed)
        return _by_subtraction(source, schema, named, plan, repeats)
    if folds == LEAVE_ONE_OUT:
        raise SettingsError(
            "leaving out each row by itself needs settings", hint="give settings=tb.Settings(…), or folds=10."
        )
    if fitter is None:
        fitter = whole_fit(schema if given else None, schema.target, schema.weights, plan, None, reading)
    return _by_refitting(source, schema, fitter, plan, repeats)


def whole_fit(
    schema: Schema | None, target: str, weights: str | None, plan: Plan, settings: Settings | None, reading: Reading,
    effort: str = "default",
) -> Fitter:  # fmt: skip
    """`tb.fit` as a function of training rows: with this schema, or inferring one that ignores what decides folds."""

    beside = reading.beside(plan.columns)

    @some_without_label()  # those of an audit; folds have none
    def fitted(rows: Source) -> Model:
        held = _held_out(rows, plan)
        if schema is not None:
            return fit(rows, schema=schema, settings=settings, effort=effort, **held)
        rest = without_columns(rows, [name for name in plan.columns if name not in held.values()])
        return fit(rest, target, weights=weights, settings=settings, effort=effort, **held, **beside.options)

    return fitted


def _held_out(rows: Source, plan: Plan) -> dict[str, Any]:
    """What the fit of some rows holds out together, as these folds do, unless all of the rows belong together."""
    if plan.groups is not None:
        return {"groups": plan.groups} if len(column_codes(rows, plan.groups, "holds the groups")[0]) > 1 else {}
    if plan.order:
        n = sum(batch.rows for batch in rows.batches())
        return {"order": plan.order} if len(np.unique(times(rows, plan.order, n))) > 1 else {}
    return {}


def opened(
    data: Any, target: Any, y: Any, weights: Any, plan: Plan, schema: Schema | None, reading: Reading
) -> tuple[Source, Schema, bool]:
    """The data to be read, the schema, and whether it was given."""
    target, y, schema = asked(target, y, schema, reading)
    given = schema is not None
    if target in plan.columns:
        raise SettingsError(
            f"folds by {target!r}, which is the column to predict",
            hint="name another column; stratify=True gives every fold its share of every class.",
        )
    column = weights if isinstance(weights, str) else None
    source = open_source(data, y, weights=None if column else weights, target=target).repeatable()
    if schema is None:
        schema = schema_of(without_columns(source, plan.columns), target, column, reading.beside(plan.columns))
    elif column is not None:
        schema = schema.with_weights(column)
    for name in plan.columns:
        if any(c.reads == name and c.kind != "ignore" for c in schema.columns):
            schema = schema.with_column(name, kind="ignore", reason="decides about folds")
    return source, schema, given


def _named(settings: Any) -> dict[str, Settings]:
    """Settings by name: the given one, or what tells them apart. A dict holds some of these, or is one of them."""
    one = isinstance(settings, Mapping) and {*settings} <= {f.name for f in fields(Settings)} and len(settings) > 0
    if isinstance(settings, Settings) or (one and not any(isinstance(v, Settings) for v in settings.values())):
        return {"settings": Settings.of(settings)}
    several = isinstance(settings, (Mapping, Sequence)) and not isinstance(settings, str)
    given = list(settings.values() if isinstance(settings, Mapping) else settings if several else [])
    if not given:
        raise SettingsError(
            f"no settings to evaluate: settings={settings!r}",
            hint="give tb.Settings(…), a list of them, or {name: tb.Settings(…)}.",
        )
    each = [Settings.of(s) for s in given]
    if isinstance(settings, Mapping):
        return {str(k): v for k, v in zip(settings, each, strict=True)}
    differ = [f.name for f in fields(Settings) if any(getattr(s, f.name) != getattr(each[0], f.name) for s in each)]
    texts = [", ".join(f"{n}={_plain(getattr(s, n))}" for n in differ) or "settings" for s in each]
    return {t if texts.count(t) == 1 else f"{t} #{i}": s for i, (t, s) in enumerate(zip(texts, each, strict=True))}


def _plain(value: Any) -> str:
    """A setting as a person would write it: NumPy's numbers without the word float64."""
    return re.sub(r"np\.\w+\(([^()]*)\)", r"\1", repr(value))


def _by_subtraction(source: Source, schema: Schema, named: dict[str, Settings], plan: Plan, repeats: int) -> Evaluation:
    found: list[list[HeldOut]] = []
    counted: list[tuple[Folds, list[str]]] = []
    plan = plan.suited(source, schema)
    for seed in splits.repeated(plan.seed, repeats):
        assign, fold_names = replace(plan, seed=seed).assign(source, schema.target, schema)
        folded = count_folds(source, schema, assign, past=bool(plan.order))
        if not counted:
            counted.append((folded, fold_names))
            _warn_of_classes_in_one_fold(folded)
        found.append(folded.held_out_each(list(named.values())))
    (first, names), held = counted[0], found[0][0]
    # A prior may imagine classes that no row has: every setting is then shown in the classes of all
    classes = sorted({c for h in found[0] for c in h.classes}, key=natural_order)
    return Evaluation(
        tuple(classes),
        tuple(named),
        held.rows,
        np.array([classes.index(c) for c in held.classes], dtype=np.int64)[held.labels],
        held.weights,
        {name: [_in_classes(repeat[i], classes) for repeat in found] for i, name in enumerate(named)},
        np.exp(_counted_prior(first, held, [str(canon.text(c)) for c in classes])),
        held.folds,
        names,
        f"{len(held.rows):,} rows, {len(classes)} classes, {folds_said(held.folds, repeats)} by subtraction"
        + (", each scored by those before it" if plan.order else ""),
        plan.seed,
        named,
        explained(source, held.rows, lambda name, at, row: first.training(int(held.folds[at])).model(named[name])),
    )


def _in_classes(held: HeldOut, classes: Sequence[Any]) -> Floats:
    return spread(held.proba(), [classes.index(c) for c in held.classes], len(classes))


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
    found = {name: leave_one_out(tally, source, settings=s) for name, s in named.items()}
    held = next(iter(found.values()))
    names = [str(canon.text(c)) for c in held.classes]
    share = dict(zip(tally.classes, tally.class_weights().tolist(), strict=True))
    left = np.tile([share[c] for c in names], (len(held.rows), 1))
    left[np.arange(len(left)), held.labels] -= 1.0 if held.weights is None else held.weights
    total = left.sum(axis=1, keepdims=True)

    return Evaluation(
        held.classes, tuple(named), held.rows, held.labels, held.weights,
        {name: [h.proba()] for name, h in found.items()}, np.maximum(left, 0.0) / np.where(total > 0, total, 1.0),
        held.folds, (), f"{len(held.rows):,} rows, {len(names)} classes, each row left out by itself", seed, named,
        explained(source, held.rows, lambda name, at, row: tally.forget(row).model(named[name])),
    )  # fmt: skip


def _by_refitting(source: Source, schema: Schema, fitter: Fitter, plan: Plan, repeats: int) -> Evaluation:
    models: dict[int, Model] = {}

    def keep(turn: Turn) -> None:
        models[turn.fold] = turn.fitted

    found, _ = refit(source, schema, {"fit": learner_of(fitter)}, plan, repeats, keep)
    folds = found.folds
    assert folds is not None
    return replace(
        found,
        title=f"{found.title}, fitted anew on each",
        explain=explained(source, found.rows, lambda name, at, row: models[int(folds[at])]),
    )
