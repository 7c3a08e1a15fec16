"""Scores without an array of parts per column: the Numba twins of `posterior.scores` for the columns that have one.

The one place that knows which belief has a fast twin. What it returns equals the sum of `belief.parts` to rounding;
whatever it does not take is left to the parts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from types import ModuleType
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..data.blocks import Block, Codes, Numbers, Vectors
from ..data.matrices import of_one_matrix
from ..exact.kernels import gate
from ..families import Belief
from ..families.categorical import CategoricalBelief
from ..families.gaussian import GaussianBelief
from ..families.pair import InteractionBelief
from ..families.plain import CorrectedBelief
from . import posterior

Adder = Callable[[slice, Floats], None]
_FEW = 64  # rows below which calling a kernel costs more than NumPy
_WIDE, _FOUR = 8, 4  # columns and rows that a vector register and a step of the kernel hold
_ROWS = 1 << 13  # at a time: their scores stay in the cache while column after column is added


def adders(
    beliefs: Mapping[str, Belief], blocks: Mapping[str, Block], weights: Mapping[str, float]
) -> dict[str, Adder]:
    """For each column that has a fast twin, what adds weight · part to the scores of some rows; {} for few rows."""
    if any(b.rows < _FEW for b in blocks.values()):
        return {}
    beliefs = {n: b.whole if isinstance(b, CorrectedBelief) else b for n, b in beliefs.items()}
    kernels = gate.kernels(
        "scores", sum(b.unchecked.size if isinstance(b, Vectors) else b.rows for b in blocks.values())
    )
    if kernels is None:
        return {}
    found: dict[str, Adder | None] = dict(_of_matrix(kernels, beliefs, blocks, weights))
    rest = (n for n in beliefs if n not in found)
    found.update({n: _adder(kernels, beliefs[n], blocks[n], weights.get(n, 1.0)) for n in rest})
    return {n: add for n, add in found.items() if add is not None}


def add_all(adders: Mapping[str, Adder], scores: Floats) -> Floats:
    """The scores with everything added, in place."""
    for start in range(0, len(scores) if adders else 0, _ROWS):
        rows = slice(start, start + _ROWS)
        for add in adders.values():
            add(rows, scores[rows])
    return scores


def best(adders: Mapping[str, Adder], start: Floats, rows: int) -> Ints:
    """What `posterior.best` finds in the scores of all rows, start + what is added; few of them are there at a time."""
    out = np.empty(rows, dtype=np.int64)
    first, *others = adders.values()
    if isinstance(first, _NormalRows) and not others:
        first.best(start, out)
        return out
    scores = np.empty((min(rows, _ROWS), len(start)))
    for at in range(0, rows, _ROWS):
        some = slice(at, min(at + _ROWS, rows))
        these = scores[: some.stop - at]
        posterior.begin(start, these)
        for add in adders.values():
            add(some, these)
        out[some] = posterior.best(these)
    return out


def _adder(kernels: ModuleType, belief: Belief, block: Any, weight: float) -> Adder | None:
    if weight == 0:
        return _nothing
    if type(belief) is GaussianBelief and isinstance(block, (Numbers, Vectors)):
        at = np.flatnonzero(belief.varies)
        mean, scale = (np.ascontiguousarray(t[at].T) for t in (belief.location, belief.scale))
        bells = kernels.Bells.of(belief.positions[at], mean, scale)
        if isinstance(block, Vectors) and block.unchecked.shape[1] >= _WIDE:
            return _NormalRows(kernels, block, bells, weight)
        values = block.values[:, None] if isinstance(block, Numbers) else block.values
        return partial(_normal, kernels, np.ascontiguousarray(values), bells, weight)
    if type(belief) in (CategoricalBelief, InteractionBelief) and isinstance(block, Codes):
        return partial(_table, kernels, np.ascontiguousarray(weight * belief.rows_of(block.slots)), block.codes)  # type: ignore[attr-defined]
    return None


def _of_matrix(
    kernels: ModuleType, beliefs: Mapping[str, Belief], blocks: Mapping[str, Block], weights: Mapping[str, float]
) -> dict[str, Adder]:
    """The categories among the columns of one matrix of whole numbers: one of them adds them all."""
    own = of_one_matrix({n: blocks[n] for n, b in beliefs.items() if type(b) is CategoricalBelief})
    each = {n: (weights.get(n, 1.0), beliefs[n].by_number) for n in own}  # type: ignore[attr-defined]
    each = {n: (w, known) for n, (w, known) in each.items() if w != 0 and known is not None}
    if not each:
        return {}
    nothing = (0, np.zeros((1, next(iter(each.values()))[1][1].shape[1])))
    tables = [(own[n].column, low, w * log) for n, (w, (low, log)) in each.items()]
    tables += [(tables[0][0], *nothing)] * (-len(tables) % 4)
    lengths = [len(log) for _, _, log in tables]
    start = np.cumsum([0, *lengths[:-1]]).astype(np.uint64)
    table = np.zeros((sum(lengths), -(-nothing[1].shape[1] // 8) * 8))
    table[:, : nothing[1].shape[1]] = np.concatenate([log for _, _, log in tables])
    columns, low = (np.array([t[k] for t in tables], dtype=np.int64) for k in (0, 1))
    values = np.array(lengths, dtype=np.uint64) - np.uint64(1)
    matrix = next(iter(own.values())).whole.matrix
    first, *others = each
    return {
        first: partial(_matrix, kernels, matrix, columns, low, values, start, table),
        **dict.fromkeys(others, _nothing),
    }


def _matrix(
    kernels: ModuleType, matrix: Ints, columns: Ints, low: Ints, values: Any, start: Any, table: Floats, rows: slice,
    out: Floats,
) -> None:  # fmt: skip
    room = np.empty(table.shape[1]), np.empty(len(columns), dtype=np.uint64)
    kernels.add_matrix(matrix[rows], columns, low, values, start, table, *room, out)


def _nothing(rows: slice, out: Floats) -> None:
    """A column that another one adds with its own, or of weight 0: it is not asked, even where it says −inf."""


def _normal(kernels: ModuleType, x: Floats, bells: Any, weight: float, rows: slice, out: Floats) -> None:
    kernels.add_normal(x[rows], *bells, weight, np.empty((len(bells.columns) + 1, kernels.TILE)), out)


@dataclass(frozen=True)
class _NormalRows:
    """The bells of a vector of at least eight positions."""

    kernels: ModuleType
    block: Vectors
    bells: Any
    weight: float

    @cached_property
    def _x(self) -> Floats:
        return np.ascontiguousarray(self.block.unchecked)

    @cached_property
    def _given(self) -> tuple[Any, ...]:
        return (*self.bells, self.weight, *self.bells.eights(self._x.shape[1]), self.bells.room())

    def __call__(self, rows: slice, out: Floats) -> None:
        if len(out) < _FOUR:
            _normal(self.kernels, self.block.values, self.bells, self.weight, rows, out)
        elif not self.kernels.add_normal_rows(self._x[rows], *self._given, out):
            self._refuse()

    def best(self, start: Floats, out: Ints) -> None:
        """Which class of each row, at least four, has the highest score if they begin so and nothing else is added."""
        if not self.kernels.best_normal_rows(self._x, *self._given, start, out):
            self._refuse()

    def _refuse(self) -> None:
        values = self.block.values  # which mostly finds the number itself
        raise ValueError(f"a vector is not finite: {values[~np.isfinite(values)][0]}")


def _table(kernels: ModuleType, table: Floats, codes: Ints, rows: slice, out: Floats) -> None:
    kernels.add_rows(table, codes[rows], out)
