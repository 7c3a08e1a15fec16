"""What a report says, as plain values: the data, what was inferred, how good the answers are, the worst mistakes.

`judged` scores the data: an `Evaluation` of the labelled rows, and what each column is worth there. `report_facts` puts
that into words and numbers that JSON can hold.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Floats, Ints
from ...base.errors import TallybayesWarning
from ...data.kinds import kept
from ...data.sources import Source, open_source
from ...model import posterior
from ...model.model import Model
from ...model.odds import class_counts
from ...selection.measure.evaluation import Evaluation
from ...selection.measure.importance import Importance, importance
from ...selection.measure.left_out import label_numbers, pieces
from ...selection.measure.metrics import baseline, by_class, confusion
from ..plots.columns import telling

MODEL = "model"  # the one setting that is evaluated
MISTAKES = 6  # most confident ones that are shown
WORDS = 10  # per class


@dataclass(frozen=True)
class Judged:
    """The data as the model sees them: the rows whose class it knows evaluated, and every column looked at."""

    source: Source | None  # None: no rows were given, and only what was counted is looked at
    labels: Ints  # of all rows: class number, −1 without a label, −2 for a class the model does not know
    evaluation: Evaluation | None  # of the rows whose class is known; None if there are none
    importance: Importance  # what each column says alone, and what is lost without it
    missing: dict[str, float | None]  # share of rows; None where counts do not tell

    @property
    def probabilities(self) -> Floats:
        """P(class given row) of the evaluated rows."""
        assert self.evaluation is not None
        return self.evaluation.forecasts[MODEL][0]


def judged(model: Model, data: Any, y: Any = None) -> Judged:
    """The data scored, and every column looked at; without data what was counted is looked at."""
    if data is None:
        return Judged(None, np.zeros(0, dtype=np.int64), None, importance(model), _never_there(model))
    source = open_source(data, y, target=model.schema.target).repeatable()
    labels, log_p, gone, rows = [], [], dict.fromkeys(model.beliefs, 0.0), 0
    for batch in pieces(source):
        blocks, joint = model.scored_batch(batch, model.start)
        log_p.append(posterior.log_posterior(joint, model.start))
        for name in model.beliefs:
            gone[name] += float(np.count_nonzero(~blocks[name].present()))
        labels.append(label_numbers(model, batch))
        rows += batch.rows
    if rows == 0:
        raise source.no_rows("give at least one row to report on.")
    share: dict[str, float | None] = {name: total / rows for name, total in gone.items()}
    numbers = np.concatenate(labels)
    evaluation = _evaluation(model, numbers, np.exp(np.concatenate(log_p)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", TallybayesWarning)  # said once already, of the same rows
        worth = importance(model, source)
    return Judged(source, numbers, evaluation, worth, share)


def _never_there(model: Model) -> dict[str, float | None]:
    """The share of the counted rows without a value, where every value is one count."""
    assert model.tally is not None  # importance has asked
    total = float(model.tally.class_weights().sum())
    out: dict[str, float | None] = {}
    for name in model.beliefs:
        sheets = model.tally.columns[name].sheets
        sheet = next((s for s in ("values", "cells") if s in sheets), None)
        words = sheet is None or model.schema[name].about.words
        there = 0.0 if words or sheet is None else float(class_counts(model, name, sheet)[1].sum())
        out[name] = None if words else max(1.0 - there / total, 0.0) if total else 0.0
    return out


def _evaluation(model: Model, labels: Ints, p: Floats) -> Evaluation | None:
    """The rows whose class the model knows, beside the shares of the classes among them."""
    known = np.flatnonzero(labels >= 0)
    if len(known) == 0:
        return None
    right = labels[known]
    shares = baseline(right, p.shape[1])
    return Evaluation(model.classes, (MODEL,), known, right, None, {MODEL: [p[known]]}, shares)


def report_facts(model: Model, data: Any = None, y: Any = None, *, seen: Judged | None = None) -> dict[str, Any]:
    """Everything that a report says, as values that JSON can hold.

    >>> model = tb.textbook({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> sorted(tb.report_facts(model))
    ['classes', 'columns', 'data', 'ignored', 'importance', 'model', 'prior', 'target', 'words']
    """
    seen = judged(model, data, y) if seen is None else seen
    facts: dict[str, Any] = {
        "target": model.schema.target,
        "classes": [_plain(c) for c in model.classes],
        "prior": dict(zip(map(str, model.classes), np.exp(model.log_prior).tolist(), strict=True)),
        "data": {
            "rows": len(seen.labels),
            "labelled": int((seen.labels >= 0).sum()),
            "without_label": int((seen.labels == -1).sum()),
            "unknown_class": int((seen.labels == -2).sum()),
            "trained_on": seen.importance.trained_on,
        },
        "model": model_facts(model),
        "importance": seen.importance.said_of,
        "columns": column_facts(model, seen),
        "ignored": [{"name": c.name, "reason": kept(c.reason)} for c in model.schema.columns if c.kind == "ignore"],
        "words": {name: _words(model, name) for name in _word_columns(model)},
    }
    if (found := seen.evaluation) is not None:
        facts["metrics"] = _metrics(found)
        facts["by_class"] = {k: [*map(_number, v)] for k, v in by_class(found.labels, seen.probabilities).items()}
        facts["confusion"] = confusion(found.labels, seen.probabilities).tolist()
        facts["mistakes"] = [
            _mistake(model, seen, int(found.rows[at])) for at in worst(found.labels, seen.probabilities)
        ]
    return facts


def worst(labels: Ints, p: Floats, most: int = MISTAKES) -> list[int]:
    """The places of the wrong answers that were given with most confidence, one of each kind before a second."""
    answer, top = np.argmax(p, axis=1), p.max(axis=1)
    wrong = np.flatnonzero(answer != labels)
    order = wrong[np.argsort(-top[wrong], kind="stable")].tolist()
    times: dict[tuple[int, int], int] = {}
    turn: dict[int, int] = {}
    equal = set()
    for row in order:
        same = p[row].tobytes()
        if same in equal:  # most likely a copy of a row that is shown already
            continue
        equal.add(same)
        kind = (int(labels[row]), int(answer[row]))
        turn[row] = times.get(kind, 0)
        times[kind] = turn[row] + 1
    return sorted(sorted(turn, key=lambda r: turn[r])[:most], key=lambda r: -top[r])


def _mistake(model: Model, seen: Judged, row: int) -> dict[str, Any]:
    right = model.classes[int(seen.labels[row])]
    explained = model.explain(seen.source, row)
    answer = model.classes[int(np.argmax(explained.probabilities))]
    odds = explained.odds(answer, right)
    return {
        "row": row,
        "right": _plain(right),
        "answer": _plain(answer),
        "probability": float(explained.probabilities.max()),
        "odds": canon.jsonable(odds.to_dict()),
        "what_if": str(model.what_if(seen.source, right, row)),
    }


def _metrics(found: Evaluation) -> dict[str, Any]:
    shares = found.baseline
    return {
        "accuracy": found["accuracy"],
        "accuracy_of_most_frequent": shares["accuracy"],
        "log_loss": found["log_loss"],
        "log_loss_of_shares": shares["log_loss"],
        "brier": found["brier"],
        "calibration_error": found["calibration_error"],
        "roc_auc": _number(found["roc_auc"]),
        "rare_classes": found.rare,
    }


def _number(value: float) -> float | None:
    """A figure as JSON can hold it: none where there is none."""
    return None if np.isnan(value) else float(value)


def model_facts(model: Model) -> dict[str, Any]:
    """What the model is, apart from its columns: counts, settings, how they were fitted, where it comes from."""
    changed = model.settings.changed()
    tally = model.tally
    raw, free = model.parameters()
    return {
        "summary": repr(model),
        "settings": {name: canon.printable(repr(getattr(model.settings, name)), 400) for name in changed},
        "parameters": {"raw": raw, "free": free},
        "tally": None
        if tally is None
        else {
            "rows": tally.rows,
            "skipped": tally.skipped,
            "classes": dict(zip(tally.classes, tally.class_weights().tolist(), strict=True)),
            "digest": tally.digest,
            "receipts": tally.schema.receipts,
        },
        "calibrated": None if model.settings.calibrated is None else str(model.settings.calibrated),
        "provenance": model.provenance.to_dict(),
    }


def column_facts(model: Model, seen: Judged) -> list[dict[str, Any]]:
    """What is known of each column, those that say most first; before them those of which that is not known."""
    out = []
    for column in model.schema.counted:
        name = column.name
        worth = seen.importance[name].to_dict()
        family = model.families[name].describe() if name in model.families else "written by hand"
        if model.settings.weight_of(name) == 0:  # whatever the family, it is not asked
            family = "counts not used" if name in model.settings.corrections else "not used"
        out.append({
            "name": name,
            "kind": column.kind,
            "family": family,
            "reason": kept(column.reason),
            "weight": float(model.settings.weight_of(name)),
            "corrections": _corrections(model, name),
            "missing": seen.missing[name],
            **{k: v for k, v in worth.items() if k not in ("column", "kind")},
        })  # fmt: skip
    return sorted(out, key=lambda c: -float("inf" if c["bits"] is None else c["bits"]))


def _corrections(model: Model, name: str) -> int:
    own = model.settings.corrections.get(name)
    return 0 if own is None else int(np.count_nonzero(own.added))


def _word_columns(model: Model) -> list[str]:
    return [c.name for c in model.schema.counted if c.about.words and model.table(c.name).unit == "words"]


def _words(model: Model, name: str) -> dict[str, list[dict[str, Any]]]:
    out = {}
    for i, c in enumerate(model.classes):
        rows = telling(model, name, i, WORDS)
        told = [{"word": r.value, "times": r.ratio, "inside": r.inside, "outside": r.outside} for r in rows]
        out[str(c)] = canon.jsonable(told)
    return out


def _plain(label: Any) -> Any:
    return label if isinstance(label, (str, int, float, bool)) else str(label)
