"""Exports answer as the model does: sealed, JSON scored by a few lines of plain Python, ONNX under onnxruntime."""

from __future__ import annotations

import json
import math
import pathlib
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from by_hand import inputs_of, plain_rows, proba_by_hand
from corrected import corrected
from test_model_file import HOSTILE, ROWS, SCHEMA, TALLY

import tallybayes as tb
from tallybayes.data.blocks import Numbers
from tallybayes.families.forms import relative
from tallybayes.families.plain import of_form
from tallybayes.store import sealed

F = tb.families
FAMILIES: list[dict[str, Any]] = [
    {},
    {"size": "kernel", "count": "kernel", "note": "bernoulli", "words": "levels", "point": "student"},
    {"size": "bins", "count": "levels", "note": "complement", "words": F.Complement(norm=True, presence=True)},
    {"size": F.Bins("width", 4), "count": "poisson", "note": "levels", "words": F.Multinomial(presence=True, idf=True)},
    {"size": "student", "count": F.Levels(top=2), "note": F.Multinomial(select=F.Selection(top=3))},
    {"size": F.Kernel("silverman"), "count": "gaussian", "point": "gaussian-shared", "words": "bernoulli"},
]
CHOICES = [
    tb.Settings(families=families, unseen=unseen, weights=weights)
    for families in FAMILIES
    for unseen, weights in (("no evidence", {}), ("reserve", {"size": 0.5, "note": 0.25, "colour": 0.0}))
]
# rows with everything missing, values never seen, numbers far away, points and their neighbours
ODD: dict[str, Any] = {
    "colour": [None, "mauve", "", "red", "black"],
    "size": [None, 1e300, -1e-300, 0.0, math.nextafter(3.0, 4)],
    "count": [None, 3.0, math.nextafter(3.0, 4), -5.0, 1e9],
    "note": [None, "nothing of this", "offer offer offer offer", "", "free"],
    "words": [None, ["zzz"], ["b", "b", "b", "b", "b"], [], ["a", "zzz"]],
    "point": [None, [1.0, None, 2.0], [1e200, 0.0, 0.0], [0.0, 0.0, 0.0], [None, None, None]],
    "day": [None, "2031-05-05", "1900-01-01", "2024-02-29", "2024-02-29T18:30"],
}


# pairs, a blend, and evidence that depends on the length of a text: what a calibrated fit has
PAIRED = SCHEMA.with_column(
    "colour × size", kind="pair", of=(tb.Side("colour"), tb.Side("size", "number", cuts=(0.0, 1.0)))
)
PAIRED = PAIRED.with_column(
    "month × count", kind="pair", of=(tb.Side("day", part="month"), tb.Side("count", "number", cuts=(2.5, 100.0)))
)
PAIRED = PAIRED.with_column(
    "colours × month",
    kind="pair",
    of=(
        tb.Side("colour", groups=[["red", "blue"], ["green", "mauve"]]),
        tb.Side("day", part="month", groups=[["January", "March"]]),
    ),
)
for side in (
    tb.PairColumn("colour", missing=("grey",)),
    tb.PairColumn("size", "number"),
    tb.PairColumn("day", part="month"),
):
    PAIRED = PAIRED.with_column(f"{side.source} (missing)", kind="gap", of=(side,))
FITTED = tb.Settings(
    families={"size": F.Blend(shares=(0.5, 0.25, 0.125, 0.125, 0.0)), "count": F.Blend((F.Poisson(), F.Levels()))},
    weights={"size": 0.75, "colour × size": 0.5, "note": 0.8, "words": 1.25},
    lengths={"note": -0.5, "words": -0.75},
    offsets={"ham": 0.5, "spam": -0.5},
    lead=tb.Lead(1.3, -0.4),
)


@pytest.fixture(params=[*range(len(CHOICES) + 1), *(f"corrected {i}" for i in range(2 * len(CHOICES) + 2))])
def model(request: pytest.FixtureRequest) -> tb.Model:
    if isinstance(request.param, str):
        seed, choice = divmod(int(request.param.split()[1]), len(CHOICES) + 1)
        settings = [*CHOICES, FITTED][choice]
        return corrected(tb.count(ROWS, PAIRED).model(settings), seed + choice)
    if request.param == len(CHOICES):
        return tb.count(ROWS, PAIRED).model(FITTED)
    return TALLY.model(CHOICES[request.param])


def test_a_sealed_scorer_answers_as_the_model(model: tb.Model, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "scorer.sealed.parquet"
    assert model.export(path) == path.read_bytes()
    scorer = tb.load_sealed(path)
    for rows in (ROWS, ODD):
        assert np.allclose(scorer.predict_proba(rows), model.predict_proba(rows), rtol=0, atol=1e-11)
        assert scorer.predict(rows).tolist() == model.predict(rows).tolist()
    assert np.allclose(scorer.predict_log_proba(ROWS), model.predict_log_proba(ROWS), rtol=0, atol=1e-11)
    for row in range(5):
        ours, theirs = scorer.explain(ODD, row), model.explain(ODD, row)
        assert [c.label for c in ours.contributions] == [c.label for c in theirs.contributions]
        assert np.allclose(ours.probabilities, theirs.probabilities, rtol=0, atol=1e-11)


def test_a_sealed_scorer_can_do_nothing_else() -> None:
    scorer = sealed.seal(TALLY.model())
    public = {n for n in dir(scorer) if not n.startswith("_")}
    assert public == {"classes", "schema", "predict", "predict_proba", "predict_log_proba", "explain"}
    assert repr(scorer) == "Sealed scorer: ham, spam · 10 columns"
    assert not any(c.reason or c.cells or c.values for c in scorer.schema.columns)


def test_a_sealed_file_knows_no_counts() -> None:
    """Twice the same rows have the same frequencies and twice the counts: where no smoothing mixes in how many rows
    there were, the files must be equal byte for byte."""
    settings = tb.Settings(
        smoothing=tb.MaximumLikelihood(),
        families={"size": F.Bins("width", 4), "count": F.Poisson(0.0, 0.0), "note": "bernoulli", "words": "levels"},
    )
    once, twice = (t.model(settings).export(format="sealed") for t in (TALLY, TALLY + TALLY))
    assert once == twice


def test_what_scores_by_counts_is_not_sealed() -> None:
    for families in ({"note": F.Multinomial(predictive=True)}, {"count": "poisson"}):
        model = TALLY.model(tb.Settings(families=families, predictive="count" in families))
        with pytest.raises(tb.SettingsError, match="predictive"):
            model.export(format="sealed")


def test_models_and_scorers_are_not_confused(tmp_path: pathlib.Path) -> None:
    model = TALLY.model()
    model.save(tmp_path / "m")
    model.export(tmp_path / "s", "sealed")
    with pytest.raises(tb.ModelFileError, match="load_sealed"):
        tb.load(tmp_path / "s")
    with pytest.raises(tb.ModelFileError, match=r"tb\.load\(path\)"):
        tb.load_sealed(tmp_path / "m")
    raw = bytearray((tmp_path / "s").read_bytes())
    raw[len(raw) // 3] ^= 4
    with pytest.raises(tb.ModelFileError, match="checksum"):
        sealed.sealed_from_bytes(bytes(raw))


def test_formats_are_known_by_name(tmp_path: pathlib.Path) -> None:
    with pytest.raises(tb.SettingsError, match="did you mean 'onnx'"):
        TALLY.model().export(format="onxn")
    with pytest.raises(tb.SettingsError, match="no export"):
        TALLY.model().export(tmp_path / "model.pickle")
    with pytest.raises(tb.SettingsError, match="'note' is a text"):
        TALLY.model().export(format="onnx")


# ---- steps


@pytest.mark.parametrize("family", ["kernel", "bins", "levels", F.Bins("frequency", 6), F.Kernel("silverman")])
@pytest.mark.parametrize("shape", ["bell", "offset", "tails", "counts", "atoms"])
def test_steps_say_what_the_cells_say_everywhere_on_the_line(family: Any, shape: str) -> None:
    rng = np.random.default_rng(5)
    y = np.arange(900) % 3
    x = {
        "bell": rng.normal(y, 1.0),
        "offset": 1e8 + rng.normal(y / 2, 1.0),
        "tails": rng.standard_cauchy(900) * (1 + y),
        "counts": rng.poisson(2 + y).astype(float),
        "atoms": np.where(rng.random(900) < 0.3, 0.0, rng.exponential(1.0 + y)),
    }[shape]
    under = tb.Schema([tb.Column("x", "number", cells=tb.Cells.fitted(x))], target="y")
    belief: Any = tb.count({"x": x, "y": y}, under).model(tb.Settings(families={"x": family})).beliefs["x"]
    steps = of_form(belief.form())
    anywhere = 10.0 ** rng.uniform(-300, 300, 2000) * rng.choice([-1, 1], 2000)
    points = np.array(belief.cells.points)
    values = np.concatenate([
        x, anywhere, steps.starts, np.nextafter(steps.starts, -np.inf), points, np.nextafter(points, np.inf),
        np.nextafter(points, -np.inf), rng.normal(x.mean(), 5 * x.std(), 2000), [0.0, -0.0, 1.7e308, -1.7e308],
    ])  # fmt: skip
    ours, theirs = steps.parts(Numbers(values)), relative(belief.parts(Numbers(values)))
    assert np.all((ours == theirs) | (np.abs(ours - theirs) < 1e-11))


# ---- JSON, scored by hand


def test_json_scored_by_hand_answers_as_the_model(model: tb.Model) -> None:
    scorer = json.loads(model.export(format="json"))
    assert scorer["classes"] == ["ham", "spam"]
    for rows in ({k: v[:12] for k, v in ROWS.items()}, ODD):
        by_hand = [proba_by_hand(scorer, row) for row in plain_rows(rows, SCHEMA)]
        assert np.allclose(by_hand, model.predict_proba(rows), rtol=0, atol=1e-9)


def test_json_writes_impossible_as_null() -> None:
    rows = {"x": ["a", "b", "a"], "y": ["u", "u", "v"]}
    under = tb.Schema([tb.Column("x", "category")], target="y")
    model = tb.count(rows, under).model(tb.Settings(smoothing=tb.MaximumLikelihood()))
    scorer = json.loads(model.export(format="json"))
    assert scorer["columns"][0]["logs"][1] == [math.log(0.5), None]


# ---- ONNX

TABULAR = tb.Schema([c for c in SCHEMA.counted if c.kind not in ("text", "bag")], target="label")


def run_onnx(model: tb.Model, rows: dict[str, Any]) -> tuple[Any, Any]:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(model.export(format="onnx"))
    given = inputs_of(rows, model.schema)
    label, p = session.run(["label", "probabilities"], {i.name: given[i.name] for i in session.get_inputs()})
    return label, p


@pytest.mark.parametrize("settings", CHOICES, ids=range(len(CHOICES)))
def test_onnx_answers_as_the_model(settings: tb.Settings) -> None:
    families = {k: v for k, v in settings.families.items() if k in TABULAR.names}
    weights = {k: v for k, v in settings.weights.items() if k in TABULAR.names}
    tally = tb.count(ROWS, TABULAR)
    model = tally.model(tb.Settings(families=families, weights=weights, unseen=settings.unseen))
    for rows in (ROWS, ODD):
        label, p = run_onnx(model, rows)
        assert p.dtype == np.float64 and np.allclose(p, model.predict_proba(rows), rtol=0, atol=1e-9)
        assert label.tolist() == model.predict(rows).tolist()


def test_onnx_knows_pairs_and_blends() -> None:
    under = tb.Schema([c for c in PAIRED.counted if c.kind not in ("text", "bag")], target="label")
    families = {**FITTED.families, "count": "blend"}
    weights = {n: w for n, w in FITTED.weights.items() if n in under.names}
    bent = {"offsets": FITTED.offsets, "lead": FITTED.lead}
    model = tb.count(ROWS, under).model(tb.Settings(families=families, weights=weights, **bent))
    for rows in (ROWS, ODD):
        label, p = run_onnx(model, rows)
        assert np.allclose(p, model.predict_proba(rows), rtol=0, atol=1e-9)
        assert label.tolist() == model.predict(rows).tolist()


@pytest.mark.parametrize("choice", range(len(CHOICES) + 1))
def test_onnx_knows_corrections(choice: int) -> None:
    under = tb.Schema([c for c in PAIRED.counted if c.kind not in ("text", "bag")], target="label")
    settings = [*CHOICES, replace(FITTED, families={**FITTED.families, "count": "blend"})][choice].about(under.names)
    for seed in range(4):
        model = corrected(tb.count(ROWS, under).model(settings), seed)
        for rows in (ROWS, ODD):
            label, p = run_onnx(model, rows)
            assert np.allclose(p, model.predict_proba(rows), rtol=0, atol=1e-9)
            assert label.tolist() == model.predict(rows).tolist()


@pytest.mark.filterwarnings("ignore:every class has probability 0")
def test_onnx_of_corrected_columns_where_a_class_is_impossible() -> None:
    rows = {"x": ["a", "b", "a", "c"], "n": [1.0, 1.0, 2.0, 2.0], "y": ["u", "u", "v", "v"]}
    cells = tb.Cells.fitted(np.ones(9))
    under = tb.Schema([tb.Column("x", "category"), tb.Column("n", "number", cells=cells)], target="y")
    plain = tb.count(rows, under).model(tb.Settings(smoothing=tb.MaximumLikelihood(), families={"n": "bins"}))
    asked = {"x": ["a", "b", "c", "b", None], "n": [1.0, 2.0, 1.0, None, 77.0]}
    for seed in range(4):
        model = corrected(plain, seed)
        label, p = run_onnx(model, asked)
        np.testing.assert_allclose(p, model.predict_proba(asked), rtol=0, atol=1e-12)
        assert label.tolist() == model.predict(asked).tolist()


@pytest.mark.filterwarnings("ignore:every class has probability 0")
def test_onnx_where_every_class_is_impossible_and_labels_are_numbers() -> None:
    rows = {"x": ["a", "b", "a", "c"], "n": [1.0, 1.0, 2.0, 2.0], "y": [3, 3, -1, -1]}
    under = tb.Schema(
        [tb.Column("x", "category"), tb.Column("n", "number", cells=tb.Cells.fitted(np.ones(9)))], target="y"
    )
    under = under._with(label_type="int")
    plain = tb.Settings(smoothing=tb.MaximumLikelihood(), families={"n": "bins"})
    asked = {"x": ["a", "b", "c", "b"], "n": [1.0, 2.0, 1.0, None]}
    for settings in (plain, replace(plain, lead=tb.Lead(2.0, -0.5), offsets={"3": 1.0})):
        model = tb.count(rows, under).model(settings)
        label, p = run_onnx(model, asked)
        np.testing.assert_allclose(p, model.predict_proba(asked), rtol=0, atol=1e-12)
        assert label.tolist() == model.predict(asked).tolist()


# ---- hostile names


def hostile_model() -> tb.Model:
    columns = [(name or "(empty)")[:1000] for name in HOSTILE]
    under = tb.Schema([tb.Column(c, "category", source="v") for c in columns], target=HOSTILE[0] + "?", missing=())
    return tb.count({"v": HOSTILE, under.target: HOSTILE[::-1]}, under).model()


def test_hostile_names_harm_no_export(tmp_path: pathlib.Path) -> None:
    model = hostile_model()
    right = model.predict_proba({"v": HOSTILE})
    model.export(tmp_path / "s", "sealed")
    assert np.allclose(tb.load_sealed(tmp_path / "s").predict_proba({"v": HOSTILE}), right, rtol=0, atol=1e-12)
    scorer = json.loads(model.export(format="json"))
    assert scorer["columns"][0]["name"] == HOSTILE[0] and scorer["target"] == model.schema.target
    card = model.export(format="card").decode()
    assert "<script" not in card and "\x1b" not in card and "\0" not in card and len(card) < 20_000
    assert all(line.count("|") in (3, 5) for line in card.splitlines() if line.startswith("|"))


def test_a_card_says_what_the_file_reveals() -> None:
    card = TALLY.model().export(format="card").decode()
    assert "9 different words" in card and "are 1: a rare word or value may name one person" in card
    assert TALLY.digest in card and "Left out: id (a number of its own in every row)." in card
    written = tb.Model.written({"yes": 0.5, "no": 0.5}).export(format="card").decode()
    assert "Only what was written down" in written


@pytest.mark.parametrize("name", ["label", "probabilities", "c0", "t0", "t1", "places", "positions0", "rows"])
def test_onnx_takes_a_column_by_any_name(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    data = {name: ["u", "v", "u", "w"] * 10, "z": [float(i % 7) for i in range(40)], "y": list("abba") * 10}
    schema = tb.Schema([tb.Column(name, "category"), tb.Column("z", "number")], target="y")
    model = tb.count(data, schema).model()
    session = runtime.InferenceSession(model.export(None, "onnx"))
    rows = {name: np.array(data[name], dtype=object), "z": np.array(data["z"])}
    label, probabilities = session.run(None, rows)
    assert [o.name.rstrip("_") for o in session.get_outputs()] == ["label", "probabilities"]
    assert label.tolist() == model.predict(data).tolist()
    assert np.allclose(probabilities, model.predict_proba(data), rtol=1e-12)


def test_onnx_refuses_a_column_without_a_name() -> None:
    pytest.importorskip("onnx")
    model = tb.count({"": ["u", "v"], "y": ["a", "b"]}, tb.Schema([tb.Column("", "category")], target="y")).model()
    with pytest.raises(tb.SettingsError, match="called ''"):
        model.export(None, "onnx")


def test_json_of_a_number_that_tells_nothing() -> None:
    rows = {"x": [2.0], "v": [[1.0, 2.0]], "y": ["u"]}
    under = tb.Schema([tb.Column("x", "number"), tb.Column("v", "vector", width=2)], target="y")
    model = tb.count(rows, under).model()
    by_hand = [proba_by_hand(json.loads(model.export(format="json")), row) for row in plain_rows(rows, under)]
    assert by_hand == [[1.0]]


@pytest.mark.parametrize("largest", [1.7976931348623157e308, -1.7976931348623157e308])
def test_the_largest_number_may_be_a_point(largest: float) -> None:
    x = [largest, 1.0, largest, 2.0] * 5
    under = tb.Schema([tb.Column("x", "number", cells=tb.Cells(0.0, -3, (largest,)))], target="y")
    model = tb.count({"x": x, "y": list("pqpp") * 5}, under).model(tb.Settings(families={"x": "bins"}))
    scorer = sealed.sealed_from_bytes(model.export(format="sealed"))
    assert np.allclose(scorer.predict_proba({"x": x}), model.predict_proba({"x": x}), rtol=0, atol=1e-11)


@pytest.mark.parametrize("kind", ["number", "vector", "category"])
def test_onnx_of_columns_that_tell_nothing_answers_every_row(kind: str) -> None:
    values: list[Any] = {"number": [2.0] * 3, "vector": [[1.0, 2.0]] * 3, "category": ["u"] * 3}[kind]
    column = tb.Column("x", kind, width=2) if kind == "vector" else tb.Column("x", kind)
    rows = {"x": values, "y": [3, 4, 3]}
    model = tb.count(rows, tb.Schema([column], target="y", label_type="int")).model()
    label, p = run_onnx(model, rows)
    assert label.tolist() == [3, 3, 3] and np.allclose(p, model.predict_proba(rows), rtol=0, atol=1e-12)


def test_onnx_writes_labels_that_are_too_large_as_texts() -> None:
    rows = {"x": ["u", "v"], "y": [3, 2**64 - 1]}
    model = tb.count(rows, tb.Schema([tb.Column("x", "category")], target="y", label_type="int")).model()
    assert run_onnx(model, rows)[0].tolist() == ["3", "18446744073709551615"]
