"""A file on disk: what the user may say of it, whether it can be read, its format, and whether it has changed since.

`Options` are the arguments of `tallybayes.read`, checked. A `Format` is the record of a kind of file: each stands
beside its reader, and `reader.register_format` puts it into `FORMATS`. A database and a workbook hold several tables,
and `path#table` names one.
"""

from __future__ import annotations

import codecs
import os
import re
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import pyarrow as pa

from ...base.disk import names_beside, stamp
from ...base.errors import DataError, SettingsError, unknown, warn
from ...base.threads import threads

if TYPE_CHECKING:
    from .reader import Reader

BAD_LINES = ("error", "skip")
DEFAULT_MEMORY = 256 << 20  # enough for two threads to parse a wide CSV; more made no difference
LEAST_MEMORY = 32 << 20
_UNITS = {"": 1, "B": 1, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
_UNITS |= {"KIB": 1 << 10, "MIB": 1 << 20, "GIB": 1 << 30, "TIB": 1 << 40}


@dataclass(frozen=True)
class Format:
    """A kind of file: what its name ends in, what reads it, and how it begins."""

    name: str
    endings: tuple[str, ...]
    open: Callable[[File], Reader]
    magic: bytes = b""  # the first bytes of every such file
    untyped: bool = False  # every value is a text, whatever it spells
    ragged: bool = False  # a row need not have every column
    magic_at: int = 0  # where the first bytes stand, if others come before them
    noun: str = ""  # what a message calls such a file
    tables: str = ""  # what one of several tables in it is called; such a file is named, not found in a folder
    queries: bool = False  # whether it answers SQL
    scheme: str = ""  # of the addresses that mean such a file: "sqlite" for sqlite:///path

    @property
    def called(self) -> str:
        """What a message calls such a file."""
        return self.noun or f"{'an' if self.name[0] in 'aeiou' else 'a'} {self.name.capitalize()} file"


FORMATS: dict[str, Format] = {}
SERVERS: dict[str, Callable[[str, Options], Reader]] = {}  # what opens an address that is no file

Progress = Callable[[int, float | None], None]  # rows read so far, and the share of the whole where it is known


@dataclass(frozen=True)
class Options:
    """Every choice about reading files; see `tallybayes.read`."""

    format: str | None = None
    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    bad_lines: str = "error"
    memory_limit: str | int | None = None
    progress: Progress | None = None
    table: str | None = None
    query: str | None = None

    def __post_init__(self) -> None:
        if self.table is not None and self.query is not None:
            raise SettingsError("a table and a query", hint="give one of them: the query names its tables itself.")
        if self.format is not None and self.format not in FORMATS:
            raise unknown(SettingsError, f"format={self.format!r}", self.format, FORMATS)
        if self.delimiter is not None and (len(self.delimiter) != 1 or self.delimiter in '\r\n"'):
            raise SettingsError(f"delimiter={self.delimiter!r}", hint="give one character, such as ';' or '\\t'.")
        if self.decimal not in (".", ","):
            raise SettingsError(f"decimal={self.decimal!r}", hint="decimals are written with '.' or ','.")
        if self.bad_lines not in BAD_LINES:
            raise SettingsError(f"bad_lines={self.bad_lines!r}", hint="take 'error' or 'skip'.")
        try:
            codecs.lookup(self.encoding)
        except (LookupError, TypeError):
            raise SettingsError(
                f"encoding={self.encoding!r} is not known", hint="take 'utf-8', 'latin-1', 'cp1252', 'utf-16', …"
            ) from None
        _ = self.memory

    @property
    def memory(self) -> int:
        """The bytes that reading may hold: memory_limit, else TALLYBAYES_MEMORY, else 256 MB."""
        for name, wish in (
            ("memory_limit", self.memory_limit),
            ("TALLYBAYES_MEMORY", os.environ.get("TALLYBAYES_MEMORY")),
        ):
            if wish is not None:
                return size_of(name, wish)
        return DEFAULT_MEMORY

    @property
    def batch_bytes(self) -> int:
        """How large one batch may be: several are on their way at once."""
        return min(max(self.memory // 32, 1 << 20), 16 << 20)

    @property
    def block_bytes(self) -> int:
        """How much of a CSV is parsed at once: some are read, parsed and counted at a time, each of them several times
        as large by then.
        """
        return max(self.memory // (32 * max(threads(), 2)), 1 << 20)

    @property
    def longest_line(self) -> int:
        """How many bytes a line of a CSV may have, at least; a block of it is held besides."""
        return min(max(self.memory // 64, 1 << 20), 64 << 20)


def size_of(name: str, wish: str | int) -> int:
    """A size in bytes: a number of them, or one with a unit, "500M", "1GB"; `name` is whose it is, for messages."""
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?I?B?)\s*", str(wish).upper())
    unit = _UNITS.get(found[2]) if found else None
    if found is None or unit is None or isinstance(wish, bool):
        raise SettingsError(
            f"{name}={wish!r} is no amount of memory", hint="write '200MB', '2GB' or a number of bytes."
        )
    size = int(float(found[1]) * unit)
    if size < LEAST_MEMORY:
        raise SettingsError(
            f"{name}={wish!r} is too little to read a file with",
            hint=f"give at least {LEAST_MEMORY >> 20}MiB.",
        )
    return size


PACKED = {"gz": "gzip", "zst": "zstd"}
PACKED_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
_OTHER_MAGIC = {b"BZh": "bzip2", b"%PDF": "a PDF"}
_CHUNK = 1 << 20


class File:
    """One file: its path, format and compression, and how it looked when it was first opened."""

    def __init__(self, path: str, options: Options, format: str | None = None, table: str | None = None) -> None:
        self.path = path
        self.options = options
        self.table = table_of(table, options)
        status = _status(path)
        self.size = status.st_size
        self._seen = stamp(status)
        first, _, last = os.path.basename(path).lower().rpartition(".")
        self.compression = PACKED.get(last)
        ending = first.rpartition(".")[2] if self.compression else last
        wish = format or options.format
        found = FORMATS[wish] if wish else next((f for f in FORMATS.values() if ending in f.endings), None)
        self._told = False
        self._check_content(found)
        if found is None:
            first, *others = map(repr, FORMATS)
            raise DataError(
                f"{path}: the ending does not say what the file is",
                hint=f"say it: tb.read(path, format={first}), or {', '.join(others)}.",
            )
        self.format = found
        if (self.table is not None and not found.tables) or (options.query is not None and not found.queries):
            query = options.query is not None and not found.queries
            raise self.error(
                f"{found.called} {'answers no SQL' if query else 'is one table'}",
                f"leave {'query' if query else 'table'}='…' out; a DuckDB relation is data, too: "
                "duckdb.sql('SELECT … FROM …').",
            )

    def error(self, found: str, hint: str, line: int | None = None) -> DataError:
        """An error about this file."""
        where = self.path if line is None else f"{self.path}, line {line}"
        return DataError(f"{where}: {found}", hint=hint)

    def check_unchanged(self) -> None:
        """Refuse a file that is not the one first opened: what was counted would be of two files."""
        if stamp(_status(self.path)) != self._seen:
            raise self.error(
                "the file changed while it was being read",
                "wait until it is written, or work on a copy, and start again.",
            )

    @property
    def absolute(self) -> str:
        """The path from the root, which no database takes for an address."""
        return os.path.abspath(self.path)

    def tell_skipped(self, lines: int, first: int) -> None:
        """Warn of lines that were left out, once for a file however often it is read."""
        if self._told or not lines:
            return
        self._told = True
        warn(
            f"{self.path}: {lines} bad line{' was' if lines == 1 else 's were'} skipped, the first is line {first}. "
            "Hint: bad_lines='error' says what is wrong with it."
        )

    def lines(self) -> Iterator[bytes]:
        """The lines of the file, unpacked, without their ends."""
        rest = b""
        for chunk in self.chunks():
            pieces = (rest + chunk).split(b"\n")
            rest = pieces.pop()
            yield from pieces
        if rest:
            yield rest

    def chunks(self) -> Iterator[bytes]:
        """The bytes of the file, unpacked."""
        try:
            with pa.input_stream(self.path, compression=self.compression, buffer_size=_CHUNK) as file:
                while chunk := file.read(_CHUNK):
                    yield chunk
        except OSError as error:
            raise self.unreadable(error) from None

    def unreadable(self, error: Exception) -> DataError:
        """The error of a file that the system, or its compression, cannot read."""
        said = str(error).splitlines()[0]
        if self.compression:
            return self.error(
                f"the file cannot be unpacked as {self.compression}: {said}",
                "fetch or pack it again; it may be cut short.",
            )
        return self.error(f"the file cannot be read: {said}", "check the disk and the permissions of the file.")

    def _check_content(self, format: Format | None) -> None:
        """Refuse a file that is empty, or whose first bytes belong to another format than its name says."""
        if self.size == 0:
            raise self.error("the file is empty", "give a file with a header line and at least one row.")
        try:
            with open(self.path, "rb") as file:
                head = file.read(32)
        except OSError as error:
            raise _cannot_open(self.path, error) from None
        own = [f for f in FORMATS.values() if f.magic]
        known = {(f.magic, f.magic_at): f.called for f in own}
        known |= {(magic, 0): what for magic, what in (PACKED_MAGIC | _OTHER_MAGIC).items()}
        found = next((what for (magic, at), what in known.items() if head.startswith(magic, at)), "")
        expected = self.compression or (format.called if format and format.magic else "")
        if found == expected or (format is None and not self.compression):
            return
        reads = {f.called: f"format={f.name!r}" for f in own}
        endings = {packing: ending for ending, packing in PACKED.items()}
        raise self.error(
            f"by its first bytes the file is {found or 'not ' + expected}, which is not what its name says",
            f"read it with tb.read(path, {reads[found]})."
            if found in reads and not self.compression
            else f"let its name end in .{endings[found]}."
            if found in endings
            else "give it the ending of what it is, or export it as CSV or Parquet.",
        )


def _status(path: str) -> os.stat_result:
    try:
        status = os.stat(path)
    except OSError as error:
        raise _cannot_open(path, error) from None
    if stat.S_ISDIR(status.st_mode):
        raise DataError(f"{path} is a directory", hint=f"name the files in it: {os.path.join(path, '*.csv')!r}.")
    if not stat.S_ISREG(status.st_mode):
        raise DataError(
            f"{path} is no regular file, and a file is read more than once",
            hint="save it to a file first, or read it yourself and give the rows.",
        )
    return status


def _cannot_open(path: str, error: OSError) -> DataError:
    if isinstance(error, FileNotFoundError):
        hint = "paths are relative to the current directory."
        return unknown(DataError, f"there is no file {path}", os.path.basename(path), names_beside(path), hint)
    return DataError(
        f"{path} cannot be opened: {error.strerror or error}", hint="check the permissions of the file and its folder."
    )


def table_of(named_in_path: str | None, options: Options) -> str | None:
    """The table that the path or the options name; refused if both do, or a query says which."""
    if named_in_path is not None and (options.table or options.query) not in (None, named_in_path):
        raise SettingsError(
            f"the table {named_in_path!r} is named behind the #, and another table or a query is given besides",
            hint="say it once: 'path#table', table='…' or query='SELECT …'.",
        )
    return options.table or named_in_path
