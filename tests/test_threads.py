"""Eight threads that update, forget, ask, pickle and save one model at once: every digest is that of its own rows."""

from __future__ import annotations

import pickle
import random
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import soak
from strategies import ALL

import tallybayes as tb

THREADS = 8
SECONDS = 30.0 if ALL else 2.0  # for each seed and way to fit
SEEDS = range(4 if ALL else 1)


@pytest.fixture(autouse=True)
def impatient() -> Iterator[None]:
    """Threads that take turns a hundred times as often as usual."""
    usual = sys.getswitchinterval()
    sys.setswitchinterval(usual / 100)
    yield
    sys.setswitchinterval(usual)


class Shared:
    """A model that nobody has asked yet, its rows, and what is known of them by counting anew."""

    def __init__(self, model: tb.Model, rows: list[soak.Row], rng: random.Random) -> None:
        self.model, self.rows = model, rows
        self.asked = [soak.row(rng) for _ in range(40)]
        again = tb.count(soak.table(rows), model.schema).model(model.settings)
        self.probabilities = again.predict_proba(soak.table(self.asked))
        self.ready = threading.Barrier(THREADS)


def same(model: tb.Model, rows: list[soak.Row]) -> None:
    assert model.tally is not None
    assert model.tally.digest == tb.count(soak.table(rows), model.schema).digest


def load(shared: Shared, rng: random.Random, path: Path) -> tuple[tb.Model, list[soak.Row]]:
    """What one thread does to the model, all of it checked; a descendant of the model, and the rows that it has."""
    steps = [ask_one, ask_many, copied, saved, up_and_down, fewer, more]
    rng.shuffle(steps)
    shared.ready.wait()
    out = shared.model, shared.rows
    for step in steps:
        out = step(shared, rng, path) or out
    return out


def ask_one(shared: Shared, rng: random.Random, path: Path) -> None:
    i = rng.randrange(len(shared.asked))
    found = shared.model.predict_proba(shared.asked[i])[0]
    np.testing.assert_allclose(found, shared.probabilities[i], rtol=1e-9, atol=1e-12)
    assert shared.model.predict(shared.asked[i])[0] == shared.model.classes[int(np.argmax(found))]


def ask_many(shared: Shared, rng: random.Random, path: Path) -> None:
    np.testing.assert_array_equal(shared.model.predict_proba(soak.table(shared.asked)), shared.probabilities)


def copied(shared: Shared, rng: random.Random, path: Path) -> None:
    same(pickle.loads(pickle.dumps(shared.model)), shared.rows)


def saved(shared: Shared, rng: random.Random, path: Path) -> None:
    shared.model.save(path)
    same(tb.load(path), shared.rows)


def up_and_down(shared: Shared, rng: random.Random, path: Path) -> None:
    """Many small steps on from the model, which others take, too, and all the way back."""
    new = [soak.row(rng) for _ in range(rng.randint(1, 12))]
    model = shared.model
    for one in new:
        model = model.update(one, new_classes="allow")
    if rng.random() < 0.5:
        same(model, [*shared.rows, *new])
    rng.shuffle(new)
    for one in new:
        model = model.forget(one)
    same(model, shared.rows)


def fewer(shared: Shared, rng: random.Random, path: Path) -> tuple[tb.Model, list[soak.Row]]:
    rows = shared.rows.copy()
    rng.shuffle(rows)
    model = shared.model.forget(rows[0]).forget(rows[1]).forget(soak.table(rows[2:8]))
    same(model, rows[8:])
    return model, rows[8:]


def more(shared: Shared, rng: random.Random, path: Path) -> tuple[tb.Model, list[soak.Row]]:
    new = [soak.row(rng) for _ in range(8)]
    model = shared.model.update(soak.table(new[:6])).update(new[6]).update(new[7])
    if rng.random() < 0.5:
        same(model, [*shared.rows, *new])
    return model, [*shared.rows, *new]


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("chosen", [True, False], ids=["all that fit chooses", "counts alone"])
def test_threads_share_one_model(chosen: bool, seed: int, tmp_path: Path) -> None:
    rng = random.Random(seed)
    rows = [soak.row(rng) for _ in range(250)]
    model, rounds = tb.fit(soak.table(rows), soak.TARGET, calibrate=None if chosen else False), 0
    failed: list[BaseException] = []
    end = time.monotonic() + SECONDS
    while time.monotonic() < end and not failed:
        shared, found = Shared(model.update(new := soak.row(rng)), [*rows, new], rng), dict[int, Any]()

        def work(i: int, shared: Shared = shared, found: dict[int, Any] = found, seed: float = rng.random()) -> None:
            try:
                found[i] = load(shared, random.Random(f"{seed} {i}"), tmp_path / f"{i}.tb.parquet")
            except BaseException as error:
                shared.ready.abort()
                failed.append(error)

        workers = [threading.Thread(target=work, args=(i,)) for i in range(THREADS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if not failed:
            same(shared.model, shared.rows)
            model, rows = found[rng.randrange(THREADS)]
            rounds += 1
    if failed:
        raise next((e for e in failed if not isinstance(e, threading.BrokenBarrierError)), failed[0])
    assert rounds > 0
