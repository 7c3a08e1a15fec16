"""One process at a time: a lock for a file that is read, changed and put back whole.

The file itself cannot carry the lock, since putting it back gives its name to another file. So there is a file beside
it, `.NAME.lock`, which the system locks for whoever has it open: a process that dies lets go of it at once, however it
dies. It is taken away when nobody needs it any longer.
"""

from __future__ import annotations

import contextlib
import errno
import os
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)  # some network file systems
_BUSY = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_OFTEN = 0.05  # seconds between two tries where the system cannot wait by itself


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock of a file, once no other process does; `waiting` is called if that is not at once.

    Where the file system has no locks there is none, and the last of two processes to write wins.
    """
    folder, name = os.path.split(os.path.realpath(os.fspath(path)))
    beside, told = os.path.join(folder, f".{name[:100]}.lock"), False
    while True:
        file = os.open(beside, os.O_RDWR | os.O_CREAT | getattr(os, "O_CLOEXEC", 0), 0o666)
        try:
            if not _taken(file, waiting=False):
                if not told:
                    waiting()
                told = True
                _taken(file, waiting=True)
            if _is_at(file, beside):
                break
        except BaseException:
            os.close(file)
            raise
        os.close(file)  # the one who had it has taken the file away: begin again with a new one
    try:
        yield
    finally:
        if sys.platform == "win32":
            os.close(file)  # an open file cannot be taken away there
        with contextlib.suppress(OSError):
            os.unlink(beside)
        if sys.platform != "win32":
            os.close(file)


def _is_at(file: int, path: str) -> bool:
    """Whether an open file is still the one of this name."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(file), there)


def _taken(file: int, *, waiting: bool) -> bool:
    """Whether the lock of an open file is ours; waits for it if asked to."""
    try:
        _lock(file, waiting)
    except OSError as error:
        if error.errno in _BUSY:
            return False
        if error.errno not in _NO_LOCKS:
            raise
    return True


def _lock(file: int, waiting: bool) -> None:
    if sys.platform == "win32":
        windows: Any = import_module("msvcrt")
        while True:
            try:
                windows.locking(file, windows.LK_NBLCK, 1)
                return
            except OSError:
                if not waiting:
                    raise
                time.sleep(_OFTEN)
    unix: Any = import_module("fcntl")
    unix.flock(file, unix.LOCK_EX | (0 if waiting else unix.LOCK_NB))
