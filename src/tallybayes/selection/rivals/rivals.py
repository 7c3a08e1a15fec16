"""Rivals to compare with: the most frequent class, the exact-match counter; and rows as points, for others.

A rival is fitted to the same encoded rows as a tally and answers with probabilities. What it keeps in order to answer
is part of the comparison: the counter and the neighbours keep every row they have seen.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pyarrow as pa
import scipy.sparse

from ...base.arrays import Floats, Ints
from ...data import encode
from ...data.blocks import Bag, Block, Codes, Numbers, Vectors
from ...data.copies import row_hashes
from ...data.schema import Schema
from ...data.sources import Source


@dataclass(frozen=True)
class Rows:
    """Encoded rows, batch by batch; class numbers and weights where they are labelled."""

    batches: Sequence[Mapping[str, Block]]
    sizes: Sequence[int]
    labels: Ints
    weights: Floats

    @property
    def rows(self) -> int:
        """How many."""
        return sum(self.sizes)

    @classmethod
    def labelled(cls, source: Source, schema: Schema, classes: Sequence[str]) -> Rows:
        """The rows of a source that have a label, with their class among these."""
        batches, sizes, labels, weights = [], [], [], []
        for batch in source.batches():
            read = encode.labelled(schema, batch)
            batches.append(encode.bags(read.blocks))
            sizes.append(len(read.rows))
            labels.append(np.array([classes.index(c) for c in read.classes] or [0], dtype=np.int64)[read.labels])
            weights.append(np.ones(len(read.rows)) if read.weights is None else read.weights)
        return cls(batches, sizes, np.concatenate(labels), np.concatenate(weights))

    @classmethod
    def plain(cls, source: Source, schema: Schema) -> Rows:
        """All rows of a source, for predicting."""
        batches, sizes = [], []
        for batch in source.batches():
            batches.append(encode.bags(encode.blocks(schema, batch)))
            sizes.append(batch.rows)
        return cls(batches, sizes, np.zeros(0, dtype=np.int64), np.zeros(0))

    def hashes(self) -> Any:
        """64 bits per row, equal for equal rows."""
        each = [row_hashes(b, n) for b, n in zip(self.batches, self.sizes, strict=True)]
        return np.concatenate(each) if each else np.zeros(0, dtype=np.uint64)

    def column(self, name: str) -> Iterator[Any]:
        """One column, batch by batch."""
        return (b[name] for b in self.batches)


class Fitted(Protocol):
    """Something that answers."""

    def predict_proba(self, rows: Rows) -> Floats:
        """P(class given row), rows × classes."""
        ...


class Rival(Protocol):
    """Something to be fitted to rows."""

    def __call__(self, rows: Rows, schema: Schema, n_classes: int) -> Fitted:
        """The rival after seeing the rows."""
        ...


def class_shares(rows: Rows, n_classes: int) -> Floats:
    """The share of each class."""
    n = np.bincount(rows.labels, weights=rows.weights, minlength=n_classes)
    return np.asarray(n / n.sum(), dtype=np.float64)


@dataclass(frozen=True)
class Majority:
    """The share of each class, whatever the row: the answer is the most frequent one."""

    share: Floats

    @classmethod
    def fit(cls, rows: Rows, schema: Schema, n_classes: int) -> Majority:
        """The shares."""
        return cls(class_shares(rows, n_classes))

    def predict_proba(self, rows: Rows) -> Floats:
        """The same for every row."""
        return np.tile(self.share, (rows.rows, 1))


@dataclass(frozen=True)
class ExactMatch:
    """The obvious way: among the rows seen that equal this one, how frequent is each class? If none does, the shares.

    This is the full joint distribution as a table of the rows that occurred; with many columns no row occurs twice.
    """

    known: Any  # hashes, sorted
    share_of: Floats  # per hash
    share: Floats

    @classmethod
    def fit(cls, rows: Rows, schema: Schema, n_classes: int) -> ExactMatch:
        """The table of different rows."""
        known, at = np.unique(rows.hashes(), return_inverse=True)
        n = np.bincount(at * n_classes + rows.labels, weights=rows.weights, minlength=len(known) * n_classes)
        table = n.reshape(len(known), n_classes)
        return cls(known, table / table.sum(axis=1, keepdims=True), class_shares(rows, n_classes))

    def seen(self, rows: Rows) -> Any:
        """Which rows have been seen before."""
        asked = rows.hashes()
        at = np.minimum(np.searchsorted(self.known, asked), len(self.known) - 1)
        return self.known[at] == asked

    def predict_proba(self, rows: Rows) -> Floats:
        """The shares among equal rows."""
        asked = rows.hashes()
        at = np.minimum(np.searchsorted(self.known, asked), len(self.known) - 1)
        return np.where((self.known[at] == asked)[:, None], self.share_of[at], self.share)


@dataclass(frozen=True)
class Features:
    """Columns as matrices, learnt from training rows: numbers, categories as codes, words as counts."""

    numbers: Sequence[tuple[str, Floats, Floats]]  # column, mean and deviation of each position
    categories: Sequence[tuple[str, pa.Array]]  # column, its values
    words: Sequence[tuple[str, pa.Array]]

    @classmethod
    def of(cls, rows: Rows, schema: Schema, scaled: bool = True) -> Features:
        """What the training rows have; numbers that are not to be scaled stay in their own units."""
        numbers: list[tuple[str, Floats, Floats]] = []
        categories: list[tuple[str, pa.Array]] = []
        words: list[tuple[str, pa.Array]] = []
        for column in schema.counted:
            blocks = list(rows.column(column.name))
            if column.about.moments:
                x = np.concatenate([_matrix(b) for b in blocks])
                there = ~np.isnan(x)
                n = np.maximum(there.sum(axis=0), 1)
                mean = np.where(there, x, 0.0).sum(axis=0) / n
                deviation = np.sqrt((np.where(there, x - mean, 0.0) ** 2).sum(axis=0) / n)
                numbers.append((column.name, mean, np.where((deviation > 0) & scaled, deviation, 1.0)))
            else:
                used = {s for b in blocks for s in _used(b)}
                (categories if column.like == "category" else words).append(
                    (column.name, pa.array(sorted(used), pa.string()))
                )
        return cls(numbers, categories, words)

    def number_matrix(self, rows: Rows) -> Floats:
        """Numbers in units of their deviation about their mean; NaN where missing."""
        each = [np.concatenate([(_matrix(b) - m) / s for b in rows.column(n)]) for n, m, s in self.numbers]
        return np.hstack([np.zeros((rows.rows, 0)), *each])

    def code_matrix(self, rows: Rows) -> Ints:
        """The number of each category's value; −1 where it is missing or was never seen."""
        out = np.full((rows.rows, len(self.categories)), -1, dtype=np.int64)
        for j, (name, values) in enumerate(self.categories):
            out[:, j] = np.concatenate([_numbers_of(b.slots, values)[b.codes] for b in rows.column(name)])
        return out

    def one_hot(self, rows: Rows) -> scipy.sparse.csr_array:
        """A one under each category's value."""
        codes = self.code_matrix(rows)
        offsets = np.concatenate(([0], np.cumsum([len(v) for _, v in self.categories]))).astype(np.int64)
        row, column = np.nonzero(codes >= 0)
        at = codes[row, column] + offsets[column]
        return scipy.sparse.csr_array((np.ones(len(row)), (row, at)), shape=(rows.rows, int(offsets[-1])))

    def word_matrix(self, rows: Rows) -> scipy.sparse.csr_array:
        """How often each word occurs."""
        columns = []
        for name, words in self.words:
            each = []
            for b in rows.column(name):
                at = _numbers_of(b.slots, words)[:-1]
                known = np.flatnonzero(at >= 0)
                pick = scipy.sparse.csr_array(
                    (np.ones(len(known)), (known, at[known])), shape=(len(b.slots), len(words))
                )
                each.append(b.matrix @ pick)
            columns.append(scipy.sparse.vstack(each, format="csr"))
        if not columns:
            return scipy.sparse.csr_array((rows.rows, 0))
        return scipy.sparse.csr_array(scipy.sparse.hstack(columns, format="csr"))


def _matrix(block: Numbers | Vectors) -> Floats:
    return block.values[:, None] if isinstance(block, Numbers) else block.values


def _used(block: Codes | Bag) -> list[str]:
    at = block.codes[block.codes >= 0] if isinstance(block, Codes) else block.matrix.indices
    return [block.slots[i] for i in np.unique(at).tolist()]


def _numbers_of(slots: Sequence[str], values: pa.Array) -> Ints:
    """The number of each slot among some values, −1 if it is none of them, and a last −1 for a missing one."""
    place = {v: i for i, v in enumerate(values.to_pylist())}
    return np.array([*(place.get(s, -1) for s in slots), -1], dtype=np.int64)
