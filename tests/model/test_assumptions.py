"""How far data break the assumptions of naive Bayes (mission row A16), against SciPy, pandas and scikit-learn."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import fisher_exact
from shared_data import shared
from sklearn.metrics import mutual_info_score

from tallybayes.base.errors import CannotEstimate, DataError, SchemaError
from tallybayes.data.schema import Column, Schema
from tallybayes.exact.cells import Cells
from tallybayes.model.joint.assumptions import assumptions, binned
from tallybayes.model.joint.shift import shift
from tallybayes.tally.tally import Tally

few = settings(max_examples=25, deadline=None)
SCHEMA = Schema([Column("a", "category"), Column("b", "category"), Column("x", "number")], target="y")
value = st.sampled_from(["p", "q", "r", None])
row = st.tuples(value, value, st.sampled_from([0.0, 1.5, 2.0, None]), st.sampled_from(["u", "v"]))


def frame(rows) -> pd.DataFrame:
    f = pd.DataFrame(rows, columns=["a", "b", "x", "y"])
    return f.astype({"a": object, "b": object, "x": float, "y": object})


def by_hand(f: pd.DataFrame, a: str, b: str) -> tuple[float, int]:
    """Σ over classes of their share times mutual_info_score, and the degrees of freedom."""
    f = f.dropna(subset=[a, b])
    nats, degrees = 0.0, 0
    for _, part in f.groupby("y"):
        nats += len(part) / len(f) * mutual_info_score(pd.factorize(part[a])[0], pd.factorize(part[b])[0])
        degrees += (part[a].nunique() - 1) * (part[b].nunique() - 1)
    return nats, degrees


# ---- columns


@few
@given(st.lists(row, min_size=1, max_size=40))
def test_a16_pairs_equal_scikit_learn_class_by_class(rows):
    f = frame(rows)
    report = assumptions(f, SCHEMA)
    assert report.n_pairs == 3
    for pair in report.pairs:
        nats, degrees = by_hand(f, pair.a, pair.b)
        n = len(f.dropna(subset=[pair.a, pair.b]))
        assert pair.found.rows == n
        assert pair.found.mutual_information == pytest.approx(nats, abs=1e-12)
        assert pair.found.degrees == degrees
        assert pair.found.expected == pytest.approx(degrees / (2 * n) if n else 0.0)
    strengths = [p.found.excess for p in report.pairs]
    assert strengths == sorted(strengths, reverse=True)


def test_a16_copies_are_found_and_noise_is_not():
    rng = np.random.default_rng(1)
    n = 3000
    y = rng.integers(0, 2, n)
    copy = rng.integers(0, 4, n)
    f = pd.DataFrame({"a": copy, "b": copy, "noise": rng.integers(0, 4, n), "only_class": y, "y": y})
    schema = Schema([Column(c, "category") for c in ("a", "b", "noise", "only_class")], target="y")
    report = assumptions(f, schema)
    top = report.pairs[0]
    assert {top.a, top.b} == {"a", "b"}
    assert top.found.share == pytest.approx(1.0) and top.found.p_value < 1e-300
    rest = {(p.a, p.b): p.found for p in report.pairs[1:]}
    assert rest["a", "noise"].p_value > 0.001
    assert abs(rest["a", "noise"].excess) < 0.005
    # what the class explains is no dependence given the class
    assert rest["a", "only_class"].mutual_information == 0.0


def test_a16_chance_is_subtracted_before_sorting():
    rng = np.random.default_rng(2)
    n = 400
    real = rng.integers(0, 2, n)
    f = pd.DataFrame({
        "id_1": rng.integers(0, 60, n), "id_2": rng.integers(0, 60, n),
        "real_1": real, "real_2": np.where(rng.random(n) < 0.8, real, 1 - real), "y": rng.integers(0, 2, n),
    })  # fmt: skip
    report = assumptions(f, Schema([Column(c, "category") for c in f.columns if c != "y"], target="y"))
    raw = max(report.pairs, key=lambda p: p.found.mutual_information)
    assert {raw.a, raw.b} == {"id_1", "id_2"}  # many values look dependent
    assert {report.pairs[0].a, report.pairs[0].b} == {"real_1", "real_2"}
    assert report.total >= report.pairs[0].found.excess


def test_a16_false_alarms_come_as_often_as_the_p_value_says():
    rng = np.random.default_rng(3)
    n, columns = 2000, 20
    f = pd.DataFrame({f"x{j}": rng.normal(size=n) for j in range(columns)} | {"y": rng.integers(0, 3, n)})
    report = assumptions(f, Schema([Column(f"x{j}", "number") for j in range(columns)], target="y"))
    assert report.n_pairs == 190 and len(report.pairs) == 50
    smallest = sorted(p.found.p_value for p in report.pairs)
    assert sum(p < 0.05 for p in smallest) <= 20  # 9.5 expected of 190
    assert report.dependent == 0 and min(p.found.p_corrected for p in report.pairs) > 0.05


@few
@given(st.lists(st.one_of(st.floats(-5, 5), st.integers(0, 3).map(float), st.just(math.nan)), min_size=1, max_size=200))
def test_a16_bins_are_ordered_and_few(values):
    x = np.array(values)
    codes = binned(x, np.zeros(len(x), dtype=np.int64))
    assert (codes[np.isnan(x)] == -1).all()
    some = ~np.isnan(x)
    assert len(np.unique(codes[some])) <= 10
    order = np.argsort(x[some], kind="stable")
    assert (np.diff(codes[some][order]) >= 0).all()
    if len(np.unique(x[some])) <= 10:
        assert len(np.unique(codes[some])) == len(np.unique(x[some]))


def test_a16_bins_have_about_equal_frequency():
    codes = binned(np.random.default_rng(0).lognormal(size=10_000), np.zeros(10_000, dtype=np.int64))
    assert np.bincount(codes).tolist() == pytest.approx([1000] * 10, abs=2)


def test_a16_adult():
    f = shared("adult")
    numbers = ("age", "fnlwgt", "education-num", "capital-gain", "capital-loss", "hours-per-week")
    names = [c for c in f.columns if c not in ("target", "split")]
    schema = Schema([Column(c, "number" if c in numbers else "category") for c in names], target="target")
    report = assumptions(f, schema)
    top = report.pairs[0]
    assert (top.a, top.b) == ("education", "education-num")
    assert top.found.share == pytest.approx(1.0)
    pair = next(p for p in report.pairs if (p.a, p.b) == ("relationship", "sex"))
    assert pair.found.mutual_information == pytest.approx(
        by_hand(f.rename(columns={"target": "y"}), "relationship", "sex")[0]
    )
    again = f[[*names, "target"]].duplicated().sum()
    assert report.repeats.repeats == again
    assert "education · education-num" in repr(report)


# ---- rows


@few
@given(st.lists(row, min_size=1, max_size=40))
def test_a16_repeats_equal_pandas(rows):
    f = frame(rows)
    found = assumptions(f, SCHEMA).repeats
    assert found.repeats == int(f.duplicated().sum())
    assert found.most == int(f.value_counts(dropna=False).max())
    assert found.share == found.repeats / len(f)
    wanted = {k: None if v is None or v != v else v for k, v in f.iloc[0].items()}
    if found.distinct == 1:
        assert found.example["a"] == wanted["a"] and found.example["y"] == wanted["y"]


def test_a16_repeats_over_several_batches_and_kinds():
    schema = Schema([Column("words", "bag"), Column("v", "vector", width=2)], target="y")
    one = {"words": ["ann", "bob"], "v": [1.0, 2.0], "y": "u"}
    other = {"words": ["bob", "ann"], "v": [1.0, 2.0], "y": "u"}  # a bag has no order
    report = assumptions([one, other, {**one, "y": "v"}, {**one, "v": [1.0, 3.0]}], schema)
    assert (report.repeats.repeats, report.repeats.most, report.n_pairs) == (1, 2, 0)
    assert "2 times: y=u, words=ann bob" in repr(report)


def test_a16_rows_without_a_label_are_left_out():
    f = frame([("p", "q", 1.0, "u"), ("p", "q", 1.0, None), ("p", "q", 1.0, "u")])
    report = assumptions(f, SCHEMA)
    assert (report.rows, report.repeats.repeats) == (2, 1)
    with pytest.raises(DataError, match="no row with a label"):
        assumptions(frame([("p", "q", 1.0, None)]), SCHEMA)


# ---- shift


@few
@given(st.lists(row, min_size=1, max_size=30), st.lists(row, min_size=1, max_size=30))
def test_a16_shift_equals_scipy(first, second):
    f, g = frame(first), frame(second)
    found = shift(Tally.of(SCHEMA, f), Tally.of(SCHEMA, g))
    sizes = [s.size for s in found]
    assert sizes == sorted(sizes, reverse=True)
    cross = pd.crosstab(pd.concat([f, g])["y"], [0] * len(f) + [1] * len(g)).reindex(columns=[0, 1], fill_value=0)
    assert found["y"].marginal.divergence == pytest.approx(jensenshannon(cross[0], cross[1]) ** 2, abs=1e-9)
    for column in ("a", "b"):
        both = pd.concat([f, g])[column]
        table = pd.crosstab(both, [0] * len(f) + [1] * len(g)).reindex(columns=[0, 1], fill_value=0)
        gap = found[column].marginal
        if (table.sum() > 0).all():
            assert gap.divergence == pytest.approx(jensenshannon(table[0], table[1]) ** 2, abs=1e-9)
        else:
            assert gap.divergence is None
    x, z = f["x"].dropna(), g["x"].dropna()
    d = found["x"].marginal.mean_difference
    scale = math.sqrt((x.var(ddof=0) + z.var(ddof=0)) / 2) if len(x) and len(z) else 0.0
    if scale > 0:
        assert d == pytest.approx((z.mean() - x.mean()) / scale, rel=1e-9, abs=1e-12)


def test_a16_shift_within_classes_where_the_whole_does_not_move():
    # P(a) is the same in both, but the classes have changed places
    one = frame([("p", "k", 0.0, "u")] * 50 + [("q", "k", 0.0, "v")] * 50)
    two = frame([("q", "k", 0.0, "u")] * 50 + [("p", "k", 0.0, "v")] * 50)
    found = shift(Tally.of(SCHEMA, one), Tally.of(SCHEMA, two))
    assert found.columns[0].column == "a"
    a = found["a"]
    assert a.marginal.divergence == 0.0 and a.p_value == 1.0
    assert a.by_class["u"].divergence == pytest.approx(math.log(2))
    assert a.within == pytest.approx(math.log(2)) and a.p_value_within < 1e-30
    assert found["b"].size == found["y"].size == 0.0


def test_a16_shift_of_equal_tallies_is_zero_and_of_a_tally_with_itself():
    f = shared("auto_mpg")
    f["good"] = f["mpg"] > 22
    cells = Cells.fitted(f["weight"].to_numpy(float))
    schema = Schema([Column("origin", "category"), Column("weight", "number", cells=cells)], target="good")
    tally = Tally.of(schema, f)
    assert all(s.size == 0.0 and s.p_value in (1.0, None) for s in shift(tally, tally))
    light, heavy = Tally.of(schema, f[f["weight"] < 2800]), Tally.of(schema, f[f["weight"] >= 2800])
    weight = shift(light, heavy)["weight"]
    assert weight.marginal.divergence > 0.6  # no value in common, but a coarse cell reaches over the border
    x, z = f.loc[f["weight"] < 2800, "weight"], f.loc[f["weight"] >= 2800, "weight"]
    wanted = (z.mean() - x.mean()) / math.sqrt((x.var(ddof=0) + z.var(ddof=0)) / 2)
    assert weight.marginal.mean_difference == pytest.approx(wanted, rel=1e-12)


def test_a16_shift_of_cells_is_not_fooled_by_fine_cells():
    rng = np.random.default_rng(4)
    x = rng.normal(size=2000)
    schema = Schema([Column("x", "number", cells=Cells.fitted(x))], target="y")
    y = rng.integers(0, 2, 2000)
    halves = [Tally.of(schema, {"x": x[part], "y": y[part]}) for part in (slice(0, 1000), slice(1000, 2000))]
    found = shift(*halves)["x"]
    assert found.marginal.divergence < 0.01 and found.p_value > 0.01


def test_a16_shift_of_bags_and_vectors():
    schema = Schema([Column("words", "bag"), Column("v", "vector", width=2)], target="y")
    a = Tally.of(
        schema, [{"words": ["x", "x", "z"], "v": [0.0, 5.0], "y": 1}, {"words": ["z"], "v": [2.0, 5.0], "y": 1}]
    )
    b = Tally.of(schema, [{"words": ["x"], "v": [4.0, 5.0], "y": 1}, {"words": ["x"], "v": [6.0, 5.0], "y": 1}])
    found = shift(a, b)
    assert found["words"].marginal.divergence == pytest.approx(jensenshannon([2, 2], [2, 0]) ** 2)
    assert found["words"].p_value is None and found["v"].p_value is None
    assert found["v"].marginal.mean_difference == pytest.approx(4.0)  # means 1 and 5, deviation 1
    assert found["v"].marginal.divergence is None


def test_a16_shift_of_constants_and_huge_numbers():
    schema = Schema([Column("x", "number")], target="y")
    one, two = (Tally.of(schema, {"x": [v] * 3, "y": [0] * 3}) for v in (1.0, 2.0))
    assert shift(one, two)["x"].marginal.mean_difference == math.inf
    assert shift(one, one)["x"].marginal.mean_difference == 0.0
    big, bigger = (Tally.of(schema, {"x": [v, 2 * v], "y": [0, 0]}) for v in (1e300, 4e300))
    assert shift(big, bigger)["x"].marginal.mean_difference == pytest.approx(4.5 / math.sqrt((0.25 + 4) / 2))


def test_a16_shift_of_weighted_rows_has_no_p_value():
    f = frame([("p", "q", 1.0, "u"), ("q", "q", 2.0, "v")])
    weighted = Tally.of(SCHEMA, f, weights=[0.5, 2.5])
    found = shift(Tally.of(SCHEMA, f), weighted)["a"]
    assert found.p_value is None
    assert found.marginal.divergence == pytest.approx(jensenshannon([1, 1], [0.5, 2.5]) ** 2)


def test_a16_shift_refuses_what_are_no_rows():
    f = frame([("p", "q", 1.0, "u")])
    tally = Tally.of(SCHEMA, f)
    with pytest.raises(CannotEstimate, match="no rows"):
        shift(tally, Tally.zero(SCHEMA))
    with pytest.raises(CannotEstimate, match="no tally of rows"):
        shift(tally, tally - Tally.of(SCHEMA, frame([("r", "q", 1.0, "u")])) + tally)
    with pytest.raises(SchemaError, match="share no column"):
        shift(tally, Tally.of(Schema([Column("c", "category")], target="y"), {"c": ["p"], "y": ["u"]}))


def test_a16_reports_read_well():
    f = frame(list(itertools.product("pq", "pq", [1.0, 2.0], "uv")) * 3)
    report = repr(assumptions(f, SCHEMA))
    assert "1. Columns independent given y: 3 pairs, 0 nats in all" in report
    assert "2. Rows independent: 32 rows repeat an earlier one (66.7 %)" in report
    text = repr(shift(Tally.of(SCHEMA, f), Tally.of(SCHEMA, f[f["a"] == "p"])))
    lines = text.splitlines()
    assert lines[0] == "Shift between 48 and 24 rows"
    assert lines[2].split()[:2] == ["a", "category"]


def test_a16_shift_adds_up_cells_in_the_order_of_the_line():
    rng = np.random.default_rng(6)
    x, z = rng.uniform(-1, 1, 4000), rng.uniform(0, 2, 4000)
    schema = Schema([Column("x", "number", cells=Cells.fitted(np.concatenate([x, z])))], target="y")
    found = shift(*(Tally.of(schema, {"x": v, "y": [0] * 4000}) for v in (x, z)))["x"]
    codes = binned(np.concatenate([x, z]), np.zeros(8000, dtype=np.int64))
    p, q = (np.bincount(c, minlength=10) for c in (codes[:4000], codes[4000:]))
    assert found.marginal.divergence == pytest.approx(jensenshannon(p, q) ** 2, abs=0.01)


def test_a16_shift_compares_a_class_with_the_same_class():
    one = frame([("p", "k", 0.0, "u")] * 4 + [("p", "k", 0.0, "v")] * 3 + [("q", "k", 0.0, "v")])
    two = frame([("p", "k", 0.0, "v")] + [("q", "k", 0.0, "v")] * 3 + [("r", "k", 0.0, "w")] * 4)
    found = shift(Tally.of(SCHEMA, one), Tally.of(SCHEMA, two))["a"]
    assert list(found.by_class) == ["v"]
    assert found.by_class["v"].divergence == pytest.approx(jensenshannon([3, 1], [1, 3]) ** 2)
    assert found.p_value_within == pytest.approx(fisher_exact([[3, 1], [1, 3]]).pvalue)
