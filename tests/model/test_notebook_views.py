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
