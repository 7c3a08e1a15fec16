"""A served model is exactly the tally of its surviving rows: in any order of operations, after kill -9, on a full disk,
with readers beside the writer; and of an erased row no byte is left.
"""

from __future__ import annotations

import random
import re
import resource
import shutil
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from strategies import ALL
from taught import LABELS, operation, row

import tallybayes as tb
from tallybayes.serve import desk as desk_module
from tallybayes.serve.desk import Desk
from tallybayes.serve.journal import CannotUndo, Journal
from tallybayes.serve.journal_file import JournalError

TESTS = Path(__file__).resolve().parents[1]


def table(rows: range) -> dict[str, list[Any]]:
    return {name: [row(i).get(name) for i in rows] for name in ("person", "sky", "temp", "note", "play")}


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a served model of twenty rows, whose person is no evidence."""
    kinds = {"sky": "category", "temp": "number", "note": "text", "person": "ignore"}
    folder = tmp_path_factory.mktemp("served")
    Desk.begin(folder / "m.tb.parquet", table(range(20)), target="play", kinds=kinds, calibrate=False).close()
    return folder


@pytest.fixture
def folder(made: Path, tmp_path: Path) -> Path:
    shutil.copytree(made, tmp_path / "copy")
    return tmp_path / "copy"


@pytest.fixture
def desk(folder: Path) -> Iterator[Desk]:
    with Desk.open(folder / "m.tb.parquet") as opened:
        yield opened


def survivors(desk: Desk) -> list[dict[str, Any]]:
    return [{**r.values, "play": r.label} for r in desk._journal.all_rows() if r.counted]


def consistent(desk: Desk, rows: list[dict[str, Any]]) -> None:
    """The promise: the state has the digest of a batch count of these rows, and so has the journal's own word."""
    assert desk.model.tally is not None
    assert desk.digest == desk.model.tally.digest == desk.operations(limit=1)[0].digest
    assert desk.digest == tb.count(rows, desk.model.schema).digest


# ---- any order of operations


class Shadow:
    """The same operations on a plain dict: what every row is counted as, and what each operation changed."""

    def __init__(self, labels: dict[int, Any]) -> None:
        self.labels, self.done = labels, {}

    def note(self, number: int, changes: dict[int, tuple[Any, Any]]) -> None:
        self.labels |= {key: new for key, (_, new) in changes.items()}
        self.done[number] = changes

    def can_undo(self, number: int) -> bool:
        return all(self.labels[key] == new for key, (_, new) in self.done[number].items())


@pytest.mark.parametrize("seed", range(40 if ALL else 2))
def test_any_sequence_of_operations_leaves_the_tally_of_the_survivors(seed: int, folder: Path) -> None:
    dice, path = random.Random(seed), folder / "m.tb.parquet"
    desk = Desk.open(path)
    values = {r.id: dict(r.values) for r in desk._journal.all_rows()}
    shadow = Shadow({r.id: r.label for r in desk._journal.all_rows()})
    refused = 0
    for step in range(60 if ALL else 35):
        live = [key for key, label in shadow.labels.items() if label is not None]
        what = dice.choice(["learn", "learn", "forget", "forget row", "relabel", "undo", "undo", "undo", "open"])
        if what == "learn":
            new = [row(1000 * seed + 10 * step + i) for i in range(dice.randint(1, 3))]
            done = desk.learn(new, who="a test", new_classes="allow")
            values |= {key: {k: v for k, v in r.items() if k != "play"} for key, r in zip(done.rows, new, strict=True)}
            changes = {key: (None, r["play"]) for key, r in zip(done.rows, new, strict=True)}
        elif what == "forget" and len(live) > 4:
            ids = dice.sample(live, 2)
            done, changes = desk.forget(ids), {key: (shadow.labels[key], None) for key in ids}
        elif what == "forget row" and len(live) > 4:
            key = dice.choice(live)
            done = desk.forget(rows=[{**values[key], "play": shadow.labels[key]}])
            (key,) = done.rows  # one that is counted alike
            changes = {key: (shadow.labels[key], None)}
        elif what == "relabel":
            key = dice.choice(live)
            label = next(name for name in LABELS if name != shadow.labels[key])
            done, changes = desk.relabel(key, label, new_classes="allow"), {key: (shadow.labels[key], label)}
        elif what == "undo" and shadow.done:
            number = dice.choice([*shadow.done])
            if not shadow.can_undo(number):
                with pytest.raises(CannotUndo, match=r"(was changed since|is undone already), by operation \d+"):
                    desk.undo(number)
                refused += 1
                continue
            done, changes = desk.undo(number), {key: (b, a) for key, (a, b) in shadow.done[number].items()}
        else:
            if dice.random() < 0.5:
                desk.fold()
            before, desk._unfolded = desk.digest, 0  # closed as if it had been killed: the file is not written
            desk.close()
            desk = Desk.open(path)
            assert desk.digest == before
            continue
        assert done.operation == desk.version
        shadow.note(done.operation, changes)
        rows = [{**values[key], "play": label} for key, label in shadow.labels.items() if label is not None]
        consistent(desk, rows)
    assert refused or not ALL
    desk.close()
    assert tb.load(path).tally.digest == desk.digest


def test_undo_out_of_order_of_a_relabel_and_of_an_undo(desk: Desk) -> None:
    start = desk.digest
    first, second = desk.learn([row(100)]), desk.learn([row(101), row(102)])
    with_both = desk.digest
    desk.undo(first.operation)  # the older one
    consistent(desk, survivors(desk))
    undo = desk.undo(second.operation)
    assert desk.digest == start
    desk.undo(undo.operation)
    desk.undo(first.operation + 2)  # the undo of the first
    assert desk.digest == with_both
    moved = desk.relabel(first.rows[0], "no" if row(100)["play"] == "yes" else "yes")
    with pytest.raises(CannotUndo, match=rf"row {first.rows[0]} was changed since, by operation {moved.operation}"):
        desk.undo(first.operation)
    desk.undo(moved.operation)
    assert desk.digest == with_both
    with pytest.raises(CannotUndo, match="is the beginning"):
        desk.undo(1)
    with pytest.raises(tb.DataError, match="there is no operation 99"):
        desk.undo(99)
    assert desk.operations(before=first.operation + 1, limit=1)[0].undone_by == first.operation + 2


def test_what_cannot_be_read_changes_nothing(desk: Desk) -> None:
    good, digest = row(100), desk.digest
    for rows, labels, found in [
        ([good, {**good, "temp": "warm"}], None, "'warm'"),
        ([{**good, "play": None}], None, "means that it is missing"),
        ([{k: v for k, v in good.items() if k != "play"}], None, "has no 'play'"),
        ([good], ["yes", "no"], "1 row and 2 labels"),
        ([good], ["yess"], "a label of 'play' that no row has had before"),
        ([{"ski": "sunny"}], ["yes"], "none of the columns"),
        ([["sunny"]], ["yes"], "of type list, not a dict"),
        ([], None, "no rows"),
    ]:
        with pytest.raises(tb.DataError, match=re.escape(found)):
            desk.learn(rows, labels)
    with pytest.raises(tb.CannotForget, match="the journal does not hold 1 row"):
        desk.forget(rows=[{**good, "temp": 77.7}])
    for call in (lambda: desk.forget([999]), lambda: desk.row(10**30), lambda: desk.forget([True])):
        with pytest.raises(tb.DataError):
            call()
    gone = desk.forget([1])
    with pytest.raises(tb.CannotForget, match="row '1' is not counted"):
        desk.forget([1])
    desk.undo(gone.operation)
    assert (desk.digest, desk.version) == (digest, 3)


def test_a_model_that_came_without_a_journal_forgets_rows_it_was_made_of_and_takes_them_back(tmp_path: Path) -> None:
    rows, path = [row(i) for i in range(30)], tmp_path / "plain.tb.parquet"
    schema = tb.infer(rows, target="play")
    tb.count(rows, schema).model().save(path)
    with Desk.open(path) as desk:
        desk.learn([row(50)], new_classes="allow")
        forgotten = desk.forget(rows=[row(8)])
        consistent(desk, [*rows[:8], *rows[9:], row(50)])
        with pytest.raises(tb.CannotForget, match="cannot have had them"):
            desk.forget(rows=[{**row(50), "temp": 1e10}])
        desk.undo(forgotten.operation)
        consistent(desk, [*rows, row(50)])
        receipt = desk.erase("person", row(50)["person"])
        assert receipt.rows == 2  # row 8 is in the journal since it was forgotten
        assert receipt.unseen == 29


def test_the_pool(tmp_path: Path) -> None:
    rows = [row(i) for i in range(30)]
    for i in (4, 8, 9):
        rows[i]["play"] = None
    with Desk.begin(tmp_path / "m", rows, target="play", calibrate=False) as desk:
        labelled = [r for r in rows if r["play"] is not None]
        consistent(desk, labelled)
        assert desk.pool_size() == 3
        first, second, third = (r.id for r in desk.pool())
        assert [r.id for r in desk.pool(limit=1, after=first)] == [second]
        done = desk.label(first, "yes")
        consistent(desk, [*labelled, {**rows[4], "play": "yes"}])
        skipped = desk.skip(second)
        assert [r.id for r in desk.pool()] == [third]
        with pytest.raises(tb.DataError, match="is not in the pool: it has the label 'yes'"):
            desk.label(first, "no")
        with pytest.raises(tb.DataError, match="is not in the pool: it is skipped"):
            desk.skip(second)
        desk.undo(skipped.operation)
        desk.undo(done.operation)
        assert [r.id for r in desk.pool()] == [first, second, third]
        consistent(desk, labelled)
        more = desk.add_to_pool([row(60), {"sky": "grey"}])
        assert [r.id for r in desk.pool()] == [first, second, third, *more.rows]
        desk.label(more.rows[0], row(60)["play"])
        consistent(desk, [*labelled, row(60)])
        for wrong in ([{"ski": 1}], []):
            with pytest.raises(tb.DataError):
                desk.add_to_pool(wrong)


# ---- erasing


def bytes_of(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in sorted(folder.iterdir()))


SECRET = "Zebulon-Quarrel"


def test_of_an_erased_person_no_byte_is_left(folder: Path) -> None:
    path = folder / "m.tb.parquet"
    with Desk.open(path) as desk:
        own = [{**row(i), "person": SECRET, "sky": "lilacsky", "note": f"overheard {SECRET}"} for i in range(40)]
        ids = [desk.learn([each], ["onlyhers" if i % 2 else "yes"], new_classes="allow").rows[0]
               for i, each in enumerate(own)]  # fmt: skip
        others = desk.learn([row(i) for i in range(200, 240)], new_classes="allow")
        desk.relabel(ids[0], "wasthis", new_classes="allow")
        forgotten = desk.forget(ids[:3])
        desk.fold()
        old, digests = path.read_bytes(), [o.digest for o in desk.operations()]
        assert all(word in bytes_of(folder) for word in (SECRET.encode(), b"lilacsky", b"onlyhers", b"wasthis"))
        assert len(desk.found("person", SECRET)) == 40
        receipt = desk.erase("person", SECRET, who="the office")
        assert (receipt.rows, receipt.counted, receipt.unseen) == (40, 37, 0)
        assert (receipt.digest_before, receipt.digest) == (digests[0], desk.digest)
        rest = bytes_of(folder)
        told = (SECRET.encode(), b"lilacsky", b"onlyhers", b"wasthis", b"overheard", *(d.encode() for d in digests))
        assert [word for word in told if word in rest] == []
        consistent(desk, survivors(desk))
        assert desk.found("person", SECRET) == []
        with pytest.raises(CannotUndo, match="is for good"):
            desk.undo(receipt.operation)
        with pytest.raises(CannotUndo, match="would come back, and was erased"):
            desk.undo(forgotten.operation)
        with pytest.raises(CannotUndo, match="has no rows any more"):
            desk.undo(others.operation - 1)
        desk.undo(others.operation)
        consistent(desk, survivors(desk))
        with pytest.raises(tb.DataError, match="no row of the journal has this value"):
            desk.erase("person", SECRET)
    path.write_bytes(old)  # a backup of the model file would bring her back
    with pytest.raises(JournalError, match="is from before an erasure"):
        Desk.open(path)


@pytest.mark.parametrize("known", [False, True])
def test_an_erasure_that_was_cut_short_is_made_up_for_or_has_not_taken_place(
    known: bool, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images: list[Path] = []

    def image() -> None:
        images.append(tmp_path / f"image{len(images)}")
        shutil.copytree(folder, images[-1], ignore=shutil.ignore_patterns("*.lock"))

    def around(kind: type, name: str) -> None:
        real = getattr(kind, name)

        def watched(*given: Any, **more: Any) -> Any:
            image()
            out = real(*given, **more)
            image()
            return out

        monkeypatch.setattr(kind, name, watched)

    with Desk.open(folder / "m.tb.parquet") as desk:
        desk.learn([{**row(i), "person": SECRET} for i in range(30, 34)], new_classes="allow")
        if not known:  # counts that the journal has known before could be those of a file from before
            desk.learn([row(34)], new_classes="allow")
        before = desk.digest
        with monkeypatch.context() as monkeypatch:
            for kind, name in ((Journal, "announce"), (tb.Model, "save"), (Journal, "erase"), (Journal, "scrub")):
                around(kind, name)
            after = desk.erase("person", SECRET).digest
    assert len(images) == 8
    found = []
    for each in images:
        with Desk.open(each / "m.tb.parquet") as desk:
            found.append(desk.digest)
            consistent(desk, survivors(desk))
            assert len(desk.found("person", SECRET)) == (0 if desk.digest == after else 4)
        assert (SECRET.encode() in bytes_of(each)) == (found[-1] == before)
    assert found == ([before] * 5 + [after] * 3 if known else [before] * 3 + [after] * 5)


# ---- kill -9

LOOP = """
import sys
sys.path[:0] = {paths!r}
from taught import Desk, operation
with Desk.open(sys.argv[1]) as desk:
    print("ready", flush=True)
    while True:
        operation(desk)
        print(desk.version, desk.digest, flush=True)
"""


def left_after(version: int) -> list[dict[str, Any]]:
    """The rows that survive the first operations."""
    out = []
    for number in range(2, version + 1):
        group, step = divmod(number - 2, 5)
        if step < 4:
            out.append((group, step))
        else:
            out.remove((group, 0))
    return [row(4 * group + step) for group, step in out]


def test_kill_9_loses_no_acknowledged_operation(folder: Path) -> None:
    path, kills, last = folder / "m.tb.parquet", 20 if ALL else 2, 251 if ALL else 51  # 200 labels, 50 of them undone
    first = [row(i) for i in range(20)]
    paths = [str(TESTS), str(TESTS / "serve"), *sys.path]
    for kill in range(kills):
        code = [sys.executable, "-c", LOOP.format(paths=paths), str(path)]
        with subprocess.Popen(code, text=True, stdout=subprocess.PIPE) as process:
            try:
                seen = [process.stdout.readline()]
                with pytest.raises(JournalError, match="by another process"):
                    Desk.open(path)
                # killed after its first, second or third operation, or in the middle of the next
                seen += [process.stdout.readline() for _ in range(kill % 3 + 1)]
                time.sleep(random.Random(kill).uniform(0, 0.1))
            finally:
                process.kill()  # SIGKILL to this process and no other
            told = dict(re.findall(r"^(\d+) ([0-9a-f]{64})\n", "".join([*seen, process.stdout.read()]), re.M))
        assert tb.load(path).tally.rows  # the model file alone opens at any moment
        desk = Desk.open(path)
        held = {str(o.number): o.digest for o in desk.operations(limit=1000)}
        assert len(told) > kill % 3
        assert told.items() <= held.items()
        assert max(map(int, told)) <= desk.version <= max(map(int, told)) + 1
        consistent(desk, [*first, *left_after(desk.version)])
        desk._unfolded = 0  # closed as if it had been killed, too
        desk.close()
    with Desk.open(path) as desk:
        while desk.version < last:
            operation(desk)
        consistent(desk, [*first, *left_after(desk.version)])


# ---- readers beside the writer, a full disk, journals that do not belong


def test_readers_see_whole_states_and_do_not_wait_for_the_writer(desk: Desk) -> None:
    wrong, ended, seen, turns = [], threading.Event(), set(), [0, 0]
    known = {desk.digest}

    def read(which: int) -> None:
        while not ended.is_set():
            model = desk.model
            seen.add(model.tally.digest)
            if model.predict([row(1)]).tolist()[0] not in LABELS or desk.operations(limit=1)[0].rows < 0:
                wrong.append(model)
            turns[which] += 1

    threads = [threading.Thread(target=read, args=(i,)) for i in range(2)]
    for each in threads:
        each.start()
    with desk._turn:  # a writer that takes its time
        before = [*turns]
        until = time.monotonic() + 10
        while min(a - b for a, b in zip(turns, before, strict=True)) < 3 and time.monotonic() < until:
            time.sleep(0.005)
        assert min(a - b for a, b in zip(turns, before, strict=True)) >= 3
    for i in range(15):
        known.add(desk.learn([row(i)], new_classes="allow").digest)
    ended.set()
    for each in threads:
        each.join()
    assert not wrong and seen <= known


def test_a_desk_that_was_closed_writes_no_file(folder: Path) -> None:
    """Its lock is given back: another that serves the file by then would lose what it has learnt since."""
    path = folder / "m.tb.parquet"
    closed = Desk.open(path)
    closed.close()
    with Desk.open(path) as desk:
        desk.learn([row(500)], new_classes="allow")
        desk.fold()
        written = path.read_bytes()
        with pytest.raises(JournalError, match="has been closed"):
            closed.fold()
        assert path.read_bytes() == written


def test_a_full_disk_loses_nothing_and_is_told(folder: Path) -> None:
    path, unlimited = folder / "m.tb.parquet", resource.getrlimit(resource.RLIMIT_FSIZE)[1]
    desk = Desk.open(path)
    try:
        desk.learn([row(40)], new_classes="allow")
        digest, version, file = desk.digest, desk.version, path.read_bytes()
        room = (folder / "m.tb.parquet.journal-wal").stat().st_size
        resource.setrlimit(resource.RLIMIT_FSIZE, (room, unlimited))
        try:
            with pytest.raises(JournalError, match="nothing has been changed"):
                desk.learn([{**row(i), "note": "long " * 1000} for i in range(41, 60)], new_classes="allow")
            assert (desk.digest, desk.version) == (digest, version)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, unlimited))
            with pytest.raises(tb.FileError):
                desk.fold()
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (unlimited, unlimited))
        assert path.read_bytes() == file
        done = desk.learn([row(61)], new_classes="allow")  # once there is room again
        consistent(desk, survivors(desk))
    finally:
        desk.close()
    with Desk.open(path) as desk:
        assert (desk.digest, desk.version) == (done.digest, version + 1)


def test_journals_that_do_not_belong_are_refused_and_untouched(folder: Path, tmp_path: Path) -> None:
    path, journal = folder / "m.tb.parquet", folder / "m.tb.parquet.journal"
    good = path.read_bytes()
    tb.load(path).update([row(1)]).save(path)  # another program has changed the file
    with pytest.raises(JournalError, match="does not know the state"):
        Desk.open(path)
    path.unlink()
    with pytest.raises(JournalError, match=r"there is a journal .* but no model"):
        Desk.begin(path, table(range(20)), target="play")
    path.write_bytes(good)
    with pytest.raises(tb.DataError, match="already"):
        Desk.begin(path, table(range(20)), target="play")
    with sqlite3.connect(journal) as db:
        db.execute("PRAGMA user_version = 2")
    db.close()
    before = journal.read_bytes()
    with pytest.raises(JournalError, match="has the format 2; this release reads up to format 1"):
        Desk.open(path)
    assert journal.read_bytes() == before
    journal.unlink()
    with sqlite3.connect(journal) as db:
        db.execute("CREATE TABLE other (x)")
    db.close()
    with pytest.raises(JournalError, match="is another program's SQLite file"):
        Desk.open(path)
    journal.write_bytes(b"no database at all" * 100)
    with pytest.raises(JournalError, match="is not a journal of tallybayes"):
        Desk.open(path)
    assert journal.read_bytes() == b"no database at all" * 100


def test_a_row_that_the_disk_has_changed_is_found(folder: Path) -> None:
    path = folder / "m.tb.parquet"
    with Desk.open(path) as desk:
        desk.learn([{**row(5), "sky": "violet"}], new_classes="allow")
        desk._unfolded = 0
    with sqlite3.connect(f"{path}.journal") as db:
        db.execute("UPDATE rows SET content = replace(content, 'violet', 'violin')")
    db.close()
    with pytest.raises(tb.DataError, match="is not what was written"):
        Desk.open(path)


def test_a_beginning_that_was_cut_short_is_begun_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "m.tb.parquet"
    with monkeypatch.context() as patch:
        patch.setattr(tb.Model, "save", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            Desk.begin(path, table(range(20)), target="play", calibrate=False)
    assert not path.exists()
    with monkeypatch.context() as patch:
        patch.setattr(Journal, "begun", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            Desk.begin(path, table(range(20)), target="play", calibrate=False)
    with Desk.open(path) as desk:  # all of it is there but the last word
        assert desk.operations()[0].kind == "begin"
        assert len(survivors(desk)) == 20


def test_the_file_is_folded_now_and_then(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(desk_module, "FOLD_EVERY", 3)
    with Desk.open(folder / "m.tb.parquet") as desk:
        for i in range(30, 33):
            desk.learn([row(i)], new_classes="allow")
        assert tb.load(desk.path).tally.digest == desk.digest
