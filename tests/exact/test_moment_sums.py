"""Moments of many groups in limbs, beside Python's integers: the same bits, whatever the numbers; and their sheet."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import tallybayes as tb
from tallybayes.exact.dense import MomentSheet
from tallybayes.exact.limbs import Limbs, canonical, root_ratio, round_ratio, whole_numbers
from tallybayes.exact.moments import LimbSums, Pairs, WholeSums, difference, moment_sums, product, quotients, roots
from tallybayes.exact.sheet import Sheet, add_sheets
from tallybayes.exact.sums import exact_sums

GROUPS = 40


def _values(kind: str, rng: np.random.Generator, rows: int) -> np.ndarray:
    x = rng.normal(size=rows)
    out = {
        "plain": x,
        "offset": 1e15 + x,
        "far offset": 1e300 + x * 1e285,
        "constant": np.full(rows, 0.1),
        "whole": np.rint(x * 3),
        "halves": np.rint(x * 4) / 2,
        "subnormal": np.rint(x * 50) * 5e-324,
        "huge": x * 1e200,
        "largest": np.sign(x) * np.finfo(float).max,
        "tiny": x * 1e-200,
        "any": x * 10.0 ** rng.integers(-300, 300, rows),
    }
    return out[kind]


KINDS = ["plain", "offset", "far offset", "constant", "whole", "halves", "subnormal", "huge", "largest", "tiny", "any"]


def _limbs(kind: str, weights: str) -> list[Limbs]:
    rng = np.random.default_rng(len(kind))
    rows = 600
    x, groups = _values(kind, rng, rows), rng.integers(0, GROUPS - 2, rows)  # the last groups are empty
    groups[: rows // 3] = 0
    w = {"none": [], "thirds": [np.rint(rng.random(rows) * 2**32) / 2**32], "light": [np.full(rows, 2.0**-60)]}[weights]
    return [exact_sums(groups, GROUPS, [*w, *more]) for more in ([], [x], [x, x])]


def _same(sums: list[Limbs], n_labels: int) -> None:
    fast = LimbSums(*sums, n_labels)
    slow = WholeSums(*((v.reshape(-1, n_labels), e) for v, e in map(whole_numbers, sums)))
    for a, b in ((fast, slow), (fast.together(), slow.together())):
        assert np.array_equal(a.impossible(), b.impossible())
        assert np.array_equal(a.n(), b.n())
        if not a.impossible().any():
            for found, wanted in zip(a.rounded(), b.rounded(), strict=True):
                assert np.array_equal(found, wanted)
                assert np.array_equal(np.signbit(found), np.signbit(wanted))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", ["none", "thirds", "light"])
def test_limbs_and_integers_round_alike(kind: str, weights: str) -> None:
    sums = _limbs(kind, weights)
    for n_labels in (1, 4):
        _same(sums, n_labels)
    _same([Limbs(f.lowest, -f.array) for f in sums], 4)  # a difference of tallies


def test_sums_that_no_numbers_have_are_found() -> None:
    n, x, xx = _limbs("offset", "none")
    less = Limbs(xx.lowest, xx.array.copy())
    less.array[3] //= 4
    gone = Limbs(n.lowest, n.array.copy())
    gone.array[5] = 0
    for sums in ([n, x, less], [gone, x, xx]):
        fast = LimbSums(*sums, 4)
        assert fast.impossible().sum() == 1
        _same(sums, 4)


@given(st.lists(st.tuples(st.integers(-(2**200), 2**200), st.integers(0, 2**120)), min_size=1, max_size=20), st.data())
@examples(60)
def test_products_quotients_and_roots(pairs: list[tuple[int, int]], data: st.DataObject) -> None:
    """Against whole numbers; a tie or a float64 out of range is left to the caller, never answered wrongly."""
    lowest = data.draw(st.integers(-40, 40))
    first, second = (_of([p[k] for p in pairs], lowest) for k in range(2))
    for made, wanted in ((product(first, second), [a * b for a, b in pairs]), (difference(first, second), None)):
        values, exponent = whole_numbers(canonical(made))
        unit = Fraction(2) ** (64 * lowest if wanted else 32 * lowest)
        assert [int(v) * Fraction(2) ** exponent for v in values] == [
            v * unit for v in wanted or [a - b for a, b in pairs]
        ]
    for value, sure, (a, b) in zip(*quotients(first, Pairs.of(second)), pairs, strict=True):
        assert b == 0 or not sure or value == round_ratio(a, b)
    positive = _of([abs(a) for a, _ in pairs], lowest)
    for value, sure, (a, b) in zip(*roots(positive, Pairs.of(second)), pairs, strict=True):
        assert b == 0 or not sure or value == root_ratio(abs(a), b * b, -32 * lowest)


def _of(numbers: list[int], lowest: int) -> Limbs:
    array = [[abs(v) >> (32 * k) & 0xFFFFFFFF for k in range(7)] for v in numbers]
    sign = [[1 if v >= 0 else -1] for v in numbers]
    return Limbs(lowest, np.array(array, dtype=np.int64) * np.array(sign))


def test_ties_are_left_to_the_integers() -> None:
    """2^53 + 1 lies in the middle of two float64."""
    numbers = _of([2**53 + 1, 2**54 + 2, 2**53 + 3, 2**53], 0)
    value, sure = quotients(numbers, Pairs.of(_of([1, 2, 1, 1], 0)))
    assert sure.tolist() == [False, False, False, True]
    assert value[3] == 2.0**53
    near = _of([(2**53 + 1) * 2**70 + 1], 0)
    assert not quotients(near, Pairs.of(_of([2**70], 0)))[1].any()  # 2^-123 from a tie
    assert quotients(numbers, Pairs.of(_of([3, 3, 3, 3], 0)))[1].all()


# ---- the sheet


def _sheets(own: list[int]) -> tuple[MomentSheet, Sheet]:
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(200, 12)) * 10.0 ** rng.integers(-20, 20, 12), rng.integers(0, len(own), 200)
    groups = np.arange(12) * len(own) + y[:, None]
    kept = np.broadcast_to(np.arange(12) != 5, x.shape)  # a position without a value has no slot
    sums = [exact_sums(groups[kept], 12 * len(own), [x[kept]] * k) for k in range(3)]
    names = tuple(map(str, range(12)))
    order = np.argsort(own)
    turned = [Limbs(f.lowest, f.array.reshape(12, len(own), -1)[:, order].reshape(f.array.shape)) for f in sums]
    plain = Sheet.dense(names, len(own), dict(zip(("n", "x", "xx"), turned, strict=True)))
    return MomentSheet(("n", "x", "xx"), names, sums, np.array(own)), plain.relabel(np.sort(own))


@pytest.mark.parametrize("own", [[0, 1, 2], [0, 2, 5], [2, 0, 1]])
def test_the_sheet_of_moments_is_a_sheet_like_any_other(own: list[int]) -> None:
    ours, plain = _sheets(own)
    assert len(ours.slot_names) == 11
    assert ours.slot_names == plain.slot_names
    assert sorted(ours.classes()) == sorted(plain.classes())
    for amount in ("n", "x", "xx"):
        found, wanted = (whole_numbers(s.limbs(amount, 6)) for s in (ours, plain))
        unit = Fraction(2)
        assert [int(v) * unit ** found[1] for v in found[0]] == [int(v) * unit ** wanted[1] for v in wanted[0]]
        assert np.array_equal(ours.table(amount, 6), plain.table(amount, 6))
    assert ours == plain
    assert b"".join(ours.content()) == b"".join(plain.content())
    assert add_sheets([ours, ours]) == add_sheets([plain, plain]) == add_sheets([ours, plain])
    assert isinstance(add_sheets([ours, ours]), MomentSheet)
    assert not add_sheets([ours, -ours])
    assert -ours == -plain
    assert ours.negative(["n", "xx"]) is None
    minus = MomentSheet(ours.amounts, ours.names, [Limbs(f.lowest, -f.array) for f in ours.sums], ours.own)
    assert minus.negative(["n"]) == (-plain).negative(["n"])
    assert ours.within("n", np.full(6, 200.0))
    assert not ours.within("n", np.full(6, 3.0))
    assert ours.regroup(np.zeros(6, dtype=np.int64)) == plain.regroup(np.zeros(6, dtype=np.int64))


def test_a_class_without_an_entry_leaves_the_sheet() -> None:
    """Rows of weight 0 add nothing, no class either."""
    ours, plain = _sheets([0, 1, 2])
    new = np.array([0, 1, -1, 2])
    wide = [Limbs(f.lowest, np.insert(f.array.reshape(12, 3, -1), 2, 0, axis=1).reshape(48, -1)) for f in ours.sums]
    left = MomentSheet(ours.amounts, ours.names, wide, np.arange(4)).relabel(new)
    assert left == ours == plain
    for amount in ours.amounts:
        assert np.array_equal(left.limbs(amount, 3).array, ours.limbs(amount, 3).array)
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(90, 30)), np.arange(90) % 3
    schema = tb.Schema([tb.Column("x", "vector", width=30)], target="y", label_type="int")
    weighed = tb.count(x, schema, y, weights=(y != 1) * 1.0)
    assert weighed == tb.count(x[y != 1], schema, y[y != 1])
    assert np.array_equal(weighed.model().log_joint(x), tb.count(x[y != 1], schema, y[y != 1]).model().log_joint(x))


def test_a_tally_of_vectors_learns_and_forgets() -> None:
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(500, 40)) * 1e-3 + 1e6, rng.integers(0, 12, 500)
    schema = tb.Schema([tb.Column("x", "vector", width=40)], target="y", label_type="int")
    tally = tb.count(x, schema, y)
    assert isinstance(moment_sums(tally.columns["x"], 12), LimbSums)
    parts = sum(tb.count(x[i : i + 100], schema, y[i : i + 100]) for i in range(0, 500, 100))
    assert parts == tally
    assert parts.digest == tally.digest
    assert tally.forget(x[:300], y[:300]) == tb.count(x[300:], schema, y[300:])
    with pytest.raises(tb.CannotForget, match="moments that no numbers have"):
        tally.forget(x[:20] + 1.0, y[:20])
    belief = tally.model().beliefs["x"]
    exact = [[Fraction(v) for v in x[y == c, 7].tolist()] for c in range(12)]
    for c, values in enumerate(exact):
        mean = sum(values) / len(values)
        variance = sum((v - mean) ** 2 for v in values) / len(values)
        assert belief.location[7, c] == float(mean)
        assert belief.scale[7, c] == root_ratio(variance.numerator, variance.denominator)
