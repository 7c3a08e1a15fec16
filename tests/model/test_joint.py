"""Joint tables (mission rows D1-D4) against brute force, pandas, SciPy and scikit-learn."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from scipy.stats import chi2_contingency, hypergeom
from shared_data import shared
from sklearn.metrics import mutual_info_score

import tallybayes as tb
from tallybayes.base.errors import CannotEstimate, DataError, SettingsError, TallybayesWarning
from tallybayes.data.schema import Column, Schema
from tallybayes.families.smoothing import AbsoluteDiscount, Dirichlet, Epsilon, JelinekMercer, Laplace
from tallybayes.model.joint.check import check_joint_table, hopeless
from tallybayes.model.joint.dependence import cell_count
from tallybayes.model.joint.table import JointDistribution
from tallybayes.tally.tally import Tally

ABC = [0.30, 0.05, 0.10, 0.05, 0.05, 0.10, 0.25, 0.10]

few = settings(max_examples=25, deadline=None)
rows = st.lists(st.tuples(st.sampled_from("uv"), st.integers(0, 2), st.booleans()), min_size=1, max_size=30)
any_rows = st.lists(st.tuples(st.sampled_from("uv"), st.integers(0, 2), st.booleans()), max_size=20)
smoothings = st.sampled_from([None, Laplace(1), Laplace(0.3), JelinekMercer(0.2), AbsoluteDiscount(0.5)])


def frame(data: list[tuple[str, int, bool]]) -> pd.DataFrame:
    return pd.DataFrame(data, columns=["a", "b", "c"])


def table(data: list[tuple[str, int, bool]], smoothing=None) -> JointDistribution:
    return JointDistribution.of(frame(data), ["a", "b", "c"], smoothing)


# ---- D1


def test_d1_two_urns():
    draws = list(itertools.product(["red", "red", "blue"], repeat=2))
    counted = JointDistribution.of({"first": [a for a, _ in draws], "second": [b for _, b in draws]})
    urn = ["red", "red", "blue"]
    multiplied = JointDistribution.of({"first": urn}).product(JointDistribution.of({"second": urn}))
    wanted = {("red", "red"): 4 / 9, ("red", "blue"): 2 / 9, ("blue", "red"): 2 / 9, ("blue", "blue"): 1 / 9}
    for (a, b), p in wanted.items():
        assert counted.probability(first=a, second=b) == p
        assert multiplied.probability(first=a, second=b) == pytest.approx(p, rel=1e-14)
    assert counted.independent("first", "second").mutual_information == 0.0
    assert multiplied.independent("first", "second").independent


def test_d1_the_table_over_a_b_c():
    abc = JointDistribution.written(ABC, "ABC")
    assert abc.probability(A=1, B=1, C=0) == pytest.approx(0.25, rel=1e-14)
    assert abc.probability({"A": 1}) == pytest.approx(0.50, rel=1e-14)
    assert abc.conditional({"A": 1}, given={"B": 1}) == pytest.approx(0.70, rel=1e-14)
    assert abc.given(B=1).probability(A=1) == pytest.approx(0.70, rel=1e-14)
    assert abc.marginal("A").probability(A=1) == pytest.approx(0.50, rel=1e-14)
    for number, cell in enumerate(itertools.product([0, 1], repeat=3)):
        assert abc.probability(dict(zip("ABC", cell, strict=True))) == pytest.approx(ABC[number], rel=1e-14)


def test_d1_three_ways_to_write_the_same_table():
    cells = dict(zip(itertools.product([0, 1], repeat=3), ABC, strict=True))
    nested = {a: {b: {c: cells[a, b, c] for c in (0, 1)} for b in (0, 1)} for a in (0, 1)}
    flat = JointDistribution.written(ABC, "ABC")
    assert JointDistribution.written(cells, ["A", "B", "C"]) == flat
    assert JointDistribution.written(nested, ["A", "B", "C"]) == flat
    assert JointDistribution.written(np.reshape(ABC, (2, 2, 2)), ["A", "B", "C"]) == flat
    assert JointDistribution.written(ABC[::-1], "ABC") != flat
    named = JointDistribution.written([[0.1, 0.2, 0.3], [0.4, 0.0, 0.0]], ["x", "y"], values={"y": ["p", "q", "r"]})
    assert named.probability(x=1, y="p") == pytest.approx(0.4)
    assert named.probability(x=1, y="q") == 0.0
    assert named.unseen == 2


def test_d1_written_sums_are_checked():
    with pytest.warns(TallybayesWarning, match=r"1\.01"):
        off = JointDistribution.written({"a": 0.505, "b": 0.505}, ["x"])
    assert off.probability(x="a") == pytest.approx(0.5)
    with pytest.raises(SettingsError, match=r"adds up to 1\.03"):
        JointDistribution.written({"a": 0.53, "b": 0.5}, ["x"])
    with pytest.raises(SettingsError, match="probability of"):
        JointDistribution.written({"a": 1.2, "b": -0.2}, ["x"])
    with pytest.raises(SettingsError, match="nan"):
        JointDistribution.written({"a": math.nan, "b": 1.0}, ["x"])
    with pytest.raises(SettingsError, match="twice"):
        JointDistribution.written({1: 0.5, "1": 0.5}, ["x"])
    with pytest.raises(SettingsError, match="shape"):
        JointDistribution.written([0.2, 0.3, 0.5], "AB")


def test_d1_bayes_rule_shows_its_parts():
    rule = JointDistribution.written(ABC, "ABC").bayes({"A": 1}, {"B": 1})
    assert (rule.prior, rule.likelihood, rule.evidence_probability) == pytest.approx((0.5, 0.7, 0.5))
    assert (
        rule.posterior == pytest.approx(rule.likelihood * rule.prior / rule.evidence_probability) == pytest.approx(0.7)
    )
    assert repr(rule).startswith("P(A=1 given B=1) = P(B=1 given A=1) · P(A=1) / P(B=1)")


def test_d1_conditional_independence_of_a_written_table():
    p_c, p_a, p_b = [0.3, 0.7], [0.2, 0.9], [0.6, 0.1]  # a and b depend on c and on nothing else
    cells = {
        (a, b, c): p_c[c] * (p_a[c] if a else 1 - p_a[c]) * (p_b[c] if b else 1 - p_b[c])
        for a, b, c in itertools.product([0, 1], repeat=3)
    }
    joint = JointDistribution.written(cells, "ABC")
    given_c = joint.independent("A", "B", given=("C",))
    assert given_c.independent and given_c.p_value is None
    assert given_c.mutual_information < 1e-15
    alone = joint.independent("A", "B")
    assert not alone.independent
    marginal = np.array([[sum(cells[a, b, c] for c in (0, 1)) for b in (0, 1)] for a in (0, 1)])
    product = np.outer(marginal.sum(1), marginal.sum(0))
    assert alone.mutual_information == pytest.approx(float((marginal * np.log(marginal / product)).sum()), rel=1e-12)


@few
@given(rows)
def test_d1_questions_equal_brute_force(data):
    joint = table(data)
    n = len(data)
    for a, b, c in itertools.product("uv", range(3), [False, True]):
        if {a} <= {r[0] for r in data} and {b} <= {r[1] for r in data} and {c} <= {r[2] for r in data}:
            assert joint.probability(a=a, b=b, c=c) == data.count((a, b, c)) / n
            assert joint.probability(b=b) == sum(r[1] == b for r in data) / n
            assert joint.marginal("c", "a").probability(a=a, c=c) == sum(r[0] == a and r[2] == c for r in data) / n
            with_c = [r for r in data if r[2] == c]
            wanted = sum(r[0] == a for r in with_c) / len(with_c)
            assert joint.conditional({"a": a}, {"c": c}) == wanted
            assert joint.given(c=c).probability(a=a) == wanted


@few
@given(rows, smoothings)
def test_d1_marginals_and_conditionals_agree_with_the_cells(data, smoothing):
    joint = table(data, smoothing)
    cells = list(itertools.product(*joint.values))
    p = {cell: joint.probability(dict(zip("abc", cell, strict=True))) for cell in cells}
    assert math.fsum(p.values()) == pytest.approx(1.0, rel=1e-12)
    pair = joint.marginal("c", "a")
    for a, c in itertools.product(joint.values[0], joint.values[2]):
        wanted = math.fsum(v for k, v in p.items() if k[0] == a and k[2] == c)
        assert joint.probability(a=a, c=c) == pytest.approx(wanted, rel=1e-12)
        assert pair.probability(a=a, c=c) == pytest.approx(wanted, rel=1e-12)
        whole = math.fsum(v for k, v in p.items() if k[2] == c)
        assert joint.conditional({"a": a}, {"c": c}) == pytest.approx(wanted / whole, rel=1e-12)
        assert joint.given(c=c).marginal("a").probability(a=a) == pytest.approx(wanted / whole, rel=1e-12)


@few
@given(any_rows, any_rows, any_rows)
def test_d1_tables_are_a_group(x, y, z):
    a, b, c = table(x), table(y), table(z)
    assert a + b == b + a == table(y + x)
    assert (a + b) + c == a + (b + c)
    assert (a + b) - b == a
    assert (a - a).rows == 0
    assert a - b == table([]) - (b - a)


def test_d1_a_sum_keeps_declared_values_and_skipped_rows():
    a = JointDistribution.of({"x": ["u", None]}, values={"x": ["u", "v"]})
    b = JointDistribution.of({"x": ["u", "u", ""]})
    assert (a + b).count(x="u") == 3
    assert (a + b).skipped == 2
    assert (a + b).values == (("u", "v"),)
    with pytest.raises(SettingsError, match="columns"):
        a + JointDistribution.of({"y": ["u"]})
    with pytest.raises(SettingsError, match="smoothing"):
        a + b.with_smoothing(Laplace(1))
    with pytest.raises(SettingsError, match="cannot be added"):
        a + JointDistribution.written({"u": 1.0}, ["x"])


def test_d1_a_difference_is_no_distribution():
    difference = JointDistribution.of({"x": ["u"]}) - JointDistribution.of({"x": ["v", "v"]})
    assert difference.count(x="v") == -2
    with pytest.raises(CannotEstimate, match="v at n = -2"):
        difference.probability(x="u")
    assert "a difference" in repr(difference)
    with pytest.raises(CannotEstimate, match="no rows"):
        JointDistribution.of({"x": []}).probability()


def exact_p(cross):
    """How often tables with these margins are as far from what is expected, by X²; Fisher orders them by P instead."""
    (a, b), (c, d) = cross.tolist()
    expected = (a + b) * (a + c) / (a + b + c + d)
    others = np.arange(max(0, a - d), min(a + b, a + c) + 1)
    p = hypergeom(a + b + c + d, a + b, a + c).pmf(others)
    return p[np.abs(others - expected) >= abs(a - expected) - 1e-9].sum()


@few
@given(rows)
@example([("u", 0, False), ("u", 1, False), ("v", 0, False), *[("v", 1, False)] * 5])  # as far above as below
def test_d1_independence_agrees_with_scipy_and_scikit_learn(data):
    found = table(data).independent("a", "b")
    f = frame(data)
    assert found.mutual_information == pytest.approx(mutual_info_score(f["a"], f["b"]), abs=1e-12)
    assert found.rows == len(data)
    cross = pd.crosstab(f["a"], f["b"])
    if min(cross.shape) > 1:
        x2, _, degrees, _ = chi2_contingency(cross, correction=False)
        assert found.statistic == pytest.approx(x2 * (1 - 1 / len(data)), abs=1e-9)
        assert found.degrees == degrees
        if cross.shape == (2, 2):
            assert found.p_value == pytest.approx(exact_p(cross.to_numpy()), abs=1e-9)
    else:
        assert (found.degrees, found.p_value) == (0, 1.0)


@few
@given(rows)
def test_d1_conditional_independence_is_the_sum_over_strata(data):
    found = table(data).independent("a", "b", given="c")
    f = frame(data)
    x2, degrees, nats = 0.0, 0, 0.0
    for _, part in f.groupby("c"):
        cross = pd.crosstab(part["a"], part["b"])
        nats += len(part) / len(f) * mutual_info_score(part["a"], part["b"])
        if min(cross.shape) > 1:
            one = chi2_contingency(cross, correction=False)
            x2, degrees = x2 + one.statistic * (1 - 1 / len(part)), degrees + one.dof
    assert found.mutual_information == pytest.approx(nats, abs=1e-12)
    assert (found.statistic, found.degrees) == (pytest.approx(x2, abs=1e-9), degrees)


def test_d1_independence_takes_groups_of_columns():
    both = [(a, b, a ^ b) for a in (0, 1) for b in (0, 1) for _ in range(25)]
    joint = JointDistribution.of({"a": [r[0] for r in both], "b": [r[1] for r in both], "xor": [r[2] for r in both]})
    assert joint.independent("a", "xor").mutual_information == 0.0
    together = joint.independent(("a", "b"), "xor")
    assert together.mutual_information == pytest.approx(math.log(2))
    assert together.share == pytest.approx(1.0)
    with pytest.raises(SettingsError, match="more than once"):
        joint.independent("a", "a")


def test_d1_numbers_sort_by_size_and_texts_are_canonical():
    joint = JointDistribution.of({"k": [10, 2, 2, 9], "t": [True, False, True, True]})
    assert joint.values == (("2", "9", "10"), ("false", "true"))
    assert joint.probability(k=2.0, t=True) == 0.25


def test_d1_a_value_the_column_does_not_have_is_zero_with_a_warning():
    joint = JointDistribution.of({"sex": ["Female", "Male"]})
    with pytest.warns(TallybayesWarning, match="did you mean 'Female'"):
        assert joint.probability(sex="Femal") == 0.0


def test_d1_errors_say_what_and_how():
    joint = JointDistribution.of({"sex": ["Female", "Male"], "age": [1, 2]})
    with pytest.raises(SettingsError, match="did you mean 'sex'"):
        joint.probability(sexx="Male")
    wide = JointDistribution.of({"sex": ["Female", "Male"], "age": [1, 2], "y": [0, 0]})
    with pytest.raises(CannotEstimate, match=r"P\(sex=Male, age=1\) is 0"):
        wide.given(sex="Male", age=1)
    with pytest.raises(CannotEstimate, match="nothing follows"):
        joint.marginal("sex", "age").conditional({"sex": "Male"}, {"sex": "Female", "age": 2})
    with pytest.raises(SettingsError, match="every column is given"):
        joint.given(sex="Male", age=2)
    with pytest.raises(DataError, match="did you mean 'age'"):
        JointDistribution.of({"age": [1]}, ["agee"])
    with pytest.raises(SettingsError, match="Dirichlet"):
        joint.with_smoothing(Dirichlet({"Male": 1})).probability(sex="Male")


def test_d1_contradictory_conditions_have_probability_zero():
    joint = JointDistribution.written(ABC, "ABC")
    assert joint.conditional({"A": 1}, {"A": 0}) == 0.0
    assert joint.conditional({"A": 1}, {"A": 1}) == pytest.approx(1.0)
    assert joint.conditional({"A": 1, "B": 0}, {"A": 1}) == pytest.approx(0.3)


def test_d1_sample_recovers_the_table_and_laplace_reaches_unseen_cells():
    joint = JointDistribution.written(ABC, "ABC")
    again = JointDistribution.of(joint.sample(20_000, seed=3))
    for cell, p in zip(itertools.product([0, 1], repeat=3), ABC, strict=True):
        assert again.probability(dict(zip("ABC", cell, strict=True))) == pytest.approx(p, abs=0.015)
    assert joint.sample(50, seed=3).equals(joint.sample(50, seed=3))
    smoothed = JointDistribution.of({"a": [0, 1], "b": [0, 1]}, smoothing=Laplace(1))
    drawn = JointDistribution.of(smoothed.sample(6_000, seed=1))
    assert drawn.probability(a=0, b=1) == pytest.approx(1 / 6, abs=0.02)


def test_d1_sample_of_a_table_too_large_to_list():
    data = {f"x{j}": [0, 1, 2] for j in range(60)}
    drawn = JointDistribution.of(data, smoothing=Laplace(1)).sample(200, seed=0)
    assert drawn.num_rows == 200
    # three counted rows weigh nothing against 3^60 cells: the draws are even and all different
    assert len({tuple(r.values()) for r in drawn.to_pylist()}) == 200
    assert np.mean([v == "2" for v in drawn["x7"].to_pylist()]) == pytest.approx(1 / 3, abs=0.12)


def test_d1_a_matrix_is_no_column():
    matrix = np.array([["u", "v"], ["v", "u"]])
    with pytest.raises(DataError, match=r"column 'm' is a matrix of shape \(2, 2\)"):
        JointDistribution.of({"m": matrix, "x": [1, 2]})
    with pytest.raises(DataError, match="column 'm'"):
        JointDistribution.of({"m": ["u", "v"]}).log_probability({"m": matrix})
    with pytest.raises(DataError, match="column 'm'"):
        Tally.of(Schema([Column("x", "category")], target="m"), {"m": matrix, "x": [1, 2]})


def test_d1_equal_tables_answer_alike_whatever_the_order_of_the_rows():
    data = [("u", 10, True), ("v", 9, False), ("u", 9, False), ("v", 10, True), ("u", 10, False)]
    one, two = table(data, Laplace(1)), table(data[::-1], Laplace(1))
    assert one == two and one.given(a="u") == two.given(a="u")
    assert one.sample(20, seed=4).equals(two.sample(20, seed=4))


def test_d1_warnings_point_at_the_line_that_asked():
    with pytest.warns(TallybayesWarning, match="adds up") as written:
        joint = JointDistribution.written({"a": 0.505, "b": 0.505}, ["x"])
    with pytest.warns(TallybayesWarning, match="does not have") as asked:
        joint.probability(x="c")
    assert [w.filename for w in (*written, *asked)] == [__file__] * 2


# ---- D2


def test_d2_adult():
    f = shared("adult")
    f["long"] = f["hours-per-week"] > 40.5
    joint = JointDistribution.of(f, ["sex", "long", "target"])
    assert (joint.rows, joint.cells, joint.unseen, joint.skipped) == (48_842, 8, 0, 0)
    wanted = {
        ("Female", False, "<=50K"): 0.253122, ("Female", False, ">50K"): 0.0245895,
        ("Female", True, "<=50K"): 0.0421768, ("Female", True, ">50K"): 0.0116293,
        ("Male", False, "<=50K"): 0.331313, ("Male", False, ">50K"): 0.0971295,
        ("Male", True, "<=50K"): 0.134106, ("Male", True, ">50K"): 0.105933,
    }  # fmt: skip
    for (sex, long, income), p in wanted.items():
        assert float(f"{joint.probability(sex=sex, long=long, target=income):.6g}") == p
    cross = pd.crosstab([f["sex"], f["long"]], f["target"])
    assert joint.count(sex="Male", long=True, target=">50K") == cross.loc[("Male", True), ">50K"]
    share = cross.loc[("Male", True), ">50K"] / cross.loc[("Male", True)].sum()
    assert joint.conditional({"target": ">50K"}, {"sex": "Male", "long": True}) == share
    assert JointDistribution.of(pa.Table.from_pandas(f), ["sex", "long", "target"]) == joint


# ---- D3


def test_d3_log_sum_equals_the_product_on_auto_mpg():
    f = shared("auto_mpg")
    f["good"] = f["mpg"] > 22
    joint = JointDistribution.of(f, ["good", "cylinders", "origin", "model_year"])
    data = f[["good", "cylinders", "origin", "model_year"]]
    times = data.value_counts()
    # the exact product of 398 fractions: too small for a float, so its log comes from Python's integers
    numerator = math.prod(int(times.loc[tuple(r)]) for r in data.itertuples(index=False))
    exact = math.log(numerator) - len(f) * math.log(len(f))
    assert joint.log_likelihood(f) == pytest.approx(exact, rel=1e-12)
    few_rows = f.iloc[:60]
    plain = math.prod(joint.probability(**r) for r in few_rows[list(joint.columns)].to_dict("records"))
    assert plain > 0
    assert joint.log_likelihood(few_rows) == pytest.approx(math.log(plain), rel=1e-12)
    assert np.prod(np.exp(joint.log_probability(f))) == 0.0  # the plain product underflows
    assert joint.log_likelihood(f) > -math.inf


def test_d3_naive_likelihood_of_the_same_rows_is_finite_too():
    f = shared("auto_mpg")
    f["good"] = (f["mpg"] > 22).astype(str)
    check = hopeless(f, ["cylinders", "origin", "model_year"], "good", held_out=0.5)
    assert math.isfinite(check.joint_log_likelihood) and math.isfinite(check.naive_log_likelihood)
    assert math.exp(check.naive_log_likelihood) == 0.0


def test_d3_logs_go_where_products_cannot():
    assert f"{math.exp(-466.19):.1e}" == "3.4e-203"
    coin = JointDistribution.written({"yes": math.exp(-466.19 / 50), "no": 1 - math.exp(-466.19 / 50)}, ["x"])
    assert coin.log_likelihood({"x": ["yes"] * 50}) == pytest.approx(-466.19, rel=1e-12)
    assert math.prod([coin.probability(x="yes")] * 50) == pytest.approx(3.4e-203, rel=0.02)
    assert math.prod([coin.probability(x="yes")] * 100) == 0.0
    assert coin.log_likelihood({"x": ["yes"] * 100}) == pytest.approx(2 * -466.19, rel=1e-12)


def test_d3_a_zero_cell_is_minus_infinity_without_a_word():
    joint = JointDistribution.of({"a": [0, 1], "b": [0, 1]})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        logs = joint.log_probability({"a": [0, 0, 7], "b": [0, 1, 0]})
        total = joint.log_likelihood({"a": [0, 0], "b": [1, 1]})
    assert logs.tolist() == [math.log(0.5), -math.inf, -math.inf]
    assert total == -math.inf
    assert joint.log_likelihood({"a": [], "b": []}) == 0.0


@few
@given(rows, smoothings, st.lists(st.tuples(st.booleans(), st.booleans(), st.booleans()), max_size=8))
def test_d3_missing_columns_are_summed_out(data, smoothing, masks):
    joint = table(data, smoothing)
    asked = [
        {k: (None if hide else v) for k, v, hide in zip("abc", r, mask, strict=True)}
        for r, mask in zip(itertools.cycle(data), masks, strict=False)
    ]
    if asked:
        wanted = [
            math.log(joint.probability({k: v for k, v in r.items() if v is not None}))
            if any(v is not None for v in r.values())
            else 0.0
            for r in asked
        ]
        columns = {k: pa.array([r[k] for r in asked]) for k in "abc"}
        assert joint.log_probability(columns) == pytest.approx(wanted, abs=1e-12)


def test_d3_rows_with_a_missing_value_are_not_counted():
    joint = JointDistribution.of([{"a": 1, "b": 2}, {"a": None, "b": 2}, {"a": 1}, {"a": 1, "b": float("nan")}])
    assert (joint.rows, joint.skipped) == (1, 3)


def test_d3_absent_columns_are_missing_with_a_warning():
    joint = JointDistribution.of({"colour": ["r", "r", "b"], "size": [1, 2, 2]})
    with pytest.warns(TallybayesWarning, match="size"):
        assert joint.log_probability({"colour": ["r"]}).tolist() == pytest.approx([math.log(2 / 3)])


def test_d3_many_columns_do_not_underflow():
    data = {f"x{j}": [0, 1, 2] for j in range(1000)}
    joint = JointDistribution.of(data, smoothing=Laplace(1))
    assert joint.cells == 3**1000
    logs = joint.log_probability(data)
    # (1 + 1) / (3 + 3^1000)
    assert logs == pytest.approx([math.log(2) - 1000 * math.log(3)] * 3, rel=1e-12)
    assert joint.probability(x7=1) == pytest.approx(1 / 3, rel=1e-9)
    assert "1000 columns" in repr(joint) and "10^477" in repr(joint)


# ---- D4


def test_d4_arithmetic():
    assert cell_count([2] + [2] * 20) == 2 * 2**20 == 2_097_152
    assert cell_count([4] + [3] * 60) == 4 * 3**60
    assert f"{cell_count([4] + [3] * 60):.1e}" == "1.7e+29"
    joint = JointDistribution.of({"y": [0, 1], **{f"x{j}": [0, 1] for j in range(20)}})
    assert joint.cells == 2 * 2**20
    assert joint.unseen == 2 * 2**20 - 2


@few
@given(rows, st.sampled_from([0.5, 1.0, 3.0]))
def test_d4_laplace_equals_the_formula(data, alpha):
    joint = table(data, Laplace(alpha))
    cells = cell_count(len(v) for v in joint.values)
    for cell in itertools.product("uv", range(3), [False, True]):
        known = all(str(v).lower() in vs for v, vs in zip(cell, joint.values, strict=True))
        if known:
            wanted = Fraction(data.count(cell)) + Fraction(alpha)
            wanted /= len(data) + Fraction(alpha) * cells
            assert joint.probability(dict(zip("abc", cell, strict=True))) == pytest.approx(float(wanted), rel=1e-12)


def test_d4_epsilon_is_not_renormalised():
    joint = JointDistribution.of({"a": [0, 1], "b": [0, 1]}, smoothing=Epsilon(0.01))
    assert joint.probability(a=0, b=1) == pytest.approx(0.01)
    assert joint.probability(a=0) == pytest.approx(0.51)


def test_d4_hopeless_on_mushroom_and_fine_on_adult():
    f = shared("mushroom")
    check = hopeless(f, [c for c in f.columns if c != "target"], "target")
    assert check.hopeless and not check.feasible
    assert tb.check_joint_table is check_joint_table is tb.hopeless is hopeless  # the name it had first
    assert check.naive_log_likelihood > check.joint_log_likelihood + 10_000
    assert check.cells == cell_count(f[c].nunique() for c in f.columns) > 10**14
    assert check.strangers == check.held_out
    assert "hopeless" in repr(check)
    adult = shared("adult")
    adult["long"] = adult["hours-per-week"] > 40.5
    small = hopeless(adult, ["sex", "long", "race"], "target")
    assert not small.hopeless
    assert (small.cells, small.rows + small.held_out) == (40, 48_842)


def test_d4_naive_side_equals_a_brute_force_product():
    rng = np.random.default_rng(5)
    f = pd.DataFrame({"a": rng.integers(0, 3, 60), "b": rng.integers(0, 2, 60), "y": rng.choice(["p", "q"], 60)})
    check = hopeless(f, ["a", "b"], "y", held_out=0.25, seed=9)
    order = np.random.default_rng(9).permutation(60)
    test, train = f.iloc[order[:15]], f.iloc[np.sort(order[15:])]
    nats = 0.0
    for r in test.itertuples():
        of_class = train[train["y"] == r.y]
        nats += math.log((len(of_class) + 1) / (len(train) + 2))  # one imagined row per class
        nats += math.log(((of_class["a"] == r.a).sum() + 1) / (len(of_class) + 3))
        nats += math.log(((of_class["b"] == r.b).sum() + 1) / (len(of_class) + 2))
    assert check.naive_log_likelihood == pytest.approx(nats, rel=1e-12)
    joint = sum(
        math.log((((train["a"] == r.a) & (train["b"] == r.b) & (train["y"] == r.y)).sum() + 1) / (len(train) + 12))
        for r in test.itertuples()
    )
    assert check.joint_log_likelihood == pytest.approx(joint, rel=1e-12)


def test_d4_a_rival_with_a_log_density():
    class Uniform:
        def log_density(self, rows):
            return np.full(len(rows["a"]), math.log(1 / 4))

    f = {"a": [0, 0, 1, 1] * 20, "b": [0, 1, 0, 1] * 20}
    check = hopeless(f, ["a", "b"], naive=Uniform())
    assert check.naive_log_likelihood == pytest.approx(check.held_out * math.log(1 / 4))
    assert check.joint_log_likelihood == pytest.approx(check.naive_log_likelihood, rel=0.05)
    without = hopeless(f, ["a", "b"])
    assert without.naive_log_likelihood is None and not without.hopeless
    with pytest.raises(SettingsError, match="held_out"):
        hopeless(f, ["a", "b"], held_out=1.5)


# ---- to look at


def test_d1_repr_is_a_table_when_small_and_a_line_when_large():
    joint = JointDistribution.of({"sky": ["sun", "rain", "sun"], "wind": [1, 2, 2]})
    assert repr(joint) == (
        "JointDistribution: 3 rows · sky 2 × wind 2 = 4 cells, 1 of them empty\n"
        "  sky   wind  rows         P\n"
        "  rain  1        0         0\n"
        "  rain  2        1  0.333333\n"
        "  sun   1        1  0.333333\n"
        "  sun   2        1  0.333333"
    )
    large = JointDistribution.of({"x": list(range(100)), "y": list(range(100))})
    assert repr(large) == "JointDistribution: 100 rows · x 100 × y 100 = 10,000 cells, 9,900 of them empty"


def test_d1_html_escapes_names_and_values():
    joint = JointDistribution.of({"<b>": ["<script>alert(1)</script>", "a & b\x1b[2J"]})
    page = joint._repr_html_()
    assert "<script>" not in page and "<b>" not in page and "\x1b" not in page
    assert "&lt;script&gt;" in page and "a &amp; b" in page
    assert "\x1b" not in repr(joint)


def test_numbers_are_cut_into_stretches():
    people = {"hours": [20, 40, 41, 60, None, 50.0], "income": ["poor", "poor", "rich", "rich", "rich", "poor"]}
    table = JointDistribution.of(people, cuts={"hours": [40.5, 50]})
    assert table.values == (("< 40.5", "40.5 to 50", "≥ 50"), ("poor", "rich")) and table.skipped == 1
    assert table.count(hours=30) == 2 and table.count(hours="≥ 50") == 2 and table.count(hours=50.0, income="poor") == 1
    assert table.conditional({"income": "rich"}, given={"hours": 45}) == 1.0
    asked = {"hours": [10.0, 45.0, None], "income": ["poor", "poor", "rich"]}
    assert np.exp(table.log_probability(asked)).round(12).tolist() == [0.4, 0.0, 0.4]
    assert table.marginal("hours").probability(hours=99) == 0.4
    assert table.given(income="rich").probability(hours=60) == 0.5
    one, two = ({n: v[a:b] for n, v in people.items()} for a, b in ((0, 2), (2, 6)))
    halves = [JointDistribution.of(h, cuts={"hours": (50, 40.5)}) for h in (one, two)]
    assert halves[0] + halves[1] == table and table - halves[0] == halves[1]
    with pytest.raises(tb.SettingsError, match="cuts"):
        table + JointDistribution.of(people, cuts={"hours": 40.5})


@pytest.mark.parametrize("cuts", [{"hours": "noon"}, {"hours": []}, {"hours": float("nan")}, {"minutes": 3}])
def test_what_is_no_cut_is_refused(cuts):
    with pytest.raises(tb.SettingsError):
        JointDistribution.of({"hours": [1, 2]}, cuts=cuts)


def test_the_census_is_cut_by_the_table_itself():
    f = shared("adult")
    f["long"] = f["hours-per-week"] > 40.5
    plain = JointDistribution.of(f, ["sex", "long", "target"])
    cut = JointDistribution.of(f, ["sex", "hours-per-week", "target"], cuts={"hours-per-week": 40.5})
    assert cut.rows == plain.rows == 48_842
    for sex, rich in itertools.product(*(cut.values[i] for i in (0, 2))):
        for long in (False, True):
            asked = {"sex": sex, "hours-per-week": 60 if long else 40, "target": rich}
            assert cut.count(asked) == plain.count(sex=sex, long=long, target=rich) > 0
