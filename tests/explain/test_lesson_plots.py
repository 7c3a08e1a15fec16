"""Pictures for a lecture hold the right numbers: regions, densities, joint tables, Beta curves, Dirichlet triangles."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.stats

import tallybayes as tb
from tallybayes.explain.plots import (
    BetaDisplay,
    DensitiesDisplay,
    DirichletDisplay,
    FigureCurveDisplay,
    JointTableDisplay,
    RegionsDisplay,
)
from tallybayes.explain.plots.paper import svg

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")

RNG = np.random.default_rng(2)
Y = RNG.integers(0, 3, 300)
TABLE = {
    "a": RNG.normal(size=300) + 2 * Y,
    "b": RNG.normal(size=300) - Y,
    "c": RNG.choice(["mild", "no", "severe"], 300),
    "y": [f"k{v}" for v in Y],
}
TALLY = tb.count(TABLE, tb.infer(TABLE, target="y"))
FAMILIES = ("gaussian", "gaussian-shared", "kernel", "bins")


@pytest.fixture(autouse=True)
def closed():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.mark.parametrize("family", FAMILIES)
def test_regions_are_the_answers_of_the_model(family):
    model = TALLY.model({"families": family})
    found = RegionsDisplay.of(model, "a", "b", TABLE)
    for i, j in ((0, 0), (90, 31), (180, 180)):
        asked = {"a": [found.x[j]], "b": [found.y[i]], "c": [None]}
        assert np.allclose(found.p[i, j], model.predict_proba(asked)[0], rtol=1e-12)
    assert found.points is not None and np.array_equal(found.points[2], Y)
    assert found.x[0] < TABLE["a"].min() and found.y[-1] > TABLE["b"].max()
    drawn = model.plot.regions("a", "b", TABLE)
    assert len(drawn.ax_.collections[-1].get_offsets()) == 300
    assert [t.get_text() for t in drawn.ax_.get_legend().get_texts()] == ["k0", "k1", "k2"]


def test_other_columns_of_a_region_can_be_given():
    model = TALLY.model({"families": "gaussian"})
    fixed = RegionsDisplay.of(model, "a", "b", row={"c": "mild"})
    asked = {"a": [fixed.x[7]], "b": [fixed.y[3]], "c": ["mild"]}
    assert np.allclose(fixed.p[3, 7], model.predict_proba(asked)[0], rtol=1e-12)
    assert not np.allclose(fixed.p, RegionsDisplay.of(model, "a", "b").p)


def test_shared_variances_part_the_plane_by_straight_lines():
    two = {n: [v for v, k in zip(TABLE[n], Y, strict=True) if k < 2] for n in ("a", "b", "y")}
    model = tb.textbook(two, "y", families="gaussian-shared")
    lead = np.diff(np.log(RegionsDisplay.of(model, "a", "b").p), axis=2)[..., 0]
    assert np.abs(np.diff(lead, n=2, axis=0)).max() < 1e-9 and np.abs(np.diff(lead, n=2, axis=1)).max() < 1e-9
    own = tb.textbook(two, "y")
    assert (
        np.abs(np.diff(np.diff(np.log(RegionsDisplay.of(own, "a", "b").p), axis=2)[..., 0], n=2, axis=0)).max() > 1e-9
    )


def test_densities_are_weighted_bells_and_cross_where_the_answer_changes():
    tall = {"cm": [150.0, 160.0, 170.0, 170.0, 180.0, 190.0], "who": list("aaabbb")}
    model = tb.textbook(tall, "who")
    found = DensitiesDisplay.of(model, "cm")
    bell = scipy.stats.norm(160, np.std([150, 160, 170]))
    assert np.allclose(found.heights[:, 0], 0.5 * bell.pdf(found.x), rtol=1e-9)
    assert found.changes == pytest.approx([170.0], abs=0.2)
    alone = model.plot.densities("cm", prior=False)
    assert np.allclose(alone.heights, 2 * found.heights)
    assert len(alone.ax_.get_lines()) == 3  # two bells and a dotted line


def test_a_joint_table_has_a_bar_for_every_cell():
    joint = tb.JointDistribution.written([0.30, 0.05, 0.10, 0.05, 0.05, 0.10, 0.25, 0.10], ["A", "B", "C"])
    drawn = joint.plot()
    widths = [bar.get_width() for bar in drawn.ax_.patches]
    assert np.allclose(np.array(widths) * 0.30, [0.30, 0.05, 0.10, 0.05, 0.05, 0.10, 0.25, 0.10])
    texts = [t.get_text() for t in drawn.ax_.texts]
    assert texts.count("A") == 1 and "0.25" in texts
    many = tb.JointDistribution.of({c: list("abcd") * 3 for c in "ABC"})
    with pytest.raises(tb.SettingsError, match="64 cells"):
        many.plot()
    assert JointTableDisplay.of(many.marginal("A")).p.tolist() == [0.25] * 4


def test_beta_curves_are_those_of_the_counts():
    clinic = {"H": ["severe", "no", "mild", "mild", "severe"], "D": ["Flu", "Cold", "Flu", "Cold", "Flu"]}
    model = tb.textbook(clinic, "D")
    found = BetaDisplay.of(model, "H", "severe")
    assert found.before == [(1.0, 2.0), (1.0, 2.0)] and found.after == [(1.0, 4.0), (3.0, 3.0)]
    drawn = model.plot.beta("H", "severe")
    x, y = max((line.get_data() for line in drawn.ax_.get_lines()), key=lambda d: d[1][200] if len(d[1]) > 200 else 0)
    assert np.allclose(y, scipy.stats.beta(3, 3).pdf(x), rtol=1e-9)
    means = [line.get_xdata()[0] for line in drawn.ax_.get_lines() if len(line.get_xdata()) == 1]
    assert means == pytest.approx([model.table("H")["severe", c] for c in ("Cold", "Flu")])
    urn = BetaDisplay.of_counts({"red": 2, "blue": 1}, prior=tb.MAP(3))
    assert urn.before == [(2.0, 2.0)] and urn.after == [(4.0, 3.0)]
    flat = tb.textbook(clinic, "D", smoothing="maximum likelihood").plot.beta("H", "severe")
    assert flat.after == [(0.0, 2.0), (2.0, 1.0)]  # nothing believed before, and a class that never had it


def test_a_dirichlet_triangle_marks_mean_counts_and_peak():
    display = DirichletDisplay.of_counts({"red": 2, "blue": 1, "green": 1}, prior=2).plot()
    marks = {line.get_label(): np.array(line.get_data()).ravel() for line in display.ax_.get_lines()}
    corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(3) / 2]])
    assert np.allclose(marks["mean"], np.array([4, 3, 3]) / 10 @ corners)
    assert np.allclose(marks["counted"], np.array([2, 1, 1]) / 4 @ corners)
    assert np.allclose(marks["peak"], np.array([3, 2, 2]) / 7 @ corners)
    model = TALLY.model()
    assert np.allclose(model.plot.dirichlet("c", "k1").n.sum(), (Y == 1).sum())


@pytest.mark.parametrize(
    ("draw", "said"),
    [
        (lambda m: m.plot.regions("a", "c"), "'c' is a category"),
        (lambda m: m.plot.densities("c"), "'c' is a category"),
        (lambda m: m.tally.model({"families": {"a": "blend"}}).plot.densities("a"), "a blend of families"),
        (lambda m: m.plot.regions("a", "b", {"a": [1.0], "y": ["k1"]}), "no column 'b'"),
        (lambda m: m.plot.beta("c", "sever"), "did you mean 'severe'"),
        (lambda m: m.plot.beta("a", 1), "no category"),
        (lambda m: m.plot.dirichlet("c", "k9"), "no class 'k9'"),
        (lambda m: BetaDisplay.of_counts({"red": 1}), "1 values"),
        (lambda m: BetaDisplay.of_counts({"red": 1, "blue": 2}, prior="good-turing"), "no Dirichlet prior"),
    ],
)
def test_what_cannot_be_drawn_is_refused(draw, said):
    with pytest.raises(tb.SettingsError, match=said):
        draw(TALLY.model())


@pytest.mark.parametrize(
    "display",
    [
        lambda: RegionsDisplay.of(TALLY.model({"families": "gaussian"}), "a", "b", TABLE),
        lambda: DensitiesDisplay.of(TALLY.model(), "a"),
        lambda: JointTableDisplay.of(tb.JointDistribution.of({"$A": ["<b>", "_x"]})),
        lambda: BetaDisplay.of_counts({"$red$": 2, "<b>": 1}),
        lambda: DirichletDisplay.of_counts({"$red$": 2, "<b>": 1, "_c": 3}),
        lambda: FigureCurveDisplay("alpha", (0.1, 1, 100), "log_loss", np.ones((3, 3)), np.ones(3)),
        lambda: FigureCurveDisplay("family", ("$a", "_b"), "log_loss", np.ones((2, 3)), np.ones(2)),
    ],
)
def test_every_picture_can_stand_in_a_page(display):
    assert svg(display(), "p1", "a picture").startswith("<svg")
