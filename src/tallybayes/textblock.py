"""A text column of a batch: its strings, cut into tokens when somebody asks."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np
import pyarrow as pa

from .arrow import array, numpy_of
from .block import WORDS, Bag, Groups, N
from .counts import Sheet
from .exact import count_kernels, sums
from .later import scipy
from .numerics import Bools, Ints
from .text import Tokeniser
from .tokens import Tokens, tokenised
from .workers import parallel, threads

_TOKENS_PER_THREAD = 1 << 18  # a thread costs about as much as counting this many


@dataclass(frozen=True)
class Texts:
    """Strings, null for missing, and how to cut them."""

    texts: pa.Array
    tokeniser: Tokeniser
    levels: int | None = None

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.texts)

    def take(self, rows: Ints | Bools) -> Texts:
        """The block of some of the rows."""
        kept = self.texts.filter(array(rows)) if rows.dtype == bool else self.texts.take(array(rows))
        return Texts(kept, self.tokeniser, self.levels)

    def present(self) -> Bools:
        """Which rows have a text, empty ones included."""
        return np.asarray(numpy_of(self.texts.is_valid()))

    def text(self, row: int) -> str | None:
        """The text."""
        value: str | None = self.texts[row].as_py()
        return value

    def receipts(self) -> list[bytes]:
        """The text itself."""
        return [b"-" if t is None else b"=" + t.encode() for t in self.texts.to_pylist()]

    @cached_property
    def tokens(self) -> Tokens:
        """The tokens of every row."""
        return tokenised(self.texts, self.tokeniser)

    @cached_property
    def bag(self) -> Bag:
        """The same as a bag, ready to be scored."""
        found = self.tokens
        indptr = np.zeros(self.rows + 1, dtype=np.int64)
        kernels = count_kernels(len(found.numbers))
        if kernels is not None:
            indices, amounts = np.empty(len(found.numbers), dtype=np.int64), np.empty(len(found.numbers))
            n = kernels.rows(found.numbers, found.ends, len(found.words), indptr, indices, amounts)
            indices, amounts = indices[:n], amounts[:n]
        else:
            row = np.repeat(np.arange(self.rows), np.diff(found.ends, prepend=0))
            key, n = np.unique(row * max(len(found.words), 1) + found.numbers, return_counts=True)
            indices, amounts = key % max(len(found.words), 1), n.astype(np.float64)
            np.cumsum(np.bincount(key // max(len(found.words), 1), minlength=self.rows), out=indptr[1:])
        matrix = scipy.sparse.csr_array((amounts, indices, indptr), shape=(self.rows, len(found.words)))
        return Bag(found.words.to_pylist(), matrix, self.present(), self.levels, _Given(found))

    def sum_by(self, groups: Groups) -> dict[str, Sheet]:
        """Occurrences and texts under each token, and a one for the row."""
        kernels = count_kernels(len(self.tokens.numbers))
        if kernels is None or groups.weights is not None or self.levels is not None:
            return self.bag.sum_by(groups)
        found = self.tokens
        parts = _parts_of(found, groups.labels)
        entries = parallel([partial(_by_class, found, part, groups.labels, kernels) for part in parts])
        slot, label, amount = (np.concatenate([e[i] for e in entries]) for i in range(3))
        n = len(slot)
        out = (np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64), np.empty((n, 2), dtype=np.int64))
        kernels.sorted_by_slot(slot, label, amount, len(found.words), *out)
        rows = groups.take(self.present())
        count = sums(rows.labels, groups.n_labels, [])
        words = Sheet(WORDS, found.words, out[0], np.zeros(n, dtype=np.int64), out[1], out[2])
        return {"words": words, "rows": Sheet.dense([""], groups.n_labels, dict(zip(N, [count], strict=True)))}


def _parts_of(found: Tokens, labels: Ints) -> list[Ints]:
    """The texts class by class, in as many stretches of about equal length as there are threads; no class is cut."""
    order = np.argsort(labels, kind="stable")
    tokens = np.cumsum(np.diff(found.ends, prepend=0)[order])
    total = int(tokens[-1]) if len(tokens) else 0
    count = min(threads(), 1 + total // _TOKENS_PER_THREAD)
    starts = np.flatnonzero(np.diff(labels[order], prepend=-1))  # where each class begins
    ideal = np.searchsorted(tokens, total * np.arange(1, count) / count)
    cuts = sorted({int(starts[np.argmin(np.abs(starts - i))]) for i in ideal.tolist()} - {0}) if len(starts) else []
    return [part for part in np.split(order, cuts) if len(part)] or [order]


def _by_class(found: Tokens, order: Ints, labels: Ints, kernels: Any) -> tuple[Ints, Ints, Ints]:
    most = int(np.diff(found.ends, prepend=0)[order].sum())
    slot, label = np.empty(most, dtype=np.int64), np.empty(most, dtype=np.int64)
    amount = np.empty((most, 2), dtype=np.int64)
    n = kernels.by_class(found.numbers, found.ends, order, labels, len(found.words), slot, label, amount)
    return slot[:n], label[:n], amount[:n]


@dataclass(frozen=True)
class _Given:
    """The tokens of each row in the order of the text, as a sequence of sequences."""

    tokens: Tokens

    def __len__(self) -> int:
        return len(self.tokens.ends)

    def __getitem__(self, row: Any) -> Any:
        return self.tokens.of(int(row)).tolist()
