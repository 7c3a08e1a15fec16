"""What the server counts: requests by address and status, their seconds, and what the model was asked.

The model that is watched changes with every operation. The watch begins anew with each, and what the one before has
counted is kept, so that no counter ever falls.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from ..base.arrays import Floats
from ..model.model import Model
from ..model.watching.watch import Watch
from ..model.watching.watched import Counters, WatchReport, exposition
from .desk import Desk

LOOK_AT = 480  # lone rows that wait in a watch until a thread looks at them together
BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)  # seconds: the buckets that requests are counted in


class LiveWatch:
    """A watch over whichever model is served. Threads may share it."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._turn = desk, threading.Lock()
        self._before, self._watch = Counters(), Watch(desk.model, counting=False)
        self._warm: Model | None = None  # one that has answered
        self._waiting = 0  # rows that it has answered since they were looked at, about

    def is_warm(self, model: Model) -> bool:
        """Whether an answer of this model takes microseconds: its tables are made, and few rows wait."""
        return self._warm is model and self._waiting < LOOK_AT

    def predict_proba(self, model: Model, rows: Sequence[Mapping[str, Any]], *, look: bool) -> Floats:
        """As `Model.predict_proba`, and counted; `look` at the rows that wait, too, which may take a while."""
        watch = self._over(model)
        out = watch.predict_proba(rows)
        self._waiting += len(rows)
        if look:
            _ = watch.counters  # for which it looks at them; a row of megabytes does not wait, either
            self._waiting, self._warm = 0, model
        return out

    def _over(self, model: Model) -> Watch:
        """The watch of this model, which is the one served or was until just now."""
        with self._turn:
            if self._watch.model is not model:
                self._before.add(self._watch.counters)
                self._watch = Watch(model, counting=False)
            return self._watch

    @property
    def counters(self) -> Counters:
        """What was counted since the server began."""
        out = Counters()
        with self._turn:
            out.add(self._before)
            out.add(self._watch.counters)
        return out

    def report(self) -> WatchReport:
        """What was counted, by the ranges that the model knows now."""
        return WatchReport(self.counters, self._watch.unsure_below, self._watch.report().ranges)


class RequestMetrics:
    """Requests by address and status, and how long they took."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._requests: Counter[tuple[str, int]] = Counter()
        self._seconds: Counter[str] = Counter()
        self._within: dict[str, list[int]] = {}  # by the least of the bounds, and beyond all of them

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count one request, by the address as it is written in the routes."""
        with self._turn:
            self._requests[path, status] += 1
            self._seconds[path] += round(1e9 * seconds)  # whole nanoseconds: a sum of floats would stop growing
            if path not in self._within:
                self._within[path] = [0] * (len(BOUNDS) + 1)
            self._within[path][bisect_left(BOUNDS, seconds)] += 1

    def exposition(self) -> str:
        """The text that a scraper reads."""
        with self._turn:
            requests, seconds = Counter(self._requests), Counter(self._seconds)
            within = {path: list(accumulate(each)) for path, each in self._within.items()}
        lines = [
            "# HELP tallybayes_http_requests_total Requests that were answered, by address and status.",
            "# TYPE tallybayes_http_requests_total counter",
        ]
        for (path, status), n in sorted(requests.items()):
            lines.append(f'tallybayes_http_requests_total{{path="{path}",status="{status}"}} {n}')
        lines += [
            "# HELP tallybayes_http_seconds How long answers took.",
            "# TYPE tallybayes_http_seconds histogram",
        ]
        for path in sorted(seconds):
            total = within[path][-1]
            for bound, n in zip((*(f"{b:g}" for b in BOUNDS), "+Inf"), within[path], strict=True):
                lines.append(f'tallybayes_http_seconds_bucket{{path="{path}",le="{bound}"}} {n}')
            lines.append(f'tallybayes_http_seconds_sum{{path="{path}"}} {seconds[path] / 1e9:.9f}')
            lines.append(f'tallybayes_http_seconds_count{{path="{path}"}} {total}')
        return "\n".join(lines) + "\n"


def all_metrics(desk: Desk, watch: LiveWatch, requests: RequestMetrics) -> str:
    """Everything that is counted, as Prometheus reads it."""
    gauges: dict[str, tuple[str, Any]] = {
        "operations": ("Operations so far.", desk.version),
        "pool_rows": ("Rows that wait for a label.", desk.pool_size()),
    }
    told = []
    for name, (says, value) in gauges.items():
        told += [f"# HELP tallybayes_{name} {says}", f"# TYPE tallybayes_{name} gauge", f"tallybayes_{name} {value}"]
    return exposition(watch.counters, desk.served.tally.rows, {}) + "\n".join(told) + "\n" + requests.exposition()
