"""One row by the short way says what it says among many, and whatever the short way cannot read goes the long one."""

from __future__ import annotations

import copy
import datetime as dt
import math
import pickle
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from strategies import categories, examples, finite, numbers

import tallybayes as tb
from tallybayes.families import Multinomial
from tallybayes.model import row_readers
from tallybayes.model.one_row import lone

RNG = np.random.default_rng(3)
CELLS = tb.Cells.fitted(np.concatenate([RNG.normal(0, 1, 300), np.zeros(20), np.full(15, 1.0)]))
FAMILIES = ("gaussian", "gaussian-shared", "student", "kernel", "bins", "blend", "auto", "poisson")
WORDS = ["ant", "bee", "cat", "dog", "elk", "Fox", "gnu", "hen", "ibis", "jay", "ñandú", "日本", "none"]
COLUMNS = [
    tb.Column("colour", "category"),
    tb.Column("code", "category", missing=("9", "unknown")),
    *(tb.Column(f, "number", cells=CELLS) for f in FAMILIES),
    tb.Column("marked", "number", missing=("-999",)),
    tb.Column("day", "number", source="date", part="days"),
    tb.Column("month", "category", source="date", part="month"),
    tb.Column("colour × auto", "pair", of=(tb.Side("colour"), tb.Side("auto", "number", cuts=(-0.5, 0.5)))),
    tb.Column("month × colour", "pair", of=(tb.Side("date", part="month"), tb.Side("colour"))),
    tb.Column("text", "text"),
    tb.Column("once", "text", source="text", text=tb.Tokeniser(ngrams=(1, 2), stop="english", stem="english")),
    tb.Column("hashed", "text", source="text", text=tb.Tokeniser(hash_bits=8)),
    tb.Column("others", "text", source="text", missing=("none",)),
    tb.Column("there", "text", source="text"),
    tb.Column("predicted", "text", source="text"),
    tb.Column("bag", "bag"),
]
SCHEMA = tb.Schema(COLUMNS, target="y")
BELIEVED: dict[str, Any] = {
    **{f: f for f in FAMILIES if f != "auto"},
    "once": Multinomial(presence=True, idf=True),
    "others": "complement",
    "there": "bernoulli",
    "predicted": Multinomial(predictive=True),
}


def _table(classes: str, n: int = 60) -> dict[str, list[Any]]:
    y = RNG.choice(list(classes), n).tolist()
    out: dict[str, list[Any]] = {
        "colour": RNG.choice(["red", "blue", "grün", None], n).tolist(),
        "code": RNG.choice([1, 2, 9], n).tolist(),
        **{f: (RNG.normal(size=n) + (np.array(y) == "u")).tolist() for f in FAMILIES},
        "marked": RNG.choice([1.5, 2.5, -999.0], n).tolist(),
        "date": [dt.date(2024, 1 + int(m), 3) for m in RNG.integers(0, 12, n)],
        "text": [" ".join(RNG.choice(WORDS, 6)) for _ in range(n)],
        "bag": [dict.fromkeys(RNG.choice(WORDS, 3).tolist(), 2.0) for _ in range(n)],
        "y": y,
    }
    out["poisson"] = RNG.integers(0, 9, n).tolist()
    return out


TALLIES = [tb.count(_table("uvw"), SCHEMA), tb.count(_table("uv"), SCHEMA)]
ROW = st.fixed_dictionaries(
    {
        "colour": st.sampled_from(["red", "blue", "pink", "\ud800", "", None]) | categories,
        "code": st.sampled_from([1, "2", 9, 9.0, "unknown", True, None, np.int64(2), np.float64("nan")]),
        **{f: numbers for f in FAMILIES if f != "poisson"},
        "poisson": st.integers(0, 20) | st.none(),
        "marked": numbers | st.sampled_from([-999, -999.0, np.float32(2.5)]),
        "date": st.sampled_from([dt.date(2024, 5, 1), dt.datetime(2023, 2, 28, 17), "2024-07-01", None]),
        "text": st.lists(st.sampled_from([*WORDS, "the", "unheard", "a\ud800b", "."]), max_size=8).map(" ".join)
        | st.sampled_from([None, "none", "ant " * 1100]),
        "bag": st.none() | st.dictionaries(st.sampled_from(WORDS), st.sampled_from([0.5, 1, 3]), max_size=3),
    }
)
FACTOR = st.sampled_from([0.0, 0.3, 1.0, 2.5])
EXPONENT = st.sampled_from([0.0, -0.7, 0.5])


@st.composite
def beliefs(draw: st.DrawFn) -> tuple[int, tb.Settings]:
    """Which tally, and every family and reading under weights, lengths, a curve, and two ways with unseen values."""
    names = [c.name for c in COLUMNS]
    which = draw(st.integers(0, 1))
    curve = tb.Isotonic((-3.0, 0.5, 4.0), (-1.0, 0.0, 2.0))
    settings = tb.Settings(
        smoothing=draw(st.sampled_from([tb.Laplace(0.5), tb.Laplace(1.0)])),
        families=BELIEVED,
        unseen=draw(st.sampled_from(["no evidence", "reserve"])),
        weights={n: draw(FACTOR) for n in names if draw(st.booleans())},
        lengths={n: draw(EXPONENT) for n in ("text", "once", "others", "there", "bag") if draw(st.booleans())},
        isotonic=curve if which == 1 and draw(st.booleans()) else None,
        lead=draw(st.sampled_from([None, tb.Lead(0.8, -0.3)])),
        offsets={c: draw(st.floats(-2, 2)) for c in "uvw"[: 3 - which] if draw(st.booleans())},
    )
    return which, settings


def check(model: tb.Model, row: Any, prior: Any = None) -> None:
    """The same answers as among two rows, to twelve digits of the sum of what the columns say."""
    rows = np.vstack([row, row]) if isinstance(row, np.ndarray) else [row, row]
    expected = model.log_joint(rows, prior=prior)[:1]
    size = 1.0 + sum(float(np.abs(p[np.isfinite(p)]).max(initial=0.0)) for p in model.parts(rows).values())
    size *= 1.0 if model.settings.lead is None else 20.0  # a small lead is multiplied
    near = {"rtol": 1e-12, "atol": 1e-12 * size}
    np.testing.assert_allclose(model.log_joint(row, prior=prior), expected, **near)
    np.testing.assert_allclose(
        model.predict_log_proba(row, prior=prior), model.predict_log_proba(rows, prior=prior)[:1], **near
    )
    p = model.predict_proba(rows, prior=prior)[:1]
    np.testing.assert_allclose(model.predict_proba(row, prior=prior), p, rtol=1e-12 * size, atol=1e-300)
    best = np.sort(expected[0])
    if best[-1] - best[-2] > near["atol"]:
        found, among = model.predict(row, prior=prior), model.predict(rows, prior=prior)
        assert found.tolist() == among[:1].tolist() and found.dtype == among.dtype


def goes_the_short_way(model: tb.Model, row: Any) -> bool:
    read = lone(row, model.schema)
    return read is not None and model._row_scorer.scores(read) is not None


@given(belief=beliefs(), rows=st.lists(ROW, min_size=1, max_size=3), prior=st.sampled_from([None, None, "uniform"]))
@examples(20)
def test_one_row_says_what_it_says_among_many(belief: Any, rows: list[dict[str, Any]], prior: Any) -> None:
    model = TALLIES[belief[0]].model(belief[1])
    for row in rows:
        if all(v is None for v in row.values()):
            continue
        check(model, row, prior)
        check(model, {**row, "more": 1}, prior)


def test_plain_rows_of_every_kind_go_the_short_way() -> None:
    """Else the test above would compare the long way with itself."""
    model = TALLIES[0].model(tb.Settings(families=BELIEVED))
    table = _table("uvw", 20)
    for i in range(20):
        row = {name: values[i] for name, values in table.items()}
        assert goes_the_short_way(model, row)
        assert goes_the_short_way(model, [row])
        check(model, row)


@pytest.mark.parametrize("family", ["multinomial", "complement", tb.families.Multinomial(presence=True)])
@pytest.mark.parametrize("unseen", ["no evidence", "reserve"])
def test_a_list_of_words_goes_the_short_way(family: Any, unseen: str) -> None:
    """A mail is a dict with lists of words: nothing is thrown away and built again for it."""
    if family == "complement" and unseen == "reserve":
        pytest.skip("the complement reading reserves no slot")
    schema = tb.Schema([tb.Column("words", "bag"), tb.Column("size", "number")], target="y")
    data = {"words": [["a", "b", "a"], ["b", "c"], ["c", "c"], []], "size": [1.0, 2.0, 3.0, 4.0], "y": list("uvvu")}
    model = tb.count(data, schema).model(
        tb.Settings(families={"words": family}, unseen=unseen, weights={"words": 0.7}, lengths={"words": -0.5})
    )
    for words in (["a"], ["a", "a", "c"], ["never", "b"], [], ["never"]):
        row = {"words": words, "size": 2.5}
        assert goes_the_short_way(model, row)
        check(model, row)
    assert not goes_the_short_way(model, {"words": [1, 2], "size": 2.5})  # numbers become texts the long way
    check(model, {"words": [1, "a"], "size": 2.5})


def test_a_dict_of_columns_is_not_tried_as_a_row() -> None:
    table = {"n": [1.0, 2.0, 3.0, 4.0], "c": list("abab"), "w": [["a"], ["b"], ["a"], []], "y": list("uvuv")}
    schema = tb.Schema([tb.Column("w", "bag"), tb.Column("n", "number"), tb.Column("c", "category")], target="y")
    model = tb.count(table, schema).model()
    arrays = {"n": np.array([1.0, 2.0]), "w": [["a"], []], "c": np.array(["a", "b"])}
    for columns in (
        table,
        arrays,
        {"c": ["a"], "n": [None], "w": [["a"]]},
        {"n": pa.array([1.0]), "c": ["b"], "w": [["a"]]},
    ):
        assert len(model.predict(columns)) == len(next(iter(columns.values())))
        assert "_row_scorer" not in vars(model)
    assert model.predict({"n": 1.0, "c": "a", "w": ["a"]}).shape == (1,) and "_row_scorer" in vars(model)


@given(
    x=st.lists(st.lists(finite | st.just(math.nan), min_size=3, max_size=3), min_size=1, max_size=3), as_=st.booleans()
)
@examples(30)
def test_a_matrix_of_one_row(x: list[list[float]], as_: bool) -> None:
    data = np.column_stack([RNG.normal(size=(40, 2)), np.zeros(40) if as_ else np.arange(40.0)])
    y = np.arange(40) % 3
    vector = tb.Schema([tb.Column("x", "vector", width=3)], target="y", label_type="int")
    apart = tb.Schema(
        [tb.Column("x0", "number"), tb.Column("x1", "category"), tb.Column("x2", "number")],
        target="y",
        label_type="int",
    )
    for schema in (vector, apart):
        model = tb.count(data, schema, y).model(tb.Settings(families={} if schema is vector else {"x0": "student"}))
        assert goes_the_short_way(model, data[:1])
        check(model, data[:1])
        check(model, data[:1].astype(np.float32))
        for row in x:
            check(model, np.array([row]))


@given(value=finite, seed=st.integers(0, 30))
@examples(300)
def test_the_cell_of_one_value_is_that_among_many(value: float, seed: int) -> None:
    rng = np.random.default_rng(seed)
    cells = tb.Cells.fitted(rng.normal(rng.choice([0.0, 1e8, -1e300]), rng.choice([1e-300, 1.0, 1e200]), 50).round(2))
    near = [value, -value, cells.centre, np.nextafter(cells.centre, -np.inf), *cells.points[:3]]
    assert [cells.code(float(v)) for v in near] == cells.codes(np.array(near)).tolist()


WEATHER = tb.count(
    {"Sky": ["sunny", "rainy", "sunny"], "n": [1.0, 2.0, 3.0], "Play": ["yes", "no", "yes"]},
    tb.Schema([tb.Column("Sky", "category"), tb.Column("n", "number")], target="Play"),
)


def test_what_the_short_way_cannot_read_has_the_long_ways_messages() -> None:
    model = WEATHER.model()
    with pytest.raises(tb.DataError, match="column 'n', row 0"):
        model.predict({"Sky": "sunny", "n": "seven"})
    with pytest.raises(tb.DataError, match="inf is not a number"):
        model.predict_proba({"Sky": "sunny", "n": math.inf})
    with pytest.warns(tb.TallybayesWarning, match="taken as missing: 'n'"):
        model.predict({"Sky": "sunny"})
    with pytest.raises(tb.DataError, match="none of the columns"):
        model.predict({"sky": "sunny"})
    with pytest.raises(tb.DataError, match="more than one column"):
        model.predict({"Sky": "sunny", "n": 1.0, 1: 2, "1": 3})
    sure = WEATHER.model(tb.Settings(smoothing=tb.MaximumLikelihood(), prior={"yes": 0.0, "no": 1.0}))
    for ask in (sure.predict, sure.predict_proba, sure.predict_log_proba):
        with pytest.warns(tb.TallybayesWarning, match="every class has probability 0"):
            ask({"Sky": "sunny", "n": None})
    check(sure, {"Sky": "rainy", "n": 2.0})
    assert model.predict({"Sky": ["sunny", "rainy"], "n": [1.0, 2.0]}).tolist() == ["yes", "no"]
    assert len(model.predict_proba({"Sky": ["sunny"], "n": [1.0]})) == 1


def test_a_model_that_has_answered_can_be_copied() -> None:
    model = WEATHER.model()
    row = {"Sky": "sunny", "n": 1.5}
    before = model.predict_proba(row)
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
        np.testing.assert_array_equal(other.predict_proba(row), before)


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tallybayes.model.row_readers._MOST_KEPT", 4)
    schema = tb.Schema([tb.Column("t", "text"), tb.Column("c", "category")], target="y")
    model = tb.count({"t": ["ant bee", "cat"], "c": ["u", "v"], "y": ["a", "b"]}, schema).model()
    for i in range(30):
        check(model, {"t": f"ant word{i} bee{i} " + "x" * 300, "c": f"value {i}"})
    kept = [cell.cell_contents for read in model._row_scorer._readers for cell in read.__closure__ or ()]
    sizes = [len(k) for k in kept if isinstance(k, dict)]
    assert len(sizes) == 2 and max(sizes) <= 4


def test_log_probabilities_beside_scores_of_any_size():
    under = tb.Schema([tb.Column("n", "number"), tb.Column("c", "category")], target="y")
    rows = {"n": [14.0, 13.0, 14.0, 13.0], "c": ["a"] * 4, "y": ["p", "p", "q", "q"]}
    model = tb.count(rows, under).model(tb.Settings(families={"n": "gaussian-shared"}, prior="uniform"))
    for n in (1e9, -9223372036854775808, 1e100, 13.5):
        for row in ({"n": n, "c": "a"}, {"n": None, "c": "a"}):
            p, logs = model.predict_proba(row), model.predict_log_proba(row)
            assert np.allclose(np.exp(logs), p, rtol=1e-12, atol=0) and np.isclose(p.sum(), 1.0)
            assert np.allclose(logs, model.predict_log_proba([row, row])[:1], rtol=1e-9)


def test_what_is_remembered_of_values_has_an_end_also_for_pairs() -> None:
    kept = row_readers._Kept(lambda key: (0.0,))
    for key in ("short", ("short", "too"), 17):
        assert kept[key] == (0.0,)
    for key in ("x" * 1000, ("short", "x" * 1000)):
        assert kept[key] == (0.0,)
    assert list(kept) == ["short", ("short", "too"), 17]
