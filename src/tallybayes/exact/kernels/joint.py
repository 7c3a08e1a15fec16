"""The inner loops of the joint fit: tables added to the scores of rows, and residuals of rows summed by cell.

All of them add in the order in which a product with a sparse matrix of ones would, so that either way gives the same
bits. Codes are terms × rows, and taken by stretches of rows, so that the cells of a term stay near.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .compiling import helper, lazy
from .llvm import add_eight, add_eights, add_four, add_fours, add_one, add_ones, add_two, add_twos

_STRETCH = 8_192  # numbers of the rows that are looked at together


@helper
def _add_row(table: Any, a: int, width: int, out: Any, to: int) -> None:
    """Add to `width` numbers of `out`, from a place on, those of a table from another on."""
    y = 0
    while y + 8 <= width:
        add_eight(table, a + y, out, to + y)
        y += 8
    if y + 4 <= width:
        add_four(table, a + y, out, to + y)
        y += 4
    if y + 2 <= width:
        add_two(table, a + y, out, to + y)
        y += 2
    if y < width:
        add_one(table, a + y, out, to + y)


@helper
def _add_rows(table: Any, a: int, b: int, c: int, d: int, width: int, out: Any, to: int) -> None:
    """The same of four places, one after the other."""
    y = 0
    while y + 8 <= width:
        add_eights(table, a + y, b + y, c + y, d + y, out, to + y)
        y += 8
    if y + 4 <= width:
        add_fours(table, a + y, b + y, c + y, d + y, out, to + y)
        y += 4
    if y + 2 <= width:
        add_twos(table, a + y, b + y, c + y, d + y, out, to + y)
        y += 2
    if y < width:
        add_ones(table, a + y, b + y, c + y, d + y, out, to + y)


@lazy("void(int32[:, ::1], int64, float64[:, ::1], float64[:, ::1], int64[::1], float64[:, ::1])")
def add_cells(codes: Any, first: int, table: Any, start: Any, folds: Any, out: Any) -> None:
    """out[i] = Σ table[codes[term, first + i]] + start[folds[first + i]]."""
    terms, width, rows = codes.shape[0], table.shape[1], out.shape[0]
    fours, step = terms - terms % 4, max(8, _STRETCH // width)
    for low in range(0, rows, step):
        high = min(low + step, rows)
        for i in range(low, high):
            for y in range(width):
                out[i, y] = 0.0
        for t in range(0, fours, 4):
            for i in range(low, high):
                at = first + i
                a, b, c, d = codes[t, at], codes[t + 1, at], codes[t + 2, at], codes[t + 3, at]
                if width == 1:
                    left = out[i, 0] + table[np.uint64(a), 0] + table[np.uint64(b), 0]
                    out[i, 0] = left + table[np.uint64(c), 0] + table[np.uint64(d), 0]
                else:
                    _add_rows(table, a * width, b * width, c * width, d * width, width, out, i * width)
        for t in range(fours, terms):
            for i in range(low, high):
                _add_row(table, codes[t, first + i] * width, width, out, i * width)
        for i in range(low, high):
            _add_row(start, folds[first + i] * width, width, out, i * width)


@lazy("void(int32[:, ::1], int64, float64[:, ::1], float64[:, ::1])")
def sum_cells(codes: Any, first: int, amounts: Any, out: Any) -> None:
    """out[codes[term, first + i]] += amounts[i]."""
    terms, width, rows = codes.shape[0], amounts.shape[1], amounts.shape[0]
    fours, step = terms - terms % 4, max(8, _STRETCH // width)
    for low in range(0, rows, step):
        high = min(low + step, rows)
        if width > 1:
            for t in range(terms):
                for i in range(low, high):
                    _add_row(amounts, i * width, width, out, codes[t, first + i] * width)
            continue
        for t in range(0, fours, 4):
            for i in range(low, high):
                at, amount = first + i, amounts[i, 0]
                out[np.uint64(codes[t, at]), 0] += amount
                out[np.uint64(codes[t + 1, at]), 0] += amount
                out[np.uint64(codes[t + 2, at]), 0] += amount
                out[np.uint64(codes[t + 3, at]), 0] += amount
        for t in range(fours, terms):
            for i in range(low, high):
                out[np.uint64(codes[t, first + i]), 0] += amounts[i, 0]


@lazy("void(int64[:, ::1], float64[::1], float64[::1], int32[::1], float64[:, ::1], float64[::1])")
def tell(spans: Any, logs: Any, weights: Any, cells: Any, added: Any, out: Any) -> None:
    """What every entry of the one table says: its correction, then weight · log of one reader after the other."""
    known, width = added.shape
    for e in range(cells.shape[0]):
        cell, to = cells[e], e * width
        for y in range(width):
            out[to + y] = added[cell, y] if cell < known else 0.0
    for s in range(spans.shape[0]):
        to, count = spans[s, 0] * width, (spans[s, 1] - spans[s, 0]) * width
        for r in range(spans[s, 3]):
            weight, at = weights[spans[s, 2] + r], spans[s, 4] * width + r * count
            if weight != 0.0:
                for k in range(count):
                    out[to + k] += weight * logs[at + k]


@lazy("void(int64[:, ::1], float64[::1], float64[::1], int64, boolean, float64[::1])")
def hear(spans: Any, logs: Any, sums: Any, width: int, square: bool, out: Any) -> None:
    """out[reader] = Σ_entries Σ_y sums · logs, or · logs²; several sums at a time, each in its order."""
    for s in range(spans.shape[0]):
        start, first, readers, at = spans[s, 0], spans[s, 2], spans[s, 3], spans[s, 4]
        count = spans[s, 1] - start
        if width == 1 and readers == 4 and not square:
            a = b = c = d = 0.0
            for e in range(count):
                amount, k = sums[start + e], at + e
                a += amount * logs[k]
                b += amount * logs[k + count]
                c += amount * logs[k + 2 * count]
                d += amount * logs[k + 3 * count]
            out[first], out[first + 1], out[first + 2], out[first + 3] = a, b, c, d
            continue
        for r in range(readers):
            total, fours = 0.0, count - count % 4
            for e in range(0, fours, 4):
                i, k = (start + e) * width, (at + r * count + e) * width
                a = b = c = d = 0.0
                for y in range(width):
                    p, q, u, v = logs[k + y], logs[k + width + y], logs[k + 2 * width + y], logs[k + 3 * width + y]
                    if square:
                        p, q, u, v = p * p, q * q, u * u, v * v
                    a += sums[i + y] * p
                    b += sums[i + width + y] * q
                    c += sums[i + 2 * width + y] * u
                    d += sums[i + 3 * width + y] * v
                total = (((total + a) + b) + c) + d
            for e in range(fours, count):
                i, k = (start + e) * width, (at + r * count + e) * width
                a = 0.0
                for y in range(width):
                    a += sums[i + y] * (logs[k + y] * logs[k + y] if square else logs[k + y])
                total += a
            out[first + r] = total


@lazy("void(int32[::1], int32[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1])")
def pull_jumps(a: Any, b: Any, strength: Any, added: Any, jumps: Any, pulled: Any, out: Any) -> None:
    """The jumps from a to b, the same times their strength, and the slope of their squares added to out."""
    width = added.shape[1]
    for e in range(a.shape[0]):
        for y in range(width):
            jumps[e, y] = added[b[e], y] - added[a[e], y]
            pulled[e, y] = strength[e] * jumps[e, y]
    for e in range(a.shape[0]):
        for y in range(width):
            out[b[e], y] += 2 * pulled[e, y]
    for e in range(a.shape[0]):
        for y in range(width):
            out[a[e], y] -= 2 * pulled[e, y]


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


@lazy("void(int32[::1], int32[::1], int64, int64, float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1])")
def sum_pair(one: Any, other: Any, size: int, others: int, left: Any, curved: Any, r: Any, h: Any) -> None:
    """r and h, by the cells of a pair of columns: what rows have left over, and how curved the loss is there."""
    width = left.shape[1]
    for i in range(one.shape[0]):
        if one[i] < size and other[i] < others:
            cell = one[i] * others + other[i]
            for y in range(width):
                r[cell, y] += left[i, y]
                h[cell, y] += curved[i, y]


@lazy("void(int32[::1], int32[::1], float64[::1], float64[:, ::1], float64[:, ::1])")
def add_words(ends: Any, words: Any, amounts: Any, table: Any, out: Any) -> None:
    """out[row] = Σ amount · table[word] over the words of each row; without amounts each is 1."""
    width = table.shape[1]
    for i in range(out.shape[0]):
        for y in range(width):
            out[i, y] = 0.0
        first, stop = ends[i], ends[i + 1]
        if amounts.shape[0]:
            for e in range(first, stop):
                for y in range(width):
                    out[i, y] += amounts[e] * table[words[e], y]
            continue
        fours = stop - (stop - first) % 4
        for e in range(first, fours, 4):
            a, b, c, d = words[e], words[e + 1], words[e + 2], words[e + 3]
            _add_rows(table, a * width, b * width, c * width, d * width, width, out, i * width)
        for e in range(fours, stop):
            _add_row(table, words[e] * width, width, out, i * width)


@lazy("void(int32[::1], int32[::1], float64[::1], float64[:, ::1], float64[:, ::1])")
def sum_words(ends: Any, words: Any, amounts: Any, rows: Any, out: Any) -> None:
    """out[word] += amount · rows[row] for the words of each row; without amounts each is 1."""
    width = rows.shape[1]
    for i in range(rows.shape[0]):
        for e in range(ends[i], ends[i + 1]):
            if amounts.shape[0]:
                for y in range(width):
                    out[words[e], y] += amounts[e] * rows[i, y]
            else:
                _add_row(rows, i * width, width, out, words[e] * width)


@lazy("void(float64[::1], float64[::1], float64)")
def add_times(out: Any, amounts: Any, by: float) -> None:
    """out += amounts · by, each rounded twice as NumPy does."""
    for i in range(out.shape[0]):
        out[i] += amounts[i] * by
