"""A reader for each column: what the value of one row says, in plain Python.

Texts, codes, cells and words are looked up in what the belief has said before; numbers go through its formula. What a
reader does not know (odd types, words where numbers belong, absent columns) raises `NotPlain` and goes the long way,
which has the messages.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from operator import add
from typing import Any, cast

import numpy as np

from ..base import canon
from ..base.arrays import Floats
from ..data.blocks import Codes, Numbers
from ..data.dates import plain_part
from ..data.encode import block_of_one
from ..data.kinds import GAP
from ..data.pairs import PairColumn, pair_slot, stretch_names
from ..data.schema import Column, column_of
from ..data.values import NotPlain, plain_number, plain_text
from ..families import Belief
from ..families.forms import FAR, HALF_LOG_2PI, BellForm, BlendForm, CellsForm, Form, StepsForm, WordsForm
from ..families.plain import of_form
from ..families.settings import Settings
from .posterior import factor_of_one

Row = Mapping[str, Any]
Said = Sequence[float]  # a number for each class
Reader = Callable[[Row], Said | None]  # None: no evidence
Heard = Callable[[float], Said]

_LONG = 1 << 12  # characters of a text that is better cut by the kernels
_MOST_KEPT = 1 << 14  # answers remembered per column, fewer if there are more than sixteen classes
_LONG_KEY = 200
_ONE = np.zeros(1, dtype=np.int64)


class _Kept(dict[Any, Any]):
    """What `ask` said of each key, remembered for the last few thousand."""

    def __init__(self, ask: Callable[[Any], Any]) -> None:
        super().__init__()
        self._ask = ask

    def __missing__(self, key: Any) -> Any:
        said = self._ask(key)
        length = sum(map(len, key)) if type(key) is tuple else len(key) if type(key) is str else 0
        if length <= _LONG_KEY:
            if len(self) * max(len(said or ()), 16) >= 16 * _MOST_KEPT:
                self.clear()
            self[key] = said
        return said


def _listed(parts: Floats, by: float = 1.0) -> tuple[float, ...]:
    """The parts of one row, weighted."""
    return tuple((parts if by == 1.0 else by * parts).tolist())


def reader(column: Column, belief: Belief | None, settings: Settings, missing: Sequence[str]) -> Reader:
    """What a column says of a row, weighted. `belief` is None where nobody asks: the value is only read."""
    marks = frozenset((*missing, *column.missing))
    by = settings.weights.get(column.name, 1.0)
    belief = None if by == 0 else belief
    read: Reader | None = None
    if column.spelling is not None:
        read = _by_spelling(column, belief, by, missing)
    elif column.kind == "pair":
        assert column.of is not None
        read = _pair(column.of, belief, by, missing)
    elif column.kind == "gap":
        read = _gap(column, belief, by, marks)
    elif column.kind == "category":
        read = _category(column, belief, by, marks)
    elif column.kind == "number":
        read = _of_number(column, belief, by, marks if column.part else marks - {""})
    elif belief is not None:
        form = belief.form()
        if isinstance(form, BellForm) and form.freedom is None:
            read = _vector(column, form, by)
        elif isinstance(form, WordsForm) and (column.text is None or column.text.hash_bits is None):
            read = _words(column, belief, form, settings, marks - {""}, missing)
    return read or _by_block(column, belief, settings, missing)


def _by_spelling(column: Column, belief: Belief | None, by: float, missing: Sequence[str]) -> Reader:
    """A category or number that is spelled in some way, each text read once by a block of one row."""

    def ask(value: Any) -> Said | None:
        block = block_of_one(column, value, missing)
        return None if belief is None or not block.present()[0] else _listed(belief.parts(block)[0], by)

    kept = _Kept(ask)

    def read(row: Row) -> Said | None:
        value = row[column.reads]
        return None if value is None else cast(Said, kept[value] if type(value) is str else ask(value))

    return read


def _by_block(column: Column, belief: Belief | None, settings: Settings, missing: Sequence[str]) -> Reader:
    """Any column, by a block of one row."""

    def read(row: Row) -> Said | None:
        value = row[column.reads]
        if value is None:
            return None
        block = block_of_one(column, value, missing)
        if belief is None:
            return None
        return _listed(belief.parts(block)[0], factor_of_one(settings, column.name, block))

    return read


def _coded(slot: str | None, belief: Belief | None, by: float) -> Said | None:
    """What a belief says of one slot, weighted; nothing of a missing value."""
    return None if slot is None or belief is None else _listed(belief.parts(Codes([slot], _ONE))[0], by)


def _category(column: Column, belief: Belief | None, by: float, marks: frozenset[str]) -> Reader:
    name, part = column.reads, column.part
    kept = _Kept(lambda value: _coded(plain_text(value, marks), belief, by))

    def read(row: Row) -> Said | None:
        value = row[name]
        if part is not None:
            value = plain_part(value, part, marks)
        elif type(value) is not str:
            value = plain_text(value, marks)
        return None if value is None else cast(Said, kept[value])

    return read


def _gap(column: Column, belief: Belief | None, by: float, marks: frozenset[str]) -> Reader:
    """Whether another column's value is missing; a row without that column says nothing."""
    name, plain = column.reads, column.about.plain
    said = {slot: _coded(slot, belief, by) for slot in GAP}
    assert plain is not None
    return lambda row: said[plain(column, row[name], marks)] if name in row else None


def _pair(of: tuple[PairColumn, ...], belief: Belief | None, by: float, missing: Sequence[str]) -> Reader:
    """Both values, numbers by their stretch."""
    one, other = (_side(side, missing) for side in of)
    kept = _Kept(lambda values: _coded(pair_slot(*values), belief, by))

    def read(row: Row) -> Said | None:
        u, v = one(row), other(row)
        return None if u is None or v is None else cast(Said, kept[u, v])

    return read


def _side(side: PairColumn, missing: Sequence[str]) -> Callable[[Row], str | None]:
    marks, name, names = frozenset((*missing, *side.missing)), side.source, stretch_names(side.cuts)
    numeric = marks - {""}
    if side.kind == "category" and side.part is None and side.spelling is None:
        if side.groups:
            return lambda row: side.group_of.get(plain_text(row[name], marks))  # type: ignore[arg-type]
        return lambda row: plain_text(row[name], marks)
    column, by_block = column_of(side), side.kind != "number"

    def read(row: Row) -> str | None:
        value = row[name]
        if side.part is not None and side.spelling is None:
            value = plain_part(value, side.part, marks)
            if by_block:
                return side.group_of.get(str(value)) if side.groups else cast(str | None, value)
        elif (by_block or side.spelling is not None) and value is not None:
            block = block_of_one(column, value, missing)
            if isinstance(block, Codes):
                return side.group_of.get(str(block.text(0))) if side.groups else block.text(0)
            value = float(block.values[0])
        x = plain_number(value, frozenset() if side.part else numeric)
        return None if x is None else names[bisect_right(side.cuts, x)]

    return read


def _of_number(column: Column, belief: Belief | None, by: float, marks: frozenset[str]) -> Reader:
    name, part = column.reads, column.part
    heard = None if belief is None else _heard(belief.form(), by, lambda: belief)

    def read(row: Row) -> Said | None:
        x: Any = plain_number(row[name], marks) if part is None else plain_part(row[name], part, marks)
        return None if x is None or heard is None else heard(x)

    return read


def _heard(form: Form, by: float, belief: Callable[[], Belief]) -> Heard:
    """What a form says of a number, times its weight; the belief is asked where the form has no short way."""

    def long(x: float) -> Said:
        return _listed(belief().parts(Numbers(np.array([x])))[0], by)

    if isinstance(form, BlendForm) and form.parts:
        return _blend(form, by)
    if isinstance(form, CellsForm):
        cells = form.cells
        kept = _Kept(lambda code: _listed(form.ask(np.array([code], dtype=np.int64))[0], by))
        return lambda x: kept[cells.code(x)]
    if isinstance(form, StepsForm):
        starts, said = form.starts.tolist(), [_listed(logs, by) for logs in form.logs]
        return lambda x: said[bisect_right(starts, x)]
    if isinstance(form, BellForm) and len(form.location) == 1:
        return _bell(form, by, long)
    return long


def _blend(form: BlendForm, by: float) -> Heard:
    """Σ share · part against the best class, none below −most; what a cell says is bent once and remembered."""
    least, heads = -form.most, list(form.parts)
    tails: list[tuple[float, CellsForm]] = []  # parts of the same cells, at the end
    while heads and isinstance(last := heads[-1][1], CellsForm) and (not tails or last.cells == tails[0][1].cells):
        tails.insert(0, (heads.pop()[0], last))
    each = [(_heard(part, 1.0, partial(of_form, part)), by * share) for share, part in heads]

    def ask(code: int) -> list[list[float]]:
        at = np.array([code], dtype=np.int64)
        return [_bent(_listed(part.ask(at)[0]), by * share, least) for share, part in tails]

    code_of, kept = tails[0][1].cells.code if tails else None, _Kept(ask)

    def read(x: float) -> Said:
        said = [_bent(heard(x), share, least) for heard, share in each]
        if code_of is not None:
            said += kept[code_of(x)]
        out = said[0]
        for more in said[1:]:  # in the order of the long way
            out = list(map(add, out, more))
        return out

    return read


def _bent(said: Said, share: float, least: float) -> list[float]:
    best = max(said)
    if best == -math.inf:
        return [0.0] * len(said)
    return [share * (far if (far := s - best) > least else least) for s in said]


def _bell(form: BellForm, by: float, long: Heard) -> Heard:
    """The density of a Gaussian or Student's t in Python; far values by the long way, which does not overflow."""
    location, scale, height = form.location[0].tolist(), form.scale[0].tolist(), form.height[0].tolist()
    if form.freedom is None:
        lines = [(m, s, by * top, 0.5 * by) for m, s, top in zip(location, scale, height, strict=True)]

        def normal(x: float) -> Said:
            out = []
            for m, s, constant, half in lines:
                z = (x - m) / s
                if not -FAR <= z <= FAR:
                    return long(x)
                out.append(constant - half * z * z)
            return out

        return normal
    each = zip(location, scale, form.freedom[0].tolist(), height, strict=True)
    curves = [(m, s, v, by * top, by * (v + 1) / 2) for m, s, v, top in each]

    def student(x: float) -> Said:
        out = []
        for m, s, v, constant, power in curves:
            z = (x - m) / s
            if not -FAR <= z <= FAR:
                return long(x)
            out.append(constant - power * math.log1p(z * z / v))
        return out

    return student


def _vector(column: Column, form: BellForm, by: float) -> Reader:
    name, width, places = column.reads, column.width, form.positions
    everywhere = len(form.location) == width
    mean, scale = np.ascontiguousarray(form.location.T), np.ascontiguousarray(form.scale.T)
    constant = by * (-np.sum(np.log(scale), axis=1) - len(form.location) * HALF_LOG_2PI)
    half = 0.5 * by

    def read(row: Row) -> Said | None:
        x = row[name]
        if type(x) is not np.ndarray or x.shape != (width,) or x.dtype.kind not in "fiu":
            raise NotPlain
        with np.errstate(over="ignore", invalid="ignore"):
            z = ((x if everywhere else _finite(x)[places]) - mean) / scale
            squares = np.einsum("yj,yj->y", z, z)
        said: list[float] = (constant - half * squares).tolist()
        if not min(said) > -FAR:  # far away, missing or infinite
            raise NotPlain
        return said

    return read


def _finite(x: Floats) -> Floats:
    """The same numbers; an infinity is refused even where nobody looks."""
    if np.isinf(x).any():
        raise NotPlain
    return x


def _words(
    column: Column, belief: Belief, form: WordsForm, settings: Settings, marks: frozenset[str], missing: Sequence[str]
) -> Reader:
    """The sum over the words of a short text, or of the list of words that a bag is."""
    cut, name, once, logs, at = column.text, column.reads, form.once, form.logs, form.at
    weight, exponent = settings.weights.get(column.name, 1.0), settings.lengths.get(column.name, 0.0)
    unseen = _listed(form.unseen)
    kept = _Kept(lambda word: unseen if (i := at.get(str(canon.text(word)))) is None else _listed(logs[i]))
    nothing = _listed(np.zeros(len(unseen)))
    long = _by_block(column, belief, settings, missing)

    def read(row: Row) -> Said | None:
        value = row[name]
        if cut is None:
            if type(value) is not list or len(value) > _LONG or {*map(type, value)} - {str}:
                return long(row)
            words = value
        else:
            if type(value) is not str or len(value) > _LONG:
                return long(row)
            if value in marks:
                return None
            words = cut.tokens(value)
        if not words:
            return nothing
        said = map(sum, zip(*map(kept.__getitem__, dict.fromkeys(words) if once else words), strict=True))
        by = weight if exponent == 0.0 else weight * len(words) ** exponent
        return list(said) if by == 1.0 else [by * s for s in said]

    return read
