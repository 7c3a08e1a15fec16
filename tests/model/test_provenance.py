"""Where a model comes from: what its file says of that, what renews it, and what it is no part of."""

from __future__ import annotations

import json
import pickle
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import command_line
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallybayes as tb
from tallybayes.model.provenance import MOST_EVENTS, MOST_SOURCES, History, names_of
from tallybayes.store import model_file

ROWS = {
    "sky": ["sunny", "rainy", "sunny", "grey"] * 8,
    "temp": [20.5, 7.0, 18.0, 11.0] * 8,
    "play": (["yes", "no"] * 3 + ["no", "no"]) * 4,
}
ROW = {"sky": "sunny", "temp": 3.5, "play": "no"}
SCHEMA = tb.Schema([tb.Column("sky", "category"), tb.Column("temp", "number")], target="play")
FLATS = Path(__file__).resolve().parents[2] / "examples" / "flats.csv"


@pytest.fixture(autouse=True)
def clock(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Sets the time at which things happen."""

    def at(hour: int) -> None:
        monkeypatch.setenv("SOURCE_DATE_EPOCH", str(1_717_113_600 + 3600 * hour))

    at(0)
    return at


def saved(model: tb.Model) -> tb.Model:
    raw = model_file.to_bytes(model)
    model_file.check(raw)
    return model_file.from_bytes(raw)


def told(model: tb.Model) -> list[tuple[str, int, str]]:
    return [(event.what, event.rows, event.when[11:16]) for event in model.provenance.history.events]


def digest(model: tb.Model) -> bytes:
    """Of what the file means."""
    held: bytes = pq.read_metadata(pa.BufferReader(model_file.to_bytes(model))).metadata[b"tallybayes.digest"]
    return held


def plain() -> tb.Model:
    return tb.count(ROWS, SCHEMA).model()


def test_a_file_says_when_it_was_made_and_by_which_release(clock, tmp_path):
    pq.write_table(pa.table(ROWS), tmp_path / "days of Anna.parquet")
    model = saved(tb.fit(tmp_path / "days of Anna.parquet", target="play", calibrate=False))
    found = model.provenance.to_dict()
    assert (found["made"], found["release"]) == ("2024-05-31T00:00:00Z", tb.__version__)
    assert (found["rows"], found["digest"]) == (32, model.tally.digest)
    assert found["sources"] == ["days of Anna.parquet"]  # no folders
    assert str(tmp_path) not in json.dumps(found) and str(tmp_path).encode() not in model_file.to_bytes(model)
    page = str(model.provenance)
    assert "2024-05-31 00:00:00 UTC by tallybayes" in page and "32 rows" in page and model.tally.digest in page
    assert saved(tb.Model.written({"a": 0.5, "b": 0.5})).provenance.rows is None
    assert "written by hand" in str(tb.Model.written({"a": 0.5, "b": 0.5}).provenance)


def test_time_and_names_are_no_part_of_what_a_model_is(clock):
    one = plain()
    clock(5)
    other = plain()
    named = replace(other, history=History.begun(["a.csv"]))
    assert one.history.made != other.history.made
    assert digest(one) == digest(other) == digest(named) and one.tally.digest == named.tally.digest
    assert model_file.tally_to_bytes(one.tally) == model_file.tally_to_bytes(named.tally)
    assert model_file.to_bytes(one) != model_file.to_bytes(other)
    clock(0)
    assert model_file.to_bytes(plain()) == model_file.to_bytes(one)  # SOURCE_DATE_EPOCH makes files reproducible


def test_the_clock_is_asked_where_nothing_else_is_said(monkeypatch):
    for given in (None, "", "soon", "-1", "1e9"):
        monkeypatch.delenv("SOURCE_DATE_EPOCH") if given is None else monkeypatch.setenv("SOURCE_DATE_EPOCH", given)
        monkeypatch.setattr("time.time", lambda: 86_400.75)
        assert History.begun().made == "1970-01-02T00:00:00Z"


def test_whatever_changes_a_model_renews_its_history(clock):
    model = plain()
    clock(1)
    more = model.update(ROWS)
    clock(2)
    less = more.forget(ROWS)
    assert told(less) == [("added", 32, "01:00"), ("forgotten", 32, "02:00")]
    assert told(model) == [] and less.tally == model.tally
    clock(3)
    assert told(less.forget({name: values[:4] for name, values in ROWS.items()}))[1:] == [("forgotten", 36, "03:00")]
    assert told(saved(model._changed(model.tally - tb.count({n: v[:8] for n, v in ROWS.items()}, SCHEMA)))) == [
        ("taken out", 8, "03:00")
    ]
    assert told(saved(model.counted)) == told(saved(model.generative)) == []
    assert model.counted.history == model.history == model.generative.history


def test_rows_that_wait_are_in_the_history_when_it_is_asked(clock):
    model = plain()
    clock(1)
    one = model.update(ROW)
    later = one.update(ROW).update(ROW).forget(ROW)
    assert told(later) == [("added", 3, "01:00"), ("forgotten", 1, "01:00")]
    clock(2)
    assert told(saved(later.update(ROW)))[2:] == [("added", 1, "02:00")]
    assert told(one) == [("added", 1, "02:00")]
    assert told(pickle.loads(pickle.dumps(later)))[0] == ("added", 3, "01:00")


def test_recalibrating_renews_the_figures(clock):
    rows = {n: v * 8 for n, v in ROWS.items()}
    model = tb.fit(rows, schema=SCHEMA, effort="quick")
    held = saved(model).provenance.held_out
    assert held is not None and held.rows == model.settings.calibrated.judged and held.changed == 0
    value, low, high = held.figures["accuracy"]
    assert low <= value <= high <= 1 and value == model.settings.calibrated.accuracy
    more = model.update(ROWS)
    assert more.provenance.held_out.changed == 32 and "before 32 rows changed" in str(more.provenance)
    clock(1)
    again = more.recalibrate(rows, effort="quick")
    assert told(again)[-1][::2] == ("recalibrated", "01:00")
    assert again.provenance.held_out.changed == 0 and "weights fitted anew" in str(again.provenance)


def test_a_history_is_bounded(clock):
    long = History.begun()
    for i in range(30):
        long = long.after("added" if i % 2 else "forgotten", 5)
    assert len(long.events) == MOST_EVENTS and long.earlier == 30 - MOST_EVENTS
    model = replace(plain(), history=long)
    assert f"{30 - MOST_EVENTS} times before" in str(model.provenance)
    history = History.begun(f"{i}.csv" for i in range(30)).merged([History.begun(["0.csv", "x" * 500])], 7)
    assert len(history.sources) == MOST_SOURCES and history.more == 30 - MOST_SOURCES + 1
    assert len(names_of("y" * 500)[0]) <= 100
    assert len(json.dumps(saved(replace(model, history=history)).history.to_dict())) < 3_000


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ("C:\\Users\\anna\\rows.csv", ("rows.csv",)),
        ("data/", ("data",)),
        (Path("a") / "b.csv.gz", ("b.csv.gz",)),
        (["x/a.csv", "y/b.csv"], ("a.csv", "b.csv")),
        ("postgresql://anna:secret@host/db", ()),
        ("https://host/rows.csv?key=secret", ()),
        ("anna:secret@host", ()),
        ([{"a": 1}], ()),
        (pa.table({"files": [1]}), ()),
        ("", ()),
    ],
)
def test_names_have_no_folders_and_no_addresses(given, names):
    assert names_of(given) == names


def test_copies_for_others_leave_names_out_and_reveals_names_them():
    model = replace(plain(), history=History.begun(["anna.csv", "bert.csv"]))
    lines = [line.value for c in model.reveals().columns for line in c.lines if line.what == "file"]
    assert lines == ["anna.csv", "bert.csv"] and "share() leaves them out" in str(model.reveals())
    copy = saved(model.share(2).model)
    assert copy.history.sources == () and copy.history.more == 2 and "2 files" in str(copy.provenance)
    assert b"anna" not in model_file.to_bytes(copy) and b"anna" in model_file.to_bytes(model)
    for form in ("sealed", "json", "onnx"):
        assert b"anna" not in model.export(None, form)
    card = model.export(None, "card").decode()
    assert "anna.csv" in card and "## Where it comes from" in card and model.tally.digest in card


def test_old_files_open_and_stay_as_they_are():
    stored = model_file.Stored(SCHEMA, tally=tb.count(ROWS, SCHEMA))
    raw = model_file._packed(stored)
    assert b"provenance" not in raw
    model = model_file.from_bytes(raw)
    assert model.history == History() and "nobody wrote down when" in str(model.provenance)
    assert b"provenance" not in model_file.to_bytes(model)
    assert told(saved(model.update(ROWS))) == [("added", 32, "00:00")] and not saved(model.update(ROWS)).history.made
    assert model.provenance.to_dict()["rows"] == 32
    old = plain()
    vars(old).pop("history")  # pickled before models had one
    assert pickle.loads(pickle.dumps(old)).history == History()


def with_text(raw: bytes, text: str) -> bytes:
    from tallybayes.store import parquet

    parts = parquet.unpack(raw)
    texts = {k: v for k, v in parts.metadata.items() if not k.endswith("checksum")}
    return parquet.pack(parts.table(()), {**texts, "tallybayes.provenance": text})


def test_a_history_made_to_deceive_is_refused_in_our_words():
    raw = model_file.to_bytes(plain())
    whole = History.begun(["a.csv"]).after("added", 3).to_dict()
    assert model_file.from_bytes(with_text(raw, json.dumps(whole))).history.sources == ("a.csv",)
    wrong = [{**whole, "made": 3}, {**whole, "sources": "abc"}, {**whole, "sources": [None]}, {**whole, "more": "1"}]
    wrong += [{**whole, "events": [{}]}, {**whole, "events": whole["events"] * 50}, {**whole, "x": 1}, [], None, {}]
    wrong += [{**whole, "held_out": 3}, {**whole, "held_out": {"how": "", "rows": 1, "figures": {"accuracy": ["x"]}}}]
    wrong += [{**whole, "sources": ["a"] * 1000}, {**whole, "more": -1}, {**whole, "earlier": 10**300}]
    endless = [{"accuracy": [x, 0.1, 0.2]} for x in (float("nan"), float("inf"), 10**400)]
    wrong += [{**whole, "held_out": {"how": "", "rows": 1, "changed": 0, "figures": each}} for each in endless]
    for each in wrong:
        with pytest.raises(tb.ModelFileError):
            model_file.from_bytes(with_text(raw, json.dumps(each)))
    odd = {**whole, "sources": ["\x1b[31m", "x" * 10_000], "made": "\x1b" * 100, "release": "\x1b[2J"}
    page = str(model_file.from_bytes(with_text(raw, json.dumps(odd))).provenance)
    assert "\x1b" not in page and len(page) < 2_000


def test_the_commands_write_and_show_it(clock, tmp_path):
    path, quick = tmp_path / "m.tb.parquet", ("--no-calibrate", "--folds", "2", "--no-progress")
    done = command_line.run("fit", FLATS, "--target", "let", "--set", "note=ignore", *quick, "-o", path)
    assert done.returncode == 0, done.err
    assert tb.load(path).history.sources == ("flats.csv",)
    figures = tb.load(path).provenance.held_out.figures
    for value, low, high in figures.values():  # as fit has printed them
        assert f"{value:.4f}" in done.out and f"{low:.4f} to {high:.4f}" in done.out
    clock(1)
    assert command_line.run("update", path, FLATS).returncode == 0
    page = command_line.run("show", path).out
    rows = tb.load(path).tally.rows // 2
    flat = re.sub(r"\s+", " ", page)
    assert "made 2024-05-31 00:00:00 UTC" in flat and "flats.csv" in flat
    assert f"{rows} rows added, 2024-05-31 01:00:00 UTC" in flat and f"before {rows} rows changed" in flat
    told = json.loads(command_line.run("show", path, "--json").out)["provenance"]
    assert told == json.loads(json.dumps(tb.load(path).provenance.to_dict()))
    command_line.run("merge", path, path, "-o", tmp_path / "two")
    assert tb.load(tmp_path / "two").history.events[-1].what == "merged"
    assert tb.load(tmp_path / "two").history.sources == ("flats.csv",)
