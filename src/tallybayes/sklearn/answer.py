"""What an estimator answers with: a model, and the parameters that it was asked with, which `set_params` may change."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..families.settings import Settings
from ..model.model import Model


@dataclass
class Answer:
    """A model, the parameters it was asked with, and the order of its classes."""

    params: dict[str, Any]  # copies: an array or a dict that is changed afterwards does not change here
    settings: Settings
    model: Model | None = None
    order: Ints | None = None  # from the model's classes to classes_
    log_prior: Floats | None = None  # of classes_

    @classmethod
    def asked(cls, estimator: Any, settings: Settings) -> Answer:
        """The parameters of an estimator as settings, not yet answered."""
        kind: Any = type(estimator)
        return cls({name: copy.copy(getattr(estimator, name)) for name in _names(kind)}, settings)

    def still_of(self, estimator: Any) -> bool:
        """Whether the parameters of the estimator are what they were."""
        return all(_same(getattr(estimator, name), value) for name, value in self.params.items())


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(kind._get_param_names())


def _same(now: Any, then: Any) -> bool:
    """Whether a parameter is what it was."""
    if now is then:
        return True
    if isinstance(now, np.ndarray) or isinstance(then, np.ndarray):
        return isinstance(now, type(then)) and np.array_equal(now, then)
    return type(now) is type(then) and bool(now == then)
