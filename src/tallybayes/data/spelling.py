"""How the cells of a column are spelled, where they are no plain numbers or ISO dates, and what is done with odd ones.

A `Spelling` belongs to a column of the schema, so that every cell is read by itself: amounts with a sign, separators of
thousands, a decimal comma, dates in another order, values whose letter case means nothing, and cells that cannot be
read at all, which are missing where the schema says so. `OddCells` remembers those, and where they stood.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import lru_cache
from heapq import nsmallest
from threading import Lock
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base import canon
from ..base.arrow import array, texts
from ..base.errors import DataError, SchemaError, warn
from ..base.times import DAY
from .batch import Batch, Source
from .blocks import Codes
from .clock import hours_of, in_hours, is_clock, is_time
from .marks import is_mark
from .values import Where, is_bytes, is_text, without

SIGNS = ("$", "€", "£", "¥", "₹", "%")  # that may stand before or after an amount
_SEPARATORS = ("", ",", ".", " ", "'")
BLANKS = (" ", "\t", "\u00a0", "\u202f")
_BLANK = "[ \\t\u00a0\u202f]*"
_SPACES = "[ \u00a0\u202f]"
_FEWEST = 20  # cells that can be read, beside which a few cannot
_SHARE, _SHARE_OF_WORDS = 100, 20  # one in so many; of cells that have one of a few words, such as "unknown"
_WORDS = 3
_PLACES = 3  # that are told
_LONGEST_FORMAT = 100  # of dates
_KEPT = 1_000  # different odd cells that are told apart


def are_few(odd: int, cells: int, different: int) -> bool:
    """Whether so many odd cells are a few: one in a hundred at most, or a single one beside twenty that can be read.

    Where no more than three different texts are odd, one in twenty cells may be.

    >>> are_few(1, 21, 1), are_few(2, 199, 2), are_few(5, 100, 4), are_few(5, 100, 3), are_few(1, 20, 1)
    (True, True, False, True, False)
    """
    share = _SHARE_OF_WORDS if different <= _WORDS else _SHARE
    return cells - odd >= _FEWEST and odd <= max(cells // share, 1)


@dataclass(frozen=True)
class Spelling:
    """How the texts of a column are read; numbers and dates that have a type are what they are.

    >>> tb.Spelling(",", ".").number("1.234,50"), tb.Spelling(thousands=",", unit="$").number("$1,234.50")
    (1234.5, 1234.5)
    """

    decimal: str = "."
    thousands: str = ""  # what stands between groups of three digits; " " is also a space that does not break
    unit: str = ""  # a sign that may stand before or after the number: $, €, £, ¥, ₹ or %
    date: str = ""  # as `datetime.strptime` has it, "%d.%m.%Y"; empty: as ISO 8601
    fold: bool = False  # a category: letter case and blanks around and between words make no difference
    odd: bool = False  # a cell that cannot be read is missing; else it is refused
    clock: bool = False  # times of day and durations, 14:30 or "1 day, 2:00:00", as hours

    def __post_init__(self) -> None:
        if (
            self.decimal not in (".", ",")
            or self.thousands not in _SEPARATORS
            or self.thousands == self.decimal
            or self.unit not in ("", *SIGNS)
        ):
            raise SchemaError(
                f"a spelling of decimal={self.decimal!r}, thousands={self.thousands!r}, unit={self.unit!r}",
                hint="decimal is '.' or ',', thousands another of ',', '.', ' ', \"'\" or '', unit one of "
                + ", ".join(SIGNS) + ".",
            )  # fmt: skip
        for what in ("fold", "odd", "clock"):
            if getattr(self, what) in (0, 1):  # as another program may write it; its type tells what else it is not
                object.__setattr__(self, what, bool(getattr(self, what)))
        if not isinstance(self.date, str) or (self.date and not _can_be_read(self.date)):
            raise SchemaError(
                f"the date format {self.date!r}",
                hint="write it as datetime.strptime does: '%d.%m.%Y', '%m/%d/%Y', '%Y-%m-%d %H:%M'.",
            )

    @property
    def plain(self) -> bool:
        """Whether what can be read is read as without it."""
        return self == Spelling(odd=self.odd)

    def __repr__(self) -> str:
        return f"Spelling({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"

    def to_dict(self) -> dict[str, Any]:
        """A form that JSON can hold: what is not as usual."""
        return {f.name: v for f in fields(self) if (v := getattr(self, f.name)) != f.default}

    def number(self, text: str) -> float:
        """The number that a text spells; ValueError if it is none."""
        if self.clock:
            return hours_of(text)
        if self.decimal == "." and not self.thousands and not self.unit:
            return canon.number(text)
        if not pattern(self).fullmatch(text):
            raise ValueError(text)
        return float(_without(self).sub("", text).replace(self.decimal, "."))

    def instant(self, text: str) -> tuple[int, int] | None:
        """The day since 1970 and the microsecond of the day that a text spells; ValueError if it is no such date."""
        return canon.instant(dt.datetime.strptime(text.strip(), self.date) if self.date else text)

    @property
    def words(self) -> str:
        """What is unusual about it."""
        told = []
        if self.unit:
            told.append("per cent" if self.unit == "%" else f"amounts in {self.unit}")
        if self.thousands:
            told.append(f"{_named(self.thousands)} between thousands")
        if self.decimal != ".":
            told.append("a decimal comma")
        if self.date:
            told.append(f"dates written as {self.date}")
        if self.clock:
            told.append("times in hours")
        return ", ".join(told)


def _named(separator: str) -> str:
    return {",": "commas", ".": "points", " ": "blanks"}.get(separator, "apostrophes")


def _can_be_read(date: str) -> bool:
    if len(date) > _LONGEST_FORMAT:
        return False
    try:
        dt.datetime.strptime(dt.datetime(2000, 1, 1).strftime(date), date)
    except (ValueError, re.error):  # as for "%d%d"
        return False
    return True


@lru_cache(maxsize=64)
def pattern(spelling: Spelling) -> re.Pattern[str]:
    """All numbers of a spelling; Arrow's engine reads the same pattern in the same way."""
    between = _SPACES if spelling.thousands == " " else re.escape(spelling.thousands)
    point = re.escape(spelling.decimal)
    whole = f"[1-9][0-9]{{0,2}}(?:{between}[0-9]{{3}})+|[0-9]+" if between else "[0-9]+"  # no thousands begin with 0
    sign, unit = f"(?:[+-]{_BLANK})?", re.escape(spelling.unit)
    digits = f"(?:(?:{whole})(?:{point}[0-9]*)?|{point}[0-9]+)(?:[eE][+-]?[0-9]+)?"
    before, after = (f"{sign}(?:{unit}{_BLANK})?{sign}", f"(?:{_BLANK}{unit})?") if unit else (sign, "")
    return re.compile(f"{_BLANK}{before}{digits}{after}{_BLANK}")  # no two runs of blanks meet: it takes no square time


@lru_cache(maxsize=64)
def _without(spelling: Spelling) -> re.Pattern[str]:
    """What of a number only people need."""
    return re.compile(f"[ \\t\u00a0\u202f{re.escape(spelling.thousands)}{re.escape(spelling.unit)}]")


def fold(text: str) -> str:
    """A value in small letters, without blanks around it and with one between words.

    >>> fold(" Not  Known ")
    'not known'
    """
    return " ".join(text.split()).lower()


def folded(codes: Codes, missing: Sequence[str] = ()) -> Codes:
    """The same values, those that differ in letter case and blanks alone as one."""
    slots: dict[str, int] = {}
    gone = {fold(mark) for mark in missing} | {""}
    new = [-1 if (one := fold(text)) in gone else slots.setdefault(one, len(slots)) for text in codes.slots]
    return Codes(list(slots), np.array([*new, -1], dtype=np.int64)[codes.codes])


def spelled(
    raw: Any, spelling: Spelling, where: Where, missing: Sequence[str], dates: bool, told: OddCells | None = None
) -> Any:
    """The column with its texts as numbers or times; null where a cell is missing, or odd if odd ones are."""
    if isinstance(raw, pa.Array) and pa.types.is_dictionary(raw.type):
        raw = raw.dictionary_decode()
    if isinstance(raw, pa.Array) and is_bytes(raw.type):
        raw = array(texts(raw), pa.string())
    if isinstance(raw, pa.Array):
        if not is_text(raw.type):
            return in_hours(raw) if spelling.clock and is_clock(raw.type) else raw
        raw = without(raw, missing)
        if (quick := _quickly(raw, spelling, dates)) is not None:
            if told is not None:
                told.add(where, {}, len(raw) - raw.null_count)
            return quick
        raw = raw.to_pylist()
    elif not isinstance(raw, list):
        return raw
    read = _Cells(spelling, frozenset(missing), dates)
    odd: dict[int, str] = {}
    out: list[Any] = []
    for row, value in enumerate(raw):
        found = read.of(value)
        if type(found) is str:
            if not spelling.odd:
                raise where.unreadable(
                    row,
                    f"{found[:60]!r} is not a {'date' if dates else 'number'}, which this column has as "
                    f"{spelling.words or 'others'}",
                    "mend the value, or name it in the schema's missing=[…].",
                )
            odd[row] = found
            found = None
        out.append(found)
    if told is not None:
        told.add(where, odd, sum(v is not None for v in out) + len(odd))
    return pa.array(out, pa.timestamp("us") if dates else pa.float64())


@dataclass
class _Cells:
    """Each cell as a number, or as microseconds since 1970; None if missing, and its text if it is neither."""

    spelling: Spelling
    missing: frozenset[str]
    dates: bool
    known: dict[str, Any] = field(default_factory=dict)

    def of(self, value: Any) -> Any:
        """One cell."""
        if type(value) is not str:
            return self._read(value)
        if value not in self.known:
            if len(self.known) > _KEPT:
                self.known.clear()
            self.known[value] = self._read(value)
        return self.known[value]

    def _read(self, value: Any) -> Any:
        text = canon.text(value) if canon.is_one(value) else canon.printable(repr(value))
        if text is None or text in self.missing:
            return None
        written = isinstance(value, (str, bytes, bytearray, memoryview)) or (self.spelling.clock and is_time(value))
        try:
            if self.dates:
                found = self.spelling.instant(text) if written else canon.instant(value)
                return None if found is None else found[0] * DAY + found[1]
            x = self.spelling.number(text) if written else canon.number(value)
        except ValueError:
            return text
        if written and self.spelling.odd and np.isinf(x):
            return text
        return None if x != x else x


def _quickly(raw: Any, spelling: Spelling, dates: bool) -> Any:
    """The column read by Arrow, or None where a cell needs a closer look; what Arrow reads it reads as Python does."""
    try:
        if dates:
            return None if spelling.date else raw.cast(pa.timestamp("us"))
        if spelling.clock:
            return in_hours(raw)
        if spelling.decimal != "." or spelling.thousands or spelling.unit:
            fits = pc.match_substring_regex(raw, f"^(?:{pattern(spelling).pattern})$")
            if not pc.all(fits, min_count=0).as_py() or _has_newline(raw):
                return None
            raw = pc.replace_substring_regex(raw, _without(spelling).pattern, "")
            raw = pc.replace_substring(raw, spelling.decimal, ".")
        out = raw.cast(pa.float64())
    except (pa.ArrowInvalid, ValueError):
        return None
    return out if pc.all(pc.is_finite(out), min_count=0).as_py() else None


def _has_newline(raw: Any) -> bool:
    return bool(pc.any(pc.match_substring(raw, "\n"), min_count=0).as_py())


@dataclass
class _Found:
    """The odd cells of one column."""

    cells: int = 0  # that have a value, odd or not
    odd: int = 0
    values: dict[str, int] = field(default_factory=dict)  # how often, of the first different ones
    first: list[tuple[int, str, Where]] = field(default_factory=list)  # the row's number, what it holds, its batch

    def told(self, places: bool = True) -> str:
        """What was found, and where first, or how often."""
        if places:
            each = [f"{canon.printable(text, 40)!r} ({where.at(row)})" for row, text, where in self.first]
            more = self.odd > len(each)
        else:
            some = list(self.values.items())[:_PLACES]
            each, more = [f"{canon.printable(text, 40)!r} ({n:,})" for text, n in some], len(self.values) > _PLACES
        return ", ".join(each) + (", …" if more else "")

    def refusal(self, dates: bool, places: bool = True) -> DataError:
        """The error about the first of them, for who wants none."""
        row, text, where = self.first[0]
        what, others = "date" if dates else "number", self.cells - self.odd
        said = f"{text[:60]!r} is not a {what}, as {others:,} other cells are"
        hint = "mend the cell, name it in missing=[…] (--missing), or take odd cells as missing: strict=False."
        if not places:
            return DataError(f"column {where.column!r}: {said}", hint=hint)
        return where.unreadable(row - where.start, said, hint)


def _place(cell: tuple[int, str, Where]) -> tuple[bool, int]:
    """What is told first: marks for missing values are odd only until a column knows them."""
    return is_mark(cell[1]), cell[0]


class OddCells:
    """What could not be read, column by column: how often, what, and where first; whatever the order of the batches.

    Of rows that were drawn from all over the data nobody knows the places.
    """

    def __init__(self, places: bool = True) -> None:
        self.places = places
        self.found: dict[str, _Found] = {}
        self._lock = Lock()

    def add(self, where: Where, odd: dict[int, str], cells: int) -> None:
        """The odd cells of a batch, by their rows, of so many."""
        with self._lock:
            found = self.found.setdefault(where.column, _Found())
            found.cells += cells
            found.odd += len(odd)
            for text in odd.values():
                if text in found.values or len(found.values) < _KEPT:
                    found.values[text] = found.values.get(text, 0) + 1
            some = ((where.start + row, text, where) for row, text in odd.items())
            found.first = nsmallest(_PLACES, [*found.first, *some], key=_place)

    def watching(self, source: Source) -> Source:
        """The source, whose batches tell of their odd cells here."""
        if source.engine is not None:
            return source

        def watched(batches: Iterator[Batch]) -> Iterator[Batch]:
            return (replace(batch, odd=self) for batch in batches)

        narrow = source.narrow
        return replace(
            source,
            read=lambda: watched(source.read()),
            narrow=None if narrow is None else lambda wanted: watched(narrow(wanted)),
        )

    def warn(self) -> None:
        """One warning of all that was found."""
        odd = {name: found for name, found in self.found.items() if found.odd}
        if odd:
            each = "; ".join(
                f"{found.odd:,} of {found.cells:,} cells of {name!r}: {found.told(self.places)}"
                for name, found in odd.items()
            )
            warn(
                f"cells that cannot be read are taken as missing: {each}. Hint: mend them, or stop at the first with "
                "strict=True (--strict)."
            )
