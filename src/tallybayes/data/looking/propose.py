"""What one column is proposed to be, and why: a kind, how its cells are read, and a reason that counts what is odd."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...base import canon
from ...base.arrays import Floats
from ...base.errors import excerpt
from ...base.lazy import scipy
from ...base.wording import end_text
from ...exact.cells import Cells
from ..blocks import Codes
from ..dates import date_part
from ..guess import Reading, Understood, is_date, is_iso, is_number, no_text, understood
from ..kinds import KINDS, Reason
from ..schema import DATE_PARTS, Column, date_columns
from ..sources import Batch
from ..spelling import OddCells, Spelling, spelled
from ..values import Where, is_bytes, number
from .look import (
    Looked,
    Ordered,
    are_names,
    are_numbers,
    free_text,
    gaps_may_tell,
    is_counted,
    look_alike,
    names,
    some_of,
)

FEW_ROWS = 20  # below this nothing is called an id
_SURELY_TEXT = 3.5  # words on average of some texts: all have at least three
_SHOWN = 3  # odd cells in a reason
_NUMBER_AND_UNIT = re.compile(
    r"\s*[+-]?(?!0\d)\d[\d.,\u00a0' ]*?\s?([^\W\d_][\w/²³%*.^-]{0,4}|[^\w\s]{1,2}[^\W\d_]?)\s*"
)
_LEAST_SHARE, _NEARLY_ALL = 0.05, 0.9  # of the cells: a unit that is named; dates, to be said to be some
_ZONED = re.compile(r"[T ]\d\d.*(?:Z|[+-]\d\d:?\d\d)\s*$")
_NUMERIC = " +-.0123456789"  # how numbers begin
_MANY_VALUES, _MOSTLY = 30, 0.5  # values of a column that is said to be numbers for the most part, and what part
_HEAD = 100  # values that tell whether all are objects without a text
_ADDRESS = re.compile(r"<.+ object at 0x[0-9a-fA-F]+>")  # as Python writes them
_ID_NAME = re.compile(r"(^|[_\W])(id|uuid|guid|key|index|idx|rowid|row)$|Id$|ID$", re.ASCII)


@dataclass(frozen=True)
class Proposals:
    """What decides beside a column itself: where its rows come from, what the user said, and who hears of odd cells."""

    look: Batch
    reading: Reading
    odd: OddCells
    commas: bool = False  # whether the file was read with decimal=","

    def of(self, name: str, looked: Looked) -> list[Column]:
        """One or more columns for a column of the data."""
        for kind in KINDS.values():
            if kind.recognise is not None and (found := kind.recognise(name, looked)) is not None:
                return [found]
        raw = looked.raw
        if isinstance(raw, np.ndarray) or scipy.sparse.issparse(raw):
            return [_matrix(name, raw)]
        if isinstance(raw, list):
            there = [v for v in raw if not canon.is_one(v) or canon.text(v) is not None]
            if there and all(map(is_counted, there)):
                return [Column(name, "bag", reason="dicts of word and count")]
            if not all(map(canon.is_one, raw)):
                if all(isinstance(v, (list, tuple)) and all(map(canon.is_one, v)) for v in there):
                    return [Column(name, "bag", reason="lists of words")]
                types = {type(v).__name__ for v in there}
                first = type(next(v for v in there if not canon.is_one(v))).__name__
                what = f"values of several types, one of them {first}" if len(types) > 1 else f"values of type {first}"
                return [Column(name, "ignore", reason=what)]
            return self._texts(name, looked, "values of several types")
        kind = raw.type.value_type if pa.types.is_dictionary(raw.type) else raw.type
        if raw.null_count == len(raw):
            return [Column(name, "ignore", reason="missing in every row")]
        if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
            return [_lists(name, raw)]
        if pa.types.is_map(kind) and are_numbers(kind.item_type) and not pa.types.is_nested(kind.key_type):
            return [Column(name, "bag", reason="maps of word and count")]
        if pa.types.is_nested(kind) or pa.types.is_interval(kind) or is_bytes(kind):
            return [Column(name, "ignore", reason=f"values of type {kind}"[:80])]
        if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
            return _dates(name, raw, looked.marks, "dates")
        if pa.types.is_boolean(kind):
            return [_category(name, looked.codes(), "true or false")]
        if pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind):
            return [_numbers(name, looked.numbers(name))]
        return self._texts(name, looked, "text", declared=pa.types.is_dictionary(raw.type))

    def _texts(self, name: str, looked: Looked, what: str, declared: bool = False) -> list[Column]:
        """A column of texts: dates, numbers, an id, free text or a category."""
        if isinstance(looked.raw, pa.Array) and not declared:
            first = [v for v in looked.raw[:_HEAD].to_pylist() if v is not None]
            if first and all(isinstance(v, str) and _ADDRESS.fullmatch(v) for v in first):
                return [
                    Column(name, "ignore", reason="objects of Python's that have no text: where each lies in memory")
                ]
        seen = None if declared else looked.long_texts()
        if seen is not None and seen.alone > 0.5 * seen.rows and seen.words >= _SURELY_TEXT and not no_text(seen.some):
            return [free_text(name, seen.some, seen.words)]
        codes = looked.codes()
        counts = np.bincount(codes.codes[codes.codes >= 0], minlength=len(codes.slots)).tolist()
        every = dict(zip(codes.slots, counts, strict=True))
        marks = dict.fromkeys(self.reading.marked(codes.slots))
        plain = {v: n for v, n in every.items() if v not in marks} if marks else every
        if not declared and plain:
            loose = bool(marks) or self.look.written
            found = understood(name, list(plain), list(plain.values()), self.reading, loose=loose, commas=self.commas)
            if found is not None:
                return self._read(name, looked, found, {m: every[m] for m in marks})
        kept = self.reading.marked(codes.slots, category=True) if marks else ()
        column = _category(name, looked.codes(kept, fold=self.reading.fold), what, declared)
        if column.kind == "category":
            spelling = Spelling(fold=True) if self.reading.fold else None
            alike = [] if self.reading.fold else look_alike([v for v in plain if v.strip()])
            reason = column.reason + _told({m: every[m] for m in kept}) + _alike(alike)
            column = replace(column, missing=kept, spelling=spelling, reason=reason)
        if len(plain) > _MANY_VALUES and column.kind in ("category", "ignore"):
            column = replace(column, reason=column.reason + (_mostly_numbers(plain) or _units(plain) or _orders(plain)))
        return [column]

    def _read(self, name: str, looked: Looked, found: Understood, marks: dict[str, int]) -> list[Column]:
        """The columns of numbers or dates that are written as texts."""
        missing, odd = tuple(marks), sum(found.odd.values())
        told: Any = _told(marks)
        if found.spelling is not None and found.spelling.words and not found.dates:
            told = f"; {found.spelling.words}" + told
        if found.doubt:
            told = Reason(f" ({found.doubt})", "") + told
        if odd:
            self._tell(name, looked, found, missing)
            what = f"{odd:,} of {found.cells:,} cells"
            each = ", ".join(
                f"{canon.printable(v, 24)!r} ({n:,})" for v, n in sorted(found.odd.items(), key=_most)[:_SHOWN]
            )
            more = ", …" if len(found.odd) > _SHOWN else ""
            row, _, where = self.odd.found[name].first[0]
            first = f", first in {where.at(row)}" if self.odd.places else ""
            gone = f"; {what} cannot be read and are missing"
            told = told + Reason(f"{gone}: {each}{more}{first}", gone)
        if not found.dates:
            explained = sum(marks.values()) + odd
            x = looked.numbers(name, missing, found.spelling)
            return [_numbers(name, x, missing, found.spelling, told, explained)]
        raw = looked.raw
        if found.spelling is not None:
            raw = spelled(raw, found.spelling, Where(name, 0), (*looked.marks, *missing), dates=True)
        zoned = found.spelling is None and any(map(_ZONED.search, looked.codes().slots[:_HEAD]))
        plain = "times with a zone, written as text, in UTC" if zoned else "dates written as text"
        how = (found.spelling is not None and found.spelling.words) or plain
        out = _dates(name, raw, (*looked.marks, *missing), how)
        return [replace(c, missing=missing, spelling=found.spelling, reason=c.reason + told) for c in out]

    def _tell(self, name: str, looked: Looked, found: Understood, missing: Sequence[str]) -> None:
        """Remember the odd cells and where they stand; refuse them where the user wants none."""
        assert found.spelling is not None
        where = Where(name, 0, self.look.place)
        spelled(looked.raw, found.spelling, where, (*looked.marks, *missing), found.dates, self.odd)
        if self.reading.strict:
            raise self.odd.found[name].refusal(found.dates, self.odd.places)


def _most(found: tuple[str, int]) -> tuple[int, str]:
    return -found[1], found[0]


def _told(marks: Mapping[str, int]) -> Any:
    """Which marks were found, and how often."""
    if not marks:
        return ""
    each = ", ".join(f"{mark!r} ({n:,})" for mark, n in sorted(marks.items())[:8])
    return Reason(f"; {each} read as missing", f"; {excerpt(sorted(marks))} read as missing")


def _mostly_numbers(values: Mapping[str, int]) -> Any:
    """What is said of a column that has too many odd cells to be numbers."""
    cells = sum(values.values())
    if sum(n for v, n in values.items() if v[:1] in _NUMERIC) < _MOSTLY * cells:  # quick, and mostly enough
        return ""
    odd = {v: n for v, n in values.items() if not is_number(v)}
    share = 1 - sum(odd.values()) / cells
    if share < _MOSTLY:
        return ""
    each = ", ".join(f"{canon.printable(v, 24)!r} ({n:,})" for v, n in sorted(odd.items(), key=_most)[:_SHOWN])
    kept = f"; {share:.0%} of its cells are numbers"
    return Reason(f"{kept}, others are {each}{', …' if len(odd) > _SHOWN else ''}: missing=[…] leaves these out", kept)


def _unit_of(text: str) -> str:
    """What stands behind a number that a text is otherwise: kg of 55.7 kg; empty where it is something else.

    >>> [_unit_of(text) for text in ("55.7 kg", "110cm", "12 km/h", "3,5 °C", "New York", "12", "A 7")]
    ['kg', 'cm', 'km/h', '°C', '', '', '']
    """
    found = _NUMBER_AND_UNIT.fullmatch(text)
    return found[1] if found else ""


def _units(values: Mapping[str, int]) -> Any:
    """What is said of a column of numbers that have a unit behind them."""
    cells, rows = sum(values.values()), Counter[str]()
    for value, n in values.items():
        rows[_unit_of(value)] += n
    shares = [(unit, n / cells) for unit, n in rows.most_common(_SHOWN) if unit and n >= _LEAST_SHARE * cells]
    share = sum(n for _, n in shares)
    if share < _MOSTLY:
        return ""
    units = " or ".join(canon.printable(unit, 12) for unit, _ in shares)
    one = "take the unit out" if len(shares) == 1 else "write all of them in one unit, and take it out"
    kept = f"; {share:.0%} of its cells are a number and a unit"
    return Reason(f"; {share:.0%} of its cells are a number and {units}: {one} to count numbers", kept)


def _orders(values: Mapping[str, int]) -> Any:
    """What is said of a column whose dates are written in several orders."""
    cells = sum(values.values())
    first = [next((v for v in values if of(v)), None) for of in (is_iso, is_date)]
    if None in first or sum(n for v, n in values.items() if is_iso(v) or is_date(v)) < _NEARLY_ALL * cells:
        return ""
    both = " and ".join(repr(canon.printable(v or "", 24)) for v in first)
    kept = "; its cells are dates written in several ways"
    return Reason(f"{kept}, {both}: write them in one to count dates", kept)


def _alike(values: Sequence[str]) -> Any:
    if not values:
        return ""
    shown = ", ".join(map(canon.printable, values[:4])) + (", …" if len(values) > 4 else "")
    return Reason(f"; {shown}: {len(values)} spellings of one value? fold=True makes them one", "")


def _matrix(name: str, raw: Any) -> Column:
    width = int(raw.shape[1])
    if scipy.sparse.issparse(raw):
        if raw.nnz == 0 or raw.data.min() >= 0:
            return Column(name, "bag", width=width, reason=f"a sparse matrix of {width} columns, none negative")
        return Column(name, "vector", width=width, reason=f"a sparse matrix of {width} columns, some negative")
    return Column(name, "vector", width=width, reason=f"a matrix of {width} columns")


def _lists(name: str, raw: Any) -> Column:
    items = raw.type.value_type
    if pa.types.is_nested(items):
        return Column(name, "ignore", reason=f"values of type {raw.type}"[:80])
    if are_numbers(items):
        if pa.types.is_fixed_size_list(raw.type):
            return Column(name, "vector", width=raw.type.list_size, reason=f"vectors of {raw.type.list_size} numbers")
        lengths = pc.unique(pc.list_value_length(raw).drop_null()).to_pylist()
        if len(lengths) == 1:
            return Column(name, "vector", width=lengths[0], reason=f"vectors of {lengths[0]} numbers")
        return Column(name, "ignore", reason=f"lists of numbers of {len(lengths)} different lengths")
    return Column(name, "bag", reason="lists of words")


def _dates(name: str, raw: Any, marks: Sequence[str], what: str) -> list[Column]:
    where = Where(name, 0)
    days = number(date_part(raw, "days", where, marks), where)
    cells = Cells.fitted(there := days[~np.isnan(days)])
    if len(there) and (there == there[0]).all():
        return [Column(name, "ignore", reason=f"{what}, the same in every row")]
    each = {part: date_part(raw, part, where, marks) for part in DATE_PARTS if part != "days"}
    same = [part for part, found in each.items() if len(pc.unique(found.indices.drop_null())) < 2]
    told = "".join(f"; the same {part} in every row" for part in same if part != "hour")
    out = date_columns(name, without=same, reason=f"{what}, split into parts{told}")
    return [Column(**{**vars(c), "cells": cells}) if c.part == "days" else c for c in out]


def _numbers(
    name: str, x: Ordered, missing: tuple[str, ...] = (), spelling: Spelling | None = None, told: Any = "",
    explained: int = 0,
) -> Column:  # fmt: skip
    """A column of numbers; `told` says of `explained` rows why they have none."""
    there, rows = x.values, x.rows
    if len(there) == 0:
        return Column(name, "ignore", reason="missing in every row")
    distinct = len(x.distinct())
    whole = bool(np.all(there == np.rint(there)))
    low, high = (end_text(float(v)) for v in (there[0], there[-1]))
    if distinct == 1:
        return _one_value(name, "number", low, x.absent, rows, missing)
    span = float(there[-1]) - float(there[0])
    if whole and distinct == rows >= FEW_ROWS and (span < 2 * rows or _ID_NAME.search(name)):
        return Column(name, "ignore", reason=f"an id: a whole number of its own in each of {rows} rows")
    what = f"whole numbers, {distinct} different" if whole else "numbers"
    gone = x.absent
    share = f", missing in {canon.share_of(gone, rows)}" if gone > explained else ""
    return Column(
        name,
        "number",
        cells=Cells.fitted(there),
        missing=missing,
        spelling=spelling,
        reason=Reason(f"{what} from {low} to {high}", what) + share + told + _far_nines(there),
    )


def _far_nines(there: Floats) -> Any:
    """What is said of -999 and its like: nines that stand several times, further off than all others are apart."""
    for end, others in ((there[0], there[there > there[0]]), (there[-1], there[there < there[-1]])):
        times = len(there) - len(others)
        if times < 2 or abs(end) < 9 or set(end_text(abs(float(end)))) != {"9"} or others[0] == others[-1]:
            continue
        if min(abs(end - others[0]), abs(end - others[-1])) > others[-1] - others[0]:
            mark = end_text(float(end))
            return Reason(f"; {mark} ({times:,}) is far from all others: name it in missing= if it means that", "")
    return ""


def _one_value(
    name: str, what: str, only: str, gone: int, rows: int, missing: tuple[str, ...] = ()
) -> Column:  # fmt: skip
    """A column of one value says nothing, unless enough rows have none: ticks, flags, a date that most lack."""
    if gaps_may_tell(gone, rows):
        told = Reason(f"the same {what}, {only}, or none", f"the same {what} or none")
        share = f"; missing in {canon.share_of(gone, rows)}"
        return Column(name, "category", missing=missing, reason=told + share)
    where = "in every row that has one" if gone else "in every row"
    return Column(name, "ignore", reason=Reason(f"the same {what}, {only}, {where}", f"the same {what} {where}"))


def _category(name: str, codes: Codes, what: str, declared: bool = False) -> Column:
    there = codes.codes[codes.codes >= 0]
    count = np.bincount(there, minlength=len(codes.slots))
    distinct = int(np.count_nonzero(count))
    if distinct == 0:
        return Column(name, "ignore", reason="missing in every row")
    if distinct == 1:
        only = codes.slots[int(np.argmax(count))][:40]
        return _one_value(name, "value", repr(only), codes.rows - len(there), codes.rows)
    alone = int(np.count_nonzero(count == 1))
    if not declared and len(there) >= FEW_ROWS and alone > 0.5 * len(there):
        some = some_of(codes.slots)
        own = f"{alone} of {len(there)} rows have a value of their own"
        words = float(np.mean([len(text.split()) for text in some]))
        if words >= 3:
            return free_text(name, some, words)
        if not _ID_NAME.search(name) and are_names(some):
            return names(name, distinct)
        return Column(name, "ignore", reason=f"nearly an id: {own}")
    few = np.flatnonzero(count >= np.sort(count)[-3:][0]).tolist()
    shown = sorted(codes.slots[i] for i in sorted(few, key=lambda i: (-count[i], codes.slots[i]))[:3] if count[i])
    more = ", …" if distinct > 3 else ""
    gone = codes.rows - len(there)
    share = f"; missing in {canon.share_of(gone, codes.rows)}" if gone else ""
    listed = ", ".join(s[:24] for s in shown)
    told = Reason(f"{what}, {distinct} different values: {listed}{more}", f"{what}, {distinct} different values")
    return Column(name, "category", reason=told + share)
