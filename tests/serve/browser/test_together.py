"""Several people at one model, and a power cut while somebody labels: no row twice, none lost, the counts exact."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from strategies import ALL

import tallybayes as tb
from browser.visits import (
    Server,
    Visit,
    begun,
    counted_afresh,
    digest_shown,
    flats,
    marks,
    press,
    read_table,
    row_shown,
    served,
)

pytestmark = [marks, pytest.mark.skipif(not ALL, reason="servers of their own: TALLYBAYES_TESTS=all")]
Sits = Callable[..., Visit]
CLASSES = ("fast", "slow")
_PRESSED_SOON = """key => {
  setTimeout(() => document.body.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true })));
}"""
IGNORED = {"number": "ignore", "agent": "ignore"}


def test_two_people_label_at_once_and_no_row_is_counted_twice(chromium: Any, visit: Sits, tmp_path: Path) -> None:
    table = flats(tmp_path, unlabelled=40)
    left = read_table(table)
    model = begun(table, kinds=IGNORED)
    with served(model) as server:
        people = [visit(server), visit(server, width=390)]
        for person in people:
            person.go("/label")
        for turn in range(12):
            numbers = [row_shown(person, "number") for person in people]
            assert numbers[0] != numbers[1]
            for each, number in enumerate(numbers):
                left[number]["let"] = CLASSES[(turn + each) % 2]
            _at_once(people, [str(1 + (turn + each) % 2) for each in range(2)])
            assert all("label" in person.page.locator("#told").inner_text() for person in people)
        first, second = people
        row = first.page.locator("#label [name=row]").input_value()
        second.go(f"/label?row={row}")  # the same row before both
        number = row_shown(first, "number")
        assert row_shown(second, "number") == number
        left[number]["let"] = "fast"
        press(first, "1")
        assert f"Row {row} has had the label fast meanwhile" in press(second, "2")
        assert "taken back" in press(second, "u")  # their own last one, not the other's
        left[row_shown(second, "number")]["let"] = ""
        for person in people:
            person.go("/journal")
        left = {number: row for number, row in left.items() if row["let"]}
        assert digest_shown(first) == digest_shown(second) == counted_afresh(tb.load(model), left, tmp_path)


def _at_once(people: list[Visit], keys: list[str]) -> None:
    """All press their key before any sees the next page."""
    before = [person.page.locator("#label [name=row]").input_value() for person in people]
    for person, key in zip(people, keys, strict=True):
        person.page.evaluate(_PRESSED_SOON, key)
    for person, row in zip(people, before, strict=True):
        person.page.wait_for_selector(f"#label [name=row]:not([value='{row}'])", state="attached")


def test_after_kill_9_while_somebody_labels_the_page_goes_on_and_nothing_is_lost(
    chromium: Any, visit: Sits, tmp_path: Path
) -> None:
    table = flats(tmp_path, unlabelled=30)
    left = read_table(table)
    model = begun(table, kinds=IGNORED)
    server = Server(model)
    try:
        person = visit(server)
        person.go("/label")
        for kill in range(6):
            number = row_shown(person, "number")
            press(person, "1")
            left[number]["let"] = "fast"
            number = row_shown(person, "number")
            person.page.evaluate("setTimeout(() => document.getElementById('class-2').click())")
            person.page.wait_for_timeout(5 * kill)
            server.kill()  # a label was on its way
            person.page.wait_for_timeout(50)
            server = Server(model, port=server.port)
            person.troubles.clear()  # the browser tells that nobody answered
            (row,) = server.api("/api/found", {"column": "number", "value": int(number)})["rows"]
            assert row["label"] in (None, "slow")
            left[number]["let"] = row["label"] or ""
            person.go("/label")
        press(person, "s")
        person.go("/journal")
        shown = digest_shown(person)
    finally:
        server.end()
    counted = {number: row for number, row in left.items() if row["let"]}
    assert tb.load(model).tally.digest == shown == counted_afresh(tb.load(model), counted, tmp_path)
