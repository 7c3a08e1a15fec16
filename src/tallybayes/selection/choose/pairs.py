"""Which pairs of columns are worth counting together: those whose values depend on each other within the classes.

    I(U; V given Y) = Σ_uvy p(u,v,y) · log [p(y)·p(u,v,y) / (p(u,y)·p(v,y))]

Where there is no dependence at all, 2n times the estimate is about χ² of f = (|U| − 1)(|V| − 1)|Y| degrees of freedom:
its mean f and two deviations of √2f are taken off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from ...base.arrays import Floats, Ints, log_ratio_sum
from ...base.errors import SettingsError
from ...data.blocks import Block, Codes, Numbers
from ...data.pairs import PairColumn, coarse_cuts
from ...data.schema import Column

MOST_VALUES = 64  # of a category that takes part
MOST_COLUMNS = 80  # that are paired with each other: the most informative ones
_FEW, _MANY = 5, 16  # stretches of a number, below and above _LARGE rows
_LARGE = 5_000
_DEVIATIONS = 2.0
PER_COLUMN = (2, 4)  # pairs proposed for each column, below and above _LARGE rows


def propose_pairs(
    columns: Sequence[Column], blocks: Mapping[str, Block], labels: Ints, n_classes: int, splits: Ints
) -> list[list[Column]]:
    """Pair columns, the most dependent first: for each split proposed by the rows outside it, and last by all rows.

    The best of many pairs look dependent by chance. Who judges pairs must therefore not have helped to choose them.
    """
    large = len(labels) >= _LARGE
    sides = [s for c in columns if (s := _side(c, blocks[c.name], _MANY if large else _FEW)) is not None]
    known = {frozenset(c.of) for c in columns if c.of is not None}
    taken = {c.name for c in columns}
    n_splits = int(splits.max(initial=-1)) + 1

    def tables(codes: Ints, n_values: int) -> list[Floats]:
        """Counts of value × class outside each split, and of all rows."""
        shape = (n_values, n_classes, n_splits)
        there = codes >= 0
        flat = np.ravel_multi_index((codes[there], labels[there], splits[there]), shape)
        n = np.bincount(flat, minlength=int(np.prod(shape))).reshape(shape).astype(float)
        total = n.sum(axis=2)
        return [*(total - n[:, :, s] for s in range(n_splits)), total]

    allowed = _most_informative([tables(codes, n_values) for _, _, codes, n_values in sides])
    rows = [*(len(splits) - np.bincount(splits, minlength=n_splits)), len(splits)]
    found: list[list[tuple[float, Column]]] = [[] for _ in rows]
    for i, j in combinations(np.flatnonzero(np.any(allowed, axis=0)).tolist(), 2):
        (a, one, u, n_u), (b, other, v, n_v) = sides[i], sides[j]
        name = f"{a} × {b}"
        if one.source == other.source or name in taken or frozenset((one, other)) in known:
            continue  # parts of one date, or counted already
        both = np.where((u >= 0) & (v >= 0), u * n_v + v, -1)
        reason = f"{a} and {b} depend on each other within the classes"
        column = Column(name, "pair", of=(one, other), reason=reason)
        for view, n in enumerate(tables(both, n_u * n_v)):
            gain = conditional_information(n.reshape(n_u, n_v, n_classes)) * n.sum() / max(rows[view], 1)
            if gain > 0 and allowed[view][i] and allowed[view][j]:
                found[view].append((gain, column))
    most = PER_COLUMN[large] * min(len(sides), MOST_COLUMNS)
    return [[column for _, column in sorted(each, key=lambda f: -f[0])[:most]] for each in found]


def _most_informative(tables: Sequence[Sequence[Floats]]) -> list[list[bool]]:
    """For each view of the rows, whether a side is among the MOST_COLUMNS that say most about the class."""
    ranks = [
        np.argsort(np.argsort([-information(n) for n in each], kind="stable")) for each in zip(*tables, strict=True)
    ]
    return [(rank < MOST_COLUMNS).tolist() for rank in ranks]


def pair_of(a: str, b: str, columns: Mapping[str, Column], blocks: Mapping[str, Block]) -> Column:
    """The pair column of two named columns."""
    one, other = (_side(columns[name], blocks[name], _FEW, any_size=True) for name in (a, b))
    if one is None or other is None:
        bad = a if one is None else b
        raise SettingsError(
            f"column {bad!r} ({columns[bad].kind}) cannot be one of a pair",
            hint="pairs are of categories and numbers that have at least two values.",
        )
    return Column(f"{a} × {b}", "pair", of=(one[1], other[1]), reason="asked for")


def _side(column: Column, block: Block, most: int, any_size: bool = False) -> tuple[str, PairColumn, Ints, int] | None:
    """The column as one side of a pair, with its codes and how many there are."""
    if isinstance(block, Codes) and column.like == "category":
        used = len(block.slots)
        if used < 2 or (used > MOST_VALUES and not any_size):
            return None
        return column.name, PairColumn(column.reads, column.kind, column.part, tuple(column.missing)), block.codes, used
    if isinstance(block, Numbers):
        there = block.present()
        if not there.any():
            return None
        cuts = coarse_cuts(block.values[there], most)
        if not cuts:
            return None
        codes = np.full(block.rows, -1, dtype=np.int64)
        codes[there] = np.searchsorted(cuts, block.values[there], side="right")
        side = PairColumn(column.reads, column.kind, column.part, tuple(column.missing), cuts)
        return column.name, side, codes, len(cuts) + 1
    return None


def conditional_information(n: Floats) -> float:
    """I(U; V given Y) in nats of a table of counts u × v × y, less what chance alone seldom exceeds."""
    total = float(n.sum())
    if total == 0:
        return 0.0
    nats = log_ratio_sum(n, n.sum(axis=(0, 1)), n.sum(axis=0, keepdims=True), n.sum(axis=1, keepdims=True)) / total
    free = (np.count_nonzero(n.sum(axis=(1, 2))) - 1) * (np.count_nonzero(n.sum(axis=(0, 2))) - 1) * n.shape[2]
    return float(nats) - (float(free) + _DEVIATIONS * float(np.sqrt(2 * free))) / (2 * total)


def information(n: Floats) -> float:
    """I(U; Y) in nats of a table of counts u × y."""
    total = max(float(n.sum()), 1.0)
    return float(log_ratio_sum(n, total, n.sum(axis=0), n.sum(axis=1, keepdims=True))) / total
