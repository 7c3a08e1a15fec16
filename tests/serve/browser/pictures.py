"""Take the pictures of docs/serve.md in Chromium: `python tests/serve/browser/pictures.py`.

The flats are invented, and so are their agents. Pictures have few colours, so that they weigh little.
"""

from __future__ import annotations

import io
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from browser.visits import DESKTOP, PHONE, Server, Visit, ask, drop, flats, make, press, read_table, served

FOLDER = Path(__file__).resolve().parents[3] / "docs" / "serve"
MOST = 120_000  # bytes of a picture


def take(person: Visit, name: str, *, top: str = "", height: int = 700) -> None:
    """A picture of what is seen when the element `top` has been scrolled to the top of the window."""
    from PIL import Image

    page = person.page
    page.set_viewport_size({"width": page.viewport_size["width"], "height": height})
    page.evaluate("for (const each of document.images) each.loading = 'eager'")
    page.wait_for_function("() => [...document.images].every((each) => each.complete)")
    page.evaluate("top => (top ? document.querySelector(top) : document.body).scrollIntoView()", top)
    picture = Image.open(io.BytesIO(page.screenshot())).convert("RGB").quantize(200, dither=Image.Dither.NONE)
    path = FOLDER / f"{name}.png"
    picture.save(path, optimize=True)
    assert path.stat().st_size < MOST, path


def walk(person: Visit, server: Server, folder: Path) -> None:
    """One session, with a picture of each page."""
    page = person.page
    table = flats(folder, unlabelled=40)
    person.go("/")
    drop(person, table)
    page.get_by_label("Kind of note", exact=True).select_option("text")
    page.get_by_label("Kind of agent", exact=True).select_option("ignore")
    page.wait_for_timeout(1000)
    take(person, "start", height=900)
    make(person, target="let", kinds={"note": "text", "agent": "ignore"}, effort="usual")
    page.get_by_label("You are").fill("Ada")
    page.click(".you button")
    ask(person, district="Harbour", rooms="2", rent="480", balcony="yes", note="near the park, small windows")
    page.click("#what")
    page.locator("#what-if").wait_for()
    take(person, "ask", height=1245)
    person.go("/model")
    take(person, "model", height=900)
    take(person, "columns", top="#columns", height=1160)
    person.go("/label")
    for key in "1221121221":
        press(person, key)
    take(person, "label", height=760)
    press(person, "u")
    person.go("/journal")
    take(person, "journal", height=760)
    rows = [{**row, "rent": float(row["rent"]) * 1.3} for row in list(read_table(table).values())[:200]]
    asked = [{name: value for name, value in row.items() if name != "let" and value != ""} for row in rows]
    server.api("/api/predict", {"rows": asked})
    person.go("/watch")
    take(person, "watch", height=862)


def main() -> None:
    from playwright.sync_api import sync_playwright

    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as place, sync_playwright() as playwright:
        folder = Path(place)
        models = folder / "models"
        models.mkdir()
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"))
        with served(models) as server:
            walk(_sits(browser, server, DESKTOP), server, folder)
            person = _sits(browser, server, PHONE, color_scheme="dark")
            person.go("/label")
            take(person, "phone", height=780)


def _sits(browser: Any, server: Server, width: int, **more: Any) -> Visit:
    return Visit(browser.new_context(viewport={"width": width, "height": 700}, **more), server.address)


if __name__ == "__main__":
    main()
