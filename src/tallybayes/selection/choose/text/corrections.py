"""Word corrections: what the rows of a text add to its counts, a shrunken number for each word and class.

    S_y = rest_y + o_y + Σ_columns tokens^b · [ w · Σ_words log P(word given y) + Σ_words δ_word,y ]

Counts take the words of a text for independent. Where words come together ("not", "good"; a name and its article) what
one of them adds beside the others is not in proportion to what it says alone, and no weight of a column mends that. δ
does, fitted together with w and o by logistic loss, and pulled to 0 by

    ½ · λ · mean(tokens^2b) · Σ δ²        the same pull on what a correction adds to a text of usual length

With many classes a word has one number for all of them, u, and δ_word,y = u · log P(word given y): what it says counts
more, or less, than the column's weight has it.

λ is sought from strong to weak. b is −½, which weighs a text by the root of its length, unless what suits the counts
alone loses clearly less on rows that played no part. Rows that fit are scored by counts that have seen neither
themselves nor the rows that judge: their own fold and the judging split are taken away from the total.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ....base.arrays import Bools, Floats, Ints
from ..descent import descend
from ..ladder import GAIN
from ..losses import log_sum
from .columns import ALL, TextColumn, judging
from .effects import FEW_CLASSES, Multiplied, Shared, TextScores, of_two, words_of

STRENGTHS = (100.0, 30.0, 10.0, 3.0, 1.0)  # λ
STRENGTHS_OF_MANY = (3.0, 1.0)  # λ of u
ROOT = -0.5  # b of a text weighed by the root of its length
MOST = 50_000  # numbers kept; the smallest are dropped
MOST_OF_MANY = 400_000  # the same of many classes: a number of a word is one for each class where it is written down
LEAST = 0.01  # nats in a text of usual length: less is dropped
_RARE = 2_000  # one row in so many must have a word, and three at least
_TRIAL_OF_MANY = 6_000  # rows that are enough to try many classes by
_OFFSETS = 10.0  # as for weights: 10 · Σ (o_y − their mean)²
_PRECISE, _ROUGH, _ROUGHER = 1e-5, 1e-4, 3e-4  # of the mean loss: weights alone, the answer, what is tried
_CHEAP = 300_000  # words of all rows: so few are fitted twice without a thought
_ENOUGH = 1_000  # rows to choose λ by
_IMPOSSIBLE = -6000.0  # nats of a whole text, as for weights


@dataclass(frozen=True)
class WordEvidence:
    """All that corrections are fitted to; every array in the order of the rows."""

    columns: tuple[TextColumn, ...]
    rest: Floats  # rows × classes: log prior and what other columns say, weighted
    labels: Ints  # 0 … classes − 1
    weights: Floats  # of the rows
    split: Ints  # 0 … splits − 1: those who judge together
    every: bool = False  # split judges; else as few as are enough

    @property
    def judges(self) -> list[int]:
        """The splits whose rows judge."""
        return judging(self.split, self.every)

    @property
    def classes(self) -> int:
        """How many classes."""
        return int(self.rest.shape[1])

    @cached_property
    def plain(self) -> dict[int | None, dict[bool, _Numbers]]:
        """What was found without corrections, by the split that judges."""
        return {}


@dataclass(frozen=True)
class ColumnCorrection:
    """What is believed of one column: w, b and δ."""

    name: str
    weight: float
    exponent: float
    words: Ints  # numbers in the grid, of those that have a correction
    added: Floats | None  # words × classes, inside tokens^b beside w · log P; None with many classes
    multipliers: Floats | None  # u of the words, added to w: (w + u) · log P; None with few classes


@dataclass(frozen=True)
class WordCorrections:
    """What was fitted, and the scores by which a caller may judge it against another form, as `weights_alone`."""

    columns: tuple[ColumnCorrection, ...]
    offsets: Floats  # of the classes, their mean 0
    strength: float  # λ
    judged: Bools  # the rows that scores are told of: those of two splits at least, and all where rows are few
    scores: Floats  # rows × classes, each row by numbers fitted without its split; 0 where not judged


def weights_alone(texts: WordEvidence) -> tuple[Bools, Floats] | None:
    """Which rows judge the form without corrections, and their scores; None if there are no two splits."""
    splits, scores = texts.judges, np.zeros(texts.rest.shape)
    if len(splits) < 2:
        return None
    for s in splits:
        found = _Fit.of(texts, None, s).plain(False)
        scores[texts.split == s] = _Fit.of(texts, None, s, judged=True).scores(found)
    return np.isin(texts.split, splits), scores


def fit_weights(texts: WordEvidence) -> tuple[tuple[ColumnCorrection, ...], Floats]:
    """Weights, exponents and offsets of all rows, without corrections."""
    x, none = _Fit.of(texts, None, None).plain(False), np.zeros(0, dtype=np.int64)
    each = zip(texts.columns, x.roots**2 / x.scales, x.exponents, strict=True)
    columns = tuple(ColumnCorrection(c.name, float(w), float(b), none, None, None) for c, w, b in each)
    return columns, x.offsets - x.offsets.mean()


def fit_corrections(texts: WordEvidence, strengths: Sequence[float] = ()) -> WordCorrections | None:
    """The corrections that rows which played no part prefer; None if there are no two splits or no frequent words."""
    splits = texts.judges
    kept = tuple(frequent_words(c.rows, c.pull) for c in texts.columns)
    if len(splits) < 2 or not any(k.any() for k in kept):
        return None
    many = texts.classes > FEW_CLASSES
    strengths = strengths or (STRENGTHS_OF_MANY if many else STRENGTHS)
    trials = {s: Trial(texts, kept, s) for s in splits}
    sizes = np.cumsum([np.count_nonzero(texts.split == s) for s in splits])
    judges = splits[: 1 + int(np.searchsorted(sizes, _ENOUGH))]
    by, best = (strengths[0], True), np.full(1, np.inf)
    for strength in strengths:
        losses = np.concatenate([trials[s].losses(strength, True) for s in judges])
        if losses.sum() > best.sum():
            break  # weaker still loses more still
        by, best = (strength, True), losses
    if not many and all(
        clearly_less(*(np.concatenate([trials[s].losses(strength, root) for s in some]) for root in (False, True)))
        for strength, some in ([(None, judges)] if _entries(texts) > _CHEAP else []) + [(by[0], splits)]
    ):
        by = by[0], False
    scores = np.zeros(texts.rest.shape)
    judged, start = np.isin(texts.split, list(trials)), trials[splits[0]].numbers(*by)
    for s in list(trials):
        scores[texts.split == s] = trials.pop(s).scores(*by)
    fit = _Fit.of(texts, kept, None)
    own = fit.plain(by[1])
    start = replace(start, exponents=own.exponents, scales=own.scales)
    return fit.answer(fit.corrected(*by, start, _ROUGH), by[0], judged, scores)


def clearly_less(losses: Floats, others: Floats) -> bool:
    """Whether losses of the same rows are less by more than two standard errors of their differences, and at all."""
    gains = others - losses
    return bool(gains.mean() > max(GAIN, 2 * gains.std() / np.sqrt(len(gains))))


def _entries(texts: WordEvidence) -> int:
    """Words of all rows and columns."""
    return sum(int(c.rows.nnz) for c in texts.columns)


def frequent_words(rows: Any, pull: float = 1.0) -> Bools:
    """The words that enough rows have, more where the pull is stronger; the last number stands for words of no fold."""
    out: Bools = np.bincount(rows.indices, minlength=rows.shape[1]) >= pull * max(3, rows.shape[0] / _RARE)
    out[-1] = False
    return out


class Trial:
    """Fits without one split, judged by it."""

    def __init__(self, texts: WordEvidence, kept: tuple[Bools, ...], split: int) -> None:
        self._of = texts, kept, split
        self._found: dict[tuple[float, bool], _Numbers] = {}

    @cached_property
    def fit(self) -> _Fit:
        """The other splits."""
        return _Fit.of(*self._of)

    @cached_property
    def held(self) -> _Fit:
        """The one."""
        return _Fit.of(*self._of, judged=True)

    def numbers(self, strength: float, root: bool) -> _Numbers:
        """Corrections under one λ, started from those under the one before."""
        if (strength, root) not in self._found:
            before = [x for (_, r), x in self._found.items() if r == root]
            self._found[strength, root] = self.fit.corrected(strength, root, before[-1] if before else None)
        return self._found[strength, root]

    def losses(self, strength: float | None, root: bool) -> Floats:
        """Of the rows that judge."""
        found = self.fit.plain(root) if strength is None else self.numbers(strength, root)
        return self.held.losses_of(self.held.scores(found))

    def scores(self, strength: float | None, root: bool) -> Floats:
        """Of the rows that judge; without a strength by weights alone."""
        return self.held.scores(self.fit.plain(root) if strength is None else self.numbers(strength, root).pruned())

    def answer(self, strength: float | None, root: bool) -> WordCorrections:
        """The numbers behind those scores."""
        found = self.fit.plain(root) if strength is None else self.numbers(strength, root)
        return self.fit.answer(found, strength or 0.0, np.zeros(0, dtype=bool), np.zeros(0))


@dataclass(frozen=True)
class _Numbers:
    """v (w = v²), b and δ of each column, each in units of a text of usual length, and o."""

    roots: Floats
    exponents: Floats
    scales: Floats  # √mean(tokens^2b) of the rows that were fitted to
    offsets: Floats
    added: tuple[Floats, ...]  # words × effects, or none

    def pruned(self) -> _Numbers:
        """Without the words whose corrections are too small to be kept."""
        size = [np.abs(a).max(axis=1, initial=0.0) for a in self.added]
        every, classes = np.concatenate(size), len(self.offsets)
        most = MOST // self.added[0].shape[1] if classes <= FEW_CLASSES else MOST_OF_MANY // classes
        least = max(LEAST, float(np.partition(every, -most)[-most]) if len(every) > most else 0.0)
        return replace(self, added=tuple(a * (z >= least)[:, None] for a, z in zip(self.added, size, strict=True)))


@dataclass(frozen=True, eq=False)
class _Fit:
    """The rows that are fitted to, or judged."""

    names: tuple[str, ...]
    parts: tuple[Floats, ...]  # centred
    log_tokens: tuple[Floats, ...]
    rows: tuple[Shared | Multiplied, ...]  # only the words that may have a correction
    words: tuple[Ints, ...]
    rest: Floats
    labels: Ints
    weights: Floats
    pulls: tuple[float, ...]
    _plain: dict[bool, _Numbers]  # the same with corrections and without

    @classmethod
    def of(cls, texts: WordEvidence, kept: tuple[Bools, ...] | None, split: int | None, judged: bool = False) -> _Fit:
        """Those of all splits but one, scored without it; or those of the one, scored without their folds.

        Without `kept` no word may have a correction.
        """
        inside = np.ones(len(texts.labels), dtype=bool) if split is None else (texts.split == split) == judged
        some = slice(None) if split is None else np.flatnonzero(inside)
        if isinstance(some, np.ndarray) and texts.classes > FEW_CLASSES and not judged:
            some = some[:: max(1, -(-len(some) // _TRIAL_OF_MANY))]
        which = ALL if split is None or judged else split
        return cls(
            tuple(c.name for c in texts.columns),
            tuple(_centred(c.parts[which][some]) for c in texts.columns),
            tuple(np.log(np.maximum(c.tokens[some], 1.0)) for c in texts.columns),
            tuple(words_of(c, k, texts.classes, some, which) for c, k in zip(texts.columns, kept or (), strict=False)),
            tuple(np.flatnonzero(k) for k in kept or ()),
            texts.rest[some], texts.labels[some], texts.weights[some],
            tuple(c.pull for c in texts.columns), {} if judged else texts.plain.setdefault(split, {}),
        )  # fmt: skip

    def plain(self, root: bool) -> _Numbers:
        """Weights, exponents and offsets without corrections; with `root` every exponent is −½."""
        if root not in self._plain:
            columns = len(self.parts)
            exponents = np.full(columns, ROOT if root else -0.3)
            scales = np.ones(columns)
            scale = [np.exp(b * t).mean() for b, t in zip(exponents, self.log_tokens, strict=True)]
            start = _Numbers(np.sqrt(0.3 / np.array(scale)) if root else np.full(columns, 0.5), exponents, scales,
                             np.zeros(self.rest.shape[1]), ())  # fmt: skip
            x = start
            for precise in (_ROUGH,) if root else (_ROUGH, _PRECISE):  # the second time with curvatures that suit
                x = self._descended(x, 0.0, not root, precise)
            self._plain[root] = self._in_usual_units(x)
        return self._plain[root]

    def _in_usual_units(self, x: _Numbers) -> _Numbers:
        each = zip(x.exponents, self.log_tokens, strict=True)
        scales = np.array([np.sqrt(np.average(np.exp(2 * b * t), weights=self.weights)) for b, t in each])
        return replace(x, roots=x.roots * np.sqrt(scales), scales=scales)

    def corrected(
        self, strength: float, root: bool, start: _Numbers | None = None, precise: float = _ROUGHER
    ) -> _Numbers:
        """Corrections under one λ; the exponents stay."""
        if start is None:
            none = tuple(
                np.zeros((len(words), rows.effects)) for words, rows in zip(self.words, self.rows, strict=True)
            )
            start = replace(self.plain(root), added=none)
        return self._descended(start, strength, False, precise)

    def _descended(self, start: _Numbers, strength: float, lengths: bool, precise: float) -> _Numbers:
        shapes = [a.shape for a in start.added]
        columns, classes = len(self.parts), self.rest.shape[1]
        cuts = np.cumsum([columns, columns if lengths else 0, classes, *(a.size for a in start.added)])[:-1]

        def unpacked(x: Floats) -> _Numbers:
            v, b, o, *added = np.split(x, cuts)
            each = tuple(a.reshape(shape) for a, shape in zip(added, shapes, strict=True))
            return _Numbers(v, b if lengths else start.exponents, start.scales, o, each)

        def packed(v: Floats, b: Floats, o: Floats, added: Iterable[Floats]) -> Floats:
            return np.concatenate([v, b if lengths else b[:0], o, *(a.ravel() for a in added)])

        def loss(x: Floats) -> tuple[float, Floats]:
            value, slopes = self.loss_and_slopes(unpacked(x), strength, lengths)
            return value, packed(*slopes)

        x0 = packed(start.roots, start.exponents, start.offsets, start.added)
        found = unpacked(descend(loss, x0, packed(*self.curvatures(start, strength)), precise))
        if found.added and self.rows[0].effects > 1:  # what all classes get alike says nothing, and only costs
            found = replace(found, added=tuple(a - a.mean(axis=1, keepdims=True) for a in found.added))
        return found

    # ---- the loss

    def _factors(self, x: _Numbers) -> list[Floats]:
        each = zip(x.exponents, self.log_tokens, x.scales, strict=True)
        return [np.exp(np.clip(b * t, -50.0, 50.0)) / scale for b, t, scale in each]

    @cached_property
    def _texts(self) -> TextScores:
        return TextScores(self.parts, self.rest, self.labels, self.weights)

    def _scored(self, x: _Numbers, factors: Sequence[Floats]) -> tuple[Floats, Floats]:
        """What each column says, and the scores."""
        told = [rows.told(a) for rows, a in zip(self.rows, x.added, strict=True)] if x.added else []
        return self._texts.scores(x.roots * x.roots, told, factors, x.offsets)

    def scores(self, x: _Numbers) -> Floats:
        """Rows × classes."""
        return self._scored(x, self._factors(x))[1]

    def losses_of(self, scores: Floats) -> Floats:
        """−log P(own class) of each row, times its weight."""
        return np.asarray(self.weights * (log_sum(scores) - scores[np.arange(len(scores)), self.labels]))

    def loss_and_slopes(
        self, x: _Numbers, strength: float, lengths: bool = True
    ) -> tuple[float, tuple[Floats, Floats, Floats, list[Floats]]]:
        """The penalised mean loss, and its slopes by v, b (where lengths are asked for), o and δ."""
        factors, total = self._factors(x), max(float(self.weights.sum()), 1e-300)
        said, scores = self._scored(x, factors)
        losses, residual = self._texts.left_over(scores)
        apart = x.offsets - x.offsets.mean()
        value = float(self.weights @ losses) + _OFFSETS * float(apart @ apart)
        value += 0.5 * float(x.exponents @ x.exponents)
        value += 0.5 * strength * sum(by * float(np.vdot(a, a)) for by, a in zip(self.pulls, x.added, strict=False))
        v, b, added = np.zeros(len(said)), x.exponents.copy(), []
        for j, (one, by) in enumerate(zip(said, factors, strict=True)):
            scaled = self._texts.scaled(residual, by)
            v[j] = 2 * x.roots[j] * float(np.vdot(scaled, self.parts[j]))
            if lengths:
                b[j] += float(np.einsum("nc,nc->n", residual, one) @ self.log_tokens[j])
            if x.added:
                added.append((self.rows[j].slopes(scaled) + strength * self.pulls[j] * x.added[j]) / total)
        o = self._texts.whole(residual) + 2 * _OFFSETS * apart
        return value / total, (v / total, b / total, o / total, added)

    def curvatures(self, x: _Numbers, strength: float) -> tuple[Floats, Floats, Floats, list[Floats]]:
        """About how strongly the loss bends along each number: the diagonal that the descent starts from."""
        factors, total = self._factors(x), max(float(self.weights.sum()), 1e-300)
        _, scores = self._scored(x, factors)
        p = np.exp(scores - log_sum(scores)[:, None])
        unsure = p * (1 - p) * self.weights[:, None]
        v, b, added = np.ones(len(factors)), np.ones(len(factors)), []
        for j, by in enumerate(factors):
            bent = unsure * (by**2)[:, None]
            parts = bent * self.parts[j] ** 2
            v[j] += 4 * x.roots[j] ** 2 * parts.sum()
            b[j] += x.roots[j] ** 4 * float(parts.sum(axis=1) @ self.log_tokens[j] ** 2)
            if x.added:
                added.append((self.rows[j].bends(bent) + strength * self.pulls[j]) / total)
        return v / total, b / total, (unsure.sum(axis=0) + 2 * _OFFSETS) / total, added

    # ---- the answer

    def answer(self, x: _Numbers, strength: float, judged: Bools, scores: Floats) -> WordCorrections:
        """The numbers in the units of the score."""
        columns = []
        none = [np.zeros((len(words), 1)) for words in self.words]
        for j, added in enumerate(x.pruned().added if x.added else none):
            some, scale = np.flatnonzero(added.any(axis=1)), float(x.scales[j])
            each, many = added[some] / scale, isinstance(self.rows[j], Multiplied)
            columns.append(
                ColumnCorrection(
                    self.names[j], float(x.roots[j] ** 2) / scale, float(x.exponents[j]), self.words[j][some],
                    None if many else of_two(each) if each.shape[1] == 1 else each, each[:, 0] if many else None,
                )
            )  # fmt: skip
        return WordCorrections(tuple(columns), x.offsets - x.offsets.mean(), strength, judged, scores)


def _centred(parts: Floats) -> Floats:
    apart = np.maximum(parts - parts.max(axis=1, keepdims=True), _IMPOSSIBLE)
    return np.asarray(apart - apart.mean(axis=1, keepdims=True))
