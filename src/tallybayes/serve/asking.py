"""A row as a person gives it, field by field: what can be chosen there, how what is typed is read, and what of it the
model never saw. Ranges and values are those of the counts, not of any rows.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import json
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from ..base import canon
from ..base.errors import TallybayesError, heard
from ..base.times import hours_text
from ..data import encode
from ..data.batch import Batch, one_row
from ..data.blocks import N
from ..data.schema import Column, Schema, column_of
from ..data.spelling import Spelling
from ..explain.explanation import Explanation, explained
from ..model.model import Model
from ..model.watching.learnt import ends_known, learnt_range, range_text
from ..tally.tally import Tally
from .served import Served

LONGEST = 5_000  # characters of a text that a page shows
WEIGHT = "weight"  # the kind of the field that says how much a row counts for when it is learnt
KEPT = "kept"  # the kind of a field that is not counted: the journal keeps it with a row that is learnt
_NOTCHES = 200  # of a slider, about
_MOST_WIDE = 1e15  # the range of a slider, in steps that a float64 still tells apart
_MOST_COMPARED = 2_000  # values of a category of which one may be meant that a page cannot show as it is
_WORDS = {"bag": "list of words", "vector": "list of numbers", "time": "date with a time"}
_DAYS = (-700_000, 2_900_000)  # since 1970, of the years that a date can have


@dataclass(frozen=True)
class Slider:
    """The range of a slider in steps that are short numbers."""

    low: float
    high: float
    step: float

    @classmethod
    def over(cls, ends: tuple[float, float] | None, whole: bool) -> Slider | None:
        """The slider over a range; None where there is nothing to slide over."""
        if ends is None or not 0 < ends[1] - ends[0] < _MOST_WIDE:
            return None
        rough = (ends[1] - ends[0]) / _NOTCHES
        power = 10.0 ** math.floor(math.log10(rough))
        step = next(f * power for f in (1, 2, 5, 10) if f * power >= rough * (1 - 1e-9))
        step = max(1.0, float(round(step))) if whole else step
        digits = max(0, -math.floor(math.log10(step)))
        low, high = math.floor(ends[0] / step + 1e-9) * step, math.ceil(ends[1] / step - 1e-9) * step
        return cls(round(low, digits), round(high, digits), round(step, digits))


@dataclass(frozen=True)
class AskField:
    """One column of the data as a field of a form."""

    name: str
    kind: str  # the kind it is like, date or time, or KEPT
    columns: tuple[Column, ...] = ()  # of the model, that read it
    tally: Tally | None = field(default=None, repr=False)

    @property
    def column(self) -> Column:
        """The column that says how it is read."""
        return next((c for c in self.columns if c.of is None), self.columns[0])

    @property
    def alone(self) -> Column:
        """The same as a column by itself, also where only a pair reads it."""
        side = next((s for s in self.column.of or () if s.source == self.name), None)
        return self.column if side is None else column_of(side)

    @property
    def gap(self) -> bool:
        """Whether the model has learnt what it says that the value is missing; to leave it out is another thing."""
        return any(c.kind == "gap" for c in self.columns)

    @cached_property
    def values(self) -> tuple[tuple[str, float], ...]:
        """The values of a category and how many rows have each, the commonest first."""
        if self.kind != "category" or self.tally is None or self.column.of is not None:
            return ()
        counts = self.tally.columns[self.column.name]

        def counted() -> tuple[tuple[str, float], ...]:
            sheet = counts.sheet("values", N)
            each = dict(zip(sheet.slot_names, sheet.by_slot("n").tolist(), strict=True))
            for declared in self.column.values or ():
                each.setdefault(declared, 0.0)
            return tuple(sorted(each.items(), key=lambda value: (-value[1], value[0])))

        return counts.once("values as they are asked for", counted)

    @cached_property
    def ends(self) -> tuple[float, float] | None:
        """The least and the greatest number that was counted; of a date in days since 1970."""
        return learnt_range(self.tally, self._ranged) if self._ranged else None

    @property
    def _ranged(self) -> str:
        """The column whose numbers have a range; of a date its days; none of others."""
        days = next((c.name for c in self.columns if c.part == "days"), "")
        return days or (self.column.name if self.kind == "number" else "")

    @property
    def range(self) -> str:
        """What was counted, in words; numbers that are counted together say only about where they end."""
        if self.ends is None:
            return ""
        about = "" if ends_known(self.tally, self._ranged) else "about "
        if self.kind == "number":
            return about + range_text(self.ends, self.column)
        return about + " to ".join(day_text(canon.number_text(end)) for end in self.ends)

    def number(self, given: str) -> float | None:
        """The number that a text in the field means, if any."""
        try:
            value = float(given)
        except ValueError:
            spelling = self.column.spelling if self.columns else None
            try:
                value = math.nan if spelling is None else spelling.number(given)
            except ValueError:
                return None
        return value if math.isfinite(value) else None

    @property
    def clock(self) -> bool:
        """Whether times may be entered, which are read as hours."""
        spelling = self.column.spelling if self.columns else None
        return spelling is not None and spelling.clock

    @property
    def slider(self) -> Slider | None:
        """The slider of a number."""
        cells = self.column.cells if self.kind == "number" else None
        whole = cells is not None and cells.discrete and bool(np.all(cells.point_values == np.rint(cells.point_values)))
        return Slider.over(self.ends, whole) if self.kind == "number" else None

    # ---- what is typed

    def read(self, given: str) -> Any:
        """The value that a text in the field means; None for none. What cannot be read stays a text."""
        plain = given.strip()
        if not plain:
            return None
        return _READ.get(self.kind, _text)(self, given if self.kind in ("text", KEPT) else plain)

    def shown(self, value: Any) -> str:
        """A value as the field shows it; `read` gives it back where it can."""
        if value is None or (isinstance(value, float) and math.isnan(value)):
            return ""
        if self.kind in ("date", "time"):
            return self._date_shown(value)
        if isinstance(value, list) and self.kind == "vector":
            return ", ".join(canon.text(v) or "" for v in value)
        if isinstance(value, (list, dict)):
            told = ", ".join(map(str, value)) if isinstance(value, list) else ""
            return told if told and self.read(told) == value else json.dumps(value, ensure_ascii=False)
        if self.clock and isinstance(value, float):
            return hours_text(value)
        return value if isinstance(value, str) else canon.text(value) or ""

    def _date_shown(self, value: Any) -> str:
        spelling = self.column.spelling
        try:
            found = spelling.instant(value) if spelling is not None and isinstance(value, str) else canon.instant(value)
            assert found is not None
            when = dt.datetime(1970, 1, 1) + dt.timedelta(days=found[0], microseconds=found[1])
        except (ValueError, OverflowError, AssertionError, TypeError):
            return str(value)
        return when.isoformat(timespec="minutes") if self.kind == "time" else when.date().isoformat()


def _text(asked: AskField, given: str) -> Any:
    return given


def _number(asked: AskField, given: str) -> Any:
    try:
        value = float(given)
    except ValueError:
        return given
    if not math.isfinite(value) or "_" in given:
        return given
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _category(asked: AskField, given: str) -> Any:
    value = canon.written(given)
    if value in dict(asked.values) or len(asked.values) > _MOST_COMPARED:
        return value
    return next((v for v, _ in asked.values if as_sent(v) == as_sent(given)), value)


def _date(asked: AskField, given: str) -> Any:
    spelling = asked.column.spelling
    if spelling is None or not spelling.date:
        return given
    try:
        return dt.datetime.fromisoformat(given).strftime(spelling.date)
    except ValueError:
        return given


def _listed(asked: AskField, given: str) -> Any:
    if given[0] in "[{":
        try:
            return json.loads(given)
        except (ValueError, RecursionError):
            return given
    parts = given.split(",") if "," in given else given.split()
    each = [part.strip() for part in parts if part.strip()]
    if asked.kind == "bag":
        return each
    numbers = [_number(asked, part) for part in each]
    return given if any(isinstance(n, str) for n in numbers) else numbers


_READ: dict[str, Callable[[AskField, str], Any]] = {
    "number": _number, WEIGHT: _number, "category": _category, "date": _date, "time": _date, "bag": _listed,
    "vector": _listed,
}  # fmt: skip


def day_text(days: str) -> str:
    """A number of days since 1970 as the date, where there is such a date.

    >>> day_text("19994.25"), day_text("1e+300"), day_text("")
    ('2024-09-28', '1e+300', '')
    """
    if not days or not _DAYS[0] < float(days) < _DAYS[1]:
        return days
    return str(dt.date(1970, 1, 1) + dt.timedelta(days=math.floor(float(days))))


def as_sent(value: str, lines: bool = False) -> str:
    """A text as a browser sends back what a page has shown: cut, printable, and without lines but where it may have.

    >>> as_sent("a\\tb\\nc"), as_sent("a\\tb\\nc", lines=True)
    ('a\ufffdbc', 'a\ufffdb\\nc')
    """
    each = [canon.printable(line.rstrip("\r"), LONGEST) for line in value[: LONGEST + 1].split("\n")]
    return ("\n" if lines else "").join(each).strip()


class AskForm:
    """The fields of a model, and rows read from them."""

    def __init__(self, served: Served) -> None:
        self.served = served
        self.fields = tuple(_fields(served))

    @cached_property
    def key(self) -> str:
        """What tells the form of one model from that of another."""
        told = [self.served.model.schema.target, *(f"{each.name}\0{each.kind}" for each in self.fields)]
        return hashlib.blake2b("\1".join(told).encode("utf-8", "replace"), digest_size=8).hexdigest()

    def row(
        self, given: Sequence[str], kept: Mapping[str, Any] | None = None, gone: Collection[int] = ()
    ) -> dict[str, Any]:
        """The row that texts mean, one for each field; a field that still shows what a kept row has means just that.

        Where the model knows what it says that a value is missing, an empty field is not in the row, and so says
        nothing, unless its number is among those that are `gone`: known to be missing.
        """
        out = {}
        for i, (asked, text) in enumerate(zip(self.fields, given, strict=True)):
            own = None if kept is None else kept.get(asked.name)
            lines = asked.kind == "text"
            same = own is not None and as_sent(asked.shown(own), lines) == as_sent(text, lines)
            value = own if same else asked.read(text)
            if value is not None or (i in gone if asked.gap else asked.kind != KEPT):
                out[asked.name] = value
        return out

    def answer(self, row: Mapping[str, Any]) -> AskAnswer:
        """The answer to a row and its sum; a value that cannot be read is left out, and said."""
        model, remarks, left_out = self.served.model, {}, frozenset[str]()
        inputs = self.inputs(row)
        try:
            explained = _explained(model, inputs)
        except TallybayesError:
            remarks = self._unreadable(model.schema, inputs)
            if not remarks:
                raise
            left_out = frozenset(remarks)
            explained = _explained(model, {n: None if n in left_out else v for n, v in inputs.items()})
        for each in self.fields:
            if each.kind != KEPT and each.name not in remarks:
                said = _remark(each, inputs.get(each.name), explained)
                if said:
                    remarks[each.name] = said
        return AskAnswer(explained, remarks, left_out)

    def inputs(self, row: Mapping[str, Any]) -> dict[str, Any]:
        """What the model is asked of a row: what it does not say is missing, but for what would speak by that."""
        asked = (each for each in self.fields if each.kind != KEPT)
        return {each.name: row.get(each.name) for each in asked if each.name in row or not each.gap}

    def _unreadable(self, schema: Schema, inputs: Mapping[str, Any]) -> dict[str, str]:
        """Which of the fields cannot be read, and why."""
        out = {}
        for each in self.fields:
            if inputs.get(each.name) is None:
                continue
            alone = [each.alone] if each.columns else []
            try:
                for block in encode.blocks(schema._with(columns=alone, weights=None), one_row(inputs)).values():
                    block.present()
            except TallybayesError:
                out[each.name] = f"This is no {_WORDS.get(each.kind, each.kind)}, and is left out of the answer."
        return out


@dataclass(frozen=True)
class AskAnswer:
    """An answer as a sum, and a remark beside some fields."""

    explained: Explanation
    remarks: Mapping[str, str]
    left_out: frozenset[str] = frozenset()  # fields that cannot be read

    @property
    def best(self) -> Any:
        """The likeliest class."""
        return self.explained.classes[int(np.argmax(self.explained.probabilities))]


def _explained(model: Model, inputs: Mapping[str, Any]) -> Explanation:
    """Why a row gets its answer; also one that says nothing at all, which is the answer before anything is known."""
    with heard():  # that some columns are not there is meant
        if inputs or not model.beliefs:
            return model.explain([inputs])
        return explained(model, encode.bags(encode.blocks(model.schema, Batch({}, 1))), "natural", model.start, None)


def _fields(served: Served) -> list[AskField]:
    schema, tally = served.model.schema, served.tally
    by_input: dict[str, list[Column]] = {}
    for column in schema.counted:
        for name in column.inputs:
            by_input.setdefault(name, []).append(column)
    out = [AskField(name, _kind(name, columns), tuple(columns), tally) for name, columns in by_input.items()]
    if schema.weights is not None:
        out.append(AskField(schema.weights, WEIGHT))
    known = {each.name for each in out}
    left = [c.reads for c in schema.columns if c.about.encode is None and c.reads not in known]
    return [*out, *(AskField(name, KEPT) for name in dict.fromkeys(left))]


def _kind(name: str, columns: Sequence[Column]) -> str:
    if any(c.part == "hour" and _has_hours(c.spelling) for c in columns):
        return "time"
    if any(c.part for c in columns):
        return "date"
    own = next((c for c in columns if c.of is None), None)
    if own is not None:
        return own.like
    side = next(s for s in columns[0].of or () if s.source == name)
    return ("time" if side.part == "hour" else "date") if side.part else side.kind


def _has_hours(spelling: Spelling | None) -> bool:
    return spelling is None or not spelling.date or any(sign in spelling.date for sign in ("%H", "%I", "%X", "%c"))


def _remark(asked: AskField, value: Any, explained: Explanation) -> str:
    """What is to be said of a value: that it was never seen, lies beyond, means missing, or is not used."""
    names = {c.name for c in asked.columns if c.of is None}
    own = [line for line in explained.contributions[1:] if line.column in names]
    if own and all(line.factor == 0 for line in own):
        return "The model does not use this column."
    if value is None:
        return ""
    if own and all(line.note == "missing" for line in own):
        return "This is read as missing."
    far = next((line.beyond for line in own if line.beyond), "")
    new = [line.label for line in own if line.note and line.note != "missing"]
    if len(own) > 1 and asked.kind in ("text", "bag"):
        some = ", ".join(canon.printable(word, 20) for word in new[:4]) + (", …" if len(new) > 4 else "")
        return f"Never seen, and no evidence: {some}." if new else ""
    said = [far] if far else []
    said += [f"{line.note}: no evidence" for line in own if line.note and line.note != "missing"][:1]
    return f"{'; '.join(said).capitalize()}." if said else ""
