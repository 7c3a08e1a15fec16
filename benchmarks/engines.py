"""Counting a CSV larger than memory: time, processor time and peak memory, each in a process of its own.

    python benchmarks/engines.py [--megabytes 200] [--rounds 3] [--folder FOLDER]

The file has ten columns of texts (2 to 1,000 different ones), ten of numbers, and a label; it is removed at the end.

- ours: `tb.count` under a schema with ten categories and ten numbers (moments; `histograms`: cells as well)
- same sums: hand-written SQL in DuckDB that gets the same figures: histograms and n, Σx, Σx² by class
- bare scan: SQL that merely touches every column: counts and maxima of texts, n, Σx, Σx² by class
- pandas: chunks, OrdinalEncoder and partial_fit of CategoricalNB and GaussianNB

Every way first reads a small file, so that importing and compiling are in nobody's time.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time

import numpy as np

TEXTS = [f"c{j}" for j in range(10)]
NUMBERS = [f"x{j}" for j in range(10)]
DIFFERENT = [2, 5, 10, 20, 50, 100, 200, 500, 1000, 1000]
LABELS = ["spam", "ham", "news"]
MEMORY = "256MB"


def generate(path: str, megabytes: int) -> int:
    """Write the file; how many rows it has. A few blocks of random rows are repeated: parsing cannot tell."""
    rng = np.random.default_rng(0)
    blocks = []
    for _ in range(8):
        columns = [[f"value-{v}" for v in rng.integers(0, k, 5000)] for k in DIFFERENT]
        columns += [[f"{v:.4f}" for v in rng.normal(size=5000) * 10.0 ** (j % 4)] for j in range(10)]
        columns.append([LABELS[v] for v in rng.integers(0, 3, 5000)])
        blocks.append("".join(",".join(row) + "\n" for row in zip(*columns, strict=True)).encode())
    rows = size = 0
    with open(path, "wb") as file:
        file.write(",".join([*TEXTS, *NUMBERS, "y"]).encode() + b"\n")
        while size < megabytes * 10**6:
            block = blocks[rng.integers(len(blocks))]
            file.write(block)
            size += len(block)
            rows += 5000
    return rows


def ours(path: str, histograms: bool = False) -> int:
    import tallybayes as tb

    cells = tb.Cells.fitted(np.random.default_rng(1).normal(size=10_000) * 30) if histograms else None
    columns = [tb.Column(n, "category") for n in TEXTS] + [tb.Column(n, "number", cells=cells) for n in NUMBERS]
    return tb.count(path, tb.Schema(columns, target="y")).rows


def sql(path: str, of_texts: str) -> int:
    import duckdb

    con = duckdb.connect(config={"memory_limit": MEMORY})
    kinds = {**dict.fromkeys(TEXTS, "VARCHAR"), **dict.fromkeys(NUMBERS, "DOUBLE"), "y": "VARCHAR"}
    columns = "{" + ", ".join(f"{n}: '{k}'" for n, k in kinds.items()) + "}"
    sums = [of_texts.format(n) for n in TEXTS] + [f"count({n}), sum({n}), sum({n} * {n})" for n in NUMBERS]
    table = f"read_csv('{path}', auto_detect=false, header=true, delim=',', quote='\"', columns={columns})"
    rows = con.execute(f"SELECT y, count(*), {', '.join(sums)} FROM {table} GROUP BY y").fetchall()
    return sum(row[1] for row in rows)


def pandas(path: str) -> int:
    import pandas as pd
    from sklearn.naive_bayes import CategoricalNB, GaussianNB
    from sklearn.preprocessing import OrdinalEncoder

    words = [sorted(f"value-{v}" for v in range(k)) for k in DIFFERENT]
    encoder = OrdinalEncoder(categories=words)
    categories, numbers = CategoricalNB(min_categories=DIFFERENT), GaussianNB()
    rows = 0
    for chunk in pd.read_csv(path, chunksize=100_000):
        encoder.fit(chunk[TEXTS])
        categories.partial_fit(encoder.transform(chunk[TEXTS]), chunk["y"], classes=sorted(LABELS))
        numbers.partial_fit(chunk[NUMBERS], chunk["y"], classes=sorted(LABELS))
        rows += len(chunk)
    return rows


WAYS = {
    "ours": ours,
    "ours, histograms": lambda path: ours(path, histograms=True),
    "same sums": lambda path: sql(path, "histogram({0})"),
    "bare scan": lambda path: sql(path, "count({0}), max({0})"),
    "pandas": pandas,
}


def measured(way: str, path: str) -> dict[str, float]:
    """Time, processor time and peak memory of one way, in a process of its own."""
    done = subprocess.run([sys.executable, __file__, "--way", way, "--path", path], capture_output=True, check=True)
    return json.loads(done.stdout)


def run_one(way: str, path: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        small = os.path.join(folder, "small.csv")
        generate(small, 1)
        os.environ["TALLYBAYES_KERNELS"] = "on"  # they would be loaded in the middle of the large file
        WAYS[way](small)
    start, processor = time.perf_counter(), time.process_time()
    rows = WAYS[way](path)
    print(
        json.dumps(
            {
                "rows": rows,
                "seconds": time.perf_counter() - start,
                "processor": time.process_time() - processor,
                "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--megabytes", type=int, default=200)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--folder", default=None, help="where the file is written for the time being")
    parser.add_argument("--way", help=argparse.SUPPRESS)
    parser.add_argument("--path", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.way:
        run_one(given.way, given.path)
        return
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        path = os.path.join(folder, "large.csv")
        rows = generate(path, given.megabytes)
        print(f"{rows:,} rows, {os.path.getsize(path) / 1e6:,.0f} MB; the best of {given.rounds} rounds, taken in turn")
        best: dict[str, dict[str, float]] = {}
        for _ in range(given.rounds):
            for way in WAYS:
                found = measured(way, path)
                assert found["rows"] == rows, (way, found)
                old = best.setdefault(way, found)
                best[way] = {k: max(old[k], v) if k == "megabytes" else min(old[k], v) for k, v in found.items()}
        for way, found in best.items():
            print(
                f"{way:17} {found['seconds']:8.2f} s  {found['processor']:8.2f} s of processor  "
                f"{found['megabytes']:6.0f} MB at most"
            )
        us = best["ours"]
        for way in ("same sums", "bare scan", "pandas"):
            print(
                f"ours / {way}: time {us['seconds'] / best[way]['seconds']:.2f}, "
                f"processor {us['processor'] / best[way]['processor']:.2f}"
            )


if __name__ == "__main__":
    main()
