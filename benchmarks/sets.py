"""Prediction sets beside MAPIE's split conformal sets: how often they hold the right class, and how large they are.

    python benchmarks/sets.py [--seeds 20] [--first 0] [--models textbook fit] [--names pima_diabetes …]

Each seed shuffles a data set (up to 2,000 rows), keeps a third for measuring and asks for 90% coverage. "sets" are
`model.with_sets(rows).predict_set(…)`; "smoothed" draws lots among ties and lets sets be empty, so that it should cover
90% and no more. "split" is MAPIE's SplitConformalClassifier (score "lac") around the same kind of model fitted to one
half of the same rows and conformalised on the other; its sets may be empty, so its size stands beside that of ours with
empty sets allowed, and with the likeliest class put in ("split, filled") beside that of ours as they are. "larger" is
how much larger ours are than MAPIE's filled ones, seed by seed. Below each line stand its standard errors over the
seeds, which share a table and so know a little too much of each other. "by class" is the coverage of the class that is
furthest from 90%, of those with 200 rows to learn from.

Needs `pip install mapie`.
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
from sklearn.base import BaseEstimator, ClassifierMixin

import tallybayes as tb

FOLDER = Path(os.environ.get("TALLYBAYES_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
NAMES = (
    "balance_scale", "breast_cancer_wisconsin", "cmc", "credit_approval", "glass", "house_votes_84", "nursery",
    "pima_diabetes", "tic_tac_toe", "vowel",
)  # fmt: skip
NOT_FEATURES = ["split", "id"]
COVERAGE, MOST, LEAST = 0.9, 2000, 200


class Rows(ClassifierMixin, BaseEstimator):
    """A model that was fitted before, for MAPIE: X are numbers of rows of a frame."""

    def __init__(self, model: Any = None, frame: Any = None) -> None:
        self.model, self.frame = model, frame
        self.classes_ = None if model is None else np.array(model.classes)

    def fit(self, X: Any, y: Any = None) -> Rows:
        """Nothing: it was fitted before."""
        return self

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def predict_proba(self, X: Any) -> Any:
        """P(class) of these rows."""
        return self.model.predict_proba(self.frame.iloc[np.asarray(X).ravel()])

    def predict(self, X: Any) -> Any:
        """The likeliest class."""
        return self.classes_[np.argmax(self.predict_proba(X), axis=1)]


def split_sets(make: Any, rows: pd.DataFrame, test: pd.DataFrame) -> tuple[Any, Any, Any]:
    """MAPIE's sets: classes, members, and members with the likeliest class put in."""
    from mapie.classification import SplitConformalClassifier

    half = len(rows) // 2
    model = make(rows[:half], "target")
    frame = pd.concat([rows[half:], test], ignore_index=True)
    here = np.arange(len(rows) - half)[:, None]
    labels = rows["target"].to_numpy()[half:]
    known = np.isin(labels, np.array(model.classes))  # a class of no training row: MAPIE cannot have it
    mapie = SplitConformalClassifier(Rows(model, frame), confidence_level=COVERAGE, conformity_score="lac", prefit=True)
    mapie.conformalize(here[known], labels[known])
    asked = np.arange(len(rows) - half, len(frame))[:, None]
    members = mapie.predict_set(asked)[1][:, :, 0]
    full = members.copy()
    full[np.arange(len(full)), np.argmax(model.predict_proba(test), axis=1)] = True
    return model.classes, members, full


def held(classes: Any, members: Any, truth: Any) -> Any:
    """Whether each row's set holds the right class."""
    at = {c: i for i, c in enumerate(classes)}
    return np.array([t in at and members[i, at[t]] for i, t in enumerate(truth)])


def main() -> None:
    """Every data set, a line of figures each."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, default=20)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--names", nargs="+", default=NAMES)
    parser.add_argument("--models", nargs="+", default=["textbook", "fit"], choices=["textbook", "fit"])
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for kind in args.models:
        make = {"textbook": tb.textbook, "fit": tb.fit}[kind]
        print(f"\n{kind}, {args.seeds} seeds")
        head = ("coverage", "smoothed", "split", "size", "split, filled", "smoothed size", "split size", "larger")
        print(f"{'':26}" + "".join(f"{h:>15}" for h in (*head, "by class", "seconds")))
        pooled: list[Any] = []
        for name in args.names:
            found, by_class, seconds = [], {}, 0.0
            for seed in range(args.first, args.first + args.seeds):
                table = pd.read_parquet(FOLDER / f"{name}.parquet").drop(columns=NOT_FEATURES, errors="ignore")
                table = table.sample(frac=1, random_state=seed).reset_index(drop=True)[:MOST]
                third = len(table) // 3
                test, rows = table[:third], table[third:].reset_index(drop=True)
                truth = test["target"].to_numpy()
                model = make(rows, "target")
                start = time.process_time()
                model = model.with_sets(rows)
                seconds += time.process_time() - start
                ours = model.predict_set(test, COVERAGE)
                free = model.predict_set(test, COVERAGE, smoothed=True, empty=True, seed=seed)
                classes, members, full = split_sets(make, rows, test)
                hit = [held(model.classes, s.members, truth) for s in (ours, free)] + [held(classes, members, truth)]
                sizes = [ours.sizes, full.sum(axis=1), free.sizes, members.sum(axis=1)]
                sizes.append(sizes[0] - sizes[1])
                found.append(np.array([*hit, *sizes], dtype=float))
                apart = model.predict_set(test, COVERAGE, by_class=True, smoothed=True, empty=True, seed=seed)
                inside = held(model.classes, apart.members, truth)
                for c, n in table["target"].value_counts().items():
                    if n * 2 / 3 >= LEAST:
                        by_class.setdefault(c, []).append(inside[truth == c])
            each = np.concatenate(found, axis=1)
            pooled.append(each.mean(axis=1))
            shares = [np.concatenate(v).mean() for v in by_class.values()]
            furthest = max(shares, key=lambda s: abs(s - COVERAGE), default=np.nan)
            figures = [*pooled[-1], furthest, seconds / args.seeds]
            print(f"{name:26}" + "".join(f"{v:15.3f}" for v in figures), flush=True)
            errors = np.std([f.mean(axis=1) for f in found], axis=0, ddof=1) / np.sqrt(max(args.seeds, 2))
            print(f"{'':26}" + "".join(f"{v:15.4f}" for v in errors), flush=True)
        print(f"{'mean of all':26}" + "".join(f"{v:15.3f}" for v in np.mean(pooled, axis=0)), flush=True)


if __name__ == "__main__":
    main()
