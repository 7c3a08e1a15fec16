"""Metrics against scikit-learn, and the bootstrap against its definition."""

from __future__ import annotations

import inspect
import pickle
import pydoc

import numpy as np
import pytest
from sklearn import metrics as sk

import tallybayes as tb
from tallybayes.selection.measure import bootstrap, curves, metrics


def forecasts(
    classes: int, seed: int, n: int = 300, rounded: bool = False
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    y = rng.choice(classes, n, p=rng.dirichlet(np.full(classes, 3.0)))
    score = rng.normal(size=(n, classes)) + 1.2 * (np.arange(classes) == y[:, None])
    score = np.round(score, 1) if rounded else score  # ties
    p = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    if rounded:
        p = np.round(p, 2)
        p[:, 0] += 1 - p.sum(axis=1)
        p = np.clip(p, 0, 1)
    return y, p, rng.choice([0.0, 0.5, 1.0, 2.0], n)


@pytest.mark.parametrize("name", sorted(metrics.METRICS))
def test_a_metric_shows_the_parameters_by_which_it_is_called_and_can_be_pickled(name: str) -> None:
    metric = getattr(tb.metrics, name)
    assert list(inspect.signature(metric).parameters) == ["labels", "p", "weights"]
    shown = pydoc.plain(pydoc.render_doc(metric))
    assert f"{name}(labels: 'Any', p: 'Any', weights: 'Any' = None) -> 'float'" in shown and "Scored" not in shown
    assert pickle.loads(pickle.dumps(metric)) is metric


CASES = [(c, w, r) for c in (2, 3, 5) for w in (False, True) for r in (False, True)]


@pytest.mark.parametrize(("classes", "weighted", "rounded"), CASES)
def test_f3_every_metric_is_scikit_learns(classes: int, weighted: bool, rounded: bool) -> None:
    y, p, w = forecasts(classes, seed=classes, rounded=rounded)
    w = w if weighted else None
    hat = p.argmax(axis=1)
    hot = np.eye(classes)[y]
    positive = slice(1, 2) if classes == 2 else slice(None)
    each = sk.precision_recall_fscore_support(y, hat, sample_weight=w, zero_division=0)
    expected = {
        "accuracy": sk.accuracy_score(y, hat, sample_weight=w),
        "error": sk.zero_one_loss(y, hat, sample_weight=w),
        "log_loss": np.average(-np.log(np.maximum(p[np.arange(len(y)), y], 1e-15)), weights=w),
        "brier": np.average(((p - hot) ** 2).sum(axis=1), weights=w) / 2,
        "balanced_accuracy": sk.balanced_accuracy_score(y, hat, sample_weight=w),
        "matthews": sk.matthews_corrcoef(y, hat, sample_weight=w),
        "roc_auc": np.mean([sk.roc_auc_score(hot[:, k], p[:, k], sample_weight=w) for k in range(classes)][positive]),
        "average_precision": np.mean(
            [sk.average_precision_score(hot[:, k], p[:, k], sample_weight=w) for k in range(classes)][positive]
        ),
    }
    for average in ("macro", "micro", "weighted"):
        for name, score in (("precision", sk.precision_score), ("recall", sk.recall_score), ("f1", sk.f1_score)):
            expected[f"{name}_{average}"] = score(y, hat, average=average, sample_weight=w, zero_division=0)
    if not rounded:
        expected["log_loss"] = sk.log_loss(y, p, sample_weight=w)
    assert set(expected) | {"calibration_error"} == set(metrics.METRICS)
    for name, value in expected.items():
        assert getattr(metrics, name)(y, p, w) == pytest.approx(value, rel=1e-12, abs=1e-12), name
    if classes == 2 and not rounded:
        assert metrics.brier(y, p, w) == pytest.approx(sk.brier_score_loss(y, p[:, 1], sample_weight=w), rel=1e-12)
    np.testing.assert_allclose(metrics.confusion(y, p, w), sk.confusion_matrix(y, hat, sample_weight=w), rtol=1e-12)
    table = metrics.by_class(y, p, w)
    for name, column in zip(("precision", "recall", "f1", "rows"), each, strict=True):
        if not (weighted and name == "rows"):
            np.testing.assert_allclose(table[name], column, rtol=1e-12, err_msg=name)
    matrix = sk.multilabel_confusion_matrix(y, hat, sample_weight=w)
    np.testing.assert_allclose(table["specificity"], matrix[:, 0, 0] / (matrix[:, 0, 0] + matrix[:, 0, 1]), rtol=1e-12)


def test_calibration_error_by_its_definition() -> None:
    y, p, w = forecasts(3, seed=4)
    top, hit = p.max(axis=1), p.argmax(axis=1) == y
    total = 0.0
    for i in range(15):
        inside = (top > i / 15) & (top <= (i + 1) / 15)
        if w[inside].sum():
            total += abs((w * (hit - top))[inside].sum())
    assert metrics.calibration_error(y, p, w) == pytest.approx(total / w.sum(), rel=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
def test_curves_are_scikit_learns(weighted: bool) -> None:
    y, p, w = forecasts(2, seed=7, rounded=True)
    w = w if weighted else None
    roc = curves.roc_curve(y, p, weights=w)
    fpr, tpr, _ = sk.roc_curve(y, p[:, 1], sample_weight=w, drop_intermediate=False)
    kept = np.concatenate(([True], (np.diff(roc.x) > 0) | (np.diff(roc.y) > 0)))  # rows of weight 0 move nothing
    theirs = np.concatenate(([True], (np.diff(fpr) > 0) | (np.diff(tpr) > 0)))
    np.testing.assert_allclose(roc.x[kept], fpr[theirs], atol=1e-12)
    np.testing.assert_allclose(roc.y[kept], tpr[theirs], atol=1e-12)
    area = np.sum(np.diff(roc.x) * (roc.y[1:] + roc.y[:-1]) / 2)
    assert area == pytest.approx(metrics.roc_auc(y, p, w), rel=1e-12)
    pr = curves.precision_recall_curve(y, p, weights=w)
    area = np.sum(np.diff(pr.x, prepend=0) * pr.y)
    assert area == pytest.approx(metrics.average_precision(y, p, w), rel=1e-12)


def test_reliability_has_wilson_intervals() -> None:
    y, p, _ = forecasts(2, seed=8, n=2000)
    found = curves.reliability(y, p, 1, bins=10)
    at = np.ceil(p[:, 1] * 10) - 1
    for i, b in enumerate(np.unique(at)):
        inside = at == b
        assert found.observed[i] == pytest.approx(y[inside].mean(), rel=1e-12)
        assert found.forecast[i] == pytest.approx(p[inside, 1].mean(), rel=1e-12)
        assert found.rows[i] == inside.sum()
    assert ((found.low < found.observed) & (found.observed < found.high)).all()
    assert "95 % interval" in repr(found)
    doubled = curves.reliability(np.tile(y, 2), np.tile(p, (2, 1)), 1, np.full(4000, 0.5), bins=10)
    assert (doubled.high - doubled.low < found.high - found.low).all()  # twice as many rows, whatever they weigh
    # Newcombe (1998), table I: 81 of 263 and 0 of 20
    low, high = curves.wilson(np.array([81.0, 0.0]), np.array([263.0, 20.0]))
    np.testing.assert_allclose(low, [0.2553, 0.0], atol=5e-5)
    np.testing.assert_allclose(high, [0.3662, 0.1611], atol=5e-5)


def test_bootstrap_is_the_metric_of_the_rows_drawn() -> None:
    y, p, w = forecasts(3, seed=9, n=60)
    scored = metrics.Scored.of(y, p, w)
    rng = np.random.default_rng(5)
    at = rng.integers(0, 60, size=(40, 60))
    (drawn,) = bootstrap.draws(scored, 40, seed=5)
    for name, formula in metrics.METRICS.items():
        together = formula(scored, drawn)
        single = [getattr(metrics, name)(y[rows], p[rows], w[rows]) for rows in at]
        np.testing.assert_allclose(together, single, rtol=1e-10, atol=1e-12, err_msg=name)


def test_bootstrap_interval_of_a_mean_is_as_wide_as_it_should_be() -> None:
    y, p, _ = forecasts(2, seed=10, n=400)
    scored = [metrics.Scored.of(y, p)]
    value, low, high = bootstrap.interval(scored, metrics.METRICS["accuracy"], resamples=2000, seed=1)
    half = 1.96 * np.sqrt(value * (1 - value) / 400)
    assert (high - low) / 2 == pytest.approx(half, rel=0.1)
    again = [bootstrap.interval(scored, metrics.METRICS["log_loss"], resamples=200, seed=seed) for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


# ---- intervals without drawing rows


@pytest.mark.parametrize(
    ("way", "n_classes", "weighted"),
    [("one", 2, False), ("one", 4, True), ("repeated", 2, True), ("difference", 4, False), ("difference", 2, True)],
)
def test_intervals_are_those_of_drawing_rows(way: str, n_classes: int, weighted: bool) -> None:
    n = 700
    y, p, w = forecasts(n_classes, seed=n_classes, n=n)
    other = forecasts(n_classes, seed=n_classes + 10, n=n)[1]
    other = 0.6 * other + 0.4 * p
    one, two = (metrics.Scored.of(y, q, w if weighted else None) for q in (p, other))
    scored, less = {"one": ([one], []), "repeated": ([one, two], []), "difference": ([one], [two])}[way]
    figures = bootstrap.Figures(scored, less, seed=1)
    names = ("accuracy", "log_loss", "brier", "f1_macro", "matthews", "balanced_accuracy", *metrics.AREAS)
    for name in names:
        value, low, high = figures.interval(name)
        drawn = bootstrap.interval(scored, metrics.METRICS[name], resamples=400, seed=2, less=less)
        assert value == figures.value(name) == pytest.approx(float(drawn[0]), abs=1e-12), name
        wide = float(drawn[2] - drawn[1])
        assert high - low == pytest.approx(wide, rel=0.2), name
        assert (low, high) == pytest.approx((float(drawn[1]), float(drawn[2])), abs=0.12 * wide), name
    for name in metrics.PER_CLASS if way == "one" else ():
        value, low, high = figures.by_class(name)
        drawn = bootstrap.interval(scored, metrics.PER_CLASS[name], resamples=400, seed=2)
        np.testing.assert_allclose(value, drawn[0], atol=1e-12, err_msg=name)
        np.testing.assert_allclose(high - low, drawn[2] - drawn[1], rtol=0.25, err_msg=name)


def test_every_metric_has_an_interval_around_it() -> None:
    y, p, w = forecasts(3, seed=4, n=300)
    figures = bootstrap.Figures([metrics.Scored.of(y, p, w)])
    for name in metrics.METRICS:
        value, low, high = figures.interval(name)
        assert low <= value <= high, name
        assert value == pytest.approx(getattr(metrics, name)(y, p, w), rel=1e-12), name
    assert bootstrap.Figures([metrics.Scored.of(y, p, w)]).interval("matthews") == figures.interval("matthews")


def test_a_metric_of_ones_own_is_measured_by_drawing_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    y, p, _ = forecasts(2, seed=5, n=100)
    monkeypatch.setitem(metrics.METRICS, "sureness", lambda s, w: (w @ s.top) / w.sum(axis=1))
    scored = [metrics.Scored.of(y, p)]
    assert bootstrap.Figures(scored, seed=3).interval("sureness") == tuple(
        map(float, bootstrap.interval(scored, metrics.METRICS["sureness"], seed=3))
    )


def test_areas_of_distinct_probabilities_are_those_of_any() -> None:
    """What a row adds is w · d(area)/dw: by weights that differ a little, also on the short way of distinct ones."""
    rng = np.random.default_rng(6)
    n = 60
    for x in (rng.permutation(n) / n, rng.integers(0, 8, n) / 8):  # without and with equals
        y, p = rng.integers(0, 2, n), np.stack([1 - x, x], axis=1)
        area, rows = bootstrap.areas(metrics.Scored.of(y, p), 1)
        for i, name in enumerate(metrics.AREAS):
            metric = getattr(metrics, name)
            assert area[i] == pytest.approx(metric(y, p), rel=1e-12)
            slopes = [(metric(y, p, w) - metric(y, p)) / 1e-6 for w in np.ones(n) + 1e-6 * np.eye(n)]
            np.testing.assert_allclose(rows[i], slopes, atol=1e-5)
    weighted = metrics.Scored.of(y, p, np.where(np.arange(n) % 3, 2.0, 0.0))
    assert bootstrap.areas(weighted, 1)[0][1] == pytest.approx(metrics.average_precision(y, p, weighted.weights))


def test_what_all_rows_agree_on_is_not_certain() -> None:
    """Forty of forty right: an interval by drawing rows would be 1 to 1. Wilson (1927) has 0.912."""
    y = np.tile([0, 1], 20)
    figures = bootstrap.Figures([metrics.Scored.of(y, np.eye(2)[y] * 0.98 + 0.01)])
    assert figures.interval("accuracy") == pytest.approx((1.0, 40 / (40 + 1.959964**2), 1.0))
    assert figures.by_class("recall")[1] == pytest.approx(20 / (20 + 1.959964**2))
    assert figures.interval("roc_auc") == (1.0, 1.0, 1.0)
    one = bootstrap.Figures([metrics.Scored.of([1], [[0.9, 0.1]])])
    assert one.interval("accuracy")[2] > 0.7 and one.interval("calibration_error")[2] <= 1.0
    assert one.by_class("recall")[1].tolist() == [0.0, 0.0] and one.by_class("recall")[2][0] == 1.0


@pytest.mark.parametrize(("sure", "error"), [(1.0, 0.0), (0.5, 0.0965), (1.7, 0.0796)])
def test_the_interval_of_the_calibration_error_covers_it(sure: float, error: float) -> None:
    """Chance alone makes |gaps| positive: the bare bootstrap never covers the 0 of forecasts that are calibrated."""
    rng = np.random.default_rng(11)
    covered = []
    for seed in range(60):
        odds = rng.normal(0, 1.5, 200)
        y = (rng.random(200) < 1 / (1 + np.exp(-odds))).astype(int)
        p = 1 / (1 + np.exp(-sure * odds))  # `error` was measured on two million such rows
        figures = bootstrap.Figures([metrics.Scored.of(y, np.stack([1 - p, p], axis=1))], seed=seed)
        value, low, high = figures.interval("calibration_error")
        assert 0 <= low <= value <= high
        covered.append(low <= error <= high)
    assert np.mean(covered) > 0.9


def test_bounds_of_the_calibration_error_know_what_chance_makes() -> None:
    """Forecasts with the error that calibrated ones have by chance: the interval begins at 0 where it is usual."""
    rng = np.random.default_rng(12)
    p = rng.uniform(0.5, 1.0, 300)
    s = metrics.Scored.of((rng.random(300) < p).astype(int), np.stack([1 - p, p], axis=1))
    chance = metrics.calibration_by_chance(s, rng, 400)
    value, low, _ = bootstrap.Figures([s]).interval("calibration_error")
    assert (low == 0) == bool(value <= np.quantile(chance, 0.975))


def test_one_class_and_constant_forecasts() -> None:
    y, p = np.zeros(4, dtype=int), np.ones((4, 1))
    assert metrics.accuracy(y, p) == 1.0
    assert metrics.log_loss(y, p) == 0.0
    assert np.isnan(metrics.roc_auc(y, p))
    assert metrics.matthews(y, p) == 0.0
    assert np.isnan(bootstrap.Figures([metrics.Scored.of(y, p)]).interval("roc_auc")).all()
    y, p = np.array([0, 1, 1, 0]), np.full((4, 2), 0.5)
    assert metrics.roc_auc(y, p) == 0.5
    assert metrics.average_precision(y, p) == 0.5
    assert metrics.matthews(y, p) == 0.0
    np.testing.assert_array_equal(metrics.baseline([0, 1, 1, 1], 3), np.tile([0.25, 0.75, 0.0], (4, 1)))
    certain = np.array([[1.0, 0.0]])
    assert metrics.log_loss([1], certain) == pytest.approx(-np.log(1e-15))


@pytest.mark.parametrize(
    ("labels", "p", "weights", "message"),
    [
        ([0, 1], [[1.0, 0.0]], None, "shape"),
        ([], np.zeros((0, 2)), None, "no rows"),
        ([2], [[0.5, 0.5]], None, "class numbers from 0 to 1"),
        (["a"], [[0.5, 0.5]], None, "class numbers"),
        ([0], [[1.5, -0.5]], None, "not probabilities"),
        ([0], [[np.nan, 0.5]], None, "not probabilities"),
        ([0], [[1.0, 0.0]], [-1.0], "weight below 0"),
        ([0], [[1.0, 0.0]], [0.0], "none above"),
    ],
)
def test_bad_input_is_refused(labels: object, p: object, weights: object, message: str) -> None:
    with pytest.raises(tb.DataError, match=message):
        metrics.accuracy(labels, p, weights)


def test_a_wrong_name_gets_a_hint() -> None:
    with pytest.raises(tb.SettingsError, match="did you mean 'log_loss'"):
        bootstrap.Figures([metrics.Scored.of([0], [[1.0]])]).interval("logloss")
    with pytest.raises(tb.SettingsError, match="ROC curve needs"):
        curves.roc_curve([0, 0], [[1.0, 0.0]] * 2)
    with pytest.raises(tb.SettingsError, match="no row is of class"):
        curves.precision_recall_curve([0, 0], [[1.0, 0.0]] * 2)


def test_a_share_is_at_most_one_whatever_the_weights():
    weights = [1e6, 1, 1e-6, 1, 1, 1e6, 1, 1, 1e6, 1e-6, 1e6, 1e-6, 1, 1 / 3, 0.5, 1]
    assert tb.metrics.accuracy([0] * 16, [[1.0]] * 16, weights) == 1.0
    for seed in range(50):
        rng = np.random.default_rng(seed)
        weights = 10.0 ** rng.uniform(-6, 6, 40)
        assert tb.metrics.accuracy([0] * 40, [[0.75, 0.25]] * 40, weights) == 1.0


def typed_wrong(rows: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Forecasts of two classes, and the same where some labels were mistyped and make a third."""
    y, p, _ = forecasts(2, seed=5, n=1000)
    wrong = y.copy()
    wrong[:rows] = 2
    return y, p, wrong, np.hstack([p * 0.999, np.full((1000, 1), 0.001)])


@pytest.mark.parametrize("name", metrics.AREAS)
def test_a_class_too_rare_to_be_judged_is_left_out_of_the_mean_of_areas(name: str) -> None:
    area, which = getattr(metrics, name), metrics.AREAS.index(name)
    y, p, wrong, q = typed_wrong(1)
    both = np.mean([area(np.where(y == k, 1, 0), np.stack([1 - p[:, k], p[:, k]], axis=1)) for k in (0, 1)])
    assert area(wrong, q) == pytest.approx(both, abs=0.01)
    figures = bootstrap.Figures([metrics.Scored.of(wrong, q)])
    value, low, high = figures.interval(name)
    assert value == pytest.approx(area(wrong, q), rel=1e-12) and low < value < high and high - low < 0.12
    each = figures.by_class(name)
    assert (each[1][2], each[2][2]) == (0.0, 1.0)  # the rank of a single row says nothing of the next
    assert value == pytest.approx(each[0][:2].mean(), rel=1e-12)
    two = bootstrap.Figures([metrics.Scored.of([0] * 9 + [1], np.linspace([1.0, 0.0], [0.0, 1.0], 10))])
    assert two.interval(name) == (1.0, 0.0, 1.0)
    _, _, five, q = typed_wrong(5)
    hot = np.eye(3)[five]
    theirs = (sk.roc_auc_score, sk.average_precision_score)[which]
    assert area(five, q) == pytest.approx(np.mean([theirs(hot[:, k], q[:, k]) for k in range(3)]), rel=1e-12)


def test_rows_that_weigh_nothing_do_not_make_a_class_known_and_a_few_rows_of_each_are_judged_as_they_are() -> None:
    _, _, wrong, q = typed_wrong(9)
    weights = np.where(np.arange(1000) < 6, 0.0, 0.25)
    without = metrics.roc_auc(np.where(wrong == 2, 0, wrong), q)
    assert metrics.roc_auc(wrong, q, weights) == pytest.approx(without, abs=0.02)
    few = metrics.by_class(wrong[:12], q[:12])["roc_auc"]
    assert metrics.roc_auc(wrong[:12], q[:12]) == pytest.approx(np.nanmean(few))
