"""Which words are believed, decided after counting from the rows that have each word; and what was counted of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..base.arrays import Bools, Floats, Ints, log_ratio_sum
from ..base.arrow import array, numpy_of, scalar
from ..base.errors import SettingsError
from ..data.blocks import WORDS, N
from ..exact.counts import Counts
from ..exact.dense import BagSheet, positions
from ..exact.sheet import Sheet
from .base import Context
from .smoothing import Laplace, is_number

MEASURES = ("information", "chi-square")


@dataclass(frozen=True)
class Selection:
    """Cuts by document frequency, then the best words by a measure; the default keeps everything.

    min_rows    a word must be in at least so many rows
    max_share   and in at most this share of them
    top         of those the so many that tell most about the class
    by          "information" (gain, in nats) or "chi-square"

    >>> rows = {"note": ["win cash now", "see you now", "win win"], "y": ["spam", "ham", "spam"]}
    >>> few = tb.families.Multinomial(select=tb.families.Selection(top=2))
    >>> tb.textbook(rows, "y", kinds={"note": "text"}, families={"note": few}).table("note").rows
    ['see', 'win']
    """

    min_rows: float = 0
    max_share: float = 1.0
    top: int | None = None
    by: str = "information"

    def __post_init__(self) -> None:
        numbers = all(map(is_number, (self.min_rows, self.max_share, 1 if self.top is None else self.top)))
        some = numbers and self.min_rows >= 0 and 0 < self.max_share <= 1 and (self.top is None or self.top >= 1)
        if not some or self.by not in MEASURES:
            raise SettingsError(
                f"words selected with min_rows={self.min_rows!r}, max_share={self.max_share!r}, top={self.top!r}, "
                f"by={self.by!r}",
                hint="min_rows is at least 0, max_share above 0 up to 1, top at least 1, by 'information' or "
                "'chi-square'.",
            )

    def everything(self) -> bool:
        """Whether no word can be left out."""
        return self.min_rows <= 1 and self.max_share >= 1 and self.top is None

    def kept(self, there: Floats, rows: Floats) -> Bools:
        """Which words stay, given the rows that have them (words × classes) and the rows of each class."""
        total, everyone = there.sum(axis=1), max(float(rows.sum()), 1.0)
        out: Bools = (total >= self.min_rows) & (total <= self.max_share * everyone)
        if self.top is not None and np.count_nonzero(out) > self.top:
            score = measure(there, rows, self.by)
            score[~out] = -np.inf
            best = np.argsort(-score, kind="stable")[: self.top]
            out = np.zeros_like(out)
            out[best] = True
        return out


def measure(there: Floats, rows: Floats, by: str) -> Floats:
    """How much the presence of each word tells about the class: information gain in nats, or chi-square."""
    n = max(float(rows.sum()), 1.0)
    gone = np.maximum(rows - there, 0.0)
    total = there.sum(axis=1, keepdims=True)
    out = np.zeros(len(there))
    for seen, size in ((there, total), (gone, n - total)):
        if by == "information":
            out += log_ratio_sum(seen, n, size, rows, axis=1) / n
        else:
            expected = size * rows / n
            safe = np.where(expected > 0, expected, 1.0)
            out += np.sum(np.where(expected > 0, (seen - expected) ** 2 / safe, 0.0), axis=1)
    return out


@lru_cache(maxsize=8)
def sorted_positions(width: int) -> tuple[tuple[str, ...], pa.Array]:
    """The positions of a matrix as sorted texts."""
    names = tuple(sorted(map(str, range(width))))
    return names, array(names, pa.string())


@lru_cache(maxsize=8)
def _places(width: int) -> Ints:
    """Where each position stands among the sorted ones."""
    out = np.empty(width, dtype=np.int64)
    out[np.array([int(name) for name in sorted_positions(width)[0]], dtype=np.int64)] = np.arange(width)
    return out


def _of_matrix(sheet: Sheet, width: int | None) -> bool:
    """Whether the sheet's names are the positions of a matrix of this width."""
    return isinstance(sheet, BagSheet) and width is not None and sheet.names is positions(width)


def vocabulary(counts: Counts, context: Context, select: Selection) -> Sequence[str]:
    """The words believed: those selected of the ones seen, every position of a matrix, those a prior names."""
    sheet = counts.sheet("words", WORDS)
    every, texts = sorted_positions(context.width or 0)
    extra = context.smoothing.extra_slots()
    if every and not extra:
        known = _of_matrix(sheet, context.width)
        if known or pc.all(pc.is_in(sheet.slots, value_set=texts)).as_py() is not False:
            return every  # whatever is selected: positions stay
    if select.everything() and not every and not extra:
        return _in_order(counts)[0]
    seen = sheet.slot_names
    if not select.everything():
        sheet = sheet.in_order  # of words that tell equally much the first are kept, whatever order they were met in
        seen = sheet.slot_names
        kept = select.kept(sheet.table("documents", context.n_classes), bag_rows(counts, context))
        seen = [w for w, k in zip(seen, kept, strict=True) if k]
    return sorted({*seen, *every, *extra})


def _in_order(counts: Counts) -> tuple[tuple[str, ...], Ints]:
    """All words that were counted, sorted, and where each slot of their sheet stands among them."""

    def work() -> tuple[tuple[str, ...], Ints]:
        sheet = counts.sheet("words", WORDS)
        at = np.empty(len(sheet.order), dtype=np.int64)
        at[sheet.order] = np.arange(len(at))
        return tuple(sheet.slots.take(array(sheet.order)).to_pylist()), at

    return counts.once("words in order", work)


def _rows_of(counts: Counts, sheet: Sheet, words: Sequence[str]) -> Ints:
    """The row of each slot of a sheet among some words, −1 for one that is not among them."""
    every, at = _in_order(counts)
    if words is every:
        return at
    found = pc.index_in(sheet.slots, value_set=array(words, pa.string()))
    return np.asarray(numpy_of(found.fill_null(scalar(-1, found.type))), dtype=np.int64)


def word_table(counts: Counts, context: Context, amount: str, words: Sequence[str], more: int = 0) -> Floats:
    """One amount, words × classes, with `more` empty rows."""
    sheet = counts.sheet("words", WORDS)
    if isinstance(sheet, BagSheet) and _of_matrix(sheet, context.width) and len(words) == context.width:
        return sheet.table_by(amount, context.n_classes, _places(len(words)), len(words) + more)
    return sheet.table_at(amount, context.n_classes, _rows_of(counts, sheet, words), len(words) + more)


def smoothed_words(counts: Counts, context: Context, amount: str, words: Sequence[str]) -> tuple[Floats, Floats] | None:
    """Σ of one amount by class, and what Laplace's formula makes of each word, words × classes, in one pass.

    None where the way by `word_table` has to be gone: for anything but all words, or all positions of a matrix.
    """
    sheet, smoothing = counts.sheet("words", WORDS), context.smoothing
    if type(smoothing) is not Laplace or smoothing.alpha == 0:
        return None
    if isinstance(sheet, BagSheet):
        if not _of_matrix(sheet, context.width) or len(words) != context.width:
            return None
        by_class = sheet.total_by(amount, context.n_classes)
        if by_class is None:
            return None
        divisor = smoothing.divisors(by_class, len(words))
        return by_class, sheet.shares_by(amount, _places(len(words)), smoothing.alpha, divisor)
    every, at = _in_order(counts)
    if words is not every or len(words) == 0 or sheet.limb.any():
        return None
    n = sheet.amount[:, sheet.amounts.index(amount)]
    total = np.bincount(sheet.label, n, context.n_classes).astype(np.float64)  # whole numbers below 2³² each: exact
    divisor = smoothing.divisors(total, len(words))
    p = np.empty((len(words), context.n_classes))
    p[:] = smoothing.alpha / divisor
    p.reshape(-1)[at[sheet.slot] * context.n_classes + sheet.label] = (n + smoothing.alpha) / divisor[sheet.label]
    return total, p


def bag_rows(counts: Counts, context: Context) -> Floats:
    """How many rows of each class have a bag, empty ones included."""
    table = counts.sheet("rows", N).table("n", context.n_classes)
    return table[0] if len(table) else np.zeros(context.n_classes)
