"""What Windows and macOS lack or do otherwise, acted out here: no locks, files in use, drives, other encodings."""

from __future__ import annotations

import errno
import gc
import glob
import io
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import types
from collections.abc import Callable
from typing import Any

import pytest

import tallybayes as tb
from tallybayes.base import disk, temporary
from tallybayes.cli import terminal
from tallybayes.data.batch import Source
from tallybayes.serve.pages import journal

ROWS = {"x": ["u", "v"] * 3, "y": ["a", "b"] * 3}
MODEL = tb.count(ROWS, tb.Schema([tb.Column("x", "category")], target="y")).model()


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> types.SimpleNamespace:
    """Windows as far as files go: its locks, and none of what only Unix has."""
    held: set[tuple[int, int]] = set()

    def locking(file: int, mode: int, size: int) -> None:
        found = os.fstat(file)
        key = found.st_dev, found.st_ino
        if mode == system.LK_UNLCK:
            held.discard(key)
        elif key in held:
            raise OSError(errno.EACCES, "Permission denied")
        else:
            held.add(key)

    system = types.SimpleNamespace(LK_NBLCK=2, LK_UNLCK=0, locking=locking, held=held)
    monkeypatch.setitem(sys.modules, "msvcrt", system)
    monkeypatch.setitem(sys.modules, "fcntl", None)
    monkeypatch.setattr(sys, "platform", "win32")
    for name in ("O_TMPFILE", "O_DIRECTORY", "fchown", "fchmod", "geteuid", "getegid"):
        monkeypatch.delattr(os, name, raising=False)
    monkeypatch.setattr(disk, "_OFTEN", 0.001)
    return system


def refusing(act: Callable[..., Any], times: int) -> tuple[Callable[..., Any], list[int]]:
    """The act, which is refused so many times first, and how often it was tried."""
    tried: list[int] = []

    def instead(*given: Any, **more: Any) -> Any:
        tried.append(1)
        if len(tried) <= times:
            raise PermissionError(errno.EACCES, "The process cannot access the file: it is used by another", given[0])
        return act(*given, **more)

    return instead, tried


def test_a_model_is_saved_and_loaded_on_windows(tmp_path: pathlib.Path, windows: types.SimpleNamespace) -> None:
    for _ in range(2):  # once where there is no file, once over one
        MODEL.save(tmp_path / "m.tb.parquet")
    assert tb.load(tmp_path / "m.tb.parquet").tally == MODEL.tally
    assert os.listdir(tmp_path) == ["m.tb.parquet"]


def test_a_file_that_is_read_meanwhile_is_replaced_a_little_later(
    tmp_path: pathlib.Path, windows: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead, tried = refusing(os.replace, 3)
    monkeypatch.setattr(os, "replace", instead)
    MODEL.save(tmp_path / "m.tb.parquet")
    assert len(tried) == 4 and os.listdir(tmp_path) == ["m.tb.parquet"]


def test_a_file_that_stays_in_use_is_said_to_be(
    tmp_path: pathlib.Path, windows: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    instead, tried = refusing(os.replace, 10**9)
    monkeypatch.setattr(os, "replace", instead)
    monkeypatch.setattr(disk, "_PATIENCE", 0.02)
    with pytest.raises(tb.FileError, match="written"):
        MODEL.save(tmp_path / "m.tb.parquet")
    assert len(tried) > 1 and os.listdir(tmp_path) == []


def test_elsewhere_a_refusal_is_final(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    instead, tried = refusing(os.replace, 3)
    monkeypatch.setattr(os, "replace", instead)
    with pytest.raises(tb.FileError, match="written"):
        MODEL.save(tmp_path / "m.tb.parquet")
    assert len(tried) == 1


def test_a_model_that_is_being_replaced_is_read_a_little_later(
    tmp_path: pathlib.Path, windows: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    MODEL.save(tmp_path / "m.tb.parquet")
    instead, tried = refusing(open, 2)
    monkeypatch.setattr(disk, "open", instead, raising=False)
    assert tb.load(tmp_path / "m.tb.parquet").tally == MODEL.tally and len(tried) == 3


def test_locks_of_windows_keep_others_out_and_are_let_go(
    tmp_path: pathlib.Path, windows: types.SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some of its disks give all files one number, so nobody asks whether an open file still has its name."""
    monkeypatch.setattr(os.path, "samestat", lambda one, other: False)
    waited: list[bool] = []

    def let_go() -> None:
        waited.append(True)
        windows.held.clear()

    with disk.locked(tmp_path / "m"):
        assert len(windows.held) == 1
        with disk.locked(tmp_path / "m", waiting=let_go):
            assert waited == [True]
    assert not windows.held and os.listdir(tmp_path) == []


def test_a_lock_that_windows_cannot_have_is_no_reason_to_wait_for_ever(
    tmp_path: pathlib.Path, windows: types.SimpleNamespace
) -> None:
    def refuse(file: int, mode: int, size: int) -> None:
        raise OSError(errno.EACCES if not refused else errno.EBADF, "no")

    refused: list[bool] = []
    windows.locking = refuse
    with pytest.raises(OSError, match="no"), disk.locked(tmp_path / "m", waiting=lambda: refused.append(True)):
        pass


def test_a_system_without_locks_has_none(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fcntl", None)
    with disk.locked(tmp_path / "m"):
        MODEL.save(tmp_path / "m")
    assert os.listdir(tmp_path) == ["m"]


@pytest.mark.parametrize("works", [True, False])
def test_macos_is_asked_to_empty_the_memory_of_the_disk(
    works: bool, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def control(file: int, what: int) -> None:
        asked.append(what)
        if not works:
            raise OSError(errno.ENOTSUP, "not on this file system")

    monkeypatch.setitem(sys.modules, "fcntl", types.SimpleNamespace(F_FULLFSYNC=51, fcntl=control))
    monkeypatch.setattr(os, "fsync", lambda file: asked.append("fsync"))
    monkeypatch.delattr(os, "O_DIRECTORY")
    MODEL.save(tmp_path / "m")
    assert asked == ([51] if works else [51, "fsync"])


def test_a_long_name_of_letters_that_take_several_bytes(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "日" * 80  # 240 bytes of the 255 that a name may have
    monkeypatch.setattr(disk, "_nameless", lambda folder, mode: None)
    with disk.locked(tmp_path / name):
        MODEL.save(tmp_path / name)
    assert os.listdir(tmp_path) == [name]


def test_a_drive_is_no_address(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for path in (r"C:\rows\people.csv", "C:/rows/people.csv", "C://rows/people.csv"):
        with pytest.raises(tb.DataError, match="there is no file C:"):
            tb.read(path)
    (tmp_path / "C:").mkdir()
    (tmp_path / "C:" / "shop.csv").write_text("x,y\nu,a\nv,b\n", encoding="utf-8")
    assert [batch.rows for batch in tb.read("C://shop.csv").batches()] == [2]


def test_rows_that_are_kept_for_a_second_reading_go_with_their_source(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    for platform in ("linux", "win32"):
        monkeypatch.setattr(sys, "platform", platform)
        source = spooled()
        assert [b.rows for b in source.batches()] == [b.rows for b in source.batches()] == [3]
        assert os.listdir(tmp_path)
        del source
        gc.collect()
        assert not os.listdir(tmp_path)


def test_rows_that_break_off_leave_nothing_behind(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(OSError, match="gone"):
        spooled(broken=True)
    gc.collect()
    assert not os.listdir(tmp_path)


def spooled(broken: bool = False) -> Source:
    from tallybayes.data.batch import Batch, _spooled

    def batches() -> Any:
        import pyarrow as pa

        yield Batch({"x": pa.array(["u", "v", "w"])}, 3)
        if broken:
            raise OSError("gone")

    return _spooled(batches())


def test_what_windows_holds_open_goes_when_the_process_ends(tmp_path: pathlib.Path) -> None:
    program = f"""
import os, shutil, tempfile
tempfile.tempdir = {str(tmp_path)!r}
from tallybayes.base.temporary import folder_for_now
remove, tried = shutil.rmtree, []

def in_use_at_first(folder, ignore_errors):
    tried.append(folder)
    if len(tried) > 1:
        remove(folder)

shutil.rmtree = in_use_at_first
with folder_for_now() as folder:
    open(folder + "/rows", "wb").close()
assert os.listdir(folder) == ["rows"]
"""
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    assert os.listdir(tmp_path) == []


def test_a_download_has_no_name_on_the_disk_when_it_is_sent(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))

    def write(path: str) -> None:
        pathlib.Path(path).write_bytes(b"counts")

    here = journal._download("m", write)
    assert here.file is not None and here.file.read() == b"counts"
    here.file.close()
    monkeypatch.setattr(sys, "platform", "win32")
    there = journal._download("m", write)
    assert there.file is None and there.body == b"counts"  # a file that is open could not be deleted
    assert os.listdir(tmp_path) == []


def test_folders_for_a_while_go_also_after_an_error(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with temporary.folder_for_now() as folder:
        assert glob.glob(str(tmp_path / "tallybayes-*")) == [folder]
    with pytest.raises(FileNotFoundError), temporary.folder_for_now() as folder:
        os.stat(os.path.join(folder, "none"))
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("encoding", ["cp1252", "ascii", "utf-8", "utf8", "UTF-8"])
def test_json_is_utf8_whatever_the_terminal_is(encoding: str, monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace", newline="")
    monkeypatch.setattr(sys, "stdout", stream)
    value = {"Köln": ["Σ", "🦆", "\x7f"]}
    terminal.show_json(value)
    raw = stream.buffer.getvalue()
    assert json.loads(raw.decode("utf-8")) == value
    assert ("Σ".encode() in raw) == encoding.lower().startswith("utf")


def test_a_console_of_old_windows_sees_no_signs_for_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    shown = []
    for old in (False, True):
        monkeypatch.setattr("rich.console.detect_legacy_windows", lambda old=old: old)
        monkeypatch.setattr(sys, "stdout", out := Terminal())
        terminal.show(terminal.heading("Rows"), terminal.grid(["name", "n"], [["a", 1]]))
        shown.append(out.getvalue())
    assert "\x1b[" in shown[0] and "\x1b" not in shown[1]
    assert "Rows" in shown[1]


def test_a_mail_server_says_that_there_are_no_sockets(tmp_path: pathlib.Path) -> None:
    program = """
import sys, socket, socketserver, contextlib
for name in ("UnixStreamServer", "UnixDatagramServer", "ThreadingUnixStreamServer"):
    delattr(socketserver, name)
del socket.AF_UNIX
import tallybayes.mail, tallybayes.cli.mail
sys.platform = "win32"
from tallybayes.mail.serve import MailServer
import tallybayes as tb
try:
    MailServer("state", "socket")
except tb.SettingsError as error:
    print(error)
"""
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, cwd=tmp_path)
    assert b"there are no Unix sockets" in told.stdout, told.stderr
    assert os.listdir(tmp_path) == []


UNIX = ("fcntl", "grp", "posix_ipc", "pwd", "resource", "termios", "tty", "pty", "syslog")


def test_every_module_is_imported_where_unix_is_not() -> None:
    """As on Windows, whose Python lacks these modules and names; Spark and Numba are others' to import."""
    program = f"""
import importlib, os, pkgutil, signal, socket, socketserver, sys
import tallybayes, numpy, pyarrow, scipy, scipy.special, scipy.sparse, threadpoolctl, click, rich.console, rich.table
import uvicorn, starlette.applications, sklearn.base, matplotlib.figure, onnx, sqlite3
for name in {UNIX!r}:
    sys.modules[name] = None
for module, names in (
    (os, "fork O_TMPFILE O_DIRECTORY O_NOFOLLOW O_CLOEXEC O_NONBLOCK fchown fchmod geteuid getegid getuid pread "
         "pwrite sched_getaffinity mkfifo"),
    (signal, "SIGKILL SIGHUP SIGALRM SIGPIPE SIGUSR1 SIGCHLD alarm setitimer pthread_sigmask"),
    (socket, "AF_UNIX"),
    (socketserver, "UnixStreamServer ForkingMixIn"),
):
    for name in names.split():
        if hasattr(module, name):
            delattr(module, name)
sys.platform = "win32"
left = [m.name for m in pkgutil.walk_packages(tallybayes.__path__, "tallybayes.")
        if ".spark" not in m.name and ".kernels" not in m.name and not m.name.endswith("__main__")]
for name in left:
    importlib.import_module(name)
print(len(left))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    assert int(done.stdout) > 200


def test_no_text_is_read_or_written_in_the_encoding_of_the_machine(tmp_path: pathlib.Path) -> None:
    program = """
import warnings
warnings.filterwarnings("error", category=EncodingWarning, module=r"tallybayes\\b")  # others' are theirs to mend
import tallybayes as tb
from tallybayes.cli import main
rows = {"x": ["u", "ü"] * 20, "n": [1.5, 2.5] * 20, "y": ["a", "b"] * 20}
schema = tb.infer(rows, target="y")
schema.save("s.json"); tb.Schema.load("s.json")
model = tb.count(rows, schema).model()
model.save("m.tb.parquet"); model.export("m.json", "json"); model.export("m.md", "card")
tb.report(model, rows, path="r.html")
with open("rows.csv", "w", encoding="cp1252") as file:
    file.write("x,y\\n" + "ü,a\\nu,b\\n" * 20)
tb.count(tb.read("rows.csv", encoding="cp1252"), tb.Schema([tb.Column("x", "category")], target="y"))
try:
    main(["show", "m.tb.parquet"])
except SystemExit as end:
    assert not end.code, end.code
"""
    command = [sys.executable, "-X", "warn_default_encoding", "-c", program]
    there = {**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": "cp1252"}
    done = subprocess.run(command, capture_output=True, timeout=120, cwd=tmp_path, env=there)
    assert done.returncode == 0, done.stderr.decode("cp1252")
