"""Intervals, pictures, reports and cards of a model with corrected columns."""

from __future__ import annotations

import pathlib

import numpy as np
import pytest
from corrected import corrected

import tallybayes as tb
from tallybayes.explain.plots.columns import CategoryDisplay
from tallybayes.model.odds import order_of_many, said_of_values

RNG = np.random.default_rng(5)
Y = RNG.integers(0, 2, 200)
ROWS = {
    "sky": [["sun", "rain", "fog"][v] for v in (Y + RNG.integers(0, 2, 200)) % 3],
    "heat": RNG.normal(Y, 1.0).tolist(),
    "note": [" ".join(RNG.choice(["late", "early", "soon", "never"][v : v + 3], 4)) for v in Y],
    "y": [["no", "yes"][v] for v in Y],
}
SCHEMA = tb.infer({k: v for k, v in ROWS.items() if k != "note"}, target="y").with_column("note", kind="text")
SCHEMA = SCHEMA.with_column("both", kind="pair", of=(tb.Side("sky"), tb.Side("heat", "number", cuts=(0.5,))))
PLAIN = tb.count(ROWS, SCHEMA).model(tb.Settings(families={"heat": "blend"}))
ADDED = {
    "sky": tb.Correction(0.5, ("no", "yes"), [[0.75, -0.25]], ("sun",)),
    "heat": tb.Correction(2.0, ("no", "yes"), [[0.0, 0.5], [0.25, 0.0]], cuts=(0.0,)),
    "note": tb.Correction(0.25, ("no", "yes"), [[0.125, 0.0]], ("late",)),
    "both": tb.Correction(0.0, ("no", "yes"), [[0.0, 1.0]], ('["sun", "< 0.5"]',)),
}


def test_intervals_are_weighted_and_moved() -> None:
    assert PLAIN.tally is not None
    model = PLAIN.tally.model(tb.Settings(families={"heat": "blend"}, corrections=ADDED))
    row = {"sky": "sun", "heat": 0.25, "note": "late early"}
    plain, found = (m.explain(row).odds("yes", "no") for m in (PLAIN, model))
    moved = {"sky: sun": -1.0, "heat: 0.25": -0.25, "note: late": -0.125, "note: early": 0.0}
    weight = {"sky": 0.5, "heat": 2.0, "note": 0.25}
    seen = 0
    for before, after in zip(plain.lines, found.lines, strict=True):
        if before.label in moved:
            w, by = weight[before.column], moved[before.label]
            np.testing.assert_allclose(after.interval, w * np.array(before.interval) + by, atol=1e-9)
            assert after.log_odds == pytest.approx(w * before.log_odds + by) and after.corrected == pytest.approx(by)
            assert after.counts == before.counts
            seen += 1
    assert seen == 4
    both = found.lines[-1]
    assert both.interval == pytest.approx((1.0, 1.0)) and both.counted == pytest.approx(0.0) and both.variance == 0.0


def test_a_pair_is_shown_as_it_speaks() -> None:
    """Its counts have weight 0: what is shown is what its corrections add, those that tell classes apart first."""
    assert PLAIN.tally is not None
    told = dict(ADDED)
    cells = ('["sun", "< 0.5"]', '["rain", "≥ 0.5"]')
    told["both"] = tb.Correction(0.0, ("no", "yes"), [[0.0, 1.0], [1.5, -0.5]], cells)
    model = PLAIN.tally.model(tb.Settings(families={"heat": "blend"}, corrections=told))
    assert said_of_values(PLAIN, "both") is None and said_of_values(model, "heat") is None
    table = said_of_values(model, "both")
    assert table is not None
    found = dict(zip(table.rows, table.values.tolist(), strict=True))
    assert found.pop("sun and < 0.5") == [-1.0, 0.0] and found.pop("rain and ≥ 0.5") == [0.0, -2.0]
    assert set(map(tuple, found.values())) == {(0.0, 0.0)} and len(found) == 4
    assert [table.rows[i] for i in order_of_many(table)[:2]] == ["rain and ≥ 0.5", "sun and < 0.5"]
    counted = PLAIN.table("both")
    by_ratio = np.abs(np.log(counted.values[:, 0] / counted.values[:, 1]))
    np.testing.assert_allclose(by_ratio[order_of_many(counted)], np.sort(by_ratio)[::-1])
    shares = PLAIN.table("sky")
    assert order_of_many(shares) == np.argsort(-shares.values.max(axis=1), kind="stable").tolist()


def test_the_picture_of_a_pair_is_of_what_it_says() -> None:
    pytest.importorskip("matplotlib.pyplot")
    assert PLAIN.tally is not None
    model = PLAIN.tally.model(tb.Settings(families={"heat": "blend"}, corrections=ADDED))
    plain, found = (CategoryDisplay.of_pair(m, "both") for m in (PLAIN, model))
    assert plain.unit == "times likelier together than apart"
    np.testing.assert_allclose(np.sort(plain.believed, axis=0), np.sort(PLAIN.table("both").values, axis=0))
    assert found.unit == "times likelier together, as corrected"
    assert found.values[0] == "sun and < 0.5"
    np.testing.assert_allclose(found.believed[0], np.exp([-0.5, 0.5]))
    np.testing.assert_allclose(found.believed[1:], 1.0)


@pytest.mark.parametrize("seed", range(3))
def test_pictures_reports_and_cards_know_corrections(seed: int, tmp_path: pathlib.Path) -> None:
    plt = pytest.importorskip("matplotlib.pyplot")
    model = corrected(PLAIN, seed)
    for name in model.beliefs:
        model.plot.column(name)
    model.plot.nomogram()
    model.plot.waterfall(ROWS)
    plt.close("all")
    tb.report(model, ROWS, tmp_path / "report.html")
    assert "corrections</th>" in (tmp_path / "report.html").read_text(encoding="utf-8")
    card = model.export(format="card").decode()
    assert "and corrections |" in card and "recalibrate" in card
