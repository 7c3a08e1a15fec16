"""The package as a whole: its public names, what importing it costs, what it says about itself."""

from __future__ import annotations

import importlib.metadata
import pathlib
import re
import subprocess
import sys
import tomllib

import pytest

import tallybayes as tb

ROOT = pathlib.Path(__file__).parents[1]


def test_public_names() -> None:
    assert sorted(tb.__all__) == tb.__all__
    for name in tb.__all__:
        assert getattr(tb, name).__doc__, f"{name} says nothing about itself"
    offered = {n for n in dir(tb) if not n.startswith("_")}
    modules = {p.stem for p in (ROOT / "src/tallybayes").glob("*")}
    assert offered - set(tb.__all__) <= modules


def test_importing_is_light() -> None:
    """`import tallybayes` loads neither numba, pandas, polars, scikit-learn, duckdb nor matplotlib."""
    code = "import sys, tallybayes; print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not set(loaded) & {"numba", "llvmlite", "pandas", "polars", "sklearn", "duckdb", "matplotlib"}


def test_public_names_keep_their_meaning_whatever_was_imported_before() -> None:
    """`infer` is a function and a module of the same name: the package offers the function, in any order of imports."""
    code = (
        "import tallybayes as tb, types\n"
        "import tallybayes.data.infer, tallybayes.model.estimate, tallybayes.model.joint.shift\n"
        "from tallybayes import fit, hopeless\n"
        "for name in tb.__all__:\n"
        "    found = getattr(tb, name)\n"
        "    assert isinstance(found, types.ModuleType) == (name not in tb._HOMES), name\n"
        "assert set(tb._HOMES) <= set(tb.__all__)\n"
        "assert callable(tb.infer) and callable(fit) and tb.families.Gaussian\n"
        "try:\n    tb.absent\nexcept AttributeError as error:\n    assert 'absent' in str(error)\n"
        "else:\n    raise AssertionError"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_help_needs_click_alone() -> None:
    code = (
        "import sys\nfrom tallybayes import cli\n"
        "try:\n    cli.main(['--help'])\nexcept SystemExit:\n    pass\n"
        "print(*sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "Usage: tallybayes" in done.stdout
    assert not set(done.stdout.splitlines()[-1].split()) & {"numpy", "pyarrow", "scipy", "duckdb", "rich", "numba"}


def test_a_small_fit_does_not_load_numba() -> None:
    code = (
        "import sys, numpy as np, tallybayes as tb\n"
        "x = np.random.default_rng(0).normal(size=(1000, 10))\n"
        "tb.fit(x, y=np.arange(1000) % 2).predict(x)\n"
        "assert 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_works_without_numba() -> None:
    code = (
        "import sys; sys.modules['numba'] = None\n"
        "import numpy as np, tallybayes as tb\n"
        "from tallybayes.exact.kernels import gate\n"
        "gate.BREAK_EVEN = 0\n"
        "x = np.random.default_rng(0).normal(size=(1000, 10))\n"
        "print(tb.fit(x, y=np.arange(1000) % 2).tally.digest)"
    )
    without = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    kernels = code.replace("import sys; sys.modules['numba'] = None\n", "")
    assert subprocess.run([sys.executable, "-c", kernels], capture_output=True, text=True, check=True).stdout == without


def test_version_licence_and_pythons_are_stated() -> None:
    assert importlib.metadata.version("tallybayes") == tb.__version__
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert f"version: {tb.__version__}" in (ROOT / "CITATION.cff").read_text()
    assert f"## {tb.__version__}" in (ROOT / "CHANGELOG.md").read_text()
    assert (ROOT / "LICENSE").read_text().startswith("MIT License")
    assert (ROOT / "src/tallybayes/py.typed").exists()


def test_pins_are_hashed_and_name_no_address() -> None:
    for path in (ROOT / "requirements").glob("*.txt"):
        text = path.read_text()
        assert "://" not in text
        for pin in re.findall(r"^([A-Za-z][^ \n]*==[^\n]*?)$", text, re.M):
            assert pin.endswith("\\"), f"{path.name}: {pin} has no hash"


def test_the_rule_stands_where_it_should() -> None:
    rule = "A column turns a value into a few additive amounts. Training adds them by class. Predicting adds up"
    for path in ("README.md", "src/tallybayes/__init__.py", "src/tallybayes/families/base.py"):
        text = re.sub(r"[\s>]+", " ", (ROOT / path).read_text(encoding="utf-8"))
        assert rule in text, f"{path} does not state the rule"


def test_source_files_stay_small() -> None:
    for path in (ROOT / "src").rglob("*.py"):
        lines = path.read_text(encoding="utf-8").count("\n")
        assert lines <= 400, f"{path.name} has {lines} lines: it is two things"


def test_examples_are_found_and_copied(tmp_path):
    flats, inbox = tb.example("flats.csv"), tb.example("inbox", to=tmp_path)
    assert flats.read_text("utf-8").startswith("number,")
    assert {p.name for p in inbox.iterdir()} == {"ham", "spam"}
    copy = tb.example("flats.csv", to=tmp_path)
    copy.write_text("mine")
    assert tb.example("flats.csv", to=tmp_path).read_text() == "mine"  # what lies there is left as it is
    with pytest.raises(tb.DataError, match=r"did you mean 'flats\.csv'"):
        tb.example("flat.csv")
    with pytest.raises(tb.DataError, match=r"which example\?\n\nHint: name one: 'flats\.csv', 'inbox'"):
        tb.example()


def test_a_wheel_has_the_examples():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    shipped = settings["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    named = {p.name for p in (ROOT / "examples").iterdir() if p.suffix != ".py"}
    assert {pathlib.Path(p).name for p in shipped} == named
    assert all(shipped[f"examples/{name}"] == f"tallybayes/examples/{name}" for name in named)


@pytest.mark.parametrize("load", [tb.load, tb.load_sealed, tb.Tally.load, tb.Schema.load])
def test_a_file_that_is_not_there_is_told_with_the_nearest_name(tmp_path, load):
    (tmp_path / "flats.tb.parquet").write_bytes(b"")
    with pytest.raises(
        tb.FileError, match=r"flat\.tb\.parquet cannot be read[\s\S]*did you mean 'flats\.tb\.parquet'"
    ) as e:
        load(tmp_path / "flat.tb.parquet")
    assert isinstance(e.value, FileNotFoundError)
