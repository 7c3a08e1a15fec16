"""A look at a part of the data decides as a look at all of it would; what it could not see is noticed later."""

from __future__ import annotations

import csv
import os
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import examples

import tallybayes as tb
from tallybayes.base.arrow import sorted_order
from tallybayes.data import guess
from tallybayes.data.files import quick_csv
from tallybayes.data.infer import first_look
from tallybayes.data.looking import look as looking
from tallybayes.data.sources import open_source
from tallybayes.families import words as word_families

ROWS = 6000
WORDS = np.array([f"word{i}" for i in range(500)])
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


@pytest.fixture
def short_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """A look of a few hundred rows, in stretches of a few lines."""
    monkeypatch.setattr(sys.modules["tallybayes.data.infer"], "LOOK", 900)
    monkeypatch.setattr(quick_csv, "_STRETCH", 1 << 10)


def numbers(rng: np.random.Generator) -> dict[str, Any]:
    x = rng.normal(size=ROWS)
    return {
        "real": x.round(4),
        "whole": rng.integers(-50, 50, ROWS),
        "spaced": [f" {v:.2f}" for v in x],
        "signed": [f"{v:+.1f}" for v in x],
        "power": [f"{v:.2e}" for v in x],
        "huge": [str(10**18 + i) for i in rng.integers(0, 99, ROWS)],
        "mixed": np.where(rng.random(ROWS) < 0.5, "3", "4.5"),
    }


def marked(rng: np.random.Generator) -> dict[str, Any]:
    x = rng.normal(size=ROWS).round(3).astype(str)
    return {
        "question": np.where(rng.random(ROWS) < 0.1, "?", x),
        "several": np.where(rng.random(ROWS) < 0.1, "NA", np.where(rng.random(ROWS) < 0.1, "-", x)),
        "empty": np.where(rng.random(ROWS) < 0.3, "", x),
        "nothing": [""] * ROWS,
    }


def codes(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "postal": [f"0{i}" for i in rng.integers(1000, 1050, ROWS)],
        "flag": rng.random(ROWS) < 0.5,
        "shout": np.where(rng.random(ROWS) < 0.5, "TRUE", "FALSE"),
        "hexadecimal": [f"0x{i:02x}" for i in rng.integers(0, 99, ROWS)],
        "comma": [f"{a},{b}" for a, b in rng.integers(0, 9, (ROWS, 2))],
        "day": [f"2024-0{m}-1{d}" for m, d in rng.integers(1, 9, (ROWS, 2))],
        "time": [f"2024-01-1{d} 0{h}:00:00" for d, h in rng.integers(1, 9, (ROWS, 2))],
        "same": ["one"] * ROWS,
    }


def texts(rng: np.random.Generator) -> dict[str, Any]:
    return {
        "note": [" ".join(w) for w in WORDS[rng.integers(0, 500, (ROWS, 6))]],
        "short": [" ".join(w) for w in WORDS[rng.integers(0, 500, (ROWS, 3))]],
        "quoted": [f"{a}, {b} and {c} too" for a, b, c in WORDS[rng.integers(0, 500, (ROWS, 3))]],
        "name": ["".join(w).capitalize() + "a" for w in LETTERS[rng.integers(0, 26, (ROWS, 6))]],
        "code": [f"{v:016x}" for v in rng.integers(0, 1 << 62, ROWS)],
        "unspaced": [
            "".join(w) + " 。 x y z" for w in np.array(list("日本語文字列言葉"))[rng.integers(0, 8, (ROWS, 30))]
        ],
        "repeated": [f"one of a hundred long sentences, number {i}" for i in rng.integers(0, 100, ROWS)],
    }


TABLES = [numbers, marked, codes, texts]


def table_of(make: Callable[[np.random.Generator], dict[str, Any]]) -> pd.DataFrame:
    rng = np.random.default_rng(3)
    return pd.DataFrame({**make(rng), "y": rng.choice(["p", "q", "r"], ROWS)})


def essence(schema: tb.Schema) -> list[tuple[Any, ...]]:
    """What of a schema decides how rows are read."""
    return [(c.name, c.kind, c.missing, c.spelling, c.text, c.part, c.width, c.cells is None) for c in schema.columns]


@pytest.mark.filterwarnings("ignore:column")
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC])
@pytest.mark.parametrize("make", TABLES, ids=lambda make: make.__name__)
def test_stretches_show_what_the_whole_file_shows(
    make: Any, quoting: int, end: str, tmp_path: Path, short_looks: None
) -> None:
    path = tmp_path / "table.csv"
    table_of(make).to_csv(path, index=False, quoting=quoting, lineterminator=end)
    source = open_source(path)
    part, whole = first_look(source), first_look(source, whole=True)
    beside_a_quote = '" ' in path.read_text() or ' "' in path.read_text()
    assert part.stretches != beside_a_quote  # there parsers disagree, and the file is read whole
    assert not whole.stretches
    assert 300 <= part.rows <= 900
    assert essence(tb.infer(part, "y")) == essence(tb.infer(whole, "y"))
    assert set(zip(*(part[n].to_pylist() for n in part.names()), strict=True)) <= {
        row for b in source.batches() for row in zip(*(b[n].to_pylist() for n in part.names()), strict=True)
    }


@pytest.mark.parametrize("inside", ["7,8,q\n", "7,8,q,,\n", '7,""8"",q\n', "\n"])
def test_lines_within_quotes_are_never_taken_for_rows(inside: str, tmp_path: Path, short_looks: None) -> None:
    path = tmp_path / "nested.csv"
    row = '1,"text\n' + inside * 40 + 'end",p\n'
    path.write_text("a,b,y\n" + (row + "2,plain,q\n2,plain,p\n") * 300)
    look = first_look(open_source(path))
    assert set(look["a"].to_pylist()) <= {"1", "2"}
    assert tb.infer(path, "y") == tb.infer(first_look(open_source(path), whole=True), "y")


def late(tmp_path: Path, value: str, rows: int = 30) -> Path:
    """A file of numbers with something else in the middle, where no stretch is."""
    lines = [f"{i % 17}.5,{'ab'[i % 2]}\n" for i in range(40_000)]
    lines[20_100 : 20_100 + rows] = [f"{value},a\n"] * rows
    path = tmp_path / "late.csv"
    path.write_text("x,y\n" + "".join(lines))
    return path


@pytest.mark.filterwarnings("ignore:cells that cannot be read")
@pytest.mark.parametrize("value", ["?", "many", "2024-01-01"])
def test_what_no_stretch_has_shown_is_mended_by_a_whole_look(value: str, tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys.modules["tallybayes.data.infer"], "LOOK", 9000)
    path = late(tmp_path, value)
    source = open_source(path)
    part, whole = tb.infer(first_look(source), "y"), tb.infer(first_look(source, whole=True), "y")
    assert first_look(source).stretches
    assert part["x"].missing == () and part["x"].kind == "number"
    assert whole["x"].kind == "number" and whole["x"].missing == (("?",) if value == "?" else ())
    assert whole["x"].spelling == (None if value == "?" else tb.Spelling(odd=True))
    model = tb.fit(path, "y", calibrate=False)
    assert essence(model.schema) == essence(whole)
    assert model.tally == tb.count(path, whole)
    with pytest.raises(tb.DataError, match=rf"line 20102, column 'x': '{value[:4]}.*is not a number") as refused:
        tb.count(path, part)
    assert "missing=[…]" in str(refused.value)


def test_a_schema_of_ones_own_is_not_mended(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(sys.modules["tallybayes.data.infer"], "LOOK", 9000)
    schema = tb.Schema([tb.Column("x", "number")], target="y")
    with pytest.raises(tb.DataError, match="is not a number"):
        tb.fit(late(tmp_path, "many"), schema=schema, calibrate=False)


def test_a_reason_says_that_stretches_were_seen(tmp_path: Path, short_looks: None) -> None:
    path = tmp_path / "t.csv"
    table_of(numbers).to_csv(path, index=False)
    assert "rows from all over the file" in tb.infer(path, "y")["real"].reason
    assert "all over" not in tb.infer(pd.read_csv(path), "y")["real"].reason


# ---- short ways through one column


@pytest.mark.filterwarnings("ignore:column")
@pytest.mark.parametrize("make", TABLES, ids=lambda make: make.__name__)
def test_texts_that_are_not_compared_whole_are_what_they_are(make: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = table_of(make)
    quick = tb.infer(table, "y")
    shuffled = tb.infer(table.sample(frac=1, random_state=1), "y")
    assert [(c.name, c.kind, c.reason) for c in quick.columns] == [(c.name, c.kind, c.reason) for c in shuffled.columns]
    monkeypatch.setattr(looking.LongTexts, "of", classmethod(lambda cls, raw: None))
    assert essence(tb.infer(table, "y")) == essence(quick)


def test_long_texts_are_seen_without_comparing_them() -> None:
    table = table_of(texts)
    seen = looking.LongTexts.of(pa.array(table["note"]))
    assert seen is not None
    assert (seen.rows, seen.alone) == (ROWS, ROWS)
    assert abs(seen.words - 6) < 0.1
    again = looking.LongTexts.of(pa.array(table["repeated"]))
    assert again is not None and again.alone == 0
    assert looking.LongTexts.of(pa.array(["short"] * ROWS)) is None


SPELLED = ["1", "-2", "+3", "0", "007", "-01", "+05", "1.5", ".5", "2.", "1e3", "1E-2", "e5", "0x10", "nan", "inf"]
SPELLED += ["1e999", " 4", "5 ", "9" * 18, "9" * 19, "-0", "0.0", "-", ".", "1_000", "٣", "true", "True", "x", None, ""]


@given(st.lists(st.sampled_from(SPELLED), max_size=4), st.sampled_from(SPELLED), st.integers(0, 400))
@examples(300)
def test_a_column_without_types_gets_those_of_the_long_way(few: list[Any], most: Any, rows: int) -> None:
    column = pa.array([*[most] * rows, *few], pa.string())
    values = [v for v in column.to_pylist() if v is not None]
    kind = guess._type_of(values)
    found = guess._typed(column)
    if not values or kind == "text":
        assert found.equals(column)
    elif kind == "bool":
        assert found.to_pylist() == [None if v is None else v.lower() == "true" for v in column.to_pylist()]
    else:
        assert pa.types.is_integer(found.type) == (kind == "whole")
        read = int if kind == "whole" else float
        assert found.to_pylist() == [None if v is None else read(v) for v in column.to_pylist()]


@given(st.sets(st.text(alphabet="ab\0é😀", max_size=20) | st.text(max_size=30)))
@examples(300)
def test_texts_are_sorted_as_python_sorts_them(given_texts: set[str]) -> None:
    some = [t for t in given_texts if not any("\ud800" <= ch <= "\udfff" for ch in t)]
    order = sorted_order(pa.array(some, pa.string()))
    assert [some[i] for i in order.tolist()] == sorted(some)


@pytest.mark.parametrize("alpha", [0.01, 1.0])
@pytest.mark.parametrize("presence", [False, True])
def test_words_are_smoothed_in_one_pass_as_in_many(alpha: float, presence: bool, monkeypatch: Any) -> None:
    rng = np.random.default_rng(5)
    table = {"t": [" ".join(w) for w in WORDS[rng.zipf(1.4, (300, 12)) % 500]], "y": rng.choice(["p", "q", "r"], 300)}
    schema = tb.Schema([tb.Column("t", "text")], target="y")
    settings = tb.Settings(smoothing=tb.Laplace(alpha), families={"t": tb.families.Multinomial(presence=presence)})
    quick = tb.count(table, schema).model(settings).beliefs["t"]
    monkeypatch.setattr(word_families, "smoothed_words", lambda *given: None)
    long = tb.count(table, schema).model(settings).beliefs["t"]
    assert quick.words == long.words == tuple(sorted(quick.words))
    assert np.array_equal(quick.probabilities, long.probabilities)
    assert np.array_equal(quick.length, long.length)


# ---- memory


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks /proc")
def test_a_longer_file_takes_no_more_memory(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    block = "".join(f"{v:.6f},{'abcdef'[i % 6] * 8},{'pq'[i % 2]}\n" for i, v in enumerate(rng.normal(size=40_000)))
    for name, times in (("short", 16), ("long", 160)):
        (tmp_path / f"{name}.csv").write_text("x,c,y\n" + block * times)
    program = """
        import sys, tallybayes as tb
        def peak():
            return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM")) / 1024
        for name in ("short", "long"):
            tb.fit(name + ".csv", "y", calibrate=False)
            print(peak())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], cwd=tmp_path, capture_output=True, text=True, check=True,
        env={**os.environ, "TALLYBAYES_MEMORY": "64MB", "TALLYBAYES_THREADS": "2", "TALLYBAYES_KERNELS": "on"},
    )  # fmt: skip
    short, long = map(float, done.stdout.split())
    assert (tmp_path / "long.csv").stat().st_size > 120 << 20
    assert long - short < 80  # what is on its way may come at a bad time; all of the file would be much more
