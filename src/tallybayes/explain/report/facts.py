"""What a report says, as plain values: the data, what was inferred, how good the answers are, the worst mistakes.

`judged` reads the data once: the parts of every column give an `Evaluation` of the labelled rows and what each column
says alone. `report_facts` puts that into words and numbers that JSON can hold.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Floats, Ints, log_sum_exp
from ...base.errors import DataError
from ...data import encode
from ...data.kinds import kept
from ...data.sources import Batch, Source, open_source
from ...model import posterior
from ...model.model import Model
from ...selection.measure.evaluation import Evaluation
from ...selection.measure.metrics import baseline, by_class, confusion
from ...tally.overlap import ALL, NONE, SOME, overlap
from ..plots.columns import telling
from ..plots.scores import class_numbers

MODEL = "model"  # the one setting that is evaluated
MISTAKES = 6  # most confident ones that are shown
WORDS = 10  # per class


@dataclass(frozen=True)
class Judged:
    """The data as the model sees them: the rows whose class it knows evaluated, and every column looked at."""

    source: Source
    labels: Ints  # of all rows: class number, −1 without a label, −2 for a class the model does not know
    evaluation: Evaluation | None  # of the rows whose class is known; None if there are none
    information: dict[str, float]  # mean of Σ P(y given x) log P(y given x)/P(y), in bits, column by column
    missing: dict[str, float]  # share of rows

    @property
    def probabilities(self) -> Floats:
        """P(class given row) of the evaluated rows."""
        assert self.evaluation is not None
        return self.evaluation.forecasts[MODEL][0]


def judged(model: Model, data: Any, y: Any = None) -> Judged:
    """The data read once and scored; the parts of every column give both the answers and what it says alone."""
    source = open_source(data, y, target=model.schema.target).repeatable()
    labels, log_p, bits, gone, rows = [], [], dict.fromkeys(model.beliefs, 0.0), dict.fromkeys(model.beliefs, 0.0), 0
    for batch in _pieces(source):
        if rows == 0 and model.beliefs and batch.rows:
            encode.check_columns(model.schema, batch)
        blocks = encode.bags(encode.blocks(model.schema, batch))
        parts = {name: belief.parts(blocks[name]) for name, belief in model.beliefs.items()}
        joint = posterior.scores(model.start, parts, model.settings, blocks, batch.rows)
        log_p.append(posterior.log_posterior(posterior.calibrated(model.settings, joint), model.start))
        for name, part in parts.items():
            alone = posterior.scores(model.log_prior, {name: part}, model.settings, blocks)
            bits[name] += _bits(model.log_prior, alone)
            gone[name] += float(np.count_nonzero(~blocks[name].present()))
        labels.append(_labels(model, batch))
        rows += batch.rows
    if rows == 0:
        raise DataError("the data have no rows", hint="give at least one row to report on.")
    share = {name: total / rows for name, total in gone.items()}
    each = {name: total / rows for name, total in bits.items()}
    numbers = np.concatenate(labels)
    return Judged(source, numbers, _evaluation(model, numbers, np.exp(np.concatenate(log_p))), each, share)


def _evaluation(model: Model, labels: Ints, p: Floats) -> Evaluation | None:
    """The rows whose class the model knows, beside the shares of the classes among them."""
    known = np.flatnonzero(labels >= 0)
    if len(known) == 0:
        return None
    right = labels[known]
    shares = baseline(right, p.shape[1])
    return Evaluation(model.classes, (MODEL,), known, right, None, {MODEL: [p[known]]}, shares)


def _pieces(source: Source) -> Iterator[Batch]:
    for batch in source.batches():
        yield from batch.cut(1 << 14)  # so that the parts of many columns stay small


def _bits(log_prior: Floats, joint: Floats) -> float:
    """Σ over rows of the divergence from the prior that one column brings."""
    with np.errstate(invalid="ignore"):
        log_p = joint - log_sum_exp(joint)[:, None]
        each = np.exp(log_p) * (log_p - log_prior)
    return float(np.nan_to_num(each).sum() / np.log(2))


def _labels(model: Model, batch: Batch) -> Ints:
    if model.schema.target not in batch:
        return np.full(batch.rows, -1, dtype=np.int64)
    codes = encode.labels(model.schema, batch)
    numbers = class_numbers(codes.slots, model.classes)
    numbers = np.append(np.where(numbers < 0, -2, numbers), -1)
    return np.asarray(numbers[codes.codes], dtype=np.int64)


def report_facts(model: Model, data: Any, y: Any = None, *, seen: Judged | None = None) -> dict[str, Any]:
    """Everything that a report says, as values that JSON can hold."""
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
            "trained_on": trained_on(model, seen),
        },
        "model": _model_facts(model),
        "columns": _column_facts(model, seen),
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


def trained_on(model: Model, seen: Judged) -> str:
    """Whether these rows were counted: "yes" if all of them, by all signs, "partly", "no" if none can, or "unknown"."""
    if model.tally is None:
        return "no"
    if not (seen.labels != -1).any():
        return "unknown"
    return {ALL: "yes", SOME: "partly", NONE: "no"}.get(overlap(model.tally, seen.source).verdict, "unknown")


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


def _metrics(found: Evaluation) -> dict[str, float | None]:
    shares = found.baseline
    return {
        "accuracy": found["accuracy"],
        "accuracy_of_most_frequent": shares["accuracy"],
        "log_loss": found["log_loss"],
        "log_loss_of_shares": shares["log_loss"],
        "brier": found["brier"],
        "calibration_error": found["calibration_error"],
        "roc_auc": _number(found["roc_auc"]),
    }


def _number(value: float) -> float | None:
    """A figure as JSON can hold it: none where there is none."""
    return None if np.isnan(value) else float(value)


def _model_facts(model: Model) -> dict[str, Any]:
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
    }


def _column_facts(model: Model, seen: Judged) -> list[dict[str, Any]]:
    out = []
    for column in model.schema.counted:
        name = column.name
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
            "bits": seen.information[name],
            "missing": seen.missing[name],
        })  # fmt: skip
    return sorted(out, key=lambda c: -float(c["bits"]))


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
