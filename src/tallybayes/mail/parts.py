"""Headers and parts of a message, by scanners that neither raise, recurse nor take more than linear time.

The standard library's parser is not used: 1,500 nested parts recurse it to death.
"""

from __future__ import annotations

import binascii
import encodings.aliases
import re
import string
import urllib.parse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, fields

from ..base.errors import SettingsError
from ..base.wording import encodable, printable

_WANTED = {"cc", "date", "from", "message-id", "reply-to", "return-path", "subject", "to"}
_WANTED |= {"content-disposition", "content-transfer-encoding", "content-type"}
_NAME = re.compile(rb"([!-9;-~]{1,200})[ \t]*:")
_EXTENSION = re.compile(r"\.([a-z0-9]{1,8})\W*$")
_TYPES = {"text/plain": "txt", "image/jpeg": "jpg", "text/calendar": "ics", "application/octet-stream": "other"}
_HTML_PER_TEXT = 5  # characters of HTML read for each character of text that is counted
_MOST_FALSE_ENDS = 10_000  # lines that begin like a boundary and are none, before the looking ends


@dataclass(frozen=True)
class MailSettings:
    """What the reading of mail depends on: the owner of the mailbox, and how much of a message is read.

    >>> from tallybayes.mail import MailSettings, read_message
    >>> read_message(b"Subject: long\\n\\nword word word", MailSettings(max_text=9)).notes
    ('the text is longer than 9 characters; the rest was not counted',)
    """

    owner: str = ""  # names of the mailbox's owner, with commas between them: "Ada, Lovelace"
    max_bytes: int = 10_000_000  # of the message
    max_text: int = 200_000  # characters of the body that are counted
    max_parts: int = 200  # of a MIME message
    max_depth: int = 20  # of parts in parts
    max_headers: int = 1_000  # lines of headers
    max_header: int = 20_000  # characters of one header
    max_links: int = 2_000

    def __post_init__(self) -> None:
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name == "owner" and not isinstance(value, str):
                raise SettingsError(f"owner={value!r}", hint="give names with commas between them: 'Ada, Lovelace'.")
            if f.name != "owner" and (not isinstance(value, int) or value < 1):
                raise SettingsError(
                    f"{f.name}={value!r}", hint=f"take a whole number, 1 or more; {f.default} is usual."
                )


@dataclass
class Content:
    """What the walk through the parts of a message has found."""

    settings: MailSettings
    plain: list[str] = field(default_factory=list)
    html: list[str] = field(default_factory=list)
    attachments: list[str] = field(default_factory=list)
    notes: dict[str, None] = field(default_factory=dict)  # each once, in order

    def __post_init__(self) -> None:
        most = self.settings.max_text
        self.room = {False: most, True: _HTML_PER_TEXT * most}  # characters left for plain text, HTML

    def note(self, text: str) -> None:
        """Say what was cut or odd, in plain words."""
        if len(self.notes) < 20:
            self.notes[text] = None


def headers(data: bytes, start: int, end: int, content: Content) -> tuple[dict[str, str], int]:
    """The wanted headers that begin at `start`, and the place of the body. To and Cc add up, else the first counts."""
    if start >= end or data.startswith(b"\n", start):
        return {}, min(start + 1, end)
    over = data.find(b"\n\n", start, end)
    after, over = (over + 2, over) if over >= 0 else (end, end)
    most, longest = content.settings.max_headers, content.settings.max_header
    lines = data[start:over].split(b"\n", most)
    if len(lines) > most:
        content.note(f"more than {most:,} lines of headers; the others were not read")
    found: dict[str, list[bytes]] = {}
    value: list[bytes] | None = None
    for line in lines[:most]:
        if value is not None and line[:1] in (b" ", b"\t"):
            value.append(line)
        elif named := _NAME.match(line):
            name = named[1].decode("ascii").lower()
            value = [] if name in found and name not in ("to", "cc") else found.setdefault(name, [])
            value.append(b"," * bool(value) + line[named.end() :])
        elif line:
            content.note("the headers end in a line that is no header")
            after = start
            break
        start += len(line) + 1
    out = {name: b"".join(found[name]) for name in found if name in _WANTED}
    for name, given in out.items():
        if len(given) > longest:
            content.note(f"the header {name} has {len(given):,} bytes; only the first {longest:,} were read")
    return {name: decoded(given[:longest].strip()) for name, given in out.items()}, after


def walk(data: bytes, head: dict[str, str], start: int, content: Content) -> None:
    """Collect the texts and attachments of all parts, in order, by a stack of our own."""
    settings, found = content.settings, 1
    stack = [(head, start, len(data), 0)]
    while stack:
        head, start, end, depth = stack.pop()
        kind, parameters = parameters_of(head.get("content-type", ""))
        inside: list[tuple[dict[str, str], int, int, int]] = []
        pieces: Iterator[tuple[int, int]] = iter(())
        if kind.startswith("multipart/"):
            pieces = _split(data, start, end, parameters.get("boundary", ""), content)
        elif kind == "message/rfc822":
            content.attachments.append("eml")
            pieces = iter([(start, end)])
        for begin, stop in pieces:
            if depth >= settings.max_depth or found >= settings.max_parts:
                most = f"{settings.max_depth} deep" if depth >= settings.max_depth else f"{settings.max_parts:,}"
                content.note(f"parts beyond the first {most} were not read")
                break
            found += 1
            inside.append((*headers(data, begin, stop, content), stop, depth + 1))
        else:
            if not inside:
                _leaf(data, start, end, head, kind, parameters, content)
        stack += reversed(inside)


def _split(data: bytes, start: int, end: int, boundary: str, content: Content) -> Iterator[tuple[int, int]]:
    """Begin and end of each part between the boundary's lines."""
    mark = b"\n--" + boundary.rstrip().encode("utf-8", "replace")
    begin, at, wrong = -1, max(start - 1, 0), 0
    while boundary.strip() and (found := data.find(mark, at, end)) >= 0:
        tail = found + len(mark)
        line_end = data.find(b"\n", tail, min(tail + 200, end))
        line_end = min(tail + 200, end) if line_end < 0 else line_end
        rest = data[tail:line_end].strip()
        at = line_end
        if rest not in (b"", b"--") or (line_end < end and data[line_end] != 10):
            at, wrong = tail, wrong + 1
            if wrong > _MOST_FALSE_ENDS:
                content.note("too many lines that look like the end of a part; the rest is read as one")
                break
            continue
        if begin >= 0:
            yield begin, max(begin, found)
        if rest:
            return
        begin = min(line_end + 1, end)
    if begin >= 0:
        content.note("the message ends in the middle of a part")
        yield begin, end
    else:
        content.note("a message in parts without the line that parts them")


def _leaf(
    data: bytes, start: int, end: int, head: dict[str, str], kind: str, parameters: dict[str, str], content: Content
) -> None:
    """Add a part without parts: a text, or the type of an attachment."""
    disposition, more = parameters_of(head.get("content-disposition", ""))
    name = filename(more, "filename") or filename(parameters, "name")
    is_text = kind in ("text/plain", "text/html") or "/" not in kind or kind.startswith("multipart/")
    if disposition == "attachment" or name or not is_text:
        named = _EXTENSION.search(name[-300:].lower()) or _EXTENSION.search("." + kind.rpartition("/")[2])
        content.attachments.append(_TYPES.get("" if name else kind) or (named[1] if named else "other"))
        return
    is_html = kind == "text/html"
    texts, most = content.html if is_html else content.plain, content.room[is_html]
    piece = data[start : min(end, start + 12 * most)]  # four bytes a character, at three characters a byte
    encoding = head.get("content-transfer-encoding", "").lower()
    if "base64" in encoding:
        piece = from_base64(piece)
    elif "quoted-printable" in encoding:
        piece = binascii.a2b_qp(piece)
    text = decoded(piece, parameters.get("charset", ""), content.note if start + 12 * most >= end else None)
    if len(text) > most or start + 12 * most < end:
        content.note(f"the text is longer than {content.settings.max_text:,} characters; the rest was not counted")
    texts.append(text[:most])
    content.room[is_html] -= len(texts[-1])


# ---- bytes and headers to text

_ENCODED = re.compile(r"=\?([^?\s*]{1,60})[^?\s]{0,20}\?([bBqQ])\?([^?]*)\?=(?:\s+(?==\?))?")
_NOT_BASE64 = bytes(set(range(256)) - set(b"+/" + string.ascii_letters.encode() + string.digits.encode()))
_PARAMETER = re.compile(r';\s*([^\s=;"]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;]*))')
_QUOTED = re.compile(r'"(?:[^"\\]+|\\.?)*(?:"|\Z)|\([^()]*\)', re.DOTALL)  # an open quote reaches to the end
_NO_TEXT = {"base64_codec", "bz2_codec", "hex_codec", "mbcs", "quopri_codec", "rot_13", "uu_codec", "zlib_codec"}
_CHARSETS = {*encodings.aliases.aliases.values(), "cp874", "koi8_u", "utf_8_sig"} - _NO_TEXT
_WIDER = {"latin_1": "cp1252", "gb2312": "gb18030", "gbk": "gb18030", "ascii": ""}  # what mailers mean by these names


def decoded(data: bytes, charset: str = "", note: Callable[[str], None] | None = None) -> str:
    """Bytes as text, what cannot be read replaced; without a charset by UTF-8, or else Windows-1252."""
    name = re.sub(r"[^a-z0-9]+", "_", charset[:60].strip().lower())
    name = encodings.aliases.aliases.get(name, name)
    if name and name not in _CHARSETS and note is not None:
        note(f"the character set {printable(charset)!r} is not known; read as UTF-8 or Windows-1252")
    codec = _WIDER.get(name, name) if name in _CHARSETS else ""
    try:
        return _clean(data.decode(codec or "utf-8"))
    except UnicodeDecodeError:
        if codec and note is not None:
            note(f"some text is not valid {printable(charset)}; what could not be read was replaced")
        return _clean(data.decode(codec or "cp1252", "replace"))


def _clean(text: str) -> str:
    """A text that Arrow, files and tokenisers can hold: without NUL and lone surrogates."""
    return encodable(text).replace("\0", "")


def from_base64(data: bytes) -> bytes:
    """What base64 stands for, as far as it goes."""
    try:
        return binascii.a2b_base64(data)
    except binascii.Error:
        data = data.translate(None, _NOT_BASE64)
        return binascii.a2b_base64(data[: len(data) - (len(data) % 4 == 1)] + b"==")  # a cut may part the last bytes


def readable(header: str) -> str:
    """A header as people read it: on one line, encoded words (RFC 2047) decoded."""
    out, last, pending, charset = [], 0, b"", ""
    for word in _ENCODED.finditer(header) if "=?" in header else ():
        if word.start() > last or word[1] != charset:  # adjacent words may part a character between them
            out += [decoded(pending, charset), header[last : word.start()]]
            pending, charset = b"", word[1]
        text = word[3].encode("utf-8")
        pending += from_base64(text) if word[2] in "bB" else binascii.a2b_qp(text, header=True)
        last = word.end()
    return " ".join("".join([*out, decoded(pending, charset), header[last:]]).split())


def parameters_of(header: str) -> tuple[str, dict[str, str]]:
    """The value of a header such as Content-Type in lower case, and its parameters."""
    kind, _, _ = header.partition(";")
    return kind.strip().lower(), {
        name.lower(): re.sub(r"\\(.)", r"\1", quoted) or bare
        for name, quoted, bare in _PARAMETER.findall(header[:5000])
    }


def filename(parameters: dict[str, str], name: str) -> str:
    """A file's name, which may be encoded (RFC 2047) or come in pieces: filename*0*=utf-8''a; filename*1=b."""
    if name in parameters:
        return readable(parameters[name])
    return urllib.parse.unquote("".join(parameters[key] for key in sorted(parameters) if key.startswith(name + "*")))


def addresses_of(header: str) -> list[str]:
    """What stands between the commas of To or From, without quoted names and comments."""
    return re.split("[,;]", _QUOTED.sub(" ", header))


def address_of(header: str) -> str:
    """The first address of a header such as From, in lower case."""
    text = ",".join(addresses_of(header))
    angled = re.search("<([^<>]*)>", text)
    for candidate in [*(angled[1].split() if angled else ()), *re.split(r"[<>,\s]+", text)]:
        if domain_of(candidate):
            return "".join(filter(str.isprintable, candidate[:320].lower()))
    return ""


def domain_of(address: str) -> str:
    """The domain of a mail address or Message-ID, in lower case; empty if it has none."""
    return address.rpartition("@")[2].strip(".<> ").lower()[:253] if "@" in address else ""
