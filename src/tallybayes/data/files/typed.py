"""Files whose values have types: Parquet, Arrow and JSON lines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ...base.errors import DataError
from ..batch import Wanted, batch_of_rows, refuse_repeated
from ..columns import plain
from .file import File, Format

_ROWS = 1 << 15
_COPIES = 4  # of a batch of an Arrow file that may be in memory at once


class ParquetFile:
    """A Parquet file, read column by column; categories come as the dictionaries that they are stored as."""

    def __init__(self, file: File) -> None:
        self.file = file
        with self._opened() as parquet:
            schema, meta = parquet.schema_arrow, parquet.metadata
            size = sum(meta.row_group(i).total_byte_size for i in range(meta.num_row_groups))
        self.names = tuple(schema.names)
        self.expected = float(meta.num_rows)
        self._texts = {f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)}
        self._rows = min(max(file.options.batch_bytes * meta.num_rows // max(size, 1), 1 << 10), _ROWS)
        refuse_repeated(self.names, f"{file.path}: ")

    def _opened(self, dictionaries: Sequence[str] = ()) -> Any:
        try:
            return pq.ParquetFile(
                self.file.path, read_dictionary=list(dictionaries), buffer_size=1 << 20, pre_buffer=False,
                page_checksum_verification=True,  # of files that have any
            )  # fmt: skip
        except (pa.ArrowException, OSError) as error:
            raise _broken(self.file, error, "Parquet") from None

    def pieces(self, con: Any, wanted: Wanted | None) -> Iterator[dict[str, Any]]:
        """The columns of each batch."""
        chosen = [n for n in self.names if wanted is None or n in wanted]
        stored = [n for n in chosen if wanted is not None and wanted[n] == "category" and n in self._texts]
        empty = True
        with self._opened(stored) as parquet:
            try:
                for batch in parquet.iter_batches(self._rows, columns=chosen):
                    empty = False
                    yield {n: plain(c) for n, c in zip(batch.schema.names, batch.columns, strict=True)}
            except (pa.ArrowException, OSError) as error:
                raise _broken(self.file, error, "Parquet") from None
            if empty:
                yield {f.name: pa.array([], f.type) for f in parquet.schema_arrow if f.name in chosen}

    def place(self, row: int) -> str:
        """Where a row stands."""
        return f"{self.file.path}, row {row} (the first is row 0)"


PARQUET = Format("parquet", ("parquet", "pq"), ParquetFile, magic=b"PAR1")


class ArrowFile:
    """An Arrow file, also called Feather. It is mapped into memory only where a batch would not fit there: whoever
    cuts a file that is mapped ends the process that reads it.
    """

    def __init__(self, file: File) -> None:
        self.file = file
        try:
            with self._opened(pa.memory_map) as reader:
                self.names = tuple(reader.schema.names)
                count = reader.num_record_batches
                self.expected = float(sum(reader.get_batch(i).num_rows for i in range(count)))
        except (pa.ArrowException, OSError) as error:
            raise _broken(file, error, "Arrow") from None
        self._open = pa.OSFile if file.size <= file.options.memory * max(count, 1) // _COPIES else pa.memory_map
        refuse_repeated(self.names, f"{file.path}: ")

    def _opened(self, how: Callable[[str], Any]) -> Any:
        try:
            return pa.ipc.open_file(how(self.file.path))
        except (pa.ArrowException, OSError) as error:
            raise _broken(self.file, error, "Arrow") from None

    def pieces(self, con: Any, wanted: Wanted | None) -> Iterator[dict[str, Any]]:
        """The columns of each batch."""
        with self._opened(self._open) as reader:
            for i in range(reader.num_record_batches):
                try:
                    batch = reader.get_batch(i)
                except (pa.ArrowException, OSError) as error:
                    raise _broken(self.file, error, "Arrow") from None
                for start in range(0, max(batch.num_rows, 1), _ROWS):
                    yield {
                        n: plain(batch.column(j).slice(start, _ROWS))
                        for j, n in enumerate(self.names)
                        if wanted is None or n in wanted
                    }
            if reader.num_record_batches == 0:
                yield {f.name: pa.array([], f.type) for f in reader.schema}

    def place(self, row: int) -> str:
        """Where a row stands."""
        return f"{self.file.path}, row {row} (the first is row 0)"


ARROW = Format("arrow", ("arrow", "feather", "ipc"), ArrowFile, magic=b"ARROW1")


class JsonLines:
    """JSON lines: one object per line, each value with its own type."""

    def __init__(self, file: File) -> None:
        self.file = file
        first = next(self.pieces(None, None))
        self.names = tuple(first)
        if not first and next(self._objects(), None) is not None:
            raise file.error("the objects have no keys", 'name the columns in each line: {"colour": "red", "size": 3}.')
        rows = len(next(iter(first.values()))) if first else 0
        read = min(file.size, file.options.batch_bytes)  # the first batch is the file, or about this much of it
        self.expected = 0.0 if file.compression else rows * file.size / read

    def pieces(self, con: Any, wanted: Wanted | None) -> Iterator[dict[str, Any]]:
        """The columns of each batch; a key that a batch does not have is missing in all of its rows."""
        known: dict[str, None] = {}
        rows: list[dict[str, Any]] = []
        size = 0
        empty = True
        for row, length in self._objects():
            rows.append(row if wanted is None else {k: v for k, v in row.items() if k in wanted})
            size += length
            if size >= self.file.options.batch_bytes or len(rows) >= _ROWS:
                yield _columns(rows, known)
                rows, size, empty = [], 0, False
        if rows or empty:
            yield _columns(rows, known)

    def _objects(self) -> Iterator[tuple[dict[str, Any], int]]:
        bad: list[int] = []
        for number, line in enumerate(self.file.lines(), 1):
            if not line.strip():
                continue
            row = self._object(line, number)
            if row is None:
                bad.append(number)
            else:
                yield row, len(line)
        if bad:
            self.file.tell_skipped(len(bad), bad[0])

    def _object(self, line: bytes, number: int) -> dict[str, Any] | None:
        try:
            row = json.loads(line.removeprefix(b"\xef\xbb\xbf").decode(self.file.options.encoding))
            if isinstance(row, dict):
                return row
            found = f"{type(row).__name__} where an object is expected"
        except UnicodeDecodeError:
            found = f"bytes that are not {self.file.options.encoding}"
        except (ValueError, RecursionError) as error:
            found = f"not JSON: {error}"
        if self.file.options.bad_lines == "skip":
            return None
        array = line.lstrip().startswith(b"[")
        raise self.file.error(
            found,
            "JSON lines have one object per line; turn an array into lines with: jq -c '.[]' file.json > file.jsonl"
            if array
            else "mend the line, or skip such lines: tb.read(path, bad_lines='skip').",
            number,
        )

    def place(self, row: int) -> str:
        """Where a row stands."""
        seen = -1
        for number, line in enumerate(self.file.lines(), 1):
            seen += bool(line.strip()) and (
                self.file.options.bad_lines == "error" or self._object(line, number) is not None
            )
            if seen == row:
                return f"{self.file.path}, line {number}"
        return f"{self.file.path}, row {row}"


JSON_LINES = Format("jsonl", ("jsonl", "ndjson", "json"), JsonLines, ragged=True, noun="a file of JSON lines")


def _columns(rows: list[dict[str, Any]], known: dict[str, None]) -> dict[str, Any]:
    columns = dict(batch_of_rows(rows, 0).columns)
    known.update(dict.fromkeys(columns))
    return {n: columns[n] if n in columns else pa.nulls(len(rows)) for n in known}


def _broken(file: File, error: Exception, kind: str) -> DataError:
    return file.error(
        f"the {kind} file cannot be read: {str(error).splitlines()[0]}", "write it again; it may be cut short."
    )
