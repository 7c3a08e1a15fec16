"""Explanations add up, their intervals follow the counts, and hostile names are only text."""

from __future__ import annotations

import io
import itertools
import re
from decimal import Decimal

import numpy as np
import pytest
from cases import CASES, schema, table
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from strategies import Rows, examples, tables
from strategies import schema as strategy_schema

import tallybayes as tb
from tallybayes.base.show import digits_for, running, softmax
from tallybayes.families import BernoulliWords, Bins, Complement, Multinomial

WORDS = ["cash", "lunch", "now", "win", "report", "free", "noon", "ball"]


def sums_hold(model: tb.Model, data: object, row: int, prior: object = None) -> None:
    """The lines add up to the log joint, and their differences to the log-odds, to 1e-12."""
    explained = model.explain(data, row, prior=prior)
    joint = model.log_joint(data, prior=prior)[row]
    np.testing.assert_allclose(explained.total, joint, rtol=1e-12, atol=1e-12)
    if np.isfinite(joint).all():
        for a in range(len(model.classes)):
            for b in range(len(model.classes)):
                odds = explained.odds(model.classes[a], model.classes[b])
                size = max(1.0, float(np.abs([c.parts for c in explained.contributions]).sum()))
                assert odds.total == pytest.approx(joint[a] - joint[b], abs=1e-12 * size)
                assert len(odds.lines) == len(explained.contributions) == len(explained.supports)


@pytest.mark.parametrize("weight", [1.0, 0.37, 0.0])
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_lines_add_up_for_every_family(case, weight: float) -> None:
    data = table(case, seed=3)
    settings = tb.Settings(**{**vars(case.settings()), "weights": {"x": weight}})
    model = tb.count(data, schema(case, data)).model(settings)
    for row in (0, 70, 150):
        sums_hold(model, {"x": data["x"]}, row)


def messages(n: int = 80) -> dict:
    rng = np.random.default_rng(7)
    y = np.array(["ham", "spam", "list"])[np.arange(n) % 3]
    lean = {"ham": [1, 3, 1, 1, 3, 1, 3, 1], "spam": [4, 1, 3, 4, 1, 4, 1, 1], "list": [1, 1, 2, 1, 1, 1, 1, 5]}
    texts = [" ".join(rng.choice(WORDS, 9, p=np.array(lean[v]) / sum(lean[v]))) for v in y]
    return {"text": texts, "y": y}


WORD_FAMILIES = [
    "multinomial", "bernoulli", "complement", "levels", Multinomial(presence=True), Multinomial(idf=True),
    Multinomial(predictive=True), Complement(norm=True), BernoulliWords(),
]  # fmt: skip


@pytest.mark.parametrize("weight", [1.0, 0.25])
@pytest.mark.parametrize("family", WORD_FAMILIES, ids=str)
def test_lines_add_up_for_text(family: object, weight: float) -> None:
    data = messages()
    column = tb.Column("text", "text", levels=4 if family == "levels" else None)
    tally = tb.count(data, tb.Schema([column], target="y"))
    model = tally.model(tb.Settings(families={"text": family}, weights={"text": weight}))
    asked = {"text": ["cash cash now zebra", "", "ball noon lunch win free", None]}
    for row in range(4):
        sums_hold(model, asked, row)
        sums_hold(model, asked, row, prior="uniform")


@pytest.mark.parametrize("family", WORD_FAMILIES, ids=str)
def test_lines_add_up_where_evidence_depends_on_the_length(family: object) -> None:
    data = messages()
    column = tb.Column("text", "text", levels=4 if family == "levels" else None)
    tally = tb.count(data, tb.Schema([column], target="y"))
    model = tally.model(tb.Settings(families={"text": family}, weights={"text": 2.0}, lengths={"text": -0.7}))
    for row in (0, 1):
        sums_hold(model, {"text": ["cash cash now zebra", "ball"]}, row)
    assert "(weight 2)" in str(model.explain({"text": "ball"}))
    assert "(weight 0.758)" in str(model.explain({"text": "ball ball ball noon"}))  # 2 · 4^-0.7


def paired() -> tuple[tb.Model, dict]:
    rng = np.random.default_rng(8)
    a, b = rng.integers(0, 2, 400), rng.integers(0, 3, 400)
    data = {"a": a.astype(str), "b": b.astype(str), "x": rng.normal(a, 1.0), "y": (a ^ (b > 1)).astype(int)}
    pair = tb.Column("a with b", "pair", of=(tb.Side("a"), tb.Side("b")))
    base = tb.infer(data, "y")
    return tb.count(data, base.with_column(pair.name, kind="pair", of=pair.of)).model(
        tb.Settings(families={"x": "blend"}, weights={"a with b": 0.9})
    ), data


def test_pairs_and_blends_add_up_and_have_intervals() -> None:
    model, data = paired()
    rows = {k: v for k, v in data.items() if k != "y"}
    for row in (0, 7):
        sums_hold(model, rows, row)
    odds = model.explain(rows, 3).odds()
    assert all(line.known for line in odds.lines)
    assert all(line.interval[0] <= line.log_odds <= line.interval[1] for line in odds.lines)
    assert any(" and " in line.value for line in odds.lines)


@examples(40)
@given(tables(min_size=2), st.sampled_from([1.0, 0.3]))
def test_lines_add_up_on_nasty_tables(rows: Rows, weight: float) -> None:
    kinds = ("category", "number", "vector", "words", "dicts", "sparse")
    under = strategy_schema(kinds)
    tally = rows.tally(under)
    if not tally.rows:
        return
    model = tally.model(tb.Settings(weights={"words": weight}))
    asked = [{k: rows.columns[k][0] for k in kinds}]
    explained, joint = model.explain(asked, 0), model.log_joint(asked)[0]
    size = np.abs([c.parts for c in explained.contributions]).sum(axis=0)
    assert np.all(np.abs(explained.total - joint) <= 1e-12 * np.maximum(size, 1.0))
    assert str(explained) and str(explained.odds())
    for line in explained.odds().lines:  # intervals and counts of anything can be worked out
        assert not line.known or line.interval[0] <= line.log_odds <= line.interval[1]


def test_a_vector_whose_varying_positions_are_missing_has_a_line_that_says_nothing() -> None:
    data = {"v": [[0.0, 1.0], [0.0, 2.0], [0.0, 5.0], [0.0, 6.0]], "y": ["a", "a", "b", "b"]}
    model = tb.count(data, tb.Schema([tb.Column("v", "vector", width=2)], target="y")).model()
    explained = model.explain([{"v": [0.0, None]}], 0)
    assert explained.total.tolist() == model.log_joint([{"v": [0.0, None]}])[0].tolist()
    (line,) = [line for line in explained.odds().lines if line.column == "v"]
    assert line.log_odds == 0.0


# ---- what is printed is true


def printed(text: str) -> list[list[Decimal]]:
    """The numbers of each line of a running-total table."""
    lines = [x for x in text.splitlines()[2:] if not x.startswith(("probability", "rounded"))]
    return [[Decimal(v) for v in re.findall(r"[+-]?\d+\.\d+", line)] for line in lines]


@pytest.mark.parametrize("log", ["natural", "2", "10", "decibans"])
def test_the_printed_figures_are_the_nearest_and_give_the_probabilities_back(log: str) -> None:
    data = messages()
    model = tb.count(data, tb.Schema([tb.Column("text", "text")], target="y")).model()
    unit = {"natural": 1.0, "2": np.log(2), "10": np.log(10), "decibans": np.log(10) / 10}[log]
    for row in range(len(data["y"])):
        explained = model.explain({"text": data["text"]}, row, log=log)
        lines = printed(str(explained))
        digits = -lines[0][0].as_tuple().exponent
        printed_sum, remark = [Decimal(0)] * 3, False
        for line, (c, total) in zip(lines, explained.running(), strict=True):
            assert [f"{v:+.{digits}f}" for v in line[:3]] == [f"{v + 0.0:+.{digits}f}" for v in c.parts]
            assert [f"{v:.{digits}f}" for v in line[3:]] == [f"{v:.{digits}f}" for v in total]
            printed_sum = [t + v for t, v in zip(printed_sum, line[:3], strict=True)]
            remark = remark or line[3:] != printed_sum
        assert ("rounded" in str(explained).splitlines()[-1]) == remark
        total = lines[-1][3:]
        chances = next(x for x in str(explained).splitlines() if x.startswith("probability")).split()[1:]
        again = softmax(np.array(total, dtype=float) * unit)
        assert [f"{p:.4f}" for p in again] == chances == [f"{p:.4f}" for p in explained.probabilities]
        odds = explained.odds()
        told = [x for x in str(odds).splitlines()[2:] if not x.startswith("rounded")]
        column = [Decimal(v.split()[-1]) for v in (re.split(r"\s{2,}[+-]\S+ to", x)[0] for x in told)]
        places = -column[0].as_tuple().exponent
        wanted = [*(x.log_odds for x in odds.lines), odds.total]
        assert [f"{v:.{places}f}" for v in column] == [f"{v + 0.0:.{places}f}" for v in wanted]


@examples(200)
@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60), st.integers(0, 6))
def test_every_figure_is_rounded_for_itself(parts: list[float], digits: int) -> None:
    exact = np.array(parts)[:, None]
    terms, totals, remark = running(exact, digits)
    unit = 10.0**-digits
    assert np.all(np.abs(totals - np.cumsum(exact, axis=0)) <= 0.5 * unit + 1e-6)
    assert np.all(np.abs(terms - exact) <= 0.5 * unit + 1e-6)
    so_far, same = Decimal(0), True
    for term, total in zip(terms[:, 0], totals[:, 0], strict=True):
        so_far += Decimal(f"{term:.{digits}f}")
        same = same and so_far == Decimal(f"{total:.{digits}f}")
    assert same == (not remark)


def test_one_number_is_printed_in_one_way() -> None:
    """ln 1/3 was -1.0986 and -1.0987 in one table, so that printed columns added up to the last digit."""
    sixth = {"a": list("tuvwxz"), "b": list("tuvwxz"), "y": ["p"] * 6}
    model = tb.count(sixth, tb.Schema([tb.Column(n, "category") for n in "ab"], target="y")).model()
    text = str(model.explain({"a": "u", "b": "u"}))
    assert re.findall(r"-\d\.\d+", text) == ["-1.7918", "-1.7918", "-1.7918", "-3.5835"]
    assert text.splitlines()[-1] == "rounded, so that the last digits of a sum may differ"


def test_lines_that_say_nothing_stand_together() -> None:
    rng = np.random.default_rng(4)
    y = np.arange(400) % 2
    data = {f"n{j}": rng.normal(size=400) for j in range(6)} | {"x": rng.normal(y, 1.0), "gap": ["u"] * 400, "y": y}
    weights = {f"n{j}": 0.0 for j in range(3)} | {f"n{j}": 1e-5 for j in range(3, 6)}
    columns = [tb.Column(n, "number", cells=tb.Cells.fitted(v)) for n, v in data.items() if n[0] in "nx"]
    model = tb.count(data, tb.Schema([*columns, tb.Column("gap", "category")], target="y")).model(
        tb.Settings(weights=weights)
    )
    row = {n: 0.3 for n in data if n != "y"} | {"gap": "never"}
    explained = model.explain(row)
    text = str(explained)
    assert "(6 more, each below 0.005)" in text and "n1" not in text and "gap: never  (never seen: no evidence)" in text
    _, lines = explained.shown()
    np.testing.assert_allclose(np.sum([c.parts for c in lines], axis=0), explained.total, rtol=1e-12)
    assert "(6 more, each below 0.005)" in str(explained.odds())
    assert "n1: 0.3  (not used)" in [str(c) for c in explained.contributions]
    assert dict(model._described())["n1"] == "not used"
    alone = tb.count(data, tb.Schema(columns[:1], target="y")).model(tb.Settings(weights={"n0": 0.0}))
    assert "n0: 0.3  (not used)" in str(alone.explain(row))


def test_digits_grow_until_the_probability_follows() -> None:
    used = set()
    for p in np.linspace(0.3, 0.7, 500):
        totals = np.log([p, 1 - p])
        used.add(digits := digits_for(totals, 1.0, np.array([p, 1 - p])))
        assert np.round(softmax(np.round(totals, digits)), 4).tolist() == np.round([p, 1 - p], 4).tolist()
    assert {4, 5} <= used


def test_weights_missing_and_unseen_are_said() -> None:
    data = {"a": ["u", "v"] * 20, "b": ["x", "y"] * 20, "y": ["p", "q"] * 20}
    model = tb.fit(data, "y", settings=tb.Settings(weights={"a": 0.5}))
    text = str(model.explain({"a": "u", "b": "zzz"}))
    assert "a: u  (weight 0.5)" in text and "b: zzz  (never seen: no evidence)" in text
    explained = model.explain({"a": None, "b": "x"})
    assert "a  (missing: no evidence)" in str(explained)
    assert explained.counts[1] is None
    assert explained.counts[2] == {"p": (20.0, 20.0), "q": (0.0, 20.0)}
    assert np.isnan(explained.interval()[1]).all()


def test_a_vector_is_explained_position_by_position() -> None:
    x = np.random.default_rng(9).normal(size=(60, 3)) + np.arange(60)[:, None] % 2 * [0.0, 2.0, -1.0]
    model = tb.count(
        {"v": x, "y": np.arange(60) % 2}, tb.Schema([tb.Column("v", "vector", width=3)], target="y")
    ).model()
    explained = model.explain({"v": x}, 4)
    assert [c.label.split()[0] for c in explained.contributions[1:]] == ["[0]", "[1]", "[2]"]
    np.testing.assert_allclose(explained.total, model.log_joint({"v": x})[4], rtol=1e-12)
    assert explained.odds().lines[2].known


# ---- intervals


def test_interval_of_a_share_is_that_of_the_beta_posterior() -> None:
    """Against draws of the two Beta posteriors, from outside."""
    data = {"c": ["u"] * 12 + ["v"] * 28 + ["u"] * 3 + ["v"] * 57, "y": ["a"] * 40 + ["b"] * 60}
    model = tb.count(data, tb.Schema([tb.Column("c", "category")], target="y")).model()
    rng = np.random.default_rng(1)
    odds = np.log(rng.beta(13, 29, 400_000)) - np.log(rng.beta(4, 58, 400_000))
    explained = model.explain({"c": "u"})
    for level in (0.5, 0.95):
        want = np.quantile(odds, [0.5 - level / 2, 0.5 + level / 2])
        np.testing.assert_allclose(explained.interval("a", "b", level=level)[1], want, atol=0.03)
    prior = np.log(rng.gamma(40, size=400_000)) - np.log(rng.gamma(60, size=400_000))
    np.testing.assert_allclose(explained.interval("a", "b")[0], np.quantile(prior, [0.025, 0.975]), atol=0.02)


def test_interval_of_a_bell_covers_the_truth() -> None:
    """Of many small samples, about nineteen in twenty intervals hold the true log-odds."""
    rng = np.random.default_rng(5)
    truth = stats.norm.logpdf(1.0, 0, 1) - stats.norm.logpdf(1.0, 1, 2)
    under = tb.Schema([tb.Column("x", "number")], target="y")
    settings = tb.Settings(families={"x": "gaussian"})
    held = 0
    for _ in range(200):
        x = np.concatenate([rng.normal(0, 1, 30), rng.normal(1, 2, 30)])
        model = tb.count({"x": x, "y": ["a"] * 30 + ["b"] * 30}, under).model(settings)
        low, high = model.explain({"x": 1.0}).interval("a", "b")[1]
        held += low <= truth <= high
    assert 182 <= held <= 199  # 190 expected, three standard errors of 3.1


def width(model: tb.Model, row: dict, line: int) -> float:
    low, high = model.explain(row).interval("a", "b")[line]
    return high - low


@pytest.mark.parametrize("family", ["gaussian", "student", "kernel", Bins("width", 4), "poisson", "levels"], ids=str)
def test_intervals_shrink_with_more_rows(family: object) -> None:
    """Sixteen times the rows, a quarter of the width, or somewhat more: a kernel's bandwidth shrinks, too."""
    rng = np.random.default_rng(6)
    x = np.concatenate([rng.poisson(3, 100), rng.poisson(5, 100)]).astype(float)
    data = {"x": x, "y": ["a"] * 100 + ["b"] * 100}
    under = tb.Schema([tb.Column("x", "number", cells=tb.Cells.fitted(x))], target="y")
    tally = tb.count(data, under)
    settings = tb.Settings(families={"x": family})
    one, many = (width(t.model(settings), {"x": 4.0}, 1) for t in (tally, 16 * tally))
    assert 0 < many < one / 2.5
    assert width(tally.model(settings), {"x": 4.0}, 0) > 0
    assert width(tally.model(tb.Settings(families={"x": family}, prior="uniform")), {"x": 4.0}, 0) == 0


@pytest.mark.parametrize("family", WORD_FAMILIES, ids=str)
def test_every_word_family_has_intervals_that_hold_the_estimate(family: object) -> None:
    data = messages()
    column = tb.Column("text", "text", levels=4 if family == "levels" else None)
    tally = tb.count(data, tb.Schema([column], target="y"))
    widths = []
    for t in (tally, 16 * tally):
        odds = t.model(tb.Settings(families={"text": family})).explain({"text": "cash noon noon"}).odds("spam", "ham")
        assert all(line.known and line.interval[0] <= line.log_odds <= line.interval[1] for line in odds.lines)
        widths.append([high - low for low, high in (line.interval for line in odds.lines)])
    before, after = np.array(widths)
    assert np.all(after[:3] < before[:3] / 2.5)  # the prior and the two words, which all classes have
    assert np.all(after <= before)  # words that do not occur: a count of zero stays zero, however many rows there are


def test_a_weight_shrinks_the_interval() -> None:
    data = {"c": ["u", "v", "u"] * 10, "y": ["a", "b", "b"] * 10}
    tally = tb.count(data, tb.Schema([tb.Column("c", "category")], target="y"))
    whole, half = (width(tally.model(tb.Settings(weights={"c": w})), {"c": "u"}, 1) for w in (1.0, 0.5))
    assert half == pytest.approx(whole / 2, rel=1e-9)


def test_counts_of_zero_without_smoothing() -> None:
    data = {"c": ["u", "v", "u"] * 10, "y": ["a", "b", "a"] * 10}
    tally = tb.count(data, tb.Schema([tb.Column("c", "category")], target="y"))
    odds = tally.model(tb.Settings(smoothing=tb.MaximumLikelihood())).explain({"c": "u"}).odds("a", "b")
    assert odds.lines[1].log_odds == np.inf
    assert 0 < odds.lines[1].interval[0] < np.inf and odds.lines[1].interval[1] == np.inf
    assert "∞" in str(odds) and "×∞" in str(odds)


def test_a_written_model_has_no_intervals() -> None:
    model = tb.Model.written({"a": 0.5, "b": 0.5}, {"c": {"a": {"u": 0.9}, "b": {"u": 0.1}}})
    odds = model.explain({"c": "u"}).odds()
    assert not any(line.known for line in odds.lines)
    assert odds.to_dict()["interval"] is None
    strong = tb.Model.written({"a": 0.5, "b": 0.5}, {"c": {"a": {"u": 0.9}, "b": {"u": 0.1}}}, strength=50)
    assert strong.explain({"c": "u"}).counts[0] == {"a": (0.0, 0.0), "b": (0.0, 0.0)}


def test_odds_refuses_what_is_no_share() -> None:
    model = tb.fit({"c": ["u", "v"] * 9, "y": ["a", "b"] * 9}, "y")
    with pytest.raises(tb.SettingsError, match="level=95"):
        model.explain({"c": "u"}).odds(level=95)


# ---- hostile names, values and words

HOSTILE = [
    "<script>alert(1)</script>", "a&b", "\x1b[31mred\x1b[0m", "[red]markup[/red]", "\u202eevil\u202c",
    "שלום", "x" * 1_000_000, "'; DROP TABLE x; --", "new\nline\tand\rreturn", "",
]  # fmt: skip


def hostile_model() -> tuple[tb.Model, dict]:
    n = 40
    data = {name or "empty": [f"{HOSTILE[i % 5]} {i % 2}" for i in range(n)] for name in HOSTILE}
    data["words"] = [[HOSTILE[(i + j) % len(HOSTILE)] for j in range(4)] for i in range(n)]
    data["y"] = [HOSTILE[i % 3] for i in range(n)]
    columns = [tb.Column(name, "category") for name in data if name not in ("words", "y")]
    return tb.count(data, tb.Schema([*columns, tb.Column("words", "bag")], target="y")).model(), data


def test_hostile_names_harm_neither_terminal_nor_notebook() -> None:
    from rich.console import Console

    model, data = hostile_model()
    explained = model.explain({k: v for k, v in data.items() if k != "y"}, 0)
    for thing in (explained, explained.odds()):
        out = io.StringIO()
        Console(file=out, width=200, color_system=None).print(thing)
        for text in (str(thing), out.getvalue()):
            assert "\x1b" not in text and "\u202e" not in text and "\r" not in text
            assert max(map(len, text.splitlines())) < 1000
        assert "[red]markup" in out.getvalue()
        page = thing._repr_html_()
        assert "<script" not in page and "\x1b" not in page and len(page) < 100_000
        assert page.count("<bdi>") == page.count("</bdi>") > 10


def test_a_narrow_terminal_shows_fewer_classes_and_no_stumps() -> None:
    from rich.console import Console

    rng = np.random.default_rng(0)
    y = rng.integers(0, 10, 400)
    data = {"reading of the meter": rng.normal(y, 1).tolist(), "y": [f"class {v}" for v in y]}
    why = tb.fit(data, target="y", calibrate=False).explain({"reading of the meter": 4.2})
    for width in (80, 120, 200):
        console = Console(width=width, force_terminal=False)
        with console.capture() as drawn:
            console.print(why)
        page = drawn.get()
        assert "…" not in page
        assert "reading of the meter" in " ".join(page.split())
        assert 2 <= page.count("Σ") <= 6
    assert page.count("Σ") == 6


@pytest.mark.parametrize("family", ["multinomial", "complement", tb.families.Multinomial(predictive=True)])
def test_the_words_of_a_dict_count_as_often_as_it_says(family):
    """Also where the amounts add up to as many as there are words."""
    bags = [{"a": 0.5, "b": 1, "c": 0.5, "d": 2}, {"a": 2, "b": 1}, {"c": 1, "d": 1}, {"a": 3}]
    data = {"w": bags, "y": ["p", "q", "q", "p"]}
    model = tb.count(data, tb.Schema([tb.Column("w", "bag")], target="y")).model(tb.Settings(families={"w": family}))
    for i, bag in enumerate(bags):
        told = model.explain(data, i)
        assert np.allclose(told.total, model.log_joint({"w": [bag]})[0], rtol=0, atol=1e-12)
        changed = model.what_if(data, number=i)
        if changed:
            assert model.predict([changed.row]).tolist() == [changed.becomes]


def test_top_is_the_same_sum_shorter() -> None:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    rows = {f"c{j}": np.array(list("abc"))[(y * (j < 3) + rng.integers(0, 2 + j, 300)) % 3] for j in range(6)}
    model = tb.count(rows | {"y": y}, tb.infer(rows | {"y": y}, "y")).model()
    whole = model.explain({name: values[0] for name, values in rows.items()})
    short = whole.top(2)
    odds = [abs(v) for _, _, v in whole.for_class(None)[1:]]
    assert len(short.contributions) == 4 and short.contributions[-1].label == "the rest: 4 terms"
    np.testing.assert_allclose(short.total, whole.total, rtol=1e-12)
    assert [abs(v) for _, _, v in short.for_class(None)[1:3]] == sorted(odds, reverse=True)[:2]
    assert short.odds().total == pytest.approx(whole.odds().total)
    assert short.odds().interval == pytest.approx(whole.odds().interval)
    assert whole.top(5).contributions[1:] == tuple(
        sorted(whole.contributions[1:], key=lambda c: -abs(whole.for_class(None)[whole.contributions.index(c)][2]))
    )
    assert short.top(3).contributions[:3] == whole.top(3).contributions[:3]
    with pytest.raises(tb.SettingsError, match="top"):
        whole.top(0)


def test_pairs_that_say_nothing_have_no_line_each() -> None:
    rows = {n: list("ab" * 20) for n in "pqr"} | {"y": list("uuvv" * 10)}
    side = [tb.Side(n) for n in "pqr"]
    pairs = [tb.Column(f"{a.source} × {b.source}", "pair", of=(a, b)) for a, b in itertools.pairwise(side)]
    schema = tb.Schema([*(tb.Column(n, "category") for n in "pqr"), *pairs], target="y")
    shown = str(tb.count(rows, schema).model().explain({"p": "a", "q": None, "r": "b"}))
    assert "×" not in shown and "q  (missing: no evidence)" in shown
