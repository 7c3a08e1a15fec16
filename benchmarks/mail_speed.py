"""Messages a minute: from a Maildir to a trained state file, and from a message to an answer.

    python benchmarks/mail_speed.py [--messages 10000]

The Maildir is made of Zipf-distributed invented words: 2 kB of text on average, a third of it HTML with a link, headers
as mail programs write them. Training includes finding, reading and cutting the files, and the transactions. The first
messages are learnt beforehand, so that compiling is not measured.
"""

from __future__ import annotations

import argparse
import itertools
import pathlib
import tempfile
import time

import numpy as np

from tallybayes.mail import Filter, read_mail

LINES = 28  # of twelve words, on average


def message(rng: np.random.Generator, words: np.ndarray, label: str, number: int) -> str:
    """One invented message; spam has its own favourite words."""
    at = np.minimum(rng.zipf(1.3, 12 * int(rng.integers(4, 2 * LINES - 3))) - 1, len(words) - 1)
    body = "\n".join(" ".join(line) for line in words[at if label == "ham" else -1 - at].reshape(-1, 12))
    page = number % 3 == 0
    if page:
        lines = body.replace("\n", "<br>\n")
        body = f'<html><body><p>{lines}<a href="http://s{number % 50}.example/x">more</a></body></html>'
    return (
        f"From: Person {number % 200} <p{number % 200}@host{number % 70}.example>\nTo: me@home.example\n"
        f"Date: Sat, 15 Nov 2025 {number % 24:02}:41:00 +0000\nSubject: {' '.join(words[at[:6]])}\n"
        f"Message-ID: <{number}.{label}@host.example>\n"
        f"Content-Type: text/{'html' if page else 'plain'}; charset=utf-8\n\n{body}\n"
    )


def maildirs(root: pathlib.Path, count: int) -> None:
    """Two Maildirs, spam and ham, with half of the messages each."""
    rng = np.random.default_rng(0)
    letters = np.array(list("etaoinshrdlucmfwypvbgkjqxz"))
    words = np.array(["".join(rng.choice(letters, int(rng.integers(2, 10)))) for _ in range(30_000)])
    for label in ("spam", "ham"):
        (root / label / "cur").mkdir(parents=True)
        for number in range(count // 2):
            text = message(rng, words, label, number)
            (root / label / "cur" / f"{number}.host:2,S").write_text(text, "utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10_000)
    count = parser.parse_args().messages
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder) / "mail"
        maildirs(root, count)
        with Filter(pathlib.Path(folder) / "warm") as box:
            box.train(itertools.islice(read_mail(root), 600))
        with Filter(pathlib.Path(folder) / "state") as box:
            start = time.perf_counter()
            done = box.train(read_mail(root))
            seconds = time.perf_counter() - start
            print(f"train: {done.new:,} messages in {seconds:.1f} s, {60 * done.new / seconds:,.0f} a minute")
            some = [raw for _, raw, _ in itertools.islice(read_mail(root / "ham"), 1000)]
            box.score(some[0])
            start = time.perf_counter()
            answers = [box.score(raw).answer for raw in some]
            seconds = time.perf_counter() - start
            print(f"score: {len(some):,} messages in {seconds:.1f} s, {60 * len(some) / seconds:,.0f} a minute")
            print(f"       {answers.count('ham') / len(answers):.1%} of the ham is called ham")


if __name__ == "__main__":
    main()
