"""`tallybayes mail serve`: spamd's protocol on a Unix socket, and clients that mean no good."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import stat
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import COMMAND, run
from letters import letter
from spamc import ask, request, served
from test_mail_damage import as_before

import tallybayes as tb
from tallybayes.mail.filter import Filter, FilterSettings
from tallybayes.mail.message import with_header
from tallybayes.mail.serve import Limits, MailServer
from tallybayes.mail.spamd import spam_score

SPAM, HAM = letter(50, "spam"), letter(50, "ham")


@pytest.fixture(scope="module")
def learnt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("served") / "state"
    with Filter(path) as box:
        box.train([(label, letter(i, label)) for i in range(12) for label in ("spam", "ham")])
    return path


@pytest.fixture
def state(learnt: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(learnt, tmp_path / "state"))


def test_every_command_answers(state: Path) -> None:
    with Filter(state) as box:
        spam, ham = box.score(SPAM), box.score(HAM)
    with served(state) as address:
        assert ask(address, b"PING SPAMC/1.2\r\n", close=False)[0] == b"SPAMD/1.5 0 PONG"
        assert ask(address, b"SKIP SPAMC/1.2\r\n\r\n")[0] == b""
        first, headers, body = ask(address, request("CHECK", SPAM, "User: ann"), close=False)
        assert (first, body) == (b"SPAMD/1.1 0 EX_OK", b"")
        score = spam_score(spam.probability, FilterSettings())
        assert score >= 5 and headers == {b"Spam": b"True ; %.1f / 5.0" % score}
        assert ask(address, b"CHECK SPAMC/1.5\n\n" + HAM)[1][b"Spam"].startswith(b"False ; -")  # up to the end
        first, headers, body = ask(address, request("PROCESS", HAM))
        assert body == with_header(HAM, str(ham)) and headers[b"Content-length"] == b"%d" % len(body)
        body = ask(address, request("HEADERS", SPAM))[2]
        assert body + SPAM.partition(b"\n\n")[2] == with_header(SPAM, str(spam))
        assert ask(address, request("SYMBOLS", HAM))[2] == b"TALLYBAYES_HAM\r\n"
        assert ask(address, request("REPORT", HAM))[2] == f"{ham}\r\n{ham.reason}\r\n".encode()
        assert ask(address, request("REPORT_IFSPAM", HAM))[2] == b"" != ask(address, request("REPORT_IFSPAM", SPAM))[2]
        packed = zlib.compress(SPAM)
        assert ask(address, request("CHECK", packed, "Compress: zlib"))[1][b"Spam"].startswith(b"True")


WRONG = {
    "no request": (b"GET / HTTP/1.1\r\n\r\n", 76),
    "nothing": (b"", 76),
    "an unknown command": (request("DANCE", HAM), 76),
    "no end of the headers": (b"CHECK SPAMC/1.5\r\n" + b"X: y\r\n" * 5000, 76),
    "a header without a colon": (b"CHECK SPAMC/1.5\r\nX\r\n\r\n", 76),
    "a length that is none": (b"CHECK SPAMC/1.5\r\nContent-length: -5\r\n\r\nxxxxx", 76),
    "less than was said": (request("CHECK", HAM, length=len(HAM) + 1), 76),
    "more than was said": (request("CHECK", HAM, length=3), 76),
    "too much": (request("CHECK", b"x" * 5001), 98),
    "too much said": (request("CHECK", b"", length=10**15), 98),
    "too much, without a length": (b"CHECK SPAMC/1.5\r\n\r\n" + b"x" * 300_000, 98),
    "a bomb": (request("CHECK", zlib.compress(b"x" * 10**7), "Compress: zlib"), 98),
    "another packing": (request("CHECK", HAM, "Compress: lzma"), 76),
    "not packed": (request("CHECK", HAM, "Compress: zlib"), 65),
    "half packed": (request("CHECK", zlib.compress(HAM)[:-9], "Compress: zlib"), 65),
    "learning": (request("TELL", HAM, "Message-class: ham", "Set: local"), 77),
}


def test_wrong_requests_are_refused_by_a_code(state: Path) -> None:
    wrong: list[BaseException] = []
    with served(state, limits=Limits(5000), wrong=wrong) as address:
        for name, (sent, code) in WRONG.items():
            first = ask(address, sent)[0]
            assert re.match(rb"SPAMD/1\.1 %d EX_[A-Z]+: [ -~]+$" % code, first), (name, first)
        assert ask(address, request("CHECK", SPAM))[0] == b"SPAMD/1.1 0 EX_OK"
    assert wrong == []


def test_clients_may_learn_and_forget_if_they_are_let(state: Path) -> None:
    with Filter(state) as box, served(state, tell=True) as address:
        before, odds = box.digest, ask(address, request("CHECK", SPAM))[1]
        learn = request("TELL", SPAM, "Message-class: ham", "Set: local")
        for changed in ({b"DidSet": b"local"}, {}):
            assert ask(address, learn)[:2] == (b"SPAMD/1.1 0 EX_OK", changed)
        assert box.learnt == {"ham": 13, "spam": 12}
        assert ask(address, request("CHECK", SPAM))[1] != odds  # and it is noticed at the next message
        for changed in ({b"DidRemove": b"local"}, {}):
            assert ask(address, request("TELL", SPAM, "Remove: local, remote"))[:2] == (b"SPAMD/1.1 0 EX_OK", changed)
        assert box.digest == before and ask(address, request("CHECK", SPAM))[1] == odds
        for odd in (["Set: local"], ["Set: local", "Message-class: Spam"], ["Set: local", "Remove: local"], []):
            assert ask(address, request("TELL", SPAM, *odd))[0].startswith(b"SPAMD/1.1 64 ")


def test_a_state_that_others_change_replace_or_break_is_noticed(state: Path, tmp_path: Path) -> None:
    wrong: list[BaseException] = []
    with served(state, wrong=wrong) as address:
        first = ask(address, request("CHECK", SPAM))[1]
        with Filter(state) as box:
            box.train([("ham", letter(i, "spam")) for i in range(30, 60)])
        second = ask(address, request("CHECK", SPAM))[1]
        assert (first[b"Spam"][:4], second[b"Spam"][:5]) == (b"True", b"False")
        with Filter(tmp_path / "other") as other:
            other.train([(label, letter(i, label)) for i in range(12) for label in ("spam", "ham")])
        os.replace(tmp_path / "other", state)
        assert ask(address, request("CHECK", SPAM))[1] == first
        whole = state.read_bytes()
        state.with_name("x").write_bytes(b"broken" * 1000)
        os.replace(state.with_name("x"), state)
        assert ask(address, request("CHECK", SPAM))[0].startswith(b"SPAMD/1.1 75 EX_TEMPFAIL")
        assert "is not a state file" in str(wrong[-1])
        state.unlink()
        assert ask(address, request("CHECK", SPAM))[0].startswith(b"SPAMD/1.1 75 EX_TEMPFAIL")
        state.write_bytes(whole)
        assert ask(address, request("CHECK", SPAM))[1] == first
        as_before(state, 2)  # of an older release: everything is read
        assert ask(address, request("CHECK", SPAM))[1] == first


def client(address: str, sent: bytes) -> socket.socket:
    """One who sends this and waits."""
    out = socket.socket(socket.AF_UNIX)
    out.settimeout(20)
    out.connect(address)
    out.sendall(sent)
    return out


def test_slow_silent_and_vanishing_clients_do_not_stop_others(state: Path) -> None:
    with served(state, limits=Limits(seconds=1.0)) as address:
        slow = [client(address, sent) for sent in (b"", b"CH", b"CHECK SPAMC/1.5\r\n", request("CHECK", SPAM)[:100])]
        client(address, request("PROCESS", SPAM)).close()  # does not wait for its answer
        assert ask(address, request("CHECK", SPAM))[0] == b"SPAMD/1.1 0 EX_OK"
        for each in slow:
            assert each.recv(100).startswith(b"SPAMD/1.1 79 EX_TIMEOUT")
            each.close()


def test_too_many_clients_are_told_to_come_again(state: Path) -> None:
    with served(state, limits=Limits(clients=1)) as address:
        silent = client(address, b"")
        assert ask(address, request("CHECK", SPAM))[0] == b"SPAMD/1.1 75 EX_TEMPFAIL: too many clients"
        silent.close()
        until = time.monotonic() + 20
        while (first := ask(address, request("CHECK", SPAM))[0]) != b"SPAMD/1.1 0 EX_OK":
            assert first.startswith(b"SPAMD/1.1 75") and time.monotonic() < until  # until it is noticed


def test_readers_at_once_and_a_writer_among_them(state: Path) -> None:
    with served(state, tell=True) as address, ThreadPoolExecutor(6) as pool:
        sent = [request("CHECK", letter(i, ("spam", "ham")[i % 2])) for i in range(60)]
        sent[20:20] = [request("TELL", letter(70, "ham"), "Message-class: ham", "Set: local")]
        answers = list(pool.map(lambda one: ask(address, one), sent))
    assert {first for first, *_ in answers} == {b"SPAMD/1.1 0 EX_OK"}
    assert answers.pop(20)[1] == {b"DidSet": b"local"}
    assert [headers[b"Spam"].split(b" ;")[0] for _, headers, _ in answers] == [b"True", b"False"] * 30


def test_the_socket_is_its_owners_and_a_stale_one_is_taken_over(state: Path) -> None:
    place = state.with_name("socket")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(place))
    assert place.is_socket()  # nobody listens
    with served(state) as address:
        assert stat.S_IMODE(place.stat().st_mode) == 0o600
        with pytest.raises(tb.SettingsError, match="is being served already"):
            MailServer(str(state), address)
        assert ask(address, request("CHECK", SPAM))[0] == b"SPAMD/1.1 0 EX_OK"
    assert not place.exists()
    place.write_text("a letter")
    with pytest.raises(tb.SettingsError, match="is no socket"):
        MailServer(str(state), str(place))
    assert place.read_text() == "a letter"
    place.unlink()
    with served(state, mode=0o660):
        assert stat.S_IMODE(place.stat().st_mode) == 0o660
        place.unlink()
        place.write_text("another's")  # is left alone
    assert place.read_text() == "another's"


def test_a_server_that_cannot_begin_says_why(state: Path, tmp_path: Path) -> None:
    for arguments, words in (
        ([tmp_path / "nothing", tmp_path / "s"], b"there is no file"),
        ([state, tmp_path / "no" / "such" / "folder"], b"cannot be made: No such file"),
        ([state, tmp_path / ("x" * 200)], b"cannot be made: AF_UNIX path too long"),
        ([state, tmp_path / "s", "--mode", "999"], b"--mode 999"),
        ([state, tmp_path / "s", "--timeout", "0"], b"--timeout"),
        ([state], b"SOCKET"),
    ):
        done = run("mail", "serve", *arguments)
        assert done.returncode == 3 and words in done.stderr, done.stderr
        assert not (tmp_path / "s").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_cleanly(state: Path, number: int) -> None:
    place = state.with_name("socket")
    code = [sys.executable, COMMAND, "mail", "serve", str(state), str(place), "--allow-tell"]
    with subprocess.Popen(code, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline().startswith(b"serving ")
            assert ask(str(place), request("CHECK", SPAM))[0] == b"SPAMD/1.1 0 EX_OK"
            process.send_signal(number)
            out, wrong = process.communicate(timeout=30)
        finally:
            process.kill()
    assert (process.returncode, out, wrong) == (0, b"", b"")
    assert not place.exists()


def test_scores_agree_with_the_answers_whatever_the_settings() -> None:
    for spam in (0.2, 0.5, 0.9, 0.999, 1.0):
        settings = FilterSettings(spam=spam, ham=0.0)
        chances = [0.0, 1e-300, 0.1, spam - 1e-9, spam, min(spam + 1e-9, 1.0), 1 - 1e-16, 1.0]
        scores = [spam_score(p, settings) for p in sorted(chances)]
        assert scores == sorted(scores)
        assert [s >= 5 for s in scores] == [p >= spam for p in sorted(chances)]
    for wrong in ({"bytes": 0}, {"seconds": 0}, {"seconds": float("nan")}, {"clients": 0}):
        with pytest.raises(tb.SettingsError, match="Hint: "):
            Limits(**wrong)
