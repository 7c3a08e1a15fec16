"""Texts that are put together from phrases: tickets of a help desk, and mail with its headers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ...base.arrays import Floats
from .dataset import Dataset
from .draws import Draws, rounded

_QUEUES: Mapping[str, Sequence[str]] = {
    "account": (
        "I cannot sign in any more.", "The link to reset my password has expired.", "Please change my e-mail address.",
        "My account seems to be locked.", "How do I delete my profile?", "The code never arrives on my telephone.",
        "I have two accounts and want one.", "My user name is misspelt.",
    ),
    "billing": (
        "I was charged twice this month.", "The invoice shows the wrong amount.", "Please send me a receipt.",
        "My card was declined.", "When will the refund arrive?", "The discount is missing on the bill.",
        "I want to pay by bank transfer.", "Why did the price go up?",
    ),
    "delivery": (
        "The parcel has not arrived.", "Tracking has said the same for a week.", "The box came open and wet.",
        "Please deliver it to my neighbour.", "The wrong size was in the box.", "Can I collect it at the shop?",
        "The courier never rang.", "Half of the order is missing.",
    ),
    "technical": (
        "The app crashes when I open it.", "The page stays white.", "It will not connect to the printer.",
        "The update stopped at ninety per cent.", "Everything is slow since yesterday.", "The screen goes black.",
        "Sound works, the picture does not.", "An error with a long number appears.",
    ),
}  # fmt: skip
_ANYWHERE = (
    "Please help.", "Thank you for your time.", "This is the second time I write.", "Can somebody call me?",
    "I am quite unhappy about this.", "It is rather urgent.", "I have been a customer for years.",
    "Nobody answered my last message.",
)  # fmt: skip
_SENTENCES = 3
_OWN, _COMMON = 0.5, 0.35  # shares of sentences of the queue itself, and of those that say nothing


def tickets(rows: int = 400, seed: int = 0) -> Dataset:
    """Tickets of a help desk in three sentences each, and the queue they belong to, of four.

    Half of the sentences are those of the queue, a third belong nowhere, and some belong to another queue, so that
    not every ticket is plain. truth["probability"] has the true probability of each queue, line by line, in the order
    of truth["classes"].

    >>> data = tb.datasets.tickets(2)
    >>> sorted(data), len(data["text"][0].split(". ")) <= 3, data.truth["classes"]
    (['customer', 'queue', 'text'], True, ['account', 'billing', 'delivery', 'technical'])
    """
    classes = list(_QUEUES)
    phrases = [*(phrase for of in _QUEUES.values() for phrase in of), *_ANYWHERE]
    shares = _phrase_shares()
    draws = Draws("tickets", seed, rows, 2 + _SENTENCES)
    code = draws.one_of([0.2, 0.3, 0.3, 0.2])
    business = np.array([[0.7, 0.3], [0.5, 0.5], [0.8, 0.2], [0.6, 0.4]])
    customer = draws.one_of(business[code])
    log_p = np.log([0.2, 0.3, 0.3, 0.2]) + np.log(business.T[customer])
    said = []
    for _ in range(_SENTENCES):
        phrase = draws.one_of(shares[code])
        log_p = log_p + np.log(shares.T[phrase])
        said.append(phrase)
    p = np.exp(log_p - log_p.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    columns: dict[str, list[Any]] = {
        "customer": [("private", "business")[c] for c in customer.tolist()],
        "text": [" ".join(phrases[i] for i in line) for line in np.array(said).T.tolist()],
        "queue": [classes[c] for c in code.tolist()],
    }
    truth = {
        "classes": classes,
        "probability": [rounded(line) for line in p],
        "log loss": round(float(-np.log(p[np.arange(rows), code]).mean()), 6),
        "accuracy": round(float((p.argmax(axis=1) == code).mean()), 6),
    }
    about = "Tickets of a help desk: which queue do they belong to? Invented."
    return Dataset(columns, name="tickets", target="queue", about=about, truth=truth)


def _phrase_shares() -> Floats:
    """P(phrase given queue): a line for each queue."""
    out = []
    for own in _QUEUES:
        others = (1 - _OWN - _COMMON) / (len(_QUEUES) - 1)
        line = [(_OWN if queue == own else others) / len(of) for queue, of in _QUEUES.items() for _ in of]
        out.append([*line, *[_COMMON / len(_ANYWHERE)] * len(_ANYWHERE)])
    return np.array(out)


_OWNER = "Ada Winter <ada.winter@example.org>"
_PEOPLE = ("Tom Reed", "Ines Ortega", "Paul Hahn", "Mira Novak", "June Park", "Olu Adeyemi", "Lea Martin", "Sam Cole")
# kind of mail: (label, senders, subjects, sentences); {n} is a number
_MAIL: Mapping[str, tuple[str, Sequence[str], Sequence[str], Sequence[str]]] = {
    "work": (
        "ham", [f"{p} <{p.split()[0].lower()}@office.example>" for p in _PEOPLE],
        ("Meeting on Thursday", "Minutes of last week", "Draft of the report", "Numbers for the third quarter"),
        ("Can we move the meeting to half past {n}?", "The minutes are in the usual folder.", "Please read page {n}.",
         "I have added your remarks.", "The printer on floor {n} works again.", "See you at the stand-up tomorrow."),
    ),
    "friends": (
        "ham", [f"{p} <{p.split()[1].lower()}@home.example>" for p in _PEOPLE],
        ("Sunday", "Re: Sunday", "Photos", "Lunch?", "The garden"),
        ("Shall we have lunch on Sunday?", "The children send their love.", "I still have your umbrella.",
         "We picked {n} kilos of plums.", "The train leaves at {n}.", "Bring a jumper, it gets cold at night."),
    ),
    "receipts": (
        "ham", ["Harbour Books <orders@books.example>", "City Rail <tickets@rail.example>"],
        ("Your order {n}", "Your ticket {n}", "We have sent your parcel"),
        ("Thank you for your order number {n}.", "The total is {n}.50 EUR.", "Your seat is {n}.",
         "You can return it within 30 days.", "An invoice is attached to your account."),
    ),
    "prizes": (
        "spam", ["Award Office <claim@prizes.invalid>", "Lottery Board <win@lottery-board.invalid>"],
        ("YOU HAVE WON ${n},000", "Final notice: claim your prize", "Congratulations winner {n}"),
        ("Your address has won the sum of ${n},000!", "Send us a fee of ${n} to claim your prize.",
         "ACT WITHIN {n} HOURS.", "This offer is 100% free and confidential.", "You are our lucky winner!!!"),
    ),
    "pills": (
        "spam", ["Discount Pharmacy <deals@tablets.invalid>", "Health Now <now@slim-fast-4u.invalid>"],
        ("{n}% OFF all meds", "Lose weight while you sleep", "No prescription needed"),
        ("Save {n}% on all tablets today!", "No prescription needed, shipped in plain boxes.",
         "Order now and lose weight.", "Doctors hate this cheap trick.",
         "Click http://tablets.invalid/{n} for your discount."),
    ),
    "phishing": (
        "spam", ["Your Bank <secure@bank-check.invalid>", "Mailbox Team <admin@quota.invalid>"],
        ("Your account is limited", "Urgent: verify your password", "Your mailbox is {n}% full"),
        ("We noticed a sign-in from another country.", "Verify your account at http://bank-check.invalid/{n} now.",
         "Your account will be closed in {n} hours.", "Enter your password and card number.", "This is urgent."),
    ),
}  # fmt: skip
_SHARES = (0.25, 0.2, 0.15, 0.15, 0.1, 0.15)  # of the kinds
_LINES = 4
_DRAWS = 5 + 2 * _LINES


def mail_of(rows: int, seed: int) -> Dataset:
    """Made messages, one line each: the file they would be, the message with its headers, the label."""
    kinds = list(_MAIL)
    draws = Draws("mails", seed, rows, _DRAWS)
    kind = draws.one_of(_SHARES)
    picks = [(draws.uniform() * 10_000).astype(np.int64) for _ in range(_DRAWS - 1)]
    columns: dict[str, list[Any]] = {"file": [], "message": [], "label": []}
    made_of = []
    for number, pick in enumerate(np.array(picks).T.tolist()):
        name = kinds[int(kind[number])]
        label = _MAIL[name][0]
        columns["file"].append(f"{label}/{number + 1:05}.eml")
        columns["message"].append(_message(name, pick, number))
        columns["label"].append(label)
        made_of.append(name)
    truth = {"kind": made_of, "spam": round(sum(_SHARES[3:]), 10)}
    about = "Mail with its headers, from friends, work and shops, and spam. Invented."
    return Dataset(columns, name="mails", target="label", about=about, truth=truth)


def _message(kind: str, pick: Sequence[int], number: int) -> str:
    """One message as text; every pick is a number from 0 to 9,999."""
    _, senders, subjects, sentences = _MAIL[kind]
    sender = senders[pick[0] % len(senders)]
    subject = subjects[pick[1] % len(subjects)].format(n=pick[2] % 90 + 10)
    lines = [
        sentences[which % len(sentences)].format(n=amount % 90 + 5)
        for which, amount in zip(pick[4::2], pick[5::2], strict=False)
    ]
    address = sender.partition("<")[2].rstrip(">")
    day, hour, minute = number % 28 + 1, pick[3] % 24, pick[3] % 60
    heads = {
        "Return-Path": f"<{address}>", "X-Invented": "yes, for tallybayes' examples", "From": sender, "To": _OWNER,
        "Subject": subject, "Date": f"{day} {_MONTHS[number // 28 % 12]} 2025 {hour:02}:{minute:02}:00 +0000",
        "Message-ID": f"<{number + 1}.{pick[2]}@{address.partition('@')[2]}>", "MIME-Version": "1.0",
        "Content-Type": "text/plain; charset=utf-8",
    }  # fmt: skip
    body = "\n".join(dict.fromkeys(lines))
    return "".join(f"{head}: {text}\n" for head, text in heads.items()) + f"\n{body}\n"


_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
