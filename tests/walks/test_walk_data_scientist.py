"""A data scientist in a notebook: frames with everything in them, scikit-learn's tools, honest figures."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.metrics import log_loss
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.pipeline import make_pipeline
from strategies import ALL

import tallybayes as tb
from tallybayes.sklearn import NaiveBayes

ROWS = 20_000 if ALL else 200


@pytest.fixture(scope="module")
def people():
    draw = np.random.default_rng(3)
    stays = draw.random(ROWS) < 0.5
    months = pd.date_range("2024-01-01", periods=12, freq="MS").month_name()
    words = np.where(stays, "happy with the service", "slow answer and a late bill")
    frame = pd.DataFrame(
        {
            "age": np.where(draw.random(ROWS) < 0.1, np.nan, draw.normal(40 + 15 * stays, 9).round(1)),
            "plan": pd.Categorical(draw.choice(["basic", "plus"], ROWS), categories=["basic", "plus", "never sold"]),
            "since": pd.Timestamp("2020-01-01") + pd.to_timedelta(draw.integers(0, 900, ROWS) + 300 * stays, unit="D"),
            "note": [f"{w} in {months[i % 12]}, case {i}" if i % 3 else None for i, w in enumerate(words)],
            "visits": pd.array(draw.poisson(2 + 3 * stays), dtype="Int64"),
            "flag": pd.array(draw.random(ROWS) < 0.5, dtype="boolean"),
        },
        index=np.arange(ROWS) * 7 + 5,  # not 0, 1, 2
    )
    frame.loc[frame.index[:3], "visits"] = pd.NA
    return frame, np.where(stays, "stays", "leaves")


def test_the_walk_of_a_data_scientist(people):
    frame, y = people
    plain = {"smoothing": 1}

    # one call, whatever the frame is made of
    model = tb.fit(frame.assign(y=y), target="y", settings=plain)
    assert model.tally == tb.fit(frame, y, settings=plain).tally
    assert model.schema["note"].kind == "text"
    assert model.schema["since.days"].kind == "number"
    assert {*model.table("plan").rows} == {"basic", "plus"}
    from_polars = tb.fit(pl.from_pandas(frame.assign(y=y)), target="y", settings=plain)
    assert np.array_equal(from_polars.predict_proba(pl.from_pandas(frame)), model.predict_proba(frame))

    # the same words for every verb
    folds = tb.cross_validate(frame, y, settings=[plain, {"smoothing": 0.1}], folds=4, stratify=True)
    assert len(folds.names) == 2
    assert all(folds.figure("accuracy", name)[0] > 0.9 for name in folds.names)
    curve = tb.learning_curve(frame, target=y, settings=plain, sizes=[0.2, 1.0], folds=2, metrics="log_loss")
    assert curve.held_out["log_loss"][1, 0] < curve.held_out["log_loss"][0, 0]
    counted = tb.count(frame, target=y, kinds={"note": "ignore"})
    assert "note" not in counted.columns
    assert counted.rows == ROWS

    # scikit-learn's tools take it as one of theirs
    forecast = cross_val_predict(NaiveBayes(calibration=None), frame, y, cv=3, method="predict_proba")
    assert forecast.shape == (ROWS, 2)
    assert log_loss(y, forecast) < 0.35
    numbers = make_column_transformer(("passthrough", make_column_selector(dtype_include=float)))
    grid = {"naivebayes__smoothing": [0.1, 1.0]}
    search = GridSearchCV(make_pipeline(numbers, NaiveBayes(calibration=None)), grid, cv=2).fit(frame, y)
    assert 0.7 < search.best_score_ < 1

    # texts alone, as text estimators take them
    notes = frame["note"].dropna()
    texts = NaiveBayes(calibration=None).fit(notes, y[frame["note"].notna()])
    assert texts.predict(["happy", "a late bill"]).tolist() == ["stays", "leaves"]

    # are the figures honest, and which columns earn them? by rows kept apart, and by those that were counted
    half = ROWS // 2
    train, test = frame.assign(y=y)[:half], frame.assign(y=y)[half:]
    learnt = tb.fit(train, target="y", settings=plain)
    assert tb.evaluate(learnt, train).learnt_from.verdict == "all"
    assert not tb.evaluate(learnt, test).learnt_from.flatters
    worth = learnt.importance(test)
    assert worth["note"].log_loss[0] > worth["flag"].log_loss[0]
    assert worth["flag"].remark == "not beyond chance"
    bare = tb.fit(train, target="y", settings=plain, kinds={"note": "ignore"})
    pair = tb.compare_models({"all": learnt, "without notes": bare}, test)
    assert pair.difference("log_loss", "without notes")[0] > 0
    # a late frame whose dates have moved on
    late = test.drop(columns="y").assign(since=test["since"] + pd.Timedelta(days=4000))
    found = tb.shift(learnt, late)
    assert found["since.days"].reason == "nothing in common"
    assert found["flag"].verdict == "no sign of a shift"

    # mistakes are told before anything is computed
    with pytest.raises(tb.SettingsError, match="did you mean 'smoothing'"):
        tb.fit(frame, y, settings={"smothing": 1})
    with pytest.raises(ValueError, match="did you mean 'gaussian'"):
        NaiveBayes(families={"age": "gausian"}).fit(frame, y)
    with pytest.raises(tb.SchemaError, match="did you mean 'age'"):
        tb.fit(frame, y, settings={"families": {"aeg": "gaussian"}})
