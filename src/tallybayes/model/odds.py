"""The most telling values of a column: how many times likelier they are in one class than in the others."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..base.arrays import Floats
from ..base.canon import printable
from ..base.show import Page
from ..families import Table


@dataclass(frozen=True)
class Odds:
    """One value: P(value given class), P(value given the others), and their ratio, which may be infinite."""

    value: str
    inside: float
    outside: float

    @property
    def ratio(self) -> float:
        """P(value given class) / P(value given the others)."""
        if self.outside == 0:
            return float("inf") if self.inside > 0 else 1.0
        return self.inside / self.outside


@dataclass(frozen=True)
class OddsTable:
    """Values by falling odds ratio for one class."""

    column: str
    label: Any
    against: str
    rows: tuple[Odds, ...]

    def __iter__(self) -> Iterator[Odds]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __repr__(self) -> str:
        title = f"{printable(self.column)}: times likelier in {printable(self.label)} than in {printable(self.against)}"
        lines = []
        for r in self.rows:
            ratio = "∞" if np.isinf(r.ratio) else f"{r.ratio:.4g}"
            lines.append([printable(r.value, 30), f"{ratio:>9}×", f" {r.inside:.3g} against {r.outside:.3g}"])
        return str(Page(title, lines, left=3, indent=2))


def elsewhere(table: Table, prior: Floats, label: int, against: int | None = None) -> Floats:
    """P(value) in the other classes, which count by their prior, or in the one named."""
    others = [i for i in range(len(prior)) if i != label] if against is None else [against]
    return np.asarray(table.values[:, others] @ (prior[others] / max(float(prior[others].sum()), 1e-300)))


def odds_table(
    column: str, table: Table, prior: Floats, label: int, against: int | None, top: int, least: float
) -> OddsTable:
    """The `top` values with the highest odds ratio; the others count by their prior unless one is named.

    Of equal ratios the more frequent value comes first. Values whose probability in the class is below `least` are
    left out.
    """
    inside = table.values[:, label]
    outside = elsewhere(table, prior, label, against) if len(prior) > 1 or against is not None else inside
    rows = [
        Odds(value, float(a), float(b)) for value, a, b in zip(table.rows, inside, outside, strict=True) if a >= least
    ]
    rows.sort(key=lambda r: (-r.ratio, -r.inside, r.value))
    name = "the others" if against is None else str(table.classes[against])
    return OddsTable(column, table.classes[label], name, tuple(rows[:top]))
