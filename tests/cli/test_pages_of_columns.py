"""What `show` says of a column: dates where it counts days, and what a correction adds beside what was counted."""

import datetime as dt

import numpy as np
import pytest
from command_line import run

import tallybayes as tb

DAYS = [dt.date(2024, 1, 1) + dt.timedelta(days=(37 * i) % 90 + (200 if i % 2 else 0)) for i in range(120)]
TABLE = {
    "day": [d.isoformat() for d in DAYS],
    "town": ["Bonn", "Ulm", "Bonn", "Bonn"] * 30,
    "sold": ["no", "yes"] * 60,
}


@pytest.fixture
def saved(tmp_path):
    def save(**settings):
        path = tmp_path / "model.tb.parquet"
        tb.fit(TABLE, target="sold", settings=settings).save(path)
        return path

    return save


def test_bins_of_days_part_at_dates(saved):
    path = saved(families={"day.days": "bins"})
    table = tb.load(path).table("day.days")
    cut = dt.date.fromisoformat(table.rows[0].removeprefix("< "))
    assert max(d for d, s in zip(DAYS, TABLE["sold"], strict=True) if s == "no") < cut
    assert min(d for d, s in zip(DAYS, TABLE["sold"], strict=True) if s == "yes") >= cut
    assert table.rows[0] in run("show", path, "--column", "day.days").out
    mean = dt.date(1970, 1, 1) + dt.timedelta(days=round(np.mean([(d - dt.date(1970, 1, 1)).days for d in DAYS[::2]])))
    assert f"{mean} ±" in run("show", path).out


def test_a_blend_of_days_is_told_at_dates(saved):
    out = run("show", saved(families={"day.days": "blend"}), "--column", "day.days").out
    assert "2024-01-0" in out
    assert "197" not in out


def test_a_corrected_category_shows_what_was_counted_and_what_it_adds(saved):
    added = np.array([[0.5, -0.25]])
    correction = tb.Correction(0.5, ("no", "yes"), added, ("Bonn",))
    path = saved(corrections={"town": correction})
    counted, corrected = run("show", path, "--column", "town").out.split("Corrected by held-out rows")
    assert "Counted, P(value given class):" in counted
    p = tb.load(path).table("town")
    assert f"{p['Bonn', 'no']:.4f}" in counted
    says = 0.5 * np.log([p["Bonn", "no"], p["Bonn", "yes"]]) + added[0]
    assert f"{(says - says.max()).min():.4g}" in corrected
    assert "Corrected" not in run("show", saved(smoothing=1), "--column", "town").out
