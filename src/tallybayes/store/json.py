"""A scorer as JSON: every number that answers need, laid out so that a short program in any language can score.

    score(class) = log_prior[class] + Σ over columns: weight · part[class];  a missing value's part is 0
    bent(class)  = best + scale · lead^exponent · (score − best)             where there is a "lead"
    P(class)     = exp(bent − log Σ exp(bent))

How each form of column makes its part is said in docs/model_file.md. Minus infinity is written as null.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from ..base import canon
from ..base.errors import SettingsError
from ..data.pairs import PairColumn, stretch_names
from ..data.schema import Column, Schema
from ..families.calibration import LEAST
from ..families.forms import BlendForm, Form, PairForm
from .sealed import Sealed

VERSION = 1
_SAID = {"classes", "weights", "lengths", "lead", "offsets"}  # what a scorer states, offsets with where it starts


def pieces(sealed: Sealed, format: str) -> list[dict[str, Any]]:
    """What each column needs to be scored, as plain texts, numbers and arrays; refused if a setting cannot be said."""
    settings = sealed._model.settings
    for name in settings.without(estimated=True).changed():
        if name not in _SAID:
            raise SettingsError(
                f"the model has the setting {name!r}, which {format} cannot say",
                hint="export the model as 'sealed', or estimate it without this setting.",
            )
    out = []
    for name, belief in sealed._model.beliefs.items():
        column = sealed.schema[name]
        if column.only_here:
            raise SettingsError(
                f"column {name!r} is a {column.kind}, which is read by code that {format} does not hold",
                hint="export the model as 'sealed' and load it where the kind is registered.",
            )
        piece: dict[str, Any] = {
            "name": name,
            "reads": column.reads,
            "kind": column.kind,
            **({} if column.part is None else {"part": column.part}),
            "missing": sorted({*sealed.schema.missing, *column.missing}),
            **_spelling(column),
            **({"of": _side(column.of[0], sealed.schema)} if column.of is not None and column.kind == "gap" else {}),
            "weight": float(settings.weights.get(name, 1.0)),
            **({"length_exponent": float(settings.lengths[name])} if name in settings.lengths else {}),
            **({} if column.text is None else {"tokens": asdict(column.text)}),
        }
        said = belief.form()
        out.append({**piece, **(_pair(said, column, sealed.schema) if isinstance(said, PairForm) else _numbers(said))})
    return out


def _numbers(form: Form) -> dict[str, Any]:
    """The name of a form and its numbers; logs are natural, the last axis is the class."""
    if isinstance(form, BlendForm):
        return {"form": form.name, "most": form.most, "parts": [{"share": s, **_numbers(f)} for s, f in form.parts]}
    said = {f.name: getattr(form, f.name) for f in fields(form) if f.metadata.get("said", True)}  # type: ignore[arg-type]
    return {"form": form.name, **{name: value for name, value in said.items() if value is not None}}


def _pair(form: PairForm, column: Column, schema: Schema) -> dict[str, Any]:
    """A table over the places of two values; the places of numbers are the stretches between cuts."""
    assert column.of is not None
    logs, sides = form.logs, []
    for axis, (side, names) in enumerate(zip(column.of, (form.us, form.vs), strict=True)):
        about = _side(side, schema)
        if side.kind == "number":
            known = {name: i for i, name in enumerate(names)}
            order = [known.get(name, len(names)) for name in stretch_names(side.cuts)]
            nothing = np.zeros_like(np.take(logs, [0], axis=axis)) if len(names) else np.zeros((1, 1, logs.shape[2]))
            logs = np.take(np.concatenate([logs, nothing], axis=axis), order, axis=axis)
            sides.append({**about, "cuts": list(side.cuts)})
        elif side.groups:  # several values have one place
            place = {name: i for i, name in enumerate(names)}
            values = {value: place[name] for value, name in side.group_of.items() if name in place}
            sides.append({**about, "values": list(values), "places": list(values.values())})
        else:
            sides.append({**about, "values": list(names)})
    return {"form": form.name, "sides": sides, "logs": logs}


def _side(side: PairColumn, schema: Schema) -> dict[str, Any]:
    """A column that another is made of: by the name it has in the scorer, if it is there."""
    own = (c.name for c in schema.counted if (c.reads, c.part, c.kind) == (side.source, side.part, side.kind))
    here = next(own, side.source if side.part is None else f"{side.source}.{side.part}")
    missing = sorted({*schema.missing, *side.missing})
    return {"name": here, "kind": side.kind, "missing": missing, **_spelling(side)}


def _spelling(column: Column | PairColumn) -> dict[str, Any]:
    """How the texts of a column are read, where they are no plain numbers, ISO dates or values as they stand."""
    return {} if column.spelling is None else {"spelling": column.spelling.to_dict()}


def scorer_json(sealed: Sealed) -> str:
    """The scorer as one JSON object."""
    lead = sealed._model.settings.lead
    out = {
        "tallybayes_scorer": VERSION,
        "target": sealed.schema.target,
        "classes": [str(canon.text(c)) for c in sealed.classes],
        "label_type": sealed.schema.label_type,
        "log_prior": sealed._model.start,
        **({} if lead is None else {"lead": {"scale": lead.scale, "exponent": lead.exponent, "least": LEAST}}),
        "columns": pieces(sealed, "JSON"),
    }
    return json.dumps(_plain(out), allow_nan=False, separators=(",", ":"))


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, float) and not math.isfinite(value):
        if value != -math.inf:
            raise SettingsError(f"a weight of the model is {value}", hint="smooth the counts, e.g. tb.Laplace(1.0).")
        return None
    return value
