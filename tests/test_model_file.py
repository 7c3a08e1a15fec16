"""The model file: what goes in comes out to the last bit, SQL can add it, and damage is told from content."""

from __future__ import annotations

import datetime as dt
import pathlib
from typing import Any

import duckdb
import numpy as np
from hypothesis import given
from strategies import KINDS, examples, schema, tables, tallies

import tallybayes as tb
from tallybayes import modelfile

RNG = np.random.default_rng(7)
N = 60
ROWS: dict[str, Any] = {
    "colour": [["red", "blue", None, "green"][i % 4] for i in range(N)],
    "size": [None if i % 11 == 0 else float(x) for i, x in enumerate(RNG.normal(size=N) + np.arange(N) % 2)],
    "count": RNG.poisson(3, size=N).tolist(),
    "note": [["free offer now", "meeting at noon, offer", "", None][(i * 7 // 3) % 4] for i in range(N)],
    "words": [[["a", "b"], ["b", "b", "c"], [], None][(i * 5 // 2) % 4] for i in range(N)],
    "point": RNG.normal(size=(N, 3)).tolist(),
    "day": [dt.date(2024, 1 + i % 12, 1 + i % 28) for i in range(N)],
    "label": [["ham", "spam", "ham"][i % 3] for i in range(N)],
}
SCHEMA = tb.Schema(
    [
        tb.Column("colour", "category", values=["red", "blue", "green", "black"]),
        tb.Column("size", "number", cells=tb.Cells.fitted(RNG.normal(size=500))),
        tb.Column("count", "number", cells=tb.Cells.fitted(np.arange(12.0).repeat(10))),
        tb.Column("note", "text", levels=2),
        tb.Column("words", "bag", levels=3),
        tb.Column("point", "vector", width=3),
        tb.Column("day", "date"),
        tb.Column("id", "ignore", reason="a number of its own in every row"),
    ],
    target="label",
)
TALLY = tb.count(ROWS, SCHEMA)


def again(model: tb.Model) -> tb.Model:
    return modelfile.from_bytes(modelfile.to_bytes(model))


def test_a_saved_model_answers_the_same_to_the_last_bit(tmp_path: pathlib.Path) -> None:
    model = TALLY.model()
    model.save(tmp_path / "m.tb.parquet")
    loaded = tb.load(tmp_path / "m.tb.parquet")
    assert loaded.tally == TALLY and loaded.tally.digest == TALLY.digest
    assert loaded.schema == SCHEMA and loaded.schema["id"].reason == "a number of its own in every row"
    assert loaded.settings == model.settings and repr(loaded) == repr(model)
    assert np.array_equal(loaded.predict_log_proba(ROWS), model.predict_log_proba(ROWS))
    assert [p.name for p in tmp_path.iterdir()] == ["m.tb.parquet"]


@given(tallies(KINDS, receipts=True))
@examples(25)
def test_every_tally_comes_back_equal(tally: tb.Tally) -> None:
    back = modelfile.tally_from_bytes(modelfile.tally_to_bytes(tally))
    assert back == tally and back.digest == tally.digest and back.schema == tally.schema
    assert back.skipped == tally.skipped


def summed(a: pathlib.Path, b: pathlib.Path, to: pathlib.Path, cast: str = "::BIGINT") -> None:
    amounts = ", ".join(f"SUM({n}){cast} AS {n}" for n in ("n", "x", "xx", "documents", "rows"))
    duckdb.sql(
        f"COPY (SELECT \"column\", sheet, slot, class, limb, {amounts} FROM (SELECT * FROM '{a}' UNION ALL "
        f"SELECT * FROM '{b}') GROUP BY ALL) TO '{to}' (FORMAT parquet)"
    )


@given(tables(), tables())
@examples(12)
def test_two_files_add_up_by_plain_sql(one: Any, two: Any) -> None:
    import tempfile

    under = schema()
    a, b = one.tally(under), two.tally(under, weighted=True)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        a.save(folder / "a.parquet")
        b.save(folder / "b.parquet")
        summed(folder / "a.parquet", folder / "b.parquet", folder / "sum.parquet")
        stored = modelfile.load_stored(folder / "sum.parquet", like=folder / "a.parquet")
    assert stored.tally == a + b and stored.tally.digest == (a + b).digest
