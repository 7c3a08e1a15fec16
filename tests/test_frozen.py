"""What was promised before the code moved into rooms holds: names, digests, stored models, answers, exit codes.

tests/frozen.py has the tables, models and commands, tests/golden/frozen what the package of before made of them. Public
names may be added and none may go; a function may gain parameters that have defaults, and none may go.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import sqlite3
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import command_line
import frozen
import numpy as np
import optional
import pyarrow as pa
import pytest

import tallybayes as tb

FOLDER = Path(__file__).parent / "golden" / "frozen"
_VARIABLE = re.compile(r"\*{1,2}\w")  # *args and **options need not be given
CLOSE = 1e-9  # of answers in nats: sums may be taken in another order, and nothing else


def known(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    return found


ANSWERS = known("answers.json")


@cache
def made(name: str) -> tb.Model:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tb.TallybayesWarning)
        return frozen.MODELS[name]()


# ---- names


def lost(before: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """What was offered before and is not offered now."""
    out = [f"{name} is gone" for name in before if name not in now]
    for name in before.keys() & now.keys():
        old, new = before[name], now[name]
        if "has" in old and "has" not in new:
            out.append(f"{name} is no class any more")
            continue
        out += [f"{name}: {problem}" for problem in changed(old.get("takes"), new.get("takes"))]
        for attribute, takes in old.get("has", {}).items():
            if attribute not in new["has"]:
                out.append(f"{name}.{attribute} is gone")
            else:
                out += [f"{name}.{attribute}: {problem}" for problem in changed(takes, new["has"][attribute])]
    return sorted(out)


def changed(before: list[str] | None, now: list[str] | None) -> list[str]:
    """Calls that went well and would not now: parameters that went, moved or lost a default, or must now be given."""
    if before is None or now is None:
        return [] if before is now else ["a value became a method, or a method a value"]
    out = [f"the parameter {p!r} is gone or changed" for p in before if p not in now]
    added = [p for p in now if p not in before]
    out += [f"the new parameter {p!r} has no default" for p in added if " = " not in p and not _VARIABLE.match(p)]
    by_place = [p for p in before if not p.startswith("*")]
    if not out and [p for p in now if not p.startswith("*")][: len(by_place)] != by_place:
        out.append("parameters that may be given by place have changed places")
    return out


# Changed on purpose, with an entry in the changelog. A default: the old value still does what it did. A name: the first
# one works, by place (the schema where the target is) and by keyword; tests/test_arguments.py calls all of them
_SCHEMA = {"schema": "target = None", "schema = None": "target = None"}
_METRIC = {"s": "labels", "w": "p"}  # the list had the parameters of the formula within, by which nobody could call it
_METRICS = (
    *("accuracy", "error", "log_loss", "brier", "calibration_error", "balanced_accuracy", "matthews", "roc_auc"),
    *("average_precision", "precision_macro", "precision_weighted", "recall_macro", "recall_weighted"),
    *("f1_macro", "f1_micro", "f1_weighted"),
)
MEANT = {
    **{f"tb.metrics.{name}": _METRIC for name in _METRICS},
    "sklearn.NaiveBayes": {"* calibration = None": "* calibration = 'auto'"},
    "tb.assumptions": _SCHEMA,
    "tb.count": _SCHEMA,
    "tb.cross_validate": _SCHEMA,
    "tb.leave_one_out": {"settings = None": "y = None", "y = None": "settings = None"},
    "tb.logistic_twin": _SCHEMA,
    "tb.report": {"data": "data = None"},
    "tb.tune": {**_SCHEMA, "* priors = ('counted',)": "* prior = ('counted',)"},
}


def test_no_public_name_and_no_parameter_is_gone() -> None:
    before = known("names.json")
    for name, defaults in MEANT.items():
        before[name]["takes"] = [defaults.get(p, p) for p in before[name]["takes"]]
    problems = lost(before, frozen.public())
    assert not problems, "\n".join(["", *problems])


@pytest.mark.parametrize(
    ("before", "now", "problems"),
    [
        (["rows", "* prior = None"], ["rows", "more = 1", "* prior = None", "* new = 2", "**how"], 0),
        (["rows"], ["data"], 2),
        (["rows", "* prior = None"], ["rows"], 1),
        (["rows", "* prior = None"], ["rows", "* prior = 1"], 1),
        (["rows"], ["rows", "* prior"], 1),
        (["rows"], ["rows", "must"], 1),
        (["rows", "y = None"], ["rows", "new = 1", "y = None"], 1),
        (["rows"], None, 1),
        (None, None, 0),
    ],
)
def test_what_breaks_a_call_is_found(before: Any, now: Any, problems: int) -> None:
    assert len(changed(before, now)) == problems
    gone = lost({"tb.f": {"takes": before}}, {"tb.f": {"takes": now}})
    assert len(gone) == problems
    assert lost({"tb.f": {"takes": before}}, {}) == ["tb.f is gone"]
    assert lost({"tb.C": {"has": {"a": None}}}, {"tb.C": {"has": {}}}) == ["tb.C.a is gone"]


# ---- tallies


def test_there_are_twenty_tables_and_no_two_are_alike() -> None:
    digests = known("digests.json")
    assert len(set(digests.values())) == len(digests) >= 20 and set(digests) == set(frozen.TALLIES)


@pytest.mark.parametrize("name", frozen.TALLIES)
@pytest.mark.core
def test_the_digest_is_what_it_was(name: str) -> None:
    assert frozen.TALLIES[name]().digest == known("digests.json")[name]


# ---- models in files


def agrees(found: Any, name: str) -> None:
    """Log-probabilities are those of before; −∞ and the rows where nothing is possible included."""
    np.testing.assert_allclose(found, ANSWERS[name]["log_proba"], rtol=CLOSE, atol=CLOSE)


@pytest.mark.parametrize("name", frozen.MODELS)
@pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")
@pytest.mark.core
def test_a_stored_model_answers_as_it_did(name: str) -> None:
    model, rows = tb.load(FOLDER / f"{name}.tb.parquet"), frozen.probes_of(name)
    assert model.tally is not None and model.tally.digest == ANSWERS[name]["digest"]
    agrees(model.predict_log_proba(rows), name)
    assert model.predict(rows).tolist() == ANSWERS[name]["predicted"]
    one_by_one = [model.predict_log_proba({k: v[i] for k, v in rows.items()})[0] for i in range(len(rows["size"]))]
    agrees(one_by_one, name)


@pytest.mark.parametrize("name", frozen.MODELS)
@pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")
def test_a_stored_model_shows_what_it_showed(name: str) -> None:
    """Screens of before are in answers.json. Since then figures are rounded one by one, lines that say nothing stand
    together, numbers of a what-if end at the border and what is infinite is ∞: those are in screens.json. What has
    dates, which were days since 1970 there, is in dates.json."""
    model = tb.load(FOLDER / f"{name}.tb.parquet")
    before, now = ANSWERS[name]["screens"], frozen.screens(model, frozen.probes_of(name))
    assert now == known("screens.json")[name] | known("dates.json")[name]
    assert {k: now[k] for k in ("schema", "tally")} == {k: before[k] for k in ("schema", "tally")}
    assert now["explanation"].splitlines()[0] == before["explanation"].splitlines()[0]  # the answer, how probable
    totals = [
        [float(v) for v in next(x for x in text.splitlines() if x.startswith("probability")).split()[1:]]
        for text in (before["explanation"], now["explanation"])
    ]
    assert totals[0] == totals[1]


@pytest.mark.parametrize("name", [n for n in frozen.MODELS if n not in frozen.CHOSEN])
@pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")
def test_the_same_rows_give_the_same_model_and_the_same_file(name: str, tmp_path: Path) -> None:
    stored, now = tb.load(FOLDER / f"{name}.tb.parquet"), made(name)
    assert now.tally == stored.tally and now.settings == stored.settings and now.schema == stored.schema
    assert now.families == stored.families
    now.save(tmp_path / "again.tb.parquet")
    again = tb.load(tmp_path / "again.tb.parquet")
    agrees(again.predict_log_proba(frozen.probes_of(name)), name)


@pytest.mark.parametrize("name", frozen.CHOSEN)
@pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")
def test_the_default_counts_what_it_counted_and_chooses_no_worse(name: str) -> None:
    """The same columns are counted, beside pairs; and what is chosen now is not worse on the rows it was chosen by."""
    stored, now = tb.load(FOLDER / f"{name}.tb.parquet"), made(name)
    columns = [[c for c in m.schema.counted if c.of is None and c.source is None] for m in (stored, now)]
    assert columns[0] == columns[1]
    assert all(now.tally.columns[c.name] == stored.tally.columns[c.name] for c in columns[0])
    assert now.settings.calibrated is not None and stored.settings.calibrated is not None
    before, after = (min(m.settings.calibrated.losses.values()) for m in (stored, now))
    assert after < before + 0.03  # nested losses are honest now, and a little higher where rows are few


# ---- what is given away


@pytest.mark.parametrize("name", [n for n in frozen.MODELS if (FOLDER / f"{n}.sealed.parquet").exists()])
@pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")
def test_a_sealed_file_answers_as_it_did(name: str, tmp_path: Path) -> None:
    rows = frozen.probes_of(name)
    agrees(tb.load_sealed(FOLDER / f"{name}.sealed.parquet").predict_log_proba(rows), name)
    tb.load(FOLDER / f"{name}.tb.parquet").export(tmp_path / "now.sealed.parquet")
    agrees(tb.load_sealed(tmp_path / "now.sealed.parquet").predict_log_proba(rows), name)


def alike(old: Any, new: Any) -> bool:
    """Whether two JSON values say the same: keys in their order and texts exactly, figures to nine digits."""
    if isinstance(old, dict):
        return isinstance(new, dict) and list(old) == list(new) and all(alike(v, new[k]) for k, v in old.items())
    if isinstance(old, list):
        return isinstance(new, list) and len(old) == len(new) and all(map(alike, old, new))
    if isinstance(old, float):
        return isinstance(new, (int, float)) and math.isclose(old, new, rel_tol=CLOSE, abs_tol=CLOSE)
    return type(old) is type(new) and old == new


@pytest.mark.parametrize("name", [n for n in frozen.MODELS if (FOLDER / f"{n}.scorer.json.gz").exists()])
def test_the_json_says_what_it_said(name: str) -> None:
    old = json.loads(gzip.decompress((FOLDER / f"{name}.scorer.json.gz").read_bytes()))
    new = json.loads(tb.load(FOLDER / f"{name}.tb.parquet").export(format="json"))
    assert list(old) == list(new)
    for part in old:
        assert alike(old[part], new[part]), part


def test_json_that_says_something_else_is_found() -> None:
    old = {"a": [1, 2.0, None, "x"], "b": {"c": True}}
    assert alike(old, {"a": [1, 2.0 + 1e-12, None, "x"], "b": {"c": True}})
    for new in (
        {"b": {"c": True}, "a": [1, 2.0, None, "x"]},
        {"a": [1, 2.0, None], "b": {"c": True}},
        {"a": [1, 2.1, None, "x"], "b": {"c": True}},
        {"a": [1, 2.0, 0, "x"], "b": {"c": True}},
        {"a": [1, 2.0, None, "x"], "b": {"c": 1}},
        {"a": [1, 2.0, None, "x"], "b": {"c": True, "d": 1}},
    ):
        assert not alike(old, new)


@pytest.mark.parametrize("name", frozen.UNSAID)
def test_what_json_could_not_say_is_still_refused(name: str) -> None:
    with pytest.raises(tb.SettingsError):
        tb.load(FOLDER / f"{name}.tb.parquet").export(format="json")


@pytest.mark.parametrize("name", frozen.FLAT)
def test_the_onnx_graph_answers_as_the_model_did(name: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    rows = frozen.probes_of(name)
    session = runtime.InferenceSession(tb.load(FOLDER / f"{name}.tb.parquet").export(format="onnx"))
    given = {n: np.array([math.nan if v is None else v for v in rows[n]], float) for n in ("size", "visits")}
    given["colour"] = np.array([v or "" for v in rows["colour"]], object)
    label, p = session.run(["label", "probabilities"], given)
    np.testing.assert_allclose(p, np.exp(ANSWERS[name]["log_proba"]), rtol=0, atol=CLOSE)
    assert label.tolist() == ANSWERS[name]["predicted"]


def in_duckdb(table: pa.Table, scorer: Any) -> list[Any]:
    with optional.package("duckdb").connect() as connection:
        connection.register("rows", table)
        for statement in scorer.setup:
            connection.execute(statement)
        return connection.execute(scorer.query).fetchall()


def in_sqlite(table: pa.Table, scorer: Any) -> list[Any]:
    connection = sqlite3.connect(":memory:")
    connection.execute(f"CREATE TABLE rows ({', '.join(table.column_names)})")
    marks = ", ".join("?" * table.num_columns)
    connection.executemany(
        f"INSERT INTO rows VALUES ({marks})", zip(*(c.to_pylist() for c in table.columns), strict=True)
    )
    for statement in scorer.setup:
        connection.execute(statement)
    out = connection.execute(scorer.query).fetchall()
    connection.close()
    return out


@pytest.mark.parametrize(("dialect", "run"), [("duckdb", in_duckdb), ("sqlite", in_sqlite)])
@pytest.mark.parametrize("name", frozen.FLAT)
def test_a_database_answers_as_the_model_did(name: str, dialect: str, run: Any) -> None:
    """The text of the query may change; what a database makes of it may not."""
    rows = frozen.probes_of(name)
    table = pa.table({"id": range(len(rows["size"])), **rows})
    scorer = tb.load(FOLDER / f"{name}.tb.parquet").to_sql("rows", dialect, keep=["id"])
    found = sorted(run(table, scorer))
    assert [row[1] for row in found] == ANSWERS[name]["predicted"]
    np.testing.assert_allclose([row[2:] for row in found], np.exp(ANSWERS[name]["log_proba"]), rtol=0, atol=CLOSE)


# ---- the commands


def test_every_command_exits_as_it_did(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    found = frozen.exit_codes(lambda words, given: command_line.run(*words, given=given).returncode, tmp_path)
    assert found == known("exit_codes.json")
    assert set(found.values()) == {0, 1, 2, 3, 75}
