"""How often chance alone shows as much at any time: all rows dealt out to the periods anew, again and again.

    p = (1 + deals that show as much) / (1 + deals)

What a deal shows is one figure of all times and both questions, of the rows as they came as well as of the deals:
`combined`, the mean of Cauchy quantiles of the p-values at each time. Read as a p-value itself, that figure is too
small: by a third where 24 times tell nearly the same, and by more far out, where the gamma curve behind each p-value
of a number thins out before the statistic does. The deals have the same faults, so the share of them that show as much
is right whatever the figure is, with any number of periods, and with few rows. The deals are the same every time.

A column without a change needs none of them, or a few dozen. Of one that changed beyond doubt none shows as much: its p
is read off the tail of those there are, the largest of which fall off like an exponential in −log of the figure.

Of thousands of values over many periods fewer deals are drawn. The share above is right with any number of them: under
chance alone it is at or below any level with no more than that probability. Few deals only tell it more coarsely, and
they are never so few that it could not be below the level of one of so many questions. The tail, of which few deals say
little, is then asked only how far beyond all of them the figure lies.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from ...base.arrays import Floats, Ints
from ...model.joint.dependence import LEVEL
from ...model.joint.two_samples import MOST_SLOTS, chances_by_moments

_MOST_ROWS = 10_000  # that are dealt out: of more, the law is that of so many in the same shares
_ENOUGH = 10  # deals that show as much: p is then known to a third of itself
_SOME = 8  # of fewer p is told by the tail
_NO_SIGN = 0.25  # p that no verdict turns at: a few deals do, and none of a figure beyond it
_FEWEST, _MOST = 1000, 20_000  # deals, unless it is clear before
_MOST_DEALT = 1 << 27  # rows times deals
_MOST_CELLS = 1 << 29  # of all deals together: about ten seconds
_CELLS = 1 << 20  # of the deals that are worked out at once
_BEYOND_DOUBT = 0.01  # of the level that one of so many columns must reach
_TAIL = 100  # deals that show most, by which p is told where too few show as much

LEAST, _HIGH = 1e-300, 0.9  # p-values as they are combined: one that is nearly 1 must not outweigh all others


def combined(p: Floats) -> Floats:
    """One p for several, along the first axis: their mean as Cauchy's quantiles (Liu and Xie, 2020).

    >>> combined(np.array([[0.01], [0.01]])).round(6).tolist(), combined(np.array([[0.01], [0.5]])).round(3).tolist()
    ([0.01], [0.02])
    """
    least = p.min(axis=0)
    mean = np.mean(1 / np.tan(np.pi * np.clip(p, LEAST, _HIGH)), axis=0)
    with np.errstate(divide="ignore"):
        found = np.where(mean > 0, np.arctan(1 / mean) / np.pi, 0.5 - np.arctan(mean) / np.pi)
    return np.asarray(np.where(least > _HIGH, least, found))


def chance_of_any(table: Floats, ordered: int, questions: int) -> float:
    """p of a change at any time: counts of whole rows, stretches of periods × slots × classes, one of many columns.

    Asked over all classes and within each, unless there is but one. The first `ordered` slots stand on a line. Of very
    many cells fewer deals are drawn: the level holds as it does with many, and p is told more coarsely.
    """
    shape = table.shape
    found = float(_shown(np.cumsum(table, axis=0)[None, :-1], table.sum(axis=0), ordered)[0])
    if found > _NO_SIGN:
        return found
    flat = table.reshape(len(table), -1)
    if flat.sum() > _MOST_ROWS:
        ends = np.rint(np.cumsum(flat) * (_MOST_ROWS / flat.sum()))
        flat = np.diff(ends, prepend=0.0).reshape(flat.shape)
    by_cell = flat.sum(axis=0).reshape(shape[1:])
    kept = np.union1d(np.flatnonzero(by_cell.any(axis=1)), np.arange(min(shape[1], MOST_SLOTS + 1)))
    flat, total = flat.reshape(shape)[:, kept], by_cell[kept]  # as many slots as it takes to ask the same statistic
    shape, flat = flat.shape, flat.reshape(len(flat), -1)
    when, what = (np.repeat(codes, flat.sum(axis=axis).astype(np.int64)) for axis, codes in _codes(flat))
    enough_deals = int(np.clip(_ENOUGH * questions / LEVEL, _FEWEST, _MOST))
    fewest = max(2 * _TAIL, math.ceil(questions / LEVEL))
    most = min(enough_deals, max(min(_MOST_DEALT // len(what), _MOST_CELLS // flat.size), fewest))
    at_once = max(_CELLS // max(flat.size, len(what)), 1)
    rng, shown, batch = np.random.default_rng(0), np.zeros(0), 32
    while len(shown) < most:
        for done in range(0, batch, at_once):
            dealt = _dealt(rng, when, what, (min(at_once, batch - done), *shape))
            shown = np.append(shown, _shown(np.cumsum(dealt, axis=1)[:, :-1], total, ordered))
        further = int(np.count_nonzero(shown <= found * (1 + 1e-9)))
        if further >= _ENOUGH or (1 + further) / (1 + len(shown)) > _NO_SIGN:
            break
        if len(shown) >= _FEWEST and _by_tail(shown, found) * questions < _BEYOND_DOUBT * LEVEL:
            break
        batch = min(len(shown), most - len(shown))
    share = (1 + further) / (1 + len(shown))
    by_share_alone = further >= (_SOME if most == enough_deals else 1)
    return share if by_share_alone else min(share, _by_tail(shown, found))


def _codes(flat: Floats) -> tuple[tuple[int, Ints], tuple[int, Ints]]:
    """The numbers of stretches and of cells, each with the axis that the counts are added up along."""
    return (1, np.arange(flat.shape[0])), (0, np.arange(flat.shape[1]))


def _dealt(rng: np.random.Generator, when: Ints, what: Ints, shape: Sequence[int]) -> Floats:
    """Tables that come of dealing out the rows to the periods, deals × stretches × slots × classes."""
    rows = rng.permuted(np.tile(what, (shape[0], 1)), axis=1)
    cells = int(np.prod(shape[2:]))
    at = rows + (when + shape[1] * np.arange(shape[0])[:, None]) * cells
    return np.bincount(at.ravel(), minlength=int(np.prod(shape))).reshape(shape).astype(np.float64)


def _shown(before: Floats, total: Floats, ordered: int) -> Floats:
    """The figure of each deal, deals × times × slots × classes before the time: p-values of all times as one."""
    deals, times = before.shape[:2]
    tables = [before.sum(axis=3, keepdims=True), before] if before.shape[3] > 1 else [before]
    totals = [total.sum(axis=1, keepdims=True), total]
    p = [
        chances_by_moments(table.reshape(deals * times, *table.shape[2:]), whole, ordered).reshape(deals, times)
        for table, whole in zip(tables, totals, strict=False)
    ]
    return combined(np.concatenate(p, axis=1).T)


def _by_tail(shown: Floats, found: float) -> float:
    """p of a figure beyond most deals: their tail falls off like an exponential, no faster than the figure itself."""
    size = min(_TAIL, len(shown) // 10)
    far = -np.log(np.maximum(np.partition(shown, size)[: size + 1], LEAST))
    start = far.min()
    rate = min(size / max(float(np.sum(far - start)), 1e-9), 1.0)
    return float(min(size / len(shown) * np.exp(-rate * (-np.log(max(found, LEAST)) - start)), 1.0))
