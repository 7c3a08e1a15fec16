"""Dates are shown as dates wherever one row is explained, though they are counted as days since 1970."""

import datetime as dt

import numpy as np
import pytest

import tallybayes as tb


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    late = rng.integers(0, 2, 200)
    day = [dt.date(2024, 1, 1) + dt.timedelta(days=int(d)) for d in rng.integers(0, 100, 200) + 150 * late]
    return {"sold": day, "price": rng.normal(size=200), "late": late}


@pytest.fixture(scope="module")
def model(table):
    return tb.textbook(table, "late")


def test_an_explanation_its_odds_and_its_dict_name_the_date(table, model):
    date = str(table["sold"][3])
    found = model.explain(table, 3)
    assert f"sold.days: {date}" in str(found) and f"sold.days: {date}" in str(found.odds())
    assert [c["value"] for c in found.to_dict()["contributions"] if c["column"] == "sold.days"] == [date]


def test_reasons_of_many_rows_name_the_dates(table, model, tmp_path):
    tb.predict_file(model, table, tmp_path / "answers.csv", explain=2)
    lines = (tmp_path / "answers.csv").read_text().splitlines()
    assert len(lines) == 201 and f"sold.days: {table['sold'][0]}," in lines[1]


def test_times_are_shown_to_the_second_as_they_were_given():
    day = [dt.datetime(2024, 1, 1 + i % 28, 23) + dt.timedelta(minutes=17 * (i % 3)) for i in range(80)]
    model = tb.textbook({"at": day, "y": [d.day > 14 for d in day]}, "y")
    row = {"at": day[1]}  # of which ten digits in days are 0.3 seconds beside it
    assert f"at.days: {day[1]}" in str(model.explain(row))
    assert f"at: {day[1]} → " in str(model.what_if(row))


def test_a_date_of_a_what_if_has_no_time_where_the_rows_have_none(table, model):
    found = str(model.what_if({"sold": table["sold"][3], "price": 0.0}))
    assert "sold: 2024-" in found and "00:00" not in found


def test_a_date_beyond_all_that_were_counted_is_held_against_dates(model):
    far = str(model.explain({"sold": dt.date(2031, 5, 1), "price": 0.0}))
    assert "sold.days: 2031-05-01  (beyond what was learnt: 2023-12-31 to 2024-09-06)" in far  # as far as cells tell


def test_ranges_name_whole_numbers_in_full(model):
    year = {"id": np.arange(12_000, 12_548) * 1.0, "price": [0.5, 12_547.0] * 274, "y": [0, 0, 1, 1] * 137}
    schema = tb.infer(year | {"id": np.r_[year["id"][:-1], 12_000.0]}, target="y")
    assert "from 12000 to 12546" in schema["id"].reason and "from 0.5 to 12547" in schema["price"].reason
    learnt = str(tb.textbook(year, "y").explain({"price": 99_999.0}))
    assert "(beyond what was learnt: 0.5 to 12547)" in learnt


def test_pictures_of_days_have_dates_and_parts_stand_as_in_a_calendar(table, model):
    line = tb.plots.terminal(model, "sold.days").text(80).splitlines()[-1]
    assert line.split() == sorted(line.split()) and all(dt.date.fromisoformat(end).year == 2024 for end in line.split())
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep"]
    assert [row for row in model.table("sold.month").rows if row in months] == months
    drawn = tb.plots.terminal(model, "sold.month").text(80)
    assert [word[:3] for word in drawn.splitlines() if word[:3] in months] == months
    assert model.table("sold.weekday").rows[:7] == ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"]
    counted = model.tally.columns["sold.month"].sheets["values"]
    n = dict(zip(counted.slot_names, counted.table("n", 2)[:, 1], strict=True))
    smoothed = [(n.get(month, 0) + 1) / (sum(n.values()) + 9) for month in months]  # Laplace, nine values
    assert [model.table("sold.month")[month, 1] for month in months] == pytest.approx(smoothed, abs=1e-9)


def test_a_picture_of_days_on_paper_has_dates(model):
    pytest.importorskip("matplotlib")
    from tallybayes.explain.plots.columns import column_display

    ax = column_display(model, "sold.days").plot().ax_
    ax.figure.canvas.draw()
    told = [tick.get_text() for tick in ax.get_xticklabels()]
    assert told and all(dt.date.fromisoformat(text) for text in told)
