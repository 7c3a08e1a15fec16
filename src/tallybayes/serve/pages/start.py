"""Where one begins: a table is brought or taken, a model is made of it or opened, and how far that is."""

from __future__ import annotations

import os
from typing import Any
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from ...base.canon import many, printable
from ...data.sources import example
from ..fitting import Fitting
from ..place import ModelFacts
from ..problems import ApiProblem
from ..tables import TABLES, note_upload
from .frame import Fragment, Frame, GoTo, PageAnswer, PageRequest, View, sentence
from .html import Safe, bar, join, table, tag
from .table import on_page
from .uploading import receive

EXAMPLE = "flats.csv"
_EVERY = 700  # milliseconds between two looks at how far a fit is
_MOST = 200  # files that are listed


def show(asked: PageRequest) -> PageAnswer:
    """The page."""
    body = join(_fit(asked), _tables(asked), _models(asked))
    return View("/start", "Start", body)


# ---- a table


def _tables(asked: PageRequest) -> Safe:
    place, frame = asked.place, asked.frame
    picked = tag("input", type="file", id="file", accept=",".join(TABLES))
    drop = frame.form(
        "/start/upload", tag("label", "Drop a table here, or pick one ", picked), tag("div", data_told=True),
        tag("p", "The first line names the columns: ", ", ".join(TABLES), ".", class_="soft"),
        tag("noscript", tag("p", "Without the page's script, put the file into the folder yourself.")),
        data_drop=True, data_most=str(place.limits.upload), class_="drop", id="drop",
    )  # fmt: skip
    names = place.tables()
    listed = [
        [tag("a", printable(name, 120), href=f"/start/look?table={quote(name)}"), _size(place.path_of(name))]
        for name in names[:_MOST]
    ]
    more = tag("p", f"{len(names) - _MOST:,} more are not listed.", class_="soft") if len(names) > _MOST else None
    sample = frame.form("/start/example", tag("button", "Try it with an example: flats to let", class_="plain"))
    there = [tag("h3", "Tables in the folder"), table(["table", "size"], listed, caption="Tables in the folder"), more]
    return tag(
        "section", tag("h2", "Make a model of a table"), drop, there if names else None, sample, id="tables",
    )  # fmt: skip


def _size(path: str) -> str:
    """How large a file is, in words; nothing where it has just gone.

    >>> _size(os.devnull)
    '0 kB'
    """
    try:
        size = os.stat(path).st_size
    except OSError:
        return ""
    return f"{size / 1e6:,.1f} MB" if size >= 1e6 else f"{size / 1e3:,.0f} kB"


def take_example(asked: PageRequest) -> PageAnswer:
    """Copy the built-in table into the folder, unless it lies there, and look at it."""
    there = EXAMPLE in asked.place.tables()
    example(EXAMPLE, asked.place.folder)
    if not there:
        note_upload(asked.place.path_of(EXAMPLE))
    return GoTo(f"/start/look?table={EXAMPLE}")


# ---- a model that is being made


def _fit(asked: PageRequest) -> Safe | None:
    fitting = asked.place.fitting
    if fitting is None:
        return None
    if fitting.running:
        cancel = asked.frame.form("/start/cancel", tag("button", "Cancel", class_="plain", id="cancel"))
        return tag("section", tag("h2", f"Making {fitting.order.name}"), _progress(fitting), cancel, id="fitting")
    return tag("section", _ended(fitting), [tag("p", sentence(on_page(each)), class_="note") for each in fitting.told])


def _progress(fitting: Fitting) -> Safe:
    said = f"{100 * fitting.share:.0f} %: {'cancelling' if fitting.cancelling else fitting.step}"
    rows = f", row {fitting.rows:,}" if fitting.rows else ""
    return tag(
        "div", bar(fitting.share, label=f"{100 * fitting.share:.0f} % done"),
        tag("p", f"{said}{rows} ({fitting.seconds:.0f} s)", id="step"),
        tag("noscript", tag("p", tag("a", "Look again", href="/start"))),
        id="progress", data_poll="/start/progress", data_every=str(_EVERY),
    )  # fmt: skip


def _ended(fitting: Fitting) -> Safe:
    name = fitting.order.name
    if fitting.state == "done":
        return tag("p", f"{name} was made in {fitting.seconds:.0f} s.", class_="note")
    if fitting.problem is None:
        return tag("p", f"{name} was not made: somebody has cancelled it.", class_="note")
    hint = tag("p", sentence(on_page(fitting.problem.hint))) if fitting.problem.hint else None
    found = tag("p", tag("strong", f"{name} could not be made. "), sentence(fitting.problem.detail))
    again = tag("a", "Look at the table again", href=f"/start/look?table={quote(_table_of(fitting))}")
    return tag("div", found, hint, tag("p", again), class_="note warning", role="alert", id="failed")


def _table_of(fitting: Fitting) -> str:
    return fitting.order.table.replace("\\", "/").rpartition("/")[2]


def progress(asked: PageRequest) -> PageAnswer:
    """How far it is; whoever looks is led on when it ends."""
    fitting = asked.place.fitting
    if fitting is not None and fitting.running:
        return Fragment(_progress(fitting))
    if fitting is None or fitting.state != "done" or not asked.place.is_open:
        return GoTo("/start")
    waiting = asked.desk.pool_size()
    pool = f"; {many(waiting, 'row waits', 'rows wait')} for a label" if waiting else ""
    more = f" Start has {many(len(fitting.told), 'remark')} on it." if fitting.told else ""
    return GoTo("/ask", f"{fitting.order.name} is made of {many(asked.desk.served.tally.rows, 'row')}{pool}.{more}")


def cancel(asked: PageRequest) -> PageAnswer:
    """Ask the fit to end."""
    fitting = asked.place.fitting
    if fitting is None or not fitting.running:
        raise ApiProblem("conflict", "no model is being made", "there is nothing to cancel.")
    fitting.cancel()
    return GoTo("/start", f"{fitting.order.name} will not be made.")


# ---- saved models


def _models(asked: PageRequest) -> Safe | None:
    names = asked.place.models()
    if not names:
        return None
    rows = [_line(asked, asked.place.facts(name)) for name in names[:_MOST]]
    head = ["model", "predicts", "rows", "classes", "written (UTC)", "open"]
    more = tag("p", f"{len(names) - _MOST:,} more are not listed.", class_="soft") if len(names) > _MOST else None
    listed = table(head, rows, caption="Saved models", left=(0, 1, 5))
    return tag("section", tag("h2", "Open a saved model"), listed, more, id="models")


def _line(asked: PageRequest, facts: ModelFacts) -> list[Any]:
    rows: Any = "" if facts.rows is None else f"{facts.rows:,}"
    classes: Any = f"{len(facts.classes):,}" if facts.classes else ""
    if asked.place.serves(asked.place.path_of(facts.name)):
        rows, action = f"{asked.desk.served.tally.rows:,}", tag("strong", "open")
    elif facts.problem:
        action = tag("span", sentence(printable(facts.problem, 200)))
    else:
        hidden = tag("input", type="hidden", name="model", value=facts.name)
        named = tag("span", f" {printable(facts.name, 120)}", class_="unseen")
        action = asked.frame.form("/start/open", hidden, tag("button", "Open", named, class_="small"))
    return [
        printable(facts.name, 120),
        printable(facts.target, 60),
        rows,
        classes,
        f"{facts.written:%Y-%m-%d %H:%M}",
        action,
    ]


def open_model(asked: PageRequest) -> PageAnswer:
    """Serve another model of the folder from now on."""
    name = asked.one("model")
    if name not in asked.place.models():
        raise ApiProblem("not-found", f"there is no model {name[:120]!r} here", "take one of the list.")
    asked.place.open_model(name)
    return GoTo("/ask", f"{name} is open.")


PAGES = [
    ("GET", "/start", show), ("GET", "/start/progress", progress), ("POST", "/start/cancel", cancel),
    ("POST", "/start/example", take_example), ("POST", "/start/open", open_model),
]  # fmt: skip


def upload_route(frame: Frame) -> Route:
    """Where a file that is dropped upon the page is sent."""

    async def endpoint(request: Request) -> Response:
        try:
            name = await receive(frame, request)
            return Response(headers={"x-go-to": f"/start/look?table={quote(name)}"})
        except Exception as error:
            return frame.refusal(request, error)

    return Route("/start/upload", endpoint, methods=["POST"])
