"""Believing: which distribution a family reads out of a column's counts, and how it is smoothed.

Imports `data`, `exact` and `base`. Begin with `base`, the contract of a *family* (counts → belief) and of a *belief*
(block → log P by class), then `categorical`; each other file has one family. `settings` are what is believed before
and beside the counts, `smoothing` and `vocabulary` are asked by several families, `calibration` is fitted to rows,
`histogram` and `moments` are what families of numbers share. A *form* is what a belief says as plain numbers (`forms`,
and back in `plain`), its *support* what that rests on.
"""

from ..base.errors import SettingsError, excerpt
from ..data.kinds import KINDS
from ..data.schema import Schema
from .auto import Auto
from .base import Belief, Context, Family, Linear, Table, Term, family_names, named, register
from .bins import Bins
from .blend import Blend
from .categorical import Categorical
from .complement import Complement
from .gaussian import Gaussian
from .kernel import Kernel
from .levels import Levels
from .pair import Interaction
from .poisson import Poisson
from .presence import Bernoulli, BernoulliWords
from .vocabulary import Selection
from .words import Multinomial

__all__ = [
    "Auto",
    "Belief",
    "Bernoulli",
    "BernoulliWords",
    "Bins",
    "Blend",
    "Categorical",
    "Complement",
    "Context",
    "Family",
    "Gaussian",
    "Interaction",
    "Kernel",
    "Levels",
    "Linear",
    "Multinomial",
    "Poisson",
    "Selection",
    "Table",
    "Term",
    "default_family",
    "family_for",
    "family_names",
    "named",
    "register",
    "register_default",
]

DEFAULTS: dict[str, Family] = {
    "category": Categorical(),
    "number": Auto(),
    "vector": Gaussian(),
    "bag": Multinomial(),
    "text": Multinomial(),
    "pair": Interaction(),
}

for _family in (
    Auto(), Bernoulli(), Bins(), Blend(), Categorical(), Complement(), Gaussian(), Interaction(), Kernel(), Levels(),
    Multinomial(), Poisson(),
):  # fmt: skip
    register(_family.name, _family)
register("gaussian-shared", Gaussian(variance="shared"))
register("student", Gaussian(predictive=True))
register("bernoulli", Bernoulli())

# One word, two meanings: on a bag or a text "bernoulli" asks which words occur
_BY_KIND: dict[tuple[str, str], Family] = {("bernoulli", kind): BernoulliWords() for kind in ("bag", "text")}


def default_family(kind: str) -> Family:
    """The family of a column of this kind if the settings name none.

    >>> tb.families.default_family("number").name, tb.families.default_family("text").name
    ('auto', 'multinomial')
    """
    return DEFAULTS.get(kind) or DEFAULTS[KINDS[kind].like]


def register_default(kind: str, family: Family) -> None:
    """Let columns of this kind be believed by this family where the settings name none.

    >>> tb.families.register_default("vector", tb.families.Gaussian())  # as it is
    >>> tb.families.default_family("vector").name
    'gaussian'
    """
    DEFAULTS[kind] = family


def family_for(family: str | Family, kind: str) -> Family:
    """The family meant by a name for a column of this kind.

    >>> tb.families.family_for("bernoulli", "category").name, tb.families.family_for("bernoulli", "text").name
    ('bernoulli', 'bernoulli words')
    """
    if isinstance(family, str):
        return _BY_KIND.get((family, KINDS[kind].like)) or named(family)
    return named(family)


def family_for_all(family: str | Family, schema: Schema) -> dict[str, Family]:
    """One family for all columns, by column: for those that it takes; refused where there are none."""
    found = {c.name: family_for(family, c.kind) for c in schema.counted if family_for(family, c.kind).takes(c)}
    if not found and schema.counted:
        asked = named(family)
        there = excerpt([f"{c.name} ({c.kind})" for c in schema.counted], 6)
        raise SettingsError(
            f"the family {asked.name!r} is given for all columns, and there is none that it can read: {there}",
            hint=f"{asked.name!r} reads {' and '.join(asked.kinds)} columns; name families by column, "
            "families={column: family}.",
        )
    return found
