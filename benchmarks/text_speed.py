"""Raw text to tally and to predictions, beside scikit-learn's CountVectorizer and MultinomialNB in the same process.

    python benchmarks/text_speed.py [--mb 100] [--rounds 5]

Runs are interleaved and the best of several counts, so that a busy machine spoils both sides alike. The corpora are 20
Newsgroups from the shared data, where they are there, and a made one of Zipf-distributed words.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import time

import numpy as np
import pandas as pd
import pyarrow as pa
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

import tallybayes as tb

DATA = pathlib.Path(os.environ.get("TALLYBAYES_DATA", pathlib.Path(__file__).parents[2] / "shared" / "data"))
SCHEMA = tb.Schema([tb.Column("text", "text")], target="target")


def made(megabytes: float, seed: int = 1) -> pd.DataFrame:
    """Texts of about 2 kB from a vocabulary of 200,000 invented words, frequencies as in real text (Zipf)."""
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    words = ["".join(rng.choice(letters, size)) for size in rng.integers(2, 12, 200_000)]
    texts, labels = [], []
    while sum(map(len, texts[-1:])) * len(texts) < megabytes * 1e6:
        numbers = np.minimum(rng.zipf(1.2, 320), 200_000) - 1
        texts.append(" ".join(words[i] for i in numbers))
        labels.append(f"class {rng.integers(10)}")
    return pd.DataFrame({"text": texts, "target": labels})


def best(rounds: int, *ways) -> list[float]:
    """The best time of each way, taken in turns."""
    times = [[] for _ in ways]
    for _ in range(rounds):
        for kept, way in zip(times, ways, strict=True):
            start = time.perf_counter()
            way()
            kept.append(time.perf_counter() - start)
    return [min(kept) for kept in times]


def compare(name: str, train: pd.DataFrame, test: pd.DataFrame, rounds: int) -> None:
    vectors = CountVectorizer()
    peer = MultinomialNB().fit(vectors.fit_transform(train["text"]), train["target"])
    model = tb.count(train, SCHEMA).model()
    agree = np.mean(model.predict(test) == peer.predict(vectors.transform(test["text"])))
    size = train["text"].str.len().sum() / 1e6
    # the floor: reading every byte of the same strings once
    data = np.frombuffer(pa.array(train["text"].tolist(), pa.large_string()).buffers()[2], dtype=np.uint8)
    ours, theirs, limit = best(
        rounds,
        lambda: tb.count(train, SCHEMA),
        lambda: MultinomialNB().fit(CountVectorizer().fit_transform(train["text"]), train["target"]),
        lambda: int(data.max()),
    )
    print(
        f"{name}: {size:.1f} MB to tally     {ours * 1e3:7.1f} ms, scikit-learn {theirs * 1e3:8.1f} ms: "
        f"{theirs / ours:5.1f} times; reading the bytes once {limit * 1e3:.1f} ms"
    )
    ours, theirs = best(rounds, lambda: model.predict(test), lambda: peer.predict(vectors.transform(test["text"])))
    print(
        f"{name}: {len(test):,} texts to answers {ours * 1e3:7.1f} ms, scikit-learn {theirs * 1e3:8.1f} ms: "
        f"{theirs / ours:5.1f} times; the answers agree in {agree:.4%}"
    )


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if (DATA / "newsgroups20.parquet").exists():
        frame = pd.read_parquet(DATA / "newsgroups20.parquet")
        compare("20 Newsgroups", frame[frame["split"] == "train"], frame[frame["split"] == "test"], given.rounds)
    frame = made(given.mb)
    cut = len(frame) * 4 // 5
    compare("made corpus", frame[:cut], frame[cut:], given.rounds)
