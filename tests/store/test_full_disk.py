"""A disk that is full at every write in turn, and folders and files that another user may not touch.

What stood there before is as it was, nothing is left lying about, and the error names the file and the way out.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from letters import letter
from strategies import ALL

import tallybayes as tb
from tallybayes.base.errors import CannotForget
from tallybayes.explain.report.page import report
from tallybayes.mail.filter import LABELS, Filter
from tallybayes.mail.store import StateError, rows_tally

NOBODY = 65534
DATA = {"sky": ["sunny", "rainy", "grey"] * 40, "temp": [20.5, 7.0, None] * 40, "play": ["yes", "no", "no"] * 40}
SCHEMA = tb.Schema([tb.Column("sky", "category"), tb.Column("temp", "number")], target="play")
MODEL = tb.count(DATA, SCHEMA).model()
OUTPUTS: dict[str, Callable[[Path], Any]] = {
    "model": MODEL.save,
    "tally": lambda path: MODEL.tally.save(path),  # type: ignore[union-attr]
    "schema": SCHEMA.save,
    "sealed": lambda path: MODEL.export(path, "sealed"),
    "json": lambda path: MODEL.export(path, "json"),
    "card": lambda path: MODEL.export(path, "card"),
    "report": lambda path: report(MODEL, {name: values[:6] for name, values in DATA.items()}, path),
    **{
        f"p.{end}": (lambda path: tb.predict_file(MODEL, DATA, path))
        for end in ("csv", "jsonl", "parquet", "csv.gz", "jsonl.zst")
    },
}


def run(code: str, *arguments: object, before: Sequence[str] = ()) -> dict[str, Any]:
    """What a Python of its own prints as JSON; it knows this module as `t`. `before` is a command that runs it."""
    start = (
        f"import sys, json\nsys.path[:0] = {[str(Path(__file__).parent), *sys.path]!r}\nimport test_full_disk as t\n"
    )
    command = [*before, sys.executable, "-c", f"{start}print(json.dumps({code}))", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found: dict[str, Any] = json.loads(done.stdout)
    return found


# ---- files that are written whole


def written_with_little_room(folder: str) -> dict[str, list[str]]:
    """For every sort of file what goes wrong with room for less than it has; each time the old one must be there."""
    wrong: dict[str, list[str]] = {}
    for name, write in OUTPUTS.items():
        path = Path(folder, name)
        write(path)
        size, problems = path.stat().st_size, wrong.setdefault(name, [])
        path.write_bytes(old := b"as it was")
        for room in [size - 1] if name == "report" else sorted({0, 1, 100, *range(0, size, size // 12), size - 1}):
            resource.setrlimit(resource.RLIMIT_FSIZE, (room, resource.RLIM_INFINITY))
            try:
                write(path)
                problems.append(f"written with room for {room} of {size} bytes")
            except tb.FileError as error:
                if str(path) not in error.found or not error.hint or not isinstance(error, OSError):
                    problems.append(str(error))
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            if path.read_bytes() != old or os.listdir(folder) != [name]:
                problems.append(f"with room for {room} bytes {os.listdir(folder)} are left")
        path.unlink()
    return wrong


def test_no_output_is_written_by_half(tmp_path: Path) -> None:
    wrong = run("t.written_with_little_room(sys.argv[1])", tmp_path)
    assert wrong == {name: [] for name in OUTPUTS}


# ---- the state of a mail filter


def state(path: str) -> tuple[str, dict[str, Any]]:
    """The digest of a state that is opened anew, which must be that of its rows, and all that was learnt by its id."""
    with Filter(path) as box:
        learnt = {message.id: message for message in box.store.messages()}
        assert box.tally == rows_tally(box.store.schema, list(learnt.values())), "counts and messages disagree"
        return box.digest, learnt


def changed_with_little_room(path: str, rooms: list[int], limit: Callable[[int | None], None]) -> dict[str, Any]:
    """Learn and unlearn with so much room: what was refused, and what was wrong with the state afterwards."""
    with Filter(path) as box:
        box.train([(label, letter(i, label)) for i in range(10) for label in LABELS])
    problems, refused, before = [], 0, state(path)
    for step, room in enumerate(rooms):
        own, forgotten = 1000 * (step + 1), step // 3
        changes: list[Callable[[Filter], Any]] = [
            lambda box, own=own: box.train([("spam", letter(own + i, "spam")) for i in range(30)]),
            lambda box, i=forgotten: box.unlearn(letter(i, "ham")),
            lambda box, own=own: box.learn(letter(own, "ham"), "ham"),
        ]
        done = False
        with Filter(path) as box:
            limit(room)
            try:
                changes[step % 3](box)
                done = True
            except CannotForget:  # it went when there was room
                continue
            except StateError as error:
                refused += 1
                if path not in error.found or "room on the disk" not in error.hint:
                    problems.append(str(error))
            finally:
                limit(None)
        after = state(path)
        if not done and after != before:
            problems.append(
                f"refused with room for {room} bytes, and yet {len(after[1])} for {len(before[1])} messages"
            )
        if done and len(after[1]) - len(before[1]) != (30, -1, 1)[step % 3]:
            problems.append(f"done with room for {room} bytes: {len(after[1])} for {len(before[1])} messages")
        before = after
    return {"problems": problems, "refused": refused, "done": len(rooms) - refused}


def limit_size(room: int | None) -> None:
    resource.setrlimit(
        resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY if room is None else room, resource.RLIM_INFINITY)
    )


def rooms(most: int, steps: int) -> list[int]:
    """Three of each, so that all three sorts of change meet it: parts of a page, and then pages in even steps."""
    every = range(4096, most, 4096)
    return [room for room in (0, 1, 511, 513, *every[:: max(len(every) // steps, 1)]) for _ in range(3)]


STEPS = 60 if ALL else 5


def test_the_state_of_a_filter_under_a_limit_of_every_size(tmp_path: Path) -> None:
    code = "t.changed_with_little_room(sys.argv[1], t.rooms(240_000, t.STEPS), t.limit_size)"
    found = run(code, tmp_path / "state")
    assert found["problems"] == [] and found["refused"] > 8 and found["done"] > 3, found


def fill(folder: str) -> Callable[[int | None], None]:
    """A function that leaves so much room on a small disk, and no more."""
    filler = os.path.join(folder, "filler")

    def limit(room: int | None) -> None:
        if os.path.exists(filler):
            os.unlink(filler)
        if room is not None:
            free = os.statvfs(folder).f_bavail * os.statvfs(folder).f_frsize
            with open(filler, "wb") as file:
                file.write(bytes(max(free - room, 0)))

    return limit


def test_the_state_of_a_filter_on_a_disk_that_is_full(tmp_path: Path) -> None:
    """A real disk of two megabytes, in a name space of its own; where that may be made."""
    probe = ["unshare", "-m", "mount", "-t", "tmpfs", "-o", "size=2m", "none", str(tmp_path)]
    if shutil.which("unshare") is None or subprocess.run(probe, capture_output=True, check=False).returncode != 0:
        pytest.skip("no disk can be made here")
    code = "t.changed_with_little_room(sys.argv[1] + '/state', t.rooms(160_000, t.STEPS), t.fill(sys.argv[1]))"
    disk = ["unshare", "-m", "sh", "-c", f'mount -t tmpfs -o size=2m none "{tmp_path}" && exec "$@"', "sh"]
    found = run(code, tmp_path, before=disk)
    assert found["problems"] == [] and found["refused"] > 8 and found["done"] > 3, found


# ---- as another user


@pytest.fixture
def guarded() -> Iterator[Path]:
    """A folder that others may look into, with files that they may not read, and a folder they may not write to."""
    folder = Path(tempfile.mkdtemp(prefix="guarded-"))
    folder.chmod(0o755)
    (folder / "closed").mkdir(mode=0o755)
    MODEL.save(folder / "model")
    (folder / "t.csv").write_text("sky,temp,play\nsunny,1,yes\nrainy,2,no\n")
    shutil.copy(folder / "t.csv", folder / "secret.csv")
    SCHEMA.save(folder / "schema")
    MODEL.export(folder / "sealed", "sealed")
    (folder / "one.eml").write_bytes(letter(1, "ham"))
    with Filter(folder / "state") as box:
        box.train([("ham", letter(i, "ham")) for i in range(3)])
    shutil.copy(folder / "state", folder / "closed" / "state")
    for name in ("secret.csv", "model", "sealed", "schema", "one.eml", "state"):
        (folder / name).chmod(0)
    (folder / "t.csv").chmod(0o644)
    (folder / "closed" / "state").chmod(0o644)
    (folder / "closed").chmod(0o555)
    yield folder
    (folder / "closed").chmod(0o755)
    shutil.rmtree(folder)


def tried(folder: str) -> dict[str, list[str]]:
    """What each of these says to a user who may not: the class of the error, what was found, and the hint."""
    from tallybayes.mail.boxes import read_mail

    at = Path(folder)
    model = MODEL
    tries: dict[str, Callable[[], Any]] = {
        "secret.csv": lambda: tb.count(at / "secret.csv", SCHEMA),
        "model": lambda: tb.load(at / "model"),
        "tally": lambda: tb.Tally.load(at / "model"),
        "sealed": lambda: tb.load_sealed(at / "sealed"),
        "schema": lambda: tb.Schema.load(at / "schema"),
        "one.eml": lambda: list(read_mail(at / "one.eml")),
        "state": lambda: Filter(at / "state"),
        "closed/m": lambda: model.save(at / "closed" / "m"),
        "closed/t": lambda: MODEL.tally.save(at / "closed" / "t"),  # type: ignore[union-attr]
        "closed/p.csv": lambda: tb.predict_file(model, at / "t.csv", at / "closed" / "p.csv"),
        "closed/new": lambda: Filter(at / "closed" / "new"),
        "closed/state": lambda: Filter(at / "closed" / "state").learn(letter(os.geteuid() + 50, "ham"), "ham"),
    }
    said: dict[str, list[str]] = {}
    for round_ in ("as owner", "as another"):  # whatever is imported is imported while it may be read
        if round_ == "as another" and os.geteuid() == 0:
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
        for name, attempt in tries.items():
            try:
                attempt()
                said[name] = ["nothing", "", ""]
            except tb.TallybayesError as error:
                said[name] = [type(error).__name__, error.found, error.hint]
            except OSError as error:
                said[name] = ["not ours", repr(error), ""]
        if round_ == "as owner":
            for new in ("m", "t", "p.csv", "new"):
                Path(folder, "closed", new).unlink(missing_ok=True)
    return said


def test_another_user_is_told_what_and_where_and_how(guarded: Path) -> None:
    before = {path: path.stat().st_mtime_ns for path in sorted(guarded.rglob("*"))}
    said = run("t.tried(sys.argv[1])", guarded)
    for name, (kind, found, hint) in said.items():
        place = str(guarded / {"tally": "model"}.get(name, name))
        assert kind not in ("nothing", "not ours") and place in found.replace("//", "/") and hint, (name, kind, found)
    if os.geteuid() != 0:
        assert {path: path.stat().st_mtime_ns for path in sorted(guarded.rglob("*"))} == before
    assert sorted(os.listdir(guarded / "closed")) == ["state"]
