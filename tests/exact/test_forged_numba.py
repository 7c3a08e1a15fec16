"""A Numba that is absent, refuses, lacks something, is unknown or adds wrongly: noticed, said once, and never believed.

Each forged Numba is a package on the path of a fresh process that loads the real one and spoils it.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tallybayes as tb
from tallybayes.exact.kernels import gate

FULL = os.environ.get("TALLYBAYES_TESTS") == "all"
REAL = """
import importlib.machinery, sys
from pathlib import Path

_here = str(Path(__file__).parent.parent)
_real = importlib.machinery.PathFinder.find_spec("numba", [p for p in sys.path if p != _here])
__path__, __file__ = list(_real.submodule_search_locations), _real.origin
exec(compile(Path(__file__).read_text(encoding="utf-8"), __file__, "exec"))
"""
WRONG = """
from llvmlite import ir
_right = ir.IRBuilder.{instruction}
ir.IRBuilder.{instruction} = lambda self, a, b, *more, **named: (
    ir.IRBuilder.{other}(self, a, b, *more, **named) if {where} else _right(self, a, b, *more, **named)
)
"""
IN_VECTORS = "isinstance(a.type, ir.VectorType)"
UNKNOWN = "\n__version__ = '99.1.0'\n"
FORGED: dict[str, tuple[str, str | None]] = {  # what the package says, and what the line has to say
    "adds wrongly": (REAL + WRONG.format(instruction="fadd", other="fsub", where=IN_VECTORS), "is right"),
    "multiplies wrongly": (REAL + WRONG.format(instruction="fmul", other="fadd", where="True"), "is right"),
    "lacks the option": (
        REAL + "\nfrom numba.core import cpu\ndel cpu._options_mixin._nrt\n",
        "_nrt",
    ),
    "lacks the events": (REAL + "\nimport numba.core.event\ndel numba.core.event.Listener\n", "Listener"),
    "lacks the caches": (REAL + "\nimport numba.core.caching\ndel numba.core.caching.FunctionCache\n", "FunctionCache"),
    "is unknown": (REAL + UNKNOWN, None),
    "is unknown and adds wrongly": (
        REAL + UNKNOWN + WRONG.format(instruction="fadd", other="fsub", where=IN_VECTORS),
        "Numba 99.1.0 (untried",
    ),
    "is absent": (
        "raise ModuleNotFoundError(\"No module named 'numba'\", name='numba')",
        "pip install 'tallybayes[fast]'",
    ),
    "refuses this NumPy": (
        "raise ImportError('Numba needs NumPy 2.1 or less. Got NumPy 2.4.')",
        "Numba needs NumPy 2.1",
    ),
    "refuses this Python": ("raise RuntimeError('Cannot install on Python version 3.99.0')", "Python version 3.99"),
    "is half installed": ("from llvmlite_that_is_not_there import binding", "llvmlite_that_is_not_there"),
}
RARE = {  # only where all tests are run
    "multiplies wrongly", "lacks the caches", "is half installed", "refuses this Python", "is unknown and adds wrongly",
}  # fmt: skip
WORK = """
import json, logging, sys
import numpy as np
import tallybayes as tb
from tallybayes.exact.kernels import gate

said = []


class Kept(logging.Handler):
    def emit(self, record):
        said.append(record.getMessage())


logging.getLogger("tallybayes").addHandler(Kept())
logging.getLogger("tallybayes").setLevel(logging.INFO)
rng = np.random.default_rng(0)
y = rng.integers(0, 3, 300)


def counted(x, columns):
    tally = tb.count(x, tb.Schema(columns, target="y", label_type="int"), y)
    model = tally.model()
    return [tally.digest, model.predict(x).tolist(), model.log_joint(x).round(6).tolist()]


out = counted(rng.integers(0, 9, (300, 4)), [tb.Column(f"x{j}", "category") for j in range(4)])
if "all" in sys.argv:
    x = rng.normal(size=(300, 9)) * 10.0 ** rng.integers(-9, 9, 9)
    out += counted(x, [tb.Column("x", "vector", width=9)])
    words = np.array([f"word{i}" for i in range(60)])
    texts = [" ".join(words[rng.zipf(1.5, 12) % 60]) for _ in range(300)]
    table = {"text": texts, "c": rng.choice(list("abc"), 300).tolist(), "v": x[:, 0].tolist(), "y": y.tolist()}
    fitted = tb.fit(table, target="y")
    out += [fitted.tally.digest, fitted.predict(table).tolist(), fitted.settings.weights]
print(json.dumps({"out": out, "said": [s for s in said if "compiling" not in s], "off": gate.why_off()}))
"""


def run(folder: Path, package: str | None, *arguments: str, **environment: str) -> dict[str, Any]:
    """What a fresh process finds, and what it says of Numba, with a forged one first on its path."""
    if package is not None:
        (folder / "forged" / "numba").mkdir(parents=True, exist_ok=True)
        (folder / "forged" / "numba" / "__init__.py").write_text(package, encoding="utf-8")
    source = str(Path(tb.__file__).parent.parent)
    path = [str(folder / "forged")] if package is not None else []
    env = os.environ | {"TALLYBAYES_KERNELS": "on", "NUMBA_CACHE_DIR": str(folder / "cache"), **environment}
    env["PYTHONPATH"] = os.pathsep.join([*path, source])
    command = [sys.executable, "-W", "error", "-c", WORK, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=300)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.fixture(scope="module")
def readable(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., dict[str, Any]]:
    """What the readable road finds."""
    known: dict[tuple[str, ...], dict[str, Any]] = {}

    def found(*arguments: str) -> dict[str, Any]:
        if arguments not in known:
            folder = tmp_path_factory.mktemp("readable")
            known[arguments] = run(folder, None, *arguments, TALLYBAYES_KERNELS="off")
        return known[arguments]

    return found


def needs_numba(name: str) -> None:
    if REAL in FORGED[name][0]:
        pytest.importorskip("numba", reason="Numba is not installed, so there is none to be spoilt")


@pytest.mark.parametrize("name", [n for n in FORGED if FULL or n not in RARE])
def test_a_forged_numba_is_noticed_and_answers_stay_right(
    name: str, tmp_path: Path, readable: Callable[..., dict[str, Any]]
) -> None:
    needs_numba(name)
    package, line = FORGED[name]
    for _ in range(2 if name == "adds wrongly" else 1):  # what it has compiled is on disk the second time
        found = run(tmp_path, package, *(["all"] if name == "multiplies wrongly" else []))
        assert found["out"] == readable(*(["all"] if name == "multiplies wrongly" else []))["out"]
        if "unknown" in name:
            assert found["said"].pop(0) == (
                f"tallybayes: Numba 99.1.0 is untried (tried: {', '.join(gate.TRIED)}); "
                "every kernel is checked before it answers"
            )
        assert found["said"] == ([] if line is None else [found["off"]])
        assert line is None or line in found["off"]


@pytest.mark.skipif(not FULL, reason="a minute: TALLYBAYES_TESTS=all lets every forged Numba fit a table with texts")
@pytest.mark.parametrize("name", FORGED)
def test_a_fit_with_texts_beside_a_forged_numba(
    name: str, tmp_path: Path, readable: Callable[..., dict[str, Any]]
) -> None:
    needs_numba(name)
    package, line = FORGED[name]
    found = run(tmp_path, package, "all")
    assert found["out"] == readable("all")["out"]
    assert (found["off"] is None) == (line is None)


NEVER = """
import tallybayes.exact.kernels.checking as checking

def never(*given):
    raise AssertionError("checked")

checking.difference = never
"""


@pytest.mark.parametrize("version", ["", *([UNKNOWN] if FULL else [])], ids=lambda v: "unknown" if v else "tried")
def test_what_was_checked_is_not_checked_again_unless_numba_is_unknown(
    version: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its name stands beside the compiled function; what an unknown Numba finds on disk is checked every time."""
    pytest.importorskip("numba", reason="without Numba nothing is compiled")
    assert run(tmp_path, REAL + version)["off"] is None
    assert bool(list(tmp_path.rglob("kernels.checked"))) == (version == "")
    monkeypatch.setitem(globals(), "WORK", WORK.replace("rng = ", NEVER + "rng = ", 1))
    assert (run(tmp_path, REAL + version)["off"] is None) == (version == "")
    for marks in tmp_path.rglob("kernels.checked") if FULL else ():
        marks.unlink()  # as if the process had ended between compiling and checking
        assert "AssertionError: checked" in run(tmp_path, REAL + version)["off"]


@pytest.mark.skipif(not FULL, reason="TALLYBAYES_TESTS=all: three processes that compile")
def test_wrong_code_on_disk_is_not_believed_where_right_code_was_checked_before(tmp_path: Path) -> None:
    """A Numba of the same version that adds wrongly writes over what was checked: nothing on disk is trusted then."""
    pytest.importorskip("numba", reason="without Numba nothing is compiled")
    right = run(tmp_path, REAL)
    assert right["off"] is None
    for index in tmp_path.rglob("*.nbi"):
        index.unlink()
    wrong = run(tmp_path, FORGED["adds wrongly"][0])
    assert wrong["off"] is not None
    after = run(tmp_path, REAL)  # finds the wrong code on disk, under a name that was checked
    assert after["off"] is not None
    assert right["out"] == wrong["out"] == after["out"]
