"""What `tb.fit` chooses by itself: the form, when it is chosen, and that nothing but the rows given decides."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from shared_data import shared
from test_pairs import xor

import tallybayes as tb
from tallybayes.selection.choose.ladder import GAIN
from tallybayes.selection.measure import metrics

Rows = dict[str, list[Any]]


def independent(n: int, seed: int = 0, copies: int = 0) -> Rows:
    """Three columns that tell the class, each by itself, and copies of the first."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    out: Rows = {}
    for name in "abc":
        told = np.where(rng.random(n) < 0.75, y, 1 - y)
        out[name] = [f"{name}{v}" for v in told]
    out["x"] = np.round(rng.normal(y * 1.0, 1.0), 3).tolist()
    out |= {f"copy{i}": out["a"] for i in range(copies)}
    out["y"] = [["no", "yes"][v] for v in y]
    return out


def form(model: tb.Model) -> str | None:
    return None if model.settings.calibrated is None else model.settings.calibrated.form


def loss(model: tb.Model, rows: Rows) -> float:
    numbers = np.array([list(model.classes).index(v) for v in rows["y"]])
    return float(metrics.log_loss(numbers, model.predict_proba(rows)))


def some(rows: Rows, at: Any) -> Rows:
    return {name: [values[i] for i in at] for name, values in rows.items()}


# ---- the ladder


def test_the_form_follows_the_data_and_fit_says_which() -> None:
    assert form(tb.fit(independent(400), target="y")) == "one temperature"
    copied = tb.fit(independent(600, copies=6), target="y")
    assert form(copied) in ("column weights", "corrections")
    believed = {**copied.settings.weights, **{n: c.weight for n, c in copied.settings.corrections.items()}}
    assert sum(w for n, w in believed.items() if n.startswith("copy") or n == "a") < 2
    paired = tb.fit(xor(), target="y")
    assert form(paired) == "corrections and pairs"
    for model in (copied, paired):
        said = repr(model).splitlines()[-1]
        assert said.startswith(f"weights: {form(model)}, fitted on ")
        losses = model.settings.calibrated.losses  # type: ignore[union-attr]
        assert losses["one temperature"] - losses[form(model)] >= GAIN
        assert all(f"{value:.4f}" in said for value in losses.values())


@pytest.mark.parametrize("asked", ["temperature", "weights"])
def test_a_form_that_was_asked_for_is_used(asked: str) -> None:
    model = tb.fit(independent(200, copies=3), target="y", calibrate=asked)
    assert form(model) == {"temperature": "one temperature", "weights": "column weights"}[asked]
    categories = {w for n, w in model.settings.weights.items() if n != "x"}
    assert (len(categories) == 1) == (asked == "temperature")


def test_a_form_that_does_not_exist_is_refused() -> None:
    with pytest.raises(tb.SettingsError, match="calibrate='platt'"):
        tb.fit(independent(40), target="y", calibrate="platt")


def test_under_ten_rows_the_counts_are_believed_as_they_are() -> None:
    rows = some(independent(40), range(9))
    model = tb.fit(rows, target="y")
    assert form(model) is None
    assert model.settings == tb.Settings()
    assert form(tb.fit(some(independent(40), range(10)), target="y")) == "one temperature"


@pytest.mark.parametrize("n", [12, 200])
def test_one_class_needs_no_weights(n: int) -> None:
    rows = independent(n) | {"y": ["only"] * n}
    model = tb.fit(rows, target="y")
    assert form(model) is None
    np.testing.assert_allclose(model.predict_proba(rows), 1)


def test_every_row_of_a_class_of_its_own() -> None:
    rows = {"x": list("ababababababab"), "y": [f"class {i}" for i in range(14)]}
    model = tb.fit(rows, schema=tb.Schema([tb.Column("x", "category")], target="y"))
    assert form(model) is None
    np.testing.assert_allclose(model.predict_proba(rows).sum(axis=1), 1)


@pytest.mark.parametrize("few", [1, 2, 4])
def test_a_class_with_fewer_rows_than_folds(few: int) -> None:
    rows = independent(150)
    rows["y"] = ["rare" if i < few else v for i, v in enumerate(rows["y"])]
    model = tb.fit(rows, target="y")
    assert model.classes == ("no", "rare", "yes")
    p = model.predict_proba(rows)
    assert np.isfinite(p).all()
    np.testing.assert_allclose(p.sum(axis=1), 1)


def test_columns_that_say_nothing() -> None:
    rows = {"c": ["same"] * 60, "n": [1.0] * 60, "y": list("pq") * 30}
    schema = tb.Schema([tb.Column("c", "category"), tb.Column("n", "number")], target="y")
    np.testing.assert_allclose(tb.fit(rows, schema=schema).predict_proba(rows), 0.5)
    assert tb.fit(rows, schema=tb.Schema([], target="y")).settings.calibrated is None


def test_impossible_values_under_calibrated_settings_give_probabilities() -> None:
    rows = independent(120)
    model = tb.fit(rows, target="y", settings=tb.Settings(smoothing=tb.MaximumLikelihood()), calibrate=True)
    far = some(rows, range(5)) | {"x": [-100.0, 100.0, 0.0, 55.5, None]}
    assert np.isfinite(model.predict_proba(far)).all()


def test_small_sets_are_no_worse_than_under_one_temperature() -> None:
    found = []
    for seed in range(6):
        train, test = independent(120, seed, copies=4), independent(1000, 100 + seed, copies=4)
        ways: list[Any] = [True, "temperature", False]
        found.append([loss(tb.fit(train, target="y", calibrate=way), test) for way in ways])
    default, one_temperature, raw = np.mean(found, axis=0)
    assert default < one_temperature + 0.005
    assert default < raw - 0.05  # copies make the counts too sure


# ---- only the rows given


def test_test_rows_have_no_say() -> None:
    """What a fold's rows are, and what class they have, changes nothing in the forecasts that others get."""
    rows = independent(300, copies=1)
    part = ["train"] * 200 + ["test"] * 100

    def forecasts(data: dict[str, Any], parts: list[str]) -> np.ndarray:
        found = tb.cross_validate({**data, "part": parts}, "y", by="part")
        tested = found.folds == found.fold_names.index("test")
        return found.forecasts["fit"][0][tested][:100]

    honest = forecasts(rows, part)
    other = {"yes": "no", "no": "yes"}
    turned = {**rows, "y": [*rows["y"][:200], *(other[v] for v in rows["y"][200:])]}
    np.testing.assert_array_equal(forecasts(turned, part), honest)
    leak = {n: [*v, *(["yes"] * 100 if n == "y" else [v[0]] * 100)] for n, v in rows.items()}
    np.testing.assert_array_equal(forecasts(leak, [*part, *["test"] * 100]), honest)
    known = forecasts(leak, [*part, *["train"] * 100])  # the same rows among those trained on do have a say
    assert np.abs(known - honest).max() > 0.01


def test_a_held_out_word_or_value_is_not_known_to_the_model_that_scores_it() -> None:
    """Values that name the class and stand in one row each: counted they tell all, held out nothing."""
    rng = np.random.default_rng(3)
    y = [str(v) for v in rng.integers(0, 2, 200)]
    rows = {
        "id": [f"{label}-{i}" for i, label in enumerate(y)],
        "note": [f"word{i} of class{label}x{i}" for i, label in enumerate(y)],
        "y": y,
    }
    schema = tb.Schema([tb.Column("id", "category"), tb.Column("note", "text")], target="y")
    model = tb.fit(rows, schema=schema, pairs=False)  # characters of a word may tell what the word itself cannot
    assert model.settings.calibrated is not None
    assert min(model.settings.calibrated.losses.values()) > np.log(2) - 0.02
    # the rows that were counted would say otherwise under weights of 1
    raw = tb.fit(rows, schema=schema, calibrate=False)
    assert loss(raw, rows) < 0.3


def test_the_same_rows_give_the_same_model() -> None:
    one, other = (tb.fit(independent(150, copies=2), target="y") for _ in range(2))
    assert one.settings == other.settings
    assert one.tally == other.tally


# ---- later


def test_without_calibration_forgetting_is_exact() -> None:
    rows = independent(120)
    schema = tb.infer(rows, target="y")
    whole = tb.fit(rows, schema=schema, calibrate=False)
    never = tb.fit(some(rows, range(80)), schema=schema, calibrate=False)
    left = whole.forget(some(rows, range(80, 120)))
    assert left.tally == never.tally
    assert left.settings == never.settings
    np.testing.assert_array_equal(left.predict_proba(rows), never.predict_proba(rows))


def test_weights_grow_old_and_are_renewed(tmp_path: Any) -> None:
    rows = independent(240, copies=2)
    model = tb.fit(some(rows, range(160)), target="y")
    assert model.settings.calibrated is not None
    assert model.settings.calibrated.rows == 160
    assert "changed since" not in repr(model)
    older = model.update(some(rows, range(160, 220))).forget(some(rows, range(15)))
    assert older.settings.calibrated == replace(model.settings.calibrated, changed=75)
    assert older.settings.weights == model.settings.weights
    assert "75 rows changed since" in repr(older)
    older.save(tmp_path / "m.tb.parquet")
    assert tb.load(tmp_path / "m.tb.parquet").settings.calibrated == older.settings.calibrated
    fresh = older.recalibrate(some(rows, range(15, 220)))
    assert fresh.settings.calibrated is not None
    assert fresh.settings.calibrated.changed == 0
    assert fresh.settings.calibrated.rows == 205
    assert fresh.tally == older.tally
    assert fresh.settings.weights != older.settings.weights
    with pytest.raises(tb.DataError, match="too few"):
        older.recalibrate(some(rows, range(5)))


def test_recalibrating_keeps_pairs_and_curves() -> None:
    rows = xor(300)
    model = tb.fit(rows, target="y", calibrate="isotonic", pairs=[("a", "b")])
    again = model.recalibrate(rows)
    assert again.schema == model.schema
    assert again.settings.isotonic is not None
    assert again.settings.weights["a × b"] > 0
    np.testing.assert_allclose(again.predict_proba(rows), model.predict_proba(rows), atol=1e-6)


def test_a_curve_goes_out_of_use_with_a_third_class_and_the_model_says_so() -> None:
    rows = xor(300)
    model = tb.fit(rows, target="y", calibrate="isotonic", pairs=False)
    assert model.settings.calibrated is not None
    assert model.settings.calibrated.form.endswith("isotonic curve")
    assert "isotonic curve, fitted on 300 rows" in repr(model)
    third = {n: [*v, *v[:30]] if n != "y" else [*v, *["third"] * 30] for n, v in rows.items()}
    with pytest.warns(tb.TallybayesWarning, match="isotonic curve is for two classes and is out of use"):
        wider = model.update(some(third, range(300, 330)), new_classes="allow")
    renewed = wider.recalibrate(third)
    assert renewed.settings.isotonic is None
    assert renewed.settings.calibrated is not None
    assert renewed.settings.calibrated.rows == 330


@pytest.mark.parametrize("asked", ["temperature", "weights", "isotonic"])
def test_a_form_that_cannot_be_fitted_is_not_dropped_in_silence(asked: str) -> None:
    few = independent(8)
    with pytest.warns(tb.TallybayesWarning, match=f"calibrate='{asked}' was asked for, but 8 labelled rows"):
        model = tb.fit(few, target="y", calibrate=asked)
    assert model.settings.calibrated is None


def test_a_text_that_is_not_in_the_data_is_missing() -> None:
    rows = independent(150)
    texts = {**rows, "note": ["some words"] * 75 + ["others here"] * 75}
    schema = tb.infer(rows, target="y").with_column("note", kind="text")
    model = tb.fit(texts, schema=schema)
    with pytest.warns(tb.TallybayesWarning, match="not in the data are taken as missing: 'note'"):
        again = model.recalibrate(rows)
    assert again.settings.calibrated is not None
    assert again.settings.calibrated.rows == 150


def test_the_model_beneath_a_blend_and_a_pair_can_be_sampled() -> None:
    rows = independent(200)
    model = tb.fit(rows, target="y", pairs=[("a", "x")])
    drawn = model.generative.sample(400, seed=1)
    assert set(drawn.column_names) == {"a", "b", "c", "x", "y"}
    y = np.array(drawn["y"].to_pylist())
    x = np.array(drawn["x"].to_pylist(), dtype=float)
    assert x[y == "yes"].mean() - x[y == "no"].mean() > 0.5
    nothing = model.tally.model(  # type: ignore[union-attr]
        tb.Settings(families={"x": tb.families.Blend(shares=(0.0,) * 5)})
    )
    with pytest.raises(tb.SettingsError, match="'x' is weighted, or read by a family that is no probability"):
        nothing.sample(3, seed=1)
    assert (nothing.parts(rows)["x"] == 0).all()


def test_weighted_rows_are_chosen_for_too() -> None:
    rows = independent(150)
    even = tb.fit(rows, target="y", weights=[1.0] * 150)
    plain = tb.fit(rows, target="y")
    assert even.settings.weights == pytest.approx(plain.settings.weights, rel=1e-6)
    assert form(even) == form(plain)


def test_the_votes_of_1984() -> None:
    frame = shared("house_votes_84")
    order = np.random.default_rng(0).permutation(len(frame))
    train, test = frame.iloc[order[:300]], frame.iloc[order[300:]]
    model = tb.fit(train, target="target")
    numbers = np.array([list(model.classes).index(v) for v in test["target"]])
    assert metrics.log_loss(numbers, model.predict_proba(test)) < 0.2


@pytest.mark.parametrize("effort", ["quick", "default"])
def test_a_class_whose_rows_all_weigh_nothing_is_not_there(effort):
    rng = np.random.default_rng(4)
    data = {"b": [rng.choice(["u", "v", "w"], 3).tolist() for _ in range(40)], "c": rng.choice(["m", "n"], 40).tolist()}
    data["y"] = ["p", "q"] * 19 + ["gone", "gone"]
    weights = [0.5, 2.0] * 19 + [0, 0]
    model = tb.fit(data, "y", weights=weights, effort=effort)
    assert model.classes == ("p", "q")
    kept = {n: v[:38] for n, v in data.items()}
    assert model.tally == tb.fit(kept, "y", weights=weights[:38], effort=effort).tally
