"""Threads over batches give the tally of one thread, and a stream is never held in memory."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.base import threads as workers


def rows(n: int = 5000) -> dict:
    rng = np.random.default_rng(70)
    return {"x": rng.normal(size=n) * 1e6, "c": rng.choice(list("abc"), n), "y": rng.choice(["u", "v"], n)}


@pytest.mark.parametrize("count", ["1", "2", "7"])
def test_any_number_of_threads_gives_one_digest(count: str, monkeypatch: pytest.MonkeyPatch) -> None:
    data = rows()
    schema = tb.infer(data, "y")
    expected = tb.count(data, schema).digest
    monkeypatch.setattr("tallybayes.data.sources.BATCH_ROWS", 101)
    monkeypatch.setenv("TALLYBAYES_THREADS", count)
    assert tb.count(data, schema).digest == expected


def test_a_stream_is_read_a_few_items_ahead(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBAYES_THREADS", "2")
    read = []

    def items():
        for i in range(1000):
            read.append(i)
            yield i

    done = workers.each(lambda i: i * i, items())
    assert [next(done) for _ in range(10)] == [i * i for i in range(10)]
    assert len(read) < 30
    assert list(done) == [i * i for i in range(10, 1000)]


def test_an_error_in_any_batch_comes_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallybayes.data.sources.BATCH_ROWS", 100)
    monkeypatch.setenv("TALLYBAYES_THREADS", "2")
    data = {**rows(1000), "x": [*map(float, range(700)), "seven", *map(float, range(299))]}
    schema = tb.Schema([tb.Column("x", "number")], target="y")
    with pytest.raises(tb.DataError, match="column 'x', row 700 "):
        tb.count(data, schema)
    assert threading.active_count() < 10


@pytest.mark.parametrize("wish", ["0", "two", "-1"])
def test_a_wish_that_is_no_number_is_refused(wish: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBAYES_THREADS", wish)
    with pytest.raises(tb.SettingsError, match="TALLYBAYES_THREADS"):
        workers.threads()


FIRST_FIT = """
import numpy as np, tallybayes as tb
from threadpoolctl import threadpool_info
from tallybayes.selection.choose import penalised
descend, seen = penalised.descend, set()
def watched(*given):
    out = descend(*given)
    seen.update((lib["filepath"], lib["num_threads"]) for lib in threadpool_info() if lib["user_api"] == "blas")
    return out
penalised.descend = watched
rng = np.random.default_rng(0)
tb.fit({"x": rng.normal(size=150), "c": rng.choice(list("ab"), 150), "y": rng.choice(["u", "v"], 150)}, target="y")
assert {n for _, n in seen} == {1}, seen  # of NumPy's library, and of SciPy's, which the first fit loads
"""


def test_the_first_fit_of_a_process_keeps_linear_algebra_on_one_thread_too() -> None:
    threads = {f"{name}_NUM_THREADS": "2" for name in ("OPENBLAS", "MKL", "OMP")}
    subprocess.run([sys.executable, "-c", FIRST_FIT], check=True, env={**os.environ, **threads})
