"""The protocol of SpamAssassin's spamd: a request read from a client's bytes, and the bytes of an answer.

    CHECK SPAMC/1.5                 SPAMD/1.1 0 EX_OK
    Content-length: 1234     →      Spam: True ; 7.8 / 5.0

    message

The score is 5 + log-odds of spam − log-odds of the probability from which the answer is spam: 5 or more is spam, and a
point more is a factor of e.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..base.wording import printable
from .answers import LABELS, SPAM, FilterSettings, Verdict
from .message import with_header

THRESHOLD = 5.0  # of SpamAssassin, which clients may show or be set to
MOST_ODDS = 20.0  # natural log-odds beyond this are called this
_HEAD_BYTES = 8192  # of a request before the message
# the codes of sysexits.h, and two of spamc
OK, USAGE, DATA, SOFTWARE, TEMPORARY, PROTOCOL, NO_PERMISSION, TIMEOUT, TOO_BIG = 0, 64, 65, 70, 75, 76, 77, 79, 98
_CODES = {
    OK: "EX_OK", USAGE: "EX_USAGE", DATA: "EX_DATAERR", SOFTWARE: "EX_SOFTWARE", TEMPORARY: "EX_TEMPFAIL",
    PROTOCOL: "EX_PROTOCOL", NO_PERMISSION: "EX_NOPERM", TIMEOUT: "EX_TIMEOUT", TOO_BIG: "EX_TOOBIG",
}  # fmt: skip
PONG = b"SPAMD/1.5 0 PONG\r\n"
_FIRST = re.compile(rb"([A-Z_]{1,20}) SPAMC/\d{1,2}\.\d{1,2}[ \t]*")
_ASKS = ("CHECK", "SYMBOLS", "REPORT", "REPORT_IFSPAM", "PROCESS", "HEADERS")
_END = re.compile(rb"\r?\n\r?\n")  # of headers
_ALONE = re.compile(rb"(?:PING|SKIP) SPAMC/[\d.]+[ \t]*\r?\n")  # a whole request, after which a client may wait


class Refused(Exception):
    """A request that is answered by a code and a few words."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(words)
        self.code = code


@dataclass(frozen=True)
class Request:
    """What a client wants, of which message."""

    command: str
    headers: Mapping[str, str]  # their names in lower case
    raw: bytes = b""

    @property
    def asks(self) -> bool:
        """Whether an answer about the message is wanted."""
        return self.command in _ASKS

    def told(self) -> str | None:
        """The class to learn the message as, or None to forget it."""
        places = {name: self.headers.get(name, "").replace(" ", "").split(",") for name in ("set", "remove")}
        label, adds, removes = self.headers.get("message-class"), "local" in places["set"], "local" in places["remove"]
        if adds == removes or (adds and label not in LABELS):
            raise Refused(USAGE, "say Set: local with Message-class: spam or ham, or Remove: local")
        return label if adds else None


def read_request(receive: Callable[[], bytes], most: int, *, tell: bool) -> Request:
    """The request of a client, whose bytes come piece by piece, of at most so many for the message.

    What cannot be answered is `Refused`, as far as possible before the message is read.
    """
    read = b""
    while (end := _END.search(read)) is None and not _ALONE.match(read):
        if len(read) > _HEAD_BYTES:
            raise Refused(PROTOCOL, "the headers have no end")
        piece = receive()
        if not piece:
            break
        read += piece
    head, rest = (read, b"") if end is None else (read[: end.start()], read[end.end() :])
    first, *lines = head.splitlines() or [b""]
    found = _FIRST.fullmatch(first.strip())
    if found is None:
        raise Refused(PROTOCOL, "a request begins with a command and SPAMC/1.5")
    command = found[1].decode()
    if command in ("PING", "SKIP"):
        return Request(command, {})
    if command != "TELL" and command not in _ASKS:
        raise Refused(PROTOCOL, f"the command {command} is not known")
    if command == "TELL" and not tell:
        raise Refused(NO_PERMISSION, "this server does not learn")
    if end is None:
        raise Refused(PROTOCOL, "the request ends before its message")
    headers = {}
    for line in lines:
        name, colon, value = line.decode("latin-1").partition(":")
        if not colon:
            raise Refused(PROTOCOL, "a header has no colon")
        headers[name.strip().lower()] = value.strip()
    return Request(command, headers, _message(headers, rest, receive, most))


def _message(headers: Mapping[str, str], start: bytes, receive: Callable[[], bytes], most: int) -> bytes:
    """The message, as long as its header says, or up to the end."""
    given, packing = headers.get("content-length"), headers.get("compress", "")
    if given is not None and not re.fullmatch(r"\d{1,18}", given):
        raise Refused(PROTOCOL, "Content-length is no number")
    if packing not in ("", "zlib"):
        raise Refused(PROTOCOL, "Compress is zlib or nothing")
    wanted = None if given is None else int(given)
    pieces, size = [start], len(start)
    while max(size, wanted or 0) <= most and (wanted is None or size < wanted) and (piece := receive()):
        pieces.append(piece)
        size += len(piece)
    if max(size, wanted or 0) > most:
        raise Refused(TOO_BIG, f"the message has more than {most} bytes")
    if wanted is not None and size != wanted:
        raise Refused(PROTOCOL, f"Content-length is {wanted}, but {size} bytes came")
    return _unpacked(b"".join(pieces), most) if packing else b"".join(pieces)


def asked_answer(request: Request, verdict: Verdict, settings: FilterSettings) -> bytes:
    """The answer to a request that asks about a message."""
    spam = verdict.answer == SPAM
    line = f"Spam: {spam} ; {spam_score(verdict.probability, settings):.1f} / {THRESHOLD:.1f}"
    body = b""
    if request.command == "CHECK":
        return answered(OK, "", line)
    if request.command == "SYMBOLS":
        body = f"TALLYBAYES_{verdict.answer.upper()}\r\n".encode()
    elif request.command in ("PROCESS", "HEADERS"):
        body = with_header(request.raw, f"{verdict}")
        end = _END.search(body) if request.command == "HEADERS" else None
        body = body if end is None else body[: end.end()]
    elif request.command == "REPORT" or spam:
        told = [f"{verdict}", verdict.reason, *(f"note: {note}" for note in verdict.notes)]
        body = "".join(f"{printable(each, 500)}\r\n" for each in told).encode()
    return answered(OK, "", line, body=body)


def told_answer(label: str | None, changed: bool) -> bytes:
    """The answer to a request that a message be learnt or forgotten."""
    return answered(OK, "", *[f"{'DidRemove' if label is None else 'DidSet'}: local"] * changed)


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


def answered(code: int, words: str, *headers: str, body: bytes | None = None) -> bytes:
    """An answer: code and words, headers, an empty line and a body."""
    first = f"SPAMD/1.1 {code} {_CODES[code]}{': ' * bool(words)}{words}"
    length = [] if body is None else [f"Content-length: {len(body)}"]
    return "".join(f"{line}\r\n" for line in (first, *length, *headers, "")).encode("ascii", "replace") + (body or b"")
