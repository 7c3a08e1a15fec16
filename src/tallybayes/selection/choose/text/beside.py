"""What the texts of a table add once the ladder has weighed all columns: further readings, word corrections, a lead.

    what the ladder took  →  more read from the same texts  →  a correction for every word  →  the lead of the best bent

What the other columns say stands still meanwhile: `rest`, their score of each row by a solution that has not seen its
split where that split judges. A step is taken by the rule of the ladder, on rows that had no part in it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ....base.arrays import Bools, Floats
from ....data.schema import Column, Schema
from ....data.sources import Batch, open_source
from ....families.calibration import Correction, MarginScaling
from ....families.settings import Settings
from ...folds import Folds, count_folds
from ...word_grid import reading
from ..columns import DealtRows
from ..forms import listed
from ..ladder import CORRECTIONS, SHARED, TEMPERATURE, WEIGHTS, Choice, Ladder
from ..losses import both_classes, posterior
from ..problem import split_of
from .columns import FURTHER, TextColumn
from .corrections import ColumnCorrection, WordEvidence, fit_corrections, fit_weights, weights_alone
from .words import further, read_texts

WORDS, LEAD = "word corrections", "lead"
LEAD_FROM = 1_000  # rows
MOST_SCORES = 1_500_000  # rows × classes, beyond which the weights of the ladder stay


@dataclass(frozen=True)
class Allowed:
    """Which steps are tried."""

    further: bool = True
    corrections: bool = True
    lead: bool = True


def read_on(
    look: Batch, schema: Schema, settings: Settings, folds: Folds | None, classes: Sequence[str], ladder: Ladder,
    choice: Choice, allowed: Allowed | None,
) -> TextsBeside:  # fmt: skip
    """What the texts of a look add to a choice; nothing where it has none, or too many classes to look closer."""
    out = TextsBeside(ladder, choice, tuple(classes))
    known = [] if folds is None else [c for c in schema.counted if is_read(folds, c, settings)]
    if allowed is None or folds is None or not known or choice.scores.shape[0] * len(classes) > MOST_SCORES:
        return out
    out.begin([out.column(folds, c, settings) for c in known])
    if allowed.further:
        for what, column in further(schema, look, len(classes)):
            alone = schema._with(columns=[column])
            counted = count_folds(
                open_source(look), alone, lambda read, start: ladder.problem.rows.folds[read.rows + start]
            )
            out.offer_further(what, column, counted, read_texts(counted, alone, settings.about(())))
    out.offer_corrections(allowed.corrections)
    if allowed.lead and choice.scores.shape[0] >= LEAD_FROM:
        out.offer_lead()
    return out


def is_read(folds: Folds, column: Column, settings: Settings) -> bool:
    """Whether a column is of words, and believed by counts that are looked up word by word."""
    return column.name in folds.words and folds.words[column.name] is not None and reading(column, settings) is not None


class TextsBeside:
    """The texts beside a choice of the ladder, and what was taken of them."""

    def __init__(self, ladder: Ladder, choice: Choice, classes: tuple[str, ...], every: bool = False) -> None:
        self.ladder, self.choice, self.classes, self.every = ladder, choice, classes, every  # split judges, or enough
        self.rows: DealtRows = ladder.problem.rows
        self.splits = split_of(np.arange(self.rows.n_folds), self.rows.n_folds)
        self.lead: MarginScaling | None = None
        self.added: list[Column] = []  # further columns that were taken
        self.readings: list[Settings] = []
        self.fitted: tuple[ColumnCorrection, ...] = ()  # instead of the ladder's weights of texts
        self.offsets: Floats | None = None

    def column(self, folds: Folds, column: Column, settings: Settings, pull: float = 1.0) -> TextColumn:
        """A column as corrections are fitted to it."""
        return TextColumn.of(folds, column, settings, self.classes, self.splits, pull, self.every)

    def begin(self, columns: Sequence[TextColumn]) -> None:
        """From these columns."""
        self.of_table = frozenset(c.name for c in columns)
        self.alone = not self.ladder.problem.coded and len(columns) == len(self.choice.joint.dense)
        rest = self._rest()
        self.texts = WordEvidence(
            tuple(columns), rest, self.rows.labels, self.rows.weights, self.splits[self.rows.folds], self.every
        )

    def _rest(self) -> Floats:
        """Log prior, offsets and what all columns but the texts say; the offsets are fitted anew with texts alone."""
        choice, names = self.choice, self.of_table

        def said(joint: Any, x: Any) -> Floats:
            texts = [i for i, d in enumerate(joint.dense) if d.name in names]
            weights = x.weights.copy()
            weights[[joint.readers + i for i in texts]] = 0.0
            none = np.zeros_like(x.offsets) if self.alone else x.offsets
            return np.asarray(joint.scores(x._replace(weights=weights, offsets=none)))

        out = said(choice.joint, choice.solution)
        if not self.alone:
            for joint, x in choice.judged_by.values():
                start, stop = joint.held
                out[start:stop] = said(joint, x)[start:stop]
        return both_classes(out, len(self.classes))

    # ---- steps

    def offer_further(self, what: str, column: Column, folds: Folds, settings: Settings) -> None:
        """One more reading of a text, judged by weights alone."""
        if not is_read(folds, column, settings):
            return
        wider = replace(self.texts, columns=(*self.texts.columns, self.column(folds, column, settings, FURTHER)))
        found = weights_alone(wider)
        if found is not None and self._taken(what, *found):
            self.texts = wider
            self.added.append(column)
            self.readings.append(settings)

    def offer_corrections(self, allowed: bool) -> None:
        """A correction for every word of all texts; without it, weights for all if some of them are new."""
        found = fit_corrections(self.texts) if allowed else None
        if found is not None and self._taken(WORDS, found.judged, found.scores):
            self.fitted, self.offsets = found.columns, found.offsets
        elif self.added:
            self.fitted, self.offsets = fit_weights(self.texts)

    def offer_lead(self) -> None:
        """The lead of the best class bent, judged split by split."""
        judged = np.flatnonzero(self.choice.judged & self._known())
        scores = both_classes(self.choice.scores, len(self.classes))
        labels, weights, split = self.rows.labels, self.rows.weights, self.splits[self.rows.folds]
        if len(np.unique(split[judged])) < 2:
            return
        bent, told = scores.copy(), np.zeros(len(labels), dtype=bool)
        for s in np.unique(split[judged]).tolist():
            fit, own = judged[split[judged] != s], judged[split[judged] == s]
            bent[own] = MarginScaling.fitted(scores[fit], labels[fit], weights[fit])(scores[own])
            told[own] = True
        if self._taken(LEAD, told, bent):
            self.lead = MarginScaling.fitted(scores[judged], labels[judged], weights[judged])

    def _known(self) -> Bools:
        return ~np.isnan(self.choice.row_losses)

    def _taken(self, what: str, judged: Bools, scores: Floats) -> bool:
        """Whether a step gains beyond chance on rows that judge both; the choice is then by its scores."""
        choice = self.choice
        losses, _ = posterior(scores, self.rows.labels)
        losses = np.where(judged, losses, np.nan) + 0 * choice.row_losses
        if not (~np.isnan(losses)).any():
            return False
        held = tuple(f for f in choice.form if f not in (TEMPERATURE, WEIGHTS))
        richer = tuple(dict.fromkeys((*held, what)))
        if what == LEAD:
            richer = (*choice.form, what)
        elif what != WORDS and CORRECTIONS not in held:
            richer = (WEIGHTS, *richer)
        both = dict(choice.losses), dict(choice.errors)
        unknown = self.ladder._of_shares()
        both[0][listed(richer)] = self.ladder.mean(losses) + unknown
        both[1][listed(richer)] = SHARED * self.ladder.error(losses)
        self.choice = replace(choice, losses=both[0], errors=both[1])
        if not self.ladder._beyond_chance(choice.row_losses - losses):
            return False
        width = choice.scores.shape[1]
        same = scores if width == scores.shape[1] else scores[:, 1:] - scores[:, :1]
        there = ~np.isnan(losses)
        self.choice = replace(self.choice, form=richer, scores=same, judged=there, row_losses=losses)
        return True

    # ---- writing down

    def schema(self, schema: Schema) -> Schema:
        """With the further columns that were taken."""
        return schema._with(columns=[*schema.columns, *self.added]) if self.added else schema

    def written(self, settings: Settings, schema: Schema) -> Settings:
        """The settings with what was taken."""
        families, smoothing = dict(settings.families), settings.smoothing
        for read in self.readings:
            families |= read.families
            if isinstance(read.smoothing, dict):
                smoothing = {**(smoothing if isinstance(smoothing, dict) else {}), **read.smoothing}
        weights, lengths = dict(settings.weights), dict(settings.lengths)
        corrections = dict(settings.corrections)
        for column, found in zip(self.texts.columns if self.fitted else (), self.fitted, strict=True):
            lengths[column.name] = found.exponent
            added = self._correction(column, found)
            if added is None:
                weights[column.name] = found.weight
            else:
                weights.pop(column.name, None)
                corrections[column.name] = added
        offsets = dict(settings.offsets)
        if self.offsets is not None:
            before = {} if self.alone else offsets
            offsets = {c: before.get(c, 0.0) + float(o) for c, o in zip(self.classes, self.offsets, strict=True)}
        order = [c.name for c in schema.counted]
        weights = {name: weights[name] for name in order if name in weights}
        return replace(
            settings, families=families, smoothing=smoothing, weights=weights, lengths=lengths, offsets=offsets,
            corrections=corrections, lead=self.lead,
        )  # fmt: skip

    def _correction(self, column: TextColumn, found: ColumnCorrection) -> Correction | None:
        """δ of each word, by the counts of all rows where it is a multiple of what the word says."""
        if not len(found.words):
            return None
        added = found.added
        if found.multipliers is not None:
            nobody = np.zeros(self.rows.n_folds, dtype=bool)
            added = found.multipliers[:, None] * column.logs.table(found.words, nobody)
        assert added is not None
        spelled = column.logs.grid.sheet.slots
        cells = tuple(spelled.take(found.words).to_pylist())
        return Correction(found.weight, self.classes, added, cells=cells)
