"""What a value counts as: the same text, number or date whatever type holds it, wherever and beside what it stands.

Each case is a column of some type, the texts that its values have, and their numbers or dates if they have such. The
same column is then counted alone, one value after the other, in every cut, beside the values of every other case, as a
category, a text, a number, a date and the target: what is counted must be equal to what the texts are counted as.
"""

from __future__ import annotations

import csv
import datetime as dt
import decimal
import enum
import fractions
import ipaddress
import itertools
import math
import pathlib
import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from strategies import ALL

import tallybayes as tb
from tallybayes.base.arrow import floats

D = decimal.Decimal
EAST = dt.timezone(dt.timedelta(hours=9))
WEST = dt.timezone(-dt.timedelta(hours=5))


class Colour(enum.Enum):
    """Members with a text of their own."""

    RED = 1
    BLUE = 2


class Size(enum.IntEnum):
    """Members that are numbers."""

    SMALL = 1
    LARGE = 2


class Sky(str, enum.Enum):  # noqa: UP042 - the older way, whose str() is not its text
    """Members that are texts."""

    SUNNY = "sunny"
    RAINY = "rainy"


class Word(str):
    """A text of another class."""

    __slots__ = ()


@dataclass(frozen=True)
class Values:
    """A column, and what its values are."""

    name: str
    column: Any
    texts: list[str | None]
    numbers: list[float | None] | None = None
    dates: list[str | None] | None = None  # ISO texts
    items: list[Any] | None = None  # the values one by one; None: as the column gives them

    def one_by_one(self) -> list[Any]:
        if self.items is not None:
            return self.items
        if isinstance(self.column, (pa.Array, pa.ChunkedArray)):
            return self.column.to_pylist()
        return self.column.to_list() if hasattr(self.column, "to_list") else list(self.column)

    def cut(self, start: int, stop: int) -> Any:
        if hasattr(self.column, "iloc"):
            return self.column.iloc[start:stop]
        return self.column[start:stop]


CASES: list[Values] = []


def case(name: str, column: Any, texts: Any, **more: Any) -> None:
    CASES.append(Values(name, column, texts, **more))


# ---- whole numbers and floats

for width in ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"):
    few = ["3", "0", "3"]
    case(f"numpy {width}", np.array([3, 0, 3], dtype=width), few, numbers=[3.0, 0.0, 3.0])
    case(f"arrow {width}", pa.array([3, None, 0], width), ["3", None, "0"], numbers=[3.0, None, 0.0])
case("uint64, its largest", pa.array([2**64 - 1, 0], pa.uint64()), [str(2**64 - 1), "0"], numbers=[2.0**64, 0.0])
case("python int", [3, -7, None], ["3", "-7", None], numbers=[3.0, -7.0, None])
case("int beyond 2^53", [2**53 + 1, 1], ["9007199254740993", "1"], numbers=[2.0**53, 1.0])
case("int beyond 2^64", [2**64 + 1, -(2**70)], ["18446744073709551617", "-1.1805916207174113e+21"],
     numbers=[2.0**64, -(2.0**70)])  # fmt: skip
case("int and float", [3, 0.5, None], ["3", "0.5", None], numbers=[3.0, 0.5, None])
case("int beyond 2^53 and float", [2**53 + 1, 0.5], ["9007199254740993", "0.5"], numbers=[2.0**53, 0.5])
case("float", [0.1, -0.0, 1e300, math.nan], ["0.1", "0", "1e+300", None], numbers=[0.1, 0.0, 1e300, None])
case("float beyond 1e21", [1e22, 1e21], ["1e+22", "1e+21"], numbers=[1e22, 1e21])
case("int beyond 1e21", [10**22, 10**21], ["1e+22", "1e+21"], numbers=[1e22, 1e21])
case(
    "numpy float16", np.array([0.5, 0.1], dtype=np.float16), ["0.5", "0.0999755859375"], numbers=[0.5, 0.0999755859375]
)
case("numpy float32", np.array([0.5, 0.1], dtype=np.float32), ["0.5", "0.10000000149011612"],
     numbers=[0.5, 0.10000000149011612])  # fmt: skip
case("numpy longdouble", np.array([0.5, 3], dtype=np.longdouble), ["0.5", "3"], numbers=[0.5, 3.0])
case("arrow float16", pa.array([1.5, None], pa.float16()), ["1.5", None], numbers=[1.5, None])
case("arrow float32", pa.array([0.1, None], pa.float32()), ["0.10000000149011612", None],
     numbers=[0.10000000149011612, None])  # fmt: skip
case("numpy scalars", [np.int8(3), np.int8(4)], ["3", "4"], numbers=[3.0, 4.0])
case("numpy float scalars", [np.float32(1.5), None], ["1.5", None], numbers=[1.5, None])
case("several numpy scalars", [np.int8(3), np.float16(1.5), np.uint64(4), np.float64(2)], ["3", "1.5", "4", "2"],
     numbers=[3.0, 1.5, 4.0, 2.0])  # fmt: skip
case("arrays without dimensions", [np.array(5), np.array(6)], ["5", "6"], numbers=[5.0, 6.0])
case("arrow scalars", [pa.scalar(5), pa.scalar(6)], ["5", "6"], numbers=[5.0, 6.0])
case("int enum", [Size.SMALL, Size.LARGE], ["1", "2"], numbers=[1.0, 2.0])
case("fraction", [fractions.Fraction(1, 4), fractions.Fraction(6, 2)], ["1/4", "3"], numbers=[0.25, 3.0])
case("pandas Int64", pd.Series([2**53 + 1, None], dtype="Int64"), ["9007199254740993", None], numbers=[2.0**53, None])
case("pandas Float64", pd.Series([0.1, None], dtype="Float64"), ["0.1", None], numbers=[0.1, None])
case("pandas int64[pyarrow]", pd.Series([3, None], dtype="int64[pyarrow]"), ["3", None], numbers=[3.0, None])
case("pandas sparse", pd.Series(pd.arrays.SparseArray([0.0, 2.5, 0.0])), ["0", "2.5", "0"], numbers=[0.0, 2.5, 0.0])
case("pandas object of ints", pd.Series([3, None, 4], dtype=object), ["3", None, "4"], numbers=[3.0, None, 4.0])
case("polars Int16", pl.Series([3, None], dtype=pl.Int16), ["3", None], numbers=[3.0, None])
case("polars Int128", pl.Series([2**100 + 1, None], dtype=pl.Int128), [str(2**100 + 1), None], numbers=[2.0**100, None])
case("run-end-encoded int", pc.run_end_encode(pa.array([3, 3, 4])), ["3", "3", "4"], numbers=[3.0, 3.0, 4.0])
case("dictionary of ints", pa.array([5, 6, 5]).dictionary_encode(), ["5", "6", "5"], numbers=[5.0, 6.0, 5.0])

# ---- decimals

PRICES = [D("94.8"), D("-18.3"), D("0.79"), None]
PRICE_TEXTS, PRICE_NUMBERS = ["94.8", "-18.3", "0.79", None], [94.8, -18.3, 0.79, None]
for kind in (
    pa.decimal32(5, 2),
    pa.decimal64(10, 3),
    pa.decimal128(4, 2),
    pa.decimal128(38, 20),
    pa.decimal256(50, 10),
):
    case(str(kind), pa.array(PRICES, kind), PRICE_TEXTS, numbers=PRICE_NUMBERS)
case("arrow decimal of negative scale", pa.array([D("1E+5"), D("2E+3")], pa.decimal128(6, -3)), ["100000", "2000"],
     numbers=[1e5, 2e3])  # fmt: skip
case("python decimals", PRICES, PRICE_TEXTS, numbers=PRICE_NUMBERS)
case("python decimals of other scales", [D("94.8"), D("0.00000001"), D("NaN"), D("1E+3")],
     ["94.8", "1e-08", None, "1000"],
     numbers=[94.8, 1e-8, None, 1000.0])  # fmt: skip
case("decimals that no float is", [D(2**53 + 1), D("12345678901234567890.123")],
     ["9007199254740993", "1.2345678901234567890123e+19"], numbers=[2.0**53, 12345678901234567890.123])  # fmt: skip
case("arrow decimals that no float is", pa.array([D(10**37 + 1), D(10**37)], pa.decimal128(38, 0)),
     [str(10**37 + 1), str(10**37)], numbers=[1e37, 1e37])  # fmt: skip
case("polars decimal", pl.Series(PRICES, dtype=pl.Decimal(10, 2)), PRICE_TEXTS, numbers=PRICE_NUMBERS)
case("pandas decimal128[pyarrow]", pd.Series(PRICES, dtype=pd.ArrowDtype(pa.decimal128(9, 3))), PRICE_TEXTS,
     numbers=PRICE_NUMBERS)  # fmt: skip

# ---- texts, bytes, truth values, things with a text

STRINGS = ["a", "é", None]
for kind in (pa.string(), pa.large_string(), pa.string_view()):
    case(str(kind), pa.array(STRINGS, kind), STRINGS)
for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(1)):
    raw = [b"a", b"\xff", b"\xfe", None]
    case(str(kind), pa.array(raw, kind), ["a", "\\xff", "\\xfe", None])
case("python str", STRINGS, STRINGS)
case("texts of numbers", ["1.5", "-3", "1e3"], ["1.5", "-3", "1e3"], numbers=[1.5, -3.0, 1000.0])
case("bytes of numbers", [b"1.5", b"-3"], ["1.5", "-3"], numbers=[1.5, -3.0])
case("arrow bytes of numbers", pa.array([b"1.5", None]), ["1.5", None], numbers=[1.5, None])
case("numpy U", np.array(["a", "é"]), ["a", "é"])
case("numpy S", np.array([b"a", b"b"]), ["a", "b"])
case("numpy str scalars", [np.str_("a"), np.str_("b")], ["a", "b"])
case("str subclasses", [Word("a"), "b", np.str_("c")], ["a", "b", "c"])
case("str enum", [Sky.SUNNY, Sky.RAINY], ["sunny", "rainy"])
case("enum", [Colour.RED, Colour.BLUE], ["Colour.RED", "Colour.BLUE"])
case("half a character", ["p\ud800", "q"], ["p\ufffd", "q"])
case("bytearray", [bytearray(b"ab"), bytearray(b"\xff")], ["ab", "\\xff"])
case("memoryview", [memoryview(b"ab"), memoryview(b"c")], ["ab", "c"])
case("bool", [True, False, None], ["true", "false", None], numbers=[1.0, 0.0, None])
case("bool beside int", [True, 1, False, 0], ["true", "1", "false", "0"], numbers=[1.0, 1.0, 0.0, 0.0])
case("numpy bool", np.array([True, False]), ["true", "false"], numbers=[1.0, 0.0])
case("numpy bool scalars", [np.bool_(True), np.bool_(False)], ["true", "false"], numbers=[1.0, 0.0])
case("pandas boolean", pd.Series([True, None], dtype="boolean"), ["true", None], numbers=[1.0, None])
case("arrow bool8", pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8())),
     ["true", "false", None], numbers=[1.0, 0.0, None])  # fmt: skip
case("pandas string", pd.Series(STRINGS, dtype="string"), STRINGS)
case("pandas object with NaN", pd.Series(["a", math.nan], dtype=object), ["a", None])
case("pandas object with NA", pd.Series(["a", pd.NA], dtype=object), ["a", None])
case("pandas category", pd.Series(["a", None, "b"], dtype="category"), ["a", None, "b"])
case("pandas category of numbers", pd.Series([1.5, None, 3.0], dtype="category"), ["1.5", None, "3"],
     numbers=[1.5, None, 3.0])  # fmt: skip
case("pandas category of several types", pd.Series(pd.Categorical([1, "a", 1])), ["1", "a", "1"])
case("pandas category of dates", pd.Series(pd.Categorical([dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)])),
     ["2020-01-01", "2020-01-01T05:00:00"], dates=["2020-01-01", "2020-01-01T05:00"])  # fmt: skip
case("pandas cut", pd.cut(pd.Series([1.0, 2.0, 9.0]), [0, 5, 10]), ["(0, 5]", "(0, 5]", "(5, 10]"])
case("pandas interval", pd.Series(pd.arrays.IntervalArray.from_breaks([0.0, 0.5, 1.0])), ["(0.0, 0.5]", "(0.5, 1.0]"])
case("intervals", [pd.Interval(0, 1), pd.Interval(1, 2)], ["(0, 1]", "(1, 2]"])
case("polars String", pl.Series(STRINGS), STRINGS)
case("polars Categorical", pl.Series(["a", None, "b"], dtype=pl.Categorical), ["a", None, "b"])
case("polars Enum", pl.Series(["a", None, "b"], dtype=pl.Enum(["a", "b"])), ["a", None, "b"])
case("polars Binary", pl.Series([b"a", b"\xff"]), ["a", "\\xff"])
case("polars Object", pl.Series([uuid.UUID(int=5), uuid.UUID(int=250)], dtype=pl.Object),
     [str(uuid.UUID(int=5)), str(uuid.UUID(int=250))])  # fmt: skip
case("dictionary", pa.array(["a", None, "b"]).dictionary_encode(), ["a", None, "b"])
case("dictionary that says a twice", pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["a", "a", "b"])),
     ["a", "a", "b"])  # fmt: skip
case("run-end-encoded text", pc.run_end_encode(pa.array(["a", "a", None, "b"])), ["a", "a", None, "b"])
case(
    "uuid",
    [uuid.UUID(int=5), uuid.UUID(bytes=b"\xff" * 16)],
    [str(uuid.UUID(int=5)), "f" * 8 + "-ffff" * 3 + "-" + "f" * 12],
)
case("arrow uuid", pa.array([bytes(15) + b"\x05", b"\xff" * 16], pa.uuid()),
     [str(uuid.UUID(int=5)), "f" * 8 + "-ffff" * 3 + "-" + "f" * 12])  # fmt: skip
case("arrow json", pa.array(['{"a":1}', "[2]"], pa.json_()), ['{"a":1}', "[2]"])
case("path", [pathlib.PurePosixPath("a/b"), pathlib.PurePosixPath("c")], ["a/b", "c"])
case("address", [ipaddress.ip_address("1.2.3.4"), ipaddress.ip_address("::1")], ["1.2.3.4", "::1"])
case("complex", [complex(1, 2), complex(0, 1)], ["(1+2j)", "1j"])
case(
    "union", pa.UnionArray.from_sparse(pa.array([0, 1], pa.int8()), [pa.array([5, 0]), pa.array(["", "a"])]), ["5", "a"]
)
case("nothing", pa.nulls(2), [None, None], numbers=[None, None], dates=[None, None])
case("every word for missing", [None, math.nan, pd.NA, pd.NaT, np.datetime64("NaT"), np.timedelta64("NaT"), D("NaN"),
     np.float32("nan")], [None] * 8, numbers=[None] * 8, dates=[None] * 8)  # fmt: skip

# ---- dates, times, durations

for kind in (pa.date32(), pa.date64()):
    days = [dt.date(2020, 2, 29), dt.date(1600, 1, 1), dt.date(9999, 12, 31), None]
    iso = ["2020-02-29", "1600-01-01", "9999-12-31", None]
    case(str(kind), pa.array(days, kind), iso, dates=iso)
for unit in ("s", "ms", "us", "ns"):
    ticks, at = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}[unit], ["1970-01-01T00:00:01", "1969-12-31", None]
    case(f"timestamp[{unit}]", pa.array([ticks, -86400 * ticks, None], pa.timestamp(unit)), at, dates=at)
    zoned = ["1970-01-01T00:00:01+00:00", "1969-12-31T00:00:00+00:00", None]
    case(f"timestamp[{unit}] with a zone", pa.array([ticks, -86400 * ticks, None], pa.timestamp(unit, "Asia/Tokyo")),
         zoned, dates=zoned)  # fmt: skip
    case(f"duration[{unit}]", pa.array([90061 * ticks, -ticks, None], pa.duration(unit)),
         ["1 day, 1:01:01", "-1 day, 23:59:59", None])  # fmt: skip
for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns")):
    case(str(kind), pa.array([dt.time(5, 6, 7), dt.time(0), None], kind), ["05:06:07", "00:00:00", None])
case("time64 with nanoseconds", pa.array([1, 1000], pa.time64("ns")), ["00:00:00.000000001", "00:00:00.000001"],
     items=[])  # fmt: skip
case("timestamp[ns] with nanoseconds", pa.array([1_577_854_800_123_456_789, 1000], pa.timestamp("ns")),
     ["2020-01-01T05:00:00.123456789", "1970-01-01T00:00:00.000001"],
     dates=["2020-01-01T05:00:00.123456", "1970-01-01T00:00:00.000001"])  # fmt: skip
case("timestamp[s], far", pa.array([10**13, -(2**62)], pa.timestamp("s")),
     ["318857-05-20T17:46:40", "-146138510344-07-14T16:14:56"],
     items=[])  # fmt: skip
case("date32, far", pa.array([2**30, 0], pa.date32()), ["2941775-04-07", "1970-01-01"], items=[])
case("timestamp of a zone that nobody knows", pa.array([0, 1], pa.timestamp("s", "Nowhere/Land")),
     ["1970-01-01T00:00:00+00:00", "1970-01-01T00:00:01+00:00"], items=[])  # fmt: skip
case("python date", [dt.date(2020, 1, 1), dt.date(1, 1, 1), None], ["2020-01-01", "0001-01-01", None],
     dates=["2020-01-01", "0001-01-01", None])  # fmt: skip
case("python datetime", [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 1, 5, 0, 0, 7), dt.datetime.max],
     ["2020-01-01", "2020-01-01T05:00:00.000007", "9999-12-31T23:59:59.999999"],
     dates=["2020-01-01", "2020-01-01T05:00:00.000007", "9999-12-31T23:59:59.999999"])  # fmt: skip
case("date and datetime", [dt.date(2020, 1, 1), dt.datetime(2020, 1, 1, 5)], ["2020-01-01", "2020-01-01T05:00:00"],
     dates=["2020-01-01", "2020-01-01T05:00"])  # fmt: skip
case("datetimes of two zones", [dt.datetime(2020, 1, 1, 5, tzinfo=EAST), dt.datetime(2020, 1, 1, 22, tzinfo=WEST)],
     ["2019-12-31T20:00:00+00:00", "2020-01-02T03:00:00+00:00"],
     dates=["2019-12-31T20:00", "2020-01-02T03:00"])  # fmt: skip
case("datetimes with and without a zone", [dt.datetime(2020, 1, 1, 5), dt.datetime(2020, 1, 1, 5, tzinfo=EAST)],
     ["2020-01-01T05:00:00", "2019-12-31T20:00:00+00:00"], dates=["2020-01-01T05:00", "2019-12-31T20:00"])  # fmt: skip
case("the first and last instants", [dt.datetime.min.replace(tzinfo=EAST), dt.datetime.max.replace(tzinfo=WEST)],
     ["0000-12-31T15:00:00+00:00", "10000-01-01T04:59:59.999999+00:00"])  # fmt: skip
case("texts of dates", ["2020-01-01", "2020-01-01T05:00+09:00", None], ["2020-01-01", "2020-01-01T05:00+09:00", None],
     dates=["2020-01-01", "2019-12-31T20:00", None])  # fmt: skip
case("bytes of dates", [b"2020-01-01", None], ["2020-01-01", None], dates=["2020-01-01", None])
for unit in ("Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns"):
    first = np.datetime64("2020-01-01" if unit != "W" else "2020-01-02").astype(f"M8[{unit}]")
    iso = ["2020-01-02" if unit == "W" else "2020-01-01", None]
    case(f"numpy datetime64[{unit}]", np.array([first, np.datetime64("NaT")]), iso, dates=iso)
    case(f"numpy datetime64[{unit}] scalars", [first, None], iso, dates=iso)
case("numpy datetime64[ps]", np.array([1, 0], dtype="M8[ps]"), ["1970-01-01T00:00:00.000000000001", "1970-01-01"],
     dates=["1970-01-01", "1970-01-01"])  # fmt: skip
case("datetime64 of several units",
     [np.datetime64("2020-01-01T05", "h"), np.datetime64("2020-01-01T05:00:00.123456789")],
     ["2020-01-01T05:00:00", "2020-01-01T05:00:00.123456789"],
     dates=["2020-01-01T05:00:00", "2020-01-01T05:00:00.123456"])  # fmt: skip
for unit, text in (("W", "35 days, 0:00:00"), ("D", "5 days, 0:00:00"), ("h", "5:00:00"), ("s", "0:00:05"),
                   ("ns", "0:00:00.000000005"), ("M", "5 months")):  # fmt: skip
    case(f"numpy timedelta64[{unit}]", np.array([5, -5], dtype=f"m8[{unit}]")[:1], [text])
    case(f"numpy timedelta64[{unit}] scalars", [np.timedelta64(5, unit), None], [text, None])
case("python time", [dt.time(5), dt.time(5, 0, 0, 7), None], ["05:00:00", "05:00:00.000007", None])
case("python time with a zone", [dt.time(5, tzinfo=EAST), dt.time(5)], ["05:00:00+09:00", "05:00:00"])
case("python timedelta", [dt.timedelta(days=1, seconds=3), -dt.timedelta(seconds=1), dt.timedelta.max],
     ["1 day, 0:00:03", "-1 day, 23:59:59", "999999999 days, 23:59:59.999999"])  # fmt: skip
case("pandas Timestamps", [pd.Timestamp("2020-01-01 05:00:00.123456789"), pd.Timestamp("2020-01-01"), pd.NaT],
     ["2020-01-01T05:00:00.123456789", "2020-01-01", None],
     dates=["2020-01-01T05:00:00.123456", "2020-01-01", None])  # fmt: skip
case("pandas Timestamps of two zones",
     [pd.Timestamp("2020-01-01 05:00", tz="Asia/Tokyo"), pd.Timestamp("2020-01-01", tz="UTC")],
     ["2019-12-31T20:00:00+00:00", "2020-01-01T00:00:00+00:00"], dates=["2019-12-31T20:00", "2020-01-01"])  # fmt: skip
case(
    "pandas Timedeltas",
    [pd.Timedelta("1D"), pd.Timedelta(1, "ns"), pd.NaT],
    ["1 day, 0:00:00", "0:00:00.000000001", None],
)
case("pandas datetime64", pd.Series(pd.to_datetime(["2020-01-01 05:00", None])), ["2020-01-01T05:00:00", None],
     dates=["2020-01-01T05:00", None])  # fmt: skip
case("pandas datetime64 with a zone",
     pd.Series(pd.to_datetime(["2020-01-01 05:00", None])).dt.tz_localize("Asia/Tokyo"),
     ["2019-12-31T20:00:00+00:00", None], dates=["2019-12-31T20:00", None])  # fmt: skip
case("pandas timedelta64", pd.Series(pd.to_timedelta(["1D", None])), ["1 day, 0:00:00", None])
case("pandas period", pd.Series(pd.period_range("2020-01", periods=2, freq="M")), ["2020-01", "2020-02"])
case("periods", [pd.Period("2020-01"), pd.Period("2020-01-01", freq="D")], ["2020-01", "2020-01-01"])
case("pandas timestamp[pyarrow]", pd.Series([dt.datetime(2020, 1, 1, 5), None], dtype="timestamp[us][pyarrow]"),
     ["2020-01-01T05:00:00", None], dates=["2020-01-01T05:00", None])  # fmt: skip
case("polars Date", pl.Series([dt.date(2020, 1, 1), None]), ["2020-01-01", None], dates=["2020-01-01", None])
case("polars Datetime with a zone", pl.Series([dt.datetime(2020, 1, 1, 5)]).dt.replace_time_zone("Asia/Tokyo"),
     ["2019-12-31T20:00:00+00:00"], dates=["2019-12-31T20:00"])  # fmt: skip
case("polars Time", pl.Series([dt.time(5), None]), ["05:00:00", None])
case("polars Duration", pl.Series([dt.timedelta(1), None]), ["1 day, 0:00:00", None])
case("dictionary of timestamps", pa.array([0, 10**12, 0], pa.timestamp("us")).dictionary_encode(),
     ["1970-01-01", "1970-01-12T13:46:40", "1970-01-01"],
     dates=["1970-01-01", "1970-01-12T13:46:40", "1970-01-01"])  # fmt: skip


def names(values: Values) -> str:
    return values.name


each = pytest.mark.parametrize("values", CASES, ids=names)


def counted(kind: str, column: Any, rows: int) -> tb.Tally:
    schema = tb.Schema([tb.Column("c", kind)], target="y")
    return tb.count({"c": column, "y": ["p", "q", "q", "p", "p", "q", "q", "p"][:rows]}, schema)


def readings(values: Values) -> list[tuple[str, list[Any]]]:
    """The kinds of column that the values can be, and plain values that count as the same."""
    out: list[tuple[str, list[Any]]] = [("category", values.texts), ("text", values.texts)]
    if values.numbers is not None:
        out.append(("number", values.numbers))
    if values.dates is not None:
        out.append(("date", values.dates))
    return out


def test_there_are_many_types():
    assert len(CASES) >= 60 and len({v.name for v in CASES}) == len(CASES)


@each
def test_a_column_counts_as_its_texts_numbers_or_dates(values: Values):
    rows = len(values.texts)
    for kind, plain in readings(values):
        assert counted(kind, values.column, rows) == counted(kind, plain, rows), kind
        assert counted(kind, values.one_by_one() or values.column, rows) == counted(kind, plain, rows), kind


@each
def test_a_column_can_be_cut_anywhere(values: Values):
    rows = len(values.texts)
    for kind, _ in readings(values):
        schema = tb.Schema([tb.Column("c", kind)], target="y")
        whole = tb.count({"c": values.column, "y": ["p"] * rows}, schema)
        for at in range(1, rows):
            pieces = ((values.cut(0, at), at), (values.cut(at, rows), rows - at))
            assert whole == sum(tb.count({"c": c, "y": ["p"] * n}, schema) for c, n in pieces), (kind, at)


@each
def test_a_row_counts_and_is_scored_as_in_a_column(values: Values):
    for kind, plain in readings(values):
        schema = tb.Schema([tb.Column("c", kind)], target="y")
        base = tb.count({"c": [plain[0], None, plain[-1]], "y": ["p", "q", "q"]}, schema).model()
        one_by_one = base
        for value, same in zip(values.one_by_one(), plain, strict=False):
            expected = base.predict_proba({"c": [same, None]})
            assert np.array_equal(base.predict_proba([{"c": value}, {"c": None}]), expected), kind
            alone = base.predict_proba({"c": value})  # in plain Python: the same sum, taken in another order
            assert alone.shape == (1, 2) and np.allclose(alone, expected[:1], rtol=1e-12, atol=0), kind
            one_by_one = one_by_one.update({"c": value, "y": "p"}, new_classes="allow")
        rows = values.one_by_one()
        if rows:
            assert one_by_one.tally == base.tally + tb.count({"c": plain, "y": ["p"] * len(rows)}, schema), kind
            forgotten = one_by_one
            for value in rows:
                forgotten = forgotten.forget({"c": value, "y": "p"})
            assert forgotten.tally == base.tally, kind


@each
def test_a_column_can_be_the_target(values: Values):
    schema = tb.Schema([tb.Column("x", "category")], target="c")
    x = ["u", "v", "u", "v", "u", "v", "u", "v"][: len(values.texts)]
    assert tb.count({"x": x, "c": values.column}, schema) == tb.count({"x": x, "c": values.texts}, schema)


def some_pairs(names: Iterable[str]) -> list[tuple[str, str]]:
    """Every nineteenth pair, or all of them where all tests are asked for."""
    return list(itertools.combinations(names, 2))[:: 1 if ALL else 19]


def test_no_value_changes_what_those_beside_it_count_as():
    schema = tb.Schema([tb.Column("c", "category"), tb.Column("t", "text")], target="y")

    def of(items: list[Any]) -> tb.Tally:
        return tb.count({"c": items, "t": items, "y": ["p"] * len(items)}, schema)

    alone = {v.name: of(v.one_by_one()) for v in CASES if v.one_by_one()}
    by_name = {v.name: v.one_by_one() for v in CASES}
    for one, other in some_pairs(alone):
        assert of(by_name[one] + by_name[other]) == alone[one] + alone[other], (one, other)


def test_no_number_or_date_changes_what_those_beside_it_count_as():
    for kind, has in (("number", lambda v: v.numbers), ("date", lambda v: v.dates)):
        schema = tb.Schema([tb.Column("c", kind)], target="y")
        some = {v.name: v.one_by_one() for v in CASES if has(v) is not None and v.one_by_one()}
        alone = {n: tb.count({"c": items, "y": ["p"] * len(items)}, schema) for n, items in some.items()}
        for one, other in some_pairs(some):
            both = some[one] + some[other]
            assert tb.count({"c": both, "y": ["p"] * len(both)}, schema) == alone[one] + alone[other], (one, other)


@each
def test_a_value_counts_the_same_in_a_csv_file(values: Values, tmp_path: pathlib.Path):
    path = tmp_path / "values.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([("c", "y"), *((t, "p") for t in values.texts)])
    for kind, plain in readings(values):
        if kind == "date" and values.texts != values.dates:
            continue  # a date without a time is written as such
        schema = tb.Schema([tb.Column("c", kind)], target="y")
        if kind == "number" and not all(t is None or _is_float(t) for t in values.texts):
            continue
        assert tb.count(path, schema) == tb.count({"c": plain, "y": ["p"] * len(plain)}, schema), kind


def _is_float(text: str) -> bool:
    try:
        return math.isfinite(float(text))
    except ValueError:
        return False


def test_what_duckdb_hands_over_counts_as_in_python():
    table = duckdb.sql(
        "SELECT * FROM (VALUES (1::HUGEINT, 94.8::DECIMAL(4,1), TIMESTAMP_NS '2020-01-01 05:00:00.123456789', "
        "TIME '05:00', "
        "'00000000-0000-0000-0000-000000000005'::UUID, '\\xFF'::BLOB, TIMESTAMPTZ '2020-01-01 05:00+09')) "
        "AS t(h, d, s, t, u, b, z)"
    )
    texts = {
        "h": ["1"], "d": ["94.8"], "s": ["2020-01-01T05:00:00.123456789"], "t": ["05:00:00"],
        "u": [str(uuid.UUID(int=5))], "b": ["\\xff"], "z": ["2019-12-31T20:00:00+00:00"],
    }  # fmt: skip
    schema = tb.Schema([tb.Column(c, "category") for c in "dstubz"], target="h")
    assert tb.count(table, schema) == tb.count(texts, schema)


# ---- the pieces of the road


def test_decimals_are_the_nearest_floats():
    rng = np.random.default_rng(7)
    for scale, digits in ((0, 6), (2, 8), (5, 17), (9, 18), (20, 22), (25, 30), (30, 38)):
        whole = [int("".join(map(str, rng.integers(0, 10, digits)))) * (1, -1)[i % 2] for i in range(400)]
        values = [None if i % 50 == 3 else D(w).scaleb(-scale) for i, w in enumerate(whole)]
        for kind in (pa.decimal128(38, scale), pa.decimal256(60, scale)):
            column = pa.array(values, kind)
            for part in (column, column[7:200], column[:0]):
                expected = [math.nan if v is None else float(v) for v in part.to_pylist()]
                assert np.array_equal(floats(part), np.array(expected), equal_nan=True), (kind, scale)


def test_every_decimal_that_was_counted_can_be_forgotten():
    rng = np.random.default_rng(8)
    x = [
        D(int(v)) / D(10 ** int(k))
        for v, k in zip(rng.integers(-(10**5), 10**5, 200), rng.integers(0, 5, 200), strict=True)
    ]
    schema = tb.Schema([tb.Column("x", "number")], target="y")
    rest = tb.count({"x": x, "y": ["a", "b"] * 100}, schema)
    assert rest == tb.count({"x": [float(v) for v in x], "y": ["a", "b"] * 100}, schema)
    for i, value in enumerate(x[:-1]):
        rest = rest.forget({"x": [value], "y": ["ab"[i % 2]]})
    assert rest == tb.count({"x": x[-1:], "y": ["b"]}, schema)


def test_parts_of_dates_are_those_of_python():
    rng = np.random.default_rng(9)
    first, last = dt.datetime.min, dt.datetime.max
    span = (last - first) // dt.timedelta(microseconds=1)
    moments = [first + dt.timedelta(microseconds=int(rng.random() * span)) for _ in range(500)] + [first, last]
    schema = tb.Schema([tb.Column("d", "date")], target="y")
    tally = tb.count({"d": moments, "y": ["p"] * len(moments)}, schema)
    assert tally == sum(tb.count([{"d": m, "y": "p"}], schema) for m in moments)
    for part, spelled in (("weekday", "%a"), ("month", "%b"), ("hour", "%-H")):
        found = tally.columns[f"d.{part}"].sheets["values"].slot_names
        assert set(found) == {m.strftime(spelled) for m in moments}
    exact = [(m - dt.datetime(1970, 1, 1)) / dt.timedelta(days=1) for m in moments]
    days = tb.Schema([tb.Column("d", "number")], target="y")
    same = tb.count({"d": exact, "y": ["p"] * len(moments)}, days).columns["d"]
    assert tally.columns["d.days"].sheets["moments"] == same.sheets["moments"]


def test_a_mark_for_missing_is_found_in_every_type():
    schema = tb.Schema([tb.Column("d", "date", missing=("1900-01-01",))], target="y")
    given = [
        [dt.date(1900, 1, 1), None],
        ["1900-01-01", None],
        [dt.datetime(1900, 1, 1), None],
        ["1900-01-01T00:00", None],
    ]
    none = tb.count({"d": [None, None], "y": ["p", "q"]}, schema)
    for column in (*given, pa.array([dt.date(1900, 1, 1), None])):
        assert tb.count({"d": column, "y": ["p", "q"]}, schema) == none
    numbers = tb.Schema([tb.Column("x", "number", missing=("-999",))], target="y")
    none = tb.count({"x": [None, 1.0], "y": ["p", "q"]}, numbers)
    for column in ([-999, 1], ["-999", "1"], ["-999.0", " 1"], [D("-999.0"), 1], ["-999.0", "1"]):
        assert tb.count({"x": column, "y": ["p", "q"]}, numbers) == none


# ---- what is no value


NOT_ONE = {
    "list": [["a"], ["b"]], "tuple": [(1, 2), (3, 4)], "tuple beside a text": [(1, 2), "u"], "set": [{1}, {2}],
    "dict": [{"a": 1}, {"b": 2}], "range": [range(2), range(3)], "arrow list": pa.array([[1.0], [2.0]]),
    "list view": pa.array([[1.0], [2.0]], pa.list_view(pa.float64())), "struct": pa.array([{"a": 1}, {"a": 2}]),
    "map": pa.array([[("a", 1)], []], pa.map_(pa.string(), pa.int64())),
    "fixed list": pa.array([[1], [2]], pa.list_(pa.int8(), 1)),
    "dictionary of lists": pa.DictionaryArray.from_arrays(pa.array([0, 1]), pa.array([[1], [2]])),
    "interval": pa.array([(1, 2, 3), None], pa.month_day_nano_interval()),
}  # fmt: skip


@pytest.mark.parametrize("name", NOT_ONE)
@pytest.mark.parametrize("kind", ["category", "text", "number", "date", "target"])
def test_a_collection_is_refused_where_one_value_belongs(name: str, kind: str):
    y, x = ["p", "q"], {"c": NOT_ONE[name]}
    schema = tb.Schema([tb.Column("c" if kind != "target" else "y", kind if kind != "target" else "category")],
                       target="y" if kind != "target" else "c")  # fmt: skip
    with pytest.raises(tb.DataError, match="'c'") as caught:
        tb.count({**x, "y": y}, schema)
    assert "\n\nHint: " in str(caught.value)


@pytest.mark.parametrize("name", NOT_ONE)
def test_a_table_with_such_a_column_can_still_be_fitted(name: str):
    column = NOT_ONE[name]
    many = pa.concat_arrays([column] * 10) if isinstance(column, pa.Array) and "view" not in name else list(column) * 10
    if isinstance(column, pa.Array) and "view" in name:
        many = pa.array(column.to_pylist() * 10, column.type)
    rows = {"c": many, "x": ["u", "v", "v", "w"] * 5, "y": ["p", "q"] * 10}
    model = tb.fit(rows, target="y", calibrate=False)
    assert model.predict_proba(rows).shape == (20, 2)
    with pytest.raises(tb.DataError):
        tb.fit(rows, target="c")


# ---- one row, or columns


@pytest.mark.parametrize(
    ("kind", "filled", "missing"),
    [
        ("bag", [["a"], ["b"]], [None, None]),
        ("vector", [[1.0, 2.0], [3.0, 4.0]], [None, None]),
        ("bag", [{"a": 1}, {}], [None]),
    ],
)
@pytest.mark.parametrize(
    "make", [list, lambda v: np.array([*v, None], dtype=object)[:-1], lambda v: pd.Series(v, dtype=object)]
)
def test_columns_of_missing_bags_and_vectors_are_no_row(kind: str, filled: list[Any], missing: list[Any], make: Any):
    column = tb.Column("w", kind, width=2) if kind == "vector" else tb.Column("w", kind)
    schema = tb.Schema([column], target="y")
    model = tb.count({"w": filled, "y": ["p", "q"]}, schema).model()
    rows = {"w": make(missing), "y": ["p", "q"][: len(missing)]}
    assert model.predict_proba(rows).shape == model.predict_proba({"w": make(missing)}).shape == (len(missing), 2)
    assert model.update(rows).tally == model.tally + tb.count(rows, schema)
    assert model.update(rows).forget(rows).tally == model.tally
    assert model.predict_proba({"w": make(filled)}).shape == (2, 2)
    assert model.predict_proba({"w": filled[0]}).shape == (1, 2)


def test_one_value_beside_columns_is_refused():
    schema = tb.Schema([tb.Column("x", "category")], target="y")
    for y in ("pq", 3, b"pq"):
        with pytest.raises(tb.DataError, match="'y' is one value"):
            tb.count({"x": ["u", "v"], "y": y}, schema)


def test_a_row_with_a_date_is_read_in_plain_python(monkeypatch: pytest.MonkeyPatch):
    schema = tb.Schema([tb.Column("d", "date"), tb.Column("x", "number")], target="y")
    days = [dt.datetime(2020, 1, 1) + dt.timedelta(hours=7 * i) for i in range(100)]
    model = tb.count({"d": days, "x": range(100), "y": ["p", "q"] * 50}, schema).model()
    batch = model.predict_proba({"d": days, "x": range(100)})
    monkeypatch.setattr("tallybayes.model.scoring.open_source", None)  # the long way would need it
    for day, x, expected in zip(days, range(100), batch, strict=True):
        for same in (day, day.isoformat(), pd.Timestamp(day), np.datetime64(day)):
            assert np.allclose(model.predict_proba({"d": same, "x": x}), [expected], rtol=1e-12, atol=0)


# ---- names that mean something to the program


def test_a_column_of_any_name_is_only_a_column():
    x, y = ["u", "v", "v", "u"] * 10, ["a", "b"] * 20
    weights = [5.0, 1.0] * 20
    for name in ("(weights)", "weights", "y ", "", "x0"):
        plain = tb.fit({name: x, "y": y}, target="y", calibrate=False)
        assert [c.reads for c in plain.schema.counted] == [name] and plain.tally.class_weights().tolist() == [20, 20]
        beside = tb.fit({name: x, "y": y}, target="y", weights=weights, calibrate=False)
        named = tb.fit({name: x, "w": weights, "y": y}, target="y", weights="w", calibrate=False)
        assert beside.tally.class_weights().tolist() == named.tally.class_weights().tolist() == [100, 20]
        own = tb.fit({"c": x, name: weights, "y": y}, target="y", weights=name, calibrate=False)
        assert own.tally.class_weights().tolist() == [100, 20] and own.schema.names == ("c",)


def test_weights_beside_a_stream_are_kept():
    batch = pa.record_batch({"x": ["u", "v"] * 3, "y": ["a", "b"] * 3})
    stream = pa.RecordBatchReader.from_batches(batch.schema, [batch, batch])
    model = tb.fit(stream, target="y", weights=[5.0, 1.0] * 6, calibrate=False)
    assert model.tally.class_weights().tolist() == [30, 6]


def test_the_target_may_be_called_nothing():
    data = {"x": ["u", "v"] * 10, "": ["a", "b"] * 10, "y": ["c", "c"] * 10}
    model = tb.fit(data, target="", calibrate=False)
    assert model.classes == ("a", "b") and model.schema.target == ""
    assert tb.infer(data, "").target == "" and model.predict(data).tolist() == data[""]
    parts = tb.split({"x": data["x"], "": data[""]}, target="", seed=1)
    assert [sorted(set(part[""])) for part in parts.values()] == [["a", "b"]] * 3


def test_texts_of_which_each_has_a_class_of_its_own_are_fitted():
    for rows in (20, 24, 60):
        data = {"t": [f"one two three {i} w{i}" for i in range(rows)], "y": [f"c{i}" for i in range(rows)]}
        with pytest.warns(tb.TallybayesWarning, match="a label of 'y' of their own"):
            assert len(tb.fit(data, target="y").classes) == rows


def test_values_that_only_rows_without_a_label_have_can_be_drawn():
    columns = {"category": ["a", "b"], "number": [1.0, 2.0], "text": ["red fish", "blue"], "bag": [["a"], ["b"]],
               "vector": [[1.0, 2.0], [2.0, 3.0]], "date": ["2020-01-01", "2020-05-01"]}  # fmt: skip
    for kind, values in columns.items():
        column = tb.Column("c", kind, width=2) if kind == "vector" else tb.Column("c", kind)
        data = {"c": [*values, None, None], "y": [None, None, "p", "q"]}
        drawn = tb.count(data, tb.Schema([column], target="y")).model().generative.sample(5, seed=1)
        assert drawn.num_rows == 5 and set(drawn["y"].to_pylist()) <= {"p", "q"}


def test_none_of_a_word_is_no_word():
    schema = tb.Schema([tb.Column("w", "bag")], target="y")
    given = [{"app": 0.5, "star": 0, "bad": 1}, {"oil": 1, "star": 0.0}, {"star": D(0)}, {"oil": 1e-30}]
    model = tb.count({"w": given, "y": ["a", "b", "b", "b"]}, schema).model()
    assert model.tally == tb.count(
        {"w": [{"app": 0.5, "bad": 1}, {"oil": 1}, {}, {}], "y": ["a", "b", "b", "b"]}, schema
    )
    for row in given:
        assert "star" not in str(model.what_if({"w": row}))
        assert "star" not in str(model.explain({"w": row}))


def test_dates_beyond_pythons_are_counted_scored_and_explained():
    near = list(range(19000, 19010))
    for far in ([2**30] * 10, [-(2**30)] * 10, [2_932_896] * 10):
        data = {"d": pa.array([*far, *near], pa.date32()), "y": ["a"] * 10 + ["b"] * 10}
        model = tb.fit(data, target="y", calibrate=False)
        assert model.predict(data).tolist() == data["y"]
        for row in (0, 15):
            assert str(model.what_if(data, number=row)) and str(model.explain(data, row))


def test_classes_of_decimals_stay_apart():
    big = [D(2**60), D(2**60 + 1)]
    assert tb.fit({"x": ["u", "v"] * 10, "y": big * 10}, target="y", calibrate=False).classes == tuple(map(str, big))
    assert tb.fit({"x": ["u", "v"] * 10, "y": [D("1.50"), D(2)] * 10}, target="y", calibrate=False).classes == (
        1.5,
        2.0,
    )


@pytest.mark.parametrize("kind", ["int8", "int16", "uint8", "int64", "uint64"])
def test_whole_numbers_may_fill_the_range_of_their_type(kind):
    about = np.iinfo(kind)
    low = int(about.min) if about.bits < 64 else int(about.max) - 255
    high = low + 255
    values = np.array([low, high, low + 1, *[low] * 300], dtype=kind)
    under = tb.Schema([tb.Column("c", "category")], target="y")
    tally = tb.count({"c": values, "y": values}, under)
    texts = sorted(map(str, {low, high, low + 1}))
    assert list(tally.classes) == texts == sorted(tally.columns["c"].sheets["values"].slot_names)
