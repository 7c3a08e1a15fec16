"""The scales of a nomogram: what each value of each column adds for a class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.arrays import Floats
from ...base.canon import number_text
from ...data.blocks import Codes, Numbers
from ...families.words import WordsBelief
from ...model import scorer
from ..changes import counted_numbers
from .columns import class_counts, telling
from .evidence import NomogramDisplay, Scale

if TYPE_CHECKING:
    from ...model.model import Model

_QUANTILES = (0.0, 0.02, 0.1, 0.25, 0.5, 0.75, 0.9, 0.98, 1.0)
_MOST_VALUES = 14


def nomogram(model: Model, label: Any, against: Any, most: int) -> NomogramDisplay:
    """The scales of the columns that spread most, by how much their points vary."""
    order = np.argsort(-model.log_prior, kind="stable").tolist()
    two = len(model.classes) == 2
    at = (1 if two else order[0]) if label is None else model.class_number(label)
    other = model.class_number(against) if against is not None else (1 - at if two else None)
    scales = [s for name in model.beliefs if (s := _scale(model, name, at, other)) is not None]
    scales.sort(key=lambda s: -_reach(s.points))
    prior = float(_against(model.start[None, :], at, other)[0])
    name = "all classes on average" if other is None else str(model.classes[other])
    return NomogramDisplay(
        str(model.classes[at]), name, scales[:most], prior, other is not None, max(len(scales) - most, 0)
    )


def _reach(points: Floats) -> float:
    known = points[np.isfinite(points)]
    return float(known.max() - known.min()) if len(known) else 0.0


def _against(parts: Floats, at: int, other: int | None) -> Floats:
    """Points of a class against another, or against the mean of all classes."""
    with np.errstate(invalid="ignore"):
        return np.nan_to_num(parts[:, at] - (parts.mean(axis=1) if other is None else parts[:, other]), nan=0.0)


def _scale(model: Model, name: str, at: int, other: int | None) -> Scale | None:
    """Values of a column with their points; of a text the words that say most; none for what has no values to name."""
    kind, belief = model.schema[name].kind, model.beliefs[name]
    factor = model.settings.weights.get(name, 1.0)
    if kind == "number":
        x = _places(model, name)
        if not len(x):
            return None
        points = _against(belief.parts(Numbers(x, model.schema[name].cells)), at, other)
        values = [number_text(float(f"{v:.4g}")) for v in x]
    elif kind == "category":
        values = list(getattr(belief, "values", ()))
        if not values:
            return None
        points = _against(belief.parts(Codes(values, np.arange(len(values)))), at, other)
        if len(values) > _MOST_VALUES:
            kept = np.argsort(-np.abs(points), kind="stable")[:_MOST_VALUES]
            values, points = [values[i] for i in kept], points[kept]
    elif isinstance(belief, WordsBelief):
        rows = {w: i for i, w in enumerate(belief.words)}
        sides = [at] if other is None else [at, other]
        values = list(dict.fromkeys(r.value for y in sides for r in telling(model, name, y, 7) if r.value in rows))
        if not values:
            return None
        points = _against(belief.weights[[rows[v] for v in values]], at, other)
        factor = float(scorer.by_length(model.settings, name, np.array(float(belief.length.mean()))))  # of a usual text
    else:
        return None
    return Scale(name, values, factor * points) if factor else None


def _places(model: Model, name: str) -> Floats:
    """Numbers to name: all of a few, or quantiles of what was counted."""
    x = counted_numbers(model, name)
    if len(x) <= 9 or model.tally is None or "cells" not in model.tally.columns[name].sheets:
        return x[:: max(len(x) // 9, 1)]
    cells = model.schema[name].cells
    assert cells is not None
    from ...families.histogram import middles

    slots, n = class_counts(model, name, "cells")
    places = middles(*cells.edges(cells.slot_codes(slots)))
    order = np.argsort(places)
    below = np.cumsum(n.sum(axis=1)[order])
    at = np.searchsorted(below / below[-1], _QUANTILES)
    return np.unique(places[order][np.minimum(at, len(order) - 1)])
