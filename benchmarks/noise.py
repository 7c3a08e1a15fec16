"""Whether the default is honest: what it claims of itself beside what fresh rows show, on tables whose truth is known.

    python benchmarks/noise.py [--kinds noise,signal] [--sizes 50,120,500] [--sets 100] [--fresh 3000] [--each]

Tables of pure noise must be refused: there a form richer than one temperature is taken by chance alone, and its loss,
chosen as the least of many, is the one that flatters most. Where there is a signal, the claim must hold just the same.

    noise       5 normal and 5 eight-valued columns that say nothing, two classes
    signal      the same columns, two numbers and a category of which have a logistic effect
    classes     noise with eight classes
    unbalanced  noise with one row in ten of the second class
    categories  noise with 10 eight-valued columns and no numbers

claimed − fresh: mean over the tables of the loss in `model.settings.calibrated` less the loss of fresh rows, with its
standard error; below 0 the claim flatters. Fresh rows are judged by the true chances of their classes, so that only
their columns are drawn. richer: the share of tables with more than one temperature. harm: fresh loss above that of
`calibrate="temperature"`. covered: the share of claims that are within two of their own standard errors.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd

import tallybayes as tb

SIZES = {50: 400, 100: 400, 120: 400, 160: 400, 200: 400, 500: 200, 1000: 200}  # rows: tables of that size
PLAIN = "one temperature"

# What is asked for; each of the first four allows two standard errors beyond
FLATTERY, PESSIMISM, RICHER, HARM, COVERED = -0.006, 0.02, 0.1, 0.004, 0.9


@dataclass(frozen=True)
class Kind:
    """How a table is drawn: its columns, the chances of its classes, and how strongly some columns speak."""

    numbers: int = 5
    categories: int = 5
    shares: tuple[float, ...] = (0.5, 0.5)
    signal: float = 0.0

    def draw(self, rng: np.random.Generator, n: int) -> tuple[pd.DataFrame, np.ndarray, np.ndarray]:
        """The columns, the numbers of the classes, and the true chances of every class in every row."""
        numbers = rng.standard_normal((n, self.numbers))
        codes = rng.integers(0, 8, (n, self.categories))
        score = np.tile(np.log(self.shares), (n, 1))
        if self.signal:
            score[:, 0] += self.signal * (numbers[:, 0] + numbers[:, 1] + (codes[:, 0] - 3.5) / 2)
        chances = np.exp(score - score.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        labels = (rng.random(n)[:, None] > np.cumsum(chances, axis=1)[:, :-1]).sum(axis=1)
        columns = {f"x{j}": numbers[:, j] for j in range(self.numbers)}
        columns |= {f"c{j}": np.array(list("abcdefgh"))[codes[:, j]] for j in range(self.categories)}
        return pd.DataFrame(columns), labels, chances


KINDS = {
    "noise": Kind(),
    "signal": Kind(signal=0.7),
    "classes": Kind(shares=(1 / 8,) * 8),
    "unbalanced": Kind(shares=(0.9, 0.1)),
    "categories": Kind(numbers=0, categories=10),
}


@dataclass(frozen=True)
class Found:
    """One table: what was claimed and what came of it."""

    form: str
    claimed: float
    error: float
    fresh: float
    plain: float  # the fresh loss of one temperature

    @property
    def off(self) -> float:
        """What was claimed less what fresh rows show."""
        return self.claimed - self.fresh


def loss(model: tb.Model, columns: pd.DataFrame, chances: np.ndarray) -> float:
    """The expected log loss of fresh rows, whose classes are drawn by the chances given; p is clipped at 1e-15."""
    p = np.full(chances.shape, 0.0)
    p[:, [int(c) for c in model.classes]] = model.predict_proba(columns)
    return float(-np.sum(chances * np.log(np.clip(p, 1e-15, 1.0)), axis=1).mean())


def judged(kind: Kind, n: int, sets: int, fresh: int = 3_000, seed: int = 0) -> Iterator[Found]:
    """Tables of n rows one after the other; those of fewer than two rows in some class are drawn anew."""
    for k in range(sets):
        rng = np.random.default_rng([seed, n, k])
        columns, labels, _ = kind.draw(rng, n)
        while np.bincount(labels, minlength=len(kind.shares)).min() < 2:
            columns, labels, _ = kind.draw(rng, n)
        table = columns.assign(y=labels.astype(str))
        unseen, _, chances = kind.draw(rng, fresh)
        model = tb.fit(table, target="y")
        found = model.settings.calibrated
        assert found is not None
        shown = plain = loss(model, unseen, chances)
        if found.form != PLAIN:
            plain = loss(tb.fit(table, target="y", calibrate="temperature"), unseen, chances)
        yield Found(found.form, found.losses[found.form], found.errors[found.form], shown, plain)


@dataclass(frozen=True)
class Summary:
    """The figures of many tables."""

    sets: int
    off: float
    off_error: float
    richer: float
    harm: float
    harm_error: float
    covered: float

    @classmethod
    def of(cls, found: Sequence[Found]) -> Summary:
        """The means."""
        off, harm = np.array([f.off for f in found]), np.array([f.fresh - f.plain for f in found])
        root = np.sqrt(max(len(found) - 1, 1))
        covered = np.mean([abs(f.off) <= 2 * f.error for f in found])
        richer = np.mean([f.form != PLAIN for f in found])
        return cls(
            len(found), float(off.mean()), float(off.std() / root), float(richer),
            float(harm.mean()), float(harm.std() / root), float(covered),
        )  # fmt: skip

    def faults(self, *, noise: bool) -> list[str]:
        """The targets that are missed by more than two standard errors; that of richer forms is for noise alone."""
        share = 2 * np.sqrt(RICHER * (1 - RICHER) / self.sets)
        checks: list[tuple[str, bool]] = [
            ("flatters", self.off < FLATTERY - 2 * self.off_error),
            ("pessimistic", self.off > PESSIMISM + 2 * self.off_error),
            ("takes noise", noise and self.richer > RICHER + share),
            ("harms", self.harm > HARM + 2 * self.harm_error),
            ("not covered", self.covered < COVERED - 2 * np.sqrt(COVERED * (1 - COVERED) / self.sets)),
        ]
        return [name for name, missed in checks if missed]


def main() -> None:
    """Print a line for every kind and size."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--kinds", default=",".join(KINDS), help="some kinds, by commas")
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)), help="rows of the tables, by commas")
    parser.add_argument("--sets", type=int, default=0, help="tables of each size; 400 of up to 200 rows, 200 of more")
    parser.add_argument("--fresh", type=int, default=3_000, help="fresh rows for each table")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--each", action="store_true", help="a line for every table with a richer form, too")
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    print("| table | rows | sets | claimed − fresh | richer | harm | covered | seconds each | forms | missed |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in asked.kinds.split(","):
        for n in map(int, asked.sizes.split(",")):
            started = time.process_time()
            sets = asked.sets or SIZES.get(n, 200)
            found = list(judged(KINDS[name], n, sets, asked.fresh, asked.seed))
            seconds = (time.process_time() - started) / sets
            _print(name, n, found, seconds, asked.each)


def _print(name: str, n: int, found: Sequence[Found], seconds: float, each: bool) -> None:
    s = Summary.of(found)
    forms = ", ".join(f"{form} {times}" for form, times in Counter(f.form for f in found).most_common())
    missed = ", ".join(s.faults(noise=not KINDS[name].signal)) or "none"
    print(
        f"| {name} | {n:,} | {s.sets} | {s.off:+.4f} ± {s.off_error:.4f} | {s.richer:.1%} "
        f"| {s.harm:+.4f} ± {s.harm_error:.4f} | {s.covered:.1%} | {seconds:.2f} | {forms} | {missed} |"
    )
    if each:
        for k, f in enumerate(found):
            if f.form != PLAIN:
                print(f"  table {k}: {f.form}, claimed {f.claimed:.4f}, fresh {f.fresh:.4f}, temperature {f.plain:.4f}")


if __name__ == "__main__":
    main()
