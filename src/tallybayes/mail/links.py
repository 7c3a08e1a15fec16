"""Where the links of a mail lead, whose place that is, and whether they show another."""

from __future__ import annotations

import contextlib
import re
import unicodedata
import urllib.parse

from .html import Link

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
