"""Raw text to tally and to predictions, beside scikit-learn's CountVectorizer and MultinomialNB in the same process.

    python benchmarks/text_speed.py [--mb 100] [--rounds 3]

Runs are interleaved and the best of several counts, so that a busy machine spoils both sides alike. The corpora are 20
Newsgroups from the shared data, where they are there, and a made one of Zipf-distributed words with punctuation and
capitals, so many megabytes to learn from and a quarter more to answer. It is no easier than real text: its 10,000 most
frequent words are 79 % of it (20 Newsgroups 88 %, IMDB 95 %), and every class has every word. Polars counts the same
tokens by class, without a model. Memory is what a fresh process needs at its peak above what it has taken for the
imports and the data. `benchmarks/run.py` has the same on fewer texts, and one SMS.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np
import pandas as pd
import pyarrow as pa

import tallybayes as tb

DATA = pathlib.Path(os.environ.get("TALLYBAYES_DATA", pathlib.Path(__file__).parents[2] / "shared" / "data"))
SCHEMA = tb.Schema([tb.Column("text", "text")], target="target")


def made(megabytes: float, seed: int = 1) -> pd.DataFrame:
    """Texts of about 2 kB from a vocabulary of 200,000 invented words, frequencies as in real text (Zipf).

    Frequent words are short, sentences end and begin as sentences do.
    """
    rng = np.random.default_rng(seed)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    sizes = np.clip(rng.normal(2 + np.log(np.arange(1, 200_001)) / 1.7, 1.5), 1, 20).astype(int)
    words = np.array(["".join(rng.choice(letters, size)) for size in sizes], dtype=object)
    share = np.cumsum(1 / (np.arange(1, 200_001) + 2.7) ** 1.07)  # Zipf and Mandelbrot
    share /= share[-1]
    marks = np.array([" "] * 15 + [", ", ".\n", ". ", " - "], dtype=object)
    texts, total = [], 0
    while total < megabytes * 1e6:
        numbers = np.searchsorted(share, rng.random(340))
        gaps = marks[rng.integers(0, len(marks), len(numbers))]
        capital = np.concatenate(([True], np.char.startswith(gaps[:-1].astype(str), ".")))
        chosen = [w.capitalize() if c else w for w, c in zip(words[numbers], capital, strict=True)]
        texts.append("".join(w + g for w, g in zip(chosen, gaps, strict=True)))
        total += len(texts[-1])
    return pd.DataFrame({"text": texts, "target": [f"class {i}" for i in rng.integers(0, 10, len(texts))]})


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
    """The time to a tally and to answers, and the floor: reading every byte of the same strings once."""
    import polars as pl
    from sklearn.feature_extraction.text import CountVectorizer
    from sklearn.naive_bayes import MultinomialNB

    vectors = CountVectorizer()
    peer = MultinomialNB().fit(vectors.fit_transform(train["text"]), train["target"])
    model = tb.count(train, SCHEMA).model()
    agree = np.mean(model.predict(test) == peer.predict(vectors.transform(test["text"])))
    data = np.frombuffer(pa.array(train["text"].tolist(), pa.large_string()).buffers()[2], dtype=np.uint8)
    frame = pl.DataFrame({"text": train["text"].tolist(), "target": train["target"].tolist()})
    words = pl.col("text").str.to_lowercase().str.extract_all(r"\b\w\w+\b")

    def by_polars() -> int:
        return frame.select("target", word=words).explode("word").group_by("target", "word").len().height

    ours, theirs, limit, polars = best(
        rounds,
        lambda: tb.count(train, SCHEMA),
        lambda: MultinomialNB().fit(CountVectorizer().fit_transform(train["text"]), train["target"]),
        lambda: int(data.max()),
        by_polars,
    )
    print(
        f"{name}: {len(data) / 1e6:.1f} MB to tally     {ours * 1e3:7.1f} ms, scikit-learn {theirs * 1e3:8.1f} ms: "
        f"{theirs / ours:5.1f} times; polars without a model {polars * 1e3:8.1f} ms: {polars / ours:5.1f} times; "
        f"reading the bytes once {limit * 1e3:.1f} ms"
    )
    ours, theirs = best(rounds, lambda: model.predict(test), lambda: peer.predict(vectors.transform(test["text"])))
    print(
        f"{name}: {len(test):,} texts to answers {ours * 1e3:7.1f} ms, scikit-learn {theirs * 1e3:8.1f} ms: "
        f"{theirs / ours:5.1f} times; the answers agree in {agree:.4%}"
    )


_FRESH = """
import ctypes, sys
import pandas as pd, pyarrow
def peak():
    # not ru_maxrss, which a new process inherits from its parent
    return next(int(line.split()[1]) / 1024 for line in open("/proc/self/status") if line.startswith("VmHWM"))
def work(frame):
    {work}
frame = pd.read_parquet(sys.argv[1])
frame = frame[frame["split"] == "train"] if "split" in frame else frame
{imports}
work(frame[:200])
pyarrow.default_memory_pool().release_unused()  # what reading the file has left behind would hide what the work needs
ctypes.CDLL(None).malloc_trim(0)
open("/proc/self/clear_refs", "w").write("5")  # the peak starts anew
before = peak()
work(frame)
print(before, peak())
"""
_WAYS = {
    "tallybayes": (
        "import tallybayes as tb; schema = tb.Schema([tb.Column('text', 'text')], target='target')",
        "return tb.count(frame, schema)",
    ),
    "scikit-learn": (
        "from sklearn.feature_extraction.text import CountVectorizer; from sklearn.naive_bayes import MultinomialNB",
        "return MultinomialNB().fit(CountVectorizer().fit_transform(frame['text']), frame['target'])",
    ),
}


def memory(name: str, path: pathlib.Path) -> None:
    """Peaks of fresh processes; before the work each has read the data, and done 200 rows to have loaded everything."""
    figures = {}
    for way, (imports, work) in _WAYS.items():
        code = _FRESH.format(imports=imports, work=work)
        env = {**os.environ, "TALLYBAYES_KERNELS": "on"}
        out = subprocess.run(
            [sys.executable, "-c", code, str(path)], env=env, capture_output=True, text=True, check=True
        )
        figures[way] = [float(v) for v in out.stdout.split()]
    (before, peak), (their_before, their_peak) = figures["tallybayes"], figures["scikit-learn"]
    share = (peak - before) / max(their_peak - their_before, 1e-9)
    print(
        f"{name}: memory to tally {peak - before:6.1f} MB above {before:.0f} MB of imports and data, scikit-learn "
        f"{their_peak - their_before:6.1f} MB above {their_before:.0f} MB: {share:.2f} of theirs"
    )


def main() -> None:
    """All items."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--mb", type=float, default=100)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    news = DATA / "newsgroups20.parquet"
    if news.exists():
        frame = pd.read_parquet(news)
        compare("20 Newsgroups", frame[frame["split"] == "train"], frame[frame["split"] == "test"], given.rounds)
        memory("20 Newsgroups", news)
    frame = made(given.mb * 5 / 4)
    cut = len(frame) * 4 // 5
    compare("made corpus", frame[:cut], frame[cut:], given.rounds)
    with tempfile.TemporaryDirectory() as folder:
        frame[:cut].to_parquet(pathlib.Path(folder) / "made.parquet")
        memory("made corpus", pathlib.Path(folder) / "made.parquet")


if __name__ == "__main__":
    main()
