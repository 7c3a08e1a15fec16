"""What `forget` leaves in a file: nothing that only the forgotten rows had, and tallies from before still add."""

from __future__ import annotations

import datetime as dt
import io
import json
import os
import pickle
import re
import struct
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest

import tallybayes as tb
from tallybayes.data.pairs import stretch_names
from tallybayes.tally.table import table_of
from tallybayes.tally.traces import REASON

SEEDS = range(500 if os.environ.get("TALLYBAYES_TESTS") == "all" else 40)
Table = dict[str, list[Any]]


def some(table: Table, rows: Any) -> Table:
    return {name: [values[i] for i in rows] for name, values in table.items()}


def random_table(rng: np.random.Generator) -> tuple[Table, Table]:
    """Rows of every kind of column, and rows with values that no other has: those are to be forgotten."""
    n, gone = int(rng.integers(60, 160)), int(rng.integers(1, 8))
    y = rng.integers(0, 2, n + gone)

    def mixed(usual: Any, rare: Any, share: float = 0.7) -> list[Any]:
        return [*usual, *(r if rng.random() < share else u for r, u in zip(rare, usual[:gone], strict=True))]

    names = [f"town{k}" for k in range(int(rng.integers(2, 12)))]
    lone = rng.integers(10**7, 10**8, gone)
    twin = rng.random() < 0.5  # so that the values are in many of the forgotten rows, which is not in few of all
    start = dt.date(2019, 1, 1)
    table = {
        "town": mixed([names[(k + v) % len(names)] for k, v in zip(rng.integers(0, 3, n), y[:n], strict=True)],
                      [f"Zyx{lone[0] if twin else k}" for k in lone]),
        "size": mixed(rng.integers(0, int(rng.integers(3, 9)), n).astype(float).tolist(),
                      [float(k) + 0.125 for k in (np.full(gone, lone[0]) if twin else lone)]),
        "pay": mixed((rng.normal(2000, 300, n) + 400 * y[:n]).round(2).tolist(),
                     (rng.normal(2000, 300, gone) + rng.random(gone) / 1000).tolist()),
        "day": mixed([start + dt.timedelta(int(d)) for d in rng.integers(0, 900, n)],
                     [dt.date(2031, 7, 13) + dt.timedelta(int(d)) for d in rng.integers(0, 900, gone)]),
        "note": mixed([" ".join(rng.choice(["ant", "bee", "cat", "dog", "emu", "fox"], 5)) for _ in range(n)],
                      [f"qwx{k} bee cat dog zzq{k}" for k in lone]),
        "y": [*("uv"[k] for k in y[:n]), *(("w-only" if rng.random() < 0.3 else "uv"[k]) for k in y[n:])],
    }  # fmt: skip
    order = rng.permutation(n + gone).tolist()
    kept, away = [i for i in order if i < n], [i for i in order if i >= n]
    return some(table, kept), some(table, away)


def forms(value: Any) -> list[bytes]:
    """How a file may write a value."""
    if isinstance(value, str):
        return [value.encode()]
    if isinstance(value, dt.date):
        days = (value - dt.date(1970, 1, 1)).days
        return [value.isoformat().encode(), f"={days}".encode(), struct.pack("<d", days)]
    text = {repr(value), f"{value:.12g}", value.hex(), *([str(int(value))] if value == int(value) else [])}
    return [*(t.encode() for t in text), struct.pack("<d", value)]


def only_there(gone: Table, kept: Table) -> list[tuple[str, Any]]:
    """Values, and words of texts, that only the forgotten rows have."""
    out = []
    for name, values in gone.items():
        mine, others = set(values), set(kept[name])
        if name == "note":
            mine, others = ({w for text in some for w in text.split()} for some in (mine, others))
        out += [(name, v) for v in mine - others]
    return out


def content(raw: bytes) -> bytes:
    """Everything that a Parquet file holds: its bytes, and its metadata and columns as they are read."""
    if not raw.startswith(b"PAR1"):
        return raw
    file = pq.ParquetFile(io.BytesIO(raw))
    metadata = file.metadata.metadata
    assert {b"tallybayes.schema", b"tallybayes.settings", b"tallybayes.checksum"} <= {*metadata}
    pieces = [raw, *(k + b"\n" + v for k, v in metadata.items())]
    for column in file.read().columns:
        chunk = column.combine_chunks()
        pieces += [b.to_pybytes() for b in chunk.buffers() if b is not None]
        pieces.append("\n".join(map(str, chunk.to_pylist())).encode())
    return b"\0".join(pieces)


def leaves(value: Any) -> Iterator[Any]:
    """Every text and number of a JSON document, but for what corrections add, which are steps of 2⁻²⁰ nats."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield key
            yield from leaves(item) if key != "units" else ()
    elif isinstance(value, list):
        for item in value:
            yield from leaves(item)
    else:
        yield value


def read(raw: bytes) -> tuple[str, list[float]]:
    """Every text and every number that stands in a file, field by field, as a program reads them."""
    if raw.startswith(b"PAR1"):
        file = pq.ParquetFile(io.BytesIO(raw))
        documents = [v for v in file.metadata.metadata.values() if v[:1] in (b"{", b"[")]
        columns = [v for column in file.read().columns for v in column.to_pylist()]
    else:
        documents, columns = [raw], []
    every = [*columns, *(leaf for text in documents for leaf in leaves(json.loads(text)))]
    texts = "\n".join(v for v in every if isinstance(v, str))
    numbers = [float(v) for v in every if isinstance(v, (int, float)) and not isinstance(v, bool)]
    return texts, numbers + [float(t) for t in re.findall(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?", texts)]


def fitted_numbers(raw: bytes) -> list[float]:
    """The numbers in the settings of a file, and the cuts of pairs."""
    if not raw.startswith(b"PAR1"):
        return []
    held = pq.ParquetFile(io.BytesIO(raw)).metadata.metadata
    pairs = [c.get("of") for c in json.loads(held[b"tallybayes.schema"])["columns"]]
    settings = json.loads(held.get(b"tallybayes.settings", b"{}"))
    return [float(v) for v in leaves([settings, pairs]) if isinstance(v, float)]


def found(raw: bytes, gone: Table, kept: Table) -> list[tuple[str, Any, Any]]:
    """What of the forgotten rows stands in a file: as bytes in any form, as text or number, or as twice a cut."""
    held, lone = content(raw), only_there(gone, kept)
    out: list[tuple[str, Any, Any]] = [(name, v, form) for name, v in lone for form in forms(v) if form in held]
    texts, numbers = read(raw)
    every, fitted = np.unique(numbers), np.array(fitted_numbers(raw))
    for name, v in lone:
        if isinstance(v, str):
            out += [(name, v, "text")] if v in texts else []
            continue
        if isinstance(v, dt.date):
            out += [(name, v, "text")] if v.isoformat() in texts else []
            v = float((v - dt.date(1970, 1, 1)).days)
        out += [(name, v, float(n)) for n in every[np.isclose(every, v, rtol=1e-12, atol=0)]]
        if name == "size":  # far from all others: a cut half-way to it is as good as the value
            half = np.array([(u + v) / 2 for u in {*kept[name]}])
            near = np.isclose(fitted[:, None], half, rtol=6e-4).any(axis=1)
            out += [(name, v, float(n)) for n in fitted[near]]
    return out


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.filterwarnings("ignore")
def test_no_file_has_what_only_forgotten_rows_had(seed: int, tmp_path: Path) -> None:
    rng = np.random.default_rng(seed)
    kept, gone = random_table(rng)
    rows = {name: kept[name] + gone[name] for name in kept}
    model = tb.fit(rows, target="y", calibrate=False) if seed % 4 else tb.fit(rows, target="y", pairs=True)
    model.save(tmp_path / "before")
    assert found((tmp_path / "before").read_bytes(), gone, kept)  # there is something to be found
    one_by_one = bool(rng.random() < 0.3)
    rest = model
    for part in [some(gone, [i]) for i in range(len(gone["y"]))] if one_by_one else [gone]:
        rest = rest.forget({k: v[0] for k, v in part.items()} if one_by_one else part)
    rest.save(tmp_path / "model")
    assert found((tmp_path / "model").read_bytes(), gone, kept) == []
    rest.tally.save(tmp_path / "tally")
    assert found((tmp_path / "tally").read_bytes(), gone, kept) == []
    rest.export(tmp_path / "sealed.tb.parquet", "sealed")
    assert found((tmp_path / "sealed.tb.parquet").read_bytes(), gone, kept) == []
    rest.schema.save(tmp_path / "schema")
    assert found((tmp_path / "schema").read_bytes(), gone, kept) == []
    if seed % 10 == 3:  # the same numbers as in the sealed file, spelled out
        assert found(rest.export(None, "json"), gone, kept) == []
    assert found(json.dumps({"card": rest.export(None, "card").decode()}).encode(), gone, kept) == []
    assert found(json.dumps(rest.reveals(1_000_000).to_dict()).encode(), gone, kept) == []
    again = tb.load(tmp_path / "model")
    np.testing.assert_allclose(again.predict_proba(rows), rest.predict_proba(rows), rtol=1e-12)
    assert again.tally == rest.tally == tb.count(kept, model.schema) == tb.count(kept, rest.schema)
    assert rest.tally + tb.count(gone, model.schema) == model.tally


def test_a_point_goes_with_its_last_row_and_the_others_stay() -> None:
    rows = {"n": [1.0] * 9 + [2.0] * 9 + [98765432.125], "y": ["u", "v"] * 9 + ["u"]}
    schema = tb.infer(rows, "y")
    whole = tb.count(rows, schema)
    rest = whole.forget(some(rows, [18]))
    assert schema["n"].cells is not None and 98765432.125 in schema["n"].cells.points
    assert rest.schema["n"].cells == replace(schema["n"].cells, points=(1.0, 2.0))
    assert rest.schema["n"].reason == REASON
    assert whole.forget(some(rows, [0])).schema["n"].cells == schema["n"].cells  # others have the value, too
    assert (whole - tb.count(some(rows, [18]), schema)).schema is schema  # a difference is a difference


@pytest.mark.parametrize("lone", [98765432.125, 1.0009765625])
def test_tallies_from_before_add_to_one_that_forgot(lone: float) -> None:
    """Whether the value comes again or not, and in every order, as if all had been counted by one schema."""
    rows = {"n": [1.0] * 9 + [2.0] * 9 + [3.0, lone], "y": ["u", "v"] * 10}
    schema = tb.infer(rows, "y")
    part = tb.count(some(rows, range(10, 20)), schema)  # counted by the old points, and has the value
    rest = tb.count(rows, schema).forget(some(rows, [19]))
    assert rest + part == part + rest == tb.count({k: rows[k][:19] + rows[k][10:] for k in rows}, schema)
    assert (rest + part) - part == rest
    again = rest.update(some(rows, [19, 19]), new_classes="allow")  # the value is in a general cell now
    total = tb.count({k: rows[k][:19] + [rows[k][19]] * 2 + rows[k][10:] for k in rows}, rest.schema)
    assert again + part == part + again == total
    assert (again + part) - part == again
    assert (again + part).impossible() is None
    assert (again + part).schema["n"].cells == rest.schema["n"].cells


TOWNS = ("Aal", "Bonn", "Zyxford")
SIDES = (tb.PairColumn("town", groups=(("Zyxford", "Aal"), ("Bonn",))), tb.PairColumn("n", "number", cuts=(1.5,)))
PAIRED = tb.Schema([tb.Column("town", "category"), tb.Column("n", "number"), tb.Column("p", "pair", of=SIDES)], "y")
PAIRS: Table = {
    "town": ["Aal", "Bonn"] * 6 + ["Zyxford"],
    "n": [1.0, 2.0, 2.0] * 4 + [1.0],
    "y": ["u", "v", "v"] * 4 + ["u"],
}


def test_a_group_forgets_a_value_and_still_adds() -> None:
    whole = tb.count(PAIRS, PAIRED)
    part = tb.count(some(PAIRS, range(6, 13)), PAIRED)
    gone = some(PAIRS, [12])
    rest = whole.forget(gone)
    assert rest.schema["p"].of is not None and rest.schema["p"].of[0].groups == (("Aal",), ("Bonn",))
    assert "Zyx" not in str(rest.schema) and "Zyx" not in str(rest.columns["p"].sheets["values"].slot_names)
    assert rest == tb.count(some(PAIRS, range(12)), PAIRED) == tb.count(some(PAIRS, range(12)), rest.schema)
    assert rest + part == part + rest == tb.count({k: PAIRS[k][:12] + PAIRS[k][6:] for k in PAIRS}, PAIRED)
    with pytest.raises(tb.SchemaError, match="do not count the same"):  # here the value is in no group, there in one
        rest.update(gone, new_classes="allow") + part


def test_corrections_lose_the_cells_that_only_forgotten_rows_had() -> None:
    slots = tb.count(PAIRS, PAIRED).columns["p"].sheets["values"].slot_names
    added = np.arange(2.0 * len(slots)).reshape(-1, 2)
    settings = tb.Settings(
        corrections={
            "town": tb.Correction(0.5, ("u", "v"), [[1, 2], [3, 4], [5, 6]], cells=TOWNS),
            "p": tb.Correction(0.5, ("u", "v"), added, cells=tuple(slots)),
        }
    )
    model = tb.count(PAIRS, PAIRED).model(settings)
    for rest in (model.forget(some(PAIRS, [12])), model.forget({k: v[12] for k, v in PAIRS.items()})):
        town, pair = (rest.settings.corrections[name] for name in ("town", "p"))
        assert town == tb.Correction(0.5, ("u", "v"), [[1, 2], [3, 4]], cells=TOWNS[:2])
        assert {*pair.cells} == {*rest.tally.columns["p"].sheets["values"].slot_names}
        old = some(PAIRS, range(12))
        np.testing.assert_allclose(
            rest.predict_proba(old),
            (model.tally - tb.count(some(PAIRS, [12]), PAIRED)).model(settings).predict_proba(old),
        )


def surface(n: int, seed: int) -> dict[str, Any]:
    """A category and a number that say nothing alone, and twelve rows of one more value, near each other."""
    rng = np.random.default_rng(seed)
    kind, x = rng.choice(["p", "q", "r"], n).astype(object), rng.normal(size=n)
    kind[:12], x[:12] = "Zyx", rng.normal(0.3, 0.05, 12)
    turned = np.select([kind == "p", kind == "q"], [2.0, -2.0], 1.0)
    return {"kind": kind, "x": x, "y": np.where(rng.random(n) < 1 / (1 + np.exp(-2 * x * turned)), "u", "v")}


def test_a_value_goes_from_cells_of_a_pair_that_no_row_had() -> None:
    """What a broad cell says of a value is written down for all of its cells, those without a row among them."""
    table = surface(1_500, 0)
    model = tb.fit(table, target="y")
    assert model.tally is not None
    (pair,) = [c.name for c in model.schema.counted if c.kind == "pair"]
    cells, counted = model.settings.corrections[pair].cells, model.tally.columns[pair].sheets["values"].slot_names
    assert any("Zyx" in c for c in {*cells} - {*counted})
    rest = model.forget({k: v[:12] for k, v in table.items()})
    one_by_one = model
    for i in range(12):
        one_by_one = one_by_one.forget({k: v[i] for k, v in table.items()})
    for left in (rest, one_by_one):
        assert left.settings.corrections[pair].cells == tuple(c for c in cells if "Zyx" not in c)
        assert "Zyx" not in str(left.settings)


def test_the_surface_of_a_pair_stays_whole_when_rows_go() -> None:
    """A fine cell has few rows: without the last of them it still says what was fitted, and its name is of cuts."""
    table = surface(1_500, 0)
    model, rng = tb.fit(table, target="y"), np.random.default_rng(1)
    (pair,) = [c.name for c in model.schema.counted if c.kind == "pair"]
    some_rows = np.flatnonzero((rng.random(1_500) < 0.95) & (np.arange(1_500) >= 12))
    rest = model.forget({k: v[some_rows] for k, v in table.items()})
    assert model.tally is not None and rest.tally is not None
    before, after = (m.tally.columns[pair].sheets["values"].slot_names for m in (model, rest))
    assert {*before} - {*after}
    assert rest.settings.corrections[pair] == model.settings.corrections[pair]


def test_a_copy_says_of_cells_with_few_rows_what_their_broad_cell_does() -> None:
    table, fresh = surface(1_500, 0), surface(4_000, 1)
    model = tb.fit(table, target="y")
    (pair,) = [c.name for c in model.schema.counted if c.kind == "pair"]
    own, alone = (tb.evaluate(m, fresh)["log_loss"] for m in (model, tb.fit(table, target="y", pairs=False)))
    copy = model.share(at_least=20).model  # of at most 20 rows in most cells
    assert tb.evaluate(copy, fresh)["log_loss"] < own + 0.1 * (alone - own)
    assert "Zyx" not in str(copy.settings)
    assert model.tally is not None
    sheet, whole = model.tally.columns[pair].sheets["values"], model.settings.corrections[pair]
    rows = dict(zip(sheet.slot_names, sheet.by_slot("n").tolist(), strict=True))
    was, found = (dict(zip(c.cells, c.added.tolist(), strict=True)) for c in (whole, copy.settings.corrections[pair]))
    stretches = stretch_names(model.schema[pair].of[1].cuts)  # type: ignore[index]
    for first in range(0, len(stretches), 4):
        broad = [json.dumps(["p", s], ensure_ascii=False) for s in stretches[first : first + 4]]
        by = [rows.get(c, 0.0) for c in broad]
        mean = np.average([was[c] for c in broad], axis=0, weights=by)
        for cell, count in zip(broad, by, strict=True):
            np.testing.assert_allclose(found[cell], was[cell] if count >= 20 else mean, atol=1e-5)
    assert min(by) < 20


def test_a_class_goes_with_its_last_row() -> None:
    rows = {"c": ["a", "b", "a", "b"], "y": ["u", "v", "u", "only"]}
    schema = tb.Schema([tb.Column("c", "category")], "y")
    correction = tb.Correction(1.0, ("only", "u"), [[1, 2]], cells=("a",))
    settings = tb.Settings(offsets={"only": 0.5, "u": 0.25}, corrections={"c": correction})
    rest = tb.count(rows, schema).model(settings).forget({"c": "b", "y": "only"})
    assert rest.settings.offsets == {"u": 0.25}
    assert rest.settings.corrections["c"] == tb.Correction(1.0, ("u",), [[2]], cells=("a",))


def test_a_row_that_waits_to_be_forgotten_leaves_no_trace() -> None:
    rows = {
        "n": [1.0, 2.0] * 9 + [98765432.125],
        "t": ["ant bee", "cat"] * 9 + ["qwxyz ant"],
        "y": ["u", "v"] * 9 + ["u"],
    }
    schema = tb.infer(rows, "y").with_column("t", kind="text")
    model = tb.count(rows, schema).model()
    rest = model.forget({k: v[18] for k, v in rows.items()})
    assert rest.tally == tb.count(some(rows, range(18)), schema)
    waiting = tb.count(some(rows, range(18)), schema).model().forget({k: v[0] for k, v in rows.items()})
    assert waiting.tally.schema["n"].reason == waiting.schema["n"].reason == REASON
    for value in (b"qwxyz", struct.pack("<d", 98765432.125), b"98765432"):
        assert value in pickle.dumps(model)
        assert value not in pickle.dumps(rest)
    texts = tb.infer({k: rows[k] for k in "ty"}, "y").with_column("t", kind="text")
    model = tb.count(rows, texts).model().update({"t": "new words", "y": "v"}, new_classes="allow")
    rest = model.forget({"t": "qwxyz ant", "y": "u"})
    kept = pickle.loads(raw := pickle.dumps(rest))
    assert b"qwxyz" not in raw
    assert kept.tally == rest.tally == model.tally - tb.count([{"t": "qwxyz ant", "y": "u"}], texts)


def test_a_file_has_no_bytes_of_the_memory_of_the_process() -> None:
    """Parquet's writer leaves room for each text of a dictionary, and writes those that are there twice only once."""
    rows = {**{f"c{i}": ["a", "b"] for i in range(20)}, "n": [1.0, 2.0], "y": ["u", "v"]}
    table = table_of(tb.count(rows, tb.infer(rows, "y")))
    for name in ("column", "sheet", "class"):
        texts = table[name].combine_chunks().dictionary
        assert len(texts.unique()) == len(texts)
