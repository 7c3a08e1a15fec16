"""What a reader sees of the bytes of a mail: their text, the text and links of HTML, and where the links lead.

HTML is read in one pass from left to right that never goes back, so the time is linear whatever the mail holds.
`html.parser` takes a minute on `<a x="` repeated.
"""

from __future__ import annotations

import binascii
import contextlib
import encodings.aliases
import html
import re
import string
import unicodedata
import urllib.parse
from collections.abc import Callable
from typing import NamedTuple

from ..base import canon

# What stands on lines of its own, and what stands in cells of a row; every other tag leaves no gap: "vi<b></b>sible"
_BLOCKS = (
    "address article aside blockquote body br caption center dd div dl dt fieldset figcaption figure footer form h1 h2"
    " h3 h4 h5 h6 head header hr html li main nav ol option p pre section select table tbody tfoot thead tr ul"
)
_CELLS = "button img input td textarea th"
_GAPS = dict.fromkeys(_BLOCKS.split(), "\n") | dict.fromkeys(_CELLS.split(), " ")
_UNSEEN = {
    name: re.compile(f"</{name}(?![a-z0-9])", re.IGNORECASE) for name in ("script", "style", "template", "title")
}
_NAME = re.compile(r"/?([a-zA-Z][^\s/>]{0,20})")
# One attribute. Every part is optional, so it never fails; it is empty only before ">" and at the end.
_ATTRIBUTE = re.compile(r"""[\s/]*([^\s/>=]*)(?:\s*=\s*("[^"]*"|'[^']*'|[^\s>"'][^\s>]*)?)?""")
_LONG_CODE = re.compile(r"&#(?:[0-9]{8,}|[xX][0-9a-fA-F]{8,});?")
_NEVER_SEEN = dict.fromkeys((0xAD, 0x2060, 0xFEFF))  # soft hyphen, word joiner, byte order mark: "vi&shy;sible"
_ZEROS = re.compile(r"&#([xX]?)0+(?=[0-9a-fA-F])")


class Link(NamedTuple):
    """Where a link leads, and the text it shows."""

    href: str
    text: str


class Stripped(NamedTuple):
    """The visible text of a page, one line for each block, and its links."""

    text: str
    links: tuple[Link, ...]


def strip_html(text: str) -> Stripped:
    """The visible text and the links of an HTML text, in linear time, whatever it holds.

    >>> strip_html("<p>Dear <b>cust</b>omer,<p>click <a href='http://a.example/x'>b.example</a> &amp; win<!-- no -->")
    Stripped(text='Dear customer,\\nclick b.example & win', links=(Link(href='http://a.example/x', text='b.example'),))
    """
    text = text.replace("\0", "")  # browsers drop it, so it must not part a word
    out: list[str] = []
    links: list[Link] = []
    href, start = "", -1  # of the link that is open, if start is not negative
    at, size = 0, len(text)
    while at < size:
        tag = text.find("<", at)
        if tag != at:
            out.append(_plain(text[at : tag if tag >= 0 else size]))
        if tag < 0:
            break
        named = _NAME.match(text, tag + 1)
        if named is None:
            at = _after_other(text, tag)
            if at == tag + 1:
                out.append("<")
            continue
        name = named[1].lower()
        closing = text[tag + 1] == "/"
        is_link = name == "a"
        if is_link and start >= 0:  # links do not nest: a new one ends the last
            links.append(Link(href, _line("".join(out[start:]))))
            start = -1
        if is_link and not closing:
            at, found = _attributes(text, named.end())
            if found is not None:
                href, start = found, len(out)
        else:
            at = _after_tag(text, named.end())
        if name in _GAPS:
            out.append(_GAPS[name])
        elif name in _UNSEEN and not closing:
            over = _UNSEEN[name].search(text, at)
            at = over.start() if over else size
    if start >= 0:
        links.append(Link(href, _line("".join(out[start:]))))
    lines = (_line(line) for line in "".join(out).split("\n"))
    return Stripped("\n".join(line for line in lines if line), tuple(links))


def _after_other(text: str, tag: int) -> int:
    """The end of a comment, a declaration or a nameless tag; of "<" alone if it is none of them."""
    if text.startswith("<!--", tag):
        over = text.find("-->", tag + 2)
        return over + 3 if over >= 0 else len(text)
    if text.startswith(("<!", "<?", "</"), tag):
        over = text.find(">", tag + 2)
        return over + 1 if over >= 0 else len(text)
    return tag + 1


def _after_tag(text: str, at: int) -> int:
    """The place after a tag. If no quote is open at the first ">", as in most, it needs no closer look."""
    end = text.find(">", at)
    if end < 0:
        return len(text)
    if text.count('"', at, end) % 2 == 0 and text.count("'", at, end) == 0:
        return end + 1
    return _attributes(text, at)[0]


def _attributes(text: str, at: int) -> tuple[int, str | None]:
    """The place after a tag whose attributes start at `at`, and its first href."""
    href = None
    while True:
        found = _ATTRIBUTE.match(text, at)
        if found is None or found.end() == at:
            return min(at + 1, len(text)), href
        if href is None and found[2] is not None and found[1].lower() == "href":
            href = _spelt_out(found[2].strip("\"'"))
        at = found.end()


def _plain(piece: str) -> str:
    """A piece between tags with its entities decoded, on one line, without what is never seen inside a word."""
    piece = _spelt_out(piece).replace("\n", " ")
    return piece if piece.isascii() else piece.translate(_NEVER_SEEN)


def _spelt_out(piece: str) -> str:
    """A piece with its entities decoded."""
    if "&" in piece:
        if "&#" in piece:  # a number of 5,000 digits makes html.unescape raise
            piece = _LONG_CODE.sub("\ufffd", _ZEROS.sub(r"&#\1", piece))
        piece = html.unescape(piece)
    return piece


def _line(text: str) -> str:
    return " ".join(text.split())


# ---- where a link leads

_HOST = re.compile(r"(?:https?:[/\\]*|[/\\]{2,})([^/\\?#\s]*)", re.IGNORECASE)  # browsers take any number of slashes
_SHOWN = re.compile(
    r"(?<![\w.@-])(https?://|www\.)?((?:[\w-]{1,63}\.){1,8}(?:[a-z]{2,18}|xn--[a-z0-9-]{2,59}|[^\W\d_a-z]{2,18}))(?![\w@-])"
)
_CONTROLS = "".join(map(chr, range(33)))
_LEFT_OUT = dict.fromkeys(map(ord, "\t\r\n"))  # anywhere in an address, as browsers do
_DOTS = dict.fromkeys(map(ord, "\u3002\uff61"), ".")  # that stand for the one between the labels of a name
_FILES = re.compile(
    "asp|aspx|bat|csv|doc|docx|eml|exe|gif|html?|ics|jpe?g|js|json|md|mp[34]|odt|pdf|php|png|pptx?|py|rtf|svg|tar|txt|xlsx?"
    "|xml|zip"
)
# Second labels under which a country's registry gives out names: example.co.uk is one owner's, co.uk is not
_SHARED = ("ac", "co", "com", "edu", "gob", "gov", "ltd", "me", "mil", "ne", "net", "nom", "or", "org", "plc", "sch")


def host_of(address: str) -> str:
    """The host that an http address leads to, in lower case; empty for anything else.

    >>> host_of("https://bank.example@Evil.Example:8080/login"), host_of("mailto:ann@example.org")
    ('evil.example', '')
    """
    found = _HOST.match(address[:2000].translate(_LEFT_OUT).strip(_CONTROLS))
    if found is None:
        return ""
    name = found[1].rpartition("@")[2]
    host = "".join(filter(str.isprintable, _as_read(urllib.parse.unquote(name) if "%" in name else name)))
    if host.startswith("["):  # IPv6
        return host.partition("]")[0][:60] + "]"
    return host.partition(":")[0].strip(".")[:253]


def owner_of(host: str) -> str:
    """The part of a host's name that one owner registered, by its last two labels (three under co.uk and the like).

    >>> owner_of("news.shop.example.com"), owner_of("www.example.co.uk"), owner_of("192.0.2.7")
    ('example.com', 'example.co.uk', '192.0.2.7')
    """
    labels = host.strip(".").split(".")
    if labels[-1].isdigit() or host.startswith("["):
        return host
    few = 3 if len(labels) > 2 and len(labels[-1]) == 2 and labels[-2] in _SHARED else 2
    return ".".join(labels[-few:])


def shows_another_place(link: Link) -> bool:
    """Whether the text of a link shows a domain that its target does not belong to.

    >>> shows_another_place(Link("http://evil.example/x", "www.bank.example"))
    True
    >>> shows_another_place(Link("http://mail.bank.example/x", "bank.example"))
    False
    """
    host = host_of(link.href)
    text = _as_read(link.text[:300])
    if not host or "." not in text:
        return False
    alone = " " not in text  # "bank.example" shows a domain; "Done.Click here" and "invoice.pdf" do not
    domains = []
    for sure, domain in _SHOWN.findall(text):
        end = domain.rpartition(".")[2]
        if sure or (alone and end.isascii() and not _FILES.fullmatch(end)):
            domains.append(domain)
    return bool(domains) and _own_letters(owner_of(host)) not in map(_own_letters, map(owner_of, domains))


def _as_read(text: str) -> str:
    """A short text as eyes and browsers take it: lower case, wide letters as plain ones, without invisible characters.

    >>> _as_read("BANK\u200b\uff0eexample")
    'bank.example'
    """
    if not text.isascii():
        plain = unicodedata.normalize("NFKC", text).translate(_DOTS)
        text = "".join(ch for ch in plain if unicodedata.category(ch) != "Cf")
    return text.lower()


def _own_letters(host: str) -> str:
    """A host's name in its own script, which a link may show instead.

    >>> _own_letters("xn--bnk-qla.example")
    'bänk.example'
    """
    labels = host.split(".")
    for i, label in enumerate(labels):
        if label.startswith("xn--") and len(label) <= 63:
            with contextlib.suppress(UnicodeError):
                labels[i] = label[4:].encode("ascii").decode("punycode")
    return ".".join(labels)


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
        note(f"the character set {canon.printable(charset)!r} is not known; read as UTF-8 or Windows-1252")
    codec = _WIDER.get(name, name) if name in _CHARSETS else ""
    try:
        return _clean(data.decode(codec or "utf-8"))
    except UnicodeDecodeError:
        if codec and note is not None:
            note(f"some text is not valid {canon.printable(charset)}; what could not be read was replaced")
        return _clean(data.decode(codec or "cp1252", "replace"))


def _clean(text: str) -> str:
    """A text that Arrow, files and tokenisers can hold: without NUL and lone surrogates."""
    return (canon.text(text) or "").replace("\0", "")


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
