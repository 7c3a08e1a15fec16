"""Decisions: the cheapest answer, or none where the model is unsure; and isotonic curves of two classes."""

from __future__ import annotations

import datetime
from itertools import product
from typing import Any

import numpy as np
import pytest
from sklearn.isotonic import IsotonicRegression

import tallybayes as tb
from tallybayes.model.posterior import UNSURE, cost_table, decide


def two_classes(n: int = 300, seed: int = 0) -> dict[str, list[Any]]:
    rng = np.random.default_rng(seed)
    y = rng.random(n) < 0.4
    x = rng.normal(np.where(y, 1.0, -0.5), 1.0)
    # two near copies of one number: raw naive Bayes is too sure
    return {"a": x.tolist(), "b": (x + rng.normal(0, 0.1, n)).tolist(), "y": np.where(y, "yes", "no").tolist()}


# ---- costs


@pytest.mark.parametrize("k", [2, 3, 5])
def test_the_answer_is_the_cheapest_by_brute_force(k: int) -> None:
    rng = np.random.default_rng(k)
    p = rng.dirichlet(np.ones(k), 50)
    costs = rng.random((k, k)) * 10
    found = decide(p, range(k), costs=costs)
    for row, answer in zip(p, found, strict=True):
        expected = [sum(row[truth] * costs[truth][a] for truth in range(k)) for a in range(k)]
        assert answer == expected.index(min(expected))


def test_even_costs_change_nothing_and_a_dear_mistake_is_avoided() -> None:
    p = np.array([[0.9, 0.1], [0.3, 0.7], [0.05, 0.95]])
    assert decide(p, ["ham", "spam"], costs={}).tolist() == decide(p, ["ham", "spam"]).tolist() == [0, 1, 1]
    assert decide(p, ["ham", "spam"], costs={("ham", "spam"): 10}).tolist() == [0, 0, 1]


def test_costs_by_name_are_a_matrix() -> None:
    expected = [[0.0, 10.0, 1.0], [1.0, 0.0, 4.0], [1.0, 1.0, 0.5]]
    classes = ["a", "b", "c"]
    by_pair = {("a", "b"): 10, ("b", "c"): 4, ("c", "c"): 0.5}
    by_truth = {"a": {"b": 10}, "b": {"c": 4}, "c": {"c": 0.5}}
    for given in (by_pair, by_truth, expected, np.array(expected)):
        assert cost_table(given, classes).tolist() == expected
    assert cost_table({(1, 2): 5}, [1, 2]).tolist() == cost_table({("1", "2"): 5}, [1, 2]).tolist() == [[0, 5], [1, 0]]


@pytest.mark.parametrize(
    ("costs", "found"),
    [
        ([[0, 1, 2]], "shape \\(1, 3\\) for 2 classes"),
        (np.zeros((3, 3)), "shape \\(3, 3\\)"),
        (7, "shape \\(\\)"),
        ({("ham", "spma"): 1}, "'spma'"),
        ({"ham": 1}, "'ham'"),
        ({("ham", "spam", "x"): 1}, "a cost under"),
        ({("ham", "spam"): float("inf")}, "not a finite number"),
        ([[0, float("nan")], [1, 0]], "not a finite number"),
        ({("ham", "spam"): "dear"}, "not numbers"),
        ([["a", "b"], ["c", "d"]], "not numbers"),
        ([[0, 1], [1]], "not numbers"),
    ],
)
def test_bad_costs_are_refused(costs: Any, found: str) -> None:
    with pytest.raises(tb.SettingsError, match=found) as caught:
        decide(np.array([[0.5, 0.5]]), ["ham", "spam"], costs=costs)
    assert "Hint" in str(caught.value)


# ---- unsure


def test_unsure_looks_at_the_answer_that_would_be_given() -> None:
    p = np.array([[0.9, 0.1], [0.45, 0.55], [0.3, 0.7]])
    assert decide(p, "ab", unsure_below=0.6).tolist() == [0, UNSURE, 1]
    assert decide(p, "ab", unsure_below=0.0).tolist() == [0, 1, 1]
    assert decide(p, "ab", unsure_below=1.0).tolist() == [UNSURE] * 3
    # under these costs the last row is called a, with probability 0.3
    assert decide(p, "ab", unsure_below=0.6, costs=[[0, 10], [1, 0]]).tolist() == [0, UNSURE, UNSURE]


@pytest.mark.parametrize("bad", [-0.1, 1.1, float("nan"), "0.8"])
def test_unsure_below_is_a_probability(bad: Any) -> None:
    with pytest.raises(tb.SettingsError, match="unsure_below"):
        decide(np.array([[0.5, 0.5]]), "ab", unsure_below=bad)


@pytest.mark.parametrize(
    "labels",
    [("no", "yes"), (0, 1), (0.5, 1.5), (False, True), (datetime.date(2020, 1, 1), datetime.date(2020, 1, 2))],
    ids=lambda v: type(v[0]).__name__,
)
def test_labels_come_back_as_they_went_in(labels: tuple[Any, Any]) -> None:
    data = {"x": ["u"] * 9 + ["v"] * 9 + ["w", "w"], "y": [labels[0]] * 9 + [labels[1]] * 9 + list(labels)}
    model = tb.fit(data, target="y", calibrate=False)
    rows = {"x": ["u", "v", "w"]}
    found = model.predict(rows, unsure_below=0.8).tolist()
    assert found == [labels[0], labels[1], None]
    assert type(found[0]) is type(labels[0])
    dear = {(labels[1], labels[0]): 1000}
    assert model.predict(rows, costs=dear).tolist() == [labels[1]] * 3
    assert model.predict(rows, costs=dear, unsure_below=0.4).tolist() == [None, labels[1], labels[1]]


# ---- isotonic curves


def test_the_pools_are_those_of_scikit_learn() -> None:
    rng = np.random.default_rng(0)
    scores = np.round(rng.normal(0, 2, 400), 1)  # with ties
    second = (rng.random(400) < 1 / (1 + np.exp(-scores))).astype(float)
    weights = rng.integers(1, 4, 400).astype(float)
    curve = tb.Isotonic.fitted(scores, second, weights)
    levels = IsotonicRegression().fit(scores, second, sample_weight=weights).predict(scores)
    expected = []
    for level in np.unique(levels):
        pool = levels == level
        rows, hits = weights[pool].sum(), (weights * second)[pool].sum()
        p = (hits + 0.5) / (rows + 1)
        expected.append((np.average(scores[pool], weights=weights[pool]), np.log(p / (1 - p))))
    where, odds = np.array(expected).T
    np.testing.assert_allclose(curve.scores, where)
    np.testing.assert_allclose(curve.odds, np.maximum.accumulate(odds))
    assert (np.diff(curve(np.linspace(-9, 9, 1000))) >= 0).all()


def test_equal_scores_are_one_point_whatever_their_order() -> None:
    ones = np.ones(4)
    for labels in product([0.0, 1.0], repeat=4):
        curve = tb.Isotonic.fitted(np.zeros(4), np.array(labels), ones)
        p = (sum(labels) + 0.5) / 5
        assert curve.scores == (0.0,)
        assert curve.odds[0] == pytest.approx(np.log(p / (1 - p)))


@pytest.mark.parametrize(
    "bad", [((), ()), ((1.0, 0.0), (0.0, 1.0)), ((0.0, 1.0), (1.0, 0.0)), ((0.0,), (np.inf,)), ((0.0,), (1.0, 2.0))]
)
def test_a_curve_that_does_not_rise_is_refused(bad: Any) -> None:
    with pytest.raises(tb.SettingsError, match="isotonic"):
        tb.Isotonic(*bad)


def test_an_isotonic_model_adds_up_is_saved_and_keeps_the_order(tmp_path: Any) -> None:
    data = two_classes()
    model = tb.fit(data, target="y", calibrate="isotonic")
    assert model.settings.isotonic is not None
    plain = model.tally.model(tb.Settings(**{**vars(model.settings), "isotonic": None}))
    before, after = plain.predict_proba(data)[:, 1], model.predict_proba(data)[:, 1]
    assert (np.diff(after[np.argsort(before)]) >= -1e-12).all()  # bent, never turned round
    assert np.abs(before - after).max() > 0.01
    for i in range(0, 300, 50):
        why = model.explain(data, i)
        np.testing.assert_allclose(why.total, model.log_joint(data)[i], atol=1e-12)
        np.testing.assert_allclose(why.probabilities, model.predict_proba(data)[i], atol=1e-12)
    model.save(tmp_path / "m.tb.parquet")
    np.testing.assert_array_equal(tb.load(tmp_path / "m.tb.parquet").predict_proba(data), model.predict_proba(data))


def test_another_prior_moves_the_calibrated_odds() -> None:
    data = two_classes()
    model = tb.fit(data, target="y", calibrate="isotonic")
    own, even = model.predict_proba(data), model.predict_proba(data, prior={"no": 0.2, "yes": 0.8})
    shift = np.log(0.8 / 0.2) - (model.log_prior[1] - model.log_prior[0])
    odds = np.log(own[:, 1] / own[:, 0]) + shift
    np.testing.assert_allclose(even[:, 1], 1 / (1 + np.exp(-odds)), atol=1e-12)
    why = model.explain(data, 3, prior={"no": 0.2, "yes": 0.8})
    np.testing.assert_allclose(why.probabilities, even[3], atol=1e-12)


def test_isotonic_curves_are_for_two_classes() -> None:
    three = {"x": list("aabc") * 15, "y": list("pqr") * 20}
    with pytest.raises(tb.SettingsError, match="3 classes"):
        tb.fit(three, target="y", calibrate="isotonic")


def test_perfect_scores_give_a_finite_curve() -> None:
    data = {"x": [0.0] * 50 + [1e6] * 50, "z": list("ab") * 50, "y": ["no"] * 50 + ["yes"] * 50}
    schema = tb.Schema([tb.Column("x", "number"), tb.Column("z", "category")], target="y")
    model = tb.fit(data, schema=schema, calibrate="isotonic")
    p = model.predict_proba(data)
    assert np.isfinite(p).all()
    assert p[0, 0] > 0.9
    assert p[-1, 1] > 0.9
