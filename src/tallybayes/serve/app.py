"""The addresses of a served model: the API, its description, its health and its metrics, behind the guard."""

from __future__ import annotations

import contextlib
import json
import logging
import re
import signal
import socket
import threading
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from typing import Any, NoReturn

from .. import __version__
from ..base.errors import MissingExtra, SettingsError
from .api import ACTIONS, Action
from .desk import Desk
from .guard import Guard, ServeLimits, check_token
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

from .pages.routes import page_routes

_log = logging.getLogger("tallybayes.serve")
_MOST_CLIENTS = 200  # connected at once; more are told to come again
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
    requests = RequestMetrics()

    async def metrics(request: Request) -> Response:
        told = await run_in_threadpool(all_metrics, place.desk, place.api.live, requests)
        return PlainTextResponse(told, media_type=_METRICS_TYPE)

    async def health(request: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def openapi(request: Request) -> Response:
        return JSONResponse(described(__version__, token=token is not None))

    own = [("/health", health), ("/metrics", metrics), ("/openapi.json", openapi)]
    routes: list[BaseRoute] = [
        *(Route(a.path, _endpoint(place, a, requests), methods=[a.method]) for a in ACTIONS),
        *(Route(path, endpoint, methods=["GET"]) for path, endpoint in own),
        *(page_routes(place, token) if pages else ()),
    ]
    app = Starlette(
        routes=routes,
        middleware=[Middleware(Guard, hosts=tuple(hosts), token=token, limits=place.limits)],
        exception_handlers={HTTPException: _refused, ApiProblem: _refused, 500: _refused},
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
    uvicorn = load_uvicorn()
    check_token(host, token)
    app = make_app(desk, token=token, **{**more, "hosts": (host, *more.get("hosts", ()))})
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=128)
    except OSError as error:
        hint = "end what listens there, or take another port with --port."
        raise SettingsError(f"cannot listen on {host}, port {port}: {error.strerror or error}", hint=hint) from error
    config = uvicorn.Config(
        app, lifespan="off", access_log=False, log_config=None, server_header=False, proxy_headers=False,
        limit_concurrency=_MOST_CLIENTS, timeout_keep_alive=5, timeout_graceful_shutdown=10,
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


async def _refused(request: Request, error: Exception) -> Response:
    """The answer to a request that ended in an error of Starlette's or of ours."""
    path = request.url.path[:200]
    if isinstance(error, HTTPException) and error.status_code == 404:
        return _response(ApiProblem("not-found", f"there is nothing at {path}", "see /openapi.json."))
    if isinstance(error, HTTPException) and error.status_code == 405:
        allowed = (error.headers or {}).get("Allow", "")
        found = f"{path} does not take {request.method}"
        return _response(ApiProblem("method", found, f"take {allowed or 'another'}.", allow=allowed))
    return _response(ApiProblem.of(error))


def _response(problem: ApiProblem) -> Response:
    status, headers, body = problem.answer
    return Response(body, status, headers)


def _endpoint(place: Place, action: Action, requests: RequestMetrics) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        began, status = time.perf_counter(), 500
        try:
            given = _query(request, action) if action.method == "GET" else await _body(request)
            key = request.headers.get("idempotency-key", "")
            out: Response = JSONResponse(await run_in_threadpool(place.api.answer, action, given, key))
            status = out.status_code
        except Exception as error:
            problem = ApiProblem.of(error)
            if problem.kind == "failed":
                _log.exception("%s failed", action.path)
            out, status = _response(problem), problem.status
        finally:
            requests.count(action.path, status, time.perf_counter() - began)
        return out

    return endpoint


async def _body(request: Request) -> dict[str, Any]:
    """The object that a request holds."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":  # a form of another page could send nothing else without being asked
        hint = "send the header Content-Type: application/json."
        raise ApiProblem("not-a-json-body", f"the body is said to be {kind[:60] or 'nothing'!r}", hint)
    try:
        out = json.loads(await request.body(), parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ApiProblem("not-json", f"the body is not JSON: {str(error)[:200]}", "send one object in UTF-8.") from None
    if not isinstance(out, dict):
        raise ApiProblem(
            "not-json", f"the body is of type {type(out).__name__}, not an object", 'such as {"row": {…}}.'
        )
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
