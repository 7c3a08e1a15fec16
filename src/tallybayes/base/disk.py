"""Files that others read while they change: put there whole or not at all, and changed by one process at a time.

    write into a new file → bring it to the disk → give it the old one's name → bring the folder to the disk

Whoever pulls the plug between any two of these steps finds the old file or the new one. An error on the way (disk
full, no permission) leaves the old file and no litter. Where the system has files without a name, a process that is
killed while it writes leaves none either.

A file that is read, changed and put back cannot carry its own lock, since putting it back gives its name to another
file. So there is a file beside it, `.NAME.lock`, which the system locks for whoever has it open: a process that dies
lets go of it at once, however it dies. It is taken away when nobody needs it any longer.

Systems differ. Windows lets nobody replace a file that another has open, so such a step is tried again for a while;
macOS brings a file to the disk only if it is asked twice; some systems have no locks, and none are taken there.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, TypeVar

from .errors import DataError, FileError, did_you_mean
from .wording import printable

_NEW = os.O_RDWR | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_OWN = getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_NOFOLLOW", 0)
_MODE = 0o666  # less what the umask takes away, as for any new file
_PRIVATE = 0o600  # what people have given into the hands of a server
_OPEN_FILES = "/proc/self/fd"  # Linux lists them there, by number
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)  # some network file systems refuse
_PIECE = 1 << 24  # bytes written at once; a single write of more than 2^31 is cut short on Linux
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EOPNOTSUPP, errno.EINVAL)  # some network file systems
_BUSY = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_OFTEN = 0.05  # seconds between two tries where the system cannot wait by itself
_PATIENCE = 2.0  # seconds for which a file may be in somebody else's hands on Windows
_LONGEST = 200  # bytes of a name that ours are made of; most systems have names of up to 255
T = TypeVar("T")


def on_windows() -> bool:
    """Whether this is Windows, where a file that is open keeps its name and its place."""
    return sys.platform == "win32"


def named(path: str | os.PathLike[str]) -> str:
    """The path as it was given; refused where no system has such a name."""
    given = os.fspath(path)
    if isinstance(given, str) and "\0" in given:
        raise DataError(
            f"the path {given!r} has a character of value 0 in it, which no file can have in its name",
            hint="look where the path comes from: it may be cut wrongly out of a longer text.",
        )
    return given


def names_beside(path: str | os.PathLike[str]) -> list[str]:
    """What there is in the folder of a path that may be misspelt; nothing where that cannot be read."""
    try:
        return os.listdir(os.path.dirname(os.fspath(path)) or ".")
    except OSError:
        return []


@contextlib.contextmanager
def file_errors(path: str | os.PathLike[str], verb: str) -> Iterator[None]:
    """Within it, what the system says about a file that is read or written is said in our words."""
    try:
        yield
    except OSError as error:
        near = ""
        if error.errno == errno.ENOENT and verb == "read":
            near = did_you_mean(os.path.basename(os.fspath(path)), names_beside(path))
        raise FileError.of(error, printable(os.fspath(path), 200), verb, near) from error


Stamp = tuple[int, int, int]  # what tells a file from what it becomes: its size, when it was written, which it is


def stamp(status: os.stat_result) -> Stamp:
    """How a file looks; one that looks otherwise after it was read may have been read in two states."""
    return status.st_size, status.st_mtime_ns, status.st_ino


def read_whole(path: str | os.PathLike[str]) -> bytes:
    """The bytes of a file, refused if it was written to meanwhile."""
    with file_errors(path, "read"), _patiently(lambda: open(named(path), "rb")) as file:
        before = os.fstat(file.fileno())
        raw = file.read()
        same = stamp(os.fstat(file.fileno())) == stamp(before)
    if not same or (stat.S_ISREG(before.st_mode) and len(raw) != before.st_size):
        raise FileError(
            f"{printable(os.fspath(path), 200)} changed while it was being read",
            hint="wait until it is written, or take a copy, then try again.",
        )
    return raw


def write_atomically(
    path: str | os.PathLike[str],
    content: bytes,
    check: Callable[[bytes], None] | None = None,
    *,
    private: bool = False,
) -> None:
    """Put the content in the place of whatever the path names; see `replacing`.

    `check` is given what was written, read back; where it raises, nothing is replaced.
    """
    with replacing(path, private=private) as file, file_errors(path, "written"):
        view = memoryview(content)
        while len(view):
            view = view[os.write(file, view[:_PIECE]) :]
        if check is not None:
            os.lseek(file, 0, os.SEEK_SET)
            check(b"".join(iter(lambda: os.read(file, _PIECE), b"")))


@contextlib.contextmanager
def replacing(path: str | os.PathLike[str], *, private: bool = False) -> Iterator[int]:
    """The number of an open file, which takes the place of whatever the path names once the block ends without error.

    A symbolic link is followed, permissions are kept; a new file that is private only its owner can read.
    """
    mode = _PRIVATE if private else _MODE
    target = os.path.realpath(named(path))
    folder, name = os.path.split(target)
    temporary = _beside(folder, name, f"{os.urandom(8).hex()}.tmp")
    with file_errors(path, "written"):
        nameless = _nameless(folder, mode)
        file = os.open(temporary, _NEW | os.O_CREAT | os.O_EXCL, mode) if nameless is None else nameless
    try:
        try:
            with file_errors(path, "written"):
                _keep_permissions(target, file)
            yield file
            with file_errors(path, "written"):
                _to_disk(file)
                if file == nameless:  # given as a folder, too: only then does Python follow the link
                    os.link(f"{_OPEN_FILES}/{file}", temporary, src_dir_fd=file, follow_symlinks=True)
        finally:
            with file_errors(path, "written"):
                os.close(file)
        with file_errors(path, "written"):
            _patiently(lambda: os.replace(temporary, target))
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    with file_errors(path, "brought to the disk, though it is in its place"):
        _sync_folder(folder)


def _beside(folder: str, name: str, ending: str) -> str:
    """A path for a file of ours beside the one of this name; letters may take several bytes each."""
    name = name[:100]
    while len(os.fsencode(name)) > _LONGEST:
        name = name[:-1]
    return os.path.join(folder, f".{name}.{ending}")


def _patiently(act: Callable[[], T]) -> T:
    """What an act on a file gives. Windows refuses it while another has the file open, which is soon over."""
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            return act()
        except PermissionError:
            if not on_windows() or time.monotonic() > until:
                raise
            time.sleep(_OFTEN)


def _to_disk(file: int) -> None:
    """Bring what was written to the disk; on macOS also out of the memory that the disk itself has."""
    unix = _unix()
    if hasattr(unix, "F_FULLFSYNC"):
        with contextlib.suppress(OSError):  # not on this file system
            unix.fcntl(file, unix.F_FULLFSYNC)
            return
    os.fsync(file)


def _unix() -> Any:
    """What Unix has for open files; None where there is no such thing."""
    try:
        return import_module("fcntl")
    except ImportError:
        return None


def _nameless(folder: str, mode: int) -> int | None:
    """A new file without a name, of which nothing is left however the process ends; None where there are none."""
    if not hasattr(os, "O_TMPFILE") or not os.path.exists(_OPEN_FILES):
        return None
    try:
        return os.open(folder, _NEW | os.O_TMPFILE, mode)
    except OSError:  # not on this file system; or not in this folder, as opening a file with a name will tell
        return None


def _keep_permissions(target: str, file: int) -> None:
    try:
        old = os.stat(target)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(old.st_mode):  # renaming over /dev/null would take it away from everybody
        raise OSError(errno.EINVAL, "not a regular file, so it cannot be replaced", target)
    if sys.platform != "win32" and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(OSError):  # only root may give a file away; it then belongs to whoever wrote it
            os.fchown(file, old.st_uid, old.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(file, stat.S_IMODE(old.st_mode))


def _sync_folder(folder: str) -> None:
    """Bring the new name to the disk."""
    if not hasattr(os, "O_DIRECTORY"):
        return  # Windows has no such thing
    place = os.open(folder or ".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(place)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise
    finally:
        os.close(place)


@contextlib.contextmanager
def locked(path: str | os.PathLike[str], waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold the lock of a file, once no other process does; `waiting` is called if that is not at once.

    Where the file system has no locks there is none, and the last of two processes to write wins.
    """
    folder, name = os.path.split(os.path.realpath(named(path)))
    beside, told = _beside(folder, name, "lock"), False
    while True:
        file = _lock_file(beside)
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
        if on_windows():
            _unlock(file)
            os.close(file)  # an open file cannot be taken away there
        with contextlib.suppress(OSError):
            os.unlink(beside)
        if not on_windows():
            os.close(file)


def _lock_file(path: str) -> int:
    """The lock file, open. A symbolic link of its name could make a file of somebody else's, and is not followed."""
    try:
        return _patiently(lambda: os.open(path, os.O_RDWR | os.O_CREAT | _OWN, _MODE))
    except OSError as error:
        if error.errno != errno.ELOOP:
            raise
        raise OSError(errno.ELOOP, "the lock is a symbolic link, which is not followed: take it away", path) from None


def _is_at(file: int, path: str) -> bool:
    """Whether an open file is still the one of this name."""
    if on_windows():  # which lets nobody take it away, and on some disks knows no two files apart
        return True
    try:
        there = os.lstat(path)
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
    if on_windows():
        windows: Any = import_module("msvcrt")
        while True:
            try:
                windows.locking(file, windows.LK_NBLCK, 1)
                return
            except OSError as error:
                if not waiting or error.errno not in _BUSY:
                    raise
                time.sleep(_OFTEN)
    unix = _unix()
    if unix is not None:
        unix.flock(file, unix.LOCK_EX | (0 if waiting else unix.LOCK_NB))


def _unlock(file: int) -> None:
    """Let go of a lock of Windows, which may be slow to do so for a file that is merely closed."""
    windows: Any = import_module("msvcrt")
    with contextlib.suppress(OSError):
        windows.locking(file, windows.LK_UNLCK, 1)


@contextlib.contextmanager
def transaction(db: Any, kind: str = "DEFERRED") -> Iterator[None]:
    """One transaction of an SQLite connection: all of what is done in it stays, or none of it."""
    db.execute(f"BEGIN {kind}")
    try:
        yield
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # after a full disk SQLite has rolled back by itself
            db.execute("ROLLBACK")
        raise
