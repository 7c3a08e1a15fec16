"""An analyst with an export of a shop: one bad cell, twelve marks for "missing", four currencies, three date orders."""

import csv
import datetime as dt
import json
import random
import re

import pytest
from command_line import run
from strategies import ALL
from workbooks import workbook

import tallybayes as tb

MARKS = ["NA", "N/A", "n/a", "?", "-", "null", "NULL", "None", "NaN", "nan", "#N/A", ""]
ROWS = 1_000_000 if ALL else 240


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """The export, and what is true of it."""
    path, draw = tmp_path_factory.mktemp("shop") / "orders.csv", random.Random(5)
    gone, returned = 0, 0
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.writer(file, delimiter=";")
        out.writerow(["ordered", "sent", "paid", "price", "weight", "age", "city", "returned"])
        for i in range(ROWS):
            back = draw.random() < 0.4
            day = dt.date(2022, 1, 3) + dt.timedelta(days=draw.randrange(700))
            age = str(draw.randrange(18, 80)) if i % 10 else MARKS[i // 10 % 12]
            age = "12O" if i == ROWS // 2 + 1 else age
            gone += not age or age in MARKS
            returned += back
            price = f"{'€$£¥'[i % 4]}{draw.lognormvariate(4, 0.4):,.2f}"
            weight = f"{draw.gauss(3.4 if back else 2.4, 0.5):.2f}".replace(".", ",")
            city = draw.choice(["Bonn", "bonn", "BONN", "Ulm"] if back else ["Ulm", "ULM", "Trier", "trier "])
            label = draw.choice(["Yes", "yes", "YES"] if back else ["No", "no"])
            out.writerow([f"{day}", f"{day:%d.%m.%Y}", f"{day:%m/%d/%Y}", price, weight, age, city, label])
    return path, gone, returned


def test_the_walk_of_an_analyst(shop, tmp_path):
    path, gone, returned = shop
    model = tmp_path / "returned.tb.parquet"

    # she forgets --fold, and is told
    told = run("fit", path, "--target", "returned", "--effort", "quick", "--folds", 0, "--no-calibrate")
    assert told.returncode == 0
    assert "YES, Yes, yes are 3 classes of 'returned': spellings of one label? Hint: --fold makes" in told.err
    assert "BONN, Bonn, bonn: 3 spellings of one value? --fold makes" in " ".join(told.out.split())

    done = run("fit", path, "--target", "returned", "--fold", "--effort", "quick", "-o", model)
    assert done.returncode == 0
    said, page = " ".join(done.err.split()), " ".join(done.out.split())
    assert "'price' holds amounts in $ and € and £ and ¥, and is taken as text" in said
    assert f"1 of {ROWS - gone:,} cells of 'age': '12O' (orders.csv, line {ROWS // 2 + 3:,})".replace(",", "") in (
        said.replace(",", "").replace(str(path.parent) + "/", "")
    )
    assert f"{ROWS:,} rows: returned no {ROWS - returned:,}, yes {returned:,}" in page
    assert "text, 3 different values: bonn, trier, ulm" in page
    assert "a decimal comma" in page
    for form in ("%d.%m.%Y", "%m/%d/%Y"):
        assert f"dates written as {form}, split into parts" in page
    assert all(f"'{mark}'" in page for mark in ("#N/A", "-", "?", "N/A", "NA", "NULL", "NaN", "None"))

    # what was counted is what is in the file
    tally = tb.load(model).tally
    n, mean, _ = map(sum, zip(*tally.moments("age").values(), strict=True))
    assert tally.rows == ROWS
    assert n == ROWS - gone - 1
    assert 18 <= mean / 2 < 80
    assert tb.load(model).table("city")["bonn", "no"] < 0.05 < tb.load(model).table("city")["bonn", "yes"]

    # the bad cell can be found, named, or refused
    strict = run("fit", path, "--target", "returned", "--fold", "--strict")
    assert strict.returncode == 2
    assert "column 'age': '12O' is not a number" in strict.err
    assert "leave out --strict" in strict.err

    # the answers go back into her spreadsheet
    answers = tmp_path / "answers.csv"
    assert run("predict", model, path, "--keep", "sent", "-o", answers).err == ""
    with answers.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with path.open(newline="", encoding="utf-8") as file:
        given = list(csv.DictReader(file, delimiter=";"))
    assert [r["sent"] for r in rows] == [g["sent"] for g in given]
    right = sum(r["prediction"] == g["returned"].lower() for r, g in zip(rows, given, strict=True)) / ROWS
    assert right > 0.85

    # which rows does she have to look at herself, and why does it say so?
    left = run("predict", model, path, "--keep", "age", "--unsure-below", 0.9, "--explain", 1, "--format", "jsonl")
    lines = [json.loads(line) for line in left.out.splitlines()]
    assert [line["age"] for line in lines] == [g["age"] or None for g in given]
    assert {line["prediction"] for line in lines} == {"yes", "no", None}
    assert [line["prediction"] or r["prediction"] for line, r in zip(lines, rows, strict=True)] == [
        r["prediction"] for r in rows
    ]
    assert {line["because 1"].partition(":")[0] for line in lines} >= {"city", "weight"}
    why = " ".join(run("explain", model, path, "--row", 1, "--top", 2).out.split())
    assert re.search(r"the rest: \d+ terms", why)

    # what the columns are worth: the parcel's weight and the city, by rows that the model was counted from
    worth = run("importance", model, path, "--json")
    told = json.loads(worth.out)
    assert told["trained_on"] == "yes"
    assert {c["column"] for c in told["columns"][:2]} == {"city", "weight"}
    assert all(c["log_loss_low"] > 0 for c in told["columns"][:2])

    # rows that it has learnt from are never called held out
    seen = run("evaluate", model, path, "--no-intervals")
    assert f"{ROWS:,} rows that the model has learnt from, 2 classes" in seen.out
    assert "These are the very rows that the model has learnt from." in seen.out
    assert "--cross-validate 10" in seen.out

    # and the page about the model shows dates, not numbers of days
    shown = run("show", model, "--column", "sent.days")
    assert "2022-" in shown.out
    assert not re.search(r"(?<![\d.])1[89]\d{3}(?!\d)", shown.out)  # 2022-01-03 is day 18995


def test_the_sheet_that_a_colleague_sends(shop, tmp_path):
    """The same rows in a workbook, under a title, next to a sheet of remarks: the same counts."""
    with shop[0].open(newline="", encoding="utf-8") as file:
        head, *rows = csv.reader(file, delimiter=";")
    table = [[head[i] for i in (4, 6, 7)], *([float(r[4].replace(",", ".")), r[6], r[7]] for r in rows[:60])]
    book = workbook(tmp_path / "Returns Q1.xlsx", {"Returns & more": table, "remarks": [["see Tom"]]})
    plain = ("--target", "returned", "--fold", "--no-calibrate", "--folds", 0)
    asked = run("fit", book, *plain)
    assert asked.returncode == 2
    assert "there are 2 sheets: 'Returns & more', 'remarks'" in asked.err
    assert "--table 'Returns & more'" in asked.err
    model, beside = tmp_path / "book.tb.parquet", tmp_path / "csv.tb.parquet"
    assert run("fit", book, "--table", "Returns & more", *plain, "-o", model).returncode == 0
    (tmp_path / "same.csv").write_text("\n".join(",".join(map(str, row)) for row in table) + "\n")
    assert run("fit", tmp_path / "same.csv", *plain, "-o", beside).returncode == 0
    assert tb.load(model).tally == tb.load(beside).tally
    judged = run("evaluate", model, book, "--table", "Returns & more", "--no-intervals")
    assert "--table 'Returns & more' --row" in judged.out  # the hint can be pasted
