"""From a dropped table to a downloaded model, as somebody goes who has never programmed: by mouse and by keyboard."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

import tallybayes as tb
from browser.visits import (
    AGENTS,
    Server,
    Visit,
    ask,
    begun,
    click,
    counted_afresh,
    digest_shown,
    drop,
    flats,
    make,
    marks,
    press,
    read_table,
    row_shown,
    served,
)

pytestmark = marks
Sits = Callable[..., Visit]


def test_from_a_dropped_table_to_a_model_that_counts_exactly_the_rows_that_are_left(
    workshop: Server, visit: Sits, tmp_path: Path
) -> None:
    table = flats(tmp_path, unlabelled=20)
    left = read_table(table)
    person = visit(workshop)
    page = person.page
    person.go("/start")

    drop(person, table)
    person.check()
    assert "20 rows have no label" in page.locator("#understood").inner_text()
    make(person, target="let", kinds={"agent": "ignore"})
    assert page.locator("#told").inner_text() == "flats.tb.parquet is made of 220 rows; 20 rows wait for a label."

    ask(person, district="Harbour", rooms="2", rent="480")
    _adds_up(person, workshop.api("/api/predict", {"row": {"district": "Harbour", "rooms": 2, "rent": 480}}))
    best = page.locator("#said strong").inner_text().removeprefix("let: ")
    page.click("#what")
    told = page.locator("#what-if p").first.inner_text()
    assert f"{best} into {'slow' if best == 'fast' else 'fast'}" in told
    person.check()

    labelled: list[tuple[str, str]] = []
    person.go("/label")
    for i in range(12):
        number, label = row_shown(person, "number"), ("fast", "slow")[i % 2]
        told = press(person, str(1 + i % 2))
        assert f"is {label}. {i + 1} label" in told
        labelled.append((number, label))
    assert "taken back" in press(person, "u")
    number, _ = labelled.pop()
    assert row_shown(person, "number") == number
    assert len({number for number, _ in labelled}) == 11
    for number, label in labelled:
        left[number]["let"] = label
    left = {number: row for number, row in left.items() if row["let"]}

    person.go("/journal")
    page.fill("#search [name=column]", "number")
    page.fill("#search [name=value]", "1001")
    click(person, "#search button")
    page.check("input[type=checkbox][name=row]")
    assert click(person, "#forget").startswith("1 row is forgotten")
    del left["1001"]

    person.go("/journal/erase")
    page.fill("#person [name=column]", "agent")
    page.fill("#person [name=value]", AGENTS[0])
    click(person, "#person button")
    page.check("#sure")
    click(person, "#delete")
    left = {number: row for number, row in left.items() if row["agent"] != AGENTS[0]}
    person.check()
    with page.expect_download() as taken:
        page.click("a[download$=json]")
    receipt = json.loads(Path(taken.value.path()).read_bytes())
    assert (receipt["rows"], receipt["digest"]) == (30, digest_shown(person))  # also the one that was forgotten
    assert AGENTS[0] not in json.dumps(receipt)

    person.go("/journal")
    with page.expect_download() as taken:
        page.get_by_role("link", name="The model").click()
    taken.value.save_as(tmp_path / "downloaded.tb.parquet")
    model = tb.load(tmp_path / "downloaded.tb.parquet")
    assert model.tally.rows == len(left)
    assert model.tally.digest == digest_shown(person) == counted_afresh(model, left, tmp_path)

    dear = [{"district": "Dockside", "rooms": 2, "rent": 1500 + 4 * i} for i in range(99)]
    workshop.api("/api/predict", {"rows": dear})
    person.go("/watch")
    assert "asked about 99 rows" in page.locator("main").inner_text()  # nothing of before the erasure is counted
    assert "shifted" in page.locator("#drift tr", has_text="rent").inner_text()
    assert "100.0 %" in page.locator("#drift tr", has_text="Dockside").inner_text()


def test_by_the_keyboard_alone(workshop: Server, visit: Sits, tmp_path: Path) -> None:
    table = flats(tmp_path, unlabelled=20, name="by keyboard.csv")
    person = visit(workshop)
    page, keys = person.page, person.page.keyboard
    page.on("filechooser", lambda chooser: chooser.set_files(table))
    person.go("/start")
    person.tab_to("#file")
    keys.press("Enter")
    page.wait_for_url("**/start/look?*")
    person.tab_to("#target")
    keys.type("let")
    person.tab_to("#effort")
    keys.type("quick")
    person.tab_to("[aria-label='Kind of agent']")
    keys.type("ignore")
    page.locator("#why1", has_text="ignore").wait_for()
    keys.press("Shift+Tab")
    person.tab_to("#fit")
    keys.press("Enter")
    page.wait_for_url("**/ask")

    before = page.locator("#said").inner_text()
    person.tab_to("#v0")
    keys.type("Harb")
    person.tab_to("#v1")
    keys.type("5")
    page.wait_for_function("before => document.getElementById('said').innerText !== before", arg=before)
    person.tab_to("#what")
    press(person, "Enter")
    assert page.locator("#what-if").is_visible()
    person.tab_to("nav a[href='/label']")
    press(person, "Enter")
    for key in ("1", "2", "s", "1"):
        press(person, key)
    keys.press("/")  # to the field for another class
    assert person.focused() == "#other"
    keys.type("slow")
    press(person, "Enter")
    assert "taken back" in press(person, "u")
    person.tab_to("nav a[href='/journal']")
    press(person, "Enter")
    person.tab_to("#operations form button")
    assert "is undone" in press(person, "Enter")
    assert workshop.api("/api/digest")["operation"] == 8


def _adds_up(person: Visit, answer: dict[str, Any]) -> None:
    """The printed lines add up to the printed sum, or the page says why not, and that gives the probability."""
    lines = person.page.locator("#answer h3 + .scroll tbody tr").all_inner_texts()
    printed = [Decimal(line.split()[-1].replace("−", "-")) for line in lines]
    assert len(printed) > 4
    off = abs(sum(printed[:-1]) - printed[-1])
    assert off == 0 or (off <= Decimal("0.02") and person.page.get_by_text("Rounded, so that").is_visible())
    said = person.page.locator("#said").inner_text()
    assert person.page.locator("#said strong").inner_text() == f"let: {answer['class']}"
    p = answer["probability"]
    assert f"{100 * p:.1f} %" in said
    assert math.log(p / (1 - p)) == pytest.approx(float(printed[-1]), abs=0.01)


def test_what_is_typed_stays_while_one_says_who_one_is_and_its_slider_follows(visit: Sits, tmp_path: Path) -> None:
    lines = [f"{9 + i % 8}:{i * 7 % 60:02},{'late' if i % 8 > 3 and i % 5 else 'soon'}" for i in range(200)]
    (tmp_path / "trips.csv").write_text("\n".join(["at,when", *lines, ""]))
    with served(begun(tmp_path / "trips.csv", target="when", calibrate=False)) as server:
        person = visit(server)
        person.go("/ask")
        page = person.page
        page.fill("#v0", "14:30")
        slider = page.locator("[data-with=v0]")
        for _ in range(100):
            if abs(float(slider.input_value()) - 14.5) < 0.1:
                break
            page.wait_for_timeout(50)
        else:
            raise AssertionError(slider.input_value())
        page.get_by_label("You are").fill("Ann")
        page.keyboard.press("Enter")
        page.get_by_text("The journal will call you Ann.").wait_for()
        assert page.input_value("#v0") == "14:30"
        page.reload()
        assert page.get_by_label("You are").input_value() == "Ann"
