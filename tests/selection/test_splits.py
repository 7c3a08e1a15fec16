"""Folds as pure functions: sizes, shares, groups, and the hash of a row."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import tallybayes as tb
from tallybayes.data import encode
from tallybayes.data.copies import row_hashes
from tallybayes.data.sources import open_source
from tallybayes.data.texts import Texts
from tallybayes.selection import splits


@examples(60)
@given(st.integers(2, 60), st.integers(2, 12), st.integers(0, 2**40))
def test_k_fold_shares_rows_out_evenly(rows: int, folds: int, seed: int) -> None:
    found = splits.k_fold(rows, folds, seed)
    sizes = np.bincount(found)
    assert len(sizes) == min(folds, rows)
    assert sizes.max() - sizes.min() <= 1
    np.testing.assert_array_equal(found, splits.k_fold(rows, folds, seed))


@examples(60)
@given(st.lists(st.integers(-1, 4), min_size=4, max_size=80), st.integers(2, 10), st.integers(0, 99))
def test_stratified_gives_every_fold_its_share_of_every_class(labels: list[int], folds: int, seed: int) -> None:
    y = np.array([*labels, 0, 0])
    found = splits.stratified(y, folds, seed)
    np.testing.assert_array_equal(found < 0, y < 0)
    used = found.max() + 1
    for label in set(y.tolist()) - {-1}:
        sizes = np.bincount(found[y == label], minlength=used)
        assert sizes.max() - sizes.min() <= 1
    sizes = np.bincount(found[found >= 0])
    assert sizes.max() - sizes.min() <= 1


@examples(60)
@given(st.lists(st.integers(-1, 9), min_size=3, max_size=80), st.integers(2, 6), st.integers(0, 99))
def test_groups_are_never_cut(groups: list[int], folds: int, seed: int) -> None:
    g = np.array([*groups, 10, 11])
    found = splits.grouped(g, folds, seed)
    np.testing.assert_array_equal(found < 0, g < 0)
    for group in set(g.tolist()) - {-1}:
        assert len(set(found[g == group].tolist())) == 1
    sizes = np.bincount(found[found >= 0])
    assert (sizes > 0).all()
    assert sizes.max() - sizes.min() <= np.bincount(g[g >= 0]).max()


@examples(60)
@given(st.lists(st.integers(0, 20), min_size=2, max_size=80), st.integers(2, 9))
def test_time_goes_forward_from_block_to_block(times: list[int], blocks: int) -> None:
    t = np.array([*times, 21, 22])
    found = splits.time_ordered(t, blocks)
    assert set(found.tolist()) == set(range(found.max() + 1))
    assert found.max() < blocks
    for k in range(found.max()):
        assert t[found == k].max() < t[found == k + 1].min()


@examples(60)
@given(st.lists(st.integers(-1, 3), min_size=5, max_size=60), st.integers(0, 99))
def test_shares_of_rows_and_of_every_class(labels: list[int], seed: int) -> None:
    y = np.array(labels)
    given_shares = np.array([0.6, 0.2, 0.2])
    found = splits.shares(len(y), given_shares, seed, y)
    np.testing.assert_array_equal(found < 0, y < 0)
    for label in set(labels) - {-1}:
        sizes = np.bincount(found[y == label], minlength=3)
        assert (np.abs(sizes - given_shares * sizes.sum()) < 2).all()
    sizes = np.bincount(found[found >= 0], minlength=3)
    assert (np.abs(sizes - given_shares * sizes.sum()) < 1).all()


def test_repeats_and_leave_one_out() -> None:
    seeds = splits.repeated(7, 4)
    assert seeds[0] == 7
    assert len(set(seeds)) == 4
    assert splits.repeated(7, 2) == seeds[:2]
    np.testing.assert_array_equal(splits.leave_one_out(3), [0, 1, 2])


TABLE = {
    "n": [1.0, -0.0, 0.0, None, 2.5, 1.0],
    "c": ["a", "b", "b", "a", None, "a"],
    "t": ["one two", "", "", "x", None, "one two"],
    "w": [["u", "v"], [], [], None, ["u"], ["v", "u"]],
    "v": [[1.0, 2.0], [0.0, 1.0], [-0.0, 1.0], None, [3.0, None], [1.0, 2.0]],
    "y": ["p", "q", "p", "q", "p", "q"],
}
SCHEMA = tb.Schema(
    [
        tb.Column("n", "number"),
        tb.Column("c", "category"),
        tb.Column("t", "text"),
        tb.Column("w", "bag"),
        tb.Column("v", "vector", width=2),
    ],
    target="y",
)


def hashed(table: dict, seed: int = 0) -> np.ndarray:
    (batch,) = open_source(table).batches()
    return row_hashes(encode.blocks(SCHEMA, batch), batch.rows, seed)


def test_equal_rows_have_equal_hashes_whatever_their_order_and_class() -> None:
    found = hashed(TABLE)
    assert found[0] == found[5]
    assert found[1] == found[2]  # −0 is 0
    assert len(set(found.tolist())) == 4
    order = [3, 5, 0, 4, 2, 1]
    np.testing.assert_array_equal(hashed({k: [v[i] for i in order] for k, v in TABLE.items()}), found[order])
    assert not (hashed(TABLE, seed=1) == found).any()
    # every column counts
    for name in ("n", "c", "t", "w", "v"):
        other = {k: list(v) for k, v in TABLE.items()}
        other[name][0] = other[name][4]
        assert hashed(other)[0] != found[0], name


def test_hash_folds_are_about_even() -> None:
    rng = np.random.default_rng(3)
    data = {"n": rng.normal(size=20_000), "y": ["a"] * 20_000}
    schema = tb.Schema([tb.Column("n", "number")], target="y")
    (batch,) = open_source(data).batches()
    sizes = np.bincount(splits.by_hash(encode.blocks(schema, batch), batch.rows, 10))
    assert ((sizes - 2000) ** 2 / 2000).sum() < 27.9  # chi squared, 9 degrees of freedom, one in a thousand


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: splits.k_fold(10, 1), "folds=1"),
        (lambda: splits.k_fold(10, 2.5), "folds=2.5"),
        (lambda: splits.k_fold(1, 2), "1 row cannot"),
        (lambda: splits.grouped(np.zeros(5, dtype=int), 2), "1 group cannot"),
        (lambda: splits.shares(10, (0.5, 0.4)), "add up to 1"),
        (lambda: splits.repeated(0, 0), "repeats=0"),
        (lambda: splits.by_hash({}, 4, 1), "folds=1"),
    ],
)
def test_bad_input_is_refused(call: object, message: str) -> None:
    with pytest.raises(tb.SettingsError, match=message):
        call()


@pytest.mark.parametrize("kind", [pa.string(), pa.large_string()])
def test_receipts_of_texts_are_their_bytes_wherever_they_begin(kind: pa.DataType) -> None:
    texts = ["left out", "naïve ☃", None, "", "end", "left out"]
    for first, last in ((0, 6), (1, 5), (2, 3), (3, 3)):
        some = Texts(pa.array(texts, kind).slice(first, last - first), tb.Tokeniser())
        assert some.receipts() == [b"-" if t is None else b"=" + t.encode() for t in texts[first:last]]
