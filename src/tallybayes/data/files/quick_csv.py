"""The quick way through a CSV file without faults: Arrow's parser, fed by hand so that it cannot be fooled."""

from __future__ import annotations

import csv
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.csv

from ...base.threads import threads
from .file import Options

_PATIENCE = 1000  # milliseconds
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

    Rows that have been given are right even then, but for a quote that is never closed: that is noticed at the end.
    """
    feed = _Feed(chunks)
    held = sys.getrefcount(feed)
    names = [f"c{i}" for i in range(len(dialect.names))]
    reader = pa.csv.open_csv(
        pa.PythonFile(feed, "r"),
        pa.csv.ReadOptions(
            column_names=names, skip_rows=dialect.skip + 1, block_size=options.block_bytes, use_threads=threads() > 1
        ),
        pa.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=True),
        pa.csv.ConvertOptions(
            column_types={**dict.fromkeys(chosen, TEXT), **types},
            include_columns=list(chosen),
            strings_can_be_null=True,
            null_values=[""],
        ),
    )
    try:
        with reader:
            for batch in reader:
                yield {chosen[n]: c for n, c in zip(batch.schema.names, batch.columns, strict=True)}
    finally:
        del reader
        _wait_until_let_go(feed, held)
    if feed.quotes % 2:
        raise pa.ArrowInvalid("an odd number of quotes")


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
        for i in range(many):
            file.seek(first + (size - first - each) * i // (many - 1))
            chunk = file.read(each)
            start = 0 if i == 0 else chunk.find(b"\n") + 1
            end = len(chunk) if i == many - 1 else chunk.rfind(b"\n") + 1
            piece = chunk[start:end]
            if (i and not start) or not piece or _in_doubt(piece, dialect):
                return None
            pieces.append(piece if piece.endswith(b"\n") else piece + b"\n")
    quoted = any(b'"' in piece for piece in pieces)
    names = [f"c{i}" for i in range(len(dialect.names))]
    try:
        table = pa.csv.read_csv(
            pa.BufferReader(b"".join(pieces)),
            pa.csv.ReadOptions(column_names=names, use_threads=threads() > 1),
            pa.csv.ParseOptions(delimiter=dialect.delimiter, newlines_in_values=quoted),
            pa.csv.ConvertOptions(column_types=dict.fromkeys(names, TEXT), strings_can_be_null=True, null_values=[""]),
        )
    except pa.ArrowInvalid:
        return None
    return [pa.concat_arrays(column.chunks) for column in table.columns]


def _in_doubt(piece: bytes, dialect: CsvLayout) -> bool:
    """Whether lines might be part of a quoted field, or parsers disagree about them."""
    quotes = piece.count(b'"')
    if quotes == 0:
        return False
    if quotes % 2 or b' "' in piece or b'" ' in piece:
        return True
    lines = piece.decode("utf-8", "replace").split("\n", _STRETCH_LINES)[:_STRETCH_LINES]
    inside = csv.reader((line + "\n" for line in ['"' + lines[0], *lines[1:]]), delimiter=dialect.delimiter)
    rows = [row for row in inside if row][1:-1]  # the first begins before the stretch, the last is cut off
    return bool(rows) and all(len(row) == len(dialect.names) for row in rows)


def _wait_until_let_go(feed: _Feed, held: int) -> None:
    """Wait for Arrow's reading thread to drop its hold on the feed: a thread that is still doing so while Python shuts
    down takes the whole process with it.
    """
    for _ in range(_PATIENCE):
        if sys.getrefcount(feed) <= held + 1:  # one more for the argument of this function
            return
        time.sleep(0.001)


class _Feed:
    """Chunks of bytes as a file that can be read from start to end; it counts the quotes that go by.

    It ends the quick way where a space stands beside a quote: whether the quote then opens a field or is part of it is
    what parsers disagree about, and only one of them may decide.
    """

    closed = False

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self.chunks = chunks
        self.quotes = 0
        self.rest = b""
        self.last = b""

    def read(self, size: int = -1) -> bytes:
        """The next bytes, as many as asked for unless the file ends."""
        parts, have = [self.rest], len(self.rest)
        while have < size or size < 0:
            chunk = next(self.chunks, b"")
            if not chunk:
                break
            quotes = chunk.count(b'"')
            self.quotes += quotes
            if (quotes and (b' "' in chunk or b'" ' in chunk)) or self.last + chunk[:1] in (b' "', b'" '):
                raise pa.ArrowInvalid("a space beside a quote")
            self.last = chunk[-1:]
            parts.append(chunk)
            have += len(chunk)
        whole = b"".join(parts)
        cut = len(whole) if size < 0 else size
        self.rest = whole[cut:]
        return whole[:cut]

    def close(self) -> None:
        """Nothing is held open here."""
