"""A scorer as JSON: every number that answers need, laid out so that a short program in any language can score.

    score(class) = log_prior[class] + Σ over columns: weight · part[class];  a missing value's part is 0
    bent(class)  = best + scale · lead^exponent · (score − best)             where there is a "lead"
    P(class)     = exp(bent − log Σ exp(bent))

How each form of column makes its part is said in docs/model_file.md. Minus infinity is written as null.
"""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import numpy as np

from ..base import canon
from ..base.arrays import Floats, safe_log
from ..base.errors import SettingsError
from ..data.pairs import stretch_names
from ..data.schema import Column, Schema
from ..families.base import Belief
from ..families.blend import MOST, BlendBelief
from ..families.calibration import LEAST
from ..families.categorical import CategoricalBelief
from ..families.gaussian import GaussianBelief, StudentBelief
from ..families.levels import BagLevelsBelief
from ..families.moments import BellBelief
from ..families.pair import InteractionBelief
from ..families.poisson import PoissonBelief
from ..families.presence import BernoulliWordsBelief
from ..families.settings import Settings
from ..families.steps import StepsBelief
from ..families.words import WordsBelief
from .sealed import Sealed

VERSION = 1
_SAID = {"weights", "lengths", "lead", "offsets"}  # settings that a scorer states, offsets with where it starts


def check_settings(sealed: Sealed, form: str) -> Settings:
    """The settings, if an export in this form can say all of them."""
    settings = sealed._model.settings
    for name in settings.without(estimated=True).changed():
        if name not in _SAID:
            raise SettingsError(
                f"the model has the setting {name!r}, which {form} cannot say",
                hint="export the model as 'sealed', or estimate it without this setting.",
            )
    return settings


def pieces(sealed: Sealed, form: str) -> list[dict[str, Any]]:
    """What each column needs to be scored, as plain texts, numbers and arrays."""
    settings = check_settings(sealed, form)
    out = []
    for name, belief in sealed._model.beliefs.items():
        column = sealed.schema[name]
        if column.only_here:
            raise SettingsError(
                f"column {name!r} is a {column.kind}, which is read by code that {form} does not hold",
                hint="export the model as 'sealed' and load it where the kind is registered.",
            )
        piece: dict[str, Any] = {
            "name": name,
            "reads": column.reads,
            "kind": column.kind,
            **({} if column.part is None else {"part": column.part}),
            "missing": sorted({*sealed.schema.missing, *column.missing}),
            "weight": float(settings.weights.get(name, 1.0)),
            **({"length_exponent": float(settings.lengths[name])} if name in settings.lengths else {}),
            **({} if column.text is None else {"tokens": asdict(column.text)}),
        }
        pair = _pair(belief, column, sealed.schema) if isinstance(belief, InteractionBelief) else None
        out.append({**piece, **(pair or _numbers(belief, column))})
    return out


def _numbers(belief: Belief, column: Column) -> dict[str, Any]:
    """The form of a column and its numbers; logs are natural, the last axis is the class."""
    if isinstance(belief, CategoricalBelief):
        log = safe_log(belief.probabilities)
        unseen = log[-1] if belief.reserve else np.zeros(log.shape[1])
        return {"form": "table", "values": list(belief.values), "logs": log[: len(belief.values)], "unseen": unseen}
    if isinstance(belief, BlendBelief):
        each = zip(belief.shares, belief.beliefs, strict=True)
        return {"form": "blend", "most": MOST, "parts": [{"share": float(s), **_numbers(b, column)} for s, b in each]}
    if isinstance(belief, StepsBelief):
        return {"form": "steps", "starts": belief.starts, "logs": belief.logs}
    if isinstance(belief, BellBelief):
        at = np.flatnonzero(belief.varies)
        shape: dict[str, Floats] = {"location": belief.location[at], "scale": belief.scale[at]}
        if isinstance(belief, StudentBelief):
            shape["freedom"] = belief.freedom[at]
        form = "normal" if isinstance(belief, GaussianBelief) else "student"
        return {"form": form, **({"positions": belief.positions[at]} if column.kind == "vector" else {}), **shape}
    if isinstance(belief, PoissonBelief):
        return {"form": "poisson", "rate": belief.shape / belief.rate}
    if isinstance(belief, BernoulliWordsBelief):
        present, absent = safe_log(belief.present), safe_log(belief.absent)
        return {"form": "presence", "words": list(belief.words), "present": present, "absent": absent}
    if isinstance(belief, BagLevelsBelief):
        return {"form": "levels", "words": list(belief.words), "logs": safe_log(belief.probabilities)}
    if isinstance(belief, WordsBelief):
        n = len(belief.words)
        unseen = belief.weights[n] if belief.reserve else np.zeros(belief.weights.shape[1])
        weights = {"words": list(belief.words), "logs": belief.weights[:n], "unseen": unseen}
        return {"form": "words", "once": belief.presence, **weights}
    raise SettingsError(
        f"column {column.name!r} is believed by a {type(belief).__name__}, which no export knows",
        hint="take one of tallybayes' own families for this column.",
    )


def _pair(belief: InteractionBelief, column: Column, schema: Schema) -> dict[str, Any]:
    """A table over the places of two values; the places of numbers are the stretches between cuts."""
    assert column.of is not None
    logs, sides = belief.log, []
    for axis, (side, names) in enumerate(zip(column.of, (belief.us, belief.vs), strict=True)):
        own = (c.name for c in schema.counted if (c.reads, c.part, c.kind) == (side.source, side.part, side.kind))
        here = next(own, side.source if side.part is None else f"{side.source}.{side.part}")
        about = {"name": here, "kind": side.kind, "missing": sorted({*schema.missing, *side.missing})}
        if side.kind == "number":
            known = {name: i for i, name in enumerate(names)}
            order = [known.get(name, len(names)) for name in stretch_names(side.cuts)]
            nothing = np.zeros_like(np.take(logs, [0], axis=axis)) if len(names) else np.zeros((1, 1, logs.shape[2]))
            logs = np.take(np.concatenate([logs, nothing], axis=axis), order, axis=axis)
            sides.append({**about, "cuts": list(side.cuts)})
        else:
            sides.append({**about, "values": list(names)})
    return {"form": "pair", "sides": sides, "logs": logs}


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
