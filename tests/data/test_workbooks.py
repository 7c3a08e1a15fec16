"""Sheets of workbooks, written here by hand as the archives of XML that they are."""

from __future__ import annotations

import datetime as dt
import sys
import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

import pytest

import tallybayes as tb

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
TYPES = "http://schemas.openxmlformats.org/package/2006"
ERRORS = ("#N/A", "#DIV/0!")
DAY_ZERO = dt.datetime(1899, 12, 30)


def _letters(column: int) -> str:
    return (_letters(column // 26 - 1) if column >= 26 else "") + chr(65 + column % 26)


def _cell(at: str, value: Any) -> str:
    if value is None:
        return f'<c r="{at}" s="0"/>'  # formatted, and empty
    if isinstance(value, bool):
        return f'<c r="{at}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, dt.datetime):
        return f'<c r="{at}" s="1"><v>{(value - DAY_ZERO) / dt.timedelta(days=1)!r}</v></c>'
    if isinstance(value, (int, float)):
        return f'<c r="{at}"><v>{value!r}</v></c>'
    if value in ERRORS:
        return f'<c r="{at}" t="e"><v>{value}</v></c>'
    return f'<c r="{at}" t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'


def workbook(path: Path, sheets: dict[str, list[list[Any]]], merged: str = "", hidden: str = "") -> Path:
    """A workbook of sheets, {name: rows}; `merged` is a range of the first sheet."""
    names = list(sheets)
    listed = "".join(
        f'<sheet name={quoteattr(n)} sheetId="{i}" r:id="r{i}" state="{"hidden" if n == hidden else "visible"}"/>'
        for i, n in enumerate(names, 1)
    )
    links = "".join(
        f'<Relationship Id="r{i}" Type="{LINKS}/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in range(1, len(names) + 1)
    )
    links += f'<Relationship Id="s" Type="{LINKS}/styles" Target="styles.xml"/>'
    with zipfile.ZipFile(path, "w") as out:
        kinds = "application/vnd.openxmlformats-officedocument.spreadsheetml"
        out.writestr(
            "[Content_Types].xml",
            f'<Types xmlns="{TYPES}/content-types"><Default Extension="rels" ContentType="application/vnd.openxml'
            f'formats-package.relationships+xml"/><Default Extension="xml" ContentType="{kinds}.worksheet+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{kinds}.sheet.main+xml"/></Types>',
        )
        rel = f'<Relationships xmlns="{TYPES}/relationships">'
        target = f'<Relationship Id="b" Type="{LINKS}/officeDocument" Target="xl/workbook.xml"/>'
        out.writestr("_rels/.rels", f"{rel}{target}</Relationships>")
        out.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{MAIN}" xmlns:r="{LINKS}"><sheets>{listed}</sheets></workbook>'
        )
        out.writestr("xl/_rels/workbook.xml.rels", f"{rel}{links}</Relationships>")
        formats = '<cellXfs><xf numFmtId="0"/><xf numFmtId="22" applyNumberFormat="1"/></cellXfs>'
        out.writestr("xl/styles.xml", f'<styleSheet xmlns="{MAIN}">{formats}</styleSheet>')
        for i, rows in enumerate(sheets.values(), 1):
            body = "".join(
                f'<row r="{r}">' + "".join(_cell(f"{_letters(c)}{r}", v) for c, v in enumerate(row)) + "</row>"
                for r, row in enumerate(rows, 1)
            )
            joined = f'<mergeCells count="1"><mergeCell ref="{merged}"/></mergeCells>' if merged and i == 1 else ""
            out.writestr(
                f"xl/worksheets/sheet{i}.xml",
                f'<worksheet xmlns="{MAIN}"><sheetData>{body}</sheetData>{joined}</worksheet>',
            )
    return path


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
