"""Categories given as whole numbers from 0."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from ..base import canon
from ..base.arrays import Floats, Ints, safe_log
from ..base.errors import DataError, SettingsError
from ..data.blocks import N
from ..data.schema import Column
from ..data.sources import MATRIX
from ..exact.sheet import Sheet
from ..families.settings import Settings
from ..model.model import Model
from ..tally.tally import Tally
from . import labels
from .words import DiscreteClassifier

MOST_CATEGORIES = 1 << 24  # of one feature: a larger code is an id or a hash, and its table would not fit in memory


class CategoricalNB(DiscreteClassifier):
    """Categorical naive Bayes with scikit-learn's parameters and attributes; features are codes 0, 1, 2, …

    NaN is a missing value, and a code never seen is no evidence. A number that is not whole is a category by itself,
    not cut to the code below it.

    >>> from tallybayes.sklearn import CategoricalNB
    >>> CategoricalNB().fit([[0, 2], [1, 1], [0, 2]], ["a", "b", "a"]).predict([[0, 7]])
    array(['a'], dtype='<U1')
    """

    _ready = (np.int64,)
    _takes = ("allow_nan", "categorical", "positive_only")
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
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.min_categories = min_categories

    def _columns(self, table: Any) -> list[Column]:
        names = getattr(self, "feature_names_in_", None)
        return [
            Column(f"{MATRIX}{j}" if names is None else names[j], "category", source=f"{MATRIX}{j}")
            for j in range(table.shape[1])
        ]

    def _settings(self) -> Settings:
        if not np.ndim(self.alpha) == 0:
            raise SettingsError("alpha is an array", hint="CategoricalNB takes one alpha for all categories.")
        self._least()
        return super()._settings()

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
        for column, least in zip(self._sheets(), self._least().tolist(), strict=True):
            values = column.slots.cast("double").to_numpy(zero_copy_only=False)
            other = values % 1 != 0
            most = max(int(values[~other].max(initial=-1)) + 1, least)
            if most > MOST_CATEGORIES:
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

    def _sheets(self) -> list[Sheet]:
        return [self.tally_.columns[c.name].sheet("values", N) for c in self.tally_.schema.counted]

    def _estimate(self, tally: Tally, settings: Settings) -> Model:
        """Every code below the largest is a category, seen or not."""
        schema = tally.schema
        columns = [replace(c, values=tuple(v)) for c, v in zip(schema.columns, self.categories_, strict=True)]
        return replace(tally, schema=schema._with(columns=columns)).model(settings)

    def _drawn(self, table: Any) -> Ints:
        return np.stack([column.cast("int64").to_numpy() for column in table.columns], axis=1)

    @property
    def category_count_(self) -> list[Floats]:
        """For each feature the counts, classes × categories."""
        out = []
        for sheet, categories in zip(self._sheets(), self.categories_, strict=True):
            table = np.zeros((len(self.classes_), len(categories)))
            at = np.ix_(self._class_places(), _places(sheet.slot_names, categories))
            table[at] = sheet.table("n", len(self.tally_.classes)).T
            out.append(table)
        return out

    @property
    def feature_log_prob_(self) -> list[Floats]:
        """For each feature log P(category given class), classes × categories."""
        beliefs: Any = self.model_.beliefs.values()
        out = []
        for belief, categories in zip(beliefs, self.categories_, strict=True):
            table = np.empty((len(self.classes_), len(categories)))
            table[:, _places(belief.values, categories)] = self._in_order(safe_log(belief.probabilities)).T
            out.append(table)
        return out


def _places(names: Sequence[str], categories: Floats) -> Ints:
    """Where each category, by its canonical name, stands among all of a feature."""
    return labels.places(names, map(canon.number_text, categories.tolist()))
