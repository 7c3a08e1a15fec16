"""Random tables through everything: nothing but refusals with a hint, and all roads to an answer agree.

`python tests/campaign.py --tables 10000 --seed 1` runs as many as one likes; a test that fails names its command.
"""

from __future__ import annotations

import random

import pytest
from campaign import ROADS, Finding, numbered, road, shrunk, walked, watched
from hypothesis import given
from hypothesis import strategies as st
from random_tables import Drawn, Table, random_table
from strategies import ALL, examples

import tallybayes as tb

AT_ONCE = 10
TABLES = 4000 if ALL else 40
SEED = random.randrange(1 << 32) if ALL else 0


@pytest.mark.parametrize("first", range(0, TABLES, AT_ONCE))
def test_any_table_goes_every_road(first):
    for number in range(first, first + AT_ONCE):
        walk = watched(numbered(SEED, number), None, number)
        command = f"python tests/campaign.py --seed {SEED} --table {number} --shrink"
        assert not walk.found, f"{command}\n" + "\n".join(f.trace or f.what for f in walk.found)


@given(rng=st.randoms(use_true_random=False), seed=st.integers(0, 99))
@examples(8)
def test_a_small_table_goes_every_road(rng, seed):
    walk = walked(random_table(rng, most_rows=6), None, seed)
    assert not walk.found, "\n".join(f.trace for f in walk.found)


# ---- the campaign itself


def test_a_table_is_the_same_for_the_same_seed():
    tables = [numbered(7, 3), numbered(7, 3)]
    assert repr(tables[0]) == repr(tables[1]) != repr(numbered(8, 3))


@pytest.fixture
def broken():
    """A road on which every table with a column called 'bad' falls."""

    def fallen(walk):
        assert "bad" not in walk.table.columns or walk.table.rows < 2, "fallen"

    road(1.0)(fallen)
    yield "fallen"
    del ROADS["fallen"]


def test_what_is_found_is_made_small(broken):
    columns = {n: Drawn([str(i % 3) for i in range(8)]) for n in ("a", "bad", "c")}
    table = Table({**columns, "y": Drawn(list("pq") * 4)}, "y", "pandas", {"effort": "quick"})
    [finding] = walked(table, (broken,)).found
    assert finding.road == broken and "fallen" in finding.what
    small = shrunk(table, finding, 0, seconds=8)
    assert set(small.columns) == {"bad", "y"} and small.rows == 2 and small.form == "dict"


def test_a_refusal_is_a_fault_where_the_road_must_be_open(monkeypatch):
    table = Table({"a": Drawn(["u", "v"] * 3), "y": Drawn(["p", "q"] * 3)}, "y")

    def refuse(*_, **__):
        raise tb.DataError("no", hint="yes.")

    monkeypatch.setattr(tb.Model, "save", refuse)
    monkeypatch.setattr(tb.Model, "export", refuse)
    walk = walked(table, ("saved", "card"))
    assert [f.road for f in walk.found] == ["saved"] and walk.refused == [("card", "no")]
    assert isinstance(walk.found[0], Finding) and "DataError" in walk.found[0].where


def test_a_bare_error_is_a_fault(monkeypatch):
    def broken(*_, **__):
        raise KeyError("a")

    monkeypatch.setattr(tb.Model, "export", broken)
    table = Table({"a": Drawn(["u", "v"] * 3), "y": Drawn(["p", "q"] * 3)}, "y")
    assert [f.road for f in walked(table, ("card",)).found] == ["card"]
