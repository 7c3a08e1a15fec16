"""How sure a figure is: a 95 % interval of every metric, of the mean of some forecasts, or of a difference of two.

`interval` is the plain way for any formula: rows are drawn again with replacement, and the formula is asked under the
weights of each draw. `Figures` knows more about the metrics that we have, reads every row once, however many there are,
and covers better (docs/quality.md has how often):

    shares of rows            Wilson's interval; of differences that of Bonett and Price
    means over rows           mean ± t · deviation, moved by the skewness of the rows (Johnson 1978)
    areas under curves        what each row adds to the area (DeLong 1988), on the scale of log odds
    other figures of answers  draws of how often which class got which answer, which is drawing rows; bias corrected
    calibration error         draws of the gap of each bin, which is a sum over its rows

Deviations are those of the rows' own contributions, so that weights, repetitions and differences need no more formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr, ndtri, stdtrit

from ...base.arrays import Bools, Floats, Ints
from .curves import wilson
from .metrics import AREAS, BINS, MEANS, METRICS, OF_ANSWERS, PER_CLASS, SHARES, Formula, Scored, formula

_AT_ONCE = 1 << 22  # weights held at a time
_DRAWN = 2e7  # rows × classes × draws spent on one interval, within 200 and 1,000 draws
_LEAST_FREE = 3.0  # degrees of freedom, else a variance would have no mean
_MOST_SKEW = 1.0  # of a mean, beyond which the expansion that uses it says nothing
_SHARES_OF = {
    "recall": "labels",
    "specificity": "labels",
    "precision": "predicted",
}  # of which rows: see `_class_shares`
_GAPS = METRICS["calibration_error"]
Bounds = tuple[Floats, Floats, Floats]  # figure, lower, upper


def draws(s: Scored, resamples: int, seed: int) -> Iterator[Floats]:
    """Weights of bootstrap samples, some draws × rows at a time: how often each row came up, times its weight."""
    rng = np.random.default_rng(seed)
    n = len(s.labels)
    step = max(1, _AT_ONCE // n)
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        at = rng.integers(0, n, size=(count, n)) + n * np.arange(count)[:, None]
        yield np.bincount(at.ravel(), minlength=count * n).reshape(count, n) * s.weights


def interval(
    scored: Sequence[Scored], f: Formula, *, resamples: int = 1000, seed: int = 0, level: float = 0.95,
    less: Sequence[Scored] = (),
) -> Bounds:  # fmt: skip
    """The figure and its lower and upper bound: the middle `level` of the figures of rows drawn with replacement.

    Several forecasts of the same rows (repetitions) are averaged, draw by draw, and the mean of those in `less` is
    taken away. A formula of several numbers, one per class, gets a bound for each; a draw for which a figure does not
    exist (no row of a class) does not count for it.
    """
    figure = _together(lambda s: f(s, s.weights[None, :])[0], scored, less)
    found = []
    for w in draws(scored[0], resamples, seed):
        some = w[w.sum(axis=1) > 0]  # with weights a draw may hold nothing
        found.append(_together(lambda s, w=some: f(s, w), scored, less))  # type: ignore[misc]
    return _middle(figure, np.concatenate(found), level)


def _together(of: Callable[[Scored], Any], scored: Sequence[Scored], less: Sequence[Scored]) -> Floats:
    """The mean over some forecasts, less that over others."""
    mean = np.mean([of(s) for s in scored], axis=0)
    return np.asarray(mean - np.mean([of(s) for s in less], axis=0) if less else mean)


def _middle(figure: Floats, each: Floats, level: float, *, corrected: bool = False) -> Bounds:
    """The middle part of the figures of the draws; corrected, that around the figure where most draws are off it.

    Bias correction (Efron 1981): if a share Φ(z) of the draws is below the figure, quantiles are moved by 2z.
    """
    each = each.reshape(len(each), -1)
    bounds = np.full((2, each.shape[1]), np.nan)
    for j in range(each.shape[1]):
        there = each[~np.isnan(each[:, j]), j]
        if len(there):
            at = np.array([(1 - level) / 2, (1 + level) / 2])
            if corrected:
                own = np.ravel(figure)[j]
                below = np.mean(there < own) + np.mean(there == own) / 2
                at = ndtr(ndtri(at) + 2 * ndtri(np.clip(below, 0.1, 0.9)))
            bounds[:, j] = np.quantile(there, at)
    low, high = (b.reshape(np.shape(figure)) for b in bounds)
    return np.asarray(figure), low, high


class Figures:
    """Every metric of some forecasts of the same rows, averaged, with its interval; less those of others, if given."""

    def __init__(
        self, scored: Sequence[Scored], less: Sequence[Scored] = (), *, seed: int = 0, level: float = 0.95
    ) -> None:
        self.scored, self.less, self.seed, self.level = scored, less, seed, level
        self.weights, self.n_classes = scored[0].weights, scored[0].n_classes
        self._z = float(ndtri((1 + level) / 2))

    def value(self, metric: str) -> float:
        """The figure alone."""
        f = formula(metric)
        if metric in OF_ANSWERS:
            return float(self._of_cells(f, self._cells[-1][None, :])[0])
        if metric in AREAS:
            return float(self._areas[1][0][AREAS.index(metric)])
        return float(_together(lambda s: f(s, s.weights[None, :])[0], self.scored, self.less))

    def interval(self, metric: str) -> tuple[float, float, float]:
        """(figure, lower, upper)."""
        f = formula(metric)
        if metric in SHARES:
            found = (self._paired if self.less else self._wilson)(SHARES[metric])
        elif metric in MEANS:
            found = self._mean(MEANS[metric])
        elif metric in OF_ANSWERS:
            found = self._drawn_answers(f)
        elif metric in AREAS:
            found = _of(AREAS.index(metric), self._areas[1])
        elif f is _GAPS and not self.less:
            found = self._calibration()
        else:
            resamples = int(np.clip(_DRAWN / (len(self.weights) * self.n_classes), 200, 1000))
            found = interval(self.scored, f, resamples=resamples, seed=self.seed, level=self.level, less=self.less)
        value = self.value(metric)
        low, high = (value if np.isnan(value) else float(end) for end in found[1:])
        return value, min(low, value), max(high, value)

    def by_class(self, metric: str, *, bounds: bool = True) -> Bounds:
        """The same of every class: figures, lower and upper bounds; or the figures alone, in all three places."""
        if not bounds and metric in OF_ANSWERS:
            figure = self._of_cells(PER_CLASS[metric], self._cells[-1][None, :])[0]
            return figure, figure, figure
        if metric in _SHARES_OF:
            return self._class_shares(metric)
        if metric in OF_ANSWERS:
            return self._drawn_answers(PER_CLASS[metric])
        each = [_of(AREAS.index(metric), bounds) for bounds in self._areas[0]]
        figure, low, high = (np.array(column) for column in zip(*each, strict=True))
        return figure, low, high

    # ---- means over rows

    def _contributions(self, values: Callable[[Scored], Floats]) -> tuple[float, Floats, Floats]:
        """The mean, the value of each row, and w · d(mean)/dw of each, whose squares add up to the variance."""
        v = _together(values, self.scored, self.less)
        w = self.weights
        mean = float((w @ v) / (w @ np.ones_like(v)))  # added in one order: all of them are 1 and no more
        return mean, v, w * (v - mean) / w.sum()

    def _wilson(self, values: Callable[[Scored], Floats]) -> Bounds:
        """Wilson's interval of a share: of as many rows as would have its variance."""
        mean, _, rows = self._contributions(values)
        variance, w = float(rows @ rows), self.weights
        n = mean * (1 - mean) / variance if variance > 0 else float(w.sum()) ** 2 / float(w @ w)
        low, high = (float(end) for end in wilson(np.asarray(mean * n), np.asarray(n), self.level))
        return np.asarray(mean), np.asarray(min(low, mean)), np.asarray(max(high, mean))

    def _paired(self, values: Callable[[Scored], Floats]) -> Bounds:
        """The interval of Bonett and Price (2012) of a difference of shares in pairs: as if each had won once more."""
        mean, v, _ = self._contributions(values)
        w = self.weights
        n = float(w.sum()) ** 2 / float(w @ w)
        won, lost = ((float(w @ np.maximum(side, 0.0)) / float(w.sum()) * n + 1) / (n + 2) for side in (v, -v))
        wide = self._z * np.sqrt((won + lost - (won - lost) ** 2) / (n + 2))
        return np.asarray(mean), np.asarray(won - lost - wide), np.asarray(won - lost + wide)

    def _mean(self, values: Callable[[Scored], Floats]) -> Bounds:
        mean, v, rows = self._contributions(values)
        deviation = float(np.sqrt(rows @ rows))
        if deviation == 0:
            return np.asarray(mean), np.asarray(mean), np.asarray(mean)
        skew = np.clip(float((rows / deviation) ** 2 @ (rows / deviation)), -_MOST_SKEW, _MOST_SKEW)
        shift, times = skew * (2 * self._z**2 + 1) / 6, self._times(rows)
        low, high = mean + deviation * (shift - times), mean + deviation * (shift + times)
        return np.asarray(mean), np.asarray(max(low, v.min())), np.asarray(min(high, v.max()))

    def _times(self, rows: Floats) -> float:
        """How many deviations wide: Student's t, with the degrees of freedom that the rows' fourth moment leaves.

        Few rows that count for much, as those of a rare class do, leave few.
        """
        squares = rows * rows
        spread = float(squares @ squares) / float(squares.sum()) ** 2 - 1 / len(rows)
        free = max(2 / spread, _LEAST_FREE) if spread > 2e-12 else 1e12
        return float(stdtrit(free, (1 + self.level) / 2) * np.sqrt(free / (free - 1)))

    # ---- labels and answers

    @cached_property
    def _cells(self) -> tuple[list[Scored], list[Scored], Floats, Floats]:
        """Rows of the same label and answers as one: as scored rows, and Σ w² and Σ w of each."""
        every = [*self.scored, *self.less]
        code = every[0].labels
        for s in every:
            code = _numbered(code, s.predicted, self.n_classes)
        first = np.empty(int(code.max()) + 1, dtype=np.int64)
        first[code[::-1]] = np.arange(len(code))[::-1]
        squares, weight = (_sums(code, v, len(first)) for v in (self.weights**2, self.weights))
        cells = [Scored.of_answers(s.labels[first], s.predicted[first], self.n_classes, weight) for s in every]
        return cells[: len(self.scored)], cells[len(self.scored) :], squares, weight

    def _of_cells(self, f: Formula, w: Floats) -> Floats:
        scored, less, _, _ = self._cells
        return _together(lambda s: f(s, w), scored, less)

    def _drawn_answers(self, f: Formula) -> Bounds:
        """Draws of the rows of each cell; with weights, of sums that have the mean and deviation of such draws."""
        _, _, squares, weight = self._cells
        rng = np.random.default_rng(self.seed)
        count = int(np.clip(_AT_ONCE / len(weight), 200, 1000))
        step = max(1, _AT_ONCE // len(weight))
        found = []
        for start in range(0, count, step):
            size = min(step, count - start)
            if np.array_equal(weight, squares):  # every row weighs one
                w = rng.multinomial(len(self.weights), weight / weight.sum(), size=size).astype(np.float64)
            else:
                there = squares > 0
                scale = np.divide(squares, weight, out=np.ones_like(weight), where=there)
                w = np.where(there, rng.gamma(np.where(there, weight / scale, 1.0), scale, (size, len(weight))), 0.0)
            found.append(self._of_cells(f, w))
        figure = self._of_cells(f, weight[None, :])[0]
        return _middle(figure, np.concatenate(found), self.level, corrected=True)

    def _class_shares(self, metric: str) -> Bounds:
        """Wilson's intervals of shares of the rows of a class, of the other classes, or of an answer."""
        (s, *_), _, squares, weight = self._cells
        figure = self._of_cells(PER_CLASS[metric], weight[None, :])[0]
        of = getattr(s, _SHARES_OF[metric])
        total, square = (np.bincount(of, v, minlength=self.n_classes) for v in (weight, squares))
        if metric == "specificity":
            total, square = total.sum() - total, square.sum() - square
        there = square > 0  # else nothing is known of the share
        n = np.divide(total**2, square, out=np.ones_like(total), where=there)
        low, high = wilson(figure * n, n, self.level)
        return figure, np.where(there, np.minimum(low, figure), 0.0), np.where(there, np.maximum(high, figure), 1.0)

    # ---- areas under curves

    @cached_property
    def _areas(self) -> tuple[list[Bounds], Bounds]:
        """Areas under the curves of each class and as the metrics have them, with bounds: 2 numbers in each place."""
        few, judged = (of(self.weights[None, :])[0] for of in (self.scored[0].fewer, self.scored[0].judged))
        total, known, rows, classes = np.zeros(2), np.zeros(2), np.zeros((2, len(self.weights))), []
        for label in range(self.n_classes):
            area, added = self._of_class(label)
            classes.append(self._bounded(area, added, one=few[label] == 1))
            there = ~np.isnan(area)
            if label == 1 if self.n_classes == 2 else judged[label]:
                total, known = total + np.where(there, area, 0.0), known + there
                rows += added
        with np.errstate(invalid="ignore"):  # no class is known
            mean = self._bounded(total / known, rows / np.maximum(known, 1)[:, None])
        return classes, classes[1] if self.n_classes == 2 else mean

    def _of_class(self, label: int) -> tuple[Floats, Floats]:
        """Both areas of one class, and what each row adds to them."""
        if len(self.scored) == 1 and not self.less:
            return areas(self.scored[0], label)
        area, rows = np.zeros(2), np.zeros((2, len(self.weights)))
        for sign, part in ((1, self.scored), (-1, self.less)):
            for own, added in (areas(s, label) for s in part):
                area += sign / len(part) * own
                rows += sign / len(part) * added
        return area, rows

    def _bounded(self, area: Floats, rows: Floats, one: bool = False) -> Bounds:
        """On the scale of log odds, where an area near 1 has room on both sides; differences have room anyway.

        One row of a class says where that row was ranked, and nothing of the next: its area may be any.
        """
        if one:
            return area, area * 0 - bool(self.less), area * 0 + 1
        low, high = area.copy(), area.copy()
        for i, added in enumerate(rows):
            deviation = float(np.sqrt(added @ added))
            if deviation > 0 and self.less:
                wide = self._times(added) * deviation
                low[i], high[i] = area[i] - wide, area[i] + wide
            elif deviation > 0 and 0 < area[i] < 1:
                wide = self._times(added) * deviation / (area[i] * (1 - area[i]))
                low[i], high[i] = expit(logit(area[i]) - wide), expit(logit(area[i]) + wide)
        return area, low, high

    # ---- calibration

    def _calibration(self) -> Bounds:
        """Bounds of the calibration error, which adds up |gaps|: chance alone makes it positive, and drawing again
        adds as much once more.

        So both bounds are lower by what drawing added, for the draws, and by about as much for the figure itself. Of
        smaller gaps chance makes more: the lower bound goes a quarter of the way to what it makes of none, and is 0
        where forecasts that are right as often as they say would have such a figure, too. The fractions are those
        that cover best. Repetitions share the draws of a bin, since nearly the same rows are in it each time.
        """
        one, other = np.random.default_rng(self.seed).normal(size=(2, 1000, BINS))
        figure = self.value("calibration_error")
        each = _together(lambda s: _drawn_gaps(s, one, other), self.scored, ())
        s = self.scored[0]
        by_bin = np.bincount(s.bins, s.weights**2 * s.top * (1 - s.top), minlength=BINS)
        chance = np.abs(one * np.sqrt(by_bin)).sum(axis=1) / s.weights.sum()
        outside = (1 - self.level) / 2
        low, high = np.quantile(each, [outside, 1 - outside]).tolist()
        added = max(float(each.mean()) - figure, 0.0)
        low -= 2 * added + max(float(chance.mean()) - added, 0.0) / 4
        if figure <= np.quantile(chance, 1 - outside):
            low = 0.0
        high = min(max(high - 1.75 * added, figure), 1.0)
        return np.asarray(figure), np.asarray(min(max(low, 0.0), figure)), np.asarray(high)


def _sums(code: Ints, values: Floats, count: int) -> Floats:
    return np.asarray(np.bincount(code, values, minlength=count), dtype=np.float64)


def _of(which: int, bounds: Bounds) -> Bounds:
    figure, low, high = (end[which] for end in bounds)
    return figure, low, high


def _numbered(code: Ints, answer: Ints, n_classes: int) -> Ints:
    """Pairs of a code and an answer as codes of their own, without gaps."""
    pairs = code * n_classes + answer
    width = (int(code.max()) + 1) * n_classes
    if width > 4 * len(pairs) + (1 << 16):
        return np.asarray(np.unique(pairs, return_inverse=True)[1], dtype=np.int64)
    there = np.bincount(pairs, minlength=width) > 0
    return np.asarray((np.cumsum(there) - 1)[pairs], dtype=np.int64)


def _drawn_gaps(s: Scored, one: Floats, other: Floats) -> Floats:
    """Calibration errors of draws: the weight and the gap of every bin, as normal as sums of many rows are."""
    w, gap = s.weights, s.hit - s.top
    weight, sums, squares, both, gaps = (
        np.bincount(s.bins, v, minlength=BINS) for v in (w, w * gap, w * w, w * w * gap, (w * gap) ** 2)
    )
    along = np.divide(both, squares, out=np.zeros(BINS), where=squares > 0)
    drawn = weight + one * np.sqrt(squares)
    apart = sums + along * (drawn - weight) + other * np.sqrt(np.maximum(gaps - along * both, 0.0))
    return np.asarray(np.abs(apart).sum(axis=1) / np.maximum(drawn.sum(axis=1), weight.sum() / 4))


def areas(s: Scored, label: int) -> tuple[Floats, Floats]:
    """ROC-AUC and average precision of a class (2), and what every row adds to either (2 × rows).

    A row adds w · d(area)/dw, and the squares add up to the variance of the area, which of the AUC is DeLong's. The
    areas are those of the metrics of these names, NaN where a side has no rows.
    """
    x = -s.p[:, label]
    order = np.argsort(x)
    ranked, own = x[order], (s.labels == label)[order]
    begins = np.concatenate(([True], ranked[1:] != ranked[:-1]))
    if begins.all() and own.any() and not own.all() and (s.weights == 1).all():
        return _distinct_areas(order, own)
    w, starts = s.weights[order], np.flatnonzero(begins)
    run = np.cumsum(begins) - 1
    inside, outside = (np.add.reduceat(np.where(side, w, 0.0), starts) for side in (own, ~own))
    above_in, above_out = np.cumsum(inside), np.cumsum(outside)
    total_in, total_out = above_in[-1], above_out[-1]
    area, rows = np.full(2, np.nan), np.zeros((2, len(x)))
    if total_in > 0 and total_out > 0:
        below, over = (total_out - above_out + outside / 2) / total_out, (above_in - inside / 2) / total_in
        area[0] = inside @ below / total_in
        rows[0, order] = w * np.where(own, ((below - area[0]) / total_in)[run], ((over - area[0]) / total_out)[run])
    if total_in > 0:
        both = above_in + above_out
        both[both == 0] = 1.0  # rows without weight may lead
        precision, gain = above_in / both, inside / both**2
        area[1] = inside @ precision / total_in
        lifts, lowers = (np.cumsum((gain * v)[::-1])[::-1] for v in (above_out, above_in))
        rows[1, order] = w * np.where(own, (precision - area[1] + lifts)[run], -lowers[run]) / total_in
    return area, rows


def _distinct_areas(order: Ints, own: Bools) -> tuple[Floats, Floats]:
    """The same where no two rows have one probability and each weighs one: sums over the rows of the class alone."""
    at = np.flatnonzero(own)
    n, n_in = len(order), len(at)
    rank = np.arange(1.0, n_in + 1)  # rows of the class at or above each of them
    below, precision = (n - n_in - (at + 1 - rank)) / (n - n_in), rank / (at + 1)
    area = np.array([below.mean(), precision.mean()])
    lifts, lowers = (np.cumsum((v / (at + 1.0) ** 2)[::-1])[::-1] for v in (at + 1 - rank, rank))
    above = np.cumsum(own)
    rows = np.empty((2, n))
    for i, (of_class, of_others) in enumerate((
        ((below - area[0]) / n_in, (np.arange(n_in + 1) / n_in - area[0]) / (n - n_in)),
        ((precision - area[1] + lifts) / n_in, np.append(lowers, 0.0) / -n_in),
    )):  # fmt: skip
        added = of_others[above]
        added[at] = of_class
        rows[i, order] = added
    return area, rows
