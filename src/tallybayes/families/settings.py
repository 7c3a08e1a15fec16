"""Every choice made after counting, in one place. Change it and ask the same tally again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ..base.errors import SettingsError, unknown
from .calibration import Isotonic, Lead
from .smoothing import Dirichlet, Laplace, Smoothing

UNSEEN = ("no evidence", "reserve")
FLOORS = ("column", "global", "guarded")


@dataclass(frozen=True)
class Floor:
    """How narrow a Gaussian may be.

    "column": a standard deviation is at least `share` of the column's over all classes.
    "global": `share` of the largest variance of any column is added to every variance, as scikit-learn does.
    "guarded": the same, but the largest is taken as at most 10⁶ times the column's own variance over all classes, so
    that a column in small units is not drowned by one in large units.
    """

    kind: str = "column"
    share: float = 1e-9

    def __post_init__(self) -> None:
        if self.kind not in FLOORS or not (self.share >= 0 and np.isfinite(self.share)):
            raise SettingsError(
                f"a variance floor of kind {self.kind!r} with share {self.share!r}",
                hint="take Floor('column', 1e-9), 'global' or 'guarded' instead of 'column'; the share is at least 0.",
            )


@dataclass(frozen=True)
class Calibrated:
    """Where the weights of some settings come from, and how much has changed since.

    form:     "one temperature", "column weights and pairs", "column weights, pairs and lead", "… and isotonic curve"
    rows:     rows they were fitted on
    losses:   nested held-out log loss of each form that was tried
    changed:  rows added or forgotten since
    """

    form: str
    rows: int
    losses: Mapping[str, float] = field(default_factory=dict)
    changed: int = 0

    def __str__(self) -> str:
        tried = ", ".join(f"{name} {loss:.4f}" for name, loss in self.losses.items())
        since = f"; {self.changed:,} row{'s' * (self.changed != 1)} changed since" if self.changed else ""
        return f"{self.form}, fitted on {self.rows:,} rows (held-out log loss: {tried}){since}"


@dataclass(frozen=True)
class Settings:
    """What a model believes beyond the counts.

    smoothing:   one for all columns, or {column: smoothing} with Laplace(1) for the rest
    prior:       "counted", "uniform", {class: probability}, or Dirichlet({class: imagined rows}) added to the counts
    families:    {column: family or its name}; number columns are "auto" unless named, see `tallybayes.families`
    predictive:  average over what the parameters may be (Student-t, Dirichlet-multinomial, negative binomial)
    unseen:      values never counted are "no evidence", or share a slot of their own ("reserve")
    floor:       how narrow a Gaussian may be
    weights:     {column: factor} on a column's evidence
    lengths:     {column of words: exponent}; its evidence is also multiplied by tokens^exponent, since the words of a
                 long text repeat each other
    offsets:     {class: nats} added to its score, since columns that repeat each other may favour a class
    isotonic:    for two classes, a rising curve from the score to calibrated log-odds
    lead:        bends how far the best class is ahead, for scores that are too sure
    calibrated:  where the weights come from, if they were fitted
    classes:     labels that the model knows even if no row has them
    """

    smoothing: Smoothing | Mapping[str, Smoothing] = field(default_factory=Laplace)
    prior: str | Mapping[Any, float] | Dirichlet = "counted"
    families: Mapping[str, Any] = field(default_factory=dict)
    predictive: bool = False
    unseen: str = "no evidence"
    floor: Floor = field(default_factory=Floor)
    weights: Mapping[str, float] = field(default_factory=dict)
    lengths: Mapping[str, float] = field(default_factory=dict)
    offsets: Mapping[str, float] = field(default_factory=dict)
    isotonic: Isotonic | None = None
    lead: Lead | None = None
    calibrated: Calibrated | None = None
    classes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        each = self.smoothing.values() if isinstance(self.smoothing, Mapping) else [self.smoothing]
        wrong = [s for s in each if not isinstance(s, Smoothing)]
        if wrong:
            raise SettingsError(
                f"smoothing={wrong[0]!r} is not a smoothing",
                hint="take tb.Laplace(1.0), tb.MaximumLikelihood(), tb.Epsilon(), tb.Dirichlet({…}), "
                "tb.JelinekMercer(l), tb.AbsoluteDiscount(d) or tb.GoodTuring().",
            )
        if isinstance(self.prior, str):
            if self.prior not in ("counted", "uniform"):
                hint = "take 'counted', 'uniform', {class: probability} or Dirichlet({class: rows})."
                raise unknown(SettingsError, f"prior={self.prior!r}", self.prior, ("counted", "uniform"), hint)
        elif not isinstance(self.prior, (Mapping, Dirichlet)):
            raise SettingsError(
                f"prior={self.prior!r}",
                hint="take 'counted', 'uniform', {class: probability} or Dirichlet({…}).",
            )
        if self.unseen not in UNSEEN:
            raise SettingsError(f"unseen={self.unseen!r}", hint="take 'no evidence' or 'reserve'.")
        bad = [n for n, w in self.weights.items() if not (np.isfinite(w) and w >= 0)]
        if bad:
            raise SettingsError(
                f"the weight of column {bad[0]!r} is {self.weights[bad[0]]!r}", hint="weights are at least 0."
            )

        bad = [n for n, b in self.lengths.items() if not np.isfinite(b)]
        if bad:
            raise SettingsError(
                f"the length exponent of column {bad[0]!r} is {self.lengths[bad[0]]!r}",
                hint="take a number, usually between -1 and 0.",
            )

        bad = [c for c, o in self.offsets.items() if not np.isfinite(o)]
        if bad:
            raise SettingsError(
                f"the offset of class {bad[0]!r} is {self.offsets[bad[0]]!r}", hint="take a number of nats, or none."
            )

    def smoothing_of(self, column: str) -> Smoothing:
        """The smoothing of one column."""
        if isinstance(self.smoothing, Mapping):
            return self.smoothing.get(column, Laplace())
        return self.smoothing
