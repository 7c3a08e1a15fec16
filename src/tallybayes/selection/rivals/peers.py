"""scikit-learn's own classifiers as rivals, each with the preprocessing it needs. Loaded only where it is installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from ...base.arrays import Floats
from ...data.schema import Schema
from .rivals import Features, Fitted, Rival, Rows

_BINS = 10
_TOPICS = 50  # directions that boosting sees of a text
_MOST_VALUES = 255  # of a category that boosting takes as one


def available() -> bool:
    """Whether scikit-learn is installed."""
    return importlib.util.find_spec("sklearn") is not None


@dataclass(frozen=True)
class Peer:
    """A fitted estimator with the way from rows to its matrix."""

    matrix: Callable[[Rows], Any]
    estimator: Any
    n_classes: int

    def predict_proba(self, rows: Rows) -> Floats:
        """The estimator's probabilities, 0 for a class that it has not seen."""
        out = np.zeros((rows.rows, self.n_classes))
        if len(self.estimator.classes_) == 1:  # boosting answers for two classes even then
            out[:, self.estimator.classes_] = 1.0
            return out
        with _one_thread():
            out[:, self.estimator.classes_] = self.estimator.predict_proba(self.matrix(rows))
        return out


def _rival(prepare: Callable[[Features, Rows], tuple[Callable[[Rows], Any], Any]]) -> Rival:
    def fit(rows: Rows, schema: Schema, n_classes: int) -> Fitted:
        with _one_thread():
            matrix, estimator = prepare(Features.of(rows, schema), rows)
            estimator.fit(matrix(rows), rows.labels, sample_weight=rows.weights)
        return Peer(matrix, estimator, n_classes)

    return fit


def _one_thread() -> Any:
    """One thread for OpenMP and BLAS: threads that wait for each other on a busy machine took twenty times as long."""
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1)


def _gaussian(features: Features, rows: Rows) -> tuple[Callable[[Rows], Any], Any]:
    """GaussianNB on numbers and one-hot categories, missing numbers at their mean."""
    from sklearn.naive_bayes import GaussianNB

    def matrix(some: Rows) -> Floats:
        return np.hstack([np.nan_to_num(features.number_matrix(some), nan=0.0), features.one_hot(some).toarray()])

    return matrix, GaussianNB()


def _categorical(features: Features, rows: Rows) -> tuple[Callable[[Rows], Any], Any]:
    """CategoricalNB on categories and numbers cut into ten equally filled bins; missing is a value of its own."""
    from sklearn.naive_bayes import CategoricalNB

    numbers = features.number_matrix(rows)
    places = np.linspace(0, 1, _BINS + 1)[1:-1]
    present = [x[~np.isnan(x)] for x in numbers.T]
    cuts = [np.unique(np.quantile(x, places)) if len(x) else np.zeros(0) for x in present]
    sizes = [len(v) + 1 for _, v in features.categories] + [len(c) + 2 for c in cuts]

    def matrix(some: Rows) -> Any:
        x = features.number_matrix(some)
        bins = [np.where(np.isnan(x[:, j]), 0, np.searchsorted(c, x[:, j]) + 1) for j, c in enumerate(cuts)]
        return np.column_stack([features.code_matrix(some) + 1, *bins]).astype(np.int64)

    return matrix, CategoricalNB(min_categories=np.array(sizes))


def _counts(features: Features, rows: Rows, estimator: Any) -> tuple[Callable[[Rows], Any], Any]:
    """Word counts and one-hot categories; numbers as the share of the way from their least to their largest."""
    numbers = features.number_matrix(rows)
    some = np.where(np.isnan(numbers), 0.0, numbers)
    low, high = some.min(axis=0, initial=0.0), some.max(axis=0, initial=0.0)
    width = np.where(high > low, high - low, 1.0)

    def matrix(asked: Rows) -> Any:
        x = np.clip((np.nan_to_num(features.number_matrix(asked), nan=0.0) - low) / width, 0.0, 1.0)
        return scipy.sparse.hstack(
            [features.word_matrix(asked), features.one_hot(asked), scipy.sparse.csr_array(x)], format="csr"
        )

    return matrix, estimator


def _multinomial(features: Features, rows: Rows) -> tuple[Callable[[Rows], Any], Any]:
    from sklearn.naive_bayes import MultinomialNB

    return _counts(features, rows, MultinomialNB())


def _complement(features: Features, rows: Rows) -> tuple[Callable[[Rows], Any], Any]:
    from sklearn.naive_bayes import ComplementNB

    return _counts(features, rows, ComplementNB())


def _boosting(features: Features, rows: Rows) -> tuple[Callable[[Rows], Any], Any]:
    """HistGradientBoosting on numbers and categories as they are, missing included; texts as fifty directions."""
    from sklearn.decomposition import TruncatedSVD
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.feature_extraction.text import TfidfTransformer
    from sklearn.pipeline import make_pipeline

    words = features.word_matrix(rows)
    topics = None
    if min(words.shape) > 2:
        topics = make_pipeline(
            TfidfTransformer(sublinear_tf=True), TruncatedSVD(min(_TOPICS, min(words.shape) - 1), random_state=0)
        ).fit(words)
    kept = [j for j, (_, values) in enumerate(features.categories) if len(values) <= _MOST_VALUES]

    def matrix(some: Rows) -> Floats:
        codes = features.code_matrix(some)[:, kept].astype(np.float64)
        parts = [np.where(codes < 0, np.nan, codes), features.number_matrix(some)]
        return np.hstack(parts if topics is None else [*parts, topics.transform(features.word_matrix(some))])

    return matrix, HistGradientBoostingClassifier(categorical_features=list(range(len(kept))), random_state=0)


def peers(schema: Schema) -> dict[str, Rival]:
    """The classifiers that can read these columns; none where scikit-learn is not installed."""
    if not available() or not schema.counted:
        return {}
    text = any(c.about.words for c in schema.counted)
    boosting = {"scikit-learn gradient boosting": _rival(_boosting)}
    if text:
        return {
            "scikit-learn MultinomialNB": _rival(_multinomial),
            "scikit-learn ComplementNB": _rival(_complement),
            **boosting,
        }
    return {
        "scikit-learn GaussianNB": _rival(_gaussian),
        "scikit-learn CategoricalNB": _rival(_categorical),
        **boosting,
    }
