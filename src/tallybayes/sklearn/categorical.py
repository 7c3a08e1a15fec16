"""Categories given as whole numbers from 0."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_non_negative

from ..base import canon
from ..base.arrays import Floats, Ints, safe_log
from ..base.errors import DataError, SettingsError
from ..data.blocks import N
from ..data.schema import Column, Schema
from ..data.sources import LABELS, MATRIX
from ..exact.sheet import Sheet
from ..families.settings import Settings
from ..model.model import Model
from ..tally.tally import Tally
from . import labels
from .words import DiscreteClassifier

MOST = 1 << 24  # categories of one feature: a larger code is an id or a hash, and its table would not fit in memory


class CategoricalNB(DiscreteClassifier):
    """Categorical naive Bayes with scikit-learn's parameters and attributes; features are codes 0, 1, 2, …

    NaN is a missing value, and a code never seen is no evidence. A number that is not whole is a category by itself,
    not cut to the code below it.

    >>> CategoricalNB().fit([[0, 2], [1, 1], [0, 2]], ["a", "b", "a"]).predict([[0, 7]])
    array(['a'], dtype='<U1')
    """

    _ready = (np.int64,)
    _x_checks = {"ensure_all_finite": "allow-nan"}  # noqa: RUF012

    def __init__(
        self,
        *,
        alpha: float = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        min_categories: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.min_categories = min_categories

    def _schema(self, table: Any, y: Any, weights: Floats | None) -> Schema:
        names = getattr(self, "feature_names_in_", None)
        columns = [
            Column(f"{MATRIX}{j}" if names is None else names[j], "category", source=f"{MATRIX}{j}")
            for j in range(table.shape[1])
        ]
        return Schema(columns, target=LABELS, label_type=labels.label_type(self.classes_), missing=())

    def _table(self, X: Any) -> Any:
        check_non_negative(X, "CategoricalNB (input X)")
        return X

    def _settings(self) -> Settings:
        if not np.ndim(self.alpha) == 0:
            raise SettingsError("alpha is an array", hint="CategoricalNB takes one alpha for all categories.")
        self._least()
        return Settings(smoothing=self._smoothing(), prior=self._prior(), classes=self._class_texts())

    def _least(self) -> Ints:
        """How many categories each feature has at least."""
        if self.min_categories is None:
            return np.zeros(self.n_features_in_, dtype=np.int64)
        least = np.asarray(self.min_categories)
        if not np.issubdtype(least.dtype, np.signedinteger):
            raise SettingsError(
                f"'min_categories' should have integral type. Got {least.dtype} instead.",
                hint="give a whole number, or one for each feature.",
            )
        if least.ndim and least.shape != (self.n_features_in_,):
            raise SettingsError(
                f"'min_categories' should have shape ({self.n_features_in_},) when an array-like is provided. "
                f"Got {least.shape} instead.",
                hint="give a whole number, or one for each feature.",
            )
        return np.broadcast_to(least, (self.n_features_in_,)).astype(np.int64)

    @property
    def categories_(self) -> list[Floats]:
        """The categories of each feature, in the order of `category_count_`.

        Whole numbers from 0 to the largest one counted and at least `min_categories` of them, each at its own place;
        then other numbers, of which each is a category by itself.
        """
        out = []
        for column, least in zip(self._columns(), self._least().tolist(), strict=True):
            values = column.slots.cast("double").to_numpy(zero_copy_only=False)
            other = values % 1 != 0
            most = max(int(values[~other].max(initial=-1)) + 1, least)
            if most > MOST:
                raise DataError(
                    f"a feature has the code {most - 1:,}, so it would have as many categories",
                    hint="number the categories from 0 without gaps: sklearn.preprocessing.OrdinalEncoder does.",
                )
            codes = np.arange(most, dtype=np.float64)
            out.append(np.concatenate([codes, np.sort(values[other])]))
        return out

    @property
    def n_categories_(self) -> Ints:
        """How many categories each feature has."""
        return np.array([len(values) for values in self.categories_], dtype=np.int64)

    def _columns(self) -> list[Sheet]:
        return [self.tally_.columns[c.name].sheet("values", N) for c in self.tally_.schema.counted]

    def _estimate(self, tally: Tally, settings: Settings) -> Model:
        """Every code below the largest is a category, seen or not."""
        schema = tally.schema
        columns = [replace(c, values=tuple(v)) for c, v in zip(schema.columns, self.categories_, strict=True)]
        return replace(tally, schema=schema._with(columns=columns)).model(settings)

    def _drawn(self, table: Any) -> Ints:
        return np.stack([column.cast("int64").to_numpy() for column in table.columns], axis=1)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.positive_only = True
        return tags

    @property
    def category_count_(self) -> list[Floats]:
        """For each feature the counts, classes × categories."""
        tally = self.tally_
        at, out = self._class_places(), []
        for sheet, categories in zip(self._columns(), self.categories_, strict=True):
            table = np.zeros((len(self.classes_), len(categories)))
            place = _places(sheet.slot_names, categories)
            table[np.ix_(at, place)] = sheet.table("n", len(tally.classes)).T
            out.append(table)
        return out

    @property
    def feature_log_prob_(self) -> list[Floats]:
        """For each feature log P(category given class), classes × categories."""
        order = self._asked_model().order
        out = []
        for belief, categories in zip(self._beliefs(), self.categories_, strict=True):
            table = np.empty((len(self.classes_), len(categories)))
            table[:, _places(belief.values, categories)] = safe_log(belief.probabilities).T
            out.append(table if order is None else table[order])
        return out

    def _beliefs(self) -> Iterable[Any]:
        return self.model_.beliefs.values()


def _places(names: Sequence[str], categories: Floats) -> Ints:
    """Where each category, by its canonical name, stands among all of a feature."""
    at = {canon.number_text(v): i for i, v in enumerate(categories.tolist())}
    return np.array([at[name] for name in names], dtype=np.int64)
