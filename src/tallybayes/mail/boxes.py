"""Messages from where mail is kept: files, mbox, Maildir, folders, standard input. One at a time, in bounded memory."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from ..base.disk import Stamp, names_beside, stamp
from ..base.errors import DataError, unknown
from ..base.wording import printable
from .parts import MailSettings

Found = tuple[str | None, bytes, str]  # the label if the place tells it, the message, where it was

KINDS = ("auto", "message", "mbox", "maildir", "folder")
_MBOX = (".mbox", ".mbx")
# "From ann@example.org Sat Nov 15 09:41:00 2025": a sentence that begins with "From" has no time of day
_FROM = re.compile(rb">?From .{0,200}?\d\d?:\d\d")
_QUOTED_FROM = re.compile(rb">+From ")
_HEADER = re.compile(rb"(?:>?From .{0,500}\n)?[!-9;-~]{1,200}[ \t]*:")
_PIECE_BYTES = 1 << 16  # a longer line is read in pieces
_INPUT = "standard input"
_START_BYTES = 2000  # of a file, which tell what it is


def read_mail(
    place: str | os.PathLike[str], *, kind: str = "auto", max_bytes: int = MailSettings.max_bytes
) -> Iterator[Found]:
    """The messages of a place, each as (label, bytes, where).

    A place is a file with one message, an mbox file, a Maildir, a folder of .eml files, a folder with a folder for
    each class, whose names are the labels, or "-" for standard input: one message, or an mbox. `kind` ("message",
    "mbox", "maildir", "folder") overrides the guess. Of a message larger than `max_bytes` the first `max_bytes` + 1 are
    given, so that `read_message` can tell.

    >>> from collections import Counter
    >>> from tallybayes.mail import read_mail
    >>> sorted(Counter(label for label, raw, where in read_mail(tb.example("inbox"))).items())
    [('ham', 34), ('spam', 26)]
    """
    if kind not in KINDS:
        raise unknown(DataError, f"mail of kind {kind!r}", kind, KINDS)
    if place == "-":
        return _from_input(kind, max_bytes)
    path = Path(place)
    try:
        if not path.exists():
            hint = "give a file, an mbox, a Maildir, a folder of .eml files, or - for standard input."
            raise unknown(DataError, f"there is no {_shown(path)}", path.name, names_beside(path), hint)
        if not path.is_dir():
            return _of_file(path, kind, max_bytes)
        if kind in ("message", "mbox"):
            raise DataError(f"{_shown(path)} is a folder", hint=f"give a file, or leave out kind={kind!r}.")
        return _of_folder(path, kind, max_bytes)
    except (OSError, ValueError) as error:
        if isinstance(error, DataError):
            raise
        raise _unreadable(path, error) from None


# ---- files


def _of_file(path: Path, kind: str, most: int) -> Iterator[Found]:
    if kind in ("maildir", "folder"):
        raise DataError(f"{_shown(path)} is a file", hint=f"give a folder, or leave out kind={kind!r}.")
    if path.is_file():
        with open(path, "rb") as file:
            start = _start(file.read(_START_BYTES))
        if kind == "auto" and path.suffix.lower() != ".eml":
            kind = "mbox" if path.suffix.lower() in _MBOX or _FROM.match(start) else "auto"
        if not start:
            raise DataError(f"{_shown(path)} holds no message: it is empty", hint="give a file with mail in it.")
        if kind == "mbox":
            first, _, rest = start.partition(b"\n")
            if not _FROM.match(first) or not _HEADER.match(rest):
                raise _no_mbox(first, _shown(path))
        if kind == "auto":
            _check_message(start, path)
    return _mbox_file(path, most) if kind == "mbox" else _messages([path], most)


def _start(data: bytes) -> bytes:
    """The first lines of a file as they are looked at."""
    return data[:_START_BYTES].lstrip(b"\r\n").replace(b"\r\n", b"\n")


def _check_message(start: bytes, path: Path) -> None:
    """Refuse a file that is plainly something else; one that is called .eml is a message, whatever it holds."""
    if path.suffix.lower() != ".eml" and not _HEADER.match(start):
        raise DataError(
            f"{_shown(path)} is no message: it does not begin with a header such as 'From: …'",
            hint="give .eml files, an mbox or a Maildir; kind='message' reads any file as a message.",
        )


def _messages(files: list[Path], most: int, kind: str = "", label: str | None = None) -> Iterator[Found]:
    """One message from each file. A file of a Maildir may be anything, and may have been moved by another program."""
    for path in files:
        try:
            with open(path, "rb") as file:
                before = stamp(os.fstat(file.fileno()))
                data = file.read(most + 1)
                _refuse_changed(file, before, str(path))
        except OSError as error:
            if kind == "maildir" and isinstance(error, FileNotFoundError):
                continue
            raise _unreadable(path, error) from None
        if kind == "maildir" and not data:
            continue  # what a mail program left behind when it was killed
        if kind == "folder":
            _check_message(_start(data), path)
        yield label, data, str(path)


def _from_input(kind: str, most: int) -> Iterator[Found]:
    given: BinaryIO = sys.stdin.buffer
    before, first = b"", given.readline(_PIECE_BYTES) if kind == "auto" else b""
    while first in (b"\n", b"\r\n") and len(before) < most:
        before, first = before + first, given.readline(_PIECE_BYTES)
    if kind == "mbox" or (kind == "auto" and first.startswith(b"From ") and _FROM.match(first)):
        yield from _mbox(given, _INPUT, most, first)
    elif kind in ("auto", "message"):
        data = before + first
        data = (data + given.read(max(most + 1 - len(data), 0)))[: most + 1]
        while len(data) > most and given.read(1 << 20):  # a pipe that is not emptied fails its writer
            pass
        if not data:
            raise DataError("standard input holds no message: it is empty", hint="pipe a message in.")
        yield None, data, _INPUT
    else:
        raise DataError(f"standard input is no {kind}", hint="pipe in one message, or an mbox with kind='mbox'.")


# ---- mbox


def _no_mbox(first: bytes, where: str) -> DataError:
    return DataError(
        f"{where} is not an mbox: it begins with {printable(first[:200].decode('utf-8', 'replace').rstrip())!r}",
        hint="an mbox begins with a line such as 'From ann@example.org Sat Nov 15 09:41:00 2025' and a header;"
        " kind='message' reads the file as one message.",
    )


def _mbox_file(path: Path, most: int) -> Iterator[Found]:
    try:
        with open(path, "rb") as file:
            yield from _mbox(file, str(path), most)
    except OSError as error:
        raise _unreadable(path, error) from None


def _mbox(file: BinaryIO, where: str, most: int, first: bytes = b"") -> Iterator[Found]:
    """The messages between "From " lines that follow an empty line, with ">From " unquoted; `first` was read before."""
    kept: list[bytes] = []
    size = number = 0
    before = stamp(os.fstat(file.fileno())) if where != _INPUT else None
    blank, line_start = True, True  # whether the line before was empty, whether this piece begins a line
    while line := first or file.readline(_PIECE_BYTES):
        first = b""
        if line_start:
            if blank and line.startswith(b"From ") and _FROM.match(line):
                if number:
                    _refuse_changed(file, before, where)
                    yield None, _message(kept, most), f"{where}, message {number}"
                number, kept, size = number + 1, [], 0
                blank, line_start = False, line.endswith(b"\n")
                continue
            if not number and line.strip():
                raise _no_mbox(line, where)
            if line.startswith(b">") and _QUOTED_FROM.match(line):
                line = line[1:]
            blank = line in (b"\n", b"\r\n")
        line_start = line.endswith(b"\n")
        if size <= most:
            kept.append(line)
            size += len(line)
    if not number:
        raise DataError(f"{where} holds no message: it is empty", hint="give an mbox with mail in it.")
    _refuse_changed(file, before, where)
    yield None, _message(kept, most), f"{where}, message {number}"


def _refuse_changed(file: BinaryIO, before: Stamp | None, where: str) -> None:
    """Refuse what was read of a file that somebody writes to: it may be half of a message, or halves of two."""
    if before is not None and stamp(os.fstat(file.fileno())) != before:
        raise DataError(
            f"{printable(where, 200)!r} changed while it was being read",
            hint="wait until mail has been delivered, or read a copy, and start again; what was learnt is known again.",
        )


def _message(lines: list[bytes], most: int) -> bytes:
    """The lines of a message without the empty one that parts it from the next."""
    if len(lines) > 1 and lines[-1] in (b"\n", b"\r\n"):
        lines = lines[:-1]
    return b"".join(lines)[: most + 1]


# ---- folders


def _of_folder(path: Path, kind: str, most: int) -> Iterator[Found]:
    if kind == "maildir" and not _is_maildir(path):
        raise DataError(f"{_shown(path)} is no Maildir: it has neither cur nor new", hint="leave out kind='maildir'.")
    if kind != "folder" and _is_maildir(path):
        return _messages(_maildir(path), most, "maildir")
    files, folders = _listed(path)
    if files and folders and not all(f.suffix.lower() == ".eml" for f in files):
        files = []  # a README beside the folders of the classes
    if files and folders:
        raise DataError(
            f"{_shown(path)} has both messages and folders",
            hint="put the messages in a folder for each class, or give one of the folders.",
        )
    if files:
        return _messages(files, most, "folder")
    if not folders:
        raise DataError(
            f"there is no mail in {_shown(path)}: the folder is empty",
            hint="give a Maildir, a folder of .eml files, or a folder with one such folder for each class.",
        )
    return _classes(path, folders, most)


def _classes(path: Path, folders: list[Path], most: int) -> Iterator[Found]:
    """A folder for each class, whose name is the label."""
    parts = []
    for folder in folders:
        kind = "maildir" if _is_maildir(folder) else "folder"
        files = _maildir(folder) if kind == "maildir" else _listed(folder)[0]
        if not files:
            raise DataError(
                f"there is no mail in {_shown(folder)}, a folder of {_shown(path)}",
                hint="each folder holds the messages of one class; take this one away, or give one of the others.",
            )
        parts.append(_messages(files, most, kind, folder.name))
    return itertools.chain.from_iterable(parts)


def _is_maildir(path: Path) -> bool:
    return (path / "cur").is_dir() or (path / "new").is_dir()


def _maildir(path: Path) -> list[Path]:
    files = [f for part in (path / "cur", path / "new") if part.is_dir() for f in _listed(part)[0]]
    if not files:
        raise DataError(f"there is no mail in {_shown(path)}: the Maildir is empty", hint="give one with mail in it.")
    return files


def _listed(path: Path) -> tuple[list[Path], list[Path]]:
    """The messages and the folders in a folder, by name, without hidden ones; .eml files only if there are any."""
    with os.scandir(path) as entries:
        seen = sorted((e.name, e.is_dir(), e.is_file()) for e in entries if not e.name.startswith("."))
    files = [path / name for name, _, is_file in seen if is_file]
    return [f for f in files if f.suffix.lower() == ".eml"] or files, [path / n for n, is_dir, _ in seen if is_dir]


def _shown(path: Path) -> str:
    return repr(printable(path, 200))


def _unreadable(path: Path, error: Exception) -> DataError:
    return DataError(f"{_shown(path)} cannot be read: {error}", hint="check the path and who may read it.")
