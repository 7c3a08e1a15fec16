"""The folder of windows: what was saved comes back, a change is there whole or not at all, damage is noticed."""

import json
import os
import shutil

import pytest

import tallybayes as tb
from tallybayes.base import disk
from tallybayes.store import model_file
from tallybayes.store import windows as folder_of
from tallybayes.store.windows import INDEX

SCHEMA = tb.Schema([tb.Column("c", "category")], target="y")


def rows(hours, value="a"):
    return {"c": [value] * len(hours), "y": ["p"] * len(hours), "t": list(hours)}


def made(path, hours=range(5)):
    windows = tb.Windows(SCHEMA, by="number", time="t")
    windows.add(rows(hours))
    windows.save(path)
    return windows


def digests(windows):
    return {name: tally.digest for name, tally in windows}


def test_what_was_saved_comes_back_and_goes_on(tmp_path):
    windows = made(tmp_path / "w")
    again = tb.Windows.load(tmp_path / "w")
    assert digests(again) == digests(windows) and (again.by, again.time) == ("number", "t")
    assert again.schema == windows.schema and again.window() == windows.window()
    again.add(rows([2, 7], "b"))
    again.forget(rows([0]))
    again.save(tmp_path / "w")
    third = tb.Windows.load(tmp_path / "w")
    assert third.numbers == (1, 2, 3, 4, 7) and digests(third) == digests(again)
    assert len(list((tmp_path / "w").glob("*.parquet"))) == 5  # what the index does not name has gone
    assert tb.Tally.load(next((tmp_path / "w").glob("7.*"))) == third[7]


def test_rows_go_on_being_numbered(tmp_path):
    windows = tb.Windows(SCHEMA, by=3)
    windows.add({"c": ["a"] * 4, "y": ["p"] * 4})
    windows.save(tmp_path / "w")
    again = tb.Windows.load(tmp_path / "w")
    again.add({"c": ["a"] * 3, "y": ["p"] * 3})
    assert [t.rows for _, t in again] == [3, 3, 1]


def test_only_what_changed_is_read_and_written(tmp_path, monkeypatch):
    made(tmp_path / "w", range(50))
    read, written = [], []
    load, save = model_file.load_tally, model_file.save
    monkeypatch.setattr(model_file, "load_tally", lambda path: read.append(path) or load(path))
    monkeypatch.setattr(model_file, "save", lambda path, raw: written.append(path) or save(path, raw))
    windows = tb.Windows.load(tmp_path / "w")
    windows.add(rows([7, 60]))
    windows.save(tmp_path / "w")
    assert len(read) == 1 and len(written) == 2
    windows.save(tmp_path / "w")
    assert len(written) == 2


def test_a_change_that_is_cut_short_anywhere_changes_nothing(tmp_path, monkeypatch):
    """Every step that reaches the disk fails once; before the index is in its place all periods are as they were."""
    made(tmp_path / "w")
    before = digests(tb.Windows.load(tmp_path / "w"))
    steps, real = 0, disk.os.replace

    class Cut(BaseException):
        pass

    for fails in (0, 1, 4, 5, 6):
        steps = 0

        def replace(a, b, fails=fails):
            nonlocal steps
            steps += 1
            if steps > fails:
                raise Cut
            real(a, b)

        copy = tmp_path / f"copy{fails}"
        shutil.copytree(tmp_path / "w", copy)
        windows = tb.Windows.load(copy)
        windows.add(rows(range(5), "b"))
        monkeypatch.setattr(disk.os, "replace", replace)
        try:
            windows.save(copy)
        except Cut:
            assert fails < 6
            assert digests(tb.Windows.load(copy)) == before
            monkeypatch.setattr(disk.os, "replace", real)
            again = tb.Windows.load(copy)  # and the litter of it goes with the next change
            again.add(rows([1]))
            again.save(copy)
            assert len(list(copy.glob("*.parquet"))) == 5
        else:
            assert fails >= 6 and digests(tb.Windows.load(copy)) == digests(windows) != before
        monkeypatch.setattr(disk.os, "replace", real)


def test_two_who_change_a_folder_lose_nothing(tmp_path):
    made(tmp_path / "w")
    one, two = tb.Windows.load(tmp_path / "w"), tb.Windows.load(tmp_path / "w")
    one.add(rows([1]))
    one.save(tmp_path / "w")
    two.add(rows([2]))
    with pytest.raises(tb.ModelFileError, match=r"changed since these were loaded[\s\S]*load the folder again"):
        two.save(tmp_path / "w")
    with pytest.raises(tb.ModelFileError, match="not these"):
        made(tmp_path / "w")
    assert tb.Windows.load(tmp_path / "w")[1].rows == 2
    late = tb.Windows.load(tmp_path / "w")
    one.add(rows([3]))
    one.save(tmp_path / "w")
    with pytest.raises(tb.ModelFileError, match="has changed meanwhile"):
        late.window()


def test_damage_is_noticed(tmp_path):
    made(tmp_path / "w")
    index = tmp_path / "w" / INDEX
    good = index.read_bytes()
    with pytest.raises(tb.ModelFileError, match="there are no windows in"):
        tb.Windows.load(tmp_path / "none")
    for bad in (good.replace(b'"by"', b'"bz"'), good[:-30], b"", good.replace(b".parquet", b".parquex", 1)):
        index.write_bytes(bad)
        with pytest.raises(tb.ModelFileError, match="does not have its checksum"):
            tb.Windows.load(tmp_path / "w")

    def rewritten(**changes):
        content = {**json.loads(good.decode().split("\n", 1)[1]), **changes}
        text = json.dumps(content)
        index.write_text(f"{folder_of.hashlib.sha256(text.encode()).hexdigest()}\n{text}\n")

    for changes, said in [
        ({"format": 2}, "windows of format 2"),
        ({"periods": {"1": ["../x.parquet", 1, "0"]}}, "a period in a file called"),
        ({"periods": [1]}, "means nothing"),
        ({"arrived": "many"}, "means nothing"),
    ]:
        rewritten(**changes)
        with pytest.raises(tb.TallybayesError, match=said):
            tb.Windows.load(tmp_path / "w")
    index.write_bytes(good)
    one, two = sorted((tmp_path / "w").glob("[01].*"))
    os.replace(two, one)
    with pytest.raises(tb.TallybayesError):
        tb.Windows.load(tmp_path / "w").window()
