"""What a column is worth, by subtraction, beside permutation importance: processor time and what both find.

    python benchmarks/importance.py [--rows 20000] [--columns 30] [--rounds 3] [--repeats 5]

`model.importance(rows)` leaves each column out of sums that were added up once. scikit-learn's
`permutation_importance` shuffles every column `--repeats` times, five by default, and predicts all rows anew each time.
Both are asked about the same Gaussian model of the same numbers, half of which are noise, on rows that it has not seen,
by log loss; the model of tallybayes is asked about accuracy, too, and has intervals.
"""

from __future__ import annotations

import argparse
import time
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, standard in (("rows", 20_000), ("columns", 30), ("rounds", 3), ("repeats", 5)):
        parser.add_argument(f"--{name}", type=int, default=standard)
    asked = parser.parse_args()
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
