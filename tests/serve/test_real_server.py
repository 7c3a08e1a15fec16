"""The real server over HTTP, with a model of default effort: killed at any moment, under load, and asked to erase."""

from __future__ import annotations

import http.client
import json
import random
import shutil
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from crossed import KINDS, LABEL, SECRET, SKY, TEMP, WORD, crossed, hers
from real import RealServer, serving
from strategies import ALL

import tallybayes as tb
from tallybayes.serve.desk import Desk

POOL = 120


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with weights, corrections and pairs, of rows among which are hers; others wait for a label."""
    folder = tmp_path_factory.mktemp("real")
    waiting = [{**row, "play": None} for row in crossed(POOL, seed=2)]
    rows = [*crossed(300), *hers(12), *crossed(300, seed=3), *waiting]
    with Desk.begin(folder / "m", rows, target="play", kinds=KINDS) as desk:
        settings = desk.model.settings
        assert settings.weights and settings.corrections
        assert any(column.kind == "pair" for column in desk.model.schema.counted)
    return folder


@pytest.fixture
def path(made: Path, tmp_path: Path) -> Iterator[Path]:
    shutil.copytree(made, tmp_path / "copy")
    yield tmp_path / "copy" / "m"
    shutil.rmtree(tmp_path / "copy")


def kept(desk: Desk) -> dict[int, dict[str, Any]]:
    """The rows that are counted, by id."""
    return {r.id: {**r.values, "play": r.label} for r in desk._journal.all_rows() if r.counted}


# ---- kill -9


class Session:
    """A client that labels, learns and undoes by a plan, and asks again for what it has no answer to."""

    def __init__(self, path: Path, plan: list[tuple[str, int]]) -> None:
        with Desk.open(path) as desk:
            self.rows = list(kept(desk).values())  # from before
            self.pool = [row.id for row in desk.pool(POOL)]
            self.schema = desk.model.schema
        self.plan, self.new = plan, crossed(len(plan), seed=4)
        self.labelled = crossed(POOL, seed=2)
        self.operations: dict[int, int] = {}  # of each label, the operation that was acknowledged
        self.undone: set[int] = set()
        self.at = 0

    def step(self, server: RealServer) -> None:
        """The next of the plan; raises where there is no answer, and everything is as before."""
        what, i = self.plan[self.at]
        key = {"Idempotency_Key": f"{what} {i}"}
        if what == "undo":
            server.ask("/api/undo", {"operation": self.operations[i]}, **key)
            self.undone.add(i)
        elif self.in_pool(i):
            given = {"id": self.pool[i // 2], "label": self.labelled[i // 2]["play"]}
            self.operations[i] = server.ask("/api/label", given, **key)["operation"]
        else:
            self.operations[i] = server.ask("/api/learn", {"rows": [self.new[i]]}, **key)["operation"]
        self.at += 1

    def in_pool(self, i: int) -> bool:
        return i % 2 == 0 and i // 2 < POOL

    def digest(self, *, ahead: bool) -> str:
        """The digest of a batch count of the survivors; or of those there are if the next of the plan is done."""
        alive = {*self.operations} - self.undone
        if ahead and self.at < len(self.plan):
            what, i = self.plan[self.at]
            alive = alive - {i} if what == "undo" else alive | {i}
        rows = [self.labelled[i // 2] if self.in_pool(i) else self.new[i] for i in alive]
        return tb.count([*self.rows, *rows], self.schema).digest


@pytest.mark.skipif(not ALL, reason="starts a server twenty times: TALLYBAYES_TESTS=all")
def test_the_server_is_killed_at_any_moment_and_has_all_that_it_acknowledged(path: Path) -> None:
    pytest.importorskip("uvicorn")
    labels, undone, kills = 200, 50, 20
    dice = random.Random(time.time_ns())
    plan = [("label", i) for i in range(labels)]
    for i in dice.sample(range(labels), undone):  # each some time after its label
        plan.insert(dice.randint(plan.index(("label", i)) + 1, len(plan)), ("undo", i))
    session = Session(path, plan)
    moments = sorted(dice.sample(range(len(plan)), kills))
    for number, moment in enumerate([*moments, len(plan)]):
        with serving(path) as server:
            found = server.ask("/api/digest")["digest"]
            assert found in (session.digest(ahead=False), session.digest(ahead=True))
            while session.at < moment:
                session.step(server)
            assert server.ask("/api/digest")["digest"] == session.digest(ahead=False)
            if moment == len(plan):
                break
            if number % 4 == 3:
                server.process.terminate()  # killed while it folds
            killer = threading.Timer(dice.uniform(0, 0.05), server.process.kill)  # SIGKILL to this process, no other
            killer.start()
            try:
                while session.at < len(plan):
                    session.step(server)
            except (OSError, http.client.HTTPException):
                pass
            killer.join()
            server.process.wait()
        assert tb.load(path).tally.rows  # the model file alone opens at any moment
    assert (len(session.operations), len(session.undone)) == (labels, undone)
    with Desk.open(path) as desk:
        assert desk.digest == session.digest(ahead=False) == tb.count([*kept(desk).values()], desk.model.schema).digest
        batch = tb.fit([*kept(desk).values()], "play", schema=desk.model.schema, calibrate=False)
        assert batch.tally.digest == desk.digest


# ---- under load


class Client(threading.Thread):
    """Teaches or asks over one connection for a while; whatever is not answered well is kept."""

    def __init__(self, server: RealServer, number: int, until: float) -> None:
        super().__init__()
        self.server, self.number, self.until = server, number, until
        self.counted: dict[int, Mapping[str, Any]] = {}
        self.acknowledged: dict[int, str] = {}
        self.wrong: list[Any] = []
        self.requests = 0

    def run(self) -> None:
        link = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        dice, rows = random.Random(self.number), crossed(200, seed=10 + self.number)

        def ask(path: str, body: Any = None) -> Any:
            self.requests += 1
            sent = None if body is None else json.dumps(body)
            link.request("GET" if body is None else "POST", path, sent, {"Content-Type": "application/json"})
            answer = link.getresponse()
            told = json.load(answer)
            if answer.status != 200:
                raise AssertionError(told)
            return told

        try:
            while time.monotonic() < self.until:
                row = dice.choice(rows)
                if self.number % 2:
                    done = ask("/api/learn", {"rows": [row]})
                    self.acknowledged[done["operation"]] = done["digest"]
                    self.counted[done["rows"][0]] = row
                    if len(self.counted) > 20:
                        gone = dice.choice([*self.counted])
                        done = ask("/api/forget", {"ids": [gone]})
                        self.acknowledged[done["operation"]] = done["digest"]
                        del self.counted[gone]
                else:
                    asked = {name: row[name] for name in ("sky", "wind", "temp", "note")}
                    chances = ask("/api/predict", {"row": asked})["probabilities"]
                    assert abs(sum(each["probability"] for each in chances) - 1) < 1e-9
                    what = dice.random()
                    if what < 0.05:
                        assert len(ask("/api/predict", {"rows": [asked] * 50})["answers"]) == 50
                    elif what < 0.1:
                        ask("/api/explain", {"row": asked})
                    elif what < 0.12:
                        ask("/api/pool?limit=3")
        except Exception as error:
            self.wrong.append(repr(error))
        finally:
            link.close()


def test_eight_clients_teach_and_ask_and_nothing_is_lost(path: Path) -> None:
    pytest.importorskip("uvicorn")
    seconds = 120 if ALL else 0.5
    with Desk.open(path) as desk:
        before = list(kept(desk).values())
    memory: list[tuple[float, float]] = []
    with serving(path) as server:
        began = time.monotonic()
        clients = [Client(server, i, began + seconds) for i in range(8)]
        for each in clients:
            each.start()
        while any(each.is_alive() for each in clients):
            memory.append((time.monotonic() - began, server.memory() / 1e6))
            time.sleep(0.5)
        for each in clients:
            each.join()
        digest = server.ask("/api/digest")["digest"]
        server.process.terminate()
        assert server.process.wait(30) == 0
        assert server.process.stderr.read() == ""
    assert [each.wrong for each in clients] == [[]] * 8
    acknowledged = {n: d for each in clients for n, d in each.acknowledged.items()}
    assert len(acknowledged) == sum(len(each.acknowledged) for each in clients)  # no number twice
    rows = [*before, *(row for each in clients for row in each.counted.values())]
    with Desk.open(path) as desk:
        held = {o.number: o.digest for o in desk.operations(limit=10**6)}
        assert acknowledged.items() <= held.items()
        assert desk.digest == digest == tb.count(rows, desk.model.schema).digest
    asked = sum(each.requests for each in clients)
    late = [(at, size) for at, size in memory if at > seconds / 3]
    if ALL:
        slope = float(np.polyfit(*zip(*late, strict=True), 1)[0]) * 60
        sizes = f"{late[0][1]:.1f} to {late[-1][1]:.1f} MB, {slope:+.2f} MB a minute"
        print(f"\n{asked:,} requests, {len(acknowledged):,} operations; memory {sizes}")
        assert slope < 3


# ---- erasing


def test_of_a_person_that_weights_and_pairs_were_fitted_to_no_byte_is_left(path: Path) -> None:
    def found() -> set[str]:
        raw = b"".join(each.read_bytes() for each in sorted(path.parent.iterdir()))
        words = {word: word.encode() for word in (SECRET, SKY, WORD, LABEL, str(TEMP))} | {"": struct.pack("<d", TEMP)}
        return {name for name, word in words.items() if word in raw}

    with Desk.open(path) as desk:
        for row in hers(6):
            desk.learn([{**row, "play": LABEL}], new_classes="allow")
        desk.fold()
        assert {SECRET, SKY, WORD, LABEL, str(TEMP)} <= found()
        assert SKY in repr(desk.model.settings.corrections)
        receipt = desk.erase("person", SECRET)
        assert (receipt.rows, receipt.counted, receipt.unseen) == (18, 18, 0)
        assert found() == set()
        assert {path.name, f"{path.name}.journal"} <= {each.name for each in path.parent.iterdir()}
        settings = tb.load(path).settings
        assert settings.corrections and SKY not in repr(settings)
        cuts, values = settings.corrections["temp"].cuts, {row["temp"] for row in kept(desk).values()}
        beside = max(v for v in values if v < TEMP), min(v for v in values if v > TEMP)
        half_way = [(TEMP + value) / 2 for value in beside]  # from which her number would follow
        assert not [cut for cut in cuts if any(abs(cut - half) < 0.005 for half in half_way)]
        assert desk.digest == tb.count([*kept(desk).values()], desk.model.schema).digest
    assert found() == set()


@pytest.mark.skipif(not ALL, reason="starts a server: TALLYBAYES_TESTS=all")
def test_the_benchmark_runs() -> None:
    pytest.importorskip("uvicorn")
    script = Path(__file__).resolve().parents[2] / "benchmarks" / "serve.py"
    few = ["--rounds", "1", "--requests", "40", "--texts", "300", "--labels", "3", "--plain"]
    done = subprocess.run([sys.executable, str(script), *few], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert "tallybayes, one row" in done.stdout and "from a label to the next row" in done.stdout
