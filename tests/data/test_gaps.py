"""Whether a value is missing as a column of its own: counted, scored and explained like any other category."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.data.kinds import GAP

NO, YES = GAP


def table(n: int = 400, seed: int = 0, told: float = 0.6) -> pd.DataFrame:
    """A number that is missing more often in one class, a category likewise, and two that say nothing."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    income = np.where(rng.random(n) < 0.1 + told * y, np.nan, rng.normal(0, 1, n))
    job = np.where(rng.random(n) < 0.05 + told / 2 * y, None, rng.choice(["baker", "smith"], n))
    return pd.DataFrame({
        "income": income, "job": job, "twin": np.where(np.isnan(income), None, "there"), "noise": rng.normal(0, 1, n),
        "y": np.array(["paid", "owed"])[y],
    })  # fmt: skip


SCHEMA = tb.Schema(
    [
        tb.Column("income", "number", cells=tb.Cells.fitted(np.array([-1.0, 0.0, 1.0]))),
        tb.Column("job", "category"),
        tb.Column("income (missing)", "gap", of=(tb.PairColumn("income", "number", missing=("-999",)),)),
        tb.Column("job (missing)", "gap", of=(tb.PairColumn("job", missing=("unknown",)),)),
    ],
    target="y",
)


def values(tally: tb.Tally, name: str) -> dict[str, float]:
    sheet = tally.columns[name].sheets["values"]
    return dict(zip(sheet.slot_names, sheet.table("n", len(tally.classes)).sum(axis=1).tolist(), strict=True))


def test_what_is_missing_is_counted() -> None:
    rows = {
        "income": ["1.5", "", None, "-999", "2"], "job": ["smith", None, "unknown", "", "baker"], "y": list("ababa"),
    }  # fmt: skip
    tally = tb.count(rows, SCHEMA)
    assert values(tally, "income (missing)") == {NO: 2, YES: 3}
    assert values(tally, "job (missing)") == {NO: 2, YES: 3}


def test_every_cut_of_the_rows_adds_up() -> None:
    frame = table(60)
    whole = tb.count(frame, SCHEMA)
    for cut in range(0, 61, 5):
        assert tb.count(frame[:cut], SCHEMA) + tb.count(frame[cut:], SCHEMA) == whole
    assert whole - tb.count(frame[:40], SCHEMA) == tb.count(frame[40:], SCHEMA)


def test_representations_count_alike(tmp_path) -> None:
    frame = table(80)
    whole = tb.count(frame, SCHEMA)
    frame.to_csv(tmp_path / "t.csv", index=False)
    for same in (pa.Table.from_pandas(frame), frame.to_dict("list"), frame.convert_dtypes(), tmp_path / "t.csv"):
        assert tb.count(same, SCHEMA).digest == whole.digest
    one_by_one = tb.count(frame[:1], SCHEMA).model(tb.Settings())
    for row in frame[1:].to_dict("records"):
        one_by_one = one_by_one.update(row, new_classes="allow")
    assert one_by_one.tally.digest == whole.digest
    for row in frame[1:].to_dict("records"):
        one_by_one = one_by_one.forget(row)
    assert one_by_one.tally == tb.count(frame[:1], SCHEMA)


def test_a_column_that_is_not_there_says_nothing() -> None:
    model = tb.count(table(), SCHEMA).model(tb.Settings())
    with pytest.warns(tb.TallybayesWarning, match="not in the data"):
        absent = model.predict_proba(pd.DataFrame({"job": ["smith", "smith"]}))
    gone = model.predict_proba({"job": ["smith"] * 2, "income": [None] * 2})
    assert abs(absent[0, 0] - gone[0, 0]) > 0.1
    with pytest.warns(tb.TallybayesWarning, match="not in the data"):
        assert np.allclose(model.predict_proba([{"job": "smith"}]), absent[:1], rtol=0, atol=1e-15)
    assert np.allclose(model.predict_proba([{"job": "smith", "income": None}]), gone[:1], rtol=0, atol=1e-15)
    one = tb.count({"job": ["smith"], "y": ["paid"], "income": [1.0]}, SCHEMA).model(tb.Settings())
    with pytest.warns(tb.TallybayesWarning, match="not in the data"):
        counted = one.update({"job": "smith", "y": "paid"}).tally
    assert values(counted, "income (missing)") == {NO: 1}


@pytest.mark.parametrize("part", [None, "weekday"])
def test_one_row_is_answered_as_many_are(part: str | None) -> None:
    frame = table()
    frame["day"] = np.where(frame["income"].isna(), None, "2024-02-29")
    side = tb.PairColumn("day", part=part)
    schema = SCHEMA.with_column("day", kind="category").with_column("day (missing)", kind="gap", of=(side,))
    model = tb.count(frame, schema).model(tb.Settings())
    every = model.predict_proba(frame)
    for i in range(0, 60, 3):
        row = frame.drop(columns="y").iloc[i].to_dict()
        assert np.allclose(model.predict_proba([row]), every[i], rtol=0, atol=1e-12)
        found = model.explain(frame, i)
        assert np.allclose(found.probabilities, every[i], rtol=0, atol=1e-12)


def test_the_default_asks_whether_missing_values_tell() -> None:
    frame, fresh = table(600), table(4000, seed=9)
    model, deaf = tb.fit(frame, target="y"), tb.fit(frame, target="y", gaps=False)
    # `twin` is missing with `income`: the same question is not asked twice
    assert [c.name for c in model.schema.counted if c.kind == "gap"] == ["income (missing)", "job (missing)"]
    assert not any(c.kind == "gap" for c in deaf.schema.counted)
    own, other = (tb.evaluate(m, fresh)["log_loss"] for m in (model, deaf))
    assert own < other
    plain = (tb.fit(frame, schema=m.schema, calibrate="temperature") for m in (model, deaf))
    asking, silent = (tb.evaluate(m, fresh)["log_loss"] for m in plain)
    assert asking < silent - 0.2  # without corrections nothing else can say it
    claimed = model.settings.calibrated.losses[model.settings.calibrated.form]
    assert abs(claimed - own) < 0.06
    for plain in ({"calibrate": False}, {"effort": "quick"}, {"calibrate": "temperature"}):
        assert not any(c.kind == "gap" for c in tb.fit(frame, target="y", **plain).schema.counted)


def test_few_gaps_are_not_asked() -> None:
    frame = table(600, told=0.0)
    frame["nearly full"] = np.where(np.arange(600) < 2, np.nan, 1.0 + np.arange(600) % 7)
    frame["nearly empty"] = np.where(np.arange(600) < 2, 1.0, np.nan)
    names = [c.name for c in tb.fit(frame, target="y").schema.counted if c.kind == "gap"]
    assert names == ["income (missing)", "job (missing)"]


def test_a_model_with_gaps_is_kept_and_drawn_from(tmp_path) -> None:
    frame = table(600)
    model = tb.fit(frame, target="y")
    model.save(tmp_path / "m.tb.parquet")
    again = tb.load(tmp_path / "m.tb.parquet")
    assert np.array_equal(again.predict_proba(frame), model.predict_proba(frame))
    drawn = model.generative.sample(6000, seed=1).to_pandas()
    for label, rows in frame.groupby("y"):
        there = drawn[drawn["y"] == label]
        for name in ("income", "job"):
            assert abs(there[name].isna().mean() - rows[name].isna().mean()) < 0.03
    assert model.recalibrate(frame).schema == model.schema


def test_a_name_that_is_taken_is_left_alone() -> None:
    frame = table(300).assign(**{"income (missing)": "no"})
    schema = tb.fit(frame, target="y").schema
    assert schema["income (missing)"].kind != "gap" if "income (missing)" in schema.names else True
    assert "job (missing)" in schema.names


@pytest.mark.parametrize("of", [(), (tb.PairColumn("a"), tb.PairColumn("b"))])
def test_a_gap_is_of_one_column(of) -> None:
    with pytest.raises(tb.SchemaError, match="gap of"):
        tb.Column("x", "gap", of=of or None)


def test_gaps_are_no_half_of_a_pair() -> None:
    with pytest.raises(tb.SchemaError, match="pair"):
        tb.PairColumn("income", "gap")
    model = tb.fit(table(300), target="y", pairs=True)
    names = [c.name for c in model.schema.counted if c.kind == "pair"]
    assert not any("(missing)" in name for name in names)


def test_a_date_is_asked_once() -> None:
    frame = table(300)
    frame["day"] = np.where(np.arange(300) % 3 == 0, None, "2024-02-29")
    frame.loc[1::3, "day"] = "2024-05-31"
    names = [c.name for c in tb.fit(frame, target="y").schema.counted if c.kind == "gap"]
    assert names == ["income (missing)", "job (missing)", "day (missing)"]
