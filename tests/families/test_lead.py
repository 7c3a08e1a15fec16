"""The bent lead of the best class, and offsets of classes, in a model: they add up, travel, and keep the order."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import tallybayes as tb
from tallybayes.base.arrays import log_sum_exp
from tallybayes.families.calibration import LEAST
from tallybayes.model import posterior

LEADS = st.builds(tb.Lead, st.floats(0.05, 20), st.floats(-0.9, 0.9))
SCORES = arrays.arrays(float, st.tuples(st.integers(1, 5), st.integers(1, 5)), elements=st.floats(-50, 50))


@given(SCORES, LEADS)
def test_distances_to_the_best_are_multiplied_by_the_lead(joint: np.ndarray, lead: tb.Lead) -> None:
    out = lead(joint)
    for before, after in zip(joint.tolist(), out.tolist(), strict=True):
        best = max(before)
        second = sorted(before)[-2] if len(before) > 1 else best
        factor = lead.scale * max(best - second, LEAST) ** lead.exponent if len(before) > 1 else 1.0
        np.testing.assert_allclose(after, [best + factor * (s - best) for s in before], rtol=1e-12, atol=1e-12)
        assert after[int(np.argmax(before))] == max(after)  # a lead below rounding may become a tie


@given(st.lists(st.floats(0.01, 60), min_size=2, max_size=8, unique=True), LEADS)
def test_a_larger_lead_is_a_surer_answer(leads: list[float], lead: tb.Lead) -> None:
    joint = np.array([[0.0, -x] for x in sorted(leads)])
    assert (np.diff(lead(joint)[:, 1]) <= 1e-9).all()


def test_impossible_classes_stay_impossible_and_one_that_is_left_keeps_its_score() -> None:
    inf = np.inf
    joint = np.array([[-1.0, -inf, -3.0], [-inf, -2.0, -inf], [-inf, -inf, -inf]])
    out = tb.Lead(3.0, -0.5)(joint)
    np.testing.assert_allclose(out[0], [-1.0, -inf, -1.0 - 3 * 2**-0.5 * 2])
    np.testing.assert_array_equal(out[1:], joint[1:])


def test_exponent_nought_is_a_temperature() -> None:
    joint = np.random.default_rng(0).normal(0, 5, (20, 4))
    np.testing.assert_allclose(
        posterior.log_posterior(tb.Lead(0.4)(joint), np.zeros(4)), 0.4 * joint - log_sum_exp(0.4 * joint)[:, None]
    )


def overconfident(rows: int, exponent: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Scores whose true log-odds are scale · lead^(1 + exponent), and labels drawn by them."""
    rng = np.random.default_rng(seed)
    scores = np.concatenate([np.zeros((rows, 1)), rng.normal(0, 8, (rows, 3))], axis=1)
    true = tb.Lead(0.8, exponent)(scores)
    p = np.exp(true - log_sum_exp(true)[:, None])
    return scores, (p.cumsum(axis=1) > rng.random((rows, 1))).argmax(axis=1)


@pytest.mark.parametrize("exponent", [-0.5, 0.0, 0.3])
def test_the_bend_that_made_the_labels_is_found(exponent: float) -> None:
    scores, labels = overconfident(20_000, exponent)
    found = tb.Lead.fitted(scores, labels, np.ones(len(labels)))
    assert found.scale == pytest.approx(0.8, rel=0.12)
    assert found.exponent == pytest.approx(exponent, abs=0.08)
    again = np.repeat(np.arange(500), 3)
    one = tb.Lead.fitted(scores[:500], labels[:500], np.full(500, 3.0))
    many = tb.Lead.fitted(scores[again], labels[again], np.ones(1500))
    assert (one.scale, one.exponent) == pytest.approx((many.scale, many.exponent), rel=1e-3)


@pytest.mark.parametrize("bad", [(0.0, 0.0), (-1.0, 0.0), (np.inf, 0.0), (1.0, -1.0), (1.0, np.nan), (np.nan, 0.0)])
def test_a_lead_that_turns_answers_round_is_refused(bad: tuple[float, float]) -> None:
    with pytest.raises(tb.SettingsError, match="lead"):
        tb.Lead(*bad)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_an_offset_is_a_number(bad: float) -> None:
    with pytest.raises(tb.SettingsError, match="offset of class 'a'"):
        tb.Settings(offsets={"a": bad})


# ---- in a model

RNG = np.random.default_rng(3)
Y = RNG.integers(0, 3, 240)
DATA: dict[str, Any] = {
    "x": RNG.normal(Y, 1.0).tolist(),
    "c": [f"v{v}" for v in (Y + RNG.integers(0, 2, 240)) % 3],
    "t": [" ".join(["ab", "cd", "ef"][y] for _ in range(n)) for y, n in zip(Y, RNG.integers(1, 9, 240), strict=True)],
    "y": Y.tolist(),
}
SETTINGS = tb.Settings(
    weights={"x": 0.8, "c": 0.4, "t": 0.5}, lengths={"t": -0.5}, offsets={"0": 0.9, "2": -0.9}, lead=tb.Lead(1.5, -0.4)
)


SCHEMA = tb.Schema([tb.Column("x", "number"), tb.Column("c", "category"), tb.Column("t", "text")], target="y")
TALLY = tb.count(DATA, SCHEMA)


@pytest.fixture(scope="module")
def model() -> tb.Model:
    return TALLY.model(SETTINGS)


def test_the_score_is_the_formula(model: tb.Model) -> None:
    rows = {k: v for k, v in DATA.items() if k != "y"}
    parts = model.parts(rows)
    tokens = np.array([len(t.split()) for t in DATA["t"]], dtype=float)
    score = model.log_prior + [0.9, 0.0, -0.9] + 0.8 * parts["x"] + 0.4 * parts["c"]
    score = score + (0.5 * tokens**-0.5)[:, None] * parts["t"]
    np.testing.assert_allclose(model.log_joint(rows), SETTINGS.lead(score), atol=1e-12)
    np.testing.assert_allclose(list(model.prior().values()), np.bincount(Y) / 240)  # what was counted


def test_explanations_add_up_and_name_what_was_added(model: tb.Model) -> None:
    for i in range(0, 240, 40):
        why = model.explain(DATA, i)
        assert [c.column for c in why.contributions][:2] == ["prior", "offsets"]
        assert why.contributions[-1].column == "calibration"
        np.testing.assert_allclose(why.total, model.log_joint(DATA)[i], atol=1e-12)
        np.testing.assert_allclose(why.probabilities, model.predict_proba(DATA)[i], atol=1e-12)
        assert str(why)


def test_another_prior_moves_the_bent_scores(model: tb.Model) -> None:
    given = {0: 0.2, 1: 0.2, 2: 0.6}
    shift = np.log(list(given.values())) - model.log_prior
    expected = model.log_joint(DATA) + shift
    np.testing.assert_allclose(model.log_joint(DATA, prior=given), expected, atol=1e-12)
    why = model.explain(DATA, 5, prior=given)
    np.testing.assert_allclose(why.probabilities, model.predict_proba(DATA, prior=given)[5], atol=1e-12)


def test_it_is_saved_learnt_forgotten_and_told_to_other_models(model: tb.Model, tmp_path: Any) -> None:
    model.save(tmp_path / "m.tb.parquet")
    again = tb.load(tmp_path / "m.tb.parquet")
    assert again.settings == model.settings
    np.testing.assert_array_equal(again.predict_proba(DATA), model.predict_proba(DATA))
    row = {"x": 0.5, "c": "v1", "t": "ab", "y": 1}
    assert model.update(row).forget(row).tally == model.tally
    plain = model.tally.model(replace(SETTINGS, lead=None, offsets={}))
    assert not np.allclose(plain.predict_proba(DATA), model.predict_proba(DATA))


def test_what_if_gives_the_chances_of_the_model(model: tb.Model) -> None:
    row = {"x": 0.2, "c": "v0", "t": "ab"}
    found = model.what_if(row)
    at = model.class_number(found.becomes)
    expected = [model.predict_proba(r)[0, at] for r in (row, found.row)]
    np.testing.assert_allclose(found.probability, expected, atol=1e-9)
    assert model.predict(found.row).tolist() == [found.becomes]


def test_what_bends_has_no_linear_view_and_is_not_tuned(model: tb.Model) -> None:
    straight = tb.Settings(families={"x": "gaussian-shared"})
    with pytest.raises(tb.SettingsError, match="lead"):
        TALLY.model(replace(straight, lead=tb.Lead(1.0, -0.2))).linear()
    moved = TALLY.model(replace(straight, offsets={"1": 0.4})).linear().b - TALLY.model(straight).linear().b
    np.testing.assert_allclose(moved - moved[0], [0.0, 0.4, 0.0], atol=1e-12)
    with pytest.raises(tb.SettingsError, match="offsets"):
        tb.tune(DATA, SCHEMA, settings=SETTINGS)


def test_the_default_has_offsets_beside_weights_and_renews_them() -> None:
    fitted = tb.fit(DATA, schema=SCHEMA, calibrate="weights")
    assert set(fitted.settings.offsets) == {"0", "1", "2"}
    assert sum(fitted.settings.offsets.values()) == pytest.approx(0, abs=1e-12)
    assert fitted.settings.lead is None  # too few rows for that
    changed = fitted.tally.model(replace(fitted.settings, lead=tb.Lead(0.5), offsets={"1": 9.0}))
    renewed = changed.recalibrate(DATA)
    assert renewed.settings.lead is None
    assert renewed.settings.offsets.get("1", 0.0) < 3
    assert tb.fit(DATA, schema=SCHEMA, calibrate="temperature").settings.offsets == {}
