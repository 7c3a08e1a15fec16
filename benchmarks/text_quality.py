"""Accuracy and log loss on the shared text sets, beside scikit-learn's pipelines on the same folds.

    python benchmarks/text_quality.py [set …]

Folds are tallies: each row is counted once, and a fold's training tally is `total - part`. Settings are chosen on the
training part alone, by the accuracy of five inner folds; scikit-learn's alpha is chosen likewise, from the same values.
"""

from __future__ import annotations

import os
import pathlib
import sys
import time
import warnings

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.naive_bayes import ComplementNB, MultinomialNB

import tallybayes as tb
from tallybayes.families import Complement, Multinomial

DATA = pathlib.Path(os.environ.get("TALLYBAYES_DATA", pathlib.Path(__file__).parents[2] / "shared" / "data"))
ALPHAS = (1.0, 0.3, 0.1, 0.03, 0.01)
SETS = {
    "newsgroups20": ("text", tb.Tokeniser(), (1, 1)),
    "sms_spam": ("text", tb.Tokeniser(), (1, 1)),
    "ling_spam": ("text", tb.Tokeniser(), (1, 1)),
    "bbc_news": ("text", tb.Tokeniser(), (1, 1)),
    "rt_polarity": ("text", tb.Tokeniser(ngrams=(1, 2)), (1, 2)),
    "imdb_20k": ("text", tb.Tokeniser(ngrams=(1, 2)), (1, 2)),
    "trec_questions": ("text", tb.Tokeniser(ngrams=(1, 2)), (1, 2)),
    "udhr_languages": ("text", tb.Tokeniser(chars=(1, 3)), "char_wb"),
}


def folds(name: str, frame: pd.DataFrame) -> np.ndarray:
    """The fold that tests each row; −1 for rows that only ever train."""
    if "split" in frame:
        return np.where(frame["split"] == "test", 0, -1)
    if name == "ling_spam":
        return frame["part"].to_numpy() - 1
    out = np.empty(len(frame), dtype=int)
    parts = 10 if name == "sms_spam" else 5
    split = StratifiedKFold(parts, shuffle=True, random_state=20240607)
    for k, (_, test) in enumerate(split.split(frame, frame["target"])):
        out[test] = k
    return out


def scored(model: tb.Model, rows: pd.DataFrame, column: str) -> tuple[np.ndarray, np.ndarray]:
    log = model.predict_log_proba({column: rows[column]})
    at = {c: i for i, c in enumerate(model.classes)}
    true = np.array([at[c] for c in rows["target"]])
    return log.argmax(axis=1) == true, -np.maximum(log[np.arange(len(true)), true], np.log(1e-15))


def tuned(rows: pd.DataFrame, schema: tb.Schema, column: str) -> tb.Settings:
    """The smoothing and reading that err least on five folds of the training rows, each scored by total − fold."""
    readings = (Multinomial(), Multinomial(presence=True), Complement(), Complement(presence=True))
    settings = {
        f"{family.describe()} {alpha}": tb.Settings(smoothing=tb.Laplace(alpha), families={column: family})
        for family in readings
        for alpha in ALPHAS
    }
    return settings[tb.cross_validate(rows, schema, folds=5, stratify=True, settings=settings).best("accuracy")]


def peer_scores(model, rows, counted, target) -> tuple[np.ndarray, np.ndarray]:
    log = model.predict_log_proba(counted)
    true = np.searchsorted(model.classes_, rows[target])
    return log.argmax(axis=1) == true, -np.maximum(log[np.arange(len(true)), true], np.log(1e-15))


def line(name: str, results: list[tuple[np.ndarray, np.ndarray]]) -> None:
    right, loss = (np.concatenate([r[i] for r in results]) for i in (0, 1))
    print(f"  {name:35} accuracy {right.mean():.4f}  log loss {loss.mean():.3f}", flush=True)


def run(name: str) -> None:
    column, tokeniser, grams = SETS[name]
    frame = pd.read_parquet(DATA / f"{name}.parquet")
    column = column if column in frame else next(c for c in frame.columns if frame[c].astype(str).str.len().mean() > 15)
    fold = folds(name, frame)
    schema = tb.Schema([tb.Column(column, "text", text=tokeniser)], target="target")
    start = time.perf_counter()
    parts = {k: tb.count(frame[fold == k], schema) for k in np.unique(fold)}
    total = sum(parts.values())
    ours, chosen = {"Laplace 1": [], "tuned": []}, []
    for k in sorted(set(parts) - {-1}):
        train, rows = total - parts[k], frame[fold == k]
        ours["Laplace 1"].append(scored(train.model(), rows, column))
        settings = tuned(frame[fold != k], schema, column)
        chosen.append(f"{settings.families[column].describe()} {settings.smoothing.alpha}")
        ours["tuned"].append(scored(train.model(settings), rows, column))
    seconds = time.perf_counter() - start
    tokens = len(total.columns[column].sheets["words"].slots)
    print(
        f"\n{name}: {len(frame):,} rows, {tokens:,} tokens, {seconds:.1f} s; chosen: {', '.join(sorted(set(chosen)))}"
    )
    for label, results in ours.items():
        line(f"tallybayes {label}", results)
    analyser = {"analyzer": "char_wb", "ngram_range": (1, 3)} if grams == "char_wb" else {"ngram_range": grams}
    peers = {f"{p.__name__}({a})": [] for p in (MultinomialNB, ComplementNB) for a in (1.0, "tuned")}
    for k in sorted(set(parts) - {-1}):
        vectors, rows = CountVectorizer(**analyser), frame[fold == k]
        counted, target = vectors.fit_transform(frame[fold != k][column]), frame[fold != k]["target"]
        tested = vectors.transform(rows[column])
        for peer in (MultinomialNB, ComplementNB):
            search = GridSearchCV(peer(), {"alpha": ALPHAS}, cv=StratifiedKFold(5, shuffle=True, random_state=1))
            for alpha, model in ((1.0, peer(alpha=1.0)), ("tuned", search)):
                model.fit(counted, target)
                peers[f"{peer.__name__}({alpha})"].append(peer_scores(model, rows, tested, "target"))
    for label, results in peers.items():
        line(label, results)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    for chosen in sys.argv[1:] or SETS:
        run(chosen)
