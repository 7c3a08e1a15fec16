"""The state of a filter on a disk that changes bits: each is refused, or changes nothing that anybody can ask."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from letters import letter
from strategies import ALL

import tallybayes as tb
from tallybayes.mail import store as store_module
from tallybayes.mail.filter import Filter
from tallybayes.mail.learnt import Learnt
from tallybayes.mail.store import StateError, Store
from tallybayes.mail.sums import all_sums

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
        empty = all_sums(store._db)
        for i, x in enumerate(values):
            with store.change() as change:
                change.learn(Learnt(f"m{i}", "ham" if i % 2 else "spam", {"n": x, "words": ["a\0b", f"w{i % 3}"]}))
            Store(tmp_path / "s").close()  # would refuse other sums
        for i in range(len(values)):
            with store.change() as change:
                change.forget(f"m{i}")
            Store(tmp_path / "s").close()
        assert {**all_sums(store._db), "rest": ""} == {**empty, "rest": ""}


def test_a_file_without_sums_is_read_and_gets_them(state: Path) -> None:
    expected = answers(state)
    db = sqlite3.connect(state, isolation_level=None)
    db.execute("DELETE FROM meta WHERE key = 'sums'")
    db.execute("PRAGMA user_version = 1")
    assert answers(state) == expected
    assert db.execute("PRAGMA user_version").fetchone() == (1,)  # asking changes nothing
    with Filter(state) as box:
        box.learn(letter(60, "ham"), "ham")
    assert db.execute("PRAGMA user_version").fetchone() == (2,)
    with Filter(state) as box:
        box.unlearn(letter(60, "ham"))
    assert answers(state) == expected
    db.execute("UPDATE counts SET a0 = a0 + 1 WHERE slot = 'lunch'")
    db.close()
    with pytest.raises(StateError, match="damaged"):
        Filter(state)
