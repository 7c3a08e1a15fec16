"""The state of a filter on a disk that changes bits: each is refused, or changes nothing that anybody can ask."""

from __future__ import annotations

import json
import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from letters import letter
from strategies import ALL

import tallybayes as tb
from tallybayes.mail import store as store_module
from tallybayes.mail.answers import Scorer
from tallybayes.mail.filter import Filter
from tallybayes.mail.learnt import Learnt
from tallybayes.mail.state import LongWay, State, StateError
from tallybayes.mail.store import Store
from tallybayes.mail.sums import counts_sum, messages_sum, rest_sum

FLIPS = 2_000 if ALL else 200


LETTERS = [(label, letter(i, label)) for i in range(12) for label in ("ham", "spam")]


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A file that has known more than it holds, so that it has free pages, too."""
    with Filter(tmp_path / "state") as box:
        box.train(LETTERS)
        box.train([("ham", letter(i, "spam")) for i in range(100, 110)])
        for i in range(100, 110):
            box.unlearn(letter(i, "spam"))
    return tmp_path / "state"


def answers(path: Path) -> Any:
    """Everything that can be asked of a state."""
    with Filter(path) as box:
        scores = [box.score(raw) for _, raw in (*LETTERS[:4], ("", letter(50, "ham")), ("", letter(50, "spam")))]
        known = [box.store.sender_known(f"ham{i}@ham.example", "ham") for i in range(4)]
        return box.digest, box.learnt, box.settings, scores, known


def test_no_flipped_bit_passes_silently(state: Path) -> None:
    content, expected = state.read_bytes(), answers(state)
    rng, refused = random.Random(0), 0
    for place in [*range(0, 800, 8), *(rng.randrange(len(content) * 8) for _ in range(FLIPS))]:
        bent = bytearray(content)
        bent[place // 8] ^= 1 << place % 8
        state.write_bytes(bent)
        try:
            found = answers(state)
        except StateError:
            refused += 1
        else:
            assert found == expected, f"bit {place} changes the answers without a word"
    assert refused > FLIPS / 4


def test_no_flipped_bit_passes_an_answer_that_reads_only_its_own_words(state: Path) -> None:
    asked = [*(raw for _, raw in LETTERS[:3]), letter(50, "ham"), letter(50, "spam")]

    def quick() -> Any:
        with State(state) as opened:
            scorer = Scorer(opened)
            return [scorer.score(raw) for raw in asked]

    content, expected = state.read_bytes(), quick()
    rng, refused, long = random.Random(1), 0, 0
    for place in [*range(0, 800, 32), *(rng.randrange(len(content) * 8) for _ in range(FLIPS))]:
        bent = bytearray(content)
        bent[place // 8] ^= 1 << place % 8
        state.write_bytes(bent)
        try:
            found = quick()
        except StateError:
            refused += 1
        except LongWay:  # which looks at everything, see above
            long += 1
        else:
            assert found == expected, f"bit {place} changes the answers without a word"
    assert refused > FLIPS / 8 and long < FLIPS / 20


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE counts SET a0 = a0 + 1 WHERE slot = 'lunch'",
        "UPDATE counts SET slot = 'launch' WHERE slot = 'lunch'",
        "DELETE FROM counts WHERE slot = 'lunch'",
        "UPDATE messages SET sender = 'x' || sender WHERE id LIKE '<3@ham%'",
        "UPDATE messages SET class = 'spam' WHERE id LIKE '<3@ham%'",
        "DELETE FROM messages WHERE id LIKE '<3@ham%'",
        "UPDATE meta SET value = replace(value, '0.9', '0.8') WHERE key = 'settings'",
        "UPDATE meta SET value = 'x' WHERE key = 'sums'",
        "DELETE FROM meta WHERE key = 'sums'",
        "UPDATE sheets SET amounts = '[\"m\"]' WHERE \"column\" = 'body'",
        "DROP TRIGGER zeros",
        "UPDATE counts SET a0 = a0 + 1 WHERE sheet < 0 AND slot = 'slots'",
        "DELETE FROM counts WHERE sheet = 0 AND slot LIKE 'sender %'",
        "UPDATE checks SET sum = sum + 1 WHERE place = (SELECT max(place) FROM checks)",
        "DELETE FROM checks WHERE place = (SELECT max(place) FROM checks)",
        "INSERT INTO checks VALUES (1, 1)",
        "UPDATE meta SET value = replace(value, '1', '2') WHERE key = 'plan'",
    ],
)
def test_no_changed_row_passes_silently(state: Path, change: str) -> None:
    db = sqlite3.connect(state, isolation_level=None)
    db.execute(change)
    db.close()
    with pytest.raises(StateError, match="damaged: its check sums"):
        Filter(state)


def test_the_sums_follow_every_change_and_carry(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    schema = tb.Schema([tb.Column("n", "number"), tb.Column("words", "bag")], target="class")
    values = [1e-300, 1e300, -7.5, None, 0.1, 3.0, 2e10]
    monkeypatch.setattr(store_module, "CARRY_EVERY", 3)
    with Store(tmp_path / "s", schema) as store:
        for i, x in enumerate(values):
            with store.change() as change:
                change.learn(Learnt(f"m{i}", "ham" if i % 2 else "spam", {"n": x, "words": ["a\0b", f"w{i % 3}"]}))
            Store(tmp_path / "s").close()  # would refuse other sums
        for i in range(len(values)):
            with store.change() as change:
                change.forget(f"m{i}")
            Store(tmp_path / "s").close()
        for table in ("counts", "checks", "messages"):
            assert store._db.execute(f"SELECT * FROM {table}").fetchall() == []


def as_before(path: Path, version: int) -> None:
    """A file as an older release wrote it: without sums, or with one of all counts and one of all messages."""
    db = sqlite3.connect(path, isolation_level=None)
    for change in (
        "DROP TABLE checks", "DELETE FROM counts WHERE sheet <= 0", "DELETE FROM meta WHERE key IN ('sums', 'plan')",
        f"PRAGMA user_version = {version}",
    ):  # fmt: skip
        db.execute(change)
    if version == 2:
        sums = {
            "counts": counts_sum(db.execute("SELECT * FROM counts")),
            "messages": messages_sum(db.execute("SELECT * FROM messages")),
            "rest": rest_sum(db),
        }
        db.execute("INSERT INTO meta VALUES ('sums', ?)", (json.dumps(sums, sort_keys=True),))
    db.close()


@pytest.mark.parametrize("version", [1, 2])
def test_a_file_of_an_older_format_is_read_and_becomes_ours_with_the_next_change(state: Path, version: int) -> None:
    expected = answers(state)
    as_before(state, version)
    db = sqlite3.connect(state, isolation_level=None)
    old = answers(state)  # by the model, so the last digits may differ
    assert old[:3] == expected[:3] and old[4] == expected[4]
    assert [v.probability for v in old[3]] == pytest.approx([v.probability for v in expected[3]], abs=1e-9)
    assert db.execute("PRAGMA user_version").fetchone() == (version,)  # asking changes nothing
    with Filter(state) as box:
        box.learn(letter(60, "ham"), "ham")
    assert db.execute("PRAGMA user_version").fetchone() == (3,)
    with Filter(state) as box:
        box.unlearn(letter(60, "ham"))
    assert answers(state) == expected
    db.execute("UPDATE counts SET a0 = a0 + 1 WHERE slot = 'lunch'")
    db.close()
    with pytest.raises(StateError, match="damaged"):
        Filter(state)


def test_a_file_with_sums_of_before_is_refused_when_a_bit_has_changed(state: Path) -> None:
    as_before(state, 2)
    db = sqlite3.connect(state, isolation_level=None)
    db.execute("UPDATE counts SET a0 = a0 + 1 WHERE slot = 'lunch'")
    db.close()
    with pytest.raises(StateError, match="damaged: its check sums"):
        Filter(state)
