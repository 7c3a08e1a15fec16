"""The summands of a score on held-out rows: columns, and the families that read a number column side by side.

`Neighbours` says which rows are held out together, `Summands.of` what each summand says of rows that its model has not
seen, `evidence` hands that to `weights`, and `settings` turns the weights that come back into settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ...base import canon
from ...base.arrays import Floats, Ints
from ...data.blocks import Bag
from ...data.encode import Labelled
from ...data.schema import Column, Schema
from ...families import Blend
from ...families.blend import READERS, bounded
from ...families.settings import Settings
from ..folds import Folds, HeldOut
from .weights import Evidence, Weights

NEIGHBOURS = 8


class Neighbours:
    """A fold for each labelled row of a look: runs of up to eight rows of a class, dealt out in a fixed shuffle.

    Rows that follow each other are often alike (one speaker, one thread, one day), and weights fitted on rows whose
    twins were counted believe too much. Lists of single words stand in the order of the alphabet instead, where eight
    in a row are a family that the other rows do not know: they are dealt out one by one.
    """

    def __init__(self, rows: Labelled, folds: int, run_length: int = NEIGHBOURS) -> None:
        rng = np.random.default_rng(0)
        self.folds = np.full(int(rows.rows.max(initial=-1)) + 1, -1, dtype=np.int64)
        for y in range(len(rows.classes)):
            own = rows.rows[rows.labels == y]
            run = np.arange(len(own)) // max(1, min(run_length, len(own) // folds))
            dealt = rng.permutation(int(run.max(initial=0)) + 1)
            self.folds[own] = (dealt[run] + rng.integers(folds)) % folds

    def __call__(self, rows: Labelled, start: int) -> Ints:
        """The folds of a batch that starts at a row of the look."""
        return self.folds[rows.rows + start]


@dataclass(frozen=True)
class Summand:
    """One summand: a column, or one of the families (by its number in READERS) that read it."""

    column: str
    reader: int | None = None


@dataclass(frozen=True)
class Summands:
    """What each summand said of the held-out rows, in their order."""

    each: tuple[Summand, ...]
    parts: tuple[Floats, ...]
    held: HeldOut
    pairs: tuple[bool, ...]  # whether a summand is a pair of columns
    tokens: Mapping[int, Floats]  # of summands made of words: the row's length
    views: tuple[Ints, ...] = ()  # see `Evidence`

    @classmethod
    def of(cls, folds: Folds, schema: Schema, settings: Settings) -> Summands:
        """All summands of a schema; number columns with cells and no family of their own are read by every reader."""
        blended = [
            c.name
            for c in schema.counted
            if c.like == "number" and c.cells is not None and c.name not in settings.families
        ]
        readers = READERS if blended else READERS[:1]
        each = folds.held_out_each(
            [replace(settings, families={**settings.families, **dict.fromkeys(blended, f)}) for f in readers],
            parts=True,
        )
        summands: list[Summand] = []
        parts: list[Floats] = []
        for name in schema.names:
            if name in blended:
                summands += [Summand(name, reader) for reader in range(len(READERS))]
                parts += [bounded(held.parts[name]) for held in each]
            else:
                summands.append(Summand(name))
                parts.append(each[0].parts[name])
        pairs = tuple(schema[t.column].of is not None for t in summands)
        words = {j for j, t in enumerate(summands) if schema[t.column].about.words}
        tokens = {j: row_lengths(folds, summands[j].column) for j in sorted(words)}
        return cls(tuple(summands), tuple(parts), each[0], pairs, tokens)

    def __add__(self, other: Summands) -> Summands:
        """Both, where the rows are the same and all of them see all summands."""
        shift = len(self.each)
        return replace(
            self,
            each=self.each + other.each,
            parts=self.parts + other.parts,
            pairs=self.pairs + other.pairs,
            tokens={**self.tokens, **{j + shift: t for j, t in other.tokens.items()}},
        )

    def beside(self, more: Summands, proposed: Sequence[Sequence[Column]]) -> Summands:
        """These and more summands of the same rows, of which each split of the rows may see only those proposed for it.

        `proposed` holds the columns for each split, and last those for all rows.
        """
        shift = len(self.each)
        numbers = {t.column: j + shift for j, t in enumerate(more.each)}
        return replace(
            self,
            each=self.each + more.each,
            parts=self.parts + more.parts,
            pairs=self.pairs + more.pairs,
            views=tuple(np.array([*range(shift), *(numbers[c.name] for c in each)]) for each in proposed),
        )

    def chosen(self) -> Summands:
        """Without those that all rows together did not propose."""
        if not self.views:
            return self
        which = self.views[-1].tolist()
        return replace(
            self,
            each=tuple(self.each[j] for j in which),
            parts=tuple(self.parts[j] for j in which),
            pairs=tuple(self.pairs[j] for j in which),
            views=(),
        )

    def evidence(self) -> Evidence:
        """The summands as weights are fitted to them."""
        held = self.held
        return Evidence.of(
            self.parts,
            held.log_prior[held.folds],
            held.labels,
            held.folds,
            held.weights,
            dict(self.tokens),
            np.array(self.pairs, dtype=np.int64),
            np.array([1.0 if t.reader is None else 1 / len(READERS) for t in self.each]),
            self.views,
        )

    def settings(self, base: Settings, weights: Weights, columns: Sequence[str]) -> Settings:
        """The weights as settings: shares of a blend where several families read a column, its weight their sum."""
        families: dict[str, Any] = dict(base.families)
        total: dict[str, float] = {}
        for name in columns:
            own = [float(w) for t, w in zip(self.each, weights.weights, strict=True) if t.column == name]
            total[name] = sum(own)
            if len(own) > 1 and total[name] > 0:
                families[name] = Blend(READERS, tuple(w / total[name] for w in own))
        lengths = {self.each[j].column: b for j, b in weights.exponents.items()}
        return replace(base, families=families, weights=total, lengths=lengths, offsets=self._offsets(weights))

    def _offsets(self, weights: Weights) -> dict[str, float]:
        """The offset of each class, their mean 0; none if they were not fitted."""
        if weights.offsets is None:
            return {}
        each = np.concatenate([[0.0], weights.offsets])
        return dict(zip((str(canon.text(c)) for c in self.held.classes), (each - each.mean()).tolist(), strict=True))


def row_lengths(folds: Folds, column: str) -> Floats:
    """How many tokens each row has in a column of words, in the order of the held-out rows."""
    rows, lengths = [], []
    for piece in folds.pieces:
        assert piece.blocks is not None  # a look fits into memory
        bag = piece.blocks[column]
        assert isinstance(bag, Bag)
        rows.append(piece.rows)
        lengths.append(bag.lengths())
    return np.asarray(np.concatenate(lengths)[np.argsort(np.concatenate(rows), kind="stable")])
