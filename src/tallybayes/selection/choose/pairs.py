"""Which pairs of columns are worth a term of their own: those that explain what the columns one by one leave over.

After the fit of the columns each row has a residual, P − 1[own class]. Summed by the cells of a pair, r, beside the sum
of P(1 − P), h, a step of Newton's along the pair's cells would gain about

    ½ Σ_cells,y r² / (h + λ)

nats; by chance it gains ½ Σ h / (h + λ), give or take √(½ Σ (h / (h + λ))²), and the first is taken off. One pass over
the rows for each pair tells all of them apart. Two sets are proposed: all pairs that gain more by fine cells than
chance does on average, since many that tell little each may tell much, and the few that do so beyond two such errors by
fine or by broad cells. Of much noise the first are mostly noise, and fine cells of few rows cannot see what is smooth.

A number takes part in 32 stretches, a category by its values, or, where there are many of them (a school, a
postcode), by groups of those that say much the same of the class. Groups are learnt from classes, so each row is put
into one by what other folds say of its value.

The correction of a cell is the sum of two: that of a broad cell, of 8 stretches a side, which is drawn to its
neighbours, and its own. What two numbers do together is mostly smooth, and few rows tell it; where they single
something out (a rule, a thing that is met again), it is the fine cell that knows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import Any

import numpy as np

from ...base.arrays import Bools, Floats, Ints, log_ratio_sum
from ...base.errors import SettingsError, warn
from ...data import encode
from ...data.blocks import Block, Codes, Numbers
from ...data.pairs import BROAD, PairColumn, broad_stretches, coarse_cuts, coded, group_names, pair_slot, stretch_names
from ...data.schema import Column, Schema
from ...data.sources import Batch
from ...exact.kernels import gate
from ...families.smoothing import BackOff
from ...tally.together import TOGETHER, together
from .columns import Category, Coded, DealtRows, Number, Small
from .joint import Joint, Solution
from .placed import Summand
from .values import back_off, stretches

MOST_COLUMNS = 80  # that are paired with each other: those that say most by themselves
MOST_PAIRS = 30
STRETCHES = 32  # of a number, or of groups
_MANY = 32  # classes: of more there is the surface alone, since fine cells would be too many numbers
MOST_VALUES = 32  # of a category; more of them are put into groups,
_MOST_GROUPED = 2_000  # or, where there are more than this, the most frequent take part
FEWEST = 3  # rows of a cell that gets a correction
_SURFACE = 0.3, 1.0  # of the pull: on the level of a broad cell, on the jump to its neighbour
_BESIDE = 0.5, 0.3  # the same of fine cells beside broad ones
_ALONE = 1.0, 0.0  # where there are no neighbours
_EQUAL = 2.0**30
_PULL = 10.0  # λ of the step that is imagined
_ERRORS = 2.0  # of what chance gains, which each of few pairs must exceed
_FEW = 5  # stretches of a number in a pair that somebody asks for
_MOST_TOGETHER = 64  # values of a category whose cells are counted together with those of others,
_MOST_SIDES = 40  # and columns


@dataclass(frozen=True, eq=False)
class Half:
    """A column as one half of a pair: few cells, and what a pair column calls them."""

    column: Column
    codes: Small  # of each row, `size` where it takes no part
    names: tuple[str, ...]
    cuts: tuple[float, ...]
    ordered: bool
    information: float  # nats that the column has about the class
    groups: tuple[tuple[str, ...], ...] = ()  # of values, where there are many
    grouped: Category | None = None  # whose values they are

    def under(self, training: Bools) -> Half:
        """The same for a fit of some folds by others: groups are those of the rows that fit."""
        return self if self.grouped is None else _grouped_half(self.column, self.grouped, training, self.information)

    @cached_property
    def size(self) -> int:
        """How many cells."""
        return len(self.names)

    @cached_property
    def broad(self) -> Ints:
        """The broad stretch of each stretch; a value of a category is one by itself."""
        return broad_stretches(self.size, BROAD) if self.ordered else np.arange(self.size)

    @cached_property
    def broad_starts(self) -> Ints:
        """The first stretch of each broad one."""
        return np.flatnonzero(np.diff(self.broad, prepend=-1))

    @cached_property
    def side(self) -> PairColumn:
        """What the schema says of it."""
        c = self.column
        return PairColumn(c.reads, c.kind, c.part, tuple(c.missing), self.cuts, self.groups, c.spelling)


def halves(columns: Sequence[tuple[Column, Category | Number]]) -> list[Half]:
    """Those columns that can take part, the most informative ones if there are many, in their order."""
    found = [h for column, coded in columns if (h := _half(column, coded)) is not None]
    if len(found) <= MOST_COLUMNS:
        return found
    rank = np.argsort([-h.information for h in found], kind="stable")[:MOST_COLUMNS]
    return [found[i] for i in sorted(rank.tolist())]


def _half(column: Column, coded: Category | Number) -> Half | None:
    counts = coded.counts
    rows = counts.sum(axis=(1, 2))
    if isinstance(coded, Number):
        group = stretches(rows, _most(coded.rows))
        cuts = tuple(coded.cuts[np.flatnonzero(np.diff(group))].tolist())
        names = tuple(stretch_names(cuts))
    elif MOST_VALUES < coded.size <= _MOST_GROUPED:
        return _grouped_half(column, coded, ~np.eye(counts.shape[2], dtype=bool), information(counts.sum(axis=2)))
    else:
        kept = np.sort(np.argsort(-rows, kind="stable")[:MOST_VALUES])
        group = np.full(len(rows), len(kept))
        group[kept] = np.arange(len(kept))
        cuts, names = (), tuple(coded.slots[i] for i in kept.tolist())
    if len(names) < 2:
        return None
    place = np.append(group, len(names)).astype(np.int32)
    return Half(column, place[coded.codes], names, cuts, coded.ordered, information(counts.sum(axis=2)))


def _grouped_half(column: Column, coded: Category, training: Bools, told: float) -> Half:
    """Values by what they say of the class, drawn to what is known without them, along the line where they differ most.

    Where the groups part is decided once, by the folds that most others are scored by; which side a value is on, fold
    by fold. A value that those folds have not seen takes no part.
    """
    often = training.sum(axis=0)
    n = coded.counts @ (often == often.max(initial=0)).astype(float)  # values × classes
    smoothing = BackOff(back_off(n))

    def say(counted: Floats) -> Floats:
        drawn: Floats = counted + smoothing.amounts(n)
        return np.asarray(drawn / drawn.sum(axis=1, keepdims=True) - smoothing.amounts(n) / smoothing.rows)

    rows = n.sum(axis=1)
    line = np.linalg.svd(np.sqrt(rows)[:, None] * say(n), full_matrices=False)[2][0]
    line *= np.sign(line[np.argmax(np.abs(line))]) or 1.0
    seen = np.flatnonzero(rows)
    place, which = np.unique(_told_apart(say(n[seen]) @ line), return_inverse=True)
    group = stretches(np.bincount(which, rows[seen], len(place)).astype(np.float64), _most(coded.rows))
    cuts = place[np.flatnonzero(np.diff(group)) + 1]
    groups = [tuple(coded.slots[v] for v in seen[group[which] == g].tolist()) for g in range(len(cuts) + 1)]
    codes = np.empty((len(training), coded.size + 1), dtype=np.int32)
    for k, counted in enumerate(training):
        own = coded.counts @ counted.astype(float)
        at = np.searchsorted(cuts, _told_apart(say(own) @ line), side="right")
        codes[k] = np.append(np.where(own.any(axis=1), at, len(groups)), len(groups))
    names = tuple(group_names(groups) if len(seen) else ["any"])
    return Half(column, codes[coded.rows.folds, coded.codes], names, (), True, told, tuple(groups), coded)


def _told_apart(amounts: Floats) -> Floats:
    """To 1/_EQUAL: what values say is equal, or clearly not."""
    return np.asarray(np.rint(amounts * _EQUAL) / _EQUAL)


def _most(rows: DealtRows) -> int:
    """How many stretches the rows can fill."""
    return BROAD if rows.n_classes > _MANY else STRETCHES


@dataclass(frozen=True, eq=False)
class ColumnPair:
    """Two halves."""

    one: Half
    other: Half

    @property
    def name(self) -> str:
        """What its column is called."""
        return f"{self.one.column.name} × {self.other.column.name}"

    @property
    def size(self) -> int:
        """How many cells."""
        return self.one.size * self.other.size

    def codes(self) -> Small:
        """The cell of each row, `size` where one of the two takes no part."""
        there = (self.one.codes < self.one.size) & (self.other.codes < self.other.size)
        both = self.one.codes * np.int32(self.other.size) + self.other.codes
        return np.where(there, both, np.int32(self.size)).astype(np.int32)

    def term(self) -> Summand:
        """The pair as a summand: a surface over broad cells, and what a fine cell with enough rows has beside it."""
        codes = self.codes()
        rows = np.bincount(codes, minlength=self.size + 1)[: self.size].astype(np.float64)
        sides, ordered = (self.one, self.other), (self.one.ordered, self.other.ordered)
        levels = [_Level.of([s.broad for s in sides], rows, ordered, _SURFACE if any(ordered) else _ALONE)]
        if any(len(s.broad_starts) < s.size for s in sides):
            levels.append(_Level.of([np.arange(s.size) for s in sides], rows, ordered, _BESIDE))
        *first, count = np.cumsum([0, *(v.count for v in levels)]).tolist()
        own = [np.where(v.place < v.count, v.place + f, count) for v, f in zip(levels, first, strict=True)]
        corrected = np.array([np.append(rows, count) for rows in own])
        a, b = (np.concatenate([v.edges[i] + f for v, f in zip(levels, first, strict=True)]) for i in (0, 1))
        ridge, stiff = (np.concatenate([v.pulls[i] for v in levels]) for i in (0, 1))
        return Summand(self.name, codes, self.size, corrected, count, (a, b), ridge, stiff, True)

    def column(self) -> Column:
        """The column that is counted."""
        reason = f"{self.one.column.name} and {self.other.column.name} together tell more than each alone"
        return Column(self.name, "pair", of=(self.one.side, self.other.side), reason=reason)

    def slot(self, cell: int) -> str:
        """What a cell is called."""
        u, v = divmod(cell, self.other.size)
        return pair_slot(self.one.names[u], self.other.names[v])


@dataclass(frozen=True, eq=False)
class _Level:
    """The cells of a pair with a correction, on a grid as fine as this one."""

    place: Ints  # of each cell of the pair, `count` where it has none
    count: int
    edges: tuple[Ints, Ints]  # neighbours
    pulls: tuple[Floats, Floats]  # on each correction, and on the jump between each two neighbours

    @classmethod
    def of(
        cls, stretch: Sequence[Ints], rows: Floats, ordered: tuple[bool, bool], pulls: tuple[float, float]
    ) -> _Level:
        """From the stretch that each cell of one side, and of the other, falls into."""
        one, other = stretch
        shape = int(one[-1]) + 1, int(other[-1]) + 1
        cells = (one[:, None] * shape[1] + other).ravel()
        enough = np.bincount(cells, rows, shape[0] * shape[1]) >= FEWEST
        count = int(np.count_nonzero(enough))
        place = np.where(enough, np.cumsum(enough) - 1, count)
        grid, ends = place.reshape(shape), [(np.zeros(0, dtype=np.int64),) * 2]
        if ordered[0]:
            ends.append((grid[:-1].ravel(), grid[1:].ravel()))
        if ordered[1]:
            ends.append((grid[:, :-1].ravel(), grid[:, 1:].ravel()))
        a, b = (np.concatenate([e[i] for e in ends]) for i in (0, 1))
        kept = (a < count) & (b < count)
        on_each, on_jumps = pulls
        each = np.full(count, on_each), np.full(int(np.count_nonzero(kept)), on_jumps)
        return cls(place[cells], count, (a[kept], b[kept]), each)


def coded_pairs(columns: Sequence[tuple[Column, Coded]], taken: Sequence[Column]) -> list[ColumnPair]:
    """The pairs that could be proposed."""
    plain = [(c, coded) for c, coded in columns if isinstance(coded, (Category, Number)) and c.of is None]
    return possible(halves(plain), taken)


def possible(found: Sequence[Half], taken: Sequence[Column]) -> list[ColumnPair]:
    """All pairs of halves but those of one date, and those that are columns already."""
    known = {frozenset(c.of) for c in taken if c.of is not None}
    names = {c.name for c in taken}
    every = (ColumnPair(a, b) for a, b in combinations(found, 2) if a.column.reads != b.column.reads)
    return [p for p in every if p.name not in names and frozenset((p.one.side, p.other.side)) not in known]


@gate.guarded
def best_pairs(
    pairs: Sequence[ColumnPair],
    joint: Joint,
    fitted: Solution,
    most: int = MOST_PAIRS,
    anyway: Collection[str] = (),
    few: bool = False,
) -> list[ColumnPair]:
    """The pairs that explain most of what a fit has left over, the best first; only the rows that fit are asked.

    Those that explain no more than chance does are left out, and those behind so many, unless they are named; with
    `few`, so are those that might do so by chance.
    """
    known = {h: h.under(joint.training) for p in pairs for h in (p.one, p.other)}
    pairs = [ColumnPair(known[p.one], known[p.other]) for p in pairs]
    left = joint.left_over(fitted)
    kernels = gate.kernels("joint", 2 * len(pairs) * left[0].size)
    gains = np.array([_gain(p, *left, joint.fitting, kernels, few) for p in pairs])
    order = np.argsort(-gains, kind="stable").tolist()
    best = {i for i in order[:most] if gains[i] > 0}
    return [pairs[i] for i in order if i in best or pairs[i].name in anyway]


def _gain(
    pair: ColumnPair, residual: Floats, curved: Floats, fitting: Sequence[slice], kernels: Any, few: bool
) -> float:
    if kernels is None:
        codes, size = pair.codes(), pair.size
        each = ([np.bincount(codes, a, size + 1)[:size] for a in amounts.T] for amounts in (residual, curved))
        r, h = (np.stack(sums, axis=1).astype(np.float64) for sums in each)
    else:
        one, other = pair.one, pair.other
        r, h = np.zeros((2, pair.size, residual.shape[1]))
        for some in fitting:
            amounts = residual[some], curved[some]
            kernels.sum_pair(one.codes[some], other.codes[some], one.size, other.size, *amounts, r, h)
    if not few:
        return _beyond_chance(r, h, 0.0)
    broad_r, broad_h = (_by_broad_cells(pair, each) for each in (r, h))
    return max(_beyond_chance(r, h, _ERRORS), _beyond_chance(broad_r, broad_h, _ERRORS))


def _by_broad_cells(pair: ColumnPair, cells: Floats) -> Floats:
    cells = cells.reshape(pair.one.size, pair.other.size, -1)
    for axis, side in enumerate((pair.one, pair.other)):
        if len(side.broad_starts) < side.size:
            cells = np.add.reduceat(cells, side.broad_starts, axis=axis)
    return cells


def _beyond_chance(r: Floats, h: Floats, errors: float) -> float:
    """The nats that a step would gain, less what chance makes of it and so many of its errors."""
    held = h + _PULL
    by_chance = h / held
    gain = 0.5 * float((r * r / held).sum() - by_chance.sum())
    return gain - errors * float(np.sqrt(0.5 * (by_chance * by_chance).sum()))


def information(n: Floats) -> float:
    """I(U; Y) in nats of a table of counts u × y."""
    total = max(float(n.sum()), 1.0)
    return float(log_ratio_sum(n, total, n.sum(axis=0), n.sum(axis=1, keepdims=True))) / total


# ---- pairs that somebody names


def pair_of(a: str, b: str, columns: Mapping[str, Column], blocks: Mapping[str, Block]) -> Column:
    """The pair column of two named columns."""
    one, other = (_side(columns[name], blocks[name]) for name in (a, b))
    if one is None or other is None:
        bad = a if one is None else b
        raise SettingsError(
            f"column {bad!r} ({columns[bad].kind}) cannot be one of a pair",
            hint="pairs are of categories and numbers that have at least two values.",
        )
    return Column(f"{a} × {b}", "pair", of=(one, other), reason="asked for")


def _side(column: Column, block: Block, most: int = _FEW) -> PairColumn | None:
    cuts: tuple[float, ...] = ()
    if column.of is not None:
        return None
    if isinstance(block, Numbers):
        there = block.present()
        cuts = coarse_cuts(block.values[there], most) if there.any() else ()
    known = len(cuts) > 0 or (isinstance(block, Codes) and column.like == "category" and len(block.slots) > 1)
    marks = tuple(column.missing)
    return PairColumn(column.reads, column.kind, column.part, marks, cuts, (), column.spelling) if known else None


# ---- all pairs of cells


def with_cells_together(schema: Schema, look: Batch) -> Schema:
    """The schema that also counts the cells of its columns two by two, which counted weights are made of.

    Numbers are cut where a first look says; the cuts are part of the schema, so that counts add. A category with many
    values takes no part, and of many columns those that say most by themselves do.
    """
    if together(schema) is not None:
        return schema
    rows = encode.labelled(schema, look, first=True)
    found: list[tuple[float, PairColumn]] = []
    for column in schema.counted:
        block = rows.blocks[column.name]
        side = _side(column, block, BROAD)
        if side is None or not isinstance(block, (Codes, Numbers)):
            continue
        cells = coded(block, side)
        if len(cells.slots) <= _MOST_TOGETHER:
            there = cells.codes >= 0
            n = np.zeros((len(cells.slots), len(rows.classes)))
            np.add.at(n, (cells.codes[there], rows.labels[there]), 1.0)
            found.append((information(n), side))
    if len(found) < 2:
        warn(
            f"calibrate='counted' needs two columns of numbers or of at most {_MOST_TOGETHER} values, and there are "
            f"{len(found)}: the counts are believed as they are. Hint: leave calibrate away."
        )
        return schema
    kept = sorted(sorted(range(len(found)), key=lambda i: -found[i][0])[:_MOST_SIDES])
    name = "cells together"
    while name in {c.name for c in schema.columns}:
        name += " "
    both = Column(name, TOGETHER, of=tuple(found[i][1] for i in kept), reason="asked for")
    return schema._with(columns=[*schema.columns, both])
