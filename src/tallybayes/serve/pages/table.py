"""A table before a model is made of it: what each column is taken for and why, to be changed by a click."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any

from ...base.canon import many, printable
from ..fitting import EFFORTS
from ..looking import CHOICES, Glimpse, TableChoices, TableFile, TableLook, TableUnderstood, TakenFor
from ..problems import ApiProblem
from ..tables import MODELS, TABLES
from .frame import Fragment, GoTo, PageAnswer, PageRequest, View, sentence
from .html import Safe, bar, choice, join, natural, on_enter, table, tag

_FEW = 60  # columns that are shown at once, and classes
_NAME = 80  # characters of a name that are shown
_WHY = 400
_LONG = 36  # characters of a value
_ENCODINGS = {"utf-8": "UTF-8, as most are", "cp1252": "Windows-1252", "latin-1": "ISO 8859-1 (Latin-1)",
              "utf-16": "UTF-16", "mac-roman": "Mac Roman"}  # fmt: skip
_DECIMALS = {".": "a point: 3.14", ",": "a comma: 3,14"}
_DATES = {
    "": "as they look", "%d/%m/%Y": "day/month/year: 31/12/2024", "%m/%d/%Y": "month/day/year: 12/31/2024",
    "%d.%m.%Y": "day.month.year: 31.12.2024", "%d-%m-%Y": "day-month-year: 31-12-2024",
    "%m-%d-%Y": "month-day-year: 12-31-2024", "%d/%m/%y": "day/month/year: 31/12/24",
    "%m/%d/%y": "month/day/year: 12/31/24", "%d.%m.%y": "day.month.year: 31.12.24",
    "%d/%m/%Y %H:%M": "day/month/year and time: 31/12/2024 18:00",
    "%m/%d/%Y %H:%M": "month/day/year and time: 12/31/2024 18:00",
    "%d.%m.%Y %H:%M": "day.month.year and time: 31.12.2024 18:00",
}  # fmt: skip
_CELLS = "under “How cells are read”"
_HERE = (  # what the library says of its own options, and what this page has instead
    (r"schema\.with_column\(('.*?'), kind=('\w+')\)(?: \(--set .*?\))?", r"the kind \2 for \1"),
    (r"name it in missing= if it means that", f"if it means that, write it {_CELLS} among those that mean missing"),
    (r"name it in (?:the schema's )?missing=\[…\](?: \(--missing\))?",
     f"write it {_CELLS} among those that mean missing"),
    (r"missing=\[…\](?: \(--missing\))?", "“These mean missing”"),
    (r"fold=True(?: \(--fold\))?", "“Letter case makes no difference”"),
    (r", or stop at the first with strict=True \(--strict\)", ""),
    (r"say how it is written: tb\.read\(path, encoding='latin-1'\), or 'cp1252' for a file from Windows",
     f"choose {_CELLS} how its letters are written: Windows-1252 is usual for a file from Windows"),
    (r"say how it is written: tb\.read\(path, encoding=.*", f"choose {_CELLS} how its letters are written."),
    (r"read it with tb\.read\(path, encoding='utf-16'\)", f"choose UTF-16 {_CELLS}"),
    (r"skip such lines: tb\.read\(path, bad_lines='skip'\)", f"leave such lines out: tick that {_CELLS}"),
    (r" ?Hint: bad_lines='error' says what is wrong with it\.", ""),
    (r"if it is right, allow more: memory_limit='2GB'\. If", "if"),
    (r"(?:if that is meant, )?tb\.read\(path, decimal=','\) "
     r"(?:says so of a file|reads them from a CSV; in a frame turn them into numbers first)",
     f"if that is meant, choose {_CELLS} that decimals have a comma"),
    (r"decimal=','", "“Decimals have a comma”"),
    (r"say which: date_format=\S+ or \S+ \(--date-format\)", f"choose {_CELLS} how dates are written"),
)  # fmt: skip


def show(asked: PageRequest) -> PageAnswer:
    """What was understood of a table; the script asks for a piece of it when something is changed."""
    try:
        look = asked.place.look(asked.one("table"), _file(asked))
    except ApiProblem as problem:
        name = asked.one("table").lower().removesuffix(".gz")
        if problem.kind != "data" or not name.endswith((".csv", ".tsv", ".txt", ".jsonl")):
            raise
        return _unread(asked, problem)
    target, chosen = _target(asked, look), _chosen(asked, look)
    found = look.understood(target, chosen)
    if asked.live:
        return Fragment(join(_summary(look, target, found), _remarks(look, target, found)))
    hidden = tag("input", type="hidden", name="table", value=look.name)
    body = asked.frame.form(
        "/start/look", on_enter("Look again"), hidden, _asking(asked, look, target), _summary(look, target, found),
        _ending(asked, look), _cells(asked), _columns(look, target, chosen.kinds, found),
        data_live="#understood", id="look",
    )  # fmt: skip
    return View("/start", f"The table {printable(look.name, _NAME)}", body)


def _unread(asked: PageRequest, problem: ApiProblem) -> PageAnswer:
    """What is wrong with a file, and what can be said of it so that it can be read."""
    name, hint = asked.one("table"), on_page(problem.hint)
    said = tag("p", tag("strong", sentence(printable(problem.detail, _WHY))))
    note = tag("div", said, tag("p", sentence(hint)) if hint else None, class_="note warning", role="alert")
    place = tag("div", note, id="understood")
    if asked.live:
        return Fragment(place)
    hidden = tag("input", type="hidden", name="table", value=name)
    form = asked.frame.form("/start/look", hidden, place, _cells(asked, unread=True), id="look")
    body = join(form, tag("p", tag("a", "Back to Start", href="/start")))
    return View("/start", f"The table {printable(name, _NAME)}", body, problem.status)


def fit(asked: PageRequest) -> PageAnswer:
    """Begin to make the model."""
    look = asked.place.look(asked.one("table"), _file(asked))
    target, chosen = _target(asked, look), _chosen(asked, look)
    found = look.understood(target, chosen)
    if found.problem is not None:
        raise found.problem
    name = asked.one("name").strip()
    if not name:
        raise ApiProblem("data", "the model has no name", "give it one: letters, digits, dots, dashes.")
    asked.place.begin(look.name, name, target, chosen, asked.one("effort", "usual"), asked.who)
    return GoTo("/start")


def _target(asked: PageRequest, look: TableLook) -> str:
    given = asked.whole("target")
    if given is None:
        return look.proposed[0]
    if given >= len(look.names):
        raise ApiProblem("conflict", "the table has changed since the page was made", "load the page anew.")
    return look.names[given]


def _chosen(asked: PageRequest, look: TableLook) -> TableChoices:
    given = {name: asked.one(f"kind{i}") for i, name in enumerate(look.names)}
    for kind in given.values():
        if kind and kind not in CHOICES:
            raise ApiProblem("data", f"there is no kind {kind[:60]!r}", f"take one of {', '.join(CHOICES)}.")
    kinds = {name: kind for name, kind in given.items() if kind}
    missing = tuple(each.strip() for each in asked.one("missing").split(",") if each.strip())
    dates = asked.one("dates")
    return TableChoices(kinds, missing, bool(asked.one("fold")), dates if dates in _DATES else "", _file(asked))


def _file(asked: PageRequest) -> TableFile:
    """How the file is written, as was chosen; what is no choice of the page is as usual."""
    encoding, decimal = asked.one("encoding"), asked.one("decimal")
    return TableFile(
        encoding if encoding in _ENCODINGS else "utf-8", decimal if decimal in _DECIMALS else ".",
        "skip" if asked.one("skip") else "error",
    )  # fmt: skip


# ---- what is asked


def _asking(asked: PageRequest, look: TableLook, target: str) -> Safe:
    rows = many(look.rows.rows, "row")
    seen = f"{rows}, " if look.whole else f"{rows} from all over it were looked at; it has "
    options = [(str(i), printable(name or "(no name)", _NAME)) for i, name in enumerate(look.names)]
    chosen = choice("target", options, str(look.names.index(target)), id="target")
    proposed, why = look.proposed
    said = f"{printable(proposed or '(no name)', _NAME)} is proposed: {printable(why, _WHY)}."
    return join(
        tag("p", f"{seen}{many(len(look.names), 'column')}."),
        tag("p", tag("label", "What is to be predicted? ", chosen)),
        tag("p", said, class_="soft", id="proposed"),
    )


def _ending(asked: PageRequest, look: TableLook) -> Safe:
    stem = look.name[: -len(next(end for end in TABLES if look.name.lower().endswith(end)))]
    name, number = stem, 1
    while os.path.lexists(os.path.join(asked.place.folder, name + MODELS[0])):
        number += 1
        name = f"{stem} {number}"
    says = {"quick": "quick: the evidence is weighed as a whole", "usual": "usual: columns, corrections and pairs"}
    efforts = choice("effort", [(each, says[each]) for each in EFFORTS], "usual", id="effort")
    field = tag("input", name="name", value=asked.one("name") or name, required=True, maxlength="100", id="name")
    again = tag("button", "Look again", type="submit", class_="plain")
    return tag(
        "div", tag("label", "Name of the model ", field), tag("label", "Effort ", efforts),
        tag("button", "Make the model", type="submit", formaction="/start/fit", id="fit"), tag("noscript", again),
        class_="row",
    )  # fmt: skip


def _cells(asked: PageRequest, *, unread: bool = False) -> Safe:
    """What can be said of how a file is written and its cells are read; open for one that cannot be."""
    file, dates = _file(asked), asked.one("dates")
    dates = dates if dates in _DATES else ""
    missing, folded = asked.one("missing").strip(), bool(asked.one("fold"))
    again = tag("button", "Read it so", type="submit", formaction="/start/look", class_="plain", id="again")
    written = tag(
        "p", tag("label", "Its letters are ", choice("encoding", [*_ENCODINGS.items()], file.encoding, id="encoding")),
        tag("label", "Decimals have ", choice("decimal", [*_DECIMALS.items()], file.decimal, id="decimal")),
        tag("label", tag("input", type="checkbox", name="skip", value="1", checked=file.bad_lines == "skip", id="skip"),
            " Leave out lines that cannot be read"), again, class_="row", data_again="again",
    )  # fmt: skip
    given = tag("input", name="missing", value=missing, id="missing", placeholder="unknown, n.b.")
    fold = tag("input", type="checkbox", name="fold", value="1", checked=folded, id="fold")
    cells = [
        tag("p", tag("label", "These mean missing, too: ", given)),
        tag("p", tag("label", "Dates are written ", choice("dates", [*_DATES.items()], dates, id="dates"))),
        tag("p", tag("label", fold, " Letter case and blanks make no difference")),
    ]  # fmt: skip
    return tag(
        "details", tag("summary", "How cells are read"), written, cells, id="cells",
        open=unread or bool(missing or folded or dates or file != TableFile()),
    )  # fmt: skip


def on_page(said: str) -> str:
    """A remark of the library, which names its own options, as this page has them.

    >>> on_page("Hint: count it with schema.with_column('zip', kind='category') (--set zip=category).")
    "Hint: count it with the kind 'category' for 'zip'."
    """
    for ours, here in _HERE:
        said = re.sub(ours, here, said)
    return said


# ---- what was understood


def _summary(look: TableLook, target: str, found: TableUnderstood) -> Safe:
    if found.problem is not None:
        said = tag("p", tag("strong", sentence(found.problem.detail)))
        inside = tag("div", said, tag("p", sentence(on_page(found.problem.hint))), class_="note warning", role="alert")
        return tag("div", inside, id="understood")
    counted = sum(each.kind != "ignore" for each in found.columns.values())
    pool = (
        f" {many(found.unlabelled, 'row has', 'rows have')} no label and will wait for one." if found.unlabelled else ""
    )
    most = max(n for _, n in found.classes)
    each = sorted(found.classes, key=lambda one: (-one[1], natural(one[0])))
    shares = [[printable(c, _NAME), f"{n:,}", bar(n / most, label=f"{n:,} rows")] for c, n in each]
    columns = many(counted, "column tells", "columns tell")
    classes = many(len(found.classes), "class", "classes")
    alone = "A single class cannot be told from another." if len(found.classes) < 2 else ""
    return tag(
        "div", tag("p", f"{columns} of {classes} of {printable(target, _NAME)}.{pool} {alone}"),
        _folded(["class", "rows", "beside the commonest"], shares, "Classes"),
        [tag("p", sentence(printable(on_page(each), 600)), class_="note") for each in found.told], id="understood",
    )  # fmt: skip


def _columns(look: TableLook, target: str, kinds: Mapping[str, str], found: TableUnderstood) -> Safe:
    rows = []
    for i, name in enumerate(look.names):
        taken = found.columns.get(name)
        first = f"as proposed ({taken.kind})" if taken is not None and name not in kinds else "as proposed"
        options = [("", first), *((kind, kind) for kind in CHOICES)]
        chosen = choice(f"kind{i}", options, kinds.get(name, ""), aria_label=f"Kind of {name}", id=f"kind{i}")
        why = tag("span", _why(name == target, taken), id=f"why{i}", data_remark=True)
        rows.append([printable(name or "(no name)", _NAME), chosen, why, *_glimpsed(look.glimpses[name])])
    part = "" if look.glimpsed == look.rows.rows else f" (in the first {look.glimpsed:,} rows)"
    head = ["column", "kind", "why", f"values{part}", "missing"]
    return tag("section", tag("h2", "What its columns are taken for"), _folded(head, rows, "Columns", (0, 1, 2, 3)))


def _remarks(look: TableLook, target: str, found: TableUnderstood) -> Safe:
    each = [
        tag("p", _why(name == target, found.columns.get(name)), data_into=f"why{i}")
        for i, name in enumerate(look.names)
    ]
    return tag("template", each, data_remarks=True)


def _why(is_target: bool, taken: TakenFor | None) -> Safe:
    if is_target:
        return tag("strong", "what is predicted")
    if taken is None:
        return join()
    wrong = (
        tag("span", f"It cannot be read so: {printable(taken.problem, _WHY)}. ", class_="bad")
        if taken.problem
        else None
    )
    return join(wrong, f"{taken.kind}: {printable(on_page(taken.why), _WHY)}")


def _glimpsed(glimpse: Glimpse) -> tuple[str, str]:
    each = ", ".join(printable(v, _LONG) + ("" if n is None else f" ({n:,})") for v, n in glimpse.values)
    more = f", … {glimpse.different:,} different" if glimpse.different > len(glimpse.values) else ""
    return each + more, f"{glimpse.missing:,}" if glimpse.missing else ""


def _folded(head: list[str], rows: list[list[Any]], caption: str, left: tuple[int, ...] = (0,)) -> Safe:
    first = table(head, rows[:_FEW], caption=caption, left=left)
    if len(rows) <= _FEW:
        return first
    rest = table(head, rows[_FEW:], caption=f"{caption}: the rest", left=left)
    return join(first, tag("details", tag("summary", f"{len(rows) - _FEW:,} more"), rest))


PAGES = [("GET", "/start/look", show), ("POST", "/start/look", show), ("POST", "/start/fit", fit)]
