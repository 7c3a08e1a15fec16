"""What is said about working on the project is so: make targets, workflows, templates, versions, the citation."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import conftest
import pytest

import tallybayes as tb

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = set(re.findall(r"^([a-z][a-z-]*):", MAKEFILE, re.MULTILINE))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CHANGELOG = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def commands(text: str) -> list[str]:
    return [m[1].strip() for m in re.finditer(r"^\s*(?:- )?run: (.+)$", text, re.MULTILINE)]


def test_make_help_names_every_target_and_no_other() -> None:
    told = re.findall(r'@echo "make ([a-z-]+) ', MAKEFILE)
    phony = re.search(r"^\.PHONY: (.*)$", MAKEFILE, re.MULTILINE)
    assert phony is not None and set(phony[1].split()) == TARGETS == set(told)
    assert len(told) == len(set(told))


def test_contributing_names_every_target() -> None:
    page = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert {t for t in TARGETS if f"make {t}" not in page} == set()


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_a_workflow_asks_for_targets_and_files_that_there_are(path: Path) -> None:
    asked = commands(path.read_text(encoding="utf-8"))
    assert asked
    for command in asked:
        words = command.split()
        if words[0] == "make":
            assert set(words[1:]) <= TARGETS, command
        for given in re.findall(r"requirements/\S+", command):
            assert (ROOT / given).is_file(), command
    if path.name == "check.yml":
        assert {t for c in asked if c.startswith("make") for t in c.split()[1:]} >= {"check", "docs", "dist"}


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda p: p.name)
def test_a_workflow_may_do_little_and_is_pinned(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    assert re.search(r"^permissions: \{\}$", text, re.MULTILINE) and "write-all" not in text
    used = re.findall(r"uses: (\S+)", text)
    assert used
    for action in used:
        assert re.fullmatch(r"[\w./-]+@(v\d+\.\d+\.\d+|[0-9a-f]{40})", action), action
    assert text.count("persist-credentials: false") == sum("actions/checkout@" in a for a in used)
    jobs = text[text.index("\njobs:") :]
    assert jobs.count("timeout-minutes:") == len(re.findall(r"^  [a-z]+:$", jobs, re.MULTILINE))


def test_tests_run_on_the_pythons_that_the_package_names() -> None:
    text = (ROOT / ".github" / "workflows" / "check.yml").read_text(encoding="utf-8")
    listed = re.search(r"python: \[(.*)\]", text)
    assert listed is not None
    named = [c.rpartition(" ")[2] for c in PROJECT["classifiers"] if re.search(r"Python :: 3\.\d+$", c)]
    assert re.findall(r'"([\d.]+)"', listed[1]) == named
    assert named[0] == PROJECT["requires-python"].removeprefix(">=")
    for system in ("ubuntu", "macos", "windows"):
        assert f"{system}-latest" in text


def test_windows_is_spared_only_tests_of_unix() -> None:
    """A file that imports a module of Unix is left out there, and every name in the list is a file or folder."""
    assert all((ROOT / "tests" / name).exists() for name in conftest.UNIX_ONLY)
    beside = {path.stem: path for path in (ROOT / "tests").rglob("*.py")}

    def imported(path: Path) -> set[str]:
        names = set()
        for node in ast.parse(path.read_bytes()).body:
            names |= {n.name for n in node.names} if isinstance(node, ast.Import) else set()
            names |= {node.module or ""} if isinstance(node, ast.ImportFrom) else set()
        return names | {n for name in names & beside.keys() if beside[name] != path for n in imported(beside[name])}

    unix = {"fcntl", "termios", "pty", "tty", "resource", "pwd", "grp"}
    tests = {p.relative_to(ROOT / "tests").as_posix(): imported(p) & unix for p in (ROOT / "tests").rglob("test_*.py")}
    assert sum(map(bool, tests.values())) > 2
    lost = [n for n, needs in tests.items() if needs and not any(n.startswith(known) for known in conftest.UNIX_ONLY)]
    assert lost == [], "Windows cannot import what they import"


def test_one_version_is_named_everywhere() -> None:
    assert re.fullmatch(r"\d+\.\d+\.\d+", tb.__version__)
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {tb.__version__}\n" in citation
    assert f"## {tb.__version__}" in CHANGELOG
    assert (ROOT / "tests" / "golden" / tb.__version__).is_dir(), "python tests/golden/write_version.py"


def test_hooks_use_the_environment_that_is_there() -> None:
    text = (ROOT / ".pre-commit-config.yaml").read_text(encoding="utf-8")
    assert re.findall(r"repo: (\S+)", text) == ["local"]
    assert set(re.findall(r"language: (\S+)", text)) == {"system"}
    for entry in re.findall(r"entry: (\S+) ?(\S*)", text):
        assert entry[0].startswith(".venv/bin/") or (entry[0] == "make" and entry[1] in TARGETS), entry


def test_what_is_built_is_looked_at(tmp_path: Path) -> None:
    """The lists of tools/make_dist.py find what is missing, and what should not be there."""
    import importlib.util
    import tarfile
    import zipfile

    spec = importlib.util.spec_from_file_location("make_dist", ROOT / "tools" / "make_dist.py")
    assert spec is not None and spec.loader is not None
    script: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    wheel = tmp_path / "tallybayes-9.9.9-cp311-cp311-linux.whl"
    with zipfile.ZipFile(wheel, "w") as out:
        for name in ("tallybayes/py.typed", "tallybayes/tests/test_x.py", "other/x.py"):
            out.writestr(name, "")
    problems = "\n".join(script.of_wheel(wheel))
    for said in ("lacks tallybayes/__init__.pyi", "has tallybayes/tests", "has other/x.py", "not for every system"):
        assert said in problems
    archive = tmp_path / "t.tar.gz"
    with tarfile.open(archive, "w:gz") as packed:
        packed.add(wheel, "tallybayes-9.9.9/.ci/run")
    problems = "\n".join(script.of_archive(archive))
    assert "lacks tests/conftest.py" in problems and "has .ci/run" in problems
    assert all((ROOT / name).exists() for name in script.IN_ARCHIVE)


def test_the_sources_are_those_of_every_python_to_be_had() -> None:
    """Compiled with warnings as errors by this Python; `make portable` and the workflow have the others."""
    program = (
        "import pathlib, sys\n"
        "for folder in sys.argv[1:]:\n"
        "    for path in pathlib.Path(folder).rglob('*.py'):\n"
        "        compile(path.read_bytes(), str(path), 'exec')\n"
    )
    folders = [str(ROOT / name) for name in ("src", "tests", "tools", "docs", "benchmarks")]
    subprocess.run([sys.executable, "-W", "error", "-c", program, *folders], check=True, timeout=120)
