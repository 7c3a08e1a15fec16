"""Pictures: every display draws, holds the right numbers, and takes any name for what it is: a text."""

from __future__ import annotations

import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.explain.plots import (
    ConfusionDisplay,
    NomogramDisplay,
    NumberDisplay,
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    RocDisplay,
    WordsDisplay,
)
from tallybayes.explain.plots.columns import column_display
from tallybayes.explain.plots.evidence import nomogram
from tallybayes.explain.plots.paper import label, stacked, svg
from tallybayes.families import Bins
from tallybayes.families.calibration import Correction

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

NASTY = [
    "<script>alert(1)</script>",
    "$\\frac{1}{2}$",
    "_hidden",
    "\x1b[31mred",
    "日本",
    "\u202eevil",
    "x" * 100_000,
    "$",
]


@pytest.fixture(autouse=True)
def closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def table(n: int = 120, classes: int = 2) -> dict:
    rng = np.random.default_rng(3)
    y = np.arange(n) % classes
    return {
        "colour": [["red", "blue", "grey"][(v + int(rng.integers(0, 2))) % 3] for v in y],
        "size": rng.normal(y, 1.0),
        "visits": rng.poisson(1 + y).astype(float),
        "text": [" ".join(rng.choice([f"word{v}", "and", "the", f"w{v % 2}"], 5)) for v in y],
        "vector": rng.normal(y[:, None] * [0.0, 1.0], 1.0),
        "y": [f"class {v}" for v in y],
    }


def fitted(classes: int = 2, **families: object) -> tb.Model:
    data = table(classes=classes)
    schema = tb.infer(data, "y").with_column("text", kind="text").with_column("vector", kind="vector", width=2)
    return tb.count(data, schema).model(tb.Settings(families=families, weights={"size": 0.5}))


@pytest.mark.parametrize("classes", [2, 5])
def test_every_picture_draws(classes: int) -> None:
    model, data = fitted(classes), table(classes=classes)
    rows = {k: v for k, v in data.items() if k != "y"}
    drawn = [model.plot.waterfall(rows, number=2), model.plot.nomogram(), model.plot.words()]
    drawn += [model.plot.column(name) for name in model.beliefs]
    p = model.predict_proba(rows)
    kinds = (ReliabilityDisplay, ConfusionDisplay, RocDisplay, PrecisionRecallDisplay)
    drawn += [kind.from_predictions(data["y"], p, model.classes).plot() for kind in kinds]
    for display in drawn:
        assert display.ax_.figure is display.figure_
        display.figure_.canvas.draw()
    import matplotlib.pyplot as plt

    ax = plt.figure().subplots()
    assert model.plot.column("size", ax=ax).ax_ is ax


@pytest.mark.parametrize("family", ["gaussian", "kernel", "bins", Bins("frequency", 5), "student", "levels", "poisson"])
def test_histogram_and_believed_density_have_mass_one(family: object) -> None:
    column = "visits" if family in ("levels", "poisson") else "size"
    model = fitted(**{column: family})
    display = NumberDisplay.of(model, column)
    if display.discrete:
        np.testing.assert_allclose(display.shares.sum(axis=0), 1.0)
        assert np.all(display.believed.sum(axis=0) > 0.9) and np.all(display.believed.sum(axis=0) < 1.01)
        return
    width = display.edges[1] - display.edges[0]
    assert np.all(np.abs(display.shares.sum(axis=0) * width - 1.0) < 0.06)  # the outermost rows are left out
    mass = np.trapezoid(display.believed, display.x, axis=0)
    assert np.all((mass > 0.85) & (mass < 1.02))


@pytest.mark.parametrize("discrete", [False, True])
def test_what_a_blend_believes_is_drawn_as_the_counted_rows_dealt_by_it(discrete: bool) -> None:
    """Lines and bars have one scale: where the blend says P(class) as it was counted, they are the same."""
    rng = np.random.default_rng(12)
    y = np.arange(4000) % 2
    x = rng.poisson(4 + 3 * y).astype(float) if discrete else rng.gamma(3.0 + y, 2.0)
    schema = tb.Schema([tb.Column("x", "number", cells=tb.Cells.fitted(x))], target="y")
    model = tb.count({"x": x, "y": y}, schema).model(tb.Settings(families={"x": "blend"}))
    display = NumberDisplay.of(model, "x")
    if discrete:
        np.testing.assert_allclose(display.believed.sum(axis=0), 1.0, rtol=1e-9)
        assert np.abs(display.believed - display.shares).max() < 0.04
        p = model.predict_proba({"x": display.edges})
        rows = np.array([(x == v).sum() for v in display.edges])
        dealt = p * rows[:, None]
        np.testing.assert_allclose(display.believed, dealt / dealt.sum(axis=0), rtol=1e-9)
    else:
        assert np.abs(display.believed[::2] - display.shares).max() < 0.25 * display.shares.max()
        assert display.believed.max() > 0.8 * display.shares.max()  # not flat under the bars
    flat = tb.count({"x": x, "y": y}, schema).model(tb.Settings(families={"x": "blend"}, weights={"x": 0.0}))
    even = NumberDisplay.of(flat, "x").believed
    np.testing.assert_allclose(even[:, 0], even[:, 1])  # what is not asked says nothing


def test_histogram_holds_the_counts() -> None:
    data = table()
    display = NumberDisplay.of(fitted(visits="levels"), "visits")
    y = np.array(data["y"])
    for i, name in enumerate(display.names):
        own = data["visits"][y == name]
        want = [np.mean(own == v) for v in display.edges]
        np.testing.assert_allclose(display.shares[:, i], want)


def test_waterfall_ends_at_the_log_odds() -> None:
    model = fitted()
    rows = {k: v for k, v in table().items() if k != "y"}
    display = model.plot.waterfall(rows, number=1)
    joint = model.log_joint(rows)[1]
    bars = [p.get_width() for p in display.ax_.patches]
    assert sum(bars[:-1]) == pytest.approx(bars[-1], abs=1e-9)
    assert abs(bars[-1]) == pytest.approx(abs(joint[0] - joint[1]), rel=1e-9)


def test_nomogram_adds_up_to_the_log_odds() -> None:
    """Read off by hand: prior and points of a row's values are its log-odds."""
    data = {"a": ["u", "v", "u", "u"] * 10, "b": ["x", "x", "y", "y"] * 10, "y": ["p", "q", "p", "q"] * 10}
    model = tb.fit(data, "y", settings=tb.Settings(weights={"a": 0.7}))
    read = nomogram(model, None, None, 10)
    assert read.pairwise and read.label == "q"
    points = {s.column: dict(zip(s.values, s.points, strict=True)) for s in read.scales}
    joint = model.log_joint({"a": "v", "b": "x"})[0]
    assert read.prior + points["a"]["v"] + points["b"]["x"] == pytest.approx(joint[1] - joint[0], abs=1e-12)
    assert read.adds_up and not read.left_out
    short = nomogram(model, None, None, 1)
    assert short.hidden == 1 and not short.adds_up and short.left_out == ("1 column saying less",)
    three = nomogram(fitted(3), "class 1", None, 10)
    assert not three.pairwise and three.against == "all classes on average"
    assert [t.split(":")[0] for t in three.left_out] == ["text", "size", "vector"]


def read_off(drawn: NomogramDisplay, row: dict, pairs: dict) -> float:
    """The sum of a row's points: what is not on a scale adds 0."""
    total = drawn.prior
    for scale in drawn.scales:
        if scale.column in pairs:
            value = " and ".join(str(row[side]) for side in pairs[scale.column])
        else:
            value = ("no", "yes")[row["c"] is None] if scale.column.endswith("(missing)") else str(row[scale.column])
        total += dict(zip(scale.values, scale.points, strict=True)).get(value, 0.0)
    return total


def test_a_nomogram_that_promises_the_sum_has_pairs_gaps_and_corrections_on_it() -> None:
    rng = np.random.default_rng(6)
    a, b, c = rng.integers(0, 2, 600), rng.integers(0, 3, 600), rng.poisson(2, 600).clip(0, 5)
    y = (a ^ (b > 1)) * (rng.random(600) < 0.8) + 0
    numbers = [None if i % 7 == 0 else float(v) for i, v in enumerate(c)]
    data = {"a": a.astype(str), "b": b.astype(str), "c": numbers, "y": y}
    base = tb.infer(data, "y").with_column("c", kind="number")
    schema = base.with_column("a with b", kind="pair", of=(tb.Side("a"), tb.Side("b")))
    schema = schema.with_column("c (missing)", kind="gap", of=(tb.PairColumn("c", "number"),))
    correction = Correction(0.8, ("0", "1"), np.array([[0.25, -0.5], [0.0, 0.125]]), cells=("0", "2"))
    settings = tb.Settings(
        families={"c": "levels"}, weights={"a with b": 0.9}, offsets={0: 0.1, 1: -0.1}, corrections={"b": correction}
    )
    model = tb.count(data, schema).model(settings)
    drawn = nomogram(model, None, None, 10)
    assert drawn.adds_up and {s.column for s in drawn.scales} == {"a", "b", "c", "c (missing)", "a with b"}
    for i in range(60):
        row = {n: data[n][i] for n in "abc"}
        shown = row | {"c": None if row["c"] is None else f"{row['c']:g}"}
        log_p = model.predict_log_proba([row])[0]
        wanted = float(log_p[1] - log_p[0])
        assert read_off(drawn, shown, {"a with b": ("a", "b")}) == pytest.approx(wanted, abs=1e-9)
    wide = {"c": [0.0, 99999.0, 123456.5] * 20, "y": ["p", "q", "q", "p"] * 15}
    column = tb.Column("c", "number", cells=tb.Cells.fitted(np.array(wide["c"])))
    (scale,) = nomogram(tb.count(wide, tb.Schema([column], target="y")).model(), None, None, 10).scales
    assert scale.values == ["0", "99999", "123456.5"]  # as they are, not to four digits
    drawn = model.plot.nomogram()
    texts = [t.get_text() for t in drawn.ax_.texts]
    assert all(label(v, 30) in texts for s in drawn.scales for v in s.values)  # every tick has its label
    assert "a sum of" in drawn.ax_.get_xlabel()


def test_a_nomogram_says_what_is_not_on_it() -> None:
    rng = np.random.default_rng(6)
    a, b = rng.integers(0, 9, 900), rng.integers(0, 9, 900)
    data = {"a": a.astype(str), "b": b.astype(str), "y": (a + b) % 2}
    pair = tb.infer(data, "y").with_column("a with b", kind="pair", of=(tb.Side("a"), tb.Side("b")))
    model = tb.count(data, pair).model()
    drawn = model.plot.nomogram()
    assert not drawn.adds_up and drawn.left_out == ("a with b: 67 other pairs of values",)
    assert "67 other pairs" in drawn.ax_.get_xlabel() and "a sum of" not in drawn.ax_.get_xlabel()
    page = tb.report(model, data)
    assert "add up" not in page and "not all of the model is on it" in page


def test_curves_agree_with_scikit_learn() -> None:
    metrics = pytest.importorskip("sklearn.metrics")
    model, data = fitted(), table()
    rows = {k: v for k, v in data.items() if k != "y"}
    p, truth = model.predict_proba(rows), np.array(data["y"]) == "class 1"
    roc = RocDisplay.from_predictions(data["y"], p, model.classes)
    assert roc.curves[0][2] == pytest.approx(metrics.roc_auc_score(truth, p[:, 1]), abs=1e-12)
    recall = PrecisionRecallDisplay.from_predictions(data["y"], p, model.classes)
    assert recall.curves[0][2] == pytest.approx(metrics.average_precision_score(truth, p[:, 1]), abs=1e-12)
    counts = ConfusionDisplay.from_predictions(data["y"], p, model.classes).counts
    np.testing.assert_array_equal(counts, metrics.confusion_matrix(data["y"], model.predict(rows)))
    with pytest.raises(tb.DataError, match="0 of them known classes"):
        RocDisplay.from_predictions(["nobody"] * len(p), p, model.classes)


def test_hostile_names_are_only_text() -> None:
    rng = np.random.default_rng(1)
    data = {name: [NASTY[(i + j) % len(NASTY)] for i in range(60)] for j, name in enumerate(NASTY[:6])}
    data["words"] = [[NASTY[int(k)] for k in rng.integers(0, len(NASTY), 3)] for _ in range(60)]
    data["y"] = [NASTY[i % 3] for i in range(60)]
    columns = [tb.Column(n, "category") for n in data if n not in ("words", "y")]
    model = tb.count(data, tb.Schema([*columns, tb.Column("words", "bag")], target="y")).model()
    rows = {k: v for k, v in data.items() if k != "y"}
    pictures = [column_display(model, n) for n in model.beliefs] + [nomogram(model, None, None, 10)]
    pictures.append(ConfusionDisplay.from_predictions(data["y"], model.predict_proba(rows), model.classes))
    for i, display in enumerate(pictures):
        drawing = svg(display, f"p{i}", NASTY[0])
        ElementTree.fromstring(drawing)
        assert "<script" not in drawing and "\x1b" not in drawing and "\u202e" not in drawing
        assert len(drawing) < 400_000 and "currentColor" in drawing and "#010203" not in drawing


def test_pictures_of_one_page_share_no_ids() -> None:
    import re

    model = fitted()
    one, two = (svg(column_display(model, "size"), name, "size") for name in ("a", "b"))
    ids = [set(re.findall(r'\bid="([^"]+)"', s)) for s in (one, two)]
    assert ids[0] and not ids[0] & ids[1]
    used = set(re.findall(r"url\(#([^)]+)\)|href=\"#([^\"]+)\"", one))
    assert {a or b for a, b in used} <= ids[0]
    assert svg(column_display(model, "size"), "a", "size") == one  # the same model, the same picture


def test_what_cannot_be_drawn_says_why() -> None:
    model = fitted()
    with pytest.raises(tb.SettingsError, match="did you mean 'size'"):
        model.plot.column("sise")
    with pytest.raises(tb.SettingsError, match="'size' has no words"):
        model.plot.words("size")
    with pytest.raises(tb.SettingsError, match="0 columns of words"):
        tb.fit({"a": ["u", "v"] * 9, "y": ["p", "q"] * 9}, "y").plot.words()
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import tallybayes as tb\n"
        "model = tb.fit({'a': ['u', 'v'] * 9, 'y': ['p', 'q'] * 9}, 'y')\n"
        "try: model.plot.nomogram()\n"
        "except tb.MissingExtra as error: print(error)"
    )
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install matplotlib" in said


def test_words_are_those_that_say_most() -> None:
    display = WordsDisplay.of(fitted(), "text")
    assert [{r.value for r in t} & {"word0", "word1"} for t in display.tables] == [{"word0"}, {"word1"}]


def test_labels_and_their_places() -> None:
    assert label("a$b") == r"a\$b" and label("_x") == " _x"
    assert stacked([0.0, 0.1, 1.0, 0.5], [0.4] * 4) == [0, 1, 0, 0] and stacked([], []) == []


@pytest.mark.parametrize("kind", ["category", "number", "text", "bag", "vector", "date"])
def test_a_column_that_is_missing_in_every_row_is_drawn(kind: str) -> None:
    column = tb.Column("x", kind, width=2) if kind == "vector" else tb.Column("x", kind)
    under = tb.Schema([column, tb.Column("c", "category")], target="y")
    data = {"x": [None] * 4, "c": ["a", "b", "b", "a"], "y": ["p", "q", "q", "q"]}
    assert tb.report(tb.count(data, under).model(), data).count("<svg") >= 2


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("cells", [False, True])
@pytest.mark.parametrize("family", ["gaussian", "student", "bins", "poisson"])
def test_numbers_at_the_ends_of_the_line_are_drawn_and_changed(family: str, cells: bool) -> None:
    x = (
        [1.7e308, 1.6e308, 1.5e308, 0.0, 5e-324, 1e300]
        if family == "poisson"
        else [1.7e308, -1.7e308, 1.5e308, 0.0] * 2
    )
    if family == "bins" and not cells:
        return
    under = tb.Schema([tb.Column("x", "number", cells=tb.Cells.fitted(np.array(x)) if cells else None)], target="y")
    data = {"x": x, "y": (["p", "q", "q"] * 3)[: len(x)]}
    average = tb.count(data, under).model(tb.Settings(predictive=True))
    assert np.isfinite(average.predict_proba(data)).all()
    model = tb.count(data, under).model(tb.Settings(families={"x": family}))
    assert np.isfinite(model.predict_proba(data)).all()
    if family != "poisson":  # whose sums are as long as the numbers
        assert "<svg" in tb.report(model, data)
    assert model.what_if(data).answer in ("p", "q")
