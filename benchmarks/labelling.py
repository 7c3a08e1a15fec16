"""How many labels it takes: by what `Labelling` asks for beside random rows, and to find the rows of a rare class.

    python benchmarks/labelling.py [--seeds 3] [--names sms_spam tic_tac_toe …] [--rare messages …] [--grow 1.05]

A third of each data set is kept for measuring, up to 2,000 rows; the rest, up to 4,000, is the pool. Both ways begin
with the same ten random rows, label some more, by a twentieth each time, and fit anew whenever the labels have doubled.
"needed" is how many labels it takes until accuracy is 95% of that with the whole pool labelled, as the mean of three
measurements in a row. A share is that of the medians; the largest share of a single draw is beside it, and how far two
random orders are apart (the larger share of one of the other) says how much of that is luck.

"work saved" at 95% recall of a rare class is the share of the pool that need not be read, less the 5% that reading in
any order would save. Ours is `next(find=class)`, the most likely row first under a model that learns, of a
model by counts alone; "fitted" is the same with weights fitted anew whenever the labels have doubled. Beside them: the
most likely row first as ASReview has it, its multinomial naive Bayes (alpha 3.822) over TF-IDF of the words that are no
stop words, without its resampling; and reading in the order of the first model. `messages` are made, with 2% about
money, and of `newsgroups20` the rows of sci.space are thinned to 1%.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import tallybayes as tb

FOLDER = Path(os.environ.get("TALLYBAYES_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
TEXTS, TABLES = ("sms_spam", "trec_questions", "rt_polarity"), ("credit_approval", "tic_tac_toe")
RARE = {
    "sms_spam": "spam", "trec_questions": "ABBR", "nursery": "very_recom", "newsgroups20": "sci.space",
    "messages": "money",
}  # fmt: skip
WAYS = ("ours", "fitted", "ASReview's", "first order")
THINNED = {"newsgroups20": 0.01}  # to this share of all rows
POOL, TEST, FIRST = 4000, 2000, 10
NO_EVIDENCE = ["split", "target_fine", "id", "part", "rating"]  # what a text alone does not say
MONEY = ["invoice", "payment", "bank", "transfer", "amount", "due", "account", "credit"]
OTHER = ["lunch", "meeting", "train", "photo", "garden", "weekend", "music", "call", "game", "dog"]


def messages(rows: int, seed: int) -> pd.DataFrame:
    """Short texts, 2% of them about money: half of the words of each tell which, the others are anybody's."""
    rng = random.Random(seed)
    common = [f"w{i}" for i in range(300)]
    out = []
    for _ in range(rows):
        money = rng.random() < 0.02
        told = rng.choices(MONEY if money else OTHER, k=3) + rng.choices(MONEY + OTHER, k=1)
        out.append((" ".join(told + rng.choices(common, k=5)), "money" if money else "other"))
    return pd.DataFrame(out, columns=["text", "target"])


def parts(name: str, seed: int, most: int = POOL) -> tuple[pd.DataFrame, pd.DataFrame]:
    """The pool and the rows to measure on."""
    if name == "messages":
        rows = messages(most + most // 2, seed)
    else:
        rows = pd.read_parquet(FOLDER / f"{name}.parquet").drop(columns=NO_EVIDENCE, errors="ignore")
        rows = rows.sample(frac=1, random_state=seed).reset_index(drop=True)
    if name in THINNED:
        rare = rows["target"] == RARE[name]
        rows = rows[~rare | (rare.cumsum() <= THINNED[name] * len(rows))].sample(frac=1, random_state=seed)
        rows = rows.reset_index(drop=True)
    third = len(rows) // 3
    return rows[third:][:most].reset_index(drop=True), rows[:third][:TEST]


class Course:
    """Labels that come in, and the model that is fitted anew whenever they have doubled."""

    def __init__(self, pool: pd.DataFrame, seed: int, **fitting: Any) -> None:
        self.pool, self.rows, self.seed, self.fitting = pool, pool.drop(columns="target"), seed, fitting
        self.got = list(range(FIRST))
        self.fitted = 0

    def session(self) -> tb.Labelling:
        if len(self.got) >= 2 * self.fitted:
            self.fitted = len(self.got)
            self.left = np.setdiff1d(np.arange(len(self.pool)), self.got)
            model = tb.fit(self.pool.iloc[self.got], target="target", **self.fitting)
            self.work = tb.Labelling(model, self.rows.iloc[self.left], seed=self.seed)
        return self.work

    def label(self, rows: list[int]) -> None:
        for row in rows:
            at = int(self.left[row])
            self.work.label(row, self.pool["target"].iloc[at])
            self.got.append(at)


def needed(name: str, seed: int, *, telling: bool, grow: float, most: int = POOL, luck: int = 0) -> int:
    """How many labels it takes to 95% of what the whole pool gives; `luck` numbers random orders."""
    pool, test = parts(name, seed, most)
    accuracy = lambda model: float((model.predict(test) == test["target"].to_numpy()).mean())  # noqa: E731
    wanted = 0.95 * accuracy(tb.fit(pool, target="target", effort="quick"))
    course, rng, last = Course(pool, seed, effort="quick"), np.random.default_rng([seed, luck]), []
    while len(course.got) < len(pool):
        work = course.session()
        last.append((len(course.got), accuracy(work.model)))
        if len(last) >= 3 and np.mean([a for _, a in last[-3:]]) >= wanted:
            return last[-3][0]
        k = min(max(round(len(course.got) * (grow - 1)), 1), work.unlabelled)
        free = [row for row in range(len(course.left)) if row not in work.labels]
        course.label(work.next(k) if telling else rng.permutation(free)[:k].tolist())
    return len(pool)


def work_saved(name: str, seed: int, way: str, most: int = POOL) -> float:
    """The share of the pool that need not be read to find 95% of a rare class, less 5%."""
    pool, _ = parts(name, seed, most)
    truth = (pool["target"] == RARE[name]).to_numpy()
    got = np.flatnonzero(truth)[:3].tolist() + np.flatnonzero(~truth)[:7].tolist()
    ways = {"ours": _asked, "fitted": _fitted, "ASReview's": _tf_idf, "first order": _first_order}
    return 0.95 - ways[way](pool, truth, got, RARE[name], seed) / len(pool)


def _enough(truth: Any, got: list[int]) -> bool:
    return bool(truth[got].sum() >= 0.95 * truth.sum())


def _fitted(pool: pd.DataFrame, truth: Any, got: list[int], label: Any, seed: int) -> int:
    return _asked(pool, truth, got, label, seed, effort="quick")


def _asked(pool: pd.DataFrame, truth: Any, got: list[int], label: Any, seed: int, **fitting: Any) -> int:
    course = Course(pool, seed, **(fitting or {"calibrate": False}))
    course.got = got
    while not _enough(truth, course.got):
        course.label(course.session().next(max(1, len(course.got) // 50), find=label))
    return len(course.got)


def _tf_idf(pool: pd.DataFrame, truth: Any, got: list[int], label: Any, seed: int) -> int:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.naive_bayes import MultinomialNB

    rows = pool.drop(columns="target")
    if "text" in rows:
        x = TfidfVectorizer(stop_words="english").fit_transform(rows["text"])
    else:
        values = [" ".join(f"{c}={v}" for c, v in row.items()) for row in rows.astype(str).to_dict("records")]
        x = TfidfVectorizer(tokenizer=str.split, token_pattern=None).fit_transform(values)
    while not _enough(truth, got):
        p = MultinomialNB(alpha=3.822).fit(x[got], truth[got]).predict_proba(x)[:, 1]
        p[got] = -1.0
        got += np.argsort(-p, kind="stable")[: max(1, len(got) // 50)].tolist()
    return len(got)


def _first_order(pool: pd.DataFrame, truth: Any, got: list[int], label: Any, seed: int) -> int:
    course = Course(pool, seed, calibrate=False)
    course.got = got
    model = course.session().model
    p = model.predict_proba(course.rows)[:, model.class_number(label)]
    p[got] = 2.0
    found = np.cumsum(truth[np.argsort(-p, kind="stable")])
    return int(np.argmax(found >= 0.95 * truth.sum())) + 1


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
        count = functools.partial(needed, name, grow=given.grow)
        ours, chance, other = (
            [count(seed, telling=telling, luck=luck) for seed in range(given.seeds)]
            for telling, luck in ((True, 0), (False, 0), (False, 1))
        )
        shares.append(float(np.median(ours) / np.median(chance)))
        largest, luck = (max(a / b for a, b in zip(side, chance, strict=True)) for side in (ours, other))
        took = time.process_time() - begun
        print(f"{name}: labels needed {ours} at random {chance} and {other} ({took:.0f} s)")
        print(f"  share {shares[-1]:.0%}, in one draw up to {largest:.0%}; of two random orders {luck:.0%}", flush=True)
    if shares:
        print(f"median {np.median(shares):.0%}, largest {max(shares):.0%}")
    for name in given.rare:
        saved = {w: [work_saved(name, seed, w) for seed in range(given.seeds)] for w in WAYS}
        told = ", ".join(f"{way} {np.mean(each):.1%}" for way, each in saved.items())
        print(f"{name}, {RARE[name]}: work saved: {told}", flush=True)


if __name__ == "__main__":
    main()
