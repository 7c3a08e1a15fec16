"""A column of words whose counts change row by row: only the row's own words and the totals are worked out anew.

    weight_yw = ±[log(m_yw + α) − log(M_y + α·V)]

m are the words of the class (multinomial) or of all other classes, the other way round (complement); M is their sum and
V the number of words known. A row adds its words to m of one class, or to all others, and perhaps new words to V.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...base.arrays import Bools, Floats, Ints
from ...base.arrow import array, numpy_of
from ...base.lazy import scipy
from ...data.blocks import WORDS, Bag
from ...data.schema import Column
from ...exact.counts import Counts
from ...families.calibration import Correction
from ...families.words import product

_SHARP = 0.3  # α for who looks for a class: a word that two of its few rows have says much


class WordColumn:
    """The words of the pool, how often the rows with a label have them, and what they say."""

    dear = 1  # how much work it is to look ahead, beside other columns

    def __init__(
        self, column: Column, block: Bag, counts: Counts, classes: tuple[str, ...], way: tuple[bool, str, float],
        factor: float | Floats, weight: float, correction: Correction | None,
    ) -> None:  # fmt: skip
        self.complement, amount, self.alpha = way
        self.weight = weight
        self.matrix = block.matrix.copy()
        if amount == "documents":
            self.matrix.data = np.ones_like(self.matrix.data)
        self.factor = np.broadcast_to(factor, block.rows)[:, None]
        self.classes = len(classes)
        slots = array(list(block.slots), pa.string())
        sheet = counts.sheet("words", WORDS)
        at = numpy_of(pc.index_in(slots, value_set=sheet.slots).fill_null(-1)).astype(np.int64)
        table = sheet.table(amount, self.classes)
        self.n = np.where(at[:, None] >= 0, table[at], 0.0) if len(table) else np.zeros((len(slots), self.classes))
        self.total = table.sum(axis=0) if len(table) else np.zeros(self.classes)
        if column.width is None:
            self.seen, self.known = (at >= 0).astype(np.int64), len(sheet.slots)  # rows that have it, one for the rest
        else:
            self.seen, self.known = np.ones(len(slots), dtype=np.int64), column.width
        self.scale = (1.0 if correction is None else correction.weight) * (-1.0 if self.complement else 1.0)
        self.added: Floats | None = None
        if correction is not None and len(correction.cells):
            place = {cell: i for i, cell in enumerate(correction.cells)}
            own = np.array([place.get(s, -1) for s in block.slots], dtype=np.int64)
            table = np.vstack([correction.on(classes), np.zeros((1, self.classes))])[own]
            self.added = product(self.matrix, np.ascontiguousarray(table))
        self.logs = np.zeros((len(slots), self.classes + 1))  # log(m + α), and a one, for words that are known
        self.sharp: Floats | None = None  # log(n + a small α) of them, once a class is looked for
        self._write(np.arange(len(slots)))

    def _spoken(self, n: Floats) -> Floats:
        """m of some n."""
        return n.sum(axis=-1, keepdims=True) - n if self.complement else n

    def _write(self, words: Ints) -> None:
        there = self.seen[words] > 0
        self.logs[words, :-1] = np.where(there[:, None], np.log(self._spoken(self.n[words]) + self.alpha), 0.0)
        self.logs[words, -1] = there
        if self.sharp is not None:
            self.sharp[words] = self._sharpened(words)

    def _sharpened(self, words: Ints) -> Floats:
        return np.where(self.seen[words, None] > 0, np.log(self.n[words] + _SHARP), 0.0)

    def _divisors(self, total: Floats, known: int | Ints) -> Floats:
        """log(M + α·V)."""
        out: Floats = np.log(np.maximum(self._spoken(total) + self.alpha * known, 1e-300))
        return out

    def _row(self, row: int) -> tuple[Ints, Floats]:
        start, stop = self.matrix.indptr[row : row + 2]
        return self.matrix.indices[start:stop], self.matrix.data[start:stop]

    def add(self, row: int, label: int, weight: float, totals: Floats, sign: int = 1) -> None:
        """Count a row of the pool under a class, or take it back."""
        words, x = self._row(row)
        self.n[words, label] += sign * weight * x
        self.total[label] += sign * weight * x.sum()
        before = self.seen[words] > 0
        self.seen[words] += sign
        self.known += int(np.count_nonzero(self.seen[words] > 0)) - int(np.count_nonzero(before))
        self._write(words)

    def parts(self, rows: Ints) -> Floats:
        """What the words of some rows say now, rows × classes, weighted as it is scored."""
        return self._weighted(rows, self._sums(rows))

    def _sums(self, rows: Ints) -> Floats:
        sums = product(self.matrix[rows], self.logs)
        out: Floats = sums[:, :-1] - sums[:, -1:] * self._divisors(self.total, self.known)
        return out

    def _weighted(self, rows: Ints, sums: Floats) -> Floats:
        said = self.scale * sums
        out: Floats = self.factor[rows] * (said if self.added is None else said + self.added[rows])
        return out

    def finding(self, rows: Ints) -> Floats:
        """What the words of some rows say for who looks for a class, rows × classes.

        weight · Σ_w x_w·[log(n_yw + 0.3) − log(N_y + 0.3·V)] / √(Σ_w x_w), n and N of the class itself in any reading.
        """
        if self.sharp is None:
            self.sharp = self._sharpened(np.arange(len(self.n)))
        some = self.matrix[rows]
        known = product(some, np.ascontiguousarray(self.logs[:, -1:]))
        sums = product(some, self.sharp) - known * np.log(self.total + _SHARP * max(self.known, 1))
        length = np.asarray(some.sum(axis=1), dtype=np.float64)[:, None]
        return np.asarray(self.weight * sums / np.sqrt(np.maximum(length, 1.0)))

    def imagined(self, rows: Ints, labels: Ints, weights: Floats, totals: Floats, sample: Ints) -> Floats:
        """What the words of the sample say with each row counted, by itself, under its label: rows × sample × classes.

        log(m + x + α) − log(m + α) of the row's words that the other has, less what the divisors have grown by for each
        of its known words; words new with the row say their whole.
        """
        some, base = self.matrix[sample], self._sums(sample)
        length = product(some, np.ascontiguousarray(self.logs[:, -1:]))
        each, of = np.unique(rows, return_inverse=True)
        theirs = self.matrix[each]
        by_row = np.zeros(len(each))
        by_row[of] = weights
        x = theirs.data * np.repeat(by_row, np.diff(theirs.indptr))
        new = self.seen[theirs.indices] == 0
        fresh = np.asarray((some @ _like(theirs, new.astype(np.float64)).T).toarray()).T[of]
        m = self._spoken(self.n[theirs.indices])
        grown = np.where(new[:, None], np.log(x[:, None] + self.alpha), np.log1p(x[:, None] / (m + self.alpha)))
        more = np.asarray(_like(theirs, new.astype(np.float64)).sum(axis=1)).astype(np.int64)[of]
        amount = np.asarray(_like(theirs, x).sum(axis=1))[of]
        touched: Bools = np.arange(self.classes) == labels[:, None]
        divisors = self._divisors(self.total, self.known)
        divided = self._divisors(self.total + amount[:, None] * touched, self.known + more[:, None])
        out: Floats = base - length * (divided - divisors)[:, None, :]
        if new.any():
            out -= fresh[:, :, None] * divided[:, None, :]
        for y in range(self.classes):
            hit = touched[:, y] != self.complement
            if hit.any():
                gains = np.asarray((some @ _like(theirs, grown[:, y]).T).toarray()).T
                out[hit, :, y] += gains[of[hit]]
            if not hit.all() and new.any():
                out[~hit, :, y] += fresh[~hit] * np.log(self.alpha)
        return self._weighted(sample, out)


def _like(matrix: Any, data: Floats) -> Any:
    """A sparse matrix of the same places."""
    return scipy.sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
