"""Codes by class as a sheet: the way by a full table and the way by its places that are not empty are one."""

import tracemalloc

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.exact import sums

pytestmark = pytest.mark.core


@pytest.mark.parametrize("seed", range(20))
def test_both_ways_give_the_same_sheet(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(seed)
    rows, n_codes, n_labels = int(rng.integers(0, 60)), int(rng.integers(1, 9)), int(rng.integers(1, 6))
    codes, labels = rng.integers(-1, n_codes, rows), rng.integers(0, n_labels, rows)
    weights = None if seed % 3 else rng.choice([1.0, 3.0, 0.1, 2.0**-40, 2.0**31, 1 / 3], rows)
    names = [f"value {i}" for i in rng.permutation(n_codes)]
    full = sums.code_sheet(names, codes, labels, n_labels, weights)
    monkeypatch.setattr(sums, "_MOST_PLACES", 0)
    monkeypatch.setattr(sums, "_PLACES_PER_ROW", 0)
    assert sums.code_sheet(names, codes, labels, n_labels, weights) == full


@pytest.mark.parametrize("weights", [None, [0.5] * 20_000])
def test_many_values_by_many_classes_take_the_room_of_their_rows(weights: list[float] | None) -> None:
    """A full table of 20,000 × 20,000 is 3.2 GB, and several of them were made."""
    each = [f"c{i}" for i in range(20_000)]
    schema = tb.Schema([tb.Column("id", "category"), tb.Column("x", "number", cells=tb.Cells(0.0, 0))], target="y")
    tracemalloc.start()
    try:
        tally = tb.count({"id": each, "x": range(20_000), "y": each}, schema, weights=weights)
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert tally.rows == len(tally.columns["id"].sheets["values"]) == 20_000
    assert most < 400e6
