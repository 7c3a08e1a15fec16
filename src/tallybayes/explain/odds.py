"""One class against another: the log-odds of every line, its interval, and the counts behind it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, TypeVar

import numpy as np

from ..base import view
from ..base.canon import number_text, printable
from ..base.show import FEWEST, Page, Shown, digits_for, first_that_fits, running, signed, softmax, strongest, times

A = TypeVar("A")
_MOST_LINES = 39  # and one more for the rest, so that the sum holds
WORTH_SAYING = 0.005  # of log units: smaller corrections are not told apart, smaller lines not shown one by one


@dataclass(frozen=True)
class Line:
    """One line: what was seen, its log-odds for one class against the other, and what that rests on."""

    column: str
    value: str
    label: str  # both, as printed
    log_odds: float  # infinite where one of the classes is impossible, NaN where both are
    interval: tuple[float, float]  # NaN where nothing is known of it
    variance: float
    counts: tuple[float, float, float, float] | None  # count and of how many, in the class and in the other
    corrected: float = 0.0  # how much of the log-odds a correction has added to what was counted
    mean: float = np.nan  # of what the log-odds may be, finite where they are not
    note: str = ""  # why it is no evidence
    pair: bool = False  # two columns together

    @property
    def counted(self) -> float:
        """What the counts say, under the column's weight."""
        return self.log_odds - self.corrected

    @property
    def known(self) -> bool:
        """Whether there is an interval."""
        return not np.isnan(self.interval[0])


@dataclass(frozen=True, repr=False)
class LogOdds(Shown):
    """The lines of an explanation as log-odds of `label` against `against`; their sum is `total`.

    Without smoothing a class may be impossible, and its log-odds infinite. Where both are, there is no sum, and the
    prior answers.
    """

    label: Any
    against: Any
    lines: tuple[Line, ...]
    level: float
    log: str
    unit: float  # natural logs in one of these
    start: float = 0.0  # what the prior says: the answer where both classes are impossible
    cut: bool = False  # the rest is one line already, see `top`

    def top(self, n: int) -> LogOdds:
        """The same sum, shorter: the prior, the `n` strongest lines first, and the rest as one with its interval."""
        kept, rest = by_strength(self.lines[1:], [x.log_odds for x in self.lines[1:]], n)
        if rest:
            alone = replace(self, lines=tuple(rest))
            label, variance = the_rest(len(rest)), sum(x.variance for x in rest if x.log_odds != 0 or x.known)
            added = sum(x.corrected for x in rest)
            kept.append(Line("", label, label, alone.total, alone.interval, variance, None, added, alone._middle))
        return replace(self, lines=(self.lines[0], *kept), cut=True)

    @property
    def total(self) -> float:
        """The log-odds of the two classes; NaN where both are impossible."""
        out = 0.0
        for line in self.lines:
            out += line.log_odds
        return out

    @property
    def probability(self) -> float:
        """P(label) if it is one of the two classes."""
        total = self.start if np.isnan(self.total) else self.total
        return float(softmax(np.array([total * self.unit, 0.0]))[0])

    @property
    def interval(self) -> tuple[float, float]:
        """Of the total: the variances of the lines added up, as they are nearly independent; NaN if some is unknown.

        About an infinite total it is open on one side, and ends on the other where lines that are infinite now may.
        """
        known = [line for line in self.lines if line.log_odds != 0 or line.known]
        if np.isnan(self.total) or not all(line.known for line in known):
            return (np.nan, np.nan)
        reach = NormalDist().inv_cdf(0.5 + self.level / 2) * float(np.sqrt(sum(line.variance for line in known)))
        return (
            -np.inf if self.total == -np.inf else self._middle - reach,
            np.inf if self.total == np.inf else self._middle + reach,
        )

    @property
    def _middle(self) -> float:
        """The total, or where it is infinite what it may be on average."""
        return sum(line.mean if np.isinf(line.log_odds) else line.log_odds for line in self.lines)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain Python values; None for what is not known, or has no value."""
        return {
            "class": self.label,
            "against": self.against,
            "log": self.log,
            "level": self.level,
            "lines": [
                {
                    "column": x.column,
                    "value": x.value,
                    "log_odds": None if np.isnan(x.log_odds) else x.log_odds,
                    "interval": list(x.interval) if x.known else None,
                    "counts": None if x.counts is None else [float(n) for n in x.counts],
                    **({"counted": x.counted, "corrected": x.corrected} if x.corrected else {}),
                }
                for x in self.lines
            ],
            "total": None if np.isnan(self.total) else self.total,
            "interval": None if np.isnan(self.interval[0]) else list(self.interval),
            "probability": self.probability,
        }

    def _kept(self) -> list[Line]:
        """The strongest lines in their order, the rest as one."""
        if self.cut:
            return list(self.lines)
        strengths = [np.inf, *(abs(x.log_odds) for x in self.lines[1:])]
        kept, rest, label = shortened(self.lines, strengths, [bool(x.note) and not x.pair for x in self.lines])
        if rest:
            kept.append(Line("", label, label, sum(x.log_odds for x in rest), (np.nan, np.nan), np.nan, None))
        return kept

    def _page(self, without: Collection[int] = ()) -> Page:
        """The table, without some of its columns."""
        lines = self._kept()
        p = self.probability
        finite = bool(np.isfinite(self.total))
        digits = digits_for(np.array([self.total, 0.0]), self.unit, np.array([p, 1 - p])) if finite else FEWEST
        terms, totals, remark = running(np.array([[line.log_odds] for line in lines]), digits)
        own, other = printable(self.label, 20), printable(self.against, 20)
        unit = "log-odds" if self.log == "natural" else self.log if self.log == "decibans" else f"log{self.log}-odds"
        rows = [["", unit, f"{100 * self.level:g} % interval", "total", "times", own, other]]
        for line, term, total in zip(lines, terms[:, 0], totals[:, 0], strict=True):
            counts = ["", ""] if line.counts is None else [_of(*line.counts[:2]), _of(*line.counts[2:])]
            reach = f"{signed(line.interval[0], 2)} to {signed(line.interval[1], 2)}" if line.known else ""
            split = ""
            if abs(line.corrected) >= WORTH_SAYING:
                split = f"  counted {signed(line.counted, 2)}, corrected {signed(line.corrected, 2)} →"
            rows.append([line.label + split, signed(term, digits), reach, signed(total, digits)])
            rows[-1] += [times(line.log_odds * self.unit), *counts]
        low, high = self.interval
        reach = "" if np.isnan(low) else f"{signed(low, 2)} to {signed(high, 2)}"
        rows.append(
            ["together", signed(float(totals[-1, 0]), digits), reach, "", times(self.total * self.unit), "", ""]
        )
        instead = "; both are impossible, so the prior answers" if np.isnan(self.total) else ""
        rows = [[cell for i, cell in enumerate(row) if i not in without] for row in rows]
        return Page(f"{own} against {other}: probability {p:.4f}{instead}", rows, sums=1, foot=remark)

    def picture(self) -> str:
        """The sum as bars, one line each, for a notebook."""
        lines = self._kept()
        finite = [abs(x.log_odds) for x in lines if np.isfinite(x.log_odds)]
        most = 2 * max([1.0, *finite])  # what has no end is drawn so long
        sizes = [0.0 if np.isnan(x.log_odds) else float(np.clip(x.log_odds, -most, most)) for x in lines]
        ends = np.concatenate([[0.0], np.cumsum(sizes)])
        low = float(ends.min())
        places = (ends - low) / (float(ends.max()) - low or 1.0)
        told = [(x.label, signed(x.log_odds, 2)) for x in lines]
        rows = [
            [name, view.floating(a, b, places[0], said), said]
            for (name, said), a, b in zip(told, places[:-1], places[1:], strict=True)
        ]
        total = "both impossible: the prior answers" if np.isnan(self.total) else "together"
        end = signed(self.total, 2)
        rows.append([total, view.floating(places[0], places[-1], places[0], end), end])
        toward = f"{printable(self.label, 20)} (right) against {printable(self.against, 20)} (left)"
        return view.table(("", toward, "log-odds"), rows, left=(0, 1), sums=1)

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """All columns for which there is room: without factors, then counts, then running totals."""
        pages = (self._page(without) for without in ((), (4,), (4, 5, 6), (3, 4, 5, 6)))
        yield first_that_fits(pages, options.max_width).rich()


def by_strength(lines: Sequence[A], odds: Sequence[float], most: int) -> tuple[list[A], list[A]]:
    """The `most` lines whose log-odds are farthest from 0, these first, and the rest, which is none or more than one.

    What is impossible in both classes has no log-odds, and comes before all.
    """
    strengths = [np.inf if np.isnan(v) else abs(v) for v in odds]
    order = sorted(range(len(lines)), key=lambda i: -strengths[i])
    most = len(lines) if len(lines) <= most + 1 else most
    return [lines[i] for i in order[:most]], [lines[i] for i in order[most:]]


def the_rest(count: int) -> str:
    """What a line is called that stands for so many."""
    return f"the rest: {count:,} terms"


def shortened(lines: Sequence[A], strengths: Sequence[float], noted: Sequence[bool]) -> tuple[list[A], list[A], str]:
    """The lines to be shown, in their order, those to be put into one, if any, and what to call that one.

    Lines that say less than 0.005 go together, unless they say why; of many others the weakest, too.
    """
    said = [noted[i] or not s < WORTH_SAYING for i, s in enumerate(strengths)]
    if said.count(False) < 2:
        said = [True] * len(said)
    quiet = [a for a, s in zip(lines, said, strict=True) if not s]
    shown = [i for i, s in enumerate(said) if s]
    # what is impossible in all has no strength, and is told before all
    by = [np.inf if np.isnan(strengths[i]) else strengths[i] for i in shown]
    kept, rest = strongest([lines[i] for i in shown], by, _MOST_LINES)
    if rest:
        return kept, [*rest, *quiet], f"({len(rest) + len(quiet)} more, each weaker)"
    return kept, quiet, f"({len(quiet)} more, each below {WORTH_SAYING})"


def _of(n: float, of: float) -> str:
    return f"{number_text(round(float(n), 1))} of {number_text(round(float(of), 1))}"
