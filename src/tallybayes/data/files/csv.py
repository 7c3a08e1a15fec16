"""Comma-separated values: the dialect is found on the first lines, the rest is Arrow's and DuckDB's parsers.

Every value gets its meaning from the schema, so that "01234" stays what it is and "1_000", which DuckDB would take for
a number, is refused as everywhere else.
"""

from __future__ import annotations

import codecs
import contextlib
import csv
import functools
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pyarrow as pa

from ...base.errors import DataError
from ...base.temporary import folder_of
from ..batch import Wanted, refuse_repeated
from . import duckdb as duck
from .file import File, Format, out_of_memory
from .quick_csv import KINDS, NUMBER, TEXT, CsvLayout, quick_pieces, some_rows

_LOOK = 1 << 20  # bytes in which the header and the delimiter are found
_LINES = 100
_REJECTS = 100_000  # bad lines that are counted
_LINE = re.compile(r"CSV Error on Line: (\d+)")
_WIDTH = re.compile(r"Expected Number of Columns: (\d+) Found: (\d+)")
_UTF8 = ("utf-8", "utf-8-sig", "ascii")


class CsvFile:
    """A CSV file that can be read as often as asked; the first delimiter is taken where none cuts the lines evenly."""

    def __init__(self, file: File, delimiters: str = ",;\t|") -> None:
        self.file = file
        self._delimiters = delimiters
        self._text: str | None = None if _is_utf8(file.options.encoding) else _as_utf8(self, file)
        self.dialect = self._look()

    @property
    def names(self) -> tuple[str, ...]:
        """The columns."""
        return self.dialect.names

    @property
    def expected(self) -> float:
        """About how many rows, by the length of the first lines; 0 for a packed file."""
        return 0.0 if self.file.compression else self.file.size / self.dialect.line

    def pieces(self, con: duck.Lazy, wanted: Wanted | None) -> Iterator[dict[str, Any]]:
        """The columns of each batch: texts, categories as dictionaries, numbers where all of a column are plain ones.

        Arrow's parser takes about half of the time, but says little about a line that it cannot read and nothing
        about a quote that is never closed. So it reads what it can, and DuckDB, which is strict, goes on from there.
        Numbers that Arrow does not know are read once more as texts, and get their meaning where all texts do.
        """
        chosen = {f"c{i}": n for i, n in enumerate(self.names) if wanted is None or n in wanted}
        options = self.file.options
        kinds = {c: KINDS.get(wanted[n], TEXT) for c, n in chosen.items()} if wanted and options.decimal == "." else {}
        texts = {c: TEXT if kind == NUMBER else kind for c, kind in kinds.items()}
        done = 0
        quick = options.bad_lines == "error" and self.dialect.plain
        for types in (kinds, texts) if quick else ():
            try:
                for piece in _after(done, quick_pieces(self._chunks(), self.dialect, chosen, types, options)):
                    yield piece
                    done += _rows(piece)
                return
            except pa.ArrowInvalid as error:
                if types == texts or "conversion error to double" not in str(error):
                    break
        yield from _after(done, self._strict(con, chosen))

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

    def _strict(self, con: duck.Lazy, chosen: dict[str, str]) -> Iterator[dict[str, Any]]:
        # Columns are numbered for DuckDB, which takes "a" and "A" for one; no name of the file is ever part of a query.
        skips = self.file.options.bad_lines == "skip"
        query = f"SELECT {', '.join(chosen)} FROM {self._table(skips)}"
        try:
            for batch in duck.stream(con().sql(query), self.file.options):
                yield {chosen[n]: c for n, c in zip(batch.schema.names, batch.columns, strict=True)}
            if skips:
                self.file.tell_skipped(*self._rejected(con()))
        except (duckdb.Error, pa.ArrowException, OSError) as error:  # by way of Arrow its errors come as others
            raise self._explained(error, con()) from None

    def _table(self, rejects: bool) -> str:
        """The file as a table of DuckDB; lines that are no rows are an error, or left out and kept for `_rejected`."""
        d, options = self.dialect, self.file.options
        arguments = {
            "auto_detect": "false",
            "header": "true",
            "skip": str(d.skip),
            "delim": duck.text(d.delimiter),
            "quote": "'\"'",
            "escape": "'\"'",
            "nullstr": "''",
            "columns": "{" + ", ".join(f"c{i}: 'VARCHAR'" for i in range(len(d.names))) + "}",
            "max_line_size": str(options.longest_line),
            "buffer_size": str(2 * options.longest_line),
            "hive_partitioning": "false",
            "compression": duck.text("none" if self._text else self.file.compression or "none"),
            **({"store_rejects": "true", "rejects_limit": str(_REJECTS)} if rejects else {}),
        }
        path = duck.path(self._text or self.file.absolute)
        return f"read_csv({path}, {', '.join(f'{name}={value}' for name, value in arguments.items())})"

    def _rejected(self, con: Any) -> tuple[int, int]:
        """How many lines were left out of the last table, and the number of the first."""
        found = "SELECT count(DISTINCT line_byte_position), min(line_byte_position) FROM reject_errors"
        lines, position = con.execute(found).fetchone()
        con.execute("DROP TABLE reject_errors; DROP TABLE reject_scans")
        return lines, self._line_at(position - 1) if lines else 0

    def _line_at(self, position: int) -> int:
        """The number of the line in which a byte stands; DuckDB's own count leaves out newlines in quotes."""
        line, seen = 1, 0
        for chunk in self._chunks():
            if seen + len(chunk) > position:
                rest = chunk[position - seen :]
                ends = len(rest) - len(rest.lstrip(b"\r\n"))  # empty lines before it
                return line + chunk.count(b"\n", 0, position - seen + ends)
            line += chunk.count(b"\n")
            seen += len(chunk)
        return line

    def _explained(self, error: Exception, con: Any) -> DataError:
        """DuckDB's error in our words: what, in which line, and what to do."""
        said = str(error)
        found = _LINE.search(said)
        line = int(found[1]) if found else None
        if found:
            with contextlib.suppress(duckdb.Error):  # its number then has to do
                con.execute(f"SELECT count(*) FROM {self._table(True)}").fetchall()
                line = self._rejected(con)[1] or line
        skip = "or skip such lines: tb.read(path, bad_lines='skip')."
        width = _WIDTH.search(said)
        if width:
            more = " or more" if int(width[2]) > int(width[1]) else ""  # DuckDB counts no further
            return self.file.error(
                f"{width[2]}{more} {'field' if width[2] == '1' else 'fields'} where the header has {width[1]}",
                f"mend the line (a field with {self.dialect.delimiter!r} in it needs quotes), {skip}",
                line,
            )
        if "unterminated quote" in said:
            return self.file.error("a quoted field does not end", f"close the quote, {skip}", line)
        if "Invalid unicode" in said or "not utf-8" in said:
            return _not_utf8(self.file, line)
        if "aximum line size" in said:
            return self.file.error(
                f"a line is longer than {self.file.options.longest_line >> 20} MiB",
                f"if it is right, allow more: memory_limit='2GB'. If a quote is never closed, close it, {skip}",
                line,
            )
        if isinstance(error, duckdb.OutOfMemoryException) or said.startswith("Out of Memory"):
            return out_of_memory(self.file)
        if isinstance(error, duckdb.IOException) or said.startswith("IO Error"):
            return self.file.unreadable(error)
        return self.file.error(said.splitlines()[0], f"mend the file, {skip}", line)

    def place(self, row: int) -> str:
        """Where a row stands: the file and the number of the line it begins on."""
        line = self._line(row)
        return f"{self.file.path}, row {row}" if line is None else f"{self.file.path}, line {line}"

    def _line(self, row: int) -> int | None:
        decoder = codecs.getincrementaldecoder(self.file.options.encoding)("replace")
        reader = csv.reader(_lines(self.file.chunks(), decoder), delimiter=self.dialect.delimiter)
        csv.field_size_limit(self.file.options.longest_line)
        skips = self.file.options.bad_lines == "skip"
        number, before = -1 - self.dialect.skip, 0
        for fields in reader:
            if fields and (not skips or len(fields) == len(self.names)):
                if number == row:
                    return before + 1
                number += 1
            before = reader.line_num
        return None

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
        delimiter = self.file.options.delimiter or self._delimiter(lines[skip:])
        names = next(csv.reader((line + "\n" for line in lines[skip:]), delimiter=delimiter))
        names = [name.strip() or f"unnamed {i + 1}" for i, name in enumerate(names)]
        if any("\0" in name for name in names):
            raise self.file.error("the first line is not text", "is this a CSV file? Its header holds NUL bytes.")
        refuse_repeated(names, f"{self.file.path}: ")
        return CsvLayout(tuple(names), delimiter, skip, len(sample) / max(len(lines) - 1, 1))

    def _delimiter(self, lines: list[str]) -> str:
        """The delimiter that cuts the header and most of the first lines into the same number of fields."""
        best = (self._delimiters[0], 0.0, 1)
        for candidate in self._delimiters:
            rows = [
                r
                for r, _ in zip(csv.reader((s + "\n" for s in lines), delimiter=candidate), range(_LINES), strict=False)
            ]
            width = len(rows[0])
            share = sum(len(row) == width for row in rows) / len(rows)
            if width > 1 and (share, width) > best[1:]:
                best = (candidate, share, width)
        return best[0]


CSV = Format("csv", ("csv", "txt", "data"), CsvFile, untyped=True, noun="a CSV file")
TSV = Format("tsv", ("tsv", "tab"), functools.partial(CsvFile, delimiters="\t"), untyped=True, noun="a TSV file")


def _rows(piece: dict[str, Any]) -> int:
    return len(next(iter(piece.values())))


def _after(rows: int, pieces: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """The pieces without the first rows."""
    for piece in pieces:
        passed = min(_rows(piece), rows)
        rows -= passed
        if passed < _rows(piece) or _rows(piece) == 0:
            yield {n: c[passed:] for n, c in piece.items()} if passed else piece


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


def _lines(chunks: Iterator[bytes], decoder: Any) -> Iterator[str]:
    rest = ""
    decode: Callable[[bytes], str] = decoder.decode
    for chunk in chunks:
        pieces = (rest + decode(chunk)).split("\n")
        rest = pieces.pop()
        yield from (piece + "\n" for piece in pieces)
    if rest:
        yield rest
