"""Scores by class: what matters of them, and what a row loses by them.

Two classes need one number for each row, the log-odds of the second.
"""

from __future__ import annotations

import numpy as np

from ...base.arrays import Floats, Ints

_SHORT = 8  # classes: NumPy takes long over many rows of fewer, and adds them one after the other


def against_first(logs: Floats) -> Floats:
    """Logs by class as what matters of them: log-odds of two classes, or the distance from their mean."""
    if logs.shape[-1] == 2:
        return np.ascontiguousarray(logs[..., 1:] - logs[..., :1])
    if logs.shape[-1] >= _SHORT:
        return np.asarray(logs - logs.mean(axis=-1, keepdims=True))
    mean = in_turn(logs) / logs.shape[-1]  # in the order in which NumPy adds few, which takes it long
    return np.asarray(logs - mean[..., None])


def both_classes(scores: Floats, n_classes: int) -> Floats:
    """The inverse, up to what all classes share: a number for every class."""
    if n_classes == 2 and scores.shape[-1] == 1:
        return np.concatenate([-scores / 2, scores / 2], axis=-1)
    return scores


def in_turn(amounts: Floats) -> Floats:
    """The sum over the last axis, added from the first to the last, as a kernel does."""
    out = amounts[..., 0].copy()
    for y in range(1, amounts.shape[-1]):
        out += amounts[..., y]
    return out


def largest(scores: Floats) -> Floats:
    """The largest of each row."""
    if scores.shape[1] >= _SHORT:
        return np.asarray(scores.max(axis=1))
    top = scores[:, 0]
    for y in range(1, scores.shape[1]):
        top = np.maximum(top, scores[:, y])
    return top


def log_sum(scores: Floats) -> Floats:
    """log Σ exp(score) of each row."""
    top = largest(scores)
    if scores.shape[1] >= _SHORT:
        return np.asarray(top + np.log(np.exp(scores - top[:, None]).sum(axis=1)))
    return np.asarray(top + np.log(in_turn(np.exp(scores - top[:, None]))))


def posterior(scores: Floats, labels: Ints) -> tuple[Floats, Floats]:
    """−log P(own class) of each row, and P − 1[own class]."""
    n, width = scores.shape
    if width == 1:
        odds = scores[:, 0]
        small = np.exp(-np.abs(odds))
        p = np.where(odds > 0, 1 / (1 + small), small / (1 + small))
        second = labels == 1
        losses = np.log1p(small) + np.where((odds > 0) != second, np.abs(odds), 0.0)
        return losses, (p - second)[:, None]
    at = np.arange(n)
    own = scores[at, labels]
    top = largest(scores)
    p = np.exp(scores - top[:, None])
    total = in_turn(p)
    p /= total[:, None]
    p[at, labels] -= 1.0
    return np.log(total) + top - own, p


def error_of_mean(each: Floats, weights: Floats, units: Ints | None = None) -> float:
    """The standard error of a weighted mean of numbers drawn one by one, or unit by unit.

    >>> each, unit = np.array([0.0, 1.0, 2.0]), np.array([0, 1, 2])
    >>> twice = np.repeat(each, 2), np.ones(6)
    >>> error_of_mean(*twice, np.repeat(unit, 2)) == error_of_mean(each, np.ones(3)) > error_of_mean(*twice)
    True
    """
    share = weights / weights.sum()
    off = share * (each - float(share @ each))
    if units is not None:
        off = np.bincount(np.unique(units, return_inverse=True)[1], off)
    return float(np.sqrt(np.sum(off**2) * len(off) / max(len(off) - 1, 1)))
