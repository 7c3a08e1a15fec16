"""Every kernel beside the NumPy way: counts and sums are equal to the last bit, scores to rounding."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

import tallybayes as tb
from tallybayes.data import batch
from tallybayes.data import values as reading
from tallybayes.data.blocks import Groups
from tallybayes.exact import dense, entries, sums
from tallybayes.exact.cells import MIDDLE, REACH
from tallybayes.exact.limbs import canonical, whole_numbers
from tallybayes.exact.sums import exact_sums

pytest.importorskip("numba", reason="without Numba there are no kernels to compare with")

from tallybayes.exact.kernels import moments

pytestmark = pytest.mark.filterwarnings("error")


def both(work: Any, monkeypatch: pytest.MonkeyPatch) -> tuple[Any, Any]:
    """The result of some work by NumPy and by the kernels."""
    out = []
    for way in ("off", "on"):
        monkeypatch.setenv("TALLYBAYES_KERNELS", way)
        out.append(work())
    return out[0], out[1]


# ---- exact sums


def _numbers(kind: str, rows: int, width: int, rng: np.random.Generator) -> np.ndarray:
    x = rng.normal(size=(rows, width))
    if kind == "missing":
        return np.where(rng.random(x.shape) < 0.1, np.nan, x)
    if kind == "any exponent":
        return np.where(rng.random(x.shape) < 0.1, np.nan, x * 10.0 ** rng.integers(-320, 300, x.shape))
    if kind == "scales":
        x *= 10.0 ** rng.integers(-20, 20, width)
        x[:, 0] = 0.0
    if kind == "drifting":  # the largest exponent changes from block to block, up and down by one and by more
        x *= 2.0 ** rng.integers(-4, 5, (rows // 100 + 1, 1)).repeat(100, axis=0)[:rows]
    if kind == "tiny among large":  # beyond the limbs that most numbers need, found late
        x[-1] = 1e-200
    if kind == "huge and tiny":
        x = np.where(rng.random(x.shape) < 0.5, 0.0, x * 10.0 ** rng.choice([-310, 150, 200, 0], width))
        x[:, -1] = np.nan
    return x


@pytest.mark.parametrize("width", [1, 2, 3, 4, 7, 8, 9, 16, 30, 64, 65, 83])
@pytest.mark.parametrize(
    "kind", ["plain", "missing", "any exponent", "scales", "drifting", "tiny among large", "huge and tiny"]
)
def test_moments_are_exact_whatever_the_width(width: int, kind: str) -> None:
    rng = np.random.default_rng(width)
    for n_labels, rows in ((1, 5), (3, 2000), (11, 1537)):
        x, y = _numbers(kind, rows, width, rng), rng.integers(0, n_labels, rows)
        row, position = np.nonzero(~np.isnan(x))
        groups, value = position * n_labels + y[row], x[row, position]
        found = moments.moments(y, n_labels, x)
        assert found is not None
        for got, factors in zip(found, ([], [value], [value, value]), strict=True):
            wanted, got = exact_sums(groups, width * n_labels, factors), canonical(got)
            assert got.lowest == wanted.lowest
            assert np.array_equal(got.array, wanted.array)


def test_moments_of_strips() -> None:
    """More columns than are gone through at a time, the last strip narrower than a register."""
    rng = np.random.default_rng(8)
    x, y = rng.normal(size=(150, 1027)), rng.integers(0, 2, 150)
    row, position = np.nonzero(~np.isnan(x))
    found = moments.moments(y, 2, x)
    assert found is not None
    wanted = exact_sums(position * 2 + y[row], 2 * 1027, [x[row, position], x[row, position]])
    assert np.array_equal(canonical(found[2]).array, wanted.array)


def test_moments_of_so_many_blocks_that_integers_would_overflow() -> None:
    """All bits of all numbers are set, so that every sum is as large as it can be."""
    rows = 1536 * 1100
    x = np.full((rows, 8), np.nextafter(1.0, 0.0))
    found = moments.moments(np.zeros(rows, np.int64), 1, x)
    assert found is not None
    whole = 2**53 - 1
    for limbs, wanted in zip(found[1:], (Fraction(whole, 2**53), Fraction(whole, 2**53) ** 2), strict=True):
        values, exponent = whole_numbers(limbs)
        assert [int(v) * Fraction(2) ** exponent for v in values] == [rows * wanted] * 8


@pytest.mark.parametrize("width", [1, 8, 30, 70])
@pytest.mark.parametrize("way", ["off", "on"])
@pytest.mark.parametrize("constant", [False, True])
def test_infinities_are_refused_while_counting_and_scoring(
    width: int, way: str, constant: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TALLYBAYES_KERNELS", way)
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(300, width)), rng.integers(0, 2, 300)
    x[7] = np.nan
    if constant and width > 1:
        x[:, -1] = 3.0
    schema = tb.Schema([tb.Column("x", "vector", width=width)], target="y", label_type="int")
    model = tb.count(x, schema, y).model()
    bad = x.copy()
    bad[211, -1] = -np.inf
    for work in (lambda: tb.count(bad, schema, y), lambda: model.predict(bad), lambda: model.log_joint(bad)):
        with pytest.raises(tb.DataError, match=rf"row 211 .*position {width - 1} is -inf"):
            work()


# ---- scores


@pytest.mark.parametrize("width", [7, 8, 9, 30])
@pytest.mark.parametrize("scale", [1.0, 1e-320, 1e160, 1e307])
@pytest.mark.parametrize("weight", [1.0, 0.3, 0.0])
def test_gaussian_scores_of_wide_matrices(
    width: int, scale: float, weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(401, width)) * scale, rng.integers(0, 3, 401)
    x[:, 1] = 5.0  # says nothing
    x[rng.random(x.shape) < 0.02] = np.nan
    schema = tb.Schema([tb.Column("x", "vector", width=width)], target="y", label_type="int")
    model = tb.count(x, schema, y).model(tb.Settings(weights={"x": weight}))
    probe = np.where(rng.random(x.shape) < 0.01, 1.7e308, x)
    probe[:50] = x[:50]
    slow, fast = both(lambda: (model.log_joint(probe), model.predict(probe)), monkeypatch)
    np.testing.assert_allclose(fast[0], slow[0], rtol=1e-12, atol=1e-12)
    assert fast[1].tolist() == slow[1].tolist()


@pytest.mark.parametrize("n_classes", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("rows", [64, 66, 127, 128, 131, 8_195])
def test_the_answer_is_that_of_the_scores_which_are_not_kept(
    n_classes: int, rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where scores are equal, where numbers are missing or far away, and where classes are impossible."""
    monkeypatch.setenv("TALLYBAYES_KERNELS", "on")
    rng = np.random.default_rng(rows)
    x, y = rng.integers(-2, 3, size=(rows, 9)).astype(float), rng.permutation(np.arange(rows) % n_classes)
    x[rng.random(x.shape) < 0.01] = np.nan
    schema = tb.Schema([tb.Column("x", "vector", width=9)], target="y", label_type="int")
    model = tb.count(np.repeat(x, 2, axis=0), schema, np.concatenate([y, y[::-1]])).model(
        tb.Settings(weights={"x": 0.7})
    )
    x[rng.random(x.shape) < 0.01] = 1.7e308
    x[5] = np.nan  # only the prior speaks
    never = {c: float(c != n_classes - 1 or n_classes == 1) for c in range(n_classes)}
    for prior in (None, "uniform", {str(c): p / sum(never.values()) for c, p in never.items()}):
        joint = model.log_joint(x, prior=prior)
        assert model.predict(x, prior=prior).tolist() == np.argmax(joint, axis=1).tolist()


def test_every_class_impossible_is_said_once_with_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Batches are named one by one, the warning counts all rows."""
    monkeypatch.setattr(batch, "BATCH_CELLS", 64 * 2)
    table = {"a": ["u", "v"] * 500, "b": ["u", "v"] * 500, "y": ["p", "q"] * 500}
    schema = tb.Schema([tb.Column("a", "category"), tb.Column("b", "category")], target="y")
    model = tb.count(table, schema).model(tb.Settings(smoothing=tb.MaximumLikelihood()))
    probe = {"a": ["u"] * 1000, "b": ["u"] * 700 + ["v", "u"] * 150}
    for way in ("off", "on"):
        monkeypatch.setenv("TALLYBAYES_KERNELS", way)
        with pytest.warns(tb.TallybayesWarning, match=r"for 150 row\(s\), the first is row 700"):
            assert model.predict(probe).tolist() == ["p"] * 1000


# ---- codes

_CODES = {
    "small": lambda rng, shape: rng.integers(0, 10, shape),
    "negative": lambda rng, shape: rng.integers(-5, 5, shape),
    "one column wide": lambda rng, shape: np.where(
        np.arange(shape[1]) == 1, rng.integers(0, 2**60, shape), rng.integers(0, 4, shape)
    ),
    "above 255": lambda rng, shape: rng.integers(250, 270, shape),
    "extremes": lambda rng, shape: rng.choice([-(2**63), 0, 1, 2**63 - 1], shape),
}


@pytest.mark.parametrize("values", _CODES)
@pytest.mark.parametrize(("width", "n_classes"), [(1, 2), (4, 3), (7, 9)])
@pytest.mark.parametrize("unseen", ["no evidence", "reserve"])
def test_matrices_of_codes(
    values: str, width: int, n_classes: int, unseen: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(3)
    x, y = _CODES[values](rng, (500, width)).astype(np.int64), rng.integers(0, n_classes, 500)
    columns = [tb.Column(f"x{j}", "category", missing=("3",) if j == 2 else ()) for j in range(width)]
    schema = tb.Schema(columns, target="y", label_type="int")
    slow, fast = both(lambda: tb.count(x, schema, y), monkeypatch)
    assert fast == slow
    assert fast.digest == slow.digest
    weighed = both(lambda: tb.count(x, schema, y, weights=rng.integers(1, 3, 500) * 0 + 0.5), monkeypatch)
    assert weighed[0] == weighed[1]
    probe = np.where(rng.random(x.shape) < 0.2, rng.choice([-(2**62), 77, 2**62], x.shape), x)
    weights = {"x0": 0.0, f"x{width - 1}": 0.3} if width > 1 else {}
    model = slow.model(tb.Settings(weights=weights, unseen=unseen))
    answers = both(lambda: (model.log_joint(probe), model.predict(probe)), monkeypatch)
    np.testing.assert_allclose(answers[1][0], answers[0][0], rtol=1e-12)
    assert answers[1][1].tolist() == answers[0][1].tolist()


def test_a_text_that_looks_like_a_number_is_not_that_number(monkeypatch: pytest.MonkeyPatch) -> None:
    table = {"x0": ["03", "-0", "3", "٣"] * 30, "y": ["a", "b", "c", "d"] * 30}
    model = tb.count(table, tb.Schema([tb.Column("x0", "category")], target="y")).model()
    x = np.tile([[3], [0]], (100, 1))
    slow, fast = both(lambda: model.log_joint(x), monkeypatch)
    np.testing.assert_allclose(fast, slow, rtol=1e-12)
    assert model.predict(x[:1]).tolist() == ["c"]


# ---- texts

_TEXTS = {
    "short": ["a", "b", "", "ab", "a\0", "value 3", "value 10"],
    "eight and more": ["exactly8", "exactly9", "exactly 16 bytes", "exactly 16 bytez", "nine byte", "nine bytf"],
    "long": ["the same beginning and " + "x" * k + " the same ending" for k in range(40)]
    + ["the same beginning, no. 1, the same end", "the same beginning, no. 2, the same end"],
    "not ASCII": ["é", "e\u0301", "Straße", "\U0001f600\U0001f600", "日本語", "日本", "ы" * 9],
    "many": [f"value {i}" for i in range(2048)],
    "too many": [f"value {i}" for i in range(2049)],
}


@pytest.mark.parametrize("values", _TEXTS)
@pytest.mark.parametrize("large", [False, True])
@pytest.mark.parametrize("gone", [0.0, 0.1, 1.0])
def test_texts_are_numbered_as_arrow_does(
    values: str, large: bool, gone: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(9)
    rows = rng.choice(len(_TEXTS[values]), 9001)
    rows[: len(_TEXTS[values])] = np.arange(len(_TEXTS[values]))[::-1]
    given = [None if g else _TEXTS[values][i] for i, g in zip(rows.tolist(), rng.random(9001) < gone, strict=True)]
    whole = pa.array(given, pa.large_string() if large else pa.string())
    for raw in (whole, whole[3:], whole[8:8500]):  # of which the bits begin within a byte
        slow, fast = both(lambda raw=raw: reading.category(raw, ("ab",)), monkeypatch)
        assert fast.slots == slow.slots
        assert np.array_equal(fast.codes, slow.codes)
    monkeypatch.setenv("TALLYBAYES_KERNELS", "on")
    assert (reading.numbered(whole) is None) == (values == "too many" and gone == 0)


# ---- cells


@pytest.mark.parametrize("points", [(), (0.0, 1.5, 4.0)])
@pytest.mark.parametrize("exponent", [-7, 0, 900, -900, 1010, -1074])
def test_cells_are_counted_alike(points: tuple[float, ...], exponent: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(4)
    cells = tb.Cells(float(np.ldexp(1.0, exponent)), exponent, points)
    width = float(np.ldexp(1.0, exponent))
    near = np.concatenate([np.arange(-300, 300), np.arange(-300, 300) + 0.5, rng.normal(size=3000) * 200]) * width
    edges = cells.edges(np.arange(-MIDDLE - 40, MIDDLE + 40))[0]
    with np.errstate(over="ignore"):
        tails = np.concatenate([edges, np.nextafter(edges, -np.inf), near, near * 1e5, [5e-324, -5e-324, 0.0, -0.0]])
    x = np.concatenate([tails[np.isfinite(tails)], points, np.full(9, np.nan)])
    y = rng.integers(0, 3, len(x))
    schema = tb.Schema([tb.Column("x", "number", cells=cells)], target="y", label_type="int")
    slow, fast = both(lambda: tb.count({"x": x, "y": y}, schema), monkeypatch)
    assert fast == slow
    assert "cells" in fast.columns["x"].sheets


def test_a_value_out_of_reach_goes_the_long_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBAYES_KERNELS", "on")
    cells = tb.Cells(0.0, -20)
    x, y = np.array([1.0, 2.0**60] * 10_000), np.zeros(20_000, dtype=np.int64)
    assert sums.cell_sums(x, y, 1, cells) is None
    assert sums.cell_sums(x[::2].copy(), y[::2].copy(), 1, cells) is not None
    assert int(cells.codes(x[1:2])[0]) > REACH


# ---- bags


def _bags(rng: np.random.Generator, rows: int = 3000) -> tuple[Any, np.ndarray, tb.Schema]:
    x = scipy.sparse.random_array((rows, 700), density=0.05, rng=rng, format="csr")
    x.data = np.ceil(x.data * 5)
    x.sort_indices()
    y = rng.integers(0, 12, rows)  # as texts "10" comes before "2"
    return x, y, tb.Schema([tb.Column("x", "bag", width=700)], target="y", label_type="int")


@pytest.mark.parametrize("cached", [True, False], ids=["row by row", "class by class"])
def test_the_sheet_of_a_matrix_is_a_sheet_like_any_other(
    cached: bool, tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not cached:
        monkeypatch.setattr(entries, "_CACHED", 0)
    x, y, schema = _bags(np.random.default_rng(5))
    slow, fast = both(lambda: tb.count(x, schema, y), monkeypatch)
    assert isinstance(fast.columns["x"].sheets["words"], dense.BagSheet)
    assert not isinstance(slow.columns["x"].sheets["words"], dense.BagSheet)
    for settings in (
        tb.Settings(),
        tb.Settings(families={"x": "bernoulli"}),
        tb.Settings(families={"x": "complement"}),
    ):
        wanted, found = slow.model(settings).beliefs["x"], fast.model(settings).beliefs["x"]
        assert np.array_equal(found.table().values, wanted.table().values)
        assert list(found.table().rows) == list(wanted.table().rows)
    assert len(fast.columns["x"].sheets["words"]) == len(slow.columns["x"].sheets["words"])
    assert fast.impossible() is None
    assert fast == slow
    assert fast.digest == slow.digest
    assert fast - slow == tb.Tally.zero(schema)
    assert fast.forget(x[:10], y[:10]) == slow.forget(x[:10], y[:10])
    assert fast.regroup(["a"] * 12) == slow.regroup(["a"] * 12)
    fast.save(tmp_path / "t")
    assert tb.Tally.load(tmp_path / "t") == slow


def test_such_sheets_add(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBAYES_KERNELS", "on")
    x, y, schema = _bags(np.random.default_rng(6))
    one, two, few = (tb.count(x[s], schema, y[s]) for s in (slice(0, 1500), slice(1500, 2990), slice(2990, None)))
    total = one + two
    assert isinstance(total.columns["x"].sheets["words"], dense.BagSheet)
    assert total + few == tb.count(x, schema, y)
    assert (-one) + total == two
    large = x[:1500].copy()
    large.data *= 150_000.0  # one sum is below 2^31, two are not
    big = tb.count(large, schema, np.zeros(1500, dtype=np.int64))
    assert big + big + big == 3 * big
    assert (big + big).columns["x"].sheet("words", ("n", "documents")).table("n", 1).sum() == 2 * large.data.sum()


def test_a_matrix_that_was_only_counted_is_still_checked_when_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBAYES_KERNELS", "on")
    x, y, schema = _bags(np.random.default_rng(7))
    model = tb.count(x, schema, y).model()
    for bad in (-1.0, np.nan, np.inf):
        worse = x.copy()
        worse.data[5] = bad
        for work in (lambda w=worse: tb.count(w, schema, y), lambda w=worse: model.predict(w)):
            with pytest.raises(tb.DataError, match="row 0 "):
                work()


def test_groups_without_a_class_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """A class that no row has is no class of the tally."""
    monkeypatch.setenv("TALLYBAYES_KERNELS", "on")
    x, y, _ = _bags(np.random.default_rng(8))
    table = entries.bag_sums(x, np.where(y == 3, 4, y), 12)
    assert table is not None
    every = np.bincount(np.where(y == 3, 4, y), minlength=12)
    sheet = dense.BagSheet(("n", "documents"), dense.positions(700), table, every, np.arange(12))
    assert sorted(sheet.classes()) == [0, 1, 2, 4, 5, 6, 7, 8, 9, 10, 11]
    assert sheet.within("documents", every.astype(float))
    assert not sheet.within("documents", every * 0.01)
    assert Groups(y, 12).factors() == []
