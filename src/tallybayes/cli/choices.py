"""What a person chooses on the command line, as the library takes it: kinds, families, smoothing, prior, pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from ..data.guess import Reading
    from ..data.schema import Schema
    from ..families.settings import Settings
    from ..families.smoothing import Smoothing

# The names of `families.settings`, which help alone need not load
SMOOTHING_HELP = (
    "For example laplace:0.5, maximum-likelihood, map:2, beta:1:9, epsilon, back-off, jelinek-mercer, "
    "absolute-discount, good-turing"
)


@dataclass(frozen=True)
class Choices:
    """The choices of one call: kinds belong to the schema, the rest to the settings."""

    kinds: dict[str, str]
    families: dict[str, str]
    smoothing: Any = None
    prior: Any = None

    @classmethod
    def of(cls, sets: Sequence[str], smoothings: Sequence[str] = (), prior: str | None = None) -> Choices:
        """Options as they were typed: column=kind or column=family, smoothings, a prior."""
        from ..data.kinds import KINDS
        from ..families import named

        kinds: dict[str, str] = {}
        families: dict[str, str] = {}
        for given in sets:
            column, equals, word = given.rpartition("=")
            if not (column and equals and word):
                raise click.BadParameter(f"{given!r} is not COLUMN=KIND or COLUMN=FAMILY", param_hint="--set")
            if word in KINDS:
                kinds[column] = word
            else:
                named(word)  # a family that does not exist is refused before anything is read
                families[column] = word
        return cls(kinds, families, _smoothings(smoothings), None if prior is None else parse_prior(prior))

    @property
    def settings(self) -> Settings | None:
        """The settings that were chosen; None where nothing was."""
        from ..families.settings import Settings

        given = {"families": self.families, "smoothing": self.smoothing, "prior": self.prior}
        chosen = {name: value for name, value in given.items() if value}
        return Settings(**chosen) if chosen else None

    def read(self, reading: Reading) -> Reading:
        """How cells are read, with the kinds that were chosen: nobody is told that what was set is left out."""
        return replace(reading, kinds=self.kinds)

    def applied(self, schema: Schema) -> Schema:
        """The schema with the kinds that were chosen; a date's parts give way together."""
        from ..base.errors import SchemaError, unknown
        from ..data.infer import with_kinds

        known = {n: None for c in schema.columns for n in (c.name, *c.inputs)}
        for name in self.families:
            if name not in known:
                raise unknown(SchemaError, f"there is no column {name!r} to set", name, known)
        return with_kinds(schema, self.kinds)


def _smoothings(given: Sequence[str]) -> Smoothing | dict[str, Smoothing] | None:
    """One smoothing for all columns, or some by column; None where none was given."""
    from ..families.settings import smoothing_of

    by_column: dict[str, Smoothing] = {}
    for text in given:
        column, equals, word = text.rpartition("=")
        if not equals and len(given) > 1:
            raise click.BadParameter(
                "give one smoothing for all columns, or COLUMN=SMOOTHING for each", param_hint="--smoothing"
            )
        by_column[column] = smoothing_of(word)
    return by_column.get("", by_column or None)


def smoothing_words(smoothing: Smoothing) -> str:
    """A smoothing as it is typed.

    >>> from tallybayes import Laplace
    >>> smoothing_words(Laplace(0.5))
    'laplace:0.5'
    """
    from dataclasses import astuple

    from ..families.settings import NAMES

    name = next((n for n, kind in NAMES.items() if kind is type(smoothing)), "")
    amounts = [f"{v:g}" for v in astuple(smoothing) if isinstance(v, float)]  # type: ignore[call-overload]
    return ":".join([name, *amounts]) if name else str(smoothing)


def parse_prior(text: str) -> str | dict[str, float]:
    """ "counted", "uniform", or the probability of each class.

    >>> parse_prior("spam=0.2,ham=0.8")
    {'spam': 0.2, 'ham': 0.8}
    """
    if "=" not in text:
        return text
    out = {}
    for piece in text.split(","):
        name, _, share = piece.rpartition("=")
        try:
            out[name.strip()] = float(share)
        except ValueError:
            raise click.BadParameter(
                f"{piece!r} is not CLASS=PROBABILITY; separate them by commas", param_hint="--prior"
            ) from None
    return out


def parse_costs(text: str) -> Any:
    """What wrong answers cost, as `predict(costs=…)` takes it: typed, or in a file; JSON, or ACTUAL:PREDICTED=COST.

    >>> parse_costs("ham:spam=10, spam:ham=0.5")
    {('ham', 'spam'): 10.0, ('spam', 'ham'): 0.5}
    >>> parse_costs('{"ham": {"spam": 10}}')
    {'ham': {'spam': 10}}
    """
    import json
    import os

    given = text
    if os.path.isfile(text):
        from ..base.disk import read_whole

        given = read_whole(text).decode("utf-8-sig", "replace")
    where = "" if given is text else f" in {text}"
    if given.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(given)
        except ValueError as error:
            raise click.BadParameter(f"JSON that cannot be read{where}: {error}", param_hint="--costs") from None
    out = {}
    for piece in filter(None, (p.strip() for p in given.replace("\n", ",").split(","))):
        names, _, cost = piece.rpartition("=")
        try:
            truth, answer = names.split(":")
            out[truth.strip(), answer.strip()] = float(cost)
        except ValueError:
            raise click.BadParameter(
                f"{piece!r}{where} is not ACTUAL:PREDICTED=COST, such as ham:spam=10; classes with : or , or = in "
                """their names need JSON: {"ham": {"spam": 10}}""",
                param_hint="--costs",
            ) from None
    if not out:
        raise click.BadParameter(f"no costs{where}: give ACTUAL:PREDICTED=COST, …", param_hint="--costs")
    return out


def parse_keep(given: Sequence[str], default: str) -> str | list[str]:
    """ "all", "none", or names of columns; one with a comma in it stands in double quotes, as in a CSV.

    >>> parse_keep(['a,"b,c"', "d"], "all"), parse_keep([], "all")
    (['a', 'b,c', 'd'], 'all')
    """
    import csv

    if not given:
        return default
    if len(given) == 1 and given[0] in ("all", "none"):
        return given[0]
    return [name for fields in csv.reader(given, skipinitialspace=True) for name in fields if name]


def parse_pairs(given: Sequence[str]) -> Any:
    """ "auto", False for "no", or the pairs of columns that are named.

    >>> parse_pairs(["age:fare"])
    [('age', 'fare')]
    """
    if not given or list(given) == ["auto"]:
        return "auto"
    if list(given) == ["no"]:
        return False
    wrong = [p for p in given if p.count(":") != 1]
    if wrong:
        raise click.BadParameter(f"{wrong[0]!r} is not auto, no or COLUMN:COLUMN", param_hint="--pairs")
    return [tuple(p.split(":")) for p in given]
