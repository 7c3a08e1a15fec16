"""The model file: what goes in comes out to the last bit, SQL can add it, and damage is told from content."""

from __future__ import annotations

import datetime as dt
import json
import os
import pathlib
import subprocess
import sys
from typing import Any

import duckdb
import numpy as np
import pytest
from hypothesis import given
from strategies import KINDS, examples, schema, tables, tallies

import tallybayes as tb
from tallybayes.store import model_file
from tallybayes.store.sealed import seal

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
    return model_file.from_bytes(model_file.to_bytes(model))


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
    back = model_file.tally_from_bytes(model_file.tally_to_bytes(tally))
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
        stored = model_file.load_stored(folder / "sum.parquet", like=folder / "a.parquet")
    assert stored.tally == a + b and stored.tally.digest == (a + b).digest


def test_pandas_can_add_files_too(tmp_path: pathlib.Path) -> None:
    import pandas as pd

    half = {k: v[: N // 2] for k, v in ROWS.items()}
    a, b = tb.count(half, SCHEMA), TALLY
    a.save(tmp_path / "a.parquet")
    b.save(tmp_path / "b.parquet")
    both = pd.concat([pd.read_parquet(tmp_path / "a.parquet"), pd.read_parquet(tmp_path / "b.parquet")])
    both.groupby(["column", "sheet", "slot", "class", "limb"], as_index=False).sum().to_parquet(
        tmp_path / "sum.parquet"
    )
    assert tb.load(tmp_path / "sum.parquet", like=tmp_path / "a.parquet").tally == a + b


def test_sums_that_duckdb_makes_floats_of_are_exact_or_refused(tmp_path: pathlib.Path) -> None:
    TALLY.save(tmp_path / "a.parquet")
    summed(tmp_path / "a.parquet", tmp_path / "a.parquet", tmp_path / "sum.parquet", cast="")
    assert tb.load(tmp_path / "sum.parquet", like=TALLY.model()).tally == TALLY + TALLY
    huge = 'SELECT "column", sheet, slot, class, limb, 9007199254740995.0::DOUBLE AS n, x, xx, documents, rows FROM'
    duckdb.sql(f"COPY ({huge} '{tmp_path}/a.parquet') TO '{tmp_path}/huge.parquet' (FORMAT parquet)")
    with pytest.raises(tb.ModelFileError, match="BIGINT"):
        tb.load(tmp_path / "huge.parquet", like=TALLY.model())


@pytest.mark.parametrize(
    ("select", "message"),
    [
        ("SELECT sheet, slot, class, limb, n", "no column 'column'"),
        ("SELECT 'other' AS \"column\", sheet, slot, class, limb, n, x, xx, documents, rows", "'other'"),
        ('SELECT "column", sheet, NULL AS slot, class, limb, n', "slot"),
        ('SELECT "column", sheet, slot, class, limb, n::VARCHAR AS n', "'n'"),
        ('SELECT "column", sheet, slot, class, 4000::INT AS limb, n', "limb"),
        ('SELECT "column", sheet, slot, class, limb, n + 4611686018427387904 AS n', "too large"),
    ],
)
def test_tables_that_are_no_tally_are_refused(select: str, message: str, tmp_path: pathlib.Path) -> None:
    TALLY.save(tmp_path / "a.parquet")
    duckdb.sql(f"COPY ({select} FROM '{tmp_path}/a.parquet') TO '{tmp_path}/b.parquet' (FORMAT parquet)")
    with pytest.raises(tb.ModelFileError, match=message):
        tb.load(tmp_path / "b.parquet", like=TALLY.model())


def test_sql_reads_the_counts(tmp_path: pathlib.Path) -> None:
    TALLY.save(tmp_path / "a.parquet")
    found = duckdb.sql(
        f"SELECT slot, class, SUM(n * pow(2, 32 * limb)) FROM '{tmp_path}/a.parquet' "
        "WHERE \"column\" = 'colour' AND sheet = 'values' GROUP BY ALL ORDER BY ALL"
    ).fetchall()
    by_hand: dict[tuple[str, str], float] = {}
    for colour, label in zip(ROWS["colour"], ROWS["label"], strict=True):
        if colour is not None:
            by_hand[colour, label] = by_hand.get((colour, label), 0) + 1
    assert found == [(c, y, n) for (c, y), n in sorted(by_hand.items())]


# ---- settings

F = tb.families
SETTINGS = [
    tb.Settings(),
    tb.Settings(smoothing=tb.Laplace(0.25), prior="uniform", unseen="reserve", floor=tb.Floor("global", 1e-6)),
    tb.Settings(smoothing={"colour": tb.JelinekMercer(0.3), "note": tb.AbsoluteDiscount(0.4, kneser_ney=True)}),
    tb.Settings(smoothing={"colour": tb.Epsilon(1e-9), "words": tb.MaximumLikelihood(), "note": tb.GoodTuring()}),
    tb.Settings(
        smoothing={"colour": tb.Dirichlet({"red": 2, "mauve": 0.5}, rest=0.1)}, prior={"ham": 0.9, "spam": 0.1}
    ),
    tb.Settings(smoothing={"colour": tb.Dirichlet({"ham": {"red": 2}, "spam": {"red": 1, "blue": 3}})}),
    tb.Settings(prior=tb.Dirichlet({"ham": 3, "spam": 1.5, "eggs": 2})),
    tb.Settings(families={"size": "kernel", "count": "poisson", "note": "bernoulli", "point": "student"}),
    tb.Settings(families={"size": F.Bins("width", 5), "count": F.Levels(top=4), "note": F.Complement(norm=True)}),
    tb.Settings(families={"size": F.Kernel(0.3), "words": F.Levels(), "note": F.BernoulliWords(F.Selection(top=2))}),
    tb.Settings(families={"size": F.Gaussian("shared", unbiased=True), "count": F.Poisson(1, 2)}, predictive=True),
    tb.Settings(families={"note": F.Multinomial(idf=True, select=F.Selection(min_rows=2, by="chi-square"))}),
    tb.Settings(weights={"size": 0.5, "note": 0.0, "colour": np.float64(1 / 3)}),
]


@pytest.mark.filterwarnings("ignore:Good")
@pytest.mark.parametrize("settings", SETTINGS, ids=range(len(SETTINGS)))
def test_settings_of_every_kind_come_back(settings: tb.Settings) -> None:
    model = TALLY.model(settings)
    back = again(model)
    assert back.settings == settings and back.families == model.families and back.classes == model.classes
    assert np.array_equal(back.predict_log_proba(ROWS), model.predict_log_proba(ROWS))
    assert back.update(ROWS).tally == model.update(ROWS).tally


@pytest.mark.parametrize(
    "labels", [[0, 1, 7], [True, False, True], [0.5, 2.0, 1e300], [dt.date(2024, 1, 2)] * 3, ["a", "", "c"]]
)
def test_labels_come_back_as_they_went_in(labels: list[Any]) -> None:
    rows = {"x": ["a", "b", "c"], "y": labels}
    model = tb.count(rows, tb.infer(rows, target="y")._with(columns=[tb.Column("x", "category")], missing=())).model()
    prior = {c: 1 / len(model.classes) for c in model.classes}
    back = again(model.tally.model(tb.Settings(prior=prior)))
    assert back.classes == model.classes and [type(c) for c in back.classes] == [type(c) for c in model.classes]
    assert back.settings.prior == prior and back.predict(rows).tolist() == model.predict(rows).tolist()


def test_models_written_by_hand_come_back() -> None:
    tables = {"sky": {"yes": {"sunny": 0.7, "grey": 0.0}, "no": {"sunny": 0.1, "grey": 0.9}}}
    bags = {"words": {"yes": {"a": 0.2}, "no": {"a": 1 / 3}}}
    written = tb.Model.written({"yes": 1.0, "no": 0.0}, {**tables, **bags}, kinds={"words": "bag"}, target="play")
    back = again(written)
    row = {"sky": "sunny", "words": ["a", "a", "b"]}
    assert np.array_equal(back.predict_log_proba(row), written.predict_log_proba(row))
    assert repr(back) == repr(written) and back.tally is None and back.schema == written.schema
    strong = tb.Model.written({"yes": 0.4, "no": 0.6}, tables, strength=50)
    assert np.array_equal(again(strong).predict_proba(row), strong.predict_proba(row))
    with pytest.raises(tb.ModelFileError, match="strength"):
        model_file.tally_from_bytes(model_file.to_bytes(written))


def test_notes_are_kept_and_outlive_an_update(tmp_path: pathlib.Path) -> None:
    import dataclasses

    model = dataclasses.replace(TALLY.model(), notes={"weights fitted on": 120, "by": ["a", None, {"b": 0.5}]})
    model.save(tmp_path / "m")
    loaded = tb.load(tmp_path / "m")
    assert loaded.notes == model.notes and loaded.update(ROWS).forget(ROWS).notes == model.notes
    with pytest.raises(tb.SettingsError, match="notes"):
        dataclasses.replace(model, notes={"f": test_sql_reads_the_counts}).save(tmp_path / "m")
    assert tb.load(tmp_path / "m").notes == model.notes


class Mine(F.Gaussian):
    name = "mine"


def test_a_family_of_ones_own_is_refused_unless_it_is_registered(monkeypatch: pytest.MonkeyPatch) -> None:
    model = TALLY.model(tb.Settings(families={"size": Mine()}))
    with pytest.raises(tb.SettingsError, match=r"not registered[\s\S]*tb\.families\.register\('mine', family\)"):
        model_file.to_bytes(model)
    monkeypatch.setattr(F.base, "_REGISTRY", {**F.base._REGISTRY, "mine": Mine()})
    raw = model_file.to_bytes(model)
    assert model_file.from_bytes(raw).families["size"] == Mine()
    monkeypatch.undo()
    with pytest.raises(tb.ModelFileError, match="'mine'"):
        model_file.from_bytes(raw)


# ---- names that mean harm

HOSTILE = [
    "<script>alert(1)</script>", "a\0b", "line\nbreak", "'; DROP TABLE x; --", "\x1b[31m", "x" * 1_000_000, "\u202ex",
    "tallybayes.checksum\x18@" + "0" * 64, "PAR1", "__class__", "{}", "💥", "", " ",
]  # fmt: skip


def test_hostile_names_survive() -> None:
    columns = [name or "(empty)" for name in HOSTILE]
    under = tb.Schema([tb.Column(c, "category", source="v") for c in columns], target=HOSTILE[0] + "?", missing=())
    tally = tb.count({"v": HOSTILE, under.target: HOSTILE[::-1]}, under)
    model = tally.model()
    back = again(model)
    assert back.tally == tally and back.classes == model.classes and back.schema == under
    assert np.array_equal(back.predict_proba({"v": HOSTILE}), model.predict_proba({"v": HOSTILE}))


def test_lone_surrogates_are_refused() -> None:
    tally = tb.Tally.zero(tb.Schema([tb.Column("bad\ud800", "category", source="v")], target="y"))
    tally = tally + tb.count({"v": ["a"], "y": ["b"]}, tally.schema)
    with pytest.raises(tb.SchemaError, match="half a character"):
        model_file.tally_to_bytes(tally)


# ---- a file is read back before it takes the place of another

ODD_NAMES = ["", " ", "\n", "a.b", "(rows)", "é" * 200, "\0", '"', "name", "0"]


@pytest.mark.parametrize("name", ODD_NAMES)
@pytest.mark.parametrize("kind", ["category", "number", "date", "text", "bag"])
def test_a_column_of_any_name_is_saved_and_loaded(name: str, kind: str, tmp_path: pathlib.Path) -> None:
    dates = ["2024-01-01", "2024-05-31"]
    columns = {"category": ["u", "v"], "number": [1.0, 2.0], "date": dates, "text": ["red fish", "blue"]}
    column = columns.get(kind, [["a"], ["b"]])
    data = {name: column * 3, "y": ["p", "q"] * 3}
    model = tb.count(data, tb.Schema([tb.Column(name, kind)], target="y")).model()
    assert set(model.predict(data)) == {"p", "q"}
    model.save(tmp_path / "m.tb.parquet")
    model.tally.save(tmp_path / "t.tb.parquet")
    model.schema.save(tmp_path / "s.json")
    model.export(tmp_path / "m.sealed.parquet")
    assert tb.load(tmp_path / "m.tb.parquet").tally == model.tally == tb.Tally.load(tmp_path / "t.tb.parquet")
    assert tb.Schema.load(tmp_path / "s.json") == model.schema
    again = tb.load_sealed(tmp_path / "m.sealed.parquet")
    assert np.array_equal(again.predict_proba(data), seal(model).predict_proba(data))


def test_what_could_not_be_read_back_replaces_nothing(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {"x": ["u", "v"], "y": ["p", "q"]}
    model = tb.count(data, tb.Schema([tb.Column("x", "category")], target="y")).model()
    paths = {end: tmp_path / f"kept.{end}" for end in ("tb.parquet", "json", "sealed.parquet")}
    for path in paths.values():
        path.write_bytes(b"the old file")
    honest = tb.Column.to_dict
    monkeypatch.setattr(tb.Column, "to_dict", lambda self: {k: v for k, v in honest(self).items() if k != "name"})
    for save in (
        lambda: model.save(paths["tb.parquet"]),
        lambda: model.tally.save(paths["tb.parquet"]),
        lambda: model.schema.save(paths["json"]),
        lambda: model.export(paths["sealed.parquet"]),
    ):
        with pytest.raises(tb.TallybayesError, match="Hint: "):
            save()
    monkeypatch.setattr(tb.Column, "to_dict", lambda self: {**honest(self), "name": "another"})
    with pytest.raises(tb.TallybayesError, match="Hint: "):
        model.save(paths["tb.parquet"])
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(p.name for p in paths.values())
    assert all(path.read_bytes() == b"the old file" for path in paths.values())


def test_a_disk_that_keeps_other_bytes_is_noticed(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tb.count({"x": ["u"], "y": ["p"]}, tb.Schema([tb.Column("x", "category")], target="y")).model()
    model.save(path := tmp_path / "m.tb.parquet")
    before, write = path.read_bytes(), os.write
    monkeypatch.setattr(os, "write", lambda file, view: write(file, bytes(view)[:-20] + bytes(20)))
    with pytest.raises(tb.ModelFileError):
        model.save(path)
    assert path.read_bytes() == before


# ---- a fresh process

ANSWER = """
import sys, time
start = time.process_time()
import tallybayes as tb
model = tb.load(sys.argv[1])
print(model.predict({"colour": None, "size": 0.3, "count": 2, "note": "free", "words": ["a"], "point": [0.0, 0.0, 1.0],
                     "day": "2024-05-01"})[0])
print(time.process_time() - start)
print(*sorted({m.partition(".")[0] for m in sys.modules}))
"""


@pytest.mark.parametrize("families", [{}, {"size": "kernel", "count": "poisson", "point": "student"}])
def test_one_answer_in_a_fresh_process_loads_little(families: dict[str, str], tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.tb.parquet"
    model = TALLY.model(tb.Settings(families=families))
    model.save(path)
    done = subprocess.run([sys.executable, "-c", ANSWER, str(path)], capture_output=True, text=True, check=True)
    label, seconds, loaded = done.stdout.splitlines()
    assert label in model.classes
    assert not set(loaded.split()) & {
        "numba",
        "llvmlite",
        "pandas",
        "polars",
        "sklearn",
        "duckdb",
        "matplotlib",
        "onnx",
    }
    assert float(seconds) < 5  # processor time; the budget is 0.5 s on an idle machine


def test_settings_that_others_add_are_kept_by_themselves(monkeypatch: pytest.MonkeyPatch) -> None:
    """A field of a new type, with arrays in it: the file needs to be told of neither."""
    from dataclasses import dataclass, field

    from tallybayes.families import settings_json

    @dataclass(frozen=True, eq=False)
    class Curve:
        knots: np.ndarray[Any, Any]
        ends: tuple[float, ...] = (-np.inf, np.inf)

    @dataclass(frozen=True)
    class Later(tb.Settings):
        curve: Curve | None = None
        lengths: dict[str, float] = field(default_factory=dict)

    monkeypatch.setattr(settings_json, "Settings", Later)
    monkeypatch.setitem(settings_json.TYPES, "Curve", Curve)
    given = Later(curve=Curve(np.array([[0.25, 0.5]])), lengths={"note": -0.75})
    text = json.dumps(settings_json.settings_to_json(given), allow_nan=False)
    back = settings_json.settings_from_json(json.loads(text))
    assert back.curve.knots.tolist() == [[0.25, 0.5]] and back.curve.ends == (-np.inf, np.inf)  # type: ignore[attr-defined]
    assert back.lengths == {"note": -0.75} and set(json.loads(text)) == {"curve", "lengths"}  # type: ignore[attr-defined]
    monkeypatch.delitem(settings_json.TYPES, "Curve")
    with pytest.raises(tb.SettingsError, match="Curve"):
        settings_json.settings_to_json(given)
    with pytest.raises(tb.ModelFileError, match="Curve"):
        settings_json.settings_from_json(json.loads(text))
