"""Which message is which: a Message-ID is the sender's word, and another's can be written by anybody."""

from __future__ import annotations

import quopri
from pathlib import Path

import pytest

import tallybayes as tb
from tallybayes.mail.filter import Filter
from tallybayes.mail.learnt import Learnt
from tallybayes.mail.message import read_message

LETTER = (
    b"From: Ann <ann@example.org>\nTo: me@home.example\nSubject: Lunch on Friday\nMessage-ID: <1@example.org>\n"
    b"Date: Mon, 1 Jan 2024 10:00:00 +0000\n\nShall we meet at noon?\nFrom there it is not far.\n"
)


def ham(i: int) -> bytes:
    return LETTER.replace(b"<1@", f"<{i}@".encode()).replace(b"noon", f"noon number {i}".encode())


def spam(i: int) -> bytes:
    """Spam that bears the Message-ID of a letter, and all that can be known of it but its text."""
    return ham(i).split(b"\n\n")[0] + b"\n\nCheap pills, click here.\n"


def as_an_older_release_knew(box: Filter, raw: bytes, label: str) -> None:
    """The message in the state under its Message-ID alone."""
    read = read_message(raw)
    with box.store.change() as change:
        change.learn(Learnt(read.header_id, label, box._with_facts(read), read.sender, read.fingerprint))


@pytest.mark.parametrize("older", [False, True])
def test_spam_with_the_message_id_of_a_letter_leaves_the_letter_learnt(tmp_path: Path, older: bool) -> None:
    with Filter(tmp_path / "state") as box:
        for i in range(15):
            if older:
                as_an_older_release_knew(box, ham(i), "ham")
            else:
                box.learn(ham(i), "ham")
        assert box.train(("spam", spam(i)) for i in range(15)).new == 15
        assert box.learnt == {"ham": 15, "spam": 15}
        assert {box.unlearn(spam(i)) for i in range(15)} == {"spam"}
        with pytest.raises(tb.CannotForget, match="has not been learnt"):
            box.unlearn(spam(0))
        assert box.learnt == {"ham": 15, "spam": 0}


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"From: Ann <ann@example.org>", b"From: Ben <ben@example.org>"),
        (b"Subject: Lunch on Friday", b"Subject: Lunch on Monday"),
        (b"1 Jan 2024 10:00", b"1 Jan 2024 10:01"),
        (b"noon", b"one"),
        (b"<1@example.org>", b"<2@example.org>"),
    ],
)
def test_what_says_something_else_is_another_message(before: bytes, after: bytes) -> None:
    assert before in LETTER
    assert read_message(LETTER.replace(before, after)).id != read_message(LETTER).id


def ways() -> dict[str, bytes]:
    """The letter as it may look after a journey."""
    head, body = LETTER.split(b"\n\n", 1)
    encoded = (
        b"\nMIME-Version: 1.0\nContent-Type: text/plain; charset=utf-8\nContent-Transfer-Encoding: quoted-printable"
    )
    return {
        "carried": b"Received: from a by b; Tue, 2 Jan 2024\nReturn-Path: <ann@example.org>\n" + LETTER,
        "read": head + b"\nStatus: RO\nX-Status: A\nX-UID: 77\nX-Keywords: lunch\n\n" + body,
        "scored": b"X-Tallybayes: ham, probability=0.0100\n" + LETTER,
        "by Windows": LETTER.replace(b"\n", b"\r\n"),
        "folded": LETTER.replace(b"Lunch on Friday", b"Lunch on\n Friday"),
        "in a mailbox": b"From ann@example.org Mon Jan  1 10:00:00 2024\n"
        + LETTER.replace(b"\nFrom t", b"\n>From t")
        + b"\n",
        "encoded": head
        + encoded
        + b"\n\n"
        + quopri.encodestring(body.replace(b"From", b"=46rom")).replace(b"=3D46", b"=46"),
    }


@pytest.mark.parametrize("way", ways())
def test_a_message_is_known_again_after_its_journey(tmp_path: Path, way: str) -> None:
    came = ways()[way]
    assert came != LETTER
    with Filter(tmp_path / "state") as box:
        empty = box.digest
        box.learn(LETTER, "ham")
        assert not box.learn(came, "ham")
        assert box.learn(came, "spam") and box.learnt == {"ham": 0, "spam": 1}
        box.unlearn(LETTER)
        assert box.digest == empty


def test_what_an_older_release_learnt_is_known_moved_and_forgotten(tmp_path: Path) -> None:
    with Filter(tmp_path / "state") as box:
        empty = box.digest
        as_an_older_release_knew(box, LETTER, "ham")
        assert not box.learn(ways()["carried"], "ham")
        assert box._with_facts(read_message(LETTER))["seen_before"] is False  # a message is no copy of itself
        assert box.learn(LETTER, "spam") and box.learnt == {"ham": 0, "spam": 1}
        assert [m.id for m in box.store.messages()] == [read_message(LETTER).id]
        as_an_older_release_knew(box, ham(2), "ham")
        assert box.unlearn(ham(2)) == "ham" and box.unlearn(LETTER) == "spam"
        assert box.digest == empty


def test_no_message_id_can_be_made_to_look_like_another_messages_id() -> None:
    other = read_message(b"Subject: no id\n\nx").id
    forged = read_message(LETTER.replace(b"<1@example.org>", other.encode()))
    assert forged.id != other and forged.id.startswith(other)
    assert forged.header_id == other
