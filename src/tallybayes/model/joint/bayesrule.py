"""Bayes' rule with its parts, as a table of probabilities answers it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...base.canon import printable
from ...base.errors import CannotEstimate

Assignment = Mapping[str, Any]  # column → value


@dataclass(frozen=True)
class BayesRule:
    """P(h given e) = P(e given h) · P(h) / P(e), with its parts."""

    hypothesis: str
    evidence: str
    prior: float
    likelihood: float
    evidence_probability: float
    posterior: float

    def __repr__(self) -> str:
        h, e = printable(self.hypothesis, 200), printable(self.evidence, 200)
        return (
            f"P({h} given {e}) = P({e} given {h}) · P({h}) / P({e})\n"
            f"  = {self.likelihood:.6g} · {self.prior:.6g} / {self.evidence_probability:.6g} = {self.posterior:.6g}"
        )


def said(values: Assignment) -> str:
    """An assignment as it is read out.

    >>> said({"A": 1, "B": "red"})
    'A=1, B=red'
    """
    return ", ".join(f"{name}={value}" for name, value in values.items())


def impossible(values: Assignment) -> CannotEstimate:
    """The error of asking what follows from something of probability 0."""
    return CannotEstimate(
        f"P({said(values)}) is 0, so nothing follows from it", hint="ask about what can happen, or smooth: Laplace(1)."
    )
