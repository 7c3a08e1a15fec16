"""Counted weights beside the counts alone and the default: log loss on rows held out, and what few rows do to them.

    python benchmarks/counted.py [--seeds 3] [--names tic_tac_toe nursery …] [--few 20] [--forget 100]

Each data set is shuffled and cut, 70 % to fit. "counts" is calibrate=False, "counted" calibrate="counted", "default"
what `tb.fit` does. `--few N` draws 30, 50 and 90 rows N times from each data set and measures on up to 2,000 others:
the mean difference of counted to counts, and its standard error. Rows of a class that was not drawn are left out.
`--forget N` times forgetting 1 % of the rows beside counting the others anew, and checks that both are equal. Needs
pandas.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

import tallybayes as tb

FOLDER = Path(os.environ.get("TALLYBAYES_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
NAMES = (
    "tic_tac_toe", "nursery", "balance_scale", "letter", "adult", "mushroom", "house_votes_84", "credit_approval",
    "breast_cancer_wisconsin", "pima_diabetes", "cmc", "titanic3", "vowel", "glass", "soybean", "ionosphere",
    "spambase", "labor",
)  # fmt: skip
WAYS = {"counts": False, "counted": "counted", "default": None}
TARGET = {"titanic3": "survived"}
NOT_FEATURES = ["split", "id", "name", "ticket", "cabin", "boat", "body", "home_dest"]
FEW = (30, 50, 90)
MOST = 2_000


def read(name: str, seed: int) -> tuple[pd.DataFrame, str]:
    """The rows of a set, shuffled, and its target."""
    rows = pd.read_parquet(FOLDER / f"{name}.parquet").drop(columns=NOT_FEATURES, errors="ignore")
    return rows.sample(frac=1, random_state=seed).reset_index(drop=True), TARGET.get(name, "target")


def loss(model: tb.Model, rows: pd.DataFrame, target: str) -> tuple[float, float]:
    """Log loss and accuracy on the rows whose class the model knows."""
    number = {str(c): i for i, c in enumerate(model.classes)}
    own = rows[target].astype(str).map(number)
    known = own.notna().to_numpy()
    log_p = model.predict_log_proba(rows[known])
    own = own[known].to_numpy(dtype=int)
    return -float(log_p[np.arange(len(own)), own].mean()), float((log_p.argmax(axis=1) == own).mean())


def measured(name: str, seeds: int) -> Iterator[str]:
    """A line of figures."""
    found: dict[str, list[tuple[float, float, float]]] = {way: [] for way in WAYS}
    for seed in range(seeds):
        rows, target = read(name, seed)
        cut = int(0.7 * len(rows))
        for way, calibrate in WAYS.items():
            start = time.process_time()
            model = tb.fit(rows[:cut], target, calibrate=calibrate)
            taken = time.process_time() - start
            found[way].append((*loss(model, rows[cut:], target), taken))
    means = {way: np.mean(each, axis=0) for way, each in found.items()}
    figures = " | ".join(f"{m[0]:.3f} / {m[1]:.3f}" for m in means.values())
    yield f"| {name} | {cut:,} | {figures} | " + ", ".join(f"{m[2]:.2g}" for m in means.values()) + " |"


def of_few(name: str, times: int) -> Iterator[str]:
    """How much better or worse counted weights are than the counts, of few rows."""
    for size in FEW:
        apart, alone = [], []
        for seed in range(times):
            rows, target = read(name, 1_000 + seed)
            if len(rows) < 1.4 * size or rows[:size][target].nunique() < 2:
                continue
            test = rows[size : size + MOST]
            counts, counted = (
                loss(tb.fit(rows[:size], target, calibrate=c), test, target)[0] for c in (False, "counted")
            )
            apart.append(counted - counts)
            alone.append(counts)
        if apart:
            error = np.std(apart, ddof=1) / len(apart) ** 0.5 if len(apart) > 1 else np.nan
            mean = f"{np.mean(apart):+.3f} ± {error:.3f}"
            yield f"| {name} | {size} | {np.mean(alone):.3f} | {mean} | {max(apart):+.3f} |"


def forgotten(name: str, times: int) -> Iterator[str]:
    """What forgetting costs, and whether it is as if the rows had never been there."""
    rows, target = read(name, 0)
    model = tb.fit(rows, target, calibrate="counted")
    rng, least, equal = np.random.default_rng(0), [np.inf, np.inf], True
    for _ in range(times):
        gone = rng.random(len(rows)) < 0.01
        gone[int(rng.integers(len(rows)))] = True
        start = time.process_time()
        less = model.forget(rows[gone])
        middle = time.process_time()
        again = tb.count(rows[~gone], schema=model.schema).model(model.settings)
        least = [min(least[0], middle - start), min(least[1], time.process_time() - middle)]
        equal &= less.tally == again.tally and less.settings.corrections == again.settings.corrections
    yield f"| {name} | {len(rows):,} | {1e3 * least[0]:.0f} ms | {1e3 * least[1]:.0f} ms | {equal} in {times} |"


def main() -> None:
    """Print the tables that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--names", nargs="+", default=list(NAMES))
    parser.add_argument("--few", type=int, default=0)
    parser.add_argument("--forget", type=int, default=0)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = [
        (
            asked.seeds,
            measured,
            "| set | rows | counts | counted | default | seconds of each |\n|---|---|---|---|---|---|",
        ),
        (asked.few, of_few, "| set | rows | counts | counted less counts | worst |\n|---|---|---|---|---|"),
        (asked.forget, forgotten, "| set | rows | forget | count anew | equal |\n|---|---|---|---|---|"),
    ]
    for times, lines, head in parts:
        if times:
            print(head, flush=True)
            for name in asked.names:
                for line in lines(name, times):
                    print(line, flush=True)


if __name__ == "__main__":
    main()
