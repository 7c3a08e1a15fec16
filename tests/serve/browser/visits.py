"""A server in a process of its own, and a person before a browser, who notices whatever goes wrong on a page."""

from __future__ import annotations

import csv
import http.client
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

import tallybayes as tb
from tallybayes.serve.desk import Desk

marks = pytest.mark.xdist_group("browser")  # one worker has the browser: two would only wait for each other
SOURCES = str(Path(tb.__file__).resolve().parents[1])
OTHER_NAME = "page.example"  # another name of this machine, which the browser of the tests knows
PHONE, DESKTOP = 390, 1000  # pixels


class Server:
    """`tallybayes serve` on a free port, until it is told to end or killed."""

    def __init__(self, path: Path, *options: str, port: int = 0) -> None:
        words = [sys.executable, "-m", "tallybayes", "serve", str(path), "--port", str(port), *options]
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join(filter(None, [SOURCES, os.environ.get("PYTHONPATH")])),
        }
        self._process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environment)
        told = []
        for line in self._process.stdout:
            told.append(line)
            found = re.search(r"http://\S+?:\d+", line)
            if found:
                self.address = found[0]
                return
        raise AssertionError(f"the server ended with {self._process.wait()}: {''.join(told)}")

    @property
    def port(self) -> int:
        return urlsplit(self.address).port

    def api(self, path: str, body: Any = None) -> Any:
        """What the API answers a program."""
        asked = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        if body is None:
            asked.request("GET", path)
        else:
            asked.request("POST", path, json.dumps(body), {"Content-Type": "application/json"})
        answer = asked.getresponse()
        told = json.load(answer)
        asked.close()
        assert answer.status == 200, told
        return told

    def kill(self) -> None:
        """As a power cut does it."""
        self._process.kill()
        self._process.communicate()

    def end(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=30)


@contextmanager
def served(path: Path, *options: str, port: int = 0) -> Iterator[Server]:
    server = Server(path, *options, port=port)
    try:
        yield server
    finally:
        server.end()


class Visit:
    """A page of a browser before which somebody sits; `troubles` is what went wrong, and must stay empty."""

    def __init__(self, context: Any, address: str) -> None:
        self.address, self.troubles = address, []
        self.page = context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("console", lambda said: self._note(f"{said.type}: {said.text}", said.type in ("error", "warning")))
        self.page.on("pageerror", lambda error: self._note(f"uncaught: {error}"))
        self.page.on("request", lambda asked: self._note(f"asked elsewhere: {asked.url}", self._elsewhere(asked.url)))
        self.page.on("dialog", lambda dialog: (self._note(f"dialog: {dialog.message}"), dialog.dismiss()))

    def _elsewhere(self, url: str) -> bool:
        return urlsplit(url).scheme not in ("blob", "data") and not url.startswith(self.address + "/")

    def _note(self, what: str, wrong: bool = True) -> None:
        if wrong:
            self.troubles.append(f"{self.page.url}: {what}")

    def go(self, path: str) -> int:
        return self.page.goto(self.address + path).status

    @contextmanager
    def refused(self, status: int) -> Iterator[None]:
        """Within it the server refuses something, which the browser tells on its console; nothing else may go wrong."""
        before, self.troubles = self.troubles, []
        yield
        self.page.wait_for_timeout(50)
        others = [each for each in self.troubles if f"responded with a status of {status}" not in each]
        assert len(others) < len(self.troubles), "nothing was refused"
        self.troubles = before + others

    # ---- what a page must be

    def check(self, *, thorough: bool = False) -> None:
        """No barrier that axe-core finds, in light and dark, and nothing sideways of the page on a phone."""
        page, wide = self.page, self.page.viewport_size
        for width in (wide["width"], PHONE):
            page.set_viewport_size({"width": width, "height": wide["height"]})
            broad = page.evaluate(_TOO_BROAD)
            assert not broad, f"{page.url} at {width} pixels is too broad: {broad}"
            if width == PHONE and not thorough:
                continue
            for scheme in ("light", "dark"):
                page.emulate_media(color_scheme=scheme)
                found = violations(page, None if scheme == "light" or thorough else ["color-contrast"])
                assert not found, f"{page.url}, {scheme}, {width} pixels:\n" + "\n".join(found)
        page.emulate_media(color_scheme="light")
        page.set_viewport_size(wide)

    def focused(self) -> str:
        """What the keyboard is at, in words; it must be seen to be there."""
        found = self.page.evaluate(_FOCUSED)
        assert found["seen"], f"{self.page.url}: nobody sees that the keyboard is at {found['what']}"
        return found["what"]

    def tab_to(self, selector: str, most: int = 80) -> None:
        """Press Tab until the keyboard is at an element."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            what = self.focused()
            if self.page.evaluate("chosen => document.activeElement.matches(chosen)", selector):
                return
        raise AssertionError(f"{self.page.url}: {most} times Tab, now at {what}, not at {selector}")


# What is broader than the page, where that can be scrolled sideways, or than its column, where it covers the next one
_TOO_BROAD = """() => {
  const root = document.documentElement, right = (e) => e.getBoundingClientRect().right;
  const beyond = (all, most) => [...all].filter((e) => right(e) > most + 1 && !e.matches(".scroll *"))
    .slice(0, 3).map((e) => e.outerHTML.slice(0, 150));
  if (root.scrollWidth > root.clientWidth) return beyond(document.body.querySelectorAll("*"), root.clientWidth);
  for (const column of document.querySelectorAll(".columns > *")) {
    const fields = column.querySelectorAll("input, select, textarea, button, p");
    const broad = beyond(fields, right(column));
    if (broad.length) return broad;
  }
  return [];
}"""
_FOCUSED = """() => {
  const at = document.activeElement, style = getComputedStyle(at), box = at.getBoundingClientRect();
  const name = at.id ? "#" + at.id : at.outerHTML.slice(0, 100);
  const seen = at === document.body || (style.outlineStyle !== "none" && parseFloat(style.outlineWidth) >= 2
    && box.width > 0 && box.height > 0 && box.right > 0 && box.bottom > 0);
  return { what: name, seen };
}"""


def violations(page: Any, only: list[str] | None = None) -> list[str]:
    """What axe-core has against a page, in words."""
    from axe_playwright_python.sync_playwright import Axe

    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if only:
        options["runOnly"] = only
    found = Axe().run(page, options=options).response["violations"]
    return [f"{each['id']}: {each['help']}: {node['html'][:160]}: {node['failureSummary']}" for each in found
            for node in each["nodes"][:3]]  # fmt: skip


AGENTS = ("Ada Archer", "Bo Birch", "Cleo Crane", "Dan Drake", "Edda Elm", "Finn Fox", "Gus Gull", "Hedda Hart")


def flats(folder: Path, *, unlabelled: int = 0, name: str = "flats.csv") -> Path:
    """The example's flats as a table in a folder, each with an agent, the last ones without their label."""
    with open(tb.example("flats.csv"), newline="", encoding="utf-8") as given:
        head, *rows = csv.reader(given)
    rows = [[row[0], AGENTS[i % len(AGENTS)], *row[1:]] for i, row in enumerate(rows)]
    for row in rows[len(rows) - unlabelled :]:
        row[-1] = ""
    return write_table(folder / name, [head[0], "agent", *head[1:]], rows)


def write_table(path: Path, head: list[str], rows: list[list[str]]) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([head, *rows])
    return path


def read_table(path: Path) -> dict[str, dict[str, str]]:
    """The rows of a table, by the text in their first column."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    return {next(iter(row.values())): row for row in rows}


def counted_afresh(model: tb.Model, rows: dict[str, dict[str, str]], folder: Path) -> str:
    """The digest of these rows, counted from a file of their own under the schema of a model."""
    head = list(next(iter(rows.values())))
    path = write_table(folder / "counted afresh.csv", head, [list(row.values()) for row in rows.values()])
    return tb.count(path, model.schema).digest


def begun(table: Path, target: str = "let", *, calibrate: bool = False, **more: Any) -> Path:
    """A model of a table with its journal, as `serve --fit` makes it; in no time, unless it is to be calibrated."""
    path = table.with_name("model.tb.parquet")
    Desk.begin(path, str(table), target=target, calibrate=calibrate, **more).close()
    return path


# ---- what a person does on the pages; each leaves the page that comes next


def drop(person: Visit, path: Path) -> None:
    """Drop a file upon the page as a mouse does it."""
    page = person.page
    moved = page.evaluate_handle(
        """([name, text]) => {
          const moved = new DataTransfer();
          moved.items.add(new File([text], name, { type: "text/csv" }));
          return moved;
        }""",
        [path.name, path.read_text("utf-8")],
    )
    for event in ("dragenter", "dragover", "drop"):
        page.dispatch_event("#drop", event, {"dataTransfer": moved})
    page.wait_for_url("**/start/look?*")


def make(person: Visit, *, target: str, kinds: dict[str, str] | None = None, effort: str = "quick") -> None:
    """Have a model made of the table that is looked at."""
    page = person.page
    page.select_option("#target", label=target)
    for column, kind in (kinds or {}).items():
        field = page.get_by_label(f"Kind of {column}", exact=True)
        field.select_option(kind)
        page.wait_for_function("([id, kind]) => document.getElementById(id).textContent.startsWith(kind)",
                               arg=[field.get_attribute("id").replace("kind", "why"), kind])  # fmt: skip
    page.select_option("#effort", effort)
    page.click("#fit")
    page.wait_for_url("**/ask")


def ask(person: Visit, **values: str) -> None:
    """Fill in fields, one key after another, and wait until the answer is that of all of them."""
    page = person.page
    for name, value in values.items():
        field = page.get_by_label(re.compile(rf"^{name}(?![a-z])"))
        if field.evaluate("e => e.tagName") == "SELECT":
            field.select_option(value)
        else:
            field.press_sequentially(value)
    page.wait_for_timeout(150)  # longer than the page waits for the next key
    page.wait_for_selector("#answer:not([aria-busy])")


def row_shown(person: Visit, column: str) -> str:
    """What the row that waits for a label has in a column."""
    return person.page.locator(f"#card tr:has(td:text-is('{column}')) td:nth-child(2)").inner_text()


def press(person: Visit, key: str) -> str:
    """Press a key that leads to the next page, and read what is told there."""
    with person.page.expect_navigation():
        person.page.keyboard.press(key)
    return person.page.locator("#told").inner_text()


def click(person: Visit, selector: str) -> str:
    """The same by the mouse."""
    with person.page.expect_navigation():
        person.page.click(selector)
    return person.page.locator("#told").inner_text()


def digest_shown(person: Visit) -> str:
    """The digest of the counts at the head of the page."""
    return person.page.locator("#state code").get_attribute("title").rpartition(" ")[2]
