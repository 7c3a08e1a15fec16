"""How cost grows: a fitted exponent for rows, columns, classes and vocabulary, and the memory of a stream.

    python benchmarks/scaling.py [--most 1000000] [--write docs/scaling.svg]

An exponent of 1 means that twice as much takes twice as long. Each point is the best of three runs.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import resource
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pyarrow as pa

import tallybayes as tb

RNG = np.random.default_rng(9)
EXPECTED = {
    "rows, counting": 1.0,
    "rows, scoring": 1.0,
    "columns, counting": 1.0,
    "classes, counting": 0.0,
    "classes, scoring": 1.0,
    "vocabulary, counting": 0.2,
}


def best(way: Callable[[], Any]) -> float:
    times = []
    for _ in range(3):
        start = time.process_time()  # of all threads: other programs on the machine do not count
        way()
        times.append(time.process_time() - start)
    return min(times)


def vectors(rows: int, width: int, classes: int) -> tuple[Any, Any, tb.Schema]:
    return (
        RNG.normal(size=(rows, width)),
        np.arange(rows) % classes,
        tb.Schema([tb.Column("x", "vector", width=width)], target="y", label_type="int"),
    )


def counting(rows: int, width: int = 10, classes: int = 2) -> float:
    x, y, schema = vectors(rows, width, classes)
    return best(lambda: tb.count(x, schema, y))


def scoring(rows: int, width: int = 10, classes: int = 2) -> float:
    x, y, schema = vectors(rows, width, classes)
    model = tb.count(x, schema, y).model()
    return best(lambda: model.predict(x))


def vocabulary(words: int, rows: int) -> float:
    texts = [" ".join(f"w{i}x" for i in RNG.integers(0, words, 50).tolist()) for _ in range(rows)]
    table = {"t": pa.array(texts), "y": pa.array(["a", "b"] * (rows // 2))}
    return best(lambda: tb.count(table, tb.Schema([tb.Column("t", "text")], target="y")))


def exponent(sizes: list[int], times: list[float]) -> float:
    """The slope of log time over log size."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def streamed(rows: int) -> float:
    """The most memory in MB while a stream of so many rows is counted."""
    types = pa.schema([("x", pa.float64()), ("y", pa.string())])

    def batches() -> Iterator[pa.RecordBatch]:
        for _ in range(rows // 50_000):
            yield pa.record_batch([pa.array(RNG.normal(size=50_000)), pa.array(["a", "b"] * 25_000)], schema=types)

    schema = tb.Schema([tb.Column("x", "number")], target="y")
    tb.count(pa.RecordBatchReader.from_batches(types, batches()), schema)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=1_000_000, help="rows of the largest table; 10000000 takes minutes")
    parser.add_argument("--write", type=pathlib.Path, help="an SVG file")
    given = parser.parse_args()
    most = given.most
    os.environ["TALLYBAYES_KERNELS"] = "on"  # the same way for every size
    scoring(10_000)  # and loaded before anything is measured
    memory = [streamed(most // 4), streamed(most)]
    rows = [n for n in (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000) if n <= most]
    middle = max(most // 10, 10_000)
    curves = {
        "rows, counting": (rows, [counting(n) for n in rows]),
        "rows, scoring": (rows, [scoring(n) for n in rows]),
        "columns, counting": ([10, 30, 100], [counting(middle, w) for w in (10, 30, 100)]),
        "classes, counting": ([2, 5, 10, 20], [counting(middle, 10, c) for c in (2, 5, 10, 20)]),
        "classes, scoring": ([2, 5, 10, 20, 50], [scoring(middle, 10, c) for c in (2, 5, 10, 20, 50)]),
        "vocabulary, counting": (
            [1000, 10_000, 100_000],
            [vocabulary(w, max(most // 50, 2000)) for w in (1000, 10_000, 100_000)],
        ),
    }
    fitted = {name: exponent(sizes, times) for name, (sizes, times) in curves.items()}
    for name, slope in fitted.items():
        print(f"{name:22} exponent {slope:5.2f}, expected {EXPECTED[name]:g}")
    print(f"a stream of {most // 4:,} rows took {memory[0]:.0f} MB at most, of {most:,} rows {memory[1]:.0f} MB")
    if given.write is not None:
        plot(curves, fitted, given.write)


def plot(curves: dict[str, tuple[list[int], list[float]]], fitted: dict[str, float], path: pathlib.Path) -> None:
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "tallybayes"
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(figsize=(7, 4.5))
    for name, (sizes, times) in curves.items():
        axes.loglog(sizes, np.array(times) * 1e3, marker="o", label=f"{name}: exponent {fitted[name]:.2f}")
    axes.set(xlabel="how many", ylabel="milliseconds of processor time")
    axes.legend(frameon=False, fontsize=8)
    axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, metadata={"Date": None}, bbox_inches="tight")


if __name__ == "__main__":
    main()
