"""The quick way through a CSV file without faults: Arrow's parser, fed by hand so that it cannot be fooled."""

from __future__ import annotations

import csv
import os
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Any

import pyarrow as pa
import pyarrow.csv

from ...base.threads import each
from .file import Options

_STRETCH = 1 << 14  # bytes of a file that are read in one place, at least
_STRETCH_LINES = 16  # and lines
_SHARE = 4  # of the memory that reading may take, for the bytes of all stretches
TEXT, NUMBER = pa.string(), pa.float64()
KINDS = {"category": pa.dictionary(pa.int32(), TEXT), "number": NUMBER}  # what a kind is read as; all else is text


@dataclass(frozen=True)
class CsvLayout:
    """What the first lines of a file say: its columns, the delimiter, how many empty lines come before them."""

    names: tuple[str, ...]
    delimiter: str
    skip: int
    line: float  # the mean length of a line, in bytes

    @property
    def plain(self) -> bool:
        """Whether the quick way can be gone: an empty line means nothing, and the header is one line."""
        return len(self.names) > 1 and "\n" not in "".join(self.names)


def quick_pieces(
    chunks: Iterator[bytes], dialect: CsvLayout, chosen: dict[str, str], types: dict[str, Any], options: Options
) -> Iterator[dict[str, Any]]:
    """The chosen columns, {number: name}, of each batch; pa.ArrowInvalid where a line or value is not as it should be.

    Rows that have been given are right even then. Arrow's own reader of streams holds 32 blocks ahead, however large;
    here whole lines go to its parser block by block, a few at a time.
    """

    def parsed(numbered: tuple[int, bytes]) -> dict[str, Any]:
        number, block = numbered
        skipped = 0 if number else dialect.skip + 1
        table = _parsed(block, dialect, list(chosen), {**dict.fromkeys(chosen, TEXT), **types}, skipped)
        return dict(zip(chosen.values(), table, strict=True))

    yield from each(parsed, enumerate(_blocks(chunks, options)))


def _parsed(block: bytes, dialect: CsvLayout, chosen: list[str], types: dict[str, Any], skipped: int) -> list[pa.Array]:
    """The chosen columns of some whole lines, but for the first so many."""
    table = pa.csv.read_csv(
        pa.BufferReader(block),
        pa.csv.ReadOptions(
            column_names=[f"c{i}" for i in range(len(dialect.names))],
            skip_rows=skipped,
            block_size=max(len(block) + 1, 1 << 10),
            use_threads=False,
        ),
        pa.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=b'"' in block),
        pa.csv.ConvertOptions(column_types=types, include_columns=chosen, strings_can_be_null=True, null_values=[""]),
    )
    return [
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else pa.array([], column.type)
        for column in table.columns
    ]


def _blocks(chunks: Iterator[bytes], options: Options) -> Iterator[bytes]:
    """The bytes of a file in whole lines, several megabytes at a time; no line ends within quotes.

    It ends the quick way where a space stands beside a quote: whether the quote then opens a field or is part of it is
    what parsers disagree about, and only one of them may decide.
    """
    parts: list[bytes] = []
    have = 0
    for chunk in chain(chunks, [b""]):
        parts.append(chunk)
        have += len(chunk)
        if chunk and have < options.block_bytes:
            continue
        block = b"".join(parts)
        quotes = b'"' in block
        if quotes and (b' "' in block or b'" ' in block):
            raise pa.ArrowInvalid("a space beside a quote")
        end = len(block) if not chunk else block.rfind(b"\n") + 1
        while quotes and end and block.count(b'"', 0, end) % 2:
            end = block.rfind(b"\n", 0, block.rfind(b'"', 0, end)) + 1 if chunk else 0
        if not end and block:
            if not chunk or len(block) > options.block_bytes + options.longest_line:
                raise pa.ArrowInvalid("a quote or a line that does not end")
        elif block[:end].strip(b"\r\n"):
            yield block[:end]
        parts, have = [block[end:]], len(block) - end


def some_rows(path: str, dialect: CsvLayout, rows: float, options: Options) -> list[pa.Array] | None:
    """The columns, as texts, of about so many rows of a file: stretches from its first line to its last.

    None where in doubt. Every so many bytes a line is read up to its end, and what follows it is the stretch. Should
    that end be within a quoted field, the lines after it could be taken for rows only if they have as many fields as
    the header; so lines that have, quotes or no quotes, put the file in doubt.
    """
    if not dialect.plain:
        return None
    most = min(rows * dialect.line, options.memory // _SHARE)
    each = max(_STRETCH, int(_STRETCH_LINES * dialect.line))
    pieces = []
    with open(path, "rb") as file:
        for _ in range(dialect.skip + 1):
            file.readline()
        first, size = file.tell(), os.fstat(file.fileno()).st_size
        many = max(int(most // each), 2)
        if size - first < many * each:
            return None  # there would be nothing between them
        for i in range(many):
            file.seek(first + (size - first - each) * i // (many - 1))
            chunk = file.read(each)
            start = 0 if i == 0 else chunk.find(b"\n") + 1
            end = len(chunk) if i == many - 1 else chunk.rfind(b"\n") + 1
            piece = chunk[start:end]
            if (i and not start) or not piece or _in_doubt(piece, dialect):
                return None
            pieces.append(piece if piece.endswith(b"\n") else piece + b"\n")
    names = [f"c{i}" for i in range(len(dialect.names))]
    try:
        return _parsed(b"".join(pieces), dialect, names, dict.fromkeys(names, TEXT), 0)
    except pa.ArrowInvalid:
        return None


def _in_doubt(piece: bytes, dialect: CsvLayout) -> bool:
    """Whether lines might be part of a quoted field, or parsers disagree about them."""
    if b'"' not in piece:
        return False
    if piece.count(b'"') % 2 or b' "' in piece or b'" ' in piece:
        return True
    lines = ('"' + piece.decode("utf-8", "replace")).splitlines(keepends=True)
    inside = csv.reader(lines, delimiter=dialect.delimiter, strict=True)  # as it reads if it begins within quotes
    rows: list[list[str]] = []
    try:
        rows.extend(inside)
    except csv.Error as error:
        if "unexpected end of data" not in str(error):
            return False  # a quote that would end a field, and no field ends there
    return all(len(row) == len(dialect.names) for row in rows[1:])
