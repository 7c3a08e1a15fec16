"""The first look: a kind and a reason for every column, and what it refuses."""

from __future__ import annotations

import datetime as dt
import pickle
import re
import sys
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse

import tallybayes as tb
from tallybayes.data.infer import LOOK, first_look
from tallybayes.data.sources import open_source

N = 200
RNG = np.random.default_rng(30)
Y = np.array(["yes", "no"] * (N // 2))


def kinds(data: dict, target: str = "y", **options) -> dict[str, tuple[str, str]]:
    schema = tb.infer({**data, target: Y}, target, **options)
    return {c.name: (c.kind, c.reason) for c in schema.columns}


def test_kinds_and_reasons() -> None:
    found = kinds(
        {
            "colour": RNG.choice(["red", "blue"], N),
            "flag": RNG.random(N) < 0.5,
            "size": RNG.normal(size=N),
            "rooms": RNG.integers(1, 5, N),
            "zip": np.array([f"0{i}" for i in RNG.integers(100, 120, N)]),
            "price": np.array([f"{v:.2f}" for v in RNG.normal(5, 1, N)]),
            "age": [str(v) if v % 7 else "?" for v in RNG.integers(10, 90, N)],
            "words": [["a", "b"], ["c"]] * (N // 2),
            "place": list(RNG.normal(size=(N, 3))),
            "story": [f"once upon a time there were {i} bears" for i in range(N)],
        }
    )
    assert found["colour"] == ("category", "text, 2 different values: blue, red")
    assert found["flag"][0] == "category"
    assert found["size"][0] == "number"
    assert found["rooms"] == ("number", "whole numbers, 4 different from 1 to 4")
    assert found["zip"][0] == "category"  # a leading zero makes a code
    assert found["price"][0] == "number"
    assert found["age"][0] == "number"
    assert re.search(r"'\?' \(\d+\) read as missing", found["age"][1])
    assert found["words"] == ("bag", "lists of words")
    assert found["story"] == ("text", "free text, 8 words on average")
    assert found["place"] == ("vector", "vectors of 3 numbers")


def test_a_file_gets_reasons_that_quote_no_value(tmp_path: Path) -> None:
    """The screen shows a range, whole numbers in full and others in four digits, and the values that most rows have;
    what is stored has neither."""
    rows = {
        "size": np.append(RNG.normal(2000, 300, N - 1), 98765432.125),
        "rooms": np.append(RNG.integers(1, 5, N - 1), 7654321),
        "town": [*RNG.choice(["Aal", "Bonn"], N - 1), "Aal"],
        "marked": [*(str(v) for v in RNG.integers(10, 90, N - 2)), "?", "765432.5"],
        "same": ["Zyxford"] * N,
        "one": [43210.75] * N,
        "late": [("paid", "part")[i % 4 == 1] if y == "no" and i < 80 else None for i, y in enumerate(Y)],
        "y": Y,
    }
    with pytest.warns(tb.TallybayesWarning, match="late"):
        schema = tb.infer(rows, "y")
    told = {c.name: c.reason for c in schema.columns}
    assert told["size"].endswith(" to 98770000") and told["rooms"].endswith(" to 7654321")
    assert "Aal, Bonn" in told["town"] and "'Zyxford'" in told["same"] and "43210" in told["one"]
    schema.save(tmp_path / "schema")
    stored = tb.Schema.load(tmp_path / "schema")
    reasons = {c.name: c.reason for c in stored.columns}
    assert stored == schema and reasons == {
        "size": "numbers",
        "rooms": "whole numbers, 5 different",
        "town": "text, 2 different values",
        "marked": "numbers; '?' read as missing",
        "same": "the same value in every row",
        "one": "the same number in every row",
        "late": "it gives the label away: where it has a value, the class is nearly always the same",
    }
    assert told["late"] == "it gives the label away: where it has a value, the class is 'no'"
    again = pickle.loads(pickle.dumps(schema))
    assert {c.name: c.reason for c in again.columns} == reasons
    changed = schema.with_column("town", kind="category", reason="mine")
    assert changed["town"].to_dict()["reason"] == "mine"


def test_what_is_ignored_and_why() -> None:
    found = kinds(
        {
            "id": np.arange(N) + 1000,
            "user": [f"u{i}" for i in RNG.permutation(N)],
            "constant": ["same"] * N,
            "one": np.ones(N),
            "empty": [None] * N,
        }
    )
    assert {k: v[0] for k, v in found.items()} == dict.fromkeys(found, "ignore")
    assert found["id"][1].startswith("an id")
    assert found["user"][1].startswith("nearly an id")
    assert found["constant"][1] == "the same value, 'same', in every row"
    assert found["one"][1] == "the same number, 1, in every row"
    assert found["empty"][1] == "missing in every row"


@pytest.mark.parametrize(
    ("leak", "words"),
    [
        (np.where(Y == "yes", "A", "B"), "it alone names the class of 100.0%"),
        (np.where(Y == "yes", 1.0, 0.0) + RNG.random(N) / 10, "it alone names the class"),
        ([float(i % 5) if y == "yes" else None for i, y in enumerate(Y)], "whether it is missing names the class"),
        ([float(i) if y == "yes" and i % 4 == 0 else None for i, y in enumerate(Y)], "where it has a value, the class"),
    ],
)
def test_a_column_that_gives_the_label_away_is_ignored_with_a_warning(leak, words: str) -> None:
    with pytest.warns(tb.TallybayesWarning, match="column 'leak' is ignored: it gives the label away"):
        found = kinds({"leak": leak, "fine": RNG.normal(size=N)})
    assert found["leak"][0] == "ignore"
    assert words in found["leak"][1]
    assert found["fine"][0] == "number"


@pytest.mark.parametrize("leaks", [False, True])
def test_rows_that_are_written_several_times_make_no_leak_of_their_columns(leaks: bool) -> None:
    """A copied row tells its label by any of its values; what tells it of rows written once is a leak still."""
    rng = np.random.default_rng(3)
    rows = 120
    label = rng.choice(["yes", "no"], rows)
    table = {"document": [f"d{i}" for i in range(rows)], **{f"x{j}": rng.normal(size=rows) for j in range(4)}}
    if leaks:
        table["leak"] = np.where(label == "yes", "A", "B")
    four = rng.permutation(np.repeat(np.arange(rows), 4))
    copied = pd.DataFrame({**table, "label": label}).iloc[four]
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        schema = tb.infer(copied, target="label")
    ignored = [str(w.message).split("'")[1] for w in said if "gives the label away" in str(w.message)]
    assert ignored == (["leak"] if leaks else [])
    assert schema["document"].kind == "category"


def test_an_honest_strong_column_is_kept() -> None:
    strong = np.where(RNG.random(N) < 0.95, Y, np.where(Y == "yes", "no", "yes"))
    assert kinds({"strong": strong})["strong"][0] == "category"


def test_dates_are_split() -> None:
    day = [dt.date(2024, 1, 1) + dt.timedelta(days=int(d)) for d in RNG.integers(0, 300, N)]
    time = [dt.datetime(2024, 1, 1, int(h)) for h in RNG.integers(0, 24, N)]
    text = [d.isoformat() for d in day]
    schema = tb.infer({"day": day, "time": time, "text": text, "y": Y}, "y")
    assert schema.names == (
        "day.days", "day.weekday", "day.month", "time.days", "time.hour", "text.days", "text.weekday", "text.month",
    )  # fmt: skip
    tally = tb.count({"day": day, "time": time, "text": text, "y": Y}, schema)
    by_day = tally.columns["day.weekday"].sheets["values"]
    wanted = pd.Series(day).map(lambda d: d.strftime("%a")).value_counts().to_dict()
    assert dict(zip(by_day.slot_names, by_day.table("n", 2).sum(axis=1), strict=True)) == wanted
    assert tally.columns["day.days"] == tally.columns["text.days"]
    model = tally.model()
    assert np.isfinite(model.predict_proba({"day": day, "time": time, "text": text})).all()


@pytest.mark.parametrize("missing", [False, True])
def test_a_part_of_a_date_that_is_the_same_in_every_row_is_left_out(missing: bool) -> None:
    """It would say how the classes are shared out among the rows that have a date, which is no news."""
    year = [dt.date(1990 + int(n), 1, 1) for n in RNG.integers(0, 20, N)]
    monday = [dt.date(2024, 1, 1) + 7 * dt.timedelta(days=int(n)) for n in RNG.integers(0, 40, N)]
    once = [dt.date(2024, 2, 29)] * N
    if missing:
        year[3] = monday[5] = once[7] = None
    schema = tb.infer({"year": year, "monday": monday, "once": once, "y": Y}, "y")
    assert schema.names == ("year.days", "year.weekday", "monday.days", "monday.month")
    assert "the same month in every row" in schema["year.days"].reason
    assert "the same weekday in every row" in schema["monday.days"].reason
    assert schema["once"].kind == "ignore" and "the same in every row" in schema["once"].reason


@pytest.mark.parametrize(
    "values",
    [RNG.normal(20, 5, N), RNG.integers(0, 10_000, N), list(map(float, RNG.normal(size=N)))],
    ids=["floats", "many whole numbers", "a list"],
)
def test_a_quantity_is_refused_as_target(values) -> None:
    with pytest.raises(tb.DataError, match=r"is a quantity: \d+ different numbers.*\n\nHint: .*>= "):
        tb.infer({"x": RNG.normal(size=N), "mpg": values}, target="mpg")


def test_numbers_are_classes_where_it_is_said_and_labels_of_one_row_are_told() -> None:
    y = np.arange(N) % 40
    data = {"x": RNG.integers(0, 9, N), "part": y}
    with pytest.raises(tb.DataError, match=r"kinds=\{'part': 'category'\}"):
        tb.infer(data, target="part")
    schema = tb.infer(data, target="part", kinds={"part": "category"})
    assert schema.label_type == "int" and schema.names == ("x",)
    with pytest.raises(tb.SchemaError, match="there is no column 'part' to set"):
        tb.infer({"x": data["x"], "part": [f"p{i}" for i in y]}, target="part", kinds={"part": "text"})
    own = [f"n{i}" for i in range(N)]
    with pytest.warns(tb.TallybayesWarning, match=f"{N} of {N} rows have a label of 'who' of their own"):
        tb.infer({"x": data["x"], "who": own}, target="who")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tb.infer({"x": data["x"], "who": [w[:2] for w in own]}, target="who")  # some labels of one row, most of many


def test_nines_far_from_all_others_are_named() -> None:
    y = np.arange(N) % 2
    x = RNG.normal(20, 4, N).round(1)
    data = {
        "low": np.where(np.arange(N) % 9 == 0, -999, x),
        "high": np.where(np.arange(N) % 7 == 0, 99999, x),
        "x": x,
        "y": y,
    }
    data |= {"once": np.where(np.arange(N) == 3, -999, x), "near": np.where(np.arange(N) % 9 == 0, 99, x)}
    data |= {"far": np.where(np.arange(N) % 9 == 0, -998, x)}
    schema = tb.infer(data, "y")
    assert "; -999 (23) is far from all others: name it in missing=" in str(schema["low"].reason)
    assert "; 99999 (29) is far" in str(schema["high"].reason)
    assert not any("far" in str(schema[c].reason) for c in ("x", "once", "far"))
    assert "far" in str(schema["near"].reason)
    gone = str(tb.infer(data, "y", missing=["-999"])["low"].reason)
    assert "far" not in gone and "missing in" in gone


@pytest.mark.parametrize(
    ("labels", "kind"),
    [
        ([0, 1] * 100, "int"),
        ([0.0, 1.0] * 100, "float"),
        ([True, False] * 100, "bool"),
        (["a", "b"] * 100, "text"),
        ([dt.date(2024, 1, 1), dt.date(2024, 1, 2)] * 100, "date"),
    ],
)
def test_predictions_come_back_as_labels_went_in(labels, kind: str) -> None:
    data = {"x": RNG.normal(size=N) + 3 * (np.arange(N) % 2), "y": labels}
    model = tb.fit(data, "y")
    assert model.schema.label_type == kind
    assert set(model.predict(data).tolist()) == set(labels)
    assert model.classes == tuple(sorted(set(labels)))


def test_matrices() -> None:
    x = RNG.normal(size=(N, 3))
    assert tb.infer(x, y=Y).names == ("x0", "x1", "x2")
    assert tb.infer(np.tile(x, (1, 100)), y=Y)["x"].kind == "vector"
    assert tb.infer(scipy.sparse.random(N, 50, 0.1, format="csr", random_state=1), y=Y)["x"].kind == "bag"
    assert tb.infer(scipy.sparse.csr_array(x), y=Y)["x"].kind == "vector"
    model = tb.fit(x, y=Y)
    assert model.predict(x).shape == (N,)


def test_the_look_is_spread_over_all_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["tallybayes.data.infer"], "LOOK", 1000)
    look = first_look(open_source({"a": i, "b": str(i)} for i in range(300_000)))
    values = np.array(look["a"])
    assert 500 <= look.rows <= 1000
    assert len(set(np.diff(values).tolist())) == 1
    assert values[-1] > 299_000
    assert LOOK == 100_000


def test_a_schema_can_be_edited_saved_and_shared(tmp_path) -> None:
    data = {"zip": RNG.integers(100, 120, N), "colour": RNG.choice(["red", "blue"], N), "y": Y}
    schema = (
        tb.infer(data, "y").with_column("zip", kind="category").with_column("colour", values=["red", "blue", "green"])
    )
    path = tmp_path / "schema.json"
    schema.save(path)
    again = tb.Schema.load(path)
    assert again == schema
    assert again["colour"].values == ("blue", "green", "red")
    assert tb.count(data, again).digest == tb.count(data, schema).digest
    model = tb.count(data, again).model()
    assert model.table("colour").rows == ["blue", "green", "red"]
    assert "chosen by hand" in repr(schema)


def test_weights_column_is_no_feature() -> None:
    data = {"x": RNG.normal(size=N), "w": RNG.integers(1, 4, N), "y": Y}
    schema = tb.infer(data, "y", weights="w")
    assert schema.names == ("x",)
    assert tb.count(data, schema).class_weights().sum() == data["w"].sum()
    with pytest.raises(tb.DataError, match="no weights column 'ww'"):
        tb.infer(data, "y", weights="ww")


def test_a_class_that_looks_like_a_missing_label_is_said() -> None:
    data = {"x": [1.0, 2.0, 3.0, 4.0, 5.0, 6.0], "y": ["a", "b", "NA", "a", None, "NA"]}
    with pytest.warns(
        tb.TallybayesWarning, match=r"'NA' is counted as a class of 'y' \(2 of 6 rows\).*leave these rows"
    ):
        schema = tb.infer(data, "y")
    assert tb.count(data, schema).classes == ("NA", "a", "b")
    tb.infer({**data, "y": ["+", "-", "None", "+", "-", "."]}, "y")  # names that classes do have: no word about them


def test_what_cannot_be_counted_is_ignored_and_not_refused_later() -> None:
    columns = {
        "nested": [[["a"], []], [["b"]]] * (N // 2),
        "deep": [[{"k": 1}], [(1, 2)]] * (N // 2),
        "record": [{"k": 1, "v": "a"}, {"k": 2, "v": None}] * (N // 2),
        "negative": [{"k": -1}, {"k": 2}] * (N // 2),
        "either": [{"k": 1}, ["a"]] * (N // 2),
        "sky": RNG.choice(["sunny", "rainy"], N).tolist(),
    }
    found = kinds(columns)
    assert {n for n, (kind, _) in found.items() if kind == "ignore"} == {*columns} - {"sky"}
    assert kinds({"b": [{"k": 1, "v": None}, {}, None, np.nan] * (N // 4)})["b"] == ("bag", "dicts of word and count")
    frame = pd.DataFrame({**columns, "y": Y})
    for data in (
        frame,
        {**columns, "y": Y},
        frame.to_dict("records"),
        pl.DataFrame({"nested": columns["nested"], "y": Y}),
    ):
        assert set(tb.fit(data, "y", calibrate=False).schema.names) <= {"sky"}


def test_labels_of_a_file_that_no_float_tells_apart_stay_texts(tmp_path) -> None:
    big = ["9223372036854775807", "9007199254740992", "9007199254740993"]
    for labels in (big, ["1.50", "1.5", "2"], ["1.50", "2.5"], ["123456789012345678901234567890.5", "-0.5"]):
        (tmp_path / "t.csv").write_text("c,y\n" + "".join(f"{c},{y}\n" for c in "uv" for y in labels))
        model = tb.fit(tmp_path / "t.csv", "y")
        assert set(model.classes) == set(labels) == set(model.tally.classes)
        assert model.predict_proba({"c": "u"}, prior="counted").shape == (1, len(labels))
    (tmp_path / "t.csv").write_text("c,y\nu,1.5\nv,2\n")
    assert tb.fit(tmp_path / "t.csv", "y").classes == (1.5, 2.0)


def test_objects_without_a_text_are_no_free_text():
    """Their repr is where they lie in memory, which was read as four words."""

    class Handle:
        pass

    rows = {"h": [Handle() for _ in range(30)], "x": list(range(30)), "y": [i % 2 for i in range(30)]}
    schema = tb.infer(rows, "y")
    assert schema["h"].kind == "ignore"
    assert schema["h"].reason == "objects of Python's that have no text: where each lies in memory"


def test_values_of_one_type_are_not_called_several():
    rows = {"s": [{1, i} for i in range(30)], "m": [{1}, [{2}]] * 15, "y": [i % 2 for i in range(30)]}
    schema = tb.infer(rows, "y")
    assert schema["s"].reason == "values of type set"
    assert schema["m"].reason == "values of several types, one of them set"
