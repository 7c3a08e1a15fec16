"""Rows without a label, one after another, the most useful next: a key or a click gives the label.

A form carries the row, the operation at which it was shown, and which journal both belong to: a row that another has
labelled meanwhile is told of in a line, and the next row comes. A browser remembers which operations were its own, so
that `u` takes back the last label of whoever presses it, and nobody else's.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import secrets
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from ...base import canon
from ...base.errors import TallybayesError, did_you_mean
from ..desk import Desk
from ..journal import POOL, KeptRow
from ..problems import ApiProblem
from ..suggest import LabellingProgress, Suggested
from .frame import GoTo, PageAnswer, PageRequest, View, sentence
from .html import Safe, bar, exact, join, natural, table, tag, text
from .rows import Speech, card, named, spoken

_KEYS = 9
_REMEMBERED = 20  # operations that can be taken back by a key
_LONGEST_MARKED = 10_000  # characters of a row: in longer ones no words are marked, or the next row would be waited for
_BY_CHANCE, _CLASS = "random", "="  # what rows to show; a class follows the last
_WHY = {
    "telling": "Shown because its label would tell the model most.",
    "likely": "Shown because it is likely of the class that is looked for.",
    "random": "Drawn at random: from such rows follows how many are left.",
}


def show(asked: PageRequest) -> PageAnswer:
    """The next row, or the one that the address names."""
    desk, find = asked.desk, asked.one("find")
    label = find[1:] if find.startswith(_CLASS) else None
    if label is not None and label not in {str(canon.text(c)) for c in desk.model.classes}:
        return GoTo("/label", f"There is no class {canon.printable(label, 60)} to look for.")
    who = asked.kept.get("browser") or secrets.token_urlsafe(9)
    keep = {} if "browser" in asked.kept else {"browser": who}
    number = asked.whole("row")
    if number is not None:
        if desk.row(number).standing != POOL:
            return GoTo(_next(find), f"Row {number} does not wait for a label. Here is the next.")
        found = [_named(desk, number)]
    else:
        found = asked.api.suggester.next(1, who=who, find=label, random=find == _BY_CHANCE)
    come = asked.api.suggester.progress(label)
    body = _page(asked, found[0], come, find) if found else _empty(asked, come)
    return View("/label", "Label", body, keep=keep)


def _named(desk: Desk, number: int) -> Suggested:
    row, served = desk.row(number), desk.served
    p = served.model.predict_proba([_inputs(desk, row)])[0].tolist()
    return Suggested(row, "", dict(zip(served.model.classes, p, strict=True)))


def _inputs(desk: Desk, row: KeptRow) -> dict[str, Any]:
    return {name: row.values.get(name) for name in desk.served.read.inputs}


# ---- the page


def _page(asked: PageRequest, suggested: Suggested, come: LabellingProgress, find: str) -> Safe:
    desk, row, p = asked.desk, suggested.row, suggested.probabilities
    hidden = asked.kept.get("hide") == "1"
    speech = None
    if not hidden and len(p) > 1 and sum(len(v) for v in row.values.values() if isinstance(v, str)) <= _LONGEST_MARKED:
        model = desk.model
        speech = Speech.of(model.schema, model.explain([_inputs(desk, row)]), row.values)
    shown = come.counted if hidden else p  # the model's guess must not choose the keys where it is not to be seen
    main = tag(
        "section", card(row, desk.model.schema, speech), _legend(speech, hidden), _buttons(asked, row, shown, find),
        tag("p", f"Row {row.id}. ", "" if hidden else _WHY.get(suggested.why, ""), class_="soft"), aria_label="The row",
    )  # fmt: skip
    beside = tag("section", _thinks(asked, p, hidden, find), spoken(row, speech) if speech else None, _far(come, find))
    return join(
        tag("div", main, beside, class_="columns aside"),
        _looking(asked, come, find),
        _counts(asked.desk, come),
        _adding(asked),
    )


def _legend(speech: Speech | None, hidden: bool) -> Safe | None:
    if hidden:
        return None
    if speech is None:
        return tag("p", "Its words are not marked: it is very long, or there is but one class.", class_="soft")
    marks = any(speech.words.values())
    speaks = [tag("mark" if marks else "span", f"speaks {how}", class_=f"{how} w2") for how in ("for", "against")]
    more = "; the stronger the mark, the more." if marks else ", in log-odds."
    label, other = named(speech.label), named(speech.against)
    return tag("p", speaks[0], " ", label, ", ", speaks[1], " it, beside ", other, more, class_="soft")


def _buttons(asked: PageRequest, row: KeptRow, order: Mapping[Any, float], find: str) -> Safe:
    """The classes with their keys: in their own order where all of them have one, else the likeliest first."""
    names = [str(canon.text(c)) for c in sorted(order, key=natural)]
    if len(names) > _KEYS:
        names = sorted(names, key={str(canon.text(c)): p for c, p in order.items()}.__getitem__, reverse=True)
    classes = [
        tag("button", tag("kbd", i + 1), " ", named(name, 60), type="submit", name="label",
            value=exact(name), data_key=str(i + 1), id=f"class-{i + 1}")
        for i, name in enumerate(names[:_KEYS])
    ]  # fmt: skip
    skip = tag("button", tag("kbd", "s"), " Skip", type="submit", name="skip", value="1", data_key="s", id="skip",
               class_="plain")  # fmt: skip
    hidden = _hidden(asked, row, find)
    more = "Another class" if len(names) > _KEYS else "A class that is not among them"
    field = tag("input", name="label", list="classes", autocomplete="off", maxlength="200", required=True, id="other",
                data_key="/")  # fmt: skip
    options = tag("datalist", [tag("option", value=exact(name)) for name in sorted(names, key=natural)], id="classes")
    give = tag("button", "Give it", type="submit", class_="plain")
    return join(
        asked.frame.form("/label", hidden, classes, skip, class_="row", id="label", aria_label="Give this row a label"),
        asked.frame.form("/label", hidden, tag("label", more, " ", tag("kbd", "/"), " ", field), options, give,
                         class_="row", id="label-other"),
        _undo(asked, find),
    )  # fmt: skip


def _undo(asked: PageRequest, find: str) -> Safe | None:
    own = _own(asked)
    if not own:
        return None
    button = tag("button", tag("kbd", "u"), f" Take back my last one (operation {own[0]:,})", type="submit",
                 class_="plain", data_key="u", id="undo")  # fmt: skip
    return asked.frame.form("/label/undo", tag("input", type="hidden", name="find", value=exact(find)), button)


def _hidden(asked: PageRequest, row: KeptRow, find: str) -> list[Safe]:
    given = {"row": row.id, "operation": asked.desk.version, "journal": _journal(asked.desk), "find": find}
    return [tag("input", type="hidden", name=name, value=exact(value)) for name, value in given.items()]


def _thinks(asked: PageRequest, p: Mapping[Any, float], hidden: bool, find: str) -> Safe:
    to = tag("input", type="hidden", name="find", value=exact(find))
    wish = tag("input", type="hidden", name="hide", value="" if hidden else "1")
    says = "Show what the model thinks" if hidden else "Hide what the model thinks"
    button = tag("button", says, type="submit", class_="small", id="hide")
    form = asked.frame.form("/label/hide", to, wish, button)
    if hidden:
        about = tag("p", "What the model thinks is hidden, so that it sways nobody.", class_="soft")
        return tag("div", tag("h2", "The model"), about, form)
    listed = sorted(p.items(), key=lambda each: -each[1])
    lines = [[named(c), bar(v, label=f"{v:.1%}"), _percent(v)] for c, v in listed[:_KEYS]]
    rest = listed[_KEYS:]
    if rest:
        share = sum(v for _, v in rest)
        lines.append([f"{len(rest):,} others", bar(share, label=f"{share:.1%}"), _percent(share)])
    shown = table(["class", "share", "probability"], lines, caption="What the model thinks of this row")
    return tag("div", tag("h2", "What the model thinks"), tag("div", shown, class_="bars", id="thinks"), form)


def _percent(share: float) -> str:
    return "< 0.1 %" if 0 < share < 0.0005 else "> 99.9 %" if 0.9995 <= share < 1 else f"{100 * share:.1f} %"


def _far(come: LabellingProgress, find: str) -> Safe:
    """How many are left, with an interval, and whether one may stop."""
    left = come.left
    name = tag("strong", named(left.label))
    about = f"About {canon.many(round(left.estimate), 'row')} of "
    sure = f" likely wait ({left.confidence:.0%} sure: {left.low:,} to {left.high:,}). "
    other = "" if find.startswith(_CLASS) else "It is the rarest class so far; look for another below. "
    return tag(
        "div", tag("h2", "How many are left"), tag("p", about, name, sure, other) if left.audited else None,
        tag("p", sentence(come.why)),
        None if come.ready else tag("p", "The pool is still being read; rows come by chance so far.", class_="soft"),
        id="left",
    )  # fmt: skip


def _looking(asked: PageRequest, come: LabellingProgress, find: str) -> Safe:
    """Which rows are to come next."""
    choices = [("", "that tell the model most"), (_BY_CHANCE, "drawn at random")]
    names = [str(canon.text(c)) for c in sorted(come.counted, key=natural)]
    choices += [(_CLASS + name, "likely " + canon.printable(name, 60)) for name in names]
    options = [tag("option", says, value=exact(value), selected=value == find) for value, says in choices]
    select = tag("select", options, name="find", id="find")
    button = tag("button", "Show those", type="submit", class_="plain")
    return tag("form", tag("label", "Next come rows ", select), button, method="get", action="/label", class_="row")


def _counts(desk: Desk, come: LabellingProgress) -> Safe:
    lines = [
        [named(c, 60), f"{n:,}", f"{come.counted[c]:,.0f}"]
        for c, n in sorted(come.labelled.items(), key=lambda each: (-each[1], natural(each[0])))
    ]
    shown = table(["class", "labelled here", "counted in all"], lines, caption="Labels so far, by class")
    done = sum(come.labelled.values())
    said = f"{done:,} of {done + come.waiting:,} rows of the pool have a label; {_today(desk):,} given today"
    return tag("details", tag("summary", said), shown, open=len(lines) <= _KEYS and done > 0, id="counts")


def _today(desk: Desk) -> int:
    return desk.journal.labels_since(dt.datetime.now(dt.UTC).strftime("%Y-%m-%dT00:00:00.000Z"))


# ---- more rows


def _empty(asked: PageRequest, come: LabellingProgress) -> Safe:
    done = sum(come.labelled.values())
    said = f"All {done:,} rows of the pool have a label. " if done else ""
    about = tag("p", said, "Nothing waits for a label now. Add rows, and the most useful of them comes first.")
    return join(about, _undo(asked, ""), _adding(asked, True), _counts(asked.desk, come) if done else None)


def _adding(asked: PageRequest, only: bool = False) -> Safe:
    """Forms by which rows come into the pool: a table of the folder, or lines of text."""
    schema, frame = asked.desk.model.schema, asked.frame
    tables = asked.place.tables()
    parts: list[Any] = []
    if tables:
        select = tag("select", [tag("option", name, value=exact(name)) for name in tables], name="table")
        about = tag("p", "Labels that the table may have are not looked at: you give them.", class_="soft")
        button = tag("button", "Add its rows", type="submit", class_="plain")
        parts.append(frame.form("/label/add", tag("label", "A table of the folder ", select), button, about))
    texts = list(dict.fromkeys(n for c in schema.counted if c.text is not None for n in c.inputs))
    if texts:
        chosen = tag("select", [tag("option", text(n, 60), value=exact(n)) for n in texts], name="column")
        column = tag("label", "Column ", chosen) if len(texts) > 1 else tag("input", type="hidden", name="column",
                                                                           value=exact(texts[0]))  # fmt: skip
        lines = tag(
            "label", "Texts, one on each line", tag("textarea", name="lines", required=True, maxlength="1000000")
        )
        parts.append(frame.form("/label/add", lines, column, tag("button", "Add them", type="submit", class_="plain")))
    if not parts:
        parts.append(tag("p", "Put a table with the columns of the model into the folder, and load this page anew."))
    return tag("details", tag("summary", "Add rows to the pool"), parts, open=only, id="add")


def add(asked: PageRequest) -> PageAnswer:
    """Rows come into the pool."""
    desk = asked.desk
    if "lines" in asked.fields:
        lines = [line for line in asked.one("lines").split("\n") if line.strip()]
        if len(lines) > asked.place.limits.rows:
            found = f"{len(lines):,} lines; this page takes {asked.place.limits.rows:,} at once"
            raise ApiProblem("too-many-rows", found, "put them into a file of the folder.")
        done = desk.add_to_pool([{asked.one("column"): line} for line in lines], who=asked.who)
    else:
        name = asked.one("table")
        if name not in asked.place.tables():
            raise ApiProblem("not-found", f"there is no table {canon.printable(name)!r} here", "take one of the list.")
        done = desk.add_to_pool(asked.place.path_of(name), who=asked.who)
    return GoTo("/label", f"{canon.many(len(done.rows), 'row')} came into the pool (operation {done.operation:,}).")


# ---- what is done to a row


def give(asked: PageRequest) -> PageAnswer:
    """The row that was shown gets a label, or is skipped; then the next."""
    desk, row, find = asked.desk, asked.whole("row"), asked.one("find")
    if asked.one("journal") != _journal(desk) or row is None:
        return GoTo("/label", "Another model has been opened meanwhile; nothing was labelled.")
    told = _meanwhile(desk, row, asked.whole("operation") or 0)
    if told:
        return GoTo(_next(find), told)
    label, skipped = asked.one("label"), bool(asked.one("skip"))
    label = label if label in desk.served.tally.classes else label.strip()
    try:
        if skipped:
            done = desk.skip(row, who=asked.who)
        else:
            known = desk.served.read.label_text(label) in desk.served.tally.classes
            if not known and asked.one("new") != "allow":
                return View("/label", "A new class?", _asks(asked, row, label, find))
            done = desk.label(row, label, who=asked.who, new_classes="refuse" if known else "allow")
    except TallybayesError:
        told = _meanwhile(desk, row, desk.version)  # between the look and the deed
        if not told:
            raise
        return GoTo(_next(find), told)
    says = f"Row {row} is skipped" if skipped else f"Row {row} is {canon.printable(label, 60)}"
    today = _today(desk)
    says += f". {canon.many(today, 'label')} today." if today and not skipped else "."
    return GoTo(_next(find), says, keep=_remember(asked, [done.operation, *_own(asked)]))


def _meanwhile(desk: Desk, row: int, shown: int) -> str:
    """What has become of a row since it was shown; "" while it waits for a label."""
    there = desk.journal.rows_there([row])
    if row not in there:
        return f"Row {row} was erased meanwhile. Here is the next."
    kept = there[row]
    last = next(iter(desk.journal.operations_on(row, 1)), None)
    by = f" by {canon.printable(last.who, 40)}" if last is not None and last.who else ""
    at = f" (operation {last.number:,})" if last is not None else ""
    if kept.standing != POOL:
        how = (
            f"has had the label {canon.printable(kept.label, 60)}" if kept.counted else "has been taken out of the pool"
        )
        return f"Row {row} {how} meanwhile{by}{at}. Here is the next."
    if last is not None and last.number > shown:
        return f"Row {row} was changed meanwhile{by}{at}, and waits again; nothing was labelled."
    return ""


def _asks(asked: PageRequest, row: int, label: str, find: str) -> Safe:
    """Whether a label that no row has had is meant."""
    classes = asked.desk.served.tally.classes
    near = did_you_mean(label, classes)
    hidden = _hidden(asked, asked.desk.row(row), find)
    hidden += [tag("input", type="hidden", name=n, value=exact(v)) for n, v in (("label", label), ("new", "allow"))]
    name = text(label, 200)
    return join(
        tag("p", "No row has had the label ", tag("strong", name), " yet; the model knows ",
            canon.many(len(classes), "class", "classes"), ". ", sentence(near) if near else None),
        asked.frame.form("/label", hidden, tag("button", "Yes, ", name, " is a class", type="submit", id="new")),
        tag("p", tag("a", "No, back to the row", href=_next(find, row), id="back")),
    )  # fmt: skip


def undo(asked: PageRequest) -> PageAnswer:
    """The last label or skip of this browser is taken back, and its row shown again."""
    desk, own, find = asked.desk, _own(asked), asked.one("find")
    if not own:
        return GoTo(_next(find), "There is nothing of yours to take back.")
    operation, keep = own[0], _remember(asked, own[1:])
    try:
        done = desk.undo(operation, who=asked.who)
    except TallybayesError as error:
        return GoTo(_next(find), sentence(error.found), keep=keep)
    return GoTo(_next(find, done.rows[0]), f"Operation {operation:,} is taken back: here is its row.", keep=keep)


def hide(asked: PageRequest) -> PageAnswer:
    """What the model thinks is hidden from now on, or shown."""
    return GoTo(_next(asked.one("find")), keep={"hide": "1" if asked.one("hide") else ""})


def _next(find: str, row: int | None = None) -> str:
    query = ([f"find={quote(find)}"] if find else []) + ([f"row={row}"] if row is not None else [])
    return "/label" + ("?" + "&".join(query) if query else "")


def _journal(desk: Desk) -> str:
    """Which journal this is: rows and operations of another have the same numbers."""
    first = desk.operations(2, 1)
    said = f"{desk.path}\n{first[0].time if first else ''}"
    return hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=6).hexdigest()


def _own(asked: PageRequest) -> list[int]:
    """The last labels and skips of this browser, the newest first."""
    journal, _, numbers = asked.kept.get("done", "").partition(".")
    if journal != _journal(asked.desk):
        return []
    return [int(n) for n in numbers.split(".") if n.isascii() and n.isdigit() and len(n) < 18][:_REMEMBERED]


def _remember(asked: PageRequest, numbers: list[int]) -> dict[str, str]:
    kept = ".".join(str(n) for n in numbers[:_REMEMBERED])
    return {"done": f"{_journal(asked.desk)}.{kept}" if kept else ""}


PAGES = [
    ("GET", "/label", show),
    ("POST", "/label", give),
    ("POST", "/label/undo", undo),
    ("POST", "/label/hide", hide),
    ("POST", "/label/add", add),
]
