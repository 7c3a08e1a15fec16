"""Random tables of any mixture of kinds, with hostile names and odd values, in every form that data come in.

Everything is drawn by a `random.Random`: a seeded one gives thousands of tables cheaply, and the one of Hypothesis
(`strategies.randoms`) gives tables that shrink. A table is kept as plain Python values and the type its columns are to
be held in, so that rows and columns can be taken away from it and it can be written in any form.
"""

from __future__ import annotations

import csv
import datetime as dt
import enum
import fractions
import ipaddress
import json
import math
import pathlib
import random
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
from strategies import SPECIAL, WORDS

MARKUP = "<script>alert(1)</script>"
NAMES = (
    "a", "A", "b", "x", "x (missing)", "a and b", "a × b", "x.days", "x.hour", "y", "Y", "label", "probabilities",
    "prediction", "P(a)", "", " ", "(weights)", "prior", "offsets", "calibration", "row", "id", "token", "count", "x0",
    "x1", MARKUP,
    '"><img src=x onerror=alert(1)>', "it's \"q\"", "a\nb", "a\0b", "a\tb", "a,b", "ünï", "日本", "e\u0301",
    "\u00e9", "İ", "ß", "SS", "\u202ex", "{}", "%s", "a'; DROP TABLE rows; --", "rows", "None", "nan",
    "true", "1", "1.0",
    "\ufeffx", "select", "a" * 300, "a" * 299 + "b", "\\", "`", "$x", "Unnamed: 0", "__class__", "0", "-", "#",
)  # fmt: skip
SENTENCE = (
    "the", "a", "rain", "sun", "flat", "with", "view", "Müller", "cheap", "free", "offer", "not", "good",
    "it's", "2024",
    "日本語", "naïve", "!!!", "e\u0301", "<b>", "x\x00y", "👩‍🔬", "\u200f", "a-b", "http://x.org/?q=1", "don't",
    "ß", "...",
)  # fmt: skip
PEOPLE = ("Anna", "Ben", "Zoë", "Müller", "Smith", "O'Neil", "Nguyễn", "Lee", "van der Berg", "Ivanov")
ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Asia/Kathmandu")


class Colour(enum.Enum):
    RED = 1
    BLUE = "b"


# ---- one value of each kind


def _whole(bits: int, signed: bool) -> Callable[[random.Random], int]:
    low, high = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)

    def one(rng: random.Random) -> int:
        near = rng.choice((low, high, 0, 1, 2, 3, 7, min(1 << 53, high), min((1 << 53) + 1, high)))
        return near if rng.random() < 0.3 else max(low, min(high, rng.randint(-5, 30)))

    return one


def _float(rng: random.Random) -> float:
    return rng.choice((*SPECIAL, math.inf, -math.inf)) if rng.random() < 0.1 else rng.uniform(-3, 3)


def _tame(rng: random.Random) -> float:
    return round(rng.uniform(-3, 3), rng.choice((0, 1, 3, 17)))


def _decimal(rng: random.Random) -> Decimal:
    odd = ("0", "-0", "1.10", "1E+2", "NaN", "Infinity", "1E+400", "1E-400", "123456789012345678901234567890.5", "0.1")
    return Decimal(rng.choice(odd)) if rng.random() < 0.2 else Decimal(rng.randint(-999, 999)) / 100


def _string(rng: random.Random) -> str:
    if rng.random() < 0.3:
        return rng.choice(
            (*WORDS, MARKUP, "?", "NA", "null", "-", "1,5", "31.12.2024", "(missing)", "x" * 500, "\ud800")
        )
    return "".join(rng.choice("abcDE ") for _ in range(rng.randint(1, 4)))


def _instant(rng: random.Random) -> dt.datetime:
    if rng.random() < 0.1:
        return rng.choice(
            (dt.datetime(1, 1, 1), dt.datetime(9999, 12, 31, 23, 59, 59, 999999), dt.datetime(1970, 1, 1))
        )
    start = dt.datetime(2019, 12, 1) + dt.timedelta(days=rng.randint(0, 900))
    return start + dt.timedelta(microseconds=rng.randint(0, 86_400_000_000 - 1)) if rng.random() < 0.7 else start


def _zoned(rng: random.Random) -> dt.datetime:
    if rng.random() < 0.3:
        return _instant(rng).replace(tzinfo=dt.timezone(dt.timedelta(minutes=rng.choice((0, 330, -1439, 1439)))))
    return _instant(rng).replace(year=rng.choice((1985, 2024, 2025)), day=28, tzinfo=ZoneInfo(rng.choice(ZONES)))


def _span(rng: random.Random) -> dt.timedelta:
    return rng.choice((dt.timedelta(0), dt.timedelta.max, dt.timedelta.min, -dt.timedelta(days=3))) if (
        rng.random() < 0.1
    ) else dt.timedelta(seconds=rng.randint(-5000, 500_000))  # fmt: skip


def _text(rng: random.Random) -> str:
    return " ".join(rng.choice(SENTENCE) for _ in range(rng.randint(3, 12)))


def _bag(rng: random.Random) -> Any:
    return [rng.choice(SENTENCE) for _ in range(rng.randint(0, 6))]


def _counted(rng: random.Random) -> Any:
    return {rng.choice(SENTENCE): rng.choice((1, 2, 0.5, 0, 3)) for _ in range(rng.randint(0, 4))}


def _uuid(rng: random.Random) -> uuid.UUID:
    return uuid.UUID(int=rng.getrandbits(128))


def _scalar(rng: random.Random) -> Any:
    """A value of a type that few columns have."""
    kind = rng.choice(("fraction", "complex", "enum", "address", "numpy", "huge", "time", "npdate", "stamp", "tuple"))
    n = rng.randint(0, 4)
    return {
        "fraction": fractions.Fraction(n, 3), "complex": complex(n, 1), "enum": rng.choice(tuple(Colour)),
        "address": ipaddress.ip_address(n), "numpy": rng.choice((np.float32(n / 3), np.int8(n), np.str_("s"))),
        "huge": rng.choice((10**30, -(10**400), 2**64)), "time": dt.time(n, 30), "tuple": (n, "t"),
        "npdate": np.datetime64("2024-01-01") + n,
        "stamp": pd.Timestamp("2024-01-01 12:00", tz="UTC") + pd.Timedelta(n),
    }[kind]  # fmt: skip


@dataclass(frozen=True)
class ValueKind:
    """How one value is drawn, and the types that pandas and Arrow may hold a column of it in ('' as it comes)."""

    one: Callable[[random.Random], Any]
    types: tuple[str, ...] = ("",)
    label: bool = True  # whether classes may be of it


INTEGERS = {f"{'u' * (not signed)}int{bits}": (bits, signed) for bits in (8, 16, 32, 64) for signed in (True, False)}
KINDS = {
    **{name: ValueKind(_whole(*how), (name, "", "category")) for name, how in INTEGERS.items()},
    "whole": ValueKind(lambda rng: rng.choice((2**53 + 1, -(2**63), 2**64, *range(-2, 30)))),
    "float": ValueKind(_float, ("float64", "float32", "float16", "")),
    "tame": ValueKind(_tame, ("float64", "float32", "category", "")),
    "decimal": ValueKind(_decimal, ("", "decimal")),
    "bool": ValueKind(lambda rng: rng.random() < 0.5, ("bool", "")),
    "string": ValueKind(_string, ("string", "category", "ordered", "")),
    "marked": ValueKind(lambda rng: rng.choice(("?", "NA", "", "1", "2.50", "-3", "1e3", "0x1", "1_0", "٣"))),
    "date": ValueKind(lambda rng: _instant(rng).date(), ("date32", "")),
    "datetime": ValueKind(_instant, ("timestamp", "")),
    "zoned": ValueKind(_zoned, ("zoned", "")),
    "iso": ValueKind(lambda rng: rng.choice((_instant(rng).isoformat(), _instant(rng).date().isoformat()))),
    "span": ValueKind(_span, ("duration", "")),
    "time": ValueKind(lambda rng: dt.time(rng.randint(0, 23), rng.choice((0, 30)), rng.choice((0, 1)))),
    "text": ValueKind(_text, ("string", "")),
    "name": ValueKind(lambda rng: f"{rng.choice(PEOPLE)} {rng.choice(PEOPLE)}", ("string", "")),
    "bag": ValueKind(_bag, label=False),
    "counted": ValueKind(_counted, label=False),
    "vector": ValueKind(lambda rng: [_tame(rng), _tame(rng)], ("", "pair"), label=False),
    "ragged": ValueKind(lambda rng: [_tame(rng)] * rng.randint(0, 3), label=False),
    "nested": ValueKind(lambda rng: [[rng.choice("ab")], rng.choice(([], ["c"]))], label=False),
    "uuid": ValueKind(_uuid),
    "hex": ValueKind(lambda rng: str(_uuid(rng)), ("string", "")),
    "bytes": ValueKind(lambda rng: rng.choice((b"", b"a", b"\xff\x00", b"abc", bytearray(b"z")))),
    "struct": ValueKind(lambda rng: {"k": rng.randint(0, 3), "v": rng.choice(("a", None))}, label=False),
    "odd": ValueKind(_scalar),
    "mixed": ValueKind(lambda rng: rng.choice(_MIXED)(rng)),
    "nothing": ValueKind(lambda rng: None, ("", "float64", "string"), label=False),
}  # fmt: skip
_MIXED = (
    _float,
    _string,
    _instant,
    _uuid,
    _decimal,
    _scalar,
    lambda rng: rng.random() < 0.5,
    lambda rng: rng.randint(0, 3),
)
_GONE = (None, None, None, math.nan, pd.NA, pd.NaT)
FORMS = ("dict", "rows", "pandas", "polars", "arrow", "csv", "jsonl", "parquet", "matrix")


@dataclass(frozen=True)
class Drawn:
    """The values of one column, and the type it is to be held in."""

    values: list[Any]
    type: str = ""

    def take(self, rows: Sequence[int]) -> Drawn:
        return replace(self, values=[self.values[i] for i in rows])


@dataclass(frozen=True)
class Table:
    """A table, how it is to be handed over, and how it is to be fitted."""

    columns: dict[str, Drawn]
    target: str
    form: str = "dict"
    fit: dict[str, Any] = field(default_factory=dict)
    beside: list[Any] | None = None  # weights beside the data

    @property
    def rows(self) -> int:
        return len(self.columns[self.target].values)

    def take(self, rows: Sequence[int]) -> Table:
        """Some of the rows, in this order."""
        columns = {name: column.take(rows) for name, column in self.columns.items()}
        beside = None if self.beside is None else [self.beside[i] for i in rows]
        return replace(self, columns=columns, beside=beside)

    def without(self, name: str) -> Table:
        """The table less one column."""
        return replace(self, columns={n: c for n, c in self.columns.items() if n != name})

    @property
    def labels(self) -> list[Any] | None:
        """The labels, where they stand beside the data."""
        return self.columns[self.target].values if self.form == "matrix" else None

    def part(self, data: Any, rows: Sequence[int], folder: pathlib.Path) -> Any:
        """Some rows of what `data` gave, of the same types; of a file another file."""
        if self.form in ("csv", "jsonl"):
            return self.take(rows).data(folder)
        if self.form == "parquet":
            path = folder / f"{uuid.uuid4().hex}.parquet"
            pq.write_table(pq.read_table(data).take(pa.array(rows, pa.int64())), path)
            return str(path)
        if self.form == "dict":
            return {name: [values[i] for i in rows] for name, values in data.items()}
        if self.form == "arrow":
            return pa.concat_tables([data.slice(i, 1) for i in rows]) if rows else data.slice(0, 0)
        if self.form == "pandas":
            return data.iloc[list(rows)]
        return [data[i] for i in rows] if self.form == "rows" else data[list(rows)]

    def row(self, i: int) -> dict[str, Any]:
        """One row as it was drawn."""
        return {name: column.values[i] for name, column in self.columns.items()}

    def data(self, folder: pathlib.Path) -> Any:
        """The table in its form; what another library cannot hold in a type is held as it comes."""
        lists = {name: column.values for name, column in self.columns.items()}
        if self.form == "rows":
            return [self.row(i) for i in range(self.rows)]
        if self.form == "pandas":
            return pd.DataFrame({n: _series(c) for n, c in self.columns.items()})
        if self.form == "polars":
            return pl.DataFrame([_polars(n, c) for n, c in self.columns.items()])
        if self.form == "arrow":
            return self.arrow()
        if self.form == "matrix":
            numbers = [[_as_float(v) for v in values] for name, values in lists.items() if name != self.target]
            return np.array(numbers, dtype=np.float64).reshape(len(numbers), self.rows).T
        if self.form in ("csv", "jsonl", "parquet"):
            return self._written(folder / f"{uuid.uuid4().hex}.{self.form}")
        return lists

    def arrow(self) -> pa.Table:
        return pa.table({n: _arrow(c) for n, c in self.columns.items()})

    def _written(self, path: pathlib.Path) -> str:
        rows = [self.row(i) for i in range(self.rows)]
        if self.form == "parquet":
            pq.write_table(self.arrow(), path)
        elif self.form == "jsonl":
            lines = [json.dumps({n: _plain(v) for n, v in row.items()}) for row in rows]
            path.write_text("\n".join(lines) + "\n", encoding="utf-8", errors="replace")
        else:
            with path.open("w", newline="", encoding="utf-8", errors="replace") as out:
                writer = csv.writer(out)
                writer.writerow(self.columns)
                writer.writerows([["" if _is_gone(v) else v for v in row.values()] for row in rows])
        return str(path)


def _is_gone(value: Any) -> bool:
    return value is None or value is pd.NA or value is pd.NaT or (isinstance(value, float) and math.isnan(value))


def _plain(value: Any) -> Any:
    if isinstance(value, (list, tuple)):
        return [_plain(v) for v in value]
    if isinstance(value, dict):
        return {str(k): _plain(v) for k, v in value.items()}
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (str, bool, int)) or value is None else None if _is_gone(value) else str(value)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return math.nan


_REFUSED = (TypeError, ValueError, OverflowError, ArithmeticError, AttributeError, pa.ArrowException)


def _series(column: Drawn) -> pd.Series:
    gone = any(map(_is_gone, column.values))
    values = [None if _is_gone(v) else v for v in column.values] if column.type else column.values
    kinds: dict[str, Any] = {
        "float16": "float16", "decimal": "object", "bool": "boolean" if gone else "bool", "date32": "object",
        "timestamp": "datetime64[ns]", "zoned": "datetime64[us, UTC]", "duration": "timedelta64[us]", "pair": "object",
    }  # fmt: skip
    kind = kinds.get(column.type, column.type)
    if kind in INTEGERS and gone:
        kind = kind.replace("i", "I").replace("u", "U")
    try:
        if kind == "ordered":
            return pd.Series(pd.Categorical(values, ordered=True))
        return pd.Series(values, dtype=kind or "object")
    except _REFUSED:
        return pd.Series(column.values, dtype="object")


def _polars(name: str, column: Drawn) -> pl.Series:
    values = [None if _is_gone(v) else v for v in column.values]
    kinds: dict[str, Any] = {
        "float64": pl.Float64, "float32": pl.Float32, "string": pl.String, "category": pl.Categorical,
        "bool": pl.Boolean, "ordered": pl.Categorical, "date32": pl.Date,
        "timestamp": pl.Datetime("us"), "zoned": pl.Datetime("us", "UTC"),
        "duration": pl.Duration("us"), "pair": pl.Array(pl.Float64, 2), "decimal": pl.Decimal(38, 2),
        **{n: getattr(pl, n.capitalize().replace("Ui", "UI")) for n in INTEGERS},
    }  # fmt: skip
    tries: list[dict[str, Any]] = [{"strict": True}, {"strict": False}, {"dtype": pl.Object}]
    if any(isinstance(v, enum.Enum) for v in values):  # of which polars wants numbers or texts
        tries = tries[2:]
    for how in [{"dtype": kinds[column.type]}, *tries] if column.type in kinds else tries:
        try:
            return pl.Series(name, values, **how)
        except (Exception, pl.exceptions.PanicException):  # whatever it is, another type is tried
            continue
    return pl.Series(name, list(map(str, values)))


def _arrow(column: Drawn) -> pa.Array:
    values = [None if _is_gone(v) else v for v in column.values]
    kinds: dict[str, Any] = {
        "float64": pa.float64(), "float32": pa.float32(), "float16": pa.float16(), "string": pa.large_string(),
        "category": None, "ordered": None, "bool": pa.bool_(), "date32": pa.date32(), "timestamp": pa.timestamp("us"),
        "zoned": pa.timestamp("us", "Europe/Berlin"), "duration": pa.duration("us"), "pair": pa.list_(pa.float64(), 2),
        "decimal": pa.decimal128(38, 5), **{n: getattr(pa, n)() for n in INTEGERS},
    }  # fmt: skip
    types = {type(v) for v in values if v is not None}
    several = len(types) > 1 and types != {int, float}  # Arrow itself dies of some mixtures
    for kind in () if several else (kinds.get(column.type), None):
        try:
            made = pa.array(values, kind)
            if pa.types.is_struct(made.type) and made.type.num_fields == 0:  # which no file can hold
                return pa.nulls(len(values))
            coded = column.type in ("category", "ordered") and made.null_count < len(made)
            return made.dictionary_encode() if coded else made
        except _REFUSED:
            continue
    return pa.array([None if v is None else str(v).encode("utf-8", "replace").decode() for v in values])


# ---- tables


def random_table(rng: random.Random, most_rows: int = 300) -> Table:
    """A table; most are small, a few have hundreds of rows or classes."""
    sizes = (1, 2, 3, 5, 8, 12, rng.randint(13, 60), rng.randint(13, 60), rng.randint(60, 300))
    rows = min(rng.choice(sizes), most_rows)
    form = rng.choice(FORMS)
    names = rng.sample(NAMES, rng.choice((1, 1, 2, 3, 4, 6, 9)) + 1)
    target, names = names[0], names[1:]
    if rng.random() < 0.5:
        target = "y"
        names = [n for n in names if n != "y"]
    classes = min(rng.choice((1, 2, 2, 2, 2, 3, 3, 5, 12, 40, 300)), max(rows, 2))
    codes = [rng.randrange(classes) for _ in range(rows)]
    columns = {}
    for name in names:
        kind = rng.choice(("float", "tame") if form == "matrix" else _OFTEN if rng.random() < 0.4 else tuple(KINDS))
        columns[name] = random_column(rng, KINDS[kind], codes)
    columns[target] = _random_labels(rng, codes, classes)
    if form == "matrix":
        columns = {f"x{i}": c for i, c in enumerate(c for n, c in columns.items() if n != target)} | {
            "y": columns[target]
        }
        target = "y"
    fit = random_options(rng)
    beside = None
    if rng.random() < 0.25:
        amounts = [rng.choice((0, 1, 1, 1, 2, 0.5, 1 / 3, 1e-6, 1e6)) for _ in range(rows)]
        if rng.random() < 0.1:
            amounts[rng.randrange(rows)] = rng.choice((-1, math.nan, math.inf, 1e300, 5e-324, None, "x"))
        if rng.random() < 0.5 or form == "matrix":
            beside = amounts
        else:
            fit["weights"] = next(n for n in ("w", "(weights)", "W") if n not in columns)
            columns[fit["weights"]] = Drawn(amounts)
    return Table(columns, target, form, fit, beside)


_OFTEN = ("tame", "whole", "string", "string", "text", "bool", "datetime", "bag", "name")


def random_column(rng: random.Random, kind: ValueKind, codes: Sequence[int]) -> Drawn:
    """A column of one kind: of few values, or of a value per row; telling the class, or not; with gaps, or none."""
    rows = len(codes)
    pool = [kind.one(rng) for _ in range(min(rng.choice((1, 2, 3, 6, 20, rows)), rows))]
    tells = rng.random() < 0.5
    values = [pool[(2 * code + rng.randint(0, 2) if tells else rng.randrange(rows)) % len(pool)] for code in codes]
    if rng.random() < 0.1:
        values = [kind.one(rng) for _ in codes]
    share = rng.choice((0, 0, 0, 0.1, 0.5, 1 if rng.random() < 0.2 else 0))
    gone = rng.choice(_GONE) if share else None
    if share:
        values = [gone if rng.random() < share else v for v in values]
    return Drawn(values, rng.choice(kind.types))


def _random_labels(rng: random.Random, codes: Sequence[int], classes: int) -> Drawn:
    names = [k for k, kind in KINDS.items() if kind.label]
    kind = KINDS[rng.choice(names) if rng.random() < 0.5 else "string"]
    given: list[Any] = []
    for i in range(classes):
        value = kind.one(rng)
        given.append(value if classes < 12 or rng.random() < 0.5 else f"class {i}")
    if all(isinstance(v, str) for v in given):
        given = [v if given.index(v) == i else f"{v}{i}" for i, v in enumerate(given)]
    gone = rng.random() < 0.1
    return Drawn(
        [rng.choice(_GONE) if gone and rng.random() < 0.3 else given[c] for c in codes], rng.choice(kind.types)
    )


def random_options(rng: random.Random) -> dict[str, Any]:
    """How a table is fitted."""
    calibrate = ({}, {"effort": "quick"}, {"calibrate": False}, {"calibrate": rng.choice(("temperature", "isotonic"))})
    out: dict[str, Any] = dict(rng.choices(calibrate, (30, 35, 32, 3))[0])
    if rng.random() < 0.3:
        out["pairs"] = False
    if rng.random() < 0.1:
        out["gaps"] = False
    if rng.random() < 0.2:
        out["receipts"] = True
    return out
