"""Change over time: found, named and dated; level and power; each period judged by the model before it."""

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
import pytest
from strategies import ALL

import tallybayes as tb
from tallybayes.model.joint import two_samples
from tallybayes.model.joint.two_samples import chance_of, chances_along
from tallybayes.selection.over_time import deals, scan

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import windows as benchmark


@pytest.mark.parametrize(("ordered", "shape"), [(30, (9, 31, 3)), (0, (9, 7, 2)), (0, (5, 2, 3)), (12, (4, 12, 1))])
def test_all_times_at_once_are_each_by_itself(ordered, shape):
    rng = np.random.default_rng(3)
    table = rng.poisson(4, shape).astype(np.float64)
    table[:2, :, -1] = 0  # a class that comes late
    before = np.cumsum(table, axis=0)[:-1]
    each = [chance_of(np.stack([first, table.sum(axis=0) - first]), ordered) for first in before]
    np.testing.assert_allclose(chances_along(table, ordered), each, rtol=1e-9, atol=1e-13)


def test_many_values_need_no_kernel(monkeypatch):
    rng = np.random.default_rng(1)
    table = rng.poisson(0.7, (6, 40, 2)).astype(np.float64)
    before = np.cumsum(table, axis=0)[:-1]
    each = [chance_of(np.stack([first, table.sum(axis=0) - first])) for first in before]
    monkeypatch.setattr(two_samples, "MOST_SLOTS", 30)
    pearson = [chance_of(np.stack([first, table.sum(axis=0) - first])) for first in before]
    found = two_samples.chances_by_moments(before, table.sum(axis=0))
    np.testing.assert_allclose(found, pearson, rtol=1e-9)
    assert np.abs(np.array(each) - pearson).max() > 0.01


def small_windows() -> tuple[tb.Windows, np.ndarray]:
    """Two values and two classes over three periods of four rows, and the table of them."""
    table = np.zeros((3, 3, 2))  # the last slot is for missing values
    table[:, :2] = [[[2, 2], [0, 0]], [[2, 0], [1, 1]], [[0, 0], [2, 2]]]
    rows = {
        "x": [v for period in table for v, n in zip("ab", period, strict=False) for _ in range(round(n.sum()))],
        "y": [c for period in table for n in period for c, k in zip("pq", n, strict=True) for _ in range(round(k))],
        "t": np.repeat([1, 2, 3], 4).tolist(),
    }
    windows = tb.Windows(tb.Schema([tb.Column("x", "category")], target="y"), by="number", time="t")
    windows.add(rows)
    return windows, table


def test_p_is_the_share_of_all_ways_to_deal_the_rows_out_that_show_as_much():
    """12! / (4!)³ = 34,650 ways; Cauchy's quantiles alone say twice that share."""
    windows, table = small_windows()
    what = np.repeat(np.arange(6), table.sum(axis=0).ravel().astype(int))
    ways = [
        [first, second]
        for first in combinations(range(12), 4)
        for second in combinations([i for i in range(12) if i not in first], 4)
    ]
    period = np.full((len(ways), 12), 2)
    for at in (1, 0):
        np.put_along_axis(period, np.array([way[at] for way in ways]), at, axis=1)
    dealt = np.stack([[(what == cell)[None] & (period == k) for cell in range(6)] for k in range(3)]).sum(axis=-1)
    dealt = np.moveaxis(dealt, -1, 0).reshape(-1, 3, 3, 2).astype(np.float64)
    figures = deals._shown(np.cumsum(dealt, axis=1)[:, :-1], table.sum(axis=0), 0)
    own = deals._shown(np.cumsum(table, axis=0)[None, :-1], table.sum(axis=0), 0)[0]
    share = np.mean(figures <= own * (1 + 1e-9))
    assert len(ways) == 34_650 and 0.005 < share < 0.1
    assert tb.change(windows)["x"].p_value == pytest.approx(share, rel=0.5)


def test_the_tail_is_never_thinner_than_the_figure_and_goes_on():
    rng = np.random.default_rng(0)
    uniform, heavy = rng.random(4000), rng.random(4000) ** 2  # P(u² ≤ x) = √x
    for x in (1e-3, 1e-6, 1e-12):
        assert x / 1.5 < deals._by_tail(uniform, x) < 30 * x**0.9
        assert x**0.65 < deals._by_tail(heavy, x) < x**0.35
    assert deals._by_tail(rng.random(4000) ** 0.2, 1e-6) > 1e-8  # a tail that seems to end, at 1e-30, is not believed
    assert 0 < deals._by_tail(uniform, 0.0) < 1e-200


def test_of_very_many_rows_some_are_dealt_in_the_same_shares(monkeypatch):
    rng = np.random.default_rng(4)
    table = rng.multinomial(40_000, np.full(6 * 8, 1 / 48), size=1)[0].reshape(6, 8, 1).astype(np.float64)
    table[3:, 0] += 70
    found = deals.chance_of_any(table, 8, 5)
    monkeypatch.setattr(deals, "_MOST_ROWS", 100_000)
    assert 1e-5 < found < 0.2 and found == pytest.approx(deals.chance_of_any(table, 8, 5), rel=1.0)


def dealt_shapes(monkeypatch):
    """The shapes of all tables that are dealt out from now on."""
    shapes, own = [], deals._dealt
    monkeypatch.setattr(
        deals, "_dealt", lambda rng, when, what, shape: shapes.append(shape) or own(rng, when, what, shape)
    )
    return shapes


@pytest.mark.parametrize("questions", [4, 30])
def test_of_many_values_fewer_deals_are_drawn_and_enough_to_tell_the_level(monkeypatch, questions):
    rng, shapes = np.random.default_rng(6), dealt_shapes(monkeypatch)
    table = rng.poisson(3.0, (6, 40, 2)).astype(np.float64)
    table[:3, :8] *= 4
    monkeypatch.setattr(deals, "_MOST_CELLS", 1000 * table[0].size)  # 166 deals of six stretches
    p = deals.chance_of_any(table, 0, questions)
    drawn = sum(shape[0] for shape in shapes)
    assert drawn == max(2 * deals._TAIL, 20 * questions) and p * questions < 0.05


def test_few_deals_keep_the_level(monkeypatch):
    """p at or below a level comes with at most that probability, however few the deals."""
    rng = np.random.default_rng(7)
    tables = rng.multinomial(150, np.full(4 * 6 * 2, 1 / 48), size=400).reshape(-1, 4, 6, 2).astype(np.float64)
    monkeypatch.setattr(deals, "_MOST_CELLS", 1)
    found = np.array([deals.chance_of_any(table, 0, 3) for table in tables])
    for level in (0.05, 0.05 / 3):
        assert np.mean(found <= level) < level + 2.5 * (level / len(tables)) ** 0.5
    assert np.mean(found <= 0.05) > 0.02


def test_values_without_rows_are_not_dealt_to(monkeypatch):
    rng, shapes = np.random.default_rng(8), dealt_shapes(monkeypatch)
    table = rng.poisson(0.7, (4, 600, 2)).astype(np.float64)
    table[:2, :30] += 2
    p = deals.chance_of_any(table, 0, 2)
    many = np.concatenate([table, np.zeros((4, 4000, 2))], axis=1)
    assert deals.chance_of_any(many, 0, 2) == pytest.approx(p, rel=1e-9) and p < 0.25
    assert shapes and max(shape[2] for shape in shapes) <= 600


def test_a_change_is_found_named_and_dated():
    changes, at = benchmark.scanned(np.random.default_rng(0), 6, 400, 0.5)
    first = changes.columns[0]
    assert (first.column, first.when, first.after) == ("number 3", str(at), str(at - 1))
    assert [c.column for c in changes.changed] == ["number 3"] and changes["number 3"] is first
    assert first.gap.mean_difference == pytest.approx(0.5, abs=0.1)
    assert changes.summary == f"Changed: number 3 with {at}."
    assert "no sign of a change" in repr(changes) and "+0." in repr(changes)
    assert changes["y"].kind == "class" and len(changes.columns) == 21
    with pytest.raises(KeyError):
        changes["nothing"]


def test_a_change_within_the_classes_that_leaves_the_whole_as_it_was():
    rng = np.random.default_rng(2)
    n = 4000
    y, late = rng.random(n) < 0.5, np.arange(n) >= n // 2
    rows = {
        "x": rng.normal(size=n) + np.where(y ^ late, 0.4, -0.4),
        "y": np.where(y, "p", "q"),
        "t": np.arange(n) // 500,
    }
    windows = tb.Windows(tb.infer(rows, "y", kinds={"t": "ignore"}), by="number", time="t")
    windows.add(rows)
    found = tb.change(windows)["x"]
    assert found.verdict == "changed" and found.within and found.when == "4"


def test_of_many_periods_some_times_are_asked_and_the_right_one_is_named():
    rng = np.random.default_rng(5)
    day = np.sort(rng.integers(0, 400, 8000))
    rows = {"x": rng.normal(size=8000) + 2.0 * (day >= 271), "y": rng.choice(["p", "q"], 8000), "t": day}
    windows = tb.Windows(tb.infer(rows, "y", kinds={"t": "ignore"}), by="number", time="t")
    windows.add(rows)
    found = tb.change(windows)["x"]
    assert found.when == "271" and len(found.times) <= scan._MOST_TIMES
    assert tb.change(windows, end=271)["x"].verdict == "no sign of a change"


def test_time_itself_is_not_asked_whether_it_changed():
    rows = {"t": [f"2024-05-{1 + i // 9:02}" for i in range(180)], "x": list("ab") * 90, "y": ["p", "q", "q"] * 60}
    windows = tb.Windows(tb.infer(rows, "y"), by="day")
    windows.add(rows)
    assert len(windows.schema.counted) > 1 and [c.column for c in tb.change(windows)] in (["x", "y"], ["y", "x"])


def test_what_cannot_be_tested_says_so():
    rows = {"x": ["one word", "two words"] * 30, "y": ["p", "q"] * 30, "t": [1, 1, 2, 2] * 15}
    windows = tb.Windows(tb.Schema([tb.Column("x", "text")], target="y"), by="number", time="t")
    windows.add(rows)
    assert tb.change(windows)["x"].verdict == "not tested" and "not tested" in repr(tb.change(windows))
    windows.add(rows, weights=[0.5] * 60)
    assert tb.change(windows)["y"].p_value is None
    with pytest.raises(tb.CannotEstimate, match="1 period with rows"):
        tb.change(windows, end=2)


@pytest.mark.parametrize(("labels", "weights"), [(["p", "q"], None), (["p", "p"] * 30, [0.5] * 60)])
def test_where_nothing_can_be_tested_nothing_is_said_of_a_change(labels, weights):
    rows = {"x": ["a", "b"] * (len(labels) // 2), "y": labels, "t": [1, 2] * (len(labels) // 2)}
    windows = tb.Windows(tb.Schema([tb.Column("x", "category")], target="y"), by="number", time="t")
    windows.add(rows, weights=weights)
    found = tb.change(windows)
    assert {(c.verdict, c.p_value, c.p_corrected, c.times) for c in found} == {("not tested", None, None, ())}
    assert found.summary.startswith("Nothing could be tested: ") and found.summary in repr(found)
    drawn = found.plot()
    assert drawn.level is None and not drawn.curves and not drawn.ax_.lines
    assert "there is nothing to draw" in str(tb.plots.terminal(found)) and "sure" not in str(tb.plots.terminal(found))


def test_combined_p_values_are_between_the_smallest_and_bonferronis():
    rng = np.random.default_rng(0)
    p = rng.random((7, 400)) ** 4
    p = p[:, p.min(axis=0) < 0.01]
    found = deals.combined(p)
    assert p.shape[1] > 200 and (found <= 1.2 * 7 * p.min(axis=0)).all() and (found >= 0.99 * p.min(axis=0)).all()
    assert np.isfinite(deals.combined(np.array([[0.0], [1.0]]))).all()
    assert deals.combined(np.array([[0.0], [0.0]]))[0] < 1e-290 and deals.combined(np.ones((3, 1)))[0] == 1.0


def test_a_picture_has_the_columns_and_the_time():
    changes, at = benchmark.scanned(np.random.default_rng(0), 5, 200, 0.8)
    drawn = changes.plot()
    assert isinstance(drawn, tb.plots.PeriodsDisplay) and drawn.marks == [("number 3", str(at))]
    assert len(drawn.ax_.lines) == 6 + 1 + 1


def test_each_period_is_judged_by_the_model_before_it():
    rng = np.random.default_rng(1)
    n = 1200
    y, t = rng.random(n) < 0.4, np.arange(n) // 200
    rows = {"x": rng.normal(size=n) + y, "c": rng.choice(list("ab"), n), "y": np.where(y, "p", "q"), "t": t}
    schema = tb.infer(rows, "y", kinds={"t": "ignore"})
    windows = tb.Windows(schema, by="number", time="t")
    windows.add(rows)
    for how in ({}, {"last": 2}, {"half_life": 2}):
        found = tb.prequential(windows, rows, **how)
        assert [j.period for j in found] == ["1", "2", "3", "4", "5"] and found.total.rows == 1000
        for judged in found:
            k = int(judged.period)
            inside = (t < k) & (t >= k - how.get("last", 99))
            weights = 2.0 ** -((k - 1 - t[inside]) // how["half_life"]).astype(float) if "half_life" in how else None
            model = tb.Tally.of(schema, {c: v[inside] for c, v in rows.items()}, weights=weights).model()
            own = {c: v[t == k] for c, v in rows.items()}
            log = model.predict_log_proba(own)
            label = (own["y"] == "q").astype(int)
            assert judged.log_loss == pytest.approx(-log[np.arange(200), label].mean())
            assert judged.accuracy == pytest.approx((log.argmax(axis=1) == label).mean())
    assert "the model of the 2 before it" in repr(tb.prequential(windows, rows, last=2))
    assert len(tb.prequential(windows, rows).plot().ax_.lines) == 1
    new = {c: v[-3:].copy() for c, v in rows.items()}
    new["y"] = np.array(["r", "p", "q"])
    assert tb.prequential(windows, new).total.new_labels == 1
    alone = repr(tb.prequential(windows, {c: v[:1] for c, v in new.items()}))
    assert "new labels" in alone and "nan" not in alone
    with pytest.raises(tb.CannotEstimate, match="no row has a period before it"):
        tb.prequential(windows, {c: v[:5] for c, v in rows.items()})


@pytest.mark.skipif(not ALL, reason="a thousand runs")
@pytest.mark.parametrize(("periods", "each"), [(2, 1000), (12, 500), (24, 200), (48, 50)])
def test_the_level_is_kept_and_a_change_is_found(periods, each):
    assert 0.03 <= benchmark.level(1000, periods, each) <= 0.07
    found, right = benchmark.power(200, periods, each)
    assert found >= 0.9 and right >= 0.9


@pytest.mark.skipif(not ALL, reason="thousands of tables")
@pytest.mark.parametrize(
    ("periods", "each", "uneven"), [(2, 50, False), (6, 200, True), (24, 50, True), (48, 50, False)]
)
def test_the_level_is_kept_with_any_number_of_periods_and_few_rows(periods, each, uneven):
    assert 0.03 <= benchmark.level_of_counts(1000, periods, each, uneven) <= 0.07


@pytest.mark.skipif(not ALL, reason="a thousand windows, a hundred kills")
def test_windows_are_exact_and_survive():
    assert benchmark.exact(1000) == 0
    assert benchmark.kill(20)[0] == 0
