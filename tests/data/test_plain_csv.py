"""Plain lines of a long CSV file are read by kernels, to the same columns, bit for bit, as those that Arrow makes."""

from __future__ import annotations

import struct
import tracemalloc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples

import tallybayes as tb
from tallybayes.data.files import quick_csv
from tallybayes.data.files.file import Options
from tallybayes.data.files.quick_csv import KINDS, LONG_FILE, NUMBER, TEXT, CsvLayout, Pieces
from tallybayes.exact.kernels import gate

pytest.importorskip("numba", reason="without Numba every line goes to Arrow")

NAMES = ("n", "c", "t", "m")
TYPES = [NUMBER, KINDS["category"], TEXT, NUMBER]
CHOSEN = [0, 1, 2, 3]
ODD_NUMBERS = [
    "",
    "-",
    "+1",
    "1.",
    ".5",
    "-.5",
    "1e5",
    "2E-7",
    "nan",
    "-inf",
    " 5",
    "5 ",
    "1 2",
    "007",
    "-0",
    "0x1",
    "1_0",
]
ODD_NUMBERS += [
    "9007199254740992",
    "9007199254740993",
    "123456789012345678901",
    "0.1234567890123456789",
    "1e400",
    "1e-400",
]
ODD_NUMBERS += [
    "1.2.3",
    "12..5",
    "--1",
    "1-2",
    "5\0",
    "５",
    "1/2",
    "1:2",
    "N/A",
    "1,5",
    ".",
    "-.",
    "12:",
    "12/",
    "1234567:",
]


@pytest.fixture(autouse=True)
def _kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TALLYBAYES_KERNELS", "on")
    monkeypatch.setenv("TALLYBAYES_THREADS", "1")  # on several, what a piece is read as depends on who was first


def read(body: bytes, *, size: int, block: int = 1 << 20, bad_lines: str = "error", names: tuple = NAMES) -> list:
    """Each piece: its columns' types and values, the bits of numbers, and the faults."""
    layout, chosen = CsvLayout(names, ",", 0, 10.0), CHOSEN[: len(names)]
    whole, out = b",".join(n.encode() for n in names) + b"\n" + body, []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Options, "block_bytes", block)
        pieces = Pieces(layout, Options(bad_lines=bad_lines), chosen, TYPES[: len(names)], size)
        for piece in pieces.read(whole[i : i + block] for i in range(0, len(whole), block)):
            columns = [(str(c.type), [_bits(v) for v in c.to_pylist()]) for c in piece.columns]
            out.append((piece.offset, piece.block, columns, list(piece.faults)))
            for column in piece.columns:
                column.validate(full=True)
            if piece.faults and bad_lines == "error":
                break
    return out


def _bits(value: Any) -> Any:
    if not isinstance(value, float):
        return value
    return "nan" if value != value else struct.pack("<d", value)


def same(body: bytes, **options: Any) -> bool:
    """Whether both roads give the same; True if the kernels have read any of it."""
    taken = []
    with pytest.MonkeyPatch.context() as patch:
        own = quick_csv._plain

        def seen(*given: Any) -> Any:
            taken.append(own(*given))
            return taken[-1]

        patch.setattr(quick_csv, "_plain", seen)
        by_kernels = read(body, size=LONG_FILE, **options)
    assert by_kernels == read(body, size=0, **options)
    return any(t is not None for t in taken)


digits = st.text("0123456789", min_size=1, max_size=20)
plain_numbers = st.builds(
    lambda sign, whole, fraction: sign + whole + (f".{fraction}" if fraction else ""),
    st.sampled_from(["", "", "-"]),
    st.text("0123456789", min_size=1, max_size=9),
    st.one_of(st.just(""), st.text("0123456789", min_size=1, max_size=8)),
)
numbers = st.one_of(
    plain_numbers,
    plain_numbers,
    digits,
    st.floats(allow_nan=False, allow_infinity=False).map(repr),
    st.sampled_from(ODD_NUMBERS),
    st.text("0123456789.-+eE /:", max_size=12),
)
cells = st.one_of(st.text("ab 1.é日\0", max_size=6), st.text("xyz", min_size=60, max_size=70), st.just(""))
plain_rows = st.builds(lambda *row: ",".join(row), plain_numbers, cells, cells, plain_numbers)
rows = st.one_of(
    plain_rows,
    plain_rows,
    st.builds(lambda *row: ",".join(row), numbers, cells, cells, numbers),
    st.sampled_from(
        ["", "1,a", "1,a,b,2,", "1,a,b,2,3", ",,,", '1,"a,b",c,2', '1,"a""b",c,2', '1,a"b,c,2', ' "x" ,a,b,c']
    ),
)
ends = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])
bodies = st.tuples(st.lists(st.tuples(rows, ends), max_size=12), rows).map(
    lambda some: ("".join(row + end for row, end in some[0]) + some[1]).encode()
)
uniform = st.tuples(st.lists(plain_rows, min_size=1, max_size=20), st.sampled_from(["\n", "\r\n"]), st.booleans()).map(
    lambda some: (some[1].join(some[0]) + some[1] * some[2]).encode()
)


@given(uniform, st.sampled_from([40, 1 << 20]))
@examples(150)
def test_plain_lines_are_read_as_arrow_reads_them(body: bytes, block: int) -> None:
    assert same(body, block=block)  # and it is the kernels who have read them


@given(bodies, st.sampled_from([40, 1 << 20]), st.sampled_from(["error", "skip"]))
@examples(200)
@example(b"1,a,b,2\n\xff,a,b,2\n", 1 << 20, "error")
@example(b"1,a,b,2\n1,\xff,b,2\n", 1 << 20, "error")
@example(b"1,a,b,2\n1,a,\xe9\x00,2\n3,a,b,4", 1 << 20, "skip")
@example(b"\xef\xbb\xbf1,a,b,2\n", 1 << 20, "error")
@example(b"1,a,b,2\r\r\n3,a,b,4\n", 1 << 20, "error")
@example(b"1,a\rb,c,2\n1,a\r,c,2\n", 1 << 20, "skip")
@example(b"\r\n\n\r\n1,a,b,2\r\n", 1 << 20, "error")
@example(b"", 1 << 20, "error")
def test_any_lines_are_read_as_arrow_reads_them(body: bytes, block: int, bad_lines: str) -> None:
    same(body, block=block, bad_lines=bad_lines)


@given(bodies, st.integers(0, 60), st.binary(min_size=1, max_size=2))
@examples(60)
def test_broken_bytes_are_refused_alike(body: bytes, place: int, broken: bytes) -> None:
    same(body[:place] + broken + body[place:])


@pytest.mark.parametrize("cell", ODD_NUMBERS)
@pytest.mark.parametrize("before", [0, 1, 20])
def test_a_number_that_is_not_plain_is_what_arrow_takes_it_for(cell: str, before: int) -> None:
    same(b"1.5,a,b,-2\n" * before + cell.encode() + b",a,b,3\n" + b"2.5,a,b,7\n" * 3)


@given(st.lists(st.one_of(plain_numbers, st.decimals(-1e9, 1e9, allow_nan=False).map("{:f}".format)), min_size=1))
@examples(150)
def test_numbers_are_the_nearest_to_what_is_written(written: list[str]) -> None:
    """Python's own reading is the oracle, not Arrow's."""
    body = "".join(f"{cell},a,b,{cell}\n" for cell in written).encode()
    (piece,) = read(body, size=LONG_FILE)
    wanted = [struct.pack("<d", float(cell)) for cell in written]
    assert piece[2][0][1] == wanted
    assert piece[2][3][1] == wanted


def test_pieces_in_vain_are_not_many(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []
    monkeypatch.setattr(quick_csv, "_plain", lambda *given: asked.append(given))
    read(b" 1,a,b,2\n" * 400, size=LONG_FILE, block=40)
    assert len(asked) == 3
    read(b"1,a,b,2\n" * 400, size=LONG_FILE - 1, block=40)
    assert len(asked) == 3  # a short file is Arrow's


@pytest.mark.parametrize("behind", [b"", b",,,\n" * 4, b",,,\n" * 4 + b",,", b"1,a,b,2\n,", b",,,\n" * 1000])
@pytest.mark.parametrize("before", [b"", b"\n" * 50, b"\r\n" * 3])
def test_rows_with_nothing_in_them_and_lines_that_are_empty(before: bytes, behind: bytes) -> None:
    same(before + behind)
    same(behind + before)


def test_empty_lines_take_no_room_for_rows() -> None:
    names = tuple(f"c{i}" for i in range(1000))
    row = b",".join(b"%d" % i for i in range(len(names))) + b"\n"
    block = row + b"\n" * (1 << 21) + row  # 8 GB, if each line had room for a row
    tracemalloc.start()
    try:
        found = quick_csv._plain(block, CsvLayout(names, ",", 0, 10.0), [7, 999], [NUMBER, TEXT])
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is not None and [c.to_pylist() for c in found] == [[7.0, 7.0], ["999", "999"]]
    assert peak < 16 * len(block)


def test_pieces_that_come_before_the_kernels_are_not_in_vain(monkeypatch: pytest.MonkeyPatch) -> None:
    """A fresh process has no kernels for the first pieces of a file, and has them once the bytes repay that."""
    monkeypatch.setenv("TALLYBAYES_KERNELS", "auto")
    monkeypatch.setattr(gate, "_work_done", 0)
    monkeypatch.setattr(gate, "BREAK_EVEN", int(0.01 * 4000) * 10)
    assert same(b"1,a,b,2\n" * 10_000, block=4000)  # it is the tenth piece that finds them


def test_many_different_categories_and_missing_ones() -> None:
    rows = [
        f"{i}.25,{'' if i % 7 == 0 else f'c{i % 3000}'},{'' if i % 5 == 0 else 'é' * (i % 40)},{'' if i % 3 else i}"
        for i in range(9_000)
    ]
    assert same("\n".join(rows).encode())
    assert same(b"1,,,\n" * 50)


def test_a_tally_is_the_same_with_and_without_kernels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(quick_csv, "LONG_FILE", 0)
    monkeypatch.setenv("TALLYBAYES_THREADS", "2")
    path = tmp_path / "t.csv"
    body = "".join(f"{i / 8},c{i % 50},word{i % 9} other{i % 4},{'' if i % 6 else i},y{i % 3}\n" for i in range(60_000))
    path.write_text("n,c,t,m,y\n" + body + "1e-3,new,more words,5,y1\n" + body)
    schema = tb.Schema(
        [tb.Column("n", "number"), tb.Column("c", "category"), tb.Column("t", "text"), tb.Column("m", "number")],
        target="y",
    )
    digests = set()
    for wish in ("on", "off"):
        monkeypatch.setenv("TALLYBAYES_KERNELS", wish)
        digests.add(tb.count(tb.read(path, memory_limit="32MiB"), schema).digest)
    assert len(digests) == 1


def test_one_column_and_columns_that_are_not_wanted() -> None:
    body = b"1,a,b,2\n3,c,d,4\n" * 20
    layout, options = CsvLayout(NAMES, ",", 0, 10.0), Options()
    for chosen in ([3], [2, 0], [1]):
        types = [TYPES[i] for i in chosen]
        found = [
            [c.to_pylist() for c in piece.columns]
            for size in (0, LONG_FILE)
            for piece in Pieces(layout, options, chosen, types, size).read(iter([b"n,c,t,m\n" + body]))
            if piece.columns
        ]
        assert found[0] == found[1]
    assert not same(b"1\n\n2\n", names=("n",))  # where an empty line is a row
    assert pa.types.is_dictionary(TYPES[1])
