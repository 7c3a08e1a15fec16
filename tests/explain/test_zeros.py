"""Zeros of maximum likelihood in every view: every possible row of the lectures' tables, against exact fractions."""

from __future__ import annotations

import itertools
import json
import math
import re
from fractions import Fraction
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from command_line import run
from strategies import ALL
from test_lectures import COUNTS, MIXED, TOPICS, WIDE, mixed_mail, spam_model

import tallybayes as tb
from tallybayes.base.canon import jsonable
from tallybayes.explain.plots.evidence import nomogram

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("agg")
pytestmark = pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")

NAMES = ("Sky", "Temp", "Humid", "Wind", "Play")


def weather(*lines: str) -> dict[str, list[str]]:
    return dict(zip(NAMES, map(list, zip(*(line.split() for line in lines), strict=True)), strict=True))


TABLES: dict[str, dict[str, list[str]]] = {
    "clinic": {
        "Headache": ["severe", "no", "mild", "mild", "severe"],
        "Sore": ["mild", "severe", "mild", "no", "severe"],
        "Temperature": ["high", "normal", "normal", "normal", "normal"],
        "Cough": ["yes", "yes", "yes", "no", "yes"],
        "Diagnosis": ["Flu", "Cold", "Flu", "Cold", "Flu"],
    },
    "play": {
        "Sky": ["sunny", "sunny", "rainy", "sunny"],
        "Temp": ["warm", "warm", "cold", "warm"],
        "Humid": ["normal", "high", "high", "high"],
        "Water": ["warm", "warm", "warm", "cool"],
        "Forecast": ["same", "same", "change", "change"],
        "Play": ["yes", "yes", "no", "yes"],
    },
    "always together": weather(*["sunny cool normal false yes"] * 8, "overcast cool high true no"),
    "both labels": weather(
        *["rainy hot normal true yes", "rainy hot normal true no"] * 3,
        "sunny cool normal false yes", "sunny mild high false no", "overcast cool high true no",
    ),
    "labels": {"Play": ["yes", "yes", "yes", "yes", "no"]},
    "urn": {"ball": ["red", "red", "blue"], "urn": ["u", "u", "u"]},
    "three classes": {
        "a": ["u", "v", "v", "w", "w", "w"], "b": ["x", "x", "y", "y", "z", "z"], "y": ["p", "p", "q", "q", "r", "r"]
    },
}  # fmt: skip


class Exact:
    """Naive Bayes by relative frequencies, in fractions."""

    def __init__(self, data: dict[str, list[str]]) -> None:
        *self.columns, self.target = data
        labels = data[self.target]
        self.classes = sorted(set(labels))
        self.values = {c: sorted(set(data[c])) for c in self.columns}
        self.prior = [Fraction(labels.count(y), len(labels)) for y in self.classes]
        self.p = {
            (c, v): [
                Fraction(sum(a == v and b == y for a, b in zip(data[c], labels, strict=True)), labels.count(y))
                for y in self.classes
            ]
            for c in self.columns
            for v in self.values[c]
        }
        self.rows = [dict(zip(self.columns, r, strict=True)) for r in itertools.product(*self.values.values())]

    def joint(self, row: dict[str, str]) -> list[Fraction]:
        factors = [self.p[c, v] for c, v in row.items()]
        return [math.prod((f[y] for f in factors), start=p) for y, p in enumerate(self.prior)]

    def posterior(self, row: dict[str, str]) -> list[Fraction]:
        joint = self.joint(row) if any(self.joint(row)) else self.prior
        return [j / sum(joint) for j in joint]

    def answer(self, row: dict[str, str]) -> str:
        p = self.posterior(row)
        return self.classes[p.index(max(p))]

    def fewest(self, row: dict[str, str], to: str | None) -> int | None:
        """How many values must change, by trying all rows that some class can have."""
        now = self.answer(row)
        turned = [
            o
            for o in self.rows
            if any(self.joint(o)) and (self.answer(o) != now if to is None else self.answer(o) == to)
        ]
        sizes = [sum(row[c] != other[c] for c in row) for other in turned]
        return min(sizes, default=None)


@cache
def made(name: str) -> tuple[tb.Model, Exact]:
    exact = Exact(TABLES[name])
    schema = tb.Schema([tb.Column(c, "category") for c in exact.columns], target=exact.target)
    return tb.count(TABLES[name], schema).model(tb.Settings(smoothing=tb.MaximumLikelihood())), exact


def log(p: Fraction) -> float:
    return math.log(p) if p else -math.inf


def log_ratio(a: Fraction, b: Fraction) -> float:
    return math.nan if a == b == 0 else math.inf if b == 0 else log(a / b)


def same(found: float | None, wanted: float) -> bool:
    if found is None or math.isnan(wanted):
        return (found is None or math.isnan(found)) and math.isnan(wanted)
    return found == wanted or math.isclose(found, wanted, rel_tol=1e-12, abs_tol=1e-12)


def figures(text: str) -> None:
    """Nothing that a person cannot read, and nothing that stands for infinity."""
    assert not re.search(r"nan|inf\b|1000000|1e\+?0?9", text, re.I), text


@pytest.mark.parametrize("name", TABLES)
def test_explanations_and_odds_are_the_fractions(name: str) -> None:
    model, exact = made(name)
    assert list(model.classes) == exact.classes
    for row in exact.rows:
        want, joint = exact.posterior(row), exact.joint(row)
        explained = model.explain(row)
        np.testing.assert_allclose(explained.probabilities, np.array(want, dtype=float), rtol=1e-12)
        np.testing.assert_allclose(model.predict_proba([row])[0], np.array(want, dtype=float), rtol=1e-12)
        assert all(same(a, log(b)) for a, b in zip(explained.total, joint, strict=True))
        steps = [exact.prior, *(exact.p[c, v] for c, v in row.items())]
        for c, p in zip(explained.contributions, steps, strict=True):
            assert all(same(a, log(b)) for a, b in zip(c.parts, p, strict=True))
        figures(str(explained) + explained._repr_html_() + str(explained.odds()) + explained.odds()._repr_html_())
        assert ("every class is impossible" in str(explained)) == (not any(joint))
        told = explained.to_dict()
        assert all(same(a, log(b)) for a, b in zip(told["total"], joint, strict=True))
        for a, b in itertools.permutations(range(len(exact.classes)), 2):
            odds = explained.odds(exact.classes[a], exact.classes[b])
            lines = [log_ratio(p[a], p[b]) for p in steps]
            assert all(same(x.log_odds, w) for x, w in zip(odds.lines, lines, strict=True))
            assert all(same(x[2], w) for x, w in zip(explained.for_class(odds.label, odds.against), lines, strict=True))
            assert same(odds.total, log_ratio(joint[a], joint[b]))
            pair = [joint[a], joint[b]] if joint[a] or joint[b] else [exact.prior[a], exact.prior[b]]
            assert same(odds.probability, float(pair[0] / sum(pair)))
            for line, w in zip(odds.lines, lines, strict=True):
                low, high = line.interval
                assert low <= high and (math.isnan(w) or low <= w <= high) and low < math.inf and high > -math.inf
            low, high = odds.interval
            assert math.isnan(low) if math.isnan(odds.total) else low <= odds.total <= high and low < math.inf
            json.loads(json.dumps(jsonable(odds.to_dict()), allow_nan=False))
            printed = [x.split() for x in str(odds).splitlines()[2 : 2 + len(lines)]]
            for cells, w in zip(printed, lines, strict=True):
                text = "–" if math.isnan(w) else f"{'+' if w > 0 else '-'}∞" if math.isinf(w) else f"{w + 0.0:+.4f}"
                assert text in cells or text.replace("+0.0000", "-0.0000") in cells


@pytest.mark.parametrize("name", TABLES)
def test_how_likely_rows_are_adds_up_to_one(name: str) -> None:
    model, exact = made(name)
    found = np.exp(model.log_density(exact.rows))
    np.testing.assert_allclose(found, [float(sum(exact.joint(row))) for row in exact.rows], rtol=1e-12)
    assert math.fsum(found.tolist()) == pytest.approx(1.0, rel=1e-12)
    drawn = model.sample(300, seed=1).to_pylist()
    for row in drawn:
        label = row.pop(exact.target)
        assert exact.joint(row)[exact.classes.index(label)] > 0  # what no row of the class has is never drawn


@pytest.mark.parametrize("name", TABLES)
def test_what_would_change_the_answer(name: str) -> None:
    model, exact = made(name)
    for row in exact.rows:
        for to in (None, *exact.classes):
            found, now = model.what_if(row, to), exact.answer(row)
            assert found.answer == now == model.predict([row])[0]
            wanted = None if to == now else exact.fewest(row, to)
            assert (len(found.changes) or None) == wanted and found.smallest
            figures(str(found))
            before, after = found.probability
            p, at = exact.posterior(row), exact.classes.index(found.becomes or now)
            assert same(before, float(p[at]))
            if not found:
                assert same(after, before)
                continue
            new = exact.posterior(found.row)
            assert exact.answer(found.row) == found.becomes == (found.becomes if to is None else to) != now
            assert same(after, float(new[at])) and any(exact.joint(found.row))
            for c in found.changes:  # finite only where neither class becomes or was impossible by it
                a, b = (exact.p[c.column, v] for v in (c.before, c.after))
                sides = [exact.classes.index(found.becomes), exact.classes.index(now)]
                finite = all((a[y] == 0) == (b[y] == 0) for y in sides)
                assert math.isfinite(c.log_odds) == finite
                if finite and all(b[y] for y in sides):
                    assert same(c.log_odds, log((b[sides[0]] / a[sides[0]]) / (b[sides[1]] / a[sides[1]])))


@pytest.mark.parametrize("name", TABLES)
def test_tables_odds_and_the_nomogram(name: str) -> None:
    model, exact = made(name)
    for column in exact.columns:
        table = model.table(column)
        for v, values in zip(table.rows, table.values, strict=True):
            np.testing.assert_allclose(values, np.array(exact.p[column, v], dtype=float), rtol=1e-12)
        if len(exact.classes) == 2:
            for o in model.odds(column, exact.classes[1]):
                b, a = exact.p[column, o.value]
                assert o.ratio == (math.inf if b == 0 else pytest.approx(float(a / b), rel=1e-12))
            assert ("∞" in repr(model.odds(column, exact.classes[1]))) == any(
                p[0] == 0 < p[1] for (c, _), p in exact.p.items() if c == column
            )
    if len(exact.classes) < 2:
        return
    a, b = (1, 0) if len(exact.classes) == 2 else (0, 2)
    drawn = nomogram(model, exact.classes[a], exact.classes[b], 10)
    assert drawn.adds_up and same(drawn.prior, log_ratio(exact.prior[a], exact.prior[b]))
    points = {(s.column, v): p for s in drawn.scales for v, p in zip(s.values, s.points, strict=True)}
    for row in exact.rows:
        joint, read = exact.joint(row), drawn.prior
        for key in row.items():
            read += float(points[key])
        assert same(read, log_ratio(joint[a], joint[b]))
    figure = model.plot.nomogram(exact.classes[a], exact.classes[b]).figure_
    figure.canvas.draw()
    for row in exact.rows[:3]:
        model.plot.waterfall(row).figure_.canvas.draw()
    matplotlib.pyplot.close("all")


@pytest.mark.parametrize("name", TABLES)
def test_exports_give_the_fractions(name: str) -> None:
    model, exact = made(name)
    wanted = np.array([[float(p) for p in exact.posterior(row)] for row in exact.rows])
    rows = {c: [row[c] for row in exact.rows] for c in exact.columns}
    said = json.loads(model.export(format="json"))
    for row, want in zip(exact.rows, wanted, strict=True):
        total = np.array(said["log_prior"], dtype=float)
        for c in said["columns"]:
            logs = c["logs"][c["values"].index(row[c["name"]])]
            total = total + [-np.inf if v is None else v for v in logs]
        p = np.exp(total if np.isfinite(total).any() else np.array(said["log_prior"], dtype=float))
        np.testing.assert_allclose(p / p.sum(), want, rtol=1e-12)
    if exact.columns:
        with duckdb.connect() as connection:
            connection.register("rows", pa.table({"n": list(range(len(exact.rows))), **rows}))
            query = model.to_sql("rows", keep=["n"])
            for statement in query.setup:
                connection.execute(statement)
            found = connection.sql(query.query).to_arrow_table().sort_by("n").to_pydict()
        np.testing.assert_allclose(
            np.array([found[f"P({c})"] for c in exact.classes]).T, wanted, rtol=1e-12, atol=1e-300
        )
        assert found["prediction"] == [exact.answer(row) for row in exact.rows]
        runtime = pytest.importorskip("onnxruntime")
        session = runtime.InferenceSession(model.export(format="onnx"))
        given: dict[str, Any] = {i.name: np.array(rows[i.name], object) for i in session.get_inputs()}
        (p,) = session.run(["probabilities"], given)
        np.testing.assert_allclose(p, wanted, rtol=1e-9)


def test_the_report_and_the_command_of_the_clinic(tmp_path: Any) -> None:
    model, _ = made("clinic")
    wrong = {**TABLES["clinic"], "Diagnosis": ["Cold", "Flu", "Flu", "Cold", "Flu"]}
    page, facts = tb.report(model, wrong), tb.report_facts(model, wrong)
    assert "∞" in page and "e+308" not in page and "nan" not in page
    assert json.loads(json.dumps(facts, allow_nan=False)) == facts
    figures("".join(m["what_if"] for m in facts["mistakes"]))
    path, asked = tmp_path / "clinic.tb.parquet", tmp_path / "bob.csv"
    model.save(path)
    asked.write_text("Headache,Sore,Temperature,Cough\nsevere,mild,high,no\n")
    out = run("explain", path, asked, "--what-if").out
    assert "3 changes turn Flu into Cold" in out and "+∞" in out
    told = json.loads(run("explain", path, asked, "--what-if", "--json").out)
    assert told["total"] == ["-Infinity", "-Infinity"] and told["probabilities"] == pytest.approx([0.4, 0.6])
    kept = run("explain", path, asked, "--what-if", "--fixed", "Sore").out
    assert "Flu stays" in kept


def test_words_that_a_class_never_had() -> None:
    """Of two such words each has to go; presence, levels and bags, by brute force over all small bags."""
    words = ["ball", "goal", "vote", "law", "the"]
    texts = {
        "w": [["ball", "goal", "the"], ["ball", "the"], ["vote", "law", "the"], ["vote", "the"], ["law", "the"]],
        "y": ["sport", "sport", "state", "state", "state"],
    }
    for family in ("multinomial", "bernoulli", "levels"):
        schema = tb.Schema([tb.Column("w", "bag", levels=2 if family == "levels" else None)], target="y")
        settings = tb.Settings(smoothing=tb.MaximumLikelihood(), families={"w": family}, weights={"w": 0.01})
        model = tb.count(texts, schema).model(settings)
        bags = [list(b) for n in range(1, 4) for b in itertools.combinations(words, n)]
        joint, answers = model.log_joint([{"w": b} for b in bags]), model.predict([{"w": b} for b in bags])
        every = [list(b) for n in range(6) for b in itertools.combinations(words, n)]
        possible = np.isfinite(model.log_joint([{"w": b} for b in every])).any(axis=1)
        others = model.predict([{"w": b} for b in every])
        for bag, answer in zip(bags, answers, strict=True):
            found = model.what_if({"w": bag})
            sizes = [
                len(set(bag) ^ set(b)) for b, p, o in zip(every, possible, others, strict=True) if p and o != answer
            ]
            assert found.answer == answer and (len(found.changes) or None) == min(sizes, default=None), (family, bag)
            figures(str(found) + str(model.explain({"w": bag}).odds()))
        assert np.isneginf(joint).any()


# ---- the examples of the lectures that have words and numbers: every view against the sums of the model itself


def example(
    data: dict[str, list[Any]], target: str, families: Any = None, **columns: Any
) -> tuple[tb.Model, list[dict]]:
    """A model by relative frequencies, its rows, and rows that have one value of another row."""
    schema = tb.infer(data, target)
    for name, kind in columns.items():
        schema = schema.with_column(name, **({"kind": kind} if isinstance(kind, str) else kind))
    settings = tb.Settings(smoothing=tb.MaximumLikelihood(), families=families or {})
    rows = [dict(zip(data, r, strict=True)) for r in zip(*data.values(), strict=True)][:8]
    rows = [{k: v for k, v in row.items() if k != target} for row in rows]
    mixed = [{**a, name: b[name]} for a, b in itertools.pairwise(rows) for name in a]
    return tb.count(data, schema).model(settings), [*rows[:4], *mixed[:6]]


def readable(text: str) -> None:
    assert not re.search(r"\bnan\b|\binf\b|e\+308", text, re.I), text


def mail() -> dict[str, list[Any]]:
    rows = mixed_mail()
    return {name: [row[name] for row in rows] for name in rows[0]}


BAG = {"kind": "bag", "levels": 3}
TALL = {"cm": [150.0, 160.0, 170.0, 170.0, 180.0, 190.0], "who": list("aaabbb")}
EXAMPLES: dict[str, Any] = {
    "play, wide": lambda: example(WIDE, "Play", Wind="category"),
    **{f"topics by {f}": lambda f=f: example(TOPICS, "topic", {"words": f}, words=BAG)
       for f in ("multinomial", "bernoulli", "levels")},
    "words as columns, levels": lambda: example(COUNTS, "topic", {"ball": "levels", "vote": "levels"}),
    "words as columns, rates": lambda: example(COUNTS, "topic", {"ball": "poisson", "vote": "poisson"}),
    "words as columns, curves": lambda: example(COUNTS, "topic", {"ball": "kernel", "vote": "bins"}),
    "mail": lambda: example(mail(), "label", MIXED),
    "heights": lambda: example(TALL, "who", {"cm": "gaussian"}),
    "heights, one deviation": lambda: example(TALL, "who", {"cm": "gaussian-shared"}),
    "a message": lambda: (spam_model(), [{"words": words} for words in (["Gary", "to", "lose"], ["you", "other"], [])]),
}  # fmt: skip


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_of_the_lectures_passes_through_every_view(name: str) -> None:
    model, rows = EXAMPLES[name]()
    joint, p, answers = model.log_joint(rows), model.predict_proba(rows), model.predict(rows)
    assert not np.isnan(joint).any() and np.allclose(p.sum(axis=1), 1.0)
    for i, row in enumerate(rows):
        explained = model.explain(row)
        np.testing.assert_allclose(explained.probabilities, p[i], rtol=1e-9, atol=1e-300)
        np.testing.assert_allclose(explained.total, joint[i], rtol=1e-9, atol=1e-9)
        parts = np.sum([c.parts for c in explained.contributions], axis=0)
        np.testing.assert_allclose(parts, joint[i], rtol=1e-9, atol=1e-9)
        odds = explained.odds(*model.classes[:2])
        with np.errstate(invalid="ignore"):
            assert same(odds.total, float(joint[i, 0] - joint[i, 1])) or np.isclose(
                odds.total, joint[i, 0] - joint[i, 1]
            )
        readable(str(explained) + explained._repr_html_() + str(odds))
        json.dumps(jsonable(explained.to_dict()), allow_nan=False)
        found = model.what_if(row)
        assert found.answer == answers[i]
        readable(str(found))
        if found:
            turned = [found.row]
            assert model.predict(turned)[0] == found.becomes != answers[i]
            at = model.class_number(found.becomes)
            np.testing.assert_allclose(found.probability, (p[i, at], model.predict_proba(turned)[0, at]), rtol=1e-6)
    for column in model.beliefs:
        table = model.table(column)
        readable(str(table))
        if table.title in ("P(value given class)", "P(word given class)", "P(bin given class)"):
            whole = np.allclose(table.values.sum(axis=0), 1.0, rtol=1e-12)
            assert whole == (name != "a message")  # of which the lecture writes only the words that it needs
        if table.title.startswith("P("):
            for o in model.odds(column, model.classes[0]):
                inside = table[o.value, model.classes[0]]
                assert o.inside == inside and (o.ratio == math.inf) == (o.outside == 0 < inside)
    if ALL or name in ("topics by levels", "mail"):
        model.plot.nomogram().figure_.canvas.draw()
        model.plot.waterfall(rows[0]).figure_.canvas.draw()
        matplotlib.pyplot.close("all")
    else:
        nomogram(model, None, None, 10)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_of_the_lectures_is_exported_or_refused_with_a_hint(name: str) -> None:
    model, rows = EXAMPLES[name]()
    p = model.predict_proba(rows)
    refused = []
    for exported in (lambda: model.export(format="json"), lambda: model.to_sql("rows", keep=["n"])):
        try:
            exported()
        except tb.TallybayesError as error:
            refused.append(error.hint)
        else:
            refused.append(None)
    assert all(hint is None or len(hint) > 20 for hint in refused)
    if refused[0] is None:
        json.loads(model.export(format="json"), parse_constant=lambda c: pytest.fail(f"{c} is no JSON"))
    if refused[1] is not None:
        return
    query = model.to_sql("rows", keep=["n"])
    with duckdb.connect() as connection:
        connection.register("rows", pa.Table.from_pylist([{"n": i, **row} for i, row in enumerate(rows)]))
        for statement in query.setup:
            connection.execute(statement)
        found = connection.sql(query.query).to_arrow_table().sort_by("n").to_pydict()
    np.testing.assert_allclose(np.array([found[f"P({c})"] for c in model.classes]).T, p, rtol=1e-9, atol=1e-300)
