"""What a person sees: reprs, the notebook view, the graph. Snapshots lie in tests/snapshots."""

from __future__ import annotations

import html
import io
import os
import pathlib
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest
import rich.console

import tallybayes as tb
from tallybayes.base.show import Page

SNAPSHOTS = pathlib.Path(__file__).parents[1] / "snapshots"
RNG = np.random.default_rng(50)


@pytest.fixture(scope="module")
def model() -> tb.Model:
    n = 120
    y = np.array(["cat", "dog"] * (n // 2))
    data = {
        "weight": np.where(y == "cat", 4.0, 6.0) + np.arange(n) % 17 / 4,
        "legs": ["four"] * (n - 1) + ["three"],
        "noises": [["meow", "purr"] if v == "cat" else ["bark"] for v in y],
        "y": y,
    }
    schema = tb.infer(data, "y")
    return tb.count(data, schema).model(tb.Settings(families={"weight": "gaussian"}, weights={"legs": 0.5}))


def check(name: str, text: str) -> None:
    """Compare with the snapshot; TALLYBAYES_SNAPSHOTS=write renews it, for a person to look at."""
    path = SNAPSHOTS / name
    if os.environ.get("TALLYBAYES_SNAPSHOTS") == "write":
        path.write_text(text, encoding="utf-8")
    assert text == path.read_text(encoding="utf-8")


def test_repr_of_a_model(model: tb.Model) -> None:
    check("model.txt", repr(model))


def test_notebook_view(model: tb.Model) -> None:
    check("model.html", model._repr_html_())


def test_graph(model: tb.Model) -> None:
    check("graph.dot", model.graph().to_dot())
    check("graph.svg", model.graph().to_svg())
    assert model.graph().edges() == [("y", "weight"), ("y", "legs"), ("y", "noises")]


def test_explanation(model: tb.Model) -> None:
    row = {"weight": 5.0, "legs": None, "noises": ["meow", "woof"]}
    check("explanation.txt", str(model.explain(row)))
    check("explanation.html", model.explain(row)._repr_html_())


NASTY = ["<script>alert(1)</script>", "a&b", "\x1b[31mred\x1b[0m", "'; DROP TABLE x; --", '"quoted"', "x" * 500]


def test_hostile_names_and_values_are_only_text() -> None:
    data = {name: [f"{name} {i % 2}" for i in range(30)] for name in NASTY}
    data["y"] = [NASTY[i % 3] for i in range(30)]
    model = tb.fit(data, "y")
    explained = model.explain(data, 0)
    for page in (model._repr_html_(), model.graph().to_svg(), explained._repr_html_()):
        assert "<script" not in page
        assert "\x1b" not in page
    ElementTree.fromstring(model.graph().to_svg())
    assert "\x1b" not in str(explained)
    assert "\x1b" not in repr(model)
    assert "\x1b" not in repr(model.schema)
    assert "\x1b" not in repr(model.tally)


def test_every_page_is_drawn_as_text_as_html_and_by_rich() -> None:
    rng = np.random.default_rng(3)
    data = {name: [f"{name[:40]} {v}" for v in rng.integers(0, 3, 60)] for name in NASTY[:3]}
    data["size"], data["y"] = rng.normal(size=60).tolist(), [NASTY[i % 2] for i in range(60)]
    schema = tb.infer(data, "y")
    tally = tb.count(data, schema)
    model = tally.model()
    explained = model.explain(data, 0)
    things = [model.table(NASTY[0]), explained, explained.odds(), model.what_if(data, number=0), tb.shift(tally, tally)]
    things += [tb.evaluate(model, data), tb.tune(data, schema), tb.JointDistribution.of(data, [NASTY[0], "y"])]
    things.append(tb.compare(data, schema, folds=2, rivals=["majority class"]))
    for thing in things:
        text, page, out = str(thing), thing._repr_html_(), io.StringIO()
        rich.console.Console(file=out, width=300, color_system=None).print(thing)
        assert text == repr(thing) and "\x1b" not in text + page + out.getvalue()
        ElementTree.fromstring(f"<div>{page}</div>")
        for word in text.split():
            assert html.escape(word) in page and word in out.getvalue(), (type(thing), word)


def test_a_remark_of_a_page_stands_across_its_table() -> None:
    page = Page("", [["a", "b"], ["1", "22"], ["… 1,000 more rows"], ["sum", "22"]], sums=1)
    assert str(page) == "a     b\n1    22\n… 1,000 more rows\nsum  22"
    assert '<tr><td colspan="2" style="text-align:left"><bdi>… 1,000 more rows</bdi></td></tr>' in page.html()
    assert str(Page("alone")) == "alone" and Page("a < b").html() == "<p>a &lt; b</p>"


def test_explanation_in_other_logs(model: tb.Model) -> None:
    row = {"weight": 5.0, "legs": "four", "noises": ["meow"]}
    natural = model.explain(row)
    for log, unit in (("2", np.log(2)), ("10", np.log(10)), ("decibans", np.log(10) / 10)):
        np.testing.assert_allclose(model.explain(row, log=log).total * unit, natural.total, rtol=1e-12)
    with pytest.raises(tb.SettingsError, match="log='e'"):
        model.explain(row, log="e")


def test_odds_of_each_contribution(model: tb.Model) -> None:
    row = {"weight": 5.0, "legs": "four", "noises": ["meow"]}
    explained = model.explain(row)
    terms = explained.for_class("cat")
    assert [t[0] for t in terms] == ["prior", "weight", "legs", "noises"]
    odds = explained.total[0] - explained.total[1]
    assert sum(t[2] for t in terms) == pytest.approx(odds, rel=1e-12)
    assert explained.for_class("cat", against="dog") == terms
    with pytest.raises(tb.SettingsError, match="no class 'cow'"):
        explained.for_class("cow")
    assert explained.to_dict()["probabilities"] == explained.probabilities.tolist()


def test_a_long_explanation_is_cut_and_still_adds_up() -> None:
    words = [f"w{i}" for i in range(300)]
    data = {"w": [words[i : i + 60] for i in range(0, 240, 4)], "y": [f"class {i % 9}" for i in range(60)]}
    model = tb.count(data, tb.Schema([tb.Column("w", "bag")], target="y")).model()
    text = str(model.explain({"w": words[:200]}))
    *lines, remark = text.splitlines()
    assert len(lines) == 43 and remark.startswith("rounded")
    assert "3 less likely classes are not shown" in lines[0]
    assert "more, each weaker" in lines[-2]
    best = model.predict_proba({"w": words[:200]})[0].max()
    assert f"{best:.4f}" in lines[-1]
    totals = sorted(model.log_joint({"w": words[:200]})[0])[-6:]
    assert sorted(float(v) for v in lines[-2].split()[-6:]) == pytest.approx(totals, abs=1e-4)


def test_row_number_picks_the_row(model: tb.Model) -> None:
    rows = [{"weight": 4.0}, {"weight": 14.0}]
    with pytest.warns(tb.TallybayesWarning, match="taken as missing"):
        assert model.explain(rows, 1).probabilities[1] > 0.99
    with pytest.raises(tb.DataError, match="no row 2 among 2"):
        model.explain(rows, 2)


def test_tables_and_parameters(model: tb.Model) -> None:
    table = model.table("legs")
    assert table.rows == ["four", "three"]
    np.testing.assert_allclose(table.values, [[61 / 62, 60 / 62], [1 / 62, 2 / 62]])
    with pytest.raises(tb.SettingsError, match="did you mean 'legs'"):
        model.table("leg")
    assert model.parameters() == (2 + 4 + 4 + 6, 1 + 4 + 2 + 4)
    assert model.prior() == {"cat": 0.5, "dog": 0.5}


def test_labels_beyond_what_numpy_counts_come_back_as_they_went_in():
    for labels in ([3, 2**64 - 1], [-1, 2**63], [2**70, 1], [2**64 - 1, 2**64 - 2]):
        model = tb.fit({"x": ["u", "v"] * 4, "y": labels * 4}, "y", calibrate=False)
        assert [*map(repr, model.predict({"x": ["u", "v"]}).tolist())] == [*map(repr, labels)]
        assert [*map(repr, model.predict({"x": "v"}).tolist())] == [repr(labels[1])]


def test_samples_of_classes_that_arrow_cannot_hold_have_their_texts():
    model = tb.fit({"x": ["u", "v"] * 4, "y": [3, 2**70] * 4}, "y", calibrate=False)
    assert set(model.sample(50, 1)["y"].to_pylist()) == {"3", "1.1805916207174113e+21"}
    numbers = tb.fit({"x": ["u", "v"] * 4, "y": [3, 4] * 4}, "y", calibrate=False)
    assert set(numbers.sample(50, 1)["y"].to_pylist()) == {3, 4}


def test_the_table_of_a_blend_is_true_of_the_whole_blend() -> None:
    """Not of the family with the largest share: what it says at a value is what it adds to the score there."""
    from tallybayes.model.odds import said

    rng = np.random.default_rng(3)
    y = np.arange(600) % 3
    data = {"x": rng.gamma(2.0 + y, 2.0), "y": y}
    schema = tb.Schema([tb.Column("x", "number", cells=tb.Cells.fitted(data["x"]))], target="y")
    model = tb.count(data, schema).model(tb.Settings(families={"x": "blend"}, weights={"x": 0.6}, prior="uniform"))
    table = model.table("x")
    assert table.title == "log evidence at the value" and len(table.rows) >= 5 and not table.unit
    asked = {"x": [float(v) for v in table.rows]}
    parts = model.parts(asked)["x"]
    np.testing.assert_allclose(table.values, parts - parts.max(axis=1, keepdims=True), atol=1e-12)
    shown = said(model, "x")
    joint = model.log_joint({"x": [float(v) for v in shown.rows]})
    gap = joint - joint.max(axis=1, keepdims=True)
    assert np.abs(shown.values - gap).max() < 0.3  # rows are named to six digits, and bins part some of them
    assert np.median(np.abs(shown.values - gap)) < 1e-9
    assert "bins" not in repr(model).split("25")[-1]
    assert [o.value for o in model.odds("x", 0)]  # by stretches that were counted


def test_one_row_is_one_row_and_few_missing_values_are_not_none(tmp_path: pathlib.Path) -> None:
    from command_line import run

    one = tb.fit({"c": ["u"], "y": ["a"]}, "y")
    assert repr(one).startswith("Model: 1 row ·") and "from 1 row." in one.export(format="card").decode()
    path = tmp_path / "one.tb.parquet"
    one.save(path)
    assert "from 0 columns, 1 row " in " ".join(run("show", path).out.split())
    gone = {"x": [None, *map(float, range(999))], "c": [None, *(["u", "v", "w"] * 333)], "y": ["a", "b"] * 500}
    reasons = {c.name: c.reason for c in tb.infer(gone, "y").columns}
    assert "missing in 1 of 1,000 rows" in reasons["c"] and "0%" not in reasons["c"] + reasons["x"]
    half = tb.infer({"c": [None, "u", "v", "u"] * 20, "y": ["a", "b", "b", "a", "a"] * 16}, "y")
    assert half.columns[0].reason.endswith("missing in 25% of rows")


def test_a_category_whose_values_only_unlabelled_rows_have_can_be_sampled() -> None:
    data = {"a": [None, None, None, "u"], "b": ["p", "q", "p", "q"], "y": ["x", "z", "x", None]}
    schema = tb.Schema([tb.Column("a", "category"), tb.Column("b", "category")], target="y")
    drawn = tb.count(data, schema).model().sample(20, 0)
    assert drawn.num_rows == 20 and set(drawn["b"].to_pylist()) <= {"p", "q"} and drawn["a"].null_count == 20
