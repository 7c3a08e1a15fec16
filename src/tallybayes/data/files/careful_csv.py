"""The careful way through a CSV file: row by row in plain Python, for lines that Arrow refuses or might misread.

What a row is here holds for both ways. A field that begins with a quote, or with one space and a quote, ends with the
next quote that is not doubled; only spaces may stand between that and the delimiter or the end of the line. A quote
anywhere else is a character. A line ends with "\\n", "\\r\\n" or "\\r". Fields beyond those of the header are let pass
if they are empty. An empty line is no row, but in a file of one column it is a row without a value.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

import pyarrow as pa

UNENDED, TOO_LONG, NOT_UTF8 = -1, -2, -3  # faults; any other is how many fields a row has, and the header has not
_LINE = re.compile(rb'([^"\r\n]*+)(\r\n|\n|\r)')
_LINE_END = re.compile(rb"\r\n|\n|\r")


@dataclass(frozen=True)
class Row:
    """A row: where it begins and where the next one does, its fields (none of an empty line), and what is wrong."""

    start: int
    end: int
    fields: list[bytes]
    fault: int = 0


@dataclass
class CarefulRows:
    """Rows that were read, as many as could be, and the places and faults of those that are none."""

    rows: list[list[bytes]] = field(default_factory=list)
    starts: list[int] = field(default_factory=list)
    faults: list[tuple[int, int]] = field(default_factory=list)
    end: int = 0  # where the first row begins that was not read

    def columns(self, chosen: Sequence[int]) -> list[pa.Array]:
        """The chosen columns as texts, an empty one as missing; what is not UTF-8 becomes a fault instead."""
        try:
            return [pa.array([r[i] or None for r in self.rows], pa.binary()).cast(pa.string()) for i in chosen]
        except pa.ArrowInvalid:
            bad = next(
                s for s, r in zip(self.starts, self.rows, strict=True) if not all(_is_text(r[i]) for i in chosen)
            )
            self.faults.append((bad, NOT_UTF8))
            return []


class CarefulReader:
    """Reads the rows of a file that has this delimiter and so many columns."""

    def __init__(self, delimiter: str, width: int) -> None:
        self.delimiter, self.width = delimiter.encode(), width
        mark = re.escape(self.delimiter)
        # spaces around quotes mean nothing, unless a space is the delimiter; nothing here goes back on what it matched
        before, behind = (b"", b"") if self.delimiter == b" " else (b" ?", b" *+")
        opened = before + rb'"((?:[^"]++|"")*+)'
        self._quoted = re.compile(opened + b'"' + behind + b"(?=" + mark + rb"|\r|\n|\Z)")
        self._opened = re.compile(opened + b'("' + behind + b")?")
        self._bare = re.compile(b"(?:(?!" + mark + rb")[^\r\n])*+")

    def row(self, block: bytes, at: int, last: bool) -> Row | None:
        """The row that begins there; None if the block ends before it does, and there are more blocks."""
        line = _LINE.match(block, at)
        if line is not None:
            fields = line[1].split(self.delimiter) if line[1] or self.width == 1 else []
            return self._ended(block, at, line.end(1), fields, last)
        start, fields = at, []
        while True:
            if (quoted := self._quoted.match(block, at)) is not None:
                fields.append(quoted[1].replace(b'""', b'"'))
                at = quoted.end()
            elif (opened := self._opened.match(block, at)) is not None:
                found = None if opened[2] is None else _LINE_END.search(block, opened.end())
                at = len(block) if found is None else found.start()
                return self._ended(block, start, at, [], last, UNENDED)
            else:
                bare = self._bare.match(block, at)
                assert bare is not None  # nothing at all is a field, too
                fields.append(bare[0])
                at = bare.end()
            if not block.startswith(self.delimiter, at):
                return self._ended(block, start, at, fields, last)
            at += len(self.delimiter)

    def _ended(self, block: bytes, start: int, at: int, fields: list[bytes], last: bool, fault: int = 0) -> Row | None:
        """The row whose line ends there; None if that cannot be known: a quote or a "\\n" may follow the last byte."""
        end = _LINE_END.match(block, at)
        stop = at if end is None else end.end()
        if not last and (end is None or (stop == len(block) and end[0] == b"\r")):
            return None
        return Row(start, stop, fields, fault)

    def read(self, block: bytes, last: bool, most: int | None = None, skips: bool = True) -> CarefulRows:
        """The rows of the block, up to the first that begins at byte `most` or, unless it skips them, has a fault."""
        out, width = CarefulRows(), self.width
        most = len(block) if most is None else min(most, len(block))
        while out.end < most and (row := self.row(block, out.end, last)) is not None:
            fields, out.end = row.fields, row.end
            fault = row.fault or (len(fields) if len(fields) < width or any(fields[width:]) else 0)
            if fault:
                out.faults.append((row.start, fault))
                if not skips:
                    break
            elif fields:
                out.rows.append(fields)
                out.starts.append(row.start)
        return out


def line_end(block: bytes, at: int) -> int:
    """Where the next line begins."""
    found = _LINE_END.search(block, at)
    return len(block) if found is None else found.end()


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True
