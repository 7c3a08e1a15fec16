"""From parts to answers: S = b + Σ w·part, then log-sum-exp. NumPy only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .block import Block
from .errors import warn
from .numerics import Floats, log_sum_exp
from .settings import Settings


def factor(settings: Settings, column: str, block: Block | None) -> float:
    """What the evidence of a column is multiplied by in one row (a block of one; None: in any row): its weight."""
    return float(settings.weights.get(column, 1.0))


def scores(log_prior: Floats, parts: Mapping[str, Floats], weights: Mapping[str, float], rows: int) -> Floats:
    """log P(class) + Σ weight · part, rows × classes."""
    out = np.tile(log_prior, (rows, 1))
    for column, part in parts.items():
        weight = weights.get(column, 1.0)
        if weight != 0:  # 0 · −inf would be NaN; a weight of 0 means that the column is not asked
            out += part if weight == 1.0 else weight * part
    return out


def log_posterior(joint: Floats, log_prior: Floats) -> Floats:
    """log P(class given row). Where every class is impossible the prior answers, with a warning."""
    top = np.max(joint, axis=1, keepdims=True)
    impossible = ~np.isfinite(top[:, 0])
    above: Floats = joint - np.where(impossible[:, None], 0.0, top)  # first, or a score of −1e300 swallows the rest
    out: Floats = above - np.where(impossible, 0.0, log_sum_exp(above))[:, None]
    if impossible.any():
        out[impossible] = log_prior - log_sum_exp(log_prior)
        warn(
            f"every class has probability 0 for {int(impossible.sum())} row(s), the first is row "
            f"{int(np.argmax(impossible))}: the prior answers. Hint: smooth the counts, e.g. "
            "tally.model(tb.Settings(smoothing=tb.Laplace(1.0)))."
        )
    return out
