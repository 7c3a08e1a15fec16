"""How many labels are wrong, from probabilities of rows that were held out, and how likely each of them is.

A label is right, and then follows the model's probabilities, or it is wrong, and then it is any other class alike:

    P(label j given row) = (1 − ε_j)·p_j + Σ_{t≠j} ε_t·p_t / (K − 1),    p ∝ (held-out probability)^scale

ε_t is the share of wrong labels among the rows of class t, and a row's label is wrong with probability
1 − (1 − ε_j)·p_j / P(label j given row), one less the local false discovery rate of Efron (2010). The scale is fitted
along with the rates: probabilities that were fitted to labels of which some are wrong are too careful.

Whether there are wrong labels at all is asked by the split likelihood ratio of Wasserman, Ramdas and Balakrishnan
(2020): ε and scale are fitted to one half of the rows, and have to do better on the other than any scale without ε. The
mean over both halves is an e-value E, and 1/E a p-value for any number of rows. The usual ratio of likelihoods has its
χ² for many rows only, and took held-out probabilities of a few hundred rows for a sign in a third of all tables.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import chdtrc

from ...base.arrays import Bools, Floats, Ints, log_sum_exp

_LEAST = -30.0  # log-probabilities below this tell no more
_SCALES = (-2.0, 2.5)  # natural logs of the scale between which it is sought
_CLOSE = 1e-9  # of the common rate
_STEPS = 40  # of the sums of rates by class
_BORROWED = 20.0  # rows of the common rate that each class begins with
_DIFFER = 0.05  # p-value below which the rates of classes differ


@dataclass(frozen=True)
class LabelNoise:
    """The shares of wrong labels by class, and what the rows say of there being any."""

    rates: Floats  # by class: the share of its rows that have another label
    common: float  # the same for all classes alike
    scale: float
    p_value: float  # of no label being wrong

    @classmethod
    def of(cls, log_p: Floats, labels: Ints, weights: Floats | None = None) -> LabelNoise:
        """The likeliest shares: rows × classes of held-out log-probabilities, and the label of each row."""
        w = np.ones(len(labels)) if weights is None else weights
        if log_p.shape[1] < 2 or not w.sum() > 0:
            return cls(np.zeros(log_p.shape[1]), 0.0, 1.0, 1.0)
        log_p = np.maximum(log_p, _LEAST)
        order = np.lexsort((w, *log_p.T, labels))  # the same halves and sums whatever the order of the rows
        log_p, labels, w = log_p[order], labels[order], w[order]
        found = _Halved(log_p, labels, w)
        scale, common = found.likeliest(np.ones(len(labels), dtype=bool))
        return cls(_by_class(_scaled(log_p, scale), labels, w, common), common, scale, found.p_value())

    def right(self, log_p: Floats, labels: Ints) -> Floats:
        """The probability of each label, were no label wrong."""
        p = _scaled(np.maximum(log_p, _LEAST), self.scale)
        return np.asarray(p[np.arange(len(labels)), labels])

    def wrong(self, log_p: Floats, labels: Ints) -> Floats:
        """P(label is wrong), row by row."""
        p = _scaled(np.maximum(log_p, _LEAST), self.scale)
        own = (1.0 - self.rates[labels]) * p[np.arange(len(labels)), labels]
        others = _others(p, labels, self.rates)
        return np.asarray(others / np.maximum(own + others, 1e-300))


@dataclass(frozen=True)
class _Halved:
    """Rows of which some fit the noise and others judge it."""

    log_p: Floats
    labels: Ints
    w: Floats

    def right(self, some: Bools, log_scale: float) -> Floats:
        """P(label) were none wrong."""
        scaled = np.exp(log_scale) * self.log_p[some]
        return np.asarray(np.exp(scaled[np.arange(len(scaled)), self.labels[some]] - log_sum_exp(scaled)))

    def likeliest(self, some: Bools) -> tuple[float, float]:
        """The scale and the common rate by some rows."""
        k = self.log_p.shape[1]
        found = _least(lambda x: -common_rate(self.right(some, x), self.w[some], k)[1])
        return float(np.exp(found[0])), common_rate(self.right(some, found[0]), self.w[some], k)[0]

    def p_value(self) -> float:
        """Of no label being wrong: 1 over the mean of how much likelier each half is by what the other says."""
        half = np.random.default_rng(0).permutation(len(self.labels)) < len(self.labels) // 2
        if not 0 < float(self.w[half].sum()) < float(self.w.sum()):
            return 1.0
        gains = [self._gain(half, ~half), self._gain(~half, half)]
        most = max(gains)
        return min(1.0, float(np.exp(-most) / np.mean(np.exp(np.array(gains) - most)))) if most > 0 else 1.0

    def _gain(self, fit: Bools, judge: Bools) -> float:
        """The log-likelihood of some rows with the noise of others, less the best of theirs without noise."""
        scale, rate = self.likeliest(fit)
        w, p = self.w[judge], self.right(judge, float(np.log(scale)))
        noisy = p + rate * ((1.0 - p) / max(self.log_p.shape[1] - 1, 1) - p)

        def without(log_scale: float) -> float:
            return -float(w @ np.log(np.maximum(self.right(judge, log_scale), np.exp(_LEAST))))

        return float(w @ np.log(np.maximum(noisy, np.exp(_LEAST)))) + _least(without)[1]


def _least(loss: Callable[[float], float]) -> tuple[float, float]:
    """The log of the scale at which a loss is least, and the loss."""
    found = minimize_scalar(loss, bounds=_SCALES, method="bounded", options={"xatol": 0.01})
    return float(found.x), float(found.fun)


def common_rate(right: Floats, w: Floats, classes: int) -> tuple[float, float]:
    """The likeliest share of wrong labels, the same for all classes, and its log-likelihood.

    P(label) = p + ε·(q − p) with p of the label and q = (1 − p)/(K − 1) is linear in ε, so its log is concave, and its
    slope falls. Where that is 0 is sought by Newton's method between two bounds, which are halved where its steps leave
    them or do not shrink: beside a label of hardly any probability they are no longer than that while ε is near 0.
    """
    p = np.maximum(right, np.exp(_LEAST))
    slope = (1.0 - p) / max(classes - 1, 1) - p

    def slopes(rate: float) -> tuple[float, float]:
        """The slope of the log-likelihood, and how fast it falls."""
        share = slope / np.maximum(p + rate * slope, 1e-300)
        return float(w @ share), float(w @ (share * share))

    low, high = 0.0, (classes - 1) / classes
    if slopes(low)[0] <= 0:
        high = low
    elif slopes(high)[0] >= 0:
        low = high
    rate, before = (low + high) / 2, high - low
    while high > low:
        first, second = slopes(rate)
        low, high = (rate, high) if first > 0 else (low, rate)
        new = rate + first / second
        if not (low <= new <= high and 2 * abs(new - rate) <= before):
            new = (low + high) / 2
        before, rate = abs(new - rate), new
        if before <= _CLOSE * rate:
            break
    return rate, float(w @ np.log(np.maximum(p + rate * slope, 1e-300)))


def _scaled(log_p: Floats, scale: float) -> Floats:
    scaled = scale * log_p
    return np.asarray(np.exp(scaled - log_sum_exp(scaled)[:, None]))


def _others(p: Floats, labels: Ints, rates: Floats) -> Floats:
    """P(the label came about by mistake), row by row."""
    each = p * rates
    own = each[np.arange(len(labels)), labels]
    return np.asarray((each.sum(axis=1) - own) / max(p.shape[1] - 1, 1))


def _by_class(p: Floats, labels: Ints, w: Floats, common: float) -> Floats:
    """The rates class by class, by expectation and maximisation; the common rate where rows do not tell them apart.

    Small classes lean on the common rate.
    """
    at, k = np.arange(len(labels)), p.shape[1]
    rates = alike = np.full(k, common)
    if common == 0:
        return rates

    def shares(rates: Floats) -> tuple[Floats, Floats]:
        """P(label and true class), rows × classes, and its sum over classes."""
        each = p * rates / (k - 1)
        each[at, labels] = p[at, labels] * (1.0 - rates[labels])
        return each, np.maximum(each.sum(axis=1), 1e-300)

    for _ in range(_STEPS):
        each, total = shares(rates)
        each *= (w / total)[:, None]
        rows = each.sum(axis=0)
        right = np.bincount(labels, each[at, labels], k)
        new = (rows - right + _BORROWED * common) / (rows + _BORROWED)
        close = np.abs(new - rates).max() < 1e-6
        rates = new
        if close:
            break
    gain = 2.0 * float(w @ (np.log(shares(rates)[1]) - np.log(shares(alike)[1])))
    return rates if gain > 0 and chdtrc(k - 1, gain) <= _DIFFER else alike
