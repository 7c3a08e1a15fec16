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


def asked_duckdb(queries: list[str]) -> list[Any]:
    con = duckdb.connect()
    con.register("flats", ROWS)
    return [con.sql(query).to_arrow_table() for query in queries]


def asked_sqlite(queries: list[str]) -> list[Any]:
    con = sqlite3.connect(":memory:")
    con.execute("CREATE TABLE flats (city TEXT, rooms INTEGER, rent REAL, note TEXT, weight REAL, let TEXT)")
    con.executemany("INSERT INTO flats VALUES (?, ?, ?, ?, ?, ?)", [tuple(r.values()) for r in ROWS.to_pylist()])
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


def test_weights_are_a_key_of_the_groups() -> None:
    schema = SCHEMA._with(weights="weight")
    grouped = tb.count_grouped(schema, *asked_duckdb(tb.group_queries(schema, "flats")))
    assert grouped == tb.count(ROWS, schema) and grouped != TALLY


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
