"""A model written down by a person: priors and tables given, not learnt."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base import canon
from ..base.arrays import Floats
from ..base.errors import SettingsError, excerpt, warn
from ..data.schema import Column, Schema
from ..families import Belief
from ..families.categorical import CategoricalBelief
from ..families.settings import Settings
from ..families.smoothing import OTHER, Dirichlet
from ..families.words import MultinomialBelief

Tables = Mapping[str, Mapping[Any, Mapping[Any, float]]]  # column → class → value → probability
_MOST_OFF = 0.02


def prior_probabilities(prior: Mapping[Any, float], classes: tuple[str, ...] | None = None) -> dict[str, float]:
    """A given prior by canonical class, summing to one; within 0.02 of one it is normalised with a warning."""
    given = {str(canon.text(c)): float(p) for c, p in prior.items()}
    if classes is not None and set(given) != set(classes):
        unknown, without = sorted(set(given) - set(classes)), sorted(set(classes) - set(given))
        raise SettingsError(
            "the prior " + " and ".join(
                ([f"names unknown classes {excerpt(unknown)}"] if unknown else [])
                + ([f"has nothing for {excerpt(without)}"] if without else [])
            ),
            hint=f"give a probability for each of {excerpt(classes, 20)}.",
        )  # fmt: skip
    bad = [c for c, p in given.items() if not 0 <= p <= 1]
    total = sum(given.values())
    if bad or not given or abs(total - 1) > _MOST_OFF:
        raise SettingsError(
            f"the prior of {bad[0]!r} is {given[bad[0]]!r}" if bad else f"the priors add up to {total:g}, not 1",
            hint="give probabilities from 0 to 1 that add up to one.",
        )
    if abs(total - 1) > 1e-9:
        warn(f"the priors add up to {total:g} and were divided by that")
    return {c: p / total for c, p in given.items()}


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
            if bad or total > 1 + _MOST_OFF:
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
        if column.kind == "bag":
            out[column.name] = MultinomialBelief(values, p, False, np.full(n_classes, 10.0))
        else:
            out[column.name] = CategoricalBelief(values, p)
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
