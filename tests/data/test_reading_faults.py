"""Reading what breaks: short reads, a disk that fails half-way, files that change meanwhile, streams that are cut.

An error of ours says which file and what to do, and nothing is half counted: the tally of before is what it was.
"""

from __future__ import annotations

import errno
import io
import json
import os
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tallybayes as tb
from tallybayes.base import disk
from tallybayes.data.files import file as file_module
from tallybayes.data.files import typed
from tallybayes.mail import boxes

SCHEMA = tb.Schema([tb.Column("age", "number"), tb.Column("city", "category")], target="y")
_RNG = np.random.default_rng(0)
ROWS = 12_000
TABLE = pa.table(
    {
        "age": _RNG.integers(0, 90, ROWS).astype(np.float64),
        "city": _RNG.choice(["Bonn", "Rome", "Oslo" + "o" * 60], ROWS),
        "y": _RNG.choice(["a", "b"], ROWS),
    }
)
BEFORE = tb.count({"age": [1.0, 2.0], "city": ["Bonn", None], "y": ["a", "b"]}, SCHEMA)
DIGEST = BEFORE.digest


def packed(raw: bytes, how: str) -> bytes:
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, how) as stream:
        stream.write(raw)
    content: bytes = out.getvalue().to_pybytes()
    return content


def arrow_file(path: str) -> None:
    with pa.ipc.new_file(path, TABLE.schema) as writer:
        for batch in TABLE.to_batches(1_200):
            writer.write_batch(batch)


@pytest.fixture(scope="module")
def contents(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The same rows in every form, each of several batches."""
    folder = tmp_path_factory.mktemp("contents")
    rows = TABLE.to_pylist()
    csv = ("age,city,y\n" + "".join(f"{r['age']},{r['city']},{r['y']}\n" for r in rows)).encode()
    lines = "".join(json.dumps(r) + "\n" for r in rows).encode()
    pq.write_table(TABLE, folder / "t.parquet", row_group_size=1_200, write_page_checksum=True)
    arrow_file(str(folder / "t.arrow"))
    return {
        "t.csv": csv, "t.jsonl": lines, "t.csv.gz": packed(csv, "gzip"), "t.csv.zst": packed(csv, "zstd"),
        "t.jsonl.gz": packed(lines, "gzip"), "t.parquet": (folder / "t.parquet").read_bytes(),
        "t.arrow": (folder / "t.arrow").read_bytes(),
    }  # fmt: skip


NAMES = ("t.csv", "t.jsonl", "t.csv.gz", "t.csv.zst", "t.jsonl.gz", "t.parquet", "t.arrow")
STREAMED = NAMES[:5]
EXPECTED = tb.count(TABLE, SCHEMA)


def refused(data: Any, *words: str) -> tb.DataError:
    """The error of counting some data on top of a tally, which stays as it was."""
    with pytest.raises(tb.DataError) as found:
        BEFORE.update(data)
    assert all(word in str(found.value) for word in words), str(found.value)
    assert found.value.hint and tb.Tally(SCHEMA, BEFORE.classes, BEFORE.labels, BEFORE.columns).digest == DIGEST
    return found.value


# ---- a disk that reads little at a time, or fails


class Faulty(io.RawIOBase):
    """A file that gives a few bytes at a time, and fails from a place on."""

    def __init__(self, raw: bytes, fails_at: int | None, most: int) -> None:
        self._raw, self._at, self._fails_at, self._most = raw, 0, fails_at, most

    def read(self, size: int = -1) -> bytes:
        size = min(len(self._raw) if size is None or size < 0 else size, self._most)
        if self._fails_at is not None and self._at + size > self._fails_at:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        self._at += size
        return self._raw[self._at - size : self._at]

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, place: int, whence: int = 0) -> int:
        self._at = place + (0, self._at, len(self._raw))[whence]
        return self._at

    def tell(self) -> int:
        return self._at


def played(monkeypatch: pytest.MonkeyPatch, raw: bytes, fails_at: int | None, most: int) -> None:
    """Let every reader get its bytes from a faulty file."""
    stream, parquet = pa.input_stream, pq.ParquetFile
    monkeypatch.setattr(
        file_module.pa,
        "input_stream",
        lambda path, **how: stream(pa.PythonFile(Faulty(raw, fails_at, most)), compression=how["compression"]),
    )
    whole = 1 << 30  # of short reads pyarrow makes short pages by itself
    monkeypatch.setattr(
        typed.pq, "ParquetFile", lambda path, **how: parquet(pa.PythonFile(Faulty(raw, fails_at, whole)), **how)
    )


@pytest.mark.parametrize("name", STREAMED)
def test_short_reads_count_the_same(
    name: str, contents: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(contents[name])
    with monkeypatch.context() as patch:
        played(patch, contents[name], None, 7_001)
        assert tb.count(tmp_path / name, SCHEMA) == EXPECTED


@pytest.mark.parametrize("share", [0.0, 0.3, 0.97])
@pytest.mark.parametrize("name", [*STREAMED, "t.parquet"])
def test_a_disk_that_fails_half_way(
    name: str, share: float, contents: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(raw := contents[name])
    with monkeypatch.context() as patch:
        played(patch, raw, int(share * len(raw)), 1 << 16)
        refused(tmp_path / name, name, "Input/output error")
    assert tb.count(tmp_path / name, SCHEMA) == EXPECTED


@pytest.mark.parametrize("name", NAMES)
def test_a_file_whose_first_bytes_cannot_be_read(
    name: str, contents: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / name).write_bytes(contents[name])
    with monkeypatch.context() as patch:
        patch.setattr(file_module, "open", lambda path, mode: Faulty(b"", 0, 1), raising=False)
        patch.setattr(Faulty, "read", lambda self, size: (_ for _ in ()).throw(OSError(errno.EIO, "broken")))
        refused(tmp_path / name, name, "broken")


# ---- files that change


def grow(path: Path, raw: bytes) -> None:
    with open(path, "ab") as file:
        file.write(raw[-2_000:])


def shrink(path: Path, raw: bytes) -> None:
    os.truncate(path, len(raw) // 2)


def rewrite(path: Path, raw: bytes) -> None:
    """In place, of the same size."""
    path.write_bytes(raw.replace(b"Bonn", b"Nonb"))


def replace(path: Path, raw: bytes) -> None:
    (path.parent / "new").write_bytes(raw)
    os.replace(path.parent / "new", path)


def remove(path: Path, raw: bytes) -> None:
    path.unlink()


@pytest.mark.parametrize("change", [grow, shrink, rewrite, replace, remove], ids=lambda f: f.__name__)
@pytest.mark.parametrize("name", NAMES)
def test_a_file_that_changes_while_it_is_read(
    name: str, change: Callable[[Path, bytes], None], contents: dict[str, bytes], tmp_path: Path
) -> None:
    path, raw, told = tmp_path / name, contents[name], [0]
    path.write_bytes(raw)

    def changed_once(rows: int, share: float | None) -> None:
        told[0] += 1
        if told[0] == 1:
            change(path, raw)

    error = refused(tb.read(path, memory_limit="32MiB", progress=changed_once), name)
    assert told[0] >= 1
    expected = {"remove": ["there is no file"]}.get(change.__name__, ["changed while", "cannot be", "line "])
    assert any(words in error.found for words in expected), error.found
    path.write_bytes(raw)
    assert tb.count(path, SCHEMA) == EXPECTED


def test_an_arrow_file_that_is_cut_ends_in_an_error_not_in_the_process(tmp_path: Path) -> None:
    """A file that is mapped into memory and cut short ends whoever reads it on."""
    code = (
        "import os, sys\nsys.path[:0] = sys.argv[2:]\nimport tallybayes as tb\nimport test_reading_faults as t\n"
        "t.arrow_file(sys.argv[1])\n"
        "source = tb.read(sys.argv[1], progress=lambda rows, share: os.truncate(sys.argv[1], 100))\n"
        "try:\n    tb.count(source, t.SCHEMA)\nexcept tb.DataError as error:\n    print('refused', error)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "t.arrow"), *sys.path]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "refused" in done.stdout and "t.arrow" in done.stdout, (
        done.returncode,
        done.stderr,
    )


def test_a_bent_page_of_a_parquet_file_with_checksums(contents: dict[str, bytes], tmp_path: Path) -> None:
    raw = bytearray(contents["t.parquet"])
    raw[len(raw) // 3] ^= 4
    (tmp_path / "t.parquet").write_bytes(raw)
    refused(tmp_path / "t.parquet", "t.parquet", "cannot be read")


@pytest.mark.parametrize("name", NAMES[2:5])
def test_a_packed_file_cut_anywhere(name: str, contents: dict[str, bytes], tmp_path: Path) -> None:
    raw = contents[name]
    for length in (30, len(raw) // 2, len(raw) - 9, len(raw) - 1):
        (tmp_path / name).write_bytes(raw[:length])
        refused(tmp_path / name, name, "cannot be unpacked")


def test_a_bad_line_far_down_is_named(contents: dict[str, bytes], tmp_path: Path) -> None:
    lines = contents["t.csv"].split(b"\n")
    lines[11_500] = b"1,2,3,4"
    (tmp_path / "t.csv").write_bytes(b"\n".join(lines))
    refused(tmp_path / "t.csv", "t.csv, line 11501", "4 or more fields where the header has 3")
    (tmp_path / "t.csv.zst").write_bytes(packed(b"\n".join(lines), "zstd"))
    refused(tmp_path / "t.csv.zst", "t.csv.zst, line 11501", "4 or more fields where the header has 3")


# ---- streams that are cut


def test_an_arrow_stream_through_a_pipe_that_is_cut() -> None:
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, TABLE.schema) as writer:
        for batch in TABLE.to_batches(1_200):
            writer.write_batch(batch)
    raw = out.getvalue().to_pybytes()
    reading, writing = os.pipe()

    def feed() -> None:
        with os.fdopen(writing, "wb") as pipe:
            pipe.write(raw[: len(raw) // 2])

    feeder = threading.Thread(target=feed)
    feeder.start()
    with os.fdopen(reading, "rb") as pipe:
        refused(pa.ipc.open_stream(pa.PythonFile(pipe)), "the Arrow stream breaks off after ")
    feeder.join()


def test_queries_that_break_off() -> None:
    con = sqlite3.connect(":memory:")
    con.execute("CREATE TABLE t (age, city, y)")
    con.executemany("INSERT INTO t VALUES (?, ?, ?)", [(i, "Bonn", "a") for i in range(20_000)])
    con.create_function("fails", 1, lambda age: 1 // 0 if age == 19_000 else age)
    source = tb.read("SELECT fails(age) AS age, city, y FROM t", connection=con)
    refused(source, "the query breaks off after 10,752 rows")
    con.close()
    duck = duckdb.connect()
    relation = duck.sql(
        "SELECT CASE WHEN range = 99 THEN error('boom') ELSE range END AS age, 'x' AS city, 'a' AS y FROM range(100)"
    )
    refused(relation, "the query breaks off", "boom")
    duck.close()


def test_rows_of_a_caller_that_fail_stay_the_callers_error(tmp_path: Path) -> None:
    def rows() -> Iterator[dict[str, Any]]:
        yield {"age": 1, "city": "Bonn", "y": "a"}
        raise OSError(errno.EIO, "my own disk")

    with pytest.raises(OSError, match="my own disk"):
        BEFORE.update(rows())
    model = EXPECTED.model()
    with pytest.raises(OSError, match="my own disk") as found:
        tb.predict_file(model, rows(), tmp_path / "out.csv")
    assert not isinstance(found.value, tb.TallybayesError) and not os.listdir(tmp_path)


# ---- models, tallies, schemas: read whole


MODEL = tb.count(TABLE.slice(0, 200), SCHEMA).model()
KEPT: dict[str, tuple[Callable[[Path], object], Callable[[Path], Any]]] = {
    "model": (MODEL.save, tb.load),
    "tally": (BEFORE.save, tb.Tally.load),
    "sealed": (lambda path: MODEL.export(path, "sealed"), tb.load_sealed),
    "schema": (SCHEMA.save, tb.Schema.load),
}


class Watched(io.FileIO):
    """A file that something happens to once it was read."""

    happens: Callable[[], None]

    def read(self, size: int | None = -1) -> bytes:
        out = super().read(-1 if size is None else size)
        type(self).happens()
        return out or b""


@pytest.mark.parametrize("what", KEPT)
def test_a_stored_file_that_changes_or_fails_while_it_is_read(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save, load = KEPT[what]
    path = tmp_path / what
    save(path)
    raw = path.read_bytes()

    def fails() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    happenings: list[tuple[Callable[[], object], str]] = [
        (lambda: grow(path, raw), "changed while it was being read"),
        (lambda: os.truncate(path, 10), "changed while it was being read"),
        (lambda: path.write_bytes(raw[::-1]), "changed while it was being read"),
        (fails, "cannot be read: Input/output error"),
    ]
    for happens, words in happenings:
        path.write_bytes(raw)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "open", lambda path, mode: Watched(path), raising=False)
            patch.setattr(Watched, "happens", happens, raising=False)
            with pytest.raises(tb.FileError, match=words) as found:
                load(path)
        assert str(path) in found.value.found and found.value.hint
    path.write_bytes(raw)
    load(path)
    with pytest.raises(FileNotFoundError, match="cannot be read: No such file") as absent:
        load(tmp_path / "absent")
    assert isinstance(absent.value, tb.FileError)
    with pytest.raises(IsADirectoryError, match="name a file"):
        load(tmp_path)


# ---- mail


def letters(count: int) -> bytes:
    return b"".join(
        b"From a@x.example Mon Jan  1 10:00:00 2024\nFrom: a@x.example\nMessage-ID: <%d@x>\n\nbody %d\n\n" % (i, i)
        for i in range(count)
    )


@pytest.mark.parametrize("change", [grow, shrink, rewrite], ids=lambda f: f.__name__)
def test_a_mail_box_that_changes_gives_whole_messages_and_then_an_error(
    change: Callable[[Path, bytes], None], tmp_path: Path
) -> None:
    path = tmp_path / "box.mbox"
    path.write_bytes(raw := letters(3_000))
    expected = [message for _, message, _ in boxes.read_mail(path)]
    given: list[bytes] = []

    def read_on() -> None:
        for _, message, _ in boxes.read_mail(path):
            given.append(message)
            if len(given) == 100:
                change(path, raw)

    with pytest.raises(tb.DataError, match="changed while it was being read"):
        read_on()
    assert 100 <= len(given) < len(expected) and given == expected[: len(given)]


def test_a_message_that_changes_or_fails_while_it_is_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "one.eml"
    path.write_bytes(b"From: a@x.example\n\nbody\n")

    def fails() -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    for happens, words in ((lambda: grow(path, b"more"), "changed while"), (fails, "Input/output error")):
        messages = boxes.read_mail(path)
        with monkeypatch.context() as patch:
            patch.setattr(boxes, "open", lambda path, mode: Watched(path), raising=False)
            patch.setattr(Watched, "happens", happens, raising=False)
            with pytest.raises(tb.DataError, match=words):
                next(messages)
