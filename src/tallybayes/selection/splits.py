"""Which fold each row belongs to: pure functions of labels, groups, times or the rows themselves, and a seed.

A fold is a number from 0 for each row; −1 marks a row that takes no part. The default, `by_hash`, looks at nothing but
the row: equal rows stay together, and every engine and every order of reading gives the same folds.

>>> k_fold(7, 3, seed=1).tolist()
[1, 2, 1, 0, 0, 0, 2]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.errors import SettingsError, in_our_words
from ..data.blocks import Block
from ..data.copies import Hashes, row_hashes


def check_folds(folds: Any) -> None:
    """Refuse what is no number of folds."""
    if isinstance(folds, bool) or not isinstance(folds, (int, np.integer)) or folds < 2:
        raise SettingsError(f"folds={folds!r}", hint="take a whole number of at least 2, e.g. folds=10.")


def _checked(folds: int, rows: int) -> int:
    check_folds(folds)
    if rows < 2:
        raise SettingsError(
            f"{rows} row{'' if rows == 1 else 's'} cannot be split into folds", hint="give at least two labelled rows."
        )
    return int(min(folds, rows))


def k_fold(rows: int, folds: int, seed: int = 0) -> Ints:
    """Folds of equal size, give or take a row, in an order that the seed decides; at most one fold per row."""
    folds = _checked(folds, rows)
    out = np.empty(rows, dtype=np.int64)
    out[np.random.default_rng(seed).permutation(rows)] = np.arange(rows) % folds
    return out


def stratified(labels: Ints, folds: int, seed: int = 0, keys: Sequence[Hashes | Floats] = ()) -> Ints:
    """Folds of equal size in which every class has its share, give or take a row; −1 where a row has no class.

    Rows are dealt out in an order that the seed decides, or in that of keys, the last of which comes first: with a
    keyed hash of what rows hold among them, rows in any other order have the same folds.
    """
    there = np.flatnonzero(labels >= 0)
    folds = _checked(folds, len(there))
    shuffled = there[np.lexsort([k[there] for k in keys])] if keys else np.random.default_rng(seed).permutation(there)
    dealt = shuffled[np.argsort(labels[shuffled], kind="stable")]  # class after class, dealt out like cards
    out = np.full(len(labels), -1, dtype=np.int64)
    out[dealt] = np.arange(len(dealt)) % folds
    return out


def grouped(groups: Ints, folds: int, seed: int = 0) -> Ints:
    """Folds of about equal size that cut no group: the largest first, each to the smallest fold so far; −1 stays −1."""
    there = groups >= 0
    names, code, size = np.unique(groups[there], return_inverse=True, return_counts=True)
    if len(names) < 2:
        raise SettingsError(
            f"{len(names)} group{'' if len(names) == 1 else 's'} cannot be split into folds",
            hint="groups= names a column with at least two different values.",
        )
    folds = _checked(folds, len(names))
    shuffled = np.random.default_rng(seed).permutation(len(names))
    order = shuffled[np.argsort(-size[shuffled], kind="stable")]
    filled, at = np.zeros(folds, dtype=np.int64), np.empty(len(names), dtype=np.int64)
    for group in order.tolist():
        at[group] = int(np.argmin(filled))
        filled[at[group]] += size[group]
    out = np.full(len(groups), -1, dtype=np.int64)
    out[there] = at[code]
    return out


def leave_one_out(rows: int) -> Ints:
    """A fold of its own for every row."""
    _checked(2, rows)
    return np.arange(rows, dtype=np.int64)


def repeated(seed: int, repeats: int) -> list[int]:
    """A seed for each repetition; the first is the seed itself."""
    if repeats < 1:
        raise SettingsError(f"repeats={repeats!r}", hint="take a whole number of at least 1.")
    further = np.random.SeedSequence(seed).generate_state(repeats, np.uint64)[1:]
    return [seed, *(int(s) for s in further)]


def time_ordered(times: Any, blocks: int) -> Ints:
    """Stretches of time with about equally many rows: 0 the earliest. Rows of one moment share a stretch."""
    moments, code = np.unique(np.asarray(times), return_inverse=True)
    blocks = _checked(blocks, len(moments))
    before = np.cumsum(np.bincount(code)) - np.bincount(code)
    block = before * blocks // len(code)
    return np.asarray(np.unique(block, return_inverse=True)[1][code], dtype=np.int64)  # no stretch is left empty


def shares(rows: int, parts: Sequence[float], seed: int = 0, labels: Ints | None = None) -> Ints:
    """Part 0, 1, … with these shares of the rows, e.g. (0.6, 0.2, 0.2); stratified where labels are given.

    >>> np.bincount(shares(10, (0.6, 0.2, 0.2))).tolist()
    [6, 2, 2]
    """
    hint = "give shares above 0 that add up to 1: (0.6, 0.2, 0.2)."
    with in_our_words(SettingsError, f"shares of {parts!r}", hint=hint):
        given = np.asarray(parts, dtype=np.float64)
    if given.ndim != 1 or len(given) < 2 or not (given > 0).all() or abs(given.sum() - 1) > 1e-9:
        raise SettingsError(f"shares of {list(parts)!r}", hint=hint)
    there = np.arange(rows) if labels is None else np.flatnonzero(labels >= 0)
    order = np.random.default_rng(seed).permutation(there)
    if labels is not None:
        order = order[np.argsort(labels[order], kind="stable")]
    # Card by card, to the part that is furthest behind its share: so each class, which is a stretch, is shared out too
    turn = np.empty(len(order), dtype=np.int64)
    due = np.zeros(len(given))
    for i in range(len(order)):
        due += given
        turn[i] = int(np.argmax(due))
        due[turn[i]] -= 1.0
    out = np.full(rows, -1, dtype=np.int64)
    out[order] = turn
    return out


# ---- the row itself


def by_hash(blocks: Mapping[str, Block], rows: int, folds: int, seed: int = 0) -> Ints:
    """A fold from a keyed hash of each row's values: equal rows share a fold, whatever their order or their class."""
    if folds < 2:
        raise SettingsError(f"folds={folds!r}", hint="take a whole number of at least 2, e.g. folds=10.")
    return ((row_hashes(blocks, rows, seed) >> np.uint64(32)) % np.uint64(folds)).astype(np.int64)
