"""What an estimator keeps: the counts, and the model that was last asked of them."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..families.settings import Settings
from ..model.model import Model
from ..tally.tally import Tally, add_tallies

_PENDING = 64  # tallies of small batches that wait to be added together, which is faster than one by one


@dataclass
class Counted:
    """The counts of an estimator: the sum of these tallies, added when it is asked for."""

    parts: list[Tally]

    def add(self, tally: Tally) -> None:
        """Count more rows."""
        self.parts.append(tally)
        if len(self.parts) > _PENDING:
            self.total()

    def total(self) -> Tally:
        """The sum."""
        if len(self.parts) > 1:
            self.parts[:] = [add_tallies(self.parts)]
        return self.parts[0]


@dataclass
class Answer:
    """A model, the parameters it was asked with, and the order of its classes."""

    params: dict[str, Any]
    settings: Settings
    model: Model | None = None
    order: Ints | None = None  # from the model's classes to classes_
    log_prior: Floats | None = None  # of classes_


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(kind._get_param_names())


def parameters(estimator: Any) -> dict[str, Any]:
    """The parameters as they are now; an array or a dict that is changed afterwards does not change here."""
    kind: Any = type(estimator)
    return {name: copy.copy(getattr(estimator, name)) for name in _names(kind)}


def same(now: Any, then: Any) -> bool:
    """Whether a parameter is what it was."""
    if now is then:
        return True
    if isinstance(now, np.ndarray) or isinstance(then, np.ndarray):
        return isinstance(now, type(then)) and np.array_equal(now, then)
    return type(now) is type(then) and bool(now == then)
