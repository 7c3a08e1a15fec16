"""Interaction: what two columns say together beyond what each says alone.

    amounts    a one under the two values (numbers by coarse stretches)
    estimate   P(u, v given y) = (n_uvy + m·q_uvy) / (n_y + m),   q_uvy ∝ r_uv · P(u given y) · P(v given y)
    score      log P(u, v given y) − log P(u given y) − log P(v given y)

Added to what the two columns say by themselves, the score makes naive Bayes exact for that pair. Few rows must not
invent evidence, so the joint table is drawn towards q, `strength` m imagined rows: the product of the margins, bent by
the dependence r that all classes share, which says nothing about the class. A value never seen is no evidence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from ..base.arrays import Floats
from ..base.errors import CannotEstimate, SettingsError
from ..data.blocks import Codes, N
from ..data.pairs import pair_slot, pair_values
from ..exact.counts import Counts
from .base import Belief, Context, Family, Table, Term
from .forms import PairForm
from .support import ColumnTally, Support, mass

MOST_CELLS = 20_000_000  # of the table of a pair
TOGETHER_OR_APART = "together / apart"  # what its table is called


@dataclass(frozen=True)
class Interaction(Family):
    """The dependence of two columns within each class, drawn towards none by `strength` imagined rows.

    >>> rows = {"a": [0, 0, 1, 1] * 5, "b": [0, 1, 0, 1] * 5, "y": ["same", "other", "other", "same"] * 5}
    >>> model = tb.fit(rows, "y", kinds={"a": "category", "b": "category"}, pairs=[("a", "b")], settings=tb.Settings())
    >>> model.predict({"a": [0, 1], "b": [0, 0]}).tolist()  # which neither column tells alone
    ['same', 'other']
    """

    strength: float = 5.0

    name = "interaction"
    kinds = ("pair",)

    def __post_init__(self) -> None:
        if not (self.strength > 0 and np.isfinite(self.strength)):
            raise SettingsError(
                f"an interaction of strength {self.strength!r}", hint="take a number of rows above 0, e.g. 5."
            )

    def estimate(self, counts: Counts, context: Context) -> InteractionBelief:
        """The table of log ratios."""
        sheet = counts.sheet("values", N)
        values = [pair_values(s) for s in sheet.slot_names]
        us, vs = (tuple(sorted({pair[side] for pair in values})) for side in (0, 1))
        at_u, at_v = ({v: i for i, v in enumerate(side)} for side in (us, vs))
        check_size(len(us), len(vs), context.n_classes)
        n = np.zeros((len(us), len(vs), context.n_classes))
        if values:
            place = np.array([(at_u[u], at_v[v]) for u, v in values])
            n[place[:, 0], place[:, 1]] = sheet.table("n", context.n_classes)
        return InteractionBelief(us, vs, log_ratios(n, self.strength))


def check_size(us: int, vs: int, classes: int) -> None:
    """Refuse a table of more cells than are sensible."""
    if us * vs * classes > MOST_CELLS:
        raise CannotEstimate(
            f"a pair of {us:,} by {vs:,} values in {classes:,} classes",
            hint="pair columns with fewer values: rare pairs have too few rows to say anything.",
        )


def values_of(slot: str) -> tuple[str, str]:
    """The two values of a slot that somebody has given; refused if it is none."""
    try:
        u, v = pair_values(slot)
        if isinstance(u, str) and isinstance(v, str) and pair_slot(u, v) == slot:
            return u, v
    except (TypeError, ValueError, RecursionError):
        pass
    raise SettingsError(f"a pair has no cell {slot!r:.80}", hint='name two values as a JSON list: \'["sun", "dry"]\'.')


def log_ratios(n: Floats, strength: float) -> Floats:
    """log [P(u, v given y) / (P(u given y) · P(v given y))] of tables of counts … × u × v × y."""
    u, v, c = n.shape[-3:]
    if u == 0 or v == 0:
        return np.zeros_like(n)
    rows = n.sum(axis=(-3, -2), keepdims=True)
    p_u = (n.sum(axis=-2, keepdims=True) + 1 / u) / (rows + 1)  # one imagined row for all values of a side together
    p_v = (n.sum(axis=-3, keepdims=True) + 1 / v) / (rows + 1)
    product = p_u * p_v
    together = n.sum(axis=-1, keepdims=True)
    everyone = rows.sum(axis=-1, keepdims=True)
    apart = (product * ((rows + 1) / (everyone + c))).sum(axis=-1, keepdims=True)
    shared = (together + strength * c * apart) / (everyone + strength * c) / apart
    towards = product * shared
    towards /= towards.sum(axis=(-3, -2), keepdims=True)
    out: Floats = np.log((n + strength * towards) / (rows + strength) / product)
    return out


@dataclass(frozen=True)
class InteractionBelief(Belief):
    """A table of log ratios over the values of two columns."""

    us: tuple[str, ...]
    vs: tuple[str, ...]
    log: Floats  # u × v × classes

    asked_of = ("pair",)
    axes: ClassVar = {"log": "us vs classes"}

    density = False  # it corrects two distributions and is none itself

    @cached_property
    def _numbers(self) -> tuple[dict[str, int], dict[str, int]]:
        return {u: i for i, u in enumerate(self.us)}, {v: j for j, v in enumerate(self.vs)}

    def _place(self, slot: str) -> tuple[int, int]:
        """Where the table holds two values: past its end for a value never seen."""
        u, v = pair_values(slot)
        at_u, at_v = self._numbers
        return at_u.get(u, len(self.us)), at_v.get(v, len(self.vs))

    @cached_property
    def _padded(self) -> Floats:
        """One more row of zeros on each side, for values never seen."""
        return np.pad(self.log, ((0, 1), (0, 1), (0, 0)))

    def rows_of(self, slots: Sequence[str]) -> Floats:
        """The log ratios of a block's slots, and zeros after them: the row of code −1, missing."""
        unseen = (len(self.us), len(self.vs))
        at = np.array([*map(self._place, slots), unseen], dtype=np.int64)
        out: Floats = self._padded[at[:, 0], at[:, 1]]
        return out

    def parts(self, block: Codes) -> Floats:
        """The log ratio of the two values; 0 where one is missing or was never seen."""
        out: Floats = self.rows_of(block.slots)[block.codes]
        return out

    def terms(self, block: Codes, row: int) -> list[Term]:
        """One line: both values together."""
        slot = block.text(row)
        parts = self.parts(block.take(np.array([row])))[0]
        if slot is None:
            return [Term("", parts, "missing")]
        i, j = self._place(slot)
        seen = i < len(self.us) and j < len(self.vs)
        return [Term(" and ".join(pair_values(slot)) + " together", parts, "" if seen else "never seen")]

    def parameters(self) -> tuple[int, int]:
        """C·U·V raw, C·(U − 1)·(V − 1) free."""
        u, v, c = self.log.shape
        return c * u * v, c * max(u - 1, 0) * max(v - 1, 0)

    def form(self) -> PairForm:
        """The table."""
        return PairForm(self.us, self.vs, self.log)

    def support(self, counted: ColumnTally, block: Codes) -> list[Support]:
        """The rows that have both values."""
        n, total = counted.of_value(block.text(0))
        return [Support(n, total, mass(n, self.parts(block)[0]))]

    def table(self) -> Table:
        """How many times likelier the two values are together than they would be apart."""
        rows = [" and ".join((u, v)) for u in self.us for v in self.vs]
        return Table(TOGETHER_OR_APART, rows, np.exp(self.log).reshape(len(rows), -1), "pairs")
