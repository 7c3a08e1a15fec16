"""Pictures made of characters: they fit their room, say what the numbers say, and need neither colours nor Unicode."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from command_line import run
from rich.console import Console

import tallybayes as tb
from tallybayes.base.draw import Drawing, LabelledLines, Room, curve, fitted, heights
from tallybayes.base.show import width
from tallybayes.explain.plots import columns

D = tb.datasets
terminal = tb.plots.terminal


def ansi(drawing: Drawing, columns: int = 80, **more: Any) -> str:
    out = io.StringIO()
    Console(file=out, width=columns, force_terminal=True, **more).print(drawing)
    return out.getvalue()


@pytest.fixture(scope="module")
def model() -> tb.Model:
    return tb.textbook(D.mixed(300, seed=1), "leaves")


@pytest.fixture(scope="module")
def pictures(model: tb.Model) -> dict[str, Drawing]:
    asked, tickets = D.mixed(200, seed=2), D.tickets(200)
    drift = D.drift(1200)
    windows = tb.Windows(tb.infer(drift, target="returned", kinds={"day": "ignore"}), by="month", time="day")
    windows.add(drift)
    odd = {
        "温度の長い名前がここにある": ["高い高い高い", "低"] * 8,
        "a\x1b[31m<b>": ["\x1b[2J", "v"] * 8,
        "y": ["ja", "né"] * 8,
    }
    strange = tb.textbook(odd, "y")
    with_tickets = tb.textbook(tickets, "queue")
    vectors = tb.textbook({"v": np.random.default_rng(0).normal(size=(60, 20)), "y": ["a", "b", "c"] * 20}, "y")
    return {
        "why": terminal(model.explain(asked.features(), 3)),
        "odds": terminal(model.explain(asked.features(), 3).odds()),
        **{column: terminal(model, column) for column in ("age", "visits", "plan", "note", "newsletter")},
        "evaluation": terminal(tb.evaluate(model, asked)),
        "tickets": terminal(tb.evaluate(with_tickets, D.tickets(100, seed=4))),
        "compared": terminal(tb.compare_models({"a": model, "b": tb.textbook(D.mixed(400, seed=1), "leaves")}, asked)),
        "learning": terminal(tb.learning_curve(D.mixed(150), "leaves", folds=3)),
        "changes": terminal(tb.change(windows)),
        "judged": terminal(tb.prequential(windows, drift)),
        "strange": terminal(strange.explain({"温度の長い名前がここにある": "高い高い高い", "a\x1b[31m<b>": "v"})),
        "strange column": terminal(strange, "温度の長い名前がここにある"),
        "vector": terminal(vectors, "v"),
    }


@pytest.mark.parametrize("columns", [40, 60, 80, 120])
def test_every_picture_fits_its_room_in_unicode_and_in_ascii(pictures: dict[str, Drawing], columns: int) -> None:
    for name, drawing in pictures.items():
        for ascii in (False, True):
            text = drawing.text(columns, ascii=ascii)
            assert "\x1b" not in text and "nan" not in text, name
            assert max(map(width, text.splitlines())) <= columns, (name, columns)
            if ascii and not name.startswith("strange"):
                assert text.isascii(), (name, sorted({c for c in text if not c.isascii()}))
            assert text.count("\n") >= 2


def test_colours_add_nothing_that_shapes_do_not_say(pictures: dict[str, Drawing]) -> None:
    for name, drawing in pictures.items():
        coloured = ansi(drawing, color_system="standard", legacy_windows=False)
        assert re.search("\x1b\\[[0-9;]*m", coloured), name
        plain = "\n".join(line.rstrip() for line in re.sub("\x1b\\[[0-9;]*m", "", coloured).splitlines())
        assert plain == drawing.text(80, ascii=False), name
        bare = ansi(drawing, color_system=None)
        assert "\x1b" not in bare


def test_a_waterfall_adds_up(model: tb.Model) -> None:
    explained = model.explain(D.mixed(200, seed=2).features(), 3)
    text = terminal(explained).text(80)
    odds = explained.odds()
    assert text.splitlines()[0] == f"{odds.label} against {odds.against}: probability {odds.probability:.4f}"
    *lines, together = text.splitlines()[2:]
    assert together.startswith("together") and float(together.split()[-1]) == pytest.approx(odds.total, abs=0.006)
    assert sum(float(line.split()[-1]) for line in lines) == pytest.approx(odds.total, abs=0.01 * len(lines))
    for line in lines:  # what speaks against has another shape
        assert ("▒" in line) == (float(line.split()[-1]) < 0 or line.split()[-1] == "-0.00"), line
    turned = terminal(explained, label=odds.against, against=odds.label).text(80)
    assert turned.startswith(f"{odds.against} against {odds.label}")


@pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")  # every class is impossible
def test_what_is_impossible_is_drawn_too() -> None:
    clinic = D.clinic()
    strict = tb.textbook(clinic, "Diagnosis", smoothing="maximum likelihood")
    ann, bob = (terminal(strict.explain(row)).text(80) for row in clinic.truth["asked"].values())
    assert "+∞" in ann and "both impossible" in bob
    assert "inf" in terminal(strict.explain(clinic.truth["asked"]["Ann"])).text(80, ascii=True)


def test_one_class_has_nothing_against_it() -> None:
    one = tb.textbook({"a": ["u", "v"], "y": ["x", "x"]}, "y")
    assert terminal(one.explain({"a": "u"})).text(80) == "x: the only class, so that nothing speaks against it"


def test_bars_are_as_long_as_their_figures() -> None:
    for ascii in (False, True):
        rows = LabelledLines(Room(80, ascii), ["a"], ["1"])
        assert width(rows.bar(1.0, "0")) == rows.wide and width(rows.bar(0.5, "1")) == rows.wide // 2
        assert rows.bar(0.0, "0") == "" and width(rows.bar(1e-9, "1")) == 1 and width(rows.bar(7.0, "1")) == rows.wide
        assert width(rows.bar(float("inf"), "1")) == rows.wide
    tall = heights(Room(), np.array([0.0, 0.5, 1.0, np.nan]), 2, 1.0, "0")
    assert ["".join(t for t, _ in line) for line in tall] == ["  █ ", " ██ "]
    plain = heights(Room(ascii=True), np.array([0.0, 0.5, 1.0]), 2, 1.0, "0")
    assert ["".join(t for t, _ in line) for line in plain] == ["  #", " ##"]
    assert curve(Room(ascii=True), np.array([0.0, 1.0]), np.array([0.0, 1.0]), 3, 3) == ["  *", " * ", "*  "]
    assert fitted("温度温度", 5) == "温度…" and width(fitted("温度温度", 6)) == 6


def test_what_has_no_picture_says_what_has(model: tb.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    for call in (lambda: terminal(3), lambda: terminal(model), lambda: terminal(model, "nothing")):
        with pytest.raises(tb.SettingsError, match="Hint: "):
            call()
    monkeypatch.setitem(columns._PICTURES, "number", lambda model, column: object())  # as a program may register one
    with pytest.raises(tb.SettingsError, match="matplotlib"):
        terminal(model, "age")


def test_a_vector_is_drawn_position_by_position_where_classes_differ_most() -> None:
    y = np.array(["a", "b"] * 50)
    v = np.random.default_rng(0).normal(size=(100, 30)) + 1000 + (y == "b")[:, None] * np.linspace(0, 3, 30)
    found = tb.textbook({"v": v, "y": y.tolist()}, "y")
    lines = terminal(found, "v").text(80).splitlines()
    assert lines[:2] == ["v: mean and deviation by position", "██ a  ▓▓ b"]
    drawn = lines[3:-1]
    assert len(drawn) == 24 and drawn[-2].startswith("29") and lines[-1].startswith("18 positions")
    at = [line.index("●") for line in drawn[-2:]]
    form = found.beliefs["v"].form()
    said = [float(re.findall(r"([\d.]+) ±", line)[0]) for line in drawn[-2:]]
    assert said == pytest.approx(form.location[29], abs=0.05) and at[0] < at[1]
    assert "█" in drawn[-2] and "▓" in drawn[-1]
    assert terminal(found, "v").text(80, ascii=True).isascii()
    flat = {"v": [[1.0, 2.0]] * 2, "y": ["a", "b"]}
    alike = tb.count(flat, tb.Schema([tb.Column("v", "vector")], target="y")).model()
    assert terminal(alike, "v").text(60).splitlines()[1] == "no position varies"


def test_characters_need_no_matplotlib() -> None:
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "import tallybayes as tb\nd = tb.datasets.clinic()\nm = tb.textbook(d, 'Diagnosis')\n"
        "print(tb.plots.terminal(m, 'Cough').text(60), tb.plots.terminal(m.explain(d, 0)).text(60))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert "together" in done.stdout


def test_commands_draw(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    D.mixed(300).save("rows.csv"), D.mixed(100, seed=2).save("asked.csv"), D.drift(600).save("orders.csv")
    assert run("fit", "rows.csv", "--target", "leaves", "-o", "m").returncode == 0
    assert "together" in run("explain", "m", "asked.csv", "--plot").out
    assert "together" not in run("explain", "m", "asked.csv").out
    shown = run("show", "m", "--column", "plan", "--plot")
    assert shown.returncode == 0 and "██ no" in shown.out and "\x1b" not in shown.out
    assert run("show", "m", "--plot").returncode == 2
    assert "Reliability of yes" in run("evaluate", "m", "asked.csv", "--plot", "--no-intervals").out
    both = run("compare", "asked.csv", "--model", "m", "--model", "m", "--plot")
    assert both.returncode == 0 and "log loss, with 95 % intervals" in both.out and "●" in both.out
    run("windows", "add", "w", "orders.csv", "--by", "month", "--time", "day", "--target", "returned")
    assert "p of a change at this time" in run("change", "w", "--plot").out
    assert "the largest on the right" in run("windows", "judge", "w", "orders.csv", "--plot").out
    monkeypatch.setenv("TERM", "dumb")
    assert "## no" in run("show", "m", "--column", "plan", "--plot").out
