"""n, mean and deviation out of exact sums, and the bell-shaped beliefs that the Gaussian and Student-t share."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pyarrow as pa

from ..base.arrays import Bools, Floats, Ints
from ..base.canon import number_text
from ..data.blocks import Numbers, Vectors
from ..data.schema import Column
from ..exact.counts import Counts
from ..exact.limbs import root_ratio, spread
from ..exact.moments import MOMENTS, moment_sums
from .base import Belief, Context, Term
from .forms import BellForm

GUARD = 1e3  # a guarded floor takes no column for more than so many times wider than the one it is added to


@dataclass(frozen=True)
class Moments:
    """n, mean and deviation (÷ n) by position and class, and over all classes; each rounded once."""

    positions: Ints  # a number column has the one position 0
    n: Floats
    mean: Floats
    sd: Floats
    all_mean: Floats
    all_sd: Floats

    @property
    def varies(self) -> Bools:
        """Which positions are not constant over all classes."""
        return self.all_sd > 0

    def one_more(self, x: Floats, labels: Ints, weights: Floats) -> tuple[Moments, Floats]:
        """The moments with one value more, for each of some by itself; and Σ(x − μ_y)² over all classes.

        Of a number column; values × classes. A value that is missing changes nothing.
        """
        weights, x = np.where(np.isnan(x), 0.0, weights)[:, None], np.where(np.isnan(x), self.all_mean, x)[:, None]
        unit = np.maximum(np.abs(x / 2 - self.all_mean / 2), self.all_sd / 2) * 2  # in which no square overflows
        unit = np.where((unit > 0) & np.isfinite(unit), unit, 1.0)

        def moved(n: Floats, mean: Floats, sd: Floats, w: Floats) -> tuple[Floats, Floats, Floats]:
            after = n + w
            share, away = w / np.where(after > 0, after, 1.0), (x / unit - mean / unit)
            return after, np.where(n > 0, mean + unit * share * away, x), n * (sd / unit) ** 2 + share * n * away**2

        own = weights * (np.arange(self.n.shape[1]) == labels[:, None])
        n, mean, squares = moved(self.n, self.mean, self.sd, own)
        total, all_mean, all_squares = moved(self.n.sum(axis=1), self.all_mean, self.all_sd, weights)
        mean, sd = np.where(own > 0, mean, self.mean), unit * np.sqrt(squares / np.where(n > 0, n, 1.0))
        all_sd = unit * np.sqrt(all_squares / np.where(total > 0, total, 1.0))
        mean, sd = np.where(n > 0, mean, all_mean), np.where(n > 0, np.where(own > 0, sd, self.sd), all_sd)
        rows = np.zeros(len(x), dtype=np.int64)
        within = (unit**2)[:, 0] * squares.sum(axis=1)
        return Moments(rows, n, mean, sd, all_mean[:, 0], all_sd[:, 0]), within

    def with_classes(self, n: Floats, mean: Floats, sd: Floats) -> Moments:
        """The same whole column with other classes, one position per row of the arrays."""
        rows = np.zeros(len(n), dtype=np.int64)
        return Moments(rows, n, mean, sd, self.all_mean[rows], self.all_sd[rows])


def read_moments(counts: Counts, n_classes: int) -> Moments:
    """The moments of a number or vector column; a class without a value is taken like all classes together."""
    return counts.once(("moments", n_classes), lambda: _read_moments(counts, n_classes))


def _read_moments(counts: Counts, n_classes: int) -> Moments:
    places, order = _positions(counts)
    sums = moment_sums(counts, n_classes)
    mean, sd = (table[order] for table in sums.rounded())
    all_mean, all_sd = (table[order, 0] for table in sums.together().rounded())
    count = sums.n()[order]
    empty = count == 0
    mean, sd = np.where(empty, all_mean[:, None], mean), np.where(empty, all_sd[:, None], sd)
    return Moments(places, count, mean, sd, all_mean, all_sd)


def shared_deviation(counts: Counts, n_classes: int, unbiased: bool) -> Floats:
    """√(Σ_y Σ(x − μ_y)² / n) per position, pooled within classes; ÷ (n − number of classes) if unbiased."""
    return counts.once(("shared", n_classes, unbiased), lambda: _shared_deviation(counts, n_classes, unbiased))


def _shared_deviation(counts: Counts, n_classes: int, unbiased: bool) -> Floats:
    places, order = _positions(counts)
    (n, n_exp), (x, x_exp), (xx, xx_exp) = counts.exact("moments", MOMENTS, n_classes)
    squares, exponent = spread(n, n_exp, x, x_exp, xx, xx_exp)  # n · Σ(x − μ)²
    out = np.zeros(len(places))
    for position, at in enumerate(order.tolist()):
        above, below, total, used = 0, 1, 0, 0  # Σ squares / n as one fraction: whole numbers all along
        for rows, square in zip(n[at].tolist(), squares[at].tolist(), strict=True):
            if rows > 0:
                above, below = above * rows + square * below, below * rows
                total, used = total + rows, used + 1
        of = total << max(n_exp, 0)
        less = used << max(-n_exp, 0)  # classes, in the unit of the rows
        divisor = of - less if unbiased and of > less else of
        if divisor > 0:
            out[position] = root_ratio(above, below * divisor, exponent - n_exp + max(-n_exp, 0))
    return out


def _positions(counts: Counts) -> tuple[Ints, Ints]:
    """The positions in order, and which slot has each."""
    places = np.array([int(s or 0) for s in counts.sheet("moments", MOMENTS).slot_names], dtype=np.int64)
    order = np.argsort(places)
    return places[order], order


def floored(sd: Floats, all_sd: Floats, context: Context) -> Floats:
    """Deviations that are not too narrow, by the settings' floor; `all_sd` is the whole column's."""
    if context.floor.kind != "column":
        widest = np.asarray(context.largest_deviation())
        if context.floor.kind == "guarded":
            widest = np.where(all_sd > 0, np.minimum(widest, GUARD * all_sd), widest)
        wide = np.hypot(sd, np.sqrt(context.floor.share) * widest)
        return np.asarray(np.maximum(wide, np.finfo(float).smallest_subnormal))
    return np.asarray(np.maximum(sd, np.maximum(context.floor.share * all_sd, np.finfo(float).smallest_subnormal)))


@dataclass(frozen=True)
class BellBelief(Belief):
    """A location and a scale per position and class; a position constant over all classes is left out."""

    positions: Ints
    location: Floats  # positions × classes
    scale: Floats
    varies: Bools
    vector: bool

    asked_of = ("number", "vector")
    axes: ClassVar = {"location": "positions classes", "scale": "positions classes", "varies": "positions"}

    def misfit(self, column: Column, n_classes: int) -> str | None:
        """Also why it cannot: a number has one position, a vector those of its width."""
        wrong, width = super().misfit(column, n_classes), column.width if column.like == "vector" else 1
        if wrong is not None:
            return wrong
        within = (self.positions >= 0) & (self.positions < (np.inf if width is None else width))
        if self.positions.ndim == 1 and self.vector == (column.like == "vector") and within.all():
            return None
        return f"positions {self.positions!r:.60} of the {column.kind} {column.name!r:.60}"

    @abstractmethod
    def log_density(self, x: Floats, position: int | slice) -> Floats:
        """log density of x (rows × 1) under each class at one position."""

    @abstractmethod
    def noise(self, labels: Ints, rng: np.random.Generator) -> Floats:
        """Draws of location 0 and scale 1, rows × positions."""

    def parts(self, block: Numbers | Vectors) -> Floats:
        """log density, summed over positions; 0 for missing."""
        x = block.values[:, None] if isinstance(block, Numbers) else block.values
        out = np.zeros((len(x), self.location.shape[1]))
        for at in np.flatnonzero(self.varies):
            column = x[:, self.positions[at]]
            there = ~np.isnan(column)
            out[there] += self.log_density(column[there, None], int(at))
        return out

    def form(self) -> BellForm:
        """Location and scale of the positions that vary."""
        places = self.positions[self.varies] if self.vector else None
        return BellForm(places, self.location[self.varies], self.scale[self.varies])

    def told(self, x: Floats) -> list[int]:
        """Which positions of a vector say something: they vary, and the row has a value there."""
        return [int(i) for i in np.flatnonzero(self.varies) if not np.isnan(x[self.positions[i]])]

    def terms(self, block: Numbers | Vectors, row: int) -> list[Term]:
        """A vector position by position."""
        told = self.told(block.values[row]) if isinstance(block, Vectors) else []
        if not told:
            return super().terms(block, row)
        x = block.values[row]
        return [
            Term(
                f"[{self.positions[i]}] {number_text(float(f'{x[self.positions[i]]:.10g}'))}",
                self.log_density(x[None, self.positions[i], None], i)[0],
            )
            for i in told
        ]

    def note(self, block: Numbers | Vectors, row: int) -> str:
        """A column that never varied says nothing."""
        return "" if self.varies.any() else "constant so far"

    def sample(self, labels: Ints, rng: np.random.Generator) -> pa.Array:
        """Location + scale · noise; a constant position has no noise."""
        noise = self.noise(labels, rng) * np.where(self.varies, self.scale.T[labels], 0.0)
        values = self.location.T[labels] + noise
        if not self.vector:
            return pa.array(values[:, 0]) if len(self.positions) else pa.nulls(len(labels), pa.float64())
        full = np.full((len(values), int(self.positions.max(initial=0)) + 1), np.nan)
        full[:, self.positions] = values
        return pa.FixedSizeListArray.from_arrays(pa.array(full.ravel()), full.shape[1])

    def named(self, rows: dict[str, Floats]) -> tuple[list[str], Floats]:
        """Row names and values of a table that lists these amounts position by position."""
        where = [f" {p}" if self.vector else "" for p in self.positions]
        names = [f"{what}{place}" for place in where for what in rows]
        return names, np.stack(list(rows.values()), axis=1).reshape(len(names), self.location.shape[1])
