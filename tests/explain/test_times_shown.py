"""Times of day and durations are counted as hours and shown as times, wherever a number of theirs is shown."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.base.times import hours_text
from tallybayes.data.clock import hours_of, told_by
from tallybayes.store.reveals import revealed

RNG = np.random.default_rng(3)
MINUTES = np.concatenate([RNG.integers(360, 700, 150), RNG.integers(1000, 1380, 150)]).tolist()
SECONDS = RNG.integers(300, 9000, 300).tolist()
TABLE = {
    "at": [f"{m // 60:02}:{m % 60:02}" for m in MINUTES],
    "took": [f"{s // 3600}:{s // 60 % 60:02}:{s % 60:02}" for s in SECONDS],
    "y": [("early", "late")[(i >= 150) ^ (i % 11 == 0)] for i in range(300)],
}
LATE = {"at": "20:49", "took": "0:45:10"}
LONG = re.compile(r"\d\.\d{5,}")


@pytest.fixture(scope="module")
def model() -> tb.Model:
    return tb.fit(TABLE, "y")


@pytest.mark.parametrize(
    "text", ["20:49", "0:45:10", "0:00", "-0:45", "26:00", "0:00:00.000001", "123456:07:08.5", "1:00:59.999", "0:00:01"]
)
def test_what_is_shown_is_what_was_read(text: str) -> None:
    assert hours_text(hours_of(text)) == text


def test_a_mean_of_times_is_told_to_the_second_and_what_is_no_time_as_a_number() -> None:
    assert hours_text(np.pi) == "3:08:30" and hours_text(1e-4 / 3) == "0:00:00.12"
    assert [hours_text(x) for x in (float("inf"), 1e12)] == ["inf", "1000000000000.0"]
    assert told_by(tb.Column("x", "number")) is None


def test_explanations_show_times(model: tb.Model) -> None:
    found = model.explain(LATE)
    for shown in (str(found), str(found.odds())):
        assert "at: 20:49" in shown and "20.81" not in shown and "took: 0:45:10" in shown
    assert found.to_dict()["contributions"][1]["value"] == "20:49"
    assert "beyond what was learnt: 6:0" in str(model.explain({"at": "23:59", "took": "0:45:10"}))


def test_what_would_change_an_answer_is_told_in_times_that_can_be_entered(model: tb.Model) -> None:
    (change,) = [c for c in model.what_if(LATE).changes if c.column == "at"]
    assert change.before == "20:49" and hours_of(change.after) < 17
    assert model.predict({**LATE, "at": change.after}) == ["early"]


def test_reasons_of_many_rows_and_telling_stretches_are_times(model: tb.Model, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    tb.predict_file(model, TABLE, out, explain=2)
    assert f"at: {hours_text(hours_of(TABLE['at'][0]))}" in out.read_text() and not LONG.search(
        "".join(re.findall("(?:at|took): [^,]*", out.read_text()))
    )
    from tallybayes.model.odds import best_stretch, shown_table

    best = best_stretch(model, "at", 1)
    assert best is not None and re.search(r"\d+:\d\d", best.value) and "." not in best.value
    assert all(":" in row for row in shown_table(model, "at").rows)


def test_pictures_and_pages_show_times(model: tb.Model) -> None:
    assert re.search(r"\d+:\d\d", tb.plots.terminal(model, "at").text(80).splitlines()[-1])
    assert model.tally is not None
    assert re.search(r"\d+:\d\d:\d\d(\.\d)? ± \d:\d\d", model.tally._repr_html_())
    assert re.search(r"\b\d+:\d\d\b", str(revealed(model).to_dict()))


def test_numbers_that_are_hours_already_are_times_where_the_column_is_one(model: tb.Model) -> None:
    assert "at: 20:30" in str(model.explain({"at": 20.5, "took": 1.0}))
