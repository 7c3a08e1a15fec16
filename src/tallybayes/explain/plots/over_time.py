"""Pictures along periods: what is told of each, the level that matters, and when something changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .paper import axes, bare, colour, label, legend_above
from .scores import Display

_TICKS = 8  # names of periods that have room
_LONGEST = 24


@dataclass
class PeriodsDisplay(Display):
    """Curves over periods, in their order; a level, and what changed when."""

    periods: Sequence[str]
    curves: Mapping[str, tuple[Sequence[str], Sequence[float]]]  # name → (periods, values)
    what: str
    level: float | None = None
    marks: Sequence[tuple[str, str]] = ()  # (curve, period)

    @property
    def size(self) -> tuple[float, float]:
        """Width and height in inches where no axes are given."""
        return 6.4, 3.6

    def plot(self, ax: Any = None) -> PeriodsDisplay:
        """Draw it."""
        ax = axes(ax, *self.size)
        place = {period: i for i, period in enumerate(self.periods)}
        numbers = {name: i for i, name in enumerate(self.curves)}
        for name, (periods, values) in self.curves.items():
            x = [place[p] for p in periods]
            style = {"marker": "o", "markersize": 3} if len(x) <= 2 * _TICKS else {}
            ax.plot(x, values, color=colour(numbers[name]), linewidth=1.2, label=label(name, _LONGEST), **style)
        for name, period in self.marks:
            ax.axvline(place[period] - 0.5, color=colour(numbers[name]), linewidth=1, linestyle="--", zorder=0)
        if self.level is not None:
            ax.axhline(self.level, color="#7d8590", linewidth=1, linestyle=":", label="level")
        step = max(-(-len(self.periods) // _TICKS), 1)
        ticks = range(0, len(self.periods), step)
        ax.set_xticks(ticks, [label(self.periods[i], _LONGEST) for i in ticks], rotation=30, ha="right", fontsize=8)
        ax.set(ylabel=self.what, xlim=(-0.5, len(self.periods) - 0.5))
        legend_above(ax)
        bare(ax, grid="y")
        return self._drawn(ax)
