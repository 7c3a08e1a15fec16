"""Estimators in files and in pickles: both hold the tally in the library's own format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..tally import Tally

if TYPE_CHECKING:
    from .base import TallyClassifier


def tally_bytes(tally: Tally) -> Any:
    """The tally in a form to be pickled."""
    return tally


def tally_from(given: Any) -> Tally:
    """The inverse of `tally_bytes`."""
    out: Tally = given
    return out


def save(estimator: TallyClassifier, path: Any) -> None:
    """Write an estimator's model, with the parameters it was made with."""
    raise NotImplementedError


def load(kind: type[TallyClassifier], path: Any) -> Any:
    """The estimator of this class that `save` wrote."""
    raise NotImplementedError
