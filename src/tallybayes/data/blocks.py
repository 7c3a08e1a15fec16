"""What one column of a batch adds: Codes, Numbers, Vectors or a Bag.

A block is a column after reading: typed, canonical, missing values marked. Counting asks it for `sum_by(class)`,
scoring reads its arrays. Nothing else is ever known about a row.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
import pyarrow as pa

from ..base.arrays import Bools, Floats, Ints
from ..base.canon import number_text
from ..exact import entries
from ..exact.cells import Cells, distinct
from ..exact.dense import BagSheet, MomentSheet, positions, slot_texts
from ..exact.limbs import Limbs
from ..exact.moments import MOMENTS
from ..exact.sheet import Sheet
from ..exact.sums import cell_sums, code_sheet, exact_sums, moments, whole_and_small

if TYPE_CHECKING:
    import scipy.sparse

WORDS = ("n", "documents")
N = ("n",)
_ABREAST = 16  # columns of numbers: a copy of so many is small, and more are not added faster
BAG_UNIT = float(1 << 40)  # real-valued bags (tf-idf) are counted in units of 2⁻⁴⁰


@dataclass(frozen=True)
class Groups:
    """Which class each row belongs to, and what it weighs (None: one)."""

    labels: Ints
    n_labels: int
    weights: Floats | None = None

    def take(self, rows: Ints | Bools) -> Groups:
        """The same for some of the rows."""
        return Groups(self.labels[rows], self.n_labels, None if self.weights is None else self.weights[rows])

    def factors(self, *more: Floats) -> list[Floats]:
        """The weights, if there are any, and further factors of a product to be summed."""
        return [*more] if self.weights is None else [self.weights, *more]


class Block(Protocol):
    """One column of a batch, ready to be counted or scored."""

    @property
    def rows(self) -> int:
        """How many rows."""
        ...

    def take(self, rows: Ints | Bools) -> Block:
        """The block of some of the rows."""
        ...

    def sum_by(self, groups: Groups) -> dict[str, Sheet]:
        """What the rows add to each class, sheet by sheet."""
        ...

    def present(self) -> Bools:
        """Which rows have a value."""
        ...

    def text(self, row: int) -> str | None:
        """A row's value as a person would write it; None if missing."""
        ...

    def receipts(self) -> list[bytes]:
        """For each row, bytes that are equal exactly where the values are."""
        ...


@dataclass(frozen=True)
class Codes:
    """A category column: slot names and a code per row, −1 for missing."""

    slots: Sequence[str]
    codes: Ints

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.codes)

    def take(self, rows: Ints | Bools) -> Codes:
        """The block of some of the rows."""
        return Codes(self.slots, self.codes[rows])

    def present(self) -> Bools:
        """Which rows have a value."""
        return self.codes >= 0

    def sum_by(self, groups: Groups) -> dict[str, Sheet]:
        """A one (or the row's weight) under the value."""
        return {"values": code_sheet(self.slots, self.codes, groups.labels, groups.n_labels, groups.weights)}

    def text(self, row: int) -> str | None:
        """The value."""
        code = int(self.codes[row])
        return self.slots[code] if code >= 0 else None

    def receipts(self) -> list[bytes]:
        """The value's text."""
        raw = [b"=" + s.encode("utf-8", "surrogatepass") for s in self.slots] + [b"-"]
        return [raw[c] for c in self.codes.tolist()]


@dataclass(frozen=True)
class Numbers:
    """A number column: float64 values, NaN for missing, and the cells they fall into if the schema has any."""

    values: Floats
    cells: Cells | None = None

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.values)

    def take(self, rows: Ints | Bools) -> Numbers:
        """The block of some of the rows."""
        return replace(self, values=self.values[rows])

    def present(self) -> Bools:
        """Which rows have a value."""
        return ~np.isnan(self.values)

    def sum_by(self, groups: Groups) -> dict[str, Sheet]:
        """(1, x, x²) for the class, and a one under the value's cell."""
        return next(sum_numbers([self], groups))

    def _by_cell(self, cells: Cells, groups: Groups) -> Sheet:
        """What each class has in the cells that hold any values."""
        if groups.weights is None:
            short = cell_sums(self.values, groups.labels, groups.n_labels, cells)
            if short is not None:
                codes, sums = short
                return Sheet.dense(cells.slot_names(codes), groups.n_labels, {"n": sums})
        there = self.present()
        kept = groups.take(there)
        codes, cell = distinct(cells.codes(self.values[there]))
        return code_sheet(cells.slot_names(codes), cell, kept.labels, kept.n_labels, kept.weights)

    def text(self, row: int) -> str | None:
        """The number, to ten digits."""
        value = float(self.values[row])
        return None if np.isnan(value) else number_text(float(f"{value:.10g}"))

    def receipts(self) -> list[bytes]:
        """The eight bytes of the number."""
        return [b"-" if v != v else b"=" + struct.pack("<d", v + 0.0) for v in self.values.tolist()]


def sum_numbers(columns: Sequence[Numbers], groups: Groups) -> Iterator[dict[str, Sheet]]:
    """What each of some columns of numbers adds: their moments are added side by side, which is faster."""
    for first in range(0, len(columns), _ABREAST):
        some = columns[first : first + _ABREAST]
        values = some[0].values[:, None] if len(some) == 1 else np.stack([c.values for c in some], axis=1)
        found = moments(groups.labels, groups.n_labels, values, groups.weights)
        assert found is not None  # a number is finite
        for j, column in enumerate(some):
            own = slice(j * groups.n_labels, (j + 1) * groups.n_labels)
            sums = {a: Limbs(m.lowest, m.array[own]) for a, m in zip(MOMENTS, found, strict=True)}
            sheets = {"moments": Sheet.dense([""], groups.n_labels, sums)}
            if column.cells is not None:
                sheets["cells"] = column._by_cell(column.cells, groups)
            yield sheets


@dataclass(frozen=True)
class Vectors:
    """A vector column: rows × positions of float64, NaN for missing."""

    values: Floats

    @property
    def rows(self) -> int:
        """How many rows."""
        return len(self.values)

    @property
    def unchecked(self) -> Floats:
        """The values, or such as may be infinite, where nobody has looked yet."""
        return self.values

    def take(self, rows: Ints | Bools) -> Vectors:
        """The block of some of the rows."""
        return Vectors(self.values[rows])

    def present(self) -> Bools:
        """Which rows have a value in some position."""
        return np.asarray(~np.isnan(self.values).all(axis=1))

    def sum_by(self, groups: Groups) -> dict[str, Sheet]:
        """(1, x, x²) for the class, position by position."""
        sums = moments(groups.labels, groups.n_labels, self.unchecked, groups.weights)
        if sums is None:
            raise ValueError(f"a vector is not finite: {self.values[~np.isfinite(self.values)][0]}")
        every = np.arange(groups.n_labels)
        return {"moments": MomentSheet(MOMENTS, positions(self.unchecked.shape[1]), sums, every)}

    def text(self, row: int) -> str | None:
        """The first few numbers."""
        if not self.present()[row]:
            return None
        shown = [number_text(float(f"{v:.4g}")) if v == v else "missing" for v in self.values[row, :4].tolist()]
        return "(" + ", ".join(shown) + (", …)" if self.values.shape[1] > 4 else ")")

    def receipts(self) -> list[bytes]:
        """The bytes of the numbers."""
        one_nan = np.where(np.isnan(self.values), np.nan, self.values + 0.0)  # NaN has many bit patterns, 0 has two
        return [row.tobytes() for row in np.ascontiguousarray(one_nan, dtype="<f8")]


@dataclass(frozen=True)
class Bag:
    """A bag column: per row, amounts under slots. `given` keeps the slots in the order they were written."""

    slots: Sequence[str]
    matrix: scipy.sparse.csr_array  # rows × slots, no zeros stored, no index twice in a row
    has: Bools  # an empty bag differs from a missing one
    levels: int | None = None
    given: Any = None  # per row, the numbers of its slots

    @property
    def rows(self) -> int:
        """How many rows."""
        return int(self.matrix.shape[0])

    def take(self, rows: Ints | Bools) -> Bag:
        """The block of some of the rows."""
        numbers = np.flatnonzero(rows) if rows.dtype == bool else rows
        given = None if self.given is None else [self.given[i] for i in numbers.tolist()]
        return replace(self, matrix=self.matrix[numbers], has=self.has[numbers], given=given)

    @property
    def unchecked(self) -> Any:
        """The matrix, or one that may hold what a bag may not, where nobody has looked yet."""
        return self.matrix

    def present(self) -> Bools:
        """Which rows have a bag, empty ones included."""
        return self.has

    def unordered(self) -> Bag:
        """The same bags without the order in which they were written."""
        return self if self.given is None else replace(self, given=None)

    def lengths(self) -> Floats:
        """The sum of the amounts of each row: how many tokens a text has."""
        return np.asarray(self.matrix.sum(axis=1), dtype=np.float64)

    def entries(self) -> tuple[Ints, Ints, Floats]:
        """Row, slot and amount of everything in the bags."""
        row = np.repeat(np.arange(self.rows), np.diff(self.matrix.indptr))
        return row, self.matrix.indices.astype(np.int64), self.matrix.data

    def sum_by(self, groups: Groups) -> dict[str, Sheet]:
        """The amount, and a one for being there at all, under each slot; a one for the row itself."""
        n_labels = groups.n_labels
        rows = groups.take(self.has)
        sheets = {"rows": Sheet.dense([""], n_labels, {"n": exact_sums(rows.labels, n_labels, rows.factors())})}
        if groups.weights is None and self.levels is None:
            table = entries.bag_sums(self.unchecked, groups.labels, n_labels)
            if table is not None:
                every = np.bincount(groups.labels, minlength=n_labels)
                return {"words": BagSheet(WORDS, self.slots, table, every, np.arange(n_labels)), **sheets}
        size, data = len(self.slots) * n_labels, self.matrix.data
        if groups.weights is None and entries.listed(self.matrix, size) and whole_and_small([data], len(data)):
            found = entries.sparse_sums(self.matrix, groups.labels, n_labels)
            used = slot_texts(self.slots).filter(pa.array(found.used))
            sheets["words"] = Sheet.sorted(WORDS, used, found.slot, found.label, found.both)
            if self.levels is None:
                return sheets
        row, slot, amount = self.entries()
        each = groups.take(row)
        if "words" not in sheets:
            key = slot * n_labels + each.labels
            n, documents = exact_sums(key, size, each.factors(amount)), exact_sums(key, size, each.factors())
            sheets["words"] = Sheet.dense(self.slots, n_labels, {"n": n, "documents": documents})
        if self.levels is not None:
            level = np.minimum(np.ceil(amount), self.levels).astype(np.int64)
            pairs, pair = np.unique(slot * (self.levels + 1) + level, return_inverse=True)
            names = [f"{p % (self.levels + 1)} {self.slots[p // (self.levels + 1)]}" for p in pairs.tolist()]
            sums = exact_sums(pair * n_labels + each.labels, len(names) * n_labels, each.factors())
            sheets["levels"] = Sheet.dense(names, n_labels, {"n": sums})
        return sheets

    def text(self, row: int) -> str | None:
        """The words, as given if they were given in an order."""
        if not self.has[row]:
            return None
        if self.given is not None:
            return " ".join(self.slots[i] for i in self.given[row])
        start, stop = self.matrix.indptr[row : row + 2]
        pairs = zip(self.matrix.indices[start:stop], self.matrix.data[start:stop], strict=True)
        return ", ".join(f"{self.slots[i]}×{number_text(float(v))}" for i, v in pairs)

    def receipts(self) -> list[bytes]:
        """Slots and amounts in the order of the slots' names."""
        out = []
        for i in range(self.rows):
            start, stop = self.matrix.indptr[i : i + 2]
            pairs = zip(self.matrix.indices[start:stop], self.matrix.data[start:stop].tolist(), strict=True)
            text = sorted((self.slots[j], v) for j, v in pairs)
            out.append(repr(text).encode("utf-8", "surrogatepass") if self.has[i] else b"-")
        return out
