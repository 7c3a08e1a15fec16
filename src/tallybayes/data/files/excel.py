"""Sheets of workbooks, Excel's and LibreOffice's, through python-calamine, which the extra `excel` installs.

Calamine is one compiled package without others behind it, reads xlsx, xlsb, ods and the old xls alike, and takes a
fraction of the time of readers in Python. A sheet is held in memory while it is read: it has a million rows at most.

The first row with anything in it names the columns. Rows and columns without a value are left out; cells with an error,
such as #N/A or #DIV/0!, are missing.
"""

from __future__ import annotations

import contextlib
import datetime as dt
from collections.abc import Iterator
from typing import Any

from ...base.errors import MissingExtra, warn
from ..batch import Wanted, refuse_repeated
from ..columns import as_column
from .databases import chosen_table
from .file import File, Format

_ROWS = 1 << 14  # in a batch


class ExcelSheet:
    """One sheet, whose first row has the names of the columns."""

    def __init__(self, file: File) -> None:
        self.file = file
        self._calamine = _calamine()
        with self._opened() as book:
            self.sheet = chosen_table(file, self._sheets(book), "sheet")
            sheet = book.get_sheet_by_name(self.sheet)
            left = sheet.start[1] if sheet.start else 0
            rows = _numbered(sheet)
            self._head, header = next(((i, row) for i, row in rows if _any(row)), (0, []))
            if not header:
                raise file.error(f"sheet {self.sheet!r} is empty", "give one with a row of names and at least one row.")
            self._check_merged(sheet.merged_cell_ranges or [])
            used = [bool(str(name).strip()) for name in header]
            whole = [True] * len(header)
            for _, row in rows:
                used = [a or b != "" for a, b in zip(used, row, strict=True)]
                whole = [a and _is_whole(b) for a, b in zip(whole, row, strict=True)]
            self.expected = float(sheet.height)
        self._columns = {
            str(header[i]).strip() or f"unnamed {left + i + 1}": i for i, there in enumerate(used) if there
        }
        self._whole = whole  # columns without a fraction: a sheet has no other whole numbers
        self.names = tuple(self._columns)
        refuse_repeated([str(name).strip() for name in header if str(name).strip()], f"{self.where}: ")

    @property
    def where(self) -> str:
        """What is read, for messages."""
        return f"{self.file.path}, sheet {self.sheet!r}"

    def _sheets(self, book: Any) -> list[str]:
        """The sheets to choose from: all where one is named, else those that show and hold anything."""
        kinds, shown = self._calamine.SheetTypeEnum, self._calamine.SheetVisibleEnum.Visible
        sheets = [s for s in book.sheets_metadata if s.typ == kinds.WorkSheet]  # no chart, no macro
        if self.file.table is not None or len(sheets) == 1:
            return [s.name for s in sheets]
        return [s.name for s in sheets if s.visible == shown and book.get_sheet_by_name(s.name).start is not None]

    @contextlib.contextmanager
    def _opened(self) -> Iterator[Any]:
        try:
            with contextlib.closing(self._calamine.CalamineWorkbook.from_path(self.file.path)) as book:
                yield book
        except self._calamine.PasswordError:
            raise self.file.error(
                "the workbook is protected by a password", "save a copy without one, or export the sheet as CSV."
            ) from None
        except (self._calamine.CalamineError, OSError) as error:
            said = (str(error).splitlines() or [type(error).__name__])[0]
            raise self.file.error(
                f"the workbook cannot be read: {said}", "open it in a spreadsheet program and save it again."
            ) from None

    def _check_merged(self, merged: list[Any]) -> None:
        """Refuse names that span columns or rows: nobody can say whose they are; tell of values that do."""
        ranges = [(*start, *end) for start, end in merged]
        head = [r for r in ranges if r[0] <= self._head <= r[2]]
        if head:
            raise self.file.error(
                f"sheet {self.sheet!r}: the cells {_cells(*head[0])} of the header are merged",
                "every column needs a name in a cell of its own, in the first row that has anything: unmerge the "
                "cells, and take titles above the header out.",
            )
        below = [r for r in ranges if r[0] > self._head]
        if below:
            warn(
                f"{self.where}: merged cells ({_cells(*below[0])}{', …' if len(below) > 1 else ''}) have their value "
                "in the first row and column alone, and are missing in the others. Hint: unmerge them and fill them in."
            )

    def _rows(self) -> Iterator[tuple[int, list[Any]]]:
        """The rows below the header that have anything, and their numbers in the sheet."""
        with self._opened() as book:
            for number, row in _numbered(book.get_sheet_by_name(self.sheet)):
                if number > self._head and _any(row):
                    yield number, row

    def pieces(self, con: Any, wanted: Wanted | None) -> Iterator[dict[str, Any]]:
        """The columns of each batch."""
        chosen = {n: i for n, i in self._columns.items() if wanted is None or n in wanted}
        rows: list[list[Any]] = []
        empty = True
        for _, row in self._rows():
            rows.append(row)
            if len(rows) == _ROWS:
                yield {n: self._column(rows, i) for n, i in chosen.items()}
                rows, empty = [], False
        if rows or empty:
            yield {n: self._column(rows, i) for n, i in chosen.items()}

    def _column(self, rows: list[list[Any]], i: int) -> Any:
        values = [_value(row[i]) for row in rows]
        return as_column([int(v) if type(v) is float else v for v in values] if self._whole[i] else values)

    def place(self, row: int) -> str:
        """Where a row stands: its number in the sheet."""
        found = next((number for i, (number, _) in enumerate(self._rows()) if i == row), self._head + row)
        return f"{self.where}, row {found + 1}"


def _numbered(sheet: Any) -> Iterator[tuple[int, list[Any]]]:
    """The rows and their numbers in the sheet; the empty ones above the first may be there or not."""
    rows = sheet.iter_rows()
    first = next(rows, None)
    if first is not None:
        begin = sheet.start[0] if _any(first) else 0
        yield begin, first
        yield from enumerate(rows, begin + 1)


def _is_whole(value: Any) -> bool:
    return type(value) is not float or (value.is_integer() and abs(value) < 2**53)


def _any(row: list[Any]) -> bool:
    return any(value != "" for value in row)


def _value(value: Any) -> Any:
    """A cell: nothing, or an error, is missing; a day is the time at which it begins, as the others of its column."""
    if value == "":
        return None
    return dt.datetime(value.year, value.month, value.day) if type(value) is dt.date else value


def _cells(top: int, left: int, bottom: int, right: int) -> str:
    """A range of cells as a sheet names it.

    >>> _cells(0, 1, 0, 27)
    'B1:AB1'
    """
    return f"{_letters(left)}{top + 1}:{_letters(right)}{bottom + 1}"


def _letters(column: int) -> str:
    before, here = divmod(column, 26)
    return (_letters(before - 1) if before else "") + chr(ord("A") + here)


def _calamine() -> Any:
    try:
        import python_calamine
    except ImportError:
        raise MissingExtra("reading workbooks needs python-calamine", hint="pip install 'tallybayes[excel]'") from None
    return python_calamine


EXCEL = Format(
    "excel", ("xlsx", "xlsm", "xlsb", "ods"), ExcelSheet, magic=b"PK\x03\x04",
    noun="an Excel workbook or another zip archive", tables="sheet",
)  # fmt: skip
OLD_EXCEL = Format(
    "xls", ("xls",), ExcelSheet, magic=b"\xd0\xcf\x11\xe0", noun="an old Excel workbook", tables="sheet"
)  # fmt: skip
