"""Tallies are an exact commutative group: every law is `==` and an equal digest, never "close"."""

from __future__ import annotations

import datetime as dt
import math
import random
from decimal import Decimal

import numpy as np
import optional
import pyarrow as pa
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from strategies import KINDS, SCHEMA, TARGET, Rows, examples, fresh_digest, schema, tables, tallies

import tallybayes as tb

pytestmark = pytest.mark.core
duckdb, pd, pl = map(optional.package, ("duckdb", "pandas", "polars"))

KIND = pytest.mark.parametrize("kind", KINDS)


def same(a: tb.Tally, b: tb.Tally) -> None:
    assert a == b
    assert a.digest == b.digest
    assert a.classes == b.classes
    assert a.rows == b.rows


def different(a: tb.Tally, b: tb.Tally) -> None:
    assert a != b
    assert a.digest != b.digest


# ---- the group


@KIND
@given(data=st.data())
@examples(12)
def test_group_laws_for_every_kind(kind, data):
    zero = tb.Tally.zero(schema([kind]))
    a, b, c = (data.draw(tallies([kind])) for _ in range(3))
    same(a + b, b + a)
    same((a + b) + c, a + (b + c))
    same(a + zero, a)
    same(zero + a, a)
    same(a - a, zero)
    same(a + (-a), zero)
    minus = -a
    same(-minus, a)
    same((a + b) - b, a)
    same(a - b, -(b - a))
    same(sum([a, b, c]), a + b + c)
    if a.rows or a.skipped:
        different(a + a, a)


@given(a=tallies(KINDS, receipts=True), b=tallies(KINDS, receipts=True), c=tallies(KINDS, receipts=True))
@examples(12)
def test_group_laws_for_all_kinds_together_with_receipts(a, b, c):
    zero = tb.Tally.zero(schema(receipts=True))
    same(a + b, b + a)
    same((a + b) + c, a + (b + c))
    same(a - a, zero)
    same((a + b) - b, a)
    same((a - b) + b, a)


@KIND
@given(data=st.data())
@examples(8)
def test_integer_multiples(kind, data):
    a = data.draw(tallies([kind]))
    k = data.draw(st.integers(0, 7))
    same(k * a, sum([a] * k, tb.Tally.zero(schema([kind]))))
    same(a * k, k * a)
    same((-k) * a, -(k * a))
    same(np.int64(k) * a, k * a)
    same((2**40) * a + k * a, (2**40 + k) * a)
    same((2**40) * ((2**40) * a), (2**80) * a)
    same((2**80) * a - (2**80 - 1) * a, a)
    same(0 * a, tb.Tally.zero(schema([kind])))
    with pytest.raises(TypeError):
        _ = 0.5 * a


def test_addition_with_other_things_is_a_type_error():
    zero = tb.Tally.zero(SCHEMA)
    for wrong in (1, "tally", None):
        with pytest.raises(TypeError):
            _ = zero + wrong
        with pytest.raises(TypeError):
            _ = zero - wrong
    assert zero != 0
    with pytest.raises(TypeError):
        hash(zero)


@given(a=tables(min_size=1, label="text"), b=tables(min_size=1, label="int"))
@examples(15)
def test_new_classes_and_new_slots_join_and_leave(a, b):
    first, second = a.tally(SCHEMA), b.tally(SCHEMA)
    both = first + second
    assert set(both.classes) == set(first.classes) | set(second.classes)
    assert both.classes == tuple(sorted(both.classes))
    same(both - second, first)
    same(both - first, second)
    for name, counts in (both - second).columns.items():
        for which, sheet in counts.sheets.items():
            assert sheet.slot_names == first.columns[name].sheets[which].slot_names


# ---- tables, cut and shuffled


@given(table=tables(max_size=50, min_size=1), data=st.data())
@examples(15)
def test_any_cut_in_any_order_gives_one_digest(table, data):
    weighted = data.draw(st.booleans())
    rows = list(range(len(table)))
    random.Random(data.draw(st.integers(0, 999))).shuffle(rows)
    parts = data.draw(st.integers(1, 50))
    cut = sorted(data.draw(st.lists(st.integers(0, len(rows)), min_size=parts - 1, max_size=parts - 1)))
    pieces = [table.take(rows[i:j]) for i, j in zip([0, *cut], [*cut, len(rows)], strict=True)]
    whole = table.tally(SCHEMA, weighted=weighted)
    same(sum((p.tally(SCHEMA, weighted=weighted) for p in pieces), tb.Tally.zero(SCHEMA)), whole)
    same(table.take(rows).tally(SCHEMA, weighted=weighted), whole)


def test_ninety_seven_parts_in_twenty_orders_give_one_digest():
    rng = np.random.default_rng(97)
    x = rng.normal(0, 1, 2000) * 10.0 ** rng.integers(-30, 30, 2000)
    y = rng.integers(0, 3, 2000)
    under = tb.Schema([tb.Column("x", "number", cells=tb.Cells.fitted(x))], target="y")
    parts = [
        tb.count({"x": p, "y": q}, under) for p, q in zip(np.array_split(x, 97), np.array_split(y, 97), strict=True)
    ]
    digests = set()
    for order in range(20):
        rng.shuffle(parts)
        digests.add((sum(parts) if order % 2 else sum(parts[::-1])).digest)
    assert digests == {tb.count({"x": x, "y": y}, under).digest}


@given(table=tables(max_size=12, min_size=1), data=st.data())
@examples(15)
def test_a_fold_is_a_subtraction(table, data):
    weighted, receipts = data.draw(st.booleans()), data.draw(st.booleans())
    under = schema(receipts=receipts)
    out = set(data.draw(st.lists(st.integers(0, len(table) - 1), max_size=len(table))))
    part, rest = table.take(sorted(out)), table.take([i for i in range(len(table)) if i not in out])
    total = table.tally(under, weighted=weighted)
    same(total - part.tally(under, weighted=weighted), rest.tally(under, weighted=weighted))
    beside = part.weights if weighted else None
    left = total.forget(part.data(), weights=beside)  # its schema has no points that only the part had
    same(left, rest.tally(left.schema, weighted=weighted))
    assert left == rest.tally(under, weighted=weighted)
    same(rest.tally(under, weighted=weighted).update(part.data(), weights=beside, new_classes="allow"), total)


# ---- weights


@given(table=tables(max_size=8, min_size=1), receipts=st.booleans())
@examples(25)
def test_weight_zero_is_a_row_left_out(table, receipts):
    under = schema(receipts=receipts)
    labelled = table.take([i for i in range(len(table)) if table.columns[TARGET][i] is not None])
    kept = labelled.take([i for i in range(len(labelled)) if labelled.weights[i] != 0])
    same(labelled.tally(under, weighted=True), kept.tally(under, weighted=True))


def test_weight_zero_is_a_row_left_out_even_without_a_label():
    under = tb.Schema([tb.Column("c", "category")], target="y")
    same(tb.count({"c": ["u"], "y": [None]}, under, weights=[0.0]), tb.Tally.zero(under))


@given(table=tables(max_size=6, min_size=1), times=st.integers(1, 5))
@examples(20)
def test_weight_k_is_the_row_k_times_but_for_the_number_of_rows(table, times):
    heavy = Rows(table.columns, [float(times)] * len(table)).tally(SCHEMA, weighted=True)
    often = table.take([i for i in range(len(table)) for _ in range(times)]).tally(SCHEMA)
    assert heavy.columns == often.columns
    assert heavy.classes == often.classes
    assert np.array_equal(heavy.class_weights(), often.class_weights())
    assert heavy.rows * times == often.rows  # the amount "rows" counts rows, "n" counts weight
    if times == 1:
        same(heavy, often)


@given(table=tables(max_size=6), factor=st.sampled_from([0.5, 0.25, 2.0, 8.0]))
@examples(10)
def test_weights_scale_amounts_exactly(table, factor):
    ones = Rows(table.columns, [1.0] * len(table)).tally(SCHEMA, weighted=True)
    scaled = Rows(table.columns, [factor] * len(table)).tally(SCHEMA, weighted=True)
    small, large = (scaled, ones) if factor < 1 else (ones, scaled)
    assert (int(max(factor, 1 / factor)) * small).columns == large.columns


def test_weights_in_a_column_equal_weights_beside_the_data():
    data = {"c": ["u", "v", "u"], "y": [1, 2, 1]}
    columns = [tb.Column("c", "category")]
    beside = tb.count(data, tb.Schema(columns, target="y"), weights=[0.5, 2, 0])
    inside = tb.count({**data, "w": [0.5, 2, 0]}, tb.Schema(columns, target="y", weights="w"))
    same(beside, inside)
    assert beside.class_weights().tolist() == [0.5, 2.0]
    assert beside.rows == 2


# ---- labels


def test_a_class_leaves_when_its_count_returns_to_zero():
    under = tb.Schema([tb.Column("c", "category"), tb.Column("x", "number")], target="y")
    rows = {"c": ["u", None, "v"], "x": [1.5, None, -2.0], "y": ["p", "q", "p"]}
    tally = tb.count(rows, under)
    assert tally.classes == ("p", "q")
    less = tally.forget({"c": [None], "x": [None], "y": ["q"]})
    assert less.classes == ("p",)
    signed = less - tb.count(rows, under)
    assert signed.classes == ("q",)  # a negative count is still a count
    same(less - less, tb.Tally.zero(under))
    assert (less - less).classes == ()


@pytest.mark.parametrize("missing", [None, math.nan, "", *optional.values("pandas", "NA", "NaT"), np.nan])
def test_rows_without_a_label_are_skipped_and_counted(missing):
    under = tb.Schema([tb.Column("c", "category")], target="y")
    tally = tb.count([{"c": "u", "y": "p"}, {"c": "v", "y": missing}, {"c": "w", "y": missing}], under)
    assert (tally.rows, tally.skipped, tally.classes) == (1, 2, ("p",))
    assert tally.columns["c"].sheets["values"].slot_names == ["u"]
    assert "2 rows without a label skipped" in repr(tally)
    same(tally - tb.count([{"c": "v", "y": missing}] * 2, under), tb.count([{"c": "u", "y": "p"}], under))


def test_one_label_has_one_text_whatever_its_type():
    under = tb.Schema([tb.Column("c", "category")], target="y")
    forms = [[1, 0, 1], [1.0, 0.0, 1.0], ["1", "0", "1"], np.array([1, 0, 1], dtype=np.uint8)]
    assert len({tb.count({"c": ["u", "v", "u"], "y": y}, under).digest for y in forms}) == 1
    forms = [[True, False], ["true", "false"], np.array([True, False])]
    assert len({tb.count({"c": ["u", "v"], "y": y}, under).digest for y in forms}) == 1


# ---- sources


def mixed_rows() -> list[dict]:
    return [
        {"sky": "sunny", "wet": True, "code": 7, "temp": 20.5, "at": [0.5, -1.0], "words": ["a", "b", "a"], "y": "yes"},
        {"sky": "ünß", "wet": None, "code": None, "temp": math.nan, "at": None, "words": [], "y": "no"},
        {"sky": None, "wet": False, "code": 2**53 + 1, "temp": None, "at": [1e300, 5e-324], "words": None, "y": None},
        {"sky": "", "wet": True, "code": -1, "temp": -0.0, "at": [math.nan, 2.0], "words": ["c"], "y": "yes"},
        {"sky": "sunny", "wet": False, "code": 0, "temp": 1e-310, "at": [0.1, 0.2], "words": ["b"], "y": "no"},
    ]


def mixed_schema(*, receipts: bool = False) -> tb.Schema:
    return tb.Schema(
        [
            tb.Column("sky", "category"),
            tb.Column("wet", "category"),
            tb.Column("code", "number"),
            tb.Column("temp", "number", cells=tb.Cells(0.0, -4, (20.5,))),
            tb.Column("at", "vector", width=2),
            tb.Column("words", "bag", levels=2),
        ],
        target="y",
        receipts=receipts,
    )


def mixed_arrow() -> pa.Table:
    rows = mixed_rows()
    types = {"at": pa.list_(pa.float64(), 2), "words": pa.list_(pa.string()), "temp": pa.float64()}
    return pa.table({n: pa.array([r[n] for r in rows], types.get(n)) for n in rows[0]})


def arrow_chunked() -> pa.Table:
    whole = mixed_arrow()
    return pa.concat_tables([whole.slice(0, 2), whole.slice(2, 0), whole.slice(2, 3)])


def large_types() -> pa.Table:
    table = mixed_arrow()
    table = table.set_column(0, "sky", table["sky"].cast(pa.large_string()))
    table = table.set_column(5, "words", table["words"].cast(pa.large_list(pa.large_string())))
    return table.set_column(6, "y", table["y"].combine_chunks().dictionary_encode())


SOURCES = {
    "dict": lambda: {n: [r[n] for r in mixed_rows()] for n in mixed_rows()[0]},
    "list of dicts": mixed_rows,
    "tuple of dicts": lambda: tuple(mixed_rows()),
    "iterator": lambda: iter(mixed_rows()),
    "generator": lambda: (row for row in mixed_rows()),
    "pandas": lambda: pd.DataFrame(mixed_rows()),
    "pandas, nullable types": lambda: pd.DataFrame(mixed_rows()).astype(
        {"sky": "string", "wet": "boolean", "temp": "Float64"}
    ),
    "pandas, odd index": lambda: pd.DataFrame(mixed_rows(), index=[9, 9, 3, 1, 0]),
    "pandas, categorical": lambda: pd.DataFrame(mixed_rows()).astype({"sky": "category", "y": "category"}),
    "polars": lambda: pl.DataFrame(mixed_arrow()),
    "polars, categorical": lambda: pl.DataFrame(mixed_arrow()).with_columns(pl.col("sky").cast(pl.Categorical)),
    "polars, enum": lambda: pl.DataFrame(mixed_arrow()).with_columns(pl.col("y").cast(pl.Enum(["yes", "no"]))),
    "pyarrow": mixed_arrow,
    "pyarrow, chunked": arrow_chunked,
    "pyarrow, large types": large_types,
    "reader": lambda: mixed_arrow().to_reader(max_chunksize=2),
    "record batch": lambda: mixed_arrow().combine_chunks().to_batches()[0],
    "DuckDB relation": lambda: duckdb.connect().from_arrow(mixed_arrow()),
}


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("receipts", [False, True])
def test_the_same_table_from_any_source_gives_the_same_digest(source, receipts):
    under = mixed_schema(receipts=receipts)
    expected = tb.count(mixed_rows(), under)
    data = SOURCES[source]()
    if source.startswith("pandas") and "code" in data:
        data["code"] = [r["code"] for r in mixed_rows()]  # 2^53 + 1 is no float64: pandas would round or refuse it
    same(tb.count(data, under), expected)


@pytest.mark.parametrize(
    "bag",
    [
        [{"u": 1, "v": 0.5}, None, {}],
        pa.array([{"u": 1.0, "v": 0.5}, None, {"u": None, "v": None}]),
        pa.array([[("u", 1.0), ("v", 0.5)], None, []], pa.map_(pa.string(), pa.float64())),
    ],
    ids=["dicts", "Arrow struct", "Arrow map"],
)
def test_a_bag_of_dicts_is_the_same_in_python_and_in_arrow(bag):
    under = tb.Schema([tb.Column("b", "bag")], target="y")
    expected = tb.count([{"b": {"u": 1, "v": 0.5}, "y": "p"}, {"b": None, "y": "p"}, {"b": {}, "y": "q"}], under)
    same(tb.count({"b": bag, "y": ["p", "p", "q"]}, under), expected)


def test_matrices_dense_sparse_and_by_column_agree():
    rng = np.random.default_rng(3)
    x = rng.integers(0, 3, (30, 4)).astype(np.float64)
    y = rng.integers(0, 2, 30)
    bag = tb.Schema([tb.Column("x", "bag", width=4)], target="y")
    forms = [x, x.astype(np.int32), x.astype(np.float32), np.asfortranarray(x), *(
        f(x) for f in (scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array, scipy.sparse.lil_matrix)
    )]  # fmt: skip
    assert len({tb.count(form, bag, y).digest for form in forms}) == 1
    vector = tb.Schema([tb.Column("x", "vector", width=4)], target="y")
    lists = {"x": x.tolist(), "y": y}
    fixed = pa.table({"x": pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), 4), "y": y})
    assert len({tb.count(d, vector, t).digest for d, t in ((x, y), (lists, None), (fixed, None))}) == 1
    columns = tb.Schema([tb.Column(f"x{j}", "number") for j in range(4)], target="y")
    same(tb.count(x, columns, y), tb.count({**{f"x{j}": x[:, j] for j in range(4)}, "y": y}, columns))


def test_counting_leaves_the_data_as_they_were():
    given_twice = scipy.sparse.csr_matrix((np.array([1.0, 2.0, 0.0, 0.1]), [1, 1, 0, 0], [0, 3, 4]), shape=(2, 2))
    x = np.array([[0.1, np.nan], [-0.0, 2.0]])
    frame = pd.DataFrame({"c": ["u", None], "y": [1, 2]})
    before = given_twice.data.copy(), given_twice.indices.copy(), x.copy(), frame.copy()
    tb.count(given_twice, tb.Schema([tb.Column("x", "bag")], target="y"), [1, 2])
    tb.count(x, tb.Schema([tb.Column("x", "vector")], target="y"), [1, 2])
    tb.count(frame, tb.Schema([tb.Column("c", "category")], target="y"))
    assert np.array_equal(before[0], given_twice.data) and np.array_equal(before[1], given_twice.indices)
    assert before[2].tobytes() == x.tobytes()
    pd.testing.assert_frame_equal(before[3], frame)


def test_a_missing_number_is_missing_whatever_its_bits():
    nan = np.array([np.nan, -np.nan, np.copysign(np.nan, -1), np.frombuffer(b"\x01\0\0\0\0\0\xf8\x7f", "<f8")[0]])
    for kind in ("number", "vector"):
        under = tb.Schema([tb.Column("v", kind)], target="y", receipts=True)
        columns = [np.array([[v]]) if kind == "vector" else np.array([v]) for v in nan]
        assert len({tb.count({"v": c, "y": ["p"]}, under).digest for c in columns}) == 1


def test_negative_zero_is_zero():
    for kind in ("number", "vector", "category", "bag"):
        under = tb.Schema([tb.Column("v", kind)], target="y", receipts=True)
        columns = [np.array([[v]]) if kind in ("vector", "bag") else np.array([v]) for v in (0.0, -0.0)]
        assert len({tb.count({"v": c, "y": ["p"]}, under).digest for c in columns}) == 1


@pytest.mark.parametrize(
    "values",
    [
        [0.5, True],
        [True, 0.5],
        [1, True],
        [math.nan, True, "u"],
        [1, 2.5],
        [1, Decimal("1.5")],
        [dt.date(2020, 1, 1), dt.datetime(2020, 1, 2, 3, 4)],
        ["u", b"u"],
        [2**53 + 1, 0.5],
        [10**30, 1],
    ],
    ids=repr,
)
def test_a_value_has_one_text_whatever_stands_beside_it(values):
    under = tb.Schema([tb.Column("c", "category")], target="y")
    alone = sum(tb.count({"c": [v], "y": ["p"]}, under) for v in values)
    same(tb.count({"c": values, "y": ["p"] * len(values)}, under), alone)
    same(tb.count([{"c": v, "y": "p"} for v in values], under), alone)
    same(tb.count({"c": values[::-1], "y": ["p"] * len(values)}, under), alone)


def test_row_keys_that_are_not_text_are_columns_all_the_same():
    under = tb.Schema([tb.Column("1", "category")], target="y")
    same(tb.count([{1: "u", "y": "p"}], under), tb.count({1: ["u"], "y": ["p"]}, under))


# ---- schemas counted apart


def test_schemas_inferred_apart_add_to_the_moments_of_the_whole():
    rng = np.random.default_rng(11)
    x, z, y = rng.normal(1e8, 1e-3, 400), rng.exponential(1.0, 400), rng.integers(0, 2, 400).astype(str)
    halves = [{"x": x[i::2], "z": z[i::2], "y": y[i::2]} for i in range(2)]
    apart = [tb.count(half, tb.infer(half, "y")) for half in halves]
    with pytest.warns(tb.TallybayesWarning, match="cells of 'x', 'z' differ"):
        total = apart[0] + apart[1]
    whole = tb.count({"x": x, "z": z, "y": y}, tb.infer({"x": x, "z": z, "y": y}, "y"))
    for name in ("x", "z"):
        assert total.moments(name) == whole.moments(name)
        assert total.columns[name].sheets["moments"] == whole.columns[name].sheets["moments"]
        assert "cells" not in total.columns[name].sheets
    assert total.labels == whole.labels
    plain = tb.Schema([tb.Column("x", "number"), tb.Column("z", "number")], target="y")
    same(total, tb.count({"x": x, "z": z, "y": y}, plain))
    assert np.isfinite(total.model().predict_proba(halves[0])).all()


def test_equal_tallies_have_equal_digests_however_their_cells_were_written():
    columns = [
        tb.Column("x", "number", cells=tb.Cells(c, -3, p))
        for c, p in ((0, (1, 2)), (0.0, (1.0, 2.0)), (-0.0, (1.0, 2.0)))
    ]
    counted = [tb.count({"x": [1.0, -0.3], "y": ["p", "q"]}, tb.Schema([c], target="y")) for c in columns]
    for other in counted[1:]:
        assert (counted[0] == other) == (counted[0].digest == other.digest)


def test_a_schema_through_json_keeps_the_digest(tmp_path):
    table = {
        "at": np.random.default_rng(2).normal(size=(60, 2)),
        "c": list("ab" * 30),
        "n": [None, *np.linspace(0, 1e300, 59)],
    }
    table |= {"day": [f"2024-01-{d % 28 + 1:02}" for d in range(60)], "y": [True, False, None] * 20, "w": [0.5] * 60}
    for before in (tb.infer(table, "y", weights="w", receipts=True), mixed_schema(receipts=True)):
        before.save(tmp_path / "schema.json")
        after = tb.Schema.load(tmp_path / "schema.json")
        assert after == before and after.label_type == before.label_type
        data = table if "at" in before.names and "sky" not in before.names else mixed_rows()
        same(tb.count(data, after), tb.count(data, before))
        same(tb.count(data, after) + tb.count(data, before), 2 * tb.count(data, before))
    assert [p.name for p in tmp_path.iterdir()] == ["schema.json"]


# ---- the digest itself

GOLDEN = "9d38a36e393b43c60efc7efa11be02bcad9fafb4cdca9375af303b68136bb145"


def test_the_digest_of_a_fixed_table_never_changes_by_accident():
    tally = tb.count(mixed_rows(), mixed_schema(receipts=True), weights=[1, 2, 1, 0.5, 1 / 3])
    assert tally.digest == GOLDEN, "files in the field carry digests: change them on purpose, and say so in CHANGELOG"


@given(table=tables(max_size=5, min_size=1))
@examples(10)
def test_the_digest_sees_every_column_and_label(table):
    tally = table.tally(SCHEMA)
    assert fresh_digest(tally) == tally.digest
    seen = {tally.digest}
    if any(v is not None for v in table.columns[TARGET]):
        for kind in KINDS:
            if tally.columns[kind].sheets:
                changed = {**tally.columns, kind: type(tally.columns[kind])({})}
                seen.add(tb.Tally(tally.schema, tally.classes, tally.labels, changed, tally.skipped).digest)
        assert len(seen) == 1 + sum(bool(c.sheets) for c in tally.columns.values())
