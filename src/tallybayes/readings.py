"""How a column of words is read: family and smoothing, chosen by what held-out rows lose.

Presence or counts, multinomial or complement, and α: all of it is decided after counting, from one pass over held-out
rows. Each reading is judged with the temperature and the length exponent that suit it best.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

import numpy as np

from .calibrate import Evidence, fit_weights
from .families import Complement, Family, Multinomial
from .folds import Folds, HeldOut
from .schema import Column, Schema
from .settings import Settings
from .smoothing import Laplace
from .terms import row_lengths

READINGS: tuple[Family, ...] = (
    Multinomial(presence=True), Multinomial(), Complement(presence=True), Complement(),
)  # fmt: skip
ALPHAS = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_MOST_PARTS = 50_000_000  # numbers held at a time while readings are compared


def read_texts(folds: Folds, schema: Schema, base: Settings) -> Settings:
    """The settings with a reading for each column of words that has none of its own."""
    out = base
    if not isinstance(base.smoothing, Mapping) and base.smoothing != Laplace():
        return out
    named = base.smoothing if isinstance(base.smoothing, Mapping) else {}
    for column in schema.counted:
        if column.kind in ("text", "bag") and column.name not in base.families and column.name not in named:
            out = _best(folds, column, out)
    return out


def _best(folds: Folds, column: Column, base: Settings) -> Settings:
    lengths = {0: row_lengths(folds, column.name)}
    best: tuple[float, Settings] | None = None
    for settings, held in _each_reading(folds, column, base):
        prior = held.log_prior[held.folds]
        evidence = Evidence.of(
            [held.parts[column.name]], prior, held.labels, held.folds, held.weights, lengths
        )  # fmt: skip
        loss = float(np.average(fit_weights(evidence, None).losses(evidence), weights=evidence.weights))
        if best is None or loss < best[0]:
            best = loss, settings
    assert best is not None
    return best[1]


def _each_reading(folds: Folds, column: Column, base: Settings) -> Iterator[tuple[Settings, HeldOut]]:
    """Settings with their held-out rows, as many at a time as memory holds."""
    smoothing = base.smoothing if isinstance(base.smoothing, Mapping) else {}
    settings = [
        replace(
            base,
            families={**base.families, column.name: family},
            smoothing={**smoothing, column.name: Laplace(alpha)},
        )
        for family in READINGS
        for alpha in ALPHAS
    ]
    size = max(1, sum(len(p.rows) for p in folds.pieces) * len({label for label, _ in folds.names}))
    some = max(1, _MOST_PARTS // size)
    for start in range(0, len(settings), some):
        chunk = settings[start : start + some]
        yield from zip(chunk, folds.held_out_each(chunk, parts=True), strict=True)
