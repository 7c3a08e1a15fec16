"""The penalised fit of a `Joint`: what is unknown as one vector, its loss and gradient, and the way down.

    minimise   Σ_rows −log P(own class) + λ_w Σ (w − τ·t)² + 10 Σ (o_y − their mean)²
               + λ Σ δ² over cells, or over the jumps between neighbouring cells of a number

What these jumps have in common with a line costs less (`straight`).

t is a reader's even share of its column, τ what the weights have in common, columns and pairs apart. With λ_w = ∞ there
is one temperature: w = τ·t, and a little of log² τ keeps it from running away, more of it above τ = 1.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...base.arrays import Floats
from ...exact.kernels import gate
from .descent import descend
from .joint import Joint, Solution
from .straight import Straight
from .untied import Untied

OFFSET_PENALTY = 10.0
_NONE = 1e9  # the most that anything is pulled by
_TEMPERED = (0.05, 1.0)  # of log² τ, below and above τ = 1
_LOG_TAU = (-6.0, 6.0)  # within which one temperature beside words is sought
_PRECISE = 1e-7  # of the loss, in that search
_MIDDLE = -0.5  # of the exponents of lengths, which stay within one of it


class Pull(NamedTuple):
    """How strongly weights and corrections are drawn to what they are without data; None: no corrections."""

    weights: float
    columns: float | None = None
    pairs: float = np.inf
    few: bool = False  # pairs that explain more than chance may


def _held(log_tau: float) -> tuple[float, float]:
    """What keeps a temperature near 1, and its slope; columns often say the same twice, seldom less than they know."""
    by = _TEMPERED[int(log_tau > 0)]
    return by * log_tau**2, 2 * by * log_tau


def tempered(joint: Joint) -> Solution:
    """One temperature for everything that counts say (and an exponent for columns of words)."""
    from scipy.optimize import minimize, minimize_scalar

    at = joint.start()
    if joint.dense:
        tied = _Tied(joint, at)
        begin = np.append(np.zeros(1), np.full(len(joint.lengths), _MIDDLE))
        bounds = [_LOG_TAU, *[(_MIDDLE - 1, _MIDDLE + 1)] * len(joint.lengths)]
        options = {"ftol": _PRECISE, "gtol": 0.0, "maxiter": 200}
        return tied.solution(minimize(tied.loss, begin, jac=True, bounds=bounds, method="L-BFGS-B", options=options).x)
    prior = joint.log_prior[joint.rows.folds]
    said = joint.scores(at) - prior

    def loss(log_tau: float) -> float:
        return joint.loss(prior + np.exp(log_tau) * said)[0] + _held(log_tau)[0]

    found = float(minimize_scalar(loss, bounds=(-6, 2), method="bounded", options={"xatol": 1e-3}).x)
    return at._replace(weights=np.exp(found) * joint.even)


class _Tied:
    """log τ and the exponents of lengths as one vector, in a box.

    Length to an exponent is itself nearly a temperature: between rows of about the same length only their product is
    known, and a search that is free to go far ends where both are absurd and nothing tells the way back.
    """

    def __init__(self, joint: Joint, base: Solution) -> None:
        self.joint, self.base = joint, base
        self.room = np.empty((joint.n, joint.width))

    def solution(self, u: Floats) -> Solution:
        """The solution of a vector."""
        return self.base._replace(weights=np.exp(u[0]) * self.joint.even, exponents=u[1:].copy())

    def loss(self, u: Floats) -> tuple[float, Floats]:
        """The penalised loss and its gradient."""
        joint, x = self.joint, self.solution(u)
        value, residual = joint.loss(joint.scores(x, joint.fitting, self.room))
        of_dense, of_lengths = _of_dense(joint, x, residual)
        pulled = np.concatenate([joint.heard(joint.sums(residual)), of_dense])
        held, slope = _held(float(u[0]))
        value += held + 0.5 * float(x.exponents @ x.exponents)
        return value, np.append(float(pulled @ x.weights) + slope, of_lengths + x.exponents)


def fitted(joint: Joint, start: Solution, pull: Pull, precise: float = 1e-4) -> Solution:
    """The best weights, offsets and corrections under these penalties, from a start."""
    parts = _Packed(joint, start, pull)
    out = parts.unpacked(descend(parts.loss, parts.packed(start), None, precise))
    return out._replace(weights=np.where(out.weights < 1e-4, 0.0, out.weights))


class _Packed:
    """The unknowns of a fit as one vector, scaled so that the loss is about as curved along each of them."""

    def __init__(self, joint: Joint, start: Solution, pull: Pull) -> None:
        self.joint, self.pull = joint, pull
        self.free = pull.columns is not None
        self.n_weights, self.n_lengths, self.n_offsets = len(joint.even), len(joint.lengths), joint.width
        self.n_fixed = self.n_weights + self.n_lengths + self.n_offsets  # all but the corrections
        self.base = start
        self.half = half = 1.0 if joint.width > 1 else 0.5  # log-odds d are ± d/2 on either class
        pulled = [min(half * p, _NONE) for p in (pull.columns or 0.0, pull.pairs)]
        ridge, of_pair = joint.placed.row_ridges
        self.ridge = (np.where(of_pair, pulled[1], pulled[0]) * ridge)[:, None]
        self.strength = np.where(joint.placed.edges[2], pulled[1], pulled[0]) * joint.placed.stiff
        lines = self.free and np.isinf(pull.pairs)  # beside pairs they were tried, and told less than jumps
        self.straight = Straight.of(joint.placed, self.ridge, self.strength) if lines else None
        self.room = np.empty((joint.n, joint.width))
        group = [np.full(count, int(t.pair)) for t, (_, count) in zip(joint.terms, joint.of_term, strict=True)]
        self.group = np.concatenate([*group, np.zeros(len(joint.dense), dtype=np.int64)]).astype(np.int64)
        self.squares = np.maximum(np.bincount(self.group, joint.even * joint.even, 2), 1e-300)
        self._scale(start)

    def _scale(self, at: Solution) -> None:
        """1/√ of the curvature along each unknown, at the start."""
        joint = self.joint
        _, curved = joint.left_over(at)
        cells = joint.sums(curved)
        of_rows = np.zeros((joint.n_added + 1, joint.width))
        joint.add_rows(of_rows, joint.cells, cells)
        of_dense = [float(np.vdot(curved, d.parts * d.parts)) for d in joint.dense]
        of_weights = np.concatenate([joint.heard(cells, square=True), of_dense]) + 2 * self.pull.weights
        pulled = 2 * self.ridge
        for ends in joint.placed.edges[:2]:
            np.add.at(pulled[:, 0], ends, 2 * self.strength)
        root = np.sqrt(np.maximum(at.weights, 1e-2))
        self.of_weights = 1 / np.sqrt(of_weights + 1e-3) / (2 * root)  # w = v²
        self.of_roots = 2 * self.of_weights**2
        self.of_lengths = np.full(self.n_lengths, 1 / np.sqrt(max(float(curved.sum()), 1.0)))
        self.of_offsets = 1 / np.sqrt(curved.sum(axis=0) + 2 * OFFSET_PENALTY)
        if self.free:
            kernels = None if joint._kernels is None else gate.kernels("steps", 0)
            self.untied = Untied(joint.placed.neighbours, 2 * self.strength, of_rows[:-1] + pulled + 1e-3, kernels)
        if self.straight is not None:
            self.of_slopes = 1 / np.sqrt(self.straight.bent(of_rows[:-1]) + 1e-3)

    def packed(self, x: Solution) -> Floats:
        """The vector of a solution."""
        w = np.sqrt(np.maximum(x.weights, 1e-6))
        lengths = np.arctanh(np.clip(x.exponents - _MIDDLE, -0.999, 0.999))
        pieces = [w / self.of_weights, lengths / self.of_lengths, x.offsets / self.of_offsets]
        if not self.free:
            return np.concatenate(pieces)
        if self.straight is None:
            return np.concatenate([*pieces, self.untied.numbers(x.added).ravel()])
        slopes = self.straight.slopes(x.added)
        bends = x.added.copy()
        self.straight.add_along(-slopes, bends)
        return np.concatenate([*pieces, self.untied.numbers(bends).ravel(), (slopes / self.of_slopes).ravel()])

    def unpacked(self, u: Floats, added: Floats | None = None) -> Solution:
        """The solution of a vector; `added` are its corrections, if they are known."""
        lengths, offsets = self.n_weights, self.n_weights + self.n_lengths
        v, b, o = u[:lengths], u[lengths:offsets], u[offsets : self.n_fixed]
        if added is None:
            added = self._added(*self._bends_and_slopes(u)) if self.free else self.base.added
        return Solution(
            (v * self.of_weights) ** 2,
            np.tanh(b * self.of_lengths) + _MIDDLE,
            o * self.of_offsets,
            added,
        )

    def _bends_and_slopes(self, u: Floats) -> tuple[Floats, Floats]:
        """Corrections, and beside them the slopes of those that may be straight."""
        shape, stop = self.base.added.shape, self.n_fixed + self.base.added.size
        bends = self.untied.added(u[self.n_fixed : stop].reshape(shape))
        return bends, u[stop:] if self.straight is None else u[stop:].reshape(self.of_slopes.shape) * self.of_slopes

    def _added(self, bends: Floats, slopes: Floats) -> Floats:
        if self.straight is None:
            return bends
        added = bends.copy()
        self.straight.add_along(slopes, added)
        return added

    def loss(self, u: Floats) -> tuple[float, Floats]:
        """The penalised loss and its gradient."""
        joint, added = self.joint, None
        if self.free:
            bends, slopes = self._bends_and_slopes(u)
            added = self._added(bends, slopes)
        x = self.unpacked(u, added)
        value, residual = joint.loss(joint.scores(x, joint.fitting, self.room))
        cells = joint.sums(residual)
        g_w, g_b = _of_dense(joint, x, residual)
        g_w = np.concatenate([joint.heard(cells), g_w])
        value += 0.5 * float(x.exponents @ x.exponents)
        g_b += x.exponents
        even = joint.even
        tau_of = np.bincount(self.group, even * x.weights, 2) / self.squares
        off = x.weights - even * tau_of[self.group]
        value += self.pull.weights * float(off @ off)
        g_w = g_w + 2 * self.pull.weights * off
        apart = x.offsets - (float(np.add.reduce(x.offsets)) / joint.width if joint.width > 1 else 0.0)
        value += self.half * OFFSET_PENALTY * float(apart @ apart)
        g_o = joint.whole(residual) + 2 * self.half * OFFSET_PENALTY * apart
        pieces = [self._of_root(u, g_w), g_b * self._of_tanh(x), g_o * self.of_offsets]
        if self.free:
            g_d = np.zeros((joint.n_added + 1, joint.width))
            joint.add_rows(g_d, joint.cells, cells)
            of_slopes = []
            if self.straight is not None:
                held, g_s = self.straight.held(slopes)
                value += held
                of_slopes = [((self.straight.felt(g_d[:-1]) + g_s) * self.of_slopes).ravel()]
            value += joint.pulled(bends, self.ridge, self.strength, g_d)
            pieces += [self.untied.slopes(g_d[:-1]).ravel(), *of_slopes]
        return value, np.concatenate(pieces)

    def _of_root(self, u: Floats, g: Floats) -> Floats:
        """The gradient along v, w = v²."""
        return np.asarray(u[: self.n_weights] * self.of_roots * g)

    def _of_tanh(self, x: Solution) -> Floats:
        """How fast the exponents change with their unknowns."""
        return np.asarray(self.of_lengths * (1 - (x.exponents - _MIDDLE) ** 2))


def _of_dense(joint: Joint, x: Solution, residual: Floats) -> tuple[Floats, Floats]:
    """The gradient along the weights of dense columns, and along the exponents of their lengths."""
    g_w, g_b = np.zeros(len(joint.dense)), np.zeros(len(joint.lengths))
    for i, d in enumerate(joint.dense):
        pulled = joint.pulled_at(i, residual)
        if d.log_length is None:
            g_w[i] = pulled.sum()
            continue
        at = joint.lengths.index(i)
        pulled *= np.exp(x.exponents[at] * d.log_length)
        g_w[i] = pulled.sum()
        g_b[at] = x.weights[joint.readers + i] * float(pulled @ d.log_length)
    return g_w, g_b
