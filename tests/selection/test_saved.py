"""Models that are there already: evaluated with what they have learnt from told, and compared row by row."""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.selection.measure import metrics


def weather(n: int, seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    sky = np.where(rng.random(n) < 0.7, np.array(["sun", "rain", "snow"])[y], "fog")
    names = np.array(["warm", "mild", "cold"])
    return {"sky": sky, "degrees": rng.normal(20 - 8 * y, 6.0), "y": names[y]}


@pytest.fixture(scope="module")
def train() -> dict[str, Any]:
    return weather(400, 1)


@pytest.fixture(scope="module")
def test() -> dict[str, Any]:
    return weather(300, 2)


@pytest.fixture(scope="module")
def models(train: dict[str, Any]) -> dict[str, tb.Model]:
    sky, number = tb.Column("sky", "category"), tb.Column("degrees", "number")
    two = {k: v[train["y"] != "cold"] for k, v in train.items()}
    return {
        "sky": tb.count(train, tb.Schema([sky], "y")).model(),
        "both": tb.count(train, tb.Schema([sky, number], "y")).model(),
        "no cold": tb.count(two, tb.Schema([sky, number], "y")).model(),
    }


def test_training_rows_are_never_called_held_out(models: dict[str, tb.Model], train: Any, test: Any) -> None:
    found = tb.evaluate(models["both"], train)
    assert found.learnt_from.verdict == "all"
    assert found.title == "400 rows that the model has learnt from, 3 classes"
    assert "held-out" not in repr(found) and "tb.cross_validate(rows, model.schema)" in repr(found)
    assert "very rows" in found._repr_html_()
    new = tb.evaluate(models["both"], test)
    assert new.title.endswith("no sign that the model has learnt from them") and "cross_validate" not in repr(new)
    receipts = tb.count(train, models["both"].schema.with_receipts()).model()
    assert tb.evaluate(receipts, test).title == "300 held-out rows, 3 classes"
    assert tb.evaluate(receipts, test, weights=np.arange(300) % 2 + 1.0).learnt_from.verdict == "none"
    assert tb.evaluate(receipts, train, weights=np.arange(400) % 2 + 1.0).learnt_from.verdict == "all"
    assert tb.cross_validate(train, "y", settings=tb.Settings()).learnt_from is None


def test_figures_without_intervals(models: dict[str, tb.Model], test: Any) -> None:
    found = tb.evaluate(models["both"], test, intervals=False)
    full = tb.evaluate(models["both"], test)
    assert "–" not in repr(found) and f"{found['accuracy']:.4f}" in repr(found)
    assert found.figure("accuracy")[0] == full["accuracy"] and np.isnan(found.figure("accuracy")[1])
    assert set(found.table.column_names) == {"setting", "rows", *metrics.METRICS}
    assert "recall_low" not in found.by_class().column_names and "recall" in found.by_class().column_names


def test_labels_by_another_name_or_beside(models: dict[str, tb.Model], test: Any) -> None:
    renamed = {"sky": test["sky"], "degrees": test["degrees"], "weather": test["y"]}
    usual = tb.evaluate(models["both"], test)
    assert tb.evaluate(models["both"], renamed, target="weather")["log_loss"] == usual["log_loss"]
    assert tb.evaluate(models["both"], renamed, test["y"])["log_loss"] == usual["log_loss"]
    with pytest.raises(tb.DataError, match="did you mean 'weather'"):
        tb.evaluate(models["both"], renamed, target="wether")
    with pytest.raises(tb.DataError, match="target='…'"):
        tb.evaluate(models["both"], renamed)


def test_a_sealed_scorer_is_evaluated(models: dict[str, tb.Model], test: Any, tmp_path: Any) -> None:
    models["both"].export(tmp_path / "scorer.sealed.parquet")
    found = tb.evaluate(tb.load_sealed(tmp_path / "scorer.sealed.parquet"), test)
    assert found["accuracy"] == tb.evaluate(models["both"], test)["accuracy"]
    assert found.learnt_from.verdict == "unknown" and "holds no counts" in repr(found)


def test_models_are_compared_row_by_row(models: dict[str, tb.Model], test: Any) -> None:
    found = tb.compare_models(models, test)
    assert found.names == ("sky", "both", "no cold")
    alone = {name: tb.evaluate(model, test) for name, model in models.items()}
    for name in ("sky", "both"):
        assert found.evaluation.figure("log_loss", name)[0] == pytest.approx(alone[name]["log_loss"], rel=1e-12)
    hits = {n: models[n].predict(test) == test["y"] for n in models}
    lost, won = int((hits["sky"] & ~hits["both"]).sum()), int((~hits["sky"] & hits["both"]).sum())
    n = lost + won
    p = min(1.0, 2 * sum(comb(n, k) for k in range(min(lost, won) + 1)) / 2**n)
    assert found.mcnemar("both") == (lost, won, pytest.approx(p))
    assert found.mcnemar("sky", "both")[:2] == (won, lost)
    value, low, high = found.difference("accuracy", "both")
    assert value == pytest.approx((won - lost) / 300) and low < value < high
    spread = np.std(hits["both"].astype(float) - hits["sky"]) / np.sqrt(300)
    assert (high - low) / 2 == pytest.approx(1.96 * spread, rel=0.05)
    shift = (value * 300) / 302  # Bonett and Price (2012): each has won once more, of two rows more
    assert (low + high) / 2 == pytest.approx(shift)
    both = found.difference("roc_auc", "both")
    assert both[0] == pytest.approx(alone["both"]["roc_auc"] - alone["sky"]["roc_auc"])
    assert found.difference("log_loss", "both", "both") == (0.0, 0.0, 0.0)
    low, high = found.difference("accuracy", "both", "both")[1:]
    assert low == -high < 0  # not one row apart is no proof that there never will be
    table = found.disagreements()
    answers = {n: models[n].predict(test) for n in models}
    apart = [i for i in range(300) if len({answers[n][i] for n in models}) > 1]
    assert table["row"].to_pylist() == apart
    assert table["no cold"].to_pylist() == [answers["no cold"][i] for i in apart]
    most = found.disagreements(3)
    assert most.num_rows == 3 and set(most["row"].to_pylist()) <= set(apart)
    assert len(found.differences) == 2 * 6 and found.table["model"].to_pylist() == list(models)


def test_what_a_reader_of_a_comparison_should_know(models: dict[str, tb.Model], train: Any, test: Any) -> None:
    found = tb.compare_models(models, test)
    assert "no cold does not know 'cold': probability 0 there" in found.notes
    text = repr(found)
    assert "both − sky" in text and "exact McNemar" in text and "answers differ on" in text
    seen = tb.compare_models([models["sky"], models["both"]], train)
    assert seen.evaluation.title == "400 rows that the models have learnt from, 3 classes"
    assert any(note.startswith("model 1: these are the very rows") for note in seen.notes)


def test_what_cannot_be_compared_is_refused(models: dict[str, tb.Model], test: Any) -> None:
    with pytest.raises(tb.SettingsError, match="1 model to compare"):
        tb.compare_models([models["sky"]], test)
    other = tb.count({"sky": test["sky"], "z": test["y"]}, tb.Schema([tb.Column("sky", "category")], "z")).model()
    with pytest.raises(tb.SettingsError, match="'y', 'z'"):
        tb.compare_models([models["sky"], other], test)
    assert tb.compare_models([models["sky"], other], test, target="y").mcnemar("model 2")[2] <= 1
    with pytest.raises(tb.SettingsError, match=r"tb\.load"):
        tb.compare_models([models["sky"], "b.tb"], test)
