"""The first look at one column, which `infer` decides by.

How texts are proposed to be cut (into words, or into characters where words tell little), the column as codes and as
sorted numbers, each worked out once, and whether it gives the label away.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from numbers import Real
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from ...base import canon
from ...base.arrays import Floats
from ...base.arrow import array, utf8
from ..blocks import Codes
from ..schema import Column
from ..spelling import Spelling, fold, folded, spelled
from ..text.tokeniser import AUTO, Tokeniser, without_spaces
from ..values import Where, category, is_text, number

SOME = 1_000  # values looked at
_RARE = 0.2  # of the rows of another label: so much rarer, it may be a slip
_FEWEST_GAPS = 3  # rows, and
_SHARE_OF_GAPS = 0.01  # of all rows: where fewer have no value, that is not counted
NAME_CHARACTERS = (1, 4)
# one to three words of letters, joined as names are: Anne-Marie, O'Neill, St. John, Smith, Jo
_NAME = re.compile(r"[^\W\d_]+([ '’.,\-]{1,2}[^\W\d_]+){0,2}\.?")
_VOWEL = re.compile(r"[aeiouyàáâãäåæèéêëìíîïòóôõöøùúûüýÿœ]|[^\x00-\u024f]")


def free_text(name: str, values: Sequence[str], words: float) -> Column:
    """A column of free text, cut into words; into pairs of characters where the script has no spaces."""
    some = some_of(values)
    unspaced = without_spaces("".join(v for v in some if not v.isascii()))
    if unspaced and unspaced > 0.2 * sum(sum(map(str.isalpha, v)) for v in some):
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
    marks: tuple[str, ...] = ("",)  # texts that mean "missing" in every column
    _known: dict[Any, Any] = field(default_factory=dict)

    def codes(self, missing: Sequence[str] = (), *, fold: bool = False) -> Codes:
        """The column as a category; the marks of every column are missing, too."""
        marks = (*self.marks, *missing)
        if fold:
            return self._once(("folded", *missing), lambda: folded(self.codes(missing), marks))
        return self._once(("codes", *missing), lambda: category(self.raw, marks))

    def numbers(self, name: str, missing: Sequence[str] = (), spelling: Spelling | None = None) -> Ordered:
        """The column as numbers."""
        where, marks = Where(name, 0), (*self.marks, *missing)

        def read() -> Ordered:
            raw = self.raw if spelling is None else spelled(self.raw, spelling, where, marks, dates=False)
            return Ordered.of(number(raw, where, marks))

        return self._once(("numbers", spelling, *missing), read)

    def long_texts(self) -> LongTexts | None:
        """What is plain to see of a column of long texts; None of any other."""
        return self._once("long texts", lambda: LongTexts.of(self.raw))

    def _once(self, key: Any, read: Callable[[], T]) -> T:
        if key not in self._known:
            self._known[key] = read()
        out: T = self._known[key]
        return out


def read_ahead(name: str, raw: Any, marks: tuple[str, ...]) -> Looked:
    """A column with what is sure to be asked of it read already: columns can be read side by side."""
    looked = Looked(raw, marks)
    if isinstance(raw, pa.Array) and raw.null_count < len(raw):
        if is_text(raw.type):
            if looked.long_texts() is None:
                looked.codes()
        elif pa.types.is_integer(raw.type) or pa.types.is_floating(raw.type):
            looked.numbers(name)
    return looked


def gaps_may_tell(missing: int, rows: int) -> bool:
    """Whether so many rows have no value, and so many have one, that this itself may be evidence."""
    return min(missing, rows - missing) >= max(_FEWEST_GAPS, _SHARE_OF_GAPS * rows)


def is_counted(value: Any) -> bool:
    """Whether this is a dict of words and how often each of them occurs."""
    return isinstance(value, Mapping) and all(
        canon.is_one(word) and (n is None or (isinstance(n, Real) and 0 <= float(n) < np.inf))
        for word, n in value.items()
    )


def are_numbers(kind: Any) -> bool:
    """Whether values of an Arrow type are numbers as they are."""
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))


def look_alike(values: Sequence[str], rows: Mapping[str, int] | None = None) -> list[str]:
    """The values of a category that differ from another in letter case and blanks alone, one such group of them.

    With `rows` of each, those are left out that many rows tell apart on purpose: hAd and had, or A and a.

    >>> look_alike(["no", "TRUE", "True", "true"])
    ['TRUE', 'True', 'true']
    >>> look_alike(["hAd", "had"], {"hAd": 90, "had": 90})
    []
    """
    groups: dict[str, list[str]] = {}
    for value in values:
        groups.setdefault(fold(value), []).append(value)
    if rows is not None:
        groups = {name: group for name, group in groups.items() if _of_one(group, [rows[v] for v in group])}
    most = max(map(len, groups.values()), default=0)
    return min(sorted(group) for group in groups.values() if len(group) == most) if most > 1 else []


def _of_one(group: Sequence[str], rows: Sequence[int]) -> bool:
    """Whether these are rather spellings of one label: one is rare, or they are written as words are: no, No, NO."""
    plain = [" ".join(v.split()) for v in group]
    usual = all(len(v) > 1 and v in (v.lower(), v.upper(), v.capitalize(), v.title()) for v in plain)
    return usual or min(rows) < _RARE * max(rows)
