"""Numba twins of scoring: parts are added up where they arise, without an array for each. Import only through
`exact.score_kernels`.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from .intrinsics import add_table_rows, squares_of_four, squares_without_nan
from .lazykernel import helper, lazy
from .numerics import Floats, Ints

_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_ROOT_HALF = float(np.sqrt(0.5))
_FAR = 1e299  # a sum of this size has left the range of the short way
TILE = 64  # rows at a time: their sums stay in the first-level cache


@helper
def _carefully(x: Any, columns: Any, mean: Any, scale: Any, constant: Any) -> Any:  # pragma: no cover - compiled
    """The same sum for one row and class where a step of the short way may overflow; see `moments.distance`."""
    total = 0.0
    for k in range(columns.shape[0]):
        v = x[columns[k]]
        if v == v:
            z = (v - mean[k]) / scale[k]
            if not abs(z) < np.inf:
                z = (v / 2 - mean[k] / 2) / scale[k] * 2
            z = min(max(z, -1e150), 1e150)
            total += constant[k] - 0.5 * z * z
    return total


class Bells(NamedTuple):
    """Normal distributions of some columns, classes × columns, with what is worked out of them once."""

    columns: Ints
    mean: Floats
    scale: Floats
    constant: Floats  # −log σ − ½ log 2π
    whole: Floats  # its sum over the columns

    @classmethod
    def of(cls, columns: Ints, mean: Floats, scale: Floats) -> Bells:
        """The bells of these means and deviations."""
        constant = -np.log(scale) - _HALF_LOG_2PI
        return cls(columns, mean, scale, constant, constant.sum(axis=1))

    def eights(self, width: int) -> tuple[Any, Floats]:
        """Where each eight columns of a matrix begin, and eight means, inverse deviations and constants for each."""
        left = np.minimum(8 * np.arange(-(-width // 8)), width - 8)  # the last columns may be read twice: s is then 0
        out, at = np.zeros((len(self.mean), len(left), 24)), self.columns // 8
        j = self.columns - left[at]
        with np.errstate(over="ignore"):  # a row that is infinitely far away goes the careful way
            out[:, at, j], out[:, at, 8 + j], out[:, at, 16 + j] = self.mean, _ROOT_HALF / self.scale, self.constant
        return left.astype(np.uint64), out


_BELLS = "int64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1]"


@lazy(f"void(Array(float64, 2, 'C', True), {_BELLS}, float64, float64[:, ::1], float64[:, ::1])")
def add_normal(
    x: Any, columns: Any, mean: Any, scale: Any, constant: Any, whole: Any, weight: float, room: Any, out: Any
) -> None:  # pragma: no cover - compiled
    """Add weight · Σ [−½((x − μ)/σ)² − log σ − ½ log 2π] over some columns of x to out[row, class].

    NaN adds nothing. `room` is for TILE numbers of each column and for their sums.
    """
    n_classes, width = mean.shape
    tile, total = room[:width], room[width]
    for first in range(0, x.shape[0], TILE):
        rows = min(TILE, x.shape[0] - first)
        missing = False
        for i in range(rows):
            for k in range(width):
                v = x[first + i, columns[k]]
                missing |= v != v
                tile[k, i] = v
        for y in range(n_classes):
            for i in range(rows):
                total[i] = 0.0 if missing else whole[y]
            for k in range(width):
                m, s, c = mean[y, k], 1.0 / scale[y, k], constant[y, k]
                if missing:
                    for i in range(rows):
                        v = tile[k, i]
                        z = (v - m) * s
                        total[i] += c - 0.5 * z * z if v == v else 0.0
                else:
                    for i in range(rows):
                        z = (tile[k, i] - m) * s
                        total[i] -= 0.5 * z * z
            for i in range(rows):
                if not abs(total[i]) < _FAR:
                    total[i] = _carefully(x[first + i], columns, mean[y], scale[y], constant[y])
                out[first + i, y] += weight * total[i]


@lazy(
    f"boolean(Array(float64, 2, 'C', True), {_BELLS}, float64, uint64[::1], float64[:, :, ::1], float64[::1], "
    "float64[:, ::1])"
)
def add_normal_rows(
    x: Any, columns: Any, mean: Any, scale: Any, constant: Any, whole: Any, weight: float, left: Any, bells: Any,
    squares: Any, out: Any,
) -> Any:  # pragma: no cover - compiled  # fmt: skip
    """The same as `add_normal` of at least eight columns and four rows, faster: nothing is turned; see `Bells.eights`.

    Returns whether every number of x is finite, in other columns, too. `squares` is room for four.
    """
    n_classes, width, step = mean.shape[0], x.shape[1], np.uint64(x.shape[1])
    finite = True
    for first in range(0, x.shape[0], 4):
        begin = min(first, x.shape[0] - 4)
        place, short = np.uint64(begin * width), True
        for y in range(n_classes):
            bell = np.uint64(y * left.shape[0] * 24)
            if short:
                squares_of_four(x, place, step, left, bells, bell, squares)
                short = squares[0] + squares[1] + squares[2] + squares[3] < _FAR
            if not short:
                squares_without_nan(x, place, step, left, bells, bell, squares)
            for i in range(first - begin, 4):
                total = (whole[y] if short else 0.0) - squares[i]
                if not abs(total) < _FAR:
                    for k in range(width):
                        finite &= abs(x[begin + i, k]) != np.inf
                    total = _carefully(x[begin + i], columns, mean[y], scale[y], constant[y])
                out[begin + i, y] += weight * total
    return finite


@lazy(
    "void(float64[:, ::1], Array(int32, 1, 'C', True), float64[:, ::1])",
    "void(float64[:, ::1], Array(int64, 1, 'C', True), float64[:, ::1])",
)
def add_rows(table: Any, codes: Any, out: Any) -> None:  # pragma: no cover - compiled
    """Add table[code] to each row of `out`; the last row of the table is for code −1."""
    n_classes, last = table.shape[1], table.shape[0] - 1
    for i in range(codes.shape[0]):
        code = codes[i]
        code = last if code < 0 else code
        for y in range(n_classes):
            out[i, y] += table[code, y]


@lazy(
    "void(Array(int64, 2, 'C', True), int64[::1], int64[::1], uint64[::1], uint64[::1], float64[:, ::1], "
    "float64[::1], uint64[::1], float64[:, ::1])"
)
def add_matrix(
    matrix: Any, columns: Any, low: Any, values: Any, start: Any, table: Any, sums: Any, place: Any, out: Any
) -> None:  # pragma: no cover - compiled
    """Add a row of a table for each of some columns, four at a time, to out[row, class].

    The rows of a column begin at `start`: one for each of so many values from `low` on, then one for all others. Rows
    of the table are as long as a multiple of eight, and hold zeros after the classes. `sums` is room for a row of the
    table, `place` for a number for each column.
    """
    step = np.uint64(table.shape[1])
    for i in range(out.shape[0]):
        for k in range(columns.shape[0]):
            v = np.uint64(matrix[i, columns[k]] - low[k])  # one below `low` is a large number, too
            place[k] = start[k] + min(v, values[k])
        for y in range(sums.shape[0]):
            sums[y] = 0.0
        for y in range(np.uint64(0), step, np.uint64(8)):
            add_table_rows(table, place, np.uint64(0), np.uint64(columns.shape[0] >> 2), step, y, sums, y)
        for y in range(out.shape[1]):
            out[i, y] += sums[y]


@lazy(
    *[
        f"void(Array({i}, 1, 'C', True), Array({i}, 1, 'C', True), Array(float64, 1, 'C', True), "
        "Array(float64, 2, 'C', True), int64, float64[:, ::1])"
        for i in ("int32", "int64")
    ]
)
def products(indptr: Any, indices: Any, data: Any, table: Any, first: int, out: Any) -> None:  # pragma: no cover
    """The rows from `first` on of a sparse matrix times a table, in the order in which SciPy adds."""
    for i in range(out.shape[0]):
        total = out[i]
        for y in range(table.shape[1]):
            total[y] = 0.0
        for e in range(np.uint64(indptr[first + i]), np.uint64(indptr[first + i + 1])):
            amount, weights = data[e], table[np.uint64(indices[e])]
            for y in range(table.shape[1]):
                total[y] += amount * weights[y]


@lazy("void(float64[:, ::1], int64[::1])")
def largest(scores: Any, best: Any) -> None:  # pragma: no cover - compiled
    """The number of the highest score of each row, the first of equal ones; −1 where none is above −inf."""
    for i in range(scores.shape[0]):
        top, at = -np.inf, -1
        for y in range(scores.shape[1]):
            if scores[i, y] > top:
                top, at = scores[i, y], y
        best[i] = at
