"""The door where a server asks for a token: a person gives it once, and a cookie that no script can read keeps it."""

from __future__ import annotations

import hmac
from urllib.parse import parse_qs

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from ..guard import COOKIE
from .frame import Frame, View
from .html import join, tag

_A_YEAR = 365 * 24 * 3600  # seconds


def enter_routes(frame: Frame, token: str | None) -> list[Route]:
    """The page that asks for the token, and what takes it."""

    async def asks(request: Request) -> Response:
        if token is None:
            return RedirectResponse("/", 303)
        return frame.bare(_view())

    async def takes(request: Request) -> Response:
        given = parse_qs((await request.body()).decode("utf-8", "replace"), max_num_fields=10).get("token", [""])[0]
        if token is None or not hmac.compare_digest(given.strip().encode(), token.encode()):
            return frame.bare(_view("That is not the token of this server.", 401))
        out = RedirectResponse("/", 303)
        secure = request.url.scheme == "https"
        out.set_cookie(COOKIE, token, max_age=_A_YEAR, path="/", httponly=True, samesite="strict", secure=secure)
        return out

    return [Route("/enter", asks, methods=["GET"]), Route("/enter", takes, methods=["POST"])]


def _view(wrong: str = "", status: int = 200) -> View:
    field = tag("input", type="password", name="token", autocomplete="current-password", required=True, autofocus=True)
    body = join(
        tag("p", "This server asks for the token that it printed when it began."),
        wrong and tag("p", wrong, class_="note warning", role="alert"),
        tag("form", tag("label", "Token ", field), tag("button", "Enter", type="submit"), method="post",
            action="/enter", class_="row"),
    )  # fmt: skip
    return View("", "Enter", body, status)
