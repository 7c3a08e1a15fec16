"""Blend: several families read one number column, and each says its share.

    amounts    the number's own: moments and cells
    estimate   each family by itself
    score      Σ share · log P_family(x given y), each family at most 15 nats below its best class

No single curve fits every column. A bell curve is steady where rows are few, bins follow any shape where they are many;
their average is better than the best of them, and it stays a sum. The shares are fitted on held-out rows together with
the column weights (`selection.choose`), or are equal.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..base.arrays import Floats, Ints
from ..base.canon import number_text
from ..base.errors import SettingsError
from ..data.blocks import Numbers
from ..data.schema import Column
from ..exact.counts import Counts
from .base import Belief, Context, Family, Table, named
from .bins import Bins
from .forms import BellForm, BlendForm, CellsForm, Form, NoForm, RateForm, StepsForm, relative
from .gaussian import Gaussian
from .support import QUANTILES, ColumnTally, Support, supports_of

MOST = 15.0  # nats a family may hold against a class: the far tail of a bell curve is a guess, not evidence
_FEW = 16  # classes
_PLACES = 9  # values in its table
READERS: tuple[Family, ...] = (
    Gaussian(variance="shared"),
    Gaussian(predictive=True),
    Bins("mdl"),
    Bins("frequency", 10),
    Bins("frequency", 25),
)


@dataclass(frozen=True)
class Blend(Family):
    """A weighted sum of what several families say; without `shares` each says the same part.

    >>> rows = {"x": [1.0, 2.0, 2.5, 7.0, 8.0, 9.0], "y": ["low", "low", "low", "high", "high", "high"]}
    >>> both = tb.families.Blend((tb.families.Gaussian(), tb.families.Bins()), shares=(0.7, 0.3))
    >>> tb.count(rows, "y").model({"families": {"x": both}}).predict({"x": [3.0, 6.0]}).tolist()
    ['low', 'high']
    """

    families: tuple[Family, ...] = READERS
    shares: tuple[float, ...] = ()

    name = "blend"
    kinds = ("number",)

    def __post_init__(self) -> None:
        object.__setattr__(self, "families", tuple(named(f) for f in self.families))
        given = self.shares or (1 / max(len(self.families), 1),) * len(self.families)
        object.__setattr__(self, "shares", tuple(float(s) for s in given))
        bad = [f.name for f in self.families if "number" not in f.kinds]
        shared = len(self.shares) == len(self.families) and all(0 <= s < np.inf for s in self.shares)
        if bad or not self.families or not shared:
            raise SettingsError(
                f"a blend of {[f.name for f in self.families]} with shares {list(self.shares)}",
                hint="give one share of at least 0 for each of one or more families that read numbers.",
            )

    def estimate(self, counts: Counts, context: Context) -> BlendBelief:
        """The belief of each family that has a share."""
        asked = [(f.estimate(counts, context), s) for f, s in zip(self.families, self.shares, strict=True) if s > 0]
        return BlendBelief(context.n_classes, tuple(b for b, _ in asked), tuple(s for _, s in asked))

    def one_more(
        self, counts: Counts, context: Context, more: Numbers, labels: Ints, weights: Floats, asked: Numbers
    ) -> Floats | None:
        """What each family says that has a share."""
        out = np.zeros((more.rows, asked.rows, context.n_classes))
        for family, share in zip(self.families, self.shares, strict=True):
            said = family.one_more(counts, context, more, labels, weights, asked) if share > 0 else None
            if said is not None:
                out += share * bounded(said.reshape(-1, context.n_classes)).reshape(out.shape)
            elif share > 0:
                return None
        return out

    def describe(self) -> str:
        """The families with their shares."""
        if not any(self.shares):
            return "blend of nothing"
        each = [f"{s:.0%} {f.describe()}" for f, s in zip(self.families, self.shares, strict=True) if s >= 0.005]
        return "blend of " + ", ".join(each)


@dataclass(frozen=True)
class BlendBelief(Belief):
    """Several beliefs about one column, and how much each of them counts."""

    n_classes: int
    beliefs: tuple[Belief, ...]
    shares: tuple[float, ...]
    most: float = field(default=MOST, metadata={"usual": True})  # files name it where it is another

    density = False  # a product of powers of densities is no density
    asked_of = ("number",)
    axes: ClassVar = {"shares": "beliefs"}

    def misfit(self, column: Column, n_classes: int) -> str | None:
        """Also why one of its beliefs cannot."""
        wrong = super().misfit(column, n_classes)
        if wrong is not None:
            return wrong
        if self.n_classes != n_classes or not np.isfinite([self.most, *self.shares]).all():
            return f"a blend for {self.n_classes} classes of {n_classes}, by shares {self.shares!r:.60}"
        each = (belief.misfit(column, n_classes) for belief in self.beliefs)
        return next((wrong for wrong in each if wrong), None)

    def parts(self, block: Any) -> Floats:
        """The weighted sum of what each belief says, against its best class."""
        out = np.zeros((block.rows, self.n_classes))
        for belief, share in zip(self.beliefs, self.shares, strict=True):
            out += share * bounded(belief.parts(block), self.most)
        return out

    def form(self) -> Form:
        """The form of each belief, by its share; none if one of them has none."""
        forms = [belief.form() for belief in self.beliefs]
        unsaid = next((f for f in forms if isinstance(f, NoForm)), None)
        return unsaid or BlendForm(self.most, tuple(zip(map(float, self.shares), forms, strict=True)))

    def sealed(self) -> BlendBelief:
        """Each belief sealed."""
        return replace(self, beliefs=tuple(belief.sealed() for belief in self.beliefs))

    def support(self, counted: ColumnTally, block: Any) -> list[Support | None]:
        """The families read the same rows: where one errs the others do, so quantile by quantile, in their shares."""
        each = [supports_of(belief, counted, block)[0] for belief in self.beliefs]
        known = [s for s in each if s is not None]
        if len(known) < len(each) or not known:
            return [None]
        draws = [s.draw for s in known]
        narrow = min(known, key=lambda s: float(s.n.sum()))  # the counts of the bin, not of the whole curve

        def draw(y: int) -> Floats:
            parts = [s * np.quantile(d(y), QUANTILES) for d, s in zip(draws, self.shares, strict=True) if d is not None]
            return np.asarray(np.sum(parts, axis=0))

        return [Support(narrow.n, narrow.of, None if any(d is None for d in draws) else draw)]

    def parameters(self) -> tuple[int, int]:
        """Those of all families."""
        each = [b.parameters() for b in self.beliefs]
        return sum(raw for raw, _ in each), sum(free for _, free in each)

    def table(self) -> Table:
        """What the whole of it says at a few values: log evidence, 0 for the class that it speaks for most."""
        x = self._places()
        said = relative(self.parts(Numbers(x))) if len(x) else np.zeros((0, self.n_classes))
        return Table("log evidence at the value", [number_text(v) for v in x.tolist()], said)

    def _places(self) -> Floats:
        """Values that its families know, from end to end, in few digits."""
        found = [np.zeros(0)]
        for form in (belief.form() for belief in self.beliefs):
            if isinstance(form, BellForm):
                with np.errstate(over="ignore"):  # of numbers near the ends of the line
                    found += [(form.location + z * form.scale).ravel() for z in (-2.0, -1.0, 0.0, 1.0, 2.0)]
            elif isinstance(form, RateForm):
                found.append(np.concatenate([[0.0], form.rate, 2 * form.rate]))
            elif isinstance(form, (CellsForm, StepsForm)):
                found.append(form.near() if isinstance(form, CellsForm) else form.starts)
        known = np.unique(np.concatenate(found))
        known = known[np.isfinite(known)]
        at = (
            np.unique(np.linspace(0, len(known) - 1, _PLACES).astype(np.int64)) if len(known) else np.zeros(0, np.int64)
        )
        return np.unique([float(f"{v:.3g}") for v in known[at]])


def bounded(parts: Floats, most: float = MOST) -> Floats:
    """Parts against the best class of each row, none below −most; 0 where every class is impossible."""
    if 0 < parts.shape[1] <= _FEW:  # class by class: NumPy takes long over many short rows
        best = parts[:, 0].copy()
        for y in range(1, parts.shape[1]):
            np.maximum(best, parts[:, y], out=best)
    else:
        best = parts.max(axis=1, initial=-np.inf)
    possible = np.isfinite(best)
    if not possible.all():
        parts, best = np.where(possible[:, None], parts, 0.0), np.where(possible, best, 0.0)
    out: Floats = parts - best[:, None]
    return np.maximum(out, -most, out=out)
