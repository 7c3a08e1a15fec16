"""A model written down by a person: priors and tables given, not learnt, and the same as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base import canon
from ..base.arrays import Floats
from ..base.errors import ModelFileError, SettingsError, excerpt, warn
from ..data.schema import Column, Schema
from ..families import Belief
from ..families.forms import TableForm, WordsForm
from ..families.plain import of_table
from ..families.settings import MOST_OFF_ONE, Settings
from ..families.smoothing import OTHER, Dirichlet

if TYPE_CHECKING:
    from .model import Model

Tables = Mapping[str, Mapping[Any, Mapping[Any, float]]]  # column → class → value → probability


def written_tables(tables: Tables, classes: tuple[str, ...]) -> dict[str, dict[str, Floats]]:
    """By column and value, the probability in each class; a value that some class lacks is left out with a warning."""
    out: dict[str, dict[str, Floats]] = {}
    for column, by_class in tables.items():
        given = {str(canon.text(c)): {str(canon.text(v)): float(p) for v, p in t.items()} for c, t in by_class.items()}
        if set(given) != set(classes):
            raise SettingsError(
                f"the table of {column!r} is for the classes {excerpt(sorted(given))}",
                hint=f"give one table for each of {excerpt(classes, 20)}.",
            )
        for c, table in given.items():
            bad = [v for v, p in table.items() if not 0 <= p <= 1]
            total = sum(table.values())
            if bad or total > 1 + MOST_OFF_ONE:
                raise SettingsError(
                    f"P({bad[0]!r} given {c!r}) is {table[bad[0]]!r} in the table of {column!r}"
                    if bad
                    else f"the probabilities of {column!r} given {c!r} add up to {total:g}",
                    hint="give probabilities from 0 to 1 that add up to at most one.",
                )
        values = sorted({v for t in given.values() for v in t})
        partial = [v for v in values if any(v not in t for t in given.values())]
        if partial:
            warn(
                f"{column!r}: {excerpt(partial)} has no probability in some class and is taken as no evidence. "
                "Hint: write 0 if it cannot happen there."
            )
        kept = [v for v in values if v not in partial]
        out[str(column)] = {v: np.array([given[c][v] for c in classes]) for v in kept}
    return out


def written_schema(tables: Mapping[str, Mapping[str, Floats]], kinds: Mapping[str, str], target: str) -> Schema:
    """The schema of a written model: categories, unless `kinds` says "bag"."""
    wrong = {c: k for c, k in kinds.items() if c not in tables or k not in ("category", "bag")}
    if wrong:
        column, kind = next(iter(wrong.items()))
        raise SettingsError(
            f"kinds={{{column!r}: {kind!r}}}",
            hint="name columns that have a table, with the kind 'category' or 'bag'.",
        )
    columns = [
        Column(c, "bag", reason="written by hand")
        if kinds.get(c) == "bag"
        else Column(c, "category", values=tuple(t), reason="written by hand")
        for c, t in tables.items()
    ]
    return Schema(columns, target=target)


def fixed_beliefs(schema: Schema, tables: Mapping[str, Mapping[str, Floats]], n_classes: int) -> dict[str, Belief]:
    """Beliefs that are just what was written."""
    out: dict[str, Belief] = {}
    for column in schema.counted:
        table = tables[column.name]
        values = tuple(table)
        p = np.array(list(table.values())).reshape(len(values), n_classes)
        out[column.name] = of_table(values, p, words=column.kind == "bag")
    return out


def strong_settings(
    prior: Mapping[str, float], tables: Mapping[str, Mapping[str, Floats]], strength: float
) -> Settings:
    """The same as a Dirichlet prior worth `strength` rows: to be added to counts."""
    if not strength > 0:
        raise SettingsError(f"strength={strength!r}", hint="say how many rows the written model is worth: above 0.")
    smoothing = {}
    for column, table in tables.items():
        amounts: dict[object, object] = {}
        for i, (c, share) in enumerate(prior.items()):
            written = {v: strength * share * float(p[i]) for v, p in table.items()}
            rest = strength * share * max(1.0 - sum(float(p[i]) for p in table.values()), 0.0)
            amounts[c] = {**written, OTHER: rest} if rest > 1e-9 * strength else written
        smoothing[column] = Dirichlet(amounts)
    return Settings(prior=Dirichlet({c: strength * p for c, p in prior.items()}), smoothing=smoothing)


def written_to_json(model: Model) -> dict[str, Any]:
    """The classes, log P(class) and P(value given class) of every column, to the last bit."""
    columns = {}
    for name, belief in model.beliefs.items():
        if not isinstance(belief.form(), (TableForm, WordsForm)):
            raise SettingsError(
                f"the model has no tally, and column {name!r} is no written table",
                hint="save models that come from tally.model(), tb.fit or tb.Model.written.",
            )
        table = belief.table()
        columns[name] = [[v, p] for v, p in zip(table.rows, table.values.tolist(), strict=True)]
    return {
        "classes": [str(canon.text(c)) for c in model.classes],
        "log_prior": [v if math.isfinite(v) else None for v in model.log_prior.tolist()],  # null: P(class) = 0
        "columns": columns,
    }


def written_from_json(schema: Schema, settings: Settings, given: Any) -> Model:
    """The inverse of `written_to_json`."""
    from .model import Model

    try:
        labels = canon.labels_of(given["classes"], schema.label_type)
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
