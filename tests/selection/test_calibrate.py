"""Column weights, temperature and length exponents, fitted on made evidence whose answer is known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy.optimize import OptimizeResult, check_grad

import tallybayes as tb
from tallybayes.selection.choose.weights import (
    PENALTIES,
    Evidence,
    column_weights,
    fit_weights,
    losses_of,
    nested_scores,
    split_of,
    temperature,
)


def made(parts: np.ndarray, labels: np.ndarray, **more: Any) -> Evidence:
    """Evidence from terms × rows × classes under an even prior, rows dealt into ten folds."""
    rows, classes = parts.shape[1:]
    prior = np.full((rows, classes), -np.log(classes))
    weights = more.pop("weights", None)
    folds = more.pop("folds", np.arange(rows) % 10)
    return Evidence.of(list(parts), prior, labels, folds, weights, **more)


def telling(rows: int, classes: int, terms: int, strength: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Independent terms whose parts are true log-likelihoods of bell curves, so that every right weight is 1."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(0, classes, rows)
    x = rng.normal(labels * strength, 1.0, (terms, rows))
    return -0.5 * (x[:, :, None] - np.arange(classes) * strength) ** 2, labels


def the_objective(monkeypatch: pytest.MonkeyPatch, evidence: Evidence, penalty: float | None) -> tuple[Any, np.ndarray]:
    """The function that is minimised, and where it starts."""
    caught: dict[str, Any] = {}

    def minimize(fun: Any, x0: np.ndarray, **_: Any) -> OptimizeResult:
        caught.update(fun=fun, x0=x0)
        return OptimizeResult(x=x0)

    monkeypatch.setattr("scipy.optimize.minimize", minimize)
    fit_weights(evidence, penalty)
    return caught["fun"], caught["x0"]


@pytest.mark.parametrize("penalty", [None, 0.7])
@pytest.mark.parametrize("classes", [2, 4])
def test_the_gradient_is_that_of_the_loss(monkeypatch: pytest.MonkeyPatch, penalty: float | None, classes: int) -> None:
    rng = np.random.default_rng(classes)
    parts, labels = telling(60, classes, 5, 0.8, 3)
    evidence = made(
        parts, labels, weights=rng.random(60) + 0.1, tokens={1: rng.integers(1, 50, 60).astype(float)},
        groups=np.array([0, 0, 1, 1, 0]), target=np.array([1.0, 1.0, 1.0, 1.0, 0.25]),
    )  # fmt: skip
    loss, x0 = the_objective(monkeypatch, evidence, penalty)
    for _ in range(3):
        x = np.abs(x0 + rng.normal(0, 0.2, len(x0))) + 0.05
        assert check_grad(lambda v: loss(v)[0], lambda v: loss(v)[1], x, epsilon=1e-6) < 1e-5


def test_the_loss_is_the_one_in_the_formula(monkeypatch: pytest.MonkeyPatch) -> None:
    parts, labels = telling(40, 3, 2, 1.0, 1)
    lengths = np.arange(1.0, 41.0)
    loss, _ = the_objective(monkeypatch, made(parts, labels, tokens={1: lengths}), 2.0)
    tau, w, b, o = 0.7, np.array([0.4, 1.3]), -0.3, np.array([0.0, 0.6, -0.3])
    scores = o + w[0] * parts[0] + (w[1] * lengths**b)[:, None] * parts[1]
    log_p = scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))
    expected = -log_p[np.arange(40), labels].sum() + 2.0 * ((w - tau) ** 2).sum() + 0.5 * np.log(tau) ** 2 + 0.5 * b**2
    expected += 10 * ((o - o.mean()) ** 2).sum()
    assert loss(np.array([tau, *w, b, *o[1:]]))[0] * 40 == pytest.approx(expected, rel=1e-12)


def test_honest_terms_get_weight_one() -> None:
    parts, labels = telling(4000, 3, 3, 0.9, 5)
    evidence = made(parts, labels)
    assert fit_weights(evidence, None).temperatures[0] == pytest.approx(1, abs=0.08)
    np.testing.assert_allclose(column_weights(evidence)[0].weights, 1, atol=0.12)


def test_a_column_counted_twice_is_believed_once() -> None:
    parts, labels = telling(4000, 2, 2, 0.9, 6)
    twice = made(np.concatenate([parts, parts[1:], parts[1:]]), labels)
    once = column_weights(made(parts, labels))[0].weights
    found = column_weights(twice)[0].weights
    assert found[0] == pytest.approx(once[0], abs=0.1)
    assert found[1:].sum() == pytest.approx(once[1], abs=0.1)
    np.testing.assert_allclose(found[1:], found[1], atol=1e-2)  # nothing tells the copies apart
    assert temperature(twice)[0].temperatures[0] < 0.75


def test_words_that_repeat_each_other_give_a_negative_exponent() -> None:
    rng = np.random.default_rng(7)
    parts, labels = telling(4000, 2, 1, 0.7, 8)
    lengths = rng.integers(1, 20, 4000).astype(float)
    repeated = made(parts * lengths[None, :, None], labels, tokens={0: lengths})  # every word says the same again
    found = fit_weights(repeated, None)
    assert found.exponents[0] == pytest.approx(-1, abs=0.1)
    assert found.weights[0] == pytest.approx(1, abs=0.2)
    fair = made(parts, labels, tokens={0: lengths})
    assert fit_weights(fair, None).exponents[0] == pytest.approx(0, abs=0.1)


@pytest.mark.parametrize("penalty", PENALTIES)
def test_weights_are_never_negative_and_a_misleading_term_gets_none(penalty: float) -> None:
    parts, labels = telling(3000, 2, 2, 1.0, 9)
    wrong = np.concatenate([parts[:1], -parts[1:]])
    found = fit_weights(made(wrong, labels), penalty).weights
    assert (found >= 0).all()
    assert found[1] == 0.0
    assert found[0] > 0.5


@pytest.mark.parametrize("classes", [2, 3])
def test_scores_that_do_not_vary_say_nothing(classes: int) -> None:
    labels = np.arange(60) // 10 % classes  # as many of each in every split
    evidence = made(np.zeros((3, 60, classes)), labels)
    for weights, scores in (temperature(evidence), column_weights(evidence)):
        assert np.isfinite(weights.weights).all()
        np.testing.assert_allclose(losses_of(scores, labels), np.log(classes), atol=1e-6)


def test_impossible_values_are_strong_and_not_infinite() -> None:
    parts, labels = telling(50, 2, 2, 1.0, 10)
    parts[0, 3, labels[3]] = -np.inf
    parts[1, 4] = -np.inf  # impossible under every class
    evidence = made(parts, labels)
    assert np.isfinite(evidence.parts).all()
    assert np.abs(evidence.parts).max() <= 60
    assert (evidence.parts[1, 4] == 0).all()
    assert np.isfinite(column_weights(evidence)[1]).all()


def test_a_row_that_weighs_three_is_three_rows() -> None:
    parts, labels = telling(60, 3, 4, 0.7, 11)
    times = np.random.default_rng(0).integers(1, 4, 60)
    again = np.repeat(np.arange(60), times)
    weighted = made(parts, labels, weights=times.astype(float))
    repeated = made(parts[:, again], labels[again], folds=(np.arange(60) % 10)[again])
    for how in (temperature, column_weights):
        one, scores = how(weighted)
        other, many = how(repeated)
        np.testing.assert_allclose(one.weights, other.weights, atol=2e-3)
        np.testing.assert_allclose(scores[again], many, atol=2e-2)


@pytest.mark.parametrize("rows", [0, 1, 2, 10])
def test_few_rows_do_not_break_it(rows: int) -> None:
    parts, labels = telling(rows, 2, 3, 1.0, 12)
    weights = fit_weights(made(parts, labels), 3.0)
    assert np.isfinite(weights.weights).all()
    assert weights.weights.max() < 10
    if rows == 0:  # only the penalty speaks: believe everything as it is
        np.testing.assert_allclose(weights.weights, 1, atol=1e-3)


def test_rows_of_a_class_that_their_model_never_saw_are_left_out() -> None:
    prior = np.log(np.array([[0.5, 0.5], [1.0, 1e-300], [0.5, 0.5]]))
    prior[1, 1] = -np.inf
    evidence = Evidence.of([np.zeros((3, 2))], prior, np.array([0, 1, 1]), np.arange(3), None)
    assert evidence.labels.tolist() == [0, 1]
    assert evidence.folds.tolist() == [0, 2]


def test_nested_scores_are_those_of_weights_fitted_without_the_split() -> None:
    parts, labels = telling(200, 3, 3, 0.5, 13)
    evidence = made(parts, labels)
    nested = nested_scores(evidence, lambda e: [fit_weights(e, None), fit_weights(e, 3.0)])
    split = split_of(evidence.folds)
    for s in range(5):
        for k, penalty in enumerate((None, 3.0)):
            by_hand = fit_weights(evidence.only(split != s), penalty).scores(evidence.only(split == s))
            np.testing.assert_array_equal(nested[k][split == s], by_hand)
    # the labels of a split have no say in the weights that judge it
    other = np.where(split == 2, (labels + 1) % 3, labels)
    seen: list[Any] = []
    nested_scores(made(parts, other), lambda e: seen.append(fit_weights(e, 3.0)) or [seen[-1]])
    np.testing.assert_array_equal(seen[2].weights, fit_weights(evidence.only(split != 2), 3.0).weights)


def test_noise_does_not_improve_the_nested_loss() -> None:
    parts, labels = telling(120, 2, 1, 0.8, 14)
    rng = np.random.default_rng(15)
    noise = rng.normal(0, 1, (40, 120, 2))
    alone = losses_of(temperature(made(parts, labels))[1], labels).mean()
    wide = made(np.concatenate([parts, noise]), labels)
    assert fit_weights(wide, 0.01).losses(wide).mean() < alone - 0.05  # the rows that weights were fitted on flatter
    assert losses_of(column_weights(wide)[1], labels).mean() > alone - 0.005
    assert losses_of(nested_scores(wide, lambda e: [fit_weights(e, 0.01)])[0], labels).mean() > alone


def test_a_class_that_the_columns_favour_is_held_back_by_its_offset() -> None:
    parts, labels = telling(4000, 3, 2, 0.9, 21)
    favoured = parts + np.array([0.0, 0.8, -0.4])  # each column says so much for a class, whatever the row
    found = fit_weights(made(favoured, labels), 3.0)
    assert found.offsets is not None
    np.testing.assert_allclose(found.offsets, [-1.6, 0.8], atol=0.2)
    assert fit_weights(made(favoured, labels), None).offsets is None  # one temperature is one number
    few = fit_weights(made(favoured[:, :20], labels[:20]), 3.0)
    assert np.abs(few.offsets).max() < np.abs(found.offsets).max()  # twenty rows do not prove it


def test_terms_chosen_with_a_split_are_hidden_from_it() -> None:
    parts, labels = telling(100, 2, 2, 1.0, 16)
    only_first, both = np.array([0]), np.array([0, 1])
    evidence = made(parts, labels, views=(only_first,) * 5 + (both,))
    alone, losses = temperature(made(parts[:1], labels))
    weights, nested = temperature(evidence)
    assert len(weights.weights) == 2  # the answer has all terms
    np.testing.assert_array_equal(nested, losses)  # but only the first was judged
    assert len(alone.weights) == 1


# ---- weights of 0 in a model

ROWS = {"x": list("aabbab"), "n": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "y": list("ppqqpq")}


def test_with_all_weights_zero_the_prior_answers_and_the_explanation_adds_up() -> None:
    schema = tb.Schema([tb.Column("x", "category"), tb.Column("n", "number")], target="y")
    model = tb.count(ROWS, schema).model(tb.Settings(weights={"x": 0.0, "n": 0.0}))
    np.testing.assert_allclose(model.predict_proba(ROWS), np.tile([0.5, 0.5], (6, 1)))
    why = model.explain(ROWS, 2)
    np.testing.assert_allclose(why.total, model.log_joint(ROWS)[2], rtol=1e-15)
    np.testing.assert_allclose(why.probabilities, [0.5, 0.5])
    assert "n" in str(why)
