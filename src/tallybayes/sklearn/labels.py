"""Frames, labels, weights and random states as scikit-learn's users give them → as a tally and a model take them."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa
import sklearn
from sklearn.utils.multiclass import check_classification_targets, unique_labels
from sklearn.utils.validation import check_array

from ..base import canon
from ..base.arrays import Floats, Ints
from ..base.errors import DataError, SettingsError, in_our_words
from ..data.frames import eager, package_of

Labels = np.ndarray[Any, Any]
_ASKS_INTERCHANGE = tuple(map(int, sklearn.__version__.split(".")[:2])) < (1, 9)  # for the names of columns


def frame(X: Any) -> Any:
    """X as scikit-learn can look at it: the rows of a lazy frame, and a frame whose names it finds."""
    if isinstance(X, np.ndarray):
        return X
    X = eager(X)
    if _ASKS_INTERCHANGE and package_of(X) == "polars" and hasattr(X, "get_columns"):
        return X if hasattr(X, "__dataframe__") else X.to_arrow()  # polars 2 has no such interface
    return X


def encoded(y: Labels) -> pa.DictionaryArray:
    """The labels as numbers into a list of different ones: one pass over the rows, and no sorting."""
    if y.dtype.kind == "f" and y.dtype.itemsize not in (4, 8):
        y = y.astype(np.float64)
    try:
        return pa.array(y).dictionary_encode()
    except (pa.ArrowException, OverflowError, TypeError, ValueError) as wrong:  # too large, or half a character
        with suppress(TypeError):  # of labels that have no order
            check_classification_targets(y)  # says what is wrong with labels of several types
        raise DataError(
            f"labels that cannot be read: {wrong}"[:200],
            hint="give labels of one type, texts or numbers: y.astype(str).",
        ) from wrong


def distinct(labels: pa.DictionaryArray, like: Labels, weights: Floats | None) -> Labels:
    """The different labels in order, of the type that was given; a row that weighs nothing has none."""
    values = labels.dictionary
    if weights is not None and not weights.all():
        used = np.unique(labels.indices.to_numpy(zero_copy_only=False)[weights > 0])
        values = values.take(pa.array(used))
    found = values.to_numpy(zero_copy_only=False).astype(like.dtype)
    check_classification_targets(np.repeat(found, 3))  # as often as no class per row, which it would warn of
    return np.sort(found)


def stated(classes: Any) -> Labels:
    """The classes that `partial_fit` is told of, sorted."""
    return np.asarray(unique_labels(np.repeat(np.asarray(classes), 3)))


def numbers(given: Any, name: str, hint: str) -> Floats:
    """A parameter of numbers; refuses anything else."""
    with in_our_words(SettingsError, f"{name}={given!r}", hint=hint):
        return np.asarray(given, dtype=np.float64)


def union(some: Labels, more: Labels) -> Labels:
    """The classes of both, sorted; the type is kept where one of them has none."""
    if len(some) == 0 or len(more) == 0:
        return some if len(more) == 0 else more
    return np.union1d(some, more)


def texts(classes: Iterable[Any]) -> tuple[str, ...]:
    """The canonical text of each class, which is its name in a tally."""
    return tuple(str(canon.text(c)) for c in classes)


def label_type(classes: Labels) -> str:
    """Which type brings the canonical texts back to labels."""
    return canon.label_type(classes.tolist()[0])


def places(names: Iterable[str], among: Iterable[str]) -> Ints:
    """Where each name stands among others."""
    at = {name: i for i, name in enumerate(among)}
    return np.array([at[name] for name in names], dtype=np.int64)


def weights_of(given: Any, rows: int) -> Floats:
    """A weight for each row; those of a batch may all be 0, which scikit-learn's own check refuses."""
    if isinstance(given, Real):
        return np.full(rows, float(given))
    weights = check_array(given, ensure_2d=False, dtype=np.float64, input_name="sample_weight")
    if weights.shape != (rows,):
        raise ValueError(f"sample_weight.shape == {weights.shape}, expected ({rows},)!")
    return np.asarray(weights)


def generator(random_state: Any) -> np.random.Generator:
    """NumPy's new generator from what scikit-learn calls a random state."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
