"""The kernels that read plain lines of a CSV take exactly what is plain, and make of it what Python does."""

from __future__ import annotations

import re
import struct

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples

pytest.importorskip("numba", reason="without Numba there are no kernels")

from tallybayes.exact.kernels import fields

PLAIN = re.compile(rb"-?(\d+)(?:\.(\d+))?")


def is_plain(cell: bytes) -> bool:
    found = PLAIN.fullmatch(cell)
    return bool(found) and len(cell.removeprefix(b"-")) <= 17 and int(found[1] + (found[2] or b"")) <= 1 << 53


def check(cell: bytes, before: bytes) -> None:
    """One number, far enough from the first byte or not."""
    data = np.frombuffer(before + b"," + cell + b"\n", np.uint8)
    begin, end = np.array([len(before)], np.int32), np.array([len(data) - 1], np.int32)
    out = np.zeros(1)
    missing = fields.numbers(data, begin, 1, end, out)
    assert missing == (0 if is_plain(cell) else -1 if cell else 1), cell
    if is_plain(cell):
        assert struct.pack("<d", out[0]) == struct.pack("<d", float(cell)), cell
    elif not cell:
        assert np.isnan(out[0])


@pytest.mark.parametrize("before", [b"", b"99.999999"])
@pytest.mark.parametrize(
    "whole", [b"7", b"12", b"1.5", b"12345678", b"1234.567", b"123456789", b"12345.6789", b"-3.25"]
)
def test_any_byte_in_any_place_of_a_number(whole: bytes, before: bytes) -> None:
    for place in range(len(whole)):
        for byte in range(256):
            check(whole[:place] + bytes([byte]) + whole[place + 1 :], before)


@given(st.text("0123456789", max_size=18), st.text("0123456789", max_size=18), st.sampled_from(["", "-", "+"]))
@examples(600)
@example("9007199254740992", "", "")
@example("9007199254740993", "", "")
@example("9", "007199254740993", "")
@example("0", "000000000000001", "-")
@example("0", "0000000000000001", "")
@example("", "", "-")
def test_digits_before_and_behind_a_point(whole: str, fraction: str, sign: str) -> None:
    for cell in (sign + whole, f"{sign}{whole}.{fraction}", fraction):
        check(cell.encode(), b"")
        check(cell.encode(), b"88888888")


lines = st.lists(st.sampled_from([",", ",", ",", "\n", "\n", "\r\n", "\r", "a", "bc", "x" * 61]), max_size=40)


@given(lines.map("".join), st.integers(2, 4))
@examples(300)
@example("a,b\n" * 40 + "a,b", 2)
@example("a,b\r\n" * 40 + "a,b\r", 2)
@example("a,b\n" * 16 + "a\r,b\n", 2)
@example("," * 64 + "\n", 2)
def test_where_fields_end(text: str, width: int) -> None:
    data = np.frombuffer(text.encode(), np.uint8)
    begins, ends = np.zeros(len(data) + 1, np.int32), np.zeros((width, len(data) + 1), np.int32)
    rows = fields.cut(data, np.uint8(ord(",")), np.zeros(64, np.uint8), begins, ends)
    plain = text.replace("\r\n", "\n")
    expected = [line.split(",") for line in plain.split("\n")[:-1] if line]
    if "\r" in plain or not (plain.endswith("\n") or not plain) or any(len(row) != width for row in expected):
        assert rows == -1
        return
    found = [[text[(ends[f - 1, r] + 1 if f else begins[r]) : ends[f, r]] for f in range(width)] for r in range(rows)]
    assert found == expected


@given(st.lists(st.one_of(st.text(max_size=5), st.text("é", min_size=30, max_size=34)), min_size=1, max_size=20))
@examples(100)
def test_texts_are_copied(cells: list[str]) -> None:
    cells = [cell.replace(",", "") for cell in cells]
    sizes = np.array([len(cell.encode("utf-8", "surrogatepass")) for cell in cells])
    data = np.frombuffer(",".join(["", *cells]).encode("utf-8", "surrogatepass"), np.uint8)
    ends = (np.cumsum(sizes + 1)).astype(np.int32)
    edges, letters = np.zeros(len(cells) + 1, np.int32), np.zeros(sizes.sum() + 64, np.uint8)
    assert fields.texts(data, (ends - sizes - 1).astype(np.int32), 1, ends, edges, letters) == (sizes == 0).sum()
    assert edges.tolist() == [0, *np.cumsum(sizes)]
    assert letters[: edges[-1]].tobytes() == b"".join(cell.encode("utf-8", "surrogatepass") for cell in cells)
