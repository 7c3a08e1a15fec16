"""The page to ask on: what is typed is what is asked, the answer is the model's, what is learnt is in the journal."""

from __future__ import annotations

import datetime as dt
import html
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
from asked import Answer, ask

import tallybayes as tb
from tallybayes.base.errors import heard
from tallybayes.serve.app import make_app
from tallybayes.serve.asking import KEPT, AskForm, Slider
from tallybayes.serve.desk import Desk
from tallybayes.serve.pages.answer import percent
from tallybayes.serve.place import Place

EVIL = "<script>alert(1)</script>"
WORDS = ["red wine", "cheese", "a,b", "bread"]


def odd_rows() -> list[dict[str, Any]]:
    """Rows of every kind, with names and values that no page can show as they are."""
    draw = random.Random(3)
    out = []
    for i in range(80):
        yes = draw.random() < 0.5
        day = dt.date(2024, 1, 1) + dt.timedelta(days=draw.randrange(200) + 60 * yes)
        out.append({
            EVIL: round(draw.gauss(3 + 2 * yes, 1), 2) if i % 7 else None,
            "": draw.choice(["a\nb", "tab\there", "x" * 5_200, "plain", '"q"&amp;', None]),
            "day": day.strftime("%d/%m/%Y"), "when": dt.datetime(2024, 1, 1, draw.randrange(24)).isoformat(),
            "words": draw.sample(WORDS, 2), "vec": [draw.gauss(yes, 1), 2.0], "flag": draw.choice([True, False]),
            "text": " ".join(draw.choices(["the", "cat", "sat", "on", "a", "mat"], k=9)) + "\n\tend" * (i % 2),
            "who": f"person {i}", "play": ("yes" if yes else "<b>no") if i % 9 else None,
        })  # fmt: skip
    return out


KINDS = {"day": "date", "": "category", "text": "text", "who": "ignore", "when": "date"}


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    path = tmp_path_factory.mktemp("ask") / "odd.tb.parquet"
    with Desk.begin(path, odd_rows(), target="play", kinds=KINDS, calibrate=False) as out:
        yield out


@pytest.fixture
def play(tmp_path: Path) -> Iterator[Place]:
    days = [("sunny", 3, "yes"), ("grey", 8, "no"), ("sunny", 4, "yes"), ("rainy", 9, "no"), ("grey", 7, None)]
    rows = [{"sky": sky, "wind": wind, "play": label} for sky, wind, label in days]
    out = Place.of(Desk.begin(tmp_path / "play.tb.parquet", rows * 4, target="play", calibrate=False))
    yield out
    out.close()


def fields_in(page: str) -> dict[str, str]:
    """What the fields of the large form hold, as a browser would send them."""
    form = page[page.index('id="ask"') : page.index('id="answer"')]
    out = {}
    for tag, inside in re.findall(r"<(input|select|textarea)((?: [^>]*)?)>", form):
        name = re.search(r' name="([^"]+)"', inside)
        if name is None:
            continue
        if tag == "input":
            found = re.search(r' value="([^"]*)"', inside)
            if ' type="checkbox"' not in inside or " checked" in inside:
                out[name[1]] = html.unescape(found[1] if found else "").replace("\n", "")  # which no line of input has
        else:
            rest = form[form.index(inside) + len(inside) + 1 :]
            rest = rest[: rest.index(f"</{tag}>")]
            chosen = re.search(r'<option value="([^"]*)" selected>', rest)
            out[name[1]] = html.unescape((chosen[1] if chosen else "") if tag == "select" else rest.removeprefix("\n"))
    return out


def token_in(page: str) -> str:
    return re.findall(r'name="form_token" value="([^"]+)"', page)[0]


def send(app: Any, address: str, fields: dict[str, str], live: bool = False) -> Answer:
    token = token_in(ask(app, "GET", "/ask").body.decode())
    body = urlencode({**fields, "form_token": token}).encode()
    more = {"x_live": "1"} if live else {}
    return ask(app, "POST", address, pieces=[body], content_type="application/x-www-form-urlencoded", **more)


def said_in(page: str) -> tuple[str, str]:
    found = re.search(r'id="said" role="status"><strong>\w+: (.*?)</strong> (.*?)</p>', page)
    assert found is not None
    return html.unescape(found[1]), html.unescape(found[2])


# ---- rows as a person gives them


def test_a_row_of_the_journal_comes_back_from_the_form_as_it_was(desk: Desk) -> None:
    form, app = AskForm(desk.served), make_app(desk)
    for number in range(1, 81, 9):
        kept = desk.row(number)
        page = ask(app, "GET", f"/ask?row={number}").body.decode()
        assert EVIL not in page
        sent = fields_in(page)
        given = [sent.get(f"o{i}", "") or sent[f"v{i}"] for i in range(len(form.fields))]
        assert form.row(given, kept.values) == kept.values
        best = int(np.argmax(p := desk.model.predict_proba([kept.values])[0]))
        assert said_in(page) == (desk.model.classes[best], percent(min(float(p[best]), 1 - 1e-9)))
        live = send(app, "/ask", sent, live=True).body.decode()
        assert said_in(live) == said_in(page)


def test_a_blank_that_is_taken_out_of_a_text_makes_another_text(desk: Desk) -> None:
    form, kept = AskForm(desk.served), desk.row(2).values
    given = [each.shown(kept.get(each.name)) for each in form.fields]
    at = next(i for i, each in enumerate(form.fields) if each.name == "text")
    for changed in (given[at].replace(" ", ""), given[at].replace(" ", "\n"), given[at] + " cat"):
        given[at] = changed
        assert form.row(given, kept)["text"] == changed


def test_what_is_typed_is_read_by_the_kind_of_its_column(desk: Desk) -> None:
    fields = {each.name: each for each in AskForm(desk.served).fields}
    assert {name: each.kind for name, each in fields.items()} == {
        EVIL: "number", "": "category", "day": "date", "when": "time", "words": "bag", "vec": "vector",
        "flag": "category", "text": "text", "who": KEPT,
    }  # fmt: skip
    typed = {
        EVIL: {"3": 3, " 3.5 ": 3.5, "1e3": 1000, "": None, "nan": "nan", "1_0": "1_0"},
        "": {"plain": "plain", "tab\ufffdhere": "tab\there", "ab": "a\nb", "new": "new", " ": None},
        "day": {"2024-05-31": "31/05/2024", "31/05/2024": "31/05/2024"},
        "words": {"red wine, cheese": ["red wine", "cheese"], '["a,b"]': ["a,b"], '{"x": 2}': {"x": 2}, "[": "["},
        "vec": {"1, 2.5": [1, 2.5], "1 x": "1 x"},
        "flag": {"true": "true", "True": "true"},
    }
    for name, each in typed.items():
        assert {given: fields[name].read(given) for given in each} == each


def test_a_plain_row_is_answered_as_the_model_answers_it(play: Place) -> None:
    app, model = make_app(play), play.desk.model
    empty = fields_in(ask(app, "GET", "/ask").body.decode())
    for sky, wind in (("sunny", "3"), ("grey", ""), ("hail", "99"), ("", "")):
        fields = {**empty, "v0": sky, "v1": wind}
        row = {"sky": sky or None, "wind": float(wind) if wind else None}
        p = model.predict_proba([row])[0]
        best = int(np.argmax(p))
        sure = percent(min(float(p[best]), 1 - 1e-9))
        piece = send(app, "/ask", fields, live=True).body.decode()
        assert said_in(piece) == (model.classes[best], sure)
        assert piece.startswith('<section id="answer"')
        why = piece[piece.index("<h3>") :]
        lines = dict(re.findall(r'<td class="l">([^<]*)</td><td><svg.*?</td><td>([^<]*)</td>', why))
        other = model.explain([row]).odds(model.classes[best], model.classes[1 - best])
        told = {line.label: f"{line.log_odds:+.2f}" for line in other.lines}
        quiet = {name for name, value in told.items() if value in ("+0.00", "-0.00") and name != "prior"}
        shown = {html.unescape(name): value for name, value in lines.items()}
        if len(quiet) > 1:  # these are one line, and listed behind a fold
            assert shown.pop(f"the rest: {len(quiet)} terms") == "+0.00"
        assert shown == told
        assert f"<strong>{other.total:+.2f}</strong>" in piece


def test_what_was_never_seen_lies_beyond_or_cannot_be_read_is_said_beside_its_field(play: Place) -> None:
    app = make_app(play)
    empty = fields_in(ask(app, "GET", "/ask").body.decode())

    def remarks(**fields: str) -> dict[str, str]:
        piece = send(app, "/ask", {**empty, **fields}, live=True).body.decode()
        template = piece[piece.index("<template data-remarks>") :]
        return dict(re.findall(r'<p data-into="(n\d+)">(.*?)</p>', template))

    assert remarks(v0="sunny", v1="5") == {}
    assert remarks(v0="hail") == {"n0": "Never seen: no evidence."}
    assert remarks(v1="99") == {"n1": "Beyond what was learnt: 3 to 9."}
    assert remarks(v0="sunny", v1="windy") == {"n1": "This is no number, and is left out of the answer."}
    with_words = send(app, "/ask", {**empty, "v0": "sunny", "v1": "windy"}, live=True).body.decode()
    assert said_in(with_words) == said_in(send(app, "/ask", {**empty, "v0": "sunny"}, live=True).body.decode())


def test_zero_probabilities_are_infinite_log_odds(tmp_path: Path) -> None:
    rows = [{"a": "x", "y": "u"}, {"a": "z", "y": "v"}] * 3
    settings = {"smoothing": "maximum likelihood"}
    place = Place.of(Desk.begin(tmp_path / "m.tb.parquet", rows, target="y", settings=settings))
    app = make_app(place)
    page = ask(app, "GET", "/ask?row=1").body.decode()
    assert said_in(page) == ("u", "100 %")
    assert "<td>+∞</td>" in page
    assert "By the counts alone v is impossible." in page
    place.close()


def test_a_page_of_another_model_is_refused(play: Place, desk: Desk) -> None:
    fields = fields_in(ask(make_app(desk), "GET", "/ask").body.decode())
    found = send(make_app(play), "/ask", fields, live=True)
    assert (found.status, b"made for another model" in found.body) == (409, True)
    own = fields_in(ask(make_app(play), "GET", "/ask").body.decode())
    assert send(make_app(play), "/ask", {**own, "label": "99"}, live=True).status == 409
    assert ask(make_app(play), "GET", "/ask?row=999").status == 404
    assert ask(make_app(play), "GET", "/ask?row=x").status == 422


# ---- another answer, and learning


def test_what_would_change_it_keeps_what_is_fixed(play: Place) -> None:
    app = make_app(play)
    fields = fields_in(ask(app, "GET", "/ask?row=1").body.decode())
    page = send(app, "/ask/what", fields).body.decode()
    assert "turns yes into no" in page or "turn yes into no" in page
    fixed = send(app, "/ask/what", {**fields, "fix": "0"}).body.decode()
    told = fixed[fixed.index('id="what-if"') :]
    assert "sky:" not in told[: told.index("</section>")]
    both = re.sub(r"fix=0", "fix=0&fix=1", urlencode({**fields, "fix": "0", "form_token": token_in(page)})).encode()
    stays = ask(app, "POST", "/ask/what", pieces=[both], content_type="application/x-www-form-urlencoded")
    assert b"yes stays: no change of" in stays.body
    taken = send(app, "/ask/take", fields).body.decode()
    assert said_in(taken)[0] == "no"


def test_what_is_learnt_is_in_the_journal_once(play: Place) -> None:
    app, desk = make_app(play), play.desk
    fields = fields_in(ask(app, "GET", "/ask").body.decode())
    fields |= {"v0": "sunny", "v1": "2.5"}
    yes = str(desk.model.classes.index("yes"))
    for _ in range(2):  # a double click
        found = send(app, "/ask/learn", {**fields, "right": yes})
        assert found.headers["location"] == "/ask?row=21"
    assert (desk.version, desk.row(21).label, dict(desk.row(21).values)) == (2, "yes", {"sky": "sunny", "wind": 2.5})
    send(app, "/ask/learn", {**fields, "new_class": "maybe"})  # the same page again, and another label
    assert (desk.version, desk.row(22).label) == (3, "maybe")
    assert send(app, "/ask/learn", fields).status == 422  # under no label
    empty = fields_in(ask(app, "GET", "/ask").body.decode())
    assert send(app, "/ask/learn", {**empty, "right": yes}).status == 422
    assert desk.version == 3


def test_enter_asks_and_learns_nothing(play: Place) -> None:
    page = ask(make_app(play), "GET", "/ask?row=1").body.decode()
    form = page[page.rindex("<form", 0, page.index('id="ask"')) :]
    first = form[form.index("<button") : form.index("</button>")]  # which a browser presses on Enter
    assert 'type="submit"' in first
    assert "formaction" not in first


def test_a_row_of_the_journal_is_labelled_or_counted_otherwise_but_not_twice(play: Place) -> None:
    app, desk = make_app(play), play.desk
    rows = desk.served.tally.rows
    waiting, counted = desk.pool()[0].id, 1
    page = ask(app, "GET", f"/ask?row={waiting}").body.decode()
    assert f"Row {waiting} waits for a label." in page
    assert "Right: label it" in page
    no = str(desk.model.classes.index("no"))
    send(app, "/ask/learn", {**fields_in(page), "as": no})
    assert (desk.row(waiting).label, desk.served.tally.rows) == ("no", rows + 1)
    page = ask(app, "GET", f"/ask?row={counted}").body.decode()
    assert "Row 1 is counted as yes; the model, which has learnt it, agrees." in page
    assert 'id="right"' not in page
    send(app, "/ask/learn", {**fields_in(page), "as": no})
    assert (desk.row(counted).label, desk.served.tally.rows) == ("no", rows + 1)
    again = send(app, "/ask/learn", {**fields_in(ask(app, "GET", "/ask?row=1").body.decode()), "as": no})
    assert again.status == 422  # it has that label
    changed = {**fields_in(page), "v1": "4.25", "as": no}
    assert send(app, "/ask/learn", changed).headers["location"] == "/ask?row=21"
    assert desk.served.tally.rows == rows + 2


# ---- sizes


def test_many_columns_and_classes_are_folded(tmp_path: Path) -> None:
    rows = [{**{f"c{j}": f"v{(i + j) % 3}" for j in range(60)}, "y": f"class {i % 30}"} for i in range(90)]
    place = Place.of(Desk.begin(tmp_path / "m.tb.parquet", rows, target="y", calibrate=False))
    page = ask(make_app(place), "GET", "/ask?row=3").body.decode()
    assert "36 more columns" in page
    assert ">22 more</summary>" in page
    assert page.count('class="field') == 60
    place.close()


@pytest.mark.parametrize(
    ("ends", "whole", "slider"),
    [
        ((0.0, 100.0), False, (0, 100, 0.5)),
        ((1.0, 5.0), True, (1, 5, 1)),
        ((25.25, 125.2), False, (25, 125.5, 0.5)),
        ((0.0, 1e6), True, (0, 1e6, 5000)),
        ((-1e-7, 3e-7), False, (-1e-7, 3e-7, 2e-9)),
        ((1.0, 1.0), False, None),
        ((-1e300, 1e300), False, None),
    ],
)
def test_sliders_go_by_short_steps(ends: tuple[float, float], whole: bool, slider: tuple[float, ...] | None) -> None:
    found = Slider.over(ends, whole)
    assert (found and (found.low, found.high, found.step)) == slider


def test_a_model_that_came_without_a_journal_is_asked_all_the_same(tmp_path: Path) -> None:
    model = tb.fit({"size": [1.0, 2.0, 8.0, 9.0] * 5, "y": ["s", "s", "l", "l"] * 5}, "y", calibrate=False)
    model.save(tmp_path / "m.tb.parquet")
    place = Place.of(Desk.open(tmp_path / "m.tb.parquet"))
    page = ask(make_app(place), "GET", "/ask").body.decode()
    assert 'min="1" max="9"' in page
    place.close()


# ---- what nobody said is not what is known to be missing


@pytest.fixture
def gaps(tmp_path: Path) -> Iterator[Place]:
    """Who has no income on file is likelier to default."""
    draw = random.Random(5)
    rows = []
    for _ in range(300):
        bad = draw.random() < 0.4
        rows.append({
            "income": None if draw.random() < (0.9 if bad else 0.1) else round(draw.gauss(30 - 3 * bad, 4), 1),
            "age": draw.randrange(20, 70), "default": "yes" if bad else "no",
        })  # fmt: skip
    desk = Desk.begin(tmp_path / "gaps.tb.parquet", rows, target="default")
    assert "income (missing)" in desk.model.schema.names
    out = Place.of(desk)
    yield out
    out.close()


def test_an_empty_field_says_nothing_and_a_box_says_that_it_is_known_to_be_missing(gaps: Place) -> None:
    app, model = make_app(gaps), gaps.desk.model
    page = ask(app, "GET", "/ask").body.decode()
    form = AskForm(gaps.desk.served)
    income = next(i for i, f in enumerate(form.fields) if f.name == "income")
    prior = [float(p) for p in np.exp(model.start) / np.exp(model.start).sum()]
    best = max(range(2), key=prior.__getitem__)
    assert said_in(page) == (model.classes[best], percent(prior[best]))
    assert "income (missing): yes" not in page
    assert page.count("known to be missing</label>") == 1
    fields = fields_in(page)
    for more, row in (({}, {}), ({"gone": str(income)}, {"income": None}), ({f"v{income}": "31"}, {"income": 31})):
        for age in ("", "40"):
            sent = {**fields, **more, f"v{1 - income}": age}
            given = row | ({"age": 40} if age else {})
            if given:
                with heard():
                    p = model.predict_proba([given])[0]
                at = int(np.argmax(p))
                assert said_in(send(app, "/ask", sent, live=True).body.decode()) == (
                    model.classes[at], percent(float(p[at])))  # fmt: skip
    ticked = send(app, "/ask", {**fields, "gone": str(income)}).body.decode()
    assert re.search(rf'name="gone" value="{income}" checked', ticked)


def test_what_is_learnt_is_what_was_said_whatever_stands_beside_it(gaps: Place) -> None:
    app, desk = make_app(gaps), gaps.desk
    form = AskForm(desk.served)
    at = {f.name: i for i, f in enumerate(form.fields)}
    fields = fields_in(ask(app, "GET", "/ask").body.decode())
    before = desk.served.tally
    for more, values in ((f"v{at['age']}", {"age": 40}), ("gone", {"income": None, "age": None})):
        sent = {**fields, more: "40" if more != "gone" else str(at["income"]), "as": "0"}
        found = send(app, "/ask/learn", sent)
        number = int(re.findall(r"row=(\d+)", found.headers["location"])[0])
        assert desk.row(number).values == values
        again = ask(app, "GET", f"/ask?row={number}").body.decode()
        assert (" checked" in again[again.index('name="gone"') :][:40]) is (more == "gone")
        assert "The fields say something else" not in again
    label = desk.model.classes[0]
    with heard():
        alone = [tb.count([{**each, "default": label}], schema=before.schema) for each in (
            {"age": 40}, {"income": None, "age": None})]  # fmt: skip
    assert desk.digest == (before + alone[0] + alone[1]).digest
    ids = [row.id for row in desk.found("age", 40) if "income" not in row.values]
    desk.forget(ids)
    assert desk.digest == (before + alone[1]).digest
    desk.undo(desk.version)
    both = desk.learn([{"age": 30, "default": label}, {"age": 31, "income": None, "default": label}])
    desk.undo(both.operation)
    assert desk.digest == (before + alone[0] + alone[1]).digest


# ---- numbers as people write them, and who writes them


def clocks(count: int) -> list[dict[str, Any]]:
    draw, out = random.Random(8), []
    for i in range(count):
        late = i % 2
        minutes, seconds = draw.randrange(540, 900) + 60 * late, draw.randrange(600, 4000) + 600 * late
        amount = f"{draw.randrange(900_00, 5_000_00) / 100:,.2f} €".translate(str.maketrans(",.", ".,"))
        out.append({
            "at": f"{minutes // 60:02}:{minutes % 60:02}", "paid": amount,
            "took": f"{seconds // 3600}:{seconds // 60 % 60:02}:{seconds % 60:02}",
            "rooms": draw.randrange(1, 5), "late": "yes" if late else "no",
        })  # fmt: skip
    return out


@pytest.fixture
def times(tmp_path: Path) -> Iterator[Place]:
    out = Place.of(Desk.begin(tmp_path / "times.tb.parquet", clocks(300), target="late", calibrate=False))
    yield out
    out.close()


def test_a_slider_follows_whatever_way_a_number_is_written(times: Place) -> None:
    app, form = make_app(times), AskForm(times.desk.served)
    at = {f.name: i for i, f in enumerate(form.fields)}
    fields = fields_in(ask(app, "GET", "/ask").body.decode())
    typed = {"at": ("14:30", 14.5), "took": ("0:45:00", 0.75), "paid": ("1.234,50 €", 1234.5), "rooms": ("3", 3.0)}
    sent = {**fields, **{f"v{at[name]}": text for name, (text, _) in typed.items()}}
    for live in (True, False):
        page = send(app, "/ask", sent, live=live).body.decode()
        moved = dict(re.findall(r'data-slid="v(\d+)" data-at="([^"]+)"', page))
        assert {int(i): float(v) for i, v in moved.items()} == {at[name]: value for name, (_, value) in typed.items()}


def test_a_range_is_that_of_values_or_only_about_so(times: Place) -> None:
    fields = {f.name: f for f in AskForm(times.desk.served).fields}
    assert fields["rooms"].range == "1 to 4"
    assert fields["paid"].range.startswith("about ")


def test_who_says_their_name_amid_a_question_stays_there(times: Place) -> None:
    app = make_app(times)
    found = send(app, "/you", {"name": "Ann <b>", "to": "/ask"}, live=True)
    assert (found.status, found.body.decode()) == (200, "The journal will call you Ann &lt;b&gt;.")
    assert "x-go-to" not in found.headers
    assert any("tallybayes_name=Ann" in each for each in found.cookies)
    assert not any("told" in each for each in found.cookies)
    assert send(app, "/you", {"name": "Ann", "to": "/ask"}).status == 303


def test_classes_stand_in_the_order_in_which_one_looks_for_them(tmp_path: Path) -> None:
    rows = [{"x": i % 12, "c": f"v{i % 5}", "y": f"k{i % 12}"} for i in range(120)]
    place = Place.of(Desk.begin(tmp_path / "k.tb.parquet", rows, target="y", calibrate=False, effort="quick",
                                kinds={"x": "ignore"}))  # fmt: skip
    app = make_app(place)
    natural = [f"k{i}" for i in range(12)]
    page = ask(app, "GET", "/ask").body.decode()
    for field in ("label", "against", "to", "as"):
        options = page[page.index(f'<select name="{field}"') :].partition("</select>")[0]
        assert re.findall(r">(k\d+)</option>", options) == natural
    chosen = next(i for i, c in enumerate(place.desk.model.classes) if c == "k10")
    sent = {**fields_in(page), "label": str(chosen)}
    assert "Why: k10 against" in send(app, "/ask", sent, live=True).body.decode()
    model = ask(app, "GET", "/model").body.decode()
    assert re.findall(r"<bdi>(k\d+)</bdi></td><td>", model)[:12] == natural
    row = ask(app, "GET", "/journal/row/1").body.decode()
    assert re.findall(r'<option value="(k\d+)"', row) == natural[1:]
    place.close()
