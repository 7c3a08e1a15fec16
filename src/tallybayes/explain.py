"""Why a row got its answer: what each column and word said, adding up to the score."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from .canon import printable
from .errors import SettingsError
from .numerics import Floats

_MOST_LINES = 40  # of an explanation that is printed; what is left out stands in one line, so that the sum holds
_MOST_CLASSES = 6
LOGS = {"natural": 1.0, "2": math.log(2), "10": math.log(10), "decibans": math.log(10) / 10}


@dataclass(frozen=True)
class Contribution:
    """One line: a column, what was seen there, and what it adds to the score of each class."""

    column: str
    label: str
    parts: Floats
    note: str = ""


@dataclass(frozen=True)
class Explanation:
    """The score of one row as a sum: the prior, then every contribution, in log units of `log`.

    `total` is the sum; `probabilities` follow from it. Print it for the running-total table of the lectures.
    """

    classes: tuple[Any, ...]
    contributions: tuple[Contribution, ...]  # the first is the prior
    probabilities: Floats
    log: str = "natural"

    @property
    def total(self) -> Floats:
        """The score of each class: the contributions added up in the order shown."""
        out = np.zeros(len(self.classes))
        for c in self.contributions:
            out = out + c.parts
        return out

    def running(self) -> Iterator[tuple[Contribution, Floats]]:
        """Each contribution with the total so far."""
        total = np.zeros(len(self.classes))
        for c in self.contributions:
            total = total + c.parts
            yield c, total

    def for_class(self, label: Any, against: Any = None) -> list[tuple[str, str, float]]:
        """(column, value, log-odds) of each contribution for one class against another (default: the next best)."""
        at = self._at(label)
        if against is not None:
            other = self._at(against)
        else:
            rest = [i for i in np.argsort(-self.probabilities, kind="stable") if i != at]
            other = int(rest[0]) if rest else at
        with np.errstate(invalid="ignore"):
            return [(c.column, c.label, float(c.parts[at] - c.parts[other])) for c in self.contributions]

    def _at(self, label: Any) -> int:
        for i, known in enumerate(self.classes):
            if known == label or str(known) == str(label):
                return i
        raise SettingsError(
            f"there is no class {label!r}", hint=f"the classes are {', '.join(map(str, self.classes))}."
        )

    def to_dict(self) -> dict[str, Any]:
        """The same as plain Python values."""
        return {
            "classes": list(self.classes),
            "log": self.log,
            "contributions": [
                {"column": c.column, "value": c.label, "parts": c.parts.tolist(), "note": c.note}
                for c in self.contributions
            ],
            "total": self.total.tolist(),
            "probabilities": self.probabilities.tolist(),
        }

    def shown(self) -> tuple[list[int], list[Contribution]]:
        """What fits a page: the numbers of the likeliest classes, and the contributions, the weakest put into one."""
        likely = sorted(np.argsort(-self.probabilities, kind="stable")[:_MOST_CLASSES].tolist())
        lines = list(self.contributions)
        if len(lines) <= _MOST_LINES:
            return likely, lines
        with np.errstate(invalid="ignore"):
            strength = [np.inf, *(float(np.nan_to_num(np.ptp(c.parts), nan=np.inf)) for c in lines[1:])]
        kept = set(np.argsort(-np.array(strength), kind="stable")[: _MOST_LINES - 1].tolist())
        rest = [c for i, c in enumerate(lines) if i not in kept]
        together = Contribution("", f"({len(rest)} more, each weaker)", np.sum([c.parts for c in rest], axis=0))
        return likely, [*(c for i, c in enumerate(lines) if i in kept), together]

    def __str__(self) -> str:
        at, lines = self.shown()
        names = [printable(self.classes[i], 20) for i in at]
        rows: list[Sequence[str]] = [("", *names, *(f"Σ {n}" for n in names))]
        total = np.zeros(len(self.classes))
        for c in lines:
            total = total + c.parts
            label = printable(f"{c.column}: {c.label}" if c.column and c.label else c.column or c.label)
            note = f"  ({c.note}: no evidence)" if c.note else ""
            rows.append((label + note, *(f"{v:+.4f}" for v in c.parts[at]), *(f"{v:.4f}" for v in total[at])))
        rows.append(("probability", *(["" for _ in names]), *(f"{p:.4f}" for p in self.probabilities[at])))
        widths = [max(len(r[i]) for r in rows) for i in range(len(rows[0]))]
        drawn = [
            "  ".join(v.ljust(w) if i == 0 else v.rjust(w) for i, (v, w) in enumerate(zip(r, widths, strict=True)))
            for r in rows
        ]
        unit = {"natural": "natural logs", "decibans": "decibans"}.get(self.log, f"logs to base {self.log}")
        best = printable(self.classes[int(np.argmax(self.probabilities))], 40)
        hidden = len(self.classes) - len(at)
        more = f"; {hidden} less likely classes are not shown" if hidden else ""
        return "\n".join([f"{best}, probability {max(self.probabilities):.4f} ({unit}{more})", *drawn])

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        head = "".join(f"<th>{html.escape(printable(c))}</th>" for c in self.classes)
        totals = "".join(f"<th>Σ {html.escape(printable(c))}</th>" for c in self.classes)
        body = []
        for c, total in self.running():
            cells = "".join(f"<td>{v:+.4f}</td>" for v in c.parts) + "".join(f"<td>{v:.4f}</td>" for v in total)
            note = f" <i>({html.escape(c.note)}: no evidence)</i>" if c.note else ""
            label = html.escape(printable(f"{c.column}: {c.label}" if c.label else c.column))
            body.append(f"<tr><th style='text-align:left'>{label}{note}</th>{cells}</tr>")
        chances = "<td></td>" * len(self.classes) + "".join(f"<td><b>{p:.4f}</b></td>" for p in self.probabilities)
        return (
            f"<table><thead><tr><th></th>{head}{totals}</tr></thead><tbody>{''.join(body)}"
            f"<tr><th style='text-align:left'>probability</th>{chances}</tr></tbody></table>"
        )
