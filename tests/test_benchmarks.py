"""Each benchmark runs at a tiny size, its sides agree, and the kernels give what NumPy gives. No times are tested."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse

import tallybayes as tb

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "benchmarks"))

import before_after
import intervals
import labelling
from items import ITEMS, Item
from roads import ROADS, all_counts, table
from textitems import TEXT_ITEMS

TINY = 0.004
ALL = [*ITEMS, *TEXT_ITEMS, *ROADS]
COUNTED = [item for item in ALL if "fit" in item.name or item.name == "raw text to tally"]


@pytest.mark.parametrize("item", ALL, ids=lambda item: item.name)
def test_the_item_runs_and_both_sides_agree(item: Item) -> None:
    case = item.make(TINY)
    case.ours()
    case.theirs()
    assert case.agree()


@pytest.mark.parametrize("item", COUNTED, ids=lambda item: item.name)
def test_kernels_and_reference_count_the_same(item: Item, monkeypatch: pytest.MonkeyPatch) -> None:
    tally = item.make(TINY).tally
    assert tally is not None
    monkeypatch.setenv("TALLYBAYES_KERNELS", "off")
    expected = tally()
    monkeypatch.setenv("TALLYBAYES_KERNELS", "on")
    found = tally()
    assert found == expected
    assert found.digest == expected.digest


@pytest.mark.parametrize("scale", [1.0, 1e-320, 1e160, 1e307])
@pytest.mark.parametrize("weight", [1.0, 0.3, 0.0])
def test_kernels_and_reference_score_the_same(scale: float, weight: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing values, far values, unseen values and columns without weight included."""
    rng = np.random.default_rng(8)
    n = 500
    x = np.where(rng.random((n, 3)) < 0.1, np.nan, rng.normal(size=(n, 3))) * scale
    data = {
        "v": x,
        "n": rng.normal(size=n) * scale,
        "c": rng.choice(["a", "b", "c", None], n),
        "y": rng.choice(["p", "q", "r"], n),
    }
    columns = [tb.Column("v", "vector", width=3), tb.Column("n", "number"), tb.Column("c", "category")]
    settings = tb.Settings(weights={"v": weight, "c": weight}, families={"n": "gaussian"})
    model = tb.count(data, tb.Schema(columns, target="y")).model(settings)
    probe = {**data, "c": rng.choice(["a", "z", None], n), "n": data["n"] * rng.choice([1.0, 1e-8], n)}
    probe["n"][::7] = np.nan
    probe["v"] = np.where(rng.random((n, 3)) < 0.02, 1.7e308, x)
    answers = []
    for way in ("off", "on"):
        monkeypatch.setenv("TALLYBAYES_KERNELS", way)
        answers.append((model.log_joint(probe), model.predict_proba(probe), model.predict(probe)))
    np.testing.assert_allclose(answers[1][0], answers[0][0], rtol=1e-12)
    np.testing.assert_allclose(answers[1][1], answers[0][1], rtol=1e-9, atol=1e-300)
    assert answers[1][2].tolist() == answers[0][2].tolist()


def _sparse(way: str, index: type) -> scipy.sparse.csr_array:
    """A matrix large enough for two threads, with rows of no entries among them."""
    rng = np.random.default_rng(9)
    counts = rng.integers(1, 5, 600_000).astype(np.float64)
    indices = np.sort(rng.choice(3000, (12_000, 50)), axis=1).astype(index)
    lengths = np.where(rng.random(12_000) < 0.01, 0, 50)
    kept = np.repeat(lengths > 0, 50)
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(index)
    matrix = scipy.sparse.csr_array((counts[kept], indices.ravel()[kept], indptr), shape=(12_000, 3000))
    if way != "twice":
        matrix.sum_duplicates()
    if way == "fractions":
        matrix.data *= rng.random(matrix.nnz)
    if way == "zeros":
        matrix.data[::11] = 0.0
    if way == "large":
        matrix.data[5] = 2.0**40
    if way == "unsorted":
        matrix.indices[:2] = matrix.indices[1::-1].copy()
        matrix.has_sorted_indices = False
    return matrix


@pytest.mark.parametrize("index", [np.int32, np.int64])
@pytest.mark.parametrize("way", ["whole", "fractions", "zeros", "twice", "large", "unsorted"])
def test_sparse_matrices_are_counted_and_scored_alike(way: str, index: type, monkeypatch: pytest.MonkeyPatch) -> None:
    matrix = _sparse(way, index)
    y = np.where(np.arange(matrix.shape[0]) % 10 < 9, 1, np.arange(matrix.shape[0]) % 3)  # one class is far larger
    schema = tb.Schema([tb.Column("x", "bag", width=3000)], target="y", label_type="int")
    before = matrix.data.copy(), matrix.indices.copy()
    found = {}
    for switch in ("off", "on"):
        monkeypatch.setenv("TALLYBAYES_KERNELS", switch)
        monkeypatch.setenv("TALLYBAYES_THREADS", "2")
        tally = tb.count(matrix, schema, y)
        found[switch] = tally, tally.digest, tally.model().log_joint(matrix)
    assert found["on"][:2] == found["off"][:2]
    assert np.array_equal(found["on"][2], found["off"][2])
    assert np.array_equal(matrix.data, before[0])
    assert np.array_equal(matrix.indices, before[1])


def test_duckdb_counts_as_many_different_texts() -> None:
    path = table(TINY)
    schema = tb.Schema([tb.Column(n, "category") for n in (*(f"c{j}" for j in range(7)), "t0", "t1", "t2")], target="y")
    tally = tb.count(path, schema)
    assert all_counts(path) == sum(len(c.sheets["values"]) for c in tally.columns.values())


def test_two_checkouts_are_compared_item_by_item(capsys: pytest.CaptureFixture[str]) -> None:
    root = str(before_after.ROOT)
    few = ["--turns", "1", "--scale", str(TINY), "--seconds", "0.001", "--starts", "1", "--only", "one "]
    before_after.main(["--before", root, "--after", root, *few])
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    names = [line[0].removeprefix("| ") for line in lines[1:]]
    assert lines[0] == ["| item", "before", "after", "before ÷ after |"]
    assert "one row of 30 numbers" in names and "one SMS" in names and "start: one answer, text of 5,000 words" in names
    assert all(len(line) == 4 and float(line[3].strip(" |*")) > 0 for line in lines[1:])


def test_the_table_has_medians_and_marks_what_fell_behind() -> None:
    table = before_after.page(
        {"a": [3.0, 1.0, 2.0], "b": [1e-6], "gone": [1.0]}, {"a": [1.0], "b": [2e-6], "new": [1.0]}
    )
    assert table.splitlines()[2:] == [
        "| a | 2000.0 ms | 1000.0 ms | 2.00 |",
        "| b | 1.0 µs | 2.0 µs | **0.50** |",
        "| gone | 1000.0 ms | – | – |",
        "| new | – | 1000.0 ms | – |",
    ]


def test_intervals_are_timed_beside_drawing_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intervals, "DRAWS", (2, 2))
    monkeypatch.setattr(intervals, "PEER_DRAWS", 1)
    intervals.main(["--rows", "400", "--few", "200", "--rounds", "1"])
    lines = [line.split(" | ") for line in capsys.readouterr().out.splitlines()[2:]]
    assert [line[0] for line in lines] == ["| 200 × 2", "| 400 × 2", "| 200 × 10", "| 400 × 10"]
    assert all(float(line[1].removesuffix(" s")) > 0 for line in lines)


def test_intervals_hold_the_truth(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intervals, "TRUTH", 50_000)
    found = intervals.coverage("rare", 200, 15)
    assert set(found) == set(intervals.COVERED) and min(found.values()) > 0.7


def test_labels_are_counted_and_work_is_saved() -> None:
    """The benchmark of labelling at a small size, on texts that it makes itself: both of its parts say something."""
    counts = [labelling.needed("messages", 1, telling=telling, grow=1.5, most=240) for telling in (True, False)]
    assert all(labelling.FIRST <= count <= 240 for count in counts)
    ours, first = (labelling.work_saved("messages", 1, way, most=600) for way in ("ours", "first order"))
    assert -0.05 <= first < ours < 0.95
    assert labelling.work_saved("messages", 1, "ASReview's", most=600) <= 0.95
