"""A model file that was cut, bent, or made to deceive; and a save that was interrupted at every step."""

from __future__ import annotations

import errno
import os
import pathlib
import resource
import signal
import stat
import struct
import subprocess
import sys
import time
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from strategies import ALL

import tallybayes as tb
from tallybayes.base import disk
from tallybayes.store import model_file, parquet
from tallybayes.store import parquet as compactthrift
from tallybayes.store import parquet as parquetsizes

SMALL = tb.count(
    {"sky": ["sunny", "rainy", "sunny", "grey"], "temp": [20.5, 7.0, None, 11.0], "play": ["yes", "no", "yes", "no"]},
    tb.Schema([tb.Column("sky", "category"), tb.Column("temp", "number")], target="play"),
).model()
RAW = model_file.to_bytes(SMALL)
OTHER = model_file.to_bytes(SMALL.update({"sky": ["grey"], "temp": [3.5], "play": ["no"]}))
NOISE = np.random.default_rng(5).bytes(5000)


# ---- bytes that changed


def refused(raw: bytes) -> bool:
    """Whether the bytes are refused in the library's own words; anything else that is raised fails the test."""
    try:
        model_file.from_bytes(raw)
    except tb.ModelFileError:
        return True
    return False


def test_the_file_itself_is_taken() -> None:
    assert not refused(RAW) and len(RAW) < 5000


def test_every_flipped_bit_is_noticed() -> None:
    rng = np.random.default_rng(0)
    places = rng.integers(0, len(RAW) * 8, 10_000 if ALL else 1_500)
    for place in [*range(64), *range(len(RAW) * 8 - 128, len(RAW) * 8), *places.tolist()]:
        bent = bytearray(RAW)
        bent[place // 8] ^= 1 << place % 8
        assert refused(bytes(bent)), f"bit {place} may change without a word"


def test_every_truncation_and_every_tail_is_noticed() -> None:
    for length in range(len(RAW)):
        assert refused(RAW[:length])
    assert all(refused(RAW[start:]) for start in range(1, len(RAW), 7)) and refused(RAW + b"\0") and refused(RAW + RAW)


def test_pieces_of_another_file_are_noticed() -> None:
    rng = np.random.default_rng(1)
    for _ in range(200):
        a, b = sorted(rng.integers(0, min(len(RAW), len(OTHER)), 2).tolist())
        mixed = RAW[:a] + OTHER[a:b] + RAW[b:]
        assert mixed == RAW or refused(mixed)


@pytest.mark.parametrize("raw", [b"", b"PAR1", b"PAR1" * 3, b"{}", b"\x80\x04N.", pytest.param(NOISE, id="noise")])
def test_what_is_no_model_file_is_refused(raw: bytes) -> None:
    assert refused(raw)


def test_messages_name_the_file_and_the_way_out(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "broken.tb.parquet"
    path.write_bytes(RAW[:-200])
    with pytest.raises(tb.ModelFileError, match=r"broken\.tb\.parquet: .*\n\nHint: "):
        tb.load(path)
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(tb.ModelFileError, match="like="):
        tb.load(path)
    with pytest.raises(FileNotFoundError):
        tb.load(tmp_path / "absent")


# ---- a right checksum on a wrong file


def with_checksum(raw: bytes) -> bytes:
    """The same bytes with the checksum that they should have: what somebody who means harm would do."""
    at = parquet._checksum_place(raw)
    assert at is not None
    return raw[:at] + parquet._checksum(raw, at).encode() + raw[at + 64 :]


def rewritten(**changes: str) -> bytes:
    """The small model with other texts in its metadata."""
    parts = parquet.unpack(RAW)
    texts = {k: v for k, v in parts.metadata.items() if k != parquet.PREFIX + "checksum"}
    texts.update({parquet.PREFIX + k: v for k, v in changes.items()})
    return parquet.pack(parts.table(), texts)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"format": "2"}, "update tallybayes"),
        ({"format": "0"}, "format '0'"),
        ({"kind": "pickle"}, "pickle"),
        ({"digest": "0" * 64}, "digest"),
        ({"schema": "{"}, "means nothing"),
        ({"schema": "[]"}, "version None"),
        ({"notes": '{"age": 3}'}, "digest"),
        ({"notes": "[]"}, "notes"),
        ({"settings": '{"smoothing": {"type": "os.system", "options": {}}}'}, "os.system"),
        ({"settings": '{"prior": {"map": [[{"list": []}, 1]]}}'}, "means nothing"),
        ({"settings": '{"prior": ' + '{"list": [' * 100 + "]}" * 100 + "}"}, "nested"),
        ({"settings": '{"smoothing": {"type": "Laplace", "options": {"alpha": "x"}}}'}, "alpha is 'x'"),
        ({"settings": '{"hidden": 1}'}, "hidden"),
        ({"settings": '{"families": {"map": [["temp", {"family": "eval", "options": {}}]]}}'}, "eval"),
        ({"families": '{"temp": 3}'}, "means nothing"),
        ({"sheets": '{"values": ["x"]}'}, "do not belong"),
    ],
)
def test_metadata_that_lie_are_refused(changes: dict[str, str], message: str) -> None:
    with pytest.raises(tb.TallybayesError, match=message):
        model_file.from_bytes(rewritten(**changes))


def test_flips_under_a_right_checksum_do_no_harm() -> None:
    """Damage that a checksum cannot show: what pyarrow sees is refused or means the same, and never crashes."""
    rng = np.random.default_rng(2)
    code = (
        "import sys, warnings\nfrom tallybayes.store import model_file\nimport tallybayes as tb\n"
        "warnings.simplefilter('ignore')\n"
        "raw = sys.stdin.buffer.read()\nsize = int.from_bytes(raw[:8], 'little')\n"
        "right = model_file.from_bytes(raw[8:8+size])\n"
        "for start in range(8, len(raw), size):\n"
        "    try:\n        model = model_file.from_bytes(raw[start:start+size])\n"
        "    except tb.TallybayesError:\n        continue\n"
        "    assert model.tally == right.tally and model.settings == right.settings\n"
        "print('alive')"
    )
    bent = [RAW]
    for place in rng.integers(32, len(RAW) * 8 - 64, 4_000 if ALL else 300).tolist():
        piece = bytearray(RAW)
        piece[place // 8] ^= 1 << place % 8
        if parquet._checksum_place(piece) is not None:
            bent.append(with_checksum(bytes(piece)))
    done = subprocess.run(
        [sys.executable, "-c", code],
        input=struct.pack("<q", len(RAW)) + b"".join(bent),
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0 and b"alive" in done.stdout, done.stderr.decode()[-2000:]


def absurd_files() -> dict[str, bytes]:
    """Files with a right checksum that ask for more memory than they have any reason to."""
    texts = {k: v for k, v in parquet.unpack(RAW).metadata.items() if not k.endswith("checksum")}
    ones = pa.DictionaryArray.from_arrays(pa.array(np.zeros(3_000_000, dtype=np.int8)), pa.array(["v"]))
    amounts = {n: pa.nulls(len(ones), pa.int64()) for n in ("x", "xx", "documents", "rows")}
    many = pa.table(
        {**dict.fromkeys(("column", "sheet", "slot", "class"), ones), "limb": np.zeros(len(ones), np.int32)}
        | {"n": np.ones(len(ones), np.int64)}
        | amounts
    )
    long = pa.table(
        {k: pa.array(["x" * (100 << 20 if k == "slot" else 1)]) for k in ("column", "sheet", "slot", "class")}
        | {"limb": pa.array([0], pa.int32()), **{n: pa.array([1]) for n in ("n", *amounts)}}
    )
    return {"rows": parquet.pack(many, texts), "texts": parquet.pack(long, texts)}


def test_absurd_sizes_are_refused_before_anything_is_allocated() -> None:
    for name, raw in absurd_files().items():
        assert len(raw) < 1 << 17
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        with pytest.raises(tb.ModelFileError, match="claims"):
            model_file.from_bytes(raw)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        assert grown < 20_000, f"{name}: {grown} kB"


def test_a_table_that_is_all_but_empty_is_refused_before_it_is_made(tmp_path: pathlib.Path) -> None:
    """A file of 100 kB: 20,000 values, each of a class of its own, of which a model would be 3 GB, several times."""
    each = [f"c{i}" for i in range(20_000)]
    tally = tb.count({"id": each, "y": each}, tb.Schema([tb.Column("id", "category")], target="y"))
    path = tmp_path / "wide.tb.parquet"
    tally.save(path)
    with pytest.raises(tb.ModelFileError, match="20,000 values, for a table by 20,000 classes of some 3 GB"):
        tb.load(path)
    assert tb.Tally.load(path) == tally


def test_pages_that_claim_more_than_their_chunk_are_refused() -> None:
    """The footer stays as it is and a page header lies: readers believe the header."""
    about = parquetsizes.read_footer(RAW)[4][0][1][2][3]
    start = min(about[9], about.get(11, about[9]))
    page, _ = compactthrift.read_struct(RAW, start, len(RAW))
    assert page[2] > 0 and page[3] > 0  # sizes, unpacked and packed
    lied = 0
    for at in range(start, start + 12):
        for value in (0x7F, 0x7E, 0xFF):
            raw = with_checksum(RAW[:at] + bytes([value]) + RAW[at + 1 :])
            lied += refused(raw)
    assert lied > 20


# ---- a save that was interrupted

CALLS = ("open", "write", "fsync", "close", "link", "replace", "stat", "fchmod")


class Stop(BaseException):
    """The process ends here, as far as the test is concerned."""


def broken(monkeypatch: pytest.MonkeyPatch, call: str, number: int, error: BaseException) -> list[int]:
    """Let the so-manieth use of a system call fail; the list counts the uses."""
    real, used = getattr(os, call), [0]

    def failing(*args: Any, **kwargs: Any) -> Any:
        used[0] += 1
        if used[0] == number:
            if call == "close":
                real(*args, **kwargs)
            raise error
        return real(*args, **kwargs)

    monkeypatch.setattr(disk.os, call, failing)
    return used


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "broken"), Stop()], ids=repr)
@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("nameless", [True, False])  # files without a name, which not every system has
def test_whatever_call_fails_the_old_or_the_new_model_is_there(
    nameless: bool, call: str, error: BaseException, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "m.tb.parquet"
    if not nameless:
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("no files without a name")
    number = 1
    while True:
        path.write_bytes(RAW)
        with pytest.MonkeyPatch.context() as patch:
            used = broken(patch, call, number, error)
            failed = False
            try:
                model_file.save(path, OTHER)
            except (OSError, Stop):
                failed = True
        assert path.read_bytes() in ((RAW, OTHER) if failed else (OTHER,))
        assert [p.name for p in tmp_path.iterdir()] == [path.name], "litter"
        tb.load(path)
        if used[0] < number:
            break
        number += 1
    assert number > 1 or (call == "link" and not nameless), f"{call} is not used: the test tests nothing"


def test_short_writes_are_continued(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(disk.os, "write", lambda file, data: real(file, data[:100]))
    SMALL.save(tmp_path / "m")
    assert (tmp_path / "m").read_bytes() == RAW


def test_a_full_disk_leaves_the_old_model(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "m.tb.parquet"
    path.write_bytes(RAW)
    code = (
        "import resource, signal, sys\nfrom tallybayes.store import model_file\n"
        "model = model_file.load(sys.argv[1])\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\nresource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n    model.save(sys.argv[1])\nexcept OSError as error:\n    print(error.errno)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=True)
    assert int(done.stdout) == errno.EFBIG
    assert path.read_bytes() == RAW and os.listdir(tmp_path) == [path.name]


def test_a_killed_save_leaves_the_old_or_the_new_model(tmp_path: pathlib.Path) -> None:
    """kill -9 at a random moment of a process that does nothing but save."""
    path, other = tmp_path / "m.tb.parquet", tmp_path / "other"
    path.write_bytes(RAW)
    other.write_bytes(OTHER)
    code = (
        "import sys\nfrom tallybayes.base import disk\n"
        "a, b = (open(p, 'rb').read() for p in sys.argv[1:3])\nprint('go', flush=True)\n"
        "while True:\n    for content in (b, a):\n        disk.write_atomically(sys.argv[1], content)\n"
    )
    rng = np.random.default_rng(3)
    for _ in range(60 if ALL else 6):
        process = subprocess.Popen([sys.executable, "-c", code, str(path), str(other)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        process.stdout.readline()
        time.sleep(float(rng.uniform(0, 0.05)))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert path.read_bytes() in (RAW, OTHER)
        tb.load(path)


def test_permissions_stay_and_links_are_followed(tmp_path: pathlib.Path) -> None:
    (tmp_path / "store").mkdir()
    path, link = tmp_path / "store" / "m.tb.parquet", tmp_path / "current"
    SMALL.save(path)
    path.chmod(0o640)
    link.symlink_to(path)
    SMALL.save(link)
    assert link.is_symlink() and stat.S_IMODE(path.stat().st_mode) == 0o640
    assert tb.load(link).tally == SMALL.tally and os.listdir(tmp_path / "store") == [path.name]


def test_what_is_no_file_is_not_replaced(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "folder").mkdir()
    for name in ("pipe", "folder"):
        with pytest.raises(OSError, match="not a regular file"):
            SMALL.save(tmp_path / name)
    assert sorted(os.listdir(tmp_path)) == ["folder", "pipe"]
    with pytest.raises(FileNotFoundError):
        SMALL.save(tmp_path / "absent" / "m")
