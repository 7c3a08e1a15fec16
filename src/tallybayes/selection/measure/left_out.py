"""What labelled rows lose without a column: it is left out of the sum of each row by subtracting what it said.

Of every difference only sums are kept, so that memory does not grow with the rows; they are exact, so that the order of
the rows does not show. Rows that a model was counted from
are scored by models of the other folds: by subtraction, or, where rows have chosen anything but the counts, by fitting
all of it anew, since the families, weights and pairs that were best on some rows look better on them than on others.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce

import numpy as np
from scipy.special import stdtrit

from ...base import canon, threads
from ...base.arrays import Floats, Ints, log_sum_exp
from ...data import encode
from ...data.blocks import Block
from ...data.schema import Schema
from ...data.sources import WEIGHTS, Batch, Source
from ...exact.limbs import Limbs, add_limbs, canonical, to_float
from ...exact.sums import exact_sums, stacked
from ...model import posterior
from ...model.estimate import estimate
from ...model.model import Model
from ...tally.together import together
from ..folds import Assign, count_folds
from .fit_again import fit_again, folds_as_asked
from .metrics import LEAST
from .neighbours import tell_of_neighbours
from .refit import Truth

LEVEL = 0.95
_ROWS = 1 << 14  # scored at once
FOLDS, REFITTED = 10, 3  # by subtraction alone, and where models are fitted anew; but
_OF_FEW = ((500, 10), (2000, 5))  # of fewer rows a third would be missed: (rows below which, folds)

_NO_ROWS = np.zeros(0)

Figure = tuple[float, float, float]  # and its lower and upper bound


def _goes_with(model: Model) -> dict[str, list[str]]:
    """What is left out with each column: itself, and the pairs that it is one of."""
    out: dict[str, list[str]] = {}
    pairs = [c for c in model.schema.counted if c.of is not None and len(c.of) == 2]
    for column in model.schema.counted:
        alone = column.of is None
        found = [p.name for p in pairs if any((s.source, s.part) == (column.reads, column.part) for s in p.of or ())]
        out[column.name] = [column.name, *(found if alone else [])]
    return out


def bits_of(log_prior: Floats, weighted: Floats) -> Floats:
    """How far one column moves the prior in each row: the divergence in bits."""
    with np.errstate(invalid="ignore"):
        joint = log_prior + weighted
        log_p = joint - log_sum_exp(joint)[:, None]
        each = np.exp(log_p) * (log_p - log_prior)
    return np.asarray(np.maximum(np.nan_to_num(each).sum(axis=1) / np.log(2), 0.0))


@dataclass(frozen=True)
class Sums:
    """What a pass adds up: bits by column, Σw·d, Σw²·d and Σw²·d² of the differences d, Σw, Σw², Σw·loss and Σw·hit.

    Differences are those of rows, column by column in each metric.
    """

    rows: int
    labelled: int
    exact: Limbs

    def __add__(self, other: Sums) -> Sums:
        rows, labelled = self.rows + other.rows, self.labelled + other.labelled
        return Sums(rows, labelled, canonical(add_limbs([self.exact, other.exact])))

    @cached_property
    def _rounded(self) -> Floats:
        return to_float(self.exact)

    @property
    def bits(self) -> Floats:
        """By column, over all rows."""
        return self._rounded[: (len(self._rounded) - 4) // 7]

    @property
    def differences(self) -> Floats:
        """Columns × metrics × 3."""
        return self._rounded[len(self.bits) : -4].reshape(-1, 2, 3)

    @property
    def weights(self) -> Floats:
        """Σw, Σw², Σw·loss, Σw·hit."""
        return self._rounded[-4:]

    @property
    def whole(self) -> tuple[float | None, float | None]:
        """Log loss and accuracy with all columns."""
        if not self.labelled:
            return None, None
        return float(self.weights[2] / self.weights[0]), float(self.weights[3] / self.weights[0])

    def figure(self, column: int, metric: int) -> Figure | None:
        """The mean difference with its interval; NaN bounds where one row says nothing of the spread."""
        if not self.labelled:
            return None
        d, wd, wdd = self.differences[column, metric]
        w, ww = self.weights[:2]
        mean = float(d / w)
        spread = max(float(wdd - 2 * mean * wd + mean * mean * ww), 0.0)
        rows = w * w / ww  # as many as would say so much if all weighed the same
        if rows <= 1:
            return mean, np.nan, np.nan
        reach = float(stdtrit(rows - 1, 0.5 + LEVEL / 2)) * np.sqrt(spread * rows / (rows - 1)) / w
        return mean, mean - reach, mean + reach


class LeftOut:
    """One way over the rows: what each column says of them, and what they lose without it."""

    def __init__(self, model: Model, weights: str | None) -> None:
        self.model, self.goes = model, _goes_with(model)
        self.schema = model.schema if weights is None else model.schema.with_weights(weights)

    def over(self, source: Source) -> Sums:
        """The sums over all rows of a source."""
        return reduce(Sums.__add__, threads.each(self._piece, pieces(source)), self.nothing)

    @property
    def nothing(self) -> Sums:
        """The sums over no rows."""
        return Sums(0, 0, exact_sums(np.zeros(0, dtype=np.int64), 7 * len(self.model.beliefs) + 4, []))

    def _piece(self, batch: Batch) -> Sums:
        model = self.model
        if batch.start == 0 and model.beliefs and batch.rows:
            encode.check_columns(model.schema, batch)
        blocks = encode.bags(model._read(batch))
        said = weighted_parts(model, blocks)
        bits = [bits_of(model.log_prior, said[n]) if n in said else _NO_ROWS for n in model.beliefs]
        labels = label_numbers(model, batch)
        at = np.flatnonzero(labels >= 0)
        w = self._weights(batch)
        return self.lost(model, {n: p[at] for n, p in said.items()}, labels[at], w[at], batch.rows, bits)

    def _weights(self, batch: Batch) -> Floats:
        given = self.schema.weights is not None and self.schema.weights in batch
        found = encode.weights(self.schema, batch) if given or WEIGHTS in batch.columns else None
        return np.ones(batch.rows) if found is None else found

    def lost(
        self, model: Model, said: Mapping[str, Floats], labels: Ints, w: Floats, rows: int,
        bits: Sequence[Floats] | None = None,
    ) -> Sums:  # fmt: skip
        """The sums over some labelled rows (−1 for a class that the model lacks), scored by a model."""
        joint = sum(said.values(), np.tile(model.start, (len(labels), 1)))
        loss, hit = _judged(model, joint, labels)
        goes = self.goes if model is self.model else _goes_with(model)
        alike = bool((w == 1.0).all())
        out = [_sum_of(each) for each in bits or [_NO_ROWS] * len(self.model.beliefs)]
        for name in self.model.beliefs:
            gone = [n for n in goes.get(name, ()) if n in said]
            if not gone:
                out += [_sum_of(_NO_ROWS)] * 6
                continue
            with np.errstate(invalid="ignore"):
                rest = joint - sum(said[n] for n in gone)
            if len(lost := np.flatnonzero(~np.isfinite(rest).all(axis=1))):  # ∞ − ∞: added up anew
                kept = (p[lost] for n, p in said.items() if n not in gone)
                rest[lost] = sum(kept, np.tile(model.start, (len(lost), 1)))
            other_loss, other_hit = _judged(model, rest, labels)
            for d in (other_loss - loss, hit - other_hit):
                first = _sum_of(w * d)
                out += [first, first if alike else _sum_of(w * w * d), _sum_of(w * w * d * d)]
        out += [_sum_of(each) for each in (w, w * w, w * loss, w * hit)]
        return Sums(rows, len(labels), canonical(stacked(out)))


def _sum_of(each: Floats) -> Limbs:
    """The exact sum of some numbers."""
    return exact_sums(np.zeros(len(each), dtype=np.int64), 1, [each])


def _judged(model: Model, joint: Floats, labels: Ints) -> tuple[Floats, Floats]:
    """−log P(right class), at most that of 1e-15, and 1 where it is the answer."""
    if model.settings.curves:
        joint = posterior.calibrated(model.settings, joint)
    total = log_sum_exp(joint)
    if not np.isfinite(total).all():  # impossible in every class: the prior answers
        joint = np.where(np.isfinite(total)[:, None], joint, model.start)
        total = log_sum_exp(joint)
    known = labels >= 0
    of_truth = joint[np.arange(len(labels)), np.where(known, labels, 0)] - total
    least = np.log(LEAST)
    return -np.maximum(np.where(known, of_truth, least), least), ((np.argmax(joint, axis=1) == labels) & known) * 1.0


def weighted_parts(model: Model, blocks: Mapping[str, Block]) -> dict[str, Floats]:
    """What each column says under its weight, rows × classes; a column that is not asked has none."""
    out = {}
    for name, belief in model.beliefs.items():
        by = posterior.factor(model.settings, name, blocks[name])
        if isinstance(by, np.ndarray):
            out[name] = by[:, None] * belief.parts(blocks[name])
        elif by != 0:
            out[name] = by * belief.parts(blocks[name])
    return out


def label_numbers(model: Model, batch: Batch) -> Ints:
    """The class of each row by its number; −1 without a label, −2 for a class the model does not know."""
    if model.schema.target not in batch:
        return np.full(batch.rows, -1, dtype=np.int64)
    number = _numbers(model)
    codes = encode.labels(model.schema, batch)
    return np.array([*(number.get(s, -2) for s in codes.slots), -1], dtype=np.int64)[codes.codes]


def _numbers(model: Model) -> dict[str, int]:
    return {str(canon.text(c)): i for i, c in enumerate(model.classes)}


def pieces(source: Source) -> Iterator[Batch]:
    """The rows in short batches, so that the parts of many columns stay small."""
    for batch in source.batches():
        yield from batch.cut(_ROWS)


def folds_for(model: Model, rows: int) -> int:
    """How many folds the rows that a model was counted from are dealt into."""
    if not fitted_to_rows(model):
        return FOLDS
    return next((folds for most, folds in _OF_FEW if rows < most), REFITTED)


def fitted_to_rows(model: Model) -> bool:
    """Whether rows had a say in the settings, not the counts alone; counted weights are made anew of any counts."""
    settings = model.settings
    return (settings.calibrated is not None or bool(settings.corrections)) and together(model.schema) is None


def _numbered(source: Source) -> Iterator[tuple[int, Batch]]:
    start = 0
    for batch in pieces(source):
        yield start, batch
        start += batch.rows


def _models_by_fold(model: Model, source: Source, schema: Schema, assign: Assign) -> dict[int, Model]:
    """For each fold that is scored a model that has not seen it."""
    if not fitted_to_rows(model):
        folded = count_folds(source, schema, assign)
        return {k: estimate(folded.training(k), model.settings) for k in folded.scored()}
    truth, fit = Truth.of(source, schema), fit_again(model)
    fold = truth.folds(source, schema, assign)
    parts = np.unique(fold[fold >= 0]).tolist()
    return {k: fit(truth.of_source(source, (fold >= 0) & (fold != k))) for k in parts if len(parts) > 1}


def by_folds(own: LeftOut, source: Source, rows: int) -> Sums:
    """The sums over all labelled rows, each scored by a model that was made without its fold."""
    assert own.model.tally is not None
    schema = own.model.tally.schema
    plan = folds_as_asked(own.model, folds_for(own.model, rows)).suited(source, schema)
    tell_of_neighbours(source, schema, plan)
    assign, _ = plan.assign(source, schema.target, schema)
    models = _models_by_fold(own.model, source, schema, assign)
    numbers = {k: _numbers(m) for k, m in models.items()}

    def scored(item: tuple[int, Batch]) -> Sums:
        start, batch = item
        read = encode.labelled(schema, batch)
        folds, out = assign(read, start), own.nothing
        blocks = encode.bags(read.blocks)
        for k in np.unique(folds).tolist():
            if k not in models:
                continue
            at, model = np.flatnonzero(folds == k), models[k]
            if model.schema is schema:
                asked = {n: b.take(at) for n, b in blocks.items()}
            else:  # it has pairs of its own
                asked = encode.bags(model._read(batch.take(read.rows[at])))
            said = weighted_parts(model, asked)
            labels = np.array([numbers[k].get(c, -1) for c in read.classes] or [-1], dtype=np.int64)[read.labels[at]]
            w = np.ones(len(at)) if read.weights is None else read.weights[at]
            out = out + own.lost(model, said, labels, w, len(at))
        return out

    return reduce(Sums.__add__, threads.each(scored, _numbered(source)), own.nothing)
