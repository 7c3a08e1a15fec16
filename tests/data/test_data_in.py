"""The same table from every source is the same tally."""

from __future__ import annotations

import datetime as dt
import math

import numpy as np
import optional
import pyarrow as pa
import pytest
import scipy.sparse

import tallybayes as tb

pytestmark = pytest.mark.core
duckdb, pd, pl = map(optional.package, ("duckdb", "pandas", "polars"))
N = 500
RNG = np.random.default_rng(40)


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    frame = pd.DataFrame(
        {
            "text": RNG.choice(["a", "b", "ü", "01"], N),
            "whole": RNG.integers(-3, 9, N),
            "real": RNG.normal(size=N) * 1e3,
            "flag": RNG.random(N) < 0.3,
            "when": [dt.datetime(2024, 1, 1) + dt.timedelta(hours=int(h)) for h in RNG.integers(0, 5000, N)],
            "label": RNG.choice(["x", "y", "z"], N),
        }
    )
    frame.loc[::9, "text"] = None
    frame.loc[::11, "real"] = np.nan
    frame.loc[::50, "label"] = None
    return frame


@pytest.fixture(scope="module")
def schema(frame: pd.DataFrame) -> tb.Schema:
    schema = tb.infer(frame, "label")
    return schema.with_column("whole", kind="category")


def sources(frame: pd.DataFrame) -> dict:
    table = pa.Table.from_pandas(frame, preserve_index=False)
    records = [{k: None if pd.isna(v) else v for k, v in row.items()} for row in frame.to_dict("records")]
    return {
        "pandas": frame,
        "pandas shuffled index": frame.set_index(RNG.permutation(N)),
        "pandas categoricals": frame.astype({"text": "category", "label": "category"}),
        "polars": pl.from_pandas(frame),
        "polars categoricals": pl.from_pandas(frame).with_columns(pl.col("text").cast(pl.Categorical)),
        "arrow table": table,
        "arrow chunks": pa.concat_tables([table.slice(0, 100), table.slice(100, 7), table.slice(107)]),
        "arrow reader": table.to_reader(max_chunksize=64),
        "duckdb relation": duckdb.from_arrow(table),
        "dict of columns": {c: table[c].to_pylist() for c in table.column_names},
        "dict of arrays": {c: frame[c].to_numpy() for c in frame},
        "list of dicts": records,
        "iterator of dicts": iter(records),
    }


NAMES = [
    "pandas", "pandas shuffled index", "pandas categoricals", "polars", "polars categoricals", "arrow table",
    "arrow chunks", "arrow reader", "duckdb relation", "dict of columns", "dict of arrays", "list of dicts",
    "iterator of dicts",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_one_digest(name: str, frame: pd.DataFrame, schema: tb.Schema) -> None:
    expected = tb.count(frame, schema)
    assert expected.skipped == frame["label"].isna().sum()
    tally = tb.count(sources(frame)[name], schema)
    assert tally == expected
    assert tally.digest == expected.digest
    model = expected.model()
    got = model.predict_proba(sources(frame)[name])
    np.testing.assert_allclose(got, model.predict_proba(frame), rtol=1e-12)  # batches differ, and so does rounding


@pytest.mark.parametrize("name", ["arrow reader", "iterator of dicts"])
def test_fit_reads_a_stream_that_can_be_read_once(name: str, frame: pd.DataFrame) -> None:
    told = {"match": "10 of 500 rows have no label"}
    with pytest.warns(tb.TallybayesWarning, **told):
        model = tb.fit(sources(frame)[name], "label")
    with pytest.warns(tb.TallybayesWarning, **told):
        assert model.tally == tb.fit(frame, "label").tally


def test_labels_and_weights_beside_the_data(frame: pd.DataFrame, schema: tb.Schema) -> None:
    weights = RNG.random(N)
    beside = tb.count(frame.drop(columns="label"), schema, frame["label"], weights=weights)
    inside = tb.count(frame.assign(w=weights), tb.Schema(schema.columns, "label", weights="w"))
    assert beside.columns == inside.columns
    assert beside.labels == inside.labels


def test_sparse_dense_and_words_are_one_bag() -> None:
    dense = RNG.poisson(0.7, (60, 8)).astype(float)
    y = RNG.choice(["a", "b"], 60)
    schema = tb.Schema([tb.Column("x", "bag")], target="y")
    expected = tb.count(dense, schema, y)
    for form in (scipy.sparse.csr_matrix, scipy.sparse.csc_array, scipy.sparse.coo_array):
        assert tb.count(form(dense), schema, y) == expected
    as_words = [[str(j) for j in range(8) for _ in range(int(row[j]))] for row in dense]
    as_dicts = [{str(j): row[j] for j in range(8) if row[j]} for row in dense]
    assert tb.count({"x": as_words, "y": y}, schema) == expected
    assert tb.count({"x": as_dicts, "y": y}, schema) == expected


def test_a_vector_shorter_than_those_counted_misses_what_it_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    values = np.random.default_rng(0).normal(size=(400, 12))
    labels = np.where(values[:, 11] > 0, "a", "b")
    model = tb.count({"v": values, "y": labels}, tb.Schema([tb.Column("v", "vector")], target="y")).model()
    short = values[:, :9]
    padded = np.hstack([short, np.full((400, 3), np.nan)])
    for kernels in ("on", "off"):
        monkeypatch.setenv("TALLYBAYES_KERNELS", kernels)
        np.testing.assert_allclose(model.predict_proba({"v": short}), model.predict_proba({"v": padded}), rtol=1e-12)
        assert model.predict({"v": short}).tolist() == model.predict({"v": padded}).tolist()
    assert model.predict({"v": list(short[0])}) == model.predict({"v": short[:1]})
    assert str(model.explain({"v": list(short[0])})) == str(model.explain({"v": list(padded[0])}))


def test_vectors_from_lists_and_matrices() -> None:
    x = RNG.normal(size=(50, 4))
    x[3, 2] = np.nan
    y = ["a", "b"] * 25
    schema = tb.Schema([tb.Column("x", "vector", width=4)], target="y")
    expected = tb.count(x, schema, y)
    lists = [[None if np.isnan(v) else v for v in row] for row in x.tolist()]
    assert tb.count({"x": lists, "y": y}, schema) == expected
    assert tb.count({"x": pa.FixedSizeListArray.from_arrays(pa.array(x.ravel()), 4), "y": y}, schema) == expected
    assert tb.count({"x": x.astype(np.float32).astype(float), "y": y}, schema) == tb.count(
        {"x": x.astype(np.float32), "y": y}, schema
    )


def test_columns_are_found_by_name(frame: pd.DataFrame, schema: tb.Schema) -> None:
    model = tb.count(frame, schema).model()
    expected = model.predict_proba(frame)
    shuffled = frame[list(reversed(frame.columns))].assign(extra=1)
    np.testing.assert_array_equal(model.predict_proba(shuffled), expected)
    with pytest.warns(tb.TallybayesWarning, match="columns not in the data are taken as missing: 'text'.*did you mean"):
        without = model.predict_proba(frame.rename(columns={"text": "texts"}))
    with pytest.warns(tb.TallybayesWarning, match="'text'"):
        np.testing.assert_array_equal(without, model.predict_proba(frame.drop(columns="text")))
    with pytest.raises(tb.DataError, match="none of the columns"):
        model.predict(frame[["label"]])


def test_one_row_as_a_dict_is_a_batch_of_one(frame: pd.DataFrame, schema: tb.Schema) -> None:
    model = tb.count(frame, schema).model()
    row = {k: None if pd.isna(v) else v for k, v in frame.iloc[17].items()}
    np.testing.assert_allclose(model.predict_proba(row), model.predict_proba(frame)[17:18], rtol=1e-12)
    assert model.predict(row).tolist() == model.predict(frame)[17:18].tolist()


def test_values_have_one_canonical_text() -> None:
    schema = tb.Schema([tb.Column("v", "category")], target="y")
    tallies = [
        tb.count({"v": values, "y": ["a", "b"]}, schema)
        for values in ([1, 0], [1.0, -0.0], np.array([1, 0], dtype=np.int8), ["1", "0"], np.array([1, 0], np.float32))
    ]
    assert all(t == tallies[0] for t in tallies)
    truth = [tb.count({"v": v, "y": ["a", "b"]}, schema) for v in ([True, False], ["true", "false"])]
    assert all(t == truth[0] for t in truth)
    days = [dt.date(2024, 2, 29), dt.datetime(2024, 2, 29), np.datetime64("2024-02-29"), "2024-02-29"]
    texts = {tb.count({"v": [d], "y": ["a"]}, schema).columns["v"].sheets["values"].slot_names[0] for d in days}
    assert texts == {"2024-02-29"}


def test_a_mark_for_missing_means_the_same_in_a_frame_a_row_and_a_file(tmp_path):
    schema = tb.Schema([tb.Column("n", "number", missing=("-999", "nan", "-1e400"))], target="y")
    table = {"n": [1.0, -999.0, 2.5], "y": ["a", "b", "b"]}
    rows = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    (tmp_path / "t.csv").write_text("n,y\n1,a\n-999,b\n2.5,b\n")
    expected = tb.count([rows[0], {**rows[1], "n": None}, rows[2]], schema)
    for data in (table, rows, str(tmp_path / "t.csv")):
        assert tb.count(data, schema) == expected
    assert sum((tb.count(row, schema) for row in rows), tb.Tally.zero(schema)) == expected
    whole = {"n": np.array([1, -999, 2]), "y": table["y"]}
    assert tb.count(whole, schema) == tb.count({**whole, "n": [1, None, 2]}, schema)


def test_a_name_with_a_nul_is_the_whole_name() -> None:
    columns = {"a\0b": ["u", "v", "u"], "a\0c": [{"k\0": 1}] * 3, "y": ["p", "q", "p"]}
    schema = tb.Schema([tb.Column("a\0b", "category")], target="y")
    expected = tb.count(columns, schema)
    table = pa.table(columns)
    for data in (
        table,
        table.to_batches()[0],
        pl.DataFrame(columns),
        {**columns, "a\0b": pl.Series("x\0", ["u", "v", "u"])},
    ):
        assert tb.count(data, schema) == expected  # polars itself would end the process


@pytest.mark.parametrize("missing", [math.nan, np.nan, *optional.values("pandas", "NA", "NaT"), None])
def test_a_missing_bag_or_vector_is_missing_in_a_row_as_in_a_frame(missing: object) -> None:
    lists, points = [["u", "v"], missing, ["u"]], [[1.0, 2.0], missing, [0.5, 1.0]]
    frame = pd.DataFrame({"b": lists, "v": points, "y": ["p", "q", "p"]})
    schema = tb.Schema([tb.Column("b", "bag"), tb.Column("v", "vector", width=2)], target="y")
    model = tb.count(frame, schema).model()
    row = {"b": missing, "v": missing}
    np.testing.assert_allclose(model.predict_proba(row), model.predict_proba(frame)[[1]], rtol=1e-12)
    assert (
        tb.count([{"b": b, "v": v, "y": y} for b, v, y in zip(lists, points, "pqp", strict=True)], schema)
        == model.tally
    )


def test_lists_of_texts_come_from_polars_as_from_anywhere() -> None:
    lists = [["u", "v"], ["v"], None, ["w", "u"]] * 10
    columns = {"b": lists, "n": [[["a"]]] * 40, "y": ["p", "q", "q", "p"] * 10}
    schema = tb.Schema([tb.Column("b", "bag")], target="y")
    assert tb.count(pl.DataFrame(columns), schema) == tb.count(columns, schema)
    assert tb.fit(pl.DataFrame(columns), "y").tally == tb.fit(columns, "y").tally


def test_one_row_of_a_model_that_reads_nothing_of_it() -> None:
    model = tb.fit({"r": [[1.0], [1.0, 2.0], [3.0]], "y": ["p", "q", "p"]}, "y")
    assert model.schema.names == ()
    for row in ({"r": [1.0, 2.0], "y": None}, {"r": [1.0], "y": "p"}, {"other": 3.0}):
        assert model.predict_proba(row).shape == (1, 2)
    assert model.predict_proba({"r": [[1.0], [2.0]]}).shape == (2, 2)
