"""P(class): counted, uniform, given, or counted on top of imagined rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base import canon
from ..base.arrays import Floats
from ..families.settings import Settings
from ..families.smoothing import Dirichlet
from ..tally.tally import Tally
from .written import prior_probabilities


def natural_order(label: Any) -> tuple[bool, Any]:
    """Numbers by size, everything else by its text."""
    number = isinstance(label, (int, float))
    return (not number, label if number else str(canon.text(label)))


def class_totals(tally: Tally, names: tuple[str, ...]) -> Floats:
    """The rows (or weight) of each class, 0 for one that was only imagined."""
    given = dict(zip(tally.classes, tally.class_weights().tolist(), strict=True))
    return np.array([given.get(c, 0.0) for c in names])


def class_prior(settings: Settings, names: tuple[str, ...], totals: Floats) -> Floats:
    """P(class) by the settings."""
    if isinstance(settings.prior, Dirichlet):
        amounts = settings.prior.amounts_for(names, ("",))[:, 0]
        return np.asarray((totals + amounts) / (totals + amounts).sum())
    if isinstance(settings.prior, Mapping):
        given = prior_probabilities(settings.prior, names)
        return np.array([given[c] for c in names])
    if settings.prior == "uniform" or totals.sum() == 0:
        return np.full(len(names), 1.0 / len(names))
    return np.asarray(totals / totals.sum())
