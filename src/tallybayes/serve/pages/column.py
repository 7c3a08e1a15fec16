"""One column of the model: its picture, its table, what is most telling, and what weighs and corrects it."""

from __future__ import annotations

from typing import Any
from urllib.parse import urlencode

import numpy as np

from ...base.canon import many, printable
from ...base.canon import text as canonical
from ...base.errors import SettingsError
from ...base.show import times
from ...data.schema import Column
from ...explain.plots.columns import column_display
from ...explain.report.facts import column_facts, judged
from ...families import Table
from ...families.pair import TOGETHER_OR_APART
from ...model.model import Model
from ...model.odds import OddsTable, order_of_many, said_of_values, shown_table
from ..problems import ApiProblem
from ..served import Served
from .frame import PageAnswer, PageRequest, View
from .html import Safe, join, table, tag, text
from .parts import drawn, name, page_of, pager, picture, without_pictures

_LINES = 50  # of a table on one page
_MOST_CLASSES = 8  # side by side
_TOP = 10  # telling values of a class
_TOLD = 6  # classes whose telling values are told at once


def known(asked: PageRequest, served: Served) -> list[dict[str, Any]]:
    """What is known of each column, those that say most first, each with its number."""

    def work() -> list[dict[str, Any]]:
        number = {c.name: i for i, c in enumerate(served.model.schema.counted)}
        return [{**c, "number": number[c["name"]]} for c in column_facts(served.model, judged(served.model, None))]

    out: list[dict[str, Any]] = asked.api.once.get(served, "columns", work)
    return out


def address(number: int) -> str:
    """Where a column is shown."""
    return f"/model/column/{number}"


def weight_text(facts: dict[str, Any]) -> str:
    """The weight of a column where it says something."""
    return f"{facts['weight']:.3g}" if facts["weight"] != 1 or facts["corrections"] else ""


def missing_text(share: float | None) -> str:
    """The share of rows without a value."""
    return "" if not share else "< 1 %" if share < 0.01 else f"{100 * share:.0f} %"


def _column(asked: PageRequest, served: Served) -> tuple[int, Column]:
    given, columns = asked.path["number"], served.model.schema.counted
    if not given.isascii() or not given.isdigit() or len(given) > 6 or int(given) >= len(columns):
        hint = f"the page Model lists {many(len(columns), 'column')}; the first has the number 0."
        raise ApiProblem("not-found", f"there is no column number {given[:20]!r}", hint)
    return int(given), columns[int(given)]


def show(asked: PageRequest) -> PageAnswer:
    """The page of one column."""
    served = asked.desk.served
    number, column = _column(asked, served)
    model = served.model
    facts = next(c for c in known(asked, served) if c["number"] == number)
    says = f"{printable(column.name, 60)} by class: what was counted, and what is believed."
    shown = picture(f"/model/picture/column/{number}", served, says)
    body = join(
        _around(number, len(model.schema.counted)),
        tag("h2", "What it is"),
        tag("div", _about(model, column, facts), shown and tag("figure", shown), class_="columns"),
        without_pictures(), _telling(asked, model, column, number), _tables(asked, model, column, number),
    )  # fmt: skip
    return View("/model", f"Column {column.name[:60]}", body)


def show_picture(asked: PageRequest) -> PageAnswer:
    """The picture of one column."""
    number, column = _column(asked, asked.desk.served)
    return drawn(asked, ("column", number), lambda served: column_display(served.model, column.name), column.name)


def _around(number: int, total: int) -> Safe:
    return tag(
        "nav", tag("a", "All columns", href="/model#columns"),
        number > 0 and tag("a", "Column before", href=address(number - 1)),
        number + 1 < total and tag("a", "Next column", href=address(number + 1)),
        aria_label="Columns",
    )  # fmt: skip


def _about(model: Model, column: Column, facts: dict[str, Any]) -> Safe:
    reads = [name(each) for each in column.inputs]
    lines: list[list[Any]] = [
        ["name", name(column.name, 200)],
        ["kind", column.kind],
        ["read from", join(*(join(", " if i else "", each) for i, each in enumerate(reads[:20])))],
        ["why", text(facts["reason"], 400)],
        ["believed by", text(facts["family"], 400)],
        ["says alone", "not known without rows" if facts["bits"] is None else f"{facts['bits']:.3f} bits of the class"],
        ["missing", missing_text(facts["missing"]) or ("not known" if facts["missing"] is None else "never")],
        ["weight", _weight(model, column.name)],
        ["corrections", f"{facts['corrections']:,}" if facts["corrections"] else "none"],
    ]  # fmt: skip
    return table(["", ""], lines, caption="what the column is", left=(0, 1))


def _weight(model: Model, column: str) -> str:
    """What the weight of a column means."""
    by, length = model.settings.weight_of(column), model.settings.lengths.get(column)
    if by == 0:
        own = "its corrections say all there is" if column in model.settings.corrections else "it is not asked"
        return f"0: what was counted does not speak, {own}"
    how = "as it was counted" if by == 1 else f"{by:.3g} times as strongly as it was counted"
    return f"{by:.3g}: it speaks {how}" + (
        "" if not length else f", times its number of words to the power {length:.2f}"
    )


# ---- what is most telling


def _telling(asked: PageRequest, model: Model, column: Column, number: int) -> Safe | None:
    order = np.argsort(-model.log_prior, kind="stable").tolist()
    wanted = asked.one("class")
    names = [str(canonical(c)) for c in model.classes]
    first = [names.index(wanted)] if wanted in names else []
    found = []
    for i in [*first, *(j for j in order if j not in first)][:_TOLD]:
        try:
            found.append(model.odds(column.name, model.classes[i], top=_TOP))
        except SettingsError:  # a family without a table of probabilities
            return None
    cards = [_odds(each) for each in found if any(r.ratio > 1 for r in each)]
    if not cards or len(model.classes) < 2:
        return None
    choose = _choose_class(names, wanted, number) if len(names) > _TOLD else None
    said = "How many times likelier a value is in a class than in all others together."
    return tag(
        "section", tag("h2", "What is most telling"), tag("p", said), choose,
        tag("div", cards, class_="columns"), id="telling",
    )  # fmt: skip


def _odds(found: OddsTable) -> Safe:
    lines = [
        [
            name(r.value, 60),
            times(float(np.log(r.ratio))) if r.ratio > 0 else "0",
            f"{r.inside:.3g}",
            f"{r.outside:.3g}",
        ]
        for r in found
        if r.ratio > 1
    ]
    head = ["value", "times likelier", "here", "elsewhere"]
    says = f"most telling for {printable(found.label, 40)}"
    return tag("div", tag("h3", name(found.label, 60)), table(head, lines, caption=says))


def _choose_class(names: list[str], wanted: str, number: int) -> Safe:
    options = [tag("option", text(n, 60), value=n, selected=n == wanted) for n in names]
    options.insert(0, tag("option", "the most frequent ones", value=""))
    return tag(
        "form", tag("label", "Class to look at ", tag("select", options, name="class")),
        tag("button", "Show", type="submit", class_="plain"), method="get", action=address(number), class_="row",
    )  # fmt: skip


# ---- tables


def _tables(asked: PageRequest, model: Model, column: Column, number: int) -> Safe:
    said, shown = said_of_values(model, column.name), shown_table(model, column.name)
    find = asked.one("find").strip()[:200]
    picked = _classes(model, asked.one("class"))
    out = [tag("h2", "The table", id="table"), _search(asked, shown, find, number)]
    out.append(_table(asked, shown, find, picked, number, _title(model, column, shown)))
    if said is not None:
        means = "Corrected by held-out rows: what a value adds to the score, 0 for the class that it speaks for."
        out.append(tag("h3", "With its corrections"))
        out.append(_table(asked, said, find, picked, number, means))
    if len(model.classes) > len(picked):
        hidden = many(len(model.classes) - len(picked), "class", "classes")
        out.append(
            tag("p", f"{hidden} less frequent or not chosen stand beside these and are not shown.", class_="soft")
        )
    return tag("section", *out)


def _title(model: Model, column: Column, shown: Table) -> str:
    if shown.title.startswith("P("):
        return "P(value given class), as it was counted and smoothed."
    if shown.title == TOGETHER_OR_APART:
        return "How many times likelier the two are together than they would be apart, as it was counted."
    return f"What is believed: {shown.title}."


def _classes(model: Model, wanted: str) -> list[int]:
    """The classes side by side: the one that was chosen, then the most frequent."""
    order: list[int] = np.argsort(-model.log_prior, kind="stable").tolist()
    if len(order) <= _MOST_CLASSES:
        return list(range(len(order)))
    own = [i for i, c in enumerate(model.classes) if str(canonical(c)) == wanted]
    return [*own, *(i for i in order if i not in own)][:_MOST_CLASSES]


def _search(asked: PageRequest, shown: Table, find: str, number: int) -> Safe | None:
    if len(shown.rows) <= _LINES and not find:
        return None
    given = asked.one("class")
    keep = tag("input", type="hidden", name="class", value=given) if given else None
    field = tag("input", type="search", name="find", value=find, maxlength="200")
    return tag(
        "form", keep, tag("label", "Value that contains ", field),
        tag("button", "Find", type="submit", class_="plain"),
        find and tag("a", "all", href=f"{address(number)}?{urlencode({'class': given})}#table"),
        method="get", action=f"{address(number)}#table", class_="row",
    )  # fmt: skip


def _table(asked: PageRequest, of: Table, find: str, picked: list[int], number: int, says: str) -> Safe:
    order = order_of_many(of) if len(of.rows) > _LINES else range(len(of.rows))
    at = [i for i in order if find.casefold() in of.rows[i].casefold()]
    first, end = page_of(asked, len(at), _LINES)
    lines = [[name(of.rows[i], 120), *(_figure(of.values[i, c]) for c in picked)] for i in at[first:end]]
    head = [of.unit or "figure", *(name(of.classes[c], 30) for c in picked)]
    links = pager(asked, address(number), len(at), _LINES, keep=("class", "find"), at="#table")
    none = tag("p", "No value contains that.") if not lines else None
    return join(tag("p", says), table(head, lines, caption=says) if lines else none, links)


def _figure(value: float) -> str:
    return f"{value:.4f}" if 1e-3 <= value <= 1 else f"{value:.4g}"
