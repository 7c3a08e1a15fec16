"""Whether the sizes that a Parquet file claims can be true, before a reader allocates anything for them.

The footer says how many rows there are and how large each column chunk is; every page says again how large it is,
packed and unpacked, and how many values it has. Readers believe all of these. Here they are held against each other
and against the size of the file, which may unpack to `UNPACKED` times that and have `ROWS` rows for each byte, no more.
"""

from __future__ import annotations

from typing import Any

from .errors import ModelFileError

UNPACKED, UNPACKED_FREE = 64, 1 << 26  # zstd packs words and counts 3 to 20 times; a small file may always have 64 MB
ROWS, ROWS_FREE = 64, 1 << 20
_COLUMNS = 1000
_DEEPEST = 8  # structs in a page header nest three deep


def check_sizes(raw: bytes, metadata: Any) -> None:
    """Refuse a file whose footer or pages claim what the file cannot hold."""
    size = len(raw)
    if metadata.num_columns > _COLUMNS:
        raise _absurd(f"{metadata.num_columns:,} columns")
    most_rows = ROWS * size + ROWS_FREE
    groups = [metadata.row_group(i) for i in range(metadata.num_row_groups)]
    if not 0 <= metadata.num_rows <= most_rows or sum(g.num_rows for g in groups) != metadata.num_rows:
        raise _absurd(f"{metadata.num_rows:,} rows")
    unpacked = 0
    for group in groups:
        if not 0 < group.num_rows <= most_rows:
            raise _absurd(f"{group.num_rows:,} rows in one group")
        for i in range(group.num_columns):
            unpacked += _check_chunk(raw, group.column(i), group.num_rows)
            if unpacked > UNPACKED * size + UNPACKED_FREE:
                raise _absurd(f"{unpacked:,} bytes unpacked")


def _check_chunk(raw: bytes, chunk: Any, rows: int) -> int:
    """How many bytes the pages of a column chunk say they unpack to."""
    start = chunk.data_page_offset
    if chunk.has_dictionary_page and chunk.dictionary_page_offset is not None:
        start = min(start, chunk.dictionary_page_offset)
    end = start + chunk.total_compressed_size
    if not 4 <= start <= end <= len(raw) or chunk.num_values != rows:
        raise _absurd(f"a column chunk from byte {start:,} to {end:,} with {chunk.num_values:,} values")
    at, values, unpacked = start, 0, 0
    while at < end:
        header, at = _header(raw, at, end)
        packed_size, size = header.get((3,), -1), header.get((2,), -1)
        if not 0 <= packed_size <= end - at or size < 0:
            raise _absurd(f"a page of {size:,} bytes packed in {packed_size:,}")
        own = header.get((5, 1), header.get((8, 1), 0))  # values of a data page, first and second form
        if own < 0 or header.get((7, 1), 0) < 0 or header.get((7, 1), 0) > max(size, rows):
            raise _absurd(f"a page of {own:,} values")
        values, unpacked, at = values + own, unpacked + size, at + packed_size
        if values > rows:
            raise _absurd(f"pages of {values:,} values for {rows:,} rows")
    return unpacked


def _header(raw: bytes, at: int, end: int) -> tuple[dict[tuple[int, ...], int], int]:
    """The whole numbers in a page header, by the path of their fields, and where the page begins."""
    numbers: dict[tuple[int, ...], int] = {}
    try:
        at = _struct(raw, at, end, (), numbers)
    except IndexError:
        raise _absurd("a page header that does not end") from None
    return numbers, at


def _struct(raw: bytes, at: int, end: int, path: tuple[int, ...], numbers: dict[tuple[int, ...], int]) -> int:
    """Read one struct in Thrift's compact form; only what page headers have is known."""
    field = 0
    while True:
        if at >= end or len(path) > _DEEPEST:
            raise IndexError
        head, at = raw[at], at + 1
        if head == 0:
            return at
        if head >> 4:
            field += head >> 4
        else:
            zigzag, at = _varint(raw, at, end)
            field = (zigzag >> 1) ^ -(zigzag & 1)
        kind = head & 15
        if kind in (1, 2):  # true, false: the value is in the kind
            continue
        if kind == 3:
            at += 1
        elif kind in (4, 5, 6):
            zigzag, at = _varint(raw, at, end)
            numbers[(*path, field)] = (zigzag >> 1) ^ -(zigzag & 1)
        elif kind == 7:
            at += 8
        elif kind == 8:
            length, at = _varint(raw, at, end)
            at += length
        elif kind == 12:
            at = _struct(raw, at, end, (*path, field), numbers)
        else:
            raise IndexError  # lists and maps stand in no page header


def _varint(raw: bytes, at: int, end: int) -> tuple[int, int]:
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            raise IndexError
        byte, at = raw[at], at + 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
    raise IndexError


def _absurd(claim: str) -> ModelFileError:
    return ModelFileError(
        f"the file claims {claim}, which its size does not bear out",
        hint="it is damaged or made to exhaust memory; tb.load(path, trusted=True) reads a file you know to be right.",
    )
