"""Every item beside its peer, in one process, in turns, the best of several: prints ratio, times and share of a limit.

    python benchmarks/run.py [--scale 1] [--seconds 1] [--only word] [--write docs/benchmarks.md]

A busy machine spoils both sides alike, which is why the ratio of the best times is what is compared.
"""

from __future__ import annotations

import argparse
import os
import pathlib
import platform
import re
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numba
import numpy as np
import sklearn
from items import ITEMS, Case, Item
from roads import ROADS
from textitems import TEXT_ITEMS

import tallybayes as tb
from tallybayes.base.threads import parallel, threads

LONG = 5.0  # seconds
BEGIN, END = "<!-- results -->", "<!-- end of results -->"


@dataclass(frozen=True)
class Result:
    item: Item
    ours: float  # seconds
    theirs: float
    limit: float | None  # reading the same bytes once
    agree: bool

    @property
    def ratio(self) -> float:
        return self.theirs / self.ours

    @property
    def aim(self) -> str:
        """What was meant: so many times faster, or within so many seconds."""
        if self.item.target == 0 and self.item.within is None:
            return "none"
        return f"{self.item.target:g} ×" if self.item.within is None else f"under {unit(self.item.within)}"

    @property
    def reached(self) -> bool:
        """Whether it is."""
        return self.ratio >= self.item.target and (self.item.within is None or self.ours <= self.item.within)


def timed(way, clock=time.perf_counter) -> float:
    start = clock()
    way()
    return clock() - start


def read_once(arrays: Sequence[np.ndarray]) -> None:
    """Look at every byte on all threads and do nothing else with it: what no way of counting can beat."""
    pieces = [np.array_split(a.reshape(-1), threads()) for a in arrays]
    parallel([partial(_read, share) for share in zip(*pieces, strict=True)])


def _read(arrays: Sequence[np.ndarray]) -> None:
    for array in arrays:
        np.add.reduce(array)


def measured(item: Item, case: Case, seconds: float) -> Result:
    """The best time of each side, taken in turns for about so many seconds, at least three turns.

    Ours, which is over sooner, runs three times in each turn, unless it takes long: a short run is spoilt by whatever
    else happens.
    """
    agree = case.agree()  # also warms both sides up
    ours, theirs, limit = [], [], []
    clock = time.process_time if item.processor else time.perf_counter
    began = time.perf_counter()
    while len(theirs) < 3 or (time.perf_counter() - began < seconds and len(theirs) < 300):
        ours += [timed(case.ours, clock) for _ in range(1 if ours and min(ours) > LONG else 3)]
        theirs.append(timed(case.theirs, clock))
        if case.reads:
            limit.append(timed(lambda: read_once(case.reads)))
    return Result(item, min(ours), min(theirs), min(limit) if limit else None, agree)


def unit(seconds: float) -> str:
    return f"{seconds * 1e6:.0f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def shown(r: Result) -> str:
    limit = "" if r.limit is None else f", {r.limit / r.ours:.0%} of the speed of reading the bytes"
    mark = "" if r.reached else f"  (meant: {r.aim})"
    wrong = "" if r.agree else "  THE ANSWERS DIFFER"
    return (
        f"{r.item.name:48} {r.ratio:7.1f} ×  {unit(r.ours):>9} beside {unit(r.theirs):>9} ({r.item.peer})"
        f"{limit}{mark}{wrong}"
    )


def machine() -> str:
    cpus = pathlib.Path("/proc/cpuinfo")
    found = re.search(r"model name\s*: (.*)", cpus.read_text()) if cpus.exists() else None
    packages = ", ".join(f"{m.__name__} {m.__version__}" for m in (np, numba, sklearn))
    return (
        f"{found[1] if found else platform.machine()}, {threads()} threads, "
        f"load {os.getloadavg()[0]:.1f} while measuring; Python {platform.python_version()}, {packages}, "
        f"tallybayes {tb.__version__}"
    )


def page(results: list[Result]) -> str:
    """The results as a Markdown table."""
    lines = [
        f"{machine()}.",
        "",
        "| item | ratio | tallybayes | beside | which is | aim | of the speed of reading the bytes |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in results:
        aim = f"{'reached' if r.reached else 'short of'} {r.aim}"
        limit = "" if r.limit is None else f"{r.limit / r.ours:.0%}"
        name = f"{r.item.name} (processor time)" if r.item.processor else r.item.name
        cells = (name, f"{r.ratio:.1f} ×", unit(r.ours), unit(r.theirs), r.item.peer, aim, limit)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> list[Result]:
    parser = argparse.ArgumentParser()
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of rows")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each item, of at least three turns")
    parser.add_argument("--only", default="", help="items whose name has this in it")
    parser.add_argument("--write", type=pathlib.Path, help="a page whose table is to be renewed")
    given = parser.parse_args()
    print(f"tallybayes {tb.__version__}")
    results = []
    for item in [*ITEMS, *TEXT_ITEMS, *ROADS]:
        if given.only in item.name:
            results.append(measured(item, item.make(given.scale), given.seconds))
            print(shown(results[-1]), flush=True)
    if given.write is not None:
        before, _, rest = given.write.read_text().partition(BEGIN)
        given.write.write_text(f"{before}{BEGIN}\n{page(results)}\n{END}{rest.partition(END)[2]}")
    return results


if __name__ == "__main__":
    main()
