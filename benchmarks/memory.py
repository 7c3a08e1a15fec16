"""How much memory the default takes beyond the data: tables of many classes, each in a process of its own.

    python benchmarks/memory.py [--only letter] [--rows 40000 --columns 16 --classes 200]

A fit of a few hundred of the rows comes first, so that imports and kernels do not count. What is printed is the peak of
the process during the fit less what it held before, in megabytes; Linux only, as it asks /proc.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa

import tallybayes as tb

DATA = Path(os.environ.get("TALLYBAYES_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
MOST = 14 << 30  # bytes that a process may ask for: an error, not a machine at a standstill
LIMITS = {"made": 1000, "letter": 400, "udhr_languages": 1000}  # megabytes


def made(rows: int, columns: int, classes: int) -> pd.DataFrame:
    """Numbers that each tell some of the classes apart."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, classes, rows)
    frame = pd.DataFrame({f"x{i}": rng.normal(y % (7 + i), 1.0) for i in range(columns)})
    return frame.assign(target=[f"c{v}" for v in y])


def peak() -> float:
    """The most memory held so far, in megabytes; not ru_maxrss, which a new process inherits from its parent."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def measure(frame: pd.DataFrame) -> tuple[float, float, str]:
    """Megabytes beyond what was held before, processor seconds, and the form that was chosen."""
    os.environ["TALLYBAYES_KERNELS"] = "on"  # so that they are loaded, although so few rows do not repay them
    tb.fit(frame.iloc[:300].reset_index(drop=True), target="target")
    del os.environ["TALLYBAYES_KERNELS"]
    pa.default_memory_pool().release_unused()  # what it has left behind would hide what the fit needs
    ctypes.CDLL(None).malloc_trim(0)
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before, started = peak(), time.process_time()
    try:
        found = tb.fit(frame, target="target").settings.calibrated
        form = "as counted" if found is None else found.form
    except MemoryError as error:
        form = f"MemoryError: {error}"
    return peak() - before, time.process_time() - started, form


def alone(name: str, rows: int, columns: int, classes: int) -> None:
    """Measure one table in this process and print its line."""
    resource.setrlimit(resource.RLIMIT_AS, (MOST, MOST))
    frame = made(rows, columns, classes) if name == "made" else pd.read_parquet(DATA / f"{name}.parquet")
    frame = frame.drop(columns="split", errors="ignore")
    held = frame.memory_usage(deep=False).sum() / 2**20
    megabytes, seconds, form = measure(frame)
    n, k = len(frame), frame["target"].nunique()
    limit = LIMITS.get(name, "")
    cells = [name, f"{n:,} × {frame.shape[1] - 1}", k, f"{held:.0f}", f"{megabytes:.0f}", limit, f"{seconds:.1f}", form]
    print(f"| {' | '.join(map(str, cells))} |", flush=True)


def main() -> None:
    """Print a line for every table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument(
        "--only", default="made,letter", help="`made`, or shared tables with a column target, by commas"
    )
    parser.add_argument("--rows", type=int, default=40_000, help="of the table that is made")
    parser.add_argument("--columns", type=int, default=16)
    parser.add_argument("--classes", type=int, default=200)
    parser.add_argument("--here", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")
    if asked.here:
        alone(asked.only, asked.rows, asked.columns, asked.classes)
        return
    print("| table | rows × columns | classes | data, MB | fit, MB | limit, MB | processor s | form |", flush=True)
    print("|---|---|---|---|---|---|---|---|", flush=True)
    for name in asked.only.split(","):
        size = [f"--{what}={getattr(asked, what)}" for what in ("rows", "columns", "classes")]
        subprocess.run([sys.executable, __file__, "--here", f"--only={name}", *size], check=True)


if __name__ == "__main__":
    main()
