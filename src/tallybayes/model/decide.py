"""From probabilities to decisions: the likeliest class, the cheapest one, or none where it is too unsure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.canon import text
from ..base.errors import SettingsError, did_you_mean, excerpt

UNSURE = -1
_PLAIN = "give every cost as a plain number."


def decide(p: Floats, classes: Sequence[Any], unsure_below: Any = None, costs: Any = None) -> Ints:
    """The number of the class for each row, −1 for unsure.

    With costs the class is taken that is cheapest on average: argmin over answers of Σ P(truth) · cost[truth, answer].
    `unsure_below` looks at the probability of the class that would be answered.
    """
    best = np.argmax(p, axis=1) if costs is None else np.argmin(p @ cost_table(costs, classes), axis=1)
    best = np.asarray(best, dtype=np.int64)
    if unsure_below is None:
        return best
    if isinstance(unsure_below, str) or not 0 <= unsure_below <= 1:
        raise SettingsError(f"unsure_below={unsure_below!r}", hint="take a probability from 0 to 1, e.g. 0.8.")
    return np.where(p[np.arange(len(p)), best] < unsure_below, UNSURE, best)


def cost_table(costs: Any, classes: Sequence[Any]) -> Floats:
    """What each answer costs, truth × answer: from {(truth, answer): cost}, {truth: {answer: cost}} or a matrix.

    Right answers cost 0, and wrong ones that are not named cost 1.

    >>> cost_table({("ham", "spam"): 10}, ["ham", "spam"]).tolist()
    [[0.0, 10.0], [1.0, 0.0]]
    """
    k = len(classes)
    if isinstance(costs, Mapping):
        out = 1.0 - np.eye(k)
        names = [str(text(c)) for c in classes]
        for (truth, answer), cost in _entries(costs):
            out[_at(truth, names), _at(answer, names)] = cost
    else:
        out = _numbers(costs)
        if out.shape != (k, k):
            raise SettingsError(
                f"a cost table of shape {out.shape} for {k} classes",
                hint=f"give {k} × {k} numbers, truth by answer in the order of model.classes, or "
                "{(truth, answer): cost}.",
            )
    if not np.isfinite(out).all():
        raise SettingsError("a cost that is not a finite number", hint=_PLAIN)
    return out


def _entries(costs: Mapping[Any, Any]) -> list[tuple[tuple[Any, Any], float]]:
    out: list[tuple[tuple[Any, Any], float]] = []
    for key, value in costs.items():
        if isinstance(value, Mapping):
            out += [((key, answer), float(_numbers(cost))) for answer, cost in value.items()]
        elif isinstance(key, tuple) and len(key) == 2:
            out.append((key, float(_numbers(value))))
        else:
            raise SettingsError(f"a cost under {key!r}", hint="name the truth and the answer: {('ham', 'spam'): 10}.")
    return out


def _numbers(costs: Any) -> Floats:
    try:
        return np.asarray(costs, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingsError(f"costs that are not numbers: {costs!r}", hint=_PLAIN) from None


def _at(label: Any, names: Sequence[str]) -> int:
    name = str(text(label))
    if name not in names:
        raise SettingsError(
            f"a cost for the class {label!r}, which the model does not have",
            hint=did_you_mean(name, names) + f"the classes are {excerpt(names)}.",
        )
    return list(names).index(name)
