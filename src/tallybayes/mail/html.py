"""What a reader sees of the HTML of a mail: its text and its links.

HTML is read in one pass from left to right that never goes back, so the time is linear whatever the mail holds.
`html.parser` takes a minute on `<a x="` repeated.
"""

from __future__ import annotations

import html
import re
from typing import NamedTuple

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

    >>> from tallybayes.mail import strip_html
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
