"""A rising curve from the score of two classes to their probability, where one temperature is not enough."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ..base.arrays import Floats
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
