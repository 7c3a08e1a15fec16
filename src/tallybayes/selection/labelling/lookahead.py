"""What a label is expected to settle: how much the classes of the other rows depend on it, by counting one row more.

    value(r) = Σ_s [ H(Σ_c P(c)·P_c(s)) − Σ_c P(c)·H(P_c(s)) ]

P(c) is how probable class c is for row r, P_c(s) are the probabilities of row s once r is counted under c, H is
entropy, and s runs over a fixed sample of the pool. So the value is by how much the entropy of the sample is expected
to fall when the label of r is told: the information that it has about the labels of the sample. What counting r does to
s under every label alike is no information, and cancels; the fall from the entropy as it is now would reward rows that
make the model surer whatever their label.

Counting is exact, so looking ahead is counting the row and taking it back; settings and families stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.arrays import Floats, Ints
from ...base.errors import SettingsError
from ...model.estimate import estimate
from ...tally.tally import Tally
from .pool import Pool, entropy, probabilities

LIKELIEST = 8  # classes that a candidate is imagined to have, of more the likeliest
SHORTLIST, SHORTEST = 64, 16
_WORK = 4608  # what is worked out for each row of the sample, as far as the shortest shortlist allows
SAMPLE = 400
_AT_ONCE = 1 << 20  # probabilities that are looked at together


def imagined_classes(p: Floats) -> tuple[list[int], Floats]:
    """The classes that a row may have, of many the likeliest, and how probable each is."""
    order = np.argsort(-p, kind="stable")[:LIKELIEST]
    order = order[p[order] > 0]
    return order.tolist(), p[order] / p[order].sum()


def shortlist_of(pool: Pool) -> int:
    """How many candidates to look at by default: fewer where columns and classes make each of them dear."""
    k = len(pool.names)
    dear = sum(column.dear for column in pool.columns) * min(k, LIKELIEST) * k
    return int(np.clip(_WORK // max(dear, 1), SHORTEST, SHORTLIST))


def falls_by_counting(pool: Pool, candidates: Ints, sample: Ints) -> Floats:
    """By how much the entropy of each row of the sample falls, candidates × sample: every model estimated anew."""
    model, rows = pool.model, pool.taken(sample)
    assert model.tally is not None
    out = np.empty((len(candidates), len(sample)))
    theirs = probabilities(model.log_joint(pool.taken(candidates)), model.start)
    ones = None if model.schema.weights is None or model.schema.weights in pool.batch else [1.0]
    for i, row in enumerate(candidates):
        classes, shares = imagined_classes(theirs[i])
        after = []
        for c in classes:
            more = Tally.of(model.schema, pool.taken(np.array([row])), [model.classes[c]], weights=ones)
            one = estimate(model.tally + more, model.settings, known=model.families)
            after.append(probabilities(one.log_joint(rows), one.start))
        out[i] = _settled(shares, np.stack(after))
    return out


def falls(pool: Pool, candidates: Ints, sample: Ints) -> Floats:
    """The same, column by column: only what a candidate changes is worked out anew, for many candidates at once."""
    theirs = [imagined_classes(p) for p in pool.probabilities(candidates)]
    step = max(_AT_ONCE // (max(len(classes) for classes, _ in theirs) * len(sample) * len(pool.names)), 1)
    out = np.empty((len(candidates), len(sample)))
    for first in range(0, len(candidates), step):
        some = theirs[first : first + step]
        sizes = [len(classes) for classes, _ in some]
        rows = np.repeat(candidates[first : first + step], sizes)
        p = pool.imagined(rows, np.concatenate([classes for classes, _ in some]), sample)
        shares, start = np.concatenate([share for _, share in some])[:, None], np.cumsum([0, *sizes[:-1]])
        mixed = np.add.reduceat(shares[:, :, None] * p, start, axis=0)
        out[first : first + step] = entropy(mixed) - np.add.reduceat(shares * entropy(p), start, axis=0)
    return out


def _settled(shares: Floats, p: Floats) -> Floats:
    """H(Σ share·p) − Σ share·H(p) of each row of the sample, in nats; p is imagined classes × sample × classes."""
    return entropy(np.tensordot(shares, p, 1)) - shares @ entropy(p)


def batch_of(fall: Floats, k: int) -> Ints:
    """Which k candidates to take together, greedily: each adds most to what those before it do, row by row.

    The first is the best by itself. Of two that are alike the second adds next to nothing, so near-duplicates wait.
    """
    k = min(k, len(fall))
    if k == 0:
        return np.zeros(0, dtype=np.int64)
    chosen = [int(np.argmax(fall.sum(axis=1)))]
    covered = fall[chosen[0]]
    while len(chosen) < k:
        more = np.maximum(fall - covered, 0.0).sum(axis=1)
        more[chosen] = -1.0
        chosen.append(int(np.argmax(more)))
        covered = np.maximum(covered, fall[chosen[-1]])
    return np.array(chosen, dtype=np.int64)


def whole(name: str, value: Any, least: int) -> int:
    """A whole number of at least so much; anything else is refused."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < least:
        raise SettingsError(f"{name}={value!r}", hint=f"take a whole number of at least {least}.")
    return int(value)
