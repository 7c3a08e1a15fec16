"""Answers on their way out: what is kept reads back as it was, names never clash, reasons are those of `explain`."""

from __future__ import annotations

import csv
import io
import json
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import tallybayes as tb

ROWS = {
    "sky": ["sunny", "rainy", "sunny", "grey", "rainy", "sunny"],
    "temp": [21.5, 9.0, 18.0, None, 11.0, 25.0],
    "play": ["yes", "no", "yes", "no", "no", "yes"],
}
SCHEMA = tb.Schema([tb.Column("sky", "category"), tb.Column("temp", "number")], target="play")
MODEL = tb.count(ROWS, SCHEMA).model()


def written(data: Any, format: str, **how: Any) -> str:
    out = io.BytesIO()
    tb.predict_file(MODEL, data, out, format=format, **how)
    return out.getvalue().decode()


texts = st.one_of(st.none(), st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12))


@examples(25)
@given(st.lists(texts, min_size=1, max_size=30), st.text('a,"\n\\ é', min_size=1, max_size=5))
def test_any_text_reads_back(notes: list[str | None], name: str) -> None:
    data = {"sky": ["sunny"] * len(notes), "temp": [9.0] * len(notes), name: notes}
    for format, delimiter in (("csv", ","), ("tsv", "\t")):
        back = list(csv.reader(io.StringIO(written(data, format, keep=[name]), newline=""), delimiter=delimiter))
        assert back[0] == [name, "prediction", "P(no)", "P(yes)"]
        assert [row[0] for row in back[1:]] == [note or "" for note in notes]
    lines = [json.loads(line) for line in written(data, "jsonl", keep=[name], row_numbers=True).split("\n")[:-1]]
    assert [(line["row"], line[name]) for line in lines] == list(enumerate(notes))


def test_every_type_can_be_kept_in_every_format(tmp_path) -> None:
    odd = pa.table({
        "sky": pa.array(["sunny", None]).dictionary_encode(),
        "whole": pa.array([1, None], pa.int8()),
        "float": pa.array([np.inf, np.nan]),
        "flag": pa.array([True, None]),
        "day": pa.array([0, None], pa.date32()),
        "list": pa.array([["a", "b,c"], None]),
        "bytes": pa.array([b"\xff", None]),
        "nothing": pa.nulls(2),
        "temp": [1.5, 2.5],
    })  # fmt: skip
    row = json.loads(written(odd, "jsonl", keep="all").splitlines()[0])
    assert (
        row["float"] == "Infinity"
        and row["list"] == ["a", "b,c"]
        and row["flag"] is True
        and row["day"] == "1970-01-01"
    )
    assert json.loads(written(odd, "jsonl", keep="all").splitlines()[1])["float"] is None
    fields = list(csv.reader(io.StringIO(written(odd, "csv", keep="all", probabilities=False))))
    assert fields[1][:6] == ["sunny", "1", "inf", "true", "1970-01-01", '["a", "b,c"]'] and fields[2][:8] == [""] * 8
    tb.predict_file(MODEL, odd, tmp_path / "o.parquet", keep="all")
    assert pq.read_table(tmp_path / "o.parquet").column("list").to_pylist() == [["a", "b,c"], None]


def test_a_row_that_is_all_empty_is_still_a_line() -> None:
    few = {"sky": ["grey", "grey"], "temp": [None, 15.0]}
    assert written(few, "csv", probabilities=False, unsure_below=1.0).splitlines() == ["prediction", '""', '""']


def test_names_that_clash_are_told_and_given_way_to() -> None:
    data = {**ROWS, "prediction": list("abcdef"), "row": range(6), "prediction (data)": list("uvwxyz")}
    with pytest.warns(tb.TallybayesWarning, match="written as") as told:
        first = json.loads(written(data, "jsonl", keep="all", row_numbers=True).splitlines()[0])
    assert len(told) == 2 and first["row"] == 0 and first["row (data)"] == 0 and first["prediction"] == "yes"
    assert first["prediction (data 2)"] == "a" and first["prediction (data)"] == "u"
    with pytest.raises(tb.SettingsError, match="'because 1' is what"):
        written({**ROWS, "because 1": [1] * 6}, "csv", keep=["because 1"], explain=1)
    with pytest.raises(tb.SettingsError, match=r"keep='sky'.*\n.*\n?.*\['sky'\]"):
        written(ROWS, "csv", keep="sky")


def test_columns_that_appear_late(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("tallybayes.data.files.typed._ROWS", 2)
    path = tmp_path / "late.jsonl"
    rows = [{"sky": sky, "temp": 9} for sky in ("sunny", "grey", "rainy")]
    rows[2]["note"] = "x"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    lines = [json.loads(line) for line in written(path, "jsonl", keep="all").splitlines()]
    assert "note" not in lines[0] and lines[2]["note"] == "x"
    with pytest.warns(tb.TallybayesWarning, match="columns that appear after row 2 only are not written: 'note'"):
        assert written(path, "csv", keep="all").splitlines()[0] == "sky,temp,prediction,P(no),P(yes)"
    each = [{**row, "n": n} for row, n in zip(rows, (1, 2, "three"), strict=True)]
    path.write_text("".join(json.dumps(row) + "\n" for row in each))
    assert written(path, "csv", keep=["n"]).splitlines()[3].startswith("three,")
    with pytest.raises(tb.DataError, match="column 'n' holds string from row 2 on and int64 before"):
        tb.predict_file(MODEL, path, tmp_path / "o.parquet", keep=["n"])
    assert not (tmp_path / "o.parquet").exists()


def test_costs_and_doubt_and_their_reasons() -> None:
    costs = {("no", "yes"): 9}
    lines = [json.loads(line) for line in written(ROWS, "jsonl", costs=costs, unsure_below=0.6, explain=1).splitlines()]
    assert [line["prediction"] for line in lines] == MODEL.predict(ROWS, costs=costs, unsure_below=0.6).tolist()
    answers = MODEL.predict(ROWS, costs=costs)
    for i, line in enumerate(lines):
        other = next(c for c in MODEL.classes if c != answers[i])
        terms = MODEL.explain(ROWS, i).for_class(answers[i], other)[1:]
        column, value, odds = max(terms, key=lambda term: abs(term[2]))
        assert line["because 1"] == f"{column}: {value}" and line["log-odds 1"] == pytest.approx(odds)
    for wrong in ({"costs": {("no", "maybe"): 1}}, {"unsure_below": 2}, {"explain": -1}):
        with pytest.raises(tb.SettingsError):
            written(iter(()), "csv", **wrong)  # before any row is asked for


def test_words_and_vectors_are_terms_of_their_own() -> None:
    data = {
        "text": ["win a prize win", "lunch at noon", "win lunch", None],
        "v": [[1.0, 5.0], [2.0, 1.0], [1.5, 4.0], [np.nan, 4.5]],
        "y": ["spam", "ham", "spam", "ham"],
    }
    schema = tb.Schema([tb.Column("text", "text"), tb.Column("v", "vector")], target="y")
    model = tb.count(data, schema).model()
    out = io.BytesIO()
    tb.predict_file(model, data, out, format="jsonl", explain=9)
    for i, line in enumerate(map(json.loads, out.getvalue().splitlines())):
        said: dict[str, float] = {}
        for column, value, odds in model.explain(data, i).for_class(None)[1:]:
            said[f"{column}: {value}"] = said.get(f"{column}: {value}", 0.0) + odds
        expected = sorted((v for v in said.values() if v), key=lambda v: -abs(v))
        found = [line[f"log-odds {k}"] for k in range(1, 10) if line[f"because {k}"] is not None]
        assert found == pytest.approx(expected[:9])
        assert all(said[line[f"because {k}"]] == pytest.approx(v) for k, v in enumerate(found, 1))
