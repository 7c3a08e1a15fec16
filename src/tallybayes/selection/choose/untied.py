"""Corrections as numbers that hang together less: a descent along these is short where neighbours are held together.

The pull on jumps ties the stretches of a number, and the cells of a pair, to each other, and a descent that knows the
curvature of each correction alone takes many steps to move all of them. With H = D − S, where D is the curvature along
each correction with all that pulls it, and S how strongly neighbours are tied, there is a lower triangular L with
L·Lᵀ = H along a line of neighbours, and nearly so on a grid, where only the diagonal of H is answered for:

    dᵢ = Dᵢ − Σ_j<i s²ᵢⱼ / dⱼ        δ = L⁻ᵀ·u:  δᵢ = uᵢ/√dᵢ + Σ_j>i sᵢⱼ·δⱼ / dᵢ

In u the loss is about as curved along each number, and across, too. Where nothing is tied u is δ·√D.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Floats, Ints
from ...exact.kernels import gate
from .columns import Small


class Ties(NamedTuple):
    """Of each row of δ its neighbours, row by row in their order; the number of rows stands for none."""

    before: Small  # nth × rows: of those that come before it
    after: Small
    edge_before: Small  # nth × rows: which of the ties it is; the number of ties for none
    edge_after: Small
    waves: list[Ints]  # rows that depend on none of each other, but on those of earlier waves

    @classmethod
    def of(cls, a: Small, b: Small, rows: int) -> Ties:
        """Of ties from a to b, a < b, that make no triangle."""
        before, edge_before = _listed(a, b, rows)
        after, edge_after = _listed(b, a, rows)
        wave, deeper = np.zeros(rows + 1, dtype=np.int64), np.full(rows + 1, -1, dtype=np.int64)
        while not np.array_equal(wave, deeper):
            wave, deeper = np.append(wave[before].max(axis=0) + 1, 0), wave
        order, depth = np.argsort(wave[:-1], kind="stable"), np.bincount(wave[:-1])
        waves = [w for w in np.split(order, np.cumsum(depth)[:-1]) if len(w)] if rows else []
        return cls(before, after, edge_before, edge_after, waves)


def _listed(one: Small, other: Small, rows: int) -> tuple[Small, Small]:
    """For each `other` the `one` that it is tied to, the first, the second, …, and by which tie."""
    order = np.lexsort([one, other])
    at = other[order].astype(np.int64)
    nth = np.arange(len(at)) - np.searchsorted(at, at)
    row, edge = (np.full((int(nth.max(initial=0)) + 1, rows), none, dtype=np.int32) for none in (rows, len(one)))
    row[nth, at], edge[nth, at] = one[order], order
    return row, edge


class Untied:
    """The change from δ to u and back, under one pull; `kernels` are those of a descent, or None."""

    def __init__(self, near: Ties, pulls: Floats, curved: Floats, kernels: Any) -> None:
        """`pulls` are the curvatures of jumps, one for each tie; `curved` those of rows of δ × width, ties included."""
        self._near, self._kernels = near, kernels
        padded = np.append(pulls, 0.0)
        self._before, self._after = padded[near.edge_before], padded[near.edge_after]
        d = self._pivots(curved)
        self._root, self._share = 1 / np.sqrt(d), 1 / d

    @gate.guarded
    def _pivots(self, curved: Floats) -> Floats:
        """d of the formula above."""
        d = np.concatenate([curved, np.ones((1, curved.shape[1]))])
        if self._kernels is not None:
            self._kernels.pivots(self._near.before, self._before, d)
            return d[:-1]
        for rows in self._near.waves[1:]:
            for before, tie in zip(self._near.before[:, rows], self._before[:, rows], strict=True):
                d[rows] -= (tie * tie)[:, None] / d[before]
        return d[:-1]

    @gate.guarded
    def added(self, u: Floats) -> Floats:
        """δ = L⁻ᵀ·u."""
        out = np.zeros((len(u) + 1, u.shape[1]))
        if self._kernels is not None:
            self._kernels.tied(self._near.after, self._after, self._root, self._share, np.ascontiguousarray(u), out)
            return out[:-1]
        for rows in reversed(self._near.waves):
            said = _sum_of(self._near.after[:, rows], self._after[:, rows], out)
            out[rows] = self._root[rows] * u[rows] + self._share[rows] * said
        return out[:-1]

    @gate.guarded
    def slopes(self, of_added: Floats) -> Floats:
        """How much a loss changes with u, by how much it does with δ: L⁻¹·slopes."""
        out, felt = np.empty_like(of_added), np.zeros((len(of_added) + 1, of_added.shape[1]))
        if self._kernels is not None:
            near, root = self._near, self._root
            self._kernels.untied(near.before, self._before, root, self._share, of_added, felt, out)
            return out
        for rows in self._near.waves:
            every = of_added[rows] + _sum_of(self._near.before[:, rows], self._before[:, rows], felt)
            felt[rows], out[rows] = self._share[rows] * every, self._root[rows] * every
        return out

    def numbers(self, added: Floats) -> Floats:
        """u = Lᵀ·δ."""
        padded = np.concatenate([added, np.zeros((1, added.shape[1]))])
        said = _sum_of(self._near.after, self._after, padded)
        return np.asarray((added - self._share * said) / self._root)


def _sum_of(rows: Small, ties: Floats, each: Floats) -> Floats:
    """Σ tie · neighbour, from the first neighbour to the last."""
    out = np.zeros((rows.shape[1], each.shape[1]))
    for row, tie in zip(rows, ties, strict=True):
        out += tie[:, None] * each[row]
    return out
