"""What is fitted to held-out rows beyond weights: `Isotonic` and `MarginScaling` bend a score, `Correction` a column.

`Isotonic` is a rising curve from the score of two classes to their log-odds. `MarginScaling` bends the lead, how far
the best class is ahead of the second, for scores that are too sure when far ahead, or not sure enough:

    S′ = best + scale · lead^exponent · (S − best)          lead = best − second, at least 0.01

All classes keep their order. A temperature is the case of exponent 0; with an exponent of −½ a lead of 16 nats counts
twice what a lead of 4 does, not four times.

`Correction` is about one column. Columns repeat each other, and what is wrong with their sum can be mended where it
arises: a weight on what the column's counts say, and for every cell and class something that is added.

`Calibrated` tells by which rows all of that was fitted, how it was judged, and how much has changed since.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.canon import many
from ..base.errors import SettingsError


@dataclass(frozen=True)
class Calibrated:
    """Where the weights of some settings come from, and how much has changed since.

    form:     "one temperature", "column weights", "corrections", "corrections and pairs", "… and isotonic curve"
    rows:     rows they were fitted on
    losses:   nested held-out log loss of each form that was tried
    changed:  rows added or forgotten since
    errors:   the standard error of each loss
    note:     what was noticed of the rows: that neighbours are alike, and were held out together
    figures:  accuracy, log_loss, brier and calibration_error of the form taken, on the rows that judged it (before an
              isotonic curve), each with its standard error where it has one
    judged:   how many rows that were
    origin:   rows and digest of the tally as it was before rows were added to it, so that forgetting just these is seen
              to undo it; empty once any other rows are forgotten, which a digest could give away
    given:    columns whose family or smoothing somebody chose, by name; those of the others were chosen by the rows
    asked:    effort, groups and order of the fit, those that were given: who fits on other rows to judge this fit, and
              `recalibrate`, hold rows out in the same way

    >>> rows = {"x": [i % 7 / 2 for i in range(90)], "y": ["low" if i % 7 + i % 3 < 4 else "high" for i in range(90)]}
    >>> found = tb.fit(rows, "y", effort="quick").settings.calibrated
    >>> found.form, found.rows, found.changed
    ('one temperature', 90, 0)
    """

    form: str
    rows: int
    losses: Mapping[str, float] = field(default_factory=dict)
    changed: int = 0
    errors: Mapping[str, float] = field(default_factory=dict)
    note: str = ""
    figures: Mapping[str, tuple[float, ...]] = field(default_factory=dict)
    judged: int = 0
    origin: str = ""
    given: tuple[str, ...] = ()
    asked: Mapping[str, str | bool] = field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        """The share of right answers to rows that had no part in the model that gave them; NaN if none were asked."""
        return self.figures.get("accuracy", (float("nan"),))[0]

    @property
    def calibration_error(self) -> float:
        """How far probabilities and shares of right answers are apart on those rows; NaN if none were asked."""
        return self.figures.get("calibration_error", (float("nan"),))[0]

    def interval(self, metric: str) -> tuple[float, float, float]:
        """A figure with the ends of two standard errors to either side, or with itself where it has none."""
        value, *error = self.figures[metric]
        most = float("inf") if metric == "log_loss" else 1.0
        low, high = (min(max(value + sign * (error[0] if error else 0.0), 0.0), most) for sign in (-2, 2))
        return (value, low, high)

    def __str__(self) -> str:
        error = {name: f" ± {2 * e:.4f}" for name, e in self.errors.items() if name == self.form}
        tried = ", ".join(f"{name} {loss:.4f}{error.get(name, '')}" for name, loss in self.losses.items())
        since = f"; {many(self.changed, 'row')} changed since" if self.changed else ""
        return f"{self.form}, fitted on {many(self.rows, 'row')} (held-out log loss: {tried}){since}"


@dataclass(frozen=True)
class Isotonic:
    """Log-odds of the second class as a rising line through points: (score, calibrated log-odds).

    >>> curve = tb.Isotonic(scores=(-4.0, 0.0, 4.0), odds=(-1.0, 0.0, 2.0))
    >>> curve(np.array([-9.0, 2.0])).tolist()  # level beyond its ends, a line between its points
    [-1.0, 1.0]
    """

    scores: tuple[float, ...]
    odds: tuple[float, ...]

    def __post_init__(self) -> None:
        rising = all(a < b for a, b in pairwise(self.scores)) and all(a <= b for a, b in pairwise(self.odds))
        if not self.scores or len(self.scores) != len(self.odds) or not rising or not np.isfinite(self.odds).all():
            raise SettingsError(
                f"an isotonic curve of {len(self.scores)} scores and {len(self.odds)} log-odds that do not rise",
                hint="fit one: tb.fit(data, target, calibrate='isotonic').",
            )

    @classmethod
    def fitted(cls, scores: Floats, second: Floats, weights: Floats) -> Isotonic:
        """The curve that held-out rows support: pool adjacent violators, each pool shrunk by half a row each way."""
        from scipy.optimize import isotonic_regression

        s, at = np.unique(scores, return_inverse=True)  # equal scores are one point, whatever their order
        w = np.bincount(at, weights)
        y = np.bincount(at, weights * second) / w
        starts = isotonic_regression(y, weights=w).blocks
        pool = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
        rows = np.bincount(pool, w)
        middle = np.bincount(pool, w * s) / rows
        p = np.maximum.accumulate((np.bincount(pool, w * y) + 0.5) / (rows + 1))
        keep = np.concatenate(([True], np.diff(middle) > 0))  # rounding may make neighbours equal
        return cls(tuple(middle[keep].tolist()), tuple(np.log(p / (1 - p))[keep].tolist()))

    def __call__(self, score: Floats) -> Floats:
        """The calibrated log-odds; beyond the ends the curve stays level."""
        return np.interp(score, self.scores, self.odds)


LEAST = 0.01  # nats: a smaller lead is taken as this one
_MOST_BENT = 0.9  # of the exponent either way: at −1 every lead would count the same


@dataclass(frozen=True)
class MarginScaling:
    """What the distances to the best class are multiplied by: scale · lead^exponent.

    >>> tb.MarginScaling(scale=1.0, exponent=-0.5)(np.array([[0.0, -16.0], [0.0, -4.0]])).tolist()  # 16 counts as 4
    [[0.0, -4.0], [0.0, -2.0]]
    """

    scale: float = 1.0
    exponent: float = 0.0

    def __post_init__(self) -> None:
        if not (0 < self.scale < np.inf and -1 < self.exponent < np.inf):
            raise SettingsError(
                f"a lead with scale {self.scale!r} and exponent {self.exponent!r}",
                hint="the scale is above 0 and the exponent above -1, or a larger lead would not be a surer answer.",
            )

    def factor(self, joint: Floats) -> Floats:
        """scale · lead^exponent of each row; 1 where fewer than two classes are possible."""
        two = np.partition(joint, -2, axis=1)[:, -2:] if joint.shape[1] > 1 else np.full((len(joint), 2), -np.inf)
        known = np.isfinite(two).all(axis=1)
        lead = np.subtract(two[:, 1], two[:, 0], out=np.ones(len(joint)), where=known)
        return np.where(known, self.scale * np.maximum(lead, LEAST) ** self.exponent, 1.0)

    def __call__(self, joint: Floats) -> Floats:
        """The scores, rows × classes, with every distance to the best class multiplied; the best keeps its own."""
        best = joint.max(axis=1, keepdims=True)
        apart = np.subtract(joint, best, out=np.full_like(joint, -np.inf), where=np.isfinite(joint))
        return np.asarray(np.where(np.isfinite(best), best + self.factor(joint)[:, None] * apart, joint))

    @classmethod
    def fitted(cls, scores: Floats, labels: Ints, weights: Floats) -> MarginScaling:
        """The bend under which held-out rows are likeliest; a weak pull leads to none at all."""
        from scipy.optimize import minimize

        apart = scores - scores.max(axis=1, keepdims=True)
        log_lead = np.log(np.maximum(-np.partition(apart, -2, axis=1)[:, -2], LEAST))
        own = apart[np.arange(len(labels)), labels]
        total = max(float(weights.sum()), 1.0)

        def loss(x: Floats) -> tuple[float, Floats]:
            factor = np.exp(x[0] + x[1] * log_lead)
            e = np.exp(factor[:, None] * apart)
            among = e.sum(axis=1)
            pulled = weights * factor * (np.einsum("nc,nc->n", e, apart) / among - own)
            value = weights @ (np.log(among) - factor * own) + 0.5 * x @ x
            return value / total, (np.array([pulled.sum(), pulled @ log_lead]) + x) / total

        found = minimize(
            loss, np.zeros(2), jac=True, method="L-BFGS-B", bounds=[(-5.0, 5.0), (-_MOST_BENT, _MOST_BENT)]
        )
        return cls(float(np.exp(found.x[0])), float(found.x[1]))


Lead = MarginScaling  # its first name, by which files know it


UNIT = 2.0**-20  # nats: what a correction adds is a whole number of these, so that files and hashes are stable
_MOST_ADDED = 1e6  # nats


@dataclass(frozen=True, eq=False)
class Correction:
    """What is believed of a column beside its counts: weight · what they say + added[cell, class].

    weight:   a factor on what the counts say; at 0 they are not asked
    classes:  the canonical texts of the classes; one that the model does not have is ignored, one that is not here
              gets nothing added
    added:    nats, cells × classes, in whole units of 2⁻²⁰
    cells:    the values of a category, the slots of a pair, or the words of a bag or text; others get nothing added
    cuts:     of a number instead: where its stretches start, one fewer than rows of `added`

    >>> rows = {"Sky": ["sunny", "sunny", "rainy"], "Play": ["yes", "yes", "no"]}
    >>> sky = tb.Correction(1.0, ("yes", "no"), [[0.5, 0.0]], cells=("sunny",))
    >>> model = tb.count(rows, "Play").model({"corrections": {"Sky": sky}})
    >>> round(model.explain({"Sky": "sunny"}).odds().total, 3)
    2.004
    """

    weight: float
    classes: tuple[str, ...]
    added: Floats
    cells: tuple[str, ...] = ()
    cuts: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        added = _table_of(self.added)
        given = {
            "weight": _number_of(self.weight),
            "classes": _texts("classes", self.classes),
            "cells": _texts("cells", self.cells),
            "cuts": tuple(map(_number_of, self.cuts)),
        }
        for name, value in given.items():
            object.__setattr__(self, name, value)
        if not 0 <= self.weight < np.inf:
            raise SettingsError(f"a correction of weight {self.weight!r}", hint="weights are finite and at least 0.")
        rising = all(a < b for a, b in pairwise(self.cuts)) and bool(np.isfinite(self.cuts).all())
        if not rising or (self.cuts and self.cells):
            raise SettingsError(
                f"a correction with {len(self.cuts)} cuts and {len(self.cells)} cells",
                hint="a number has rising, finite cuts, any other column has cells.",
            )
        rows = {len(self.cells)} if self.cells else {len(self.cuts) + 1} if self.cuts else {0, 1}
        if added.ndim != 2 or not self.classes or added.shape[1] != len(self.classes) or len(added) not in rows:
            raise SettingsError(
                f"a correction whose added numbers have the shape {added.shape}, for {len(self.cells)} cells, "
                f"{len(self.cuts)} cuts and {len(self.classes)} classes",
                hint="give a row for each cell, or one more than cuts, and a column for each class.",
            )
        if not (np.abs(added) <= _MOST_ADDED).all():
            raise SettingsError(
                "a correction that adds more than any evidence, or no number",
                hint=f"give finite nats, at most {_MOST_ADDED:g} either way.",
            )
        added = np.rint(added / UNIT) * UNIT + 0.0  # no negative zeros
        added.setflags(write=False)
        object.__setattr__(self, "added", added)

    @classmethod
    def of_units(cls, units: Any, classes: Any, **more: Any) -> Correction:
        """The correction of a file: `units` are all its added numbers, row by row, as whole numbers of 2⁻²⁰ nats."""
        whole = np.array(units if isinstance(units, list) else None)
        if whole.size and (whole.dtype.kind != "i" or whole.ndim != 1):
            raise ValueError("the units of a correction are no list of whole numbers")
        return cls(classes=classes, added=whole.reshape(-1, max(len(classes), 1)) * UNIT, **more)

    @property
    def units(self) -> list[int]:
        """The inverse of `of_units`."""
        return [int(n) for n in np.rint(self.added / UNIT).ravel().tolist()]

    def on(self, classes: Sequence[str]) -> Floats:
        """What is added, cells × these classes."""
        known = {c: i for i, c in enumerate(self.classes)}
        padded = np.hstack([self.added, np.zeros((len(self.added), 1))])
        return np.asarray(padded[:, [known.get(c, len(known)) for c in classes]])

    def _content(self) -> tuple[Any, ...]:
        return self.weight, self.classes, self.cells, self.cuts, self.added.shape, self.added.tobytes()

    def __eq__(self, other: object) -> bool:
        return self._content() == other._content() if isinstance(other, Correction) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._content())


def _texts(what: str, given: Any) -> tuple[str, ...]:
    out = tuple(given) if isinstance(given, (tuple, list)) else (None,)
    twice = len(set(map(repr, out))) < len(out)
    if twice or not all(isinstance(text, str) for text in out):
        raise SettingsError(
            f"the {what} of a correction " + ("name one twice" if twice else f"are {given!r:.80}"),
            hint=f"give a tuple of {what} as canonical texts, each once.",
        )
    return out


def _number_of(given: Any) -> float:
    try:
        return float(given)
    except (TypeError, ValueError):
        raise SettingsError(f"{given!r:.80} in a correction is no number", hint="give a plain number.") from None


def _table_of(given: Any) -> Floats:
    try:
        return np.array(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise SettingsError(
            "what a correction adds is no table of numbers", hint="give cells × classes nats."
        ) from None
