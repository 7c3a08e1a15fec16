"""Small mails for the tests of the filter: each its own message, with words that tell its label."""

from __future__ import annotations


def letter(i: int, label: str) -> bytes:
    words = {"ham": "lunch garden minutes", "spam": "pills winner casino"}[label]
    return (
        f"From: {label}{i % 3}@{label}.example\nSubject: {words[:6]} {i}\nMessage-ID: <{i}@{label}>\n"
        f"Date: Mon, 1 Jan 2024 1{i % 10}:00:00 +0000\n\n{words} number{i} and {'so ' * (i % 4)} on\n"
    ).encode()
