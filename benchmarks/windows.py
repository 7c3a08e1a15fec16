"""Windows and change over time: exact, quick, safe on the disk, and how often a change is found where there is one.

    python benchmarks/windows.py [exact] [speed] [kill] [level] [counts] [power] [river] [--runs 1000] [--rows 10000000]

exact   random windows of random data, late rows, forgotten rows and decay among them: digests equal to counting anew
speed   a day of rows by hour: one hour comes and one leaves, beside counting the window anew (processor time)
kill    a process that adds rows to a folder is killed (SIGKILL) at random times: the folder has all or none of an add
level   `tb.change` on rows that did not change: how often it says that something did
counts  the same of the counts of four columns and the class, made without rows, so that many shapes can be tried
power   one of 20 columns moves by 0.3 standard deviations: how often it is found, and named with its time
river   sums that river takes back in floating point beside exact ones; needs river in the environment that runs this
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
import time
import warnings
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import tallybayes as tb
from tallybayes.model.joint.dependence import holm
from tallybayes.selection.over_time.deals import chance_of_any

DAY = 86_400


def some_rows(rng: np.random.Generator, n: int, days: int = 3) -> dict[str, Any]:
    """Numbers, values, missing ones and rows without a label, over some days."""
    return {
        "x": np.where(rng.random(n) < 0.1, np.nan, np.round(rng.normal(size=n) * 10.0 ** rng.integers(-3, 4), 3)),
        "c": rng.choice(np.array(["a", "b", "c", None], dtype=object), n),
        "y": rng.choice(np.array(["p", "q", None], dtype=object), n, p=[0.5, 0.4, 0.1]),
        "t": np.datetime64("2024-02-27", "s") + rng.integers(0, DAY * days, n),
    }


def taken(rows: dict[str, Any], which: Any) -> dict[str, Any]:
    return {name: column[which] for name, column in rows.items()}


def exact(runs: int) -> int:
    """How many of so many windows do not have the digest of their rows counted anew."""
    rng, wrong, made = np.random.default_rng(0), 0, 0
    while made < runs:
        rows = some_rows(rng, int(rng.integers(50, 2000)))
        schema = tb.infer(rows, "y", kinds={"t": "ignore"})
        by, unit = [("hour", "h"), ("day", "D"), ("month", "M")][rng.integers(3)]
        number = rows["t"].astype(f"M8[{unit}]").astype(np.int64)
        windows = tb.Windows(schema, by=by, time="t")
        late = rng.permutation(len(number))  # rows come in any order, in a few pieces
        for piece in np.array_split(late, 4):
            windows.add(taken(rows, piece))
        gone = rng.random(len(number)) < 0.05
        if gone.any():
            windows.forget(taken(rows, gone))
        rows, number = taken(rows, ~gone), number[~gone]
        schema = windows.schema
        for _ in range(20):
            low, high = np.sort(rng.integers(number.min() - 1, number.max() + 2, 2)).tolist()
            inside = (number >= low) & (number < high)
            found = windows.window(windows.name(low), windows.name(high))
            wrong += found.digest != tb.Tally.of(schema, taken(rows, inside)).digest
            life = int(rng.integers(max((number.max() - number.min()) // 40, 1), 30))
            age = np.maximum((high - 1 - number) // life, 0)
            inside = number < high
            decayed = windows.decayed(life, end=windows.name(high))
            again = tb.Tally.of(schema, taken(rows, inside), weights=2.0 ** -age[inside].astype(np.float64))
            wrong += decayed.digest != again.digest
            made += 1
    return wrong


def spent(work: Any, times: int = 5) -> float:
    """Processor time of the quickest of some runs."""
    best = np.inf
    for _ in range(times):
        start = time.process_time()
        work()
        best = min(best, time.process_time() - start)
    return best


def speed(n: int) -> dict[str, float]:
    rng = np.random.default_rng(0)
    seconds = np.sort(rng.integers(0, DAY + 3600, n * 25 // 24))  # a day, and the hour after it
    n = len(seconds)
    rows = {
        "x": np.round(rng.normal(size=n), 2),
        "z": rng.normal(size=n),
        "c": pa.DictionaryArray.from_arrays(
            rng.integers(0, 20, n).astype(np.int32), pa.array([f"v{i}" for i in range(20)])
        ),
        "y": pa.DictionaryArray.from_arrays(rng.integers(0, 2, n).astype(np.int32), pa.array(["p", "q"])),
        "t": np.datetime64("2024-01-01", "s") + seconds,
    }
    schema = tb.infer(taken(rows, slice(100_000)), "y", kinds={"t": "ignore"})
    day, first = np.searchsorted(seconds, [DAY, 3600])
    tb.Tally.of(schema, taken(rows, slice(100_000)))  # kernels are compiled
    out = {"the window counted anew": spent(lambda: tb.Tally.of(schema, taken(rows, slice(first, None))), 3)}
    windows = tb.Windows(schema, by="hour", time="t")
    out["a day counted by hour"] = spent(lambda: windows.add(taken(rows, slice(day))), 1)
    windows.last(24)
    out["the next hour counted"] = spent(lambda: windows.add(taken(rows, slice(day, None))), 1)
    sums = windows._sums
    kept = sums._asked

    def moved() -> None:
        sums._asked = kept
        windows.last(24)

    out["one hour comes, one leaves"] = spent(moved)
    assert windows.last(24).digest == tb.Tally.of(schema, taken(rows, slice(first, None))).digest

    def asked() -> None:
        sums._asked = None
        windows.last(24)

    out["any 24 hours by the tree"] = spent(asked)
    out["a decayed day"] = spent(lambda: windows.decayed(3))
    return out


ADDING = """
import sys, tallybayes as tb
windows = tb.Windows.load(sys.argv[1])
while True:
    windows.add({"c": ["a", "b", "c", "d"] * 6, "y": ["p", "q"] * 12, "hour": list(range(24))})
    windows.save(sys.argv[1])
    print("saved", flush=True)
"""


def kill(runs: int) -> tuple[int, int]:
    """How many of so many kills lost a period, halved an add or lost one that was saved; and how many were saved."""
    rng, wrong = np.random.default_rng(0), 0
    schema = tb.Schema([tb.Column("c", "category")], target="y")
    with tempfile.TemporaryDirectory() as folder:
        windows = tb.Windows(schema, by="number", time="hour")
        windows.add({"c": ["a"] * 24, "y": ["p"] * 24, "hour": list(range(24))})
        windows.save(folder)
        known = 1  # rows that every period has at least
        for _ in range(runs):
            work = subprocess.Popen([sys.executable, "-c", ADDING, folder], stdout=subprocess.PIPE)
            assert work.stdout is not None
            for _ in range(rng.integers(1, 4)):
                work.stdout.readline()
                known += 1
            time.sleep(rng.uniform(0.0, 0.1))
            work.send_signal(signal.SIGKILL)
            work.wait()
            rows = [tally.rows for _, tally in tb.Windows.load(folder)]
            wrong += len(rows) != 24 or len({*rows}) != 1 or rows[0] < known
            known = rows[0]
    return wrong, known - 1


def twenty(rng: np.random.Generator, periods: int, each: int) -> dict[str, Any]:
    """20 columns of three kinds that tell something of the class, and tell the same in every period."""
    n = periods * each
    y = rng.random(n) < 0.4
    rows: dict[str, Any] = {f"number {i}": rng.normal(size=n) + 0.5 * y for i in range(10)}
    rows |= {f"count {i}": rng.poisson(2.0 + y) for i in range(4)}
    rows |= {f"value {i}": np.array(list("abcdef"))[np.minimum(rng.geometric(0.4, n) - 1, 5)] for i in range(4)}
    rows |= {f"flag {i}": rng.random(n) < 0.2 + 0.1 * y for i in range(2)}
    return {**rows, "y": np.where(y, "p", "q"), "period": np.repeat(np.arange(periods), each)}


def scanned(rng: np.random.Generator, periods: int, each: int, move: float = 0.0) -> tuple[tb.Changes, int]:
    rows = twenty(rng, periods, each)
    at = int(rng.integers(1, periods))
    rows["number 3"] = rows["number 3"] + move * (rows["period"] >= at)
    windows = tb.Windows(twenty_schema(), by="number", time="period")
    windows.add(rows)
    return tb.change(windows), at


@cache
def twenty_schema() -> tb.Schema:
    return tb.infer(twenty(np.random.default_rng(0), 1, 5000), "y", kinds={"period": "ignore"})


def level(runs: int, periods: int, each: int) -> float:
    rng = np.random.default_rng(1)
    return sum(bool(scanned(rng, periods, each)[0].changed) for _ in range(runs)) / runs


FOUR = ("number", "ties", "two", "fifty")


def counted(rng: np.random.Generator, kind: str, rows: np.ndarray) -> tuple[np.ndarray, int]:
    """Counts of a column, periods × slots × classes, the last slot for missing values; how many are ordered."""
    period = np.repeat(np.arange(len(rows)), rows)
    n = len(period)
    y = (rng.random(n) < 0.4).astype(int)
    if kind == "number":  # 64 cells of about equal frequency
        slot, slots = np.argsort(np.argsort(rng.normal(size=n) + 0.5 * y)) * 64 // n, 64
    elif kind == "ties":
        slot = rng.poisson(2.0 + y)
        slots = int(slot.max()) + 1
    elif kind == "two":
        slot, slots = (rng.random(n) < 0.2 + 0.1 * y).astype(int), 2
    else:
        share = 1 / np.arange(1, 51)
        slot, slots = (rng.choice(50, size=n, p=share / share.sum()) + y) % 50, 50
    table = np.zeros((len(rows), slots + 1, 2))
    np.add.at(table, (period, slot, y), 1.0)
    return table, slots if kind in ("number", "ties") else 0


def level_of_counts(runs: int, periods: int, each: int, uneven: bool = False) -> float:
    """How often any of four columns or the class is said to change; uneven periods have up to thirty times the rows."""
    rng, alarms = np.random.default_rng([8, periods, each]), 0
    for _ in range(runs):
        rows = np.full(periods, each)
        if uneven:
            shares = rng.permutation(np.geomspace(1, 30, periods))
            rows = np.rint(shares / shares.mean() * each).astype(int)
        tables = [counted(rng, kind, rows) for kind in FOUR]
        tables.append((tables[-1][0].sum(axis=1)[:, :, None], 0))
        p = holm([chance_of_any(table, ordered, len(tables)) for table, ordered in tables])
        alarms += min(v for v in p if v is not None) < 0.05
    return alarms / runs


def power(runs: int, periods: int, each: int) -> tuple[float, float]:
    """How often the change is found, and how often named first, with its time."""
    rng, found, right = np.random.default_rng(2), 0, 0
    for _ in range(runs):
        changes, at = scanned(rng, periods, each, 0.3)
        first = changes.columns[0]
        found += changes["number 3"].verdict == "changed"
        right += (first.column, first.when) == ("number 3", str(at)) and first.verdict == "changed"
    return found / runs, right / runs


def river(n: int = 20_000, window: int = 100) -> dict[str, float]:
    """The worst relative error of a rolling variance over readings that jump between scales, ours and river's."""
    from river import stats, utils

    rng = np.random.default_rng(0)
    x = rng.normal(size=n) * np.where(np.arange(n) // 1000 % 2, 1.0, 1e8)
    start = time.process_time()
    rolling, theirs = utils.Rolling(stats.Var, window_size=window, ddof=0), np.empty(n // window)
    for i, value in enumerate(x.tolist()):
        rolling.update(value)
        if i % window == window - 1:
            theirs[i // window] = rolling.get()
    their_time = time.process_time() - start
    schema = tb.Schema([tb.Column("x", "number", cells=None)], target="y")
    start = time.process_time()
    windows, ours = tb.Windows(schema, by=window), np.empty(n // window)
    for i in range(0, n, window):
        windows.add({"x": x[i : i + window], "y": ["all"] * window})
        ours[i // window] = windows.last(1).moments("x")["all"][2]
    our_time = time.process_time() - start
    truth = np.array([np.var(part.astype(np.longdouble)) for part in x.reshape(-1, window)]).astype(np.float64)
    return {
        "worst error, river": float(np.abs(theirs / truth - 1).max()),
        "worst error, tallybayes": float(np.abs(ours / truth - 1).max()),
        "variances below zero, river": float((theirs < 0).sum()),
        "seconds, river": their_time,
        "seconds, tallybayes": our_time,
    }


def main() -> None:
    parser = argparse.ArgumentParser()
    names = ["exact", "speed", "kill", "level", "counts", "power", "river"]
    parser.add_argument("what", nargs="*", default=names, choices=names)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument(
        "--shapes", nargs="*", default=["2x1000", "12x500", "24x200", "48x50"], help="PERIODSxROWS of each"
    )
    given = parser.parse_args()
    warnings.simplefilter("ignore", tb.TallybayesWarning)
    if "exact" in given.what:
        print(f"{exact(given.runs)} of {2 * given.runs:,} digests, windows and decayed ones, are not those of counting")
    if "speed" in given.what:
        found = speed(given.rows)
        for name, seconds in found.items():
            print(f"{name:30} {seconds * 1000:10.2f} ms  {seconds / found['the window counted anew']:8.3%}")
    if "kill" in given.what:
        kills = min(given.runs, 100)
        print("{} of {} kills lost or halved an add; {} adds".format(*np.insert(kill(kills), 1, kills)))
    shapes = [tuple(map(int, shape.split("x"))) for shape in given.shapes]
    for periods, each in shapes if "level" in given.what else ():
        print(f"level, {periods} periods of {each}: {level(given.runs, periods, each):.1%} of {given.runs:,} runs")
    for periods, each in shapes if "counts" in given.what else ():
        for uneven in (False, True):
            share = level_of_counts(given.runs, periods, each, uneven)
            print(
                f"level of counts, {periods} {'uneven ' * uneven}periods of {each}: {share:.1%} of {given.runs:,} runs"
            )
    for periods, each in shapes if "power" in given.what else ():
        found = power(given.runs, periods, each)
        print(f"power, {periods} periods of {each}: {found[0]:.1%}, column and time right {found[1]:.1%}")
    if "river" in given.what:
        for name, value in river().items():
            print(f"{name:30} {value:.3g}")


if __name__ == "__main__":
    os.environ.setdefault("TALLYBAYES_THREADS", "1")
    main()
