"""What every estimator shares: a tally that `fit` counts, and a model that is asked of it when an answer is needed.

Counting keeps no parameter, so one changed by `set_params` takes effect at the next answer, and `partial_fit` in any
cut and order equals `fit` bit for bit. An estimator says how its data are read (`_validated`, `_table`, `_columns`) and
what its parameters mean (`_settings`); everything else is here. Files and pickles hold the tally in the library's own
format.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..base.arrays import Floats, Ints, safe_log
from ..base.errors import DataError, SettingsError
from ..data.schema import Column, Schema
from ..data.sources import LABELS
from ..explain.explanation import Explanation
from ..families.settings import Settings
from ..model.model import Model
from ..model.posterior import best, log_posterior
from ..model.prior import class_prior, class_totals
from ..store import model_file
from ..tally.tally import Tally, add_tallies
from . import labels
from .answer import Answer
from .labels import Labels, generator, weights_of

_MOST_TALLIES = 64  # of small batches that wait to be added together, which is faster than one by one
_NOTE = "scikit-learn"  # where a model's notes keep what only its estimator needs
_IN_NOTES = (bool, int, float, str, list, tuple, np.ndarray, np.generic, type(None))  # parameters that go there


def _plain(value: Any) -> Any:
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


class TallyClassifier(ClassifierMixin, BaseEstimator):
    """The shared base of all estimators; not one itself."""

    _open = False  # whether partial_fit takes classes that were not declared
    _dtype = np.dtype(np.float64)  # of attributes that scikit-learn gives in the type of X
    _ready: tuple[Any, ...] = ()  # types of matrices that reading checks itself
    _x_checks: dict[str, Any] = {}  # noqa: RUF012 - constant, per class
    _takes: tuple[str, ...] = ()  # scikit-learn's tags of the input that hold

    # ---- counting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count the rows of X with the labels y, forgetting what was counted before; returns self.

        A row of weight 0 is as if it were not there, its class included.
        """
        table, y, weights = self._checked(X, y, sample_weight, reset=True)
        for name in ("_answer", "_chosen", "_counted", "_dtype"):  # data that cannot be fitted leave no older answers
            self.__dict__.pop(name, None)
        given = labels.encoded(y)
        self.classes_ = labels.distinct(given, y, weights)
        if len(self.classes_) == 0:
            raise ValueError("every sample weight is zero: there is nothing to count")
        self._check_classes()
        self._count(table, given, weights)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count some more rows; the result equals `fit` on all of them, bit for bit; returns self.

        The first call needs `classes`, all labels that will ever come, unless the estimator takes new ones
        (`NaiveBayes` does).

        >>> from tallybayes.sklearn import GaussianNB
        >>> X, y = [[150.0], [160.0], [170.0], [180.0], [190.0]], ["a", "a", "a", "b", "b"]
        >>> parts = GaussianNB().partial_fit(X[:2], y[:2], classes=["a", "b"]).partial_fit(X[2:], y[2:])
        >>> parts.tally_ == GaussianNB().fit(X, y).tally_
        True
        """
        table, y, weights = self._checked(X, y, sample_weight, reset=not self.__sklearn_is_fitted__())
        given = labels.encoded(y)
        found = labels.distinct(given, y, weights)
        known = getattr(self, "classes_", None)
        if classes is not None:
            stated = labels.stated(classes)
            if not (known is None or self._open or np.array_equal(known, stated)):
                raise ValueError(
                    f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {known!r}"
                )
            known = stated if known is None else labels.union(known, stated)
        elif known is None:
            if not self._open:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            known = found[:0]
        new = ~np.isin(found, known)
        if new.any() and not self._open:
            raise ValueError(f"The target label(s) {found[new]} in y do not exist in the initial classes {known}")
        self.classes_ = labels.union(known, found) if new.any() else known
        self._count(table, given, weights)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows away as if they had never been counted; returns self.

        Rows that cannot have been counted are refused, and then nothing is changed. `classes_` stays as it is.

        >>> from tallybayes.sklearn import GaussianNB
        >>> GaussianNB().fit([[1.0], [8.0], [9.0]], ["a", "b", "b"]).forget([[9.0]], ["b"]).class_count_.tolist()
        [1.0, 1.0]
        """
        check_is_fitted(self)
        table, y, weights = self._checked(X, y, sample_weight, reset=False)
        self._restored(self.tally_.forget(table, labels.encoded(y), weights=weights))
        return self

    def merge(self, other: TallyClassifier) -> Self:
        """Add what another estimator has counted, as if its rows had been counted here; returns self.

        >>> from tallybayes.sklearn import GaussianNB
        >>> X, y = [[150.0], [160.0], [170.0], [180.0], [190.0]], ["a", "a", "a", "b", "b"]
        >>> GaussianNB().fit(X, y).merge(GaussianNB().fit(X, y)).class_count_.tolist()
        [6.0, 4.0]
        """
        check_is_fitted(self)
        check_is_fitted(other)
        if type(other) is not type(self) or other.n_features_in_ != self.n_features_in_:
            raise DataError(
                f"a {type(other).__name__} of {other.n_features_in_} features cannot be merged into a "
                f"{type(self).__name__} of {self.n_features_in_}",
                hint="merge estimators of one class that were fitted to the same columns.",
            )
        total = self.tally_ + other.tally_
        self.classes_ = labels.union(self.classes_, other.classes_)
        self._restored(total)
        return self

    def __add__(self, other: TallyClassifier) -> Self:
        if not isinstance(other, TallyClassifier):
            return NotImplemented
        both: Self = type(self).__new__(type(self))
        both.__dict__.update(vars(self))  # merging puts other counts in, it changes none
        return both.merge(other)

    @property
    def tally_(self) -> Tally:
        """Everything that was counted: exact, and ready to be added to other tallies."""
        self._check_fitted()
        if len(self._counted) > 1:
            self._counted[:] = [add_tallies(self._counted)]
        return self._counted[0]

    # ---- answers

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log P(class) + Σ log P(value given class), rows × classes in the order of `classes_`."""
        table = self._read(X)
        return self._in_order(self.model_.log_joint(table))

    def predict_log_proba(self, X: Any) -> Floats:
        """log P(class given row), rows × classes in the order of `classes_`."""
        return log_posterior(self.predict_joint_log_proba(X), self._log_prior())

    def predict_proba(self, X: Any) -> Floats:
        """P(class given row), rows × classes in the order of `classes_`; each row sums to one."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Labels:
        """The most probable class of each row.

        >>> from tallybayes.sklearn import GaussianNB
        >>> X, y = [[150.0], [160.0], [170.0], [180.0], [190.0]], ["a", "a", "a", "b", "b"]
        >>> GaussianNB().fit(X, y).predict([[165.0], [183.0]]).tolist()
        ['a', 'b']
        """
        joint = self.predict_joint_log_proba(X)
        at = best(np.ascontiguousarray(joint))
        if at.min(initial=0) < 0:  # every class impossible: the prior answers
            at = np.argmax(log_posterior(joint, self._log_prior()), axis=1)
        out: Labels = self.classes_[at]
        return out

    def explain(self, X: Any) -> list[Explanation]:
        """For each row of X why it gets its answer: the prior and every column, adding up to the score."""
        table = self._read(X)
        rows = X.shape[0] if hasattr(X, "shape") else len(X)
        return [self.model_.explain(table, row) for row in range(rows)]

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, Labels]:
        """Rows drawn by the generative story beneath the answers (`model_.generative`), and their labels."""
        table = self.model_.generative.sample(n_samples, generator(random_state))
        target = self.tally_.schema.target
        return self._drawn(table.drop_columns([target])), table[target].to_numpy().astype(self.classes_.dtype)

    @property
    def model_(self) -> Model:
        """The model behind the answers: `tally_` believed by the present parameters."""
        model = self._answered().model
        assert model is not None
        return model

    # ---- files

    def to_file(self, path: Any) -> None:
        """Write the estimator to a model file, which `from_file` and `tallybayes.load` read.

        >>> from tallybayes.sklearn import GaussianNB
        >>> GaussianNB().fit([[1.0], [8.0], [9.0]], ["a", "b", "b"]).to_file("three.tb.parquet")
        >>> GaussianNB.from_file("three.tb.parquet").class_count_.tolist()
        [1.0, 2.0]
        """
        model = self.model_
        names = getattr(self, "feature_names_in_", None)
        given: dict[str, Any] = self.get_params()
        note = {
            "estimator": type(self).__name__,
            "params": {n: _plain(v) for n, v in given.items() if n == "kinds" or isinstance(v, _IN_NOTES)},
            "classes": {"values": self.classes_.tolist(), "dtype": self.classes_.dtype.str},
            "features": self.n_features_in_,
            "names": None if names is None else names.tolist(),
            "dtype": str(self._dtype),
        }
        replace(model, notes={_NOTE: note}).save(path)

    @classmethod
    def from_file(cls, path: Any) -> Self:
        """The estimator that `to_file` wrote; another estimator's file is refused."""
        model = model_file.load(path)
        note = model.notes.get(_NOTE)
        found = "a model of no estimator" if note is None else f"a {note['estimator']}"
        if note is None or note["estimator"] != cls.__name__ or model.tally is None:
            other = "." if note is None else f"; {note['estimator']}.from_file(path)."
            raise DataError(
                f"{os.fspath(path)} holds {found}, not a {cls.__name__}",
                hint=f"tallybayes.load(path) reads any model{other}",
            )
        out = cls(**{**cls._params_of(model), **note["params"]})
        out.classes_ = np.array(note["classes"]["values"], dtype=note["classes"]["dtype"])
        out.n_features_in_ = int(note["features"])
        if note["names"] is not None:
            out.feature_names_in_ = np.array(note["names"], dtype=object)
        out._dtype = np.dtype(note["dtype"])
        out._recall(model)
        out._restored(model.tally)
        return out

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_counted" in state:
            state.pop("_answer")
            state["_counted"] = model_file.tally_to_bytes(self.tally_)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_counted" in state:
            self._restored(model_file.tally_from_bytes(state["_counted"]))

    def _restored(self, tally: Tally) -> None:
        self._counted = [tally]
        self._answer = self._asked()

    def __sklearn_is_fitted__(self) -> bool:
        return "_answer" in vars(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        for name in self._takes:
            setattr(tags.input_tags, name, True)
        return tags

    # ---- what an estimator says of itself

    def _validated(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """X, or X and y, checked once and turned into arrays."""
        if not reset and isinstance(y, str) and self._is_ready(X):
            return X
        return validate_data(self, labels.frame(X), y, reset=reset, **self._x_checks)

    def _is_ready(self, X: Any) -> bool:
        """Whether there is nothing to check that reading does not: checking takes longer than one row's answer."""
        return (
            type(X) is np.ndarray
            and X.ndim == 2
            and X.dtype in self._ready
            and len(X) > 0
            and X.shape[1] == self.n_features_in_
            and not hasattr(self, "feature_names_in_")
        )

    def _table(self, X: Any) -> Any:
        """The checked X as a tally and a model read it."""
        return X

    def _columns(self, table: Any) -> list[Column]:
        """What is counted of a matrix."""
        raise NotImplementedError

    def _schema(self, table: Any, y: Any, weights: Floats | None) -> Schema:
        """What is counted of the first table."""
        return Schema(self._columns(table), target=LABELS, label_type=labels.label_type(self.classes_), missing=())

    def _check_classes(self) -> None:
        """Refuse parameters that do not suit the classes of all rows."""

    def _settings(self) -> Settings:
        """What the parameters mean; refuses those that are out of range."""
        raise NotImplementedError

    def _estimate(self, tally: Tally, settings: Settings) -> Model:
        """The model of the counts."""
        return tally.model(settings)

    def _drawn(self, table: Any) -> Any:
        """Sampled rows as X would be given."""
        return table

    def _recall(self, model: Model) -> None:
        """Take from a loaded model what was worked out when fitting, besides the counts."""

    @classmethod
    def _params_of(cls, model: Model) -> dict[str, Any]:
        """The parameters that a model's settings hold, where they are no plain numbers or texts."""
        return {}

    # ---- inside

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, Labels, Floats | None]:
        X, y = self._validated(X, y, reset=reset)
        return self._table(X), y, None if sample_weight is None else weights_of(sample_weight, len(y))

    def _read(self, X: Any) -> Any:
        """X as the model of a fitted estimator reads it."""
        self._check_fitted()
        return self._table(self._validated(X, reset=False))

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # which takes long to say yes

    def _count(self, table: Any, y: Any, weights: Floats | None) -> None:
        before: list[Tally] = vars(self).get("_counted", [])
        schema = before[0].schema if before else self._schema(table, y, weights)
        answer = self._asked()  # parameters that are wrong are refused before anything is counted
        counted = [*before, Tally.of(schema, table, y, weights=weights)]
        self._counted = counted if len(counted) <= _MOST_TALLIES else [add_tallies(counted)]
        self._answer = answer

    def _asked(self) -> Answer:
        """The parameters as settings, not yet answered."""
        return Answer.asked(self, self._settings())

    def _answered(self) -> Answer:
        """The answer of the present counts and parameters, worked out when one of them has changed."""
        self._check_fitted()
        answer = self._answer
        if not answer.still_of(self):
            vars(answer).update(vars(self._asked()))
        if answer.model is None:
            answer.model = self._estimate(self.tally_, answer.settings)
            names, wanted = labels.texts(answer.model.classes), self._class_texts()
            answer.order = None if names == wanted else labels.places(wanted, names)
        return answer

    def _in_order(self, table: Floats) -> Floats:
        """A table whose columns are the classes of `model_`, in the order of `classes_`."""
        order = self._answer.order
        return table if order is None else table[:, order]

    def _class_texts(self) -> tuple[str, ...]:
        return labels.texts(self.classes_.tolist())

    def _class_places(self) -> Ints:
        """Where each class of the tally stands among `classes_`."""
        return labels.places(self.tally_.classes, self._class_texts())

    def _log_prior(self) -> Floats:
        answer = self._answered()
        if answer.log_prior is None:
            names = self._class_texts()
            answer.log_prior = safe_log(class_prior(answer.settings, names, class_totals(self.tally_, names)))
        return answer.log_prior

    def _given_prior(self, given: Any) -> dict[str, float]:
        """A prior given in the order of `classes_`, by class."""
        prior = labels.numbers(given, "prior", f"give one probability for each of {self.classes_.tolist()}.")
        if prior.shape != self.classes_.shape:
            raise SettingsError(
                f"Number of priors must match number of classes. There are {prior.size} and {len(self.classes_)}",
                hint=f"give one for each of {self.classes_.tolist()}, in this order.",
            )
        if not (prior >= 0).all():
            raise SettingsError("Priors must be non-negative.", hint="give probabilities from 0 to 1.")
        return dict(zip(self._class_texts(), (prior / prior.sum()).tolist(), strict=True))

    @property
    def class_count_(self) -> Floats:
        """The rows (or weight) of each class."""
        return class_totals(self.tally_, self._class_texts())
