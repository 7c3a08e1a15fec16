"""Folds of a look by what its rows hold: the same for every order of the file, copies and groups never cut."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_splits import SCHEMA as PLAIN

import tallybayes as tb
from tallybayes.data import encode
from tallybayes.data.sources import Batch, open_source
from tallybayes.selection.choose.deal import Deal, canonical_order, copies, deal, dealt, in_blocks, row_hashes
from tallybayes.selection.folds import count_folds

SCHEMA = PLAIN.with_column("c × n", kind="pair", of=(tb.Side("c"), tb.Side("n", "number", cuts=(0.0,)))).with_weights(
    "weight"
)


def mixed(n: int = 240, seed: int = 0) -> list[dict[str, Any]]:
    """Rows of every kind of column with missing values, labels too, and copies that differ in their weight at most."""
    rng = np.random.default_rng(seed)
    words = ["ant", "bee", "cow", "dog", "eel"]

    def some(value: Any) -> Any:
        return None if rng.random() < 0.1 else value

    rows = [
        {
            "n": some(float(rng.choice([-0.0, 0.0, 1.5, round(rng.normal(), 2)]))),
            "c": some(str(rng.choice(["red", "green", "blue"]))),
            "t": some(" ".join(rng.choice(words, rng.integers(0, 6)))),
            "w": some(rng.choice(words, rng.integers(0, 3)).tolist()),
            "v": some([round(rng.normal(), 1), 1.0]),
            "weight": float(rng.choice([0.0, 0.5, 1.0, 2.0])),
            "y": some(str(rng.choice(["p", "q", "r"], p=[0.6, 0.3, 0.1]))),
            "who": f"g{rng.integers(0, 17)}",
            "when": int(rng.integers(0, 90)),
        }
        for _ in range(n)
    ]
    rows.append({**rows[0], "y": "alone", "weight": 1.0})
    return rows + [{**r, "weight": float(rng.choice([0.5, 1.0]))} for r in rows[:60]]


def look_of(rows: Any) -> Batch:
    (batch,) = open_source(rows).batches()
    return batch


def content(row: dict[str, Any]) -> str:
    """What a row holds, as a person sees it: −0 is 0, and the words of a bag have no order."""
    one = {
        **row,
        "n": None if row["n"] is None else row["n"] + 0.0,
        "w": sorted(row["w"] or []),
        "has": row["w"] is None,
    }
    return repr([one[k] for k in ("y", "n", "c", "t", "w", "has", "v", "weight")])


def shuffles(rows: list[Any], times: int = 10) -> list[list[Any]]:
    rng = np.random.default_rng(1)
    return [rows] + [[rows[i] for i in rng.permutation(len(rows))] for _ in range(times)]


def folds_of(rows: list[dict[str, Any]], folds: int = 5, **how: Any) -> dict[str, list[int]]:
    """The folds of all rows of one content."""
    look = look_of(rows)
    found = dealt(encode.labelled(SCHEMA, look), look, folds, **how)
    out: dict[str, list[int]] = defaultdict(list)
    for row, fold in zip(found.order.tolist(), found.folds.tolist(), strict=True):
        out[content(rows[row]) + (repr(rows[row]["who"]) if "groups" in how else "")].append(fold)
    return {k: sorted(v) for k, v in out.items()}


@pytest.mark.parametrize("how", [{}, {"groups": "who"}, {"order": "when"}])
def test_folds_do_not_depend_on_the_order_of_rows(how: dict[str, Any]) -> None:
    rows = mixed()
    if "order" in how:  # equal rows of two moments are not interchangeable
        rows = [{**r, "n": float(r["when"])} for r in rows]
    first, *others = [folds_of(each, **how) for each in shuffles(rows)]
    assert sum(map(len, first.values())) > 150
    assert len({f for v in first.values() for f in v}) == 5
    for other in others:
        assert other == first


@pytest.mark.parametrize("how", [{}, {"groups": "who"}, {"order": "when"}])
def test_rows_that_are_equal_but_for_what_tells_folds_are_taken_in_one_order(how: dict[str, Any]) -> None:
    """Sums over the rows taken would else be rounded as the file has them."""
    rows = [{**row, "who": i % 23, "when": i % 97} for i, row in enumerate(mixed() * 2)]
    looks = [look_of(each) for each in shuffles(rows)]
    first, *others = [dealt(encode.labelled(SCHEMA, look), look, 5, **how).folds for look in looks]
    assert len(np.unique(first)) == 5
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_rows_are_taken_in_one_order() -> None:
    taken = []
    for each in shuffles(mixed()):
        rows = encode.labelled(SCHEMA, look_of(each))
        taken.append([content(each[i]) for i in rows.rows[canonical_order(rows)].tolist()])
    assert taken[0] != sorted(taken[0])
    assert [t.split(",")[0] for t in taken[0]] == sorted(t.split(",")[0] for t in taken[0])  # class by class
    assert all(t == taken[0] for t in taken)


def test_held_out_scores_have_the_same_bits_for_every_order() -> None:
    def scores(rows: list[dict[str, Any]]) -> np.ndarray:
        look = look_of(rows)
        found = dealt(encode.labelled(SCHEMA, look), look, 5)
        return count_folds(open_source(look.take(found.order)), SCHEMA, found).held_out().joint

    first, *others = [scores(each) for each in shuffles(mixed(), 3)]
    for other in others:
        np.testing.assert_array_equal(other, first)


def test_folds_are_even_and_so_is_every_class() -> None:
    rng = np.random.default_rng(2)
    look = look_of({"n": rng.normal(size=503), "y": rng.choice(["a", "b", "c"], 503, p=[0.8, 0.17, 0.03])})
    rows = encode.labelled(tb.Schema([tb.Column("n", "number")], target="y"), look)
    found = deal(rows, 10)
    for own in (found, *(found[rows.labels == y] for y in range(3))):
        sizes = np.bincount(own, minlength=10)
        assert sizes.max() - sizes.min() <= 1


def labelled_frame(frame: pd.DataFrame, target: str = "y") -> encode.Labelled:
    return encode.labelled(tb.infer(frame, target), look_of(frame))


def test_copies_stay_together_and_equal_draws_do_not() -> None:
    rng = np.random.default_rng(3)
    measured = pd.DataFrame(rng.normal(size=(60, 4)), columns=list("abcd")).assign(y=rng.choice(["u", "v"], 60))
    rows = labelled_frame(pd.concat([measured] * 3, ignore_index=True))
    found = deal(rows, 5).reshape(3, 60)
    assert (found == found[0]).all()
    assert set(found[0].tolist()) == set(range(5))
    # Of a few categories nearly all rows have equals: a fold with all of them would know them from other classes only
    coins = pd.DataFrame(rng.choice(["h", "t"], (400, 3)), columns=list("abc")).assign(y=rng.choice(["u", "v"], 400))
    rows = labelled_frame(coins)
    hashes = row_hashes(rows)
    assert not copies(rows, hashes).any()
    equal = deal(rows, 5)[(hashes == hashes[0]) & (rows.labels == rows.labels[0])]
    assert len(set(equal.tolist())) == 5


@pytest.mark.parametrize(
    ("text", "together"), [("good", False), ("buy the new watch now and save a lot of money", True)]
)
def test_a_long_text_is_no_coincidence(text: str, together: bool) -> None:
    rng = np.random.default_rng(4)
    texts = [" ".join(rng.choice(["ant", "bee", "cow", "dog", "eel", "fox"], 8)) for _ in range(90)] + [text] * 30
    schema = tb.Schema([tb.Column("t", "text")], target="y")
    rows = encode.labelled(schema, look_of({"t": texts, "y": ["u", "v"] * 60}))
    assert copies(rows, row_hashes(rows))[90:].all() == together
    assert len(set(deal(rows, 5)[90::2].tolist())) == (1 if together else 5)


def test_equal_rows_that_chance_explains_are_dealt_by_chance() -> None:
    """Dealt in the order of one hash they would be spread too evenly, each fold the mirror image of the others."""
    rng = np.random.default_rng(5)
    rows = {"value": rng.integers(0, 300, 3000).astype(str), "y": rng.choice(["p", "q"], 3000)}
    schema = tb.Schema([tb.Column("value", "category")], target="y")
    folds = deal(encode.labelled(schema, look_of(rows)), 5)
    cell = np.unique(np.char.add(rows["value"], rows["y"]), return_inverse=True)[1]
    counts = np.bincount(cell * 5 + folds, minlength=(cell.max() + 1) * 5).reshape(-1, 5)
    by_chance = counts.sum() * (1 / 5) * (4 / 5)
    assert 0.9 < np.sum((counts - counts.mean(axis=1, keepdims=True)) ** 2) / (5 * by_chance) < 1.1
    assert np.ptp(np.bincount(folds)) <= 2


def test_a_coin_told_by_many_values_is_no_better_than_it_is() -> None:
    """The loss that is printed is that of fresh rows."""
    rng = np.random.default_rng(5)
    draw = lambda n: {"value": rng.integers(0, 300, n).astype(str), "y": rng.choice(["p", "q"], n)}  # noqa: E731
    model = tb.fit(draw(3000), target="y")
    fresh = tb.evaluate(model, draw(20_000))["log_loss"]
    assert abs(model.settings.calibrated.figures["log_loss"][0] - fresh) < 0.006


def test_a_group_is_never_cut() -> None:
    rows = mixed()
    look = look_of(rows)
    found = dealt(encode.labelled(SCHEMA, look), look, 5, groups="who")
    for group in {r["who"] for r in rows}:
        own = [f for i, f in zip(found.order.tolist(), found.folds.tolist(), strict=True) if rows[i]["who"] == group]
        assert len(set(own)) <= 1
    assert set(found.folds.tolist()) == set(range(5))


@pytest.mark.parametrize(
    ("change", "how", "message"),
    [
        ({"who": "one"}, {"groups": "who"}, "1 group cannot be split.*Hint: groups= names a column"),
        ({"who": None}, {"groups": "who"}, "'who' holds the groups, and row 0"),
        ({}, {"groups": "whom"}, "no column 'whom', which holds the groups.*'who'"),
        ({"when": None}, {"order": "when"}, "'when' orders the rows, and row 0"),
        ({}, {"groups": "who", "order": True}, "choose one of groups and order"),
    ],
)
def test_bad_groups_and_times_are_refused(change: dict[str, Any], how: dict[str, Any], message: str) -> None:
    look = look_of([{**r, **change} for r in mixed()])
    with pytest.raises(tb.TallybayesError, match=f"(?s){message}"):
        dealt(encode.labelled(SCHEMA, look), look, 5, **how)


@pytest.mark.parametrize("order", ["when", True])
def test_time_is_held_out_in_stretches(order: str | bool) -> None:
    rows = [{**r, "when": i} for i, r in enumerate(mixed())]
    look = look_of(rows)
    found = dealt(encode.labelled(SCHEMA, look), look, 5, order=order)
    in_time = found.folds[np.argsort(found.order)]
    assert np.count_nonzero(np.diff(in_time)) == 9  # two stretches for each of five folds
    sizes = np.bincount(in_time)
    assert sizes.max() - sizes.min() <= 6


def test_blocks_are_runs_of_a_class_and_dealt_by_what_they_hold() -> None:
    rng = np.random.default_rng(5)
    frame = pd.DataFrame({"n": rng.normal(size=400), "y": rng.choice(["a", "b"], 400)})
    rows = labelled_frame(frame)
    found = in_blocks(rows, 10)
    assert set(found.tolist()) == set(range(5))
    for y in range(2):
        own = found[rows.labels == y]
        assert all(len(set(own[i : i + 8].tolist())) == 1 for i in range(0, len(own), 8))
    # the classes may be mixed in another way: a block is still the same rows
    other = frame.sort_values("y", kind="stable", ascending=False)
    moved = in_blocks(labelled_frame(other.reset_index(drop=True)), 10)
    np.testing.assert_array_equal(moved, found[other.index])


@pytest.mark.parametrize("n", [1, 2, 3])
def test_few_rows_are_dealt_out_too(n: int) -> None:
    look = look_of({"n": [1.0, 2.0, 3.0][:n], "y": ["a", "b", "c"][:n]})
    found = dealt(encode.labelled(tb.Schema([tb.Column("n", "number")], target="y"), look), look, 10)
    assert isinstance(found, Deal)
    assert found.folds.tolist() == list(range(n))
    assert found.note is None


def test_infer_says_the_same_for_every_order() -> None:
    rng = np.random.default_rng(6)
    n = 3_000
    names = [f"{a}{b}{c}" for a in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" for b in "aeiou" for c in ("n", "ri", "lo", "sta")]
    frame = pd.DataFrame(
        {
            "tied": [f"v{i % 9}" for i in range(n)],
            "name": [f"{names[i % 520]} {names[(7 * i + i // 520) % 520]}" for i in range(n)],
            "caps": [f"{names[i % 520]}-{names[(7 * i + i // 520) % 520]}".upper() for i in range(n)],
            "day": [f"2024-0{1 + i % 9}-1{i % 7}" for i in range(n)],
            "x": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n).round(2)),
            "y": rng.choice(["a", "b"], n),
        }
    )
    first = repr([vars(c) for c in tb.infer(frame, "y").columns])
    assert "v0, v1, v2, …" in first
    for _ in range(5):
        other = frame.iloc[rng.permutation(n)].reset_index(drop=True)
        assert repr([vars(c) for c in tb.infer(other, "y").columns]) == first
