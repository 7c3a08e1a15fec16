"""The sums of sparse matrices by class: cells that are carried, strips and threads beside plain sums, bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

import tallybayes as tb
from tallybayes.exact import entries
from tallybayes.families import Multinomial

pytest.importorskip("numba", reason="without Numba there are no kernels to compare with")

from tallybayes.exact.kernels import entries as kernels

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(autouse=True)
def _on_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBAYES_KERNELS", "on")
    monkeypatch.setenv("TALLYBAYES_THREADS", "3")
    monkeypatch.setattr(entries, "_ENTRIES_PER_THREAD", 1)


def _matrix(rng: np.random.Generator, rows: int, width: int, most: int = 9, dense: float = 0.4) -> Any:
    x = scipy.sparse.random_array((rows, width), density=dense, rng=rng, format="csr")
    x.data = rng.integers(1, most + 1, x.nnz).astype(float)
    x.sort_indices()
    return x


def _plain(x: Any, y: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray]:
    """Amounts and numbers of rows, classes × slots, by adding whole rows of whole numbers."""
    dense = x.toarray().astype(np.int64)
    n, documents = np.zeros((2, classes, x.shape[1]), np.int64)
    np.add.at(n, y, dense)
    np.add.at(documents, y, dense > 0)
    return n, documents


def _check(x: Any, y: np.ndarray, classes: int) -> None:
    found = entries.bag_sums(x, y, classes)
    assert found is not None
    n, documents = _plain(x, y, classes)
    assert np.array_equal(found.table >> 32, n)
    assert np.array_equal(found.table & 0xFFFFFFFF, documents)
    assert np.array_equal(found.totals, np.stack([n.sum(axis=1), documents.sum(axis=1)], axis=1))


@pytest.fixture
def carried(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """The class and the type of every carrying of cells."""
    seen: list[tuple[int, int]] = []
    whole = entries._Adding.carry

    def carry(self: Any, cells: Any, classes: slice) -> None:
        seen.append((classes.start, cells.dtype.itemsize))
        whole(self, cells, classes)

    monkeypatch.setattr(entries._Adding, "carry", carry)
    return seen


@pytest.mark.parametrize("cached", [True, False], ids=["row by row", "class by class"])
@pytest.mark.parametrize("classes", [1, 2, 7, 300])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_sums_are_those_of_whole_rows(cached: bool, classes: int, index: type, monkeypatch: pytest.MonkeyPatch) -> None:
    if not cached:
        monkeypatch.setattr(entries, "_CACHED", 0)
    rng = np.random.default_rng(classes)
    x = _matrix(rng, 400, 30)
    x = x.multiply(rng.random(400)[:, None] < 0.7).tocsr()  # some rows are empty, the first and the last, too
    x = x.multiply(((np.arange(400) > 2) & (np.arange(400) < 396))[:, None]).tocsr()
    x.eliminate_zeros()
    x = scipy.sparse.csr_array((x.data, x.indices.astype(index), x.indptr.astype(index)), shape=x.shape)
    y = rng.integers(0, classes, 400)
    _check(x, y, classes)
    assert entries.is_plain(x)


def test_long_rows_and_many_strips() -> None:
    rng = np.random.default_rng(1)
    _check(_matrix(rng, 5, 60_000, dense=0.9), np.array([0, 1, 0, 1, 1]), 2)  # each longer than a strip
    _check(_matrix(rng, 9_000, 40, dense=0.5), rng.integers(0, 3, 9_000), 3)  # many to a strip
    assert kernels.STRIP < 60_000 * 0.9


@pytest.mark.parametrize("most", [3, 1 << 12, 1 << 20])
@pytest.mark.parametrize("row_bits", [1, 3, 16])
@pytest.mark.parametrize("cached", [True, False], ids=["row by row", "class by class"])
def test_cells_are_carried_before_they_overflow(
    most: int, row_bits: int, cached: bool, carried: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few bits for the rows overflow into the amounts, large amounts out of the cell: the sums would be wrong."""
    monkeypatch.setattr(entries, "_ROW_BITS", row_bits)
    monkeypatch.setattr(entries, "_WORTH", 10**9)
    if not cached:
        monkeypatch.setattr(entries, "_CACHED", 0)
    rng = np.random.default_rng(most + row_bits)
    x, y = _matrix(rng, 900, 25, most=most), rng.integers(0, 3, 900)
    x.data[rng.random(x.nnz) < 0.1] = most
    _check(x, y, 3)
    assert {size for _, size in carried} == {4}
    overflows = row_bits < 16 or most == 1 << 20
    assert (len(carried) > 12) == overflows  # more than at the end, and where a class passes to another thread


def test_a_cell_is_filled_to_its_last_bit(carried: list[Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Three rows of one amount each: the third fills both parts of the cell, a fourth would not fit."""
    monkeypatch.setenv("TALLYBAYES_THREADS", "1")
    monkeypatch.setattr(entries, "_CELL_BITS", 2 + 6)
    monkeypatch.setattr(entries, "_ROW_BITS", 2)
    monkeypatch.setattr(entries, "_WORTH", 10**9)
    for rows, times in ((3, 1), (4, 2)):
        carried.clear()
        _check(scipy.sparse.csr_array(np.full((rows, 2), 21.0)), np.zeros(rows, np.int64), 1)
        assert len(carried) == times
    monkeypatch.setattr(entries, "_CELL_BITS", 32)
    _check(scipy.sparse.csr_array(np.full((3, 2), 2.0**29)), np.zeros(3, np.int64), 1)  # a sum of 1.5 · 2^30


def test_large_amounts_take_large_cells(carried: list[Any]) -> None:
    rng = np.random.default_rng(2)
    x, y = _matrix(rng, 1000, 2000, most=1_000_000, dense=0.1), rng.integers(0, 2, 1000)
    _check(x, y, 2)
    assert {size for _, size in carried} == {8}


def test_one_large_amount_among_small_ones(carried: list[Any]) -> None:
    rng = np.random.default_rng(3)
    x, y = _matrix(rng, 2000, 200), rng.integers(0, 2, 2000)
    x.data[x.nnz // 2] = 2.0**19
    _check(x, y, 2)
    x.data[x.nnz // 2] = 2.0**40
    assert entries.bag_sums(x, y, 2) is None
    assert not entries.is_plain(x)


@pytest.mark.parametrize(
    "bad",
    [0.0, -0.0, -1.0, 0.5, 1.5, 1e-300, 2.0**52 + 2, 2.0**53, 2.0**62, 1e300, np.nan, -np.nan, np.inf, -np.inf,
     4503599627370495.5, np.nextafter(1.0, 2.0), np.nextafter(1.0, 0.0), -(2.0**52), -(2.0**53)],
)  # fmt: skip
@pytest.mark.parametrize("place", [0, 5, -1])
def test_what_is_no_small_whole_amount_is_noticed(bad: float, place: int) -> None:
    rng = np.random.default_rng(4)
    x, y = _matrix(rng, 50, 20), rng.integers(0, 2, 50)
    x.data[place] = bad
    assert entries.bag_sums(x, y, 2) is None
    assert not entries.is_plain(x)


@pytest.mark.parametrize("slot", [-1, 20, 2**31 - 1, -(2**31)])
@pytest.mark.parametrize("place", [0, 7, -1])
def test_a_slot_outside_the_matrix_is_noticed(slot: int, place: int) -> None:
    rng = np.random.default_rng(5)
    x, y = _matrix(rng, 50, 20), rng.integers(0, 2, 50)
    x.indices[place] = slot
    assert entries.bag_sums(x, y, 2) is None


def test_rows_out_of_order_or_with_a_slot_twice_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    schema = tb.Schema([tb.Column("x", "bag", width=4)], target="y", label_type="int")
    y = np.array([0, 1, 0])
    for indices in ([0, 1, 1, 2, 0, 3], [1, 0, 1, 2, 0, 3], [0, 1, 2, 2, 0, 3], [0, 1, 0, 2, 3, 0]):
        x = scipy.sparse.csr_array((np.arange(1.0, 7.0), np.array(indices), np.array([0, 2, 4, 6])), shape=(3, 4))
        plain = indices[::2] < indices[1::2] and all(a < b for a, b in zip(indices[::2], indices[1::2], strict=True))
        assert (entries.bag_sums(x, y, 2) is not None) == plain
        fast = tb.count(x, schema, y)
        monkeypatch.setenv("TALLYBAYES_KERNELS", "off")
        assert fast == tb.count(x, schema, y)
        monkeypatch.setenv("TALLYBAYES_KERNELS", "on")


def test_row_ends_that_lie_are_noticed() -> None:
    """Never by reading beyond the arrays."""
    data, indices = np.ones(6), np.array([0, 1, 0, 1, 0, 1], np.int32)
    for indptr in ([0, 2, 4, 8], [0, 4, 2, 6], [-2, 2, 4, 6], [0, 2, 9, 6]):
        left, order, labels = np.full((1, 3), 99), np.arange(3), np.zeros(3, np.int64)
        cells = np.zeros((1, 2), np.uint32)
        given = (np.array(indptr, np.int32), indices, data, order, 0, labels, 0, 2, 10, 8, cells, left)
        assert kernels.sum_entries(*given, np.empty(6, np.uint32)) == -1


@pytest.mark.parametrize("amounts", ["whole", "large", "real"])
@pytest.mark.parametrize("alpha", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("presence", [True, False])
def test_the_smoothed_table_in_one_pass_has_the_same_bits(
    amounts: str, alpha: float, presence: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(6)
    x, y = _matrix(rng, 500, 300), rng.integers(0, 11, 500)
    if amounts == "large":
        x.data *= 2.0**40
    elif amounts == "real":
        x.data *= rng.random(x.nnz)
    schema = tb.Schema([tb.Column("x", "bag", width=300)], target="y", label_type="int")
    family = Multinomial(presence=presence)
    found = []
    for way in ("on", "off"):
        monkeypatch.setenv("TALLYBAYES_KERNELS", way)
        tally = tb.count(x, schema, y)
        found.append((tally, tally.model(tb.Settings(smoothing=tb.Laplace(alpha), families={"x": family}))))
    (fast_tally, fast), (slow_tally, slow) = found
    assert fast_tally == slow_tally
    a, b = fast.beliefs["x"], slow.beliefs["x"]
    assert a.words == b.words
    assert np.array_equal(a.probabilities, b.probabilities)
    assert np.array_equal(a.length, b.length)


def test_a_class_that_is_only_imagined_has_its_column(monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(7)
    x, y = _matrix(rng, 100, 30), rng.integers(0, 3, 100)
    schema = tb.Schema([tb.Column("x", "bag", width=30)], target="y", label_type="int")
    settings = tb.Settings(prior=tb.Dirichlet({0: 1, 1: 1, 2: 1, 5: 1}))
    fast = tb.count(x, schema, y).model(settings).beliefs["x"]
    monkeypatch.setenv("TALLYBAYES_KERNELS", "off")
    slow = tb.count(x, schema, y).model(settings).beliefs["x"]
    assert fast.probabilities.shape == (30, 4)
    assert np.array_equal(fast.probabilities, slow.probabilities)


@pytest.mark.parametrize("amounts", ["small", "large", "huge", "real", "zero"])
@pytest.mark.parametrize("form", ["matrix", "long numbers", "out of order", "twice", "dicts"])
def test_few_entries_are_listed_alike(amounts: str, form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where a full table would stay empty: a counting sort by the kernels, products of matrices without."""
    rng = np.random.default_rng(8)
    x, y = _matrix(rng, 60, 3000, dense=0.004), rng.integers(0, 40, 60)
    factor = {"small": 1.0, "large": 2.0**31, "huge": 2.0**40, "real": 0.37, "zero": 1.0}[amounts]
    data, indices = x.data * factor, x.indices.copy()
    data[3] = 0.0 if amounts == "zero" else data[3]
    ends = list(zip(x.indptr[:-1], x.indptr[1:], strict=True))
    for a, b in ends if form in ("out of order", "twice") else ():
        indices[a:b] = indices[a:b][::-1]
        if form == "twice" and b > a:
            indices[a] = indices[b - 1]
    kind = np.int64 if form == "long numbers" else np.int32
    bags: Any = scipy.sparse.csr_array((data, indices.astype(kind), x.indptr.astype(kind)), shape=x.shape)
    if form == "dicts":
        bags = [{f"w{j}": v for j, v in zip(indices[a:b], data[a:b], strict=True)} for a, b in ends]
    column = tb.Column("x", "bag", width=None if form == "dicts" else 3000)
    schema = tb.Schema([column], target="y", label_type="int")
    fast = tb.count({"x": bags, "y": y}, schema)
    monkeypatch.setenv("TALLYBAYES_KERNELS", "off")
    slow = tb.count({"x": bags, "y": y}, schema)
    assert fast == slow
    assert fast.digest == slow.digest
    assert fast.model().beliefs["x"].table().values.tolist() == slow.model().beliefs["x"].table().values.tolist()


def test_listed_sums_are_those_of_a_product() -> None:
    rng = np.random.default_rng(9)
    x, y = _matrix(rng, 80, 500, dense=0.02), rng.integers(0, 5, 80)
    order = np.argsort(y, kind="stable")
    found, wanted = entries.sparse_sums(x, y, 5), entries._by_product(x, y, 5, order)
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))
    assert 0 < found.used.sum() < 500


def test_no_rows_at_all() -> None:
    under = tb.Schema([tb.Column("b", "bag"), tb.Column("t", "text")], target="y")
    tally = tb.count({"b": [["u", "v"], []], "t": ["u v", ""], "y": [None, None]}, under)
    assert (tally.rows, tally.skipped) == (0, 2)
    assert (
        tb.count({"b": [["u"]], "t": ["u"], "y": ["p"]}, under).forget({"b": [["u"]], "t": ["u"], "y": ["p"]}).rows == 0
    )
