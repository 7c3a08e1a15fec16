"""Files of every version that was released: they open, answer as they did, and add to what is counted today.

tests/golden/VERSION is written once, by tests/golden/write_version.py, before VERSION is released, and never again.
"""

from __future__ import annotations

import importlib.util
import json
import math
import re
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.base.disk import read_whole
from tallybayes.mail import Filter

GOLDEN = Path(__file__).parents[1] / "golden"
VERSIONS = sorted(p.name for p in GOLDEN.iterdir() if re.fullmatch(r"\d+\.\d+\.\d+", p.name))
CLOSE = 1e-12  # of answers in nats: logarithms of other machines may differ in the last bit
MOST_BYTES = 400_000
TALLIES = [(v, p.name.removesuffix(".tally.parquet")) for v in VERSIONS for p in sorted((GOLDEN / v).glob("*.tally.*"))]
MODELS = [(v, p.name.removesuffix(".tb.parquet")) for v in VERSIONS for p in sorted((GOLDEN / v).glob("*.tb.parquet"))]
SEALED = [
    (v, p.name.removesuffix(".sealed.parquet")) for v in VERSIONS for p in sorted((GOLDEN / v).glob("*.sealed.*"))
]

each_version = pytest.mark.parametrize("version", VERSIONS)
pytestmark = pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")


def told(version: str, what: str) -> Any:
    return json.loads((GOLDEN / version / "told.json").read_text(encoding="utf-8"))[what]


def rows(version: str) -> dict[str, list[dict[str, Any]]]:
    out: dict[str, list[dict[str, Any]]] = json.loads((GOLDEN / version / "rows.json").read_text(encoding="utf-8"))
    return out


def agree(found: Any, expected: Any) -> None:
    np.testing.assert_allclose(found, expected, rtol=0, atol=CLOSE)


def test_there_is_a_set_of_files_that_stays_small() -> None:
    assert VERSIONS[0] == "0.1.0"
    for version in VERSIONS:
        assert sum(p.stat().st_size for p in (GOLDEN / version).rglob("*") if p.is_file()) < MOST_BYTES


def test_what_a_release_wrote_is_never_written_again(monkeypatch: pytest.MonkeyPatch) -> None:
    spec = importlib.util.spec_from_file_location("write_version", GOLDEN / "write_version.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    monkeypatch.setattr(tb, "__version__", "0.1.0")
    monkeypatch.setattr(script, "write", lambda folder: pytest.fail("it writes"))
    with pytest.raises(SystemExit, match="never written again"):
        script.main()


@pytest.mark.parametrize(("version", "name"), [(v, n) for v, n in MODELS if n != "served"])
def test_a_model_answers_as_it_did(version: str, name: str) -> None:
    model, expected, asked = (
        tb.load(GOLDEN / version / f"{name}.tb.parquet"),
        told(version, name),
        rows(version)["asked"],
    )
    assert (model.tally.digest if model.tally is not None else None) == expected["digest"]
    agree(model.predict_log_proba(asked), expected["log_proba"])
    assert [str(label) for label in model.predict(asked)] == expected["predicted"]
    for row, forecast in list(zip(asked, expected["log_proba"], strict=True))[-3:]:
        agree(model.predict_log_proba(row)[0], forecast)
    assert str(model.provenance) == expected["provenance"]
    if "sets" in expected:
        assert [list(map(str, one)) for one in model.predict_set(asked, coverage=0.8)] == expected["sets"]


def test_the_files_of_the_first_version_hold_what_files_can_hold() -> None:
    """Else the tests here would say less than they seem to."""
    loaded = {name: tb.load(GOLDEN / v / f"{name}.tb.parquet") for v, name in MODELS if v == "0.1.0"}
    kinds = {c.kind for m in loaded.values() for c in m.schema.columns}
    assert kinds >= {"category", "number", "text", "bag", "vector", "pair", "gap", "together", "ignore"}
    columns = [c for m in loaded.values() for c in m.schema.columns]
    assert any(side.groups for c in columns for side in c.of or ()) and any(
        side.cuts for c in columns for side in c.of or ()
    )
    assert any(c.spelling for c in columns) and any(c.levels for c in columns) and any(c.text for c in columns)
    settings = [m.settings for m in loaded.values()]
    for name in ("corrections", "weights", "lengths", "offsets", "lead", "isotonic", "calibrated", "predictive"):
        assert any(getattr(s, name) for s in settings), name
    assert any(m.schema.receipts for m in loaded.values()) and any(m.schema.weights for m in loaded.values())
    assert "prediction sets" in loaded["sets"].notes
    families = {type(f).__name__ for m in loaded.values() for f in m.families.values()}
    assert len(families) >= 10, families


@pytest.mark.parametrize(("version", "name"), TALLIES)
def test_a_tally_adds_to_rows_that_are_counted_today(version: str, name: str) -> None:
    old, data, expected = tb.Tally.load(GOLDEN / version / f"{name}.tally.parquet"), rows(version), told(version, name)
    assert old.digest == expected["digest"]
    more, everything = tb.count(data["more"], old.schema), tb.count(data["first"] + data["more"], old.schema)
    assert old == tb.count(data["first"], old.schema)
    assert old + more == everything and (old + more).digest == everything.digest == expected["all rows"]
    assert everything - old == more
    assert old.update(data["more"]) == everything
    assert everything.forget(data["more"]) == old


@pytest.mark.parametrize(("version", "name"), TALLIES)
def test_a_schema_counts_as_it_did(version: str, name: str) -> None:
    schema = tb.Schema.load(GOLDEN / version / f"{name}.schema.json")
    assert tb.count(rows(version)["first"], schema).digest == told(version, name)["digest"]


@pytest.mark.parametrize(
    ("version", "name"), [m for m in MODELS if m[1] in ("kinds", "fitted", "counted", "sets", "plain")]
)
def test_a_model_learns_and_forgets(version: str, name: str, tmp_path: Path) -> None:
    model, data = tb.load(GOLDEN / version / f"{name}.tb.parquet"), rows(version)
    later = model.update(data["more"])
    assert later.tally == tb.count(data["first"] + data["more"], model.schema)
    assert later.forget(data["more"]).tally == model.tally
    later.save(tmp_path / "later.tb.parquet")
    assert tb.load(tmp_path / "later.tb.parquet").tally == later.tally


@pytest.mark.parametrize(("version", "name"), SEALED)
def test_a_sealed_file_answers_as_it_did(version: str, name: str) -> None:
    sealed = tb.load_sealed(GOLDEN / version / f"{name}.sealed.parquet")
    agree(sealed.predict_log_proba(rows(version)["asked"]), told(version, name)["log_proba"])


@each_version
@pytest.mark.parametrize("name", ["fitted", "plain"])
def test_the_json_is_said_today_as_it_was(version: str, name: str) -> None:
    folder = GOLDEN / version
    old = json.loads((folder / f"{name}.scorer.json").read_text(encoding="utf-8"))
    new = json.loads(tb.load(folder / f"{name}.tb.parquet").export(format="json"))
    assert same(old, new)
    assert not same(old, {**new, "classes": []})


def same(old: Any, new: Any) -> bool:
    """Whether a reader of the old JSON finds all of it in the new one; a later release may say more."""
    if isinstance(old, dict):
        return isinstance(new, dict) and all(k in new and same(v, new[k]) for k, v in old.items())
    if isinstance(old, list):
        return isinstance(new, list) and len(old) == len(new) and all(map(same, old, new))
    if isinstance(old, float) and isinstance(new, (int, float)):
        return math.isclose(old, new, rel_tol=CLOSE, abs_tol=CLOSE)
    return bool(old == new)


@each_version
def test_the_onnx_graph_answers_as_the_model_did(version: str) -> None:
    runtime = pytest.importorskip("onnxruntime")
    asked, expected = rows(version)["asked"], told(version, "plain")
    session = runtime.InferenceSession(read_whole(GOLDEN / version / "plain.onnx"))
    given: dict[str, Any] = {
        n: np.array([math.nan if row[n] is None else row[n] for row in asked], float) for n in ("size", "visits")
    }
    given["colour"] = np.array([row["colour"] or "" for row in asked], object)
    wanted = {i.name: i.type for i in session.get_inputs()}
    label, p = session.run(["label", "probabilities"], {name: given[name] for name in wanted})
    np.testing.assert_allclose(p, np.exp(expected["log_proba"]), rtol=0, atol=1e-9)
    assert label.tolist() == expected["predicted"]


@each_version
def test_a_watch_goes_on_from_where_it_was(version: str) -> None:
    model = tb.load(GOLDEN / version / "plain.tb.parquet")
    watch = model.watch(GOLDEN / version / "plain.watch.parquet")
    assert str(watch.report()) == told(version, "watch")
    before = watch.tally.rows
    watch.predict(rows(version)["asked"])
    assert watch.tally.rows == before + len(rows(version)["asked"])


@each_version
def test_windows_open_and_take_more_rows(version: str, tmp_path: Path) -> None:
    shutil.copytree(GOLDEN / version / "windows", tmp_path / "windows")
    expected, data = told(version, "windows"), rows(version)
    windows = tb.Windows.load(tmp_path / "windows")
    assert list(windows.periods) == expected["periods"]
    assert windows.window().digest == expected["digest"] and windows.last(1).digest == expected["last"]
    windows.add(data["more"])
    windows.save(tmp_path / "windows")
    again = tb.Windows.load(tmp_path / "windows")
    assert again.window() == tb.count(data["first"] + data["more"], again.schema)


@each_version
def test_a_mail_filter_answers_as_it_did_and_learns(version: str, tmp_path: Path) -> None:
    spec = importlib.util.spec_from_file_location("write_version", GOLDEN / "write_version.py")
    assert spec is not None and spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    expected, known = told(version, "mail"), script.letters()
    shutil.copy(GOLDEN / version / "mail.state", tmp_path / "state")
    with Filter(tmp_path / "state", create=False) as box:
        assert box.digest == expected["digest"]
        found = [box.score(raw) for raw, _ in known[30:]]
        assert [v.answer for v in found] == expected["answers"]
        agree([v.probability for v in found], expected["spam"])
        for raw, label in known[30:]:
            box.learn(raw, label)
        anew = tmp_path / "anew"
        with Filter(anew) as other:
            other.train([(label, raw) for raw, label in known])
            assert other.tally == box.tally
        for raw, _ in known[30:]:
            box.unlearn(raw)
        assert box.digest == expected["digest"]


@each_version
def test_a_served_model_comes_back_with_its_journal(version: str, tmp_path: Path) -> None:
    pytest.importorskip("starlette")
    from tallybayes.serve.desk import Desk

    for name in ("served.tb.parquet", "served.tb.parquet.journal"):
        shutil.copy(GOLDEN / version / name, tmp_path / name)
    expected, data = told(version, "served"), rows(version)
    with Desk.open(tmp_path / "served.tb.parquet") as desk:
        assert (desk.digest, desk.version, desk.pool_size()) == tuple(
            expected[k] for k in ("digest", "version", "pool")
        )
        names = [c.name for c in desk.model.schema.columns]
        desk.learn([{n: row[n] for n in (*names, "late")} for row in data["more"][20:25]])
        assert desk.version == expected["version"] + 1
