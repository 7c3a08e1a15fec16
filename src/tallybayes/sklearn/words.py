"""Counts of words: how often each occurs (multinomial, complement) or whether it does (Bernoulli)."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_non_negative

from ..base.arrays import Floats, Ints, safe_log
from ..base.errors import DataError, SettingsError, warn
from ..data.blocks import WORDS
from ..data.schema import Column, Schema
from ..data.sources import LABELS, MATRIX
from ..families import BernoulliWords, Complement, Family, Multinomial
from ..families.settings import Settings
from ..families.smoothing import Dirichlet, Laplace, Smoothing
from ..model.model import Model
from ..tally.tally import Tally
from . import labels
from .base import TallyClassifier

SMALLEST = 1e-10  # the alpha that scikit-learn takes for a smaller one, unless force_alpha


class DiscreteClassifier(TallyClassifier):
    """What the four with an alpha share: the parameters of smoothing and prior."""

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any

    def _check_alpha(self) -> Any:
        """The alpha to be used: a number, or one for each feature."""
        alpha: Any = self.alpha if isinstance(self.alpha, Real) else np.asarray(self.alpha, dtype=np.float64)
        if isinstance(alpha, np.ndarray) and alpha.shape != (self.n_features_in_,):
            raise SettingsError(
                f"When alpha is an array, it should contains `n_features`. Got {alpha.size} elements instead of "
                f"{self.n_features_in_}.",
                hint="give one number for all features, or one for each.",
            )
        if not np.min(alpha) >= 0:
            raise SettingsError(
                "All values in alpha must be greater than 0.", hint="alpha counts imagined rows: take at least 0."
            )
        if np.min(alpha) < SMALLEST and not self.force_alpha:
            warn(
                f"alpha too small will result in numeric errors, setting alpha = {SMALLEST:.1e}. Use `force_alpha=True`"
                " to keep alpha unchanged."
            )
            return np.maximum(alpha, SMALLEST)
        return alpha

    def _smoothing(self) -> Smoothing:
        alpha = self._check_alpha()
        if not isinstance(alpha, np.ndarray):
            return Laplace(float(alpha))
        return Dirichlet({str(j): a for j, a in enumerate(alpha.tolist())})

    def _prior(self) -> Any:
        if self.class_prior is not None:
            return self._given_prior(self.class_prior)
        return "counted" if self.fit_prior else "uniform"

    @property
    def class_log_prior_(self) -> Floats:
        """log P(class)."""
        return self._log_prior().copy()


class WordsClassifier(DiscreteClassifier):
    """What the three that read a matrix of amounts share."""

    _x_checks = {"accept_sparse": "csr"}  # noqa: RUF012
    _amount = "n"

    def _family(self) -> Family:
        raise NotImplementedError

    def _schema(self, table: Any, y: Any, weights: Floats | None) -> Schema:
        columns = [Column(MATRIX, "bag", width=table.shape[1])]
        return Schema(columns, target=LABELS, label_type=labels.label_type(self.classes_), missing=())

    def _settings(self) -> Settings:
        return Settings(
            smoothing=self._smoothing(),
            prior=self._prior(),
            families={MATRIX: self._family()},
            classes=self._class_texts(),
        )

    def _table(self, X: Any) -> Any:
        check_non_negative(X, f"{type(self).__name__} (input X)")
        return X

    def _drawn(self, table: Any) -> Any:
        """Lists of positions as a matrix of counts."""
        bags = table[MATRIX].combine_chunks()
        row = np.repeat(np.arange(len(bags)), np.diff(bags.offsets.to_numpy()))
        slot = bags.flatten().cast("int64").to_numpy()
        shape = (len(bags), self.n_features_in_)
        return scipy.sparse.coo_array((np.ones(len(row)), (row, slot)), shape=shape).tocsr()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.classifier_tags.poor_score = True
        return tags

    def _by_class(self, words: Ints, table: Floats, order: Ints | None) -> Floats:
        """Words × classes of the model as scikit-learn shows it: classes × features."""
        out = np.zeros((table.shape[1], self.n_features_in_))
        out[:, words] = table.T
        return out if order is None else out[order]

    @property
    def feature_count_(self) -> Floats:
        """The amount of each feature by class."""
        tally = self.tally_
        sheet = tally.columns[MATRIX].sheet("words", WORDS)
        words = sheet.slots.cast("int64").to_numpy()
        table = np.zeros((self.n_features_in_, len(self.classes_)))
        table[np.ix_(words, self._class_places())] = sheet.table(self._amount, len(tally.classes))
        return np.ascontiguousarray(table.T)

    @property
    def feature_log_prob_(self) -> Floats:
        """What one occurrence of each feature adds to the score of each class."""
        belief: Any = self.model_.beliefs[MATRIX]
        words = np.array(belief.words).astype(np.int64)
        return self._by_class(words, self._logs(belief), self._asked_model().order)

    def _logs(self, belief: Any) -> Floats:
        out: Floats = belief.weights
        return out


class MultinomialNB(WordsClassifier):
    """Multinomial naive Bayes with scikit-learn's parameters and attributes, for counts or non-negative amounts.

    >>> MultinomialNB().fit([[2, 0, 1], [0, 3, 0]], ["a", "b"]).predict([[1, 0, 0]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self, *, alpha: Any = 1.0, force_alpha: bool = True, fit_prior: bool = True, class_prior: Any = None
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _family(self) -> Family:
        return Multinomial()


class ComplementNB(WordsClassifier):
    """Complement naive Bayes (Rennie et al. 2003) with scikit-learn's parameters and attributes.

    The prior is not used unless there is a single class.

    >>> ComplementNB().fit([[2, 0, 1], [0, 3, 0]], ["a", "b"]).predict([[1, 0, 0]])
    array(['a'], dtype='<U1')
    """

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        fit_prior: bool = True,
        class_prior: Any = None,
        norm: bool = False,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior
        self.norm = norm

    def _family(self) -> Family:
        return Complement(norm=self.norm)

    def _estimate(self, tally: Tally, settings: Settings) -> Model:
        model = tally.model(settings)
        return model if len(model.classes) == 1 else replace(model, log_prior=np.zeros(len(model.classes)))

    @property
    def feature_all_(self) -> Floats:
        """The amount of each feature over all classes."""
        return np.asarray(self.feature_count_.sum(axis=0))


class BernoulliNB(WordsClassifier):
    """Bernoulli naive Bayes with scikit-learn's parameters and attributes: which features are above `binarize`.

    >>> BernoulliNB().fit([[2, 0, 1], [0, 3, 0]], ["a", "b"]).predict([[1, 0, 0]])
    array(['a'], dtype='<U1')
    """

    _amount = "documents"

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.binarize = binarize
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _family(self) -> Family:
        return BernoulliWords()

    def _table(self, X: Any) -> Any:
        if self.binarize is not None:
            if self.binarize < 0:
                raise SettingsError(
                    f"binarize is {self.binarize!r}", hint="take a threshold of at least 0, or None for zeros and ones."
                )
            return X > self.binarize  # noqa: SIM300 - sparse matrices compare from the left
        values = X.data if scipy.sparse.issparse(X) else X
        if not np.isin(values, (0, 1)).all():
            raise DataError(
                "with binarize=None the input must be zeros and ones, and it is not",
                hint="give a threshold: BernoulliNB(binarize=0.0) takes everything above 0 as present.",
            )
        return X

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.positive_only = False
        return tags

    def _logs(self, belief: Any) -> Floats:
        return safe_log(belief.present)
