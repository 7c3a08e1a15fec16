"""Comma-separated values: the two ways through a file, quick and careful, agree with each other and with DuckDB."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import tallybayes as tb
from tallybayes.data.files import quick_csv
from tallybayes.data.files.careful_csv import CarefulReader
from tallybayes.data.files.csv import CsvFile
from tallybayes.data.files.file import File, Options
from tallybayes.data.files.quick_csv import CsvLayout, Pieces
from tallybayes.data.files.reader import Reader  # which registers the formats

pytestmark = pytest.mark.core
SCHEMA = tb.Schema([tb.Column("age", "number"), tb.Column("city", "category")], target="y")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.chdir(tmp_path)

    def written(name: str, content: str) -> str:
        (tmp_path / name).write_bytes(content.encode())
        return name

    return written


def refused(path: Any, *words: str) -> None:
    with pytest.raises(tb.DataError) as found:
        tb.count(path, SCHEMA)
    assert all(word in str(found.value) for word in words), str(found.value)


PIECES = ["a", "b", ",", ",", '"', '"', "\n", "\n", " ", "1", '"\n', '",', '""', ', "', '" ', "é"]
bodies = st.lists(st.sampled_from(PIECES), min_size=1, max_size=14).map("".join)


def in_duckdb(path: Path) -> list[tuple] | None:
    """The rows of columns a and b as DuckDB's strict parser reads them; None where it refuses."""
    query = (
        "FROM read_csv(?, auto_detect=false, header=true, delim=',', quote='\"', escape='\"', nullstr='', "
        "columns={a: 'VARCHAR', b: 'VARCHAR'})"
    )
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as con:
        try:
            return con.execute(query, [str(path)]).fetchall()
        except duckdb.Error:
            return None


@given(bodies, st.sampled_from(["\n", "\r\n", "\r"]))
@examples(60)
def test_two_parsers_never_disagree(tmp_path_factory, body: str, end: str) -> None:
    """What DuckDB's parser reads is read the same, and what it refuses is refused. But where something opens a quoted
    field again behind its end, DuckDB makes one value of both; that is refused.
    """
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(("a,b\n" + body).replace("\n", end).encode())
    try:
        reader: Reader = CsvFile(File(str(path), Options()))
        found = rows_of(reader.pieces(None, None))
    except tb.DataError:
        found = None
    assert found == in_duckdb(path) or (found is None and re.search('" +"', body))


@given(bodies, st.integers(1, 9), st.integers(1, 30), st.sampled_from(["error", "skip"]), st.sampled_from([1, 2]))
@examples(150)
def test_rows_are_the_same_however_a_file_is_cut(body: str, chunk: int, block: int, bad_lines: str, width: int) -> None:
    """Arrow gets pieces of a file and refuses some of them; the rows and the faults are those of plain
    Python, which gets the file at once.
    """
    raw = body.encode()
    plain = CarefulReader(",", width).read(raw, last=True, skips=bad_lines == "skip")
    columns = plain.columns(range(width))
    expected = [c.to_pylist() for c in columns], [fault for _, fault in plain.faults]
    header = ("a,b"[: 2 * width - 1] + "\n").encode()
    layout = CsvLayout(("a", "b")[:width], ",", 0, 10.0)
    options = Options(bad_lines=bad_lines)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Options, "block_bytes", block)
        patch.setattr(quick_csv, "_STEP", 4)
        chunks = ((header + raw)[i : i + chunk] for i in range(0, len(header + raw), chunk))
        found: tuple[list[list[Any]], list[Any]] = ([[] for _ in range(width)], [])
        for piece in Pieces(layout, options, range(width), [pa.string()] * width).read(chunks):
            for column, more in zip(found[0], piece.columns, strict=bool(piece.columns)):
                column += more.to_pylist()
            found[1].extend(fault for _, fault in piece.faults)
            if piece.faults and bad_lines == "error":
                assert piece.faults[0][0] - len(header) == plain.faults[0][0]
                break
    assert found == expected


@pytest.mark.parametrize("bad_lines", ["error", "skip"])
def test_a_line_without_an_end_is_one_bad_line(write, bad_lines: str) -> None:
    """A quote that is never closed, and a line that is too long to be held, far into a file of good ones."""
    good = "age,city,y\n" + "30,Bonn,a\n" * 200_000
    tail = "40,Rome,b\n" * 3
    long = write("long.csv", good + "1," + "x" * 4_000_000 + ",a\n" + tail)
    quote = write("quote.csv", good + '1,"x,a\n' + tail)
    options = {"bad_lines": bad_lines, "memory_limit": "32MiB"}
    if bad_lines == "error":
        refused(tb.read(long, **options), "long.csv, line 200002: a line is longer than 1 MiB", "memory_limit='2GB'")
        refused(tb.read(quote, **options), "quote.csv, line 200002: a quoted field does not end", "close the quote")
        return
    for path, rows in ((long, 200_003), (quote, 200_000)):
        with pytest.warns(tb.TallybayesWarning, match="1 bad line was skipped, the first is line 200002"):
            assert tb.count(tb.read(path, **options), SCHEMA).rows == rows


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_lines_are_numbered_whatever_ends_them(write, end: str) -> None:
    text = 'age,city,y\n1,"a\nb",u\n\n2, "c" ,v\n3,4\n'.replace("\n", end)
    refused(write("t.csv", text), "t.csv, line 6: 2 fields where the header has 3")
    refused(
        write("t.csv", text.removesuffix("3,4" + end) + "x,4,u"), "t.csv, line 6, column 'age': 'x' is not a number"
    )


def rows_of(pieces: Any) -> list[tuple]:
    return [row for p in pieces for row in zip(p["a"].to_pylist(), p["b"].to_pylist(), strict=True)]


def test_the_first_bad_line_is_named_whoever_found_it(write: Any) -> None:
    text = "age,city,y\n1,a,u\n" + "\n2,b,v" * 30_000 + "\n3\n4,c,u,\n5,d,u,x\n"
    path = write("t.csv", text + "6,e,v\n" * 100_000 + "7\n" * 5)
    with pytest.warns(tb.TallybayesWarning, match=r"t\.csv: 7 bad lines were skipped, the first is line 30004"):
        tally = tb.count(tb.read(path, bad_lines="skip", memory_limit="32MiB"), SCHEMA)
    assert tally.rows == 1 + 30_000 + 1 + 100_000


@pytest.mark.parametrize("quote", ["", '"'])
def test_a_document_in_a_field_is_as_long_as_it_is(write: Any, quote: str) -> None:
    """Python's own reader of CSV files refuses fields of more than 131,072 characters."""
    long = [f"{quote}{sign * 200_000}{quote}" for sign in "ab"]
    path = write("long.csv", f"text,y\n{long[0]},p\n{long[1]},q\n")
    schema = tb.Schema([tb.Column("text", "category")], target="y")
    assert sorted(tb.count(path, schema).columns["text"].sheets["values"].slot_names) == ["a" * 200_000, "b" * 200_000]
    header = write("header.csv", f"{long[0]};y\n1;p\n2;q\n")
    assert CsvFile(File(header, Options())).names == ("a" * 200_000, "y")


@pytest.mark.parametrize("block", range(1, 30))
def test_a_byte_order_mark_within_a_file_is_a_character_wherever_it_is_cut(
    block: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Arrow leaves one out at the beginning of whatever it is given; two files put together have one in the middle."""
    monkeypatch.setattr(Options, "block_bytes", block)
    raw = "a,b\n1,2\n\ufeffa,b\n\ufeff3,4\n".encode()
    pieces = Pieces(CsvLayout(("a", "b"), ",", 0, 4.0), Options(), [0], [pa.string()])
    assert [v for p in pieces.read(bytes([b]) for b in raw) for c in p.columns for v in c.to_pylist()] == [
        "1",
        "\ufeffa",
        "\ufeff3",
    ]


@pytest.mark.parametrize("first", ["sep=;\n", "\ufeffsep=;\r\n\r\n", '"sep=;"\n', "\nSEP=;;\n"])
def test_the_line_of_excel_says_the_delimiter_and_is_no_row(write: Any, first: str) -> None:
    rows = "".join(f"{i % 7},5;x{i % 3};{'pn'[i % 2]}\n" for i in range(40))
    plain, with_line = write("plain.csv", "age;city;y\n" + rows), write("sep.csv", first + "age;city;y\n" + rows)
    read = [tb.count(tb.read(name, decimal=","), SCHEMA) for name in (plain, with_line)]
    assert read[0].digest == read[1].digest
    bad = write("bad.csv", first + "age;city;y\n" + rows + "1;2;3;4\n")
    line = 42 + first.count("\n")
    refused(bad, f"bad.csv, line {line}: 4 or more fields where the header has 3")
    assert list(next(tb.read(write("t.csv", "sep=\n1\n2\n")).batches()).names()) == ["sep="]
