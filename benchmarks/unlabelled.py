"""Rows without labels: what they are worth at 5, 10 and 20 labels a class, beside self-training of scikit-learn.

    python benchmarks/unlabelled.py [--seeds 10] [--labels 5,10,20] [NAME …]

For each set and seed, so many labels of each class are drawn and all other training rows lose theirs (at most 12,000).
Wrong answers to test rows that nobody has seen, mean of the seeds: `tb.fit` of the labels alone, `tb.fit` with
`unlabelled=`, MultinomialNB of the labels alone, and SelfTrainingClassifier around it, both on the words of texts, and
on categories and tenths of numbers as words. Needs the sets in the folder TALLYBAYES_DATA, and scikit-learn.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tallybayes as tb

ASIDE = {
    "newsgroups20": ["id"], "sms_spam": [], "bbc_news": ["id"], "trec_questions": ["target_fine"], "rt_polarity": [],
    "mushroom": [], "adult": [], "breast_cancer_wisconsin": ["id"], "house_votes_84": [], "spambase": [], "letter": [],
    "nursery": [], "pima_diabetes": [], "credit_approval": [],
}  # fmt: skip
SETS = ("newsgroups20", "sms_spam", "adult", "mushroom")
MOST = 12_000  # unlabelled rows
TEST = 4_000


def parts(name: str, seed: int) -> tuple[pa.Table, pa.Table]:
    """Training and test rows: by the set's own split, or a third of the rows at random."""
    table = pq.read_table(Path(os.environ["TALLYBAYES_DATA"]) / f"{name}.parquet").drop_columns(ASIDE[name])
    rng = np.random.default_rng([seed, 1])
    if "split" in table.column_names:
        split = np.array(table["split"].to_pylist())
        table = table.drop_columns(["split"])
        train, test = np.flatnonzero(split == "train"), np.flatnonzero(split == "test")
    else:
        order = rng.permutation(len(table))
        train, test = order[len(order) // 3 :], order[: len(order) // 3]
    return table.take(rng.permutation(train)[:MOST]), table.take(test[:TEST] if name != "newsgroups20" else test)


def drawn(train: pa.Table, labels: int, seed: int) -> tuple[pa.Table, pa.Table]:
    """So many rows of each class, and all others without their labels."""
    y = np.array(train["target"].to_pylist())
    order = np.random.default_rng([seed, 2]).permutation(len(y))
    known = np.concatenate([order[y[order] == c][:labels] for c in np.unique(y)])
    return train.take(known), train.take(np.setdiff1d(order, known)).drop_columns(["target"])


def as_words(table: pa.Table, like: pa.Table) -> list[str]:
    """Rows as texts for scikit-learn: categories and tenths of numbers are words."""
    out = [""] * len(table)
    for name in like.column_names:
        values = table[name].to_pylist()
        if all(isinstance(v, (int, float)) or v is None for v in like[name].to_pylist()):
            known = [v for v in like[name].to_pylist() if v is not None]
            cuts = np.unique(np.quantile(known, np.arange(1, 10) / 10)) if known else []
            values = [None if v is None else int(np.searchsorted(cuts, v, side="right")) for v in values]
        elif name == "text":
            out = [f"{o} {v or ''}" for o, v in zip(out, values, strict=True)]
            continue
        each = zip(out, values, strict=True)
        out = [o if v is None else f"{o} {name.replace('-', '')}_{str(v).encode().hex()}" for o, v in each]
    return out


def peers(known: pa.Table, others: pa.Table, test: pa.Table) -> tuple[float, float]:
    """Wrong answers of MultinomialNB alone, and within SelfTrainingClassifier."""
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB
    from sklearn.semi_supervised import SelfTrainingClassifier

    y, names = np.array(known["target"].to_pylist()), known.drop_columns(["target"])
    vectors = CountVectorizer()
    both = vectors.fit_transform(as_words(names, names) + as_words(others, names))
    asked, truth = vectors.transform(as_words(test, names)), np.array(test["target"].to_pylist())
    alone = MultinomialNB().fit(both[: len(y)], y)
    given = np.concatenate([y.astype(object), np.full(len(others), -1, dtype=object)])
    codes = {c: i for i, c in enumerate(np.unique(y))}
    numbers = np.array([codes.get(v, -1) for v in given])
    more = SelfTrainingClassifier(MultinomialNB()).fit(both, numbers)
    found = np.array([*codes])[more.predict(asked)]
    return float((alone.predict(asked) != truth).mean()), float((found != truth).mean())


def main() -> None:
    """A line for each set and number of labels."""
    ask = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    ask.add_argument("names", nargs="*", default=SETS)
    ask.add_argument("--seeds", type=int, default=10)
    ask.add_argument("--labels", default="5,10,20")
    ask.add_argument("--each", action="store_true", help="a line for each seed as well")
    args = ask.parse_args()
    warnings.simplefilter("ignore")
    print(
        "| set | labels a class | labels alone | with the others | counted in | self-training: alone | with | seconds |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for name in args.names:
        for labels in map(int, args.labels.split(",")):
            lines = []
            for seed in range(args.seeds):
                train, test = parts(name, seed)
                known, others = drawn(train, labels, seed)
                rows, truth = test.drop_columns(["target"]), np.array(test["target"].to_pylist())
                alone = float((tb.fit(known, "target").predict(rows) != truth).mean())
                begun = time.process_time()
                model = tb.fit(known, "target", unlabelled=others)
                took = time.process_time() - begun
                counted = model.tally.rows > len(known)
                lines.append(
                    (alone, float((model.predict(rows) != truth).mean()), counted, *peers(known, others, test), took)
                )
                if args.each:
                    print("   ", name, labels, seed, np.round(lines[-1], 4), flush=True)
            a, b, n, c, d, s = np.mean(lines, axis=0)
            print(
                f"| {name} | {labels} | {a:.1%} | {b:.1%} | {n * len(lines):.0f} of {len(lines)} "
                f"| {c:.1%} | {d:.1%} | {s:.1f} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
