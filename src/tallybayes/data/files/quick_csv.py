"""The quick way through a CSV file: Arrow's parser, fed by hand so that it cannot be fooled.

Rows that it refuses, or that parsers disagree about, go the careful way. Lines of a long file in which there is nothing
to parse, not even a quote, are cut by kernels instead, to the same columns.
"""

from __future__ import annotations

import codecs
import csv
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv

from ...base.arrow import array
from ...base.threads import each
from ...exact.kernels import gate
from ..values import numbered
from .careful_csv import TOO_LONG, CarefulReader, line_end
from .file import Options

_STEP = 1 << 20  # bytes that are read row by row before Arrow is tried again
_SPACE = ord(" ")
_STRETCH = 1 << 14  # bytes of a file that are read in one place, at least
_STRETCH_LINES = 16  # and lines
_SHARE = 4  # of the memory that reading may take, for the bytes of all stretches
LONG_FILE = 32 << 20  # bytes of a file that repays loading the kernels: about 0.05 s, for 2 ns saved a byte
_MISSES = 3  # pieces in vain, and the kernels are not asked again
TEXT, NUMBER = pa.string(), pa.float64()
KINDS = {"category": pa.dictionary(pa.int32(), TEXT), "number": NUMBER}  # what a kind is read as; all else is text


@dataclass(frozen=True)
class CsvLayout:
    """What the first lines of a file say: its columns, the delimiter, how many lines come before them."""

    names: tuple[str, ...]
    delimiter: str
    skip: int
    line: float  # the mean length of a line, in bytes

    @property
    def plain(self) -> bool:
        """Whether some lines can be looked at alone: an empty one means nothing, and the header is one line."""
        return len(self.names) > 1 and "\n" not in "".join(self.names)


@dataclass(frozen=True)
class Piece:
    """Some whole rows of a file: where they begin, their bytes, the chosen columns, and the faults of rows with the
    places where these begin, or where all of it does.
    """

    offset: int
    block: bytes
    columns: list[Any] = field(default_factory=list)
    faults: Sequence[tuple[int, int]] = ()
    clean: bytes = b""  # for Arrow to read, where nothing has been read yet


class Pieces:
    """The rows of a CSV file piece by piece: by Arrow, and one by one where Arrow refuses or might misread them.

    Rows with faults are left out; where `bad_lines` is "error" a piece ends with the first of them. Arrow's own reader
    of streams holds 32 blocks ahead, however large; here whole rows go to its parser block by block, a few at a time.
    """

    def __init__(
        self, layout: CsvLayout, options: Options, chosen: Sequence[int], types: Sequence[Any], size: int = 0
    ) -> None:
        """Of a file that has this layout and about so many bytes."""
        self._chances = _MISSES if size >= LONG_FILE and layout.plain else 0
        self._layout, self._options, self._chosen, self._types = layout, options, list(chosen), list(types)
        self._careful = CarefulReader(layout.delimiter, len(layout.names))
        self._skips = options.bad_lines == "skip"
        self._begun = self._dropping = False  # the header is behind us; the end of a line that is too long is not

    def read(self, chunks: Iterator[bytes]) -> Iterator[Piece]:
        """The pieces of the bytes of a file, once; one without rows if there are none."""
        some = False
        for piece in each(self._parsed, self._cut(chunks)):
            some = True
            yield piece
        if not some:
            yield Piece(0, b"", [pa.array([], TEXT) for _ in self._chosen])

    def _parsed(self, piece: Piece) -> Piece:
        """The piece with its columns."""
        if not piece.clean:
            return piece
        types, faults = self._types, []
        if self._chances > 0 and b'"' not in piece.clean and gate.kernels("fields", len(piece.clean)) is not None:
            plain = _plain(piece.clean, self._layout, self._chosen, types)
            if plain is not None:
                return replace(piece, columns=plain)
            self._chances -= 1  # what comes before the kernels are there says nothing of the file

        def left_out(row: Any) -> str:
            """Rows of another width are left out by Arrow itself, but for those that may have empty fields too many."""
            if row.actual_columns > row.expected_columns and row.text.endswith(('"', self._layout.delimiter)):
                return "error"
            faults.append((piece.offset, int(row.actual_columns)))
            return "skip"

        try:
            columns = _parsed(piece.clean, self._layout, self._chosen, types, left_out if self._skips else None)
            return replace(piece, columns=columns, faults=faults)
        except pa.ArrowInvalid as error:
            if "conversion error to double" not in str(error):
                return self._read(piece.offset, piece.block, last=True)
        # numbers that Arrow does not know get their meaning where all texts do: here, and in what follows
        self._types = [TEXT if kind == NUMBER else kind for kind in types]
        return self._parsed(piece)

    def _read(self, offset: int, block: bytes, last: bool, most: int | None = None) -> Piece:
        """The rows of a block one by one, up to the last that ends in it."""
        found = self._careful.read(block, last, most, self._skips)
        columns = found.columns(self._chosen)  # or one more fault
        return Piece(offset, block[: found.end], columns, [(offset + at, fault) for at, fault in found.faults])

    def _cut(self, chunks: Iterator[bytes]) -> Iterator[Piece]:
        """The bytes of a file behind its header, in whole rows, some megabytes at a time."""
        parts: list[bytes] = []
        have = offset = 0
        for chunk in chain(chunks, [b""]):
            parts.append(chunk)
            have += len(chunk)
            if chunk and have < self._options.block_bytes:
                continue
            block = b"".join(parts)
            while block and (not chunk or len(block) >= self._options.block_bytes):
                piece = self._next(offset, block, not chunk)
                if piece is None:
                    break
                if piece.clean or piece.columns or piece.faults:
                    yield piece
                offset += len(piece.block)
                block = block[len(piece.block) :]
            parts, have = [block], len(block)

    def _next(self, offset: int, block: bytes, last: bool) -> Piece | None:
        """The piece that the block begins with; None if that takes more bytes.

        Rows are left to Arrow where all quotes stand as they should. Where they do not, parsers disagree, and only
        reading the rows tells where one ends.
        """
        if self._dropping:
            end = block.find(b"\n") + 1
            self._dropping = not end
            return Piece(offset, block[: end or len(block)])
        if not self._begun:
            piece = self._header(offset, block, last)
            self._begun = piece is not None
        else:
            end, clean = whole_rows(block, self._careful.delimiter, last)
            if end:
                return Piece(offset, clean if len(clean) == end else block[:end], clean=clean)
            piece = self._read(offset, block, last, _STEP)
        if piece is not None and piece.block:
            return piece
        if len(block) < self._options.block_bytes + self._options.longest_line:
            return None
        self._begun = self._dropping = True
        return Piece(offset, block, faults=[(offset, TOO_LONG)])

    def _header(self, offset: int, block: bytes, last: bool) -> Piece | None:
        """The lines before the names, and the header."""
        at = len(codecs.BOM_UTF8) if block.startswith(codecs.BOM_UTF8) else 0
        for _ in range(self._layout.skip):
            at = line_end(block, at)
        row = self._careful.row(block, at, last)
        if row is None:
            return None
        return Piece(offset, block[: row.end], faults=[(offset + at, row.fault)] if row.fault else [])


def whole_rows(block: bytes, delimiter: bytes, last: bool) -> tuple[int, bytes]:
    """How many bytes are whole rows whose quotes all stand at the ends of fields or are doubled within (0 if none), and
    those rows without the spaces between quotes and the ends of fields.
    """
    if len(delimiter) > 1:
        return 0, b""
    if b'"' not in block:
        end = len(block) if last else _last_line_end(block, len(block))
        return end, block[:end]
    signs = np.frombuffer(b"\n" + block + b"\n\n", np.uint8)  # so that every quote has one sign before and two behind
    quotes = np.flatnonzero(signs == ord('"'))
    ends = np.zeros(256, bool)
    ends[list(b"\r\n" + delimiter)] = True
    doubled = ends.copy()
    doubled[ord('"')] = True
    # In turns a quote opens and closes; one that is doubled closes and opens again
    opens, closes = quotes[::2], quotes[1::2]
    fine = np.empty(len(quotes), bool)
    fine[::2], fine[1::2] = doubled[signs[opens - 1]], doubled[signs[closes + 1]]
    spaces = quotes[:0]
    if delimiter != b" " and not fine.all():
        before = opens[(signs[opens - 1] == _SPACE) & ends[signs[opens - 2]]]
        behind = closes[(signs[closes + 1] == _SPACE) & ends[signs[closes + 2]]]
        fine[np.searchsorted(quotes, np.concatenate([before, behind]))] = True
        spaces = np.concatenate([before - 1, behind + 1])
    if len(quotes) % 2 or not last:
        fine[len(quotes) - 1 if len(quotes) % 2 else np.searchsorted(quotes, len(block) - 1) :] = False
    bad = len(block) if fine.all() else int(quotes[fine.argmin()]) - 1
    end = bad if last and fine.all() else _last_line_end(block, bad)
    while end and (seen := int(np.searchsorted(quotes, end + 1))) % 2:  # within quotes
        end = _last_line_end(block, int(quotes[seen - 1]) - 1)
    if not len(spaces):
        return end, block[:end]
    kept = np.ones(end, bool)
    kept[spaces[spaces <= end] - 1] = False
    return end, signs[1 : end + 1][kept].tobytes()


def _last_line_end(block: bytes, before: int) -> int:
    """Where the last line ends that does so before a byte."""
    return block.rfind(b"\n", 0, before) + 1 or block.rfind(b"\r", 0, min(before, len(block) - 1)) + 1


def _parsed(
    block: bytes, dialect: CsvLayout, chosen: Sequence[int], types: Sequence[Any], ragged: Any = None
) -> list[pa.Array]:
    """The chosen columns of some whole lines, by Arrow; pa.ArrowInvalid where a line or a value is not as it should be.

    Columns are numbered, so that Arrow need not know their names; `ragged` says what to do with rows of another width.
    """
    names = [f"c{i}" for i in chosen]
    if block.startswith(codecs.BOM_UTF8):  # Arrow leaves it out: right at the beginning of a file, and nowhere else
        block = codecs.BOM_UTF8 + block
    table = pa.csv.read_csv(
        pa.BufferReader(block),
        pa.csv.ReadOptions(
            column_names=[f"c{i}" for i in range(len(dialect.names))],
            block_size=max(len(block) + 1, 1 << 10),
            use_threads=False,
        ),
        pa.csv.ParseOptions(
            delimiter=dialect.delimiter,
            newlines_in_values=b'"' in block,
            ignore_empty_lines=len(dialect.names) > 1,
            invalid_row_handler=ragged,
        ),
        pa.csv.ConvertOptions(
            column_types=dict(zip(names, types, strict=True)),
            include_columns=names,
            strings_can_be_null=True,
            null_values=[""],
        ),
    )
    return [
        column.chunk(0)
        if column.num_chunks == 1
        else pa.concat_arrays(column.chunks)
        if column.num_chunks
        else pa.array([], column.type)
        for column in table.columns
    ]


@gate.guarded
def _plain(block: bytes, layout: CsvLayout, chosen: Sequence[int], types: Sequence[Any]) -> list[pa.Array] | None:
    """The same columns by the kernels; None where the lines are not so plain that these know what Arrow makes of them.

    There is no quote in them.
    """
    fast = gate.kernels("fields", 0)  # its bytes have been reckoned when it was asked whether there are kernels
    if fast is None or len(block) >> 31:
        return None
    data = np.frombuffer(block if block.endswith(b"\n") else block + b"\n", np.uint8)
    lines, width = int(np.count_nonzero(data == ord("\n"))), len(layout.names)
    most = min(lines, len(data) // width + 1)  # empty lines are no rows, and may be many
    begins, ends = np.empty(most, np.int32), np.empty((width, most), np.int32)
    rows = fast.cut(data, ord(layout.delimiter), np.zeros(64, np.uint8), begins, ends)
    if rows <= 0:
        return None
    columns, ascii_only = [], block.isascii()
    for i, kind in zip(chosen, types, strict=True):
        field = (ends[i - 1, :rows], 1, ends[i, :rows]) if i else (begins[:rows], 0, ends[i, :rows])
        column = _plain_numbers(fast, data, *field) if kind == NUMBER else None
        try:
            if column is None:
                column = _plain_texts(fast, data, *field)
                if not ascii_only:
                    column.validate(full=True)
                column = _with_codes(column) if pa.types.is_dictionary(kind) else column.cast(kind)
        except pa.ArrowInvalid:  # bytes that are no text, or a text that is no number
            return None
        columns.append(column)
    return columns


def _plain_numbers(fast: Any, data: Any, begins: Any, shift: int, ends: Any) -> pa.Array | None:
    """The numbers of a field; None where one is written in a way that the kernel does not read."""
    values = np.empty(len(ends))
    missing = fast.numbers(data, begins, shift, ends, values)
    if missing < 0:
        return None
    return _of_buffers(NUMBER, len(ends), ~np.isnan(values) if missing else None, missing, values)


def _plain_texts(fast: Any, data: Any, begins: Any, shift: int, ends: Any) -> pa.Array:
    """A field as texts, an empty one as missing."""
    first, last = (int(places.view(np.uint32).sum(dtype=np.uint32)) for places in (begins, ends))
    size = (last - first) % (1 << 32)  # both sums wrap round, and their difference is below that
    edges, letters = np.empty(len(ends) + 1, np.int32), np.empty(size + 64, np.uint8)
    missing = fast.texts(data, begins, shift, ends, edges, letters)
    return _of_buffers(TEXT, len(ends), edges[1:] > edges[:-1] if missing else None, missing, edges, letters)


def _with_codes(texts: pa.Array) -> pa.Array:
    """The texts as a dictionary."""
    found = numbered(texts)
    if found is None:
        return texts.dictionary_encode()
    there = found[1] >= 0 if texts.null_count else None
    codes = _of_buffers(pa.int32(), len(texts), there, texts.null_count, found[1])
    return pa.DictionaryArray.from_arrays(codes, array(found[0], TEXT))


def _of_buffers(kind: Any, rows: int, there: Any, missing: int, *buffers: Any) -> pa.Array:
    """An Arrow array of what the kernels have written, missing where it is not `there`."""
    bits = None if there is None else pa.py_buffer(np.packbits(there, bitorder="little"))
    return pa.Array.from_buffers(kind, rows, [bits, *map(pa.py_buffer, buffers)], missing)


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
    every = range(len(dialect.names))
    try:
        return _parsed(b"".join(pieces), dialect, every, [TEXT for _ in every])
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
        if "field larger" in str(error):  # than Python reads, which then knows nothing of what follows
            return True
        if "unexpected end of data" not in str(error):
            return False  # a quote that would end a field, and no field ends there
    return all(len(row) == len(dialect.names) for row in rows[1:])
