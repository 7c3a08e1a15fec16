"""The command `sets`, and `predict --sets`: what a file gets, and what is said where there are none."""

import csv
import json
import random

from command_line import run

import tallybayes as tb


def table(path, rows, labelled=True):
    rng = random.Random(rows)
    with open(path, "w", encoding="utf-8", newline="") as file:
        out = csv.writer(file)
        out.writerow(["sky", "wind", *(["play"] if labelled else [])])
        for _ in range(rows):
            play = rng.random() < 0.5
            sky = rng.choice(["sunny", "sunny", "rainy"] if play else ["rainy", "rainy", "sunny"])
            out.writerow([sky, round(rng.gauss(play, 1), 2), *([["no", "yes"][play]] if labelled else [])])
    return path


def test_sets_are_kept_and_written(tmp_path):
    known, new = table(tmp_path / "known.csv", 120), table(tmp_path / "new.csv", 30, labelled=False)
    file = tmp_path / "m.tb.parquet"
    tb.textbook(str(known), "play").save(file)
    without = run("predict", file, new, "--sets", "0.9")
    assert without.returncode == 2
    assert "has no prediction sets" in without.err
    assert f"tallybayes sets {file} DATA" in without.err
    beside = run("predict", file, new, "--sets", "0.9", "--calibration", known)
    done = run("sets", file, known)
    assert done.returncode == 0, done.err
    assert "120 rows, each left out by itself" in done.out
    kept = run("predict", file, new, "--sets", "0.9")
    assert kept.out == beside.out
    lines = list(csv.DictReader(kept.out.splitlines()))
    wanted = tb.load(file).predict_set(str(new), 0.9)
    assert [tuple(line["set"].split(" | ")) for line in lines] == list(wanted)
    assert [line["prediction"] for line in lines] == [one[0] for one in wanted]
    by_class = run("predict", file, new, "--sets", "0.8", "--by-class", "--format", "jsonl", "--proba")
    apart = tb.load(file).predict_set(str(new), 0.8, by_class=True)
    assert [json.loads(line)["set"] for line in by_class.out.splitlines()] == [" | ".join(one) for one in apart]
    told = json.loads(run("sets", file, known, "--json").out)
    assert told["rows"] == 120
    assert list(told["sizes"]) == ["0.8", "0.9", "0.95", "0.99"]
    assert "prediction sets: scores of 120 rows, class by class" in run("show", file, "--reveals").out


def test_what_is_refused(tmp_path):
    known = table(tmp_path / "known.csv", 60)
    file, sealed = tmp_path / "m.tb.parquet", tmp_path / "m.sealed.parquet"
    model = tb.textbook(str(known), "play")
    model.save(file)
    model.export(sealed, "sealed")
    for options in (["--by-class"], ["--calibration", known]):
        alone = run("predict", file, known, *options)
        assert alone.returncode == 2
        assert "add --sets 0.9" in alone.err
    assert "sealed" in run("predict", sealed, known, "--sets", "0.9").err
    other = run("predict", file, known, "--sets", "0.9", "--calibration", known, "--prior", "uniform")
    assert "another prior" in other.err
    with open(known, encoding="utf-8") as lines:
        part = "".join(lines.readlines()[:31])
    (tmp_path / "part.csv").write_text(part)
    assert "neither all of the 60 rows" in run("sets", file, tmp_path / "part.csv").err
