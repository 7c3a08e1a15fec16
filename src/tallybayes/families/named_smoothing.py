"""A smoothing as a person gives it, in settings or on a command line: a number, or a name with its amounts."""

from __future__ import annotations

from collections.abc import Callable

from ..base.errors import SettingsError, unknown
from .smoothing import (
    MAP,
    AbsoluteDiscount,
    BackOff,
    Beta,
    Epsilon,
    GoodTuring,
    JelinekMercer,
    Laplace,
    MaximumLikelihood,
    Smoothing,
    is_number,
)

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
