"""Answers about mail from a Unix socket, in the protocol of SpamAssassin's spamd: any client that speaks it will do.

    CHECK SPAMC/1.5                 SPAMD/1.1 0 EX_OK
    Content-length: 1234     →      Spam: True ; 7.8 / 5.0

    message

The score is 5 + log-odds of spam − log-odds of the probability from which the answer is spam: 5 or more is spam, and a
point more is a factor of e. Each client has a thread of its own, a limit of bytes and a limit of seconds. Each answer
looks whether the state has been changed, by whichever process. Learning and forgetting (TELL) take turns.
"""

from __future__ import annotations

import contextlib
import math
import os
import queue
import re
import socket
import socketserver
import stat
import threading
import time
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..base.errors import CannotForget, SettingsError, TallybayesError
from ..base.wording import printable
from .answers import LABELS, SPAM, FilterSettings, Scorer, Verdict
from .message import with_header
from .state import LongWay, State

if TYPE_CHECKING:
    from .filter import Filter

THRESHOLD = 5.0  # of SpamAssassin, which clients may show or be set to
MOST_ODDS = 20.0  # natural log-odds beyond this are called this
_HEAD_BYTES = 8192  # of a request before the message
_PIECE_BYTES = 1 << 16
_LAST_SECONDS = 5.0  # for clients that are being answered when the server is to end
# the codes of sysexits.h, and two of spamc
OK, USAGE, DATA, SOFTWARE, TEMPORARY, PROTOCOL, NO_PERMISSION, TIMEOUT, TOO_BIG = 0, 64, 65, 70, 75, 76, 77, 79, 98
_CODES = {
    OK: "EX_OK", USAGE: "EX_USAGE", DATA: "EX_DATAERR", SOFTWARE: "EX_SOFTWARE", TEMPORARY: "EX_TEMPFAIL",
    PROTOCOL: "EX_PROTOCOL", NO_PERMISSION: "EX_NOPERM", TIMEOUT: "EX_TIMEOUT", TOO_BIG: "EX_TOOBIG",
}  # fmt: skip
_FIRST = re.compile(rb"([A-Z_]{1,20}) SPAMC/\d{1,2}\.\d{1,2}[ \t]*")
_ASKS = ("CHECK", "SYMBOLS", "REPORT", "REPORT_IFSPAM", "PROCESS", "HEADERS")


class Refused(Exception):
    """A request that is answered by a code and a few words."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True)
class Limits:
    """What one client may take, and how many there may be at once."""

    bytes: int = 10_000_000
    seconds: float = 30.0
    clients: int = 64

    def __post_init__(self) -> None:
        if not (self.bytes >= 1 and self.seconds > 0 and self.clients >= 1):
            raise SettingsError(f"{self}", hint="take at least one byte, one client, and more than no time.")


def spam_score(probability: float, settings: FilterSettings) -> float:
    """P(spam) as a score of SpamAssassin, down to a tenth: at least 5 where the answer is spam, and below elsewhere.

    >>> [spam_score(p, FilterSettings()) for p in (0.0, 0.1, 0.5, 0.8999, 0.9, 0.99, 1.0)]
    [-17.2, 0.6, 2.8, 4.9, 5.0, 7.3, 22.8]
    """
    over = _log_odds(probability) - _log_odds(settings.spam)
    score = math.floor(10 * (THRESHOLD + over)) / 10
    return score if probability >= settings.spam else min(score, THRESHOLD - 0.1)


def _log_odds(p: float) -> float:
    edge = MOST_ODDS
    return edge if p >= 1 else -edge if p <= 0 else min(max(math.log(p) - math.log1p(-p), -edge), edge)


class MailServer(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
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
        self.path, self.tell, self.limits, self.report = path, tell, limits or Limits(), report
        self._place, self._mode, self._own = address, mode, (0, 0)
        self._ready: queue.LifoQueue[_Reader] = queue.LifoQueue()
        self._writer = threading.Lock()
        self._box: Filter | None = None
        self._box_file = (0, 0)
        self._room = threading.BoundedSemaphore(self.limits.clients)
        State(path).close()  # a file that cannot be served is refused before anybody asks
        super().__init__(address, _Client)

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
            request.sendall(_answered(TEMPORARY, "too many clients"))
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
                reader = _Reader(self.path)
        except (queue.Empty, OSError):
            reader = _Reader(self.path)
        try:
            yield reader
        except BaseException:
            reader.state.close()
            raise
        self._ready.put(reader)

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

    def __init__(self, path: str) -> None:
        self.state = State(path)
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
    with socket.socket(socket.AF_UNIX) as probe:
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
            out = self._answer()
        except Refused as refused:
            out = _answered(refused.code, str(refused))
        except TimeoutError:
            out = _answered(TIMEOUT, "the request took too long")
        except (ConnectionError, BrokenPipeError):
            return
        except TallybayesError as error:
            self.server.report(error)
            out = _answered(TEMPORARY, "no answer now")
        except Exception as error:
            self.server.report(error)
            out = _answered(SOFTWARE, "no answer")
        with contextlib.suppress(OSError):
            self._send(out)

    def _answer(self) -> bytes:
        command, headers, start = self._head()
        if command == "PING":
            return b"SPAMD/1.5 0 PONG\r\n"
        if command == "SKIP":
            return b""
        if command != "TELL" and command not in _ASKS:
            raise Refused(PROTOCOL, f"the command {command} is not known")
        if command == "TELL" and not self.server.tell:
            raise Refused(NO_PERMISSION, "this server does not learn")
        raw = self._message(headers, start)
        return self._tell(raw, headers) if command == "TELL" else self._asked(command, raw)

    def _asked(self, command: str, raw: bytes) -> bytes:
        verdict, settings = self.server.verdict(raw)
        spam = verdict.answer == SPAM
        line = f"Spam: {spam} ; {spam_score(verdict.probability, settings):.1f} / {THRESHOLD:.1f}"
        if command == "CHECK":
            return _answered(OK, "", line)
        body = b""
        if command == "SYMBOLS":
            body = f"TALLYBAYES_{verdict.answer.upper()}\r\n".encode()
        elif command == "REPORT" or (command == "REPORT_IFSPAM" and spam):
            told = [f"{verdict}", verdict.reason, *(f"note: {note}" for note in verdict.notes)]
            body = "".join(f"{printable(each, 500)}\r\n" for each in told).encode()
        elif command in ("PROCESS", "HEADERS"):
            body = with_header(raw, f"{verdict}")
            body = body[: _head_bytes(body)] if command == "HEADERS" else body
        return _answered(OK, "", line, body=body)

    def _tell(self, raw: bytes, headers: dict[str, str]) -> bytes:
        places = {name: headers.get(name, "").replace(" ", "").split(",") for name in ("set", "remove")}
        label, adds, removes = headers.get("message-class"), "local" in places["set"], "local" in places["remove"]
        if adds == removes or (adds and label not in LABELS):
            raise Refused(USAGE, "say Set: local with Message-class: spam or ham, or Remove: local")
        changed = self.server.told(raw, label if adds else None)
        return _answered(OK, "", *[f"{'DidSet' if adds else 'DidRemove'}: local"] * changed)

    # ---- bytes

    def _head(self) -> tuple[str, dict[str, str], bytes]:
        """The command, its headers with names in lower case, and what was read beyond them."""
        read = b""
        while (end := re.search(rb"\r?\n\r?\n", read)) is None and not _alone(read):
            if len(read) > _HEAD_BYTES:
                raise Refused(PROTOCOL, "the headers have no end")
            piece = self._receive()
            if not piece:
                break
            read += piece
        head, rest = (read, b"") if end is None else (read[: end.start()], read[end.end() :])
        first, *lines = head.splitlines() or [b""]
        found = _FIRST.fullmatch(first.strip())
        if found is None:
            raise Refused(PROTOCOL, "a request begins with a command and SPAMC/1.5")
        if end is None and found[1] not in (b"PING", b"SKIP"):
            raise Refused(PROTOCOL, "the request ends before its message")
        headers = {}
        for line in lines:
            name, colon, value = line.decode("latin-1").partition(":")
            if not colon:
                raise Refused(PROTOCOL, "a header has no colon")
            headers[name.strip().lower()] = value.strip()
        return found[1].decode(), headers, rest

    def _message(self, headers: dict[str, str], start: bytes) -> bytes:
        """The message, as long as its header says, or up to the end."""
        most, given = self.server.limits.bytes, headers.get("content-length")
        if given is not None and not re.fullmatch(r"\d{1,18}", given):
            raise Refused(PROTOCOL, "Content-length is no number")
        wanted = None if given is None else int(given)
        pieces, size = [start], len(start)
        while wanted is None or size < wanted:
            if max(size, wanted or 0) > most:
                raise Refused(TOO_BIG, f"the message has more than {most} bytes")
            piece = self._receive()
            if not piece:
                break
            pieces.append(piece)
            size += len(piece)
        if size > most:
            raise Refused(TOO_BIG, f"the message has more than {most} bytes")
        if wanted is not None and size != wanted:
            raise Refused(PROTOCOL, f"Content-length is {wanted}, but {size} bytes came")
        packing = headers.get("compress", "")
        if packing and packing != "zlib":
            raise Refused(PROTOCOL, "Compress is zlib or nothing")
        return _unpacked(b"".join(pieces), most) if packing else b"".join(pieces)

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


def _alone(read: bytes) -> bool:
    """Whether this is a whole request of one line, after which a client may wait."""
    return re.match(rb"(?:PING|SKIP) SPAMC/[\d.]+[ \t]*\r?\n", read) is not None


def _unpacked(packed: bytes, most: int) -> bytes:
    try:
        machine = zlib.decompressobj()
        out = machine.decompress(packed, most + 1)
    except zlib.error:
        raise Refused(DATA, "the message is not what zlib writes") from None
    if len(out) > most:
        raise Refused(TOO_BIG, f"the message has more than {most} bytes")
    if not machine.eof:
        raise Refused(DATA, "the packed message has no end")
    return out


def _head_bytes(message: bytes) -> int:
    """How long the headers of a message are, with the empty line after them."""
    end = re.search(rb"\r?\n\r?\n", message)
    return len(message) if end is None else end.end()


def _answered(code: int, words: str, *headers: str, body: bytes | None = None) -> bytes:
    """An answer: code and words, headers, an empty line and a body."""
    first = f"SPAMD/1.1 {code} {_CODES[code]}{': ' * bool(words)}{words}"
    length = [] if body is None else [f"Content-length: {len(body)}"]
    return "".join(f"{line}\r\n" for line in (first, *length, *headers, "")).encode("ascii", "replace") + (body or b"")
