"""Databases by name: SQLite, DuckDB and PostgreSQL, one table or a query, opened to be read alone."""

from __future__ import annotations

import datetime as dt
import os
import re
import sqlite3
import sys
import types
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pytest
from command_line import run

import tallybayes as tb
from tallybayes.data.files import databases
from tallybayes.data.files.find import shown

ODD = 'my "quoted" order; DROP TABLE x --'
NAMES = ("id", "select", "größe", "day", "y")
ROWS = [
    (i, "ab"[i % 2], None if i % 7 == 0 else i / 8, f"2024-01-{1 + i % 28:02}", "yes" if i % 3 else "no")
    for i in range(300)
]


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def fill(con: Any, table: str, rows: list[tuple[Any, ...]] = ROWS) -> None:
    columns = ", ".join(
        f"{quoted(n)} {t}" for n, t in zip(NAMES, ("INTEGER", "TEXT", "REAL", "TEXT", "TEXT"), strict=True)
    )
    con.execute(f"CREATE TABLE {quoted(table)} ({columns})")
    con.executemany(f"INSERT INTO {quoted(table)} VALUES (?, ?, ?, ?, ?)", rows)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    con = sqlite3.connect("shop.db")
    fill(con, ODD)
    con.commit()
    con.close()
    return tmp_path


def table_of(rows: list[tuple[Any, ...]] = ROWS) -> dict[str, list[Any]]:
    return dict(zip(NAMES, map(list, zip(*rows, strict=True)), strict=True))


def refused(what: Any, *words: str, kind: type[Exception] = tb.DataError) -> str:
    with pytest.raises(kind) as caught:
        what()
    said = str(caught.value)
    assert "\n\nHint: " in said
    for word in words:
        assert re.search(word, said), (word, said)
    return said


SCHEMA = tb.infer(table_of(), "y")


@pytest.mark.parametrize(
    "path",
    ["shop.db", "sqlite:///shop.db", f"shop.db#{ODD}", f"sqlite:///shop.db#{ODD}", Path("shop.db"), ["shop.db"]],
)
def test_every_spelling_of_a_table_gives_its_rows(here: Path, path: Any) -> None:
    assert tb.infer(path, "y") == SCHEMA
    assert tb.count(path, SCHEMA) == tb.count(table_of(), SCHEMA)


def test_a_model_of_a_table_answers_and_forgets(here: Path) -> None:
    absolute = f"sqlite:///{here}/shop.db"
    model = tb.fit(absolute, "y", calibrate=False)
    assert model.tally == tb.fit(table_of(), "y", calibrate=False).tally
    np.testing.assert_array_equal(model.predict_proba(absolute), model.predict_proba(table_of()))
    assert model.update(absolute).forget(absolute).tally == model.tally
    assert tb.evaluate(model, absolute).table.num_rows == 1


def test_one_table_or_a_name(here: Path) -> None:
    with sqlite3.connect("shop.db") as con:
        con.execute("CREATE TABLE few (k TEXT PRIMARY KEY, y TEXT) WITHOUT ROWID")
        con.executemany("INSERT INTO few VALUES (?, ?)", [(str(i * 7919 % 300), "ab"[i % 2]) for i in range(300)])
        con.execute("CREATE VIEW seen AS SELECT y, k FROM few")
        con.execute("CREATE TABLE hides (rowid TEXT, y TEXT)")
        con.executemany("INSERT INTO hides VALUES (?, 'a')", [(f"v{9 - i % 9}",) for i in range(50)])
    refused(lambda: tb.infer("shop.db", "y"), "there are 4 tables: 'few'", r"table='few'")
    refused(lambda: tb.infer("shop.db#fwe", "y"), "there is no table 'fwe'", "did you mean 'few'")
    assert [c.name for c in tb.infer("shop.db#seen", "y").columns] == ["k"]
    order = [v for b in tb.read("shop.db", table="hides").batches() for v in b["rowid"].to_pylist()]
    assert order == [f"v{9 - i % 9}" for i in range(50)]  # as they were put in
    keys = [v for b in tb.read("shop.db", table="few").batches() for v in b["k"].to_pylist()]
    assert keys == sorted(keys)
    refused(lambda: tb.read("shop.db#few", table="seen"), "'few' is named behind the #", kind=tb.SettingsError)
    refused(lambda: tb.read("shop.db", table="few", query="SELECT 1"), "a table and a query", kind=tb.SettingsError)
    Path("a#b.csv").write_text("x,y\n1,a\n2,b\n", encoding="utf-8")
    assert tb.infer("a#b.csv", "y").target == "y"  # what is a file with its # is one
    refused(lambda: tb.read("a#b.csv", table="t"), "is one table")
    refused(lambda: tb.read("a#b.csv", query="SELECT 1"), "answers no SQL")


def test_types_survive_and_blobs_are_refused(here: Path) -> None:
    with sqlite3.connect("types.sqlite") as con:
        con.execute("CREATE TABLE t (whole, text, both, photo, y)")
        con.executemany(
            "INSERT INTO t VALUES (?, ?, ?, ?, 'a')", [(2**60 + 1, "007", 1, None), (None, "", 2.5, b"\xff")]
        )
    batch = next(tb.read("types.sqlite", query="SELECT whole, text, both FROM t").batches())
    assert [batch[n].to_pylist() for n in batch.names()] == [[2**60 + 1, None], ["007", ""], [1.0, 2.5]]
    refused(lambda: tb.infer("types.sqlite", "y"), "row 1 .*column 'photo': a value of bytes", 'query=\'SELECT "whole"')
    assert tb.count("types.sqlite", tb.Schema([tb.Column("text", "category")], target="y")).rows == 2


def test_nothing_is_written_and_nothing_else_is_run(here: Path) -> None:
    before = Path("shop.db").read_bytes()
    for query, said in {
        "DELETE FROM sqlite_master": "", "SELEC 1": "syntax error", "SELECT * FROM nope": "no such table",
        "SELECT 1; SELECT 2": "one statement", "ATTACH 'new.db' AS n": "", "VACUUM INTO 'new.db'": "",
        "PRAGMA user_version = 3": "", "SELECT load_extension('x')": "",
    }.items():  # fmt: skip
        refused(lambda query=query: tb.read("shop.db", query=query), f"the query (cannot be run|gives no).*{said}")
    assert sorted(os.listdir()) == ["shop.db"] and Path("shop.db").read_bytes() == before


def test_paths_that_are_no_databases(here: Path) -> None:
    refused(lambda: tb.read("sqlite:///shap.db"), "there is no file shap.db", "did you mean 'shop.db'")
    refused(lambda: tb.read("sqlite:///shop.db?table=orders"), "behind a #")
    refused(lambda: tb.read(f"sqlite:///{str(here)[1:]}/shop.db"), "four slashes")
    refused(lambda: tb.read("sqlite://shop.db"), "names no file")
    said = refused(lambda: tb.read("mysql://me:secret@db.example/shop"), "mysql://db.example/shop is an address")
    assert "secret" not in said and "tb.read('SELECT …', connection)" in said
    told = run("fit", "mysql://me:secret@db.example/shop", "--target", "y").err
    assert "postgresql://…" in told and "a workbook" in told
    assert not any(word in told for word in ("secret", "con.sql", "connection", "tb."))
    Path("text.db").write_text("x,y\n1,2\n", encoding="utf-8")
    refused(lambda: tb.read("text.db"), "not a SQLite database")
    Path("cut.db").write_bytes(Path("shop.db").read_bytes()[:5000])
    refused(lambda: tb.infer("cut.db", "y"), "malformed|cannot be read|breaks off")
    (here / "folder").mkdir()
    (here / "folder" / "t.csv").write_text("x,y\n1,a\n")
    (here / "folder" / "other.db").write_bytes(Path("shop.db").read_bytes())
    assert [b.names() for b in tb.read("folder").batches()] == [["x", "y"]]  # databases are named, not found


def test_a_locked_and_a_changing_database(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(databases, "PATIENCE", 0.0)
    con = sqlite3.connect("shop.db", isolation_level=None)
    con.execute("BEGIN EXCLUSIVE")
    refused(lambda: tb.read("shop.db"), "another program has the database locked")
    con.execute("ROLLBACK")
    con.execute("PRAGMA journal_mode = WAL")
    source = tb.read("shop.db")
    assert tb.count(source, SCHEMA) == tb.count(source, SCHEMA)
    con.execute(f"DELETE FROM {quoted(ODD)} WHERE id < 9")
    refused(lambda: tb.count(source, SCHEMA), "changed while it was being read")
    con.close()


def test_wide_rows_come_in_small_batches(here: Path) -> None:
    with sqlite3.connect("wide.db") as con:
        con.execute("CREATE TABLE t (x TEXT)")
        con.executemany("INSERT INTO t VALUES (?)", [("word " * 2000,)] * 4000)
    sizes = [sum(c.nbytes for c in b.columns.values()) for b in tb.read("wide.db", memory_limit="64MB").batches()]
    assert len(sizes) > 9 and max(sizes) < 6 << 20 and sizes[-2] < 3 << 20


def test_duckdb(here: Path) -> None:
    con = duckdb.connect("shop.duckdb")
    con.execute("CREATE TABLE t AS SELECT i AS n, DATE '2024-01-01' + i::INT AS d, i % 2 = 0 AS y FROM range(90) r(i)")
    want = tb.infer(con.sql("FROM t"), "y")
    refused(lambda: tb.read("shop.duckdb"), "this program has the database open", "connection=con")
    con.close()
    assert tb.infer("duckdb:///shop.duckdb", "y") == tb.infer("shop.duckdb#t", "y") == want
    Path("t.csv").write_text("x,y\n1,a\n", encoding="utf-8")
    with duckdb.connect("shop.duckdb") as con:
        con.execute("CREATE SCHEMA s; CREATE TABLE s.t AS FROM t LIMIT 9; CREATE VIEW file AS FROM read_csv('t.csv')")
        con.execute("CREATE TABLE b AS SELECT '\\xFF'::BLOB AS photo, 'a' AS y")
    refused(lambda: tb.read("shop.duckdb"), "there are 4 tables: 'b', 'file', 't', 's.t'")
    assert sum(b.rows for b in tb.read("shop.duckdb#s.t").batches()) == 9
    assert sum(b.rows for b in tb.read("shop.duckdb", query="FROM t WHERE n < 20").batches()) == 20
    refused(lambda: tb.read("shop.duckdb#file"), "disabled by configuration")
    refused(lambda: tb.infer("shop.duckdb#b", "y"), "column 'photo': a value of bytes")
    refused(lambda: tb.read("shop.duckdb", query="COPY t TO 'out.csv'"), "the query cannot be run")
    refused(lambda: tb.read("shop.duckdb", query="CREATE TABLE q (a INT)"), "read-only")
    os.replace("shop.duckdb", "other.db")
    refused(lambda: tb.read("other.db"), "a DuckDB database", "format='duckdb'")
    assert tb.infer("duckdb:///other.db#t", "y") == want


# ---- a server, played by a module: the shape of psycopg 3


class _Cursor:
    def __init__(self, con: _Server) -> None:
        self.con = con
        self.description: list[tuple[str]] | None = None

    def execute(self, statement: str) -> None:
        self.con.said.append(statement)
        if "pg_class" in statement:
            names, self.rows = ("a", "b", "c", "d"), [("public", "t", True, -1.0), ("s", 'odd "t"', False, 9.0)]
        elif "boom" in statement:
            raise Error(f'syntax error near "{self.con.address}"')
        else:
            names, self.rows = (
                ("n", "d", "y"),
                [(Decimal(i) / 4, dt.date(2024, 1, 1 + i), "ab"[i % 2]) for i in range(28)],
            )
            asked = re.match(r'SELECT ("y") FROM', statement)
            if asked:
                names, self.rows = ("y",), [row[2:] for row in self.rows]
        self.description = [(n,) for n in names]

    def fetchmany(self, most: int) -> list[Any]:
        out, self.rows = self.rows[:most], self.rows[most:]
        return out

    def fetchall(self) -> list[Any]:
        return self.rows

    def close(self) -> None: ...

    def __enter__(self) -> _Cursor:
        return self

    def __exit__(self, *_: object) -> None: ...


class _Server:
    def __init__(self, address: str) -> None:
        if "wrong" in address:
            raise Error(f"connection failed: no pg_hba for {address}\nmore")
        self.address, self.said, self.closed = address, [], False
        _Server.last = self

    def cursor(self, name: str) -> _Cursor:
        return _Cursor(self)

    def execute(self, statement: str) -> None:
        self.said.append(statement)

    def close(self) -> None:
        self.closed = True


class Error(Exception): ...


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[_Server]]:
    module = types.ModuleType("psycopg")
    module.connect, module.Error = _Server, Error  # type: ignore[attr-defined]
    module.IsolationLevel = types.SimpleNamespace(REPEATABLE_READ="repeatable")  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "psycopg", module)
    return _Server


URL = "postgresql://me:s%33cret@db.example:5432/shop"


def test_a_server_is_read_in_one_transaction_that_only_reads(server: Any) -> None:
    refused(lambda: tb.read(URL), "db.example:5432/shop: there are 2 tables: 't', 's.odd \"t\"'")
    source = tb.read(f'{URL}#s.odd "t"')
    want = {"n": [i / 4 for i in range(28)], "d": [dt.date(2024, 1, 1 + i) for i in range(28)], "y": ["a", "b"] * 14}
    schema = tb.infer(want, "y")
    assert tb.infer(source, "y") == schema and tb.count(source, schema) == tb.count(want, schema)
    con = server.last
    assert (con.read_only, con.isolation_level) == (True, "repeatable")
    assert 'SELECT * FROM "s"."odd ""t"""' in con.said
    assert sum(b.rows for b in source.batches({"y": "category"})) == 28 and 'SELECT "y" FROM' in con.said[-1]
    assert tb.infer(tb.read(URL, query="SELECT * FROM t WHERE a LIKE '%x%'"), "y").target == "y"
    assert server.last.said[-1] == "SELECT * FROM t WHERE a LIKE '%x%'" and not con.closed
    del source
    assert con.closed


def test_a_password_is_told_to_nobody(server: Any, tmp_path: Path) -> None:
    """Not in an error, whoever wrote it there, not on a screen, not in a model."""
    said = [
        refused(lambda: tb.read(URL.replace("shop", "wrong")), r"cannot be reached: connection failed.*\*\*\*"),
        refused(lambda: tb.read(URL, query="boom"), "the query cannot be run: syntax error"),
        refused(lambda: tb.read(URL.replace("%33", "#3"), query="x"), "#, /, . or @ in its user"),
        refused(lambda: tb.read(URL.replace("%33", "/3"), query="x"), "%2F"),
        refused(lambda: tb.read("postgresql://me:s3cret:x/y", query="x"), "cannot be understood"),
        refused(lambda: tb.read("postgresql://h/wrong?password=s3cret"), r"\*\*\*"),
        tb.read(f"{URL}#t").name,
        shown(f"{URL}#t"),
    ]
    model = tmp_path / "m.tally"
    for words in (["fit", f"{URL}#t", "--target", "y", "--folds", "0", "-o", model], ["evaluate", model, f"{URL}#t"]):
        done = run(*words)
        assert done.returncode == 0, done.err
        said += [done.out, done.err]
    assert "postgresql://db.example:5432/shop#t" in said[-2]
    assert not any("s3cret" in each or "s%33cret" in each for each in said), said
    assert b"3cret" not in model.read_bytes()


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(tb.MissingExtra, match=r"pip install 'tallybayes\[postgres\]'"):
        tb.read(URL)


# ---- the command line


def test_commands_take_tables_and_queries(here: Path) -> None:
    fit = ["fit", "shop.db", "--target", "y", "--folds", "0", "--no-calibrate", "-o", "m.tally"]
    assert run(*fit).returncode == 0
    first = run("predict", "m.tally", "sqlite:///shop.db", "--format", "jsonl")
    named = run("predict", "m.tally", "shop.db", "--table", ODD, "--format", "jsonl")
    piped = run("predict", "m.tally", "-", "--format", "jsonl", given=Path("shop.db").read_bytes())
    assert first.returncode == 0 and first.stdout == named.stdout == piped.stdout and first.stdout.count(b"\n") == 300
    few = run("predict", "m.tally", "shop.db", "--query", f"SELECT * FROM {quoted(ODD)} LIMIT 7", "--format", "jsonl")
    assert few.stdout.splitlines() == first.stdout.splitlines()[:7]
    done = run("predict", "m.tally", "shop.db", "--table", "nope")
    assert done.returncode == 2 and "there is no table 'nope'" in done.err
    with sqlite3.connect("shop.db") as con:
        con.execute("CREATE TABLE other (x, y)")
    done = run(*fit)
    assert done.returncode == 2 and "say which: --table" in done.err
