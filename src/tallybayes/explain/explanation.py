"""Why a row got its answer: what each column and word said, adding up to the score, and what every line rests on.

The log-odds of two classes under the prior are the difference of two log Gamma variables; for the columns see
`families.support`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.arrays import Floats
from ..base.canon import many, printable
from ..base.canon import text as canonical
from ..base.errors import SettingsError, unknown
from ..base.show import FEWEST, Page, Shown, digits_for, first_that_fits, running, signed
from ..base.view import fold, scrolled
from ..data.blocks import Block
from ..data.clock import told_by
from ..families.smoothing import Dirichlet
from ..families.support import ColumnTally, Support, log_gamma, supports_of
from ..model import posterior
from ..model.prior import class_totals
from ..model.reasons import term_text, value_text
from ..model.watching.learnt import beyond
from .odds import WORTH_SAYING, Line, LogOdds, by_strength, shortened, the_rest

if TYPE_CHECKING:
    from ..model.model import Model


_MOST_CLASSES = 6
_NAMES = (20, 12, 8)  # characters of the name of a class, fewer where there is little room
_MOST_SPLIT = 3  # classes for which a line says what was counted and what a correction has added
LOGS = {"natural": 1.0, "2": math.log(2), "10": math.log(10), "decibans": math.log(10) / 10}


@dataclass(frozen=True)
class Contribution:
    """One line: a column, what was seen there, and what it adds to the score of each class."""

    column: str
    label: str
    parts: Floats
    note: str = ""
    factor: float = 1.0  # what the column's evidence was multiplied by; `parts` have it in them
    corrected: Floats | None = None  # what a correction adds to what was counted; `parts` are the two together
    pair: bool = False  # two columns together, which say something only beyond what each does by itself
    beyond: str = ""  # of a number that lies beyond all that were counted: the range of these

    @property
    def counted(self) -> Floats:
        """What the counts say, under the column's weight; all of it where there is no correction."""
        return self.parts if self.corrected is None else np.asarray(self.parts - self.corrected)

    def moved(self, at: Sequence[int]) -> bool:
        """Whether a correction has moved some of these classes against others by so much that it is worth a word."""
        return self.corrected is not None and float(np.ptp(self.corrected[at])) >= WORTH_SAYING

    def __str__(self) -> str:
        label = term_text(self.column, self.label)
        weight = "" if self.factor == 1.0 or self.note else f"  (weight {self.factor:.3g})"
        if self.factor == 0:
            return f"{label}  (not used)"
        far = f"  ({self.beyond})" if self.beyond else ""
        return label + weight + far + (f"  ({self.note}: no evidence)" if self.note else "")


@dataclass(frozen=True, repr=False)
class Explanation(Shown):
    """The score of one row as a sum: the prior, then every contribution, in log units of `log`.

    `total` is the sum; `probabilities` follow from it. Print it for the running-total table of the lectures; `odds()`
    compares two classes, with the interval of each line and the counts behind it.

    >>> model = tb.textbook({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> model.explain({"Sky": "rainy"})
    no, probability 0.5714 (natural logs)
                      no      yes     Σ no    Σ yes
    prior        -1.0986  -0.4055  -1.0986  -0.4055
    Sky: rainy   -0.4055  -1.3863  -1.5041  -1.7918
    probability                     0.5714   0.4286
    """

    classes: tuple[Any, ...]
    contributions: tuple[Contribution, ...]  # the first is the prior
    probabilities: Floats
    log: str = "natural"
    _supports: Callable[[], Sequence[Support | None]] | None = field(default=None, repr=False, compare=False)
    _cut_from: tuple[Explanation, int] | None = field(default=None, repr=False, compare=False)  # see `top`

    def top(self, n: int) -> Explanation:
        """The same sum, shorter: the prior, the `n` strongest contributions first, and the rest as one.

        Strong is what speaks for or against the likeliest class beside the next one. `odds` of it are cut likewise.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> model.explain(windy).top(2)
        no, probability 0.7201 (natural logs)
                                no      yes     Σ no    Σ yes
        prior              -1.0296  -0.4418  -1.0296  -0.4418
        Outlook: sunny     -0.6931  -1.3863  -1.7228  -1.8281
        Humidity: high     -0.3365  -1.0116  -2.0592  -2.8397
        the rest: 2 terms  -1.9459  -2.1102  -4.0051  -4.9499
        probability                           0.7201   0.2799
        rounded, so that the last digits of a sum may differ
        """
        whole = self if self._cut_from is None else self._cut_from[0]
        if isinstance(n, bool) or not isinstance(n, (int, np.integer)) or n < 1:
            raise SettingsError(f"top({n!r})", hint="take a whole number of at least 1.")
        odds = [odds for _, _, odds in whole.for_class(None)][1:]
        kept, rest = by_strength(whole.contributions[1:], odds, int(n))
        lines = [whole.contributions[0], *kept]
        if rest:
            lines.append(Contribution("", the_rest(len(rest)), np.sum([c.parts for c in rest], axis=0)))
        return replace(whole, contributions=tuple(lines), _supports=None, _cut_from=(whole, int(n)))

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

    @property
    def supports(self) -> Sequence[Support | None]:
        """What each contribution rests on: counts, and how uncertain it is; None for one that no rows were behind."""
        return [None] * len(self.contributions) if self._supports is None else self._supports()

    @property
    def counts(self) -> list[dict[Any, tuple[float, float]] | None]:
        """For each contribution {class: (count behind it, of how many)}; None where nothing was counted."""
        return [
            None if s is None else {c: (float(n), float(of)) for c, n, of in zip(self.classes, s.n, s.of, strict=True)}
            for s in self.supports
        ]

    def interval(self, label: Any = None, against: Any = None, *, level: float = 0.95) -> list[tuple[float, float]]:
        """For each contribution a credible interval of its log-odds for one class against another; NaN if unknown."""
        return [line.interval for line in self.odds(label, against, level=level).lines]

    def odds(self, label: Any = None, against: Any = None, *, level: float = 0.95) -> LogOdds:
        """What speaks for a class (default: the likeliest) against another (default: the next), interval by interval.

        `level` is how much of the posterior the intervals hold.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> model.explain(windy).odds("yes", "no")
        yes against no: probability 0.2799
                           log-odds   95 % interval    total    times      yes       no
        prior               +0.5878  -0.46 to +1.82  +0.5878     ×1.8  9 of 14  5 of 14
        Outlook: sunny      -0.6931  -2.19 to +0.50  -0.1054     ×0.5   2 of 9   3 of 5
        Temperature: cool   +0.2877  -1.08 to +2.26  +0.1823   ×1.333   3 of 9   1 of 5
        Humidity: high      -0.6751  -1.82 to +0.20  -0.4928  ×0.5091   3 of 9   4 of 5
        Wind: strong        -0.4520  -1.63 to +0.63  -0.9448  ×0.6364   3 of 9   3 of 5
        together            -0.9448  -3.74 to +1.85           ×0.3888
        rounded, so that the last digits of a sum may differ
        """
        if not 0 < level < 1:
            raise SettingsError(f"level={level!r}", hint="take a share between 0 and 1, such as 0.95.")
        if self._cut_from is not None:
            whole, most = self._cut_from
            return whole.odds(label, against, level=level).top(most)
        at, other = self._pair(label, against)
        unit = LOGS[self.log]
        lines = []
        for c, s in zip(self.contributions, self.supports, strict=True):
            with np.errstate(invalid="ignore"):
                odds = float(c.parts[at] - c.parts[other])
            odds = 0.0 if at == other else odds
            low, high, mean, variance = [np.nan] * 4 if s is None else s.interval(at, other, odds * unit, level)
            behind = None if s is None else (s.n[at], s.of[at], s.n[other], s.of[other])
            added = 0.0 if c.corrected is None else float(c.corrected[at] - c.corrected[other])
            told = (str(c), odds, (low / unit, high / unit), variance / unit**2, behind, added, mean / unit, c.note)
            lines.append(Line(c.column, c.label, *told, pair=c.pair))
        return LogOdds(
            self.classes[at], self.classes[other], tuple(lines), level, self.log, unit, self._prior_odds(at, other)
        )

    def _prior_odds(self, at: int, other: int) -> float:
        """What answers for two classes that are both impossible: the prior, as it does where all of them are."""
        p = self.probabilities[[at, other]]
        with np.errstate(divide="ignore", invalid="ignore"):
            of_all = float(np.subtract(*np.log(p))) / LOGS[self.log]
            alone = float(np.subtract(*self.contributions[0].parts[[at, other]]))
        return float(np.nan_to_num(alone if np.isnan(of_all) else of_all, nan=0.0, posinf=np.inf, neginf=-np.inf))

    def for_class(self, label: Any, against: Any = None) -> list[tuple[str, str, float]]:
        """(column, value, log-odds) of each contribution for one class against another (default: the next best).

        The log-odds are infinite where one of the two is impossible, and NaN where both are.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> [(column, round(nats, 2)) for column, _, nats in model.explain(windy).for_class("no")]
        [('prior', -0.59), ('Outlook', 0.69), ('Temperature', -0.29), ('Humidity', 0.68), ('Wind', 0.45)]
        """
        at, other = self._pair(label, against)
        with np.errstate(invalid="ignore"):
            return [(c.column, c.label, float(c.parts[at] - c.parts[other])) for c in self.contributions]

    def _pair(self, label: Any, against: Any) -> tuple[int, int]:
        order = np.argsort(-self.probabilities, kind="stable").tolist()
        at = order[0] if label is None else self._at(label)
        rest = [i for i in order if i != at]
        return at, self._at(against) if against is not None else rest[0] if rest else at

    def _at(self, label: Any) -> int:
        for i, known in enumerate(self.classes):
            if known == label or canonical(known) == canonical(label):
                return i
        raise unknown(SettingsError, f"there is no class {label!r}", label, self.classes)

    def to_dict(self) -> dict[str, Any]:
        """The same as plain Python values.

        >>> days = tb.datasets.tennis()
        >>> model, windy = tb.textbook(days, "Play"), days.truth["asked"]["windy"]
        >>> sorted(model.explain(windy).to_dict())
        ['classes', 'contributions', 'log', 'probabilities', 'total']
        """
        return {
            "classes": list(self.classes),
            "log": self.log,
            "contributions": [
                {"column": c.column, "value": c.label, "parts": c.parts.tolist(), "note": c.note, "factor": c.factor}
                | ({"beyond": c.beyond} if c.beyond else {})
                | ({} if c.corrected is None else {"counted": c.counted.tolist(), "corrected": c.corrected.tolist()})
                | ({} if s is None else {"counts": s.n.tolist(), "of": s.of.tolist()})
                for c, s in zip(self.contributions, self.supports, strict=True)
            ],
            "total": self.total.tolist(),
            "probabilities": self.probabilities.tolist(),
        }

    def shown(self, classes: int = _MOST_CLASSES) -> tuple[list[int], list[Contribution]]:
        """What fits a page: the numbers of the likeliest classes, and the contributions, the weakest put into one."""
        likely = sorted(np.argsort(-self.probabilities, kind="stable")[:classes].tolist())
        if self._cut_from is not None:
            return likely, list(self.contributions)
        with np.errstate(invalid="ignore"):
            spread = [float(np.ptp(c.parts)) for c in self.contributions[1:]]
        size = [float(np.abs(c.parts).max(initial=0.0)) for c in self.contributions[1:]]
        strengths = [s if s < WORTH_SAYING else max(d, WORTH_SAYING) for s, d in zip(size, spread, strict=True)]
        kept, rest, label = shortened(
            self.contributions, [np.inf, *strengths], [bool(c.note) and not c.pair for c in self.contributions]
        )
        if rest:
            kept.append(Contribution("", label, np.sum([c.parts for c in rest], axis=0)))
        return likely, kept

    def _page(self, classes: int = _MOST_CLASSES, longest: int = _NAMES[0]) -> Page:
        """The headline, and the running-total table; names of classes are cut to so many characters."""
        at, lines = self.shown(classes)
        names = [printable(self.classes[i], longest) for i in at]
        total = self.total
        every = LOGS[self.log]
        possible = bool(np.isfinite(total).any())
        digits = digits_for(total, every, self.probabilities) if possible else FEWEST
        terms, totals, remark = running(np.array([c.parts for c in lines])[:, at], digits)
        rows = [["", *names, *(f"Σ {n}" for n in names)]]
        for c, term, so_far in zip(lines, terms, totals, strict=True):
            split = ""
            if c.moved(at):
                each = ", ".join(signed(float(v), 2) for v in np.asarray(c.corrected)[at])
                split = f"  (corrected {each})" if len(at) <= _MOST_SPLIT else "  (corrected)"
            rows.append(
                [str(c) + split, *(signed(v, digits) for v in term), *(signed(v, digits).lstrip("+") for v in so_far)]
            )
        rows.append(["probability", *("" for _ in names), *(f"{p:.4f}" for p in self.probabilities[at])])
        unit = {"natural": "natural logs", "decibans": "decibans"}.get(self.log, f"logs to base {self.log}")
        best = printable(self.classes[int(np.argmax(self.probabilities))], 40)
        hidden = len(self.classes) - len(at)
        left = many(hidden, "less likely class is", "less likely classes are")
        more = f"; {left} not shown" if hidden else ""
        more += "" if possible else "; every class is impossible, so the prior answers"
        return Page(f"{best}, probability {max(self.probabilities):.4f} ({unit}{more})", rows, sums=1, foot=remark)

    def _picture(self) -> str:
        return self.odds().picture() if len(self.classes) > 1 else ""

    def _folds(self) -> Iterator[str]:
        odds = self.odds()
        if any(line.known for line in odds.lines):
            yield fold(f"Intervals and counts behind each line, {odds.level:.0%}", scrolled(odds._page().html()))

    def __rich_console__(self, console: Any, options: Any) -> Iterator[Any]:
        """As many classes as the terminal has room for, two at least, and then less of their names."""
        pages = (self._page(classes, longest) for longest in _NAMES for classes in range(_MOST_CLASSES, 1, -1))
        yield first_that_fits(pages, options.max_width).rich()


def explained(model: Model, blocks: Mapping[str, Block], log: str, start: Floats, prior: Any) -> Explanation:
    """The explanation of one row (blocks of one), in logs of `log`; `prior` is what was asked for, None for the own."""
    if log not in LOGS:
        raise unknown(SettingsError, f"log={log!r}", log, LOGS)
    unit = LOGS[log]
    offsets = posterior.offsets(model.settings, model.classes)
    lines = [Contribution("prior", "", (start - offsets) / unit)]
    if model.settings.offsets:
        lines.append(Contribution("offsets", "", offsets / unit))
    for name, belief in model.beliefs.items():
        factor = posterior.factor_of_one(model.settings, name, blocks[name])
        far = beyond(model.tally, name, blocks[name])
        told = value_text(model.schema[name], blocks[name], 0) if told_by(model.schema[name]) else None
        for term in belief.terms(blocks[name], 0):
            parts = term.parts * factor if factor else np.zeros_like(term.parts)
            corrected = None if term.corrected is None else term.corrected * factor / unit
            paired = len(model.schema[name].of or ()) == 2
            lines.append(
                Contribution(name, told or term.label, parts / unit, term.note, factor, corrected, paired, far)
            )
    total = Explanation(model.classes, tuple(lines), np.zeros(len(model.classes)), log).total[None, :] * unit
    if model.settings.curves:
        after = posterior.calibrated(model.settings, total, posterior.prior_shift(start, model.start))
        moved = np.subtract(after, total, out=np.zeros_like(total), where=np.isfinite(total))
        lines.append(Contribution("calibration", "", moved[0] / unit))
        total = after
    log_p = posterior.log_posterior(total, start)[0]
    behind = None if model.tally is None else partial(model_supports, model, blocks, prior)
    return Explanation(model.classes, tuple(lines), np.exp(log_p), log, behind)


def of_prior(n: Floats, imagined: Floats | None) -> Support:
    """The support of the class prior; `imagined` rows on top of the counted, None for a prior that was given."""
    of = np.full(len(n), n.sum())
    if imagined is None:
        return Support(n, of, lambda y: np.zeros(1))
    amounts = n + imagined
    return Support(n, of, (lambda y: log_gamma(float(amounts[y]))) if np.all(amounts > 0) else None)


def model_supports(model: Model, blocks: Mapping[str, Block], prior: Any) -> list[Support | None]:
    """The support of every line of an explanation: the prior, then each term of each column (blocks of one row)."""
    assert model.tally is not None
    names = tuple(str(canonical(c)) for c in model.classes)
    chosen = model.settings.prior if prior is None else prior
    imagined = None
    if isinstance(chosen, Dirichlet):
        imagined = chosen.amounts_for(names, ("",))[:, 0]
    elif isinstance(chosen, str) and chosen == "counted":
        imagined = np.zeros(len(names))
    out: list[Support | None] = [of_prior(class_totals(model.tally, names), imagined)]
    if model.settings.offsets:
        out.append(None)  # their own line, which no row stands behind alone
    number = np.array([names.index(c) for c in model.tally.classes], dtype=np.int64)
    kept = np.array_equal(number, np.arange(len(number)))
    for name, belief in model.beliefs.items():
        counts = model.tally.columns[name] if kept else model.tally.columns[name].relabel(number)
        counted = ColumnTally(counts, names, model.settings.smoothing_of(name))
        found = supports_of(belief, counted, blocks[name])
        factor = posterior.factor_of_one(model.settings, name, blocks[name])
        out += [None if s is None else s.times(factor) for s in found]
    return [*out, None] if model.settings.curves else out  # the curve's own line
