"""Tables that were uploaded: only their owner can read them, and who is deleted goes out of them as well."""

from __future__ import annotations

import base64
import gzip
import json
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

pytest.importorskip("starlette", reason="needs the extra serve")
from browsing import Browser
from test_page_start import ended, upload

from tallybayes.serve.app import make_app
from tallybayes.serve.place import Place

LINES = [f"p{i % 5},{'grey' if i % 3 else 'sunny'},{i % 7},{'yes' if i % 3 else 'no'}" for i in range(30)]
HEAD = "person,sky,wind,play"
HERS = ['"Quandt, Zerlina",violet,"9",yes', '"Quandt, Zerlina",grey,"a ""b""\nc",no']


@pytest.fixture
def here(tmp_path: Path) -> Iterator[Place]:
    out = Place(str(tmp_path))
    yield out
    out.close()


def csv(*lines: str) -> bytes:
    return "\r\n".join([HEAD, *LINES[:9], *lines[:1], *LINES[9:], *lines[1:], ""]).encode()


def made(here: Place, name: str, content: bytes) -> Browser:
    """A table is dropped, and a model made of it."""
    app = make_app(here)
    assert upload(app, name, content).status == 200
    person = Browser(app)
    person.get(f"/start/look?table={name}")
    person.send("/start/look", kind0="ignore", target="3", kind2="category")
    form = person.forms[-1].hidden
    person.post("/start/fit", [*form.items(), ("target", "3"), ("kind0", "ignore"), ("name", "m"), ("effort", "quick")])
    ended(app, here)
    assert here.fitting is not None
    assert here.fitting.state == "done", here.fitting.problem
    return person


def erased(person: Browser, value: str) -> tuple[str, str, dict[str, Any]]:
    person.get("/journal/erase")
    before = person.send("/journal/erase", column="person", value=value)
    page = person.send("/journal/erase", sure="yes")
    files = re.findall(r'href="data:application/json[^"]*;base64,([^"]+)"', page)
    assert files, page
    return before, page, json.loads(base64.b64decode(files[0]))


@pytest.mark.skipif(os.name == "nt", reason="other rights")
def test_what_was_uploaded_only_its_owner_can_read(here: Place, tmp_path: Path) -> None:
    upload(make_app(here), "de.csv", csv())
    for file in tmp_path.iterdir():
        assert stat.S_IMODE(file.stat().st_mode) == 0o600, file


def test_who_is_deleted_goes_out_of_the_uploaded_table_and_the_rest_keeps_its_bytes(
    here: Place, tmp_path: Path
) -> None:
    person = made(here, "de.csv", csv(*HERS))
    assert b"Zerlina" in (tmp_path / "de.csv").read_bytes()
    before, page, receipt = erased(person, "Quandt, Zerlina")
    assert "de.csv (2 rows)" in before
    assert 'id="left"' not in before + page
    assert (receipt["tables"], receipt["left"]) == ({"de.csv": 2}, [])
    assert (tmp_path / "de.csv").read_bytes() == csv()
    assert stat.S_IMODE((tmp_path / "de.csv").stat().st_mode) == 0o600
    for file in tmp_path.iterdir():
        assert b"Zerlina" not in file.read_bytes(), file
    _, _, receipt = erased(person, "p3")  # it is still known for a table of the server's own
    assert receipt["tables"] == {"de.csv": 6}


def test_tables_that_lay_there_or_were_changed_or_are_another_models_are_named_and_not_touched(
    here: Place, tmp_path: Path
) -> None:
    (tmp_path / "old.csv").write_bytes(csv(*HERS))
    person = made(here, "de.csv", csv(*HERS))
    upload(person.app, "twice.csv", csv(*HERS))
    (tmp_path / "other.csv").write_text("person,x\nnobody,3\n")
    with (tmp_path / "de.csv").open("ab") as file:
        file.write(b"p9,grey,3,yes\r\n")
    names = ("de.csv", "old.csv", "twice.csv", "other.csv")
    was = {name: (tmp_path / name).read_bytes() for name in names}
    before, page, receipt = erased(person, "Quandt, Zerlina")
    assert "de.csv (2), old.csv (2), twice.csv (2)" in before
    assert receipt["tables"] == {}
    assert receipt["left"] == ["de.csv", "old.csv", "twice.csv"]
    assert "de.csv, old.csv, twice.csv" in page
    assert {name: (tmp_path / name).read_bytes() for name in names} == was


def rows() -> list[dict[str, Any]]:
    lines = [line.split(",") for line in [*LINES, "Zerlina,violet,9,yes", "Zerlina,grey,3,no"]]
    return [dict(zip(HEAD.split(","), line, strict=True)) for line in lines]


def parquet(path: Path) -> bytes:
    pq.write_table(pa.Table.from_pylist(rows()), path)
    return path.read_bytes()


@pytest.mark.parametrize("name", ["de.jsonl", "de.jsonl.gz", "de.parquet", "de.csv.gz", "de.tsv", "de.txt"])
def test_every_kind_of_table_that_can_be_written_is_cleaned(
    here: Place, tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, name: str
) -> None:
    each = [json.dumps(row) for row in rows()]
    text = "\n".join(each) if "json" in name else "\n".join([HEAD, *(",".join(r.values()) for r in rows())])
    raw = (text.replace(",", "\t") if name == "de.tsv" else text).encode()
    raw = gzip.compress(raw) if name.endswith("gz") else raw
    raw = parquet(tmp_path_factory.mktemp("x") / "de.parquet") if name == "de.parquet" else raw
    person = made(here, name, raw)
    _, _, receipt = erased(person, "Zerlina")
    assert (receipt["tables"], receipt["left"]) == ({name: 2}, [])
    content = (tmp_path / name).read_bytes()
    content = gzip.decompress(content) if name.endswith("gz") else content
    assert b"Zerlina" not in content
    assert here.look(name).rows.rows == 30
