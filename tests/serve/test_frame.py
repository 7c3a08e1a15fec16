"""What all pages share: who may come in, whose forms are taken, that nothing from outside is anything but text."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
from asked import Answer, ask

from tallybayes.serve.app import make_app
from tallybayes.serve.desk import Desk
from tallybayes.serve.guard import COOKIE
from tallybayes.serve.pages.html import bar, table, tag
from tallybayes.serve.place import Place

TOKEN = "a-token-of-some-length"
ROWS = [{"sky": s, "play": p} for s, p in [("<script>alert(1)</script>", "yes"), ("grey", "no"), ("sunny", "yes")]]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    desk = Desk.begin(tmp_path / "play.tb.parquet", ROWS * 4, target="play", calibrate=False)
    with_desk = Place.of(desk)
    yield with_desk
    with_desk.close()


def form(app: Any, address: str, form_token: str, **fields: str) -> Answer:
    body = urlencode({"form_token": form_token, **fields}).encode()
    return ask(app, "POST", address, pieces=[body], content_type="application/x-www-form-urlencoded")


def test_everything_is_escaped_that_is_not_safe() -> None:
    evil = "<img src=x onerror=alert(1)>\"'\x00\u202e"
    shown = "&lt;img src=x onerror=alert(1)&gt;&quot;&#x27;\ufffd\ufffd"
    assert tag("p", evil, [evil, None, False], title=evil) == f'<p title="{shown}">{shown}{shown}</p>'
    assert "<img" not in table([evil], [[evil]], caption=evil)
    assert "<img" not in bar(0.5, label=evil, class_=evil)


def test_pages_have_a_policy_without_inline_scripts_and_show_the_state(place: Place) -> None:
    found = ask(make_app(place), "GET", "/api")
    assert found.status == 200
    assert found.headers["content-type"].startswith("text/html")
    policy = found.headers["content-security-policy"]
    assert "script-src 'self'" in policy
    assert "unsafe" not in policy
    page = found.body.decode()
    assert place.desk.digest[:12] in page
    assert "12 rows" in page
    assert " style=" not in page
    assert page.count("<script") == 1
    assert ask(make_app(place), "GET", "/favicon.ico").headers["location"] == "/static/icon.svg"
    for name, start in (("page.css", b":root"), ("page.js", b"//"), ("icon.svg", b"<svg")):
        assert ask(make_app(place), "GET", f"/static/{name}").body.lstrip().startswith(start)


def test_a_person_who_is_lost_gets_a_page_and_a_program_a_problem(place: Place) -> None:
    app = make_app(place)
    found = ask(app, "GET", "/nowhere/<b>", accept="text/html,*/*")
    assert found.status == 404
    assert found.headers["content-type"].startswith("text/html")
    assert "There is nothing at /nowhere/&lt;b&gt;" in found.body.decode()
    assert ask(app, "GET", "/nowhere").json["type"] == "urn:tallybayes:not-found"
    assert ask(app, "GET", "/api/predict", accept="text/html").status == 405


def test_a_form_without_the_token_of_our_pages_changes_nothing(place: Place) -> None:
    app = make_app(place)
    page = ask(app, "GET", "/api").body.decode()
    token = page.partition('name="form_token" value="')[2].partition('"')[0]
    assert form(app, "/you", "wrong", name="Eve", to="/api").status == 403
    found = form(app, "/you", token, name="Ann", to="/api")
    assert (found.status, found.headers["location"]) == (303, "/api")
    cookie = found.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=strict" in cookie
    assert form(app, "/you", token, name="Ann", to="https://evil.example").headers["location"] == "/"


def test_without_a_model_there_is_only_the_start(tmp_path: Path) -> None:
    app = make_app(Place(str(tmp_path)))
    assert ask(app, "GET", "/").headers["location"] == "/start"
    found = ask(app, "GET", "/api/digest")
    assert (found.status, found.json["type"]) == (409, "urn:tallybayes:no-model")
    assert ask(app, "GET", "/metrics").status == 409


def test_a_person_gives_the_token_once_and_a_cookie_keeps_it(place: Place) -> None:
    app = make_app(place, token=TOKEN)
    found = ask(app, "GET", "/api", accept="text/html")
    assert (found.status, found.headers["location"]) == (303, "/enter")
    assert ask(app, "GET", "/api").status == 401  # a program
    door = ask(app, "GET", "/enter").body.decode()
    assert "play" not in door
    assert place.desk.digest[:12] not in door
    assert form(app, "/enter", "", token="a-token-of-some-other").status == 401
    found = form(app, "/enter", "", token=TOKEN)
    cookie = found.headers["set-cookie"]
    assert found.status == 303
    assert cookie.startswith(f"{COOKIE}={TOKEN};")
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert ask(app, "GET", "/api", cookie=f"{COOKIE}={TOKEN}").status == 200


@pytest.mark.parametrize(
    "name", ["../x.csv", "/etc/passwd", "a/b.csv", "..", ".", "", ".hidden", "a\\b", "x\x00y", "~root", "-x", "a" * 200]
)
def test_no_name_leads_out_of_the_folder(tmp_path: Path, name: str) -> None:
    with pytest.raises(Exception, match="no name of a file"):
        Place(str(tmp_path)).path_of(name)


def test_no_link_leads_out_of_the_folder(tmp_path: Path) -> None:
    inside = tmp_path / "inside"
    inside.mkdir()
    (tmp_path / "secret.csv").write_text("a\n1\n")
    (inside / "secret.csv").symlink_to(tmp_path / "secret.csv")
    (inside / "own.csv").write_text("a\n1\n")
    assert Place(str(inside)).tables() == ["own.csv"]
    with pytest.raises(Exception, match="leads to another place"):
        Place(str(inside)).path_of("secret.csv")
