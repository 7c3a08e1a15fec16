"""How cost grows: a fitted exponent for rows, columns, classes and words, and the memory of a stream.

    python benchmarks/scaling.py [--most 1000000] [--write docs/scaling.svg]

An exponent of 1 means that twice as much takes twice as long. Each point is the best of three runs, in processor time
of all threads, so that other programs on the machine do not count. Rows are streamed: the same 100,000 come again and
again, so that any number of them can be read and none need be kept.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa

import tallybayes as tb

RNG = np.random.default_rng(9)
PIECE = 100_000  # rows of a stream that come at once


@dataclass(frozen=True)
class Curve:
    """Seconds (or megabytes) over a size, the exponent that was expected, and whether more is a fault."""

    name: str
    of: str  # what the size counts
    sizes: list[int]
    values: list[float]
    expected: float
    at_most: bool = False
    unit: str = "s"

    @property
    def exponent(self) -> float:
        """The slope of log value over log size."""
        return round(float(np.polyfit(np.log(self.sizes), np.log(self.values), 1)[0]), 2) + 0.0  # no −0.00


def best(way: Callable[[], Any], runs: int = 3) -> float:
    times = []
    for _ in range(runs):
        start = time.process_time()
        way()
        times.append(time.process_time() - start)
    return min(times)


def stream(rows: int) -> Callable[[], pa.RecordBatchReader]:
    """So many rows of four numbers, two categories and a label, again and again."""
    size = min(rows, PIECE)
    columns: dict[str, Any] = {f"n{j}": pa.array(RNG.normal(size=size)) for j in range(4)}
    columns |= {f"c{j}": pa.array(RNG.choice(["red", "green", "blue"], size)) for j in range(2)}
    piece = pa.record_batch({**columns, "y": pa.array(RNG.choice(["a", "b"], size))})

    def batches() -> Iterator[pa.RecordBatch]:
        for start in range(0, rows, size):
            yield piece.slice(0, min(size, rows - start))

    return lambda: pa.RecordBatchReader.from_batches(piece.schema, batches())


ROWS = tb.Schema(
    [*(tb.Column(f"n{j}", "number") for j in range(4)), *(tb.Column(f"c{j}", "category") for j in range(2))], target="y"
)


def vectors(rows: int, width: int, classes: int) -> tuple[Any, Any, tb.Schema]:
    schema = tb.Schema([tb.Column("x", "vector", width=width)], target="y", label_type="int")
    return RNG.normal(size=(rows, width)), np.arange(rows) % classes, schema


def counting(rows: int, width: int = 10, classes: int = 2) -> float:
    x, y, schema = vectors(rows, width, classes)
    return best(lambda: tb.count(x, schema, y))


def scoring(rows: int, width: int = 10, classes: int = 2) -> float:
    x, y, schema = vectors(rows, width, classes)
    model = tb.count(x, schema, y).model()
    return best(lambda: model.predict(x))


TEXT = tb.Schema([tb.Column("t", "text")], target="y")


def texts(words: int, rows: int) -> dict[str, Any]:
    each = [" ".join(f"w{i}x" for i in RNG.integers(0, words, 50).tolist()) for _ in range(rows)]
    return {"t": pa.array(each), "y": pa.array(["a", "b"] * (rows // 2))}


def vocabulary(words: int, rows: int) -> float:
    table = texts(words, rows)
    return best(lambda: tb.count(table, TEXT))


def one_row(words: int) -> float:
    """One row of 50 words learnt and another forgotten in a model of so many."""
    table = texts(words, max(words // 20, 2000))
    model = tb.count(table, TEXT).model()
    row = {"t": " ".join(f"w{i}x" for i in RNG.integers(0, words, 50).tolist()), "y": "a"}
    old = {name: column[0].as_py() for name, column in table.items()}
    model.update(row).forget(old)  # indexed once

    def often() -> None:
        for _ in range(100):
            model.update(row).forget(old)

    return best(often, 5) / 100


def streamed(rows: int) -> float:
    """The most memory in MB that this process has taken up to now, once a stream of so many rows is counted."""
    tb.count(stream(rows)(), ROWS)
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) / 1024 for line in status if line.startswith("VmHWM"))


def curves(most: int) -> Iterator[Curve]:
    """All curves, one after the other."""
    memory = [most // 10, most // 5, most // 2, most]
    yield Curve("memory of a stream", "rows", memory, [streamed(n) for n in memory], 0, unit="MB")
    rows = [n for n in (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000) if n <= most]
    sources = [stream(n) for n in rows]
    yield Curve("rows, counting", "rows", rows, [best(lambda s=s: tb.count(s(), ROWS)) for s in sources], 1)
    model = tb.count(sources[0](), ROWS).model()
    yield Curve("rows, scoring", "rows", rows, [best(lambda s=s: model.predict(s())) for s in sources], 1)
    middle = min(max(most // 10, 10_000), 100_000)
    widths, few, many = [3, 10, 30, 100, 300], [2, 5, 10, 20, 50], [2, 5, 10, 20, 50, 100, 200]
    yield Curve("columns, counting", "columns", widths, [counting(middle, w) for w in widths], 1)
    yield Curve("classes, counting", "classes", few, [counting(middle, 10, c) for c in few], 0)
    yield Curve("classes, scoring", "classes", many, [scoring(middle, 10, c) for c in many], 1)
    words = [1000, 3000, 10_000, 30_000, 100_000]
    tokens = max(most // 50, 2000)
    yield Curve("vocabulary, counting", "words", words, [vocabulary(w, tokens) for w in words], 0.2, True)
    known = [n for n in (10_000, 100_000, 1_000_000) if n <= max(most, 100_000)]
    yield Curve("one row learnt and forgotten", "words in the model", known, [one_row(n) for n in known], 0)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--most", type=int, default=1_000_000, help="rows of the largest table; 10000000 takes minutes")
    parser.add_argument("--write", type=pathlib.Path, help="an SVG file")
    given = parser.parse_args()
    os.environ["TALLYBAYES_KERNELS"] = "on"  # the same way for every size
    for _ in range(2):
        scoring(10_000), vocabulary(1000, 2000), tb.count(stream(1000)(), ROWS)  # loaded before anything is measured
    found = []
    for curve in curves(given.most):
        found.append(curve)
        ends = " → ".join(measure(curve.values[i], curve.unit) for i in (0, -1))
        wish = f"{'at most ' if curve.at_most else ''}{curve.expected:g}"
        sizes = f"{curve.sizes[0]:,} to {curve.sizes[-1]:,} {curve.of}"
        print(f"{curve.name:28} exponent {curve.exponent:5.2f}, expected {wish:12} {sizes}: {ends}", flush=True)
    if given.write is not None:
        plot(found, given.write)


def measure(value: float, unit: str) -> str:
    """Seconds or megabytes to three digits.

    >>> measure(0.000075, "s"), measure(0.955, "s"), measure(345.2, "MB")
    ('75 µs', '955 ms', '345 MB')
    """
    if unit == "MB":
        return f"{value:.0f} MB"
    return next((f"{value * by:.3g} {u}" for u, by in (("s", 1), ("ms", 1e3)) if value * by >= 0.9999), "") or (
        f"{value * 1e6:.3g} µs"
    )


def short(number: float) -> str:
    """A round number as one writes it under an axis: 300 k, 10 M."""
    return next((f"{number / by:g} {u}" for u, by in (("M", 1e6), ("k", 1e3)) if number >= by), f"{number:g}")


def plot(found: list[Curve], path: pathlib.Path) -> None:
    """A panel for each curve: what was measured, and the slope that was expected through its middle."""
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams |= {"svg.hashsalt": "tallybayes", "font.size": 9}
    from matplotlib import pyplot as plt
    from matplotlib.ticker import FuncFormatter, NullLocator

    figure, grid = plt.subplots(2, 4, figsize=(11, 5.2), layout="constrained")
    for axes, curve in zip(grid.flat, found, strict=True):
        sizes, values = np.array(curve.sizes), np.array(curve.values)
        middle = np.exp(np.log(sizes).mean()), np.exp(np.log(values).mean())
        line = middle[1] * (sizes / middle[0]) ** curve.expected
        axes.loglog(sizes, line, color="#b0b0b0", linestyle="--", linewidth=1.2)
        axes.loglog(sizes, values, color="#1f6f8b", marker="o", markersize=4, linewidth=1.6)
        low, high = min(values.min(), line.min()), max(values.max(), line.max())
        room = max(np.sqrt(30 * low / high), 1.4)  # a flat line is to look flat
        axes.set(ylim=(low / room, high * room), xlabel=curve.of, xticks=sizes[:: -(-len(sizes) // 5)])
        axes.xaxis.set_major_formatter(FuncFormatter(lambda v, _: short(v)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda v, _, unit=curve.unit: measure(v, unit)))
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_minor_locator(NullLocator())
        wish = f"{'≤ ' if curve.at_most else ''}{curve.expected:g}"
        axes.set_title(f"{curve.name}\nexponent {curve.exponent:.2f} (expected {wish})", fontsize=9)
        axes.spines[["top", "right"]].set_visible(False)
        axes.grid(alpha=0.25)
    figure.savefig(path, metadata={"Date": None})


if __name__ == "__main__":
    main()
