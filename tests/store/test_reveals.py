"""What a file reveals, as a page, and copies for others without what few rows have."""

from __future__ import annotations

import io
import json
import re
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import tallybayes as tb
from tallybayes.model.provenance import FitFigures
from tallybayes.store.model_file import to_bytes
from tallybayes.tally.table import from_ipc, to_ipc

pytestmark = pytest.mark.filterwarnings("ignore")
Table = dict[str, list[Any]]


def random_table(seed: int) -> Table:
    """Ordinary rows of every kind of column, and a few with values, words, numbers and a class of their own."""
    rng = np.random.default_rng(seed)
    n, few = 120, 4
    y = rng.integers(0, 2, n)
    return {
        "town": [f"town{k}" for k in rng.integers(0, 3, n) + y] + [f"Zyx{k // 2}" for k in range(few)],
        "size": [*(rng.integers(0, 4, n) + y).astype(float).tolist(), *(7654321.125 + k for k in range(few))],
        "pay": (rng.normal(2000, 300, n + few) + 400 * np.append(y, np.zeros(few))).round(2).tolist(),
        "note": [" ".join(rng.choice(["ant", "bee", "cat", "dog"], 4)) for _ in range(n)]
        + [f"qwx{k} bee cat dog" for k in range(few)],
        "y": [*("uv"[k] for k in y), "u", "v", "w-only", "w-only"],
    }


def model_of(seed: int) -> tb.Model:
    table = random_table(seed)
    options: dict[str, Any] = {"pairs": True} if seed % 2 else {"calibrate": False}
    return tb.fit(table, "y", **options)


def rows_in_file(raw: bytes) -> dict[tuple[str, str, str, str], float]:
    """How many rows a file says that a class has in a slot, read as any reader of Parquet does."""
    out: dict[tuple[str, str, str, str], float] = {}
    for line in pq.read_table(io.BytesIO(raw)).to_pylist():
        amount = {"words": "documents", "labels": "rows"}.get(line["sheet"], "n")
        key = (line["column"], line["sheet"], line["slot"], line["class"])
        out[key] = out.get(key, 0.0) + line[amount] * 2.0 ** (32 * line["limb"])
    return out


def by_slot(raw: bytes) -> dict[tuple[str, str, str], float]:
    out: dict[tuple[str, str, str], float] = {}
    for (column, sheet, slot, _), n in rows_in_file(raw).items():
        out[column, sheet, slot] = out.get((column, sheet, slot), 0.0) + n
    return out


@pytest.mark.parametrize("seed", range(4))
def test_every_slot_of_few_rows_is_a_line(seed: int) -> None:
    model = model_of(seed)
    lines = {(r["column"], r["what"], r["value"]): r["rows"] for r in model.reveals(below=5).table.to_pylist()}
    names = {"values": "value", "words": "word"}
    rare = {k: n for k, n in by_slot(to_bytes(model)).items() if n < 5 and k[1] in names}
    assert rare
    for (column, sheet, slot), n in rare.items():
        text = " and ".join(json.loads(slot)) if model.schema[column].kind == "pair" else slot
        assert lines[column, names[sheet], text] == n
    listed = [k for k in lines if k[1] in names.values()]
    assert len(listed) == len(rare)  # and nothing that more rows have
    cells = [n for (c, sheet, _), n in by_slot(to_bytes(model)).items() if sheet == "cells" and c == "pay" and n < 5]
    assert sorted(n for (c, what, _), n in lines.items() if (c, what) == ("pay", "number")) == sorted(cells)
    assert lines["y", "label", "w-only"] == 2
    assert lines["size", "number", "7654321.125"] == 1 and lines["size", "highest", "7654324.125"] == 1
    assert lines["size", "sum", "class w-only: 7654323.125 and 7654324.125"] == 2  # two numbers follow from their sums
    for name, own in model.settings.corrections.items():
        cuts = {float(v) for (c, what, v) in lines if (c, what) == (name, "cut of the correction")}
        assert cuts == {*own.cuts}
    assert {v for (c, what, v) in lines if what == "offsets"} >= {
        f"{c}: {n:.6g}" for c, n in model.settings.offsets.items()
    }
    for column in model.schema.columns:
        for side in column.of or ():
            assert all((column.name, "cut", f"{side.source}: {tb_number(c)}") in lines for c in side.cuts)
            assert all((column.name, "group", f"{side.source}: {', '.join(g)}") in lines for g in side.groups)


def tb_number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def test_the_page_sums_up_and_is_short() -> None:
    rows = {"t": [f"word{i} common" for i in range(50)], "y": ["u", "v"] * 25}
    model = tb.count(rows, tb.Schema([tb.Column("t", "text")], "y")).model()
    page = str(model.reveals())
    assert "t: 51 words: 50 in one row only, 50 in fewer than 5 rows" in page
    assert "… 46 more lines of t" in page and len(page.splitlines()) < 20
    assert "<table>" in model.reveals()._repr_html_()
    assert json.loads(json.dumps(model.reveals().to_dict()))["columns"][1]["lines"][0] == {
        "what": "word", "value": "word0", "rows": 1,
    }  # fmt: skip
    assert model.tally is not None
    assert [c.summary for c in model.tally.reveals().columns[:2]] == [c.summary for c in model.reveals().columns[:2]]
    assert "no rows: it was written by hand" in str(tb.Model.written({"a": 0.5, "b": 0.5}).reveals())
    with pytest.raises(tb.SettingsError, match="below 0 rows"):
        model.reveals(0)


def test_weights_hashes_and_points_that_nobody_has_are_said() -> None:
    rows = {"n": [1.0, 2.0, 2.0] * 9 + [77.5], "y": ["u", "v"] * 14}
    schema = tb.infer(rows, "y", receipts=True)
    tally = tb.count({k: v[:27] for k, v in rows.items()}, schema, weights=[0.5] * 27)
    page = str(tally.reveals())
    assert "the rows have weights" in page and "hashes of rows" in page
    assert ("n", "point", "77.5", 0.0) in [tuple(r.values()) for r in tally.reveals().table.to_pylist()]
    with pytest.raises(tb.SettingsError, match="weights"):
        tally.at_least(5)


# ---- copies for others


@pytest.mark.parametrize("seed", range(6))
def test_a_copy_has_nothing_that_fewer_rows_have(seed: int, tmp_path: Path) -> None:
    least = 3 + seed
    model, table = model_of(seed), random_table(seed)
    shared = model.share(at_least=least)
    shared.save(tmp_path / "copy")
    raw, before = (tmp_path / "copy").read_bytes(), rows_in_file(to_bytes(model))
    rows = rows_in_file(raw)
    assert rows and all(before[key] == n for key, n in rows.items())  # what is left is as it was
    slots = {k: n for k, n in by_slot(raw).items() if k[1] != "moments"}
    assert min(slots.values()) >= least
    assert min(n for (_, sheet, _, _), n in rows.items() if sheet == "moments") >= least
    assert {c for *_, c in rows} == {"u", "v"}
    everything = raw + b"".join(pq.ParquetFile(io.BytesIO(raw)).metadata.metadata.values())
    for word in (b"Zyx", b"qwx", b"w-only", b"7654321", b"7654324"):
        assert word not in everything
    copy = tb.load(tmp_path / "copy")
    assert copy.tally == shared.model.tally and copy.tally.least_rows == least
    np.testing.assert_allclose(copy.predict_proba(table), shared.model.predict_proba(table), rtol=1e-12)
    assert np.isfinite(copy.predict_proba(table)).all() and copy.tally.digest != model.tally.digest
    left = copy.reveals(below=least).table.to_pylist()
    assert [r for r in left if r["rows"] is not None and r["rows"] < least] == []
    lost = {(r["column"], r["what"]): r for r in shared.table.to_pylist()}
    words = by_slot(to_bytes(model))
    gone = [k for k, n in words.items() if k[:2] == ("note", "words") and k not in slots]
    assert lost["note", "word"]["left_out"] == len(gone) and "w-only" in str(shared)
    assert shared.lost_classes == {"w-only": 2}


def test_stretches_of_corrections_in_a_copy_have_as_many_rows() -> None:
    table = random_table(1)
    model = tb.fit(table, "y", pairs=True)
    before, after = (m.settings.corrections["pay"].cuts for m in (model, model.share(6).model))
    counts = np.bincount(np.searchsorted(after, table["pay"], side="right"), minlength=len(after) + 1)
    assert len(before) > len(after) > 1 and counts.min() >= 4  # cells at the edges may lie across
    assert not {*before} & {*after}


def test_where_every_slot_has_enough_rows_a_copy_answers_as_the_model() -> None:
    rows = {"c": ["a", "b", "a", "c"] * 30, "n": [1.0, 2.0, 3.0] * 40, "y": ["u", "v", "v", "u"] * 30}
    model = tb.count(rows, tb.infer(rows, "y", keep_leaks=True)).model()
    shared = model.share(at_least=10)
    assert (shared.model.predict_proba(rows) == model.predict_proba(rows)).all()
    assert "0 of " in str(shared) and shared.model.tally.least_rows == 10


def test_a_copy_learns_forgets_what_it_learnt_and_refuses_the_rest() -> None:
    table = random_table(0)
    model = tb.fit(table, "y", calibrate=False)
    copy = model.share(5).model
    more = {k: v[:3] + v[-4:-2] for k, v in table.items()}
    later = copy.update(more)
    assert later.tally == copy.tally + tb.count(more, copy.schema) and later.tally.least_rows == 5
    assert later.forget(more).tally == copy.tally
    gone = {k: v[-1] for k, v in table.items()}
    for ask in (copy.forget, copy.tally.forget):
        with pytest.raises(tb.CannotForget, match="fewer than 5 rows had"):
            ask([gone])
    with pytest.raises(tb.CannotForget, match="fewer than 5 rows had"):
        copy.forget(gone)
    both = copy.tally + model.tally
    assert both.least_rows == 5 and both.impossible() is None
    assert from_ipc(to_ipc(copy.tally)).least_rows == 5
    assert "a copy without what fewer than 5 rows have" in repr(copy.tally)
    with pytest.raises(tb.CannotEstimate, match="no rows can have"):
        (copy.tally - model.tally).model()


@pytest.mark.parametrize("family", ["gaussian", "gaussian-shared", "student", "kernel", "bins", "poisson"])
def test_every_family_reads_a_copy(family: str) -> None:
    table = random_table(3)
    tally = tb.count(table, tb.infer(table, "y"))
    model = tally.model(tb.Settings(families={"size": family, "pay": family}))
    assert np.isfinite(model.share(20).model.predict_proba(table)).all()


def test_what_a_person_has_named_goes_with_a_class(tmp_path: Path) -> None:
    table = random_table(2)
    tally = tb.count(table, tb.infer(table, "y", receipts=True))
    settings = tb.Settings(prior={"u": 0.4, "v": 0.4, "w-only": 0.2}, offsets={"w-only": 1.0, "u": 0.5})
    copy = tally.model(settings).share(5).model
    assert copy.settings.prior == {"u": 0.5, "v": 0.5} and copy.settings.offsets == {"u": 0.5}
    assert not copy.schema.receipts and "receipts" not in copy.tally.labels.sheets
    imagined = tb.Settings(prior=tb.Dirichlet({"u": 1, "w-only": 3}))
    assert tally.model(imagined).share(5).model.classes == ("u", "v")
    for least in (1, 2.5, True):
        with pytest.raises(tb.SettingsError, match="at least"):
            tally.at_least(least)  # type: ignore[arg-type]
    with pytest.raises(tb.SettingsError, match="of 3 classes have at least 1000 rows"):
        tally.at_least(1000)
    copy.tally.save(tmp_path / "tally")
    assert tb.Tally.load(tmp_path / "tally").least_rows == 5


def test_groups_lose_values_that_few_rows_have() -> None:
    sides = (
        tb.PairColumn("town", groups=(("Zyx", "Aal"), ("Bonn",), ("Rare", "Seldom"))),
        tb.PairColumn("n", "number", cuts=(1.5,)),
    )
    columns = [tb.Column("town", "category"), tb.Column("n", "number"), tb.Column("p", "pair", of=sides)]
    towns = ["Aal", "Bonn"] * 10 + ["Zyx"] * 2 + ["Rare"] * 3 + ["Seldom"] * 3
    rows = {"town": towns, "n": [1.0, 2.0] * 14, "y": ["u", "v"] * 14}
    copy = tb.count(rows, tb.Schema(columns, "y")).at_least(4)
    assert copy.schema["p"].of is not None and copy.schema["p"].of[0].groups == (("Aal",), ("Bonn",))
    names = str(copy.columns["p"].sheets["values"].slot_names)
    assert "Aal" in names and not any(word in names + str(copy.schema.to_dict()) for word in ("Zyx", "Rare", "Seldom"))
    alone = tb.Schema([columns[1], columns[2]], "y")  # nobody knows how many rows have which town
    assert "p" not in tb.count(rows, alone).at_least(4).columns


def test_the_change_of_answers_is_that_of_two_evaluations() -> None:
    table = random_table(4)
    shared = tb.fit(table, "y", calibrate=False).share(5)
    found = shared.measured(table)
    assert found["log_loss"] == tb.evaluate(shared.of, table)["log_loss"]
    assert found["log_loss_of_copy"] == tb.evaluate(shared.model, table)["log_loss"] > found["log_loss"]
    answers = [m.predict(table) for m in (shared.of, shared.model)]
    assert found["other_answers"] == float(np.mean(answers[0] != answers[1]))


# ---- the page that says so


PAGE = Path(__file__).parents[2] / "docs" / "model_file.md"


def documented(head: str) -> set[str]:
    """The names in the first and second column of a table of the page."""
    table = PAGE.read_text(encoding="utf-8").partition(f"| {head} |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1:3] for line in table.splitlines()[2:]]
    return {*re.findall(r"`([\w]+)`", " ".join(cell for line in cells for cell in line))} - {
        "infer",
        "auto",
        "model",
        "tally",
    }


def keys(value: Any, depth: int) -> set[str]:
    """The names of the fields of a record, and of records in it down to a depth."""
    if isinstance(value, (list, tuple)):
        return {key for item in value for key in keys(item, depth)}
    if not isinstance(value, dict) or not depth:
        return set()
    return {*value, *(key for name, item in value.items() if name != "text" for key in keys(item, depth - 1))}


def test_the_page_names_every_field_of_a_file_and_no_other() -> None:
    sides = (
        tb.PairColumn("c", groups=(("a",), ("b",)), missing=("?",)),
        tb.PairColumn("day", "number", "days", cuts=(1.5,)),
    )
    columns = [
        tb.Column("c", "category", values=("a", "b"), missing=("?",), reason="by hand"),
        tb.Column("v", "vector", width=2),
        tb.Column("t", "text", levels=2, source="text"),
        *(tb.Column("day", "date"), tb.Column("p", "pair", of=sides)),
        tb.Column("n", "number", cells=tb.Cells(0.0, 1, (1.0,), True), spelling=tb.Spelling(",", ".", "$", odd=True)),
        tb.Column("d", "date", spelling=tb.Spelling(date="%Y")),
        tb.Column("f", "category", spelling=tb.Spelling(fold=True)),
    ]
    rows = {
        "c": ["a", "b"] * 9,
        "d": ["1970"] * 18,
        "f": ["A", "b"] * 9,
        "v": [[1.0, 2.0]] * 18,
        "text": ["ant bee"] * 18,
        "n": [1.0, 2.0, 3.0] * 6,
        "y": ["u", "v"] * 9,
    }
    tally = tb.count(rows | {"day": ["1970-01-02", "1970-01-05"] * 9}, tb.Schema(columns, "y", fold=True))
    found = {k.decode().removeprefix("tallybayes."): v.decode() for m in (
        to_bytes(tally.model().share(2).model), to_bytes(tb.Model.written({"a": 0.5, "b": 0.5})))
        for k, v in pq.ParquetFile(io.BytesIO(m)).metadata.metadata.items() if k.startswith(b"tallybayes.")
    }  # fmt: skip
    assert documented("name") == {*found}
    schema = tally.schema.to_dict()
    assert documented("field of the schema") == keys(schema, 3)
    assert {f.name for f in fields(tb.Column)} | {f.name for f in fields(tb.Schema)} <= documented(
        "field of the schema"
    )
    settings = {f.name for cls in (tb.Settings, tb.Correction, tb.Calibrated) for f in fields(cls)}
    assert documented("setting") == settings
    history = tally.model().update(rows | {"day": ["1970-01-02"] * 18}).history
    held = FitFigures("rows", 3, {"accuracy": (0.5, 0.4, 0.6), "log_loss": (0.5, 0.4, 0.6)})
    words = {"added", "forgotten", "taken", "out", "merged", "recalibrated", "calibrated"}
    assert documented("field of the provenance") - words == keys(replace(history, held_out=held).to_dict(), 3)
    sheets = {line["sheet"] for line in pq.read_table(io.BytesIO(to_bytes(tally.model()))).to_pylist()}
    assert sheets | {"receipts", "skipped", "together"} == documented("sheet") - {
        "=3",
        "receipts=True",
        "n",
        "x",
        "xx",
        "rows",
        "documents",
    } | {"rows"}
