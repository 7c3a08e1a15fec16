"""The model, to be read: how good it is, column by column, as a nomogram, where it comes from, how it is set."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlencode

import numpy as np

from ...base.canon import many, printable
from ...base.canon import text as canonical
from ...data.kinds import kept
from ...explain.plots.evidence import NomogramDisplay, nomogram
from ...explain.report.facts import model_facts
from ...explain.report.page import nomogram_said, report
from ...model.model import Model
from ..served import Served
from . import figures
from .column import address, known, missing_text, show_picture, weight_text
from .column import show as show_column
from .frame import Download, PageAnswer, PageRequest, View
from .html import Safe, bar, join, natural, table, tag, text
from .parts import drawn, fold, name, page_of, pager, picture, without_pictures

_COLUMNS = 20  # of the list on one page
_PICTURES = 8  # that are seen at once
_CLASSES = 20  # in a table before the rest is folded
_SCALES = 16  # of the nomogram
_MOST_ROWS = 5_000  # of a report: with more it would take minutes
_MOST_POINTS = 2_000  # lines of the nomogram's table


def show(asked: PageRequest) -> PageAnswer:
    """The page."""
    served = asked.desk.served
    body = join(
        _opening(served), without_pictures(), figures.figures(asked), _columns(asked, served), _nomogram(asked, served),
        _origin(served), _settings(served),
    )  # fmt: skip
    return View("/model", "Model", body)


def _opening(served: Served) -> Safe:
    model, counts = served.model, dict(zip(served.tally.classes, served.tally.class_weights().tolist(), strict=True))
    said = join(
        "Which ", tag("strong", name(model.schema.target)), "? ", many(len(model.classes), "class", "classes"), ", ",
        many(len(model.schema.counted), "column"), f", counted from {many(served.tally.rows, 'row')}.",
    )  # fmt: skip
    links = (("#figures", "How good it is"), ("#columns", "Columns"), ("#nomogram", "Nomogram"),
             ("#origin", "Where it comes from"), ("#settings", "Settings"))  # fmt: skip
    lines = []
    for c, p in sorted(model.prior().items(), key=lambda item: (-item[1], natural(item[0]))):
        n = counts.get(str(canonical(c)), 0.0)
        lines.append([name(c), f"{100 * p:.1f} %", bar(p, label=f"{100 * p:.1f} %"), f"{n:,.10g}"])
    head = ["class", "before a row is seen", "as a bar", "rows"]
    listed = table(head, lines[:_CLASSES], caption="classes")
    rest = lines[_CLASSES:]
    more = rest and fold(f"{many(len(rest), 'more class', 'more classes')}", table(head, rest, caption="more classes"))
    button = tag("a", "Download the report", href="/model/report", class_="button plain", id="report", download=True)
    about = (
        "One HTML file, with pictures and the surest mistakes, to keep or to send. Its figures are of rows that were "
        "learnt, which flatters; those below are not."
    )
    return join(
        tag("p", said), tag("nav", [tag("a", says, href=to) for to, says in links], aria_label="On this page"), listed,
        more, tag("p", button, " ", tag("span", about, class_="soft")),
    )  # fmt: skip


# ---- columns


def _columns(asked: PageRequest, served: Served) -> Safe:
    every, find = known(asked, served), asked.one("find").strip()[:200]
    found = [c for c in every if find.casefold() in c["name"].casefold()]
    first, end = page_of(asked, len(found), _COLUMNS)
    shown = found[first:end]
    lines = []
    for c in shown:
        bits = "" if c["bits"] is None else f"{c['bits']:.3f}"
        added = f"{c['corrections']:,}" if c["corrections"] else ""
        link = tag("a", name(c["name"]), href=address(c["number"]))
        row = [link, bits, weight_text(c), added, missing_text(c["missing"]), c["kind"], text(c["family"], 80)]
        lines.append([*row, text(c["reason"], 200)])
    head = ["column", "bits", "weight", "corrections", "missing", "kind", "believed by", "why"]
    listed = table(head, lines, caption="columns", left=(0, 5, 6, 7)) if lines else tag("p", "No column is called so.")
    field = tag("input", type="search", name="find", value=find, maxlength="200")
    search = tag(
        "form", tag("label", "Column whose name contains ", field),
        tag("button", "Find", type="submit", class_="plain"), find and tag("a", "all columns", href="/model#columns"),
        method="get", action="/model#columns", class_="row",
    )  # fmt: skip
    said = (
        "By how much they say about the class alone, in bits. A weight below 1 tells that a column repeats others, or "
        "was too sure; corrections are what held-out rows taught about single values. A column is shown with its "
        "whole table if you follow its name."
    )
    return tag(
        "section", tag("h2", "Columns"), tag("p", said), search if len(every) > _COLUMNS or find else None, listed,
        pager(asked, "/model", len(found), _COLUMNS, keep=("find",), at="#columns"), _gallery(served, shown),
        _pairs(served.model, every), _left_out(served.model), id="columns",
    )  # fmt: skip


def _gallery(served: Served, shown: list[dict[str, Any]]) -> Safe | None:
    pictures = []
    for c in shown:
        says = f"{printable(c['name'], 60)} by class"
        drawing = picture(f"/model/picture/column/{c['number']}", served, says)
        if drawing is not None:
            link = tag("a", drawing, href=address(c["number"]))
            pictures.append(tag("figure", tag("figcaption", name(c["name"], 50), " · ", text(c["family"], 60)), link))
    if not pictures:
        return None
    rest = pictures[_PICTURES:]
    more = rest and fold(f"{many(len(rest), 'more picture')}", tag("div", rest, class_="gallery"))
    return join(tag("div", pictures[:_PICTURES], class_="gallery"), more)


def _pairs(model: Model, every: list[dict[str, Any]]) -> Safe | None:
    """Which columns are also looked at together."""
    two = {c.name for c in model.schema.counted if c.of is not None and len(c.of) == 2}
    lines = [
        [tag("a", name(c["name"]), href=address(c["number"])), f"{c['corrections']:,}", text(c["reason"], 200)]
        for c in every
        if c["name"] in two
    ]
    if not lines:
        return tag("p", "No pair of columns is looked at together.", class_="soft")
    said = "What two columns say together beyond what each says alone; naive Bayes by itself would not know it."
    listed = table(["pair", "corrections", "why"], lines, caption="pairs of columns", left=(0, 2))
    return join(tag("h3", f"{many(len(lines), 'pair')} of columns"), tag("p", said), listed)


def _left_out(model: Model) -> Safe | None:
    lines = [[name(c.name), text(kept(c.reason), 300)] for c in model.schema.columns if c.kind == "ignore"]
    if not lines:
        return None
    listed = table(["column", "why"], lines[:500], caption="columns left out", left=(0, 1))
    return fold(f"{many(len(lines), 'column')} left out", listed)


# ---- the nomogram


def _display(asked: PageRequest, served: Served) -> NomogramDisplay:
    wanted = asked.one("for") or None
    key = ("nomogram", wanted)
    out: NomogramDisplay = asked.api.once.get(served, key, lambda: nomogram(served.model, wanted, None, _SCALES))
    return out


def _nomogram(asked: PageRequest, served: Served) -> Safe | None:
    model = served.model
    if not model.beliefs or len(model.classes) < 2:
        return None
    display = _display(asked, served)
    wanted = urlencode({"for": display.label})
    drawing = picture(f"/model/picture/nomogram?{wanted}", served, f"Nomogram for {printable(display.label, 40)}")
    shown = drawing and tag("figure", drawing, class_="wide scroll", tabindex="0", role="region", aria_label="nomogram")
    names = [str(canonical(c)) for c in model.classes]
    options = [tag("option", text(n, 60), value=n, selected=n == display.label) for n in names]
    choose = tag(
        "form", tag("label", "Points for ", tag("select", options, name="for")),
        tag("button", "Show", type="submit", class_="plain"), method="get", action="/model#nomogram", class_="row",
    )  # fmt: skip
    lines: list[list[Any]] = [["the start", "", _points(display.prior)]]
    for scale in display.scales:
        pairs = zip(scale.values, scale.points.tolist(), strict=True)
        lines += [[name(scale.column), name(value), _points(points)] for value, points in pairs]
    listed = table(["column", "value", "points"], lines[:_MOST_POINTS], caption="points of the nomogram", left=(0, 1))
    return tag(
        "section", tag("h2", "The model as a nomogram"), [tag("p", said) for said in nomogram_said(display)], choose,
        shown if display.scales else None, fold("The points as numbers", listed), id="nomogram",
    )  # fmt: skip


def _points(value: float) -> str:
    return "–" if np.isnan(value) else f"{value:+.3f}" if np.isfinite(value) else ("∞" if value > 0 else "−∞")


def show_nomogram(asked: PageRequest) -> PageAnswer:
    """The picture of the nomogram."""
    return drawn(asked, ("nomogram", asked.one("for")), lambda served: _display(asked, served), "nomogram")


# ---- where it comes from, and how it is set


def _origin(served: Served) -> Safe:
    lines = [[word, text(said, 600)] for word, said in served.model.provenance.lines()]
    raw, free = served.model.parameters()
    lines.append(["numbers", f"{raw:,} parameters, {free:,} of them free"])
    receipts = served.tally.schema.receipts
    lines.append(["forgetting", "every row is known (receipts)" if receipts else "guarded by counts (no receipts)"])
    notes = [[name(k), text(_plain(v), 1_000)] for k, v in served.model.notes.items()]
    noted = notes and join(tag("h3", "Notes"), table(["note", "what it says"], notes, caption="notes", left=(0, 1)))
    journal = tag(
        "p", "What was done here, operation by operation, is in the ", tag("a", "journal", href="/journal"), "."
    )
    return tag(
        "section", tag("h2", "Where it comes from"), table(["", ""], lines, caption="where it comes from", left=(0, 1)),
        journal, noted, id="origin",
    )  # fmt: skip


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def _settings(served: Served) -> Safe:
    model, facts = served.model, model_facts(served.model)
    said = _in_words(model)
    lines = [[name(k), text(v, 400)] for k, v in facts["settings"].items()]
    exact = lines and fold("The settings that differ from the defaults, as a program writes them",
                           table(["setting", "value"], lines, caption="settings", left=(0, 1)))  # fmt: skip
    return tag("section", tag("h2", "Settings"), tag("ul", [tag("li", each) for each in said]), exact, id="settings")


def _in_words(model: Model) -> list[str]:
    """What was chosen after counting, in words."""
    s = model.settings
    out = [_prior_said(model)]
    out.append("Values that were never counted are no evidence." if s.unseen == "no evidence" else
               "Values that were never counted share a probability that is reserved for them.")  # fmt: skip
    if s.predictive:
        out.append("Probabilities are averaged over what the parameters may be, given so few rows.")
    weighed = [c.name for c in model.schema.counted if s.weight_of(c.name) != 1]
    if weighed:
        out.append(f"{many(len(weighed), 'column')} weigh other than 1: see the list of columns.")
    if s.corrections:
        added = sum(int(np.count_nonzero(each.added)) for each in s.corrections.values())
        out.append(
            f"{added:,} corrections of single values in {many(len(s.corrections), 'column')}, fitted to held-out rows."
        )
    if s.offsets:
        out.append(
            f"{many(len(s.offsets), 'class', 'classes')} begin with an offset, since columns that repeat each other "
            "may favour a class."
        )
    if s.isotonic is not None:
        out.append("A rising curve bends the score so that probabilities come true.")
    if s.lead is not None:
        out.append("How far the best class is ahead is bent, since scores were too sure.")
    if s.calibrated is not None:
        out.append(f"How the weights were found: {printable(s.calibrated, 600)}.")
        if s.calibrated.note:
            out.append(f"Noticed then: {printable(s.calibrated.note, 400)}")
    return out


def _prior_said(model: Model) -> str:
    prior = model.settings.prior
    if prior == "counted":
        return "Before a row is seen, classes are as frequent as they were counted."
    if prior == "uniform":
        return "Before a row is seen, all classes are equally likely."
    return f"Before a row is seen, classes are as likely as was said: {printable(prior, 300)}."


# ---- the report


def download(asked: PageRequest) -> PageAnswer:
    """The report of what is served, on the rows of the journal as far as it has any."""
    served, rows = asked.desk.counted_rows()
    target = served.model.schema.target
    some = rows[:: max(-(-len(rows) // _MOST_ROWS), 1)]
    data = [{**row.values, target: row.label} for row in some]
    made = report(served.model, data or None).encode()
    stem = asked.desk.path.replace("\\", "/").rpartition("/")[2].partition(".")[0]
    return Download(f"{stem or 'model'}.html", made, media_type="text/html; charset=utf-8")


PAGES = [
    ("GET", "/model", show), ("GET", "/model/report", download), ("GET", "/model/figures", figures.again),
    ("POST", "/model/judge", figures.judge), ("GET", "/model/column/{number}", show_column),
    ("GET", "/model/picture/column/{number}", show_picture), ("GET", "/model/picture/nomogram", show_nomogram),
    ("GET", "/model/picture/reliability", figures.reliability),
]  # fmt: skip
