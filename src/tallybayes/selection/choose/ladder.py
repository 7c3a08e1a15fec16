"""What `tb.fit` chooses when nobody else does: families, readings of text, weights and pairs, all on held-out rows.

One look at the data (all rows of a small table, 100,000 spread over a large one) is cut into folds. Every form is
judged by its nested held-out log loss, and a richer form is taken only where it gains at least 0.005 nats per row:

    one temperature for all columns  →  a weight for each column  →  more read from texts  →  pairs of columns besides
    →  the lead of the best class bent

How strongly tables of categories are smoothed is decided before, by the loss under one temperature.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...base.arrays import Floats
from ...base.errors import DataError, SettingsError, unknown, warn
from ...base.threads import one_blas_thread
from ...data import encode
from ...data.encode import Labelled
from ...data.infer import first_look
from ...data.schema import Column, Schema
from ...data.sources import Batch, Source, open_source
from ...families import Blend
from ...families.blend import READERS
from ...families.calibration import Isotonic, MarginScaling
from ...families.settings import Calibrated, Settings
from ...families.smoothing import Laplace, Smoothing
from ..folds import Folds, count_folds
from . import weights as calibrate
from .pairs import pair_of, propose_pairs
from .summands import NEIGHBOURS, Neighbours, Summands
from .weights import Evidence, Weights, split_of
from .words import further, read_texts, thinned

GAIN = 0.005
FEWEST = 10  # rows; below, the counts are believed as they are
WEIGHTS_FROM = 100  # rows, and 10 of each class on average: below, one temperature
PAIRS_FROM = 25  # rows of each class on average: one for each cell of a table of five by five
LEAST = 0.02  # weight of a pair that is kept: less is a line of every explanation that says nothing
LEAD_FROM = 1_000  # rows
TEMPERATURE, WEIGHTS, PAIRS, LEAD, CURVE = "one temperature", "column weights", "pairs", "lead", "isotonic curve"
LESS_SMOOTHED = (0.3, 0.1)  # imagined rows per value instead of 1, where columns of categories gain by it
FORMS = ("auto", "temperature", "weights", "isotonic")
Pairs = bool | str | Sequence[tuple[str, str]]
_PAIRS_HINT = "take 'auto', True, False, or a list of two different columns each: [('sex', 'class')]."


@dataclass
class _Ladder:
    """The form held so far, and the nested loss of every form that was tried."""

    summands: Summands  # those that all rows together proposed
    evidence: Evidence
    form: tuple[str, ...]
    weights: Weights
    scores: Floats  # nested, as log-odds against the first class
    lead: MarginScaling | None = None
    tried: dict[str, float] = field(default_factory=dict)

    @classmethod
    def start(cls, summands: Summands, evidence: Evidence) -> _Ladder:
        """One temperature for all columns."""
        weights, scores = calibrate.temperature(evidence)
        loss = _mean(evidence, calibrate.losses_of(scores, evidence.labels))
        return cls(summands, evidence, (TEMPERATURE,), weights, scores, None, {TEMPERATURE: loss})

    def offer(self, what: str, summands: Summands, *, anyway: bool = False) -> bool:
        """Take weights of summands if they gain enough on the nested rows, or `anyway`; whether they were taken."""
        evidence = self.evidence if summands is self.summands else summands.evidence()
        weights, scores = calibrate.column_weights(evidence)
        richer = (WEIGHTS, *(f for f in self.form if f not in (TEMPERATURE, WEIGHTS)), what)
        if self._taken(richer, calibrate.losses_of(scores, evidence.labels), evidence, anyway):
            self.summands, self.evidence, self.weights, self.scores = summands.chosen(), evidence, weights, scores
            return True
        return False

    def offer_lead(self) -> bool:
        """The lead of the best class bent, judged split by split like the weights."""
        e, split = self.evidence, split_of(self.evidence.folds)
        scores = np.concatenate([np.zeros((len(e.labels), 1)), self.scores], axis=1)
        losses = np.zeros(len(e.labels))
        for s in np.unique(split).tolist():
            lead = MarginScaling.fitted(scores[split != s], e.labels[split != s], e.weights[split != s])
            bent = lead(scores[split == s])
            losses[split == s] = calibrate.losses_of(bent[:, 1:] - bent[:, :1], e.labels[split == s])
        if self._taken((*self.form, LEAD), losses, e, False):
            self.lead = MarginScaling.fitted(scores, e.labels, e.weights)
            return True
        return False

    def _taken(self, form: tuple[str, ...], losses: Floats, evidence: Evidence, anyway: bool) -> bool:
        form = tuple(dict.fromkeys(form))
        self.tried[listed(form)] = _mean(evidence, losses)
        if anyway or self.tried[listed(self.form)] - self.tried[listed(form)] >= GAIN:
            self.form = form
            return True
        return False


def listed(form: Sequence[str]) -> str:
    """A form in words: "column weights, pairs and lead"."""
    return " and ".join([", ".join(form[:-1]), form[-1]] if len(form) > 1 else form)


def choose(
    look: Batch, schema: Schema, base: Settings, pairs: Pairs = "auto", form: str = "auto"
) -> tuple[Schema, Settings]:
    """The schema with pairs added, and settings with families, smoothing and weights, that held-out rows support."""
    if form not in FORMS:
        raise SettingsError(f"calibrate={form!r}", hint="take True, False, " + ", ".join(map(repr, FORMS)) + ".")
    look = thinned(look, schema)
    schema = with_pairs(schema, look, pairs)
    rows = encode.labelled(schema, look)
    counted, n_classes = len(rows.labels), len(rows.classes)
    if form == "isotonic" and n_classes != 2:
        raise SettingsError(
            f"isotonic calibration of {n_classes} classes", hint="it is for two; leave calibrate= away."
        )
    out = base
    if counted >= FEWEST and n_classes >= 2 and schema.counted:
        with one_blas_thread():
            schema, out = _chosen(look, rows, schema, base, pairs, form)
    if out is base and form != "auto":
        warn(
            f"calibrate={form!r} was asked for, but {counted} labelled rows of {n_classes} classes are too few for it; "
            f"the counts are believed as they are. Hint: give at least {FEWEST} rows, some of each class."
        )
    return schema, out


def _chosen(
    look: Batch, rows: Labelled, schema: Schema, base: Settings, pairs: Pairs, form: str
) -> tuple[Schema, Settings]:
    """The same for rows that are enough to choose by."""
    counted, n_classes = len(rows.labels), len(rows.classes)
    names = any(c.text is not None and c.text.chars is not None for c in schema.counted)
    assign = Neighbours(rows, 10 if counted < 2_000 else 5, 1 if names else NEIGHBOURS)
    folds = count_folds(open_source(look), schema, assign)
    if len(folds.scored()) < 2:
        return schema, base
    base = read_texts(folds, schema, base)
    summands = Summands.of(folds, schema, base)
    evidence = summands.evidence()
    if len(np.unique(split_of(evidence.folds))) < 2:  # nearly every class has one row: nothing can be judged
        return schema, base
    ladder = _Ladder.start(summands, evidence)
    enough = counted >= WEIGHTS_FROM and counted >= 10 * n_classes
    if enough:
        ladder, base = _less_smoothed(ladder, folds, schema, base)
        summands = ladder.summands
    if form == "weights" or (enough and form != "temperature"):
        # pairs that somebody chose before need weights of their own
        ladder.offer(WEIGHTS, summands, anyway=form == "weights" or any(summands.pairs))
        if pairs is True or pairs == "auto":
            schema, base = _read_further(ladder, look, schema, base, assign)
        if len(summands.each) > 1 and (pairs is True or (pairs == "auto" and counted >= PAIRS_FROM * n_classes)):
            columns = [c for c in schema.counted if c.name in rows.blocks]
            proposed = propose_pairs(columns, rows.blocks, rows.labels, n_classes, split_of(assign(rows, 0)))
            added = {c.name: c for each in proposed for c in each}
            if proposed[-1]:
                wider = schema._with(columns=added.values())
                more = Summands.of(count_folds(open_source(look), wider, assign), wider, Settings(prior=base.prior))
                if ladder.offer(PAIRS, ladder.summands.beside(more, proposed), anyway=pairs is True):
                    schema = _with_used(schema, list(added.values()), ladder)
        if form == "auto" and counted >= LEAD_FROM:
            ladder.offer_lead()
    out = ladder.summands.settings(base, ladder.weights, schema.names)
    curve = _curve(ladder) if form == "isotonic" else None
    fitted = Calibrated(listed((*ladder.form, *[CURVE] * (curve is not None))), counted, ladder.tried)
    return schema, replace(out, isotonic=curve, lead=ladder.lead, calibrated=fitted)


def _less_smoothed(ladder: _Ladder, folds: Folds, schema: Schema, base: Settings) -> tuple[_Ladder, Settings]:
    """The ladder and settings with less smoothing of all columns of categories, where their held-out rows gain."""
    named = dict(base.smoothing) if isinstance(base.smoothing, Mapping) else {}
    free = [c.name for c in schema.counted if c.like == "category" and c.name not in named]
    if not free or not (named or base.smoothing == Laplace()):
        return ladder, base
    tried = {_under_one(ladder): (ladder, base)}
    for alpha in LESS_SMOOTHED:
        settings = replace(base, smoothing={**named, **dict.fromkeys(free, Laplace(alpha))})
        summands = Summands.of(folds, schema, settings)
        other = _Ladder.start(summands, summands.evidence())
        if _under_one(ladder) - _under_one(other) >= GAIN:
            tried[_under_one(other)] = other, settings
    return tried[min(tried)]


def _under_one(ladder: _Ladder) -> float:
    """The nested loss under one temperature."""
    return ladder.tried[TEMPERATURE]


def _read_further(
    ladder: _Ladder, look: Batch, schema: Schema, base: Settings, assign: Neighbours
) -> tuple[Schema, Settings]:
    """The schema with further columns of its texts, those that held-out rows gain by, and how each is read."""
    none = base.about(())
    for what, column in further(schema, look):
        alone = schema._with(columns=[column])
        folds = count_folds(open_source(look), alone, assign)
        read = read_texts(folds, alone, none)
        if ladder.offer(what, ladder.summands + Summands.of(folds, alone, read)):
            schema = _with_used(schema, [column], ladder)
            base = replace(base, families={**base.families, **read.families}, smoothing=_both(base, read))
    return schema, base


def _both(one: Settings, other: Settings) -> Smoothing | dict[str, Smoothing]:
    if isinstance(one.smoothing, Mapping) and isinstance(other.smoothing, Mapping):
        return {**one.smoothing, **other.smoothing}
    return one.smoothing if not isinstance(one.smoothing, Mapping) else dict(one.smoothing)


def _with_used(schema: Schema, added: Sequence[Column], ladder: _Ladder) -> Schema:
    """The schema with those of the added columns that have a weight worth a line."""
    used = {t.column for t, w in zip(ladder.summands.each, ladder.weights.weights.tolist(), strict=True) if w >= LEAST}
    return schema._with(columns=[*schema.columns, *(c for c in added if c.name in used)])


def recalibrated(source: Source, schema: Schema, settings: Settings) -> Settings:
    """Settings with weights fitted anew on some rows; the families, pairs and readings of text stay."""
    look = first_look(source)
    blends = {n: f for n, f in settings.families.items() if isinstance(f, Blend) and f.families == READERS}
    families = {n: f for n, f in settings.families.items() if n not in blends}
    free = replace(settings.without(fitted=True), families=families)
    labels = encode.labels(schema, look).codes
    known = labels[labels >= 0]
    n_classes = len(np.unique(known))
    curve = settings.isotonic is not None and n_classes == 2  # with a third class there is none
    enough = len(known) >= FEWEST and n_classes >= 2
    out = choose(look, schema, free, False, "isotonic" if curve else "auto")[1] if enough else free
    if out.calibrated is None:
        raise DataError(
            "these rows are too few to fit weights to: fewer than 10, or of one class",
            hint="give more labelled rows; the model as it is has not been changed.",
        )
    return out


def _curve(ladder: _Ladder) -> Isotonic:
    """The isotonic curve through the nested scores of two classes."""
    second = (ladder.evidence.labels == 1).astype(float)
    return Isotonic.fitted(ladder.scores[:, 0], second, ladder.evidence.weights)


def with_pairs(schema: Schema, look: Batch, pairs: Pairs) -> Schema:
    """The schema with the pairs that were asked for by name; those it has already are not added again."""
    if not isinstance(pairs, (list, tuple)):
        if pairs not in (True, False, "auto"):
            raise SettingsError(f"pairs={pairs!r}", hint=_PAIRS_HINT)
        return schema
    columns = {c.name: c for c in schema.counted}
    blocks = encode.blocks(schema, look)
    known = {frozenset(c.of) for c in schema.counted if c.of is not None}
    added = []
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or pair[0] == pair[1]:
            raise SettingsError(f"the pair {pair!r}", hint=_PAIRS_HINT)
        for name in pair:
            if name not in columns:
                raise unknown(SettingsError, f"a pair with the column {name!r}, which is not counted", name, columns)
        a, b = pair
        column = pair_of(a, b, columns, blocks)
        assert column.of is not None
        if frozenset(column.of) not in known:
            known.add(frozenset(column.of))
            added.append(column)
    return schema._with(columns=[*schema.columns, *added])


def _mean(evidence: Evidence, losses: Floats) -> float:
    return float(np.average(losses, weights=evidence.weights))
