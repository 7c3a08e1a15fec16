"""Processor time of mail: learning, and an answer from a fresh process, in bulk and from a server, beside bogofilter.

    python benchmarks/mail_speed.py [--messages 10000] [--bogofilter PATH]

The Maildirs are made of invented words by Zipf's law, and a line of rare ones, as names and numbers are: 2 kB of text
on average, a third of it HTML with a link, headers as mail programs write them. 10,000 messages have 129,000 different
words. The first messages are learnt beforehand, so that compiling is not measured. Times are of the processor, user and
system, of the process that answers; best of `--rounds`. bogofilter takes part if it is installed, or named.
"""

from __future__ import annotations

import argparse
import itertools
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence

import numpy as np

from tallybayes.mail import Filter, read_mail

LINES = 28  # of twelve words, on average
RARE = 20  # words of a message that hardly any other has
COLD, BULK = 20, 1000  # messages


def message(rng: np.random.Generator, words: np.ndarray, label: str, number: int) -> str:
    """One invented message; spam has its own favourite words."""
    at = np.minimum(rng.zipf(1.3, 12 * int(rng.integers(4, 2 * LINES - 3))) - 1, len(words) - 1)
    body = "\n".join(" ".join(line) for line in words[at if label == "ham" else -1 - at].reshape(-1, 12))
    body += "\n" + " ".join(words[rng.integers(0, len(words), RARE)])
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
    words = np.array(["".join(rng.choice(letters, int(rng.integers(3, 11)))) for _ in range(150_000)])
    for label in ("spam", "ham"):
        (root / label / "cur").mkdir(parents=True)
        for number in range(count // 2):
            text = message(rng, words, label, number)
            (root / label / "cur" / f"{number}.host:2,S").write_text(text, "utf-8")


def processor_time(command: Sequence[str], given: pathlib.Path | None = None) -> float:
    """Seconds of the processor that a command takes."""
    with open(given or os.devnull, "rb") as stdin:
        process = subprocess.Popen(command, stdin=stdin, stdout=subprocess.DEVNULL)
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return used.ru_utime + used.ru_stime


def served(state: pathlib.Path, some: Sequence[bytes]) -> float:
    """Seconds of the processor for one message, of a server that answers some of them and ends."""
    place = str(state.with_name("socket"))
    command = [sys.executable, "-m", "tallybayes", "mail", "serve", str(state), place]
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    for raw in some:
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(place)
            client.sendall(b"CHECK SPAMC/1.5\r\nContent-length: %d\r\n\r\n%b" % (len(raw), raw))
            assert client.recv(1000).startswith(b"SPAMD/1.1 0 ")
    process.terminate()
    _, _, used = os.wait4(process.pid, 0)
    process.returncode = 0
    return (used.ru_utime + used.ru_stime) / len(some)


def in_bulk(state: pathlib.Path, some: Sequence[bytes]) -> tuple[float, float]:
    """Seconds of the processor for one message of many, and the share of ham that is called ham."""
    with Filter(state) as box:
        start = time.process_time()
        answers = [box.score(raw).answer for raw in some]
        return (time.process_time() - start) / len(some), answers.count("ham") / len(answers)


def bogofilter(program: str, folder: pathlib.Path, root: pathlib.Path, files: Sequence[pathlib.Path]) -> list[float]:
    """Seconds of the processor for one message: learning, from a fresh process, in bulk."""
    folder.mkdir(exist_ok=True)
    call = [program, "-C", "-d", str(folder)]
    every = {label: sorted(map(str, (root / label / "cur").iterdir())) for label in ("spam", "ham")}
    learn = sum(processor_time([*call, flag, "-B", *every[label]]) for flag, label in (("-s", "spam"), ("-n", "ham")))
    cold = min(processor_time(call, given) for given in files[:COLD])
    bulk = processor_time([*call, "-B", *map(str, files)])
    return [learn / sum(map(len, every.values())), cold, bulk / len(files)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--messages", type=int, default=10_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--bogofilter", default=shutil.which("bogofilter"), help="the program, if it is elsewhere")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        root, state = pathlib.Path(folder) / "mail", pathlib.Path(folder) / "state"
        maildirs(root, given.messages)
        with Filter(pathlib.Path(folder) / "warm") as box:
            box.train(itertools.islice(read_mail(root), 600))
        with Filter(state) as box:
            start = time.process_time()
            done = box.train(read_mail(root))
            learn = (time.process_time() - start) / done.new
            words = len(box.tally.columns["body"].sheets["words"].slot_names)
        files = sorted((root / "ham" / "cur").iterdir())[:BULK]
        some = [file.read_bytes() for file in files]
        score = [sys.executable, "-m", "tallybayes", "mail", "score", str(state)]
        cold = min(processor_time([*score, str(file)]) for file in files[:COLD])
        bulk, right = min(in_bulk(state, some) for _ in range(given.rounds))
        serve = min(served(state, some) for _ in range(given.rounds))
        theirs: list[float] = []
        if given.bogofilter is None:
            print("bogofilter is not installed (Debian: apt-get install bogofilter); figures of tallybayes alone")
        else:
            theirs = bogofilter(given.bogofilter, pathlib.Path(folder) / "bogo", root, files)
        print(
            f"{done.new:,} messages, {words:,} words; {right:.1%} of the ham is called ham; ms of the processor each:"
        )
        rows = [
            ("learnt", learn),
            ("answer, a fresh process", cold),
            ("answer, in bulk", bulk),
            ("answer, served", serve),
        ]
        for (name, ours), other in itertools.zip_longest(rows, theirs):
            beside = "" if other is None else f"   bogofilter {1000 * other:8.2f}   {ours / other:6.1f} times"
            print(f"  {name:<24} {1000 * ours:8.2f}{beside}")


if __name__ == "__main__":
    main()
