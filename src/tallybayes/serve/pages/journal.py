"""Everything that was done, the newest first: each operation can be opened, and undone exactly; rows can be found.

What is searched for stands in the body of a form and in the page that answers it, never in an address or a cookie: it
may be the name of a person.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import islice
from typing import Any

from ...base import canon
from ...base.disk import on_windows, read_whole
from ...base.temporary import folder_for_now
from ..desk import Desk
from ..journal import KeptRow, Operation
from ..problems import ApiProblem
from .frame import Download, GoTo, PageAnswer, PageRequest, View
from .html import Safe, exact, join, natural, table, tag, text
from .rows import card, named, short, standing

_PAGE = 50  # operations, or rows of one, on a page
_MOST_FOUND = 200
_LOOKED_AT = 20  # rows of the journal whose columns are offered
_KINDS = {
    "begin": "began", "open": "opened", "learn": "learnt", "pool": "added to the pool", "label": "labelled",
    "skip": "skipped", "forget": "forgotten", "relabel": "labelled anew", "undo": "undone", "erase": "erased for good",
}  # fmt: skip
_FOR_GOOD = ("begin", "open", "erase")


def show(asked: PageRequest) -> PageAnswer:
    """The list of operations."""
    desk, before = asked.desk, asked.whole("before")
    found = desk.operations(before, _PAGE + 1)
    head = ["operation", "when (UTC)", "what", "rows", "by", "counts before → after", "undo"]
    lines = [_line(asked, each) for each in found[:_PAGE]]
    listed = table(head, lines, caption="Operations, the newest first", left=(0, 1, 2, 4, 5, 6))
    pages = [tag("a", "The newest", href="/journal")] if before is not None else []
    if len(found) > _PAGE:
        pages.append(tag("a", "Older", href=f"/journal?before={found[_PAGE - 1].number}", rel="next", id="older"))
    intro = tag(
        "p", "Each operation is on the disk before it is answered. An undo turns one round exactly, however old."
    )
    return View(
        "/journal", "Journal",
        join(intro, tag("div", listed, id="operations"), tag("p", pages, class_="row") if pages else None,
             _search(asked), _person(), _files(desk)),
    )  # fmt: skip


def _line(asked: PageRequest, operation: Operation) -> list[Any]:
    number = operation.number
    return [
        tag("a", number, href=f"/journal/operation/{number}"), _time(operation.time), _what(operation),
        f"{operation.rows:,}", text(operation.who, 40), _digests(operation), _undo(asked, operation, small=True),
    ]  # fmt: skip


def _what(operation: Operation) -> Safe:
    said = _KINDS.get(operation.kind, operation.kind)
    if operation.undoes is not None:
        return join(
            said, ": ", tag("a", f"operation {operation.undoes}", href=f"/journal/operation/{operation.undoes}")
        )
    return text(said)


def _time(when: str) -> Safe:
    return tag("time", when.partition(".")[0].replace("T", " "), datetime=when)


def _digests(operation: Operation) -> Safe:
    if not operation.digest and not operation.digest_before:
        return tag("span", "unknown since an erasure", class_="soft")
    same = operation.digest == operation.digest_before
    parts = [operation.digest] if same or not operation.digest_before else [operation.digest_before, operation.digest]
    codes = [tag("code", each[:12], title=each) for each in parts]
    return join(codes[0], " → " if len(codes) > 1 else None, codes[1:], " (as before)" if same else None)


def _undo(asked: PageRequest, operation: Operation, *, small: bool = False) -> Safe | str:
    if operation.kind in _FOR_GOOD:
        return ""
    by = operation.undone_by
    if by is not None and asked.desk.journal.operation(by).undone_by is None:
        return tag("span", "undone by ", tag("a", f"operation {by}", href=f"/journal/operation/{by}"), class_="soft")
    hidden = tag("input", type="hidden", name="operation", value=operation.number)
    unseen = tag("span", f" operation {operation.number}", class_="unseen" if small else None)
    button = tag("button", "Undo", unseen, type="submit", class_="small" if small else "plain")
    return asked.frame.form("/journal/undo", hidden, button)


def undo(asked: PageRequest) -> PageAnswer:
    """An operation is turned round."""
    number = asked.whole("operation")
    if number is None:
        raise ApiProblem("data", "no operation is named", "take one of the list.")
    done = asked.desk.undo(number, who=asked.who)
    return GoTo(f"/journal/operation/{done.operation}", f"Operation {number} is undone, by operation {done.operation}.")


# ---- one operation, one row


def operation(asked: PageRequest) -> PageAnswer:
    """One operation: its rows, and what has become of them."""
    desk, number, after = asked.desk, _number(asked), asked.whole("after") or 0
    found = desk.journal.operation(number)
    changes = desk.journal.changes(number, after, _PAGE + 1)
    there = desk.journal.rows_there(row for row, *_ in changes[:_PAGE])
    lines = []
    for row, was, became in changes[:_PAGE]:
        kept = there.get(row)
        link = tag("a", row, href=f"/journal/row/{row}") if kept else row
        now = tag("span", "erased", class_="soft") if kept is None else standing(kept.standing)
        lines.append([link, standing(was), standing(became), now, short(kept) if kept else ""])
    head = ["row", "was", "became", "is now", "it begins"]
    if lines:
        rows: Any = table(head, lines, caption="The rows of this operation", left=(0, 1, 2, 3, 4))
    elif found.kind in ("begin", "open"):
        rows = tag("p", f"The model began with {canon.many(found.rows, 'row')}.")
    else:
        rows = tag("p", "Its rows are nowhere any more." if found.kind == "erase" else "It has changed no rows.")
    more = f"/journal/operation/{number}?after={changes[_PAGE - 1][0]}" if len(changes) > _PAGE else ""
    about = [
        ["what", _what(found)], ["when (UTC)", _time(found.time)], ["by", text(found.who, 200) or "(nobody said)"],
        ["rows", f"{found.rows:,}"], ["digest before", _whole_digest(found.digest_before)],
        ["digest after", _whole_digest(found.digest)],
    ]  # fmt: skip
    return View(
        "/journal", f"Operation {number}",
        join(_facts(about), _undo(asked, found), tag("h2", "Its rows"), rows,
             tag("p", tag("a", "More rows", href=more)) if more else None, _back()),
    )  # fmt: skip


def _whole_digest(digest: str) -> Safe:
    return tag("code", digest, class_="digest") if digest else tag("span", "unknown", class_="soft")


def _facts(lines: list[list[Any]]) -> Safe:
    return tag("dl", [join(tag("dt", name), tag("dd", value)) for name, value in lines], class_="facts")


def row(asked: PageRequest) -> PageAnswer:
    """One row: what it holds, what was done to it, and what can be."""
    desk, kept = asked.desk, asked.desk.row(_number(asked))
    history = desk.journal.operations_on(kept.id, _PAGE)
    links = [tag("p", tag("a", "Ask the model about it", href=f"/ask?row={kept.id}"))]
    if kept.standing == "pool":
        links.append(tag("p", tag("a", "Give it a label", href=f"/label?row={kept.id}")))
    done = table(
        ["operation", "when (UTC)", "what", "by"],
        [[tag("a", o.number, href=f"/journal/operation/{o.number}"), _time(o.time), _what(o), text(o.who, 40)]
         for o in history],
        caption="What was done to this row", left=(0, 1, 2, 3),
    )  # fmt: skip
    was = done if history else tag("p", "It is as it was when the journal began.")
    return View(
        "/journal", f"Row {kept.id}",
        join(tag("p", "Label: " if kept.counted else "", standing(kept.standing)), card(kept, desk.model.schema), links,
             _change(asked, kept), tag("h2", "What was done to it"), was, _back()),
    )  # fmt: skip


def _change(asked: PageRequest, kept: KeptRow) -> Safe | None:
    if not kept.counted:
        return None
    hidden = tag("input", type="hidden", name="row", value=kept.id)
    names = [str(canon.text(c)) for c in sorted(asked.desk.model.classes, key=natural)]
    others = [tag("option", named(name, 60), value=exact(name)) for name in names if name != kept.label]
    select = tag("label", "Label it anew ", tag("select", others, name="label", id="relabel"))
    anew = asked.frame.form("/journal/relabel", hidden, select, tag("button", "Label", type="submit"), class_="row")
    away = tag("button", "Forget this row", type="submit", class_="plain", id="forget")
    return join(anew if others else None, asked.frame.form("/journal/forget", hidden, away))


def relabel(asked: PageRequest) -> PageAnswer:
    """A row is counted under another label."""
    number = asked.whole("row")
    if number is None:
        raise ApiProblem("data", "no row is named", "open a row first.")
    done = asked.desk.relabel(number, asked.one("label"), who=asked.who)
    return GoTo(f"/journal/row/{number}", f"Row {number} has another label now (operation {done.operation}).")


def forget(asked: PageRequest) -> PageAnswer:
    """Rows are taken out of the counts; they stay in the journal and can come back."""
    given = asked.fields.get("row", [])
    if not given:
        raise ApiProblem("data", "no row is ticked", "go back and tick the rows to forget.")
    ids = [int(each) for each in given if each.isascii() and each.isdigit() and len(each) <= 18]
    if len(ids) < len(given):
        raise ApiProblem("data", "the number of a row is no whole number", "go back and load the page anew.")
    done = asked.desk.forget(ids, who=asked.who)
    said = f"{canon.many(len(done.rows), 'row is', 'rows are')} forgotten; an undo of this operation brings them back."
    return GoTo(f"/journal/operation/{done.operation}", said)


# ---- finding rows


def column_and_value(asked: PageRequest, column: str = "", value: str = "") -> Safe:
    """The two fields by which rows are found; names that the journal has are offered."""
    desk = asked.desk
    some = islice(desk.journal.all_rows(), _LOOKED_AT)
    names = dict.fromkeys([*desk.served.read.inputs, *(name for each in some for name in each.values)])
    options = tag("datalist", [tag("option", value=exact(name)) for name in list(names)[:500]], id="columns")
    return join(
        tag("label", "Column ", tag("input", name="column", list="columns", value=exact(column), required=True,
                                    autocomplete="off", id="column")),
        tag("label", "Value ", tag("input", name="value", value=exact(value), required=True, autocomplete="off",
                                   id="value")),
        options,
    )  # fmt: skip


def _search(asked: PageRequest) -> Safe:
    button = tag("button", "Find", type="submit", class_="plain")
    return join(
        tag("h2", "Find rows"), tag("p", "All rows with a value in a column, counted or not."),
        asked.frame.form("/journal/rows", column_and_value(asked), button, class_="row", id="search"),
    )  # fmt: skip


def rows(asked: PageRequest) -> PageAnswer:
    """The rows that were looked for."""
    desk, column, value = asked.desk, asked.one("column"), asked.one("value")
    found = desk.found(column, value, _MOST_FOUND + 1)
    button = tag("button", "Find", type="submit", class_="plain")
    again = asked.frame.form("/journal/rows", column_and_value(asked, column, value), button, class_="row", id="search")
    if not found:
        about = "No row of the journal has this value in this column. Values are compared as they are written."
        return View("/journal", "Rows", join(again, tag("p", about), _back()))
    more = tag("p", f"The first {_MOST_FOUND:,} are shown.", class_="soft") if len(found) > _MOST_FOUND else None
    said = canon.many(min(len(found), _MOST_FOUND), "row")
    return View("/journal", "Rows", join(again, tag("p", f"{said} found."), more, _ticked(asked, found), _back()))


def _ticked(asked: PageRequest, found: list[KeptRow]) -> Safe:
    """Rows with a box each, those that are counted, and a button that forgets the ticked ones."""
    lines = []
    for kept in found[:_MOST_FOUND]:
        box = (
            tag("input", type="checkbox", name="row", value=kept.id, aria_label=f"Row {kept.id}")
            if kept.counted
            else ""
        )
        link = tag("a", kept.id, href=f"/journal/row/{kept.id}")
        lines.append([box, link, standing(kept.standing), short(kept)])
    listed = table([tag("span", "Tick", class_="unseen"), "row", "label", "it begins"], lines,
                   caption="Rows that were found", left=(0, 1, 2, 3))  # fmt: skip
    button = tag("button", "Forget those that are ticked", type="submit", class_="plain", id="forget")
    return asked.frame.form("/journal/forget", listed, button if any(each.counted for each in found) else None)


def _person() -> Safe:
    return join(
        tag("h2", "Delete a person"),
        tag("p", "Every row of a person is taken out of the counts, the model file and the journal, for good. You get "
            "a receipt; it is made once."),
        tag("p", tag("a", "Delete a person …", href="/journal/erase", class_="button plain", id="erase")),
    )  # fmt: skip


def _back() -> Safe:
    return tag("p", tag("a", "Back to the journal", href="/journal"))


def _number(asked: PageRequest) -> int:
    given = asked.path["number"]
    if not given.isascii() or not given.isdigit() or len(given) > 18:
        raise ApiProblem("not-found", f"{given[:60]!r} is no number", "take a link of the journal.")
    return int(given)


# ---- files


def _files(desk: Desk) -> Safe:
    files = [
        ("/journal/model", "The model", "as it is now; tb.load opens it"),
        ("/journal/tally", "The tally", "the counts alone, which add up with others; tb.Tally.load opens it"),
        ("/journal/copy", "The journal", "every row and operation, an SQLite file"),
    ]  # fmt: skip
    listed = [tag("li", tag("a", name, href=address, download=True), f": {says}.") for address, name, says in files]
    about = "For a copy of both, take the model first: the journal then knows its state, and may be newer."
    return join(tag("h2", "Take it with you"), tag("ul", listed, id="files"), tag("p", about, class_="soft"))


def model(asked: PageRequest) -> PageAnswer:
    """The model as it is now."""
    return _download(_name(asked.desk), asked.desk.model.save)


def tally(asked: PageRequest) -> PageAnswer:
    """The counts as they are now."""
    stem = _name(asked.desk).removesuffix(".parquet").removesuffix(".tb")
    return _download(f"{stem}.tally.tb.parquet", asked.desk.served.tally.save)


def copy(asked: PageRequest) -> PageAnswer:
    """The journal as of one moment."""
    return _download(f"{_name(asked.desk)}.journal", asked.desk.journal.copy_to)


def _download(name: str, write: Callable[[str], None]) -> Download:
    """A file that is written now and has no name on the disk by the time it is sent."""
    with folder_for_now() as folder:
        path = os.path.join(folder, "file.tb.parquet")
        write(path)
        if on_windows():  # where a file that is open keeps its name
            return Download(name, read_whole(path))
        return Download(name, file=open(path, "rb"))  # whoever sends it closes it


def _name(desk: Desk) -> str:
    return os.path.basename(desk.path)


PAGES = [
    ("GET", "/journal", show),
    ("GET", "/journal/operation/{number}", operation),
    ("GET", "/journal/row/{number}", row),
    ("POST", "/journal/undo", undo),
    ("POST", "/journal/relabel", relabel),
    ("POST", "/journal/forget", forget),
    ("POST", "/journal/rows", rows),
    ("GET", "/journal/model", model),
    ("GET", "/journal/tally", tally),
    ("GET", "/journal/copy", copy),
]
