"""Naive Bayes by exact counting.

A column turns a value into a few additive amounts. Training adds them by class. Predicting adds up what each column
says.
"""

from . import families, metrics
from .assumptions import assumptions
from .cells import Cells
from .counterfactual import WhatIf
from .errors import (
    CannotEstimate,
    CannotForget,
    DataError,
    MissingExtra,
    SchemaError,
    SettingsError,
    TallybayesError,
    TallybayesWarning,
)
from .estimate import estimate
from .explain import Explanation
from .fit import count, fit
from .hopeless import hopeless
from .infer import infer
from .joint import JointDistribution
from .model import Model
from .report import report
from .schema import Column, Schema
from .settings import Floor, Settings
from .shift import shift
from .smoothing import (
    AbsoluteDiscount,
    Dirichlet,
    Epsilon,
    GoodTuring,
    JelinekMercer,
    Laplace,
    MaximumLikelihood,
)
from .tally import Tally
from .text import Tokeniser

__version__ = "0.1.0"

__all__ = [
    "AbsoluteDiscount",
    "CannotEstimate",
    "CannotForget",
    "Cells",
    "Column",
    "DataError",
    "Dirichlet",
    "Epsilon",
    "Explanation",
    "Floor",
    "GoodTuring",
    "JelinekMercer",
    "JointDistribution",
    "Laplace",
    "MaximumLikelihood",
    "MissingExtra",
    "Model",
    "Schema",
    "SchemaError",
    "Settings",
    "SettingsError",
    "Tally",
    "TallybayesError",
    "TallybayesWarning",
    "Tokeniser",
    "WhatIf",
    "assumptions",
    "count",
    "estimate",
    "families",
    "fit",
    "hopeless",
    "infer",
    "metrics",
    "report",
    "shift",
]
