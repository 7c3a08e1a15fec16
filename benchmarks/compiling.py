"""How long the first run on a machine compiles, and how long the second takes to start from the cache.

    python benchmarks/compiling.py

Each line is two fresh processes with a cache of their own; the last one uses every kernel. Processor time, less that
of the same work without kernels.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

WORK = {
    "vectors": "rows(tb.Column('x', 'vector', width=3), np.random.rand(500, 3))",
    "numbers": "rows(tb.Column('n', 'number', cells=tb.Cells.fitted(np.random.rand(500))), {'n': np.random.rand(500)})",
    "codes": "rows(tb.Column('x0', 'category'), np.random.randint(0, 5, (500, 1)))",
    "sparse": "rows(tb.Column('x', 'bag', width=50), scipy.sparse.random(500, 50, 0.1, 'csr'))",
    "words": "words(tb.Tokeniser())",
    "pairs of words": "words(tb.Tokeniser(ngrams=(1, 2)))",
    "letters": "words(tb.Tokeniser(chars=(3, 4)))",
}
_FRESH = """
import time
import numpy as np, scipy.sparse
import tallybayes as tb
def rows(column, data):
    schema = tb.Schema([column], target="y", label_type="int")
    y = np.arange(500) % 2
    model = tb.count({{**data, "y": y}} if isinstance(data, dict) else data, schema,
                     None if isinstance(data, dict) else y).model()
    model.predict(data)
def words(cut):
    texts = [" ".join(f"w{{i * j % 97}}x" for j in range(30)) for i in range(500)]
    data = {{"t": [*texts, "naïve Straße"], "y": ["a", "b", "c"] * 167}}
    tb.count(data, tb.Schema([tb.Column("t", "text", text=cut)], target="y")).model().predict(data)
began = time.process_time()
{work}
print(time.process_time() - began)
"""


def taken(work: str, **environment: str) -> float:
    """The processor time of a piece of work in a fresh process."""
    env = {**os.environ, **environment}
    out = subprocess.run([sys.executable, "-c", _FRESH.format(work=work)], env=env, capture_output=True, text=True)
    if out.returncode:
        raise RuntimeError(out.stderr)
    return float(out.stdout)


def main() -> None:
    """A line for each kind of data, and one for all of them."""
    for name, work in {**WORK, "all of them": "\n".join(WORK.values())}.items():
        with tempfile.TemporaryDirectory() as cache:
            without = taken(work, TALLYBAYES_KERNELS="off")
            first, second = (taken(work, TALLYBAYES_KERNELS="on", NUMBA_CACHE_DIR=cache) - without for _ in range(2))
        print(f"{name:16} first run {first:5.1f} s more, later runs {max(second, 0.0):4.1f} s", flush=True)


if __name__ == "__main__":
    main()
