"""Nothing rounds until the end: sums, moments, cells and receipts against `fractions.Fraction`."""

from __future__ import annotations

import math
import os
import warnings
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import KINDS, SPECIAL, examples, finite, fresh_digest, numbers, schema, tables

import tallybayes as tb
from tallybayes.exact import sums
from tallybayes.exact.kernels import gate
from tallybayes.exact.limbs import Limbs, canonical, root_ratio, round_ratio, to_float, whole_numbers
from tallybayes.exact.sums import exact_sums

pytestmark = pytest.mark.core

BASE = 2**32
positive = st.sampled_from([0.0, 1.0, 2.0**-32, 1 / 3, 2.0**30]) | st.floats(0, 1e6)


def fractions(limbs: Limbs) -> list[Fraction]:
    values, exponent = whole_numbers(limbs)
    return [int(v) * Fraction(2) ** exponent for v in values]


def to_nearest(value: Fraction) -> float:
    """A fraction rounded once; too large is infinite."""
    try:
        return value.numerator / value.denominator
    except OverflowError:
        return math.inf if value > 0 else -math.inf


def nearest_root(value: Fraction) -> float:
    """The square root of a fraction from 2,400 bits, rounded once."""
    return to_nearest(Fraction(math.isqrt((value.numerator << 4800) // value.denominator), 2**2400))


def check_canonical(limbs: Limbs) -> None:
    assert np.abs(limbs.array).max(initial=0) < BASE
    for row in limbs.array:
        assert (row >= 0).all() or (row <= 0).all()
    if limbs.array.any():
        assert limbs.array[:, 0].any() and limbs.array[:, -1].any()


# ---- sums


@given(data=st.data(), n_factors=st.integers(0, 3), n=st.integers(0, 12))
@examples(150)
def test_exact_sums_equal_fractions(data, n_factors, n):
    groups = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), dtype=np.int64)
    factors = [
        np.array(
            data.draw(st.lists(positive if i == 0 and n_factors == 3 else finite, min_size=n, max_size=n)), dtype=float
        )
        for i in range(n_factors)
    ]
    limbs = exact_sums(groups, 3, factors)
    expected = [Fraction(0)] * 3
    for i, group in enumerate(groups.tolist()):
        expected[group] += math.prod((Fraction(float(f[i])) for f in factors), start=Fraction(1))
    assert fractions(limbs) == expected
    check_canonical(limbs)
    assert to_float(limbs).tolist() == [to_nearest(e) for e in expected]
    order = np.random.default_rng(n).permutation(n)
    again = exact_sums(groups[order], 3, [f[order] for f in factors])
    assert again.lowest == limbs.lowest and np.array_equal(again.array, limbs.array)


@pytest.mark.parametrize("top", [1.0, 3.0, 2.0**26, 2.0**26 + 1, 2.0**27, 2.0**53, 0.5])
def test_whole_numbers_are_exact_on_both_sides_of_the_fast_path(top):
    x = np.array([top, -top, top - 1, 1.0, top, top])
    limbs = exact_sums(np.zeros(6, dtype=np.int64), 1, [x, x])
    assert fractions(limbs) == [sum(Fraction(v) ** 2 for v in x.tolist())]


def test_sums_of_more_rows_than_a_chunk():
    n = (1 << 20) + 17
    x = np.full(n, 1.7976931348623157e308)
    x[::2] = 5e-324
    limbs = exact_sums(np.zeros(n, dtype=np.int64), 1, [x])
    assert fractions(limbs) == [Fraction(x[1]) * (n // 2) + Fraction(5e-324) * (n - n // 2)]


limb = st.integers(-(2**61), 2**61)


@given(
    rows=st.lists(st.lists(limb, min_size=3, max_size=3), min_size=1, max_size=4),
    lowest=st.integers(-70, 70),
    data=st.data(),
)
@examples(150)
def test_canonical_limbs_are_unique(rows, lowest, data):
    array = np.array(rows, dtype=np.int64)
    limbs = canonical(Limbs(lowest, array.copy()))
    assert fractions(limbs) == fractions(Limbs(lowest, array))
    check_canonical(limbs)
    other = np.pad(array, ((0, 0), (1, 2)))  # the same numbers written otherwise: limbs moved, zeros around them
    for j in range(other.shape[1] - 1):
        moved = np.array(data.draw(st.lists(st.integers(-9, 9), min_size=len(rows), max_size=len(rows))))
        other[:, j] += moved * BASE
        other[:, j + 1] -= moved
    again = canonical(Limbs(lowest - 1, other))
    assert again.lowest == limbs.lowest and np.array_equal(again.array, limbs.array)
    minus = canonical(Limbs(lowest, -array))
    assert np.array_equal(minus.array, -limbs.array)


@given(
    numerator=st.integers(0, 2**200) | st.sampled_from([0, 1, 2**1074, 2**2100]),
    denominator=st.integers(1, 2**200),
    exponent=st.integers(-2200, 1000),
)
@examples(150)
def test_ratios_and_roots_round_once(numerator, denominator, exponent):
    value = Fraction(numerator, denominator) * Fraction(2) ** exponent
    assert round_ratio(numerator, denominator, exponent) == to_nearest(value)
    assert round_ratio(-numerator, denominator, exponent) == -to_nearest(value)
    assert root_ratio(numerator, denominator, exponent) == nearest_root(value)


# ---- the Numba twin


@pytest.fixture(scope="module")
def twin():
    if os.environ.get("TALLYBAYES_KERNELS") == "off":
        pytest.skip("TALLYBAYES_KERNELS=off: the kernels are switched off for this run")
    pytest.importorskip("numba", reason="Numba is not installed, so there is no twin to compare")


def both_ways(function):
    """The same call by NumPy and by Numba."""
    out = []
    for way in ("off", "on"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("TALLYBAYES_KERNELS", way)
            out.append(function())
    return out


@pytest.mark.usefixtures("twin")
def test_the_twin_is_taken_when_asked_for():
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TALLYBAYES_KERNELS", "on")
        assert gate.kernels("moments", 1) is not None
        patch.setenv("TALLYBAYES_KERNELS", "off")
        assert gate.kernels("moments", 10**9) is None


def check_twin(x, y):
    slow, fast = both_ways(lambda: sums.moments(y, 3, x, None))
    for a, b in zip(slow, fast, strict=True):
        assert fractions(a) == fractions(b)
        if a.array.any():
            assert a.lowest == b.lowest
            assert np.array_equal(a.array, b.array)


@pytest.mark.usefixtures("twin")
def test_the_twin_equals_numpy_on_every_exponent():
    rng = np.random.default_rng(7)
    x = np.ldexp(rng.uniform(0.5, 1, (4200, 2)) * rng.choice([-1, 1], (4200, 2)), rng.integers(-1080, 1025, (4200, 2)))
    x[rng.random((4200, 2)) < 0.1] = np.nan
    x[: len(SPECIAL), 0] = SPECIAL
    check_twin(x, rng.integers(0, 3, 4200))
    for exponent in range(-1074, 1024, 37):  # all bits of the mantissa set, at each place within a limb
        check_twin(np.full((3, 1), np.ldexp(2 - 2.0**-52, min(exponent, 1023))), np.array([0, 1, 1]))


@given(data=st.data(), n=st.integers(0, 8))
@examples(60)
def test_the_twin_equals_numpy_bit_for_bit(data, n, twin):
    rows = data.draw(st.lists(st.lists(finite | st.just(math.nan), min_size=2, max_size=2), min_size=n, max_size=n))
    y = np.array(data.draw(st.lists(st.integers(0, 2), min_size=n, max_size=n)), dtype=np.int64)
    check_twin(np.array(rows, dtype=float).reshape(n, 2), y)


@given(table=tables(max_size=8))
@examples(15)
def test_the_twin_gives_the_same_digest(table, twin):
    slow, fast = both_ways(lambda: table.tally(schema(KINDS)))
    assert slow == fast and slow.digest == fast.digest


# ---- moments

X = tb.Schema([tb.Column("x", "number")], target="y")


def exact_moments(rows):
    """{class: (Σw, mean, variance)} as fractions."""
    out = {}
    for label in {y for _, y, _ in rows}:
        values = [
            (Fraction(float(x)), Fraction(w)) for x, y, w in rows if y == label and x is not None and x == x and w
        ]
        n = sum(w for _, w in values)
        if n:
            mean = sum(w * x for x, w in values) / n
            out[label] = n, mean, sum(w * (x - mean) ** 2 for x, w in values) / n
    return out


@given(
    rows=st.lists(
        st.tuples(numbers, st.sampled_from("pq"), st.sampled_from([0.0, 0.5, 1.0, 2.0, 3.75])), min_size=1, max_size=8
    ),
    weighted=st.booleans(),
)
@examples(100)
def test_moments_are_fractions_rounded_once(rows, weighted):
    rows = [(x, y, w if weighted else 1.0) for x, y, w in rows]
    columns = {"x": [x for x, _, _ in rows], "y": [y for _, y, _ in rows]}
    tally = tb.count(columns, X, weights=[w for _, _, w in rows] if weighted else None)
    expected = exact_moments(rows)
    for label, found in tally.moments("x").items():
        if label in expected:
            assert found == tuple(to_nearest(v) for v in expected[label])
        else:
            assert found[0] == 0 and math.isnan(found[1]) and math.isnan(found[2])
    assume(expected)
    settings = tb.Settings(families={"x": "gaussian"}, floor=tb.Floor("column", 0.0))
    model = tally.model(settings)
    mean, deviation = model.table("x").values
    for label, (_, m, v) in expected.items():
        at = model.classes.index(label)
        assert mean[at] == to_nearest(m)
        assert deviation[at] == max(nearest_root(v), 5e-324)


@pytest.mark.parametrize("scale", [1e-300, 1e-8, 1.0, 1e8, 1e300])
@pytest.mark.parametrize("unbiased", [False, True])
def test_the_shared_deviation_is_pooled_exactly(scale, unbiased):
    rng = np.random.default_rng(5)
    x, y = rng.normal(3, 1, 50) * scale, np.repeat(["p", "q"], 25)
    family = tb.families.Gaussian(variance="shared", unbiased=unbiased)
    model = tb.count({"x": x, "y": y}, X).model(tb.Settings(families={"x": family}))
    moments = exact_moments([(v, label, 1) for v, label in zip(x.tolist(), y.tolist(), strict=True)])
    pooled = sum(n * v for n, _, v in moments.values()) / (48 if unbiased else 50)
    assert model.table("x").values[1].tolist() == [nearest_root(pooled)] * 2


def draw_classes(offset, n=20_000, seed=1):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return {"x": offset + (3 * y + rng.normal(0, 1, n)), "y": y}


@pytest.mark.parametrize("family", ["gaussian", "gaussian-shared", "student", "kernel", "bins", "auto"])
def test_an_offset_of_1e8_costs_nothing(family):
    accuracy = []
    for offset in (0.0, 1e8):
        train, test = draw_classes(offset), draw_classes(offset, seed=2)
        under = tb.Schema([tb.Column("x", "number", cells=tb.Cells.fitted(train["x"]))], target="y", label_type="int")
        model = tb.count(train, under).model(tb.Settings(families={"x": family}))
        accuracy.append(float(np.mean(model.predict(test) == test["y"])))
    assert accuracy[0] > 0.92
    assert abs(accuracy[0] - accuracy[1]) <= 0.001


def test_a_narrow_class_keeps_its_variance_beside_a_wide_one():
    rng = np.random.default_rng(8)
    narrow, wide = rng.normal(0.5, 1e-8, 500), rng.normal(0, 1, 500)
    columns = {"x": np.concatenate([narrow, wide]), "y": ["narrow"] * 500 + ["wide"] * 500}
    tally = tb.count(columns, X)
    exactly = exact_moments([(v, "narrow", 1) for v in narrow.tolist()])["narrow"][2]
    assert tally.moments("x")["narrow"][2] == to_nearest(exactly)
    deviation = tally.model(tb.Settings(families={"x": "gaussian"})).table("x").values[1]
    assert deviation[0] ** 2 == pytest.approx(float(exactly), rel=1e-9)
    assert float(exactly) == pytest.approx(1e-16, rel=0.2)


def test_an_outlier_counted_and_forgotten_leaves_no_trace():
    rng = np.random.default_rng(9)
    x, y = rng.random(200), rng.integers(0, 2, 200)
    under = tb.Schema(
        [tb.Column("x", "number", cells=tb.Cells.fitted(x)), tb.Column("v", "vector", width=1)], target="y"
    )
    data = {"x": x, "v": x[:, None], "y": y}
    wild = {"x": [999999999999.0, -1e300], "v": [[999999999999.0], [5e-324]], "y": [0, 1]}
    before = tb.count(data, under)
    after = before.update(wild, new_classes="allow").forget(wild)
    assert after == before
    assert after.digest == before.digest
    assert np.array_equal(after.model().predict_proba(data), before.model().predict_proba(data))
    assert tb.count(data, under).update(wild, new_classes="allow") != before


@given(
    values=st.lists(st.floats(0, 1e9) | st.sampled_from([0.1, 2.0**-40, 2.0**-41, 3.0, 1e300]), min_size=1, max_size=6)
)
@examples(60)
def test_bags_are_counted_in_units_of_two_to_the_minus_forty(values):
    under = tb.Schema([tb.Column("b", "bag")], target="y")
    tally = tb.count({"b": [{"w": v} for v in values], "y": ["p"] * len(values)}, under)
    units = [Fraction(round(Fraction(v) * 2**40), 2**40) for v in values]  # Python rounds halves to even, as IEEE does
    assert tally.columns["b"].sheets["rows"].table("n", 1).tolist() == [[len(values)]]
    if any(units):
        sheet = tally.columns["b"].sheets["words"]
        (n, n_exp), (documents, d_exp) = sheet.exact("n", 1), sheet.exact("documents", 1)
        assert int(n[0, 0]) * Fraction(2) ** n_exp == sum(units)
        assert int(documents[0, 0]) * Fraction(2) ** d_exp == sum(u > 0 for u in units)
    else:
        assert "words" not in tally.columns["b"].sheets


# ---- answers at the edges

COLUMNS = {
    "1e200": [1e200, 2e200, 1.5e200, -1e200, -2e200, -1.5e200],
    "largest": [1.7e308, 1.6e308, 1.5e308, -1.7e308, -1.6e308, -1.5e308],
    "subnormal": [5e-324, 1e-323, 1.5e-323, 3e-322, 3.5e-322, 4e-322],
    "constant": [3.0] * 6,
    "zero": [0.0] * 6,
    "constant by class": [1.0] * 3 + [2.0] * 3,
    "mixed exponents": [1e-300, 1e300, 1.0, -1e-300, -1e300, -1.0],
    "whole past 2^53": [2.0**53, 2.0**53 + 2, 2.0**53 + 4, 2.0**60, 2.0**61, 2.0**62],
    "missing in a class": [1.0, 2.0, 4.0, None, None, None],
    "all missing": [None] * 6,
    "one row": [7.25],
}


@pytest.mark.parametrize("column", COLUMNS)
@pytest.mark.parametrize("family", ["gaussian", "gaussian-shared", "student", "kernel", "bins", "auto"])
def test_probabilities_are_finite_and_sum_to_one(column, family):
    x = COLUMNS[column]
    there = np.array([v for v in x if v is not None] or [0.0])
    y = ["p", "p", "p", "q", "q", "q"][: len(x)]
    under = tb.Schema([tb.Column("x", "number", cells=tb.Cells.fitted(there))], target="y")
    model = tb.count({"x": x * 4, "y": y * 4}, under).model(tb.Settings(families={"x": family}))
    asked = {"x": [*x, *SPECIAL, None, math.nan, 1.7e308, -1.7e308, 1e-320]}
    p = model.predict_proba(asked)
    assert np.isfinite(p).all()
    assert np.allclose(p.sum(axis=1), 1.0, rtol=0, atol=1e-12)
    assert np.isfinite(model.predict_log_proba(asked)).any(axis=1).all()
    assert len(model.predict(asked)) == len(p)


@pytest.mark.parametrize("scale", [1e-322, 1e-310, 1e-200, 1.0, 1e200, 1e305, 1e307])
@pytest.mark.parametrize("family", ["gaussian", "gaussian-shared", "student", "kernel", "bins", "auto"])
def test_classes_apart_are_told_apart_at_any_scale(family, scale):
    rng = np.random.default_rng(4)
    x = np.concatenate([rng.normal(-5, 1, 100), rng.normal(5, 1, 100)]) * scale
    y = np.repeat(["p", "q"], 100)
    under = tb.Schema([tb.Column("x", "number", cells=tb.Cells.fitted(x))], target="y")
    model = tb.count({"x": x, "y": y}, under).model(tb.Settings(families={"x": family}))
    assert np.mean(model.predict({"x": x}) == y) > 0.99


@pytest.mark.parametrize("bad", [math.inf, -math.inf])
@pytest.mark.parametrize(
    "column",
    [
        lambda v: [1.0, None, v],
        lambda v: np.array([1.0, np.nan, v]),
        lambda v: pa.array([1.0, None, v]),
        lambda v: pa.chunked_array([[1.0], [None, v]]),
        lambda v: ["1.0", "", str(v)],
        lambda v: [1.0, "", v],
    ],
    ids=["list", "NumPy", "Arrow", "chunks", "text", "mixed"],
)
def test_infinities_are_refused_with_row_and_column(column, bad):
    before = tb.count({"x": [1.0], "y": ["p"]}, X)
    with pytest.raises(tb.DataError, match=r"column 'x', row 2 .*inf(.|\n)*Hint:"):
        before.update({"x": column(bad), "y": ["p", "q", "p"]})
    with pytest.raises(tb.DataError, match=r"column 'x', row 2 "):
        before.model().predict({"x": column(bad)})


@pytest.mark.parametrize("kind", ["vector", "bag"])
def test_infinities_in_matrices_are_refused_with_row_and_position(kind):
    under = tb.Schema([tb.Column("x", kind)], target="y")
    with pytest.raises(tb.DataError, match=r"column 'x', row 1 .*position 2 is inf(.|\n)*Hint:"):
        tb.count(np.array([[0.0, 1, 2], [3, 4, np.inf]]), under, ["p", "q"])


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinities_in_categories_and_labels_are_read_or_refused_but_never_crash(value):
    under = tb.Schema([tb.Column("c", "category")], target="y")
    for data in ({"c": [value, 0.5], "y": ["p", "q"]}, {"c": ["u", "v"], "y": [value, 0.5]}):
        try:
            rows = tb.count(data, under).rows
        except tb.TallybayesError:
            continue
        assert rows == 2


# ---- size


def test_five_thousand_columns_never_underflow():
    rng = np.random.default_rng(6)
    y = rng.integers(0, 2, 60)
    x = rng.normal(0, 1, (60, 5000)) + 0.1 * y[:, None]
    under = tb.Schema([tb.Column("x", "vector", width=5000)], target="y", label_type="int")
    tally = tb.count(x, under, y)
    for family in ("gaussian", "gaussian-shared", "student"):
        model = tally.model(tb.Settings(families={"x": family}))
        joint, p = model.log_joint(x), model.predict_proba(x)
        assert np.isfinite(joint).all() and (joint < -1000).all()
        assert np.isfinite(p).all() and np.allclose(p.sum(axis=1), 1)
        assert (model.predict(x) == y).mean() > 0.9


@pytest.mark.parametrize("family", ["multinomial", "bernoulli", "complement", "dirichlet"])
def test_a_document_of_a_million_words(family):
    under = tb.Schema([tb.Column("w", "bag")], target="y")
    rng = np.random.default_rng(2)
    documents = [[f"w{i}" for i in rng.zipf(1.3, 200) % 500] for _ in range(20)]
    tally = tb.count({"w": documents, "y": ["p", "q"] * 10}, under)
    settings = tb.Settings(predictive=True) if family == "dirichlet" else tb.Settings(families={"w": family})
    model = tally.model(settings)
    asked = [{"w": [f"w{i}" for i in rng.integers(0, 600, 1_000_000)]}, {"w": {"w1": 10**6}}, {"w": {"w1": 1e300}}]
    p = model.predict_proba(asked)
    assert np.isfinite(p).all()
    assert np.allclose(p.sum(axis=1), 1)
    assert tally.update([{**asked[0], "y": "p"}]).forget([{**asked[0], "y": "p"}]) == tally


def test_counts_go_past_two_to_the_fifty_third():
    rng = np.random.default_rng(3)
    x = rng.normal(0, 1, 9)
    under = tb.Schema(
        [
            tb.Column("c", "category"),
            tb.Column("x", "number", cells=tb.Cells.fitted(x)),
            tb.Column("v", "vector", width=1),
            tb.Column("b", "bag"),
        ],
        target="y",
    )
    rows = {"c": list("uvw" * 3), "x": x, "v": x[:, None], "b": [["a", "b"], ["a"], []] * 3, "y": list("pqr") * 3}
    one = tb.count(rows, under)
    many = (2**60) * one
    assert many.rows == 9 * 2**60
    assert isinstance(many.rows, int)
    assert (many + one).rows == 9 * 2**60 + 9  # float64 counts would not have noticed
    assert many + one - many == one
    assert many + one != many
    assert many.moments("x") == {c: (n * 2**60, m, v) for c, (n, m, v) in one.moments("x").items()}
    for family in ("gaussian", "gaussian-shared", "student", "kernel", "bins", "auto"):
        p = many.model(tb.Settings(families={"x": family})).predict_proba(rows)
        assert np.isfinite(p).all() and np.allclose(p.sum(axis=1), 1)
    limit = (2**300) * one
    assert limit.rows == 9 * 2**300
    assert np.isfinite(limit.model(tb.Settings(families={"x": "gaussian"})).predict_proba(rows)).all()


# ---- cells


@st.composite
def cells(draw):
    values = draw(st.lists(finite.filter(lambda v: abs(v) < 1e307), min_size=1, max_size=8))
    return tb.Cells.fitted(np.array(values * draw(st.sampled_from([1, 1, 80])), dtype=float))


@given(c=cells(), values=st.lists(finite, min_size=1, max_size=30))
@examples(200)
def test_every_finite_number_has_one_cell_and_lies_within_it(c, values):
    x = np.array(values, dtype=float)
    codes = c.codes(x)
    assert np.array_equal(codes, np.concatenate([c.codes(x[i : i + 1]) for i in range(len(x))]))
    low, high = c.edges(codes)
    assert (low <= high).all() and not np.isnan(low).any() and not np.isnan(high).any()
    with np.errstate(over="ignore"):
        # x − centre and centre + edge are each rounded: a few units in the last place of the larger; and what is
        # less than 2⁻¹⁰⁷⁴ of a cell from the centre may stand on either side of it
        slack = 4 * np.spacing(np.maximum(np.abs(x), abs(c.centre))) + np.ldexp(1.0, c.exponent - 1073)
        assert (np.nan_to_num(low - slack) <= x).all()
        assert (x <= np.nan_to_num(high + slack)).all()
    points = c.is_point(codes)
    assert np.array_equal(points, np.isin(x, c.points))
    assert (low[points] == x[points]).all() and (high[points] == x[points]).all()
    names = c.slot_names(codes)
    assert np.array_equal(c.slot_codes(names), codes)
    assert len(set(names)) == len(set(codes.tolist()))
    order = np.argsort(x[~points], kind="stable")
    assert (np.diff(codes[~points][order]) >= 0).all()  # so no two cells share a stretch of the line


@given(c=cells(), code=st.integers(-4000, 4000))
@examples(100)
def test_neighbouring_cells_touch(c, code):
    low, high = c.edges(np.array([code, code + 1]))
    assert high[0] == low[1]
    inside = np.isfinite(low) & np.isfinite(high) & (high > low)
    middle = (low / 2 + high / 2)[inside]
    # where the cell is wide beside the spacing of floats, its middle falls into it
    wide = (high[inside] / 2 - low[inside] / 2) > 8 * np.spacing(np.maximum(np.abs(middle), abs(c.centre)))
    plain = tb.Cells(c.centre, c.exponent)
    assert np.array_equal(plain.codes(middle[wide]), np.array([code, code + 1])[inside][wide])


@pytest.mark.parametrize(
    "values", [[1.7976931348623157e308], [-1.7e308, 1.7e308], [1.79e308] * 9 + [1.0], [5e-324], [0.0]]
)
def test_cells_can_be_fitted_to_any_finite_numbers(values):
    c = tb.Cells.fitted(np.array(values))
    assert math.isfinite(c.centre)
    assert c.is_point(c.codes(np.array(values))).all()
    assert (c.edges(c.codes(np.array(values)))[0] == values).all()


def test_cells_count_every_value_once():
    rng = np.random.default_rng(1)
    x = rng.standard_cauchy(5000) * 10.0 ** rng.integers(-200, 200, 5000)
    under = tb.Schema([tb.Column("x", "number", cells=tb.Cells.fitted(rng.normal(size=100)))], target="y")
    tally = tb.count({"x": x, "y": rng.integers(0, 2, 5000)}, under)
    sheets = tally.columns["x"].sheets
    assert np.array_equal(sheets["cells"].table("n", 2).sum(axis=0), sheets["moments"].table("n", 2)[0])


# ---- forgetting

PAIRS = tb.Schema([tb.Column("a", "category"), tb.Column("b", "category")], target="y")
ROWS = {"a": ["u", "v", "u"], "b": ["s", "t", "t"], "y": ["p", "p", "q"]}
CROSSED = {"a": ["u", "u"], "b": ["s", "t"], "y": ["p", "p"]}  # row 1 was never counted, its values were


def refused(tally: tb.Tally, rows, match: str, **more) -> None:
    """Forgetting these rows is refused, and the tally is as before."""
    before = tally.digest
    with pytest.raises(tb.CannotForget, match=match) as caught:
        tally.forget(rows, **more)
    assert "Hint:" in str(caught.value) and "nothing has been forgotten" in str(caught.value)
    assert fresh_digest(tally) == before


def test_receipts_know_every_row():
    tally = tb.count(ROWS, PAIRS.with_receipts())
    refused(tally, CROSSED, "row 1 ")
    refused(tally, {"a": ["u", "u"], "b": ["s", "s"], "y": ["p", "p"]}, "row 1 ")  # once counted, twice forgotten
    refused(tally, {"a": ["u"], "b": ["s"], "y": ["q"]}, "row 0 ")
    refused(tally, {"a": ["u"], "b": ["s"], "y": ["p"]}, "row 0 ", weights=[0.5])
    refused(tally, {"a": ["u"], "b": ["s"], "y": ["new"]}, "row 0 ")
    assert tally.forget(ROWS) == tb.Tally.zero(PAIRS.with_receipts())


def test_receipts_know_the_row_of_an_iterator():
    tally = tb.count(ROWS, PAIRS.with_receipts())
    refused(tally, iter([{"a": "u", "b": "s", "y": "p"}, {"a": "u", "b": "t", "y": "p"}]), "row 1 ")


def test_receipts_know_the_row_of_a_reader():
    tally = tb.count(ROWS, PAIRS.with_receipts())
    refused(tally, pa.table(CROSSED).to_reader(max_chunksize=1), "row 1 ")


def test_without_receipts_the_marginals_decide():
    tally = tb.count(ROWS, PAIRS)
    rest = tally.forget({"a": ["u"], "b": ["t"], "y": ["p"]})  # nothing in the counts speaks against it
    assert rest.rows == 2


@given(table=tables(min_size=2, max_size=6), data=st.data())
@examples(15)
def test_receipts_refuse_any_row_with_one_value_changed(table, data):
    under = schema(receipts=True)
    whole = table.tally(under)
    kind = data.draw(st.sampled_from(KINDS))
    row, other = data.draw(st.permutations(range(len(table))))[:2]
    changed = table.take([row])
    changed.columns[kind][0] = table.columns[kind][other]
    assume(changed.columns["label"][0] is not None)
    counted = [table.take([i]).tally(under).digest for i in range(len(table))]
    if changed.tally(under).digest in counted:
        assert whole.forget(changed.data()) == whole - changed.tally(under)
    else:
        refused(whole, changed.data(), "row 0 ")


GUARDED = tb.Schema([tb.Column("c", "category"), tb.Column("x", "number"), tb.Column("b", "bag", levels=2)], target="y")
COUNTED = {"c": ["u", "v", "v"], "x": [2.0, 2.0, 2.0], "b": [["a"], ["b"], None], "y": ["p", "p", "p"]}


@pytest.mark.parametrize(
    ("rows", "match"),
    [
        ({"c": ["w"], "x": [2.0], "b": [None], "y": ["p"]}, "column 'c', class 'p', slot 'w' at n = -1"),
        (
            {"c": ["u", "u"], "x": [2.0] * 2, "b": [None] * 2, "y": ["p"] * 2},
            "column 'c', class 'p', slot 'u' at n = -1",
        ),
        ({"c": [None], "x": [None], "b": [["z"]], "y": ["p"]}, "column 'b', class 'p', slot '.*z' at n = -1"),
        ({"c": [None], "x": [None], "b": [["a", "a"]], "y": ["p"]}, "column 'b', class 'p', slot '.*a' at n = -1"),
        ({"c": ["u"], "x": [0.0], "b": [None], "y": ["p"]}, "moments that no numbers have in column 'x', class 'p'"),
        ({"c": [None], "x": [1e9], "b": [None], "y": ["p"]}, "column 'x', class 'p'"),
        ({"c": [None], "x": [None], "b": [None], "y": ["p"]}, "more values than the class has rows"),
        ({"c": [None], "x": [None], "b": [None], "y": ["new"]}, "class 'new'"),
        ({"c": [None], "x": [None], "b": [None], "y": [None]}, "-1 rows without a label"),
        ({"c": ["u"] * 4, "x": [None] * 4, "b": [None] * 4, "y": ["p"] * 4}, "the rows, class 'p'"),
    ],
)
def test_the_guard_refuses_what_no_rows_can_leave(rows, match):
    refused(tb.count(COUNTED, GUARDED), rows, match)


def test_the_guard_refuses_half_a_row():
    under = tb.Schema([tb.Column("c", "category")], target="y")
    heavy = tb.count({"c": ["u"], "y": ["p"]}, under, weights=[2.0])
    refused(heavy, {"c": ["u"], "y": ["p"]}, "p")  # weight 1 would stay, of no row
    twice = tb.count({"c": ["u", "u"], "y": ["p", "p"]}, under)
    refused(twice, {"c": ["u"], "y": ["p"]}, "p", weights=[2.0])  # a row would stay, of no weight


def test_the_guard_sees_every_position_of_a_vector():
    under = tb.Schema([tb.Column("v", "vector", width=12)], target="y")
    v = np.ones((3, 12))
    tally = tb.count({"v": v, "y": ["p"] * 3}, under)
    wrong = np.ones((1, 12))
    wrong[0, 10] = 0.0
    refused(tally, {"v": wrong, "y": ["p"]}, "column 'v', position 10, class 'p'")


def test_no_warning_on_the_way():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x = np.array([1e300, -1e300, 5e-324, 0.0, 2.0**53])
        under = tb.Schema([tb.Column("x", "number", cells=tb.Cells.fitted(x))], target="y")
        tb.count({"x": x, "y": list("ppqqq")}, under).model().predict_proba({"x": x})


def test_kernels_compiled_from_other_sources_are_forgotten(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba", reason="without Numba nothing is compiled")
    from tallybayes.exact.kernels import compiling

    index, code = tmp_path / "gramkernels.grams-9.nbi", tmp_path / "gramkernels.grams-9.1.nbc"
    for change in ("first", "same", "changed"):
        if change == "changed":  # only what a kernel calls from another file
            home = tmp_path / "sources"
            home.mkdir()
            (home / "wordtable.py").write_text("other = True")
            monkeypatch.setattr(compiling, "_HOME", home)
        index.touch()
        code.touch()
        compiling.forget_old(tmp_path)
        assert index.exists() == (change == "same")
