"""Every choice made after counting, in one place. Change it and ask the same tally again."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import Field, dataclass, field, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..base.errors import SettingsError, unknown
from ..base.records import Record
from .calibration import Calibrated, Correction, Isotonic, MarginScaling
from .smoothing import (
    MAP,
    AbsoluteDiscount,
    BackOff,
    Beta,
    Dirichlet,
    Epsilon,
    GoodTuring,
    JelinekMercer,
    Laplace,
    MaximumLikelihood,
    Smoothing,
    is_number,
)  # fmt: skip

if TYPE_CHECKING:
    from ..data.schema import Schema

UNSEEN = ("no evidence", "reserve")
MOST_OFF_ONE = 0.02  # how far from one the sum of given probabilities may be
FLOORS = ("column", "global", "guarded")


@dataclass(frozen=True)
class Floor:
    """How narrow a Gaussian may be, by `kind`.

    column   a standard deviation is at least `share` of the column's over all classes
    global   `share` of the largest variance of any column is added to every variance, as scikit-learn does
    guarded  the same, but the largest is taken as at most 10⁶ times the column's own variance over all classes, so
             that a column in small units is not drowned by one in large units

    >>> rows = {"x": [1.0, 1.0, 5.0, 7.0], "y": ["a", "a", "b", "b"]}  # of class a all are equal
    >>> tb.count(rows, "y").model({"families": "gaussian", "floor": tb.Floor("column", 0.1)}).table("x")
    normal density         a  b
    mean                   1  6
    deviation       0.259808  1
    """

    kind: str = "column"
    share: float = 1e-9

    def __post_init__(self) -> None:
        if self.kind not in FLOORS or not (is_number(self.share) and self.share >= 0 and np.isfinite(self.share)):
            raise SettingsError(
                f"a variance floor of kind {self.kind!r} with share {self.share!r}",
                hint="take Floor('column', 1e-9), 'global' or 'guarded' instead of 'column'; the share is at least 0.",
            )


# Smoothings as they are typed, here or on a command line
NAMES: dict[str, Callable[..., Smoothing]] = {
    "maximum-likelihood": MaximumLikelihood,
    "epsilon": Epsilon,
    "laplace": Laplace,
    "map": MAP,
    "beta": Beta,
    "back-off": BackOff,
    "jelinek-mercer": JelinekMercer,
    "absolute-discount": AbsoluteDiscount,
    "good-turing": GoodTuring,
}


def smoothing_of(given: object) -> Smoothing:
    """A smoothing as a person gives it: itself, a number (the α of Laplace) or a name, with an amount if it has one.

    >>> smoothing_of(2), smoothing_of("beta:1:9"), smoothing_of("maximum likelihood")
    (Laplace(alpha=2.0), Beta(present=1.0, absent=9.0), MaximumLikelihood())
    """
    if isinstance(given, Smoothing):
        return given
    if is_number(given):
        return Laplace(float(given))  # type: ignore[arg-type]
    if not isinstance(given, str):
        raise SettingsError(
            f"smoothing={given!r} is not a smoothing",
            hint="take a number, tb.Laplace(1.0), tb.MaximumLikelihood(), tb.MAP(2.0), tb.Epsilon(), "
            "tb.Dirichlet({…}), tb.Beta(a, b), tb.BackOff(m), tb.JelinekMercer(l), tb.AbsoluteDiscount(d) "
            "or tb.GoodTuring().",
        )
    name, *amounts = given.split(":")
    kind = NAMES.get(name.strip().replace(" ", "-").lower())
    if kind is None:
        hint = f"take {', '.join(NAMES)}, with :AMOUNT where it has one."
        raise unknown(SettingsError, f"there is no smoothing {name!r}: smoothing={given!r}", name, NAMES, hint)
    try:
        return kind(*(float(amount) for amount in amounts if amount))
    except (TypeError, ValueError) as error:
        if isinstance(error, SettingsError):
            raise
        raise SettingsError(f"{given!r} is no smoothing", hint=f"write {name} or {name}:0.5.") from None


class Concern(NamedTuple):
    """What a setting concerns; every field of `Settings` says it of itself."""

    by: str = ""  # whose names its keys are: "column" or "class"
    estimated: bool = False  # used when a model is estimated, and of no use to its scores
    fitted: bool = False  # fitted to held-out rows, and anew by `recalibrate`
    curve: bool = False  # bends the whole score, where it is not None
    check: Callable[[Any], None] = lambda value: None  # refuses what it cannot be


_NOTHING = Concern()


def _concerns(**what: Any) -> dict[str, Concern]:
    return {"concern": Concern(**what)}


def concern(setting: Field[Any]) -> Concern:
    """What a field of the settings concerns; nothing in particular if somebody has added it without a word."""
    out: Concern = setting.metadata.get("concern", _NOTHING)
    return out


def _families(value: Any) -> None:
    from .base import named

    for name, each in value.items() if isinstance(value, Mapping) else [("", value)]:
        try:
            named(each)
        except SettingsError as error:
            raise SettingsError(f"column {name!r}: {error.found}", hint=error.hint) if name else error from None


def _prior(value: Any) -> None:
    hint = "take 'counted', 'uniform', {class: probability} or Dirichlet({class: rows})."
    if isinstance(value, str):
        if value not in ("counted", "uniform"):
            raise unknown(SettingsError, f"prior={value!r}", value, ("counted", "uniform"), hint)
    elif isinstance(value, Mapping):
        if value:  # without any, what lacks is told once classes are known
            check_probabilities(value)
    elif not isinstance(value, Dirichlet):
        raise SettingsError(f"prior={value!r}", hint=hint)


def check_probabilities(prior: Mapping[Any, float]) -> None:
    """Refuse a prior whose numbers are no probabilities, or do not add up to one, give or take MOST_OFF_ONE."""
    bad = [c for c, p in prior.items() if not (is_number(p) and 0 <= p <= 1)]
    total = 0.0 if bad else sum(map(float, prior.values()))
    if bad or not prior or abs(total - 1) > MOST_OFF_ONE:
        raise SettingsError(
            f"the prior of {bad[0]!r} is {prior[bad[0]]!r}" if bad else f"the priors add up to {total:g}, not 1",
            hint="give probabilities from 0 to 1 that add up to one.",
        )


def _is(fits: Callable[[Any], bool], name: str, hint: str) -> Callable[[Any], None]:
    """A check that a setting is what it should be."""

    def check(value: Any) -> None:
        if not fits(value):
            raise SettingsError(f"{name}={value!r}", hint=hint)

    return check


def _numbers(what: str, hint: str, least: float = -np.inf) -> Callable[[Mapping[str, float]], None]:
    """A check that every name has a finite number, of at least so much."""

    def check(value: Any) -> None:
        if not isinstance(value, Mapping):
            raise SettingsError(f"the {what} is {value!r}", hint=f"give it by name, {{name: number}}; {hint}")
        for name, number in value.items():
            if not (isinstance(number, (int, float, np.number)) and np.isfinite(number) and number >= least):
                raise SettingsError(f"the {what} {name!r} is {number!r}", hint=hint)

    return check


def _corrections(value: Any) -> None:
    if not isinstance(value, Mapping):
        raise SettingsError(f"corrections={value!r}", hint="give {column: tb.Correction(…)}.")
    for name, each in value.items():
        if not isinstance(each, Correction):
            raise SettingsError(
                f"the correction of column {name!r} is a {type(each).__name__}",
                hint="give tb.Correction(weight, classes, added, cells or cuts).",
            )


_weights = _numbers("weight of column", "weights are at least 0.", least=0.0)
_lengths = _numbers("length exponent of column", "take a number, usually between -1 and 0.")
_offsets = _numbers("offset of class", "take a number of nats, or none.")
_unseen = _is(lambda v: v in UNSEEN, "unseen", "take 'no evidence' or 'reserve'.")
_floor = _is(lambda v: isinstance(v, Floor), "floor", "take tb.Floor('column', 1e-9), 'global' or 'guarded'.")
_predictive = _is(lambda v: isinstance(v, (bool, np.bool_)), "predictive", "take True or False.")
_isotonic = _is(lambda v: isinstance(v, Isotonic | None), "isotonic", "take tb.Isotonic, or calibrate='isotonic'.")
_lead = _is(lambda v: isinstance(v, MarginScaling | None), "lead", "tb.fit fits one where it helps.")
_calibrated = _is(lambda v: isinstance(v, Calibrated | None), "calibrated", "leave it out: it tells of fitted weights.")
_classes = _is(
    lambda v: not isinstance(v, str) and all(isinstance(c, str) for c in v), "classes", "give labels as texts."
)


@dataclass(frozen=True)
class Settings(Record):
    """What a model believes beyond the counts.

    smoothing:   one for all columns, or {column: smoothing} with Laplace(1) for the rest; a number is the α of Laplace
    prior:       "counted", "uniform", {class: probability}, or Dirichlet({class: imagined rows}) added to the counts
    families:    {column: family or its name}, or one for all columns that it can read; number columns are "auto" unless
                 named, see `tallybayes.families`
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
    corrections: {column: Correction}, a weight on what its counts say and what is added to it, cell by cell; the column
                 has no entry in `weights`, or the whole is multiplied by that, too

    >>> tally = tb.count({"Sky": ["sunny", "rainy", "sunny"], "Play": ["yes", "no", "yes"]}, "Play")
    >>> for settings in (tb.Settings(), tb.Settings(smoothing=0.1, prior="uniform")):
    ...     print(tally.model(settings).predict_proba({"Sky": "rainy"}).round(3).tolist())
    [[0.571, 0.429]]
    [[0.953, 0.047]]
    """

    smoothing: Smoothing | Mapping[str, Smoothing] = field(
        default_factory=Laplace, metadata=_concerns(by="column", estimated=True)
    )
    prior: str | Mapping[Any, float] | Dirichlet = field(
        default="counted", metadata=_concerns(by="class", estimated=True, check=_prior)
    )
    families: Any = field(default_factory=dict, metadata=_concerns(by="column", estimated=True, check=_families))
    predictive: bool = field(default=False, metadata=_concerns(estimated=True, check=_predictive))
    unseen: str = field(default="no evidence", metadata=_concerns(estimated=True, check=_unseen))
    floor: Floor = field(default_factory=Floor, metadata=_concerns(estimated=True, check=_floor))
    weights: Mapping[str, float] = field(
        default_factory=dict, metadata=_concerns(by="column", fitted=True, check=_weights)
    )
    lengths: Mapping[str, float] = field(
        default_factory=dict, metadata=_concerns(by="column", fitted=True, check=_lengths)
    )
    offsets: Mapping[str, float] = field(
        default_factory=dict, metadata=_concerns(by="class", fitted=True, check=_offsets)
    )
    isotonic: Isotonic | None = field(default=None, metadata=_concerns(fitted=True, curve=True, check=_isotonic))
    lead: MarginScaling | None = field(default=None, metadata=_concerns(fitted=True, curve=True, check=_lead))
    calibrated: Calibrated | None = field(
        default=None, metadata=_concerns(estimated=True, fitted=True, check=_calibrated)
    )
    classes: tuple[str, ...] = field(default=(), metadata=_concerns(by="class", check=_classes))
    corrections: Mapping[str, Correction] = field(
        default_factory=dict, metadata=_concerns(by="column", estimated=True, fitted=True, check=_corrections)
    )

    def __post_init__(self) -> None:
        given: Any = self.smoothing
        by_name = isinstance(given, Mapping)
        smoothing = {name: smoothing_of(each) for name, each in given.items()} if by_name else smoothing_of(given)
        object.__setattr__(self, "smoothing", smoothing)
        for f in fields(self):
            concern(f).check(getattr(self, f.name))

    @classmethod
    def of(cls, given: Settings | Mapping[str, Any] | None, schema: Schema | None = None) -> Settings:
        """Settings as a person gives them: themselves, {setting: value}, or None for the defaults.

        With a schema, one family for all columns becomes one for each column that it can read, and what is said of a
        column that it does not have, or by a family that cannot read it, is refused.

        >>> tb.Settings.of({"smoothing": 0.5}).smoothing
        Laplace(alpha=0.5)
        """
        if isinstance(given, Mapping):
            known = [f.name for f in fields(cls)]
            for name in given:
                if name not in known:
                    raise unknown(SettingsError, f"there is no setting {name!r}", name, known)
            given = cls(**given)
        elif given is None:
            given = cls()
        elif not isinstance(given, Settings):
            raise SettingsError(f"settings={given!r}", hint="give tb.Settings(smoothing=1.0), or {'smoothing': 1.0}.")
        if schema is None:
            return given
        from . import family_for, family_for_all

        if not isinstance(given.families, Mapping):
            given = replace(given, families=family_for_all(given.families, schema))
        for name in (name for by_column in given.by_column().values() for name in by_column):
            schema[name]  # an unknown name is an error with a hint, not a setting without effect
        for name, chosen in given.families.items():
            if schema[name].kind == "ignore":
                continue
            kind, family = schema[name].kind, family_for(chosen, schema[name].kind)
            if not family.reads(kind):
                raise SettingsError(
                    f"column {name!r} is a {kind}, which the family {family.name!r} does not read",
                    hint=f"{family.name!r} reads {' and '.join(family.kinds)} columns.",
                )
        return given

    @cached_property
    def curves(self) -> tuple[str, ...]:
        """The names of the settings that bend the whole score here: none where scores are sums of what columns say."""
        return tuple(f.name for f in fields(self) if concern(f).curve and getattr(self, f.name) is not None)

    def by_column(self) -> dict[str, Mapping[str, Any]]:
        """The settings that say something of columns by their names."""
        given = {f.name: getattr(self, f.name) for f in fields(self) if concern(f).by == "column"}
        return {name: value for name, value in given.items() if isinstance(value, Mapping)}

    def about(self, columns: Container[str]) -> Settings:
        """The same settings, saying nothing by name of other columns than these."""
        kept: dict[str, Any] = {n: {c: v for c, v in m.items() if c in columns} for n, m in self.by_column().items()}
        if self.calibrated is not None:
            given = tuple(name for name in self.calibrated.given if name in columns)
            kept["calibrated"] = replace(self.calibrated, given=given)
        return replace(self, **kept)

    def without(self, *, fitted: bool = False, estimated: bool = False) -> Settings:
        """The same with the defaults for what was fitted to held-out rows, or for what an estimated model has used."""
        default, given = type(self)(), ((f.name, concern(f)) for f in fields(self))
        gone = [name for name, c in given if (fitted and c.fitted) or (estimated and c.estimated)]
        return replace(self, **{name: getattr(default, name) for name in gone})

    def changed(self) -> list[str]:
        """The names of the settings that are not the defaults."""
        default = type(self)()
        return [f.name for f in fields(self) if getattr(self, f.name) != getattr(default, f.name)]

    def after(self, rows: int) -> Settings:
        """The same once so many rows have been added or forgotten: fitted weights are a little older."""
        if self.calibrated is None:
            return self
        return replace(self, calibrated=replace(self.calibrated, changed=max(self.calibrated.changed + rows, 0)))

    def weight_of(self, column: str) -> float:
        """What is multiplied with what a column's counts say: its weight, and that in its correction."""
        own = self.corrections.get(column)
        return self.weights.get(column, 1.0) * (1.0 if own is None else own.weight)

    def smoothing_of(self, column: str) -> Smoothing:
        """The smoothing of one column."""
        if isinstance(self.smoothing, Mapping):
            return self.smoothing.get(column, Laplace())
        return self.smoothing


SettingsLike = Settings | Mapping[str, Any] | None  # as a person may give them, see `Settings.of`
