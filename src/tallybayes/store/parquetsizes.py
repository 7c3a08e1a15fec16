"""The footer of a Parquet file, once the sizes that it claims can be true: before a reader allocates anything for them.

The footer says how many rows there are and how large each column chunk is; every page says again how large it is,
packed and unpacked, and how many values it has. Readers believe all of these. Here they are held against each other
and against the size of the file, which may unpack to `UNPACKED` times that and have `ROWS` rows for each byte, no more.
"""

from __future__ import annotations

from typing import Any

from ..base.errors import ModelFileError
from .compactthrift import Fields, NotThrift, read_struct

UNPACKED, UNPACKED_FREE = 64, 1 << 26  # zstd packs words and counts 3 to 20 times; a small file may always have 64 MB
ROWS, ROWS_FREE = 16, 1 << 20  # a tally of words has about one row for each byte
_COLUMNS = 1000
_BROKEN = "the file is damaged: take a copy, or save the model again with model.save(path)."


def read_footer(raw: bytes) -> Fields:
    """The fields of the footer, by the numbers of the format's definition (parquet.thrift, FileMetaData)."""
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    try:
        if start < 4:
            raise NotThrift("the footer is longer than the file")
        footer, _ = read_struct(raw, start, len(raw) - 8)
        return footer
    except NotThrift as error:
        raise ModelFileError(f"the footer of the file cannot be read: {error}", hint=_BROKEN) from None


def texts_of(footer: Fields) -> dict[str, str]:
    """The key-value metadata."""
    try:
        return {pair[1].decode(): pair[2].decode() for pair in footer.get(5, [])}
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ModelFileError("the metadata of the file cannot be read", hint=_BROKEN) from None


def columns_of(footer: Fields) -> tuple[str, ...]:
    """The names of the columns of a flat table."""
    try:
        return tuple(element[4].decode() for element in footer[2][1:])
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ModelFileError("the columns of the file cannot be read", hint=_BROKEN) from None


def check_sizes(raw: bytes, footer: Fields) -> None:
    """Refuse a file whose footer or pages claim what the file cannot hold."""
    try:
        _check(raw, footer)
    except (AttributeError, KeyError, TypeError, NotThrift) as error:
        raise ModelFileError(
            f"the footer or a page of the file cannot be read: {type(error).__name__} {error}", hint=_BROKEN
        ) from None


def _check(raw: bytes, footer: Fields) -> None:
    rows, groups = footer[3], footer.get(4, [])
    if not 0 <= rows <= ROWS * len(raw) + ROWS_FREE or sum(g[3] for g in groups) != rows:
        raise _absurd(f"{rows:,} rows")
    if len(footer[2]) > _COLUMNS:
        raise _absurd(f"{len(footer[2]):,} columns")
    unpacked = 0
    for group in groups:
        if group[3] <= 0 or len(group[1]) >= len(footer[2]):  # the schema also has an element for the whole row
            raise _absurd(f"{group[3]:,} rows of {len(group[1]):,} columns in a group")
        for chunk in group[1]:
            unpacked += _check_chunk(raw, chunk, group[3])
            if unpacked > UNPACKED * len(raw) + UNPACKED_FREE:
                raise _absurd(f"{unpacked:,} bytes unpacked")


def _check_chunk(raw: bytes, chunk: Fields, rows: int) -> int:
    """How many bytes the pages of a column chunk say they unpack to."""
    about: Any = chunk[3]
    start = min(about[9], about.get(11, about[9]))
    if 11 in about and about[11] <= 0:
        start = about[9]  # some writers put 0 where there is no dictionary
    end = start + about[7]
    if 1 in chunk or not 4 <= start <= end <= len(raw) or about[5] != rows:
        raise _absurd(f"a column chunk from byte {start:,} to {end:,} with {about[5]:,} values")
    at, values, unpacked = start, 0, 0
    while at < end:
        page, at = read_struct(raw, at, end)
        size, packed = page[2], page[3]
        if not 0 <= packed <= end - at or size < 0:
            raise _absurd(f"a page of {size:,} bytes packed in {packed:,}")
        data: Any = page.get(5, page.get(8, {}))  # the header of a data page in its first or second form
        own, words = data.get(1, 0), page.get(7, {}).get(1, 0)  # how many values it has, or a dictionary
        if own < 0 or not 0 <= words <= max(size, rows):
            raise _absurd(f"a page of {max(own, words):,} values")
        values, unpacked, at = values + own, unpacked + size, at + packed
        if values > rows:
            raise _absurd(f"pages of {values:,} values for {rows:,} rows")
    return unpacked


def _absurd(claim: str) -> ModelFileError:
    return ModelFileError(
        f"the file claims {claim}, which its size does not bear out",
        hint="it is damaged or made to exhaust memory; tb.load(path, trusted=True) reads a file you know to be right.",
    )
