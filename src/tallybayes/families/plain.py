"""The beliefs that hold no counts: what a sealed file stores, by name, and what any form can be made into.

The names are those of files that were written before; a class that is renamed keeps its name here.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ..base.arrays import Floats, Ints
from ..base.errors import SettingsError
from ..base.lazy import xlogy
from ..data.blocks import Numbers
from . import forms
from .base import Belief, Table
from .blend import BlendBelief
from .categorical import CategoricalBelief
from .complement import ComplementBelief
from .gaussian import GaussianBelief, StudentBelief
from .levels import BagLevelsBelief
from .pair import InteractionBelief
from .poisson import PoissonBelief
from .presence import BernoulliWordsBelief
from .words import MultinomialBelief


@dataclass(frozen=True)
class StepsBelief(Belief):
    """logs[k] for values from starts[k − 1] up to but without starts[k]."""

    starts: Floats
    logs: Floats  # one more than starts × classes; the largest of each row is 0

    density = False  # what all classes share has been left out

    def parts(self, block: Numbers) -> Floats:
        """What the value's stretch says; 0 for missing."""
        out = np.zeros((block.rows, self.logs.shape[1]))
        there = block.present()
        out[there] = self.logs[np.searchsorted(self.starts, block.values[there], side="right")]
        return out

    def form(self) -> forms.StepsForm:
        """The steps."""
        return forms.StepsForm(self.starts, self.logs)

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """Nothing: the steps do not know how the values lie."""
        return pa.nulls(len(labels), pa.float64())

    def parameters(self) -> tuple[int, int]:
        """A number per step and class."""
        return self.logs.size, self.logs.size

    def table(self) -> Table:
        """What each step says."""
        edges = ["", *(f"{s:.6g}" for s in self.starts), ""]
        rows = [f"{a} to {b}".strip() for a, b in pairwise(edges)]
        return Table("log evidence by step", rows, self.logs, "steps")


@dataclass(frozen=True)
class RateBelief(Belief):
    """x·log rate + offset, for counts from 0 up."""

    rate: Floats
    offset: Floats

    density = False  # what all classes share may have been left out

    def parts(self, block: Numbers) -> Floats:
        """What a count says; 0 for missing and for a negative number."""
        out = np.zeros((block.rows, len(self.rate)))
        with np.errstate(invalid="ignore"):
            there = block.values >= 0
        out[there] = xlogy(block.values[there, None], self.rate) + self.offset
        return out

    def form(self) -> forms.RateForm:
        """Itself."""
        return forms.RateForm(self.rate, self.offset)

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """Nothing: the line does not know how the counts lie."""
        return pa.nulls(len(labels), pa.float64())

    def parameters(self) -> tuple[int, int]:
        """A rate and an offset per class."""
        return 2 * len(self.rate), 2 * len(self.rate)

    def table(self) -> Table:
        """Both."""
        return Table("x·log rate + offset", ["rate", "offset"], np.stack([self.rate, self.offset]))


TYPES: dict[str, type[Belief]] = {
    t.__name__: t
    for t in (
        BagLevelsBelief, BernoulliWordsBelief, BlendBelief, CategoricalBelief, ComplementBelief, GaussianBelief,
        InteractionBelief, MultinomialBelief, PoissonBelief, RateBelief, StepsBelief, StudentBelief,
    )
}  # fmt: skip


def of_table(values: tuple[str, ...], p: Floats, *, words: bool) -> Belief:
    """A table P(value given class) that somebody wrote down, of values or of words."""
    return MultinomialBelief(values, p, False, np.full(p.shape[1], 10.0)) if words else CategoricalBelief(values, p)


def of_form(form: forms.Form) -> Belief:
    """The plain belief that says what the form says."""
    make = _MAKERS.get(type(form))
    if make is None:
        raise SettingsError(f"no plain belief is made of the form {form.name!r}", hint="see families/forms.py.")
    return make(form)


def _table(form: forms.TableForm) -> Belief:
    logs = np.vstack([form.logs, form.unseen]) if form.unseen.any() else form.logs
    return CategoricalBelief(tuple(form.values), np.exp(logs), bool(form.unseen.any()))


def _bell(form: forms.BellForm) -> Belief:
    places = np.arange(len(form.location)) if form.positions is None else form.positions
    every, vector = np.ones(len(places), dtype=bool), form.positions is not None
    if form.freedom is not None:
        return StudentBelief(places, form.location, form.scale, every, vector, form.freedom)
    return GaussianBelief(places, form.location, form.scale, every, vector, form.location.mean(axis=1), False)


def _rate(form: forms.RateForm) -> Belief:
    if form.offset is not None:
        return RateBelief(form.rate, form.offset)
    return PoissonBelief(form.rate, np.ones_like(form.rate), False)


def _words(form: forms.WordsForm) -> Belief:
    reserve, length = bool(form.unseen.any()), np.full(len(form.unseen), form.length)
    weights = np.vstack([form.logs, form.unseen]) if reserve else form.logs
    nothing = np.zeros_like(weights)
    return ComplementBelief(tuple(form.words), nothing, reserve, length, form.once, complement=weights)


def _blend(form: forms.BlendForm) -> Belief:
    each = tuple(of_form(part) for _, part in form.parts)
    n_classes = each[0].table().values.shape[1] if each else 0
    return BlendBelief(n_classes, each, tuple(share for share, _ in form.parts))


_MAKERS: dict[type[forms.Form], Callable[[Any], Belief]] = {
    forms.TableForm: _table,
    forms.StepsForm: lambda form: StepsBelief(form.starts, form.logs),
    forms.CellsForm: lambda form: of_form(form.steps),
    forms.BellForm: _bell,
    forms.RateForm: _rate,
    forms.WordsForm: _words,
    forms.PresenceForm: lambda f: BernoulliWordsBelief(tuple(f.words), np.exp(f.present), np.exp(f.absent)),
    forms.LevelsForm: lambda form: BagLevelsBelief(tuple(form.words), np.exp(form.logs)),
    forms.PairForm: lambda form: InteractionBelief(tuple(form.us), tuple(form.vs), form.logs),
    forms.BlendForm: _blend,
}
