"""A sequence of texts is one column of texts to NaiveBayes; what is no parameter is refused when fitting."""

import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import tallybayes as tb
from tallybayes.sklearn import BernoulliNB, GaussianNB, MultinomialNB, NaiveBayes

TEXTS = [
    "win a prize now", "cheap pills now", "lunch at noon", "notes of the meeting", "win cheap pills", "a prize to win",
    "meeting at noon", "notes for lunch",
]  # fmt: skip
LABELS = ["spam", "spam", "ham", "ham", "spam", "spam", "ham", "ham"]
SEQUENCES = {
    "tuple": tuple,
    "object array": lambda t: np.array(t, dtype=object),
    "array of texts": np.array,
    "new strings": lambda t: np.array(t, dtype=np.dtypes.StringDType()),
    "pandas": pd.Series,
    "pandas objects": lambda t: pd.Series(t, dtype=object, index=range(5, 5 + len(t))),
    "pandas strings": lambda t: pd.Series(t, dtype="string"),
    "pandas categories": lambda t: pd.Series(t, dtype="category"),
    "polars": pl.Series,
    "polars categories": lambda t: pl.Series(t, dtype=pl.Categorical),
    "arrow": pa.array,
    "arrow chunks": lambda t: pa.chunked_array([t[:3], t[3:]]),
    "arrow dictionary": lambda t: pa.array(t).dictionary_encode(),
    "arrow views": lambda t: pa.array(t, pa.string_view()),
}


def plain(**how):
    return NaiveBayes(calibration=None, **how)


@pytest.mark.parametrize("sequence", SEQUENCES.values(), ids=SEQUENCES)
def test_every_sequence_of_texts_is_the_same_column(sequence):
    known = plain().fit(pd.DataFrame({"text": TEXTS}), LABELS, None)
    frame = plain(schema=known.schema_.with_column("text", kind="text")).fit(pd.DataFrame({"text": TEXTS}), LABELS)
    found = plain().fit(sequence(TEXTS), LABELS)
    assert found.schema_["text"].kind == "text"
    assert found.n_features_in_ == 1
    assert found.tally_ == frame.tally_
    asked = ["cheap prize", "noon"]
    assert np.array_equal(found.predict_proba(sequence([*asked, *asked])), frame.predict_proba(asked * 2))


def test_words_that_repeat_or_never_do_are_texts_too():
    for texts in (["spam", "ham"] * 4, [f"word{i}" for i in range(8)]):
        assert plain().fit(texts, LABELS).schema_["text"].kind == "text"


def test_missing_texts_are_no_evidence():
    model = plain().fit([*TEXTS, None, float("nan")], [*LABELS, "ham", "spam"])
    prior = np.exp(model.model_.log_prior)
    assert np.allclose(model.predict_proba([None, None]), prior)
    assert np.allclose(model.predict_proba(pd.Series(["win", None]))[1], prior)


def test_counting_goes_on_and_back_with_texts():
    parts = plain()
    for i in range(0, 8, 2):
        parts.partial_fit(TEXTS[i : i + 2], LABELS[i : i + 2])
    whole = plain().fit(TEXTS, LABELS)
    assert parts.tally_ == whole.tally_
    assert parts.forget(TEXTS[:2], LABELS[:2]).tally_ == plain().fit(TEXTS[2:], LABELS[2:]).tally_
    assert pickle.loads(pickle.dumps(whole)).predict(["win"]).tolist() == ["spam"]
    assert "text: win" in str(whole.explain(["win"])[0])


def test_texts_go_through_pipelines_and_searches():
    assert cross_val_score(make_pipeline(plain()), TEXTS, LABELS, cv=2).mean() == 1.0
    grid = {"smoothing": [0.1, 1.0], "families": [None, {"text": "bernoulli"}]}
    assert GridSearchCV(plain(), grid, cv=2).fit(pd.Series(TEXTS), LABELS).best_score_ == 1.0


def test_a_frame_of_one_column_can_be_asked_with_texts():
    schema = tb.Schema([tb.Column("review", "text")], target="y")
    by_frame = plain(schema=schema).fit(pd.DataFrame({"review": TEXTS}), LABELS)
    by_list = plain(schema=schema).fit(TEXTS, LABELS)
    assert by_list.tally_ == by_frame.tally_
    assert by_frame.predict(["win"]).tolist() == ["spam"]


@pytest.mark.parametrize("X", [["a", 1], [1.0, 2.0], [None, None], np.array([1, 2]), pd.Series([1, 2])])
def test_other_sequences_are_still_no_table(X):
    with pytest.raises(ValueError, match=r"Expected (2D array|a 2-dimensional)"):
        NaiveBayes().fit(X, ["x", "y"])


def test_one_text_is_no_sequence_of_texts():
    with pytest.raises(tb.DataError, match=r"one text[\s\S]*\[text\]"):
        plain().fit(TEXTS, LABELS).predict("win a prize")


FRAME = pd.DataFrame({"sky": ["sunny", "rainy"] * 4, "wind": np.arange(8.0)})


@pytest.mark.parametrize("calibration", ["auto", None])
@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"families": "gausian"}, "did you mean 'gaussian'"),
        ({"families": {"wint": "gaussian"}}, "did you mean 'wind'"),
        ({"families": {"sky": "gaussian"}}, "'sky' is a category"),
        ({"smoothing": {"wint": 1}}, "did you mean 'wind'"),
        ({"smoothing": "laplac"}, "did you mean 'laplace'"),
        ({"smoothing": None}, "smoothing=None"),
        ({"prior": "uniforn"}, "did you mean 'uniform'"),
        ({"prior": {"spam": 1.0}}, "nothing for 'ham'"),
        ({"prior": {"spam": "much", "ham": 1}}, "prior of 'spam' is 'much'"),
        ({"prior": ["much", "little"]}, "much"),
        ({"schema": {"sky": "category"}}, "tb.Schema"),
    ],
)
def test_what_is_no_parameter_is_refused_when_fitting(given, said, calibration):
    model = NaiveBayes(**given, calibration=calibration)  # scikit-learn's convention: nothing is looked at here
    with pytest.raises(ValueError, match=said) as caught:
        model.fit(FRAME, LABELS)
    assert isinstance(caught.value, tb.TallybayesError)
    assert caught.value.hint


@pytest.mark.parametrize(
    "model",
    [
        MultinomialNB(alpha="x"), MultinomialNB(alpha=None), MultinomialNB(class_prior="x"), GaussianNB(priors="x"),
        GaussianNB(var_smoothing="x"), BernoulliNB(binarize="x"),
    ],
)  # fmt: skip
def test_parameters_of_the_drop_in_estimators_are_refused_in_our_words(model):
    with pytest.raises(tb.SettingsError):
        model.fit([[1, 2], [2, 1]], ["a", "b"])


def test_many_classes_are_no_reason_to_warn():
    classes = np.arange(40)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        GaussianNB().fit(np.arange(160.0).reshape(80, 2), np.tile(classes, 2))
        GaussianNB().partial_fit([[1.0, 2.0]], [1], classes=classes)
        plain().fit([f"word{c}" for c in classes] * 2, np.tile(classes, 2))
