"""Forms made of others: with pairs beside, with the readers of each column blended, and the mean of several.

A mean has so much of each form as rows that had no part in them find best:

    minimise   Σ_rows −log P(own class) + PRICE · Σ_k k · share_k        P from Σ_k share_k · score_k

Of a few hundred rows none can say whether a richer form is better than the one below it: the error of their difference
is as large as what it gains. Taking it or leaving it throws away what is known; a part of a step costs by chance much
less than the whole of it. Each form is a sum over the same cells, so a mean of scores is one sum as well, and what is
written down has nothing that tells it from a single fit. The price of each step is what a
free share gains by chance.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...base.arrays import Floats, Ints
from .joint import Joint, Solution
from .losses import posterior
from .pairs import ColumnPair

PRICE = 2.0  # nats, for each form that is richer than another
_LEAST = 0.1  # share: a form is not written down for less


def wider(joint: Joint, x: Solution, pairs: Sequence[ColumnPair]) -> tuple[Joint, Solution]:
    """The same problem with pairs, whose corrections start from 0."""
    out = joint.wider([p.term() for p in pairs])
    added = np.zeros((out.n_added - joint.n_added, joint.width))
    return out, x._replace(added=np.concatenate([x.added, added]))


def merged(joint: Joint, x: Solution) -> tuple[Joint, Solution]:
    """The same problem with the readers of each column blended by their weights into one."""
    tables, weights, shares = [], [], []
    for table, (first, count) in zip(joint.tables, joint.of_term, strict=True):
        own = x.weights[first : first + count]
        total = float(own.sum())
        shares.append(own / total if total > 0 else np.full(count, 1 / max(count, 1)))
        tables.append(
            table if table is None else np.add.reduce(shares[-1][:, None, None] * table, axis=0, keepdims=True)
        )
        weights += [total] * (table is not None)
    out = Joint(
        joint.rows, joint.terms, tables, joint.log_prior, joint.training, joint.held, joint.dense, joint.known, shares,
        joint.placed,
    )  # fmt: skip
    return out, x._replace(weights=np.concatenate([weights, x.weights[joint.readers :]]))


def effective_rows(weights: Floats) -> float:
    """How many rows of one weight say as much as these: (Σw)²/Σw², which is their number where all weigh the same.

    >>> effective_rows(np.array([0.1, 0.1, 0.1])), effective_rows(np.array([4.0, 1.0, 1.0]))
    (3.0, 2.0)
    """
    by = weights / weights.max(initial=0.0)  # 1 where all weigh the same, so that nothing is rounded
    return float(by.sum() ** 2 / (by @ by))


def shares(scores: Sequence[Floats], labels: Ints, weights: Floats, *, whole: bool = False) -> Floats:
    """The share of each of some forms, the simplest first; with `whole` one of them has all.

    >>> nothing, much = np.zeros((40, 1)), np.where(np.arange(40) % 2 == 1, 2.0, -2.0)[:, None]
    >>> labels = np.arange(40) % 2
    >>> shares([nothing, much], labels, np.ones(40)).round(2).tolist()
    [0.0, 1.0]
    >>> labels[:8] = 1 - labels[:8]  # one row in five is not what it seems
    >>> shares([nothing, much], labels, np.ones(40)).round(2).tolist()
    [0.38, 0.62]
    """
    kept = list(range(len(scores)))
    if whole:
        priced = [_loss([s], np.ones(1), labels, weights)[0] + PRICE * k for k, s in enumerate(scores)]
        kept = [int(np.argmin(priced))]
    found = np.ones(len(kept))
    while len(kept) > 1:
        found = _least([scores[k] for k in kept], labels, weights, PRICE * np.array(kept))
        large = found >= _LEAST
        if large.all():
            break
        kept = [k for k, there in zip(kept, large.tolist(), strict=True) if there]
        found = np.ones(len(kept))
    out = np.zeros(len(scores))
    out[kept] = found
    return out


def _loss(scores: Sequence[Floats], share: Floats, labels: Ints, weights: Floats) -> tuple[float, Floats]:
    """Σ −log P(own class), and how much it changes with each share."""
    losses, residual = posterior(mean_of_scores(scores, share), labels)
    residual = residual * weights[:, None]
    return float(weights @ losses), np.array([float(np.sum(residual * s)) for s in scores])


def _least(scores: Sequence[Floats], labels: Ints, weights: Floats, price: Floats) -> Floats:
    """Where the loss and the price together are least: shares from 0 to 1 whose sum is 1."""
    from scipy.optimize import minimize

    count = len(scores)

    def priced(share: Floats) -> tuple[float, Floats]:
        loss, slope = _loss(scores, share, labels, weights)
        return loss + float(price @ share), slope + price

    one = {"type": "eq", "fun": lambda s: s.sum() - 1.0, "jac": lambda s: np.ones(count)}
    found = minimize(
        priced, np.full(count, 1 / count), jac=True, method="SLSQP", bounds=[(0.0, 1.0)] * count, constraints=[one],
        options={"ftol": 1e-6, "maxiter": 100},
    ).x  # fmt: skip
    found = np.clip(found, 0.0, 1.0)
    return np.asarray(found / found.sum())


def mean_of_scores(scores: Sequence[Floats], share: Floats) -> Floats:
    """Σ share · score."""
    out = np.zeros_like(scores[0])
    for s, by in zip(scores, share.tolist(), strict=True):
        out += by * s
    return out


def mean_of(solutions: Sequence[Solution], share: Floats) -> Solution:
    """The solution whose scores are the mean of those of others; a form without pairs has no corrections for theirs."""
    shape = max((x.added.shape for x in solutions), key=lambda s: s[0])
    weights, offsets, added = np.zeros_like(solutions[0].weights), np.zeros_like(solutions[0].offsets), np.zeros(shape)
    for x, by in zip(solutions, share.tolist(), strict=True):
        weights += by * x.weights
        offsets += by * x.offsets
        added[: len(x.added)] += by * x.added
    return Solution(weights, solutions[0].exponents, offsets, added)


def listed(form: Sequence[str]) -> str:
    """A form in words: "corrections and pairs"."""
    return " and ".join([", ".join(form[:-1]), form[-1]] if len(form) > 1 else form)
