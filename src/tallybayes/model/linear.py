"""The linear view: the W, b and centre with which a model is a softmax of a weighted sum."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.arrays import Floats, log_sum_exp
from ..base.errors import SettingsError
from ..data.blocks import Block
from ..families import Belief, Linear


@dataclass(frozen=True)
class LinearView:
    """softmax(W·(x − centre) + b) = P(class given x), for rows without missing numbers.

    For two classes: P(first) = 1/(1 + exp(−z)) with z = w·(x − centre) + c, w = W[0] − W[1] and c = b[0] − b[1].
    The centre is each number column's mean: about the origin an offset of 1e8 would drown the digits that matter.
    """

    classes: tuple[Any, ...]
    names: tuple[str, ...]  # of the features
    W: Floats  # classes × features
    b: Floats  # classes
    centre: Floats  # features
    _columns: Mapping[str, Linear] = field(repr=False)
    _read: Callable[[Any], list[dict[str, Block]]] = field(repr=False)

    def features(self, rows: Any) -> Floats:
        """x for each row: numbers as they are, a one for the value a category has, the counts of a bag."""
        out = []
        for blocks in self._read(rows):
            none = np.zeros((next((b.rows for b in blocks.values()), 0), 0))
            out.append(np.hstack([none, *(part.features(blocks[n]) for n, part in self._columns.items())]))
        return np.concatenate(out)

    def predict_proba(self, rows: Any) -> Floats:
        """softmax(W·(x − centre) + b)."""
        x = self.features(rows)
        if np.isnan(x).any():
            row, at = (int(i) for i in np.argwhere(np.isnan(x))[0])
            raise SettingsError(
                f"row {row} (the first is row 0) has no value for {self.names[at]!r}, and a weighted sum needs one",
                hint="use model.predict_proba, which leaves missing columns out.",
            )
        score = (x - self.centre) @ self.W.T + self.b
        return np.exp(score - log_sum_exp(score)[:, None])


def linear_view(
    log_prior: Floats,
    beliefs: Mapping[str, Belief],
    weights: Mapping[str, float],
    classes: tuple[Any, ...],
    read: Callable[[Any], list[dict[str, Block]]],
) -> LinearView:
    """The view of a whole model, or an error that names the column without one."""
    parts: dict[str, Linear] = {}
    for name, belief in beliefs.items():
        part = belief.linear()
        if part is None or not np.isfinite(part.weights).all():
            raise SettingsError(
                f"column {name!r} has no linear view under its family and smoothing",
                hint="a Gaussian needs a shared variance ('gaussian-shared'), a table smoothing without zeros; "
                "Student-t, kernel and the predictive forms have none.",
            )
        parts[name] = part
    scale = {n: weights.get(n, 1.0) for n in parts}
    names = tuple(f"{n}={f}" if f else n for n, p in parts.items() for f in p.names)
    w = np.hstack([np.zeros((len(classes), 0)), *(scale[n] * p.weights for n, p in parts.items())])
    b = log_prior + sum((scale[n] * p.offset for n, p in parts.items()), np.zeros(len(classes)))
    centre = np.concatenate([np.zeros(0), *(p.centre for p in parts.values())])
    return LinearView(classes, names, w, b, centre, parts, read)
