"""Metadata made to deceive: any JSON under a right digest and checksum is read as a model, or refused in our words."""

from __future__ import annotations

import copy
import json
import os
import random
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from strategies import ALL

import tallybayes as tb
from tallybayes.store import model_file, parquet, sealed

FROZEN = Path(__file__).resolve().parents[1] / "golden" / "frozen"
MUTATIONS = 1_500 if ALL else 200
NOTES = ["good air", "wet wet wet", "", "so so"] * 3
ROWS = {
    "sky": ["sunny", "rainy", "sunny", "grey"] * 3,
    "temp": [20.5, 7.0, None, 11.0, 8.5, 9.25] * 2,
    "note": NOTES,
    "v": [[1.0, 2.0], [3.0, 1.0], [2.5, 0.0], [0.0, 1.0]] * 3,
    "day": ["2024-05-31", "2024-01-02", None, "2023-12-24"] * 3,
    "play": ["yes", "no", "yes", "no"] * 3,
}
COLUMNS = [
    tb.Column("sky", "category", values=("sunny", "rainy", "grey", "storm")),
    tb.Column("temp", "number"),
    tb.Column("note", "text", text=tb.Tokeniser(pattern="[a-z]+", stop="english"), levels=3),
    tb.Column("v", "vector", width=2),
    tb.Column("day", "date"),
    tb.Column("sky × temp", "pair", of=(tb.PairColumn("sky"), tb.PairColumn("note"))),
]
ODD = [
    *(
        None,
        True,
        False,
        0,
        -1,
        3,
        10**9,
        10**12,
        -(10**300),
        1e308,
        0.5,
        float("nan"),
        float("inf"),
        "",
        "x",
        "\ud800",
    ),
    *("9" * 50, [], [[]], {}, {"x": 1}, [1, "a", None], {"type": "Laplace", "options": {}}, {"map": [[1, 2]]}),
]


def files() -> dict[str, bytes]:
    """Files of every sort: counted, written by hand, a tally, with settings of all kinds, sealed scorers."""
    model = tb.count(ROWS, tb.Schema(COLUMNS, target="play")).model()
    tables = {"sky": {"yes": {"sunny": 0.7, "grey": 0.3}, "no": {"sunny": 0.2, "grey": 0.8}}}
    by_hand = tb.Model.written({"yes": 0.6, "no": 0.4}, tables)
    own = {"model": model_file.to_bytes(model), "by hand": model_file.to_bytes(by_hand)}
    own["tally"] = model_file.tally_to_bytes(model.tally)
    return own | {path.name: path.read_bytes() for path in sorted(FROZEN.glob("*.parquet"))}


def places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Every container within some JSON, with a key or number of it."""
    for key in list(value) if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ():
        yield value, key
        yield from places(value[key])


def mutated(given: Any, rng: random.Random) -> Any:
    """The same JSON with one to three things dropped, retyped, nested, enlarged, renamed or doubled."""
    out = copy.deepcopy(given)
    for _ in range(rng.choice([1, 1, 1, 2, 3])):
        found = list(places(out))
        if not found:
            return rng.choice(ODD)
        box, key = rng.choice(found)
        form, old = rng.randrange(7), box[key]
        if form == 0:
            del box[key]
        elif form == 1:
            box[key] = copy.deepcopy(rng.choice(ODD))
        elif form == 2:
            for _ in range(rng.choice([1, 2, 60, 150])):
                old = [old] if rng.random() < 0.5 else {"list": [old]}
            box[key] = old
        elif form == 3:
            box[key] = (
                old * 1_000_003 if isinstance(old, (int, float)) else old * 3 if isinstance(old, (str, list)) else old
            )
        elif form == 4 and isinstance(box, dict):
            box[rng.choice(["x", "name", "kind", "type", ""])] = box.pop(key)
        elif form == 5 and isinstance(box, list):
            box.append(old)
        else:
            other, there = rng.choice(found)
            box[key] = copy.deepcopy(other[there])
    return out


def with_metadata(raw: bytes, rng: random.Random) -> bytes:
    """A file with one or two of its texts mutated, under the digest and checksum that the writer would give it."""
    parts = parquet.unpack(raw)
    texts = {k.removeprefix(parquet.PREFIX): v for k, v in parts.metadata.items()}
    names = [
        n
        for n in ("schema", "sheets", "settings", "families", "written", "notes", "scorer", "provenance")
        if n in texts
    ]
    for name in rng.sample(names, rng.choice([1, 1, 2])):
        texts[name] = json.dumps(mutated(json.loads(texts[name]), rng))
        if rng.random() < 0.03:
            texts[name] = "[" * 100_000 + "]" * 100_000
        if rng.random() < 0.03:
            del texts[name]
    if texts["kind"] != "sealed":
        try:
            tally = model_file._interpreted(texts, parts).tally
        except Exception:  # then it has none that a digest could be of
            tally = None
        texts["digest"] = model_file._digest(texts, tally)
    return parquet.pack(parts.table(()), {parquet.PREFIX + k: v for k, v in texts.items() if k != "checksum"})


def read(raw: bytes) -> bool:
    """Whether the bytes are read; what is refused is refused in our words, and what is read is of use."""
    is_sealed = b"tallybayes.scorer" in raw
    try:
        model = sealed.sealed_from_bytes(raw) if is_sealed else model_file.from_bytes(raw)
    except tb.TallybayesError:  # which no one can make without a hint
        return False
    use(model)
    return True


def rows_for(schema: tb.Schema) -> dict[str, list[Any]] | None:
    """Four rows that a schema can read, one of them missing; None where it reads one column as two kinds."""
    out: dict[str, list[Any]] = {}
    for column in schema.counted:
        sides = [(side.source, side.kind, side.part) for side in column.of or ()]
        for source, kind, part in sides or [(column.reads, column.kind, column.part)]:
            values = VALUES["date" if part else kind]
            if kind == "vector":
                values = [[x] * (column.width or 2) if x is not None else None for x in values]
            if out.setdefault(source, values) != values:
                return None
    return out


VALUES: dict[str, list[Any]] = {
    "category": ["sunny", "x", None, "red"],
    "number": [1.0, 3.0, None, 7],
    "text": ["so good", "wet x", None, ""],
    "vector": [0.5, 1.0, None, 0.0],
    "bag": [["so", "x"], [], None, ["wet", "wet"]],
    "date": ["2024-05-31", "2024-01-02T03:04:05", None, "1999-12-24"],
}


def use(model: Any) -> None:
    """Everything that can be asked of a model."""
    asked = rows_for(model.schema)
    if asked is None:
        return
    row = {name: values[0] for name, values in asked.items()}
    probabilities = model.predict_proba(asked)
    assert probabilities.shape == (4, len(model.classes)) or not asked
    model.predict(asked), model.predict(row), model.predict_proba(row)
    str(model.explain(row)), repr(model), repr(model.schema)
    if isinstance(model, sealed.Sealed):
        sealed.check_sealed(sealed.sealed_to_bytes(model))
        return
    again = model_file.from_bytes(model_file.to_bytes(model))
    np.testing.assert_array_equal(again.predict_proba(asked), probabilities)
    if model.tally is None:
        return
    assert again.tally == model.tally and model.tally.digest == again.tally.digest
    label, weight = model.classes[0], model.schema.weights
    more = {weight: 1.0} if weight is not None else {}
    one = {**row, model.schema.target: label, **more}
    many = {**asked, model.schema.target: [label] * 4, **{n: [v] * 4 for n, v in more.items()}}
    for rows in (one, many):
        try:
            after = model.update(rows)
        except tb.TallybayesError:  # cells that no such numbers have, classes that no such label has
            continue
        after.predict_proba(asked)
        assert after.forget(rows).tally == model.tally


def run(start: int, count: int) -> None:
    """Some mutations, in a process of their own with room and time for each."""
    import resource
    import signal
    import warnings

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (6 << 30, 6 << 30))
    given, wrong, taken = list(files().values()), [], 0
    for number in range(start, start + count):
        rng = random.Random(number)
        raw = with_metadata(rng.choice(given), rng)
        signal.alarm(20)  # ends the process, and the test with it
        try:
            taken += read(raw)
        except Exception as error:
            wrong.append(f"{number}: {type(error).__name__}: {str(error)[:100]}")
        signal.alarm(0)
    assert all(map(read, given))
    print(json.dumps({"taken": taken, "wrong": wrong}))


def test_no_metadata_raise_what_is_not_ours() -> None:
    command = [sys.executable, __file__, "0", str(MUTATIONS)]
    env = os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)}  # with the helpers beside the tests
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env)
    assert done.returncode == 0, done.stderr[-2000:]
    found = json.loads(done.stdout)
    assert not found["wrong"], f"{len(found['wrong'])} of {MUTATIONS}: {found['wrong'][:5]}"
    assert 0 < found["taken"] < MUTATIONS / 2


@pytest.mark.parametrize(("family", "option"), [("Bins", "bins"), ("Levels", "top")])
def test_families_that_would_make_room_for_anything_are_refused(family: str, option: str) -> None:
    for number in (10**9, 10**12):
        with pytest.raises(tb.SettingsError, match="100,000"):
            getattr(tb.families, family)(**{option: number})


def test_no_schema_file_raises_what_is_not_ours(tmp_path: Path) -> None:
    texts = [parquet.unpack(raw).metadata[parquet.PREFIX + "schema"] for raw in files().values()]
    taken = 0
    for number in range(MUTATIONS):
        rng = random.Random(number)
        text = json.dumps(mutated(json.loads(rng.choice(texts)), rng)) if number else "[" * 100_000
        (tmp_path / "schema.json").write_text(text)
        try:
            tb.Schema.load(tmp_path / "schema.json")
        except tb.TallybayesError:
            continue
        taken += 1
    assert 0 < taken < MUTATIONS / 2


if __name__ == "__main__":
    run(int(sys.argv[1]), int(sys.argv[2]))
