"""Look at the built site in a real Chromium: `python docs/look_at_site.py build/site [FOLDER for screenshots]`.

Pages in light, in dark and at 390 points: nothing is loaded from elsewhere, nothing is wider than the screen, no script
fails, pictures suit the paper, axe-core finds nothing serious, search finds, also in pages opened from a folder, and
what is copied has no prompts.
Without playwright or Chromium there is a line that says so, and nothing else.
"""

from __future__ import annotations

import shutil
import sys
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

PAGES = (
    "index.html",
    "howto/forget_a_person.html",
    "numbers.html",
    "gallery/index.html",
    "notebooks/2_smoothing.html",
    "quality.html",
    "architecture.html",
    "reference/index.html",
    "commands.html",
    "decisions/exact_integers.html",
    "serve.html",
    "lectures.html",
)
LOOKS = {
    "light": ("light", 1280, 900),
    "dark": ("dark", 1280, 900),
    "phone": ("light", 390, 844),
    "night": ("dark", 390, 844),
}


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Nothing: what was asked for is no news."""


def main(folder: str = "build/site", pictures: str | None = None) -> int:
    """Print what is wrong; 0 if nothing is."""
    chromium = shutil.which("chromium")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        chromium = None
    if chromium is None:
        print("no Chromium or no playwright found: nobody has looked at the pages")
        return 0
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=folder))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    base = f"http://127.0.0.1:{server.server_port}/"
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        found = [p for look in LOOKS for p in looked(browser, base, look, pictures)]
        found += searched(browser, base) + searched(browser, Path(folder).resolve().as_uri() + "/")
        found += copied(browser, base)
        browser.close()
    server.shutdown()
    print(*found, sep="\n", file=sys.stderr)
    print(f"{folder}: {len(PAGES)} pages in {len(LOOKS)} looks, {len(found)} problems")
    return 1 if found else 0


def looked(browser: Any, base: str, look: str, pictures: str | None) -> list[str]:
    """What is wrong with the pages in one look."""
    scheme, width, height = LOOKS[look]
    tab = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": height}).new_page()
    out: list[str] = []
    tab.on(
        "request", lambda asked: out.append(f"loads {asked.url}") if not asked.url.startswith((base, "data:")) else None
    )
    tab.on("pageerror", lambda error: out.append(f"a script fails: {error}"))
    told: list[str] = []
    judged = _judge() if width > 1000 else None
    for page in PAGES:
        tab.goto(base + page)
        tab.wait_for_load_state("networkidle")
        wider = tab.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        out += [f"{wider} points wider than the screen"] if wider > 0 else []
        shown = tab.locator(f".md-content img.only-{'light' if scheme == 'dark' else 'dark'}:visible").count()
        out += [f"{shown} pictures for the other paper"] if shown else []
        out += judged(tab) if judged is not None else []
        if pictures is not None:
            Path(pictures).mkdir(parents=True, exist_ok=True)
            tab.screenshot(path=Path(pictures) / f"{page.replace('/', '_').removesuffix('.html')}-{look}.png")
        told += [f"{page}, {look}: {problem}" for problem in out]
        out.clear()
    return told


def _judge() -> Any:
    """What axe-core finds seriously wrong for those who see little or listen; None where it is not installed."""
    try:
        from axe_playwright_python.sync_playwright import Axe
    except ImportError:
        return None

    def judge(tab: Any) -> list[str]:
        found = Axe().run(tab).response["violations"]
        return [f"{f['id']}: {f['nodes'][0]['target']}" for f in found if f["impact"] in ("serious", "critical")]

    return judge


def searched(browser: Any, base: str) -> list[str]:
    """What is wrong with the search: a question must find its page."""
    tab = browser.new_page()
    tab.goto(base + "index.html")
    link = tab.locator("a.md-search-result__link[href*='forget_a_person.html']").first
    try:
        tab.locator("[data-md-component=search-query]").click(timeout=10_000)
        tab.keyboard.type("forget a person", delay=20)
        link.wait_for(timeout=10_000)
    except Exception as error:
        return [f"search of {base.partition(':')[0]}: does not find how to forget a person ({type(error).__name__})"]
    return []


def copied(browser: Any, base: str) -> list[str]:
    """What is wrong with the button that copies: what was typed, and nothing else."""
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    tab = context.new_page()
    tab.goto(base + "index.html")
    block = tab.locator(".language-pycon").first
    block.hover()
    block.locator("[data-clipboard-target]").click()
    text = tab.evaluate("navigator.clipboard.readText()")
    return (
        []
        if text.startswith("import tallybayes as tb\npatients = {\n") and "probability" not in text
        else [f"copied: {text}"]
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
