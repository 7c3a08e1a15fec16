"""The tables that lie beside a served model: which of them the server wrote itself, and how a person goes out of them.

A table that is dropped upon the page is a second copy of what the journal holds. A hidden file of the folder notes
which tables came so, how each looked when it was written, and which models were made of it. An erasure takes the rows
out of those alone: a table that lay there before, or that somebody has changed since, is another's, and is named.
"""

from __future__ import annotations

import codecs
import contextlib
import gzip
import io
import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..base.disk import locked, stamp, write_atomically
from ..base.errors import TallybayesError, heard
from ..data.files.careful_csv import CarefulReader, Row
from ..data.files.csv import CsvFile
from ..data.files.file import File, Options
from ..data.sources import read
from .rows import RowReader

TABLES = (".csv", ".tsv", ".txt", ".jsonl", ".parquet", ".xlsx", ".ods", ".csv.gz", ".tsv.gz", ".jsonl.gz")
MODELS = (".tb.parquet", ".tb")
_NOTES = ".tallybayes.uploads"
_MOST = 500_000_000  # bytes of tables that are looked through, and of one that is written anew
_BOMS = (b"\xff\xfe", b"\xfe\xff")


@dataclass(frozen=True)
class TableBeside:
    """A table in which a value was looked for: how many rows have it, and whether they will be, or were, taken out."""

    name: str
    rows: int | None  # None where it was not or could not be looked through
    ours: bool = False  # the server wrote it, and made this model of it

    @property
    def told(self) -> str:
        """What is said of one that is left as it is."""
        return self.name if self.rows is not None else f"{self.name} (not looked through)"


def is_table(name: str) -> bool:
    """Whether a file is a table by its name."""
    return name.lower().endswith(TABLES) and not name.endswith(MODELS)


# ---- what the server wrote


def note_upload(path: str) -> None:
    """Note that the server wrote a table."""
    with _notes(path) as notes:
        notes[os.path.basename(path)] = {"stamp": _stamp(path), "models": []}


def note_model(table: str, model: str, encoding: str = "utf-8") -> None:
    """Note that a model was made of a table, if the server wrote that."""
    with _notes(table) as notes:
        found = notes.get(os.path.basename(table))
        if found is not None and found["stamp"] == _stamp(table):
            models = [*(each for each in found["models"] if each != os.path.basename(model)), os.path.basename(model)]
            found |= {"models": models, "encoding": encoding}


@contextlib.contextmanager
def _notes(beside: str) -> Iterator[dict[str, Any]]:
    """The notes of a folder, to be changed; those of tables that have gone are dropped."""
    folder = os.path.dirname(beside)
    path = os.path.join(folder, _NOTES)
    with locked(path):
        notes = _noted(folder)
        before = json.dumps(notes)
        yield notes
        for name in [name for name in notes if not os.path.exists(os.path.join(folder, name))]:
            del notes[name]
        if json.dumps(notes) != before:
            write_atomically(path, json.dumps(notes).encode(), private=True)


def _noted(folder: str) -> dict[str, Any]:
    """What was noted; what cannot be read is as if it were not there: then tables are named, and not changed."""
    try:
        with open(os.path.join(folder, _NOTES), "rb") as file:
            notes = json.loads(file.read())
        return {n: each for n, each in notes.items() if type(each["stamp"]) is list and type(each["models"]) is list}
    except (OSError, ValueError, AttributeError, KeyError, TypeError):
        return {}


def _stamp(path: str) -> list[int]:
    with contextlib.suppress(OSError):
        return [*stamp(os.stat(path))]
    return []


# ---- a person in them


def tables_with(model: str, reader: RowReader, column: str, value: Any) -> list[TableBeside]:
    """The tables beside a model in which rows have this value in a column, and those that cannot be looked through."""
    folder = os.path.dirname(os.path.realpath(model))
    notes, same = _noted(folder), reader.sameness(column, value)
    out, room = [], _MOST
    for name in sorted(os.listdir(folder)):
        path = os.path.join(folder, name)
        status = _regular(path)
        if status is None or name.startswith(".") or not is_table(name):
            continue
        found = notes.get(name, {})
        ours = found.get("stamp") == [*stamp(status)] and os.path.basename(model) in found.get("models", ())
        room -= status.st_size
        rows = _rows_with(path, column, same, found.get("encoding")) if room >= 0 else None
        if rows is None or rows:
            out.append(TableBeside(name, rows, ours and rows is not None and _cut_for(name) is not None))
    return out


def take_out(model: str, reader: RowReader, column: str, value: Any) -> tuple[dict[str, int], tuple[str, ...]]:
    """Take the rows with this value out of the tables that the server wrote for a model; those that still have some.

    A table is replaced whole or not at all, and looked through again.
    """
    folder, same = os.path.dirname(os.path.realpath(model)), reader.sameness(column, value)
    taken, left = dict[str, int](), []
    for each in tables_with(model, reader, column, value):
        path, cut = os.path.join(folder, each.name), _cut_for(each.name)
        if not each.ours or cut is None or each.rows is None:
            left.append(each.told)
            continue
        with _notes(path) as notes:
            encoding = notes[each.name].get("encoding")
            rest, gone = cut(path, column, same, encoding)
            if gone < each.rows or _stamp(path) != notes[each.name]["stamp"]:
                left.append(each.name)
                continue
            write_atomically(path, rest)
            notes[each.name]["stamp"] = _stamp(path)
        taken[each.name] = gone
        if _rows_with(path, column, same, encoding):
            left.append(each.name)
    return taken, tuple(left)


def _regular(path: str) -> os.stat_result | None:
    with contextlib.suppress(OSError):
        status = os.lstat(path)
        return status if stat.S_ISREG(status.st_mode) else None
    return None


_Same = Callable[[Any, bool], bool]  # whether a value is the one that is looked for; of a file without types, as texts


def _rows_with(path: str, column: str, same: _Same, encoding: str | None) -> int | None:
    """How many rows have the value; None where that cannot be told."""
    try:
        with heard():
            batches = read(path, encoding=_encoding(path, encoding), bad_lines="skip").batches()
            return sum(sum(same(v, b.written) for v in _plain(b[column])) for b in batches if column in b)
    except (TallybayesError, OSError, UnicodeError):
        return None


def _plain(column: Any) -> Any:
    return column.to_pylist() if isinstance(column, (pa.Array, pa.ChunkedArray)) else column


def _encoding(path: str, noted: str | None) -> str:
    """How a table is written: as was said when the model was made, else as its bytes have it."""
    if noted not in (None, "utf-8"):
        return str(noted)
    if not path.lower().endswith((".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")):
        return "utf-8"
    raw = _unpacked(path)
    if raw.startswith(_BOMS):
        return "utf-16"
    for each in ("utf-8", "cp1252"):
        with contextlib.suppress(UnicodeDecodeError):
            raw.decode(each)
            return each
    return "latin-1"


def _unpacked(path: str) -> bytes:
    with open(path, "rb") as file:
        raw = file.read()
    return gzip.decompress(raw) if path.lower().endswith(".gz") else raw


def _repacked(path: str, raw: bytes) -> bytes:
    return gzip.compress(raw, mtime=0) if path.lower().endswith(".gz") else raw


# ---- a file without some of its rows: its bytes, and how many are gone


_Cut = Callable[[str, str, _Same, str | None], tuple[bytes, int]]


def _cut_for(name: str) -> _Cut | None:
    """What takes rows out of a file of this name; None for a workbook, which holds more than its cells."""
    plain = name.lower().removesuffix(".gz")
    if plain.endswith((".csv", ".tsv", ".txt")):
        return _csv_without
    return _lines_without if plain.endswith(".jsonl") else _parquet_without if plain.endswith(".parquet") else None


def _csv_without(path: str, column: str, same: _Same, noted: str | None) -> tuple[bytes, int]:
    """All other rows keep their bytes; a row of another width goes too if the value stands in its place."""
    encoding = _encoding(path, noted)
    file = File(path, Options(encoding=encoding, bad_lines="skip"))
    reader = file.format.open(file)
    assert isinstance(reader, CsvFile)
    text = _unpacked(path)
    wide = encoding.startswith(("utf-16", "utf-32"))
    raw = text.decode(encoding).encode() if wide else text
    within = "utf-8" if wide or encoding == "utf-8" else encoding
    position, kept, gone = reader.names.index(column), list[bytes](), 0
    for row in _records(raw, reader):
        value = row.fields[position].decode(within, "replace") if position < len(row.fields) else ""
        if value and same(value, True):
            gone += 1
        else:
            kept.append(raw[row.start : row.end])
    rest = b"".join(kept)
    return _repacked(path, rest.decode().encode(encoding) if wide else rest), gone


def _records(raw: bytes, reader: CsvFile) -> Iterator[Row]:
    """Everything that a CSV file holds, piece by piece: what comes before its rows has no fields."""
    layout = reader.dialect
    careful, at = CarefulReader(layout.delimiter, len(layout.names)), 0
    if raw.startswith(codecs.BOM_UTF8):
        at = len(codecs.BOM_UTF8)
        yield Row(0, at, [])
    before = layout.skip + 1  # empty lines, and the header
    while at < len(raw) and (row := careful.row(raw, at, True)) is not None:
        yield row if before <= 0 else Row(row.start, row.end, [])
        before, at = before - 1, row.end


def _lines_without(path: str, column: str, same: _Same, noted: str | None) -> tuple[bytes, int]:
    kept, gone = list[bytes](), 0
    for line in re.findall(rb"[^\n]*\n|[^\n]+", _unpacked(path)):
        row = json.loads(line) if line.strip() else None
        if isinstance(row, dict) and same(row.get(column), False):
            gone += 1
        else:
            kept.append(line)
    return _repacked(path, b"".join(kept)), gone


def _parquet_without(path: str, column: str, same: _Same, noted: str | None) -> tuple[bytes, int]:
    whole, out = pq.read_table(io.BytesIO(_unpacked(path))), io.BytesIO()
    keep = [not same(value, False) for value in whole[column].to_pylist()]
    pq.write_table(whole.filter(pa.array(keep, pa.bool_())), out)
    return out.getvalue(), len(keep) - sum(keep)
