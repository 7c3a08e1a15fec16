"""The whole road: from raw data to a model, which is what a user waits for; looking, counting and estimating apart.

    python benchmarks/roads.py [--only text] [--scale 1] [--rounds 3] [--default]

Three cases, each in a process of its own: the messages of 20 Newsgroups, a mixed frame of pandas, and a CSV of a
million rows (ten numbers, seven categories, three columns of short texts, about 210 MB). Times are of the processor,
the best of some rounds after a first one. Memory is the peak of the process less what it held before its first fit, so
that the libraries and kernels which that loads are in it. The same cases are items of `run.py`, beside their peers.

DuckDB is asked for count, sum and sum of squares of the numbers by class in one pass over the same CSV, and for the
histograms of the categories; of the texts it only counts and compares ("one pass"), or it counts every different one of
them by class, too, from a table that it first makes of the file ("all counts").
"""

from __future__ import annotations

import argparse
import atexit
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import cache
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
from items import Case, Item, mixed, texts
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.naive_bayes import MultinomialNB

import tallybayes as tb

DIFFERENT = (3, 5, 12, 12, 40, 100, 800)
NUMBERS = [f"n{j}" for j in range(10)]
CATEGORIES = [f"c{j}" for j in range(len(DIFFERENT))]
TEXTS = [f"t{j}" for j in range(3)]
MESSAGES = 18_846  # of 20 Newsgroups
MADE = "TALLYBAYES_ROAD_CSV"  # where another process has made it
PIECE = 100_000  # rows that are made at a time


def _piece(number: int, rows: int) -> pl.DataFrame:
    rng = np.random.default_rng(1000 + number)
    y = rng.integers(0, 3, rows)
    columns: dict[str, Any] = {"y": np.array(["alpha", "beta", "gamma"])[y]}
    for j, name in enumerate(NUMBERS):
        x = 10 * rng.normal(size=rows) + y * (j % 3)
        columns[name] = np.round(x, 4 if j < 6 else 1) if j < 8 else np.rint(10 * x).astype(int)
    for name, k in zip(CATEGORIES, DIFFERENT, strict=True):
        value = (rng.integers(0, k, rows) + y * (rng.random(rows) < 0.2)) % k
        columns[name] = np.array([f"value {i}" for i in range(k)])[value]
    words = np.array([f"word{i}" for i in range(2000)])
    for name in TEXTS:
        some = np.minimum(rng.zipf(1.3, (rows, 4)) - 1 + 3 * y[:, None], len(words) - 1)
        columns[name] = [" ".join(row) for row in words[some].tolist()]
    return pl.DataFrame(columns)


@cache
def table(scale: float) -> str:
    """The path of the CSV, which is deleted at the end of the process that made it."""
    if MADE in os.environ:
        return os.environ[MADE]
    folder = tempfile.mkdtemp(prefix="tallybayes-road-")
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    path, rows = pathlib.Path(folder) / "road.csv", max(int(1_000_000 * scale), 400)
    with path.open("wb") as file:
        for number, start in enumerate(range(0, rows, PIECE)):
            _piece(number, min(PIECE, rows - start)).write_csv(file, include_header=start == 0)
    return str(path)


def one_pass(path: str) -> list[tuple[Any, ...]]:
    """DuckDB's sums by class: what it can have of the file in one reading."""
    asked = [f"count({n}), sum({n}), sum({n} * {n})" for n in NUMBERS] + [f"histogram({c})" for c in CATEGORIES]
    asked += [f"count({t}), max({t})" for t in TEXTS]
    query = f"SELECT y, count(*), {', '.join(asked)} FROM read_csv($path) GROUP BY y ORDER BY y"
    return duckdb.connect().execute(query, {"path": path}).fetchall()


def all_counts(path: str) -> int:
    """DuckDB's sums of the numbers, and the count of every different text by class, from a table made of the file."""
    con = duckdb.connect()
    con.execute("CREATE TEMP TABLE rows AS FROM read_csv($path)", {"path": path})
    sums = ", ".join(f"count({n}), sum({n}), sum({n} * {n})" for n in NUMBERS)
    con.execute(f"SELECT y, count(*), {sums} FROM rows GROUP BY y").fetchall()
    return sum(
        len(con.execute(f"SELECT y, {c}, count(*) FROM rows GROUP BY ALL").fetchall()) for c in CATEGORIES + TEXTS
    )


def raw_text(scale: float) -> tuple[Any, str, Callable[[], Any]]:
    given, target = texts(max(int(MESSAGES * scale), 200))
    frame = pd.DataFrame({"text": given, "target": target})
    return frame, "target", lambda: MultinomialNB().fit(CountVectorizer().fit_transform(frame["text"]), frame["target"])


def mixed_frame(scale: float) -> tuple[Any, str, Callable[[], Any]]:
    frame, theirs = mixed(scale)
    return frame, "y", theirs


def long_csv(scale: float) -> tuple[Any, str, Callable[[], Any]]:
    return table(scale), "y", lambda: one_pass(table(scale))


CASES = {"raw text": raw_text, "mixed frame": mixed_frame, "CSV": long_csv}


def road(case: str, **options: Any) -> Callable[[float], Case]:
    """The way from the data to a model, beside the peer's."""

    def make(scale: float) -> Case:
        data, target, theirs = CASES[case](scale)

        def ours() -> tb.Model:
            return tb.fit(data, target, **options)

        def agree() -> bool:
            tally, rows = ours().tally, pl.read_csv(data).height if case == "CSV" else len(data)
            if case != "CSV":
                return tally.rows == rows
            sums = {row[0]: row[1:] for row in one_pass(data)}
            means = all(
                np.isclose(tally.moments(n)[y][1], sums[y][2 + 3 * j] / sums[y][1 + 3 * j])
                for y in tally.classes
                for j, n in enumerate(NUMBERS)
            )
            return tally.rows == rows and means

        return Case(ours, theirs, agree)

    return make


SKLEARN, BINNED = "CountVectorizer + MultinomialNB", "imputers + bins + CategoricalNB"
ROADS = [
    Item("whole road: raw text", 20, SKLEARN, road("raw text", calibrate=False), None, True),
    Item("whole road: mixed frame", 10, BINNED, road("mixed frame", calibrate=False), None, True),
    Item("whole road: CSV, 1 M rows", 1 / 1.6, "DuckDB, one pass", road("CSV", calibrate=False), None, True),
    Item("whole road with choosing: raw text", 0, SKLEARN, road("raw text"), None, True),
    Item("whole road with choosing: mixed frame", 0, BINNED, road("mixed frame"), None, True),
    Item("whole road with choosing: CSV, 1 M rows", 0, "DuckDB, one pass", road("CSV"), 6.0, True),
]


# ---- the parts, each case in a process of its own


def peak() -> float:
    """The most memory held so far, in megabytes."""
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def best(way: Callable[[], Any], rounds: int) -> float:
    found = []
    for _ in range(rounds):
        start = time.process_time()
        way()
        found.append(time.process_time() - start)
    return min(found)


def alone(case: str, scale: float, rounds: int, default: bool) -> None:
    """One case in this process: a line of the table."""
    data, target, theirs = CASES[case](scale)
    pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = peak()
    model = tb.fit(data, target, calibrate=False)
    held = peak() - before
    schema = tb.infer(data, target)
    parts = [
        best(lambda: tb.infer(data, target), rounds),
        best(lambda: tb.count(data, schema), rounds),
        best(lambda: tb.fit(data, target, calibrate=False), rounds),
    ]
    peers = [best(theirs, rounds)] + ([best(lambda: all_counts(data), 1)] if case == "CSV" else [])
    cells = [case, f"{model.tally.rows:,}", *(f"{s:.2f}" for s in parts), " / ".join(f"{s:.2f}" for s in peers)]
    cells += [" / ".join(f"{s / parts[2]:.1f} ×" for s in peers), f"{held:.0f}"]
    if default:
        pathlib.Path("/proc/self/clear_refs").write_text("5")
        seconds = best(lambda: tb.fit(data, target), 1)
        cells += [f"{seconds:.1f}", f"{peak() - before:.0f}"]
    print(f"| {' | '.join(cells)} |", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of rows")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--default", action="store_true", help="also the default, which chooses by held-out rows")
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.here:
        alone(given.only, given.scale, given.rounds, given.default)
        return
    columns = ["case", "rows", "infer, s", "count, s", "whole road, s", "peer, s", "ratio", "peak, MB"]
    columns += ["with choosing, s", "peak, MB"] if given.default else []
    print(f"| {' | '.join(columns)} |\n|{'---|' * len(columns)}", flush=True)
    for case in (c for c in CASES if given.only in c):
        asked = ["--here", f"--only={case}", f"--scale={given.scale}", f"--rounds={given.rounds}"]
        made = {MADE: table(given.scale)} if case == "CSV" else {}
        subprocess.run(
            [sys.executable, __file__, *asked, *["--default"] * given.default], check=True, env={**os.environ, **made}
        )


if __name__ == "__main__":
    main()
