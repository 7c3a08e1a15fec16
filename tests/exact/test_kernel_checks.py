"""Every kernel has numbers that it is checked with, a wrong answer is found, and whoever called goes another way."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
import scipy.sparse

import tallybayes as tb

pytest.importorskip("numba", reason="without Numba there are no kernels")

from tallybayes.exact.kernels import checking, gate
from tallybayes.exact.kernels.compiling import LazyKernel
from tallybayes.exact.kernels.probes import PROBES

FULL = os.environ.get("TALLYBAYES_TESTS") == "all"
MODULES = ("codes", "entries", "fields", "joint", "moments", "rows", "scores", "steps", "strings", "tokens", "words")
KERNELS = {
    f"{module}.{name}": kernel
    for module in MODULES
    for name, kernel in vars(import_module(f"tallybayes.exact.kernels.{module}")).items()
    if isinstance(kernel, LazyKernel) and kernel.function.__module__.endswith(f".{module}")
}


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    """A gate that nothing has gone wrong at yet; what goes wrong here is forgotten afterwards."""
    monkeypatch.setattr(gate, "_off", [])
    monkeypatch.setenv("TALLYBAYES_KERNELS", "on")


def test_every_kernel_has_numbers_it_is_checked_with() -> None:
    assert set(PROBES) == set(KERNELS)
    assert len(KERNELS) > 50
    assert all(list(probe()) for probe in PROBES.values())


@pytest.mark.parametrize("name", PROBES)
def test_an_answer_that_is_wrong_in_one_place_is_found(name: str) -> None:
    """A stand-in that does what the kernel does and then spoils one number that it has written, or its answer."""
    function = KERNELS[name].function
    calls = list(PROBES[name]())
    written, answers = _effects(function, calls[0])
    assert written or answers, f"the first check of {name} sees nothing"
    right = _stand_in(function, None)
    assert checking.difference(function, right, calls) is None
    for place in written:
        assert "is right (check 1, array" in str(checking.difference(function, _stand_in(function, place), calls))
    if answers:
        assert "is right (check 1)" in str(checking.difference(function, _stand_in(function, -1), calls))


def _flat(given: Any) -> list[Any]:
    return [a for g in given for a in (_flat(g) if isinstance(g, tuple) else [g])]


def _effects(function: Callable[..., Any], given: tuple[Any, ...]) -> tuple[list[int], bool]:
    """Which of the arrays, tuples taken apart, a kernel writes to, and whether it answers."""
    own = checking.copied(given)
    answer = checking.by_python(function, own)
    pairs = enumerate(zip(_flat(given), _flat(own), strict=True))
    wrote = [
        k
        for k, (a, b) in pairs
        if isinstance(a, np.ndarray) and not np.array_equal(a, b, equal_nan=a.dtype.kind == "f")
    ]
    return wrote, answer is not None


def _stand_in(function: Callable[..., Any], spoilt: int | None) -> Callable[..., Any]:
    def made(*given: Any) -> Any:
        before = checking.copied(given)
        answer = checking.by_python(function, given)
        if spoilt == -1:
            return not answer if isinstance(answer, (bool, np.bool_)) else answer + 1
        if spoilt is not None:
            array = _flat(given)[spoilt].reshape(-1)
            changed = np.flatnonzero(array != _flat(before)[spoilt].reshape(-1))
            at = changed[len(changed) // 2]
            if array.dtype.kind == "f":
                array[at] = array[at] * (1 + 1e-9) + 1e-300
            else:
                array[at] = not array[at] if array.dtype.kind == "b" else array[at] ^ 1
        return answer

    return made


def test_one_bit_too_many_is_found_where_sums_keep_their_order() -> None:
    function, calls = KERNELS["joint.sum_cells"].function, list(PROBES["joint.sum_cells"]())

    def made(*given: Any) -> None:
        checking.by_python(function, given)
        given[-1][0, 0] = np.nextafter(given[-1][0, 0], np.inf)

    assert checking.difference(function, made, calls) is not None


# ---- whoever calls a kernel that is found unfit goes the readable road

RNG = np.random.default_rng(5)
Y = RNG.integers(0, 3, 400)
WORDS = np.array([f"word{i}" for i in range(80)])
SAID = np.where(RNG.random(400) < 0.5, Y, RNG.integers(0, 3, 400))  # which class a text speaks of
TEXTS = [" ".join(WORDS[(RNG.zipf(1.2, 8) * (1 + y)) % 80]) + (" über" if y else "") for y in SAID]
X = RNG.normal(size=(400, 10)) + Y[:, None]
CODES = RNG.integers(0, 7, (400, 5)) + Y[:, None]
BAGS = scipy.sparse.csr_array(scipy.sparse.random_array((400, 60), density=0.2, rng=RNG, format="csr"))
BAGS.data = np.ceil(BAGS.data * 5)
BAGS.sort_indices()


def _counted(rows: Any, *columns: tb.Column, families: dict[str, Any] | None = None, **named: Any) -> list[Any]:
    schema = tb.Schema(list(columns), target="y", label_type="int", **named)
    tally = tb.count({**rows, "y": Y}, schema) if isinstance(rows, dict) else tb.count(rows, schema, Y)
    model = tally.model(tb.Settings(families=families or {}))
    return [tally.digest, model.predict(rows).tolist(), model.log_joint(rows)]


def _text(**tokens: Any) -> list[Any]:
    return _counted({"t": pa.array(TEXTS)}, tb.Column("t", "text", text=tb.Tokeniser(**tokens)))


def _fitted(rows: dict[str, Any], y: Any) -> list[Any]:
    model = tb.fit({**rows, "y": y}, target="y")
    assert model.tally is not None
    return [model.tally.digest, model.settings.weights, model.predict(rows).tolist(), model.log_joint(rows)]


WORK: dict[str, Callable[[], list[Any]]] = {
    "vectors": lambda: _counted(X, tb.Column("x", "vector", width=10)),
    "numbers": lambda: _counted({"v": X[:, 0]}, tb.Column("v", "number"), families={"v": "gaussian"}),
    "cells": lambda: _counted({"v": X[:, 0]}, tb.Column("v", "number", cells=tb.Cells(0.0, -5))),
    "codes": lambda: _counted(CODES, *(tb.Column(f"x{j}", "category") for j in range(5))),
    "categories": lambda: _counted({"c": pa.array([f"c{c}" for c in CODES[:, 0]])}, tb.Column("c", "category")),
    "bags": lambda: _counted(BAGS, tb.Column("x", "bag", width=60)),
    "words": _text,
    "pairs of words": lambda: _text(ngrams=(1, 2)),
    "letters": lambda: _text(chars=(2, 3)),
    "a fit of two classes": lambda: _fitted({"v": X[:, 0], "c": CODES[:, 0].astype(str)}, Y % 2),
    "a fit of three": lambda: _fitted({"v": X[:, 0], "w": X[:, 1], "c": CODES[:, 0].astype(str)}, Y),
    "a fit of texts": lambda: _fitted({"t": TEXTS}, Y),
}  # fmt: skip


@pytest.fixture
def called(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """The kernels that are called from here on."""
    found: set[str] = set()
    names = {id(kernel): name for name, kernel in KERNELS.items()}
    call = LazyKernel.__call__

    def noted(self: LazyKernel, *given: Any) -> Any:
        found.add(names[id(self)])
        return call(self, *given)

    monkeypatch.setattr(LazyKernel, "__call__", noted)
    return found


def _same(one: list[Any], other: list[Any]) -> None:
    for a, b in zip(one, other, strict=True):
        if isinstance(a, dict):
            assert a == pytest.approx(b, rel=1e-7)
        elif isinstance(a, np.ndarray):
            np.testing.assert_allclose(a, b, rtol=1e-9)
        else:
            assert a == b


LONG = ("a fit of three", "a fit of texts")  # which take seconds: TALLYBAYES_TESTS=all


@pytest.mark.parametrize("work", [w for w in WORK if FULL or w not in LONG])
def test_whoever_calls_a_kernel_that_is_unfit_goes_the_readable_road(
    work: str, called: set[str], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Every kernel that the work calls is found unfit once, in the middle of it."""
    monkeypatch.setenv("TALLYBAYES_KERNELS", "off")
    wanted = WORK[work]()
    monkeypatch.setenv("TALLYBAYES_KERNELS", "on")
    _same(WORK[work](), wanted)
    assert gate.why_off() is None
    assert called
    for name in sorted(called):
        with pytest.MonkeyPatch.context() as patch:
            kernel = KERNELS[name]
            patch.setattr(gate, "_off", [])
            patch.setattr(kernel, "ready", {})
            patch.setattr(kernel, "only", None)
            patch.setattr(checking, "difference", lambda *given: "it has added 2 and 2, and made 5")
            patch.setattr("tallybayes.exact.kernels.compiling.Checked.__contains__", lambda *given: False)
            caplog.clear()
            with caplog.at_level(logging.INFO, "tallybayes"):
                _same(WORK[work](), wanted)
            said = [m for m in caplog.messages if "2 and 2" in m]
            assert said == [gate.why_off()], f"{name} in {work}"
            assert f" is not used: {kernel.function.__name__}: " in said[0]
