"""How strange the own class of each row is to a model without the row, in one of four ways.

    leave-one-out       settings fixed beforehand, families with a closed form: the tally less the row
    folds               settings fixed beforehand, any family: the tally less the fold
    folds, fitted anew  settings that were learnt from the rows: the whole fit on the other folds
    rows held back      rows that the model has never counted: the model itself

Strictly, a new row should be counted too, under the class in question, before the others are scored (`full`). It moves
their scores by about 1/rows, and is left out here so that one pass does for all new rows and all classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Floats, Ints
from ...base.errors import DataError, SettingsError
from ...data.sources import Source, open_source
from ...model.model import Model
from ...model.sets import END, PredictionSets, strangeness
from ...tally.overlap import NO_SIGN, NONE, overlap
from ...tally.tally import Tally
from ..folds import HeldOut, count_folds
from ..leave_one_out import has_closed_forms, leave_one_out
from ..measure.cross_validate import LEAVE_ONE_OUT
from ..measure.fit_again import fit_again, folds_as_asked, held_whole
from ..measure.neighbours import tell_of_neighbours
from ..measure.refit import Truth
from ..parts import Plan

FOLDS, REFITTED = 20, 10


def prediction_sets(
    model: Model, data: Any, y: Any = None, *, folds: int | str | None = None, seed: int = 0,
    relearn: bool | None = None,
) -> PredictionSets:  # fmt: skip
    """What sets of classes are taken from: how strange each row is to a model that has not counted it; print it.

    `data` are the rows that the model has counted, all of them, or rows that it has never seen. Counted rows are left
    out one by one, or by `folds` where a family has no closed form for that. Settings that were learnt from the rows
    are learnt anew for each of ten folds; `relearn=False` says that they were learnt from others.
    `model.with_sets(data)` keeps the outcome with the model, for `model.predict_set`.

    >>> import tallybayes as tb
    >>> rows = {"Sky": ["sunny", "rainy", "sunny", "rainy"] * 5, "Play": ["yes", "no", "yes", "yes"] * 5}
    >>> tb.prediction_sets(tb.textbook(rows, "Play"), rows).rows
    20
    """
    schema = model.schema
    if schema.weights is not None:
        raise SettingsError(
            "prediction sets of a model whose rows have weights",
            hint="a promise is made for rows that come as these came: count them without weights.",
        )
    if folds is not None and folds != LEAVE_ONE_OUT and (isinstance(folds, bool) or not isinstance(folds, int)):
        raise SettingsError(f"folds={folds!r}", hint=f"take a whole number of at least 2, or {LEAVE_ONE_OUT!r}.")
    source = open_source(data, y, target=schema.target).repeatable()
    counted = Tally.of(schema, source)
    if model.tally is None or replace(counted, skipped=model.tally.skipped) != model.tally:
        return _held_back(model, source, counted)
    tell_of_neighbours(source, schema, folds_as_asked(model, FOLDS))
    learnt = model.settings.calibrated is not None if relearn is None else relearn
    if learnt:
        if folds == LEAVE_ONE_OUT:
            raise SettingsError(
                "leaving out each row by itself, under settings that were learnt from all rows",
                hint="leave out folds=, or say relearn=False if the settings were learnt from other rows.",
            )
        return _fitted_anew(model, source, int(folds or REFITTED), seed)
    if folds == LEAVE_ONE_OUT or (folds is None and has_closed_forms(model.tally, model.settings)):
        held = leave_one_out(model.tally, source, settings=model.settings)
        return _of_held(model, held, "each left out by itself")
    plan = Plan(min(int(folds or FOLDS), model.tally.rows), stratify=True, seed=seed)
    held = count_folds(source, schema, plan.assign(source, schema.target, schema)[0]).held_out(
        model.settings, parts=False
    )
    return _of_held(model, held, f"each left out with one of {plan.folds} folds")


def _of_held(model: Model, held: HeldOut, how: str) -> PredictionSets:
    strange = strangeness(held.joint, held.log_prior[held.folds])
    return PredictionSets.of(model, *_in_classes(strange, held.labels, held.classes, model.classes), how)


def _in_classes(strange: Floats, labels: Ints, classes: Sequence[Any], wanted: Sequence[Any]) -> tuple[Floats, Ints]:
    """The same in the order of other classes; a class that the rows' models lack is as strange as can be."""
    number = {str(canon.text(c)): i for i, c in enumerate(wanted)}
    at = np.array([number[str(canon.text(c))] for c in classes], dtype=np.int64)
    out = np.full((len(strange), len(wanted)), END)
    out[:, at] = strange
    return out, at[labels]


def strange_rows(model: Model, data: Any, classes: Sequence[Any]) -> tuple[Floats, Ints]:
    """How strange some labelled rows are to a model, in these classes, and the number of each row's class."""
    source = open_source(data, target=model.schema.target).repeatable()
    truth = Truth.of(source, model.schema)
    asked = truth.of_source(source, np.ones(len(truth.rows), dtype=bool))
    strange = strangeness(model._log_joint(asked, model.start), model.start)
    number = {str(canon.text(c)): i for i, c in enumerate(classes)}
    labels = np.array([number[c] for c in truth.names], dtype=np.int64)[truth.labels]
    return _in_classes(strange, np.zeros(0, dtype=np.int64), model.classes, classes)[0], labels


def _held_back(model: Model, source: Source, counted: Tally) -> PredictionSets:
    if model.tally is not None:
        found = overlap(model.tally, source)
        if found.verdict not in (NONE, NO_SIGN):
            raise DataError(
                f"these rows are neither all of the {model.tally.rows:,} rows that the model has counted nor others: "
                f"{found.says}",
                hint="give all rows that it has counted, or none of them.",
            )
    known = {str(canon.text(c)) for c in model.classes}
    if lacks := sorted({*counted.classes} - known):
        raise DataError(
            f"rows of class {canon.printable(lacks[0], 40)!r}, which the model does not know",
            hint="update the model with rows of the class first.",
        )
    return PredictionSets.of(model, *strange_rows(model, source, model.classes), "rows held back")


def _fitted_anew(model: Model, source: Source, folds: int, seed: int) -> PredictionSets:
    schema, fitted_to = model.schema, fit_again(model)
    truth = Truth.of(source, schema)
    plan = folds_as_asked(model, min(folds, len(truth.rows)), stratify=True, seed=seed)
    fold = truth.folds(source, schema, plan.assign(source, schema.target, schema)[0])
    strange = np.zeros((len(fold), len(model.classes)))
    for k in np.unique(fold).tolist():
        fitted = fitted_to(truth.of_source(source, fold != k))
        strange[fold == k] = strange_rows(fitted, truth.of_source(source, fold == k), model.classes)[0]
    number = {str(canon.text(c)): i for i, c in enumerate(model.classes)}
    labels = np.array([number[c] for c in truth.names], dtype=np.int64)[truth.labels]
    parts = len(np.unique(fold))
    return PredictionSets.of(
        model, strange, labels, f"each left out with one of {parts} folds{held_whole(model)}, fitted anew"
    )
