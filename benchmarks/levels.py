"""Whether p-values keep their level: how often `tb.assumptions` and `tb.shift` raise false alarms, and what they find.

    python benchmarks/levels.py [--sizes 60,100,150,300,500,1000,2000] [--tables 2000] [--power 200]

Every table has five columns, moved by the class and independent of each other within it: a normal number, a skewed one,
one of many ties (counts, most 0), and categories of 2 and of 50 values, most of the fifty rare. Four classes, the
smallest with one row in twenty. At a nominal 5 % an alarm must come in 5 % of the tables:

    numbers     raw p-values of continuous numbers
    others      raw p-values of all others
    corrected   tables in which any verdict says "dependent" (or "shifted")

Ties and rare values leave few outcomes, and a test of few outcomes can only stay below its level. Power: tables in
which one pair of each sort really is dependent (or a column of each sort really moved), and how often the verdict, by
the corrected p-value, says so.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

import tallybayes as tb
from tallybayes.exact.cells import Cells

SIZES = (60, 100, 150, 300, 500, 1000, 2000)
SHARES = (0.6, 0.25, 0.1, 0.05)  # of the classes
OTHER_SHARES = (0.4, 0.3, 0.15, 0.15)  # another mixture of them
WITHIN = "within the classes"
NUMBERS = ("normal", "skewed")
VALUES = {"two": 2, "fifty": 50}
TIED = {("normal", "skewed"): "normal", ("ties", "two"): "ties", ("two", "fifty"): "fifty"}  # pairs that `tied` ties
Rows = dict[str, np.ndarray]


def drawn(rng: np.random.Generator, n: int, shares: Sequence[float] = SHARES) -> Rows:
    """A table whose columns know nothing of each other within the classes."""
    y = rng.choice(len(shares), size=n, p=shares)
    rows: Rows = {"normal": rng.normal(y, 1.0), "skewed": rng.lognormal(y / 2, 1.0)}
    rows["ties"] = rng.poisson(0.3 + 0.3 * y).astype(float)
    for name, k in VALUES.items():
        share = 1 / np.arange(1, k + 1)
        rows[name] = (rng.choice(k, size=n, p=share / share.sum()) + y) % k
    return {**rows, "y": y}


def tied(rng: np.random.Generator, n: int) -> Rows:
    """The same with three dependent pairs: numbers of correlation ½, and rows whose category follows another column."""
    rows = drawn(rng, n)
    y, follows = rows["y"], rng.random(n)
    rows["skewed"] = np.exp(0.5 * (rows["normal"] - y) + np.sqrt(0.75) * rng.normal(size=n) + y / 2)
    rows["two"] = np.where(follows < 1 / 3, rows["ties"] > 0, rows["two"]).astype(int)
    rows["two"] = np.where(follows > 2 / 3, rows["fifty"] % 2, rows["two"])
    return rows


def moved(rng: np.random.Generator, n: int) -> Rows:
    """The same with three columns moved: half a deviation, a rate by a half, a third of a category's rows."""
    rows = drawn(rng, n)
    rows["normal"] = rows["normal"] + 0.5
    rows["ties"] = rows["ties"] + rng.poisson(0.15 + 0.15 * rows["y"])
    rows["fifty"] = np.where(rng.random(n) < 1 / 3, (rows["fifty"] + 1) % 50, rows["fifty"])
    return rows


def schema_of(rows: Rows) -> tb.Schema:
    """Cells for the numbers as a first look at these rows makes them."""
    numbers = [tb.Column(c, "number", cells=Cells.fitted(rows[c])) for c in (*NUMBERS, "ties")]
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
            if (pair.a, pair.b) in TIED:
                out.add(TIED[pair.a, pair.b], pair.found.dependent)
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
        for name in TIED.values():
            out.add(name, found[name].verdict == "shifted")
    return out


def unlabelled_levels(n: int, tables: int, seed: int = 4) -> Alarms:
    """False alarms of `shift` between labelled rows and rows without labels, half of each.

    "within the classes": tables whose classes come in another mixture, and in which a column is said to have changed
    within them.
    """
    rng, out = np.random.default_rng([seed, n]), Alarms()
    for _ in range(tables):
        learnt, same, mixed = drawn(rng, n // 2), drawn(rng, n // 2), drawn(rng, n // 2, OTHER_SHARES)
        known = tb.count(learnt, schema_of(learnt))
        found = tb.shift(known, without_labels(same))
        for s in found:
            if s.p_value is not None:
                out.add("numbers" if s.column in NUMBERS else "others", s.p_value < 0.05)
        out.add("corrected", any(s.verdict == "shifted" for s in found))
        out.add("within the classes", any(s.reason == WITHIN for s in tb.shift(known, without_labels(mixed))))
    return out


def unlabelled_power(n: int, tables: int, seed: int = 5) -> Alarms:
    """How often `shift` finds columns that moved without labels, and another mixture of the classes."""
    rng, out = np.random.default_rng([seed, n]), Alarms()
    for _ in range(tables):
        learnt = drawn(rng, n // 2)
        known = tb.count(learnt, schema_of(learnt))
        found = tb.shift(known, without_labels(moved(rng, n // 2)))
        for name in TIED.values():
            out.add(name, found[name].verdict == "shifted")
        out.add("told: within", any(s.reason == WITHIN for s in found))
        other = tb.shift(known, without_labels(drawn(rng, n // 2, OTHER_SHARES)))
        out.add("mixture", any(s.verdict == "shifted" for s in other))
    return out


def without_labels(rows: Rows) -> Rows:
    """The same rows, whose classes nobody knows."""
    return {name: values for name, values in rows.items() if name != "y"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=",".join(map(str, SIZES)))
    parser.add_argument("--tables", type=int, default=2000)
    parser.add_argument("--power", type=int, default=200)
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
    print("| shift without labels: rows | numbers | others | corrected | a mixture is called a change within classes | "
          "finds: normal | ties | fifty values | says: within classes | finds: a mixture |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    for n in map(int, args.sizes.split(",")):
        found = {**unlabelled_levels(n, args.tables).shares(), **unlabelled_power(n, args.power).shares()}
        asked = ("numbers", "others", "corrected", WITHIN, "normal", "ties", "fifty", "told: within", "mixture")
        print(f"| {n:,} | " + " | ".join(f"{100 * found[c]:.1f} %" for c in asked) + " |", flush=True)


if __name__ == "__main__":
    main()
