"""A table and texts ↔ the bytes of a Parquet file, with a checksum of all the bytes inside the file.

The checksum is the last entry of the key-value metadata. It is found by a scan of the footer's bytes and compared
before anything is parsed: Parquet readers are written in C++, and a damaged file is no input for them. A file made to
deceive has a right checksum, so the sizes that it claims are held against the bytes it has (see `parquetsizes`).
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from ..base.errors import ModelFileError
from .parquetsizes import check_sizes, columns_of, read_footer, texts_of

PREFIX = "tallybayes."
_MAGIC = b"PAR1"
_NAME = PREFIX + "checksum"
_DIGITS = 64
_MARK = _NAME.encode() + bytes([0x18, _DIGITS])  # in Thrift's compact form: the next field is a text of 64 bytes
_ROW_GROUP = 1 << 20
_UNREADABLE = (
    pa.ArrowException,
    OSError,
    UnicodeDecodeError,
    MemoryError,
    ValueError,
)  # what pyarrow says to a wrong file
_HINT = "the file is damaged: take a copy, or save the model again with model.save(path)."


@dataclass(frozen=True)
class Parts:
    """A checked file: its texts, and the table when it is asked for."""

    raw: bytes
    metadata: Mapping[str, str]
    columns: tuple[str, ...]

    def table(self, coded: Sequence[str] = ("column", "sheet", "slot", "class")) -> pa.Table:
        """The rows. Texts stay coded, so that a short file cannot unfold into a long table."""
        try:
            there = [c for c in coded if c in self.columns]
            file = pq.ParquetFile(pa.BufferReader(self.raw), read_dictionary=there, page_checksum_verification=True)
            table = file.read(use_threads=False)
            table.validate(full=True)  # codes beyond their dictionary, texts that are not UTF-8
            return table
        except _UNREADABLE as error:
            raise ModelFileError(f"the rows cannot be read: {str(error)[:200]}", hint=_HINT) from None


def pack(table: pa.Table, texts: Mapping[str, str]) -> bytes:
    """The bytes of the file."""
    out = io.BytesIO()
    with pq.ParquetWriter(
        out, table.schema, compression="zstd", store_schema=False, write_statistics=False, write_page_checksum=True
    ) as writer:
        if table.num_rows:
            writer.write_table(table, row_group_size=_ROW_GROUP)
        writer.add_key_value_metadata({**texts, _NAME: "0" * _DIGITS})
    raw = bytearray(out.getvalue())
    at = _checksum_place(raw)
    if at is None:
        raise ModelFileError(
            "this pyarrow writes metadata in an unknown form", hint="install another pyarrow, 17 to 26."
        )
    raw[at : at + _DIGITS] = _checksum(raw, at).encode()
    return bytes(raw)


def unpack(raw: bytes, *, trusted: bool = False, foreign: bool = False) -> Parts:
    """The parts of a file after its checksum and the sizes it claims; `foreign` takes files without a checksum."""
    if len(raw) < 12 or raw[:4] != _MAGIC or raw[-4:] != _MAGIC:
        found = "an empty file" if not raw else "no Parquet file, or only a part of one"
        raise ModelFileError(found, hint="give a file that model.save(path) wrote; if it was one, it is damaged.")
    at = _checksum_place(raw)
    if at is None and not foreign:
        raise ModelFileError(
            "a Parquet file without the checksum of a model file",
            hint="if it is a table of amounts that SQL has summed, say whose: tb.load(path, like='model.tb.parquet'). "
            "If it was a model file, it is damaged.",
        )
    if at is not None and raw[at : at + _DIGITS] != _checksum(raw, at).encode():
        raise ModelFileError("the bytes of the file do not have the checksum that it names", hint=_HINT)
    footer = read_footer(raw)
    if not trusted:
        check_sizes(raw, footer)
    texts = texts_of(footer)
    if foreign and at is None and any(k.startswith(PREFIX) for k in texts):
        raise ModelFileError("a model file without its checksum", hint=_HINT)
    return Parts(raw, texts, columns_of(footer))


def _checksum_place(raw: Any) -> int | None:
    """Where the 64 digits stand: after the last mention of their name in the footer."""
    footer = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    if footer < 4:
        return None
    at = raw.rfind(_MARK, footer)
    end = at + len(_MARK) + _DIGITS
    return at + len(_MARK) if at >= 0 and end <= len(raw) - 8 else None


def _checksum(raw: Any, at: int) -> str:
    view = memoryview(raw)
    out = hashlib.sha256(view[:at])
    out.update(b"0" * _DIGITS)
    out.update(view[at + _DIGITS :])
    return out.hexdigest()
