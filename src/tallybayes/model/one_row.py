"""The scores of one row in plain Python: NumPy takes longer to be called than a row takes to be added up.

S = b + Σ weight · part        as in `posterior`; a reader for each column (`row_readers`)
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from operator import add
from typing import Any

import numpy as np

from ..base import canon
from ..base.arrays import Floats
from ..data.batch import MATRIX
from ..data.schema import Schema
from ..data.values import NotPlain
from ..families import Belief
from ..families.settings import Settings
from .posterior import calibrated, prior_shift
from .row_readers import Row, reader

_MOST_CLASSES = 64  # with more of them NumPy adds faster
_LISTED = ("bag", "vector", "pair")  # kinds whose value in one row may have a length


def lone(rows: Any, schema: Schema) -> Any:
    """A dict that may be a row, or the one row of a matrix; None for any other data.

    The first value that is there tells a dict of columns, before anything is built for it.
    """
    kind = type(rows)
    if kind is dict:
        return None if _is_column(rows, schema) else rows
    if kind is list and len(rows) == 1 and type(rows[0]) is dict:
        return rows[0]
    if kind is np.ndarray and rows.ndim == 2 and len(rows) == 1 and rows.dtype.kind in "fiub" and rows.itemsize <= 8:
        return rows[0]
    return None


def _is_column(given: Mapping[Any, Any], schema: Schema) -> bool:
    """Whether a dict holds a column of the schema where a row would hold a lone value."""
    for column in schema.counted:
        value = None if column.kind in _LISTED else given.get(column.reads)
        if value is not None:
            return hasattr(value, "__len__") and not isinstance(value, (str, bytes))
    return not canon.is_one(given.get(schema.target))


class RowScorer:
    """The readers of a model's columns, and the way from their sum to scores."""

    def __init__(self, schema: Schema, beliefs: Mapping[str, Belief], settings: Settings, start: Floats) -> None:
        self._made_of, self._start = (schema, beliefs, settings, start), start.tolist()
        inputs = {name for c in schema.counted for name in c.inputs}
        self._count, self._whole_matrix = len(inputs), MATRIX in inputs
        read = {c.name: reader(c, beliefs.get(c.name), settings, schema.missing) for c in schema.counted}
        order = [*beliefs, *(n for n in read if n not in beliefs)]  # added up in the order of the long way
        self._readers = [] if len(start) > _MOST_CLASSES else [read[n] for n in order]

    def __reduce__(self) -> tuple[Any, ...]:
        """What was remembered is not copied: closures cannot be pickled."""
        return RowScorer, self._made_of

    def scores(self, row: Row | Floats, start: Floats | None = None) -> list[float] | None:
        """start + Σ weight · part; None where the long way has to be gone, or no class is possible."""
        begin: list[float] = self._start if start is None else start.tolist()
        try:
            out = self._added(row if type(row) is dict else self._named(row), begin)
        except (NotPlain, KeyError):
            return None
        _, _, settings, own = self._made_of
        if settings.curves:
            bent = calibrated(settings, np.array([out]), prior_shift(own if start is None else start, own))
            out = bent[0].tolist()
        return out if max(out) > -math.inf else None

    def _added(self, row: Row, out: list[float]) -> list[float]:
        if len(row) != self._count and {*map(type, row)} != {str}:  # 1 and "1" would be one name
            raise NotPlain
        silent = True
        for read in self._readers:
            said = read(row)
            if said is not None:
                out, silent = list(map(add, out, said)), False
        if silent:  # perhaps not a row at all
            raise NotPlain
        return out

    def _named(self, row: Any) -> Row:
        """The row of a matrix by the names of its columns."""
        if self._whole_matrix:
            if self._count > 1:
                raise NotPlain
            return {MATRIX: row}
        return dict(zip(_matrix_names(len(row)), row.tolist(), strict=True))


@lru_cache(maxsize=8)
def _matrix_names(width: int) -> tuple[str, ...]:
    return tuple(f"{MATRIX}{j}" for j in range(width))


def posterior(joint: list[float]) -> tuple[list[float], float]:
    """exp(score − the largest) of each class, and their sum."""
    top = max(joint)
    each = [math.exp(s - top) for s in joint]
    return each, math.fsum(each)


def probabilities(joint: list[float]) -> Floats:
    """P(class given row), one row."""
    each, total = posterior(joint)
    return np.array([[p / total for p in each]])


def log_probabilities(joint: list[float]) -> Floats:
    """log P(class given row), one row."""
    top, log_total = max(joint), math.log(posterior(joint)[1])
    return np.array([[(s - top) - log_total for s in joint]])  # beside a score of 1e18 the sum would be lost
