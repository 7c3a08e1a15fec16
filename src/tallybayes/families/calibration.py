"""What a whole score is bent by where one temperature is not enough: `Isotonic`, `MarginScaling`.

`Isotonic` is a rising curve from the score of two classes to their log-odds. `MarginScaling` bends the lead, how far
the best class is ahead of the second, for scores that are too sure when far ahead, or not sure enough:

    S′ = best + scale · lead^exponent · (S − best)          lead = best − second, at least 0.01

All classes keep their order. A temperature is the case of exponent 0; with an exponent of −½ a lead of 16 nats counts
twice what a lead of 4 does, not four times.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.errors import SettingsError


@dataclass(frozen=True)
class Isotonic:
    """Log-odds of the second class as a rising line through points: (score, calibrated log-odds)."""

    scores: tuple[float, ...]
    odds: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in pairwise(self.scores)) and all(a <= b for a, b in pairwise(self.odds))
        if not self.scores or len(self.scores) != len(self.odds) or not rising or not np.isfinite(self.odds).all():
            raise SettingsError(
                f"an isotonic curve of {len(self.scores)} scores and {len(self.odds)} log-odds that do not rise",
                hint="fit one: tb.fit(data, target, calibrate='isotonic').",
            )

    @classmethod
    def fitted(cls, scores: Floats, second: Floats, weights: Floats) -> Isotonic:
        """The curve that held-out rows support: pool adjacent violators, each pool shrunk by half a row each way."""
        from scipy.optimize import isotonic_regression

        s, at = np.unique(scores, return_inverse=True)  # equal scores are one point, whatever their order
        w = np.bincount(at, weights)
        y = np.bincount(at, weights * second) / w
        starts = isotonic_regression(y, weights=w).blocks
        pool = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        rows = np.bincount(pool, w)
        middle = np.bincount(pool, w * s) / rows
        p = np.maximum.accumulate((np.bincount(pool, w * y) + 0.5) / (rows + 1))
        keep = np.concatenate(([True], np.diff(middle) > 0))  # rounding may make neighbours equal
        return cls(tuple(middle[keep].tolist()), tuple(np.log(p / (1 - p))[keep].tolist()))

    def __call__(self, score: Floats) -> Floats:
        """The calibrated log-odds; beyond the ends the curve stays level."""
        return np.interp(score, self.scores, self.odds)


LEAST = 0.01  # nats: a smaller lead is taken as this one
_MOST_BENT = 0.9  # of the exponent either way: at −1 every lead would count the same


@dataclass(frozen=True)
class MarginScaling:
    """What the distances to the best class are multiplied by: scale · lead^exponent."""

    scale: float = 1.0
    exponent: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.scale < np.inf and -1 < self.exponent < np.inf):
            raise SettingsError(
                f"a lead with scale {self.scale!r} and exponent {self.exponent!r}",
                hint="the scale is above 0 and the exponent above -1, or a larger lead would not be a surer answer.",
            )

    def factor(self, joint: Floats) -> Floats:
        """scale · lead^exponent of each row; 1 where fewer than two classes are possible."""
        two = np.partition(joint, -2, axis=1)[:, -2:] if joint.shape[1] > 1 else np.full((len(joint), 2), -np.inf)
        known = np.isfinite(two).all(axis=1)
        lead = np.subtract(two[:, 1], two[:, 0], out=np.ones(len(joint)), where=known)
        return np.where(known, self.scale * np.maximum(lead, LEAST) ** self.exponent, 1.0)

    def __call__(self, joint: Floats) -> Floats:
        """The scores, rows × classes, with every distance to the best class multiplied; the best keeps its own."""
        best = joint.max(axis=1, keepdims=True)
        apart = np.subtract(joint, best, out=np.full_like(joint, -np.inf), where=np.isfinite(joint))
        return np.asarray(np.where(np.isfinite(best), best + self.factor(joint)[:, None] * apart, joint))

    @classmethod
    def fitted(cls, scores: Floats, labels: Ints, weights: Floats) -> MarginScaling:
        """The bend under which held-out rows are likeliest; a weak pull leads to none at all."""
        from scipy.optimize import minimize

        apart = scores - scores.max(axis=1, keepdims=True)
        log_lead = np.log(np.maximum(-np.partition(apart, -2, axis=1)[:, -2], LEAST))
        own = apart[np.arange(len(labels)), labels]
        total = max(float(weights.sum()), 1.0)

        def loss(x: Floats) -> tuple[float, Floats]:
            factor = np.exp(x[0] + x[1] * log_lead)
            e = np.exp(factor[:, None] * apart)
            among = e.sum(axis=1)
            pulled = weights * factor * (np.einsum("nc,nc->n", e, apart) / among - own)
            value = weights @ (np.log(among) - factor * own) + 0.5 * x @ x
            return value / total, (np.array([pulled.sum(), pulled @ log_lead]) + x) / total

        found = minimize(
            loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(-5.0, 5.0), (-_MOST_BENT, _MOST_BENT)]
        )
        return cls(float(np.exp(found.x[0])), float(found.x[1]))


Lead = MarginScaling  # its first name, by which files know it
