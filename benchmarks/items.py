"""What is measured: each item is a function of a scale that returns a `Case`, tallybayes beside its peer."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import scipy.sparse
from sklearn.compose import ColumnTransformer
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import CategoricalNB, GaussianNB, MultinomialNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KBinsDiscretizer, OrdinalEncoder

import tallybayes as tb

FOLDER = os.environ.get("TALLYBAYES_DATA") or pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"


@dataclass(frozen=True)
class Case:
    """Two ways to the same answer, whether they agree, and the bytes that any way must read at least once."""

    ours: Callable[[], Any]
    theirs: Callable[[], Any]
    agree: Callable[[], bool]
    reads: Sequence[np.ndarray] = ()  # the arrays that hold the data
    tally: Callable[[], tb.Tally] | None = None  # what fast path and reference must agree on bit for bit


@dataclass(frozen=True)
class Item:
    name: str
    target: float  # how many times faster than the peer it is meant to be
    peer: str
    make: Callable[[float], Case]
    within: float | None = None  # seconds, where that is what was meant
    processor: bool = False  # measured by the time of the processor, all threads together


def _rows(full: int, scale: float) -> int:
    return max(int(full * scale), 40)


def _vectors(rows: int, width: int, classes: int) -> tuple[np.ndarray, np.ndarray, tb.Schema]:
    rng = np.random.default_rng(1)
    y = rng.integers(0, classes, rows)
    x = rng.normal(size=(rows, width)) + 0.1 * y[:, None]
    return x, y, tb.Schema([tb.Column("x", "vector", width=width)], target="y", label_type="int")


def gaussian_fit(rows: int, width: int, classes: int) -> Callable[[float], Case]:
    def make(scale: float) -> Case:
        x, y, schema = _vectors(_rows(rows, scale), width, classes)

        def agree() -> bool:
            ours, theirs = tb.count(x, schema, y).model(), GaussianNB(var_smoothing=0).fit(x, y)
            belief = ours.beliefs["x"]
            return np.allclose(belief.location.T, theirs.theta_) and np.allclose(belief.scale.T**2, theirs.var_)

        return Case(
            lambda: tb.count(x, schema, y).model(),
            lambda: GaussianNB().fit(x, y),
            agree,
            [x],
            lambda: tb.count(x, schema, y),
        )

    return make


def gaussian_predict(rows: int, width: int, classes: int) -> Callable[[float], Case]:
    def make(scale: float) -> Case:
        x, y, schema = _vectors(_rows(rows, scale), width, classes)
        ours, theirs = tb.count(x, schema, y).model(), GaussianNB(var_smoothing=0).fit(x, y)
        return Case(
            lambda: ours.predict(x),
            lambda: theirs.predict(x),
            lambda: np.mean(ours.predict(x) == theirs.predict(x)) > 0.9999,
            [x],
        )

    return make


def _codes(scale: float) -> tuple[np.ndarray, np.ndarray, tb.Schema]:
    rng = np.random.default_rng(2)
    rows = _rows(1_000_000, scale)
    y = rng.integers(0, 5, rows)
    x = (rng.integers(0, 10, (rows, 20)) + y[:, None] * (rng.random((rows, 20)) < 0.2)) % 10
    x[:10] = np.arange(10)[:, None]  # every value is there at any size, as the peer wants it
    columns = [tb.Column(f"x{j}", "category") for j in range(20)]
    return x, y, tb.Schema(columns, target="y", label_type="int")


def codes_fit(scale: float) -> Case:
    x, y, schema = _codes(scale)

    def agree() -> bool:
        ours, theirs = tb.count(x, schema, y).model(), CategoricalNB().fit(x, y)
        tables = (np.log(ours.beliefs[f"x{j}"].probabilities.T) for j in range(20))
        return all(np.allclose(mine, yours) for mine, yours in zip(tables, theirs.feature_log_prob_, strict=True))

    return Case(
        lambda: tb.count(x, schema, y).model(),
        lambda: CategoricalNB().fit(x, y),
        agree,
        [x],
        lambda: tb.count(x, schema, y),
    )


def codes_predict(scale: float) -> Case:
    x, y, schema = _codes(scale)
    ours, theirs = tb.count(x, schema, y).model(), CategoricalNB().fit(x, y)
    return Case(
        lambda: ours.predict(x),
        lambda: theirs.predict(x),
        lambda: np.mean(ours.predict(x) == theirs.predict(x)) > 0.999,
        [x],
    )


def _strings(scale: float) -> tuple[pd.DataFrame, tb.Schema]:
    rng = np.random.default_rng(3)
    rows = _rows(1_000_000, scale)
    words = np.array([f"value {i}" for i in range(12)])
    frame = pd.DataFrame({f"c{j}": words[rng.integers(0, 12, rows)] for j in range(10)})
    frame["y"] = rng.choice(["a", "b", "c"], rows)
    return frame, tb.Schema([tb.Column(f"c{j}", "category") for j in range(10)], target="y")


def _buffers(frame: pd.DataFrame) -> list[np.ndarray]:
    """The bytes of a frame as Arrow holds them."""
    columns = pa.Table.from_pandas(frame, preserve_index=False).columns
    found = [b for column in columns for chunk in column.chunks for b in chunk.buffers() if b is not None]
    return [np.frombuffer(b, dtype=np.int64, count=b.size // 8) for b in found]


def strings_fit(scale: float) -> Case:
    frame, schema = _strings(scale)
    x, y = frame.drop(columns="y"), frame["y"]

    def agree() -> bool:
        ours = tb.count(frame, schema).model()
        theirs = CategoricalNB().fit(OrdinalEncoder().fit_transform(x), y)
        tables = (np.log(ours.beliefs[f"c{j}"].probabilities.T) for j in range(10))
        return all(np.allclose(mine, yours) for mine, yours in zip(tables, theirs.feature_log_prob_, strict=True))

    return Case(
        lambda: tb.count(frame, schema).model(),
        lambda: CategoricalNB().fit(OrdinalEncoder().fit_transform(x), y),
        agree,
        _buffers(frame),
        lambda: tb.count(frame, schema),
    )


def mixed(scale: float) -> tuple[pd.DataFrame, Callable[[], Any]]:
    """Eight columns of texts, eight of numbers, 5 % missing, the label `y`; and the peer's fit of it."""
    rng = np.random.default_rng(4)
    rows = _rows(500_000, scale)
    frame, _ = _strings(rows / 1_000_000)
    frame = frame.iloc[:, :8]
    y = rng.choice(["a", "b", "c"], rows)
    for j in range(8):
        frame[f"n{j}"] = rng.normal(size=rows) + j * (y == "a")
    frame = frame.mask(rng.random(frame.shape) < 0.05)
    words, numbers = list(frame.columns[:8]), list(frame.columns[8:])
    codes = make_pipeline(SimpleImputer(strategy="most_frequent"), OrdinalEncoder())
    bins = make_pipeline(
        SimpleImputer(), KBinsDiscretizer(10, encode="ordinal", quantile_method="averaged_inverted_cdf")
    )

    def theirs() -> Any:
        return make_pipeline(ColumnTransformer([("c", codes, words), ("n", bins, numbers)]), CategoricalNB()).fit(
            frame, y
        )

    return frame.assign(y=y), theirs


def mixed_fit(scale: float) -> Case:
    table, theirs = mixed(scale)
    schema = tb.infer(table, "y")

    def agree() -> bool:
        model = tb.fit(table, "y", calibrate=False)
        head, y = table[:1000].drop(columns="y"), table["y"][:1000]
        # The bins are not the same: the two are right about equally often
        apart = np.mean(model.predict(head) == y) - np.mean(theirs().predict(head) == y)
        return bool(model.tally.rows == len(table) and apart > -0.05)

    return Case(
        lambda: tb.fit(table, "y", calibrate=False), theirs, agree, _buffers(table), lambda: tb.count(table, schema)
    )


def _sparse(scale: float) -> tuple[Any, np.ndarray, tb.Schema]:
    rng = np.random.default_rng(5)
    rows, width, each = _rows(100_000, scale), max(int(50_000 * scale), 500), 100
    indices = rng.integers(0, width, (rows, each))
    data = rng.integers(1, 4, rows * each).astype(float)
    x = scipy.sparse.csr_matrix((data, indices.ravel(), np.arange(0, rows * each + 1, each)), shape=(rows, width))
    x.sum_duplicates()
    y = rng.integers(0, 20, rows)
    return x, y, tb.Schema([tb.Column("x", "bag", width=width)], target="y", label_type="int")


def sparse_fit(scale: float) -> Case:
    x, y, schema = _sparse(scale)

    def agree() -> bool:
        ours, theirs = tb.count(x, schema, y).model(), MultinomialNB().fit(x, y)
        belief = ours.beliefs["x"]
        at = np.argsort([int(w) for w in belief.words])
        return np.allclose(np.log(belief.probabilities[at].T), theirs.feature_log_prob_)

    return Case(
        lambda: tb.count(x, schema, y).model(),
        lambda: MultinomialNB().fit(x, y),
        agree,
        [x.data, x.indices],
        lambda: tb.count(x, schema, y),
    )


def sparse_predict(scale: float) -> Case:
    x, y, schema = _sparse(scale)
    ours, theirs = tb.count(x, schema, y).model(), MultinomialNB().fit(x, y)
    return Case(
        lambda: ours.predict(x),
        lambda: theirs.predict(x),
        lambda: np.mean(ours.predict(x) == theirs.predict(x)) > 0.999,
        [x.data, x.indices],
    )


def texts(rows: int) -> tuple[list[str], list[str]]:
    """Some messages of 20 Newsgroups with their groups, or made ones where those are not at hand."""
    if (path := pathlib.Path(FOLDER) / "newsgroups20.parquet").exists():
        table = pq.read_table(path, columns=["text", "target"])
        step = max(len(table) // rows, 1)
        return table["text"].to_pylist()[::step][:rows], table["target"].to_pylist()[::step][:rows]
    rng = np.random.default_rng(7)
    words = np.array([f"w{i}x" for i in range(20_000)])
    y = rng.integers(0, 20, rows)
    return [" ".join(words[(rng.zipf(1.3, 150) * (1 + c % 3)) % len(words)]) for c in y], [f"group {c}" for c in y]


def grid_of_smoothings(scale: float) -> Case:
    """Ten folds × twenty smoothings of one counted matrix; every row of 20 Newsgroups at scale 8."""
    given, y = texts(max(int(2350 * scale), 600))  # every group in every fold
    x = CountVectorizer().fit_transform(given).astype(np.float64)
    alphas = np.geomspace(0.001, 1.0, 20)
    schema = tb.Schema([tb.Column("x", "bag", width=x.shape[1])], target="y")
    settings = [tb.Settings(smoothing=tb.Laplace(float(a))) for a in alphas]

    def ours() -> float:
        found = tb.cross_validate(x, schema, y, settings=settings, stratify=True)
        return max(float(np.mean(found.forecasts[n][0].argmax(axis=1) == found.labels)) for n in found.names)

    def theirs() -> float:
        tried = GridSearchCV(MultinomialNB(), {"alpha": alphas}, cv=10, refit=False).fit(x, y)
        return float(tried.cv_results_["mean_test_score"].max())

    return Case(ours, theirs, lambda: abs(ours() - theirs()) < 0.05, [x.data, x.indices])


def one_row_of_numbers(scale: float) -> Case:
    x, y, schema = _vectors(_rows(10_000, scale), 30, 2)
    ours, theirs = tb.count(x, schema, y).model(), GaussianNB(var_smoothing=0).fit(x, y)
    row = x[:1]
    return Case(
        lambda: ours.predict_proba(row),
        lambda: theirs.predict_proba(row),
        lambda: np.allclose(ours.predict_proba(row), theirs.predict_proba(row)),
    )


def one_row_of_strings(scale: float) -> Case:
    frame, schema = _strings(0.01 * max(scale, 0.02))
    ours = tb.count(frame, schema).model()
    x = frame.drop(columns="y")
    theirs = make_pipeline(OrdinalEncoder(), CategoricalNB()).fit(x, frame["y"])
    row = x.iloc[0].to_dict()
    return Case(
        lambda: ours.predict_proba(row),
        lambda: theirs.predict_proba(pd.DataFrame([row])),
        lambda: np.allclose(ours.predict_proba(row), theirs.predict_proba(pd.DataFrame([row]))),
    )


def one_row_learnt(forget: bool) -> Callable[[float], Case]:
    """One row in a model of 100,000 words; there is no peer that forgets, so the whole tally is beside it.

    One is learnt and another forgotten that was counted with all others: to forget what has just been learnt is easy.
    """

    def make(scale: float) -> Case:
        rng = np.random.default_rng(6)
        words = np.array([f"w{i}x" for i in range(max(int(100_000 * scale), 500))])
        rows = max(len(words) // 20, 50)
        table = {"t": [" ".join(rng.choice(words, 40)) for _ in range(rows)], "y": rng.choice(["a", "b"], rows)}
        model = tb.count(table, tb.Schema([tb.Column("t", "text")], target="y")).model()
        row, old = {"t": " ".join(rng.choice(words, 40)), "y": "a"}, {k: str(v[0]) for k, v in table.items()}
        model.update(row).forget(old)  # the base is indexed once

        def agree() -> bool:
            return model.update(row).forget(old).tally == model.tally.update([row]).forget([old])

        if forget:
            return Case(
                lambda: model.update(row).forget(old),
                lambda: model.tally.update([row]).forget([old]).model(),
                agree,
            )
        return Case(lambda: model.update(row), lambda: model.tally.update([row]).model(), agree)

    return make


ITEMS = [
    Item("Gaussian fit, 1 M × 30, 2 classes", 5, "GaussianNB", gaussian_fit(1_000_000, 30, 2)),
    Item("Gaussian fit, 1 M × 30, 10 classes", 4, "GaussianNB", gaussian_fit(1_000_000, 30, 10)),
    Item("Gaussian fit, 200 k × 200, 10 classes", 5, "GaussianNB", gaussian_fit(200_000, 200, 10)),
    Item("Gaussian predict, 1 M × 30, 2 classes", 20, "GaussianNB", gaussian_predict(1_000_000, 30, 2)),
    Item("Gaussian predict, 1 M × 30, 10 classes", 20, "GaussianNB", gaussian_predict(1_000_000, 30, 10)),
    Item("Gaussian predict, 200 k × 200, 10 classes", 20, "GaussianNB", gaussian_predict(200_000, 200, 10)),
    Item("categorical fit, codes 1 M × 20", 20, "CategoricalNB", codes_fit),
    Item("categorical predict, codes 1 M × 20", 10, "CategoricalNB", codes_predict),
    Item("categorical fit, strings 1 M × 10", 25, "OrdinalEncoder + CategoricalNB", strings_fit),
    Item("mixed table 500 k × (8 + 8), 5 % missing, fit", 10, "imputers + bins + CategoricalNB", mixed_fit),
    Item("multinomial fit, sparse 100 k × 50 k", 5, "MultinomialNB", sparse_fit),
    Item("multinomial predict, sparse 100 k × 50 k", 1.5, "MultinomialNB", sparse_predict),
    Item("10 folds × 20 smoothings, newsgroups as a matrix", 30, "GridSearchCV", grid_of_smoothings),
    Item("one row of 30 numbers", 5, "GaussianNB", one_row_of_numbers),
    Item("one row of 10 strings, a dict", 50, "OrdinalEncoder + CategoricalNB", one_row_of_strings),
    Item("update one row, 100 k words", 1, "the whole tally", one_row_learnt(False), 100e-6),
    Item("update and forget one row, 100 k words", 1, "the whole tally", one_row_learnt(True), 100e-6),
]
