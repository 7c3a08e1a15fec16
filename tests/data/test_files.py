"""Files as people have them: wrong names, wrong bytes, bad lines; and what happens then."""

from __future__ import annotations

import csv
import gzip
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import ALL, examples

import tallybayes as tb

GOOD = "age,city,y\n" + "".join(f"{20 + i % 7},{'Bonn' if i % 3 else 'Köln'},{'ab'[i % 2]}\n" for i in range(40))
SCHEMA = tb.Schema([tb.Column("age", "number"), tb.Column("city", "category")], target="y")


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Write a file of some name; the test works in the folder it is in."""
    monkeypatch.chdir(tmp_path)

    def write(name: str, content: str | bytes) -> str:
        Path(name).write_bytes(content if isinstance(content, bytes) else content.encode())
        return name

    return write


def refused(what: Any, *words: str, kind: type[Exception] = tb.DataError) -> None:
    with pytest.raises(kind) as caught:
        what()
    assert len(str(caught.value).partition("\n\nHint: ")[2]) > 10
    for word in words:
        assert re.search(word, str(caught.value)), (word, str(caught.value))


def counted(data: Any, **options: Any) -> tb.Tally:
    return tb.count(tb.read(data, **options) if options else data, SCHEMA)


EXPECTED = counted(pd.read_csv(io.StringIO(GOOD)))


# ---- ways to write the same file


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("plain.csv", GOOD, {}),
        ("bom.csv", b"\xef\xbb\xbf" + GOOD.encode(), {}),
        ("windows.csv", GOOD.replace("\n", "\r\n"), {}),
        ("no end.csv", GOOD.rstrip(), {}),
        ("blank lines.csv", "\n\n" + GOOD.replace("\n", "\n\n"), {}),
        ("quoted.csv", re.sub(r"[^,\n]+", r'"\g<0>"', GOOD), {}),
        ("semicolons.csv", GOOD.replace(",", ";"), {}),
        ("bars.txt", GOOD.replace(",", "|"), {}),
        ("tabs.tsv", GOOD.replace(",", "\t"), {}),
        ("tabs.csv", GOOD.replace(",", "\t"), {}),
        ("packed.csv.gz", gzip.compress(GOOD.encode()), {}),
        ("carets.csv", GOOD.replace(",", "^"), {"delimiter": "^"}),
        ("latin.csv", GOOD.encode("latin-1"), {"encoding": "latin-1"}),
        ("windows-1252.csv.gz", gzip.compress(GOOD.encode("cp1252")), {"encoding": "cp1252"}),
        ("no ending", GOOD, {"format": "csv"}),
        ("commas.csv", re.sub(r"^(\d+);", r"\1,0;", GOOD.replace(",", ";"), flags=re.M), {"decimal": ","}),
        ("[odd] *name?'.csv", GOOD, {}),
        ("small.csv", GOOD, {"memory_limit": "32MiB"}),
    ],
    ids=lambda v: v if isinstance(v, str) and len(v) < 30 else "",
)  # fmt: skip
def test_ways_to_write_a_csv(name: str, content: str | bytes, options: dict, write) -> None:
    assert counted(write(name, content), **options) == EXPECTED


@given(
    st.lists(
        st.tuples(st.text(max_size=6), st.text(alphabet="ab\",;\t|\n\r '#\\0", max_size=5), st.sampled_from("uv")),
        min_size=1,
        max_size=12,
    ),
    st.sampled_from(",;\t|"),
    st.sampled_from(["\n", "\r\n"]),
)
@examples(40)
def test_what_the_csv_module_writes_is_read_back(tmp_path_factory, rows, delimiter: str, end: str) -> None:
    # Whatever is quoted by Python's writer comes back; NUL alone no CSV can hold, and a lone "\r" ends a line for some.
    rows = [tuple(re.sub("[\0\r]", "", v) for v in row) for row in rows]
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    with path.open("w", newline="", encoding="utf-8", errors="replace") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL)
        writer.writerows([("a", "b", "y"), *rows])
    schema = tb.Schema([tb.Column("a", "category"), tb.Column("b", "text")], target="y")
    clean = [[v.encode("utf-8", "replace").decode() or None for v in row] for row in rows]
    columns = dict(zip(("a", "b", "y"), zip(*clean, strict=True), strict=True))
    from tallybayes.base import canon

    columns["a"] = [None if v is None else canon.written(v) for v in columns["a"]]
    assert tb.count(tb.read(path, delimiter=delimiter), schema) == tb.count(columns, schema)


SPELLINGS = [
    "1", "-2.5", " 3", "4 ", "+5", "1e5", "1E-3", ".5", "5.", "-0", "0.1", "12345678901234567890", "1e-400", "nan",
    "NaN", "",
]  # fmt: skip
ODD = [
    "inf",
    "-Infinity",
    "1_000",
    "0x10",
    "true",
    "NA",
    "  ",
    "1e400",
    "1,5",
    "１",
    "\xa07",
    "1d5",
    "1f",
    "--1",
    "-999",
]


@given(
    st.lists(st.sampled_from(SPELLINGS), max_size=6),
    st.lists(st.sampled_from(ODD), max_size=1),
    st.sampled_from([(), ("NA",), ("-999", "true")]),
)
@examples(80)
def test_a_number_in_a_file_is_what_it_is_elsewhere(tmp_path_factory, values, odd, missing) -> None:
    """Arrow parses numbers by itself; whatever it does, they are those that the same texts are in memory."""
    values = [*values, *odd, "2"]
    schema = tb.Schema([tb.Column("x", "number", missing=missing)], target="y")
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([["x", "y"], *([v, "u"] for v in values)])
    told = {"x": [v or None for v in values], "y": ["u"] * len(values)}

    def tally_or_error(data: Any) -> Any:
        try:
            return tb.count(data, schema).digest
        except tb.DataError as error:
            return re.sub(r"^.*, column 'x': |^column .*\(the first is row 0\): ", "", error.found)

    assert tally_or_error(path) == tally_or_error(told)


def test_a_name_cannot_smuggle_sql(write) -> None:
    nasty = "ci'ty\"; DROP TABLE x; --"
    path = write("a'; DROP TABLE x; --.csv", GOOD.replace("city", '"' + nasty.replace('"', '""') + '"'))
    assert tb.infer(path, "y").names == ("age", nasty)
    pq.write_table(pa.table({nasty: ["u", "v"], "Y": ["a", "b"], "y": ["a", "b"]}), "t'.parquet")
    assert tb.infer("t'.parquet", "y").columns[0].name == nasty


def test_columns_that_differ_in_case_only(write) -> None:
    path = write("t.csv", "A,a,y\n1,2,u\n1,3,v\n")
    tally = tb.count(path, tb.Schema([tb.Column("A", "category"), tb.Column("a", "category")], target="y"))
    assert tally.columns["A"].sheets["values"].slot_names == ["1"]
    assert sorted(tally.columns["a"].sheets["values"].slot_names) == ["2", "3"]


def test_leading_zeros_stay(write) -> None:
    path = write("t.csv", "zip,note,y\n01234,012 bond,u\n1234,12 bond,v\n")
    schema = tb.Schema([tb.Column("zip", "category"), tb.Column("note", "text")], target="y")
    tally = tb.count(path, schema)
    assert set(tally.columns["zip"].sheets["values"].slot_names) == {"01234", "1234"}
    assert {"012", "12"} <= set(map(str, tally.columns["note"].sheets["words"].slot_names))


def test_an_empty_field_is_missing_for_every_kind(write) -> None:
    path = write("t.csv", 'n,c,t,d,y\n,"",,,u\n1,a,b,2024-05-31,u\n')
    columns = [tb.Column("n", "number"), tb.Column("c", "category"), tb.Column("t", "text"), tb.Column("d", "date")]
    schema = tb.Schema(columns, target="y")
    expected = {"n": [None, 1], "c": [None, "a"], "t": [None, "b"], "d": [None, "2024-05-31"], "y": ["u", "u"]}
    assert tb.count(path, schema) == tb.count(expected, schema)


# ---- what is refused, and in which words


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("empty.csv", b"", ["empty.csv: the file is empty"]),
        ("blank.csv", b"\n \n", ["blank.csv: the file is empty"]),
        ("mark.csv", b"\xef\xbb\xbf\r\n\xc2\xa0\n", ["mark.csv: the file is empty"]),
        ("empty.csv.gz", b"", ["empty.csv.gz: the file is empty"]),
        ("nothing.csv.gz", gzip.compress(b""), ["nothing.csv.gz: the file is empty"]),
        ("empty.jsonl", b"", ["the file is empty"]),
        ("cut.csv.gz", gzip.compress(os.urandom(9000))[:-4000], ["cut.csv.gz: the file cannot be unpacked as gzip"]),
        ("not.csv.gz", GOOD, ["by its first bytes the file is not gzip"]),
        ("packed.csv", gzip.compress(GOOD.encode()), ["by its first bytes the file is gzip", r"end in \.gz"]),
        ("not.parquet", GOOD, ["is not a Parquet file"]),
        ("cut.parquet", b"PAR1" + b"x" * 50, ["cut.parquet: the Parquet file cannot be read"]),
        ("cut.feather", b"ARROW1" + b"x" * 50, ["cut.feather: the Arrow file cannot be read"]),
        ("sheet.csv", b"PK\x03\x04....", ["an Excel workbook or another zip archive", "format='excel'"]),
        ("what.xyz", GOOD, ["the ending does not say", r"format='csv'"]),
        ("repeated.csv", "a,b,a,y\n1,2,3,u\n", ["repeated.csv: more than one column is called 'a'"]),
        ("latin.csv", GOOD.encode("latin-1"), ["latin.csv, line 2: bytes that are not UTF-8", "encoding='latin-1'"]),
        ("sixteen.csv", GOOD.encode("utf-16"), ["UTF-16", "encoding='utf-16'"]),
        ("short.csv", GOOD + "1,2\n" + GOOD[11:], ["short.csv, line 42: 2 fields where the header has 3", "bad_lines"]),
        ("word.csv", GOOD + "end\n", ["word.csv, line 42: 1 field where the header has 3"]),
        ("long.csv", GOOD + "1,2,3,4\n", ["long.csv, line 42: 4 or more fields where the header has 3"]),
        ("quote.csv", GOOD + '30,"Bad,a\n', ["quote.csv, line 42: a quoted field does not end"]),
        ("newline.csv", 'age,city,y\n1,"a\nb",u\n\n\n3,4\n', ["newline.csv, line 6: 2 fields where the header has 3"]),
        ("mark.csv", b"\xef\xbb\xbfage,city,y\n\n1,2,3\n3,4\n", ["mark.csv, line 4: 2 fields"]),
        ("word.csv", GOOD + "old,Bonn,a\n", ["word.csv, line 42, column 'age': 'old' is not a number", "category"]),
        ("comma.csv", GOOD + '"3,5",Bonn,a\n', ["line 42, column 'age': '3,5' is not a number", "decimal"]),
        ("group.csv", GOOD + "1_000,Bonn,a\n", ["line 42, column 'age': '1_000' is not a number"]),
        ("inf.csv", GOOD + "inf,Bonn,a\n", ["line 42, column 'age': inf is not a number that can be added"]),
        ("others.csv", "x,z,y\n1,2,3\n", ["none of the columns 'age', 'city' is in the data", "'x', 'z', 'y'"]),
        ("no target.csv", "age,city,Y\n1,2,3\n", ["no target column 'y'", "did you mean 'Y'"]),
        ("bad.jsonl", '{"age": 1}\n{"age": 1,\n', ["bad.jsonl, line 2: not JSON"]),
        ("list.jsonl", '{"age": 1}\n\n[1]\n', ["list.jsonl, line 3: list where an object is expected"]),
        ("array.json", '[{"age": 1}]', ["one object per line", "jq"]),
        ("word.jsonl", '{"age": 1, "city": "x", "y": "a"}\n\n{"age": "old"}\n', ["word.jsonl, line 3, column 'age'"]),
    ],
    ids=lambda v: v if isinstance(v, str) and len(v) < 30 else "",
)  # fmt: skip
def test_what_is_refused(name: str, content: str | bytes, words: list[str], write) -> None:
    path = write(name, content)
    refused(lambda: tb.count(path, SCHEMA), *words)


def test_places_that_are_no_files(write, tmp_path: Path) -> None:
    write("people.csv", GOOD)
    refused(lambda: counted("poeple.csv"), "there is no file poeple.csv", "did you mean 'people.csv'")
    (empty := tmp_path / "empty").mkdir()
    refused(lambda: counted(empty), "is a folder without files of rows", r"\*\.csv")
    refused(lambda: counted("nothing-*.csv"), r"no file matches nothing-\*\.csv")
    refused(lambda: counted("https://example.org/a.csv"), "is an address, not a file")
    os.mkfifo("pipe.csv")
    refused(lambda: counted("pipe.csv"), "no regular file")
    refused(lambda: tb.read("people.csv", format="word"), "format='word'", kind=tb.SettingsError)
    refused(lambda: tb.read("people.csv", delimiter=";;"), "delimiter=", kind=tb.SettingsError)
    refused(lambda: tb.read("people.csv", bad_lines="drop"), "bad_lines='drop'", kind=tb.SettingsError)
    refused(lambda: tb.read("people.csv", encoding="klingon"), "encoding='klingon'", kind=tb.SettingsError)
    refused(lambda: tb.read("people.csv", decimal=";"), "decimal=", kind=tb.SettingsError)


def test_an_unreadable_file(write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("secret.csv", GOOD)
    os.chmod(path, 0)
    if os.access(path, os.R_OK):  # root reads everything, so the refusal is played
        real = open
        monkeypatch.setattr("builtins.open", lambda p, *a, **k: real(p, *a, **k) if p != path else _denied(p))
    refused(lambda: counted(path), "secret.csv cannot be opened: Permission denied", "permissions")


def _denied(path: str) -> None:
    raise PermissionError(13, "Permission denied", path)


def test_a_schema_for_more_columns_warns(write) -> None:
    path = write("t.csv", "age,y\n1,a\n")
    with pytest.warns(tb.TallybayesWarning, match="taken as missing: 'city'"):
        tb.count(path, SCHEMA)


@pytest.mark.parametrize("rows", [5_000_000 if ALL else 200_000])
def test_a_column_that_turns_from_number_to_word(rows: int, write) -> None:
    with open("long.csv", "w", encoding="utf-8") as file:
        file.write("age,city,y\n")
        file.writelines(f"{i % 90},{'ab'[i % 2]},{'uv'[i % 3 > 0]}\n" for i in range(rows))
        file.write("old,a,u\n")
    refused(lambda: counted("long.csv"), f"long.csv, line {rows + 2}, column 'age': 'old' is not a number")
    as_category = SCHEMA.with_column("age", kind="category")
    assert "old" in tb.count("long.csv", as_category).columns["age"].sheets["values"].slot_names


def test_the_line_is_right_after_quoted_newlines_and_skipped_lines(write) -> None:
    path = write("t.csv", 'age,city,y\n30,"Bad\nHonnef",a\n\n1,2\nold,Bonn,a\n')
    with pytest.warns(tb.TallybayesWarning, match="line 5"), pytest.raises(tb.DataError, match=r"t\.csv, line 6, col"):
        tb.count(tb.read(path, bad_lines="skip"), SCHEMA.with_column("city", kind="text"))


def test_a_message_names_the_file_of_many(write) -> None:
    write("part-1.csv", GOOD)
    write("part-2.csv", GOOD + "old,Bonn,a\n")
    refused(lambda: counted("part-*.csv"), r"part-2\.csv, line 42, column 'age'")
    write("part-2.csv", "age,town,y\n1,Bonn,a\n")
    refused(lambda: counted("part-*.csv"), r"part-2\.csv and part-1\.csv have different columns", "'city', 'town'")


# ---- bad lines, by choice


def test_bad_lines_can_be_skipped(write) -> None:
    bad = GOOD + "1,2\n" + "5,6,7,8\n" + GOOD[11:]
    path = write("bad.csv", bad)
    with pytest.warns(tb.TallybayesWarning, match=r"bad\.csv: 2 bad lines were skipped, the first is line 42") as told:
        tally = tb.fit(tb.read(path, bad_lines="skip"), schema=SCHEMA).tally
    assert tally == EXPECTED + EXPECTED
    assert len(told) == 1
    path = write("bad.jsonl", '{"age": 1, "city": "x", "y": "a"}\nno\n{"age": 2, "city": "x", "y": "a"}\n')
    with pytest.warns(tb.TallybayesWarning, match=r"1 bad line was skipped, the first is line 2"):
        assert tb.count(tb.read(path, bad_lines="skip"), SCHEMA).rows == 2


def test_a_value_that_is_no_number_is_not_a_bad_line(write) -> None:
    path = write("t.csv", GOOD + "old,Bonn,a\n")
    refused(lambda: counted(path, bad_lines="skip"), "line 42, column 'age': 'old' is not a number")


# ---- spellings that are noticed


@pytest.mark.parametrize(
    ("values", "words"),
    [
        (["3,14", "2,5", "10"], "numbers with a comma, such as '3,14'.*decimal=','"),
        (["1/2/2024", "3/4/2024"], "dates such as '1/2/2024'.*date_format='%d/%m/%Y' or '%m/%d/%Y'"),
        (["$5.00", "€7.50"], "amounts in . and ."),
    ],
)
def test_numbers_and_dates_in_another_spelling_are_noticed(values: list[str], words: str) -> None:
    rng = np.random.default_rng(1)
    table = {"v": [*values, *rng.choice(values, 40)], "y": rng.choice(["a", "b"], 40 + len(values))}
    with pytest.warns(tb.TallybayesWarning, match=words):
        schema = tb.infer(table, "y")
    assert schema["v"].kind == "category"


@pytest.mark.parametrize("values", [["a,b", "c,d"], ["1.2.3", "2.0.1"], ["3-1", "4-2"], ["1,a", "2,5"]])
def test_other_texts_are_not_mistaken_for_them(values: list[str]) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        tb.infer({"v": values * 20, "y": ["a", "b", "b", "a"] * 10}, "y")


# ---- while it is read


def test_a_file_that_changes_between_passes(write) -> None:
    path = write("t.csv", GOOD)
    source = tb.read(path)
    schema = tb.infer(source, "y")
    write("t.csv", GOOD + "30,Bonn,a\n")
    refused(lambda: tb.count(source, schema), "t.csv: the file changed while it was being read")
    assert tb.count(path, schema).rows == 41  # opened anew it is another file


def test_progress_is_told(write) -> None:
    told: list[tuple[int, float | None]] = []
    write("a.csv", GOOD)
    write("b.csv", GOOD)
    tally = tb.count(tb.read("[ab].csv", progress=lambda rows, share: told.append((rows, share))), SCHEMA)
    assert [rows for rows, _ in told][-1] == tally.rows == 80
    assert told[-1][1] == 1.0
    assert told == sorted(told)


def test_nothing_is_left_behind(write, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("t.csv", GOOD.encode("latin-1"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(scratch))
    assert counted(path, encoding="latin-1") == EXPECTED
    assert sorted(os.listdir(tmp_path)) == ["scratch", "t.csv"]
    assert os.listdir(scratch) == []


def run(code: str) -> subprocess.CompletedProcess[str]:
    """Another Python in the folder of the test, with the library under test."""
    env = {**os.environ, "PYTHONPATH": str(Path(tb.__file__).parents[1]), "TALLYBAYES_THREADS": "2"}
    command = [sys.executable, "-c", textwrap.dedent(code)]
    return subprocess.run(command, capture_output=True, text=True, env=env, check=False)


def test_a_killed_process_leaves_nothing_where_it_worked(write, tmp_path: Path) -> None:
    with open("t.csv", "w", encoding="utf-8") as file:
        file.write(GOOD)
        file.writelines(["30,Bonn,a\n"] * 300_000)
    code = """
        import os, signal, tallybayes as tb
        model = tb.fit("small.csv", target="y")
        stop = lambda rows, share: os.kill(os.getpid(), signal.SIGKILL) if rows > 100_000 else None
        tb.predict_file(model, tb.read("t.csv", progress=stop), "out.csv")
    """
    write("small.csv", GOOD)
    assert run(code).returncode == -signal.SIGKILL
    assert sorted(os.listdir(tmp_path)) == ["small.csv", "t.csv"]


@pytest.mark.parametrize("size", ["1MB", "lots", "-3GB", "0", "12 apples"])
def test_a_memory_limit_that_is_none(size: str, write, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write("t.csv", GOOD)
    refused(lambda: tb.read(path, memory_limit=size), "memory_limit=", kind=tb.SettingsError)
    monkeypatch.setenv("TALLYBAYES_MEMORY", size)
    refused(lambda: tb.count(path, SCHEMA), "TALLYBAYES_MEMORY=", kind=tb.SettingsError)


MEGABYTES = 400 if ALL else 70


def test_memory_is_bounded(write) -> None:
    """A file several times as large as the limit: the process grows by little more than the limit."""
    code = f"""
        import resource, sys, numpy as np, tallybayes as tb
        try:  # what it weighs is not that of the file
            from tallybayes.exact.kernels import moments
        except ImportError:
            pass
        rng = np.random.default_rng(0)
        block = "".join(
            f"{{a}},{{b:.6f}},{{'some words'}} {{c}},{{'uv'[a % 2]}}\\n"
            for a, b, c in zip(rng.integers(0, 50, 20_000), rng.normal(size=20_000), rng.integers(0, 99, 20_000))
        )
        def write(path, megabytes):
            with open(path, "w") as file:
                file.write("a,b,t,y\\n")
                for _ in range(megabytes * 10**6 // len(block) + 1):
                    file.write(block)
        schema = tb.Schema([tb.Column("a", "category"), tb.Column("b", "number"), tb.Column("t", "text")], target="y")
        peak = lambda: resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        write("small.csv", 6)
        tb.count(tb.read("small.csv", memory_limit="32MiB"), schema)
        before = peak()
        write("large.csv", {MEGABYTES})
        tally = tb.count(tb.read("large.csv", memory_limit="32MiB"), schema)
        print(before, peak(), tally.rows)
    """
    done = run(code)
    assert done.returncode == 0, done.stderr
    before, after, rows = map(int, done.stdout.split())
    assert rows > MEGABYTES * 10_000
    assert after - before < 100


# ---- predictions to a file


@pytest.fixture
def model() -> tb.Model:
    return EXPECTED.model()


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.jsonl", "out.parquet", "out.csv.gz", "out.jsonl.zst"])
def test_predictions_stream_to_a_file(name: str, write, model: tb.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallybayes.data.files.duckdb._STEP", 2048)
    monkeypatch.setattr("tallybayes.data.files.file.Options.batch_bytes", property(lambda self: 40_000))
    path = write("t.csv", GOOD + "".join(f"{i % 40},Bonn,a\n" for i in range(9000)))
    assert tb.predict_file(model, path, name, keep=["age"]) == 9040
    proba, answers = model.predict_proba(path), model.predict(path)
    back = _read_back(name)
    assert back.columns.tolist() == ["age", "prediction", "P(a)", "P(b)"]
    np.testing.assert_allclose(back[["P(a)", "P(b)"]].to_numpy(), proba, rtol=0, atol=1e-15)
    assert back["prediction"].tolist() == answers.tolist()
    assert back["age"].astype(int).tolist() == pd.read_csv(path)["age"].tolist()


def _read_back(name: str) -> pd.DataFrame:
    if name.endswith("parquet"):
        return pd.read_parquet(name)
    with pa.input_stream(name, compression={"gz": "gzip", "zst": "zstd"}.get(name.rpartition(".")[2])) as file:
        text = file.read().decode()
    if "jsonl" in name:
        return pd.DataFrame([json.loads(line) for line in text.splitlines()])
    return pd.read_csv(io.StringIO(text), sep="\t" if "tsv" in name else ",")


def test_predictions_to_an_open_file_and_without_probabilities(write, model: tb.Model) -> None:
    out = io.BytesIO()
    assert (
        tb.predict_file(model, {"age": [20, 26], "city": ["Bonn", None]}, out, format="csv", probabilities=False) == 2
    )
    assert out.getvalue().splitlines()[0].strip(b'"') == b"prediction"
    assert len(out.getvalue().splitlines()) == 3


def test_a_failure_leaves_the_old_file(write, model: tb.Model, tmp_path: Path) -> None:
    write("out.csv", "precious")
    bad = write("bad.csv", GOOD + "old,Bonn,a\n")
    refused(lambda: tb.predict_file(model, bad, "out.csv"), "line 42, column 'age'")
    assert Path("out.csv").read_text(encoding="utf-8") == "precious"
    refused(lambda: tb.predict_file(model, "bad.csv", "nowhere/out.csv"), "cannot be written", kind=tb.DataError)
    refused(lambda: tb.predict_file(model, "bad.csv", "out.xls"), "'xls'", kind=tb.SettingsError)
    refused(lambda: tb.predict_file(model, "bad.csv", "out"), "does not say", kind=tb.SettingsError)
    refused(lambda: tb.predict_file(model, "bad.csv", "o.csv", keep=["agee"]), "no column 'agee'", "'age'")
    refused(lambda: tb.predict_file(model, "bad.csv", "o.csv", keep=["P(a)"]), "prediction", kind=tb.SettingsError)
    assert sorted(os.listdir(tmp_path)) == ["bad.csv", "out.csv"]


def test_an_absent_column_is_told_once(write, model: tb.Model, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallybayes.data.files.file.Options.batch_bytes", property(lambda self: 1))
    path = write("t.csv", "age\n" + "20\n" * 20_000)
    with pytest.warns(tb.TallybayesWarning) as told:
        assert tb.predict_file(model, path, "out.csv") == 20_000
    assert len(told) == 1


# ---- queries


def test_a_model_without_columns_still_counts_the_rows(write) -> None:
    path = write("t.csv", GOOD)
    assert len(tb.Model.written({"a": 0.25, "b": 0.75}).predict(path)) == 40
    assert tb.count(path, tb.Schema([], target="y")).rows == 40


def test_queries_that_fail_say_so() -> None:
    con = duckdb.connect()
    refused(lambda: counted("SELECT * FROM nowhere", connection=con), "the query cannot be run: .*nowhere")
    lite = sqlite3.connect(":memory:")
    refused(lambda: counted("SELECT * FROM nowhere", connection=lite), "the query cannot be run: .*nowhere")
    refused(lambda: counted("CREATE TABLE t (i INTEGER)", connection=lite), "the query gives no table")
    refused(lambda: tb.read("SELECT 1", connection=3), "connection= is of type int")
    refused(lambda: tb.read(con), "a connection is no table")


def test_a_relation_is_read_as_often_as_needed(write) -> None:
    path = write("t.csv", GOOD)
    relation = duckdb.connect().sql(f"SELECT * FROM read_csv('{path}')")
    assert tb.fit(relation, schema=SCHEMA).tally == EXPECTED
    assert tb.count(relation, SCHEMA) == EXPECTED
