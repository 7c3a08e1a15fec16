"""Folds by subtraction equal refitting from scratch: tallies to the bit, scores to 1e-12."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse
from cases import CASES, Case, schema, table
from hypothesis import given
from hypothesis import strategies as st
from strategies import SCHEMA, Rows, examples, tables

import tallybayes as tb
from tallybayes.data.sources import open_source
from tallybayes.exact.dense import positions
from tallybayes.families import Bins, Complement, Multinomial, Selection
from tallybayes.selection import folds as folding
from tallybayes.selection import splits
from tallybayes.selection.folds import Folds, count_folds


def folded(data: Any, under: tb.Schema, numbers: np.ndarray, weights: Any = None, **more: Any) -> Folds:
    """Folds given row by row."""
    source = open_source(data, weights=weights).repeatable()
    return count_folds(source, under, lambda read, start: numbers[read.rows + start], **more)


def taken(data: dict[str, Any], rows: np.ndarray) -> dict[str, Any]:
    return {k: [v[i] for i in np.flatnonzero(rows)] if isinstance(v, list) else v[rows] for k, v in data.items()}


def check_against_refitting(data: dict[str, Any], under: tb.Schema, numbers: np.ndarray, settings: tb.Settings) -> None:
    found = folded(data, under, numbers)
    held = found.held_out(settings)
    assert sum([found.part(k) for k in range(found.count)]) == found.total == tb.count(data, under)
    for k in range(found.count):
        training = tb.count(taken(data, numbers != k), under)
        assert found.training(k) == training
        assert found.total - found.part(k) == training
        model = training.model(settings)
        inside = numbers == k
        np.testing.assert_array_equal(held.rows[held.folds == k], np.flatnonzero(inside))
        at = [held.classes.index(c) for c in model.classes]
        expected = model.log_joint(taken(data, inside))
        np.testing.assert_allclose(held.joint[held.folds == k][:, at], expected, rtol=1e-12, atol=1e-12)
        rest = np.setdiff1d(np.arange(len(held.classes)), at)
        assert np.isneginf(held.joint[held.folds == k][:, rest]).all()
        for name, part in model.parts(taken(data, inside)).items():
            np.testing.assert_allclose(held.parts[name][held.folds == k][:, at], part, rtol=1e-12, atol=1e-12)
        np.testing.assert_allclose(
            held.proba()[held.folds == k][:, at], model.predict_proba(taken(data, inside)), atol=1e-12
        )
    truth = np.array(held.classes, dtype=object)[held.labels]
    assert truth.tolist() == [str(v) for v in np.asarray(data[under.target])[held.rows]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_family(case: Case) -> None:
    data = table(case, seed=3, n=30)
    check_against_refitting(data, schema(case, data), splits.stratified(codes(data["y"]), 4), case.settings())


def codes(labels: Any) -> np.ndarray:
    return np.unique(np.asarray(labels), return_inverse=True)[1]


def mixed(n: int = 90, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    y = rng.choice(["ham", "spam", "unsure"], n, p=[0.5, 0.4, 0.1])
    words = np.array(["offer", "meeting", "lunch", "win", "cash", "report", "the", "a", "of"])
    texts = [
        " ".join(rng.choice(words, rng.integers(0, 9), p=rng.dirichlet(np.ones(9)))) + f" only{i}" * (i % 3 == 0)
        for i in range(n)
    ]
    return {
        "text": [None if i % 17 == 5 else t for i, t in enumerate(texts)],
        "colour": [None if i % 11 == 0 else str(v) for i, v in enumerate(rng.choice(list("abcdefgh"), n))],
        "size": np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n) + (y == "spam")),
        "count": rng.poisson(2 + 3 * (y == "ham")).astype(float),
        "place": rng.normal(size=(n, 3)),
        "bag": [list(rng.choice(["u", "v", "w"], rng.integers(0, 4))) for _ in range(n)],
        "y": [str(v) for v in y],
    }


def mixed_schema(data: dict[str, Any]) -> tb.Schema:
    return tb.Schema(
        [
            tb.Column("text", "text"),
            tb.Column("colour", "category"),
            tb.Column("size", "number", cells=tb.Cells.fitted(data["size"][~np.isnan(data["size"])])),
            tb.Column("count", "number", cells=tb.Cells.fitted(data["count"])),
            tb.Column("place", "vector", width=3),
            tb.Column("bag", "bag", levels=3),
        ],
        target="y",
    )


SETTINGS = [
    tb.Settings(),
    tb.Settings(smoothing=tb.Laplace(0.1)),
    tb.Settings(smoothing={"text": tb.Laplace(0.03)}, weights={"text": 0.4, "size": 0.0}),
    tb.Settings(smoothing=tb.MaximumLikelihood(), families={"size": "gaussian", "count": "poisson"}),
    tb.Settings(families={"text": "complement", "size": "kernel", "bag": "levels"}, prior="uniform"),
    tb.Settings(families={"text": "bernoulli", "size": Bins("frequency", 5), "count": "levels"}, unseen="reserve"),
    tb.Settings(predictive=True, floor=tb.Floor("global", 1e-3)),
    tb.Settings(offsets={"ham": 0.7, "spam": -0.4}, lead=tb.Lead(0.6, -0.3), weights={"text": 0.5}),
    tb.Settings(families={"text": Multinomial(presence=True, idf=True, select=Selection(min_rows=2))}),
    tb.Settings(smoothing=tb.JelinekMercer(0.5), prior={"ham": 0.2, "spam": 0.5, "unsure": 0.3}),
    tb.Settings(families={"text": Complement(norm=True)}, prior=tb.Dirichlet({"ham": 1, "eggs": 2, "spam": 1})),
    tb.Settings(classes=("eggs",)),  # known without a row
    tb.Settings(classes=("eggs", "ham"), prior="uniform", floor=tb.Floor("global", 1e-3)),
    tb.Settings(prior=tb.Dirichlet({"ham": 1, "eggs": 2, "spam": 1})),
]


@pytest.mark.parametrize("number", range(len(SETTINGS)))
@pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")  # without smoothing the prior answers
def test_mixed_tables(number: int) -> None:
    data = mixed()
    settings = SETTINGS[number]
    if isinstance(settings.prior, dict):
        data["y"] = [("ham", "spam", "unsure")[i % 3] for i in range(len(data["y"]))]
    check_against_refitting(data, mixed_schema(data), splits.k_fold(len(data["y"]), 5), settings)


@pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")
def test_many_settings_at_once_are_the_same_as_one_by_one() -> None:
    data = mixed(seed=1)
    for settings in (SETTINGS[:6] + SETTINGS[7:], SETTINGS):  # with a global floor the columns depend on each other
        found = folded(data, mixed_schema(data), splits.stratified(codes(data["y"]), 3))
        for s, together in zip(settings, found.held_out_each(settings, parts=True), strict=True):
            alone = found.held_out(s)
            assert together.classes == alone.classes
            np.testing.assert_allclose(together.joint, alone.joint, rtol=1e-13, atol=1e-13)
            assert set(together.parts) == set(found.schema.names)


def test_lengths_and_pairs() -> None:
    data = mixed(seed=5)
    sides = (tb.Side("colour"), tb.Side("size", "number", cuts=(-0.5, 0.5)))
    under = mixed_schema(data).with_column("colour × size", kind="pair", of=sides)
    settings = tb.Settings(lengths={"text": -0.6}, weights={"text": 0.8, "colour": 0.5})
    check_against_refitting(data, under, splits.k_fold(90, 4), settings)


@examples(12)
@given(tables(min_size=3, max_size=8, label="text"), st.integers(0, 5))
def test_tallies_of_any_rows(rows: Rows, seed: int) -> None:
    numbers = splits.k_fold(len(rows), 3, seed) - (seed == 5)  # sometimes a part of the rows takes no part
    labelled = [i for i, v in enumerate(rows.columns["label"]) if v is not None and rows.weights[i] > 0]
    if not (numbers[labelled] >= 0).any():
        return
    found = folded(rows.data(), SCHEMA, numbers, rows.weights)
    inside = [i for i in range(len(rows)) if numbers[i] >= 0 or i not in labelled]
    assert found.total == rows.take(inside).tally(SCHEMA, weighted=True)
    for k in range(found.count):
        rest = [i for i in inside if numbers[i] != k or i not in labelled]
        assert found.training(k) == rows.take(rest).tally(SCHEMA, weighted=True)
        assert found.training(k).digest == (found.total - found.part(k)).digest


def test_what_only_the_test_fold_has_does_not_leak() -> None:
    data = {
        "text": ["cat dog", "cat", "dog dog", "zebra zebra cat"],
        "colour": ["red", "blue", "red", "ultraviolet"],
        "y": ["p", "q", "q", "p"],
    }
    under = tb.Schema([tb.Column("text", "text"), tb.Column("colour", "category")], target="y")
    found = folded(data, under, np.array([0, 0, 0, 1]))
    model = found.training(1).model()
    assert model.table("text").rows == ["cat", "dog"]  # V = 2
    assert model.table("colour").rows == ["blue", "red"]  # K = 2
    held = found.held_out(fold=1)
    # P(cat given p) = (1 + 1)/(2 + 2), given q (1 + 1)/(3 + 2); the zebra and its colour are no evidence
    np.testing.assert_allclose(held.parts["text"], np.log([[2 / 4, 2 / 5]]))
    np.testing.assert_array_equal(held.parts["colour"], [[0.0, 0.0]])


def test_a_class_that_training_lacks_is_impossible() -> None:
    data = {"x": ["a", "b", "a", "b"], "y": ["p", "q", "p", "r"]}
    held = folded(data, tb.Schema([tb.Column("x", "category")], target="y"), np.array([0, 0, 1, 1])).held_out()
    assert held.classes == ("p", "q", "r")
    assert np.isneginf(held.joint[3, 2])
    assert held.proba()[3, 2] == 0.0
    np.testing.assert_allclose(held.proba().sum(axis=1), 1.0)


def test_time_goes_forward() -> None:
    data = mixed(seed=2)
    numbers = np.repeat(np.arange(3), 30)
    found = folded(data, mixed_schema(data), numbers, past=True)
    held = found.held_out()
    assert set(held.folds.tolist()) == {1, 2}
    for k in (1, 2):
        training = tb.count(taken(data, numbers < k), found.schema)
        assert found.training(k) == training
        model = training.model()
        at = [held.classes.index(c) for c in model.classes]
        np.testing.assert_allclose(
            held.joint[held.folds == k][:, at], model.log_joint(taken(data, numbers == k)), rtol=1e-12
        )


def test_a_source_without_room_is_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    data = mixed(seed=3)
    under = mixed_schema(data)
    numbers = splits.k_fold(90, 4) - 1  # the first fold takes no part
    expected = folded(data, under, numbers).held_out_each(SETTINGS[:3], parts=True)
    plain = pa.table({k: v.tolist() if isinstance(v, np.ndarray) else v for k, v in data.items()})
    reader = pa.RecordBatchReader.from_batches(plain.schema, plain.to_batches(max_chunksize=13))
    monkeypatch.setattr(folding, "KEPT_BYTES", 4_000)
    found = folded(reader, under, numbers)
    kept = [p.blocks is not None for p in found.pieces]
    assert any(kept)
    assert not all(kept)
    for a, b in zip(found.held_out_each(SETTINGS[:3], parts=True), expected, strict=True):
        np.testing.assert_array_equal(a.rows, b.rows)
        np.testing.assert_allclose(a.joint, b.joint, rtol=1e-12)
        np.testing.assert_allclose(a.parts["text"], b.parts["text"], rtol=1e-12)


def test_one_fold_cannot_be_scored_and_unknown_columns_are_refused() -> None:
    data = mixed(20)
    found = folded(data, mixed_schema(data), np.zeros(20, dtype=int))
    with pytest.raises(tb.DataError, match="all rows fall into one fold"):
        found.held_out()
    found = folded(data, mixed_schema(data), np.arange(20) % 2)
    with pytest.raises(tb.DataError, match="no fold 7"):
        found.held_out(fold=7)
    with pytest.raises(tb.SchemaError, match="did you mean 'colour'"):
        found.held_out(tb.Settings(families={"color": "categorical"}))
    assert replace(found, past=True).scored() == [1]


@pytest.mark.parametrize("family", [Multinomial(), Multinomial(presence=True), Complement()])
@pytest.mark.parametrize("form", ["matrix", "wide matrix", "words"])
def test_positions_of_a_matrix_are_words_even_where_training_lacks_them(family: Any, form: str) -> None:
    rng = np.random.default_rng(3)
    width = 5000 if form == "wide matrix" else 12  # a wide one is narrowed to the positions that a fold has
    matrix = scipy.sparse.random_array((60, width), density=0.1 if width < 100 else 0.003, rng=rng, format="csr")
    matrix.data = np.ceil(4 * matrix.data)
    bags: Any = matrix
    if form == "words":  # positions by name, and a word that is none
        bags = [{"far" if j == 3 else str(j): n for j, n in enumerate(row) if n} for row in matrix.toarray().tolist()]
    data = {"m": bags, "y": [("ham", "spam", "unsure")[i % 3] for i in range(60)]}
    under = tb.Schema([tb.Column("m", "bag", width=width)], target="y")
    for alpha in (1.0, 0.01):
        settings = tb.Settings(smoothing=tb.Laplace(alpha), families={"m": family})
        check_against_refitting(data, under, splits.k_fold(60, 5), settings)


@pytest.mark.parametrize("family", [Multinomial(), Multinomial(presence=True), Complement()])
@pytest.mark.parametrize("places", [1 << 24, 0], ids=["from the total", "from the folds"])
def test_many_smoothings_at_once_are_the_bits_of_one_by_one(
    family: Any, places: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(4)
    words = rng.zipf(1.4, (90, 60)) % 300
    data = {"text": [" ".join(f"w{i}" for i in row) for row in words], "y": ["abc"[i % 3] for i in range(90)]}
    data["text"][7] += " often" * 9000  # more than the table of logarithms has
    under = tb.Schema([tb.Column("text", "text")], target="y")
    alphas = np.geomspace(0.001, 2, 11).tolist()
    settings = [tb.Settings(smoothing=tb.Laplace(a), families={"text": family}) for a in alphas]
    monkeypatch.setattr("tallybayes.selection.word_grid._PLACES", places)
    pytest.importorskip("numba", reason="without Numba there is only one way")
    monkeypatch.setattr("tallybayes.exact.kernels.scores._SUMS_AT_ONCE", 500)  # a few rows at a time
    found = folded(data, under, splits.k_fold(90, 4))
    monkeypatch.setenv("TALLYBAYES_KERNELS", "off")
    apart = [found.held_out(s) for s in settings]
    slow = found.training(2).model(settings[3]).log_joint(data)[splits.k_fold(90, 4) == 2]
    for wish in ("off", "on"):
        monkeypatch.setenv("TALLYBAYES_KERNELS", wish)
        for one, together in zip(apart, found.held_out_each(settings), strict=True):
            np.testing.assert_array_equal(together.joint, one.joint)
    np.testing.assert_allclose(apart[3].joint[apart[3].folds == 2], slow, rtol=1e-12)


def test_positions_are_known_by_the_numbers_they_spell(monkeypatch: pytest.MonkeyPatch) -> None:
    """The short way to the numbers of a matrix's positions has those that looking up each text has."""
    names = ["3", "12", "0", "007", "-3", "12", "99", "100000000000000000", "7"]
    data = {"m": [{name: 1.0} for name in names], "y": list("abcabcabc")}
    under = tb.Schema([tb.Column("m", "bag")], target="y")
    for more, short in (([], True), (["x7"], False), ([" 7"], False), (["1e1"], False), (["9" * 20], False)):
        rows = {"m": [*data["m"], *({name: 1.0} for name in more)], "y": [*data["y"], *("a" for _ in more)]}
        grid = folded(rows, under, np.arange(len(rows["y"])) % 3).words["m"]
        assert grid is not None
        assert (grid._spelled is not None) == short
        for width in (1, 10, 13, 5000):
            given = positions(width)
            assert grid.ids(given).tolist() == grid.ids(list(given)).tolist()
            assert grid.positions(width)[:-1].tolist() == [str(s) in given for s in grid.sheet.slot_names]


def test_receipts_are_taken_of_texts_though_bags_are_counted() -> None:
    data = {"text": ["a b", "b a", "a  b", None, ""] * 4, "y": list("pqpqp") * 4}
    for receipts in (True, False):
        under = tb.Schema([tb.Column("text", "text")], target="y", receipts=receipts)
        assert folded(data, under, np.arange(20) % 4).total == tb.count(data, under)


@pytest.mark.parametrize("kind", ["bag", "text"])
def test_a_fold_whose_training_rows_have_no_words(kind):
    words = {"bag": [["rain"], ["sun", "rain"], [], None], "text": ["rain", "sun rain", "", None]}[kind]
    data = {"w": words * 2, "fold": [1, 1, 2, 2] * 2, "y": ["p", "q"] * 4}
    under = tb.Schema([tb.Column("w", kind)], target="y")
    for settings in (tb.Settings(), tb.Settings(families={"w": "complement"})):
        found = tb.cross_validate(data, under, settings=settings, by="fold")
        assert np.isfinite(found["log_loss"]) and found["accuracy"] == 0.5
    words = tb.count(data, under).model()
    assert np.isfinite(words.predict_proba(data)).all()
