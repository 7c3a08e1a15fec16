"""The first run on a machine compiles, and says so once, to a person only; later ones start from the cache."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import tallybayes as tb

pytest.importorskip("numba", reason="without Numba nothing is compiled")
SAID = "tallybayes: compiling for this machine, once"
CODE = """
import tallybayes as tb
from numba.core import event
seen = event.RecordingListener()
event.register("numba:compile", seen)
data = {"x": ["a", "b"] * 50, "y": ["u", "v", "v", "u"] * 25}
model = tb.count(data, tb.Schema([tb.Column("x", "category")], target="y")).model()
assert model.predict({"x": data["x"]}).tolist()[:2] == ["u", "u"]
functions = {e.data["dispatcher"].py_func for _, e in seen.buffer}
print(*sorted(f.__name__ for f in functions if f.__module__.startswith("tallybayes")))
"""


def run(terminal: bool, **environment: str) -> tuple[list[str], str]:
    """The kernels that a fresh process compiles, and what it writes to its error stream, a terminal or not."""
    env = {k: v for k, v in os.environ.items() if k not in ("NUMBA_CACHE_DIR", "XDG_CACHE_HOME")}
    env |= {"TALLYBAYES_KERNELS": "on", **environment}
    command = [sys.executable, "-B", "-c", CODE]
    if not terminal:
        done = subprocess.run(command, capture_output=True, text=True, env=env, timeout=180)
        assert done.returncode == 0, done.stderr
        return done.stdout.split(), done.stderr
    pty = pytest.importorskip("pty", reason="only Unix has terminals to pretend")
    ours, theirs = pty.openpty()
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, stderr=theirs, text=True, env=env, timeout=180)
    finally:
        os.close(theirs)
    with os.fdopen(ours, "rb", buffering=0) as stream:
        written = b""
        try:
            while piece := stream.read(4096):
                written += piece
        except OSError:  # so a terminal ends that nobody holds any longer
            pass
    assert done.returncode == 0, written.decode()
    return done.stdout.split(), written.decode()


def test_compiling_is_said_once_and_only_to_a_terminal(tmp_path: Path) -> None:
    cache = str(tmp_path / "cache")
    compiled, said = run(True, NUMBA_CACHE_DIR=cache)
    assert len(compiled) > 1  # several kernels, and one message
    assert said.count(SAID) == 1
    assert run(True, NUMBA_CACHE_DIR=cache) == ([], "")
    assert run(False, NUMBA_CACHE_DIR=str(tmp_path / "other")) == (compiled, "")


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    """Numba caches beside the source, in the user's own directory where that is read-only, or not at all."""
    package, home = tmp_path / "site" / "tallybayes", tmp_path / "home"
    home.mkdir()
    shutil.copytree(Path(tb.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    (package / "exact/kernels/__pycache__").write_text("a file, so that no cache fits here, even for root")
    compiled, _ = run(False, PYTHONPATH=str(package.parent), HOME=str(home))
    assert compiled
    assert list(home.rglob("*.nbi"))
    assert run(False, PYTHONPATH=str(package.parent), HOME=str(home)) == ([], "")
    (tmp_path / "nowhere").write_text("a file, so that there is no home either")
    assert run(False, PYTHONPATH=str(package.parent), HOME=str(tmp_path / "nowhere"))[0] == compiled


RACE = """
import threading
import numpy as np
from tallybayes.exact.kernels.compiling import lazy

@lazy("int64(const {i}[::1])", i=("int32", "int64", "uint8", "float32", "float64"))
def length(numbers):
    out = 0
    for x in numbers:
        out += 1
    return out

kinds, wrong, over = ["int32", "int64", "uint8", "float32", "float64"], [], threading.Event()
assert length(np.zeros(3, kinds[0])) == 3

def call():
    while not over.is_set():
        try:
            assert length(np.zeros(3, kinds[0])) == 3
        except Exception as error:
            wrong.append(repr(error))
            return

threads = [threading.Thread(target=call) for _ in range(4)]
for thread in threads:
    thread.start()
for kind in kinds[1:]:
    assert length(np.zeros(3, kind)) == 3
over.set()
for thread in threads:
    thread.join()
assert not wrong, wrong
"""


def test_a_kernel_answers_some_threads_while_it_is_compiled_for_another(tmp_path: Path) -> None:
    """Twice: compiling takes long the first time, and the second time each signature is read from the cache."""
    (tmp_path / "race.py").write_text(RACE)
    env = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    for _ in range(2):
        done = subprocess.run(
            [sys.executable, str(tmp_path / "race.py")], capture_output=True, text=True, env=env, timeout=180
        )
        assert done.returncode == 0, done.stderr[-2000:]
    assert list((tmp_path / "cache").rglob("*length*.nbi"))
