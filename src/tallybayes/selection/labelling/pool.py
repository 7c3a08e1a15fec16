"""Rows without a label as a model sees them: read once, scored as often as asked, while rows are counted or taken back.

Every column is kept by itself, since a score is a sum of columns: `WordColumn` for words that a short way is known for,
`CountedColumn` for any other. Under settings and families that stay, what a column would say with one row more depends
on nothing but that row's value in it.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Floats, Ints, safe_log
from ...base.errors import CannotEstimate, DataError
from ...data import encode
from ...data.batch import one_batch
from ...data.blocks import Bag, Block, Groups
from ...data.copies import column_hashes
from ...data.schema import Column
from ...data.sources import Batch, Source, open_source
from ...exact.counts import Counts, add_counts
from ...families import Belief, Family
from ...families.settings import Settings
from ...model import posterior
from ...model.estimate import believed, context_of
from ...model.model import Model
from ...model.prior import class_prior, class_totals
from ..word_grid import reading
from .words import WordColumn

_FEW = 16  # classes


class CountedColumn:
    """Any column: its belief is estimated anew from its exact counts, once for all rows of one value."""

    def __init__(
        self, column: Column, block: Block, counts: Counts, classes: tuple[str, ...], totals: Floats,
        settings: Settings, family: Family, belief: Belief,
    ) -> None:  # fmt: skip
        self.totals, self.column, self.block, self.counts, self.classes, self.settings = (
            totals,
            column,
            block,
            counts,
            classes,
            settings,
        )
        self.keys = column_hashes(block)
        self.family, self.belief = family, belief
        self.factor = posterior.factor(settings, column.name, block)
        self.dear = 4 if column.like == "number" else 1  # how much work it is to look ahead, beside other columns

    def _at_once(self, rows: Ints, labels: Ints, weights: Floats, block: Block) -> Floats | None:
        """What a block's values say with each row counted, by itself, if the family has a way to say it for all."""
        context = context_of(self.column, self.classes, self.totals, self.settings)
        said = self.family.one_more(self.counts, context, self.block.take(rows), labels, weights, block)
        correction = self.settings.corrections.get(self.column.name)
        if said is None or correction is None:
            return said
        added = self.belief.parts(block) - correction.weight * self.belief.by_counts.parts(block)
        return correction.weight * said + added

    def _of(self, row: int, label: int, weight: float) -> Counts:
        groups = Groups(np.array([label]), len(self.classes), None if weight == 1 else np.array([weight]))
        sheets = self.block.take(np.array([row])).sum_by(groups)
        return Counts({name: sheet for name, sheet in sheets.items() if sheet})

    def add(self, row: int, label: int, weight: float, totals: Floats, sign: int = 1) -> None:
        """Count a row of the pool under a class, or take it back."""
        own = self._of(row, label, weight)
        self.counts = add_counts([self.counts, own if sign > 0 else -own])
        self.totals = totals
        self.family, self.belief = believed(self.column, self.counts, self.classes, totals, self.settings)

    def parts(self, rows: Ints) -> Floats:
        """What the values of some rows say now, rows × classes, weighted as it is scored."""
        return self._weighted(self.belief.parts(self.block.take(rows)), rows)

    finding = parts  # for who looks for a class, too

    def _weighted(self, parts: Floats, rows: Ints) -> Floats:
        """Parts, … × rows × classes, times what each row's are worth."""
        by = self.factor[rows, None] if isinstance(self.factor, np.ndarray) else self.factor
        out: Floats = parts * by
        return out

    def imagined(self, rows: Ints, labels: Ints, weights: Floats, totals: Floats, sample: Ints) -> Floats:
        """What the sample's values say with each row counted, by itself, under its label: rows × sample × classes.

        Each value of the sample is asked once, and each value of the rows counted once under each label.
        """
        done: dict[tuple[int, int, float], int] = {}
        keys = zip(self.keys[rows].tolist(), labels.tolist(), weights.tolist(), strict=True)
        of = np.array([done.setdefault(key, len(done)) for key in keys])
        first = np.unique(of, return_index=True)[1]
        _, asked, inverse = np.unique(self.keys[sample], return_index=True, return_inverse=True)
        block = self.block.take(sample[asked])
        said = self._at_once(rows[first], labels[first], weights[first], block)
        if said is None:
            one_by_one = zip(*(each[first] for each in (rows, labels, weights, totals)), strict=True)
            said = np.stack([self._anew(int(r), int(y), float(w), all_, block) for r, y, w, all_ in one_by_one])
        if isinstance(self.factor, np.ndarray):
            return np.asarray(self._weighted(said[of[:, None], inverse], sample))
        return np.asarray((self.factor * said)[of[:, None], inverse])

    def _anew(self, row: int, label: int, weight: float, totals: Floats, block: Block) -> Floats:
        """What a block's values say with a row counted, by a belief that is estimated anew."""
        counts, families = add_counts([self.counts, self._of(row, label, weight)]), {self.column.name: self.family}
        return believed(self.column, counts, self.classes, totals, self.settings, families)[1].parts(block)


class Pool:
    """Rows without a label under a model whose settings stay."""

    def __init__(self, model: Model, rows: Any) -> None:
        if model.tally is None:
            raise CannotEstimate(
                "a model written down without a strength learns from no label, so none is worth more than another",
                hint="say how many rows it is worth: tb.Model.written(prior, tables, strength=100).",
            )
        self.batch = _read(model, rows)
        self.rows = self.batch.rows
        given = encode.weights(model.schema, self.batch) if model.schema.weights in self.batch else None
        self.weights = np.ones(self.rows) if given is None else given
        self._blocks = _encoded(model, self.batch)
        self._place(model)

    def under(self, model: Model) -> Pool:
        """The same rows under another model of the same columns, without reading them anew where that can be."""
        out = copy(self)
        if model.schema != self.model.schema or model._widths != self.model._widths:
            out._blocks = _encoded(model, self.batch)
        out._place(model)
        return out

    def _place(self, model: Model) -> None:
        assert model.tally is not None
        self.model, self.settings = model, model.settings
        self.names = tuple(str(canon.text(c)) for c in model.classes)
        self.totals = class_totals(model.tally, self.names)
        self._offsets = posterior.offsets(self.settings, model.classes)
        number = np.array([self.names.index(c) for c in model.tally.classes], dtype=np.int64)
        self.columns: list[WordColumn | CountedColumn] = []
        plain = replace(self.settings, corrections={}, prior="counted")
        for column in model.schema.counted:
            if self.settings.weights.get(column.name, 1.0) == 0:  # it is not asked
                continue
            counts, block = model.tally.columns[column.name].relabel(number), self._blocks[column.name]
            way = reading(column, plain) if isinstance(block, Bag) and len(self.names) > 1 else None
            if way is not None and isinstance(block, Bag):
                factor = posterior.factor(self.settings, column.name, block)
                own = self.settings.corrections.get(column.name)
                weight = self.settings.weights.get(column.name, 1.0)
                self.columns.append(WordColumn(column, block, counts, self.names, way, factor, weight, own))
            else:
                own_family, belief = model.families[column.name], model.beliefs[column.name]
                about = (self.names, self.totals, self.settings, own_family, belief)
                self.columns.append(CountedColumn(column, block, counts, *about))

    @property
    def separable(self) -> bool:
        """Whether what a column says depends on its own counts alone; a floor under all Gaussians ties them."""
        return self.settings.floor.kind == "column"

    def start(self, totals: Floats) -> Floats:
        """Where scores start when the classes have so many rows."""
        out: Floats = safe_log(class_prior(self.settings, self.names, totals)) + self._offsets
        return out

    def add(self, row: int, label: int, sign: int = 1) -> None:
        """Count a row under a class, or take it back; one that weighs nothing changes nothing."""
        if self.weights[row] == 0:
            return
        self.totals = self.totals + sign * self.weights[row] * (np.arange(len(self.names)) == label)
        for column in self.columns:
            column.add(row, label, float(self.weights[row]), self.totals, sign)

    def joint(self, rows: Ints) -> Floats:
        """The scores of some rows, rows × classes."""
        out = np.tile(self.start(self.totals), (len(rows), 1))
        for column in self.columns:
            out += column.parts(rows)
        return posterior.calibrated(self.settings, out)

    def probabilities(self, rows: Ints) -> Floats:
        """P(class given row) of some rows."""
        return probabilities(self.joint(rows), self.start(self.totals))

    def ahead(self, rows: Ints, label: int) -> Floats:
        """How far a class is ahead of all others in some rows, for who looks for its rows.

        log(score_y / Σ_k≠y score_k), which tells rows apart where P(class) is 1 to the last digit, as in long texts.
        """
        said = np.tile(self.start(self.totals), (len(rows), 1))
        for column in self.columns:
            said += column.finding(rows)
        own, others = said[:, label], np.logaddexp.reduce(np.delete(said, label, axis=1), axis=1)
        return np.where(np.isneginf(own), own, own - np.where(np.isneginf(own), 0.0, others))

    def imagined(self, rows: Ints, labels: Ints, sample: Ints) -> Floats:
        """P(class given row) of a sample with each of some rows counted, by itself, under its label.

        Rows × sample × classes.
        """
        weights = self.weights[rows]
        totals = self.totals + weights[:, None] * (np.arange(len(self.names)) == labels[:, None])
        start = np.stack([self.start(each) for each in totals])[:, None, :]
        out = np.tile(start, (1, len(sample), 1))
        for column in self.columns:
            out += column.imagined(rows, labels, weights, totals, sample)
        bent = posterior.calibrated(self.settings, out.reshape(-1, len(self.names))).reshape(out.shape)
        return probabilities(bent, start)

    def taken(self, rows: Ints) -> Source:
        """Some rows as data for `update`, without a label."""
        batch = self.batch.take(rows)
        columns = {n: c for n, c in batch.columns.items() if n != self.model.schema.target}
        return Source(lambda: iter([replace(batch, columns=columns)]))

    def updated(self, rows: Ints, labels: list[Any]) -> Model:
        """The model with these rows counted under these labels."""
        schema = self.model.schema
        ones = None if schema.weights is None or schema.weights in self.batch else [1.0] * len(rows)
        return (
            self.model.update(self.taken(rows), labels, weights=ones, new_classes="allow") if len(rows) else self.model
        )


def _read(model: Model, rows: Any) -> Batch:
    schema = model.schema
    source = open_source(model.table_of(rows))
    if source.engine is not None:
        raise DataError(
            "the rows to label live elsewhere",
            hint="bring some of them here first, e.g. frame.limit(100_000).toPandas().",
        )
    wanted = dict(encode.wanted(schema, labelled=False)) | (
        {} if schema.weights is None else {schema.weights: "number"}
    )
    batch = one_batch(list(source.batches(wanted)))
    if batch.rows == 0:
        raise DataError("there are no rows to choose from", hint="give the rows that have no label yet.")
    return batch


def _encoded(model: Model, batch: Batch) -> dict[str, Block]:
    return {n: b.unordered() if isinstance(b, Bag) else b for n, b in model._encoded(batch).items()}


def probabilities(joint: Floats, start: Floats) -> Floats:
    """P(class) of scores; where every class is impossible the start answers."""
    top = _over_classes(np.maximum, joint)
    if not np.isfinite(top).all():
        joint = np.where(np.isfinite(top)[..., None], joint, start)
        top = _over_classes(np.maximum, joint)
    p: Floats = np.exp(joint - top[..., None])
    p /= _over_classes(np.add, p)[..., None]
    return p


def entropy(p: Floats) -> Floats:
    """−Σ P·log P along the last axis, in nats."""
    return np.asarray(-_over_classes(np.add, p * np.log(np.where(p > 0, p, 1.0))))


def _over_classes(each: np.ufunc, table: Floats) -> Floats:
    """Σ or maximum along the last axis; of few classes one by one, since NumPy takes long over many short rows."""
    if not 0 < table.shape[-1] <= _FEW:
        return np.asarray(each.reduce(table, axis=-1))
    out: Floats = table[..., 0].copy()
    for y in range(1, table.shape[-1]):
        each(out, table[..., y], out=out)
    return out
