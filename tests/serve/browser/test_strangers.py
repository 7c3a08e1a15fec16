"""Pages of other sites, opened in the same browser, can neither read nor change anything, nor show ours as theirs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from strategies import ALL

from browser.visits import OTHER_NAME, Visit, flats, marks, served

pytestmark = marks

# What a page elsewhere may try; each gives what it could read
_ATTEMPTS = """async (ours) => {
  const read = [], body = JSON.stringify({ rows: [{ rooms: 3, let: "fast" }] });
  const tried = async (address, options) => {
    try { read.push(await (await fetch(address, options)).text()); } catch { read.push(""); }
  };
  for (const path of ["/api/digest", "/api/model", "/journal", "/start"]) {
    await tried(ours + path);
    await tried(ours + path, { credentials: "include" });
    await tried(ours + path, { mode: "no-cors" });
  }
  for (const type of ["text/plain", "application/x-www-form-urlencoded", "application/json"]) {
    await tried(ours + "/api/learn", { method: "POST", body, headers: { "Content-Type": type } });
    await tried(ours + "/api/learn", { method: "POST", body, headers: { "Content-Type": type }, mode: "no-cors" });
  }
  const loaded = await Promise.all(["script", "img", "iframe"].map((kind) => new Promise((done) => {
    const element = document.createElement(kind);
    element.onload = () => done(kind), element.onerror = () => done("");
    setTimeout(() => done(""), 2000);
    element.src = ours + (kind === "iframe" ? "/api" : kind === "img" ? "/static/icon.svg" : "/static/page.js");
    document.body.append(element);
  })));
  return { read: read.join(""), loaded };
}"""


@contextmanager
def elsewhere() -> Iterator[str]:
    """Another site, with an empty page; on this machine, since a browser lets no other ask a private address at all."""

    class Empty(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(b"<!DOCTYPE html><title>elsewhere</title>")

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Empty) as site:
        site.daemon_threads = True  # a browser keeps connections open that it may need
        threading.Thread(target=site.serve_forever).start()
        try:
            yield f"http://{OTHER_NAME}:{site.server_port}"
        finally:
            site.shutdown()


@pytest.mark.skipif(not ALL, reason="many attempts in a browser: TALLYBAYES_TESTS=all")
def test_a_page_of_another_site_reads_and_changes_nothing(
    chromium: Any, tmp_path: Path, visit: Callable[..., Visit]
) -> None:
    table = flats(tmp_path)
    with served(tmp_path / "flats.tb.parquet", "--fit", str(table), "--target", "let") as server, elsewhere() as site:
        before = server.api("/api/digest")
        stranger = visit(site)
        stranger.go("/")
        found = stranger.page.evaluate(_ATTEMPTS, server.address)
        assert not any("private" in each or "loopback" in each for each in stranger.troubles)  # it was ours to refuse
        assert found == {"read": "", "loaded": ["", "", "iframe"]}
        framed = stranger.page.frames[1]
        assert not framed.url.startswith("http")  # the browser's own page, which says that ours may not be shown there
        form = f'<form method="post" action="{server.address}/you"><input name="name" value="Eve"><button>x</button>'
        stranger.page.set_content(form)
        with stranger.page.expect_navigation() as gone:
            stranger.page.click("button")
        assert gone.value.status == 403
        stranger.troubles.clear()  # the browser tells of every refusal
        rebound = visit(f"http://{OTHER_NAME}:{server.port}")  # a name that now leads here
        with rebound.refused(421):
            assert rebound.go("/api/digest") == 421
        assert server.api("/api/digest") == before
