"""The smoothing of each column from a tally alone: the α under which each occurrence is best foretold by all others.

Of the counts n of a class with N occurrences among K slots that is the α with the highest

    Σ_y Σ_s n_sy · log[(n_sy − 1 + α)/(N_y − 1 + α·K)]

Slots with equal counts add the same, so the sum is over different counts, however many words there are.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from scipy.optimize import minimize_scalar

from ...base.arrays import Floats
from ...base.errors import SettingsError
from ...data.blocks import WORDS, N
from ...families.settings import Settings
from ...families.smoothing import Laplace
from ...tally.tally import Tally


def with_likeliest(tally: Tally, base: Settings) -> Settings:
    """The settings with the likeliest α of each category and text that they say nothing of."""
    slots = [c.name for c in tally.schema.counted if c.like == "category" or c.about.words]
    found = {name: Laplace(likeliest_alpha(tally, name)) for name in slots}
    own = base.smoothing if isinstance(base.smoothing, Mapping) else {}
    return replace(base, smoothing={**found, **own})


def slot_counts(tally: Tally, column: str, amount: str = "n") -> tuple[Floats, int]:
    """The counts of a category's values or a text's words, slots × classes, and K, how many slots there are."""
    category = tally.schema[column].like == "category"
    if not category and not tally.schema[column].about.words:
        raise SettingsError(
            f"column {column!r} is a {tally.schema[column].kind}: it has no values or words to count",
            hint="an α belongs to a category, a text or a bag.",
        )
    sheet = tally.columns[column].sheet("values" if category else "words", N if category else WORDS)
    declared = tally.schema[column].values or ()
    width = tally.schema[column].width or 0
    return sheet.table(amount, len(tally.classes)), max(len({*sheet.slot_names, *declared}), width)


def left_out_likelihood(tally: Tally, column: str, alpha: float, amount: str = "n") -> float:
    """The sum at the top of this file; −inf where α is 0 and some value occurs once in a class."""
    n, k = slot_counts(tally, column, amount)
    return _likelihood(*_grouped(n), k, alpha)


def likeliest_alpha(tally: Tally, column: str, amount: str = "n") -> float:
    """The α between 10⁻⁶ and 10⁶ with the highest left-out likelihood: nothing is read but the tally.

    >>> import tallybayes as tb
    >>> schema = tb.Schema([tb.Column("x", "category")], target="y")
    >>> tally = tb.count({"x": list("aaaaaabbbbbc"), "y": list("ppppppqqqqqq")}, schema)
    >>> round(likeliest_alpha(tally, "x"), 3)
    0.255
    """
    n, k = slot_counts(tally, column, amount)
    grouped = _grouped(n)
    grid = np.linspace(np.log(1e-6), np.log(1e6), 49)
    best = int(np.argmax([_likelihood(*grouped, k, float(np.exp(a))) for a in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(lambda a: -_likelihood(*grouped, k, float(np.exp(a))), bounds=(low, high), method="bounded")
    return float(np.exp(found.x))


def _grouped(n: Floats) -> tuple[Floats, Floats, Floats]:
    """Different counts of one class, how many slots have each, and the class's total, all in one list."""
    values, times, totals = [], [], []
    for y in range(n.shape[1]):
        found, how_many = np.unique(n[:, y], return_counts=True)
        values.append(found)
        times.append(how_many.astype(np.float64))
        totals.append(np.full(len(found), n[:, y].sum()))
    return np.concatenate(values), np.concatenate(times), np.concatenate(totals)


def _likelihood(value: Floats, times: Floats, total: Floats, k: int, alpha: float) -> float:
    there = (value > 0) & (total > 1)  # a class with one occurrence has no others to foretell it
    value, times, total = value[there], times[there], total[there]
    with np.errstate(divide="ignore"):
        return float(np.sum(times * value * (np.log(np.maximum(value - 1, 0) + alpha) - np.log(total - 1 + alpha * k))))
