"""Who may ask, and how much at once: the wall before everything else, as ASGI middleware.

    Host     only the names that the server goes by: a page elsewhere cannot reach it through a name of its own
    Origin   what changes anything comes from no other page: neither a form nor a script of another site
    token    asked of everybody where one is set, compared in constant time
    body     so many bytes, within so many seconds

Bound to loopback there need be no token; bound to anything else there must be one.
"""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import re
from collections.abc import Awaitable, Callable, Iterable, MutableMapping
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any

from ..base.errors import SettingsError
from .problems import ApiProblem

COOKIE = "tallybayes_token"
_STATIC = ("/favicon.ico", "/static/page.css", "/static/page.js", "/static/icon.svg")
OPEN = ("/health", "/enter", *_STATIC)  # tell nothing of a model
UPLOAD = "/start/upload"  # the one address that takes a file; its body goes to the disk piece by piece
LEAST_TOKEN = 16  # characters
EVERYWHERE = ("0.0.0.0", "::")  # bound to these, a server is asked by any number, and by the names it was given
_LONGEST_COOKIES = 8_192  # bytes; browsers send no more to one place
_SAFE = ("GET", "HEAD", "OPTIONS")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
_HEADERS = [
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"same-origin"),  # with no-referrer, a browser sends our own forms with Origin: null
    (b"cache-control", b"no-store"),
    (b"cross-origin-resource-policy", b"same-origin"),
    (
        b"content-security-policy",
        b"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        b"form-action 'self'; base-uri 'none'; frame-ancestors 'none'",
    ),
]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


@dataclass(frozen=True)
class ServeLimits:
    """What one request may take."""

    body: int = 8_000_000  # bytes
    body_seconds: float = 20.0  # until they are all there
    upload: int = 2_000_000_000  # bytes of a table that is dropped upon the page
    upload_seconds: float = 600.0
    rows: int = 10_000
    fields: int = 2_000  # of a row
    held: int = 64_000_000  # bytes of bodies, of all requests that are being answered
    requests: int = 200  # answered at once
    values: int = 1_000_000  # in a body, or probabilities in an answer
    seconds: float = 60.0  # until the answer


def is_loopback(host: str) -> bool:
    """Whether an address to bind to is reached from this machine alone.

    >>> is_loopback("127.0.0.1"), is_loopback("::1"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    try:
        return bool(ipaddress.ip_address(host))
    except ValueError:
        return False


def check_token(host: str, token: str | None) -> None:
    """Refuse to serve the world without a token, or with one that is soon guessed."""
    if token is None and not is_loopback(host):
        hint = "set one with --token-file, or serve on 127.0.0.1 behind a proxy of yours."
        raise SettingsError(f"{host} can be reached from other machines, and there is no token", hint=hint)
    if token is not None and (len(token) < LEAST_TOKEN or not token.isascii() or not token.isprintable()):
        hint = 'make one: python -c "import secrets; print(secrets.token_urlsafe(32))"'
        raise SettingsError(f"a token of {len(token)} characters", hint=f"{LEAST_TOKEN} or more of ASCII; {hint}")


class Guard:
    """The middleware: lets through what may pass, and answers the rest itself."""

    def __init__(
        self, app: App, *, hosts: Iterable[str] = (), token: str | None = None, limits: ServeLimits | None = None
    ) -> None:
        self.app, self.limits = app, limits or ServeLimits()
        self.hosts = {host.lower() for host in (*_LOOPBACK, *hosts)}
        self._any_address = bool(self.hosts & {*EVERYWHERE})  # no page can make a number its own name
        self._token = None if token is None else token.encode()
        self._held: dict[int, int] = {}  # of each request that is being answered, the bytes of its body

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer a request, or let it through."""
        if scope["type"] == "websocket":  # there is none here, whoever asks
            await send({"type": "websocket.close", "code": 1008})
            return
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        self._held[id(scope)] = 0
        try:
            await self._answer(scope, receive, send)
        finally:
            del self._held[id(scope)]

    async def _answer(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        headers: dict[bytes, list[bytes]] = {}
        for name, value in scope["headers"]:
            headers.setdefault(name.lower(), []).append(value)
        started, clock, seconds = False, asyncio.timeout(None), self.limits.seconds

        async def guarded(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                given = [(name.lower(), value) for name, value in message.get("headers", [])]
                names = {name for name, _ in given}
                message = {**message, "headers": [*given, *(h for h in _HEADERS if h[0] not in names)]}
            await send(message)
            if clock.when() is not None and not clock.expired():  # a long answer may go on as long as it is taken
                clock.reschedule(asyncio.get_running_loop().time() + seconds)

        limits = self.limits
        try:
            self._check(scope, headers)
            if scope["path"] == UPLOAD:
                read, seconds = self._counted(headers, receive), limits.upload_seconds
            else:
                read, seconds = _given(await self._body(headers, receive, id(scope)), receive), limits.seconds
        except ApiProblem as problem:
            if problem.kind == "token" and scope["method"] == "GET" and _is_page(headers):
                await send({"type": "http.response.start", "status": 303, "headers": [(b"location", b"/enter")]})
                await send({"type": "http.response.body", "body": b""})
            else:
                await _send(problem, guarded)
            return
        try:
            async with clock:
                clock.reschedule(asyncio.get_running_loop().time() + seconds)
                await self.app(scope, read, guarded)
        except TimeoutError:
            if started:
                raise
            hint = "ask for fewer rows. What was to be changed may still happen: GET /api/operations tells."
            late = ApiProblem("too-long", f"no answer within {self.limits.seconds:g} seconds", hint)
            await _send(late, guarded)

    def _check(self, scope: MutableMapping[str, Any], headers: dict[bytes, list[bytes]]) -> None:
        if len(self._held) > self.limits.requests:
            raise _busy("requests")
        given = headers.get(b"host", [])
        host = given[0].decode("latin-1").lower() if len(given) == 1 else ""
        name = _name_in(host)
        if name in EVERYWHERE or not (name in self.hosts or (self._any_address and _is_address(name))):
            hint = "take the address that the server printed; --host names one to serve under."
            raise ApiProblem("wrong-host", f"the request is for the host {host[:100]!r}", hint)
        if scope["method"] not in _SAFE:
            self._check_origin(host, headers)
        if self._token is not None and scope["path"] not in OPEN and not self._has_token(headers):
            hint = "send the header Authorization: Bearer TOKEN."
            raise ApiProblem("token", "this server asks for a token", hint, www_authenticate="Bearer")

    def _check_origin(self, host: str, headers: dict[bytes, list[bytes]]) -> None:
        """A browser says which page sends something; programs say nothing, and are no page."""
        site = [v.decode("latin-1") for v in headers.get(b"sec-fetch-site", [])]
        for origin in (v.decode("latin-1").lower() for v in headers.get(b"origin", [])):
            if origin not in (f"http://{host}", f"https://{host}"):
                raise ApiProblem(
                    "foreign-page", f"the request comes from {origin[:100]!r}", "use the server's own page."
                )
        if any(each not in ("same-origin", "none") for each in site):
            raise ApiProblem("foreign-page", "the request comes from another site", "use the server's own page.")

    def _has_token(self, headers: dict[bytes, list[bytes]]) -> bool:
        assert self._token is not None
        found = []
        for value in headers.get(b"authorization", []):
            scheme, _, rest = value.partition(b" ")
            if scheme.lower() == b"bearer":
                found.append(rest.strip())
        for value in headers.get(b"cookie", []):
            if len(value) > _LONGEST_COOKIES:  # to read quoted ones takes time by the square of their length
                continue
            try:
                cookies = SimpleCookie(value.decode("latin-1"))
            except CookieError:
                continue
            if COOKIE in cookies:
                found.append(cookies[COOKIE].value.encode("latin-1", "replace"))
        return any(hmac.compare_digest(each, self._token) for each in found)

    def _counted(self, headers: dict[bytes, list[bytes]], receive: Receive) -> Receive:
        """The pieces of a file as they come, until they are too many."""
        most, size = self.limits.upload, 0
        refused = ApiProblem("too-many-bytes", f"the file has more than {most:,} bytes", "put it into the folder.")
        if _length(headers) > most:
            raise refused

        async def counted() -> Message:
            nonlocal size
            try:
                async with asyncio.timeout(self.limits.body_seconds):
                    message = await receive()
            except TimeoutError:
                found = f"nothing came for {self.limits.body_seconds:g} seconds"
                raise ApiProblem("slow-body", found, "send it again, or put it into the folder.") from None
            size += len(message.get("body", b""))
            if size > most:
                raise refused
            return message

        return counted

    async def _body(self, headers: dict[bytes, list[bytes]], receive: Receive, request: int) -> bytes:
        """All of the body, within its limits and those of all requests together."""
        most = self.limits.body
        refused = ApiProblem("too-many-bytes", f"the body has more than {most:,} bytes", "send fewer rows at once.")
        if _length(headers) > most:
            raise refused
        parts, size, more = [], 0, True
        try:
            async with asyncio.timeout(self.limits.body_seconds):
                while more:
                    message = await receive()
                    if message["type"] != "http.request":
                        raise ApiProblem("slow-body", "the client has gone before all was there")
                    parts.append(message.get("body", b""))
                    size += len(parts[-1])
                    if size > most:
                        raise refused
                    self._held[request] = size
                    if sum(self._held.values()) > self.limits.held:
                        raise _busy("bytes")
                    more = message.get("more_body", False)
        except TimeoutError:
            found = f"the body was not there within {self.limits.body_seconds:g} seconds"
            raise ApiProblem("slow-body", found, "send fewer rows at once.") from None
        return b"".join(parts)


def _busy(what: str) -> ApiProblem:
    return ApiProblem("busy", f"too many {what} of others are being answered", "try again soon.", retry_after="1")


def _given(body: bytes, receive: Receive) -> Receive:
    """A body that is there already, as the application asks for it; after that, what the client does next."""
    asked = False

    async def whole() -> Message:
        nonlocal asked
        if asked:
            return await receive()  # that the client has gone
        asked = True
        return {"type": "http.request", "body": body, "more_body": False}

    return whole


def _length(headers: dict[bytes, list[bytes]]) -> float:
    """How many bytes a body is said to have; what is no number is more than anybody takes."""
    said = headers.get(b"content-length", [b"0"])[0]
    return int(said) if re.fullmatch(rb"[0-9]{1,18}", said) else float("inf")


def _is_page(headers: dict[bytes, list[bytes]]) -> bool:
    """Whether a person is asking, who wants a page, and not a program."""
    return any(b"text/html" in each for each in headers.get(b"accept", []))


async def _send(problem: ApiProblem, send: Send) -> None:
    status, headers, body = problem.answer
    told = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
    told.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": told})
    await send({"type": "http.response.body", "body": body})


def _name_in(host: str) -> str:
    """The name in a Host header, without its port.

    >>> _name_in("localhost:8000"), _name_in("[::1]:8000"), _name_in("example.org")
    ('localhost', '::1', 'example.org')
    """
    found = re.fullmatch(r"(?:\[([0-9a-f:.]+)\]|([^:\[\]]+))(?::[0-9]{1,5})?", host)
    return "" if found is None else found[1] or found[2]
