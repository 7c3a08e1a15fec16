"""What the package can do without its extras, and what it says where it cannot."""

from __future__ import annotations

import re
import sqlite3
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest

import tallybayes as tb
from tallybayes.data.text import tokeniser

pytestmark = pytest.mark.core
CORE = {"numpy", "scipy", "pyarrow", "threadpoolctl", "click", "rich"}
PROJECT = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text("utf-8"))["project"]
TABLE = pa.table({"x": [1.0, 2.5, None, 4.0], "c": ["a", "b", "a", None], "y": ["u", "v", "u", "v"]})
SCHEMA = tb.Schema([tb.Column("x", "number"), tb.Column("c", "category")], target="y")
LINES = "x,c,y\n1,a,u\n2.5,b,v\n,a,u\n4,,v\n"


OPEN: list[sqlite3.Connection] = []


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """Connections are closed behind the test that opened them: newer Pythons mind."""
    yield
    while OPEN:
        OPEN.pop().close()


def asked_for(lines: list[str]) -> set[str]:
    return {re.split(r"[\s<>=!~;]", line)[0].lower() for line in lines}


def test_six_packages_are_enough() -> None:
    assert asked_for(PROJECT["dependencies"]) == CORE


def test_all_is_what_a_person_at_work_wants() -> None:
    extras = PROJECT["optional-dependencies"]
    (everything,) = extras["all"]
    assert everything == "tallybayes[excel,fast,files,plot,serve,sklearn,stem]"
    assert [asked_for(extras[e]) for e in ("fast", "files", "stem")] == [{"numba"}, {"duckdb"}, {"pystemmer"}]


def write_all(folder: Path) -> dict[str, Any]:
    """The table in every form that needs no extra."""
    (folder / "t.csv").write_text(LINES)
    (folder / "odd.csv").write_text(LINES.replace("1,a,u", '1, "a" ,"u"').replace("2.5", '"2.5"'))
    (folder / "german.csv").write_bytes(LINES.replace(",", ";").replace(".", ",").encode("latin-1"))
    (folder / "t.jsonl").write_text('{"x": 1, "c": "a", "y": "u"}\n{"x": 2.5, "c": "b", "y": "v"}\n')
    with (folder / "t.jsonl").open("a") as more:
        more.write('{"c": "a", "y": "u"}\n{"x": 4, "y": "v"}\n')
    with pa.output_stream(str(folder / "t.csv.zst"), compression="zstd") as out:
        out.write(LINES.encode())
    pq.write_table(TABLE, folder / "t.parquet")
    pyarrow.feather.write_feather(TABLE, str(folder / "t.feather"))
    (folder / "many").mkdir()
    for i in range(4):
        line = LINES.splitlines()[i + 1]
        (folder / "many" / f"{i}.csv").write_text(f"x,c,y\n{line}\n")
    con = sqlite3.connect(folder / "t.db")
    OPEN.append(con)
    con.execute("CREATE TABLE rows (x REAL, c TEXT, y TEXT)")
    con.executemany("INSERT INTO rows VALUES (?, ?, ?)", zip(*TABLE.to_pydict().values(), strict=True))
    con.commit()
    names = ("t.csv", "odd.csv", "t.csv.zst", "t.jsonl", "t.parquet", "t.feather", "many", "many/*.csv", "t.db")
    return {
        **{name: str(folder / name) for name in names},
        "list": [folder / "many" / f"{i}.csv" for i in range(4)],
        "german.csv": tb.read(folder / "german.csv", delimiter=";", decimal=",", encoding="latin-1"),
        "query": tb.read("SELECT * FROM rows", connection=con),
    }


def test_files_and_sqlite_need_no_duckdb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    for name, data in write_all(tmp_path).items():
        assert tb.count(data, SCHEMA).digest == tb.count(TABLE, SCHEMA).digest, name


def test_reading_a_file_does_not_load_duckdb(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text(LINES)
    code = "import sys, tallybayes as tb; tb.fit('t.csv', 'y'); assert 'duckdb' not in sys.modules"
    subprocess.run([sys.executable, "-W", "ignore", "-c", code], check=True, cwd=tmp_path)


def test_what_only_duckdb_reads_says_what_installs_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    (tmp_path / "t.duckdb").write_bytes(b"\0" * 8 + b"DUCK" + b"\0" * 5000)
    for data in (tmp_path / "t.duckdb", f"duckdb:///{tmp_path}/t.duckdb"):
        with pytest.raises(tb.MissingExtra, match=r"(?s)needs duckdb.*Hint: pip install 'tallybayes\[files\]'"):
            tb.count(data, SCHEMA)


def test_stemming_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "Stemmer", None)
    tokeniser.stemmer.cache_clear()
    with pytest.raises(tb.MissingExtra, match=r"(?s)needs PyStemmer.*Hint: pip install 'tallybayes\[stem\]'"):
        tb.Tokeniser(stem="english")
