"""The first look at one column, which `infer` decides by.

What its texts spell (numbers, booleans and dates, in the ways that are read and in those that are only noticed), how
texts are proposed to be cut (into words, or into characters where words tell little), the column as codes and as sorted
numbers, each worked out once, and whether it gives the label away.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base import canon
from ..base.arrays import Floats, Ints, nearest_quantiles
from ..base.arrow import array, utf8
from ..base.errors import warn
from .blocks import Codes
from .kinds import Reason
from .schema import Column
from .sources import Batch
from .text.tokeniser import AUTO, Tokeniser, without_spaces
from .values import Where, category, is_text, number

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?\Z")
_NUMBER = re.compile(r"\s*[+-]?(?=\.?\d)(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?\s*", re.ASCII)
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})", re.ASCII)
_COMMA = re.compile(r"\s*[+-]?(\d+|\d{1,3}([. ']\d{3})+)(,\d+)?\s*", re.ASCII)
_DAY_OR_MONTH_FIRST = re.compile(r"\d{1,2}([./-])\d{1,2}\1(\d{4}|\d{2})([ T]\d{1,2}:\d{2}.*)?", re.ASCII)
_HEAD = 256  # values that mostly settle what a column is not
_NOT_WHOLE = np.frombuffer(b"+.eE", dtype=np.uint8)
_EIGHTEEN = 10**18  # whole numbers of up to eighteen digits are taken for such
_BOOLEANS = ({"true", "false"}, {"True", "False"}, {"TRUE", "FALSE"})


def is_iso(text: str) -> bool:
    """Whether a text is a date or time as ISO 8601 writes it."""
    if not _ISO.match(text):
        return False
    try:
        dt.datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def is_number(text: str) -> bool:
    """Whether a text is a plain number; a leading zero makes it a code.

    >>> is_number("12.50"), is_number("01234"), is_number("3,14")
    (True, False, False)
    """
    return _NUMBER.fullmatch(text) is not None


def typed(look: Batch) -> Batch:
    """The rows of a file without types with the types that another file would give them: numbers and booleans."""
    if not look.written:
        return look
    return replace(look, columns={name: _typed(column) for name, column in look.columns.items()})


def _typed(column: Any) -> Any:
    if not (isinstance(column, pa.Array) and is_text(column.type)):
        return column
    head = _type_of([v for v in column[:_HEAD].to_pylist() if v is not None])
    if head == "text":
        return column  # whatever follows
    if head in ("whole", "number") and (quick := _plain_numbers(column)) is not None:
        return quick
    values = [v for v in column.unique().to_pylist() if v is not None]
    kind = _type_of(values)
    if not values or kind == "text":
        return column
    if kind == "bool":
        return pc.equal(pc.utf8_lower(column), "true")
    return column.cast(pa.int64()) if kind == "whole" else pa.array(_floats(column), pa.float64())


def _type_of(values: Sequence[str]) -> str:
    """What all of some texts can be read as; texts that are "text" are so with whatever others."""
    if any(set(values) <= pair for pair in _BOOLEANS):
        return "bool"
    if all(map(_WHOLE.fullmatch, values)):
        return "whole"
    return "number" if all(map(is_number, values)) else "text"


def _plain_numbers(column: Any) -> Any:
    """A column of texts as the numbers that `is_number` and `float` read there; None where these must be asked.

    Arrow's parser reads less than they do, but for numbers with a leading zero, hexadecimal ones and infinite ones.
    """
    ends, letters = utf8(column)
    if len(letters) == 0:
        return None
    first = ends[:-1]
    signed = np.isin(letters[np.minimum(first, len(letters) - 1)], (ord("+"), ord("-")))
    at = np.minimum(first + signed, len(letters) - 1)
    after = letters[np.minimum(at + 1, len(letters) - 1)]
    zero = (letters[at] == ord("0")) & (ends[1:] - at > 1) & (after != ord(".")) & (after | 32 != ord("e"))
    if zero.any():
        return None
    try:
        numbers = column.cast(pa.float64())
        if not pc.all(pc.is_finite(numbers)).as_py():
            return None
        if np.isin(letters[ends[0] : ends[-1]], _NOT_WHOLE).any():
            return numbers
        whole = column.cast(pa.int64())  # much is lost where it fails, so the spelling was looked at first
    except pa.ArrowInvalid:
        return None
    low, high = pc.min_max(whole).as_py().values()
    return whole if low is not None and low > -_EIGHTEEN and high < _EIGHTEEN else None


def _floats(column: Any) -> list[float | None]:
    return [None if v is None else float(v) for v in column.to_pylist()]


def is_other(values: Sequence[str]) -> bool:
    """Whether all values are numbers with a comma, or dates with the day or the month first."""
    return all(map(_COMMA.fullmatch, values)) or all(map(_DAY_OR_MONTH_FIRST.fullmatch, values))


def warn_of_other(name: str, values: Sequence[str]) -> None:
    """Warn of numbers and dates in a spelling that is not read, since nobody can know which was meant."""
    if all(map(_COMMA.fullmatch, values)) and any("," in v for v in values):
        example = next(v for v in values if "," in v)
        warn(
            f"column {name!r} holds numbers with a comma, such as {example.strip()!r}, and is taken as text. Hint: "
            f"tb.read(path, decimal=',') reads them from a CSV; in a frame turn them into numbers first."
        )
    elif values and all(map(_DAY_OR_MONTH_FIRST.fullmatch, values)):
        warn(
            f"column {name!r} holds dates such as {values[0]!r}, and is taken as text, since day and month could be "
            'meant either way. Hint: write them as 2024-12-31, or read them with SQL: duckdb.sql("SELECT * REPLACE '
            "(strptime(day, '%d.%m.%Y') AS day) FROM 'file.csv'\")."
        )


SOME = 1_000  # values looked at
NAME_CHARACTERS = (1, 4)
# one to three words of letters, joined as names are: Anne-Marie, O'Neill, St. John, Smith, Jo
_NAME = re.compile(r"[^\W\d_]+([ '’.,\-]{1,2}[^\W\d_]+){0,2}\.?")
_VOWEL = re.compile(r"[aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýÿœ]|[^\x00-\u024f]")


def free_text(name: str, values: Sequence[str], words: float) -> Column:
    """A column of free text, cut into words; into pairs of characters where the script has no spaces."""
    some = some_of(values)
    unspaced = without_spaces("".join(v for v in some if not v.isascii()))
    if unspaced and unspaced > 0.2 * sum(ch.isalpha() for v in some for ch in v):
        reason = "free text, much of it in a script without spaces"
        return Column(name, "text", text=Tokeniser(pattern=AUTO), reason=reason)
    return Column(name, "text", reason=f"free text, {words:.0f} words on average")


def names(name: str, different: int) -> Column:
    """A column of names, cut into short stretches of characters: a name seen once says nothing, its ending does."""
    reason = f"names or single words, {different} different: read by one to four of their characters"
    return Column(name, "text", text=Tokeniser(chars=NAME_CHARACTERS), reason=reason)


def are_names(values: Sequence[str]) -> bool:
    """Whether nearly all values look like words of a language: letters with a vowel, not codes in capitals.

    >>> are_names(["Anna", "Jean-Luc", "O'Neill", "Борис"]), are_names(["XKA", "QEV"]), are_names(["u1", "u2"])
    (True, False, False)
    """
    some = some_of(values)
    like = [v for v in some if 2 <= len(v) <= 40 and _NAME.fullmatch(v) and _VOWEL.search(v.lower())]
    return len(like) >= 0.95 * len(some) and sum(map(str.isupper, like)) < 0.05 * len(like)


def some_of(values: Sequence[str]) -> Sequence[str]:
    """About so many of the values, the same ones in whatever order they come."""
    step = len(values) // SOME
    return values if step <= 1 else sorted(values)[::step]


_LEAK_ROWS = 50  # below this nothing is called a leak: chance alone separates the classes
_LEAK = 0.995  # a column that names the class this often, each row left out, is not evidence but the answer
_LEAK_BY_ABSENCE = 0.95
_STRETCHES = 40  # of a number column, at most
T = TypeVar("T")


@dataclass(frozen=True)
class Ordered:
    """The numbers of a column in their order, sorted once for all who ask."""

    values: Floats  # without the missing ones
    given: Floats  # row by row, NaN for missing

    @classmethod
    def of(cls, values: Floats) -> Ordered:
        """The numbers of so many rows, NaN for missing."""
        in_order = np.sort(values)  # NaN come last
        return cls(in_order[: len(values) - int(np.count_nonzero(np.isnan(in_order)))], values)

    @property
    def rows(self) -> int:
        """How many rows, those without a value included."""
        return len(self.given)

    @property
    def absent(self) -> int:
        """How many rows have no value."""
        return len(self.given) - len(self.values)

    def distinct(self) -> Floats:
        """The different values."""
        return self.values[np.concatenate(([True], self.values[1:] != self.values[:-1]))[: len(self.values)]]


_LONG = 16  # bytes of a text, on average: comparing such texts whole costs more than a look at a few places
_FEW = 250  # long texts whose words are counted
_MIX = np.array([0x9E3779B97F4A7C15, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9], dtype=np.uint64)


@dataclass(frozen=True)
class LongTexts:
    """What is plain to see of a column of long texts without comparing them whole, whatever the order of the rows."""

    rows: int  # that have a text
    alone: int  # at least so many of them have a text of their own: no other has its length, beginning, middle and end
    some: Sequence[str]  # of those, chosen by these
    words: float  # of a text on average: words for each byte of a few, times the bytes of all

    @classmethod
    def of(cls, raw: Any) -> LongTexts | None:
        """The same of a column; None where its texts are short, or few."""
        if not (isinstance(raw, pa.Array) and is_text(raw.type)) or len(raw) < 2 * SOME:
            return None
        ends, letters = utf8(raw)
        start, length = ends[:-1], np.diff(ends)
        rows = np.flatnonzero(length > 0)  # a null has no length either
        total = int(length.sum())
        if len(rows) == 0 or total < _LONG * len(rows):
            return None
        far = np.flatnonzero(length >= 8)
        start, length = start[far], length[far]
        key = length.astype(np.uint64)
        for place, mix in zip((start, start + (length - 8) // 2, start + length - 8), _MIX, strict=True):
            bytes_there = letters[place[:, None] + np.arange(8)]
            key = (key ^ (key >> np.uint64(29)) ^ bytes_there.view("<u8")[:, 0]) * mix
        _, first, count = np.unique(key, return_index=True, return_counts=True)
        own = first[count == 1]  # in the order of their keys
        alone = len(own)
        own = own[:: max(len(own) // SOME, 1)]
        some = raw.take(array(far[own])).to_pylist()
        few = slice(None, None, max(len(own) // _FEW, 1))
        words = sum(len(text.split()) for text in some[few]) / max(int(length[own[few]].sum()), 1)
        return cls(len(rows), alone, some, words * total / len(rows))


@dataclass(frozen=True, eq=False)
class Looked:
    """A raw column, and what was read of it before."""

    raw: Any
    _known: dict[Any, Any] = field(default_factory=dict)

    def codes(self, missing: Sequence[str] = ()) -> Codes:
        """The column as a category."""
        return self._once(("codes", *missing), lambda: category(self.raw, missing))

    def numbers(self, name: str, missing: Sequence[str] = ()) -> Ordered:
        """The column as numbers."""
        where = Where(name, 0)
        return self._once(("numbers", *missing), lambda: Ordered.of(number(self.raw, where, missing)))

    def long_texts(self) -> LongTexts | None:
        """What is plain to see of a column of long texts; None of any other."""
        return self._once("long texts", lambda: LongTexts.of(self.raw))

    def _once(self, key: Any, read: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = read()
        out: T = self._known[key]
        return out


def read_ahead(name: str, raw: Any) -> Looked:
    """A column with what is sure to be asked of it read already: columns can be read side by side."""
    looked = Looked(raw)
    if isinstance(raw, pa.Array) and raw.null_count < len(raw):
        if is_text(raw.type):
            if looked.long_texts() is None:
                looked.codes(("",))
        elif pa.types.is_integer(raw.type) or pa.types.is_floating(raw.type):
            looked.numbers(name, ("",))
    return looked


def gives_away(looked: Looked, proposed: Sequence[Column], labels: Codes) -> str | None:
    """Why a column is the answer in disguise, or None."""
    if (
        proposed[0].about.read_as not in ("category", "number")
        or proposed[0].part
        or isinstance(looked.raw, np.ndarray)
    ):
        return None
    codes, y = _coarse(looked, proposed[0]), labels.codes
    if y.min(initial=0) < 0:
        codes, y = codes[y >= 0], y[y >= 0]
    n_classes = len(labels.slots)
    if len(y) < _LEAK_ROWS:
        return None
    places = (int(codes.max()) + 2) * n_classes
    table = np.bincount((codes + np.int64(1)) * n_classes + y, minlength=places).reshape(-1, n_classes)
    absent, there = table[0], table[1:].sum(axis=0)
    if np.count_nonzero(absent + there) < 2:
        return None
    base = float((absent + there).max() / len(y))
    by_absence = _left_out_accuracy(np.stack([absent, there]))
    if absent.any() and by_absence >= _LEAK_BY_ABSENCE and base < _LEAK_BY_ABSENCE - 0.05:
        return f"it gives the label away: whether it is missing names the class of {by_absence:.1%} of the rows"
    accuracy = _left_out_accuracy(table)
    if accuracy >= _LEAK and base < _LEAK - 0.05:
        return f"it gives the label away: it alone names the class of {accuracy:.1%} of the rows"
    if absent.sum() / len(y) > 0.5 and there.sum() >= 30 and there.max() >= 0.99 * there.sum() and base < 0.9:
        name = labels.slots[int(np.argmax(there))]
        why = "it gives the label away: where it has a value, the class is "
        return Reason(f"{why}{name!r}", f"{why}nearly always the same")
    return None


def _coarse(looked: Looked, column: Column) -> Ints:
    """A code per row, −1 for missing: the value of a category, a stretch of a number."""
    missing = ("", *column.missing)
    if column.kind == "category":
        return looked.codes(missing).codes
    x = looked.numbers(column.name, missing)
    edges = x.distinct()
    if len(edges) > _STRETCHES:
        edges = np.unique(nearest_quantiles(x.values, np.linspace(0, 1, _STRETCHES + 1)[1:-1]))
    codes = np.searchsorted(edges, x.given)
    codes[np.isnan(x.given)] = -1
    return codes


def _left_out_accuracy(table: Ints) -> float:
    """How often the other rows with the same value have, for the most part, the row's class; values × classes."""
    top = np.sort(table, axis=1)
    best, second = top[:, -1:], top[:, -2:-1]
    others = np.where(table == best, np.where(np.sum(table == best, axis=1, keepdims=True) > 1, best, second), best)
    right = (table - 1 > 0) & (table - 1 >= others)
    return float(np.sum(np.where(right, table, 0)) / np.sum(table))


def is_counted(value: Any) -> bool:
    """Whether this is a dict of words and how often each of them occurs."""
    return isinstance(value, Mapping) and all(
        canon.is_one(word) and (n is None or (isinstance(n, Real) and 0 <= float(n) < np.inf))
        for word, n in value.items()
    )


def are_numbers(kind: Any) -> bool:
    """Whether values of an Arrow type are numbers as they are."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
