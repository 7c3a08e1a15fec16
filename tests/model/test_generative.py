"""What a model says of rows is one distribution: densities add up to one, samples come from it, or both are refused."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.families import Bins, Gaussian

N = 400
RNG = np.random.default_rng(17)
Y = RNG.choice(["u", "v", "w"], N, p=[0.5, 0.3, 0.2])
PLACE = np.array([{"u": 0.0, "v": 1.5, "w": -1.0}[c] for c in Y])
X = RNG.normal(PLACE, 1.0)
COUNTS = RNG.poisson(2 + PLACE - PLACE.min()).astype(float)
COLOURS = np.where(RNG.random(N) < 0.4, "red", RNG.choice(["red", "green", "blue"], N))
COLOURS = np.where((Y == "v") & (RNG.random(N) < 0.5), "green", COLOURS)
WORDS = [list(RNG.choice(["ball", "tax", "the"], 4, p=[0.6, 0.1, 0.3] if c == "u" else [0.2, 0.5, 0.3])) for c in Y]


def one_column(name: str, values, family, settings=None, **column) -> tb.Model:
    schema = tb.Schema([tb.Column(name, **column)], target="y")
    return tb.count({name: values, "y": Y}, schema).model(settings or tb.Settings(families={name: family}))


CELLS = tb.Cells.fitted(X)
LINE = ["gaussian", "gaussian-shared", "student", "kernel", "bins", Bins("frequency", 8), Bins("width", 5), "auto"]
DISCRETE = ["poisson", "levels", "kernel"]


@pytest.mark.parametrize("family", LINE, ids=str)
def test_the_density_of_a_number_integrates_to_one(family):
    model = one_column("x", X, family, kind="number", cells=CELLS)
    grid = np.linspace(-60, 60, 240_001)
    total = np.trapezoid(np.exp(model.log_density({"x": grid})), grid)
    assert total == pytest.approx(1.0, abs=0.012)  # a curve of wide tails has a row's share beyond


@pytest.mark.parametrize("family", DISCRETE, ids=str)
def test_the_probabilities_of_counts_add_up_to_one(family):
    model = one_column("k", COUNTS, family, kind="number", cells=tb.Cells.fitted(COUNTS))
    known = np.arange(COUNTS.max() + 1) if family == "levels" else np.arange(80.0)  # a value never seen is summed out
    total = math.fsum(np.exp(model.log_density({"k": known})).tolist())
    assert total == pytest.approx(
        1.0, abs=1e-9 if family != "kernel" else 0.01
    )  # values beside the points have a share


@pytest.mark.parametrize(
    "smoothing", [tb.Laplace(1.0), tb.MaximumLikelihood(), tb.JelinekMercer(0.2), tb.AbsoluteDiscount(0.5)], ids=str
)
def test_the_probabilities_of_a_category_add_up_to_one(smoothing):
    model = one_column("c", COLOURS, None, tb.Settings(smoothing=smoothing), kind="category")
    assert np.exp(model.log_density({"c": ["red", "green", "blue"]})).sum() == pytest.approx(1.0)


@pytest.mark.parametrize("predictive", [False, True])
def test_the_probabilities_of_bags_of_one_length_add_up_to_one(predictive):
    model = one_column("w", WORDS, None, tb.Settings(predictive=predictive), kind="bag")
    bags = [list(b) for b in itertools.combinations_with_replacement(["ball", "tax", "the"], 3)]
    assert np.exp(model.log_density([{"w": b} for b in bags])).sum() == pytest.approx(1.0)


def test_the_probabilities_of_words_present_or_not_add_up_to_one():
    model = one_column("w", WORDS, "bernoulli", kind="bag")
    names = ["ball", "tax", "the"]
    sets = [[w for w, there in zip(names, each, strict=True) if there] for each in itertools.product([0, 1], repeat=3)]
    assert np.exp(model.log_density([{"w": s} for s in sets])).sum() == pytest.approx(1.0)


MIXED = tb.Schema(
    [
        tb.Column("x", "number", cells=CELLS),
        tb.Column("c", "category"),
        tb.Column("k", "number", cells=tb.Cells.fitted(COUNTS)),
    ],
    target="y",
)
ROWS = {"x": X, "c": COLOURS, "k": COUNTS, "y": Y}


@pytest.mark.parametrize("family", [f for f in LINE if f != "auto"], ids=str)
def test_what_is_drawn_and_counted_answers_as_the_model_does(family):
    """P(class given row) of the model, and of the counts of rows drawn from it, within four standard errors."""
    many = 40_000
    settings = tb.Settings(families={"x": family, "k": "poisson"})
    model = tb.count(ROWS, MIXED).model(settings)
    drawn = tb.count(model.sample(many, seed=3), MIXED)
    np.testing.assert_allclose(drawn.class_weights() / many, np.exp(model.log_prior), atol=4 * math.sqrt(0.25 / many))
    if isinstance(family, Bins) or family in ("bins", "kernel"):
        # curves that follow the rows are asked by the rows drawn: their classes come as often as they were promised
        table = model.sample(many, seed=4)
        p, label = model.predict_proba(table.drop_columns(["y"])), np.array(table["y"].to_pylist())
        for i, c in enumerate(model.classes):
            order = np.argsort(p[:, i])
            for part in np.array_split(order, 10):
                hit, said = np.mean(label[part] == c), p[part, i]
                assert abs(hit - said.mean()) <= 4 * math.sqrt(np.mean(said * (1 - said)) / len(part)) + 2e-3
        return
    again = drawn.model(settings)
    assert np.abs(again.predict_proba(ROWS) - model.predict_proba(ROWS)).max() < 0.04


def test_the_likelihood_is_that_of_the_joint():
    model = tb.count(ROWS, MIXED).model(tb.Settings(families={"x": Gaussian(), "k": "poisson"}))
    labels = [model.classes.index(c) for c in Y]
    joint = model.log_joint(ROWS)[np.arange(N), labels]  # these families leave nothing out that classes share
    assert model.log_likelihood(ROWS) == pytest.approx(joint.sum())
    alone = {k: v for k, v in ROWS.items() if k != "y"}
    assert model.log_likelihood(alone) == pytest.approx(model.log_density(ROWS).sum())
    assert model.log_likelihood(alone, y=Y) == pytest.approx(model.log_likelihood(ROWS))
    half = {**ROWS, "y": [c if i < 100 else None for i, c in enumerate(Y)]}
    assert model.log_likelihood(half) == pytest.approx(joint[:100].sum() + model.log_density(ROWS)[100:].sum())
    assert model.log_likelihood({**ROWS, "y": ["another"] * N}) == -math.inf
    said = model.predict_log_proba(ROWS)[np.arange(N), labels]
    assert model.log_likelihood(ROWS) - model.log_likelihood(alone) == pytest.approx(said.sum())


FIRST = tb.count(ROWS, MIXED)
READINGS = {
    "weights": tb.Settings(weights={"x": 0.5}),
    "offsets": tb.Settings(offsets={"u": 0.3}),
    "blend": tb.Settings(families={"x": "blend"}),
    "correction": tb.Settings(corrections={"c": tb.Correction(0.5, ("u", "v", "w"), [[0.1, 0.0, 0.0]], cells=["red"])}),
}


@pytest.mark.parametrize("name", READINGS)
def test_what_is_no_distribution_says_so_and_names_the_one_beneath(name):
    model = FIRST.model(READINGS[name])
    for asked in (lambda: model.sample(3), lambda: model.log_density(ROWS), lambda: model.log_likelihood(ROWS)):
        with pytest.raises(tb.SettingsError, match=r"Hint: model.generative"):
            asked()
    beneath = model.generative
    assert beneath.sample(5, seed=1).num_rows == 5
    assert np.isfinite(beneath.log_likelihood(ROWS))
    assert beneath.tally == model.tally


def test_a_default_fit_with_a_pair_does_not_pass_for_a_distribution():
    rng = np.random.default_rng(5)
    rota, day = rng.choice(["a", "b"], 800), rng.choice(["even", "odd"], 800)
    late = np.where(rng.random(800) < 0.9, (rota == "a") == (day == "even"), rng.random(800) < 0.5)
    model = tb.fit({"rota": rota, "day": day, "late": late}, target="late")
    assert any(model.schema[c].of is not None for c in model.beliefs)
    with pytest.raises(tb.SettingsError, match="no probability distribution"):
        model.sample(10)
    drawn = model.generative.sample(10, seed=0)
    assert drawn.column_names == ["rota", "day", "late"]


def test_the_generative_model_of_a_distribution_is_the_same_model():
    model = FIRST.model()
    assert np.array_equal(model.generative.predict_proba(ROWS), model.predict_proba(ROWS))
