"""Counting a table of categories and numbers on a cluster, beside MLlib's NaiveBayes on the same rows.

    python benchmarks/spark.py [--rows 2000000] [--repeats 3]

Both read the same Parquet files on the same local cluster of two executors with one core each. MLlib gets what it
needs: StringIndexer for the texts, VectorAssembler, then NaiveBayes (gaussian). The two take turns, after a warm-up;
the best time of each counts. Needs Java and pyspark.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import tallybayes as tb

CATEGORIES, NUMBERS, FILES = 6, 6, 8


def write(folder: Path, rows: int) -> None:
    """The table in several files, so that Spark has partitions to share out."""
    rng = np.random.default_rng(0)
    for i in range(FILES):
        n = rows // FILES
        y = rng.integers(0, 4, n)
        columns = {"label": pa.array(np.array(["north", "east", "south", "west"])[y])}
        for j in range(CATEGORIES):
            values = np.array([f"value {v}" for v in range(5 + 10 * j)])
            columns[f"category{j}"] = pa.array(values[(y + rng.integers(0, len(values), n)) % len(values)])
        for j in range(NUMBERS):
            columns[f"number{j}"] = pa.array(rng.normal(y * 0.3, 1 + j, n))
        pq.write_table(pa.table(columns), folder / f"part{i}.parquet")


def session():
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join(p for p in sys.path if p),
    }
    builder = SparkSession.builder.master("local-cluster[2,1,1024]")
    for name, value in settings.items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    return spark


def mllib(frame):
    """MLlib's way: texts to numbers, one vector, then the fit."""
    from pyspark.ml import Pipeline
    from pyspark.ml.classification import NaiveBayes
    from pyspark.ml.feature import StringIndexer, VectorAssembler

    texts = [f"category{j}" for j in range(CATEGORIES)]
    numbers = [f"number{j}" for j in range(NUMBERS)]
    stages = [
        StringIndexer(inputCols=[*texts, "label"], outputCols=[*(f"{t}_i" for t in texts), "label_i"]),
        VectorAssembler(inputCols=[*(f"{t}_i" for t in texts), *numbers], outputCol="features"),
        NaiveBayes(modelType="gaussian", labelCol="label_i"),
    ]
    return Pipeline(stages=stages).fit(frame)


def processor_seconds() -> float:
    """What this process and everything started from it have used: driver, executors and their Python workers."""
    parents, used = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            status = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        parents[int(folder.name)], used[int(folder.name)] = int(status[1]), sum(map(int, status[11:15]))

    def ours(pid: int) -> bool:
        while pid > 1 and pid != os.getpid():
            pid = parents.get(pid, 1)
        return pid == os.getpid()

    return sum(ticks for pid, ticks in used.items() if ours(pid)) / os.sysconf("SC_CLK_TCK")


def timed(work, *given) -> tuple[float, float]:
    """Seconds by the clock, and processor seconds, which other work on the machine does not stretch."""
    start, used = time.perf_counter(), processor_seconds()
    work(*given)
    return time.perf_counter() - start, processor_seconds() - used


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=2_000_000)
    parser.add_argument("--repeats", type=int, default=3)
    args = parser.parse_args()
    spark = session()
    with tempfile.TemporaryDirectory() as name:
        write(Path(name), args.rows)
        frame = spark.read.parquet(name)
        schema = tb.infer(frame, target="label")
        ours, theirs = [], []
        for _ in range(2 + args.repeats):  # the first two rounds warm both up
            ours.append(timed(tb.count, frame, schema))
            theirs.append(timed(mllib, frame))
            print(
                f"tallybayes {ours[-1][0]:6.2f} s, {ours[-1][1]:6.2f} of a processor   "
                f"MLlib {theirs[-1][0]:6.2f} s, {theirs[-1][1]:6.2f} of a processor",
                flush=True,
            )
        tally = tb.count(frame, schema)
        same = tally.digest == tb.count(pq.read_table(name), schema).digest
    print(f"{args.rows:,} rows, {CATEGORIES} categories, {NUMBERS} numbers; the best of {args.repeats}:")
    for what, at in (("by the clock", 0), ("of a processor", 1)):
        mine, other = (min(t[at] for t in times[2:]) for times in (ours, theirs))
        print(f"{mine:.2f} s against {other:.2f} s of MLlib's {what}: ratio {mine / other:.2f}")
    print(f"digest equal to that of one machine: {same}")
    spark.stop()


if __name__ == "__main__":
    main()
