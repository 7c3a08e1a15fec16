"""The addresses of a served model: the API, its description, its health and its metrics, behind the guard."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import math
import re
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any, NoReturn

from .. import __version__
from ..base.errors import MissingExtra, SettingsError
from ..base.wording import jsonable
from .api import ACTIONS, Action
from .desk import Desk
from .guard import Guard, Receive, Send, ServeLimits, check_token
from .metrics import RequestMetrics, all_metrics
from .openapi import described
from .place import Place
from .problems import ApiProblem

try:
    from starlette.applications import Starlette
    from starlette.concurrency import run_in_threadpool
    from starlette.exceptions import HTTPException
    from starlette.middleware import Middleware
    from starlette.requests import Request
    from starlette.responses import JSONResponse, PlainTextResponse, Response
    from starlette.routing import BaseRoute, Route
except ImportError as error:
    raise MissingExtra("serving a model needs Starlette", hint="pip install 'tallybayes[serve]'") from error

from .pages.addresses import page_routes
from .pages.frame import Frame

Scope = MutableMapping[str, Any]
_log = logging.getLogger("tallybayes.serve")
_SMALL = 4_000  # bytes of a row that is answered at once
_READERS = 4  # threads
_METRICS_TYPE = "text/plain; version=0.0.4"


def make_app(
    desk: Desk | Place,
    *,
    hosts: Iterable[str] = (),
    token: str | None = None,
    limits: ServeLimits | None = None,
    pages: bool = True,
) -> Starlette:
    """The application that serves a desk, or a place where one may be opened: the API and, unless refused, the pages.

    `hosts` are names besides those of loopback. Whoever binds it to an address asks `guard.check_token` first whether
    that needs a token.
    """
    place = desk if isinstance(desk, Place) else Place.of(desk, limits)
    requests, threads, frame = RequestMetrics(), _Threads(), Frame(place) if pages else None

    async def refused(request: Request, error: Exception) -> Response:
        problem = _problem_of(request, error)
        if frame is not None and "text/html" in request.headers.get("accept", ""):
            return frame.refusal(request, problem)
        status, headers, body = problem.answer
        return Response(body, status, headers)

    async def metrics(request: Request) -> Response:
        told = await run_in_threadpool(all_metrics, place.desk, place.api.live, requests)
        return PlainTextResponse(told, media_type=_METRICS_TYPE)

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def openapi(request: Request) -> Response:
        return JSONResponse(described(__version__, token=token is not None))

    own = [("/health", health), ("/metrics", metrics), ("/openapi.json", openapi)]
    routes: list[BaseRoute] = [
        *(Route(a.path, _Endpoint(place, a, requests, threads), methods=[a.method]) for a in ACTIONS),
        *(Route(path, endpoint, methods=["GET"]) for path, endpoint in own),
        *(page_routes(frame, token) if frame is not None else ()),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=tuple(hosts), token=token, limits=place.limits)],
        exception_handlers={HTTPException: refused, ApiProblem: refused, 500: refused},
    )
    app.state.place = place
    return app


def load_uvicorn() -> Any:
    """The server that `run` needs; refused where it is not installed."""
    try:
        import uvicorn
    except ImportError as error:
        raise MissingExtra("serving a model needs uvicorn", hint="pip install 'tallybayes[serve]'") from error
    return uvicorn


def run(
    desk: Desk | Place,
    *,
    host: str = "127.0.0.1",
    port: int = 8000,
    token: str | None = None,
    ready: Callable[[str], None] = lambda address: None,
    **more: Any,
) -> None:
    """Serve a desk or a place until the process is told to end; `ready` is given the address, `make_app` the rest."""
    load_uvicorn()
    check_token(host, token)
    app = make_app(desk, token=token, **{**more, "hosts": (host, *more.get("hosts", ()))})
    listen(app, host, port, ready)


def listen(app: Starlette, host: str, port: int, ready: Callable[[str], None]) -> None:
    """Serve an application until the process is told to end, with the limits of connections that are ours."""
    uvicorn = load_uvicorn()
    from .connections import Connection

    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        hint = "end what listens there, or take another port with --port."
        raise SettingsError(f"cannot listen on {host}, port {port}: {error.strerror or error}", hint=hint) from error
    config = uvicorn.Config(
        app, http=Connection, ws="none", lifespan="off", access_log=False, log_config=None, server_header=False,
        proxy_headers=False, log_level="error", timeout_keep_alive=5, timeout_graceful_shutdown=10,
    )  # fmt: skip
    server = uvicorn.Server(config)
    with listening, _told_to_end(server):
        # asyncio would do it only for a socket that names its protocol; without, an answer waits 40 ms for its body
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        ready(f"http://{f'[{host}]' if ':' in host else host}:{listening.getsockname()[1]}")
        server.run([listening])


@contextlib.contextmanager
def _told_to_end(server: Any) -> Iterator[None]:
    """Within it, a signal to end also ends a server that has not begun yet.

    What uvicorn passes on once it has ended does nothing more: the desk is closed.
    """

    def heard(number: int, frame: object) -> None:
        server.should_exit = True

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {each: signal.signal(each, heard) for each in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)


def _problem_of(request: Request, error: Exception) -> ApiProblem:
    """Why a request was refused that ended in an error of Starlette's or of ours."""
    path = request.url.path[:200]
    if isinstance(error, HTTPException) and error.status_code == 404:
        return ApiProblem("not-found", f"there is nothing at {path}", "see /openapi.json.")
    if isinstance(error, HTTPException) and error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        found = f"{path} does not take {request.method}"
        return ApiProblem("method", found, f"take {allowed or 'another'}.", allow=allowed)
    return ApiProblem.of(error)


class _Threads:
    """Who answers what takes longer than the event loop may: one thread for all that writes, a few for the rest.

    Those who write would wait for each other anyhow, and none of them takes a thread from those who read. A request
    that was given up before its turn came is never begun.
    """

    def __init__(self) -> None:
        self._writer = ThreadPoolExecutor(1, "tallybayes-writer")
        self._readers = ThreadPoolExecutor(_READERS, "tallybayes-reader")

    async def run(self, writes: bool, ask: Callable[[], bytes]) -> bytes:
        return await asyncio.get_running_loop().run_in_executor(self._writer if writes else self._readers, ask)


class _Endpoint:
    """The address of an action, as an ASGI application: a row is answered in less time than a framework takes."""

    def __init__(self, place: Place, action: Action, requests: RequestMetrics, threads: _Threads) -> None:
        self.place, self.action, self.requests, self.threads = place, action, requests, threads

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, whose body the guard has read."""
        began, status = time.perf_counter(), 504  # as the guard says of what it gives up
        try:
            body = await self._told(scope, receive)
            status, headers = 200, {"content-type": "application/json"}
        except Exception as error:
            problem = ApiProblem.of(error)
            if problem.kind == "failed":
                _log.exception("%s failed", self.action.path)
            status, headers, body = problem.answer
        finally:
            self.requests.count(self.action.path, status, time.perf_counter() - began)
        told = [(name.encode(), value.encode("latin-1")) for name, value in headers.items()]
        told.append((b"content-length", b"%d" % len(body)))
        await send({"type": "http.response.start", "status": status, "headers": told})
        await send({"type": "http.response.body", "body": body})

    async def _told(self, scope: Scope, receive: Receive) -> bytes:
        api, action, headers = self.place.api, self.action, dict(scope["headers"])
        key = headers.get(b"idempotency-key", b"").decode("latin-1")
        if action.method == "GET":
            asked = _query(Request(scope), action)
            return await self.threads.run(action.writes, lambda: _encoded(api.answer(action, asked, key)))
        kind = headers.get(b"content-type", b"").partition(b";")[0].strip().lower()
        if kind != b"application/json":  # a form of another page could send nothing else without being asked
            found = f"the body is said to be {kind[:60].decode('latin-1') or 'nothing'!r}"
            raise ApiProblem("not-a-json-body", found, "send the header Content-Type: application/json.")
        raw: bytes = (await receive())["body"]
        if action.most is not None and len(raw) > action.most:
            found = f"{len(raw):,} bytes; {action.path} takes {action.most:,}"
            raise ApiProblem("too-many-bytes", found, "send a shorter row.")
        if len(raw) <= _SMALL and action.name == "predict":
            answer = api.at_once(action, _parsed(raw, api.limits))
            if answer is not None:
                return _encoded(answer)
        return await self.threads.run(
            action.writes, lambda: _encoded(api.answer(action, _parsed(raw, api.limits), key))
        )  # fmt: skip


def _parsed(raw: bytes, limits: ServeLimits) -> dict[str, Any]:
    """The object in a body. What it would take in memory is known by its signs before it is made."""
    if len(raw) > limits.values and (found := sum(map(raw.count, (b",", b"[", b"{")))) > limits.values:
        raise ApiProblem("too-many-values", f"some {found:,} values at once", "send fewer rows at once.")
    try:
        out = _DECODER.decode(raw.decode("utf-8"))
    except (ValueError, RecursionError) as error:
        raise ApiProblem("not-json", f"the body is not JSON: {str(error)[:200]}", "send one object in UTF-8.") from None
    if not isinstance(out, dict):
        raise ApiProblem(
            "not-json", f"the body is of type {type(out).__name__}, not an object", 'such as {"row": {…}}.'
        )
    return out


def _encoded(answer: dict[str, Any]) -> bytes:
    try:
        return _ENCODER.encode(answer).encode("ascii")
    except ValueError:  # a NaN
        return _ENCODER.encode(jsonable(answer)).encode("ascii")


def _finite(text: str) -> float:
    out = float(text)
    if out in (math.inf, -math.inf):
        raise ValueError(f"{text[:20]} is beyond the largest number")
    return out


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"the name {twice[:60]!r} stands twice in one object")
    return out


def _no_number(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON; null means that a value is missing")


def _query(request: Request, action: Action) -> Mapping[str, Any]:
    """The fields in an address: whole numbers, and texts where the action has them."""
    out: dict[str, Any] = {}
    for name, text in request.query_params.multi_items():
        is_text = name in action.fields and action.fields[name].kind == "text"
        if name in out or not (is_text or re.fullmatch(r"[0-9]{1,18}", text)):
            what = "a text" if is_text else "a whole number"
            raise ApiProblem("not-json", f"{name[:60]}={text[:60]!r} in the address", f"give {what}, once.")
        out[name] = text if is_text else int(text)
    return out


_DECODER = json.JSONDecoder(parse_constant=_no_number, parse_float=_finite, object_pairs_hook=_object)
_ENCODER = json.JSONEncoder(allow_nan=False, separators=(",", ":"))
