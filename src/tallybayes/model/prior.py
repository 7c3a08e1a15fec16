"""P(class): counted, uniform, given, or counted on top of imagined rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..base import canon
from ..base.arrays import Floats
from ..base.errors import SettingsError, excerpt, warn
from ..families.settings import Settings, check_probabilities
from ..families.smoothing import Dirichlet
from ..tally.tally import Tally


def natural_order(label: Any) -> tuple[bool, Any]:
    """Numbers by size, everything else by its text."""
    number = isinstance(label, (int, float))
    return (not number, label if number else str(canon.text(label)))


def class_totals(tally: Tally, names: tuple[str, ...]) -> Floats:
    """The rows (or weight) of each class, 0 for one that was only imagined."""
    given = dict(zip(tally.classes, tally.class_weights().tolist(), strict=True))
    return np.array([given.get(c, 0.0) for c in names])


def prior_probabilities(prior: Mapping[Any, float], classes: tuple[str, ...] | None = None) -> dict[str, float]:
    """A given prior by canonical class, summing to one; within 0.02 of one it is normalised with a warning."""
    given = {str(canon.text(c)): p for c, p in prior.items()}
    if classes is not None and set(given) != set(classes):
        unknown, without = sorted(set(given) - set(classes)), sorted(set(classes) - set(given))
        raise SettingsError(
            "the prior " + " and ".join(
                ([f"names unknown classes {excerpt(unknown)}"] if unknown else [])
                + ([f"has nothing for {excerpt(without)}"] if without else [])
            ),
            hint=f"give a probability for each of {excerpt(classes, 20)}.",
        )  # fmt: skip
    check_probabilities(given)
    total = sum(given.values())
    if abs(total - 1) > 1e-9:
        warn(f"the priors add up to {total:g} and were divided by that")
    return {c: p / total for c, p in given.items()}


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
