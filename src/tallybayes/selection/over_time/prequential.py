"""Each period judged by the model of the periods before it: as it would have answered at the time.

The model of a period is a sum of tallies that are there already, so that judging a year of days counts nothing anew,
and a window's length or a half-life is chosen by what it would have been worth.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ...base.canon import many
from ...base.canon import text as canonical
from ...base.errors import CannotEstimate
from ...base.show import Page, Shown, first_that_fits
from ...data import encode
from ...data.sources import open_source
from ...families.settings import SettingsLike
from ...model.model import Model
from ...tally.windows import Windows

if TYPE_CHECKING:
    from ...explain.plots import PeriodsDisplay


@dataclass(frozen=True)
class JudgedPeriod:
    """How the rows of one period were answered by the model of those before."""

    period: str
    rows: int
    log_loss: float  # the mean of −log P(label) by weight, in nats, of labels that had been seen; nan if there is none
    accuracy: float
    new_labels: int  # rows whose label no row before had: their answer is wrong, and they have no log loss


@dataclass(frozen=True, repr=False)
class Prequential(Shown):
    """What `tb.prequential` found, period by period. Print it.

    >>> windows = tb.Windows(tb.Schema([tb.Column("Sky", "category")], target="Play"), by="day", time="When")
    >>> rows = {"Sky": ["sunny"] * 60 + ["rainy"] * 60, "Play": ["yes", "no"] * 60}
    >>> rows["When"] = [f"2024-05-{1 + row // 20:02}" for row in range(120)]
    >>> windows.add(rows)
    >>> [period.period for period in tb.prequential(windows, rows).periods]
    ['2024-05-02', '2024-05-03', '2024-05-04', '2024-05-05', '2024-05-06']
    """

    model: str  # of which periods the models are
    periods: tuple[JudgedPeriod, ...]
    total: JudgedPeriod

    def __iter__(self) -> Iterator[JudgedPeriod]:
        return iter(self.periods)

    def plot(self, ax: Any = None) -> PeriodsDisplay:
        """The log loss of each period."""
        return self.picture().plot(ax)

    def picture(self) -> PeriodsDisplay:
        """The same, not drawn yet."""
        from ...explain.plots import PeriodsDisplay

        names = tuple(j.period for j in self.periods)
        return PeriodsDisplay(names, {self.model: (names, [j.log_loss for j in self.periods])}, "log loss")

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        yield first_that_fits((self._page(w) for w in ((), (4,))), options.max_width).rich()

    def _page(self, without: tuple[int, ...] = ()) -> Page:
        lines = [["period", "rows", "log loss", "accuracy", "new labels"]]
        lines += [
            [
                j.period,
                f"{j.rows:,}",
                "-" if math.isnan(j.log_loss) else f"{j.log_loss:.4f}",
                f"{j.accuracy:.1%}",
                f"{j.new_labels:,}",
            ]
            for j in (*self.periods, self.total)
        ]
        kept = [i for i in range(5) if i not in without and (i < 4 or self.total.new_labels)]
        title = f"Each period judged by {self.model}"
        return Page(title, [[line[i] for i in kept] for line in lines], [0], indent=2)


def prequential(
    windows: Windows, data: Any, settings: SettingsLike = None, *, last: int | None = None, half_life: int | None = None
) -> Prequential:
    """How the rows of each period are answered by the model of all periods before it, the `last` so many, or decayed.

    `data` are rows with labels, such as those that the windows were counted from. Rows of the first period have no
    model before them and are not judged.

    >>> windows = tb.Windows(tb.Schema([tb.Column("Sky", "category")], target="Play"), by="day", time="When")
    >>> rows = {"Sky": ["sunny"] * 60 + ["rainy"] * 60, "Play": ["yes", "no"] * 60}
    >>> rows["When"] = [f"2024-05-{1 + row // 20:02}" for row in range(120)]
    >>> windows.add(rows)
    >>> tb.prequential(windows, rows, last=2).total.accuracy
    0.5
    """
    judge = _Judge(windows, settings, last, half_life)
    start = 0
    source = open_source(encode.as_table(windows.schema, data), target=windows.schema.target)
    for batch in source.batches(windows.wanted()):
        if batch.rows:
            periods = windows.periods_of(batch, start)
            for k in np.unique(periods).tolist():
                judge.add(k, batch.take(np.flatnonzero(periods == k)))
        start += batch.rows
    found = tuple(_Sums.judged(sums, windows.name(k)) for k, sums in sorted(judge.sums.items()))
    if not found:
        raise CannotEstimate(
            "no row has a period before it that was counted",
            hint="give rows of at least two periods, the first of which the windows have counted.",
        )
    whole = _Sums()
    for sums in judge.sums.values():
        whole.join(sums)
    which = f"the {last:,} before it" if last is not None else "all before it"
    which += "" if half_life is None else f", half as much every {many(half_life, 'period')}"
    return Prequential(f"the model of {which}", found, whole.judged("all"))


class _Sums:
    def __init__(self) -> None:
        self.rows = self.new_labels = 0
        self.weight = self.known = self.loss = self.right = 0.0

    def join(self, other: _Sums) -> None:
        for name, value in vars(other).items():
            setattr(self, name, getattr(self, name) + value)

    def judged(self, period: str) -> JudgedPeriod:
        loss = self.loss / self.known if self.known else float("nan")
        return JudgedPeriod(period, self.rows, loss, self.right / self.weight, self.new_labels)


class _Judge:
    def __init__(self, windows: Windows, settings: SettingsLike, last: int | None, half_life: int | None) -> None:
        self.windows, self.settings, self.last, self.half_life = windows, settings, last, half_life
        self.models: dict[int, Model | None] = {}
        self.sums: dict[int, _Sums] = {}

    def model(self, k: int) -> Model | None:
        """The model before a period; None where there is none."""
        if k not in self.models:
            end = self.windows.name(k)
            before = self.windows.tally(end=end, last=self.last, half_life=self.half_life)
            self.models[k] = before.model(self.settings) if before.rows else None
        return self.models[k]

    def add(self, k: int, batch: Any) -> None:
        """Judge some rows of a period."""
        model, schema = self.model(k), self.windows.schema
        given, weights = encode.labels(schema, batch), encode.weights(schema, batch)
        rows = np.flatnonzero((given.codes >= 0) & (True if weights is None else weights > 0))
        if model is None or len(rows) == 0:
            return
        place = {canonical(c): i for i, c in enumerate(model.classes)}
        label = np.array([place.get(s, -1) for s in given.slots], dtype=np.int64)[given.codes[rows]]
        weight = np.ones(len(rows)) if weights is None else weights[rows]
        log = model.predict_log_proba(batch.take(rows))
        seen = label >= 0
        sums = self.sums.setdefault(k, _Sums())
        sums.rows += len(rows)
        sums.new_labels += int(np.count_nonzero(~seen))
        sums.weight += float(weight.sum())
        sums.known += float(weight[seen].sum())
        sums.loss -= float(weight[seen] @ log[seen, label[seen]])
        sums.right += float(weight[np.argmax(log, axis=1) == label].sum())
