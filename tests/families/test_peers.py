"""Agreement with scikit-learn's five classifiers where they are right, and the right answer where they are not."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse

import tallybayes as tb

peers = pytest.importorskip("sklearn.naive_bayes", reason="scikit-learn is not installed")

RNG = np.random.default_rng(20)
Y = RNG.integers(0, 3, 200)
NUMBERS = RNG.normal(size=(200, 6)) * [1, 10, 0.1, 1, 5, 2] + Y[:, None]
COUNTS = RNG.poisson(1 + Y[:, None] * np.array([0.1, 0.5, 1, 0, 0.3]), (200, 5)).astype(float)
WEIGHTS = RNG.integers(1, 9, 200) / 8


def matrix_model(kind: str, x, settings: tb.Settings, weights=None) -> tb.Model:
    schema = tb.Schema([tb.Column("x", kind, width=x.shape[1])], target="y", label_type="int")
    return tb.count(x, schema, Y, weights=weights).model(settings)


def agree(model: tb.Model, peer, x) -> None:
    assert list(model.classes) == peer.classes_.tolist()
    np.testing.assert_allclose(model.log_joint(x), peer.predict_joint_log_proba(x), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(model.predict_proba(x), peer.predict_proba(x), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.predict(x), peer.predict(x))


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
def test_gaussian(weights) -> None:
    model = matrix_model("vector", NUMBERS, tb.Settings(floor=tb.Floor("global", 1e-9)), weights)
    peer = peers.GaussianNB().fit(NUMBERS, Y, sample_weight=weights)
    if weights is not None:  # its floor is taken from the unweighted variance
        peer.var_ += 1e-9 * (np.average((NUMBERS - np.average(NUMBERS, axis=0, weights=weights)) ** 2, axis=0,
                                        weights=weights).max() - NUMBERS.var(axis=0).max())  # fmt: skip
    agree(model, peer, NUMBERS)
    as_columns = tb.count(NUMBERS, tb.infer(NUMBERS, y=Y), Y, weights=weights).model(
        tb.Settings(floor=tb.Floor("global", 1e-9), families={f"x{j}": "gaussian" for j in range(6)})
    )
    agree(as_columns, peer, NUMBERS)


@pytest.mark.parametrize("weights", [None, WEIGHTS], ids=["plain", "weighted"])
@pytest.mark.parametrize("alpha", [1.0, 0.3, 1e-10])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_matrix, scipy.sparse.csr_array])
def test_multinomial(alpha: float, weights, form) -> None:
    x = form(COUNTS)
    model = matrix_model("bag", x, tb.Settings(smoothing=tb.Laplace(alpha)), weights)
    agree(model, peers.MultinomialNB(alpha=alpha).fit(x, Y, sample_weight=weights), x)


def test_multinomial_on_fractions() -> None:
    x = COUNTS / COUNTS.sum(axis=1, keepdims=True).clip(1)
    agree(matrix_model("bag", x, tb.Settings()), peers.MultinomialNB().fit(x, Y), x)


@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_bernoulli(alpha: float) -> None:
    x = (COUNTS > 0).astype(float)
    settings = tb.Settings(smoothing=tb.Laplace(alpha), families={"x": "bernoulli"})
    agree(matrix_model("bag", x, settings), peers.BernoulliNB(alpha=alpha).fit(x, Y), x)


@pytest.mark.parametrize("norm", [False, True])
def test_complement(norm: bool) -> None:
    settings = tb.Settings(families={"x": tb.families.Complement(norm=norm)}, prior="uniform")
    model = matrix_model("bag", COUNTS, settings)
    peer = peers.ComplementNB(norm=norm).fit(COUNTS, Y)
    np.testing.assert_allclose(model.predict_proba(COUNTS), peer.predict_proba(COUNTS), rtol=1e-9, atol=1e-9)
    np.testing.assert_array_equal(model.predict(COUNTS), peer.predict(COUNTS))


@pytest.mark.parametrize("alpha", [1.0, 0.3])
def test_categorical(alpha: float) -> None:
    x = COUNTS.clip(0, 4).astype(int)
    columns = [tb.Column(f"x{j}", "category", values=tuple(map(str, range(x[:, j].max() + 1)))) for j in range(5)]
    schema = tb.Schema(columns, target="y", label_type="int")
    model = tb.count(x, schema, Y).model(tb.Settings(smoothing=tb.Laplace(alpha)))
    agree(model, peers.CategoricalNB(alpha=alpha).fit(x, Y), x)


@pytest.mark.parametrize("prior", [[0.2, 0.3, 0.5], None])
def test_priors(prior) -> None:
    given = "uniform" if prior is None else dict(enumerate(prior))
    peer = peers.MultinomialNB(class_prior=prior, fit_prior=False).fit(COUNTS, Y)
    agree(matrix_model("bag", COUNTS, tb.Settings(prior=given)), peer, COUNTS)


# ---- where scikit-learn 1.9 is wrong


def test_in_parts_is_as_at_once() -> None:
    """GaussianNB.partial_fit takes its floor from the last batch; here parts and whole are one tally."""
    schema = tb.Schema([tb.Column("x", "vector", width=6)], target="y", label_type="int")
    parts = [tb.count(NUMBERS[i::7], schema, Y[i::7]) for i in range(7)]
    assert sum(parts) == tb.count(NUMBERS, schema, Y)


def test_a_new_class_in_mid_stream_is_a_class() -> None:
    """MultinomialNB.partial_fit counts an unknown label as class 0 without a word."""
    schema = tb.Schema([tb.Column("x", "bag", width=5)], target="y", label_type="int")
    early = tb.count(COUNTS[Y < 2], schema, Y[Y < 2])
    model = (early + tb.count(COUNTS[Y == 2], schema, Y[Y == 2])).model()
    assert model.classes == (0, 1, 2)
    agree(model, peers.MultinomialNB().fit(COUNTS, Y), COUNTS)


def test_weight_zero_is_a_row_left_out() -> None:
    schema = tb.Schema([tb.Column("x", "vector", width=6)], target="y", label_type="int")
    weights = (np.arange(200) % 3 > 0).astype(float)
    assert tb.count(NUMBERS, schema, Y, weights=weights) == tb.count(NUMBERS[weights > 0], schema, Y[weights > 0])
    only = np.where(Y == 2, 0.0, 1.0)
    assert tb.count(NUMBERS, schema, Y, weights=only).classes == ("0", "1")


def test_small_scaled_columns_keep_their_evidence() -> None:
    """One floor for all columns drowns a column of small numbers beside one of large ones."""
    rng = np.random.default_rng(21)
    y = rng.integers(0, 2, 400)
    x = np.stack([rng.normal(size=400) * 1e6, rng.normal(y * 3e-3, 1e-3)], axis=1)
    schema = tb.Schema([tb.Column("x", "vector", width=2)], target="y", label_type="int")
    ours = np.mean(tb.count(x, schema, y).model().predict(x) == y)
    theirs = peers.GaussianNB().fit(x, y).score(x, y)
    assert ours > 0.9
    assert theirs < 0.7


def test_bernoulli_without_smoothing_is_never_nan() -> None:
    x = np.array([[1, 0, 1], [1, 0, 0], [0, 1, 1]], dtype=float)
    schema = tb.Schema([tb.Column("x", "bag", width=3)], target="y")
    model = tb.count(x, schema, ["a", "a", "b"]).model(
        tb.Settings(smoothing=tb.MaximumLikelihood(), families={"x": "bernoulli"})
    )
    p = model.predict_proba(x)
    np.testing.assert_allclose(p, [[1, 0], [1, 0], [0, 1]])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = peers.BernoulliNB(alpha=0, force_alpha=True).fit(x, ["a", "a", "b"]).predict_proba(x)
    assert np.isnan(theirs).any()


def test_unseen_category_and_fraction_are_answered() -> None:
    """CategoricalNB answers an unseen value with a bare IndexError and truncates 0.9 to 0."""
    schema = tb.Schema([tb.Column("x0", "category")], target="y")
    model = tb.count(np.array([[0.0], [0.0], [1.0]]), schema, ["a", "a", "b"]).model()
    np.testing.assert_allclose(model.predict_proba(np.array([[7.0], [0.9]])), [[2 / 3, 1 / 3]] * 2)


@pytest.mark.parametrize("scale", [1e200, 1e-310, 0.0])
def test_extreme_columns_are_finite(scale: float) -> None:
    rng = np.random.default_rng(22)
    y = rng.integers(0, 2, 100)
    x = (rng.normal(size=100) + 4 * y)[:, None] * scale
    schema = tb.Schema([tb.Column("x", "vector", width=1)], target="y", label_type="int")
    p = tb.count(x, schema, y).model().predict_proba(x)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)
    if scale:
        assert np.mean(p.argmax(axis=1) == y) > 0.95
