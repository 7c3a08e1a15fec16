"""Columns of kind `pair`: two columns counted together, and what they say beyond each by itself."""

from __future__ import annotations

import datetime
import math
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
import pytest

import tallybayes as tb
from tallybayes.data.encode import blocks
from tallybayes.data.infer import first_look
from tallybayes.data.pairs import coarse_cuts, pair_values, stretch_names
from tallybayes.data.sources import open_source
from tallybayes.families.pair import InteractionBelief, log_ratios
from tallybayes.selection.choose.columns import Category, DealtRows
from tallybayes.selection.choose.pairs import ColumnPair, best_pairs, halves, information, possible
from tallybayes.selection.choose.penalised import tempered
from tallybayes.selection.choose.problem import Problem

N = 60
RNG = np.random.default_rng(5)
ROWS: dict[str, list[Any]] = {
    "colour": [None if i % 11 == 0 else ["red", "green", "blue"][v] for i, v in enumerate(RNG.integers(0, 3, N))],
    "size": [None if i % 7 == 0 else float(v) for i, v in enumerate(np.round(RNG.normal(0, 2, N), 2))],
    "day": [datetime.date(2024, 1 + int(m), 3) for m in RNG.integers(0, 12, N)],
    "y": [str(v) for v in RNG.integers(0, 3, N)],
}
PAIR = tb.Column("colour × size", "pair", of=(tb.Side("colour"), tb.Side("size", "number", cuts=(-1.0, 0.5))))
DATED = tb.Column("day × size", "pair", of=(tb.Side("day", part="month"), tb.Side("size", "number", cuts=(0.0,))))
SCHEMA = tb.Schema([tb.Column("colour", "category"), tb.Column("size", "number"), PAIR, DATED], target="y")


def some(at: Any) -> dict[str, list[Any]]:
    return {name: [values[i] for i in at] for name, values in ROWS.items()}


def xor(n: int = 400, seed: int = 0) -> dict[str, list[Any]]:
    """The class is whether two coins differ; a third column says nothing."""
    rng = np.random.default_rng(seed)
    a, b = rng.integers(0, 2, (2, n))
    right = rng.random(n) < 0.95
    y = np.where((a ^ b) == right, "odd", "even")
    return {"a": ["ht"[v] for v in a], "b": ["HT"[v] for v in b], "c": [str(v) for v in rng.integers(0, 3, n)],
            "y": y.tolist()}  # fmt: skip


# ---- counting


def test_a_pair_counts_both_values_and_misses_where_either_is_missing() -> None:
    tally = tb.count(ROWS, SCHEMA)
    expected: dict[tuple[str, str, str], int] = {}
    for colour, size, y in zip(ROWS["colour"], ROWS["size"], ROWS["y"], strict=True):
        if colour is not None and size is not None:
            where = stretch_names((-1.0, 0.5))[int(size >= -1.0) + int(size >= 0.5)]
            expected[colour, where, y] = expected.get((colour, where, y), 0) + 1
    model = tally.model()
    belief = model.beliefs[PAIR.name]
    assert isinstance(belief, InteractionBelief)
    assert {(u, v) for u, v, _ in expected} <= set(product(belief.us, belief.vs))
    n = np.array([[[expected.get((u, v, y), 0) for y in model.classes] for v in belief.vs] for u in belief.us], float)
    np.testing.assert_allclose(belief.log, log_ratios(n, 5.0), rtol=1e-12)


def test_the_laws_hold_for_pairs() -> None:
    whole = tb.count(ROWS, SCHEMA)
    for cut in (1, 17, 30, 59):
        one, other = tb.count(some(range(cut)), SCHEMA), tb.count(some(range(cut, N)), SCHEMA)
        assert one + other == other + one == whole
        assert (one + other).digest == whole.digest
        assert whole - other == one
        assert (whole - one).digest == other.digest
    order = np.random.default_rng(0).permutation(N)
    assert tb.count(some(order), SCHEMA).digest == whole.digest
    assert whole - whole == tb.Tally.zero(SCHEMA)
    assert whole.forget(some(range(10))) == tb.count(some(range(10, N)), SCHEMA)


def test_every_source_gives_the_same_pairs(tmp_path: Any) -> None:
    whole = tb.count(ROWS, SCHEMA)
    table = pa.table(ROWS)
    pa.csv.write_csv(table, tmp_path / "rows.csv")
    pa.parquet.write_table(table, tmp_path / "rows.parquet")
    rows = [dict(zip(ROWS, values, strict=True)) for values in zip(*ROWS.values(), strict=True)]
    for source in (table, table.to_pandas(), rows, tmp_path / "rows.csv", tmp_path / "rows.parquet"):
        assert tb.count(source, SCHEMA).digest == whole.digest


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_a_file_is_read_for_a_pair_whose_columns_are_not_counted_by_themselves(tmp_path: Any, kind: str) -> None:
    only = tb.Schema([PAIR, DATED], target="y")
    path = tmp_path / f"rows.{kind}"
    (pa.csv.write_csv if kind == "csv" else pa.parquet.write_table)(pa.table(ROWS), path)
    assert tb.count(path, only).digest == tb.count(ROWS, only).digest
    model = tb.count(path, only).model()
    np.testing.assert_array_equal(model.predict_proba(path), model.predict_proba(ROWS))
    assert np.ptp(model.predict_proba(path)[:, 0]) > 0


def test_pairs_go_through_json_and_the_model_file(tmp_path: Any) -> None:
    SCHEMA.save(tmp_path / "schema.json")
    assert tb.Schema.load(tmp_path / "schema.json") == SCHEMA
    model = tb.count(ROWS, SCHEMA).model(tb.Settings(weights={PAIR.name: 0.5}))
    model.save(tmp_path / "m.tb.parquet")
    back = tb.load(tmp_path / "m.tb.parquet")
    assert back.tally == model.tally
    assert back.schema == SCHEMA
    np.testing.assert_array_equal(back.predict_proba(ROWS), model.predict_proba(ROWS))


@pytest.mark.parametrize(
    "given",
    [
        {"kind": "text"},
        {"kind": "number", "cuts": (1.0, 1.0)},
        {"kind": "number", "cuts": (2.0, 1.0)},
        {"kind": "number", "cuts": (math.nan,)},
        {"kind": "number", "cuts": (math.inf,)},
        {"kind": "category", "cuts": (1.0,)},
    ],
)
def test_a_side_that_makes_no_sense_is_refused(given: dict[str, Any]) -> None:
    with pytest.raises(tb.SchemaError, match="of a pair"):
        tb.Side("x", **given)


# ---- estimating


def by_formula(n: np.ndarray, m: float) -> np.ndarray:
    """The docstring of families/pair.py, cell by cell."""
    u_n, v_n, c_n = n.shape
    out = np.zeros_like(n)
    rows = [sum(n[u, v, y] for u in range(u_n) for v in range(v_n)) for y in range(c_n)]

    def p_u(u: int, y: int) -> float:
        return (sum(n[u, v, y] for v in range(v_n)) + 1 / u_n) / (rows[y] + 1)

    def p_v(v: int, y: int) -> float:
        return (sum(n[u, v, y] for u in range(u_n)) + 1 / v_n) / (rows[y] + 1)

    def shared(u: int, v: int) -> float:
        apart = sum((rows[y] + 1) / (sum(rows) + c_n) * p_u(u, y) * p_v(v, y) for y in range(c_n))
        return (n[u, v].sum() + m * c_n * apart) / (n.sum() + m * c_n) / apart

    for y in range(c_n):
        q = {(u, v): shared(u, v) * p_u(u, y) * p_v(v, y) for u in range(u_n) for v in range(v_n)}
        for (u, v), value in q.items():
            joint = (n[u, v, y] + m * value / sum(q.values())) / (rows[y] + m)
            out[u, v, y] = math.log(joint / (p_u(u, y) * p_v(v, y)))
    return out


@pytest.mark.parametrize("shape", [(1, 1, 2), (2, 3, 2), (4, 2, 3)])
def test_log_ratios_are_the_formula(shape: tuple[int, int, int]) -> None:
    n = np.random.default_rng(1).poisson(2.0, shape).astype(float)
    n[0, 0] = 0
    for m in (0.5, 5.0, 100.0):
        np.testing.assert_allclose(log_ratios(n, m), by_formula(n, m), rtol=1e-10, atol=1e-12)


def test_the_joint_table_sums_to_one() -> None:
    n = np.random.default_rng(2).poisson(3.0, (4, 5, 3)).astype(float)
    rows = n.sum(axis=(0, 1))
    p_u, p_v = (n.sum(axis=1) + 1 / 4) / (rows + 1), (n.sum(axis=0) + 1 / 5) / (rows + 1)
    joint = np.exp(log_ratios(n, 5.0)) * p_u[:, None] * p_v[None, :]
    np.testing.assert_allclose(joint.sum(axis=(0, 1)), 1, rtol=1e-12)


def test_strong_imagination_and_empty_tables_are_no_evidence() -> None:
    n = np.random.default_rng(3).poisson(3.0, (3, 3, 2)).astype(float)
    assert np.abs(log_ratios(n, 1e12)).max() < 1e-9
    assert np.abs(log_ratios(n, 5.0)).max() > 0.05
    np.testing.assert_allclose(log_ratios(np.zeros((2, 2, 3)), 5.0), 0, atol=1e-12)
    assert log_ratios(np.zeros((0, 0, 2)), 5.0).shape == (0, 0, 2)
    for bad in (0, -1, math.inf, math.nan):
        with pytest.raises(tb.SettingsError, match="strength"):
            tb.families.Interaction(bad)


def test_a_dependence_that_all_classes_share_says_little_about_the_class() -> None:
    rng = np.random.default_rng(4)
    u, y = rng.integers(0, 2, (2, 2000))
    n = np.zeros((2, 2, 2))
    np.add.at(n, (u, u, y), 1)  # v is a copy of u in both classes
    ratios = log_ratios(n, 5.0)
    assert np.abs(ratios[:, :, 0]).max() > 0.5
    assert np.abs(np.diff(ratios[[0, 1], [0, 1]], axis=1)).max() < 0.1


def test_values_never_seen_or_missing_are_no_evidence() -> None:
    model = tb.count(ROWS, SCHEMA).model()
    rows = {"colour": ["mauve", None, "red", "red"], "size": [0.0, 0.0, None, 0.0], "day": [None] * 4}
    parts = model.parts(rows)[PAIR.name]
    assert (parts[:3] == 0).all()
    assert (parts[3] != 0).any()
    with pytest.warns(tb.TallybayesWarning, match="missing"):
        assert (model.parts({"size": [0.0]})[PAIR.name] == 0).all()
    why = model.explain(rows, 0)
    note = next(c.note for c in why.contributions if c.column == PAIR.name)
    assert note == "never seen"


def test_a_table_that_no_memory_holds_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallybayes.families.pair.MOST_CELLS", 5)
    with pytest.raises(tb.CannotEstimate, match="by 3 values"):
        tb.count(ROWS, SCHEMA).model()


def test_information_by_brute_force() -> None:
    n = np.random.default_rng(6).poisson(4.0, (3, 2)).astype(float)
    both = n / n.sum()
    alone = sum(
        both[u, y] * math.log(both[u, y] / (both[u].sum() * both[:, y].sum())) for u in range(3) for y in range(2)
    )
    assert information(n) == pytest.approx(alone, rel=1e-12)


def problem(data: dict[str, list[Any]], labels: np.ndarray, folds: np.ndarray) -> tuple[Problem, list[ColumnPair]]:
    """The columns of a table of categories, whose rows stand fold by fold, and the pairs they could make."""
    schema = tb.infer(data, target="y")
    read = blocks(schema, first_look(open_source(data)))
    rows = DealtRows(labels, folds, np.ones(len(labels)), 2, 5)
    named = [(c, Category.of(c, read[c.name], rows, None)) for c in schema.counted]  # type: ignore[arg-type]
    pairs = possible(halves(named), schema.counted)
    return Problem(rows, [c for _, c in named], [], pairs), pairs


def test_pairs_are_proposed_by_what_the_columns_leave_over_and_not_by_the_rows_that_judge() -> None:
    data = xor(500)
    labels, folds = (np.array(data["y"]) == "odd").astype(np.int64), np.arange(500) // 100
    one, pairs = problem(data, labels, folds)
    joint = one.joint(3, one.terms())
    assert best_pairs(pairs, joint, tempered(joint))[0].name == "a × b"
    scrambled, _ = problem(data, np.where(folds == 3, 1 - labels, labels), folds)
    again = scrambled.joint(3, scrambled.terms())
    found = [p.name for p in best_pairs(pairs, joint, tempered(joint), 1)]
    assert found == [p.name for p in best_pairs(scrambled.pairs, again, tempered(again), 1)]


def test_the_gain_of_a_pair_is_that_of_a_newton_step_less_what_chance_gives() -> None:
    rng = np.random.default_rng(7)
    data = {f"c{i}": [str(v) for v in rng.integers(0, 3, 500)] for i in range(15)} | {"y": list("pq") * 250}
    one, pairs = problem(data, np.arange(500) % 2, np.arange(500) // 100)
    joint = one.joint(None, one.terms())
    assert len(pairs) == 105
    assert len(best_pairs(pairs, joint, tempered(joint), 105)) < 60  # about half of them look better than chance


@pytest.mark.parametrize(
    "values",
    [
        [1.0, 2.0, 3.0],
        np.random.default_rng(0).normal(0, 1, 500),
        [0.0] * 90 + [1.0, 2, 3, 4, 5, 6, 7],
        [-7.0, -6, -5, -4, -3, -2] + [0.0] * 90,
        [1e300, -1e300],
    ],
    ids=["few", "normal", "zeros", "zeros last", "huge"],
)
def test_numbers_are_cut_into_few_stretches(values: Any) -> None:
    cuts = coarse_cuts(np.asarray(values, float), 5)
    assert 1 <= len(cuts) <= 4
    assert list(cuts) == sorted(set(cuts))
    stretches = np.searchsorted(cuts, values, side="right")
    assert len(set(stretches.tolist())) == len(cuts) + 1  # none is empty
    assert len(stretch_names(cuts)) == len(cuts) + 1
    tb.Side("x", "number", cuts=cuts)


# ---- choosing


def test_xor_is_solved_and_explained() -> None:
    data = xor()
    alone = tb.fit(data, target="y", pairs=False)
    assert float(np.mean(alone.predict(data) == np.array(data["y"]))) < 0.65
    model = tb.fit(data, target="y")
    assert "a × b" in model.schema.names
    test = xor(seed=1)
    assert float(np.mean(model.predict(test) == np.array(test["y"]))) > 0.9
    why = model.explain(test, 0)
    line = next(c for c in why.contributions if c.column == "a × b")
    assert line.label == f"{test['a'][0]} and {test['b'][0]} together"
    np.testing.assert_allclose(why.total, model.log_joint(test)[0], atol=1e-12)
    assert set(model.generative.sample(5, 0).column_names) == {"a", "b", "c", "y"}
    assert model.settings.calibrated is not None
    assert model.settings.calibrated.form == "corrections and pairs"
    assert "corrections and pairs" in repr(model)


@pytest.mark.parametrize("pairs", [False, "auto", True, [("a", "b")], (("b", "a"), ("a", "b"))], ids=str)
def test_pairs_as_asked(pairs: Any) -> None:
    model = tb.fit(xor(), target="y", pairs=pairs)
    kinds = [c.name for c in model.schema.counted if c.kind == "pair"]
    expected = {False: [], "auto": ["a × b"]}.get(pairs if isinstance(pairs, (str, bool)) else "")
    if pairs is True:
        assert "a × b" in kinds
    else:
        assert kinds == (expected if expected is not None else [" × ".join(pairs[0])])


@pytest.mark.parametrize("how", [{"calibrate": False}, {"settings": tb.Settings(smoothing=tb.Laplace(2.0))}], ids=str)
def test_pairs_by_name_are_counted_without_calibration_too(how: dict[str, Any]) -> None:
    model = tb.fit(xor(), target="y", pairs=[("a", "b")], **how)
    assert "a × b" in model.schema.names
    assert model.settings.calibrated is None
    with pytest.raises(tb.SettingsError, match="pairs=True without calibrate"):
        tb.fit(xor(), target="y", pairs=True, **how)


@pytest.mark.parametrize(
    ("pairs", "found"),
    [
        ("yes", "pairs='yes'"),
        (None, "pairs=None"),
        (["ab"], "the pair 'ab'"),
        ([5], "the pair 5"),
        (("a", "b"), "the pair 'a'"),
        ([("a", "b", "c")], "the pair"),
        ([("a", "a")], "the pair"),
        ([("a", "bb")], "'bb', which is not counted"),
        ([("a", "words")], "'words' \\(text\\) cannot"),
        ([("a", "same")], "'same', which is not counted|'same' \\(category\\) cannot"),
    ],
)
def test_bad_pairs_are_refused(pairs: Any, found: str) -> None:
    data = xor(60)
    data["words"] = [f"one of many long texts number {i} with some words in it" for i in range(60)]
    data["same"] = ["s"] * 60
    columns = [tb.Column(n, "text" if n == "words" else "category") for n in ("a", "b", "c", "words", "same")]
    with pytest.raises(tb.SettingsError, match=found) as caught:
        tb.fit(data, schema=tb.Schema(columns, target="y"), pairs=pairs)
    assert "Hint" in str(caught.value)


def test_a_schema_that_has_its_pairs_already_is_fitted_again() -> None:
    schema = tb.fit(xor(), target="y").schema
    again = tb.fit(xor(seed=3), schema=schema)
    assert again.schema.names == schema.names
    assert tb.fit(xor(), schema=schema, pairs=[("a", "b")]).schema.names == schema.names


def test_noise_is_not_paired() -> None:
    rng = np.random.default_rng(8)
    data = {f"c{i}": [str(v) for v in rng.integers(0, 3, 120)] for i in range(25)} | {"y": list("pq") * 60}
    model = tb.fit(data, target="y")
    assert not any(c.kind == "pair" for c in model.schema.counted)
    forced = tb.fit(data, target="y", pairs=True)
    assert forced.settings.calibrated is not None
    losses = forced.settings.calibrated.losses
    assert losses["corrections and pairs"] > math.log(2) - 0.03  # nobody can do better, and the nested figure knows


def test_columns_of_two_values_kept_by_dates_and_numbers() -> None:
    rng = np.random.default_rng(9)
    month, x = rng.integers(1, 13, 500), rng.normal(0, 1, 500)
    y = np.where((month > 6) == (x > 0), "p", "q")
    data = {"day": [datetime.date(2024, int(m), 5) for m in month], "x": x.tolist(), "y": y.tolist()}
    model = tb.fit(data, target="y")
    pair = [c for c in model.schema.counted if c.kind == "pair"]
    assert any({s.source for s in c.of or ()} == {"day", "x"} for c in pair)
    assert float(np.mean(model.predict(data) == y)) > 0.85


def test_a_slot_gives_its_values_back() -> None:
    model = tb.count({"a": ['"', "x and y"], "b": ["[", "×"], "y": ["p", "q"]}, tb.Schema(
        [tb.Column("a × b", "pair", of=(tb.Side("a"), tb.Side("b")))], target="y")).model()  # fmt: skip
    belief = model.beliefs["a × b"]
    assert isinstance(belief, InteractionBelief)
    assert belief.us == ('"', "x and y")
    assert pair_values('["a", "b"]') == ("a", "b")


def test_sql_and_sealed_answers_are_the_models(tmp_path: Any) -> None:
    import duckdb

    data = xor(200)
    model = tb.fit(data, target="y", pairs=[("a", "b")])
    p = model.predict_proba(data)
    sealed = tmp_path / "m.sealed"
    model.export(sealed, "sealed")
    np.testing.assert_allclose(tb.load_sealed(sealed).predict_proba(data), p, atol=1e-12)
    con = duckdb.connect()
    table = pa.table(data)
    con.register("rows_", table)
    con.execute("create table t as select * from rows_")
    written = model.to_sql("t")
    for statement in written.setup:
        con.execute(statement)
    found = con.execute(written.query).fetchnumpy()
    for k, label in enumerate(model.classes):
        np.testing.assert_allclose(np.sort(found[f"P({label})"]), np.sort(p[:, k]), atol=1e-9)


# ---- categories of many values


def schools(n: int, seed: int) -> dict[str, Any]:
    """Of which school a pupil is says how much the mark counts."""
    rng = np.random.default_rng(seed)
    effect = np.random.default_rng(99).normal(0, 1, 120)
    school, mark = rng.integers(0, 120, n), rng.normal(0, 1, n)
    odds = effect[school] * (1 + mark)
    y = rng.random(n) < 1 / (1 + np.exp(-odds))
    return {"school": [f"s{i}" for i in school], "mark": mark, "y": np.where(y, "passed", "failed")}


def test_many_values_enter_pairs_by_groups(tmp_path: Path) -> None:
    data, fresh = schools(5000, 0), schools(4000, 1)
    model, alone = (tb.fit(data, target="y", pairs=pairs) for pairs in ("auto", False))
    (pair,) = [c for c in model.schema.counted if c.kind == "pair"]
    side = next(s for s in pair.of or () if s.source == "school")
    assert 8 <= len(side.groups) <= 32 and sum(map(len, side.groups)) == len(set(data["school"]))
    own, other = (tb.evaluate(m, fresh)["log_loss"] for m in (model, alone))
    assert own < other - 0.03
    judged = model.settings.calibrated
    assert judged is not None and abs(judged.losses[judged.form] - own) < 3 * judged.errors[judged.form]
    rows = {"school": [None, "never seen", *fresh["school"][2:50]], "mark": fresh["mark"][:50].tolist()}
    p = model.predict_proba(rows)
    for i in range(50):
        assert np.allclose(model.predict_proba([{k: v[i] for k, v in rows.items()}]), p[i], rtol=0, atol=1e-12)
    model.save(tmp_path / "m.tb.parquet")
    assert np.array_equal(tb.load(tmp_path / "m.tb.parquet").predict_proba(rows), p)
    assert tb.count(data, model.schema).digest == model.tally.digest
    assert model.recalibrate(data).schema == model.schema


def test_a_row_has_no_say_in_its_own_group() -> None:
    data = schools(900, 3)
    column = tb.Column("school", "category")
    read = blocks(tb.Schema([column], target="y"), first_look(open_source(data, target="y")))["school"]
    labels = (np.asarray(data["y"]) == "passed").astype(np.int64)
    folds = np.arange(900) * 10 // 900
    training = ~np.eye(10, dtype=bool)

    def codes(given: np.ndarray) -> np.ndarray:
        rows = DealtRows(given, folds, np.ones(900), 2, 10)
        (half,) = halves([(column, Category.of(column, read, rows, None))])  # type: ignore[arg-type]
        assert half.groups and half.ordered
        return half.under(training).codes

    assert schools_said(codes(labels), labels) > 0.1
    rng = np.random.default_rng(0)
    noise = [schools_said(codes(given), given) for given in (rng.permutation(labels) for _ in range(20))]
    assert abs(np.mean(noise)) < 0.03  # by groups of its own label it would be 0.3


def schools_said(codes: np.ndarray, labels: np.ndarray) -> float:
    """How far the classes of the upper half of the groups are from those of the lower: 0 where groups say nothing."""
    upper = codes >= np.median(codes)
    return float(labels[upper].mean() - labels[~upper].mean())


@pytest.mark.parametrize("groups", [[["a"], ["a", "b"]], [[]], [["a", "a"]]])
def test_what_are_no_groups_is_refused(groups: list[list[str]]) -> None:
    with pytest.raises(tb.SchemaError, match="groups"):
        tb.PairColumn("x", groups=groups)  # type: ignore[arg-type]


def test_a_rare_value_says_no_more_than_its_rows_can_carry() -> None:
    """Fourteen rows, all of one class, in a column that ten others repeat: they speak once, not eleven times."""
    rng = np.random.default_rng(5)
    n = 6000
    y = rng.random(n) < 0.3
    job = np.where(
        y, rng.choice(["a", "b", "c"], n, p=[0.6, 0.3, 0.1]), rng.choice(["a", "b", "c"], n, p=[0.3, 0.3, 0.4])
    )
    job = job.astype(object)
    job[np.flatnonzero(~y)[:14]] = "unpaid"
    data = {"job": job, "y": np.where(y, "rich", "poor")}
    for k in range(10):
        data[f"copy {k}"] = np.where(rng.random(n) < 0.9, job, rng.choice(["a", "b", "c"], n))
    model = tb.fit(data, target="y", pairs=True)
    names = [c.name for c in model.schema.counted if c.kind == "pair"]
    assert names
    row = {"job": "unpaid"} | {f"copy {k}": "unpaid" for k in range(10)}
    (own,), prior = model.log_joint(row), model.log_joint(dict.fromkeys(row, "never seen"))[0]
    poor = list(model.classes).index("poor")
    told = own[poor] - own[1 - poor] - (prior[poor] - prior[1 - poor])
    assert 1 < told < np.log(14 + 1) + 2


def test_groups_are_told_apart_whatever_values_are_called() -> None:
    side = tb.PairColumn("x", groups=(("a and 1 more",), ("a", "b"), ("c",)))
    assert len({side.group_of[v] for v in ("a and 1 more", "a", "c")}) == 3
    assert side.group_of["a"] == side.group_of["b"]
