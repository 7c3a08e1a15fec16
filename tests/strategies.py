"""Small tables of every kind, for Hypothesis: the generators are meant to be nasty.

Algebird's moments were no group for years because its generators were tame. So the numbers here are huge, subnormal,
negative zero, whole past 2^53 and of mixed exponents, the categories mix types, and every column may be missing.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st

import tallybayes as tb

ALL = os.environ.get("TALLYBAYES_TESTS") == "all"


def examples(n: int) -> settings:
    """`n` examples, always the same ones; with TALLYBAYES_TESTS=all twenty times as many, and new ones every time."""
    return settings(
        max_examples=20 * n if ALL else n,
        deadline=None,
        derandomize=not ALL,
        database=None,
        phases=[p for p in Phase if ALL or p is not Phase.shrink],  # shrinking a table of every kind takes minutes
        suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    )


# ---- values

WORDS = (
    "a",
    "b",
    "A",
    "",
    " ",
    "ß",
    "naïve",
    "日本",
    "👩‍🔬",
    "e\u0301",
    "\u00e9",
    "0",
    "-1",
    "true",
    "nan",
    "x\x00y",
    "'\"\\",
)
texts = st.sampled_from(WORDS) | st.text(alphabet="abZ \t,ñ٣𝒳\u200f", max_size=4)
categories = st.one_of(
    st.none(),
    st.just(math.nan),
    st.booleans(),
    st.integers(-2, 3),
    st.integers(2**53 - 1, 2**64),
    st.sampled_from([0.5, -0.0, 1.0, 1e16, 1e300]),
    texts,
)

SPECIAL = (
    0.0, -0.0, 1.0, -1.0, 0.1, 1 / 3, 1e300, -1e300, 1.7976931348623157e308, 5e-324, -5e-324, 2.2250738585072014e-308,
    2.0**53 + 2, -(2.0**60), 1e16, 1e-300, 999999999999.0, 1 + 2.0**-52,
)  # fmt: skip
finite = st.sampled_from(SPECIAL) | st.floats(allow_nan=False, allow_infinity=False) | st.floats(-3, 3)
numbers = st.one_of(st.none(), st.just(math.nan), finite, st.integers(-3, 5), st.integers(2**53 - 2, 2**53 + 9))
vectors = st.none() | st.lists(finite | st.none() | st.just(math.nan), min_size=3, max_size=3)
amounts = st.sampled_from([0, 1, 2, 3, 0.5, 0.1, 1e-6, 2.0**-40, 1e9, 2**53]) | st.floats(0, 50)
word_lists = st.none() | st.lists(texts, max_size=5)
word_dicts = st.none() | st.dictionaries(texts, amounts, max_size=4)
matrix_rows = st.lists(amounts, min_size=4, max_size=4)
weights = st.sampled_from([0, 0, 1, 1, 2, 0.5, 0.25, 1 / 3, 0.001, 3.7, 1e6]) | st.floats(0.01, 100)
labels = {
    "text": st.sampled_from(["no", "yes", "ünd", None]),
    "int": st.sampled_from([0, 1, 7, -3, None]),
    "bool": st.sampled_from([True, False, None]),
}


def _cells(seed: int) -> tb.Cells:
    rng = np.random.default_rng(seed)
    return tb.Cells.fitted(np.concatenate([rng.normal(0, 1, 300), np.zeros(20), np.full(15, 1.0)]))


# ---- columns: a kind may come in several forms

FORMS: dict[str, tuple[tb.Column, st.SearchStrategy[Any]]] = {
    "category": (tb.Column("category", "category"), categories),
    "number": (tb.Column("number", "number", cells=_cells(1)), numbers),
    "moments": (tb.Column("moments", "number"), numbers),
    "vector": (tb.Column("vector", "vector", width=3), vectors),
    "array": (tb.Column("array", "vector", width=3), vectors),
    "words": (tb.Column("words", "bag", levels=2), word_lists),
    "dicts": (tb.Column("dicts", "bag"), word_dicts),
    "dense": (tb.Column("dense", "bag", width=4), matrix_rows),
    "sparse": (tb.Column("sparse", "bag", width=4, levels=3), matrix_rows),
}
KINDS = tuple(FORMS)
TARGET = "label"


def schema(kinds: Iterable[str] = KINDS, *, receipts: bool = False) -> tb.Schema:
    """The fixed schema of these columns."""
    return tb.Schema([FORMS[k][0] for k in kinds], target=TARGET, receipts=receipts)


SCHEMA = schema()


@dataclass(frozen=True)
class Rows:
    """A table as plain Python values, with a weight per row; `data()` is what a person would hand over."""

    columns: dict[str, list[Any]]
    weights: list[float] = field(default_factory=list)

    def __len__(self) -> int:
        return len(self.columns[TARGET])

    def take(self, rows: Sequence[int]) -> Rows:
        """Some of the rows, in this order, with repetition if asked."""
        return Rows({n: [c[i] for i in rows] for n, c in self.columns.items()}, [self.weights[i] for i in rows])

    def __add__(self, other: Rows) -> Rows:
        columns = {n: c + other.columns[n] for n, c in self.columns.items()}
        return Rows(columns, self.weights + other.weights)

    def data(self) -> dict[str, Any]:
        """A dict of columns: lists, and matrices where the column's form is one."""
        out: dict[str, Any] = dict(self.columns)
        for name in ("dense", "sparse"):
            if name in out:
                dense = np.array(out[name], dtype=np.float64).reshape(-1, 4)
                out[name] = dense if name == "dense" else scipy.sparse.csr_matrix(dense)
        if "array" in out:
            filled = [[math.nan] * 3 if v is None else [math.nan if x is None else x for x in v] for v in out["array"]]
            out["array"] = np.array(filled, dtype=np.float64).reshape(-1, 3)
        return out

    def tally(self, under: tb.Schema, *, weighted: bool = False) -> tb.Tally:
        """The rows counted under a schema."""
        return tb.count(self.data(), under, weights=self.weights if weighted else None)


@st.composite
def tables(
    draw: st.DrawFn, kinds: Sequence[str] = KINDS, *, min_size: int = 0, max_size: int = 6, label: str | None = None
) -> Rows:
    """A table of a few rows with these columns, labels of one type, and weights beside it."""
    n = draw(st.integers(min_size, max_size))
    each = {k: draw(st.lists(FORMS[k][1], min_size=n, max_size=n)) for k in kinds}
    chosen = labels[label or draw(st.sampled_from(sorted(labels)))]
    each[TARGET] = draw(st.lists(chosen, min_size=n, max_size=n))
    return Rows(each, draw(st.lists(weights, min_size=n, max_size=n)))


@st.composite
def tallies(draw: st.DrawFn, kinds: Sequence[str], *, receipts: bool = False) -> tb.Tally:
    """A signed tally: differences and multiples of counted tables, weighted or not, often empty."""
    under = schema(kinds, receipts=receipts)
    total = tb.Tally.zero(under)
    for _ in range(draw(st.integers(0, 2))):
        part = draw(tables(kinds, max_size=4)).tally(under, weighted=draw(st.booleans()))
        total = total + draw(st.sampled_from([-3, -1, 1, 1, 2, 2**40])) * part
    return total


def fresh_digest(tally: tb.Tally) -> str:
    """The digest worked out anew, past the one that the tally remembers."""
    return tb.Tally(tally.schema, tally.classes, tally.labels, tally.columns, tally.skipped).digest
