"""How one message is answered without reading everything: written into the state with every change, as JSON.

    columns    of each its kind, the sheet of its words or values, how texts are cut, and what its numbers say

Words and values are smoothed when they are asked for, from their own counts and what their sheet adds up to. A number's
belief rests on all of its column, which is small: so it is estimated here, and kept as plain numbers. `answers` reads
the plan.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..data.schema import Column, Schema
from ..families.forms import BellForm, CellsForm, Form, RateForm
from ..families.settings import Settings
from ..families.smoothing import Laplace
from ..tally.tally import Tally
from .answers import ALPHA, HAM, LABELS, SPAM

# Classes weigh the same: how many messages of each were learnt says little about what will arrive
BELIEF = Settings(prior="uniform", smoothing=Laplace(ALPHA))
SHEETS = {"text": "words", "bag": "words", "category": "values"}  # whose slots are looked up one by one
_CODES = 512  # general cells right of the centre that are written down: whole numbers up to 2²⁴, all shares


def numbers_of(schema: Schema) -> Schema:
    """The columns whose belief is kept as a whole."""
    return replace(schema, columns=tuple(column for column in schema.counted if column.kind == "number"))


def plan_of(schema: Schema, numbers: Tally, sheets: Mapping[tuple[str, str], int]) -> dict[str, Any] | None:
    """The plan, from the tally of the number columns; None where a column needs the long way."""
    if not all(_is_plain(column, schema) for column in schema.counted) or set(numbers.classes) != set(LABELS):
        return None
    model, columns = numbers.model(BELIEF), []
    spam, ham = (model.classes.index(label) for label in (SPAM, HAM))
    for column in schema.counted:
        says = _said(model.beliefs[column.name].form(), spam, ham) if column.kind == "number" else None
        if column.kind == "number" and says is None:
            return None
        told = {
            "reads": column.reads,
            "kind": column.kind,
            "missing": sorted({*schema.missing, *column.missing}),
            "values": list(column.values or ()),
            "text": None if column.text is None else asdict(column.text),
            "sheet": sheets.get((column.name, SHEETS.get(column.kind, ""))),
            "says": says,
        }
        columns.append(told)
    return {"columns": columns}


def _is_plain(column: Column, schema: Schema) -> bool:
    """Whether a column is read by its kind alone."""
    odd = column.part is not None or column.spelling is not None or (column.text and column.text.hash_bits is not None)
    marks = column.kind == "number" and {*schema.missing, *column.missing} - {""}
    return column.kind in (*SHEETS, "number") and not (odd or marks)


def _said(form: Form, spam: int, ham: int) -> dict[str, Any] | None:
    """What a number's belief says for spam against ham, in the terms of `answers.heard`; None if that has no word."""

    def odds(logs: Floats) -> Any:
        return (logs[..., spam] - logs[..., ham]).tolist()

    if isinstance(form, BellForm) and form.positions is None:
        if len(form.location) == 0:  # it never varies
            return {"form": "rate", "slope": 0.0, "start": 0.0}
        curves = [form.location, form.scale, form.height, *([] if form.freedom is None else [form.freedom])]
        each = [[float(given[0, label]) for given in curves] for label in (spam, ham)]
        return {"form": "bell", "curves": [[*curve, None][:4] for curve in each]}
    if isinstance(form, RateForm):
        return {"form": "rate", "slope": odds(np.log(form.rate)), "start": odds(form.start)}
    if isinstance(form, CellsForm):
        cells = form.cells
        return {
            "form": "cells",
            "centre": cells.centre,
            "exponent": cells.exponent,
            "points": list(cells.points),
            "own": odds(form.ask(cells.point_codes())) if cells.points else [],
            "general": odds(form.ask(np.arange(_CODES))),
        }
    return None
