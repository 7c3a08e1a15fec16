"""A file format made here, outside the package: lines of `a=1;b=2`. The reader and its record are all it needs."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from command_line import run

import tallybayes as tb
from tallybayes.data.files.file import File, Format
from tallybayes.data.files.reader import FORMATS, register_format

FIRST = b"#kv\n"
ROWS = [{"age": str(20 + i % 9), "city": "Bonn" if i % 3 else "Köln", "y": "ab"[i % 2]} for i in range(60)]


class KeysAndValues:
    """A file of keys and values; a line need not have every key."""

    def __init__(self, file: File) -> None:
        self.file = file
        self.names = tuple(dict.fromkeys(k for row in self._rows() for k in row))
        self.expected = 0.0

    def _rows(self) -> Iterator[dict[str, str]]:
        for number, line in enumerate(self.file.lines(), 1):
            if not line or line.startswith(b"#"):
                continue
            pieces = [piece.partition("=") for piece in line.decode(self.file.options.encoding).split(";")]
            if not all(equals for _, equals, _ in pieces):
                raise self.file.error("a piece without =", "write key=value;key=value.", number)
            yield {k: v for k, _, v in pieces}

    def pieces(self, con: Any, wanted: Any) -> Iterator[dict[str, Any]]:
        rows = list(self._rows())
        chosen = [n for n in self.names if wanted is None or n in wanted]
        yield {n: pa.array([row.get(n) for row in rows], pa.string()) for n in chosen}

    def place(self, row: int) -> str:
        return f"{self.file.path}, line {row + 2}"


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    before = dict(FORMATS)
    register_format(Format("kv", ("kv", "pairs"), KeysAndValues, magic=FIRST, untyped=True, ragged=True))
    yield
    FORMATS.clear()
    FORMATS.update(before)


def content(rows: list[dict[str, str]]) -> bytes:
    return FIRST + "".join(";".join(f"{k}={v}" for k, v in row.items()) + "\n" for row in rows).encode()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    out = tmp_path / "people.kv"
    out.write_bytes(content(ROWS))
    return out


def test_read_fit_predict_save_and_explain(path: Path, tmp_path: Path) -> None:
    text = tmp_path / "people.csv"
    text.write_text("age,city,y\n" + "".join(",".join(row.values()) + "\n" for row in ROWS))
    assert repr(tb.infer(path, "y")) == repr(tb.infer(text, "y"))
    model, same = (tb.fit(p, "y") for p in (path, text))
    assert model.tally == same.tally and model.schema == same.schema and model.schema["age"].kind == "number"
    np.testing.assert_array_equal(model.predict_proba(path), same.predict_proba(text))
    model.save(tmp_path / "m.tally")
    assert tb.load(tmp_path / "m.tally").predict(path).tolist() == same.predict(text).tolist()
    assert str(model.explain({"age": 23, "city": "Bonn"})) == str(same.explain({"age": 23, "city": "Bonn"}))
    assert model.tally.forget(path) == tb.Tally.zero(model.schema)


def test_names_patterns_packing_and_a_wish(path: Path, tmp_path: Path) -> None:
    want = tb.count(path, schema := tb.infer(path, "y"))
    (tmp_path / "people.pairs.gz").write_bytes(gzip.compress(path.read_bytes()))
    (tmp_path / "people.unknown").write_bytes(path.read_bytes())
    assert tb.count(tmp_path / "people.pairs.gz", schema) == want
    assert tb.count(tb.read(tmp_path / "people.unknown", format="kv"), schema) == want
    (tmp_path / "more.kv").write_bytes(content([{"age": "30", "y": "a"}]))  # not every line has every key
    with pytest.warns(tb.TallybayesWarning, match="'city'"):
        assert tb.count(str(tmp_path / "*.kv"), schema).rows == len(ROWS) + 1


def test_messages_speak_of_it(path: Path, tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_bytes(path.read_bytes())
    with pytest.raises(tb.DataError, match=r"a Kv file, which is not what its name says(.|\n)*format='kv'"):
        tb.infer(tmp_path / "wrong.csv", "y")
    (tmp_path / "wrong.kv").write_text("age,y\n1,a\n")
    with pytest.raises(tb.DataError, match="not a Kv file"):
        tb.infer(tmp_path / "wrong.kv", "y")
    with pytest.raises(tb.SettingsError, match=r"take one of 'csv', 'tsv', 'jsonl', 'parquet', 'arrow', .*'kv'"):
        tb.read(path, format="kw")
    (tmp_path / "people").write_bytes(path.read_bytes())
    with pytest.raises(tb.DataError, match=r"'arrow', .*'kv'"):
        tb.infer(tmp_path / "people", "y")
    (tmp_path / "bad.kv").write_bytes(content(ROWS[:3]) + b"age\n")
    with pytest.raises(tb.DataError, match=r"bad.kv, line 5: a piece without ="):
        tb.infer(tmp_path / "bad.kv", "y")
    (tmp_path / "strange.kv").write_bytes(content([*ROWS, {"age": "old", "city": "Bonn", "y": "a"}]))
    with pytest.raises(tb.DataError, match=r"strange.kv, line 62"):
        tb.count(tmp_path / "strange.kv", tb.infer(path, "y"))


def test_the_command_line_reads_it(path: Path, tmp_path: Path) -> None:
    model = tmp_path / "m.tally"
    assert run("fit", path, "--target", "y", "-o", model).returncode == 0
    want = tb.load(model).predict(path).tolist()
    by_name = run("predict", model, path, "--format", "jsonl")
    assert by_name.returncode == 0, by_name.err
    assert [list(json.loads(line).values())[-1] for line in by_name.stdout.splitlines()] == want
    (tmp_path / "people").write_bytes(path.read_bytes())
    said = run("predict", model, tmp_path / "people", "--read-as", "kv", "--format", "jsonl")
    piped = run("predict", model, "-", "--format", "jsonl", given=path.read_bytes())
    assert said.stdout == piped.stdout == by_name.stdout
    refused = run("predict", model, path, "--read-as", "kw")
    assert refused.returncode == 2 and "'csv', 'tsv', 'jsonl', 'parquet', 'arrow'" in refused.err
