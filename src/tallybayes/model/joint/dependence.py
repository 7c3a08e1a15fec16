"""What events and columns tell about each other: Bayes' rule with its parts; mutual information, and its chance.

P(h given e) = P(e given h) · P(h) / P(e)
I(A; B given C) = Σ P(a, b, c) · log [P(a, b, c) · P(c) / (P(a, c) · P(b, c))]

Whether counts of rows show more than chance does is asked of X² = Σ over strata (N − 1) · [Σ n_ab² / (n_a · n_b) − 1],
Pearson's statistic, against all ways of dealing the values of B out to the rows of their stratum anew. The mean, the
variance and the skewness of X² over all of them are exact (`chance`), however few rows a cell has; the gamma curve that
has these three gives p. So p holds its level where the chi-square law does not: sparse tables, rare values, few rows.
Fourfold tables are worked out in full, and with few rows a thousand deals are made, the same ones every time.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from ...base.arrays import Floats, Ints, log_ratio_sum
from ...base.canon import many, printable
from ...base.errors import CannotEstimate
from ...base.lazy import gammaln, ndtr, scipy

MOST_LISTED = 1 << 20  # cells of a table that is ever written out in memory
LEVEL = 0.05  # p-values below this are called a sign of something
_MOST_DEALS = 1 << 16  # outcomes of some fourfold tables that are written out
FEW_ROWS = 200  # of so many X² takes few values, and no curve is near all of them: some deals are made
DEALS = 1000
UNSURE = (0.02, 0.1)  # p-values that are worth it: those beside which a verdict turns


def cell_count(sizes: Iterable[int]) -> int:
    """How many cells a joint table of columns with so many values has, as an exact integer.

    >>> cell_count([2] + [2] * 20), cell_count([4] + [3] * 60)
    (2097152, 169564633100864814057177732804)
    """
    return math.prod(int(k) for k in sizes)


@dataclass(frozen=True)
class Dependence:
    """How much two groups of columns tell about each other, within the groups of a third.

    A table written by hand is judged exactly. Counted rows have a p-value: how often chance alone would tie the
    columns together as strongly. It can show that they depend on each other, never that they do not.
    """

    name: str  # "A; B given C"
    mutual_information: float  # nats
    share: float  # of the smaller conditional entropy: 0 independent, 1 one determines the other
    rows: int = 0  # 0: the probabilities were written down
    statistic: float | None = None  # X², see this module; chance alone gives `degrees` on average
    degrees: int | None = None
    p_value: float | None = None
    p_corrected: float | None = None  # by Holm's method, where it was one of several questions

    @property
    def bits(self) -> float:
        """The mutual information in bits."""
        return self.mutual_information / math.log(2)

    @property
    def expected(self) -> float:
        """The nats that chance alone would show: degrees / 2N."""
        return self.degrees / (2 * self.rows) if self.degrees and self.rows else 0.0

    @property
    def excess(self) -> float:
        """Mutual information less what chance alone would show."""
        return self.mutual_information - self.expected

    @property
    def dependent(self) -> bool:
        """Whether there is dependence: p (corrected, where it is) below 0.05; written: any beyond rounding."""
        p = self.p_value if self.p_corrected is None else self.p_corrected
        return self.share > 1e-12 if p is None else p < LEVEL

    @property
    def independent(self) -> bool:
        """Whether the table says so exactly. Counted rows never do: see `dependent` and `verdict`."""
        return self.p_value is None and not self.dependent

    @property
    def verdict(self) -> str:
        """In words: "dependent", "exactly independent" (written tables), or "no sign of dependence" (counted rows)."""
        if self.dependent:
            return "dependent"
        return "exactly independent" if self.independent else "no sign of dependence"

    def __repr__(self) -> str:
        out = f"I({printable(self.name, 200)}) = {self.mutual_information:.6g} nats"
        if self.p_value is None:
            return f"{out}: {self.verdict}"
        corrected = "" if self.p_corrected is None else f" ({self.p_corrected:.3g} corrected)"
        test = f"X² = {self.statistic:.4g}, {self.degrees} by chance, p = {self.p_value:.3g}{corrected}"
        return f"{out} · {test} · {many(self.rows, 'row')}: {self.verdict}"


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
    each = sum_by(s, joint / by_a[sides[0][0]] * (joint / by_b[sides[1][0]]), len(by_s)) - (by_s > 0)
    x2 = max(float(np.maximum(by_s - 1, 0.0) @ each), 0.0)
    if degrees == 0 or x2 <= 1e-12 * total:  # nothing can be dealt out anew, or every deal is at least as far off
        return Dependence(name, nats, share, round(total), x2, degrees, 1.0)
    asked = (used[0] > 1) & (used[1] > 1)
    p = None
    if (used[0][asked] == 2).all() and (used[1][asked] == 2).all():
        margins = [
            [float(by[at == k][0]) for by, at in zip((by_a, by_b), strata, strict=True)] for k in asked.nonzero()[0]
        ]
        p = _by_fourfold(by_s[asked].tolist(), margins, x2)
    if p is None:
        graphs = [invariants(by, at, by_s)[:, asked] for by, at in zip((by_a, by_b), strata, strict=True)]
        p = by_moments(by_s[asked], graphs, x2)
        if total <= FEW_ROWS and UNSURE[0] <= p <= UNSURE[1]:
            row = np.repeat(np.arange(len(joint)), joint.astype(np.int64))
            p = max(p, _by_dealing(s[row], a[row], b[row], by_s, x2))
    return Dependence(name, nats, share, round(total), x2, degrees, p)


def holm(p_values: Sequence[float | None]) -> list[float | None]:
    """Each p-value as one of many, by Holm's method: whatever ties the questions together, no more than 5 % of all
    collections of true null hypotheses have one below 0.05. None was not asked.

    >>> holm([0.01, 0.04, None, 0.03])
    [0.03, 0.06, None, 0.06]
    """
    asked = sorted((p, i) for i, p in enumerate(p_values) if p is not None)
    out: list[float | None] = [None] * len(p_values)
    largest = 0.0
    for rank, (p, i) in enumerate(asked):
        largest = max(largest, min(p * (len(asked) - rank), 1.0))
        out[i] = largest
    return out


# ---- chance: the values of one column dealt out anew


def _by_fourfold(rows: Sequence[float], margins: Sequence[Sequence[float]], x2: float) -> float | None:
    """p of fourfold tables, every outcome written out (Fisher's exact test, ordered by X²); None for too many."""
    sizes = [int(min(a, n - a, b, n - b)) + 1 for n, (a, b) in zip(rows, margins, strict=True)]
    if math.prod(sizes) > _MOST_DEALS:
        return None
    sums, log_p = np.zeros(1), np.zeros(1)
    for n, (a, b) in zip(rows, margins, strict=True):
        k = np.arange(max(0.0, a + b - n), min(a, b) + 1)
        ways = [log_choose(a, k), log_choose(n - a, b - k), -log_choose(n, np.array(b))]
        off = (k - a * b / n) ** 2 * (n - 1) * n / a / b * (n / (n - a)) / (n - b)
        sums, log_p = np.add.outer(sums, off).ravel(), np.add.outer(log_p, sum(ways)).ravel()
    return float(min(np.exp(log_p[sums >= x2 - 1e-9 * max(x2, 1.0)]).sum(), 1.0))


def log_choose(n: float, k: Floats) -> Floats:
    """log of how many ways there are to choose k of n."""
    out: Floats = gammaln(n + 1.0) - gammaln(k + 1.0) - gammaln(n - k + 1.0)
    return out


def _by_dealing(s: Ints, a: Ints, b: Ints, by_s: Floats, x2: float) -> float:
    """p of X² by dealing the values b out to the rows of their strata; (1 + as far or further) / (1 + deals)."""
    rng = np.random.default_rng(0)
    a, b = (_from_zero(s, codes) for codes in (a, b))
    shape = (len(by_s), int(a.max()) + 1, int(b.max()) + 1)
    n_a, n_b = (np.bincount(s * k + codes, minlength=len(by_s) * k) for codes, k in ((a, shape[1]), (b, shape[2])))
    over = n_a.reshape(*shape[:2], 1) * n_b.reshape(shape[0], 1, shape[2])
    scale = np.maximum(by_s - 1, 0.0)
    factor = (scale[:, None, None] / np.maximum(over, 1)).ravel()
    at_once, further = max((1 << 18) // over.size, 1), 0
    order = np.argsort(s, kind="stable")  # the rows of a stratum stand together
    first, b = (s[order] * shape[1] + a[order]) * shape[2], b[order]
    ends = np.cumsum(by_s.astype(np.int64))
    for done in range(0, DEALS, at_once):
        deals = min(at_once, DEALS - done)
        each = [rng.permuted(np.tile(part, (deals, 1)), axis=1) for part in np.split(b, ends[:-1])]
        cells = first + np.concatenate(each, axis=1) + over.size * np.arange(deals)[:, None]
        n = np.bincount(cells.ravel(), minlength=deals * over.size).reshape(deals, -1)
        further += int(np.count_nonzero((n * n) @ factor - scale.sum() >= x2 - 1e-9 * max(x2, 1.0)))
    return (1 + further) / (1 + DEALS)


def _from_zero(s: Ints, codes: Ints) -> Ints:
    """The codes numbered anew from 0 within each stratum."""
    groups, at = np.unique(np.stack([s, codes], axis=1), axis=0, return_inverse=True)
    starts = np.searchsorted(groups[:, 0], groups[:, 0])
    return np.asarray((np.arange(len(groups)) - starts)[at.ravel()])


def by_moments(rows: Floats, sides: Sequence[Floats], x2: float) -> float:
    """p of X² by the gamma curve with the mean, variance and skewness of all deals."""
    return float(by_moments_each(rows, sides, np.zeros(len(rows), dtype=np.int64), np.array([x2]))[0])


def by_moments_each(rows: Floats, sides: Sequence[Floats], question: Ints, x2: Floats) -> Floats:
    """The same for several questions, to each of which some of the strata belong."""
    first, second, third = chance(rows, *sides)
    scale, size = rows - 1, len(x2)
    mean, variance = (sum_by(question, w, size) for w in (scale * first, scale**2 * (second - first**2)))
    cubed = sum_by(question, scale**3 * (third - 3 * second * first + 2 * first**3), size)
    strata = np.bincount(question, minlength=size)
    varies = variance > 1e-9 * mean**2 / np.maximum(strata, 1)  # else every deal looks the same
    spread = np.where(varies, variance, 1.0)
    skewness, far = cubed / spread**1.5, (x2 - mean) / np.sqrt(spread)
    leans = skewness >= 1e-3  # a curve that leans left would end somewhere, and call what lies beyond impossible
    shape = 4 / np.where(leans, skewness, 1.0) ** 2
    gamma = scipy.special.gammaincc(shape, np.maximum(shape + far * np.sqrt(shape), 0.0))
    return np.where(varies, np.where(leans, gamma, ndtr(-far)), 1.0)


# What a sum over rows x, y, … of a product of w_xy (which rows hold the same value, centred: `invariants`) is, by the
# graph of its factors: a loop is w_xx, an edge w_xy, each end a row. Sums with a lonely end are 0, since w is centred.
GRAPHS = ("loop", "two loops", "double edge", "three loops", "triple edge", "triangle", "loop and double edge",
           "edge with loops")  # fmt: skip


def invariants(n: Floats, at: Ints, by_s: Floats) -> Floats:
    """Graphs × strata: the sums of `GRAPHS` for values held by n rows of the strata `at`.

    w = Σ over values 1·1ᵀ/n − 1·1ᵀ/N is a projection, so that most of them are the same few.
    """
    rows, size = np.maximum(by_s, 1.0), len(by_s)
    own = 1 / n - 1 / rows[at]
    values = np.bincount(at, minlength=size) - 1.0
    squares, cubes, thrice = (
        sum_by(at, w, size) for w in (n * own**2, n * own**3, n * n * (own**3 + rows[at] ** -3.0))
    )
    return np.stack([values, squares, values, cubes, thrice - 1 / rows, values, squares, squares - values**2 / rows])


def chance(rows: Floats, a: Floats, b: Floats) -> tuple[Floats, Floats, Floats]:
    """E t, E t², E t³ of t = Σ_xy w_xy·v_π(x)π(y) over all permutations π of the rows of each stratum.

    The factors of tᵏ have 2k ends. Partitions of the ends say which of them are one row; a sum over different rows is
    had from sums over any rows by inclusion and exclusion, and a permutation takes k different rows to any k others
    equally often.
    """
    out: list[Floats] = []
    for k in (1, 2, 3):
        graphs, signs, blocks, times = _partitions(k)
        different = 1.0
        for side in (a, b):
            every = [math.prod((side[GRAPHS.index(g)] for g in graph), start=1.0) for graph in graphs]
            different = different * (signs @ np.array(every))
        ways = np.ones((len(blocks), len(rows)))
        for j in range(2 * k):
            ways *= np.where(blocks[:, None] > j, np.maximum(rows - j, 0.0), 1.0)
        with np.errstate(divide="ignore", invalid="ignore"):
            out.append((times[:, None] * np.where(ways > 0, different / ways, 0.0)).sum(axis=0))
    return out[0], out[1], out[2]


@cache
def _partitions(k: int) -> tuple[list[tuple[str, ...]], Floats, Ints, Ints]:
    """The partitions of the 2k ends of k factors, those that are alike together.

    The graphs of sums over any rows; of which of these, with which sign, a sum over different rows is made; how many
    different rows there are; and how many partitions are like this one.
    """
    every = list(_set_partitions(2 * k))
    shapes = [_graph(p) for p in every]
    graphs = sorted({g for g in shapes if g is not None})
    signs = np.zeros((len(every), len(graphs) + 1))
    for i, fine in enumerate(every):
        signs[i, -1] = max(fine) + 1
        for coarse, shape in zip(every, shapes, strict=True):
            pairs = set(zip(fine, coarse, strict=True))
            if shape is not None and len(pairs) == len(set(fine)):  # each block of the one lies in one of the other
                merged = np.bincount([c for _, c in pairs])
                signs[i, graphs.index(shape)] += math.prod((-1) ** (m - 1) * math.factorial(m - 1) for m in merged)
    alike, times = np.unique(signs, axis=0, return_counts=True)
    return graphs, alike[:, :-1], alike[:, -1].astype(np.int64), times


def _set_partitions(n: int) -> Iterator[tuple[int, ...]]:
    """For each partition the number of each element's block, blocks in order of their first element."""
    if n == 0:
        yield ()
        return
    for part in _set_partitions(n - 1):
        for block in range(max(part, default=-1) + 2):
            yield (*part, block)


def _graph(blocks: Sequence[int]) -> tuple[str, ...] | None:
    """The connected pieces of the graph whose edge i joins the blocks 2i and 2i + 1; None if an end is lonely."""
    edges = [(blocks[i], blocks[i + 1]) for i in range(0, len(blocks), 2)]
    if 1 in np.bincount(blocks).tolist():
        return None
    pieces: list[list[tuple[int, int]]] = []
    for edge in edges:
        touching = [p for p in pieces if any(set(edge) & set(other) for other in p)]
        pieces = [p for p in pieces if p not in touching] + [[edge, *(e for p in touching for e in p)]]
    return tuple(sorted(_shape(p) for p in pieces))


def _shape(edges: Sequence[tuple[int, int]]) -> str:
    loops, rows = sum(x == y for x, y in edges), len({x for edge in edges for x in edge})
    named = {
        (1, 1, 1): "loop", (2, 2, 1): "two loops", (2, 0, 2): "double edge", (3, 3, 1): "three loops",
        (3, 0, 2): "triple edge", (3, 0, 3): "triangle", (3, 1, 2): "loop and double edge",
        (3, 2, 2): "edge with loops",
    }  # fmt: skip
    return named[len(edges), loops, rows]


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
