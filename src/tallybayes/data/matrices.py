"""Columns that are matrices, or part of one: vectors, bags, and the categories of a matrix of whole numbers.

A matrix is taken as it is given and looked at when it is first read, since adding up and scoring notice what is wrong
with it on their way. The categories of a matrix are counted and scored row by row, all of them in one pass; their
codes, for which the matrix has to be turned, are made when somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import TYPE_CHECKING, Any, cast

import numpy as np
import pyarrow as pa

from ..base import canon
from ..base.arrays import Bools, Floats, Ints, has_infinity
from ..base.arrow import array, numpy_of
from ..base.errors import DataError
from ..base.lazy import scipy
from ..exact.dense import positions
from ..exact.entries import is_plain
from ..exact.kernels import gate
from ..exact.limbs import Limbs
from ..exact.sheet import Sheet
from .batch import matrix_column
from .blocks import BAG_UNIT, Bag, Codes, Groups, Vectors
from .values import SMALL_RANGE, Where, category, is_whole

if TYPE_CHECKING:
    from .schema import Column

_VALUES = 256  # a column of values from 0 to below is counted by place
_MOST_PLACES = 1 << 20  # of all tables together: 8 MB


class WholeMatrix:
    """A matrix of whole numbers, and what was worked out for all of its columns at once."""

    def __init__(self, matrix: Ints, kernels: ModuleType) -> None:
        self.matrix = np.ascontiguousarray(matrix)
        self._kernels: ModuleType | None = kernels
        self._counted: tuple[Ints, Ints, Bools] | None = None

    @cached_property
    @gate.guarded
    def turned(self) -> tuple[Any, Ints, Ints]:
        """The columns one after the other in int32, and the smallest and largest value of each."""
        rows, width = self.matrix.shape
        out = np.empty((width, rows), dtype=np.int32)
        low, high = np.full(width, np.iinfo(np.int64).max), np.full(width, np.iinfo(np.int64).min)
        if self._kernels is None:
            out[:] = self.matrix.T.astype(np.int32)
            return out, np.minimum.reduce(self.matrix, initial=low[0]), np.maximum.reduce(self.matrix, initial=high[0])
        self._kernels.turned(self.matrix, out, low, high)
        return out, low, high

    @gate.guarded
    def counts(self, column: int, groups: Groups) -> Ints | None:
        """Values × classes of one column; None where a value has no place, or all places would be too many."""
        width = self.matrix.shape[1]
        if groups.weights is not None or width * _VALUES * groups.n_labels > _MOST_PLACES:
            return None
        if self._counted is None or self._counted[0] is not groups.labels:
            table = np.zeros((width, _VALUES, groups.n_labels), dtype=np.int64)
            outside = np.zeros(width, dtype=np.uint64)
            if self._kernels is None:
                np.add.at(table, (np.arange(width), self.matrix & (_VALUES - 1), groups.labels[:, None]), 1)
                outside[:] = (self.matrix // _VALUES != 0).any(axis=0)
            else:
                self._kernels.count_matrix(self.matrix, groups.labels, table.reshape(-1), groups.n_labels, outside)
            self._counted = (groups.labels, table, outside == 0)
        _, table, whole = self._counted
        return table[column] if whole[column] else None


class _OfMatrix:
    """The part of a block that keeps a matrix as it was given: what else the block has is worked out when asked for."""

    _given: Any

    def _keep(self, given: Any, /, **known: Any) -> None:
        self.__dict__.update(known, _given=given)  # a block is frozen

    @property
    def unchecked(self) -> Any:
        """The matrix as it was given."""
        return self._given

    @property
    def rows(self) -> int:
        """How many rows."""
        return int(self._given.shape[0])


class MatrixCodes(_OfMatrix, Codes):
    """One column of such a matrix; `missing` has no whole number."""

    def __init__(self, whole: WholeMatrix, column: int, missing: Sequence[str]) -> None:
        self._keep(whole.matrix, whole=whole, column=column, _missing=missing)

    whole: WholeMatrix
    column: int
    _missing: Sequence[str]

    @cached_property
    def _read(self) -> Codes:
        turned, low, high = self.whole.turned
        first, last = int(low[self.column]), int(high[self.column])
        if last - first < min(SMALL_RANGE, self.rows) and max(abs(first), abs(last)) < 2**31:
            return Codes([str(v) for v in range(first, last + 1)], turned[self.column] - np.int32(first))
        return category(array(np.ascontiguousarray(self.whole.matrix[:, self.column])), self._missing)

    @cached_property
    def slots(self) -> Sequence[str]:
        """The values as texts."""
        return self._read.slots

    @cached_property
    def codes(self) -> Ints:
        """Which of them each row has."""
        return self._read.codes

    def sum_by(self, groups: Groups) -> dict[str, Sheet]:
        """A one (or the row's weight) under the value."""
        table = self.whole.counts(self.column, groups)
        if table is None:
            return super().sum_by(groups)
        used = np.flatnonzero(table.any(axis=1))
        sums = Limbs(0, table[used].reshape(-1, 1))
        return {"values": Sheet.dense([str(v) for v in used.tolist()], groups.n_labels, {"n": sums})}


def of_one_matrix(blocks: Mapping[str, object]) -> dict[str, MatrixCodes]:
    """Those of the blocks that are columns of one matrix."""
    found = {name: block for name, block in blocks.items() if isinstance(block, MatrixCodes)}
    one = len({id(block.whole) for block in found.values()}) == 1
    return found if one else {}


def vector(raw: Any, column: Column, rows: int, where: Where) -> Vectors:
    """Rows × positions of float64, NaN for missing; the width must be the schema's."""
    if raw is None:
        return Vectors(np.full((rows, column.width or 0), np.nan))
    if not isinstance(raw, np.ndarray) and scipy.sparse.issparse(raw):
        raw = raw.toarray()
    if isinstance(raw, pa.FixedSizeListArray) and raw.null_count == 0:
        raw = numpy_of(raw.flatten()).reshape(len(raw), raw.type.list_size)
    if isinstance(raw, np.ndarray):
        if column.width is not None:
            _check_width(raw.shape[1], column.width, 0, where)
        return MatrixVectors(raw.astype(np.float64, copy=False), where)
    items = _items(raw)
    width = column.width or next((len(v) for v in items if hasattr(v, "__len__")), 0)
    values = np.full((len(items), width), np.nan)
    for i, item in enumerate(items):
        if item is not None:
            values[i] = _vector_of(item, width, i, where)
    if column.width is not None:
        _check_width(values.shape[1], column.width, 0, where)
    return Vectors(_finite(values, where))


def _items(raw: Any) -> list[Any]:
    """What each row has; None for a missing one, which pandas writes as NaN, NaT or NA among lists, too."""
    if isinstance(raw, pa.Array):
        return cast(list[Any], raw.to_pylist())
    return [None if canon.is_one(item) and canon.text(item) is None else item for item in raw]


def _finite(values: Floats, where: Where) -> Floats:
    if has_infinity(values):
        row, position = (int(i) for i in np.argwhere(np.isinf(values))[0])
        raise where.error(
            row,
            f"position {position} is {values[row, position]}, which cannot be added up",
            "replace infinities by NaN (missing) or clip them.",
        )
    return values


class MatrixVectors(_OfMatrix, Vectors):
    """The rows of a matrix: adding up and scoring notice what is infinite."""

    def __init__(self, matrix: Floats, where: Where) -> None:
        self._keep(matrix, _where=where)

    _where: Where

    @cached_property
    def values(self) -> Floats:
        """The matrix, all of it finite or NaN."""
        return _finite(self._given, self._where)


def _vector_of(item: Any, width: int, row: int, where: Where) -> Floats:
    try:
        if isinstance(item, str):
            raise TypeError
        _check_width(len(item), width, row, where)
        return np.array([np.nan if v is None else float(v) for v in item])
    except (TypeError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise where.error(row, f"{str(item)[:60]!r} is not a vector", "give a list of numbers of one length.") from None


def _check_width(found: int, wanted: int, row: int, where: Where) -> None:
    if found != wanted:
        raise where.error(row, f"a vector of {found} numbers, not {wanted}", "give vectors of one width in every row.")


def whole_columns(matrix: Any, columns: Sequence[Column], missing: Sequence[str]) -> dict[str, MatrixCodes]:
    """The category columns of a large matrix of whole numbers; {} where they cannot be read in one pass."""
    if not (isinstance(matrix, np.ndarray) and matrix.dtype == np.int64 and matrix.ndim == 2):
        return {}
    places = {c.name: at for c in columns if (at := matrix_column(c.reads)) is not None}
    kernels = gate.kernels("codes", len(matrix) * len(places)) if places else None
    if kernels is None or max(places.values()) >= matrix.shape[1]:
        return {}
    whole = WholeMatrix(matrix, kernels)
    marks = {c.name: (*missing, *c.missing) for c in columns if c.name in places}
    return {n: MatrixCodes(whole, places[n], m) for n, m in marks.items() if not any(map(is_whole, m))}


def bag(raw: Any, column: Column, where: Where) -> Bag:
    """Amounts under slots: a matrix (slot = position), lists of words, or dicts of word → amount."""
    if isinstance(raw, np.ndarray) or scipy.sparse.issparse(raw):
        return _bag_of_matrix(raw, column, where)
    items = _items(raw)
    mapped = isinstance(raw, pa.MapArray)  # Arrow's own dicts come as lists of pairs
    has = np.array([item is not None for item in items], dtype=bool)
    slots: dict[str, int] = {}
    given: list[list[int]] = []
    amounts: list[float] = []
    for i, item in enumerate(items):
        if isinstance(item, Mapping) or mapped:
            given_pairs = item.items() if isinstance(item, Mapping) else item or ()
            each = [(canon.text(word), _amount(n, word, i, where)) for word, n in given_pairs if n is not None]
            pairs = [(word, n) for word, n in each if n != 0]  # none of a word is no word
        elif item is None or (isinstance(item, Sequence) and not isinstance(item, (str, bytes))):
            pairs = [(canon.text(word), 1.0) for word in item or ()]
        else:
            raise where.error(
                i,
                f"{str(item)[:60]!r} is not a bag",
                "give a list of words, a dict of word → count, or a matrix; text.split() makes a list of a text.",
            )
        given.append([slots.setdefault(word, len(slots)) for word, _ in pairs if word is not None])
        amounts += [n for word, n in pairs if word is not None]
    indptr = np.concatenate(([0], np.cumsum([len(g) for g in given]))).astype(np.int64)
    indices = np.array([j for g in given for j in g], dtype=np.int64)
    matrix = scipy.sparse.csr_array(
        (np.array(amounts, dtype=np.float64), indices, indptr), shape=(len(items), len(slots))
    )
    return Bag(list(slots), _tidy(matrix, where), has, column.levels, given)


def _amount(value: Any, word: Any, row: int, where: Where) -> float:
    try:
        return float(value)
    except (TypeError, ValueError):
        raise where.error(
            row, f"the amount of {str(word)[:60]!r} is {str(value)[:60]!r}", "give a number of at least 0."
        ) from None


def _bag_of_matrix(raw: Any, column: Column, where: Where) -> Bag:
    matrix = _compressed(raw) if isinstance(raw, np.ndarray) else scipy.sparse.csr_array(raw, dtype=np.float64)
    if column.width is not None:
        _check_width(matrix.shape[1], column.width, 0, where)
    return MatrixBag(matrix, where, column.levels)


class MatrixBag(_OfMatrix, Bag):
    """The bags of a matrix: counting checks it while adding it up."""

    def __init__(self, matrix: Any, where: Where, levels: int | None) -> None:
        has = np.ones(matrix.shape[0], dtype=bool)
        self._keep(matrix, slots=positions(matrix.shape[1]), has=has, levels=levels, given=None, _where=where)

    _where: Where

    @cached_property
    def matrix(self) -> Any:
        """The matrix without zeros, and no index twice in a row."""
        return self._given if is_plain(self._given) else _tidy(self._given, self._where)

    def take(self, rows: Ints | Bools) -> Bag:
        """The block of some of the rows."""
        return Bag(self.slots, self.matrix, self.has, self.levels).take(rows)


def _compressed(dense: np.ndarray[Any, Any]) -> Any:
    """A dense matrix by its non-zeros, several times faster than SciPy's way through pairs of indices."""
    flat = np.flatnonzero(dense)
    there = np.count_nonzero(dense, axis=1)
    index = np.int32 if max(len(flat), dense.shape[1]) < 2**31 else np.int64
    indptr = np.concatenate(([0], np.cumsum(there))).astype(index)
    amounts = dense.ravel()[flat].astype(np.float64)
    return scipy.sparse.csr_array((amounts, (flat % max(dense.shape[1], 1)).astype(index), indptr), shape=dense.shape)


def _tidy(matrix: Any, where: Where) -> Any:
    """The matrix with no index twice in a row, no zeros stored and every amount in whole units; the given one stays."""
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        with np.errstate(over="ignore"):
            matrix.sum_duplicates()
    low, high = (matrix.data.min(), matrix.data.max()) if matrix.nnz else (1.0, 1.0)
    if not (low >= 0 and high < np.inf):
        bad = np.flatnonzero(~((matrix.data >= 0) & np.isfinite(matrix.data)))
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise where.error(
            row,
            f"position {int(matrix.indices[bad[0]])} is {matrix.data[bad[0]]}",
            "a bag holds amounts of at least 0; declare a matrix of other numbers as kind 'vector'.",
        )
    if not (np.rint(matrix.data) == matrix.data).all():
        small = np.minimum(matrix.data, 2.0**12)  # larger float64 values are whole multiples of 2⁻⁴⁰ already
        units = np.where(matrix.data < 2.0**12, np.rint(small * BAG_UNIT) / BAG_UNIT, matrix.data)
        matrix = scipy.sparse.csr_array((units, matrix.indices, matrix.indptr), shape=matrix.shape)
        low = units.min()
    if low == 0:
        matrix = matrix.copy()
        matrix.eliminate_zeros()
    return matrix
