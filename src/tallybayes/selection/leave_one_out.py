"""Leave-one-out by subtraction: every row scored by everything counted but itself, equal to refitting without it.

The tally less one row is a tally, so any family can be asked. For the common ones there are closed forms:

    category    own class (n_vy − 1 + α)/(n_y − 1 + α·K), K one less where only this row has the value
    words       own class Σ x_w·[log(N_yw − x_w + α) − log(N_y − |d| + α·V)], V less the words that only this row has
    gaussian    own class Σx − x, Σx² − x² and n − 1, in exact integers, rounded once
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.canon import from_text, text
from ..base.errors import CannotForget, DataError
from ..data import encode
from ..data.blocks import Bag, Block, Codes, Groups, N, Numbers, Vectors
from ..data.copies import row_hashes
from ..data.encode import Labelled
from ..data.schema import Column
from ..data.sources import open_source
from ..exact.limbs import root_ratio, round_ratio
from ..exact.moments import MOMENTS
from ..families import Categorical, Gaussian, default_family, family_for
from ..families.base import Context
from ..families.gaussian import log_normal
from ..families.moments import floored
from ..families.settings import Settings, SettingsLike
from ..families.smoothing import Laplace
from ..model import posterior
from ..model.estimate import without_rows
from ..model.prior import natural_order
from ..tally.tally import Tally, count_rows
from ..tally.together import of_columns
from .folds import HeldOut
from .settings_at_once import for_column, separable
from .word_grid import WordGrid, reading

_WHOLE = 1 << 53


def leave_one_out(
    tally: Tally, data: Any, y: Any = None, settings: SettingsLike = None, *, weights: Any = None
) -> HeldOut:
    """Each row of the data scored by the tally without it; the rows must have been counted.

    Labels may stand beside the data, as for `evaluate`. Rows that cannot have been counted are refused (CannotForget).

    >>> import tallybayes as tb
    >>> rows = {"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}
    >>> tally = tb.count(rows, tb.Schema([tb.Column("Sky", "category")], target="Play"))
    >>> tb.leave_one_out(tally, rows).proba().round(3).tolist()
    [[0.333, 0.667], [0.0, 1.0], [0.333, 0.667]]
    """
    if isinstance(y, (Settings, Mapping)) or not (settings is None or isinstance(settings, (Settings, Mapping))):
        y, settings = settings, y  # the first order of the two
    settings = Settings.of(settings, tally.schema)
    if tally.rows < 2:
        raise DataError(
            f"leaving out one row of {tally.rows} leaves none to score it by",
            hint="count at least two rows with a label.",
        )
    source = open_source(data, y, weights=weights, target=tally.schema.target).repeatable()
    wrong = (tally - Tally.of(tally.schema, source)).impossible()
    if wrong is not None:
        raise CannotForget(
            f"these rows cannot all have been counted: without them there would be {wrong}",
            hint="leave out rows of the table that was counted, with the same weights.",
        )
    out, start = [], 0
    for batch in source.batches():
        read = encode.labelled(tally.schema, batch)
        read = replace(read, blocks=encode.bags(read.blocks))
        if len(read.rows):
            out.append(LeftOutRows(tally, read, settings).scored(start))
        start += batch.rows
    if not out:
        raise DataError("no row of the data has a label", hint=f"fill in the target {tally.schema.target!r}.")
    return HeldOut(
        out[0].classes,
        np.concatenate([h.rows for h in out]),
        np.concatenate([h.labels for h in out]),
        None if out[0].weights is None else np.concatenate([h.weights for h in out if h.weights is not None]),
        np.arange(sum(len(h.rows) for h in out)),
        np.concatenate([h.log_prior for h in out]),
        np.concatenate([h.joint for h in out]),
        {n: np.concatenate([h.parts[n] for h in out]) for n in out[0].parts},
    )


class LeftOutRows:
    """The labelled rows of one batch, and the tally they are taken out of one by one."""

    def __init__(self, tally: Tally, read: Labelled, settings: Settings) -> None:
        self.tally, self.read, self.settings = tally, read, settings
        known = without_rows(settings)
        self.classes = (*tally.classes, *sorted(known - {*tally.classes}))
        self.number = {c: i for i, c in enumerate(self.classes)}
        self.stays = bool(known)  # a class may be known without rows, of which closed forms know nothing
        self.labels = np.array([self.number[c] for c in read.classes], dtype=np.int64)[read.labels]

    def scored(self, start: int) -> HeldOut:
        """Every row without itself."""
        label_type = self.tally.schema.label_type
        names = sorted(self.classes, key=lambda c: natural_order(from_text(c, label_type)))
        order = [self.number[c] for c in names]
        rows = len(self.labels)
        if separable([self.settings], self.tally.schema):
            parts = {name: self._column(name) for name in self.tally.schema.names}
            log_prior = self._each({}, (), lambda model, blocks: np.tile(model.log_prior, (1, 1)), fill=-np.inf)
        else:
            together = self._each(
                self.read.blocks,
                self.tally.schema.names,
                lambda model, blocks: np.hstack(
                    [model.log_prior[None, :], *(b.parts(blocks[n]) for n, b in model.beliefs.items())]
                ),
                fill=-np.inf,
                settings=self.settings,
                pieces=1 + len(self.tally.schema.names),
            )
            k = len(self.classes)
            log_prior = together[:, :k]
            there = np.isfinite(log_prior)
            parts = {
                n: np.where(there, together[:, k * (i + 1) : k * (i + 2)], 0.0)
                for i, n in enumerate(self.tally.schema.names)
            }
        blocks = encode.bags(self.read.blocks)
        offsets = posterior.offsets(self.settings, self.classes)
        joint = log_prior + posterior.scores(offsets, parts, self.settings, blocks, rows)
        joint = posterior.calibrated(self.settings, joint[:, order])
        at = np.argsort(order)
        return HeldOut(
            tuple(from_text(c, label_type) for c in names),
            self.read.rows + start,
            at[self.labels],
            self.read.weights,
            np.arange(rows),
            log_prior[:, order],
            joint,
            {n: p[:, order] for n, p in parts.items()},
        )

    # ---- any family: subtract and ask

    def _each(
        self, blocks: Mapping[str, Block], names: tuple[str, ...], ask: Callable[..., Floats], *, fill: float,
        settings: Settings | None = None, pieces: int = 1,
    ) -> Floats:  # fmt: skip
        """ask(model without the row, the row), once for all rows that are equal; `fill` for a class that is gone.

        What is asked for are so many `pieces` of a number per class.
        """
        settings = settings or Settings(prior=self.settings.prior, classes=self.settings.classes)
        schema = of_columns(self.tally.schema, names)
        whole = Tally(schema, self.tally.classes, self.tally.labels, {n: self.tally.columns[n] for n in names})
        weights = np.ones(len(self.labels)) if self.read.weights is None else self.read.weights
        key = np.stack([row_hashes(blocks, len(self.labels)), self.labels.astype(np.uint64), weights.view(np.uint64)])
        _, first, same = np.unique(key, axis=1, return_index=True, return_inverse=True)
        answers: list[Floats] = []
        for i in first.tolist():
            row = {n: blocks[n].take(np.array([i])) for n in names}
            weight = None if self.read.weights is None else self.read.weights[[i]]
            groups = Groups(np.zeros(1, dtype=np.int64), 1, weight)
            rest = whole - count_rows(schema, [self.tally.classes[self.labels[i]]], groups, row)
            if not rest.classes:
                answers.append(np.full(len(self.classes) * pieces, fill))
                continue
            model = rest.model(settings)
            at = [self.number[str(text(c))] for c in model.classes]
            said = ask(model, row).reshape(-1, len(at))
            full = np.full((len(said), len(self.classes)), fill)
            full[:, at] = said
            answers.append(full.ravel())
        return np.stack(answers)[same.ravel()]

    # ---- column by column

    def _column(self, name: str) -> Floats:
        column, block = self.tally.schema[name], self.read.blocks[name]
        own = for_column(self.settings, name)
        closed = None if self.read.weights is not None or self.stays else _closed_form(column, own)
        if closed == "category" and isinstance(block, Codes):
            smoothing = own.smoothing_of(name)
            assert isinstance(smoothing, Laplace)
            return self._categorical(column, block, smoothing.alpha)
        if closed == "gaussian" and isinstance(block, (Numbers, Vectors)):
            family = family_for(own.families.get(name) or default_family(column.kind), column.kind)
            assert isinstance(family, Gaussian)
            return self._gaussian(column, block, family.unbiased, own)
        if closed == "words" and isinstance(block, Bag) and (way := reading(column, own)) is not None:
            grid = WordGrid.of(self.tally.columns[name], [(c, 0) for c in self.tally.classes])
            if grid is not None and len(self.tally.classes) > 1:
                words = grid.training(np.ones(1, dtype=bool))
                return self._alive(words.of(block, grid.ids(block.slots)).left_out(*way, self.labels))
        return self._each(
            {name: block}, (name,), lambda model, row: model.beliefs[name].parts(row[name]), fill=0.0, settings=own
        )

    def _alive(self, parts: Floats) -> Floats:
        """0 in the class of a row that was its only one: it is gone, and says nothing."""
        alone = self.tally.labels.sheet("rows", ("n", "rows")).table("rows", len(self.tally.classes))[0] == 1
        parts[np.arange(len(parts)), self.labels] *= ~alone[self.labels]
        return parts

    def _categorical(self, column: Column, block: Codes, alpha: float) -> Floats:
        sheet = self.tally.columns[column.name].sheet("values", N)
        table = sheet.table("n", len(self.tally.classes))
        at = {v: i for i, v in enumerate(sheet.slot_names)}
        there = block.present()
        value = np.array([at.get(s, 0) for s in block.slots] or [0])[block.codes[there]]
        label = self.labels[there]
        declared = set(column.values or ())
        fixed = np.array([s in declared for s in sheet.slot_names] or [False])
        gone = (table.sum(axis=1)[value] == 1) & ~fixed[value]
        k = len(declared.union(sheet.slot_names)) - gone
        n, total = table[value], np.tile(table.sum(axis=0), (len(value), 1))
        rows = np.arange(len(value))
        n[rows, label] -= 1
        total[rows, label] -= 1
        out = np.zeros((len(there), table.shape[1]))
        with np.errstate(divide="ignore", invalid="ignore"):
            said = np.log((n + alpha) / (total + alpha * k[:, None]))
        out[there] = np.where(gone[:, None], 0.0, said)
        return self._alive(out)

    def _gaussian(self, column: Column, block: Numbers | Vectors, unbiased: bool, own: Settings) -> Floats:
        values = block.values[:, None] if isinstance(block, Numbers) else block.values
        sheet = self.tally.columns[column.name].sheet("moments", MOMENTS)
        context = Context(column.name, self.tally.classes, np.zeros(0), floor=own.floor)
        sums = [sheet.exact(a, len(self.tally.classes)) for a in MOMENTS]
        out = np.zeros((len(values), len(self.tally.classes)))
        for slot, name in enumerate(sheet.slot_names):
            x = values[:, int(name or 0)]
            there = np.flatnonzero(~np.isnan(x))
            pair = np.stack([x[there] + 0.0, self.labels[there].astype(np.float64)])
            unique, same = np.unique(pair, axis=1, return_inverse=True)
            at, label = unique[0], unique[1].astype(np.int64)
            left = _Left([(v[slot], e) for v, e in sums], at, unbiased)
            mean, sd, all_sd = left.without(label)
            said = log_normal(at[:, None], mean, floored(sd, all_sd[:, None], context))
            out[there] += np.where(all_sd[:, None] > 0, said, 0.0)[same.ravel()]
        return self._alive(out)


def has_closed_forms(tally: Tally, settings: Settings) -> bool:
    """Whether leaving out every row is one pass, and no column has to be believed anew for each of them."""
    each = (_closed_form(column, for_column(settings, column.name)) for column in tally.schema.counted)
    return tally.schema.weights is None and separable([settings], tally.schema) and all(each)


def _closed_form(column: Column, own: Settings) -> str | None:
    """Which of the closed forms a column has under settings of its own, if any."""
    if column.name in own.corrections:
        return None
    chosen = own.families.get(column.name)
    family = default_family(column.kind) if chosen is None else family_for(chosen, column.kind)
    smoothing = own.smoothing_of(column.name)
    if type(family) is Categorical and column.like == "category" and own.unseen == "no evidence":
        return "category" if type(smoothing) is Laplace and smoothing.alpha > 0 else None
    if type(family) is Gaussian and column.like in ("number", "vector"):
        averaged = own.predictive if family.predictive is None else family.predictive
        return "gaussian" if family.variance == "own" and not averaged else None
    return "words" if column.about.words and column.width is None and reading(column, own) is not None else None


class _Left:
    """Mean and deviation of every class with one number taken out of one of them, from exact integers."""

    def __init__(self, sums: list[tuple[Any, int]], values: Floats, unbiased: bool) -> None:
        (n, n_exp), (x, x_exp), (xx, xx_exp) = sums
        parts = [math.frexp(v) for v in values.tolist()]
        low = min([e - 53 for _, e in parts] + [x_exp, xx_exp // 2])
        self.exponent = low
        self.values = [int(m * _WHOLE) << (e - 53 - low) for m, e in parts]
        self.n = [int(v) << n_exp if n_exp >= 0 else int(v) >> -n_exp for v in n]  # rows: whole numbers
        self.x = [int(v) << (x_exp - low) for v in x]
        self.xx = [int(v) << (xx_exp - 2 * low) for v in xx]
        self.unbiased = unbiased
        self.whole = [self._moments(*c) for c in zip(self.n, self.x, self.xx, strict=True)]

    def _moments(self, n: int, x: int, xx: int) -> tuple[float, float]:
        if n == 0:
            return math.nan, math.nan
        return round_ratio(x, n, self.exponent), root_ratio(n * xx - x * x, n * n, 2 * self.exponent)

    def without(self, label: Ints) -> tuple[Floats, Floats, Floats]:
        """Means and deviations, numbers × classes, and the deviation over all classes."""
        mean, sd = (np.tile([m[i] for m in self.whole], (len(label), 1)) for i in (0, 1))
        n = np.tile(np.array(self.n, dtype=np.float64), (len(label), 1))
        everyone = np.empty((len(label), 2))
        total = [sum(v) for v in (self.n, self.x, self.xx)]
        for i, (v, y) in enumerate(zip(self.values, label.tolist(), strict=True)):
            mean[i, y], sd[i, y] = self._moments(self.n[y] - 1, self.x[y] - v, self.xx[y] - v * v)
            n[i, y] -= 1
            everyone[i] = self._moments(total[0] - 1, total[1] - v, total[2] - v * v)
        empty = n == 0  # a class without a number is taken like all classes together
        mean, sd = np.where(empty, everyone[:, :1], mean), np.where(empty, everyone[:, 1:], sd)
        if self.unbiased:
            sd = sd * np.sqrt(np.where(n > 1, n / np.where(n > 1, n - 1, 1.0), 1.0))
        return mean, sd, np.nan_to_num(everyone[:, 1], nan=0.0)
