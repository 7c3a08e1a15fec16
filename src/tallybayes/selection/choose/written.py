"""A choice written down: as a schema with the pairs that were taken, settings, and figures of what judged it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ...base.arrays import Floats, Ints
from ...data.schema import Schema
from ...families import Bins, Blend, Family, Gaussian
from ...families.calibration import Correction, Isotonic
from ...families.settings import Settings
from ...families.smoothing import Smoothing
from ..measure.metrics import Scored, calibration_error
from .columns import Category, Coded, DealtRows, Number
from .forms import listed
from .ladder import SHARED, Choice
from .losses import both_classes, error_of_mean

READ_BY: tuple[Family, ...] = (
    Gaussian(variance="shared"),
    Gaussian(predictive=True),
    Bins("frequency", 10),
    Bins("frequency", 25),
)  # what `columns.Number.tables` are the fast twins of
_UNIT = 2.0**20  # corrections are rounded to 1 / _UNIT
_LEAST = 0.0005  # nats: a pair none of whose corrections reaches this is not counted


class Written:
    """A choice as a schema and settings."""

    def __init__(
        self, schema: Schema, base: Settings, coded: Mapping[str, Coded], choice: Choice, classes: tuple[str, ...]
    ) -> None:
        self._schema, self.base, self.coded, self.choice, self.classes = schema, base, coded, choice, classes
        x, joint = choice.solution, choice.joint
        self.added = np.rint(both_classes(x.added, len(classes)) * _UNIT) / _UNIT
        self.weights: dict[str, Floats] = {}
        self.rows: dict[str, Floats] = {}
        at = 0
        shares = [*joint.blended, *[np.ones(1)] * (len(joint.terms) - len(joint.blended))]
        for term, share, (first, count) in zip(joint.terms, shares, joint.of_term, strict=True):
            own = x.weights[first : first + count]
            self.weights[term.name] = own * share if joint.blended and count else own
            padded = np.concatenate([self.added[at : at + term.n_rows], np.zeros((1, len(classes)))])
            self.rows[term.name] = padded[term.corrected[:, : term.size]].sum(axis=0)
            at += term.n_rows
        self.pairs = [p for p in choice.pairs if np.abs(self.rows[p.name]).max(initial=0.0) >= _LEAST]

    def schema(self) -> Schema:
        """With the pairs that were taken."""
        return self._schema._with(columns=[*self._schema.columns, *(p.column() for p in self.pairs)])

    def settings(self) -> Settings:
        """Weights where a column has no corrections, and corrections, which have a weight of their own."""
        base, x = self.base, self.choice.solution
        families: dict[str, Any] = dict(base.families)
        weights: dict[str, float] = {}
        corrections: dict[str, Correction] = {}
        for name, coded in self.coded.items():
            own = self.weights[name]
            total = float(own.sum())
            if isinstance(coded, Number):
                shares = own / total if total > 0 else np.full(len(own), 1 / len(own))
                families[name] = Blend(READ_BY, tuple(shares.tolist()))
            correction = self._correction(coded, total)
            if correction is None:
                weights[name] = total
            else:
                corrections[name] = correction
        for pair in self.pairs:
            rows = self.rows[pair.name]
            used = np.flatnonzero(np.any(rows != 0, axis=1))
            cells = tuple(pair.slot(int(i)) for i in used)
            corrections[pair.name] = Correction(
                float(self.weights[pair.name].sum()), self.classes, rows[used], cells=cells
            )
        joint = self.choice.joint
        lengths = {}
        for i, dense in enumerate(joint.dense):
            weights[dense.name] = float(x.weights[joint.readers + i])
            if i in joint.lengths:
                lengths[dense.name] = float(x.exponents[joint.lengths.index(i)])
        weights = {c.name: weights[c.name] for c in self._schema.counted if c.name in weights}
        return replace(
            base, families=families, smoothing=self._smoothing(), weights=weights,
            lengths=lengths, offsets=self._offsets(), corrections=corrections,
        )  # fmt: skip

    def _smoothing(self) -> Smoothing | Mapping[str, Smoothing]:
        """How strongly the values of each category are drawn to what is known without them, unless somebody said so."""
        found = {name: c.smoothing() for name, c in self.coded.items() if isinstance(c, Category) and c.given is None}
        if not found:
            return self.base.smoothing
        return {**(self.base.smoothing if isinstance(self.base.smoothing, Mapping) else {}), **found}

    def _correction(self, coded: Coded, weight: float) -> Correction | None:
        rows = self.rows[coded.name]
        if not rows.any():
            return None
        if coded.ordered:
            kept = np.concatenate([[True], np.any(np.diff(rows, axis=0) != 0, axis=1)])
            return Correction(weight, self.classes, rows[kept], cuts=tuple(coded.cuts[kept[1:]].tolist()))
        used = np.flatnonzero(np.any(rows != 0, axis=1))
        return Correction(weight, self.classes, rows[used], cells=tuple(coded.slots[i] for i in used.tolist()))

    def _offsets(self) -> dict[str, float]:
        """The offset of each class, their mean 0; none if they were not fitted."""
        each = both_classes(self.choice.solution.offsets, len(self.classes))
        if not each.any():
            return {}
        return dict(zip(self.classes, (each - each.mean()).tolist(), strict=True))


def curve_of(choice: Choice, rows: DealtRows) -> Isotonic:
    """The isotonic curve through the nested scores of two classes."""
    at = choice.judged
    return Isotonic.fitted(choice.scores[at, 0], (rows.labels[at] == 1).astype(float), rows.weights[at])


def figures(choice: Choice, rows: DealtRows) -> dict[str, tuple[float, ...]]:
    """What the nested scores of the form that was taken are worth, each figure with its standard error."""
    at, form = choice.judged, listed(choice.form)
    scores = both_classes(choice.scores[at], rows.n_classes)
    p = np.exp(scores - scores.max(axis=1, keepdims=True))
    scored = Scored.of(rows.labels[at], p / p.sum(axis=1, keepdims=True), rows.weights[at])
    units = None if rows.units is None else rows.units[at]
    square = 0.5 * (np.einsum("ij,ij->i", scored.p, scored.p) - 2 * scored.of_truth + 1.0)
    return {
        "accuracy": _mean_and_error(scored.hit, scored.weights, units),
        "log_loss": (choice.losses[form], choice.errors[form]),
        "brier": _mean_and_error(square, scored.weights, units),
        "calibration_error": (calibration_error(scored.labels, scored.p, scored.weights),),
    }


def _mean_and_error(each: Floats, weights: Floats, units: Ints | None) -> tuple[float, float]:
    return float(weights / weights.sum() @ each), SHARED * error_of_mean(each, weights, units)
