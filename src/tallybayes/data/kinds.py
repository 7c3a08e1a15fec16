"""The kinds of columns, one record each: how a column is read, what it adds, which fields of a `Column` it has.

    register_kind(Kind("interval", encode=…, like="number"))

makes a kind of its own. A kind that is *like* another makes the same blocks, so that whatever reads the other's counts
reads its own: families, pictures, smoothing, pairs, the choice of settings. Its default family, if it has another, is
registered with `families.register_default`, its picture with `plots.register_picture`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ..base.canon import printable
from ..base.errors import SchemaError, unknown
from ..base.lazy import scipy
from .blocks import Bag, Block, Codes, Numbers
from .dates import plain_part
from .matrices import bag, vector
from .spelling import folded
from .text.tokens import text_array
from .texts import Texts
from .values import NotPlain, category, check_flat, number, plain_number, plain_text

if TYPE_CHECKING:
    from .encode import BatchContext
    from .looking.look import Looked
    from .schema import Column

Encode = Callable[
    ["Column", Any, "BatchContext"], Block
]  # a raw column, None where the data do not have it → its block


@dataclass(frozen=True)
class Kind:
    """What is known of a kind of columns.

    encode:     a raw column → its block; None: columns of this kind are not counted
    like:       the kind whose blocks it makes, if not its own; sheets and fields are then those of the other
    sheets:     the names of the sheets that its blocks add
    each:       those of them in which every slot may hold all rows of a class; else slots share out the rows
    fields:     the fields of a `Column` that only some kinds have: values, cells, text, levels, width, of
    of:         how many other columns it is made of; ANY: two or more
    plain:      one value in plain Python, as text or number, None for missing; it may refuse with `NotPlain`
    lists:      whether one value is itself a list, an array or a dict
    read_as:    what files, databases and other programs may read it as; empty: only `encode` can
    write:      a number or slot of its block → a value as `encode` reads it, for what-if questions and samples
    parts:      the columns that stand for one of this kind: {part: kind}
    recognise:  for `infer`: a column's name and what was read of it → the `Column` to propose, or None
    """

    name: str
    encode: Encode | None = None
    like: str = ""
    sheets: tuple[str, ...] = ()
    each: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()
    of: int = 0
    plain: Callable[[Column, Any, frozenset[str]], Any] | None = None
    lists: bool = False
    read_as: str = ""
    write: Callable[[Any], Any] | None = None
    parts: Mapping[str, str] = field(default_factory=dict)
    recognise: Callable[[str, Looked], Column | None] | None = None

    @property
    def words(self) -> bool:
        """Whether its slots are words, of which a row has many."""
        return "words" in self.sheets

    @property
    def moments(self) -> bool:
        """Whether it is made of numbers: n, Σx and Σx² are counted."""
        return "moments" in self.sheets


class Reason(str):
    """Why a column has its kind, as a screen shows it; a file gets what is `kept`, which quotes no value of any row.

    >>> why = Reason("numbers from 2 to 7.25", "numbers") + ", missing in 3% of rows"
    >>> print(why, "|", kept(why))
    numbers from 2 to 7.25, missing in 3% of rows | numbers, missing in 3% of rows
    """

    kept: str

    def __new__(cls, told: str, kept: str) -> Reason:
        """A text that knows another."""
        out = super().__new__(cls, told)
        out.kept = kept
        return out

    def __add__(self, more: str) -> Reason:
        return Reason(str(self) + str(more), self.kept + kept(more))

    def __radd__(self, before: str) -> Reason:
        return Reason(before + str(self), before + self.kept)

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (self.kept,)


def kept(reason: str) -> str:
    """What a file says of why a column has its kind."""
    return reason.kept if isinstance(reason, Reason) else reason


ANY = -1  # two columns or more
KINDS: dict[str, Kind] = {}
EACH: set[str] = set()  # sheets, of whatever kind, in which every slot may hold all rows of a class


def register_kind(kind: Kind) -> None:
    """Let `Column(name, kind)` mean a column of this kind."""
    if kind.like:
        if kind.like not in KINDS:
            raise SchemaError(
                f"the kind {kind.name!r} is like {kind.like!r}, which is no kind",
                hint="the kinds are " + ", ".join(KINDS) + ".",
            )
        other = KINDS[kind.like]
        kind = replace(
            kind,
            like=other.like,
            sheets=kind.sheets or other.sheets,
            each=kind.each or other.each,
            fields=kind.fields or other.fields,
        )
    KINDS[kind.name] = kind if kind.like else replace(kind, like=kind.name)
    EACH.update(kind.each)


# A file may name any number, and room is made for it before a value is seen
MOST_POSITIONS = 1 << 24
_MOST_LEVELS = 1_000


def _whole(number: Any, least: int, most: int) -> bool:
    return type(number) is not bool and isinstance(number, Integral) and least <= int(number) <= most


def check_fields(column: Column) -> None:
    """Refuse a column that has what its kind has not, or has not what its kind needs."""
    name, kind, may = column.name, column.kind, KINDS[column.kind].fields
    if column.values is not None and "values" not in may:
        raise SchemaError(
            f"column {name!r} is a {kind} and declares values",
            hint="only a category declares the values it can take: kind='category'.",
        )
    if column.levels is not None and ("levels" not in may or not _whole(column.levels, 1, _MOST_LEVELS)):
        raise SchemaError(
            f"column {name!r} ({kind}) has levels={printable(column.levels, 40)}",
            hint=f"levels belong to a bag or a text and are a whole number from 1 to {_MOST_LEVELS:,}.",
        )
    if column.width is not None and not _whole(column.width, 0, MOST_POSITIONS):
        raise SchemaError(
            f"column {name!r} has width={printable(column.width, 40)}",
            hint=f"a width is a whole number of positions, at most {MOST_POSITIONS:,}: each takes room in every class. "
            "Take a sparse matrix of fewer columns, or hash words into fewer slots.",
        )
    if column.spelling is not None and column.like not in ("category", "number", "date", "ignore"):
        raise SchemaError(
            f"column {name!r} is a {kind} and has a spelling",
            hint="categories, numbers and dates are spelled; take one of these kinds, or leave spelling out.",
        )
    if column.text is not None and "text" not in may:
        raise SchemaError(f"column {name!r} is a {kind} and has a tokeniser", hint="take kind='text' for it.")
    of, wanted = len(column.of or ()), KINDS[kind].of
    if of < 2 if wanted == ANY else of != wanted:
        raise SchemaError(
            f"column {name!r} is a {kind} of {of} columns",
            hint="a pair names two: Column('a × b', 'pair', of=(tb.PairColumn('a'), tb.PairColumn('b'))); a gap names "
            "one, whose missing values it counts; cells together name two or more; other kinds name none.",
        )


def check_part(name: str, kind: str, part: Any) -> None:
    """Refuse what is no part of a date, or cannot be read as the kind that is asked for: a weekday is no number."""
    parts = KINDS["date"].parts
    if part is None:
        return
    if not isinstance(part, str) or part not in parts:
        raise unknown(SchemaError, f"column {name!r} asks for the part {part!r} of a date", part, parts)
    if KINDS[kind].lists or (KINDS[kind].like == "number" and parts[part] != "number"):
        raise SchemaError(
            f"column {name!r} is a {kind} and asks for the {part} of a date", hint=f"take kind={parts[part]!r} for it."
        )


def _category(column: Column, raw: Any, rows: BatchContext) -> Codes:
    if raw is None:
        return Codes([], np.full(rows.count, -1, dtype=np.int64))
    check_flat(raw, rows.where(column))
    codes = category(raw, rows.missing(column), written=rows.written)
    fold = column.spelling is not None and column.spelling.fold and column.part is None
    return folded(codes, rows.missing(column)) if fold else codes


def _number(column: Column, raw: Any, rows: BatchContext) -> Numbers:
    values = np.full(rows.count, np.nan) if raw is None else number(raw, rows.where(column), rows.missing(column))
    return Numbers(values, column.cells)


def _text(column: Column, raw: Any, rows: BatchContext) -> Texts:
    if raw is not None:
        check_flat(raw, rows.where(column))
    texts = pa.nulls(rows.count, pa.large_string()) if raw is None else text_array(raw, rows.missing(column))
    assert column.text is not None
    return Texts(texts, column.text, column.levels)


def _vector(column: Column, raw: Any, rows: BatchContext) -> Block:
    return vector(raw, column, rows.count, rows.where(column))


def _bag(column: Column, raw: Any, rows: BatchContext) -> Bag:
    if raw is None:
        absent = np.zeros(rows.count, dtype=bool)
        return Bag([], scipy.sparse.csr_array((rows.count, 0)), absent, column.levels)
    return bag(raw, column, rows.where(column))


def _pair(column: Column, raw: Any, rows: BatchContext) -> Codes:
    assert column.of is not None
    return rows.paired(column.of)


GAP = ("no", "yes")  # what a gap says of a value: whether it is missing


def _gap(column: Column, raw: Any, rows: BatchContext) -> Codes:
    """Whether the value of another column is missing; nothing where the data do not have that column."""
    if raw is None:
        return Codes([], np.full(rows.count, -1, dtype=np.int64))
    assert column.of is not None
    gone = ~rows.side(column.of[0]).present()
    there = np.flatnonzero(np.array([not gone.all(), gone.any()]))  # slots that no row has are not counted
    return Codes([GAP[i] for i in there.tolist()], np.searchsorted(there, gone.astype(np.int64)))


def _plain_gap(column: Column, value: Any, marks: frozenset[str]) -> str:
    assert column.of is not None
    side = column.of[0]
    plain, all_marks = KINDS[side.kind].plain, marks | frozenset(side.missing)
    if side.spelling is not None:
        raise NotPlain
    if side.part is not None:
        return GAP[plain_part(value, side.part, all_marks) is None]
    if plain is None:
        raise NotPlain
    return GAP[plain(column, value, all_marks) is None]


def _plain_words(column: Column, value: Any, marks: frozenset[str]) -> str | None:
    """The text itself, which the tokeniser cuts; hashed tokens and levels of them are counted by a block."""
    cut = column.text
    if cut is None or column.levels is not None or cut.hash_bits is not None or type(value) not in (str, type(None)):
        raise NotPlain
    return None if value is None or value in marks - {""} else value


_WORD_SHEETS, _EVERY_WORD = ("words", "rows", "levels"), ("words", "levels")
for _kind in (
    Kind(
        "category", _category, sheets=("values",), fields=("values",), read_as="category",
        plain=lambda column, value, marks: plain_text(value, marks),
    ),
    Kind(
        "number", _number, sheets=("moments", "cells"), each=("moments",), fields=("cells",), read_as="number",
        plain=lambda column, value, marks: plain_number(value, marks - {""}),
    ),
    Kind(
        "text", _text, sheets=_WORD_SHEETS, each=_EVERY_WORD, fields=("text", "levels"), read_as="text",
        plain=_plain_words,
    ),
    Kind("vector", _vector, sheets=("moments",), each=("moments",), fields=("width",), lists=True, read_as="vector"),
    Kind("bag", _bag, sheets=_WORD_SHEETS, each=_EVERY_WORD, fields=("levels", "width"), lists=True, read_as="bag"),
    Kind("pair", _pair, sheets=("values",), of=2, read_as="pair"),
    Kind("gap", _gap, like="category", of=1, plain=_plain_gap, read_as="gap"),
    Kind("date", parts={"days": "number", "weekday": "category", "month": "category", "hour": "category"}),
    Kind("ignore"),
    Kind("together", of=ANY),  # no column that is asked: it says whose cells are counted two by two, beside the labels
):  # fmt: skip
    register_kind(_kind)
