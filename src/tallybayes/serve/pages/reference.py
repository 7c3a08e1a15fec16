"""What programs can ask, for people who write them."""

from __future__ import annotations

from ..api import ACTIONS, Action
from .frame import PageAnswer, PageRequest, View
from .html import Safe, join, table, tag


def show(asked: PageRequest) -> PageAnswer:
    """The page of the API."""
    intro = tag(
        "p", "Programs ask this server by JSON. ", tag("a", "/openapi.json", href="/openapi.json"),
        " describes it for tools, ", tag("a", "/health", href="/health"), " and ",
        tag("a", "/metrics", href="/metrics"), " are for what watches the server.",
    )  # fmt: skip
    return View("/api", "API", join(intro, [_action(action) for action in ACTIONS]))


def _action(action: Action) -> Safe:
    fields = [
        [tag("code", name), about.kind, "yes" if about.needed else "", about.says]
        for name, about in action.fields.items()
    ]
    head = tag("h2", tag("code", f"{action.method} {action.path}"), id=action.name)
    listed = table(["field", "kind", "needed", "what it is"], fields, caption=action.path, left=(0, 1, 2, 3))
    return tag("section", head, tag("p", action.says), listed if fields else None)


PAGES = [("GET", "/api", show)]
