"""Workbooks for tests, written by hand as the archives of XML that they are."""

from __future__ import annotations

import datetime as dt
import zipfile
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape, quoteattr

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
