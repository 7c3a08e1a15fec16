"""Builds what is released, twice, and says whether it may be: `make dist`, or `python tools/make_dist.py [FOLDER]`.

The files that git knows are copied to two places, with other rights and times, and built there: archive and wheel
must come out with the same bytes, and the wheel of the archive must be the wheel of the tree. Then twine and
check-wheel-contents look at them, and the lists below. Whoever has the same commit can build the same bytes again.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LARGEST_WHEEL = 1_500_000  # bytes
IN_WHEEL = ("tallybayes/py.typed", "tallybayes/__init__.pyi", "tallybayes/examples/flats.csv", "licenses/LICENSE")
IN_ARCHIVE = (
    "Makefile", "README.md", "CHANGELOG.md", "LICENSE", "CITATION.cff", "pyproject.toml", "src/tallybayes/__init__.py",
    "tests/conftest.py", "tests/golden/format1.tb.parquet", "tests/golden/0.1.0/told.json", "tests/snapshots/",
    "examples/flats.csv", "docs/first_steps.md", "docs/the_idea.py", "benchmarks/run.py", "notebooks/",
    "requirements/run.txt",
    "tools/make_dist.py", ".github/workflows/",
)  # fmt: skip
NOT_IN_ARCHIVE = (".ci/", ".venv/", "dist/", "__pycache__", ".git/")


def main() -> None:
    """Build, check, and put the files into a folder."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "dist")
    with tempfile.TemporaryDirectory() as place:
        first, second = (built(Path(place) / name, rights) for name, rights in (("one", 0o022), ("two/deeper", 0o077)))
        problems = [
            f"{name} differs from one build to the next"
            for name in first
            if digest(first[name]) != digest(second[name])
        ]
        problems += [] if first.keys() == second.keys() else ["the two builds have files of other names"]
        wheel, archive = (next(p for n, p in first.items() if n.endswith(end)) for end in (".whl", ".tar.gz"))
        problems += of_wheel(wheel) + of_archive(archive)
        problems += [
            f"{name} differs when it is built from the archive" for name in from_archive(archive, wheel, Path(place))
        ]
        problems += [
            said
            for said in map(
                run_check, (["twine", "check", "--strict", wheel, archive], ["check_wheel_contents", wheel])
            )
            if said
        ]
        if problems:
            sys.exit("\n".join(problems))
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        for path in (archive, wheel):
            shutil.copy(path, folder)
            print(f"{digest(path)}  {path.name}  {path.stat().st_size:,} bytes")


def epoch() -> str:
    """The time that all files are given: that of the last commit, or as SOURCE_DATE_EPOCH says."""
    given = os.environ.get("SOURCE_DATE_EPOCH")
    if given:
        return given
    return subprocess.run(
        ["git", "log", "-1", "--format=%ct"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.strip()


def known() -> list[str]:
    """The files of the tree: those that git knows; all of them in an archive that was unpacked."""
    if (ROOT / ".git").exists():
        out = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True).stdout
        return [name for name in out.decode().split("\0") if name and (ROOT / name).is_file()]
    return [
        p.relative_to(ROOT).as_posix()
        for p in ROOT.rglob("*")
        if p.is_file() and not set(NOT_IN_ARCHIVE) & {f"{s}/" for s in p.parts}
    ]


def built(place: Path, rights: int) -> dict[str, Path]:
    """The archive and the wheel of a copy of the tree whose files have other rights and times."""
    tree = place / "tree"
    for name in known():
        (tree / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, tree / name)
        os.chmod(tree / name, 0o666 & ~rights)
    build(tree, place / "dist", rights, "--sdist", "--wheel")
    return {path.name: path for path in sorted((place / "dist").iterdir())}


def build(tree: Path, out: Path, rights: int, *what: str) -> None:
    before = os.umask(rights)
    try:
        command = [sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", str(out), str(tree)]
        done = subprocess.run(command, env={**os.environ, "SOURCE_DATE_EPOCH": epoch()}, capture_output=True, text=True)
    finally:
        os.umask(before)
    if done.returncode:
        sys.exit(done.stdout + done.stderr)


def from_archive(archive: Path, wheel: Path, place: Path) -> list[str]:
    """The wheel, if that of the archive is another."""
    with tarfile.open(archive) as packed:
        packed.extractall(place / "unpacked", filter="data")
    (tree,) = (place / "unpacked").iterdir()
    build(tree, place / "again", 0o022, "--wheel")
    return [] if digest(place / "again" / wheel.name) == digest(wheel) else [wheel.name]


def of_wheel(path: Path) -> list[str]:
    """What is wrong with a wheel."""
    names = zipfile.ZipFile(path).namelist()
    out = [f"the wheel lacks {wanted}" for wanted in IN_WHEEL if not any(n.endswith(wanted) for n in names)]
    out += [f"the wheel has {n}" for n in names if not re.match(r"tallybayes(-[^/]+\.dist-info)?/", n)]
    out += [f"the wheel has {n}" for n in names if re.search(r"(^|/)tests?/|conftest|\.(so|pyd|dll|pyc)$", n)]
    out += [] if path.name.endswith("-py3-none-any.whl") else [f"{path.name} is not for every system"]
    size = path.stat().st_size
    return out + ([] if size < LARGEST_WHEEL else [f"the wheel has {size:,} bytes, more than {LARGEST_WHEEL:,}"])


def of_archive(path: Path) -> list[str]:
    """What is wrong with a source archive."""
    with tarfile.open(path) as packed:
        members = packed.getmembers()
    names = [m.name.partition("/")[2] for m in members]
    out = [f"the archive lacks {wanted}" for wanted in IN_ARCHIVE if not any(n.startswith(wanted) for n in names)]
    out += [f"the archive has {n}" for n in names if any(f"/{no}" in f"/{n}" for no in NOT_IN_ARCHIVE)]
    return out + [f"{m.name} belongs to {m.uname or m.uid}" for m in members if m.uid or m.gid or m.uname or m.gname]


def run_check(command: list[object]) -> str:
    """What a checker says against the files, or nothing."""
    done = subprocess.run([sys.executable, "-m", *map(str, command)], capture_output=True, text=True)
    return "" if done.returncode == 0 and "WARNING" not in done.stdout else f"{command[0]}: {done.stdout}{done.stderr}"


def digest(path: Path) -> str:
    """SHA-256 of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


if __name__ == "__main__":
    main()
