"""The mail filter: its state under kill -9, two processes and a full disk, and its command line under hostile mail."""

from __future__ import annotations

import gc
import itertools
import os
import random
import re
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from command_line import COMMAND, run, start

import tallybayes as tb
from tallybayes.mail import store as store_module
from tallybayes.mail.filter import Filter, FilterSettings
from tallybayes.mail.learnt import Learnt
from tallybayes.mail.message import mail_schema, read_message, with_header
from tallybayes.mail.parts import MailSettings
from tallybayes.mail.state import StateError
from tallybayes.mail.store import Store, rows_tally
from tallybayes.mail.sums import damage

ROOT = Path(__file__).resolve().parents[2]
FULL = os.environ.get("TALLYBAYES_TESTS") == "all"
KILLS = 200 if FULL else 10
WORDS = {
    "spam": ["winner", "prize", "cheap", "pills", "click", "offer", "million", "dollars", "urgent", "casino"],
    "ham": ["meeting", "minutes", "garden", "lunch", "report", "thanks", "train", "draft", "chapter", "piano"],
}


def message(number: int, label: str = "ham", *, sender: str = "", extra: str = "") -> bytes:
    """An invented message, the same for the same number and label."""
    rng = random.Random(f"{number} {label}")
    words = [*rng.choices(WORDS[label], k=20), *rng.choices(["the", "and", "you", "of"], k=10), f"unique{number}x"]
    sender = sender or f"{label}{number % 7}@{label}.example"
    return (
        f"From: Someone <{sender}>\nTo: me@home.example\nSubject: {' '.join(words[:3])}\n"
        f"Message-ID: <{number}@{label}.example>\nDate: Mon, 1 Jan 2024 1{number % 10}:00:00 +0000\n\n"
        f"{' '.join(words)} {extra}\n"
    ).encode()


def labelled(n: int, start: int = 0) -> list[tuple[str, bytes]]:
    return [(label, message(i, label)) for i in range(start, start + n) for label in ("spam", "ham")]


def consistent(box: Filter | Store) -> None:
    """The counts are those of the messages recorded, to the last bit."""
    store = box.store if isinstance(box, Filter) else box
    recorded = rows_tally(store.schema, list(store.messages()))
    assert store.tally() == recorded
    assert store.tally().digest == recorded.digest
    assert damage(store._db, store.format) is None
    for table, (rows, from_rows) in derived(store._db).items():
        assert sorted(rows) == sorted(from_rows), table


def derived(db: sqlite3.Connection) -> dict[str, tuple[list, list]]:
    """What is kept beside the counts and messages, and the same worked out from them."""
    sheets = "SELECT number FROM sheets WHERE sheet IN ('words', 'values')"
    return {
        name: (db.execute(kept).fetchall(), db.execute(made).fetchall())
        for name, kept, made in (
            (
                "totals",
                "SELECT -sheet, class, a0, a1 FROM counts WHERE sheet < 0 AND slot = ''",
                f"SELECT sheet, class, sum(a0), sum(a1) FROM counts WHERE sheet IN ({sheets}) GROUP BY sheet, class",
            ),
            (
                "slots",
                "SELECT -sheet, a0 FROM counts WHERE sheet < 0 AND slot = 'slots'",
                f"SELECT sheet, count(DISTINCT slot) FROM counts WHERE sheet IN ({sheets}) GROUP BY sheet",
            ),
            (
                "senders and fingerprints",
                "SELECT slot, class, a0 FROM counts WHERE sheet = 0",
                "SELECT 'sender ' || sender, class, count(*) FROM messages WHERE sender <> '' GROUP BY sender, class"
                " UNION ALL SELECT 'fingerprint ' || fingerprint, class, count(*) FROM messages WHERE fingerprint <> ''"
                " GROUP BY fingerprint, class",
            ),
        )
    }


@pytest.fixture
def box(tmp_path):
    with Filter(tmp_path / "state") as opened:
        yield opened


@pytest.fixture
def trained(tmp_path):
    """The path of a state that knows 20 messages of each class."""
    with Filter(tmp_path / "trained") as opened:
        opened.train(labelled(20))
    return tmp_path / "trained"


# ---- learning, unlearning, relearning


def test_the_state_is_the_count_of_the_rows_learnt(box):
    box.train(labelled(15))
    rows = [{**m.row, "class": m.label} for m in box.store.messages()]
    assert len(rows) == 30
    assert box.tally == tb.count(rows, mail_schema())
    assert box.tally.digest == tb.count(rows, mail_schema()).digest


def test_unlearning_restores_the_digest(box):
    digests = [box.digest]
    for label, raw in labelled(6):
        assert box.learn(raw, label)
        digests.append(box.digest)
    assert len(set(digests)) == len(digests)
    for (label, raw), digest in zip(reversed(labelled(6)), reversed(digests[:-1]), strict=True):
        assert box.unlearn(raw) == label
        assert box.digest == digest
    assert box.tally == tb.Tally.zero(mail_schema())


def test_learning_twice_changes_nothing(box):
    assert box.learn(message(1), "ham")
    digest = box.digest
    assert not box.learn(message(1), "ham")
    assert not box.learn(b"X-Tallybayes: ham, probability=0.0100\n" + message(1), "ham")
    assert box.digest == digest


def test_relearning_first_forgets_the_opposite(tmp_path, box):
    for label, raw in labelled(3):
        box.learn(raw, label)
    before = box.digest
    assert box.learn(message(7), "spam")
    assert box.learn(message(7), "ham")
    with Filter(tmp_path / "other") as other:
        for label, raw in [*labelled(3), ("ham", message(7))]:
            other.learn(raw, label)
        assert other.digest == box.digest
    assert box.learnt == {"ham": 4, "spam": 3}
    box.unlearn(message(7))
    assert box.digest == before


def test_unlearning_subtracts_what_was_added_though_the_facts_have_changed(box):
    empty = box.digest
    first, second = message(1, sender="ann@x.example"), message(2, sender="ann@x.example")
    box.learn(first, "ham")
    one = box.digest
    box.learn(second, "ham")
    facts = [box.store.find(read_message(raw).id).row["sender_known"] for raw in (first, second)]
    assert facts == [False, True]
    box.unlearn(second)
    assert box.digest == one
    box.learn(second, "ham")
    box.unlearn(first)  # was learnt while Ann was unknown; Ann is known now
    consistent(box)
    box.unlearn(second)
    assert box.digest == empty


def test_senders_and_near_copies_are_known_by_what_else_was_learnt(box):
    copy = message(1, "spam").replace(b"<1@spam", b"<77@spam")
    box.learn(message(1, "spam"), "spam")
    row = box._with_facts(read_message(copy))
    assert row["seen_before"] is True
    assert row["sender_known"] is False  # known senders are those of ham
    assert row == read_message(copy, sender_known=False, seen_before=True).row
    own = box._with_facts(read_message(message(1, "spam")))
    assert own["seen_before"] is False  # a message is no copy of itself


def test_training_in_batches_is_learning_one_by_one(tmp_path, box, monkeypatch):
    several = [
        *labelled(8),
        ("ham", message(3, "spam")),  # another label
        ("spam", message(3, "spam")),  # and back
        *labelled(2),  # known
        ("spam", message(20, "spam").replace(b"<20@", b"<21@")),
        ("spam", message(20, "spam")),
    ]
    monkeypatch.setattr("tallybayes.mail.filter.BATCH_MESSAGES", 5)
    done = box.train(several)
    assert (done.new, done.moved, done.known) == (18, 2, 4)
    with Filter(tmp_path / "single") as single:
        for label, raw in several:
            single.learn(raw, label)
        assert single.digest == box.digest
    consistent(box)
    with Filter(tmp_path / "whole") as whole:
        monkeypatch.setattr("tallybayes.mail.filter.BATCH_MESSAGES", 1000)
        whole.train(several)
        assert whole.digest == box.digest


def test_what_is_forgotten_is_not_in_the_file(tmp_path):
    path = tmp_path / "state"
    with Filter(path) as box:
        box.train(labelled(5))
        box.learn(message(9, extra="zanzibarese"), "spam")
        assert b"zanzibarese" in path.read_bytes()
        box.unlearn(message(9, extra="zanzibarese"))
    assert b"zanzibarese" not in path.read_bytes()
    assert b"unique9x" not in path.read_bytes()
    assert [p.name for p in tmp_path.iterdir()] == ["state"]  # one file


@pytest.mark.parametrize("label", ["Spam", "junk", "", None, "unsure"])
def test_other_labels_are_refused(box, label):
    before = box.digest
    with pytest.raises(tb.DataError, match="the labels are 'spam' and 'ham'"):
        box.learn(message(1), label)
    with pytest.raises(tb.DataError, match="folder/x"):
        box.train([("ham", message(1)), (label, message(2), "folder/x")])
    assert box.digest == before


def test_what_is_no_message_no_setting_and_no_open_file_is_refused(tmp_path, box):
    for wrong in ([message(1)], [(message(1),)], {"spam": [message(1)]}):
        with pytest.raises(tb.DataError, match="Hint: "):
            box.train(wrong)
    for wrong in ({"spam": "0.9"}, {"spam": 0.1, "ham": 0.2}, {"minimum": 0}, {"minimum": 2.5}, {"ham": float("nan")}):
        with pytest.raises(tb.SettingsError, match="Hint: "):
            FilterSettings(**wrong)
    for wrong in ({"owner": None}, {"max_parts": 0}, {"max_bytes": 1.5}):
        with pytest.raises(tb.SettingsError, match="Hint: "):
            MailSettings(**wrong)
    with pytest.raises(StateError, match="is a folder"):
        Filter(tmp_path)
    gone = Filter(tmp_path / "gone")
    gone.close()
    with pytest.raises(StateError, match="open it again"):
        gone.score(message(1))


def test_a_message_never_learnt_cannot_be_unlearnt(box):
    box.train(labelled(3))
    before = box.digest
    with pytest.raises(tb.CannotForget, match="has not been learnt"):
        box.unlearn(message(50))
    assert box.digest == before


def test_counts_are_carried_before_they_overflow(tmp_path, monkeypatch):
    schema = tb.Schema([tb.Column("n", "number"), tb.Column("words", "bag")], target="class")
    rows = [{"n": x, "words": [f"w{i % 3}", "a\0b"]} for i, x in enumerate([1e-300, 1e300, -7.5, None, 0.1, 3.0, 2e10])]
    monkeypatch.setattr(store_module, "CARRY_EVERY", 3)
    with Store(tmp_path / "s", schema) as store:
        empty = store.tally().digest
        for i, row in enumerate(rows):
            with store.change() as change:
                change.learn(Learnt(f"m{i}", "ham" if i % 2 else "spam", row))
            consistent(store)
        assert int(store._meta("additions")) <= 3
        for i in range(len(rows)):
            with store.change() as change:
                assert change.forget(f"m{i}").label == ("ham" if i % 2 else "spam")
            consistent(store)
        assert store.tally().digest == empty
        assert store._db.execute("SELECT count(*) FROM counts").fetchone() == (0,)


def test_an_overflow_is_an_error_and_no_wrong_number(tmp_path):
    schema = tb.Schema([tb.Column("w", "bag")], target="class")
    with Store(tmp_path / "s", schema) as store:
        with store.change() as change:
            change.learn(Learnt("a", "ham", {"w": ["x"]}))
        store._db.execute("UPDATE counts SET a0 = 9223372036854775807 WHERE slot = 'x'")
        with pytest.raises(StateError), store.change() as change:
            change.learn(Learnt("b", "ham", {"w": ["x"]}))
        assert store.find("b") is None


# ---- answers


def test_before_there_is_evidence_it_says_so(box):
    assert box.score(message(1)).answer == "unsure"
    box.train([("ham", message(i)) for i in range(30)])
    box.train([("spam", message(i, "spam")) for i in range(9)])
    verdict = box.score(message(50, "spam"))
    assert (verdict.answer, verdict.probability, verdict.explanation) == ("unsure", 0.5, None)
    assert verdict.reason == "not enough evidence yet: 30 ham and 9 spam learnt, 10 of each needed"
    box.learn(message(9, "spam"), "spam")
    assert box.score(message(50, "spam")).answer == "spam"


def test_answers_by_two_thresholds(trained):
    with Filter(trained) as box:
        spam, ham = box.score(message(90, "spam")), box.score(message(90, "ham"))
        assert (spam.answer, ham.answer) == ("spam", "ham")
        assert spam.probability >= 0.9 and ham.probability <= 0.1
        none = box.score(b"")
    for low, high, answer in [(0.0, 1.0, "unsure"), (none.probability, 1.0, "ham"), (0.0, none.probability, "spam")]:
        with Filter(trained, FilterSettings(spam=high, ham=low)) as other:
            assert other.score(b"").answer == answer
    with pytest.raises(tb.SettingsError):
        FilterSettings(spam=0.1, ham=0.9)


def test_the_reasons_add_up_to_the_answer(trained):
    with Filter(trained) as box:
        verdict = box.score(message(90, "spam"))
        explained = verdict.explanation
        p = dict(zip(explained.classes, explained.probabilities, strict=True))["spam"]
        assert p == pytest.approx(verdict.probability, abs=1e-9)
        shown, every = verdict.reasons(5), verdict.reasons(10_000)
    assert len(shown) == 6 and shown[-1][0] == "everything else"
    assert sum(odds for *_, odds in shown) == pytest.approx(sum(odds for *_, odds in every))


def test_scoring_changes_nothing_and_sees_what_others_learn(trained, monkeypatch):
    with Filter(trained) as box, Filter(trained) as other:
        before = box.digest
        first = box.score(message(90, "spam"))
        assert box.score(message(90, "spam")) == first and box.digest == before
        assert box.model is box.model
        asked = []
        count = box.store.learnt
        monkeypatch.setattr(box.store, "learnt", lambda: asked.append(1) or count())
        assert box.score(message(90, "spam")) == first and not asked  # what has not changed is not counted again
        other.train(labelled(10, start=100))
        assert box.model.tally.rows == 60
        assert box.learnt == other.learnt == {"ham": 30, "spam": 30}
        box.unlearn(message(100))
        assert box.learnt == other.learnt == {"ham": 29, "spam": 30}


def test_settings_stay_with_the_file(tmp_path):
    settings = FilterSettings(spam=0.8, minimum=3)
    with Filter(tmp_path / "state", settings):
        pass
    with Filter(tmp_path / "state") as again:
        assert again.settings == settings


# ---- kill -9, two processes, a full disk


def operation(number: int) -> tuple[str, bytes, str]:
    """The operations of the killed process, in order: learn three, move one to the other class, forget one."""
    group, step = divmod(number, 5)
    label = ("spam", "ham")[group % 2]
    if step < 3:
        return "learn", message(3 * group + step, label), label
    if step == 3:
        return "learn", message(3 * group, label), ("ham", "spam")[group % 2]
    return "unlearn", message(3 * group + 1, label), ""


def replay(state: dict[str, str], number: int) -> dict[str, str]:
    verb, raw, label = operation(number)
    key = read_message(raw).id
    rest = {k: v for k, v in state.items() if k != key}
    return {**rest, key: label} if verb == "learn" else rest


LOOP = """
import sys
sys.path[:0] = {tests!r}
from test_mail_filter import Filter, operation
number = int(sys.argv[2])
with Filter(sys.argv[1]) as box:
    print("ready", flush=True)
    while True:
        verb, raw, label = operation(number)
        box.learn(raw, label) if verb == "learn" else box.unlearn(raw)
        number += 1
        print(number, flush=True)
"""


def test_kill_9_loses_no_acknowledged_message_and_leaves_none_half_learnt(tmp_path):
    state, path, done = {}, tmp_path / "state", 0
    for kill in range(KILLS):
        code = [
            sys.executable,
            "-c",
            LOOP.format(tests=[str(ROOT / "tests"), str(ROOT / "tests" / "mail")]),
            str(path),
            str(done),
        ]
        with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as process:
            try:
                # killed when it is ready, or after its first or second operation, however busy the machine is
                seen = [process.stdout.readline() for _ in range((1, 2, 2, 3, 3)[kill % 5])]
                time.sleep(random.Random(kill).uniform(0, 0.08))
            finally:
                process.kill()  # SIGKILL to this process and no other
            seen = "".join([*seen, process.stdout.read()])
            acknowledged = max([done, *map(int, re.findall(r"^(\d+)\n", seen, re.M))])
        for number in range(done, acknowledged):
            state = replay(state, number)
        with Store(path) as store:
            recorded = {m.id: m.label for m in store.messages()}
            consistent(store)
        if recorded != state:  # the operation under way may have been finished, but then it was finished whole
            assert recorded == replay(state, acknowledged)
            state, acknowledged = recorded, acknowledged + 1
        done = acknowledged
    assert done > KILLS, "the process was killed before it did anything"


PAIR = """
import sys
sys.path[:0] = {tests!r}
from test_mail_filter import Filter, message
start, own, shared = int(sys.argv[2]), *sys.argv[3:]
with Filter(sys.argv[1]) as box:
    for i in range(start, start + 25):
        box.learn(message(i, own), own)
        box.learn(message(i % 5, "ham"), shared)     # both fight over five messages
"""


def test_two_processes_learn_at_once(tmp_path):
    path = tmp_path / "state"
    code = PAIR.format(tests=[str(ROOT / "tests"), str(ROOT / "tests" / "mail")])
    both = [
        subprocess.Popen([sys.executable, "-c", code, str(path), *arguments], stderr=subprocess.PIPE, text=True)
        for arguments in (("100", "spam", "ham"), ("200", "ham", "spam"))
    ]
    for process in both:
        _, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
    with Filter(path, create=False) as box:
        consistent(box)
        recorded = {m.id: m.label for m in box.store.messages()}
        for i in range(25):
            assert recorded[read_message(message(100 + i, "spam")).id] == "spam"
            assert recorded[read_message(message(200 + i, "ham")).id] == "ham"
        assert len(recorded) == 55


def test_threads_share_one_filter(trained):
    with Filter(trained) as box, ThreadPoolExecutor(4) as pool:
        learnt = pool.map(lambda one: box.learn(one[1], one[0]), labelled(40, start=1000))
        answers = pool.map(lambda i: box.score(message(i)).answer, range(20))
        assert all(learnt)
        assert set(answers) <= {"spam", "ham", "unsure"}
        assert box.learnt == {"spam": 60, "ham": 60}
        consistent(box)


def test_a_filter_that_nobody_closed_goes_in_whichever_thread_collects_it(tmp_path, monkeypatch):
    trouble: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", trouble.append)
    dropped = Filter(tmp_path / "state")
    dropped.itself = dropped  # only the collector of circles ends it
    watch = weakref.ref(dropped.store)
    del dropped
    collector = threading.Thread(target=gc.collect)
    collector.start()
    collector.join()
    assert watch() is None
    assert trouble == []


def test_a_locked_state_is_waited_for_and_then_refused(tmp_path):
    with Filter(tmp_path / "state") as box, Store(tmp_path / "state", busy_seconds=0.1) as other:
        box.train(labelled(3))
        with box.store.change(), pytest.raises(StateError, match="locked"), other.change():
            pass
        assert other.tally() == box.tally


FULL_DISK = """
import resource, sys
sys.path[:0] = {tests!r}
from test_mail_filter import Filter, StateError, labelled
with Filter(sys.argv[1]) as box:
    resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), resource.RLIM_INFINITY))
    try:
        box.train(labelled(400, start=1000))
    except StateError as error:
        print(error)
"""


def test_a_full_disk_leaves_the_old_state(trained):
    with Filter(trained) as box:
        before = box.digest
    size = trained.stat().st_size
    for room in (size + 20_000, size, 10_000, 0):
        code = [
            sys.executable,
            "-c",
            FULL_DISK.format(tests=[str(ROOT / "tests"), str(ROOT / "tests" / "mail")]),
            str(trained),
            str(room),
        ]
        done = subprocess.run(code, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        assert "Hint: make room on the disk" in done.stdout
        with Filter(trained) as box:
            assert box.digest == before
            consistent(box)


# ---- files that are not ours, or damaged


def test_other_files_are_refused_and_never_touched(tmp_path):
    sqlite = tmp_path / "other.sqlite"
    with sqlite3.connect(sqlite) as db:
        db.execute("CREATE TABLE precious (x)")
    db.close()
    (tmp_path / "letter").write_bytes(b"Dear diary, " * 500)
    (tmp_path / "short").write_bytes(b"x")
    (tmp_path / "cut").write_bytes(sqlite.read_bytes()[:700])
    for path in list(tmp_path.iterdir()):
        content = path.read_bytes()
        for create in (True, False):
            with pytest.raises(StateError, match=r"(not a state file|another program's|damaged)"):
                Filter(path, create=create)
        assert path.read_bytes() == content
    with pytest.raises(StateError, match="there is no file"):
        Filter(tmp_path / "nothing", create=False)
    assert not (tmp_path / "nothing").exists()
    with pytest.raises(StateError):
        Filter(tmp_path)
    with pytest.raises(StateError):
        Filter(tmp_path / "no" / "folder")


def test_a_damaged_state_is_refused(trained, tmp_path):
    content = trained.read_bytes()
    bad = tmp_path / "bad"
    for damaged in (content[: len(content) // 2], content[:5000], content[:4096] + bytes(len(content) - 4096)):
        bad.write_bytes(damaged)
        with pytest.raises(StateError, match="damaged"), Filter(bad) as box:
            box.score(message(1))
        assert bad.read_bytes() == damaged
    for change, says in [
        ("DELETE FROM meta", "damaged: it has no schema"),
        ("UPDATE meta SET value = '{' WHERE key = 'schema'", "damaged: its schema"),
        ("DELETE FROM messages WHERE class = 'ham' AND rowid % 4 = 0", "damaged: its counts and its messages disagree"),
        ("UPDATE messages SET row = x'00'", "damaged: the row of message"),
        ("PRAGMA user_version = 99", "has the format 99"),
        ("UPDATE meta SET value = '{}' WHERE key = 'settings'", "settings in .* cannot be read"),
    ]:
        bad.write_bytes(content)
        db = sqlite3.connect(bad, isolation_level=None)
        db.execute(change)
        if "user_version" not in change:
            with pytest.raises(StateError, match="damaged"):
                Filter(bad)
            db.execute("PRAGMA user_version = 1")  # a file without check sums
        db.close()
        with pytest.raises(StateError, match=says), Filter(bad) as box:
            assert box.digest


def test_only_the_owner_can_read_a_new_state(trained):
    assert trained.stat().st_mode & 0o077 == 0


def test_a_state_that_was_killed_while_it_was_made_is_made_again(tmp_path):
    (tmp_path / "state").touch()
    with pytest.raises(StateError, match="is empty"):
        Filter(tmp_path / "state", create=False)
    with Filter(tmp_path / "state") as box:
        assert box.learn(message(1), "ham")


# ---- the command line


def test_the_installed_command_does_what_its_function_does(trained, tmp_path):
    for arguments in (
        ["mail", "score", trained, "--explain"],
        ["mail", "score", trained, tmp_path / "nothing"],
        ["mail", "filter", trained],
        ["mail", "filter", tmp_path / "nothing"],
        ["mail", "filter"],
        ["--help"],
    ):
        assert start(*arguments, given=HOSTILE) == run(*arguments, given=HOSTILE)


def test_score_exits_0_for_spam_1_for_ham_2_for_unsure_3_for_errors(trained, tmp_path):
    (tmp_path / "one.eml").write_bytes(message(90, "spam"))
    done = run("mail", "score", trained, tmp_path / "one.eml")
    assert (done.returncode, done.stderr) == (0, b"")
    assert re.fullmatch(rb"spam, probability=[01]\.\d{4}  \(the probability of spam is at least 0\.9\)\n", done.stdout)
    assert run("mail", "score", trained, given=message(90)).returncode == 1
    with Filter(tmp_path / "young") as young:
        young.learn(message(1), "ham")
    done = run("mail", "score", tmp_path / "young", given=message(90))
    assert done.returncode == 2 and b"not enough evidence yet" in done.stdout
    for wrong in (
        [tmp_path / "nothing"],
        [tmp_path / "one.eml"],
        [trained, tmp_path / "nothing"],
        [trained, tmp_path],
        [],
        ["--no-such-option"],
    ):
        done = run("mail", "score", *wrong, given=message(90))
        assert done.returncode == 3, wrong
        assert done.stderr.startswith(b"tallybayes: ") and b"Traceback" not in done.stderr
    assert run("mail").returncode == 3
    assert run("mail", "nonsense").returncode == 3
    assert run("nonsense").returncode == 2


def test_an_answer_nobody_can_read_is_an_error(trained):
    for verb in (["score", trained], ["filter", trained]):
        with open("/dev/full", "wb") as full:
            done = subprocess.run([COMMAND, "mail", *verb], input=message(90), stdout=full, stderr=subprocess.PIPE)
        assert done.returncode == (75 if verb[0] == "filter" else 3), done.stderr
        assert b"No space left" in done.stderr and b"Exception ignored" not in done.stderr


def test_a_pipe_that_nobody_reads_is_an_error_and_no_answer(trained):
    for verb, code in (("score", 3), ("filter", 75)):
        reading, writing = os.pipe()
        os.close(reading)
        try:
            done = subprocess.run(
                [COMMAND, "mail", verb, trained], input=message(90), stdout=writing, stderr=subprocess.PIPE
            )
        finally:
            os.close(writing)
        assert done.returncode == code, (verb, done)
        assert b"Broken pipe" in done.stderr and b"Exception ignored" not in done.stderr


PASSED = {
    "plain": message(90, "spam"),
    "crlf": message(90, "ham").replace(b"\n", b"\r\n"),
    "no newline at the end": message(90, "ham").rstrip(b"\n"),
    "an envelope line": b"From someone@x.example Mon Jan  1 10:00:00 2024\n" + message(90, "spam"),
    "an envelope line, crlf": (b"From a@x.example Mon Jan  1 10:00:00 2024\n" + message(90)).replace(b"\n", b"\r\n"),
    "binary": bytes(range(256)) * 40,
    "nothing": b"",
    "one line": b"hello",
    "no headers": b"\n\nbody only\n",
    "an answer of its own": b"X-Tallybayes: ham, probability=0.0000\n" + message(90, "spam"),
    "lone carriage returns": message(90).replace(b"\n", b"\r"),
}


@pytest.mark.parametrize("name", PASSED)
def test_filter_passes_every_byte_through_and_adds_one_header(trained, name):
    raw = PASSED[name]
    done = run("mail", "filter", trained, given=raw)
    assert (done.returncode, done.stderr) == (0, b"")
    out = done.stdout
    added = re.search(rb"X-Tallybayes: (spam|ham|unsure), probability=[01]\.\d{4}\r?\n", out)
    assert out[: added.start()] + out[added.end() :] == raw
    if raw.startswith(b"From "):
        assert added.start() == raw.index(b"\n") + 1
    else:
        assert added.start() == 0
    assert added[0].endswith(b"\r\n") == (b"\r\n" in raw[:200])


def test_filter_passes_the_message_through_whatever_goes_wrong(trained, tmp_path):
    raw = bytes(range(256)) * 300 + b"no newline"
    (tmp_path / "letter").write_bytes(b"Dear diary " * 100)
    for wrong in ([tmp_path / "nothing"], [tmp_path / "letter"], [tmp_path], [], [trained, "--nonsense"], [trained, 1]):
        done = run("mail", "filter", *wrong, given=raw)
        assert (done.returncode, done.stdout) == (75, raw), wrong
        assert done.stderr.startswith(b"tallybayes: ") and b"Traceback" not in done.stderr
    assert not (tmp_path / "nothing").exists()


def test_with_header_changes_nothing_else():
    for raw in PASSED.values():
        assert (
            with_header(raw, "ham").replace(b"X-Tallybayes: ham\r\n", b"").replace(b"X-Tallybayes: ham\n", b"") == raw
        )


def test_learn_and_unlearn_from_the_shell(tmp_path):
    state = tmp_path / "state"
    assert run("mail", "learn", state, "--ham", given=message(1)).stdout == b"learnt as ham\n"
    with Filter(state) as box:
        before = box.digest
    assert run("mail", "learn", state, "--ham", given=message(1)).stdout == b"known as ham already; nothing changed\n"
    (tmp_path / "m").write_bytes(message(2, "spam"))
    assert run("mail", "learn", "--spam", state, tmp_path / "m").stdout == b"learnt as spam\n"
    assert run("mail", "unlearn", state, tmp_path / "m").stdout == b"forgotten; it had been learnt as spam\n"
    with Filter(state) as box:
        assert box.digest == before
    done = run("mail", "unlearn", state, tmp_path / "m")
    assert done.returncode == 3 and b"has not been learnt" in done.stderr
    assert run("mail", "learn", state, given=message(3)).returncode == 3
    done = run("mail", "learn", state, "--spam", "--ham", given=message(3))
    assert done.returncode == 3 and b"--spam or --ham, not both" in done.stderr
    assert run("mail", "unlearn", tmp_path / "nothing", given=message(3)).returncode == 3


def test_train_from_folders(tmp_path):
    for (label, raw), number in zip(labelled(12), itertools.count()):
        folder = tmp_path / "mail" / label
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{number:03}.eml").write_bytes(raw)
    state = tmp_path / "state"
    done = run("mail", "train", state, tmp_path / "mail", "--owner", "Ada, Lovelace", "--spam-from", "0.8")
    assert done.stdout == b"24 learnt, 0 moved to the other class, 0 known already; in all 12 ham, 12 spam\n"
    assert done.stderr == b""
    with Filter(state) as box:
        assert (box.settings.mail.owner, box.settings.spam, box.settings.ham) == ("Ada, Lovelace", 0.8, 0.1)
        consistent(box)
    done = run("mail", "train", state, "--ham", tmp_path / "mail" / "ham", "--ham", tmp_path / "mail" / "spam")
    assert done.stdout == b"0 learnt, 12 moved to the other class, 12 known already; in all 24 ham, 0 spam\n"
    assert run("mail", "train", state, tmp_path / "mail", "--owner", "Bob").returncode == 3
    assert run("mail", "train", state).returncode == 3
    assert run("mail", "train", state, tmp_path / "nowhere").returncode == 3
    done = run("mail", "train", state, tmp_path / "mail" / "ham")
    assert done.returncode == 3 and b"without a label" in done.stderr


def test_a_folder_is_not_learnt_against_its_name(tmp_path):
    for label, raw in labelled(2):
        (tmp_path / "mail" / label).mkdir(parents=True, exist_ok=True)
        (tmp_path / "mail" / label / f"{len(raw)}.eml").write_bytes(raw)
    done = run("mail", "train", tmp_path / "state", "--ham", tmp_path / "mail")
    assert done.returncode == 3 and b"is in a folder called spam, given as --ham\nHint: " in done.stderr
    (tmp_path / "mail" / "spam").rename(tmp_path / "mail" / "work")  # any other name says nothing
    assert run("mail", "train", tmp_path / "state", "--ham", tmp_path / "mail").returncode == 0


def test_train_reads_an_mbox_from_standard_input_and_what_kind_says(tmp_path):
    lines = b"".join(b"From a@x.example Mon Jan  1 10:00:00 2024\n" + message(i, "spam") + b"\n" for i in range(3))
    done = run("mail", "train", tmp_path / "state", "--spam", "-", given=lines)
    assert done.stdout.startswith(b"3 learnt")
    done = run("mail", "train", tmp_path / "other", "--spam", "-", "--kind", "message", given=lines)
    assert done.stdout.startswith(b"1 learnt")


@pytest.mark.parametrize("verb", [["score"], ["learn", "--spam"], ["unlearn"]])
def test_a_message_that_is_none_is_refused(trained, tmp_path, verb):
    with Filter(trained) as box:
        before = box.digest
    (tmp_path / "empty").write_bytes(b"\r\n\n")
    for place, words in (
        ("-", b"standard input holds no message: it is empty"),
        (tmp_path / "empty", b"holds no message"),
        (tmp_path / "nothing", b"cannot be read: No such file"),
        (tmp_path, b"cannot be read: Is a directory"),
    ):
        done = run("mail", verb[0], trained, place, *verb[1:])
        assert done.returncode == 3 and words in done.stderr and b"\nHint: " in done.stderr, done.stderr
    with Filter(trained) as box:
        assert box.digest == before


HOSTILE = (
    b"From: \x1b]0;owned\x07 <a@\x1b[31m.example>\nSubject: \x1b[2J\x9b31m =?utf-8?q?=1B[31m_=C2=9B_=E2=80=AE?= prize\n"
    b"Message-ID: <\x1b[31m\x07@x>\n\n\x1b[31mpills\x07 \x00 \xc2\x9b \xe2\x80\xae http://\x1b[1m.example/ prize\r\x1b["
)


def test_control_characters_never_reach_the_terminal(trained, tmp_path):
    with Filter(trained) as box:
        box.learn(HOSTILE, "spam")
    (tmp_path / "h").write_bytes(HOSTILE)
    outputs = [
        run("mail", "score", trained, "--explain", given=HOSTILE),
        run("mail", "learn", trained, "--spam", given=HOSTILE),
        run("mail", "unlearn", trained, given=HOSTILE),
        run("mail", "unlearn", trained, given=HOSTILE),
        run("mail", "score", "\x1b[31mstate", given=HOSTILE),
        run("mail", "train", trained, "\x1b[31mplace"),
        run("mail", "\x1b[31mverb"),
    ]
    for done in outputs:
        text = (done.stdout + done.stderr).decode()
        assert text and all(ch.isprintable() or ch == "\n" for ch in text), text
    assert [o.returncode for o in outputs] == [0, 0, 0, 3, 3, 3, 3]
    assert b"prize" in outputs[0].stdout


HARD = {
    "not utf-8": b"Subject: \xff\xfe\xfd\n\n\xff\xfe\xc3(\n",
    "truncated mime": b'Content-Type: multipart/mixed; boundary="x"\n\n--x\nContent-Type: text/html\n\n<a href="',
    "2,000 nested parts": b"".join(
        b'Content-Type: multipart/mixed; boundary="b%d"\n\n--b%d\n' % (i, i) for i in range(2000)
    ),
    "a very long word": b"Subject: x\n\n" + b"a" * 3_000_000,
    "many headers": b"".join(b"X-%d: y\n" % i for i in range(100_000)) + b"\nbody",
    "open tags": b"Content-Type: text/html\n\n" + b'<a x="' * 200_000,
    "nul": b"\0" * 100_000,
}


def test_hostile_messages_are_learnt_scored_and_forgotten(trained):
    with Filter(trained) as box:
        before = box.digest
        start = time.process_time()  # that of other processes does not count
        for raw in HARD.values():
            assert box.score(raw).answer in ("spam", "ham", "unsure")
            box.learn(raw, "spam")
        consistent(box)
        for raw in HARD.values():
            box.unlearn(raw)
        assert time.process_time() - start < 30
        assert box.digest == before


# ---- help without the weight

LIGHT = """
import runpy, sys, types
package = types.ModuleType("tallybayes")        # the package without what its __init__ imports
package.__path__ = [{source!r}]
sys.modules["tallybayes"] = package
from tallybayes.cli import main
try:
    main({arguments!r})
except SystemExit as end:
    assert end.code == 0, end
print(*sorted({{m.partition(".")[0] for m in sys.modules}}), *sorted(m for m in sys.modules if "tallybayes" in m))
"""


@pytest.mark.parametrize("arguments", [["--help"], ["mail", "--help"], ["mail", "score", "--help"], ["--version"]])
def test_the_command_line_itself_imports_nothing_heavy(arguments):
    code = LIGHT.format(source=str(ROOT / "src" / "tallybayes"), arguments=arguments)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.splitlines()[-1].split())
    assert not loaded & {"numpy", "pyarrow", "scipy", "numba", "pandas", "sklearn", "matplotlib", "sqlite3"}
    assert not any(name.startswith("tallybayes.mail") for name in loaded)


def test_every_command_says_what_it_does():
    for verb in ("train", "score", "filter", "learn", "unlearn", "serve"):
        done = run("mail", verb, "--help")
        assert done.returncode == 0 and f"Usage: tallybayes mail {verb}".encode() in done.stdout


# ---- procmail


def test_the_procmail_recipe_of_the_page(trained, tmp_path):
    procmail = shutil.which("procmail")
    if procmail is None:
        pytest.skip("procmail is not installed: apt-get install procmail")
    (recipe,) = re.findall(r"```procmail\n(.*?)```", (ROOT / "docs" / "mail.md").read_text("utf-8"), re.S)
    home = tmp_path / "home"
    (home / "Mail").mkdir(parents=True)
    shutil.copy(trained, home / ".tallybayes.state")
    rules = home / ".procmailrc"
    # procmail takes HOME from the password file, whatever its environment says
    rules.write_text(f"HOME={home}\nPATH={Path(COMMAND).parent}:/usr/bin:/bin\nDEFAULT={home}/Mail/inbox\n{recipe}")
    rules.chmod(0o600)

    def deliver(raw: bytes) -> str:
        before = {p: p.stat().st_size for p in (home / "Mail").iterdir()}
        done = subprocess.run([procmail, str(rules)], input=raw, cwd=home, capture_output=True)
        assert done.returncode == 0, done.stderr
        (grown,) = [p for p in (home / "Mail").iterdir() if p.stat().st_size > before.get(p, 0)]
        delivered = grown.read_bytes()[before.get(grown, 0) :]
        for line in raw.splitlines():
            assert line in delivered
        return grown.name

    assert deliver(message(90, "spam")) == "spam"
    assert deliver(message(90, "ham")) == "inbox"
    assert b"X-Tallybayes: ham" in (home / "Mail" / "inbox").read_bytes()
    with Filter(home / ".tallybayes.state") as box:
        for label, raw in labelled(15):
            if label == "spam":
                box.unlearn(raw)
    assert deliver(message(91, "spam")) == "unsure"
    (home / ".tallybayes.state").write_bytes(b"broken" * 1000)
    assert deliver(message(92, "spam")) == "inbox"  # no answer, but no message lost
