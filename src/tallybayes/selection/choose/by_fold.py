"""Every row of a look scored by counts, weights and corrections that have not seen it, and the model that did so.

The rungs of the ladder are judged split by split, by rows that had no part in them. Here those scores are what is asked
for: no model of all rows is fitted, and no row is counted a second time. Of a short path of pulls, from strong to weak,
the one is taken that loses least on all rows held out, so that all that a row's own label has a say in is which.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from ...base import canon
from ...base.arrays import Ints
from ...base.threads import one_blas_thread
from ...data import encode
from ...data.schema import Schema
from ...data.sources import ROW, Batch, open_source
from ...families.settings import Settings
from ...model.prior import natural_order
from ..folds import HeldOut, count_folds
from .chosen import FEWEST, LookColumns, with_gaps
from .columns import DealtRows
from .deal import canonical_order
from .forms import wider
from .ladder import (
    CORRECTIONS,
    OF_COLUMNS,
    OF_PAIRS,
    OF_WEIGHTS,
    PAIRS,
    TEMPERATURE,
    WEIGHTS,
    Choice,
    Ladder,
    Rung,
)  # fmt: skip
from .losses import both_classes, log_sum
from .pairs import ColumnPair, best_pairs, coded_pairs
from .penalised import Pull, fitted, tempered
from .problem import Problem
from .text.beside import MOST_SCORES, TextsBeside, is_read
from .text.corrections import STRENGTHS, Trial, frequent_words
from .text.words import further, read_texts, thinned
from .written import Written

MOST_FOLDS = 20  # and three at least, since a fold that fits is scored without itself and without one that judges
MOST_ROWS = 100_000
_MOST_WORK = 40_000_000  # rows × columns × classes


@dataclass(frozen=True)
class Way:
    """What is tried, each from strong pulls to weak ones."""

    weights: Sequence[float]
    columns: Sequence[float] = ()
    words: Sequence[float] = ()
    pairs: Sequence[float] = ()
    further: bool = False  # pairs of words, and characters; and whether a value is missing
    precise: float = 1e-3  # of the loss


WAYS = {
    "quick": Way((30.0,)),
    "default": Way((30.0,), (3.0, 0.3, 0.03), (30.0, 3.0)),
    "thorough": Way(OF_WEIGHTS, OF_COLUMNS, STRENGTHS, OF_PAIRS, further=True, precise=1e-4),
}


class ByFold:
    """Rows scored by other folds: `held`, and for each fold the schema and settings of the model that scored it."""

    def __init__(self, look: Batch, schema: Schema, base: Settings, fold: Ints, way: Way) -> None:
        """`look` has all rows in their order, `fold` the number of each, below 0 for one that takes no part."""
        self.fold, self.way, self.look = fold, way, look
        rows = encode.labelled(schema, look, first=True)
        self.schema = with_gaps(schema, rows) if way.further else schema
        order = rows.rows[canonical_order(rows, folds=fold[rows.rows])]  # sums of floats are then those of any order
        part = order[fold[order] >= 0]
        self.order = part[np.argsort(fold[part], kind="stable")]
        taken = look.take(self.order)
        rows = encode.labelled(self.schema, taken)
        self.classes, folds = rows.classes, fold[self.order]
        weights = np.ones(len(folds)) if rows.weights is None else rows.weights
        self.weighted = rows.weights is not None
        self.rows = DealtRows(rows.labels, folds, weights, len(rows.classes), int(folds.max()) + 1)
        with one_blas_thread():
            self.made = LookColumns(taken, rows, self.schema, base, self.rows)
            named = [(c, self.made.coded[c.name]) for c in self.schema.counted if c.name in self.made.coded]
            pairs = coded_pairs(named, self.schema.counted) if way.pairs and len(named) > 1 else []
            coded, dense = list(self.made.coded.values()), list(self.made.dense.values())
            taken_already = frozenset(c.name for c, _ in named if c.kind == "pair")
            problem = Problem(self.rows, coded, dense, pairs, taken_already, enough=np.inf)
            self.climbed = _Climb(problem, way)
            self.choice = self.climbed.climb_by_split()
            self.texts = self._texts(taken)

    # ---- texts

    def _texts(self, look: Batch) -> _Texts | None:
        """What corrections of words add, where there are words."""
        folds, schema, base, way = self.made.folds, self.made.schema, self.made.base, self.way
        known = [] if folds is None else [c for c in schema.counted if is_read(folds, c, base)]
        if folds is None or not known or not way.words or len(self.order) * len(self.classes) > MOST_SCORES:
            return None
        beside = TextsBeside(self.climbed, self.choice, tuple(self.classes), every=True)
        beside.begin([beside.column(folds, c, base) for c in known])
        for what, column in further(schema, look, len(self.classes)) if way.further else ():
            alone = schema._with(columns=[column])
            counted = count_folds(open_source(look), alone, lambda read, start: self.rows.folds[read.rows + start])
            beside.offer_further(what, column, counted, read_texts(counted, alone, base.about(())))
        found = _Texts(beside, way.words)
        if found.loss >= self.climbed.mean(self.choice.row_losses) and not beside.added:
            return None
        return found

    # ---- what was found

    @property
    def held(self) -> HeldOut:
        """Every labelled row that has a fold, in the order of the look."""
        scores = both_classes(self.choice.scores, len(self.classes)) if self.texts is None else self.texts.scores
        rows, back = self.rows, np.argsort(self.order, kind="stable")
        here = [canon.from_text(c, self.schema.label_type) for c in self.classes]
        by_name = sorted(range(len(here)), key=lambda i: natural_order(here[i]))
        number = np.argsort(by_name)
        seen = rows.class_counts.sum(axis=1)[None, :] - rows.class_counts.T  # by the other folds
        with np.errstate(divide="ignore"):
            prior = np.log(seen / np.maximum(seen.sum(axis=1, keepdims=True), 1e-300))
        return HeldOut(
            tuple(here[i] for i in by_name), self.order[back], number[rows.labels[back]],
            rows.weights[back] if self.weighted else None, rows.folds[back], prior[:, by_name],
            scores[back][:, by_name], {},
        )  # fmt: skip

    def settings(self, fold: int) -> tuple[Schema, Settings]:
        """What the rows of a fold were scored under: counts of all other folds, weights without its split."""
        split = int(self.climbed.split_of_fold[fold])
        joint, x = self.choice.judged_by[split]
        pairs = self.climbed.paired.get(split, []) if PAIRS in self.choice.form else []
        choice = replace(self.choice, solution=x, joint=joint, pairs=pairs)
        written = Written(self.made.schema, self.made.base, self.made.coded, choice, self.classes)
        if self.texts is None:
            return written.schema(), written.settings()
        beside = self.texts.of_split(split)
        schema = beside.schema(written.schema())
        return schema, beside.written(written.settings(), schema)


class _Climb(Ladder):
    """The rungs, judged by every split, of which that with the least loss is taken."""

    def __init__(self, problem: Problem, way: Way) -> None:
        super().__init__(problem)
        self.way, self.every = way, 1
        self.judges = np.unique(problem.splits).tolist()
        self.paired: dict[int, list[ColumnPair]] = {}  # by split
        self.split_of_fold = np.zeros(problem.rows.n_folds, dtype=np.int64)
        self.split_of_fold[problem.rows.folds] = problem.splits

    def climb_by_split(self) -> Choice:
        """The rung that loses least, and the fit of every split."""
        terms = self.problem.terms()
        joints = {s: self.problem.joint(s, terms) for s in self.judges}
        self.first = best = self._rung(
            TEMPERATURE, (Pull(np.inf),), joints, {s: tempered(j) for s, j in joints.items()}
        )
        weighed = self._down(WEIGHTS, [Pull(w) for w in self.way.weights], best)
        best = min(best, weighed, key=self._loss)
        if self.problem.coded and self.way.columns:
            pulls = [Pull(weighed.pull.weights, c) for c in self.way.columns]
            corrected = self._down(CORRECTIONS, pulls, self._merged(weighed))
            best = min(best, corrected, key=self._loss)
            if self.problem.pairs:
                pulls = [corrected.pull._replace(pairs=p) for p in self.way.pairs]
                best = min(best, self._down(PAIRS, pulls, self._with_pairs(corrected)), key=self._loss)
        return self._judged(best)

    def _loss(self, rung: Rung) -> float:
        return self.mean(rung.losses)

    def _down(self, name: str, pulls: Sequence[Pull], start: Rung) -> Rung:
        """From the strongest pull to the weakest, each from the one before, as long as that loses less."""
        best, last = None, start
        for pull in pulls:
            found = {s: fitted(j, last.fitted[s], pull, self.way.precise) for s, j in last.joints.items()}
            last = self._rung(name, (*last.path, pull), last.joints, found)
            if best is not None and self._loss(last) >= self._loss(best):
                break
            best = last
            if name != WEIGHTS and self._loss(last) >= self._loss(start):
                break
        assert best is not None
        return best

    def _with_pairs(self, rung: Rung) -> Rung:
        """The same with pairs, which the rows that fit propose for each split."""
        each = {}
        for s, joint in rung.joints.items():
            self.paired[s] = best_pairs(self.problem.pairs, joint, rung.fitted[s])
            each[s] = wider(joint, rung.fitted[s], self.paired[s])
        return replace(rung, joints={s: j for s, (j, _) in each.items()}, fitted={s: x for s, (_, x) in each.items()})

    def _judged(self, rung: Rung) -> Choice:
        by = {s: (rung.joints[s], x) for s, x in rung.fitted.items()}
        joint, x = by[self.judges[0]]
        scores = np.full((len(self.weights), joint.width), np.nan)
        for j, solution in by.values():
            own = slice(*j.held)
            scores[own] = j.scores(solution, [own])[own]
        form = (CORRECTIONS, PAIRS) if rung.name == PAIRS else (rung.name,)
        return Choice(form, x, joint, [], {}, {}, scores, ~np.isnan(rung.losses), rung.losses, by)


class _Texts:
    """Corrections of words, fitted without each split in turn: of some strengths the one that loses least."""

    def __init__(self, beside: TextsBeside, strengths: Sequence[float]) -> None:
        self.beside, texts = beside, beside.texts
        kept = tuple(frequent_words(c.rows, c.pull) for c in texts.columns)
        self.trials = {s: Trial(texts, kept, s) for s in texts.judges}
        known = beside.ladder.problem.rows.weights > 0
        tried: list[tuple[float | None, bool]] = [(None, False)] if beside.added else []
        tried += [(strength, True) for strength in strengths] if any(k.any() for k in kept) else []
        self.by: tuple[float | None, bool] = (None, False)
        self.loss, self.scores = np.inf, np.zeros(texts.rest.shape)
        for by in tried or [(None, False)]:
            scores = np.zeros(texts.rest.shape)
            for s, trial in self.trials.items():
                scores[texts.split == s] = trial.scores(*by)
            losses = log_sum(scores) - scores[np.arange(len(scores)), texts.labels]
            loss = beside.ladder.mean(np.where(known, losses, np.nan) + 0 * beside.choice.row_losses)
            if loss >= self.loss and by[0] is not None:
                break
            self.by, self.loss, self.scores = by, loss, scores

    def of_split(self, split: int) -> TextsBeside:
        """The same with the numbers that were fitted without one split."""
        found = self.trials[split].answer(*self.by)
        out = TextsBeside(self.beside.ladder, self.beside.choice, self.beside.classes, every=True)
        for name in ("of_table", "alone", "texts", "added", "readings"):
            setattr(out, name, getattr(self.beside, name))
        out.fitted, out.offsets = found.columns, found.offsets
        return out


def scored_by_fold(look: Batch, schema: Schema, fold: Ints, effort: str) -> ByFold | None:
    """The rows of a look that has all of them; None where they are too few or too many to choose by all of them."""
    if look.sampled or look.stretches or look.rows != len(fold) or ROW in look.columns:
        return None
    parts = np.unique(fold[fold >= 0])
    labels = encode.labels(schema, look).codes
    n, classes = int(np.count_nonzero(labels >= 0)), len(np.unique(labels[labels >= 0]))
    few = n < FEWEST or classes < 2 or not schema.counted
    much = n > MOST_ROWS or n * len(schema.counted) * max(classes, 1) > _MOST_WORK or thinned(look, schema) is not look
    if few or much or not 3 <= len(parts) <= MOST_FOLDS or len(parts) <= parts.max():
        return None
    found = ByFold(look, schema, Settings.of(Settings(), schema), fold, WAYS[effort])
    return found if np.isfinite(found.held.joint).all() else None
