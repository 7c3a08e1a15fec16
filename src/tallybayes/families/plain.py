"""The beliefs that hold no counts: what a sealed file stores, by name, and what any form can be made into.

The names are those of files that were written before; a class that is renamed keeps its name here.

A correction is a form, too: what was counted of a column and what is added to it make one belief, the `whole` of a
`CorrectedBelief`, that says  weight · counted + added  by itself, and is what sealed files and exports get to see.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa

from ..base.arrays import Floats, Ints
from ..base.errors import SettingsError
from ..base.lazy import xlogy
from ..data.blocks import Numbers
from . import forms
from .base import Belief, Context, Linear, Table, Term
from .blend import BlendBelief
from .calibration import Correction
from .categorical import CategoricalBelief
from .complement import ComplementBelief
from .gaussian import GaussianBelief, StudentBelief
from .levels import BagLevelsBelief
from .pair import InteractionBelief, check_size, values_of
from .poisson import PoissonBelief
from .presence import BernoulliWordsBelief
from .support import ColumnTally, Support, supports_of
from .words import MultinomialBelief, WordsBelief

_SMALLEST = -700.0  # natural logs: what exp makes of less has no digits, so that what all classes share is left out
_NEVER_BINDS = 1e300  # nats that a family by itself may hold against a class, in a blend of it and a correction


@dataclass(frozen=True)
class StepsBelief(Belief):
    """logs[k] for values from starts[k − 1] up to but without starts[k]."""

    starts: Floats
    logs: Floats  # one more than starts × classes; the largest of each row is 0

    density = False  # what all classes share has been left out

    def parts(self, block: Numbers) -> Floats:
        """What the value's stretch says; 0 for missing."""
        at = np.searchsorted(self.starts, block.values, side="right")
        at[~block.present()] = len(self.logs)
        return self._padded.take(at, axis=0)

    @cached_property
    def _padded(self) -> Floats:
        """One more row of zeros, for missing."""
        return np.vstack([self.logs, np.zeros((1, self.logs.shape[1]))])

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


@dataclass(frozen=True)
class CorrectedBelief(Belief):
    """What was counted of a column, times a weight, and what is added to it by cell; made by `corrected`."""

    counted: Belief
    weight: float
    added: Belief  # nats, which is no evidence by itself: only its parts, terms and form mean something
    whole: Belief  # both as one

    density = False  # what is added makes no distribution of it

    def parts(self, block: Any) -> Floats:
        """weight · counted + added, of a number up to what all classes share; 0 for missing."""
        return self.whole.parts(block)

    def terms(self, block: Any, row: int) -> list[Term]:
        """Those of the whole, which say what was added to each."""
        both = zip(self.whole.terms(block, row), self.added.terms(block, row), strict=True)
        return [term if term.note else replace(term, corrected=added.parts) for term, added in both]

    def note(self, block: Any, row: int) -> str:
        """Whether the value was neither counted nor corrected."""
        return self.whole.note(block, row)

    def form(self) -> forms.Form:
        """That of the whole."""
        return self.whole.form()

    def sealed(self) -> Belief:
        """The whole alone."""
        return self.whole.sealed()

    def linear(self) -> Linear | None:
        """That of the whole."""
        return self.whole.linear()

    def support(self, counted: ColumnTally, block: Any) -> list[Support | None]:
        """The rows behind what was counted; its draws are weighted, and moved by what is added."""
        found = supports_of(self.counted, counted, block)
        added = [term.parts for term in self.added.terms(block, 0)]
        other = Belief.support(self, counted, block)[0]  # of a value that only the correction knows
        return [self._moved(s, other, nats) for s, nats in zip(found, added, strict=True)]

    def _moved(self, found: Support | None, other: Support | None, nats: Floats) -> Support | None:
        if found is None:
            return None if other is None else Support(np.zeros_like(other.of), other.of, lambda y: nats[y : y + 1])
        if self.weight == 0:
            return replace(found, draw=lambda y: nats[y : y + 1])
        draw = found.draw
        return found if draw is None else replace(found, draw=lambda y: self.weight * draw(y) + nats[y])

    def sample(self, labels: Ints, rng: np.random.Generator) -> Any:
        """Values as they were counted: a correction says what they mean, not how often they occur."""
        return self.counted.sample(labels, rng)

    def parameters(self) -> tuple[int, int]:
        """Those of what was counted, and every number that is added and is not 0."""
        raw, free = self.counted.parameters()
        more = int(np.count_nonzero(_logs(self.added.form())))
        return raw + more, free + more

    def table(self) -> Table:
        """What was counted."""
        return self.counted.table()

    @property
    def by_counts(self) -> Belief:
        """What was counted."""
        return self.counted


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
    if logs.size and logs[np.isfinite(logs)].min(initial=0.0) < _SMALLEST:
        logs = forms.relative(logs)
    reserve = bool(form.unseen.any())
    out = CategoricalBelief(tuple(form.values), np.exp(logs), reserve)
    # its cached logs, to the last bit: exp and log of them would lose it
    out.__dict__["_log"] = logs if reserve else np.vstack([logs, np.zeros((1, logs.shape[1]))])
    return out


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
    n_classes = each[0].parts(Numbers(np.zeros(1))).shape[1] if each else 0
    return BlendBelief(n_classes, each, tuple(share for share, _ in form.parts), form.most)


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


# ---- corrections


def corrected(belief: Belief, correction: Correction, context: Context) -> CorrectedBelief:
    """The belief of a column's counts under a correction."""
    form, added = belief.form(), correction.on(context.classes)
    by_cuts = context.like == "number"
    if (correction.cells and by_cuts) or (correction.cuts and not by_cuts):
        raise SettingsError(
            f"column {context.column!r} is a {context.like}, and its correction has "
            + ("cells" if by_cuts else "cuts along a line"),
            hint="give cuts=… for a number, and cells=… for a category, a pair, a bag or a text.",
        )
    if by_cuts:
        return _corrected_number(belief, correction, added)
    join = _JOINS.get(type(form))
    if join is None:
        raise SettingsError(
            f"column {context.column!r} is believed by a {type(belief).__name__}, which cannot be corrected",
            hint="corrections are for categories, numbers, pairs, and words by 'multinomial' or 'complement' that are "
            "not predictive.",
        )
    both = join(form, correction, added)
    whole, extra = (of_form(one) for one in both)
    if isinstance(belief, WordsBelief) and isinstance(whole, ComplementBelief):  # frequent words are looked up first
        often = np.zeros_like(whole.probabilities)
        often[: len(belief.words)] = belief.probabilities[: len(belief.words)]
        whole = replace(whole, probabilities=often)
    return CorrectedBelief(belief, correction.weight, extra, whole)


def _times(weight: float, logs: Floats) -> Floats:
    return weight * logs if weight else np.zeros_like(logs)


def _logs(form: forms.Form) -> Floats:
    logs: Floats = form.logs  # type: ignore[attr-defined]
    return logs


def _corrected_number(belief: Belief, correction: Correction, added: Floats) -> CorrectedBelief:
    """A blend of what was counted and steps; where it was a blend already, its families beside the steps."""
    n_classes, weight = added.shape[1], correction.weight
    steps = StepsBelief(np.array(correction.cuts, dtype=np.float64), added if len(added) else np.zeros((1, n_classes)))
    alone = BlendBelief(n_classes, (belief,), (1.0,), _NEVER_BINDS)
    blend = belief if isinstance(belief, BlendBelief) else alone
    each = [(b, weight * share) for b, share in zip(blend.beliefs, blend.shares, strict=True)]
    asked = [(b, share) for b, share in each if share > 0]
    times = 1.0
    while np.ptp(steps.logs, axis=1).max(initial=0.0) > times * blend.most:
        times *= 2  # half of it twice: no bound of the blend may cut what is added
    asked.append((StepsBelief(steps.starts, steps.logs / times), times))
    whole = BlendBelief(n_classes, tuple(b for b, _ in asked), tuple(s for _, s in asked), blend.most)
    return CorrectedBelief(belief, weight, steps, whole)


def _more(known: Sequence[str], cells: Sequence[str], logs: Floats, other: Floats, added: Floats) -> _Joined:
    """Names with their logs, those that only the correction has after them as `other`; and what is added to each."""
    wanted = set(cells)
    at = {name: i for i, name in enumerate(known) if name in wanted}  # of a million words few are corrected
    new = [cell for cell in cells if cell not in at]
    at |= {cell: i for i, cell in enumerate(new, len(known))}
    names = (*known, *new)
    extra = np.zeros((len(names), added.shape[1]))
    extra[[at[cell] for cell in cells]] = added
    return names, np.vstack([logs, np.tile(other, (len(names) - len(known), 1))]) + extra, extra


_Joined = tuple[tuple[str, ...], Floats, Floats]


def _join_table(form: forms.TableForm, correction: Correction, added: Floats) -> tuple[forms.Form, forms.Form]:
    logs, unseen = (_times(correction.weight, t) for t in (form.logs, form.unseen))
    names, whole, extra = _more(form.values, correction.cells, logs, unseen, added)
    return forms.TableForm(names, whole, unseen), forms.TableForm(names, extra, np.zeros_like(unseen))


def _join_words(form: forms.WordsForm, correction: Correction, added: Floats) -> tuple[forms.Form, forms.Form]:
    logs, unseen = (_times(correction.weight, t) for t in (form.logs, form.unseen))
    names, whole, extra = _more(form.words, correction.cells, logs, unseen, added)
    return (
        forms.WordsForm(form.once, names, whole, unseen, form.length),
        forms.WordsForm(form.once, names, extra, np.zeros_like(unseen)),
    )


def _join_pair(form: forms.PairForm, correction: Correction, added: Floats) -> tuple[forms.Form, forms.Form]:
    places = [values_of(cell) for cell in correction.cells]
    us, vs = (
        tuple(dict.fromkeys([*known, *(place[side] for place in places)]))
        for side, known in enumerate((form.us, form.vs))
    )
    at_u, at_v = ({name: i for i, name in enumerate(side)} for side in (us, vs))
    check_size(len(us), len(vs), added.shape[1])
    extra = np.zeros((len(us), len(vs), added.shape[1]))
    if places:
        at = np.array([(at_u[u], at_v[v]) for u, v in places])
        extra[at[:, 0], at[:, 1]] = added
    whole = extra.copy()
    whole[: len(form.us), : len(form.vs)] += _times(correction.weight, form.logs)
    return forms.PairForm(us, vs, whole), forms.PairForm(us, vs, extra)


_JOINS: dict[type[forms.Form], Callable[[Any, Correction, Floats], tuple[forms.Form, forms.Form]]] = {
    forms.TableForm: _join_table,
    forms.WordsForm: _join_words,
    forms.PairForm: _join_pair,
}
