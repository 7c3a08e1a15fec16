"""One message, whatever its bytes, to the row of columns that a model counts.

Nothing here raises on bytes, recurses, or takes more than linear time. What is too large is cut, and a note says so.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections import Counter
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from ..base.errors import DataError
from .html import Link, strip_html
from .links import host_of, owner_of, shows_another_place
from .parts import Content, MailSettings, address_of, addresses_of, domain_of, headers, readable, walk

if TYPE_CHECKING:
    from ..data.schema import Schema

_USUAL = MailSettings()
HEADER = b"X-Tallybayes: "  # of our answer, in a message that is passed on


@dataclass(frozen=True)
class Message:
    """A message as it is counted.

    id           its Message-ID and a hash of sender, date, subject and text, since a Message-ID is only the sender's
                 word; or "sha256:…" of its bytes, as far as they were read, if it has none
    row          a value for every column of `mail_schema`, None where it is missing
    sender       the address it says it comes from, in lower case; "" if there is none
    fingerprint  equal for messages that differ only in digits, spaces, links or the greeting, and mostly for long ones
                 that differ in a few words
    notes        what was cut or odd, in plain words
    header_id    its Message-ID alone, by which older state files know it; "" if it has none

    >>> from tallybayes.mail import read_message
    >>> one, two = (read_message(b"From: a@b.example\\n\\nDear %s, pay 10 now" % name) for name in (b"Ann", b"Bob"))
    >>> one.sender, one.id == two.id, one.fingerprint == two.fingerprint
    ('a@b.example', False, True)
    """

    id: str
    row: dict[str, Any]
    sender: str
    fingerprint: str
    notes: tuple[str, ...] = ()
    header_id: str = ""

    def with_facts(self, sender_known: bool, seen_before: bool) -> dict[str, Any]:
        """The row with what only a state knows."""
        return {**self.row, "sender_known": sender_known, "seen_before": seen_before}


def read_message(
    raw: bytes,
    settings: MailSettings = _USUAL,
    *,
    sender_known: bool | None = None,
    seen_before: bool | None = None,
) -> Message:
    """A message as a row of columns. Never raises, whatever the bytes are.

    `sender_known` and `seen_before` are for the caller to say, who remembers senders and fingerprints.

    >>> from tallybayes.mail import read_message
    >>> message = read_message(b"From: Ann <ann@example.org>\\nSubject: Lunch?\\n\\nFor $5, see http://a.example/menu")
    >>> message.sender, message.row["subject"], message.row["dollar_amounts"], message.row["url_domains"]
    ('ann@example.org', 'Lunch?', 1, ['a.example'])
    """
    if not isinstance(raw, (bytes, bytearray, memoryview)):
        raise DataError(f"a message of type {type(raw).__name__}", hint="give bytes: open the file with mode 'rb'.")
    content = Content(settings)
    most = content.settings.max_bytes
    if len(raw) > most:
        content.note(f"the message has {len(raw):,} bytes; only the first {most:,} were read")
    read = bytes(raw[:most])
    data = read.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in read else read
    start = data.find(b"\n") + 1 if data.startswith((b"From ", b">From ")) else 0  # an mbox's first line
    head, at = headers(data, start, len(data), content)
    walk(data, head, at, content)
    body, links = _body(content)
    subject = readable(head["subject"]) if "subject" in head else None
    both = f"{subject or ''}\n{body or ''}"
    sender, reply_to = address_of(head.get("from", "")), address_of(head.get("reply-to", ""))
    hosts = [host for href in dict.fromkeys(link.href for link in links) if (host := host_of(href))]
    row = {
        "subject": subject,
        "body": body,
        "sender_domain": domain_of(sender) or None,
        "sender_known": sender_known,
        "recipients": sum("@" in one for name in ("to", "cc") for one in addresses_of(head.get(name, ""))),
        "reply_to_differs": reply_to not in ("", sender) if sender else None,
        "hour": _hour(head.get("date", "")),
        "attachments": content.attachments,
        "dollar_amounts": len(_AMOUNT.findall(both)),
        "caps_share": _caps_share(both),
        "urls": len(hosts),
        "url_domains": sorted({owner_of(host) for host in hosts}),
        "link_mismatch": any(map(shows_another_place, links)),
        "seen_before": seen_before,
        "domains_agree": _domains_agree(sender, head),
        "greets_owner": _greets(content.settings.owner, body or ""),
    }
    fingerprint = _fingerprint(body or "", [subject or "", domain_of(sender), *content.attachments])
    own = read[read.find(b"\n") + 1 :] if start else read  # whether or not a mailbox has put its line before it
    name = _header_id(head.get("message-id", ""))
    same = [sender, head.get("date", ""), subject or "", *content.plain, "", *content.html, "", *content.attachments]
    unique = f"{name} sha256:{_same_on_the_way(same)}" if name else "sha256:" + hashlib.sha256(own).hexdigest()
    return Message(unique, row, sender, fingerprint, tuple(content.notes), name)


def mail_schema(**words: Any) -> Schema:
    """The schema of messages: a column for each value of `Message.row`; the target is "class".

    `words` are settings of the two text columns, subject and body, such as text=tb.Tokeniser(ngrams=(1, 2)).

    >>> from tallybayes.mail import mail_schema
    >>> schema = mail_schema()
    >>> schema.target, schema["subject"].kind
    ('class', 'text')
    """
    from ..data.schema import Column, Schema  # NumPy comes with them, and no message needs them to be read
    from ..exact.cells import Cells

    few = Cells(0.0, 0, points=tuple(float(n) for n in range(33)))
    share = Cells(0.0, -9, points=(0.0, 1.0))
    told: dict[str, dict[str, Any]] = {
        "subject": {"kind": "text", **words, "reason": "the words of the subject"},
        "body": {"kind": "text", **words, "reason": "the words of the text, and of the HTML if it has others"},
        "sender_domain": {"kind": "category", "reason": "where the sender's address is"},
        "sender_known": {"kind": "category", "reason": "has the sender written before?"},
        "recipients": {"kind": "number", "cells": few, "reason": "addresses in To and Cc"},
        "reply_to_differs": {"kind": "category", "reason": "do answers go to another address?"},
        "hour": {"kind": "category", "values": tuple(f"{h:02}" for h in range(24)), "reason": "by the sender's clock"},
        "attachments": {"kind": "bag", "reason": "types of attachments"},
        "dollar_amounts": {"kind": "number", "cells": few, "reason": "amounts in $, € or £"},
        "caps_share": {"kind": "number", "cells": share, "reason": "share of capital letters among letters"},
        "urls": {"kind": "number", "cells": few, "reason": "different web addresses"},
        "url_domains": {"kind": "bag", "reason": "where links lead, each domain once"},
        "link_mismatch": {"kind": "category", "reason": "does a link show another domain than it leads to?"},
        "seen_before": {"kind": "category", "reason": "was a message like this one seen before?"},
        "domains_agree": {"kind": "category", "reason": "From, Return-Path and Message-ID name one domain"},
        "greets_owner": {"kind": "category", "reason": "does the greeting name the mailbox's owner?"},
    }
    return Schema([Column(name, **values) for name, values in told.items()], target="class")


def with_header(raw: bytes, answer: str) -> bytes:
    """The message with one header before all others, every other byte as it was.

    A first line "From …", which mailboxes put before the headers, stays first.

    >>> with_header(b"Subject: hi\\r\\n\\r\\nho", "ham, probability=0.0100")
    b'X-Tallybayes: ham, probability=0.0100\\r\\nSubject: hi\\r\\n\\r\\nho'
    """
    first = raw.find(b"\n") + 1
    end = b"\r\n" if raw[:first].endswith(b"\r\n") else b"\n"
    start = first if raw.startswith((b"From ", b">From ")) else 0
    return raw[:start] + HEADER + answer.encode("ascii") + end + raw[start:]


_DATE = re.compile(r"\d{1,2}[ -]+[A-Za-z]{3,9}[ -]+\d{2,4}\s+(\d{1,2})[:.]([0-5]\d)")
_ASCTIME = re.compile(r"[A-Za-z]{3}\s+\d{1,2}\s+(\d{1,2}):([0-5]\d)(?::\d\d)?\s")
_URL = re.compile(r"[hHwW](?:[tT][tT][pP][sS]?://|[wW][wW]\.)[^\s<>\"']{1,2000}")
_AMOUNT = re.compile(r"[$€£](?:\s?\d|(?<=\d.)|(?<=\d\s.))")  # a sign beside a digit
_BEYOND_ASCII = re.compile(r"[^\x00-\x7f]+")
_UPPER, _LOWER = bytes(range(65, 91)), bytes(range(97, 123))
_GREETING = re.compile(
    r"\s*(?:(?:dear|hi|hello|hey|greetings|good\s+(?:morning|day|evening)|hallo|guten\s+(?:tag|morgen)|liebe|sehr\s+geehrte"
    r"|bonjour|cher|chère|hola|estimad[oa]|ciao|caro|cara)(?:r|\b)(?:[^,!.:;]{0,60}[,!.:;]|[^\n]{0,60}\n)"
    r"|(?:[^\W\d_]+\s+){0,2}[^\W\d_]+,\s)",
    re.IGNORECASE,
)
_LETTERS = re.compile(r"[^\W_]+")
_QUOTED_FROM = re.compile(r"^>+(?=From )", re.MULTILINE)
_LONG_WORDS, _SKETCH_WORDS = 30, 8  # different ones


def _body(content: Content) -> tuple[str | None, list[Link]]:
    """The text of the message, and its links, those of plain text without a text to show."""
    page = strip_html("\n".join(content.html))
    most = content.settings.max_text
    body = "\n".join(content.plain)
    if content.html and not body.strip():
        body = page.text
    elif content.html and _says_more(page.text, body):
        body = f"{body}\n{page.text}"
    if len(body) > most:
        content.note(f"the text is longer than {most:,} characters; the rest was not counted")
    body = body[:most]
    found = [url.rstrip(".,;:!?)]}") for url in _URL.findall(body)]
    links = [*page.links, *(Link(url if url[0] in "hH" else "//" + url, "") for url in found)]
    if len(links) > content.settings.max_links:
        content.note(f"{len(links):,} links; only the first {content.settings.max_links:,} were looked at")
    return (body if content.plain or content.html else None), links[: content.settings.max_links]


def _says_more(page: str, text: str) -> bool:
    """Whether most words of the HTML are not in the plain text beside it: readers are shown the HTML, and a harmless
    text may stand there for filters alone.
    """
    shown = set(_LETTERS.findall(page[:20_000].lower()))
    return len(shown) >= 8 and len(shown - set(_LETTERS.findall(text[:40_000].lower()))) > len(shown) / 2


def _header_id(header: str) -> str:
    """The Message-ID, printable, the end of a very long one as a hash; "" if it names nothing."""
    name = "".join(ch if ch.isprintable() else "\ufffd" for ch in header.strip())
    if not name.strip("<> "):
        return ""
    most = 200
    return name if len(name) <= most else f"{name[:most]}… sha256:{hashlib.sha256(name.encode()).hexdigest()}"


def _same_on_the_way(texts: list[str]) -> str:
    """A hash of what nobody changes who carries or stores a message.

    Received, Status and X- lines come and go, lines are folded and ended anew, a mailbox writes ">From " for "From ",
    and a relay may encode the text in another way: so texts are taken decoded, without spaces and such marks.
    """
    plain = (" ".join(_QUOTED_FROM.sub("", text).split()) for text in texts)
    return hashlib.sha256("\n".join(plain).encode("utf-8", "surrogatepass")).hexdigest()


def _domains_agree(sender: str, head: dict[str, str]) -> bool | None:
    addresses = (sender, address_of(head.get("return-path", "")), head.get("message-id", ""))
    domains = [owner_of(domain) for domain in map(domain_of, addresses) if domain]
    return len(set(domains)) == 1 if len(domains) > 1 else None


def _hour(date: str) -> str | None:
    found = _DATE.search(date[:200]) or _ASCTIME.search(date[:200] + " ")
    return f"{int(found[1]):02}" if found and int(found[1]) < 24 else None


def _caps_share(text: str) -> float | None:
    """Capital letters among letters. ASCII by deleting bytes, which is fifty times faster than looking at each."""
    plain = text.encode("ascii", "ignore")
    upper = len(plain) - len(plain.translate(None, _UPPER))
    letters = len(plain) - len(plain.translate(None, _UPPER + _LOWER))
    if not text.isascii():
        for ch, times in Counter("".join(_BEYOND_ASCII.findall(text))).items():
            upper += times * ch.isupper()
            letters += times * ch.isalpha()
    return upper / letters if letters else None


@lru_cache(16)
def _names(owner: str) -> re.Pattern[str] | None:
    names = [re.escape(name.strip()) for name in owner.split(",") if name.strip()]
    return re.compile(rf"(?<!\w)(?:{'|'.join(names)})(?![\w@])", re.IGNORECASE) if names else None


def _greets(owner: str, body: str) -> bool | None:
    names = _names(owner)
    return None if names is None else names.search(body[:300]) is not None


def _fingerprint(body: str, others: list[str]) -> str:
    """A hash of the set of the first 400 words, without the greeting, links, addresses and whatever has a digit.

    The words of mass mail stay the same, while names, sums, codes and tracking links change with the recipient. Senders
    who know that add words at random: of a longer text only the eight words with the least hashes stand for all, and a
    word among a hundred that comes, goes or changes leaves them as they were in nine cases of ten. So few words that
    strangers may share them ("ok, thanks") are joined by the subject, the sender's domain and attachments.
    """
    greeting = _GREETING.match(body[:300])
    tokens = body[greeting.end() if greeting else 0 :].split(None, 1_000)[:1_000]
    kept = [token for token in tokens if "://" not in token and "@" not in token and not token.startswith("www.")]
    words = [word for word in _LETTERS.findall(" ".join(kept).lower()) if word.isalpha()]
    distinct = sorted(set(words[:400]))
    if len(distinct) >= _LONG_WORDS:
        distinct = sorted(sorted(distinct, key=lambda word: zlib.crc32(word.encode()))[:_SKETCH_WORDS])
    few = distinct if len(distinct) >= 8 else [*distinct, "", *others]
    return hashlib.sha256("\n".join(few).encode()).hexdigest()[:32]
