"""Corrections: what is added to what was counted, in settings, beliefs, models and files."""

from __future__ import annotations

import json
import pathlib
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from corrected import NEW, corrected, parts_by_hand

import tallybayes as tb
from tallybayes import families as F
from tallybayes.data import encode
from tallybayes.data.pairs import pair_slot
from tallybayes.data.sources import open_source
from tallybayes.families.calibration import UNIT
from tallybayes.families.forms import relative
from tallybayes.families.plain import of_form
from tallybayes.families.settings_json import settings_from_json, settings_to_json
from tallybayes.selection.leave_one_out import leave_one_out

WORDS = ["sun", "rain", "wind", "frost", "late", "early", "train"]


def rows_of(n: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    out: dict[str, list[Any]] = {
        "sky": [["clear", "grey", "wet"][v] for v in (y + rng.integers(0, 2, n)) % 3],
        "wind": rng.choice(["no", "yes"], n).tolist(),
        "heat": rng.normal(2.0 * y, 1.5).tolist(),
        "bell": rng.normal(y, 1.0).tolist(),
        "curve": rng.normal(y, 2.0).tolist(),
        "calls": rng.poisson(1 + y).astype(float).tolist(),
        "note": [" ".join(rng.choice(WORDS[v : v + 5], 4)) for v in y],
        "bag": [rng.choice(WORDS[: 3 + v], 3).tolist() for v in y],
        "y": [["a", "b", "c"][v] for v in y],
    }
    for name in out:
        if name != "y":
            out[name] = [None if rng.random() < 0.08 else v for v in out[name]]
    return out


ROWS = rows_of(400)
ODD: dict[str, Any] = {
    "sky": [None, "mauve", NEW, "clear"],
    "wind": ["maybe", None, NEW, "no"],
    "heat": [1e300, None, -1e300, 0.0],
    "bell": [None, 3.0, 0.0, -40.0],
    "curve": [3.0, -1e9, None, 1e9],
    "calls": [0.0, 3.0, 40.0, None],
    "note": ["", None, f"{NEW} late late late", "never heard of"],
    "bag": [[], None, [NEW, "sun", "sun"], ["zzz"]],
}
SCHEMA = tb.infer({k: v for k, v in ROWS.items() if k not in ("note", "bag")}, target="y")
SCHEMA = SCHEMA.with_column("calls", kind="number").with_column("note", kind="text").with_column("bag", kind="bag")
SCHEMA = SCHEMA.with_column("sky & wind", kind="pair", of=(tb.Side("sky"), tb.Side("wind")))
SCHEMA = SCHEMA.with_column(
    "wind & heat", kind="pair", of=(tb.Side("wind"), tb.Side("heat", "number", cuts=(0.0, 2.0)))
)
TALLY = tb.count(ROWS, SCHEMA)
SETTINGS = [
    tb.Settings(families={"heat": F.Blend(), "bell": "gaussian", "curve": "kernel", "calls": "poisson"}),
    tb.Settings(
        families={"heat": F.Blend(shares=(0.5, 0.0, 0.3, 0.0, 0.1)), "bell": "student", "curve": "bins",
                  "calls": "levels", "note": "complement", "bag": F.Multinomial(presence=True)},
        lengths={"note": -0.5}, offsets={"a": 0.2}, lead=tb.MarginScaling(1.2, -0.3),
    ),
    tb.Settings(
        families={"note": F.Complement(presence=True), "bag": F.Multinomial(idf=True), "curve": "gaussian-shared"},
        unseen="reserve", weights={"bell": 0.5, "note": 2.0}, lengths={"bag": -0.25},
    ),
    tb.Settings(smoothing=tb.Laplace(0.5), families={"heat": "bins", "bell": F.Bins("frequency", 5)}, prior="uniform"),
]  # fmt: skip


@pytest.fixture(params=[(s, seed) for s in range(len(SETTINGS)) for seed in range(4)], ids=str)
def model(request: pytest.FixtureRequest) -> tb.Model:
    settings, seed = request.param
    return corrected(TALLY.model(SETTINGS[settings]), seed)


def test_parts_are_weight_times_counted_and_what_is_added(model: tb.Model) -> None:
    for rows in (ROWS, ODD):
        parts = model.parts(rows)
        for name in model.settings.corrections:
            by_hand = parts_by_hand(model, name, rows)
            np.testing.assert_allclose(relative(parts[name]), relative(by_hand), rtol=1e-12, atol=1e-9, err_msg=name)


def test_the_form_says_what_the_belief_says(model: tb.Model) -> None:
    for rows in (ROWS, ODD):
        blocks: Any = encode.bags(encode.blocks(SCHEMA, next(open_source(rows).batches())))
        for name, belief in model.beliefs.items():
            ours, theirs = of_form(belief.form()).parts(blocks[name]), belief.parts(blocks[name])
            np.testing.assert_allclose(relative(ours), relative(theirs), rtol=1e-12, atol=1e-9, err_msg=name)
            sealed = belief.sealed().parts(blocks[name])
            np.testing.assert_allclose(relative(sealed), relative(theirs), rtol=1e-12, atol=1e-9, err_msg=name)


def test_one_row_and_few_rows_and_many_are_scored_alike(model: tb.Model) -> None:
    rows = {k: [*v, *ODD[k]] for k, v in ROWS.items() if k != "y"}
    many = model.predict_proba(rows)
    few = model.predict_proba({k: v[-30:] for k, v in rows.items()})
    np.testing.assert_allclose(few, many[-30:], rtol=0, atol=1e-12)
    for i in range(370, len(many)):
        one = model.predict_proba({k: v[i] for k, v in rows.items()})
        np.testing.assert_allclose(one[0], many[i], rtol=0, atol=1e-12)


def test_lines_add_up_and_tell_what_was_corrected(model: tb.Model) -> None:
    joint = model.log_joint(ROWS)
    for i in range(0, 60, 7):
        explained = model.explain(ROWS, i)
        np.testing.assert_allclose(explained.total, joint[i], rtol=0, atol=1e-12 * max(1, np.abs(joint[i]).max()))
        for line in explained.contributions:
            if line.column in model.settings.corrections and not line.note:
                assert line.corrected is not None
                np.testing.assert_allclose(line.counted + line.corrected, line.parts, rtol=0, atol=1e-12)
            else:
                assert line.corrected is None and line.counted is line.parts
        odds = explained.odds()
        for line, said in zip(odds.lines, odds.to_dict()["lines"], strict=True):
            assert line.counted + line.corrected == pytest.approx(line.log_odds)
            assert said.get("corrected", 0.0) == line.corrected
            assert not line.known or line.interval[0] <= line.log_odds <= line.interval[1]


def test_files_hold_the_same_model(model: tb.Model, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.tb.parquet"
    model.save(path)
    loaded = tb.load(path)
    assert loaded.settings == model.settings
    assert np.array_equal(loaded.predict_proba(ROWS), model.predict_proba(ROWS))
    loaded.save(tmp_path / "again.tb.parquet")
    first, again = (pq.read_metadata(tmp_path / n).metadata for n in ("m.tb.parquet", "again.tb.parquet"))
    assert first[b"tallybayes.digest"] == again[b"tallybayes.digest"]
    as_json = settings_to_json(model.settings)
    assert settings_from_json(json.loads(json.dumps(as_json))) == model.settings
    model.export(tmp_path / "m.sealed.parquet")
    sealed = tb.load_sealed(tmp_path / "m.sealed.parquet")
    for rows in (ROWS, ODD):
        np.testing.assert_allclose(sealed.predict_proba(rows), model.predict_proba(rows), rtol=0, atol=1e-12)
    assert not sealed._model.settings.corrections


def test_learning_and_forgetting_keep_corrections(model: tb.Model) -> None:
    more = rows_of(50, 9)
    later = model.update(more)
    assert later.settings.corrections == model.settings.corrections
    back = later.forget(more)
    assert np.array_equal(back.predict_proba(ODD), model.predict_proba(ODD))
    fourth = model.update({k: [*v[:3]] for k, v in more.items()} | {"y": ["new"] * 3}, new_classes="allow")
    assert fourth.classes[-1] == "new"
    for name in fourth.settings.corrections:
        ours, by_hand = fourth.parts(ROWS)[name], parts_by_hand(fourth, name, ROWS)
        np.testing.assert_allclose(relative(ours), relative(by_hand), rtol=1e-12, atol=1e-9, err_msg=name)


def test_the_rest_of_a_belief(model: tb.Model) -> None:
    plain = TALLY.model(replace(model.settings, corrections={}))
    assert model.generative.sample(20, seed=1).num_rows == 20
    raw = sum(int(np.count_nonzero(c.on(("a", "b", "c")))) for c in model.settings.corrections.values())
    assert model.parameters() == (plain.parameters()[0] + raw, plain.parameters()[1] + raw)
    for name in model.beliefs:
        assert np.array_equal(model.table(name).values, plain.table(name).values)
    assert "corrections" in repr(model)
    with pytest.raises(tb.SettingsError):
        model.log_density(ROWS)
    assert str(model.what_if(ROWS))


def test_the_counted_model_has_nothing_fitted(model: tb.Model) -> None:
    counted = model.counted
    gone = {n for n, c in model.settings.corrections.items() if c.weight == 0 and SCHEMA[n].of}
    assert set(model.beliefs) - set(counted.beliefs) == gone
    assert counted.settings == counted.settings.without(fitted=True)
    assert counted.families == {n: f for n, f in model.families.items() if n not in gone}
    own = dict(SCHEMA.to_dict().items())
    assert counted.schema.to_dict() == {**own, "columns": [c for c in own["columns"] if c["name"] not in gone]}
    plain = tb.count(ROWS, counted.schema).model(replace(counted.settings, families=counted.families))
    assert np.array_equal(counted.predict_proba(ROWS), plain.predict_proba(ROWS))


def test_held_out_scores_have_the_corrections(model: tb.Model) -> None:
    found = tb.cross_validate(ROWS, SCHEMA, settings=model.settings, folds=4, seed=1)
    without = tb.cross_validate(ROWS, SCHEMA, settings=replace(model.settings, corrections={}), folds=4, seed=1)
    assert found["log_loss"] != without["log_loss"]


def test_left_out_scores_have_the_corrections(model: tb.Model) -> None:
    few = {k: v[:40] for k, v in ROWS.items()}
    tally = tb.count(few, SCHEMA)
    held = leave_one_out(tally, few, model.settings)
    for i in range(0, 40, 13):
        row = [{k: v[i] for k, v in few.items()}]
        rest = tally.forget(row).model(model.settings)
        ours, theirs = held.joint[[i]], rest.log_joint(row)
        np.testing.assert_allclose(relative(ours), relative(theirs), rtol=1e-9, atol=1e-9)


# ---- the record


def simple(**changes: Any) -> tb.Correction:
    given: dict[str, Any] = {"weight": 0.5, "classes": ("a", "b"), "added": [[0.25, 0.0]], "cells": ("x",)}
    return tb.Correction(**{**given, **changes})


def test_equal_content_is_equal() -> None:
    assert simple() == simple(added=np.array([[0.25 + UNIT / 4, -0.0]])) and hash(simple()) == hash(simple())
    assert simple().added.flags.writeable is False and simple().units == [262144, 0]
    others = [simple(weight=0.6), simple(classes=("a", "c")), simple(added=[[0.25, UNIT]]), simple(cells=("z",))]
    assert len({simple(), *others}) == 5 and all(simple() != o for o in (*others, "x"))
    assert tb.Settings(corrections={"x": simple()}) == tb.Settings(corrections={"x": simple()})
    assert tb.Settings(corrections={"x": simple()}) != tb.Settings(corrections={"x": simple(weight=1.0)})


@pytest.mark.parametrize(("changes", "word"), [
    ({"weight": -0.1}, "weight -0.1"),
    ({"weight": float("nan")}, "weight nan"),
    ({"weight": "much"}, "no number"),
    ({"classes": ("a", "a")}, "twice"),
    ({"classes": ()}, "shape"),
    ({"classes": "ab"}, "classes of a correction are 'ab'"),
    ({"classes": (1, 2)}, "classes of a correction"),
    ({"cells": ("x", "x"), "added": np.zeros((2, 2))}, "twice"),
    ({"cells": ("x", "z")}, "shape"),
    ({"added": [[0.0, np.inf]]}, "no number"),
    ({"added": [[0.0, 1e9]]}, "more than any evidence"),
    ({"added": "none"}, "no table"),
    ({"added": [0.0, 1.0]}, "shape"),
    ({"cells": (), "cuts": (2.0, 1.0), "added": np.zeros((3, 2))}, "cuts"),
    ({"cells": (), "cuts": (1.0, np.inf), "added": np.zeros((3, 2))}, "cuts"),
    ({"cells": ("x", "z"), "cuts": (1.0,), "added": np.zeros((2, 2))}, "cuts"),
])  # fmt: skip
def test_what_is_no_correction_is_refused(changes: dict[str, Any], word: str) -> None:
    with pytest.raises(tb.SettingsError, match=word):
        simple(**changes)


def test_columns_that_cannot_be_corrected_so_are_refused() -> None:
    bad = {
        "heat": (simple(), "cells"),
        "sky": (simple(cells=(), cuts=(1.0,), added=np.zeros((2, 2))), "cuts"),
        "sky & wind": (simple(), "no cell 'x'"),
        "nowhere": (simple(), "nowhere"),
    }
    for name, (own, word) in bad.items():
        with pytest.raises(tb.TallybayesError, match=word):
            TALLY.model(tb.Settings(corrections={name: own}))
    for family in ("bernoulli", F.Multinomial(predictive=True)):
        with pytest.raises(tb.SettingsError, match="cannot be corrected"):
            TALLY.model(tb.Settings(families={"bag": family}, corrections={"bag": simple()}))
    with pytest.raises(tb.SettingsError, match="is a float"):
        tb.Settings(corrections={"sky": 0.5})  # type: ignore[dict-item]
    with pytest.raises(tb.SettingsError, match="corrections"):
        tb.tune(ROWS, SCHEMA, settings=tb.Settings(corrections={"sky": simple()}))


@pytest.mark.parametrize("change", [
    {"units": [0.5, 1]}, {"units": [True, False]}, {"units": "00"}, {"units": [[1, 2]]}, {"units": [2**70, 1]},
    {"units": [1]}, {"units": [1, 2, 3, 4]}, {"units": None}, {"type": "Settings"}, {"options": {"weight": 1.0}},
    {"options": {"weight": 1.0, "classes": {"tuple": ["a", "b"]}, "cells": 3}}, {"units": [2**62, 0]}, {"more": 1},
])  # fmt: skip
def test_hostile_files_are_refused(change: dict[str, Any]) -> None:
    said = settings_to_json(tb.Settings(corrections={"x": simple()}))
    own = said["corrections"]["map"][0][1]
    assert settings_from_json(said).corrections == {"x": simple()}
    own.update(change)
    with pytest.raises((tb.ModelFileError, tb.SettingsError)):
        settings_from_json(said)


def test_a_file_is_compact() -> None:
    rng = np.random.default_rng(0)
    many = tb.Correction(1.0, ("a", "b", "c"), rng.normal(0, 0.3, (20_000, 3)), tuple(f"w{i}" for i in range(20_000)))
    text = json.dumps(settings_to_json(tb.Settings(corrections={"x": many})), separators=(",", ":"))
    assert len(text) < 20_000 * (9 + 3 * 8)


# ---- cases of their own


def test_a_weight_of_0_does_not_ask_the_counts() -> None:
    rows = {"x": ["a", "b", "a"], "n": [1.0, 1.0, 2.0], "y": ["u", "u", "v"]}
    schema = tb.Schema([tb.Column("x", "category"), tb.Column("n", "number", cells=tb.Cells.fitted(np.ones(9)))], "y")
    own = {
        "x": tb.Correction(0.0, ("u", "v"), [[1.0, 0.0]], ("b",)),
        "n": tb.Correction(0.0, ("u", "v"), [[0.0, 0.5]]),
    }
    families = {"n": "bins"}
    model = tb.count(rows, schema).model(tb.Settings(tb.MaximumLikelihood(), "uniform", families, corrections=own))
    p = model.predict_proba({"x": ["b", "a"], "n": [1.0, None]})
    np.testing.assert_allclose(p[:, 0], [1 / (1 + np.exp(-0.5)), 0.5], rtol=0, atol=1e-12)


def test_no_bound_of_a_blend_cuts_what_is_added() -> None:
    added = [[0.0, 0.0, 40.0], [-100.0, 3.0, 0.0]]
    own = tb.Correction(0.0, ("a", "b", "c"), added, cuts=(2.0,))
    model = TALLY.model(tb.Settings(families={"heat": F.Blend()}, corrections={"heat": own}))
    parts = model.parts({**ODD, "heat": [1.0, 2.0, 3.0, None]})["heat"]
    np.testing.assert_allclose(parts, [*relative(np.array([added[0], added[1], added[1]])), [0, 0, 0]])


def test_a_pair_of_huge_tables_is_refused() -> None:
    cells = tuple(pair_slot(f"u{i}", f"v{i}") for i in range(3000))
    own = tb.Correction(1.0, ("a",), np.ones((3000, 1)), cells)
    with pytest.raises(tb.CannotEstimate, match="a pair of 3,00"):
        TALLY.model(tb.Settings(corrections={"sky & wind": own}))


def test_a_screen_tells_counted_from_corrected() -> None:
    rows = {"sky": ["sun", "rain", "sun", "sun"], "y": ["no", "no", "yes", "yes"]}
    tally = tb.count(rows, tb.Schema([tb.Column("sky", "category")], target="y"))
    own = tb.Correction(0.5, ("no", "yes"), [[0.25, 0.0]], ("sun",))
    explained = tally.model(tb.Settings(corrections={"sky": own})).explain({"sky": "sun"})
    assert "sky: sun  (corrected +0.25, +0.00)" in str(explained)
    assert "sky: sun  counted -0.20, corrected +0.25 →" in str(explained.odds("no", "yes"))
    assert explained.to_dict()["contributions"][1]["corrected"] == [0.25, 0.0]
    assert "corrected" not in str(tally.model().explain({"sky": "sun"}))
