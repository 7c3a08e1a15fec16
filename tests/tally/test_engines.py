"""One table, every way in: the tallies have one digest and the predictions agree to the twelfth digit.

To add an engine, add an opener to ENGINES: it gets the table as an Arrow table and a folder, and gives data that
`tb.count` and `model.predict_proba` take. Spark, which needs a cluster, is added by the fixture `opener`.
"""

from __future__ import annotations

import csv
import datetime as dt
import gzip
import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cluster
import numpy as np
import optional
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import tallybayes as tb
from tallybayes.data import encode
from tallybayes.data.sources import Batch, open_source
from tallybayes.selection.splits import by_hash

duckdb, pl = map(optional.package, ("duckdb", "polars"))

# Ibis 12 asks DuckDB 2 by names that DuckDB is about to drop
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

ROWS = 700
TARGET = "label"
WORDS = ["offer", "meeting", "Straße", "naïve", "prize", "lunch", "the", "of", "and", "免费", "it's", "e-mail"]


def mixed_table(rows: int = ROWS, seed: int = 5) -> pa.Table:
    """Every kind that all formats can hold, with missing values, weights, texts to trip over, and rows unlabelled."""
    rng = np.random.default_rng(seed)

    def some(values: list[Any], share: float = 0.1) -> list[Any]:
        return [None if gone else v for v, gone in zip(values, rng.random(rows) < share, strict=True)]

    tricky = ["plain", 'say "hi"', "a,b", "x;y", "two\nlines", " spaced ", "01234", "-1", "ü", "'; DROP TABLE t; --"]
    ends = rng.choice(["", "", "", "\nP.S. ok, bye"], rows)
    texts = [" ".join(rng.choice(WORDS, rng.integers(1, 9))) + str(end) for end in ends]
    days = [dt.datetime(2024, 1, 1) + dt.timedelta(hours=int(h)) for h in rng.integers(0, 9999, rows)]
    label = some([str(v) for v in rng.choice(["spam", "ham", "news, other"], rows)], 0.05)
    return pa.table(
        {
            "colour": pa.array(some([str(v) for v in rng.choice(tricky, rows)]), pa.string()),
            "code": pa.array(some(rng.integers(0, 5, rows).tolist()), pa.int64()),
            "flag": pa.array(some((rng.random(rows) < 0.5).tolist()), pa.bool_()),
            "size": pa.array(some((rng.normal(size=rows) * 10.0 ** rng.integers(-8, 8, rows)).tolist()), pa.float64()),
            "rooms": pa.array(some(rng.integers(-3, 9, rows).tolist()), pa.int64()),
            "day": pa.array(some(days), pa.timestamp("us")),
            "words": pa.array(some(texts), pa.string()),
            "weight": pa.array(rng.choice([0.0, 0.25, 1.0, 3.5], rows), pa.float64()),
            TARGET: pa.array(label, pa.string()),
        }
    )  # fmt: skip


def table_schema(table: pa.Table) -> tb.Schema:
    """The schema of the mixed table; a class and a value beyond what it has are declared."""
    schema = tb.infer(table, TARGET, weights="weight")
    schema = schema.with_column("code", kind="category").with_column("words", kind="text")
    return schema.with_column("colour", values=["plain", "never seen"])


OPEN: list[sqlite3.Connection] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Connections are closed behind the test that opened them: newer Pythons mind."""
    yield
    while OPEN:
        OPEN.pop().close()


# ---- ways in

Opener = Callable[[pa.Table, Path], Any]


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    return table.to_pylist()


def written_csv(path: Path, table: pa.Table, delimiter: str = ",", spell: Callable[[Any], Any] = lambda v: v) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(table.column_names)
        for row in zip(*(table[n].to_pylist() for n in table.column_names), strict=True):
            writer.writerow(["" if v is None else v.isoformat() if hasattr(v, "isoformat") else spell(v) for v in row])
    return path


def as_csv(table: pa.Table, folder: Path) -> str:
    return str(written_csv(folder / "t.csv", table))


def as_pandas(table: pa.Table, folder: Path) -> Any:
    pytest.importorskip("pandas")
    return table.to_pandas()


def as_pandas_csv(table: pa.Table, folder: Path) -> Path:
    as_pandas(table, folder).to_csv(folder / "p.csv", index=False)  # writes 3 as 3.0 where a column has holes, and True
    return folder / "p.csv"


def as_semicolons(table: pa.Table, folder: Path) -> Path:
    return written_csv(folder / "s.csv", table, ";", lambda v: str(v).lower() if isinstance(v, bool) else v)


def as_tsv(table: pa.Table, folder: Path) -> Path:
    return written_csv(folder / "t.tsv", table, "\t")


def as_gzip(table: pa.Table, folder: Path) -> Path:
    plain = written_csv(folder / "plain.csv", table)
    (folder / "t.csv.gz").write_bytes(gzip.compress(plain.read_bytes()))
    return folder / "t.csv.gz"


def as_zstd(table: pa.Table, folder: Path) -> Path:
    plain = written_csv(folder / "plain.tsv", table, "\t")
    with pa.output_stream(str(folder / "t.tsv.zst"), compression="zstd") as out:
        out.write(plain.read_bytes())
    return folder / "t.tsv.zst"


def as_utf16(table: pa.Table, folder: Path) -> Any:
    text = written_csv(folder / "utf8.csv", table).read_text("utf-8")
    (folder / "utf16.csv").write_bytes(text.encode("utf-16"))
    return tb.read(folder / "utf16.csv", encoding="utf-16")


def as_json_lines(table: pa.Table, folder: Path) -> Path:
    lines = [{k: v for k, v in row.items() if v is not None} for row in rows_of(table)]
    text = "".join(json.dumps(row, default=lambda v: v.isoformat()) + "\n" for row in lines)
    (folder / "t.jsonl").write_text(text, "utf-8")
    return folder / "t.jsonl"


def as_parquet(table: pa.Table, folder: Path) -> Path:
    pq.write_table(table, folder / "t.parquet", row_group_size=97)
    return folder / "t.parquet"


def as_feather(table: pa.Table, folder: Path) -> Path:
    pyarrow.feather.write_feather(table, str(folder / "t.feather"), chunksize=50)
    return folder / "t.feather"


def as_glob(table: pa.Table, folder: Path) -> str:
    for i, start in enumerate(range(0, table.num_rows, 300)):
        written_csv(folder / f"part-{i}.csv", table.slice(start, 300))
    return str(folder / "part-*.csv")


def as_relation(table: pa.Table, folder: Path) -> Any:
    return duckdb.from_arrow(table)


def as_query(table: pa.Table, folder: Path) -> Any:
    con = duckdb.connect()
    con.register("given", table)
    return tb.read("SELECT * FROM given", connection=con)


def as_sqlite(table: pa.Table, folder: Path) -> Any:
    con = sqlite3.connect(":memory:")
    OPEN.append(con)
    names = table.column_names
    con.execute(f"CREATE TABLE t ({', '.join(names)})")
    plain = [[v.isoformat() if hasattr(v, "isoformat") else v for v in row.values()] for row in rows_of(table)]
    plain = [[str(v).lower() if isinstance(v, bool) else v for v in row] for row in plain]
    con.executemany(f"INSERT INTO t VALUES ({', '.join('?' * len(names))})", plain)
    return tb.read("SELECT * FROM t ORDER BY rowid", connection=con)


def as_ibis(table: pa.Table, folder: Path) -> Any:
    return pytest.importorskip("ibis").memtable(table)


def as_ibis_of_duckdb(table: pa.Table, folder: Path) -> Any:
    con = pytest.importorskip("ibis").duckdb.connect()
    con.con.register("given", table)
    con.con.execute("CREATE TABLE t AS FROM given")
    return con.table("t")


def as_narwhals(native: Any) -> Any:
    return pytest.importorskip("narwhals").from_native(native)


ENGINES: list[tuple[str, Opener]] = [
    ("pandas", as_pandas),
    ("polars", lambda table, folder: pl.from_arrow(table)),
    ("polars, lazy", lambda table, folder: pl.from_arrow(table).lazy()),
    ("narwhals of pandas", lambda table, folder: as_narwhals(as_pandas(table, folder))),
    ("narwhals of arrow, lazy", lambda table, folder: as_narwhals(table).lazy()),
    ("narwhals of polars, lazy", lambda table, folder: as_narwhals(pl.from_arrow(table).lazy())),
    ("narwhals of duckdb, lazy", lambda table, folder: as_narwhals(duckdb.from_arrow(table))),
    ("ibis", as_ibis),
    ("ibis of duckdb", as_ibis_of_duckdb),
    ("arrow", lambda table, folder: table),
    ("arrow stream", lambda table, folder: table.to_reader(max_chunksize=64)),
    ("list of dicts", lambda table, folder: rows_of(table)),
    ("dict of columns", lambda table, folder: {n: table[n].to_pylist() for n in table.column_names}),
    ("dict of arrays", lambda table, folder: {n: table[n].to_numpy() for n in table.column_names}),
    ("csv", as_csv),
    ("csv of pandas", as_pandas_csv),
    ("csv with semicolons", as_semicolons),
    ("csv in utf-16", as_utf16),
    ("tsv", as_tsv),
    ("csv.gz", as_gzip),
    ("tsv.zst", as_zstd),
    ("json lines", as_json_lines),
    ("parquet", as_parquet),
    ("feather", as_feather),
    ("glob", as_glob),
    ("duckdb relation", as_relation),
    ("duckdb query", as_query),
    ("sqlite query", as_sqlite),
]
every_engine = pytest.mark.parametrize(
    "opener",
    [
        *(pytest.param(o, id=n, marks=pytest.mark.core) for n, o in ENGINES),
        pytest.param(None, id="spark", marks=cluster.marks),
    ],
    indirect=True,
)


@pytest.fixture
def opener(request: pytest.FixtureRequest) -> Opener:
    if request.param is not None:
        return request.param
    session = request.getfixturevalue("spark")
    return lambda table, folder: session.createDataFrame(table)


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return mixed_table()


@pytest.fixture(scope="module")
def schema(table: pa.Table) -> tb.Schema:
    return table_schema(table)


@pytest.fixture(scope="module")
def tally(table: pa.Table, schema: tb.Schema) -> tb.Tally:
    return tb.count(table, schema)


@every_engine
def test_one_digest_and_one_answer(opener: Opener, table: pa.Table, schema: tb.Schema, tally: tb.Tally, tmp_path: Path):
    assert tb.count(opener(table, tmp_path), schema).digest == tally.digest
    model = tally.model()
    expected = model.predict_proba(table)
    np.testing.assert_allclose(model.predict_proba(opener(table, tmp_path)), expected, rtol=0, atol=1e-12)


@every_engine
def test_one_fold_for_a_row(opener: Opener, table: pa.Table, schema: tb.Schema, tmp_path: Path):
    def fold(batch: Batch) -> np.ndarray:
        return by_hash(encode.blocks(schema, batch), batch.rows, folds=10, seed=7)

    def folds(data: Any) -> list[int]:
        return np.concatenate([fold(b) for b in open_source(data).batches(encode.wanted(schema))]).tolist()

    assert folds(opener(table, tmp_path)) == folds(table)


def test_the_table_is_as_nasty_as_it_says(table: pa.Table, tally: tb.Tally):
    assert {c.kind for c in tally.schema.counted} == {"category", "number", "text"}
    assert tally.skipped > 10
    assert all(table[n].null_count for n in ("colour", "code", "flag", "size", "rooms", "day", "words", TARGET))
    assert "\n" in "".join(filter(None, table["colour"].to_pylist()))


@pytest.mark.parametrize("opener", [o for n, o in ENGINES if n in ("csv of pandas", "json lines", "parquet", "glob")])
def test_the_first_look_sees_the_same_kinds(opener: Opener, table: pa.Table, tmp_path: Path):
    def kinds(data: Any) -> dict[str, str]:
        return {c.name: c.kind for c in tb.infer(data, TARGET, weights="weight").columns}

    assert kinds(opener(table, tmp_path)) == kinds(table)


def test_an_unseen_class_and_value_in_a_file(table: pa.Table, schema: tb.Schema, tally: tb.Tally, tmp_path: Path):
    more = table.slice(0, 2).set_column(8, TARGET, pa.array(["new class", "ham"]))
    more = more.set_column(0, "colour", pa.array(["new colour", "plain"]))
    expected = tally + tb.count(more, schema)
    assert tally.update(as_csv(more, tmp_path), new_classes="allow") == expected
    assert expected.forget(as_csv(more, tmp_path)) == tally


def test_labels_come_back_as_they_would_from_a_typed_file(tmp_path: Path):
    for labels in ([1, 2], [True, False], [0.5, 1.0], ["a", "01"]):
        table = pa.table({"x": pa.array([1.0, 1.5, 7.0, 8.0]), "y": pa.array(labels * 2)})
        model = tb.fit(written_csv(tmp_path / "t.csv", table), target="y")
        assert [type(c) for c in model.classes] == [type(c) for c in sorted(labels, key=str)]
        assert model.tally == tb.fit(table, target="y").tally


def test_only_what_the_schema_looks_at_is_read(table: pa.Table, tmp_path: Path):
    pair = (tb.Side("colour"), tb.Side("rooms", "number", cuts=(0.0, 3.0)))
    columns = [
        tb.Column("p", "pair", of=pair),
        tb.Column("size", "number", missing=("-999",)),
        tb.Column("again", "category", source="rooms"),
    ]
    schema = tb.Schema(columns, target=TARGET, weights="weight")
    looked_at = {"colour": "category", "rooms": "", "size": "", TARGET: "category", "weight": "number"}
    assert encode.wanted(schema) == looked_at  # read in two ways, or with marks, a column stays text
    for data in (as_csv(table, tmp_path), as_parquet(table, tmp_path)):
        assert all(set(b.columns) == set(looked_at) for b in open_source(data).batches(encode.wanted(schema)))
        assert tb.count(data, schema) == tb.count(table, schema)


def test_an_engine_may_be_named(table: pa.Table, schema: tb.Schema, tally: tb.Tally, tmp_path: Path):
    path = as_csv(table, tmp_path)
    for data, engine in [(table, "local"), (path, "duckdb"), (path, "local"), (as_query(table, tmp_path), "duckdb")]:
        assert tb.count(data, schema, engine=engine) == tally
    with pytest.warns(tb.TallybayesWarning, match=f"{tally.skipped} of .* rows have no label"):
        kept = tb.fit(path, schema=schema, calibrate=False, engine="duckdb").tally
    assert kept == tally and tb.infer(table, TARGET, engine="local").target == TARGET
    with pytest.raises(tb.SettingsError, match=r"(?s)engine='spark', but .*t\.csv would be read by 'duckdb'.*parquet"):
        tb.count(path, schema, engine="spark")
    with pytest.raises(tb.SettingsError, match=r"(?s)engine='duckdb', but the data would be .*from_arrow"):
        tb.fit(table, TARGET, engine="duckdb")
    with pytest.raises(tb.SettingsError, match=r"(?s)engine='duck'.*did you mean 'duckdb'"):
        tb.infer(table, TARGET, engine="duck")
