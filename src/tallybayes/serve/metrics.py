"""What the server counts: requests by address and status, their seconds, and what the model was asked.

The model that is watched changes with every operation. The watch begins anew with each, and what the one before has
counted is kept, so that no counter ever falls.
"""

from __future__ import annotations

import threading
from collections import Counter
from typing import Any

from ..model.model import Model
from ..model.watch import Watch
from ..model.watched import Counters, WatchReport, exposition
from .desk import Desk

BOUNDS = (0.001, 0.005, 0.025, 0.1, 0.5, 2.5, 10.0)  # seconds: the buckets that requests are counted in


class LiveWatch:
    """A watch over whichever model is served. Threads may share it."""

    def __init__(self, desk: Desk) -> None:
        self._desk, self._turn = desk, threading.Lock()
        self._before, self._watch = Counters(), Watch(desk.model, counting=False)

    def over(self, model: Model) -> Watch:
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
        self._within: Counter[tuple[str, float]] = Counter()

    def count(self, path: str, status: int, seconds: float) -> None:
        """Count one request, by the address as it is written in the routes."""
        with self._turn:
            self._requests[path, status] += 1
            self._seconds[path] += round(1e9 * seconds)  # whole nanoseconds: a sum of floats would stop growing
            for bound in BOUNDS:
                if seconds <= bound:
                    self._within[path, bound] += 1

    def exposition(self) -> str:
        """The text that a scraper reads."""
        with self._turn:
            requests, seconds, within = Counter(self._requests), Counter(self._seconds), Counter(self._within)
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
            total = sum(n for (each, _), n in requests.items() if each == path)
            for bound in BOUNDS:
                lines.append(f'tallybayes_http_seconds_bucket{{path="{path}",le="{bound:g}"}} {within[path, bound]}')
            lines.append(f'tallybayes_http_seconds_bucket{{path="{path}",le="+Inf"}} {total}')
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
