"""What counts say of the values of one column: how far to believe each, where to cut the line, who is like whom."""

from __future__ import annotations

import numpy as np

from ...base.arrays import Floats, Ints
from ...exact.cells import Cells

_STRENGTHS = 2.0 ** np.arange(7)  # imagined rows of a value
_USUAL = 4.0  # of them
_FEWEST = 8  # stretches of a number's line, where rows are few
_HALF = 0.5  # imagined rows of each class of a stretch
_NATS, _ERRORS = 3.0, 2.0  # what values must tell beyond their stretch, over all rows and in standard errors


def back_off(n: Floats) -> float:
    """How many imagined rows of every value let the others forecast the class of each row best; n is values × classes.

    P(y given v) = (n_vy − 1 + m·P(y)) / (n_v − 1 + m)
    """
    v, y = np.nonzero(n)
    if not len(v):
        return 1.0
    own, of_class = n[v, y], n.sum(axis=0)
    others, of_value = own - np.minimum(own, 1.0), n.sum(axis=1)[v] - np.minimum(own, 1.0)
    share = of_class[y] / of_class.sum()
    m = _STRENGTHS[:, None]
    usual = -0.5 * np.log(_STRENGTHS / _USUAL) ** 2
    return float(_STRENGTHS[np.argmax((np.log(others + m * share) - np.log(of_value + m)) @ own + usual)])


def along_the_line(rows: Ints) -> Ints:
    """The stretch of each cell of a number, of √rows stretches: more differences between them could not be told."""
    return stretches(rows.astype(np.float64), max(_FEWEST, int(np.sqrt(rows.sum()))))


def differ(n: Floats, group: Ints) -> bool:
    """Whether values of one stretch differ beyond chance; n is values × classes × folds.

    The class of each row is forecast by the other folds: by all rows of its stretch, P(y given stretch), and by those
    of its value drawn towards that, (n_vy + m·P) / (n_v + m). What the second gains must be more than chance makes of
    it: two standard errors, each value a draw, and three nats over all rows.
    """
    if int(group.max(initial=-1)) + 1 == len(group):
        return False
    others = n.sum(axis=2, keepdims=True) - n
    together = np.zeros((int(group[-1]) + 1, *n.shape[1:]))
    np.add.at(together, group, others)
    together += _HALF
    v, y, fold = np.nonzero(n)
    own, of_y, of_value = n[v, y, fold], others[v, y, fold], others.sum(axis=1)[v, fold]
    share = together[group[v], y, fold] / together.sum(axis=1)[group[v], fold]
    told: Floats = np.zeros(len(n))  # of each value
    for m in _STRENGTHS[::-1].tolist():  # as long as less pull tells more
        each = own * np.log((of_y + m * share) / ((of_value + m) * share))
        more = np.bincount(v, each, len(n)).astype(np.float64)
        if more.sum() <= told.sum():
            break
        told = more
    return bool(told.sum() > max(_NATS, _ERRORS * float(np.sqrt(told @ told))))


def stretches(rows: Floats, most: int) -> Ints:
    """The stretch of each cell, filled evenly by the square root of how many rows cells have: tails are told apart."""
    heavy = np.sqrt(rows)
    place = (np.cumsum(heavy) - heavy / 2) * most / max(float(heavy.sum()), 1e-300)
    return np.unique(np.minimum(place.astype(np.int64), most - 1), return_inverse=True)[1]


def ends(distinct: Floats, times: Ints, cells: Cells | None, most: int) -> Ints:
    """Where to cut sorted distinct values: the last of each cell but the final one.

    Values that a tally counts in one cell are never parted. If there are too many cells, half of the cuts are at
    quantiles of the rows, half at quantiles of the distinct values, which are in the tails where the rows are not.
    """
    last = np.arange(max(len(distinct) - 1, 0))
    if cells is not None and len(last):
        last = np.flatnonzero(np.diff(cells.codes(distinct)))
    if len(last) < most:
        return last
    below = np.cumsum(times)
    wanted = np.arange(1, most // 2) / (most // 2)
    by_rows = np.searchsorted(below[last], wanted * below[-1])
    by_values = (wanted * len(last)).astype(np.int64)
    return np.asarray(last[np.unique(np.minimum(np.concatenate([by_rows, by_values]), len(last) - 1))])
