"""What a fit does to each row by itself: scores to what they leave over, sums over its few classes, weighted parts.

NumPy takes long over many rows of few numbers. Everything is rounded as NumPy would, so that either way gives the same
bits.
"""

from __future__ import annotations

from typing import Any

from .compiling import lazy


@lazy("void(float64[:, ::1], int64[::1], float64[::1], float64[::1])")
def below_largest(scores: Any, labels: Any, top: Any, own: Any) -> None:
    """Each row less its largest, in place; the largest, and that of its own class."""
    for i in range(scores.shape[0]):
        best = scores[i, 0]
        for y in range(1, scores.shape[1]):
            best = max(best, scores[i, y])
        top[i], own[i] = best, scores[i, labels[i]]
        for y in range(scores.shape[1]):
            scores[i, y] -= best


@lazy("void(float64[:, ::1], int64[::1], float64[::1], float64[::1])")
def to_residuals(e: Any, labels: Any, weights: Any, total: Any) -> None:
    """Each row divided by its sum, less 1 for its own class, times its weight, in place; the sum."""
    for i in range(e.shape[0]):
        rest = 0.0
        for y in range(e.shape[1]):
            rest += e[i, y]
        total[i] = rest
        for y in range(e.shape[1]):
            e[i, y] /= rest
        e[i, labels[i]] -= 1.0
        for y in range(e.shape[1]):
            e[i, y] *= weights[i]


@lazy("void(float64[:, ::1], int64[::1], float64[::1], float64[::1], float64[::1])")
def odds_to_residuals(odds: Any, labels: Any, weights: Any, small: Any, losses: Any) -> None:
    """The same of log-odds, in place; `small` is exp(−|odds|), and `losses`, given as log(1 + small), the loss."""
    for i in range(odds.shape[0]):
        second, ahead = labels[i] == 1, odds[i, 0] > 0
        if ahead != second:
            losses[i] += abs(odds[i, 0])
        p = 1 / (1 + small[i]) if ahead else small[i] / (1 + small[i])
        odds[i, 0] = ((p - 1.0) if second else p) * weights[i]


@lazy("void(float64[:, ::1], int64[::1], float64[::1])")
def own_left(p: Any, labels: Any, weights: Any) -> None:
    """Each row less 1 for its own class, times its weight, in place."""
    for i in range(p.shape[0]):
        p[i, labels[i]] -= 1.0
        for y in range(p.shape[1]):
            p[i, y] *= weights[i]


@lazy("void(float64[:, ::1], float64[::1], float64[:, ::1])")
def less(scores: Any, by: Any, out: Any) -> None:
    """Each row less a number of its own."""
    for i in range(scores.shape[0]):
        for y in range(scores.shape[1]):
            out[i, y] = scores[i, y] - by[i]


@lazy("void(float64[:, ::1], float64[::1])")
def add_classes(amounts: Any, out: Any) -> None:
    """The sum of each row, from the first class to the last."""
    for i in range(amounts.shape[0]):
        total = amounts[i, 0]
        for y in range(1, amounts.shape[1]):
            total += amounts[i, y]
        out[i] = total


@lazy("void(float64[:, ::1], float64[::1])")
def add_up(rows: Any, out: Any) -> None:
    """The sum of all rows, one after the other."""
    for i in range(rows.shape[0]):
        for y in range(rows.shape[1]):
            out[y] += rows[i, y]


@lazy("void(float64[:, ::1], float64[:, ::1], float64[::1])")
def products(a: Any, b: Any, out: Any) -> None:
    """Σ a · b of each row, from the first class to the last."""
    for i in range(a.shape[0]):
        total = a[i, 0] * b[i, 0]
        for y in range(1, a.shape[1]):
            total += a[i, y] * b[i, y]
        out[i] = total


@lazy("void(float64[:, ::1], float64[:, ::1], float64, float64[::1], float64[:, ::1])")
def say(part: Any, told: Any, weight: float, by: Any, out: Any) -> None:
    """out = (weight · part + told) · by, of each row; without `told` that is left out."""
    width, every = part.shape[1], told.shape[0] > 0
    for i in range(part.shape[0]):
        for y in range(width):
            one = weight * part[i, y]
            if every:
                one += told[i, y]
            out[i, y] = one * by[i]


@lazy("void(float64[::1], float64[:, ::1], float64[:, ::1])")
def add_scaled(by: Any, part: Any, out: Any) -> None:
    """out += by · part, of each row."""
    for i in range(part.shape[0]):
        for y in range(part.shape[1]):
            out[i, y] += by[i] * part[i, y]


@lazy("void(float64[:, :, ::1], float64[:, ::1], float64[::1], float64[:, ::1])")
def add_said(said: Any, rest: Any, offsets: Any, out: Any) -> None:
    """out = (rest + offset of the class) + what all columns say, one after the other."""
    for i in range(out.shape[0]):
        for y in range(out.shape[1]):
            total = said[0, i, y]
            for j in range(1, said.shape[0]):
                total += said[j, i, y]
            out[i, y] = (rest[i, y] + offsets[y]) + total
