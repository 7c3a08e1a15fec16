"""A model in the forms in which others can use it, and its card: what it is, and what its file reveals."""

from __future__ import annotations

import os
import re

import numpy as np

from ..base import canon
from ..base.disk import write_atomically
from ..base.errors import SettingsError, unknown
from ..data.kinds import kept
from ..model.model import Model
from ..model.sets import told_notes
from ..tally.tally import Tally
from ..tally.together import together
from .json import scorer_json
from .onnx import onnx_bytes
from .sealed import check_sealed, seal, sealed_to_bytes

_MOST_COLUMNS = 200
_SMALL = 5  # a count below this may point at single people


def model_card(model: Model) -> str:
    """The card as Markdown."""
    tally = model.tally
    lines = [f"# Model card: {_safe(model.schema.target)}", ""]
    origin = "Written by hand." if tally is None else f"Counted from {canon.many(tally.rows, 'row')}"
    if tally is not None:
        origin += f" ({tally.skipped:,} more had no label and were skipped)." if tally.skipped else "."
    lines += [f"A naive Bayes classifier. {origin} Answers are a sum: the prior, and what each column says.", ""]
    lines += ["## Classes", "", "| class | P(class) |", "|---|---|"]
    lines += [f"| {_safe(label)} | {p:.4g} |" for label, p in model.prior().items()]
    lines += ["", "## Columns", "", "| column | kind | believed as | weight |", "|---|---|---|---|"]
    for name in list(model.beliefs)[:_MOST_COLUMNS]:
        family = model.families[name].describe() if name in model.families else "written table"
        weight = model.settings.weight_of(name)
        added = " and corrections" if name in model.settings.corrections else ""
        lines.append(f"| {_safe(name)} | {model.schema[name].kind} | {_safe(family)} | {weight:.3g}{added} |")
    if len(model.beliefs) > _MOST_COLUMNS:
        lines.append(f"| … {len(model.beliefs) - _MOST_COLUMNS} more | | | |")
    ignored = [c for c in model.schema.columns if c.kind == "ignore"]
    if ignored:
        lines += [
            "",
            "Left out: " + "; ".join(f"{_safe(c.name)} ({_safe(kept(c.reason))})" for c in ignored[:20]) + ".",
        ]
    raw, free = model.parameters()
    lines += ["", f"Numbers in the model: {raw:,}, of which {free:,} are free.", "", "## Choices", ""]
    lines += [f"- smoothing: {_safe(model.settings.smoothing, 200)}", f"- prior: {_safe(model.settings.prior, 200)}"]
    lines += [f"- {_safe(key)}: {_safe(value, 200)}" for key, value in told_notes(model.notes).items()]
    told = [f"- {word}: {_safe(said, 2_000)}" for word, said in model.provenance.lines()]
    lines += ["", "## Where it comes from", "", *told]
    lines += ["", "## What the model file reveals", "", *_revealed(model, tally), ""]
    lines += ["## Limits", "", *_limits(model), ""]
    return "\n".join(lines)


def _revealed(model: Model, tally: Tally | None) -> list[str]:
    if tally is None:
        return ["- Only what was written down: no rows have been counted."]
    words, values, small, smallest = 0, 0, 0, 0
    for counts in tally.columns.values():
        for name, sheet in counts.sheets.items():
            if name in ("values", "words", "cells"):
                table = sheet.table("n", len(tally.classes))
                small += int(np.count_nonzero((table > 0) & (table < _SMALL)))
                smallest += int(np.count_nonzero(table == 1))
                words += len(sheet.slots) if name == "words" else 0
                values += len(sheet.slots) if name == "values" else 0
    out = [
        "- Every class with its number of rows, and for every number column the exact sums of its values.",
        f"- {values:,} different values of categories and {words:,} different words, spelled out, each with how often "
        "it occurs in each class.",
        f"- {small:,} of these counts are below {_SMALL}, {smallest:,} are 1: a rare word or value may name one "
        "person. Rare names, addresses and numbers in texts are words, too.",
    ]
    if model.history.sources:
        out.append("- The names of the files that were counted, without folders; `model.share()` leaves them out.")
    if model.schema.receipts:
        out.append("- A hash of every row: whoever guesses a whole row can tell whether it was counted.")
    out.append(
        "- A sealed scorer (`model.export(path, 'sealed')`) leaves the counts out, but keeps words, values and "
        "probabilities, and for Student-t columns how many values each class had."
    )
    out.append("- Rows can be taken out again: `model.forget(rows)` leaves no trace of them in the counts.")
    if together(model.schema) is not None:
        out.append("- Weights are worked out of the counts, and anew whenever rows are added or forgotten.")
    elif model.settings.corrections:
        out.append(
            "- Weights and corrections were fitted to rows and are no counts: they stay as they are when rows are "
            "forgotten, until `model.recalibrate(rows)` fits them anew."
        )
    return out


def _limits(model: Model) -> list[str]:
    out = [
        "- Columns are taken as independent given the class. Where they repeat each other, probabilities are extreme."
    ]
    if not (model.settings.weights or model.settings.corrections):
        out.append("- The evidence has not been weighted by column: take the order of the classes more seriously "
                   "than the probabilities.")  # fmt: skip
    out.append("- Values and words never seen are no evidence, missing values are left out.")
    return out


def _safe(text: object, most: int = 60) -> str:
    """A text that stays a text in Markdown and HTML."""
    return re.sub(r"([\\`*_{}\[\]<>#+!|~&$])", r"\\\1", canon.printable(text, most)).replace("\\<", "&lt;")


FORMATS = {"sealed": ".sealed.parquet", "json": ".json", "onnx": ".onnx", "card": ".md"}


def export(model: Model, path: str | os.PathLike[str] | None = None, format: str | None = None) -> bytes:
    """The model as a sealed scorer, JSON, ONNX or a model card; also written to the path if there is one.

    The format follows from the end of the path (.sealed.parquet, .json, .onnx, .md) unless it is given.
    """
    if format is None:
        name = "" if path is None else os.fspath(path)
        format = next((f for f, end in FORMATS.items() if name.endswith(end)), name)
    if format not in FORMATS:
        known = ", ".join(f"{f!r} ({end})" for f, end in FORMATS.items())
        hint = f"the formats are {known}; model.to_sql(table) is for SQL."
        raise unknown(SettingsError, f"there is no export to {format!r}", format, FORMATS, hint)
    if format == "card":
        out = model_card(model).encode()
    elif format == "sealed":
        out = sealed_to_bytes(seal(model))
    else:
        out = onnx_bytes(seal(model)) if format == "onnx" else scorer_json(seal(model)).encode()
    if path is not None:
        write_atomically(path, out, check_sealed if format == "sealed" else None)
    return out
