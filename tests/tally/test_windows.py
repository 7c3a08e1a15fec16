"""Windows: any stretch of periods has the digest of its rows counted anew, however they came, decayed ones too."""

import datetime as dt
import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import ALL

import tallybayes as tb
from tallybayes.data.dates import UNITS, unit_name, unit_number
from tallybayes.tally.period_sums import cover, halved

SCHEMA = tb.Schema([tb.Column("x", "number", cells=tb.Cells(0.0, -2)), tb.Column("c", "category")], target="y")


def table(rows):
    return {name: [row[name] for row in rows] for name in ("x", "c", "y", "t")}


def counted(rows, schema=SCHEMA, weights=None):
    return tb.Tally.of(schema, table(rows), weights=weights) if rows else tb.Tally.zero(schema)


ROW = st.fixed_dictionaries({
    "x": st.sampled_from([None, 1.5, -2.0, 1e300, 5e-324, 0.1]),
    "c": st.sampled_from(["a", "b", None]),
    "y": st.sampled_from(["p", "q", None]),
    "t": st.integers(-6, 6),
})  # fmt: skip
STEP = st.one_of(
    st.tuples(st.just("add"), st.lists(ROW, max_size=8)),
    st.tuples(st.just("forget"), st.integers(0, 3)),
    st.tuples(st.just("drop"), st.integers(-6, 6)),
)


@settings(max_examples=300 if ALL else 15, deadline=None)
@given(st.lists(STEP, max_size=6), st.randoms(use_true_random=False))
def test_any_window_is_that_of_its_rows_counted_anew(steps, chance):
    windows, rows = tb.Windows(SCHEMA, by="number", time="t"), []
    for what, given_ in steps:
        if what == "add":
            windows.add(table(given_))
            rows += given_
        elif what == "drop":
            windows.drop(given_)
            rows = [r for r in rows if r["t"] >= given_]
        elif rows:
            gone = [rows.pop(chance.randrange(len(rows))) for _ in range(min(given_, len(rows)))]
            windows.forget(table(gone))
        assert windows.numbers == tuple(sorted({r["t"] for r in rows}))
        for _ in range(3):
            low, high = sorted(chance.randint(-7, 8) for _ in range(2))
            inside = [r for r in rows if low <= r["t"] < high]
            assert windows.window(low, high).digest == counted(inside).digest
            life, before = chance.randint(1, 4), [r for r in rows if r["t"] < high]
            weights = [2.0 ** -((high - 1 - r["t"]) // life) for r in before]
            assert windows.decayed(life, end=high).digest == counted(before, weights=weights).digest
    assert windows.window() == counted(rows) and windows.rows == counted(rows).rows


def test_a_window_that_moves_on_and_the_tree_agree():
    rng = random.Random(1)
    rows = [{"x": rng.gauss(0, 1), "c": rng.choice("abc"), "y": rng.choice("pq"), "t": i // 9} for i in range(360)]
    windows = tb.Windows(SCHEMA, by="number", time="t")
    for hour in range(40):
        windows.add(table(rows[9 * hour : 9 * hour + 9]))
        moved = windows.last(24)
        windows._sums._asked = None
        assert moved == windows.last(24) == counted(rows[max(9 * (hour - 23), 0) : 9 * hour + 9])
    assert len(windows._sums._nodes) < 2 * 40


def test_the_nodes_of_a_window_are_its_periods_each_once():
    for low in range(-20, 20):
        for high in range(low, 40):
            nodes = list(cover(low, high))
            assert [i for level, k in nodes for i in range(k << level, (k + 1) << level)] == list(range(low, high))
            assert len(nodes) <= 2 * max((high - low).bit_length(), 1)


def test_rows_that_no_power_of_two_can_lose():
    """Far beyond the 53 bits of a float: what is halved 200 times and doubled again is what it was."""
    tally = counted([{"x": 0.1, "c": "a", "y": "p", "t": 0}, {"x": 1e300, "c": "b", "y": "p", "t": 0}])
    assert halved(halved(tally, 200), -200) == tally
    assert (halved(tally, 3) + halved(tally, 3)).columns == halved(tally, 2).columns != tally.columns
    assert halved(tally, 1).rows == 2 and halved(tally, 1).class_weights().tolist() == [1.0]


def test_times_are_read_as_dates_are_and_count_in_utc():
    times = ["2024-02-29T23:30:00-01:00", "2024-03-01T00:59:59", "2024-02-29T23:59:59.999999", "1969-12-31T23:00:00"]
    rows = {"x": [1.0] * 4, "c": ["a"] * 4, "y": ["p"] * 4, "t": times}
    by = {unit: tb.Windows(SCHEMA, by=unit, time="t") for unit in UNITS}
    for windows in by.values():
        windows.add(rows)
        windows.add({**rows, "t": [dt.datetime.fromisoformat(t) for t in times]})
    assert by["hour"].periods == ("1969-12-31T23", "2024-02-29T23", "2024-03-01T00")
    assert by["day"].periods == ("1969-12-31", "2024-02-29", "2024-03-01")
    assert by["week"].periods == ("1970-W01", "2024-W09")
    assert by["month"].periods == ("1969-12", "2024-02", "2024-03")
    assert by["month"].window("2024-02", "2024-04").rows == 6 and by["hour"]["2024-03-01T00:00"].rows == 4
    for unit, windows in by.items():
        assert [unit_number(name, unit) for name in windows.periods] == list(windows.numbers)
        assert [unit_name(k, unit) for k in windows.numbers] == list(windows.periods)


def test_a_spelling_of_dates_and_marks_of_missing_ones_are_those_of_the_schema():
    rows = {"t": ["31/05/2024", "01/06/2024"] * 20, "c": ["a", "b"] * 20, "y": ["p", "q"] * 20}
    windows = tb.Windows(tb.infer(rows, "y", date_format={"t": "%d/%m/%Y"}))
    windows.add(rows)
    assert windows.time == "t" and windows.periods == ("2024-05-31", "2024-06-01")
    with pytest.raises(tb.DataError, match=r"column 't', row 1 .* no time, so it belongs to no period"):
        windows.add({**rows, "t": ["31/05/2024", None] * 20})
    assert windows.rows == 40  # nothing of it was counted


def test_periods_of_so_many_rows():
    windows = tb.Windows(SCHEMA, by=3)
    rows = [{"x": float(i), "c": "a", "y": None if i == 4 else "p", "t": 0} for i in range(8)]
    windows.add(table(rows[:2]))
    windows.add(table(rows[2:]))
    assert windows.periods == ("0", "1", "2")
    assert [t.rows + t.skipped for _, t in windows] == [3, 3, 2]
    assert windows.last(2) == counted(rows[3:])
    with pytest.raises(tb.CannotForget, match="do not say in which 3 of them"):
        windows.forget(table(rows[:1]))
    windows.forget(table(rows[:1]), period=0)
    assert windows.window() == counted(rows[1:])


def test_forgetting_is_all_or_nothing_and_names_the_period():
    rows = [{"x": 1.0, "c": "a", "y": "p", "t": t} for t in (1, 2)]
    windows = tb.Windows(SCHEMA, by="number", time="t")
    windows.add(table(rows))
    with pytest.raises(tb.CannotForget, match="in 7; nothing has been forgotten"):
        windows.forget(table([rows[0], {**rows[1], "t": 7}]))
    assert windows.window() == counted(rows)


def test_points_that_only_forgotten_rows_had_leave_the_schema():
    rng = np.random.default_rng(0)
    x = np.concatenate([np.full(40, 777.0), rng.normal(size=400)])
    rows = {"x": x, "y": ["p", "q"] * 220, "t": [0] * 40 + [1] * 400}
    windows = tb.Windows(tb.infer(rows, "y", kinds={"t": "ignore"}), by="number", time="t")
    assert 777.0 in windows.schema["x"].cells.points
    windows.add(rows)
    windows.forget({name: column[:40] for name, column in rows.items()})
    assert 777.0 not in windows.schema["x"].cells.points
    rest = {name: column[40:] for name, column in rows.items()}
    assert windows.window().digest == tb.Tally.of(windows.schema, rest).digest
    windows.add(rest)
    assert windows.window() == 2 * tb.Tally.of(windows.schema, rest)


def test_receipts_and_weights_are_kept_by_period():
    schema = tb.Schema(SCHEMA.columns, target="y", receipts=True)
    rows = [{"x": 1.0, "c": "a", "y": "p", "t": t} for t in (1, 2)]
    windows = tb.Windows(schema, by="number", time="t")
    windows.add(table(rows), weights=[0.5, 3.0])
    assert windows.window(2, 3).digest == counted(rows[1:], schema, [3.0]).digest
    assert windows.decayed(1).digest == counted(rows, SCHEMA, [0.25, 3.0]).digest


def test_what_cannot_be_is_refused():
    windows = tb.Windows(SCHEMA, by="day", time="t")
    assert windows.window() == windows.last(3) == windows.decayed(2) == tb.Tally.zero(SCHEMA)
    windows.add({"x": [1.0], "c": ["a"], "y": ["p"], "t": ["2024-05-31"]})
    for call, said in [
        (lambda: tb.Windows(SCHEMA, by="fortnight", time="t"), "'fortnight' is no period"),
        (lambda: tb.Windows(SCHEMA, by="days", time="t"), "did you mean 'day'"),
        (lambda: tb.Windows(SCHEMA, by=0), "periods of 0 rows"),
        (lambda: tb.Windows(SCHEMA, by=10, time="t"), "leave time out"),
        (lambda: tb.Windows(SCHEMA, by="hour"), "without the column that says them"),
        (lambda: windows.window("2024-05-31T12:00"), "lies within a day"),
        (lambda: windows.window("soon"), "'soon' is no time"),
        (lambda: windows.window("2024-06-02", "2024-06-01"), "begins before it ends"),
        (lambda: windows.last(0), "last=0"),
        (lambda: windows.decayed(0.5), "half_life=0.5"),
        (lambda: windows.model(last=2, half_life=2), "more than one of"),
        (lambda: tb.Windows(SCHEMA, by="number", time="t")["x"], "no number of a period"),
    ]:
        with pytest.raises(tb.SettingsError, match=said):
            call()
    with pytest.raises(tb.DataError, match=r"no column 'when' of times[\s\S]*did you mean"):
        tb.Windows(SCHEMA, by="day", time="when").add({"x": [1.0], "c": ["a"], "y": ["p"], "whem": ["2024-05-31"]})
    with pytest.raises(tb.DataError, match=r"1\.5 is no whole number"):
        tb.Windows(SCHEMA, by="number", time="t").add({"x": [1.0], "c": ["a"], "y": ["p"], "t": [1.5]})


def test_a_model_of_a_window_answers_by_its_rows_alone():
    rows = [
        {"x": 1.0, "c": c, "y": y, "t": t} for c, y, t in [("a", "p", 1), ("b", "q", 1), ("a", "q", 2), ("b", "p", 2)]
    ]
    windows = tb.Windows(SCHEMA, by="number", time="t")
    windows.add(table(rows * 20))
    ask = {"x": 1.0, "c": "a"}
    assert windows.model(end=2).predict(ask) == "p" and windows.model(last=1).predict(ask) == "q"
    assert windows.model(half_life=1).predict(ask) == "q"
    assert windows.model({"smoothing": 1}, start=2).settings.smoothing is not None
    assert repr(windows) == "Windows: 2 periods by number of t · 1 to 2"
