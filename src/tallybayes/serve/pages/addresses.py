"""The addresses of all pages of a place, and of the style sheet and the script that they share."""

from __future__ import annotations

from importlib import resources

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import BaseRoute, Route

from ...explain.report.html import STYLE
from . import ask, erasing, journal, label, model, reference, start, table, watch
from .entering import enter_routes
from .frame import Frame, GoTo, PageAnswer, PageRequest, set_name

_STATIC = {"page.css": "text/css", "page.js": "text/javascript", "icon.svg": "image/svg+xml"}
_MODULES = (start, table, ask, model, label, journal, erasing, watch, reference)


def page_routes(frame: Frame, token: str | None = None) -> list[BaseRoute]:
    """The addresses of all pages; `token` is what the server asks of everybody, if anything."""
    pages = [("GET", "/", _home), ("POST", "/you", set_name), *(page for each in _MODULES for page in each.PAGES)]
    return [*(frame.route(*page) for page in pages), *enter_routes(frame, token), start.upload_route(frame), *_static()]


def _home(asked: PageRequest) -> PageAnswer:
    return GoTo("/ask" if asked.place.is_open else "/start")


def _static() -> list[Route]:
    folder = resources.files("tallybayes.serve") / "static"
    files = {name: (folder / name).read_text("utf-8") for name in _STATIC}
    files["page.css"] = STYLE + files["page.css"]  # one look for reports and pages

    async def static(request: Request) -> Response:
        name = request.path_params["name"]
        if name not in files:
            return RedirectResponse("/", 303)
        return Response(files[name], media_type=_STATIC[name], headers={"cache-control": "max-age=60"})

    async def icon(request: Request) -> Response:  # which browsers ask for beside what is no page
        return RedirectResponse("/static/icon.svg", 303)

    return [Route("/static/{name}", static, methods=["GET"]), Route("/favicon.ico", icon, methods=["GET"])]
