"""A table whose names, values and labels are scripts: every page shows them as text, and nothing of it runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from browser.visits import Server, Visit, click, drop, make, marks, press, write_table

pytestmark = marks

RUN = "window.ran=1"
COLUMNS = ["id", f"<script>{RUN}</script>", f"<img src=x onerror={RUN}>", f'"><svg onload="{RUN}">', "'+alert(1)+'"]
VALUES = [
    f"<script>{RUN}</script>",
    f'" onmouseover="{RUN}" autofocus onfocus="{RUN}" x="',
    f"</textarea><script>{RUN}</script>",
    f"</title></option></select><img src=x onerror={RUN}>",
    f"javascript:{RUN}",
    "\u202e{{7*7}}${7*7}&lt;b&gt;",
]
LABELS = [f"<img src=x onerror={RUN}>", f"'\"><script>{RUN}</script>"]
_RAN = "window.ran ?? document.querySelectorAll('main script, [onload], [onerror], [onfocus]').length"
TARGET = f"</label><script>{RUN}</script>"
TEXT = COLUMNS[2]


def test_scripts_in_names_values_and_labels_are_shown_and_never_run(
    workshop: Server, visit: Callable[..., Visit], tmp_path: Path
) -> None:
    rows = []
    for i in range(60):
        cells = [VALUES[i % len(VALUES)], f"{VALUES[(i + 1) % len(VALUES)]} word{i % 7} <b>bold{i % 5}</b>", str(i / 7)]
        rows.append([f"p{i}", *cells, VALUES[(i // 2) % len(VALUES)], LABELS[i % 2] if i < 50 else ""])
    table = write_table(tmp_path / "a'b&amp;.csv", [*COLUMNS, TARGET], rows)
    person = visit(workshop)
    page = person.page

    def harmless(*shown: str) -> None:
        assert page.evaluate(_RAN) == 0
        text = page.locator("main").inner_text()
        for each in shown:
            assert each in text, each

    person.go("/start")
    drop(person, table)
    harmless(*COLUMNS, *LABELS, VALUES[0])
    make(person, target=TARGET, kinds={TEXT: "text"})
    harmless(TARGET, *COLUMNS[1:], *LABELS)
    page.locator(".field textarea").first.fill(f"{VALUES[0]} <b>bold1</b>")
    page.locator("#answer", has_text="bold1").wait_for()
    harmless(*LABELS)
    click(person, "#what")
    harmless(*LABELS)
    person.go("/model")
    harmless(*COLUMNS[1:], *LABELS)
    person.go("/label")
    harmless(*COLUMNS, *LABELS, "<b>bold")
    page.get_by_label("You are").fill(VALUES[1])
    click(person, ".you button")
    person.go("/label")
    assert sorted(LABELS)[0] in press(person, "1")
    harmless(*LABELS)
    person.go("/journal")
    harmless()
    page.fill("#search [name=column]", COLUMNS[1])
    page.fill("#search [name=value]", VALUES[0])
    click(person, "#search button")
    harmless(LABELS[0])
    page.click("main table a")
    harmless(*COLUMNS, VALUES[0])
    person.go("/journal/erase")
    page.fill("#person [name=column]", COLUMNS[1])
    page.fill("#person [name=value]", VALUES[0])
    click(person, "#person button")
    harmless(COLUMNS[1])
    page.check("#sure")
    click(person, "#delete")
    harmless(COLUMNS[1])
    person.go("/start")
    harmless(table.name, TARGET)
    workshop.api("/api/predict", {"rows": [dict(zip(COLUMNS, row, strict=False)) for row in rows]})
    person.go("/watch")
    harmless(*COLUMNS[3:])  # the others are texts, which are not tested
