"""Groups that a database has counted give the tally of the rows: one digest, in DuckDB and in SQLite."""

from __future__ import annotations

import sqlite3
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest

import tallybayes as tb


def table(rows: int = 3_000) -> pa.Table:
    rng = np.random.default_rng(8)

    def some(values: Any) -> list[Any]:
        return [None if gone else v for v, gone in zip(values, rng.random(rows) < 0.1, strict=True)]

    return pa.table(
        {
            "city": pa.array(some(map(str, rng.choice(["Bonn", "Köln", "it's"], rows))), pa.string()),
            "rooms": pa.array(some(rng.integers(1, 6, rows).tolist()), pa.int64()),
            "rent": pa.array(some((rng.integers(1, 80, rows) / 7).tolist()), pa.float64()),
            "note": pa.array(some(" ".join(rng.choice(["lift", "garden", "quiet"], 2)) for _ in range(rows))),
            "weight": pa.array(rng.choice([1.0, 2.5], rows)),
            "let": pa.array(some(map(str, rng.choice(["fast", "slow"], rows))), pa.string()),
        }
    )  # fmt: skip


ROWS = table()
SCHEMA = tb.infer(ROWS.drop_columns("weight"), "let", kinds={"note": "text"})
TALLY = tb.count(ROWS, SCHEMA)


def asked_duckdb(queries: list[str], rows: pa.Table = ROWS) -> list[Any]:
    con = duckdb.connect()
    con.register("flats", rows)
    return [con.sql(query).to_arrow_table() for query in queries]


def asked_sqlite(queries: list[str], rows: pa.Table = ROWS) -> list[Any]:
    con = sqlite3.connect(":memory:")
    con.execute("CREATE TABLE flats (city TEXT, rooms INTEGER, rent REAL, note TEXT, weight REAL, let TEXT)")
    con.executemany("INSERT INTO flats VALUES (?, ?, ?, ?, ?, ?)", [tuple(r.values()) for r in rows.to_pylist()])
    return [tb.read(query, connection=con) for query in queries]


@pytest.mark.parametrize("asked", [asked_duckdb, asked_sqlite], ids=["duckdb", "sqlite"])
def test_groups_of_each_column_have_the_digest_of_the_rows(asked: Any) -> None:
    queries = tb.group_queries(SCHEMA, "flats")
    grouped = tb.count_grouped(SCHEMA, *asked(queries))
    assert len(queries) == 4 and grouped.digest == TALLY.digest and grouped == TALLY
    assert grouped.skipped == TALLY.skipped > 0
    np.testing.assert_array_equal(grouped.model().predict_proba(ROWS), TALLY.model().predict_proba(ROWS))


@pytest.mark.parametrize("asked", [asked_duckdb, asked_sqlite], ids=["duckdb", "sqlite"])
def test_groups_of_whole_rows_as_well(asked: Any) -> None:
    (query,) = ["SELECT city, rooms, rent, note, let, count(*) AS n FROM flats GROUP BY city, rooms, rent, note, let"]
    assert tb.count_grouped(SCHEMA, *asked([query])) == TALLY


@pytest.mark.parametrize("asked", [asked_duckdb, asked_sqlite], ids=["duckdb", "sqlite"])
def test_weights_are_a_key_of_the_groups(asked: Any) -> None:
    schema = SCHEMA.with_weights("weight")
    queries = tb.group_queries(schema, "flats")
    grouped = tb.count_grouped(schema, *asked(queries))
    assert grouped.digest == tb.count(ROWS, schema).digest and grouped != TALLY
    assert queries == tb.group_queries(SCHEMA, "flats", weights="weight")
    assert tb.count_grouped(SCHEMA, *asked(queries), weights="weight") == tb.count(ROWS, SCHEMA, weights="weight")


FRACTIONS = (0.1, 0.2, 0.3, 1 / 3, 2.0**-40, 7e-7, 0.0, 2.5, 1e9 / 7)
KINDS = {"city": "category", "rooms": "number", "rent": "number", "note": "text"}


@pytest.mark.parametrize("seed", range(12))
def test_random_tables_under_weights_that_are_fractions(seed: int) -> None:
    """Each sum of floats that a database could make of these depends on the order of its rows."""
    rng = np.random.default_rng(seed)
    rows = ROWS.take(rng.integers(0, len(ROWS), rng.choice([1, 30, 500])))
    weights = rng.choice(FRACTIONS, len(rows)) if seed % 2 else rng.random(len(rows)) * 10.0 ** rng.integers(-7, 7)
    rows = rows.set_column(rows.schema.get_field_index("weight"), "weight", pa.array(weights))
    names = rng.permutation(list(KINDS))[: rng.integers(1, 5)].tolist()
    schema = tb.Schema([tb.Column(name, KINDS[name]) for name in names], target="let", weights="weight")
    tally = tb.count(rows, schema)
    for asked in (asked_duckdb, asked_sqlite):
        assert tb.count_grouped(schema, *asked(tb.group_queries(schema, "flats"), rows)).digest == tally.digest


def test_ten_rows_of_a_tenth_are_not_one_row() -> None:
    schema = tb.Schema([tb.Column("x", "number")], target="y", weights="w")
    ten = tb.count_grouped(schema, {"y": ["u"], "x": [0.1], "w": [0.1], "n": [10]})
    assert ten == tb.count({"y": ["u"] * 10, "x": [0.1] * 10, "w": [0.1] * 10}, schema)
    assert ten != tb.count({"y": ["u"], "x": [0.1], "w": [1.0]}, schema) and ten.rows == 10


@pytest.mark.parametrize("of", [lambda t: t, lambda t: t.model()], ids=["tally", "model"])
def test_weights_beside_the_rows_are_never_forgotten_in_silence(of: Any) -> None:
    weights = ROWS["weight"].to_numpy()
    beside = of(tb.count(ROWS, SCHEMA, weights=weights))
    for call in (lambda: tb.group_queries(beside, "flats"), lambda: tb.count_grouped(beside, {"let": [], "n": []})):
        with pytest.raises(tb.SchemaError, match=r"(?s)beside them.*weights='…', or give the schema alone"):
            call()
    queries = tb.group_queries(beside, "flats", weights="weight")
    named = tb.count_grouped(beside, *asked_duckdb(queries), weights="weight")
    assert named == tb.count(ROWS, SCHEMA, weights="weight")
    evened = np.where(np.arange(len(ROWS)) % 2, 0.5, 1.5)  # as heavy as the rows of a class are many, or nearly so
    order = np.argsort(np.array([str(v) for v in ROWS["let"].to_pylist()]), kind="stable")
    with pytest.raises(tb.SchemaError, match="beside them"):
        tb.group_queries(of(tb.count(ROWS.take(order), SCHEMA, weights=evened)), "flats")
    ones = of(tb.count(ROWS, SCHEMA, weights=np.ones(len(ROWS))))
    assert tb.group_queries(ones, "flats") == tb.group_queries(SCHEMA, "flats")
    assert tb.count_grouped(beside.schema, *asked_duckdb(tb.group_queries(beside.schema, "flats"))) == TALLY


def test_what_a_table_of_weighted_groups_must_have() -> None:
    schema = tb.Schema([tb.Column("city", "category")], target="let", weights="weight")
    groups = {"let": ["fast", "slow"], "city": ["Bonn", "Köln"], "n": [2, 3]}
    with pytest.raises(tb.DataError, match=r"(?s)no column 'weight': the weight of a single row .*one of the keys"):
        tb.count_grouped(schema, groups)
    summed = {**groups, "n": [2.5, 0.3]}  # sum(weight) AS n
    with pytest.raises(tb.DataError, match=r"(?s)2\.5 as the number of rows.*grouped by their weight, too"):
        tb.count_grouped(schema._with(weights=None), summed)


def test_chosen_settings_and_pairs_are_counted_from_groups() -> None:
    pair = tb.Column("both", "pair", of=(tb.Side("city"), tb.Side("rooms", "number", cuts=(2.5,))))
    schema = SCHEMA._with(columns=[*SCHEMA.columns, pair])
    queries = tb.group_queries(schema, "flats")
    assert '"city", "rooms", count(*)' in queries[-1]
    assert tb.count_grouped(schema, *asked_duckdb(queries)) == tb.count(ROWS, schema)


def test_large_groups_are_counted_without_their_rows() -> None:
    schema = tb.Schema([tb.Column("x", "number")], target="y")
    tally = tb.count_grouped(schema, {"y": ["u", "v", "v"], "x": [0.1, 0.1, 0.3], "n": [10**12, 7, 0]})
    assert tally.rows == 10**12 + 7
    ten = tb.count_grouped(schema, {"y": ["u"], "x": [0.1], "n": [10]})
    assert ten == tb.count({"y": ["u"] * 10, "x": [0.1] * 10}, schema)  # exactly, and 10 · 0.1 is not 1 in floats


def test_refusals() -> None:
    good = {"let": ["fast", "slow"], "city": ["Bonn", "Köln"], "n": [2, 3]}
    schema = tb.Schema([tb.Column("city", "category"), tb.Column("rooms", "number")], target="let")
    with pytest.raises(tb.DataError, match=r"(?s)no table has all that column 'rooms' is made of.*group_queries"):
        tb.count_grouped(schema, good)
    with pytest.raises(tb.DataError, match="there are no tables of groups"):
        tb.count_grouped(schema)
    rooms = {"let": ["fast", "slow"], "rooms": [1, 2], "n": [2, 4]}
    with pytest.raises(tb.DataError, match=r"(?s)5 rows .* that of 'rooms' has 6 rows.*one transaction"):
        tb.count_grouped(schema, good, rooms)
    with pytest.raises(tb.DataError, match=r"(?s)no column 'n'.*'m'"):
        tb.count_grouped(schema, {"let": ["fast"], "city": ["Bonn"], "m": [2]})
    with pytest.raises(tb.DataError, match=r"column 'n', row 1 .*: 2\.5 as the number of rows"):
        tb.count_grouped(schema, {**good, "n": [1, 2.5]})
    with pytest.raises(tb.DataError, match="nan as the number of rows"):
        tb.count_grouped(schema, {**good, "n": [1, None]})
    with pytest.raises(tb.DataError, match="no column that is still to be counted, but 'town'"):
        tb.count_grouped(schema, {"let": ["fast"], "town": ["Bonn"], "n": [2]})
    with pytest.raises(tb.SchemaError, match="receipts"):
        tb.group_queries(SCHEMA._with(receipts=True), "flats")


@pytest.mark.parametrize(
    "schema",
    [
        tb.Schema([tb.Column("n", "number")], target="let"),
        tb.Schema([tb.Column("city", "category")], target="n"),
        tb.Schema([tb.Column("city", "category")], target="let", weights="n"),
    ],
    ids=["column", "target", "weights"],
)
def test_a_column_that_is_called_as_the_number_of_rows(schema: tb.Schema) -> None:
    """A frame calls the second of two such columns otherwise, and the first would be taken for the number of rows."""
    rows = pa.table({"n": [1, 2, 2, 3], "city": ["Bonn", "Köln", "Köln", "Bonn"], "let": ["fast", "slow"] * 2})
    for call in (tb.group_queries, tb.count_grouped):
        with pytest.raises(tb.SchemaError, match=r"(?s)'n' is a column of the rows.*times='n rows'"):
            call(schema, "flats")
    queries = tb.group_queries(schema, "flats", times="n rows")
    assert tb.count_grouped(schema, *asked_duckdb(queries, rows), times="n rows") == tb.count(rows, schema)
