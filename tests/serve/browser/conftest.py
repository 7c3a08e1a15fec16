"""A real Chromium for the tests of this package; skipped, with the reason, where there is none."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from browser.visits import DESKTOP, OTHER_NAME, Server, Visit, served


@pytest.fixture(scope="package")  # and no longer: while Playwright runs, nobody else in its process may use asyncio
def chromium() -> Iterator[Any]:
    program = shutil.which("chromium")
    if program is None:
        pytest.skip("the pages are tested in Chromium, and there is no chromium on this machine")
    pytest.importorskip("uvicorn", reason="pip install 'tallybayes[browser]'")
    pytest.importorskip("axe_playwright_python", reason="pip install 'tallybayes[browser]'")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        rules = f"--host-resolver-rules=MAP {OTHER_NAME} 127.0.0.1"
        browser = playwright.chromium.launch(executable_path=program, args=[rules])
        yield browser
        browser.close()


@pytest.fixture(scope="package")
def workshop(chromium: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server on a folder in which each test makes a model of its own."""
    with served(tmp_path_factory.mktemp("workshop")) as running:
        yield running


@pytest.fixture
def visit(chromium: Any) -> Iterator[Callable[..., Visit]]:
    """Somebody sits down before a browser of their own; at the end nothing may have gone wrong in it."""
    contexts, visits = [], []

    def sits_down(server: Server | str, *, width: int = DESKTOP, **more: Any) -> Visit:
        context = chromium.new_context(viewport={"width": width, "height": 800}, **more)
        visits.append(Visit(context, server if isinstance(server, str) else server.address))
        contexts.append(context)
        return visits[-1]

    yield sits_down
    troubles = [trouble for each in visits for trouble in each.troubles]
    for context in contexts:
        context.close()
    assert not troubles, "\n".join(troubles)
