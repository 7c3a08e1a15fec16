"""What every estimator shares: a tally that `fit` counts, and a model that is asked of it when an answer is needed.

Counting keeps no parameter, so one changed by `set_params` takes effect at the next answer, and `partial_fit` in any
cut and order equals `fit` bit for bit. An estimator says how its data are read (`_validated`, `_table`, `_schema`) and
what its parameters mean (`_settings`); everything else is here.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import cache
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from ..base.arrays import Floats, Ints, safe_log
from ..base.errors import DataError, SettingsError
from ..data.schema import Schema
from ..explain.explanation import Explanation
from ..families.settings import Settings
from ..model.model import Model
from ..model.posterior import best, log_posterior
from ..model.prior import class_prior, class_totals
from ..tally.tally import Tally, add_tallies
from . import files, labels
from .labels import Labels, generator, how_many, weights_of

_PENDING = 64  # tallies of small batches that wait to be added together, which is faster than one by one


@dataclass
class Counted:
    """The counts of an estimator: the sum of these tallies, added when it is asked for."""

    parts: list[Tally]

    def add(self, tally: Tally) -> None:
        """Count more rows."""
        self.parts.append(tally)
        if len(self.parts) > _PENDING:
            self.total()

    def total(self) -> Tally:
        """The sum."""
        if len(self.parts) > 1:
            self.parts[:] = [add_tallies(self.parts)]
        return self.parts[0]


@dataclass
class Answer:
    """A model, the parameters it was asked with, and the order of its classes."""

    params: dict[str, Any]
    settings: Settings
    model: Model | None = None
    order: Ints | None = None  # from the model's classes to classes_
    log_prior: Floats | None = None  # of classes_


@cache
def _names(kind: Any) -> tuple[str, ...]:
    return tuple(kind._get_param_names())


def parameters(estimator: Any) -> dict[str, Any]:
    """The parameters as they are now; an array or a dict that is changed afterwards does not change here."""
    kind: Any = type(estimator)
    return {name: copy.copy(getattr(estimator, name)) for name in _names(kind)}


def same(now: Any, then: Any) -> bool:
    """Whether a parameter is what it was."""
    if now is then:
        return True
    if isinstance(now, np.ndarray) or isinstance(then, np.ndarray):
        return isinstance(now, type(then)) and np.array_equal(now, then)
    return type(now) is type(then) and bool(now == then)


class TallyClassifier(ClassifierMixin, BaseEstimator):
    """The shared base of all estimators; not one itself."""

    _open = False  # whether partial_fit takes classes that were not declared
    _dtype = np.dtype(np.float64)  # of attributes that scikit-learn gives in the type of X
    _ready: tuple[Any, ...] = ()  # types of matrices that reading checks itself
    _x_checks: dict[str, Any] = {}  # noqa: RUF012 - constant, per class

    # ---- counting

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Count the rows of X with the labels y, forgetting what was counted before; returns self.

        A row of weight 0 is as if it were not there, its class included.
        """
        table, y, weights = self._checked(X, y, sample_weight, reset=True)
        self._reset()
        given = labels.encoded(y)
        self.classes_ = labels.distinct(given, y, weights)
        if len(self.classes_) == 0:
            raise ValueError("every sample weight is zero: there is nothing to count")
        self._count(table, given, weights)
        return self

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Count some more rows; the result equals `fit` on all of them, bit for bit; returns self.

        The first call needs `classes`, all labels that will ever come, unless the estimator takes new ones
        (`NaiveBayes` does).
        """
        table, y, weights = self._checked(X, y, sample_weight, reset=not self.__sklearn_is_fitted__())
        given = labels.encoded(y)
        found = labels.distinct(given, y, weights)
        known = getattr(self, "classes_", None)
        if classes is None:
            if known is None and not self._open:
                raise ValueError("classes must be passed on the first call to partial_fit.")
            stated = found[:0] if known is None else known
        else:
            stated = labels.declared(classes)
            if known is not None and not self._open and not np.array_equal(known, stated):
                raise ValueError(
                    f"`classes={classes!r}` is not the same as on last call to partial_fit, was: {known!r}"
                )
        self.classes_ = self._with_new(stated if known is None else labels.union(known, stated), found)
        self._count(table, given, weights)
        return self

    def forget(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Take rows away as if they had never been counted; returns self.

        Rows that cannot have been counted are refused, and then nothing is changed. `classes_` stays as it is.
        """
        check_is_fitted(self)
        table, y, weights = self._checked(X, y, sample_weight, reset=False)
        rest = self.tally_.forget(table, labels.encoded(y), weights=weights)
        self._restored(rest)
        return self

    def merge(self, other: TallyClassifier) -> Self:
        """Add what another estimator has counted, as if its rows had been counted here; returns self."""
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
        check_is_fitted(self)
        return self._counted.total()

    # ---- answers

    def predict_joint_log_proba(self, X: Any) -> Floats:
        """log P(class) + Σ log P(value given class), rows × classes in the order of `classes_`."""
        if not self.__sklearn_is_fitted__():
            check_is_fitted(self)  # which takes long to say yes
        table = self._table(self._validated(X, reset=False))
        answer = self._asked_model()
        assert answer.model is not None
        joint = answer.model.log_joint(table)
        return joint if answer.order is None else joint[:, answer.order]

    def predict_log_proba(self, X: Any) -> Floats:
        """log P(class given row), rows × classes in the order of `classes_`."""
        return self._posterior(self.predict_joint_log_proba(X))

    def predict_proba(self, X: Any) -> Floats:
        """P(class given row), rows × classes in the order of `classes_`; each row sums to one."""
        return np.exp(self.predict_log_proba(X))

    def predict(self, X: Any) -> Labels:
        """The most probable class of each row."""
        joint = self.predict_joint_log_proba(X)
        at = best(np.ascontiguousarray(joint))
        if at.min(initial=0) < 0:  # every class impossible: the prior answers
            at = np.argmax(self._posterior(joint), axis=1)
        out: Labels = self.classes_[at]
        return out

    def _posterior(self, joint: Floats) -> Floats:
        return log_posterior(joint, self._log_prior())

    def explain(self, X: Any) -> list[Explanation]:
        """For each row of X why it gets its answer: the prior and every column, adding up to the score."""
        check_is_fitted(self)
        table = self._table(self._validated(X, reset=False))
        return [self.model_.explain(table, row) for row in range(how_many(X))]

    def sample(self, n_samples: int = 1, random_state: Any = None) -> tuple[Any, Labels]:
        """Rows drawn by the generative story, and their labels."""
        table = self.model_.sample(n_samples, generator(random_state))
        target = self.tally_.schema.target
        return self._drawn(table.drop_columns([target])), table[target].to_numpy().astype(self.classes_.dtype)

    @property
    def model_(self) -> Model:
        """The model behind the answers: `tally_` believed by the present parameters."""
        check_is_fitted(self)
        answer = self._asked_model()
        assert answer.model is not None
        return answer.model

    # ---- files

    def to_file(self, path: Any) -> None:
        """Write the estimator to a model file, which `from_file` and `tallybayes.load` read."""
        files.save(self, path)

    @classmethod
    def from_file(cls, path: Any) -> Self:
        """The estimator that `to_file` wrote; another estimator's file is refused."""
        out: Self = files.load(cls, path)
        return out

    def __getstate__(self) -> dict[str, Any]:
        state = dict(super().__getstate__())
        if "_counted" in state:
            state.pop("_answer")
            state["_counted"] = files.tally_bytes(self.tally_)
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        if "_counted" in state:
            self._restored(files.tally_from(state["_counted"]))

    def _restored(self, tally: Tally) -> None:
        self._counted = Counted([tally])
        self._answer = self._asked()

    def __sklearn_is_fitted__(self) -> bool:
        return "_answer" in vars(self)

    # ---- what an estimator says of itself

    def _validated(self, X: Any, y: Any = "no_validation", *, reset: bool) -> Any:
        """X, or X and y, checked once and turned into arrays."""
        if not reset and isinstance(y, str) and self._is_ready(X):
            return X
        return validate_data(self, X, y, reset=reset, **self._x_checks)

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

    def _schema(self, table: Any, y: Any, weights: Floats | None) -> Schema:
        """What is counted of the first table."""
        raise NotImplementedError

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

    def _reset(self) -> None:
        """Drop what was counted: new data that are readable but cannot be fitted leave no older answers behind."""
        for name in ("_answer", "_chosen", "_counted", "_dtype"):
            self.__dict__.pop(name, None)

    def _checked(self, X: Any, y: Any, sample_weight: Any, *, reset: bool) -> tuple[Any, Labels, Floats | None]:
        X, y = self._validated(X, y, reset=reset)
        return self._table(X), y, None if sample_weight is None else weights_of(sample_weight, len(y))

    def _with_new(self, known: Labels, found: Labels) -> Labels:
        """The classes with those of a further batch, which must be among them unless new ones are taken."""
        if np.isin(found, known).all():
            return known
        if not self._open:
            raise ValueError(
                f"The target label(s) {found[~np.isin(found, known)]} in y do not exist in the initial classes {known}"
            )
        return labels.union(known, found)

    def _count(self, table: Any, y: Any, weights: Floats | None) -> None:
        answer = self._asked()  # parameters that are wrong are refused before anything is counted
        first = "_counted" not in vars(self)
        schema = self._schema(table, y, weights) if first else self._counted.parts[0].schema
        tally = Tally.of(schema, table, y, weights=weights)
        if first:
            self._counted = Counted([tally])
        else:
            self._counted.add(tally)
        self._answer = answer

    def _asked(self) -> Answer:
        """The parameters as settings, not yet answered."""
        return Answer(parameters(self), self._settings())

    def _asked_model(self) -> Answer:
        """The answer of the present counts and parameters, worked out when one of them has changed."""
        answer = self._answer
        if not all(same(getattr(self, name), value) for name, value in answer.params.items()):
            vars(answer).update(vars(self._asked()))
        if answer.model is None:
            answer.model = self._estimate(self.tally_, answer.settings)
            names = labels.texts(np.array(answer.model.classes, dtype=object))
            answer.order = labels.order_of(names, self._class_texts())
        return answer

    def _class_texts(self) -> tuple[str, ...]:
        return labels.texts(self.classes_)

    def _class_places(self) -> Ints:
        """Where each class of the tally stands among `classes_`."""
        at = {name: i for i, name in enumerate(self._class_texts())}
        return np.array([at[name] for name in self.tally_.classes], dtype=np.int64)

    def _log_prior(self) -> Floats:
        answer = self._asked_model()
        if answer.log_prior is None:
            names = self._class_texts()
            answer.log_prior = safe_log(class_prior(answer.settings, names, class_totals(self.tally_, names)))
        return answer.log_prior

    def _given_prior(self, given: Any) -> dict[str, float]:
        """A prior given in the order of `classes_`, by class."""
        prior = np.asarray(given, dtype=np.float64)
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
