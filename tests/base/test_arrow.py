"""Arrow arrays made without pandas are those that pyarrow makes."""

from __future__ import annotations

import datetime as dt
import math
import struct
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from strategies import examples

from tallybayes.base import arrow
from tallybayes.exact.sheet import with_lengths

texts = st.lists(st.none() | st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=9)
floats = st.lists(st.none() | st.floats(), max_size=9)
whole = st.lists(st.none() | st.integers(-(2**70), 2**70), max_size=9)
flags = st.lists(st.none() | st.booleans(), max_size=9)
days = st.lists(st.none() | st.dates(), max_size=5)
times = st.lists(st.none() | st.datetimes(), max_size=5)
lists = st.lists(st.none() | texts | floats | st.lists(st.integers(0, 9) | st.floats(0, 1)), max_size=5)
everything: Any = st.one_of(texts, floats, whole, flags, days, times, lists)


@pytest.fixture(autouse=True)
def _no_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(arrow.sys.modules, "pandas", raising=False)


def outcome(make: Any, *args: Any, **options: Any) -> Any:
    try:
        made = make(*args, **options)
        return made.type, repr(made.to_pylist()), made.null_count
    except (pa.ArrowException, OverflowError, TypeError) as error:
        return type(error)


@given(everything, st.booleans())
@example([math.nan], True)
@example([math.nan, None], True)
@example([[math.nan], None], True)
@examples(300)
def test_arrays_of_lists(values: list[Any], from_pandas: bool) -> None:
    made, right = (outcome(f, values, from_pandas=from_pandas) for f in (arrow.array, pa.array))
    assert made == right
    if not isinstance(made, type):
        arrow.array(values, from_pandas=from_pandas).validate(full=True)


@given(texts, st.sampled_from([pa.string(), pa.large_string()]))
@examples(50)
def test_texts_of_a_type(values: list[Any], kind: Any) -> None:
    assert outcome(arrow.array, values, kind) == outcome(pa.array, values, kind)


@pytest.mark.parametrize("dtype", ["i1", "i4", "i8", "u8", "f4", "f8", "?", "f2", "O", "U3", ">i4"])
def test_arrays_of_numpy_and_back(dtype: str) -> None:
    values = np.arange(20).astype(dtype)[1::2]
    assert outcome(arrow.array, values) == outcome(pa.array, values)
    if dtype not in ("O", "U3", ">i4"):
        for piece in (pa.array(values), pa.array(values)[3:7], pa.array(values)[:0]):
            back = arrow.numpy_of(piece)
            assert back.dtype == piece.to_numpy(zero_copy_only=False).dtype
            assert back.tolist() == piece.to_numpy(zero_copy_only=False).tolist()


@pytest.mark.parametrize("values", [[1, None, 3], [0.5, None, math.nan], [True, None, False], [None, None]])
def test_nulls_become_what_pyarrow_makes_of_them(values: list[Any]) -> None:
    for piece in (pa.array(values), pa.array([*values, *values])[2:5]):
        assert str(arrow.numpy_of(piece).tolist()) == str(piece.to_numpy(zero_copy_only=False).tolist())


def test_scalars() -> None:
    assert arrow.scalar(None, pa.string()) == pa.scalar(None, pa.string())
    assert arrow.scalar(3) == pa.scalar(3) and arrow.scalar(dt.datetime(2024, 1, 2)).type == pa.timestamp("us")


@given(st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=5), max_size=9), st.integers(0, 3))
@examples(100)
def test_texts_with_their_lengths(texts: list[str], start: int) -> None:
    slow = b"".join(struct.pack("<q", len(t.encode())) + t.encode() for t in texts[start:])
    assert with_lengths(pa.array(texts, pa.string())[start:]) == slow
