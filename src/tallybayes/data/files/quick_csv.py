"""The quick way through a CSV file without faults: Arrow's parser, fed by hand so that it cannot be fooled."""

from __future__ import annotations

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
TEXT, NUMBER = pa.string(), pa.float64()
KINDS = {"category": pa.dictionary(pa.int32(), TEXT), "number": NUMBER}  # what a kind is read as; all else is text


@dataclass(frozen=True)
class CsvLayout:
    """What the first lines of a file say: its columns, the delimiter, how many empty lines come before them."""

    names: tuple[str, ...]
    delimiter: str
    skip: int
    line: float  # the mean length of a line, in bytes


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
