"""`tb.tune`: smoothing, families and priors that a person names, chosen after counting.

With rows: every candidate of every column is scored once on held-out rows; what columns say adds up, so trying another
candidate for one column is one addition. One column after the other takes the candidate under which the held-out rows
lose least, until none changes. What was found is then one way to begin, and what `tb.fit` begins with the other: both
are given the weights and corrections that held-out rows support (`chosen`), and the first is left for the second only
where it loses less, on rows that neither has seen. Only the rows given are looked at: keep the test part apart
(`tb.split`), or ask for `nested=True`.

From a tally alone: the α of each column that its counts support, see `likeliest`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any

import numpy as np
import pyarrow as pa

from ...base.arrays import Floats
from ...base.errors import SettingsError, TallybayesWarning, unknown
from ...base.renamed import renamed
from ...base.show import Page, Shown
from ...data.guess import Reading
from ...data.infer import first_look
from ...data.schema import Column, Schema
from ...data.sources import Batch, Source
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
    family_for_all,
    named,
)
from ...families.settings import Settings, SettingsLike, smoothing_of
from ...families.smoothing import Laplace, Smoothing
from ...model.model import Model
from ...model.posterior import log_posterior
from ...model.provenance import History, names_of
from ...tally.tally import Tally
from ..folds import Folds, HeldOut, count_folds
from ..measure.cross_validate import cross_validate, opened
from ..measure.evaluation import Evaluation
from ..measure.metrics import log_loss
from ..measure.refit import Learner, Truth, refit
from ..parts import Plan
from .chosen import choose, unfitted
from .ladder import GAIN
from .likeliest import with_likeliest

ALPHAS = (0.01, 0.03, 0.1, 0.3, 1.0, 3.0)
PLAIN, FIT, TUNED = "plain", "fit", "tuned"
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

    `plain` has the families, smoothing and prior that the search found, without weights; `before` and `after` are its
    held-out log losses on the rows that were tuned on: the second flatters, since it was chosen for being low. `losses`
    are those of the two ways to a model, "fit" and "tuned", once weights and corrections were chosen for both, and
    `kept` is the one that was taken: "plain" where rows are too few, or weights were given. `nested` is the honest
    figure, if it was asked for.

    >>> table = {"x": [1.0, 2.0, 9.0, 8.0] * 10, "y": ["low", "low", "high", "high"] * 10}
    >>> tuned = tb.tune(table, "y", families=["gaussian", "bins"])
    >>> tuned.table.column_names, tuned.kept
    (['column', 'family', 'smoothing', 'log loss'], 'fit')
    """

    settings: Settings
    model: Model
    before: float
    after: float
    tried: tuple[Candidate, ...] = field(repr=False)
    nested: Evaluation | None = field(default=None, repr=False)
    plain: Settings = field(default_factory=Settings, repr=False)
    kept: str = PLAIN
    losses: Mapping[str, float] = field(default_factory=dict)

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
        if self.losses:
            head += f", with weights {self.losses[self.kept]:.4f}"
            head += ", as fit chooses them" if self.kept == FIT else ""
        if self.nested is not None:
            head += f", nested {self.nested['log_loss']:.4f}"
        return Page(head, [["column", "family", "smoothing"], *chosen], left=3)


@renamed(priors="prior")
def tune(
    data: Any,
    target: Any = None,
    y: Any = None,
    *,
    schema: Schema | None = None,
    kinds: Mapping[str, str] | None = None,
    settings: SettingsLike = None,
    families: Mapping[str, Any] | Any = None,
    smoothing: Any = None,
    prior: Any = ("counted",),
    weights: Any = None,
    folds: int = 5,
    stratify: bool = True,
    groups: str | None = None,
    by: str | None = None,
    seed: int = 0,
    nested: bool = False,
    missing: str | Iterable[str] | None = None,
    strict: bool = False,
    date_format: str | Mapping[str, str] | None = None,
    fold: bool = False,
) -> Tuned | Settings:
    """The settings under which held-out rows lose least; from a tally alone, the likeliest smoothing of each column.

    The data are told of as for `fit`. `families={"age": ["gaussian", "bins"]}`, `smoothing=[0.1, tb.Laplace(1)]` and
    `prior=["counted", "uniform"]` replace the lists that are tried, `families=["gaussian", "bins"]` those of all
    columns that can be so;
    `settings` holds what is not tuned. What was found is given the weights that `fit` would choose, and kept only
    where that loses less than `fit` does by itself, see `Tuned`. Given a `Tally` instead of data, each category's
    and text's α is the one under which every count is best foretold by the others, and nothing is scored.

    >>> import tallybayes as tb
    >>> table = {"x": [1.0, 2.0, 9.0, 8.0] * 10, "y": ["low", "low", "high", "high"] * 10}
    >>> tb.tune(table, "y", families={"x": ["gaussian-shared", "bins"]}).model.predict({"x": 3.0}).tolist()
    ['low']
    """
    base = Settings.of(settings, data.schema if isinstance(data, Tally) else None)
    if base.calibrated is not None:
        base = unfitted(base)  # chosen anew for what is found here
    if base.lengths or base.offsets or base.curves or base.corrections:
        raise SettingsError(
            "settings with fitted length exponents, offsets, lead, isotonic curve or corrections: these belong to "
            "other families",
            hint="tune first, then fit them anew: tb.fit(data, target, settings=tuned.settings, calibrate=True).",
        )
    if isinstance(data, Tally):
        if families or nested or smoothing is not None:
            raise SettingsError(
                "a tally has no rows to hold out", hint="give the data to choose families; a tally alone gives α."
            )
        return with_likeliest(data, base)
    plan = Plan(folds, stratify and groups is None and by is None, groups, by, None, seed)
    if isinstance(smoothing, (str, Real, Smoothing)):
        smoothing = [smoothing]
    smoothings = None if smoothing is None else [smoothing_of(s) for s in smoothing]
    priors = list(prior) if isinstance(prior, (list, tuple)) else [prior]
    for each in priors:
        replace(base, prior=each)  # refused if it is none, before anything is read
    reading = Reading.of(missing, strict, date_format, fold, kinds)
    source, known, _ = opened(data, target, y, weights, plan, schema, reading)
    search = _Search(known, Settings.of(base, known), _lists(families, known), smoothings, priors)
    out = search.weighed(source, plan)
    out = replace(out, model=replace(out.model, history=History.begun(names_of(data))))
    if not nested:
        return out
    inner = replace(plan, by=None, stratify=stratify and groups is None)
    honest = cross_validate(
        source, known, folds=folds, stratify=plan.stratify, groups=groups, by=by, seed=seed + 1,
        fitter=lambda rows: search.weighed(rows, inner).model,
    )  # fmt: skip
    return replace(out, nested=honest)


@dataclass(frozen=True)
class _Search:
    """What is tried, whatever the rows are."""

    schema: Schema
    base: Settings
    families: Mapping[str, Sequence[Any]]
    smoothing: Sequence[Smoothing] | None
    priors: Sequence[Any]

    def plain(self, source: Source, plan: Plan) -> Tuned:
        """The candidates under which held-out rows lose least, without weights."""
        for name in self.families:
            if name not in self.schema.names:
                found = f"families for a column {name!r} that is not counted"
                raise unknown(SettingsError, found, name, self.schema.names)
        if not self.schema.counted or not self.priors or not all(len(f) for f in self.families.values()):
            raise SettingsError(
                "there is nothing to choose among", hint="count at least one column, and give one candidate or more."
            )
        assign, _ = plan.assign(source, self.schema.target, self.schema)
        folded = count_folds(source, self.schema, assign)
        candidates = {
            c.name: _candidates(c, self.base, self.families.get(c.name), self.smoothing) for c in self.schema.counted
        }
        best: tuple[float, float, Settings, list[Candidate]] | None = None
        for prior in self.priors:
            before, after, chosen, tried = _descend(folded, candidates, replace(self.base, prior=prior))
            if best is None or after < best[1] - _TIE:
                best = before, after, chosen, tried
        assert best is not None
        before, after, chosen, tried = best
        return Tuned(chosen, folded.total.model(chosen), before, after, tuple(tried), plain=chosen)

    def weighed(self, source: Source, plan: Plan) -> Tuned:
        """What was found with the weights that held-out rows support, or what `fit` makes of what a person stated.

        Both are judged by the same rows, which the search has seen. So where it seems to gain, all of it is done once
        more for each fold without the rows of that fold, and it is kept only if these lose less, too.
        """
        out = self.plain(source, plan)
        if self.base.weights:  # a person's own
            return out
        look = first_look(source)
        ways = {name: self._chosen(look, way, plan) for name, way in self._ways(out.plain).items()}
        given = {name: settings.calibrated for name, (_, settings) in ways.items()}
        losses = {name: c.figures["log_loss"][0] for name, c in given.items() if c is not None}
        if len(losses) < len(ways):  # rows are too few
            return out
        seems = losses[TUNED] < losses[FIT] - GAIN
        kept = TUNED if seems and self._gains(source, plan) else FIT
        schema, settings = ways[kept]
        model = Tally.of(schema, source).model(settings)
        return replace(out, settings=settings, model=model, kept=kept, losses=losses)

    def _ways(self, found: Settings) -> dict[str, Settings]:
        """What weights are fitted to: the lists that a person gave bind both ways, the usual ones only the second."""
        families = {**self.base.families, **{n: found.families[n] for n in self.families}}
        smoothing = self.base.smoothing if self.smoothing is None else found.smoothing
        return {FIT: replace(self.base, prior=found.prior, families=families, smoothing=smoothing), TUNED: found}

    def _chosen(self, look: Batch, settings: Settings, plan: Plan) -> tuple[Schema, Settings]:
        return choose(look, self.schema, settings, groups=plan.groups or plan.by)

    def _gains(self, source: Source, plan: Plan) -> bool:
        """Whether rows that the search has not seen lose less by it than by `fit`."""
        inner = replace(plan, by=None, stratify=plan.groups is None)

        def learner(name: str) -> Learner:
            def fitted(rows: Source, truth: Truth) -> Model:
                way = self._ways(self.plain(rows, inner).plain)[name]
                schema, settings = self._chosen(first_look(rows), way, inner)
                return Tally.of(schema, rows).model(settings)

            return Learner(fitted, lambda model, rows, truth: truth.forecast(model, rows))

        found, _ = refit(source, self.schema, {FIT: learner(FIT), TUNED: learner(TUNED)}, plan)
        return found.best() == TUNED


def _lists(families: Any, schema: Schema) -> dict[str, list[Any]]:
    """The families to try, by column; one, or a list without columns, is for every column that it can read."""
    if isinstance(families, Mapping):
        return {n: list(f) if isinstance(f, (list, tuple, set)) else [named(f)] for n, f in families.items()}
    out: dict[str, list[Any]] = {}
    for family in families if isinstance(families, (list, tuple, set)) else [] if families is None else [families]:
        for name, found in family_for_all(family, schema).items():
            out.setdefault(name, []).append(found)
    return out


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
            least = min(losses[name])
            best = next(i for i, lost in enumerate(losses[name]) if lost <= least + _TIE)  # of equals the first
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
