"""Naive Bayes by exact counting.

A column turns a value into a few additive amounts. Training adds them by class. Predicting adds up what each column
says.
"""

from importlib import import_module
from typing import Any

__version__ = "0.1.0"

# Every public name and the module it lives in. It is imported when it is first asked for, so that one answer from a
# saved model costs no more than the modules it needs; `__init__.pyi` says the same to type checkers.
_HOMES = {
    "AbsoluteDiscount": "families.smoothing",
    "BackOff": "families.smoothing",
    "Beta": "families.smoothing",
    "Calibrated": "families.calibration",
    "CannotEstimate": "base.errors",
    "CannotForget": "base.errors",
    "Cells": "exact.cells",
    "Column": "data.schema",
    "Changes": "selection.over_time.scan",
    "Comparison": "selection.rivals.compare",
    "Correction": "families.calibration",
    "DataError": "base.errors",
    "Dirichlet": "families.smoothing",
    "Epsilon": "families.smoothing",
    "Evaluation": "selection.measure.evaluation",
    "Explanation": "explain.explanation",
    "FigureCurve": "selection.measure.figure_curves",
    "FileError": "base.errors",
    "Floor": "families.settings",
    "GoodTuring": "families.smoothing",
    "Isotonic": "families.calibration",
    "JelinekMercer": "families.smoothing",
    "JointDistribution": "model.joint.table",
    "Labelling": "selection.labelling.session",
    "Laplace": "families.smoothing",
    "Lead": "families.calibration",
    "Left": "selection.labelling.left",
    "LogisticTwin": "selection.rivals.logistic_twin",
    "MAP": "families.smoothing",
    "MarginScaling": "families.calibration",
    "MaximumLikelihood": "families.smoothing",
    "MissingExtra": "base.errors",
    "Model": "model.model",
    "ModelComparison": "selection.measure.saved",
    "ModelFileError": "base.errors",
    "Nearest": "selection.rivals.nearest",
    "Neighbours": "selection.rivals.nearest",
    "OldNameWarning": "base.errors",
    "PairColumn": "data.pairs",
    "PredictedSets": "model.sets",
    "PredictionSets": "model.sets",
    "Prequential": "selection.over_time.prequential",
    "Reveals": "store.reveals",
    "Schema": "data.schema",
    "SchemaError": "base.errors",
    "Sealed": "store.sealed",
    "Settings": "families.settings",
    "SettingsError": "base.errors",
    "SharedCopy": "store.share",
    "Side": "data.pairs",
    "SourceEffects": "selection.audit.sources",
    "Spelling": "data.spelling",
    "Suspicious": "selection.audit.suspicious",
    "Tally": "tally.tally",
    "TallybayesError": "base.errors",
    "TallybayesWarning": "base.errors",
    "Tokeniser": "data.text.tokeniser",
    "Tuned": "selection.choose.tune",
    "Twin": "selection.rivals.logistic_twin",  # the first name of LogisticTwin
    "Watch": "model.watching.watch",
    "WhatIf": "explain.what_if",
    "Windows": "tally.windows",
    "WordVectors": "data.word_vectors",
    "assumptions": "model.joint.assumptions",
    "change": "selection.over_time.scan",
    "check_joint_table": "model.joint.check",
    "compare": "selection.rivals.compare",
    "compare_models": "selection.measure.saved",
    "count": "selection.choose.fit",
    "count_grouped": "tally.grouped",
    "count_unlabelled": "tally.unlabelled",
    "cross_validate": "selection.measure.cross_validate",
    "estimate": "model.estimate",
    "evaluate": "selection.measure.saved",
    "example": "data.sources",
    "fit": "selection.choose.fit",
    "forget_source": "selection.audit.sources",
    "group_queries": "tally.grouped",
    "hopeless": "model.joint.check",  # the first name of check_joint_table
    "infer": "data.infer",
    "learning_curve": "selection.measure.figure_curves",
    "leave_one_out": "selection.leave_one_out",
    "load": "store.model_file",
    "load_sealed": "store.sealed",
    "logistic_twin": "selection.rivals.logistic_twin",
    "next_to_label": "selection.labelling.session",
    "predict_file": "model.predict_file",
    "prediction_sets": "selection.sets.calibrate",
    "prequential": "selection.over_time.prequential",
    "read": "data.sources",
    "relevant_left": "selection.labelling.left",
    "report": "explain.report.page",
    "report_facts": "explain.report.facts",
    "shift": "model.joint.shift",
    "sources": "selection.audit.sources",
    "split": "selection.parts",
    "suspicious": "selection.audit.suspicious",
    "textbook": "selection.choose.fit",
    "tune": "selection.choose.tune",
    "validation_curve": "selection.measure.figure_curves",
}
# public as a whole
_MODULES = {
    "datasets": "data.made.datasets",
    "families": "families",
    "metrics": "selection.measure.metrics",
    "mlflow": "store.mlflow",
    "plots": "explain.plots",
}

# Names that will go: what each is called now, and the release it goes with. docs/versions.md has the rules
_GOING: dict[str, tuple[str, str]] = {}

__all__ = sorted([*_HOMES, *_MODULES])


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        value = import_module(f".{_MODULES[name]}", __name__)
    elif name in _HOMES:
        value = getattr(import_module(f".{_HOMES[name]}", __name__), name)
        if name in _GOING:
            import_module(".base.errors", __name__).old_name(f"tb.{name}", f"tb.{_GOING[name][0]}", _GOING[name][1])
            return value
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *(n for n in globals() if n.startswith("__"))})
