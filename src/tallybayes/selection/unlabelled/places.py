"""What the columns of all rows hold as sparse matrices of ones: where EM counts, each step one product.

A category has a place for each value, a number for each tenth of the rows, a text for each of its words, counted once
in a text. Words that a single row has say nothing about the others, and are left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.arrays import Floats, Ints
from ...base.lazy import scipy
from ...data.blocks import Bag, Block, Codes, Numbers

CUTS = 10  # of a number: so many parts hold about the same number of rows
EVIDENCE, GROWTH = 10.0, 0.25  # a text of n words says as much as 10 · n^(1/4) of them: the others repeat these


@dataclass(frozen=True, eq=False)
class ColumnPlaces:
    """One or more columns of all rows: rows × places, the columns one after the other."""

    matrix: Any  # a scipy.sparse.csr_array of ones
    starts: Ints  # the first place of each column
    reach: Floats | None = None  # what a row's words are multiplied with, since they repeat each other
    slots: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of each column: its name, and its values if it has names

    @property
    def words(self) -> bool:
        """Whether this is a column of words."""
        return self.reach is not None

    def per_column(self, counts: Floats) -> Floats:
        """Counts of places summed by column, and told to every place of it."""
        sums = np.add.reduceat(counts, self.starts, axis=0)
        return np.asarray(np.repeat(sums, np.diff([*self.starts, len(counts)]), axis=0))


def places(first: Mapping[str, Block], second: Mapping[str, Block]) -> list[ColumnPlaces]:
    """The places of the columns of two tables, the rows of the second after those of the first."""
    out: list[ColumnPlaces] = []
    codes: list[tuple[str, tuple[str, ...], Ints, int]] = []
    for name, block in first.items():
        other = second[name]
        if isinstance(block, Codes) and isinstance(other, Codes):
            codes.append((name, *_coded(block, other)))
        elif isinstance(block, Numbers) and isinstance(other, Numbers):
            codes.append((name, (), *_cut(np.concatenate([block.values, other.values]))))
        elif isinstance(block, Bag) and isinstance(other, Bag):
            out += _worded(name, block, other)
    codes = [each for each in codes if each[-1] > 1]
    return [*([_beside(codes)] if codes else []), *out]


def _coded(block: Codes, other: Codes) -> tuple[tuple[str, ...], Ints, int]:
    """The values of a category, their codes in both tables, and how many there are."""
    at: dict[str, int] = {}
    both = []
    for each in (block, other):
        new = np.array([at.setdefault(slot, len(at)) for slot in each.slots] or [0], dtype=np.int64)
        both.append(np.where(each.codes >= 0, new[each.codes], -1))
    return tuple(at), np.concatenate(both), len(at)


def _cut(values: Floats) -> tuple[Ints, int]:
    """The part of each number, −1 where it is missing."""
    there = ~np.isnan(values)
    cuts = np.unique(np.quantile(values[there], np.arange(1, CUTS) / CUTS)) if there.any() else np.zeros(0)
    return np.where(there, np.searchsorted(cuts, values, side="right"), -1), len(cuts) + 1


def _beside(codes: Sequence[tuple[str, tuple[str, ...], Ints, int]]) -> ColumnPlaces:
    """Columns of one value each as one matrix."""
    starts = np.cumsum([0, *(each[-1] for each in codes)])
    table = np.stack([each[2] for each in codes], axis=1)
    there = table >= 0
    row, column = np.nonzero(there)
    at = table[there] + starts[column]
    indptr = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    matrix = scipy.sparse.csr_array((np.ones(len(row)), at, indptr), shape=(len(table), int(starts[-1])))
    return ColumnPlaces(matrix, starts[:-1], slots=tuple(each[:2] for each in codes))


def _worded(name: str, block: Bag, other: Bag) -> list[ColumnPlaces]:
    """The words of a column, each once in a row; nothing where no word is in two rows."""
    at = {slot: i for i, slot in enumerate(block.slots)}
    new = np.array([at.setdefault(slot, len(at)) for slot in other.slots] or [0], dtype=np.int64)
    second = scipy.sparse.csr_array(
        (other.matrix.data, new[other.matrix.indices], other.matrix.indptr), shape=(other.rows, len(at))
    )
    first = scipy.sparse.csr_array(
        (block.matrix.data, block.matrix.indices, block.matrix.indptr), shape=(block.rows, len(at))
    )
    whole = scipy.sparse.vstack([first, second]).tocsr()
    held = np.flatnonzero(np.bincount(whole.indices, minlength=len(at)) > 1)
    if not len(held):
        return []
    matrix = whole[:, held].tocsr()
    matrix.data = np.ones(matrix.nnz)
    length = np.maximum(np.diff(matrix.indptr), 1)
    return [ColumnPlaces(matrix, np.zeros(1, dtype=np.int64), EVIDENCE * length ** (GROWTH - 1.0), ((name, ()),))]
