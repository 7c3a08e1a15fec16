"""Two checkouts of tallybayes side by side: our side of every item of `make bench`, and cold starts, in turns.

    python benchmarks/before_after.py --before /tmp/before [--after .] [--turns 7] [--only word] [--scale 1]

A turn is one fresh process for each checkout, with its own items (its benchmarks/) and its own Python (its .venv, or
this one); which goes first alternates. A process sets each item up once and takes the best of several short runs. What
is printed is the median over the turns and before ÷ after, as a Markdown table: a ratio above 1 is a gain. A busy
machine spoils single turns, and both sides alike.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FEWEST_RUNS, MOST_RUNS = 3, 300
IMPORT = "import tallybayes"
LOW = 0.9  # a ratio below this is marked: more than noise, if it comes again


# ---- in a process of its own: the side of one checkout


def best_of(way: Callable[[], Any], seconds: float) -> float:
    """The best time of several runs, for about so many seconds after one that warms up."""
    way()
    times: list[float] = []
    began = time.perf_counter()
    while len(times) < FEWEST_RUNS or (time.perf_counter() - began < seconds and len(times) < MOST_RUNS):
        start = time.perf_counter()
        way()
        times.append(time.perf_counter() - start)
    return min(times)


def time_items(checkout: Path, scale: float, seconds: float, only: str) -> dict[str, float]:
    """Seconds of our side of every item, as the checkout's own benchmarks have them."""
    sys.path[0] = str(checkout / "benchmarks")  # instead of the folder of this file
    from items import ITEMS
    from textitems import TEXT_ITEMS

    out = {}
    for item in [*ITEMS, *TEXT_ITEMS]:
        if only in item.name:
            out[item.name] = best_of(item.make(scale).ours, seconds)
            gc.collect()  # the tables of one item are gone before those of the next are made
    return out


def save_models(checkout: Path, folder: Path) -> dict[str, list[str]]:
    """What is run for each cold start: {name: [code, arguments …]}, after the checkout has written its models."""
    sys.path[0] = str(checkout / "benchmarks")
    import startup

    answers = {f"start: one answer, {n}": [startup.ANSWER, str(p), a] for n, (p, a) in startup.models(folder).items()}
    return {"start: import tallybayes": [IMPORT], "start: tallybayes --help": [startup.HELP], **answers}


# ---- in the process that compares


def run(checkout: Path, arguments: Sequence[str]) -> bytes:
    """What a Python of the checkout writes."""
    own = checkout / ".venv" / "bin" / "python"
    python = str(own) if own.exists() else sys.executable
    done = subprocess.run(
        [python, *arguments],
        env={**os.environ, "PYTHONPATH": str(checkout / "src")},
        stdout=subprocess.PIPE,
        cwd=checkout,
        check=True,
    )
    return done.stdout


def side(checkout: Path, job: str, *arguments: object) -> dict[str, Any]:
    """What this file, run by the checkout's Python, says of the checkout."""
    out = run(checkout, [str(Path(__file__).resolve()), "--job", job, str(checkout), *map(str, arguments)])
    found: dict[str, Any] = json.loads(out.splitlines()[-1])
    return found


def time_starts(checkout: Path, commands: dict[str, list[str]], starts: int) -> dict[str, float]:
    """The best of so many starts of each command."""
    out = {}
    for name, (code, *arguments) in commands.items():
        times = []
        for _ in range(starts):
            start = time.perf_counter()
            run(checkout, ["-c", code, *arguments])
            times.append(time.perf_counter() - start)
        out[name] = min(times)
    return out


def measured(checkouts: Sequence[Path], given: argparse.Namespace, folder: Path) -> list[dict[str, list[float]]]:
    """The times of each checkout, by item, one of every turn."""
    commands = []
    for number, checkout in enumerate(checkouts):
        (place := folder / str(number)).mkdir()
        every = side(checkout, "models", place) if given.starts else {}
        commands.append({name: words for name, words in every.items() if given.only in name})
    times: list[dict[str, list[float]]] = [{} for _ in checkouts]
    for turn in range(given.turns):
        began = time.perf_counter()
        for number in (0, 1) if turn % 2 == 0 else (1, 0):
            found = side(checkouts[number], "items", given.scale, given.seconds, given.only)
            found |= time_starts(checkouts[number], commands[number], given.starts)
            for name, seconds in found.items():
                times[number].setdefault(name, []).append(seconds)
        print(f"turn {turn + 1} of {given.turns}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    return times


def unit(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"


def page(before: dict[str, list[float]], after: dict[str, list[float]]) -> str:
    """The medians as a Markdown table; an item that only one side has shows a dash."""
    lines = ["| item | before | after | before ÷ after |", "|---|---|---|---|"]
    for name in dict.fromkeys([*before, *after]):
        medians = [statistics.median(times[name]) if name in times else None for times in (before, after)]
        ratio = medians[0] / medians[1] if medians[0] is not None and medians[1] is not None else None
        shown = "–" if ratio is None else f"{ratio:.2f}" if ratio >= LOW else f"**{ratio:.2f}**"
        lines.append(f"| {name} | {' | '.join('–' if m is None else unit(m) for m in medians)} | {shown} |")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--before", type=Path, required=True, help="a checkout")
    parser.add_argument("--after", type=Path, default=ROOT, help="another; this one unless said")
    parser.add_argument("--turns", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of rows")
    parser.add_argument("--seconds", type=float, default=0.3, help="for each item, of at least three runs")
    parser.add_argument("--starts", type=int, default=3, help="of each cold start in a turn; 0 leaves them out")
    parser.add_argument("--only", default="", help="items whose name has this in it")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder:
        before, after = measured([given.before.resolve(), given.after.resolve()], given, Path(folder))
    print(f"Python {platform.python_version()}, load {os.getloadavg()[0]:.1f}; medians of {given.turns} turns.\n")
    print(page(before, after))


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        _, _, job, where, *rest = sys.argv
        if job == "items":
            print(json.dumps(time_items(Path(where), float(rest[0]), float(rest[1]), rest[2])))
        else:
            print(json.dumps(save_models(Path(where), Path(rest[0]))))
    else:
        main()
