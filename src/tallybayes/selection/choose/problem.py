"""What a choice is about: rows in their folds, columns by cell, and the joint fit for each split that judges."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from ...base.arrays import Bools, Floats, Ints
from .columns import Coded, DealtRows, all_entries
from .joint import Dense, Joint
from .losses import against_first
from .pairs import ColumnPair
from .placed import Placed, Summand

_MUCH = 1_500_000  # rows × columns × classes, from which fewer strengths are tried and two splits judge
_JUDGES = 4_000  # rows that are enough to judge by; of a large table not every split needs to
SPLITS = 5
_AT_ONCE = 300_000  # entries × classes of all splits


@dataclass(frozen=True, eq=False)
class Problem:
    """The rows, dealt and sorted by fold, and the columns: everything that a rung may look at."""

    rows: DealtRows
    coded: Sequence[Coded]
    dense: Sequence[Dense]
    pairs: Sequence[ColumnPair]  # that could be proposed
    paired: frozenset[str] = frozenset()  # coded columns that are pairs already
    enough: float = _JUDGES  # rows to judge by; infinity: every split judges

    @property
    def splits(self) -> Ints:
        """The split of each row: neighbouring folds."""
        return split_of(self.rows.folds, self.rows.n_folds)

    def terms(self) -> Sequence[Summand]:
        """A summand for each column."""
        return self._placed.terms

    @cached_property
    def _placed(self) -> Placed:
        """Where the rows find their entries, whatever split judges."""
        out = []
        for c in self.coded:
            enough = np.bincount(c.codes, minlength=c.size + 1)[: c.size] >= (1 if c.alike else 2)
            term = Summand.of_column(c.name, c.codes, c.size, enough, c.alike, c.places)
            out.append(term if c.name not in self.paired else replace(term, pair=True))
        return Placed.of(self.rows, out, [True] * len(out))

    def training(self, split: int | None) -> Bools:
        """Which folds score each fold: all but itself, and but the split that judges unless it is of that."""
        fold = np.arange(self.rows.n_folds)
        out = fold[:, None] != fold[None, :]
        if split is not None:
            judges = split_of(fold, self.rows.n_folds) == split
            out &= judges[:, None] | ~judges[None, :]
        return np.asarray(out)

    def joint(self, split: int | None, terms: Sequence[Summand]) -> Joint:
        """The fit of all rows, or of those outside a split, which judges it."""
        training = self.training(split)
        tables = self._at_once.get(split)
        if tables is None:
            tables = [against_first(said) for said in all_entries(self.coded, self._placed.used, [training])]
        prior = against_first(self.rows.log_prior(training))
        n = training.astype(float) @ self.rows.class_counts.T
        known = (n > 0)[self.rows.folds, self.rows.labels]
        inside = np.flatnonzero(self.splits == split) if split is not None else np.zeros(0, dtype=np.int64)
        held = (int(inside[0]), int(inside[-1]) + 1) if len(inside) else (0, 0)
        placed = self._placed if terms is self._placed.terms else None
        return Joint(self.rows, terms, tables, prior, training, held, self.dense, known, placed=placed)

    @cached_property
    def _at_once(self) -> dict[int | None, list[Floats]]:
        """What tables say by the split that judges, unless it is much: of little calls take longer than arithmetic."""
        splits: list[int | None] = [*np.unique(self.splits).tolist(), None]
        if self._placed.size * self.rows.n_classes * len(splits) > _AT_ONCE:
            return {}
        each = [self.training(s) for s in splits]
        every = [against_first(said) for said in all_entries(self.coded, self._placed.used, each)]
        parts = [np.split(said, len(splits), axis=1) for said in every]
        return {s: [part[k] for part in parts] for k, s in enumerate(splits)}

    @property
    def much(self) -> bool:
        """Whether a look at all rows takes long."""
        classes = self.rows.n_classes if self.rows.n_classes > 2 else 1
        return len(self.rows.labels) * (len(self.coded) + len(self.dense)) * classes > _MUCH

    def judges(self) -> list[int]:
        """The splits that judge."""
        count = np.bincount(self.splits, minlength=SPLITS)
        known = [s for s in range(SPLITS) if count[s]]
        enough = np.cumsum([count[s] for s in known])
        return known[: max(2, 0 if self.much else int(np.searchsorted(enough, self.enough)) + 1)]


def split_of(folds: Ints, n_folds: int) -> Ints:
    """The split that each fold belongs to."""
    return np.asarray(folds * SPLITS // max(n_folds, SPLITS))
