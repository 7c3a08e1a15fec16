"""The report: one page that needs nothing else, says where its figures come from, and survives any data."""

from __future__ import annotations

import html.parser
import json
import re
import sys

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.explain.report.facts import report_facts

pytest.importorskip("matplotlib")

VOID = {"meta", "br", "hr", "img", "input", "link", "path", "use", "rect", "line", "stop"}


class Checker(html.parser.HTMLParser):
    """Tags that open and close in order, and everything that could reach outside or run."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.outside: list[str] = []

    def handle_starttag(self, tag: str, attributes: list) -> None:
        if tag not in VOID:
            self.open.append(tag)
        self._look(tag, attributes)

    def handle_startendtag(self, tag: str, attributes: list) -> None:
        self._look(tag, attributes)

    def _look(self, tag: str, attributes: list) -> None:
        given = dict(attributes)
        if "id" in given:
            self.ids.append(given["id"])
        if tag in ("script", "img", "link", "iframe", "object", "image") or any(n.startswith("on") for n in given):
            self.outside.append(tag)
        for name in ("src", "href", "xlink:href"):
            if name in given and not given[name].startswith("#"):
                self.outside.append(given[name])

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        assert self.open and self.open[-1] == tag, f"</{tag}> closes {self.open[-3:]}"
        self.open.pop()


def checked(page: str) -> Checker:
    found = Checker()
    found.feed(page)
    found.close()
    assert found.open == [] and found.outside == []
    assert len(set(found.ids)) == len(found.ids)
    assert "Content-Security-Policy" in page and "prefers-color-scheme" in page and 'name="viewport"' in page
    assert "\x1b" not in page and "\u202e" not in page
    assert not re.search(r"\bnan\b", re.sub(r"<svg.*?</svg>", "", page, flags=re.S).lower().replace("nan</bdi>", ""))
    return found


def table(n: int, seed: int = 1, classes: int = 2) -> dict:
    rng = np.random.default_rng(seed)
    y = rng.integers(0, classes, n)
    return {
        "colour": rng.choice(["red", "blue", "grey"], n).tolist(),
        "size": rng.normal(y, 1.0),
        "text": [" ".join(rng.choice([f"word{v}", "and", "the", "now"], 4)) for v in y],
        "y": [f"class {v}" for v in y],
    }


@pytest.fixture(scope="module")
def model() -> tb.Model:
    data = table(150)
    return tb.count(data, tb.infer(data, "y").with_column("text", kind="text")).model()


def test_the_page_stands_alone(model: tb.Model, tmp_path) -> None:
    path = tmp_path / "report.html"
    page = tb.report(model, table(80, seed=2), path)
    assert path.read_text(encoding="utf-8") == page
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]
    names = checked(page).ids
    sections = {"data", "columns", "answers", "mistakes", "model", "words", "tally"}
    assert sections <= set(names)
    assert page.count("<svg") >= 9
    assert model.tally.digest in page
    assert "There is no sign that the model has learnt from these rows." in page


def test_facts_are_plain_values_and_right(model: tb.Model) -> None:
    data = table(80, seed=2)
    facts = report_facts(model, data)
    json.dumps(facts, allow_nan=False)
    right = model.predict(data) == np.array(data["y"])
    assert facts["metrics"]["accuracy"] == pytest.approx(right.mean())
    log_p = model.predict_log_proba(data)
    truth = [model.classes.index(v) for v in data["y"]]
    assert facts["metrics"]["log_loss"] == pytest.approx(-log_p[np.arange(80), truth].mean())
    assert np.array(facts["confusion"]).trace() == right.sum()
    assert facts["columns"][0]["name"] in ("text", "size") and facts["columns"][-1]["name"] == "colour"
    sure = model.predict_proba(data).max(axis=1)
    first = facts["mistakes"][0]
    assert first["probability"] == pytest.approx(sure[~right].max())
    assert first["right"] == data["y"][first["row"]] != first["answer"]
    assert "turn" in first["what_if"]
    assert facts["data"] == {
        "rows": 80, "labelled": 80, "without_label": 0, "unknown_class": 0, "trained_on": "no sign",
    }  # fmt: skip


def test_training_rows_are_noticed(model: tb.Model) -> None:
    data = table(150)
    assert report_facts(model, data)["data"]["trained_on"] == "yes"
    mixed = {k: list(v)[::-1] for k, v in data.items()}
    assert report_facts(model, mixed)["data"]["trained_on"] == "yes"  # in any order
    mixed["size"][0] += 1
    assert report_facts(model, mixed)["data"]["trained_on"] == "partly"


def test_without_labels_or_with_unknown_ones(model: tb.Model) -> None:
    data = table(40, seed=3)
    rows = {k: v for k, v in data.items() if k != "y"}
    page = tb.report(model, rows)
    checked(page)
    assert "no labels" in page and 'id="answers"' not in page
    some = {**rows, "y": ["class 0", None, "class 7", *data["y"][3:]]}
    facts = report_facts(model, some)
    assert (facts["data"]["without_label"], facts["data"]["unknown_class"]) == (1, 1)
    page = tb.report(model, some)
    checked(page)
    assert "1 row left out, of a class that the model does not know" in page
    assert report_facts(model, rows, data["y"]) == report_facts(model, data)
    with pytest.raises(tb.DataError, match="no rows"):
        tb.report(model, {k: v[:0] for k, v in data.items()})


def test_one_class_and_one_row() -> None:
    alone = tb.fit({"a": ["u", "v", "u"], "y": ["only"] * 3}, "y")
    checked(tb.report(alone, {"a": ["u"], "y": ["only"]}))
    model = tb.fit({"a": ["u", "v"] * 5, "y": ["p", "q"] * 5}, "y")
    page = tb.report(model, {"a": ["u"], "y": ["p"]})
    checked(page)
    assert "every answer was right" in page
    assert "rows that the model was counted from" in tb.report(model, {"a": ["u", "v"] * 5, "y": ["p", "q"] * 5})


def test_many_classes_and_a_text_alone() -> None:
    data = {k: v for k, v in table(400, classes=20).items() if k in ("text", "y")}
    model = tb.count(data, tb.Schema([tb.Column("text", "text")], target="y")).model()
    page = tb.report(model, data)
    checked(page)
    assert "20 classes" in page and "better ones not shown" in page


def test_a_hundred_columns_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules["tallybayes.explain.report.page"], "_MOST_PICTURES", 10)  # pictures take their time
    rng = np.random.default_rng(5)
    y = np.arange(60) % 2
    data = {f"c{j:03}": rng.integers(0, 2, 60).astype(str) for j in range(100)} | {"told": y.astype(str), "y": y}
    data["told"] = np.where(rng.random(60) < 0.1, "x", data["told"])
    schema = tb.Schema([tb.Column(c, "category") for c in data if c != "y"], target="y")
    facts = report_facts(tb.count(data, schema).model(), data)
    assert facts["columns"][0]["name"] == "told"
    page = tb.report(tb.count(data, schema).model(), data)
    checked(page)
    assert "2 more columns" in page and "91 columns saying still less" in page


def test_a_written_model() -> None:
    model = tb.Model.written(
        {"spam": 0.4, "ham": 0.6},
        {"words": {"spam": {"win": 0.2, "noon": 0.01}, "ham": {"win": 0.01, "noon": 0.2}}},
        kinds={"words": "bag"},
    )
    page = tb.report(model, [{"words": ["win"], "class": "spam"}, {"words": ["noon", "win", "noon"], "class": "spam"}])
    checked(page)
    assert "written down by hand" in page


def test_hostile_data_harm_nothing() -> None:
    nasty = [
        "<script>alert(1)</script>", "\x1b[31mred", "\u202eevil", "$\\frac{1}{2}$", "שלום", "x" * 1_000_000, "a&b",
        "</style><img src=x onerror=alert(1)>", "'; DROP TABLE x; --", "new\nline",
    ]  # fmt: skip
    rng = np.random.default_rng(2)
    data = {name: [nasty[int(i)] for i in rng.integers(0, len(nasty), 50)] for name in nasty}
    data["words"] = [[nasty[int(i)] for i in rng.integers(0, len(nasty), 3)] for _ in range(50)]
    data["<target>"] = [nasty[int(i)] for i in rng.integers(0, 3, 50)]
    columns = [tb.Column(n, "category", reason=n) for n in nasty] + [tb.Column("words", "bag")]
    columns.append(tb.Column("<i>", "ignore", reason="<script>"))
    model = tb.count(data, tb.Schema(columns, target="<target>")).model()
    page = tb.report(model, data)
    checked(page)
    assert len(page) < 3_000_000


def test_a_folder_that_is_not_there_is_an_error(model: tb.Model, tmp_path) -> None:
    with pytest.raises(OSError, match="nowhere") as told:
        tb.report(model, table(20), tmp_path / "nowhere" / "report.html")
    assert isinstance(told.value, tb.FileError) and isinstance(told.value, FileNotFoundError)


def test_what_is_read_first_stands_first_and_wraps() -> None:
    """On a phone the name, bits and weight of a column lie within the page, and reasons wrap."""
    data = {"x": [1.0, 2.0, 3.0, 4.0] * 9, "c": ["u", "v"] * 18, "y": ["a", "b"] * 18}
    settings = tb.Settings(weights={"x": 0.0})
    page = tb.report(tb.fit(data, "y", settings=settings), data)
    head = re.search(r"<tr>(<th.*?)</tr>", page)
    assert head is not None
    assert re.findall(r">([^<>]+)</", head[1])[:3] == ["column", "bits", "weight"]
    assert "not used" in page and "1 rows" not in page
    assert "width:max-content;font-size" not in page  # which made tables wider than a screen
    single = tb.report(tb.fit({"c": ["u", "v"], "y": ["a", "b"]}, "y"), {"c": ["u"], "y": ["a"]})
    assert "This page looks at 1 row." in single and "1 rows" not in single


def test_without_data_the_page_tells_of_the_counts() -> None:
    data = table(60)
    model = tb.fit(data, "y")
    page = tb.report(model)
    checked(page)
    assert "No rows were given" in page
    assert "This page looks at" not in page
    facts, seen = report_facts(model), report_facts(model, data)
    assert "metrics" not in facts
    words = {c["name"] for c in facts["columns"] if c["bits"] is None}
    assert words == {c.name for c in model.schema.counted if c.about.words}
    missing = {c["name"]: c["missing"] for c in seen["columns"]}
    assert all(c["missing"] == pytest.approx(missing[c["name"]]) for c in facts["columns"] if c["name"] not in words)
