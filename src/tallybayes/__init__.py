"""Naive Bayes by exact counting.

A column turns a value into a few additive amounts. Training adds them by class. Predicting adds up what each column
says.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import families, metrics
    from .assumptions import assumptions
    from .cells import Cells
    from .compare import Comparison, compare
    from .counterfactual import WhatIf
    from .errors import (
        CannotEstimate,
        CannotForget,
        DataError,
        MissingExtra,
        ModelFileError,
        SchemaError,
        SettingsError,
        TallybayesError,
        TallybayesWarning,
    )
    from .estimate import estimate
    from .evaluate import cross_validate, evaluate
    from .evaluation import Evaluation
    from .explain import Explanation
    from .fit import count, fit
    from .hopeless import hopeless
    from .infer import infer
    from .isotonic import Isotonic
    from .joint import JointDistribution
    from .lead import Lead
    from .leaveoneout import leave_one_out
    from .model import Model
    from .modelfile import load
    from .pairs import Side
    from .predictions import predict_file
    from .report import report
    from .schema import Column, Schema
    from .sealed import Sealed, load_sealed
    from .settings import Calibrated, Floor, Settings
    from .shift import shift
    from .smoothing import AbsoluteDiscount, Dirichlet, Epsilon, GoodTuring, JelinekMercer, Laplace, MaximumLikelihood
    from .sources import read
    from .splitting import split
    from .tally import Tally
    from .text import Tokeniser
    from .tune import Tuned, tune
    from .twin import Twin, logistic_twin

__version__ = "0.1.0"

__all__ = [
    "AbsoluteDiscount",
    "Calibrated",
    "CannotEstimate",
    "CannotForget",
    "Cells",
    "Column",
    "Comparison",
    "DataError",
    "Dirichlet",
    "Epsilon",
    "Evaluation",
    "Explanation",
    "Floor",
    "GoodTuring",
    "Isotonic",
    "JelinekMercer",
    "JointDistribution",
    "Laplace",
    "Lead",
    "MaximumLikelihood",
    "MissingExtra",
    "Model",
    "ModelFileError",
    "Schema",
    "SchemaError",
    "Sealed",
    "Settings",
    "SettingsError",
    "Side",
    "Tally",
    "TallybayesError",
    "TallybayesWarning",
    "Tokeniser",
    "Tuned",
    "Twin",
    "WhatIf",
    "assumptions",
    "compare",
    "count",
    "cross_validate",
    "estimate",
    "evaluate",
    "families",
    "fit",
    "hopeless",
    "infer",
    "leave_one_out",
    "load",
    "load_sealed",
    "logistic_twin",
    "metrics",
    "predict_file",
    "read",
    "report",
    "shift",
    "split",
    "tune",
]

# Where each name lives; a public name without a home is a module. It is imported when it is first asked for, so that
# one answer from a saved model costs no more than the modules it needs.
_HOMES = {
    "AbsoluteDiscount": "smoothing",
    "Calibrated": "settings",
    "CannotEstimate": "errors",
    "CannotForget": "errors",
    "Cells": "cells",
    "Column": "schema",
    "Comparison": "compare",
    "DataError": "errors",
    "Dirichlet": "smoothing",
    "Epsilon": "smoothing",
    "Evaluation": "evaluation",
    "Explanation": "explain",
    "Floor": "settings",
    "GoodTuring": "smoothing",
    "Isotonic": "isotonic",
    "JelinekMercer": "smoothing",
    "JointDistribution": "joint",
    "Laplace": "smoothing",
    "Lead": "lead",
    "MaximumLikelihood": "smoothing",
    "MissingExtra": "errors",
    "Model": "model",
    "ModelFileError": "errors",
    "Schema": "schema",
    "SchemaError": "errors",
    "Sealed": "sealed",
    "Settings": "settings",
    "SettingsError": "errors",
    "Side": "pairs",
    "Tally": "tally",
    "TallybayesError": "errors",
    "TallybayesWarning": "errors",
    "Tokeniser": "text",
    "Tuned": "tune",
    "Twin": "twin",
    "WhatIf": "counterfactual",
    "assumptions": "assumptions",
    "compare": "compare",
    "count": "fit",
    "cross_validate": "evaluate",
    "estimate": "estimate",
    "evaluate": "evaluate",
    "fit": "fit",
    "hopeless": "hopeless",
    "infer": "infer",
    "leave_one_out": "leaveoneout",
    "load": "modelfile",
    "load_sealed": "sealed",
    "logistic_twin": "twin",
    "predict_file": "predictions",
    "read": "sources",
    "report": "report",
    "shift": "shift",
    "split": "splitting",
    "tune": "tune",
}


class _Package(ModuleType):
    """The package: a public function keeps its name even where the module that it lives in has the same."""

    def __setattr__(self, name: str, value: Any) -> None:
        if not (name in _HOMES and isinstance(value, ModuleType)):
            super().__setattr__(name, value)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        if name not in _HOMES:
            return import_module(f".{name}", __name__)
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(n for n in globals() if n.startswith("__"))})


sys.modules[__name__].__class__ = _Package
