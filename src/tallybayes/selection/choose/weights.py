"""Column weights: how much of what each column says is to be believed, fitted on rows that the model has not seen.

    S = log P(y) + o_y + Σ w_j · tokens_j^b_j · part_j    w_j ≥ 0; the exponent b_j only for columns of words

Naive Bayes is over-confident because columns repeat each other, and words of a long text most of all. Weights fitted by
logistic loss on *held-out* parts mend that, and the score stays a sum. They are drawn towards one weight for all (a
temperature) by a penalty, whose strength is chosen by folds of the held-out rows:

    Σ_rows −log P(own class) + λ · Σ_j (w_j − τ_g·t_j)² + ½ (log τ_g)²     g: columns, or pairs of columns

t_j is 1, or a family's even share where several families read one column. Free weights come with an offset o_y for
each class, since columns that repeat each other may favour one class on the whole; 10 · Σ (o_y − their mean)² is added
to the loss. Last, the lead of the best class can be bent, see `families.calibration`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from ...base import threads
from ...base.arrays import Bools, Floats, Ints

PENALTIES = (30.0, 3.0, 0.3)
_LEAST_PART = -60.0  # nats below the best class: a held-out value that a class cannot have is strong, not infinite
_LEAST_WORDS = -6000.0  # the same of a whole text: hundreds of words may well add up to more than one value can say
_IMPOSSIBLE = -700.0  # the log prior of a class that a training part has not seen
_MOST_CELLS = 8_000_000  # summands × rows × classes looked at; more rows than that are thinned out evenly
_MOST_WORDS = 2_000_000  # the same where there are texts: few summands, so that fewer rows tell their weights
_THREADS_FROM = 1_000_000  # numbers; below, threads wait for the interpreter rather than for the products
_OFFSET_PENALTY = 10.0
_MOST_OFFSET = 10.0  # nats
SPLITS = 5  # parts of the folds that take turns in judging weights fitted on the others


def split_of(folds: Ints) -> Ints:
    """The split that each fold belongs to."""
    return folds % SPLITS


@dataclass(frozen=True)
class Evidence:
    """What each summand said of rows that its model had not seen, as log-odds against the first class."""

    parts: Floats  # summands × rows × (classes − 1)
    log_prior: Floats  # rows × (classes − 1)
    labels: Ints  # 0 … classes − 1
    folds: Ints
    weights: Floats  # of the rows
    tokens: dict[int, Floats] = field(default_factory=dict)  # of summands made of words: log of the row's length
    groups: Ints = field(default_factory=lambda: np.zeros(0, dtype=np.int64))  # of the summands: 0 columns, 1 pairs
    target: Floats = field(default_factory=lambda: np.zeros(0))  # t_j
    views: tuple[Ints, ...] = ()  # the summands proposed without each split's rows, then those of all rows; () for all

    @classmethod
    def of(
        cls, parts: Sequence[Floats], log_prior: Floats, labels: Ints, folds: Ints, weights: Floats | None,
        tokens: dict[int, Floats] | None = None, groups: Ints | None = None, target: Floats | None = None,
        views: tuple[Ints, ...] = (),
    ) -> Evidence:  # fmt: skip
        """Evidence from parts and priors over all classes; rows of a class their model never saw are left out."""
        known = np.isfinite(log_prior[np.arange(len(labels)), labels])
        rows = np.flatnonzero(known)
        size = max(len(parts) * max(log_prior.shape[1] - 1, 1), 1)
        most = _MOST_WORDS if tokens else _MOST_CELLS
        if len(rows) * size > most:
            rows = rows[:: -(-len(rows) * size // most)]
        prior = np.maximum(log_prior[rows], _IMPOSSIBLE)
        each = np.empty((len(parts), len(rows), log_prior.shape[1] - 1))
        for j, part in enumerate(parts):
            p = np.nan_to_num(part[rows], neginf=-1e300)
            p = np.maximum(p - p.max(axis=1, keepdims=True), _LEAST_WORDS if j in (tokens or {}) else _LEAST_PART)
            each[j] = p[:, 1:] - p[:, :1]
        return cls(
            each, prior[:, 1:] - prior[:, :1], labels[rows], folds[rows],
            np.ones(len(rows)) if weights is None else weights[rows],
            {j: np.log(np.maximum(t[rows], 1.0)) for j, t in (tokens or {}).items()},
            np.zeros(len(parts), dtype=np.int64) if groups is None else groups,
            np.ones(len(parts)) if target is None else target,
            views,
        )  # fmt: skip

    def only(self, rows: Ints | Bools) -> Evidence:
        """Some of the rows."""
        tokens = {j: t[rows] for j, t in self.tokens.items()}
        parts = np.ascontiguousarray(self.parts[:, rows])  # NumPy would lay the rows first, and each product copy them
        return replace(
            self, parts=parts, log_prior=self.log_prior[rows], labels=self.labels[rows],
            folds=self.folds[rows], weights=self.weights[rows], tokens=tokens,
        )  # fmt: skip

    def only_summands(self, which: Ints) -> Evidence:
        """Some of the summands."""
        new = {int(old): i for i, old in enumerate(which.tolist())}
        tokens = {new[j]: t for j, t in self.tokens.items() if j in new}
        return replace(
            self, parts=self.parts[which], groups=self.groups[which], target=self.target[which], tokens=tokens, views=()
        )

    def view(self, split: int) -> Evidence:
        """The summands that were proposed without the rows of a split; −1: those proposed from all rows."""
        return self.only_summands(self.views[split]) if self.views else self


@dataclass(frozen=True)
class Weights:
    """A weight for each summand, an exponent of the length for summands made of words, and an offset for each class."""

    weights: Floats
    exponents: dict[int, float]
    temperatures: Floats
    offsets: Floats | None = None  # against the first class

    def scores(self, evidence: Evidence) -> Floats:
        """The score of each row, as log-odds against the first class."""
        return _scores(evidence, self.weights, self.exponents, 0.0 if self.offsets is None else self.offsets)

    def losses(self, evidence: Evidence) -> Floats:
        """−log P(own class) of each row."""
        return losses_of(self.scores(evidence), evidence.labels)


def _scores(evidence: Evidence, weights: Floats, exponents: dict[int, float], offsets: float | Floats) -> Floats:
    out = evidence.log_prior + offsets
    out += np.tensordot(_plain(evidence, weights), evidence.parts, axes=(0, 0))
    for j, log_length in evidence.tokens.items():
        out += (weights[j] * np.exp(exponents[j] * log_length))[:, None] * evidence.parts[j]
    return out


def _plain(evidence: Evidence, weights: Floats) -> Floats:
    """The weights of summands whose factor is the same in every row; 0 for the others."""
    out = weights.copy()
    out[list(evidence.tokens)] = 0.0
    return out


def _posterior(scores: Floats) -> tuple[Floats, Floats]:
    """log of the sum over all classes (the first scores 0), and P of the others."""
    top = np.maximum(scores.max(axis=1, initial=0.0), 0.0)
    e = np.exp(scores - top[:, None])
    total = e.sum(axis=1) + np.exp(-top)
    return top + np.log(total), e / total[:, None]


def losses_of(scores: Floats, labels: Ints) -> Floats:
    """−log P(own class) of each row, by log-odds against the first class."""
    own = np.where(labels == 0, 0.0, scores[np.arange(len(labels)), np.maximum(labels - 1, 0)])
    return np.asarray(_posterior(scores)[0] - own)


def fit_weights(evidence: Evidence, penalty: float | None, start: Weights | None = None) -> Weights:
    """The weights and offsets that the held-out rows support; `penalty=None`: the temperatures, no offsets."""
    from scipy.optimize import minimize

    summands, tokens = len(evidence.parts), sorted(evidence.tokens)
    groups = int(evidence.groups.max(initial=0)) + 1
    flat = evidence.parts.reshape(summands, -1)
    index = np.arange(len(evidence.labels))
    inside = evidence.labels > 0
    tied = penalty is None
    total = max(float(evidence.weights.sum()), 1.0)
    cuts = np.cumsum([groups, 0 if tied else summands, len(tokens)])

    def unpack(x: Floats) -> tuple[Floats, Floats, dict[int, float], Floats]:
        tau, w, b, o = np.split(x, cuts)
        if tied:
            w = tau[evidence.groups] * evidence.target
        return tau, w, dict(zip(tokens, b.tolist(), strict=True)), o

    def loss(x: Floats) -> tuple[float, Floats]:
        tau, w, b, o = unpack(x)
        scores = _scores(evidence, w, b, 0.0 if tied else o)
        log_total, p = _posterior(scores)
        own = np.where(inside, scores[index, np.maximum(evidence.labels - 1, 0)], 0.0)
        residual = p
        residual[index[inside], evidence.labels[inside] - 1] -= 1.0
        residual *= evidence.weights[:, None]
        g_w = flat @ residual.ravel()
        g_b = np.zeros(len(tokens))
        for i, j in enumerate(tokens):
            log_length = evidence.tokens[j]
            pulled = np.exp(b[j] * log_length) * np.einsum("nc,nc->n", residual, evidence.parts[j])
            g_w[j] = pulled.sum()
            g_b[i] = w[j] * (pulled * log_length).sum()
        value = float(evidence.weights @ (log_total - own)) + 0.5 * float(np.sum(np.log(tau) ** 2))
        value += 0.5 * float(sum(v * v for v in b.values()))
        g_b += np.array([b[j] for j in tokens])
        g_tau = np.log(tau) / tau
        if penalty is None:
            g_tau += np.bincount(evidence.groups, g_w * evidence.target, groups)
            return value / total, np.concatenate([g_tau, g_b]) / total
        apart = np.concatenate([[0.0], o]) - o.sum() / (len(o) + 1)
        off = w - tau[evidence.groups] * evidence.target
        value += penalty * float(off @ off) + _OFFSET_PENALTY * float(apart @ apart)
        g_o = residual.sum(axis=0) + 2 * _OFFSET_PENALTY * apart[1:]
        g_tau -= 2 * penalty * np.bincount(evidence.groups, off * evidence.target, groups)
        return value / total, np.concatenate([g_tau, g_w + 2 * penalty * off, g_b, g_o]) / total

    tau0 = np.where(np.arange(groups) == 0, 0.5, 0.2) if start is None else np.maximum(start.temperatures, 1e-3)
    w0 = tau0[evidence.groups] * evidence.target if start is None else start.weights
    b0 = [0.0 if start is None else start.exponents[j] for j in tokens]
    classes = 0 if tied else evidence.log_prior.shape[1]
    o0 = np.zeros(classes) if start is None or start.offsets is None else start.offsets
    x0 = np.concatenate([tau0, [] if tied else w0, b0, o0])
    bounds = [(1e-3, 1e3)] * groups + ([] if tied else [(0.0, None)] * summands) + [(-1.5, 0.5)] * len(tokens)
    bounds += [(-_MOST_OFFSET, _MOST_OFFSET)] * classes
    found = minimize(
        loss, x0, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": 200, "ftol": 1e-6, "gtol": 1e-6}
    )
    tau, w, b, o = unpack(found.x)
    return Weights(np.where(w < 1e-4, 0.0, w), b, tau, None if tied else o)


Fitter = Callable[[Evidence], list[Weights]]


def nested_scores(evidence: Evidence, fitter: Fitter) -> list[Floats]:
    """The scores of each row under weights fitted without its split, for each of the fitter's answers.

    Where summands were proposed from the data, the rows of a split see only those proposed without them.
    """
    split = split_of(evidence.folds)

    def judged(s: int) -> tuple[Bools, list[Floats]]:
        seen, rows = evidence.view(s), split == s
        fitted, held = fitter(seen.only(~rows)), seen.only(rows)
        return rows, [weights.scores(held) for weights in fitted]

    splits = np.unique(split).tolist()
    out: list[Floats] = []
    for rows, each in threads.each(judged, splits) if evidence.parts.size > _THREADS_FROM else map(judged, splits):
        out = out or [np.zeros(evidence.log_prior.shape) for _ in each]
        for scores, of_split in zip(out, each, strict=True):
            scores[rows] = of_split
    return out


def temperature(evidence: Evidence) -> tuple[Weights, Floats]:
    """One weight for all columns (and one for all pairs), with the nested scores of each row."""
    return _best(evidence, lambda e: [fit_weights(e, None)])


def column_weights(evidence: Evidence) -> tuple[Weights, Floats]:
    """A weight for each summand by the penalty that nested folds prefer, with the nested scores of each row."""
    return _best(evidence, _by_penalty)


def _by_penalty(evidence: Evidence) -> list[Weights]:
    """The weights under each penalty, each started from the one before."""
    found = [fit_weights(evidence, None)]
    for penalty in PENALTIES:
        found.append(fit_weights(evidence, penalty, found[-1]))
    return found[1:]


def _best(evidence: Evidence, fitter: Fitter) -> tuple[Weights, Floats]:
    nested = nested_scores(evidence, fitter)
    losses = [float(losses_of(scores, evidence.labels) @ evidence.weights) for scores in nested]
    best = int(np.argmin(losses))
    return fitter(evidence.view(-1))[best], nested[best]
