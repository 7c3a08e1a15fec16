"""What cannot be counted or believed is refused: where it is, what it is, how to mend it; and nothing has changed."""

from __future__ import annotations

import json
import math
import re

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse
from strategies import fresh_digest

import tallybayes as tb
from tallybayes.data.batch import refuse_repeated

C = tb.Column
SCHEMA = tb.Schema(
    [
        C("sky", "category"),
        C("temp", "number", cells=tb.Cells(0.0, -2)),
        C("at", "vector", width=2),
        C("words", "bag"),
    ],
    target="play",
)


def table(rows: int = 10, **changed):
    """A good table, with some columns exchanged."""
    good = {
        "sky": ["sunny", "rainy"] * (rows // 2),
        "temp": [float(i) for i in range(rows)],
        "at": [[0.5 * i, -1.0] for i in range(rows)],
        "words": [["a", "b"][: i % 3] for i in range(rows)],
        "play": ["yes", "yes", "no", "yes", "no"] * (rows // 5),
    }
    return {**good, **changed}


def at(row: int, value, column: str):
    """The good column with one value exchanged."""
    values = list(table()[column])
    values[row] = value
    return table(**{column: values})


TALLY = tb.count(table(), SCHEMA)
DIGEST = TALLY.digest


def refused(kind: type[tb.TallybayesError], what, *words: str) -> None:
    """The call raises exactly this class, the message has all the words and a hint, and the tally is as it was."""
    with pytest.raises(tb.TallybayesError) as caught:
        what()
    message = str(caught.value)
    assert type(caught.value) is kind, message
    found, _, hint = message.partition("\n\nHint: ")
    assert len(hint) > 10, message
    for word in words:
        assert re.search(word, message, re.DOTALL), (word, message)
    assert isinstance(caught.value, ValueError)
    assert len(found) < 1000
    assert fresh_digest(TALLY) == DIGEST
    assert tb.count(table(), SCHEMA) == TALLY


# ---- tables that are none


@pytest.mark.parametrize(
    "data",
    [
        {"sky": [], "play": []},
        pd.DataFrame({"sky": [], "play": []}),
        pl.DataFrame({"sky": [], "play": []}, schema={"sky": pl.String, "play": pl.String}),
        pa.table({"sky": pa.array([], pa.string()), "play": pa.array([], pa.string())}),
        pa.table({"sky": pa.array([], pa.string()), "play": pa.array([], pa.string())}).to_reader(),
    ],
    ids=["dict", "pandas", "polars", "Arrow", "reader"],
)
def test_an_empty_table(data):
    refused(tb.DataError, lambda: tb.fit(data, target="play"), "no rows", "at least one row")


@pytest.mark.parametrize("data", [[], {}, iter([]), pd.DataFrame()], ids=["list", "dict", "iterator", "frame"])
def test_a_table_of_nothing_at_all(data):
    refused(tb.DataError, lambda: tb.fit(data, target="play"))


def test_an_empty_table_with_a_schema_fits_nothing():
    schema = tb.Schema([C("sky", "category")], target="play")
    refused(tb.DataError, lambda: tb.fit({"sky": [], "play": []}, schema=schema), "no rows")
    refused(tb.DataError, lambda: tb.fit({"sky": ["u"], "play": [None]}, schema=schema), "'play' is missing in all 1")
    assert tb.count({"sky": [], "play": []}, schema) == tb.Tally.zero(schema)
    refused(tb.CannotEstimate, lambda: tb.Tally.zero(schema).model(), "no rows")


@pytest.mark.parametrize(
    "data",
    [3, 1.5, b"bytes", None, object(), {1, 2}, pd.Series([1, 2]), pl.Series([1, 2]), lambda: 0],
    ids=lambda v: type(v).__name__,
)
def test_things_that_are_not_a_table(data):
    refused(tb.DataError, lambda: tb.fit(data, target="play"), "not a table|not a dict")
    refused(tb.DataError, lambda: TALLY.update(data), "not a table|not a dict")


def test_a_list_of_other_things_than_dicts():
    refused(tb.DataError, lambda: tb.fit([{"a": 1, "play": "yes"}, ["b"]], target="play"), "row 1 ", "list, not a dict")
    refused(
        tb.DataError, lambda: tb.fit(iter([{"a": 1, "play": "yes"}, 5]), target="play"), "row 1 ", "int, not a dict"
    )
    refused(tb.DataError, lambda: tb.fit(["sunny", "rainy"], y=["yes", "no"]), "row 0 ", "str, not a dict")


@pytest.mark.parametrize("shape", [(4,), (2, 2, 2), ()])
def test_an_array_that_is_not_a_matrix(shape):
    refused(tb.DataError, lambda: tb.fit(np.zeros(shape), y=[0, 1, 0, 1]), f"{len(shape)} dimensions", r"X\[None, :\]")


# ---- the target


def test_no_target():
    refused(tb.DataError, lambda: tb.fit(table(), target="plya"), "no target column 'plya'", "did you mean 'play'")
    refused(tb.DataError, lambda: tb.fit({"sky": ["u", "v"]}), "no target column", "target=")
    refused(tb.DataError, lambda: tb.infer(table(), "zzz"), "no target column 'zzz'")
    refused(tb.DataError, lambda: TALLY.update({"sky": ["sunny"]}), "no target column 'play'")


@pytest.mark.parametrize("missing", [None, math.nan, "", pd.NA])
def test_a_target_that_is_all_missing(missing):
    data = table(play=[missing] * 10)
    refused(tb.DataError, lambda: tb.fit(data, target="play"), "'play' is missing in all 10 rows")
    refused(tb.DataError, lambda: tb.fit(data, target="play", schema=SCHEMA), "'play' is missing in all 10 rows")


@pytest.mark.parametrize(
    "y", [np.linspace(0, 1, 60), np.arange(200), [0.1 * i for i in range(60)], pd.Series(range(200))]
)
def test_a_quantity_as_target(y):
    data = {"sky": ["u", "v"] * (len(y) // 2), "price": y}
    refused(tb.DataError, lambda: tb.fit(data, target="price"), "'price' is a quantity", r"data\['price'\] >= ")


def test_small_whole_numbers_are_classes():
    assert tb.fit({"sky": ["u", "v"] * 5, "n": [0, 1, 2, 3, 4] * 2}, target="n").classes == (0, 1, 2, 3, 4)


# ---- columns


def test_column_names_given_twice():
    frame = pd.DataFrame([["u", "v", "yes"]], columns=["sky", "sky", "play"])
    refused(tb.DataError, lambda: tb.fit(frame, target="play"), "more than one column is called 'sky'", "rename")
    arrow = pa.table([["u"], ["v"], ["yes"]], names=["sky", "sky", "play"])
    for form in (arrow, arrow.to_reader(), duckdb.connect().from_arrow(arrow)):
        if isinstance(form, duckdb.DuckDBPyRelation) and len(set(form.columns)) == 3:
            continue  # DuckDB gave the second one another name
        refused(tb.DataError, lambda form=form: tb.fit(form, target="play"), "more than one column is called 'sky'")
    refused(tb.DataError, lambda: tb.fit({1: ["u"], "1": ["v"], "play": ["yes"]}, target="play"), "called '1'")
    refused(
        tb.SchemaError, lambda: tb.Schema([C("a", "number"), C("a", "category")]), "more than one column called 'a'"
    )


def test_of_thousands_of_columns_each_name_is_looked_at_once():
    """Where each is looked for among all, 20,000 names of which one comes twice take 2.5 s; now some milliseconds."""
    compared = []

    class Name(str):
        __hash__ = str.__hash__

        def __eq__(self, other):
            compared.append(self)
            return str.__eq__(self, other)

    names = [Name(f"c{i}") for i in (*range(1000), 7)]
    refused(tb.DataError, lambda: refuse_repeated(names, "t.csv: "), "t.csv: more than one column is called 'c7'")
    refused(tb.SchemaError, lambda: tb.Schema([C(n, "number") for n in names]), "more than one column called 'c7'")
    assert len(compared) < 20 * len(names)


def test_columns_of_different_lengths():
    data = {"sky": ["u", "v", "w"], "temp": [1.0, 2.0], "play": ["yes", "no", "yes"]}
    refused(tb.DataError, lambda: tb.fit(data, target="play"), "different lengths", "'sky' has 3", "'temp' has 2")
    matrix = {"x": np.zeros((2, 2)), "play": ["yes", "no", "yes"]}
    refused(tb.DataError, lambda: tb.fit(matrix, target="play"), "'x' has 2", "'play' has 3")


@pytest.mark.parametrize("n", [0, 3, 5])
def test_labels_or_weights_of_the_wrong_length(n):
    x = np.arange(8.0).reshape(4, 2)
    refused(tb.DataError, lambda: tb.fit(x, y=["p", "q", "p", "q", "p"][:n]), f"{n} values were given as 'y'", "4")
    weights = [1.0] * n
    refused(tb.DataError, lambda: tb.fit(x, y=list("pqpq"), weights=weights), f"{n} values were given as '.*weights")
    reader = pa.table({"a": [1, 2, 3, 4]}).to_reader(max_chunksize=2)
    refused(tb.DataError, lambda: tb.fit(reader, y=["p", "q", "p", "q", "p"][:n]), f"{n} values were given as 'y'")


def test_labels_beside_data_that_have_that_column():
    refused(tb.DataError, lambda: tb.fit(table(), "play", y=["yes"] * 10), "'play'", "target=")


# ---- values


@pytest.mark.parametrize("form", [dict, pd.DataFrame, "arrow", "rows", "iterator"], ids=str)
def test_a_word_in_a_number_column_is_named_with_its_row(form):
    data = at(7, "warm", "temp")
    if form == "arrow":
        given = pa.table({**data, "temp": [str(v) for v in data["temp"]]})
    elif form in ("rows", "iterator"):
        rows = [dict(zip(data, values, strict=True)) for values in zip(*data.values(), strict=True)]
        given = rows if form == "rows" else iter(rows)
    else:
        given = form(data)
    refused(tb.DataError, lambda: TALLY.update(given), "column 'temp', row 7 ", "'warm' is not a number", "missing=")
    if form != "iterator":
        refused(tb.DataError, lambda: TALLY.forget(given), "column 'temp', row 7 ")
        refused(tb.DataError, lambda: TALLY.model().predict(given), "column 'temp', row 7 ")


def test_the_row_number_counts_through_the_chunks():
    temp = pa.chunked_array([[str(i) for i in range(4)], ["4", "5", "6", "warm", "8", "9"]])
    data = pa.table({**table(), "temp": temp})
    refused(tb.DataError, lambda: TALLY.update(data), "column 'temp', row 7 ")
    refused(tb.DataError, lambda: TALLY.update(data.to_reader(max_chunksize=3)), "column 'temp', row 7 ")
    refused(tb.DataError, lambda: TALLY.model().predict(data.to_reader(max_chunksize=3)), "column 'temp', row 7 ")


def test_a_decimal_comma():
    refused(tb.DataError, lambda: TALLY.update(at(3, "3,5", "temp")), "row 3 ", "'3,5'", "decimals with a point")
    refused(tb.DataError, lambda: TALLY.update(at(3, "-1,25", "temp")), "row 3 ", "decimals with a point")
    words = at(3, "a,b", "temp")
    with pytest.raises(tb.DataError, match="missing=") as caught:
        TALLY.update(words)
    assert "decimals" not in str(caught.value)


@pytest.mark.parametrize("value", ["1_000", "1 000", "0x1F", "12abc", "--1", "١٢x"])
def test_numbers_that_only_python_reads_are_words(value):
    refused(tb.DataError, lambda: TALLY.update(at(2, value, "temp")), "column 'temp', row 2 ", "not a number")


@pytest.mark.parametrize("value", [[1.0], {"a": 1}, (1, 2), object(), 1j])
def test_things_in_a_number_column(value):
    refused(tb.DataError, lambda: TALLY.update(at(2, value, "temp")), "'temp'", "number")


@pytest.mark.parametrize("value", [math.inf, -math.inf])
def test_infinite_values(value):
    refused(tb.DataError, lambda: TALLY.update(at(4, value, "temp")), "column 'temp', row 4 ", "inf")
    refused(tb.DataError, lambda: TALLY.update(at(4, [1.0, value], "at")), "column 'at', row 4 ", "position 1 is .*inf")
    refused(tb.DataError, lambda: TALLY.update(at(4, {"a": value}, "words")), "column 'words', row 4 ", "inf")
    refused(tb.DataError, lambda: tb.fit(at(4, value, "temp"), target="play"), "column 'temp', row 4 ")


@pytest.mark.parametrize("weight", [-1.0, -1e-9])
def test_negative_weights(weight):
    weights = [1.0] * 5 + [weight] + [1.0] * 4
    refused(tb.DataError, lambda: TALLY.update(table(), weights=weights), "weights', row 5 ", "is negative", "forget")
    named = tb.Schema(SCHEMA.columns, target="play", weights="w")
    refused(tb.DataError, lambda: tb.count(table(w=weights), named), "column 'w', row 5 ", "is negative")
    refused(tb.DataError, lambda: tb.fit(table(w=weights), target="play", weights="w"), "column 'w', row 5 ")


@pytest.mark.parametrize("weight", [math.nan, None, ""])
def test_missing_weights(weight):
    weights = [1.0] * 5 + [weight] + [1.0] * 4
    refused(tb.DataError, lambda: TALLY.update(table(), weights=weights), "weights', row 5 ", "missing")


@pytest.mark.parametrize("weight", [1e-14, 1e-300, 5e-324, 3e-17])
def test_weights_too_small(weight):
    weights = [1.0] * 5 + [weight] + [1.0] * 4
    refused(tb.DataError, lambda: TALLY.update(table(), weights=weights), "weights', row 5 ", "too small", "multiply")


@pytest.mark.parametrize("weight", [2.0**31, 1e200, 1e300, 1.7e308])
def test_weights_too_large(weight):
    weights = [1.0] * 5 + [weight] + [1.0] * 4
    refused(tb.DataError, lambda: TALLY.update(table(), weights=weights), "weights', row 5 ", "over", "divide")


def test_other_wrong_weights():
    words = [1.0] * 5 + ["heavy"] + [1.0] * 4
    refused(tb.DataError, lambda: TALLY.update(table(), weights=words), "weights', row 5 ", "'heavy' is not a number")
    infinite = [1.0] * 5 + [math.inf] + [1.0] * 4
    refused(tb.DataError, lambda: TALLY.update(table(), weights=infinite), "weights', row 5 ", "inf")
    refused(tb.DataError, lambda: tb.fit(table(), target="play", weights="tmp"), "'tmp'", "did you mean 'temp'")
    named = tb.Schema(SCHEMA.columns, target="play", weights="w")
    refused(tb.DataError, lambda: tb.count(table(), named), "no weights column 'w'")


def test_negative_bag_amounts():
    refused(tb.DataError, lambda: TALLY.update(at(4, {"a": -1}, "words")), "column 'words', row 4 ", "-1", "at least 0")
    bag = tb.Schema([C("x", "bag")], target="y")
    for x in (np.array([[1.0, 2], [0, -3]]), scipy.sparse.csr_matrix([[1.0, 2], [0, -3]])):
        refused(tb.DataError, lambda x=x: tb.count(x, bag, ["p", "q"]), "column 'x', row 1 ", "-3", "vector")


@pytest.mark.parametrize("amount", [math.nan, "two", [1], {"n": 1}])
def test_bag_amounts_that_are_no_numbers(amount):
    refused(tb.DataError, lambda: TALLY.update(at(4, {"a": amount}, "words")), "column 'words', row 4 ")


def test_bag_amounts_whose_sum_is_infinite():
    refused(
        tb.DataError, lambda: TALLY.update(at(4, {"1": 1.7e308, 1: 1.7e308}, "words")), "column 'words', row 4 ", "inf"
    )


@pytest.mark.parametrize("dtype", [np.longdouble, np.complex128, "M8[s]", "m8[s]", object])
def test_number_columns_of_odd_types_are_read_or_refused(dtype):
    column = np.arange(10).astype(dtype)
    if dtype in (np.longdouble, object):
        assert tb.count(table(temp=column), SCHEMA) == TALLY
    else:
        refused(tb.DataError, lambda: TALLY.update(table(temp=column)), "'temp'")


@pytest.mark.parametrize("value", ["a whole text", 3, 1.5])
def test_things_that_are_no_bag(value):
    refused(tb.DataError, lambda: TALLY.update(at(4, value, "words")), "column 'words', row 4 ", "not a bag", "split")


@pytest.mark.parametrize("value", [[1.0], [1.0, 2.0, 3.0], []])
def test_vectors_of_different_width(value):
    refused(
        tb.DataError, lambda: TALLY.update(at(4, value, "at")), "column 'at', row 4 ", f"of {len(value)} numbers, not 2"
    )
    wide = np.zeros((10, 3))
    refused(tb.DataError, lambda: TALLY.update(table(at=wide)), "column 'at', row 0 ", "of 3 numbers, not 2")
    refused(tb.DataError, lambda: TALLY.model().predict(table(at=wide)), "column 'at', row 0 ")


def test_bags_of_different_width():
    bag = tb.Schema([C("x", "bag", width=2)], target="y")
    refused(tb.DataError, lambda: tb.count(np.ones((2, 3)), bag, ["p", "q"]), "column 'x'", "3 .*not 2")


@pytest.mark.parametrize("value", [1.0, "ab", ["a", "b"], [[1], [2]]])
def test_things_that_are_no_vector(value):
    refused(tb.DataError, lambda: TALLY.update(at(4, value, "at")), "column 'at', row 4 ")


def test_a_matrix_where_a_category_or_label_should_be():
    refused(tb.DataError, lambda: TALLY.update(table(sky=np.zeros((10, 2)))), "'sky'")
    refused(tb.DataError, lambda: TALLY.update(table(play=np.zeros((10, 2)))), "'play'")


@pytest.mark.parametrize("column", ["sky", "play", "words"])
def test_text_that_is_no_unicode_is_read_as_a_replacement_character(column):
    broken, mended = (at(4, [v] if column == "words" else v, column) for v in ("a\ud800", "a\ufffd"))
    assert tb.count(broken, SCHEMA) == tb.count(mended, SCHEMA)
    assert tb.count(broken, SCHEMA).digest == tb.count(mended, SCHEMA).digest


# ---- asking a model


def test_none_of_the_columns_present():
    model = TALLY.model()
    refused(
        tb.DataError,
        lambda: model.predict({"Sky_": ["sunny"]}),
        "none of the columns 'sky', 'temp'",
        "did you mean 'Sky_'",
    )
    refused(tb.DataError, lambda: model.predict_proba([{"zzz": 1}]), "none of the columns", "found by name")
    refused(tb.DataError, lambda: model.explain({"zzz": 1}), "none of the columns")
    refused(tb.DataError, lambda: TALLY.update({"zzz": [1], "play": ["yes"]}), "none of the columns")


def test_an_absent_column_warns_once_and_guesses():
    model = TALLY.model()
    data = {n: v for n, v in table().items() if n not in ("temp", "play")} | {"Temp_": table()["temp"]}
    for rows in (data, pa.table(data).to_reader(max_chunksize=3)):
        with pytest.warns(tb.TallybayesWarning, match="did you mean 'Temp_'") as caught:
            p = model.predict_proba(rows)
        assert len(caught) == 1
        assert "'temp'" in str(caught[0].message)
        assert caught[0].filename == __file__
        assert np.allclose(p, model.predict_proba({**data, "temp": [None] * 10}))


def test_an_absent_column_warns_once_while_counting():
    data = pa.table({n: v for n, v in table().items() if n != "temp"})
    with pytest.warns(tb.TallybayesWarning, match="'temp'") as caught:
        tally = tb.count(data.to_reader(max_chunksize=3), SCHEMA)
    assert len(caught) == 1
    assert tally == tb.count(table(temp=[None] * 10), SCHEMA)


def test_a_row_that_does_not_exist():
    refused(tb.DataError, lambda: TALLY.model().explain(table(), 10), "no row 10 among 10")
    refused(tb.DataError, lambda: TALLY.model().explain(table(), -1), "no row -1 among 10")


def test_a_column_that_the_model_does_not_have():
    refused(tb.SettingsError, lambda: TALLY.model().table("temq"), "'temq'", "did you mean 'temp'")
    with pytest.raises(tb.TallybayesError, match="did you mean 'temp'"):
        TALLY.moments("temq")


# ---- settings


@pytest.mark.parametrize("epsilon", [0.1, 0.5, 1.0, 7.0, 0.0, -1e-9, math.nan])
def test_epsilon_out_of_range(epsilon):
    settings = tb.Settings(smoothing=tb.Epsilon(epsilon))
    refused(tb.SettingsError, lambda: TALLY.model(settings), "epsilon .* 1/N, N being 10 rows", "Laplace")


@pytest.mark.parametrize("alpha", [-1.0, -1e-9, math.nan, math.inf])
def test_alpha_out_of_range(alpha):
    refused(tb.SettingsError, lambda: tb.Laplace(alpha), "alpha is", "at least 0")


def test_other_smoothing_out_of_range():
    refused(tb.SettingsError, lambda: tb.JelinekMercer(1.5), "1.5", "0 to 1")
    refused(tb.SettingsError, lambda: tb.AbsoluteDiscount(0.0), "0.0")
    refused(tb.SettingsError, lambda: tb.Dirichlet({}), "empty")
    refused(tb.SettingsError, lambda: tb.Dirichlet({"a": -1}), "negative")
    refused(tb.SettingsError, lambda: tb.Dirichlet({"a": 1, "b": {"c": 1}}), "mixes")
    refused(tb.SettingsError, lambda: tb.Settings(smoothing=[1.0]), "not a smoothing", r"tb.Laplace\(1.0\)")
    refused(tb.SettingsError, lambda: tb.Floor("row"), "'row'")
    refused(tb.SettingsError, lambda: tb.Floor("column", -1.0), "-1.0")
    refused(tb.SettingsError, lambda: tb.Settings(unseen="ignore"), "'ignore'", "no evidence")


@pytest.mark.parametrize("prior", [{"yes": 0.5, "no": 0.4}, {"yes": 0.9, "no": 0.2}, {"yes": 60, "no": 40}])
def test_priors_that_do_not_add_up(prior):
    refused(tb.SettingsError, lambda: TALLY.model(tb.Settings(prior=prior)), "add up|prior of", "one")
    refused(tb.SettingsError, lambda: TALLY.model().predict(table(), prior=prior), "add up|prior of")
    refused(tb.SettingsError, lambda: tb.Model.written(prior), "add up|prior of")


def test_priors_within_two_hundredths_are_normalised_with_a_warning():
    with pytest.warns(tb.TallybayesWarning, match=r"0\.99"):
        model = TALLY.model(tb.Settings(prior={"yes": 0.33, "no": 0.66}))
    assert model.prior() == pytest.approx({"no": 2 / 3, "yes": 1 / 3})


@pytest.mark.parametrize(
    ("prior", "words"),
    [
        ({"yes": 0.5, "no": 0.3, "perhaps": 0.2}, "unknown classes 'perhaps'"),
        ({"yes": 1.0}, "nothing for 'no'"),
        ({"Yes": 0.5, "no": 0.5}, "unknown classes 'Yes'.*nothing for 'yes'"),
        ({}, "nothing for"),
        ({"yes": 1.5, "no": -0.5}, "prior of"),
        ({"yes": math.nan, "no": 0.5}, "prior of 'yes'"),
    ],
)
def test_priors_for_the_wrong_classes(prior, words):
    refused(tb.SettingsError, lambda: TALLY.model(tb.Settings(prior=prior)), words)


def test_priors_of_no_known_form():
    refused(tb.SettingsError, lambda: tb.Settings(prior="countd"), "did you mean 'counted'")
    refused(tb.SettingsError, lambda: tb.Settings(prior=[0.5, 0.5]), "prior=")
    refused(tb.SettingsError, lambda: TALLY.model().predict(table(), prior="flat"), "prior='flat'")


def test_unknown_families():
    refused(
        tb.SettingsError,
        lambda: TALLY.model(tb.Settings(families={"temp": "gausian"})),
        "'gausian'",
        "did you mean 'gaussian'",
    )
    refused(tb.SettingsError, lambda: TALLY.model(tb.Settings(families={"temp": 3})), "3")


@pytest.mark.parametrize(
    ("column", "family"),
    [
        ("sky", "gaussian"),
        ("temp", "categorical"),
        ("words", "kernel"),
        ("at", "bins"),
        ("at", "auto"),
        ("temp", "multinomial"),
    ],
)
def test_a_family_for_the_wrong_kind(column, family):
    kind = SCHEMA[column].kind
    settings = tb.Settings(families={column: family})
    refused(tb.SettingsError, lambda: TALLY.model(settings), f"column '{column}' is a {kind}", f"'{family}'", "reads")


@pytest.mark.parametrize(
    "settings",
    [
        {"families": {"tmp": "gaussian"}},
        {"weights": {"tmp": 0.5}},
        {"smoothing": {"tmp": tb.Laplace(2.0)}},
    ],
    ids=lambda s: next(iter(s)),
)
def test_settings_for_an_unknown_column(settings):
    refused(tb.SchemaError, lambda: TALLY.model(tb.Settings(**settings)), "no column 'tmp'", "did you mean 'temp'")


@pytest.mark.parametrize("weight", [-0.5, math.nan, math.inf])
def test_column_weights_out_of_range(weight):
    refused(tb.SettingsError, lambda: tb.Settings(weights={"temp": weight}), "'temp'", "at least 0")


def test_a_family_that_needs_cells():
    bare = tb.count({"x": [1.0, 2.0], "y": ["p", "q"]}, tb.Schema([C("x", "number")], target="y"))
    for family in ("kernel", "bins"):
        refused(tb.SettingsError, lambda f=family: bare.model(tb.Settings(families={"x": f})), "needs cells", "infer")


# ---- tallies


def test_estimating_a_signed_tally():
    refused(tb.CannotEstimate, lambda: (-TALLY).model(), "class 'no'", "subtract only what was added")
    more = tb.count(at(0, "foggy", "sky"), SCHEMA)
    refused(tb.CannotEstimate, lambda: (2 * TALLY - more).model(), "column 'sky', class 'yes', slot 'foggy' at n = -1")
    refused(tb.CannotEstimate, lambda: (TALLY - TALLY).model(), "no rows")


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (SCHEMA.with_column("sky", kind="bag"), "column 'sky' has kind='category' here and 'bag' there"),
        (SCHEMA.with_column("words", levels=3), "column 'words' has levels=None here and 3 there"),
        (SCHEMA.with_column("at", width=3), "column 'at' has 2 positions here and 3 there"),
        (SCHEMA.with_column("sky", missing=("?",)), "column 'sky' has missing="),
        (SCHEMA.with_column("wind", kind="number"), "only one of them counts 'wind'"),
        (SCHEMA.with_column("sky", kind="ignore"), "only one of them counts 'sky'"),
        (tb.Schema(SCHEMA.columns, target="answer"), "target='play' here and 'answer' there"),
        (tb.Schema(SCHEMA.columns, target="play", weights="w"), "weights=None here and 'w' there"),
        (SCHEMA.with_receipts(), "receipts=False here and True there"),
    ],
)
def test_tallies_of_different_schemas(other, words):
    for add in (lambda: TALLY + tb.Tally.zero(other), lambda: TALLY - tb.Tally.zero(other)):
        refused(tb.SchemaError, add, "do not count the same thing", re.escape(words), "schema.save")


def test_forgetting_what_was_never_counted():
    refused(tb.CannotForget, lambda: TALLY.forget(at(0, "foggy", "sky")), "slot 'foggy'", "nothing has been forgotten")
    refused(tb.CannotForget, lambda: TALLY.model().forget(at(0, "foggy", "sky")), "slot 'foggy'")


def test_updating_a_model_without_a_tally():
    model = tb.Model.written({"yes": 0.5, "no": 0.5}, {"sky": {"yes": {"sunny": 0.9}, "no": {"sunny": 0.2}}})
    refused(tb.CannotEstimate, lambda: model.update({"sky": ["sunny"], "class": ["yes"]}), "strength")
    refused(tb.CannotEstimate, lambda: model.forget({"sky": ["sunny"], "class": ["yes"]}), "strength")


# ---- schemas


def test_columns_that_make_no_sense():
    refused(tb.SchemaError, lambda: C("a", "categry"), "column 'a' has the kind 'categry'", "did you mean 'category'")
    refused(tb.SchemaError, lambda: C("a", "number", values=["1", "2"]), "column 'a' is a number and declares values")
    refused(tb.SchemaError, lambda: C("a", "category", levels=2), "column 'a'.*levels")
    refused(tb.SchemaError, lambda: C("a", "bag", levels=0), "levels")
    refused(tb.SchemaError, lambda: C("a", "number", source="b", part="year"), "'year'", "weekday")
    refused(tb.SchemaError, lambda: SCHEMA["tmp"], "no column 'tmp'", "did you mean 'temp'")
    refused(tb.SchemaError, lambda: tb.Schema([C("play", "category")], target="play"), "'play'")
    refused(tb.SchemaError, lambda: tb.Schema([C("w", "number")], target="y", weights="w"), "weights")
    refused(tb.SchemaError, lambda: tb.Schema([], target="y", label_type="complex"), "'complex'")


def written(tmp_path, **changes) -> str:
    path = tmp_path / "schema.json"
    path.write_text(json.dumps({**SCHEMA.to_dict(), **changes}), encoding="utf-8")
    return str(path)


@pytest.mark.parametrize("text", ["", "{", '{"target": ', "not json", '{"columns": [}', "\ufeff{}"])
def test_a_broken_schema_file(tmp_path, text):
    path = tmp_path / "schema.json"
    path.write_text(text, encoding="utf-8")
    refused(tb.SchemaError, lambda: tb.Schema.load(path), "schema.json", "not JSON", "schema.save")


def test_a_schema_file_cut_short(tmp_path):
    SCHEMA.save(tmp_path / "schema.json")
    whole = (tmp_path / "schema.json").read_text(encoding="utf-8")
    for length in range(0, len(whole) - 1, 37):
        (tmp_path / "cut.json").write_text(whole[:length], encoding="utf-8")
        refused(tb.SchemaError, lambda: tb.Schema.load(tmp_path / "cut.json"), "not JSON")


def test_a_schema_file_that_is_not_text(tmp_path):
    (tmp_path / "schema.json").write_bytes(b"\xff\xfe\x00PAR1")
    refused(tb.SchemaError, lambda: tb.Schema.load(tmp_path / "schema.json"), "not JSON")


@pytest.mark.parametrize("version", [2, 99, None, "1", 0])
def test_a_schema_of_another_version(tmp_path, version):
    path = written(tmp_path, tallybayes_schema=version)
    refused(
        tb.SchemaError, lambda: tb.Schema.load(path), f"version {version!r}", "reads version 1", "update tallybayes"
    )


@pytest.mark.parametrize("content", [[], 3, None, "text", [{}]])
def test_json_that_is_no_schema(tmp_path, content):
    path = tmp_path / "schema.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    refused(tb.SchemaError, lambda: tb.Schema.load(path))


@pytest.mark.parametrize(
    "changes",
    [
        {"columns": [{"name": "a", "kind": "spline"}]},
        {"columns": [{"name": "a", "kind": "number", "values": ["1"]}]},
        {"columns": [{"name": "a"}]},
        {"columns": [{"kind": "number"}]},
        {"columns": [{"name": "a", "kind": "number", "colour": "red"}]},
        {"columns": [{"name": "a", "kind": "number", "cells": {"centre": 0.0}}]},
        {"columns": [{"name": "a", "kind": "number", "cells": {"centre": 0.0, "exponent": 1, "width": 3}}]},
        {"columns": ["a"]},
        {"columns": None},
        {"label_type": "complex"},
        {"surprise": 1},
    ],
    ids=json.dumps,
)
def test_a_schema_file_with_something_wrong_in_it(tmp_path, changes):
    path = written(tmp_path, **changes)
    refused(tb.SchemaError, lambda: tb.Schema.load(path))


def test_a_schema_file_without_columns(tmp_path):
    given = SCHEMA.to_dict()
    del given["columns"]
    (tmp_path / "schema.json").write_text(json.dumps(given), encoding="utf-8")
    refused(tb.SchemaError, lambda: tb.Schema.load(tmp_path / "schema.json"), "columns")


def test_errors_survive_pickling():
    import pickle

    with pytest.raises(tb.DataError) as caught:
        TALLY.update(at(7, "warm", "temp"))
    again = pickle.loads(pickle.dumps(caught.value))
    assert type(again) is tb.DataError and str(again) == str(caught.value)


def test_every_error_is_known_by_its_public_name():
    import pickle

    from tallybayes.base import errors

    kinds = [getattr(errors, name) for name in errors.__all__ if isinstance(getattr(errors, name), type)]
    assert len(kinds) == 11
    for kind in kinds:
        assert getattr(tb, kind.__name__) is kind is getattr(errors, kind.__name__)  # Spark looks them up by name
        assert kind.__module__ == "tallybayes" and pickle.loads(pickle.dumps(kind)) is kind
        if issubclass(kind, tb.TallybayesError):
            again = pickle.loads(pickle.dumps(kind("found", hint="mend")))
            assert type(again) is kind and (again.found, again.hint) == ("found", "mend")


def test_an_error_crosses_processes_and_shows_its_public_name():
    import os
    import pickle
    import subprocess
    import sys
    from pathlib import Path

    code = (
        "import pickle, sys, tallybayes.base.errors as e\n"
        "sys.stdout.buffer.write(pickle.dumps(e.CannotForget('never counted', hint='count first')))\n"
        "raise e.CannotForget('never counted', hint='count first')"
    )
    env = {**os.environ, "PYTHONPATH": str(Path(tb.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, env=env, check=False)
    error = pickle.loads(done.stdout)
    assert type(error) is tb.CannotForget and error.hint == "count first"
    assert b"\ntallybayes.CannotForget: never counted" in done.stderr


def test_a_wide_table_without_the_columns_is_told_at_once():
    """The nearest name is looked for where the message shows it: for all 1,500 absent columns it took a minute."""
    import time

    names = [f"feature_{i:05d}" for i in range(1500)]
    schema = tb.Schema([C(name, "number") for name in names], target="y")
    model = tb.count({**{n: [1.0, 2.0] for n in names}, "y": ["a", "b"]}, schema).model()
    rows = {n.replace("f", "F").replace("_", "-"): [1.0] for n in names[1:]} | {names[0]: [1.0]}
    begun = time.perf_counter()
    with pytest.warns(tb.TallybayesWarning, match="1491 more. 'feature_00001': did you mean 'Feature-00001'"):
        model.predict(rows)
    assert time.perf_counter() - begun < 20


def test_a_reader_leaves_nothing_behind(tmp_path, monkeypatch, recwarn):
    import gc
    import tempfile

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    model = tb.fit(pa.table({"sky": ["u", "v", "u"], "play": ["yes", "no", "yes"]}).to_reader(), target="play")
    assert model.tally is not None and model.tally.rows == 3
    gc.collect()
    assert not list(tmp_path.iterdir())
    assert not [w for w in recwarn if issubclass(w.category, ResourceWarning)]
