"""The page to begin on: files come whole or not at all, columns are what a person says, one model is made at a time."""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
import command_line
from asked import Answer, ask

import tallybayes as tb
from tallybayes.serve import app as app_module
from tallybayes.serve import fitting, place
from tallybayes.serve.app import make_app
from tallybayes.serve.desk import Desk
from tallybayes.serve.guard import ServeLimits
from tallybayes.serve.looking import TableChoices, TableLook
from tallybayes.serve.pages.frame import Frame, PageRequest
from tallybayes.serve.place import Place

CSV = "sky,wind,play\n" + "sunny,3,yes\nrainy,9,no\nsunny,4,yes\ngrey,8,no\ngrey,7,\n" * 6
EVIL = "<script>alert(1)</script>"


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    out = Place(str(tmp_path), limits=ServeLimits(upload=10_000))
    yield out
    out.close()


def token_of(app: Any) -> str:
    return re.findall(r'name="form_token" value="([^"]+)"', ask(app, "GET", "/start").body.decode())[0]


def post(app: Any, address: str, live: bool = False, **fields: str) -> Answer:
    body = urlencode({"form_token": token_of(app), **fields}).encode()
    more = {"x_live": "1"} if live else {}
    return ask(app, "POST", address, pieces=[body], content_type="application/x-www-form-urlencoded", **more)


def upload(app: Any, name: str, *pieces: bytes, token: str | None = None, **more: Any) -> Answer:
    given = token_of(app) if token is None else token
    address = f"/start/upload?name={quote(name)}"
    return ask(app, "POST", address, pieces=pieces, content_type="application/octet-stream", x_form_token=given,
               x_live="1", **more)  # fmt: skip


def ended(app: Any, here: Place) -> Answer:
    """What the page that waits is told once nothing more is being made."""
    assert here.fitting is not None
    here.fitting.wait(30)
    return ask(app, "GET", "/start/progress", x_live="1")


# ---- bringing a table


def test_a_file_that_is_dropped_lies_in_the_folder_and_a_second_one_has_a_number(here: Place) -> None:
    app = make_app(here)
    for name in ("play.csv", "play 2.csv", "play 3.csv"):
        found = upload(app, "play.csv", CSV.encode()[:10], CSV.encode()[10:])
        assert (found.status, found.headers["x-go-to"]) == (200, f"/start/look?table={quote(name)}")
        assert Path(here.folder, name).read_text(encoding="utf-8") == CSV
    assert upload(app, "PLAY.CSV.GZ", b"x").headers["x-go-to"] == "/start/look?table=PLAY.CSV.GZ"


@pytest.mark.parametrize(
    ("name", "pieces", "status"),
    [
        ("../play.csv", [b"a"], 404), (".csv", [b"a"], 404), ("play.exe", [b"a"], 422), ("m.tb.parquet", [b"a"], 422),
        ("play.csv", [b""], 422), ("play.csv", [b"x" * 6_000, b"x" * 6_000], 413),
    ],
)  # fmt: skip
def test_what_is_refused_leaves_nothing_behind(here: Place, name: str, pieces: list[bytes], status: int) -> None:
    found = upload(make_app(here), name, *pieces)
    assert (found.status, os.listdir(here.folder)) == (status, [])
    assert b"note warning" in found.body


def test_a_file_of_another_page_is_refused(here: Place) -> None:
    assert upload(make_app(here), "play.csv", b"a", token="wrong").status == 403
    assert os.listdir(here.folder) == []


def test_a_file_that_breaks_off_or_does_not_fit_leaves_nothing_behind(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    app = make_app(here)
    token, limits = token_of(app), ServeLimits(upload=10_000, body_seconds=0.05)
    slow = make_app(Place(here.folder, limits=limits))
    assert upload(slow, "slow.csv", b"a" * 100, b"b", gap=0.1).status == 408

    def full(file: int, piece: memoryview) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    found = upload(app, "full.csv", b"a" * 100, token=token)
    assert (found.status, b"make room" in found.body.lower()) == (503, True)
    assert os.listdir(here.folder) == []


def test_two_files_of_one_name_at_once_are_two_files(here: Place) -> None:
    with here.coming("a.csv") as one, here.coming("a.csv") as two:
        assert [os.path.basename(path) for path in (one, two)] == ["a.csv", "a 2.csv"]
    with here.coming("a.csv") as again:
        assert os.path.basename(again) == "a.csv"


# ---- looking at it


def test_a_page_says_what_each_column_is_and_why(here: Place) -> None:
    Path(here.folder, "play.csv").write_text(CSV.replace("sky", EVIL), encoding="utf-8")
    page = ask(make_app(here), "GET", "/start/look?table=play.csv").body.decode()
    assert EVIL not in page
    assert "play is proposed: it is the last column, and has 2 different values." in page
    assert "6 rows have no label and will wait for one." in page
    assert "whole numbers, 5 different from 3 to 9" in page
    assert "grey (12), sunny (12), rainy (6)" in page
    assert page[page.index('id="look"') :].index("Look again</button>") < page.index("Make the model")  # Enter looks


def test_a_click_changes_a_kind_and_shows_anew_what_is_understood(here: Place) -> None:
    Path(here.folder, "play.csv").write_text(CSV, encoding="utf-8")
    app = make_app(here)
    piece = post(app, "/start/look", live=True, table="play.csv", target="2", kind0="ignore", kind1="category").body
    assert b'data-into="why0">ignore: chosen by hand' in piece
    assert b'data-into="why1">category: chosen by hand' in piece
    assert b"<html" not in piece
    piece = post(app, "/start/look", live=True, table="play.csv", target="2", kind0="number").body
    assert b"It cannot be read so: play.csv, line 2, column &#x27;sky&#x27;" in piece
    found = post(app, "/start/look", live=True, table="play.csv", target="2", kind0="nonsense")
    assert (found.status, b"there is no kind" in found.body.lower()) == (422, True)


def test_the_look_says_what_infer_says(tmp_path: Path) -> None:
    path = tb.example("flats.csv", to=tmp_path)
    for chosen in ({}, {"rooms": "category", "note": "text"}):
        found = TableLook(str(path)).understood("let", TableChoices(chosen))
        schema = tb.infer(path, "let", kinds=chosen)
        told = {name: (each.kind, each.why) for name, each in found.columns.items()}
        assert told == {c.reads: (c.kind, c.reason) for c in schema.columns}


@pytest.mark.parametrize(
    ("columns", "proposed"),
    [
        ({"a": [1, 2, 3, 4] * 9, "label": ["u", "v", "w", "u"] * 9, "b": ["x", "y"] * 18}, "label"),
        ({"a": [1.5 * i for i in range(36)], "b": ["x", "y"] * 18}, "b"),
        ({"b": ["x", "y"] * 18, "a": [1.5 * i for i in range(36)]}, "b"),
        ({"a": [1.5 * i for i in range(36)], "c": ["one"] * 36}, "c"),  # nothing will do
    ],
)
def test_what_to_predict_is_proposed(tmp_path: Path, columns: dict[str, list[Any]], proposed: str) -> None:
    lines = [",".join(columns), *(",".join(map(str, row)) for row in zip(*columns.values(), strict=True))]
    (tmp_path / "t.csv").write_text("\n".join(lines))
    assert TableLook(str(tmp_path / "t.csv")).proposed[0] == proposed


def test_no_table_leads_out_of_the_folder_and_a_broken_one_is_said_to_be(here: Place) -> None:
    app = make_app(here)
    Path(here.folder, "broken.parquet").write_bytes(b"PAR1")
    Path(here.folder, "empty.csv").write_bytes(b"")
    for name, status in {"../x.csv": 404, "none.csv": 404, "broken.parquet": 422, "empty.csv": 422}.items():
        found = ask(app, "GET", f"/start/look?table={quote(name)}")
        assert found.status == status
        assert here.folder.encode() not in found.body


# ---- making a model


def test_a_model_is_made_in_the_background_and_then_asked(here: Place) -> None:
    Path(here.folder, "play.csv").write_text(CSV, encoding="utf-8")
    app = make_app(here)
    assert post(app, "/start/fit", table="play.csv", target="2", name="play", effort="quick").status == 303
    last = ended(app, here)
    assert last.headers["x-go-to"] == "/ask"
    assert (here.desk.served.tally.rows, here.desk.pool_size()) == (24, 6)
    counted = tb.count(Path(here.folder, "play.csv"), here.desk.model.schema)
    assert here.desk.digest == replace(counted, skipped=0).digest
    page = ask(app, "GET", "/start").body.decode()
    assert "play.tb.parquet was made in" in page
    assert "<strong>open</strong>" in page
    assert post(app, "/start/fit", table="play.csv", target="2", name="play").status == 409  # there is one
    assert post(app, "/start/fit", table="play.csv", target="2", name="../x").status == 404
    assert post(app, "/start/fit", table="play.csv", target="2", name="y", effort="huge").status == 422


def test_one_model_is_made_at_a_time_and_cancelling_leaves_nothing_of_it(
    here: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path(here.folder, "play.csv").write_text(CSV, encoding="utf-8")
    app, reached, go = make_app(here), threading.Event(), threading.Event()
    begin = Desk.begin

    def slowly(path: Any, data: Any, **how: Any) -> Desk:
        how["progress"]("counting", 0.9)
        reached.set()
        assert go.wait(30)
        return begin(path, data, **how)

    monkeypatch.setattr(fitting.Desk, "begin", slowly)
    post(app, "/start/fit", table="play.csv", target="2", name="play")
    assert reached.wait(30)
    page = ask(app, "GET", "/start").body.decode()  # any browser sees it
    assert "81 %: counting all rows" in page
    assert ask(app, "GET", "/start/progress", x_live="1").body.startswith(b'<div id="progress"')
    second = post(app, "/start/fit", table="play.csv", target="2", name="other")
    assert (second.status, b"is being made already" in second.body) == (409, True)
    assert post(app, "/start/cancel").status == 303
    assert b"cancelling" in ask(app, "GET", "/start/progress", x_live="1").body
    go.set()
    assert ended(app, here).headers["x-go-to"] == "/start"
    assert here.fitting is not None
    assert (here.fitting.state, here.is_open, os.listdir(here.folder)) == ("cancelled", False, ["play.csv"])
    assert b"somebody has cancelled it" in ask(app, "GET", "/start").body
    assert post(app, "/start/cancel").status == 409


def test_a_fit_that_is_cancelled_while_the_journal_is_filled_leaves_no_journal(here: Place) -> None:
    Path(here.folder, "play.csv").write_text(CSV, encoding="utf-8")
    order = fitting.Order(here.path_of("play.csv"), here.path_of("p.tb.parquet"), "play", TableChoices(), "quick")
    made = fitting.Fitting(order, here.take)
    tell = made._progress

    def last(what: str, done: float) -> None:
        tell(what, done)
        if what == "done":  # rows are read once more after that, for the journal
            made.cancel()

    made._progress = last  # type: ignore[method-assign]
    made.start()
    made.wait(30)
    assert (made.state, sorted(os.listdir(here.folder))) == ("cancelled", ["play.csv"])


def test_a_fit_that_fails_says_why_and_how_to_mend_it(here: Place) -> None:
    Path(here.folder, "play.csv").write_text(CSV, encoding="utf-8")
    app = make_app(here)
    post(app, "/start/fit", table="play.csv", target="2", name="play", kind0="number")
    assert ended(app, here).headers["x-go-to"] == "/start"
    page = ask(app, "GET", "/start").body.decode()
    assert "play.tb.parquet could not be made." in page
    assert "30 of 30 cells are none: &#x27;sunny&#x27; (play.csv, line 2)" in page
    assert "the kind &#x27;category&#x27; for &#x27;sky&#x27;, or name what means missing" in page
    assert os.listdir(here.folder) == ["play.csv"]
    assert post(app, "/start/fit", table="play.csv", target="1", name="play").status == 303  # another may be begun


def test_the_example_is_a_click(here: Place) -> None:
    app = make_app(here)
    assert post(app, "/start/example").headers["location"] == "/start/look?table=flats.csv"
    assert ask(app, "GET", "/start/look?table=flats.csv").status == 200
    assert post(app, "/start/example").status == 303  # also where it lies already


# ---- opening one


def test_saved_models_are_listed_and_opened(here: Place) -> None:
    rows = [{"sky": s, "play": p} for s, p in [("sunny", "yes"), ("grey", "no")] * 3]
    for name in ("a", "b"):
        Desk.begin(here.path_of(f"{name}.tb.parquet"), rows, target="play", calibrate=False).close()
    Path(here.folder, "damaged.tb.parquet").write_bytes(b"PAR1")
    app = make_app(here)
    page = ask(app, "GET", "/start").body.decode()
    assert page.count("<td>6</td><td>2</td>") == 2
    assert post(app, "/start/open", model="b.tb.parquet").headers["location"] == "/ask"
    assert here.desk.path.endswith("b.tb.parquet")
    assert post(app, "/start/open", model="b.tb.parquet").status == 303  # is open already
    assert post(app, "/start/open", model="damaged.tb.parquet").status == 422
    assert post(app, "/start/open", model="../b.tb.parquet").status == 404
    assert here.desk.path.endswith("b.tb.parquet")


def test_who_comes_too_late_for_a_model_is_told_so(here: Place) -> None:
    rows = [{"sky": s, "play": p} for s, p in [("sunny", "yes"), ("grey", "no")] * 3]
    for name in ("a", "b"):
        Desk.begin(here.path_of(f"{name}.tb.parquet"), rows, target="play", calibrate=False).close()
    here.open_model("a.tb.parquet")
    before, api = here.desk, here.api
    here.open_model("b.tb.parquet")
    assert before.model.predict([{"sky": "grey"}]).tolist() == ["no"]  # readers of the model need no journal
    here._api = api  # as for a request that took it before the switch
    app = make_app(here)
    asked = [
        ("POST", "/api/learn", {"rows": rows[:1]}),
        ("POST", "/api/undo", {"operation": 1}),
        ("GET", "/api/pool", None),
    ]
    for method, address, body in asked:
        found = ask(app, method, address, body)
        assert (found.status, found.json["type"]) == (409, "urn:tallybayes:switched")
    assert before.digest == tb.load(before.path).tally.digest


def test_a_request_has_one_model_to_its_end(here: Place) -> None:
    for name in ("a", "b"):
        Desk.begin(here.path_of(f"{name}.tb.parquet"), [{"a": 1, "y": "u"}, {"a": 2, "y": "v"}], target="y").close()
    here.open_model("a.tb.parquet")
    asked = PageRequest(Frame(here), {}, {})
    before = asked.desk
    here.open_model("b.tb.parquet")
    assert asked.desk is before
    with pytest.raises(tb.TallybayesError, match="has been closed"):
        asked.desk.learn([{"a": 1}], ["u"])
    assert here.desk.version == 1


def test_a_place_that_is_closed_ends_its_fit_and_serves_nothing(tmp_path: Path) -> None:
    (tmp_path / "play.csv").write_text(CSV)
    closed = Place(str(tmp_path))
    made = closed.begin("play.csv", "play", "play", TableChoices(), "quick")
    closed.close()
    assert not made.running
    assert not closed.is_open
    late = Desk.begin(tmp_path / "late.tb.parquet", [{"a": 1, "y": "u"}, {"a": 2, "y": "v"}], target="y")
    closed.take(late)
    assert not closed.is_open
    with pytest.raises(tb.TallybayesError, match="has been closed"):
        late.learn([{"a": 1}], ["u"])


def test_the_command_without_an_argument_serves_the_folder_that_one_is_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    served: list[tuple[str, bool]] = []

    def run(place: Place, *, ready: Any, **more: Any) -> None:
        served.append((place.folder, place.is_open))
        ready("http://127.0.0.1:1")

    monkeypatch.setattr(app_module, "run", run)
    monkeypatch.setattr(app_module, "load_uvicorn", lambda: None)
    monkeypatch.chdir(tmp_path)
    for words in (["serve"], ["serve", "."], ["serve", str(tmp_path)]):
        done = command_line.run(*words)
        assert (done.returncode, "open http://127.0.0.1:1 in a browser" in done.out) == (0, True)
    assert served == [(os.path.realpath(tmp_path), False)] * 3
    assert command_line.run("serve", "none.tb.parquet").returncode != 0


def test_the_list_of_models_is_read_once(here: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    Desk.begin(here.path_of("a.tb.parquet"), [{"a": 1, "y": "u"}, {"a": 2, "y": "v"}], target="y").close()
    first = here.facts("a.tb.parquet")
    monkeypatch.setattr(place, "load_stored", None)
    assert here.facts("a.tb.parquet") is first
    assert first.classes == ("u", "v")
    assert abs(first.written.timestamp() - time.time()) < 600


# ---- how a file is written


def lines_of(each: Any) -> str:
    return "".join(f"{line}\n" for line in each)


GERMAN = "preis;größe;spielt\n" + lines_of(f"{i % 9},5;{('groß', 'klein')[i % 2]};{'jn'[i % 3 > 0]}" for i in range(60))
EURO = "amt,play\n" + lines_of(f"{i % 7 + 90}.{164 + i} €,{'yes' if i % 3 else 'no'}" for i in range(60))
DATES = "d,play\n" + lines_of(f"{i % 11 + 1:02}/{i % 12 + 1:02}/2024,{'yes' if i % 3 else 'no'}" for i in range(60))
RAGGED = CSV + "a,b,c,d\n"
FAR = "t,play\n" + lines_of(f"{-999 if i % 9 == 0 else i % 23},{'yes' if i % 3 else 'no'}" for i in range(90))


@pytest.mark.parametrize(
    ("content", "says", "given", "then"),
    [
        (GERMAN.encode("cp1252"), "Windows-1252 is usual for a file from Windows", {"encoding": "cp1252"}, "größe"),
        (GERMAN.encode("utf-16"), "Choose UTF-16 under “How cells are read”", {"encoding": "utf-16"}, "größe"),
        (RAGGED.encode(), "leave such lines out: tick that", {"skip": "1"}, "1 bad line was skipped"),
        (EURO.encode(), "choose under “How cells are read” that decimals have a comma", {"decimal": ","},
         "points between thousands"),
        (DATES.encode(), "choose under “How cells are read” how dates are written", {"dates": "%m/%d/%Y"}, "date:"),
        (FAR.encode(), "write it under “How cells are read” among those that mean missing", {"missing": "-999"},
         "from 0 to 22"),
    ],
    ids=["windows", "utf-16", "ragged", "euro", "dates", "-999"],
)  # fmt: skip
def test_what_is_said_of_a_file_is_said_as_the_page_has_it_and_can_be_chosen_there(
    here: Place, content: bytes, says: str, given: dict[str, str], then: str
) -> None:
    app = make_app(here)
    upload(app, "play.csv", content)
    page = ask(app, "GET", "/start/look?table=play.csv").body.decode()
    told = page[page.index("<main") :]
    assert says in told
    for python in ("tb.read", "decimal=", "date_format", "missing=", "bad_lines", "encoding=&", here.folder):
        assert python not in told
    for field in ("encoding", "decimal", "skip", "dates", "missing", "fold"):
        assert f' name="{field}"' in told
    page = post(app, "/start/look", table="play.csv", **given).body.decode()
    assert then in page
    assert says not in page
    names = here.look("play.csv", next(iter(here._looks))[2]).names
    found = post(app, "/start/fit", table="play.csv", target=str(len(names) - 1), name="m", effort="quick", **given)
    assert found.status == 303, found.body
    assert ended(app, here).headers["x-go-to"] == "/ask", here.fitting and here.fitting.problem
    counted = here.desk.served.tally
    assert counted.rows in (len(content.splitlines()) - 1, 60, 24, 25, 90)


def test_who_is_deleted_goes_out_of_a_table_in_other_letters(here: Place) -> None:
    for encoding in ("cp1252", "utf-16"):
        app = make_app(here)
        name = f"{encoding}.csv"
        rows = GERMAN.replace("klein;j", "Zoë Müß;j", 3).replace("größe", "wer")
        upload(app, name, rows.encode(encoding))
        given = {"encoding": encoding, "target": "2", "kind1": "category"}
        post(app, "/start/fit", table=name, name=f"m {encoding}", effort="quick", **given)
        assert ended(app, here).headers["x-go-to"] == "/ask"
        receipt = here.desk.erase("wer", "Zoë Müß")
        assert receipt.tables == {name: 3}
        left = Path(here.folder, name).read_bytes().decode(encoding)
        assert left == lines_of(line for line in rows.splitlines() if "Zoë" not in line)
