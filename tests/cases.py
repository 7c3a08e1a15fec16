"""One case per family: a column, how to ask for the family, and an oracle from outside.

An oracle gives log P(value given class) for the training values of one class and some queries; SciPy does the
mathematics. A new family adds a case here and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

import tallybayes as tb
from tallybayes.families import Bins, Gaussian, Kernel, Levels, Poisson
from tallybayes.families.gaussian import A0, B0, K0


@dataclass(frozen=True)
class Case:
    name: str
    kind: str
    family: Any
    draw: Callable[[np.random.Generator, int], Any]  # values of a class: (rng, how many)
    oracle: Callable[..., np.ndarray] | None  # (own values, all values, queries) → log P
    tolerance: float = 1e-10
    smoothing: Any = None

    def settings(self, column: str = "x") -> tb.Settings:
        more = {} if self.smoothing is None else {"smoothing": self.smoothing}
        return tb.Settings(families={column: self.family}, **more)


def _normal(own: np.ndarray, everyone: np.ndarray, x: np.ndarray) -> np.ndarray:
    return stats.norm.logpdf(x, own.mean(), own.std())


def _unbiased(own: np.ndarray, everyone: np.ndarray, x: np.ndarray) -> np.ndarray:
    return stats.norm.logpdf(x, own.mean(), own.std(ddof=1))


def _student(own: np.ndarray, everyone: np.ndarray, x: np.ndarray) -> np.ndarray:
    n, m, m0, var0 = len(own), own.mean(), everyone.mean(), everyone.var()
    kn, an = K0 + n, A0 + n / 2
    mn = (K0 * m0 + n * m) / kn
    bn = B0 * var0 + ((own - m) ** 2).sum() / 2 + K0 * n * (m - m0) ** 2 / (2 * kn)
    return stats.t.logpdf(x, 2 * an, mn, np.sqrt(bn * (kn + 1) / (an * kn)))


def _poisson(own: np.ndarray, everyone: np.ndarray, x: np.ndarray) -> np.ndarray:
    return stats.poisson.logpmf(x, own.mean())


def _negative_binomial(own: np.ndarray, everyone: np.ndarray, x: np.ndarray) -> np.ndarray:
    return stats.nbinom.logpmf(x, 0.5 + own.sum(), len(own) / (len(own) + 1))


def _laplace(own: np.ndarray, everyone: np.ndarray, x: np.ndarray) -> np.ndarray:
    values = sorted(set(everyone.tolist()))
    return np.log([(np.sum(own == v) + 1) / (len(own) + len(values)) for v in x.tolist()])


def _levels(own: np.ndarray, everyone: np.ndarray, x: np.ndarray) -> np.ndarray:
    top = everyone.max()
    return np.log([(np.sum(own == v) + 1) / (len(own) + top + 1) for v in x.tolist()])


def normal(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(rng.integers(-3, 4), rng.uniform(0.5, 3), n)


def counts(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.poisson(rng.uniform(1, 6), n).astype(float)


def words(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.choice(["red", "green", "blue", "grey"], n, p=rng.dirichlet(np.ones(4)))


CASES = [
    Case("categorical", "category", "categorical", words, _laplace),
    Case("gaussian", "number", "gaussian", normal, _normal),
    Case("gaussian unbiased", "number", Gaussian(unbiased=True), normal, _unbiased),
    Case("gaussian shared", "number", "gaussian-shared", normal, None),
    Case("student", "number", "student", normal, _student),
    Case("poisson", "number", Poisson(shape=0.0), counts, _poisson),
    Case("poisson with prior", "number", "poisson", counts, None),
    Case("levels", "number", "levels", counts, _levels),
    Case("levels to 40", "number", Levels(top=40), counts, None),
    Case("kernel", "number", "kernel", normal, None),
    Case("kernel silverman", "number", Kernel("silverman"), normal, None),
    Case("kernel on counts", "number", "kernel", counts, None),
    Case("kernel given", "number", Kernel(0.4), normal, None),
    Case("bins mdl", "number", "bins", normal, None),
    Case("bins frequency", "number", Bins("frequency", 5), normal, None),
    Case("bins width", "number", Bins("width", 5), normal, None),
    Case("auto", "number", "auto", normal, None),
]
BY_NAME = {case.name: case for case in CASES}


def table(case: Case, seed: int, n: int = 60, classes: int = 3) -> dict[str, Any]:
    """A column `x` and labels `y`, classes of different sizes."""
    rng = np.random.default_rng(seed)
    xs, ys = [], []
    for c in range(classes):
        size = n + 7 * c
        xs.append(case.draw(rng, size))
        ys += [f"c{c}"] * size
    return {"x": np.concatenate(xs), "y": ys}


def schema(case: Case, data: dict[str, Any]) -> tb.Schema:
    cells = tb.Cells.fitted(np.asarray(data["x"])) if case.kind == "number" else None
    return tb.Schema([tb.Column("x", case.kind, cells=cells)], target="y")
