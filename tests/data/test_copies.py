"""Which equal rows are copies: those of a table written again are, and those that chance brings are not."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.data import encode
from tallybayes.data.copies import copies, row_hashes
from tallybayes.data.sources import open_source

Table = Mapping[str, Any]


def found(table: Table) -> tuple[np.ndarray, np.ndarray]:
    """Which rows have equals, and which of them are called copies."""
    (look,) = open_source(table).batches()
    rows = encode.labelled(tb.infer(table, target="y", keep_leaks=True), look)
    hashes = row_hashes(rows.blocks, len(rows.rows))
    both = [f"{h} {y}" for h, y in zip(hashes.tolist(), rows.labels.tolist(), strict=True)]
    _, unit, times = np.unique(both, return_inverse=True, return_counts=True)
    return times[unit] > 1, copies(rows, hashes)


def customers(n: int, rng: np.random.Generator) -> Table:
    income = rng.gamma(4, 9000, n).round(0)
    likely = 1 / (1 + np.exp(-(income - 36000) / 15000))
    return {
        "income": income, "region": rng.choice(list("NSEW"), n), "sex": rng.choice(["f", "m"], n),
        "y": np.where(rng.random(n) < likely, "yes", "no"),
    }  # fmt: skip


def numbers(n: int, rng: np.random.Generator) -> Table:
    a, b = rng.normal(size=(2, n))
    return {"a": a, "b": b, "y": np.where(a + rng.normal(size=n) > 0, "p", "n")}


def one_number(n: int, rng: np.random.Generator) -> Table:
    return {k: v for k, v in numbers(n, rng).items() if k != "b"}


def answers(n: int, rng: np.random.Generator) -> Table:
    y = rng.choice(["p", "n"], n)
    return {f"q{j}": rng.choice(list("abcd"), n) for j in range(10)} | {"y": y}


def coins(n: int, rng: np.random.Generator) -> Table:
    return {c: rng.choice(["h", "t"], n) for c in "abc"} | {"y": rng.choice(["p", "n"], n)}


def people(n: int, rng: np.random.Generator) -> Table:
    y = rng.choice(["p", "n"], n)
    return {"age": rng.integers(18, 80, n), "sex": rng.choice(["f", "m"], n), "y": y}


def many_zeros(n: int, rng: np.random.Generator) -> Table:
    """An amount that is 0 for every third, and else its own."""
    amount = np.where(rng.random(n) < 0.3, 0.0, rng.gamma(2, 100, n).round(2))
    return {"amount": amount, "kind": rng.choice(list("abc"), n), "y": rng.choice(["p", "n"], n)}


def towns(n: int, rng: np.random.Generator) -> Table:
    """A town and a county go with each postcode."""
    code = rng.integers(0, 200, n)
    return {
        "code": np.char.add("z", code.astype(str)), "town": np.char.add("t", (code // 5).astype(str)),
        "county": np.char.add("c", (code // 40).astype(str)), "y": rng.choice(["p", "n"], n),
    }  # fmt: skip


def skewed(n: int, rng: np.random.Generator) -> Table:
    """As R's Titanic: few sorts of rows, some of them frequent."""
    y = rng.random(n) < 0.3
    return {
        "class": rng.choice(["1", "2", "3", "crew"], n, p=[0.15, 0.13, 0.32, 0.4]),
        "sex": np.where(rng.random(n) < np.where(y, 0.5, 0.08), "f", "m"),
        "age": np.where(rng.random(n) < 0.05, "child", "adult"), "y": np.where(y, "yes", "no"),
    }  # fmt: skip


def shelves(n: int, rng: np.random.Generator) -> Table:
    """Prices of a week, at which customers choose, who mostly stay with what they chose before."""
    price, week = rng.normal(2, 0.3, (80, 4)).round(2), rng.integers(0, 80, n)
    usual = rng.integers(0, 3, 80)[week]
    y = np.where(rng.random(n) < 0.5, usual, rng.integers(0, 3, n))
    return {f"price{j}": price[week, j] for j in range(4)} | {"y": np.array(["a", "b", "c"])[y]}


def again(table: Table, times: np.ndarray, rng: np.random.Generator) -> Table:
    rows = rng.permutation(np.repeat(np.arange(len(times)), times))
    return {name: np.asarray(values)[rows] for name, values in table.items()}


TIMES: dict[str, Callable[[int, np.random.Generator], np.ndarray]] = {
    "1 to 6": lambda n, rng: rng.integers(1, 7, n),
    "three": lambda n, rng: np.full(n, 3),
    "a tenth nine times": lambda n, rng: np.where(rng.random(n) < 0.1, 9, 1),
}


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("make", [customers, numbers, one_number, answers], ids=lambda m: m.__name__)
def test_rows_that_are_written_again_are_copies(make: Callable[..., Table], times: str) -> None:
    rng = np.random.default_rng(11)
    table = again(make(400, rng), TIMES[times](400, rng), rng)
    equal, copied = found(table)
    assert not (copied & ~equal).any()
    assert copied.sum() >= 0.97 * equal.sum()


@pytest.mark.parametrize("rows", [300, 3000])
@pytest.mark.parametrize("make", [coins, people, many_zeros, towns, skewed, shelves], ids=lambda m: m.__name__)
def test_rows_that_are_equal_by_chance_are_none(make: Callable[..., Table], rows: int) -> None:
    equal, copied = found(make(rows, np.random.default_rng(12)))
    assert equal.sum() > 0.1 * rows
    assert copied.sum() <= 0.03 * equal.sum()


def test_what_is_printed_of_a_table_of_copies_is_what_fresh_rows_lose() -> None:
    """Customers with one line for each of their orders, and the rare class drawn again until it is as frequent."""
    rng = np.random.default_rng(0)
    seen, fresh = customers(600, rng), customers(10_000, rng)
    model = tb.fit(again(seen, rng.integers(1, 7, 600), rng), target="y")
    loss, error = model.settings.calibrated.figures["log_loss"]
    assert abs(tb.evaluate(model, fresh)["log_loss"] - loss) < 3 * error
    few = np.flatnonzero(seen["y"] == "yes")[:60]
    some = np.concatenate([np.flatnonzero(seen["y"] == "no"), rng.choice(few, 300)])
    model = tb.fit({name: np.asarray(v)[some] for name, v in seen.items()}, target="y")
    assert model.settings.calibrated.figures["log_loss"][0] > 0.5  # 0.1, and 1.6 on fresh rows, if folds part them


def test_copies_make_no_interval_narrower() -> None:
    """Rows written five times say no more than once; nor do they make a richer form likelier to be taken."""
    rng = np.random.default_rng(1)
    once = customers(300, rng)
    one, five = (tb.fit(again(once, np.full(300, k), rng), target="y").settings.calibrated for k in (1, 5))
    for name in ("log_loss", "accuracy", "brier"):
        assert 0.7 < five.figures[name][1] / one.figures[name][1] < 1.4
