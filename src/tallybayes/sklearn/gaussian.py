"""Numbers, with a bell curve per class."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..base.errors import SettingsError
from ..data.schema import Column
from ..data.sources import MATRIX
from ..families.moments import read_moments
from ..families.settings import Floor, Settings
from .base import TallyClassifier


class GaussianNB(TallyClassifier):
    """Gaussian naive Bayes with scikit-learn's parameters and attributes, from exact sums.

    NaN is a missing value and no evidence. A column's variance is raised by `var_smoothing` times the largest variance
    of any column, as in scikit-learn; but that largest is taken as at most 10⁶ times the column's own, so that a column
    measured in small units is not drowned by one measured in large ones.

    >>> from tallybayes.sklearn import GaussianNB
    >>> import numpy as np
    >>> X = np.array([[-1, -1], [-2, -1], [-3, -2], [1, 1], [2, 1], [3, 2]])
    >>> GaussianNB().fit(X, [1, 1, 1, 2, 2, 2]).predict([[-0.8, -1]])
    array([1])
    """

    _ready = (np.float64, np.float32)
    _takes = ("allow_nan",)
    # NaN is welcome, and reading a vector refuses infinities: a second pass over X is spared
    _x_checks = {"dtype": [np.float64, np.float32], "ensure_all_finite": False}  # noqa: RUF012

    def __init__(self, *, priors: Any = None, var_smoothing: float = 1e-9) -> None:
        self.priors = priors
        self.var_smoothing = var_smoothing

    def _columns(self, table: Any) -> list[Column]:
        return [Column(MATRIX, "vector", width=table.shape[1])]

    def _count(self, table: Any, y: Any, weights: Floats | None) -> None:
        super()._count(table, y, weights)
        self._dtype = np.result_type(table.dtype, vars(self).get("_dtype", table.dtype))

    def _settings(self) -> Settings:
        prior: Any = "counted"
        if self.priors is not None:
            prior = self._given_prior(self.priors)
            if not np.isclose(np.sum(self.priors), 1.0):
                raise SettingsError("The sum of the priors should be 1.", hint="divide them by their sum.")
        share = self.var_smoothing
        if isinstance(share, bool) or not isinstance(share, (int, float, np.number)) or not share >= 0:
            raise SettingsError(
                f"var_smoothing={share!r}", hint="give a share of the largest variance, 0 or more, such as 1e-9."
            )
        floor = Floor("guarded", share)
        return Settings(prior=prior, floor=floor, classes=self._class_texts())

    def _drawn(self, table: Any) -> Floats:
        values = table[MATRIX].combine_chunks()
        return np.asarray(values.flatten().to_numpy(zero_copy_only=False).reshape(len(values), -1), dtype=self._dtype)

    def _by_class(self, table: Floats) -> Floats:
        """A table of the model (positions × its classes) as scikit-learn shows it: classes × features."""
        return np.asarray(self._in_order(table).T, dtype=self._dtype)

    @property
    def theta_(self) -> Floats:
        """The mean of each feature by class."""
        return self._by_class(self.model_.beliefs[MATRIX].location)  # type: ignore[attr-defined]

    @property
    def var_(self) -> Floats:
        """The variance of each feature by class, as used."""
        with np.errstate(over="ignore"):
            return self._by_class(self.model_.beliefs[MATRIX].scale ** 2)  # type: ignore[attr-defined]

    @property
    def epsilon_(self) -> float:
        """What is added to variances, at most."""
        largest = read_moments(self.tally_.columns[MATRIX], len(self.tally_.classes)).all_sd.max(initial=0.0)
        return float(self.var_smoothing * largest**2)

    @property
    def class_prior_(self) -> Floats:
        """P(class)."""
        return np.asarray(np.exp(self._log_prior()), dtype=self._dtype)
