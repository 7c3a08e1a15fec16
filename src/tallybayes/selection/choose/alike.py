"""Whether rows that stand beside each other belong together, and so are alike: one speaker, one household, one day.

Folds that part such rows flatter: the model that scores a row has counted its twins. Sorting makes neighbours alike,
too, but in the columns sorted by only, and rows as much alike stand elsewhere. So those columns are left out, and the
question is where the row stands that is most like a row of all rows of its class: beside it, or anywhere?
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.arrays import Bools, Floats, Ints
from ...data.blocks import Block, Codes, Numbers, Vectors
from ...data.copies import Hashes, of_class
from ...data.encode import Labelled
from .alike_texts import of_texts

SAMPLE = 200  # rows asked
OTHERS = 2_000  # rows of a class that each is compared with
FEWEST = 8  # rows of a class: in fewer, most rows stand beside each other
POSITIONS = 64  # of a vector
WIDEST = 8  # rows to either side that count as beside; one in fifty of a class if that is fewer
SHARE = 0.5  # of the rows, beyond chance, whose nearest stands beside them
DEVIATIONS = 4.0
_ONCE_IN = 1_000.0  # a column is sorted if a shuffle would leave it so more rarely
_TIE = 1e-5
Columns = list[NDArray[Any]]  # codes or numbers of some rows


@dataclass(frozen=True)
class LikeNeighbours:
    """How often the row most like a row of its class stands beside it, and how often by chance."""

    share: float
    chance: float
    z: float  # in standard deviations, with room for pairs that are each other's nearest
    rows: int  # that were asked

    @property
    def excess(self) -> float:
        """The share beyond chance: 0 for shuffled rows, 1 where the nearest always stands beside."""
        return (self.share - self.chance) / (1 - self.chance)

    @property
    def speaks(self) -> bool:
        """Whether that is both more than chance explains and much."""
        return self.excess >= SHARE and self.z >= DEVIATIONS

    @property
    def says(self) -> str:
        """The figures in words."""
        return (
            f"in {self.share:.0%} of {self.rows} rows the most similar row of the class stands beside them "
            f"(by chance {self.chance:.0%})"
        )

    def __str__(self) -> str:
        return f"rows that follow each other are alike: {self.says}, so neighbours are held out together"


def runs_test(rows: Labelled, hashes: Hashes) -> LikeNeighbours | None:
    """What is to be said of neighbours that are alike, None if they are not; `hashes` are of the rows' content."""
    found = likeness(rows, hashes)
    if found is None or not found.speaks:
        told = of_texts(rows, hashes)
        found = None if told is None else LikeNeighbours(*told)
    return found


def likeness(rows: Labelled, hashes: Hashes) -> LikeNeighbours | None:
    """How alike neighbours are within their class; None without categories or numbers, or with too few rows."""
    each = of_class(hashes, rows.labels)
    kept = np.sort(np.unique(each, return_index=True)[1])  # the first of equal rows: copies are no neighbours
    at = kept[np.argsort(rows.labels[kept], kind="stable")]  # class by class, in the order of the file
    labels, content = rows.labels[at], hashes[at]
    table = _unsorted(_columns(rows.blocks, at), labels)
    enough = np.bincount(labels, minlength=1)[labels] >= FEWEST
    if not table or not enough.any():
        return None
    by_content = np.argsort(content, kind="stable")
    asked = np.sort(by_content[enough[by_content]][:SAMPLE])
    compared = []
    for label in np.unique(labels[asked]).tolist():
        first, last = np.searchsorted(labels, [label, label + 1]).tolist()
        others = np.arange(first, last)
        if len(others) > OTHERS:
            others = first + np.argsort(content[first:last], kind="stable")[:OTHERS]
        compared.append((asked[labels[asked] == label], others, first, last))
    steps = (asked[:, None] + np.arange(-WIDEST, WIDEST + 1)).ravel()
    used = np.zeros(len(at), dtype=bool)
    used[np.concatenate([steps[(steps >= 0) & (steps < len(at))], *(others for _, others, _, _ in compared)])] = True
    table = [c if c.dtype.kind == "i" else _ranks(c, used, by_content[:OTHERS]) for c in table]
    found = [_beside(table, *each) for each in compared]
    hit, chance = np.concatenate(found, axis=1)
    spread = np.sqrt(2 * np.sum(chance * (1 - chance)))
    z = float((hit - chance).sum() / spread) if spread else 0.0
    return LikeNeighbours(float(hit.mean()), float(chance.mean()), z, len(hit))


def _columns(blocks: Mapping[str, Block], at: Ints) -> Columns:
    """The columns of these rows: whole numbers are codes, others numbers; words are left out."""
    out: Columns = []
    for block in blocks.values():
        if isinstance(block, Codes):
            out.append(block.codes[at].astype(np.int64))
        elif isinstance(block, Numbers):
            out.append(block.values[at])
        elif isinstance(block, Vectors):
            width = block.values.shape[1]
            some = np.unique(np.linspace(0, width - 1, min(width, POSITIONS)).astype(np.int64))
            out += list(np.ascontiguousarray(block.values[np.ix_(at, some)].T))
    return out


def _ranks(values: Floats, used: Bools, some: Ints) -> NDArray[Any]:
    """The share of some rows that have a smaller number, for the rows used; the middle for a missing one."""
    known = np.sort(values[some][~np.isnan(values[some])])
    own = values[used]
    below = np.searchsorted(known, own, side="left") + np.searchsorted(known, own, side="right")
    out = np.full(len(values), 0.5, dtype=np.float32)
    out[used] = np.where(np.isnan(own), 0.5, below / max(2 * len(known), 1))
    return out


def _beside(table: Columns, asked: Ints, others: Ints, first: int, last: int) -> Floats:
    """For each row asked of a class, how much of its nearest stands beside it, and how much of all it could be."""
    reach = int(np.clip((last - first) // 50, 1, WIDEST))
    steps = np.array([s for s in range(-reach, reach + 1) if s])
    near = asked[:, None] + steps
    there = (near >= first) & (near < last)
    far = np.abs(asked[:, None] - others) > reach
    beside = _distances(table, asked, np.where(there, near, first), there)
    elsewhere = _distances(table, asked, np.broadcast_to(others, far.shape), far)
    least = np.minimum(beside.min(axis=1), elsewhere.min(axis=1, initial=np.inf))[:, None] + _TIE
    nearest = np.count_nonzero(beside <= least, axis=1), np.count_nonzero(elsewhere <= least, axis=1)
    all_of = np.count_nonzero(there, axis=1), np.count_nonzero(far, axis=1)
    return np.stack([a / (a + b) for a, b in (nearest, all_of)])


def _distances(table: Columns, asked: Ints, others: Ints, there: Bools) -> Floats:
    """How much each row asked differs from its others: 1 for another category, the difference in rank for numbers."""
    out: Any = np.zeros(others.shape, dtype=np.float32)
    line = others[0] if others.strides[0] == 0 else others  # all are compared with the same
    for column in table:
        own, other = column[asked][:, None], column[line]
        out += own != other if column.dtype.kind == "i" else np.abs(own - other)
    out[~there] = np.inf
    found: Floats = out
    return found


# ---- columns that a file was sorted by


def _unsorted(table: Columns, labels: Ints) -> Columns:
    """The columns without those that the rows of each class are sorted by, one within the other."""
    left, group = list(table), labels
    while True:
        runs = ((i, _runs(c, group)) for i, c in enumerate(left))
        key = next(((i, finer) for i, finer in runs if finer is not None), None)
        if key is None:
            return left
        del left[key[0]]
        group = key[1]


def _runs(column: NDArray[Any], group: Ints) -> Ints | None:
    """The runs of equal values in each group if the rows are sorted by them, as no shuffle leaves them; else None."""
    same = group[1:] == group[:-1]
    numbers = column.dtype.kind == "f"
    if numbers and not _rising(column, same):
        return None
    value = np.nan_to_num(column, nan=np.inf) if numbers else column
    run = np.concatenate(([0], np.cumsum(~same | (value[1:] != value[:-1]))))
    groups = np.concatenate(([0], np.cumsum(~same)))
    starts = np.concatenate(([True], run[1:] != run[:-1]))
    times = np.bincount(groups[starts])  # different values in each group, if each is one run
    if not numbers:
        if run[-1] >= (groups[-1] + 1) * (int(column.max()) + 2):
            return None
        pair = groups[starts] * (int(column.max()) + 2) + column[starts]
        if len(np.unique(pair)) < len(pair):
            return None
    log_factorial = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1, len(column) + 1)))))
    orders = log_factorial[np.bincount(groups)].sum() - log_factorial[np.bincount(run)].sum()
    if not numbers:
        orders -= log_factorial[times].sum()  # the values may come in any order
    return run if orders > np.log(_ONCE_IN) else None


def _rising(values: Floats, same: Bools) -> bool:
    """Whether the numbers only rise or only fall within all groups, the missing ones first or last."""
    for filled in (np.inf, -np.inf) if np.isnan(values).any() else (0.0,):
        each = np.where(np.isnan(values), filled, values)
        before, after = each[:-1][same], each[1:][same]
        if (before <= after).all() or (before >= after).all():
            return True
    return False
