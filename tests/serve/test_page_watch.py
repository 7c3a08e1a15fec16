"""What came in lately: counted exactly and in little room, drift that is named and not claimed, promises and labels."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
from asked import ask, page_at
from strategies import ALL

import tallybayes as tb
from tallybayes.serve import lately as module
from tallybayes.serve.api import Api
from tallybayes.serve.app import make_app
from tallybayes.serve.desk import Desk
from tallybayes.serve.journal import GONE, RowChange
from tallybayes.serve.lately import Lately
from tallybayes.serve.place import Place
from tallybayes.serve.served import Served

EVIL = "<script>alert(1)</script>"


def rows(n: int, seed: int, moved: float = 0.0) -> list[dict[str, Any]]:
    dice = random.Random(seed)
    out = []
    for _ in range(n):
        y = dice.random() < 0.4
        more = {f"n{i}": dice.gauss(0, 1) for i in range(4)}
        values = {EVIL: dice.choice("abc" if y else "bcd"), "temp": dice.gauss(2 * y + moved, 1), **more}
        out.append({**values, "play": "yes" if y else "no"})
    return out


def without_label(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{k: v for k, v in row.items() if k != "play"} for row in given]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    desk = Desk.begin(tmp_path / "play.tb.parquet", rows(400, 1), target="play", calibrate=False)
    out = Place.of(desk)
    yield out
    out.close()


def asked(api: Api, given: list[dict[str, Any]], *, at: float = 0.0, every: float = 0.0) -> None:
    """Ask about rows one by one, each so many seconds after the last."""
    clock = [at]
    api.lately._clock = lambda: clock[0]
    for row in without_label(given):
        api._predict(row=row)
        clock[0] += every


def test_before_anything_has_come_the_page_says_so(place: Place) -> None:
    said = page_at(make_app(place), "/watch")
    for told in ("too few to tell", "Nothing has been asked yet", "No label has come"):
        assert told in said


def test_what_was_asked_is_counted_exactly_by_slices_and_no_row_is_kept(place: Place) -> None:
    api, given = place.api, rows(1_300, 2)
    asked(api, given, every=1.0)
    slices = api.lately.slices()
    assert not api.lately._waiting
    assert [s.rows for s in slices] == [600, 600, 100]
    assert [s.ended - s.began for s in slices] == [599.0, 599.0, 99.0]
    schema = slices[0].tally.schema  # type: ignore[union-attr]
    for first, each in zip((0, 600, 1200), slices, strict=True):
        assert each.tally == tb.count_unlabelled(without_label(given[first : first + 600]), schema)
    answers = [str(c) for c in place.desk.model.predict(without_label(given))]
    assert {c: sum(s.answers[c] for s in slices) for c in ("yes", "no")} == {c: answers.count(c) for c in ("yes", "no")}
    whole = api.lately.window(every=True)
    assert whole is not None
    assert whole.rows == 1_300


def test_slices_grow_coarser_and_none_is_lost(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LEAST_ROWS", 2)
    monkeypatch.setattr(module, "MOST_SLICES", 8)
    api = place.api
    for i in range(40):
        asked(api, rows(2, i), at=1_000.0 * i)
    slices = api.lately.slices()
    assert len(slices) <= 8
    assert sum(s.rows for s in slices) == sum(s.tally.rows for s in slices if s.tally is not None) == 80
    assert all(a.ended < b.began for a, b in pairwise(slices))
    assert slices[-1].rows == 2
    assert slices[0].rows > 2


def test_of_a_busy_slice_only_some_rows_are_counted(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "EXACT", 1_000)
    some = without_label(rows(1_000, 3))
    served = place.desk.served
    chances = served.model.predict_proba(some)
    for _ in range(5):
        place.api.lately.asked(served, some, chances)
    (only,) = place.api.lately.slices()
    assert only.rows == 5_000
    assert only.tally is not None
    assert only.tally.rows == 1_000 + 4_000 // 32
    for row, p in zip(some, chances, strict=True):
        place.api.lately.asked(served, [row], p[None])
    (only,) = place.api.lately.slices()
    assert only.rows == 6_000
    assert only.tally is not None
    assert only.tally.rows == 1_000 + 5_000 // 32


def test_drift_is_named_and_its_level_held(place: Place) -> None:
    asked(place.api, rows(300, 4))
    calm = place.api.lately.drift(place.desk.served)
    assert calm is not None
    assert calm.summary == "No sign of a shift."
    app = make_app(place)
    assert "No sign of a shift" in page_at(app, "/watch")
    asked(place.api, rows(1_100, 5, moved=1.0), at=9e3, every=1.0)
    found = place.api.lately.drift(place.desk.served)
    assert found is not None
    assert [s.column for s in found if s.verdict == "shifted"] == ["temp"]
    assert found.rows[1] < 1_300  # the newest alone
    told = ask(app, "GET", "/api/watch").json
    assert [c["column"] for c in told["drift"]["columns"] if c["verdict"] == "shifted"] == ["temp"]
    assert told["rows"] == 1_400
    assert sum(s["rows"] for s in told["slices"]) == 1_400
    assert "shifted" in page_at(app, "/watch?rows=all")


@pytest.mark.skipif(not ALL, reason="hundreds of models; TALLYBAYES_TESTS=all")
def test_hardly_a_page_claims_a_drift_or_a_broken_promise_that_is_not_there() -> None:
    dice = np.random.default_rng(0)
    drifts, losses, hits, times = 0, 0, 0, 200
    for i in range(times):
        served = Served.of(tb.fit(rows(500, 2 * i), "play", calibrate=False), 1)
        watched = Lately(_Still(served))  # type: ignore[arg-type]
        some = without_label(rows(250, 2 * i + 1))
        p = served.model.predict_proba(some)
        watched.asked(served, some, p)
        found = watched.drift(served)
        assert found is not None
        drifts += any(s.verdict == "shifted" for s in found)
        labels = [served.model.classes[dice.choice(len(q), p=q)] for q in p]
        watched._heard(served, [_labelled(served, row, y) for row, y in zip(some, labels, strict=True)])
        later = watched.later()
        assert later is not None
        losses, hits = losses + (not later.log_loss.kept), hits + (not later.accuracy.kept)
    # 5 % of 200 are 10; 19 or more come by chance in fewer than 1 of 100 cases
    assert max(drifts, losses, hits) < 19


class _Still:
    """A desk on which nothing is done."""

    def __init__(self, served: Served) -> None:
        self.served, self.model, self.heard = served, served.model, None


def _labelled(served: Served, row: dict[str, Any], label: Any) -> RowChange:
    return RowChange(served.read.kept(dict(row)), GONE, f"={label}")


def test_an_erasure_takes_what_was_counted_with_it(place: Place) -> None:
    asked(place.api, [*rows(50, 6), {EVIL: "who am I", "temp": 1.0, "play": "no"}])
    assert sum(s.rows for s in place.api.lately.slices()) == 51
    place.desk.learn([{EVIL: "who am I", "temp": 1.0, "play": "no"}])
    place.desk.erase(EVIL, "who am I")
    assert place.api.lately.slices() == []


def test_what_was_said_before_a_label_came_is_held_against_it(place: Place) -> None:
    before, given = place.desk.model, rows(80, 7)
    p = before.predict_proba(without_label(given))
    y = np.array([[str(c) for c in before.classes].index(r["play"]) for r in given])
    place.desk.learn(given)
    found = place.api.lately.later()
    assert found is not None
    assert found.rows == 80
    assert found.log_loss.came == pytest.approx(-np.log(p[np.arange(80), y]).mean())
    assert found.log_loss.promised == pytest.approx(-(p * np.log(p)).sum(axis=1).mean())
    assert found.accuracy.came == pytest.approx((p.argmax(axis=1) == y).mean())
    assert found.accuracy.promised == pytest.approx(p.max(axis=1).mean())
    assert found.curve.rows.sum() == 80
    pool = place.desk.add_to_pool(without_label(rows(1, 8)))
    place.desk.label(pool.rows[0], "no")
    place.desk.learn([{**without_label(rows(1, 9))[0], "play": "new"}], new_classes="allow")
    later = place.api.lately.later()
    assert later is not None
    assert (later.rows, later.unknown) == (81, 1)
    said = page_at(make_app(place), "/watch")
    assert "81 rows, since the server began. 1 more row had a class" in said
    assert ask(make_app(place), "GET", "/api/watch").json["labelled"]["rows"] == 81


def test_a_model_that_is_too_sure_is_told_so(place: Place) -> None:
    wrong = [{**r, "play": "no" if r["play"] == "yes" else "yes"} for r in rows(60, 10)]
    place.desk.learn(wrong)
    found = place.api.lately.later()
    assert found is not None
    assert not found.log_loss.kept
    assert not found.accuracy.kept
    assert "surer than it should be" in page_at(make_app(place), "/watch")


def test_the_range_that_chance_leaves_is_that_of_labels_drawn_by_the_promise() -> None:
    dice = np.random.default_rng(1)
    p = dice.dirichlet([0.3, 0.3, 0.3], size=40)
    losses = []
    for _ in range(4_000):
        at = (dice.random(40)[:, None] > np.cumsum(p, axis=1)).sum(axis=1).clip(0, 2)
        losses.append(module._said(p, at)[:, 0].mean())
    said = module._said(p, np.zeros(40, dtype=np.int64))
    found = module._promise(said[:, 0], *said[:, 3:].T)
    assert found.promised == pytest.approx(np.mean(losses), abs=0.01)
    assert 0.03 < np.mean((np.array(losses) < found.low) | (np.array(losses) > found.high)) < 0.07


@pytest.mark.parametrize("weighted", [True, False])
def test_what_cannot_be_tested_is_said(tmp_path: Path, weighted: bool) -> None:
    data = [{**row, "w": 0.5 + i % 3, "t": "warm wind" if i % 2 else "cold"} for i, row in enumerate(rows(60, 11))]
    how: dict[str, Any] = {"weights": "w"} if weighted else {"kinds": {"t": "text"}}
    if not weighted:
        data = [{"t": row["t"], "play": row["play"]} for row in data]
    with Desk.begin(tmp_path / "m.tb.parquet", data, target="play", calibrate=False, **how) as desk:
        place = Place.of(desk)
        place.api._predict(rows=without_label(data))
        said = page_at(make_app(place), "/watch")
        assert ("Nothing could be tested" if weighted else "the model reads neither") in said


def test_a_few_labels_have_no_verdict_and_no_share_is_beyond_all(place: Place) -> None:
    app, desk = make_app(place), place.desk
    desk.learn(rows(1, 11))
    page = ask(app, "GET", "/watch").body.decode()
    assert "Too few rows to tell" in page
    assert ">too few rows<" in page
    assert ">kept<" not in page
    later = place.api.lately.later()
    assert later is not None
    assert 0 <= later.accuracy.low <= later.accuracy.high <= 1
    desk.learn([{**rows(1, 11)[0], "play": "never"}], new_classes="allow")
    assert "1 more row had a class that the model did not know, and is left out." in page_at(app, "/watch")


def test_of_how_many_answers_a_share_is_told(place: Place) -> None:
    app = make_app(place)
    for _ in range(40):
        ask(app, "POST", "/api/predict", {"rows": without_label(rows(3, 12))})
    page = page_at(app, "/watch")
    assert "of the answers had a probability below 0.8" in page
    for _ in range(40):
        ask(app, "POST", "/api/predict", {"rows": without_label(rows(30, 13))})
    page = page_at(app, "/watch")
    found = re.search(r"of the ([\d,]+) answers judged had a probability below 0.8", page)
    assert found is not None
    assert 512 <= int(found[1].replace(",", "")) < 40 * 33
