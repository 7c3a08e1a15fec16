"""Bins are stretches of the line, and hold the rows that the data have there."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.base.canon import number_text
from tallybayes.families import Bins

WAYS = [Bins(), Bins("frequency", 10), Bins("frequency", 25), Bins("width", 12), Bins("width")]


def fares(rng: np.random.Generator, n: int) -> np.ndarray:
    """Prices: a few that hundreds of rows have, the others near them, a long tail."""
    common = rng.choice([7.75, 7.8958, 8.05, 13.0, 26.0], n)
    others = np.round(np.exp(rng.normal(3, 1, n)), int(rng.integers(0, 6)))
    return np.where(rng.random(n) < 0.6, common, others)


def ends(name: str) -> tuple[float, float]:
    """The ends that a bin's name says."""
    if name == "any":
        return -np.inf, np.inf
    if found := re.fullmatch(r"< (\S+)", name):
        return -np.inf, float(found[1])
    if found := re.fullmatch(r"≥ (\S+)", name):
        return float(found[1]), np.inf
    found = re.fullmatch(r"(\S+) to (\S+)", name)
    assert found is not None, name
    return float(found[1]), float(found[2])


@pytest.mark.parametrize("family", WAYS, ids=lambda f: f.describe())
@pytest.mark.parametrize("seed", range(6))
def test_every_bin_holds_the_rows_that_its_name_says(family: Bins, seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = fares(rng, 1500)
    data = {"x": x, "y": np.where(rng.random(1500) < 1 / (1 + np.exp(8 - x)), "a", "b")}
    schema = tb.infer(data, target="y")
    settings = tb.Settings(families={"x": family}, smoothing=tb.MaximumLikelihood())
    model = tb.count(data, schema).model(settings)
    table = model.table("x")
    said = [ends(name) for name in table.rows]
    assert said[0][0] == -np.inf and said[-1][1] == np.inf
    assert all(a[1] == b[0] and a[0] < a[1] for a, b in pairwise(said))
    for y in ("a", "b"):
        own = x[data["y"] == y]
        share = [float(np.mean((low <= own) & (own < high))) for low, high in said]
        np.testing.assert_allclose([table[name, y] for name in table.rows], share, atol=1e-12)


def test_cuts_are_as_short_as_may_be() -> None:
    def names(x: list[float]) -> list[str]:
        data = {"x": x * 30, "y": ["a", "a", "b", "b"] * 30}
        schema = tb.infer(data, target="y", keep_leaks=True).with_column("x", kind="number")
        return tb.count(data, schema).model(tb.Settings(families={"x": "bins"})).table("x").rows

    assert names([1.2345, 1.3, 4.111, 4.2]) == ["< 3", "≥ 3"]
    next_to_one = number_text(1 + 2**-52)
    assert names([1.0, 1.0, 1 + 2**-52, 1 + 2**-52]) == [f"< {next_to_one}", f"≥ {next_to_one}"]


def test_a_number_read_as_a_curve_is_told_by_stretches() -> None:
    rng = np.random.default_rng(0)
    y = rng.choice(["low", "high"], 400)
    x = np.round(rng.normal(np.where(y == "low", 10, 20), 2.0), 2)
    model = tb.fit({"x": x, "y": y}, target="y", settings=tb.Settings(families={"x": "gaussian"}), calibrate=False)
    odds = model.odds("x", "low")
    low, high = ends(odds.rows[0].value)
    assert high < 15 and odds.rows[0].ratio > 10
    own, other = x[y == "low"], x[y == "high"]
    inside = [np.sum((low <= v) & (v < high)) for v in (own, other)]
    k = len(model.odds("x", "low", top=100))
    assert odds.rows[0].inside == pytest.approx((inside[0] + 1) / (len(own) + k), abs=1e-12)
    assert odds.rows[0].outside == pytest.approx((inside[1] + 1) / (len(other) + k), abs=1e-12)


def test_no_bin_is_empty_and_empty_levels_and_values_are_in_no_odds() -> None:
    """What smoothing says of a value that no row has is the size of the classes, not evidence."""
    rng = np.random.default_rng(0)
    for _ in range(40):
        x = fares(rng, int(rng.integers(5, 200)))
        schema = tb.Schema([tb.Column("x", "number", cells=tb.Cells.fitted(x[: len(x) // 2 + 1]))], target="y")
        tally = tb.count({"x": x, "y": np.arange(len(x)) % 2}, schema)
        for way in WAYS:
            sides = [ends(name) for name in tally.model(tb.Settings(families={"x": way})).table("x").rows]
            assert all(np.any((x >= low) & (x < high)) for low, high in sides)
    number = tb.Column("x", "number", cells=tb.Cells.fitted(np.array([0.0, 1.0, 3.0])))
    data = {"x": [0.0, 1.0, 3.0, 0.0, 1.0], "c": ["u", "v", "u", "u", "v"], "y": ["a", "a", "b", "b", "b"]}
    schema = tb.Schema([number, tb.Column("c", "category", values=("u", "v", "w"))], target="y")
    model = tb.count(data, schema).model(tb.Settings(families={"x": "levels"}))
    assert model.table("x").rows == ["0", "1", "2", "3"] and model.table("c").rows == ["u", "v", "w"]
    assert {o.value for o in model.odds("x", "a")} == {"0", "1", "3"}
    assert {o.value for o in model.odds("c", "a")} == {"u", "v"}
    known = tb.count(data, schema).model(tb.Settings(smoothing=tb.Dirichlet({"u": 1, "v": 1, "w": 5})))
    assert {o.value for o in known.odds("c", "a")} == {"u", "v", "w"}  # imagined rows are somebody's knowledge


def test_stretches_of_dates_are_told_as_dates() -> None:
    rng = np.random.default_rng(1)
    day = rng.integers(0, 300, 200)
    when = np.datetime64("2024-01-01") + day
    y = np.where(rng.random(200) < np.where(day < 150, 0.9, 0.1), "early", "late")
    settings = tb.Settings(families={"when.days": "gaussian"})
    model = tb.fit({"when": when, "y": y}, target="y", settings=settings, calibrate=False)
    first = model.odds("when.days", "early").rows[0].value
    low, high = re.fullmatch(r"(?:(\S+) to |< )(\S+)", first).groups()
    assert np.datetime64(high) < np.datetime64("2024-07-01") and (low is None or low.startswith("2024-"))


def test_cuts_that_are_given_are_kept() -> None:
    age = np.arange(240) % 80
    data = {"age": age, "y": np.where((age >= 18) & (age < 65), "works", "does not")}
    schema = tb.infer(data, target="y", keep_leaks=True)
    model = tb.count(data, schema).model(tb.Settings(families={"age": Bins("given", (18, 65))}))
    assert model.table("age").rows == ["< 18", "18 to 65", "≥ 65"]
    assert (model.predict(data) == data["y"]).all()
    close = tuple(np.nextafter(40.5, 41) + np.arange(3) * 1e-9)  # three within one cell are one
    assert len(tb.count(data, schema).model(tb.Settings(families={"age": Bins("given", close)})).table("age").rows) == 2
    far = Bins("given", (-1e308, 1e308))  # and beyond all cells none
    assert tb.count(data, schema).model(tb.Settings(families={"age": far})).table("age").rows == ["any"]


@pytest.mark.parametrize("cuts", [(2, 1), (1, 1), "18", None, (np.nan,), (np.inf,), (True,), range(100_000)], ids=repr)
def test_cuts_that_cannot_be_are_refused(cuts: object) -> None:
    with pytest.raises(tb.SettingsError, match="Hint: give the cuts between them"):
        Bins("given", cuts)  # type: ignore[arg-type]
    with pytest.raises(tb.SettingsError, match="Hint: "):
        Bins("width", (1.0, 2.0))
