"""Which rows are one row written several times, told by 64 bits of what each row holds.

Copies belong together: a model that is judged by one of them must not have counted the others. Equal rows that were
drawn like all others do not, and which of them is which nobody knows, so they are told apart by number (`told_apart`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.arrays import Bools, Floats, Ints
from .blocks import Bag, Block, Codes, Numbers, Vectors

if TYPE_CHECKING:
    from .encode import Labelled

Hashes = NDArray[np.uint64]
DRAWN = 0.1  # rows that chance would have to bring forth of some values, or else equal rows with these are copies
_MISSING = np.uint64(0x9E3779B97F4A7C15)


def row_hashes(blocks: Mapping[str, Block], rows: int, seed: int = 0) -> Hashes:
    """64 bits per row, the same on every machine; for folds, not for secrets."""
    out = np.full(rows, _text_hash(f"tallybayes fold {seed}"), dtype=np.uint64)
    for name in sorted(blocks):
        out = _mixed(out ^ (column_hashes(blocks[name]) + _text_hash(name)))
    return out


def column_hashes(block: Block) -> Hashes:
    """64 bits for the value that each row has in one column, all missing ones the same."""
    return np.where(block.present(), _values(block), _MISSING)


def of_class(hashes: Hashes, labels: Ints) -> Hashes:
    """Hashes that differ from class to class."""
    return hashes + labels.astype(np.uint64) * _MISSING


def _text_hash(text: str) -> np.uint64:
    return np.uint64(_text_hashes([text])[0])


def _text_hashes(texts: Iterable[str]) -> Hashes:
    return _hashes(text.encode("utf-8", "surrogatepass") for text in texts)


def _hashes(each: Iterable[bytes]) -> Hashes:
    """A hash of each of some bytes."""
    return np.frombuffer(b"".join([hashlib.blake2b(raw, digest_size=8).digest() for raw in each]), "<u8").astype("u8")


def _mixed(h: Hashes) -> Hashes:
    """The finaliser of SplitMix64: every bit of the number decides about every bit of the result."""
    h = (h ^ (h >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    h = (h ^ (h >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return h ^ (h >> np.uint64(31))


def _of_floats(values: Floats) -> Hashes:
    """A hash of each number; 0 and −0 are one value, and so is every NaN."""
    one = np.ascontiguousarray(np.where(np.isnan(values), np.nan, values + 0.0), dtype="<f8")
    return _mixed(one.view("<u8").astype(np.uint64))


def _values(block: Block) -> Hashes:
    if isinstance(block, Codes):
        return np.append(_text_hashes(block.slots), _MISSING)[block.codes]
    if isinstance(block, Numbers):
        return _of_floats(block.values)
    if isinstance(block, Vectors):
        out = np.zeros(block.rows, dtype=np.uint64)
        for j in range(block.values.shape[1]):
            out = _mixed(out ^ _of_floats(block.values[:, j]))
        return out
    if isinstance(block, Bag):  # a sum over the words, which may stand in any order
        each = _mixed(_text_hashes(block.slots)[block.matrix.indices] + _of_floats(block.matrix.data))
        total = np.concatenate((np.zeros(1, dtype=np.uint64), np.cumsum(each, dtype=np.uint64)))
        return np.asarray(total[block.matrix.indptr[1:]] - total[block.matrix.indptr[:-1]])
    return _hashes(block.receipts())


def copies(rows: Labelled, hashes: Hashes) -> Bools:
    """Which rows have equals in their class that chance does not explain, so that a fold should not part them.

    In a table of a few categories most rows have equals, which were drawn like all others: a fold that has all of them
    would be scored by a model that knows their values from the other classes only. Two rows with the same eight
    measurements are one row, written twice. Told apart by how many such rows there would be, were the columns
    independent within the class: fewer than 0.1, and equal rows are copies.
    """
    key = of_class(hashes, rows.labels)
    _, first, unit, times = np.unique(key, return_index=True, return_inverse=True, return_counts=True)
    several = np.flatnonzero(times > 1)
    out = np.zeros(len(key), dtype=bool)
    if len(several):
        one, again = first[several], times[several]  # a row of each unit, and how many are equal to it
        size = np.bincount(rows.labels)[rows.labels[one]]
        expected = np.log(size)
        for block in rows.blocks.values():
            expected += _log_share(block, rows.labels, one, again, size)
        found = np.zeros(len(times), dtype=bool)
        found[several] = expected < np.log(DRAWN)
        out = found[unit]
    return out


def _log_share(block: Block, labels: Ints, one: Ints, again: Ints, size: Ints) -> Floats:
    """The logarithm of the share that the values of some rows have in their classes.

    The words of a text and the positions of a vector are as many values, each at least as frequent as the equal rows.
    """
    if isinstance(block, (Codes, Numbers)):
        values = np.sort(of_class(column_hashes(block), labels))
        own = of_class(column_hashes(block.take(one)), labels[one])
        return np.log((np.searchsorted(values, own, "right") - np.searchsorted(values, own, "left")) / size)
    some: Any = block.take(one)
    if isinstance(some, Vectors):
        values_each = np.full(len(one), some.values.shape[1])
    elif hasattr(some, "texts"):
        values_each = np.array([len((text or "").split()) for text in some.texts.to_pylist()])
    else:
        values_each = np.diff(some.matrix.indptr) if hasattr(some, "matrix") else np.ones(len(one))
    return np.where(some.present(), values_each, 0) * np.log(again / size)


def told_apart(hashes: Hashes, labels: Ints, weights: Floats | None = None) -> Hashes:
    """The hash of each row, another one for the second of equal rows, the third and so on: no two alike.

    Dealt out in the order of their hashes equal rows would be spread over the folds more evenly than chance does it,
    and a fold would be judged by rows that mirror it. The same rows in another order have the same hashes.
    """
    order = np.lexsort([labels if weights is None else weights, labels, hashes])
    sorted_hashes = hashes[order]
    first = np.flatnonzero(
        np.concatenate([np.ones(min(len(order), 1), dtype=bool), sorted_hashes[1:] != sorted_hashes[:-1]])
    )
    number = np.arange(len(order)) - np.repeat(first, np.diff(np.append(first, len(order))))
    out = np.empty_like(hashes)
    out[order] = np.where(number > 0, _mixed(sorted_hashes + number.astype(np.uint64) * _MISSING), sorted_hashes)
    return out
