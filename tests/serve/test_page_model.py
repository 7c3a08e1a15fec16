"""The page of the model: what it says of each state, that pictures are of that state, and figures that are honest."""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
from asked import Answer, ask, page_at

import tallybayes as tb
from tallybayes.serve.app import make_app
from tallybayes.serve.desk import Desk
from tallybayes.serve.journal import COUNTED
from tallybayes.serve.judging import judged_by_folds
from tallybayes.serve.place import Place
from tallybayes.serve.served import OncePerState, Served

EVIL = "<script>alert(1)</script>"


def rows(n: int, seed: int = 0) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    out = []
    for _ in range(n):
        y = dice.random() < 0.4
        note = " ".join(dice.choices(["warm", "cold", "wind"], [3, 1, 1] if y else [1, 3, 1], k=4))
        values = {EVIL: dice.choice("ab" if y else "bc"), "temp": dice.gauss(5 * y, 3), "note": note, "": "\u202e" * 3}
        out.append({**values, "play": "yes" if y else "no"})
    return out


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    kinds = {"note": "text"}
    desk = Desk.begin(tmp_path / "play.tb.parquet", rows(60), target="play", kinds=kinds, calibrate=False)
    with_desk = Place.of(desk)
    yield with_desk
    with_desk.close()


def form(app: Any, address: str) -> Answer:
    page = ask(app, "GET", "/api").body.decode()
    token = page.partition('name="form_token" value="')[2].partition('"')[0]
    body = urlencode({"form_token": token}).encode()
    return ask(app, "POST", address, pieces=[body], content_type="application/x-www-form-urlencoded")


def test_the_page_tells_of_the_model_and_escapes_what_is_from_outside(place: Place) -> None:
    said = page_at(make_app(place), "/model")
    for section in ("figures", "columns", "nomogram", "origin", "settings"):
        assert f'id="{section}"' in said
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in said
    assert "counted from 60 rows" in said
    assert "60 rows" in said
    assert place.desk.digest in said


def test_pictures_are_of_the_state_that_is_served(place: Place) -> None:
    app = make_app(place)
    numbers = range(len(place.desk.model.schema.counted))
    before = [ask(app, "GET", f"/model/picture/column/{i}") for i in numbers]
    for each in before:
        assert each.headers["content-type"] == "image/svg+xml"
        assert each.body.startswith(b"<svg ")
        assert b"prefers-color-scheme:dark" in each.body
        assert b"currentColor" in each.body
    assert "?v=1" in page_at(app, "/model")
    at = next(i for i in numbers if place.desk.model.schema.counted[i].name == EVIL)
    assert ask(app, "GET", f"/model/picture/column/{at}").body == before[at].body
    place.desk.learn([{EVIL: "z", "temp": 99.0, "note": "hail", "play": "yes"}] * 40)
    assert ask(app, "GET", f"/model/picture/column/{at}").body != before[at].body
    assert "?v=2" in page_at(app, "/model")
    assert ask(app, "GET", "/model/picture/nomogram?for=yes").body.startswith(b"<svg ")


@pytest.mark.parametrize("number", ["-1", "99", "x", "1e9", "٣"])
def test_a_column_that_is_not_there_is_refused(place: Place, number: str) -> None:
    assert ask(make_app(place), "GET", f"/model/column/{number}").status == 404


def test_every_column_has_a_page_with_its_table(place: Place) -> None:
    app, model = make_app(place), place.desk.model
    for i, column in enumerate(model.schema.counted):
        said = page_at(app, f"/model/column/{i}")
        for value in model.table(column.name).rows[:3] if column.kind == "category" else ():
            assert f"<bdi>{value}</bdi>" in said or "\ufffd" in said
    words = next(i for i, c in enumerate(model.schema.counted) if c.name == "note")
    assert "<bdi>cold</bdi>" in page_at(app, f"/model/column/{words}?class=yes")
    assert "No value contains that" in page_at(app, f"/model/column/{words}?find=nothing-of-the-kind")


def test_columns_are_found_by_name_and_come_in_pages(tmp_path: Path) -> None:
    dice = random.Random(1)
    data = [{**{f"c{i}": dice.choice("ab") for i in range(45)}, "y": dice.choice(["no", "yes"])} for _ in range(40)]
    with Desk.begin(tmp_path / "wide.tb.parquet", data, target="y", calibrate=False) as desk:
        app = make_app(desk)
        said = page_at(app, "/model?page=3")
        assert "41 to 45 of 45" in said
        assert said.count('loading="lazy"') == 5 + 1  # and the nomogram
        found = page_at(app, "/model?find=C44")
        assert "<bdi>c44</bdi></a>" in found
        assert "<bdi>c43</bdi></a>" not in found
        assert ask(app, "GET", "/model?page=x").status == 422


def test_figures_are_worked_out_in_the_background_and_say_of_which_state(place: Place) -> None:
    app = make_app(place)
    assert 'id="judge"' in page_at(app, "/model")
    assert form(app, "/model/judge").headers["location"] == "/model#figures"
    place.api.judging.wait()
    said = ask(app, "GET", "/model/figures").body.decode()
    assert "These are of operation 1, which is the last one." in said
    assert "data-poll" not in said
    assert ask(app, "GET", "/model/picture/reliability").body.startswith(b"<svg ")
    place.desk.learn(rows(1, seed=5))
    assert "These are of operation 1; the model is at operation 2 now." in page_at(app, "/model")
    form(app, "/model/judge")
    place.api.judging.wait()
    assert "These are of operation 2, which is the last one." in page_at(app, "/model")


def test_a_journal_of_few_rows_is_not_judged(tmp_path: Path) -> None:
    tb.fit(rows(50), "play", calibrate=False).save(tmp_path / "play.tb.parquet")
    with Desk.open(tmp_path / "play.tb.parquet") as desk:
        place = Place.of(desk)
        app = make_app(place)
        form(app, "/model/judge")
        place.api.judging.wait()
        assert "The journal holds 0 rows of 0 classes with a label." in page_at(app, "/model")
        found = ask(app, "GET", "/model/report")
        assert b"No rows were given" in found.body


def test_each_row_is_answered_by_counts_without_its_fold(place: Place) -> None:
    served, kept = place.desk.counted_rows()
    found = judged_by_folds(served, kept)
    folds = [int.from_bytes(row.key[:8], "big") % 10 for row in kept]
    inputs = served.read.inputs
    for fold in set(folds):
        others = [row for row, k in zip(kept, folds, strict=True) if k != fold]
        model = served.counted(others).model(served.model.settings)
        own = [i for i, k in enumerate(folds) if k == fold]
        asked = model.predict_proba([{n: kept[i].values.get(n) for n in inputs} for i in own])
        np.testing.assert_allclose(found.evaluation.forecasts["model"][0][own], asked, rtol=1e-9)
    assert list(found.evaluation.classes) == ["no", "yes"]


def test_pairs_that_were_made_by_the_labels_do_not_flatter() -> None:
    """Groups of a pair's values know the labels of all rows: counts alone, less a fold, would still know them."""
    dice = random.Random(3)
    names = [f"v{i}" for i in range(60)]
    data = [{"a": dice.choice(names), "b": dice.choice("xy"), "y": dice.choice(["no", "yes"])} for _ in range(240)]
    said = {n: sum(1 if (r["y"] == "yes") == (r["b"] == "x") else -1 for r in data if r["a"] == n) for n in names}
    groups = tuple(tuple(n for n in names if (said[n] > 0) == yes) for yes in (True, False))
    pair = tb.Column("a × b", "pair", of=(tb.PairColumn("a", groups=groups), tb.PairColumn("b")))
    schema = tb.Schema([tb.Column("a", "category"), tb.Column("b", "category"), pair], target="y")
    served = Served.of(tb.count(data, schema).model(), 1)
    kept = [served.read.kept({"a": r["a"], "b": r["b"]}, COUNTED + r["y"]) for r in data]
    folds = [int.from_bytes(row.key[:8], "big") % 10 for row in kept]
    right = 0
    for fold in range(10):
        inside = [row for row, k in zip(kept, folds, strict=True) if k == fold]
        model = (served.tally - served.counted(inside)).model()
        right += sum(str(model.predict(row.values)[0]) == row.label for row in inside)
    assert right / len(data) > 0.65  # of labels that are thrown
    assert judged_by_folds(served, kept).evaluation["accuracy"] < 0.58


def test_what_is_worked_out_is_kept_for_its_state_alone(place: Place) -> None:
    once, first = OncePerState(), place.desk.served
    assert once.get(first, "x", lambda: 1) == 1
    assert once.get(first, "x", lambda: 2) == 1
    place.desk.learn(rows(1, seed=9))
    assert once.get(place.desk.served, "x", lambda: 3) == 3
    assert once.get(first, "x", lambda: 4) == 4  # older than what is known: worked out, and not kept
    assert once.get(place.desk.served, "x", lambda: 5) == 3


def test_the_report_is_one_file_about_the_rows_of_the_journal(place: Place) -> None:
    found = ask(make_app(place), "GET", "/model/report")
    assert found.status == 200
    assert "attachment" in found.headers["content-disposition"]
    assert found.body.startswith(b"<!DOCTYPE html>")
    assert b"This page looks at 60 rows" in found.body
