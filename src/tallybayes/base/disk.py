"""A file that is there whole or not at all: written beside its place, brought to the disk, then renamed.

    open a temporary file in the same folder → write → fsync → rename over the old file → fsync the folder

Whoever pulls the plug between any two of these steps finds the old file or the new one. An error on the way (disk
full, no permission) leaves the old file and no litter.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

_NEW = os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_FOLDER_SYNC = (errno.EINVAL, errno.ENOTSUP, errno.EACCES, errno.EPERM)  # some network file systems refuse
_PIECE = 1 << 24  # bytes written at once; a single write of more than 2^31 is cut short on Linux


def write_atomically(path: str | os.PathLike[str], content: bytes) -> None:
    """Put the content in the place of whatever the path names; a symbolic link is followed, permissions are kept."""
    target = os.path.realpath(os.fspath(path))
    folder, name = os.path.split(target)
    temporary = os.path.join(folder, f".{name[:100]}.{os.urandom(8).hex()}.tmp")
    file = os.open(temporary, _NEW, 0o666)  # less what the umask takes away, as for any new file
    try:
        try:
            _keep_permissions(target, file)
            _write_all(file, content)
            os.fsync(file)
        finally:
            os.close(file)
        os.replace(temporary, target)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    _sync_folder(folder)


def _keep_permissions(target: str, file: int) -> None:
    try:
        old = os.stat(target)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(old.st_mode):  # renaming over /dev/null would take it away from everybody
        raise OSError(errno.EINVAL, "not a regular file, so it cannot be replaced", target)
    if hasattr(os, "fchown") and (old.st_uid, old.st_gid) != (os.geteuid(), os.getegid()):
        with contextlib.suppress(OSError):  # only root may give a file away; it then belongs to whoever wrote it
            os.fchown(file, old.st_uid, old.st_gid)
    if hasattr(os, "fchmod"):
        os.fchmod(file, stat.S_IMODE(old.st_mode))


def _write_all(file: int, content: bytes) -> None:
    view = memoryview(content)
    while len(view):
        view = view[os.write(file, view[:_PIECE]) :]


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
