"""Every command as a user types it: what it prints, writes, refuses, and leaves behind when it is cut short."""

from __future__ import annotations

import contextlib
import csv
import fcntl
import json
import os
import pty
import random
import re
import resource
import signal
import sqlite3
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from command_line import COMMAND, Done, run, start

import tallybayes as tb
from tallybayes.base.disk import locked
from tallybayes.base.show import width
from tallybayes.cli.choices import Choices, parse_pairs, parse_prior, smoothing_words
from tallybayes.cli.program import tallybayes
from tallybayes.cli.reference import reference
from tallybayes.cli.terminal import for_commands
from tallybayes.families.settings import smoothing_of

ROOT = Path(__file__).resolve().parents[2]
FLATS = ROOT / "examples" / "flats.csv"
PAGES = sorted((ROOT / "docs").glob("*.md"))
QUICK = ["--folds", 0, "--no-calibrate"]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model") / "flats.tb.parquet"
    done = run("fit", FLATS, "--target", "let", "--set", "note=text", *QUICK, "--receipts", "-o", path)
    assert done.returncode == 0, done.err
    return path


@pytest.fixture
def copy(model: Path, tmp_path: Path) -> Path:
    path = tmp_path / "copy.tb.parquet"
    path.write_bytes(model.read_bytes())
    return path


def rows_of(path: Path = FLATS) -> list[dict[str, str]]:
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def write(path: Path, rows: list[dict[str, str]], **how: object) -> Path:
    with open(path, "w", newline="", encoding=str(how.pop("encoding", "utf-8"))) as file:
        writer = csv.DictWriter(file, rows[0], **how)  # type: ignore[arg-type]
        writer.writeheader()
        writer.writerows(rows)
    return path


def good(done: Done) -> str:
    assert (done.returncode, done.err) == (0, ""), done
    return done.out


def bad(done: Done, *said: str) -> None:
    assert done.returncode == 2, done
    for words in said:
        assert words in done.err


# ---- fit


def test_fit_prints_what_it_inferred_how_good_it_is_and_what_is_telling(tmp_path):
    out = good(run("fit", FLATS, "--target", "let", "--folds", 3, "-o", tmp_path / "m.parquet"))
    for line in (
        r"number +ignore +an id: a whole number of its own in each of 240 rows",
        r"240 rows: let fast 92, slow 148",
        r"chosen on held-out rows: .*one temperature 0\.\d+",
        r"On rows it has not seen: 240 rows, 2 classes, 3 folds, fitted anew on each",
        r"accuracy +0\.\d+ +0\.\d+ to 0\.\d+ +0\.6167",
        r"slow +rooms +≥ 3\.5 +7\.77 × +32\.03% +4\.12%",
        r"model written to .*m\.parquet: \d",
    ):
        assert re.search(line, out), line
    model, own = tb.load(tmp_path / "m.parquet"), tb.fit(str(FLATS), target="let")
    assert model.tally == own.tally and model.settings.calibrated.form == own.settings.calibrated.form


def test_fit_prints_what_judged_it_and_fits_only_once(monkeypatch):
    calls = []
    whole = tb.fit
    monkeypatch.setattr("tallybayes.selection.choose.fit.fit", lambda *a, **k: calls.append(k) or whole(*a, **k))
    out = good(run("fit", FLATS, "--target", "let"))
    assert len(calls) == 1 and calls[0]["progress"] is False  # nobody watches a pipe
    own = whole(str(FLATS), target="let").settings.calibrated
    assert "On rows it has not seen: 240 held-out rows, which judged what was chosen" in out
    for name, words in (("accuracy", "accuracy"), ("log_loss", "log loss"), ("calibration_error", "calibration error")):
        assert re.search(rf"{words} +{own.figures[name][0]:.4f}", out), words
    assert re.search(r"accuracy +0\.\d+ +0\.\d+ to [01]\.\d+ +0\.6167", out)


def test_fit_takes_effort_groups_order_and_no_progress():
    quick = good(run("fit", FLATS, "--target", "let", "--effort", "quick", "--no-progress"))
    assert "chosen on held-out rows: one temperature, fitted" in quick and "counted together" not in quick
    grouped = good(run("fit", FLATS, "--target", "let", "--groups", "district", "--set", "note=ignore"))
    assert re.search(r"district +ignore +decides about folds", grouped)
    for order in ("yes", "number"):
        good(run("fit", FLATS, "--target", "let", "--order", order, "--effort", "quick"))
    plain = good(run("fit", FLATS, "--target", "let", "--no-calibrate", "--set", "note=ignore"))
    assert "5 folds, fitted anew on each" in plain  # nothing was chosen, and so nothing judged


def test_many_rows_are_cross_validated_by_subtraction_and_the_page_says_so(monkeypatch):
    monkeypatch.setattr("tallybayes.cli.fitting._ANEW", 100)
    out = good(run("fit", FLATS, "--target", "let", "--set", "note=ignore", "--folds", 4))
    assert "4 folds by subtraction" in out and "chosen with all rows, which flatters" in out


def test_fit_takes_kinds_families_smoothing_prior_pairs_weights_and_receipts(tmp_path):
    out = tmp_path / "m.parquet"
    good(
        run(
            "fit", FLATS, "--target", "let", "--folds", 0, "--set", "rooms=category", "--set", "rent=kernel",
            "--smoothing", "laplace:0.5", "--prior", "fast=0.3,slow=0.7", "--pairs", "balcony:heating",
            "--weights", "number", "--receipts", "-o", out,
        )
    )  # fmt: skip
    model = tb.load(out)
    assert model.schema["rooms"].kind == "category" and model.families["rent"].describe().startswith("kernel")
    assert model.settings.smoothing_of("balcony") == tb.Laplace(0.5)
    assert model.prior() == pytest.approx({"fast": 0.3, "slow": 0.7})
    assert [c.name for c in model.schema.counted if c.kind == "pair"] == ["balcony × heating"]
    assert model.schema.weights == "number" and model.schema.receipts
    assert model.settings.calibrated is not None, "settings of one's own are calibrated, too, unless told otherwise"


def test_a_schema_is_saved_shared_and_checked(tmp_path):
    good(run("fit", FLATS, "--target", "let", *QUICK, "--save-schema", tmp_path / "s.json"))
    good(run("fit", FLATS, "--schema", tmp_path / "s.json", *QUICK, "-o", tmp_path / "a.parquet"))
    assert tb.load(tmp_path / "a.parquet").schema == tb.Schema.load(tmp_path / "s.json")
    bad(run("fit", FLATS, "--schema", tmp_path / "s.json", "--target", "rent"), "predicts 'let', not 'rent'")
    bad(run("fit", FLATS, "--schema", tmp_path / "none.json"), "none.json cannot be read", "Hint:")
    (tmp_path / "not.json").write_text("{")
    bad(run("fit", FLATS, "--schema", tmp_path / "not.json"), "is not JSON")


def test_a_model_may_go_to_standard_output_and_come_from_standard_input(model, tmp_path):
    raw = run("fit", "-", "--target", "let", *QUICK, "-o", "-", given=FLATS.read_bytes())
    assert raw.returncode == 0 and raw.stdout[:4] == b"PAR1" and "model written" in raw.err
    shown = good(run("show", "-", "--json", given=raw.stdout))
    assert json.loads(shown)["rows"] == 240


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["fit", FLATS], "--target COLUMN"),
        (["fit", FLATS, "--target", "lett"], "did you mean 'let'? name the column to predict with --target COLUMN"),
        (["fit", "flats.cvs", "--target", "let"], "there is no file flats.cvs"),
        (["fit", FLATS, "--target", "let", "--set", "rent"], "COLUMN=KIND"),
        (["fit", FLATS, "--target", "let", "--set", "rnt=number"], "did you mean 'rent'?"),
        (["fit", FLATS, "--target", "let", "--set", "rent=colonel"], "there is no family 'colonel'"),
        (["fit", FLATS, "--target", "let", "--smoothing", "laplacian:1"], "did you mean 'laplace'?"),
        (["fit", FLATS, "--target", "let", "--smoothing", "laplace:x"], "'laplace:x' is no smoothing"),
        (["fit", FLATS, "--target", "let", "--smoothing", "laplace:-1"], "Hint:"),
        (["fit", FLATS, "--target", "let", "--prior", "fast=much"], "CLASS=PROBABILITY"),
        (["fit", FLATS, "--target", "let", "--pairs", "rent"], "COLUMN:COLUMN"),
        (["fit", FLATS, "--target", "let", "-o", "/no/such/folder/m"], "there is no folder /no/such/folder"),
        (["fit", FLATS, "--target", "let", "-o", "."], "is a folder"),
        (["fit", FLATS, "--target", "let", "--folds", "many"], "many"),
        (["fit", FLATS, "--target", "let", "--effort", "quik"], "did you mean 'quick'?"),
        (["fit", FLATS, "--target", "let", "--groups", "distrikt"], "did you mean 'district'?"),
        (["fit", FLATS, "--target", "let", "--groups", "let"], "is the column to predict"),
        (["fit", FLATS, "--target", "let", "--order", "dya"], "there is no column 'dya' to order the rows by"),
        (["predict", "nothing.parquet", FLATS], "nothing.parquet cannot be read"),
        (["predict", FLATS, FLATS], "Hint: give a file that tallybayes fit -o MODEL wrote"),
        (["merge", FLATS, "-o", "x"], "at least two"),
        (["nonsense"], "No such command"),
        (["--nonsense"], "No such option"),
    ],
)
def test_bad_input_exits_2_and_says_how_to_mend_it(arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = run(*arguments)
    bad(done, "tallybayes: ", said)
    assert "Traceback" not in done.err and not done.stdout
    assert os.listdir(tmp_path) == []


# ---- predict, evaluate, explain


def test_predictions_are_those_of_the_library_in_every_format(model, tmp_path):
    expected = tb.load(model).predict_proba(str(FLATS))
    answers = [("fast", "slow")[i] for i in expected.argmax(axis=1)]
    table = list(csv.DictReader(good(run("predict", model, FLATS, "--proba", "--keep", "number")).splitlines()))
    assert [row["prediction"] for row in table] == answers and table[0]["number"] == "1001"
    np.testing.assert_array_equal([[float(row["P(fast)"]), float(row["P(slow)"])] for row in table], expected)
    lines = good(run("predict", model, "-", "--format", "jsonl", given=FLATS.read_bytes())).splitlines()
    assert [json.loads(line) for line in lines] == [{"row": i, "prediction": a} for i, a in enumerate(answers)]
    assert "240 rows" in good(run("predict", model, FLATS, "-o", tmp_path / "out.parquet"))
    assert pq.read_table(tmp_path / "out.parquet").column("prediction").to_pylist() == answers
    assert good(run("predict", model, FLATS, "-o", "-")).splitlines()[1:] == answers
    uniform = good(run("predict", model, FLATS, "--prior", "fast=0.999,slow=0.001"))
    assert uniform.count("fast") > answers.count("fast")


@pytest.mark.parametrize("form", ["csv", "jsonl", "parquet", "gzip"])
def test_standard_input_is_recognised_by_its_content(model, form, tmp_path):
    import gzip

    table = tb.read(str(FLATS))
    rows = rows_of()
    if form == "csv":
        raw = b"\xef\xbb\xbf" + FLATS.read_bytes()
    elif form == "gzip":
        raw = gzip.compress(FLATS.read_bytes())
    elif form == "jsonl":
        typed = [
            {k: float(v) if k in ("rooms", "size", "rent") and v else v or None for k, v in r.items()} for r in rows
        ]
        raw = "\n".join(map(json.dumps, typed)).encode()
    else:
        import pyarrow.csv

        options = pyarrow.csv.ParseOptions(newlines_in_values=True)
        pq.write_table(pyarrow.csv.read_csv(FLATS, parse_options=options), tmp_path / "x.parquet")
        raw = (tmp_path / "x.parquet").read_bytes()
    assert table is not None
    assert good(run("predict", model, "-", given=raw)) == good(run("predict", model, FLATS))


def test_a_file_keeps_all_columns_as_they_were(model, tmp_path):
    given = rows_of()
    for name in ("out.csv", "out.tsv.gz", "out.jsonl", "out.parquet"):
        assert "240 rows" in good(run("predict", model, FLATS, "-o", tmp_path / name))
    with open(tmp_path / "out.csv", newline="", encoding="utf-8") as file:
        kept = list(csv.DictReader(file))
    assert [{k: v for k, v in row.items() if k != "prediction"} for row in kept] == given
    lines = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text("utf-8").splitlines()]
    assert [line["row"] for line in lines] == list(range(240)) and lines[3]["district"] == given[3]["district"]
    assert pq.read_table(tmp_path / "out.parquet").column_names == [*given[0], "prediction"]
    good(run("predict", model, FLATS, "-o", tmp_path / "few.csv", "--keep", "number,let"))
    assert (tmp_path / "few.csv").read_text("utf-8").splitlines()[0] == "number,let,prediction"
    good(run("predict", model, FLATS, "-o", tmp_path / "none.csv", "--keep", "none"))
    assert (tmp_path / "none.csv").read_text("utf-8").splitlines()[0] == "prediction"


def test_costs_and_doubt_are_those_of_the_library(model, tmp_path):
    loaded, costs = tb.load(model), tmp_path / "costs.json"
    costs.write_text('{"slow": {"fast": 20}}')
    expected = loaded.predict(str(FLATS), costs={("slow", "fast"): 20}).tolist()
    assert expected != loaded.predict(str(FLATS)).tolist()
    for spelling in ("slow:fast=20", '{"slow": {"fast": 20}}', costs):
        assert good(run("predict", model, FLATS, "--costs", spelling)).splitlines()[1:] == expected
    unsure = loaded.predict(str(FLATS), unsure_below=0.9).tolist()
    lines = good(run("predict", model, FLATS, "--unsure-below", 0.9)).splitlines()[1:]
    assert lines == ['""' if a is None else a for a in unsure] and '""' in lines
    done = good(run("predict", model, FLATS, "--unsure-below", 0.9, "-o", tmp_path / "o.csv"))
    assert f"{unsure.count(None):,} of them left open" in done
    bad(run("predict", model, FLATS, "--costs", "slow=fast"), "is not ACTUAL:PREDICTED=COST")
    bad(run("predict", model, FLATS, "--costs", "slow:quick=2"), "which the model does not have")
    bad(run("predict", model, FLATS, "--keep", "prediction"), "--keep all writes it under another name")
    bad(run("predict", model, "--explain", FLATS), "or put --explain last")


def test_the_reasons_of_every_row_are_those_of_explain(model):
    lines = good(run("predict", model, FLATS, "--format", "jsonl", "--explain", 2)).splitlines()
    loaded = tb.load(model)
    for row in (0, 7, 100):
        found = json.loads(lines[row])
        terms = [x for x in loaded.explain(str(FLATS), row).odds().lines if x.column not in ("prior", "offsets")]
        strongest = sorted(terms, key=lambda x: -abs(x.log_odds))[:2]
        assert [found["log-odds 1"], found["log-odds 2"]] == pytest.approx([x.log_odds for x in strongest])
        assert found["because 1"].startswith(f"{strongest[0].column}: ")


def test_explain_top_and_importance_fit_the_page(model, monkeypatch):
    for columns in (60, 80):
        monkeypatch.setenv("COLUMNS", str(columns))
        pages = [run("explain", model, FLATS, "--top", 2, *more) for more in ((), ("--against", "fast"))]
        for out in [*map(good, pages), good(run("importance", model, FLATS)), good(run("importance", model))]:
            assert max(map(width, out.splitlines())) <= columns
        assert "the rest: " in good(pages[0])
    found = json.loads(good(run("explain", model, FLATS, "--top", 2, "--json")))
    assert len(found["contributions"]) == 4
    assert np.sum([c["parts"] for c in found["contributions"]], axis=0) == pytest.approx(found["total"])
    worth = json.loads(good(run("importance", model, FLATS, "--json")))
    assert worth["trained_on"] == "yes" and {c["column"] for c in worth["columns"]} >= {"district", "rent"}


def test_a_sealed_scorer_predicts_and_explains_but_cannot_be_updated(model, tmp_path):
    sealed = tmp_path / "flats.sealed.parquet"
    good(run("export", model, "-o", sealed))
    assert good(run("predict", sealed, FLATS)) == good(run("predict", model, FLATS))
    bad(run("update", sealed, FLATS), "a sealed scorer, which has no tally")
    hint = " ".join(run("show", sealed).err.partition("Hint: ")[2].split())
    able = re.fullmatch(r"(.*) answer by it; what asks for counts needs the model .*", hint)[1]
    for command in re.split(", | and ", able):  # each of those that the hint names does
        given = ["--model", sealed, "--model", model, FLATS] if command == "compare" else [sealed, FLATS]
        assert run(command, *given).returncode == 0


def test_evaluate_shows_figures_classes_confusion_and_mistakes(model):
    out = good(run("evaluate", model, FLATS, "--mistakes", 2))
    found = tb.evaluate(tb.load(model), str(FLATS))
    assert f"{found['accuracy']:.4f}" in out and f"{found['log_loss']:.4f}" in out
    for words in ("majority class", "By class", "precision", "is ↓  answered →", "The 2 surest of"):
        assert words in out
    row = int(re.search(r"--row (\d+)", out)[1])
    assert row == found.mistakes(1, explain=False)[0].row
    facts = json.loads(good(run("evaluate", model, FLATS, "--json")))
    assert facts["accuracy"] == pytest.approx(found["accuracy"]) and len(facts["by_class"]) == 2


@pytest.mark.parametrize(("columns", "figures"), [(100, 4), (60, 4), (50, 3), (30, 1)])
def test_a_narrow_screen_has_fewer_figures_and_cuts_none(model, monkeypatch, columns, figures):
    monkeypatch.setenv("COLUMNS", str(columns))
    out = good(run("evaluate", model, FLATS, "--mistakes", 0))
    line = re.search(r"^log loss .*$", out, re.MULTILINE)[0]
    assert width(line) <= columns and len(re.findall(r"\d\.\d{4}", line)) == figures
    worth = good(run("importance", model, FLATS))
    assert max(map(width, worth.splitlines())) <= columns
    assert any(line.startswith(" ") for line in worth.splitlines()) == (columns == 30)  # a remark in several lines


def test_evaluate_tells_rows_that_the_model_has_learnt_from(model, tmp_path):
    out = good(run("evaluate", model, FLATS))
    assert "240 rows that the model has learnt from" in out and "held-out" not in out
    assert "--cross-validate 10" in out and "ROC-AUC" in out and "average precision of slow" in out
    facts = json.loads(good(run("evaluate", model, FLATS, "--json", "--no-intervals")))
    assert facts["learnt_from"] == "all" and "accuracy_low" not in facts
    folds = good(run("evaluate", model, FLATS, "--cross-validate", 2, "--mistakes", 0))
    assert "2 folds" in folds and "learnt from" not in folds
    alike = write(tmp_path / "alike.csv", [r for r in rows_of() if r["let"] == "fast"][:3])
    few = run("evaluate", model, alike)
    assert "ROC-AUC" not in good(few) and not few.err  # one class has no area under a curve, and no warning
    new = [{k: v for k, v in r.items() if k != "let"} | {"gone": r["let"]} for r in rows_of()[:40]]
    data = write(tmp_path / "renamed.csv", new)
    bad(run("evaluate", model, data), "there is no target column 'let'", "--target COLUMN")
    bad(run("evaluate", model, data, "--target", "gon"), "did you mean 'gone'?")
    assert "40 rows that the model has learnt from" in good(run("evaluate", model, data, "--target", "gone"))


def test_saved_models_are_compared_on_the_same_rows(model, tmp_path):
    other = tmp_path / "other.tb"
    few = write(tmp_path / "few.csv", [{k: r[k] for k in ("district", "balcony", "let")} for r in rows_of()])
    good(run("fit", few, "--target", "let", "--no-calibrate", "--folds", 0, "-o", other))
    out = good(run("compare", "--model", model, "--model", other, FLATS, "--disagree", tmp_path / "apart.csv"))
    assert "exact McNemar" in out and "other, less" in out and "ROC-AUC" in out and "learnt from" in out
    rows = list(csv.DictReader((tmp_path / "apart.csv").read_text("utf-8").splitlines()))
    ours, theirs = (tb.load(m).predict(str(FLATS)).tolist() for m in (model, other))
    assert [int(r["row"]) for r in rows] == [i for i in range(240) if ours[i] != theirs[i]]
    assert all(r["other"] == theirs[int(r["row"])] for r in rows)
    facts = json.loads(good(run("compare", "--model", model, "--model", other, FLATS, "--json")))
    assert facts["disagreements"] == len(rows) and len(facts["differences"]) == 6
    bad(run("compare", "--model", model, FLATS), "give another")
    bad(run("compare", FLATS, "--target", "let", "--disagree", tmp_path / "x.csv"), "--model")
    bad(run("compare", "--model", model, "--model", other, FLATS, "--schema", "s.json"), "leave out --schema")
    same = good(run("compare", "--model", model, "--model", model, FLATS))
    assert "(1)" in same and "(2)" in same and "Answers differ on 0 of 240 rows" in same


def test_explain_is_the_library_s_explanation(model):
    explained = tb.load(model).explain(str(FLATS), 7, log="decibans")
    facts = json.loads(good(run("explain", model, FLATS, "--row", 7, "--log", "decibans", "--json")))
    assert facts["total"] == explained.total.tolist()
    out = good(run("explain", model, FLATS, "--row", 7, "--what-if"))
    assert "flats.csv, row 7" in out and "probability" in out and "What would change the answer" in out
    assert "against" in good(run("explain", model, FLATS, "--against", "fast"))
    bad(run("explain", model, FLATS, "--row", 240), "there is no row 240 among 240")
    bad(run("explain", model, FLATS, "--row", -1), "--row")


# ---- update, forget, merge


def test_update_and_forget_change_the_file_and_undo_each_other(copy, tmp_path):
    some = write(tmp_path / "some.csv", rows_of()[:20])
    before = tb.load(copy)
    assert "240 → 220 rows" in good(run("forget", copy, some))
    rest = tb.load(copy)
    assert rest.tally == tb.count(write(tmp_path / "rest.csv", rows_of()[20:]).as_posix(), before.schema)
    assert "220 → 240 rows" in good(run("update", copy, some))
    assert tb.load(copy).tally == before.tally and copy.read_bytes() != b""
    other = tmp_path / "other.parquet"
    good(run("update", copy, some, "-o", other))
    assert tb.load(copy).tally == before.tally and tb.load(other).tally.rows == 260


def test_a_row_that_was_never_counted_is_not_forgotten_and_the_file_stays(copy, tmp_path):
    strange = [{**rows_of()[0], "rent": "1.25"}]
    before = copy.read_bytes()
    bad(run("forget", copy, write(tmp_path / "strange.csv", strange)), "Hint:")
    assert copy.read_bytes() == before


def test_models_counted_apart_add_up(tmp_path):
    schema = tmp_path / "schema.json"
    good(run("fit", FLATS, "--target", "let", *QUICK, "--save-schema", schema, "-o", tmp_path / "all.parquet"))
    parts = []
    for i in range(3):
        data = write(tmp_path / f"part-{i}.csv", rows_of()[i::3])
        parts.append(tmp_path / f"part-{i}.parquet")
        good(run("fit", data, "--schema", schema, *QUICK, "-o", parts[-1]))
    good(run("merge", *parts, "-o", tmp_path / "sum.parquet"))
    assert tb.load(tmp_path / "sum.parquet").tally == tb.load(tmp_path / "all.parquet").tally
    pattern = run("fit", tmp_path / "part-*.csv", "--schema", schema, *QUICK, "-o", tmp_path / "glob.parquet")
    assert pattern.returncode == 0
    assert tb.load(tmp_path / "glob.parquet").tally == tb.load(tmp_path / "all.parquet").tally


def test_tallies_and_models_are_subtracted_as_they_were_merged(model, copy, tmp_path):
    part = tmp_path / "part.parquet"
    good(run("recalibrate", copy, FLATS, "--effort", "quick"))
    tb.count(write(tmp_path / "part.csv", rows_of()[:30]).as_posix(), tb.load(copy).schema).save(part)
    whole = tb.load(copy)
    merged = good(run("merge", copy, part, "-o", tmp_path / "sum.parquet"))
    assert "240 → 270 rows" in merged and "tallybayes recalibrate" in merged and "30 rows of the others" in merged
    less = good(run("subtract", tmp_path / "sum.parquet", part))
    assert "270 → 240 rows" in less and "changed since" not in less
    assert tb.load(tmp_path / "sum.parquet").tally == whole.tally
    good(run("subtract", copy, part, "-o", tmp_path / "rest.parquet"))
    assert tb.load(copy).tally == whole.tally and tb.load(tmp_path / "rest.parquet").tally.rows == 210
    before = part.read_bytes()
    bad(run("subtract", part, copy), "nothing has been forgotten")
    assert part.read_bytes() == before
    twice = run("merge", part, part, "-o", tmp_path / "twice.parquet")
    assert twice.returncode == 0 and "hold the same counts" in twice.err
    assert tb.Tally.load(tmp_path / "twice.parquet") == 2 * tb.Tally.load(part)
    bad(run("shift", tmp_path / "twice.parquet", tmp_path / "none.csv"), "none.csv")


def test_recalibrate_fits_weights_anew_and_keeps_the_counts(copy, tmp_path):
    before = tb.load(copy)
    out = good(run("recalibrate", copy, FLATS, "--effort", "quick", "-o", tmp_path / "new.parquet"))
    assert "fitted on 240 rows" in out and tb.load(copy).settings == before.settings
    assert tb.load(tmp_path / "new.parquet").tally == before.tally
    bad(run("recalibrate", copy, FLATS, "--effort", "much"), "much")


def test_shift_of_models_tallies_and_rows(copy, tmp_path):
    moved = [{**row, "rent": str(float(row["rent"] or 900) + 400)} for row in rows_of()]
    bare = [{name: value for name, value in row.items() if name != "let"} for row in moved]
    assert "without labels" in (out := good(run("shift", copy, write(tmp_path / "bare.csv", bare)))) and "rent" in out
    told = json.loads(good(run("shift", copy, write(tmp_path / "moved.csv", moved), "--json")))
    assert {c["column"]: c["verdict"] for c in told["columns"]}["rent"] == "shifted" and told["mixture"] == {}
    assert "No sign of a shift" in " ".join(good(run("shift", copy, copy)).split())
    watch = tb.load(copy).watch()
    watch.see(bare)
    watch.save(tmp_path / "watch.parquet")
    told = json.loads(good(run("shift", copy, tmp_path / "watch.parquet", "--json")))
    assert {c["column"]: c["verdict"] for c in told["columns"]}["rent"] == "shifted" and told["mixture"]


def test_predict_says_what_was_never_learnt(copy, tmp_path):
    strange = [{**row, "rent": "999999", "heating": "volcano"} for row in rows_of()[:3]]
    done = run("predict", copy, write(tmp_path / "strange.csv", strange), "-o", tmp_path / "out.csv")
    assert done.returncode == 0 and "rent 3 beyond" in done.err and "heating 3 never seen" in done.err
    assert run("predict", copy, FLATS, "-o", tmp_path / "out.csv").err == ""


# ---- show, report, export, tune, compare


def test_show_reads_like_a_page(model):
    page = good(run("show", model))
    assert re.search(r"\nWhere it comes from\nmade +20", page)  # a list, without a line for heads that it has not
    out = " ".join(page.split())  # the path may be so long that the heading takes two lines
    heads = [
        "let from 7 columns, 240 rows",
        "Classes",
        "Columns",
        "Left out",
        "Numbers",
        "P(balcony given let)",
        "Most telling",
    ]
    assert sorted(map(out.index, heads)) == [out.index(h) for h in heads]
    assert tb.load(model).tally.digest in out.replace(" ", "")
    assert "gas" in good(run("show", model, "--column", "heating"))
    bad(run("show", model, "--column", "heeting"), "did you mean 'heating'?")
    facts = json.loads(good(run("show", model, "--json")))
    assert facts["classes"] == ["fast", "slow"] and len(facts["tables"]) == 7


def test_report_writes_one_page(model, tmp_path):
    pytest.importorskip("matplotlib")
    good(run("report", model, FLATS, "-o", tmp_path / "report.html"))
    page = (tmp_path / "report.html").read_text("utf-8")
    assert page.lower().startswith("<!doctype html>") and "balcony" in page


@pytest.mark.parametrize("form", ["json", "card", "sealed", "sql", "onnx"])
def test_export_writes_what_the_library_writes(form, tmp_path):
    if form == "onnx":
        pytest.importorskip("onnx")
    path = tmp_path / "m.tb.parquet"
    good(run("fit", FLATS, "--target", "let", "--set", "note=ignore", *QUICK, "-o", path))
    model = tb.load(path)
    end = {"json": ".json", "card": ".md", "sealed": ".sealed.parquet", "sql": ".sql", "onnx": ".onnx"}[form]
    good(run("export", path, "-o", tmp_path / f"out{end}"))
    written = (tmp_path / f"out{end}").read_bytes()
    assert run("export", path, "--format", form).stdout == written
    if form == "sql":
        assert model.to_sql("rows").query.strip().rstrip(";") in written.decode()
    else:
        assert written == model.export(None, form)


def test_scripts_of_two_models_share_a_database(tmp_path):
    rows = {"v": [f"v{i % 200}" for i in range(900)], "y": [i % 7 < 3 for i in range(900)]}
    schema = tb.Schema([tb.Column("v", "category")], "y")
    known = {}
    for number, name in enumerate(["first.tb.parquet", "First (2).tb.parquet", "ZWEI"]):
        known[name] = tb.count({"v": rows["v"], "y": rows["y"][number:] + rows["y"][:number]}, schema).model()
        known[name].save(tmp_path / name)
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as db:
        db.execute("CREATE TABLE houses (id, v)")
        db.executemany("INSERT INTO houses VALUES (?, ?)", [(i, v) for i, v in enumerate(rows["v"][:200])])

        def found(name: str, *more: str) -> list[float]:
            script = good(run("export", tmp_path / name, "--format", "sql", "--dialect", "sqlite", "--table", "houses",
                              "--keep", "id", *more))  # fmt: skip
            setup, commit, query = script.partition("COMMIT;\n")
            db.executescript(setup + commit)
            assert [d[0] for d in db.execute(query).description] == ["id", "prediction", "P(false)", "P(true)"]
            return [row[3] for row in sorted(db.execute(query))]

        def wanted(name: str) -> list[float]:
            return pytest.approx(
                tb.load(tmp_path / name).predict_proba({"v": rows["v"][:200]})[:, 1].tolist(), abs=1e-9
            )

        for name in [*known, *known]:
            assert found(name) == wanted(name)
        tables = {row[0] for row in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")} - {"houses"}
        assert len(tables) == 3 and "tallybayes_first" in tables
        known["ZWEI"].update({"v": ["v1"] * 50, "y": [True] * 50}).save(tmp_path / "ZWEI")
        assert found("ZWEI") == wanted("ZWEI") and found("first.tb.parquet") == wanted("first.tb.parquet")
        assert found("ZWEI", "--weights-table", 'it\'s "mine"') == wanted("ZWEI")
        assert len(db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()) == 5
    bad(
        run("export", tmp_path / "ZWEI", "--format", "sql", "--table", "t", "--weights-table", "T"),
        "--weights-table NAME",
    )
    bad(run("export", tmp_path / "ZWEI", "--format", "json", "--keep", "id"), "--keep and --weights-table are for")


def test_show_reveals_what_few_rows_have(model):
    page = good(run("show", model, "--reveals", "--top", "2", "--column", "rent"))
    known = tb.load(model).reveals()
    rent = next(c for c in known.columns if c.column == "rent")
    assert known.title in page and all(line in page for line in rent.summary)
    assert f"… {len(rent.lines) - 2:,} more lines" in page and "balcony" not in page
    told = json.loads(good(run("show", model, "--reveals", "--json")))
    assert told == json.loads(json.dumps(known.to_dict()))
    bad(run("show", model, "--reveals", "--column", "rnet"), "rent")


def test_share_writes_a_copy_and_says_what_is_lost(model, tmp_path):
    said = good(run("share", model, FLATS, "--at-least", "8", "-o", tmp_path / "copy"))
    shared = tb.load(model).share(8)
    assert tb.load(tmp_path / "copy").tally == shared.model.tally and tb.Tally.load(tmp_path / "copy").least_rows == 8
    assert shared.title in said and f"→ {shared.measured(FLATS)['log_loss_of_copy']:.4f}" in said
    assert "without what fewer than 8 rows had" in good(run("show", tmp_path / "copy"))
    assert run("share", model, "--at-least", "8", "-o", "-").stdout == (tmp_path / "copy").read_bytes()
    bad(run("share", model, "-o", model), "would take the place of")
    bad(run("forget", tmp_path / "copy", FLATS), "copy without what fewer than 8 rows had")


def test_export_needs_to_know_what_to_write(model):
    bad(run("export", model), "--format sealed|json|onnx|card|sql")
    bad(run("export", model, "-o", "model.docx"), "there is no export to 'model.docx'")


def test_tune_chooses_and_writes_a_model(tmp_path):
    few = write(
        tmp_path / "few.csv", [{k: r[k] for k in ("district", "rent", "balcony", "let")} for r in rows_of()[:90]]
    )
    tuned = ["tune", few, "--target", "let", "--smoothing", "laplace:0.1"]
    out = good(run(*tuned, "--try", "rent=gaussian,bins", "-o", tmp_path / "m.parquet"))
    assert re.search(r"held-out log loss 0\.\d+ → 0\.\d+", out) and "laplace:" in out
    assert tb.load(tmp_path / "m.parquet").families["rent"].describe() in ("gaussian", "bins")
    facts = json.loads(good(run(*tuned, "--json")))
    assert facts["after"] <= facts["before"]


def test_compare_shows_rivals(tmp_path):
    data = write(tmp_path / "few.csv", [{k: r[k] for k in ("district", "balcony", "let")} for r in rows_of()[:60]])
    out = good(run("compare", data, "--target", "let", "--folds", 2))
    assert "tallybayes" in out and "majority class" in out and "seconds per fold" in out
    assert {
        r["classifier"] for r in json.loads(good(run("compare", data, "--target", "let", "--folds", 2, "--json")))
    } >= {"tallybayes"}


# ---- a terminal


def on_a_terminal(*arguments: object, columns: int) -> str:
    """What a terminal of so many columns shows, without colours."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k != "COLUMNS"} | {"TERM": "xterm"}
    with subprocess.Popen(
        [COMMAND, *map(str, arguments)], stdout=follower, stderr=follower, env=environment
    ) as process:
        os.close(follower)
        out = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(leader, 1 << 16):
                out += piece
    os.close(leader)
    assert process.returncode == 0, out
    return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", out.decode()).replace("\r\n", "\n")


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_pages_fit_the_terminal(model, columns):
    shown = on_a_terminal("predict", model, FLATS, "--proba", "--keep", "note", columns=columns)
    assert "200 more rows: all of them with -o FILE, or through a pipe" in shown and "P(slow)" in shown
    for text in (shown, on_a_terminal("show", model, columns=columns)):
        assert max(map(len, text.splitlines())) <= columns


# ---- files as people have them


def test_a_byte_order_mark_semicolons_and_quoted_newlines_are_understood(tmp_path):
    assert any("\n" in r["note"] for r in rows_of())
    office = write(tmp_path / "office.csv", rows_of(), encoding="utf-8-sig", delimiter=";")
    for path, out in ((FLATS, "a"), (office, "b")):
        good(run("fit", path, "--target", "let", *QUICK, "-o", tmp_path / out))
    assert tb.load(tmp_path / "a").tally == tb.load(tmp_path / "b").tally


def test_new_classes_are_said_or_refused(copy, tmp_path):
    more = write(tmp_path / "more.csv", [{**r, "let": "perhaps"} for r in rows_of()[:3]])
    before = copy.read_bytes()
    bad(run("update", copy, more, "--new-classes", "refuse"), "'perhaps' is a label of 'let'", "--new-classes allow")
    assert copy.read_bytes() == before
    assert "new class of let: perhaps (3)" in good(run("update", copy, more))
    assert "new class" not in good(run("update", copy, more))


def test_every_command_that_infers_takes_how_cells_are_read(tmp_path):
    rows = [{"size": "gone" if i % 9 == 0 else str(i % 5 + 40), "let": "ab"[i % 2]} for i in range(40)]
    path = write(tmp_path / "gone.csv", rows)
    asked = ["tune", path, "--target", "let", "--folds", 2, "--smoothing", "laplace:1", "-o", tmp_path / "m"]
    assert run(*asked, "--missing", "gone", "--fold").returncode == 0
    schema = tb.load(tmp_path / "m").schema
    assert schema["size"].kind == "number" and "gone" in schema.missing and schema.fold
    for command in ("tune", "compare"):
        bad(run(command, path, "--target", "let", "--strict", "--date-format", "%"), "%")
        bad(run(command, path, "--schema", "s.json", "--strict"), "--schema says how cells are read")


def test_decimal_commas_are_read_and_said(tmp_path):
    rows = [{**r, "size": r["size"].replace(".", ","), "rent": r["rent"].replace(".", ",")} for r in rows_of()]
    path = write(tmp_path / "comma.csv", rows, delimiter=";")
    done = run("fit", path, "--target", "let", *QUICK)
    assert done.returncode == 0 and re.search("rent +number .*a decimal comma", done.out)
    few = write(tmp_path / "few.csv", [{**r, "rent": f"{i % 7},{i % 3}"} for i, r in enumerate(rows)], delimiter=";")
    done = run("fit", few, "--target", "let", *QUICK)
    assert done.returncode == 0 and "'rent' holds numbers with a comma" in done.err and "--decimal ," in done.err
    good(run("fit", path, "--target", "let", "--decimal", ",", *QUICK, "-o", tmp_path / "m"))
    good(run("fit", FLATS, "--target", "let", *QUICK, "-o", tmp_path / "same"))
    model, same = tb.load(tmp_path / "m"), tb.load(tmp_path / "same")
    assert dict(model.tally.columns) == dict(same.tally.columns)
    again = run("predict", tmp_path / "m", path, "--proba")  # what fit was told is not told again
    assert (
        again.returncode == 0
        and again.stdout == run("predict", tmp_path / "m", path, "--decimal", ",", "--proba").stdout
    )
    rows = [{**r, "rent": ""} for r in rows[:3]]
    odd = write(tmp_path / "odd.csv", rows, delimiter=";")
    good(run("update", tmp_path / "m", odd, "-o", tmp_path / "more"))
    good(run("forget", tmp_path / "more", odd))
    assert tb.load(tmp_path / "more").tally == model.tally


def test_a_latin_1_file_is_refused_with_a_hint_that_mends_it(tmp_path):
    path = tmp_path / "latin.csv"
    path.write_bytes(FLATS.read_text("utf-8").encode("latin-1"))
    bad(run("fit", path, "--target", "let"), "latin.csv, line 16: bytes that are not UTF-8", "--encoding latin-1")
    good(run("fit", path, "--target", "let", "--encoding", "latin-1", *QUICK, "-o", tmp_path / "m"))
    good(run("fit", FLATS, "--target", "let", *QUICK, "-o", tmp_path / "same"))
    assert tb.load(tmp_path / "m").tally == tb.load(tmp_path / "same").tally


def test_bad_lines_are_named_or_skipped(tmp_path):
    path = tmp_path / "ragged.csv"
    path.write_text("sky,play\nsunny,yes\nrainy,no,never\nrainy,no\n" + "sunny,yes\n" * 8)
    bad(run("fit", path, "--target", "play"), "ragged.csv, line 3", "--bad-lines skip")
    done = run("fit", path, "--target", "play", "--bad-lines", "skip", "--folds", 0)
    assert done.returncode == 0 and "1 bad line was skipped" in done.err and "10 rows" in done.out


# ---- hostile names


HOSTILE = [
    "\x1b]0;owned\x07\x1b[2J",
    "[bold red]markup[/]",
    "<script>alert(1)</script>",
    "'; DROP TABLE rows; --",
    "x" * 10_000,
    "a\u202eb\u2028c",
]


def test_no_control_character_of_a_name_or_value_reaches_the_terminal(tmp_path):
    draw = random.Random(3).choice
    rows = [
        {HOSTILE[0]: draw(HOSTILE), HOSTILE[1]: draw(["0.5", "1.5", "2.25"]), HOSTILE[2]: draw(HOSTILE[:3]), "y": y}
        for y in [HOSTILE[0], HOSTILE[3]] * 30
    ]
    data, path = write(tmp_path / "h.csv", rows), tmp_path / "h.parquet"
    screens = [
        run("fit", data, "--target", "y", "--folds", 2, "-o", path),
        run("show", path),
        run("show", path, "--column", HOSTILE[0]),
        run("evaluate", path, data),
        run("explain", path, data, "--what-if"),
        run("show", path, "--column", "\x1b[31mnone"),
        run("fit", data, "--target", "\x1b[31mnone"),
        run("fit", data, "--target", "y", "--set", "\x1b[31mnone=number"),
    ]
    for done in screens:
        for text in (done.out, done.err):
            assert not set(text) & {"\x1b", "\x07", "\u202e", "\u2028", "\x9b"}
            assert max(map(len, text.splitlines()), default=0) < 1_000
    assert [s.returncode for s in screens] == [0, 0, 0, 0, 0, 2, 2, 2]
    assert "[bold red]markup[/]" in screens[0].out, "markup is text"
    back = list(csv.reader(good(run("predict", path, data)).splitlines()))
    assert {row[0] for row in back[1:]} <= {HOSTILE[0], HOSTILE[3]}, "data is passed on as it is"


# ---- cut short


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 1), (signal.SIGTERM, 143)])
def test_an_interrupted_fit_leaves_no_file(number, code, tmp_path):
    data = write(tmp_path / "many.csv", rows_of() * 300)
    out = tmp_path / "m.parquet"
    command = [COMMAND, "fit", str(data), "--target", "let", "--set", "note=text", "-o", str(out)]
    heed = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731  # a shell's background jobs ignore it
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, **pipes, preexec_fn=heed) as process:
        assert "what is counted" in process.stdout.readline()
        time.sleep(0.1)
        process.send_signal(number)
        _, err = process.communicate(timeout=60)
    assert process.returncode == code and "stopped; no file was changed" in err and "Traceback" not in err
    assert sorted(os.listdir(tmp_path)) == ["many.csv"]


def test_sigterm_while_another_command_has_the_model_leaves_it_as_it_was(copy, tmp_path):
    data = write(tmp_path / "more.csv", rows_of())
    before = copy.read_bytes()
    with (
        locked(copy),
        subprocess.Popen([COMMAND, "update", str(copy), str(data)], stderr=subprocess.PIPE, text=True) as process,
    ):
        assert process.stderr.readline() == f"tallybayes: another command is changing {copy}; waiting\n"
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 143 and err.strip() == "tallybayes: stopped; no file was changed"
    assert copy.read_bytes() == before and sorted(os.listdir(tmp_path)) == ["copy.tb.parquet", "more.csv"]


def test_a_dead_process_holds_no_lock(copy, tmp_path):
    hold = (
        "import sys, time; from tallybayes.base.disk import locked\n"
        "with locked(sys.argv[1]): print(1, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", hold, str(copy)], stdout=subprocess.PIPE) as process:
        assert process.stdout.readline() == b"1\n"
        process.kill()
    assert (tmp_path / ".copy.tb.parquet.lock").exists()
    assert "240 → 480 rows" in good(run("update", copy, FLATS))
    assert sorted(os.listdir(tmp_path)) == ["copy.tb.parquet"]


def test_two_updates_at_once_lose_no_row(copy, tmp_path):
    """Five processes, each with a row of its own: without a lock the last to write would win."""
    files = [write(tmp_path / f"{i}.csv", rows_of()[i : i + 1]) for i in range(5)]
    each = [
        subprocess.Popen([COMMAND, "update", str(copy), str(f)], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        for f in files
    ]
    done = [p.communicate(timeout=120) for p in each]
    assert [p.returncode for p in each] == [0] * 5, done
    assert {err for _, err in done} <= {b"", f"tallybayes: another command is changing {copy}; waiting\n".encode()}
    before = tb.load(copy)
    assert before.tally.rows == 245
    good(run("forget", copy, write(tmp_path / "all.csv", rows_of()[:5])))
    assert tb.load(copy).tally.rows == 240
    assert not list(tmp_path.glob(".*"))


def test_a_full_disk_leaves_the_old_model(copy, tmp_path):
    data = write(tmp_path / "more.csv", rows_of())
    before = copy.read_bytes()
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))  # noqa: E731 - runs in the child
    done = start("update", copy, data, preexec_fn=limit)
    assert done.returncode == 1 and "File too large" in done.err and "Traceback" not in done.err
    assert copy.read_bytes() == before and sorted(os.listdir(tmp_path)) == ["copy.tb.parquet", "more.csv"]
    assert (
        start(
            "predict",
            copy,
            data,
            "-o",
            tmp_path / "a.csv",
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500, 500)),
        ).returncode
        == 1
    )
    assert sorted(os.listdir(tmp_path)) == ["copy.tb.parquet", "more.csv"]


def test_a_closed_pipe_is_no_complaint(model, tmp_path):
    data = write(tmp_path / "many.csv", rows_of() * 200)
    with subprocess.Popen(
        [COMMAND, "predict", str(model), str(data), "--proba"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 1


def test_a_narrow_screen_names_columns_and_verdicts(model, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "60")
    for page in (run("shift", model, FLATS).out, run("show", model).out):
        assert max(map(width, (line for line in page.splitlines() if not line.startswith("Weights")))) <= 60
        assert {"district", "rent", "balcony", "heating"} <= {line.partition(" ")[0] for line in page.splitlines()}
    assert run("shift", model, FLATS).out.count("no sign of a") >= 5
    assert "believed as" in run("show", model).out


def test_standard_input_is_called_so(model):
    broken = run("predict", model, "-", given=b"{bad\n")
    assert broken.err.startswith("tallybayes: standard input, line 1: not JSON")
    nothing = run("predict", model, "-", given=b"{}\n{}\n")
    assert nothing.returncode == 2
    assert nothing.err.startswith("tallybayes: standard input: the objects have no keys")
    judged = run("evaluate", model, "-", "--no-intervals", given=FLATS.read_bytes())
    assert " - --row " in judged.out


def test_a_fit_whose_reader_has_seen_enough_still_writes_the_model(tmp_path, monkeypatch):
    def gone(*pieces):
        raise BrokenPipeError

    data, model = write(tmp_path / "some.csv", rows_of()), tmp_path / "model.tb.parquet"
    monkeypatch.setattr("tallybayes.cli.fitting.show", gone)
    done = run("fit", data, "--target", "let", "--no-calibrate", "--folds", 0, "-o", model)
    assert (done.returncode, done.out) == (0, "")
    assert tb.load(model).tally.rows == len(rows_of())
    assert "model written to" in done.err
    assert run("fit", data, "--target", "let", "--no-calibrate", "--folds", 0).returncode == 1


# ---- what is loaded, and how the page keeps up


HEAVY = {"numba", "llvmlite", "pandas", "sklearn", "matplotlib"}


def loaded_by(*arguments: object) -> set[str]:
    code = (
        "import sys\nfrom tallybayes.cli import main\ntry:\n    main(sys.argv[1:])\nexcept SystemExit as end:\n"
        "    assert not end.code\nprint(*sorted({m.partition('.')[0] for m in sys.modules}), file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, arguments)], capture_output=True, text=True, check=True
    )
    return set(done.stderr.split())


def test_help_loads_click_alone():
    for arguments in (["--help"], ["fit", "--help"], ["mail", "score", "--help"]):
        assert not loaded_by(*arguments) & (HEAVY | {"numpy", "pyarrow", "scipy", "duckdb", "rich"})


def test_one_prediction_loads_no_heavy_library(model, tmp_path):
    one = write(tmp_path / "one.csv", rows_of()[:1])
    assert not loaded_by("predict", model, one, "--proba") & (HEAVY | {"rich"})


def test_the_reference_page_is_what_the_commands_say():
    assert reference(tallybayes) == (ROOT / "docs" / "commands.md").read_text("utf-8"), (
        "write it again: tallybayes reference > docs/commands.md"
    )


def test_every_command_is_documented_and_run_in_a_page():
    run_in_pages = {
        words[2]
        for page in PAGES
        for words in (line.split() for line in page.read_text("utf-8").splitlines() if line.startswith("$ tallybayes "))
        if "--help" not in words
    }
    offered = {name for name, command in tallybayes.commands.items() if not command.hidden}
    assert offered - run_in_pages == set()
    for name in offered:
        assert tallybayes.commands[name].short_help or tallybayes.commands[name].help
        assert len(tallybayes.commands[name].get_short_help_str(200)) < 60


def test_completion_knows_the_commands():
    environment = {
        **os.environ,
        "_TALLYBAYES_COMPLETE": "bash_complete",
        "COMP_WORDS": "tallybayes ",
        "COMP_CWORD": "1",
    }
    done = start(env=environment)
    assert {"plain,fit", "plain,forget"} <= set(done.out.split())


# ---- the words of options


def test_smoothings_are_read_as_they_are_written():
    for text in (
        "laplace:0.5",
        "maximum-likelihood",
        "epsilon:1e-09",
        "jelinek-mercer:0.25",
        "absolute-discount:0.5",
        "good-turing",
    ):
        assert smoothing_words(smoothing_of(text)) == text
    by_column = Choices.of([], ["a=laplace:2", "b=good-turing"]).settings
    assert by_column.smoothing == {"a": tb.Laplace(2.0), "b": tb.GoodTuring()}
    assert Choices.of([]).settings is None
    assert parse_prior("uniform") == "uniform" and parse_pairs(["no"]) is False and parse_pairs([]) == "auto"


def test_a_date_may_be_ignored_or_named_as_a_whole(tmp_path):
    path = tmp_path / "dates.csv"
    path.write_text("day,x,y\n" + "".join(f"2024-0{i % 9 + 1}-11,{i % 5 + 0.5},{'ab'[i % 2]}\n" for i in range(40)))
    assert "day.weekday" in good(run("fit", path, "--target", "y", *QUICK))
    assert "day.weekday" not in good(run("fit", path, "--target", "y", *QUICK, "--set", "day=ignore"))


def test_hints_speak_of_options():
    assert for_commands("read it with tb.read(path, format='parquet').") == "read it with --read-as parquet."
    assert for_commands("tb.read(path, bad_lines='skip')") == "--bad-lines skip"
    assert for_commands("schema.with_column('a b', kind='text')") == "--set 'a b=text'"


def test_the_package_itself_is_the_command() -> None:
    done = subprocess.run([sys.executable, "-m", "tallybayes", "--help"], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("Usage: tallybayes")


# ---- files as people have them


def test_fit_makes_a_model_where_nothing_can_be_measured(tmp_path):
    data, model = tmp_path / "few.csv", tmp_path / "few.tb.parquet"
    data.write_text("a,b,y\nx,1,ja\ny,2,nein\n")
    out = good(run("fit", data, "--target", "y", "-o", model))
    assert "not measured on rows it has not seen: all rows fall into one fold" in out
    assert tb.load(model).tally.rows == 2
    data.write_text("a,b,y\nx,1,ja\n")
    good(run("fit", data, "--target", "y"))
    bad(run("fit", data, "--target", "y", "--folds", 2), "all rows fall into one fold")  # asked for, it is refused


def test_a_header_below_a_title_is_found(tmp_path):
    data = tmp_path / "titled.csv"
    data.write_text("Report of sales,,\n\na,b,y\n" + "u,1,ja\nv,2,nein\n" * 9)
    said = run("fit", data, "--target", "y")
    bad(said, "there is no target column 'y'", "line 3 holds 'y': leave out what stands above the names.")
    assert "above the names" not in run("fit", data, "--target", "z").err


def test_blanks_around_labels_and_lines_within_values_do_not_spoil_a_page(tmp_path):
    data = tmp_path / "blanks.csv"
    data.write_text('"two\nlines",y\n' + '"u\nv",ja\n"u\nw", ja \n' * 9 + '"u\nv",nein\n')
    said = run("fit", data, "--target", "y", "--folds", 0, "--no-calibrate")
    assert "' ja ', ja are 2 classes of 'y'" in said.err
    assert "19 rows: y ' ja ' 9, ja 9, nein 1" in said.out
    assert re.search(r"^two lines +category +text, 2 different values: u v, u w$", said.out, re.MULTILINE)
