"""Comma-separated values: the dialect is found on the first lines, the rest is Arrow's parser and our own.

Every value gets its meaning from the schema, so that "01234" stays what it is and "1_000" is no number, as everywhere.
"""

from __future__ import annotations

import codecs
import functools
import os
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from ...base.errors import DataError
from ...base.temporary import folder_of
from ..batch import Wanted, refuse_repeated
from .careful_csv import NOT_UTF8, TOO_LONG, UNENDED, CarefulReader, Row, line_end
from .file import File, Format
from .quick_csv import KINDS, TEXT, CsvLayout, Piece, Pieces, some_rows

_LOOK = 1 << 20  # bytes in which the header and the delimiter are found
_LINES = 100
_SEP = re.compile(rb'(?i:"?sep=([,;\t|])"?)[,;\t| ]*+(?=[\r\n])')
_BLANK = re.compile(rb"[ \t]*+[\r\n]")
_UTF8 = ("utf-8", "utf-8-sig", "ascii")


class CsvFile:
    """A CSV file that can be read as often as asked; the first delimiter is taken where none cuts the lines evenly."""

    def __init__(self, file: File, delimiters: str = ",;\t|") -> None:
        self.file = file
        self._delimiters = delimiters
        self._text: str | None = None if _is_utf8(file.options.encoding) else _as_utf8(self, file)
        self.dialect = self._look()
        self._careful = CarefulReader(self.dialect.delimiter, len(self.dialect.names))

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.dialect.names

    @property
    def expected(self) -> float:
        """About how many rows, by the length of the first lines; 0 for a packed file."""
        return 0.0 if self.file.compression else self.file.size / self.dialect.line

    def pieces(self, con: Any, wanted: Wanted | None) -> Iterator[dict[str, Any]]:
        """The columns of each batch: texts, categories as dictionaries, numbers where all of a batch are plain ones."""
        chosen = [i for i, n in enumerate(self.names) if wanted is None or n in wanted]
        plain = wanted is not None and self.file.options.decimal == "."
        types = [KINDS.get(wanted[self.names[i]], TEXT) if wanted is not None and plain else TEXT for i in chosen]
        skipped, first = 0, 0
        for piece in self._read(chosen, types):
            for at, fault in piece.faults:
                if self.file.options.bad_lines == "error" or fault == NOT_UTF8:
                    raise self._explained(at, fault)
                first = first if skipped else self._first_fault(piece, at)
                skipped += 1
            if piece.columns:
                yield dict(zip((self.names[i] for i in chosen), piece.columns, strict=True))
        if skipped:
            self.file.tell_skipped(skipped, self._line_at(first))

    def _read(self, chosen: list[int], types: list[Any]) -> Iterator[Piece]:
        return Pieces(self.dialect, self.file.options, chosen, types, self.file.size).read(self._chunks())

    def _first_fault(self, piece: Piece, at: int) -> int:
        """Where the first row with a fault begins, exactly."""
        found = self._careful.read(piece.block, last=True).faults if at == piece.offset else []
        return piece.offset + found[0][0] if found else at

    def stretches(self, rows: float) -> dict[str, Any] | None:
        """The columns, as texts, of about so many rows from all over the file; None where it must be read whole."""
        options, path = self.file.options, self._text or self.file.path
        if options.bad_lines != "error" or (self.file.compression and not self._text):
            return None
        try:
            found = some_rows(path, self.dialect, rows, options)
        except OSError as error:
            raise self.file.unreadable(error) from None
        return None if found is None else dict(zip(self.names, found, strict=True))

    def _line_at(self, position: int) -> int:
        """The number of the line in which a byte stands."""
        line, seen, before = 1, 0, b""
        for chunk in self._chunks():
            part = chunk[: max(position - seen, 0)]
            line += part.count(b"\n") + part.count(b"\r") - part.count(b"\r\n") - (before + part[:1] == b"\r\n")
            seen, before = seen + len(chunk), chunk[-1:]
            if seen > position:
                break
        return line

    def _explained(self, position: int, fault: int) -> DataError:
        """What is wrong with the row that begins there, in which line, and what to do."""
        line, width = self._line_at(position), len(self.names)
        skip = "or skip such lines: tb.read(path, bad_lines='skip')."
        if fault == NOT_UTF8:
            return _not_utf8(self.file, line)
        if fault == UNENDED:
            return self.file.error("a quoted field does not end", f"close the quote, {skip}", line)
        if fault == TOO_LONG:
            return self.file.error(
                f"a line is longer than {self.file.options.longest_line >> 20} MiB",
                f"if it is right, allow more: memory_limit='2GB'. If a quote is never closed, close it, {skip}",
                line,
            )
        found = f"{width + 1} or more fields" if fault > width else f"{fault} field{'s' if fault > 1 else ''}"
        return self.file.error(
            f"{found} where the header has {width}",
            f"mend the line (a field with {self.dialect.delimiter!r} in it needs quotes), {skip}",
            line,
        )

    def place(self, row: int) -> str:
        """Where a row stands: the file and the number of the line it begins on."""
        before = 0
        for piece in self._read([0], [TEXT]):
            rows = len(piece.columns[0]) if piece.columns else 0
            if before + rows > row:
                start = self._careful.read(piece.block, last=True).starts[row - before]
                return f"{self.file.path}, line {self._line_at(piece.offset + start)}"
            before += rows
        return f"{self.file.path}, row {row}"

    def _chunks(self) -> Iterator[bytes]:
        return _chunks_of(self._text) if self._text else self.file.chunks()

    def _look(self) -> CsvLayout:
        sample = b""
        for chunk in self._chunks():
            sample += chunk
            if len(sample) >= _LOOK:
                break
        if sample.startswith((codecs.BOM_UTF16_BE, codecs.BOM_UTF16_LE)):
            raise self.file.error("the file is UTF-16", "read it with tb.read(path, encoding='utf-16').")
        try:
            text = codecs.getincrementaldecoder("utf-8-sig")().decode(sample)
        except UnicodeDecodeError as error:
            raise _not_utf8(self.file, sample[: error.start].count(b"\n") + 1) from None
        if not text.strip():
            raise self.file.error("the file is empty", "give a file with a header line and at least one row.")
        whole = len(sample) < _LOOK
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        lines = lines if whole or len(lines) == 1 else lines[:-1]
        skip = next(i for i, line in enumerate(lines) if line.strip())
        start = len(codecs.BOM_UTF8) if sample.startswith(codecs.BOM_UTF8) else 0
        for _ in range(skip):
            start = line_end(sample, start)
        said = _SEP.match(sample, start)  # a line that Excel reads and writes, and no row
        said = said if said and sample[said.end() :].strip() else None
        if said is not None:
            skip, start = skip + 1, line_end(sample, start)
            while _BLANK.match(sample, start):
                skip, start = skip + 1, line_end(sample, start)
        delimiter = self.file.options.delimiter or (said[1].decode() if said else "")
        delimiter = delimiter or self._delimiter(sample[start:], whole)
        header = next(_rows(sample[start:], delimiter, whole))
        if header.fault:
            raise self.file.error("a quoted field does not end", "close the quote in the header.", skip + 1)
        fields = [field.decode("utf-8", "replace").strip() for field in header.fields]
        names = [name or f"unnamed {i + 1}" for i, name in enumerate(fields)]
        if any("\0" in name for name in names):
            raise self.file.error("the first line is not text", "is this a CSV file? Its header holds NUL bytes.")
        refuse_repeated(names, f"{self.file.path}: ")
        return CsvLayout(tuple(names), delimiter, skip, len(sample) / max(len(lines) - 1, 1))

    def _delimiter(self, sample: bytes, whole: bool) -> str:
        """The delimiter that cuts the header and most of the first lines into the same number of fields."""
        best = (self._delimiters[0], 0.0, 1)
        for candidate in self._delimiters:
            rows = list(islice(_rows(sample, candidate, whole), _LINES))
            width = len(rows[0].fields)
            share = sum(len(row.fields) == width for row in rows) / len(rows)
            if width > 1 and (share, width) > best[1:]:
                best = (candidate, share, width)
        return best[0]


def _rows(sample: bytes, delimiter: str, whole: bool) -> Iterator[Row]:
    """The rows that the first bytes of a file hold, the last one only if it ends there; the first one in any case.

    By our own reader: Python's refuses fields of more than 131,072 characters, which documents have.
    """
    reader, at = CarefulReader(delimiter, 2), 0
    while at < len(sample):
        row = reader.row(sample, at, whole) or (reader.row(sample, 0, True) if at == 0 else None)
        if row is None:
            return
        yield row
        at = row.end


CSV = Format("csv", ("csv", "txt", "data"), CsvFile, untyped=True, noun="a CSV file")
TSV = Format("tsv", ("tsv", "tab"), functools.partial(CsvFile, delimiters="\t"), untyped=True, noun="a TSV file")


def _not_utf8(file: File, line: int | None) -> DataError:
    return file.error(
        "bytes that are not UTF-8",
        "say how it is written: tb.read(path, encoding='latin-1'), or 'cp1252' for a file from Windows.",
        line,
    )


def _is_utf8(encoding: str) -> bool:
    return codecs.lookup(encoding).name in _UTF8


def _as_utf8(owner: object, file: File) -> str:
    """A temporary copy in UTF-8, deleted with its owner."""
    path = os.path.join(folder_of(owner), "utf8.csv")
    decoder = codecs.getincrementaldecoder(file.options.encoding)()
    with open(path, "wb") as out:
        try:
            for chunk in file.chunks():
                out.write(decoder.decode(chunk).encode("utf-8", "replace"))
            out.write(decoder.decode(b"", final=True).encode("utf-8", "replace"))
        except UnicodeDecodeError as error:
            raise file.error(
                f"bytes that are not {file.options.encoding}: {error.reason}",
                "say how it is written: tb.read(path, encoding='utf-8'), 'cp1252', 'latin-1', …",
            ) from None
    return path


def _chunks_of(path: str) -> Iterator[bytes]:
    with open(path, "rb") as file:
        yield from iter(functools.partial(file.read, _LOOK), b"")
