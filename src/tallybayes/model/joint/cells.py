"""The cells of a joint table: how they are counted, and what is believed of each.

A cell is one value of every column. Counted, it is a slot: its values as a JSON list, with an exact number of rows.
Believed (`CellProbabilities`), it is named by its codes, for each column the number of its value, and has the log of a
probability: some cells are listed, all others are alike. So a table of 3^60 cells costs what its listed ones cost, and
nothing underflows.
"""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Bools, Floats, Ints, log_sum_exp, safe_log
from ...base.errors import CannotEstimate, DataError, SettingsError, excerpt, unknown, warn
from ...data import values as reading
from ...data.blocks import Codes, N
from ...data.pairs import stretch_names
from ...data.sources import Batch
from ...exact.counts import Counts
from ...exact.limbs import Limbs, canonical
from ...exact.sheet import Sheet
from ...families.settings import MOST_OFF_ONE
from ...families.smoothing import Dirichlet, Epsilon, Laplace, MaximumLikelihood, Smoothing
from .dependence import MOST_LISTED, cell_count, equal_rows, sum_by

_CELLS = "cells"  # the sheet's name


def distinct(columns: Iterable[str]) -> tuple[str, ...]:
    """The names of at least one column, refused if one is there twice."""
    names = tuple(str(c) for c in columns)
    if not names or len(set(names)) < len(names):
        raise SettingsError(
            f"the columns are {excerpt(names) or 'none'}", hint="name at least one column, and none more than once."
        )
    return names


Cuts = Mapping[str, tuple[float, ...]]  # column of numbers → where it is cut


def checked_cuts(given: Mapping[str, Any]) -> dict[str, tuple[float, ...]]:
    """Cuts as rising numbers: one number, or several."""
    out = {}
    for name, cuts in given.items():
        try:
            found = np.unique(np.asarray(cuts, dtype=np.float64))
        except (TypeError, ValueError):
            found = np.zeros(0)
        if not len(found) or not np.isfinite(found).all():
            raise SettingsError(
                f"column {name!r} is cut at {cuts!r}", hint="give a number or several: {'hours': 40.5}."
            )
        out[name] = tuple(found.tolist())
    return out


def cut_column(batch: Batch, name: str, cuts: Sequence[float]) -> Codes:
    """A column of numbers as the stretches between cuts."""
    values = reading.number(batch[name], reading.Where(name, batch.start, batch.place), ("",))
    return Codes(stretch_names(cuts), np.where(np.isnan(values), -1, np.searchsorted(cuts, values, side="right")))


def categories(names: Sequence[str], batch: Batch, cuts: Cuts | None = None) -> list[Codes]:
    """The columns as categories; an absent one is an error."""
    absent = [c for c in names if c not in batch]
    if absent and (batch.rows or batch.columns):
        raise unknown(DataError, f"there is no column {absent[0]!r}", absent[0], batch.names())
    if absent:
        return [Codes([], np.zeros(0, dtype=np.int64)) for _ in names]
    for c in names:
        reading.check_flat(batch[c], reading.Where(c, batch.start, batch.place))
    cut = cuts or {}
    return [cut_column(batch, c, cut[c]) if c in cut else reading.category(batch[c], ("",)) for c in names]


def count_batch(names: Sequence[str], batch: Batch, cuts: Cuts) -> tuple[Counts, int]:
    """The counts of a batch, and how many rows were skipped since a value is missing."""
    blocks = categories(names, batch, cuts)
    codes = np.stack([b.codes for b in blocks], axis=1)
    whole = codes[(codes >= 0).all(axis=1)]
    return count_cells([b.slots for b in blocks], whole, np.ones(len(whole))), len(codes) - len(whole)


def count_cells(values: Sequence[Sequence[str]], codes: Ints, n: Floats) -> Counts:
    """The counts of cells that hold n rows each; equal cells are added up."""
    if len(codes) == 0:
        return Counts({})
    group, first = equal_rows(codes)
    sums = sum_by(group, n, len(first)).astype(np.int64)
    slots = [json.dumps([v[c] for v, c in zip(values, row, strict=True)]) for row in codes[first].tolist()]
    sheet = Sheet.dense(slots, 1, {"n": canonical(Limbs(0, sums[:, None]))})
    return Counts({_CELLS: sheet} if len(sheet) else {})


def cell_texts(counts: Counts) -> list[list[str]]:
    """The values of each counted cell."""
    return [json.loads(slot) for slot in counts.sheet(_CELLS, N).slot_names]


def seen_cells(counts: Counts, texts: Sequence[Sequence[str]], values: Sequence[Sequence[str]]) -> tuple[Ints, Floats]:
    """The codes of the counted cells, rising, and how many rows fell into each; below 0 in a difference."""
    codes = coded(values, texts)
    order = np.lexsort(codes.T[::-1])
    return codes[order], counts.sheet(_CELLS, N).table("n", 1)[:, 0][order]


def renumbered(values: Sequence[str], block: Codes) -> Ints:
    """The codes of a block as the numbers of these values: MISSING stays, others are OUTSIDE."""
    at = {v: i for i, v in enumerate(values)}
    new = np.array([*(at.get(s, OUTSIDE) for s in block.slots), MISSING], dtype=np.int64)
    return new[block.codes]


MISSING, OUTSIDE = -1, -2  # codes of a value that is not there, and of one that the table does not have

At = Mapping[int, int]  # column number → code


@dataclass(frozen=True, eq=False)
class CellProbabilities:
    """What is believed of the cells."""

    sizes: tuple[int, ...]  # per column: how many values it has
    codes: Ints  # listed cells × columns
    log_p: Floats  # of the listed cells
    log_rest: float  # of every cell that is not listed

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CellProbabilities):
            return NotImplemented
        return (
            (self.sizes, self.log_rest) == (other.sizes, other.log_rest)
            and np.array_equal(self.codes, other.codes)
            and np.array_equal(self.log_p, other.log_p)
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def cells(self) -> int:
        """How many cells there are, listed or not."""
        return cell_count(self.sizes)

    def log(self, at: At) -> float:
        """log P(these codes), the other columns summed out."""
        if OUTSIDE in at.values():
            return -math.inf
        listed = picked(self.codes, at)
        alike = cell_count(k for j, k in enumerate(self.sizes) if j not in at) - int(listed.sum())
        return float(log_sum_exp(np.append(self.log_p[listed], _log_int(alike) + self.log_rest)))

    def lookup(self, codes: Ints) -> Floats:
        """log P of the cells with these codes, one per row."""
        group, _ = equal_rows(np.vstack([self.codes, codes]) - OUTSIDE)  # codes of at least 0
        out = np.full(int(group.max(initial=0)) + 1, self.log_rest)
        out[group[: len(self.codes)]] = self.log_p
        return np.where((codes == OUTSIDE).any(axis=1), -math.inf, out[group[len(self.codes) :]])

    def marginal(self, at: Sequence[int]) -> CellProbabilities:
        """The table of these columns, the others summed out."""
        group, first = equal_rows(self.codes[:, at])
        alike = cell_count(k for j, k in enumerate(self.sizes) if j not in at)
        rest = [alike - k for k in np.bincount(group, minlength=len(first)).tolist()]
        extra = np.array([_log_int(k) for k in rest]) + self.log_rest
        log_p = np.logaddexp(_log_sums(group, len(first), self.log_p), extra)
        sizes = tuple(self.sizes[j] for j in at)
        return CellProbabilities(sizes, self.codes[first][:, at], log_p, math.log(alike) + self.log_rest)

    def given(self, at: At) -> CellProbabilities:
        """The table of the other columns where these have their codes, which must be possible."""
        here, total = picked(self.codes, at), self.log(at)
        open_ = [j for j in range(len(self.sizes)) if j not in at]
        sizes = tuple(self.sizes[j] for j in open_)
        return CellProbabilities(sizes, self.codes[here][:, open_], self.log_p[here] - total, self.log_rest - total)

    def product(self, other: CellProbabilities) -> CellProbabilities:
        """The table of the columns of both, which know nothing of each other: P(a, b) = P(a)·P(b)."""
        mine, yours = self.all_codes(), other.all_codes()
        left, right = (i.ravel() for i in np.indices((len(mine), len(yours))))
        log_p = self.lookup(mine)[left] + other.lookup(yours)[right]
        some = log_p > -math.inf
        codes = np.hstack([mine[left], yours[right]])
        return CellProbabilities((*self.sizes, *other.sizes), codes[some], log_p[some], -math.inf)

    def all_codes(self) -> Ints:
        """Every cell, listed or not, in order; refused where they are too many."""
        if self.cells > MOST_LISTED:
            raise SettingsError(
                f"a table of {short_count(self.cells)} cells is too large to be written out", hint="take fewer columns."
            )
        return np.stack(np.unravel_index(np.arange(self.cells), self.sizes), axis=1).astype(np.int64)

    def draw(self, n: int, rng: np.random.Generator) -> Ints:
        """The codes of n cells drawn by their probability."""
        listed = len(self.log_p)
        logs = np.append(self.log_p, _log_int(self.cells - listed) + self.log_rest)
        p = np.exp(logs - log_sum_exp(logs))
        drawn = rng.choice(len(p), size=n, p=p / p.sum())
        out = np.zeros((n, len(self.sizes)), dtype=np.int64)
        known = drawn < listed
        out[known] = self.codes[drawn[known]]
        if not known.all():
            out[~known] = self._draw_unlisted(int(np.count_nonzero(~known)), rng)
        return out

    def _draw_unlisted(self, n: int, rng: np.random.Generator) -> Ints:
        """Cells drawn evenly from those that are not listed."""
        if self.cells <= MOST_LISTED:
            taken = np.ravel_multi_index(tuple(self.codes.T), self.sizes)
            free: Ints = np.delete(self.all_codes(), taken, axis=0)
            return free[rng.integers(0, len(free), size=n)]
        out: Ints = rng.integers(0, self.sizes, size=(n, len(self.sizes)))
        while True:  # among more than a million cells the listed ones are a small part
            group, _ = equal_rows(np.vstack([self.codes, out]))
            again = np.isin(group[len(self.codes) :], group[: len(self.codes)])
            if not again.any():
                return out
            out[again] = rng.integers(0, self.sizes, size=(int(again.sum()), len(self.sizes)))


def estimated(smoothing: Smoothing, values: Sequence[Sequence[str]], codes: Ints, n: Floats) -> CellProbabilities:
    """What is believed after n rows, at least one in all, fell into each of some cells and none into the others."""
    if (n < 0).any():
        cell = [v[c] for v, c in zip(values, codes[np.argmax(n < 0)], strict=True)]
        raise CannotEstimate(
            f"this table is a difference that no rows can have: {', '.join(cell)} at n = {n.min():g}",
            hint="ask a sum of counted rows; subtract only what was added before.",
        )
    if len(n) == 0:
        raise CannotEstimate("this table has no rows", hint="count at least one row without missing values first.")
    sizes = tuple(len(v) for v in values)
    cells, total = cell_count(sizes), float(n.sum())
    if isinstance(smoothing, Dirichlet):
        raise SettingsError(
            "a Dirichlet prior names the values of one column", hint="take Laplace(a) for joint tables."
        )
    if isinstance(smoothing, Laplace):  # in logs, so that 3^1000 cells are no trouble
        log_alpha = math.log(smoothing.alpha) if smoothing.alpha else -math.inf
        bottom = float(np.logaddexp(math.log(total), log_alpha + math.log(cells)))
        return CellProbabilities(sizes, codes, safe_log(n + smoothing.alpha) - bottom, log_alpha - bottom)
    unseen = cells - len(n)
    if isinstance(smoothing, (MaximumLikelihood, Epsilon)):
        unseen = min(unseen, 1)  # to these the number of cells is nothing: one stands for all
    if unseen > MOST_LISTED:
        raise SettingsError(
            f"{smoothing} would have to list {short_count(cells)} cells", hint="take Laplace(a), or fewer columns."
        )
    table = np.concatenate([n, np.zeros(unseen)])[:, None]
    log_p = safe_log(smoothing.probabilities(table, [""] * len(table), ["all"], total)[:, 0])
    return CellProbabilities(sizes, codes, log_p[: len(n)], float(log_p[-1]) if unseen else -math.inf)


def given_cells(
    table: Any, names: Sequence[str], values: Mapping[str, Sequence[Any]]
) -> tuple[tuple[tuple[str, ...], ...], CellProbabilities]:
    """The values of each column and the probabilities of a table given by hand, see `JointDistribution.written`."""
    given = _by_texts(
        _mapping_cells(table) if isinstance(table, Mapping) else _array_cells(table, names, values), names
    )
    bad = [(texts, p) for texts, p in given.items() if not 0 <= p <= 1]
    total = math.fsum(given.values())
    if bad or not abs(total - 1) <= MOST_OFF_ONE:
        raise SettingsError(
            f"the probability of {bad[0][0]} is {bad[0][1]!r}" if bad else f"the table adds up to {total:g}, not 1",
            hint="give probabilities from 0 to 1 that add up to one.",
        )
    if abs(total - 1) > 1e-9:
        warn(f"the table adds up to {total:g} and was divided by that")
        given = {texts: p / total for texts, p in given.items()}
    known = tuple(canon.ordered([*values.get(c, ()), *(t[j] for t in given)]) for j, c in enumerate(names))
    some = [texts for texts, p in given.items() if p > 0]
    codes, log_p = coded(known, some), safe_log(np.array([given[texts] for texts in some]))
    order = np.lexsort(codes.T[::-1])
    return known, CellProbabilities(tuple(len(vs) for vs in known), codes[order], log_p[order], -math.inf)


def _mapping_cells(table: Mapping[Any, Any], so_far: tuple[Any, ...] = ()) -> Iterable[tuple[tuple[Any, ...], float]]:
    """The cells of {(a, b): p} or of nested {a: {b: p}}."""
    for key, value in table.items():
        path = (*so_far, *(key if isinstance(key, tuple) else (key,)))
        if isinstance(value, Mapping):
            yield from _mapping_cells(value, path)
        else:
            yield path, value


def _array_cells(
    table: Any, names: Sequence[str], values: Mapping[str, Sequence[Any]]
) -> Iterable[tuple[tuple[Any, ...], float]]:
    """The cells of an array with an axis per column, or of a flat list of them."""
    array = np.asarray(table, dtype=np.float64)
    sizes = [len(values[c]) if c in values else 2 for c in names]
    if array.ndim == 1 and array.size == cell_count(sizes):
        array = array.reshape(sizes)
    axes = [list(values.get(c, range(size))) for c, size in zip(names, array.shape, strict=False)]
    if array.ndim != len(names) or [len(a) for a in axes] != list(array.shape):
        raise SettingsError(
            f"an array of shape {array.shape} for the columns {excerpt(names)}",
            hint="give an axis per column, and values={column: […]} where they are not 0, 1, 2, ….",
        )
    return zip(itertools.product(*axes), array.ravel().tolist(), strict=True)


def _by_texts(cells: Iterable[tuple[tuple[Any, ...], float]], names: Sequence[str]) -> dict[tuple[str, ...], float]:
    """The cells by their canonical values, each once and with one value per column."""
    out: dict[tuple[str, ...], float] = {}
    for key, p in cells:
        texts = tuple(str(canon.text(v)) for v in key)
        if len(texts) != len(names) or texts in out:
            wrong = "is there twice" if texts in out else f"is not one value for each of {excerpt(names)}"
            raise SettingsError(f"the cell {', '.join(texts)} {wrong}", hint="give each cell once: {('a', 'b'): p, …}.")
        out[texts] = float(p)
    return out


def coded(values: Sequence[Sequence[str]], texts: Sequence[Sequence[str]]) -> Ints:
    """The codes of cells that are given by their values.

    >>> coded([("no", "yes"), ("1", "2", "3")], [("yes", "1"), ("no", "3")]).tolist()
    [[1, 0], [0, 2]]
    """
    at = [{v: i for i, v in enumerate(vs)} for vs in values]
    codes = [[number[v] for number, v in zip(at, cell, strict=True)] for cell in texts]
    return np.array(codes, dtype=np.int64).reshape(len(codes), len(values))


def picked(codes: Ints, at: At) -> Bools:
    """Which cells have these codes; none where one is OUTSIDE."""
    out = np.ones(len(codes), dtype=bool)
    for j, code in at.items():
        out &= codes[:, j] == code
    return out


def short_count(number: int) -> str:
    """A number of cells, however many, in a few characters.

    >>> short_count(2_097_152), short_count(4 * 3**60), short_count(3**1000)
    ('2,097,152', '1.7e+29', '10^477.1')
    """
    return f"{number:,}" if number < 10**12 else f"{number:.3g}" if number < 10**300 else f"10^{math.log10(number):.1f}"


def _log_sums(groups: Ints, n_groups: int, logs: Floats) -> Floats:
    """log Σ exp(log) by group."""
    top = np.full(n_groups, -math.inf)
    np.maximum.at(top, groups, logs)
    safe = np.where(np.isfinite(top), top, 0.0)
    return safe_log(sum_by(groups, np.exp(logs - safe[groups]), n_groups)) + safe


def _log_int(k: int) -> float:
    return math.log(k) if k > 0 else -math.inf
