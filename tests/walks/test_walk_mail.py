"""A mail administrator: trains on a folder, filters by a pipe, corrects, forgets, and loses no message."""

import random

import pytest
from command_line import run
from letters import letter
from spamc import ask, request, served

import tallybayes as tb


def test_the_walk_of_a_mail_administrator(tmp_path):
    state = tmp_path / "mail.state"
    inbox = tb.example("inbox", to=tmp_path)
    trained = run("mail", "train", state, inbox)
    assert trained.returncode == 0
    assert trained.out == "60 learnt, 0 moved to the other class, 0 known already; in all 34 ham, 26 spam\n"
    again = run("mail", "train", state, inbox)
    assert "0 learnt, 0 moved to the other class, 60 known already" in again.out

    # answers by exit code, as procmail wants them
    spam, ham = (sorted((inbox / label).iterdir()) for label in ("spam", "ham"))
    found = [run("mail", "score", state, path).returncode for path in [*spam[:2], *ham[:2]]]
    assert found == [0, 0, 1, 1]

    # the filter adds one header and changes no other byte
    raw = spam[0].read_bytes()
    passed = run("mail", "filter", state, given=raw)
    assert passed.returncode == 0
    header, rest = passed.stdout.split(b"\n", 1)
    assert header.startswith(b"X-Tallybayes: spam, probability=")
    assert rest == raw

    # a whole folder at once, a line for each
    lines = run("mail", "score", state, "--each", inbox).out.splitlines()
    assert len(lines) == 60
    assert [line.partition(",")[0] for line in lines if f"{spam[0].name}" in line] == ["spam"]

    # a server answers as the commands do, learns if it may, and what it has learnt is in the file
    with served(state, tell=True) as address:
        assert ask(address, b"PING SPAMC/1.5\r\n\r\n")[0] == b"SPAMD/1.5 0 PONG"
        first, headers, body = ask(address, request("PROCESS", raw))
        assert first == b"SPAMD/1.1 0 EX_OK"
        assert headers[b"Spam"].startswith(b"True ; ")
        assert body == passed.stdout
        new = letter(7, "spam")
        told = ask(address, request("TELL", new, "Message-class: spam", "Set: local"))
        assert told[1] == {b"DidSet": b"local"}
        assert "in all 34 ham, 27 spam" in run("mail", "train", state, inbox).out
        assert ask(address, request("TELL", new, "Remove: local"))[1] == {b"DidRemove": b"local"}
        assert ask(address, b"NONSENSE\r\n\r\n")[0].startswith(b"SPAMD/1.1 76 ")
    assert run("mail", "filter", state, given=raw) == passed

    # a mistake is corrected, then forgotten: to the last bit as before
    before = run("mail", "score", state, given=letter(1, "spam"))
    assert run("mail", "learn", state, "--ham", given=letter(1, "spam")).returncode == 0
    assert run("mail", "learn", state, "--spam", given=letter(1, "spam")).returncode == 0
    assert run("mail", "unlearn", state, given=letter(1, "spam")).returncode == 0
    assert run("mail", "score", state, given=letter(1, "spam")) == before
    twice = run("mail", "unlearn", state, given=letter(1, "spam"))
    assert twice.returncode not in (0, 1, 2)
    assert twice.err

    # broken mail comes out of the filter as it went in
    draw = random.Random(4)
    for broken in (b"\x00\xff" * 40, b"Subject: =?utf-8?b?!!!?=\n\n", bytes(draw.randrange(256) for _ in range(500))):
        out = run("mail", "filter", state, given=broken)
        assert out.stdout.endswith(broken)
    lost = run("mail", "filter", tmp_path / "mial.state", given=raw)
    assert lost.stdout.endswith(raw)


@pytest.mark.parametrize("command", ["score", "unlearn"])
def test_a_state_that_is_not_there_is_told(tmp_path, command):
    done = run("mail", command, tmp_path / "none.state", given=letter(2, "ham"))
    assert done.returncode not in (0, 1)
    assert "none.state" in done.err
