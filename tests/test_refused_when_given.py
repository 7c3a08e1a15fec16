"""What is no family, smoothing, prior, weight or number of folds is refused when it is given, and says what can be."""

import pytest

import tallybayes as tb

ROWS = {"sky": ["sunny", "rainy"] * 8, "wind": [3.5, 12.0, 4.0, 11.0] * 4, "play": ["yes", "no", "no", "yes"] * 4}
SCHEMA = tb.Schema([tb.Column("sky", "category"), tb.Column("wind", "number")], target="play")
GIVEN = [
    (lambda: tb.Laplace("a"), "alpha is 'a'"),
    (lambda: tb.Dirichlet(3), r"Dirichlet\(3\)"),
    (lambda: tb.Dirichlet({"a": "b"}), "no number"),
    (lambda: tb.Beta("a", 1), r"Beta\('a', 1\)"),
    (lambda: tb.JelinekMercer("a"), "weight is 'a'"),
    (lambda: tb.AbsoluteDiscount("a"), "discount is 'a'"),
    (lambda: tb.BackOff("a"), "rows is 'a'"),
    (lambda: tb.Floor("column", "a"), "share 'a'"),
    (lambda: tb.families.Bins("frequency", "x"), "number 'x'"),
    (lambda: tb.families.Selection(top="x"), "top='x'"),
    (lambda: tb.Schema("ab"), "'a' among the columns"),
    (lambda: tb.Settings(prior={"yes": "much", "no": 1}), "prior of 'yes' is 'much'"),
    (lambda: tb.Settings(prior={"yes": 0.5, "no": 0.7}), "add up to 1.2"),
    (lambda: tb.Settings(prior={"yes": -1, "no": 2}), "prior of 'yes' is -1"),
    (lambda: tb.Settings(predictive="yes"), "predictive='yes'"),
    (lambda: tb.Settings(isotonic=3), "isotonic=3"),
    (lambda: tb.Settings(lead=3), "lead=3"),
    (lambda: tb.Settings(calibrated=3), "calibrated=3"),
    (lambda: tb.Settings(classes="yes"), "classes='yes'"),
    (lambda: tb.Settings.of({"families": {"wint": "gaussian"}}, SCHEMA), "did you mean 'wind'"),
    (lambda: tb.Settings.of({"weights": {"wint": 1}}, SCHEMA), "did you mean 'wind'"),
    (lambda: tb.Settings.of({"families": {"sky": "gaussian"}}, SCHEMA), "'sky' is a category"),
    (lambda: tb.JointDistribution.of(ROWS, ["sky"], "laplac"), "did you mean 'laplace'"),
]


@pytest.mark.parametrize(("call", "said"), GIVEN)
def test_a_constructor_refuses_what_it_cannot_be(call, said):
    with pytest.raises(tb.TallybayesError, match=said) as caught:
        call()
    assert caught.value.hint


class Unread:
    """Data that may not be looked at."""

    def __arrow_c_stream__(self, requested_schema=None):
        raise AssertionError("the data were read before the call was looked at")


CALLS = [
    (tb.fit, {"settings": {"families": "gausian"}}, "did you mean 'gaussian'"),
    (tb.fit, {"settings": {"smothing": 1}}, "did you mean 'smoothing'"),
    (tb.fit, {"calibrate": "isotonik"}, "did you mean 'isotonic'"),
    (tb.fit, {"pairs": [("sky",)]}, r"the pair \('sky',\)"),
    (tb.fit, {"pairs": "yes"}, "pairs='yes'"),
    (tb.fit, {"effort": "much"}, "effort='much'"),
    (tb.fit, {"missing": 7}, "missing=7"),
    (tb.fit, {"kinds": ["text"]}, "kinds=.'text'."),
    (tb.fit, {"schema": 3}, "schema=3"),
    (tb.textbook, {"smoothing": -1}, "alpha is -1"),
    (tb.textbook, {"prior": "uniforn"}, "did you mean 'uniform'"),
    (tb.cross_validate, {"folds": 1}, "folds=1"),
    (tb.cross_validate, {"repeats": "a"}, "repeats='a'"),
    (tb.cross_validate, {"seed": "x"}, "seed='x'"),
    (tb.cross_validate, {"settings": 3}, "settings=3"),
    (tb.cross_validate, {"settings": {"one": {"smothing": 1}}}, "did you mean 'smoothing'"),
    (tb.tune, {"prior": 3}, "prior=3"),
    (tb.tune, {"smoothing": ["laplac"]}, "did you mean 'laplace'"),
    (tb.tune, {"folds": 0}, "folds=0"),
    (tb.compare, {"settings": {"prior": "x"}}, "prior='x'"),
    (tb.learning_curve, {"metrics": "accurracy"}, "did you mean 'accuracy'"),
    (tb.validation_curve, {"settings": {"unseen": "x"}}, "unseen='x'"),
    (tb.split, {"shares": "ab"}, "shares of 'ab'"),
]


@pytest.mark.parametrize(("verb", "given", "said"), CALLS)
def test_a_verb_refuses_what_it_is_given_before_it_reads_the_data(verb, given, said):
    with pytest.raises(tb.TallybayesError, match=said) as caught:
        verb(Unread(), "play", **given)
    assert caught.value.hint


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: tb.fit(ROWS, "play", weights=3), "3 as weights"),
        (lambda: tb.fit(ROWS, "play", settings={"families": {"wint": "bins"}}), "did you mean 'wind'"),
        (lambda: tb.tune(ROWS, "play", families=7), "no family 7"),
        (lambda: tb.tune(ROWS, "play", families={"wind": 7}), "no family 7"),
        (lambda: tb.validation_curve(ROWS, "play", values=["a"]), "alpha cannot be 'a'"),
        (lambda: tb.validation_curve(ROWS, "play", column="wint"), "did you mean 'wind'"),
        (lambda: tb.cross_validate(ROWS, SCHEMA, settings={"families": {"wint": "bins"}}), "did you mean 'wind'"),
    ],
)
def test_what_only_the_data_show_is_refused_in_our_words(call, said):
    with pytest.raises(tb.TallybayesError, match=said):
        call()
