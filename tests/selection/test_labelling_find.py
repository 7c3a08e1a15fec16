"""Rows of a class that are looked for: by hand from the tally, and in tables the order of P(class)."""

from __future__ import annotations

import math
import random
from collections import Counter

import numpy as np
import pytest
from strategies import ALL
from test_labelling import drawn

import tallybayes as tb


@pytest.mark.parametrize("seed", range(20) if ALL else range(2))
def test_rows_of_a_class_are_looked_for_by_its_words(seed: int) -> None:
    """By hand, from the tally: words under a smoothing of their own, divided by the root of a row's length."""
    rng = random.Random(seed)
    table = drawn(rng, 300, 3)
    names = ["text", "sky", "y"]
    head, pool = {n: table[n][:50] for n in names}, {n: table[n][50:] for n in ("text", "sky")}
    weight, presence = (0.4, True) if seed % 2 else (1.0, False)
    settings = tb.Settings(families={"text": tb.families.Multinomial(presence=presence)}, weights={"text": weight})
    model = tb.count(head, tb.infer(head, "y", kinds={"text": "text"})).model(settings)
    words_of = lambda text: (sorted({*text.split()}) if presence else text.split()) if text else []  # noqa: E731
    work = tb.Labelling(model, pool, sample=20, shortlist=4)
    for step in range(4):
        found = work.next(5, find="c1")
        counted = {c: Counter[str]() for c in ("c0", "c1", "c2")}
        given = [(i, table["y"][i]) for i in range(50)] + [(50 + row, label) for row, label in work.labels.items()]
        for row, label in given:
            counted[label].update(words_of(table["text"][row]))
        known = set().union(*counted.values())
        said = work.model.parts(pool)["sky"] + work.model.start
        for i, text in enumerate(pool["text"]):
            words = words_of(text)
            for y, n in enumerate(counted.values()):
                logs = [math.log(n[w] + 0.3) - math.log(n.total() + 0.3 * len(known)) for w in words if w in known]
                share = sum(logs) / math.sqrt(max(len(words), 1))
                said[i, y] += weight * share
        ahead = said[:, 1] - np.logaddexp(said[:, 0], said[:, 2])
        assert np.allclose(work._scored.pool.ahead(np.arange(250), 1), ahead, rtol=0, atol=1e-9)
        ahead[list(work.labels)] = -np.inf
        assert np.allclose(ahead[found], np.sort(ahead)[::-1][:5], rtol=0, atol=1e-9)
        for row in found if step != 1 else work.next(3):
            work.label(row, table["y"][50 + row])
        if step == 2:
            work.undo()


def test_a_class_of_a_table_is_looked_for_by_its_odds() -> None:
    """Without words and of two classes the order is that of P(class), where it is 1 to the last digit, too."""
    rng = random.Random(2)
    table = drawn(rng, 200, 2)
    names = ["sky", "wind", "age"]
    model = tb.fit({n: table[n][:60] for n in [*names, "y"]}, "y", calibrate=False)
    pool = {n: table[n][60:] for n in names}
    p = model.predict_proba(pool)[:, 1]
    found = tb.Labelling(model, pool).next(140, find="c1")
    assert np.allclose(p[found], np.sort(p)[::-1], rtol=0, atol=1e-12)
    schema = tb.Schema([tb.Column("sky", "category")], target="y")
    one = tb.count({"sky": ["sun"] * 3, "y": ["a"] * 3}, schema).model()
    assert len(tb.Labelling(one, {"sky": ["sun", "fog"]}).next(2, find="a")) == 2
    cells = {f"c{i}": ["a"] * 30 + ["b"] * 30 for i in range(40)} | {"y": ["yes"] * 30 + ["no"] * 30}
    columns = [tb.Column(n, "category") for n in cells if n != "y"]
    sure = tb.count(cells, tb.Schema(columns, target="y")).model()
    rows = {f"c{i}": ["b" if i < 2 else "a", "a", "b" if i < 1 else "a"] for i in range(40)}
    assert (sure.predict_proba(rows)[:, sure.class_number("yes")] == 1).all()
    assert tb.Labelling(sure, rows).next(3, find="yes") == [1, 2, 0]
