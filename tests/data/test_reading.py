"""Awkward tables: odd cells, marks for missing values, amounts, dates in other orders, letter case."""

from __future__ import annotations

import datetime as dt
import json
import re
import sqlite3
import sys
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from by_hand import proba_by_hand
from command_line import run

import tallybayes as tb
from tallybayes.data.marks import MARKS
from tallybayes.data.spelling import OddCells, _Cells, spelled
from tallybayes.data.values import Where
from tallybayes.store.sealed import seal

N = 400
Y = np.random.default_rng(11).choice(["a", "b"], N).tolist()


def numbers(seed: int = 0, n: int = N) -> list[str]:
    return np.random.default_rng(seed).normal(100, 20, n).round(2).astype(str).tolist()


def csv(path: Path, columns: dict[str, list[str]]) -> str:
    pd.DataFrame(columns).to_csv(path, index=False)
    return str(path)


def quietly(function: Any, *arguments: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TallybayesWarning)
        return function(*arguments, **options)


# ---- odd cells


def jsonl(path: Path, x: list[str]) -> str:
    """Numbers as numbers, and what is none as text."""
    with path.open("w", encoding="utf-8") as out:
        for value, y in zip(x, Y, strict=True):
            out.write(json.dumps({"x": value if value.isalpha() else float(value), "y": y}) + "\n")
    return str(path)


FORMS: dict[str, Any] = {
    "csv": lambda folder, x: csv(folder / "t.csv", {"x": x, "y": Y}),
    "jsonl": lambda folder, x: jsonl(folder / "t.jsonl", x),
    "dict": lambda folder, x: {"x": x, "y": Y},
    "pandas": lambda folder, x: pd.DataFrame({"x": [v if v.isalpha() else float(v) for v in x], "y": Y}),
    "arrow": lambda folder, x: pa.table({"x": x, "y": Y}),
    "rows": lambda folder, x: [{"x": v, "y": y} for v, y in zip(x, Y, strict=True)],
}


@pytest.mark.parametrize("form", FORMS)
def test_a_column_is_numbers_but_for_a_few_cells(form: str, tmp_path: Path) -> None:
    x = numbers()
    x[17] = x[301] = "oops"
    place = {"csv": "line 19", "jsonl": "line 18"}.get(form, "row 17")
    data = FORMS[form](tmp_path, x)
    with pytest.warns(tb.TallybayesWarning, match=f"2 of 400 cells of 'x': 'oops' .*{place}"):
        schema = tb.infer(data, "y")
    assert schema["x"].kind == "number" and schema["x"].spelling == tb.Spelling(odd=True)
    assert re.search(rf"2 of 400 cells cannot be read and are missing: 'oops' \(2\).*{place}", schema["x"].reason)
    assert "oops" not in json.dumps(schema.to_dict())  # a file quotes no value
    with pytest.warns(tb.TallybayesWarning, match=f"2 of 400 cells of 'x': .*{place}"):
        model = tb.fit(data, "y")
    clean = quietly(tb.count, {"x": [None if v == "oops" else float(v) for v in x], "y": Y}, schema)
    assert quietly(tb.count, data, schema) == clean
    assert model.tally is not None and model.tally.columns["x"] == clean.columns["x"]
    with pytest.raises(tb.DataError, match=f"{place}.*'oops' is not a number, as 398 other cells are"):
        tb.infer(data, "y", strict=True)
    with pytest.raises(tb.DataError, match=f"{place}.*'oops' is not a number"):
        tb.fit(data, "y", strict=True)


def test_how_many_are_a_few() -> None:
    def kind(odd: list[str], n: int = N) -> str:
        x = [*odd, *numbers(n=n - len(odd))]
        return str(quietly(tb.infer, {"x": x, "y": (["a", "b"] * n)[:n]}, "y")["x"].kind)

    assert kind(["unknown"] * 20) == "number"  # one in twenty, of up to three words
    assert kind(["unknown"] * 21) != "number"
    assert kind([f"code {i}" for i in range(4)]) == "number"  # one in a hundred of whatever
    assert kind([f"code {i}" for i in range(5)]) != "number"
    assert kind(["x"], 21) == "number" and kind(["x"], 20) != "number"


def test_a_column_of_too_many_odd_cells_says_what_it_is_for_the_most_part() -> None:
    x = [v if i % 10 else ("soon", "later")[i % 3 == 0] for i, v in enumerate(numbers())]
    found = tb.infer({"x": x, "y": Y}, "y")["x"]
    assert found.kind == "ignore" and "nearly an id" in found.reason
    assert "90% of its cells are numbers, others are 'soon' (26), 'later' (14)" in found.reason
    assert "soon" not in json.dumps(found.to_dict())
    assert tb.infer({"x": x, "y": Y}, "y", missing=["soon", "later"])["x"].kind == "number"
    leading = [f"0{i}" for i in range(100, 200)]
    assert "are numbers" not in tb.infer({"x": leading * 4, "y": Y}, "y")["x"].reason


@pytest.mark.parametrize(
    ("unit", "blank"), [("kg", " "), ("cm", ""), ("km/h", " "), ("°C", " "), ("°", ""), ("m²", " ")]
)
def test_numbers_with_a_unit_stay_a_category_and_say_so(unit: str, blank: str) -> None:
    x = [f"{v:.1f}{blank}{unit}" for v in np.random.default_rng(1).normal(60, 9, 400)]
    found = tb.infer({"x": x, "y": Y[:400]}, "y")["x"]
    assert found.kind == "category"
    assert f"100% of its cells are a number and {unit}: take the unit out to count numbers" in found.reason
    assert unit not in json.dumps(found.to_dict(), ensure_ascii=False)  # what a model keeps tells no values
    mixed = [f"{i % 90 + 1}.5 {('kg', 'lb')[i % 3 == 0]}" for i in range(400)]
    assert (
        "a number and kg or lb: write all of them in one unit" in tb.infer({"x": mixed, "y": Y[:400]}, "y")["x"].reason
    )


@pytest.mark.parametrize(
    "write", [lambda i: f"A {i}", lambda i: f"0{i}B", lambda i: f"Street {i}", lambda i: f"v{i}.2"]
)
def test_codes_are_no_numbers_with_a_unit(write: Any) -> None:
    x = [write(i % 90) for i in range(400)]
    assert "its cells" not in tb.infer({"x": x, "y": Y[:400]}, "y")["x"].reason


def test_times_with_a_zone_say_so() -> None:
    x = [f"2024-{i % 12 + 1:02}-{i % 28 + 1:02}T{i % 24:02}:30:00{('+02:00', 'Z')[i % 2]}" for i in range(400)]
    assert "times with a zone, written as text, in UTC" in tb.infer({"x": x, "y": Y[:400]}, "y")["x.days"].reason
    plain = tb.infer({"x": [t[:16] for t in x], "y": Y[:400]}, "y")["x.days"].reason
    assert plain.startswith("dates written as text")


def test_dates_in_several_orders_say_so() -> None:
    day = [np.datetime64("2024-01-01") + i % 60 for i in range(400)]
    x = [str(d) if i % 3 else "{2}.{1}.{0}".format(*str(d).split("-")) for i, d in enumerate(day)]
    found = tb.infer({"x": x, "y": Y[:400]}, "y")["x"]
    assert "its cells are dates written in several ways, '2024-01-02' and '01.01.2024'" in found.reason
    assert "2024-01-02" not in json.dumps(found.to_dict())


def test_an_odd_value_among_a_few_numbers_is_a_value() -> None:
    found = tb.infer({"x": [*"123" * 100, "3+"], "y": ["a", *(["b", "a"] * 150)]}, "y")
    assert found["x"].kind == "category" and found["x"].spelling is None


def big(path: Path, rows: int = 200_000, **odd: tuple[int, str]) -> dict[str, list[str]]:
    rng = np.random.default_rng(5)
    columns = {
        "x": rng.normal(size=rows).round(3).astype(str).tolist(),
        "z": rng.integers(0, 10_000, rows).astype(str).tolist(),
        "c": rng.choice(["u", "v", "w"], rows).tolist(),
        "y": rng.choice(["a", "b"], rows).tolist(),
    }
    for name, (row, text) in odd.items():
        columns[name][row] = text
    csv(path, columns)
    return columns


def test_one_bad_cell_far_into_a_large_file(tmp_path: Path) -> None:
    """The first look reads stretches of it, and the odd cell lies between them."""
    path = tmp_path / "big.csv"
    clean = big(path)
    start = tb.infer(str(path), "y")
    assert start["x"].spelling is None and start["c"].missing == ()
    text = path.read_bytes().splitlines(keepends=True)
    source = tb.read(str(path))
    assert source.stretches is not None
    seen = set(zip(*(source.stretches(66_666).columns[n].to_pylist() for n in clean), strict=True))  # type: ignore[union-attr]
    rows = list(zip(*clean.values(), strict=True))
    unseen = [i for i in range(100_000, 200_000) if rows[i] not in seen]
    bad, gone, marked = unseen[50], unseen[500], unseen[5000]
    for row, (old, new) in {bad: (0, "oops"), gone: (1, "N/A"), marked: (2, "NA")}.items():
        cells = list(rows[row])
        cells[old] = new
        text[row + 1] = (",".join(cells) + "\n").encode()
    path.write_bytes(b"".join(text))
    options: dict[str, Any] = {"calibrate": False, "gaps": False, "pairs": False}
    with pytest.warns(tb.TallybayesWarning, match=rf"1 of 200,000 cells of 'x': 'oops' \(.*big.csv, line {bad + 2}\)"):
        model = tb.fit(str(path), "y", **options)
    tally = model.tally
    assert tally is not None and tally.rows == 200_000
    assert model.schema["x"].kind == model.schema["z"].kind == "number"
    assert model.schema["z"].spelling is None and model.schema["z"].missing == ("N/A",)
    assert model.schema["c"].missing == ("NA",) and "NA" not in tally.columns["c"].sheets["values"].slot_names
    for name in "xz":
        assert sum(n for n, _, _ in tally.moments(name).values()) == 199_999
    refused = rf"line {bad + 2}, column 'x': 'oops' is not a number, as 199,999 other cells are\n\nHint: .*strict=False"
    with pytest.raises(tb.DataError, match=refused):  # not at N/A, which a first look would have taken as missing
        tb.fit(str(path), "y", strict=True, **options)
    done = run("fit", path, "--target", "y", "--strict", "--no-calibrate", "--no-gaps")
    assert done.returncode == 2
    assert f"line {bad + 2}, column 'x': 'oops' is not a number" in done.err and "leave out --strict" in done.err
    done = run("fit", path, "--target", "y", "--no-calibrate", "--folds", 0, "--no-gaps", "-o", tmp_path / "m")
    assert done.returncode == 0 and "the whole of the data shows more: x number" in done.out
    assert f"line {bad + 2}" in done.err
    assert tb.load(tmp_path / "m").tally == tally


def test_rows_that_a_look_leaves_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["tallybayes.data.infer"], "LOOK", 100)
    x = numbers()
    x[1] = "oops"  # every fourth row is looked at
    with pytest.warns(tb.TallybayesWarning, match=r"1 of 400 cells of 'x': 'oops' \(row 1\)"):
        model = tb.fit({"x": x, "y": Y}, "y")
    assert model.schema["x"].spelling == tb.Spelling(odd=True)
    with pytest.raises(tb.DataError, match=r"column 'x', row 1 .*'oops' is not a number.*\n\nHint: .*strict=False"):
        tb.fit({"x": x, "y": Y}, "y", strict=True)
    marked: list[str] = ["?" if i in (1, 2, 3, 5) else v for i, v in enumerate(numbers())]
    assert tb.fit({"x": marked, "y": Y}, "y", strict=True).tally == tb.fit({"x": marked, "y": Y}, "y").tally
    marked[399] = "oops"  # marks before it are not what is refused
    with pytest.raises(tb.DataError, match=r"column 'x', row 399 .*'oops' is not a number.*\n\nHint: .*strict=False"):
        tb.fit({"x": marked, "y": Y}, "y", strict=True)
    many = [v if i % 4 == 0 else f"word {i}" for i, v in enumerate(numbers())]
    for strict in (False, True):
        with pytest.raises(tb.DataError, match="taken for numbers by a first look, and 300 of 400 cells are none"):
            tb.fit({"x": many, "y": Y}, "y", strict=strict)


def test_an_odd_cell_is_missing_in_prediction_too() -> None:
    x, day = numbers(), [f"2024-01-{1 + i % 28:02d}" for i in range(N)]
    x[17], day[5] = "oops", "soon"
    model = quietly(tb.fit, {"x": x, "day": day, "y": Y}, "y", pairs=[("x", "day.weekday")])
    for row in ({"x": "what", "day": "2024-01-05"}, {"x": "99.5", "day": "never"}, {"x": 99.5, "day": None}):
        gone = {n: None if v in ("what", "never") else v for n, v in row.items()}
        many = model.predict_proba({n: [v] * 3 for n, v in row.items()})
        assert np.array_equal(many, model.predict_proba({n: [v] * 3 for n, v in gone.items()}))
        assert np.allclose(model.predict_proba([row]), many[:1], rtol=0, atol=1e-12)
        assert np.allclose(seal(model).predict_proba([row]), many[:1], rtol=0, atol=1e-9)
    learnt = model.update({"x": "what", "day": "never", "y": "a"})
    assert learnt.tally == quietly(tb.count, {"x": [*x, None], "day": [*day, None], "y": [*Y, "a"]}, model.schema)


def test_clean_columns_still_refuse() -> None:
    model = tb.fit({"x": numbers(), "y": Y}, "y")
    assert model.schema["x"].spelling is None
    with pytest.raises(tb.DataError, match="'what' is not a number"):
        model.predict({"x": ["what", "1"]})


# ---- marks for missing values


TWELVE = ("NA", "N/A", "#N/A", "null", "NULL", "None", "nan", "NaN", "-", "--", "?", "  ")


def test_twelve_marks_mean_missing_in_every_kind(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    where = [int(i) for i in rng.permutation(N)[: 10 * len(TWELVE)]]
    marks = dict(zip(where, TWELVE * 10, strict=True))

    def marked(values: list[str]) -> list[str]:
        return [marks.get(i, v) for i, v in enumerate(values)]

    columns = {
        "number": numbers(),
        "category": rng.choice(["red", "green", "blue"], N).tolist(),
        "date": [f"2024-{1 + i % 12:02d}-{1 + i % 28:02d}" for i in range(N)],
    }
    awkward = {n: marked(v) for n, v in columns.items()}
    plain = {n: [None if i in marks else v for i, v in enumerate(values)] for n, values in columns.items()}
    path = tmp_path / "t.csv"
    lines = ["number,category,date,y", *(",".join(row) for row in zip(*awkward.values(), Y, strict=True))]
    path.write_text("\n".join(lines) + "\n")
    for data in (str(path), {**awkward, "y": Y}, pd.DataFrame({**awkward, "y": Y})):
        schema = tb.infer(data, "y")
        assert [schema[n].kind for n in ("number", "category", "date.days")] == ["number", "category", "number"]
        for name in ("number", "category", "date.days"):
            assert schema[name].missing == tuple(sorted(TWELVE))
            assert "'#N/A' (10)" in schema[name].reason and "read as missing" in schema[name].reason
        counted = tb.count(data, schema)
        clean = tb.count(
            {**plain, "number": [None if v is None else float(v) for v in plain["number"]], "y": Y}, schema
        )
        assert counted == clean


def test_more_marks_and_none() -> None:
    x = [v if i % 5 else "-999" for i, v in enumerate(numbers())]
    c = [("NA", "red", "blue", "absent")[i % 4] for i in range(N)]
    table = {"x": x, "c": c, "y": Y}
    more = tb.infer(table, "y", missing=["-999", "absent"])
    assert more.missing == ("", "-999", "absent") and more["c"].missing == ("NA",)
    assert "from -" not in more["x"].reason
    tally = tb.count(table, more)
    assert sum(n for n, _, _ in tally.moments("x").values()) == 0.8 * N
    assert sorted(tally.columns["c"].sheets["values"].slot_names) == ["blue", "red"]
    none = tb.infer(table, "y", missing=[])
    assert none.missing == ("",) and none["c"].missing == ()
    model = tb.fit(table, "y", missing=[])
    assert model.tally is not None and "NA" in model.tally.columns["c"].sheets["values"].slot_names


def test_what_is_a_value_and_no_mark() -> None:
    table = {"strand": ["+", "-"] * 200, "basement": ["yes", "NA", "NA", "yes"] * 100, "y": Y}
    schema = tb.infer(table, "y")
    assert [schema[n].missing for n in ("strand", "basement")] == [(), ()]


def test_a_schema_that_was_stored_keeps_its_own_marks(tmp_path: Path) -> None:
    schema = tb.Schema([tb.Column("c", "category")], target="y")
    schema.save(tmp_path / "s.json")
    tally = tb.count({"c": ["NA", "red"], "y": ["a", "b"]}, tb.Schema.load(tmp_path / "s.json"))
    assert sorted(tally.columns["c"].sheets["values"].slot_names) == ["NA", "red"]


# ---- amounts


def german(v: float) -> str:
    return f"{v:,.2f}".translate(str.maketrans(",.", ".,"))


SPELLINGS: dict[str, tuple[Any, tb.Spelling]] = {
    "dollars": (lambda v: f"${v:,.2f}", tb.Spelling(thousands=",", unit="$")),
    "euros": (lambda v: f"{german(v)} €", tb.Spelling(decimal=",", thousands=".", unit="€")),
    "pounds": (lambda v: f"-£{v:.2f}" if v > 2000 else f"£{v:.2f}", tb.Spelling(unit="£")),
    "yen": (lambda v: f"¥{v:,.0f}", tb.Spelling(thousands=",", unit="¥")),
    "per cent": (lambda v: f"{v / 40:.1f}%", tb.Spelling(unit="%")),
    "thousands": (lambda v: f"{v:,.2f}", tb.Spelling(thousands=",")),
    "comma": (german, tb.Spelling(decimal=",", thousands=".")),
    "small": (lambda v: f"{v / 100:.2f}".replace(".", ","), tb.Spelling(decimal=",")),
    "blanks": (lambda v: f"{v:,.0f}".replace(",", " "), tb.Spelling(thousands=" ")),
    "unbroken": (lambda v: f"{v:,.0f}".replace(",", "\u202f"), tb.Spelling(thousands=" ")),
    "swiss": (lambda v: f"{v:,.2f}".replace(",", "'"), tb.Spelling(thousands="'")),
}


def amount(text: str, spelling: tb.Spelling) -> float:
    """What a person reads there."""
    digits = re.sub(r"[^0-9,.+-]", "", text)
    digits = digits.replace(".", "").replace(",", ".") if spelling.decimal == "," else digits.replace(",", "")
    return float(digits)


@pytest.mark.parametrize("name", SPELLINGS)
def test_amounts_are_read(name: str, tmp_path: Path) -> None:
    write, spelling = SPELLINGS[name]
    texts = [write(v) for v in np.random.default_rng(3).gamma(2, 1200, N).tolist()]
    meant = [amount(t, spelling) for t in texts]
    for data in ({"x": texts, "y": Y}, csv(tmp_path / "t.csv", {"x": texts, "y": Y})):
        schema = tb.infer(data, "y")
        assert (schema["x"].kind, schema["x"].spelling) == ("number", spelling)
        assert spelling.words in schema["x"].reason
        tally = tb.count(data, schema)
        assert tally == tb.count({"x": meant, "y": Y}, schema)
        assert tb.Schema.from_dict(json.loads(json.dumps(schema.to_dict()))) == schema
    half = N // 2
    parts = [tb.count({"x": texts[a:b], "y": Y[a:b]}, schema) for a, b in ((0, 1), (1, half), (half, N))]
    assert sum(parts) == tally and tally - parts[0] == tb.count({"x": texts[1:], "y": Y[1:]}, schema)


def test_a_comma_before_three_digits_is_said() -> None:
    table = {"x": [f"{v},000" for v in range(10, 60)] * 8, "y": Y}
    with pytest.warns(tb.TallybayesWarning, match="'10,000' is read as 10000; decimal=',' reads it as a decimal comma"):
        assert "from 10000 to 59000" in tb.infer(table, "y")["x"].reason


def test_a_file_with_decimal_commas_and_points_between_thousands(tmp_path: Path) -> None:
    values = np.random.default_rng(1).gamma(2, 1200, N).round(2).tolist()
    texts = [german(v) for v in values]
    path = tmp_path / "t.csv"
    path.write_text("x;y\n" + "".join(f"{t};{y}\n" for t, y in zip(texts, Y, strict=True)))
    source = tb.read(path, decimal=",")
    schema = tb.infer(source, "y")
    assert schema["x"].spelling == tb.Spelling(decimal=",", thousands=".")
    want = tb.count({"x": values, "y": Y}, schema)
    assert tb.count(source, schema) == tb.count(path, schema) == want  # said once, it need not be said again


def test_an_odd_cell_is_told_as_the_file_has_it(tmp_path: Path) -> None:
    """No thousands begin with 0: that is no number, and the others are still numbers with a comma."""
    texts = [german(v) for v in np.random.default_rng(1).gamma(2, 1200, N).round(2).tolist()]
    texts[17] = "0.110,5"
    path = tmp_path / "t.csv"
    path.write_text("x;y\n" + "".join(f"{t};{y}\n" for t, y in zip(texts, Y, strict=True)))
    with pytest.warns(tb.TallybayesWarning, match=r"1 of 400 cells of 'x': '0\.110,5' \(.*t\.csv, line 19\)"):
        model = tb.fit(tb.read(path, decimal=","), "y", calibrate=False)
    assert model.schema["x"].spelling == tb.Spelling(decimal=",", thousands=".", odd=True)
    assert quietly(tb.count, path, model.schema) == model.tally  # said once, also beside an odd cell
    with pytest.raises(tb.DataError, match=r"line 19, column 'x': '0\.110,5' is not a number"):
        tb.fit(tb.read(path, decimal=","), "y", strict=True)
    small = [f"{v % 7},{100 + v}" for v in range(400)]
    schema = tb.infer({"x": small, "y": Y}, "y")  # 0,100 is no hundred: so they are fractions, and nothing is in doubt
    assert schema["x"].spelling == tb.Spelling(decimal=",")


def test_a_file_without_rows_is_named(tmp_path: Path) -> None:
    path = tmp_path / "bare.csv"
    path.write_text("x,y\n")
    model = tb.fit({"x": numbers(), "y": Y}, "y", calibrate=False)
    for ask in (
        lambda: tb.fit(path, "y"),
        lambda: tb.fit(path, schema=model.schema, calibrate=False),
        lambda: tb.shift(model, path),
        lambda: tb.evaluate(model, path),
        lambda: model.importance(path),
        lambda: tb.report(model, path),
    ):
        with pytest.raises(tb.DataError, match=r"there are no rows in .*bare\.csv"):
            ask()
    with pytest.raises(tb.DataError, match="there are no rows in the data"):
        tb.shift(model, {"x": []})


def test_the_quick_way_reads_what_the_plain_way_reads() -> None:
    """Arrow's engine against one cell after the other, on texts that are nearly numbers."""
    rng = np.random.default_rng(9)
    for spelling in {s for _, s in SPELLINGS.values()}:
        letters = [*"0123456789", *"0123456789", ".", ",", " ", "'", "-", "+", "e", "$", "€", "%", "\n", "\u00a0"]
        texts = ["".join(rng.choice(letters, rng.integers(1, 7))) for _ in range(500)]
        odd = replace(spelling, odd=True)
        read = _Cells(odd, frozenset(), dates=False)
        for text in texts:
            one = read.of(text)
            many = spelled(pa.array([text, text]), odd, Where("x", 0), (), dates=False).to_pylist()
            assert many == [None if isinstance(one, str) else one] * 2, (text, spelling)


# ---- dates


ORDERS = {
    "%d.%m.%Y": "31.12.2024",
    "%d/%m/%Y": "31/12/2024",
    "%m/%d/%Y": "12/31/2024",
    "%Y/%m/%d %H:%M": "x",
    "%d-%m-%y": "x",
}


@pytest.mark.parametrize("form", ORDERS)
def test_dates_in_the_usual_orders(form: str, tmp_path: Path) -> None:
    days = [dt.datetime(2024, 1, 1) + dt.timedelta(days=i % 366, hours=i % 24) for i in range(N)]
    texts = [d.strftime(form) for d in days]
    known = [dt.datetime.strptime(t, form) for t in texts]
    for data in ({"day": texts, "y": Y}, csv(tmp_path / "t.csv", {"day": texts, "y": Y})):
        schema = tb.infer(data, "y")
        assert schema["day.days"].spelling == tb.Spelling(date=form)
        assert f"dates written as {form}" in schema["day.days"].reason
        assert tb.count(data, schema) == tb.count({"day": known, "y": Y}, schema)


def test_dates_that_could_be_meant_either_way() -> None:
    table = {"day": [f"{1 + i % 12}/{1 + i % 11}/2024" for i in range(N)], "y": Y}
    with pytest.warns(tb.TallybayesWarning, match="either way.*date_format='%d/%m/%Y' or '%m/%d/%Y'"):
        assert tb.infer(table, "y")["day"].kind == "category"
    for form in ("%d/%m/%Y", "%m/%d/%Y"):
        for said in (form, {"day": form}):
            schema = tb.infer(table, "y", date_format=said)
            known = [dt.datetime.strptime(t, form) for t in table["day"]]
            assert tb.count(table, schema) == tb.count({"day": known, "y": Y}, schema)
    with pytest.raises(tb.DataError, match="is not a date written as '%Y'"):
        tb.infer(table, "y", date_format={"day": "%Y"})
    with pytest.raises(tb.SettingsError, match="names 'dya'"):
        tb.infer(table, "y", date_format={"dya": "%d/%m/%Y"})
    with pytest.raises(tb.SchemaError, match="date format"):
        tb.infer(table, "y", date_format="%Q")


# ---- letter case


def test_letter_case_is_folded_when_asked() -> None:
    said = ["TRUE", "True", "true", "yes", "YES", "Yes ", "no", "No"]
    labels = ["NO", "No", "no", "YES", "Yes", "yes"]
    table = {"c": [said[i % 8] for i in range(N)], "y": [labels[i % 6] for i in range(N)]}
    with pytest.warns(tb.TallybayesWarning, match="NO, No, no are 3 classes of 'y'.*--fold"):
        schema = tb.infer(table, "y")
    assert "TRUE, True, true: 3 spellings of one value?" in schema["c"].reason
    assert schema["c"].spelling is None and not schema.fold
    model = tb.fit(table, "y", fold=True)
    assert model.classes == ("no", "yes") and model.tally is not None
    assert sorted(model.tally.columns["c"].sheets["values"].slot_names) == ["no", "true", "yes"]
    folded = {"c": [" ".join(v.split()).lower() for v in table["c"]], "y": [v.lower() for v in table["y"]]}
    assert model.tally == tb.count(folded, model.schema)
    one, many = model.predict_proba([{"c": " TRUE"}]), model.predict_proba({"c": ["true", "True"]})
    assert np.allclose(one, many, rtol=0, atol=1e-12)
    assert model.update({"c": "YES", "y": "Yes"}).tally == tb.count(
        {"c": [*folded["c"], "yes"], "y": [*folded["y"], "yes"]}, model.schema
    )
    assert tb.evaluate(model, table)["accuracy"] == tb.evaluate(model, folded)["accuracy"]


# ---- the command, other programs, empty files


def test_the_command_takes_the_same_words(tmp_path: Path) -> None:
    x = [v if i % 9 else "gone" for i, v in enumerate(numbers())]
    path = csv(tmp_path / "t.csv", {"x": x, "d": [f"{1 + i % 9}/{1 + i % 8}/2024" for i in range(N)], "y": Y})
    words = ["fit", path, "--target", "y", "--no-calibrate", "--folds", "0"]
    done = run(*words, "--missing", "gone", "--date-format", "%d/%m/%Y", "--fold", "-o", tmp_path / "m")
    assert done.returncode == 0 and "dates written as %d/%m/%Y" in done.out
    schema = tb.load(tmp_path / "m").schema
    assert schema.missing == ("", "gone") and schema["x"].kind == "number" and schema.fold
    done = run(*words, "--date-format", "d=%m/%d/%Y")
    assert done.returncode == 0 and "dates written as %m/%d/%Y" in done.out
    schema.save(tmp_path / "s.json")
    done = run("fit", path, "--schema", tmp_path / "s.json", "--strict")
    assert done.returncode == 2 and "--schema says how cells are read" in done.err


def test_other_programs_refuse_what_only_this_one_reads() -> None:
    """Values in several letter cases; numbers they read, see tests/store."""
    model = tb.fit({"x": ["Yes", "yes", "NO", "no"] * (N // 4), "y": Y}, "y", calibrate=False, fold=True)
    with pytest.raises(tb.SettingsError, match=r"'x'(.|\n)*tallybayes predict"):
        model.to_sql("t")
    with pytest.raises(tb.SettingsError, match=r"'x'(.|\n)*tallybayes predict"):
        model.export(None, "onnx")


def test_spellings_that_are_none() -> None:
    for wrong in (
        {"decimal": ";"},
        {"thousands": "." * 2},
        {"decimal": ",", "thousands": ","},
        {"unit": "kg"},
        {"date": 5},
    ):
        with pytest.raises(tb.SchemaError):
            tb.Spelling(**wrong)  # type: ignore[arg-type]
    with pytest.raises(tb.SettingsError, match="beside a schema"):
        tb.fit({"x": ["1"], "y": ["a"]}, schema=tb.Schema([], target="y"), strict=True)


def test_the_places_do_not_depend_on_the_order_of_batches() -> None:
    one, other = OddCells(), OddCells()
    for odd, order in ((one, (0, 10, 20)), (other, (20, 0, 10))):
        for start in order:
            odd.add(Where("x", start), {3: f"a{start}", 5: "b"}, 10)
    assert (
        [f[:2] for f in one.found["x"].first]
        == [f[:2] for f in other.found["x"].first]
        == [(3, "a0"), (5, "b"), (13, "a10")]
    )


@pytest.mark.parametrize("text", ["a,b,y\n", "y\n"])
def test_a_file_of_a_header_alone(text: str, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(text)
    with pytest.raises(tb.DataError, match="no rows"):
        tb.fit(str(path), "y")
    for nothing in ([], {}, iter([]), pd.DataFrame()):
        with pytest.raises(tb.DataError, match="no rows"):
            tb.fit(nothing, "y")


def test_every_usual_mark_is_one() -> None:
    assert len(set(MARKS)) == len(MARKS)
    for mark in MARKS:
        schema = tb.infer({"c": ["red", "blue", "green", f" {mark}"] * 100, "y": Y}, "y")
        assert schema["c"].missing == (f" {mark}",)


# ---- many files as one


def test_several_files_a_folder_and_a_pattern_are_one_table(tmp_path: Path) -> None:
    x, folder = numbers(), tmp_path / "parts"
    folder.mkdir()
    whole = csv(tmp_path / "whole.csv", {"x": x, "y": Y})
    parts = [
        csv(folder / f"{i}.csv", {"x": x[a : a + 100], "y": Y[a : a + 100]}) for i, a in enumerate(range(0, N, 100))
    ]
    (folder / "_SUCCESS").write_text("")
    (folder / "notes.pdf").write_text("")
    tally = tb.count(whole, schema := tb.infer(whole, "y"))
    for data in (
        parts,
        tuple(map(Path, parts)),
        folder,
        str(folder / "*.csv"),
        [folder / "0.csv", f"{folder}/[1-3].csv"],
    ):
        assert tb.count(data, schema) == tally
    done = run("fit", *parts, "--target", "y", "--no-calibrate", "--folds", 0, "-o", tmp_path / "m")
    assert done.returncode == 0 and "0.csv and 3 more: what is counted" in done.out
    assert tb.load(tmp_path / "m").tally == tally
    assert run("fit", "-", parts[0], "--target", "y").returncode == 2
    (empty := tmp_path / "empty").mkdir()
    with pytest.raises(tb.DataError, match="a folder without files of rows"):
        tb.infer(empty, "y")


# ---- other programs read the same numbers


def in_many_ways() -> list[dict[str, Any]]:
    def grouped(v: float) -> str:
        return f"{v:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".")

    rows = []
    for i, (v, y) in enumerate(zip(numbers(), Y, strict=True)):
        x = abs(float(v)) * 321.5 + (9 if y == "a" else 0)
        rows.append({
            "price": "NA" if i % 9 == 0 else f"${x:,.2f}", "euro": f"{grouped(-x if i % 4 == 0 else x)} €",
            "share": f"{x % 100:.1f} %", "comma": f"{x / 7:.4f}".replace(".", ","),
            "odd": "ask" if i == 3 else f"{x:.4f}", "y": y,
        })  # fmt: skip
    return rows


@pytest.fixture(scope="module")
def spelled_model() -> tb.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TallybayesWarning)
        return tb.fit(in_many_ways(), "y", calibrate=False)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
def test_databases_read_numbers_as_they_are_spelled(spelled_model: tb.Model, dialect: str) -> None:
    rows = in_many_ways()
    assert all(c.spelling is not None for c in spelled_model.schema.counted if c.kind == "number")
    typed = [{**row, "euro": 12.5, "comma": 1.25, "price": 99.0} for row in rows[:20]]  # numbers are what they are
    scorer = spelled_model.to_sql("t", dialect)
    for table in (rows, typed):
        con: Any = duckdb.connect() if dialect == "duckdb" else sqlite3.connect(":memory:")
        kinds = ["DOUBLE" if isinstance(v, float) else "TEXT" for v in table[0].values()]
        con.execute(f"CREATE TABLE t ({', '.join(f'{n} {k}' for n, k in zip(table[0], kinds, strict=True))})")
        con.executemany("INSERT INTO t VALUES (?, ?, ?, ?, ?, ?)", [tuple(row.values()) for row in table])
        for statement in scorer.setup:
            con.execute(statement)
        found = con.execute(scorer.query).fetchall()
        con.close()
        wanted = spelled_model.predict_proba(table)
        np.testing.assert_allclose(sorted(r[-2:] for r in found), sorted(map(tuple, wanted)), atol=1e-9)


def read_by_hand(text: str, spelling: dict[str, Any]) -> float | None:
    """What docs/model_file.md says of a spelling, in the words of another program."""
    for sign in (" ", "\t", "\u00a0", "\u202f", spelling.get("thousands", ""), spelling.get("unit", "")):
        text = text.replace(sign, "") if sign else text
    try:
        return float(text.replace(spelling.get("decimal", "."), "."))
    except ValueError:
        return None


def test_json_says_how_numbers_are_spelled(spelled_model: tb.Model) -> None:
    scorer = json.loads(spelled_model.export(format="json"))
    columns = {c["name"]: c for c in scorer["columns"] if c["kind"] == "number"}
    assert all("spelling" in c for c in columns.values())
    for row in in_many_ways()[:40]:
        plain = {n: None if row[n] in c["missing"] else read_by_hand(row[n], c["spelling"]) for n, c in columns.items()}
        np.testing.assert_allclose(proba_by_hand(scorer, plain), spelled_model.predict_proba(row)[0], atol=1e-9)


def test_a_network_takes_the_numbers_themselves(spelled_model: tb.Model) -> None:
    assert len(spelled_model.export(format="onnx")) > 1000


def test_a_date_that_is_said_to_be_one_is_read_as_before() -> None:
    table = {"day": ["31/05/2024", "01/06/2024", "13/06/2024"] * 8, "y": ["a", "b", "a"] * 8}
    proposed, chosen = tb.infer(table, "y"), tb.infer(table, "y", kinds={"day": "date"})
    assert chosen["day.days"].spelling == proposed["day.days"].spelling == tb.Spelling(date="%d/%m/%Y")
    assert tb.count(table, chosen).rows == 24


def sums_of_money(path: Path) -> str:
    """Whole numbers up to 3,000 with points between thousands, with and without a sign, beside a decimal comma."""
    rng = np.random.default_rng(1)
    lines = ["plain;share;signed;y"]
    for v, u, y in zip(
        rng.integers(1, 3000, 300).tolist(), rng.random(300).tolist(), rng.choice([*"pq"], 300), strict=True
    ):
        whole = f"{v:,}".replace(",", ".")
        lines.append(f"{whole};{f'{u:.2f}'.replace('.', ',')};{whole} €;{y}")
    path.write_text("\n".join(lines) + "\n", "utf-8")
    return str(path)


def test_points_before_three_digits_are_thousands_where_it_is_said_and_a_doubt_elsewhere(tmp_path: Path) -> None:
    path = sums_of_money(tmp_path / "de.csv")
    whole = [int(line.split(";")[0].replace(".", "")) for line in Path(path).read_text("utf-8").splitlines()[1:]]
    with pytest.warns(
        tb.TallybayesWarning, match="a point before every three digits: .* decimal=',' reads it as thousands"
    ):
        doubted = tb.infer(path, "y")
    for name in ("plain", "signed"):
        assert "decimal=',' reads it as thousands" in str(doubted[name].reason), name
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        said = tb.infer(tb.read(path, decimal=","), "y")
        tally = tb.count(tb.read(path, decimal=","), said)
        frame = pd.read_csv(path, sep=";", decimal=",", thousands=".")
    assert said["signed"].spelling == tb.Spelling(",", ".", "€")
    assert (frame["plain"].to_numpy() == whole).all()
    for name in ("plain", "signed"):
        n, mean = (
            sum(m[0] for m in tally.moments(name).values()),
            sum(m[0] * m[1] for m in tally.moments(name).values()),
        )
        assert (n, mean / n) == (300, pytest.approx(np.mean(whole)))
        low, high = said[name].cells.edges(said[name].cells.codes(np.array([min(whole), max(whole)], dtype=float)))
        assert low[0] <= min(whole) and high[1] >= max(whole)
    row = {"plain": "2.500", "share": "0,5", "signed": "2.500 €"}
    model = tally.model()
    assert np.array_equal(model.predict_proba(row), model.predict_proba({"plain": 2500, "share": 0.5, "signed": 2500}))


def test_decimals_of_three_digits_raise_no_doubt_without_a_sign() -> None:
    x = [f"{v:.3f}" for v in np.random.default_rng(0).uniform(1, 9, len(Y))]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "thousands" not in str(tb.infer({"x": x, "y": Y}, "y")["x"].reason)
        prices = [f"{v:.2f} €" for v in np.random.default_rng(0).uniform(1, 9000, len(Y))]
        assert "thousands" not in str(tb.infer({"x": prices, "y": Y}, "y")["x"].reason)
