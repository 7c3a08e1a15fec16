"""Complement: what a bag says by the words of all other classes, the other way round (Rennie et al. 2003).

amounts    as for words
estimate   weight_yw = −log[(Σx_w of the other classes + α)/(their Σx + α·V)]
score      Σ_w x_w·weight_yw, a reading, not a density
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..base.arrays import Floats, safe_log
from ..base.errors import SettingsError
from ..exact.counts import Counts
from .base import Context, Family
from .smoothing import Dirichlet, Laplace
from .support import ColumnTally
from .vocabulary import Selection, bag_rows, vocabulary, word_table
from .words import WordsBelief, imagined, mean_length, shares_of


@dataclass(frozen=True)
class Complement(Family):
    """The words of all other classes, the other way round: the class whose opposite they fit least.

    `norm` divides by the sum of the weights, `presence` counts each word once per row.

    >>> rows = {"note": ["win cash now", "see you", "win win"], "y": ["spam", "ham", "spam"]}
    >>> model = tb.textbook(rows, "y", kinds={"note": "text"}, families={"note": "complement"})
    >>> model.predict({"note": "cash"}).tolist()
    ['spam']
    """

    norm: bool = False
    presence: bool = False
    select: Selection = field(default_factory=Selection)

    name = "complement"
    kinds = ("bag", "text")

    def estimate(self, counts: Counts, context: Context) -> ComplementBelief:
        """−log of each word's share in the other classes."""
        if not isinstance(context.smoothing, (Laplace, Dirichlet)):
            raise SettingsError(
                f"column {context.column!r}: the complement reading is smoothed by an alpha",
                hint="take smoothing=tb.Laplace(alpha), or tb.Dirichlet({word: alpha}).",
            )
        words = vocabulary(counts, context, self.select)
        alpha = imagined(context, words)
        n = word_table(counts, context, "documents" if self.presence else "n", words)
        length = mean_length(n.sum(axis=0), bag_rows(counts, context))
        own = shares_of(n + alpha)
        if n.shape[1] == 1:  # a single class has no complement
            return ComplementBelief(tuple(words), own, False, length, self.presence, complement=np.zeros_like(n))
        others = n.sum(axis=1, keepdims=True) - n + alpha
        log = safe_log(others / np.maximum(others.sum(axis=0), 1e-300))
        # scikit-learn normalises to positive weights and negates; the sign of `log` comes out the same
        weights = log / log.sum(axis=0) if self.norm else -log
        return ComplementBelief(tuple(words), own, False, length, self.presence, complement=weights)


@dataclass(frozen=True)
class ComplementBelief(WordsBelief):
    """Weights from the other classes."""

    complement: Floats = field(kw_only=True)

    axes: ClassVar = {**WordsBelief.axes, "complement": "words+reserve classes"}
    density = False  # a reading of the other classes' words is no distribution of this one's

    def sealed(self) -> ComplementBelief:
        """Without the class's own words, which say nothing, and without the lengths of the rows."""
        return replace(self, length=np.ones_like(self.length), probabilities=np.zeros_like(self.probabilities))

    def behind(
        self, counted: ColumnTally, names: Sequence[str], n: Floats, total: Floats
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """What speaks is how rare a word is in the other classes."""
        n, total = n.sum(axis=1, keepdims=True) - n, total.sum() - total
        strength = counted.strength(total, self.table().rows)
        p = (n + (strength - total) / max(len(self.probabilities), 1)) / np.maximum(strength, 1e-300)
        log = safe_log(p)
        return n, total, p, np.where(log < 0, self.each(names, self.weights) / np.where(log < 0, log, 1.0), 0.0)

    @cached_property
    def weights(self) -> Floats:
        """−log of the word's share in the other classes."""
        return self.complement
