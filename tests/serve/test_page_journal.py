"""The pages of the journal: undoing, forgetting, labelling anew, and deleting a person without a trace."""

from __future__ import annotations

import base64
import json
import logging
import re
import sqlite3
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
from browsing import Browser

import tallybayes as tb
from tallybayes.serve.app import make_app
from tallybayes.serve.desk import Desk
from tallybayes.serve.place import Place
from tallybayes.tally.tally import Tally

PERSON = "Zerlina Quandt"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    rows: list[dict[str, Any]] = [
        {"person": f"p{i % 4}", "sky": "grey" if i % 3 else "sunny", "temp": i % 7, "play": "yes" if i % 3 else "no"}
        for i in range(24)
    ]
    rows += [{"person": PERSON, "sky": "violet", "temp": 99, "play": label} for label in ("yes", "no", None)]
    desk = Desk.begin(tmp_path / "play.tb.parquet", rows, target="play", kinds={"person": "ignore"}, calibrate=False,
                      effort="quick")  # fmt: skip
    with_desk = Place.of(desk)
    yield with_desk
    with_desk.close()


def survivors(desk: Desk) -> Tally:
    """The counts of the rows that the journal counts, made anew by somebody who knows nothing of it."""
    rows = [{**row.values, "play": row.label} for row in desk.journal.all_rows() if row.counted]
    return tb.count(rows, schema=desk.model.schema)


def test_the_list_has_every_operation_and_its_digests_are_those_of_the_rows(place: Place) -> None:
    ann, desk = Browser(make_app(place)), place.desk
    ann.cookies["tallybayes_name"] = "Ann"
    desk.learn([{"sky": "grey", "temp": 3, "play": "no"}], who="<b>Bob</b>")
    ann.get("/label")
    ann.send("/label", label="no")
    page = ann.get("/journal")
    assert [int(n) for n in re.findall(r'href="/journal/operation/(\d+)">\d', page)] == [3, 2, 1]
    assert "&lt;b&gt;Bob&lt;/b&gt;" in page
    assert ">Ann<" in page
    assert survivors(desk).digest[:12] in page
    assert re.search(r'<time datetime="\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z">', page)
    for number in (1, 2, 3):
        assert ann.get(f"/journal/operation/{number}")
        assert desk.journal.operation(number).digest in ann.page
    assert "waits for a label" in ann.page
    assert f'href="/journal/row/{desk.journal.changes(3)[0][0]}"' in ann.page


def test_an_operation_is_undone_by_a_button_and_a_refusal_is_said(place: Place) -> None:
    ann, desk = Browser(make_app(place)), place.desk
    before = desk.digest
    done = desk.learn([{"sky": "grey", "play": "no"}, {"sky": "grey", "play": "yes"}])
    ann.get(f"/journal/operation/{done.operation}")
    page = ann.send("/journal/undo")
    assert "Operation 2 is undone, by operation 3." in page
    assert desk.digest == before
    assert "undone by" in ann.get("/journal/operation/2")
    page = ann.post("/journal/undo", [("form_token", ann.field("form_token")), ("operation", 2)])
    assert ann.answer.status == 409
    assert "Operation 2 is undone already, by operation 3" in page
    ann.post("/journal/undo", [("form_token", ann.field("form_token")), ("operation", 1)])
    assert ann.answer.status == 409


def test_rows_are_found_labelled_anew_and_forgotten(place: Place) -> None:
    ann, desk = Browser(make_app(place)), place.desk
    ann.get("/journal")
    page = ann.send("/journal/rows", column="person", value="p2")
    assert "6 rows found" in page
    assert "p2" not in " ".join(ann.seen)
    ids = [row.id for row in desk.found("person", "p2")]
    ann.send("/journal/forget", row=[str(i) for i in ids[:2]])
    assert "2 rows are forgotten" in ann.page
    assert [desk.row(i).counted for i in ids[:3]] == [False, False, True]
    assert desk.digest == survivors(desk).digest
    ann.get(f"/journal/row/{ids[2]}")
    other = "no" if desk.row(ids[2]).label == "yes" else "yes"
    ann.send("/journal/relabel", label=other)
    assert desk.row(ids[2]).label == other
    assert desk.digest == survivors(desk).digest
    assert "labelled anew" in ann.page
    ann.send("/journal/forget")
    assert not desk.row(ids[2]).counted
    ann.post("/journal/forget", [("form_token", ann.field("form_token"))])
    assert "No row is ticked" in ann.page
    ann.get("/journal")
    assert "No row of the journal has this value" in ann.send("/journal/rows", column="person", value="nobody")


def test_a_person_is_deleted_with_a_receipt_that_does_not_name_them(
    place: Place, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    ann, desk = Browser(make_app(place)), place.desk
    before = desk.digest
    ann.get("/journal/erase")
    page = ann.send("/journal/erase", column="person", value=PERSON)
    assert "3 rows" in page
    assert "2 of them counted" in page
    assert "cannot be undone" in page
    desk.learn([{"person": PERSON, "sky": "violet", "play": "yes"}])
    page = ann.send("/journal/erase", sure="yes")  # one more row than was seen
    assert "The rows have changed since you looked" in page
    assert desk.found("person", PERSON)
    now = desk.digest
    page = ann.send("/journal/erase", sure="yes")
    assert not desk.found("person", PERSON)
    files = [base64.b64decode(each).decode() for each in re.findall(r'href="data:[^"]*;base64,([^"]+)"', page)]
    receipt = json.loads(files[1])
    assert receipt["digest_before"] == now != before
    assert (
        receipt["digest"] == desk.digest == survivors(desk).digest == tb.load(tmp_path / "play.tb.parquet").tally.digest
    )
    assert (receipt["rows"], receipt["counted"], receipt["unseen"], receipt["operation"]) == (4, 3, 0, 3)
    assert desk.digest in files[0]
    assert desk.digest in page
    for told in (page, *files, *ann.seen, str(ann.cookies), caplog.text, ann.get("/journal"), ann.get("/label")):
        assert not any(trace in told for trace in (PERSON, "Zerlina", "Zerlina%20Quandt", "Zerlina+Quandt", "violet"))
    for file in tmp_path.iterdir():
        assert b"Zerlina" not in file.read_bytes()
    ann.get("/journal/erase")
    page = ann.send("/journal/erase", column="person", value=PERSON)
    assert "there is nothing to delete" in page


def test_the_files_open_and_nothing_of_them_stays_behind(place: Place, tmp_path: Path, monkeypatch: Any) -> None:
    ann, desk = Browser(make_app(place)), place.desk
    desk.learn([{"sky": "grey", "play": "no"}])
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    files = {}
    for address in ("model", "tally", "copy"):
        ann.get(f"/journal/{address}")
        name = ann.answer.headers["content-disposition"].partition("''")[2]
        assert int(ann.answer.headers["content-length"]) == len(ann.answer.body)
        files[address] = tmp_path / f"taken-{name}"
        files[address].write_bytes(ann.answer.body)
    assert not list(scratch.iterdir())
    assert files["copy"].name == "taken-play.tb.parquet.journal"
    assert tb.load(files["model"]).tally.digest == desk.digest
    assert tb.Tally.load(files["tally"]).digest == desk.digest
    with sqlite3.connect(files["copy"]) as copy:
        assert copy.execute("SELECT count(*) FROM operations").fetchone() == (2,)
    copy.close()
    with Desk.open(files["model"]) as again:  # model and copy of the journal belong together
        assert again.digest == desk.digest
        assert again.version == 2


def test_operations_and_their_rows_are_paged_and_wrong_numbers_are_refused(place: Place) -> None:
    ann, desk = Browser(make_app(place)), place.desk
    desk.add_to_pool([{"sky": f"s{i}"} for i in range(120)])
    for row in desk.pool(60):
        desk.skip(row.id)
    ann.get("/journal")
    older = re.search(r'href="(/journal\?before=\d+)"', ann.page)
    assert older
    assert "began" in ann.get(older[1])
    ann.get("/journal/operation/2")
    more = re.search(r'href="(/journal/operation/2\?after=\d+)"', ann.page)
    assert more
    assert ann.get(more[1]).count("/journal/row/") == 50
    for address, status in (("/journal/operation/99", 404), ("/journal/operation/x", 404), ("/journal/row/0", 404),
                            ("/journal/row/" + "9" * 30, 404), ("/journal?before=x", 422)):  # fmt: skip
        ann.get(address)
        assert ann.answer.status == status, address
