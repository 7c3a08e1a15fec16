"""What a report says, as plain values: the data, what was inferred, how good the answers are, the worst mistakes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Floats, Ints, log_sum_exp
from ...base.errors import DataError
from ...data import encode
from ...data.sources import Batch, Source, open_source
from ...families.settings import Settings
from ...model import posterior
from ...model.model import Model
from ...selection.measure.metrics import (
    accuracy,
    baseline,
    brier,
    by_class,
    calibration_error,
    confusion,
    log_loss,
    roc_auc,
)
from ...tally.tally import Tally
from ..plots.columns import telling
from ..plots.scores import class_numbers

MISTAKES = 6  # most confident ones that are shown
WORDS = 10  # per class


@dataclass(frozen=True)
class Judged:
    """Every row of the data as the model sees it."""

    source: Source
    labels: Ints  # class number, −1 without a label, −2 for a class the model does not know
    probabilities: Floats
    information: dict[str, float]  # mean of Σ P(y given x) log P(y given x)/P(y), in bits, column by column
    missing: dict[str, float]  # share of rows


def judged(model: Model, data: Any, y: Any = None) -> Judged:
    """The data read once and scored."""
    source = open_source(data, y, target=model.schema.target).repeatable()
    labels, log_p, bits, gone, rows = [], [], dict.fromkeys(model.beliefs, 0.0), dict.fromkeys(model.beliefs, 0.0), 0
    for batch in _pieces(source):
        if rows == 0 and model.beliefs and batch.rows:
            encode.check_columns(model.schema, batch)
        blocks = encode.bags(encode.blocks(model.schema, batch))
        parts = {name: belief.parts(blocks[name]) for name, belief in model.beliefs.items()}
        joint = np.tile(model.start, (batch.rows, 1))
        if parts:
            joint = posterior.calibrated(model.settings, posterior.scores(model.start, parts, model.settings, blocks))
        log_p.append(posterior.log_posterior(joint, model.start))
        for name, part in parts.items():
            bits[name] += _bits(
                model.log_prior, posterior.scores(model.log_prior, {name: part}, model.settings, blocks)
            )
            gone[name] += float(np.count_nonzero(~blocks[name].present()))
        labels.append(_labels(model, batch))
        rows += batch.rows
    if rows == 0:
        raise DataError("the data have no rows", hint="give at least one row to report on.")
    share = {name: total / rows for name, total in gone.items()}
    each = {name: total / rows for name, total in bits.items()}
    return Judged(source, np.concatenate(labels), np.exp(np.concatenate(log_p)), each, share)


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
    known = seen.labels >= 0
    facts: dict[str, Any] = {
        "target": model.schema.target,
        "classes": [_plain(c) for c in model.classes],
        "prior": dict(zip(map(str, model.classes), np.exp(model.log_prior).tolist(), strict=True)),
        "data": {
            "rows": len(seen.labels),
            "labelled": int(known.sum()),
            "without_label": int((seen.labels == -1).sum()),
            "unknown_class": int((seen.labels == -2).sum()),
            "trained_on": trained_on(model, seen),
        },
        "model": _model_facts(model),
        "columns": _column_facts(model, seen),
        "ignored": [{"name": c.name, "reason": c.reason} for c in model.schema.columns if c.kind == "ignore"],
        "words": {name: _words(model, name) for name in _word_columns(model)},
    }
    if known.any():
        labels, p = seen.labels[known], seen.probabilities[known]
        facts["metrics"] = _metrics(labels, p)
        facts["by_class"] = {k: _numbers(v) for k, v in by_class(labels, p).items()}
        facts["confusion"] = confusion(labels, p).tolist()
        facts["mistakes"] = [_mistake(model, seen, row) for row in worst(seen)]
    return facts


def trained_on(model: Model, seen: Judged) -> str:
    """Whether these are the rows that were counted: "yes" if their tally is the model's, else "no" or "unknown"."""
    if model.tally is None:
        return "no"
    if int((seen.labels != -1).sum()) != model.tally.rows:
        return "unknown"
    return "yes" if Tally.of(model.tally.schema, seen.source).digest == model.tally.digest else "unknown"


def worst(seen: Judged, most: int = MISTAKES) -> list[int]:
    """The rows of the wrong answers that were given with most confidence, one of each kind before a second."""
    answer, top = np.argmax(seen.probabilities, axis=1), seen.probabilities.max(axis=1)
    wrong = np.flatnonzero((seen.labels >= 0) & (answer != seen.labels))
    order = wrong[np.argsort(-top[wrong], kind="stable")].tolist()
    times: dict[tuple[int, int], int] = {}
    turn: dict[int, int] = {}
    equal = set()
    for row in order:
        same = seen.probabilities[row].tobytes()
        if same in equal:  # most likely a copy of a row that is shown already
            continue
        equal.add(same)
        kind = (int(seen.labels[row]), int(answer[row]))
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
        "odds": odds.to_dict(),
        "what_if": str(model.what_if(seen.source, right, row)),
    }


def _metrics(labels: Ints, p: Floats) -> dict[str, float | None]:
    plain = baseline(labels, p.shape[1])
    both = len(np.unique(labels)) > 1
    return {
        "accuracy": accuracy(labels, p),
        "accuracy_of_most_frequent": accuracy(labels, plain),
        "log_loss": log_loss(labels, p),
        "log_loss_of_shares": log_loss(labels, plain),
        "brier": brier(labels, p),
        "calibration_error": calibration_error(labels, p),
        "roc_auc": roc_auc(labels, p) if both else None,
    }


def _numbers(values: Floats) -> list[float | None]:
    return [None if np.isnan(v) else float(v) for v in values]


def _model_facts(model: Model) -> dict[str, Any]:
    settings = {f.name: _setting(getattr(model.settings, f.name)) for f in fields(Settings)}
    changed = model.settings.changed()
    tally = model.tally
    raw, free = model.parameters()
    return {
        "summary": repr(model),
        "settings": {name: settings[name] for name in changed},
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


def _setting(value: Any) -> str:
    return canon.printable(repr(value), 400)


def _column_facts(model: Model, seen: Judged) -> list[dict[str, Any]]:
    out = []
    for column in model.schema.counted:
        name = column.name
        family = model.families[name].describe() if name in model.families else "written by hand"
        out.append({
            "name": name,
            "kind": column.kind,
            "family": family,
            "reason": column.reason,
            "weight": float(model.settings.weights.get(name, 1.0)),
            "bits": seen.information[name],
            "missing": seen.missing[name],
        })  # fmt: skip
    return sorted(out, key=lambda c: -float(c["bits"]))


def _word_columns(model: Model) -> list[str]:
    return [c.name for c in model.schema.counted if c.about.words and model.table(c.name).unit == "words"]


def _words(model: Model, name: str) -> dict[str, list[dict[str, Any]]]:
    out = {}
    for i, c in enumerate(model.classes):
        rows = telling(model, name, i, WORDS)
        out[str(c)] = [{"word": r.value, "times": r.ratio, "inside": r.inside, "outside": r.outside} for r in rows]
    return out


def _plain(label: Any) -> Any:
    return label if isinstance(label, (str, int, float, bool)) else str(label)
