"""Cells counted two by two: how many rows of a class have a cell of one column and a cell of another, fold by fold.

A column of kind "together" names columns, numbers with the cuts between their stretches. No model asks it anything: it
says that a sheet of that name is counted beside the rows of each class. Its slots are

    [fold]                      rows of the fold
    [fold, i, "u"]              those whose i-th column is in the cell u
    [fold, i, "u", j, "v"]      and whose j-th is in v, i < j

From them comes the matrix G of any two cells, by class and fold, as sums of whole numbers: they merge and subtract like
all counts. A row's fold is a pure function of its cells, so that equal rows share one and a row is forgotten where it
was counted. A value that is missing has no cell.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from functools import lru_cache
from hashlib import blake2b
from itertools import combinations
from typing import NamedTuple

import numpy as np

from ..base.arrays import Floats, Ints
from ..data.blocks import Block, Codes, Groups, N, Numbers
from ..data.kinds import KINDS
from ..data.pairs import PairColumn, coded
from ..data.schema import Column, Schema
from ..exact.counts import Counts
from ..exact.sheet import Sheet, add_sheets
from ..exact.sums import code_sheet

TOGETHER = "together"  # the kind of the column, and the sheet beside the rows of each class
FOLDS = 5
_AT_ONCE = 1 << 22  # codes of rows that are added up at once
_MIX = np.uint64(0x9E3779B97F4A7C15)  # the odd number nearest to 2⁶⁴ over the golden ratio: spreads bits upwards


def together(schema: Schema) -> Column | None:
    """The column that says whose cells are counted together; None where none are."""
    return next((c for c in schema.columns if c.kind == TOGETHER), None)


def without_together(schema: Schema) -> Schema:
    """The schema that counts no cells together."""
    rest = [c for c in schema.columns if c.kind != TOGETHER]
    return schema if len(rest) == len(schema.columns) else schema._with(columns=rest)


def of_columns(schema: Schema, names: Collection[str]) -> Schema:
    """The schema of some of its columns; cells are counted together where all are asked."""
    every = set(schema.names) <= set(names)
    kept = ("ignore", TOGETHER) if every else ("ignore",)
    return schema._with(columns=[c for c in schema.columns if c.name in names or c.kind in kept])


def own_columns(schema: Schema, both: Column) -> list[Column | None]:
    """For each of the columns counted together, the one that counts it by itself; None where there is none."""
    known = {(c.reads, c.part, c.like): c for c in schema.counted if c.of is None}
    return [known.get((s.source, s.part, KINDS[s.kind].like)) for s in both.of or ()]


def together_sheet(schema: Schema, both: Column, blocks: Mapping[str, Block], groups: Groups) -> Sheet:
    """What the rows of some blocks add, class by class."""
    own = zip(both.of or (), own_columns(schema, both), strict=True)
    cells = [_cells(side, None if c is None else blocks.get(c.name), len(groups.labels)) for side, c in own]
    fold = _folds(cells, len(groups.labels))
    texts = [[json.dumps(slot, ensure_ascii=False) for slot in one.slots] for one in cells]
    codes, names, sheets = [fold], [f"[{f}]" for f in range(FOLDS)], []
    for i, one in enumerate(cells):
        codes.append(np.where(one.codes >= 0, len(names) + fold * len(one.slots) + one.codes, -1))
        names += [f"[{f}, {i}, {u}]" for f in range(FOLDS) for u in texts[i]]
    for (i, one), (j, other) in combinations(enumerate(cells), 2):
        if len(codes) * len(fold) > _AT_ONCE:
            sheets.append(_sheet(codes, names, groups))
            codes, names = [], []
        there = (one.codes >= 0) & (other.codes >= 0)
        code = np.where(there, (fold * len(one.slots) + one.codes) * len(other.slots) + other.codes, -1)
        used, place = np.unique(code[there], return_inverse=True)  # most pairs of rare cells never meet
        code[there] = len(names) + place
        codes.append(code)
        f, u, v = np.unravel_index(used, (FOLDS, max(len(one.slots), 1), max(len(other.slots), 1)))
        each = zip(f.tolist(), u.tolist(), v.tolist(), strict=True)
        names += [f"[{a}, {i}, {texts[i][b]}, {j}, {texts[j][c]}]" for a, b, c in each]
    return add_sheets([*sheets, _sheet(codes, names, groups)])


def _sheet(codes: Sequence[Ints], names: Sequence[str], groups: Groups) -> Sheet:
    """Several codes of every row, none of them of one slot, added up at once."""
    labels = np.tile(groups.labels, len(codes))
    weights = None if groups.weights is None else np.tile(groups.weights, len(codes))
    return code_sheet(names, np.concatenate(codes), labels, groups.n_labels, weights)


def _cells(side: PairColumn, block: Block | None, rows: int) -> Codes:
    """The cell of every row."""
    if isinstance(block, (Codes, Numbers)):
        return coded(block, side)
    return Codes([], np.full(rows, -1, dtype=np.int64))


def _folds(cells: Sequence[Codes], rows: int) -> Ints:
    """The fold of every row: a hash of its cells, whatever their order."""
    total = np.zeros(rows, dtype=np.uint64)
    for i, one in enumerate(cells):
        each = np.array([*(_hash(i, slot) for slot in one.slots), 0], dtype=np.uint64)
        total += each[one.codes]  # modulo 2⁶⁴
    mixed = (total ^ (total >> np.uint64(29))) * _MIX
    return ((mixed >> np.uint64(33)) % np.uint64(FOLDS)).astype(np.int64)


@lru_cache(maxsize=1 << 14)
def _hash(side: int, slot: str) -> int:
    raw = json.dumps([side, slot]).encode()
    return int.from_bytes(blake2b(raw, digest_size=8).digest(), "little")


class CellCounts(NamedTuple):
    """The same as arrays, cells in the order of columns, and within one by name: equal counts give equal arrays."""

    cells: list[tuple[int, str]]  # column, cell
    rows: Floats  # folds × classes
    n: Floats  # folds × classes × cells
    pairs: Floats  # folds × classes × cells × cells, symmetric


def cell_counts(labels: Counts, n_classes: int, most: int) -> CellCounts:
    """The cells of a tally, of many those that most rows have, and how many rows have any two of them."""
    sheet = labels.sheet(TOGETHER, N)
    slots, table = json.loads(f"[{','.join(sheet.slot_names)}]"), sheet.table("n", n_classes)
    often: dict[tuple[int, str], float] = {}
    for slot, amount in zip(slots, table.sum(axis=1).tolist(), strict=True):
        if len(slot) == 3:
            often[slot[1], slot[2]] = often.get((slot[1], slot[2]), 0.0) + amount
    kept = sorted(sorted(often, key=lambda cell: (-often[cell], cell))[:most])
    at = {cell: k for k, cell in enumerate(kept)}
    rows, n = np.zeros((FOLDS, n_classes)), np.zeros((FOLDS, n_classes, len(kept)))
    pairs = np.zeros((FOLDS, n_classes, len(kept), len(kept)))
    sizes, fold = np.array([len(s) for s in slots], dtype=np.int64), np.array([s[0] for s in slots], dtype=np.int64)
    a, b = (np.array([at.get((s[i - 1], s[i]), -1) if len(s) > 1 else -1 for s in slots]) for i in (2, -1))
    alone, cells = sizes == 1, (a >= 0) & (b >= 0)
    rows[fold[alone]] = table[alone]
    pairs[fold[cells], :, a[cells], b[cells]] = pairs[fold[cells], :, b[cells], a[cells]] = table[cells]
    single = cells & (sizes == 3)
    n[fold[single], :, a[single]] = table[single]
    return CellCounts(kept, rows, n, pairs)
