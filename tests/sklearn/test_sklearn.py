"""The scikit-learn face: its common checks, equality with scikit-learn where it is right, and the verbs of a tally."""

from __future__ import annotations

import copy
import datetime as dt
import io
import pickle
import subprocess
import sys
from contextlib import suppress

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
import sklearn
from sklearn import naive_bayes as theirs
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_digits, load_iris
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier, VotingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import tallybayes as tb
from tallybayes import sklearn as ours
from tallybayes.sklearn import BernoulliNB, CategoricalNB, ComplementNB, GaussianNB, MultinomialNB, NaiveBayes

FIVE = (GaussianNB, MultinomialNB, ComplementNB, BernoulliNB, CategoricalNB)
SIX = (*FIVE, NaiveBayes)
THEIRS = {kind: getattr(theirs, kind.__name__) for kind in FIVE}
CLOSE = {"rtol": 1e-9, "atol": 1e-9}
ATTRIBUTES = {
    GaussianNB: ("theta_", "var_", "epsilon_", "class_prior_"),
    MultinomialNB: ("class_log_prior_", "feature_count_", "feature_log_prob_"),
    ComplementNB: ("class_log_prior_", "feature_count_", "feature_log_prob_", "feature_all_"),
    BernoulliNB: ("class_log_prior_", "feature_count_", "feature_log_prob_"),
    CategoricalNB: ("class_log_prior_", "category_count_", "feature_log_prob_", "n_categories_"),
}

by_name = pytest.mark.parametrize("kind", SIX, ids=lambda k: k.__name__)
by_five = pytest.mark.parametrize("kind", FIVE, ids=lambda k: k.__name__)


def every_check(*estimators):
    """scikit-learn's mark with its checks in a list: up to 1.8 they are a generator, which pytest 9 warns of."""
    mark = parametrize_with_checks(estimators).mark
    names, checks = mark.args
    return pytest.mark.parametrize(names, [*checks], **mark.kwargs)


@every_check(*(kind() for kind in SIX))
def test_common_checks(estimator, check):
    check(estimator)


# ---- equal to scikit-learn


def counts(rows=90, features=5, classes=3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, rows)
    return rng.poisson(1 + (np.arange(features) + y[:, None]) % 3), np.array(["ant", "bee", "cow"])[y]


def data_for(kind, seed=0):
    X, y = counts(seed=seed)
    if kind is GaussianNB:
        X = X + np.random.default_rng(seed).normal(size=X.shape)
    return X, y


def assert_equal(mine, other, X):
    assert mine.classes_.tolist() == other.classes_.tolist() and mine.classes_.dtype == other.classes_.dtype
    assert mine.n_features_in_ == other.n_features_in_
    for name in ("class_count_", *ATTRIBUTES[type(mine)]):
        a, b = getattr(mine, name), getattr(other, name)
        assert type(a) is type(b) or name == "epsilon_"
        for one, two in zip(a, b, strict=True) if isinstance(b, list) else [(a, b)]:
            assert np.shape(one) == np.shape(two), name
            np.testing.assert_allclose(one, two, **CLOSE, err_msg=name)
    for method in ("predict_joint_log_proba", "predict_log_proba", "predict_proba"):
        np.testing.assert_allclose(getattr(mine, method)(X), getattr(other, method)(X), **CLOSE, err_msg=method)
    clear = np.diff(np.sort(other.predict_proba(X), axis=1)[:, -2:]).ravel() > 1e-9  # a tie is decided by rounding
    assert mine.predict(X)[clear].tolist() == other.predict(X)[clear].tolist() and clear.any()


PARAMETERS = [
    *[(k, {}) for k in FIVE],
    (GaussianNB, {"priors": [0.2, 0.3, 0.5]}),
    (GaussianNB, {"var_smoothing": 0.1}),
    (GaussianNB, {"var_smoothing": 0.0}),
    *[(k, {"alpha": 0.01, "fit_prior": False}) for k in FIVE[1:]],
    *[(k, {"alpha": 0, "force_alpha": False}) for k in FIVE[1:]],
    *[(k, {"class_prior": [0.2, 0.3, 0.5]}) for k in FIVE[1:]],
    *[(k, {"alpha": [0.5, 1, 2, 0.1, 3]}) for k in (MultinomialNB, ComplementNB)],
    (ComplementNB, {"norm": True}),
    (ComplementNB, {"norm": True, "alpha": np.array([0.5, 1, 2, 0.1, 3])}),
    (BernoulliNB, {"binarize": 1.5}),
    (CategoricalNB, {"min_categories": 9}),
    (CategoricalNB, {"min_categories": [9, 1, 12, 1, 1]}),
]


@pytest.mark.filterwarnings("ignore:alpha too small")
@pytest.mark.parametrize(("kind", "params"), PARAMETERS, ids=lambda v: getattr(v, "__name__", str(v)))
@pytest.mark.parametrize("weighted", [False, True])
def test_equal_to_scikit_learn(kind, params, weighted):
    X, y = data_for(kind)
    weights = np.random.default_rng(5).integers(1, 9, len(y)) / 4 if weighted else None
    mine, other = kind(**params).fit(X, y, weights), THEIRS[kind](**params).fit(X, y, weights)
    if kind is GaussianNB and weighted:  # there epsilon is of the rows without their weights
        other.var_ += mine.epsilon_ - other.epsilon_
        other.epsilon_ = mine.epsilon_
    assert_equal(mine, other, X)


def test_bernoulli_with_an_alpha_for_each_feature():
    """(rows with the feature + α)/(rows + 2·α); scikit-learn documents it and fails to broadcast."""
    X, y = counts()
    alpha = np.array([0.5, 1, 2, 0.1, 3])
    mine = BernoulliNB(alpha=alpha).fit(X, y)
    by_hand = np.log([((X[y == c] > 0).sum(axis=0) + alpha) / ((y == c).sum() + 2 * alpha) for c in mine.classes_])
    np.testing.assert_allclose(mine.feature_log_prob_, by_hand, **CLOSE)


@pytest.mark.parametrize("labels", [[3, 1, 2], [3.0, -1.0, 20.0], [True, False], ["b", "ä", ""], [10, 9, 100]])
@by_five
def test_labels_come_back_as_they_went_in(kind, labels):
    X, _ = data_for(kind)
    y = np.array(labels)[np.arange(len(X)) % len(labels)]
    assert_equal(kind().fit(X, y), THEIRS[kind]().fit(X, y), X)
    as_object = kind().fit(X, y.astype(object)) if y.dtype.kind == "U" else None
    assert as_object is None or as_object.predict(X).dtype == object


@pytest.mark.parametrize("form", ["csr_matrix", "csr_array", "csc_array", "coo_array"])
@pytest.mark.parametrize("kind", [MultinomialNB, ComplementNB, BernoulliNB])
def test_sparse_matrices_and_arrays(kind, form):
    X, y = counts()
    S = getattr(scipy.sparse, form)(X.astype(np.float64))
    assert_equal(kind().fit(S, y), THEIRS[kind]().fit(S, y), S)
    assert kind().fit(S, y).tally_ == kind().fit(X, y).tally_


@by_five
def test_float32(kind):
    X, y = data_for(kind)
    X = X.astype(np.float32)
    mine = kind().fit(X, y)
    np.testing.assert_allclose(mine.predict_proba(X), THEIRS[kind]().fit(X, y).predict_proba(X), rtol=1e-4)
    assert mine.tally_ == kind().fit(X.astype(np.float64), y).tally_  # nothing is rounded on the way


def test_float32_attributes_are_float32_until_a_float64_batch_comes():
    X, y = data_for(GaussianNB)
    mine = GaussianNB().partial_fit(X.astype(np.float32), y, classes=np.unique(y))
    assert mine.theta_.dtype == mine.var_.dtype == np.float32
    assert mine.partial_fit(X, y).theta_.dtype == np.float64


def test_tf_idf_in_a_pipeline():
    texts = ["spam spam eggs", "ham and eggs", "spam", "ham ham and bread"]
    y = [1, 0, 1, 0]
    for kind in (MultinomialNB, ComplementNB):
        mine, other = (make_pipeline(TfidfVectorizer(), k()).fit(texts, y) for k in (kind, THEIRS[kind]))
        np.testing.assert_allclose(mine.predict_proba(texts), other.predict_proba(texts), **CLOSE)


def test_digits():
    X, y = load_digits(return_X_y=True)
    for kind in FIVE:
        mine, other = kind().fit(X, y), THEIRS[kind]().fit(X, y)
        np.testing.assert_allclose(mine.predict_proba(X), other.predict_proba(X), rtol=1e-9, atol=1e-9)


# ---- partial_fit is fit


@by_name
def test_partial_fit_in_any_cut_and_order_is_fit_to_the_last_bit(kind):
    rng = np.random.default_rng(1)
    X, y = data_for(kind if kind in FIVE else GaussianNB)
    X = X * 10.0 ** rng.integers(-9, 9, X.shape) if kind in (GaussianNB, NaiveBayes) else X
    weights = rng.integers(0, 8, len(y)) / 8
    params = {}
    if kind is NaiveBayes:
        params = {"schema": NaiveBayes(calibration=None).fit(X, y).schema_, "calibration": None}
    whole = kind(**params).fit(X, y, weights)
    for cuts in ([1, 2, 50], [30, 60], list(range(1, len(y)))):
        order = rng.permutation(len(y))
        parts = kind(**params)
        for rows in np.split(order, cuts):
            parts.partial_fit(X[rows], y[rows], classes=np.unique(y), sample_weight=weights[rows])
        assert parts.tally_ == whole.tally_ and parts.tally_.digest == whole.tally_.digest
        assert np.array_equal(parts.predict_joint_log_proba(X), whole.predict_joint_log_proba(X))
        for name in ATTRIBUTES.get(kind, ()):
            a, b = getattr(parts, name), getattr(whole, name)
            assert all(map(np.array_equal, a, b)) if isinstance(a, list) else np.array_equal(a, b), name


def test_naive_bayes_takes_kinds(tmp_path):
    frame = pd.DataFrame({"zip": [10, 20, 30, 40] * 8, "id": range(32), "same": ["a b"] * 32})
    y = np.array([0, 0, 1, 1] * 8)
    given = {"zip": "category", "id": "number", "same": "ignore"}
    mine = NaiveBayes(kinds=given, calibration=None).fit(frame, y)
    assert {c.name: c.kind for c in mine.schema_.columns} == given
    assert mine.tally_.columns == tb.fit(frame, y=y, kinds=given, calibrate=False).tally.columns
    mine.to_file(tmp_path / "mine.tb.parquet")
    again = NaiveBayes.from_file(tmp_path / "mine.tb.parquet")
    assert again.get_params() == mine.get_params() and again.fit(frame, y).tally_ == mine.tally_
    matrix = NaiveBayes(kinds={"x1": "category"}).fit(np.column_stack([np.arange(32.0), frame["zip"]]), y)
    assert [c.kind for c in matrix.schema_.counted][:2] == ["number", "category"]
    texts = NaiveBayes(kinds={"text": "category"}).fit(["a b", "c d"] * 16, np.array([0, 1] * 16))
    assert texts.schema_["text"].kind == "category"
    for wrong, said in (
        ({"zap": "category"}, "did you mean 'zip'"),
        ({"zip": "categorie"}, "did you mean 'category'"),
        (["zip"], "give them by column"),
    ):
        with pytest.raises(ValueError, match=said):
            NaiveBayes(kinds=wrong).fit(frame, y)
    with pytest.raises(ValueError, match="kinds beside a schema"):
        NaiveBayes(kinds=given, schema=mine.schema_).fit(frame, y)


def test_naive_bayes_fixes_kinds_at_the_first_call():
    frame = pd.DataFrame({"n": [1.5, 2.5, 9.0, 8.5] * 8, "c": ["u", "u", "v", "v"] * 8, "same": [1] * 32})
    y = np.array([0, 0, 1, 1] * 8)
    parts = NaiveBayes().partial_fit(frame[:20], y[:20])
    kinds = {c.name: c.kind for c in parts.schema_.columns}
    assert kinds == {"n": "number", "c": "category", "same": "number"}
    parts.partial_fit(frame[20:], y[20:])
    whole = NaiveBayes(schema=parts.schema_).fit(frame, y)
    assert parts.tally_ == whole.tally_
    with pytest.raises(ValueError, match=r"'n', row 0 .*'many' is not a number"):
        parts.partial_fit(frame[:1].assign(n="many"), [0])


def test_naive_bayes_takes_a_class_that_nobody_declared():
    X, y = data_for(GaussianNB)
    mine = NaiveBayes().partial_fit(X[y != "cow"], y[y != "cow"])
    assert mine.classes_.tolist() == ["ant", "bee"]
    mine.partial_fit(X[y == "cow"], y[y == "cow"])
    assert mine.classes_.tolist() == ["ant", "bee", "cow"] and mine.predict_proba(X).shape == (len(X), 3)
    early = NaiveBayes().partial_fit(X[:9], y[:9], classes=["ant", "bee", "cow", "zebu"])
    assert early.classes_.tolist() == ["ant", "bee", "cow", "zebu"]
    assert (early.predict_proba(X)[:, 3] == 0).all()


@by_five
def test_a_declared_class_without_rows_has_no_probability(kind):
    X, y = data_for(kind)
    mine = kind().partial_fit(X, y, classes=["ant", "aardvark", "bee", "cow"])
    assert mine.class_count_[0] == 0
    assert (mine.predict_proba(X)[:, 0] == (0.0 if kind is not ComplementNB else mine.predict_proba(X)[:, 0])).all()
    np.testing.assert_allclose(mine.predict_proba(X)[:, 1:].sum(axis=1) + mine.predict_proba(X)[:, 0], 1)


# ---- the faults of scikit-learn


@by_five
def test_a_label_that_was_not_declared_is_refused(kind):
    X, y = data_for(kind)
    mine = kind().partial_fit(X, y, classes=np.unique(y))
    before = mine.tally_.digest
    with pytest.raises(
        ValueError, match=r"label\(s\) \['dog'\] in y do not exist in the initial classes \['ant' 'bee'"
    ):
        mine.partial_fit(X[:3], ["ant", "dog", "bee"])
    assert mine.tally_.digest == before and mine.classes_.tolist() == ["ant", "bee", "cow"]


def test_epsilon_is_of_all_rows_and_not_of_the_last_batch():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(0, 1e6, (50, 2)), rng.normal(0, 1e-3, (50, 2))])
    y = np.arange(100) % 2
    parts = GaussianNB().partial_fit(X[:50], y[:50], classes=[0, 1]).partial_fit(X[50:], y[50:])
    assert parts.epsilon_ == GaussianNB().fit(X, y).epsilon_
    theirs_parts = theirs.GaussianNB().partial_fit(X[:50], y[:50], classes=[0, 1]).partial_fit(X[50:], y[50:])
    assert theirs_parts.epsilon_ < 1e-6 * theirs.GaussianNB().fit(X, y).epsilon_  # the fault, for comparison


@by_name
def test_weight_zero_is_a_row_left_out(kind):
    X, y = data_for(kind if kind in FIVE else GaussianNB)
    X = np.concatenate([X, X[:1] * 1000, X[:1]])
    y = np.append(y, ["ant", "yak"])
    weights = np.array([1.0] * (len(y) - 2) + [0, 0])
    zero, out = kind().fit(X, y, weights), kind().fit(X[:-2], y[:-2])
    assert zero.tally_ == out.tally_ and zero.classes_.tolist() == out.classes_.tolist()
    assert np.array_equal(zero.predict_joint_log_proba(X), out.predict_joint_log_proba(X))
    with pytest.raises(ValueError, match="every sample weight is zero"):
        kind().fit(X, y, weights * 0)


def test_a_column_in_small_units_is_not_drowned():
    rng = np.random.default_rng(0)
    y = np.arange(400) % 2
    X = np.column_stack([rng.normal(0, 1e6, 400), rng.normal(y * 4e-3, 1e-3, 400)])
    assert theirs.GaussianNB().fit(X, y).score(X, y) < 0.9  # the fault, for comparison
    for kind in (GaussianNB, NaiveBayes):
        assert kind().fit(X, y).score(X, y) > 0.95
    small = GaussianNB().fit(X[:, 1:], y)
    np.testing.assert_allclose(GaussianNB().fit(X, y).var_[:, 1], small.var_[:, 0], rtol=2e-2)


def test_bernoulli_without_smoothing_is_no_nan():
    X, y = [[1, 0], [1, 1], [1, 0]], [0, 1, 0]
    p = BernoulliNB(alpha=0).fit(X, y).predict_proba([[1, 0], [1, 1]])
    assert p.tolist() == [[1, 0], [0, 1]]
    with pytest.warns(tb.TallybayesWarning, match="every class has probability 0"):
        assert BernoulliNB(alpha=0).fit(X, y).predict_proba([[0, 0]]).round(3).tolist() == [[0.667, 0.333]]


def test_a_category_never_seen_is_no_evidence_and_a_fraction_is_not_cut():
    X, y = [[0, 0], [0, 1], [1, 1], [1, 1]], [0, 0, 1, 1]
    mine = CategoricalNB().fit(X, y)
    assert np.array_equal(mine.predict_proba([[0, 99]]), mine.predict_proba([[0, np.nan]]))
    assert np.array_equal(mine.predict_proba([[0.9, 1]]), mine.predict_proba([[np.nan, 1]]))
    with pytest.raises(IndexError):
        theirs.CategoricalNB().fit(X, y).predict([[0, 99]])  # the fault, for comparison
    halves = CategoricalNB().fit([[0], [0.5], [2], [0.5]], y)
    assert [c.tolist() for c in halves.categories_] == [[0, 1, 2, 0.5]]
    assert halves.category_count_[0].tolist() == [[1, 0, 0, 1], [0, 0, 1, 1]] and halves.n_categories_.tolist() == [4]


def test_a_code_that_is_an_id_is_refused():
    mine = CategoricalNB().fit([[0], [10**9]], [0, 1])
    with pytest.raises(tb.DataError, match=r"the code 1,000,000,000.*\n\nHint: number the categories"):
        mine.predict([[0]])


def test_a_billion_rows_are_still_counted_exactly():
    X, y = np.array([[1, 2], [3, 0]]), [0, 1]
    mine = MultinomialNB().fit(X, y)
    for _ in range(60):  # 2⁶⁰ rows: far beyond where float64 stops growing by one
        mine += mine
    one = MultinomialNB().fit(X, y)
    total = (mine + one).tally_
    assert total.rows == 2 * 2**60 + 2 and total - mine.tally_ == one.tally_


@pytest.mark.parametrize("kind", [GaussianNB, NaiveBayes])
@pytest.mark.parametrize("scale", [1e200, 1e-310])
def test_enormous_and_subnormal_numbers(kind, scale):
    X = np.array([[1.0, 5], [2, 5], [3, 5], [7, 5], [8, 5], [9, 5]]) * scale
    y = [0, 0, 0, 1, 1, 1]
    p = kind().fit(X, y).predict_proba(X)
    assert np.isfinite(p).all() and kind().fit(X, y).predict(X).tolist() == y


@pytest.mark.parametrize("kind", [GaussianNB, NaiveBayes])
def test_constant_columns_say_nothing(kind):
    p = kind().fit([[3.0], [3.0], [3.0]], [0, 0, 1]).predict_proba([[3.0], [4.0]])
    np.testing.assert_allclose(p, [[2 / 3, 1 / 3]] * 2)


# ---- parameters after fitting


def test_parameters_take_effect_at_the_next_answer():
    X, y = counts()
    for kind, change in [
        (GaussianNB, {"var_smoothing": 0.5}),
        (GaussianNB, {"priors": [0.1, 0.1, 0.8]}),
        (MultinomialNB, {"alpha": 30.0}),
        (MultinomialNB, {"alpha": np.array([1.0, 2, 3, 4, 5])}),
        (MultinomialNB, {"fit_prior": False}),
        (ComplementNB, {"norm": True}),
        (BernoulliNB, {"class_prior": [0.1, 0.1, 0.8]}),
        (CategoricalNB, {"min_categories": 20}),
        (NaiveBayes, {"smoothing": 9.0, "families": dict.fromkeys(["x0", "x1"], "bins")}),
        (NaiveBayes, {"prior": "uniform", "families": {"x0": "bins", "x1": "poisson"}}),
    ]:
        plain = {"calibration": None} if kind is NaiveBayes else {}  # what was chosen is chosen when fitting
        mine = kind(**plain).fit(X, y)
        before = mine.predict_joint_log_proba(X)
        after = mine.set_params(**change).predict_joint_log_proba(X)
        fresh = kind(**plain, **change).fit(X, y)
        assert np.array_equal(after, fresh.predict_joint_log_proba(X))
        assert not np.array_equal(before, after) or "priors" in change or kind is ComplementNB
        assert np.array_equal(mine.set_params(**kind(**plain).get_params()).predict_joint_log_proba(X), before)


def test_an_alpha_changed_in_place_is_noticed():
    X, y = counts()
    alpha = np.ones(5)
    mine = MultinomialNB(alpha=alpha).fit(X, y)
    mine.predict(X)
    alpha[:] = 7
    assert np.array_equal(mine.feature_log_prob_, MultinomialNB(alpha=7.0).fit(X, y).feature_log_prob_)


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (GaussianNB(priors=[0.5, 0.5]), "Number of priors must match"),
        (GaussianNB(priors=[0.5, 0.7, 0.1]), "sum of the priors should be 1"),
        (GaussianNB(priors=[-0.5, 1.4, 0.1]), "must be non-negative"),
        (GaussianNB(var_smoothing=-1), "var_smoothing=-1"),
        (MultinomialNB(alpha=-1), "alpha"),
        (MultinomialNB(alpha=[1, 2]), "should contains `n_features`"),
        (ComplementNB(class_prior=[1.0]), "Number of priors must match"),
        (BernoulliNB(binarize=-1), "binarize is -1"),
        (BernoulliNB(binarize=None), "must be zeros and ones"),
        (CategoricalNB(alpha=[1, 2, 3, 4, 5]), "alpha is an array"),
        (CategoricalNB(min_categories=1.5), "integral type"),
        (CategoricalNB(min_categories=[1, 2]), "should have shape"),
        (NaiveBayes(calibration="platt"), "calibration='platt'"),
        (NaiveBayes(prior="flat"), "prior='flat'"),
        (NaiveBayes(smoothing="much"), "smoothing='much'"),
        (NaiveBayes(families={"x9": "bins"}), "no column 'x9'"),
    ],
    ids=str,
)
def test_wrong_parameters_are_refused_with_a_hint(estimator, message):
    X, y = counts()
    with pytest.raises(tb.TallybayesError, match=message) as caught:
        estimator.fit(X, y).predict(X)
    assert "Hint:" in str(caught.value) and isinstance(caught.value, ValueError)


# ---- forget, merge, explain, sample


@by_name
def test_forgetting_is_as_if_the_rows_had_never_been_counted(kind):
    X, y = data_for(kind if kind in FIVE else GaussianNB)
    params = {}
    if kind is NaiveBayes:  # what was chosen is chosen by the rows of one fit; counts know no such thing
        params = {"schema": NaiveBayes(calibration=None).fit(X, y).schema_, "calibration": None}
    weights = np.arange(1, len(y) + 1) / 4
    mine = kind(**params).fit(X, y, weights)
    assert mine.forget(X[50:], y[50:], weights[50:]) is mine
    rest = kind(**params).fit(X[:50], y[:50], weights[:50])
    assert mine.tally_ == rest.tally_
    assert np.array_equal(mine.predict_joint_log_proba(X), rest.predict_joint_log_proba(X))
    before = mine.tally_.digest
    with pytest.raises(tb.CannotForget, match="nothing has been forgotten"):
        mine.forget(X[50:] * 3 + 1, y[50:])
    assert mine.tally_.digest == before


@by_name
def test_merging_is_fitting_to_both(kind):
    X, y = data_for(kind if kind in FIVE else GaussianNB)
    params = {}
    if kind is NaiveBayes:  # what was chosen is chosen by the rows of one fit; counts know no such thing
        params = {"schema": NaiveBayes(calibration=None).fit(X, y).schema_, "calibration": None}
    one, two = kind(**params).fit(X[:40], y[:40]), kind(**params).fit(X[40:], y[40:])
    both = one + two
    whole = kind(**params).fit(X, y)
    assert both.tally_ == whole.tally_ and one.tally_ != whole.tally_
    assert one.merge(two) is one and one.tally_ == whole.tally_
    assert np.array_equal(one.predict_proba(X), whole.predict_proba(X))
    with pytest.raises(tb.DataError, match="cannot be merged"):
        one.merge(kind().fit(X[:, :2], y))
    other = MultinomialNB() if kind is not MultinomialNB else BernoulliNB()
    with pytest.raises(tb.DataError, match="cannot be merged"):
        one.merge(other.fit(np.abs(X), y))


@by_name
def test_explanations_add_up_to_the_answer(kind):
    X, y = data_for(kind if kind in FIVE else GaussianNB)
    mine = kind().fit(X, y)
    explanations = mine.explain(X[:4])
    assert len(explanations) == 4
    for explanation, p in zip(explanations, mine.predict_proba(X[:4]), strict=True):
        np.testing.assert_allclose(explanation.probabilities, p, rtol=1e-9)
        assert list(explanation.classes) == mine.classes_.tolist()


@by_name
def test_samples_can_be_fitted_again(kind):
    X, y = data_for(kind if kind in FIVE else GaussianNB)
    mine = kind().fit(X, y)
    drawn, labels = mine.sample(300, random_state=0)
    assert drawn.shape == (300, 5) and labels.shape == (300,) and labels.dtype == mine.classes_.dtype
    assert np.array_equal(labels, mine.sample(300, random_state=0)[1])
    assert mine.sample(3, random_state=np.random.RandomState(0))[1].shape == (3,)
    if kind is not ComplementNB:  # which samples the classes evenly
        np.testing.assert_allclose((labels == "bee").mean(), (y == "bee").mean(), atol=0.12)
    if kind is not NaiveBayes:
        means = [np.asarray(M[label == "bee"].mean(axis=0)).ravel() for M, label in ((drawn, labels), (X, y))]
        if kind is BernoulliNB:
            means[1] = (X[y == "bee"] > 0).mean(axis=0)
        np.testing.assert_allclose(*means, atol=0.6)
    assert kind().fit(drawn, labels).classes_.tolist() == mine.classes_.tolist()


# ---- frames


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame, pa.table], ids=["pandas", "polars", "arrow"])
@by_name
def test_frames(kind, frame):
    X, y = data_for(kind if kind in FIVE else GaussianNB)
    names = ["p", "q", "r", "s", "t"]
    table = frame({n: X[:, j] for j, n in enumerate(names)})
    params = {"calibration": None} if kind is NaiveBayes else {}  # folds are by the names of columns, too
    mine, plain = kind(**params).fit(table, y), kind(**params).fit(X, y)
    assert mine.feature_names_in_.tolist() == names and not hasattr(plain, "feature_names_in_")
    assert np.array_equal(mine.predict_proba(table), plain.predict_proba(X))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        assert np.array_equal(mine.predict_proba(X), plain.predict_proba(X))
    with pytest.warns(UserWarning, match="fitted without feature names"):
        assert np.array_equal(plain.predict_proba(table), plain.predict_proba(X))
    with pytest.raises(ValueError, match="feature names should match"):
        mine.predict(frame({n: X[:, j] for j, n in enumerate("tsrqp")}))
    with pytest.raises(ValueError, match="0 sample"):
        mine.predict(table[:0] if frame is not pa.table else table.slice(0, 0))


@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # Ibis 12 asks DuckDB 2 by an older name
@pytest.mark.parametrize("kind", [GaussianNB, NaiveBayes], ids=lambda k: k.__name__)
def test_frames_of_others_and_lazy_ones(kind):
    X, y = data_for(GaussianNB)
    table = pa.table({n: X[:, j] for j, n in enumerate("pqrst")})
    params = {"calibration": None} if kind is NaiveBayes else {}
    wanted = kind(**params).fit(table, y)
    frames = [pl.from_arrow(table).lazy()]
    with suppress(ImportError):
        import narwhals

        frames += [
            narwhals.from_native(table),
            narwhals.from_native(table.to_pandas()),
            narwhals.from_native(frames[0]),
        ]
    with suppress(ImportError):
        import ibis

        frames.append(ibis.memtable(table))
    for frame in frames:
        mine = kind(**params).fit(frame, y)
        assert mine.tally_ == wanted.tally_ and mine.feature_names_in_.tolist() == list("pqrst")
        assert np.array_equal(mine.predict_proba(frame), wanted.predict_proba(table))


def mixed_frame(rows=120):
    rng = np.random.default_rng(0)
    y = np.array(["no", "yes"])[rng.integers(0, 2, rows)]
    yes = y == "yes"
    words = np.array(["offer", "prize", "winner", "meeting", "report", "agenda"])
    frame = pd.DataFrame({
        "size": rng.normal(yes * 2.0, 1.0),
        "count": rng.poisson(2 + yes * 2),
        "colour": np.where(rng.random(rows) < 0.7, np.where(yes, "red", "blue"), "green"),
        "shape": pd.Categorical(np.where(rng.random(rows) < 0.6, "round", "square")),
        "paid": rng.random(rows) < 0.3 + 0.4 * yes,
        "when": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=int(h)) for h in rng.integers(0, 5000, rows)],
        "note": [" ".join(rng.choice(words[3 * (1 - u) : 3 * (1 - u) + 4], 5)) for u in yes.astype(int)],
    })  # fmt: skip
    frame.loc[::5, "size"] = np.nan
    frame.loc[::7, "colour"] = None
    frame.loc[::11, "when"] = pd.NaT
    return frame, y


def test_a_mixed_frame_with_missing_values_as_it_is():
    frame, y = mixed_frame()
    mine = NaiveBayes(calibration=None).fit(frame, y)
    kinds = {c.name: c.kind for c in mine.schema_.columns}
    assert kinds["size"] == kinds["count"] == kinds["when.days"] == "number"
    assert kinds["colour"] == kinds["shape"] == kinds["paid"] == kinds["when.weekday"] == "category"
    assert kinds["note"] in ("text", "category")
    assert mine.score(frame, y) > 0.9
    model = tb.fit(
        {**{n: frame[n] for n in frame}, "label": y},
        target="label",
        schema=mine.schema_._with(target="label"),
        calibrate=False,
    )
    assert np.array_equal(mine.predict_proba(frame), model.predict_proba(frame))  # a shell, nothing more
    polars = pl.from_pandas(frame)
    assert np.array_equal(NaiveBayes(calibration=None).fit(polars, y).predict_proba(polars), mine.predict_proba(frame))
    empty = pd.DataFrame({name: [None] for name in frame})
    np.testing.assert_allclose(mine.predict_proba(empty)[0], mine.class_count_ / len(y))


def test_a_column_that_gives_the_label_away_is_counted_since_it_was_chosen():
    y = np.array(["no", "yes"] * 50)
    frame = pd.DataFrame({"answer": y, "id": [f"r{i}" for i in range(100)]})
    mine = NaiveBayes().fit(frame, y)
    assert {c.name: c.kind for c in mine.schema_.columns} == {"answer": "category", "id": "ignore"}
    assert mine.score(frame, y) == 1


def test_a_frame_with_a_column_called_y_and_one_without_names():
    frame, y = mixed_frame()
    mine = NaiveBayes().fit(frame.rename(columns={"size": "y"}), y)
    assert mine.tally_.schema.target == "y_" and mine.score(frame.rename(columns={"size": "y"}), y) > 0.9
    numbered = frame.set_axis(range(frame.shape[1]), axis=1)
    assert np.array_equal(NaiveBayes().fit(numbered, y).predict(numbered), NaiveBayes().fit(frame, y).predict(frame))


def test_wide_and_sparse_matrices_for_naive_bayes():
    X, y = counts(features=300)
    assert [c.kind for c in NaiveBayes(calibration=None).fit(X, y).schema_.columns] == ["vector"]
    assert [c.kind for c in NaiveBayes(calibration=None).fit(scipy.sparse.csr_array(X), y).schema_.columns] == ["bag"]
    np.testing.assert_allclose(
        NaiveBayes(calibration=None).fit(scipy.sparse.csr_array(X), y).predict_proba(X[:5]),
        MultinomialNB().fit(X, y).predict_proba(X[:5]),
        rtol=1e-9,
    )


def test_missing_numbers_and_codes():
    X, y = data_for(GaussianNB)
    holes = np.where(np.random.default_rng(3).random(X.shape) < 0.2, np.nan, X)
    mine = GaussianNB().fit(holes, y)
    np.testing.assert_allclose(mine.theta_[0], np.nanmean(holes[y == "ant"], axis=0))
    assert np.array_equal(mine.predict_proba(np.full((1, 5), np.nan))[0], mine.class_prior_)
    codes = np.rint(np.abs(holes))
    assert CategoricalNB().fit(codes, y).category_count_[0].sum() == np.count_nonzero(~np.isnan(codes[:, 0]))
    for kind in (GaussianNB, CategoricalNB, NaiveBayes):
        with pytest.raises(ValueError, match=r"infinity|position 0 is inf"):
            kind().fit(np.abs(np.where(np.isnan(holes), np.inf, holes)), y)


# ---- scikit-learn's machinery


def test_tags_tell_the_truth():
    tags = {kind: kind().__sklearn_tags__() for kind in SIX}
    assert {k.__name__ for k in SIX if tags[k].input_tags.allow_nan} == {"GaussianNB", "CategoricalNB", "NaiveBayes"}
    assert {k.__name__ for k in SIX if tags[k].input_tags.sparse} == {
        "MultinomialNB", "ComplementNB", "BernoulliNB", "NaiveBayes",
    }  # fmt: skip
    assert {k.__name__ for k in SIX if tags[k].input_tags.categorical} == {"CategoricalNB", "NaiveBayes"}
    assert {k.__name__ for k in SIX if tags[k].input_tags.string} == {"NaiveBayes"}
    X, y = counts()
    for kind in SIX:
        S = scipy.sparse.csr_array(X)
        if tags[kind].input_tags.sparse:
            kind().fit(S, y).predict(S)
        else:
            with pytest.raises(TypeError, match=r"[Ss]parse"):
                kind().fit(S, y)


@by_name
def test_clone_pickle_joblib_and_copy(kind, tmp_path):
    X, y = data_for(kind if kind in FIVE else GaussianNB)
    mine = kind().fit(X, y)
    expected = mine.predict_proba(X)
    stored = pickle.dumps(mine)
    joblib.dump(mine, tmp_path / "mine.joblib")
    for again in (pickle.loads(stored), joblib.load(tmp_path / "mine.joblib"), copy.deepcopy(mine)):
        assert again.tally_ == mine.tally_ and np.array_equal(again.predict_proba(X), expected)
        assert again.partial_fit(X, y).tally_.rows == 2 * len(y) and mine.tally_.rows == len(y)
    with pytest.raises(NotFittedError):
        clone(mine).predict(X)
    assert pickle.loads(pickle.dumps(kind())).get_params() == kind().get_params()


@by_name
def test_a_view_for_notebooks(kind):
    X, y = data_for(kind if kind in FIVE else GaussianNB)
    assert kind.__name__ in kind()._repr_html_()
    assert kind.__name__ in kind().fit(X, y)._repr_html_()
    assert repr(kind()) == f"{kind.__name__}()"


def test_pipelines_column_transformers_and_set_output():
    frame, y = mixed_frame()
    codes = make_pipeline(
        ColumnTransformer([("codes", OrdinalEncoder(), ["shape", "paid"])]), CategoricalNB()
    ).set_output(transform="pandas")
    assert codes.fit(frame, y)[-1].feature_names_in_.tolist() == ["codes__shape", "codes__paid"]
    numbers = make_pipeline(StandardScaler(), GaussianNB()).set_output(transform="polars")
    assert numbers.fit(frame[["size", "count"]], y).score(frame[["size", "count"]], y) > 0.6
    words = make_pipeline(CountVectorizer(), MultinomialNB()).fit(frame["note"], y)
    assert words.score(frame["note"], y) > 0.8


def test_grid_search_and_cross_validation():
    frame, y = mixed_frame()
    grid = GridSearchCV(
        NaiveBayes(calibration=None), {"smoothing": [0.1, tb.JelinekMercer(0.1)], "prior": ["counted", "uniform"]}, cv=3
    )
    assert grid.fit(frame, y).best_score_ > 0.85
    X, y = counts()
    mine = cross_val_score(MultinomialNB(), X, y)
    assert np.array_equal(mine, cross_val_score(theirs.MultinomialNB(), X, y))


def test_ensembles_and_the_rest():
    X, y = data_for(GaussianNB)
    X = np.abs(X)
    votes = VotingClassifier([("g", GaussianNB()), ("n", NaiveBayes())], voting="soft").fit(X, y)
    calibrated = CalibratedClassifierCV(GaussianNB(), cv=3).fit(X, y)
    boosted = AdaBoostClassifier(GaussianNB(), n_estimators=5).fit(X, y)
    bagged = BaggingClassifier(MultinomialNB(), n_estimators=5, random_state=0).fit(X, y)
    for fitted in (votes, calibrated, boosted, bagged):
        assert fitted.score(X, y) > 0.5
    hidden = np.where(np.arange(len(y)) % 3 == 0, -1, np.unique(y, return_inverse=True)[1])
    assert SelfTrainingClassifier(GaussianNB()).fit(X, hidden).predict(X).shape == y.shape
    importance = permutation_importance(NaiveBayes().fit(X, y), X, y, n_repeats=2, random_state=0)
    assert importance.importances_mean.shape == (5,)


@by_name
def test_metadata_routing(kind):
    X, y = data_for(kind if kind in FIVE else GaussianNB)
    weights = np.arange(len(y)) % 3 + 1.0
    with sklearn.config_context(enable_metadata_routing=True):
        mine = kind().set_fit_request(sample_weight=True).set_score_request(sample_weight=False)
        scores = cross_validate(mine, X, y, params={"sample_weight": weights}, return_estimator=True, cv=3)
        assert all(e.class_count_.sum() > 1.5 * e.tally_.rows for e in scores["estimator"])
        assert kind().set_partial_fit_request(classes=True, sample_weight=True) is not None


def test_light_weights_as_boosting_over_a_million_rows_gives_them():
    X, y = counts()
    light, full = (MultinomialNB(alpha=a).fit(X, y, np.full(len(y), w)) for a, w in ((1e-6, 1e-6), (1.0, 1.0)))
    np.testing.assert_allclose(light.predict_proba(X), full.predict_proba(X), rtol=1e-6)


def test_fitted_attributes_are_absent_before_fit():
    for kind in SIX:
        for name in ("classes_", "class_count_", "tally_", "model_", *ATTRIBUTES.get(kind, ())):
            assert not hasattr(kind(), name)


def test_a_failed_fit_leaves_no_older_answers_behind():
    X, y = counts()
    mine = MultinomialNB().fit(X, y).set_params(class_prior=[1.0])
    with pytest.raises(ValueError, match="Number of priors"):
        mine.fit(X, y)
    with pytest.raises(NotFittedError):
        mine.set_params(class_prior=None).predict(X)


def test_labels_of_several_types_or_quantities_are_refused():
    X, _ = counts()
    for y in (np.linspace(0, 1, len(X)), np.array([1, "a"] * (len(X) // 2), dtype=object)):
        for kind in SIX:
            with pytest.raises((ValueError, TypeError), match=r"[Uu]nknown label type|label|convert"):
                kind().fit(X, y)
    with pytest.raises(tb.DataError, match="empty string"):
        NaiveBayes().fit(X, ["", "a"] * (len(X) // 2))


def test_labels_that_change_their_type_on_the_way():
    X, _ = counts(rows=9)
    mine = NaiveBayes().partial_fit(X[:6], [9, 10, 100, 9, 10, 100]).partial_fit(X[6:], ["a", "b", "a"])
    assert mine.classes_.tolist() == ["10", "100", "9", "a", "b"]
    assert mine.class_count_.tolist() == [2, 2, 2, 2, 1]
    np.testing.assert_allclose(mine.predict_proba(np.full((1, 5), np.nan))[0], mine.class_count_ / 9)
    halves = GaussianNB().fit(X, np.array([0, 1, 2] * 3, dtype=np.float16))
    assert halves.classes_.dtype == np.float16 and halves.classes_.tolist() == [0, 1, 2]


def test_smoothing_by_column_and_a_prior_in_the_order_of_the_classes():
    frame, y = mixed_frame()
    by_column = {"colour": 9.0, "shape": tb.JelinekMercer(0.5)}
    mine = NaiveBayes(smoothing=by_column, prior=[0.9, 0.1], calibration=None).fit(frame, y)
    settings = tb.Settings(
        smoothing={"colour": tb.Laplace(9.0), "shape": tb.JelinekMercer(0.5)}, prior={"no": 0.9, "yes": 0.1}
    )
    assert np.array_equal(mine.predict_proba(frame), mine.tally_.model(settings).predict_proba(frame))


def test_weights_that_are_no_whole_numbers_and_one_for_all_rows():
    frame, y = mixed_frame()
    weights = np.where(np.arange(len(y)) % 4, 0.75, 0.0)
    mine = NaiveBayes().fit(frame, y, weights)
    assert mine.schema_ == NaiveBayes().fit(frame[weights > 0], y[weights > 0]).schema_
    assert mine.class_count_.sum() == 0.75 * 90
    X, y = counts()
    assert np.array_equal(MultinomialNB().fit(X, y, 2.0).feature_count_, 2 * MultinomialNB().fit(X, y).feature_count_)
    with pytest.raises(ValueError, match=r"sample_weight.shape == \(3,\), expected \(90,\)"):
        MultinomialNB().fit(X, y, [1, 2, 3])


def test_a_sparse_matrix_for_a_model_of_named_columns():
    X, y = counts()
    mine = NaiveBayes().fit(pd.DataFrame(X, columns=list("abcde")), y)
    with pytest.warns(UserWarning, match="valid feature names"):
        sparse = mine.predict_proba(scipy.sparse.csr_array(X))
    with pytest.warns(UserWarning, match="valid feature names"):
        assert np.array_equal(sparse, mine.predict_proba(X))


def test_zeros_and_ones_need_no_threshold():
    X, y = counts()
    ones = (X > 1).astype(float)
    mine = BernoulliNB(binarize=None).fit(ones, y)
    assert mine.tally_ == BernoulliNB(binarize=1).fit(X, y).tally_
    assert mine.tally_ == BernoulliNB(binarize=None).fit(scipy.sparse.csr_array(ones), y).tally_


def test_only_estimators_can_be_added():
    X, y = counts()
    with pytest.raises(TypeError, match="unsupported operand"):
        MultinomialNB().fit(X, y) + 1


# ---- calibration


def test_calibration_is_what_tallybayes_fit_does(tmp_path):
    frame, y = mixed_frame()
    mine = NaiveBayes().fit(frame, y)  # "auto" is the default
    schema = NaiveBayes(calibration=None).fit(frame, y).schema_
    model = tb.fit(frame, y=y, schema=schema)
    assert mine.model_.settings.calibrated == model.settings.calibrated is not None
    assert np.array_equal(mine.predict_proba(frame), model.predict_proba(frame))
    stated = NaiveBayes(calibration=None).fit(frame, y)
    assert not np.array_equal(mine.predict_proba(frame), stated.predict_proba(frame))
    assert np.array_equal(pickle.loads(pickle.dumps(mine)).predict_proba(frame), mine.predict_proba(frame))
    mine.to_file(tmp_path / "mine.tb.parquet")
    again = NaiveBayes.from_file(tmp_path / "mine.tb.parquet")
    assert np.array_equal(again.predict_proba(frame), mine.predict_proba(frame))
    half = frame[:60]
    assert again.forget(half, y[:60]).tally_ == mine.forget(half, y[:60]).tally_
    assert np.array_equal(again.predict_proba(frame), mine.predict_proba(frame))


def test_calibrated_probabilities_are_more_honest():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    column = rng.normal(y, 1.5)
    X = np.column_stack([column + rng.normal(0, 0.01, 600) for _ in range(8)])  # eight times the same evidence
    loss = {}
    for calibration in (None, "auto"):
        p = NaiveBayes(calibration=calibration).fit(X[:300], y[:300]).predict_proba(X[300:])
        loss[calibration] = -np.log(p[np.arange(300), y[300:]]).mean()
    assert loss["auto"] < 0.7 < loss[None]


def test_parameters_and_calibration_after_fitting():
    frame, y = mixed_frame()
    mine = NaiveBayes(calibration=True).fit(frame, y)
    before = mine.predict_proba(frame)
    flat = mine.set_params(prior="uniform").predict_proba(frame)
    assert not np.array_equal(before, flat) and mine.model_.settings.weights
    mine.set_params(families={"size": "gaussian"}, smoothing=3.0)
    assert mine.model_.families["size"].name == "gaussian" and mine.model_.settings.smoothing == tb.Laplace(3.0)
    stated = mine.set_params(calibration=None, families=None, smoothing=1.0, prior="counted").model_.settings
    assert stated.calibrated is None and not stated.weights
    assert np.array_equal(mine.set_params(calibration="auto").predict_proba(frame), before)
    with pytest.raises(tb.SettingsError, match="asked for after fitting"):
        NaiveBayes(calibration=None).fit(frame, y).set_params(calibration="auto").predict(frame)


# ---- installed or not


def run(code: str) -> str:
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout


def test_importing_tallybayes_never_imports_scikit_learn():
    code = "import sys, tallybayes as tb\ntb.fit({'a': [1.5, 2], 'y': [0, 1]}, 'y')\nprint('sklearn' in sys.modules)"
    assert run(code).strip() == "False"


@pytest.mark.parametrize(
    "missing", ["sys.modules['sklearn'] = None", "import sklearn.utils.validation as v; del v.validate_data"]
)
def test_without_scikit_learn_the_command_that_installs_it_is_named(missing):
    code = (
        f"import sys; {missing}\n"
        "import tallybayes as tb\n"
        "try:\n    import tallybayes.sklearn\n"
        "except ImportError as error:\n    assert isinstance(error, tb.MissingExtra); print(error)"
    )
    said = run(code)
    assert "needs scikit-learn 1.6 or newer" in said and "pip install 'tallybayes[sklearn]'" in said


def test_public_names():
    assert ours.__all__ == sorted([*(kind.__name__ for kind in SIX), "register_onnx"])
    assert all(kind.__doc__ and ">>>" in kind.__doc__ for kind in SIX)


def test_iris_in_one_line():
    X, y = load_iris(return_X_y=True, as_frame=True)
    assert cross_val_score(NaiveBayes(), X, y, cv=5).mean() > 0.92
    assert io.StringIO(str(NaiveBayes().fit(X, y).tally_)).read().startswith("Tally: 150 rows")


# ---- files


@by_name
def test_to_file_and_back(kind, tmp_path):
    X, y = data_for(kind if kind in FIVE else GaussianNB)
    frame = pd.DataFrame(X, columns=list("pqrst"))
    for table in (X, frame, X.astype(np.float32)):
        mine = kind().fit(table, y)
        mine.to_file(tmp_path / "mine.tb.parquet")
        again = kind.from_file(tmp_path / "mine.tb.parquet")
        assert again.tally_ == mine.tally_ and again.get_params() == mine.get_params()
        assert again.classes_.dtype == mine.classes_.dtype and again.n_features_in_ == 5
        assert getattr(again, "feature_names_in_", np.array([])).tolist() == (
            [] if table is not frame else list("pqrst")
        )
        assert np.array_equal(again.predict_joint_log_proba(table), mine.predict_joint_log_proba(table))
        assert again.partial_fit(table, y).tally_ == mine.partial_fit(table, y).tally_
    if kind is GaussianNB:
        assert again.theta_.dtype == np.float32


@pytest.mark.parametrize(
    "estimator",
    [
        GaussianNB(priors=np.array([0.2, 0.3, 0.5]), var_smoothing=0.25),
        MultinomialNB(alpha=np.array([1.0, 2, 3, 4, 5]), fit_prior=False),
        ComplementNB(norm=True, alpha=np.float64(0.5)),
        BernoulliNB(binarize=1.5, class_prior=(0.2, 0.3, 0.5)),
        CategoricalNB(min_categories=[9, 9, 9, 9, 12]),
        NaiveBayes(
            smoothing=tb.JelinekMercer(0.2), families={"x0": "bins"}, prior={"ant": 0.2, "bee": 0.3, "cow": 0.5}
        ),
        NaiveBayes(smoothing={"x1": 3.0}, families={"x1": tb.families.Bins()}, prior=[0.2, 0.3, 0.5]),
    ],
    ids=str,
)
def test_parameters_survive_a_file(estimator, tmp_path):
    X, y = counts()
    estimator.fit(X, y).to_file(tmp_path / "mine.tb.parquet")
    again = type(estimator).from_file(tmp_path / "mine.tb.parquet")
    assert np.array_equal(again.predict_joint_log_proba(X), estimator.predict_joint_log_proba(X))
    assert np.array_equal(clone(again).fit(X, y).predict_proba(X), estimator.predict_proba(X))


def test_an_estimators_file_is_a_model_file_and_another_estimator_refuses_it(tmp_path):
    X, y = counts()
    mine = MultinomialNB(alpha=0.25).fit(X, y)
    mine.to_file(tmp_path / "mine.tb.parquet")
    model = tb.load(tmp_path / "mine.tb.parquet")
    assert model.tally == mine.tally_ and np.array_equal(model.predict_proba(X), mine.predict_proba(X))
    with pytest.raises(tb.DataError, match="holds a MultinomialNB, not a GaussianNB"):
        GaussianNB.from_file(tmp_path / "mine.tb.parquet")
    model = tb.fit({"a": [1.5, 2.5], "y": [0, 1]}, "y")
    model.save(tmp_path / "plain.tb.parquet")
    with pytest.raises(tb.DataError, match="holds a model of no estimator"):
        NaiveBayes.from_file(tmp_path / "plain.tb.parquet")
    with pytest.raises(NotFittedError):
        MultinomialNB().to_file(tmp_path / "none.tb.parquet")


@by_name
def test_a_pickle_holds_the_tally_in_the_librarys_own_format(kind):
    X, y = data_for(kind if kind in FIVE else GaussianNB)
    mine = kind().fit(X, y)
    state = mine.__getstate__()
    assert isinstance(state["_counted"], bytes) and state["_counted"][:4] == b"PAR1"
    names = {name for _, name in _globals_of(pickle.dumps(mine))}
    assert not names & {"Tally", "Counts", "Sheet", "Model", "Schema"}


def _globals_of(raw: bytes) -> set[tuple[str, str]]:
    """Every (module, name) that a pickle imports."""
    found = set()

    class Watching(pickle.Unpickler):
        def find_class(self, module, name):
            found.add((module, name))
            return super().find_class(module, name)

    Watching(io.BytesIO(raw)).load()
    return found


def test_columns_that_are_not_counted_may_be_of_any_type():
    frame = pd.DataFrame({
        "ragged": [[1.0], [1.0, 2.0], [3.0]] * 4, "struct": [{"k": 1}] * 12, "bytes": [b"a"] * 12, "x": range(12),
        "empty": [[]] * 12, "none": [None] * 12, "spans": [pd.Timedelta(1, "D")] * 12,
    })  # fmt: skip
    y = ["p", "q"] * 6
    for columns in (frame, frame[["ragged", "struct", "x"]]):
        model = NaiveBayes(calibration=None).fit(columns, y)
        assert np.isfinite(model.predict_proba(columns)).all()


@pytest.mark.parametrize("labels", [["\ud800", "a"], [10**400, 1], [dt.datetime(2024, 1, 1), "a"]])
def test_labels_that_nothing_can_hold_are_refused_in_our_words(labels):
    with pytest.raises(ValueError, match=r"labels that cannot be read|Unknown label type"):
        NaiveBayes().fit(np.arange(4.0)[:, None], np.array(labels * 2, dtype=object))


def test_one_family_is_meant_for_all_columns_that_it_reads() -> None:
    x = np.random.default_rng(0).normal(size=(60, 2)) + np.arange(60)[:, None] % 2
    y = np.arange(60) % 2
    fitted = NaiveBayes(families="gaussian", calibration=None, smoothing={"x0": 2}).fit(x, y)
    assert [f.name for f in fitted.model_.families.values()] == ["gaussian", "gaussian"]
    with pytest.raises(tb.SettingsError, match="did you mean 'gaussian'"):
        NaiveBayes(families="gausian").fit(x, y)
