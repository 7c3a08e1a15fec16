"""The two inner loops of the joint fit: tables added to the scores of rows, and residuals of rows summed by cell.

Both add in the order in which a product with a sparse matrix of ones would, so that either way gives the same bits.
"""

from __future__ import annotations

from typing import Any

from .compiling import lazy


@lazy("void(int32[:, ::1], int64, float64[:, ::1], float64[:, ::1])")
def add_cells(codes: Any, first: int, table: Any, out: Any) -> None:
    """out[i] += Σ table[codes[first + i, term]], rows × terms of codes."""
    terms, width = codes.shape[1], table.shape[1]
    if width == 1:
        for i in range(out.shape[0]):
            total = 0.0
            for t in range(terms):
                total += table[codes[first + i, t], 0]
            out[i, 0] += total
        return
    for i in range(out.shape[0]):
        for t in range(terms):
            cell = codes[first + i, t]
            for y in range(width):
                out[i, y] += table[cell, y]


@lazy("void(int32[:, ::1], int64, float64[:, ::1], float64[:, ::1])")
def sum_cells(codes: Any, first: int, amounts: Any, out: Any) -> None:
    """out[codes[first + i, term]] += amounts[i]."""
    terms, width = codes.shape[1], amounts.shape[1]
    if width == 1:
        for i in range(amounts.shape[0]):
            for t in range(terms):
                out[codes[first + i, t], 0] += amounts[i, 0]
        return
    for i in range(amounts.shape[0]):
        for t in range(terms):
            cell = codes[first + i, t]
            for y in range(width):
                out[cell, y] += amounts[i, y]


@lazy("void(int32[::1], int32[::1], float64[:, ::1], float64[::1], float64[:, ::1])")
def add_spoken(entries: Any, readers: Any, logs: Any, weights: Any, out: Any) -> None:
    """out[entries] += weights[readers] · logs."""
    for e in range(entries.shape[0]):
        weight = weights[readers[e]]
        if weight != 0.0:
            at = entries[e]
            for y in range(logs.shape[1]):
                out[at, y] += weight * logs[e, y]


@lazy("void(int32[::1], int32[::1], float64[:, ::1], float64[:, ::1], boolean, float64[::1])")
def sum_heard(entries: Any, readers: Any, logs: Any, sums: Any, square: bool, out: Any) -> None:
    """out[readers] += Σ_y sums[entries] · logs, or · logs²."""
    for e in range(entries.shape[0]):
        at = entries[e]
        total = 0.0
        for y in range(logs.shape[1]):
            total += sums[at, y] * (logs[e, y] * logs[e, y] if square else logs[e, y])
        out[readers[e]] += total


@lazy("void(float64[:, ::1], float64[::1])")
def below_largest(scores: Any, top: Any) -> None:
    """Each row less its largest, in place; the largest."""
    for i in range(scores.shape[0]):
        best = scores[i, 0]
        for y in range(1, scores.shape[1]):
            best = max(best, scores[i, y])
        top[i] = best
        for y in range(scores.shape[1]):
            scores[i, y] -= best


@lazy("void(float64[:, ::1], float64[::1])")
def to_shares(e: Any, total: Any) -> None:
    """Each row divided by its sum, in place; the sum."""
    for i in range(e.shape[0]):
        rest = 0.0
        for y in range(e.shape[1]):
            rest += e[i, y]
        total[i] = rest
        for y in range(e.shape[1]):
            e[i, y] /= rest
