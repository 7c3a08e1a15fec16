"""Rivals: each against its definition or scikit-learn, and the comparison on the same folds."""

from __future__ import annotations

import importlib.util
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import ComplementNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from test_folds import mixed, mixed_schema, taken

import tallybayes as tb
from tallybayes.data.sources import open_source
from tallybayes.selection.rivals import nearest, peers
from tallybayes.selection.rivals.nearest import Nearest
from tallybayes.selection.rivals.rivals import ExactMatch, Features, Majority, Rows


def flowers(n: int = 150, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return {
        "long": rng.normal(y * 1.0, 1.0),
        "wide": rng.normal(y * 0.6, 1.0) * 100 + 5000,
        "hue": [str(v) for v in np.where(rng.random(n) < 0.6, y, rng.integers(0, 4, n))],
        "y": [("iris", "lily", "rose")[i] for i in y],
    }


SCHEMA = tb.Schema([tb.Column("long", "number"), tb.Column("wide", "number"), tb.Column("hue", "category")], target="y")
CLASSES = ["iris", "lily", "rose"]


def encoded(data: Any, under: tb.Schema = SCHEMA) -> Rows:
    return Rows.labelled(open_source(data), under, sorted(set(data[under.target])))


def plain(data: Any, under: tb.Schema = SCHEMA) -> Rows:
    return Rows.plain(open_source(data), under)


def test_majority_and_exact_match() -> None:
    data = {"a": ["u", "u", "u", "v"], "b": ["1", "1", "2", "2"], "y": ["p", "q", "q", "q"]}
    under = tb.Schema([tb.Column("a", "category"), tb.Column("b", "category")], target="y")
    rows = encoded(data, under)
    asked = plain({"a": ["u", "u", "w", None], "b": ["1", "2", "2", "1"]}, under)
    np.testing.assert_array_equal(Majority.fit(rows, under, 2).predict_proba(asked), [[0.25, 0.75]] * 4)
    counter = ExactMatch.fit(rows, under, 2)
    np.testing.assert_array_equal(counter.predict_proba(asked), [[0.5, 0.5], [0.0, 1.0], [0.25, 0.75], [0.25, 0.75]])
    np.testing.assert_array_equal(counter.seen(asked), [True, True, False, False])


def test_neighbours_are_scikit_learns(monkeypatch: pytest.MonkeyPatch) -> None:
    train, test = flowers(seed=1), flowers(40, seed=2)
    rows = encoded(train)
    ours = Nearest(9, imagined=1)(rows, SCHEMA, 3)
    features = Features.of(rows, SCHEMA)

    def points(some: Rows) -> np.ndarray:
        return np.hstack([features.number_matrix(some), features.one_hot(some).toarray() / np.sqrt(2)])

    theirs = KNeighborsClassifier(9).fit(points(rows), rows.labels).predict_proba(points(plain(test)))
    share = np.bincount(rows.labels) / 150
    expected = (theirs * 9 + share) / 10
    np.testing.assert_allclose(ours.predict_proba(plain(test)), expected, atol=1e-12)
    monkeypatch.setattr(nearest, "_AT_ONCE", 500)  # a few rows at a time
    np.testing.assert_allclose(ours.predict_proba(plain(test)), expected, atol=1e-12)


def test_neighbours_of_mixed_columns_find_the_row_itself() -> None:
    data = mixed(60, seed=5)
    under = mixed_schema(data)
    ours = Nearest(1, imagined=1)(encoded(data, under), under, 3)
    p = ours.predict_proba(plain(data, under))
    assert (np.array(["ham", "spam", "unsure"])[p.argmax(axis=1)] == np.array(data["y"])).all()
    np.testing.assert_allclose(p.sum(axis=1), 1.0)


@pytest.mark.parametrize("classes", [2, 3])
def test_b12_the_twin_is_logistic_regression_started_from_naive_bayes(classes: int) -> None:
    data = flowers(seed=4)
    if classes == 2:
        data = taken(data, np.array(data["y"]) != "rose")
    twin = tb.logistic_twin(data, SCHEMA)
    # the optimum is scikit-learn's on the same features: numbers standardised, categories as ones
    rows = encoded(data)
    x = np.hstack([Features.of(rows, SCHEMA).number_matrix(rows), Features.of(rows, SCHEMA).one_hot(rows).toarray()])
    theirs = LogisticRegression(C=1.0, tol=1e-10, max_iter=10_000).fit(x, rows.labels)
    np.testing.assert_allclose(twin.predict_proba(data), theirs.predict_proba(x), atol=2e-4)
    # side by side with what it started from: naive Bayes' own W
    table = twin.table.to_pandas()
    linear = tb.count(data, SCHEMA).model(tb.Settings(families={"long": "gaussian-shared", "wide": "gaussian-shared"}))
    w = linear.linear().W
    np.testing.assert_allclose(table["naive_bayes"].to_numpy().reshape(-1, classes).T, w - w.mean(axis=0), rtol=1e-9)
    assert list(table["feature"][::classes]) == list(linear.linear().names)
    assert "naive Bayes     logistic" in repr(twin)


def test_the_twin_without_penalty_has_no_slope_left() -> None:
    data = taken(flowers(seed=6), np.array(flowers(seed=6)["y"]) != "rose")
    twin = tb.logistic_twin(data, SCHEMA, penalty=0.0)
    assert twin.loss[1] < twin.loss[0]
    p = twin.predict_proba(data)
    hot = np.array([np.array(CLASSES[:2]) == c for c in data["y"]], dtype=float)
    x = (np.array([data["long"], data["wide"]]) - np.mean([data["long"], data["wide"]], axis=1, keepdims=True)).T
    slope = (p - hot).T @ (x / x.std(axis=0))  # of Σ log(1 + exp(−y·w·x))
    np.testing.assert_allclose(slope, 0.0, atol=0.02)


def test_the_twin_reads_text_and_leaves_words_sparse() -> None:
    data = {
        "t": ["win cash now", "cash prize", "lunch today", "see you today"] * 5,
        "y": ["spam", "spam", "ham", "ham"] * 5,
    }
    twin = tb.logistic_twin(data, tb.Schema([tb.Column("t", "text")], target="y"))
    assert twin.predict_proba({"t": ["cash", "lunch", "unheard of"]}).argmax(axis=1).tolist()[:2] == [1, 0]
    assert twin.loss[1] < 0.2


def test_scikit_learns_words() -> None:
    data = {
        "t": ["win cash now", "cash prize", "lunch today", "see you today"] * 5,
        "y": ["spam", "spam", "ham", "ham"] * 5,
    }
    under = tb.Schema([tb.Column("t", "text")], target="y")
    rows = encoded(data, under)
    x = Features.of(rows, under).word_matrix(rows)
    for name, estimator in (("MultinomialNB", MultinomialNB()), ("ComplementNB", ComplementNB())):
        fitted = peers.peers(under)[f"scikit-learn {name}"](rows, under, 2)
        expected = estimator.fit(x, rows.labels).predict_proba(x)
        np.testing.assert_allclose(fitted.predict_proba(plain(data, under)), expected, rtol=1e-12)


def test_f5_rivals_on_the_same_folds_with_time_and_memory() -> None:
    data = flowers(90, seed=7)
    data["long"][3] = np.nan
    data["hue"][4] = None
    found = tb.compare(data, SCHEMA, folds=3, settings=tb.Settings())
    assert found.names[0] == "tallybayes"
    assert set(found.names[1:5]) == {
        "majority class", "exact-match counter", "nearest neighbours", "logistic regression (twin)"
    }  # fmt: skip
    assert {n for n in found.names if n.startswith("scikit-learn")} == {
        "scikit-learn GaussianNB", "scikit-learn CategoricalNB", "scikit-learn gradient boosting"
    }  # fmt: skip
    ours = tb.cross_validate(data, SCHEMA, settings=tb.Settings(), folds=3, stratify=True)
    np.testing.assert_array_equal(found.evaluation.folds, ours.folds)
    np.testing.assert_allclose(found.evaluation.forecasts["tallybayes"][0], ours.forecasts["settings"][0], atol=1e-12)
    np.testing.assert_allclose(
        found.evaluation.figure("log_loss", "majority class")[0], found.evaluation.baseline["log_loss"], rtol=1e-12
    )
    for name in found.names:
        np.testing.assert_allclose(found.evaluation.forecasts[name][0].sum(axis=1), 1.0, err_msg=name)
        assert found.fit_seconds[name] > 0
        assert found.predict_seconds[name] > 0
        assert found.peak_bytes[name] > 0
    assert found.never_seen == 1.0  # numbers never repeat
    lines = repr(found).splitlines()
    assert lines[0].startswith("90 rows, 3 classes, 3 folds")
    assert len(lines) == 2 + len(found.names) + 1
    assert "peak MB" in lines[1]
    assert found.twin is not None
    table = found.table
    assert table["classifier"].to_pylist() == list(found.names)
    assert {"log_loss", "log_loss_low", "fit_seconds", "peak_megabytes"} <= set(found.to_pandas().columns)


def test_rivals_by_name_and_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    data = mixed(45, seed=8)
    under = mixed_schema(data)
    found = tb.compare(data, under, folds=3, rivals=["majority class", "nearest neighbours"], memory=False)
    assert found.names == ("tallybayes", "majority class", "nearest neighbours")
    assert found.twin is None
    own = tb.compare(data, under, folds=3, rivals={"three neighbours": tb.Nearest(k=3)})
    assert own.names == ("tallybayes", "three neighbours")
    with pytest.raises(tb.SettingsError, match="did you mean 'majority class'"):
        tb.compare(data, under, rivals=["majority clas"])
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert peers.peers(under) == {}


def test_one_class_has_one_answer() -> None:
    rng = np.random.default_rng(9)
    found = tb.compare({"x": rng.normal(size=20), "c": ["u", "v"] * 10, "y": ["a"] * 20}, "y", folds=2, memory=False)
    assert len(found.names) > 4
    for name in found.names:
        assert found.evaluation.figure("log_loss", name)[0] == 0.0


def test_the_lectures_neighbours_are_scikit_learns() -> None:
    train, test = flowers(seed=1), flowers(40, seed=2)
    numbers = [c.name for c in SCHEMA.counted if c.like == "number"]
    under = SCHEMA._with(columns=[SCHEMA[n] for n in numbers])
    x, asked = (np.column_stack([part[n] for n in numbers]) for part in (train, test))
    for k in (1, 5):
        theirs = KNeighborsClassifier(k).fit(x, train["y"])
        ours = tb.Nearest(k=k, scaled=False).fit(train, schema=under)
        assert list(ours.classes) == theirs.classes_.tolist()
        np.testing.assert_allclose(ours.predict_proba(test), theirs.predict_proba(asked), atol=1e-12)
        assert ours.predict(test).tolist() == theirs.predict(asked).tolist()
        far, rows = theirs.kneighbors(asked[:1])
        found = ours.near({n: test[n][0] for n in numbers})
        assert [f.row for f in found] == rows[0].tolist()
        np.testing.assert_allclose([f.distance for f in found], far[0], atol=1e-7)
        assert [f.label for f in found] == [train["y"][i] for i in rows[0]]


def test_neighbours_from_any_rows_with_labels_of_any_type() -> None:
    ours = tb.Nearest(k=3).fit(np.array([[1.0], [2.0], [8.0], [9.0], [10.0]]), [1, 1, 2, 2, 2])
    assert ours.predict(np.array([[1.5], [9.5]])).tolist() == [1, 2] and ours.classes == (1, 2)
    assert "3 nearest of 5 rows vote for 1, 2" in str(ours)
    mixed_rows = {"x": [1.0, None, 9.0], "c": ["u", "v", "v"], "y": ["a", "b", None]}
    assert tb.Nearest(k=1).fit(mixed_rows, "y").predict({"x": 1.0, "c": "u"}).tolist() == ["a"]


@pytest.mark.parametrize("bad", [{"k": 0}, {"k": True}, {"k": 1.5}, {"imagined": -1}])
def test_neighbours_that_cannot_be(bad: dict) -> None:
    with pytest.raises(tb.SettingsError):
        tb.Nearest(**bad)


@pytest.mark.parametrize("penalty", [-1.0, float("nan"), float("inf")])
def test_a_penalty_that_is_none_is_refused(penalty: float) -> None:
    with pytest.raises(tb.SettingsError, match="penalty="):
        tb.logistic_twin({"x": [1.0, 2.0, 3.0, 4.0], "y": ["a", "a", "b", "b"]}, "y", penalty=penalty)
