"""Whether a tally has counted some rows already: figures on rows that a model has learnt from flatter it.

Counted by the same schema, rows that are in a tally leave possible counts when they are taken away, and all of its rows
leave none. That alone proves little of a few columns with a few values each, which any rows have. So it is asked how
many values, class by class, only the rows have. Were rows and tally one heap of rows dealt out at random, a value that
S of the heap have would be with the rows alone with probability q^S, q being their share of the heap's cells that are
not missing: the sum of these is what new rows bring. Rows of one customer or one day are not dealt at random and have
fewer different values, and fewer new ones by the same factor. A receipt, the hash of a row, is one more value, and
makes the answer exact.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import gammaincc

from ..base.arrays import Floats
from ..base.canon import many, printable
from ..data.blocks import N
from ..exact.sheet import Sheet
from .guard import how_often
from .tally import Tally
from .traces import weighted

ALL, SOME, NONE, NO_SIGN, UNKNOWN = "all", "some", "none", "no sign", "unknown"
_SHEETS = ("values", "cells", "words")
_BY_CHANCE = 1e-3  # that new rows have nothing new, below which they are called known
_PARTLY = 1e-4, 0.8  # the same of so few new values as there are, and the share of what was expected
_HANDFUL = 4.0  # where a row brings several new values, they come in handfuls: so many times as many as on average


@dataclass(frozen=True)
class Overlap:
    """What the counts say of whether rows are among those counted.

    `verdict` is "all" or "some" (of the rows were counted, by all signs), "none" (by receipts), "no sign" or "unknown".
    `says` has the reason in words that are true even where the verdict is not.
    """

    verdict: str
    says: str
    rows: int = 0  # that have a label
    counted: int | None = None  # how many of them equal a counted row; None without receipts

    @property
    def flatters(self) -> bool:
        """Whether figures on these rows are to be distrusted."""
        return self.verdict in (ALL, SOME)

    def __str__(self) -> str:
        return self.says


@dataclass(frozen=True)
class _New:
    """Values that only the rows have: how many there are, and would be of new rows; what is odd about too few."""

    what: str
    found: int
    expected: float
    chance: float  # that new rows have so few

    @property
    def told(self) -> str:
        bring = "none" if self.found == 0 else f"{self.found:,}"
        return (
            f"new rows would bring about {self.expected:,.0f} {self.what} that it has not counted, these bring {bring}"
        )


def overlap(tally: Tally | None, data: Any) -> Overlap:
    """Whether rows with labels are among those of the tally.

    >>> from ..data.schema import Column, Schema
    >>> rows = {"Name": ["Ann", "Bo", "Cy"], "Play": ["yes", "no", "yes"]}
    >>> tally = Tally.of(Schema([Column("Name", "category")], target="Play"), rows)
    >>> print(overlap(tally, rows))
    these are the very rows that the model has learnt from
    """
    if tally is None:
        return Overlap(UNKNOWN, "the model holds no counts, so whether it has learnt from these rows cannot be told")
    if tally.least_rows:
        return Overlap(UNKNOWN, "the model is a copy without rare values, so whether it has learnt from these rows "
                       "cannot be told")  # fmt: skip
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # whoever scores the rows says what is odd about them
        part = replace(Tally.of(tally.schema, data), skipped=0)
    whole, rows = replace(tally, skipped=0), part.rows
    rest = whole - part
    within = rest.impossible() is None
    if within and rest.rows == 0 and not any(counts.sheets for counts in rest.columns.values()):
        return Overlap(ALL, "these are the very rows that the model has learnt from", rows, rows)
    if weighted(whole) or weighted(part):
        return _by_weights(within, rows)
    pooled = whole + part
    counted = _equal_rows(rest, part) if tally.schema.receipts else None
    new = min(_all_new(pooled, whole, part), key=lambda n: n.chance, default=_New("values", 0, 0.0, 1.0))
    if counted is not None:
        return _by_receipts(counted, rows, new)
    if within:
        return _within(rows, new)
    lost = min(_all_new(pooled, part, whole), key=lambda n: n.chance, default=new)
    if lost.found == 0 and lost.chance < _BY_CHANCE and (-rest).impossible() is None:
        says = f"all {many(whole.rows, 'row')} that the model has learnt from are among these, by all signs"
        return Overlap(SOME, says, rows)
    if new.chance < _PARTLY[0] and new.found < _PARTLY[1] * new.expected:
        return Overlap(SOME, f"the model has learnt from some of these rows, by all signs: {new.told}", rows)
    return Overlap(NO_SIGN, "no sign that the model has learnt from these rows", rows)


def _by_weights(within: bool, rows: int) -> Overlap:
    if within:
        return Overlap(UNKNOWN, "all that these rows hold was counted, but with weights it cannot be told whether from "
                       "them", rows)  # fmt: skip
    return Overlap(NO_SIGN, "at least some of these rows are not among those that the model has learnt from", rows)


def _by_receipts(counted: int, rows: int, new: _New) -> Overlap:
    if counted == 0:
        return Overlap(NONE, "none of these rows is one that the model has learnt from", rows, 0)
    equal = f"{counted:,} of these {many(rows, 'row')} equal rows that the model has learnt from"
    odd = new.chance < (_BY_CHANCE if counted == rows else _PARTLY[0])
    if not odd:
        return Overlap(NO_SIGN, f"{equal}, as rows that are alike do", rows, counted)
    return Overlap(ALL if counted == rows else SOME, f"{equal}: {new.told}", rows, counted)


def _within(rows: int, new: _New) -> Overlap:
    if new.chance < _BY_CHANCE:
        return Overlap(ALL, f"by all signs the model has learnt from these rows: {new.told}", rows)
    says = "all that these rows hold was counted, as that of most rows is: whether the model has learnt from them "
    return Overlap(UNKNOWN, says + "cannot be told", rows)


def _equal_rows(rest: Tally, part: Tally) -> int:
    """How many rows of the part have a receipt left in the whole: all but those that it has too few of."""
    sheet = rest.labels.sheet("receipts", N)
    return part.rows - int(-np.minimum(sheet.amount, 0).sum())


def _all_new(pooled: Tally, whole: Tally, part: Tally) -> Iterator[_New]:
    """The new values of the part, by column and of all columns, the chance corrected for how often it is asked."""
    known = np.array([c in whole.classes for c in pooled.classes])
    sheets = [("rows", "receipts", pooled.labels, part.labels, whole.labels)] + [
        (f"values of {printable(name, 40)!r}", sheet, counts, part.columns[name], whole.columns[name])
        for name, counts in pooled.columns.items()
        for sheet in _SHEETS
    ]
    counted = []
    for what, sheet, every, own, before in sheets:
        if sheet in every.sheets:
            both, old = every.sheets[sheet], before.sheets.get(sheet)
            seen = known[both.label]  # a class that was never counted has nothing but new values
            found = len(both) - (0 if old is None else len(old)) - int((~seen).sum())
            mine = own.sheet(sheet, both.amounts)
            cells = dict(zip(part.classes, _cells(mine, sheet, len(part.classes)), strict=True))
            share = np.array([cells.get(c, 0.0) for c in pooled.classes])
            share /= np.maximum(_cells(both, sheet, len(pooled.classes)), 1.0)
            have = sum(part.classes[i] in whole.classes for i in mine.label)
            counted.append((what, found, _expected(both, sheet, share, seen, have), sheet == "words"))
    values = [c for c in counted if c[0] != "rows"]
    if len(values) > 1:
        counted.append(("values", sum(c[1] for c in values), sum(c[2] for c in values), True))
    for what, found, expected, several in counted:
        handful = max(1.0, _HANDFUL * expected / max(part.rows, 1)) if several else 1.0
        chance = float(gammaincc(found / handful + 1, expected / handful)) if expected > 0 else 1.0
        yield _New(what, found, expected, min(chance * len(counted), 1.0))


def _expected(sheet: Sheet, name: str, share: Floats, seen: Any, have: int) -> float:
    """Σ q^S over the values of each class, and less where the rows `have` fewer values than rows dealt at random."""
    rows, q = sheet.amount[:, sheet.amounts.index(how_often(name))][seen], share[sheet.label[seen]]
    dealt = float((1.0 - (1.0 - q) ** rows).sum())
    return float((q**rows).sum()) * min(have / dealt, 1.0) if dealt else 0.0


def _cells(sheet: Sheet, name: str, classes: int) -> Floats:
    """How many cells of a column are not missing, or how many words it has, class by class."""
    amounts = sheet.amount[:, sheet.amounts.index(how_often(name))]
    return np.bincount(sheet.label, amounts, classes).astype(np.float64)  # of nothing, numpy counts integers
