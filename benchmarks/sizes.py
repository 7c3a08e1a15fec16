"""How much an installation weighs and how long a fresh process takes to its first answer, ours and others' in one run.

    python benchmarks/sizes.py [--times 7] [--write docs/install.md]

Each package gets an empty virtual environment with nothing but itself and what it asks for. Its weight is the sum of
the sizes in the RECORD files of everything that was installed (compiled bytecode and pip itself left out). Then fresh
processes start in turns, one package after the other, and the best of so many is told, by the time of the processor:
importing it, and fitting twenty rows and answering for one. `--write` renews the table between the marks of a page.
"""

from __future__ import annotations

import argparse
import csv
import os
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- sizes, written by benchmarks/sizes.py -->", "<!-- end of sizes -->"
ROWS = "x = [[float(i % 7), float(i % 3)] for i in range(20)]; y = [i % 2 for i in range(20)]\n"


@dataclass(frozen=True)
class Candidate:
    """What is installed, how it is imported, and how it comes to an answer."""

    install: str
    imports: str
    answer: str


CANDIDATES = {
    "tallybayes": Candidate(str(ROOT), "import tallybayes as tb", "tb.fit(np.array(x), y=y).predict(np.array(x[:1]))"),
    "tallybayes[all]": Candidate(
        f"{ROOT}[all]", "import tallybayes as tb", "tb.fit(np.array(x), y=y).predict(np.array(x[:1]))"
    ),
    "scikit-learn": Candidate(
        "scikit-learn", "from sklearn.naive_bayes import GaussianNB", "GaussianNB().fit(x, y).predict(x[:1])"
    ),
    "river": Candidate(
        "river",
        "from river.naive_bayes import GaussianNB",
        "m = GaussianNB()\nfor row, c in zip(x, y): m.learn_one(dict(enumerate(row)), c)\n"
        "m.predict_one({0: 1.0, 1: 2.0})",
    ),
    "interpret-core": Candidate(
        "interpret-core",
        "from interpret.glassbox import ExplainableBoostingClassifier",
        "ExplainableBoostingClassifier(n_jobs=1).fit(np.array(x), y).predict(np.array(x[:1]))",
    ),
}


def installed(folder: Path, what: str) -> str:
    """The Python of an empty environment in which this was installed."""
    subprocess.run([sys.executable, "-m", "venv", folder], check=True)
    python = str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", what], check=True)
    return python


def weights(python: str) -> dict[str, int]:
    """The bytes of each distribution, by its RECORD."""
    code = "import sysconfig; print(sysconfig.get_path('purelib'), sysconfig.get_path('platlib'), sep='\\n')"
    places = set(subprocess.run([python, "-c", code], check=True, capture_output=True, text=True).stdout.split())
    out: dict[str, int] = {}
    for record in (r for place in places for r in Path(place).glob("*.dist-info/RECORD")):
        name = record.parent.name.partition("-")[0].lower()
        with record.open(newline="", encoding="utf-8") as file:
            out[name] = sum(int(row[2]) for row in csv.reader(file) if len(row) > 2 and row[2])
    return {name: size for name, size in out.items() if name not in ("pip", "setuptools")}


def processor_time(python: str, code: str) -> float:
    before = os.times()
    subprocess.run([python, "-W", "ignore", "-c", code], check=True, capture_output=True)
    after = os.times()
    return after.children_user + after.children_system - before.children_user - before.children_system


def starts(pythons: dict[str, str], times: int) -> dict[str, tuple[float, float]]:
    """Seconds to import and to a first answer: the best of so many starts, in turns; the first fills caches."""
    best = dict.fromkeys(pythons, (float("inf"), float("inf")))
    for turn in range(times + 1):
        for name, python in pythons.items():
            candidate = CANDIDATES[name]
            codes = (candidate.imports, f"import numpy as np\n{candidate.imports}\n{ROWS}{candidate.answer}")
            took = [processor_time(python, code) for code in codes]
            if turn:
                best[name] = (min(best[name][0], took[0]), min(best[name][1], took[1]))
    return best


def table(sizes: dict[str, dict[str, int]], took: dict[str, tuple[float, float]]) -> str:
    lines = ["| | MB | packages | import | first answer | the heaviest |", "|---|---|---|---|---|---|"]
    for name, parts in sizes.items():
        heavy = sorted(parts.items(), key=lambda item: -item[1])[:4]
        told = ", ".join(f"{part} {size / 1e6:.0f}" for part, size in heavy)
        times = " | ".join(f"{1000 * t:.0f} ms" for t in took[name])
        lines.append(f"| {name} | {sum(parts.values()) / 1e6:.0f} | {len(parts)} | {times} | {told} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--times", type=int, default=7)
    parser.add_argument("--write", type=Path)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="sizes-") as folder:
        pythons = {
            name: installed(Path(folder) / re.sub(r"\W", "-", name), c.install) for name, c in CANDIDATES.items()
        }
        sizes = {name: weights(python) for name, python in pythons.items()}
        found = table(sizes, starts(pythons, given.times))
    print(found)
    if given.write:
        page = given.write.read_text("utf-8")
        before, _, rest = page.partition(BEGIN)
        given.write.write_text(f"{before}{BEGIN}\n{found}\n{END}{rest.partition(END)[2]}", "utf-8")


if __name__ == "__main__":
    main()
