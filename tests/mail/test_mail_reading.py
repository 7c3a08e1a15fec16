"""Reading mail: every column on crafted messages, every kind of mailbox, and hostile bytes in linear time."""

from __future__ import annotations

import base64
import io
import mailbox
import random
import string
import sys
import time
from html import unescape
from pathlib import Path

import pytest
from growth import LARGER, grows_in_step
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import tallybayes as tb
from tallybayes.mail import MailSettings, mail_schema, read_mail, read_message, strip_html
from tallybayes.mail.html import Link
from tallybayes.mail.links import host_of, owner_of, shows_another_place
from tallybayes.mail.parts import decoded, readable

INBOX = Path(__file__).parents[2] / "examples/inbox"
COLUMNS = (
    "subject body sender_domain sender_known recipients reply_to_differs hour attachments dollar_amounts caps_share"
    " urls url_domains link_mismatch seen_before domains_agree greets_owner"
)


def mail(headers: str = "", body: str = "") -> bytes:
    return f"{headers}\n\n{body}".lstrip("\n").encode() if headers else f"\n{body}".encode()


def row(headers: str = "", body: str = "", **settings):
    return read_message(mail(headers, body), MailSettings(**settings)).row


def html(body: str):
    return row("Content-Type: text/html", body)


def parts(*pieces: str, kind: str = "mixed", end: str = "--b--\n") -> bytes:
    return mail(f'Content-Type: multipart/{kind}; boundary="b"', "".join(f"--b\n{p}\n" for p in pieces) + end)


# ---- columns


def test_every_column_is_there_even_for_nothing() -> None:
    message = read_message(b"")
    assert list(message.row) == COLUMNS.split()
    assert [name for name, value in message.row.items() if value not in (None, [], 0, "")] == []
    assert (message.row["body"], message.row["subject"], message.row["link_mismatch"]) == ("", None, False)
    assert message.id == "sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert (message.sender, message.notes) == ("", ())


@pytest.mark.parametrize(
    ("header", "subject"),
    [
        ("Lunch?", "Lunch?"),
        ("  two\n  lines ", "two lines"),
        ("=?utf-8?q?Caf=C3=A9_au_lait?=", "Café au lait"),
        ("=?UTF-8?B?w4Q=?= =?UTF-8?B?w5Y=?= x", "ÄÖ x"),
        ("=?utf-8?b?4oI=?=\n =?utf-8?b?rA==?=", "€"),  # a character parted between two words
        ("=?iso-8859-1*en?q?=E4?=!", "ä!"),
        ("a =?utf-8?q?b?= c", "a b c"),
        ("=?no-such-charset?q?=C3=A4?=", "ä"),
        ("=?utf-8?b?!!!?= =?utf-8?q", "=?utf-8?q"),
        ("=?utf-7?q?+2AA-?=", "\ufffd"),  # a lone surrogate
        ("a\0b", "ab"),
    ],
)
def test_subject(header: str, subject: str) -> None:
    assert row(f"Subject: {header}")["subject"] == subject


def test_subject_of_raw_bytes() -> None:
    assert read_message("Subject: Grüße\n\n".encode()).row["subject"] == "Grüße"
    assert read_message("Subject: Grüße\n\n".encode("latin-1")).row["subject"] == "Grüße"
    assert row("subject : a\nSUBJECT: b")["subject"] == "a"  # the first of two


@pytest.mark.parametrize(
    ("header", "sender"),
    [
        ("ann@example.org", "ann@example.org"),
        ("Ann <Ann@Example.ORG>", "ann@example.org"),
        ('"bank@good.example" <thief@evil.example>', "thief@evil.example"),
        ("bank@good.example <thief@evil.example>", "thief@evil.example"),
        ("thief@evil.example (bank@good.example)", "thief@evil.example"),
        ("=?utf-8?q?J=C3=B6rg?= <j@a.example>, b@b.example", "j@a.example"),
        ("nobody", ""),
        ("<>", ""),
        ('"open <a@a.example>', ""),
        ("a\x1b[31m@evil.example", "a[31m@evil.example"),
    ],
)
def test_sender(header: str, sender: str) -> None:
    message = read_message(mail(f"From: {header}"))
    assert message.sender == sender
    assert message.row["sender_domain"] == (sender.partition("@")[2] or None)


def test_what_only_the_caller_knows() -> None:
    known = read_message(b"", sender_known=True, seen_before=False).row
    assert (known["sender_known"], known["seen_before"]) == (True, False)


@pytest.mark.parametrize(
    ("headers", "recipients"),
    [
        ("Subject: none", 0),
        ("To: a@a.example", 1),
        ('To: "Doe, Jane" <j@a.example>, b@b.example\nCc: c@c.example (one, two@x.example)', 3),
        ("To: a@a.example\nTo: b@a.example", 2),
        ("To: undisclosed-recipients:;", 0),
        ("To: " + ",\n ".join(f"p{i}@a.example" for i in range(300)), 300),
    ],
)
def test_recipients(headers: str, recipients: int) -> None:
    assert row(headers)["recipients"] == recipients


def test_reply_to_differs() -> None:
    assert row("From: a@a.example")["reply_to_differs"] is False
    assert row("From: a@a.example\nReply-To: A <A@a.example>")["reply_to_differs"] is False
    assert row("From: a@a.example\nReply-To: b@a.example")["reply_to_differs"] is True
    assert row("Reply-To: b@a.example")["reply_to_differs"] is None


@pytest.mark.parametrize(
    ("date", "hour"),
    [
        ("Sat, 15 Nov 2025 07:41:00 +0100", "07"),
        ("15 Nov 2025 23:41 -0800", "23"),
        ("Sat Nov 15 0:41:00 2025", "00"),
        ("Sat, 15 Nov 2025 24:41:00 +0100", None),
        ("Sat, 15 Nov 2025 12:61:00", None),
        ("yesterday at 12:30", None),
        ("", None),
    ],
)
def test_hour(date: str, hour: str | None) -> None:
    assert row(f"Date: {date}")["hour"] == hour


@pytest.mark.parametrize(
    ("headers", "agree"),
    [
        ("From: a@a.example", None),
        ("From: a@a.example\nReturn-Path: <>", None),
        ("From: a@news.a.example\nReturn-Path: <bounce@mail.a.example>\nMessage-ID: <1@a.example>", True),
        ("From: a@a.example\nReturn-Path: <b@evil.example>\nMessage-ID: <1@a.example>", False),
        ("Return-Path: <b@a.example>\nMessage-ID: <1@b.example>", False),
        ("From: a@one.co.uk\nReturn-Path: <b@two.co.uk>", False),
    ],
)
def test_domains_agree(headers: str, agree: bool | None) -> None:
    assert row(headers)["domains_agree"] is agree


def test_greets_owner() -> None:
    assert row(body="Hi Ada,")["greets_owner"] is None
    assert row(body="Hi ADA,", owner="Ada, Ms Winter")["greets_owner"] is True
    assert row(body="Dear Ms Winter", owner="Ada, Ms Winter")["greets_owner"] is True
    assert row(body="Hi Adam", owner="Ada")["greets_owner"] is False
    assert row(body="Dear ada@home.example, you won", owner="Ada")["greets_owner"] is False  # all that spam knows
    assert row(body="x" * 300 + " Ada", owner="Ada")["greets_owner"] is False
    assert row(body="a.b", owner="a+b(")["greets_owner"] is False


def test_amounts_and_capitals() -> None:
    assert row(body="$5, $ 6,000.00 and 7 € or 8£; a $ign, 9 dollars, US$10")["dollar_amounts"] == 5
    assert row("Subject: WIN $1", "€2")["dollar_amounts"] == 2
    assert row("Subject: AB", "cd ef 12")["caps_share"] == pytest.approx(2 / 6)
    assert row(body="ÄÖüß Ж中")["caps_share"] == pytest.approx(3 / 6)
    assert row(body="123 !")["caps_share"] is None


def test_addresses_of_links_in_plain_text() -> None:
    found = row(
        body="see http://www.a.example/x, (https://A.example/y) www.b.example. HTTP://c.example:80/ ftp://d.example"
    )
    assert found["urls"] == 4
    assert found["url_domains"] == ["a.example", "b.example", "c.example"]
    twice = row(body="http://a.example/x http://a.example/x")
    assert (twice["urls"], twice["url_domains"]) == (1, ["a.example"])


def test_attachments() -> None:
    message = read_message(
        parts(
            "Content-Type: text/plain\n\nhello",
            'Content-Type: application/pdf; name="Invoice.PDF.exe"\n\nx',
            "Content-Disposition: attachment; filename*0*=utf-8''a%20b; filename*1=\".zip\"\n\nx",
            "Content-Type: image/png\n\nx",
            'Content-Type: application/octet-stream; name="=?utf-8?b?w6QuZG9j?="\n\nx',
            "Content-Type: text/calendar\n\nx",
            "Content-Disposition: attachment\n\nnot read",
            "Content-Type: x/y-very-long-subtype-indeed\n\nx",
            "Content-Type: message/rfc822\n\nFrom: a@a.example\n\ninner text",
        )
    )
    assert message.row["attachments"] == ["exe", "zip", "png", "doc", "ics", "other", "other", "eml"]
    assert message.row["body"] == "hello\ninner text"
    assert message.notes == ()


def test_body_is_the_text_or_else_the_stripped_html() -> None:
    plain, page = (
        "Content-Type: text/plain\n\nplain",
        "Content-Type: text/html\n\n<p>A &amp; B <a href=http://x.example>y",
    )
    both = read_message(parts(plain, page, kind="alternative")).row
    assert (both["body"], both["url_domains"]) == ("plain", ["x.example"])
    assert read_message(parts(page)).row["body"] == "A & B y"
    assert read_message(parts("Content-Type: text/plain\n\n \n", page)).row["body"] == "A & B y"
    assert read_message(parts("Content-Type: image/png\n\nx")).row["body"] is None


@pytest.mark.parametrize("encoding", ["quoted-printable", "base64", "8bit"])
@pytest.mark.parametrize("charset", ["utf-8", "iso-8859-1", "windows-1252", "utf-16", '"UTF-8"', "us-ascii", ""])
def test_transfer_encodings_and_charsets(encoding: str, charset: str) -> None:
    text = "Grüße = 100 %\n" * 3
    data = text.encode(charset.strip('"').replace("us-ascii", "") or "utf-8")
    if encoding == "8bit":
        sent = data
    else:
        sent = base64.encodebytes(data) if encoding == "base64" else "".join(f"={b:02X}" for b in data).encode()
    head = f"Content-Type: text/plain; charset={charset}\nContent-Transfer-Encoding: {encoding}\n\n".encode()
    if (encoding, charset) != ("8bit", "utf-16"):  # its NULs and newlines do not survive as lines of a mail
        assert read_message(head + sent).row["body"] == text
        assert read_message(head + sent).notes == ()


def test_html_that_says_something_else_than_the_text_beside_it_is_counted_too() -> None:
    offer = "<p>You have won the <b>great</b> prize, send us your bank account and claim it today"
    for text, both in (
        ("See you at the meeting on Monday.", True),
        ("YOU HAVE WON THE GREAT PRIZE: send us your bank", False),
    ):
        raw = parts(f"Content-Type: text/plain\n\n{text}", f"Content-Type: text/html\n\n{offer}", kind="alternative")
        body = read_message(raw).row["body"]
        assert body.startswith(text)
        assert ("claim it today" in body) is both


def test_nested_parts_are_read_in_order() -> None:
    inner = (
        "Content-Type: multipart/alternative; boundary=bb\n\n--bb\n\none\n--bb\nContent-Type: text/html\n\n<p>x\n--bb--"
    )
    message = read_message(parts(inner, "\ntwo", "Content-Type: text/plain\n\nthree"))
    assert message.row["body"] == "one\ntwo\nthree"  # boundary b is the beginning of bb
    assert message.notes == ()


@pytest.mark.parametrize("newline", [b"\r\n", b"\r"])
def test_line_ends_change_nothing(newline: bytes) -> None:
    for path in sorted(INBOX.glob("*/*.eml")):
        raw = path.read_bytes()
        assert read_message(raw.replace(b"\n", newline)).row == read_message(raw).row


def test_id() -> None:
    one = read_message(mail("Message-ID:  <1@a.example> "))
    assert one.header_id == "<1@a.example>" and one.id.startswith("<1@a.example> sha256:")
    long = [read_message(mail("Message-ID: <" + "x" * 999 + end)).id for end in ("1@a>", "2@a>", "1@a>")]
    assert long[0] == long[2] != long[1]  # not one message because they begin alike
    assert all(name.startswith("<" + "x" * 199 + "… sha256:") and len(name) < 400 for name in long)
    assert read_message(mail("Message-ID: <a\x1b[2J@b>")).header_id == "<a\ufffd[2J@b>"
    for empty in (b"Message-ID: \n\nx", b"Message-ID: <>\n\nx", b"Subject: a\n\nx"):
        assert read_message(empty).id.startswith("sha256:")
    assert read_message(b"\n1").id != read_message(b"\n2").id
    envelope = b"From a@x.example Mon Jan  1 10:00:00 2024\n"
    assert read_message(envelope + b"Subject: a\n\nx").id == read_message(b"Subject: a\n\nx").id


def test_fingerprint_is_shared_by_near_identical_messages() -> None:
    text = (
        "Dear {name},\n\nyou have won the big prize of ${n}. Claim your money today at http://x.example/{n} by {n} pm."
    )
    first = read_message(mail("Subject: Prize 1", text.format(name="Ada", n=17)))
    for name, n in (("Mr Johann Sebastian Smith", 99_000), ("customer", 5)):
        other = read_message(mail("Subject: other", text.format(name=name, n=n).replace(" ", "  \n")))
        assert other.fingerprint == first.fingerprint
    changed = text.replace("prize", "parcel").format(name="Ada", n=17)
    assert read_message(mail("Subject: Prize 1", changed)).fingerprint != first.fingerprint
    short = {read_message(mail(f"From: a@{d}.example", "ok, thanks")).fingerprint for d in "abc"}
    assert len(short) == 3  # strangers may share a few words
    assert len(read_message(b"").fingerprint) == 32


def test_fingerprint_of_a_long_message_bears_a_few_words_more_or_less() -> None:
    rng = random.Random(3)
    words = ["".join(rng.choices(string.ascii_lowercase, k=rng.randint(3, 9))) for _ in range(2_000)]

    def fingerprint(text: list[str]) -> str:
        return read_message(mail("Subject: x", " ".join(text))).fingerprint

    same = 0
    for _ in range(200):
        text = rng.choices(words[:400], k=150)
        busy = [*text, rng.choice(words[400:])]  # a word at random, as senders add to look different
        busy[rng.randrange(150)] = rng.choice(words[400:])
        same += fingerprint(busy) == fingerprint(text)
    assert same > 150
    others = {fingerprint(rng.choices(words[:400], k=150)) for _ in range(200)}
    assert len(others) == 200  # strangers who share a third of their words


# ---- links and HTML


def test_strip_html() -> None:
    page = """<!DOCTYPE html><html><head><title>no</title><STYLE>p > a {}</STYLE></head><body>
    <p>One &lt;b&gt;<br>t<b>w</b>o&nbsp;&#0000051; <!-- no --> <![if x]> 4 < 5 <img alt="a>b" src='x>y'>
    <script>if (a < b) { no }</script><table><tr><td>x<td>y</table>
    <a title=it's href="http://a.example/?p=1&amp;q=2">A <i>link</i></a>
    <a href=//b.example>no end <a name=x>not a link</a> </ nonsense> end"""
    text, links = strip_html(page)
    assert text == "One <b>\ntwo 3 4 < 5\nx y\nA link no end not a link end"
    assert links == (Link("http://a.example/?p=1&q=2", "A link"), Link("//b.example", "no end"))


@pytest.mark.parametrize(
    ("page", "text"),
    [
        ("a<!-- open", "a"),
        ("a<!-->b", "ab"),
        ("vi&shy;si\u2060b\ufeffle", "visible"),
        ("a<b open", "a"),
        ('a<b x="open>b', "ab"),
        ("a<script>b", "a"),
        ("a<style>b</styles>c</style >d", "ad"),
        ("v\0isible", "visible"),
        ("&#" + "9" * 5000 + ";", "\ufffd"),
        ("&#xD800;&#0;&bogus;&amp", "\ufffd\ufffd&bogus;&"),
        ("<" * 5, "<<<<<"),
        ("", ""),
    ],
)
def test_broken_html(page: str, text: str) -> None:
    assert strip_html(page).text == text


@given(st.text(st.sampled_from("<>/!-ab \"'=&#;x1\n\0"), max_size=60))
@examples(300)
def test_strip_html_leaves_no_whole_tag(page: str) -> None:
    stripped = strip_html(page)
    assert "\0" not in stripped.text
    if "&" not in page:
        assert "<a>" not in stripped.text and "</a>" not in stripped.text
    assert sum(len(link.text) for link in stripped.links) <= len(stripped.text)


@pytest.mark.parametrize(
    ("href", "shown", "mismatch"),
    [
        ("http://evil.example/x", "https://bank.example/login", True),
        ("http://evil.example/x", "www.bank.example", True),
        ("http://evil.example/x", "bank.example", True),
        ("http://evil.example/x", "Sign in at https://bank.example today", True),
        ("http://bank.example@evil.example/", "bank.example", True),
        ("http://a.co.uk/", "b.co.uk", True),
        ("http://192.0.2.7/", "bank.example", True),
        ("https://login.bank.example/x", "www.bank.example/x", False),
        ("http://evil.example/x", "click here", False),
        ("http://evil.example/x", "invoice.pdf", False),
        ("http://evil.example/x", "Well done.Click here", False),
        ("http://evil.example/x", "ann@bank.example", False),
        ("mailto:a@evil.example", "bank.example", False),
        ("/relative", "bank.example", False),
        # what browsers make of an address
        ("h&#10;ttp://evil.exa&#9;mple/x", "bank.example", True),
        ("&#1; http://evil.example/x", "bank.example", True),
        ("http:/evil.example", "bank.example", True),
        ("https:evil.example", "bank.example", True),
        ("http:///evil.example", "bank.example", True),
        ("http://evil%2eexample/x", "bank.example", True),
        ("http://bank&#12290;example/x", "bank.example", False),
        # what eyes make of a text
        ("http://evil.example/x", "bank&#8203;.exam&zwnj;ple", True),
        ("http://evil.example/x", "bank\uff0eexample", True),
        ("http://evil.example/x", "\uff57\uff57\uff57.bank.example", True),
        # names in other scripts may be written either way
        ("http://xn--bnk-qla.example/x", "bänk.example", False),
        ("http://bänk.example/x", "xn--bnk-qla.example", False),
        ("http://xn--bnk-qla.example/x", "bank.example", True),
        ("http://evil.example/x", "http://пример.рф", True),
        ("http://xn--e1afmkfd.xn--p1ai/x", "http://пример.рф", False),
        ("http://xn--99999999999/x", "bank.example", True),
        ("http://evil.example/x", "Готово.Дальше", False),
    ],
)
def test_link_mismatch(href: str, shown: str, mismatch: bool) -> None:
    assert shows_another_place(Link(unescape(href), unescape(shown))) is mismatch
    assert html(f'<p>x <a class="y" href="{href}">{shown}</a>')["link_mismatch"] is mismatch


def test_hosts() -> None:
    assert host_of("HTTPS://User:pw@Sub.A.Example.:8080/x?y") == "sub.a.example"
    assert host_of("http:\\\\a.example\\x") == "a.example"
    assert host_of("http://[::1]:80/") == "[::1]"
    assert host_of("http://a\x1b.example") == "a.example"
    assert [host_of(x) for x in ("javascript:alert(1)", "http://", "", "a.example")] == ["", "", "", ""]
    assert [owner_of(h) for h in ("a.b.example", "localhost", "a.com.au", "com.au", "10.0.0.1", "")] == [
        "b.example", "localhost", "a.com.au", "com.au", "10.0.0.1", "",
    ]  # fmt: skip


# ---- the schema


def test_e5_the_schema_counts_every_column_of_a_message() -> None:
    schema = mail_schema()
    assert list(schema.names) == COLUMNS.split()
    assert schema.target == "class"
    assert mail_schema(text=tb.Tokeniser(ngrams=(1, 2)))["body"].text == tb.Tokeniser(ngrams=(1, 2))
    rows = [{**read_message(raw, MailSettings(owner="Ada")).row, "class": c} for c, raw, _ in read_mail(INBOX)]
    tally = tb.count([*rows, {**read_message(b"").row, "class": "ham"}], schema)
    assert tally.rows == 61
    right = sum(a == r["class"] for a, r in zip(tally.model().predict(rows), rows, strict=True))
    assert right >= 57


# ---- the example inbox


def test_the_example_inbox_is_invented_and_reads_without_notes() -> None:
    found = list(read_mail(INBOX))
    assert [label for label, _, _ in found] == ["ham"] * 34 + ["spam"] * 26
    ids = set()
    for _, raw, where in found:
        assert b"\nX-Invented: yes, for tallybayes' examples\n" in raw, where
        assert b"\r" not in raw, where
        message = read_message(raw, MailSettings(owner="Ada"))
        assert message.notes == (), where
        assert message.row["subject"] and message.row["hour"] and message.row["domains_agree"] is not None, where
        assert "\ufffd" not in f"{message.row['subject']}{message.row['body']}", where
        domains = {message.row["sender_domain"], *message.row["url_domains"]} - {"192.0.2.77"}
        assert all(d.endswith((".example", ".invalid")) or owner_of(d).startswith("example.") for d in domains), where
        ids.add(message.id)
    assert len(ids) == 60


# ---- hostile bytes

HEAD = b"From: a@example.org\nSubject: x\n"
MULTI = HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n"


def nested(n: int) -> bytes:
    opened = b"".join(b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (i, i) for i in range(n))
    return HEAD + opened + b"\nhello\n" + b"".join(b"\n--b%d--\n" % i for i in reversed(range(n)))


def one_thing(raw: bytes, *words: str, **settings) -> dict[str, object]:
    """The message is read in no time, the notes say what was odd, and every text can be written and shown."""
    start = time.process_time()
    message = read_message(raw, MailSettings(**settings))
    assert time.process_time() - start < 3  # a tenth of a second on a quiet machine
    notes = "\n".join(message.notes)
    assert all(word in notes for word in words), notes
    for value in (*message.row.values(), message.id, message.sender, notes):
        if isinstance(value, str):
            value.encode()
    assert notes.replace("\n", "").isprintable()
    return message.row


def test_invalid_utf8() -> None:
    head = b"Content-Type: text/plain; charset=utf-8\n\n"
    assert one_thing(head + b"ok \xff\xfe \xc3", "not valid utf-8")["body"] == "ok \ufffd\ufffd \ufffd"
    assert one_thing(b"\nGr\xfc\xdfe")["body"] == "Grüße"  # without a charset: Windows-1252


@pytest.mark.parametrize(
    "charset", ["no-such", "zlib", "rot13", "idna", "punycode", "unicode_escape", "undefined", "hex", "x" * 999, "é"]
)
def test_wrong_charsets(charset: str) -> None:
    head = f'Content-Type: text/plain; charset="{charset}"\n\n'.encode()
    assert one_thing(head + b"\\u12 Gr\xc3\xbcn", "character set", "not known")["body"] == "\\u12 Grün"


@pytest.mark.parametrize("charset", ["utf-7", "utf-16", "utf-32", "iso-2022-jp", "hz", "gb2312", "big5", "shift_jis"])
def test_hostile_bytes_in_real_charsets(charset: str) -> None:
    head = f"Content-Type: text/plain; charset={charset}\n\n".encode()
    one_thing(head + b"~{+AAA\x1b$B\xd8\x00\\u12+2AA-\xff" * 50_000)


def test_truncated_mime() -> None:
    whole = (INBOX / "ham/02-minutes.eml").read_bytes()
    half = one_thing(whole[: whole.index(b"--minutes", whole.index(b"pdf"))], "ends in the middle of a part")
    assert half["attachments"] == ["pdf"]
    assert (
        one_thing(mail("Content-Type: multipart/mixed", "text"), "without the line that parts them")["body"] == "text"
    )
    assert one_thing(MULTI, "without the line that parts them")["body"] == ""
    for cut in range(0, len(whole), 7):
        one_thing(whole[:cut])
    letters = base64.b64encode(b"meeting at noon, bring notes")
    for cut in range(len(letters)):
        row = one_thing(mail("Content-Transfer-Encoding: base64") + letters[:cut])
        assert row["body"] == "meeting at noon, bring notes"[: cut * 6 // 8]


def test_thousands_of_nested_parts() -> None:
    assert one_thing(nested(19))["body"] == "hello\n"
    assert one_thing(nested(2_000), "parts beyond the first 20 deep were not read")["body"] is None
    one_thing(nested(50_000), "20 deep")
    one_thing(HEAD + b"Content-Type: message/rfc822\n\n" * 2_000 + b"\nhi", "20 deep")
    one_thing(HEAD + b"Content-Type: multipart/mixed; boundary=b\n\n--b\n" * 2_000, "parts beyond the first 200")
    many = one_thing(MULTI + b"--b\n\npart\n" * 100_000, "parts beyond the first 200")
    assert str(many["body"]).count("part") == 199
    one_thing(MULTI + b"\n--bb" * 1_000_000, "too many lines that look like the end of a part")


def test_a_hundred_megabytes() -> None:
    raw = HEAD + b"\n" + b"The same line, $5, again and again.\n" * 2_800_000
    assert len(raw) > 100_000_000
    body = one_thing(raw, "the message has 100,800,032 bytes; only the first 10,000,000 were read", "200,000")["body"]
    assert len(str(body)) == 200_000
    assert read_message(raw).id == read_message(raw[: 10_000_000 + 1]).id


@pytest.mark.parametrize(
    ("raw", "words"),
    [
        (b"X-A: b\n" * 1_000_000, "more than 1,000 lines of headers"),
        (b"Subject: a\n" + b" b\n" * 1_000_000, "more than 1,000 lines of headers"),
        (b"Subject: " + b"a" * 5_000_000, "the header subject has 5,000,001 bytes"),
        (b"Subject: " + b"=?utf-8?q?a?= " * 500_000, "the header subject"),
        (b"Subject: " + b"=?a?q?" * 500_000, "the header subject"),
        (b"To: " + b"a@b.example," * 500_000, "the header to"),
        (b"To: " + b'"\\"' * 500_000, "the header to"),
        (b"To: " + b"(a" * 500_000, "the header to"),
        (b"From: " + b"<@" * 500_000, "the header from"),
        (b"Content-Type: " + b';a="\\"' * 500_000, "the header content-type"),
        (b"Content-Type: a" + b"; " * 500_000, "the header content-type"),
        (b"A" + b" " * 5_000_000, "a line that is no header"),
        (b"a" * 5_000_000, "a line that is no header"),
    ],
)
def test_header_bombs(raw: bytes, words: str) -> None:
    one_thing(raw, words)


def test_what_looks_like_a_bomb_in_base64() -> None:
    head = HEAD + b"Content-Transfer-Encoding: base64\n\n"
    assert len(str(one_thing(head + b"QUFB" * 2_000_000, "longer than 200,000 characters")["body"])) == 200_000
    assert one_thing(head + b"QUJD!\nQ")["body"] == "ABC"
    assert one_thing(head + b"=" * 1_000_000)["body"] == ""
    attached = b"Content-Type: application/zip; name=a.zip\nContent-Transfer-Encoding: base64\n\n" + b"UEsD" * 1_000_000
    assert one_thing(MULTI + b"--b\n" + attached + b"\n--b--\n")["attachments"] == ["zip"]  # never decoded


def test_control_characters_and_surrogates() -> None:
    assert one_thing(b"\n" + b"\0" * 1_000_000)["body"] == ""
    assert one_thing(b"\na\r\rb\r\nc")["body"] == "a\n\nb\nc"
    assert one_thing(b"\n\xed\xa0\x80")["body"] == "í\xa0€"  # a surrogate is no UTF-8
    assert decoded(b"+2AA-", "utf-7") == "\ufffd"
    assert readable("=?utf-16?b?2ADYAA==?=").encode()
    page = b"Content-Type: text/html\n\n" + b'<a x="' * 2_000_000
    assert one_thing(page, "longer than")["body"] == ""
    links = b"Content-Type: text/html\n\n" + b"<a href=http://a.example>b.example" * 20_000
    assert one_thing(links, "only the first 2,000 were looked at")["link_mismatch"] is True


def test_caps_are_settings() -> None:
    assert one_thing(b"Subject: abc\n\nx", "first 11 were", max_bytes=11)["subject"] == "ab"
    assert one_thing(b"\nabcdef", "3 characters", max_text=3)["body"] == "abc"
    with pytest.raises(tb.SettingsError, match="max_text=0"):
        MailSettings(max_text=0)
    with pytest.raises(tb.DataError, match="Hint: give bytes"):
        read_message("text")  # type: ignore[arg-type]


@given(st.binary(max_size=400))
@examples(400)
def test_no_bytes_raise(raw: bytes) -> None:
    read_message(raw, MailSettings(owner="Ada"))


PIECES = [
    *(
        b"\n",
        b"\r",
        b"\r\n",
        b"\n\n",
        b" ",
        b"\t",
        b"\0",
        b"\xff",
        b"--b",
        b"--b--",
        b"--",
        b":",
        b";",
        b"=",
        b"<",
        b">",
    ),
    *(
        b'"',
        b"\\",
        b"From ",
        b"From: a@b.example",
        b"To: ",
        b"Subject: =?utf-8?b?",
        b"?=",
        b"=?x?q?=",
        b"Message-ID: <",
    ),
    *(
        b"Content-Type: multipart/mixed; boundary=b",
        b"Content-Type: text/html; charset=utf-7",
        b"Date: 1 Jan 2025 99:99",
    ),
    *(
        b"Content-Transfer-Encoding: base64",
        b"Content-Transfer-Encoding: quoted-printable",
        b"Content-Type: message/rfc822",
    ),
    *(
        b"Content-Disposition: attachment; filename*0*=",
        b"http://",
        b"www.",
        b"&#",
        b"99999999999",
        b"<a href=",
        b"<!--",
    ),
    *(b"<script>", b"$5", b"+2AA-", b"Ada"),
]


@given(st.lists(st.sampled_from(PIECES) | st.binary(max_size=4), max_size=40).map(b"".join))
@examples(600)
def test_no_pieces_of_mail_raise(raw: bytes) -> None:
    one_thing(raw, owner="Ada")


@given(st.data())
@examples(300)
def test_no_mutated_message_raises(data: st.DataObject) -> None:
    raw = bytearray(data.draw(st.sampled_from(RAW)))
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(raw)))
        raw[at : at + data.draw(st.sampled_from([0, 0, 1, 5, 400]))] = data.draw(
            st.sampled_from(PIECES) | st.binary(max_size=3)
        )
    one_thing(bytes(raw), owner="Ada")


RAW = [path.read_bytes() for path in sorted(INBOX.glob("*/*.eml"))]


# ---- linear time


@pytest.mark.parametrize(
    "piece",
    [
        '<a x="',
        "<a x='",
        "<a href='x'>y",
        "<div>",
        "<!--",
        "<",
        "</",
        "<b '",
        "<b x='>",
        "<a\n\n",
        "&#9",
        "&amp",
        "&",
        "\0<a",
        "<p>\n",
    ],
)
def test_stripping_html_is_linear(piece: str) -> None:
    assert grows_in_step(strip_html, piece * 15_000, piece * 15_000 * LARGER)


def test_a_million_open_quotes_or_nested_tags_are_stripped() -> None:
    assert strip_html('<a x="' * 1_000_000) == ("", ())
    assert strip_html("<div>x" * 1_000_000).text.count("x") == 1_000_000


@pytest.mark.parametrize(
    "piece",
    [
        b"http://a.example/x ",
        b"www.",
        b"$ 1",
        b"a.",
        b"\xcc\x81",
        b"aA ",
        b"\r",
        b"=41",
        b"\n--b",
        b"\n--b\n\nx",
        b"a@b,",
    ],
)
@pytest.mark.parametrize("head", [b"\n", MULTI, HEAD + b"Content-Transfer-Encoding: quoted-printable\n\n", b"To: "])
def test_reading_is_linear(head: bytes, piece: bytes) -> None:
    wide = MailSettings(
        max_text=10**7, max_header=10**7, max_links=10**6, max_parts=10**6, max_headers=10**6
    )  # no cap is what makes it fast
    assert grows_in_step(lambda raw: read_message(head + raw, wide), piece * 7_500, piece * 7_500 * LARGER)


# ---- mailboxes


def test_one_file(tmp_path: Path) -> None:
    raw = mail("From: a@a.example", "hello")
    (tmp_path / "a.eml").write_bytes(raw)
    assert list(read_mail(tmp_path / "a.eml")) == [(None, raw, str(tmp_path / "a.eml"))]
    (tmp_path / "kept").write_bytes(b"From a@a.example Sat Nov 15 09:41:00 2025\n" + raw)
    assert [found for _, found, _ in read_mail(str(tmp_path / "kept"))] == [raw]
    assert [len(found) for _, found, _ in read_mail(tmp_path / "a.eml", max_bytes=4)] == [5]


def box(path: Path, messages: list[bytes]) -> Path:
    made = mailbox.mbox(path)
    for raw in messages:
        made.add(raw)
    made.close()
    return path


def test_mbox_as_the_standard_library_writes_it(tmp_path: Path) -> None:
    path = box(tmp_path / "inbox", RAW)
    found = list(read_mail(path))
    assert len(found) == 60
    assert [read_message(raw).row for _, raw, _ in found] == [read_message(raw).row for raw in RAW]
    assert {label for label, _, _ in found} == {None}
    assert found[2][2] == f"{path}, message 3"


def test_mbox_by_hand(tmp_path: Path) -> None:
    line = b"From a@a.example Sat Nov 15 09:41:00 2025\n"
    one = b"Subject: 1\n\nFrom here on\n\nFrom now on, too\n>From quoted\n>>From twice\nFrom x 10:10\n"
    path = tmp_path / "a.mbox"
    path.write_bytes(b"\n" + line + one + b"\n" + line + b"Subject: 2\n\nlast without an end")
    unquoted = one.replace(b">From", b"From")
    assert [raw for _, raw, _ in read_mail(path)] == [unquoted, b"Subject: 2\n\nlast without an end"]
    path.write_bytes(path.read_bytes().replace(b"\n", b"\r\n"))
    assert next(read_mail(path))[1].replace(b"\r\n", b"\n") == unquoted


def test_a_huge_message_in_an_mbox_is_cut_and_the_next_is_read(tmp_path: Path) -> None:
    line = b"From a@a.example Sat Nov 15 09:41:00 2025\n"
    path = tmp_path / "a.mbox"
    path.write_bytes(line + b"Subject: 1\n\n" + b"x" * 3_000_000 + b"\n\n" + line + b"Subject: 2\n\ny\n")
    sizes = [len(raw) for _, raw, _ in read_mail(path, max_bytes=1_000_000)]
    assert sizes == [1_000_001, 14]


def test_maildir(tmp_path: Path) -> None:
    made = mailbox.Maildir(tmp_path / "m")
    for raw in RAW[:5]:
        made.add(raw)
    (tmp_path / "m/cur/1:2,S").write_bytes(RAW[5])
    (tmp_path / "m/cur/.hidden").write_bytes(b"no")
    (tmp_path / "m/cur/2:2,").write_bytes(b"")  # what a killed program left
    assert sorted(raw for _, raw, _ in read_mail(tmp_path / "m")) == sorted(RAW[:6])
    messages = read_mail(tmp_path / "m", kind="maildir")
    next(messages)
    for path in (tmp_path / "m/new").iterdir():
        path.unlink()  # another program moves mail while we read
    assert list(messages) == []


def test_folders(tmp_path: Path) -> None:
    assert [label for label, _, _ in read_mail(INBOX / "spam")] == [None] * 26
    (tmp_path / "good").mkdir()
    (tmp_path / "bad/new").mkdir(parents=True)
    (tmp_path / "README").write_text("not mail")
    (tmp_path / "good/00001.7c5333").write_bytes(RAW[0])  # as corpora name their files
    (tmp_path / "bad/new/1").write_bytes(RAW[-1])
    assert list(read_mail(tmp_path)) == [
        ("bad", RAW[-1], str(tmp_path / "bad/new/1")),
        ("good", RAW[0], str(tmp_path / "good/00001.7c5333")),
    ]


def test_standard_input(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def given_input(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), encoding="utf-8"))

    given_input(RAW[0])
    assert list(read_mail("-")) == [(None, RAW[0], "standard input")]
    given_input(RAW[0])
    assert [len(raw) for _, raw, _ in read_mail("-", max_bytes=10)] == [11]
    given_input(box(tmp_path / "b", RAW[:3]).read_bytes())
    assert [raw for _, raw, _ in read_mail("-")] == [raw for _, raw, _ in read_mail(tmp_path / "b")]
    assert len(list(read_mail(tmp_path / "b"))) == 3
    given_input(b"\n\nno headers")
    assert [raw for _, raw, _ in read_mail("-")] == [b"\n\nno headers"]
    given_input(b"\n" * 50)
    assert [len(raw) for _, raw, _ in read_mail("-", max_bytes=10)] == [11]
    given_input(b"From here to there\n\nis far")
    assert len(list(read_mail("-"))) == 1
    given_input(box(tmp_path / "b2", RAW[:3]).read_bytes())
    assert [where for _, _, where in read_mail("-", kind="mbox")][2] == "standard input, message 3"
    for data, kind, words in (
        (b"", "auto", "is empty"),
        (b"", "mbox", "is empty"),
        (b"x\n", "mbox", "is not an mbox"),
        (b"", "maildir", "no maildir"),
    ):
        given_input(data)
        refused(words, "-", kind=kind)


def refused(words: str, place: str | Path, **settings) -> None:
    with pytest.raises(tb.DataError) as caught:
        list(read_mail(place, **settings))
    assert words in str(caught.value), str(caught.value)
    assert "\n\nHint: " in str(caught.value)


def test_what_is_no_mail_is_refused(tmp_path: Path) -> None:
    def file(name: str, data: bytes = b"") -> Path:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    refused("there is no", tmp_path / "missing")
    file("inbox.eml", RAW[0])
    refused("did you mean 'inbox.eml'?", tmp_path / "inbx.eml")
    refused("is empty", file("empty.eml"))
    refused("is empty", file("empty.mbox"))
    refused("is not an mbox: it begins with 'Subject: x'", file("no.mbox", b"Subject: x\n\nhello"))
    refused("is not an mbox: it begins with '\ufffdPNG", file("png.mbox", b"\x89PNG\r\n\x1a\n" + bytes(999)))
    refused("is not an mbox", file("story.mbox", b"From here to there it is 10:30 by train\nand no header"))
    refused("is no message", file("story", b"From here to there\n it is far"))
    refused("is no message", file("picture.png", b"\x89PNG\r\n\x1a\n"))
    refused("is a folder", tmp_path, kind="mbox")
    refused("is a file", tmp_path / "story", kind="maildir")
    refused("is no Maildir", tmp_path, kind="maildir")
    refused("did you mean 'mbox'?", tmp_path, kind="mbx")
    (tmp_path / "e/cur").mkdir(parents=True)
    refused("the Maildir is empty", tmp_path / "e")
    refused("is no message", file("notes/todo.txt", b"milk, bread").parent)
    refused("both messages and folders", file("both/a.eml", RAW[0]).parent.parent)
    (tmp_path / "f/g").mkdir(parents=True)
    refused("there is no mail in", tmp_path / "f")
    refused("the folder is empty", tmp_path / "f/g")
    assert [raw for _, raw, _ in read_mail(tmp_path / "picture.png", kind="message")] == [b"\x89PNG\r\n\x1a\n"]
