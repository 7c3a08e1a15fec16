"""Curves of one class against the rest: ROC, precision against recall, reliability with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import ndtri

from ...base.arrays import Floats, Ints
from ...base.errors import SettingsError
from .metrics import BINS, Scored


@dataclass(frozen=True)
class Curve:
    """Points of a curve, from the strictest threshold to the laxest; `threshold` is the probability asked for."""

    x: Floats
    y: Floats
    threshold: Floats
    names: tuple[str, str]


@dataclass(frozen=True)
class Reliability:
    """How often forecasts come true: per bin the mean probability, the share that was right, its interval, its rows."""

    forecast: Floats
    observed: Floats
    low: Floats
    high: Floats
    rows: Floats

    def __repr__(self) -> str:
        lines = ["forecast  observed          95 % interval    rows"]
        for f, o, a, b, n in zip(self.forecast, self.observed, self.low, self.high, self.rows, strict=True):
            lines.append(f"{f:8.3f}  {o:8.3f}  {a:9.3f} to {b:6.3f}  {n:7,.0f}")
        return "\n".join(lines)


def _steps(labels: Any, p: Any, label: int, weights: Any) -> tuple[Floats, Floats, Floats]:
    """Weight of the class and of the rest at or above each distinct probability, falling, and that probability."""
    s = Scored.of(labels, p, weights)
    order, starts, own = s.ranked(label)
    drawn = s.weights[order]
    inside = np.cumsum(np.add.reduceat(drawn * own, starts))
    outside = np.cumsum(np.add.reduceat(drawn * (1.0 - own), starts))
    return inside, outside, s.p[order[starts], label]


def roc_curve(labels: Any, p: Any, label: int = 1, weights: Any = None) -> Curve:
    """The share of other classes let in against the share of the class found, at every threshold."""
    inside, outside, threshold = _steps(labels, p, label, weights)
    if inside[-1] == 0 or outside[-1] == 0:
        raise SettingsError(
            f"a ROC curve needs rows of class number {label} and rows of another",
            hint="measure on rows that have both.",
        )
    x, y = np.concatenate(([0.0], outside / outside[-1])), np.concatenate(([0.0], inside / inside[-1]))
    return Curve(x, y, np.concatenate(([np.inf], threshold)), ("false positive rate", "true positive rate"))


def precision_recall_curve(labels: Any, p: Any, label: int = 1, weights: Any = None) -> Curve:
    """Recall against precision at every threshold."""
    inside, outside, threshold = _steps(labels, p, label, weights)
    if inside[-1] == 0:
        raise SettingsError(f"no row is of class number {label}", hint="measure on rows that have the class.")
    return Curve(inside / inside[-1], inside / (inside + outside), threshold, ("recall", "precision"))


def wilson(right: Floats, rows: Floats, level: float = 0.95) -> tuple[Floats, Floats]:
    """Wilson's interval of a share: inside 0 to 1, and of some width even where all rows agree.

    >>> [round(float(v), 4) for v in wilson(np.array(8.0), np.array(10.0))]
    [0.4902, 0.9433]
    """
    z = float(ndtri(0.5 + level / 2))
    n = np.maximum(rows, 1e-300)
    share = right / n
    middle = (share + z * z / (2 * n)) / (1 + z * z / n)
    half = z / (1 + z * z / n) * np.sqrt(share * (1 - share) / n + (z / (2 * n)) ** 2)
    return np.clip(middle - half, 0.0, 1.0), np.clip(middle + half, 0.0, 1.0)


def reliability(
    labels: Any, p: Any, label: int | None = None, weights: Any = None, *, bins: int = BINS, level: float = 0.95
) -> Reliability:
    """The reliability curve of the top class (label=None) or of one class, over equally wide bins that hold rows.

    With weights the interval is Wilson's of the effective number of rows, (Σw)²/Σw².
    """
    s = Scored.of(labels, p, weights)
    forecast = s.top if label is None else s.p[:, label]
    right = s.hit if label is None else (s.labels == label).astype(np.float64)
    at = np.clip(np.ceil(forecast * bins) - 1, 0, bins - 1).astype(np.int64)
    w = s.weights
    n, square, hits, said = (_by_bin(at, bins, v) for v in (w, w * w, w * right, w * forecast))
    there = n > 0
    n, square, hits, said = n[there], square[there], hits[there], said[there]
    low, high = wilson(hits / n * (n * n / square), n * n / square, level)
    return Reliability(said / n, hits / n, low, high, n)


def _by_bin(at: Ints, bins: int, values: Floats) -> Floats:
    return np.asarray(np.bincount(at, weights=values, minlength=bins), dtype=np.float64)
