"""How many labels it takes: by what `Labelling` asks for beside random rows, and to find the rows of a rare class.

    python benchmarks/labelling.py [--seeds 3] [--names sms_spam tic_tac_toe …] [--grow 1.05]

A third of each data set is kept for measuring, up to 2,000 rows; the rest, up to 4,000, is the pool. Both ways begin
with the same ten random rows, label some more, by a twentieth each time, and fit anew whenever the labels have doubled.
"needed" is how many labels it takes until accuracy is 95% of that with the whole pool labelled, as the mean of three
measurements in a row. "work saved" at 95% recall of a rare class is the share of the pool that need not be read, less
the 5% that reading in any order would save, by `next(find=class)`, the most likely row first under a model that learns,
beside reading in the order in which the first model puts the rows.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tallybayes as tb

FOLDER = Path(os.environ.get("TALLYBAYES_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
TEXTS, TABLES = ("sms_spam", "trec_questions", "rt_polarity"), ("credit_approval", "tic_tac_toe")
RARE = {"sms_spam": "spam", "trec_questions": "ABBR", "nursery": "very_recom"}
POOL, TEST, FIRST = 4000, 2000, 10


def parts(name: str, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The pool and the rows to measure on."""
    rows = pd.read_parquet(FOLDER / f"{name}.parquet").drop(columns=["split", "target_fine"], errors="ignore")
    rows = rows.sample(frac=1, random_state=seed).reset_index(drop=True)
    third = len(rows) // 3
    return rows[third:][:POOL].reset_index(drop=True), rows[:third][:TEST]


class Course:
    """Labels that come in, and the model that is fitted anew whenever they have doubled."""

    def __init__(self, pool: pd.DataFrame, seed: int) -> None:
        self.pool, self.rows, self.seed = pool, pool.drop(columns="target"), seed
        self.got = list(range(FIRST))
        self.fitted = 0

    def session(self) -> tb.Labelling:
        if len(self.got) >= 2 * self.fitted:
            self.fitted = len(self.got)
            self.left = np.setdiff1d(np.arange(len(self.pool)), self.got)
            model = tb.fit(self.pool.iloc[self.got], target="target", effort="quick")
            self.work = tb.Labelling(model, self.rows.iloc[self.left], seed=self.seed)
        return self.work

    def label(self, rows: list[int]) -> None:
        for row in rows:
            at = int(self.left[row])
            self.work.label(row, self.pool["target"].iloc[at])
            self.got.append(at)


def needed(name: str, seed: int, *, telling: bool, grow: float) -> int:
    """How many labels it takes to 95% of what the whole pool gives."""
    pool, test = parts(name, seed)
    accuracy = lambda model: float((model.predict(test) == test["target"].to_numpy()).mean())  # noqa: E731
    wanted = 0.95 * accuracy(tb.fit(pool, target="target", effort="quick"))
    course, rng, last = Course(pool, seed), np.random.default_rng(seed), []
    while len(course.got) < len(pool):
        work = course.session()
        last.append((len(course.got), accuracy(work.model)))
        if len(last) >= 3 and np.mean([a for _, a in last[-3:]]) >= wanted:
            return last[-3][0]
        k = min(max(round(len(course.got) * (grow - 1)), 1), work.unlabelled)
        free = [row for row in range(len(course.left)) if row not in work.labels]
        course.label(work.next(k) if telling else rng.permutation(free)[:k].tolist())
    return len(pool)


def work_saved(name: str, seed: int, *, asked: bool) -> float:
    """The share of the pool that need not be read to find 95% of a rare class, less 5%."""
    pool, _ = parts(name, seed)
    truth = (pool["target"] == RARE[name]).to_numpy()
    first = np.flatnonzero(truth)[:3].tolist() + np.flatnonzero(~truth)[:7].tolist()
    course, wanted = Course(pool, seed), 0.95 * truth.sum()
    course.got = first
    work = course.session()
    if not asked:
        p = work.model.predict_proba(course.rows)[:, work.model.class_number(RARE[name])]
        p[first] = 2.0
        found = np.cumsum(truth[np.argsort(-p, kind="stable")])
        return 0.95 - float(np.argmax(found >= wanted) + 1) / len(pool)
    while truth[course.got].sum() < wanted:
        work = course.session()
        course.label(work.next(max(1, len(course.got) // 50), find=RARE[name]))
    return 0.95 - len(course.got) / len(pool)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--names", nargs="*", default=[*TEXTS, *TABLES])
    parser.add_argument("--rare", nargs="*", default=list(RARE))
    parser.add_argument("--grow", type=float, default=1.05)
    given: Any = parser.parse_args()
    warnings.simplefilter("ignore")
    shares = []
    for name in given.names:
        begun = time.process_time()
        both = [
            [needed(name, seed, telling=telling, grow=given.grow) for seed in range(given.seeds)]
            for telling in (True, False)
        ]
        shares.append(float(np.median(both[0]) / np.median(both[1])))
        took = time.process_time() - begun
        print(f"{name}: labels needed {both[0]} at random {both[1]}: {shares[-1]:.0%} ({took:.0f} s)", flush=True)
    if shares:
        print(f"median {np.median(shares):.0%}, largest {max(shares):.0%}")
    for name in given.rare:
        saved = [[work_saved(name, seed, asked=asked) for seed in range(given.seeds)] for asked in (True, False)]
        print(
            f"{name}, {RARE[name]}: work saved {np.mean(saved[0]):.1%}, by the first order {np.mean(saved[1]):.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
