"""What a label is expected to tell: by how much the entropy of the pool falls when one more row is counted.

    value(r) = Σ_s H(s) − Σ_c P(c given r) · Σ_s H(s; r counted under c)

s runs over a fixed sample of the pool, c over the likeliest classes of r, and H is the entropy of P(class given s). Counting
is exact, so looking ahead is counting the row and taking it back; settings and families stay as they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...base.arrays import Floats, Ints
from ...base.errors import SettingsError
from ...model import posterior
from ...model.estimate import estimate
from ...model.model import Model
from ...tally.tally import Tally
from .pool import Pool, entropies, probabilities

LIKELIEST = 8  # classes that a candidate is imagined to have, of more the likeliest
SHORTLIST = 64
SAMPLE = 400
_TOGETHER = 1 << 18  # scores of the sample that are worked out at once


def imagined_classes(p: Floats) -> list[tuple[int, float]]:
    """The classes that a row may have, and how probable each is; of many the likeliest."""
    order = np.argsort(-p, kind="stable")[:LIKELIEST]
    order = order[p[order] > 0]
    share = p[order] / p[order].sum()
    return list(zip(order.tolist(), share.tolist(), strict=True))


def falls_by_counting(pool: Pool, candidates: Ints, sample: Ints) -> Floats:
    """By how much the entropy of each row of the sample falls, candidates × sample: every model estimated anew."""
    model, rows = pool.model, pool.taken(sample)
    assert model.tally is not None
    before = entropies(model.log_joint(rows), model.start)
    out = np.tile(before, (len(candidates), 1))
    theirs = probabilities(model.log_joint(pool.taken(candidates)), model.start)
    ones = None if model.schema.weights is None or model.schema.weights in pool.batch else [1.0]
    for i, row in enumerate(candidates):
        for c, share in imagined_classes(theirs[i]):
            more = Tally.of(model.schema, pool.taken(np.array([row])), [model.classes[c]], weights=ones)
            after = estimate(model.tally + more, model.settings, known=model.families)
            out[i] -= share * entropies(after.log_joint(rows), after.start)
    return out


def falls(pool: Pool, candidates: Ints, sample: Ints) -> Floats:
    """The same, column by column: only what a candidate changes is worked out anew."""
    before = entropies(pool.joint(sample), pool.start(pool.totals))
    theirs, weights = pool.probabilities(candidates), pool.weights[candidates]
    columns = [column.imagined(candidates, weights, sample) for column in pool.columns]
    steps = [(i, c, share) for i, p in enumerate(theirs) for c, share in imagined_classes(p)]
    out = np.tile(before, (len(candidates), 1))
    starts: dict[tuple[int, float], tuple[Floats, Floats]] = {}
    n, k = len(sample), len(pool.names)
    together = max(_TOGETHER // max(n * k, 1), 1)
    for first in range(0, len(steps), together):
        some = steps[first : first + together]
        joint, start = np.empty((len(some), n, k)), np.empty((len(some), 1, k))
        for at, (i, c, _) in enumerate(some):
            key = c, float(weights[i])
            if key not in starts:
                totals = pool.totals + weights[i] * (np.arange(k) == c)
                starts[key] = totals, pool.start(totals)
            totals, start[at, 0] = starts[key]
            joint[at] = start[at]
            for column in columns:
                joint[at] += column(i, c, totals)
        bent = posterior.calibrated(pool.settings, joint.reshape(-1, k)).reshape(joint.shape)
        for (i, _, share), after in zip(some, entropies(bent, start), strict=True):
            out[i] -= share * after
    return out


def batch_of(fall: Floats, k: int) -> Ints:
    """Which k candidates to take together, greedily: each adds most to what those before it do, row by row.

    The first is the best by itself. Of two that are alike the second adds next to nothing, so near-duplicates wait.
    """
    k = min(k, len(fall))
    if k == 0:
        return np.zeros(0, dtype=np.int64)
    chosen = [int(np.argmax(fall.sum(axis=1)))]
    covered = np.maximum(fall[chosen[0]], 0.0)
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
