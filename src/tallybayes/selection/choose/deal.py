"""In what order the rows of a look are taken, and which fold each belongs to: never by the order of the file.

Rows are known by the hash of what they hold. They are taken class by class in the order of their hashes, so that sums
of floats come out the same however a table was shuffled, and dealt out to the folds like cards. Three things keep rows
together: that they are copies, that they belong to one group, and that they stand beside each other where that matters,
which `alike` finds out or a person says.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...base.arrays import Bools, Floats, Ints
from ...base.errors import SettingsError
from ...data.copies import Hashes, copies, of_class, told_apart
from ...data.copies import row_hashes as hashes_of
from ...data.encode import Labelled
from ...data.sources import ROW, Batch, open_source
from .. import splits
from ..parts import column_codes, times
from .alike import runs_test

SEED = 0x6465616C  # of the hashes: other folds than those of a cross-validation around the choice
BLOCK = 8  # rows of a class that follow each other
BLOCK_FOLDS = 5  # at most, with blocks: more would cut a small class into blocks of few rows
STRETCHES = 2  # of time in a fold
_MANY_COPIES = 0.05  # of all rows: of so many a person should know


@dataclass(frozen=True)
class Deal:
    """Which rows of a look are taken, in which order, and the fold of each of them."""

    order: Ints  # rows of the look: `look.take(order)` is the same for every order of the file
    folds: Ints  # of each row taken
    note: str | None = None  # what a person should know of the folds
    units: Ints | None = None  # of each row taken: those with one number were held out together
    copied: bool = False  # whether they are one row, written several times

    def __call__(self, rows: Labelled, start: int) -> Ints:
        """The folds of a batch of the rows taken, as `count_folds` asks for them."""
        return self.folds[rows.rows + start]


def dealt(rows: Labelled, look: Batch, folds: int, groups: str | None = None, order: str | bool | None = None) -> Deal:
    """The rows of a look that have a label, put in order and dealt out to so many folds.

    `groups` names a column whose values are never cut by a fold, `order` a column of times (or True: the order of the
    rows), of which stretches are held out. Without them, neighbours are kept together where they are alike.
    """
    if groups is not None and order:
        raise SettingsError("folds by groups and by order at once", hint="choose one of groups and order.")
    hashes = row_hashes(rows)
    note: str | None = None
    units: Ints | Hashes | None = None
    together = np.zeros(0, dtype=bool)
    aside = groups is not None or bool(order) or ROW in look.columns  # what tells folds is not what rows hold
    if groups is not None:
        members = column_codes(open_source(look), groups, "holds the groups")[1]
        units = members[rows.rows]
        fold = splits.grouped(units, folds)
    elif order:
        fold = stretches(times(open_source(look), order, look.rows)[rows.rows], folds)
    elif ROW in look.columns:  # rows shared out among classes
        fold = splits.grouped(look.columns[ROW][rows.rows], folds)
    elif (alike := runs_test(rows, hashes)) is not None:
        units, note = blocks(rows, folds, hashes), str(alike)
        fold = in_blocks(rows, folds, hashes, units)
    else:
        together = copies(rows, hashes)
        if together.sum() >= _MANY_COPIES * len(together):
            note = f"{int(together.sum()):,} rows are copies: equal ones were held out together and count as one"
        units = of_class(_keys(rows, hashes, together), rows.labels) if together.any() else None
        fold = deal(rows, folds, hashes, together)
    at = canonical_order(rows, hashes, fold if aside else None)
    number = None if units is None else np.unique(units, return_inverse=True)[1][at]
    return Deal(rows.rows[at], fold[at], note, number, bool(together.any()))


def row_hashes(rows: Labelled) -> Hashes:
    """64 bits of what each row holds in the columns counted."""
    return hashes_of(rows.blocks, len(rows.labels), SEED)


def canonical_order(rows: Labelled, hashes: Hashes | None = None, folds: Ints | None = None) -> Ints:
    """The labelled rows by class, content and weight, and then fold: the same rows for every order of the file.

    >>> from tallybayes.data.blocks import Numbers
    >>> x, y = np.array([5.0, 7.0, 6.0, 5.0]), np.array([1, 0, 1, 0])
    >>> rows = Labelled(("a", "b"), y, None, {"x": Numbers(x)}, np.arange(4), 0)
    >>> at = canonical_order(rows)
    >>> y[at].tolist(), x[at].tolist()
    ([0, 0, 1, 1], [7.0, 5.0, 6.0, 5.0])
    """
    hashes = row_hashes(rows) if hashes is None else hashes
    by: list[Floats | Ints | Hashes] = [hashes, rows.labels]
    return np.lexsort([each for each in (folds, rows.weights) if each is not None] + by)


def deal(rows: Labelled, folds: int, hashes: Hashes | None = None, together: Bools | None = None) -> Ints:
    """The fold of each row: dealt out class by class, copies of a row together, other equal rows by chance."""
    hashes = row_hashes(rows) if hashes is None else hashes
    together = copies(rows, hashes) if together is None else together
    return _in_turn(rows, _keys(rows, hashes, together), together, folds)


def _keys(rows: Labelled, hashes: Hashes, together: Bools) -> Hashes:
    """A key of each row, which of its class only copies have in common."""
    return np.where(together, hashes, told_apart(hashes, rows.labels, rows.weights))


def blocks(rows: Labelled, folds: int, hashes: Hashes) -> Hashes:
    """A key of each row, which runs of up to eight rows of a class have in common."""
    folds = min(folds, BLOCK_FOLDS)
    order = np.argsort(rows.labels, kind="stable")
    labels = rows.labels[order]
    size = np.bincount(labels)
    place = np.arange(len(labels)) - (np.cumsum(size) - size)[labels]
    length = np.clip(size // folds, 1, BLOCK)[labels]
    block = np.cumsum(place % length == 0) - 1
    starts = np.flatnonzero(place % length == 0)
    whole = np.add.reduceat(hashes[order], starts) if len(starts) else hashes
    keys = np.empty_like(hashes)
    keys[order] = whole[block]
    return keys


def in_blocks(rows: Labelled, folds: int, hashes: Hashes | None = None, keys: Hashes | None = None) -> Ints:
    """The fold of each row, the rows of a block together."""
    hashes = row_hashes(rows) if hashes is None else hashes
    keys = blocks(rows, folds, hashes) if keys is None else keys
    return _in_turn(rows, keys, np.ones(len(keys), dtype=bool), min(folds, BLOCK_FOLDS))


def stretches(moments: Ints, folds: int) -> Ints:
    """The fold of each row: two stretches of time each, so that few rows have a neighbour in another fold."""
    folds = min(folds, BLOCK_FOLDS)
    return splits.time_ordered(moments, STRETCHES * folds) % folds


def _in_turn(rows: Labelled, keys: Hashes, together: Bools, folds: int) -> Ints:
    """Folds dealt out in turn, class after class, to the rows in the order of their keys; some of one key together."""
    order = canonical_order(rows, keys)
    label, key = rows.labels[order], keys[order]
    new = (label[1:] != label[:-1]) | (key[1:] != key[:-1]) | ~together[order][1:]
    out = np.empty(len(order), dtype=np.int64)
    out[order] = np.concatenate(([0], np.cumsum(new)))[: len(order)] % folds
    return out
