"""Cross-validation and held-out evaluation: the same figures as doing it by hand, in every way of folding."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from shared_data import shared
from sklearn.model_selection import LeaveOneOut
from test_folds import mixed, mixed_schema, taken

import tallybayes as tb
from tallybayes.data.sources import open_source
from tallybayes.selection.measure import metrics
from tallybayes.selection.parts import take_rows

ALPHAS = [tb.Settings(smoothing=tb.Laplace(a)) for a in (1.0, 0.1)]


def by_hand(
    data: dict[str, Any], under: tb.Schema, settings: tb.Settings, folds: np.ndarray, classes: Any
) -> np.ndarray:
    """Probabilities by refitting on the other folds."""
    p = np.zeros((len(folds), len(classes)))
    for k in np.unique(folds):
        model = tb.count(taken(data, folds != k), under).model(settings)
        at = [list(classes).index(c) for c in model.classes]
        p[np.ix_(folds == k, at)] = model.predict_proba(taken(data, folds == k))
    return p


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    out = mixed(120, seed=11)
    out["site"] = [f"site {i % 7}" for i in range(120)]
    out["day"] = [i // 10 for i in range(120)]
    return out


@pytest.mark.parametrize(
    "how", [{}, {"stratify": True}, {"groups": "site"}, {"by": "site"}, {"folds": 4, "seed": 5}], ids=str
)
def test_f2_figures_are_those_of_refitting_by_hand(data: dict[str, Any], how: dict[str, Any]) -> None:
    under = mixed_schema(data)
    found = tb.cross_validate(data, under, settings=ALPHAS, **how)
    assert found.rows.tolist() == list(range(120))  # every row is scored once
    if "by" in how or "groups" in how:
        sites = np.array(data["site"])
        assert all(len(set(found.folds[sites == s])) == 1 for s in set(sites))
    for name, settings in zip(found.names, ALPHAS, strict=True):
        p = by_hand(data, under, settings, found.folds, found.classes)
        np.testing.assert_allclose(found.forecasts[name][0], p, atol=1e-12)
        for metric in metrics.METRICS if how == {} else ("log_loss",):
            value, low, high = found.figure(metric, name)
            assert value == pytest.approx(getattr(metrics, metric)(found.labels, np.minimum(p, 1), None), rel=1e-9)
            assert low <= high
    best = found.best()
    assert found.figure("log_loss", best)[0] == min(found.figure("log_loss", n)[0] for n in found.names)
    if how:
        return
    table = found.table
    assert table.num_rows == len(ALPHAS)
    assert set(metrics.METRICS) <= set(table.column_names)
    assert found.to_pandas()["log_loss"].tolist() == [found.figure("log_loss", n)[0] for n in found.names]
    assert found.best("accuracy") == found.names[int(np.argmax(table["accuracy"].to_pylist()))]


def test_equal_rows_stay_together() -> None:
    twice = {name: [str(i % 40) for i in range(80)] for name in "uvx"} | {"y": ["a", "b"] * 40}
    under = tb.Schema([tb.Column(c, "category") for c in "uvx"], target="y")
    found = tb.cross_validate(twice, under, settings=tb.Settings())
    np.testing.assert_array_equal(found.folds[:40], found.folds[40:])
    # one column of forty values has so many equal rows by chance: no fold should have all of a sort
    alone = tb.Schema(under.columns[:1], target="y")
    found = tb.cross_validate({k: twice[k] for k in "uy"}, alone, settings=tb.Settings())
    assert (found.folds[:40] != found.folds[40:]).any()


def test_time_goes_forward(data: dict[str, Any]) -> None:
    found = tb.cross_validate(data, mixed_schema(data), settings=ALPHAS[1], order="day", folds=4)
    assert found.rows.tolist() == list(range(30, 120))
    for k in (1, 2, 3):
        before, now = np.arange(120) < 30 * k, (np.arange(120) // 30) == k
        model = tb.count(taken(data, before), mixed_schema(data)).model(ALPHAS[1])
        at = [found.classes.index(c) for c in model.classes]
        np.testing.assert_allclose(
            found.forecasts["settings"][0][found.folds == k][:, at], model.predict_proba(taken(data, now)), atol=1e-12
        )
    assert list(found.by_fold("accuracy")) == ["1", "2", "3"]
    assert "before it" in found.title
    positions = tb.cross_validate(data, mixed_schema(data), settings=ALPHAS[1], order=True, folds=4)
    np.testing.assert_array_equal(positions.folds, found.folds)


def test_repeats_are_averaged(data: dict[str, Any]) -> None:
    under = mixed_schema(data)
    found = tb.cross_validate(data, under, settings=tb.Settings(), stratify=True, repeats=3, folds=5, seed=3)
    assert len(found.forecasts["settings"]) == 3
    once = tb.cross_validate(data, under, settings=tb.Settings(), stratify=True, folds=5, seed=3)
    np.testing.assert_array_equal(found.forecasts["settings"][0], once.forecasts["settings"][0])
    each = [metrics.log_loss(found.labels, np.minimum(p, 1)) for p in found.forecasts["settings"]]
    assert len(set(each)) == 3
    assert found["log_loss"] == pytest.approx(np.mean(each), rel=1e-12)
    assert found.figure("log_loss")[0] == pytest.approx(np.mean(each), rel=1e-12)


def test_f2_leave_one_out(data: dict[str, Any]) -> None:
    some = {k: v[:30] for k, v in data.items()}
    under = tb.Schema([tb.Column("colour", "category"), tb.Column("text", "text")], target="y")
    found = tb.cross_validate(some, under, settings=tb.Settings(), folds="leave-one-out")
    p = by_hand(some, under, tb.Settings(), np.arange(30), found.classes)
    np.testing.assert_allclose(found.forecasts["settings"][0], p, atol=1e-12)
    assert sum(1 for _ in LeaveOneOut().split(p)) == len(found.rows)
    for mistake in found.mistakes(2):
        assert mistake.explanation.probabilities.max() == pytest.approx(mistake.probability, abs=1e-12)


def test_the_whole_fit_is_tried_when_no_settings_are_given(data: dict[str, Any]) -> None:
    plain = {k: data[k] for k in ("colour", "size", "count", "y")}
    seen: list[int] = []

    def fitter(rows: Any) -> tb.Model:
        model = tb.fit(rows, "y")
        seen.append(model.tally.rows)
        return model

    found = tb.cross_validate(plain, "y", folds=4, stratify=True, fitter=fitter)
    assert seen == [90] * 4
    default = tb.cross_validate(plain, "y", folds=4, stratify=True)
    np.testing.assert_array_equal(default.forecasts["fit"][0], found.forecasts["fit"][0])
    for k in range(4):  # the schema is inferred from the training rows, too
        model = tb.fit(taken(plain, found.folds != k), "y")
        np.testing.assert_allclose(
            found.forecasts["fit"][0][found.folds == k], model.predict_proba(taken(plain, found.folds == k)), atol=1e-12
        )
    given = tb.cross_validate(plain, tb.infer(plain, "y"), folds=4, stratify=True)
    assert given.names == ("fit",)
    forward = tb.cross_validate(plain, "y", folds=4, order=True, repeats=1)
    assert forward.rows.tolist() == list(range(30, 120))
    assert found.mistakes(1)[0].explanation is not None


def test_the_whole_fit_ignores_what_decides_folds_and_takes_weights() -> None:
    rng = np.random.default_rng(0)
    data = {
        "x": rng.normal(size=60),
        "site": [f"s{i % 6}" for i in range(60)],
        "heavy": [1.0 + i % 3 for i in range(60)],
        "y": ["a", "b", "a"] * 20,
    }
    found = tb.cross_validate(data, "y", groups="site", weights="heavy", folds=3)
    assert found.weights is not None
    assert found.weights.tolist() == data["heavy"]
    assert {c.column for c in found.mistakes(1)[0].explanation.contributions} <= {"prior", "x"}


def test_the_majority_class_is_that_of_the_weights() -> None:
    rng = np.random.default_rng(4)
    y = np.array(["a", "b"] * 60)
    data = {"x": rng.normal(size=120) + (y == "a"), "y": y}
    weights = np.where(y == "a", 9.0, 1.0)
    share = -(0.9 * np.log(0.9) + 0.1 * np.log(0.1))  # every fold has as many of each
    ways = [
        tb.cross_validate(data, "y", weights=weights, folds=3, stratify=True),
        tb.cross_validate(data, "y", weights=weights, folds=3, stratify=True, settings=tb.Settings()),
        tb.compare(data, "y", weights=weights, folds=3, rivals=["majority class"], memory=False).evaluation,
    ]
    for found in ways:
        assert found.baseline["log_loss"] == pytest.approx(share, rel=1e-9)
    assert ways[2].figure("log_loss", "majority class")[0] == pytest.approx(share, rel=1e-9)


def test_evaluate_a_model_on_held_out_rows(data: dict[str, Any]) -> None:
    under = mixed_schema(data)
    first, last = np.arange(120) < 80, np.arange(120) >= 80
    model = tb.count(taken(data, first), under).model()
    rest = taken(data, last)
    rest["y"][3] = "never seen"
    rest["y"][4] = None
    found = tb.evaluate(model, rest)
    assert found.classes == ("ham", "never seen", "spam", "unsure")
    assert found.rows.tolist() == [i for i in range(40) if i != 4]
    assert found.forecasts["model"][0][3, 1] == 0.0
    np.testing.assert_allclose(found.forecasts["model"][0].sum(axis=1), 1.0)
    hits = model.predict(rest) == np.array(rest["y"], dtype=object)
    assert found["accuracy"] == pytest.approx(np.delete(hits, 4).mean())
    weights = np.arange(40) % 3
    heavy = tb.evaluate(model, rest, weights=weights)
    assert heavy["accuracy"] == pytest.approx(np.average(np.delete(hits, 4), weights=np.delete(weights, 4)))


def test_closer_looks(data: dict[str, Any]) -> None:
    found = tb.cross_validate(data, mixed_schema(data), settings={"one": ALPHAS[0], "ten": ALPHAS[1]}, stratify=True)
    text = repr(found)
    assert text.splitlines()[0] == "120 rows, 3 classes, 10 folds by subtraction"
    assert [line.split()[0] for line in text.splitlines()[2:]] == ["one", "ten", "majority"]
    assert "<table>" in found._repr_html_()
    classes = found.by_class("ten")
    assert classes["class"].to_pylist() == ["ham", "spam", "unsure"]
    assert classes["rows"].to_pylist() == [data["y"].count(c) for c in ("ham", "spam", "unsure")]
    assert all(a <= b <= c for a, b, c in zip(classes["f1_low"], classes["f1"], classes["f1_high"], strict=True)
               if a.is_valid and str(a) != "nan" for a, b, c in [(a.as_py(), b.as_py(), c.as_py())])  # fmt: skip
    table = found.confusion()
    assert sum(sum(table[c].to_pylist()) for c in ("ham", "spam", "unsure")) == 120
    assert found.reliability("one").rows.sum() == 120
    assert found.roc("spam").y[-1] == 1.0
    assert found.precision_recall("spam").x[-1] == 1.0
    share = max(data["y"].count(c) for c in set(data["y"])) / 120
    assert found.baseline["accuracy"] == pytest.approx(share)
    with pytest.raises(tb.SettingsError, match="did you mean 'spam'"):
        found.roc("spm")
    with pytest.raises(tb.SettingsError, match="setting number 2, of 2"):
        found.by_class(2)
    for n in (-1, 2.5, "x"):
        with pytest.raises(tb.SettingsError, match="mistakes"):
            found.mistakes(n)  # type: ignore[arg-type]
    with pytest.raises(tb.SettingsError, match=r"a model of type str[\s\S]*tb.load"):
        tb.evaluate("model.tb.parquet", data)  # type: ignore[arg-type]
    with pytest.raises(tb.SettingsError, match="did you mean 'one'"):
        found.figure("accuracy", "onee")
    with pytest.raises(tb.SettingsError, match="did you mean 'log_loss'"):
        found.figure("log_los")
    with pytest.raises(tb.SettingsError, match="has no folds"):
        tb.evaluate(tb.count(data, mixed_schema(data)).model(), data).by_fold()


def test_f6_most_confident_mistakes_are_explained(data: dict[str, Any]) -> None:
    found = tb.cross_validate(data, mixed_schema(data), settings=tb.Settings(), stratify=True)
    mistakes = found.mistakes(4)
    p = found.forecasts["settings"][0]
    wrong = p.argmax(axis=1) != found.labels
    assert mistakes.of == wrong.sum()
    assert [m.probability for m in mistakes] == sorted(p.max(axis=1)[wrong])[::-1][:4]
    for m in mistakes:
        assert data["y"][m.row] == m.truth != m.answer
        assert m.explanation.probabilities.max() == pytest.approx(m.probability, abs=1e-12)  # by the fold's own model
    assert f"of {wrong.sum()} mistakes" in repr(mistakes)
    assert "prior" in str(mistakes[0])
    assert found.mistakes(1, explain=False)[0].explanation is None


# ---- splits


@pytest.mark.parametrize("kind", ["dict", "pandas", "polars", "arrow", "list", "matrix", "sparse"])
def test_f1_split_by_a_seed_returns_what_it_was_given(kind: str) -> None:
    n = 50
    table = {"x": list(range(n)), "y": ["a" if i % 5 else "b" for i in range(n)]}
    beside = kind in ("matrix", "sparse")
    given: Any = {
        "dict": table,
        "pandas": pd.DataFrame(table, index=range(100, 100 + n)),
        "polars": pl.DataFrame(table),
        "arrow": pa.table(table),
        "list": [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)],
        "matrix": np.array(table["x"])[:, None],
        "sparse": scipy.sparse.csr_matrix(np.array(table["x"])[:, None]),
    }[kind]
    parts = tb.split(given, table["y"], seed=4) if beside else tb.split(given, "y", seed=4)
    assert list(parts) == ["train", "held_out", "test"]
    seen = []
    for name, size in (("train", 30), ("held_out", 10), ("test", 10)):
        rows = parts[name][0] if beside else parts[name]
        assert type(rows) is type(given)
        source = open_source(rows, parts[name][1], target="y") if beside else open_source(rows)
        (batch,) = source.batches()
        xs = np.asarray(batch["x"].toarray()[:, 0] if kind == "sparse" else batch["x"]).ravel().tolist()
        assert len(xs) == size
        assert sum(x % 5 == 0 for x in xs) == size // 5  # stratified
        if beside:
            assert parts[name][1] == [table["y"][x] for x in xs]
        seen += xs
    assert sorted(seen) == list(range(n))


def test_f1_split_by_a_column_and_by_groups(data: dict[str, Any]) -> None:
    part = ["train" if i % 3 else "test" for i in range(120)]
    parts = tb.split({**data, "part": part}, "y", by="part")
    assert {k: len(v["y"]) for k, v in parts.items()} == {"test": 40, "train": 80}
    parts = tb.split(data, "y", groups="site", shares=(0.7, 0.3))
    assert not set(parts["train"]["site"]) & set(parts["test"]["site"])
    assert len(parts["train"]["y"]) + len(parts["test"]["y"]) == 120
    assert 24 <= len(parts["test"]["y"]) <= 48
    assert tb.split(data, "y", seed=1)["test"]["size"].tolist() != tb.split(data, "y", seed=2)["test"]["size"].tolist()
    with pytest.raises(tb.SettingsError, match="by 'part' and by groups of 'site' at once"):
        tb.split({**data, "part": part}, "y", by="part", groups="site")
    loose = tb.split(data, "y", stratify=False)
    assert [len(p["y"]) for p in loose.values()] == [72, 24, 24]


def test_rows_of_a_stream() -> None:
    reader = pa.RecordBatchReader.from_batches(
        pa.schema({"x": pa.int64()}), pa.table({"x": list(range(10))}).to_batches(max_chunksize=3)
    )
    source = take_rows(reader, np.array([1, 4, 8]))
    assert [v for b in source.batches() for v in b["x"].to_pylist()] == [1, 4, 8]


# ---- bad input


def test_a_class_in_one_fold_is_warned_of() -> None:
    data = {"x": [str(i % 9) for i in range(41)], "y": ["a", "b"] * 20 + ["rare"]}
    with pytest.warns(tb.TallybayesWarning, match="all rows of 'rare' are in one fold"):
        found = tb.cross_validate(data, tb.Schema([tb.Column("x", "category")], target="y"), settings=tb.Settings())
    assert found.forecasts["settings"][0][40, 2] == 0.0
    assert found.figure("log_loss")[0] >= -np.log(1e-15) / 41


@pytest.mark.parametrize("settings", [tb.Settings(), None])
def test_one_class(settings: tb.Settings | None) -> None:
    data = {"x": ["u", "v", "w", "u"] * 5, "y": ["only"] * 20}
    under = tb.Schema([tb.Column("x", "category")], target="y")
    found = tb.cross_validate(data, under, settings=settings, folds=3, seed=1)
    assert found["accuracy"] == 1.0
    assert found["log_loss"] == 0.0
    assert np.isnan(found.figure("roc_auc")).all()
    assert "nan" not in repr(found)


def test_settings_are_named_by_what_tells_them_apart() -> None:
    data = {"x": ["u", "v"] * 10, "y": ["a", "b", "b", "a"] * 5}
    under = tb.Schema([tb.Column("x", "category")], target="y")
    some = [tb.Settings(smoothing=tb.Laplace(a)) for a in np.array([0.5, 2.0, 2.0])]
    found = tb.cross_validate(data, under, settings=some, stratify=True, folds=2)
    assert found.names == (
        "smoothing=Laplace(alpha=0.5)",
        "smoothing=Laplace(alpha=2.0) #1",
        "smoothing=Laplace(alpha=2.0) #2",
    )


def test_constant_scores() -> None:
    data = {"x": [1.0] * 40, "y": ["a", "b"] * 20}
    found = tb.cross_validate(data, tb.Schema([tb.Column("x", "number")], target="y"), settings=tb.Settings(), folds=4,
                              stratify=True)  # fmt: skip
    assert found.figure("roc_auc") == (0.5, 0.5, 0.5)
    assert found["log_loss"] == pytest.approx(np.log(2), rel=1e-9)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"by": "gone"}, "row 2 .* has no value"),
        ({"groups": "gone"}, "row 2 .* has no value"),
        ({"by": "Site"}, "did you mean 'site'"),
        ({"order": "gone"}, "row 2 .* has no value"),
        ({"order": "dy"}, "did you mean 'day'"),
        ({"order": "odd"}, "cannot be ordered"),
        ({"folds": 1}, "folds=1"),
        ({"folds": 2.5}, "folds=2.5"),
        ({"folds": True}, "folds=True"),
        ({"folds": "loo"}, "folds='loo'"),
        ({"groups": "y"}, "folds by 'y', which is the column to predict"),
        ({"by": "site", "repeats": 2}, "2 repeats of folds by a column"),
        ({"order": "day", "repeats": 2}, "2 repeats of time"),
        ({"folds": "leave-one-out", "repeats": 3}, "3 repeats of leaving out"),
        ({"folds": 3, "stratify": True, "by": "site"}, "at once"),
        ({"settings": []}, "no settings"),
        ({"settings": [1]}, "settings=1"),
        ({"repeats": 0}, "repeats=0"),
        ({"settings": None, "folds": "leave-one-out"}, "needs settings"),
    ],
    ids=str,
)
def test_bad_input_is_refused(data: dict[str, Any], how: dict[str, Any], message: str) -> None:
    table = {**data, "gone": ["u", "v", None] * 40, "odd": [1, "x"] * 60}
    with pytest.raises((tb.DataError, tb.SettingsError), match=message):
        tb.cross_validate(table, mixed_schema(data), **{"settings": tb.Settings(), **how})


def test_rows_without_labels_take_no_part(data: dict[str, Any]) -> None:
    some = {**data, "y": [None if i % 10 == 0 else v for i, v in enumerate(data["y"])]}
    for how in ({}, {"stratify": True}, {"order": True}):
        found = tb.cross_validate(some, mixed_schema(data), settings=tb.Settings(), **how)
        assert not set(found.rows.tolist()) & set(range(0, 120, 10))
    with pytest.raises(tb.DataError, match="missing in all"):
        tb.cross_validate({**data, "y": [None] * 120}, mixed_schema(data), settings=tb.Settings())
    with pytest.raises(tb.SettingsError, match="5 shares"):
        tb.split(data, "y", shares=(0.2,) * 5)


def test_titanic_by_subtraction_and_by_refitting_agree() -> None:
    frame = shared("titanic3")[["survived", "pclass", "sex", "age", "fare", "embarked"]]
    under = tb.infer(frame, "survived")
    one = tb.cross_validate(frame, under, settings=tb.Settings(), folds=5, stratify=True)
    two = tb.cross_validate(
        frame, under, folds=5, stratify=True, fitter=lambda rows: tb.fit(rows, schema=under, settings=tb.Settings())
    )
    np.testing.assert_allclose(one.forecasts["settings"][0], two.forecasts["fit"][0], atol=1e-12)
    assert one.baseline["accuracy"] < one["accuracy"]


def test_an_evaluation_names_the_classes_that_are_too_rare_for_an_area() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=400)
    y = np.where(x + rng.normal(size=400) > 0, "p", "n").astype(object)
    under = tb.Schema([tb.Column("x", "number")], target="y")
    plain = tb.cross_validate({"x": x, "y": y}, under, settings=tb.Settings())
    assert plain.rare == "" and "leave out" not in repr(plain)
    y[int(np.argmin(abs(x)))] = "typo"
    with pytest.warns(tb.TallybayesWarning, match="in one fold"):
        found = tb.cross_validate({"x": x, "y": y}, under, settings=tb.Settings())
    assert found.rare == "ROC-AUC and average precision leave out classes of fewer than 5 rows: typo (1 row)."
    assert repr(found).splitlines()[-1] == found.rare
    assert found["roc_auc"] == pytest.approx(plain["roc_auc"], abs=0.01)
