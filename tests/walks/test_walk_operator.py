"""An operator: a model in production that learns, forgets, is recalibrated, drifts, and is fed broken files."""

import random

import numpy as np
import pytest
from command_line import run
from strategies import ALL

import tallybayes as tb

ROWS = 30_000 if ALL else 240


def rows(path, seed, *, first=0, shift=0.0, n=ROWS, labels=("yes", "no")):
    """A day's rows in a CSV; `shift` moves the amounts."""
    draw = random.Random(seed)
    lines = ["id,amount,country,hour,fraud"]
    for i in range(n):
        fraud = draw.random() < 0.3
        amount = draw.gauss((90 if fraud else 40) + shift, 15)
        country = draw.choice(["DE", "FR", "XX"] if fraud else ["DE", "FR"])
        lines.append(f"T{first + i:06d},{amount:.2f},{country},{draw.randrange(24)},{labels[not fraud]}")
    path.write_text("\n".join(lines) + "\n")
    return path


@pytest.fixture(scope="module")
def plant(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plant")
    first, second = rows(folder / "monday.csv", 1), rows(folder / "tuesday.csv", 2, first=ROWS)
    model = folder / "fraud.tb.parquet"
    options = ["--target", "fraud", "--receipts", "--effort", "quick", "-o", model]
    assert run("fit", first, *options).returncode == 0
    return folder, first, second, model


def test_the_walk_of_an_operator(plant):
    folder, first, second, model = plant
    before, bytes_before = tb.load(model), model.read_bytes()

    # a day is added, and taken away again: the same counts, and the file is never half
    assert f"{2 * ROWS:,}" in run("update", model, second).out
    assert tb.load(model).tally.rows == 2 * ROWS
    assert tb.load(model).settings.calibrated.changed == ROWS
    assert run("forget", model, second).returncode == 0
    assert tb.load(model).tally == before.tally

    # rows that were never counted are refused, and name themselves
    once_more = run("forget", model, second)
    assert once_more.returncode == 2
    assert "never counted" in once_more.err or "cannot" in once_more.err
    assert tb.load(model).tally == before.tally

    # one customer asks to be forgotten
    lines = first.read_text().splitlines()
    (folder / "one.csv").write_text("\n".join([lines[0], lines[7]]) + "\n")
    assert run("forget", model, folder / "one.csv").returncode == 0
    assert tb.load(model).tally.rows == ROWS - 1
    assert run("update", model, folder / "one.csv").returncode == 0
    assert tb.load(model).tally == before.tally
    model.write_bytes(bytes_before)

    # figures on the next day; then the amounts move, and both the figures and the shift say so
    judged = run("evaluate", model, second)
    assert judged.returncode == 0
    assert f"{ROWS:,} held-out rows, 2 classes" in judged.out or f"{ROWS:,} rows, 2 classes: no sign" in judged.out
    moved = rows(folder / "wednesday.csv", 3, first=2 * ROWS, shift=60.0)
    good = tb.evaluate(before, str(second))["accuracy"]
    bad = tb.evaluate(before, str(moved))["accuracy"]
    assert good > 0.9 > bad + 0.2
    drift = tb.shift(before.tally, tb.count(str(moved), schema=before.schema))
    assert "amount" in repr(drift).splitlines()[1] + repr(drift).splitlines()[2]

    # without labels it is seen, too: on the day itself, and by a watch over what is answered
    unlabelled = folder / "unlabelled.csv"
    unlabelled.write_text("\n".join(line.rpartition(",")[0] for line in moved.read_text().splitlines()) + "\n")
    seen = run("shift", model, unlabelled)
    assert seen.returncode == 0
    assert "without labels" in seen.out
    assert "No mixture of the classes explains amount" in " ".join(seen.out.split())
    calm = rows(folder / "calm.csv", 9, first=3 * ROWS)
    assert "No sign of a shift." in run("shift", model, calm).out
    watch = before.watch()
    for line in ({"amount": 9999, "country": "DE", "hour": 3}, {"amount": 40.0, "country": "ZZ", "hour": None}):
        assert watch.predict(line).tolist() == before.predict(line).tolist()
    assert np.array_equal(watch.predict(str(unlabelled)), before.predict(str(unlabelled)))
    table = {line["column"]: line for line in watch.report().table}
    assert table["amount"]["above"] >= 1
    assert table["country"]["unseen"] == 1
    assert table["hour"]["missing"] == 1
    assert f"tallybayes_rows_total {ROWS + 2}" in watch.prometheus()
    assert watch.shift()["amount"].verdict == "shifted"
    odd = folder / "odd.csv"
    odd.write_text("amount,country,hour\n9999,DE,3\n")
    assert "values that were never learnt: amount 1 beyond" in run("predict", model, odd).err
    assert "(beyond" in run("explain", model, odd).out  # the rest of it may stand on the next line

    # a day that was counted apart goes out by its counts alone, and leaves what had been
    kept, day = folder / "now.tb.parquet", folder / "day.tb.parquet"
    tb.count(str(second), schema=before.schema).save(day)
    assert "had no part in them" in run("merge", model, day, "-o", kept).out
    assert f"{2 * ROWS:,} → {ROWS:,} rows" in run("subtract", kept, day).out
    assert tb.load(kept).tally == before.tally
    assert f"{day} and {day} hold the same counts" in run("merge", day, day, "-o", folder / "double.tb.parquet").err
    twice = run("subtract", kept, day)
    assert twice.returncode == 2
    assert tb.load(kept).tally == before.tally
    told = run("recalibrate", kept, second, "--effort", "quick")
    assert f"fitted on {ROWS:,} rows" in told.out
    assert tb.load(kept).tally == before.tally
    renamed = run("update", kept, rows(folder / "new.csv", 5, n=3, labels=("yes", "maybe")), "--new-classes", "refuse")
    assert renamed.returncode == 2
    assert "'maybe'" in renamed.err
    assert "--new-classes allow" in renamed.err

    # weights are fitted anew to the new days: the counts stay
    renewed = before.update(str(moved)).recalibrate(str(moved), effort="quick")
    assert renewed.tally == before.update(str(moved)).tally
    assert tb.evaluate(renewed, str(moved))["log_loss"] < tb.evaluate(before, str(moved))["log_loss"]


BROKEN = {
    "empty": (b"", "empty"),
    "a line too long": (b"id,amount,country,hour,fraud\nT1,3.5,DE,4,yes,more,more\n", "line 2"),
    "not a number": (b"id,amount,country,hour,fraud\nT1,12O.5,DE,4,yes\n", "12O.5"),
    "not UTF-8": (b"id,amount,country,hour,fraud\nT1,3.5,D\xdc,4,yes\n", "--encoding"),
    "a packed file by another name": (b"\x1f\x8b\x08\x00broken", ""),
}


@pytest.mark.parametrize("name", BROKEN)
def test_broken_input_changes_nothing_and_says_where(plant, tmp_path, name):
    model = plant[3]
    before = model.read_bytes()
    path = tmp_path / "broken.csv"
    path.write_bytes(BROKEN[name][0])
    done = run("update", model, path)
    assert done.returncode == 2, done
    assert BROKEN[name][1] in done.err
    assert model.read_bytes() == before


def test_what_is_not_there_is_told_and_no_reason_to_stop(plant, tmp_path):
    rows, out = tmp_path / "rows.csv", tmp_path / "new.tb.parquet"
    rows.write_text("id,amount,hour,fraud\nT1,3.5,4,yes\n")
    done = run("update", plant[3], rows, "-o", out)
    assert done.returncode == 0
    assert "columns not in the data are taken as missing: 'country'" in done.err
    assert tb.load(out).tally.rows == ROWS + 1
    rows.write_text("id,amount,country,hour,fraud\n")
    nothing = run("update", plant[3], rows, "-o", out)
    assert f"{ROWS:,} → {ROWS:,} rows" in nothing.out
    assert nothing.err == "tallybayes: no rows with a label were given: the counts are as they were\n"


def test_a_broken_model_is_told(plant, tmp_path):
    raw = plant[3].read_bytes()
    for cut in (raw[: len(raw) // 2], raw[:-1], b"", raw[:50] + b"\0" + raw[51:]):
        path = tmp_path / "cut.tb.parquet"
        path.write_bytes(cut)
        done = run("predict", path, plant[1])
        assert done.returncode == 2
        assert "cut.tb.parquet" in done.err
