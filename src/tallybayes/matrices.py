"""One raw column with several amounts per row → vectors or bags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from . import canon
from .arrow import numpy_of
from .block import BAG_UNIT, Bag, Vectors
from .errors import DataError
from .later import scipy
from .numerics import Floats
from .reading import Where
from .schema import Column


def vector(raw: Any, column: Column, rows: int, where: Where) -> Vectors:
    """Rows × positions of float64, NaN for missing; the width must be the schema's."""
    if raw is None:
        return Vectors(np.full((rows, column.width or 0), np.nan))
    if scipy.sparse.issparse(raw):
        raw = raw.toarray()
    if isinstance(raw, pa.FixedSizeListArray) and raw.null_count == 0:
        raw = numpy_of(raw.flatten()).reshape(len(raw), raw.type.list_size)
    if isinstance(raw, np.ndarray):
        values = raw.astype(np.float64)
    else:
        items = raw.to_pylist() if isinstance(raw, pa.Array) else list(raw)
        width = column.width or next((len(v) for v in items if hasattr(v, "__len__")), 0)
        values = np.full((len(items), width), np.nan)
        for i, item in enumerate(items):
            if item is not None:
                values[i] = _vector_of(item, width, i, where)
    if column.width is not None:
        _check_width(values.shape[1], column.width, 0, where)
    infinite = np.argwhere(np.isinf(values))
    if len(infinite):
        row, position = (int(i) for i in infinite[0])
        raise where.error(
            row,
            f"position {position} is {values[row, position]}, which cannot be added up",
            "replace infinities by NaN (missing) or clip them.",
        )
    return Vectors(values)


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


def bag(raw: Any, column: Column, where: Where) -> Bag:
    """Amounts under slots: a matrix (slot = position), lists of words, or dicts of word → amount."""
    if isinstance(raw, np.ndarray) or scipy.sparse.issparse(raw):
        return _bag_of_matrix(raw, column, where)
    items = raw.to_pylist() if isinstance(raw, pa.Array) else list(raw)
    mapped = isinstance(raw, pa.MapArray)  # Arrow's own dicts come as lists of pairs
    has = np.array([item is not None for item in items], dtype=bool)
    slots: dict[str, int] = {}
    given: list[list[int]] = []
    amounts: list[float] = []
    for i, item in enumerate(items):
        if isinstance(item, Mapping) or mapped:
            given_pairs = item.items() if isinstance(item, Mapping) else item or ()
            pairs = [(canon.text(word), _amount(n, word, i, where)) for word, n in given_pairs if n is not None]
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
    matrix = scipy.sparse.csr_array(raw, dtype=np.float64, copy=True)
    if column.width is not None:
        _check_width(matrix.shape[1], column.width, 0, where)
    slots = [str(j) for j in range(matrix.shape[1])]
    return Bag(slots, _tidy(matrix, where), np.ones(matrix.shape[0], dtype=bool), column.levels)


def _tidy(matrix: Any, where: Where) -> Any:
    with np.errstate(over="ignore"):
        matrix.sum_duplicates()
    bad = np.flatnonzero(~((matrix.data >= 0) & np.isfinite(matrix.data)))
    if len(bad):
        row = int(np.searchsorted(matrix.indptr, bad[0], side="right")) - 1
        raise where.error(
            row,
            f"position {int(matrix.indices[bad[0]])} is {matrix.data[bad[0]]}",
            "a bag holds amounts of at least 0; declare a matrix of other numbers as kind 'vector'.",
        )
    small = matrix.data < 2.0**12  # larger float64 values are whole multiples of 2⁻⁴⁰ already
    matrix.data[small] = np.rint(matrix.data[small] * BAG_UNIT) / BAG_UNIT
    matrix.eliminate_zeros()
    return matrix
