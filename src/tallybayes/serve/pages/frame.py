"""What all pages share: the frame around them, how they are asked, and what they may answer.

A page is a plain function of a `PageRequest`, run in a thread, that gives a `View`, `Fragment`, `GoTo` or `Download`.
Everything works without the script but for dropping a file; the script only saves clicks and waiting.
"""

from __future__ import annotations

import hmac
import logging
import os
import secrets
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, quote, unquote

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from ..api import Api
from ..desk import Desk
from ..place import Place
from ..problems import ApiProblem
from .html import Safe, join, tag, text

MENU = (
    ("/start", "Start"), ("/ask", "Ask"), ("/model", "Model"), ("/label", "Label"), ("/journal", "Journal"),
    ("/watch", "Watch"), ("/api", "API"),
)  # fmt: skip
_WITHOUT_MODEL = ("/start", "/api")
_NAME, _TOLD = "tallybayes_name", "tallybayes_told"  # cookies: who works here, and what is to be told once
_KEPT = "tallybayes_kept_"  # cookies: whatever else a page wants a browser to remember
_LONGEST_COOKIE = 1_000  # characters
_A_YEAR = 365 * 24 * 3600  # seconds
_PIECE = 1 << 18  # bytes of a file at once
_log = logging.getLogger("tallybayes.serve")


@dataclass(frozen=True)
class View:
    """A whole page; `here` is its address in the menu."""

    here: str
    title: str
    body: Any
    status: int = 200
    keep: Mapping[str, str] = field(default_factory=dict)  # what this browser is to remember, for `PageRequest.kept`


@dataclass(frozen=True)
class Fragment:
    """A piece of a page, which the script puts where the piece before it was."""

    body: Any
    name: str | None = None  # of whoever works here, to be remembered


@dataclass(frozen=True)
class GoTo:
    """What follows a form: another page, and something to be told there once."""

    address: str
    told: str = ""
    name: str | None = None  # of whoever works here, to be remembered
    keep: Mapping[str, str] = field(default_factory=dict)  # what this browser is to remember


@dataclass(frozen=True)
class Download:
    """A file: its bytes; or, on the disk, its path, or an open file that has no name there any more."""

    name: str
    body: bytes | None = None
    path: str = ""
    file: BinaryIO | None = None
    media_type: str = "application/octet-stream"
    inline: bool = False  # shown in a page, as a picture is


PageAnswer = View | Fragment | GoTo | Download
PageFunction = Callable[["PageRequest"], PageAnswer]


@dataclass(frozen=True)
class PageRequest:
    """A request as a page sees it."""

    frame: Frame
    path: Mapping[str, str]  # what the address itself names
    query: Mapping[str, str]
    fields: Mapping[str, list[str]] = field(default_factory=dict)  # of a form
    who: str = ""
    live: bool = False  # whether the script asks, for a piece of a page
    kept: Mapping[str, str] = field(default_factory=dict)  # what this browser was to remember

    @property
    def place(self) -> Place:
        """The folder and what is open."""
        return self.frame.place

    @cached_property
    def api(self) -> Api:
        """What answers for the open model, the same to the end of the request; refused where none is."""
        return self.place.api

    @property
    def desk(self) -> Desk:
        """The desk of the open model, the same to the end of the request."""
        return self.api.desk

    def one(self, name: str, default: str = "") -> str:
        """The one value of a field of a form, or of the address."""
        given = self.fields.get(name)
        return given[0] if given else self.query.get(name, default)

    def whole(self, name: str) -> int | None:
        """A whole number in a field; None where it is not there, refused where it is something else."""
        given = self.one(name).strip()
        if not given:
            return None
        if not given.isascii() or not given.isdigit() or len(given) > 18:
            raise ApiProblem("data", f"{name}: {given[:60]!r} is no whole number", "write digits only.")
        return int(given)


class Frame:
    """The pages of a place."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self.form_token = secrets.token_urlsafe(24)

    def route(self, method: str, path: str, page: PageFunction) -> Route:
        """The address of a page."""

        async def endpoint(request: Request) -> Response:
            try:
                asked = await self._asked(request)
                answer = await run_in_threadpool(page, asked)
                return await run_in_threadpool(self._response, request, answer)
            except Exception as error:
                return self.refusal(request, error)

        return Route(path, endpoint, methods=[method])

    def form(self, address: str, *inside: Any, **attributes: Any) -> Safe:
        """A form that is sent to an address of ours, with the token that shows it is ours."""
        hidden = tag("input", type="hidden", name="form_token", value=self.form_token)
        return tag("form", hidden, *inside, method="post", action=address, **attributes)

    def refusal(self, request: Request, error: Exception) -> Response:
        """The page of a refusal, or the piece of a page."""
        problem = ApiProblem.of(error)
        if problem.kind == "failed":
            _log.error("%s failed", request.url.path, exc_info=error)
        if problem.kind == "no-model" and request.method == "GET" and "x-live" not in request.headers:
            return RedirectResponse("/start", 303)
        body = tag(
            "div", tag("p", tag("strong", sentence(problem.detail))), problem.hint and tag("p", sentence(problem.hint)),
            class_="note warning", role="alert",
        )  # fmt: skip
        if "x-live" in request.headers:
            return HTMLResponse(body, problem.status)
        return self._page(request, View("", "That did not work", body, problem.status))

    async def _asked(self, request: Request) -> PageRequest:
        if request.method == "POST":
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/x-www-form-urlencoded":
                raise ApiProblem("not-a-form", f"the body is said to be {kind[:60] or 'nothing'!r}", "send a form.")
            try:
                raw = (await request.body()).decode("utf-8")
                pairs = parse_qsl(raw, keep_blank_values=True, max_num_fields=2 * self.place.limits.fields)
            except ValueError:
                hint = f"a form has at most {2 * self.place.limits.fields:,} fields."
                raise ApiProblem("not-a-form", "the form cannot be read", hint) from None
            fields: dict[str, list[str]] = {}
            for name, value in pairs:
                fields.setdefault(name, []).append(value.replace("\r\n", "\n"))
            self.check(fields.pop("form_token", [""])[0])
        else:
            fields = {}
        who = unquote(request.cookies.get(_NAME, ""))[:_LONGEST_COOKIE]
        kept = {n.removeprefix(_KEPT): unquote(v) for n, v in request.cookies.items() if n.startswith(_KEPT)}
        return PageRequest(
            self, request.path_params, request.query_params, fields, who, "x-live" in request.headers, kept
        )

    def check(self, token: str) -> None:
        """Refuse a form that does not come from a page of ours."""
        if not hmac.compare_digest(token.encode(), self.form_token.encode()):
            hint = "go back, load the page anew, and send it again: the server may have begun anew since."
            raise ApiProblem("foreign-page", "the form lacks the token of this server's own pages", hint)

    def _response(self, request: Request, answer: PageAnswer) -> Response:
        if isinstance(answer, View):
            return _keeping(self._page(request, answer), answer.keep)
        if isinstance(answer, Fragment):
            piece = HTMLResponse(join(answer.body))
            if answer.name is not None:
                _set_cookie(piece, _NAME, quote(answer.name), _A_YEAR)
            return piece
        if isinstance(answer, GoTo):
            live = "x-live" in request.headers  # the script goes there itself: it would follow and take the page
            out: Response = (
                Response(headers={"x-go-to": answer.address}) if live else RedirectResponse(answer.address, 303)
            )
            if answer.told:
                _set_cookie(out, _TOLD, quote(answer.told[:300]), 60)
            if answer.name is not None:
                _set_cookie(out, _NAME, quote(answer.name), _A_YEAR)
            return _keeping(out, answer.keep)
        how = "inline" if answer.inline else "attachment"
        headers = {"content-disposition": f"{how}; filename*=UTF-8''{quote(answer.name)}"}
        if answer.inline:  # a picture may have styles of its own; it is no page, and runs nothing
            headers["content-security-policy"] = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
        if answer.file is not None:
            headers["content-length"] = str(os.fstat(answer.file.fileno()).st_size)
            return StreamingResponse(_pieces(answer.file), headers=headers, media_type=answer.media_type)
        if answer.body is None:
            return FileResponse(answer.path, headers=headers, media_type=answer.media_type)
        return Response(answer.body, headers=headers, media_type=answer.media_type)

    def _page(self, request: Request, view: View) -> Response:
        told = unquote(request.cookies.get(_TOLD, ""))[:_LONGEST_COOKIE]
        who = unquote(request.cookies.get(_NAME, ""))[:_LONGEST_COOKIE]
        links = [
            tag("a", name, href=address, aria_current="page" if address == view.here else None)
            for address, name in MENU
            if self.place.is_open or address in _WITHOUT_MODEL
        ]
        field = tag("input", name="name", value=who, maxlength="60", autocomplete="name")
        to = tag("input", type="hidden", name="to", value=view.here)
        button = tag("button", "Set", type="submit", class_="small")
        you = self.form("/you", to, tag("label", "You are ", field), button, class_="you")
        top = join(tag("nav", links, aria_label="Pages"), tag("div", self._state(), you, class_="state"))
        out = self.bare(view, top, told)
        if told:
            out.delete_cookie(_TOLD, path="/", httponly=True, samesite="strict")
        return out

    def bare(self, view: View, top: Safe | None = None, told: str = "") -> Response:
        """A page, with whatever is to stand above it; nothing by itself tells of the model."""
        head = tag(
            "head", tag("meta", charset="utf-8"), tag("title", f"{view.title} · tallybayes"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("link", rel="stylesheet", href="/static/page.css"), tag("link", rel="icon", href="/static/icon.svg"),
            tag("script", src="/static/page.js", defer=True),
        )  # fmt: skip
        said = tag("p", told, role="status", id="told", hidden=not told)
        main = tag("main", tag("h1", view.title), said, view.body, id="main", tabindex="-1")
        skip = tag("a", "To the page itself", href="#main", class_="skip")
        body = tag("body", skip, tag("header", top, class_="top") if top else None, main)
        return HTMLResponse(f"<!DOCTYPE html>\n{tag('html', head, body, lang='en')}\n", view.status)

    def _state(self) -> Safe:
        """Which model is open, and in which state."""
        if not self.place.is_open:
            return tag("p", "No model is open.", class_="soft")
        served, path = self.place.desk.served, self.place.desk.path
        name = path.replace("\\", "/").rpartition("/")[2]
        digest = tag("code", served.tally.digest[:12], title=f"digest of the counts: {served.tally.digest}")
        said = f" · {served.tally.rows:,} rows · operation {served.version:,} · "
        return tag("p", tag("strong", text(name, 80)), said, digest, class_="soft", id="state")


def sentence(said: str) -> str:
    """A message as a sentence of a page: it begins large and ends with a dot.

    >>> sentence("no rows")
    'No rows.'
    """
    said = said.strip()
    return said[:1].upper() + said[1:] + ("" if said.endswith((".", "!", "?", ":", "…")) else ".")


def set_name(asked: PageRequest) -> PageAnswer:
    """Whoever works here says who they are: the journal has it with each operation."""
    name, to = asked.one("name").strip()[:60], asked.one("to")
    said = f"The journal will call you {name}." if name else "The journal will not name you."
    if asked.live:  # what is in the fields of the page stays there
        return Fragment(said, name)
    return GoTo(to if to in dict(MENU) else "/", said, name)


def _keeping(answer: Response, keep: Mapping[str, str]) -> Response:
    for name, value in keep.items():
        _set_cookie(answer, _KEPT + name, quote(value)[:_LONGEST_COOKIE], _A_YEAR if value else 0)
    return answer


def _pieces(file: BinaryIO) -> Iterator[bytes]:
    with file:
        while piece := file.read(_PIECE):
            yield piece


def _set_cookie(answer: Response, name: str, value: str, seconds: int) -> None:
    answer.set_cookie(name, value, max_age=seconds, path="/", httponly=True, samesite="strict")
