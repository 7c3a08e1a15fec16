"""From parts to answers: S = b + Σ w·part, then log-sum-exp. NumPy only."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from .block import Bag, Block
from .errors import warn
from .numerics import Floats, log_sum_exp
from .settings import Settings


def by_length(settings: Settings, column: str, tokens: Floats) -> Floats:
    """What the evidence of a column of words is multiplied by in texts of so many tokens: weight · tokens^exponent."""
    weight = settings.weights.get(column, 1.0)
    return np.asarray(weight * np.maximum(tokens, 1.0) ** settings.lengths.get(column, 0.0), dtype=np.float64)


def factor(settings: Settings, column: str, block: Block) -> float | Floats:
    """What a column's evidence is multiplied by: its weight, and for words tokens^exponent of each row."""
    if settings.lengths.get(column, 0.0) == 0.0 or not isinstance(block, Bag):
        return settings.weights.get(column, 1.0)
    return by_length(settings, column, block.lengths())


def factor_of_one(settings: Settings, column: str, block: Block) -> float:
    """The same for a block of one row."""
    return float(np.max(factor(settings, column, block)))


def scores(
    log_prior: Floats,
    parts: Mapping[str, Floats],
    settings: Settings,
    blocks: Mapping[str, Block],
    own_prior: Floats | None = None,
) -> Floats:
    """log P(class) + Σ factor · part, rows × classes.

    `own_prior` is the one that an isotonic curve was fitted under, where `log_prior` is another.
    """
    rows = next((len(p) for p in parts.values()), 0)
    out = np.tile(log_prior, (rows, 1))
    for column, part in parts.items():
        by = factor(settings, column, blocks[column])
        if isinstance(by, np.ndarray):
            out += by[:, None] * part
        elif by != 0:  # 0 · −inf would be NaN; a weight of 0 means that the column is not asked
            out += part if by == 1.0 else by * part
    if settings.isotonic is None:
        return out
    return bent(settings, out, 0.0 if own_prior is None else prior_shift(log_prior, own_prior))


def prior_shift(log_prior: Floats, own_prior: Floats) -> float:
    """How much another prior moves the log-odds of the second of two classes."""
    with np.errstate(invalid="ignore"):
        return float(np.subtract(log_prior[-1] - log_prior[0], own_prior[-1] - own_prior[0]))


def bent(settings: Settings, joint: Floats, shift: float = 0.0) -> Floats:
    """The scores of two classes along the isotonic curve, if there is one; the likelier class keeps its score.

    The curve belongs to the prior it was fitted under: `shift` is how far another one has moved the log-odds.
    """
    out = joint.copy()
    if settings.isotonic is None or joint.shape[1] != 2:
        return out
    with np.errstate(invalid="ignore"):
        odds = joint[:, 1] - joint[:, 0]
    there = np.isfinite(odds)
    odds = settings.isotonic(odds[there] - shift) + shift
    first, second = joint[there].T
    # not by adding to what may be −1e18: the answer would drown
    out[there, 0] = np.where(second > first, second - odds, first)
    out[there, 1] = np.where(second > first, second, first + odds)
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
