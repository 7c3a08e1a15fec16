"""Ten folds × twenty smoothings from raw text, against one fit and one scoring pass over the same rows.

    python benchmarks/cross_validation.py [every nth row of 20 Newsgroups, default 2]

The two are timed in turn, in one process; the claim is that the ratio is at most three.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq

import tallybayes as tb

FOLDER = Path(os.environ.get("TALLYBAYES_DATA") or Path(__file__).resolve().parents[2] / "shared" / "data")
SCHEMA = tb.Schema([tb.Column("text", "text")], target="target")
SETTINGS = [tb.Settings(smoothing=tb.Laplace(float(a))) for a in np.geomspace(0.001, 1.0, 20)]


def main() -> None:
    step = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    table = pq.read_table(FOLDER / "newsgroups20.parquet", columns=["text", "target"])
    data = {name: table[name].to_pylist()[::step] for name in table.column_names}
    few = {name: column[:400] for name, column in data.items()}
    tb.count(few, SCHEMA).model().predict_proba(few)  # compile
    tb.cross_validate(few, SCHEMA, settings=SETTINGS[:2], stratify=True)
    ratios = []
    for _ in range(5):
        start = time.perf_counter()
        tb.count(data, SCHEMA).model().predict_proba(data)
        middle = time.perf_counter()
        tb.cross_validate(data, SCHEMA, settings=SETTINGS)
        one, many = middle - start, time.perf_counter() - middle
        ratios.append(many / one)
        print(f"fit and score {one:.2f} s, 10 folds × 20 settings {many:.2f} s, ratio {many / one:.2f}", flush=True)
    print(f"{len(data['text']):,} rows: ratio {min(ratios):.2f} to {max(ratios):.2f}")


if __name__ == "__main__":
    main()
