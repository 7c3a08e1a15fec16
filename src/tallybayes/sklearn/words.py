"""Counts of words: how often each occurs (multinomial, complement) or whether it does (Bernoulli)."""

from __future__ import annotations

from dataclasses import replace
from numbers import Real
from typing import Any

import numpy as np
import scipy.sparse
from sklearn.utils.validation import check_non_negative

from ..base.arrays import Floats, safe_log
from ..base.errors import DataError, SettingsError, warn
from ..data.blocks import WORDS
from ..data.schema import Column
from ..data.sources import MATRIX
from ..families import BernoulliWords, Complement, Family, Multinomial
from ..families.settings import Settings
from ..families.smoothing import Dirichlet, Laplace, Smoothing
from ..model.model import Model
from ..tally.tally import Tally
from . import labels
from .base import TallyClassifier

SMALLEST_ALPHA = 1e-10  # what scikit-learn takes for a smaller one, unless force_alpha


class DiscreteClassifier(TallyClassifier):
    """What the four with an alpha share: the parameters of smoothing and prior."""

    alpha: Any
    force_alpha: bool
    fit_prior: bool
    class_prior: Any

    def __init__(
        self, *, alpha: Any = 1.0, force_alpha: bool = True, fit_prior: bool = True, class_prior: Any = None
    ) -> None:
        self.alpha = alpha
        self.force_alpha = force_alpha
        self.fit_prior = fit_prior
        self.class_prior = class_prior

    def _table(self, X: Any) -> Any:
        check_non_negative(X, f"{type(self).__name__} (input X)")
        return X

    def _families(self) -> dict[str, Family]:
        return {}

    def _settings(self) -> Settings:
        smoothing, prior = self._smoothing(), self._prior()
        return Settings(smoothing=smoothing, prior=prior, families=self._families(), classes=self._class_texts())

    def _smoothing(self) -> Smoothing:
        alpha = self._check_alpha()
        if isinstance(alpha, np.ndarray):
            return Dirichlet({str(j): a for j, a in enumerate(alpha.tolist())})
        return Laplace(float(alpha))

    def _check_alpha(self) -> Any:
        """The alpha to be used, a number or one for each feature; scikit-learn's own tests ask for it by this name."""
        alpha: Any = self.alpha
        if not isinstance(alpha, Real):
            alpha = labels.numbers(alpha, "alpha", "give one number for all features, or one for each.")
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
        if np.min(alpha) < SMALLEST_ALPHA and not self.force_alpha:
            warn(
                f"alpha too small will result in numeric errors, setting alpha = {SMALLEST_ALPHA:.1e}. Use "
                "`force_alpha=True` to keep alpha unchanged."
            )
            return np.maximum(alpha, SMALLEST_ALPHA)
        return alpha

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
    _takes: tuple[str, ...] = ("sparse", "positive_only")

    def _columns(self, table: Any) -> list[Column]:
        return [Column(MATRIX, "bag", width=table.shape[1])]

    def _drawn(self, table: Any) -> Any:
        """Lists of positions as a matrix of counts."""
        bags = table[MATRIX].combine_chunks()
        row = np.repeat(np.arange(len(bags)), np.diff(bags.offsets.to_numpy()))
        slot = bags.flatten().cast("int64").to_numpy()
        shape = (len(bags), self.n_features_in_)
        return scipy.sparse.coo_array((np.ones(len(row)), (row, slot)), shape=shape).tocsr()

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.poor_score = True
        return tags

    @property
    def feature_count_(self) -> Floats:
        """The amount of each feature by class."""
        tally = self.tally_
        sheet = tally.columns[MATRIX].sheet("words", WORDS)
        table = np.zeros((len(self.classes_), self.n_features_in_))
        words = sheet.slots.cast("int64").to_numpy()
        table[np.ix_(self._class_places(), words)] = sheet.table(self._amount, len(tally.classes)).T
        return table

    @property
    def feature_log_prob_(self) -> Floats:
        """What one occurrence of each feature adds to the score of each class."""
        belief: Any = self.model_.beliefs[MATRIX]
        table = np.zeros((len(self.classes_), self.n_features_in_))
        table[:, np.array(belief.words).astype(np.int64)] = self._in_order(self._logs(belief)).T
        return table

    def _logs(self, belief: Any) -> Any:
        return belief.weights


class MultinomialNB(WordsClassifier):
    """Multinomial naive Bayes with scikit-learn's parameters and attributes, for counts or non-negative amounts.

    >>> from tallybayes.sklearn import MultinomialNB
    >>> MultinomialNB().fit([[2, 0, 1], [0, 3, 0]], ["a", "b"]).predict([[1, 0, 0]])
    array(['a'], dtype='<U1')
    """

    def _families(self) -> dict[str, Family]:
        return {MATRIX: Multinomial()}


class ComplementNB(WordsClassifier):
    """Complement naive Bayes (Rennie et al. 2003) with scikit-learn's parameters and attributes.

    The prior is not used unless there is a single class.

    >>> from tallybayes.sklearn import ComplementNB
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
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.norm = norm

    def _families(self) -> dict[str, Family]:
        return {MATRIX: Complement(norm=self.norm)}

    def _estimate(self, tally: Tally, settings: Settings) -> Model:
        model = tally.model(settings)
        return model if len(model.classes) == 1 else replace(model, log_prior=np.zeros(len(model.classes)))

    @property
    def feature_all_(self) -> Floats:
        """The amount of each feature over all classes."""
        return np.asarray(self.feature_count_.sum(axis=0))


class BernoulliNB(WordsClassifier):
    """Bernoulli naive Bayes with scikit-learn's parameters and attributes: which features are above `binarize`.

    >>> from tallybayes.sklearn import BernoulliNB
    >>> BernoulliNB().fit([[2, 0, 1], [0, 3, 0]], ["a", "b"]).predict([[1, 0, 0]])
    array(['a'], dtype='<U1')
    """

    _amount = "documents"
    _takes = ("sparse",)

    def __init__(
        self,
        *,
        alpha: Any = 1.0,
        force_alpha: bool = True,
        binarize: float | None = 0.0,
        fit_prior: bool = True,
        class_prior: Any = None,
    ) -> None:
        super().__init__(alpha=alpha, force_alpha=force_alpha, fit_prior=fit_prior, class_prior=class_prior)
        self.binarize = binarize

    def _families(self) -> dict[str, Family]:
        return {MATRIX: BernoulliWords()}

    def _table(self, X: Any) -> Any:
        if self.binarize is not None:
            if not labels.numbers(self.binarize, "binarize", "take a threshold of at least 0, or None.") >= 0:
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

    def _logs(self, belief: Any) -> Floats:
        return safe_log(belief.present)
