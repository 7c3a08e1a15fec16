"""From parts to answers: S = b + Σ w·part, then log-sum-exp. NumPy only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .block import Block
from .errors import warn
from .numerics import Floats, log_sum_exp
from .settings import Settings


def factor(settings: Settings, column: str, block: Block) -> float | Floats:
    """What a column's evidence is multiplied by: its weight, and for words tokens^exponent of each row."""
    weight = settings.weights.get(column, 1.0)
    exponent = settings.lengths.get(column, 0.0)
    if exponent == 0.0 or not hasattr(block, "lengths"):  # only words have
        return weight
    out: Floats = weight * np.maximum(block.lengths(), 1.0) ** exponent
    return out


def scores(log_prior: Floats, parts: Mapping[str, Floats], settings: Settings, blocks: Mapping[str, Block]) -> Floats:
    """log P(class) + Σ factor · part, rows × classes."""
    rows = next((len(p) for p in parts.values()), 0)
    out = np.tile(log_prior, (rows, 1))
    for column, part in parts.items():
        by = factor(settings, column, blocks[column])
        if isinstance(by, np.ndarray):
            out += by[:, None] * part
        elif by != 0:  # 0 · −inf would be NaN; a weight of 0 means that the column is not asked
            out += part if by == 1.0 else by * part
    return out


def log_posterior(joint: Floats, log_prior: Floats) -> Floats:
    """log P(class given row). Where every class is impossible the prior answers, with a warning.

    The prior is one for all rows, or rows × classes.
    """
    top = np.max(joint, axis=1, keepdims=True)
    impossible = ~np.isfinite(top[:, 0])
    above: Floats = joint - np.where(impossible[:, None], 0.0, top)  # first, or a score of −1e300 swallows the rest
    out: Floats = above - np.where(impossible, 0.0, log_sum_exp(above))[:, None]
    if impossible.any():
        prior = np.broadcast_to(log_prior, joint.shape)[impossible]
        out[impossible] = prior - log_sum_exp(prior)[:, None]
        warn(
            f"every class has probability 0 for {int(impossible.sum())} row(s), the first is row "
            f"{int(np.argmax(impossible))}: the prior answers. Hint: smooth the counts, e.g. "
            "tally.model(tb.Settings(smoothing=tb.Laplace(1.0)))."
        )
    return out
