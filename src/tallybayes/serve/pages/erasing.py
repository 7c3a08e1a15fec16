"""Delete a person: first what would go, then, once that is confirmed, the receipt, which is made once and kept nowhere.

The value that names the person is sent in the bodies of forms alone. It stands in no address, no cookie, no line of a
log, and not in the receipt.
"""

from __future__ import annotations

import base64
import json
import os
from dataclasses import asdict
from typing import Any

from ...base import canon
from ..desk import Desk
from ..journal import MOST_ID, KeptRow
from ..served import Receipt
from ..tables import TableBeside
from .frame import PageAnswer, PageRequest, View
from .html import Safe, exact, join, table, tag, text
from .journal import column_and_value
from .rows import short, standing

_SHOWN = 5  # rows
_WORDS = {
    "model": "model", "operation": "operation", "time": "time (UTC)", "column": "column", "rows": "rows wiped",
    "counted": "of these, rows that the model had counted until then",
    "unseen": "rows that the model has counted and the journal never held",
    "tables": "rows taken out of uploaded tables", "left": "tables that still hold such rows, yours to clean",
    "digest_before": "digest of the counts before", "digest": "digest of the counts after",
}  # fmt: skip


def ask(asked: PageRequest) -> PageAnswer:
    """Who is to be deleted."""
    about = tag("p", "Name the column that says whose a row is, such as a customer number, and the value of the "
                "person. You will see first how many rows that is.")  # fmt: skip
    button = tag("button", "Look", type="submit")
    form = asked.frame.form("/journal/erase", column_and_value(asked), button, class_="row", id="person")
    return View("/journal", "Delete a person", join(about, form, _back()))


def look(asked: PageRequest) -> PageAnswer:
    """What would be deleted, or, where that was seen and is still so, the receipt of its deletion."""
    desk, column, value = asked.desk, asked.one("column"), asked.one("value")
    found, seen = desk.found(column, value, MOST_ID), asked.whole("seen")
    if seen is not None and asked.one("sure") == "yes" and len(found) == seen and found:
        return View("/journal", "Receipt", _receipt(desk, desk.erase(column, value, who=asked.who)))
    return View("/journal", "Delete a person", _preview(asked, found, changed=seen is not None and len(found) != seen))


def _preview(asked: PageRequest, found: list[KeptRow], *, changed: bool) -> Safe:
    column, value = asked.one("column"), asked.one("value")
    button = tag("button", "Look again", type="submit", class_="plain")
    again = asked.frame.form(
        "/journal/erase", column_and_value(asked, column, value), button, class_="row", id="person"
    )
    if not found:
        about = (
            "No row of the journal has this value in this column: there is nothing to delete. Values are compared as "
        )
        return join(tag("p", about, "they are written."), again, _back())
    counted = sum(kept.counted for kept in found)
    lines = [[kept.id, standing(kept.standing), short(kept)] for kept in found[:_SHOWN]]
    listed = table(["row", "label", "it begins"], lines, caption="Some of the rows that go", left=(0, 1, 2))
    rest = f"and {len(found) - _SHOWN:,} more" if len(found) > _SHOWN else None
    told = tag("p", "The rows have changed since you looked; nothing was deleted.", class_="note warning")
    hidden = {"column": column, "value": value, "seen": len(found)}
    box = tag("input", type="checkbox", name="sure", value="yes", required=True, id="sure")
    form = asked.frame.form(
        "/journal/erase", [tag("input", type="hidden", name=n, value=exact(v)) for n, v in hidden.items()],
        tag("p", tag("label", box, " I know that this is for good.")),
        tag("button", f"Delete {canon.many(len(found), 'row')} for good", type="submit", class_="danger", id="delete"),
    )  # fmt: skip
    beside = _beside(asked.desk.tables_with(column, value))
    return join(
        told if changed else None,
        tag("p", tag("strong", canon.many(len(found), "row")), " with this value in the column ", text(column, 80),
            f", {counted:,} of them counted by the model:"),
        listed, tag("p", rest) if rest else None,
        tag("p", "They will be taken out of the counts, the model file and the journal as if they had never been "
            "there. This cannot be undone, and digests of earlier states are forgotten with them. Copies that you have "
            "made elsewhere are yours to clean.", class_="note warning"),
        beside, form, tag("h2", "Somebody else?"), again, _back(),
    )  # fmt: skip


def _beside(tables: list[TableBeside]) -> Safe:
    """What becomes of the tables in the folder that have the value, too."""
    ours = [f"{each.name} ({canon.many(each.rows or 0, 'row')})" for each in tables if each.ours]
    left = [each.told if each.rows is None else f"{each.name} ({each.rows:,})" for each in tables if not each.ours]
    return join(
        tag("p", "They go out of what was uploaded, too: ", text(", ".join(ours), 2_000), ".", class_="note", id="ours")
        if ours else None,
        tag("p", "Such rows stay in these files of the folder, which were not uploaded here for this model, were "
            "changed since, or are workbooks: ", tag("strong", text(", ".join(left), 2_000)),
            ". Clean or delete them yourself.", class_="note warning", id="left") if left else None,
    )  # fmt: skip


def _receipt(desk: Desk, receipt: Receipt) -> Safe:
    """The receipt, which can be downloaded from the page itself: the server does not keep it."""
    facts: dict[str, Any] = {"model": os.path.basename(desk.path), **asdict(receipt)}
    listed = {name: facts[name] for name in _WORDS}
    lines = "".join(f"{_WORDS[name]}: {_plainly(value)}\n" for name, value in listed.items())
    plain = f"tallybayes: receipt of an erasure\n\n{lines}"
    files = [
        (f"receipt-{receipt.operation}.txt", "text/plain", plain),
        (f"receipt-{receipt.operation}.json", "application/json", json.dumps(listed, indent=2) + "\n"),
    ]  # fmt: skip
    links = [
        tag("a", f"Download {name}", download=name, class_="button plain",
            href=f"data:{kind};charset=utf-8;base64,{base64.b64encode(said.encode()).decode()}")
        for name, kind, said in files
    ]  # fmt: skip
    unseen = None
    if receipt.unseen:
        unseen = tag("p", f"The model was made of {canon.many(receipt.unseen, 'row')} that the journal never held. "
                     "Whose they are, it cannot tell; to take rows out of those, forget them as they were learnt.",
                     class_="note warning")  # fmt: skip
    shown = [join(tag("dt", _WORDS[name]), tag("dd", _fact(name, value))) for name, value in listed.items()]
    return join(
        tag("p", "The rows are gone from the counts, the model file and the journal. This receipt is made once and "
            "kept nowhere: download or print it now. It does not name the person.", class_="note"),
        tag("p", "Files of the folder that still hold such rows: ", tag("strong", text(", ".join(receipt.left), 2_000)),
            ". Clean or delete them yourself.", class_="note warning", id="left") if receipt.left else None,
        tag("dl", shown, class_="facts", id="receipt"), unseen, tag("p", links, class_="row"), _back(),
    )  # fmt: skip


def _fact(name: str, value: Any) -> Safe | str:
    if name.startswith("digest"):
        return tag("code", value, class_="digest")
    return f"{value:,}" if isinstance(value, int) else text(_plainly(value), 2_000)


def _plainly(value: Any) -> Any:
    if isinstance(value, dict):
        return ", ".join(f"{name} ({rows:,})" for name, rows in value.items()) or "none"
    return (", ".join(value) or "none") if isinstance(value, tuple) else value


def _back() -> Safe:
    return tag("p", tag("a", "Back to the journal", href="/journal"))


PAGES = [("GET", "/journal/erase", ask), ("POST", "/journal/erase", look)]
