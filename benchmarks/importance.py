"""What a column is worth, by subtraction, beside permutation importance: processor time and what both find.

    python benchmarks/importance.py [--rows 20000] [--columns 30] [--rounds 3] [--repeats 5]

`model.importance(rows)` leaves each column out of sums that were added up once. scikit-learn's
`permutation_importance` shuffles every column `--repeats` times, five by default, and predicts all rows anew each time.
Both are asked about the same Gaussian model of the same numbers, half of which are noise, on rows that it has not seen,
by log loss; the model of tallybayes is asked about accuracy, too, and has intervals.

    python benchmarks/importance.py --claims 200 [--rows 200] [--pairs]

asks instead whether `model.importance(rows)` of the rows that `tb.fit` was given is what fresh rows show: over so many
tables of three numbers and three categories with a logistic effect (with `--pairs` also one that two of them have
together), the log loss it states less that of 2,000 fresh rows, and the same of what is lost without the column that is
worth most. Below 0 in the first and above 0 in the second it flatters.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.inspection import permutation_importance
from sklearn.naive_bayes import GaussianNB

import tallybayes as tb


def drawn(rng: np.random.Generator, rows: int, columns: int) -> tuple[np.ndarray, np.ndarray]:
    y = rng.integers(0, 2, rows)
    speaks = np.where(np.arange(columns) < columns // 2, 0.3, 0.0)
    return rng.normal(y[:, None] * speaks, 1.0, (rows, columns)), y


def best(work: Callable[[], Any], rounds: int) -> tuple[float, Any]:
    """The least processor time of some rounds, and what came back."""
    times, found = [], None
    for _ in range(rounds):
        begun = time.process_time()
        found = work()
        times.append(time.process_time() - begun)
    return min(times), found


def logistic(rng: np.random.Generator, rows: int, pairs: bool) -> tuple[dict[str, Any], np.ndarray]:
    """A table without its class, and the chance of "b" in each row."""
    x, c = rng.standard_normal((rows, 3)), rng.integers(0, 4, (rows, 3))
    score = x[:, 0] + 0.7 * x[:, 1] + 0.6 * (c[:, 0] - 1.5)
    if pairs:
        score += 2.0 * (2 * ((c[:, 1] % 2) ^ (c[:, 2] % 2)) - 1)
    table = {f"x{j}": x[:, j].round(3) for j in range(3)} | {f"c{j}": np.array(list("abcd"))[c[:, j]] for j in range(3)}
    return table, 1 / (1 + np.exp(-score))


def claims(tables: int, rows: int, pairs: bool) -> np.ndarray:
    """Of each table: the stated loss less that of fresh rows, and the same of what the first column is worth."""
    out = []
    for k in range(tables):
        rng = np.random.default_rng([rows, k, pairs])
        (table, chance), (fresh, fresh_chance) = logistic(rng, rows, pairs), logistic(rng, 2000, pairs)
        table["y"] = np.where(rng.random(rows) < chance, "b", "a")
        model = tb.fit(table, "y", progress=False)
        found = model.importance(table)
        p = np.clip(model.predict_proba(fresh)[:, list(model.classes).index("b")], 1e-15, 1 - 1e-15)
        loss = -(fresh_chance * np.log(p) + (1 - fresh_chance) * np.log(1 - p)).mean()
        fresh["y"] = np.where(rng.random(2000) < fresh_chance, "b", "a")
        first = next(iter(found))
        again = model.importance(fresh)[first.column]
        assert found.log_loss is not None and first.log_loss is not None and again.log_loss is not None
        out.append((found.log_loss - loss, first.log_loss[0] - again.log_loss[0]))
    return np.array(out)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, standard in (("rows", 20_000), ("columns", 30), ("rounds", 3), ("repeats", 5)):
        parser.add_argument(f"--{name}", type=int, default=standard)
    parser.add_argument("--claims", type=int, default=0, metavar="TABLES")
    parser.add_argument("--pairs", action="store_true")
    asked = parser.parse_args()
    if asked.claims:
        warnings.simplefilter("ignore", tb.TallybayesWarning)
        off = claims(asked.claims, asked.rows, asked.pairs)
        error = np.asarray(off.std(axis=0, ddof=1) / np.sqrt(len(off)))
        for name, value, reach in zip(("log loss", "first column"), off.mean(axis=0), error, strict=True):
            print(f"{name:14} stated less fresh {value:+.4f} ± {reach:.4f}, {len(off)} tables of {asked.rows} rows")
        return
    rng = np.random.default_rng(0)
    x, y = drawn(rng, asked.rows, asked.columns)
    x_new, y_new = drawn(rng, asked.rows, asked.columns)
    names = [f"c{j:02d}" for j in range(asked.columns)]
    table, fresh = ({n: a[:, j] for j, n in enumerate(names)} | {"y": b} for a, b in ((x, y), (x_new, y_new)))
    schema = tb.Schema([tb.Column(n, "number") for n in names], target="y")
    ours = tb.count(table, schema).model(tb.Settings(families="gaussian"))
    theirs = GaussianNB().fit(x, y)
    own, found = best(lambda: ours.importance(fresh), asked.rounds)
    other, beside = best(
        lambda: permutation_importance(theirs, x_new, y_new, scoring="neg_log_loss", n_repeats=asked.repeats, n_jobs=1),
        asked.rounds,
    )
    ranks = np.argsort(np.argsort([[found[n].log_loss[0] for n in names], beside.importances_mean], axis=1), axis=1)
    noise = [found[n].log_loss[1] > 0 for n in names[asked.columns // 2 :]]
    signal = [found[n].log_loss[1] > 0 for n in names[: asked.columns // 2]]
    print(f"{asked.rows:,} rows × {asked.columns} columns, best of {asked.rounds}")
    print(f"tallybayes importance           {own:8.3f} s of the processor")
    print(f"sklearn permutation_importance  {other:8.3f} s, {other / own:.1f} times as much")
    print(f"rank correlation of the two     {np.corrcoef(ranks)[0, 1]:8.3f}")
    print(f"beyond chance: {sum(signal)} of {len(signal)} columns that speak, {sum(noise)} of {len(noise)} of noise")


if __name__ == "__main__":
    main()
