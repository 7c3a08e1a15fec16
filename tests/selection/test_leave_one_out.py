"""Leave-one-out equals refitting without the row, for every family, mixed tables and text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from cases import CASES, Case, schema, table
from test_folds import SETTINGS, mixed, mixed_schema, taken

import tallybayes as tb
from tallybayes.families import Gaussian, Multinomial
from tallybayes.selection.leave_one_out import leave_one_out


def check_against_refitting(
    data: dict[str, Any], under: tb.Schema, settings: tb.Settings, weights: np.ndarray | None = None
) -> None:
    tally = tb.count(data, under, weights=weights)
    held = leave_one_out(tally, data, settings, weights=weights)
    for i, row in enumerate(held.rows):
        others = np.arange(len(data[under.target])) != row
        model = tb.count(taken(data, others), under, weights=None if weights is None else weights[others]).model(
            settings
        )
        at = [held.classes.index(c) for c in model.classes]
        expected = model.log_joint(taken(data, ~others))
        np.testing.assert_allclose(held.joint[[i]][:, at], expected, rtol=1e-12, atol=1e-12, err_msg=str(row))
        rest = np.setdiff1d(np.arange(len(held.classes)), at)
        assert np.isneginf(held.joint[i, rest]).all()
        for name, part in model.parts(taken(data, ~others)).items():
            np.testing.assert_allclose(held.parts[name][[i]][:, at], part, rtol=1e-12, atol=1e-12, err_msg=name)
    assert [held.classes[k] for k in held.labels] == [data[under.target][i] for i in held.rows]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_family(case: Case) -> None:
    data = table(case, seed=5, n=8, classes=2)
    check_against_refitting(data, schema(case, data), case.settings())


@pytest.mark.parametrize("number", [i for i, s in enumerate(SETTINGS) if not isinstance(s.prior, dict)])
@pytest.mark.filterwarnings("ignore::tallybayes.TallybayesWarning")
def test_mixed_tables(number: int) -> None:
    data = mixed(24, seed=4)
    check_against_refitting(data, mixed_schema(data), SETTINGS[number])


FAST = [
    tb.Settings(families={"size": "gaussian", "count": Gaussian(unbiased=True)}),
    tb.Settings(families={"size": "gaussian", "count": "gaussian", "text": "complement"}, smoothing=tb.Laplace(0.2)),
    tb.Settings(families={"size": "gaussian", "count": "gaussian", "text": Multinomial(presence=True)}),
]


@pytest.mark.parametrize("settings", FAST)
def test_closed_forms(settings: tb.Settings) -> None:
    data = mixed(40, seed=6)
    data["y"] = ["ham" if i % 2 else "spam" for i in range(39)] + ["alone"]
    data["colour"][3] = "only here"
    data["size"] = data["size"] + 1e8  # an offset that ruins sums of squares in floating point
    check_against_refitting(data, mixed_schema(data), settings)
    declared = mixed_schema(data).with_column("colour", values=["only here", "never"])
    check_against_refitting(data, declared, settings)


def test_lengths_and_pairs() -> None:
    data = mixed(20, seed=8)
    sides = (tb.Side("colour"), tb.Side("size", "number", cuts=(0.0,)))
    under = mixed_schema(data).with_column("colour × size", kind="pair", of=sides)
    check_against_refitting(data, under, tb.Settings(lengths={"text": -0.6}, weights={"text": 0.8, "colour": 0.5}))


def test_weights() -> None:
    data = mixed(16, seed=7)
    weights = np.random.default_rng(1).choice([0.0, 0.5, 1.0, 2.25], 16)
    check_against_refitting(data, mixed_schema(data), FAST[0], weights)


def test_one_row_of_a_class_and_constant_numbers() -> None:
    data = {"x": [1.0, 1.0, 1.0, 2.0], "c": ["a", "a", "b", "b"], "y": ["p", "p", "q", "q"]}
    under = tb.Schema([tb.Column("x", "number"), tb.Column("c", "category")], target="y")
    check_against_refitting(data, under, tb.Settings(families={"x": "gaussian"}))
    two = {"x": [1.0, 3.0], "c": ["a", "b"], "y": ["p", "q"]}
    check_against_refitting(two, under, tb.Settings(families={"x": "gaussian"}))


def test_rows_that_were_not_counted_are_refused() -> None:
    under = tb.Schema([tb.Column("c", "category")], target="y")
    tally = tb.count({"c": ["a", "b"], "y": ["p", "q"]}, under)
    with pytest.raises(tb.CannotForget, match="cannot all have been counted"):
        leave_one_out(tally, {"c": ["z"], "y": ["p"]})


def test_the_only_row_cannot_be_left_out() -> None:
    under = tb.Schema([tb.Column("x", "number"), tb.Column("b", "bag"), tb.Column("t", "text")], target="y")
    data = {"x": [1.0, 2.0], "b": [["u"], ["v"]], "t": ["a", "b"], "y": ["p", None]}
    with pytest.raises(tb.DataError, match="leaves none to score it by"):
        leave_one_out(tb.count(data, under), data)
    gone = {n: [v[1]] for n, v in data.items()}
    three = tb.count({**data, "y": ["p", "p"]}, under) + tb.count(gone, under)
    with pytest.raises(tb.DataError, match="no row of the data has a label"):
        leave_one_out(three, gone)
    two = {**data, "y": ["p", "q"]}
    assert leave_one_out(tb.count(two, under), two).proba().tolist() == [[0.0, 1.0], [1.0, 0.0]]


def test_a_class_of_weight_zero_is_not_among_the_counted() -> None:
    under = tb.Schema([tb.Column("c", "category")], target="y")
    data, weights = {"c": list("aabbc"), "y": list("ppqqr")}, [1, 2, 1, 1, 0]
    tally = tb.count(data, under, weights=weights)
    found = leave_one_out(tally, data, weights=weights)
    kept = {n: v[:4] for n, v in data.items()}
    assert found.classes == ("p", "q") and found.rows.tolist() == [0, 1, 2, 3]
    assert np.array_equal(found.joint, leave_one_out(tally, kept, weights=weights[:4]).joint)
