"""Two kinds of columns made here, outside the package: the records below are all they need.

"interval" is like a number: texts such as "3-5" are read as their middle, all else comes from numbers. "turn" has a
block, a sheet, a family and a picture of its own: an angle in degrees, of which eighths of a turn are counted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import tallybayes as tb
from tallybayes.data import kinds
from tallybayes.data.blocks import N, Numbers
from tallybayes.data.kinds import KINDS, Kind, register_kind
from tallybayes.exact.cells import Cells
from tallybayes.exact.sheet import Sheet
from tallybayes.exact.sums import code_sums
from tallybayes.explain.plots import CategoryDisplay, NumberDisplay, columns, register_picture
from tallybayes.families import DEFAULTS, Belief, Context, Family, Table, base, register, register_default

# ---- a kind like another: how it is read


def middle(text: Any) -> float:
    if text is None or text == "":
        return np.nan
    low, high = map(float, text.split("-"))
    return (low + high) / 2


def read_interval(column, raw, rows) -> Numbers:
    if raw is None:
        return Numbers(np.full(rows.count, np.nan), column.cells)
    values = raw.to_pylist() if isinstance(raw, pa.Array) else raw
    marks = rows.missing(column)
    return Numbers(np.array([np.nan if v in marks else middle(v) for v in values]), column.cells)


def plain_interval(column, value, marks) -> float | None:
    return None if value is None or value in marks else middle(value)


def recognise(name, looked):
    values = (
        looked.codes(("",)).slots if isinstance(looked.raw, pa.Array) and pa.types.is_string(looked.raw.type) else []
    )
    if values and all(v.count("-") == 1 and v.replace("-", "").isdigit() for v in values):
        return tb.Column(
            name, "interval", cells=Cells.fitted(np.array([middle(v) for v in values])), reason="intervals"
        )
    return None


INTERVAL = Kind(
    "interval",
    read_interval,
    like="number",
    plain=plain_interval,
    write=lambda x: f"{abs(x)!r}-{abs(x)!r}",
    recognise=recognise,
)

# ---- a kind with a block, a sheet, a family and a picture of its own


@dataclass(frozen=True)
class Turns:
    """Degrees, NaN for missing."""

    degrees: np.ndarray

    @property
    def rows(self) -> int:
        return len(self.degrees)

    def take(self, rows) -> Turns:
        return Turns(self.degrees[rows])

    def present(self) -> np.ndarray:
        return ~np.isnan(self.degrees)

    @property
    def eighths(self) -> np.ndarray:
        return np.where(self.present(), np.nan_to_num(self.degrees) % 360 // 45, -1).astype(np.int64)

    def sum_by(self, groups) -> dict[str, Sheet]:
        sums = code_sums(self.eighths, 8, groups.labels, groups.n_labels, groups.weights)
        return {"eighths": Sheet.dense([str(i) for i in range(8)], groups.n_labels, {"n": sums})}

    def text(self, row: int) -> str | None:
        return f"{self.degrees[row]:g}°" if self.present()[row] else None

    def receipts(self) -> list[bytes]:
        return [repr(d).encode() for d in self.degrees.tolist()]


def read_turn(column, raw, rows) -> Turns:
    values = [None] * rows.count if raw is None else raw.to_pylist() if isinstance(raw, pa.Array) else list(raw)
    return Turns(np.array([np.nan if v in (None, "") else float(v) for v in values]))


@dataclass(frozen=True)
class Eighths(Family):
    """P(x) = (n in the eighth of x + 1)/(n + 8) · 1/45 for each degree."""

    name = "eighths"
    kinds = ("turn",)

    def estimate(self, counts, context: Context) -> EighthsBelief:
        sheet = counts.sheet("eighths", N)
        n = np.zeros((8, context.n_classes))
        n[[int(s) for s in sheet.slot_names]] = sheet.table("n", context.n_classes)
        return EighthsBelief((n + 1) / (n.sum(axis=0) + 8))


@dataclass(frozen=True)
class EighthsBelief(Belief):
    p: np.ndarray

    def parts(self, block) -> np.ndarray:
        out = np.log(self.p[block.eighths] / 45)
        out[~block.present()] = 0.0
        return out

    def sample(self, labels, rng):
        eighth = [rng.choice(8, p=self.p[:, y]) for y in labels]
        return pa.array((np.array(eighth) + rng.random(len(labels))) * 45)

    def parameters(self) -> tuple[int, int]:
        return self.p.size, self.p.size - self.p.shape[1]

    def table(self) -> Table:
        return Table("P(eighth)", [str(i) for i in range(8)], self.p, "eighths")


TURN = Kind("turn", read_turn, sheets=("eighths",))


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Both kinds, for the length of one test."""
    before = {id(d): (d, dict(d)) for d in (KINDS, DEFAULTS, columns._PICTURES, base._REGISTRY)}
    register_kind(INTERVAL)
    register_kind(TURN)
    register("eighths", Eighths())
    register_default("turn", Eighths())
    yield
    for now, old in before.values():
        now.clear()
        now.update(old)


def rows(n: int = 400, seed: int = 3) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = rng.choice(["calm", "wild"], n)
    low = rng.integers(0, 10, n) + np.where(y == "wild", 6, 0)
    return {
        "age": [None if i % 50 == 7 else f"{a}-{a + int(rng.integers(1, 5))}" for i, a in enumerate(low.tolist())],
        "wind": [
            None if i % 40 == 3 else float(d) for i, d in enumerate(rng.normal(np.where(y == "wild", 90, 250), 60))
        ],
        "colour": rng.choice(["red", "blue"], n).tolist(),
        "y": y.tolist(),
    }


def some(data: dict[str, Any], keep: Any) -> dict[str, Any]:
    return {k: [v for v, kept in zip(values, keep, strict=True) if kept] for k, values in data.items()}


def one(data: dict[str, Any], i: int) -> dict[str, Any]:
    return {k: v[i] for k, v in data.items()}


def schema(**more: Any) -> tb.Schema:
    cells = Cells.fitted(np.arange(0.5, 22, 0.5))
    kinds = [tb.Column("age", "interval", cells=cells), tb.Column("wind", "turn"), tb.Column("colour", "category")]
    return tb.Schema(kinds, target="y", **more)


def as_numbers(data: dict[str, Any]) -> dict[str, Any]:
    return {**data, "age": [None if v is None else middle(v) for v in data["age"]]}


def test_a_kind_like_a_number_is_counted_and_believed_as_its_numbers_are() -> None:
    data = rows()
    mine = tb.count(data, schema())
    plain = tb.count(as_numbers(data), schema().with_column("age", kind="number"))
    assert mine.columns["age"] == plain.columns["age"] and mine.moments("age") == plain.moments("age")
    for families in ({}, {"age": "gaussian-shared"}, {"age": "bins"}):
        settings = tb.Settings(families=families)
        a, b = mine.model(settings), plain.model(settings)
        assert a.families["age"] == b.families["age"]
        np.testing.assert_array_equal(a.predict_proba(data), b.predict_proba(as_numbers(data)))
    with pytest.raises(tb.SettingsError, match="is a interval, which the family 'multinomial' does not read"):
        mine.model(tb.Settings(families={"age": "multinomial"}))


def test_a_kind_of_its_own_is_scored_by_its_family() -> None:
    data = rows()
    model = tb.count(data, schema()).model()
    assert model.families["wind"] == Eighths()
    eighth = np.array([-1 if d is None else d % 360 // 45 for d in data["wind"]]).astype(int)
    want = np.log(model.table("wind").values[eighth] / 45)
    want[eighth < 0] = 0
    np.testing.assert_allclose(model.parts(data)["wind"], want, rtol=1e-12)
    assert np.mean(model.predict(data) == np.array(data["y"])) > 0.8
    with pytest.raises(tb.SettingsError, match="is a turn, which the family 'gaussian' does not read"):
        tb.count(data, schema()).model(tb.Settings(families={"wind": "gaussian"}))
    with pytest.raises(tb.SchemaError, match="is a turn and declares values"):
        tb.Column("wind", "turn", values=("1",))


def test_fit_predict_and_one_row_agree() -> None:
    data = rows()
    model = tb.fit(data, "y", schema=schema())
    many = model.predict_proba(data)
    for i in (*range(12), 43):
        row = {k: v for k, v in one(data, i).items() if k != "y"}
        np.testing.assert_allclose(model.predict_proba(row)[0], many[i], rtol=1e-9)
        assert model.predict(row)[0] == model.predict([row])[0]
    assert model.predict_proba({"age": ["3-5"], "wind": [10.0], "colour": ["red"]}).shape == (1, 2)


def test_merging_forgetting_and_rows_that_wait() -> None:
    data = rows()
    fold = np.arange(400) % 4
    total = tb.count(data, schema())
    parts = [tb.count(some(data, fold == k), schema()) for k in range(4)]
    assert sum(parts) == total and total.digest == (parts[3] + parts[1] + parts[0] + parts[2]).digest
    assert total.forget(some(data, fold == 0)) == parts[1] + parts[2] + parts[3]
    model = parts[1].model()
    for i in range(0, 40, 4):
        model = model.update(one(data, i))
    assert model.tally == parts[1] + tb.count(some(data, (fold == 0) & (np.arange(400) < 40)), schema())
    for i in range(0, 40, 4):
        model = model.forget(one(data, i))
    assert model.tally == parts[1]
    strange = {**one(data, 0), "wind": 359.0, "age": "80-90"}
    with pytest.raises(tb.CannotForget):
        model.forget(strange)
    with_receipts = tb.count(data, schema(receipts=True))
    with pytest.raises(tb.CannotForget, match="row 0"):
        with_receipts.forget(strange)


def test_schema_model_and_sealed_model_come_back(tmp_path: Path) -> None:
    data = rows()
    model = tb.fit(data, "y", schema=schema(), calibrate=False)
    model.save(tmp_path / "m.tally")
    again = tb.load(tmp_path / "m.tally")
    np.testing.assert_array_equal(again.predict_proba(data), model.predict_proba(data))
    assert again.tally == model.tally and again.schema == model.schema
    model.schema.save(tmp_path / "schema.json")
    assert tb.Schema.load(tmp_path / "schema.json") == model.schema
    del KINDS["turn"]
    with pytest.raises(tb.SchemaError, match="has the kind 'turn'"):
        tb.Schema.load(tmp_path / "schema.json")


def test_other_programs_are_not_given_what_they_cannot_read(tmp_path: Path) -> None:
    model = tb.count(rows(), schema()).model(tb.Settings(families={"age": "gaussian"}))
    only = tb.count(rows(), tb.Schema([schema()["age"]], target="y")).model(tb.Settings(families={"age": "gaussian"}))
    with pytest.raises(tb.SettingsError, match="read by Python code"):
        model.to_sql("people")
    with pytest.raises(tb.SettingsError, match="'age' is a interval"):
        only.export(tmp_path / "m.json")
    only.export(tmp_path / "m.sealed.parquet")
    sealed = tb.load_sealed(tmp_path / "m.sealed.parquet")
    np.testing.assert_allclose(sealed.predict_proba(rows()), only.predict_proba(rows()), rtol=1e-12)


def test_explanation_intervals_odds_and_what_if() -> None:
    data = rows()
    model = tb.count(data, schema()).model()
    row = {"age": "2-4", "wind": 250.0, "colour": "red"}
    why = model.explain(row)
    assert [c.label for c in why.contributions if c.column == "wind"] == ["250°"]
    assert [c.label for c in why.contributions if c.column == "age"] == ["3"]
    np.testing.assert_allclose(why.total, model.log_joint(row)[0], rtol=1e-9)
    found = model.what_if(row)
    assert found and found.row is not None and model.predict(found.row)[0] == found.becomes != found.answer
    assert {c.column for c in found.changes} <= {"age", "colour"}  # nobody has said how a turn is written


def test_samples_can_be_read_again() -> None:
    model = tb.count(rows(), schema()).model()
    drawn = model.sample(500, seed=1)
    assert all("-" in v for v in drawn["age"].to_pylist())
    again = tb.count(drawn, schema()).model()
    np.testing.assert_allclose(again.table("wind").values, model.table("wind").values, atol=0.1)


def test_the_default_chooses_weights_and_pairs_with_them() -> None:
    data = rows(1200)
    data["y"] = [y if (middle(a) > 9) == (c == "red") else "calm" for y, a, c in
                 zip(data["y"], [a or "1-2" for a in data["age"]], data["colour"], strict=True)]  # fmt: skip
    model = tb.fit(data, "y", schema=schema(), pairs=[("age", "colour")])
    assert model.settings.calibrated is not None
    pair = model.schema["age × colour"]
    assert pair.of is not None and pair.of[0].kind == "interval"
    many = model.predict_proba(data)
    for i in range(8):
        row = {k: v for k, v in one(data, i).items() if k != "y"}
        np.testing.assert_allclose(model.predict_proba(row)[0], many[i], rtol=1e-9)
    tuned = tb.tune(rows(), schema())
    assert tuned.model.families["wind"] == Eighths()
    assert tb.cross_validate(rows(), schema(), folds=3)["accuracy"] > 0.7
    data = rows(60)
    left_out = tb.leave_one_out(tb.count(data, schema()), data).proba()
    for i in (0, 7, 31):
        others = tb.count(some(data, np.arange(60) != i), schema()).model()
        np.testing.assert_allclose(left_out[i], others.predict_proba(one(data, i))[0], rtol=1e-9)


def test_infer_proposes_what_a_kind_recognises() -> None:
    data = rows()
    found = tb.infer(data, "y")
    assert found["age"].kind == "interval" and found["age"].reason == "intervals"
    assert found["wind"].kind == "number"
    model = tb.fit(data, "y")
    assert model.schema["age"].kind == "interval" and np.mean(model.predict(data) == np.array(data["y"])) > 0.8


def test_files_leave_reading_to_the_kind(tmp_path: Path) -> None:
    data = rows()
    path = tmp_path / "rows.csv"
    lines = [
        "age,wind,colour,y",
        *(",".join("" if v is None else str(v) for v in r) for r in zip(*data.values(), strict=True)),
    ]
    path.write_text("\n".join(lines) + "\n")
    assert tb.count(path, schema()) == tb.count(data, schema())


def test_pictures() -> None:
    pytest.importorskip("matplotlib")
    model = tb.count(rows(), schema()).model()
    assert isinstance(model.plot.column("age"), NumberDisplay)
    drawn = model.plot.column("wind")
    assert isinstance(drawn, CategoryDisplay) and len(drawn.values) == 8
    register_picture(
        "turn", lambda model, column: CategoryDisplay(column, ["N"], np.ones((1, 2)), None, "ab", ["r", "b"])
    )
    assert list(model.plot.column("wind").values) == ["N"]
    model.plot.nomogram()


def test_a_kind_like_no_other_kind() -> None:
    with pytest.raises(tb.SchemaError, match="is like 'nunber', which is no kind"):
        register_kind(Kind("odd", read_interval, like="nunber"))
    register_kind(Kind("span", read_interval, like="interval"))
    assert KINDS["span"].like == "number" and "moments" in kinds.EACH
