"""The real server under attack: each request gets its status in problem+json, and a normal one is answered after it."""

from __future__ import annotations

import contextlib
import json
import random
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from crossed import KINDS, crossed
from real import RealServer, one_answer, serving, statuses
from strategies import ALL

from tallybayes.serve.desk import Desk

pytest.importorskip("uvicorn")
TOKEN = "a-token-of-some-length"
KEPT = f"Host: localhost\r\nAuthorization: Bearer {TOKEN}\r\n".encode()
HEAD = KEPT + b"Connection: close\r\n"
ROW = {"sky": "sunny", "wind": "calm", "temp": 17.5, "note": "cold warm"}
GIGABYTE = 1_000_000_000


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealServer]:
    folder = tmp_path_factory.mktemp("attacked")
    (folder / "token").write_text(TOKEN)
    (folder / "token").chmod(0o600)
    rows = [*crossed(300), {**ROW, "play": None}]
    Desk.begin(folder / "m", rows, target="play", kinds=KINDS, calibrate=False).close()
    with serving(folder / "m", "--token-file", str(folder / "token")) as running:
        yield running
    shutil.rmtree(folder)


def post(body: bytes, path: str = "/api/predict", head: bytes = HEAD) -> bytes:
    kind = b"Content-Type: application/json\r\n"
    return b"POST %b HTTP/1.1\r\n%b%bContent-Length: %d\r\n\r\n" % (path.encode(), head, kind, len(body)) + body


def get(path: bytes, head: bytes = HEAD, version: bytes = b"1.1") -> bytes:
    return b"GET %b HTTP/%b\r\n%b\r\n" % (path, version, head)


def deep(depth: int) -> bytes:
    return b'{"row": {"sky": ' + b"[" * depth + b"]" * depth + b"}}"


REQUESTS: dict[str, tuple[bytes, str]] = {
    "up the tree": (get(b"/../../../../etc/passwd"), "not-found"),
    "up the tree, quoted": (get(b"/static/%2e%2e/%2e%2e/%2e%2e/etc/passwd"), "not-found"),
    "a path with NUL": (get(b"/api/row%00?id=1"), "not-found"),
    "an address with a name in it": (get(b"http://evil.example/api/model"), "not-found"),
    "a foreign host": (get(b"/api/model", HEAD.replace(b"localhost", b"evil.example")), "wrong-host"),
    "two hosts": (get(b"/api/model", HEAD + b"Host: evil.example\r\n"), "not-http"),
    "HTTP/1.0 without a host": (get(b"/api/model", HEAD.partition(b"\r\n")[2], b"1.0"), "wrong-host"),
    "a foreign origin": (post(b'{"rows": []}', "/api/learn", HEAD + b"Origin: https://evil.example\r\n"),
                         "foreign-page"),
    "a form of another site": (post(b"{}", "/api/erase", HEAD + b"Sec-Fetch-Site: cross-site\r\n"), "foreign-page"),
    "no token": (get(b"/api/model", b"Host: localhost\r\nConnection: close\r\n"), "token"),
    "a wrong token": (get(b"/api/model", HEAD.replace(b"-token-", b"-Token-")), "token"),
    "a cookie of backslashes": (
        get(b"/api/model", b'Host: localhost\r\nConnection: close\r\nCookie: a="' + b"\\" * 60_000 + b'"\r\n'),
        "token"),
    "a head without end": (b"GET / HTTP/1.1\r\n" + b"X: " + b"x" * 300_000, "not-http"),
    "no HTTP at all": (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", "not-http"),
    "a length below nothing": (post(b"{}").replace(b"Length: 2", b"Length: -2"), "not-http"),
    "two lengths": (post(b"{}", head=HEAD + b"Content-Length: 5\r\n"), "not-http"),
    "length and chunks": (post(b"0\r\n\r\n", head=HEAD + b"Transfer-Encoding: chunked\r\n"), "not-json"),
    "depth 10,000": (post(deep(10_000)), "not-json"),
    "depth 900": (post(deep(900)), "not-json"),
    "a name twice": (post(b'{"row": {"sky": "sunny", "sky": "grey"}}'), "not-json"),
    "a field twice": (post(b'{"row": {"sky": "sunny"}, "row": {"sky": "grey"}}'), "not-json"),
    "1e400": (post(b'{"row": {"temp": 1e400}}'), "not-json"),
    "Infinity": (post(b'{"row": {"temp": -Infinity}}'), "not-json"),
    "10**5000": (post(b'{"row": {"temp": 1%b}}' % (b"0" * 5000)), "not-json"),
    "10**400": (post(b'{"row": {"temp": 1%b}}' % (b"0" * 400)), "data"),
    "UTF-16": (post('{"row": {}}'.encode("utf-16")), "not-json"),
    "a row below nothing": (post(b'{"id": -1, "label": "yes"}', "/api/label"), "data"),
    "a row beyond all": (post(b'{"id": 1%b, "label": "yes"}' % (b"0" * 30), "/api/label"), "data"),
    "an operation below nothing": (post(b'{"operation": -9223372036854775809}', "/api/undo"), "data"),
    "a row below nothing in the address": (get(b"/api/row?id=-1"), "not-json"),
    "a row beyond all in the address": (get(b"/api/row?id=" + b"9" * 60), "not-json"),
    "thousands of fields in the address": (get(b"/api/pool?" + b"&".join(b"a%d=1" % i for i in range(5000))),
                                           "not-json"),
    "a form": (post(b"row=1").replace(b"application/json", b"application/x-www-form-urlencoded"), "not-a-json-body"),
    "SQL in a column": (post(b'{"column": "x\' OR 1=1 --", "value": "y"}', "/api/erase"), "data"),
    "a label of a megabyte": (post(b'{"id": 1, "label": "%b"}' % (b"y" * 1_000_000), "/api/label"), "data"),
    "rows of rubbish": (post(json.dumps({"rows": [{"sky": [i], "temp": "\x00<b>"} for i in range(10_000)]}).encode()),
                        "data"),
    "too many rows": (post(b'{"rows": [' + b"{}," * 10_000 + b"{}]}"), "too-many-rows"),
    "a million lists": (post(b'{"row": {"sky": [' + b"[]," * 1_000_000 + b"[]]}}"), "too-many-values"),
    "a method of its own": (get(b"/api/model").replace(b"GET", b"BREW"), "method"),
}  # fmt: skip


def still_answers(server: RealServer) -> None:
    """A normal request is answered as always."""
    found = server.ask("/api/predict", {"row": ROW}, Authorization=f"Bearer {TOKEN}")
    assert found["class"] in ("yes", "no")
    assert found["operation"] == 1  # nothing has been changed


def told(raw: bytes, kind: str) -> None:
    head, _, body = raw.partition(b"\r\n\r\n")
    assert b"content-type: application/problem+json" in head, raw[:500]
    found = json.loads(body)
    assert found["type"] == f"urn:tallybayes:{kind}", found
    assert found["status"] == statuses(head)[0]
    assert len(body) < 2000 and b"Traceback" not in body


@pytest.mark.parametrize("name", REQUESTS)
def test_each_is_refused_with_its_reason_and_the_server_goes_on(name: str, server: RealServer) -> None:
    raw, kind = REQUESTS[name]
    told(server.raw(raw), kind)
    still_answers(server)


def test_names_and_values_that_are_scripts_or_no_text_come_back_as_plain_json(server: RealServer) -> None:
    script = "<script>alert(1)</script>"
    for odd in (script, "\x00", "\ud800", "x\u2028y", '"\\', "{{7*7}}", "%s%n", "\u202eevil", "'; DROP TABLE rows; --"):
        for body in ({"row": {**ROW, "sky": odd, "note": odd, odd: odd}}, {"row": {odd: odd}}):
            for path in ("/api/predict", "/api/explain", "/api/what-if"):
                raw = server.raw(post(json.dumps(body).encode(), path))
                assert statuses(raw)[0] in (200, 422), raw
                assert b"json\r\n" in raw and b"nosniff" in raw
                json.loads(raw.partition(b"\r\n\r\n")[2])
    still_answers(server)


def test_many_requests_on_one_wire_and_upgrades(server: RealServer) -> None:
    one = post(json.dumps({"row": ROW}).encode(), head=KEPT)
    assert statuses(server.raw(one * 50 + get(b"/health"))) == [200] * 51
    upgrade = get(b"/api/model", HEAD.replace(b"close", b"Upgrade, close") + b"Upgrade: websocket\r\n"
                  b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n")  # fmt: skip
    assert statuses(server.raw(upgrade)) == [200]  # a plain answer: nothing is upgraded
    still_answers(server)


def test_more_clients_than_it_takes_do_not_keep_others_out(server: RealServer) -> None:
    before = server.memory()
    with contextlib.ExitStack() as held:
        for _ in range(600 if ALL else 300):
            link = held.enter_context(server.connect())
            link.sendall(b"GET /api/model HTTP/1.1\r\nHo")
        still_answers(server)
    assert server.memory() - before < 50e6


def test_a_body_that_is_too_large_is_refused_before_it_is_there(server: RealServer) -> None:
    before, big = server.memory(), GIGABYTE if ALL else 20_000_000
    head = b"POST /api/learn HTTP/1.1\r\nContent-Type: application/json\r\n" + KEPT
    said = head + b"Content-Length: %d\r\n\r\n" % big
    chunk = b"f4240\r\n" + b"x" * 1_000_000 + b"\r\n"
    for opening, piece in ((said, b"x" * 1_000_000), (head + b"Transfer-Encoding: chunked\r\n\r\n", chunk)):
        sent = 0
        with server.connect() as link, contextlib.suppress(ConnectionError):
            link.sendall(opening)
            while sent < big:  # as fast as it is taken, though refused long since
                link.sendall(piece)
                sent += 1_000_000
        with server.connect() as link:  # and who listens is told
            link.sendall(opening + piece * (1 if opening is said else 9))
            told(one_answer(link), "too-many-bytes")
        still_answers(server)
    assert server.memory() - before < 50e6


def test_rows_of_megabytes_are_not_kept(server: RealServer) -> None:
    """Lone rows wait to be looked at together; these would be 240 MB."""
    row = json.dumps({"row": {**ROW, "sky": "s" * 2_000_000, "note": "n" * 2_000_000}}).encode()
    server.raw(post(row))  # for which the kernels are loaded
    before = server.memory()
    for _ in range(60 if ALL else 25):
        assert statuses(server.raw(post(row))) == [200]
    assert server.memory() - before < 50e6
    told(server.raw(post(row, "/api/explain")), "too-many-bytes")
    still_answers(server)


@pytest.mark.skipif(not ALL, reason="waits for every limit of time: TALLYBAYES_TESTS=all")
def test_slow_clients_are_shown_the_door(server: RealServer) -> None:
    for _ in range(15):  # so many rows repay loading the kernels, which take their room
        server.ask("/api/predict", {"rows": [ROW] * 10_000}, Authorization=f"Bearer {TOKEN}")
    before = server.memory()
    with contextlib.ExitStack() as held:
        links = [held.enter_context(server.connect(120)) for _ in range(60)]
        silent, heads, bodies, deaf = (links[i::4] for i in range(4))
        asked = post(json.dumps({"rows": [ROW] * 10_000}).encode(), head=KEPT)
        for each in deaf:
            each.sendall(asked)  # and never read what comes
        for each in bodies:
            each.sendall(post(b"x" * 100_000)[:-99_999])
        began = time.monotonic()
        while time.monotonic() - began < 25:
            for each in heads + bodies:  # a byte now and then
                with contextlib.suppress(OSError):
                    each.sendall(b"G")
            still_answers(server)
            time.sleep(1)
        for each in silent:
            assert each.recv(10) == b""
        for slow in (heads, bodies):
            for each in slow:
                with contextlib.suppress(ConnectionError):  # reset, where it still sent
                    told(one_answer(each), "slow-body")
        time.sleep(50)
        still_answers(server)
        assert len(list(Path(f"/proc/{server.process.pid}/fd").iterdir())) < 40
    assert server.memory() - before < 100e6


@pytest.mark.skipif(not ALL, reason="a campaign: TALLYBAYES_TESTS=all")
def test_random_bytes_and_broken_requests_leave_it_running(server: RealServer) -> None:
    dice, before = random.Random(3), server.memory()
    kinds: list[Any] = [raw for raw, _ in REQUESTS.values() if len(raw) < 100_000]
    for turn in range(3000):
        raw = bytearray(dice.choice(kinds) if dice.random() < 0.8 else dice.randbytes(dice.randint(1, 2000)))
        for _ in range(dice.randint(1, 8)):
            raw[dice.randrange(len(raw))] = dice.randrange(256)
        with server.connect() as link, contextlib.suppress(ConnectionError):
            link.sendall(raw[: dice.randint(1, len(raw))])
            link.settimeout(0.01)
            with contextlib.suppress(TimeoutError):
                found = one_answer(link)
                assert not found or statuses(found)[0] < 500, (raw, found)
        if turn % 100 == 0:
            still_answers(server)
    assert server.memory() - before < 50e6
