"""The page to label on: walks of one person and of two, and what is marked in a text."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
from browsing import Browser

import tallybayes as tb
from tallybayes.serve.app import make_app
from tallybayes.serve.desk import Desk
from tallybayes.serve.journal import KeptRow
from tallybayes.serve.pages.rows import Speech, _units, card
from tallybayes.serve.place import Place
from tallybayes.tally.tally import Tally

TEXTS = [("win a cash prize now", "spam"), ("free entry, text WIN", "spam"), ("see you at home later", "ham"),
         ("are you coming home", "ham"), ("lunch at noon?", "ham")]  # fmt: skip
WAITING = ["claim the free prize", "home at noon <b>", "you win", "what is for lunch", "see you"]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    rows = [{"text": t, "kind": k} for t, k in TEXTS * 3] + [{"text": t, "kind": None} for t in WAITING]
    kinds = {"text": "text"}
    desk = Desk.begin(tmp_path / "mail.tb.parquet", rows, target="kind", kinds=kinds, calibrate=False, effort="quick")
    with_desk = Place.of(desk)
    yield with_desk
    with_desk.close()


def labels(place: Place) -> dict[int, str | None]:
    return {row.id: row.label for row in place.desk.journal.all_rows() if row.id > len(TEXTS) * 3}


def test_rows_are_labelled_skipped_and_taken_back_one_after_another(place: Place) -> None:
    ann = Browser(make_app(place))
    page = ann.get("/label")
    assert 'data-key="1"' in page
    assert "<mark" in page
    first = int(ann.field("row"))
    page = ann.send("/label", label="spam")
    assert labels(place)[first] == "spam"
    assert f"Row {first} is spam. 1 label today." in page
    second = int(ann.field("row"))
    assert second != first
    page = ann.send("/label", skip="1")
    assert place.desk.row(second).standing == "skipped"
    assert "operation 3" in page
    ann.send("/label/undo")
    assert place.desk.row(second).standing == "pool"
    assert int(ann.field("row")) == second
    before = place.desk.operations(2)[0].digest
    ann.send("/label/undo")
    assert place.desk.digest == before
    assert 'id="undo"' not in ann.page
    assert "nothing of yours" in ann.post("/label/undo", [("form_token", ann.field("form_token"))])


def test_nobody_takes_back_the_label_of_another_and_both_see_other_rows(place: Place) -> None:
    app = make_app(place)
    ann, bob = Browser(app), Browser(app)
    ann.get("/label")
    bob.get("/label")
    assert ann.field("row") != bob.field("row")
    ann.send("/label", label="ham")
    assert "There is nothing of yours" in bob.post("/label/undo", [("form_token", bob.field("form_token"))])
    assert list(labels(place).values()).count("ham") == 1


def test_a_row_that_has_a_label_meanwhile_is_told_of_and_the_next_comes(place: Place) -> None:
    app = make_app(place)
    ann, bob = Browser(app), Browser(app)
    bob.cookies["tallybayes_name"] = "Bob"
    ann.get("/label")
    row = int(ann.field("row"))
    bob.get(f"/label?row={row}")
    bob.send("/label", label="ham")
    page = ann.send("/label", label="spam")
    assert ann.answer.status == 200
    assert f"Row {row} has had the label ham meanwhile by Bob (operation 2). Here is the next." in page
    assert labels(place)[row] == "ham"
    assert int(ann.field("row")) != row
    assert f"Row {row} does not wait for a label" in ann.get(f"/label?row={row}")
    shown = int(ann.field("row"))  # taken back and given again while Ann looks: what she saw is old
    bob.get(f"/label?row={shown}")
    bob.send("/label", label="ham")
    bob.send("/label/undo")
    assert "waits again; nothing was labelled" in ann.send("/label", label="spam")
    place.desk.erase("text", place.desk.row(int(ann.field("row"))).values["text"])
    assert "was erased meanwhile" in ann.send("/label", label="spam")


def test_a_form_of_another_model_labels_nothing(place: Place, tmp_path: Path) -> None:
    ann = Browser(make_app(place))
    ann.get("/label")
    ann.send("/label", label="ham")
    rows = [{"text": t, "kind": k} for t, k in TEXTS] + [
        {"text": f"{t} {i}", "kind": None} for t in WAITING for i in "abcd"
    ]
    place.take(Desk.begin(tmp_path / "other.tb.parquet", rows, target="kind", calibrate=False, effort="quick"))
    assert "Another model has been opened" in ann.send("/label", label="ham")
    assert place.desk.version == 1
    ann.get("/label")
    assert 'id="undo"' not in ann.page  # what was done to the model before is not this one's to take back


def test_a_new_class_is_asked_for_and_then_made(place: Place) -> None:
    ann = Browser(make_app(place))
    ann.get("/label")
    row = int(ann.field("row"))
    page = ann.send("/label", label="sapm")
    assert "No row has had the label" in page
    assert "Did you mean &#x27;spam&#x27;?" in page
    assert place.desk.version == 1
    ann.post("/label", list(next(f for f in ann.forms if f.action == "/label").hidden.items()))
    assert place.desk.model.classes == ("ham", "sapm", "spam")
    ann.get("/label?find=%3Dsapm")
    ann.send("/label/undo")  # with the row the class goes, which was being looked for
    assert "There is no class sapm to look for" in ann.page
    place.desk.undo(place.desk.version)
    ann.get("/label")
    assert labels(place)[row] == "sapm"
    assert "sapm" in ann.page


def test_what_the_model_thinks_can_be_hidden_and_stays_hidden(place: Place) -> None:
    ann = Browser(make_app(place))
    assert 'id="thinks"' in ann.get("/label?find=%3Dspam")
    page = ann.send("/label/hide")
    assert ann.cookies["tallybayes_kept_hide"] == "1"
    assert 'value="=spam" selected' in page
    for shown in (page, ann.send("/label", label="ham")):
        assert "<mark" not in shown
        assert 'id="thinks"' not in shown
        assert "probability" not in shown
    ann.send("/label/hide")
    assert 'id="thinks"' in ann.page


def test_an_empty_pool_is_a_page_on_which_rows_are_added(place: Place, tmp_path: Path) -> None:
    ann = Browser(make_app(place))
    ann.get("/label")
    for _ in WAITING:
        ann.send("/label", label="ham")
    assert "All 5 rows of the pool have a label" in ann.page
    ann.send("/label/add", lines="one text\r\n\r\n  \r\nanother, with a comma\r\n")
    assert "2 rows came into the pool" in ann.page
    assert [row.values for row in place.desk.pool()] == [{"text": "one text"}, {"text": "another, with a comma"}]
    (tmp_path / "more.csv").write_text('text,kind\n"from a table",ham\n')
    ann.get("/label")
    ann.send("/label/add", table="more.csv")
    assert place.desk.pool()[-1].values == {"text": "from a table"}
    assert ann.post("/label/add", [("form_token", ann.field("form_token")), ("table", "../x.csv")])
    assert ann.answer.status == 404
    ann.get("/label")
    ann.send("/label/add", lines=" ")
    assert ann.answer.status == 422


def test_many_classes_have_keys_for_the_likeliest_and_a_field_for_all(tmp_path: Path) -> None:
    names = [f"c{i:03}" for i in range(120)] + ["<script>", "\u202eevil", " ", "x" * 300]
    rows: list[dict[str, Any]] = [{"word": f"w{i}", "c": name} for i, name in enumerate(names) for _ in range(2)]
    desk = Desk.begin(tmp_path / "m.tb.parquet", [*rows, {"word": "w77", "c": None}, {"word": "w121", "c": None}],
                      target="c", kinds={"word": "text"}, calibrate=False, effort="quick")  # fmt: skip
    place = Place.of(desk)
    try:
        ann = Browser(make_app(place))
        page = ann.get("/label?row=249")
        assert page.count("data-key=") == 11  # nine classes, skip, the field
        assert re.search(r'value="c077" data-key="1"', page)
        assert page.count("<option value=") >= len(names)
        assert "<script>" not in page
        ann.get("/label?row=250")
        ann.send("/label", label="\u202eevil")  # as a browser would send it back
        assert desk.row(250).label == "\u202eevil"
    finally:
        place.close()


def test_words_carry_all_that_speaks_of_them_and_are_marked_in_the_text_as_it_stands() -> None:
    texts = [("Cats   purr; cats sleep. İyi ΟΔΟΣ", "cat"), ("Dogs bark at dogs and cats", "dog"), ("bark!", "dog")] * 4
    rows = [{"t": t, "k": k} for t, k in texts]
    for how in ({}, {"stem": "english"}, {"ngrams": (1, 2)}, {"chars": (1, 3), "across": True}, {"hash_bits": 12}):
        schema = tb.Schema([tb.Column("t", "text", text=tb.Tokeniser(**how))], target="k")
        model = Tally.of(schema, rows).model()
        for said in ("Cats bark\tat  İYİ <cats>", "ΟΔΟΣ dogs", "purr!"):
            explained = model.explain([{"t": said}])
            speech = Speech.of(model.schema, explained, {"t": said})
            total = sum(odds for _, _, odds in speech.words["t"])
            terms = [(label, odds) for column, label, odds in explained.for_class(None) if column == "t"]
            blank = sum(odds for label, odds in terms if label.partition(" ×")[0].isspace())  # stands on nothing
            assert total == pytest.approx(sum(odds for _, odds in terms) - blank, abs=1e-9)
            assert speech.columns["t"] == pytest.approx(total + blank, abs=1e-9)
            shown = card(KeptRow(1, {"t": said}, "pool", b""), model.schema, speech)
            plain = re.sub(r"<[^>]*>", "", shown.partition('class="text" dir="auto">')[2].partition("</div>")[0])
            assert plain == said.replace("\t", "    ").replace("<", "&lt;").replace(">", "&gt;")
    assert "<mark" in shown


def test_a_mark_is_never_set_apart_from_its_letter() -> None:
    for said, units in (
        ("हिन्दी है!", ["हिन्दी", "है", "!"]),
        ("ที่นี่ ok", ["ที่", "นี่", "ok"]),
        ("日本 a\u0301b", ["日", "本", "a\u0301b"]),
    ):
        assert [said[start:end] for start, end in _units(said)] == units


def test_labels_that_are_no_texts_are_given_as_what_they_are(tmp_path: Path) -> None:
    rows = [{"n": i % 5, "ok": i % 2 == 0} for i in range(20)]
    desk = Desk.begin(tmp_path / "m.tb.parquet", [*rows, {"n": 1, "ok": None}], target="ok", effort="quick")
    place = Place.of(desk)
    try:
        ann = Browser(make_app(place))
        ann.get("/label")
        ann.send("/label", label=re.findall(r'name="label" value="([^"]*)"', ann.page)[0])
        assert desk.model.classes == (False, True)
        assert desk.row(21).counted
    finally:
        place.close()
