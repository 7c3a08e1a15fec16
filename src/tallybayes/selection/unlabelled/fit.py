"""A model of labelled and unlabelled rows: what `tb.fit(…, unlabelled=…)` does.

    schema of all rows  →  the model of the labels alone  →  EM, judged on held-out labels  →  all of it counted

The model that comes back is a tally like any other: labelled rows count one each, unlabelled rows their shares of the
classes times one weight, in whole units. Where held-out labels gain nothing it is the model of the labels alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base.arrays import Floats, Ints
from ...base.canon import many
from ...base.canon import text as label_text
from ...base.errors import DataError, SettingsError, warn
from ...data import encode
from ...data.batch import one_batch
from ...data.blocks import Block, Groups
from ...data.encode import Labelled
from ...data.guess import Reading as CellReading
from ...data.infer import first_look, looked_at, mended
from ...data.schema import Schema
from ...data.sources import Batch, Source, open_source
from ...data.spelling import OddCells
from ...families import Complement, Family, Multinomial
from ...families.calibration import Calibrated
from ...families.settings import Settings
from ...families.smoothing import Dirichlet, Laplace, Smoothing
from ...families.vocabulary import Selection
from ...model.model import Model
from ...model.provenance import History, names_of
from ...tally.guard import refuse_empty
from ...tally.tally import Tally, count_rows
from ..choose.chosen import as_asked
from ..choose.deal import dealt
from ..measure import metrics
from ..parts import apart
from .judge import TemperedRows, UnlabelledReading, UnlabelledTrial
from .mixture import Mixture
from .places import EVIDENCE, GROWTH, places

MISSING = "missing"  # unlabelled="missing": rows of the data without a label
FEWEST = 10  # labels, to judge by
_FEW = 50  # labels, below which ten folds leave more of them to learn from
WORDS_SURE, TABLES_SURE = 1.0, 2.5  # standard errors that a gain has to reach, see `gain`
_LEAST = 0.01  # a share below this is left out, and the others have it
_UNITS = 20  # shares are whole multiples of 2⁻²⁰
NOTHING = "rows without labels"


@dataclass(frozen=True)
class FitAsked:
    """What `tb.fit` was asked for that matters here."""

    target: str
    schema: Schema | None
    weights: str | None  # the column that holds them
    receipts: bool
    reading: CellReading
    settings: Settings | None
    choosing: bool
    effort: str
    groups: str | None
    order: str | bool | None


def fit_with_unlabelled(
    source: Source, unlabelled: Any, asked: FitAsked, alone: Callable[[Source, Schema], Model],
    tell: Callable[[str, float], None] = lambda what, done: None,
) -> Model:  # fmt: skip
    """The model of labelled rows and of others; `alone` makes that of labelled rows under a schema."""
    if source.engine is not None:
        raise SettingsError(
            "unlabelled rows beside data that live elsewhere", hint="engine='local' brings the rows here."
        )
    if isinstance(unlabelled, str) and unlabelled == MISSING:
        extra: Source | None = None
    else:
        extra = open_source(unlabelled).repeatable()
    schema = asked.schema or _proposed(source, extra, asked)
    schema = schema.with_receipts() if asked.receipts and not schema.receipts else schema
    rows = _RowsInMemory.read(source, extra, schema, asked)
    tell("labels alone", 0.1)
    model = alone(open_source(rows.labelled), schema)
    names = dict.fromkeys((*names_of(source), *(() if extra is None else names_of(extra))))
    if not rows.unlabelled.rows:
        warn("there are no rows without labels: the model is that of the labels alone.")
        return replace(model, history=History.begun(names))
    trial, why = rows.trial(schema, asked)
    if trial is None:
        return _left_out(model, rows, why)
    by_labels = rows.by_labels(trial.folds, schema, alone)
    tell(NOTHING, 0.4)
    reading, scored = trial.best(lambda: tell(NOTHING, 0.6))
    judged = PairedJudgement.of(trial.mixture.labels, by_labels, scored)
    if not judged.pays(any(p.words for p in trial.mixture.where)):
        return _left_out(model, rows, f"on {judged} they do not pay")
    tell("counting", 0.9)
    found = trial.run(reading)
    tally = Tally.of(schema, open_source(rows.labelled)) + rows.shared(schema, found.shares, reading.weight)
    base = asked.settings or Settings()
    settings = _settings(schema, base, trial, reading, scored, rows.known.classes)
    note = f"{many(rows.unlabelled.rows, 'row')} without a label count at weight {reading.weight:g}: on {judged}"
    settings = replace(
        settings if asked.choosing else base,
        calibrated=replace(judged.calibrated(note), asked=as_asked(asked.effort, asked.groups, asked.order)),
    )
    return replace(tally.model(settings), history=History.begun(names))


def _left_out(model: Model, rows: _RowsInMemory, why: str) -> Model:
    """The model of the labels alone, with a line that says so."""
    note = f"{many(rows.unlabelled.rows, 'row')} without a label were left out: {why}"
    warn(f"{note}. Hint: the model is that of the labels alone; more labels may show that the others help.")
    fitted = model.settings.calibrated
    if fitted is None:
        return model
    fitted = replace(fitted, note="; ".join(filter(None, (fitted.note, note))))
    return replace(model, settings=replace(model.settings, calibrated=fitted))


# ---- rows


def joined(source: Source, extra: Source | None, target: str) -> Source:
    """Labelled rows and then unlabelled ones, whose target is missing; the first alone if not written alike."""

    def both() -> Iterator[Batch]:
        yield from source.batches()
        for batch in () if extra is None else extra.batches():
            yield _without(batch, target)

    return source if extra is None or not _alike(source, extra) else Source(both, files=source.files)


def _proposed(source: Source, extra: Source | None, asked: FitAsked) -> Schema:
    """The schema that labelled and unlabelled rows propose together; cells that nobody foresaw mend it."""
    rows, aside = joined(source, extra, asked.target), [asked.groups] if asked.groups is not None else []
    schema, _ = looked_at(first_look(rows), asked.target, asked.weights, asked.receipts, asked.reading)
    schema = apart(schema, aside)
    try:
        for batch in rows.batches():
            encode.blocks(schema, batch)
    except DataError as error:
        if not error.unreadable:
            raise
        schema = mended(schema, rows, asked.reading.strict)
    return schema


def _alike(source: Source, extra: Source) -> bool:
    """Whether the rows of both are written alike, so that one look can understand them."""
    first, second = (next(iter(each.batches()), None) for each in (source, extra))
    return first is None or second is None or (first.written, first.decimal) == (second.written, second.decimal)


def _without(batch: Batch, column: str) -> Batch:
    return replace(batch, columns={n: c for n, c in batch.columns.items() if n != column})


@dataclass(frozen=True, eq=False)
class _RowsInMemory:
    """The rows in memory, those with labels and those without."""

    labelled: Batch
    known: Labelled
    unlabelled: Batch
    blocks: dict[str, Block]
    weights: Floats  # of the unlabelled ones

    @classmethod
    def read(cls, source: Source, extra: Source | None, schema: Schema, asked: FitAsked) -> _RowsInMemory:
        """All rows; those without a label are unlabelled where no others were given, and skipped where some were."""
        odd = OddCells()
        data = one_batch(list(odd.watching(source).batches()))
        known = encode.labelled(schema, data, first=True)
        if not len(known.labels):
            refuse_empty(Tally.of(schema, open_source(data)), source)
        if extra is None:
            rest = data.take(np.flatnonzero(encode.labels(schema, data).codes < 0))
            data = data.take(known.rows)
            known = replace(known, rows=np.arange(data.rows))
        else:
            rest = one_batch(list(odd.watching(extra).batches()))
            if rest.rows and schema.counted:
                encode.check_columns(schema, rest)
        rest = _without(rest, asked.target)
        weights = encode.weights(schema, rest) if rest.rows else None
        odd.warn()
        return cls(
            data, known, rest, encode.blocks(schema, rest) if rest.rows else {},
            np.ones(rest.rows) if weights is None else weights,
        )  # fmt: skip

    def trial(self, schema: Schema, asked: FitAsked) -> tuple[UnlabelledTrial | None, str]:
        """All rows as EM sees them, the labelled ones in folds; or why there is nothing to judge by."""
        labels, n_classes = self.known.labels, len(self.known.classes)
        fewest = int(np.bincount(labels, minlength=n_classes).min())
        if len(labels) < FEWEST or n_classes < 2 or fewest < 2:
            found = f"{many(len(labels), 'label')} of {n_classes} classes"
            return None, f"{found} are too few to judge by; give at least {FEWEST}, two of each class"
        where = places(encode.bags(self.known.blocks), encode.bags(self.blocks))
        if not where:
            return None, "no column is a category, a number or a text"
        deal = dealt(self.known, self.labelled, 10 if len(labels) < _FEW else 5, asked.groups, asked.order)
        folds = np.empty(len(labels), dtype=np.int64)
        folds[np.searchsorted(self.known.rows, deal.order)] = deal.folds
        own = np.ones(len(labels)) if self.known.weights is None else self.known.weights
        return UnlabelledTrial(Mixture(where, labels, np.concatenate([own, self.weights]), n_classes), folds), ""

    def by_labels(self, folds: Ints, schema: Schema, alone: Callable[[Source, Schema], Model]) -> Floats:
        """P(class) of every labelled row by the model of the labels of the other folds."""
        out = np.zeros((len(folds), len(self.known.classes)))
        at = {c: i for i, c in enumerate(self.known.classes)}
        for k in range(int(folds.max()) + 1):
            model = alone(open_source(self.labelled.take(self.known.rows[folds != k])), schema)
            said = model.predict_proba(self.labelled.take(self.known.rows[folds == k]))
            out[np.flatnonzero(folds == k)[:, None], [at[str(label_text(c))] for c in model.classes]] = said
        return out

    def shared(self, schema: Schema, shares: Floats, weight: float) -> Tally:
        """The tally of the unlabelled rows, each counted for the classes that it has a share of."""
        kept = np.where(shares < _LEAST, 0.0, shares)
        kept *= (weight * self.weights / kept.sum(axis=1))[:, None]
        units = np.ldexp(np.rint(np.ldexp(kept, _UNITS)), -_UNITS)
        row, label = np.nonzero(units)
        classes = self.known.classes
        groups = Groups(label, len(classes), units[row, label])
        return count_rows(schema, classes, groups, {n: b.take(row) for n, b in self.blocks.items()})


# ---- judgement


@dataclass(frozen=True, eq=False)
class PairedJudgement:
    """The labelled rows by the labels of other folds alone, and with unlabelled rows besides."""

    losses: tuple[Floats, Floats]  # −log P(right class) of each row: alone, with
    far: tuple[Floats, Floats]  # ½ Σ (P − truth)²
    wrong: tuple[Floats, Floats]
    calibration: float

    @classmethod
    def of(cls, labels: Ints, alone: Floats, scored: TemperedRows) -> PairedJudgement:
        """From probabilities, rows × classes."""
        at, truth = np.arange(len(labels)), np.eye(alone.shape[1])[labels]
        both = (alone, scored.p)
        losses, far, wrong = [], [], []
        for p in both:
            losses.append(-np.log(np.maximum(p[at, labels], 1e-9)))
            far.append(0.5 * ((p - truth) ** 2).sum(axis=1))
            wrong.append((p.argmax(axis=1) != labels).astype(np.float64))
        calibration = metrics.calibration_error(labels, scored.p, None)
        return cls((losses[0], losses[1]), (far[0], far[1]), (wrong[0], wrong[1]), float(calibration))

    def pays(self, words: bool) -> bool:
        """Whether unlabelled rows are worth it.

        Topics of texts are what EM finds, so one standard error of gain and no more wrong answers will do. Columns of
        a table depend on each other in ways that have nothing to do with the labels, and EM finds those as well: there
        the wrong answers have to be fewer by two and a half standard errors.
        """
        if words:
            return gain(*self.far) >= WORDS_SURE and self.wrong[1].sum() <= self.wrong[0].sum()
        return gain(*self.wrong) >= TABLES_SURE

    def __str__(self) -> str:
        n, before, after = len(self.wrong[0]), *(int(w.sum()) for w in self.wrong)
        losses = " → ".join(f"{each.mean():.3f}" for each in self.losses)
        return f"{n} held-out labels, wrong {before} → {after}, log loss {losses}"

    def calibrated(self, note: str) -> Calibrated:
        """How the model was judged."""
        figures = {"accuracy": 1.0 - self.wrong[1], "log_loss": self.losses[1], "brier": self.far[1]}
        told = {name: (float(each.mean()), _error(each)) for name, each in figures.items()}
        names = ("labels alone", NOTHING)
        return Calibrated(
            NOTHING, len(self.wrong[0]), {n: float(each.mean()) for n, each in zip(names, self.losses, strict=True)},
            errors={NOTHING: _error(self.losses[1])}, note=note,
            figures={**told, "calibration_error": (self.calibration,)}, judged=len(self.wrong[0]),
        )  # fmt: skip


def _error(each: Floats) -> float:
    return float(each.std(ddof=1) / np.sqrt(len(each)))


def gain(before: Floats, after: Floats) -> float:
    """By how many standard errors the rows lose less than before; 0 where nothing has changed."""
    error = _error(before - after)
    return float((before - after).mean() / error) if error > 0 else 0.0


# ---- settings


def _settings(
    schema: Schema, base: Settings, trial: UnlabelledTrial, reading: UnlabelledReading, scored: TemperedRows,
    classes: tuple[str, ...],
) -> Settings:  # fmt: skip
    """How the counts of the last step are believed: as they were judged, unless the settings say otherwise."""
    families: dict[str, Family] = {}
    smoothing: dict[str, Smoothing] = {}
    weights, lengths = {}, {}
    select = Selection(min_rows=1.5 * reading.weight)  # a word in one unlabelled row says nothing
    mix = trial.mixture
    amounts: dict[str, dict[object, object]] = {}
    for p, usual in zip(mix.where, mix.usual, strict=True):
        for (name, slots), start in zip(p.slots, p.starts.tolist(), strict=True):
            if slots:
                share = usual[start : start + len(slots), 0] * reading.pull[0]
                amounts[name] = dict(zip(slots, share.tolist(), strict=True))
    for column in schema.counted:
        name = column.name
        weights[name] = scored.temperature
        if column.about.words:
            weights[name], lengths[name] = scored.temperature * EVIDENCE, GROWTH - 1.0
            families[name] = (Multinomial if len(classes) == 2 else Complement)(presence=True, select=select)
            smoothing[name] = Laplace(reading.alpha)
        elif name in amounts:
            smoothing[name] = Dirichlet(amounts[name])
    told: Any = base.smoothing
    if not isinstance(told, dict) and told == Laplace():
        told = smoothing
    elif isinstance(told, dict):
        told = {**smoothing, **told}
    known = trial.mixture.counted(np.ones(trial.mixture.known, dtype=bool))[0]
    prior = base.prior
    if len(classes) > 2 and prior == "counted":
        prior = dict(zip(classes, (known / known.sum()).tolist(), strict=True))
    return replace(
        base, prior=prior, families={**families, **base.families} if isinstance(base.families, dict) else base.families,
        smoothing=told, weights=weights, lengths=lengths,
    )  # fmt: skip
