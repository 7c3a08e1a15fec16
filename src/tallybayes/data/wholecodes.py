"""The category columns of a matrix of whole numbers: counted and scored row by row, all of them in one pass.

Each column is a block of `Codes` like any other. Its codes, for which the matrix has to be turned, are made when
somebody asks for them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from types import ModuleType
from typing import Any

import numpy as np

from ..base.arrays import Bools, Ints
from ..base.arrow import array
from ..exact.limbs import Limbs
from ..exact.sheet import Sheet
from .blocks import Codes, Groups
from .values import SMALL_RANGE, category

_VALUES = 256  # a column of values from 0 to below is counted by place
_MOST = 1 << 20  # places of all tables together: 8 MB


class WholeMatrix:
    """A matrix of whole numbers, and what was worked out for all of its columns at once."""

    def __init__(self, matrix: Ints, kernels: ModuleType) -> None:
        self.matrix = np.ascontiguousarray(matrix)
        self._kernels = kernels
        self._counted: tuple[Ints, Ints, Bools] | None = None

    @cached_property
    def turned(self) -> tuple[Any, Ints, Ints]:
        """The columns one after the other in int32, and the smallest and largest value of each."""
        rows, width = self.matrix.shape
        out = np.empty((width, rows), dtype=np.int32)
        low, high = np.full(width, np.iinfo(np.int64).max), np.full(width, np.iinfo(np.int64).min)
        self._kernels.turned(self.matrix, out, low, high)
        return out, low, high

    def counts(self, column: int, groups: Groups) -> Ints | None:
        """Values × classes of one column; None where a value has no place, or all places would be too many."""
        width = self.matrix.shape[1]
        if groups.weights is not None or width * _VALUES * groups.n_labels > _MOST:
            return None
        if self._counted is None or self._counted[0] is not groups.labels:
            table = np.zeros((width, _VALUES, groups.n_labels), dtype=np.int64)
            outside = np.zeros(width, dtype=np.uint64)
            self._kernels.count_matrix(self.matrix, groups.labels, table.reshape(-1), groups.n_labels, outside)
            self._counted = (groups.labels, table, outside == 0)
        _, table, whole = self._counted
        return table[column] if whole[column] else None


class MatrixCodes(Codes):
    """One column of such a matrix; `missing` has no whole number."""

    def __init__(self, whole: WholeMatrix, column: int, missing: Sequence[str]) -> None:
        self.__dict__.update(whole=whole, column=column, _missing=missing)  # a block is frozen

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

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.whole.matrix)

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
