"""The inner loops of the joint fit: tables added to the scores of rows, and residuals of rows summed by cell.

All of them add in the order in which a product with a sparse matrix of ones would, so that either way gives the same
bits. Codes are terms × rows, and taken by stretches of rows, so that the cells of a term stay near. What is done to
each row by itself is in `rows`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from . import llvm
from .compiling import helper, lazy

_STRETCH = 8_192  # numbers of the rows that are looked at together


@helper
def _gather(
    numbers: Any, first: int, step: int, count: int, table: Any, width: int, out: Any, to: int, anew: bool
) -> None:
    """Add to `width` numbers of `out`, from a place on, those of some rows of a table, one row after the other.

    `anew` begins at 0. The sums stay in registers. Where blocks do not fill a row, the last begins earlier: the same
    sums once more.
    """
    y = 0
    while width - y > 32:
        llvm.gather_24(numbers, first, step, count, table, width, out, to, y, y + 16, anew)
        y += 24
    rest = width - y
    if rest > 28:
        llvm.gather_32(numbers, first, step, count, table, width, out, to, y, width - 8, anew)
    elif rest > 24:
        llvm.gather_28(numbers, first, step, count, table, width, out, to, y, width - 4, anew)
    elif rest > 20:
        llvm.gather_24(numbers, first, step, count, table, width, out, to, y, width - 8, anew)
    elif rest > 16:
        llvm.gather_20(numbers, first, step, count, table, width, out, to, y, width - 4, anew)
    elif rest > 12:
        llvm.gather_16(numbers, first, step, count, table, width, out, to, y, width - 8, anew)
    elif rest > 8:
        llvm.gather_12(numbers, first, step, count, table, width, out, to, y, width - 4, anew)
    elif rest >= 4:
        llvm.gather_8(numbers, first, step, count, table, width, out, to, y, width - 4, anew)
    elif rest >= 2:
        llvm.gather_4(numbers, first, step, count, table, width, out, to, y, width - 2, anew)
    else:
        llvm.gather_1(numbers, first, step, count, table, width, out, to, y, y, anew)


@helper
def _add_row(table: Any, a: int, width: int, out: Any, to: int) -> None:
    """Add to `width` numbers of `out`, from a place on, those of a table from another on."""
    y = 0
    while y + 8 <= width:
        llvm.add_eight(table, a + y, out, to + y)
        y += 8
    if y + 4 <= width:
        llvm.add_four(table, a + y, out, to + y)
        y += 4
    if y + 2 <= width:
        llvm.add_two(table, a + y, out, to + y)
        y += 2
    if y < width:
        llvm.add_one(table, a + y, out, to + y)


@lazy("void(int32[:, ::1], int64, float64[:, ::1], float64[:, ::1], int64[::1], float64[:, ::1])")
def add_cells(codes: Any, first: int, table: Any, start: Any, folds: Any, out: Any) -> None:
    """out[i] = Σ table[codes[term, first + i]] + start[folds[first + i]]."""
    terms, width, rows = codes.shape[0], table.shape[1], out.shape[0]
    fours, step = terms - terms % 4, max(8, _STRETCH // width)
    for low in range(0, rows, step):
        high = min(low + step, rows)
        if width > 1:
            for i in range(low, high):
                _gather(codes, first + i, codes.shape[1], terms, table, width, out, i * width, True)
            for i in range(low, high):
                _add_row(start, folds[first + i] * width, width, out, i * width)
            continue
        for i in range(low, high):
            out[i, 0] = 0.0
        for t in range(0, fours, 4):
            for i in range(low, high):
                at = first + i
                left = out[i, 0] + table[np.uint64(codes[t, at]), 0] + table[np.uint64(codes[t + 1, at]), 0]
                out[i, 0] = left + table[np.uint64(codes[t + 2, at]), 0] + table[np.uint64(codes[t + 3, at]), 0]
        for t in range(fours, terms):
            for i in range(low, high):
                out[i, 0] += table[np.uint64(codes[t, first + i]), 0]
        for i in range(low, high):
            out[i, 0] += start[folds[first + i], 0]


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


@lazy("int64(int32[:, ::1], int64, int64, int64, int64[::1], int32[::1], int32[::1], int32[::1], int32[::1])")
def find_runs(
    codes: Any, first: int, stop: int, step: int, starts: Any, room: Any, order: Any, cells: Any, ends: Any
) -> int:
    """Rows sorted by their cell, term after term in stretches of so many rows; returns how many runs of a cell.

    `order` are the rows, counted from the first, and `cells` and `ends` the cell and the end of each run.
    """
    found, at = 0, 0
    for low in range(first, stop, step):
        high = min(low + step, stop)
        for t in range(codes.shape[0]):
            begin, size = starts[t], starts[t + 1] - starts[t]
            for k in range(size):
                room[k] = 0
            for i in range(low, high):
                room[codes[t, i] - begin] += 1
            for k in range(size):
                times = room[k]
                room[k] = at
                at += times
                if times:
                    cells[found], ends[found] = begin + k, at
                    found += 1
            for i in range(low, high):
                k = codes[t, i] - begin
                order[room[k]] = i - first
                room[k] += 1
    return found


@lazy("void(int32[::1], int32[::1], int32[::1], float64[:, ::1], float64[:, ::1])")
def sum_runs(order: Any, cells: Any, ends: Any, amounts: Any, out: Any) -> None:
    """The same as `sum_cells`, by runs of rows of one cell: out[cell] += amounts[row]."""
    width, start = amounts.shape[1], 0
    for k in range(cells.shape[0]):
        _gather(order, start, 1, ends[k] - start, amounts, width, out, cells[k] * width, False)
        start = ends[k]


@lazy("void(int64[:, ::1], float64[::1], float64[::1], int32[:, ::1], float64[:, ::1], float64[::1])")
def tell(spans: Any, logs: Any, weights: Any, cells: Any, added: Any, out: Any) -> None:
    """What every entry of the one table says: its corrections, then weight · log of one reader after the other."""
    known, width = added.shape
    for level in range(cells.shape[0]):
        for e in range(cells.shape[1]):
            cell, to = np.uint64(cells[level, e]), np.uint64(e * width)
            for y in range(np.uint64(width)):
                own = added[cell, y] if cell < np.uint64(known) else 0.0
                out[to + y] = own if level == 0 else out[to + y] + own
    for s in range(spans.shape[0]):
        size, first = (spans[s, 1] - spans[s, 0]) * width, spans[s, 2]
        own, left = out[spans[s, 0] * width : spans[s, 1] * width], logs[spans[s, 4] * width :]
        fours = spans[s, 3] - spans[s, 3] % 4
        for r in range(0, fours, 4):
            a, b, c, d = weights[first + r], weights[first + r + 1], weights[first + r + 2], weights[first + r + 3]
            p, q, u, v = left[:size], left[size : 2 * size], left[2 * size : 3 * size], left[3 * size : 4 * size]
            for k in range(size):
                own[k] = (((own[k] + a * p[k]) + b * q[k]) + c * u[k]) + d * v[k]
            left = left[4 * size :]
        for r in range(fours, spans[s, 3]):
            a, p = weights[first + r], left[:size]
            for k in range(size):
                own[k] += a * p[k]
            left = left[size:]


@lazy("void(int64[:, ::1], float64[::1], float64[::1], int64, boolean, float64[::1])")
def hear(spans: Any, logs: Any, sums: Any, width: int, square: bool, out: Any) -> None:
    """out[reader] = Σ_entries Σ_y sums · logs, or · logs²; four readers at a time, each in its order."""
    for s in range(spans.shape[0]):
        entries, size, first = spans[s, 1] - spans[s, 0], (spans[s, 1] - spans[s, 0]) * width, spans[s, 2]
        own, left = sums[spans[s, 0] * width : spans[s, 1] * width], logs[spans[s, 4] * width :]
        fours = spans[s, 3] - spans[s, 3] % 4
        for r in range(0, fours, 4):
            p, q, u, v = left[:size], left[size : 2 * size], left[2 * size : 3 * size], left[3 * size : 4 * size]
            a = b = c = d = 0.0
            for e in range(entries):
                at = np.uint64(e * width)
                x = y = z = t = 0.0
                for k in range(at, at + np.uint64(width)):
                    m = own[k]
                    if square:
                        x, y = x + m * (p[k] * p[k]), y + m * (q[k] * q[k])
                        z, t = z + m * (u[k] * u[k]), t + m * (v[k] * v[k])
                    else:
                        x, y, z, t = x + m * p[k], y + m * q[k], z + m * u[k], t + m * v[k]
                a, b, c, d = a + x, b + y, c + z, d + t
            out[first + r], out[first + r + 1], out[first + r + 2], out[first + r + 3] = a, b, c, d
            left = left[4 * size :]
        for r in range(fours, spans[s, 3]):
            p, a = left[:size], 0.0
            for e in range(entries):
                at, x = np.uint64(e * width), 0.0
                for k in range(at, at + np.uint64(width)):
                    x += own[k] * (p[k] * p[k] if square else p[k])
                a += x
            out[first + r], left = a, left[size:]


@lazy(
    "void(int32[::1], int32[::1], float64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[:, ::1],"
    " float64[:, ::1], float64[:, ::1])"
)
def pull(a: Any, b: Any, strength: Any, ridge: Any, added: Any, held: Any, jumps: Any, pulled: Any, out: Any) -> None:
    """Corrections times their ridge, the jumps from a to b, the same times their strength; out gets both slopes."""
    width = added.shape[1]
    for i in range(added.shape[0]):
        by = ridge[i, 0]
        for y in range(width):
            held[i, y] = by * added[i, y]
            out[i, y] += 2 * held[i, y]
    for e in range(a.shape[0]):
        low, high, by = np.uint64(a[e]), np.uint64(b[e]), strength[e]
        for y in range(width):
            jumps[e, y] = added[high, y] - added[low, y]
            pulled[e, y] = by * jumps[e, y]
    for e in range(a.shape[0]):
        high = np.uint64(b[e])
        for y in range(width):
            out[high, y] += 2 * pulled[e, y]
    for e in range(a.shape[0]):
        low = np.uint64(a[e])
        for y in range(width):
            out[low, y] -= 2 * pulled[e, y]


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
        first, stop = ends[i], ends[i + 1]
        if amounts.shape[0]:
            for y in range(width):
                out[i, y] = 0.0
            for e in range(first, stop):
                for y in range(width):
                    out[i, y] += amounts[e] * table[words[e], y]
            continue
        _gather(words, first, 1, stop - first, table, width, out, i * width, True)


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
