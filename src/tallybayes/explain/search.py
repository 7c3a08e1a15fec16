"""The fewest changes that are enough: over the words of a text, and over sets of columns; where the answer turns."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING

import numpy as np

from ..base.arrays import Bools, Floats
from ..model import posterior
from .changes import Coupled, Move, Possible

if TYPE_CHECKING:
    from ..model.model import Model

_MOST_WORDS = 30  # changes of a text whose evidence depends on its length
_MOST_NODES = 100_000  # sets looked at for a class asked for by name
_BEYOND = 0.02  # of the way from a number to the border: as far as a short number may lie past it

Best = list[tuple[float, list[Move]]]  # by number of changes: the gain, and the changes


def best_words(text: Coupled, a: int, b: int) -> Best:
    """The best k changes of a coupled text for class a against b, k from 0 up."""
    tops = {n: _top(moves, a, b) for n, moves in text.by_length.items()}
    # how many words of each group are taken, by their number and by the change of length
    states: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {(0, 0): (0.0, ())}
    for length, top in tops.items():
        total = [0.0, *accumulate(gain for gain, _ in top)]
        new: dict[tuple[int, int], tuple[float, tuple[int, ...]]] = {}
        for (k, moved), (gain, taken) in states.items():
            for j in range(min(len(total) - 1, _MOST_WORDS - k) + 1):
                key, value = (k + j, moved + j * length), gain + total[j]
                if key not in new or value > new[key][0]:
                    new[key] = (value, (*taken, j))
        states = new
    now = text.score(text.core, text.tokens)
    core = float(text.core[0, a] - text.core[1, b])
    best: dict[int, tuple[float, int, tuple[int, ...]]] = {}
    for (k, moved), (gain, taken) in states.items():
        scale, extra = text.at_length(text.tokens + moved)
        reach = scale * (core + gain) + float(extra[0, a] - extra[1, b])
        if k not in best or reach > best[k][0]:
            best[k] = (reach, moved, taken)
    out: Best = [(0.0, [])]
    for k in range(1, max(best) + 1):
        _, moved, taken = best[k]
        chosen = [m for top, j in zip(tops.values(), taken, strict=True) for _, m in top[:j]]
        change = text.score(text.core + np.sum([m.delta for m in chosen], axis=0), text.tokens + moved) - now
        out.append((float(change[0, a] - change[1, b]), chosen))
    return out


def _top(moves: tuple[list[Move], Floats], a: int, b: int) -> list[tuple[float, Move]]:
    """The changes that gain most for class a against b."""
    each, deltas = moves
    gains = deltas[:, 0, a] - deltas[:, 1, b]
    order = np.argsort(-gains, kind="stable")[:_MOST_WORDS].tolist()
    return [(float(gains[i]), each[i]) for i in order]


def combined(texts: Sequence[Best]) -> Best:
    """The best k changes over several texts."""
    out: Best = [(0.0, [])]
    for text in texts:
        sums: dict[int, tuple[float, list[Move]]] = {}
        for i, (g, chosen) in enumerate(out):
            for j, (h, more) in enumerate(text):
                if i + j not in sums or g + h > sums[i + j][0]:
                    sums[i + j] = (g + h, [*chosen, *more])
        out = [sums[k] for k in sorted(sums)]
    return out


def smallest_set(
    possible: Possible, scores: Floats, to: int, rivals: Sequence[int], fewest: int, slack: float
) -> tuple[list[Move], bool]:
    """Single changes that put a class ahead of every rival: sets by size, cut off where no completion can do.

    The second value is False where the search was given up.
    """
    need = scores[1, rivals] - scores[0, to] + slack
    units = []
    for moves in possible.units.values():
        gains = np.array([m.gain(to, rivals) for m in moves])
        kept = [i for i in range(len(moves)) if (gains[i] > 0).any() and not _beaten(gains, i)]
        if kept:
            units.append([(gains[i], moves[i]) for i in kept])
    units.sort(key=lambda u: -max(float(np.minimum(g, need).sum()) for g, _ in u))
    tops = np.array([np.max([g for g, _ in u], axis=0) for u in units]) if units else np.zeros((0, len(rivals)))
    nodes = 0

    def search(start: int, left: int, short: Floats, chosen: list[Move]) -> list[Move] | None:
        nonlocal nodes
        if np.all(short < 0):
            return chosen
        nodes += 1
        if left == 0 or nodes > _MOST_NODES or start == len(units):
            return None
        rest = np.sort(tops[start:], axis=0)[::-1][:left]
        if np.any(np.maximum(rest, 0).sum(axis=0) <= short):
            return None
        for u in range(start, len(units)):
            for gain, move in sorted(units[u], key=lambda g: -float(np.minimum(g[0], short).sum())):
                done = search(u + 1, left - 1, short - gain, [*chosen, move])
                if done is not None:
                    return done
        return None

    for size in range(fewest, len(units) + 1):
        found = search(0, size, need, [])
        if found is not None or nodes > _MOST_NODES:
            return found or [], nodes <= _MOST_NODES
    return [], True


def _beaten(gains: Floats, i: int) -> bool:
    """Whether another value of the same column is at least as good against every rival."""
    better = np.all(gains >= gains[i], axis=1) & np.any(gains > gains[i], axis=1)
    return bool(better.any() or (np.all(gains[:i] == gains[i], axis=1)).any())


# ---- where the answer turns


def short_number(border: float, x: float, end: float, turns: Callable[[Floats], Bools]) -> float:
    """A number of few digits from the border on, away from x but not beyond `end`, that still turns the answer."""
    away = 1.0 if border > x else -1.0
    room = min(_BEYOND * abs(border - x), abs(end - border))
    first = -max(math.floor(math.log10(max(abs(border), 1e-300))), 0)
    for digits in range(first, first + 17):
        step = 10.0**-digits
        first_past = math.ceil(away * border / step - 1e-9)
        for steps in (first_past, first_past + 1):  # the border may lie just beside a short number
            value = round(steps * step * away, max(digits, 0))
            if 0 <= away * (value - border) <= room and bool(turns(np.array([value]))[0]):
                return value
    return border


def border(model: Model) -> float:
    """The log-odds from which the second of two classes wins: 0 unless an isotonic curve moves it."""
    if model.settings.isotonic is None or len(model.classes) != 2:
        return 0.0
    low, high = -60.0, 60.0
    for _ in range(80):  # the curve rises, so halving finds where it crosses
        middle = (low + high) / 2
        bent = float(np.diff(posterior.calibrated(model.settings, np.array([[0.0, middle]])))[0, 0])
        low, high = (low, middle) if bent > 0 else (middle, high)
    return high
