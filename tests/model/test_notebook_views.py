"""What a notebook shows: foldable, harmless, alone with its style, and readable on any page."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from typing import Any

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.base import view

D = tb.datasets
NASTY = ["<script>alert(1)</script>", "a & b", "</div></style><b>", '"><img src=x onerror=alert(1)>', "\u202e\x1b[31m"]


def things(data: Any, target: str) -> dict[str, Any]:
    model = tb.fit(data, target, effort="quick")
    plain = tb.textbook(data, target)
    asked = {name: column for name, column in data.items() if name != target}
    windows = tb.Windows(plain.schema, by=30)
    windows.add(data)
    return {
        "model": model,
        "explanation": model.explain(asked, 1),
        "odds": model.explain(asked, 1).odds(),
        "evaluation": tb.evaluate(model, data),
        "validation": tb.cross_validate(
            data, target, folds=2, settings={"1": tb.Settings(), "2": {"smoothing": tb.Laplace(2)}}
        ),
        "comparison": tb.compare(data, target, folds=2, rivals=["majority class"]),
        "models": tb.compare_models({"fitted": model, "plain": plain}, data),
        "schema": model.schema,
        "tally": model.tally,
        "windows": windows,
    }


@pytest.fixture(scope="module")
def shown() -> dict[str, str]:
    return {name: thing._repr_html_() for name, thing in things(D.mixed(120), "leaves").items()}


def test_views_are_well_formed_small_and_ask_for_nothing(shown: dict[str, str]) -> None:
    for name, page in shown.items():
        root = ElementTree.fromstring(page)
        tags = {e.tag for e in root.iter()}
        assert not tags & {"script", "link", "img", "iframe", "object", "a"}, name
        assert "url(" not in page.replace("url(#", "") and "http" not in page.replace(
            "http://www.w3.org/2000/svg", ""
        ), name
        assert len(page) < 60_000 and "nan" not in page.lower().replace("<span", ""), name
        assert not any(key.startswith("on") for e in root.iter() for key in e.attrib), name


def test_styles_stay_within_the_view(shown: dict[str, str]) -> None:
    for page in shown.values():
        root = ElementTree.fromstring(page)
        assert root.attrib["class"] == "tbv"
        (style,) = [e.text for e in root.iter("style")]
        selectors = [s for block in re.findall(r"([^{}]+)\{", str(style)) for s in block.split(",")]
        assert len(selectors) > 10 and all(s.startswith(".tbv") for s in selectors)
        classes = {c for e in root.iter() for c in e.attrib.get("class", "").split()}
        assert all(c == "tbv" or c.startswith("tbv-") for c in classes)


def test_no_letter_has_a_colour_of_its_own_but_those_of_the_graph(shown: dict[str, str]) -> None:
    assert not re.search(r"[^-]color:(?!inherit)|background:(?!none|rgba)", view.STYLE)
    for name, page in shown.items():
        if name != "model":
            inks = set(re.findall(r'(?:fill|stroke)="([^"]+)"', page))
            assert inks <= {view.FOR, view.AGAINST, view.EVEN, "none"}, name


@pytest.mark.parametrize("page", ["#ffffff", "#111111"])
def test_bars_are_seen_on_white_and_on_black(page: str) -> None:
    def light(ink: str) -> float:
        parts = np.array([int(ink[i : i + 2], 16) / 255 for i in (1, 3, 5)])
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    for ink in (view.FOR, view.AGAINST, view.EVEN):
        low, high = sorted((light(ink), light(page)))
        assert (high + 0.05) / (low + 0.05) >= 3, (ink, page)  # what is asked of pictures by WCAG 2


def test_there_are_folds_with_the_numbers_behind_them(shown: dict[str, str]) -> None:
    def folds(name: str) -> list[str]:
        return ["".join(e.itertext()) for e in ElementTree.fromstring(shown[name]).iter("summary")]

    assert folds("explanation") == ["The numbers", "Intervals and counts behind each line, 95%"]
    assert folds("evaluation") == ["Reliability and confusion", "By class"]
    assert folds("comparison")[0] == folds("models")[0] == "The numbers"
    assert folds("model") == ["P(leaves)", "graph and tables of leaves"]
    assert folds("schema") == []
    assert folds("tally")[:3] == ["age: mean and deviation", "visits: mean and deviation", "plan: by value"]
    assert folds("windows") == ["3, column by column"]


def test_bars_of_an_explanation_add_up() -> None:
    data = D.mixed(200)
    explained = tb.textbook(data, "leaves").explain(data.features(), 1)
    root = ElementTree.fromstring(explained._repr_html_())
    first = next(iter(root.iter("table")))
    labels = [svg.attrib["aria-label"] for svg in first.iter("svg")]
    assert float(labels[-1]) == pytest.approx(explained.odds().total, abs=0.006)
    bars = [(float(r.attrib["x"]), float(r.attrib["width"]), r.attrib["fill"]) for r in first.iter("rect")]
    for (x, wide, ink), said in zip(bars, labels, strict=True):
        assert x >= -1 and x + wide <= 181
        assert (ink == view.FOR) == (float(said) > 0) or abs(float(said)) < 0.01


def test_hostile_names_and_values_are_only_text() -> None:
    data = {name: [f"{name} {i % 3}" for i in range(40)] for name in NASTY}
    data["y"] = [NASTY[i % 2] for i in range(40)]
    for name, thing in things(data, "y").items():
        page = thing._repr_html_()
        root = ElementTree.fromstring(page)
        assert not {e.tag for e in root.iter()} & {"script", "img", "b"}, name
        assert "\x1b" not in page and "\u202e" not in page
        assert page.count("<style") == page.count("</style") == 1
        assert not any(key.startswith("on") for e in root.iter() for key in e.attrib)


@pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")  # every class is impossible
def test_odd_models_have_views() -> None:
    clinic = D.clinic()
    strict = tb.textbook(clinic, "Diagnosis", smoothing="maximum likelihood")
    for row in clinic.truth["asked"].values():
        page = strict.explain(row)._repr_html_()
        assert "NaN" not in page and ElementTree.fromstring(page) is not None
    labels = tb.textbook(D.labels(), "Play")
    for thing in (labels, labels.explain({"Sky": "sunny"}), labels.schema):
        ElementTree.fromstring(thing._repr_html_())
    one = tb.textbook({"a": ["u", "v"], "y": ["x", "x"]}, "y")
    assert "<svg" not in one.explain({"a": "u"})._repr_html_()
    assert "×∞" in strict._repr_html_()  # no one with a cold had a severe headache
    many = {f"x{i}": ["u", "v"] * 10 for i in range(120)} | {"y": ["a", "b"] * 10}
    assert "… 20 columns more" in tb.textbook(many, "y")._repr_html_()


def test_a_schema_is_read_as_a_table_and_left_out_columns_say_why() -> None:
    schema = tb.infer(D.play(wide=True), target="Play")
    root = ElementTree.fromstring(schema._repr_html_())
    lines = [["".join(cell.itertext()).strip() for cell in line] for line in root.iter("tr")]
    assert lines[0] == ["column", "kind", "why"] and lines[4][:2] == ["Wind", "ignore"] and "every row" in lines[4][2]
    model = tb.textbook(D.play(wide=True), "Play")
    assert "Left out, and why" in model._repr_html_()


def cells(page: str) -> list[list[list[str]]]:
    """Every table of a view, line by line."""
    tables = ElementTree.fromstring(page).iter("table")
    return [[["".join(cell.itertext()).strip() for cell in line] for line in table.iter("tr")] for table in tables]


def test_a_tally_shows_its_classes_and_what_was_counted_of_every_column() -> None:
    days = D.tennis()
    tally = tb.textbook(days, "Play").tally
    assert tally is not None
    classes, columns, outlook, *_ = cells(tally._repr_html_())
    assert classes == [["Play", "", "share", "rows"], ["no", "", "35.7%", "5"], ["yes", "", "64.3%", "9"]]
    assert [line[0] for line in columns] == ["column", "Outlook", "Temperature", "Humidity", "Wind"]
    assert columns[1] == ["Outlook", "category", "3 values", "", "no: sunny 3, rain 2yes: overcast 4, rain 3"]
    assert outlook == [["value", "no", "yes"], ["rain", "2", "3"], ["sunny", "3", "2"], ["overcast", "0", "4"]]
    backwards = {name: values[::-1] for name, values in days.items()}
    assert tb.count(backwards, tally.schema)._repr_html_() == tally._repr_html_()  # whatever the order of the rows


def test_a_tally_shows_numbers_days_pairs_words_weights_and_what_is_missing() -> None:
    x = tb.PairColumn("x", "number", cuts=(2.5,))
    columns = [tb.Column("x", "number"), tb.Column("v", "vector"), tb.Column("b", "bag")]
    columns += [
        tb.Column("p", "pair", of=(tb.PairColumn("w"), x)),
        tb.Column("d.days", "number", part="days", source="d"),
    ]
    rows = {
        "x": [1.0, 3.0, None, 3.0], "v": [[1, 2]] * 4, "b": [["hot"], ["hot", "dry"], None, None],
        "w": ["u", "u", "v", None], "d": ["2024-05-31", "2024-06-02", None, None], "y": ["k", "k", "l", "l"],
    }  # fmt: skip
    tally = tb.count(rows, tb.Schema(columns, target="y"), weights=[0.5, 0.5, 1, 2])
    classes, lines, *_ = cells(tally._repr_html_())
    assert classes[1] == ["k", "", "25.0%", "1", "2"]
    assert [line[2:] for line in lines[1:]] == [
        ["numbers", "25.0%", "k: 2 ± 1l: 3 ± 0"],
        ["2 positions", "", ""],
        ["2 words", "75.0%", "k: hot 1, dry 0.5"],
        ["2 values", "75.0%", "k: u and < 2.5 0.5, u and ≥ 2.5 0.5"],
        ["numbers", "75.0%", "k: 2024-06-01 ± 1 days"],
    ]


def test_odd_tallies_have_views() -> None:
    tally = tb.count({"x": [1.0, 5.0], "y": ["a", "b"]}, tb.Schema([tb.Column("x", "number")], target="y"))
    shown = [
        tb.Tally.zero(tally.schema),
        -tally,
        tally - 3 * tally,
        tb.count(D.tennis(), tb.infer(D.tennis(), "Play")).at_least(5),
        tb.textbook(D.labels(), "Play").tally,
    ]
    for odd in [*shown, tb.Windows(tally.schema, by=2)]:
        page = odd._repr_html_()
        assert ElementTree.fromstring(page) is not None and "nan" not in page
    many = {"word": [f"w{i:03}" for i in range(400)], "y": [f"y{i % 40:02}" for i in range(400)]}
    wide = tb.count(many, tb.Schema([tb.Column("word", "category")], target="y"))
    assert "and 388 values, 34 classes more" in wide._repr_html_() and len(wide._repr_html_()) < 20_000


def test_windows_show_the_newest_periods_and_read_no_others(tmp_path: Any) -> None:
    drift = D.drift(rows=600)
    windows = tb.Windows(tb.infer(drift, "returned"), by="week", time="day")
    windows.add(drift)
    windows.save(tmp_path / "weeks")
    again = tb.Windows.load(tmp_path / "weeks")
    page = again._repr_html_()
    assert len(again._sums.parts.read) == 24 < len(windows.periods)
    assert page == windows._repr_html_() and f"… {len(windows.periods) - 24} periods before" in page
    newest = cells(page)[0]
    assert [line[0] for line in newest[1:]] == list(windows.periods[-24:]) and newest[0][2:] == ["rows", "no", "yes"]
    last = windows.last(1)
    assert newest[-1][2:] == [str(last.rows), *(f"{n:g}" for n in last.class_weights())]
