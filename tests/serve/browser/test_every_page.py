"""What holds for every page: no barrier, no sideways scrolling, nothing on the console; and the door with its token."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from strategies import ALL

from browser.visits import DESKTOP, OTHER_NAME, PHONE, Server, Visit, begun, flats, marks, served
from tallybayes.serve.pages.frame import MENU

pytestmark = marks
Sits = Callable[..., Visit]


@pytest.fixture(scope="module")
def server(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("every page")
    table = flats(folder, unlabelled=20)
    with served(begun(table, kinds={"note": "text", "agent": "ignore"}, calibrate=ALL)) as running:
        rows = [{"district": "Dockside", "rooms": i % 9, "rent": 1500 + i} for i in range(60)]
        running.api("/api/predict", {"rows": rows})  # something to watch
        yield running


@pytest.fixture(scope="module")
def person(chromium: Any, server: Server) -> Iterator[Visit]:
    """Somebody who looks at one page after another; nothing may go wrong in between."""
    context = chromium.new_context(viewport={"width": DESKTOP, "height": 800})
    sits = Visit(context, server.address)
    yield sits
    context.close()
    assert not sits.troubles, "\n".join(sits.troubles)


@pytest.mark.parametrize("path", [path for path, _ in MENU if ALL or path != "/api"])  # which is long, and all alike
def test_a_page_has_no_barrier_in_light_and_dark_and_on_a_phone(person: Visit, path: str) -> None:
    assert person.go(path) == 200
    person.check(thorough=ALL)
    assert person.page.locator("nav a[aria-current=page]").get_attribute("href") == path


@pytest.mark.skipif(not ALL, reason="a server of its own: TALLYBAYES_TESTS=all")
def test_the_token_is_asked_for_once_under_any_name_of_the_server(tmp_path: Path, visit: Sits) -> None:
    token, secret = "a-token-of-some-length", tmp_path / "token"
    secret.write_text(token)
    secret.chmod(0o600)
    with served(tmp_path, "--token-file", str(secret), "--name", OTHER_NAME) as server:
        person = visit(f"http://{OTHER_NAME}:{server.port}")
        person.go("/api")
        assert person.page.url.endswith("/enter")
        person.check(thorough=ALL)
        with person.refused(401):
            person.page.keyboard.type("a-token-of-some-other")
            person.page.keyboard.press("Enter")
            person.page.get_by_role("alert").wait_for()
        person.page.get_by_label("Token").fill(token)
        person.page.get_by_role("button", name="Enter").click()
        person.page.wait_for_url("**/start")
        assert token not in person.page.evaluate("document.cookie")
        stranger = visit(f"http://localhost:{server.port}")
        stranger.go("/start")
        assert stranger.page.url.endswith("/enter")


@pytest.mark.skipif(not ALL, reason="pages behind the pages: TALLYBAYES_TESTS=all")
@pytest.mark.parametrize(
    "path",
    ["/start/look?table=flats.csv", "/ask?row=3", "/model/column/2", "/model/column/6", "/journal/row/1",
     "/journal/operation/1", "/journal/erase", "/label?find=random", "/watch?rows=all"],
)  # fmt: skip
def test_a_page_behind_a_page_has_no_barrier_either(person: Visit, path: str) -> None:
    assert person.go(path) == 200
    for fold in person.page.locator("details:not([open]) > summary").all():
        if fold.is_visible():
            fold.click()
    person.check(thorough=True)


def test_on_a_phone_an_undo_is_in_sight_and_a_wide_table_shows_that_it_scrolls(server: Server, visit: Sits) -> None:
    server.api("/api/learn", {"rows": [{"district": "Harbour", "rooms": 2, "rent": 480, "let": "fast"}], "who": "Ann"})
    person = visit(server, width=PHONE)
    person.go("/journal")
    button = person.page.locator("#operations button").first.bounding_box()
    assert button["x"] >= 0
    assert button["x"] + button["width"] <= PHONE
    shades = person.page.locator("#operations .scroll").evaluate("e => getComputedStyle(e).backgroundAttachment")
    assert shades == "local, local, scroll, scroll"


def test_by_the_keyboard_one_skips_the_menu_and_says_who_one_is(person: Visit) -> None:
    person.go("/api")
    person.tab_to(".skip", most=1)
    person.page.keyboard.press("Enter")
    assert person.page.evaluate("document.activeElement.id") == "main"
    person.go("/api")
    person.tab_to("input[name=name]")
    person.page.keyboard.type('Ann "<b>" O\'Neill')
    with person.page.expect_navigation():
        person.page.keyboard.press("Enter")
    assert person.page.locator("#told").inner_text() == 'The journal will call you Ann "<b>" O\'Neill.'
    person.page.reload()
    assert person.page.locator("#told").is_hidden()
    assert person.page.locator("input[name=name]").input_value() == 'Ann "<b>" O\'Neill'


def test_without_the_script_a_form_is_sent_all_the_same(server: Server, visit: Sits) -> None:
    person = visit(server, java_script_enabled=False)
    person.go("/api")
    person.page.get_by_label("You are").fill("Ben")
    person.page.get_by_role("button", name="Set").click()
    person.page.get_by_text("The journal will call you Ben.").wait_for()
