"""Answers about mail from a Unix socket, for every client of SpamAssassin's spamd.

Each client has a thread of its own, a limit of bytes and a limit of seconds. Each answer looks whether the state has
been changed, by whichever process. Learning and forgetting take turns.
"""

from __future__ import annotations

import contextlib
import os
import queue
import socket
import socketserver
import stat
import sys
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.errors import CannotForget, SettingsError, TallybayesError
from ..base.wording import printable
from .answers import FilterSettings, Scorer, Verdict
from .spamd import (
    PONG,
    SOFTWARE,
    TEMPORARY,
    TIMEOUT,
    Refused,
    Request,
    answered,
    asked_answer,
    read_request,
    told_answer,
)
from .state import LongWay, State

if sys.platform == "win32":  # it has none for Python, as `MailServer` says to whoever makes one
    from socketserver import TCPServer as _Server
else:
    from socketserver import UnixStreamServer as _Server

if TYPE_CHECKING:
    from .filter import Filter

_UNIX: Any = getattr(socket, "AF_UNIX", None)
_PIECE_BYTES = 1 << 16
_MOST_READY = 4  # connections that stay open: each remembers what it has read, and two processors need no more
_LAST_SECONDS = 5.0  # for clients that are being answered when the server is to end


@dataclass(frozen=True)
class Limits:
    """What one client may take, and how many there may be at once."""

    bytes: int = 10_000_000
    seconds: float = 30.0
    clients: int = 64

    def __post_init__(self) -> None:
        if not (self.bytes >= 1 and self.seconds > 0 and self.clients >= 1):
            raise SettingsError(f"{self}", hint="take at least one byte, one client, and more than no time.")


class MailServer(socketserver.ThreadingMixIn, _Server):
    """A server of one state file on one socket. `tell` lets clients learn and forget; `report` hears of failures."""

    daemon_threads = True
    block_on_close = False
    request_queue_size = 128

    def __init__(
        self,
        path: str,
        address: str,
        *,
        tell: bool = False,
        limits: Limits | None = None,
        mode: int = 0o600,
        report: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        if _UNIX is None:
            raise SettingsError(
                "there are no Unix sockets for Python on this system",
                hint="ask for one message at a time: tallybayes mail filter STATE, or tallybayes.mail.Filter(path).",
            )
        self.path, self.tell, self.limits, self.report = path, tell, limits or Limits(), report
        self._place, self._mode, self._own = address, mode, (0, 0)
        self._ready: queue.LifoQueue[_Reader] = queue.LifoQueue()
        self._writer = threading.Lock()
        self._box: Filter | None = None
        self._box_file = (0, 0)
        self._room = threading.BoundedSemaphore(self.limits.clients)
        State(path).close()  # a file that cannot be served is refused before anybody asks
        where: Any = address
        super().__init__(where, _Client)

    def server_bind(self) -> None:
        """Take the address, for its owner alone; one that a server left behind is taken over."""
        place = self._place
        try:
            _clear(place)
            before = os.umask(0o777 & ~self._mode)
            try:
                super().server_bind()
            finally:
                os.umask(before)
            os.chmod(place, self._mode)
            self._own = _identity(place)
        except OSError as error:
            raise SettingsError(
                f"the socket {printable(place, 200)} cannot be made: {error.strerror or error}",
                hint="name a path in a folder of yours, of at most a hundred characters.",
            ) from None

    def server_close(self) -> None:
        """End: wait a little for clients that are being answered, take the socket away, give the file back."""
        super().server_close()
        with contextlib.suppress(OSError):
            if _identity(self._place) == self._own:
                os.unlink(self._place)
        until = time.monotonic() + _LAST_SECONDS
        for _ in range(self.limits.clients):
            if not self._room.acquire(timeout=max(until - time.monotonic(), 0)):
                break
        while not self._ready.empty():
            self._ready.get_nowait().state.close()
        with self._writer:
            if self._box is not None:
                self._box.close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """A thread for the client, or a word that there are too many."""
        if self._room.acquire(blocking=False):
            try:
                super().process_request(request, client_address)
            except BaseException:  # no thread to be had
                self._room.release()
                raise
            return
        with contextlib.suppress(OSError):
            request.settimeout(0)
            request.sendall(answered(TEMPORARY, "too many clients"))
        self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answer, and make room for another client."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._room.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away while it was answered is nobody's loss."""

    # ---- answers

    def answer(self, request: Request) -> bytes:
        """The answer to a request."""
        if request.asks:
            return asked_answer(request, *self.verdict(request.raw))
        if request.command == "TELL":
            label = request.told()
            return told_answer(label, self.told(request.raw, label))
        return PONG if request.command == "PING" else b""

    def verdict(self, raw: bytes) -> tuple[Verdict, FilterSettings]:
        """The answer about one message, and the settings behind it."""
        with self._reader() as reader:
            try:
                scorer = reader.scorer()
                return scorer.score(raw), scorer.settings
            except LongWay:
                pass
        with self._writer:
            box = self._filter()
            return box.score(raw), box.settings

    def told(self, raw: bytes, label: str | None) -> bool:
        """Learn a message, or forget it where there is no label; whether that changed anything."""
        with self._writer:
            if label is not None:
                return self._filter().learn(raw, label)
            try:
                self._filter().unlearn(raw)
            except CannotForget:
                return False
            return True

    @contextlib.contextmanager
    def _reader(self) -> Iterator[_Reader]:
        """A connection for this thread alone; one that was open before, unless another file has taken its place."""
        try:
            reader = self._ready.get_nowait()
            if reader.file != _identity(self.path):
                reader.state.close()
                reader = _Reader(self.path, self.limits.seconds)
        except (queue.Empty, OSError):
            reader = _Reader(self.path, self.limits.seconds)
        try:
            yield reader
        except BaseException:
            reader.state.close()
            raise
        if self._ready.qsize() < _MOST_READY:
            self._ready.put(reader)
        else:
            reader.state.close()

    def _filter(self) -> Filter:
        """The whole filter, for learning and files of older releases; in the writer's turn only."""
        from .filter import Filter

        if self._box is not None and self._box_file != _identity(self.path):
            self._box.close()
            self._box = None
        if self._box is None:
            self._box = Filter(self.path, create=False)
            self._box_file = _identity(self.path)
        return self._box


class _Reader:
    """An open state file, and what was read of it."""

    def __init__(self, path: str, seconds: float) -> None:
        self.state = State(path, busy_seconds=seconds)
        self.file = _identity(path)
        self._scorer: Scorer | None = None

    def scorer(self) -> Scorer:
        if self._scorer is None:
            self._scorer = Scorer(self.state)
        return self._scorer


def _identity(path: str) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _clear(place: str) -> None:
    """Take away a socket at which nobody listens any more; anything else is left, and refused."""
    try:
        found = os.lstat(place)
    except FileNotFoundError:
        return
    if not stat.S_ISSOCK(found.st_mode):
        raise SettingsError(f"{printable(place, 200)} is there, and is no socket", hint="name a path that is free.")
    with socket.socket(_UNIX) as probe:
        probe.settimeout(5)
        try:
            probe.connect(place)
        except ConnectionRefusedError:
            os.unlink(place)
            return
        except OSError:
            pass
    raise SettingsError(
        f"{printable(place, 200)} is being served already", hint="end that server, or name another path."
    )


# ---- one client


class _Client(socketserver.BaseRequestHandler):
    """One request and its answer."""

    request: socket.socket
    server: MailServer

    def handle(self) -> None:
        """Read a request within the limits, and answer it."""
        self._until = time.monotonic() + self.server.limits.seconds
        try:
            out = self.server.answer(read_request(self._receive, self.server.limits.bytes, tell=self.server.tell))
        except Refused as refused:
            out = answered(refused.code, str(refused))
        except TimeoutError:
            out = answered(TIMEOUT, "the request took too long")
        except (ConnectionError, BrokenPipeError):
            return
        except (TallybayesError, OSError) as error:
            self.server.report(error)
            out = answered(TEMPORARY, "no answer now")
        except Exception as error:
            self.server.report(error)
            out = answered(SOFTWARE, "no answer")
        with contextlib.suppress(OSError):
            self._send(out)

    def _receive(self) -> bytes:
        self.request.settimeout(self._left())
        return self.request.recv(_PIECE_BYTES)

    def _send(self, out: bytes) -> None:
        """All of it, to a client that may read slowly, but not for ever."""
        self._until = max(self._until, time.monotonic() + 1)
        left = memoryview(out)
        while left:
            self.request.settimeout(self._left())
            left = left[self.request.send(left[:_PIECE_BYTES]) :]

    def _left(self) -> float:
        left = self._until - time.monotonic()
        if left <= 0:
            raise TimeoutError
        return left
