"""Spark: the same tally and the same answers from a cluster of two executor processes."""

from __future__ import annotations

import datetime as dt
import decimal
import os
import re
import signal
import sys
import threading
import time
from pathlib import Path

import cluster
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
import test_docs
from corrected import corrected
from strategies import ALL

import tallybayes as tb
from tallybayes.families import BernoulliWords
from tallybayes.tally.spark import frames as engine

ENGINES = Path(engine.__file__).parent
pytestmark = cluster.marks


def mixed(rows: int = 900, seed: int = 0) -> pa.Table:
    """Every kind of column with missing values, a rare class in one place only, weights of 0, and hostile names."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    label = np.array(["no", "yes", "it's"], dtype=object)[y]
    label[: rows // 50] = "rare"
    label[rng.random(rows) < 0.05] = None

    def holes(values, share=0.1):
        return pa.array(list(values), mask=rng.random(rows) < share)

    words = [
        " ".join(rng.choice(["spam", "ham", "eggs", "naïve", "café", f"w{i % 40}"], 1 + i % 5)) for i in range(rows)
    ]
    start = dt.datetime(2024, 3, 1)
    return pa.table({
        "label": pa.array(label.tolist(), pa.string()),
        "a.b `q`": holes(rng.normal(y, 1.0)),
        "A": holes(f"v{i % 7}" if i % 11 else "" for i in range(rows)),
        "a": holes(words),
        "whole": holes(rng.integers(0, 4, rows).tolist()),
        "flag": holes((rng.random(rows) < 0.4).tolist()),
        "money": holes([decimal.Decimal(int(v)) / 4 for v in rng.integers(0, 9, rows)]),
        "day": holes([dt.date(2024, 1, 1 + i % 28) for i in range(rows)]),
        "when": holes([start + dt.timedelta(minutes=17 * i) for i in range(rows)]),
        "vector": holes([[float(i), -1e8 + float(y[i]), 0.5] for i in range(rows)]),
        "weight": pa.array(rng.choice([0.0, 0.5, 1.0, 2.25], rows)),
        "number": pa.array(rng.normal(1e8 + y, 1e-3)),
    })  # fmt: skip


def mixed_schema(table: pa.Table) -> tb.Schema:
    schema = tb.infer(table, target="label", weights="weight")
    return (
        schema.with_column("a", kind="text").with_column("A", kind="category").with_column("whole", kind="category")
        .with_column("money", kind="category").with_column("vector", kind="vector", width=3)
    )  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return mixed()


@pytest.fixture(scope="module")
def schema(table) -> tb.Schema:
    return mixed_schema(table)


@pytest.fixture(scope="module")
def local(table, schema) -> tb.Tally:
    return tb.count(table, schema)


@pytest.fixture(scope="module")
def frame(spark, table):
    return spark.createDataFrame(table).repartition(3).cache()


def test_a_cluster_counts_what_one_machine_counts(frame, schema, local):
    assert local.skipped and len(local.classes) == 4
    tally = tb.count(frame, schema)
    assert tally == local and tally.digest == local.digest
    assert tb.count(frame, schema, engine="spark") == local
    few = schema.with_column("vector", kind="ignore")  # brought here, and without what nobody asks for
    assert tb.count(frame, few, engine="local") == tb.count(frame, few)
    with pytest.raises(tb.SettingsError, match="engine='duckdb', but the frame would be read by 'spark'"):
        tb.count(frame, schema, engine="duckdb")


@pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")
def test_weights_worked_out_of_counts_are_the_same_from_a_cluster_and_forget_there(spark):
    rng = np.random.default_rng(8)
    y = rng.integers(0, 3, 400)
    both = rng.integers(0, 4, 400)  # which several columns repeat
    rows = pa.table({
        "y": [f"class {c}" for c in y.tolist()],
        "value": pa.array([f"v{v}" for v in (both + y * (rng.random(400) < 0.4)).tolist()], mask=rng.random(400) < 0.1),
        "again": [f"w{v}" for v in np.where(rng.random(400) < 0.7, both, 5).tolist()],
        "number": pa.array(both + y + rng.normal(0, 0.5, 400).round(2), mask=rng.random(400) < 0.1),
    })  # fmt: skip
    model = tb.fit(rows, "y", calibrate="counted")
    assert model.settings.corrections
    gone = pa.array(rng.random(400) < 0.3)
    frame, some = (spark.createDataFrame(t).repartition(3) for t in (rows, rows.filter(gone)))
    there = tb.count(frame, model.schema)
    assert there.digest == model.tally.digest
    assert there.model().settings.corrections == model.settings.corrections
    less = model.forget(some)
    again = tb.count(rows.filter(pc.invert(gone)), schema=less.schema).model(model.settings)
    assert less.tally == again.tally and less.settings.corrections == again.settings.corrections
    assert np.array_equal(less.log_joint(rows), again.log_joint(rows))


def test_a_cluster_counts_by_period_what_one_machine_counts(spark, frame, table, schema):
    local, there = (tb.Windows(schema.with_column("whole", kind="ignore"), by="number", time="whole") for _ in range(2))
    keep = pc.is_valid(table["whole"])
    local.add(table.filter(keep))
    there.add(frame.dropna(subset=["whole"]))
    assert len(local) > 1 and there.periods == local.periods
    assert [t.digest for _, t in there] == [t.digest for _, t in local]
    with pytest.raises(tb.DataError, match=r"partition .* no time, so it belongs to no period"):
        there.add(frame)
    with pytest.raises(tb.DataError, match="no order in which 100 rows at a time"):
        tb.Windows(schema, by=100).add(frame)


def test_categories_alone_are_grouped_by_spark(spark, frame, table, schema, monkeypatch):
    plain = tb.Schema([c for c in schema.counted if c.name in ("A", "whole", "flag")], target="label")
    plain = plain.with_column("again", kind="category", source="A", missing=("v1",)).with_column(
        "none", kind="category"
    )
    monkeypatch.setattr(engine.executor, "CountPartition", None)  # no row is sent to Python
    with pytest.warns(tb.TallybayesWarning, match="taken as missing: 'none'"):
        there = tb.count(frame, plain)
    with pytest.warns(tb.TallybayesWarning, match="taken as missing: 'none'"):
        here = tb.count(table, plain)
    assert there.digest == here.digest and there.skipped > 0
    two = tb.Schema([tb.Column("A", "category")], target="label")
    none = frame.where("label IS NULL")
    assert tb.count(none, two).digest == tb.count(table.filter(pc.is_null(table["label"])), two).digest
    assert tb.count(none.where("1 = 0"), two).digest == tb.Tally.zero(two).digest


def test_receipts_and_updates_come_from_a_cluster_too(frame, table, schema):
    known = schema.with_receipts()
    tally = tb.count(table, known)
    twice = tally.update(frame)
    assert twice.digest == (tally + tally).digest
    assert twice.forget(frame).digest == tally.digest


def test_a_first_look_at_a_small_frame_is_a_look_at_all_of_it(frame, table):
    found, wanted = (tb.infer(data, target="label", weights="weight") for data in (frame, table))
    assert found == wanted and [c.kind for c in found.columns] == [c.kind for c in wanted.columns]


def test_a_first_look_at_a_large_frame_says_how_many_rows_it_took(spark, monkeypatch):
    monkeypatch.setattr(sys.modules["tallybayes.data.infer"], "LOOK", 400)
    frame = spark.range(20_000).selectExpr("id % 2 AS y", "cast(id AS double) / 7 AS x")
    reason = tb.infer(frame, target="y")["x"].reason
    seen, rows = re.search(r"seen in ([\d,]+) of ([\d,]+) rows", reason).groups()
    assert rows == "20,000" and 200 < int(seen) < 800


@pytest.mark.filterwarnings("ignore:cells that cannot be read")
def test_awkward_cells_are_read_as_here(spark):
    rng = np.random.default_rng(8)
    x = [f"${v:,.2f}" for v in rng.gamma(2, 900, 300)]
    x[7], x[8] = "ask", "NA"
    day = [f"{1 + i % 28:02d}.03.2024" for i in range(300)]
    table = pa.table(
        {"x": x, "day": day, "c": rng.choice(["Red", "red ", "?", "blue"], 300), "y": rng.choice(["A", "b"], 300)}
    )
    frame = spark.createDataFrame(table.to_pandas())
    schema = tb.infer(table, "y", fold=True)
    assert tb.infer(frame, "y", fold=True) == schema and schema["x"].spelling.odd
    assert tb.count(frame, schema) == tb.count(table, schema)
    categories = schema._with(columns=[schema["c"]])  # which Spark would group, if they were not folded
    assert tb.count(frame, categories) == tb.count(table, categories)


def test_predictions_are_columns_of_a_lazy_frame(spark, frame, table, local):
    before = len(spark.sparkContext.statusTracker().getJobIdsForGroup())
    for settings in (tb.Settings(), tb.Settings(families={"a": BernoulliWords()}, prior="uniform")):
        model = local.model(settings)
        scored = model.predict(frame)
        if settings.prior == "counted":
            assert len(spark.sparkContext.statusTracker().getJobIdsForGroup()) == before  # nothing has run yet
        assert scored.columns == [*table.column_names, "prediction", *(f"P({c})" for c in model.classes)]
        got = scored.toArrow()
        again = got.select(table.column_names)  # the rows themselves come back, in Spark's order
        wanted = model.predict_proba(again.drop_columns(["label", "weight"]))
        found = np.stack([got[f"P({c})"].to_numpy() for c in model.classes], axis=1)
        assert len(found) == table.num_rows and np.abs(found - wanted).max() <= 1e-12
        assert got["prediction"].to_pylist() == model.predict(again).tolist()
    assert np.array_equal(model.predict_proba(frame), wanted)  # an array, where an array was asked for


DAYS = [dt.date(2024, 1, 1), dt.date(2024, 1, 2), dt.date(2024, 1, 1)]
LABELS = [([1, 2, 1], "bigint"), (DAYS, "date"), ([True, False, True], "boolean"), ([0.5, 1.5, 0.5], "double")]


@pytest.mark.parametrize(("labels", "kind"), LABELS if ALL else LABELS[:2])
def test_predictions_have_the_type_that_labels_went_in_with(spark, labels, kind):
    model = tb.fit({"x": ["a", "b", "a"], "y": labels}, target="y")
    scored = model.predict(spark.createDataFrame([("b",)], "x string"))
    assert dict(scored.dtypes)["prediction"] == kind
    assert scored.collect()[0]["prediction"] == labels[1]


def test_many_tiny_partitions_are_added_in_a_tree(spark, monkeypatch):
    partitions = 300 if ALL else 24
    if not ALL:
        monkeypatch.setattr(engine, "_TREE", (8, 2))  # both rounds have something to add
    frame = spark.range(0, 600, 1, partitions).selectExpr("id % 3 AS y", "concat('v', id % 5) AS c", "id / 7.0D AS x")
    schema = tb.Schema([tb.Column("c", "category"), tb.Column("x", "number")], target="y")
    rows = {"y": [i % 3 for i in range(600)], "c": [f"v{i % 5}" for i in range(600)], "x": [i / 7 for i in range(600)]}
    assert tb.count(frame, schema).digest == tb.count(rows, schema).digest


def test_empty_partitions_and_empty_frames(spark, schema, local, frame):
    numbers = spark.range(0, 30, 1, 10).selectExpr("id AS y", "id AS x").where("x < 3")
    plain = tb.Schema([tb.Column("x", "number")], target="y")
    assert tb.count(numbers, plain).digest == tb.count({"y": [0, 1, 2], "x": [0, 1, 2]}, plain).digest
    none = frame.where("1 = 0")
    assert tb.count(none, schema).digest == tb.Tally.zero(schema).digest
    assert local.model().predict(none).count() == 0
    with pytest.raises(tb.DataError, match="no rows"):
        tb.fit(none, target="label")


def slowly(batches):
    time.sleep(0.5)
    yield from batches


def test_an_executor_killed_in_the_middle_leaves_the_same_tally(spark):
    first = spark.range(0, 6000, 1, 12).selectExpr("id % 3 AS y", "concat('v', id % 5) AS c", "id / 7.0D AS x")
    frame = first.mapInArrow(slowly, first.schema)
    schema = tb.Schema([tb.Column("c", "category"), tb.Column("x", "number")], target="y")
    local = tb.count(first.toArrow(), schema)
    before = cluster.executors(spark)
    assert len(before) == 2
    found: list[tb.Tally] = []
    counting = threading.Thread(target=lambda: found.append(tb.count(frame, schema)))
    counting.start()
    tracker = spark.sparkContext.statusTracker()
    deadline = time.monotonic() + 120
    while not any(
        (info := tracker.getStageInfo(s)) and info.numTasks == 12 and 2 <= info.numCompletedTasks <= 9
        for s in tracker.getActiveStageIds()
    ):
        assert time.monotonic() < deadline and counting.is_alive()
        time.sleep(0.02)
    victim = min(before)
    os.kill(victim, signal.SIGKILL)
    counting.join(timeout=300)
    assert not counting.is_alive() and found[0].digest == local.digest
    assert victim not in cluster.executors(spark)


def test_times_are_what_clocks_in_the_session_show(spark):
    times = [dt.datetime(2024, 7, 1, 23, 30), dt.datetime(2024, 1, 1, 0, 0), None]
    rows = {"when": times, "y": ["a", "b", "a"]}
    schema = tb.Schema([*tb.Schema([tb.Column("when", "date")], target="y").columns], target="y")
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        texts = [(None if t is None else t.isoformat(" "), y) for t, y in zip(times, rows["y"], strict=True)]
        frame = spark.createDataFrame(texts, "t string, y string").selectExpr("cast(t AS timestamp) AS when", "y")
        assert tb.count(frame, schema).digest == tb.count(rows, schema).digest
        model = tb.count(rows, schema).model()
        shown = model.predict(frame).selectExpr("cast(when AS string) AS when").collect()
        assert shown[0]["when"] == "2024-07-01 23:30:00"  # the rows themselves come back as they were
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


def test_far_from_zero_ours_is_right_where_mllib_guesses(spark):
    from pyspark.ml.classification import NaiveBayes
    from pyspark.ml.feature import VectorAssembler

    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    far = pa.table({"y": pa.array(y.astype(float)), "x": pa.array(1e8 + 4.0 * y + rng.normal(0, 1, 2000))})
    frame = spark.createDataFrame(far)
    model = tb.fit(frame, target="y", settings=tb.Settings(families={"x": "gaussian"}))
    ours = np.mean([r["prediction"] == r["y"] for r in model.predict(frame).collect()])
    vectors = VectorAssembler(inputCols=["x"], outputCol="f").transform(frame)
    theirs = NaiveBayes(modelType="gaussian", featuresCol="f", labelCol="y").fit(vectors).transform(vectors)
    guess = np.mean([r["prediction"] == r["y"] for r in theirs.select("y", "prediction").collect()])
    assert ours > 0.95 and guess < 0.7


def test_refusals_say_where_and_what_to_do(spark, frame, local):
    plain = tb.Schema([tb.Column("x", "number")], target="y")
    words = spark.createDataFrame([("a", "1.5"), ("b", "many")], "y string, x string")
    with pytest.raises(tb.DataError, match=r"partition \d+: column 'x', row \d+ .*'many' is not a number"):
        tb.count(words, plain)
    with pytest.raises(tb.DataError, match=r"no target column 'z'.*\n\nHint: "):
        tb.count(words, tb.Schema([tb.Column("x", "category")], target="z"))
    with pytest.raises(tb.DataError, match=r"binary.*\n\nHint: cast it to string"):
        tb.count(words.selectExpr("y", "cast(x AS binary) AS x"), plain)
    with pytest.raises(tb.DataError, match="type struct"):
        tb.count(words.selectExpr("y", "struct(x) AS x"), plain)
    with pytest.raises(tb.DataError, match="more than one column is called 'y'"):
        tb.count(words.selectExpr("y", "y", "x"), plain)
    with pytest.raises(tb.DataError, match="beside a DataFrame whose rows live elsewhere"):
        tb.count(words, plain, ["a", "b"])
    with pytest.raises(tb.DataError, match="none of the columns 'q'"):
        tb.count(words, tb.Schema([tb.Column("q", "category")], target="y"))
    two = tb.Schema([tb.Column("X", "category"), tb.Column("x", "category")], target="y")
    with pytest.warns(tb.TallybayesWarning, match="taken as missing: 'X'"):
        tally = tb.count(words, two)
    assert tally.rows == 2
    model = tally.model()
    scored = model.predict(words.withColumnRenamed("x", "X").selectExpr("y", "X", "X AS x"))
    with pytest.raises(tb.DataError, match=r"already.*\n\nHint: .*drop\('prediction'\)"):
        model.predict(scored)
    bytes_ = words.selectExpr("y", "x", "cast(x AS binary) AS raw")
    assert tb.infer(bytes_, target="y")["raw"].reason == "values of type binary"


def test_sql_in_spark_answers_as_the_model_does(spark, table, schema):
    hostile = 'it\'s "q" \\ `b` ${x}; DROP --'
    texts = pa.array([hostile if v == "v3" else v for v in table["A"].to_pylist()])
    plain = pa.table({
        "id": pa.array(range(table.num_rows)), "label": table["label"], "a.`b": table["a.b `q`"], "A": texts,
        "whole": table["whole"], "flag": table["flag"], "number": table["number"], "body": table["a"],
    })  # fmt: skip
    columns = [
        tb.Column("A", "category"), tb.Column("flag", "category"), tb.Column("whole", "category"),
        tb.Column("body", "text"), *(tb.infer(plain, "label")[n] for n in ("a.`b", "number")),
    ]  # fmt: skip
    grouped = tb.PairColumn("A", groups=[["v1", hostile], ["v2", "v4"]])
    columns += [
        tb.Column("A × number", "pair", of=(grouped, tb.PairColumn("number", "number", cuts=(0.0,)))),
        tb.Column("number (missing)", "gap", of=(tb.PairColumn("number", "number"),)),
        tb.Column("A (missing)", "gap", of=(tb.PairColumn("A"),)),
    ]
    counted = tb.count(plain, tb.Schema(columns, target="label")).model(tb.Settings(families={"a.`b": "kernel"}))
    spark.createDataFrame(plain).createOrReplaceTempView("plain_rows")
    tokens = [(i, t) for i, text in enumerate(plain["body"].to_pylist()) for t in tb.Tokeniser().tokens(text or "")]
    spark.createDataFrame([(i, t, 1) for i, t in tokens], "row long, token string, count int").createOrReplaceTempView(
        "tok"
    )
    models = {
        m: m.to_sql("plain_rows", "spark", keep=["id"], tokens={"body": "tok"})
        for m in (counted, corrected(counted, 1))
    }
    for scorer in models.values():  # both in one session
        for statement in scorer.setup:
            spark.sql(statement)
    for model, scorer in models.items():
        got = spark.sql(scorer.query).toArrow().sort_by("id")
        found = np.stack([got.column(2 + i).to_numpy() for i in range(len(model.classes))], axis=1)
        assert np.abs(found - model.predict_proba(plain)).max() < 1e-9
        assert got["prediction"].to_pylist() == model.predict(plain).tolist()


def test_the_page_about_clusters_tells_the_truth(spark, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    page = test_docs.ROOT / "docs" / "cluster.md"
    blocks = [b for b in test_docs.blocks_of(page.read_text("utf-8")) if b.language in ("python", "pycon")]
    assert any(b.spark for b in blocks)
    names: dict[str, object] = {"__name__": "__main__", "spark": spark}
    problems = [p for b in blocks if (p := test_docs.problem_in(b, names, "docs/cluster.md")) is not None]
    assert not problems, "\n".join(["", *problems])


# ---- without a cluster


def test_only_operations_that_spark_connect_has_are_used():
    source = "\n".join(p.read_text("utf-8") for p in ENGINES.glob("*.py"))
    assert not re.findall(r"\.rdd\b|_jdf|_jvm|_jc\b|sparkContext|_sc\b|toJSON|foreachPartition", source)


def test_spark_frames_are_known_by_their_module_alone(monkeypatch):
    class DataFrame:
        columns = ("x", "y")

        def mapInArrow(self) -> None: ...

    DataFrame.__module__ = "pyspark.sql.connect.dataframe"
    assert isinstance(engine.opened(DataFrame()).engine, engine.SparkRows)
    assert engine.opened(object()) is None
    monkeypatch.setitem(sys.modules, "pyspark.sql", None)
    with pytest.raises(tb.MissingExtra, match=r"pip install 'tallybayes\[spark\]'"):
        engine._types()
