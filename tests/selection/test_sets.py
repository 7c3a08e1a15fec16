"""Prediction sets: exact beside brute force, coverage beside what is asked, and what update, forget and files do."""

from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from shared_data import shared
from strategies import ALL

import tallybayes as tb
from tallybayes.model.sets import MOST, PredictionSets, strangeness
from tallybayes.selection.leave_one_out import has_closed_forms
from tallybayes.selection.measure import fit_again

CASES = 200 if ALL else 6
RUNS = 1000 if ALL else 12


def small_table(rng, rows):
    """A few rows of values that repeat, numbers, and gaps."""
    return {
        "sky": rng.choice(["sunny", "rainy", None], rows, p=[0.5, 0.4, 0.1]).tolist(),
        "wind": rng.normal(size=rows).round(1).tolist(),
        "words": [" ".join(rng.choice(["a", "b", "c"], 3)) for _ in range(rows)],
        "play": rng.choice(["yes", "no", "maybe"], rows, p=[0.5, 0.3, 0.2]).tolist(),
    }


SCHEMA = tb.Schema(
    [tb.Column("sky", "category"), tb.Column("wind", "number"), tb.Column("words", "text")], target="play"
)
SETTINGS = tb.Settings(families={"wind": "gaussian"})


def brute_force(rows, new, settings):
    """p of every class, plain and by class, by counting again: no subtraction, no closed form, no stored score."""
    frame = pd.DataFrame(rows)
    classes = tb.count(frame, SCHEMA).model(settings).classes

    def strange(others, row, label):
        model = tb.count(others, SCHEMA).model(settings)
        if label not in model.classes:
            return np.inf
        at = model.classes.index(label)
        joint = model.log_joint(row.to_frame().T)[0]
        rest = np.delete(joint, at)
        return (np.logaddexp.reduce(rest) if len(rest) else -np.inf) - joint[at]

    out = np.zeros((2, len(classes)))
    for j, label in enumerate(classes):
        heap = pd.concat([frame, pd.DataFrame([{**new, "play": label}])], ignore_index=True)
        scores = np.array([strange(heap.drop(index=i), heap.loc[i], heap["play"][i]) for i in range(len(heap))])
        as_strange = scores >= scores[-1] - 1e-9 * max(1.0, abs(scores[-1]))
        of_class = (heap["play"] == label).to_numpy()
        out[:, j] = as_strange.mean(), as_strange[of_class].mean()
    return out


@pytest.mark.parametrize("case", range(CASES))
def test_exact_sets_are_full_conformal_prediction_by_counting_again(case):
    rng = np.random.default_rng(case)
    table = small_table(rng, int(rng.integers(6, 11)))
    new = {k: v[0] for k, v in small_table(rng, 1).items() if k != "play"}
    if len(set(table["play"])) < 2:
        table["play"][0] = "yes" if table["play"][0] == "no" else "no"
    model = tb.count(table, SCHEMA).model(SETTINGS)
    plain, apart = brute_force(table, new, SETTINGS)
    found = model.predict_set([new], 0.8, calibration=table, exact=True)
    by_class = model.predict_set([new], 0.8, by_class=True, calibration=table, exact=True)
    np.testing.assert_allclose(found.p_values[0], plain, rtol=0, atol=1e-12)
    np.testing.assert_allclose(by_class.p_values[0], apart, rtol=0, atol=1e-12)
    likeliest = model.predict([new])[0]
    wanted = {c for c, p in zip(model.classes, plain, strict=True) if p > 0.2 + 1e-12} | {likeliest}
    assert set(found[0]) == wanted
    assert found[0][0] == likeliest


def drawn(rng, rows):
    label = rng.integers(0, 3, rows)
    return {"x": (rng.normal(size=rows) + label).tolist(), "z": rng.integers(0, 3, rows).astype(str).tolist(),
            "y": np.array(["a", "b", "c"])[label].tolist()}  # fmt: skip


DRAWN = tb.Schema([tb.Column("x", "number"), tb.Column("z", "category")], target="y")


def test_smoothed_sets_cover_as_often_as_asked():
    """Over fresh draws of 60 rows each, where one row more or less matters."""
    rng = np.random.default_rng(5)
    hits: dict[bool, list[bool]] = {False: [], True: []}
    for run in range(RUNS):
        rows, new = drawn(rng, 60), drawn(rng, 200)
        model = tb.count(rows, DRAWN).model({"families": {"x": "gaussian"}}).with_sets(rows)
        for by_class, held in hits.items():
            found = model.predict_set(new, 0.9, by_class=by_class, smoothed=True, empty=True, seed=run)
            held += [y in s for y, s in zip(new["y"], found, strict=True)]
            plain = model.predict_set(new, 0.9, by_class=by_class)
            assert plain.sizes.min() >= 1
            assert (plain.members >= found.members).all()
    # 0.04 is three deviations of the mean of twelve runs
    assert all(abs(np.mean(held) - 0.9) < (0.015 if ALL else 0.04) for held in hits.values())


def test_one_pass_is_close_to_the_exact_sets():
    rng = np.random.default_rng(2)
    rows, new = drawn(rng, 60), drawn(rng, 12)
    model = tb.textbook(rows, "y").with_sets(rows)
    exact = model.predict_set(new, calibration=rows, exact=True)
    assert np.abs(exact.p_values - model.predict_set(new).p_values).max() <= 5 / 61


def test_leaving_out_is_one_pass_and_holds_what_leave_one_out_says():
    rows = shared("house_votes_84")
    model = tb.textbook(rows, "target")
    assert has_closed_forms(model.tally, model.settings)
    sets = tb.prediction_sets(model, rows)
    held = tb.leave_one_out(model.tally, rows, settings=model.settings)
    own = strangeness(held.joint, held.log_prior)[np.arange(len(held.labels)), held.labels]
    for i, (values, counts) in enumerate(sets.scores):
        assert np.repeat(values, counts).tolist() == np.sort(own[held.labels == i]).tolist()
    assert sets.rows == 435
    assert sets.sizes == tuple(sorted(sets.sizes))


def test_a_family_without_a_closed_form_goes_by_folds():
    rng = np.random.default_rng(0)
    rows = drawn(rng, 24)
    model = tb.fit(rows, "y", settings=tb.Settings())
    assert "20 folds" in tb.prediction_sets(model, rows).how
    assert "itself" in tb.prediction_sets(model, {k: v[:] for k, v in rows.items()}, folds="leave-one-out").how
    assert "5 folds" in str(tb.prediction_sets(model, rows, folds=5))


def test_learnt_settings_are_learnt_anew_for_each_fold():
    rng = np.random.default_rng(3)
    rows, new = drawn(rng, 60), drawn(rng, 100)
    model = tb.fit(rows, "y", effort="quick")
    assert model.settings.calibrated is not None
    sets = tb.prediction_sets(model, rows, folds=2)
    assert sets.how == "each left out with one of 2 folds, fitted anew"
    other = tb.prediction_sets(model, rows, folds=2, relearn=False)
    assert [v.tolist() for v, _ in other.scores] != [v.tolist() for v, _ in sets.scores]
    found = model.with_sets(rows, folds=2).predict_set(new)
    assert np.mean([y in s for y, s in zip(new["y"], found, strict=True)]) >= 0.75
    with pytest.raises(tb.SettingsError, match="learnt from all rows"):
        tb.prediction_sets(model, rows, folds="leave-one-out")
    with pytest.raises(tb.SettingsError, match="learnt from the rows"):
        model.predict_set(new, calibration=rows, exact=True)


def _pairs(model):
    return [c.name for c in model.schema.counted if c.of is not None and len(c.of) == 2]


@pytest.mark.parametrize(
    "asked",
    [
        {"effort": "quick"},
        {"calibrate": "weights"},
        {"pairs": False},
        {"pairs": [("x", "z")]},
        {"calibrate": "isotonic"},
    ],
    ids=str,
)
def test_a_fold_is_fitted_as_the_model_was(asked, monkeypatch):
    rows = drawn(np.random.default_rng(1), 40)
    rows["y"] = ["a" if y == "a" else "b" for y in rows["y"]]
    model = tb.fit(rows, "y", **asked)
    made = []

    def noting(*data, **how):
        made.append(tb.fit(*data, **how))
        return made[-1]

    monkeypatch.setattr(fit_again, "fit", noting)
    tb.prediction_sets(model, rows, folds=2)
    wanted = model.settings.calibrated
    assert len(made) == 2
    for fitted in made:
        assert {*fitted.settings.calibrated.losses} == {*wanted.losses}
        assert (fitted.settings.isotonic is None) == (model.settings.isotonic is None)
        assert len(_pairs(fitted)) == len(_pairs(model)) or "pairs" not in asked


@pytest.mark.parametrize("measured", ["sets", "importance"])
@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ({"families": {"wind": "gaussian"}, "smoothing": {"sky": 3.0}}, ("wind", "sky")),
        ({"families": {"words": "multinomial"}, "smoothing": {"sky": tb.BackOff(9.0)}}, ("words", "sky")),
        ({"families": "gaussian", "smoothing": 0.25}, ("wind", "sky", "words")),
        ({}, ()),
    ],
    ids=str,
)
def test_a_fold_is_fitted_under_what_was_given_and_chooses_the_rest(given, kept, measured, monkeypatch):
    rows = small_table(np.random.default_rng(2), 60)
    asked = tb.Settings.of({**given, "prior": "uniform"})
    model = tb.fit(rows, schema=SCHEMA, settings=asked, calibrate=True)
    made = []

    def noting(*data, **how):
        made.append((how["settings"], tb.fit(*data, **how)))
        return made[-1][1]

    monkeypatch.setattr(fit_again, "fit", noting)
    if measured == "sets":
        tb.prediction_sets(model, rows, folds=2)
    else:
        model.importance(rows)
    assert len(made) >= 2
    for begun, fitted in made:
        assert begun == tb.Settings.of(asked, SCHEMA)  # what rows have chosen is not among it
        for name in kept:
            assert fitted.settings.smoothing_of(name) == asked.smoothing_of(name)
            assert fitted.settings.families.get(name) == begun.families.get(name)
        assert "words" in {*kept, *fitted.settings.families}  # else chosen again


def test_a_class_that_no_row_has_is_known_to_every_fold(monkeypatch):
    rows = small_table(np.random.default_rng(2), 60)
    schema = tb.Schema([tb.Column("sky", "category")], target="play")
    model = tb.fit(rows, schema=schema, settings={"classes": ("never",), "prior": "uniform"}, calibrate=True)
    made = []
    monkeypatch.setattr(fit_again, "fit", lambda *data, **how: made.append(tb.fit(*data, **how)) or made[-1])
    tb.prediction_sets(model, rows, folds=2)
    assert [m.settings.classes for m in made] == [("never",)] * 2


def test_what_was_given_stays_given_when_weights_are_fitted_anew():
    rows = small_table(np.random.default_rng(2), 60)
    model = tb.fit(rows, schema=SCHEMA, settings={"families": {"wind": "gaussian"}}, calibrate=True)
    assert model.settings.calibrated.given == ("wind",)
    assert model.recalibrate(rows).settings.calibrated.given == ("wind",)
    assert model.settings.about(["sky", "words"]).calibrated.given == ()


def test_rows_that_were_held_back_are_scored_by_the_model_itself():
    rng = np.random.default_rng(4)
    rows, more = drawn(rng, 300), drawn(rng, 200)
    model = tb.fit(rows, "y")
    sets = tb.prediction_sets(model, more)
    assert sets.how == "rows held back"
    strange = strangeness(model.log_joint(more), model.start)
    at = [model.classes.index(y) for y in more["y"]]
    own = np.sort(strange[np.arange(200), at])
    assert np.sort(np.concatenate([np.repeat(*s) for s in sets.scores])).tolist() == own.tolist()
    half = {k: v[:150] for k, v in rows.items()}
    with pytest.raises(tb.DataError, match="neither all of the 300 rows"):
        tb.prediction_sets(model, half)


def test_sets_live_in_the_file_and_go_with_the_counts(tmp_path):
    rng = np.random.default_rng(6)
    rows, new, more = drawn(rng, 120), drawn(rng, 20), drawn(rng, 30)
    bare = tb.textbook(rows, "y")
    model = bare.with_sets(rows)
    model.save(tmp_path / "m.tally")
    again = tb.load(tmp_path / "m.tally")
    found = model.predict_set(new)
    assert again.predict_set(new).p_values.tolist() == found.p_values.tolist()
    assert bare.predict_set(new, calibration=rows).p_values.tolist() == found.p_values.tolist()
    after = model.update(more)
    sets = PredictionSets.from_dict(after.notes["prediction sets"])
    assert (sets.rows, sets.added) == (150, 30)
    one = {k: v[0] for k, v in more.items()}
    assert PredictionSets.from_dict(model.update(one).notes["prediction sets"]).rows == 121
    assert after.predict_set(new).sizes.min() >= 1
    # a forgotten row leaves nothing behind: the model is that of the rest, to the byte
    rest = after.forget(more)
    assert "prediction sets" not in rest.notes
    with pytest.raises(tb.SettingsError, match="has no prediction sets"):
        rest.predict_set(new)
    assert rest.with_sets(rows).notes == model.notes
    assert "prediction sets" not in model.recalibrate(rows).notes
    assert "prediction sets" not in model.share(2).model.notes
    with pytest.raises(tb.SettingsError, match="other counts or settings"):
        after.__class__(**{**vars(rest), "notes": model.notes, "tally": after.tally}).predict_set(new)


def test_a_class_that_comes_with_an_update():
    rng = np.random.default_rng(7)
    rows = drawn(rng, 60)
    model = tb.textbook(rows, "y").with_sets(rows)
    after = model.update({"x": [9.0, 9.5], "z": ["0", "1"], "y": ["d", "d"]}, new_classes="allow")
    found = after.predict_set({"x": [9.2], "z": ["1"]}, by_class=True)
    assert "d" in found[0]
    assert Counter(PredictionSets.from_dict(after.notes["prediction sets"]).classes) == Counter("abcd")


def test_thinned_scores_make_no_p_smaller():
    rng = np.random.default_rng(8)
    rows = 3 * MOST
    strange, labels = rng.normal(size=(rows, 2)), rng.integers(0, 2, rows)
    model = tb.textbook({"x": ["u", "v", "u", "v"], "y": ["a", "b", "a", "a"]}, "y")
    sets = PredictionSets.of(model, strange, labels, "drawn")
    assert sets.rows == rows
    own = np.sort(strange[np.arange(rows), labels])
    asked = rng.normal(size=(500, 2))
    exact = (rows - np.searchsorted(own, asked) + 1) / (rows + 1)
    p = sets.p_values(asked)
    assert (p >= exact - 1e-12).all()
    assert (p - exact).max() < 2 / MOST


@pytest.mark.parametrize(
    ("how", "said"),
    [({"coverage": 1.0}, "coverage=1.0"), ({"coverage": "x"}, "coverage='x'"), ({"exact": True}, "without rows")],
)
def test_what_is_refused(how, said):
    rows = drawn(np.random.default_rng(0), 30)
    model = tb.textbook(rows, "y").with_sets(rows)
    with pytest.raises(tb.SettingsError, match=said):
        model.predict_set(rows, **how)


def test_a_broken_note_is_refused():
    rows = drawn(np.random.default_rng(0), 30)
    model = tb.textbook(rows, "y").with_sets(rows)
    note = {**model.notes["prediction sets"], "scores": {"a": [[2.0, 1.0], [1, 1]]}}
    with pytest.raises(tb.ModelFileError, match="prediction sets"):
        PredictionSets.from_dict(note)


def test_scores_of_a_file_that_stand_for_very_many_rows_take_no_room():
    """Four numbers of a file would have made arrays of terabytes at the next update."""
    rows = drawn(np.random.default_rng(0), 30)
    model = tb.textbook(rows, "y").with_sets(rows)
    note, label = model.notes["prediction sets"], str(model.classes[0])
    forged = {**note, "scores": {**note["scores"], label: [[0.0, 1.0], [1 << 50, 1 << 50]]}}
    more = replace(model, notes={"prediction sets": forged}).update({name: values[:1] for name, values in rows.items()})
    assert PredictionSets.from_dict(more.notes["prediction sets"]).rows > 1 << 51
    forged["scores"][label][1] = [(1 << 63) - 1, 1]
    with pytest.raises(tb.ModelFileError, match="prediction sets"):
        PredictionSets.from_dict(forged)


def test_rows_with_weights_get_no_promise():
    rows = {**drawn(np.random.default_rng(0), 30), "w": [2.0] * 30}
    model = tb.textbook(rows, "y", weights="w")
    with pytest.raises(tb.SettingsError, match="weights"):
        model.with_sets(rows)
