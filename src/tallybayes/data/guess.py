"""What the texts of a column spell: booleans, numbers and dates, as programs write them and as people do.

`typed` gives the columns of a file without types the types that another file would give them. `understood` decides by a
column as a whole how its cells are read, which is then written into the schema: a plain number, an amount, a date in
some order, and how many cells are odd.
"""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base.arrow import utf8
from ..base.errors import DataError, SettingsError, excerpt, unknown, warn
from .clock import hours_of, says_its_unit
from .kinds import KINDS
from .marks import is_mark, marks_among
from .sources import Batch
from .spelling import SIGNS, Spelling, are_few
from .thousands import doubt_of, in_thousands
from .values import is_text

_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?\Z")
_NUMBER = re.compile(r"\s*[+-]?(?=\.?\d)(0|[1-9]\d*)?(\.\d*)?([eE][+-]?\d+)?\s*", re.ASCII)
_WHOLE = re.compile(r"-?(0|[1-9]\d{0,17})", re.ASCII)
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
    return replace(look, columns={name: _typed(look[name]) for name in look.columns}, decimal=".")


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


@dataclass(frozen=True)
class Reading:
    """What a user says of how columns are read, beside the data: options of `infer` and of all verbs that infer."""

    missing: tuple[str, ...] | None = None  # texts that mean "missing", beside the usual ones; (): not even those
    strict: bool = False  # an odd cell is refused
    date_format: str | Mapping[str, str] | None = None  # of all columns that it fits, or by column
    fold: bool = False  # letter case and blanks of categories and labels mean nothing
    kinds: Mapping[str, str] = field(default_factory=dict)  # of columns that a person has decided about

    @classmethod
    def of(
        cls, missing: Any = None, strict: bool = False, date_format: Any = None, fold: bool = False, kinds: Any = None
    ) -> Reading:
        """The options as they were given."""
        if not isinstance(kinds or {}, Mapping):
            raise SettingsError(f"kinds={kinds!r}", hint="give them by column: kinds={'zip': 'category'}.")
        for name, kind in (kinds or {}).items():
            if kind not in KINDS:
                raise unknown(SettingsError, f"kinds: column {name!r} as {kind!r}", kind, KINDS)
        if missing is not None:
            if not isinstance(missing, Iterable):
                raise SettingsError(
                    f"missing={missing!r}", hint="give texts: missing=['?', 'unknown'], or [] for none."
                )
            missing = tuple(map(str, (missing,) if isinstance(missing, str) else missing))
        formats = date_format.values() if isinstance(date_format, Mapping) else [date_format] if date_format else []
        for each in formats:
            Spelling(date=each)  # refused if it is none
        return cls(missing, bool(strict), date_format, bool(fold), dict(kinds or {}))

    @property
    def options(self) -> dict[str, Any]:
        """The same as arguments of a verb."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def beside(self, names: Iterable[str | None]) -> Reading:
        """The same for a table without some columns: that they are to be ignored need not be said of them."""
        kinds = {name: kind for name, kind in self.kinds.items() if kind != "ignore" or name not in names}
        return replace(self, kinds=kinds)

    @property
    def marks(self) -> tuple[str, ...]:
        """The texts that mean "missing" in every column."""
        return ("", *(self.missing or ()))

    def marked(self, values: Sequence[str], *, category: bool = False) -> tuple[str, ...]:
        """The usual marks among some values."""
        return () if self.missing == () else marks_among(values, category=category)

    def date(self, column: str) -> str:
        """The format of a column's dates that was asked for; empty: none was."""
        return (self.date_format or {}).get(column, "") if not isinstance(self.date_format, str) else self.date_format

    def check(self, columns: Sequence[str]) -> None:
        """Refuse the format of a column that is not there."""
        asked = self.date_format if isinstance(self.date_format, Mapping) else {}
        if strange := [name for name in asked if name not in columns]:
            raise SettingsError(
                f"date_format names {excerpt(strange)}, which the data do not have",
                hint="take names of columns, or one format for all: date_format='%d.%m.%Y'.",
            )


@dataclass(frozen=True)
class Understood:
    """How the cells of a column of texts are read as numbers or dates."""

    dates: bool
    spelling: Spelling | None  # None: plain numbers, or ISO dates
    odd: Mapping[str, int] = field(default_factory=dict)  # cells that cannot be read so, and how often there are such
    cells: int = 0
    doubt: str = ""  # where it could have been meant otherwise


def understood(
    name: str, values: Sequence[str], counts: Sequence[int], reading: Reading, *, loose: bool, commas: bool = False
) -> Understood | None:
    """What the values of a column are but for a few cells; None if they are texts. `counts` is how often each occurs.

    `loose` says that a few different plain numbers are numbers, too: a file writes all of its values as texts; `commas`
    that its decimals are written with a comma.
    """
    cells = Values(values, counts)
    asked = reading.date(name)
    if asked:
        found = cells.without_odd(_reads(Spelling(date=asked).instant))
        if found is not None or isinstance(reading.date_format, Mapping):
            if found is None:
                example = next(v for v in values if not _reads(Spelling(date=asked).instant)(v))
                raise DataError(
                    f"column {name!r}: {example[:60]!r} is not a date written as {asked!r}, and it is not the only one",
                    hint="mend date_format, or leave it out and see what infer says of the column.",
                )
            return _with_odd(True, Spelling(date=asked), found, cells)
    if (found := cells.without_odd(is_iso)) is not None:
        return _with_odd(True, None, found, cells)
    if (found := cells.without_odd(is_number)) is not None:
        found = {v: n for v, n in found.items() if not _reads(Spelling().number)(v)}  # 007 is a number among numbers
        if found and len(values) <= _FEW_NUMBERS:
            return None
        return _with_odd(False, None, found, cells) if found or loose or len(values) > _SOME_NUMBERS else None
    found = cells.without_odd(_reads(hours_of))
    if found is not None and any(says_its_unit(v) for v in values if v not in found):
        return None if found and len(values) <= _FEW_NUMBERS else _with_odd(False, Spelling(clock=True), found, cells)
    return _amounts(name, cells, commas) or _other_dates(name, cells)


def _with_odd(
    dates: bool, spelling: Spelling | None, odd: Mapping[str, int], cells: Values, doubt: str = ""
) -> Understood:
    if odd:
        spelling = replace(spelling or Spelling(), odd=True)
    return Understood(dates, spelling, odd, sum(cells.counts), doubt)


_FEW_NUMBERS = 10  # different ones: with an odd value among so few, all are values of a category
_SOME_NUMBERS = 30  # different ones that make numbers of texts which could have been numbers


@dataclass(frozen=True)
class Values:
    """The different values of a column, without marks, and how many cells have each."""

    values: Sequence[str]
    counts: Sequence[int]

    def without_odd(self, reads: Callable[[str], bool]) -> dict[str, int] | None:
        """The values that cannot be read, if they are a few; None if they are more, or all."""
        total, seen = sum(self.counts), 0
        odd: dict[str, int] = {}
        for value, count in zip(self.values, self.counts, strict=True):
            if not reads(value):
                seen += count
                odd[value] = count
                if not are_few(seen, total, len(odd)):
                    return None
        return odd if self.values else None

    def often(self, sign: str) -> bool:
        """Whether more than a few cells have a sign."""
        having = [n for v, n in zip(self.values, self.counts, strict=True) if sign in v]
        return bool(having) and not are_few(sum(having), sum(self.counts), len(having))


def _reads(read: Callable[[str], Any]) -> Callable[[str], bool]:
    def can(text: str) -> bool:
        try:
            read(text)
        except ValueError:
            return False
        return True

    return can


_WAYS = ((".", ""), (".", ","), (",", "."), (",", " "), (",", "'"), (".", " "), (".", "'"), (",", ""))
_ZERO = re.compile(r"[^0-9]*0[0-9]")  # a code


def _amounts(name: str, cells: Values, commas: bool) -> Understood | None:
    """Numbers with a sign, separators of thousands or a decimal comma: the way of writing with the fewest odd cells."""
    every = "".join(cells.values)
    if not any(c in every for c in (*SIGNS, ",", " ", "\u00a0", "\u202f", "'")):
        return None
    units = [sign for sign in SIGNS if sign in every and cells.often(sign)]
    if len(units) > 1:
        if cells.without_odd(lambda v: _amount(v, units)) is not None:
            warn(
                f"column {name!r} holds amounts in {' and '.join(units)}, and is taken as text, since they cannot be "
                "added up. Hint: turn them into one unit, or give each a column of its own."
            )
        return None
    best: tuple[int, Spelling, dict[str, int]] | None = None
    fitting = []
    for decimal, thousands in _WAYS:
        spelling = Spelling(decimal, thousands, "".join(units))
        seen = any(c in every for c in (" \u00a0\u202f" if thousands == " " else thousands))
        used = (not thousands or seen) and (decimal == "." or commas or decimal in every)
        if not used or (commas and decimal == ".") or not (units or thousands or decimal == ","):
            continue
        can = _reads(spelling.number)
        odd = cells.without_odd(lambda v, can=can: can(v) and not _ZERO.match(v))  # type: ignore[misc]
        if odd is not None:
            fitting.append((sum(odd.values()), spelling))
            if best is None or sum(odd.values()) < best[0]:
                best = sum(odd.values()), spelling, odd
    if best is None:
        return None
    few, spelling, odd = best
    if few and len(cells.values) <= _FEW_NUMBERS:
        return None
    if spelling.decimal == "," and not spelling.thousands and not units and len(cells.values) <= _SOME_NUMBERS:
        example = next(v for v in cells.values if "," in v)
        warn(
            f"column {name!r} holds numbers with a comma, such as {example.strip()!r}, and is taken as text, since "
            "they are few. Hint: tb.read(path, decimal=',') reads them from a CSV; in a frame turn them into numbers "
            "first."
        )
        return None
    doubt = ""
    if spelling.thousands == "," and units in ([], ["%"]) and any(n == few and s.decimal == "," for n, s in fitting):
        example = next(v for v in cells.values if "," in v).strip()
        doubt = f"{example!r} is read as {spelling.number(example):.15g}; decimal=',' reads it as a decimal comma"
        warn(
            f"column {name!r} holds numbers with a comma before every three digits: {doubt}. Hint: if that is meant, "
            "tb.read(path, decimal=',') says so of a file."
        )
    if spelling.decimal == "." and not spelling.thousands and (example := in_thousands(cells.values)):
        doubt = doubt_of(name, example, spelling.number(example))
    return _with_odd(False, spelling, odd, cells, doubt)


def _amount(text: str, units: Sequence[str]) -> bool:
    return any(_reads(Spelling(".", ",", unit).number)(text) for unit in units)


_FORMS = re.compile(
    r"(?P<a>\d{1,4})(?P<sep>[./-])(?P<b>\d{1,2})(?P=sep)(?P<c>\d{4}|\d{1,2})"
    r"(?P<time>(?P<t>[ T])\d{1,2}:\d{2}(?P<seconds>:\d{2}(?P<more>\.\d{1,6})?)?)?",
    re.ASCII,
)


def _other_dates(name: str, cells: Values) -> Understood | None:
    """Dates in another order than ISO's: which one the values decide together, and a point stands after the day."""
    if cells.without_odd(is_date) is None:
        return None
    forms = (found for v in cells.values if (found := _FORMS.fullmatch(v.strip())))
    ways = sorted({way for form in forms for way in _ways(form)})
    fitting: list[tuple[int, Spelling, dict[str, int]]] = []
    for way in ways:
        spelling = Spelling(date=way)
        odd = cells.without_odd(_reads(spelling.instant))
        if odd is not None and not (odd and len(cells.values) <= _FEW_NUMBERS):
            fitting.append((sum(odd.values()), spelling, odd))
    if not fitting:
        return None
    few = min(each[0] for each in fitting)
    best = [each for each in fitting if each[0] == few]
    if len(best) > 1:
        first, second = (each[1].date for each in best[:2])
        warn(
            f"column {name!r} holds dates such as {cells.values[0]!r}, and is taken as text, since day and month could "
            f"be meant either way. Hint: say which: date_format={first!r} or {second!r} (--date-format)."
        )
        return None
    return _with_odd(True, best[0][1], best[0][2], cells)


def _ways(form: re.Match[str]) -> list[str]:
    """The formats that a date may be written in."""
    sep = form["sep"]
    if len(form["a"]) == 4:
        orders = ["%Y %m %d"]
    else:
        year = "%Y" if len(form["c"]) == 4 else "%y"
        orders = [f"%d %m {year}"] if sep == "." else [f"%d %m {year}", f"%m %d {year}"]
    time = ""
    if form["time"]:
        time = f"{form['t']}%H:%M" + (":%S" if form["seconds"] else "") + (".%f" if form["more"] else "")
    return [order.replace(" ", sep) + time for order in orders]


def no_text(some: Sequence[str]) -> bool:
    """Whether some values show that a column of long texts could be numbers or dates after all."""
    plain = [v for v in some if not is_mark(v)]
    can = _reads(hours_of)  # which has words where it is written as 1 hour and 20 minutes
    return sum(is_iso(v) or bool(_DIGITS.fullmatch(v) or is_date(v)) or can(v) for v in plain) > 0.5 * len(plain)


def is_date(text: str) -> bool:
    """Whether a text has the form of a date in an order other than ISO's."""
    return _FORMS.fullmatch(text.strip()) is not None


_DIGITS = re.compile(r"[-+0-9.,'eE \u00a0\u202f$€£¥₹%]+")
