"""A served model over HTTP: answers to one row beside a constant and beside FastAPI, and from a label to the next row.

    python benchmarks/serve.py [--rounds 5] [--requests 4000] [--texts 100000] [--labels 200]

needs `pip install 'tallybayes[serve]' fastapi scikit-learn pandas`; without FastAPI it measures the rest.

Three servers of one process each, all on uvicorn, all asked by the same client in turns: ours; ours at an address that
answers a constant of the same size to the same request, behind the same guard; and FastAPI with a pydantic row around a
scikit-learn pipeline (scaler, one-hot, logistic regression; Gaussian naive Bayes besides) of the same table of four
numbers and four categories. The client holds a few connections and writes bytes made beforehand, so that the server is
what limits; whether it does, the client's own processor time says. The machine may be shared: beside requests a second
stands the processor time that the server took for each.

Then 100,000 texts of invented words by Zipf's law, a few of them labelled: one is labelled and the next asked for, over
and over, and the wall clock of both together is what a person waits for.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import re
import resource
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

CLASSES = ("low", "middle", "high")
NUMBERS, CATEGORIES = ("area", "rooms", "age", "floor"), ("district", "heating", "owner", "state")
TABLE_ROWS = 20_000


def table(rows: int = TABLE_ROWS) -> dict[str, Any]:
    """A mixed table with a label, always the same."""
    rng = np.random.default_rng(0)
    which = rng.integers(0, 3, rows)
    out: dict[str, Any] = {n: (rng.normal(size=rows) + which * (i + 1) / 4).round(3) for i, n in enumerate(NUMBERS)}
    for i, name in enumerate(CATEGORIES):
        values = np.array([f"{name} {v}" for v in range(3 + 5 * i)])
        out[name] = values[(rng.integers(0, len(values), rows) + which * (rng.random(rows) < 0.4)) % len(values)]
    return {**out, "price": np.array(CLASSES)[which]}


def rows_of(some: dict[str, Any], count: int) -> list[dict[str, Any]]:
    return [{n: some[n][i].item() for n in (*NUMBERS, *CATEGORIES)} for i in range(count)]


# ---- servers, each in a process of its own


def serve_ours(path: str) -> None:
    """A model with its desk, and an address that answers a constant."""
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route

    from tallybayes.serve.app import listen, make_app
    from tallybayes.serve.desk import Desk

    async def constant(request: Request) -> Response:
        return Response(CONSTANT, media_type="application/json")

    with Desk.open(path) as desk:
        app = make_app(desk)
        app.router.routes.insert(0, Route("/constant", constant, methods=["POST"]))
        listen(app, "127.0.0.1", 0, lambda at: print(at, flush=True))


CONSTANT = json.dumps({"class": "low", "probability": 0.5, "padding": "x" * 275}).encode()


def serve_peer(kind: str) -> None:
    """What is usual: FastAPI, a pydantic row, a pipeline of scikit-learn."""
    import pandas as pd
    import uvicorn
    from fastapi import FastAPI
    from pydantic import BaseModel, create_model
    from sklearn.compose import ColumnTransformer
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frame = pd.DataFrame(table())
    one_hot = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    read = ColumnTransformer([("n", StandardScaler(), list(NUMBERS)), ("c", one_hot, list(CATEGORIES))])
    answer = GaussianNB() if kind == "naive Bayes" else LogisticRegression(max_iter=500)
    pipeline = make_pipeline(read, answer).fit(frame.drop(columns="price"), frame["price"])
    fields: dict[str, Any] = {**dict.fromkeys(NUMBERS, (float | None, None)), **dict.fromkeys(CATEGORIES, (str, ""))}
    Row: type[BaseModel] = create_model("Row", **fields)
    app = FastAPI()

    def predict(row: Any) -> dict[str, Any]:
        (chances,) = pipeline.predict_proba(pd.DataFrame([row.model_dump()]))
        named = dict(zip(map(str, pipeline.classes_), map(float, chances), strict=True))
        return {"class": max(named, key=named.__getitem__), "probabilities": named}

    predict.__annotations__["row"] = Row  # annotations of this file are texts
    app.post("/predict")(predict)
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        print(f"http://127.0.0.1:{listening.getsockname()[1]}", flush=True)
        uvicorn.Server(uvicorn.Config(app, log_config=None, access_log=False)).run([listening])


@contextlib.contextmanager
def started(*words: str) -> Iterator[tuple[int, int]]:
    """The port and the process of one of them."""
    command = [sys.executable, __file__, "--serve", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield int(process.stdout.readline().rpartition(":")[2]), process.pid
        finally:
            process.terminate()


# ---- the client


def request(path: str, body: Any, method: str = "POST") -> bytes:
    sent = b"" if body is None else json.dumps(body).encode()
    head = f"{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(sent) + sent


def answer(link: socket.socket, held: bytes = b"") -> bytes:
    """The body of the one answer that is on its way; refused unless it is a good one."""
    while (end := held.find(b"\r\n\r\n")) < 0:
        held += (got := link.recv(65536))
        if not got:
            raise ConnectionError("the server has hung up")
    length = re.search(rb"(?i)\r\ncontent-length: *(\d+)", held)
    whole = end + 4 + int(length[1]) if length else 0
    while len(held) < whole:
        held += link.recv(65536)
    if not held.startswith(b"HTTP/1.1 200 "):
        raise ValueError(held.decode(errors="replace"))
    return held[end + 4 :]


def processor(pid: int) -> float:
    """Seconds of the processor that a process has taken, all its threads."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def load(port: int, pid: int, requests: list[bytes], count: int, links: int = 4) -> tuple[float, float, float]:
    """Requests a second, seconds of the server's processor for each, and of the client's; all answers are good."""
    with contextlib.ExitStack() as open_:
        each = [open_.enter_context(socket.create_connection(("127.0.0.1", port))) for _ in range(links)]
        for link in each:
            link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        own, before, began = time.process_time(), processor(pid), time.perf_counter()
        for i in range(0, count, links):
            for j, link in enumerate(each):
                link.sendall(requests[(i + j) % len(requests)])
            for link in each:
                answer(link)
        seconds, used = time.perf_counter() - began, processor(pid) - before
        return count / seconds, used / count, (time.process_time() - own) / count


def one_row(rounds: int, count: int, effort: dict[str, Any]) -> None:
    from tallybayes.serve.desk import Desk

    data = table()
    rows = rows_of(data, 200)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as servers:
        path = os.path.join(folder, "model.tb.parquet")
        Desk.begin(path, data, target="price", **effort).close()
        ours = servers.enter_context(started("ours", path))
        asked = [request("/api/predict", {"row": row}) for row in rows]
        sides = {
            "tallybayes, one row": (*ours, asked),
            "the same server, a constant": (*ours, [request("/constant", {"row": row}) for row in rows]),
            "the same server, GET /health": (*ours, [request("/health", None, "GET")]),
        }
        if importlib.util.find_spec("fastapi"):
            plain = [request("/predict", row) for row in rows]
            for kind in ("naive Bayes", "logistic regression"):
                sides[f"FastAPI, scikit-learn, {kind}"] = (*servers.enter_context(started("peer", kind)), plain)
        else:
            print("FastAPI is not installed (pip install fastapi scikit-learn pandas); figures of tallybayes alone")
        found: dict[str, list[tuple[float, float, float]]] = {name: [] for name in sides}
        for turn in range(rounds + 1):  # the first warms up
            for name, (port, pid, requests) in sides.items():
                few = count if "FastAPI" not in name else max(count // 10, 40)
                measured = load(port, pid, requests, few if turn else max(few // 10, 40))
                if turn:
                    found[name].append(measured)
        best = {name: (max(f[0] for f in each), min(f[1] for f in each), min(f[2] for f in each))
                for name, each in found.items()}  # fmt: skip
        mine = best["tallybayes, one row"]
        print(f"one row of {len(NUMBERS)} numbers and {len(CATEGORIES)} categories, best of {rounds} rounds:")
        for name, (speed, used, client) in best.items():
            print(
                f"  {name:<36} {speed:8,.0f} requests a second, {1e6 * used:7.0f} µs of the server's processor each"
                f" (client {1e6 * client:.0f} µs); ours {mine[0] / speed:.2f} times as many, by processor"
                f" {used / mine[1]:.2f} times"
            )


# ---- from a label to the next row


def texts(count: int) -> tuple[list[str], list[str]]:
    """Invented texts of twenty words, by Zipf's law, and which of two classes each is of."""
    rng = np.random.default_rng(1)
    words = np.array([f"w{i:x}" for i in range(60_000)])
    which = rng.integers(0, 2, count)
    at = np.minimum(rng.zipf(1.25, (count, 20)), len(words)) - 1
    at[:, :4] = np.minimum(rng.zipf(1.5, (count, 4)), 500) + 1000 + 600 * which[:, None]
    return [" ".join(line) for line in words[at]], [("no", "yes")[w] for w in which]


def labelling(count: int, labels: int, labelled: int = 200) -> None:
    from tallybayes.serve.desk import Desk

    notes, truth = texts(count)
    rows = {"number": list(range(count)), "note": notes, "keep": [*truth[:labelled], *[None] * (count - labelled)]}
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "texts.tb.parquet")
        kinds = {"note": "text", "number": "ignore"}
        Desk.begin(path, rows, target="keep", kinds=kinds, calibrate=False).close()
        with started("ours", path) as (port, pid), socket.create_connection(("127.0.0.1", port)) as link:

            def ask(path: str, body: Any = None) -> Any:
                link.sendall(request(path, body, "GET" if body is None else "POST"))
                return json.loads(answer(link))

            began = time.perf_counter()
            (row,) = ask("/api/next")["rows"]
            first, waited, used = time.perf_counter() - began, [], processor(pid)
            for _ in range(labels):
                label = truth[row["values"]["number"]]
                began = time.perf_counter()
                ask("/api/label", {"id": row["id"], "label": label})
                (row,) = ask("/api/next")["rows"]
                waited.append(time.perf_counter() - began)
            used = (processor(pid) - used) / labels
        middle, most = np.quantile(waited, [0.5, 0.95])
        print(
            f"{count:,} texts, {labelled} labelled beforehand: from a label to the next row {1e3 * most:.1f} ms in 95"
            f" of 100 cases, {1e3 * middle:.1f} ms in half of them, {1e3 * max(waited):.1f} ms at most,"
            f" {1e3 * used:.1f} ms of the server's processor; the first row after {first:.2f} s"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--requests", type=int, default=4000, help="of each side in each round")
    parser.add_argument("--texts", type=int, default=100_000, help="0 leaves the second part out")
    parser.add_argument("--labels", type=int, default=200)
    parser.add_argument("--plain", action="store_true", help="a model without calibration and corrections")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        (serve_ours if given.serve[0] == "ours" else serve_peer)(given.serve[1])
        return
    load_before = os.getloadavg()[0]
    if given.requests:
        one_row(given.rounds, given.requests, {"calibrate": False} if given.plain else {})
    if given.texts:
        labelling(given.texts, given.labels)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    print(f"load of the machine {load_before:.1f} to {os.getloadavg()[0]:.1f}; the largest process took {peak:.0f} MB")


if __name__ == "__main__":
    main()
