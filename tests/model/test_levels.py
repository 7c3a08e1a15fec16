"""p-values of `assumptions` and `shift` keep their level, and a verdict says no more than it knows."""

from __future__ import annotations

import itertools
import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import ALL

import tallybayes as tb
from tallybayes.model.joint import dependence as module
from tallybayes.model.joint import two_samples
from tallybayes.model.joint.dependence import chance, dependence, holm

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import levels

margin = st.lists(st.integers(0, 3), min_size=1, max_size=6)


def highest(tables: int, share: float = 0.065) -> float:
    """What a share of so many tables stays below in all but one case in a thousand."""
    return share + 3.1 * math.sqrt(share * (1 - share) / tables)


# ---- the law


@settings(max_examples=40, deadline=None)
@given(margin, st.randoms(use_true_random=False))
def test_the_moments_of_chance_are_those_of_all_permutations(left, random):
    a = np.array(left)
    b = np.array([random.randrange(3) for _ in left])
    n = len(a)
    sides = [np.unique(codes, return_counts=True)[1].astype(float) for codes in (a, b)]
    graphs = [module.invariants(by, np.zeros(len(by), dtype=np.int64), np.array([float(n)])) for by in sides]
    w, v = ((codes[:, None] == codes) / np.bincount(codes)[codes] - 1 / n for codes in (a, b))
    every = [np.sum(w * v[np.ix_(p, p)]) for p in map(list, itertools.permutations(range(n)))]
    for k, found in enumerate(chance(np.array([float(n)]), *graphs), start=1):
        assert float(found[0]) == pytest.approx(np.mean(np.power(every, k)), abs=1e-12)


def test_a_thousand_deals_and_the_curve_of_three_moments_agree(monkeypatch):
    monkeypatch.setattr(module, "DEALS", 20_000)
    rng = np.random.default_rng(3)
    for _ in range(5):
        s, a, b = rng.integers(0, 3, 150), rng.integers(0, 4, 150), rng.integers(0, 6, 150)
        found = dependence("", a, b, s, np.ones(150))
        dealt = module._by_dealing(s, a, b, np.bincount(s).astype(float), found.statistic)
        assert dealt == pytest.approx(found.p_value, abs=0.015)


def test_p_is_the_same_every_time_and_whatever_the_order_of_the_rows():
    rng, dealt = np.random.default_rng(4), 0
    for _ in range(30):
        s, a, b, order = (rng.integers(0, k, 80) for k in (2, 3, 3, 80))
        order = np.argsort(order)
        one, other = (dependence("", a[i], b[i], s[i], np.ones(80)).p_value for i in (np.arange(80), order))
        assert one == other
        dealt += module.UNSURE[0] <= one <= module.UNSURE[1]
    assert dealt > 0


def test_holm_by_hand():
    assert holm([0.01, 0.04, None, 0.03]) == [0.03, 0.06, None, 0.06]
    assert holm([0.5, 0.9]) == [1.0, 1.0]
    assert holm([]) == []


# ---- verdicts


def test_counted_rows_are_never_called_independent():
    even = {"a": [0, 0, 1, 1] * 10, "b": [0, 1, 0, 1] * 10}
    counted = tb.JointDistribution.of(even).independent("a", "b")
    assert counted.mutual_information == 0.0 and counted.p_value == 1.0
    assert counted.verdict == "no sign of dependence" and not counted.independent and not counted.dependent
    written = tb.JointDistribution.written([0.25] * 4, "AB").independent("A", "B")
    assert written.verdict == "exactly independent" and written.independent and written.p_value is None
    uneven = tb.JointDistribution.written([0.3, 0.2, 0.2, 0.3], "AB").independent("A", "B")
    assert uneven.verdict == "dependent" and uneven.dependent and uneven.bits == pytest.approx(0.029, abs=1e-3)


def test_a_verdict_goes_by_the_corrected_p_value():
    rng = np.random.default_rng(11)
    rows = {f"x{j}": rng.normal(size=200) for j in range(12)} | {"y": rng.integers(0, 2, 200)}
    rows["x11"] = rows["x0"] + rng.normal(size=200)
    found = tb.assumptions(rows, tb.Schema([tb.Column(f"x{j}", "number") for j in range(12)], target="y"))
    assert any(p.found.p_value < 0.05 <= p.found.p_corrected for p in found.pairs)  # alarms that 66 questions explain
    assert [(p.a, p.b) for p in found.pairs if p.found.verdict == "dependent"] == [("x0", "x11")]
    assert found.dependent == 1 and "1 called dependent" in repr(found)


# ---- shift


def counted(schema, **columns):
    return tb.count(columns, schema)


SCHEMA = tb.Schema([tb.Column("a", "category")], target="y")


def test_shift_of_columns_with_nothing_in_common():
    y = ["u", "v"] * 50
    gone = tb.shift(counted(SCHEMA, a=["p", "q"] * 50, y=y), counted(SCHEMA, a=[None] * 100, y=y))["a"]
    assert gone.p_value < 1e-20 and gone.p_value_within < 1e-20 and gone.verdict == "shifted"
    # 100 values of ten rows each, then ten rows with values that were never seen
    many = counted(SCHEMA, a=[f"v{i % 100}" for i in range(1000)], y=["u"] * 1000)
    new = tb.shift(many, counted(SCHEMA, a=[f"w{i % 5}" for i in range(10)], y=["u"] * 10))["a"]
    assert new.p_value < 1e-6 and new.verdict == "shifted"


def test_shift_without_a_question_has_no_p_value():
    one, other = counted(SCHEMA, a=["p"] * 9, y=["u"] * 9), counted(SCHEMA, a=["p"] * 9, y=["v"] * 9)
    assert tb.shift(one, other)["a"].p_value_within is None  # no class in common
    names = [counted(SCHEMA, a=[f"{t}{i}" for i in range(30)], y=["u"] * 30) for t in "ab"]
    ids = tb.shift(*names)["a"]  # all different, as they would be in any other rows
    assert ids.p_value is None and ids.verdict == "not tested"


# ---- levels


@pytest.mark.parametrize("n", [60, 150, *([300, 500, 1000] if ALL else [])])
def test_the_level_is_kept(n):
    tables = 2000 if ALL else 60
    pairs, columns = levels.assumption_levels(n, tables), levels.shift_levels(n, tables)
    for found in (pairs, columns):
        assert found.share("numbers") < highest(tables) and (not ALL or found.share("numbers") > 0.02)
        assert found.share("others") < highest(tables) and found.share("corrected") < highest(tables)


@pytest.mark.parametrize("n", [100, *([60, 300, 1000] if ALL else [])])
def test_the_level_is_kept_without_labels(n):
    tables = 1000 if ALL else 25
    found = levels.unlabelled_levels(n, tables)
    assert found.share("numbers") < highest(2 * tables) and (not ALL or found.share("numbers") > 0.03)
    for what in ("others", "corrected", levels.WITHIN):
        assert found.share(what) < highest(tables)


def test_a_moved_number_is_found_with_few_rows():
    assert levels.shift_power(300, 8).share("normal") >= 0.5  # ten bins alone found 43 % of them
    assert levels.unlabelled_power(600, 5).share("normal") >= 0.8


def test_the_moments_of_a_kernel_are_those_of_all_deals():
    counts = np.array([[2.0, 0.0, 1.0, 1.0], [0.0, 2.0, 1.0, 0.0]])
    for ordered in (0, 3, 4):
        stratum = two_samples._Stratum(counts, ordered)
        slots = np.repeat(np.arange(4), counts.sum(axis=0).astype(int))
        first = int(counts[0].sum())
        dealt = [np.bincount(slots[list(p)], minlength=4) for p in itertools.combinations(range(len(slots)), first)]
        every = [float(stratum.statistic(d.astype(float))) / (len(slots) - 1) for d in dealt]
        moments = chance(np.array([stratum.rows]), stratum.tallies()[:, None], stratum.graphs()[:, None])
        for k, found in enumerate(moments, start=1):
            assert float(found[0]) == pytest.approx(np.mean(np.power(every, k)), rel=1e-9)


def test_what_is_there_is_found():
    found = levels.assumption_power(1000, 5)
    assert min(found.shares().values()) >= 0.8
    assert levels.shift_power(1000, 5).share("normal") >= 0.8
