"""Canonical text: what Arrow and files can hold, and in which order it is listed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import tallybayes as tb
from tallybayes.base import canon

LONE = "p\ud800"  # half of a UTF-16 pair, as careless JSON holds it: a Python string that has no bytes


def test_lone_surrogates_are_replaced_and_nothing_else_is():
    assert canon.text(LONE) == "p\ufffd"
    assert canon.text("\udfffé\ud800") == "\ufffdé\ufffd"
    assert canon.text(np.str_("q\udc80")) == "q\ufffd"
    for whole in ("", "ascii", "é", "\U0001f600", "\ud7ff\ue000"):
        assert canon.text(whole) == whole


@pytest.mark.parametrize(
    "make", [list, np.array, lambda v: pd.Series(v, dtype=object)], ids=["list", "numpy", "pandas"]
)
def test_lone_surrogates_are_counted_as_values_and_as_classes(make):
    data = {"a": make([LONE, "q", LONE, "q"]), "b": make(["q", LONE, "q", LONE]), "y": ["u", "v", "u", "v"]}
    schema = tb.Schema([tb.Column("a", "category"), tb.Column("b", "category")], target="y")
    tally = tb.count(data, schema=schema)
    same = tb.count({**data, "a": ["p\ufffd", "q"] * 2, "b": ["q", "p\ufffd"] * 2}, schema=schema)
    assert tally == same and tally.digest == same.digest
    assert tally.model().predict(data).tolist() == ["u", "v", "u", "v"]
    label = tb.Schema([tb.Column("y", "category")], target="a")
    assert tb.count(data, schema=label).classes == ("p\ufffd", "q")
    joint = tb.JointDistribution.of(data)
    assert joint.probability(a=LONE, b="q") == joint.probability(a="p\ufffd") == 0.5


def test_numbers_come_by_size_before_texts():
    assert canon.ordered([10, "9", 9.0, "b", None, "nan", "a", -1]) == ("-1", "9", "10", "a", "b", "nan")


def test_a_label_comes_back_only_where_its_text_is_its_own():
    for whole in (0, -3, 2**53 + 1, 10**21, 2**70, 10**400, -(10**30)):
        assert canon.from_text(canon.text(whole), "int") == whole
    for text in ("1e3", "007", "1e400", "tree", "-0", "+1"):
        assert canon.from_text(text, "int") == text
    for text in ("1.50", "1e3", "123456789012345678901234567890.5", "nan", "-0"):
        assert canon.from_text(text, "float") == text
    assert canon.from_text("20240101", "date") == "20240101" and canon.from_text("0.1", "float") == 0.1
