"""`tb.tune`: smoothing, families and priors that a person names, chosen after counting.

With rows: every candidate of every column is scored once on held-out rows; what columns say adds up, so trying another
candidate for one column is one addition. One column after the other takes the candidate under which the held-out rows
lose least, until none changes. Only the rows given are looked at: keep the test part apart (`tb.split`), or ask for
`nested=True`.

From a tally alone: the α of a column under which each occurrence is best foretold by all others of its class,

    Σ_y Σ_s n_sy · log[(n_sy − 1 + α)/(N_y − 1 + α·K)]

Slots with equal counts add the same, so the sum is over different counts, however many words there are.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa
from scipy.optimize import minimize_scalar

from ...base.arrays import Floats
from ...base.errors import SettingsError, TallybayesWarning, unknown
from ...base.show import Page, Shown
from ...data.blocks import WORDS, N
from ...data.schema import Column, Schema
from ...data.sources import Source
from ...families import (
    BernoulliWords,
    Bins,
    Complement,
    Family,
    Gaussian,
    Kernel,
    Levels,
    Multinomial,
    Poisson,
    Selection,
    default_family,
    family_for,
)
from ...families.settings import Settings
from ...families.smoothing import Laplace, Smoothing
from ...model.model import Model
from ...model.posterior import log_posterior
from ...tally.tally import Tally
from ..folds import Folds, HeldOut, count_folds
from ..measure.cross_validate import cross_validate, opened
from ..measure.evaluation import Evaluation
from ..measure.metrics import log_loss
from ..parts import Plan

ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
_SWEEPS = 5
_TIE = 1e-9


@dataclass(frozen=True)
class Candidate:
    """One way of believing a column, and the held-out log loss with it while the other columns stay as chosen."""

    column: str
    family: Family
    smoothing: Smoothing
    loss: float = float("nan")

    def __str__(self) -> str:
        return f"{self.family.describe()}, {self.smoothing}"


@dataclass(frozen=True, repr=False)
class Tuned(Shown):
    """What tuning chose. `settings` and `model` are ready to use; `table` lists everything that was tried.

    `before` and `after` are held-out log losses of the rows that were tuned on: the second flatters, since it was
    chosen for being low. `nested` is the honest figure, if it was asked for.
    """

    settings: Settings
    model: Model
    before: float
    after: float
    tried: tuple[Candidate, ...] = field(repr=False)
    nested: Evaluation | None = field(default=None, repr=False)

    @property
    def table(self) -> pa.Table:
        """Column, family, smoothing and held-out log loss of every candidate."""
        return pa.table(
            {
                "column": [c.column for c in self.tried],
                "family": [c.family.describe() for c in self.tried],
                "smoothing": [str(c.smoothing) for c in self.tried],
                "log loss": [c.loss for c in self.tried],
            }
        )

    def to_pandas(self) -> Any:
        """The table as a pandas frame."""
        return self.table.to_pandas()

    def _page(self) -> Page:
        chosen = [
            [name, family.describe(), str(self.settings.smoothing_of(name))]
            for name, family in self.model.families.items()
        ]
        head = f"Tuned: held-out log loss {self.before:.4f} → {self.after:.4f}, {len(self.tried)} candidates"
        if self.nested is not None:
            head += f", nested {self.nested['log_loss']:.4f}"
        return Page(head, [["column", "family", "smoothing"], *chosen], left=3)


def tune(
    data: Any,
    schema: Schema | Any = None,
    y: Any = None,
    *,
    settings: Settings | None = None,
    families: Mapping[str, Sequence[Any]] | None = None,
    smoothing: Sequence[Smoothing] | None = None,
    priors: Sequence[Any] = ("counted",),
    folds: int = 5,
    stratify: bool = True,
    groups: str | None = None,
    by: str | None = None,
    seed: int = 0,
    nested: bool = False,
) -> Tuned | Settings:
    """The settings under which held-out rows lose least; from a tally alone, the likeliest smoothing of each column.

    `schema` is a schema or the target's name. `families={"age": ["gaussian", "bins"]}` and `smoothing=[tb.Laplace(1)]`
    replace the lists that are tried; `settings` holds what is not tuned. Given a `Tally` instead of data, each
    category's and text's α is the one under which every count is best foretold by the others, and nothing is scored.

    >>> import tallybayes as tb
    >>> table = {"x": [1.0, 2.0, 9.0, 8.0] * 10, "y": ["low", "low", "high", "high"] * 10}
    >>> tb.tune(table, "y", families={"x": ["gaussian-shared", "bins"]}).model.predict({"x": 3.0}).tolist()
    ['low']
    """
    base = settings or Settings()
    if base.lengths or base.offsets or base.curves:
        raise SettingsError(
            "settings with fitted length exponents, offsets, lead or isotonic curve: these belong to other families",
            hint="tune first, then fit them anew: tb.fit(data, target, settings=tuned.settings, calibrate=True).",
        )
    if isinstance(data, Tally):
        if families or nested or smoothing is not None:
            raise SettingsError(
                "a tally has no rows to hold out", hint="give the data to choose families; a tally alone gives α."
            )
        return _from_tally(data, base)
    source, known, _ = opened(data, schema, y, None, Plan())
    plan = Plan(folds, stratify and groups is None and by is None, groups, by, None, seed)
    out = _tuned(source, known, base, families or {}, smoothing, priors, plan)
    if not nested:
        return out

    def again(rows: Source) -> Model:
        inner = Plan(folds, stratify and groups is None, groups, None, None, seed)
        return _tuned(rows, known, base, families or {}, smoothing, priors, inner).model

    honest = cross_validate(
        source, known, folds=folds, stratify=plan.stratify, groups=groups, by=by, seed=seed + 1, fitter=again
    )
    return replace(out, nested=honest)


def _tuned(
    source: Source, schema: Schema, base: Settings, families: Mapping[str, Sequence[Any]],
    smoothing: Sequence[Smoothing] | None, priors: Sequence[Any], plan: Plan,
) -> Tuned:  # fmt: skip
    for name in families:
        if name not in schema.names:
            found = f"families for a column {name!r} that is not counted"
            raise unknown(SettingsError, found, name, schema.names)
    if not schema.counted or not priors or not all(len(f) for f in families.values()):
        raise SettingsError(
            "there is nothing to choose among", hint="count at least one column, and give one candidate or more."
        )
    assign, _ = plan.assign(source, schema.target)
    folded = count_folds(source, schema, assign)
    candidates = {c.name: _candidates(c, base, families.get(c.name), smoothing) for c in schema.counted}
    best: tuple[float, float, Settings, list[Candidate]] | None = None
    for prior in priors:
        before, after, chosen, tried = _descend(folded, candidates, replace(base, prior=prior))
        if best is None or after < best[1] - _TIE:
            best = before, after, chosen, tried
    assert best is not None
    before, after, chosen, tried = best
    return Tuned(chosen, folded.total.model(chosen), before, after, tuple(tried))


def _candidates(
    column: Column, base: Settings, families: Sequence[Any] | None, smoothing: Sequence[Smoothing] | None
) -> list[Candidate]:
    """What is tried for a column; the first is what the settings say already."""
    if families is None:
        chosen = base.families.get(column.name)
        families = [chosen] if chosen is not None else _usual(column)
    smoothings = list(smoothing) if smoothing is not None else [Laplace(a) for a in ALPHAS]
    first = base.smoothing_of(column.name)
    out = []
    for family in (family_for(f, column.kind) for f in families):
        smooth = [first, *(s for s in smoothings if s != first)] if _uses_smoothing(family) else [first]
        out += [Candidate(column.name, family, s) for s in smooth]
    return out


def _usual(column: Column) -> list[Family]:
    if column.like == "number":
        shapes: list[Family] = [Gaussian(), Gaussian(variance="shared"), Gaussian(predictive=True)]
        if column.cells is None:
            return shapes
        whole = all(p >= 0 and p == round(p) for p in column.cells.points or (-1,))
        counts: list[Family] = [Poisson(), Levels()] if whole else []
        return [*shapes, Kernel(), Bins(), Bins("frequency", 10), *counts]
    if column.about.words:
        cuts = [Multinomial(presence=True, select=cut) for cut in (Selection(min_rows=2), Selection(top=1_000))]
        plain = [Multinomial(), Multinomial(presence=True), Complement(), Complement(presence=True), BernoulliWords()]
        return [*plain, *cuts]
    return [default_family(column.kind)]


def _uses_smoothing(family: Family) -> bool:
    return not isinstance(family, (Gaussian, Kernel, Poisson)) and family.name != "interaction"


def _descend(
    folded: Folds, candidates: Mapping[str, list[Candidate]], base: Settings
) -> tuple[float, float, Settings, list[Candidate]]:
    """Log loss before and after, the settings chosen, and every candidate with its loss."""
    rounds = max(map(len, candidates.values()))
    each = folded.held_out_each(
        [_settings(base, {n: c[min(i, len(c) - 1)] for n, c in candidates.items()}) for i in range(rounds)], parts=True
    )
    held = each[0]
    said = {n: [each[i].parts[n] for i in range(len(c))] for n, c in candidates.items()}
    at = dict.fromkeys(candidates, 0)
    start = held.log_prior[held.folds]
    finite = all(np.isfinite(p).all() for parts in said.values() for p in parts)  # ∞ − ∞ is not 0
    total = start + _others(base, said, at)
    before = loss = _loss(held, total)
    losses: dict[str, list[float]] = {}
    for _ in range(_SWEEPS):
        moved = False
        for name, parts in said.items():
            rest = total - _weighted(base, name, parts[at[name]]) if finite else start + _others(base, said, at, name)
            losses[name] = [_loss(held, rest + _weighted(base, name, p)) for p in parts]
            best = int(np.argmin(losses[name]))
            if losses[name][best] < loss - _TIE:
                at[name], loss, moved = best, losses[name][best], True
            total = rest + _weighted(base, name, parts[at[name]])
        if not moved:
            break
    chosen = _settings(base, {n: c[at[n]] for n, c in candidates.items()})
    tried = [replace(c, loss=lost) for n in candidates for c, lost in zip(candidates[n], losses[n], strict=True)]
    return before, loss, chosen, tried


def _others(settings: Settings, said: Mapping[str, list[Floats]], at: Mapping[str, int], but: str = "") -> Floats:
    """What the columns say together, each by its chosen candidate, one left out."""
    return np.asarray(sum((_weighted(settings, n, p[at[n]]) for n, p in said.items() if n != but), 0.0))


def _weighted(settings: Settings, column: str, part: Floats) -> Floats:
    weight = settings.weights.get(column, 1.0)
    return np.zeros_like(part) if weight == 0 else weight * part


def _settings(base: Settings, chosen: Mapping[str, Candidate]) -> Settings:
    return replace(
        base,
        families={**base.families, **{n: c.family for n, c in chosen.items()}},
        smoothing={n: c.smoothing for n, c in chosen.items()},
    )


def _loss(held: HeldOut, joint: Floats) -> float:
    with warnings.catch_warnings():  # a candidate under which every class is impossible is a bad one, no more
        warnings.simplefilter("ignore", TallybayesWarning)
        return log_loss(held.labels, np.exp(log_posterior(joint, held.log_prior[held.folds])), held.weights)


# ---- from the tally alone


def _from_tally(tally: Tally, base: Settings) -> Settings:
    slots = [c.name for c in tally.schema.counted if c.like == "category" or c.about.words]
    found = {name: Laplace(likeliest_alpha(tally, name)) for name in slots}
    own = base.smoothing if isinstance(base.smoothing, Mapping) else {}
    return replace(base, smoothing={**found, **own})


def slot_counts(tally: Tally, column: str, amount: str = "n") -> tuple[Floats, int]:
    """The counts of a category's values or a text's words, slots × classes, and K, how many slots there are."""
    category = tally.schema[column].like == "category"
    if not category and not tally.schema[column].about.words:
        raise SettingsError(
            f"column {column!r} is a {tally.schema[column].kind}: it has no values or words to count",
            hint="an α belongs to a category, a text or a bag.",
        )
    sheet = tally.columns[column].sheet("values" if category else "words", N if category else WORDS)
    declared = tally.schema[column].values or ()
    width = tally.schema[column].width or 0
    return sheet.table(amount, len(tally.classes)), max(len({*sheet.slot_names, *declared}), width)


def left_out_likelihood(tally: Tally, column: str, alpha: float, amount: str = "n") -> float:
    """The sum at the top of this file; −inf where α is 0 and some value occurs once in a class."""
    n, k = slot_counts(tally, column, amount)
    return _likelihood(*_grouped(n), k, alpha)


def likeliest_alpha(tally: Tally, column: str, amount: str = "n") -> float:
    """The α between 10⁻⁶ and 10⁶ with the highest left-out likelihood: nothing is read but the tally.

    >>> import tallybayes as tb
    >>> schema = tb.Schema([tb.Column("x", "category")], target="y")
    >>> tally = tb.count({"x": list("aaaaaabbbbbc"), "y": list("ppppppqqqqqq")}, schema)
    >>> round(likeliest_alpha(tally, "x"), 3)
    0.255
    """
    n, k = slot_counts(tally, column, amount)
    grouped = _grouped(n)
    grid = np.linspace(np.log(1e-6), np.log(1e6), 49)
    best = int(np.argmax([_likelihood(*grouped, k, float(np.exp(a))) for a in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(lambda a: -_likelihood(*grouped, k, float(np.exp(a))), bounds=(low, high), method="bounded")
    return float(np.exp(found.x))


def _grouped(n: Floats) -> tuple[Floats, Floats, Floats]:
    """Different counts of one class, how many slots have each, and the class's total, all in one list."""
    values, times, totals = [], [], []
    for y in range(n.shape[1]):
        found, how_many = np.unique(n[:, y], return_counts=True)
        values.append(found)
        times.append(how_many.astype(np.float64))
        totals.append(np.full(len(found), n[:, y].sum()))
    return np.concatenate(values), np.concatenate(times), np.concatenate(totals)


def _likelihood(value: Floats, times: Floats, total: Floats, k: int, alpha: float) -> float:
    there = (value > 0) & (total > 1)  # a class with one occurrence has no others to foretell it
    value, times, total = value[there], times[there], total[there]
    with np.errstate(divide="ignore"):
        return float(np.sum(times * value * (np.log(np.maximum(value - 1, 0) + alpha) - np.log(total - 1 + alpha * k))))
