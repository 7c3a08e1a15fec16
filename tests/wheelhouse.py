"""The package as others install it: a wheel, a folder of wheels, empty environments, and no checkout in sight.

    python tests/wheelhouse.py [--work FOLDER] [--pythons 3.11 3.12 …] [--extras all fast …] [--steps fetch …] [--quick]

It builds the wheel and looks into it, fills a folder with the wheels that the pins name, and then installs from that
folder alone (`pip install --no-index`). In an environment without any extra and in one with each extra the tests marked
`core` run, and so do the README's examples, copied and pasted; every other Python that is to be had runs them without
extras and with all of them. It also installs with uv and pipx, resolves the pins for the Pythons and systems that are
not here, and compiles the sources for every Python that is. `make wheelhouse` runs it; it takes about half an hour.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
EXTRAS = ("fast", "files", "stem", "plot", "sklearn", "excel", "serve")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
SYSTEMS = {
    "Linux": "x86_64-unknown-linux-gnu", "Linux on ARM": "aarch64-unknown-linux-gnu",
    "macOS on Apple silicon": "aarch64-apple-darwin", "Windows": "x86_64-pc-windows-msvc",
}  # fmt: skip
STEPS = ("compile", "resolve", "fetch", "others", "try")
RUNNER = ("pytest", "hypothesis")  # what runs the tests; no extra of the package asks for either
MOST_BYTES = 1_500_000
NO_INDEX = {"PIP_CONFIG_FILE": os.devnull, "PIP_FIND_LINKS": ""}  # nor another folder of wheels that this machine knows

# What each extra is for, in a line or two that fail without it
USES = {
    "fast": "import os; os.environ['TALLYBAYES_KERNELS'] = 'on'\n"
    "import numpy as np, tallybayes as tb\nfrom tallybayes.exact.kernels import gate\n"
    "tb.fit(np.random.default_rng(0).normal(size=(5000, 4)), y=np.arange(5000) % 2)\nassert gate.kernels('moments', 1)",
    "files": "import duckdb, tallybayes as tb\n"
    "assert tb.fit(duckdb.sql('SELECT range AS x, range % 2 AS y FROM range(50)'), 'y').tally.rows == 50",
    "stem": "import tallybayes as tb\nassert list(tb.Tokeniser(stem='english').tokens('running')) == ['run']",
    "plot": "import tallybayes as tb\ntb.fit({'x': [1, 2, 3, 4], 'y': list('abab')}, 'y').plot.column('x')",
    "sklearn": "from tallybayes.sklearn import GaussianNB\n"
    "assert len(GaussianNB().fit([[0.0], [1.0]] * 5, [0, 1] * 5).predict([[0.0]])) == 1",
    "excel": "import python_calamine, tallybayes.data.files.excel",
    "serve": "import tallybayes.serve.app",
}


@dataclass(frozen=True)
class Environment:
    """A virtual environment of some Python."""

    folder: Path

    @property
    def python(self) -> str:
        return str(self.folder / ("Scripts" if os.name == "nt" else "bin") / "python")

    def command(self, name: str) -> str:
        return str(Path(self.python).with_name(name))

    def run(self, *words: str, cwd: Path | None = None, **more: str) -> str:
        return run(self.python, *words, cwd=cwd, **more)


def run(*words: str, cwd: Path | None = None, **more: str) -> str:
    """What a command says; ended with all of it if the command fails."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "TALLYBAYES_", "VIRTUAL_ENV"))}
    done = subprocess.run(words, cwd=cwd, env={**clean, **more}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(words)}\n{done.stdout}\n{done.stderr}\nfailed with {done.returncode}")
    return done.stdout


def tell(what: str, since: float | None = None) -> None:
    print(what if since is None else f"{what}  ({time.perf_counter() - since:.0f} s)", flush=True)


# ---- the wheel and the folder


def built(folder: Path) -> Path:
    """The wheel: pure, small, and nothing in it but the package."""
    run(sys.executable, "-m", "build", "--wheel", "--outdir", str(folder), str(ROOT))
    (wheel,) = folder.glob("tallybayes-*.whl")
    size = wheel.stat().st_size
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
        (about,) = (archive.read(n).decode() for n in names if n.endswith(".dist-info/WHEEL"))
    assert "Root-Is-Purelib: true" in about and wheel.name.endswith("-py3-none-any.whl")
    assert size < MOST_BYTES, f"the wheel has {size} bytes"
    strange = [n for n in names if not re.match(r"tallybayes(-[\d.]+\.dist-info)?/", n) or "__pycache__" in n]
    assert not strange, strange
    assert {"tallybayes/py.typed", "tallybayes/examples/flats.csv"} <= set(names)
    tell(f"wheel: {size / 1e6:.2f} MB, {len(names)} files, pure")
    return wheel


def pins(folder: Path) -> Path:
    """The pins without their hashes, as constraints: what is installed is what the requirements name."""
    found = set()
    for name in ("run", "test"):
        text = (ROOT / "requirements" / f"{name}.txt").read_text("utf-8")
        found |= {line.rstrip(" \\") for line in text.splitlines() if re.match(r"[a-z]", line)}
    path = folder / "pins.txt"
    path.write_text("\n".join(sorted(found)) + "\n")
    return path


def python_of(version: str) -> str | None:
    """The interpreter of a version, if this machine has it."""
    if sys.version_info[:2] == tuple(map(int, version.split("."))):
        return getattr(sys, "_base_executable", sys.executable)
    near = sorted((Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"))
    return str(near[-1]) if near else shutil.which(f"python{version}")


def environment(python: str, folder: Path) -> Environment:
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was cut off
    run(python, "-m", "venv", str(folder))
    return Environment(folder)


# ---- what is tried in an environment


def install(env: Environment, house: Path, constraints: Path, *what: str) -> None:
    words = ("-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--find-links", str(house))
    env.run(*words, "-c", str(constraints), *what, **NO_INDEX)


def core_tests(env: Environment) -> str:
    """The last line of the tests marked `core`; they find the installed package, since nothing leads to the sources."""
    where = env.run("-c", "import tallybayes; print(tallybayes.__file__)", cwd=env.folder).strip()
    assert str(env.folder) in where, where
    words = ("-m", "pytest", "-m", "core", "-p", "no:cacheprovider", str(ROOT / "tests"))
    return env.run(*words, cwd=ROOT).strip().splitlines()[-1]


def first_session(env: Environment, folder: Path) -> None:
    """The README's examples as they stand there, and its commands on a table that the package brings."""
    code = (
        "import doctest, sys\n"
        f"found = doctest.testfile({str(ROOT / 'README.md')!r}, module_relative=False, encoding='utf-8', "
        "optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)\n"
        "print(found.attempted); sys.exit(found.failed)"
    )
    assert int(env.run("-c", code, cwd=folder).split()[-1]) > 10
    env.run("-c", "import tallybayes as tb; tb.example('flats.csv', to='.')", cwd=folder)
    command = env.command("tallybayes")
    run(command, "fit", "flats.csv", "--target", "let", "-o", "let.tb.parquet", cwd=folder)
    assert "probability" in run(command, "explain", "let.tb.parquet", "flats.csv", "--row", "7", cwd=folder)


def packages(env: Environment) -> set[str]:
    said = env.run("-m", "pip", "list", "--format", "freeze", "--disable-pip-version-check")
    return {line.partition("==")[0].lower() for line in said.splitlines()}


def tried(version: str, house: Path, constraints: Path, work: Path, extras: list[str], quick: bool) -> None:
    """One Python: without extras, and with each of some."""
    python = python_of(version)
    assert python is not None
    for extra in ["", *extras]:
        since = time.perf_counter()
        folder = work / f"env-{version}-{extra or 'core'}"
        env = environment(python, folder)
        before = packages(env)
        install(env, house, constraints, f"tallybayes[{extra}]" if extra else "tallybayes")
        brought = packages(env) - before - {"tallybayes"}
        if not extra:
            assert not brought & {"numba", "duckdb", "pystemmer", "pandas", "polars", "matplotlib"}, brought
        install(env, house, constraints, *RUNNER)
        (folder / "session").mkdir()
        first_session(env, folder / "session")
        for used in EXTRAS if extra == "all" else [extra] if extra else []:
            env.run("-W", "ignore", "-c", USES[used], cwd=folder)
        said = "core tests left out" if quick else core_tests(env)
        tell(f"Python {version}, {extra or 'core alone'}: {len(brought)} packages, README runs, {said}", since)
        shutil.rmtree(folder)


def filled(house: Path, constraints: Path, versions: list[str], extras: list[str]) -> None:
    """Every wheel that the environments will ask for."""
    for version in versions:
        since = time.perf_counter()
        python = python_of(version)
        assert python is not None
        env = environment(python, house.parent / f"fetch-{version}")
        wheel = next(house.glob("tallybayes-*.whl"))
        what = [f"{wheel}[{','.join(extras)}]" if extras else str(wheel), *RUNNER]
        words = ("-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--only-binary=:all:")
        env.run(*words, "-d", str(house), "-c", str(constraints), *what)
        shutil.rmtree(env.folder)
        tell(f"wheels for Python {version}", since)
    size = sum(p.stat().st_size for p in house.iterdir())
    tell(f"wheelhouse: {len(list(house.iterdir()))} wheels, {size / 1e6:.0f} MB")


# ---- other installers, other systems


def other_installers(house: Path, constraints: Path, work: Path) -> None:
    offline = ("--no-index", "--find-links", str(house))
    folder = work / "uv"
    run("uv", "venv", "--quiet", "--python", sys.executable, str(folder))
    env = Environment(folder)
    run("uv", "pip", "install", "--quiet", "--python", env.python, *offline, "-c", str(constraints), "tallybayes")
    assert "Usage: tallybayes" in run(env.command("tallybayes"), "--help")
    tell("installed with uv")
    homes = {"PIPX_HOME": str(work / "pipx"), "PIPX_BIN_DIR": str(work / "bin"), "PIPX_MAN_DIR": str(work / "man")}
    given = f"--no-index --find-links={house} -c {constraints}"
    run(sys.executable, "-m", "pipx", "install", "--pip-args", given, "tallybayes", **homes, **NO_INDEX)
    assert "Usage: tallybayes" in run(str(work / "bin" / "tallybayes"), "--help")
    tell("installed with pipx")


def resolved(constraints: Path) -> Iterator[str]:
    """Every Python and system for which the pins resolve to wheels alone, without extras and with all of them."""
    for version in PYTHONS:
        for system, target in SYSTEMS.items():
            for extra in ((), ("--extra", "all")):
                words = ("uv", "pip", "compile", "--quiet", "--no-header", "--only-binary", ":all:", "--no-annotate")
                where = ("--python-version", version, "--python-platform", target, "-c", str(constraints))
                said = run(*words, *where, *extra, "pyproject.toml", cwd=ROOT)
                yield f"{version}, {system}{', all' if extra else ''}: {said.count('==')} packages"


def compiled(versions: list[str]) -> None:
    """The sources compile under every Python here, warnings as errors, and have no syntax that a newer one dropped."""
    with tempfile.TemporaryDirectory() as folder:
        for version in versions:
            python = python_of(version)
            assert python is not None
            run(python, "-W", "error", "-m", "compileall", "-q", "-f", str(ROOT / "src"), PYTHONPYCACHEPREFIX=folder)
    for version in ("py311", "py314"):
        rules = ("--select", "E9,F,B012,UP036", "--target-version", version)
        run(sys.executable, "-m", "ruff", "check", "--quiet", *rules, "src", cwd=ROOT)
    tell(f"sources compile under {', '.join(versions)}; ruff finds nothing that 3.11 or 3.14 would not take")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, help="a folder to work in, which is kept; else a temporary one")
    parser.add_argument("--pythons", nargs="*", default=[v for v in PYTHONS if python_of(v)])
    parser.add_argument("--extras", nargs="*", default=[*EXTRAS, "all"], help="of the first Python; others have all")
    parser.add_argument("--steps", nargs="*", default=STEPS, choices=STEPS, help="not all; the wheel is always built")
    parser.add_argument("--quick", action="store_true", help="install and run the README, but not the tests")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="wheelhouse-") as temporary:
        work = (given.work or Path(temporary)).resolve()
        house = work / "house"
        house.mkdir(parents=True, exist_ok=True)
        constraints = pins(work)
        for old in house.glob("tallybayes-*.whl"):
            old.unlink()
        built(house)
        if "compile" in given.steps:
            compiled(given.pythons)
        for line in resolved(constraints) if "resolve" in given.steps else ():
            tell(f"resolves: {line}")
        if "fetch" in given.steps:
            filled(house, constraints, given.pythons, given.extras)
        if "others" in given.steps:
            other_installers(house, constraints, work)
        for version in given.pythons if "try" in given.steps else ():
            extras = given.extras if version == given.pythons[0] else [e for e in given.extras if e == "all"]
            tried(version, house, constraints, work, extras, given.quick)


if __name__ == "__main__":
    main()
