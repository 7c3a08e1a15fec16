"""What to label next at a desk: it follows every operation exactly, offers no row twice, and says what is left."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import ALL

import tallybayes as tb
from tallybayes.selection.labelling.left import Left
from tallybayes.selection.labelling.pool import Pool
from tallybayes.selection.labelling.scored import ScoredPool
from tallybayes.serve import suggest
from tallybayes.serve.desk import Desk
from tallybayes.serve.journal import POOL
from tallybayes.serve.suggest import Suggester

MONEY, OTHER = (
    ["invoice", "payment", "bank", "transfer", "amount", "due"],
    ["lunch", "meeting", "train", "photo", "garden", "music"],
)


def message(number: int) -> dict[str, Any]:
    """A short text, money in a quarter of them, with an amount and a sender."""
    dice = random.Random(number)
    money = dice.random() < 0.25
    words = [*dice.choices(MONEY if money else OTHER, k=2), *dice.choices(MONEY + OTHER, k=2), f"w{dice.randrange(60)}"]
    size = None if dice.random() < 0.1 else round(dice.gauss(3 if money else 1, 1), 1)
    return {"text": " ".join(words), "size": size, "from": f"p{number % 9}", "y": "money" if money else "other"}


TRUTH = {message(i)["text"]: message(i)["y"] for i in range(400)}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("suggest") / "m"
    rows = [message(i) if i < 20 else {**message(i), "y": None} for i in range(140)]
    kinds = {"text": "text", "size": "number", "from": "ignore"}
    Desk.begin(path, rows, target="y", kinds=kinds, calibrate=False).close()
    return path


@pytest.fixture
def desk(made: Path, tmp_path: Path) -> Iterator[Desk]:
    for name in ("m", "m.journal"):
        (tmp_path / name).write_bytes((made.parent / name).read_bytes())
    with Desk.open(tmp_path / "m") as opened:
        yield opened


def settled(suggester: Suggester) -> Suggester:
    """Once the pool has been read."""
    until = time.monotonic() + 60
    while not suggester.progress().ready and time.monotonic() < until:
        time.sleep(0.002)
    assert suggester.progress().ready
    return suggester


def truth(row: Any) -> str:
    return TRUTH[row.values["text"]]


def check(desk: Desk, suggester: Suggester) -> None:
    """What is placed is what would be placed now: the rows that wait, under the model that is served."""
    settled(suggester)
    waiting = desk.pool(10**6)
    progress = suggester.progress()
    assert progress.waiting == len(waiting)
    placed = suggester._placed
    assert placed is not None and placed.version == desk.version
    if not waiting:
        assert suggester.next(3) == [] and progress.stop
        return
    scored = placed._scored
    assert scored is not None
    open_ = placed._ids[scored.open]
    assert set(open_.tolist()) == {row.id for row in waiting}
    rows = [{n: row.values.get(n) for n in desk.served.read.inputs} for row in waiting]
    fresh = Pool(desk.model, rows).probabilities(np.arange(len(rows)))
    mine = scored.pool.probabilities(np.array([placed._number[row.id] for row in waiting]))
    assert np.allclose(mine, fresh, rtol=0, atol=1e-9)
    told = suggester.next(4, who="check")
    assert {each.row.id for each in told} <= {row.id for row in waiting}
    for each in told:
        expected = desk.model.predict_proba([each.row.values])[0]
        assert np.allclose(list(each.probabilities.values()), expected, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(20) if ALL else range(1))
def test_it_follows_every_operation(desk: Desk, seed: int) -> None:
    rng, suggester, done = random.Random(seed), Suggester(desk, patience=60), []
    for step in range(30 if ALL else 16):
        pool = [row.id for row in desk.pool(500)]
        kind = rng.choice(("label", "label", "label", "skip", "learn", "forget", "relabel", "undo", "pool", "erase"))
        if kind == "label":
            row = suggester.next(1)[0].row
            done.append(desk.label(row.id, "new" if step == 5 else truth(row), new_classes="allow"))
        elif kind == "skip":
            done.append(desk.skip(rng.choice(pool)))
        elif kind == "learn":
            done.append(desk.learn([message(200 + step)]))
        elif kind in ("forget", "relabel"):
            counted = [row.id for row in desk.journal.all_rows() if row.counted]
            row_id = rng.choice(counted)
            label = "other" if desk.row(row_id).label == "money" else "money"
            done.append(desk.forget([row_id]) if kind == "forget" else desk.relabel(row_id, label))
        elif kind == "undo" and done:
            try:
                done.append(desk.undo(rng.choice(done).operation))
            except tb.TallybayesError:
                continue
        elif kind == "pool":
            done.append(desk.add_to_pool([message(250 + step), message(300 + step)]))
        elif kind == "erase" and rng.random() < 0.5:
            desk.erase("from", f"p{step % 9}") if desk.found("from", f"p{step % 9}", 1) else None
        if rng.random() < 0.5:
            check(desk, suggester)
    check(desk, suggester)
    again = settled(Suggester(desk, patience=60))  # as after a restart
    assert again._audit is not None and suggester._audit is not None
    assert (
        list(again._audit.coming()) == list(suggester._audit.coming())
        and again._audit.head() == suggester._audit.head()
    )


def test_rows_are_telling_or_likely_and_some_drawn(desk: Desk) -> None:
    suggester = Suggester(desk, patience=60)
    first = suggester.next(9)
    assert first == suggester.next(9) and [each.why for each in first] == ["telling"] * 6 + ["random"] * 3
    drawn = suggester.next(5, random=True)
    assert [each.row.id for each in drawn[:3]] != [each.row.id for each in first[:3]]
    assert {each.why for each in drawn} == {"random"}
    likely = suggester.next(12, find="money")
    assert [each.why for each in likely] == ["likely"] * 11 + ["random"]
    rows = desk.pool(500)
    every = Pool(desk.model, [{n: row.values.get(n) for n in desk.served.read.inputs} for row in rows])
    ahead = every.ahead(np.arange(len(rows)), list(desk.model.classes).index("money"))
    assert [each.row.id for each in likely[:11]] == [rows[i].id for i in np.argsort(-ahead, kind="stable")[:11]]
    with pytest.raises(tb.SettingsError, match="no class 'mony'"):
        suggester.next(find="mony")
    assert len(suggester.next(1000)) == 120 and suggester.next(0) == []


def test_two_people_have_different_rows_until_one_is_long_gone(desk: Desk) -> None:
    now = [0.0]
    suggester = Suggester(desk, patience=60, clock=lambda: now[0])
    ann, ben = suggester.next(3, who="ann"), suggester.next(3, who="ben")
    ids = lambda found: [each.row.id for each in found]  # noqa: E731
    nobody = suggester.next(3)
    assert not {*ids(nobody)} & {*ids(ann), *ids(ben)} and {*ids(nobody)} & {*ids(suggester.next(9, who="dee"))}
    assert not {*ids(ann)} & {*ids(ben)} and ids(suggester.next(1, who="ann")) == ids(ann)[:1]
    now[0] = 121.0
    assert ids(suggester.next(3, who="ben")) == ids(ann)
    everything = suggester.next(1000, who="cem")  # what others have comes last, and it does come
    assert len(everything) == 120 and {*ids(everything)[-3:]} == {*ids(ann)}


def test_two_people_at_once_never_see_a_row_that_has_its_label(desk: Desk) -> None:
    suggester, wrong, gave = Suggester(desk, patience=60), list[Any](), list[int]()

    def work(who: str, rows: int) -> None:
        try:
            for _ in range(rows):
                before = set(gave)  # acknowledged before the question
                row = suggester.next(who=who)[0].row
                if row.id in before or row.standing != POOL:
                    wrong.append((who, row.id))
                desk.label(row.id, truth(row), who=who)
                gave.append(row.id)
        except Exception as error:
            wrong.append(error)

    people = [threading.Thread(target=work, args=(who, 12)) for who in ("ann", "ben", "cem")]
    for each in people:
        each.start()
    for each in people:
        each.join()
    assert not wrong and len({*gave}) == len(gave) == 36
    check(desk, suggester)


def test_until_the_pool_is_read_rows_come_by_chance(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    held, make = threading.Event(), suggest._make
    monkeypatch.setattr(suggest, "_make", lambda *about: (held.wait(10), make(*about)))
    suggester = Suggester(desk, patience=0.0)
    early = suggester.next(2, find="money")
    assert [each.why for each in early] == ["random"] * 2 and not suggester.progress().ready
    assert set(early[0].probabilities) == {"money", "other"}
    desk.label(early[0].row.id, "other")  # while it is being read
    assert suggester.next(1)[0].row.id == early[1].row.id
    held.set()
    check(desk, suggester)
    assert suggester.next(3)[0].why == "telling"
    monkeypatch.setattr(suggest, "_PlacedPool", lambda desk: 1 / 0)
    broken = Suggester(desk, patience=60)
    with pytest.raises(ZeroDivisionError):  # told to whoever asks, and tried again
        broken.next()


def test_progress_says_what_is_left_and_when_to_stop(desk: Desk) -> None:
    suggester = Suggester(desk, patience=60)
    start = suggester.progress()
    assert (start.waiting, sum(start.labelled.values()), start.stop) == (120, 0, False) and "no row" in start.why
    assert start.counted == {
        c: float(n) for c, n in zip(desk.model.classes, desk.served.tally.class_weights(), strict=True)
    }
    assert start.left.label == min(start.counted, key=lambda c: start.counted[c])
    for _ in range(40):
        row = suggester.next(find="money")[0].row
        desk.label(row.id, truth(row))
    some = suggester.progress("money")
    waiting = [truth(row) for row in desk.pool(500)].count("money")
    assert some.left.low <= waiting <= some.left.high and some.left.rows == some.waiting == 80
    assert some.left.found == some.labelled["money"] and not some.stop and "of money have been found" in some.why
    while not suggester.progress("money").stop:
        (each,) = suggester.next(random=True)
        desk.label(each.row.id, truth(each.row))
    end = suggester.progress("money")
    assert end.left.recall_at_least >= 0.95 and (end.waiting == 0 or end.why.startswith("Enough"))
    for row in desk.pool(500):
        desk.skip(row.id)
    assert suggester.next() == [] and suggester.progress().why == "No row of the pool waits for a label."


def test_the_interval_holds_while_telling_and_random_rows_are_mixed() -> None:
    """400 runs of audits among rows that were asked for: the order is drawn, the rest is whatever a model wants."""
    inside, runs, rng = 0, 400, np.random.default_rng(3)
    for _ in range(runs):
        audit = object.__new__(suggest._PoolAudit)
        ids = rng.choice(10**6, 150, replace=False)
        hits = {int(row): bool(hit) for row, hit in zip(ids, rng.permutation(np.arange(150) < 15), strict=True)}
        audit._standing, audit.labels, audit.waiting, audit._order = dict.fromkeys(hits, POOL), {}, 150, None
        likely = sorted(hits, key=lambda row: -hits[row] - rng.random() * 1.5)  # a model that knows a little
        for turn in range(60):
            likely = [row for row in likely if row not in audit.labels]
            row = next(audit.coming()) if turn % 3 == 0 else likely[0]
            audit._now(row, "=yes" if hits[row] else "=no")
        left = suggest.left_of(audit, "yes", 0.1, 0.9)
        assert isinstance(left, Left) and left.rows == 90
        inside += left.low <= sum(hit for row, hit in hits.items() if row not in audit.labels) <= left.high
    assert inside >= 0.87 * runs


@pytest.mark.parametrize("read", ["ever_in_pool", "pool"])
def test_a_label_that_was_undone_while_the_pool_was_read(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, read: str
) -> None:
    row = desk.pool(1)[0]
    holder, done = (desk.journal, []) if read == "ever_in_pool" else (desk, [])
    as_it_is = getattr(holder, read)

    def late(*given: Any) -> Any:  # what is asked of the journal comes after the version that was noted
        if done:
            return as_it_is(*given)
        done.append(desk.label(row.id, truth(row)))
        out = list(as_it_is(*given))
        desk.undo(done[0].operation)
        return out

    monkeypatch.setattr(holder, read, late)
    suggester = Suggester(desk, patience=60)
    suggester.next(1)
    assert done
    check(desk, suggester)


@pytest.mark.parametrize("which", ["learnt", "labelled", "waiting"])
def test_a_change_that_was_undone_leaves_all_as_it_was(desk: Desk, monkeypatch: pytest.MonkeyPatch, which: str) -> None:
    learnt = desk.learn([message(777)]).rows[0]
    suggester = settled(Suggester(desk, patience=60))
    row = learnt if which == "learnt" else suggester.next(1)[0].row.id
    if which == "labelled":
        desk.label(row, "money")
    anew: list[Any] = []
    monkeypatch.setattr(ScoredPool, "under", lambda *given, **named: anew.append(named))

    def state() -> Any:
        told = [(each.row.id, each.why) for each in suggester.next(9, find="money")]
        placed, audit = suggester._placed, suggester._audit
        assert placed is not None and placed._scored is not None and audit is not None
        scored = placed._scored
        return told, scored.open.tolist(), scored.p.tolist(), placed._added.copy(), audit.labels.copy(), audit.waiting

    before = state()
    other = "other" if which != "waiting" and desk.row(row).label == "money" else "money"
    done = desk.label(row, other) if which == "waiting" else desk.relabel(row, other)
    desk.undo(done.operation)
    assert state() == before and not anew


@pytest.mark.parametrize("most", [0, 1000])
def test_a_row_that_comes_and_is_labelled_before_anyone_asks(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(suggest, "_MOST_FOLLOWED", most)
    suggester = settled(Suggester(desk, patience=60))
    new = desk.add_to_pool([message(301), message(302)]).rows
    desk.label(new[0], "money")
    assert suggester.progress().labelled == {"money": 1, "other": 0}
    assert suggester._audit is not None and suggester._audit.labels == {new[0]: "money"}
    check(desk, suggester)
