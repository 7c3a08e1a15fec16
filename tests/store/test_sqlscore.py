"""A model as SQL: databases answer as the model does, and nothing in the data can become SQL."""

from __future__ import annotations

import contextlib
import csv
import datetime as dt
import io
import os
import re
import shutil
import sqlite3
import subprocess
import tempfile
import warnings
from dataclasses import fields, replace
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from corrected import corrected
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples

import tallybayes as tb
from tallybayes.families import BernoulliWords, Bins, Blend, Complement, Kernel, Levels, Multinomial, Poisson
from tallybayes.store.sql.dialects import DIALECTS
from tallybayes.store.sql.parts import SlotWeights, parts_of

HOSTILE = 'it\'s "q" \\ `b` ${x} %s ? :y; DROP TABLE rows; --'
NAMES = ("a'; --", 'b"', "c`\\")


def numbers(rows: int = 1500, seed: int = 0) -> pa.Table:
    """Categories few and many, and numbers for every family; hostile names, values and classes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, rows)
    many = [HOSTILE if i % 5 == 0 else None if i % 7 == 0 else f"v{i * (y[i] + 1) % 11}" for i in range(rows)]
    return pa.table({
        "id": pa.array(range(rows)),
        "y": pa.array(np.array(NAMES)[y]),
        'few"`\'': pa.array(many),
        "many": pa.array([f"w{v}" for v in rng.integers(0, 300, rows)]),
        "flag": pa.array(rng.random(rows) < 0.3 + 0.2 * y),
        "whole": pa.array(rng.integers(0, 4, rows).astype(float)),
        "bell": pa.array(rng.normal(y, 1), mask=rng.random(rows) < 0.1),
        "skewed": pa.array(rng.gamma(1 + y, 1, rows)),
        "events": pa.array(rng.poisson(1 + 2 * y)),
        "far": pa.array(1e8 + rng.normal(y, 1, rows)),
        "atoms": pa.array(np.where(rng.random(rows) < 0.3, 0.1, rng.normal(y, 2, rows))),
        "marked": pa.array(["?" if i % 9 == 0 else str(i % 40 + 5 * int(y[i])) for i in range(rows)]),
    })  # fmt: skip


CATEGORIES = ("few\"`'", "many", "flag", "whole")
FIGURES = ("bell", "skewed", "events", "far", "atoms", "marked")


def schema_of(table: pa.Table) -> tb.Schema:
    schema = tb.infer(table.drop_columns(["id"]), target="y")
    for name in CATEGORIES:
        schema = schema.with_column(name, kind="category")
    return schema


def odd_rows(schema: pa.Schema) -> pa.Table:
    """Rows that are not like those counted: missing, never seen, negative, and at the ends of the line."""
    ends = [0.0, 1e300, -1e300, None, -0.0, 1e8, 0.1, -2.5, 5e-324, 0.1 + 2**-55, 1.7e308, -1.7e308]
    n = len(ends)
    texts = ["", "new", None, "v1", HOSTILE, "v2", "v3", "v4", "V1", "v1 ", "true", "0"]
    each = {
        "id": list(range(10_000, 10_000 + n)), "y": [None] * n, 'few"`\'': texts, "many": ["w1", "", None, "W1"] * 3,
        "flag": [True, False, None] * 4, "whole": [0.0, 1.0, -0.0, 3.0, None, 7.5, 2.0, 1.0, 2.5, 9.0, 1e15, 3.0],
        "events": [0, 1000, -1, None, 3, 4, 5, 6, 255, 256, 2**40, -7], "marked": ["?", None, "", "7", " 8", "-3"] * 2,
    }  # fmt: skip
    return pa.table({f.name: pa.array(each.get(f.name, ends), f.type) for f in schema})


def in_duckdb(table: pa.Table, scorer: object, more: dict[str, list[tuple]] | None = None) -> list[tuple]:
    with duckdb.connect() as connection:
        connection.register("arrow", table)
        connection.execute("CREATE TABLE rows AS SELECT * FROM arrow")
        for name, rows in (more or {}).items():
            connection.execute(f'CREATE TABLE {name} ("row" BIGINT, token VARCHAR, "count" INTEGER)')
            connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
        for statement in scorer.setup:
            connection.execute(statement)
        return connection.execute(scorer.query).fetchall()


def in_sqlite(table: pa.Table, scorer: object, more: dict[str, list[tuple]] | None = None) -> list[tuple]:
    connection = sqlite3.connect(":memory:")
    names = ", ".join('"' + n.replace('"', '""') + '"' for n in table.column_names)
    connection.execute(f"CREATE TABLE rows ({names})")
    marks = ", ".join("?" * table.num_columns)
    columns = [c.to_pylist() for c in table.columns]
    connection.executemany(f"INSERT INTO rows VALUES ({marks})", zip(*columns, strict=True))
    for name, rows in (more or {}).items():
        connection.execute(f'CREATE TABLE {name} ("row", token, "count")')
        connection.executemany(f"INSERT INTO {name} VALUES (?, ?, ?)", rows)
    for statement in scorer.setup:
        connection.execute(statement)
    out = connection.execute(scorer.query).fetchall()
    connection.close()
    return out


RUN = {"duckdb": in_duckdb, "sqlite": in_sqlite}


def answers(model: tb.Model, table: pa.Table) -> tuple[np.ndarray, list]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TallybayesWarning)
        return model.predict_proba(table), model.predict(table).tolist()


def check(model: tb.Model, table: pa.Table, dialect: str, more=None, **how) -> None:
    wanted, labels = answers(model, table)
    found = sorted(RUN[dialect](table, model.to_sql("rows", dialect, keep=["id"], **how), more))
    assert [r[0] for r in found] == table["id"].to_pylist()
    assert np.abs(np.array([r[2:] for r in found], dtype=float) - wanted).max() < 1e-9
    assert [r[1] for r in found] == labels


ALL = dict.fromkeys(FIGURES)
SETTINGS = {
    "by default": tb.Settings(),
    "gaussian": tb.Settings(families=dict.fromkeys(FIGURES, "gaussian")),
    "one variance": tb.Settings(families=dict.fromkeys(FIGURES, "gaussian-shared"), prior="uniform"),
    "student": tb.Settings(families=dict.fromkeys(FIGURES, "student"), unseen="reserve"),
    "kernel": tb.Settings(families=dict.fromkeys(FIGURES, "kernel")),
    "silverman": tb.Settings(families=dict.fromkeys(FIGURES, Kernel("silverman"))),
    "bins": tb.Settings(families=dict.fromkeys(FIGURES, "bins"), smoothing=tb.MaximumLikelihood()),
    "equal bins": tb.Settings(families=dict.fromkeys(FIGURES, Bins("frequency", 7)), unseen="reserve"),
    "levels": tb.Settings(families=dict.fromkeys(FIGURES, Levels()), smoothing=tb.MaximumLikelihood()),
    "levels up to 3": tb.Settings(families={"events": Levels(top=3), "bell": "bins"}),
    "poisson": tb.Settings(families={"events": "poisson", "skewed": "gaussian"}),
    "weighted": tb.Settings(weights={"skewed": 0.3, "many": 2.0, "bell": 0.0, "far": 0.0}),
    "impossible": tb.Settings(
        smoothing=tb.MaximumLikelihood(), prior={NAMES[0]: 0.0, NAMES[1]: 0.25, NAMES[2]: 0.75},
        families={**dict.fromkeys(FIGURES, "bins"), "events": "levels"}, weights={"events": 0.01, "atoms": 3.0},
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def table() -> pa.Table:
    return numbers()


@pytest.fixture(scope="module")
def tally(table) -> tb.Tally:
    return tb.count(table, schema_of(table))


@pytest.fixture(scope="module")
def asked(table) -> pa.Table:
    return pa.concat_tables([table.slice(0, 300), odd_rows(table.schema)])


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize("settings", SETTINGS.values(), ids=SETTINGS)
def test_a_database_answers_as_the_model_does(tally, asked, settings, dialect):
    check(tally.model(settings), asked, dialect)


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize("labels", [[3, 1, 3], [True, False, True], [0.5, 1.5, 0.5], [1, "a", 1]])
def test_predictions_are_labels_as_they_went_in(labels, dialect):
    model = tb.fit({"x": ["a", "b", "a"], "y": labels}, target="y")
    rows = pa.table({"id": [0, 1], "x": ["a", "b"]})
    found = [r[1] for r in sorted(RUN[dialect](rows, model.to_sql("rows", dialect, keep=["id"])))]
    assert found == [labels[0], labels[1]] if len({type(v) for v in labels}) == 1 else found == ["1", "a"]


def test_a_date_comes_back_as_a_date():
    model = tb.fit({"x": ["a", "b"], "y": [dt.date(2024, 1, 1), dt.date(2024, 1, 2)]}, target="y")
    rows = pa.table({"x": ["b"]})
    assert in_duckdb(rows, model.to_sql("rows"))[0][1] == dt.date(2024, 1, 2)
    assert in_sqlite(rows, model.to_sql("rows", "sqlite"))[0][1] == "2024-01-02"


def test_an_event_that_no_class_can_have_is_impossible_under_any_weight():
    told = {"n": [0, 0, 1, 2], "y": ["never", "never", "some", "some"]}
    schema = tb.Schema([tb.Column("n", "number")], "y")
    for weight in (0.01, 1.0, 5.0):
        settings = tb.Settings(families={"n": Poisson(shape=0.0)}, weights={"n": weight})
        rows = pa.table({"id": [0, 1, 2], "n": [0, 3, None]})
        for dialect in RUN:
            check(tb.count(told, schema).model(settings), rows, dialect)


def test_every_setting_reaches_the_query():
    """A new field of the settings must be written into the query, or be refused, and then be listed here."""
    known = {
        "smoothing",
        "prior",
        "families",
        "predictive",
        "unseen",
        "floor",
        "weights",
        "lengths",
        "calibrated",
        "isotonic",
        "offsets",
        "lead",
        "classes",
        "corrections",
    }
    assert {f.name for f in fields(tb.Settings)} == known


def test_one_class_and_no_columns():
    model = tb.fit({"x": ["a", "b"], "y": ["only", "only"]}, target="y")
    assert in_duckdb(pa.table({"x": ["b"]}), model.to_sql("rows")) == [("b", "only", 1.0)]
    written = tb.Model.written({"yes": 0.25, "no": 0.75})
    assert (
        in_sqlite(pa.table({"x": [1, 2]}), written.to_sql("rows", "sqlite"))
        == [("no", pytest.approx(0.75), pytest.approx(0.25))] * 2
    )


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize("kind", ["int8", "int64", "float32", "float64", "decimal128(23, 2)", "string"])
def test_a_category_is_known_in_every_type_it_may_be_stored_as(dialect, kind):
    model = tb.fit(
        {"x": [1, 2, 1], "y": ["a", "b", "a"]}, target="y", schema=tb.Schema([tb.Column("x", "category")], "y")
    )
    type_ = pa.decimal128(23, 2) if kind.startswith("decimal") else pa.type_for_alias(kind)
    if kind.startswith("decimal") and dialect == "sqlite":
        pytest.skip("SQLite has no decimals")
    check(
        model,
        pa.table({"id": [0, 1, 2], "x": pa.array([1.0, 2.0, None] if "float" in kind else [1, 2, None]).cast(type_)}),
        dialect,
    )


def blends_and_pairs(table: pa.Table) -> tb.Model:
    """What `fit` chooses by default: several families for a number, and columns that are counted together."""
    schema = schema_of(table)
    sides = [
        tb.Side("few\"`'"),
        tb.Side("bell", "number", cuts=(0.0, 0.5, 2.0)),
        tb.Side("flag"),
        tb.Side("events", "number"),
    ]
    for i, (one, other) in enumerate([(0, 1), (2, 0), (1, 3), (2, 2)]):
        schema = schema.with_column(f"pair {i}", kind="pair", of=(sides[one], sides[other]))
    grouped = tb.Side("few\"`'", groups=[["v1", HOSTILE], ["v2", "v3", "never"], ["v4"]])
    schema = schema.with_column("pair of groups", kind="pair", of=(grouped, sides[1]))
    for side in (
        tb.PairColumn("few\"`'", missing=("v1",)),
        sides[1],
        tb.PairColumn("marked", "number", missing=("?",)),
    ):
        schema = schema.with_column(f"{side.source} (missing)", kind="gap", of=(side,))
    families = {
        "bell": Blend(),
        "far": Blend(shares=(0.5, 0.0, 0.2, 0.0, 0.1)),
        "events": Blend(("poisson", "kernel"), (0.0, 0.7)),
    }
    return tb.count(table, schema).model(tb.Settings(families=families, weights={"pair 0": 0.5, "bell": 0.8}))


@pytest.mark.parametrize("dialect", RUN)
def test_blends_and_pairs_are_written(table, asked, dialect):
    check(blends_and_pairs(table), asked, dialect)


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize("seed", range(2))
def test_corrections_are_written(table, tally, asked, dialect, seed):
    check(corrected(blends_and_pairs(table), seed), asked, dialect)
    for name in ("gaussian", "student", "kernel", "levels", "poisson", "impossible"):
        check(corrected(tally.model(SETTINGS[name]), seed + len(name)), asked, dialect)


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize("family", [Multinomial(), Multinomial(presence=True), Complement()], ids=str)
def test_corrected_words_are_read_from_a_table_of_tokens(dialect, family):
    for seed, settings in enumerate([tb.Settings(), BY_LENGTH]):
        model, rows, tokens = told_by_words(settings, family)
        check(corrected(model, seed), rows, dialect, {"tok": tokens}, tokens={"body": "tok"})


def bent(table: pa.Table, smoothing: object = None) -> tuple[tb.Model, pa.Table]:
    """A model of two classes with an isotonic curve, and rows from one end of it to the other."""
    two = table.filter(pa.array([y != NAMES[2] for y in table["y"].to_pylist()]))
    fitted = tb.fit(two.drop_columns(["id"]), target="y", calibrate="isotonic", pairs=False)
    curve = fitted.settings.isotonic
    assert curve is not None and len(curve.scores) > 2
    settings = fitted.settings if smoothing is None else replace(fitted.settings, smoothing=smoothing)
    return fitted.tally.model(settings), pa.concat_tables([two.slice(0, 300), odd_rows(table.schema)])


@pytest.mark.parametrize("dialect", RUN)
def test_an_isotonic_curve_is_written(table, dialect):
    for smoothing in (
        None,
        tb.MaximumLikelihood(),
    ):  # without smoothing some classes are impossible
        model, rows = bent(table, smoothing)
        check(model, rows, dialect)
    assert not np.allclose(answers(model.tally.model(), rows)[0], answers(model, rows)[0])
    bells = replace(model.settings, families=dict.fromkeys(FIGURES, "gaussian"))
    check(model.tally.model(bells), rows.slice(0, 300), dialect)  # at the ends of the line the scores drown the curve


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize("smoothing", [None, tb.MaximumLikelihood()])
def test_offsets_and_a_bent_lead_are_written(table, asked, dialect, smoothing):
    plain = tb.count(table, schema_of(table)).model()
    settings = tb.Settings(
        smoothing=smoothing or tb.Laplace(), families=dict.fromkeys(FIGURES, "bins"),
        weights=dict.fromkeys(plain.schema.names, 0.3), lead=tb.Lead(1.4, -0.4),
        offsets=dict(zip(map(str, plain.classes), (0.7, -0.2, -0.5), strict=True)),
    )  # fmt: skip
    model = plain.tally.model(settings)
    check(model, asked, dialect)
    assert not np.allclose(answers(plain.tally.model(replace(settings, lead=None)), asked)[0], answers(model, asked)[0])
    three = tb.count({"x": list("abc") * 2, "y": [1, 2, 3] * 2}, tb.Schema([tb.Column("x", "category")], "y"))
    tie = three.model(tb.Settings(lead=tb.Lead(2.0, 0.5)))
    check(tie, pa.table({"id": [0, 1], "x": [None, "a"]}), dialect)  # two or three classes are best together


@pytest.mark.parametrize("dialect", RUN)
def test_the_default_fit_is_written(dialect):
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, 600)
    a = rng.integers(0, 3, 600)
    rows = {
        "a": [f"a{v}" for v in a],
        "b": [f"b{v}" for v in (a + y) % 3],
        "x": rng.normal(y, 1).tolist(),
        "y": y.tolist(),
    }
    model = tb.fit(rows, target="y")
    assert any(c.kind == "pair" for c in model.schema.counted) and model.settings.corrections
    check(model, pa.table({"id": list(range(600)), **{n: rows[n] for n in ("a", "b", "x")}}), dialect)


# ---- words


def told_by_words(settings: tb.Settings, family: object) -> tuple[tb.Model, pa.Table, list[tuple]]:
    """A model of texts and a number, rows for it, and their tokens."""
    rng = np.random.default_rng(3)
    words = ["spam", "ham", "it's", '"q"', "naïve", *(f"w{i}" for i in range(120))]
    y = rng.integers(0, 2, 80)
    bodies = [" ".join(rng.choice(words, 6)) + (" spam spam" if v else "") for v in y]
    told = {"body": bodies, "y": y.tolist(), "x": rng.normal(y, 1).tolist()}
    schema = tb.Schema([tb.Column("body", "text"), tb.Column("x", "number")], target="y")
    model = tb.count(told, schema).model(replace(settings, families={"body": family}))
    rows = pa.table(
        {"id": list(range(83)), "body": [*bodies, "", None, "unknown words spam"], "x": [*told["x"], 0.0, 1.0, None]}
    )
    cut = schema["body"].text
    tokens = [(i, t, 1) for i, text in enumerate(rows["body"].to_pylist()) for t in cut.tokens(text or "")]
    return model, rows, [*tokens, (0, "spam", 0)]


BY_LENGTH = tb.Settings(weights={"body": 0.5}, unseen="reserve", lengths={"body": -0.75})


@pytest.mark.parametrize("dialect", RUN)
@pytest.mark.parametrize("family", [
    Multinomial(), Multinomial(presence=True), Multinomial(idf=True), BernoulliWords(), Complement(),
], ids=str)  # fmt: skip
@pytest.mark.parametrize("settings", [tb.Settings(), BY_LENGTH], ids=["", "reserve"])
def test_texts_are_read_from_a_table_of_tokens(dialect, family, settings):
    model, rows, tokens = told_by_words(settings, family)
    check(model, rows, dialect, {"tok": tokens}, tokens={"body": "tok"})


def test_a_word_that_is_impossible_counts_once(table):
    schema = tb.Schema([tb.Column("body", "text")], target="y")
    model = tb.count({"body": ["good good", "bad"], "y": ["a", "b"]}, schema).model(
        tb.Settings(smoothing=tb.MaximumLikelihood())
    )
    rows = pa.table({"id": [0, 1, 2], "body": ["good", "bad bad", "good bad"]})
    tokens = [(0, "good", 1), (1, "bad", 2), (2, "good", 1), (2, "bad", 1)]
    for dialect in RUN:
        check(model, rows, dialect, {"tok": tokens}, tokens={"body": "tok"})


# ---- what cannot be written


def test_refusals_name_the_column_and_a_way_out(tally):
    model = tally.model()
    with pytest.raises(tb.SettingsError, match=r"did you mean 'duckdb'"):
        model.to_sql("rows", "duckdbb")
    with pytest.raises(tb.SettingsError, match="'x\\\\x00y' holds a NUL character"):
        model.to_sql("x\0y")
    with pytest.raises(tb.SettingsError, match="no text or bag"):
        model.to_sql("rows", tokens={"many": "t"})
    with pytest.raises(tb.SettingsError, match=r"'prediction' of the table(?s:.*)keep="):
        model.to_sql("rows", keep=["id", "Prediction".lower()])
    with pytest.raises(tb.SettingsError, match="variables"):
        model.to_sql("${rows}", "spark")
    text = tb.count({"t": ["a b"], "y": ["a"]}, tb.Schema([tb.Column("t", "text")], "y")).model()
    for dialect in ("sqlite", "spark"):
        refused = rf"(?s)'t' is a text .*{dialect}.*tallybayes predict.*tokens={{'t': 'table'}}"
        with pytest.raises(tb.SettingsError, match=refused):
            text.to_sql("rows", dialect)
    others = {"a+": {"pattern": "a+"}, "accents": {"accents": False}, "stem": {"stem": "english"}}
    for why, how in {**others, "hashed": {"hash_bits": 8}}.items():
        column = tb.Column("t", "text", text=tb.Tokeniser(**how))
        with pytest.raises(tb.SettingsError, match=rf"(?s){re.escape(why)}.*tallybayes predict"):
            tb.count({"t": ["a b"], "y": ["a"]}, tb.Schema([column], "y")).model().to_sql("rows")
    value = tb.fit({"x": ["a\0b", "c"], "y": ["a", "b"]}, target="y")
    with pytest.raises(tb.SettingsError, match="NUL"):
        value.to_sql("rows", "postgres")
    dates = tb.fit({"when": [dt.date(2024, 1, d) for d in (1, 2, 3)], "y": ["a", "b", "a"]}, target="y")
    with pytest.raises(tb.SettingsError, match=r"(?s)'when.days' is a part of a date.*tallybayes predict"):
        dates.to_sql("rows", "sqlite")
    for name in ("Rows", ("main", "ROWS"), "", "\0", ()):
        with pytest.raises(tb.SettingsError, match=r"take the place of|table of weights would be called|NUL"):
            model.to_sql("rows", weights_table=name)
    with pytest.raises(tb.SettingsError, match="1 to 63 bytes"):  # PostgreSQL would cut it short
        model.to_sql("rows", "postgres", weights_table="ü" * 32)
    events = tb.Settings(families={"events": "poisson"}, predictive=True)
    with pytest.raises(tb.SettingsError, match="'events' is scored by the counts themselves"):
        tally.model(events).to_sql("rows")


@pytest.fixture(scope="module")
def duck():
    with duckdb.connect() as connection:
        yield connection


@examples(60)
@given(
    st.text(alphabet=st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12) | st.just(HOSTILE)
)
@example("TRUE")
def test_any_text_is_a_literal_and_a_name(duck, text):
    d = DIALECTS["duckdb"]
    assert duck.execute(f"SELECT {d.text(text)}").fetchone() == (text,)
    if text.strip():
        assert duck.execute(f"SELECT x.{d.name(text)} FROM (SELECT 1 AS {d.name(text)}) AS x").fetchone() == (1,)
    connection = sqlite3.connect(":memory:")
    d = DIALECTS["sqlite"]
    assert connection.execute(f"SELECT {d.text(text)}").fetchone() == (text,)
    # of a table, as in our queries: in a subquery SQLite itself does not find a column called "TRUE"
    connection.execute(f"CREATE TABLE x ({d.name(text)} INTEGER)")
    connection.execute("INSERT INTO x VALUES (1)")
    assert connection.execute(f"SELECT t.{d.name(text)} AS {d.name(text)} FROM x AS t").fetchone() == (1,)
    connection.close()


@examples(60)
@given(st.floats(allow_nan=False, allow_infinity=False))
def test_any_number_is_a_literal_to_the_last_bit(duck, value):
    assert duck.execute(f"SELECT {DIALECTS['duckdb'].number(value)}").fetchone() == (value,)


@examples(40)
@given(
    st.integers(0, 10**6),
    st.sampled_from(["kernel", "bins", "levels"]),
    st.sampled_from(["normal", "counts", "atoms", "tiny", "huge"]),
)
def test_steps_say_what_the_cells_say(seed, family, shape):
    """Everywhere on the line: at edges and one float64 beside them, at points, and at the ends."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, 60)
    x = {
        "normal": lambda: rng.normal(3 * y, 1), "counts": lambda: rng.poisson(2 + y).astype(float),
        "atoms": lambda: np.where(rng.random(60) < 0.5, 1.5, rng.normal(y, 1)),
        "tiny": lambda: rng.normal(y, 1) * 1e-310, "huge": lambda: rng.normal(y, 1) * 1e305,
    }[shape]()  # fmt: skip
    rows = {"x": x.tolist(), "y": y.tolist()}
    column = tb.Column("x", "number", cells=tb.Cells.fitted(x))
    model = tb.count(rows, tb.Schema([column], "y")).model(tb.Settings(families={"x": family}))
    form = model.beliefs["x"].form()
    edges = np.concatenate([form.general[0], x, form.points[0], [0.0, 1.7e308, -1.7e308, 5e-324]])
    asked = np.concatenate([edges, np.nextafter(edges, np.inf), np.nextafter(edges, -np.inf), rng.normal(0, 10, 50)])
    asked = asked[np.isfinite(asked)]
    [(found, share)] = parts_of(DIALECTS["duckdb"], column, model.beliefs["x"], (), None)
    assert isinstance(found, SlotWeights) and share == 1.0
    asked_for = pa.table({"x": asked})  # noqa: F841 - DuckDB finds it by its name
    slots = duckdb.sql(f"SELECT {found.slot.replace('{x}', 'x')} FROM asked_for").fetchall()
    said = found.weights[[found.names.index(slot) for (slot,) in slots]]
    log = model.parts({"x": asked.tolist()})["x"]
    assert np.abs((said[:, 0] - said[:, 1]) - (log[:, 0] - log[:, 1])).max() < 1e-9


# ---- texts, times and odd values that a database reads by itself

TEXTS = (
    "ΑΣ. ΟΔΟΣ'Σ ΣΑΣ ΣΣ a.Σ Σ ΆΣ\u0345 ΑΣ\u00ad\u0301x ǅΣ", "İstanbul DİL straße STRASSE ẞß K\u212aelvin Ǆ",
    "日本語 テスト ab ١٢٣ a_b 12", "ÀÉÎ naïve e\u0301a \u2160 \u24b6x 𐐀𐐁 𝐀𝐁", "", " \t",
    "ab\nAB\x1cCd\u00a0ef\u2028gh\u3000ij",
    "it's \"q\" \\ $1 [^a] %", "the cat sat on the mat", "The spam spam eggs", "x", "THE",
)  # fmt: skip
CUTS = (
    {}, {"lower": False, "stop": ("ab", "ΑΣ")}, {"ngrams": (1, 3)}, {"ngrams": (2, 2), "stop": "english"},
    {"chars": (2, 4)}, {"chars": (1, 2), "across": True},
)  # fmt: skip


def cut_by_the_database(how: dict) -> tuple[tb.Model, pa.Table]:
    """A model of texts, awkward ones, and rows for it."""
    column = tb.Column("t", "text", text=tb.Tokeniser(**how), missing=["none"])
    told = {"t": [*TEXTS, *TEXTS[::2], "spam"], "y": [i % 3 % 2 for i in range(len(TEXTS) * 3 // 2 + 1)]}
    family = BernoulliWords() if how.get("ngrams") == (1, 3) else Multinomial()
    settings = tb.Settings(unseen="reserve", families={"t": family}, lengths={"t": -0.5})
    asked = [*TEXTS, None, "none", "Words that nobody knows", "Spam"]
    rows = pa.table({"id": list(range(len(asked))), "t": asked})
    return tb.count(told, tb.Schema([column], "y")).model(settings), rows


@pytest.mark.parametrize("how", CUTS, ids=str)
def test_duckdb_cuts_texts_as_the_model_does(how):
    check(*cut_by_the_database(how), "duckdb")


def times_of_all_types() -> tuple[tb.Model, dict[str, pa.Table]]:
    """A model of all parts of a date, and its rows as the types that a table may have them in."""
    micro = [-1, 0, 1, -86_400_000_000, 1_717_178_400_123_456, -2_208_988_800_000_000, 253_402_300_799_999_999, None]
    micro += [86_399_999_999, 1_711_852_200_000_000, -62_135_596_800_000_000, 1_717_178_400_000_000, -1_999_999]
    plain = pa.array(micro, pa.timestamp("us"))
    days = pa.array([None if m is None else m // 86_400_000_000 for m in micro], pa.int32()).cast(pa.date32())
    texts = [None if v is None else v.isoformat() for v in plain.to_pylist()]
    zones = [None if t is None else f"{t[:-3]}+05:30" if t.endswith(":00") else f"{t}Z" for t in texts]
    types = {"timestamp": plain, "zone": plain.cast(pa.timestamp("us", "UTC")), "date": days}
    types |= {"text": pa.array(texts), "text with zones": pa.array(zones)}
    rows = {name: pa.table({"id": list(range(len(micro))), "when": column}) for name, column in types.items()}
    parts = [
        tb.Column(f"when.{p}", "number" if p == "days" else "category", source="when", part=p, missing=["1900-01-01"])
        for p in ("days", "weekday", "month", "hour")
    ]
    sides = (tb.Side("when", "number", part="days", cuts=(0.0, 100.5)), tb.Side("when", part="weekday"))
    parts += [tb.Column("both", "pair", of=sides), tb.Column("none", "gap", of=sides[:1])]
    told = {"when": [*plain.to_pylist()] * 2, "y": [i % 3 for i in range(2 * len(micro))]}
    settings = tb.Settings(families={"when.days": "gaussian"}, unseen="reserve")
    return tb.count(told, tb.Schema(parts, "y")).model(settings), rows


def test_duckdb_takes_times_apart():
    model, rows = times_of_all_types()
    for table in rows.values():
        check(model, table, "duckdb")


def odd_categories() -> tuple[tb.Model, dict[str, pa.Table]]:
    """Categories that were numbers, and tables that have them as numbers or as texts."""
    inf = float("inf")
    known = [0.1, 1e-7, 1e300, 2.0**65, 1 / 3, 123456789012345.67, -0.0, inf, 5e-324, "0.10", "1e-7"]
    schema = tb.Schema([tb.Column("x", "category")], "y")
    told = {"x": known * 2, "y": [i % 3 for i in range(2 * len(known))]}
    model = tb.count(told, schema).model(tb.Settings(unseen="reserve"))
    numbers = [*(v for v in known if not isinstance(v, str)), 0.1 + 2**-55, -inf, None, float("nan"), 1e19, 7.0]
    texts = ["0.1", "0.10", "1e-07", "1e-7", "inf", "nan", "", "0", None, "Ω"]
    tables = {"numbers": pa.array(numbers, pa.float64()), "texts": pa.array(texts)}
    return model, {name: pa.table({"id": list(range(len(c))), "x": c}) for name, c in tables.items()}


@pytest.mark.parametrize("dialect", RUN)
def test_categories_that_are_numbers_are_found_by_their_size(dialect):
    model, tables = odd_categories()
    for table in tables.values():
        check(model, table, dialect)


def test_sqlite_compares_letter_by_letter_whatever_the_column_says():
    model = tb.fit({"x": ["a", "B", "a"], "y": ["p", "q", "p"]}, target="y", calibrate=False)
    with contextlib.closing(sqlite3.connect(":memory:")) as db:
        db.execute("CREATE TABLE rows (x TEXT COLLATE NOCASE)")
        db.execute("INSERT INTO rows VALUES ('A')")
        found = db.execute(model.to_sql("rows", "sqlite").query).fetchall()
    assert found[0][2:] == pytest.approx(model.predict_proba({"x": "A"})[0].tolist())


# ---- the table of weights


def two_models() -> tuple[list[tb.Model], pa.Table]:
    """Two models of the same columns with large tables that say different things, and rows for both."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 900)
    rows = pa.table({"id": range(900), "v": [f"v{i}" for i in (rng.integers(0, 200, 900) + 17 * y) % 200]})
    schema = tb.Schema([tb.Column("v", "category")], "y")
    told = [rows.append_column("y", pa.array(labels)) for labels in (y, rng.permutation(y))]
    return [tb.count(each, schema).model() for each in told], rows.slice(0, 200)


def right(model: tb.Model, rows: pa.Table, found: list) -> bool:
    """Whether rows that came back are the model's answers."""
    got = np.array([[float(v) for v in row[2:]] for row in sorted(found, key=lambda row: int(row[0]))])
    return got.shape == (len(rows), len(model.classes)) and bool(np.abs(got - model.predict_proba(rows)).max() < 1e-9)


class InDuckdb:
    """A database of its own that runs scripts until an error, and then goes on with the next of them."""

    def __init__(self, table: pa.Table, path: object = ":memory:") -> None:
        self.db = duckdb.connect(str(path))
        self.db.register("given", table)
        self.db.execute("CREATE TABLE rows AS SELECT * FROM given")
        self.wrong = duckdb.Error

    def run(self, *statements: str) -> list[tuple]:
        for statement in statements:
            self.db.execute(statement)
        return self.db.fetchall()


class InSqlite(InDuckdb):
    def __init__(self, table: pa.Table, path: object = ":memory:") -> None:
        self.db = sqlite3.connect(str(path), isolation_level=None)
        self.db.execute("CREATE TABLE rows (id, v)")
        self.db.executemany("INSERT INTO rows VALUES (?, ?)", [(r["id"], r["v"]) for r in table.to_pylist()])
        self.wrong = sqlite3.Error

    def run(self, *statements: str) -> list[tuple]:
        for statement in statements:
            script = statement.startswith("BEGIN;")
            found = self.db.executescript(statement) if script else self.db.execute(statement)
        return found.fetchall()


@pytest.mark.parametrize(("dialect", "kind"), [("duckdb", InDuckdb), ("sqlite", InSqlite)])
def test_each_of_two_models_in_one_database_answers_as_itself(dialect, kind):
    (one, other), rows = two_models()
    db = kind(rows)
    first, second = (m.to_sql("rows", dialect, keep=["id"]) for m in (one, other))
    for _ in range(2):  # a script may be run again
        assert right(one, rows, db.run(first.transaction, first.query))
        assert right(other, rows, db.run(second.transaction, second.query))
    assert right(one, rows, db.run(first.query)) and not right(other, rows, db.run(first.query))
    later = one.update(rows.append_column("y", pa.array([1] * len(rows))))
    of, now = (m.to_sql("rows", dialect, keep=["id"], weights_table="w") for m in (one, later))
    assert right(one, rows, db.run(of.transaction, of.query))
    assert right(later, rows, db.run(now.transaction, now.query))  # replaced
    with pytest.raises(db.wrong, match="slot_"):  # and never mistaken for what it was
        db.run(of.query)
    db.run("CREATE TABLE mine (x INTEGER)", "SELECT 1")
    theirs = one.to_sql("rows", dialect, weights_table="mine")
    with pytest.raises(db.wrong, match="tb_column"):
        db.run(theirs.transaction, "SELECT 1")
    for statement in [*theirs.setup, "COMMIT", theirs.query]:  # as a program does that goes on after an error
        with contextlib.suppress(db.wrong):
            assert db.run(statement) == []
    with contextlib.suppress(db.wrong):
        db.run("ROLLBACK")
    assert db.run("SELECT x FROM mine") == []  # somebody else's table is left alone
    db.db.close()


@pytest.mark.parametrize(("dialect", "kind"), [("duckdb", InDuckdb), ("sqlite", InSqlite)])
def test_a_script_that_ends_midway_leaves_the_old_weights_or_gives_no_answer(dialect, kind, tmp_path):
    (one, other), rows = two_models()
    of, now = (m.to_sql("rows", dialect, keep=["id"], weights_table="w") for m in (one, other))
    assert len(now.setup) > 4
    last = len(now.setup)
    for stop in (0, 2, last - 2, last - 1, last):
        path = tmp_path / f"{stop}.db"
        db = kind(rows, path)
        db.run(of.transaction, "SELECT 1")
        db.run("BEGIN", *now.setup[:stop], "SELECT 1")
        db.db.close()  # the connection is gone before the transaction ends
        again = duckdb.connect(str(path)) if dialect == "duckdb" else sqlite3.connect(path)
        assert right(one, rows, again.execute(of.query).fetchall())
        for statement in now.setup[:stop]:  # without a transaction
            again.execute(statement)
        try:
            found = again.execute(now.query).fetchall()
        except db.wrong:
            found = []
        assert right(other, rows, found) if stop == len(now.setup) else found == []
        again.close()


# ---- PostgreSQL


def postgres_programs() -> Path | None:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb")) if Path("/usr/lib/postgresql").exists() else []
    if found:
        return found[-1].parent
    return Path(shutil.which("initdb")).parent if shutil.which("initdb") else None


@pytest.fixture(scope="module")
def psql():
    """A function that runs SQL in a server of its own, which listens on a socket in a temporary folder only."""
    programs = postgres_programs()
    if programs is None or shutil.which("psql") is None:
        pytest.skip("there is no PostgreSQL server on this machine (Debian: apt install postgresql)")
    user: list[str] = []
    folder = tempfile.mkdtemp(prefix="tallybayes-pg-")
    if os.geteuid() == 0:  # the server refuses to run as root
        if shutil.which("runuser") is None or subprocess.run(["id", "postgres"], capture_output=True).returncode:
            pytest.skip("PostgreSQL does not run as root, and there is no user postgres")
        shutil.chown(folder, "postgres", "postgres")
        user = ["runuser", "-u", "postgres", "--"]
    data = os.path.join(folder, "data")

    def run(*command: str, given: str | None = None) -> str:
        done = subprocess.run(
            [*user, *command], input=given, capture_output=True, text=True, cwd=folder, encoding="utf-8"
        )
        assert done.returncode == 0, done.stderr[-2000:]
        return done.stdout

    run(
        str(programs / "initdb"), "-D", data, "-A", "trust", "-U", "test", "-E", "UTF8", "--no-sync", "--locale=C.UTF-8"
    )
    options = f"-c listen_addresses='' -c unix_socket_directories={folder} -c fsync=off -c autovacuum=off"
    run(str(programs / "pg_ctl"), "-D", data, "-l", os.path.join(folder, "log"), "-w", "-o", options, "start")
    try:
        yield lambda sql: run(
            "psql",
            "-X",
            "-q",
            "--csv",
            "-t",
            "-v",
            "ON_ERROR_STOP=1",
            "-h",
            folder,
            "-U",
            "test",
            "postgres",
            given=sql,
        )
    finally:
        run(str(programs / "pg_ctl"), "-D", data, "-m", "immediate", "stop")
        shutil.rmtree(folder, ignore_errors=True)


def in_postgres(psql, table: pa.Table, scorer: object, backslashes: str = "on", more: str = "") -> list[list[str]]:
    d = DIALECTS["postgres"]
    types = {
        "string": "TEXT",
        "double": "DOUBLE PRECISION",
        "int64": "BIGINT",
        "bool": "BOOLEAN",
        "decimal128(23, 2)": "NUMERIC",
        "timestamp[us]": "TIMESTAMP",
        "timestamp[us, tz=UTC]": "TIMESTAMPTZ",
        "date32[day]": "DATE",
    }
    columns = ", ".join(f"{d.name(f.name)} {types[str(f.type)]}" for f in table.schema)

    def value(v: object) -> str:
        if isinstance(v, (str, dt.date)):
            return d.text(v if isinstance(v, str) else v.isoformat())
        return "NULL" if v is None else "'NaN'" if v != v else d.literal(v)

    rows = ",\n".join("(" + ", ".join(map(value, r.values())) + ")" for r in table.to_pylist())
    sql = f"SET standard_conforming_strings = {backslashes};\nDROP TABLE IF EXISTS rows, tok;\n"
    out = psql(f"{sql}CREATE TABLE rows ({columns});\nINSERT INTO rows VALUES {rows};\n{more}{scorer}")
    return sorted(csv.reader(io.StringIO(out)), key=lambda row: int(row[0]))


def check_postgres(psql, model: tb.Model, table: pa.Table, backslashes: str = "on", more: str = "", **how) -> None:
    wanted, labels = answers(model, table)
    found = in_postgres(psql, table, model.to_sql("rows", "postgres", keep=["id"], **how), backslashes, more)
    assert np.abs(np.array([r[2:] for r in found], dtype=float) - wanted).max() < 1e-9
    assert [r[1] for r in found] == [str(label) for label in labels]


def near(asked: pa.Table) -> pa.Table:
    """Without the ends of the line: PostgreSQL refuses to overflow."""
    return asked.filter(pa.array([abs(v or 0) < 1e100 for v in asked["bell"].to_pylist()]))


@pytest.mark.parametrize(
    "settings", [SETTINGS[n] for n in ("by default", "kernel", "student", "impossible", "poisson")]
)
def test_postgresql_answers_as_the_model_does(psql, tally, asked, settings):
    for backslashes in ("on", "off"):
        check_postgres(psql, tally.model(settings), near(asked), backslashes)


def test_postgresql_knows_corrections(psql, table, tally, asked):
    check_postgres(psql, corrected(blends_and_pairs(table), 3), near(asked))
    for name in ("gaussian", "student", "kernel", "levels", "poisson"):
        check_postgres(psql, corrected(tally.model(SETTINGS[name]), len(name)), near(asked))


def test_postgresql_knows_blends_pairs_and_curves(psql, table, asked):
    check_postgres(psql, blends_and_pairs(table), near(asked))
    model, rows = bent(table)
    check_postgres(psql, model, near(rows))


@pytest.mark.parametrize("family", [Multinomial(), BernoulliWords()], ids=str)
def test_postgresql_reads_tokens_and_lengths(psql, family):
    model, rows, tokens = told_by_words(BY_LENGTH, family)
    d = DIALECTS["postgres"]
    listed = ", ".join(f"({i}, {d.text(token)}, {count})" for i, token, count in tokens)
    more = f'CREATE TABLE tok ("row" BIGINT, token TEXT, "count" INTEGER);\nINSERT INTO tok VALUES {listed};\n'
    check_postgres(psql, model, rows, more=more, tokens={"body": "tok"})


def test_postgresql_cuts_texts_and_times_as_the_model_does(psql):
    for how in CUTS:
        check_postgres(psql, *cut_by_the_database(how))
    model, rows = times_of_all_types()
    for table in rows.values():
        check_postgres(psql, model, table, more="SET TIME ZONE 'Europe/Berlin';\nSET DateStyle = 'SQL, DMY';\n")
    model, tables = odd_categories()
    for table in tables.values():
        check_postgres(psql, model, table)


def test_postgresql_holds_two_models(psql):
    (one, other), rows = two_models()
    listed = ", ".join(f"({r['id']}, '{r['v']}')" for r in rows.to_pylist())
    psql(f"DROP TABLE IF EXISTS rows;\nCREATE TABLE rows (id BIGINT, v TEXT);\nINSERT INTO rows VALUES {listed};")

    def said(script: object) -> list[list[str]]:
        return list(csv.reader(io.StringIO(psql(str(script)))))

    first, second = (m.to_sql("rows", "postgres", keep=["id"]) for m in (one, other))
    for _ in range(2):
        assert right(one, rows, said(first)) and right(other, rows, said(second))
    assert right(one, rows, said(f"{first.query};"))
    of, now = (m.to_sql("rows", "postgres", keep=["id"], weights_table="w") for m in (one, other))
    assert right(one, rows, said(of))
    half = "".join(f"{s};\n" for s in now.setup[:-1])
    assert right(one, rows, said(f"BEGIN;\n{half}ROLLBACK;\n{of.query};"))
    assert right(other, rows, said(now))
    with pytest.raises(AssertionError, match="slot_"):
        said(f"{of.query};")
    psql("CREATE TABLE mine (x INTEGER)")
    with pytest.raises(AssertionError, match="tb_column"):
        said(one.to_sql("rows", "postgres", weights_table="mine"))
    assert said("SELECT count(*) FROM mine;") == [["0"]]
