"""Which rows are one row written several times, told by 64 bits of what each row holds.

Copies belong together: a model that is judged by one of them must not have counted the others. Equal rows that were
drawn like all others do not, and which of them is which nobody knows, so they are told apart by number (`told_apart`).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..base.arrays import Bools, Floats, Ints
from .blocks import Bag, Block, Codes, Numbers, Vectors

if TYPE_CHECKING:
    from .encode import Labelled

Hashes = NDArray[np.uint64]
_FEW_TIMES = 4.0  # as many pairs of rows with one key as pairs of equal rows
_SOME = 5_000  # different rows by which it is told which columns have most values
_ENOUGH = 20  # pairs of rows of different classes: fewer do not tell how columns hang together
_ERRORS = 2.0  # of what agrees by chance
_FEWEST_VALUES = 1 / 8  # of a number, as a share of the rows: of fewer no value is its own
_MOSTLY = 0.95  # of the way from labels as they are anyway to labels that always agree
_SURE = 0.01  # a row that chance explains no better than this is a copy,
_LIKELY = 0.95  # and one that it explains as well as this is none
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
    measurements are one row, written twice. The columns of the most different values are a key: rows may have it in
    common for whatever reason, and so many of them agree in all other columns by chance. Where they do so more often
    throughout the table they are copies, but for those that chance explains as well. Rows of several classes with one
    key tell how often other columns go with it, as a town goes with its postcode; and where equal rows have different
    labels, they are no copies, but the same thing met again.
    """
    _, first, unit, times = np.unique(
        of_class(hashes, rows.labels), return_index=True, return_inverse=True, return_counts=True
    )
    out = np.zeros(len(hashes), dtype=bool)
    return _written_again(rows, hashes, first, times)[unit] if (times > 1).any() else out


def _written_again(rows: Labelled, hashes: Hashes, first: Ints, times: Ints) -> Bools:
    """Which of the different rows are copies; `first` is one of each, `times` how many are equal to it."""
    from scipy.special import betainc

    alone = _is_one_number(rows, first)
    key, rest = (hashes[first], []) if alone else _key(rows, hashes[first], first, times)
    keyed = key if alone else of_class(key, rows.labels[first])  # of one number only the class is left to agree
    group = np.unique(keyed, return_inverse=True)[1]
    asked, every = np.bincount(group, times)[group] > 1, first
    if not alone and _met_again(key, hashes[first], rows.labels[first], times):
        return np.zeros(len(asked), dtype=bool)
    first, times, group = first[asked], times[asked], np.unique(group[asked], return_inverse=True)[1]
    if alone:
        share = np.bincount(rows.labels)[rows.labels[first]] / len(rows.labels)
    else:
        share = np.maximum(_share(rows, first, times, rest), _share_across(key, hashes, rows.labels, every))
    count = np.bincount(group, times)  # rows of one class and key
    by_chance = betainc(np.maximum(times - 1.0, 0.5), count[group] - times + 1.0, share)  # P(so many others are equal)
    agree = float(np.mean(np.bincount(group, times * (times - 1.0)) / (count * (count - 1))))
    expected = float(np.mean(np.bincount(group, times * share) / count))
    surely = agree - _ERRORS * np.sqrt(expected * (1 - expected) / len(count))
    copied = (surely - expected) / max(1 - expected, 1e-12)
    sure = np.sort(times[(times > 1) & (by_chance < _SURE)])
    usual = 1 - np.searchsorted(sure, times) / len(sure) if len(sure) else np.ones(len(times))
    out = np.zeros(len(asked), dtype=bool)
    out[asked] = (times > 1) & (by_chance < _LIKELY) & (copied * usual > (1 - copied) * by_chance)
    return out


def _is_one_number(rows: Labelled, first: Ints) -> bool:
    """Whether one number is all there is, and no code of a few values."""
    (block, *others) = rows.blocks.values()
    return not others and isinstance(block, Numbers) and _FEWEST_VALUES * len(rows.labels) <= len(first)


def _key(rows: Labelled, hashes: Hashes, first: Ints, times: Ints) -> tuple[Hashes, list[str]]:
    """A key of each different row, and the columns that are none of it: one at least, unless there is only one.

    The columns of most values, and so few that rows which have the key in common are equal one time in a few.
    """
    names = list(rows.blocks)
    if len(names) == 1:
        return hashes, []
    columns = {name: column_hashes(rows.blocks[name])[first] for name in names}
    some = slice(None, None, len(first) // _SOME + 1)  # by their hashes
    order = sorted(names, key=lambda name: -len(np.unique(columns[name][some])))
    y, key, tied = rows.labels[first], np.zeros(len(first), dtype=np.uint64), np.arange(len(first))
    kept, equal = 0, float(np.sum(times * (times - 1.0)))
    while kept == 0 or (
        kept < len(order) - 1 and _pairs(of_class(key[tied], y[tied]), times[tied]) > _FEW_TIMES * equal
    ):
        key[tied] = _mixed(key[tied] ^ (columns[order[kept]][tied] + np.uint64(kept)))
        _, group = np.unique(key[tied], return_inverse=True)
        tied = tied[np.bincount(group, times[tied])[group] > 1]  # the others stay alone whatever else they hold
        kept += 1
    return key, order[kept:]


def _share(rows: Labelled, one: Ints, again: Ints, rest: Sequence[str]) -> Floats:
    """Of some rows with one key, how probably another agrees in the rest, were columns independent within the class."""
    y = rows.labels[one]
    size = np.bincount(rows.labels)[y].astype(np.float64)
    log_share = np.zeros(len(one))
    for name, block in rows.blocks.items():
        if name in rest:
            own = of_class(column_hashes(block.take(one)), y)
            values, place = np.unique(own, return_inverse=True)
            every = of_class(column_hashes(block), rows.labels)
            at = np.minimum(np.searchsorted(values, every), len(values) - 1)
            log_share += np.log(np.bincount(at[values[at] == every], minlength=len(values))[place] / size)
        else:
            log_share += _log_rest(block, one, again, size)
    return np.exp(log_share)


def _pairs(key: Hashes, times: Ints) -> float:
    """Twice the pairs of rows that have a key in common."""
    count = np.bincount(np.unique(key, return_inverse=True)[1], times)
    return float(np.sum(count * (count - 1)))


def _met_again(key: Hashes, hashes: Hashes, y: Ints, times: Ints) -> bool:
    """Whether equal rows have labels of their own, so that they are the same thing met again: a shelf on another day.

    A copy has the label of its original. Rows that share no more than the key tell how often labels agree anyway.
    """

    def pairs(of: Hashes) -> tuple[Floats, Floats]:
        """Of each group: pairs of rows, and those of one class."""
        group, own = (np.unique(each, return_inverse=True)[1] for each in (of, of_class(of, y)))
        of_class_too = np.bincount(own, times)
        group_of = np.zeros(len(of_class_too), dtype=np.int64)
        group_of[own] = group
        n = np.bincount(group, times)
        alike: Floats = np.bincount(group_of, of_class_too * (of_class_too - 1), len(n)).astype(np.float64)
        return n * (n - 1.0), alike

    (every, alike), (near, near_alike) = pairs(hashes), pairs(key)
    groups = every > 0
    agree = float(np.mean(alike[groups] / every[groups]))
    error = float(np.sqrt(agree * (1 - agree) / np.count_nonzero(groups)))
    others = float(near.sum() - every.sum())
    shares = np.bincount(y, times) / times.sum()
    usual = float(near_alike.sum() - alike.sum()) / others if others >= 2 * _ENOUGH else float(shares @ shares)
    return agree + _ERRORS * error < usual + _MOSTLY * (1 - usual)


def _share_across(key: Hashes, hashes: Hashes, labels: Ints, first: Ints) -> float:
    """How many pairs of rows of different classes with one key agree in the rest; 0 where they are too few to tell."""
    y = labels[first]

    def across(of: Hashes) -> float:
        both, alone = (np.unique(each, return_counts=True)[1] for each in (of_class(of, y), of))
        return float(np.sum(alone**2.0) - np.sum(both**2.0)) / 2

    asked = across(key)
    return across(hashes[first]) / asked if asked >= _ENOUGH else 0.0


def _log_rest(block: Block, one: Ints, again: Ints, of_its_class: Floats) -> Floats:
    """Of a column of the key: log P that rows which have its first word in common, or its first position, have it all.

    The words of a text and the positions of a vector are as many values, each at least as frequent as the equal rows.
    """
    if isinstance(block, (Codes, Numbers)):
        return np.zeros(len(one))
    some: Any = block.take(one)
    if isinstance(some, Vectors):
        values_each = np.full(len(one), some.values.shape[1])
    elif hasattr(some, "texts"):
        values_each = np.array([len((text or "").split()) for text in some.texts.to_pylist()])
    else:
        values_each = np.diff(some.matrix.indptr) if hasattr(some, "matrix") else np.ones(len(one))
    more = np.maximum(np.where(some.present(), values_each, 0) - 1, 0)
    return np.asarray(more * np.log(again / of_its_class))


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
