"""Settings as people give them: one family for all columns, numbers, names and dicts, and refusals at once."""

import numpy as np
import pytest

import tallybayes as tb
from tallybayes.families import Bernoulli, Gaussian, Levels
from tallybayes.families.auto import candidates
from tallybayes.families.settings import smoothing_of

MIXED = {
    "size": [1.5, 2.0, 3.0, 4.5, 2.2, 1.1, 2.7, 3.3],
    "flag": [0, 1, 0, 1, 1, 0, 0, 0],
    "much": [4, 5, 7, 9, 2, 4, 5, 5],
    "sky": ["a", "b", "c", "b", "a", "b", "c", "a"],
    "y": ["p", "q", "p", "q", "p", "q", "q", "p"],
}
SCHEMA = tb.infer(MIXED, target="y")
TALLY = tb.count(MIXED, SCHEMA)


def test_one_family_is_given_to_the_columns_that_it_reads():
    model = TALLY.model(tb.Settings(families="gaussian"))
    assert {n: f.name for n, f in model.families.items()} == {
        "size": "gaussian", "flag": "gaussian", "much": "gaussian", "sky": "categorical"
    }  # fmt: skip
    by_name = TALLY.model(tb.Settings(families={"size": "gaussian", "flag": "gaussian", "much": "gaussian"}))
    assert np.array_equal(model.log_joint(MIXED), by_name.log_joint(MIXED))
    assert TALLY.model({"families": Gaussian(unbiased=True)}).families["size"] == Gaussian(unbiased=True)


@pytest.mark.parametrize(
    "ask",
    [
        lambda s: tb.fit(MIXED, "y", settings=s),
        lambda s: tb.fit(MIXED, "y", settings=s, calibrate=True),
        lambda s: tb.tune(MIXED, "y", settings=s, folds=2).model,
        lambda s: tb.tune(MIXED, "y", families=s["families"], smoothing=1, folds=2).model,
    ],
)
def test_every_door_takes_one_family_for_all(ask):
    assert ask({"families": "kernel", "smoothing": 2}).families["much"].name == "kernel"


def test_every_way_of_scoring_takes_one_family_for_all():
    for_all, by_name = {"families": "poisson"}, {"families": {"flag": "poisson", "much": "poisson", "size": "poisson"}}
    both = {"one": for_all, "two": by_name}
    for folds in (2, "leave-one-out"):
        one, two = (tb.cross_validate(MIXED, "y", folds=folds, settings=s, stratify=folds == 2) for s in both.values())
        assert one["log_loss"] == two["log_loss"]
    assert list(tb.cross_validate(MIXED, "y", folds=2, settings=both, stratify=True).names) == ["one", "two"]


def test_a_family_that_reads_no_column_is_refused():
    words = {"text": [["a"], ["b"], ["a", "b"]], "y": ["p", "q", "p"]}
    schema = tb.Schema([tb.Column("text", "bag")], target="y")
    with pytest.raises(tb.SettingsError, match=r"given for all columns.*text \(bag\)"):
        tb.count(words, schema).model({"families": "gaussian"})


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"families": "gausian"}, "did you mean 'gaussian'"),
        ({"families": {"size": "gausian"}}, "column 'size': there is no family 'gausian'"),
        ({"families": 3}, "there is no family 3"),
        ({"families": ["gaussian"]}, "there is no family"),
        ({"smoothing": "laplase"}, "did you mean 'laplace'"),
        ({"smoothing": True}, "is not a smoothing"),
        ({"smoothing": -1}, "alpha is -1"),
        ({"smoothing": {"size": None}}, "is not a smoothing"),
        ({"smoothign": 1}, "did you mean 'smoothing'"),
        ({"floor": 0.1}, "floor=0.1"),
        ({"weights": 2}, "give it by name"),
        ({"weights": {"size": "2"}}, "weight of column 'size' is '2'"),
        ({"corrections": 1}, "corrections=1"),
        (1, "settings=1"),
    ],
)
def test_what_is_no_setting_is_refused_when_it_is_given(given, said):
    with pytest.raises(tb.SettingsError) as refused:
        tb.Settings.of(given)
    assert said in str(refused.value)
    with pytest.raises(tb.SettingsError):
        tb.fit("no such file is ever opened", "y", settings=given)


def test_numbers_and_names_are_smoothings():
    assert tb.Settings(smoothing=1) == tb.Settings()
    assert tb.Settings(smoothing={"size": 0.5}).smoothing == {"size": tb.Laplace(0.5)}
    assert smoothing_of("maximum likelihood") == tb.MaximumLikelihood()
    assert smoothing_of("map:3") == tb.Laplace(2)
    assert TALLY.model({"smoothing": np.float64(3)}).settings.smoothing == tb.Laplace(3)


def test_map_is_the_peak_of_the_posterior():
    """Against the log posterior itself, on a grid: θ^(n + a − 1) · (1 − θ)^(m + b − 1)."""
    theta = np.linspace(0.001, 0.999, 999)
    for n, m, a, b in ((2, 1, 2, 2), (5, 0, 1.5, 4), (0, 3, 3, 1)):
        peak = theta[np.argmax((n + a - 1) * np.log(theta) + (m + b - 1) * np.log(1 - theta))]
        found = tb.MAP({"red": a, "blue": b}).probabilities(np.array([[n], [m]], float), ["red", "blue"], ["urn"], 3)
        assert found[0, 0] == pytest.approx(peak, abs=0.001)
    assert tb.MAP(1) == tb.Laplace(0) and tb.MAP() == tb.Laplace(1)
    for bad in (0.5, {"red": 0.2}, float("nan"), "2"):
        with pytest.raises(tb.SettingsError):
            tb.MAP(bad)


def test_numbers_that_are_zero_or_one_are_bernoulli():
    model = TALLY.model({"families": "bernoulli"})
    assert {n: f.name for n, f in model.families.items() if n != "sky"}["flag"] == "bernoulli"
    assert model.families["much"].name != "bernoulli" and model.families["sky"].name == "categorical"
    table = model.table("flag")
    assert table.rows == ["0", "1"]
    assert table["1", "q"] == (2 + 1) / (4 + 2) and table["1", "p"] == (1 + 1) / (4 + 2)
    asked = {**{n: MIXED[n][:1] for n in MIXED}, "flag": [2]}
    assert np.all(model.parts(asked)["flag"] == 0)  # never seen: no evidence
    same = tb.count({**MIXED, "flag": [str(v) for v in MIXED["flag"]]}, SCHEMA.with_column("flag", kind="category"))
    assert np.allclose(model.parts(MIXED)["flag"], same.model().parts(MIXED)["flag"], rtol=1e-14)


def test_a_column_of_which_only_zero_was_seen_has_two_values():
    only = {"flag": [0, 0, 0, 0], "y": ["p", "p", "q", "p"]}
    schema = SCHEMA._with(columns=[SCHEMA["flag"]])
    assert tb.count(only, schema).model({"families": "bernoulli"}).table("flag")["1", "p"] == 1 / 5


def test_other_numbers_cannot_be_bernoulli():
    with pytest.raises(tb.SettingsError, match="other than 0 and 1"):
        TALLY.model({"families": {"much": "bernoulli"}})


def test_auto_offers_bernoulli_for_zero_and_one():
    assert TALLY.model().families["flag"] == Bernoulli()
    assert not isinstance(TALLY.model().families["much"], Bernoulli)
    from tallybayes.families.base import Context
    from tallybayes.families.histogram import read_cells

    context = Context("flag", ("p", "q"), np.array([4.0, 4.0]), cells=SCHEMA["flag"].cells)
    h = read_cells(TALLY.columns["flag"], context, "auto")
    assert candidates(h)[0] == Bernoulli()
    left = [f.leave_one_out(h, TALLY.columns["flag"], context) for f in (Bernoulli(), Levels())]
    assert all(np.allclose(a, b) for a, b in zip(*left, strict=True))
