"""Scoring: parts are added up where they arise, without an array for each; and words under many smoothings at once."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ...base.arrays import Floats, Ints
from .compiling import INDICES, helper, lazy
from .llvm import add_table_rows, normals_of_four, normals_without_nan, products_of_four


@lazy("void(int64[::1], int64[::1], int64[::1], int64, int64[::1], int64[:, ::1])")
def add_entries(slot: Any, label: Any, amount: Any, times: int, row: Any, table: Any) -> None:
    """Add times · amount of each entry to table[row[slot], label]; a row of −1 is left out."""
    for e in range(slot.shape[0]):
        r = row[slot[e]]
        if r >= 0:
            table[r, label[e]] += times * amount[e]


@lazy("void(int64[::1], int64[::1], float64[::1], int32[:, ::1], float64[:, ::1], int64, float64[:, :, ::1])")
def products_of_each(indptr: Any, words: Any, data: Any, codes: Any, tables: Any, first: int, out: Any) -> None:
    """Several products at once of the rows from `first` on of a sparse matrix: out[row, y, s] gets Σ x·tables[code, s]
    for the code of each word and y, added in the order in which one product alone would add.

    What a word's code is was looked up once for all s, which are a multiple of eight as classes are of four. Words and
    codes are given as places in the flat arrays of codes and tables.
    """
    n_classes, width = np.uint64(codes.shape[1]), np.uint64(tables.shape[1])
    to = np.uint64(0)
    for i in range(out.shape[0]):
        start, stop = np.uint64(indptr[first + i]), np.uint64(indptr[first + i + 1])
        for y in range(np.uint64(0), n_classes, np.uint64(4)):
            for s in range(np.uint64(0), width, np.uint64(8)):
                products_of_four(words, data, start, stop, codes, y, tables, s, out, to + y * width + s, width)
        to += n_classes * width


def products_of_all(rows: Any, codes: Any, tables: Floats, out: Floats) -> None:
    """out[s, row, y] = Σ x·tables[codes[word, y], s] over the words of each row of a sparse matrix.

    Tables have a multiple of eight columns, of which those beyond the first axis of `out` are left out.
    """
    several, n_rows, n_classes = out.shape
    if n_classes % 4:
        codes = np.pad(codes, ((0, 0), (0, -n_classes % 4)))
    codes = codes * np.int32(tables.shape[1])  # places in the flat arrays
    words = rows.indices.astype(np.int64) * codes.shape[1]
    given = rows.indptr.astype(np.int64), words, rows.data.astype(np.float64)
    step = max(_SUMS_AT_ONCE // (codes.shape[1] * tables.shape[1]), 1)
    some = np.empty((min(step, n_rows), codes.shape[1], tables.shape[1]))
    for first in range(0, n_rows, step):
        some = some[: n_rows - first]
        products_of_each(*given, codes, tables, first, some)
        out[:, first : first + step] = some[:, :n_classes, :several].transpose(2, 0, 1)


_SUMS_AT_ONCE = 1 << 17  # a megabyte
_HALF_LOG_2PI = 0.5 * float(np.log(2 * np.pi))
_ROOT_HALF = float(np.sqrt(0.5))
_FAR = 1e299  # a sum of this size has left the range of the short way
TILE = 64  # rows at a time: their sums stay in the first-level cache


@helper
def _carefully(x: Any, columns: Any, mean: Any, scale: Any, constant: Any) -> Any:
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

    def eights(self, width: int) -> tuple[Any, Floats, Floats, Floats]:
        """What `normals_of_four` reads of a matrix so wide, two classes side by side: where each eight columns begin,
        eight means, inverse deviations and constants for each, the sums of all constants for four rows, and zeros.
        """
        left = np.minimum(8 * np.arange(-(-width // 8)), width - 8)  # the last columns may be read twice: s is then 0
        pairs, at = (len(self.mean) + 1) // 2, self.columns // 8
        out, whole, j = np.zeros((2 * pairs, len(left), 24)), np.zeros(2 * pairs), self.columns - left[at]
        own, whole[: len(self.mean)] = out[: len(self.mean)], self.whole
        with np.errstate(over="ignore"):  # a row that is infinitely far away goes the careful way
            own[:, at, j], own[:, at, 8 + j], own[:, at, 16 + j] = self.mean, _ROOT_HALF / self.scale, self.constant
        bells = np.ascontiguousarray(out.reshape(pairs, 2, len(left), 24).transpose(0, 2, 1, 3))
        return (
            left.astype(np.uint64),
            bells.ravel(),
            np.tile(whole.reshape(pairs, 1, 2), (1, 4, 1)).ravel(),
            np.zeros(8),
        )

    def room(self) -> Floats:
        """For the sums of a tile of rows, two classes after two."""
        return np.empty(((len(self.mean) + 1) // 2, TILE, 2))


_BELLS = "int64[::1], float64[:, ::1], float64[:, ::1], float64[:, ::1], float64[::1]"


@lazy(f"void(const float64[:, ::1], {_BELLS}, float64, float64[:, ::1], float64[:, ::1])")
def add_normal(
    x: Any, columns: Any, mean: Any, scale: Any, constant: Any, whole: Any, weight: float, room: Any, out: Any
) -> None:
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


@helper
def _slowly(
    x: Any, begin: int, columns: Any, mean: Any, scale: Any, constant: Any, left: Any, bells: Any, none: Any,
    totals: Any, row: int,
) -> Any:  # fmt: skip
    """The same for four rows of which `normals_of_four` could not say it: numbers are missing, or too far away.

    Returns whether every number of the rows is finite.
    """
    step, finite = np.uint64(x.shape[1]), True
    for p in range(totals.shape[0]):
        place, to = np.uint64(begin * x.shape[1]), np.uint64((p * TILE + row) * 2)
        bell = np.uint64(p * left.shape[0] * 48)
        normals_without_nan(x, place, step, left, bells, bell, none, np.uint64(0), totals, to)
        for y in range(2 * p, min(2 * p + 2, mean.shape[0])):
            for i in range(4):
                if not abs(totals[p, row + i, y % 2]) < _FAR:
                    for k in range(x.shape[1]):
                        finite &= abs(x[begin + i, k]) != np.inf
                    totals[p, row + i, y % 2] = _carefully(x[begin + i], columns, mean[y], scale[y], constant[y])
    return finite


@helper
def _normals(
    x: Any, first: int, columns: Any, mean: Any, scale: Any, constant: Any, left: Any, bells: Any, whole: Any,
    none: Any, totals: Any,
) -> Any:  # fmt: skip
    """The log densities of the rows of a tile, two classes after two; returns whether every number is finite."""
    rows, step, finite = min(TILE, x.shape[0] - first), np.uint64(x.shape[1]), True
    for done in range(0, rows, 4):
        row = min(done, rows - 4)
        begin = first + row
        place, short, bell = np.uint64(begin * x.shape[1]), True, np.uint64(0)
        for p in range(totals.shape[0]):
            to = np.uint64((p * TILE + row) * 2)
            short &= normals_of_four(x, place, step, left, bells, bell, whole, np.uint64(8 * p), totals, to)
            bell += np.uint64(48 * left.shape[0])
        if not short:
            finite &= _slowly(x, begin, columns, mean, scale, constant, left, bells, none, totals, row)
    return finite


_ROWS = f"const float64[:, ::1], {_BELLS}, float64, uint64[::1], float64[::1], float64[::1], float64[::1]"


@lazy(f"boolean({_ROWS}, float64[:, :, ::1], float64[:, ::1])")
def add_normal_rows(
    x: Any, columns: Any, mean: Any, scale: Any, constant: Any, _: Any, weight: float, left: Any, bells: Any,
    whole: Any, none: Any, totals: Any, out: Any,
) -> Any:  # fmt: skip
    """The same as `add_normal` of at least eight columns and four rows, faster: nothing is turned; see `Bells.eights`.

    Returns whether every number of x is finite, in other columns, too. `totals` is `Bells.room`.
    """
    finite = True
    for tile in range(0, x.shape[0], TILE):
        first = min(tile, x.shape[0] - 4)  # a short tile has some rows of the last
        finite &= _normals(x, first, columns, mean, scale, constant, left, bells, whole, none, totals)
        for i in range(tile - first, min(TILE, x.shape[0] - first)):
            for y in range(mean.shape[0]):
                out[first + i, y] += weight * totals[y >> 1, i, y & 1]
    return finite


@lazy(f"boolean({_ROWS}, float64[:, :, ::1], float64[::1], int64[::1])")
def best_normal_rows(
    x: Any, columns: Any, mean: Any, scale: Any, constant: Any, _: Any, weight: float, left: Any, bells: Any,
    whole: Any, none: Any, totals: Any, start: Any, best: Any,
) -> Any:  # fmt: skip
    """What `largest` finds in scores that begin with `start` and to which `add_normal_rows` has added.

    No score is kept. Returns whether every number of x is finite, in other columns, too.
    """
    finite = True
    for tile in range(0, x.shape[0], TILE):
        first = min(tile, x.shape[0] - 4)  # a short tile has some rows of the last
        finite &= _normals(x, first, columns, mean, scale, constant, left, bells, whole, none, totals)
        rows = min(TILE, x.shape[0] - first)
        if mean.shape[0] == 2:  # several rows at a time
            for i in range(rows):
                one, other = start[0] + weight * totals[0, i, 0], start[1] + weight * totals[0, i, 1]
                best[first + i] = np.int64(other > one) - np.int64(max(one, other) == -np.inf)
            continue
        for i in range(rows):
            top, at = -np.inf, np.int64(-1)
            for y in range(mean.shape[0]):  # without a jump, which nobody could foresee
                score = start[y] + weight * totals[y >> 1, i, y & 1]
                better = score > top
                at += (y - at) * np.int64(better)
                top = score if better else top
            best[first + i] = at
    return finite


@lazy("void(float64[:, ::1], const {i}[::1], float64[:, ::1])", i=INDICES)
def add_rows(table: Any, codes: Any, out: Any) -> None:
    """Add table[code] to each row of `out`; the last row of the table is for code −1."""
    n_classes, last = table.shape[1], table.shape[0] - 1
    for i in range(codes.shape[0]):
        code = codes[i]
        code = last if code < 0 else code
        for y in range(n_classes):
            out[i, y] += table[code, y]


@lazy(
    "void(const int64[:, ::1], int64[::1], int64[::1], uint64[::1], uint64[::1], float64[:, ::1], "
    "float64[::1], uint64[::1], float64[:, ::1])"
)
def add_matrix(
    matrix: Any, columns: Any, low: Any, values: Any, start: Any, table: Any, sums: Any, place: Any, out: Any
) -> None:
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
    "void(const {i}[::1], const {i}[::1], const float64[::1], const float64[:, ::1], int64, float64[:, ::1])", i=INDICES
)
def products(indptr: Any, indices: Any, data: Any, table: Any, first: int, out: Any) -> None:
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
def largest(scores: Any, best: Any) -> None:
    """The number of the highest score of each row, the first of equal ones; −1 where none is above −inf."""
    for i in range(scores.shape[0]):
        top, at = -np.inf, -1
        for y in range(scores.shape[1]):  # without a jump, which nobody could foresee
            at = y if scores[i, y] > top else at
            top = max(scores[i, y], top)
        best[i] = at
