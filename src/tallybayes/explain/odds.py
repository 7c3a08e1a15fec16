"""One class against another: the log-odds of every line, its interval, and the counts behind it."""

from __future__ import annotations

from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

from ..base.canon import number_text, printable
from ..base.show import Page, Shown, cascade, digits_for, signed, softmax, strongest, times

_MOST_LINES = 39  # and one more for the rest
WORTH_SAYING = 0.005  # of log units: a correction that is smaller is not told apart from what was counted


@dataclass(frozen=True)
class Line:
    """One line: what was seen, its log-odds for one class against the other, and what that rests on."""

    column: str
    value: str
    label: str  # both, as printed
    log_odds: float
    interval: tuple[float, float]  # NaN where nothing is known of it
    variance: float
    counts: tuple[float, float, float, float] | None  # count and of how many, in the class and in the other
    corrected: float = 0.0  # how much of the log-odds a correction has added to what was counted

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
    """The lines of an explanation as log-odds of `label` against `against`; their sum is `total`."""

    label: Any
    against: Any
    lines: tuple[Line, ...]
    level: float
    log: str
    unit: float  # natural logs in one of these

    @property
    def total(self) -> float:
        """The log-odds of the two classes."""
        out = 0.0
        for line in self.lines:
            out += line.log_odds
        return out

    @property
    def probability(self) -> float:
        """P(label) if it is one of the two classes."""
        return float(softmax(np.array([self.total * self.unit, 0.0]))[0])

    @property
    def interval(self) -> tuple[float, float]:
        """Of the total: the variances of the lines added up, as they are nearly independent; NaN if some is unknown."""
        known = [line for line in self.lines if line.log_odds != 0 or line.known]
        if not all(line.known for line in known):
            return (np.nan, np.nan)
        reach = NormalDist().inv_cdf(0.5 + self.level / 2) * float(np.sqrt(sum(line.variance for line in known)))
        return (self.total - reach, self.total + reach)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain Python values."""
        return {
            "class": self.label,
            "against": self.against,
            "log": self.log,
            "level": self.level,
            "lines": [
                {
                    "column": x.column,
                    "value": x.value,
                    "log_odds": x.log_odds,
                    "interval": list(x.interval) if x.known else None,
                    "counts": None if x.counts is None else [float(n) for n in x.counts],
                    **({"counted": x.counted, "corrected": x.corrected} if x.corrected else {}),
                }
                for x in self.lines
            ],
            "total": self.total,
            "interval": None if np.isnan(self.interval[0]) else list(self.interval),
            "probability": self.probability,
        }

    def _kept(self) -> list[Line]:
        """The strongest lines in their order, the rest as one."""
        strengths = [np.inf, *(abs(line.log_odds) for line in self.lines[1:])]
        kept, rest = strongest(self.lines, strengths, _MOST_LINES)
        if rest:
            label = f"({len(rest)} more, each weaker)"
            kept.append(Line("", label, label, sum(x.log_odds for x in rest), (np.nan, np.nan), np.nan, None))
        return kept

    def _page(self) -> Page:
        lines = self._kept()
        p = self.probability
        finite = bool(np.isfinite(self.total))
        digits = digits_for(np.array([self.total, 0.0]), self.unit, np.array([p, 1 - p])) if finite else 4
        terms, totals = cascade(np.array([[line.log_odds] for line in lines]), digits)
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
        return Page(f"{own} against {other}: probability {p:.4f}", rows, sums=1)


def _of(n: float, of: float) -> str:
    return f"{number_text(round(float(n), 1))} of {number_text(round(float(of), 1))}"
