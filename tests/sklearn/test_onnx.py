"""Pipelines with our estimators become ONNX by skl2onnx, and onnxruntime answers as they do."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, OrdinalEncoder, StandardScaler

import tallybayes as tb
from tallybayes.sklearn import (
    BernoulliNB,
    CategoricalNB,
    ComplementNB,
    GaussianNB,
    MultinomialNB,
    NaiveBayes,
    register_onnx,
)

skl2onnx = pytest.importorskip("skl2onnx", reason="skl2onnx is not installed: pip install 'tallybayes[skl2onnx]'")
runtime = pytest.importorskip("onnxruntime")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")  # of its neighbours
TEXTS = ["win a prize now", "cheap pills now", "lunch at noon", "notes of the meeting", "a prize to win", "lunch notes"]
KINDS = np.array(["spam", "spam", "ham", "ham", "spam", "ham"])


@pytest.fixture(autouse=True)
def registered() -> None:
    register_onnx()


def numbers(rows: int = 90) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, rows)
    return rng.gamma(2.0 + y[:, None], 2.0, (rows, 5)), np.array(["ant", "bee", "cow"])[y]


def answered(pipeline: Any, X: Any, example: Any = None) -> tuple[Any, Any]:
    """Labels and probabilities of the converted pipeline."""
    example = X[:1] if example is None else example
    onnx = skl2onnx.to_onnx(pipeline, example, options={"zipmap": False})
    session = runtime.InferenceSession(onnx.SerializeToString(), providers=["CPUExecutionProvider"])
    if isinstance(X, pd.DataFrame):
        feed = {name: X[[name]].to_numpy() for name in X}
    else:
        feed = {session.get_inputs()[0].name: X}
    return session.run(["label", "probabilities"], feed)


def check(pipeline: Any, X: Any, near: float = 1e-10) -> None:
    labels, probabilities = answered(pipeline, X)
    assert labels.tolist() == pipeline.predict(X).tolist()
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(X), rtol=0, atol=near)


NUMBERS = [
    GaussianNB(), MultinomialNB(), ComplementNB(norm=True), BernoulliNB(binarize=0.4), NaiveBayes(),
    NaiveBayes(calibration=None),
]  # fmt: skip


@pytest.mark.parametrize("estimator", NUMBERS, ids=str)
def test_numbers_behind_a_scaler(estimator: Any) -> None:
    X, y = numbers()
    check(make_pipeline(MinMaxScaler(), estimator).fit(X, y), X)


def test_labels_of_whole_numbers_and_inputs_of_floats() -> None:
    X, y = numbers()
    number = np.unique(y, return_inverse=True)[1] * 10 - 10
    check(make_pipeline(StandardScaler(), GaussianNB()).fit(X, number), X)
    small = X.astype(np.float32)
    check(make_pipeline(StandardScaler(), GaussianNB()).fit(small, number), small, near=1e-5)
    assert answered(GaussianNB().fit(small, number > 0), small)[1].dtype == np.float32


def test_missing_numbers_are_no_evidence() -> None:
    X, y = numbers()
    X[::7, 2] = np.nan
    check(GaussianNB().fit(X, y), X)
    check(NaiveBayes(calibration=None).fit(X, y), X)


@pytest.mark.parametrize("alpha", [0.0, 0.5])
def test_what_is_impossible_stays_so(alpha: float) -> None:
    rng = np.random.default_rng(1)
    X = (rng.random((60, 8)) < 0.2).astype(np.float64)
    y = rng.integers(0, 3, 60)
    X[y == 1, 3] = 0
    with np.errstate(all="ignore"):
        for estimator in (MultinomialNB(alpha=alpha), BernoulliNB(alpha=alpha)):
            check(estimator.fit(X, y), X)


def test_categories_as_codes_and_codes_never_seen() -> None:
    rng = np.random.default_rng(2)
    codes = rng.integers(0, 6, (80, 3))
    y = np.where(codes[:, 0] + rng.integers(0, 3, 80) > 4, "high", "low")
    own = CategoricalNB().fit(codes, y)
    unseen = codes.copy()
    unseen[:5, 1] = 99
    check(own, unseen, near=1e-6)
    parts = codes.astype(np.float64)
    parts[::9, 0], parts[::5, 2] = np.nan, 2.5
    check(CategoricalNB().fit(parts, y), parts)


def frame(rows: int = 120) -> tuple[pd.DataFrame, np.ndarray]:
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, rows)
    data = pd.DataFrame({
        "city": rng.choice(["Bonn", "Köln", "Ulm"], rows), "size": rng.normal(y, 1.0),
        "rooms": rng.integers(1, 5, rows), "lift": rng.random(rows) < 0.4 + 0.3 * y, "other": rng.normal(size=rows),
    })  # fmt: skip
    return data, np.where(y, "yes", "no")


@pytest.mark.parametrize("calibration", [None, "auto"])
def test_a_frame_of_mixed_columns(calibration: Any) -> None:
    X, y = frame()
    own = NaiveBayes(calibration=calibration, kinds={"rooms": "category", "other": "ignore"}).fit(X, y)
    assert own.schema_["lift"].kind == "category"
    check(own, X, near=1e-6)  # the first column is text, and skl2onnx declares floats then
    lost = X.assign(city=["", "Rom"] * 60)  # missing, and never seen
    labels, _ = answered(own, lost, X[:1])
    assert labels.tolist() == own.predict(lost.replace("", None)).tolist()


def test_a_column_transformer_in_front() -> None:
    X, y = frame()
    encoder = make_column_transformer((OrdinalEncoder(), ["city"]), ("passthrough", ["size", "other"]))
    X = X[["city", "size", "other"]]
    check(make_pipeline(encoder, NaiveBayes(calibration=None)).fit(X, y), X, 1e-6)


def test_texts_behind_a_vectoriser() -> None:
    pipeline = make_pipeline(CountVectorizer(lowercase=False), MultinomialNB()).fit(TEXTS, KINDS)
    asked = np.array(["cheap prize", "lunch at noon", "unheard of"]).reshape(-1, 1)
    labels, probabilities = answered(pipeline, asked)
    assert labels.tolist() == pipeline.predict(asked[:, 0]).tolist()
    np.testing.assert_allclose(probabilities, pipeline.predict_proba(asked[:, 0]), atol=1e-6)


def test_a_matrix_of_words_is_exported_by_the_library_as_well() -> None:
    X = np.random.default_rng(0).poisson(1.0, (40, 6))
    own = MultinomialNB().fit(X, KINDS[np.arange(40) % 6])
    session = runtime.InferenceSession(own.model_.export(format="onnx"), providers=["CPUExecutionProvider"])
    labels, probabilities = session.run(["label", "probabilities"], {"x": X.astype(np.float64)})
    assert labels.tolist() == own.predict(X).tolist()
    np.testing.assert_allclose(probabilities, own.predict_proba(X), rtol=0, atol=1e-12)


def test_refusals() -> None:
    X, y = numbers()
    with pytest.raises(tb.SettingsError, match=r"(?s)target_opset=15: GaussianNB needs 18.*target_opset=18"):
        skl2onnx.to_onnx(GaussianNB().fit(X, y), X[:1], target_opset=15)
    notes = pd.DataFrame({"note": TEXTS})
    texts = NaiveBayes(kinds={"note": "text"}).fit(notes, KINDS)
    with pytest.raises(tb.SettingsError, match="is a text, which ONNX has no standard operators for"):
        skl2onnx.to_onnx(texts, notes)
    with pytest.raises(tb.DataError, match=r"2 columns go into a GaussianNB of 5 features"):
        skl2onnx.to_onnx(GaussianNB().fit(X, y), X[:1, :2])


def test_without_skl2onnx_the_command_that_installs_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "skl2onnx", None)
    with pytest.raises(tb.MissingExtra, match=r"(?s)needs the package skl2onnx.*pip install 'tallybayes\[skl2onnx\]'"):
        register_onnx()
