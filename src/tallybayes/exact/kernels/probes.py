"""The few numbers that each kernel is checked with: arguments of calls that go through every branch that adds.

Whole numbers and sums where nothing may round, halves that must keep their order, extremes, NaN, every width of vector
registers with one more and one less. Arrays of texts are made in `text_probes`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..cells import REACH
from .entries import STRIP
from .moments import NEAR, room_for
from .scores import TILE, Bells
from .text_probes import TEXT_PROBES

Given = tuple[Any, ...]
_WIDTHS = (1, 2, 3, 5, 8, 9, 13, 17, 21, 25, 29, 33, 59)  # classes: one for each way to fill registers, and odd rests


def _floats(*shape: int, seed: int = 1) -> Any:
    """Numbers of mixed sizes, all digits of which count: another order of adding gives other bits."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=shape) * np.exp(rng.normal(size=shape) * 3)


def _ints(high: int, *shape: int, seed: int = 1) -> Any:
    return np.random.default_rng(seed).integers(0, high, shape)


def _zeros(*shape: int) -> Any:
    return np.zeros(shape)


def _counts(*shape: int) -> Any:
    return np.zeros(shape, np.int64)


# ---- codes


def _encode() -> Iterator[Given]:
    words = ["a", "bb", "a", "", "a\0", "exactly8", "exactly9", "exactly 16 bytes", "exactly 16 bytez", "bb"]
    words += ["the same beginning, no. 1, the same end", "the same beginning, no. 2, the same end"] * 2 + ["é", "last"]
    ends = np.cumsum([0, *(len(w.encode()) for w in words)])
    data = np.frombuffer("".join(words).encode(), np.uint8)  # nothing stands behind the last
    for valid, shift, room in (((), 0, 16), ((0b11011011, 0b01110111, 0b11111111), 3, 16), ((), 0, 4)):
        bits = np.array(valid, np.uint8)
        yield (
            ends, data, bits, shift, _counts(len(words)), _counts(room), _counts(4 * room),
            np.zeros((3, room), np.uint64),
        )  # fmt: skip


def _count_cells() -> Iterator[Given]:
    near = [0.0, -0.0, 0.5, -0.25, 3.0, 3.25, -7.0, 1.5, np.nan, 5e-324, -5e-324]
    values = np.array([*near, 400.0, -400.5, 1e5, -1e6, 8191.0, 8192.0, -8192.0, 1e9])
    labels = _ints(3, len(values))
    for points in ((), (1.5, 3.0)):
        table = _counts(2 * REACH + len(points), 3)
        yield values, labels, 0.25, 4.0, np.array(points), table
        yield np.append(values, 1e300), np.append(labels, 0), 0.25, 4.0, np.array(points), table


def _codes() -> dict[str, Callable[[], Iterator[Given]]]:
    def count() -> Iterator[Given]:
        yield _ints(5, 40) - 1, _ints(3, 40, seed=2), _counts(4, 3)

    def count_matrix() -> Iterator[Given]:
        matrix = _ints(256, 30, 5)
        yield matrix, _ints(3, 30), _counts(5 * 256 * 3), 3, np.zeros(5, np.uint64)
        matrix[3, 1], matrix[4, 2] = -1, 2**62
        yield matrix, _ints(3, 30), _counts(5 * 256 * 3), 3, np.zeros(5, np.uint64)

    def turned() -> Iterator[Given]:
        matrix = _ints(1000, 70, 3) - 500
        yield matrix, _counts(3, 70), np.full(3, 2**63 - 1), np.full(3, -(2**63))

    return {
        "encode": _encode, "count": count, "count_cells": _count_cells, "count_matrix": count_matrix, "turned": turned,
    }  # fmt: skip


# ---- entries


def _sparse(rows: int = 12, width: int = 20) -> tuple[Any, Any, Any]:
    rng = np.random.default_rng(3)
    each = [np.sort(rng.choice(width, size, replace=False)) for size in rng.integers(0, min(12, width), rows)]
    indices = np.concatenate(each)
    return np.cumsum([0, *map(len, each)]), indices, np.ceil(rng.random(len(indices)) * 9)


def _sum_entries() -> Iterator[Given]:
    indptr, indices, data = _sparse()
    labels, width = _ints(3, 12), 20
    for order in (np.arange(12), np.array([11, 3, 4, 5, 0, 9, 1, 10, 2, 7, 6, 8])):
        for spoilt, rows, most in (
            (None, 15, 20),
            (0.5, 15, 20),
            (-1.0, 15, 20),
            (np.nan, 15, 20),
            (None, 2, 20),
            (None, 9, 2),
        ):
            amounts = data.copy()
            if spoilt is not None:
                amounts[7] = spoilt
            left = np.tile(np.array([rows, 2**12, 0]), (3, 1))
            given = (indptr, indices, amounts, order, 0, labels, 0, width, most, 8)
            yield *given, _counts(3, width), left, _counts(64)
    yield (
        indptr,
        indices,
        data,
        np.arange(12),
        0,
        labels,
        0,
        width - 1,
        31,
        0,
        _counts(0, 0),
        _counts(0, 3),
        _counts(64),
    )


def _entries() -> dict[str, Callable[[], Iterator[Given]]]:
    indptr, indices, data = _sparse()
    labels = np.sort(_ints(3, 12))

    def widen() -> Iterator[Given]:
        cells = (_ints(200, 2, 3, 20) << 8) + _ints(9, 2, 3, 20, seed=4)
        yield cells, 8, 1, 18, _counts(3, 20), _counts(3, 2)

    def spread() -> Iterator[Given]:
        table = (_ints(2**31, 3, 20) << 32) + _ints(2**31, 3, 20, seed=4)
        for shift in (0, 32):
            at = np.arange(20)[::-1]
            yield table, shift, 2, 20, at, np.array([2, 0, 1]), 0.5, np.array([3.0, 7.0, 1e-3]), _zeros(20, 3)

    def places() -> Iterator[Given]:
        yield indptr, indices, data, np.arange(12), labels, np.full(20, -1), _counts(21)

    def by_slot() -> Iterator[Given]:
        pairs = {(int(t), int(labels[i])) for i in range(12) for t in indices[indptr[i] : indptr[i + 1]]}
        ends = np.cumsum([0, *np.bincount([t for t, _ in pairs], minlength=20)])
        room = _counts(len(pairs)), _counts(len(pairs), 2)
        yield indptr, indices, data, np.arange(12), labels, ends, ends.copy(), *room

    assert len(indices) <= 64 < STRIP  # the room for changes above
    return {"sum_entries": _sum_entries, "widen": widen, "spread": spread, "places": places, "by_slot": by_slot}


# ---- moments

_EXTREMES = (0.0, -0.0, 1.0, -3.5, 0.1, 1e16, -1e16, 2.0**-40, 1e-30, 123456789.123, np.nan, 2 - 2.0**-52)


def _moments() -> Iterator[Given]:
    for width, more in ((8, ()), (11, ()), (8, (np.inf,)), (8, (1e300,))):
        x = _floats(29, width)
        x.reshape(-1)[: len(_EXTREMES)] = _EXTREMES
        x[:, 3] = np.round(x[:, 3] * 8)
        x[20, 2 : 2 + len(more)] = more
        out, room = room_for(3, x, NEAR[1])
        yield _ints(3, 29), 3, x, -32 * NEAR[0], *out, *room


def _side_by_side() -> Iterator[Given]:
    for width, together in ((1, 8), (2, 4), (3, 2), (5, 1)):
        x = _floats(21, width)
        x[4, 0] = np.nan
        most = 21 // together + 3
        yield _ints(3, 21), 3, x, together, _zeros(most, 8), _counts(most), _counts(3 * width), _counts(3)


# ---- joint


def _cells(width: int, rows: int = 23, terms: int = 6, size: int = 9) -> tuple[Any, Any]:
    return _ints(size, terms, rows).astype(np.int32), _floats(size, width)


def _joint() -> dict[str, Callable[[], Iterator[Given]]]:
    spans = np.array(
        [[0, 4, 0, 5, 0], [4, 9, 5, 2, 20]]
    )  # entries from, to; first reader, how many; where its logs are

    def add_cells() -> Iterator[Given]:
        for width in _WIDTHS:
            codes, table = _cells(width)
            yield codes, 2, table, _floats(3, width, seed=2), _ints(3, 23), _zeros(20, width)

    def sum_cells() -> Iterator[Given]:
        for width in _WIDTHS:
            codes, table = _cells(width)
            yield codes, 2, _floats(20, width), table

    def find_runs() -> Iterator[Given]:
        codes = (_ints(3, 4, 23) + 3 * np.arange(4)[:, None]).astype(np.int32)
        yield codes, 2, 21, 8, 3 * np.arange(5), _counts(3), *_counts(3, 4 * 19)

    def sum_runs() -> Iterator[Given]:
        for width in _WIDTHS:
            cells, ends = np.array([4, 0, 4, 2]), np.array([3, 4, 11, 23])
            yield _ints(20, 23), cells, ends, _floats(20, width), _floats(5, width, seed=2)

    def tell() -> Iterator[Given]:
        for width in (1, 3, 8):
            logs, cells = _floats(30 * width), np.array([[0, 1, 2, 9, 3, 4, 5, 9, 1], [9, 9, 5, 5, 9, 0, 9, 9, 2]])
            for levels in (1, 2):
                yield spans, logs, _floats(7), cells[:levels], _floats(6, width), _zeros(9 * width)

    def hear() -> Iterator[Given]:
        for width in (1, 3, 8):
            for square in (False, True):
                yield spans, _floats(30 * width), _floats(9 * width, seed=2), width, square, _zeros(7)

    def pull() -> Iterator[Given]:
        for width in (1, 3, 9):
            a, b = np.array([0, 1, 3]), np.array([1, 2, 4])
            room = _zeros(6, width), _zeros(3, width), _zeros(3, width)
            yield a, b, _floats(3), _floats(6, 1), _floats(6, width), *room, _floats(8, width)

    def sum_pair() -> Iterator[Given]:
        for width in (1, 3):
            amounts = _floats(30, width), _floats(30, width, seed=2)
            yield _ints(4, 30), _ints(5, 30, seed=2), 3, 4, *amounts, _zeros(12, width), _zeros(12, width)

    def add_words() -> Iterator[Given]:
        for width in _WIDTHS:
            for amounts in (_zeros(0), _floats(17)):
                ends = np.array([0, 3, 3, 10, 17])
                yield ends, _ints(9, 17), amounts, _floats(9, width), _zeros(4, width)

    def sum_words() -> Iterator[Given]:
        for width in _WIDTHS:
            for amounts in (_zeros(0), _floats(17)):
                ends = np.array([0, 3, 3, 10, 17])
                yield ends, _ints(9, 17), amounts, _floats(4, width), _zeros(9, width)

    return {f.__name__: f for f in (
        add_cells, sum_cells, find_runs, sum_runs, tell, hear, pull, sum_pair, add_words, sum_words
    )}  # fmt: skip


# ---- rows


def _rows() -> dict[str, Callable[[], Iterator[Given]]]:
    def each(make: Callable[[int], Given]) -> Callable[[], Iterator[Given]]:
        return lambda: (make(width) for width in (1, 2, 3, 9))

    def square(width: int) -> Any:
        return _floats(11, width)

    labels, weights = _ints(2, 11), np.abs(_floats(11, seed=5)) + 0.1
    of_own = each(lambda w: (square(w), np.minimum(labels, w - 1), weights))
    small = np.exp(-np.abs(_floats(11)))
    return {
        "below_largest": each(lambda w: (square(w), np.minimum(labels, w - 1), _zeros(11), _zeros(11))),
        "to_residuals": each(lambda w: (np.abs(square(w)), np.minimum(labels, w - 1), weights, _zeros(11))),
        "odds_to_residuals": lambda: iter([(_floats(11, 1), labels, weights, small, np.log1p(small))]),
        "own_left": of_own,
        "less": each(lambda w: (square(w), weights, _zeros(11, w))),
        "add_classes": each(lambda w: (square(w), _zeros(11))),
        "add_up": each(lambda w: (square(w), _floats(w, seed=3))),
        "products": each(lambda w: (square(w), _floats(11, w, seed=2), _zeros(11))),
        "say": lambda: ((_floats(11, 3), told, 0.3, weights, _zeros(11, 3)) for told in (_zeros(0, 3), _floats(11, 3))),
        "add_scaled": each(lambda w: (weights, square(w), _floats(11, w, seed=2))),
        "add_said": each(lambda w: (_floats(3, 11, w), square(w), _floats(w), _zeros(11, w))),
    }


# ---- steps


def _turn() -> Iterator[Given]:
    for n, first, count, curved in ((24, 2, 3, 24), (16, 0, 3, 0), (8, 0, 1, 8), (72, 1, 2, 72), (8, 0, 0, 0)):
        steps, changes = _floats(3, n), _floats(3, n, seed=2)
        curvature = np.abs(_floats(curved, seed=3)) + 0.1
        yield steps, changes, _floats(3, seed=4), _zeros(3), curvature, 0.7, first, count, _floats(n, seed=5)


def _tied(kernel: str) -> Callable[[], Iterator[Given]]:
    def probes() -> Iterator[Given]:
        before = np.array([[6, 0, 1, 6, 3, 6], [6, 6, 0, 6, 2, 6]], np.int32)
        after = np.array([[1, 2, 4, 4, 6, 6], [2, 6, 6, 6, 6, 6]], np.int32)
        for width in (1, 2, 3, 9):
            ties = {w: np.where(np.array(rows) < 6, np.abs(_floats(2, 6, seed=6)) + 0.1, 0.0)
                    for w, rows in (("before", before), ("after", after))}  # fmt: skip
            each = [np.abs(_floats(6, width, seed=s)) + 0.1 for s in (2, 3)]
            given = {
                "pivots": (before, ties["before"], np.abs(_floats(7, width)) + 9.0),
                "tied": (after, ties["after"], *each, _floats(6, width, seed=4), _zeros(7, width)),
                "untied": (
                    before,
                    ties["before"],
                    *each,
                    _floats(6, width, seed=4),
                    _zeros(7, width),
                    _zeros(6, width),
                ),
            }
            yield given[kernel]

    return probes


# ---- scores


def _bells(classes: int, width: int, columns: Any) -> Bells:
    return Bells.of(columns, _floats(classes, width), np.abs(_floats(classes, width, seed=2)) + 0.01)


def _normal(rows: int, width: int) -> Iterator[Any]:
    for seed, value in enumerate((None, np.nan, 1e200)):
        x = _floats(rows, width, seed=seed)
        if value is not None:
            x[2, 1 % width] = value
        yield x


def _normal_rows(classes: int) -> Iterator[Given]:
    columns = np.array([0, 1, 2, 4, 5, 6, 7, 8, 10])
    bells = _bells(classes, 9, columns)
    totals = np.zeros_like(bells.room())
    for rows in (6, TILE + 2):
        for x in _normal(rows, 11):
            yield x, *bells, 0.7, *bells.eights(11), totals


def _scores() -> dict[str, Callable[[], Iterator[Given]]]:
    def add_entries() -> Iterator[Given]:
        row = np.array([2, -1, 0, 1])
        yield _ints(4, 20), _ints(3, 20, seed=2), _ints(50, 20), -3, row, _counts(3, 3)

    def products_of_each() -> Iterator[Given]:
        indptr, indices, data = _sparse(5, 6)
        codes = (_ints(7, 6, 8) * 16).astype(np.int32)
        yield indptr, indices * 8, data / 3, codes, _floats(7, 16), 1, _zeros(4, 8, 16)

    def add_normal() -> Iterator[Given]:
        for x in _normal(TILE + 5, 4):
            yield x, *_bells(3, 3, np.array([0, 1, 3])), 0.7, _zeros(4, TILE), _floats(TILE + 5, 3)

    def add_normal_rows() -> Iterator[Given]:
        for classes in (2, 3):
            for given in _normal_rows(classes):
                yield *given, _floats(len(given[0]), classes)

    def best_normal_rows() -> Iterator[Given]:
        for classes in (2, 3):
            for given in _normal_rows(classes):
                yield *given, _floats(classes), _counts(len(given[0]))

    def add_rows() -> Iterator[Given]:
        yield _floats(5, 3), _ints(5, 20) - 1, _floats(20, 3, seed=2)

    def add_matrix() -> Iterator[Given]:
        matrix = _ints(6, 10, 4) - 1
        low, values, start = np.array([0, 1, 0, -1]), np.array([4, 3, 4, 5]), np.array([0, 5, 9, 14])
        table = np.zeros((20, 16))
        table[:, :11] = _floats(20, 11)
        yield matrix, np.arange(4), low, values, start, table, _zeros(16), _counts(4), _floats(10, 11)

    def products() -> Iterator[Given]:
        yield *_sparse(), _floats(20, 3), 2, _zeros(10, 3)

    def largest() -> Iterator[Given]:
        scores = np.round(_floats(30, 4))
        scores[3], scores[4, 1], scores[5] = -np.inf, np.nan, [1.0, 2.0, 2.0, -np.inf]
        yield scores, _counts(30)

    return {f.__name__: f for f in (
        add_entries, products_of_each, add_normal, add_normal_rows, best_normal_rows, add_rows, add_matrix, products,
        largest,
    )}  # fmt: skip


PROBES: dict[str, Callable[[], Iterator[Given]]] = {
    **{f"codes.{name}": probe for name, probe in _codes().items()},
    **{f"entries.{name}": probe for name, probe in _entries().items()},
    **{f"joint.{name}": probe for name, probe in _joint().items()},
    **{f"rows.{name}": probe for name, probe in _rows().items()},
    **{f"scores.{name}": probe for name, probe in _scores().items()},
    "steps.turn": _turn,
    **{f"steps.{name}": _tied(name) for name in ("pivots", "tied", "untied")},
    "moments._moments": _moments,
    "moments._side_by_side": _side_by_side,
    **TEXT_PROBES,
}
