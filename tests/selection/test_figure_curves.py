"""Learning and validation curves: by subtraction, and the same by counting the training rows again."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.data.sources import open_source
from tallybayes.families import Bins, Kernel, Multinomial, Selection
from tallybayes.selection.measure.figure_curves import _shares, _steps
from tallybayes.selection.parts import Plan, by_content, take_rows

RNG = np.random.default_rng(7)
N = 240
Y = RNG.choice(["a", "b", "c"], N, p=[0.5, 0.3, 0.2])
SHIFT = np.array([{"a": 0.0, "b": 1.0, "c": 2.0}[y] for y in Y])
WORDS = np.array(["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"])
TABLE = {
    "x": RNG.normal(size=N) + SHIFT,
    "c": RNG.choice(list("pqrst"), N),
    "text": [" ".join(RNG.choice(WORDS[: 4 + 3 * int(s)], 5)) for s in SHIFT],
    "y": Y,
}
SCHEMA = tb.infer(TABLE, target="y").with_column("text", kind="text")


def figures(fold, counted, settings):
    """Log loss and accuracy of every fold by models counted anew, on held-out rows and on those counted."""
    found = []
    for k in np.unique(fold):
        rows = np.flatnonzero((fold != k) & counted)
        model = tb.count(take_rows(TABLE, rows), SCHEMA).model(settings)
        found.append([_row_figures(model, at) for at in (np.flatnonzero(fold == k), rows)])
    return [[float(np.mean(np.concatenate(e))) for e in zip(*(f[i] for f in found), strict=True)] for i in (0, 1)]


def _row_figures(model, rows):
    asked = take_rows(TABLE, rows)
    p = np.zeros((len(rows), 3))
    p[:, [("a", "b", "c").index(c) for c in model.classes]] = model.predict_proba(asked)
    right = np.array([("a", "b", "c").index(y) for y in asked["y"]])
    return -np.log(np.maximum(p[np.arange(len(rows)), right], 1e-15)), p.argmax(axis=1) == right


@pytest.mark.parametrize("settings", [{}, {"families": {"x": "gaussian", "text": "bernoulli"}, "smoothing": 0.1}])
def test_a_learning_curve_is_that_of_models_counted_anew(settings):
    sizes, seed = (6, 30, 0.5, 1.0), 3
    curve = tb.learning_curve(TABLE, SCHEMA, settings=settings, sizes=sizes, folds=4, seed=seed)
    source = open_source(TABLE)
    fold, _ = Plan(4, True, seed=seed).numbers(source, "y", SCHEMA)
    labels, keys = by_content(source, SCHEMA, seed + 1)
    step = _steps(fold, labels, _shares(sizes, N, 4), np.lexsort(keys))
    for i in range(4):
        out, own = figures(fold, step <= i, settings)
        assert [curve.held_out[m][i, 0] for m in ("log_loss", "accuracy")] == pytest.approx(out, rel=1e-9)
        assert [curve.counted[m][i] for m in ("log_loss", "accuracy")] == pytest.approx(own, rel=1e-9)
        assert curve.values[i] == round(np.mean([np.sum((fold != k) & (step <= i)) for k in range(4)]))
    assert curve.values[-1] == 180 and abs(curve.values[1] - 30) <= 2


def test_larger_sizes_have_the_rows_of_smaller_ones_and_every_class_its_share():
    labels = np.repeat([0, 1], [150, 50])
    fold = np.arange(200) % 5
    step = _steps(fold, labels, np.array([0.2, 0.5, 1.0]), np.random.default_rng(1).permutation(200))
    assert np.bincount(step).tolist() == [40, 60, 100]
    assert np.bincount(labels[step == 0]).tolist() == [30, 10]


@pytest.mark.parametrize(
    ("over", "value", "settings"),
    [
        ("alpha", 0.05, {"smoothing": 0.05}),
        ("bandwidth", 0.4, {"families": {"x": Kernel(0.4)}}),
        ("bins", 4, {"families": {"x": Bins("frequency", 4)}}),
        ("words", 3, {"families": {"text": Multinomial(select=Selection(top=3))}}),
    ],
)
def test_a_validation_curve_is_that_of_models_counted_anew(over, value, settings):
    curve = tb.validation_curve(TABLE, SCHEMA, over=over, values=[value], folds=3, seed=1)
    fold, _ = Plan(3, True, seed=1).numbers(open_source(TABLE), "y", SCHEMA)
    out, own = figures(fold, np.full(N, True), settings)
    assert [curve.held_out[m][0, 0] for m in ("log_loss", "accuracy")] == pytest.approx(out, rel=1e-9)
    assert [curve.counted[m][0] for m in ("log_loss", "accuracy")] == pytest.approx(own, rel=1e-9)
    evaluated = tb.cross_validate(TABLE, SCHEMA, settings=settings, folds=3, seed=1, stratify=True)
    assert curve.held_out["log_loss"][0, 0] == evaluated["log_loss"]


def test_the_usual_values_one_column_and_any_other_setting():
    plain = {n: TABLE[n] for n in ("x", "c", "y")}
    assert tb.validation_curve(plain, "y", folds=2).values[0] == 0.001
    one = tb.validation_curve(plain, "y", column="c", values=[5], folds=2)
    asked = {"smoothing": {"c": 5}}
    other = tb.validation_curve(plain, "y", over="my own", values={"five": asked}, folds=2)
    assert one.held_out["log_loss"][0, 0] == other.held_out["log_loss"][0, 0]
    assert other.values == ("five",) and "my own" in str(other)
    shape = tb.validation_curve(plain, "y", over="families", values={f: {"families": f} for f in ("gaussian", "bins")})
    assert shape.best() in ("gaussian", "bins")


def test_what_is_shown():
    curve = tb.learning_curve({n: TABLE[n] for n in ("x", "y")}, "y", sizes=(0.1, 1.0), folds=3, figures=["accuracy"])
    said = curve.to_dict()
    assert said["over"] == "rows" and len(said["rows"]) == 2 and len(said["accuracy_counted"]) == 2
    assert "accuracy held out" in str(curve).splitlines()[1] and len(str(curve).splitlines()) == 4
    assert curve.table.column_names[:3] == ["rows", "rows counted", "accuracy"]
    assert curve.best("accuracy") == curve.values[int(np.argmax(said["accuracy"]))]
    with pytest.raises(tb.SettingsError, match="no figure 'brier'"):
        curve.plot("brier")


def test_a_class_that_small_sizes_have_not_seen_is_scored_all_the_same():
    rare = {"x": TABLE["x"][:60], "y": np.array(["a"] * 50 + ["b"] * 6 + ["c"] * 4)}
    curve = tb.learning_curve(rare, "y", sizes=(3, 30), folds=2)
    assert np.isfinite(curve.held_out["log_loss"]).all()


@pytest.mark.parametrize(
    ("ask", "said"),
    [
        (lambda: tb.learning_curve(TABLE, SCHEMA, sizes=(0, 1)), "sizes="),
        (lambda: tb.learning_curve(TABLE, SCHEMA, sizes=(1000,)), "training rows"),
        (lambda: tb.learning_curve(TABLE, SCHEMA, figures=["accurracy"]), "did you mean 'accuracy'"),
        (lambda: tb.validation_curve(TABLE, SCHEMA, over="alfa"), "did you mean 'alpha'"),
        (lambda: tb.validation_curve(TABLE, SCHEMA, values=[]), "no values"),
        (lambda: tb.validation_curve(TABLE, SCHEMA, over="words", column="x"), "'x' has no words"),
        (lambda: tb.validation_curve({"c": TABLE["c"], "y": Y}, "y", over="bins"), "no column that has bins"),
    ],
)
def test_what_makes_no_curve_is_refused(ask, said):
    with pytest.raises(tb.SettingsError, match=said):
        ask()


def test_weights_count_in_the_figures():
    weights = np.where(Y == "a", 2.0, 1.0)
    curve = tb.learning_curve(TABLE, SCHEMA, sizes=(1.0,), folds=3, weights=weights)
    assert curve.rows[0] == pytest.approx(weights.sum() * 2 / 3, rel=0.05)
