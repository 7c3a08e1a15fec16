"""The API of a served model: what each address answers, and that nothing that is sent to it makes it fail."""

from __future__ import annotations

import asyncio
import http.client
import json
import random
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from asked import Answer, ask, asked
from strategies import ALL
from taught import row

import tallybayes as tb
from tallybayes.serve.api import ACTIONS, Api
from tallybayes.serve.desk import Desk
from tallybayes.serve.guard import ServeLimits
from tallybayes.serve.problems import KINDS, ApiProblem

pytest.importorskip("starlette")
from tallybayes.serve.app import make_app, run

ROWS = [row(i) for i in range(30)]
for _i in (4, 8, 9):
    ROWS[_i]["play"] = None


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("api")
    kinds = {"sky": "category", "temp": "number", "note": "text", "person": "ignore"}
    Desk.begin(folder / "m", ROWS, target="play", kinds=kinds, calibrate=False).close()
    return folder


@pytest.fixture
def desk(made: Path, tmp_path: Path) -> Iterator[Desk]:
    shutil.copytree(made, tmp_path / "copy")
    with Desk.open(tmp_path / "copy" / "m") as opened:
        yield opened


@pytest.fixture
def app(desk: Desk) -> Any:
    return make_app(desk, limits=ServeLimits(rows=50, fields=20))


def told(found: Answer, status: int = 200) -> Any:
    assert found.status == status, found.body
    return found.json


def test_answers_are_those_of_the_model(app: Any, desk: Desk) -> None:
    asked = {"sky": "sunny", "temp": 20.5, "note": "wind"}
    one = told(ask(app, "POST", "/api/predict", {"row": asked}))
    expected = desk.model.predict_proba([asked])[0]
    assert [each["probability"] for each in one["probabilities"]] == expected.tolist()
    assert (one["class"], one["digest"]) == (desk.model.predict([asked])[0], desk.digest)
    many = told(ask(app, "POST", "/api/predict", {"rows": [asked, {"sky": "grey"}]}))
    both = [[each["probability"] for each in found["probabilities"]] for found in (many["answers"][0], one)]
    assert both[0] == pytest.approx(both[1], abs=1e-12)
    assert told(ask(app, "POST", "/api/predict", {"rows": []}))["answers"] == []
    assert told(ask(app, "POST", "/api/predict", {"row": {"sky": "grey"}}))["absent"] == ["note", "temp"]
    why = told(ask(app, "POST", "/api/explain", {"row": asked}))
    assert why["probabilities"] == pytest.approx(expected.tolist())
    assert sum(c["parts"][0] for c in why["contributions"]) == pytest.approx(why["total"][0])
    other = told(ask(app, "POST", "/api/what-if", {"row": asked, "fixed": ["sky"]}))
    assert other["answer"] == one["class"] and all(c["column"] != "sky" for c in other["changes"])
    seen = told(ask(app, "GET", "/api/watch"))
    assert seen["rows"] == 4
    assert next(c for c in seen["columns"] if c["column"] == "temp")["missing"] == 2


def test_operations_go_to_the_desk(app: Any, desk: Desk) -> None:
    start = told(ask(app, "GET", "/api/digest"))["digest"]
    learnt = told(ask(app, "POST", "/api/learn", {"rows": [row(50)], "who": "ann", "new_classes": "allow"}))
    assert told(ask(app, "GET", "/api/row?id=" + str(learnt["rows"][0])))["label"] == row(50)["play"]
    told(
        ask(app, "POST", "/api/relabel", {"id": learnt["rows"][0], "label": "no"}),
        422 if row(50)["play"] == "no" else 200,
    )
    told(ask(app, "POST", "/api/forget", {"ids": learnt["rows"]}))
    assert told(ask(app, "GET", "/api/digest"))["digest"] == start == desk.digest
    told(ask(app, "POST", "/api/undo", {"operation": desk.version}))
    assert told(ask(app, "GET", "/api/operations?limit=1"))["operations"][0]["undoes"] == desk.version - 1
    waiting = told(ask(app, "GET", "/api/pool?limit=2"))
    assert (len(waiting["rows"]), waiting["waiting"]) == (2, 3)
    told(ask(app, "POST", "/api/label", {"id": waiting["rows"][0]["id"], "label": "yes"}))
    told(ask(app, "POST", "/api/skip", {"id": waiting["rows"][1]["id"]}))
    assert told(ask(app, "GET", "/api/model"))["pool"] == 1
    found = told(ask(app, "POST", "/api/found", {"column": "person", "value": "p3"}))
    receipt = told(ask(app, "POST", "/api/erase", {"column": "person", "value": "p3"}))
    assert receipt["rows"] == len(found["rows"]) > 0
    assert told(ask(app, "POST", "/api/found", {"column": "person", "value": "p3"}))["rows"] == []
    nearest = told(ask(app, "GET", "/api/next?who=ann&find=perhaps&random=1"))
    assert [each["id"] for each in nearest["rows"]] == [each.id for each in desk.pool()][:1]
    assert (nearest["left"]["class"], nearest["waiting"]) == ("perhaps", desk.pool_size())


def test_a_request_that_comes_again_changes_nothing(app: Any, desk: Desk, tmp_path: Path) -> None:
    body, key = {"rows": [row(50)], "new_classes": "allow"}, {"idempotency_key": "4711"}
    first = told(ask(app, "POST", "/api/learn", body, **key))
    again = told(ask(app, "POST", "/api/learn", body, **key))
    assert again == first
    assert desk.version == 2
    shutil.copytree(Path(desk.path).parent, tmp_path / "again")
    with Desk.open(tmp_path / "again" / "m") as later:  # also after a crash
        found = ask(make_app(later), "POST", "/api/learn", body, **key)
        assert (told(found)["operation"], later.version) == (2, 2)
    other = told(ask(app, "POST", "/api/learn", {**body, "who": "ann"}, **key))  # not the same request
    assert (other["operation"], told(ask(app, "POST", "/api/learn", body))["operation"]) == (3, 4)
    refused = {"rows": [row(1) | {"play": "yess"}]}
    assert [ask(app, "POST", "/api/learn", refused, **key).status for _ in range(2)] == [422, 422]
    assert "request" not in told(ask(app, "GET", "/api/operations"))["operations"][0]


@pytest.mark.parametrize(
    ("method", "address", "body", "kind", "hint"),
    [
        ("POST", "/api/predict", {"rwo": {}}, "not-json", "did you mean 'row'?"),
        ("POST", "/api/predict", {}, "not-json", ""),
        ("POST", "/api/predict", {"row": {"ski": 1}}, "data", "did you mean 'sky'?"),
        ("POST", "/api/predict", {"row": {"temp": "warm"}}, "data", ""),
        ("POST", "/api/predict", {"rows": [{"sky": 1}] * 51}, "too-many-rows", "in parts"),
        ("POST", "/api/predict", {"row": {str(i): 1 for i in range(21)}}, "too-many-fields", "/api/model"),
        ("POST", "/api/predict", [1], "not-json", ""),
        ("POST", "/api/learn", {"rows": [row(1) | {"play": "yess"}]}, "data", "did you mean 'yes'?"),
        ("POST", "/api/learn", {"rows": {}}, "not-json", ""),
        ("POST", "/api/forget", {"ids": [1.5]}, "not-json", ""),
        ("POST", "/api/forget", {"rows": [row(1) | {"temp": 88.8}]}, "conflict", ""),
        ("POST", "/api/undo", {"operation": 1}, "conflict", ""),
        ("POST", "/api/undo", {"operation": 10**40}, "data", "whole"),
        ("POST", "/api/undo", {"operation": 99}, "not-found", ""),
        ("POST", "/api/undo", {"operation": True}, "not-json", ""),
        ("POST", "/api/erase", {"column": "play", "value": "yes"}, "data", ""),
        ("GET", "/api/row?id=7777", None, "not-found", ""),
        ("GET", "/api/row?id=x", None, "not-json", ""),
        ("GET", "/api/row?id=1&id=2", None, "not-json", ""),
        ("GET", "/api/row", None, "not-json", "the id of a row"),
        ("GET", "/nothing", None, "not-found", "/openapi.json"),
        ("GET", "/api/learn", None, "method", "POST"),
    ],
)  # fmt: skip
def test_a_refusal_says_what_and_how_to_mend_it(
    method: str, address: str, body: Any, kind: str, hint: str, app: Any, desk: Desk
) -> None:
    before = desk.version
    found = ask(app, method, address, body)
    assert found.headers["content-type"] == "application/problem+json"
    assert (found.json["type"], found.status) == (f"urn:tallybayes:{kind}", KINDS[kind][0])
    assert hint in found.json["hint"]
    assert desk.version == before


def test_bodies_that_are_no_json(app: Any) -> None:
    deep = b'{"row":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    for raw in (b"", b"{", b"\xff", b'{"row": {"temp": NaN}}', deep, b"9" * 5000, b"null"):
        assert told(ask(app, "POST", "/api/predict", pieces=[raw]), 400)["type"] == "urn:tallybayes:not-json"
    form = ask(app, "POST", "/api/learn", pieces=[b"{}"], content_type="text/plain")
    assert told(form, 415)["hint"] == "send the header Content-Type: application/json."


def test_nothing_that_is_sent_makes_it_fail(app: Any, desk: Desk) -> None:
    dice = random.Random(5)

    def value(depth: int = 0) -> Any:
        plain = (None, True, -1, 0, 3, 10**30, 1e308, -0.5, "", "yes", "sunny", "p1", "\ud800", "x\x00", "7,5", 10**400)
        if depth > 2 or dice.random() < 0.6:
            return dice.choice(plain)
        if dice.random() < 0.5:
            return [value(depth + 1) for _ in range(dice.randint(0, 3))]
        names = ("sky", "temp", "note", "play", "person", "", "\ud800")
        return {dice.choice(names): value(depth + 1) for _ in range(dice.randint(0, 4))}

    statuses = set()
    for _ in range(4000 if ALL else 120):
        action = dice.choice([a for a in ACTIONS if a.method == "POST"])
        fields = {name: value() for name in action.fields if dice.random() < 0.8}
        if "row" in fields and dice.random() < 0.7:
            fields["row"] = {"sky": value(1), "temp": value(1), "note": value(1)}
        if "rows" in fields and dice.random() < 0.7:
            fields["rows"] = [{"sky": value(1), "temp": value(1), "note": value(1), "play": value(1)}]
        found = ask(app, "POST", action.path, fields)
        statuses.add(found.status)
        assert found.status < 500, (action.path, fields, found.body)
    assert {200, 400, 422} <= statuses
    rows = [{**r.values, "play": r.label} for r in desk._journal.all_rows() if r.counted]
    assert desk.digest == tb.count(rows, desk.model.schema).digest


def test_the_description_names_every_address_and_every_field(app: Any) -> None:
    found = told(ask(app, "GET", "/openapi.json"))
    for action in ACTIONS:
        about = found["paths"][action.path][action.method.lower()]
        if action.method == "POST":
            assert about["requestBody"]["content"]["application/json"]["schema"]["properties"].keys() == {
                *action.fields
            }
    assert {a.name for a in ACTIONS} <= {name[1:] for name in vars(Api)}
    assert "security" not in found
    assert json.dumps(found)


def test_health_and_metrics(app: Any) -> None:
    assert told(ask(app, "GET", "/health")) == {"status": "ok"}
    ask(app, "POST", "/api/predict", {"row": {"sky": "sunny"}})
    ask(app, "POST", "/api/learn", {"rows": [row(1)]})
    ask(app, "POST", "/api/predict", {"row": {"sky": "sunny"}})  # of another model: the counters go on
    ask(app, "POST", "/api/predict", {"row": {"ski": "sunny"}})
    text = ask(app, "GET", "/metrics").body.decode()
    for line in (
        "tallybayes_rows_total 2", "tallybayes_operations 2", "tallybayes_pool_rows 3",
        'tallybayes_http_requests_total{path="/api/predict",status="200"} 2',
        'tallybayes_http_requests_total{path="/api/predict",status="422"} 1',
        'tallybayes_http_seconds_count{path="/api/predict"} 3',
    ):  # fmt: skip
        assert line in text.splitlines(), text


def test_readers_do_not_wait_for_a_writer_and_what_was_given_up_is_never_begun(desk: Desk) -> None:
    app = make_app(desk, limits=ServeLimits(seconds=1.5))

    async def ask_all() -> list[Answer]:
        body = json.dumps({"rows": [row(1)]}).encode()
        learning = [asyncio.create_task(asked(app, "POST", "/api/learn", body)) for _ in range(3)]
        await asyncio.sleep(0.1)
        reading = [
            asked(app, "POST", "/api/predict", b'{"row": {"sky": "sunny"}}'),
            asked(app, "GET", "/api/model", b""),
        ]
        told = await asyncio.gather(*reading)
        return [*told, *await asyncio.gather(*learning)]

    with desk._turn:  # another writer takes its time
        found = asyncio.run(ask_all())
    assert [each.status for each in found] == [200, 200, 504, 504, 504]
    assert "may still happen" in found[-1].json["hint"]
    told(ask(app, "POST", "/api/learn", {"rows": [row(2)]}))
    assert desk.version == 3  # the one that had begun, and the last
    assert 'path="/api/learn",status="504"} 3\n' in ask(app, "GET", "/metrics").body.decode()


def test_one_row_is_answered_at_once_as_by_a_thread(app: Any, desk: Desk) -> None:
    api: Api = app.state.place.api
    given = {"row": {"sky": "sunny", "temp": 20.5, "note": "wind", "more": "x"}}
    assert api.at_once(ACTIONS[0], given) is None  # of a model that has not been asked before
    slow = api.answer(ACTIONS[0], given)
    assert api.at_once(ACTIONS[0], given) == slow
    assert api.at_once(ACTIONS[0], {"rows": [given["row"]]}) is None
    for _ in range(600):
        told(ask(app, "POST", "/api/predict", given))
    assert told(ask(app, "GET", "/api/watch"))["rows"] == 602
    desk.learn([row(2)])
    assert api.at_once(ACTIONS[0], given) is None


def test_an_error_that_nobody_foresaw_is_told_without_its_inside() -> None:
    told = ApiProblem.of(RuntimeError("a secret path")).to_dict()
    assert told["status"] == 500 and "secret" not in str(told)


@pytest.mark.skipif(not ALL, reason="starts a server: TALLYBAYES_TESTS=all")
def test_the_command_serves_until_it_is_told_to_end_and_then_folds(tmp_path: Path) -> None:
    pytest.importorskip("uvicorn")
    model = tmp_path / "flats.tb.parquet"
    words = ["serve", str(model), "--fit", str(tb.example("flats.csv")), "--target", "let", "--port", "0"]
    with subprocess.Popen([sys.executable, "-m", "tallybayes", *words], stdout=subprocess.PIPE, text=True) as server:
        try:
            found = re.search(r"127\.0\.0\.1:(\d+): 240 rows", server.stdout.readline())
            asked = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=30)
            body = json.dumps({"rows": [{"district": "Harbour", "rooms": 2, "let": "fast"}]})
            asked.request("POST", "/api/learn", body, {"Content-Type": "application/json"})
            digest = json.load(asked.getresponse())["digest"]
            asked.close()
            server.terminate()
            assert "has everything up to operation 2" in server.stdout.read()
            assert server.wait(30) == 0
        finally:
            server.kill()
    assert tb.load(model).tally.digest == digest


def test_a_signal_that_comes_before_the_server_has_begun_ends_it(desk: Desk) -> None:
    pytest.importorskip("uvicorn")
    run(desk, port=0, ready=lambda address: signal.raise_signal(signal.SIGTERM))
