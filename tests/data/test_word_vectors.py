"""Texts as points, against scikit-learn's vectorisers."""

import numpy as np
import pytest
from sklearn.feature_extraction.text import CountVectorizer, TfidfVectorizer

import tallybayes as tb

TEXTS = ["I am spam. Spam I am.", "Do you like perceptrons?", "", "you like spam, you do", "naïve Bayes likes spam"]
ASKED = ["spam for you and me", "nothing of it"]
WORDS = tb.Tokeniser(pattern=r"\w+")


@pytest.mark.parametrize("norm", ["l2", "l1", None])
@pytest.mark.parametrize("weighting", ["tf-idf", "counts", "presence"])
def test_points_are_those_of_scikit_learn(weighting, norm):
    ours = tb.WordVectors.of(TEXTS, weighting=weighting, norm=norm, tokeniser=WORDS)
    theirs = TfidfVectorizer(
        token_pattern=r"\w+", smooth_idf=False, norm=norm, use_idf=weighting == "tf-idf", binary=weighting == "presence"
    ).fit(TEXTS)
    assert list(ours.words) == theirs.get_feature_names_out().tolist()
    for texts in (TEXTS, ASKED):
        assert np.allclose(ours.matrix(texts).toarray(), theirs.transform(texts).toarray(), atol=1e-12)


def test_the_lectures_spam_message():
    counts = tb.WordVectors.of(TEXTS[:1] + TEXTS[1:2], weighting="counts", norm=None, tokeniser=WORDS)
    both = counts.matrix([" ".join(TEXTS[:2])]).toarray()[0]
    assert sorted(both.tolist()) == [1, 1, 1, 1, 2, 2, 2] and both.sum() == 10
    expected = CountVectorizer(token_pattern=r"\w+").fit_transform([" ".join(TEXTS[:2])]).toarray()[0]
    assert sorted(expected.tolist()) == sorted(both.tolist())


def test_points_are_rows_for_a_model_and_for_neighbours():
    y = ["spam", "ham", "ham", "spam", "spam"]
    vectors = tb.WordVectors.of(TEXTS, tokeniser=WORDS)
    x = vectors.matrix(TEXTS)
    assert np.allclose(np.sqrt(x.multiply(x).sum(axis=1)), [1, 1, 0, 1, 1])
    assert tb.textbook(x, y).predict(vectors.matrix(["spam I am"])).tolist() == ["spam"]
    near = tb.Nearest(k=1, scaled=False).fit(x.toarray(), y)
    assert near.near(vectors.matrix(["do perceptrons"]).toarray())[0].row == 1


def test_no_texts_and_no_words():
    assert tb.WordVectors.of([]).words == () and tb.WordVectors.of(["", "?"]).matrix(["a b"]).shape == (1, 0)
    assert tb.WordVectors.of(TEXTS).matrix([]).shape[0] == 0


@pytest.mark.parametrize("bad", [{"weighting": "tfidf"}, {"norm": "max"}])
def test_what_is_unknown_is_refused(bad):
    with pytest.raises(tb.SettingsError):
        tb.WordVectors.of(TEXTS, **bad)
    with pytest.raises(tb.DataError, match="one text"):
        tb.WordVectors.of("a text")
