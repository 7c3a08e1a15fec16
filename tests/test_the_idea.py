"""`docs/the_idea.py`, the algorithm in plain Python, as an oracle for the library: counts exactly, scores to 1e-9."""

from __future__ import annotations

import ast
import importlib.util
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import examples

import tallybayes as tb

PATH = Path(__file__).parent.parent / "docs" / "the_idea.py"
_spec = importlib.util.spec_from_file_location("the_idea", PATH)
assert _spec is not None and _spec.loader is not None
idea = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(idea)

KINDS = {"sky": "category", "wind": "category", "temp": "number", "words": "bag"}
SCHEMA = tb.Schema([tb.Column(name, kind) for name, kind in KINDS.items()], target="y")


# ---- the file itself


def test_it_has_at_most_150_lines():
    lines = PATH.read_text(encoding="utf-8").splitlines()
    assert len(lines) <= 150
    assert max(map(len, lines)) <= 120


def test_it_imports_only_the_standard_library():
    tree = ast.parse(PATH.read_text(encoding="utf-8"))
    names = {a.name for node in ast.walk(tree) if isinstance(node, ast.Import) for a in node.names}
    names |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    assert names
    assert {name.partition(".")[0] for name in names} <= sys.stdlib_module_names


def test_it_prints_the_clinic():
    out = subprocess.run([sys.executable, "-I", "-W", "error", PATH], capture_output=True, text=True, check=True).stdout
    assert "P(Flu) = 3/5" in out
    assert "P(severe given Flu) = 1/2" in out
    assert "Ann: joint Cold 3/125, Flu 1/125; P(Cold) = 0.7500, P(Flu) = 0.2500" in out
    assert "Bob: joint Cold 1/500, Flu 3/250; P(Cold) = 0.1429, P(Flu) = 0.8571" in out
    assert "never having met him: True" in out


# ---- the oracle

words = st.sampled_from(["a", "b", "c", "ß"])
values = st.sampled_from([-1.5, 0.0, 0.1, 1 / 3, 2.0, 7.25, 1e8, -1e-8]) | st.integers(-(10**6), 10**6).map(
    lambda k: k / 1000
)


@st.composite
def mixed(draw, min_size=1, max_size=12, labels=("p", "q", None)):
    row = st.fixed_dictionaries({
        "sky": st.sampled_from(["sunny", "rainy", "ünder", None]),
        "wind": st.sampled_from(["strong", "weak", None]),
        "temp": values | st.none(),
        "words": st.lists(words, max_size=5) | st.none(),
        "y": st.sampled_from(labels),
    })  # fmt: skip
    return draw(st.lists(row, min_size=min_size, max_size=max_size))


def as_dict(tally: tb.Tally) -> dict:
    """A library tally in the form of the idea's: (column, slot, class) → exact number."""
    out = {}

    def read(column, sheet, amount, slot):
        numbers, exponent = sheet.exact(amount, len(tally.classes))
        for i, name in enumerate(sheet.slot_names):
            for j, label in enumerate(tally.classes):
                if numbers[i, j]:
                    out[column, slot or name, label] = int(numbers[i, j]) * Fraction(2) ** exponent

    if "rows" in tally.labels.sheets:
        read(idea.ROWS, tally.labels.sheets["rows"], "n", "n")
    for column, kind in KINDS.items():
        sheets = tally.columns[column].sheets
        if kind == "number" and "moments" in sheets:
            for amount in ("n", "x", "xx"):
                read(column, sheets["moments"], amount, amount)
        for name in ("values", "words"):
            if name in sheets:
                read(column, sheets[name], "n", None)
    return out


@given(a=mixed(min_size=0), b=mixed(min_size=0, labels=("q", "r")))
@examples(60)
def test_counts_agree_exactly(a, b):
    first, second = tb.count(a, SCHEMA), tb.count(b, SCHEMA)
    mine, yours = idea.count(a, KINDS, "y"), idea.count(b, KINDS, "y")
    assert as_dict(first) == mine
    assert as_dict(first + second) == idea.add(mine, yours) == idea.count(a + b, KINDS, "y")
    assert as_dict(first - second) == idea.subtract(mine, yours)
    assert list(first.classes) == idea.classes(mine)


@given(train=mixed(min_size=4, max_size=14), test=mixed(max_size=4), alpha=st.sampled_from([0.25, 1, 2]))
@examples(80)
def test_log_scores_agree(train, test, alpha):
    tally = idea.count(train, KINDS, "y")
    labels = idea.classes(tally)
    # a class without numbers, or with no spread, is where the library's floor takes over
    assume(labels and all(tally.get(("temp", "n", y), 0) > 1 for y in labels))
    spread = [idea.mean_and_variance(tally, "temp", y)[1] for y in labels]
    assume(min(spread) > Fraction(1, 10**12) * max(spread) > 0)
    settings = tb.Settings(smoothing=tb.Laplace(alpha), families={"temp": "gaussian"})
    model = tb.count(train, SCHEMA).model(settings)
    assert list(model.classes) == labels
    joint, p = model.log_joint(test), model.predict_proba(test)
    for i, row in enumerate(test):
        score = idea.scores(tally, KINDS, row, Fraction(alpha))
        assert joint[i].tolist() == pytest.approx([score[y] for y in labels], rel=1e-9, abs=1e-9)
        assert p[i].tolist() == pytest.approx([idea.posterior(score)[y] for y in labels], rel=1e-6, abs=1e-9)


@given(train=mixed(min_size=2), test=mixed(max_size=3))
@examples(40)
def test_maximum_likelihood_agrees_zeros_included(train, test):
    kinds = {name: kind for name, kind in KINDS.items() if kind == "category"}
    schema = tb.Schema([tb.Column(name, kind) for name, kind in kinds.items()], target="y")
    tally = idea.count(train, kinds, "y")
    labels = idea.classes(tally)
    # a class in which a column has no value at all has no frequencies to compare
    assume(labels and all(any((c, s, y) in tally for s in idea.slots(tally, c)) for c in kinds for y in labels))
    joint = tb.count(train, schema).model(tb.Settings(smoothing=tb.MaximumLikelihood())).log_joint(test)
    for i, row in enumerate(test):
        score = idea.scores(tally, kinds, row, 0)
        for y, found in zip(labels, joint[i].tolist(), strict=True):
            assert found == score[y] if math.isinf(score[y]) else found == pytest.approx(score[y], rel=1e-9, abs=1e-9)


def test_a_larger_table_agrees():
    rng = np.random.default_rng(12)
    rows = [
        {
            "sky": str(rng.choice(["sunny", "rainy", "foggy"])),
            "wind": None if rng.random() < 0.2 else "strong",
            "temp": 1e6 + float(rng.normal(k, 1 + k)),
            "words": [str(w) for w in rng.choice(list("abcdef"), rng.integers(0, 9))],
            "y": "pqr"[k],
        }
        for k in rng.integers(0, 3, 150).tolist()
    ]
    tally = idea.count(rows, KINDS, "y")
    model = tb.count(rows, SCHEMA).model(tb.Settings(families={"temp": "gaussian"}))
    assert as_dict(model.tally) == tally
    joint = model.log_joint(rows[:20])
    for i, row in enumerate(rows[:20]):
        assert joint[i].tolist() == pytest.approx(list(idea.scores(tally, KINDS, row).values()), rel=1e-9, abs=1e-9)
