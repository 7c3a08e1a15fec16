"""How long a fresh process takes to its first answer: `tallybayes --help`, and one prediction from a saved model.

    python benchmarks/startup.py [times]

Prints the best and the median wall time and the best processor time of so many starts (10), and what was imported. The
budgets are 150 ms for the help and 500 ms for an answer.
"""

from __future__ import annotations

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import numpy as np

import tallybayes as tb

HELP = "from tallybayes.cli import main; main(['--help'])"
ANSWER = "import sys, tallybayes as tb; print(tb.load(sys.argv[1]).predict(eval(sys.argv[2])))"


def models(folder: pathlib.Path) -> dict[str, tuple[pathlib.Path, str]]:
    rng = np.random.default_rng(0)
    y = np.arange(2000) % 3
    table = {f"x{j}": (rng.normal(size=2000) + y * rng.random()).tolist() for j in range(20)}
    table |= {f"c{j}": rng.choice(list("abcde"), 2000).tolist() for j in range(10)}
    words = np.array([f"word{i}" for i in range(5000)])
    texts = [" ".join(words[(rng.zipf(1.3, 50) * (1 + k)) % 5000]) for k in y]
    out = {}
    for name, rows, asked in (
        ("30 columns, 2,000 rows", table, {"x0": 0.5, "x1": 0.1, "c0": "a"}),
        ("text of 5,000 words", {"text": texts}, {"text": "word1 word2 word17"}),
    ):
        path = folder / f"{name.split()[0]}.tb.parquet"
        rows = {**rows, "label": y.tolist()}
        given = {**dict.fromkeys(set(rows) - {"label"}), **asked}
        tb.fit(rows, target="label").save(path)
        out[name] = (path, repr(given))
    return out


def measured(code: str, *arguments: str, times: int) -> tuple[float, float, float]:
    walls, cpus = [], []
    for _ in range(times + 1):
        start, before = time.perf_counter(), os.times()
        subprocess.run([sys.executable, "-c", code, *arguments], check=True, capture_output=True)
        after = os.times()
        walls.append(time.perf_counter() - start)
        cpus.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return min(walls[1:]), statistics.median(walls[1:]), min(cpus[1:])  # the first start fills caches


def main() -> None:
    times = int(sys.argv[1]) if len(sys.argv) > 1 else 10
    print(f"{'':<40} best    median  processor (ms)")
    with tempfile.TemporaryDirectory() as folder:
        cases = {"nothing at all": ("pass",), "tallybayes --help": (HELP,)}
        cases |= {f"one answer, {n}": (ANSWER, str(p), a) for n, (p, a) in models(pathlib.Path(folder)).items()}
        for name, (code, *arguments) in cases.items():
            print(f"{name:<40} " + "  ".join(f"{1000 * v:6.0f}" for v in measured(code, *arguments, times=times)))


if __name__ == "__main__":
    main()
