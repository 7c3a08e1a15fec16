"""The default is the same model, to the last bit, whatever the order of the rows.

Two shuffles of every kind of table in a normal run; with TALLYBAYES_TESTS=all ten, and those of the shared tables.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from shared_data import shared

import tallybayes as tb
from tallybayes.store.model_file import to_bytes

pytestmark = pytest.mark.usefixtures("one_road")

FULL = os.environ.get("TALLYBAYES_TESTS") == "all"
SHUFFLES = 10 if FULL else 2


def holes(rng: np.random.Generator, values: np.ndarray, share: float = 0.1) -> np.ndarray:
    """With some of the values missing."""
    return np.where(rng.random(len(values)) < share, None, values.astype(object))


def categories(rng: np.random.Generator) -> pd.DataFrame:
    """Values of very different numbers, some missing, three classes, most rows several times."""
    n = 240
    a, b = rng.integers(0, 3, n), rng.choice(12, n, p=np.arange(1, 13) / 78)
    y = (a + (b > 8) + (rng.random(n) < 0.2)) % 3
    names = np.array([f"value {i}" for i in range(12)])
    return pd.DataFrame({"a": holes(rng, names[a]), "b": names[b], "c": rng.integers(0, 2, n) == 1, "y": names[y]})


def numbers(rng: np.random.Generator) -> pd.DataFrame:
    """Ties, a skewed column, far values, a constant, some missing."""
    n = 260
    y = rng.integers(0, 2, n)
    x = rng.normal(y, 1.0)
    x[rng.random(n) < 0.1] = np.nan
    return pd.DataFrame(
        {
            "x": x,
            "tied": rng.poisson(2 + y),
            "skewed": np.exp(rng.normal(y, 2.0)),
            "far": np.where(rng.random(n) < 0.02, 1e12, rng.normal(size=n)),
            "same": 1.5,
            "y": np.where(y == 1, "yes", "no"),
        }
    )


def products(rng: np.random.Generator) -> pd.DataFrame:
    """Columns that say something only together, so that pairs are taken."""
    n = 500
    a, b = rng.integers(0, 4, n), rng.integers(0, 4, n)
    x = rng.normal(size=n).round(1)
    y = np.where(rng.random(n) < 0.1, (x > 0).astype(int), (a + b) % 2)
    return pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "x": x, "y": y.astype(str)})


def doubled(rng: np.random.Generator) -> pd.DataFrame:
    """Rows of many measurements, a third of them written twice."""
    n = 150
    y = rng.integers(0, 3, n)
    frame = pd.DataFrame({f"x{j}": rng.normal(y * (j == 0), 1.0) for j in range(5)})
    frame["kind"] = rng.choice(["p", "q"], n)
    frame["y"] = y.astype(str)
    return pd.concat([frame, frame.iloc[: n // 3]], ignore_index=True)


def weighted(rng: np.random.Generator) -> pd.DataFrame:
    """Rows with weights of their own, equal rows with different ones among them."""
    n = 200
    y = rng.integers(0, 2, n)
    frame = pd.DataFrame({"x": rng.normal(y, 1.0).round(1), "c": rng.integers(0, 4, n).astype(str)})
    return frame.assign(w=rng.choice([0.3, 1.0, 2.7], n), y=y.astype(str))


def texts(rng: np.random.Generator) -> pd.DataFrame:
    """Words beside a number and a category."""
    n = 160
    y = rng.integers(0, 2, n)
    words = np.array(["river", "water", "boat", "house", "garden", "stone", "letter", "window", "bread", "morning"])
    rows = [words[(rng.integers(0, 6, rng.integers(3, 12)) + 4 * v) % 10] for v in y]
    note = [" ".join(row) + f" and number {rng.integers(0, 900)}" for row in rows]
    kind = holes(rng, rng.choice(np.array(["p", "q"]), n))
    return pd.DataFrame({"note": note, "x": rng.normal(y, 2.0), "kind": kind, "y": np.where(y == 1, "spam", "ham")})


def digest(model: tb.Model) -> bytes:
    """That of the file: what it says, in whatever order its rows are stored."""
    return pq.read_metadata(pa.BufferReader(to_bytes(model))).metadata[b"tallybayes.digest"]


def same(left: tb.Model, right: tb.Model, rows: pd.DataFrame) -> None:
    """What was chosen, what was counted, what a file would hold and what is answered."""
    assert left.settings == right.settings
    assert left.schema == right.schema
    assert left.tally.digest == right.tally.digest  # type: ignore[union-attr]
    assert digest(left) == digest(right)
    assert np.array_equal(left.predict_proba(rows), right.predict_proba(rows))


def shuffled(frame: pd.DataFrame, **how: Any) -> None:
    """One model of every shuffle of a table; the order of its file is no shuffle, as neighbours may belong together."""
    rng = np.random.default_rng(17)
    each = [frame.iloc[rng.permutation(len(frame))].reset_index(drop=True) for _ in range(SHUFFLES)]
    first, *others = [tb.fit(rows, **how) for rows in each]
    assert first.settings.calibrated is not None
    for other in others:
        same(first, other, frame)


@pytest.mark.parametrize("make", [categories, numbers, products, doubled, texts], ids=lambda make: make.__name__)
def test_shuffles_give_one_model(make: Callable[[np.random.Generator], pd.DataFrame]) -> None:
    shuffled(make(np.random.default_rng(23)), target="y")


def test_shuffles_with_weights_give_one_model() -> None:
    shuffled(weighted(np.random.default_rng(23)), target="y", weights="w")


@pytest.mark.skipif(not FULL, reason="minutes: TALLYBAYES_TESTS=all runs the shuffles of shared tables")
@pytest.mark.parametrize("name", ["titanic3", "glass", "balance_scale"])
def test_shuffles_of_shared_tables_give_one_model(name: str) -> None:
    frame = shared(name).drop(columns=["name", "ticket", "boat", "body"], errors="ignore")
    shuffled(frame, target="survived" if name == "titanic3" else "target")
