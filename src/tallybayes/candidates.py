"""Which pairs of columns are worth counting together: those whose values depend on each other within the classes.

    I(U; V given Y) = Σ_uvy p(u,v,y) · log [p(y)·p(u,v,y) / (p(u,y)·p(v,y))]

The estimate is too high by about (|U| − 1)(|V| − 1)|Y| / 2n where there is no dependence at all, and that is taken off.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import combinations

import numpy as np

from .block import Block, Codes, Numbers
from .errors import SettingsError
from .numerics import Floats, Ints
from .pairs import Side, coarse_cuts
from .schema import Column

MOST_VALUES = 64  # of a category that takes part
MOST_COLUMNS = 80  # that are paired with each other: the most informative ones
_FEW, _MANY = 5, 16  # stretches of a number, below and above _LARGE rows
_LARGE = 5_000
PER_COLUMN = (2, 4)  # pairs proposed for each column, below and above _LARGE rows


def propose_pairs(columns: Sequence[Column], blocks: Mapping[str, Block], labels: Ints, n_classes: int) -> list[Column]:
    """Pair columns, the most dependent first; none where no two columns depend on each other."""
    large = len(labels) >= _LARGE
    sides = [s for c in columns if (s := _side(c, blocks[c.name], _MANY if large else _FEW)) is not None]
    if len(sides) > MOST_COLUMNS:
        sides.sort(key=lambda s: -_information(s[2], s[3], labels, n_classes))
        sides = sides[:MOST_COLUMNS]
    found = []
    for (a, one, u, n_u), (b, other, v, n_v) in combinations(sides, 2):
        if one.source == other.source:  # parts of one date
            continue
        there = (u >= 0) & (v >= 0)
        n = np.bincount(((u * n_v + v) * n_classes + labels)[there], minlength=n_u * n_v * n_classes)
        gain = conditional_information(n.reshape(n_u, n_v, n_classes).astype(float)) * float(there.mean())
        if gain > 0:
            found.append((gain, a, b, one, other))
    found.sort(key=lambda f: -f[0])
    most = PER_COLUMN[large] * len(sides)
    return [
        Column(f"{a} × {b}", "pair", of=(one, other), reason=f"{a} and {b} depend on each other within the classes")
        for _, a, b, one, other in found[:most]
    ]


def pair_of(a: str, b: str, columns: Mapping[str, Column], blocks: Mapping[str, Block]) -> Column:
    """The pair column of two named columns."""
    one, other = (_side(columns[name], blocks[name], _FEW, any_size=True) for name in (a, b))
    if one is None or other is None:
        bad = a if one is None else b
        raise SettingsError(
            f"column {bad!r} is a {columns[bad].kind} and cannot be one of a pair",
            hint="pairs are of categories and numbers.",
        )
    return Column(f"{a} × {b}", "pair", of=(one[1], other[1]), reason="asked for")


def _side(column: Column, block: Block, most: int, any_size: bool = False) -> tuple[str, Side, Ints, int] | None:
    """The column as one side of a pair, with its codes and how many there are."""
    if isinstance(block, Codes) and column.kind == "category":
        used = len(block.slots)
        if used < 2 or (used > MOST_VALUES and not any_size):
            return None
        return column.name, Side(column.reads, "category", column.part, tuple(column.missing)), block.codes, used
    if isinstance(block, Numbers):
        there = block.present()
        if not there.any():
            return None
        cuts = coarse_cuts(block.values[there], most)
        if not cuts:
            return None
        codes = np.full(block.rows, -1, dtype=np.int64)
        codes[there] = np.searchsorted(cuts, block.values[there], side="right")
        return column.name, Side(column.reads, "number", column.part, tuple(column.missing), cuts), codes, len(cuts) + 1
    return None


def conditional_information(n: Floats) -> float:
    """I(U; V given Y) in nats of a table of counts u × v × y, less what chance alone gives."""
    total = n.sum()
    if total == 0:
        return 0.0
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = n * n.sum(axis=(0, 1)) / (n.sum(axis=0, keepdims=True) * n.sum(axis=1, keepdims=True))
        information = float(np.where(n > 0, n * np.log(ratio), 0.0).sum() / total)
    free = (np.count_nonzero(n.sum(axis=(1, 2))) - 1) * (np.count_nonzero(n.sum(axis=(0, 2))) - 1) * n.shape[2]
    return information - float(free) / (2 * float(total))


def _information(codes: Ints, n_values: int, labels: Ints, n_classes: int) -> float:
    """I(U; Y) in nats."""
    there = codes >= 0
    n = np.bincount((codes * n_classes + labels)[there], minlength=n_values * n_classes).reshape(n_values, n_classes)
    total = max(int(n.sum()), 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = n * float(total) / (n.sum(axis=0, keepdims=True) * n.sum(axis=1, keepdims=True))
        return float(np.where(n > 0, n * np.log(ratio), 0.0).sum() / total)
