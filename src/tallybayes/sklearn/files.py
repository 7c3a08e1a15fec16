"""Estimators in files and in pickles: both hold the tally in the library's own format."""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.errors import DataError
from ..store import model_file
from ..tally.tally import Tally

if TYPE_CHECKING:
    from .base import TallyClassifier

NOTE = "scikit-learn"  # where a model's notes keep what only its estimator needs


def tally_bytes(tally: Tally) -> bytes:
    """The tally in the library's file format, for a pickle to hold."""
    return model_file.tally_to_bytes(tally)


def tally_from(raw: bytes) -> Tally:
    """The inverse of `tally_bytes`."""
    return model_file.tally_from_bytes(raw)


def save(estimator: TallyClassifier, path: str | os.PathLike[str]) -> None:
    """Write an estimator's model, and in its notes the parameters and names that a model has no place for."""
    model = estimator.model_
    names = getattr(estimator, "feature_names_in_", None)
    note = {
        "estimator": type(estimator).__name__,
        "params": {name: _plain(value) for name, value in estimator.get_params().items() if _is_plain(value)},
        "classes": {"values": estimator.classes_.tolist(), "dtype": estimator.classes_.dtype.str},
        "features": estimator.n_features_in_,
        "names": None if names is None else names.tolist(),
        "dtype": str(estimator._dtype),
    }
    replace(model, notes={NOTE: note}).save(path)


def load(kind: type[TallyClassifier], path: str | os.PathLike[str]) -> TallyClassifier:
    """The estimator of this class that `save` wrote."""
    model = model_file.load(path)
    note = model.notes.get(NOTE)
    found = "a model of no estimator" if note is None else f"a {note['estimator']}"
    if note is None or note["estimator"] != kind.__name__ or model.tally is None:
        raise DataError(
            f"{os.fspath(path)} holds {found}, not a {kind.__name__}",
            hint="tallybayes.load(path) reads any model" + ("." if note is None else f"; {found[2:]}.from_file(path)."),
        )
    estimator = kind(**{**kind._params_of(model), **note["params"]})
    estimator.classes_ = np.array(note["classes"]["values"], dtype=note["classes"]["dtype"])
    estimator.n_features_in_ = int(note["features"])
    if note["names"] is not None:
        estimator.feature_names_in_ = np.array(note["names"], dtype=object)
    estimator._dtype = np.dtype(note["dtype"])
    estimator._recall(model)
    estimator._restored(model.tally)
    return estimator


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str, list, tuple, np.ndarray, np.generic))


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
