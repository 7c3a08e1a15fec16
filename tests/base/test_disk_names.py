"""Paths that no file can have, names that are not UTF-8, and a lock that is not ours."""

from __future__ import annotations

import os
import pathlib
import sys

import pytest

import tallybayes as tb
from tallybayes.base.disk import locked

ROWS = {"x": ["u", "v"] * 3, "y": ["a", "b"] * 3}
MODEL = tb.count(ROWS, tb.Schema([tb.Column("x", "category")], target="y")).model()
linux = pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes there")

WAYS = {
    "fit": lambda path: tb.fit(path, target="y"),
    "read": lambda path: tb.read(path),
    "save": lambda path: MODEL.save(path),
    "load": lambda path: tb.load(path),
    "tally": lambda path: MODEL.tally.save(path),
    "schema": lambda path: MODEL.schema.save(path),
    "load schema": lambda path: tb.Schema.load(path),
    "export": lambda path: MODEL.export(path, "json"),
    "load sealed": lambda path: tb.load_sealed(path),
    "report": lambda path: tb.report(MODEL, ROWS, path=path),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("make", [str, pathlib.Path])
def test_a_path_with_a_zero_in_it_is_refused(way: str, make: type) -> None:
    with pytest.raises(tb.DataError, match="no file can have"):
        WAYS[way](make("a\0b.csv"))


@linux
def test_a_name_that_is_not_utf8_is_refused_or_used_and_always_printable(tmp_path: pathlib.Path) -> None:
    name = tmp_path / os.fsdecode(b"caf\xe9")
    for ending in (".csv", ".jsonl", ".parquet", ".arrow", ".tsv.gz"):
        pathlib.Path(f"{name}{ending}").write_bytes(b"x,y\nu,a\n")
        for path in (f"{name}{ending}", str(tmp_path / f"caf*{ending}")):
            with pytest.raises(tb.DataError, match="not UTF-8") as caught:
                tb.fit(path, target="y")
            assert str(caught.value).encode()
    with pytest.raises(tb.DataError, match="there is no file") as caught:
        tb.fit(f"{name}-none.csv", target="y")
    assert str(caught.value).encode()
    MODEL.save(f"{name}.tb.parquet")
    assert tb.load(f"{name}.tb.parquet").tally == MODEL.tally
    with pytest.raises(tb.ModelFileError) as damaged:
        tb.load(f"{name}.csv")
    assert str(damaged.value).encode()


@linux
def test_a_lock_that_is_a_link_is_not_followed(tmp_path: pathlib.Path) -> None:
    other = tmp_path / "of somebody else"
    (tmp_path / ".m.tb.parquet.lock").symlink_to(other)
    with pytest.raises(OSError, match="symbolic link, which is not followed"), locked(tmp_path / "m.tb.parquet"):
        pass
    assert not other.exists()
    with locked(tmp_path / "another"):
        assert (tmp_path / ".another.lock").exists()
    assert not (tmp_path / ".another.lock").exists()
