"""What an evaluation found: figures with intervals, overall and by class, and the mistakes worth looking at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from ...base import view
from ...base.arrays import Floats, Ints
from ...base.canon import many, printable
from ...base.errors import SettingsError, unknown
from ...base.show import Page, Shown
from ...tally.overlap import NO_SIGN, NONE, Overlap
from . import curves, metrics
from .bootstrap import Figures
from .metrics import Scored

if TYPE_CHECKING:
    from ...explain.explanation import Explanation

SHOWN = ("accuracy", "log_loss", "brier", "calibration_error")  # of a printed table; the rest is in `.table`
_MOST_LINES = 40
_MOST_RARE = 5  # classes that are named
_MOST_CLASSES = 12  # of a confusion table in a notebook


@dataclass(frozen=True)
class Mistake:
    """A row that was given to the wrong class: how sure the answer was, and why."""

    row: int  # in its source, the first is 0
    truth: Any
    answer: Any
    probability: float  # of the answer
    explanation: Explanation | None = None

    def __str__(self) -> str:
        head = (
            f"row {self.row}: {printable(self.answer)} with probability {self.probability:.4f}, "
            f"is {printable(self.truth)}"
        )
        return head if self.explanation is None else f"{head}\n{self.explanation}"

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True)
class Mistakes:
    """Mistakes, the surest first."""

    each: tuple[Mistake, ...]
    of: int  # how many there are in all

    def __iter__(self) -> Iterator[Mistake]:
        return iter(self.each)

    def __len__(self) -> int:
        return len(self.each)

    def __getitem__(self, at: int) -> Mistake:
        return self.each[at]

    def __repr__(self) -> str:
        return "\n\n".join([f"the {len(self.each)} surest of {self.of:,} mistakes", *map(str, self.each)])


@dataclass(frozen=True, eq=False, repr=False)
class Evaluation(Shown):
    """Forecasts of rows that their models have not seen, one table of probabilities per setting (and repetition).

    `.table` is an Arrow table with a row per setting: each metric and its interval. `by_class`, `confusion`,
    `reliability` and `mistakes` look closer. Rows that were left out of every fold are not in it.

    >>> rows = {"x": [i % 9 + i % 4 for i in range(40)], "y": ["high" if i % 9 > 3 else "low" for i in range(40)]}
    >>> both = {"gaussian": {"families": "gaussian"}, "bins": {"families": "bins"}}
    >>> found = tb.cross_validate(rows, "y", settings=both, folds=4)
    >>> found.names, found.best("accuracy"), round(found.value("accuracy", "bins"), 3)
    (('gaussian', 'bins'), 'gaussian', 0.775)
    """

    classes: tuple[Any, ...]
    names: tuple[str, ...]  # of the settings
    rows: Ints  # numbers in the source
    labels: Ints
    weights: Floats | None
    forecasts: Mapping[str, Sequence[Floats]]  # setting → a table of probabilities per repetition
    prior: Floats  # rows × classes: what the majority class knows
    folds: Ints | None = None  # of the first repetition
    fold_names: Sequence[str] = ()
    title: str = ""
    seed: int = 0
    settings: Mapping[str, Any] = field(default_factory=dict)
    explain: Callable[[str, int], Explanation] | None = field(default=None, repr=False)
    intervals: bool = field(default=True, kw_only=True)  # whether figures have them
    learnt: Mapping[str, Overlap] = field(default_factory=dict, kw_only=True)  # of models that are there already
    _known: dict[Any, Any] = field(default_factory=dict, repr=False)

    @property
    def learnt_from(self) -> Overlap | None:
        """Whether the (first) model has learnt from these rows; None of folds, which are held out."""
        return next(iter(self.learnt.values()), None)

    @cached_property
    def rare(self) -> str:
        """Classes of too few rows to say how well they are ranked, as a sentence; nothing where there are none."""
        weights = np.ones(len(self.labels)) if self.weights is None else self.weights
        n = np.bincount(self.labels[weights > 0], minlength=len(self.classes))
        few: Ints = np.flatnonzero((n > 0) & (n < metrics.LEAST_ROWS))
        if not len(few) or n.max() < metrics.LEAST_ROWS:
            return ""
        named = [f"{printable(self.classes[i], 40)} ({many(int(n[i]), 'row')})" for i in few[:_MOST_RARE]]
        which = ", ".join(named) + (f" and {len(few) - _MOST_RARE:,} more" if len(few) > _MOST_RARE else "")
        if len(self.classes) == 2:
            return f"ROC-AUC and average precision rest on few rows of a class: {which}."
        return f"ROC-AUC and average precision leave out classes of fewer than {metrics.LEAST_ROWS} rows: {which}."

    def _scored(self, name: str) -> list[Scored]:
        if name not in self.forecasts:
            found = f"there is no setting {name!r} among those evaluated"
            raise unknown(SettingsError, found, name, self.names)
        forecasts = self.forecasts[name]
        out: list[Scored] = self._once(
            ("scored", name), lambda: [Scored.of(self.labels, np.minimum(p, 1.0), self.weights) for p in forecasts]
        )
        return out

    def _once(self, key: Any, work: Callable[[], Any]) -> Any:
        if key not in self._known:
            self._known[key] = work()
        return self._known[key]

    def _name(self, setting: str | int | None) -> str:
        if setting is not None and not isinstance(setting, int):
            return setting
        if not -len(self.names) <= (setting or 0) < len(self.names):
            raise SettingsError(
                f"setting number {setting}, of {len(self.names)}",
                hint="the first is number 0; evaluation.names has their names.",
            )
        return self.names[setting or 0]

    def figure(self, metric: str, setting: str | int | None = None) -> tuple[float, float, float]:
        """(figure, lower, upper) of a metric: a 95 % interval, NaN where `intervals` were left out.

        `setting` is one of `names` or its place, by default the first; SettingsError where there is no such metric.

        >>> days = tb.datasets.tennis()
        >>> [round(v, 2) for v in tb.cross_validate(days, "Play", folds=2).figure("accuracy")]
        [0.43, 0.21, 0.67]
        """
        name = self._name(setting)
        figures = self._figures(name)
        if not self.intervals:
            return self.value(metric, name), np.nan, np.nan
        out: tuple[float, float, float] = self._once((name, metric), lambda: figures.interval(metric))
        return out

    def _figures(self, name: str) -> Figures:
        scored = self._scored(name)
        out: Figures = self._once(("figures", name), lambda: Figures(scored, seed=self.seed))
        return out

    def value(self, metric: str, setting: str | int | None = None) -> float:
        """The figure alone, without working out how sure it is."""
        name = self._name(setting)
        return float(self._once((name, "value", metric), lambda: self._figures(name).value(metric)))

    def __getitem__(self, metric: str) -> float:
        """The metric of the first setting: evaluation["accuracy"]."""
        return self.value(metric)

    def best(self, metric: str = "log_loss") -> str:
        """The setting with the best figure; of equals the first."""
        sign = -1.0 if metric in metrics.SMALLER_IS_BETTER else 1.0
        found = [sign * self.value(metric, name) for name in self.names]
        return self.names[int(np.argmax(found))]

    @property
    def baseline(self) -> dict[str, float]:
        """Every metric of a forecast that knows only how frequent the classes are in training."""
        return {name: self.known(name) for name in metrics.METRICS}

    def known(self, metric: str) -> float:
        """One metric of that forecast."""
        prior: Figures = self._once("prior", lambda: Figures([Scored.of(self.labels, self.prior, self.weights)]))
        return float(self._once(("prior", metric), lambda: prior.value(metric)))

    @cached_property
    def table(self) -> pa.Table:
        """A row per setting: every metric with its interval, e.g. log_loss, log_loss_low, log_loss_high."""
        columns: dict[str, list[Any]] = {"setting": list(self.names), "rows": [len(self.rows)] * len(self.names)}
        for metric in metrics.METRICS:
            found = [self.figure(metric, name) for name in self.names]
            for i, end in enumerate(self._ends):
                columns[metric + end] = [f[i] for f in found]
        return pa.table(columns)

    @property
    def _ends(self) -> tuple[str, ...]:
        return ("", "_low", "_high") if self.intervals else ("",)

    def to_pandas(self) -> Any:
        """The same as a pandas frame."""
        return self.table.to_pandas()

    def by_class(self, setting: str | int | None = None) -> pa.Table:
        """A row per class: how many rows, precision, recall (sensitivity), specificity, F1, ROC-AUC, with intervals."""
        name = self._name(setting)
        figures = self._figures(name)
        out: dict[str, Any] = {"class": [str(c) for c in self.classes]}
        out["rows"] = np.bincount(self.labels, weights=figures.weights, minlength=len(self.classes))
        for metric in metrics.PER_CLASS:
            found = self._once(
                (name, "class", metric, self.intervals), partial(figures.by_class, metric, bounds=self.intervals)
            )
            for i, end in enumerate(self._ends):
                out[metric + end] = found[i]
        return pa.table(out)

    def by_fold(self, metric: str = "log_loss", setting: str | int | None = None) -> dict[str, float]:
        """A metric fold by fold (of the first repetition); where time goes forward this is the learning curve."""
        s, f = self._scored(self._name(setting))[0], metrics.formula(metric)
        if self.folds is None:
            raise SettingsError("a held-out table has no folds", hint="use cross_validate, or figure(metric).")
        numbers = np.unique(self.folds).tolist()
        return {self._fold_name(k): float(f(s, (s.weights * (self.folds == k))[None, :])[0]) for k in numbers}

    def _fold_name(self, k: int) -> str:
        return self.fold_names[k] if k < len(self.fold_names) else str(k)

    def confusion(self, setting: str | int | None = None) -> pa.Table:
        """How many rows of each class (a row) were given to each class (a column); repetitions are averaged.

        >>> days = tb.datasets.tennis()
        >>> tb.cross_validate(days, "Play", folds=2).confusion().to_pylist()
        [{'class': 'no', 'no': 2.0, 'yes': 3.0}, {'class': 'yes', 'no': 5.0, 'yes': 4.0}]
        """
        s = self._scored(self._name(setting))
        n = np.mean([metrics.confusion(r.labels, r.p, r.weights) for r in s], axis=0)
        return pa.table(
            {"class": [str(c) for c in self.classes]} | {str(c): n[:, i] for i, c in enumerate(self.classes)}
        )

    def reliability(self, setting: str | int | None = None, label: Any = None) -> curves.Reliability:
        """Forecast against observed, with Wilson's intervals: of the answer given, or of one class."""
        s = self._scored(self._name(setting))[0]
        return curves.reliability(s.labels, s.p, None if label is None else self._number(label), s.weights)

    def roc(self, label: Any, setting: str | int | None = None) -> curves.Curve:
        """The ROC curve of a class against the rest."""
        s = self._scored(self._name(setting))[0]
        return curves.roc_curve(s.labels, s.p, self._number(label), s.weights)

    def precision_recall(self, label: Any, setting: str | int | None = None) -> curves.Curve:
        """The precision-recall curve of a class against the rest."""
        s = self._scored(self._name(setting))[0]
        return curves.precision_recall_curve(s.labels, s.p, self._number(label), s.weights)

    def _number(self, label: Any) -> int:
        names = [str(c) for c in self.classes]
        if str(label) not in names:
            raise unknown(SettingsError, f"there is no class {label!r}", label, names)
        return names.index(str(label))

    def mistakes(self, n: int = 5, setting: str | int | None = None, *, explain: bool = True) -> Mistakes:
        """The surest wrong answers, each explained by the model that gave it: a hint to columns that are missing.

        >>> days = tb.datasets.tennis()
        >>> tb.cross_validate(days, "Play", folds=2).mistakes(1, explain=False)
        the 1 surest of 8 mistakes
        <BLANKLINE>
        row 5: yes with probability 0.9084, is no
        """
        if not isinstance(n, (int, np.integer)) or n < 0:
            raise SettingsError(f"{n!r} mistakes", hint="take a whole number of at least 0.")
        name = self._name(setting)
        s = self._scored(name)[0]
        wrong = np.flatnonzero(s.hit == 0)
        at = wrong[np.argsort(-s.top[wrong], kind="stable")][:n]
        why = self.explain if explain else None
        return Mistakes(
            tuple(
                Mistake(
                    int(self.rows[i]),
                    self.classes[int(s.labels[i])],
                    self.classes[int(s.predicted[i])],
                    float(s.top[i]),
                    None if why is None else why(name, int(i)),
                )
                for i in at.tolist()
            ),
            len(wrong),
        )

    def _page(self) -> Page:
        lines = [["", *(m.replace("_", " ") for m in SHOWN)]]
        for name in self.names[:_MOST_LINES]:
            cells = [self.figure(m, name) for m in SHOWN]
            around = (f" ({a:.3f}–{b:.3f})" if self.intervals else "" for _, a, b in cells)
            lines.append([printable(name, 60), *(f"{c[0]:.4f}{ends}" for c, ends in zip(cells, around, strict=True))])
        if len(self.names) > _MOST_LINES:
            lines.append([f"… {len(self.names) - _MOST_LINES} more settings"])
        lines.append(["majority class", *(f"{self.known(m):.4f}" for m in SHOWN)])
        return Page(self.title, lines, left=len(lines[0]), foot=self._foot())

    def _folds(self) -> Iterator[str]:
        name = self.best() if len(self.names) > 1 else self._name(None)
        of = f" of {printable(name, 40)}" if len(self.names) > 1 else ""
        label = self.classes[1] if len(self.classes) == 2 else None
        c = self.reliability(name, label)
        what = "the answer" if label is None else printable(label, 20)
        drawn = view.square(
            [(c.forecast, c.observed)], f"forecast of {what}", "came true", f"reliability of {what}",
            (c.forecast, c.low, c.high),
        )  # fmt: skip
        few = len(self.classes) <= _MOST_CLASSES
        table = self.confusion(name)
        counts = np.array([column.to_numpy() for column in table.columns[1:]]).T
        shown = view.side_by_side(drawn, view.shaded(counts, self.classes) if few else "")
        yield view.fold(f"Reliability{' and confusion' if few else ''}{of}", shown, is_open=True)
        if few:
            yield view.fold(f"By class{of}", self._by_class_table(name))

    def _by_class_table(self, name: str) -> str:
        found = self.by_class(name).to_pydict()
        lines = []
        for i, label in enumerate(self.classes):
            cells = [str(label), f"{found['rows'][i]:,.10g}"]
            for metric in metrics.PER_CLASS:
                around = (
                    f" ({found[f'{metric}_low'][i]:.3f}–{found[f'{metric}_high'][i]:.3f})" if self.intervals else ""
                )
                value = found[metric][i]
                cells.append("–" if value is None or np.isnan(value) else f"{value:.4f}{around}")
            lines.append(cells)
        return view.table(["", "rows", *(m.replace("_", " ") for m in metrics.PER_CLASS)], lines)

    def spans(self, metric: str) -> str:
        """A metric of every setting as a line with its interval, the best first, for a notebook."""
        found = sorted(((*self.figure(metric, n), n) for n in self.names), key=lambda f: (f[0] != f[0], f[0]))
        found = found if metric in metrics.SMALLER_IS_BETTER else found[::-1]
        known = [v for *figures, _ in found for v in figures if np.isfinite(v)]
        low, reach = (min(known), (max(known) - min(known)) or 1.0) if known else (0.0, 1.0)
        rows = []
        for value, a, b, name in found[:_MOST_LINES]:
            at = [(v - low) / reach for v in (a, value, b)]
            rows.append([printable(name, 60), view.span(at[0], at[1], at[2], f"{value:.4f}"), f"{value:.4f}"])
        return view.table(
            ["", "with its 95 % interval" if self.intervals else "", metric.replace("_", " ")], rows, (0, 1)
        )

    def _foot(self) -> str:
        seen = self.learnt_from
        if seen is None or seen.verdict in (NONE, NO_SIGN):
            return self.rare
        advice = ". Hold rows out, or let tb.cross_validate(rows, model.schema) score each by the others."
        return f"{seen.says}{advice if seen.flatters else '.'} {self.rare}".rstrip()
