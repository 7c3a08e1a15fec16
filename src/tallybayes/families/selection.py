"""Which words of a vocabulary are believed: decided after counting, from the rows that have each word."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ..base.arrays import Bools, Floats
from ..base.errors import SettingsError

MEASURES = ("information", "chi-square")


@dataclass(frozen=True)
class Selection:
    """Cuts by document frequency, then the best words by a measure; the default keeps everything.

    min_rows    a word must be in at least so many rows
    max_share   and in at most this share of them
    top         of those the so many that tell most about the class
    by          "information" (gain, in nats) or "chi-square"
    """

    min_rows: float = 0
    max_share: float = 1.0
    top: int | None = None
    by: str = "information"

    def __post_init__(self) -> None:
        if (
            self.by not in MEASURES
            or not 0 < self.max_share <= 1
            or self.min_rows < 0
            or (self.top is not None and self.top < 1)
        ):
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
        expected = size * rows / n
        safe = np.where(expected > 0, expected, 1.0)
        if by == "information":
            ratio = np.where((seen > 0) & (expected > 0), seen / safe, 1.0)
            out += np.sum(seen * np.log(ratio), axis=1) / n
        else:
            out += np.sum(np.where(expected > 0, (seen - expected) ** 2 / safe, 0.0), axis=1)
    return out
