"""θ = estimate(T, settings): from a tally to a model. Pure and repeatable; `tally.model()` asks here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

import numpy as np

from ..base import canon
from ..base.arrays import Floats, safe_log
from ..base.errors import CannotEstimate, SettingsError
from ..data.schema import Column, Schema
from ..exact.counts import Counts
from ..families import Auto, Belief, Context, Family, Gaussian, default_family, family_for
from ..families.auto import choose
from ..families.moments import read_moments
from ..families.plain import corrected
from ..families.settings import Settings, SettingsLike
from ..families.smoothing import Dirichlet
from ..tally.tally import Tally
from .counted import with_counted_weights
from .model import Model
from .prior import class_prior, class_totals, natural_order


def estimate(tally: Tally, settings: SettingsLike = None, *, known: Mapping[str, Family] | None = None) -> Model:
    """The model of a tally under some settings; refuses a tally that no rows can have.

    `known` names the families that "auto" chose before, so that they need not be chosen again.

    >>> tally = tb.count({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> tb.estimate(tally, {"smoothing": 0.5}).table("Sky")["sunny", "yes"]  # as tally.model({"smoothing": 0.5})
    0.8333333333333334
    """
    settings = Settings.of(settings, tally.schema)
    wrong = tally.impossible()
    if wrong is not None:
        raise CannotEstimate(
            f"this tally is a difference that no rows can have: {wrong}",
            hint="estimate a sum of counted rows; subtract only what was added before.",
        )
    schema = tally.schema
    known_names = {*tally.classes, *without_rows(settings)}
    names = tuple(sorted(known_names, key=lambda c: natural_order(canon.from_text(c, schema.label_type))))
    if not names:
        raise CannotEstimate("this tally has no rows", hint="count at least one row with a label first.")
    totals = class_totals(tally, names)
    number = np.array([names.index(c) for c in tally.classes], dtype=np.int64)
    counts = {c.name: tally.columns[c.name].relabel(number) for c in schema.counted}
    settings = with_counted_weights(settings, tally, names, number)
    largest = _largest_deviation(schema, counts, settings, len(names))
    beliefs: dict[str, Belief] = {}
    families: dict[str, Family] = {}
    for column in schema.counted:
        family, belief = believed(column, counts[column.name], names, totals, settings, known, largest)
        families[column.name], beliefs[column.name] = family, belief
    labels = tuple(canon.from_text(c, schema.label_type) for c in names)
    return Model(schema, labels, safe_log(class_prior(settings, names, totals)), beliefs, families, settings, tally)


def without_rows(settings: Settings) -> set[str]:
    """The classes that are known even if no row has them: those that are named, and those that the prior imagines.

    >>> sorted(without_rows(Settings(classes=("maybe",), prior=Dirichlet({"yes": 2, "no": 1}))))
    ['maybe', 'no', 'yes']
    """
    imagined = settings.prior.extra_slots() if isinstance(settings.prior, Dirichlet) else set()
    return {*imagined, *settings.classes}


def context_of(
    column: Column, names: tuple[str, ...], totals: Floats, settings: Settings,
    largest: Callable[[], float] = lambda: 0.0,
) -> Context:  # fmt: skip
    """What a family may know of a column besides its counts, under some settings."""
    return Context(
        column.name, names, totals, settings.smoothing_of(column.name), column.values, column.cells, column.width,
        settings.predictive, settings.unseen == "reserve", settings.floor, column.like == "vector", largest,
        column.like,
    )  # fmt: skip


def believed(
    column: Column, counts: Counts, names: tuple[str, ...], totals: Floats, settings: Settings,
    known: Mapping[str, Family] | None = None, largest: Callable[[], float] = lambda: 0.0,
) -> tuple[Family, Belief]:  # fmt: skip
    """The family of one column, chosen if it has to be, and what it believes of counts whose classes are `names`.

    One that "auto" chose before and that cannot believe these counts, as when a 2 comes to zeros and ones, is left for
    another.
    """
    context = context_of(column, names, totals, settings, largest)
    chosen = settings.families.get(column.name)
    family = default_family(column.kind) if chosen is None else family_for(chosen, column.kind)
    auto, before = isinstance(family, Auto), (known or {}).get(column.name)
    if isinstance(family, Auto):
        family = before or choose(counts, context)
    try:
        belief = family.estimate(counts, context)
    except SettingsError:
        if not (auto and family is before):
            raise
        family = choose(counts, context)
        belief = family.estimate(counts, context)
    correction = settings.corrections.get(column.name)
    return family, belief if correction is None else corrected(belief, correction, context)


def _largest_deviation(
    schema: Schema, counts: Mapping[str, Counts], settings: Settings, n_classes: int
) -> Callable[[], float]:
    """The largest deviation of any Gaussian column over all classes, worked out when a family asks for it."""

    @cache
    def largest() -> float:
        out = 0.0
        for column in schema.counted:
            family = settings.families.get(column.name)
            bell = family is None or isinstance(family_for(family, column.kind), (Gaussian, Auto))
            if column.about.moments and bell:
                out = max(out, float(read_moments(counts[column.name], n_classes).all_sd.max(initial=0.0)))
        return out

    return largest
