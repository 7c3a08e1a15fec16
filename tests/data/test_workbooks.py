"""Sheets of workbooks."""

from __future__ import annotations

import datetime as dt
import sys
from pathlib import Path
from typing import Any

import pytest
from workbooks import ERRORS, workbook

import tallybayes as tb

HEAD = [None, "size", "day", "paid", "", "rate", "y", None]
BODY: list[list[Any]] = [
    [
        None, i / 4, dt.datetime(2024, 1, 1) + dt.timedelta(days=i, hours=6 * (i % 2)), i % 3 == 0,
        "x" if i == 5 else None, ERRORS[i % 2] if i % 10 == 0 else i * 1.5, "yes" if i % 2 else "no", None,
    ]
    for i in range(60)
]  # fmt: skip
SHEET = [[None] * 8, [None] * 8, HEAD, *BODY[:40], [None] * 8, *BODY[40:], [None] * 8, [None] * 9]


def real() -> None:
    pytest.importorskip("python_calamine")


def test_a_sheet_is_a_table(tmp_path: Path) -> None:
    real()
    path = workbook(tmp_path / "book.xlsx", {"Sales & 2024": SHEET, "empty": [], "notes": [["a"]]}, hidden="notes")
    want = {
        "size": [r[1] for r in BODY], "day": [r[2] for r in BODY], "paid": [r[3] for r in BODY],
        "unnamed 5": [r[4] for r in BODY], "rate": [None if r[5] in ERRORS else r[5] for r in BODY],
        "y": [r[6] for r in BODY],
    }  # fmt: skip
    (batch,) = tb.read(path).batches()
    assert batch.names() == list(want) and {n: batch[n].to_pylist() for n in want} == want
    schema = tb.infer(want, "y")
    assert tb.infer(path, "y") == schema and tb.infer(f"{path}#Sales & 2024", "y") == schema
    assert tb.count(tb.read(path, table="Sales & 2024"), schema) == tb.count(want, schema)
    texts = tb.Schema([tb.Column("unnamed 5", "number")], target="y")
    with pytest.raises(tb.DataError, match=r"book.xlsx, sheet 'Sales & 2024', row 9, column 'unnamed 5': 'x' is not"):
        tb.count(path, texts)


def test_sheets_are_chosen_and_refused(tmp_path: Path) -> None:
    real()
    path = workbook(tmp_path / "two.xlsx", {"one": [["x", "y"], [1, "a"]], "two": [["x", "y"], [2, "b"]], "no": []})
    for given, words in {
        str(path): "there are 2 sheets: 'one', 'two'",
        f"{path}#tow": "there is no sheet 'tow'(.|\n)*did you mean 'two'",
        f"{path}#no": "sheet 'no' is empty",
    }.items():
        with pytest.raises(tb.DataError, match=words):
            tb.read(given)
    with pytest.raises(tb.DataError, match="answers no SQL"):
        tb.read(path, query="SELECT 1")
    titled = workbook(tmp_path / "titled.xlsx", {"s": [["Sales", None], ["x", "y"], [1, "a"]]}, merged="A1:B1")
    with pytest.raises(tb.DataError, match="the cells A1:B1 of the header are merged"):
        tb.read(titled)
    merged = workbook(tmp_path / "merged.xlsx", {"s": [["x", "y"], [1, "a"], [None, "b"]]}, merged="A2:A3")
    with pytest.warns(tb.TallybayesWarning, match=r"merged cells \(A2:A3\)"):
        assert next(tb.read(merged).batches())["x"].to_pylist() == [1.0, None]
    twice = workbook(tmp_path / "twice.xlsx", {"s": [["x", "x "], [1, "a"]]})
    with pytest.raises(tb.DataError, match="more than one column is called 'x'"):
        tb.read(twice)
    (tmp_path / "cut.xlsx").write_bytes(path.read_bytes()[:900])
    with pytest.raises(tb.DataError, match="the workbook cannot be read"):
        tb.read(tmp_path / "cut.xlsx")


def test_without_the_extra_its_command_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "python_calamine", None)
    with pytest.raises(tb.MissingExtra, match=r"pip install 'tallybayes\[excel\]'"):
        tb.read(workbook(tmp_path / "book.xlsx", {"s": [["x"], [1]]}))


def test_whole_numbers_are_whole(tmp_path: Path) -> None:
    """A sheet keeps 2 as 2.0; a class that a CSV calls 2 is the same class here."""
    real()
    rows = [["k", "size", "y"], *([i % 4, i / 2, 1 + i % 2] for i in range(40))]
    model = tb.fit(workbook(tmp_path / "book.xlsx", {"s": rows}), target="y", calibrate=False)
    assert [repr(c) for c in model.classes] == ["1", "2"]
    assert model.schema["size"].reason == "numbers from 0 to 19.5"
