"""Tables that are drawn, any number of rows of them, with the probability that is true for every row."""

from __future__ import annotations

import datetime as dt
import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from ...base.arrays import Bools, Floats, Ints
from ...base.errors import SettingsError
from .dataset import Dataset
from .draws import Draws, bell_mass, check_share, check_whole, poisson, rounded

_NO_YES = ("no", "yes")
_WORDS = (
    "price", "crowded", "moving", "knee", "cold", "parking", "noise", "broken", "queue", "late",  # of those who leave
    "friends", "sauna", "coach", "class", "music", "new", "towel", "early", "evening", "pool",
)  # fmt: skip
_MOST_WORDS = 8
_FIRST = dt.date(2021, 1, 1)


def _text_of(codes: Ints, names: Sequence[str]) -> list[str]:
    return [str(name) for name in np.asarray(names)[codes]]


def _without(values: list[Any], missing: Bools) -> list[Any]:
    return [None if gone else value for value, gone in zip(values, missing.tolist(), strict=True)]


def _best(p: Floats, is_yes: Bools) -> dict[str, Any]:
    """What nobody can do better than on these rows: the figures of the true probabilities."""
    of_label = np.where(is_yes, p, 1 - p)
    return {
        "probability": rounded(p),
        "log loss": round(float(-np.log(of_label).mean()), 6),
        "accuracy": round(float(((p >= 0.5) == is_yes).mean()), 6),
    }


def mixed(rows: int = 1000, seed: int = 0, *, wrong: float = 0.0) -> Dataset:
    """Members of a sports club, and who leaves: numbers, counts, categories, yes or no, dates, texts, missing values.

    Given the answer, the columns say nothing about each other, and a missing value says nothing at all. So the truth
    is a naive Bayes model, and truth["probability"] has P(leaves = yes) of every row, from the values it shows.
    `joined` is the same for all. With `wrong`, that share of the labels is turned round: truth["wrong"] has their
    numbers, from 0.

    >>> data = tb.datasets.mixed(4)
    >>> data["plan"], data["leaves"], data.truth["probability"]
    ([...], [...], [...])
    >>> tb.datasets.mixed(2)["age"] == tb.datasets.mixed(1000)["age"][:2]
    True
    """
    check_share("wrong", wrong)
    draws = Draws("mixed", seed, rows, 13 + _MOST_WORDS)
    is_yes = draws.happens(0.3)
    code = is_yes.astype(np.int64)
    odds = np.full(rows, math.log(0.3 / 0.7))

    age = draws.bell(np.array([43.0, 35.0])[code], np.array([12.0, 9.0])[code])
    no_age = draws.happens(0.05)
    odds += np.where(no_age, 0.0, np.log(bell_mass(age, 35, 9)) - np.log(bell_mass(age, 43, 12)))

    means = (7.0, 3.5)
    visits = draws.counts(means, code)
    no_visits = draws.happens(0.03)
    each = np.array([math.log(poisson(k, means[1]) / poisson(k, means[0])) for k in range(visits.max() + 1)])
    odds += np.where(no_visits, 0.0, each[visits])

    plan, said = _drawn(draws, code, ((0.25, 0.40, 0.20, 0.15), (0.50, 0.15, 0.10, 0.25)))
    odds += said
    pays_by, said = _drawn(draws, code, ((0.60, 0.30, 0.10), (0.45, 0.25, 0.30)))
    no_pay = draws.happens(0.08)
    odds += np.where(no_pay, 0.0, said)
    newsletter, said = _drawn(draws, code, ((0.45, 0.55), (0.70, 0.30)))
    odds += said
    joined = np.floor(draws.uniform() * 1095).astype(np.int64)

    length = draws.one_of([0.2, 0.1, 0.15, 0.15, 0.12, 0.1, 0.08, 0.06, 0.04])
    telling = np.where(np.arange(len(_WORDS)) < len(_WORDS) // 2, 1.0, -1.0)
    word_shares = np.array([np.exp(-0.5 * telling), np.exp(0.5 * telling)])
    word_shares /= word_shares.sum(axis=1, keepdims=True)
    words = []
    for place in range(_MOST_WORDS):
        word, said = _drawn(draws, code, word_shares)
        odds += np.where(place < length, said, 0.0)
        words.append(word)
    notes = [
        " ".join(_WORDS[w] for w in line[:n]) or None
        for n, line in zip(length.tolist(), np.array(words).T.tolist(), strict=True)
    ]

    p = 1 / (1 + np.exp(-odds))
    turned = draws.happens(wrong)
    columns: dict[str, list[Any]] = {
        "age": _without(age.tolist(), no_age),
        "visits": _without(visits.tolist(), no_visits),
        "plan": _text_of(plan, ("month", "year", "family", "student")),
        "pays_by": _without(_text_of(pays_by, ("card", "transfer", "cash")), no_pay),
        "newsletter": (newsletter == 1).tolist(),
        "joined": [(_FIRST + dt.timedelta(days=day)).isoformat() for day in joined.tolist()],
        "note": notes,
        "leaves": _text_of(code ^ turned, _NO_YES),
    }
    truth = {"prior": {"no": 0.7, "yes": 0.3}, **_best(p, is_yes), "wrong": np.flatnonzero(turned).tolist()}
    about = "Members of a sports club: who leaves within the year? Invented."
    return Dataset(columns, name="mixed", target="leaves", about=about, truth=truth)


def _drawn(draws: Draws, code: Ints, shares: Any) -> tuple[Ints, Floats]:
    """A value for each row, by the shares of its class, and the log-odds that it speaks for the second class."""
    table = np.asarray(shares, dtype=np.float64)
    value = draws.one_of(table[code])
    return value, np.log(table[1] / table[0])[value]


def dependent(rows: int = 1000, seed: int = 0, *, copies: int = 3) -> Dataset:
    """A machine with columns that repeat each other and a pair that speaks only together: naive Bayes is wrong here.

    `sensor` is written down `copies` times more. `valve` and `pump` say nothing alone; in a fault they mostly stand
    alike. `shift` is honest evidence. The truth has, for every row, the "probability" of a fault and what "naive"
    Bayes of endlessly many rows says; and of endlessly many rows the log loss and accuracy of both.

    >>> data = tb.datasets.dependent(200)
    >>> data.truth["log loss"], data.truth["naive log loss"]
    (0.4621392554, 1.0505674205)
    """
    check_whole("copies", copies, 0)
    draws = Draws("dependent", seed, rows, 5)
    is_fault = draws.happens(_P_FAULT)
    code = is_fault.astype(np.int64)
    high = draws.happens(np.array(_HIGH)[code]).astype(np.int64)
    valve = draws.happens(0.5).astype(np.int64)
    alike = draws.happens(np.array(_ALIKE)[code])
    pump = np.where(alike, valve, 1 - valve)
    night = draws.happens(np.array(_NIGHT)[code]).astype(np.int64)
    cells = {cell: _machine(cell, copies) for cell in itertools.product((0, 1), repeat=3)}
    found = [cells[cell] for cell in zip(high.tolist(), alike.astype(int).tolist(), night.tolist(), strict=True)]
    columns: dict[str, list[Any]] = {"sensor": _text_of(high, ("low", "high"))}
    for copy in range(copies):
        columns[f"sensor_{copy + 2}"] = list(columns["sensor"])
    columns |= {
        "valve": _text_of(valve, ("shut", "open")),
        "pump": _text_of(pump, ("off", "on")),
        "shift": _text_of(night, ("day", "night")),
        "fault": _text_of(code, _NO_YES),
    }
    truth: dict[str, Any] = {
        "probability": rounded(np.array([true for true, _, _ in found])),
        "naive": rounded(np.array([naive for _, naive, _ in found])),
    }
    for name, which in (("", 0), ("naive ", 1)):
        answers = [(cell[2], cell[0], cell[which]) for cell in cells.values()]
        loss = -sum(share * (p * math.log(q) + (1 - p) * math.log(1 - q)) for share, p, q in answers)
        right = sum(share * (p if q >= 0.5 else 1 - p) for share, p, q in answers)
        truth |= {f"{name}log loss": round(loss, 10), f"{name}accuracy": round(right, 10)}
    about = "A machine whose columns repeat each other or speak only in pairs: is there a fault? Invented."
    return Dataset(columns, name="dependent", target="fault", about=about, truth=truth)


_P_FAULT = 0.4
_HIGH = (0.30, 0.75)  # P(sensor high), without a fault and with one
_ALIKE = (0.30, 0.80)  # P(valve open and pump on, or neither)
_NIGHT = (0.35, 0.50)  # P(night shift)


def _machine(cell: tuple[int, ...], copies: int) -> tuple[float, float, float]:
    """What is true of a cell (sensor high, valve and pump alike, night): P(fault), what naive Bayes says, its share."""

    def said(of: tuple[float, float], happens: int) -> tuple[float, float]:
        return (of[0], of[1]) if happens else (1 - of[0], 1 - of[1])

    high, alike, night = (said(of, x) for of, x in zip((_HIGH, _ALIKE, _NIGHT), cell, strict=True))
    no, yes = ((1 - _P_FAULT, _P_FAULT)[c] * high[c] * alike[c] * night[c] for c in (0, 1))
    # valve and pump are even in either class, each alone
    naive = [(1 - _P_FAULT, _P_FAULT)[c] * high[c] ** (copies + 1) * night[c] for c in (0, 1)]
    return yes / (no + yes), naive[1] / sum(naive), no + yes


def drift(rows: int = 2400, seed: int = 0, *, periods: int = 12, change: int = 8) -> Dataset:
    """Orders month by month, and whether they come back: from the month number `change` on they do for other reasons.

    Months begin with 2024-01 and are numbered from 1. With the change twice as many orders come back, and those that
    do are no longer bought by telephone but in the app. What `price` says stays; it only moves along, since dearer
    orders come back more often. truth["change"] is the month of the change, and "probability" the true
    P(returned = yes) of every row, before it and after it.

    >>> data = tb.datasets.drift(240)
    >>> data["day"][0], data.truth["change"], data.truth["changed"]
    ('2024-01-01', '2024-08', ['returned', 'bought'])
    """
    check_whole("periods", periods, 2)
    check_whole("change", change, 2)
    if change > periods:
        raise SettingsError(f"change={change!r} of {periods} periods", hint=f"take a period from 2 to {periods}.")
    draws = Draws("drift", seed, rows, 4)
    at = np.arange(rows) * periods / rows
    month = np.floor(at).astype(np.int64)
    day = np.floor((at - month) * 28).astype(np.int64)
    after = (month >= change - 1).astype(np.int64)
    prior = np.array([0.15, 0.30])[after]
    is_back = draws.happens(prior)
    code = is_back.astype(np.int64)
    table = np.array([[(0.40, 0.25, 0.35), (0.20, 0.60, 0.20)], [(0.40, 0.25, 0.35), (0.70, 0.10, 0.20)]])
    bought = draws.one_of(table[after, code])
    price = draws.bell(np.array([70.0, 90.0])[code], np.array([15.0, 18.0])[code])
    gift = draws.happens(0.2)
    odds = np.log(prior / (1 - prior)) + np.log(bell_mass(price, 90, 18)) - np.log(bell_mass(price, 70, 15))
    odds += np.log(table[after, 1, bought] / table[after, 0, bought])
    columns: dict[str, list[Any]] = {
        "day": [f"{_month(m)}-{d + 1:02}" for m, d in zip(month.tolist(), day.tolist(), strict=True)],
        "bought": _text_of(bought, ("app", "telephone", "shop")),
        "price": price.tolist(),
        "gift": gift.tolist(),
        "returned": _text_of(code, _NO_YES),
    }
    truth = {
        "change": _month(change - 1), "period": change, "changed": ["returned", "bought"], "moved along": ["price"],
        "steady": ["gift"],
        "P(returned)": {"before": 0.15, "after": 0.30}, **_best(1 / (1 + np.exp(-odds)), is_back),
    }  # fmt: skip
    about = "Orders over a year or so, in order of time, with one change: do they come back? Invented."
    return Dataset(columns, name="drift", target="returned", about=about, truth=truth)


def _month(number: int) -> str:
    return f"{2024 + number // 12}-{number % 12 + 1:02}"


def humps(rows: int = 1000, seed: int = 0) -> Dataset:
    """One number: a hump on either side for one class, a single one for the other, of the same mean and variance.

    No bell tells them apart; kernels and bins do.

    >>> tb.datasets.humps(100).truth["accuracy"] > 0.7
    True
    """
    draws = Draws("humps", seed, rows, 3)
    is_two = draws.happens(0.5)
    side = np.where(draws.happens(0.5), 300.0, -300.0)
    wide = math.sqrt(300.0**2 + 50.0**2)
    x = draws.bell(np.where(is_two, side, 0.0), np.where(is_two, 50.0, wide))
    two = (bell_mass(x, 300, 50) + bell_mass(x, -300, 50)) / 2
    p = two / (two + bell_mass(x, 0, wide))
    columns = {"x": (x / 100).tolist(), "shape": _text_of(is_two.astype(np.int64), ("one hump", "two humps"))}
    about = "One number whose classes have the same mean and variance. Invented."
    return Dataset(columns, name="humps", target="shape", about=about, truth=_best(p, is_two))
