"""The tables of a model written by hand ↔ JSON: it has no tally to be estimated from."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..base import canon
from ..base.errors import ModelFileError, SettingsError
from ..data.schema import Schema
from ..families.categorical import CategoricalBelief
from ..families.settings import Settings
from ..families.words import MultinomialBelief
from .model import Model
from .written import fixed_beliefs


def written_to_json(model: Model) -> dict[str, Any]:
    """The classes, log P(class) and P(value given class) of every column, to the last bit."""
    columns = {}
    for name, belief in model.beliefs.items():
        if isinstance(belief, CategoricalBelief):
            values = belief.values
        elif isinstance(belief, MultinomialBelief):
            values = belief.words
        else:
            raise SettingsError(
                f"the model has no tally, and column {name!r} is no written table",
                hint="save models that come from tally.model(), tb.fit or tb.Model.written.",
            )
        columns[name] = [[v, p] for v, p in zip(values, belief.probabilities.tolist(), strict=True)]
    return {
        "classes": [str(canon.text(c)) for c in model.classes],
        "log_prior": [v if math.isfinite(v) else None for v in model.log_prior.tolist()],  # null: P(class) = 0
        "columns": columns,
    }


def written_from_json(schema: Schema, settings: Settings, given: Any) -> Model:
    """The inverse of `written_to_json`."""
    try:
        labels = tuple(canon.from_text(c, schema.label_type) for c in given["classes"])
        log_prior = np.array([-np.inf if v is None else float(v) for v in given["log_prior"]])
        tables = {
            str(name): {str(v): np.array(p, dtype=np.float64) for v, p in table}
            for name, table in given["columns"].items()
        }
        fits = len(log_prior) == len(labels) and all(
            p.shape == (len(labels),) for t in tables.values() for p in t.values()
        )
        if not fits or set(tables) != set(schema.names):
            raise ValueError("tables, classes and schema do not fit each other")
        return Model(schema, labels, log_prior, fixed_beliefs(schema, tables, len(labels)), {}, settings)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ModelFileError(
            f"the written tables cannot be read: {str(error)[:200]}", hint="the file was not written by tallybayes."
        ) from None
