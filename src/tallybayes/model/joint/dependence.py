"""What events and columns tell about each other: Bayes' rule with its parts; mutual information, and the G test.

P(h given e) = P(e given h) · P(h) / P(e)
I(A; B given C) = Σ P(a, b, c) · log [P(a, b, c) · P(c) / (P(a, c) · P(b, c))]
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...base.arrays import Floats, Ints, log_ratio_sum
from ...base.canon import printable
from ...base.errors import CannotEstimate
from ...base.lazy import scipy

MOST_LISTED = 1 << 20  # cells of a table that is ever written out in memory


def cell_count(sizes: Iterable[int]) -> int:
    """How many cells a joint table of columns with so many values has, as an exact integer.

    >>> cell_count([2] + [2] * 20), cell_count([4] + [3] * 60)
    (2097152, 169564633100864814057177732804)
    """
    return math.prod(int(k) for k in sizes)


@dataclass(frozen=True)
class Dependence:
    """How much two groups of columns tell about each other, within the groups of a third.

    Counted tables also have the G test, G = 2·N·I, with (r − 1)(c − 1) degrees of freedom in each stratum, r and c
    being the values that occur there. The chi-square law it is held against is rough where cells hold a row or two.
    """

    name: str  # "A; B given C"
    mutual_information: float  # nats
    share: float  # of the smaller conditional entropy: 0 independent, 1 one determines the other
    rows: int = 0  # 0: the probabilities were written down
    statistic: float | None = None
    degrees: int | None = None
    p_value: float | None = None

    @property
    def expected(self) -> float:
        """The nats that chance alone would show: degrees / 2N."""
        return self.degrees / (2 * self.rows) if self.degrees and self.rows else 0.0

    @property
    def excess(self) -> float:
        """Mutual information less what chance alone would show."""
        return self.mutual_information - self.expected

    @property
    def independent(self) -> bool:
        """Whether independence can stand: p at least 0.05, or for written tables no information beyond rounding."""
        return self.share <= 1e-12 if self.p_value is None else self.p_value >= 0.05

    def __repr__(self) -> str:
        verdict = "independent" if self.independent else "dependent"
        out = f"I({printable(self.name, 200)}) = {self.mutual_information:.6g} nats"
        if self.p_value is None:
            return f"{out}: {verdict}"
        verdict = "no sign of dependence" if self.independent else verdict
        test = f"G = {self.statistic:.4g}, {self.degrees} df, p = {self.p_value:.3g}"
        return f"{out} · {test} · {self.rows:,} rows: {verdict}"


def dependence(name: str, a: Ints, b: Ints, stratum: Ints, n: Floats, *, counted: bool = True) -> Dependence:
    """I(a; b given stratum) of weighted cells, each named by three codes; rows are cells of weight one."""
    s, a, b, joint = _merged(stratum, a, b, n)
    by_s, total = sum_by(s, joint), float(joint.sum())
    if total == 0:
        return Dependence(name, 0.0, 0.0, 0, 0.0, 0, 1.0) if counted else Dependence(name, 0.0, 0.0)
    sides = [equal_rows(np.stack([s, x], axis=1)) for x in (a, b)]
    by_a, by_b = (sum_by(group, joint) for group, _ in sides)
    nats = max(float(log_ratio_sum(joint, by_s[s], by_a[sides[0][0]], by_b[sides[1][0]])) / total, 0.0)
    strata = [s[first] for _, first in sides]
    entropies = [float(by @ np.log(by_s[at] / by)) / total for by, at in zip((by_a, by_b), strata, strict=True)]
    share = min(nats / min(entropies), 1.0) if min(entropies) > 0 else 0.0
    if not counted:
        return Dependence(name, nats, share)
    used = [np.bincount(at, minlength=len(by_s)) for at in strata]
    degrees = int(((used[0] - 1) * (used[1] - 1))[by_s > 0].sum())
    g = 2 * total * nats
    p = float(scipy.special.chdtrc(degrees, g)) if degrees else 1.0
    return Dependence(name, nats, share, round(total), g, degrees, p)


def _merged(s: Ints, a: Ints, b: Ints, n: Floats) -> tuple[Ints, Ints, Ints, Floats]:
    """The cells with equal codes added up, and those of weight 0 left out."""
    sizes = [int(codes.max(initial=0)) + 1 for codes in (s, a, b)]
    if cell_count(sizes) <= MOST_LISTED:  # a table is quicker than sorting
        full = sum_by((s * sizes[1] + a) * sizes[2] + b, n)
        cell: Ints = np.flatnonzero(full > 0).astype(np.int64)
        return cell // (sizes[1] * sizes[2]), cell // sizes[2] % sizes[1], cell % sizes[2], full[cell]
    group, first = equal_rows(np.stack([s, a, b], axis=1))
    joint = sum_by(group, n)
    first, joint = first[joint > 0], joint[joint > 0]
    return s[first], a[first], b[first], joint


def equal_rows(codes: Ints) -> tuple[Ints, Ints]:
    """For each row the number of its group of equal rows, groups in order; and the first row of each group.

    Column by column, so that the numbers stay below rows × values whatever the number of cells.

    >>> [part.tolist() for part in equal_rows(np.array([[2, 0], [1, 1], [2, 0]]))]
    [[1, 0, 1], [1, 0]]
    """
    group = np.zeros(len(codes), dtype=np.int64)
    for column in codes.T:
        group = np.unique(group * (int(column.max(initial=0)) + 1) + column, return_inverse=True)[1]
    first = np.unique(group, return_index=True)[1]
    return group, first.astype(np.int64)


def sum_by(groups: Ints, weights: Floats, n_groups: int = 0) -> Floats:
    """The sum of the weights of each group, of at least `n_groups` of them."""
    out: Floats = np.bincount(groups, weights=weights, minlength=n_groups).astype(np.float64)
    return out


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
