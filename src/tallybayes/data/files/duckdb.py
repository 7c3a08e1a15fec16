"""DuckDB, which the extra `files` installs: its databases, its relations, and queries of its connections.

A connection keeps to itself, and results come as a stream of batches of bounded size. Nothing here loads DuckDB before
it is needed, and without it every other source is read as it is with it.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ...base.errors import MissingExtra
from ...base.threads import threads
from ..batch import BATCH_ROWS
from .file import Options

_STEP = 1 << 13  # rows that DuckDB hands over at once; joined until they are worth a batch


def package() -> Any:
    """DuckDB itself; refused where it is not installed, with what installs it."""
    try:
        import duckdb
    except ImportError:
        raise MissingExtra("reading from DuckDB needs duckdb", hint="pip install 'tallybayes[files]'") from None
    return duckdb


def is_a(thing: Any, kind: str) -> bool:
    """Whether something is DuckDB's "DuckDBPyRelation" or "DuckDBPyConnection"; only what is can have loaded DuckDB."""
    duckdb = sys.modules.get("duckdb")
    return duckdb is not None and isinstance(thing, getattr(duckdb, kind))


def connect(options: Options) -> Any:
    """A DuckDB of its own in memory: nothing is written to disk, nothing loaded from the network."""
    con = package().connect(
        ":memory:",
        config={
            "memory_limit": f"{options.memory}B",
            "threads": threads(),
            "temp_directory": "",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,
        },
    )
    con.execute(f"SET streaming_buffer_size = '{options.batch_bytes}B'; SET enable_progress_bar = false")
    return con


class Lazy:
    """A connection that is made when it is first asked for."""

    def __init__(self, options: Options) -> None:
        self._options = options
        self._made: Any = None

    def __call__(self) -> Any:
        """The connection."""
        self._made = self._made or connect(self._options)
        return self._made

    def close(self) -> None:
        """Close it, if it was ever made."""
        if self._made is not None:
            self._made.close()


def stream(relation: Any, options: Options) -> Iterator[Any]:
    """The rows of a relation or result, in order, as Arrow record batches of bounded size; an empty one if none."""
    reader = relation.to_arrow_reader(_STEP) if hasattr(relation, "to_arrow_reader") else _older(relation)
    kept: list[Any] = []
    rows = size = total = 0
    for piece in reader:
        kept.append(piece)
        rows += piece.num_rows
        size += piece.nbytes
        if rows >= BATCH_ROWS or size >= options.batch_bytes:
            yield _joined(kept)
            total += rows
            kept, rows, size = [], 0, 0
    if rows or not total:
        yield _joined(kept) if kept else pa.RecordBatch.from_pylist([], reader.schema)


def _older(relation: Any) -> Any:
    """DuckDB before 1.4 has the same under another name."""
    return relation.fetch_record_batch(_STEP)


def _joined(pieces: list[Any]) -> Any:
    if len(pieces) == 1:
        return pieces[0]
    (batch,) = pa.Table.from_batches(pieces).combine_chunks().to_batches()
    return batch


def text(value: str) -> str:
    """A text as a SQL literal."""
    return "'" + value.replace("'", "''") + "'"


def path(value: str) -> str:
    """A path as a SQL literal that DuckDB takes as one file, not as a pattern."""
    return text("".join(f"[{ch}]" if ch in "*?[" else ch for ch in value))


def name(value: str) -> str:
    """A name as a SQL identifier."""
    return '"' + value.replace('"', '""') + '"'
