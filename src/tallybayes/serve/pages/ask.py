"""Asking: a field for each column, the answer while one types, what would change it, and learning it."""

from __future__ import annotations

import json
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ...base.canon import many, number_text, printable
from ...base.canon import text as canonical
from ...base.errors import heard
from ..asking import KEPT, LONGEST, WEIGHT, AskAnswer, AskField, AskForm
from ..journal import GONE, POOL, SKIPPED, KeptRow
from ..problems import ApiProblem
from ..served import Done
from .answer import answer, other_answer
from .frame import Fragment, GoTo, PageAnswer, PageRequest, View
from .html import Safe, choice, join, natural, on_enter, tag

_FEW = 12  # values of a category that are a list to choose from; of more the commonest are proposed
_PROPOSED = 100
_FIELDS = 24  # that are shown at once
_LONG = 60  # characters of a name or value that are shown
_OTHER = ""  # a class that is not named: the likeliest, the next, any other


@dataclass(frozen=True)
class _Sent:
    """What is in the fields of the form."""

    given: Sequence[str]
    kept: KeptRow | None = None  # the row of the journal that it began with
    label: str = _OTHER
    against: str = _OTHER
    to: str = _OTHER
    fixed: frozenset[int] = frozenset()
    gone: frozenset[int] = frozenset()  # fields that are known to be missing

    def row(self, form: AskForm) -> dict[str, Any]:
        """The row that the fields mean."""
        return form.row(self.given, None if self.kept is None else self.kept.values, self.gone)

    def same(self, form: AskForm) -> bool:
        """Whether it is the row of the journal that it began with."""
        if self.kept is None:
            return False
        row, kept = self.row(form), self.kept.values
        said = all((f.name in row) == (f.name in kept) for f in form.fields if f.gap)
        return said and all(row.get(field.name) == kept.get(field.name) for field in form.fields)

    def right(self, form: AskForm, found: AskAnswer) -> str:
        """What is on the button for who agrees with the answer; empty where nothing is left to learn."""
        best = found.best
        short = printable(best, 30)
        if self.kept is None or self.kept.standing in (GONE, SKIPPED) or not self.same(form):
            return f"Right: learn it as {short}"
        if not self.kept.counted:
            return f"Right: label it {short}"
        return "" if self.kept.label == str(canonical(best)) else f"Right: count it as {short} from now on"


def show(asked: PageRequest) -> PageAnswer:
    """The page, with nothing given or with a row of the journal."""
    form, number = AskForm(asked.desk.served), asked.whole("row")
    kept = None if number is None else asked.desk.row(number)
    given, gone = ["1" if field.kind == WEIGHT else "" for field in form.fields], frozenset[int]()
    if kept is not None:
        given = [field.shown(kept.values.get(field.name)) for field in form.fields]
        gone = frozenset(i for i, f in enumerate(form.fields) if f.name in kept.values and kept.values[f.name] is None)
    return _page(asked, form, _Sent(given, kept, gone=gone))


def ask(asked: PageRequest) -> PageAnswer:
    """The answer to what is in the fields."""
    form = AskForm(asked.desk.served)
    sent = _sent(asked, form)
    if not asked.live:
        return _page(asked, form, sent)
    found = form.answer(sent.row(form))
    return Fragment(answer(form, found, sent.given, sent.right(form, found), sent.label, sent.against))


def what(asked: PageRequest) -> PageAnswer:
    """The page with the fewest changes that give another answer."""
    form = AskForm(asked.desk.served)
    sent = _sent(asked, form)
    return _page(asked, form, sent, other_answer(_what_if(form, sent)))


def take(asked: PageRequest) -> PageAnswer:
    """The page with those changes made."""
    form = AskForm(asked.desk.served)
    sent = _sent(asked, form)
    row = _what_if(form, sent).row
    if row is None:
        raise ApiProblem("conflict", "the changed row cannot be written down", "change the values by hand.")
    given = [f.shown(row[f.name]) if f.name in row else old for f, old in zip(form.fields, sent.given, strict=True)]
    return _page(asked, form, replace(sent, given=given, kept=None))


def learn(asked: PageRequest) -> PageAnswer:
    """Learn what is in the fields under a label."""
    form = AskForm(asked.desk.served)
    sent = _sent(asked, form)
    label, new = _label(asked, form)
    done, how = _learnt(asked, form, sent, label, "allow" if new else "refuse")
    told = f"{how} as {printable(label, _LONG)}: operation {done.operation:,}, row {done.rows[0]:,}."
    return GoTo(f"/ask?row={done.rows[0]}", f"{told} The journal can undo it.")


def _learnt(asked: PageRequest, form: AskForm, sent: _Sent, label: str, new: str) -> tuple[Done, str]:
    """A row of the pool gets its label, one that is counted another, and whatever is new is counted besides."""
    desk, who, kept = asked.desk, asked.who, sent.kept
    row = sent.row(form)
    once = json.dumps([asked.one("once"), label, row])  # a page that is sent twice is learnt once
    if kept is not None and sent.same(form):
        if kept.standing == POOL:
            return desk.once(once, lambda: desk.label(kept.id, label, who=who, new_classes=new)), "Labelled"
        if kept.counted:
            return desk.once(once, lambda: desk.relabel(kept.id, label, who=who, new_classes=new)), "Counted"
    known = {f.name for i, f in enumerate(form.fields) if f.gap and i in sent.gone}
    if all(v is None and n not in known for n, v in row.items() if n != form.served.model.schema.weights):
        raise ApiProblem("data", "every field is empty", "say something of the row before it is learnt.")
    return desk.once(once, lambda: desk.learn([row], [label], who=who, new_classes=new)), "Learnt"


# ---- what was sent


def _sent(asked: PageRequest, form: AskForm) -> _Sent:
    if asked.one("form") != form.key:
        raise ApiProblem("switched", "this page was made for another model", "load it anew: the fields are others now.")
    given = [asked.one(f"o{i}").strip() or asked.one(f"v{i}") for i in range(len(form.fields))]
    number = asked.whole("row")
    kept = None if number is None else asked.desk.row(number)
    fixed, gone = (
        frozenset(int(i) for i in asked.fields.get(name, []) if i.isascii() and i.isdigit() and len(i) < 9)
        for name in ("fix", "gone")
    )
    label, against, to = (_class(asked, form, name) for name in ("label", "against", "to"))
    return _Sent(given, kept, label, against, to, fixed, gone)


def _class(asked: PageRequest, form: AskForm, field: str) -> str:
    """The class that is chosen in a field by its number; empty for none in particular."""
    at, classes = asked.whole(field), form.served.model.classes
    if at is None:
        return _OTHER
    if at >= len(classes):
        raise ApiProblem("switched", "the classes have changed since the page was made", "load it anew.")
    return str(canonical(classes[at]))


def _label(asked: PageRequest, form: AskForm) -> tuple[str, bool]:
    """The label to learn, and whether it may be a new one."""
    if asked.one("right"):
        return _class(asked, form, "right"), False
    given = asked.one("new_class").strip()
    if given:
        return given, True
    label = _class(asked, form, "as")
    if not label:
        raise ApiProblem("data", "no class is chosen", "choose one, or write a new one.")
    return label, False


def _what_if(form: AskForm, sent: _Sent) -> Any:
    fixed = [f.name for i, f in enumerate(form.fields) if i in sent.fixed and f.columns]
    row = sent.row(form)
    readable = form.answer(row).left_out
    inputs = {name: None if name in readable else value for name, value in form.inputs(row).items()}
    if not inputs:
        raise ApiProblem("data", "every field is empty", "say something of the row first.")
    with heard():  # that some columns are not there is meant
        return form.served.model.what_if([inputs], sent.to or None, fixed=fixed)


# ---- the page


def _page(asked: PageRequest, form: AskForm, sent: _Sent, more: Safe | None = None) -> PageAnswer:
    found = form.answer(sent.row(form))
    hidden = [tag("input", type="hidden", name="form", value=form.key)]
    hidden.append(tag("input", type="hidden", name="once", value=secrets.token_hex(8)))
    if sent.kept is not None:
        hidden.append(tag("input", type="hidden", name="row", value=str(sent.kept.id)))
    counted = [i for i, field in enumerate(form.fields) if field.kind != KEPT]
    others = [i for i, field in enumerate(form.fields) if field.kind == KEPT]
    lines = {i: _field(i, form.fields[i], sent, found.remarks.get(form.fields[i].name, "")) for i in
             (*counted, *others)}  # fmt: skip
    left = [tag("h2", "A row"), [lines[i] for i in counted[:_FIELDS]]]
    if counted[_FIELDS:]:
        left.append(_fold(many(len(counted) - _FIELDS, "more column"), [lines[i] for i in counted[_FIELDS:]], "more"))
    if others:
        said = tag("p", "These are not counted. The journal keeps them with a row that is learnt.", class_="soft")
        left.append(_fold("Columns that are not counted", [said, [lines[i] for i in others]], "kept"))
    right = [
        answer(form, found, sent.given, sent.right(form, found), sent.label, sent.against), _compared(form, sent), more,
        _asking_why(form, sent), _teaching(form),
    ]  # fmt: skip
    body = asked.frame.form(
        "/ask", on_enter("Ask"), hidden,
        tag("div", tag("div", left), tag("div", right, class_="beside"), class_="columns"),
        tag("noscript", tag("button", "Ask", type="submit")), data_live="#answer", id="ask", autocomplete="off",
    )  # fmt: skip
    return View("/ask", f"Ask for {printable(form.served.model.schema.target, _LONG)}", join(
        _row_chosen(form, sent, found), body
    ))  # fmt: skip


def _fold(title: str, inside: Any, name: str) -> Safe:
    return tag("details", tag("summary", title), inside, id=name)


def _row_chosen(form: AskForm, sent: _Sent, found: AskAnswer) -> Safe:
    """Which row of the journal is in the fields, and a way to another."""
    kept = sent.kept
    field = tag(
        "input", name="row", inputmode="numeric", value="" if kept is None else str(kept.id), id="row", size="8"
    )
    chosen = tag(
        "form", tag("label", "A row of the journal by its number ", field), tag("button", "Take", class_="plain"),
        tag("a", "Empty all fields", href="/ask") if kept is not None or any(sent.given) else None,
        method="get", action="/ask", class_="row", id="by-number",
    )  # fmt: skip
    if kept is None:
        return chosen
    best = found.best
    if kept.label is None:
        how = "waits for a label" if kept.standing == POOL else f"is not counted: it is {kept.standing}"
        said = f"Row {kept.id:,} {how}."
    else:
        agrees = str(canonical(best)) == kept.label
        judged = "agrees" if agrees else f"says {printable(best, _LONG)}"
        said = (
            f"Row {kept.id:,} is counted as {printable(kept.label, _LONG)}; the model, which has learnt it, {judged}."
        )
    said += "" if sent.same(form) else " The fields say something else by now."
    link = tag("a", "See the journal, which can undo it", href="/journal")
    return join(chosen, tag("p", said, " ", link, class_="note", id="kept-row"))


def _field(i: int, field: AskField, sent: _Sent, remark: str) -> Safe:
    given = sent.given[i]
    name = printable(field.name or "(no name)", _LONG)
    about = {"id": f"v{i}", "name": f"v{i}", "aria_describedby": f"n{i}"}
    told = field.range if field.columns else ""
    if len(given) > LONGEST:
        told = f"shown as far as {LONGEST:,} characters; all of it counts unless you change it"
    label = tag("label", name, " ", tag("small", told) if told else None, for_=f"v{i}")
    return tag(
        "div", label, _control(i, field, name, given, about), _gone(i, field, name, sent),
        tag("div", remark, class_="remark", id=f"n{i}", data_remark=True),
        class_="field whole" if field.kind == "text" else "field",
    )  # fmt: skip


def _gone(i: int, field: AskField, name: str, sent: _Sent) -> Safe | None:
    """A box for a value of which it is known that there is none, where that says something."""
    if not field.gap:
        return None
    box = tag("input", type="checkbox", name="gone", value=str(i), checked=i in sent.gone and not sent.given[i],
              id=f"m{i}", aria_label=f"{name} is known to be missing", data_empties=f"v{i}")  # fmt: skip
    return tag("label", box, " known to be missing", class_="soft gone")


def _control(i: int, field: AskField, name: str, given: str, about: dict[str, Any]) -> Safe:
    if field.kind in ("number", WEIGHT):
        keys = "text" if field.clock else "decimal"  # a phone's keys for numbers have no colon
        box = tag("input", value=given, inputmode=keys, placeholder="not said", **about)
        slider = field.slider
        if slider is None:
            return box
        ends = {"min": number_text(slider.low), "max": number_text(slider.high), "step": number_text(slider.step)}
        known = field.number(given)
        at = number_text(slider.low + (slider.high - slider.low) / 2 if known is None else known)
        slides = tag("input", type="range", data_with=f"v{i}", value=at, aria_label=f"Slider of {name}", **ends,
                     class_="scripted")  # fmt: skip
        return tag("div", slides, box, class_="slid")
    if field.kind == "category" and 0 < len(field.values) <= _FEW:
        return _choice(i, field, name, given, about)
    if field.kind == "category":
        proposed = [
            tag("option", f"{n:,.0f} rows", value=value) for value, n in field.values[:_PROPOSED] if len(value) <= 200
        ]
        box = tag("input", value=given, list=f"d{i}", placeholder="not said", class_="wide", **about)
        more = f"{len(field.values):,} values" if field.values else ""
        return tag("div", box, tag("datalist", proposed, id=f"d{i}"), tag("small", more))
    if field.kind in ("date", "time"):
        kind = "datetime-local" if field.kind == "time" else "date"
        plain = not given or _is_date(given)
        return tag("input", type=kind if plain else "text", value=given, **about)
    if field.kind == "text" or len(given) > _LONG:
        return tag("textarea", "\n", given, rows="3", placeholder="not said", **about)
    hint = {"bag": "words, with commas between them", "vector": "numbers, with commas between them"}
    return tag("input", value=given, placeholder=hint.get(field.kind, ""), class_="wide", **about)


def _choice(i: int, field: AskField, name: str, given: str, about: dict[str, Any]) -> Safe:
    """A list of all values, and a field for another one."""
    known = [value for value, _ in field.values]
    read = field.read(given)
    options = [("", "not said"), *((v, f"{printable(v, _LONG)} ({n:,.0f})") for v, n in field.values)]
    other = given if given and read not in known else ""
    return tag(
        "div", choice(about.pop("name"), options, read if read in known else "", **about),
        tag("input", name=f"o{i}", value=other, placeholder="another", aria_label=f"Another value of {name}", size="8"),
        class_="row",
    )  # fmt: skip


def _is_date(given: str) -> bool:
    return given[:4].isdigit() and given[4:5] == "-" and given[7:8] == "-" and len(given) in (10, 16)


def _classes(form: AskForm, first: str) -> list[tuple[str, str]]:
    each = sorted(enumerate(form.served.model.classes), key=lambda one: natural(one[1]))
    return [("", first), *((str(i), printable(c, _LONG)) for i, c in each)]


def _at(form: AskForm, label: str) -> str:
    classes = [str(canonical(c)) for c in form.served.model.classes]
    return str(classes.index(label)) if label in classes else ""


def _compared(form: AskForm, sent: _Sent) -> Safe:
    one = choice("label", _classes(form, "the likeliest class"), _at(form, sent.label), id="label")
    two = choice("against", _classes(form, "the next"), _at(form, sent.against), id="against")
    inside = tag("p", tag("label", "What speaks for ", one), " ", tag("label", "against ", two), class_="row")
    return _fold("Compare other classes", inside, "compare")


def _asking_why(form: AskForm, sent: _Sent) -> Safe:
    to = choice("to", _classes(form, "any other class"), _at(form, sent.to), id="to")
    boxes = [
        tag("label", tag("input", type="checkbox", name="fix", value=str(i), checked=i in sent.fixed),
            f" {printable(field.name, _LONG)} ")
        for i, field in enumerate(form.fields) if field.columns
    ]  # fmt: skip
    stays = tag("details", tag("summary", "Columns that stay as they are"), tag("div", boxes, class_="row", id="fixed"),
                open=bool(sent.fixed))  # fmt: skip
    button = tag(
        "button", "What would change it?", type="submit", formaction="/ask/what#what-if", class_="plain", id="what"
    )
    asks = tag("p", tag("label", "Turn it into ", to), button, class_="row")
    return tag("section", tag("h2", "Another answer"), asks, stays)


def _teaching(form: AskForm) -> Safe:
    label = choice("as", _classes(form, "choose a class"), "", id="as")
    new = tag("input", name="new_class", id="new-class", size="12")
    button = tag("button", "Learn it", type="submit", formaction="/ask/learn", class_="plain", id="learn")
    line = tag("p", tag("label", "Learn this row as ", label), tag("label", "or as a new class ", new), button,
               class_="row")  # fmt: skip
    return tag("section", tag("h2", "Not right?"), line)


PAGES = [
    ("GET", "/ask", show), ("POST", "/ask", ask), ("POST", "/ask/what", what), ("POST", "/ask/take", take),
    ("POST", "/ask/learn", learn),
]  # fmt: skip
