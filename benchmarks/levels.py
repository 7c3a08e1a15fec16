"""Whether p-values keep their level: how often `tb.assumptions` and `tb.shift` raise false alarms, and what they find.

    python benchmarks/levels.py [--sizes 60,100,150,300,500,1000,2000] [--tables 2000] [--power 300]

Every table has eight columns, moved by the class and independent of each other within it: two normal, a skewed one, two
of many ties (counts, most of them 0), and categories of 2, 50 and 50 values, most of the fifty rare. Four classes, the
smallest with one row in twenty. At a nominal 5 % an alarm must come in 5 % of the tables:

    numbers     raw p-values of pairs (or columns) of continuous numbers
    others      raw p-values of all others
    corrected   tables in which any verdict says "dependent" (or "shifted")

Ties and rare values leave few outcomes, and a test of few outcomes can only stay below its level. Power: tables in
which one pair of each sort really is dependent (or a column of each sort really moved), and how often the verdict, by
the corrected p-value, says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

import tallybayes as tb
from tallybayes.exact.cells import Cells

SIZES = (60, 100, 150, 300, 500, 1000, 2000)
SHARES = (0.6, 0.25, 0.1, 0.05)  # of the classes
NUMBERS = ("normal1", "normal2", "skewed")
TIES = ("ties1", "ties2")
VALUES = {"two": 2, "fifty1": 50, "fifty2": 50}
Rows = dict[str, np.ndarray]


def drawn(rng: np.random.Generator, n: int) -> Rows:
    """A table whose columns know nothing of each other within the classes."""
    y = rng.choice(len(SHARES), size=n, p=SHARES)
    rows: Rows = {f"normal{i}": rng.normal(y * i, 1.0) for i in (1, 2)}
    rows["skewed"] = rng.lognormal(y / 2, 1.0)
    rows |= {f"ties{i}": rng.poisson(0.3 + 0.3 * y).astype(float) for i in (1, 2)}
    for name, k in VALUES.items():
        share = 1 / np.arange(1, k + 1)
        rows[name] = (rng.choice(k, size=n, p=share / share.sum()) + y) % k
    return {**rows, "y": y}


def tied(rng: np.random.Generator, n: int) -> Rows:
    """The same with three dependent pairs: numbers of correlation ½, and every third value of a category copied."""
    rows = drawn(rng, n)
    rows["normal2"] = 0.5 * (rows["normal1"] - rows["y"]) + np.sqrt(0.75) * rng.normal(size=n)
    copied = rng.random(n) < 1 / 3
    rows["ties2"] = np.where(copied, rows["ties1"], rows["ties2"])
    rows["fifty2"] = np.where(copied, rows["fifty1"], rows["fifty2"])
    return rows


def moved(rng: np.random.Generator, n: int) -> Rows:
    """The same with three columns moved: half a deviation, a rate by a half, a third of a category's rows."""
    rows = drawn(rng, n)
    rows["normal1"] = rows["normal1"] + 0.5
    rows["ties1"] = rows["ties1"] + rng.poisson(0.15 + 0.15 * rows["y"])
    rows["fifty1"] = np.where(rng.random(n) < 1 / 3, (rows["fifty1"] + 1) % 50, rows["fifty1"])
    return rows


def schema_of(rows: Rows) -> tb.Schema:
    """Cells for the numbers as a first look at these rows makes them."""
    numbers = [tb.Column(c, "number", cells=Cells.fitted(rows[c])) for c in (*NUMBERS, *TIES)]
    return tb.Schema([*numbers, *(tb.Column(c, "category") for c in VALUES)], target="y")


@dataclass
class Alarms:
    """How often something was called out."""

    asked: dict[str, int] = field(default_factory=dict)
    called: dict[str, int] = field(default_factory=dict)

    def add(self, what: str, called: bool) -> None:
        self.asked[what] = self.asked.get(what, 0) + 1
        self.called[what] = self.called.get(what, 0) + bool(called)

    def share(self, what: str) -> float:
        return self.called[what] / self.asked[what]

    def shares(self) -> Mapping[str, float]:
        return {what: self.share(what) for what in self.asked}


def assumption_levels(n: int, tables: int, seed: int = 0) -> Alarms:
    """False alarms of `assumptions`."""
    rng, out = np.random.default_rng([seed, n]), Alarms()
    for _ in range(tables):
        rows = drawn(rng, n)
        found = tb.assumptions(rows, schema_of(rows))
        for pair in found.pairs:
            out.add("numbers" if {pair.a, pair.b} <= set(NUMBERS) else "others", pair.found.p_value < 0.05)
        out.add("corrected", found.dependent > 0)
    return out


def assumption_power(n: int, tables: int, seed: int = 1) -> Alarms:
    """How often `assumptions` finds pairs that are dependent."""
    rng, out = np.random.default_rng([seed, n]), Alarms()
    for _ in range(tables):
        rows = tied(rng, n)
        for pair in tb.assumptions(rows, schema_of(rows)).pairs:
            if pair.a[:-1] == pair.b[:-1]:
                out.add(pair.a[:-1], pair.found.dependent)
    return out


def shift_levels(n: int, tables: int, seed: int = 2) -> Alarms:
    """False alarms of `shift` between n rows cut in two, and between a quarter of them and the rest."""
    rng, out = np.random.default_rng([seed, n]), Alarms()
    for number in range(tables):
        rows, cut = drawn(rng, n), n // 2 if number % 2 else n // 4
        parts = [{c: v[part] for c, v in rows.items()} for part in (slice(cut), slice(cut, n))]
        schema = schema_of(parts[0])
        found = tb.shift(*(tb.count(part, schema) for part in parts))
        for s in found:
            for p in (s.p_value, s.p_value_within):
                if p is not None:
                    out.add("numbers" if s.column in NUMBERS else "others", p < 0.05)
        out.add("corrected", any(s.verdict == "shifted" for s in found))
    return out


def shift_power(n: int, tables: int, seed: int = 3) -> Alarms:
    """How often `shift` finds columns that moved, n rows cut in two."""
    rng, out = np.random.default_rng([seed, n]), Alarms()
    for _ in range(tables):
        before, after = drawn(rng, n // 2), moved(rng, n // 2)
        schema = schema_of(before)
        found = tb.shift(tb.count(before, schema), tb.count(after, schema))
        for name in ("normal1", "ties1", "fifty1"):
            out.add(name[:-1], found[name].verdict == "shifted")
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--power", type=int, default=300)
    args = parser.parse_args()
    for name, levels, power in (
        ("assumptions", assumption_levels, assumption_power),
        ("shift", shift_levels, shift_power),
    ):
        print(f"| {name}: rows | numbers | others | corrected | finds: normal | ties | fifty values |")
        print("|---|---|---|---|---|---|---|")
        for n in map(int, args.sizes.split(",")):
            found = {**levels(n, args.tables).shares(), **power(n, args.power).shares()}
            figures = [f"{100 * found[c]:.1f} %" for c in ("numbers", "others", "corrected")]
            figures += [f"{100 * found[c]:.0f} %" for c in ("normal", "ties", "fifty")]
            print(f"| {n:,} | " + " | ".join(figures) + " |", flush=True)
        print()


if __name__ == "__main__":
    main()
