"""What a column says, in SQL: weights looked up by slot, a formula of the number, or words of a table of tokens."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

import numpy as np

from ...base.arrays import Floats
from ...base.errors import SettingsError
from ...base.times import DAY
from ...data.dates import PART_NAMES, marked
from ...data.kinds import GAP, KINDS
from ...data.pairs import PairColumn, stretch_names
from ...data.schema import Column
from ...data.spelling import BLANKS, Spelling, pattern
from ...data.text.tokeniser import Tokeniser
from ...exact.line import MIDDLE
from ...families import forms
from ...families.base import Belief
from .dialects import Dialect, TableName
from .texts import why_not_cut

_IS_TEXT = {
    "duckdb": "typeof({}) = 'VARCHAR'", "sqlite": "typeof({}) = 'text'", "spark": "typeof({}) = 'string'",
    "postgres": "pg_typeof({})::TEXT IN ('text', 'character varying', 'character')",
}  # fmt: skip
_FITS = {"duckdb": "regexp_matches({}, {})", "spark": "{} RLIKE {}", "postgres": "{} ~ {}"}  # SQLite has no patterns
_PREDICT = "score rows where Python is: `tallybayes predict MODEL DATA`, or model.predict_proba(rows)"
_ELSEWHERE = f"{_PREDICT}; or store each value in one spelling, dates as ISO 8601."
_INSTEAD = f"{_PREDICT}; or take it out with schema.with_column(…, kind='ignore')."
_FIELDS = {"weekday": "ISODOW", "month": "MONTH", "hour": "HOUR"}
IMPOSSIBLE = -1e304  # a log-likelihood of −inf: below any finite one, and many of them still add up without overflow
_EQUAL = 1e-12  # natural logs: steps that differ by less are one, or rounding in far tails would make thousands
_MANY = 64  # steps up to which they are told apart by comparing alone
_PLAIN = 900  # the exponent of a width that can divide any distance in the middle without over- or underflow


@dataclass(frozen=True)
class SlotWeights:
    """Weights by slot: how the column is read (NULL: missing), the slot of what was read, the known slots, and what any
    other one says.
    """

    read: str
    slot: str  # an expression in {x}
    names: list[str]
    weights: Floats  # slots × classes
    unseen: Floats
    most: float | None = None  # that it says against a class, as part of a blend


@dataclass(frozen=True)
class Formula:
    """How the column is read, an expression in {x} (and {never}) for each class, and when the number says nothing."""

    read: str
    formulas: list[str]
    unless: str = ""
    most: float | None = None


@dataclass(frozen=True)
class TokenWeights:
    """Weights by word, `base` for a row that has a text at all; and a table of words, or how texts are cut."""

    words: TableName | Tokeniser
    read: str  # the text, or anything else that is NULL where there is none
    names: list[str]
    weights: Floats
    unseen: Floats
    base: Floats
    once: bool
    most: float | None = None


def parts_of(
    d: Dialect, column: Column, belief: Belief, marks: Iterable[str], tokens: TableName | None
) -> Iterator[tuple[SlotWeights | Formula | TokenWeights, float]]:
    """A column's parts and what each counts: one, none where it says nothing, several of a blend."""
    form = belief.form()
    blend = form if isinstance(form, forms.BlendForm) else None
    for share, one in [(1.0, form)] if blend is None else blend.parts:
        part = _part_of(d, column, one, marks, tokens)
        if part is not None:
            yield replace(part, most=None if blend is None else blend.most), share


def _part_of(
    d: Dialect, column: Column, form: forms.Form, marks: Iterable[str], tokens: TableName | None
) -> SlotWeights | Formula | TokenWeights | None:
    if isinstance(form, forms.NoForm):
        raise SettingsError(f"column {column.name!r} is {form.what}", hint=form.hint)
    if column.only_here:
        raise _cannot(column, f"a {column.kind}, which is read by Python code", _INSTEAD)
    reads: list[Column | PairColumn] = [column, *(column.of or ())]
    for read in reads:
        if read.spelling is not None and read.kind == "category" and not read.spelling.plain:
            raise _cannot(column, "a category whose values are spelled in several ways", _ELSEWHERE)
        if read.spelling is not None and read.spelling.date:
            raise _cannot(column, f"a date written as {read.spelling.date}", _ELSEWHERE)
        if read.spelling is not None and read.spelling.clock:
            raise _cannot(column, "a time that is read as hours", f"{_PREDICT}; or store hours as numbers.")
    if isinstance(form, forms.PairForm) and column.of is not None:
        return _pair(d, column, form, marks)
    if column.kind == "gap" and isinstance(form, forms.TableForm):
        return _gap(d, column, form, marks)
    if column.kind == "vector":
        raise _cannot(column, "a vector", _INSTEAD)
    raw = f"t.{d.name(column.reads)}"
    if isinstance(form, (forms.WordsForm, forms.PresenceForm)):
        return _words(column, form, *_text(d, column, raw, marks, tokens))
    if isinstance(form, forms.TableForm):
        text = _value(d, raw, form.values) if column.part is None else _time(d, column, raw, column.part, marks)
        weights = written(form.logs), written(form.unseen)
        return SlotWeights(d.without(text, raw, marks), "{x}", list(form.values), *weights)
    x = _number(d, raw, column.spelling) if column.part is None else _time(d, column, raw, column.part, marks)
    x = d.without(x, raw, marks)
    if isinstance(form, (forms.StepsForm, forms.CellsForm)):
        return _steps(d, x, form)
    if isinstance(form, forms.BellForm):
        return _bell(d, x, form) if len(form.location) else None
    if isinstance(form, forms.RateForm):
        return _rate(d, x, form)
    raise _cannot(column, f"of the form {form.name!r}", "choose another family for it in the settings.")


def _cannot(column: Column, what: str, hint: str) -> SettingsError:
    return SettingsError(f"column {column.name!r} is {what}, which this SQL cannot score", hint=hint)


def _value(d: Dialect, raw: str, values: Iterable[str]) -> str:
    """A category's value as the text that was counted."""
    text = d.canonical(raw, values)
    if set(values) <= {"true", "false"}:  # where a database has no booleans they are 1 and 0
        text = f"CASE {text} WHEN '1' THEN 'true' WHEN '0' THEN 'false' ELSE {text} END"
    return text


def _number(d: Dialect, raw: str, spelling: Spelling | None) -> str:
    """A number: of a text without what only people need, NULL where the spelling does not fit it; else as it is."""
    if spelling is None:
        return d.to_number(raw)
    text = digits = d.to_text(raw)
    for sign in (*BLANKS, spelling.thousands, spelling.unit):
        digits = f"REPLACE({digits}, {d.text(sign)}, '')" if sign else digits
    if spelling.decimal != ".":
        digits = f"REPLACE({digits}, {d.text(spelling.decimal)}, '.')"
    number = d.to_number(digits)
    if d.label in _FITS:
        number = (
            f"CASE WHEN {_FITS[d.label].format(text, d.text(f'^(?:{pattern(spelling).pattern})$'))} THEN {number} END"
        )
    return f"CASE WHEN {_IS_TEXT[d.label].format(raw)} THEN {number} ELSE {d.to_number(raw)} END"


def _text(
    d: Dialect, column: Column, raw: str, marks: Iterable[str], tokens: TableName | None
) -> tuple[TableName | Tokeniser, str]:
    """A table of tokens, or how the database is to cut texts; and the text."""
    if tokens is not None:
        return tokens, raw
    listed = f"or give a table of its tokens: to_sql(…, tokens={{{column.name!r}: 'table'}})."
    if column.text is None:
        raise _cannot(column, f"a {column.kind}", f"{_PREDICT}; {listed}")
    why = why_not_cut(column.text) if d.cuts else f"{d.label} cannot cut as the model does"
    if why:
        raise _cannot(column, f"a text ({why})", f"{_PREDICT}; {listed}")
    return column.text, d.without(d.canonical(raw), raw, (m for m in marks if m != ""))


def _time(d: Dialect, column: Column, raw: str, part: str, marks: Iterable[str]) -> str:
    """Days since 1970 as a number, or weekday, month or hour as they are counted."""
    if not d.cuts:
        raise _cannot(column, f"a part of a date, and {d.label} has no type for those", _INSTEAD)
    time = d.instant(raw)
    if part == "days":
        micro, day = d.microseconds(time), f"(CAST({time} AS DATE) - DATE '1970-01-01')"
        whole = f"{micro} = CAST({day} AS BIGINT) * {DAY}"  # exactly a day, however far away
        of = f"CAST({micro} AS {d.number_type}) / {d.number(float(DAY))}"
        found = f"CASE WHEN {whole} THEN CAST({day} AS {d.number_type}) ELSE {of} END"
    else:
        number = f"CAST(EXTRACT({_FIELDS[part]} FROM {time}) AS INTEGER)"
        first = 0 if part == "hour" else 1
        each = " ".join(f"WHEN {i} THEN {d.text(name)}" for i, name in enumerate(PART_NAMES[part], first))
        found = f"CASE {number} {each} END"
    dates = ", ".join(f"TIMESTAMP '{np.datetime64(day * DAY + clock, 'us')}'" for day, clock in marked(tuple(marks)))
    return f"CASE WHEN {time} NOT IN ({dates}) THEN {found} END" if dates else found


def _gap(d: Dialect, column: Column, form: forms.TableForm, marks: Iterable[str]) -> SlotWeights:
    """Whether a value is missing."""
    assert column.of is not None
    side = column.of[0]
    raw, all_marks = f"t.{d.name(side.source)}", {*marks, *side.missing}
    if side.part is not None:
        value = _time(d, column, raw, side.part, all_marks)
    else:
        value = _number(d, raw, side.spelling) if KINDS[side.kind].like == "number" else d.canonical(raw)
    there = d.without(value, raw, all_marks)
    no, yes = map(d.text, GAP)
    weights = written(form.logs), written(form.unseen)
    return SlotWeights(f"CASE WHEN ({there}) IS NULL THEN {yes} ELSE {no} END", "{x}", list(form.values), *weights)


def _pair(d: Dialect, column: Column, form: forms.PairForm, marks: Iterable[str]) -> SlotWeights:
    """The numbers of both values as one text; NULL where one is missing or was never seen."""
    assert column.of is not None
    sides = [_side(d, column, side, names, marks) for side, names in zip(column.of, (form.us, form.vs), strict=True)]
    names = [f"{i} {j}" for i in range(len(form.us)) for j in range(len(form.vs))]
    n_classes = form.logs.shape[2]
    weights = form.logs.reshape(len(names), n_classes)
    return SlotWeights(f"({sides[0]}) || ' ' || ({sides[1]})", "{x}", names, weights, np.zeros(n_classes))


def _side(d: Dialect, column: Column, side: PairColumn, known: tuple[str, ...], marks: Iterable[str]) -> str:
    """The number of a value among those known to one side of a pair."""
    raw, all_marks = f"t.{d.name(side.source)}", {*marks, *side.missing}
    time = None if side.part is None else _time(d, column, raw, side.part, all_marks)
    if side.kind == "number":
        places = {name: f"'{i}'" for i, name in enumerate(known)}
        answers = [places.get(name, "NULL") for name in stretch_names(side.cuts)]
        x = d.without(time or _number(d, raw, side.spelling), raw, all_marks)
        found = _search(f"({x})", [d.number(c) for c in side.cuts], answers)
        return f"CASE WHEN ({x}) IS NOT NULL THEN {found} END"
    values = {v: n for v, n in side.group_of.items() if n in known} if side.groups else {name: name for name in known}
    place = {name: i for i, name in enumerate(known)}
    each = " ".join(f"WHEN {d.text(value)} THEN '{place[name]}'" for value, name in values.items())
    value = time or _value(d, raw, values)
    return d.without(f"CASE {value} {each} END" if values else "NULL", raw, all_marks)


def _steps(d: Dialect, x: str, form: forms.StepsForm | forms.CellsForm) -> SlotWeights:
    """The point that a value is, the step that it falls into, or, where the middle has many steps, its cell there."""
    starts, logs = form.general if isinstance(form, forms.CellsForm) else (form.starts, form.logs)
    kept = forms.changes(logs, _EQUAL)
    starts, logs = starts[kept[1:] - 1], logs[kept]
    points, own = form.points if isinstance(form, forms.CellsForm) and form.cells.points else (starts[:0], logs[:0])
    at, cell, codes, in_middle = 0, [], np.arange(0), logs[:0]
    if isinstance(form, forms.CellsForm) and len(starts) >= _MANY and abs(form.cells.exponent) < _PLAIN:
        first, end = form.starts_of(np.array([-MIDDLE, MIDDLE]))  # of the middle, whose cells have one width
        left, right = np.searchsorted(starts, first), np.searchsorted(starts, end)
        codes = np.arange(-MIDDLE, MIDDLE)
        at, cell, in_middle = int(left) + 1, [_cell(d, form)], forms.relative(form.ask(codes))
        logs = np.concatenate([logs[: left + 1], logs[right:]])
        starts = np.concatenate([starts[:left], [first, end], starts[right:]])
    answers = [f"'i{i}'" for i in range(len(logs))]
    answers[at:at] = cell
    names = [*(f"p{i}" for i in range(len(points))), *(f"i{i}" for i in range(len(logs))), *map(str, codes.tolist())]
    slot = _search("{x}", [d.number(t) for t in starts], answers)
    if len(points):
        each = " ".join(f"WHEN {d.number(p)} THEN 'p{i}'" for i, p in enumerate(points))
        slot = f"CASE {{x}} {each} ELSE {slot} END"
    slot = f"CASE WHEN {{x}} IS NOT NULL THEN {slot} END"
    return SlotWeights(x, slot, names, written(np.concatenate([own, logs, in_middle])), np.zeros(logs.shape[1]))


def _cell(d: Dialect, form: forms.CellsForm) -> str:
    """The number of a value's cell in the middle."""
    width = math.ldexp(1.0, form.cells.exponent)
    distance = f"{{x}} - {d.number(form.cells.centre)}"
    near = f"{distance} < {d.number(0.0)} AND {distance} > {d.number(-width)}"  # its quotient may be lost
    cell = d.to_text(f"CAST(FLOOR(({distance}) / {d.number(width)}) AS BIGINT)")
    return f"CASE WHEN {near} THEN '-1' ELSE {cell} END"


def _search(x: str, bounds: list[str], names: list[str]) -> str:
    """What holds in the interval that x falls into, found by halving."""
    if not bounds:
        return names[0]
    half = len(bounds) // 2
    below, above = _search(x, bounds[:half], names[: half + 1]), _search(x, bounds[half + 1 :], names[half + 1 :])
    return f"CASE WHEN {x} < {bounds[half]} THEN {below} ELSE {above} END"


def _bell(d: Dialect, x: str, form: forms.BellForm) -> Formula:
    """log N or log t, with every constant worked out here."""
    out = []
    for c in range(form.location.shape[1]):
        mean, scale = float(form.location[0, c]), float(form.scale[0, c])
        far = [d.number(-forms.FAR), d.number(forms.FAR)]
        z = f"(({{x}} - {d.number(mean)}) / {d.number(scale)})"
        z = f"CASE WHEN {z} < {far[0]} THEN {far[0]} WHEN {z} > {far[1]} THEN {far[1]} ELSE {z} END"
        if form.freedom is None:
            curve = f"{d.number(0.5)} * ({z}) * ({z})"
        else:
            v = float(form.freedom[0, c])
            root = d.number(float(np.sqrt(v)))
            curve = f"{d.number((v + 1) / 2)} * LN({d.number(1.0)} + ({z}) / {root} * (({z}) / {root}))"
        out.append(f"{d.number(float(form.height[0, c]))} - {curve}")
    return Formula(x, out)


def _rate(d: Dialect, x: str, form: forms.RateForm) -> Formula:
    """x·log λ + offset; what x alone decides is left out."""
    out = []
    for rate, start in zip(form.rate.tolist(), form.start.tolist(), strict=True):
        if rate > 0:
            out.append(f"{{x}} * {d.number(math.log(rate))} + {d.number(start)}")
        else:
            out.append(f"CASE WHEN {{x}} = 0 THEN {d.number(start)} ELSE {{never}} END")
    return Formula(x, out, " OR {x} < 0")


def _words(
    column: Column, form: forms.WordsForm | forms.PresenceForm, words: TableName | Tokeniser, read: str
) -> TokenWeights:
    if isinstance(form, forms.WordsForm):
        none = np.zeros_like(form.unseen)
        return TokenWeights(words, read, list(form.words), form.logs, form.unseen, none, form.once)
    if not (np.isfinite(form.present).all() and np.isfinite(form.absent).all()):
        raise _cannot(column, "a text with impossible words", "smooth the counts: smoothing=tb.Laplace(1.0).")
    base = form.absent.sum(axis=0)
    weights = form.present - form.absent
    return TokenWeights(words, read, list(form.words), weights, np.zeros_like(base), base, once=True)


def written(weights: Floats) -> Floats:
    """The same weights with IMPOSSIBLE for −inf."""
    return np.where(np.isneginf(weights), IMPOSSIBLE, weights)
