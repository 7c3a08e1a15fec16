"""How many rows of a class are likely left among those without a label, and when to stop looking for them.

Labels that a model has asked for say nothing of the rows that it has not asked for, so no bound rests on them. What
does is an audit: rows drawn at random from all that had no label at the time. With m drawn from N rows, r of the class
among them, and T of the class in all N, r is hypergeometric:

    interval   every T under which neither r or fewer nor r or more would be rarer than (1 − confidence)/2
    bound      every T with likelihood(T) > (1 − confidence) · Σ prior(T')·likelihood(T'), which holds at every size of
               the audit at once (the prior-posterior ratio of Waudby-Smith and Ramdas, 2020), so that one may look
               after each label and stop as soon as it says so

The model enters by the prior and by the estimate: where it knows the class well the bound is short, where it does not
the bound is longer and still holds. Rows found since, by whatever way, are taken off.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Floats, log_sum_exp
from ...base.errors import DataError, SettingsError
from ...base.lazy import gammaln
from ...base.show import Page, Shown
from ...families.smoothing import is_number
from ...model.model import Model
from .lookahead import whole

_STRENGTH = 10.0  # rows that the model's expectation is worth in the prior; the uniform half of it is worth none


@dataclass(frozen=True, repr=False)
class Left(Shown):
    """How many rows of a class are likely left without a label, with an interval, and the share found so far.

    >>> left = tb.Left("spam", 100, audited=40, estimate=2.0, low=0, high=6, at_most=8, found=48, confidence=0.9)
    >>> left.recall, left.enough(0.95), left.enough(0.8)
    (0.96, False, True)
    """

    label: Any
    rows: int  # that have no label now
    audited: int  # rows drawn at random that have one
    estimate: float
    low: int
    high: int
    at_most: int  # at every size of the audit at once
    found: int  # rows of the class that have been found
    confidence: float

    @property
    def recall(self) -> float:
        """The share of the class that has been found, as it is estimated."""
        return self.found / (self.found + self.estimate) if self.found + self.estimate > 0 else 1.0

    @property
    def recall_at_least(self) -> float:
        """The share that has been found at least, however often it was looked at."""
        return self.found / (self.found + self.at_most) if self.found + self.at_most > 0 else 1.0

    def enough(self, recall: float = 0.95) -> bool:
        """Whether one may stop: so much of the class has been found, by the confidence asked for."""
        if not is_number(recall) or not 0 <= recall <= 1:
            raise SettingsError(f"recall={recall!r}", hint="take a share from 0 to 1, e.g. 0.95.")
        return self.recall_at_least >= recall

    def to_dict(self) -> dict[str, Any]:
        """The same as plain Python values."""
        return {
            "label": self.label, "rows": self.rows, "audited": self.audited, "estimate": self.estimate,
            "interval": [self.low, self.high], "at_most": self.at_most, "found": self.found, "recall": self.recall,
            "recall_at_least": self.recall_at_least, "confidence": self.confidence,
        }  # fmt: skip

    def _page(self) -> Page:
        sure = f"{self.confidence:.0%}"
        name = canon.printable(self.label, 30)
        lines = [
            ["rows without a label", f"{self.rows:,}"],
            ["rows drawn at random and labelled", f"{self.audited:,}"],
            [f"{name} left", f"about {self.estimate:,.0f} ({sure}: {self.low:,} to {self.high:,})"],
            [f"{name} found", f"{self.found:,}"],
            [
                "share found",
                f"about {self.recall:.1%}, at least {self.recall_at_least:.1%} ({sure}, whenever looked at)",
            ],
        ]
        return Page(f"How much of {name} is left", lines)


def relevant_left(
    model: Model, data: Any, of: Any, audited: Mapping[int, Any], *, since: Mapping[int, Any] | None = None,
    found: int = 0, confidence: float = 0.9,
) -> Left:  # fmt: skip
    """How many rows of the class `of` are likely left among those without a label, with an interval; print it.

    `data` are the rows that had no label when the audit was drawn, and `model` is the model of that time. `audited` are
    the labels of rows drawn from them at random, {row number: label}; `since` those of rows that got one by another way
    after that; `found` is how many of the class were known before. `tb.Labelling` keeps all of this by itself.

    >>> model = tb.textbook({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> rest = {"Sky": ["sunny", "rainy"] * 20}
    >>> left = tb.relevant_left(model, rest, "yes", {row: "yes" if row % 2 == 0 else "no" for row in range(20)})
    >>> left.rows, left.low, left.high
    (20, 5, 15)
    """
    p = model.predict_proba(data).reshape(-1, len(model.classes))
    return counted_left(len(p), of, float(p[:, model.class_number(of)].sum()), audited, since or {}, found, confidence)


def counted_left(
    rows: int, label: Any, expected: float, audited: Mapping[int, Any], since: Mapping[int, Any], found: int,
    confidence: float,
) -> Left:  # fmt: skip
    """The same of numbers alone: the rows that there were, and how many of the class a model expected among them."""
    if not is_number(confidence) or not 0 < confidence < 1:
        raise SettingsError(f"confidence={confidence!r}", hint="take a share between 0 and 1, e.g. 0.9.")
    for labels in (audited, since):
        if not isinstance(labels, Mapping):
            raise DataError(
                f"labels as a {type(labels).__name__}", hint="give them by row number: {12: 'spam', 40: 'ham'}."
            )
    if rows == 0:
        return Left(label, 0, 0, 0.0, 0, 0, 0, whole("found", found, 0), float(confidence))
    given = {**since, **audited}
    for row in given:
        if isinstance(row, bool) or not isinstance(row, (int, np.integer)) or not 0 <= row < rows:
            raise DataError(
                f"there is no row {row!r} among {rows} (the first is row 0)",
                hint="name rows by their numbers among those that had no label when the audit was drawn.",
            )
    name = str(canon.text(label))
    known = {row: str(canon.text(other)) == name for row, other in given.items()}
    here, other, r = sum(known.values()), len(known) - sum(known.values()), sum(known[row] for row in audited)
    low, high = interval(rows, len(audited), r, 1 - confidence)
    mean, at_most = bound(rows, len(audited), r, expected, 1 - confidence)
    most = rows - other  # what is certain whatever was drawn: here ≤ T ≤ most

    def left(total: float) -> float:
        return min(max(total, here), most) - here

    return Left(
        label, rows - len(known), len(audited), left(min(max(mean, low), high)), int(left(low)), int(left(high)),
        int(left(at_most)), whole("found", found, 0) + here, float(confidence),
    )  # fmt: skip


def interval(rows: int, drawn: int, hits: int, miss: float) -> tuple[int, int]:
    """The numbers of hits among all rows under which neither so few nor so many hits are rarer than half the miss.

    >>> interval(100, 10, 0, 0.1), interval(100, 100, 7, 0.1)
    ((0, 24), (7, 7))
    """
    lowest, highest = hits, rows - drawn + hits
    low = _first_where(lowest, highest, lambda t: _tail(rows, drawn, t, hits, drawn) > miss / 2)
    above = _first_where(lowest, highest + 1, lambda t: t > highest or _tail(rows, drawn, t, 0, hits) <= miss / 2)
    return low, above - 1


def _first_where(low: int, high: int, true: Any) -> int:
    """The first whole number from low to high of which something is true that stays true; high if none before."""
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if true(middle) else (middle + 1, high)
    return low


def _tail(rows: int, drawn: int, total: int, first: int, last: int) -> float:
    """P(first ≤ hits ≤ last) of so many drawn from rows with so many hits in total."""
    hits = np.arange(max(first, drawn + total - rows, 0), min(last, drawn, total) + 1)
    return float(np.exp(_log_likelihood(rows, drawn, hits, total)).sum())


def _log_likelihood(rows: int, drawn: int, hits: Any, total: Any) -> Floats:
    """log P(hits) of a hypergeometric."""
    out: Floats = _log_choose(total, hits) + _log_choose(rows - total, drawn - hits) - _log_choose(rows, drawn)
    return out


def _log_choose(n: Any, k: Any) -> Any:
    """log of n over k, of whole numbers."""
    table = _log_factorials(1 << int(np.max(n, initial=1)).bit_length())
    return table[n] - table[k] - table[n - k]


@lru_cache(maxsize=64)  # one for each power of two
def _log_factorials(n: int) -> Floats:
    out: Floats = gammaln(np.arange(n + 1) + 1.0)
    return out


def bound(rows: int, drawn: int, hits: int, expected: float, miss: float) -> tuple[float, int]:
    """What is expected of the number of hits among all rows, and what it is at most, at all sizes of the audit at once.

    The prior of the bound is half what the model expects and half Jeffreys', both spread as by a beta-binomial; what is
    expected rests on the first half alone.
    """
    total = np.arange(hits, rows - drawn + hits + 1)
    share = min(max(expected / rows, 0.5 / rows), 1 - 0.5 / rows)
    likelihood = _log_likelihood(rows, drawn, hits, total)
    expects = _spread(rows, _STRENGTH * share, _STRENGTH * (1 - share))[total] + likelihood
    evidence = log_sum_exp(expects), log_sum_exp(_spread(rows, 0.5, 0.5)[total] + likelihood)
    mean = float(np.sum(total * np.exp(expects - evidence[0])))
    return mean, int(total[likelihood > np.log(miss) + np.logaddexp(*evidence) - np.log(2.0)][-1])


@lru_cache(maxsize=8)
def _spread(rows: int, a: float, b: float) -> Floats:
    """log P(total) of a beta-binomial, for every total from 0 to rows."""
    total = np.arange(rows + 1)

    def log_beta(x: Any, y: Any) -> Any:
        return gammaln(x) + gammaln(y) - gammaln(x + y)

    out: Floats = _log_choose(rows, total) + log_beta(total + a, rows - total + b) - log_beta(a, b)
    return out
