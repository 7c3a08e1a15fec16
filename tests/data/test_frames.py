"""Frames of other packages: one digest for one table, whatever types its columns have and whoever holds it."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.data import encode
from tallybayes.data.frames import unwrapped
from tallybayes.data.sources import open_source

# Ibis 12 asks DuckDB 2 by names that DuckDB is about to drop
pytestmark = pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")

ROWS = 120
KINDS = {
    "whole": "number", "big": "number", "real": "number", "price": "number", "flag": "category", "sort": "category",
    "code": "category", "text": "text",
}  # fmt: skip


def corners() -> dict[str, list[Any]]:
    """Columns of every type that frames have, a few values of each missing."""
    rng = np.random.default_rng(3)

    def some(values: Any) -> list[Any]:
        return [None if gone else v for v, gone in zip(values, rng.random(ROWS) < 0.15, strict=True)]

    def minutes() -> list[dt.timedelta]:
        return [dt.timedelta(minutes=int(m)) for m in rng.integers(0, 500_000, ROWS)]

    return {
        "whole": some(rng.integers(-5, 9, ROWS).tolist()),
        "big": some(rng.integers(2**53, 2**60, ROWS).tolist()),  # no float holds most of them
        "real": some(rng.normal(size=ROWS).tolist()),
        "price": some([decimal.Decimal(v).scaleb(-2) for v in rng.integers(0, 9999, ROWS).tolist()]),
        "flag": some((rng.random(ROWS) < 0.5).tolist()),
        "sort": some(map(str, rng.choice(["a", "b", "ß"], ROWS))),
        "code": some(rng.integers(0, 4, ROWS).tolist()),
        "text": some(" ".join(rng.choice(["free", "lunch", "prize", "meeting"], 3)) for _ in range(ROWS)),
        "when": some(dt.datetime(2024, 1, 1, tzinfo=dt.UTC) + m for m in minutes()),
        "local": some(dt.datetime(2024, 1, 1) + m for m in minutes()),
        "day": some(dt.date(2024, 1, 1) + dt.timedelta(days=v) for v in rng.integers(0, 500, ROWS).tolist()),
        "y": [str(v) for v in rng.choice(["no", "yes"], ROWS)],
    }


COLUMNS = corners()
ARROW = pa.table({**COLUMNS, "when": pa.array(COLUMNS["when"], pa.timestamp("us", "UTC"))})
SCHEMA = tb.infer(COLUMNS, "y", kinds=KINDS)
TALLY = tb.count(COLUMNS, SCHEMA)


def odd_types() -> pa.Table:
    """The same values in Arrow's less usual types."""
    types = {
        "whole": pa.int16(), "price": pa.decimal256(40, 4), "code": pa.int8(), "text": pa.string_view(),
        "when": pa.timestamp("ns", "Europe/Berlin"), "local": pa.timestamp("ms"), "day": pa.date64(),
        "y": pa.large_string(),
    }  # fmt: skip
    table = pa.table({n: ARROW[n].cast(types.get(n, ARROW[n].type)) for n in ARROW.column_names})
    return table.set_column(table.column_names.index("sort"), "sort", ARROW["sort"].dictionary_encode())


def pandas_categories() -> pd.DataFrame:
    return ARROW.to_pandas().astype({"sort": "category", "code": "category", "y": "category"})


def polars_types() -> pl.DataFrame:
    return pl.from_arrow(ARROW).with_columns(
        pl.col("sort").cast(pl.Categorical),
        pl.col("y").cast(pl.Enum(["yes", "no"])),
        pl.col("when").dt.convert_time_zone("Asia/Tokyo"),
        pl.col("whole").cast(pl.Int8),
    )


def ibis_duckdb() -> Any:
    con = pytest.importorskip("ibis").duckdb.connect()
    con.con.register("given", ARROW)
    con.con.execute("CREATE TABLE t AS FROM given")
    return con.table("t")


def narwhals(native: Any) -> Any:
    return pytest.importorskip("narwhals").from_native(native)


def narwhals_stable() -> Any:
    return pytest.importorskip("narwhals.stable.v1").from_native(pl.from_arrow(ARROW).lazy())


def modin() -> Any:
    os.environ.setdefault("MODIN_ENGINE", "python")
    return pytest.importorskip("modin.pandas").DataFrame(ARROW.to_pandas())


FRAMES: dict[str, Callable[[], Any]] = {
    "arrow": lambda: ARROW,
    "arrow, odd types": odd_types,
    "pandas": lambda: ARROW.to_pandas(),
    "pandas, nullable": lambda: ARROW.to_pandas().convert_dtypes(),
    "pandas, arrow": lambda: ARROW.to_pandas(types_mapper=pd.ArrowDtype),
    "pandas, categories": pandas_categories,
    "polars": lambda: pl.from_arrow(ARROW),
    "polars, categories and zones": polars_types,
    "polars, lazy": lambda: polars_types().lazy(),
    "polars, lazy, of 128 bits": lambda: pl.from_arrow(ARROW).lazy().with_columns(pl.col("big").cast(pl.Int128)),
    "duckdb": lambda: duckdb.from_arrow(ARROW),
    "ibis in memory": lambda: pytest.importorskip("ibis").memtable(ARROW),
    "ibis of duckdb": ibis_duckdb,
    "ibis of polars": lambda: pytest.importorskip("ibis").polars.connect({"t": pl.from_arrow(ARROW).lazy()}).table("t"),
    "narwhals of pandas": lambda: narwhals(ARROW.to_pandas(types_mapper=pd.ArrowDtype)),
    "narwhals of odd types, lazy": lambda: narwhals(odd_types()).lazy(),
    "narwhals of polars, stable": narwhals_stable,
    "narwhals of duckdb": lambda: narwhals(duckdb.from_arrow(ARROW)),
    "narwhals of ibis": lambda: narwhals(ibis_duckdb()),
    "modin": modin,
}
every_frame = pytest.mark.parametrize("frame", FRAMES.values(), ids=FRAMES)


@pytest.mark.filterwarnings("ignore::UserWarning:modin")  # it says what it leaves to pandas
@every_frame
def test_every_frame_has_one_digest_and_one_answer(frame: Callable[[], Any]) -> None:
    data, model = frame(), TALLY.model()
    assert tb.count(data, SCHEMA).digest == TALLY.digest  # twice over one frame: a query can be run again
    assert np.array_equal(model.predict_proba(data), model.predict_proba(COLUMNS))
    assert str(model.explain(data, 7)) == str(model.explain(COLUMNS, 7))


LAZY = ["polars, lazy", "ibis of duckdb", "narwhals of duckdb"]


@pytest.mark.parametrize("name", LAZY)
def test_lazy_frames_are_fitted_and_judged_like_others(name: str) -> None:
    data, table = FRAMES[name](), pl.from_arrow(ARROW)
    wanted = tb.fit(table, "y", kinds=KINDS, calibrate=False)
    assert tb.fit(data, "y", kinds=KINDS, calibrate=False).tally == wanted.tally
    assert tb.evaluate(wanted, data)["log_loss"] == tb.evaluate(wanted, table)["log_loss"]


def test_a_query_is_asked_for_the_columns_that_are_wanted_alone() -> None:
    schema = tb.Schema([tb.Column("real", "number")], target="y")
    for name in ("polars, lazy", "ibis of duckdb", "ibis of polars"):
        batches = list(open_source(FRAMES[name]()).batches(encode.wanted(schema)))
        assert [set(b.columns) for b in batches] == [{"real", "y"}], name
        with pytest.raises(tb.DataError, match=r"(?s)'rael'.*did you mean 'real'"):
            tb.count(FRAMES[name](), tb.Schema([tb.Column("rael", "number")], target="y"))


def test_a_lazy_frame_comes_in_batches_and_may_be_left_in_the_middle() -> None:
    many = pl.LazyFrame({"i": pl.int_range(200_000, eager=True)})
    con = pytest.importorskip("ibis").duckdb.connect()
    con.con.execute("CREATE TABLE t AS SELECT i FROM range(200000) r(i)")
    for data in (many, con.table("t")):
        batches = open_source(data).batches()
        first = next(batches)
        assert 0 < first.rows < 200_000
        batches.close()  # type: ignore[attr-defined] - whoever looks at some rows alone leaves here
        assert sum(b.rows for b in open_source(data).batches()) == 200_000


def test_a_query_without_rows_has_its_columns() -> None:
    for name in ("polars, lazy", "polars, categories and zones", "ibis of duckdb", "ibis in memory"):
        data = FRAMES[name]()
        none = data.filter(data.real > 1e9) if "ibis" in name else data.filter(pl.col("real") > 1e9)
        batches = list(open_source(none).batches())
        assert batches and all(b.rows == 0 and b.names() == ARROW.column_names for b in batches)
        assert tb.count(none, SCHEMA).rows == 0


def test_labels_may_be_a_series_of_narwhals_but_not_of_another_query() -> None:
    wanted = tb.count(ARROW.drop_columns(["y"]), SCHEMA, y=COLUMNS["y"])
    for series in (pl.Series("y", COLUMNS["y"]), pd.Series(COLUMNS["y"])):
        own = pytest.importorskip("narwhals").from_native(series, series_only=True)
        assert tb.count(ARROW.drop_columns(["y"]), SCHEMA, y=own) == wanted
    table = ibis_duckdb()
    with pytest.raises(tb.DataError, match=r"(?s)an Ibis column.*different orders.*target="):
        tb.count(table.drop("y"), SCHEMA, y=table.y)


def test_what_narwhals_holds_is_opened_where_that_is_known_and_collected_where_not() -> None:
    nw = pytest.importorskip("narwhals")
    native = pl.from_arrow(ARROW).lazy()
    assert unwrapped(nw.from_native(native)) is native and unwrapped(COLUMNS) is COLUMNS

    class Stranger:  # as Narwhals' lazy frames of a package that nobody here knows
        __module__ = "narwhals.dataframe"

        def to_native(self) -> object:
            return nw.dtypes

        def collect(self, backend: str) -> Any:
            assert backend == "pyarrow"
            return nw.from_native(ARROW)

    assert unwrapped(Stranger()) is ARROW


def test_no_package_is_imported_for_a_frame_of_another() -> None:
    code = (
        "import sys, tallybayes as tb, pyarrow as pa\n"
        "tb.count(pa.table({'a': [1.0, 2.0], 'y': ['u', 'v']}), tb.Schema([tb.Column('a', 'number')], target='y'))\n"
        "print([p for p in ('ibis', 'narwhals', 'modin', 'polars', 'mlflow', 'skl2onnx') if p in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
