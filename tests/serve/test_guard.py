"""The wall before a served model: who is let through, and how much at once; no server and no framework needed."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from asked import ask

import tallybayes as tb
from tallybayes.serve.guard import COOKIE, Guard, ServeLimits, check_token

TOKEN = "a-token-of-some-length"


async def echo(scope: Any, receive: Any, send: Any) -> None:
    body = (await receive())["body"]
    if body == b"slow":
        await asyncio.sleep(5)
    await send({"type": "http.response.start", "status": 200, "headers": [(b"cache-control", b"max-age=60")]})
    await send({"type": "http.response.body", "body": body})


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:8000", 200), ("localhost", 200), ("[::1]:9", 200), ("LOCALHOST:1", 200), ("model.example:80", 200),
        ("evil.example", 421), ("127.0.0.1.evil.example", 421), ("localhost:8000:9", 421), ("", 421),
        ("127.0.0.1@evil.example", 421), ("localhost, evil.example", 421), ("[::1", 421),
    ],
)  # fmt: skip
def test_only_names_of_the_server_are_answered(host: str, status: int) -> None:
    found = ask(Guard(echo, hosts=["model.example"]), "GET", "/", host=host)
    assert found.status == status
    if status != 200:
        assert found.headers["content-type"] == "application/problem+json"
        assert found.json["type"] == "urn:tallybayes:wrong-host"


@pytest.mark.parametrize(
    ("host", "status"),
    [("192.168.0.7:80", 200), ("[fe80::1]", 200), ("evil.example", 421), ("0.0.0.0", 421), ("1.2", 421)],
)
def test_bound_to_every_address_it_goes_by_any_number_but_by_no_name(host: str, status: int) -> None:
    assert ask(Guard(echo, hosts=["0.0.0.0"]), "GET", "/", host=host).status == status
    assert ask(Guard(echo), "GET", "/", host=host).status == 421


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {}, 200),  # a program
        ("POST", {"origin": "http://127.0.0.1:8000"}, 200),
        ("POST", {"origin": "https://127.0.0.1:8000", "sec_fetch_site": "same-origin"}, 200),
        ("POST", {"origin": "http://evil.example"}, 403),
        ("POST", {"origin": "null"}, 403),
        ("POST", {"origin": "http://127.0.0.1:9000"}, 403),
        ("POST", {"sec_fetch_site": "cross-site"}, 403),
        ("DELETE", {"sec_fetch_site": "same-site"}, 403),
        ("GET", {"origin": "http://evil.example", "sec_fetch_site": "cross-site"}, 200),  # reads nothing: no CORS
    ],
)
def test_what_changes_anything_comes_from_no_other_page(method: str, headers: dict[str, str], status: int) -> None:
    found = ask(Guard(echo), method, "/", **headers)
    assert found.status == status
    assert "access-control-allow-origin" not in found.headers


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 401),
        ({"authorization": f"Bearer {TOKEN}"}, 200),
        ({"authorization": f"bearer  {TOKEN}"}, 200),
        ({"authorization": f"Basic {TOKEN}"}, 401),
        ({"authorization": f"Bearer {TOKEN}x"}, 401),
        ({"authorization": "Bearer "}, 401),
        ({"authorization": "Bearer \xff"}, 401),
        ({"cookie": f"other=1; {COOKIE}={TOKEN}"}, 200),
        ({"cookie": f"{COOKIE}=wrong"}, 401),
        ({"cookie": 'a="'}, 401),
    ],
)
def test_the_token(headers: dict[str, str], status: int) -> None:
    app = Guard(echo, token=TOKEN)
    found = ask(app, "GET", "/", **headers)
    assert found.status == status
    if status == 401:
        assert found.headers["www-authenticate"] == "Bearer"
        assert TOKEN not in found.body.decode()
    assert ask(app, "GET", "/health").status == 200


def test_a_body_has_its_limits_each_with_a_status_of_its_own() -> None:
    app = Guard(echo, limits=ServeLimits(body=10, body_seconds=0.05, seconds=0.1))
    assert ask(app, "POST", "/", pieces=[b"12345", b"67890"]).body == b"1234567890"
    for pieces, headers in (([b"12345", b"678901"], {}), ([b""], {"content_length": "11"})):
        assert ask(app, "POST", "/", pieces=pieces, **headers).json["type"] == "urn:tallybayes:too-many-bytes"
    for odd in ("-1", "1e3", "9" * 5000, "\xb2"):
        assert ask(app, "POST", "/", pieces=[b""], content_length=odd).status == 413
    assert ask(app, "POST", "/", pieces=[b"1"] * 9, gap=0.02).status == 408
    assert ask(app, "POST", "/", pieces=[b"slow"]).status == 504


def test_a_long_answer_goes_on_as_long_as_it_is_taken() -> None:
    def pieces(wait: float) -> Any:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": []})
            for _ in range(6):
                await asyncio.sleep(wait)
                await send({"type": "http.response.body", "body": b"x", "more_body": True})
            await send({"type": "http.response.body", "body": b""})

        return Guard(app, limits=ServeLimits(seconds=0.2))

    assert ask(pieces(0.05), "GET", "/").body == b"xxxxxx"  # 0.3 seconds in all
    with pytest.raises(TimeoutError):
        ask(pieces(0.4), "GET", "/")


def test_every_answer_has_the_headers_of_a_careful_server() -> None:
    good, bad = ask(Guard(echo), "GET", "/"), ask(Guard(echo), "GET", "/", host="evil")
    for found in (good, bad):
        assert found.headers["x-content-type-options"] == "nosniff"
        assert "default-src 'none'" in found.headers["content-security-policy"]
    assert (good.headers["cache-control"], bad.headers["cache-control"]) == ("max-age=60", "no-store")


def test_the_world_is_served_only_with_a_token_that_is_not_soon_guessed() -> None:
    check_token("127.0.0.1", None)
    check_token("::1", TOKEN)
    check_token("0.0.0.0", TOKEN)
    for host, token in (
        ("0.0.0.0", None),
        ("::", None),
        ("example.org", None),
        ("127.0.0.1", "short"),
        ("::", "ü" * 20),
    ):
        with pytest.raises(tb.SettingsError):
            check_token(host, token)
