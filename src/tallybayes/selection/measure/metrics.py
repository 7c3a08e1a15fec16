"""How good probabilities are: pure functions of labels, probabilities and weights.

Labels are class numbers (the columns of the probabilities), probabilities are rows × classes. Every metric is a
function of the rows' weights, so a bootstrap over rows is the same metric asked again with other weights: how often
each row was drawn. Many draws are answered at once.

>>> accuracy([0, 1, 1], [[0.9, 0.1], [0.4, 0.6], [0.7, 0.3]])
0.6666666666666666
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from ...base.arrays import Bools, Floats, Ints
from ...base.errors import DataError, SettingsError, unknown

LEAST = 1e-15  # a probability below this counts as this, or one wrong certainty would make any log loss infinite
BINS = 15  # of the calibration error, equally wide
LEAST_ROWS = 5  # of a class, and of the others: of fewer, chance decides how a class is ranked


@dataclass(frozen=True)
class Scored:
    """Rows with their class and what was forecast for them; what several metrics need is worked out once."""

    labels: Ints
    p: Floats
    weights: Floats

    @classmethod
    def of(cls, labels: Any, p: Any, weights: Any = None) -> Scored:
        """The checked rows: one class number and one row of probabilities each."""
        y, q = np.asarray(labels), np.asarray(p, dtype=np.float64)
        if q.ndim != 2 or y.ndim != 1 or len(y) != len(q):
            raise DataError(
                f"labels of shape {y.shape} with probabilities of shape {q.shape}",
                hint="give one class number per row and probabilities as rows × classes.",
            )
        if len(y) == 0:
            raise DataError("there are no rows to measure", hint="give at least one row with a label.")
        if y.dtype.kind not in "iu" or y.min() < 0 or y.max() >= q.shape[1]:
            raise DataError(
                f"labels that are not class numbers from 0 to {q.shape[1] - 1}",
                hint="number the classes in the order of the probability columns, as model.classes lists them.",
            )
        if not (q >= 0).all() or not (q <= 1 + 1e-9).all():
            raise DataError(
                "forecasts that are not probabilities between 0 and 1",
                hint="give model.predict_proba(rows), not scores or logarithms.",
            )
        w = np.ones(len(y)) if weights is None else np.asarray(weights, dtype=np.float64)
        if w.shape != y.shape or not (np.isfinite(w) & (w >= 0)).all() or w.sum() == 0:
            raise DataError(
                f"weights of shape {w.shape} for {len(y)} rows, or a weight below 0, or none above",
                hint="give one weight of at least 0 per row.",
            )
        return cls(y.astype(np.int64), q, w)

    @classmethod
    def of_answers(cls, labels: Ints, predicted: Ints, n_classes: int, weights: Floats) -> Scored:
        """Rows of which only the answers are known: enough for what depends on labels and answers alone."""
        out = cls(labels, np.broadcast_to(0.0, (len(labels), n_classes)), weights)
        out.__dict__["predicted"] = predicted
        return out

    @property
    def n_classes(self) -> int:
        """How many classes."""
        return int(self.p.shape[1])

    @cached_property
    def predicted(self) -> Ints:
        """The most probable class of each row, the first of equals."""
        return np.asarray(np.argmax(self.p, axis=1), dtype=np.int64)

    @cached_property
    def hit(self) -> Floats:
        """1 where the most probable class is the right one."""
        return np.asarray(self.predicted == self.labels, dtype=np.float64)

    @cached_property
    def top(self) -> Floats:
        """The probability of the most probable class."""
        return np.asarray(self.p.max(axis=1))

    @cached_property
    def of_truth(self) -> Floats:
        """The probability that the right class was given."""
        return self.p[np.arange(len(self.p)), self.labels]

    @cached_property
    def bins(self) -> Ints:
        """Which of the equally wide bins the top probability falls into; edges belong to the bin below."""
        return np.asarray(np.clip(np.ceil(self.top * BINS) - 1, 0, BINS - 1), dtype=np.int64)

    def fewer(self, w: Floats) -> Floats:
        """How many rows were drawn of a class, or of all others, whichever are fewer: draws × classes."""
        drawn = np.rint(np.divide(w, self.weights, out=np.zeros(w.shape), where=self.weights > 0))
        rows = _sum_by(self.labels, self.n_classes, drawn)
        return np.asarray(np.minimum(rows, rows.sum(axis=1)[:, None] - rows))

    def judged(self, w: Floats) -> Bools:
        """Classes whose areas count in a mean of several: those with enough rows; all, where no class has them."""
        few = self.fewer(w) < LEAST_ROWS
        return np.asarray(~few | few.all(axis=1, keepdims=True))

    def ranked(self, label: int) -> tuple[Ints, Ints, Floats]:
        """Rows by falling probability of a class, where each run of equals begins, and 1 where the class is right."""
        order = np.argsort(-self.p[:, label], kind="stable")
        score = self.p[order, label]
        starts = np.flatnonzero(np.concatenate(([True], score[1:] != score[:-1])))
        return order, starts, (self.labels[order] == label).astype(np.float64)


Formula = Callable[[Scored, Floats], Floats]  # draws × rows of weights → one number per draw
METRICS: dict[str, Formula] = {}
OF_ANSWERS = {"precision", "recall", "specificity", "f1"}  # what labels and answers decide, without the probabilities
MEANS: dict[str, Callable[[Scored], Floats]] = {}  # what is a mean over rows: the value of each row
SHARES: dict[str, Callable[[Scored], Floats]] = {}  # what is a share of the rows: 1 or 0 for each
AREAS = ("roc_auc", "average_precision")  # what the order of the rows by a probability decides
SMALLER_IS_BETTER = {"error", "log_loss", "brier", "calibration_error"}


def _metric(formula: Formula) -> Callable[..., float]:
    """A formula over draws as a function of labels, probabilities and weights."""
    METRICS[formula.__name__] = formula

    def metric(labels: Any, p: Any, weights: Any = None) -> float:
        s = Scored.of(labels, p, weights)
        return float(formula(s, s.weights[None, :])[0])

    # Its name and words without `wraps`, which would show the formula's parameters for its own
    metric.__name__ = metric.__qualname__ = formula.__name__
    metric.__doc__ = formula.__doc__
    return metric


def _of_answers(formula: Formula) -> Callable[..., float]:
    """The same of a formula that looks at labels and answers alone: counts of them have its interval, too."""
    OF_ANSWERS.add(formula.__name__)
    return _metric(formula)


def _mean_of(values: Callable[[Scored], Floats]) -> Callable[..., float]:
    """The same of a mean over rows, given the value of each row."""
    MEANS[values.__name__] = values
    return _metric(_averaging(values))


def _share_of(values: Callable[[Scored], Floats]) -> Callable[..., float]:
    """The same of a share of the rows, which labels and answers decide."""
    SHARES[values.__name__] = values
    return _of_answers(_averaging(values))


def _averaging(values: Callable[[Scored], Floats]) -> Formula:
    def formula(s: Scored, w: Floats) -> Floats:
        return _mean(values(s), w)

    formula.__name__, formula.__doc__ = values.__name__, values.__doc__
    return formula


def _mean(values: Floats, w: Floats) -> Floats:
    return np.asarray((w @ values) / (w @ np.ones_like(values)))  # added in one order: all of them are 1 and no more


def _sum_by(groups: Ints, n_groups: int, w: Floats) -> Floats:
    """The weight of each group, draws × groups."""
    rows = np.arange(len(groups))
    member = scipy.sparse.csr_array((np.ones(len(groups)), (groups, rows)), shape=(n_groups, len(groups)))
    return np.asarray((member @ w.T).T)


def _ratio(a: Floats, b: Floats) -> Floats:
    """a / b, and 0 where nothing stands below."""
    return np.asarray(np.divide(a, b, out=np.zeros(np.broadcast(a, b).shape), where=b > 0))


@_share_of
def accuracy(s: Scored) -> Floats:
    """The share of rows whose most probable class is right."""
    return s.hit


@_share_of
def error(s: Scored) -> Floats:
    """The share of rows whose most probable class is wrong."""
    return 1.0 - s.hit


@_mean_of
def log_loss(s: Scored) -> Floats:
    """−log of the probability that the right class was given, at least 1e-15, averaged over rows."""
    return np.asarray(-np.log(np.maximum(s.of_truth, LEAST)))


@_mean_of
def brier(s: Scored) -> Floats:
    """½ Σ (p − truth)² over the classes, averaged: between 0 and 1, and (p − truth)² of one class where two are."""
    square = np.einsum("ij,ij->i", s.p, s.p) - 2 * s.of_truth + 1.0
    return np.asarray(0.5 * square)


@_metric
def calibration_error(s: Scored, w: Floats) -> Floats:
    """Σ over 15 bins of the top probability: share of rows · |share that is right − mean probability|."""
    return _gaps(s, w, s.hit)


def _gaps(s: Scored, w: Floats, hit: Floats) -> Floats:
    gap = _sum_by(s.bins, BINS, w * (hit - s.top))
    return np.asarray(np.abs(gap).sum(axis=1) / w.sum(axis=1))


def calibration_by_chance(s: Scored, rng: np.random.Generator, draws: int) -> Floats:
    """The calibration error that these forecasts have by chance, were each right as often as it says: some draws."""
    return _gaps(s, s.weights[None, :], (rng.random((draws, len(s.labels))) < s.top).astype(np.float64))


def _margins(s: Scored, w: Floats) -> tuple[Floats, Floats, Floats]:
    """Per class: the weight right, the weight of the class, the weight predicted as the class."""
    k = s.n_classes
    return _sum_by(s.labels, k, w * s.hit), _sum_by(s.labels, k, w), _sum_by(s.predicted, k, w)


def _class_f1(s: Scored, w: Floats) -> Floats:
    right, true, said = _margins(s, w)
    return _ratio(2 * right, true + said)


def _by_rank(s: Scored, w: Floats, label: int) -> tuple[Floats, Floats, Callable[[Floats], Floats]]:
    """The weights by falling probability of a class, 1 where it is right, and sums over equal probabilities."""
    order, starts, own = s.ranked(label)
    return w[:, order], own, lambda values: np.add.reduceat(values, starts, axis=1)


def _class_auc(s: Scored, w: Floats) -> Floats:
    """Per class: P(a row of the class is ranked above another), ties half; NaN where one side has no rows."""
    out = np.empty((len(w), s.n_classes))
    for label in range(s.n_classes):
        drawn, own, summed = _by_rank(s, w, label)
        inside, outside = summed(drawn * own), summed(drawn * (1.0 - own))
        above = np.cumsum(inside, axis=1) - inside / 2
        pairs = inside.sum(axis=1) * outside.sum(axis=1)
        out[:, label] = np.where(pairs > 0, (outside * above).sum(axis=1) / np.where(pairs > 0, pairs, 1.0), np.nan)
    return out


def _class_ap(s: Scored, w: Floats) -> Floats:
    """Per class: Σ precision · gain in recall, going down the ranking; NaN where the class has no rows."""
    out = np.empty((len(w), s.n_classes))
    for label in range(s.n_classes):
        drawn, own, summed = _by_rank(s, w, label)
        inside, both = summed(drawn * own), summed(drawn)
        precision = _ratio(np.cumsum(inside, axis=1), np.cumsum(both, axis=1))
        total = inside.sum(axis=1)
        out[:, label] = np.where(total > 0, (inside * precision).sum(axis=1) / np.where(total > 0, total, 1), np.nan)
    return out


def _class_precision(s: Scored, w: Floats) -> Floats:
    right, _, said = _margins(s, w)
    return _ratio(right, said)


def _class_recall(s: Scored, w: Floats) -> Floats:
    right, true, _ = _margins(s, w)
    return _ratio(right, true)


def _class_specificity(s: Scored, w: Floats) -> Floats:
    right, true, said = _margins(s, w)
    others = w.sum(axis=1)[:, None] - true
    return _ratio(others - said + right, others)


PER_CLASS: dict[str, Formula] = {  # draws × rows → draws × classes
    "precision": _class_precision,
    "recall": _class_recall,
    "specificity": _class_specificity,
    "f1": _class_f1,
    "roc_auc": _class_auc,
    "average_precision": _class_ap,
}


def _macro(values: Floats, s: Scored, w: Floats) -> Floats:
    """The mean over the classes that occur among labels or predictions."""
    _, true, said = _margins(s, w)
    there = (true > 0) | (said > 0)
    return np.asarray(np.where(there, values, 0.0).sum(axis=1) / there.sum(axis=1))


def _weighted(values: Floats, s: Scored, w: Floats) -> Floats:
    """The mean over the classes, each by its rows."""
    true = _sum_by(s.labels, s.n_classes, w)
    return np.asarray((values * true).sum(axis=1) / true.sum(axis=1))


def _averaged(name: str) -> tuple[Callable[..., float], Callable[..., float]]:
    def macro(s: Scored, w: Floats) -> Floats:
        return _macro(PER_CLASS[name](s, w), s, w)

    def weighted(s: Scored, w: Floats) -> Floats:
        return _weighted(PER_CLASS[name](s, w), s, w)

    macro.__name__, macro.__doc__ = f"{name}_macro", f"The mean {name} of the classes that occur, each counting once."
    weighted.__name__, weighted.__doc__ = f"{name}_weighted", f"The mean {name} of the classes, each by its rows."
    return _of_answers(macro), _of_answers(weighted)


precision_macro, precision_weighted = _averaged("precision")
recall_macro, recall_weighted = _averaged("recall")
f1_macro, f1_weighted = _averaged("f1")


def _of_all(name: str) -> Callable[..., float]:
    def micro(s: Scored) -> Floats:
        return s.hit

    micro.__name__ = f"{name}_micro"
    micro.__doc__ = f"The {name} of all decisions together: of one label and one answer per row, the accuracy."
    return _share_of(micro)


precision_micro, recall_micro, f1_micro = map(_of_all, ("precision", "recall", "f1"))


@_of_answers
def balanced_accuracy(s: Scored, w: Floats) -> Floats:
    """The mean recall of the classes that have rows."""
    right, true, _ = _margins(s, w)
    return np.asarray(_ratio(right, true).sum(axis=1) / (true > 0).sum(axis=1))


@_of_answers
def matthews(s: Scored, w: Floats) -> Floats:
    """Matthews' correlation of labels and answers: 1 perfect, 0 no better than chance (or nothing to tell apart)."""
    right, true, said = _margins(s, w)
    total = w.sum(axis=1)
    shared = right.sum(axis=1) * total - (true * said).sum(axis=1)
    apart = (total**2 - (true**2).sum(axis=1)) * (total**2 - (said**2).sum(axis=1))
    return np.asarray(np.where(apart > 0, shared / np.sqrt(np.where(apart > 0, apart, 1.0)), 0.0))


@_metric
def roc_auc(s: Scored, w: Floats) -> Floats:
    """The area under the ROC curve; of several classes the mean of those of 5 rows or more. NaN with one class."""
    return _of_areas(_class_auc(s, w), s, w)


@_metric
def average_precision(s: Scored, w: Floats) -> Floats:
    """The area under the precision-recall curve of the last of two classes; of several the mean, as of ROC-AUC."""
    return _of_areas(_class_ap(s, w), s, w)


def _of_areas(each: Floats, s: Scored, w: Floats) -> Floats:
    if s.n_classes == 2:
        return each[:, -1]
    known = ~np.isnan(each) & s.judged(w)
    n = known.sum(axis=1)
    return np.asarray(np.where(n > 0, np.where(known, each, 0.0).sum(axis=1) / np.maximum(n, 1), np.nan))


def formula(name: str) -> Formula:
    """The metric of this name, or an error that names the nearest."""
    if name not in METRICS:
        raise unknown(SettingsError, f"there is no metric {name!r}", name, sorted(METRICS))
    return METRICS[name]


def confusion(labels: Any, p: Any, weights: Any = None) -> Floats:
    """The weight of every pair: rows the right class, columns the predicted one."""
    s = Scored.of(labels, p, weights)
    k = s.n_classes
    return np.asarray(np.bincount(s.labels * k + s.predicted, s.weights, k * k).reshape(k, k), dtype=np.float64)


def by_class(labels: Any, p: Any, weights: Any = None) -> dict[str, Floats]:
    """Rows, precision, recall (sensitivity), specificity, F1, ROC-AUC and average precision of each class."""
    s = Scored.of(labels, p, weights)
    rows = _sum_by(s.labels, s.n_classes, s.weights[None, :])[0]
    return {"rows": rows, **{name: f(s, s.weights[None, :])[0] for name, f in PER_CLASS.items()}}


def baseline(labels: Any, n_classes: int, weights: Any = None) -> Floats:
    """The same forecast for every row: the share of each class. Its accuracy is that of the most frequent class."""
    s = Scored.of(labels, np.full((len(labels), n_classes), 1.0 / n_classes), weights)
    share = np.bincount(s.labels, weights=s.weights, minlength=n_classes) / s.weights.sum()
    return np.tile(share, (len(s.labels), 1))
