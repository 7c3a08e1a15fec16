"""A model under a long load: `make soak`, for an hour unless SOAK_MINUTES says otherwise; tests run some seconds of it.

Rows are learnt, forgotten, asked, saved, loaded, pickled and merged in a random order, with new words and values all
the time. Beside the model stands its plain reference: the list of the rows that were not forgotten. Every so often
these are counted anew, and digest and answers must be the same to the last bit. Memory, open files and threads must
stay flat.
"""

from __future__ import annotations

import argparse
import ctypes
import gc
import json
import os
import pickle
import random
import resource
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

import tallybayes as tb

Row = dict[str, Any]
TARGET, CLASSES = "play", ("yes", "no", "so")
FEWEST, MOST = 150, 600  # rows that are counted at any time
CHECK_EVERY = 50  # steps
LEAST_ROUNDS = 2  # however long they take
ROOM = 3 << 30  # bytes of addresses beyond those taken when the load begins; beyond them there is no memory
WARM = 0.25  # of the time, in which caches fill
MOST_GROWTH = 24 << 20  # bytes from the warm start to the end; a run of 25 minutes measured −0.3 MB


def row(rng: random.Random) -> Row:
    """A row of every kind that tables have, in which nothing is sure to be there, or to have been there before."""
    label = rng.choice(CLASSES)
    likes = {"yes": "sunny", "no": "rainy", "so": "grey"}[label]
    words = ["good" if label == "yes" else "bad", *(f"w{int(rng.paretovariate(0.3)) % 10**9}" for _ in range(4))]
    values = {
        "sky": likes if rng.random() < 0.6 else rng.choice(["sunny", "rainy", "grey", f"odd{rng.randrange(10**6)}"]),
        "temp": rng.gauss(len(label) * 5, 3) if rng.random() < 0.9 else 10.0 ** rng.randrange(-300, 300),
        "wind": rng.randrange(12),
        "note": " ".join(words),
        "day": f"20{rng.randrange(10, 30)}-0{rng.randrange(1, 10)}-1{rng.randrange(10)}",
    }
    return {n: None if rng.random() < 0.05 else v for n, v in values.items()} | {TARGET: label}


def table(rows: Sequence[Row]) -> dict[str, list[Any]]:
    """The same rows column by column."""
    return {name: [r[name] for r in rows] for name in rows[0]}


class Load:
    """A model under load, and the rows that it has counted."""

    def __init__(self, model: tb.Model, rows: list[Row], rng: random.Random, folder: Path) -> None:
        self.model, self.rows, self.rng = model, rows, rng
        self.path = folder / "model.tb.parquet"
        self.data = folder / "rows.jsonl"
        self.steps: list[Callable[[], None]] = [
            *([self.update_one, self.forget_one, self.predict_one] * 3),
            *([self.update_many, self.forget_many, self.predict_many] * 2),
            *(self.refuse, self.save_and_load, self.pickled, self.merge, self.update_from_file, self.explain),
        ]

    def step(self) -> str:
        """Do one thing; its name."""
        step = self.rng.choice(self.steps)
        if len(self.rows) > MOST:
            step = self.forget_many
        if len(self.rows) < FEWEST:
            step = self.update_many
        step()
        return step.__name__

    def new(self, most: int = 20) -> list[Row]:
        return [row(self.rng) for _ in range(self.rng.randint(1, most))]

    def taken(self, most: int) -> list[Row]:
        self.rng.shuffle(self.rows)
        out, self.rows = self.rows[:most], self.rows[most:]
        return out

    def update_one(self) -> None:
        self.rows.append(new := row(self.rng))
        self.model = self.model.update(new, new_classes="allow")

    def update_many(self) -> None:
        self.rows += (new := self.new())
        self.model = self.model.update(table(new) if self.rng.random() < 0.5 else new, new_classes="allow")

    def update_from_file(self) -> None:
        self.rows += (new := self.new())
        self.data.write_text("".join(json.dumps(r) + "\n" for r in new))
        self.model = self.model.update(self.data, new_classes="allow")

    def forget_one(self) -> None:
        (gone,) = self.taken(1)
        self.model = self.model.forget(gone)

    def forget_many(self) -> None:
        self.model = self.model.forget(table(self.taken(self.rng.randint(1, 40))))

    def refuse(self) -> None:
        """A row that was never counted, and rows of which one was not: nothing is forgotten."""
        strange = {**row(self.rng), "note": f"never seen {self.rng.random()}"}
        for rows in (strange, [*self.rows[:3], strange]):
            try:
                self.model.forget(rows)
            except tb.CannotForget:
                continue
            raise AssertionError(f"a row was forgotten that was never counted: {strange}")

    def predict_one(self) -> None:
        asked = row(self.rng)
        assert self.model.predict(asked)[0] in CLASSES
        assert abs(self.model.predict_proba(asked).sum() - 1) < 1e-9

    def predict_many(self) -> None:
        asked = self.new(200)
        assert len(self.model.predict(table(asked))) == len(asked) == len(self.model.predict_proba(asked))

    def explain(self) -> None:
        assert str(self.model.explain(row(self.rng)))

    def save_and_load(self) -> None:
        self.model.save(self.path)
        self.model = tb.load(self.path)

    def pickled(self) -> None:
        self.model = pickle.loads(pickle.dumps(self.model))

    def merge(self) -> None:
        """Counted elsewhere and added, by tallies alone."""
        self.rows += (new := self.new())
        assert self.model.tally is not None
        self.model = (self.model.tally + tb.count(new, self.model.schema)).model(self.model.settings)

    def check(self) -> None:
        """The survivors counted anew have the same digest and the same answers."""
        schema, tally = self.model.schema, self.model.tally
        anew = tb.count(table(self.rows), schema)
        assert tally is not None and tally.digest == anew.digest, "another digest than that of the rows counted anew"
        assert tally == anew and tally.rows == len(self.rows)
        asked, fresh = [row(self.rng) for _ in range(20)], anew.model(self.model.settings)
        np.testing.assert_array_equal(self.model.predict_proba(asked), fresh.predict_proba(asked))
        np.testing.assert_allclose(
            self.model.predict_proba(asked[0]), fresh.predict_proba(table(asked))[:1], rtol=1e-9, atol=1e-12
        )


def resident() -> int:
    """The bytes of memory that the process holds, once whatever is free was given back."""
    gc.collect()
    if sys.platform == "linux":
        import pyarrow as pa

        pa.default_memory_pool().release_unused()
        ctypes.CDLL(None).malloc_trim(0)
        return int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[1]) * resource.getpagesize()
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def taken_by_process() -> tuple[int, int, int]:
    """Memory, open files, threads."""
    files = len(os.listdir("/proc/self/fd")) if os.path.exists("/proc/self/fd") else 0
    return resident(), files, threading.active_count()


def limit_memory() -> None:
    """So much more memory and no more: what leaks ends in a MemoryError, not in a machine that swaps."""
    if sys.platform == "linux":
        now = int(Path("/proc/self/statm").read_text(encoding="utf-8").split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (now + ROOM, now + ROOM))


def soak(seconds: float, seed: int, told: Callable[[str], None] = print) -> None:
    """The load for so many seconds, on two models by turns: one with everything that fit chooses, one with receipts."""
    rng = random.Random(seed)
    with tempfile.TemporaryDirectory(prefix="soak-") as folder:
        first = [row(rng) for _ in range(400)]
        default = tb.fit(table(first), TARGET)
        known = tb.fit(table(first), TARGET, calibrate=False, receipts=True)
        loads = [Load(m, first.copy(), rng, Path(folder)) for m in (default, known)]
        limit_memory()
        start = next_told = time.monotonic()
        warm: tuple[int, int, int] | None = None
        done: dict[str, int] = {}
        for number in count():
            now = time.monotonic()
            if now - start > seconds and number >= LEAST_ROUNDS:
                break
            for load in loads:
                for _ in range(CHECK_EVERY):
                    name = load.step()
                    done[name] = done.get(name, 0) + 1
                load.check()
            if warm is None and time.monotonic() - start > WARM * seconds:
                warm = taken_by_process()
            if now >= next_told:
                next_told = now + 60
                memory, files, threads = taken_by_process()
                told(
                    f"{(now - start) / 60:5.1f} min, {sum(done.values()):,} steps, {memory / 2**20:.1f} MB, "
                    f"{files} open files, {threads} threads"
                )
    memory, files, threads = taken_by_process()
    assert warm is not None
    assert set(done) == {s.__name__ for s in loads[0].steps}, f"only {sorted(done)} were done"
    told(f"{sum(done.values()):,} steps; {(memory - warm[0]) / 2**20:+.1f} MB since the warm start; {done}")
    assert memory - warm[0] < MOST_GROWTH, f"memory grew from {warm[0]:,} to {memory:,} bytes"
    assert files <= warm[1] and threads <= warm[2], f"open files and threads: {warm[1:]}, then {(files, threads)}"


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--minutes", type=float, default=60.0)
    arguments.add_argument("--seed", type=int, default=0)
    given = arguments.parse_args()
    warnings.simplefilter("error")
    os.environ.setdefault("TALLYBAYES_KERNELS", "on")  # they take 100 MB whenever they come: before the warm start
    soak(60 * given.minutes, given.seed, lambda line: print(line, flush=True))
