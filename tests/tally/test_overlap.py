"""Whether rows are among those counted: all, some, none, and never a false alarm on rows that are new."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from strategies import ALL

import tallybayes as tb
from tallybayes.tally.overlap import overlap


def people(n: int, seed: int) -> dict[str, Any]:
    """Numbers, a name that many share, and a class that shifts both."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    names = rng.zipf(1.6, n) % 4000
    return {"size": rng.normal(y, 1.0), "name": [f"n{v}" for v in names], "y": np.where(y, "a", "b")}


def taken(data: dict[str, Any], rows: Any) -> dict[str, Any]:
    return {k: np.array(v)[rows] for k, v in data.items()}


def joined(*parts: dict[str, Any]) -> dict[str, Any]:
    return {k: np.concatenate([p[k] for p in parts]) for k in parts[0]}


@pytest.fixture(scope="module")
def data() -> dict[str, Any]:
    return people(1200, 1)


@pytest.fixture(scope="module", params=[False, True], ids=["counts", "receipts"])
def tally(request: pytest.FixtureRequest, data: dict[str, Any]) -> tb.Tally:
    train = taken(data, slice(0, 800))
    return tb.count(train, tb.infer(train, "y", receipts=request.param))


def test_rows_are_known_exactly_or_by_all_signs(tally: tb.Tally, data: dict[str, Any]) -> None:
    by_receipts = tally.schema.receipts
    train, test = taken(data, slice(0, 800)), taken(data, slice(800, 1200))
    order = np.random.default_rng(0).permutation(800)
    found = overlap(tally, taken(train, order))
    assert (found.verdict, found.rows, found.counted) == ("all", 800, 800)
    assert str(found) == "these are the very rows that the model has learnt from"
    some = overlap(tally, taken(train, order[:200]))
    assert some.verdict == "all" and some.flatters and "new rows would bring about" in some.says
    assert some.counted == (200 if by_receipts else None)
    held = overlap(tally, test)
    assert held.verdict == ("none" if by_receipts else "no sign") and not held.flatters
    half = overlap(tally, joined(test, taken(train, order[:400])))
    assert half.counted == (400 if by_receipts else None)
    assert half.verdict == "some" if by_receipts else half.verdict in ("some", "no sign")
    assert overlap(tally, data).verdict == "some"


def test_a_label_or_value_that_differs_is_another_row(tally: tb.Tally, data: dict[str, Any]) -> None:
    train = taken(data, slice(0, 800))
    labels = train["y"].copy()
    labels[0] = "c"  # a class that was never counted
    found = overlap(tally, {**train, "y": labels})
    assert found.verdict == "some" and found.counted == (799 if tally.schema.receipts else None)
    unlabelled = np.where(np.arange(800) < 3, None, train["y"])
    assert overlap(tally, {**train, "y": unlabelled}).verdict == "all"


def test_rows_that_all_rows_are_like_prove_nothing() -> None:
    rng = np.random.default_rng(3)
    coins = {"a": rng.choice(["h", "t"], 900), "b": rng.choice(["h", "t"], 900), "y": rng.choice(["u", "v"], 900)}
    train, test = taken(coins, slice(0, 600)), taken(coins, slice(600, 900))
    for receipts in (False, True):
        tally = tb.count(train, tb.infer(train, "y", receipts=receipts))
        assert overlap(tally, train).verdict == "all"
        found = overlap(tally, test)
        assert found.verdict == ("no sign" if receipts else "unknown")
        assert ("as rows that are alike do" if receipts else "cannot be told") in found.says


def test_what_holds_no_counts_or_not_all_of_them_says_so(data: dict[str, Any]) -> None:
    assert overlap(None, data).verdict == "unknown"
    assert "copy without rare values" in overlap(tb.count(data, tb.infer(data, "y")).at_least(5), data).says


def test_weights_are_part_of_a_row(data: dict[str, Any]) -> None:
    heavy = {**data, "w": np.arange(1200) % 3 + 1.0}
    tally = tb.count(heavy, tb.infer(heavy, "y", weights="w"))
    assert overlap(tally, heavy).verdict == "all"
    assert overlap(tally, taken(heavy, slice(0, 100))).verdict == "unknown"
    assert overlap(tally, {**heavy, "w": heavy["w"] + 1}).verdict == "no sign"


def test_texts_are_known_by_their_words() -> None:
    rng = np.random.default_rng(4)
    texts = [" ".join(f"w{v % 5000}" for v in rng.zipf(1.5, 12)) for _ in range(600)]
    rows = {"text": texts, "y": rng.choice(["u", "v"], 600)}
    tally = tb.count(taken(rows, slice(0, 400)), tb.Schema([tb.Column("text", "text")], "y"))
    assert overlap(tally, taken(rows, slice(0, 100))).verdict == "all"
    assert overlap(tally, taken(rows, slice(400, 600))).verdict == "no sign"


def test_rows_of_another_mixture_raise_no_alarm() -> None:
    """Where a name is mostly missing, or the rows are those of one customer, new names are few without any overlap."""
    rng = np.random.default_rng(5)
    rows = {"name": [f"n{v}" for v in range(900)], "y": rng.choice(["u", "v"], 900)}
    train, later = taken(rows, slice(0, 600)), taken(rows, slice(600, 900))
    tally = tb.count(train, tb.Schema([tb.Column("name", "category")], "y"))
    assert overlap(tally, taken(train, slice(0, 100))).verdict == "all"
    for some in (3, 0):
        assert not overlap(tally, {**later, "name": np.where(np.arange(300) < some, later["name"], None)}).flatters
    assert not overlap(tally, {**later, "name": np.full(300, train["name"][0])}).flatters


def test_new_rows_raise_no_alarm() -> None:
    """Held-out rows of many made tables; the whole campaign has 300 of them."""
    alarms = []
    for seed in range(300 if ALL else 25):
        rng = np.random.default_rng(seed)
        rows = people(int(rng.integers(40, 600)), seed)
        cut = len(rows["y"]) * int(rng.integers(3, 8)) // 10
        train, test = taken(rows, slice(0, cut)), taken(rows, slice(cut, None))
        tally = tb.count(train, tb.infer(train, "y", receipts=bool(seed % 2)))
        alarms.append(overlap(tally, test).flatters)
        assert overlap(tally, train).verdict == "all"
    assert sum(alarms) <= len(alarms) // 100
