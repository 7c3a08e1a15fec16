"""Times of day and durations as hours: the same number whatever wrote them, in a column, a row and a file."""

from __future__ import annotations

import datetime as dt
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import tallybayes as tb
from tallybayes.base import canon
from tallybayes.data.clock import hours_of, in_hours

pytestmark = pytest.mark.core

RNG = np.random.default_rng(5)
MINUTES = np.clip(RNG.normal(600, 200, 300).astype(int), 0, 1439)
Y = np.where(MINUTES + RNG.normal(0, 100, 300) > 600, "late", "early").tolist()
TIMES = [dt.time(m // 60, m % 60, 7) for m in MINUTES.tolist()]
ONE = {"at": [t.isoformat() for t in TIMES], "y": Y}


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("00:00", 0.0), ("9:05", 9 + Fraction(5, 60)), (" 23:59:59 ", 24 - Fraction(1, 3600)), ("12:00 AM", 0),
        ("12:30 p.m.", 12.5), ("1:30pm", 13.5), ("100:15", 100.25), ("-0:45", -0.75), ("+2:30", 2.5),
        ("1 day, 2:00:00", 26), ("2 days 00:30:00", 48.5), ("0 days 10:30:00.5", 10.5 + Fraction(1, 7200)),
        ("-1 day, 23:59:59", -Fraction(1, 3600)), ("0:00:00.000001", Fraction(1, 3_600_000_000)),
    ],
)  # fmt: skip
def test_what_a_text_spells(text: str, hours: Any) -> None:
    assert hours_of(text) == float(hours)


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("1h 20min", Fraction(4, 3)), ("1h20m", Fraction(4, 3)), ("1 h 03 min", 1.05), ("0.3 h", 0.3),
        ("1,5 Std.", 1.5), ("2 hours and 30 seconds", 2 + Fraction(1, 120)), ("3 Tage, 2 h", 74), ("-45 MIN", -0.75),
        ("90 sec", 0.025), ("PT1H20M", Fraction(4, 3)), ("P1DT0.5S", 24 + Fraction(1, 7200)), ("-P2W", -336),
        ("1.234567891 h", Fraction(1_234_567_891, 10**9)), ("0 min", 0), (" 57 min ", 0.95),
        ("100000 s", Fraction(1000, 36)),
    ],
)  # fmt: skip
def test_what_a_duration_with_units_spells(text: str, hours: Any) -> None:
    assert hours_of(text) == float(hours)


@pytest.mark.parametrize(
    "text",
    [
        "min",
        "P",
        "PT",
        "P1Y",
        "P1M",
        "PT1S2H",
        "2 days",
        "3min 2h",
        "1.5 h 3 min",
        "1,500 h",
        "1h,",
        "5 h 3",
        "1 hm",
        "h 3",
    ],
)
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match="is no time"):
        hours_of(text)


@pytest.mark.parametrize("write", [
    lambda m: f"{m // 60}h {m % 60}min", lambda m: f"{m} min", lambda m: f"PT{m // 60}H{m % 60}M",
    lambda m: f"{m // 60}:{m % 60:02}", lambda m: f"{m // 60} hours and {m % 60} minutes",
])  # fmt: skip
def test_durations_count_alike_however_they_are_written(write: Any) -> None:
    data = {"at": [write(m) for m in MINUTES.tolist()], "y": Y}
    schema = tb.infer({"at": [f"{m} min" for m in MINUTES.tolist()], "y": Y}, "y")
    found = tb.infer(data, "y")["at"]
    assert found.kind == "number" and found.spelling == tb.Spelling(clock=True)
    tally = tb.count(data, schema)
    assert tally == tb.count({"at": (MINUTES / 60).tolist(), "y": Y}, schema)
    model = tally.model()
    row = {"at": data["at"][0]}
    assert model.predict_proba([row]).tolist() == model.predict_proba([{"at": MINUTES[0] / 60}]).tolist()


@pytest.mark.parametrize(
    "values", [[f"{n}m" for n in range(40)], ["80s", "90s", "60s"], ["2 days", "3 days", "9 days"]]
)
def test_what_may_be_metres_decades_or_a_count_of_days_is_no_duration(values: list[str]) -> None:
    data = {"at": (values * 100)[:300], "y": Y}
    assert tb.infer(data, "y")["at"].kind == "category"


@pytest.mark.parametrize(
    "text",
    ["", "9", "9:5", "24:60", "1:2:3", "13:00 pm", "0:30 am", "10:00+02:00", "10:00Z", "٣:٠٠", "a 10:00", "1 day"],
)
def test_what_is_no_time(text: str) -> None:
    with pytest.raises(ValueError, match="is no time"):
        hours_of(text)


@examples(200)
@given(st.integers(-(10**17), 10**17))
def test_a_duration_has_one_number_whatever_holds_it(microseconds: int) -> None:
    took = dt.timedelta(microseconds=microseconds)
    wanted = float(Fraction(microseconds, 3_600_000_000))
    assert hours_of(str(canon.text(took))) == wanted
    found = in_hours(pa.array([microseconds, None], pa.duration("us"))).to_pylist()
    assert found == [wanted, None]
    if microseconds % 1_000_000 == 0:
        assert in_hours(pa.array([microseconds // 1_000_000], pa.duration("s"))).to_pylist() == [wanted]


def columns() -> dict[str, Any]:
    seconds = [t.hour * 3600 + t.minute * 60 + t.second for t in TIMES]
    return {
        "text": [t.isoformat() for t in TIMES],
        "half days": [t.strftime("%I:%M:%S %p") for t in TIMES],
        "time": TIMES,
        "duration": [dt.timedelta(seconds=s) for s in seconds],
        "pandas": pd.to_timedelta(seconds, unit="s"),
        "as pandas writes": [str(pd.Timedelta(seconds=s)) for s in seconds],
        "numpy": np.array(seconds, dtype="m8[s]"),
        "time32": pa.array(seconds, pa.time32("s")),
        "time64": pa.array([s * 10**9 for s in seconds], pa.time64("ns")),
        "duration, ms": pa.array([s * 1000 for s in seconds], pa.duration("ms")),
        "dictionary": pa.array([t.isoformat() for t in TIMES]).dictionary_encode(),
    }


@pytest.mark.parametrize("how", columns())
def test_a_column_is_counted_alike_whatever_type_holds_it(how: str) -> None:
    tally = tb.count(ONE, tb.infer(ONE, "y"))
    data = {"at": columns()[how], "y": Y}
    if how != "dictionary":
        assert tb.infer(data, "y")["at"].kind == "number"
    assert tb.count(data, tally.schema) == tally
    model = tally.model()
    first = data["at"][0] if isinstance(data["at"], list) else data["at"][:1]
    np.testing.assert_allclose(model.predict_proba({"at": first}), model.predict_proba(ONE)[:1], rtol=1e-12)


def test_times_are_proposed_as_hours() -> None:
    column = tb.infer(ONE, "y")["at"]
    assert column.kind == "number" and column.spelling == tb.Spelling(clock=True)
    assert "times in hours" in column.reason
    model = tb.fit(ONE, "y")
    assert model.settings.calibrated is not None and model.settings.calibrated.accuracy > 0.75
    assert model.predict({"at": "06:00"})[0] == "early" and model.predict([{"at": dt.time(20)}])[0] == "late"
    assert model.predict({"at": 20.0})[0] == "late"  # hours already


def test_odd_and_missing_cells() -> None:
    at: list[str | None] = [*ONE["at"]]
    at[3], at[5], at[8] = None, "noonish", "n/a"
    with pytest.warns(tb.TallybayesWarning, match="1 of 298 cells of 'at': 'noonish'"):
        model = tb.fit({"at": at, "y": Y}, "y")
    rest = {
        "at": [t for i, t in enumerate(at) if i not in (3, 5, 8)],
        "y": [v for i, v in enumerate(Y) if i not in (3, 5, 8)],
    }
    lone = tb.count(rest, model.schema).columns["at"]
    assert model.tally is not None and model.tally.columns["at"] == lone
    with pytest.raises(tb.DataError, match="'noonish' is not a number"):
        tb.fit({"at": at, "y": Y}, "y", strict=True)


@pytest.mark.parametrize("values", [["1:0", "2:1", "0:3"], ["10:00+02:00", "11:30+02:00", "12:00+02:00"]])
def test_what_only_looks_like_times_stays_a_category(values: list[str]) -> None:
    data = {"at": values * 100, "y": Y}
    assert tb.infer(data, "y")["at"].kind == "category"


def test_a_person_may_take_them_as_categories() -> None:
    shifts = {"at": ["06:00", "14:00", "22:00"] * 100, "y": Y}
    assert tb.infer(shifts, "y")["at"].kind == "number"
    model = tb.fit(shifts, "y", kinds={"at": "category"})
    assert model.tally is not None
    assert set(model.tally.columns["at"].sheets["values"].slot_names) == {"06:00", "14:00", "22:00"}


def test_files_and_exports(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    pd.DataFrame(ONE).to_csv(path, index=False)
    model = tb.fit(str(path), "y")
    assert model.tally == tb.fit(ONE, "y").tally
    model.save(tmp_path / "m.tally")
    again = tb.load(tmp_path / "m.tally")
    assert again.tally == model.tally and again.settings == model.settings and again.schema == model.schema
    assert again.predict_proba(ONE).tolist() == model.predict_proba(ONE).tolist()
    with pytest.raises(tb.SettingsError, match="column 'at' is a time that is read as hours, which this SQL"):
        model.to_sql("rows")
